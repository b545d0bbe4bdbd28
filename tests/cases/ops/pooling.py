"""Records of pooling; test_pooling.py holds it against PyTorch over random windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import tilewright as tw
from cases.arrays import FLOATS
from cases.generators import same, values
from cases.ops.convolution import each
from cases.record import Arrays, ErrorInput, OpCase

SHAPES = {
    1: ((2, 3, 37), (5, 9), (1, 1, 4), (0, 2, 8), (2, 0, 8)),
    2: ((2, 3, 7, 37), (2, 5, 6), (1, 1, 4, 4), (0, 2, 6, 6)),
    3: ((1, 2, 4, 5, 35), (2, 4, 4, 5), (0, 1, 4, 4, 4)),
}
MAX = (
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 2, "stride": 1, "dilation": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    {"kernel_size": 2, "stride": 3, "ceil_mode": True},
)
MEAN = (
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 1, "padding": 1, "count_include_pad": False},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    {"kernel_size": 2, "stride": 3},
)
SIZES = ({"output_size": 1}, {"output_size": 2}, {"output_size": 3}, {"output_size": 5})


class Window(NamedTuple):
    taps: range
    counted: int  # elements, those of padding included


def windows(n: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool) -> Any:
    """Of one axis, as PyTorch's documentation has them."""
    room = n + 2 * padding - dilation * (kernel - 1) - 1
    count = (-(-room // stride) if ceil else room // stride) + 1
    if ceil and (count - 1) * stride >= n + padding:
        count -= 1
    found = []
    for start in range(-padding, -padding + count * stride, stride):
        taps = [t for t in range(start, start + dilation * kernel, dilation) if 0 <= t < n]
        counted = min(start + kernel, n + padding) - start
        found.append(Window(range(taps[0], taps[-1] + 1, dilation), counted))
    return found


def regular(
    axes: int,
    space: tuple[int, ...],
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> list[list[Window]]:
    stride = kernel_size if stride is None else stride
    numbers = [each(value, axes) for value in (kernel_size, stride, padding, dilation)]
    return [windows(n, *own, ceil_mode) for n, *own in zip(space, *numbers, strict=True)]


def shared(axes: int, space: tuple[int, ...], output_size: Any) -> list[list[Window]]:
    found = []
    for n, count in zip(space, each(output_size, axes), strict=True):
        bounds = [(i * n // count, -(-(i + 1) * n // count)) for i in range(count)]
        found.append([Window(range(a, b), b - a) for a, b in bounds])
    return found


def pooled(x: np.ndarray, by_axis: list[list[Window]], join: Callable[..., Any]) -> np.ndarray:
    """join(elements, windows) of every window."""
    axes = len(by_axis)
    y = np.empty((*x.shape[:-axes], *map(len, by_axis)), x.dtype)
    for at in product(*(range(len(own)) for own in by_axis)):
        chosen = [own[i] for own, i in zip(by_axis, at, strict=True)]
        cut = tuple(slice(w.taps.start, w.taps.stop, w.taps.step) for w in chosen)
        y[(..., *at)] = join(x[(..., *cut)], chosen)
    return y


def reference(
    axes: int,
    kind: str,
    x: np.ndarray,
    count_include_pad=True,
    divisor_override=None,
    **options: Any,
) -> np.ndarray:
    find = shared if "output_size" in options else regular
    space = tuple(range(-axes, 0))

    def join(part: np.ndarray, chosen: list[Window]) -> np.ndarray:
        if kind == "max":
            return part.max(axis=space)
        padded = count_include_pad and "output_size" not in options
        number = np.prod([w.counted if padded else len(w.taps) for w in chosen])
        return part.sum(axis=space) / (divisor_override or number)

    return pooled(x, find(axes, x.shape[-axes:], **options), join)


def winners(axes: int, x: np.ndarray, **options: Any) -> np.ndarray:
    """Where in its plane the first of each window's largest elements lies."""
    space = x.shape[-axes:]
    find = shared if "output_size" in options else regular
    places = np.arange(int(np.prod(space))).reshape(space)

    def join(part: np.ndarray, chosen: list[Window]) -> np.ndarray:
        cut = tuple(slice(w.taps.start, w.taps.stop, w.taps.step) for w in chosen)
        rows = part.reshape(*part.shape[:-axes], math.prod(part.shape[-axes:]))
        return places[cut].reshape(-1)[rows.argmax(axis=-1)]

    return pooled(x, find(axes, space, **options), join).astype(np.int64)


def arguments(axes: int) -> Callable[..., list[Arrays]]:
    return lambda rng, dtype: [(values(rng, dtype, (-9, 9), shape),) for shape in SHAPES[axes]]


def smooth(axes: int) -> Callable[..., list[Arrays]]:
    """No two elements so near each other that a small step changes which is the largest."""

    def make(rng: np.random.Generator) -> list[Arrays]:
        shapes = {1: ((2, 1, 7), (1, 6)), 2: ((2, 1, 5, 4), (1, 4, 5)), 3: ((1, 1, 3, 4, 3),)}
        return [
            (rng.permutation(int(np.prod(shape))).reshape(shape) * 0.25 - 1.0,)
            for shape in shapes[axes]
        ]

    return make


def errors(name: str, axes: int, options: dict[str, Any]) -> tuple[ErrorInput, ...]:
    call = getattr(tw, name)
    shape = (2, 3, *[6] * axes)

    def refused(text: str, of: Any = shape, **changed: Any) -> ErrorInput:
        return ErrorInput(lambda: call(tw.ones(of), **{**options, **changed}), ValueError, text)

    found = [
        refused(f"{name}: input must have {axes + 2} dimensions", (6,) * axes),
        refused(f"{name}: input {(2, 3, *[0] * axes)} has an axis of size 0", (2, 3, *[0] * axes)),
        ErrorInput(
            lambda: call(tw.ones(shape, dtype=tw.int32), **options),
            TypeError,
            f"{name}: floating point only, got int32",
        ),
    ]
    if "output_size" in options:
        return (
            *found,
            refused(f"{name}: output_size must be at least 0", output_size=-1),
            refused(f"{name}: output_size has {axes + 1} numbers", output_size=(1,) * (axes + 1)),
        )
    each_reach = (7,) * axes if axes > 1 else "(7,)"
    found += [
        refused(f"{name}: kernel_size must be at least 1", kernel_size=0),
        refused(f"{name}: stride must be at least 1", stride=0),
        refused(f"{name}: stride has {axes + 1} numbers", stride=(1,) * (axes + 1)),
        refused(f"{name}: padding must be at least 0", padding=-1),
        refused("must be at most half of the windows'", padding=2),
        refused(f"{name}: windows of {each_reach} are larger than the padded input", kernel_size=7),
    ]
    if "max" in name:
        found.append(refused(f"{name}: dilation must be at least 1", dilation=0))
    elif axes > 1:
        found.append(refused(f"{name}: divisor_override must not be 0", divisor_override=0))
    return tuple(found)


def record(axes: int, name: str, kind: str, variants: Any) -> OpCase:
    def run(x: np.ndarray, **options: Any) -> np.ndarray:
        return reference(axes, kind, x, **options)

    exact = kind == "max"
    return OpCase(
        name,
        getattr(tw, name),
        run,
        arguments(axes),
        dict.fromkeys(("float16", "bfloat16", "float32", "float64"), 0.0 if exact else 6.0),
        same,
        None if exact else lambda x, **options: reference(axes, kind, np.abs(x), **options),
        variants,
        signed_zero=False,
        differentiable=(0,),
        smooth=smooth(axes),
        gradient_tolerance=16,
        errors=errors(name, axes, dict(variants[0])),
    )


def places(axes: int, name: str, variants: Any) -> OpCase:
    """The second result of an op that gives indices as well."""
    call = getattr(tw, name)
    return OpCase(
        name,
        lambda x, **options: call(x, **options)[1],
        lambda x, **options: winners(axes, x, **options),
        arguments(axes),
        dict.fromkeys(("float16", "bfloat16", "float32", "float64"), 0.0),
        lambda _: "int64",
        variants=variants,
        errors=errors(name, axes, dict(variants[0])),
    )


# The places of a quarter of the result's elements, no two the same.
def unpool_arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    made = []
    for lead, size in (((2, 3), 4), ((5,), 9), ((0, 2), 4)):
        count = int(np.prod(lead))
        places = [rng.permutation(2 * size)[:size] for _ in range(count)]
        x = values(rng, dtype, (-3, 3), (*lead, size))
        made.append((x, np.reshape(np.array(places, np.int64), (*lead, size))))
    return made


def unpool(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    y = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    np.put_along_axis(y, places, x, -1)
    return y


def unpool_case(axes: int) -> OpCase:
    name = f"max_unpool{axes}d"

    def call(x: tw.Tensor, places: tw.Tensor) -> tw.Tensor:
        size = x.shape[-1]
        ones, lead = (1,) * (axes - 1), x.shape[:-1]
        y = getattr(tw, name)(
            x.reshape((*lead, *ones, size)),
            places.reshape((*lead, *ones, size)),
            2,
            output_size=(*ones, 2 * size),
        )
        return y.reshape((*lead, 2 * size))

    return OpCase(
        name,
        call,
        unpool,
        unpool_arguments,
        dict.fromkeys(FLOATS, 0.0),
        same,
        differentiable=(0,),
        smooth=lambda rng: [unpool_arguments(rng, "float64")[0]],
        gradient_tolerance=4,
        errors=(
            ErrorInput(
                lambda: getattr(tw, name)(*(tw.ones((1, 2, 2, 2, 2)[: axes + 2]),) * 2, 2),
                TypeError,
                f"{name}: indices must be int64, got float32",
            ),
        ),
    )


def records(axes: int) -> tuple[OpCase, ...]:
    divided = ({"kernel_size": 2, "divisor_override": -3},) if axes > 1 else ()
    return (
        record(axes, f"max_pool{axes}d", "max", MAX),
        record(axes, f"avg_pool{axes}d", "mean", MEAN + divided),
        record(axes, f"adaptive_max_pool{axes}d", "max", SIZES),
        record(axes, f"adaptive_avg_pool{axes}d", "mean", SIZES),
        places(axes, f"max_pool{axes}d_with_indices", MAX),
        places(axes, f"adaptive_max_pool{axes}d_with_indices", SIZES),
        unpool_case(axes),
    )


RECORDS = (*records(1), *records(2), *records(3))
