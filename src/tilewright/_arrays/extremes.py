"""The smaller, the larger and the most frequent of numbers, by names that PyTorch has for them."""

from __future__ import annotations

import operator
from typing import NamedTuple

from tilewright import _core
from tilewright._compat.argument_names import other_names
from tilewright._core import Tensor, ValuesAndIndices


class AminmaxResult(NamedTuple):
    """What `aminmax` gives."""

    min: Tensor
    max: Tensor


@other_names
def aminmax(x: Tensor, *, axis: int | None = None, keepdims: bool = False) -> AminmaxResult:
    """Smallest and largest of all elements, or along an axis.

    Raises ValueError where there are none.

    Shapes: x of any shape; both results lack the axis, or have it with extent 1 where keepdims.
    Types: bool, integer, floating. Result: the same type.
    Raises IndexError for an axis out of range, TypeError for complex numbers.
    Source: PyTorch's torch.aminmax.

    >>> import tilewright as tw
    >>> [y.item() for y in tw.aminmax(tw.asarray([3, 1, 2]))]
    [1, 3]
    """
    return AminmaxResult(
        _core.min(x, axis=axis, keepdims=keepdims), _core.max(x, axis=axis, keepdims=keepdims)
    )


@other_names
def fmax(x1: Tensor, x2: Tensor) -> Tensor:
    """Larger of two; of a NaN and a number the number. Of equal ones x1 has the gradient.

    Shapes: x1 and x2 broadcast; the result has their common shape.
    Types: bool, integer, floating. Result: the same type.
    Raises ValueError for shapes that do not broadcast, TypeError for complex numbers.
    Source: PyTorch's torch.fmax.
    """
    return _core.where(_core.logical_or(x1 >= x2, _core.not_equal(x2, x2)), x1, x2)


@other_names
def fmin(x1: Tensor, x2: Tensor) -> Tensor:
    """Smaller of two; of a NaN and a number the number. Of equal ones x1 has the gradient.

    Shapes: x1 and x2 broadcast; the result has their common shape.
    Types: bool, integer, floating. Result: the same type.
    Raises ValueError for shapes that do not broadcast, TypeError for complex numbers.
    Source: PyTorch's torch.fmin.
    """
    return _core.where(_core.logical_or(x1 <= x2, _core.not_equal(x2, x2)), x1, x2)


@other_names
def mode(x: Tensor, axis: int = -1, keepdims: bool = False) -> ValuesAndIndices:
    """The most frequent element along an axis, and the last place where it is (int64).

    Of elements that are as frequent the smallest; NaN differ from each other. Gradients go to that
    place. Raises IndexError for an axis out of range, ValueError over no elements, TypeError for
    complex numbers.

    Shapes: x (..., n, ...); values and indices lack the axis, or have it with extent 1 where
    keepdims.
    Types: bool, integer, floating. Result: values of the same type, indices of int64.
    Source: PyTorch's torch.mode.

    >>> import tilewright as tw
    >>> value, index = tw.mode(tw.asarray([3, 1, 2, 1, 3]))
    >>> value.item(), index.item()
    (1, 3)
    """
    if x.is_complex():
        raise TypeError("mode: complex numbers have no order")
    axis = operator.index(axis)
    if x.ndim == 0:
        return _core.max_with_indices(x, axis=axis, keepdims=keepdims)
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"mode: axis {axis} is out of range for {x.ndim} dimensions")
    if x.shape[axis] == 0:
        raise ValueError(f"mode: no elements along axis {axis} of {x.shape}")
    rows, order = _core.sort_with_indices(_core.moveaxis(x.detach(), axis, -1))
    places = _core.broadcast_to(_core.arange(rows.shape[-1], device=x.device), rows.shape)
    begins = _core.concat(
        [_core.ones_like(rows[..., :1], dtype=_core.bool), rows[..., 1:] != rows[..., :-1]], axis=-1
    )
    lengths = places - _core.cummax(_core.where(begins, places, 0), -1).values
    ends = _core.argmax(lengths, axis=-1, keepdims=True)
    indices = _core.moveaxis(_core.take_along_axis(order, ends, axis=-1), -1, axis)
    values = _core.take_along_axis(x, indices, axis=axis)
    if not keepdims:
        values, indices = values.squeeze(axis), indices.squeeze(axis)
    return ValuesAndIndices((values, indices))
