"""Discrete Fourier transforms by NumPy's pocketfft: a plan of what is asked for, and gradients."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright._engine.background import call_apart
from tilewright._engine.optional_packages import require
from tilewright.autograd import Function

Axes = Sequence[int] | int | None
Norm = str | None


# ---- three transforms without a factor of their own, each another's transpose ----


class _Complex(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, axes: tuple[int, ...], inverse: bool, scale: float) -> Tensor:
        ctx.given = axes, inverse, scale
        run = _numpy_fft().ifftn if inverse else _numpy_fft().fftn
        # The norm that leaves the result as it is.
        norm = "forward" if inverse else "backward"
        return _scaled(_transformed(run, x, axes=axes, norm=norm), x, scale)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        axes, inverse, scale = ctx.given
        return complex_transform(g, axes, not inverse, scale), None, None, None


class _RealToHalf(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: int, scale: float) -> Tensor:
        ctx.given = axis, scale, x.shape[axis]
        return _scaled(_transformed(_numpy_fft().rfft, x, axis=axis), x, scale)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None]:
        axis, scale, n = ctx.given
        # The sum below counts what lies between the ends twice.
        return _half_to_real(g * _weights(g, axis, n, 0.5), axis, n, scale), None, None


class _HalfToReal(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: int, n: int, scale: float) -> Tensor:
        ctx.given = axis, scale, n
        real = _transformed(_numpy_fft().irfft, x, n=n, axis=axis, norm="forward")
        return _scaled(real, x, scale)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        axis, scale, n = ctx.given
        half = _real_to_half(g, axis, scale)
        return half * _weights(half, axis, n, 2.0), None, None, None


def complex_transform(x: Tensor, axes: tuple[int, ...], inverse: bool, scale: float) -> Tensor:
    """Of all elements, along axes that may be none."""
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


def halves(plan: Plan, x: Tensor) -> Tensor:
    """Real numbers to the first half along the last axis of the plan."""
    if x.dtype in (tw.complex64, tw.complex128):
        raise TypeError(f"{plan.who}: takes real numbers, got {x.dtype}")
    half = _real_to_half(plan.fitted(_as_real(x)), plan.axes[-1], plan.scale)
    return complex_transform(half, plan.axes[:-1], False, 1.0)


def from_halves(plan: Plan, x: Tensor, inverse: bool) -> Tensor:
    """The first half along the last axis of the plan to real numbers."""
    half = plan.fitted(as_complex(x))
    half = complex_transform(half, plan.axes[:-1], inverse, 1.0)
    half = half if inverse else tw.conj(half)
    return _half_to_real(half, plan.axes[-1], plan.sizes[-1], plan.scale)


# ---- what is asked for ----


class Plan:
    """Axes counted from 0, the sizes of the transform along them, and its factor.

    `half`: the last axis of the input holds the first half of what is transformed.
    """

    def __init__(
        self,
        who: str,
        x: Any,
        sizes: Sequence[int] | None,
        axes: Sequence[int] | None,
        norm: Norm,
        inverse: bool,
        half: bool = False,
    ) -> None:
        _check(who, x)
        self.who, self.half = who, half
        if sizes is not None:
            sizes = [operator.index(size) for size in sizes]
            if axes is None:
                axes = range(-len(sizes), 0)
        self.axes = counted_axes(who, x, range(x.ndim) if axes is None else axes)
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


def counted_axes(who: str, x: Tensor, axes: Sequence[int]) -> tuple[int, ...]:
    counted = []
    for axis in axes:
        if not -x.ndim <= operator.index(axis) < x.ndim:
            raise IndexError(f"{who}: axis {axis} is out of range for shape {tuple(x.shape)}")
        counted.append(axis % x.ndim)
    if len({*counted}) < len(counted):
        raise ValueError(f"{who}: an axis is named twice: {tuple(axes)}")
    return tuple(counted)


def _scale(who: str, norm: Norm, count: int, inverse: bool) -> float:
    if norm == "ortho":
        return 1 / math.sqrt(count)
    if norm not in (None, "backward", "forward"):
        raise ValueError(f"{who}: norm is 'backward', 'ortho' or 'forward', got {norm!r}")
    return 1 / count if inverse == (norm != "forward") else 1.0


def one_size(who: str, n: int | None) -> list[int] | None:
    return None if n is None else [at_least_one(who, n)]


def one_axis(who: str, axis: int, dim: int | None) -> list[int]:
    if dim is not None and axis != -1:
        raise TypeError(f"{who}: give axis or dim, not both")
    return [axis if dim is None else dim]


def several_axes(
    axes: Axes, dim: Axes, default: tuple[int, ...] | None = None
) -> Sequence[int] | None:
    if dim is not None:
        if axes != default:
            raise TypeError("give axes or dim, not both")
        axes = dim
    return axes if axes is None or isinstance(axes, Sequence) else [operator.index(axes)]


def at_least_one(who: str, n: int) -> int:
    if operator.index(n) < 1:
        raise ValueError(f"{who}: a transform of {n} elements")
    return n


# ---- there and back ----


def _as_real(x: Tensor) -> Tensor:
    if x.dtype in (tw.float32, tw.float64):
        return x
    return x.astype(tw.float32 if x.is_floating_point() else tw.get_default_dtype())


def as_complex(x: Tensor) -> Tensor:
    if x.dtype in (tw.complex64, tw.complex128):
        return x
    real = _as_real(x)
    return real.astype(tw.complex64 if real.dtype == tw.float32 else tw.complex128)


def _numpy_fft() -> Any:
    return require("numpy", purpose="tilewright.fft", install="numpy").fft


def _transformed(run: Any, x: Tensor, **options: Any) -> Any:
    operations = 5.0 * x.numel() * math.log2(x.numel() + 1)
    return call_apart(operations, run, x.detach().numpy(), **options)


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
