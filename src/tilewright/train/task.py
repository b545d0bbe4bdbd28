"""What a task is: data, models, loss, and how success is measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from tilewright import Tensor, data, nn, optim
from tilewright.train.options import Options


class Trainable(ABC):
    """Base class of tasks. One has its data; it builds models and loaders, and measures."""

    name: str
    # A key of METRICS, and what rates count.
    metric: ClassVar[str] = "accuracy"
    unit: ClassVar[str] = "images"
    models: ClassVar[tuple[str, ...]] = ("mlp",)

    @abstractmethod
    def build(self, options: Options) -> nn.Module:
        """A model with first weights from the default generator."""

    @abstractmethod
    def loader(self, options: Options) -> data.DataLoader:
        """Batches (inputs, targets) of an epoch."""

    @abstractmethod
    def loss(self, model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        """The mean loss of a batch."""

    @abstractmethod
    def evaluate(self, model: nn.Module, options: Options) -> float:
        """The metric on data that is not trained on; called in evaluation mode."""

    def count(self, x: Tensor) -> int:
        """How many units a batch has."""
        return x.shape[0]

    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """What tells this data from other data of the same kind, for checkpoints."""

    @abstractmethod
    def headline(self, options: Options) -> str:
        """Model and data in a few words."""


def build_model(task: Trainable, options: Options) -> nn.Module:
    """The options' model for a task; raises ValueError for one that the task does not have."""
    if options.model not in task.models:
        raise ValueError(
            f"train: {task.name} has the models {', '.join(task.models)}, not {options.model!r}"
        )
    return task.build(options)


def build_optimizer(model: nn.Module, options: Options) -> optim.Optimizer:
    """The optimiser by name, with its own learning rate where none is given."""
    lr = options.learning_rate
    if options.optimizer == "adam":
        return optim.Adam(model.parameters(), lr=lr)
    if options.optimizer == "adamw":
        return optim.AdamW(model.parameters(), lr=lr)
    return optim.SGD(model.parameters(), lr, 0.9 if options.optimizer == "momentum" else 0.0)
