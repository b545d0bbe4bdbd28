"""Pooling with PyTorch's arguments: indices on demand, powers, and windows at random places."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor

Sizes = int | Sequence[int]
Result = Tensor | tuple[Tensor, Tensor]
_SPACES = {1: "length", 2: "height, width", 3: "depth, height, width"}


def _max_pool(axes: int) -> Any:
    """F.max_pool1d, F.max_pool2d or F.max_pool3d."""
    plain: Callable[..., Tensor] = getattr(tw, f"max_pool{axes}d")
    indexed: Callable[..., Any] = getattr(tw, f"max_pool{axes}d_with_indices")

    def max_pool(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        call = indexed if return_indices else plain
        return call(input, kernel_size, stride, padding, dilation, ceil_mode)

    return _named(max_pool, plain, axes)


def _adaptive_max_pool(axes: int) -> Any:
    plain: Callable[..., Tensor] = getattr(tw, f"adaptive_max_pool{axes}d")
    indexed: Callable[..., Any] = getattr(tw, f"adaptive_max_pool{axes}d_with_indices")

    def adaptive_max_pool(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
        return (indexed if return_indices else plain)(input, output_size)

    return _named(adaptive_max_pool, plain, axes)


def _lp_pool(axes: int) -> Any:
    average: Callable[..., Tensor] = getattr(tw, f"avg_pool{axes}d")
    largest: Callable[..., Tensor] = getattr(tw, f"max_pool{axes}d")

    def lp_pool(
        input: Tensor,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        if isinstance(norm_type, bool) or not isinstance(norm_type, (int, float)):
            raise TypeError(f"lp_pool{axes}d: norm_type is a number, got {norm_type!r}")
        if not tw.isdtype(input.dtype, "real floating"):
            raise TypeError(f"lp_pool{axes}d: floating point only, got {input.dtype}")
        if norm_type == 0:
            raise ValueError(f"lp_pool{axes}d: norm_type must not be 0")
        if norm_type == math.inf:
            return largest(abs(input), kernel_size, stride, ceil_mode=ceil_mode)
        if norm_type == -math.inf:
            return -largest(-abs(input), kernel_size, stride, ceil_mode=ceil_mode)
        narrow = input.dtype in (tw.float16, tw.bfloat16)  # whose powers would overflow
        powers = (input.astype(tw.float32) if narrow else input) ** norm_type
        means = average(powers, kernel_size, stride, ceil_mode=ceil_mode)
        sums = means * _volume(kernel_size, axes)
        # A sum of 0 passes no gradient.
        none = sums == 0
        return tw.where(none, 0.0, tw.where(none, 1.0, sums) ** (1.0 / norm_type)).astype(
            input.dtype
        )

    lp_pool.__doc__ = f"""The {axes}-dimensional windows' sums of powers, and of that the root.

    sum(x ** norm_type) ** (1 / norm_type) of each window of kernel_size, stride (default:
    kernel_size) apart; inf takes the largest size. Where the sum is 0 the gradient is 0.

    Shapes: input (batch, channels, {_SPACES[axes]}), or without batch; the result has
    floor((size - kernel_size) / stride) + 1 windows along an axis, with ceil_mode ceil.
    Types: floating. Result: the same type.
    Raises ValueError for windows that do not fit and a norm_type of 0, TypeError for other types.
    Source: PyTorch's torch.nn.functional.lp_pool{axes}d.
    """
    return _called(lp_pool, f"lp_pool{axes}d")


def _volume(kernel_size: Sizes, axes: int) -> int:
    if not isinstance(kernel_size, Sequence):
        return math.prod([kernel_size] * axes)
    return math.prod(list(kernel_size) * (axes if len(kernel_size) == 1 else 1))


def _named(function: Callable[..., Any], plain: Callable[..., Any], axes: int) -> Any:
    name = plain.__name__
    function.__doc__ = f"""`tw.{name}`, and with return_indices where in its plane each lies.

    Shapes: input (batch, channels, {_SPACES[axes]}), or without batch; values and indices have
    the shape of `tw.{name}`'s result.
    Types: floating. Result: the same type, and indices of int64.
    Raises ValueError for windows that do not fit, TypeError for other types.
    Source: PyTorch's torch.nn.functional.{name}.
    """
    return _called(function, name)


def _called(function: Callable[..., Any], name: str) -> Any:
    function.__name__ = function.__qualname__ = name
    return function


max_pool1d = _max_pool(1)
max_pool2d = _max_pool(2)
max_pool3d = _max_pool(3)
adaptive_max_pool1d = _adaptive_max_pool(1)
adaptive_max_pool2d = _adaptive_max_pool(2)
adaptive_max_pool3d = _adaptive_max_pool(3)
lp_pool1d = _lp_pool(1)
lp_pool2d = _lp_pool(2)
lp_pool3d = _lp_pool(3)


# ---- windows at random places ----


def _fractional(axes: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    name = f"fractional_max_pool{axes}d"

    def with_indices(
        input: Tensor,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = True,
        _random_samples: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        kernel = _each(name, "kernel_size", kernel_size, axes)
        if input.ndim not in (axes + 1, axes + 2):
            raise ValueError(
                f"{name}: input must have {axes + 2} dimensions, or {axes + 1} without a batch, "
                f"got shape {input.shape}"
            )
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{name}: give either output_size or output_ratio")
        x = input if input.ndim == axes + 2 else input.unsqueeze(0)
        space = x.shape[2:]
        if output_size is not None:
            size = _each(name, "output_size", output_size, axes)
        else:
            ratios = _each(name, "output_ratio", output_ratio, axes)
            if not all(0 < ratio < 1 for ratio in ratios):
                raise ValueError(f"{name}: output_ratio lies between 0 and 1, got {output_ratio!r}")
            size = [int(n * ratio) for n, ratio in zip(space, ratios, strict=True)]
        for n, k, m in zip(space, kernel, size, strict=True):
            if not (k >= 1 and m >= 1 and m + k - 1 <= n):
                raise ValueError(
                    f"{name}: {tuple(size)} windows of {tuple(kernel)} do not fit {space}"
                )
        samples = _random_samples
        if samples is None:
            samples = tw.rand((*x.shape[:2], axes), dtype=x.dtype)
        index = _places(samples, space, kernel, size)
        flat = x.reshape((*x.shape[:2], 1, -1))
        taps = index.reshape((*x.shape[:2], -1, math.prod(kernel)))
        found = tw.take_along_axis(flat, taps, axis=3)
        best = tw.argmax(found, axis=3, keepdims=True)
        shape = (*input.shape[: input.ndim - axes], *size)
        values = tw.take_along_axis(found, best, axis=3).reshape(shape)
        return values, tw.take_along_axis(taps, best, axis=3).reshape(shape)

    def plain(
        input: Tensor,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        found = with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
        return found if return_indices else found[0]

    plain.__doc__ = f"""The largest element of windows at random places, `output_size` of them.

    output_ratio, below 1, says the size as a part of the input's.

    Shapes: input (batch, channels, {_SPACES[axes]}), or without batch; the result has output_size
    in place of the last {axes} axes.
    Types: floating. Result: the same type, and with return_indices indices of int64.
    Raises ValueError for windows that do not fit and unless one of output_size and output_ratio is
    given, TypeError for other types.
    Source: Graham, "Fractional max-pooling", 2014.
    """
    with_indices.__doc__ = f"""The results of {name}, and where in its plane each lies.

    Shapes: values and indices have the shape of {name}'s result.
    Types: floating. Result: values of the same type, indices of int64.
    Raises ValueError and TypeError as {name}.
    Source: Graham, "Fractional max-pooling", 2014.
    """
    return _called(plain, name), _called(with_indices, f"{name}_with_indices")


def _each(name: str, what: str, value: Any, axes: int) -> list[Any]:
    values = list(value) if isinstance(value, Sequence) else [value] * axes
    if len(values) != axes:
        raise ValueError(f"{name}: {what} is one number or {axes}, got {value!r}")
    return values


def _places(samples: Tensor, space: Any, kernel: list[int], size: list[int]) -> Tensor:
    """Of each window's elements in its plane: (batch, channels, *size, *kernel), int64."""
    axes = len(kernel)
    index: Any = 0
    for axis, (n, k, m) in enumerate(zip(space, kernel, size, strict=True)):
        # PyTorch's samples stand in the order width, height; or depth, height, width.
        u = samples[..., axes - 1 - axis if axes == 2 else axis].unsqueeze(-1)
        if m > 1:
            step = (n - k) / (m - 1)
            i = tw.arange(m, dtype=samples.dtype)
            starts = (tw.floor((i + u) * step) - tw.floor(u * step)).astype(tw.int64)
            starts = tw.where(tw.arange(m) == m - 1, n - k, starts)
        else:
            starts = tw.full((*samples.shape[:2], 1), n - k, dtype=tw.int64)
        at = starts.unsqueeze(-1) + tw.arange(k)
        shape = [1] * (2 * axes)
        shape[axis], shape[axes + axis] = m, k
        index = index * n + at.reshape((*samples.shape[:2], *shape))
    return index  # type: ignore[no-any-return]


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional(3)
