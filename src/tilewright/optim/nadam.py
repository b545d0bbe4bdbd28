"""NAdam."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.optimizer import (
    Group,
    Optimizer,
    check_betas,
    check_flag,
    check_not_negative,
)


class NAdam(Optimizer):
    """Adam with Nesterov's momentum, whose strength grows by `momentum_decay`.

    Source: T. Dozat, "Incorporating Nesterov momentum into Adam", ICLR workshop 2016.

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.NAdam([x], lr=0.5).step(); round(x.item(), 4)
    0.4718
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
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
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative("NAdam", group, "lr", "eps", "weight_decay", "momentum_decay")
        check_betas("NAdam", group)
        check_flag("NAdam", group, "decoupled_weight_decay", "maximize")

    def state_names(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Tensor]],
        step: int,
    ) -> None:
        beta1, beta2 = group["betas"]
        tw._core.nadam_step(
            params,
            grads,
            *state.values(),
            step=step,
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            momentum_decay=group["momentum_decay"],
            decoupled=group["decoupled_weight_decay"],
            maximize=group["maximize"],
        )

    def state_dict(self) -> dict[str, Any]:
        """As every optimiser's, with the product of all momenta so far, which PyTorch's keeps."""
        full = super().state_dict()
        for group in full["param_groups"]:
            beta, decay = group["betas"][0], group["momentum_decay"]
            for number in group["params"]:
                if state := full["state"].get(number):
                    steps = range(1, state["step"] + 1)
                    state["mu_product"] = math.prod(
                        beta * (1 - 0.5 * 0.96 ** (step * decay)) for step in steps
                    )
        return full
