"""Discrete Fourier transforms by the names of the Array API standard's extension, and PyTorch's.

NumPy's pocketfft computes, and is imported on first use; tensors of float32 (and of 16-bit
numbers) give complex64, of float64 complex128, whole numbers count as the default floating type.
All lie on the CPU. Transforms have gradients, which can be differentiated again: a transform is
linear, and its transpose is another one.

`norm`: "backward" divides the inverse by the number of elements, "forward" the transform itself,
"ortho" both by its root. Along an axis with a size `n` (axes with sizes `s`, -1 for an axis' own)
the input is cut, or filled with zeros at its end. PyTorch's `dim` stands for `axis` and `axes`.
Raised are TypeError for what is no tensor, ValueError for sizes below 1, for an axis that is named
twice and for a norm that is none, IndexError for an axis that there is not.

>>> import tilewright as tw
>>> tw.fft.rfft(tw.asarray([1.0, 0.0, 0.0, 0.0])).tolist()
[(1+0j), (1+0j), (1+0j)]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.fft.transforms import (
    Axes,
    Norm,
    Plan,
    as_complex,
    at_least_one,
    complex_transform,
    counted_axes,
    from_halves,
    halves,
    one_axis,
    one_size,
    several_axes,
)

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2",
    "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft",
    "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

# ---- along one axis ----


def fft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    dim: int | None = None,
) -> Tensor:
    """y[k] = the sum over j of x[j] exp(-2 pi i j k / n): complex, of n elements along the axis.

    Shapes: x (..., m, ...); the result is (..., n, ...), n being m by default.
    Types: all. Result: complex64, of float64 and complex128 complex128.
    Raises IndexError for an axis out of range, ValueError for a transform of no elements and
    another norm.
    Source: Array API standard 2024.12, fft.fft.
    """
    plan = Plan("fft", x, one_size("fft", n), one_axis("fft", axis, dim), norm, inverse=False)
    return complex_transform(plan.fitted(as_complex(x)), plan.axes, False, plan.scale)


def ifft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    dim: int | None = None,
) -> Tensor:
    """The inverse of `fft`.

    Shapes: x (..., m, ...); the result is (..., n, ...), n being m by default.
    Types: all. Result: complex64, of float64 and complex128 complex128.
    Raises IndexError for an axis out of range, ValueError for a transform of no elements and
    another norm.
    Source: Array API standard 2024.12, fft.ifft.
    """
    plan = Plan("ifft", x, one_size("ifft", n), one_axis("ifft", axis, dim), norm, inverse=True)
    return complex_transform(plan.fitted(as_complex(x)), plan.axes, True, plan.scale)


def rfft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    dim: int | None = None,
) -> Tensor:
    """The first n // 2 + 1 elements of `fft` of real numbers; the others are their conjugates.

    Shapes: x (..., m, ...); the result is (..., n // 2 + 1, ...), n being m by default.
    Types: bool, integer, floating. Result: complex64, of float64 complex128.
    Raises IndexError for an axis out of range, ValueError for a transform of no elements and
    another norm, TypeError for complex numbers.
    Source: Array API standard 2024.12, fft.rfft.
    """
    plan = Plan("rfft", x, one_size("rfft", n), one_axis("rfft", axis, dim), norm, inverse=False)
    return halves(plan, x)


def irfft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    dim: int | None = None,
) -> Tensor:
    """The inverse of `rfft`: n real numbers, 2 * (m - 1) of m by default.

    Shapes: x (..., m, ...); the result is (..., n, ...).
    Types: all. Result: float32, of float64 and complex128 float64.
    Raises IndexError for an axis out of range, ValueError for a transform of no elements and
    another norm.
    Source: Array API standard 2024.12, fft.irfft.
    """
    plan = Plan(
        "irfft",
        x,
        one_size("irfft", n),
        one_axis("irfft", axis, dim),
        norm,
        inverse=True,
        half=True,
    )
    return from_halves(plan, x, True)


def hfft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    dim: int | None = None,
) -> Tensor:
    """`fft` of n numbers whose second half conjugates the first, which is x: real numbers.

    Shapes: x (..., m, ...); the result is (..., n, ...), n being 2 * (m - 1) by default.
    Types: all. Result: float32, of float64 and complex128 float64.
    Raises IndexError for an axis out of range, ValueError for a transform of no elements and
    another norm.
    Source: Array API standard 2024.12, fft.hfft.
    """
    plan = Plan(
        "hfft", x, one_size("hfft", n), one_axis("hfft", axis, dim), norm, inverse=False, half=True
    )
    return from_halves(plan, x, False)


def ihfft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    dim: int | None = None,
) -> Tensor:
    """The inverse of `hfft`: n // 2 + 1 complex numbers from real ones.

    Shapes: x (..., m, ...); the result is (..., n // 2 + 1, ...), n being m by default.
    Types: bool, integer, floating. Result: complex64, of float64 complex128.
    Raises IndexError for an axis out of range, ValueError for a transform of no elements and
    another norm, TypeError for complex numbers.
    Source: Array API standard 2024.12, fft.ihfft.
    """
    plan = Plan("ihfft", x, one_size("ihfft", n), one_axis("ihfft", axis, dim), norm, inverse=True)
    return tw.conj(halves(plan, x))


# ---- along several ----


def fftn(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: Axes = None,
    norm: Norm = "backward",
    *,
    dim: Axes = None,
) -> Tensor:
    """`fft` along several axes: all, or the last ones that `s` has sizes for, by default.

    Shapes: x of any shape; the result has the sizes s along the axes, x's by default.
    Types: all. Result: complex64, of float64 and complex128 complex128.
    Raises IndexError for axes out of range, ValueError for an axis named twice, a transform of
    no elements and another norm.
    Source: Array API standard 2024.12, fft.fftn.
    """
    plan = Plan("fftn", x, s, several_axes(axes, dim), norm, inverse=False)
    return complex_transform(plan.fitted(as_complex(x)), plan.axes, False, plan.scale)


def ifftn(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: Axes = None,
    norm: Norm = "backward",
    *,
    dim: Axes = None,
) -> Tensor:
    """The inverse of `fftn`.

    Shapes: x of any shape; the result has the sizes s along the axes, x's by default.
    Types: all. Result: complex64, of float64 and complex128 complex128.
    Raises IndexError for axes out of range, ValueError for an axis named twice, a transform of
    no elements and another norm.
    Source: Array API standard 2024.12, fft.ifftn.
    """
    plan = Plan("ifftn", x, s, several_axes(axes, dim), norm, inverse=True)
    return complex_transform(plan.fitted(as_complex(x)), plan.axes, True, plan.scale)


def rfftn(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: Axes = None,
    norm: Norm = "backward",
    *,
    dim: Axes = None,
) -> Tensor:
    """`rfft` along the last of the axes, then `fft` along the others.

    Shapes: x of any shape; the result has the sizes s along the axes, x's by default, but n //
    2 + 1 along the last.
    Types: bool, integer, floating. Result: complex64, of float64 complex128.
    Raises IndexError for axes out of range, ValueError for an axis named twice, a transform of
    no elements and another norm, TypeError for complex numbers.
    Source: Array API standard 2024.12, fft.rfftn.
    """
    return halves(Plan("rfftn", x, s, several_axes(axes, dim), norm, inverse=False), x)


def irfftn(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: Axes = None,
    norm: Norm = "backward",
    *,
    dim: Axes = None,
) -> Tensor:
    """The inverse of `rfftn`; `s` has the sizes of the result.

    Shapes: x of any shape; the result has the sizes s along the axes.
    Types: all. Result: float32, of float64 and complex128 float64.
    Raises IndexError for axes out of range, ValueError for an axis named twice, a transform of
    no elements and another norm.
    Source: Array API standard 2024.12, fft.irfftn.
    """
    plan = Plan("irfftn", x, s, several_axes(axes, dim), norm, inverse=True, half=True)
    return from_halves(plan, x, True)


def hfftn(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: Axes = None,
    norm: Norm = "backward",
    *,
    dim: Axes = None,
) -> Tensor:
    """`fft` along all of the axes but the last, then `hfft` along that: real numbers.

    Shapes: x of any shape; the result has the sizes s along the axes, x's by default, but 2 *
    (m - 1) of m along the last.
    Types: all. Result: float32, of float64 and complex128 float64.
    Raises IndexError for axes out of range, ValueError for an axis named twice, a transform of
    no elements and another norm.
    Source: PyTorch's torch.fft.hfftn.
    """
    plan = Plan("hfftn", x, s, several_axes(axes, dim), norm, inverse=False, half=True)
    return from_halves(plan, x, False)


def ihfftn(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: Axes = None,
    norm: Norm = "backward",
    *,
    dim: Axes = None,
) -> Tensor:
    """The inverse of `hfftn`: `ihfft` along the last of the axes, then `ifft` along the others.

    Shapes: x of any shape; the result has the sizes s along the axes, x's by default, but n //
    2 + 1 along the last.
    Types: bool, integer, floating. Result: complex64, of float64 complex128.
    Raises IndexError for axes out of range, ValueError for an axis named twice, a transform of
    no elements and another norm, TypeError for complex numbers.
    Source: PyTorch's torch.fft.ihfftn.
    """
    plan = Plan("ihfftn", x, s, several_axes(axes, dim), norm, inverse=True)
    return tw.conj(halves(plan, x))


def fft2(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: Axes = (-2, -1),
    norm: Norm = "backward",
    *,
    dim: Axes = None,
) -> Tensor:
    """`fftn` along the last two axes.

    Shapes: x (..., n, m); the result has the sizes s along the axes, x's by default.
    Types: all. Result: complex64, of float64 and complex128 complex128.
    Raises IndexError, ValueError and TypeError as `fftn`.
    Source: PyTorch's torch.fft.fft2.
    """
    return fftn(x, s, several_axes(axes, dim, (-2, -1)), norm)


def ifft2(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: Axes = (-2, -1),
    norm: Norm = "backward",
    *,
    dim: Axes = None,
) -> Tensor:
    """`ifftn` along the last two axes.

    Shapes: x (..., n, m); the result has the sizes s along the axes, x's by default.
    Types: all. Result: complex64, of float64 and complex128 complex128.
    Raises IndexError, ValueError and TypeError as `ifftn`.
    Source: PyTorch's torch.fft.ifft2.
    """
    return ifftn(x, s, several_axes(axes, dim, (-2, -1)), norm)


def rfft2(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: Axes = (-2, -1),
    norm: Norm = "backward",
    *,
    dim: Axes = None,
) -> Tensor:
    """`rfftn` along the last two axes.

    Shapes: x (..., n, m); the result has the sizes s along the axes, x's by default, but n // 2
    + 1 along the last.
    Types: bool, integer, floating. Result: complex64, of float64 complex128.
    Raises IndexError, ValueError and TypeError as `rfftn`.
    Source: PyTorch's torch.fft.rfft2.
    """
    return rfftn(x, s, several_axes(axes, dim, (-2, -1)), norm)


def irfft2(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: Axes = (-2, -1),
    norm: Norm = "backward",
    *,
    dim: Axes = None,
) -> Tensor:
    """`irfftn` along the last two axes.

    Shapes: x (..., n, m); the result has the sizes s along the axes.
    Types: all. Result: float32, of float64 and complex128 float64.
    Raises IndexError, ValueError and TypeError as `irfftn`.
    Source: PyTorch's torch.fft.irfft2.
    """
    return irfftn(x, s, several_axes(axes, dim, (-2, -1)), norm)


def hfft2(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: Axes = (-2, -1),
    norm: Norm = "backward",
    *,
    dim: Axes = None,
) -> Tensor:
    """`hfftn` along the last two axes.

    Shapes: x (..., n, m); the result has the sizes s along the axes.
    Types: all. Result: float32, of float64 and complex128 float64.
    Raises IndexError, ValueError and TypeError as `hfftn`.
    Source: PyTorch's torch.fft.hfft2.
    """
    return hfftn(x, s, several_axes(axes, dim, (-2, -1)), norm)


def ihfft2(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: Axes = (-2, -1),
    norm: Norm = "backward",
    *,
    dim: Axes = None,
) -> Tensor:
    """`ihfftn` along the last two axes.

    Shapes: x (..., n, m); the result has the sizes s along the axes, x's by default, but n // 2
    + 1 along the last.
    Types: bool, integer, floating. Result: complex64, of float64 complex128.
    Raises IndexError, ValueError and TypeError as `ihfftn`.
    Source: PyTorch's torch.fft.ihfft2.
    """
    return ihfftn(x, s, several_axes(axes, dim, (-2, -1)), norm)


# ---- frequencies, and where they lie ----


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """Frequencies of the elements of `fft`, for samples d apart: 0 and up, then negative ones.

    Shapes: the result is (n,).
    Types: floating. Result: dtype, by default the default floating type.
    Raises ValueError for an n below 1, TypeError for a dtype that is not floating.
    Source: Array API standard 2024.12, fft.fftfreq.
    """
    half = (at_least_one("fftfreq", n) - 1) // 2 + 1
    places = tw.concat([tw.arange(half, device=device), tw.arange(half - n, 0, device=device)])
    return _frequencies("fftfreq", places, n, d, dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """Frequencies of the elements of `rfft`, for samples d apart: none is negative.

    Shapes: the result is (n // 2 + 1,).
    Types: floating. Result: dtype, by default the default floating type.
    Raises ValueError for an n below 1, TypeError for a dtype that is not floating.
    Source: Array API standard 2024.12, fft.rfftfreq.
    """
    places = tw.arange(at_least_one("rfftfreq", n) // 2 + 1, device=device)
    return _frequencies("rfftfreq", places, n, d, dtype)


def fftshift(x: Tensor, /, axes: Axes = None, *, dim: Axes = None) -> Tensor:
    """Rolled so that frequency 0 comes to the middle, along all axes or those given.

    Shapes: x of any shape; the result has it.
    Types: all. Result: the same type.
    Raises IndexError for axes out of range.
    Source: Array API standard 2024.12, fft.fftshift.
    """
    at = _shifted_axes("fftshift", x, several_axes(axes, dim))
    return tw.roll(x, [x.shape[axis] // 2 for axis in at], axis=at) if at else x


def ifftshift(x: Tensor, /, axes: Axes = None, *, dim: Axes = None) -> Tensor:
    """The inverse of `fftshift`.

    Shapes: x of any shape; the result has it.
    Types: all. Result: the same type.
    Raises IndexError for axes out of range.
    Source: Array API standard 2024.12, fft.ifftshift.
    """
    at = _shifted_axes("ifftshift", x, several_axes(axes, dim))
    return tw.roll(x, [-(x.shape[axis] // 2) for axis in at], axis=at) if at else x


# ---- what places and frequencies are made of ----


def _shifted_axes(who: str, x: Any, axes: Sequence[int] | None) -> tuple[int, ...]:
    if not isinstance(x, Tensor):
        raise TypeError(f"{who}: takes tensors, got {type(x).__name__}")
    return counted_axes(who, x, range(x.ndim) if axes is None else axes)


def _frequencies(who: str, places: Tensor, n: int, d: float, dtype: Any) -> Tensor:
    dtype = tw.get_default_dtype() if dtype is None else tw.result_type(dtype)
    if not tw.isdtype(dtype, "real floating"):
        raise TypeError(f"{who}: dtype must be a floating one, got {dtype}")
    return (places.astype(tw.float64) / (n * d)).astype(dtype)
