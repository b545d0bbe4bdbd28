"""Adadelta."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright import Tensor
from tilewright.optim.fused import OF_ROW, FusedOptimizer
from tilewright.optim.settings import Group


class Adadelta(FusedOptimizer):
    """Steps as large as a running mean of the steps so far, by that of the gradients.

    Source: M. Zeiler, "ADADELTA: an adaptive learning rate method" (2012).

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.Adadelta([x], lr=1.0).step(); round(x.item(), 4)
    0.9968
    """

    rows = ("adadelta_step",)
    signed = ("rho",)

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1.0,
        rho: float = OF_ROW,
        eps: float = OF_ROW,
        weight_decay: float = OF_ROW,
        *,
        maximize: bool = OF_ROW,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())

    def check_group(self, group: Group) -> None:
        super().check_group(group)
        if not 0 <= group["rho"] <= 1:
            raise ValueError(f"Adadelta: rho lies in [0, 1], got {group['rho']}")
