"""ASGD."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.optimizer import (
    Group,
    Optimizer,
    check_finite,
    check_flag,
    check_not_negative,
)


class ASGD(Optimizer):
    """Stochastic gradient descent whose steps shrink, and the mean of the parameters it came by.

    A step goes eta along the gradient, and shrinks x by lambd · eta. The state "eta" begins as lr
    and becomes lr / (1 + lambd · lr · t)^alpha after step t, so that another lr, of a schedule for
    example, acts from the step after the next on, as in PyTorch. The state "ax" is the mean of all
    parameters since step t0 + 2, before it the last.
    Source: B. Polyak and A. Juditsky, "Acceleration of stochastic approximation by averaging", SIAM
    Journal on Control and Optimization 30 (1992).

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.ASGD([x], lr=0.25, lambd=0.0).step(); x.item()
    0.5
    """

    numbers = ("eta",)

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative("ASGD", group, "lr", "lambd", "weight_decay")
        check_finite("ASGD", group, "alpha", "t0")
        check_flag("ASGD", group, "maximize")

    def state_names(self, group: Group) -> tuple[str, ...]:
        return ("ax", "eta")

    def new_state(self, name: str, group: Group, param: Tensor) -> Tensor:
        if name == "ax":
            return super().new_state(name, group, param)
        return tw.asarray(group["lr"], dtype=tw.float64, device="cpu")

    def state_dict(self) -> dict[str, Any]:
        """As `Optimizer.state_dict`, with PyTorch's "mu" of the next step."""
        saved = super().state_dict()
        for group in saved["param_groups"]:
            for number in group["params"]:
                if state := saved["state"].get(number):
                    state["mu"] = tw.asarray(1 / max(1, state["step"] - group["t0"]))
        return saved

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Tensor]],
        step: int,
    ) -> None:
        lr, lambd = group["lr"], group["lambd"]
        etas = [eta.item() for eta in state["eta"]]
        for eta in dict.fromkeys(etas):
            chosen = [i for i, other in enumerate(etas) if other == eta]
            tw._core.asgd_step(
                *([column[i] for i in chosen] for column in (params, grads, state["ax"])),
                step=step,
                lr=eta,
                lambd=lambd,
                t0=group["t0"],
                weight_decay=group["weight_decay"],
                maximize=group["maximize"],
            )
        for eta in state["eta"]:
            eta.fill_(lr / (1 + lambd * lr * step) ** group["alpha"])
