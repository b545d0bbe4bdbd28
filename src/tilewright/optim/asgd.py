"""ASGD."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.optimizer import Optimizer, alike
from tilewright.optim.settings import Group, check_finite, check_flag, check_not_negative


class ASGD(Optimizer):
    """Stochastic gradient descent whose steps shrink, and the mean of the parameters it came by.

    A step goes eta along the gradient, and shrinks x by lambd · eta. The state "eta" begins as lr
    and becomes lr / (1 + lambd · lr · t)^alpha after step t, so that another lr, of a schedule for
    example, acts from the step after the next on, as in PyTorch. The state "ax" is the mean of all
    parameters since step t0 + 2, before it the last; "mu" is the next one's share of it.
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

    numbers = ("eta", "mu")

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
        return ("ax", "eta", "mu")

    def new_state(self, name: str, group: Group, param: Tensor) -> Any:
        firsts = {"eta": float(group["lr"]), "mu": 1.0}
        return firsts[name] if name in firsts else super().new_state(name, group, param)

    def _saved(self) -> dict[str, Any]:
        """With numbers in tensors as PyTorch's has them."""
        saved = super()._saved()
        for state in saved["state"].values():
            state |= {name: tw.asarray(state[name]) for name in self.numbers if name in state}
        return saved

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Any]],
        step: int,
    ) -> None:
        lr, lambd, t0 = group["lr"], group["lambd"], group["t0"]
        numbers = list(zip(state["eta"], state["mu"], strict=True))
        for (eta, mu), columns in alike(numbers, params, grads, state["ax"]):
            tw._core.asgd_step(
                *columns,
                step=step,
                lr=eta,
                lambd=lambd,
                t0=t0 if mu == _share(step - 1, t0) else step - 1 - 1 / mu,
                weight_decay=group["weight_decay"],
                maximize=group["maximize"],
            )
        state["eta"][:] = [lr / (1 + lambd * lr * step) ** group["alpha"]] * len(params)
        state["mu"][:] = [_share(step, t0)] * len(params)


def _share(steps: int, t0: float) -> float:
    """What of the mean a parameter becomes behind so many steps."""
    return 1 / max(1, steps - t0)
