"""Records of the pointwise ops: one for each row of core/problems/pointwise.inc.

Tolerances in float32 and float64 are those of core/problems/accuracy.inc where it has the row. The
16-bit types are computed in float32 and rounded once: half a unit and a little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import tilewright as tw
from cases import arrays
from cases.arrays import rounded
from cases.bounds import BOUNDS
from cases.derivatives import ACTIVATIONS as OF_ACTIVATIONS
from cases.derivatives import OF_ROWS, Derivatives, constant, unary
from cases.formulas import (
    clip,
    digamma,
    digamma_scale,
    erf,
    erfc,
    erfinv,
    lgamma,
    lgamma_scale,
    logical_and_product,
    logical_or_sum,
    nextafter,
    polygamma,
    polygamma_scale,
    sigmoid,
    silu,
    silu_scale,
    square,
    whole_unchanged,
)
from cases.generators import (
    EXACT_FLOATS,
    WHOLE,
    Domain,
    away_from,
    floating,
    floats,
    generator,
    ordinary,
    promoted,
    same,
    special_values,
    truth,
    where_arguments,
    where_smooth,
    where_special,
)
from cases.record import Arrays, ErrorInput, OpCase


def refuses(name: str, dtype: str, arity: int) -> ErrorInput:
    """The op has no meaning for this dtype."""

    def call() -> object:
        return getattr(tw, name)(*(tw.ones((2,), dtype=getattr(tw, dtype)) for _ in range(arity)))

    return ErrorInput(call, TypeError, f"{name}: no kernel for {dtype}")


def common_errors(name: str, arity: int, dtype: str = "float32") -> tuple[ErrorInput, ...]:
    call, taken = getattr(tw, name), getattr(tw, dtype)
    x = [tw.ones((2, 3), dtype=taken) for _ in range(arity)]
    plural, first = ("", "x") if arity == 1 else ("s", "a")
    wrong = [
        ErrorInput(call, TypeError, f"{name}: missing argument '{first}': a tensor or a number"),
        # Where an activation takes `inplace`, a second tensor is no flag.
        ErrorInput(
            lambda: call(*x, *x),
            TypeError,
            f"{name}: inplace must be True or False"
            if name in ("relu", "silu")
            else f"{name}: takes at most {arity} argument{plural} (",
        ),
        ErrorInput(lambda: call(*x[1:], "a"), TypeError, "must be a tensor or a number, got 'a'"),
    ]
    if arity > 1:
        mixed = [x[0], *(tw.ones((4,), dtype=taken) for _ in range(arity - 1))]
        wrong.append(ErrorInput(lambda: call(*mixed), ValueError, f"{name}: "))
    return tuple(wrong)


def make(
    name: str,
    reference: Callable[..., Any],
    domains: tuple[Domain, ...],
    tolerance: Mapping[str, float],
    result: Callable[[str], str],
    *,
    whole: tuple[Domain, ...] | None = None,
    kinks: tuple[float, ...] = (),
    apart: bool = False,
    smooth: tuple[Domain, ...] | None = None,
    gradient_tolerance: float | None = None,
    scale: Callable[..., Any] | None = None,
    differentiable: tuple[int, ...] | None = None,
    signed_zero: bool = True,
    special: Callable[[str], list[Arrays]] | None = None,
    derivatives: Derivatives | None = None,
    no_errors: bool = False,
    call: Callable[..., Any] | None = None,
) -> OpCase:
    arity = len(domains)
    has_gradient = gradient_tolerance is not None
    refused = [d for d in ("bool", "float32", "int32", "complex64") if d not in tolerance]
    if name in OF_COMPLEX:  # tests/cases/ops/complex.py
        refused.remove("complex64")
    return OpCase(
        name=name,
        call=call or getattr(tw, name),
        reference=reference,
        arguments=generator(domains, whole or domains),
        tolerance=tolerance,
        result=result,
        scale=scale,
        special=special or special_values(arity),
        signed_zero=signed_zero,
        differentiable=(tuple(range(arity)) if differentiable is None else differentiable)
        if has_gradient
        else (),
        smooth=away_from(kinks, smooth or domains, apart) if has_gradient else None,
        gradient_tolerance=gradient_tolerance,
        derivatives=derivatives or OF_ROWS.get(name) or OF_ACTIVATIONS.get(name),
        elementwise=True,
        errors=()
        if no_errors
        else common_errors(name, arity, "float32" if "float32" in tolerance else "int32")
        + tuple(refuses(name, d, arity) for d in refused),
    )


OF_COMPLEX = [
    "abs",
    "sign",
    "reciprocal",
    "round",
    "sqrt",
    "exp",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "pow",
]

# ---- the records ----

LINE = (-4.0, 4.0)
WIDE = (-1e4, 1e4)
POSITIVE = (0.05, 9.0)
FULL = (-(2.0**63), 2.0**63)  # every whole number of a type: results wrap around
DIGITS = (-9.0, 9.0)


def floor_divided(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of infinities as the standard has it: floor(a / b), where Python has NaN and -1."""
    if a.dtype.kind != "f":
        return np.floor_divide(a, b)
    return np.where(np.isinf(a) | np.isinf(b), np.floor(a / b), np.floor_divide(a, b))


COMPLEX = {"complex64": 0.0, "complex128": 0.0}
REAL = {**EXACT_FLOATS, **WHOLE}
ANY = {**REAL, **COMPLEX, "bool": 0.0}


def transcendental(
    name: str, reference: Any, domain: Domain, *, reference_ulp: float = 0, **options: Any
) -> OpCase:
    """`reference_ulp`: the error of a reference that has no more digits than float64."""
    single, double = BOUNDS[name]
    double += reference_ulp
    whole = options.pop("whole", (max(domain[0], -9), min(domain[1], 9)))
    return make(
        name,
        reference,
        (domain,),
        {**floats(single, double), **promoted(single)},
        floating,
        whole=(whole,),
        gradient_tolerance=options.pop("gradient_tolerance", 8),
        **options,
    )


def gamma_derivative(x: tw.Tensor, n: int | tw.Tensor = 1) -> tw.Tensor:
    """The row's function, which takes orders as numbers; as a tensor they come as ones."""
    return tw.polygamma(1 if isinstance(n, tw.Tensor) else n, x)


UNARY = (
    make(
        "negative",
        np.negative,
        (WIDE,),
        {**REAL, **COMPLEX},
        same,
        whole=(FULL,),
        gradient_tolerance=0,
    ),
    make(
        "positive",
        np.positive,
        (WIDE,),
        {**REAL, **COMPLEX},
        same,
        whole=(FULL,),
        gradient_tolerance=0,
    ),
    make(
        "abs",
        np.abs,
        (WIDE,),
        REAL,
        same,
        whole=(FULL,),
        kinks=(0,),
        smooth=(LINE,),
        gradient_tolerance=0,
    ),
    make(
        "sign",
        lambda x: np.where(x == 0, 0, np.sign(x)),
        (WIDE,),
        REAL,
        same,
        whole=(FULL,),
        kinks=(0,),
        smooth=(LINE,),
        gradient_tolerance=0,
    ),
    make(
        "square",
        square,
        (LINE,),
        {**floats(0.5, 0.5), **WHOLE, "complex64": 2.0, "complex128": 2.0},
        same,
        whole=(FULL,),
        gradient_tolerance=1,
        derivatives=unary(lambda x: 2 * x, constant(2)),
    ),
    transcendental("sqrt", np.sqrt, POSITIVE, whole=(0, 100)),
    transcendental("rsqrt", lambda x: 1 / np.sqrt(x), POSITIVE, whole=(1, 100)),
    transcendental("reciprocal", lambda x: 1 / x, POSITIVE, whole=(1, 100)),
    transcendental("exp", np.exp, (-20, 20), smooth=(LINE,)),
    transcendental("exp2", np.exp2, (-20, 20), smooth=(LINE,)),
    transcendental("expm1", np.expm1, (-3, 3)),
    transcendental(
        "log",
        np.log,
        (0.01, 50),
        whole=(1, 100),
        smooth=(POSITIVE,),
        gradient_tolerance=8,
    ),
    transcendental("log2", np.log2, (0.01, 50), whole=(1, 100), smooth=(POSITIVE,)),
    transcendental("log10", np.log10, (0.01, 50), whole=(1, 100), smooth=(POSITIVE,)),
    transcendental("log1p", np.log1p, (-0.9, 9), whole=(0, 100)),
    transcendental("sin", np.sin, (-50, 50)),
    transcendental("cos", np.cos, (-50, 50)),
    transcendental("tan", np.tan, (-50, 50), smooth=((-1.2, 1.2),), gradient_tolerance=16),
    transcendental("asin", np.arcsin, (-1, 1), smooth=((-0.9, 0.9),), whole=(-1, 1)),
    transcendental("acos", np.arccos, (-1, 1), smooth=((-0.9, 0.9),), whole=(-1, 1)),
    transcendental("atan", np.arctan, (-9, 9)),
    transcendental("sinh", np.sinh, (-9, 9), smooth=(LINE,)),
    transcendental("cosh", np.cosh, (-9, 9), smooth=(LINE,)),
    transcendental("tanh", np.tanh, (-9, 9)),
    transcendental("asinh", np.arcsinh, (-9, 9)),
    transcendental("acosh", np.arccosh, (1, 9), smooth=((1.2, 9),)),
    transcendental(
        "atanh",
        np.arctanh,
        (-0.99, 0.99),
        smooth=((-0.9, 0.9),),
        whole=(0, 0),
        gradient_tolerance=16,
    ),
    transcendental("erf", erf, LINE, reference_ulp=0.5),
    transcendental("erfc", erfc, LINE, reference_ulp=0.5),
    transcendental("erfinv", erfinv, (-1, 1), smooth=((-0.9, 0.9),), whole=(-1, 1)),
    transcendental(
        "lgamma", lgamma, (0.01, 50), whole=(1, 100), gradient_tolerance=64, scale=lgamma_scale
    ),
    transcendental(
        "digamma", digamma, (0.01, 50), whole=(1, 100), gradient_tolerance=64, scale=digamma_scale
    ),
    transcendental("sigmoid", sigmoid, (-20, 20)),
    transcendental("silu", silu, (-20, 20), smooth=(LINE,), scale=silu_scale),
    make(
        "relu",
        lambda x: np.maximum(x, 0),
        (WIDE,),
        REAL,
        same,
        whole=(FULL,),
        kinks=(0,),
        smooth=(LINE,),
        gradient_tolerance=0,
        signed_zero=False,
    ),
    make(
        "floor",
        whole_unchanged(np.floor),
        (WIDE,),
        REAL,
        same,
        whole=(FULL,),
        smooth=((0.1, 0.9),),
        gradient_tolerance=0,
    ),
    make(
        "ceil",
        whole_unchanged(np.ceil),
        (WIDE,),
        REAL,
        same,
        whole=(FULL,),
        smooth=((0.1, 0.9),),
        gradient_tolerance=0,
    ),
    make(
        "trunc",
        whole_unchanged(np.trunc),
        (WIDE,),
        REAL,
        same,
        whole=(FULL,),
        smooth=((0.1, 0.9),),
        gradient_tolerance=0,
    ),
    make(
        "round",
        whole_unchanged(np.rint),
        ((-9, 9),),
        REAL,
        same,
        whole=(FULL,),
        smooth=((0.6, 1.4),),
        gradient_tolerance=0,
    ),
    make("isnan", np.isnan, (WIDE,), ANY, truth, whole=(FULL,)),
    make("isinf", np.isinf, (WIDE,), ANY, truth, whole=(FULL,)),
    make("isfinite", np.isfinite, (WIDE,), ANY, truth, whole=(FULL,)),
    make("signbit", np.signbit, (WIDE,), {**EXACT_FLOATS, **promoted(0)}, truth, whole=(FULL,)),
    make("logical_not", np.logical_not, ((-1.0, 1.0),), ANY, truth),
)

PAIR = (WIDE, WIDE)
BITS = {**WHOLE, "bool": 0.0}
DIVISION = ((-50.0, 50.0), (-9.0, 9.0))


def comparison(name: str, reference: Any, dtypes: Mapping[str, float]) -> OpCase:
    return make(name, reference, ((-2.0, 2.0),) * 2, dtypes, truth)


ORDERED = {**REAL, "bool": 0.0}
BINARY = (
    make(
        "add",
        logical_or_sum,
        PAIR,
        {**floats(0.5, 0.5), **WHOLE, "complex64": 0.8, "complex128": 0.8, "bool": 0.0},
        same,
        whole=(FULL, FULL),
        gradient_tolerance=0,
    ),
    make(
        "subtract",
        np.subtract,
        PAIR,
        {**floats(0.5, 0.5), **WHOLE, "complex64": 0.8, "complex128": 0.8},
        same,
        whole=(FULL, FULL),
        gradient_tolerance=0,
    ),
    make(
        "multiply",
        logical_and_product,
        ((-90.0, 90.0),) * 2,
        {**floats(0.5, 0.5), **WHOLE, "complex64": 2.0, "complex128": 2.0, "bool": 0.0},
        same,
        whole=(FULL, FULL),
        smooth=(LINE, LINE),
        gradient_tolerance=4,
    ),
    make(
        "divide",
        np.divide,
        (LINE, POSITIVE),
        {**floats(0.5, 0.5), **promoted(0.5), "complex64": 4.0, "complex128": 4.0},
        floating,
        whole=((-99, 99), (1, 99)),
        smooth=(LINE, (0.5, 4)),
        gradient_tolerance=8,
    ),
    # Beyond 2^53 the quotient less 1 is rounded twice in float64, as in NumPy.
    make(
        "floor_divide",
        floor_divided,
        DIVISION,
        {**floats(0.51, 1.0), **WHOLE},
        same,
        whole=(FULL, DIGITS),
        smooth=((0.1, 0.4), (0.5, 0.9)),
        gradient_tolerance=0,
    ),
    make(
        "remainder",
        np.remainder,
        DIVISION,
        {**floats(0.5, 0.5), **WHOLE},
        same,
        whole=(FULL, DIGITS),
        smooth=((1.1, 1.4), (0.5, 0.54)),
        gradient_tolerance=0,
    ),
    make(
        "pow",
        np.power,
        ((0.1, 6.0), LINE),
        {**floats(0.52, 1.0), **WHOLE},
        same,
        whole=(DIGITS, (0, 40)),
        smooth=((0.5, 3.0), LINE),
        gradient_tolerance=32,
    ),
    make(
        "maximum",
        np.maximum,
        PAIR,
        ORDERED,
        same,
        whole=(FULL, FULL),
        smooth=(LINE, LINE),
        apart=True,
        gradient_tolerance=0,
        signed_zero=False,
    ),
    make(
        "minimum",
        np.minimum,
        PAIR,
        ORDERED,
        same,
        whole=(FULL, FULL),
        smooth=(LINE, LINE),
        apart=True,
        gradient_tolerance=0,
        signed_zero=False,
    ),
    make(
        "atan2",
        np.arctan2,
        (LINE, LINE),
        {**floats(1.5, 1.0), **promoted(1.5)},
        floating,
        smooth=((0.5, 4.0), LINE),
        gradient_tolerance=8,
    ),
    make(
        "hypot",
        np.hypot,
        (LINE, LINE),
        {**floats(0.55, 1.0), **promoted(0.55)},
        floating,
        smooth=((0.5, 4.0), LINE),
        gradient_tolerance=8,
    ),
    replace(
        make(
            "gamma_derivative",
            polygamma,
            ((0.01, 50),),
            {**floats(1.0, 8.0), **promoted(1.0)},
            floating,
            whole=((1, 100),),
            smooth=(POSITIVE,),
            gradient_tolerance=64,
            scale=polygamma_scale,
            call=gamma_derivative,
            no_errors=True,
        ),
        variants=({}, {"n": 0}, {"n": 2}),
        errors=(),
    ),
    make(
        "fmod",
        np.fmod,
        PAIR,
        REAL,
        same,
        whole=(FULL, DIGITS),
        smooth=((0.5, 4.0), (5.0, 9.0)),
        gradient_tolerance=0,
    ),
    make(
        "logaddexp",
        np.logaddexp,
        (LINE, LINE),
        {**floats(1.5, 1.5), **promoted(1.5)},
        floating,
        scale=lambda a, b: np.maximum(np.abs(a), np.abs(b)) + 0.7,
        smooth=(LINE, LINE),
        gradient_tolerance=8,
        signed_zero=False,
    ),
    make(
        "xlogy",
        lambda a, b: np.where((a == 0) & ~np.isnan(b), 0, a * np.log(b)),
        (LINE, (0.0, 9.0)),
        {**floats(2.2, 2.2), **promoted(2.2)},
        floating,
        whole=(DIGITS, (0.0, 9.0)),
        smooth=(LINE, (0.5, 4.0)),
        gradient_tolerance=8,
        signed_zero=False,
    ),
    make(
        "nextafter",
        nextafter,
        (LINE, LINE),
        {**floats(0, 0), **promoted(0)},
        floating,
        whole=(DIGITS, DIGITS),
        no_errors=True,
    ),
    make(
        "copysign",
        np.copysign,
        PAIR,
        {**EXACT_FLOATS, **promoted(0.0)},
        floating,
        whole=(DIGITS, DIGITS),
        kinks=(0,),
        smooth=(LINE, LINE),
        gradient_tolerance=0,
    ),
    comparison("equal", np.equal, ANY),
    comparison("not_equal", np.not_equal, ANY),
    comparison("less", np.less, ORDERED),
    comparison("less_equal", np.less_equal, ORDERED),
    comparison("greater", np.greater, ORDERED),
    comparison("greater_equal", np.greater_equal, ORDERED),
    comparison("logical_and", np.logical_and, ANY),
    comparison("logical_or", np.logical_or, ANY),
    comparison("logical_xor", np.logical_xor, ANY),
    make("bitwise_and", np.bitwise_and, (FULL, FULL), BITS, same),
    make("bitwise_or", np.bitwise_or, (FULL, FULL), BITS, same),
    make("bitwise_xor", np.bitwise_xor, (FULL, FULL), BITS, same),
    make("bitwise_left_shift", np.left_shift, (FULL, (0.0, 70.0)), WHOLE, same),
    make("bitwise_right_shift", np.right_shift, (FULL, (0.0, 70.0)), WHOLE, same),
)


def lerp_special(dtype: str) -> list[Arrays]:
    """Without the largest numbers, whose differences only wider types hold."""
    (columns,) = special_values(3)(dtype)
    kept = np.all([np.abs(x) != arrays.largest(dtype) for x in columns], axis=0)
    return [tuple(x[kept] for x in columns)]


TERNARY = (
    OpCase(
        name="where",
        call=tw.where,
        reference=np.where,
        arguments=where_arguments,
        tolerance=ANY,
        result=same,
        special=where_special,
        differentiable=(1, 2),
        smooth=where_smooth,
        gradient_tolerance=0,
        derivatives=OF_ROWS["where"],
        elementwise=True,
        errors=common_errors("where", 3),
    ),
    make(
        "lerp",
        lambda a, b, c: np.where(np.abs(c) < 0.5, a + c * (b - a), b - (b - a) * (1 - c)),
        (LINE, LINE, (-1.0, 2.0)),
        {**floats(2.0, 2.0), **promoted(2.0)},
        floating,
        scale=lambda a, b, c: (np.abs(a) + np.abs(b)) * (1 + np.abs(c)),
        smooth=(LINE, LINE, (0.1, 0.4)),
        gradient_tolerance=8,
        special=lerp_special,
        no_errors=True,
        signed_zero=False,
    ),
    # tw.clip takes optional bounds, hence its own error texts.
    make(
        "clip",
        clip,
        (LINE, (-2.0, 0.0), (0.0, 2.0)),
        REAL,
        same,
        whole=(FULL, (-20, 0), (0, 20)),
        special=lambda dtype: [
            tuple(
                a
                for a in np.broadcast_arrays(
                    rounded(np.array(ordinary(dtype)), dtype),
                    rounded(-1.5, dtype),
                    rounded(2.0, dtype),
                )
            )
        ],
        smooth=((-3.0, 3.0), (-1.6, -1.5), (1.5, 1.6)),
        kinks=(),
        gradient_tolerance=0,
        no_errors=True,
    ),
)

RECORDS = (*UNARY, *BINARY, *TERNARY)
