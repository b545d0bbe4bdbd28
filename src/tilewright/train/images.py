"""Handwritten digits, embedded or MNIST: by a multilayer perceptron or a convolutional network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar

import tilewright as tw
from tilewright import Tensor, data, nn
from tilewright.train.models import Cnn, mlp
from tilewright.train.options import Options
from tilewright.train.task import Trainable

# Images that a test passes through a convolutional network at a time: with all 10,000 its layers
# would take a gigabyte.
_TEST_BATCH = 500


@dataclass(frozen=True)
class Task(Trainable):
    """Flat float32 images in [0, 1] with int64 labels, split for training and testing."""

    name: str
    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor
    classes: int = 10

    models: ClassVar[tuple[str, ...]] = ("mlp", "cnn")

    def build(self, options: Options) -> nn.Module:
        if options.model == "cnn":
            side = math.isqrt(self.train_images.shape[1])
            return Cnn(side, options.hidden, self.classes)
        return mlp(self.train_images.shape[1], options.hidden, self.classes)

    def loader(self, options: Options) -> data.DataLoader:
        rows = (self.train_images, self.train_labels)
        return data.DataLoader(rows, options.batch, shuffle=True, seed=options.seed)

    def loss(self, model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return tw.cross_entropy(model(x), y)

    def evaluate(self, model: nn.Module, options: Options) -> float:
        images, labels = self.test_images, self.test_labels
        if options.model == "mlp":
            return accuracy(model, images.to(options.device), labels.to(options.device))
        parts = data.DataLoader((images, labels), _TEST_BATCH)
        hits: list[float] = [
            accuracy(model, x.to(options.device), y.to(options.device)) * x.shape[0]
            for x, y in parts
        ]
        return sum(hits) / images.shape[0]

    def facts(self) -> Mapping[str, Any]:
        return {
            "images": self.train_images.shape[0],
            "test images": self.test_images.shape[0],
            "pixels": self.train_images.shape[1],
        }

    def headline(self, options: Options) -> str:
        pixels, hidden = self.train_images.shape[1], options.hidden
        layers = f"{hidden}-{self.classes}"
        model = f"cnn-32-64-{layers}" if options.model == "cnn" else f"{pixels}-{layers}"
        return (
            f"{model}, "
            f"{self.train_images.shape[0]:,} training and {self.test_images.shape[0]:,} test images"
        )


def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Share of images whose largest output is the label's."""
    with tw.no_grad():
        hits = tw.argmax(model(images), axis=1) == labels
        return float(tw.mean(hits.astype(tw.float32)).item())


def digits_task(path: str | PathLike[str] | None = None) -> Task:
    """The embedded digits, shuffled with a fixed seed and split 1,437 to 360; no path is read."""
    images, labels = data.digits()
    # The file is ordered by writer; a fixed shuffle gives both parts all writers.
    order = tw.randperm(images.shape[0], generator=tw.Generator(0))
    x = _flat(tw.take(images, order, axis=0), 16)
    y = tw.take(labels, order, axis=0).astype(tw.int64)
    return Task("digits", x[:1437], y[:1437], x[1437:], y[1437:])


def mnist_task(path: str | PathLike[str] | None = None) -> Task:
    """MNIST's first 50,000 images for training, its 10,000 test images for the test."""
    files = data.mnist(path)
    return Task(
        "mnist",
        _flat(files.train_images[:50000], 255),
        files.train_labels[:50000].astype(tw.int64),
        _flat(files.test_images, 255),
        files.test_labels.astype(tw.int64),
    )


def _flat(images: Tensor, white: int) -> Tensor:
    """Rows of pixels scaled to [0, 1]."""
    return images.reshape((images.shape[0], -1)).astype(tw.float32) / float(white)
