"""Tensors as linear maps between tensors: some of their axes are rows, the others columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tilewright as tw
from tilewright import Tensor
from tilewright.linalg.checks import check_floats, shape_of
from tilewright.linalg.decompositions import inv, solve


def tensorinv(a: Tensor, /, ind: int = 2) -> Tensor:
    """The tensor whose `tensordot` with a over its first `ind` axes leaves others as they are.

    Shapes: a whose first ind axes have as many elements as the others; the result has those first.
    Types: float32, float64, complex. Result: the same type.
    Raises LinAlgError for a singular map, ValueError for other shapes and an ind below 1, TypeError
    for other types.
    Source: PyTorch's torch.linalg.tensorinv.

    >>> import tilewright as tw
    >>> tw.linalg.tensorinv(tw.eye(6).reshape(6, 2, 3), ind=1).shape
    (2, 3, 6)
    """
    check_floats("tensorinv", a)
    if ind < 1:
        raise ValueError(f"tensorinv: ind must be at least 1, got {ind}")
    rows, columns = a.shape[:ind], a.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise ValueError(f"tensorinv: {rows} and {columns} of {shape_of(a)} differ in elements")
    return inv(a.reshape((math.prod(rows), -1))).reshape((*columns, *rows))


def tensorsolve(a: Tensor, b: Tensor, /, dims: Sequence[int] | None = None) -> Tensor:
    """The x with `tensordot(a, x, x.ndim)` equal to b; `dims` of a are moved to its end before.

    Shapes: a whose first b.ndim axes have b's shape and whose others have as many elements, which
    are the result's axes.
    Types: float32, float64, complex. Result: the common type.
    Raises LinAlgError for a singular map, ValueError for other shapes, TypeError for other types.
    Source: PyTorch's torch.linalg.tensorsolve.

    >>> import tilewright as tw
    >>> tw.linalg.tensorsolve(tw.eye(6).reshape(2, 3, 6) * 2, tw.ones(2, 3)).tolist()
    [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    """
    check_floats("tensorsolve", a)
    check_floats("tensorsolve", b)
    if dims is not None:
        a = tw.moveaxis(a, tuple(dims), tuple(range(a.ndim - len(dims), a.ndim)))
    shape = a.shape[b.ndim :]
    if math.prod(shape) != b.size or a.size != b.size**2:
        raise ValueError(f"tensorsolve: a of {shape_of(a)} does not fit b of {shape_of(b)}")
    return solve(a.reshape((b.size, b.size)), b.reshape((b.size,))).reshape(shape)
