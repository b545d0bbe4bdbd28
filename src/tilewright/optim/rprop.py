"""Rprop."""

from __future__ import annotations

from collections.abc import Iterable

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.fused import OF_ROW, FusedOptimizer
from tilewright.optim.optimizer import state_dtype
from tilewright.optim.settings import Group, check_finite


class Rprop(FusedOptimizer):
    """Steps by the sign of the gradient, each element's as long as its signs have agreed.

    A step begins as `lr`, grows by etas[1] while the sign stays and shrinks by etas[0] where it
    changes, within `step_sizes`; where it changes, the element rests for one step. For gradients of
    the whole data set, not of batches. Source: M. Riedmiller and H. Braun, "A direct adaptive
    method for faster backpropagation learning: the RPROP algorithm", ICNN 1993.

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.Rprop([x], lr=0.5).step(); x.item()
    0.5
    """

    rows = ("rprop_step",)

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-2,
        etas: tuple[float, float] = OF_ROW,
        step_sizes: tuple[float, float] = OF_ROW,
        *,
        maximize: bool = OF_ROW,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())

    def check_group(self, group: Group) -> None:
        super().check_group(group)
        for name in ("etas", "step_sizes"):
            pair = group[name]
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ValueError(f"Rprop: {name} are two numbers, got {pair!r}")
            check_finite("Rprop", {name: pair[0]}, name)
            check_finite("Rprop", {name: pair[1]}, name)
        minus, plus = group["etas"]
        if not 0 < minus < 1 < plus:
            raise ValueError(f"Rprop: etas lie in (0, 1) and above 1, got {group['etas']}")

    def new_state(self, name: str, group: Group, param: Tensor) -> Tensor:
        value = group["lr"] if name == "step_size" else 0.0
        return tw.full(param.shape, value, dtype=state_dtype(param), device=param.device)
