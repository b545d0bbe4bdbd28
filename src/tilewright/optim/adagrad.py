"""Adagrad."""

from __future__ import annotations

from collections.abc import Iterable

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.optimizer import Optimizer, state_dtype
from tilewright.optim.settings import Group, check_flag, check_not_negative


class Adagrad(Optimizer):
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

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "eps": eps,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        names = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")
        check_not_negative("Adagrad", group, *names)
        check_flag("Adagrad", group, "maximize")

    def state_names(self, group: Group) -> tuple[str, ...]:
        return ("sum",)

    def new_state(self, name: str, group: Group, param: Tensor) -> Tensor:
        value = group["initial_accumulator_value"]
        return tw.full(param.shape, value, dtype=state_dtype(param), device=param.device)

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Tensor]],
        step: int,
    ) -> None:
        tw._core.adagrad_step(
            params,
            grads,
            state["sum"],
            step=step,
            lr=group["lr"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            lr_decay=group["lr_decay"],
            maximize=group["maximize"],
        )
