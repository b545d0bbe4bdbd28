"""RAdam."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright import Tensor
from tilewright.optim.fused import OF_ROW, FusedOptimizer
from tilewright.optim.settings import Group


class RAdam(FusedOptimizer):
    """Adam that takes steps of momentum alone until the mean square can be trusted.

    Source: Liu et al., "On the variance of the adaptive learning rate and beyond", ICLR 2020.

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.RAdam([x], lr=0.25).step(); round(x.item(), 4)
    0.5
    """

    rows = ("radam_step",)

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = OF_ROW,
        eps: float = OF_ROW,
        weight_decay: float = OF_ROW,
        decoupled_weight_decay: bool = OF_ROW,
        *,
        maximize: bool = OF_ROW,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())
