"""Losses as modules."""

from __future__ import annotations

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.module import Module

_REDUCTIONS = ("mean", "sum", "none")


def _check_reduction(loss: str, reduction: str) -> str:
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{loss}: reduction is one of {', '.join(_REDUCTIONS)}; got {reduction!r}")
    return reduction


class CrossEntropyLoss(Module):
    """-log softmax(logits)[target]; logits are (n, classes), targets (n,) class numbers.

    >>> import tilewright as tw
    >>> loss = tw.nn.CrossEntropyLoss()(tw.zeros((1, 2)), tw.asarray([1]))
    >>> round(loss.item(), 4)
    0.6931
    """

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        self.reduction = _check_reduction("CrossEntropyLoss", reduction)
        self.ignore_index = ignore_index

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        return tw.cross_entropy(
            logits, targets, reduction=self.reduction, ignore_index=self.ignore_index
        )

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"


class MSELoss(Module):
    """(x - y)²; shapes must be equal.

    >>> import tilewright as tw
    >>> tw.nn.MSELoss()(tw.asarray([1.0, 3.0]), tw.asarray([1.0, 1.0])).item()
    2.0
    """

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = _check_reduction("MSELoss", reduction)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return tw.mse_loss(x, y, reduction=self.reduction)

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"
