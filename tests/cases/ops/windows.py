"""Records of unfold and fold."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

import tilewright as tw
from cases.generators import same, values
from cases.ops.convolution import each
from cases.record import Arrays, ErrorInput, OpCase

SHAPES = ((2, 3, 6, 7), (1, 1, 5, 5), (4, 7, 5), (0, 2, 6, 6), (2, 0, 5, 5), (1, 5, 19, 23))
OPTIONS = (
    {"kernel_size": 3},
    {"kernel_size": (2, 3), "stride": 2, "padding": (1, 2)},
    {"kernel_size": (3, 2), "dilation": 2, "stride": (1, 3)},
)


def windows(image: Any, kernel_size, dilation=1, padding=0, stride=1) -> list[Any]:
    """For each element of the kernel where the windows' elements lie in the padded image."""
    kernel, step = each(kernel_size, 2), each(stride, 2)
    dilation, padding = each(dilation, 2), each(padding, 2)
    sizes = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(image, kernel, dilation, padding, step, strict=True)
    ]
    return [
        tuple(
            slice(a * d, a * d + s * (n - 1) + 1, s)
            for a, d, s, n in zip(at, dilation, step, sizes, strict=True)
        )
        for at in product(*map(range, kernel))
    ]


def unfold(x: np.ndarray, **options: Any) -> np.ndarray:
    p = each(options.get("padding", 0), 2)
    padded = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(p[0], p[0]), (p[1], p[1])])
    taps = [padded[(..., *at)] for at in windows(x.shape[-2:], **options)]
    y = np.stack(taps, axis=-3)  # (..., channels, kernel, windows' rows, columns)
    return y.reshape(*x.shape[:-3], -1, y.shape[-1] * y.shape[-2]) if y.size else empty(x, taps)


def empty(x: np.ndarray, taps: list[np.ndarray]) -> np.ndarray:
    rows = x.shape[-3] * len(taps)
    return np.zeros((*x.shape[:-3], rows, taps[0].shape[-1] * taps[0].shape[-2]), x.dtype)


IMAGE = (7, 8)


def fold(x: np.ndarray, **options: Any) -> np.ndarray:
    p = each(options.get("padding", 0), 2)
    places = windows(IMAGE, **options)
    channels = x.shape[-2] // len(places)
    y = np.zeros((*x.shape[:-2], channels, IMAGE[0] + 2 * p[0], IMAGE[1] + 2 * p[1]), x.dtype)
    for i, at in enumerate(places):
        view = y[(..., *at)]
        view += x.reshape(*x.shape[:-2], channels, len(places), *view.shape[-2:])[..., i, :, :]
    return y[..., p[0] : p[0] + IMAGE[0], p[1] : p[1] + IMAGE[1]]


def unfold_arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [(values(rng, dtype, (-3, 3), shape),) for shape in SHAPES]


def fold_arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    # 3x3 windows of IMAGE: 5 * 6 of them.
    return [(values(rng, dtype, (-3, 3), shape),) for shape in ((2, 27, 30), (9, 30), (0, 9, 30))]


RECORDS = (
    OpCase(
        "unfold",
        tw.unfold,
        unfold,
        unfold_arguments,
        dict.fromkeys(("float16", "bfloat16", "float32", "float64"), 0.0),
        same,
        variants=OPTIONS,
        differentiable=(0,),
        smooth=lambda rng: [(rng.normal(size=shape),) for shape in ((2, 2, 5, 6), (1, 6, 5))],
        gradient_tolerance=16,
        errors=(
            ErrorInput(
                lambda: tw.unfold(tw.ones((1, 2, 4, 4)), 5),
                ValueError,
                "unfold: windows of (5, 5) are larger than the padded image (4, 4)",
            ),
            ErrorInput(
                lambda: tw.unfold(tw.ones((4, 4)), 2),
                ValueError,
                "unfold: input must be (batch, channels, height, width), or without a batch",
            ),
            ErrorInput(
                lambda: tw.unfold(tw.ones((1, 2, 4, 4), dtype=tw.int32), 2),
                TypeError,
                "unfold: floating point only, got int32",
            ),
        ),
    ),
    OpCase(
        "fold",
        lambda x, **options: tw.fold(x, IMAGE, **options),
        fold,
        fold_arguments,
        {"float16": 9.0, "bfloat16": 9.0, "float32": 9.0, "float64": 9.0},
        same,
        lambda x, **options: fold(np.abs(x), **options),
        variants=({"kernel_size": 3},),
        signed_zero=False,
        differentiable=(0,),
        smooth=lambda rng: [(rng.normal(size=shape),) for shape in ((2, 18, 30), (9, 30))],
        gradient_tolerance=16,
        errors=(
            ErrorInput(
                lambda: tw.fold(tw.ones((1, 10, 30)), IMAGE, 3),
                ValueError,
                "fold: the kernel's 9 elements do not divide the 10 rows of input (1, 10, 30)",
            ),
            ErrorInput(
                lambda: tw.fold(tw.ones((1, 9, 31)), IMAGE, 3),
                ValueError,
                "fold: output_size (7, 8) has 30 windows, but input (1, 9, 31) has 31",
            ),
        ),
    ),
)
