"""ASGD."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.fused import OF_ROW, FusedOptimizer
from tilewright.optim.optimizer import alike
from tilewright.optim.settings import Group


class ASGD(FusedOptimizer):
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

    rows = ("asgd_step",)
    numbers = ("eta", "mu")
    signed = ("alpha", "t0")
    adjusted = ("lr", "t0")

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-2,
        lambd: float = OF_ROW,
        alpha: float = 0.75,
        t0: float = OF_ROW,
        weight_decay: float = OF_ROW,
        *,
        maximize: bool = OF_ROW,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())

    def state_names(self, group: Group) -> tuple[str, ...]:
        return ("ax", "eta", "mu")  # PyTorch's names

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
        (row,), t0 = self._rows, group["t0"]
        numbers = list(zip(state["eta"], state["mu"], strict=True))
        for (eta, mu), (p, g, ax) in alike(numbers, params, grads, state["ax"]):
            now = t0 if mu == _share(step - 1, t0) else step - 1 - 1 / mu
            row.step(group, step, p, g, {row.states[0]: ax}, lr=eta, t0=now)
        shrunk = 1 + group["lambd"] * group["lr"] * step
        state["eta"][:] = [group["lr"] / shrunk ** group["alpha"]] * len(params)
        state["mu"][:] = [_share(step, t0)] * len(params)


def _share(steps: int, t0: float) -> float:
    """What of the mean a parameter becomes behind so many steps."""
    return 1 / max(1, steps - t0)
