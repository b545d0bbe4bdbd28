"""The smaller and the larger of numbers, where PyTorch has names of its own for them."""

from __future__ import annotations

from typing import NamedTuple

from tilewright import _core
from tilewright._core import Tensor
from tilewright.other_names import other_names


class AminmaxResult(NamedTuple):
    """What `aminmax` gives."""

    min: Tensor
    max: Tensor


@other_names
def aminmax(x: Tensor, *, axis: int | None = None, keepdims: bool = False) -> AminmaxResult:
    """Smallest and largest of all elements, or along an axis.

    Raises ValueError where there are none.

    >>> import tilewright as tw
    >>> [y.item() for y in tw.aminmax(tw.asarray([3, 1, 2]))]
    [1, 3]
    """
    return AminmaxResult(
        _core.min(x, axis=axis, keepdims=keepdims), _core.max(x, axis=axis, keepdims=keepdims)
    )


@other_names
def fmax(x1: Tensor, x2: Tensor) -> Tensor:
    """Larger of two; of a NaN and a number the number. Of equal ones x1 has the gradient."""
    return _core.where(_core.logical_or(x1 >= x2, _core.not_equal(x2, x2)), x1, x2)


@other_names
def fmin(x1: Tensor, x2: Tensor) -> Tensor:
    """Smaller of two; of a NaN and a number the number. Of equal ones x1 has the gradient."""
    return _core.where(_core.logical_or(x1 <= x2, _core.not_equal(x2, x2)), x1, x2)
