"""Random zeroing while training."""

from __future__ import annotations

import numbers

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.module import Module


class Dropout(Module):
    """In training mode zeroes each element with probability `p` and scales the rest by 1/(1-p).

    Source: Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting",
    JMLR 15 (2014).

    >>> import tilewright as tw
    >>> tw.nn.Dropout(0.5).eval()(tw.ones((2,))).tolist()
    [1.0, 1.0]
    """

    def __init__(self, p: float = 0.5) -> None:
        if not isinstance(p, numbers.Real):
            raise TypeError(f"Dropout: probability is a number, got {p!r}")
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: probability lies between 0 and 1, got {p}")
        self.p: float = p

    def forward(self, x: Tensor) -> Tensor:
        return tw.dropout(x, self.p, training=self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"
