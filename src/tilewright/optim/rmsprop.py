"""RMSprop."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.optimizer import Optimizer
from tilewright.optim.settings import Group, check_flag, check_not_negative

# By whether it is centered and has momentum.
_UPDATES: dict[tuple[bool, bool], Callable[..., None]] = {
    (False, False): tw._core.rmsprop_step,
    (False, True): tw._core.rmsprop_momentum_step,
    (True, False): tw._core.rmsprop_centered_step,
    (True, True): tw._core.rmsprop_centered_momentum_step,
}


class RMSprop(Optimizer):
    """Steps by the gradient over the root of a running mean of its square.

    `centered` takes the variance instead of the mean square. Source: G. Hinton, "Neural networks
    for machine learning", lecture 6 (2012); A. Graves, "Generating sequences with recurrent neural
    networks" (2013).

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.RMSprop([x], lr=0.05).step(); round(x.item(), 4)
    0.5
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "alpha": alpha,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative("RMSprop", group, "lr", "alpha", "eps", "weight_decay", "momentum")
        check_flag("RMSprop", group, "centered", "maximize")

    def state_names(self, group: Group) -> tuple[str, ...]:
        centered = ("grad_avg",) if group["centered"] else ()
        momentum = ("momentum_buffer",) if group["momentum"] else ()
        return ("square_avg", *centered, *momentum)

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Tensor]],
        step: int,
    ) -> None:
        settings = {
            name: group[name] for name in ("lr", "alpha", "eps", "weight_decay", "maximize")
        }
        if group["momentum"]:
            settings["momentum"] = group["momentum"]
        update = _UPDATES[bool(group["centered"]), bool(group["momentum"])]
        update(params, grads, *state.values(), step=step, **settings)
