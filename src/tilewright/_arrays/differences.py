"""Slopes of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor


def gradient(
    x: Tensor,
    *spacing: Any,
    axis: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> Any:
    """Slopes of samples along an axis, or of all axes a list of them, by central differences.

    `spacing` is one distance for all axes, or for each axis a distance or the places of its samples
    (1 unless given). At the ends the difference of the last two samples counts, with `edge_order=2`
    a parabola through three. Raises TypeError for integers and bool, ValueError for fewer than
    edge_order + 1 samples, another edge_order and spacings that do not fit, IndexError for an axis
    out of range.

    Shapes: x (..., n, ...), places (n,); each result has x's shape.
    Types: floating, complex. Result: the same type.
    Source: NumPy's numpy.gradient.

    >>> import tilewright as tw
    >>> tw.gradient(tw.asarray([1.0, 2.0, 4.0, 7.0])).tolist()
    [1.0, 1.5, 2.5, 3.0]
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"gradient: takes tensors, got {type(x).__name__}")
    if not (x.is_floating_point() or x.is_complex()):
        raise TypeError(f"gradient: takes floating or complex numbers, got {x.dtype}")
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order is 1 or 2, got {edge_order}")
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    for each in axes:
        if not -x.ndim <= each < x.ndim:
            raise IndexError(f"gradient: axis {each} is out of range for shape {x.shape}")
    given = list(spacing) or [1.0]
    if len(given) == 1 and not _is_places(given[0]):
        given *= len(axes)
    if len(given) != len(axes):
        raise ValueError(f"gradient: {len(given)} spacings for {len(axes)} axes")
    slopes = [_slope(x, h, each % x.ndim, edge_order) for h, each in zip(given, axes, strict=True)]
    return slopes[0] if len(slopes) == 1 else slopes


def _is_places(spacing: Any) -> bool:
    return getattr(spacing, "ndim", 0) > 0 or isinstance(spacing, (list, tuple))


def _slope(x: Tensor, spacing: Any, axis: int, edge_order: int) -> Tensor:
    n = x.shape[axis]
    if n <= edge_order:
        raise ValueError(f"gradient: {n} samples along axis {axis}, at least {edge_order + 1}")
    y = tw.moveaxis(x, axis, -1)
    real = tw.real(y[..., :0]).dtype
    if _is_places(spacing):
        places = tw.asarray(spacing).astype(real)
        if places.shape != (n,):
            raise ValueError(f"gradient: places of shape {places.shape} for {n} samples")
        steps = places[1:] - places[:-1]
    else:
        steps = tw.full((n - 1,), spacing, dtype=real)
    rise = (y[..., 1:] - y[..., :-1]) / steps  # between neighbours
    before, after = steps[:-1], steps[1:]
    inner = (rise[..., :-1] * after + rise[..., 1:] * before) / (before + after)
    first, last = rise[..., :1], rise[..., -1:]
    if edge_order == 2:
        bend = (rise[..., 1:] - rise[..., :-1]) / (before + after)
        first, last = first - bend[..., :1] * steps[:1], last + bend[..., -1:] * steps[-1:]
    return tw.moveaxis(tw.concat([first, inner, last], axis=-1), -1, axis)
