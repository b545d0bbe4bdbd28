"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Iterable

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.optimizer import Group, Optimizer, check_not_negative, check_number


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and its square, with bias correction.

    `weight_decay` is added to the gradient. Source: D. Kingma and J. Ba, "Adam: a method for
    stochastic optimization", ICLR 2015.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.Adam([x], lr=0.5).step(); round(x.item(), 4)
    0.5
    """

    decoupled = False

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative(type(self).__name__, group, "lr", "eps", "weight_decay")
        name, betas = type(self).__name__, group["betas"]
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise ValueError(f"{name}: betas are two numbers, got {betas!r}")
        for beta in betas:
            check_number(name, "betas", beta)
            if not 0 <= beta < 1:
                raise ValueError(f"{name}: betas lie in [0, 1), got {tuple(betas)}")

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
        tw._core.adam_step(
            params,
            grads,
            state["exp_avg"],
            state["exp_avg_sq"],
            step=step,
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            decoupled=self.decoupled,
        )


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter directly, not through the gradient.

    Source: I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", ICLR 2019.

    >>> import tilewright as tw
    >>> tw.optim.AdamW([tw.zeros((2,), requires_grad=True)]).defaults["weight_decay"]
    0.01
    """

    decoupled = True

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)
