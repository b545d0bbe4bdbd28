"""Adadelta."""

from __future__ import annotations

from collections.abc import Iterable

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.optimizer import Optimizer
from tilewright.optim.settings import Group, check_flag, check_not_negative, check_number


class Adadelta(Optimizer):
    """Steps as large as a running mean of the steps so far, by that of the gradients.

    Source: M. Zeiler, "ADADELTA: an adaptive learning rate method" (2012).

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.Adadelta([x], lr=1.0).step(); round(x.item(), 4)
    0.9968
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative("Adadelta", group, "lr", "eps", "weight_decay")
        check_number("Adadelta", "rho", group["rho"])
        if not 0 <= group["rho"] <= 1:
            raise ValueError(f"Adadelta: rho lies in [0, 1], got {group['rho']}")
        check_flag("Adadelta", group, "maximize")

    def state_names(self, group: Group) -> tuple[str, ...]:
        return ("square_avg", "acc_delta")

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Tensor]],
        step: int,
    ) -> None:
        tw._core.adadelta_step(
            params,
            grads,
            *state.values(),
            step=step,
            lr=group["lr"],
            rho=group["rho"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
