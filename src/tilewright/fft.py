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

import math
import operator
from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.autograd import Function
from tilewright.extras import require

_Axes = Sequence[int] | int | None
_Norm = str | None


# ---- along one axis ----


def fft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: _Norm = "backward",
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
    plan = _Plan("fft", x, _size("fft", n), _one("fft", axis, dim), norm, inverse=False)
    return _complex(plan.fitted(_as_complex(x)), plan.axes, False, plan.scale)


def ifft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: _Norm = "backward",
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
    plan = _Plan("ifft", x, _size("ifft", n), _one("ifft", axis, dim), norm, inverse=True)
    return _complex(plan.fitted(_as_complex(x)), plan.axes, True, plan.scale)


def rfft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: _Norm = "backward",
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
    plan = _Plan("rfft", x, _size("rfft", n), _one("rfft", axis, dim), norm, inverse=False)
    return _halves(plan, x)


def irfft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: _Norm = "backward",
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
    plan = _Plan(
        "irfft", x, _size("irfft", n), _one("irfft", axis, dim), norm, inverse=True, half=True
    )
    return _from_halves(plan, x, True)


def hfft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: _Norm = "backward",
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
    plan = _Plan(
        "hfft", x, _size("hfft", n), _one("hfft", axis, dim), norm, inverse=False, half=True
    )
    return _from_halves(plan, x, False)


def ihfft(
    x: Tensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: _Norm = "backward",
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
    plan = _Plan("ihfft", x, _size("ihfft", n), _one("ihfft", axis, dim), norm, inverse=True)
    return tw.conj(_halves(plan, x))


# ---- along several ----


def fftn(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: _Axes = None,
    norm: _Norm = "backward",
    *,
    dim: _Axes = None,
) -> Tensor:
    """`fft` along several axes: all, or the last ones that `s` has sizes for, by default.

    Shapes: x of any shape; the result has the sizes s along the axes, x's by default.
    Types: all. Result: complex64, of float64 and complex128 complex128.
    Raises IndexError for axes out of range, ValueError for an axis named twice, a transform of
    no elements and another norm.
    Source: Array API standard 2024.12, fft.fftn.
    """
    plan = _Plan("fftn", x, s, _several(axes, dim), norm, inverse=False)
    return _complex(plan.fitted(_as_complex(x)), plan.axes, False, plan.scale)


def ifftn(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: _Axes = None,
    norm: _Norm = "backward",
    *,
    dim: _Axes = None,
) -> Tensor:
    """The inverse of `fftn`.

    Shapes: x of any shape; the result has the sizes s along the axes, x's by default.
    Types: all. Result: complex64, of float64 and complex128 complex128.
    Raises IndexError for axes out of range, ValueError for an axis named twice, a transform of
    no elements and another norm.
    Source: Array API standard 2024.12, fft.ifftn.
    """
    plan = _Plan("ifftn", x, s, _several(axes, dim), norm, inverse=True)
    return _complex(plan.fitted(_as_complex(x)), plan.axes, True, plan.scale)


def rfftn(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: _Axes = None,
    norm: _Norm = "backward",
    *,
    dim: _Axes = None,
) -> Tensor:
    """`rfft` along the last of the axes, then `fft` along the others.

    Shapes: x of any shape; the result has the sizes s along the axes, x's by default, but n //
    2 + 1 along the last.
    Types: bool, integer, floating. Result: complex64, of float64 complex128.
    Raises IndexError for axes out of range, ValueError for an axis named twice, a transform of
    no elements and another norm, TypeError for complex numbers.
    Source: Array API standard 2024.12, fft.rfftn.
    """
    return _halves(_Plan("rfftn", x, s, _several(axes, dim), norm, inverse=False), x)


def irfftn(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: _Axes = None,
    norm: _Norm = "backward",
    *,
    dim: _Axes = None,
) -> Tensor:
    """The inverse of `rfftn`; `s` has the sizes of the result.

    Shapes: x of any shape; the result has the sizes s along the axes.
    Types: all. Result: float32, of float64 and complex128 float64.
    Raises IndexError for axes out of range, ValueError for an axis named twice, a transform of
    no elements and another norm.
    Source: Array API standard 2024.12, fft.irfftn.
    """
    plan = _Plan("irfftn", x, s, _several(axes, dim), norm, inverse=True, half=True)
    return _from_halves(plan, x, True)


def fft2(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: _Axes = (-2, -1),
    norm: _Norm = "backward",
    *,
    dim: _Axes = None,
) -> Tensor:
    """`fftn` along the last two axes.

    Shapes: x (..., n, m); the result has the sizes s along the axes, x's by default.
    Types: all. Result: complex64, of float64 and complex128 complex128.
    Raises IndexError, ValueError and TypeError as `fftn`.
    Source: PyTorch's torch.fft.fft2.
    """
    return fftn(x, s, _several(axes, dim, (-2, -1)), norm)


def ifft2(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: _Axes = (-2, -1),
    norm: _Norm = "backward",
    *,
    dim: _Axes = None,
) -> Tensor:
    """`ifftn` along the last two axes.

    Shapes: x (..., n, m); the result has the sizes s along the axes, x's by default.
    Types: all. Result: complex64, of float64 and complex128 complex128.
    Raises IndexError, ValueError and TypeError as `ifftn`.
    Source: PyTorch's torch.fft.ifft2.
    """
    return ifftn(x, s, _several(axes, dim, (-2, -1)), norm)


def rfft2(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: _Axes = (-2, -1),
    norm: _Norm = "backward",
    *,
    dim: _Axes = None,
) -> Tensor:
    """`rfftn` along the last two axes.

    Shapes: x (..., n, m); the result has the sizes s along the axes, x's by default, but n // 2
    + 1 along the last.
    Types: bool, integer, floating. Result: complex64, of float64 complex128.
    Raises IndexError, ValueError and TypeError as `rfftn`.
    Source: PyTorch's torch.fft.rfft2.
    """
    return rfftn(x, s, _several(axes, dim, (-2, -1)), norm)


def irfft2(
    x: Tensor,
    /,
    s: Sequence[int] | None = None,
    axes: _Axes = (-2, -1),
    norm: _Norm = "backward",
    *,
    dim: _Axes = None,
) -> Tensor:
    """`irfftn` along the last two axes.

    Shapes: x (..., n, m); the result has the sizes s along the axes.
    Types: all. Result: float32, of float64 and complex128 float64.
    Raises IndexError, ValueError and TypeError as `irfftn`.
    Source: PyTorch's torch.fft.irfft2.
    """
    return irfftn(x, s, _several(axes, dim, (-2, -1)), norm)


# ---- frequencies, and where they lie ----


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """Frequencies of the elements of `fft`, for samples d apart: 0 and up, then negative ones.

    Shapes: the result is (n,).
    Types: floating. Result: dtype, by default the default floating type.
    Raises ValueError for an n below 1, TypeError for a dtype that is not floating.
    Source: Array API standard 2024.12, fft.fftfreq.
    """
    half = (_count("fftfreq", n) - 1) // 2 + 1
    places = tw.concat([tw.arange(half, device=device), tw.arange(half - n, 0, device=device)])
    return _frequencies("fftfreq", places, n, d, dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """Frequencies of the elements of `rfft`, for samples d apart: none is negative.

    Shapes: the result is (n // 2 + 1,).
    Types: floating. Result: dtype, by default the default floating type.
    Raises ValueError for an n below 1, TypeError for a dtype that is not floating.
    Source: Array API standard 2024.12, fft.rfftfreq.
    """
    places = tw.arange(_count("rfftfreq", n) // 2 + 1, device=device)
    return _frequencies("rfftfreq", places, n, d, dtype)


def fftshift(x: Tensor, /, axes: _Axes = None, *, dim: _Axes = None) -> Tensor:
    """Rolled so that frequency 0 comes to the middle, along all axes or those given.

    Shapes: x of any shape; the result has it.
    Types: all. Result: the same type.
    Raises IndexError for axes out of range.
    Source: Array API standard 2024.12, fft.fftshift.
    """
    at = _shifted_axes("fftshift", x, _several(axes, dim))
    return tw.roll(x, [x.shape[axis] // 2 for axis in at], axis=at) if at else x


def ifftshift(x: Tensor, /, axes: _Axes = None, *, dim: _Axes = None) -> Tensor:
    """The inverse of `fftshift`.

    Shapes: x of any shape; the result has it.
    Types: all. Result: the same type.
    Raises IndexError for axes out of range.
    Source: Array API standard 2024.12, fft.ifftshift.
    """
    at = _shifted_axes("ifftshift", x, _several(axes, dim))
    return tw.roll(x, [-(x.shape[axis] // 2) for axis in at], axis=at) if at else x


# ---- three transforms without a factor of their own, each another's transpose ----


class _Complex(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, axes: tuple[int, ...], inverse: bool, scale: float) -> Tensor:
        ctx.given = axes, inverse, scale
        run = _numpy_fft().ifftn if inverse else _numpy_fft().fftn
        # The norm that leaves the result as it is.
        return _scaled(
            run(_array(x), axes=axes, norm="forward" if inverse else "backward"), x, scale
        )

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        axes, inverse, scale = ctx.given
        return _complex(g, axes, not inverse, scale), None, None, None


class _RealToHalf(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: int, scale: float) -> Tensor:
        ctx.given = axis, scale, x.shape[axis]
        return _scaled(_numpy_fft().rfft(_array(x), axis=axis), x, scale)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None]:
        axis, scale, n = ctx.given
        # The sum below counts what lies between the ends twice.
        return _half_to_real(g * _weights(g, axis, n, 0.5), axis, n, scale), None, None


class _HalfToReal(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: int, n: int, scale: float) -> Tensor:
        ctx.given = axis, scale, n
        return _scaled(_numpy_fft().irfft(_array(x), n, axis=axis, norm="forward"), x, scale)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        axis, scale, n = ctx.given
        half = _real_to_half(g, axis, scale)
        return half * _weights(half, axis, n, 2.0), None, None, None


def _complex(x: Tensor, axes: tuple[int, ...], inverse: bool, scale: float) -> Tensor:
    result: Tensor = _Complex.apply(x, axes, inverse, scale) if axes else x
    return result


def _real_to_half(x: Tensor, axis: int, scale: float) -> Tensor:
    result: Tensor = _RealToHalf.apply(x, axis, scale)
    return result


def _half_to_real(x: Tensor, axis: int, n: int, scale: float) -> Tensor:
    result: Tensor = _HalfToReal.apply(x, axis, n, scale)
    return result


def _weights(half: Tensor, axis: int, n: int, inner: float) -> Tensor:
    """1 for the elements that stand for themselves alone, frequency 0 and half of n."""
    values = [1.0] + [inner] * (half.shape[axis] - 1)
    if n % 2 == 0:
        values[-1] = 1.0
    shape = [1] * half.ndim
    shape[axis] = len(values)
    return tw.asarray(values, dtype=tw.real(half).dtype).reshape(shape)


def _halves(plan: _Plan, x: Tensor) -> Tensor:
    if x.dtype in (tw.complex64, tw.complex128):
        raise TypeError(f"{plan.who}: takes real numbers, got {x.dtype}")
    half = _real_to_half(plan.fitted(_as_real(x)), plan.axes[-1], plan.scale)
    return _complex(half, plan.axes[:-1], False, 1.0)


def _from_halves(plan: _Plan, x: Tensor, inverse: bool) -> Tensor:
    half = plan.fitted(_as_complex(x))
    half = _complex(half, plan.axes[:-1], True, 1.0) if inverse else tw.conj(half)
    return _half_to_real(half, plan.axes[-1], plan.sizes[-1], plan.scale)


# ---- what is asked for ----


class _Plan:
    """Axes counted from 0, the sizes of the transform along them, and its factor.

    `half`: the last axis of the input holds the first half of what is transformed.
    """

    def __init__(
        self,
        who: str,
        x: Any,
        sizes: Sequence[int] | None,
        axes: Sequence[int] | None,
        norm: _Norm,
        inverse: bool,
        half: bool = False,
    ) -> None:
        _check(who, x)
        self.who, self.half = who, half
        if sizes is not None:
            sizes = [operator.index(size) for size in sizes]
            if axes is None:
                axes = range(-len(sizes), 0)
        self.axes = _counted(who, x, range(x.ndim) if axes is None else axes)
        if not self.axes and (half or who.startswith(("r", "ih"))):
            raise ValueError(f"{who}: needs an axis to transform along")
        if sizes is None:
            sizes = [-1] * len(self.axes)
        if len(sizes) != len(self.axes):
            raise ValueError(f"{who}: {len(sizes)} sizes for {len(self.axes)} axes")
        own = [x.shape[axis] for axis in self.axes]
        if half:
            own[-1] = 2 * (own[-1] - 1)
        self.sizes = [a if b == -1 else b for a, b in zip(own, sizes, strict=True)]
        for axis, size in zip(self.axes, self.sizes, strict=True):
            if size < 1:
                raise ValueError(f"{who}: a transform of {size} elements along axis {axis}")
        self.scale = _scale(who, norm, math.prod(self.sizes), inverse)

    def fitted(self, x: Tensor) -> Tensor:
        """Cut, or filled with zeros at the end."""
        sizes = [*self.sizes]
        if self.half:
            sizes[-1] = sizes[-1] // 2 + 1
        for axis, size in zip(self.axes, sizes, strict=True):
            missing = size - x.shape[axis]
            if missing < 0:
                x = x[(slice(None),) * axis + (slice(size),)]
            elif missing > 0:
                shape = [*x.shape[:axis], missing, *x.shape[axis + 1 :]]
                x = tw.concat([x, tw.zeros(shape, dtype=x.dtype)], axis=axis)
        return x


def _check(who: str, x: Any) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{who}: takes tensors, got {type(x).__name__}")
    if x.device != "cpu":
        raise ValueError(
            f"{who}: runs on the CPU, and the tensor lies on {x.device!r}: x.to('cpu')"
        )


def _counted(who: str, x: Tensor, axes: Sequence[int]) -> tuple[int, ...]:
    counted = []
    for axis in axes:
        if not -x.ndim <= operator.index(axis) < x.ndim:
            raise IndexError(f"{who}: axis {axis} is out of range for shape {tuple(x.shape)}")
        counted.append(axis % x.ndim)
    if len({*counted}) < len(counted):
        raise ValueError(f"{who}: an axis is named twice: {tuple(axes)}")
    return tuple(counted)


def _scale(who: str, norm: _Norm, count: int, inverse: bool) -> float:
    if norm == "ortho":
        return 1 / math.sqrt(count)
    if norm not in (None, "backward", "forward"):
        raise ValueError(f"{who}: norm is 'backward', 'ortho' or 'forward', got {norm!r}")
    return 1 / count if inverse == (norm != "forward") else 1.0


def _size(who: str, n: int | None) -> list[int] | None:
    return None if n is None else [_count(who, n)]


def _one(who: str, axis: int, dim: int | None) -> list[int]:
    if dim is not None and axis != -1:
        raise TypeError(f"{who}: give axis or dim, not both")
    return [axis if dim is None else dim]


def _several(
    axes: _Axes, dim: _Axes, default: tuple[int, ...] | None = None
) -> Sequence[int] | None:
    if dim is not None:
        if axes != default:
            raise TypeError("give axes or dim, not both")
        axes = dim
    return axes if axes is None or isinstance(axes, Sequence) else [operator.index(axes)]


def _shifted_axes(who: str, x: Any, axes: Sequence[int] | None) -> tuple[int, ...]:
    if not isinstance(x, Tensor):
        raise TypeError(f"{who}: takes tensors, got {type(x).__name__}")
    return _counted(who, x, range(x.ndim) if axes is None else axes)


def _count(who: str, n: int) -> int:
    if operator.index(n) < 1:
        raise ValueError(f"{who}: a transform of {n} elements")
    return n


def _frequencies(who: str, places: Tensor, n: int, d: float, dtype: Any) -> Tensor:
    dtype = tw.get_default_dtype() if dtype is None else tw.result_type(dtype)
    if not tw.isdtype(dtype, "real floating"):
        raise TypeError(f"{who}: dtype must be a floating one, got {dtype}")
    return (places.astype(tw.float64) / (n * d)).astype(dtype)


# ---- there and back ----


def _as_real(x: Tensor) -> Tensor:
    if x.dtype in (tw.float32, tw.float64):
        return x
    return x.astype(tw.float32 if x.is_floating_point() else tw.get_default_dtype())


def _as_complex(x: Tensor) -> Tensor:
    if x.dtype in (tw.complex64, tw.complex128):
        return x
    real = _as_real(x)
    return real.astype(tw.complex64 if real.dtype == tw.float32 else tw.complex128)


def _numpy_fft() -> Any:
    return require("numpy", purpose="tilewright.fft", install="numpy").fft


def _array(x: Tensor) -> Any:
    return x.detach().numpy()


def _scaled(y: Any, x: Tensor, scale: float) -> Tensor:
    """Of x's precision: NumPy before 2.0 computes in double."""
    if scale != 1:
        y *= scale
    narrow = x.dtype in (tw.float32, tw.complex64)
    kind = (
        ("complex64" if narrow else "complex128")
        if y.dtype.kind == "c"
        else ("float32" if narrow else "float64")
    )
    return tw.asarray(y.astype(kind, copy=False))
