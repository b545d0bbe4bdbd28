"""Lion."""

from __future__ import annotations

from collections.abc import Iterable

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.optimizer import Optimizer
from tilewright.optim.settings import Group, check_betas, check_flag, check_not_negative


class Lion(Optimizer):
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

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative("Lion", group, "lr", "weight_decay")
        check_betas("Lion", group)
        check_flag("Lion", group, "maximize")

    def state_names(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg",)

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Tensor]],
        step: int,
    ) -> None:
        beta1, beta2 = group["betas"]
        tw._core.lion_step(
            params,
            grads,
            *state.values(),
            step=step,
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
