"""RMSprop."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright import Tensor
from tilewright.optim.fused import OF_ROW, FusedOptimizer, Row
from tilewright.optim.settings import Group


class RMSprop(FusedOptimizer):
    """Steps by the gradient over the root of a running mean of its square.

    `centered` takes the variance instead of the mean square. Source: G. Hinton, "Neural networks
    for machine learning", lecture 6 (2012); A. Graves, "Generating sequences with recurrent neural
    networks" (2013).

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.RMSprop([x], lr=0.05).step(); round(x.item(), 4)
    0.5
    """

    rows = (
        "rmsprop_step",
        "rmsprop_momentum_step",
        "rmsprop_centered_step",
        "rmsprop_centered_momentum_step",
    )

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-2,
        alpha: float = OF_ROW,
        eps: float = OF_ROW,
        weight_decay: float = OF_ROW,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = OF_ROW,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())

    def row_of(self, group: Group) -> Row:
        return self._rows[2 * bool(group["centered"]) + bool(group["momentum"])]
