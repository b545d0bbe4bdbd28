"""Records of sorts, selections, quantiles, searches and counts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import FLOATS, INTEGERS, rounded
from cases.generators import exact, floating, same, special_values, values
from cases.record import Arrays, ErrorInput, OpCase

ORDERED = exact("bool", *INTEGERS, *FLOATS)
SHAPES = ((67,), (3, 5), (1,), (4, 1, 90))
WITH_NONE = (*SHAPES, (2, 0, 3))


def of_shapes(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator, str], list[Arrays]]:
    """Elements that are equal in places, and such that hardly are."""

    def make(rng: np.random.Generator, dtype: str) -> list[Arrays]:
        few = [(rounded(np.round(values(rng, dtype, (-4, 4), s)), dtype),) for s in shapes]
        return [*few, *((values(rng, dtype, (-1e4, 1e4), s),) for s in shapes)]

    return make


def with_nan(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    arguments = of_shapes((67,), (5, 9), (2, 3, 40))(rng, dtype)
    if dtype in FLOATS:
        for (x,) in arguments:
            x[..., 1::3] = np.nan
    return arguments


def apart(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], list[Arrays]]:
    """No two elements are as close as a finite difference."""

    def make(rng: np.random.Generator) -> list[Arrays]:
        return [
            ((rng.permutation(int(np.prod(s))) + rng.uniform(0, 0.5, int(np.prod(s)))).reshape(s),)
            for s in shapes
        ]

    return make


def refused(call: Callable[[], object], expected: type[Exception], text: str) -> ErrorInput:
    return ErrorInput(call, expected, text)


def places(dtype: str) -> str:
    return "int64"


# ---- references ----


def ordered(x: np.ndarray, axis: int = -1, descending: bool = False) -> np.ndarray:
    y = np.sort(x, axis=axis)
    return np.flip(y, axis) if descending else y


def order(x: np.ndarray, axis: int = -1, descending: bool = False) -> np.ndarray:
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    behind = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - behind, axis)


def first(x: np.ndarray, axis: int = -1, largest: bool = True) -> np.ndarray:
    return np.take(ordered(x, axis, largest), [0], axis=axis)


def lower(row: np.ndarray) -> Any:
    return row[(row.size - 1) // 2]


def mean_of_middle(row: np.ndarray) -> Any:
    below, above = lower(row), row[row.size // 2]
    return below if below == above else below / 2 + above / 2


def median(of: Callable[[np.ndarray], Any]) -> Callable[..., np.ndarray]:
    def reference(x: np.ndarray, axis: int | None = None, keepdims: bool = False) -> np.ndarray:
        def middle(row: np.ndarray) -> Any:
            row = np.sort(row)
            return row[-1] if np.isnan(row[-1]) else of(row)

        return along(middle, x, axis, keepdims)

    return reference


def nanmedian(of: Callable[[np.ndarray], Any]) -> Callable[..., np.ndarray]:
    def reference(x: np.ndarray, axis: int | None = None, keepdims: bool = False) -> np.ndarray:
        def middle(row: np.ndarray) -> Any:
            numbers = np.sort(row[~np.isnan(row)])
            return of(numbers) if numbers.size else np.nan

        return along(middle, x, axis, keepdims)

    return reference


def along(
    function: Callable[[np.ndarray], Any], x: np.ndarray, axis: int | None, keepdims: bool
) -> np.ndarray:
    if axis is None:
        y = np.asarray(function(x.reshape(-1)))
        return y.reshape((1,) * x.ndim) if keepdims else y
    y = np.apply_along_axis(function, axis, x)
    return np.expand_dims(y, axis) if keepdims else y


def quantiles(nan: bool) -> Callable[..., np.ndarray]:
    function = np.nanquantile if nan else np.quantile

    def reference(x: np.ndarray, interpolation: str = "linear", **options: Any) -> np.ndarray:
        with warnings.catch_warnings():  # of rows that are all NaN
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.asarray(function(x, 0.3, method=interpolation, **options))

    return reference


def magnitude(x: np.ndarray, **options: Any) -> np.ndarray:
    return np.max(np.nan_to_num(np.abs(x)))


# ---- records ----

x23 = tw.ones((2, 3))
AXES = ({}, {"axis": 0, "descending": True}, {"axis": -1})
REDUCED = ({}, {"axis": 0, "keepdims": True}, {"axis": -1})


def sorts(name: str, reference: Any, result: Any, differentiable: tuple[int, ...]) -> OpCase:
    function = getattr(tw, name)
    return OpCase(
        name,
        (lambda x, **options: function(x, **options)[0])
        if name == "sort_with_indices"
        else function,
        reference,
        of_shapes(*WITH_NONE),
        ORDERED,
        result,
        variants=AXES,
        special=special_values(1),
        signed_zero=False,
        differentiable=differentiable,
        smooth=apart((7,), (3, 4)),
        gradient_tolerance=4,
        errors=(
            refused(lambda: function(x23, axis=2), IndexError, f"{name}: axis 2 is out of range"),
            refused(
                lambda: function(tw.ones((2,), dtype=tw.complex64)),
                TypeError,
                f"{name}: complex numbers have no order",
            ),
        ),
    )


def one_of_all(name: str, reference: Any, arguments: Any) -> OpCase:
    function = getattr(tw, name)
    return OpCase(
        name,
        function,
        reference,
        arguments,
        dict.fromkeys(ORDERED, 0.5),
        floating,
        variants=REDUCED,
        differentiable=(0,),
        smooth=apart((7,), (3, 4)),
        gradient_tolerance=4,
        errors=(
            refused(lambda: function(x23, axis=2), IndexError, f"{name}: axis 2 is out of range"),
            refused(lambda: function(tw.ones((2, 0)), axis=1), ValueError, f"{name}: no elements"),
            refused(
                lambda: function(tw.ones((2,), dtype=tw.complex64)),
                TypeError,
                f"{name}: complex numbers have no order",
            ),
        ),
    )


def one_along(name: str, reference: Any) -> OpCase:
    function = getattr(tw, name)
    return OpCase(
        name,
        lambda x, **options: function(x, **options)[0],
        lambda x, axis=-1, keepdims=False: reference(x, axis=axis, keepdims=keepdims),
        with_nan if name.startswith("nan") else of_shapes(*SHAPES),
        ORDERED,
        same,
        variants=REDUCED,
        differentiable=(0,),
        smooth=apart((7,), (3, 4)),
        gradient_tolerance=4,
        errors=(
            refused(lambda: function(x23, axis=2), IndexError, "axis 2 is out of range"),
            refused(lambda: function(tw.ones((2, 0)), axis=1), ValueError, f"{name}: no elements"),
            refused(
                lambda: function(tw.ones((2,), dtype=tw.complex64)),
                TypeError,
                f"{name}: complex numbers have no order",
            ),
        ),
    )


# What is found, and what its index is held to in test_order.py.
ALONG = {"max": np.max, "min": np.min, "median": median(lower), "nanmedian": nanmedian(lower)}


def share(name: str, nan: bool, arguments: Any) -> OpCase:
    function = getattr(tw, name)
    return OpCase(
        name,
        lambda x, **options: function(x, 0.3, **options),
        quantiles(nan),
        arguments,
        {"float16": 1, "bfloat16": 1, "float32": 2, "float64": 2},
        same,
        scale=magnitude,
        variants=(
            {},
            {"axis": 0, "keepdims": True},
            *({"interpolation": how} for how in ("lower", "higher", "midpoint", "nearest")),
            {"axis": -1},
        ),
        differentiable=(0,),
        smooth=apart((8,), (3, 4)),
        gradient_tolerance=8,
        errors=(
            refused(lambda: function(x23, 1.5), ValueError, f"{name}: q must be from 0 to 1"),
            refused(
                lambda: function(x23, tw.asarray([0.5, -0.1])), ValueError, "q must be from 0 to 1"
            ),
            refused(lambda: function(x23, 0.5, axis=2), IndexError, f"{name}: axis 2"),
            refused(lambda: function(tw.ones((2, 0)), 0.5), ValueError, f"{name}: no elements"),
            refused(
                lambda: function(tw.ones((2,), dtype=tw.int64), 0.5),
                TypeError,
                f"{name}: needs a floating-point input, got int64",
            ),
            refused(
                lambda: function(x23, 0.5, interpolation="cubic"),
                ValueError,
                f"{name}: interpolation must be 'linear'",
            ),
        ),
    )


def searched(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    few = [values(rng, dtype, (-9, 9), s) for s in ((40,), (1,), (0,), (300,))]
    return [
        (np.sort(x), rounded(values(rng, dtype, (-10, 10), s), dtype))
        for x, s in zip(few, ((67,), (2, 3), (5,), (4, 0)), strict=True)
    ]


def bounds(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [(x, sorted_x) for sorted_x, x in searched(rng, dtype)]


def members(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [
        tuple(rounded(np.round(values(rng, dtype, (-9, 9), s)), dtype) for s in shapes)
        for shapes in (((67,), (9,)), ((3, 5), (2, 2)), ((4,), (0,)), ((2, 0), (3,)))
    ]


RECORDS: tuple[OpCase, ...] = (
    sorts("sort", ordered, same, (0,)),
    sorts("argsort", order, places, ()),
    OpCase(
        "topk",
        lambda x, **options: tw.topk(x, 1, **options)[0],
        first,
        of_shapes(*SHAPES),
        ORDERED,
        same,
        variants=({}, {"axis": 0, "largest": False}, {"axis": -1}),
        special=special_values(1),
        signed_zero=False,
        differentiable=(0,),
        smooth=apart((7,), (3, 4)),
        gradient_tolerance=4,
        errors=(
            refused(lambda: tw.topk(x23, 4), ValueError, "topk: k must be from 0 to 3"),
            refused(lambda: tw.topk(x23, -1), ValueError, "topk: k must be from 0 to 3"),
            refused(lambda: tw.topk(x23, 1, axis=2), IndexError, "topk: axis 2 is out of range"),
            refused(
                lambda: tw.topk(tw.ones((2,), dtype=tw.complex64), 1),
                TypeError,
                "topk: complex numbers have no order",
            ),
        ),
    ),
    OpCase(
        "kthvalue",
        lambda x, **options: tw.kthvalue(x, 1, **options)[0],
        lambda x, axis=-1, keepdims=False: np.take(np.sort(x, axis), [0] if keepdims else 0, axis),
        of_shapes(*SHAPES),
        ORDERED,
        same,
        variants=REDUCED,
        differentiable=(0,),
        smooth=apart((7,), (3, 4)),
        gradient_tolerance=4,
        errors=(
            refused(lambda: tw.kthvalue(x23, 0), ValueError, "kthvalue: k must be from 1 to 3"),
            refused(lambda: tw.kthvalue(x23, 4), ValueError, "kthvalue: k must be from 1 to 3"),
            refused(lambda: tw.kthvalue(x23, 1, axis=2), IndexError, "kthvalue: axis 2"),
            refused(
                lambda: tw.kthvalue(tw.ones((2,), dtype=tw.complex64), 1),
                TypeError,
                "kthvalue: complex numbers have no order",
            ),
        ),
    ),
    sorts("sort_with_indices", ordered, same, (0,)),
    *(one_along(f"{name}_with_indices", reference) for name, reference in ALONG.items()),
    one_of_all("median", median(mean_of_middle), of_shapes(*SHAPES)),
    one_of_all("nanmedian", nanmedian(mean_of_middle), with_nan),
    share("quantile", False, of_shapes(*SHAPES)),
    share("nanquantile", True, with_nan),
    OpCase(
        "searchsorted",
        tw.searchsorted,
        lambda x1, x2, side="left": np.searchsorted(x1, x2, side),
        searched,
        ORDERED,
        places,
        variants=({}, {"side": "right"}),
        errors=(
            refused(
                lambda: tw.searchsorted(x23, tw.ones((3, 3))),
                ValueError,
                "searchsorted: expected sorted elements (n,)",
            ),
            refused(
                lambda: tw.searchsorted(x23[0], x23, side="left", right=True),
                ValueError,
                "searchsorted: side='left' and right=True",
            ),
            refused(
                lambda: tw.searchsorted(x23[0], x23, sorter=tw.asarray([0])),
                ValueError,
                "searchsorted: sorter (1,) does not fit (3,)",
            ),
            refused(
                lambda: tw.searchsorted(x23[0], 1j),
                TypeError,
                "searchsorted: complex numbers have no order",
            ),
        ),
    ),
    OpCase(
        "bucketize",
        tw.bucketize,
        lambda x, edges, right=False: np.searchsorted(edges, x, "right" if right else "left"),
        bounds,
        ORDERED,
        places,
        variants=({}, {"right": True}),
        errors=(
            refused(
                lambda: tw.bucketize(x23, x23),
                ValueError,
                "bucketize: expected boundaries (n,), got (2, 3)",
            ),
        ),
    ),
    OpCase(
        "isin",
        tw.isin,
        lambda x, test, invert=False: np.isin(x, test, invert=invert),
        members,
        ORDERED,
        lambda dtype: "bool",
        variants=({}, {"invert": True}),
        errors=(refused(lambda: tw.isin(x23, 1j), TypeError, "isin: complex numbers"),),
    ),
    OpCase(
        "count_nonzero",
        tw.count_nonzero,
        lambda x, axis=None, keepdims=False: np.count_nonzero(x, axis, keepdims=keepdims),
        of_shapes(*WITH_NONE),
        exact("bool", *INTEGERS, *FLOATS),
        places,
        variants=REDUCED,
        errors=(
            refused(lambda: tw.count_nonzero(x23, axis=2), IndexError, "axis 2 is out of range"),
        ),
    ),
    OpCase(
        "histc",
        lambda x: tw.histc(x, 8, -8.0, 8.0),
        lambda x: np.histogram(np.asarray(x, np.float64), 8, (-8, 8))[0],
        lambda rng, dtype: [
            (rounded(rng.normal(0, 5, s), dtype),) for s in ((300,), (4, 5), (0, 2))
        ],
        exact(*FLOATS),
        same,
        errors=(
            refused(lambda: tw.histc(x23, 0), ValueError, "histc: bins must be at least 1, got 0"),
            refused(lambda: tw.histc(x23, 4, 2.0, 1.0), ValueError, "histc: no bins between min 2"),
            refused(
                lambda: tw.histc(tw.asarray([1, 2]), 4),
                TypeError,
                "histc: needs a floating-point input, got int64",
            ),
        ),
    ),
)
