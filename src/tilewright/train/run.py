"""What a training gives: its epochs, and where it stands meanwhile."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from tilewright import nn
from tilewright.train.options import Options


class Metric(NamedTuple):
    """What tells how good a model is on data that it was not trained on."""

    title: str
    show: Callable[[float], str]
    # What the loss that is trained on measures.
    loss: str
    larger_is_better: bool


METRICS = {
    "accuracy": Metric("test accuracy", "{:.2%}".format, "cross-entropy, nats", True),
    "bits_per_character": Metric(
        "validation bits per character", "{:.3f}".format, "cross-entropy, nats", False
    ),
    "mean_squared_error": Metric(
        "squared error from the sine", "{:.2e}".format, "mean squared error", False
    ),
}


@dataclass(frozen=True)
class Epoch:
    """What one pass over the training data gave: mean loss, score by the task's metric, and
    seconds and units (images, characters) a second without the test.
    """

    number: int
    loss: float
    score: float
    seconds: float
    rate: float

    @property
    def accuracy(self) -> float:
        """The score of a task whose metric is the accuracy, 0 to 1."""
        return self.score

    @property
    def images_per_second(self) -> float:
        """The rate of a task that counts images."""
        return self.rate


@dataclass(frozen=True)
class Run:
    """One training: its settings and its epochs; `model` is what was trained."""

    task: str
    options: Options
    threads: int
    epochs: list[Epoch] = field(default_factory=list)
    error: str | None = None
    metric: str = "accuracy"
    unit: str = "images"
    model: nn.Module | None = field(default=None, repr=False, compare=False)
    # Of all batches since the first epoch, for the picture.
    batch_losses: array[float] = field(
        default_factory=lambda: array("d"), repr=False, compare=False
    )

    @property
    def score(self) -> float:
        """The metric after the last epoch."""
        return self.epochs[-1].score if self.epochs else float("nan")

    @property
    def accuracy(self) -> float:
        """Test accuracy after the last epoch, 0 to 1, where that is the metric."""
        return self.score

    @property
    def total_seconds(self) -> float:
        """Training time of all epochs."""
        return sum(epoch.seconds for epoch in self.epochs)

    @property
    def epoch_seconds(self) -> float:
        """Mean training time of an epoch."""
        return self.total_seconds / len(self.epochs) if self.epochs else float("nan")

    def as_dict(self) -> dict[str, Any]:
        """For JSON: score and rate under the names of the task's metric and unit."""
        given = bool(self.epochs)
        return {
            "task": self.task,
            "options": asdict(self.options),
            "threads": self.threads,
            "epochs": [self._named(asdict(epoch)) for epoch in self.epochs],
            "error": self.error,
            self.metric: self.score if given else None,
            "epoch_seconds": self.epoch_seconds if given else None,
            "total_seconds": self.total_seconds if given else None,
        }

    def _named(self, epoch: Mapping[str, Any]) -> dict[str, Any]:
        names = {"score": self.metric, "rate": f"{self.unit}_per_second"}
        return {names.get(name, name): value for name, value in epoch.items()}


@dataclass(frozen=True)
class Progress:
    """Where a training stands, told after each batch: `loss` is the epoch's mean so far, `rate` in
    units a second.
    """

    kernel: str
    epoch: int
    batch: int
    batches: int
    loss: float
    rate: float
    batch_loss: float = float("nan")

    @property
    def images_per_second(self) -> float:
        """The rate of a task that counts images."""
        return self.rate

    @property
    def epochs_done(self) -> float:
        """Epochs up to here, with the share of the present one."""
        return self.epoch - 1 + self.batch / self.batches


OnBatch = Callable[[Progress], None]
OnEpoch = Callable[[Run], None]
