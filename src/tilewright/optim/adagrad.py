"""Adagrad."""

from __future__ import annotations

from collections.abc import Iterable

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.fused import OF_ROW, FusedOptimizer
from tilewright.optim.optimizer import state_dtype
from tilewright.optim.settings import Group


class Adagrad(FusedOptimizer):
    """x -= lr / (1 + (step - 1) · lr_decay) · g / (sqrt(sum of g²) + eps).

    Source: Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and
    stochastic optimization", JMLR 12 (2011).

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.Adagrad([x], lr=0.5).step(); round(x.item(), 4)
    0.5
    """

    rows = ("adagrad_step",)

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-2,
        lr_decay: float = OF_ROW,
        weight_decay: float = OF_ROW,
        initial_accumulator_value: float = 0.0,
        eps: float = OF_ROW,
        *,
        maximize: bool = OF_ROW,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())

    def new_state(self, name: str, group: Group, param: Tensor) -> Tensor:
        value = group["initial_accumulator_value"]
        return tw.full(param.shape, value, dtype=state_dtype(param), device=param.device)
