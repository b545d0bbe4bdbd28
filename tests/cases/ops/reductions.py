"""Records of the reductions. Errors of sums are measured against the sum of magnitudes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import INTEGERS, SIGNED, UNSIGNED, largest, rounded, smallest
from cases.derivatives import ROWS, RowDerivatives, no_second
from cases.generators import EXACT_FLOATS, WHOLE, same, truth, values
from cases.record import Arrays, ErrorInput, OpCase

SHAPES = ((67,), (3, 5, 4), (17, 33), (1, 1), (129, 3), (2, 3, 2, 5))
AXES: tuple[Mapping[str, Any], ...] = (
    {},
    {"axis": 0},
    {"axis": -1},
    {"axis": -1, "keepdims": True},
    {"axis": None, "keepdims": True},
)
MANY_AXES = (*AXES, {"axis": (0, -1)}, {"axis": ()})


def with_axes(reference: Callable[..., Any]) -> Callable[..., Any]:
    """Lets axis=(0, -1) of a 1-D array mean its only axis, as `call` below does."""

    def call(x: Any, **options: Any) -> Any:
        if isinstance(options.get("axis"), tuple) and x.ndim < 2:
            options["axis"] = options["axis"][:1]
        return reference(x, **options)

    return call


def arguments(domain: tuple[float, float], whole: tuple[float, float], empty: bool = True) -> Any:
    shapes = SHAPES + (((0,), (0, 3), (4, 0, 2)) if empty else ())

    def make(rng: np.random.Generator, dtype: str) -> list[Arrays]:
        chosen = whole if dtype in INTEGERS else domain
        return [(values(rng, dtype, chosen, shape),) for shape in shapes]

    return make


def special(dtype: str) -> list[Arrays]:
    """Rows with one odd value each, on both sides of a vector's end."""
    odd = [np.inf, -np.inf, np.nan, -0.0, largest(dtype), smallest(dtype)]
    rows = []
    for at in (0, 16, 36):
        x = np.ones((len(odd), 37))
        x[np.arange(len(odd)), at] = odd
        rows.append((rounded(x, dtype),))
    both = np.ones((2, 37))
    both[:, 3], both[0, 30], both[1, 30] = np.inf, -np.inf, np.nan
    return [*rows, (rounded(both, dtype),), (rounded(np.full((3, 5), -0.0), dtype),)]


def smooth(low: float, high: float, distinct: bool = False) -> Any:
    def make(rng: np.random.Generator) -> list[Arrays]:
        found = []
        for shape in ((2, 3), (4, 1), (2, 1, 3)):
            x = rng.uniform(low, high, shape)
            if distinct:
                x = rng.permutation(np.linspace(low, high, x.size)).reshape(shape)
            found.append((x,))
        return found

    return make


def magnitude(reference: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, **options: reference(np.abs(x), **options)


def summed(dtype: str) -> str:
    if dtype == "bool" or dtype in SIGNED:
        return "int64"
    return "uint64" if dtype in UNSIGNED else dtype


def index(_: str) -> str:
    return "int64"


def axis_errors(name: str, one_axis: bool = False) -> tuple[ErrorInput, ...]:
    call = getattr(tw, name)
    errors = [
        ErrorInput(lambda: call(tw.ones((2, 3)), axis=2), IndexError, f"{name}: axis 2"),
        ErrorInput(lambda: call(tw.ones((2, 3)), axis=-3), IndexError, f"{name}: axis -3"),
        ErrorInput(lambda: call("text"), TypeError, ""),
    ]
    if not one_axis:
        errors.append(
            ErrorInput(
                lambda: call(tw.ones((2, 3)), axis=(0, -2)),
                ValueError,
                f"{name}: axis -2 is repeated",
            )
        )
    return tuple(errors)


def empty_error(name: str) -> ErrorInput:
    return ErrorInput(
        lambda: getattr(tw, name)(tw.ones((2, 0)), axis=1),
        ValueError,
        f"{name}: no elements along the reduced axes",
    )


def complex_error(name: str) -> ErrorInput:
    return ErrorInput(
        lambda: getattr(tw, name)(tw.ones((2,), dtype=tw.complex64)),
        TypeError,
        f"{name}: complex numbers have no order",
    )


def integer_error(name: str) -> ErrorInput:
    return ErrorInput(
        lambda: getattr(tw, name)(tw.ones((2,), dtype=tw.int32)),
        TypeError,
        f"{name}: needs a floating-point input, got int32",
    )


def held_error(name: str) -> ErrorInput:
    return ErrorInput(
        lambda: getattr(tw, name)(tw.ones((2,)), dtype=tw.complex64),
        TypeError,
        f"{name}: dtype complex64 cannot hold it; use a floating one",
    )


def sum_reference(x: np.ndarray, **options: Any) -> np.ndarray:
    return np.sum(x, dtype=np.int64 if x.dtype == bool else None, **options)


def nansum_reference(x: np.ndarray, **options: Any) -> np.ndarray:
    return np.nansum(x, dtype=np.int64 if x.dtype == bool else None, **options)


def l1_reference(x: np.ndarray, **options: Any) -> np.ndarray:
    return np.sum(np.abs(x), **options)


def l2_reference(x: np.ndarray, **options: Any) -> np.ndarray:
    return np.sqrt(np.sum(np.square(x), **options))


def prod_reference(x: np.ndarray, **options: Any) -> np.ndarray:
    return np.prod(x, dtype=np.int64 if x.dtype == bool else None, **options)


def var_reference(x: np.ndarray, **options: Any) -> np.ndarray:
    return np.var(x, ddof=options.pop("correction", 0), **options)


def std_reference(x: np.ndarray, **options: Any) -> np.ndarray:
    return np.sqrt(var_reference(x, **options))


def square_scale(x: np.ndarray, **options: Any) -> np.ndarray:
    options.pop("correction", None)
    return np.mean(np.square(x), **options)


def logsumexp_reference(x: np.ndarray, **options: Any) -> np.ndarray:
    top = np.max(x, axis=options.get("axis"), keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, 0)
    return np.log(np.sum(np.exp(x - shift), **options)) + np.reshape(
        shift, np.sum(x, **options).shape
    )


def logsumexp_scale(x: np.ndarray, **options: Any) -> np.ndarray:
    finite = np.where(np.isfinite(x), np.abs(x), 0)
    return np.max(finite, **options, initial=0) + 1 + np.abs(logsumexp_reference(x, **options))


# Partial sums of up to 129 terms: half a unit each at worst, far less by the tree of lanes.
SUM = {"float16": 1.0, "bfloat16": 1.0, "float32": 8.0, "float64": 8.0}
VARIANCES = (*AXES, {"axis": 0, "correction": 0.5}, {"axis": (0, -1)})

RECORDS = (
    OpCase(
        "sum",
        with_axes(tw.sum),
        with_axes(sum_reference),
        arguments((-9, 9), (-(2.0**63), 2.0**63)),
        {**SUM, **WHOLE, "bool": 0, "complex64": 16.0, "complex128": 16.0},
        summed,
        magnitude(with_axes(sum_reference)),
        MANY_AXES,
        special,
        signed_zero=False,
        differentiable=(0,),
        smooth=smooth(-4, 4),
        gradient_tolerance=0,
        errors=axis_errors("sum"),
    ),
    OpCase(
        "nansum",
        with_axes(tw.nansum),
        with_axes(nansum_reference),
        arguments((-9, 9), (-(2.0**63), 2.0**63)),
        {**SUM, **WHOLE, "bool": 0},
        summed,
        lambda x, **o: with_axes(nansum_reference)(np.abs(x), **o),
        MANY_AXES,
        special,
        signed_zero=False,
        differentiable=(0,),
        smooth=smooth(-4, 4),
        gradient_tolerance=0,
        errors=(*axis_errors("nansum"), complex_error("nansum")),
    ),
    OpCase(
        "l0_norm",
        with_axes(tw.l0_norm),
        with_axes(lambda x, **o: np.sum(x != 0, dtype=np.float64, **o)),
        arguments((-2, 2), (0, 0)),
        SUM,
        same,
        None,
        MANY_AXES,
        special,
        errors=(*axis_errors("l0_norm"), integer_error("l0_norm"), held_error("l0_norm")),
    ),
    OpCase(
        "l1_norm",
        with_axes(tw.l1_norm),
        with_axes(l1_reference),
        arguments((-9, 9), (0, 0)),
        SUM,
        same,
        None,
        MANY_AXES,
        special,
        differentiable=(0,),
        smooth=smooth(-4, 4),
        gradient_tolerance=0,
        errors=(*axis_errors("l1_norm"), integer_error("l1_norm"), held_error("l1_norm")),
    ),
    OpCase(
        "l2_norm",
        with_axes(tw.l2_norm),
        with_axes(l2_reference),
        arguments((-9, 9), (0, 0)),
        SUM,
        same,
        None,
        MANY_AXES,
        special,
        differentiable=(0,),
        smooth=smooth(-4, 4),
        gradient_tolerance=16,
        errors=(*axis_errors("l2_norm"), integer_error("l2_norm"), held_error("l2_norm")),
    ),
    OpCase(
        "prod",
        with_axes(tw.prod),
        with_axes(prod_reference),
        arguments((0.8, 1.2), (-3, 3)),
        {"float16": 1.0, "bfloat16": 1.0, "float32": 64.0, "float64": 64.0, **WHOLE, "bool": 0},
        summed,
        None,
        MANY_AXES,
        None,
        differentiable=(0,),
        smooth=smooth(0.5, 2),
        gradient_tolerance=16,
        errors=axis_errors("prod"),
    ),
    OpCase(
        "mean",
        with_axes(tw.mean),
        with_axes(np.mean),
        arguments((-9, 9), (0, 0), empty=False),
        {**SUM, "complex64": 16.0, "complex128": 16.0},
        same,
        magnitude(with_axes(np.mean)),
        MANY_AXES,
        special,
        signed_zero=False,
        differentiable=(0,),
        smooth=smooth(-4, 4),
        gradient_tolerance=2,
        derivatives=RowDerivatives(ROWS, lambda x: 0 * x + 1 / np.longdouble(x.size), no_second),
        errors=(*axis_errors("mean"), integer_error("mean")),
    ),
    OpCase(
        "var",
        with_axes(tw.var),
        with_axes(var_reference),
        arguments((-9, 9), (0, 0), empty=False),
        {"float16": 8.0, "bfloat16": 8.0, "float32": 32.0, "float64": 32.0},
        same,
        with_axes(square_scale),
        VARIANCES,
        None,
        differentiable=(0,),
        smooth=smooth(-4, 4),
        gradient_tolerance=16,
        errors=(*axis_errors("var"), integer_error("var")),
    ),
    OpCase(
        "std",
        with_axes(tw.std),
        with_axes(std_reference),
        lambda rng, dtype: [
            (values(rng, dtype, (-9, 9), shape),) for shape in ((67,), (7, 33), (5, 6, 7))
        ],
        {"float16": 16.0, "bfloat16": 16.0, "float32": 64.0, "float64": 64.0},
        same,
        lambda x, **o: np.sqrt(with_axes(square_scale)(x, **o)),
        VARIANCES,
        None,
        differentiable=(0,),
        smooth=lambda rng: [(rng.permutation(12.0 * np.arange(1, 7)).reshape(2, 3),)],
        gradient_tolerance=32,
    ),
    OpCase(
        "max",
        with_axes(tw.max),
        with_axes(np.max),
        arguments((-9, 9), (-(2.0**63), 2.0**63), empty=False),
        {**EXACT_FLOATS, **WHOLE, "bool": 0},
        same,
        None,
        MANY_AXES,
        special,
        signed_zero=False,
        differentiable=(0,),
        smooth=smooth(-4, 4, distinct=True),
        gradient_tolerance=0,
        errors=(*axis_errors("max"), empty_error("max"), complex_error("max")),
    ),
    OpCase(
        "min",
        with_axes(tw.min),
        with_axes(np.min),
        arguments((-9, 9), (-(2.0**63), 2.0**63), empty=False),
        {**EXACT_FLOATS, **WHOLE, "bool": 0},
        same,
        None,
        MANY_AXES,
        special,
        signed_zero=False,
        differentiable=(0,),
        smooth=smooth(-4, 4, distinct=True),
        gradient_tolerance=0,
        errors=(*axis_errors("min"), empty_error("min"), complex_error("min")),
    ),
    OpCase(
        "argmax",
        tw.argmax,
        np.argmax,
        arguments((-3, 3), (-3, 3), empty=False),
        {**EXACT_FLOATS, **WHOLE, "bool": 0},
        index,
        None,
        AXES,
        special,
        errors=(*axis_errors("argmax", True), empty_error("argmax"), complex_error("argmax")),
    ),
    OpCase(
        "argmin",
        tw.argmin,
        np.argmin,
        arguments((-3, 3), (-3, 3), empty=False),
        {**EXACT_FLOATS, **WHOLE, "bool": 0},
        index,
        None,
        AXES,
        special,
        errors=(*axis_errors("argmin", True), empty_error("argmin"), complex_error("argmin")),
    ),
    OpCase(
        "any",
        with_axes(tw.any),
        with_axes(np.any),
        arguments((0, 0), (0, 1)),
        {**EXACT_FLOATS, **WHOLE, "bool": 0, "complex64": 0, "complex128": 0},
        truth,
        None,
        MANY_AXES,
        special,
        errors=axis_errors("any"),
    ),
    OpCase(
        "all",
        with_axes(tw.all),
        with_axes(np.all),
        arguments((1, 2), (0, 9)),
        {**EXACT_FLOATS, **WHOLE, "bool": 0, "complex64": 0, "complex128": 0},
        truth,
        None,
        MANY_AXES,
        special,
        errors=axis_errors("all"),
    ),
    OpCase(
        "logsumexp",
        with_axes(tw.logsumexp),
        with_axes(logsumexp_reference),
        arguments((-30, 30), (0, 0)),
        {"float16": 1.0, "bfloat16": 1.0, "float32": 8.0, "float64": 8.0},
        same,
        with_axes(logsumexp_scale),
        (*AXES, {"axis": (0, -1)}),
        special,
        signed_zero=False,
        differentiable=(0,),
        smooth=smooth(-4, 4),
        gradient_tolerance=8,
        errors=(*axis_errors("logsumexp"), complex_error("logsumexp")),
    ),
)
