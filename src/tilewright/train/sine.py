"""A regression: a small network learns the sine from noisy samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from os import PathLike
from typing import Any, ClassVar

import tilewright as tw
from tilewright import Tensor, data, nn
from tilewright.train.options import Options
from tilewright.train.task import Trainable

_SAMPLES = 512
_NOISE = 0.1
# The curve is drawn and judged at so many places.
_PLACES = 400


class Sine(Trainable):
    """512 places in [-pi, pi] with sin(x) and normal noise of deviation 0.1; judged by the mean
    squared error from the sine itself.
    """

    name = "sine"
    metric: ClassVar[str] = "mean_squared_error"
    unit: ClassVar[str] = "points"

    def __init__(self) -> None:
        draws = tw.Generator(0)
        self.x = (tw.rand((_SAMPLES, 1), generator=draws) * 2 - 1) * math.pi
        self.y = tw.sin(self.x) + tw.randn((_SAMPLES, 1), generator=draws) * _NOISE
        self.places = tw.linspace(-math.pi, math.pi, _PLACES).astype(tw.float32).reshape((-1, 1))

    def build(self, options: Options) -> nn.Module:
        width = options.hidden
        return nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def loader(self, options: Options) -> data.DataLoader:
        return data.DataLoader((self.x, self.y), options.batch, shuffle=True, seed=options.seed)

    def loss(self, model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return tw.mse_loss(model(x), y)

    def evaluate(self, model: nn.Module, options: Options) -> float:
        return float(tw.mse_loss(self.curve(model), tw.sin(self.places)).item())

    def curve(self, model: nn.Module) -> Tensor:
        """What the model gives at `places`."""
        with tw.no_grad():
            device = next(model.parameters()).device
            return tw.asarray(model(self.places.to(device)).to("cpu"))

    def facts(self) -> Mapping[str, Any]:
        return {"points": _SAMPLES, "noise": _NOISE}

    def headline(self, options: Options) -> str:
        return f"1-{options.hidden}-{options.hidden}-1, {_SAMPLES} noisy points of sin(x)"


def sine_task(path: str | PathLike[str] | None = None) -> Sine:
    """The task; no path is read."""
    return Sine()
