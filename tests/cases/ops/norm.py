"""Records of normalisation: layer, RMS, group, instance and batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import rounded
from cases.generators import values
from cases.record import Arrays, ErrorInput, OpCase

Shape = tuple[int, ...]
Normalize = Callable[..., np.ndarray]


def distances(x: np.ndarray, axes: tuple[int, ...], centered: bool = True) -> np.ndarray:
    return x - x.mean(axes, keepdims=True) if centered and x.size else x


def inverse(x: np.ndarray, axes: tuple[int, ...], eps: float, centered: bool = True) -> Any:
    if x.size == 0:
        return np.ones_like(x)
    return 1 / np.sqrt((distances(x, axes, centered) ** 2).mean(axes, keepdims=True) + eps)


def normalized(x: np.ndarray, axes: tuple[int, ...], eps: float, centered: bool = True) -> Any:
    return distances(x, axes, centered) * inverse(x, axes, eps, centered)


def error_scale(x: np.ndarray, axes: tuple[int, ...], eps: float, centered: bool = True) -> Any:
    """The mean is rounded, as it is subtracted, to its own digits."""
    size = np.abs(x) + (np.abs(x).mean(axes, keepdims=True) if x.size else 0)
    return size * inverse(x, axes, eps, centered)


def last_axes(x: np.ndarray, w: np.ndarray) -> tuple[int, ...]:
    return tuple(range(x.ndim - w.ndim, x.ndim))


def by_channel(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return w.reshape(-1, *(1,) * (x.ndim - 2))


def layer_norm(of: Normalize) -> Normalize:
    def call(x: np.ndarray, w: np.ndarray, b: np.ndarray, eps: float = 1e-5) -> np.ndarray:
        y = of(x, last_axes(x, w), eps)
        return y * w + b if of is normalized else y * np.abs(w) + np.abs(b)

    return call


def rms_norm(of: Normalize) -> Normalize:
    def call(x: np.ndarray, w: np.ndarray, eps: float = 2.0**-20) -> np.ndarray:
        y = of(x, last_axes(x, w), eps, centered=False)
        return y * w if of is normalized else y * np.abs(w)

    return call


def group_norm(of: Normalize) -> Normalize:
    def call(x: np.ndarray, w: np.ndarray, b: np.ndarray, num_groups: int = 2) -> np.ndarray:
        groups = x.reshape(x.shape[0], num_groups, math.prod(x.shape[1:]) // num_groups)
        y = of(groups, (2,), 1e-5).reshape(x.shape)
        w, b = by_channel(x, w), by_channel(x, b)
        return y * w + b if of is normalized else y * np.abs(w) + np.abs(b)

    return call


def channel_norm(of: Normalize, batch: bool) -> Normalize:
    def call(x: np.ndarray, w: np.ndarray, b: np.ndarray, eps: float = 1e-5) -> np.ndarray:
        spatial = tuple(range(2, x.ndim))
        y = of(x, (0, *spatial) if batch else spatial, eps)
        w, b = by_channel(x, w), by_channel(x, b)
        return y * w + b if of is normalized else y * np.abs(w) + np.abs(b)

    return call


def draw(rng: np.random.Generator, dtype: str, x: Shape, *scales: Shape) -> Arrays:
    return tuple(values(rng, dtype, (-3, 3), shape) for shape in (x, *scales))


LAST = (
    ((4, 37), (37,)),
    ((3, 5), (5,)),
    ((2, 3, 16), (16,)),
    ((2, 3, 5), (3, 5)),
    ((70, 33), (33,)),
    ((300,), (300,)),
    ((0, 5), (5,)),
    ((3, 0), (0,)),
)
CHANNELS: tuple[Shape, ...] = ((3, 4, 5), (2, 4, 3, 7), (5, 6, 33), (2, 4, 2, 3, 2), (0, 4, 5))
BATCHES: tuple[Shape, ...] = (*CHANNELS, (7, 5), (150, 35), (3, 33), (2, 3, 300))
GROUPED: tuple[Shape, ...] = (*CHANNELS, (7, 4), (70, 36))


def of_last(dtype_scales: int) -> Callable[[np.random.Generator, str], list[Arrays]]:
    def arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
        return [draw(rng, dtype, x, *(w,) * dtype_scales) for x, w in LAST]

    return arguments


def of_channels(shapes: tuple[Shape, ...]) -> Callable[[np.random.Generator, str], list[Arrays]]:
    def arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
        return [draw(rng, dtype, x, x[1:2], x[1:2]) for x in shapes]

    return arguments


def special(scales: int, shape: Shape, scale: Shape) -> Callable[[str], list[Arrays]]:
    """Sets with an infinity or NaN are NaN; the others are as if they were alone."""

    def arguments(dtype: str) -> list[Arrays]:
        out = []
        for odd in (np.inf, -np.inf, np.nan, -0.0):
            for at in (0, 16, 36):
                x = np.arange(np.prod(shape), dtype=float).reshape(-1, 37) % 7
                x[1, at] = odd
                ones = (rounded(np.ones(scale), dtype),) * scales
                out.append((rounded(x.reshape(shape), dtype), *ones))
        return out

    return arguments


def refused(call: Callable[[], object], text: str, error: type[Exception] = ValueError) -> Any:
    return ErrorInput(call, error, text)


def record(
    name: str,
    call: Callable[..., Any],
    reference: Normalize,
    scale: Normalize,
    arguments: Any,
    smooth: list[tuple[Shape, ...]],
    odd: Any,
    errors: tuple[ErrorInput, ...],
    variants: tuple[dict[str, Any], ...] = ({}, {"eps": 0.1}),
) -> OpCase:
    return OpCase(
        name,
        call,
        reference,
        arguments,
        {"float16": 0.6, "bfloat16": 0.6, "float32": 8.0, "float64": 8.0},
        lambda dtype: dtype,
        scale,
        variants,
        odd,
        signed_zero=False,
        differentiable=tuple(range(len(smooth[0]))),
        smooth=lambda rng: [tuple(rng.normal(size=s) for s in shapes) for shapes in smooth],
        gradient_tolerance=64,
        errors=errors,
    )


def integers(call: Callable[..., Any], name: str, *args: Any) -> ErrorInput:
    x = tw.ones((2, 4, 3), dtype=tw.int32)
    return refused(
        lambda: call(x, *args), f"{name}: needs a floating-point input, got int32", TypeError
    )


def negative_eps(call: Callable[..., Any], name: str, *args: Any, **options: Any) -> ErrorInput:
    x = tw.ones((2, 4, 3))
    return refused(
        lambda: call(x, *args, eps=-1.0, **options), f"{name}: eps must be at least 0, got -1"
    )


ones = tw.ones
RECORDS = (
    record(
        "layer_norm",
        lambda x, w, b, **options: tw.layer_norm(x, w.shape, w, b, **options),
        layer_norm(normalized),
        layer_norm(error_scale),
        of_last(2),
        [((3, 5), (5,), (5,)), ((2, 2, 3), (2, 3), (2, 3))],
        special(2, (3, 37), (37,)),
        (
            integers(tw.layer_norm, "layer_norm", (3,)),
            refused(
                lambda: tw.layer_norm(ones((2, 3)), (5,)),
                "layer_norm: normalized_shape (5,) is not the last axes of the input's shape",
            ),
            refused(lambda: tw.layer_norm(ones((2, 3)), ()), "layer_norm: normalized_shape ()"),
            refused(
                lambda: tw.layer_norm(ones((2, 3)), (3,), ones((2,))),
                "layer_norm: expected a weight of shape (3,), got (2,)",
            ),
            refused(
                lambda: tw.layer_norm(ones((2, 3)), (3,), ones((3,), dtype=tw.float64)),
                "layer_norm: weight is float64, but the input is float32",
                TypeError,
            ),
        ),
    ),
    record(
        "rms_norm",
        lambda x, w, eps=2.0**-20: tw.rms_norm(x, w.shape, w, eps),
        rms_norm(normalized),
        rms_norm(error_scale),
        of_last(1),
        [((3, 5), (5,)), ((2, 2, 3), (2, 3))],
        special(1, (3, 37), (37,)),
        (
            integers(tw.rms_norm, "rms_norm", (3,)),
            refused(lambda: tw.rms_norm(ones((3,)), (2, 3)), "rms_norm: normalized_shape (2, 3)"),
        ),
    ),
    record(
        "group_norm",
        lambda x, w, b, num_groups=2: tw.group_norm(x, num_groups, w, b),
        group_norm(normalized),
        group_norm(error_scale),
        of_channels(tuple(s for s in GROUPED if s[1] % 2 == 0)),
        [((2, 4, 3), (4,), (4,)), ((3, 4), (4,), (4,))],
        special(2, (3, 2, 37), (2,)),
        (
            integers(tw.group_norm, "group_norm", 2),
            refused(
                lambda: tw.group_norm(ones((2, 4, 3)), 3),
                "group_norm: 4 channels cannot be divided into 3 groups",
            ),
            refused(lambda: tw.group_norm(ones((4,)), 2), "group_norm: expected an input of axes"),
            refused(
                lambda: tw.group_norm(ones((1, 2)), 2),
                "group_norm: expected more than 1 value per group",
            ),
        ),
        ({}, {"num_groups": 1}),
    ),
    record(
        "instance_norm",
        lambda x, w, b, **options: tw.instance_norm(x, weight=w, bias=b, **options),
        channel_norm(normalized, batch=False),
        channel_norm(error_scale, batch=False),
        of_channels(CHANNELS),
        [((2, 3, 4), (3,), (3,))],
        special(2, (3, 2, 37), (2,)),
        (
            integers(tw.instance_norm, "instance_norm"),
            negative_eps(tw.instance_norm, "instance_norm"),
            refused(
                lambda: tw.instance_norm(ones((2, 3, 1))),
                "instance_norm: expected more than 1 value per channel",
            ),
            refused(
                lambda: tw.instance_norm(ones((2, 3, 4)), ones((3,))),
                "instance_norm: give running_mean and running_var, or neither of them",
            ),
            refused(
                lambda: tw.instance_norm(ones((2, 3, 4)), use_input_stats=False),
                "instance_norm: use_input_stats=False needs running_mean and running_var",
            ),
        ),
    ),
    record(
        "batch_norm",
        lambda x, w, b, **options: tw.batch_norm(x, None, None, w, b, True, **options),
        channel_norm(normalized, batch=True),
        channel_norm(error_scale, batch=True),
        of_channels(BATCHES),
        [((4, 3), (3,), (3,)), ((2, 3, 4), (3,), (3,))],
        special(2, (3, 2, 37), (2,)),
        (
            integers(tw.batch_norm, "batch_norm", None, None),
            negative_eps(tw.batch_norm, "batch_norm", None, None, training=True),
            refused(
                lambda: tw.batch_norm(ones((1, 3)), None, None, training=True),
                "batch_norm: expected more than 1 value per channel",
            ),
            refused(
                lambda: tw.batch_norm(ones((2, 3)), None, None),
                "batch_norm: training=False needs running_mean and running_var",
            ),
            refused(
                lambda: tw.batch_norm(ones((2, 3)), ones((2,)), ones((3,))),
                "batch_norm: expected a running_mean of shape (3,), got (2,)",
            ),
        ),
    ),
)
