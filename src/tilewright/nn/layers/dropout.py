"""Random zeroing while training."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import ClassVar

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.module.module import Module


class _Dropout(Module):
    """What all of them share: a probability, and the function of their name.

    `inplace`: x is overwritten with the result and returned.
    """

    function: ClassVar[Callable[..., Tensor]]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        name = type(self).__name__
        if not isinstance(p, numbers.Real):
            raise TypeError(f"{name}: probability is a number, got {p!r}")
        if not 0 <= p <= 1:
            raise ValueError(f"{name}: probability lies between 0 and 1, got {p}")
        self.p: float = p
        self.inplace: bool = inplace

    def forward(self, x: Tensor) -> Tensor:
        y = type(self).function(x, self.p, training=self.training)
        return x.copy_(y) if self.inplace and y is not x else y

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace=True" if self.inplace else f"p={self.p}"


class Dropout(_Dropout):
    """In training mode zeroes each element with probability `p` and scales the rest by 1/(1-p).

    Source: Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting",
    JMLR 15 (2014).

    >>> import tilewright as tw
    >>> tw.nn.Dropout(0.5).eval()(tw.ones((2,))).tolist()
    [1.0, 1.0]
    """

    function = staticmethod(tw.dropout)


class Dropout1d(_Dropout):
    """Dropout of whole channels of x (batch, channels, length), or without a batch.

    Source: J. Tompson et al., "Efficient object localization using convolutional networks", CVPR
    2015.

    >>> import tilewright as tw
    >>> y = tw.nn.Dropout1d()(tw.ones((1, 8, 3)))
    >>> sorted({v for row in y[0].tolist() for v in row}) in ([0.0], [2.0], [0.0, 2.0])
    True
    """

    function = staticmethod(tw.dropout1d)


class Dropout2d(_Dropout):
    """Dropout of whole channels of x (batch, channels, height, width), or of (batch, channels,
    length) as in PyTorch; see Dropout1d.
    """

    function = staticmethod(tw.dropout2d)


class Dropout3d(_Dropout):
    """Dropout of whole channels of x (batch, channels, depth, height, width), or without a batch;
    see Dropout1d.
    """

    function = staticmethod(tw.dropout3d)


class AlphaDropout(_Dropout):
    """Dropout behind SELU: elements become its value far below 0, mean 0 and variance 1 stay.

    Source: G. Klambauer et al., "Self-normalizing neural networks", NIPS 2017.

    >>> import tilewright as tw
    >>> tw.nn.AlphaDropout(0.5).eval()(tw.ones((2,))).tolist()
    [1.0, 1.0]
    """

    function = staticmethod(tw.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """AlphaDropout of whole channels of x (batch, channels, ...)."""

    function = staticmethod(tw.feature_alpha_dropout)
