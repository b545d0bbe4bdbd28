"""Rprop."""

from __future__ import annotations

from collections.abc import Iterable

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.optimizer import Optimizer, state_dtype
from tilewright.optim.settings import Group, check_finite, check_flag, check_not_negative


class Rprop(Optimizer):
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

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize}
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative("Rprop", group, "lr")
        check_flag("Rprop", group, "maximize")
        for name in ("etas", "step_sizes"):
            pair = group[name]
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ValueError(f"Rprop: {name} are two numbers, got {pair!r}")
            check_finite("Rprop", {name: pair[0]}, name)
            check_finite("Rprop", {name: pair[1]}, name)
        minus, plus = group["etas"]
        if not 0 < minus < 1 < plus:
            raise ValueError(f"Rprop: etas lie in (0, 1) and above 1, got {group['etas']}")

    def state_names(self, group: Group) -> tuple[str, ...]:
        return ("prev", "step_size")

    def new_state(self, name: str, group: Group, param: Tensor) -> Tensor:
        value = group["lr"] if name == "step_size" else 0.0
        return tw.full(param.shape, value, dtype=state_dtype(param), device=param.device)

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Tensor]],
        step: int,
    ) -> None:
        minus, plus = group["etas"]
        smallest, largest = group["step_sizes"]
        tw._core.rprop_step(
            params,
            grads,
            *state.values(),
            step=step,
            lr=group["lr"],
            eta_minus=minus,
            eta_plus=plus,
            smallest=smallest,
            largest=largest,
            maximize=group["maximize"],
        )
