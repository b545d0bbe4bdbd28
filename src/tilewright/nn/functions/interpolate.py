"""Images of another size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor, _core
from tilewright._engine.value_text import shown

_MODES = ("nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area")
_BY_AXES: dict[int, Callable[..., Any]] = {
    1: tw.adaptive_avg_pool1d,
    2: tw.adaptive_avg_pool2d,
    3: tw.adaptive_avg_pool3d,
}


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Images (batch, channels, length), (..., height, width) or (..., depth, height, width) with
    another `size`, or one that is `scale_factor` times theirs, rounded down.

    `mode` is nearest, nearest-exact, area (means), or linear, bilinear, bicubic, trilinear for 1,
    2, 2 and 3 axes. With `align_corners` the centres of the outermost elements stay where they
    are. Places follow from `scale_factor` where it is given, from the sizes with
    `recompute_scale_factor`. `antialias` widens the filter of bilinear and bicubic where images
    shrink. nearest takes all types, others floating point. Raises ValueError for arguments that do
    not fit each other, TypeError for types.

    Shapes: images (batch, channels, ...); the result is (batch, channels, *size).
    Types: all. Result: the same type.
    Source: PyTorch's torch.nn.functional.interpolate.

    >>> import tilewright as tw
    >>> x = tw.asarray([[[0.0, 1.0]]])
    >>> tw.nn.functional.interpolate(x, size=4, mode="linear").tolist()
    [[[0.0, 0.25, 0.75, 1.0]]]
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"interpolate: input must be a Tensor, got {shown(input)}")
    if mode not in _MODES:
        raise ValueError(f"interpolate: mode is one of {', '.join(_MODES)}; got {shown(mode)}")
    axes = input.ndim - 2
    if axes not in _BY_AXES:
        raise ValueError(
            f"interpolate: input must have 3 to 5 dimensions, (batch, channels, ...), got shape "
            f"{input.shape}"
        )
    if mode in ("nearest", "nearest-exact", "area") and align_corners is not None:
        raise ValueError(f"interpolate: align_corners is not for mode {mode!r}")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(
            f"interpolate: antialias is for modes 'bilinear' and 'bicubic', not {mode!r}"
        )
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: give either size or scale_factor")
    scales = [0.0] * axes
    if scale_factor is None:
        if recompute_scale_factor:
            raise ValueError("interpolate: recompute_scale_factor is for scale_factor, not size")
        sizes = _whole(size, axes)
    else:
        factors = _factors(scale_factor, axes)
        sizes = [math.floor(n * f) for n, f in zip(input.shape[2:], factors, strict=True)]
        if not recompute_scale_factor and mode != "area":
            scales = [1 / f for f in factors]
    if mode == "area":
        return _BY_AXES[axes](input, tuple(sizes))  # type: ignore[no-any-return]
    return _core.resample(
        input, tuple(sizes), mode, bool(align_corners), antialias, *scales, *[0.0] * (3 - axes)
    )


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` under its older name.

    Shapes: images (batch, channels, ...); the result is (batch, channels, *size).
    Types: all. Result: the same type.
    Raises ValueError and TypeError as `interpolate`.
    Source: PyTorch's torch.nn.functional.upsample.

    >>> import tilewright as tw
    >>> tw.nn.functional.upsample(tw.ones((1, 1, 2)), scale_factor=2).shape
    (1, 1, 4)
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def _each(name: str, value: Any, axes: int) -> list[Any]:
    if isinstance(value, (str, Tensor)) or not isinstance(value, Sequence):
        return [value] * axes
    if len(value) != axes:
        raise ValueError(
            f"interpolate: {name} is one number or {axes}, one for each axis, got {value!r}"
        )
    return list(value)


def _whole(size: Any, axes: int) -> list[int]:
    sizes = _each("size", size, axes)
    for each in sizes:
        if isinstance(each, bool) or not hasattr(each, "__index__"):
            raise TypeError(f"interpolate: size is whole numbers, got {shown(size)}")
    return [int(each) for each in sizes]


def _factors(scale_factor: Any, axes: int) -> list[float]:
    factors = _each("scale_factor", scale_factor, axes)
    for each in factors:
        if isinstance(each, bool) or not isinstance(each, (int, float)):
            raise TypeError(f"interpolate: scale_factor is numbers, got {shown(scale_factor)}")
        if not (each > 0 and math.isfinite(each)):
            raise ValueError(f"interpolate: scale_factor must be above 0, got {each}")
    return [float(each) for each in factors]
