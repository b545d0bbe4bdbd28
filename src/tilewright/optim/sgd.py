"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.optimizer import Optimizer
from tilewright.optim.settings import Group, check_finite, check_flag, check_not_negative


class SGD(Optimizer):
    """x -= lr · v, v = momentum · v + (1 - dampening) · (g + weight_decay · x); first v = g.

    Source of the Nesterov form: Sutskever et al., "On the importance of initialization and
    momentum in deep learning", ICML 2013.

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.
    Source: PyTorch's torch.optim.SGD.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.SGD([x], lr=0.25).step(); x.tolist()
    [0.5]
    """

    late = ("momentum_buffer",)

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative("SGD", group, "lr", "momentum", "weight_decay")
        check_finite("SGD", group, "dampening")
        check_flag("SGD", group, "nesterov", "maximize")
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("SGD: nesterov needs a momentum above 0 and no dampening")

    def state_names(self, group: Group) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()

    def steps_done(self, group: Group, states: list[dict[str, Any]]) -> list[Any]:
        """A parameter without a momentum begins, whatever steps it has done without."""
        if not group["momentum"]:
            return super().steps_done(group, states)
        for state in states:
            if "momentum_buffer" in state and state["momentum_buffer"] is None:
                del state["momentum_buffer"]
        return [state.get("step", 0) or 1 if "momentum_buffer" in state else 0 for state in states]

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Tensor]],
        step: int,
    ) -> None:
        settings = {
            "step": step,
            "lr": group["lr"],
            "weight_decay": group["weight_decay"],
            "maximize": group["maximize"],
        }
        if not group["momentum"]:
            return tw._core.sgd_step(params, grads, **settings)
        update = tw._core.nesterov_step if group["nesterov"] else tw._core.momentum_step
        update(
            params,
            grads,
            state["momentum_buffer"],
            momentum=group["momentum"],
            dampening=group["dampening"],
            **settings,
        )
