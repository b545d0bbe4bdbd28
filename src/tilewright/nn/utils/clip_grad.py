"""Limits for gradients: one native pass for their norm, one to scale them.

`foreach`, PyTorch's choice between ways of computing, is taken and changes nothing.

Source: R. Pascanu, T. Mikolov and Y. Bengio, "On the difficulty of training recurrent neural
networks", ICML 2013.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator

import tilewright as tw
from tilewright import Tensor

# As PyTorch has it: a norm of 0 divides nothing by 0.
_EPS = 1e-6


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements of all tensors as one vector, 0-d; 0 for no tensors.

    The same bits for any number of threads. Raises RuntimeError for a norm that is inf or NaN where
    `error_if_nonfinite`.

    Shapes: tensors of any shapes; the result has no dimensions.
    Types: floating. Result: float32, of float64 float64.
    Source: PyTorch's torch.nn.utils.get_total_norm.

    >>> import tilewright as tw
    >>> tw.nn.utils.get_total_norm([tw.asarray([3.0]), tw.asarray([[4.0]])]).item()
    5.0
    """
    return _total_norm(
        "get_total_norm", _listed("get_total_norm", tensors), norm_type, error_if_nonfinite
    )


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients in place so that their norm together is at most `max_norm`.

    Returns the norm that they had. Parameters without a gradient do not count. Raises RuntimeError,
    before anything is changed, for a norm that is inf or NaN where `error_if_nonfinite`, ValueError
    for a max_norm below 0. Warns of an iterator that is at its end.

    Shapes: parameters of any shapes; the result has no dimensions.
    Types: floating. Result: float32, of float64 float64.
    Source: PyTorch's torch.nn.utils.clip_grad_norm_; Pascanu et al. (2013).

    >>> import tilewright as tw
    >>> x = tw.zeros((2,), requires_grad=True); x.grad = tw.asarray([3.0, 4.0])
    >>> tw.nn.utils.clip_grad_norm_([x], 1.0).item(), [round(v, 3) for v in x.grad.tolist()]
    (5.0, [0.6, 0.8])
    """
    limit = _limit("clip_grad_norm_: max_norm", max_norm)
    grads = _grads("clip_grad_norm_", parameters)
    total = _total_norm("clip_grad_norm_", grads, norm_type, error_if_nonfinite)
    _scale(grads, limit, total)
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scales all gradients in place by max_norm / total_norm, where that is below 1.

    Shapes: parameters of any shapes, total_norm ().
    Types: floating. Result: None.
    Raises TypeError for parameters that are no tensors, ValueError for a limit below 0.
    Source: PyTorch's torch.nn.utils.clip_grads_with_norm_.
    """
    limit = _limit("clip_grads_with_norm_: max_norm", max_norm)
    _scale(_grads("clip_grads_with_norm_", parameters), limit, total_norm)


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Limits all elements of all gradients in place to [-clip_value, clip_value]; NaN stays.

    Shapes: parameters of any shapes.
    Types: floating. Result: None.
    Raises TypeError for parameters that are no tensors, ValueError for a limit below 0.
    Source: PyTorch's torch.nn.utils.clip_grad_value_.
    """
    limit = _limit("clip_grad_value_: clip_value", clip_value)
    _change(_grads("clip_grad_value_", parameters), limit, tw._core.clip_all)


def _total_norm(
    function: str, tensors: list[Tensor], norm_type: float, error_if_nonfinite: bool
) -> Tensor:
    if not tensors:
        return tw.zeros(())
    with tw.no_grad():
        total = tw._core.total_norm(tensors, ord=float(norm_type))
    if error_if_nonfinite and not tw.isfinite(total).item():
        raise RuntimeError(
            f"{function}: the norm of {len(tensors)} gradients is {total.item()}; pass "
            "error_if_nonfinite=False to scale by it all the same"
        )
    return total


def _scale(grads: list[Tensor], limit: float, total: Tensor) -> None:
    with tw.no_grad():
        factor = tw.minimum(limit / (total + _EPS), 1.0)
    _change(grads, factor, tw._core.scale_all)


def _change(grads: list[Tensor], number: float | Tensor, change: Callable[..., None]) -> None:
    with tw.no_grad():
        if grads:
            change(grads, number=number)


def _limit(what: str, value: float) -> float:
    """The number; below 0 it would turn gradients round."""
    limit = float(value)
    if not limit >= 0:
        raise ValueError(f"{what} must be at least 0, got {value}")
    return limit


def _grads(function: str, parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    grads = [parameter.grad for parameter in _listed(function, parameters)]
    return [grad for grad in grads if grad is not None]


def _listed(function: str, tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    for x in listed:
        if not isinstance(x, Tensor):
            raise TypeError(f"expected tensors, got {type(x).__name__}")
    if not listed and isinstance(tensors, Iterator):
        warnings.warn(
            f"{function}: the iterator gives no tensors, so that nothing is done; one that was "
            "used before is at its end: give model.parameters() anew, or a list",
            stacklevel=4,
        )
    return listed
