"""Activation functions as layers."""

from __future__ import annotations

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.module import Module


class ReLU(Module):
    """max(x, 0).

    >>> import tilewright as tw
    >>> tw.nn.ReLU()(tw.asarray([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        return tw.relu(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    >>> import tilewright as tw
    >>> tw.nn.Sigmoid()(tw.asarray([0.0])).tolist()
    [0.5]
    """

    def forward(self, x: Tensor) -> Tensor:
        return tw.sigmoid(x)


class Tanh(Module):
    """The hyperbolic tangent.

    >>> import tilewright as tw
    >>> tw.nn.Tanh()(tw.asarray([0.0])).tolist()
    [0.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        return tw.tanh(x)


class Softmax(Module):
    """exp(x) / sum(exp(x)) along `axis`.

    >>> import tilewright as tw
    >>> tw.nn.Softmax()(tw.zeros((1, 4))).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return tw.softmax(x, axis=self.axis)

    def extra_repr(self) -> str:
        return f"axis={self.axis}"
