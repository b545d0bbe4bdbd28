"""Adamax."""

from __future__ import annotations

from collections.abc import Iterable

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.optimizer import Optimizer
from tilewright.optim.settings import Group, check_betas, check_flag, check_not_negative


class Adamax(Optimizer):
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

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative("Adamax", group, "lr", "eps", "weight_decay")
        check_betas("Adamax", group)
        check_flag("Adamax", group, "maximize")

    def state_names(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_inf")

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Tensor]],
        step: int,
    ) -> None:
        beta1, beta2 = group["betas"]
        tw._core.adamax_step(
            params,
            grads,
            *state.values(),
            step=step,
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
