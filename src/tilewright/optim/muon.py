"""Muon."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.optimizer import Optimizer, state_dtype
from tilewright.optim.settings import Group, check_flag, check_not_negative, check_number

_RATES = (None, "original", "match_rms_adamw")


class Muon(Optimizer):
    """Steps along a running mean of the gradient made orthogonal, for weights of hidden layers.

    Parameters are matrices; biases, embeddings and the last layer go to another optimizer, such as
    AdamW. The singular values of the mean are brought near 1 by a Newton-Schulz iteration in
    bfloat16: `ns_steps` times X becomes a X + (b A + c A A) X, where A = X X^T and a, b, c are the
    `ns_coefficients`. `adjust_lr_fn` scales the rate by the shape (m, n): "original", the default,
    by sqrt(max(1, m / n)), "match_rms_adamw" by 0.2 sqrt(max(m, n)), which takes AdamW's rates.
    Decay is decoupled.

    Source: Jordan, "Muon: an optimizer for hidden layers in neural networks", 2024.

    Shapes: parameters (m, n).
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type, ValueError for parameters of other ranks.

    >>> import tilewright as tw
    >>> w = tw.eye(2).requires_grad_()
    >>> (w * w).sum().backward()
    >>> tw.optim.Muon([w], lr=0.1).step(); 0.8 < w[0, 0].item() < 0.95
    True
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative("Muon", group, "lr", "weight_decay", "momentum", "eps")
        check_flag("Muon", group, "nesterov")
        coefficients = group["ns_coefficients"]
        if not isinstance(coefficients, (tuple, list)) or len(coefficients) != 3:
            raise ValueError(f"Muon: ns_coefficients are three numbers, got {coefficients!r}")
        for each in coefficients:
            check_number("Muon", "ns_coefficients", each)
        if not 0 <= operator.index(group["ns_steps"]) < 100:
            raise ValueError(f"Muon: ns_steps lie in [0, 100), got {group['ns_steps']}")
        if group["adjust_lr_fn"] not in _RATES:
            raise ValueError(
                f"Muon: adjust_lr_fn is one of {', '.join(map(repr, _RATES))}, got "
                f"{group['adjust_lr_fn']!r}"
            )
        for param in group["params"]:
            if param.ndim != 2:
                raise ValueError(f"Muon: parameters are matrices, got shape {param.shape}")

    def state_names(self, group: Group) -> tuple[str, ...]:
        return ("momentum_buffer",)

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Tensor]],
        step: int,
    ) -> None:
        momentum = group["momentum"]
        with tw.no_grad():
            for param, grad, buffer in zip(params, grads, state["momentum_buffer"], strict=True):
                wide = grad.astype(state_dtype(param))
                buffer.lerp_(wide, 1 - momentum)
                along = tw.lerp(wide, buffer, momentum) if group["nesterov"] else buffer
                along = _orthogonal(along, group).astype(wide.dtype)
                kept = param.astype(wide.dtype) * (1 - group["lr"] * group["weight_decay"])
                param.copy_(kept - _rate(group, param.shape) * along)


def _orthogonal(x: Tensor, group: Group) -> Tensor:
    a, b, c = group["ns_coefficients"]
    high = x.shape[0] > x.shape[1]
    x = x.astype(tw.bfloat16)
    x = x.mT if high else x
    x = x / tw.linalg.vector_norm(x).clip(group["eps"])
    for _ in range(group["ns_steps"]):
        gram = x @ x.mT
        x = tw.addmm(x, tw.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if high else x


def _rate(group: Group, shape: tuple[int, ...]) -> float:
    m, n = shape
    if group["adjust_lr_fn"] == "match_rms_adamw":
        return float(group["lr"]) * 0.2 * math.sqrt(max(m, n))
    return float(group["lr"]) * math.sqrt(max(1.0, m / n))
