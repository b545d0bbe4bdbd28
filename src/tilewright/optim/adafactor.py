"""Adafactor."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.optimizer import Optimizer, state_dtype
from tilewright.optim.settings import (
    Group,
    check_finite,
    check_flag,
    check_not_negative,
    check_number,
)


class Adafactor(Optimizer):
    """Steps by the gradient over the root of its mean square, which of matrices is a product.

    Of parameters with two axes or more the means along rows and along columns are kept alone, whose
    product by the mean of all stands for the whole. An update is divided by its root mean square
    where that is above `d`, and scaled by that of the parameter, or eps[1] where it is less, times
    min(lr, 1 / sqrt(step)). Means count the step's square step^beta2_decay. eps[0] is the least
    root, by default the distance from 1 to the next number of the parameter's type. Decay is
    decoupled.

    Source: Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost",
    2018, as torch.optim.Adafactor has it.

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.Adafactor([x], lr=0.5).step(); round(x.item(), 4)
    0.5
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative("Adafactor", group, "lr", "weight_decay")
        check_finite("Adafactor", group, "beta2_decay", "d")
        check_flag("Adafactor", group, "maximize")
        if group["beta2_decay"] > 0:
            raise ValueError(f"Adafactor: beta2_decay is at most 0, got {group['beta2_decay']}")
        if group["d"] < 1:
            raise ValueError(f"Adafactor: d is at least 1, got {group['d']}")
        eps = group["eps"]
        if not isinstance(eps, (tuple, list)) or len(eps) != 2:
            raise ValueError(f"Adafactor: eps are a number or None, and a number, got {eps!r}")
        for each in (0.0 if eps[0] is None else eps[0], eps[1]):
            check_number("Adafactor", "eps", each)
            if each < 0:
                raise ValueError(f"Adafactor: eps must not be negative, got {tuple(eps)}")

    def state_names(self, group: Group) -> tuple[str, ...]:
        return ("row_var", "col_var", "variance")

    def names_for(self, group: Group, param: Tensor) -> tuple[str, ...]:
        return ("row_var", "col_var") if param.ndim > 1 else ("variance",)

    def new_state(self, name: str, group: Group, param: Tensor) -> Tensor:
        shape = list(param.shape)
        if name != "variance":
            shape[-1 if name == "row_var" else -2] = 1
        return tw.zeros(shape, dtype=state_dtype(param), device=param.device)

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Any]],
        step: int,
    ) -> None:
        with tw.no_grad():
            for param, grad, *means in zip(params, grads, *state.values(), strict=True):
                if param.size:
                    _update(group, param, grad, means, step)


def _update(group: Group, param: Tensor, grad: Tensor, means: list[Any], step: int) -> None:
    row, column, variance = means
    least, least_size = group["eps"]
    if least is None:
        least = tw.finfo(param.dtype).eps
    g, x = grad.astype(state_dtype(param)), param.astype(state_dtype(param))
    g = -g if group["maximize"] else g
    share = float(step) ** group["beta2_decay"]
    if variance is not None:
        estimate = variance.lerp_(g.square(), share)
    else:
        row.lerp_(g.square().mean(axis=-1, keepdims=True), share)
        column.lerp_(g.square().mean(axis=-2, keepdims=True), share)
        estimate = row @ column / row.mean(axis=-2, keepdims=True).clip(least)
    along = g * estimate.clip(least * least).rsqrt()
    size = _at_least(least_size, _root_mean_square(x))
    size = size / _at_least(1.0, _root_mean_square(along) / group["d"])
    rate = min(group["lr"], 1 / math.sqrt(step))
    kept = x * (1 - group["lr"] * group["weight_decay"])
    param.copy_(kept - along * (size * rate))


def _root_mean_square(x: Tensor) -> Tensor:
    return tw.linalg.vector_norm(x) / math.sqrt(x.size)


def _at_least(least: float, x: Tensor) -> Tensor:
    """The larger of both, and of NaN `least`: one bad element is not to spread to all."""
    return tw.where(x >= least, x, least)
