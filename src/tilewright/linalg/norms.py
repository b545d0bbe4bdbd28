"""Norms of vectors and matrices, and what follows from singular values."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright._compat.argument_names import other_names
from tilewright.linalg.checks import axis_of, check_floats, check_matrices, shape_of
from tilewright.linalg.decompositions import LinAlgError, eigvalsh, inv, least_of, svdvals

_Axes = int | Sequence[int] | None
# What is summed in its own type, and needs no further step.
_WIDE = (tw.float32, tw.float64)
# What is summed in float32.
_NARROW = (tw.float16, tw.bfloat16)


@other_names
def vector_norm(x: Tensor, /, ord: float = 2, axis: _Axes = None, keepdims: bool = False) -> Tensor:
    """(Sum of abs(x) ** ord) ** (1 / ord) along axes, or of all elements.

    inf is the largest, -inf the smallest absolute value, 0 counts what is not 0. The gradient where
    a norm is 0 is 0, and so is that of an element 0 of orders below 1. float16 and bfloat16 are
    summed in float32. Of no elements the norm is 0, but of order -inf there is none: ValueError.

    Shapes: x of any shape; the result lacks the axes, or has them with extent 1 where keepdims.
    Types: floating, complex. Result: the same type, of complex numbers that of their parts.
    Raises ValueError for no elements of order -inf, IndexError for an axis out of range,
    TypeError for other types.
    Source: Array API standard 2024.12, linalg.vector_norm.
    """
    one_axis = axis is None or type(axis) is int
    if ord == 2 and one_axis and isinstance(x, Tensor):
        if x.dtype in _WIDE:
            return tw.l2_norm(x, axis=axis, keepdims=keepdims)
        if x.dtype in _NARROW:
            return tw.l2_norm(x, axis=axis, keepdims=keepdims, dtype=tw.float32).astype(x.dtype)
    axes = _checked_axes(axis)
    wide = tw.float32 if x.dtype in _NARROW else x.dtype
    if wide == x.dtype:
        check_floats("vector_norm", x, anywhere=True)
    if ord == 2 and x.is_complex():
        return _of_complex(x, axes, keepdims)
    if ord in (1, 2) and not x.is_complex():
        of = tw.l1_norm if ord == 1 else tw.l2_norm
        norm = of(x, axis=axes, keepdims=keepdims, dtype=wide)
    else:
        norm = _of_magnitudes(tw.abs(x.astype(wide)), ord, axes, keepdims)
    return norm if wide == x.dtype else norm.astype(x.dtype)


@other_names
def matrix_norm(
    x: Tensor,
    /,
    ord: float | str | None = "fro",
    axis: Sequence[int] = (-2, -1),
    keepdims: bool = False,
) -> Tensor:
    """Norm of the matrices in two axes, the last ones by default.

    "fro" (or None) is the root of the sum of squares, "nuc" the sum of singular values, 2 and -2
    the largest and smallest of them; 1 and -1 the largest and smallest sum of absolute values of a
    column, inf and -inf of a row. Raises ValueError for others.

    Shapes: x (..., n, m) for the two axes; the result lacks them, or has them with extent 1
    where keepdims.
    Types: float32, float64, complex. Result: the same type, of complex numbers that of their
    parts.
    Raises ValueError for fewer than two axes and for one axis twice, TypeError for other types.
    Source: Array API standard 2024.12, linalg.matrix_norm.
    """
    check_matrices("matrix_norm", x, anywhere=True)
    if tuple(axis) != (-2, -1):
        return norm(x, "fro" if ord is None else ord, axis=axis, keepdims=keepdims)
    if ord in ("fro", None):
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        values = svdvals(x)
        of = tw.sum if ord == "nuc" else _largest if ord == 2 else tw.min
        result = of(values, axis=-1)
        return tw.expand_dims(tw.expand_dims(result, -1), -1) if keepdims else result
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError(
            f"matrix_norm: ord is 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}"
        )
    assert isinstance(ord, (int, float))
    along, across = (-2, -1) if abs(ord) == 1 else (-1, -2)
    sums = tw.sum(tw.abs(x), axis=along, keepdims=True)
    result = (_largest if ord > 0 else tw.min)(sums, axis=across, keepdims=True)
    return result if keepdims else tw.squeeze(result, axis=(-2, -1))


@other_names
def norm(
    x: Tensor, /, ord: float | str | None = None, axis: _Axes = None, keepdims: bool = False
) -> Tensor:
    """Norm of a vector (one axis), of a matrix (two axes and an `ord`), or of all elements.

    Shapes: x of any shape; the result lacks the axes, or has them with extent 1 where keepdims.
    Types: float32, float64, complex. Result: the same type, of complex numbers that of their
    parts.
    Raises ValueError for an ord that the axes do not allow, TypeError for other types.
    Source: PyTorch's torch.linalg.norm.
    """
    check_floats("norm", x, anywhere=True)
    if isinstance(axis, int) or (axis is None and (ord is None or x.ndim < 2)):
        return _of_vectors(x, ord, axis, keepdims)
    axes = tuple(range(x.ndim)) if axis is None else tuple(axis)
    if len(axes) == 1 or ord is None:
        return _of_vectors(x, ord, axes, keepdims)
    if len(axes) != 2:
        raise ValueError(f"norm: ord {ord!r} is for one axis or two, got {len(axes)}")
    places = [axis_of("norm", each, x) for each in axes]
    rest = [i for i in range(x.ndim) if i not in places]
    if len({*places}) < 2:
        raise ValueError(f"norm: repeated axes: {axes}")
    result = matrix_norm(tw.permute_dims(x, (*rest, *places)), ord=ord)
    for i in sorted(places) if keepdims else ():
        result = tw.expand_dims(result, i)
    return result


def matrix_rank(
    x: Tensor,
    /,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    hermitian: bool = False,
) -> Tensor:
    """How many singular values are above atol and above rtol times the largest, as int64.

    rtol is the larger size of the matrix times the distance from 1 to the next number by default,
    and 0 where there is an atol. Of Hermitian matrices only the lower triangle is read.

    Shapes: x (..., n, m); the result is (...).
    Types: float32, float64, complex. Result: int64.
    Raises ValueError for fewer than two axes, TypeError for other types.
    Source: Array API standard 2024.12, linalg.matrix_rank.
    """
    check_matrices("matrix_rank", x, square=hermitian)
    with tw.no_grad():
        values = tw.abs(eigvalsh(x)) if hermitian else svdvals(x)
        if values.shape[-1] == 0:
            return tw.zeros(x.shape[:-2], dtype=tw.int64)
        least = tw.expand_dims(least_of(x, tw.max(values, axis=-1), atol, rtol), -1)
        return tw.sum(values > least, axis=-1, dtype=tw.int64)


def cond(x: Tensor, /, p: float | str | None = None) -> Tensor:
    """Condition number: the norm times the inverse's; by singular values for None, 2 and -2.

    Infinite for a matrix that has no inverse.

    Shapes: x (..., n, m), square unless by singular values; the result is (...).
    Types: float32, float64, complex. Result: the same type, of complex numbers that of their
    parts.
    Raises ValueError for other shapes and another p, TypeError for other types.
    Source: PyTorch's torch.linalg.cond.
    """
    check_matrices("cond", x)
    if p in (None, 2, -2):
        values = svdvals(x)
        largest, smallest = tw.max(values, axis=-1), tw.min(values, axis=-1)
        ratio = smallest / largest if p == -2 else largest / smallest
        return tw.where(largest == 0, math.inf, ratio)
    check_matrices("cond", x, square=True)
    try:
        return matrix_norm(x, ord=p) * matrix_norm(inv(x), ord=p)
    except LinAlgError:
        singular = tw.linalg.inv_ex(x).info != 0
    regular = tw.where(singular[..., None, None], tw.eye(x.shape[-1], dtype=x.dtype), x)
    product = matrix_norm(regular, ord=p) * matrix_norm(inv(regular), ord=p)
    return tw.where(singular, math.inf, product)


def _of_vectors(x: Tensor, ord: float | str | None, axis: _Axes, keepdims: bool) -> Tensor:
    if isinstance(ord, str):
        raise ValueError(f"norm: {ord!r} is a norm of matrices: give two axes")
    return vector_norm(x, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord)


def _largest(size: Tensor, axis: _Axes, keepdims: bool = False) -> Tensor:
    """Of nothing 0, the norm that adds nothing."""
    if size.size > 0:
        return tw.max(size, axis=axis, keepdims=keepdims)
    return tw.sum(size, axis=axis, keepdims=keepdims)


def _checked_axes(axis: _Axes) -> int | tuple[int, ...] | None:
    if axis is None:
        return None
    several = isinstance(axis, (tuple, list))
    each: tuple[Any, ...] = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    if not all(hasattr(place, "__index__") and not isinstance(place, bool) for place in each):
        raise TypeError(
            f"vector_norm: axis must be an int, a sequence of ints or None, got {axis!r}"
        )
    places = tuple(operator.index(place) for place in each)
    return places if several else places[0]


def _of_magnitudes(size: Tensor, ord: float, axes: _Axes, keepdims: bool) -> Tensor:
    if math.isinf(ord):
        return (_largest if ord > 0 else tw.min)(size, axis=axes, keepdims=keepdims)
    if ord == 0:
        return tw.l0_norm(size, axis=axes, keepdims=keepdims)
    if ord == 1:
        return tw.sum(size, axis=axes, keepdims=keepdims)
    return tw._core.power_norm(size, float(ord), axis=axes, keepdims=keepdims)


def _of_complex(x: Tensor, axes: _Axes, keepdims: bool) -> Tensor:
    """The root of the squares of both parts, which lie along one axis more."""
    places = range(x.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    rank = max(x.ndim, 1)  # a number has an axis 0, of its one element
    for axis in places:
        if not -rank <= axis < rank:
            raise IndexError(f"vector_norm: axis {axis} is out of range for {shape_of(x)}")
    both = (*(axis % rank for axis in places if x.ndim), x.ndim)
    norm = tw.l2_norm(tw.view_as_real(x), axis=both, keepdims=keepdims)
    return tw.squeeze(norm, axis=-1) if keepdims else norm
