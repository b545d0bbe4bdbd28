"""Records of images of another size and at other places, by matrices and sums in NumPy."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import FLOATS
from cases.generators import same, values
from cases.record import Arrays, ErrorInput, OpCase

NARROW = {"float16": 1.0, "bfloat16": 1.0}

# ---- resample ----


def cubic(x: float, a: float) -> float:
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def matrix(n: int, size: int, mode: str, align_corners: bool, antialias: bool) -> np.ndarray:
    """What each element along an axis counts in each one of the result."""
    m = np.zeros((size, n))
    step = (n - 1) / max(size - 1, 1) if align_corners else n / size
    for j in range(size):
        if mode.startswith("nearest"):
            at = (j + 0.5) * n / size if mode == "nearest-exact" else j * n / size
            m[j, min(int(at + 1e-9), n - 1)] = 1
            continue
        place = j * step if align_corners else (j + 0.5) * step - 0.5
        reach = 2 if mode == "bicubic" else 1
        if antialias:
            wide = max(step, 1.0)
            center = (j + 0.5) * step
            for i in range(n):
                inside = int(center - reach * wide + 0.5) <= i < int(center + reach * wide + 0.5)
                x = (i - center + 0.5) / wide
                w = cubic(x, -0.5) if reach == 2 else max(0.0, 1 - abs(x))
                m[j, i] = w if inside else 0
            m[j] /= m[j].sum()
            continue
        low = int(np.floor(place))
        for i in range(low - 1, low + 3):
            w = cubic(place - i, -0.75) if reach == 2 else max(0.0, 1 - abs(place - i))
            m[j, min(max(i, 0), n - 1)] += w
    return m


def matrices(x: np.ndarray, size: Any, mode: str, options: dict[str, Any]) -> Any:
    """By axis, counted from the last."""
    given = (options.get("align_corners", False), options.get("antialias", False))
    for axis, m in enumerate(size, -len(size)):
        yield axis, matrix(x.shape[axis], m, mode, *given)


def resample(x: np.ndarray, size: Any, mode: str = "nearest", **options: Any) -> np.ndarray:
    for axis, m in matrices(x, size, mode, options):
        x = np.moveaxis(np.tensordot(x, m.astype(x.dtype), (axis, 1)), -1, axis)
    return x


def of_all_sizes(x: np.ndarray, size: Any, mode: str = "nearest", **options: Any) -> np.ndarray:
    """The same of absolute elements and weights."""
    x = np.abs(x)
    for axis, m in matrices(x, size, mode, options):
        x = np.moveaxis(np.tensordot(x, np.abs(m).astype(x.dtype), (axis, 1)), -1, axis)
    return x + 1.0


def resampled(x: tw.Tensor, size: Any, mode: str = "nearest", **options: Any) -> tw.Tensor:
    """Of the last axes, all others as a batch."""
    lead, space = x.shape[: -len(size)], x.shape[-len(size) :]
    y = tw._core.resample(x.reshape((math.prod(lead), 1, *space)), size, mode, **options)
    return y.reshape((*lead, *size))


def images(*shapes: tuple[int, ...]) -> Any:
    return lambda rng, dtype: [(values(rng, dtype, (-9, 9), shape),) for shape in shapes]


LINES = tuple(
    {"size": size, "mode": mode, **options}
    for mode, options in (
        ("nearest", {}),
        ("nearest-exact", {}),
        ("linear", {}),
        ("linear", {"align_corners": True}),
    )
    for size in ((37,), (3,))
)
PLANES = tuple(
    {"size": size, "mode": mode, **options}
    for mode in ("bilinear", "bicubic")
    for options in ({}, {"align_corners": True}, {"antialias": True})
    for size in ((9, 4), (3, 21))
)
VOLUMES = (
    {"size": (4, 2, 9), "mode": "trilinear"},
    {"size": (2, 5, 3), "mode": "nearest"},
)

RESAMPLE = OpCase(
    "resample",
    resampled,
    resample,
    images((2, 3, 5, 7), (1, 2, 1, 1, 40), (0, 3, 2, 5)),
    {**NARROW, "float32": 32.0, "float64": 100.0},
    same,
    of_all_sizes,
    (*LINES, *PLANES, *VOLUMES),
    signed_zero=False,
    differentiable=(0,),
    smooth=lambda rng: images((1, 2, 3, 4))(rng, "float64"),
    gradient_tolerance=64,
    errors=(
        ErrorInput(
            lambda: tw._core.resample(tw.ones((2, 3)), (2, 2)), ValueError, "resample: input"
        ),
    ),
)

# ---- grid_sample ----


def places(grid: np.ndarray, n: int, padding: str, align: bool) -> np.ndarray:
    at = (grid + 1) / 2 * (n - 1) if align else ((grid + 1) * n - 1) / 2
    if padding == "reflection":
        low, high = (0, n - 1) if align else (-0.5, n - 0.5)
        for _ in range(8):
            at = np.where(at < low, 2 * low - at, at)
            at = np.where(at > high, 2 * high - at, at)
    return at if padding == "zeros" else np.clip(at, 0, n - 1)


def grid_sample(
    x: np.ndarray,
    grid: np.ndarray,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> np.ndarray:
    space = x.shape[2:]
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    at = [
        places(grid[..., -1 - axis], n, padding_mode, align_corners) for axis, n in enumerate(space)
    ]
    for batch in range(x.shape[0]):
        for corner in product((0, 1), repeat=len(space)):
            weight, index, valid = 1.0, [], True
            for axis, n in enumerate(space):
                own = at[axis][batch]
                if mode == "nearest":
                    i, w = np.round(own), np.full(own.shape, float(corner[axis] == 0))
                else:
                    i = np.floor(own) + corner[axis]
                    w = 1 - np.abs(own - i)
                valid = valid & (i >= 0) & (i < n)
                index.append(np.clip(i, 0, n - 1).astype(int))
                weight = weight * w
            y[batch] += np.where(valid, x[batch][(slice(None), *index)] * weight, 0)
    return y


def samples(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    shapes = (((2, 3, 5, 7), (2, 4, 6, 2)), ((1, 2, 3, 4, 5), (1, 2, 3, 4, 3)))
    return [(values(rng, dtype, (-3, 3), a), values(rng, dtype, (-1.4, 1.4), b)) for a, b in shapes]


def affine_grid(theta: np.ndarray, size: Any, align_corners: bool = False) -> np.ndarray:
    axes = [
        np.linspace(-1, 1, n) * (1 if align_corners else (n - 1) / n) if n > 1 else np.zeros(1)
        for n in size[2:]
    ]
    grids = np.meshgrid(*axes, indexing="ij")[::-1]
    base = np.stack([*grids, np.ones(size[2:])], axis=-1)
    return np.einsum("...k,nik->n...i", base, theta)


# ---- shuffles ----


def pixel_shuffle(x: np.ndarray, upscale_factor: int) -> np.ndarray:
    r = upscale_factor
    *lead, c, h, w = x.shape
    y = np.zeros((*lead, c // (r * r), h * r, w * r), x.dtype)
    for i, j in product(range(r), repeat=2):
        y[..., i::r, j::r] = x[..., i * r + j :: r * r, :, :]
    return y


def pixel_unshuffle(x: np.ndarray, downscale_factor: int) -> np.ndarray:
    r = downscale_factor
    *lead, c, h, w = x.shape
    y = np.zeros((*lead, c * r * r, h // r, w // r), x.dtype)
    for i, j in product(range(r), repeat=2):
        y[..., i * r + j :: r * r, :, :] = x[..., i::r, j::r]
    return y


def channel_shuffle(x: np.ndarray, groups: int) -> np.ndarray:
    each = x.shape[1] // groups
    return x[:, [g * each + i for i in range(each) for g in range(groups)]]


def moved(name: str, reference: Any, option: str, bad: str) -> OpCase:
    call = getattr(tw, name)
    return OpCase(
        name,
        call,
        reference,
        images((2, 8, 4, 6), (1, 4, 2, 2), (0, 4, 2, 2)),
        dict.fromkeys(("bool", "int32", *FLOATS), 0.0),
        same,
        variants=({option: 2}, {option: 1}),
        differentiable=(0,),
        smooth=lambda rng: images((1, 4, 2, 2))(rng, "float64"),
        gradient_tolerance=4,
        errors=(
            ErrorInput(lambda: call(tw.ones((2, 8)), 2), ValueError, f"{name}: input must be"),
            ErrorInput(lambda: call(tw.ones((1, 3, 3, 3)), 2), ValueError, bad),
        ),
    )


def local_response_norm(
    x: np.ndarray, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> np.ndarray:
    pads = [(0, 0)] * x.ndim
    pads[1] = (size // 2, (size - 1) // 2)
    squares = np.pad(x * x, pads)
    total = sum(squares[:, i : i + x.shape[1]] for i in range(size))
    return x / (k + alpha * total / size) ** beta


RECORDS = (
    moved("pixel_shuffle", pixel_shuffle, "upscale_factor", "no multiple of upscale_factor"),
    moved("pixel_unshuffle", pixel_unshuffle, "downscale_factor", "no multiples of downscale"),
    moved("channel_shuffle", channel_shuffle, "groups", "cannot be split in 2 groups"),
    OpCase(
        "local_response_norm",
        tw.local_response_norm,
        local_response_norm,
        images((2, 7, 5), (1, 3, 4, 9), (0, 2, 3)),
        {"float16": 2.0, "bfloat16": 2.0, "float32": 16.0, "float64": 16.0},
        same,
        variants=({"size": 3, "alpha": 0.3}, {"size": 2, "k": 2.0, "beta": 0.5}, {"size": 1}),
        differentiable=(0,),
        smooth=lambda rng: images((1, 3, 2))(rng, "float64"),
        gradient_tolerance=32,
        errors=(
            ErrorInput(
                lambda: tw.local_response_norm(tw.ones((2, 3)), 2),
                ValueError,
                "local_response_norm: input must be",
            ),
            ErrorInput(
                lambda: tw.local_response_norm(tw.ones((2, 3, 4)), 0),
                ValueError,
                "size must be above 0",
            ),
        ),
    ),
    RESAMPLE,
    OpCase(
        "grid_sample",
        tw.grid_sample,
        grid_sample,
        samples,
        {"float32": 400.0, "float64": 400.0},
        same,
        lambda x, grid, **_: np.full((*x.shape[:2], *grid.shape[1:-1]), 3.0),
        tuple(
            {"mode": mode, "padding_mode": padding, "align_corners": align}
            for mode in ("bilinear",)
            for padding in ("zeros", "border", "reflection")
            for align in (False, True)
        ),
        signed_zero=False,
        differentiable=(0, 1),
        smooth=lambda rng: [
            (rng.uniform(-2, 2, (1, 2, 3, 4)), rng.uniform(-0.15, 0.15, (1, 2, 2, 2)) + 0.3)
        ],
        gradient_tolerance=400,
        errors=(
            ErrorInput(
                lambda: tw.grid_sample(tw.ones((2, 3)), tw.ones((2, 3))),
                ValueError,
                "grid_sample: input must be",
            ),
        ),
    ),
    OpCase(
        "affine_grid",
        tw.affine_grid,
        affine_grid,
        lambda rng, dtype: [(values(rng, dtype, (-2, 2), (2, 2, 3)),)],
        {"float32": 8.0, "float64": 8.0},
        same,
        lambda theta, size, **_: np.full((size[0], *size[2:], len(size) - 2), 6.0),
        ({"size": (2, 1, 3, 4)}, {"size": (2, 1, 1, 5), "align_corners": True}),
        signed_zero=False,
        differentiable=(0,),
        smooth=lambda rng: [(rng.normal(size=(2, 2, 3)),)],
        gradient_tolerance=16,
        errors=(
            ErrorInput(
                lambda: tw.affine_grid(tw.ones((2, 3)), (2, 1, 3, 4)), ValueError, "theta must be"
            ),
        ),
    ),
)
