"""Draws of gamma and beta distributions as functions of their parameters.

Each draw moves with a parameter so that the value of its distribution function stays. Source:
Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients" (2018). All is of float64 and
of logarithms, as numbers of small shapes lie below every type's least.
"""

from __future__ import annotations

from typing import Any

import tilewright as tw
from tilewright import Tensor, _core
from tilewright.autograd import Function


def log_gammas(shapes: Tensor, generator: Any) -> Tensor:
    """Logarithms of numbers of gamma distributions of scale 1, without a gradient.

    A number of shape a is one of a + 1 times a uniform one to the power of 1 / a.
    """
    a = shapes.detach()
    waits = tw.exponential(1.0, a.shape, dtype=tw.float64, device=a.device, generator=generator)
    return tw.standard_gamma(a + 1, generator=generator).log() - waits / a


class LogOdds(Function):
    """Log-odds of beta distributions, drawn before, as functions of both parameters."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, drawn: Tensor) -> Tensor:
        ctx.save_for_backward(a, b, drawn)
        return drawn.copy()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, None]:
        a, b, drawn = ctx.saved_tensors
        return g * _core._beta_slope(a, b, drawn), -g * _core._beta_slope(b, a, -drawn), None


class Shares(Function):
    """Shares of Dirichlet distributions, of logarithms of gamma numbers, drawn before.

    With one parameter its share alone moves by a beta distribution; the others keep their
    proportions.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, logarithms: Tensor) -> Tensor:
        logs = logarithms.log_softmax(-1)
        ctx.save_for_backward(a, logs)
        return logs.exp()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        a, logs = ctx.saved_tensors
        x = logs.exp()
        others = (a.sum(axis=-1, keepdims=True) - a).clip(float(tw.finfo(a.dtype).smallest_normal))
        log_odds = logs - tw.log(-tw.expm1(logs))
        apart = g - (g * x).sum(axis=-1, keepdims=True)
        return x * apart * _core._beta_slope(a, others, log_odds), None
