"""Where elements are, as indices of axes, and what lies there."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright import _core
from tilewright._compat.argument_names import other_names
from tilewright._core import Tensor


@other_names
def argwhere(x: Tensor) -> Tensor:
    """The indices of the elements that are not 0, a row for each (n, x.ndim), as int64.

    Reads how many there are, so a capture refuses it.

    Shapes: x of any shape; the result is (n, x.ndim).
    Types: all. Result: int64.
    Raises TypeError for what is no tensor.
    Source: PyTorch's torch.argwhere.

    >>> import tilewright as tw
    >>> tw.argwhere(tw.asarray([[0, 5], [7, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"argwhere: x must be a Tensor, got {type(x).__name__}")
    if x.ndim == 0:
        return _core.zeros((int(bool(x != 0)), 0), dtype=_core.int64)
    return _core.stack(list(_core.nonzero(x)), axis=1)


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The indices (int64) along each axis of elements of the flat tensor of a shape.

    Raises ValueError for an index out of range; reads them for that.

    Shapes: indices of any shape, which every result has.
    Types: integer. Result: int64.
    Raises TypeError for indices that are no integers.
    Source: PyTorch's torch.unravel_index.

    >>> import tilewright as tw
    >>> [y.tolist() for y in tw.unravel_index(tw.asarray([0, 5]), (2, 3))]
    [[0, 1], [0, 2]]
    """
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == _core.bool:
        raise TypeError(f"unravel_index: needs integers, got {indices.dtype}")
    count = math.prod(extents)
    if indices.size and not -count <= int(indices.min()) <= int(indices.max()) < count:
        raise ValueError(f"unravel_index: an index is out of range for {count} elements")
    flat = indices.astype(_core.int64) % max(count, 1)
    found = []
    for extent in reversed(extents):
        found.append(flat % max(extent, 1))
        flat = flat // max(extent, 1)
    return tuple(reversed(found))


@other_names
def take_along_dim(x: Tensor, indices: Tensor, axis: int | None = None) -> Tensor:
    """`take_along_axis` by PyTorch's name: without an axis, elements of the flat tensor.

    Shapes: x (..., n, ...), indices of as many dimensions; the result has indices' extent along
    the axis.
    Types: all. Result: the same type.
    Raises IndexError for indices out of range or that are no integers, ValueError for other
    shapes.
    Source: PyTorch's torch.take_along_dim.
    """
    if axis is None:
        return _core.take_along_axis(x.reshape(-1), indices.reshape(-1), axis=0)
    return _core.take_along_axis(x, indices, axis=axis)
