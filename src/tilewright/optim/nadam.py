"""NAdam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.optimizer import Optimizer, alike
from tilewright.optim.settings import Group, check_betas, check_flag, check_not_negative


class NAdam(Optimizer):
    """Adam with Nesterov's momentum, whose strength grows by `momentum_decay`.

    The state "mu_product" is the product of the momenta of all steps so far.
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

    numbers = ("mu_product",)

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
        return ("exp_avg", "exp_avg_sq", "mu_product")

    def new_state(self, name: str, group: Group, param: Tensor) -> Any:
        return 1.0 if name == "mu_product" else super().new_state(name, group, param)

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Any]],
        step: int,
    ) -> None:
        beta1, beta2 = group["betas"]
        products = state["mu_product"]
        means = state["exp_avg"], state["exp_avg_sq"]
        for product, columns in alike(products, params, grads, *means):
            tw._core.nadam_step(
                *columns,
                step=step,
                lr=group["lr"],
                beta1=beta1,
                beta2=beta2,
                eps=group["eps"],
                weight_decay=group["weight_decay"],
                momentum_decay=group["momentum_decay"],
                decoupled=group["decoupled_weight_decay"],
                maximize=group["maximize"],
                mu_product=product,
            )
        momentum = beta1 * (1 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
        products[:] = [product * momentum for product in products]
