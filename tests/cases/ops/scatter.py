"""Records of ops that move elements by an index along an axis, or by a mask."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce as fold
from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import FLOATS
from cases.generators import WHOLE, exact, floats, same, values
from cases.ops.shapes import WIDE, record, refused
from cases.record import Arrays, ErrorInput, OpCase

x23 = tw.ones((2, 3))
i22 = tw.asarray([[0, 2], [1, 1]])


# ---- an index for each element, along axis 1 ----


def moved(
    index_shapes: tuple[tuple[tuple[int, ...], ...], ...], domain: tuple[float, float] = WIDE
) -> Callable[[np.random.Generator, str], list[Arrays]]:
    """x, an index into axis 1 of x, and values for it."""

    def make(rng: np.random.Generator, dtype: str) -> list[Arrays]:
        return [
            (
                values(rng, dtype, domain, x),
                rng.integers(-x[1], x[1], index),
                values(rng, dtype, domain, src),
            )
            for x, index, src in index_shapes
        ]

    return make


SHAPES = (
    ((2, 4, 5), (2, 7, 3), (2, 7, 3)),
    ((3, 4), (3, 9), (4, 11)),
    ((2, 4), (0, 3), (1, 3)),
    ((1, 1), (1, 40), (1, 40)),
)


def smooth(rng: np.random.Generator) -> list[Arrays]:
    return [
        (rng.normal(size=x), rng.integers(-x[1], x[1], i), rng.normal(size=s))
        for x, i, s in (((2, 3), (2, 4), (3, 5)), ((1, 3, 2), (1, 2, 2), (1, 2, 2)))
    ]


def joined(x: np.ndarray, index: np.ndarray, src: np.ndarray, join: Any) -> np.ndarray:
    y = x.copy()
    for place in np.ndindex(index.shape):
        to = (place[0], index[place], *place[2:])
        y[to] = join(y[to], src[place])
    return y


def written(x: np.ndarray, index: np.ndarray, src: np.ndarray) -> np.ndarray:
    return joined(x, index, src, lambda _, b: b)


def added(x: np.ndarray, index: np.ndarray, src: np.ndarray) -> np.ndarray:
    return joined(x, index, src, lambda a, b: a + b)


JOINS: dict[str, Any] = {
    "sum": lambda a, b: a + b,
    "prod": lambda a, b: a * b,
    "mean": lambda a, b: a + b,
    "amax": max,
    "amin": min,
}


def reduced(
    x: np.ndarray, index: np.ndarray, src: np.ndarray, reduce: str, include_self: bool = True
) -> np.ndarray:
    y = x.copy()
    lists: dict[tuple[int, ...], list[Any]] = {}
    for place in np.ndindex(index.shape):
        to = (place[0], int(index[place]) % x.shape[1], *place[2:])
        lists.setdefault(to, [x[to]] if include_self else []).append(src[place])
    for to, found in lists.items():
        total = fold(JOINS[reduce], found)
        if reduce == "mean":
            total = total // len(found) if x.dtype.kind in "iu" else total / len(found)
        y[to] = total
    return y


def refusals(name: str, *more: object) -> tuple[ErrorInput, ...]:
    function = getattr(tw, name)

    def call(index: tw.Tensor, src: Any = x23, axis: int = 1) -> Callable[[], object]:
        return lambda: function(x23, axis, index, src, *more)

    return (
        refused(
            call(tw.asarray([[3], [0]])),
            IndexError,
            f"{name}: index 3 is out of range for axis 1 with size 3",
        ),
        refused(call(tw.asarray([[0], [-4]])), IndexError, f"{name}: index -4 is out of range"),
        refused(call(x23), IndexError, f"{name}: index must be integers, got float32"),
        refused(call(i22, axis=2), IndexError, f"{name}: axis 2"),
        refused(
            call(tw.asarray([[0]] * 3)),
            ValueError,
            f"{name}: index (3, 1) does not fit x (2, 3): it needs as many axes, none but axis 1 "
            "longer",
        ),
        refused(call(i22, x23[:, :1]), ValueError, f"{name}: index (2, 2) does not fit src (2, 1)"),
        refused(
            call(i22, x23.astype(tw.float64)),
            TypeError,
            f"{name}: src is float64, but x is float32; convert one of them with astype",
        ),
    )


# ---- an index for each part along an axis ----


def parts(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [
        (
            values(rng, dtype, WIDE, x),
            rng.integers(-x[1], x[1], n),
            values(rng, dtype, WIDE, (x[0], n, *x[2:])),
        )
        for x, n in (((2, 4, 5), 7), ((3, 6), 2), ((2, 3, 0), 2), ((2, 3), 0))
    ]


def smooth_parts(rng: np.random.Generator) -> list[Arrays]:
    return [(a, i, b) for a, i, b in parts(rng, "float64")[1:2]]


def at_parts(x: np.ndarray, index: np.ndarray, source: np.ndarray, add: bool) -> np.ndarray:
    y = x.copy()
    for i, place in enumerate(index):
        y[:, place] = y[:, place] + source[:, i] if add else source[:, i]
    return y


def index_refusals(name: str, *more: Any) -> tuple[ErrorInput, ...]:
    function = getattr(tw, name)
    return (
        refused(
            lambda: function(x23, 1, tw.asarray([0, 3]), *more),
            IndexError,
            f"{name}: index 3 is out of range for axis 1 with size 3",
        ),
        refused(
            lambda: function(x23, 1, tw.ones((2,)), *more), IndexError, "index must be integers"
        ),
        refused(lambda: function(x23, 1, i22, *more), ValueError, "index must have one axis"),
        refused(lambda: function(x23, -3, tw.asarray([0, 1]), *more), IndexError, "axis -3"),
    )


def source_refusals(name: str) -> tuple[ErrorInput, ...]:
    function = getattr(tw, name)
    index = tw.asarray([0, 1])
    return (
        *index_refusals(name, tw.ones((2, 2))),
        refused(
            lambda: function(x23, 1, index, x23),
            ValueError,
            f"{name}: source (2, 3) must have shape (2, 2)",
        ),
        refused(
            lambda: function(x23, 1, index, tw.ones((2, 2), dtype=tw.int64)),
            TypeError,
            f"{name}: source is int64, but x is float32",
        ),
    )


# ---- masks ----


def masked(
    *shapes: tuple[tuple[int, ...], tuple[int, ...]],
) -> Callable[[np.random.Generator, str], list[Arrays]]:
    def make(rng: np.random.Generator, dtype: str) -> list[Arrays]:
        return [
            (values(rng, dtype, WIDE, x), rng.integers(0, 2, mask).astype(bool))
            for x, mask in shapes
        ]

    return make


MASKS = (((3, 17), (3, 17)), ((4, 5), (5,)), ((5,), (4, 1)), ((2, 0), (1, 1)))


def masked_with_source(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [(x, mask, values(rng, dtype, WIDE, (5, 12))) for x, mask in masked(*MASKS)(rng, dtype)]


def scattered_by_mask(x: np.ndarray, mask: np.ndarray, source: np.ndarray) -> np.ndarray:
    x, mask = (np.array(a) for a in np.broadcast_arrays(x, mask))
    x[mask] = source.reshape(-1)[: mask.sum()]
    return x


def smooth_masks(rng: np.random.Generator) -> list[Arrays]:
    return masked(((2, 3), (2, 3)), ((3,), (2, 1)))(rng, "float64")


# ---- parts of an axis ----


def sliced(x: np.ndarray, src: np.ndarray) -> np.ndarray:
    y = x.copy()
    y[:, 1:-1:2] = src
    return y


def selected(x: np.ndarray, src: np.ndarray) -> np.ndarray:
    y = x.copy()
    y[:, -2] = src
    return y


def pairs(
    *shapes: tuple[tuple[int, ...], tuple[int, ...]],
) -> Callable[[np.random.Generator, str], list[Arrays]]:
    def make(rng: np.random.Generator, dtype: str) -> list[Arrays]:
        return [tuple(values(rng, dtype, WIDE, shape) for shape in both) for both in shapes]

    return make


def along(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [
        (values(rng, dtype, WIDE, x), rng.integers(-4, 4, i))
        for x, i in (
            ((2, 4, 5), (2, 7, 5)),
            ((3, 4), (1, 3)),
            ((1, 4, 1), (3, 5, 2)),
            ((2, 4), (2, 0)),
        )
    ]


def taken(x: np.ndarray, index: np.ndarray) -> np.ndarray:
    rest = np.broadcast_shapes(*((a.shape[0], 1, *a.shape[2:]) for a in (x, index)))
    shapes = ((rest[0], a.shape[1], *rest[2:]) for a in (x, index))
    return np.take_along_axis(*map(np.broadcast_to, (x, index), shapes), 1)


CUBES = ((2, 3, 4), (5, 3, 1), (3, 4, 0))

RECORDS = (
    record(
        "take_along_axis",
        lambda x, i: tw.take_along_axis(x, i, axis=1),
        taken,
        (),
        refused(
            lambda: tw.take_along_axis(x23, tw.asarray([[3]])),
            IndexError,
            "take_along_axis: index 3 is out of range for axis 1 with size 3",
        ),
        refused(
            lambda: tw.take_along_axis(x23, tw.asarray([0])),
            ValueError,
            "take_along_axis: indices (1,) must have as many axes as x (2, 3)",
        ),
        refused(
            lambda: tw.take_along_axis(x23, tw.asarray([[0]] * 3)), ValueError, "take_along_axis"
        ),
        refused(
            lambda: tw.take_along_axis(x23, x23), IndexError, "index must be integers, got float32"
        ),
        arguments=along,
        smooth=lambda rng: along(rng, "float64")[1:3],
    ),
    record(
        "scatter",
        lambda x, i, s: tw.scatter(x, 1, i, s),
        written,
        (),
        *refusals("scatter"),
        arguments=moved(SHAPES),
        smooth=smooth,
        differentiable=(0, 2),
    ),
    OpCase(
        "scatter_add",
        lambda x, i, s: tw.scatter_add(x, 1, i, s),
        added,
        moved(SHAPES),
        {**exact("bool"), **WHOLE, **floats(8, 8), "complex64": 8, "complex128": 8},
        same,
        scale=lambda x, i, s: added(np.abs(x), i, np.abs(s)),
        differentiable=(0, 2),
        smooth=smooth,
        gradient_tolerance=8,
        errors=refusals("scatter_add"),
    ),
    OpCase(
        "scatter_reduce",
        lambda x, i, s, **options: tw.scatter_reduce(x, 1, i, s, **options),
        reduced,
        moved(SHAPES[:3], (-3, 3)),
        {**WHOLE, **floats(8, 8)},
        same,
        scale=lambda x, i, s, **options: reduced(np.abs(x), i, np.abs(s), **options),
        variants=tuple(
            {"reduce": reduce, **extra}
            for reduce in JOINS
            for extra in ({}, {"include_self": False})
        ),
        differentiable=(0, 2),
        smooth=smooth,
        gradient_tolerance=16,
        errors=(
            *refusals("scatter_reduce", "sum"),
            refused(
                lambda: tw.scatter_reduce(x23, 1, i22, x23, "max"),
                ValueError,
                "scatter_reduce: reduce must be 'sum', 'prod', 'mean', 'amax' or 'amin', got 'max'",
            ),
            refused(
                lambda: tw.scatter_reduce(x23.astype(tw.complex64), 1, i22, 1.0, "amax"),
                TypeError,
                "scatter_reduce: complex numbers have no order",
            ),
            refused(
                lambda: tw.scatter_reduce(x23 > 0, 1, i22, True, "mean"),
                TypeError,
                "scatter_reduce: truth values have no mean",
            ),
        ),
    ),
    record(
        "index_select",
        lambda x, i: tw.index_select(x, 1, i),
        lambda x, i: np.take(x, i, 1),
        (),
        *index_refusals("index_select"),
        arguments=lambda rng, dtype: [args[:2] for args in parts(rng, dtype)],
        smooth=lambda rng: [args[:2] for args in smooth_parts(rng)],
    ),
    OpCase(
        "index_add",
        lambda x, i, s, alpha=1: tw.index_add(x, 1, i, s, alpha=alpha),
        lambda x, i, s, alpha=1: at_parts(x, i, alpha * s, True),
        parts,
        {**WHOLE, **dict.fromkeys((*FLOATS, "complex64", "complex128"), 8.0)},
        same,
        scale=lambda x, i, s, alpha=1: at_parts(np.abs(x), i, np.abs(alpha * s), True),
        variants=({}, {"alpha": 3}),
        differentiable=(0, 2),
        smooth=smooth_parts,
        gradient_tolerance=16,
        errors=source_refusals("index_add"),
    ),
    record(
        "index_copy",
        lambda x, i, s: tw.index_copy(x, 1, i, s),
        lambda x, i, s: at_parts(x, i, s, False),
        (),
        *source_refusals("index_copy"),
        arguments=parts,
        smooth=smooth_parts,
        differentiable=(0, 2),
    ),
    record(
        "index_fill",
        lambda x, i: tw.index_fill(x, 1, i, 1),
        lambda x, i: at_parts(x, i, np.ones((1, len(i)), x.dtype), False),
        (),
        *index_refusals("index_fill", 2.0),
        refused(
            lambda: tw.index_fill(x23, 1, tw.asarray([0]), tw.ones((1,))),
            ValueError,
            "index_fill: value must be a number or a 0-d tensor, got (1,)",
        ),
        refused(
            lambda: tw.index_fill(x23.astype(tw.int8), 1, tw.asarray([0]), 300),
            OverflowError,
            "300 does not fit int8",
        ),
        arguments=lambda rng, dtype: [args[:2] for args in parts(rng, dtype)],
        smooth=lambda rng: [args[:2] for args in smooth_parts(rng)],
    ),
    record(
        "masked_fill",
        lambda x, mask: tw.masked_fill(x, mask, 1),
        lambda x, mask: np.where(mask, x.dtype.type(1), x),
        (),
        refused(
            lambda: tw.masked_fill(x23, x23, 0.0),
            TypeError,
            "masked_fill: mask must be bool, got float32",
        ),
        refused(
            lambda: tw.masked_fill(x23, x23 > 0, tw.ones((3,))),
            ValueError,
            "masked_fill: value must be a number or a 0-d tensor, got (3,)",
        ),
        arguments=masked(*MASKS),
        smooth=smooth_masks,
    ),
    record(
        "masked_scatter",
        tw.masked_scatter,
        scattered_by_mask,
        (),
        refused(
            lambda: tw.masked_scatter(x23, x23 > 0, tw.ones((5,))),
            ValueError,
            "masked_scatter: the mask selects more elements than source has",
        ),
        refused(
            lambda: tw.masked_scatter(x23, x23 > 0, tw.ones((0,))),
            ValueError,
            "masked_scatter: the mask selects more elements than source has",
        ),
        refused(lambda: tw.masked_scatter(x23, x23, x23), TypeError, "mask must be bool"),
        refused(
            lambda: tw.masked_scatter(x23, x23 > 0, tw.ones((6,), dtype=tw.float64)),
            TypeError,
            "masked_scatter: source is float64, but x is float32",
        ),
        arguments=masked_with_source,
        smooth=lambda rng: [(x, mask, rng.normal(size=(7,))) for x, mask in smooth_masks(rng)],
        differentiable=(0, 2),
    ),
    record(
        "select",
        lambda x: tw.select(x, 1, -2),
        lambda x: x[:, -2],
        CUBES,
        refused(
            lambda: tw.select(x23, 1, 3),
            IndexError,
            "select: index 3 is out of range for axis 1 with size 3",
        ),
        refused(lambda: tw.select(x23, 2, 0), IndexError, "select: axis 2"),
        refused(
            lambda: tw.select(tw.ones(()), 0, 0), ValueError, "select: a 0-d tensor has no axis"
        ),
    ),
    record(
        "narrow",
        lambda x: tw.narrow(x, 1, 1, 2),
        lambda x: x[:, 1:3],
        CUBES,
        refused(
            lambda: tw.narrow(x23, 1, 4, 0),
            IndexError,
            "narrow: start 4 is out of range for axis 1 with size 3",
        ),
        refused(
            lambda: tw.narrow(x23, 1, -1, 2),
            ValueError,
            "narrow: length 2 from 2 on does not fit axis 1 with size 3",
        ),
        refused(lambda: tw.narrow(x23, 0, 0, -1), ValueError, "narrow: length -1"),
    ),
    record(
        "select_scatter",
        lambda x, src: tw.select_scatter(x, src, 1, -2),
        selected,
        (),
        refused(
            lambda: tw.select_scatter(x23, x23, 1, 0),
            ValueError,
            "select_scatter: src (2, 3) must have shape (2,)",
        ),
        refused(lambda: tw.select_scatter(x23, tw.ones((2,)), 1, 3), IndexError, "index 3"),
        arguments=pairs(((2, 3, 4), (2, 4)), ((4, 5), (4,)), ((2, 3, 0), (2, 0))),
        smooth=lambda rng: pairs(((2, 3), (2,)))(rng, "float64"),
        differentiable=(0, 1),
    ),
    record(
        "slice_scatter",
        lambda x, src: tw.slice_scatter(x, src, 1, 1, -1, 2),
        sliced,
        (),
        refused(
            lambda: tw.slice_scatter(x23, x23, 1, 1),
            ValueError,
            "slice_scatter: src (2, 3) must have shape (2, 2)",
        ),
        refused(
            lambda: tw.slice_scatter(x23, x23, step=0),
            ValueError,
            "slice_scatter: step must be at least 1, got 0",
        ),
        arguments=pairs(((2, 5, 4), (2, 2, 4)), ((4, 8), (4, 3)), ((3, 2), (3, 0))),
        smooth=lambda rng: pairs(((2, 5), (2, 2)))(rng, "float64"),
        differentiable=(0, 1),
    ),
)
