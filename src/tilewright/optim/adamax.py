"""Adamax."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright import Tensor
from tilewright.optim.fused import OF_ROW, FusedOptimizer
from tilewright.optim.settings import Group


class Adamax(FusedOptimizer):
    """Adam whose scale is the largest decayed gradient instead of the mean square.

    Source: D. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015.

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.Adamax([x], lr=0.5).step(); round(x.item(), 4)
    0.5
    """

    rows = ("adamax_step",)

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 2e-3,
        betas: tuple[float, float] = OF_ROW,
        eps: float = OF_ROW,
        weight_decay: float = OF_ROW,
        *,
        maximize: bool = OF_ROW,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())
