"""What tensors hold: their different elements, and how many lie where."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import NamedTuple

from tilewright import _core
from tilewright._compat.argument_names import other_names
from tilewright._core import Tensor


class UniqueAllResult(NamedTuple):
    """What `unique_all` gives."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """What `unique_counts` gives."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """What `unique_inverse` gives."""

    values: Tensor
    inverse_indices: Tensor


class HistogramResult(NamedTuple):
    """What `histogram` gives."""

    hist: Tensor
    bin_edges: Tensor


def _check(x: object, function: str) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{function}: x must be a Tensor, got {type(x).__name__}")


def _starts(differs: Tensor, count: int) -> Tensor:
    """Where runs of equal elements begin, given whether each differs from the one before."""
    first = _core.ones((min(count, 1),), dtype=_core.bool, device=differs.device)
    return _core.nonzero(_core.concat([first, differs]))[0]


def _counts(starts: Tensor, count: int) -> Tensor:
    end = _core.full((min(count, 1),), count, dtype=_core.int64, device=starts.device)
    return _core.concat([starts[1:], end]) - starts


def _inverse(starts: Tensor, order: Tensor) -> Tensor:
    """Which run each element is in."""
    places = _core.arange(order.size, dtype=_core.int64, device=order.device)
    inverse = _core.empty_like(order)
    inverse[order] = _core.searchsorted(starts, places, right=True) - 1
    return inverse


def _is_complex(x: Tensor) -> bool:
    return x.dtype in (_core.complex64, _core.complex128)


def _order(flat: Tensor) -> Tensor:
    """The places of elements in order; complex numbers by real part, then by imaginary part.

    NaN come last, complex ones with either part.
    """
    if not _is_complex(flat):
        return _core.argsort(flat)
    order = _core.argsort(_core.imag(flat))
    first = _core.where(_core.isnan(flat), math.nan, _core.real(flat))
    return order[_core.argsort(first[order])]


def _sorted(x: Tensor) -> Tensor:
    flat = x.reshape((x.size,))
    return _core.take(flat, _order(flat.detach())) if _is_complex(flat) else _core.sort(flat)


def _runs(x: Tensor) -> tuple[Tensor, Tensor]:
    """The order of the flattened elements, and where runs of equal ones begin in it."""
    flat = x.detach().reshape((x.size,))
    order = _order(flat)
    ordered = _core.take(flat, order)
    return order, _starts(ordered[1:] != ordered[:-1], x.size)


# Elements from which counting takes less time than a sort, which needs fewer ops.
_MANY = 512
# Types of whole numbers that int64 holds.
_COUNTED = (
    _core.int8, _core.int16, _core.int32, _core.int64, _core.uint8, _core.uint16, _core.uint32,
)  # fmt: skip


def _tally(x: Tensor) -> tuple[Tensor, Tensor] | None:
    """The different elements and their counts, by one counter for each whole number in between."""
    if x.size < _MANY or x.dtype not in _COUNTED:
        return None
    flat = x.detach().reshape((x.size,))
    least, largest = int(_core.min(flat).item()), int(_core.max(flat).item())
    if largest - least >= x.size:
        return None
    counts = _core.bincount(flat.astype(_core.int64) - least)
    places = _core.nonzero(counts)[0]
    return (places + least).astype(x.dtype), _core.take(counts, places)


def unique_values(x: Tensor, /) -> Tensor:
    """The different elements of x in order (n,); NaN each on their own.

    Complex numbers are in order of their real parts, equal ones of their imaginary parts. Reads how
    many there are, so a capture refuses it.

    Shapes: x of any shape; the result is (n,).
    Types: all. Result: the same type.
    Raises TypeError for what is no tensor.
    Source: Array API standard 2024.12.

    >>> import tilewright as tw
    >>> tw.unique_values(tw.asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    _check(x, "unique_values")
    tally = _tally(x)
    if tally is not None:
        return tally[0]
    ordered = _sorted(x)
    return _core.take(ordered, _starts(ordered[1:] != ordered[:-1], x.size))


def unique_counts(x: Tensor, /) -> UniqueCountsResult:
    """The different elements of x in order (n,), and how often each is there (n,), int64.

    Order and NaN are those of `unique_values`.

    Shapes: x of any shape; both results are (n,).
    Types: all. Result: elements of the same type, indices and counts of int64.
    Raises TypeError for what is no tensor.
    Source: Array API standard 2024.12.
    """
    _check(x, "unique_counts")
    tally = _tally(x)
    if tally is not None:
        return UniqueCountsResult(*tally)
    ordered = _sorted(x)
    starts = _starts(ordered[1:] != ordered[:-1], x.size)
    return UniqueCountsResult(_core.take(ordered, starts), _counts(starts, x.size))


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    """The different elements of x in order (n,), and which of them each element is: int64, of x's
    shape.

    Order and NaN are those of `unique_values`.

    Shapes: x of any shape; the elements are (n,), the inverse has x's shape.
    Types: all. Result: elements of the same type, indices and counts of int64.
    Raises TypeError for what is no tensor.
    Source: Array API standard 2024.12.
    """
    values, _, inverse, _ = _all(x, "unique_inverse")
    return UniqueInverseResult(values, inverse)


def unique_all(x: Tensor, /) -> UniqueAllResult:
    """The different elements of x in order (n,), where in the flattened x each is first (n,), which
    of them each element is (of x's shape) and how often each is there (n,); all int64.

    Order and NaN are those of `unique_values`.

    Shapes: x of any shape; the results are (n,), but the inverse, of x's shape.
    Types: all. Result: elements of the same type, indices and counts of int64.
    Raises TypeError for what is no tensor.
    Source: Array API standard 2024.12.
    """
    return _all(x, "unique_all")


def _all(x: Tensor, function: str) -> UniqueAllResult:
    _check(x, function)
    order, starts = _runs(x)
    indices = _core.take(order, starts)
    values = _core.take(x.reshape((x.size,)), indices)
    inverse = _inverse(starts, order).reshape(x.shape)
    return UniqueAllResult(values, indices, inverse, _counts(starts, x.size))


def unique(
    x: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The different elements of x in order, whatever `sorted` says; or along an axis the different
    slices, in the order of their elements.

    With `return_inverse` also which of them each element or slice is, with `return_counts` also how
    often each is there (int64); NaN stand each on their own. `dim` is `axis` by PyTorch's name.
    Raises IndexError for an axis out of range, TypeError for both names.

    Shapes: x of any shape; the result is (n,), or (..., n, ...) along an axis.
    Types: all. Result: the same type.
    Source: PyTorch's torch.unique.

    >>> import tilewright as tw
    >>> tw.unique(tw.asarray([[1, 2], [1, 2], [0, 3]]), axis=0).tolist()
    [[0, 3], [1, 2]]
    """
    _check(x, "unique")
    if axis is not None and dim is not None:
        raise TypeError("unique: argument 'axis' given twice, by two names")
    axis = dim if axis is None else axis
    if axis is None and not return_inverse:
        return unique_counts(x)[:] if return_counts else unique_values(x)
    parts = _all(x, "unique") if axis is None else _slices(x, axis)
    values, _, inverse, counts = parts
    found = (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))
    return found if len(found) > 1 else values


def unique_consecutive(
    x: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The elements of the flat tensor, or the slices along an axis, without repetitions of what
    stands just before.

    With `return_inverse` also which run each element or slice is in, with `return_counts` also how
    long each is (int64). `dim` is `axis` by PyTorch's name. Reads how many there are, so a capture
    refuses it.

    Shapes: x of any shape; the result is (n,), or (..., n, ...) along an axis.
    Types: all. Result: the same type.
    Raises IndexError for an axis out of range, TypeError for both names.
    Source: PyTorch's torch.unique_consecutive.

    >>> import tilewright as tw
    >>> tw.unique_consecutive(tw.asarray([1, 1, 2, 1])).tolist()
    [1, 2, 1]
    """
    _check(x, "unique_consecutive")
    if axis is not None and dim is not None:
        raise TypeError("unique_consecutive: argument 'axis' given twice, by two names")
    axis = dim if axis is None else axis
    rows = x.reshape((x.size,)) if axis is None else _core.moveaxis(x, axis, 0)
    count = rows.shape[0]
    flat = rows.detach().reshape((count, rows.size // max(count, 1)))
    starts = _starts((flat[1:] != flat[:-1]).any(axis=1), count)
    values = _core.take(rows, starts, axis=0)
    found = [values if axis is None else _core.moveaxis(values, 0, axis)]
    if return_inverse:
        places = _core.arange(count, dtype=_core.int64, device=x.device)
        inverse = _core.searchsorted(starts, places, right=True) - 1
        found.append(inverse.reshape(x.shape) if axis is None else inverse)
    if return_counts:
        found.append(_counts(starts, count))
    return tuple(found) if len(found) > 1 else found[0]


def _slices(x: Tensor, axis: int) -> UniqueAllResult:
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"unique: axis {axis} is out of range for {x.ndim} dimensions")
    front = (axis % x.ndim, *(i for i in range(x.ndim) if i != axis % x.ndim))
    count = x.shape[axis]
    moved = x.detach().permute_dims(front)
    rows = moved.reshape((count, math.prod(moved.shape[1:])))
    order = _core.arange(count, dtype=_core.int64, device=x.device)
    for column in reversed(builtins.range(rows.shape[1])):  # the first decides, so it comes last
        order = order[_order(rows[order, column])]
    ordered = rows[order]
    differs = (ordered[1:] != ordered[:-1]).any(axis=1)
    starts = _starts(differs, count)
    indices = order[starts]
    values = _core.take(x, indices, axis=axis)
    return UniqueAllResult(values, indices, _inverse(starts, order), _counts(starts, count))


@other_names
def histogram(
    x: Tensor,
    bins: int | Tensor | Sequence[float] = 10,
    *,
    range: tuple[float, float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> HistogramResult:
    """How many elements lie in each bin, in x's type, and the edges of the bins.

    `bins` is how many of equal width there are over `range` (default: from the smallest to the
    largest element), or their edges in order. Each has its lower edge, the last its upper one as
    well; what lies outside and NaN count for nothing. `weight`, of x's shape, is added up instead;
    with `density` the areas of the bins add up to 1. Raises TypeError for an x that is not
    floating, ValueError for edges that are not in order or not finite and for other shapes.

    Shapes: x of any shape; counts (bins,), edges (bins + 1,).
    Types: floating. Result: the same type.
    Source: PyTorch's torch.histogram.

    >>> import tilewright as tw
    >>> hist, edges = tw.histogram(tw.asarray([0.0, 1.0, 1.5, 4.0]), 2)
    >>> hist.tolist(), edges.tolist()
    ([3.0, 1.0], [0.0, 2.0, 4.0])
    """
    _check(x, "histogram")
    if not x.is_floating_point():
        raise TypeError(f"histogram: needs a floating-point input, got {x.dtype}")
    if weight is not None and weight.shape != x.shape:
        raise ValueError(f"histogram: weight {weight.shape} does not fit x {x.shape}")
    flat = x.detach().reshape((x.size,))
    edges = _edges(flat, bins, range)
    count = edges.size - 1
    places = _core.searchsorted(edges, flat, right=True)
    places = _core.where(flat == edges[count], count, places)
    weights = None if weight is None else weight.reshape((x.size,))
    counted = _core.bincount(places, weights, minlength=count + 2)
    hist = counted[1 : count + 1].astype(x.dtype)
    if density:
        hist = hist / (edges[1:] - edges[:-1]) / hist.sum()
    return HistogramResult(hist.copy(), edges)


def _edges(
    x: Tensor, bins: int | Tensor | Sequence[float], limits: tuple[float, float] | None
) -> Tensor:
    if not isinstance(bins, int):
        if limits is not None:
            raise ValueError("histogram: range is for a number of bins, not for edges")
        edges = _core.asarray(bins).astype(x.dtype).copy()
        if edges.ndim != 1 or edges.size < 2:
            raise ValueError(f"histogram: expected at least two edges (n,), got {edges.shape}")
        if not (edges[1:] >= edges[:-1]).all():
            raise ValueError("histogram: edges are not in order")
        return edges
    if bins < 1:
        raise ValueError(f"histogram: bins must be at least 1, got {bins}")
    if limits is not None:
        low, high = limits
    elif x.size:
        low, high = x.min().item(), x.max().item()
    else:
        low, high = 0.0, 1.0
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"histogram: no bins between {low} and {high}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return _core.linspace(float(low), float(high), bins + 1, dtype=x.dtype, device=x.device)
