"""Records of the convolutions; test_convolution.py holds every rung against PyTorch in depth."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

import tilewright as tw
from cases.generators import same, values
from cases.record import Arrays, ErrorInput, OpCase

# Input, weight: plain, 1x1, in two groups, depthwise, without batch, an empty batch.
SHAPES = {
    1: (
        ((2, 3, 9), (4, 3, 3)),
        ((1, 1, 5), (1, 1, 1)),
        ((2, 4, 8), (6, 2, 2)),
        ((3, 7), (2, 3, 3)),
        ((0, 2, 6), (3, 2, 3)),
    ),
    2: (
        ((2, 3, 6, 7), (4, 3, 3, 2)),
        ((1, 2, 5, 5), (3, 2, 1, 1)),
        ((2, 4, 7, 6), (6, 2, 3, 3)),
        ((1, 3, 6, 9), (6, 1, 2, 3)),
        ((2, 7, 5), (3, 2, 3, 3)),
        ((0, 2, 6, 6), (3, 2, 3, 3)),
    ),
    3: (((1, 2, 4, 5, 5), (3, 2, 2, 3, 2)), ((2, 2, 3, 3, 4), (4, 1, 2, 2, 3))),
}


def channels(x: Any, axes: int) -> int:
    return x.shape[-axes - 1]


def each(value: Any, axes: int) -> tuple[int, ...]:
    return (value,) * axes if isinstance(value, int) else tuple(value)


def convolution(
    axes: int, x: np.ndarray, w: np.ndarray, b: np.ndarray, stride=1, padding=0, dilation=1
) -> np.ndarray:
    """By one product of channels for each element of the kernel."""
    stride, dilation, kernel = each(stride, axes), each(dilation, axes), w.shape[2:]
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    if padding == "same":
        pads = [(r // 2, r - r // 2) for r in reach]
    else:
        pads = [(p, p) for p in each(0 if padding == "valid" else padding, axes)]
    if x.ndim == axes + 1:
        return convolution(axes, x[None], w, b, stride, padding, dilation)[0]
    groups = x.shape[1] // w.shape[1]
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    size = [(n - r - 1) // s + 1 for n, r, s in zip(x.shape[2:], reach, stride, strict=True)]
    y = np.zeros((x.shape[0], groups, w.shape[0] // groups, *size), x.dtype)
    x = x.reshape(x.shape[0], groups, w.shape[1], *x.shape[2:])
    w = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    for at in product(*map(range, kernel)):
        cut = tuple(
            slice(a * d, a * d + s * (n - 1) + 1, s)
            for a, d, s, n in zip(at, dilation, stride, size, strict=True)
        )
        y += np.einsum("ngc...,goc->ngo...", x[(..., *cut)], w[(..., *at)])
    return y.reshape(x.shape[0], b.size, *size) + b.reshape(-1, *[1] * axes)


def transposed(
    axes: int,
    x: np.ndarray,
    w: np.ndarray,
    b: np.ndarray,
    stride=1,
    padding=0,
    output_padding=0,
    dilation=1,
    groups=1,
) -> np.ndarray:
    """Every element of the input adds a scaled kernel to the output, whose rim is cut off."""
    if x.ndim == axes + 1:
        options = (stride, padding, output_padding, dilation, groups)
        return transposed(axes, x[None], w, b, *options)[0]
    stride, dilation, kernel = each(stride, axes), each(dilation, axes), w.shape[2:]
    padding, added = each(padding, axes), each(output_padding, axes)
    size = [
        (n - 1) * s + d * (k - 1) + 1 + a
        for n, s, d, k, a in zip(x.shape[2:], stride, dilation, kernel, added, strict=True)
    ]
    y = np.zeros((x.shape[0], groups, w.shape[1], *size), x.dtype)
    cells = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    w = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    for at in product(*map(range, kernel)):
        cut = tuple(
            slice(a * d, a * d + s * (n - 1) + 1, s)
            for a, d, s, n in zip(at, dilation, stride, x.shape[2:], strict=True)
        )
        y[(..., *cut)] += np.einsum("ngc...,gco->ngo...", cells, w[(..., *at)])
    y = y.reshape(x.shape[0], b.size, *size)
    rim = tuple(slice(p, n - p) for p, n in zip(padding, size, strict=True))
    return y[(..., *rim)] + b.reshape(-1, *[1] * axes)


def magnitude(reference: Callable[..., Any]) -> Callable[..., Any]:
    return lambda axes, *args, **options: reference(axes, *map(np.abs, args), **options)


def refused(call: Callable[..., Any], x: Any, w: Any, text: str, **options: Any) -> ErrorInput:
    return ErrorInput(lambda: call(tw.ones(x), tw.ones(w), **options), ValueError, text)


def shared_errors(name: str, axes: int) -> tuple[ErrorInput, ...]:
    call, space, kernel = getattr(tw, name), (8,) * axes, (3,) * axes
    x, w = (2, 4, *space), (4, 4, *kernel)
    transposes = "transpose" in name
    return (
        refused(call, x, w[:-1], f"{name}: weight must have {axes + 2} dimensions"),
        refused(call, (8,) * axes, w, f"{name}: input must have {axes + 2} dimensions"),
        refused(call, x, (5, 5, *kernel), "has 4 channels, but weight"),
        refused(call, x, w, f"{name}: groups must be at least 1, got 0", groups=0),
        refused(call, x, (4, 4, *kernel), f"{name}: ", groups=3),
        refused(call, x, w, f"{name}: stride must be at least 1", stride=0),
        refused(call, x, w, f"{name}: dilation must be at least 1", dilation=-1),
        refused(call, x, w, f"{name}: padding must be at least 0", padding=-1),
        refused(call, x, w, f"{name}: padding must be at least 0 and below 2^31", padding=1 << 62),
        refused(call, x, w, f"{name}: stride has {axes + 1} numbers", stride=(1,) * (axes + 1)),
        refused(call, x, w, f"{name}: bias (5,) does not fit 4", bias=tw.ones(5)),
        refused(call, x, (4, 4, *[0] * axes), f"{name}: the kernel has no elements"),
        ErrorInput(
            lambda: call(tw.ones(x, dtype=tw.int32), tw.ones(w, dtype=tw.int32)),
            TypeError,
            f"{name}: floating point only, got int32",
        ),
        ErrorInput(
            lambda: call(tw.ones(x), tw.ones(w), padding="wide"),
            TypeError if transposes else ValueError,
            f"{name}: padding must be an int",
        ),
    )


def conv_errors(name: str, axes: int) -> tuple[ErrorInput, ...]:
    call = getattr(tw, name)
    space, kernel = ((4,) * axes, (5,) * axes)
    told = f"{kernel} is larger than the padded input {space}"
    return (
        *shared_errors(name, axes),
        refused(call, (1, 2, *space), (3, 2, *kernel), f"{name}: kernel {told}"),
        refused(
            call,
            (1, 2, *space),
            (3, 2, *space),
            f"{name}: padding='same' needs stride 1",
            stride=2,
            padding="same",
        ),
        refused(
            call, (1, 4, *space), (3, 2, *space), f"{name}: groups=2 do not divide the 3", groups=2
        ),
    )


def transpose_errors(name: str, axes: int) -> tuple[ErrorInput, ...]:
    call = getattr(tw, name)
    return (
        *shared_errors(name, axes),
        refused(
            call,
            (1, 2, *[3] * axes),
            (2, 2, *[3] * axes),
            f"{name}: output_padding {(2,) * axes} must be smaller than stride",
            stride=2,
            output_padding=2,
        ),
        refused(
            call,
            (1, 2, *[2] * axes),
            (2, 2, *[1] * axes),
            f"{name}: padding {(2,) * axes} leaves nothing of input",
            padding=2,
        ),
    )


def conv_arguments(axes: int, rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [tuple(values(rng, dtype, (-3, 3), s) for s in (x, w, w[:1])) for x, w in SHAPES[axes]]


def conv_smooth(axes: int, rng: np.random.Generator) -> list[Arrays]:
    shapes = [(x, w) for x, w in SHAPES[axes] if 0 not in x]
    return [tuple(rng.normal(size=s) for s in (x, w, w[:1])) for x, w in shapes]


def transpose_shapes(axes: int) -> list[tuple[tuple[int, ...], ...]]:
    """Input, weight, bias: the weight's first axis is the input's channels."""
    kernels = [w[2:] for _, w in SHAPES[axes]]
    return [
        (x, (channels(np.empty(x), axes), 2, *k), (2,))
        for (x, _), k in zip(SHAPES[axes], kernels, strict=True)
    ]


def transpose_arguments(axes: int, rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [tuple(values(rng, dtype, (-3, 3), s) for s in row) for row in transpose_shapes(axes)]


def transpose_smooth(axes: int, rng: np.random.Generator) -> list[Arrays]:
    return [
        tuple(rng.normal(size=s) for s in row) for row in transpose_shapes(axes) if 0 not in row[0]
    ]


def grouped(axes: int, call: Callable[..., Any]) -> Callable[..., Any]:
    """In as many groups as input and weight say."""
    return lambda x, w, *rest, **options: call(
        x, w, *rest, groups=channels(x, axes) // w.shape[1], **options
    )


TOLERANCE = {"float16": 1.6, "bfloat16": 1.6, "float32": 34.0, "float64": 34.0}


def conv_record(axes: int) -> OpCase:
    name = f"conv{axes}d"
    return OpCase(
        name,
        grouped(axes, getattr(tw, name)),
        lambda *args, **options: convolution(axes, *args, **options),
        lambda rng, dtype: conv_arguments(axes, rng, dtype),
        TOLERANCE,
        same,
        lambda *args, **options: magnitude(convolution)(axes, *args, **options),
        variants=(
            {},
            {"stride": 2, "padding": 1},
            {"padding": "same", "dilation": 2},
            {"padding": (2,) * axes, "dilation": (2,) * axes, "stride": (1,) * (axes - 1) + (3,)},
        ),
        signed_zero=False,
        differentiable=(0, 1, 2),
        smooth=lambda rng: conv_smooth(axes, rng),
        gradient_tolerance=32,
        errors=conv_errors(name, axes),
    )


def transpose_record(axes: int) -> OpCase:
    name = f"conv_transpose{axes}d"
    return OpCase(
        name,
        getattr(tw, name),
        lambda *args, **options: transposed(axes, *args, **options),
        lambda rng, dtype: transpose_arguments(axes, rng, dtype),
        TOLERANCE,
        same,
        lambda *args, **options: magnitude(transposed)(axes, *args, **options),
        variants=(
            {},
            {"stride": 2, "padding": 1, "output_padding": 1},
            {"dilation": 2, "stride": (1,) * (axes - 1) + (3,)},
        ),
        signed_zero=False,
        differentiable=(0, 1, 2),
        smooth=lambda rng: transpose_smooth(axes, rng),
        gradient_tolerance=32,
        errors=transpose_errors(name, axes),
    )


RECORDS = (*map(conv_record, (1, 2, 3)), *map(transpose_record, (1, 2, 3)))
