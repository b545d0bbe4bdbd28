"""Small functions of PyTorch's that are no records."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import tilewright as tw
from tilewright import Tensor
from tilewright._compat.argument_names import other_names


@other_names
def isreal(x: Tensor) -> Tensor:
    """Whether the imaginary part of each element is 0.

    Shapes: x of any shape; the result has it.
    Types: all. Result: bool.
    Raises TypeError for what is no tensor.
    Source: PyTorch's torch.isreal.
    """
    _check("isreal", x)
    if x.is_complex():
        return tw.imag(x) == 0
    return tw.ones_like(x, dtype=tw.bool)


def is_nonzero(x: Tensor) -> bool:
    """Whether the one element of a tensor is not 0. Raises ValueError for several or none.

    Shapes: x of one element.
    Types: all. Result: a bool of Python.
    Raises TypeError for what is no tensor.
    Source: PyTorch's torch.is_nonzero.
    """
    _check("is_nonzero", x)
    if x.size != 1:
        raise ValueError(f"is_nonzero: expected one element, got shape {x.shape}")
    return bool(x.item() != 0)


def msort(x: Tensor) -> Tensor:
    """Elements in rising order along the first axis.

    Shapes: x of any shape; the result has it.
    Types: bool, integer, floating. Result: the same type.
    Raises TypeError for complex numbers.
    Source: PyTorch's torch.msort.
    """
    return tw.sort(x, axis=0)


@other_names
def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose of matrices, x.mH.

    Shapes: x (..., m, n); the result is (..., n, m).
    Types: all. Result: the same type.
    Raises ValueError for fewer than 2 dimensions, TypeError for what is no tensor.
    Source: PyTorch's torch.adjoint.
    """
    _check("adjoint", x)
    if x.ndim < 2:
        raise ValueError(f"adjoint: needs at least 2 dimensions, got {x.shape}")
    return tw.conj(x.mT) if x.is_complex() else x.mT


@other_names
def ldexp(x: Tensor, y: Tensor | float) -> Tensor:
    """x times 2 to the power of y.

    Shapes: operands broadcast; the result has their common shape.
    Types: floating, complex; integers and bool become the default floating type. Result: the
    common type.
    Raises ValueError for shapes that do not broadcast, TypeError for what is no tensor.
    Source: PyTorch's torch.ldexp.
    """
    _check("ldexp", x)
    wide = x if x.is_floating_point() or x.is_complex() else x * 1.0
    if not isinstance(y, Tensor):
        return wide * float(2.0**y)
    return wide * tw.pow(2.0, y * 1.0 if _is_whole(y) else y)


@other_names
def mvlgamma(x: Tensor, p: int) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension p, for x > (p - 1) / 2.

    Shapes: x of any shape; the result has it.
    Types: floating; integers and bool become the default floating type. Result: the same type.
    Raises ValueError for p below 1, TypeError for complex numbers.
    Source: PyTorch's torch.mvlgamma.
    """
    _check("mvlgamma", x)
    if p < 1:
        raise ValueError(f"mvlgamma: p must be at least 1, got {p}")
    if x.is_complex():
        raise TypeError(f"mvlgamma: takes real numbers, got {x.dtype}")
    x = x if x.is_floating_point() else x * 1.0
    return p * (p - 1) / 4 * math.log(math.pi) + sum(
        (tw.lgamma(x - j / 2) for j in range(1, p)), tw.lgamma(x)
    )


def fill_diagonal_(x: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Writes a number to the elements whose indices are all the same, in place, and gives x.

    Raises RuntimeError for a leaf that requires grad while recording is on.

    Shapes: x of two axes or more, all of one extent where there are more than two; the result is x.
    Types: all. Result: the same type.
    Raises ValueError for other shapes and for wrap, TypeError for what is no tensor.
    Source: PyTorch's torch.Tensor.fill_diagonal_.

    >>> import tilewright as tw
    >>> tw.zeros(2, 3).fill_diagonal_(1.0).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    _check("fill_diagonal_", x)
    if x.ndim < 2 or (x.ndim > 2 and len({*x.shape}) > 1):
        raise ValueError(f"fill_diagonal_: needs two axes or equal extents, got {x.shape}")
    if wrap:
        raise ValueError("fill_diagonal_: wrap is not there: fill slices of x")
    places = tw.arange(min(x.shape), dtype=tw.int64, device=x.device)
    x[(places,) * x.ndim] = fill_value
    return x


def resolve_conj(x: Tensor) -> Tensor:
    """x itself: conjugates are computed at once here, not when they are next used.

    Shapes: x of any shape; the result has it.
    Types: all. Result: the same type.
    Raises TypeError for what is no tensor.
    Source: PyTorch's torch.resolve_conj.
    """
    _check("resolve_conj", x)
    return x


def split_with_sizes(x: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """`split` by extents. Raises what `split` does.

    Shapes: x (..., n, ...); each result has one of the sizes in place of n.
    Types: all. Result: the same type.
    Source: PyTorch's torch.split_with_sizes.
    """
    return tuple(tw.split(x, list(split_sizes), dim))


class FrexpResult(NamedTuple):
    """Numbers as mantissa * 2 ** exponent."""

    mantissa: Tensor
    exponent: Tensor


@other_names
def frexp(x: Tensor) -> FrexpResult:
    """x as mantissa * 2 ** exponent, exactly: 0.5 <= abs(mantissa) < 1.

    0, infinities and NaN are their own mantissas, with exponent 0. The gradient goes through the
    mantissa, whose slope is 2 ** -exponent.

    Shapes: x of any shape; both results have it.
    Types: floating. Results: the same type, and int32.
    Raises TypeError for other types.
    Source: PyTorch's torch.frexp.

    >>> import tilewright as tw
    >>> mantissa, exponent = tw.frexp(tw.asarray([6.0, -0.25]))
    >>> mantissa.tolist(), exponent.tolist()
    ([0.75, -0.5], [3, -1])
    """
    _check("frexp", x)
    if not x.is_floating_point():
        raise TypeError(f"frexp: floating numbers only, got {x.dtype}")
    wide = x if x.dtype == tw.float64 else x.astype(tw.float32)
    with tw.no_grad():
        size = tw.abs(wide)
        plain = tw.isfinite(size) & (size != 0)
        size = tw.where(plain, size, 1.0)
        near = tw.floor(tw.log2(size)) + 1  # one off where the logarithm is rounded to a whole one
        first, second = _two_powers(-near)
        scaled = size * first * second
        exponent = tw.where(scaled >= 1, near + 1, tw.where(scaled < 0.5, near - 1, near))
        exponent = tw.where(plain, exponent, 0.0)
        first, second = _two_powers(-exponent)
    return FrexpResult((wide * first * second).astype(x.dtype), exponent.astype(tw.int32))


@other_names
def index_reduce(
    x: Tensor, axis: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy of x with source[i] joined to x[index[i]] along an axis, as `scatter_reduce` joins.

    include_self=False leaves out x's own elements where there are others. Negative indices count
    from the end.

    Shapes: x (..., n, ...); index (m,) or (); source (..., m, ...); the result has x's shape.
    Types: all; source has x's, index an integer one. Result: the same type.
    Raises IndexError for an axis or indices out of range, ValueError for other shapes and for a
    reduce other than 'sum', 'prod', 'mean', 'amax' or 'amin', TypeError for other types.
    Source: PyTorch's torch.index_reduce.

    >>> import tilewright as tw
    >>> x, places = tw.asarray([1.0, 5.0]), tw.asarray([0, 0, 1])
    >>> tw.index_reduce(x, 0, places, tw.asarray([4.0, 2.0, 3.0]), "amax").tolist()
    [4.0, 5.0]
    """
    for each in (x, index, source):
        _check("index_reduce", each)
    if x.ndim == 0 and axis in (0, -1):
        taken = source.reshape((1,)) if source.size == 1 else source
        y = index_reduce(x.reshape((1,)), axis, index, taken, reduce, include_self=include_self)
        return y.reshape(())
    along = axis_of("index_reduce", axis, x)
    places = index.reshape((1,)) if index.ndim == 0 else index
    if places.ndim != 1:
        raise ValueError(f"index_reduce: index must have one dimension, got shape {index.shape}")
    needed = (*x.shape[:along], places.shape[0], *x.shape[along + 1 :])
    if tuple(source.shape) != needed:
        raise ValueError(f"index_reduce: source must have shape {needed}, got {source.shape}")
    shape = [1] * x.ndim
    shape[along] = places.shape[0]
    spread = tw.broadcast_to(places.reshape(shape), needed)
    return tw.scatter_reduce(x, along, spread, source, reduce, include_self=include_self)


@other_names
def diagonal_scatter(
    x: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """A copy of x whose `diagonal` is src.

    Shapes: x of two dimensions or more; src has the shape of x.diagonal(offset, dim1, dim2); the
    result has x's shape.
    Types: all; src has x's. Result: the same type.
    Raises IndexError for axes out of range, ValueError for one axis twice and for other shapes,
    TypeError for other types.
    Source: PyTorch's torch.diagonal_scatter.

    >>> import tilewright as tw
    >>> tw.diagonal_scatter(tw.zeros((2, 2)), tw.ones((1,)), 1).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    for each in (x, src):
        _check("diagonal_scatter", each)
    if src.dtype != x.dtype:
        raise TypeError(f"diagonal_scatter: src of {src.dtype} for x of {x.dtype}")
    y = x.clone()
    places = y.diagonal(offset, dim1, dim2)
    if places.shape != src.shape:
        raise ValueError(f"diagonal_scatter: src must have shape {places.shape}, got {src.shape}")
    places.copy_(src)
    return y


@other_names
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of x with elements of source at places of x, counted through x as if it had one axis.

    accumulate=True adds to what is there. Negative indices count from the end; which of several
    for one place stays is the last.

    Shapes: x of any shape, index and source of as many elements; the result has x's shape.
    Types: all; source has x's, index an integer one. Result: the same type.
    Raises IndexError for indices out of range, ValueError for other numbers of elements, TypeError
    for other types.
    Source: PyTorch's torch.Tensor.put.

    >>> import tilewright as tw
    >>> tw.put(tw.zeros((2, 2)), tw.asarray([3]), tw.ones((1,))).tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """
    for each in (x, index, source):
        _check("put", each)
    if index.size != source.size:
        raise ValueError(f"put: {index.size} indices for {source.size} elements of source")
    if source.dtype != x.dtype:
        raise TypeError(f"put: source of {source.dtype} for x of {x.dtype}")
    if index.dtype == tw.bool:
        raise TypeError("put: index must be of an integer type, got bool")
    flat = x.reshape((-1,)).index_put((index.reshape((-1,)),), source.reshape((-1,)), accumulate)
    return flat.reshape(x.shape)


def sum_to_size(x: Tensor, *size: Any) -> Tensor:
    """x summed to a shape that broadcasts to its own: what a broadcast's gradient is.

    Shapes: x of any shape; the result has the shape `size`, ints or a sequence of them.
    Types: all. Result: the same type, of integers int64 or uint64, of bool int64; where nothing is
    to be summed x itself.
    Raises ValueError for a shape that does not broadcast to x's, TypeError for what is no shape.
    Source: PyTorch's torch.Tensor.sum_to_size.

    >>> import tilewright as tw
    >>> tw.ones((2, 3)).sum_to_size(2, 1).tolist()
    [[3.0], [3.0]]
    """
    _check("sum_to_size", x)
    if not size:
        raise TypeError("sum_to_size: needs the size")
    given = size[0] if len(size) == 1 and isinstance(size[0], Sequence) else size
    shape = tuple(operator.index(extent) for extent in given)
    lead = x.ndim - len(shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(shape, x.shape[lead:], strict=True)):
        raise ValueError(f"sum_to_size: {shape} does not broadcast to {tuple(x.shape)}")
    axes = [i for i in range(x.ndim) if i < lead or shape[i - lead] != x.shape[i]]
    return tw.sum(x, axis=tuple(axes)).reshape(shape) if axes else x


def _two_powers(exponent: Tensor) -> tuple[Tensor, Tensor]:
    """Two powers of 2 with that product, which may itself be no number of the type."""
    half = tw.floor(exponent * 0.5)
    return tw.exp2(half), tw.exp2(exponent - half)


def axis_of(who: str, axis: int, x: Tensor) -> int:
    """Counted from 0; raises IndexError where there is no such axis."""
    if not -x.ndim <= operator.index(axis) < x.ndim:
        raise IndexError(f"{who}: axis {axis} is out of range for shape {tuple(x.shape)}")
    return axis % x.ndim


def _is_whole(x: Tensor) -> bool:
    return not (x.is_floating_point() or x.is_complex())


def _check(who: str, x: Any) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{who}: takes tensors, got {type(x).__name__}")
