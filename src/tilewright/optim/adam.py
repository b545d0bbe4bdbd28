"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Iterable

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.optimizer import Optimizer
from tilewright.optim.settings import Group, check_betas, check_flag, check_not_negative


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and its square, with bias correction.

    `weight_decay` is added to the gradient, or shrinks the parameter directly where
    `decoupled_weight_decay`; `amsgrad` scales by the largest mean square so far.
    Source: D. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015; S. Reddi
    et al., "On the convergence of Adam and beyond", ICLR 2018.

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.Adam([x], lr=0.5).step(); round(x.item(), 4)
    0.5
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        name = type(self).__name__
        check_not_negative(name, group, "lr", "eps", "weight_decay")
        check_betas(name, group)
        check_flag(name, group, "amsgrad", "maximize", "decoupled_weight_decay")

    def state_names(self, group: Group) -> tuple[str, ...]:
        names = ("exp_avg", "exp_avg_sq")
        return (*names, "max_exp_avg_sq") if group["amsgrad"] else names

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Tensor]],
        step: int,
    ) -> None:
        beta1, beta2 = group["betas"]
        update = tw._core.amsgrad_step if group["amsgrad"] else tw._core.adam_step
        update(
            params,
            grads,
            *state.values(),
            step=step,
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            decoupled=group["decoupled_weight_decay"],
            maximize=group["maximize"],
        )


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter directly, not through the gradient.

    Source: I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", ICLR 2019.

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> tw.optim.AdamW([tw.zeros((2,), requires_grad=True)]).defaults["weight_decay"]
    0.01
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            maximize=maximize,
            decoupled_weight_decay=True,
        )
