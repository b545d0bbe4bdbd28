"""Lion."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright import Tensor
from tilewright.optim.fused import OF_ROW, FusedOptimizer
from tilewright.optim.settings import Group


class Lion(FusedOptimizer):
    """Steps of one size, by the sign of a running mean of the gradient; decay is decoupled.

    Source: Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023.

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.Lion([x], lr=0.5).step(); round(x.item(), 4)
    0.5
    """

    rows = ("lion_step",)

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-4,
        betas: tuple[float, float] = OF_ROW,
        weight_decay: float = OF_ROW,
        *,
        maximize: bool = OF_ROW,
    ) -> None:
        super().__init__(params, locals())
