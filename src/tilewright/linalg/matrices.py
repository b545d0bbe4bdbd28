"""Matrices as tensors: their axes, diagonals and powers."""

from __future__ import annotations

import operator

import tilewright as tw
from tilewright import Tensor
from tilewright._compat.argument_names import other_names
from tilewright.linalg.checks import shape_of
from tilewright.linalg.decompositions import inv


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The same as `tilewright.matmul`.

    Shapes: x1 (..., n, k), x2 (..., k, m); the result is (..., n, m).
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for inner sizes that differ, TypeError for bool and for operands that are
    no tensors.
    Source: Array API standard 2024.12, linalg.matmul.
    """
    return tw.matmul(x1, x2)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Rows and columns exchanged, without a copy: shape (..., n, m) to (..., m, n).

    Shapes: x (..., n, m); the result is (..., m, n).
    Types: all. Result: the same type.
    Raises ValueError for fewer than two axes.
    Source: Array API standard 2024.12, linalg.matrix_transpose.
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: a matrix is needed, got {shape_of(x)}")
    return tw.permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def diagonal(x: Tensor, /, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Elements (i, i + offset) of two axes, the last ones by default: (..., n, m) to (..., size).

    Empty where the offset leads out of the matrix. Raises ValueError for less than two axes.

    Shapes: x (..., n, m) for the two axes; the result is (..., size of the diagonal).
    Types: all. Result: the same type.
    Raises IndexError for an axis out of range.
    Source: Array API standard 2024.12, linalg.diagonal.
    """
    if x.ndim < 2:
        raise ValueError(f"diagonal: a matrix is needed, got {shape_of(x)}")
    if (dim1, dim2) != (-2, -1):
        x = tw.moveaxis(x, (dim1, dim2), (-2, -1))
    rows, columns = x.shape[-2:]
    offset = min(max(operator.index(offset), -rows), columns)
    first = max(0, -offset)
    count = max(0, min(rows - first, columns - max(0, offset)))
    places = tw.arange(count, dtype=tw.int64)
    return x[..., places + first, places + max(0, offset)]


def trace(x: Tensor, /, *, offset: int = 0, dtype: tw.dtype | None = None) -> Tensor:
    """Sum of a diagonal of the last two axes; narrow whole numbers are summed in 64 bits.

    Shapes: x (..., n, m); the result is (...).
    Types: all. Result: the same type, of integers int64 or uint64, of bool int64.
    Raises ValueError for fewer than two axes.
    Source: Array API standard 2024.12, linalg.trace.
    """
    return tw.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


@other_names
def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """x multiplied by itself n times, by squaring; of a negative n the inverse's power.

    Raises ValueError for matrices that are not square, `LinAlgError` for a negative power of a
    singular one.

    Shapes: x (..., n, n); so is the result.
    Types: integer, floating, complex. Result: the common type.
    Raises TypeError for bool and for an n that is no integer.
    Source: Array API standard 2024.12, linalg.matrix_power.
    """
    count = operator.index(n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_power: square matrices are needed, got {shape_of(x)}")
    if count == 0:
        return tw.broadcast_to(tw.eye(x.shape[-1], dtype=x.dtype), x.shape).copy()
    square, result = (x if count > 0 else inv(x)), None
    count = abs(count)
    while True:
        if count % 2:
            result = square if result is None else tw.matmul(result, square)
        count //= 2
        if not count:
            assert result is not None
            return result
        square = tw.matmul(square, square)


def vander(x: Tensor, /, *, N: int | None = None) -> Tensor:  # noqa: N803  (PyTorch's name)
    """The powers 0, 1, ..., N - 1 of each element as a row; N is n by default.

    Shapes: x (..., n), a number as one of length 1; the result is (..., n, N).
    Types: integer, floating, complex. Result: the same type, of integers int64 or uint64.
    Raises ValueError for an N below 2, TypeError for other types.
    Source: PyTorch's torch.linalg.vander.

    >>> import tilewright as tw
    >>> tw.linalg.vander(tw.asarray([2, 3]), N=3).tolist()
    [[1, 2, 4], [1, 3, 9]]
    """
    if not isinstance(x, Tensor) or x.dtype == tw.bool:
        raise TypeError("vander: takes tensors of numbers")
    x = x if x.ndim else x.reshape((1,))
    count = x.shape[-1] if N is None else operator.index(N)
    if N is not None and count < 2:
        raise ValueError(f"vander: N must be at least 2, got {N}")
    rows = tw.expand_dims(x, -1).expand(*x.shape, max(count - 1, 0))
    return tw.cumprod(rows, axis=-1, include_initial=True)[..., :count]
