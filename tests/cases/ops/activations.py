"""Records of the activations: rows of pointwise.inc, and ops that are made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import tilewright as tw
from cases.derivatives import (
    ACTIVATIONS,
    LEAKY,
    MULTIPLY_ADD,
    bell,
    binary,
    zero,
)
from cases.formulas import erfc, sigmoid
from cases.generators import WHOLE, Domain, floating, floats, promoted, same, values
from cases.ops.pointwise import LINE, make
from cases.record import Arrays, ErrorInput, OpCase

RANGE = (-20.0, 20.0)


def complex_refused(name: str, call: Callable[..., Any]) -> ErrorInput:
    return ErrorInput(
        lambda: call(tw.ones((2,), dtype=tw.complex64)),
        TypeError,
        f"{name}: no kernel for complex64",
    )


def row(
    name: str,
    reference: Callable[..., Any],
    single: float,
    double: float,
    domain: Domain = RANGE,
    *,
    call: Callable[..., Any] | None = None,
    kinks: tuple[float, ...] = (),
    variants: tuple[dict[str, Any], ...] = ({},),
    scale: Callable[..., Any] | None = None,
    errors: tuple[ErrorInput, ...] = (),
) -> OpCase:
    """A row of one tensor, whose other operands, if any, are numbers."""
    function = call or getattr(tw, name)
    case = make(
        name,
        reference,
        (domain,),
        {**floats(single, double), **promoted(single)},
        floating,
        whole=(domain,),
        call=function,
        kinks=kinks,
        smooth=(LINE,),
        gradient_tolerance=16,
        scale=scale,
        signed_zero=False,
        no_errors=True,
    )
    return replace(
        case,
        variants=variants,
        derivatives=ACTIVATIONS[name],
        errors=(complex_refused(name, function), *errors),
    )


def elu(x: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    return np.where(x > 0, x, alpha * np.expm1(np.where(x > 0, 0, x)))


def celu(x: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    return np.where(x > 0, x, alpha * np.expm1(np.where(x > 0, 0, x) / alpha))


def selu(x: np.ndarray) -> np.ndarray:
    return 1.0507009873554805 * elu(x, 1.6732632423543772)


def softplus(x: np.ndarray, beta: float = 1.0, threshold: float = 20.0) -> np.ndarray:
    z = x * beta
    smooth = (np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))) / beta
    return np.where(np.isnan(x) | (z > threshold), x, smooth)


def relu6(x: np.ndarray) -> np.ndarray:
    return np.minimum(np.maximum(x, 0), 6)


def mish(x: np.ndarray) -> np.ndarray:
    e = np.exp(np.minimum(x, 50))
    return x * (e * (e + 2) / (e * (e + 2) + 2))


def gelu(x: np.ndarray, approximate: str = "none") -> np.ndarray:
    if approximate == "tanh":
        return x * sigmoid(x * (1.5957691216057308 + x * x * 0.07135481627260025))
    return x * erfc(-x * np.sqrt(x.dtype.type(0.5))) / 2


def gelu_scale(x: np.ndarray, approximate: str = "none") -> np.ndarray:
    """What the square in the exponent, or the tanh in place of erf, leaves of a tail's digits."""
    y = np.abs(gelu(x, approximate)) * (1 + x * x)
    least = 2.0**-1022 if x.dtype == np.longdouble else 2.0**-126
    return y + np.abs(x) * least


def logsigmoid(x: np.ndarray) -> np.ndarray:
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def softshrink(x: np.ndarray, lambd: float = 0.5) -> np.ndarray:
    return np.where(np.abs(x) > lambd, x - np.copysign(lambd, x), x * 0)


def hardshrink(x: np.ndarray, lambd: float = 0.5) -> np.ndarray:
    return np.where(np.abs(x) <= lambd, 0, x)


def hardtanh(x: np.ndarray, min_val: float = -1.0, max_val: float = 1.0) -> np.ndarray:
    return np.minimum(np.maximum(x, min_val), max_val)


def threshold(x: np.ndarray, threshold: float = 0.25, value: float = -2.0) -> np.ndarray:
    return np.where(x <= threshold, value, x)


def leaky_relu(x: np.ndarray, slope: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, x * slope)


def by_magnitude(x: np.ndarray, **_: Any) -> np.ndarray:
    return np.abs(x)


def logistic_loss(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a * ((a > 0) - b) + np.log1p(np.exp(-np.abs(a)))


def logistic_scale(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs(a * ((a > 0) - b)) + np.log1p(np.exp(-np.abs(a)))


def huber_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    d = np.abs(a - b)
    m = np.minimum(d, 1)
    return m * (d - m / 2)


def through_loss(name: str) -> Callable[..., tw.Tensor]:
    """A row by the loss that it is a part of, which takes floating-point pairs of one shape."""

    def call(a: tw.Tensor, b: tw.Tensor) -> tw.Tensor:
        shape = tw.broadcast_shapes([a.shape, b.shape])
        whole = not (a.is_floating_point() or a.dtype == tw.complex64)
        pair = [tw.astype(x, tw.float32) if whole else x for x in (a, b)]
        return getattr(tw, name)(*(tw.broadcast_to(x, shape) for x in pair), reduction="none")

    return call


def quotient_size(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return np.abs(b / c) + np.abs(a)


def divide_truncating(a: tw.Tensor, b: tw.Tensor) -> tw.Tensor:
    """By the row for 16-bit numbers too, whose quotients `divide` rounds to their type first."""
    if a.dtype in (tw.float16, tw.bfloat16):
        wide = a.astype(tw.float32).divide(b.astype(tw.float32), rounding_mode="trunc")
        return wide.astype(a.dtype)
    return a.divide(b, rounding_mode="trunc")


def truncated_quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of the quotient in the type that the row computes in, which rounding may make a whole one."""
    with np.errstate(over="ignore"):
        return np.trunc((a / b).astype(np.float64 if a.dtype == np.longdouble else np.float32))


ROWS = (
    make(
        "log_odds",
        lambda x: np.log(x) - np.log1p(-x),
        ((0.01, 0.95),),
        {**floats(4, 4), **promoted(4)},
        floating,
        whole=((0.0, 1.0),),
        call=tw.logit,
        scale=lambda x: 1 + np.abs(np.log(x / (1 - x))),
        smooth=((0.3, 0.7),),
        gradient_tolerance=16,
        no_errors=True,
        signed_zero=False,
    ),
    make(
        "add_quotient",
        lambda a, b, c: a + b / c,
        (LINE, LINE, (0.5, 4.0)),
        {**floats(2, 2), **promoted(2), "complex64": 4.0, "complex128": 4.0},
        floating,
        call=tw.addcdiv,
        scale=quotient_size,
        gradient_tolerance=4,
        no_errors=True,
        signed_zero=False,
        special=lambda dtype: [],
    ),
    make(
        "finite_or",
        lambda x: x,
        (RANGE,),
        floats(0, 0),
        same,
        call=tw.nan_to_num,  # whose numbers tests/ops/pointwise/test_number_functions.py checks
        smooth=(LINE,),
        gradient_tolerance=0,
        no_errors=True,
        special=lambda dtype: [],
    ),
    make(
        "truncated_quotient",
        truncated_quotient,
        (LINE, (0.5, 4.0)),
        {**floats(0.5, 0.5), **WHOLE},
        same,
        whole=((-99, 99), (1, 99)),
        call=divide_truncating,
        smooth=((0.1, 0.4), (0.5, 0.9)),
        gradient_tolerance=0,
        no_errors=True,
        signed_zero=False,
        special=lambda dtype: [],
    ),
    row("mish", mish, 8, 8, scale=by_magnitude),
    row("selu", selu, 2.5, 3, kinks=(0,)),
    row("relu6", relu6, 0, 0, kinks=(0, 6)),
    row("hardsigmoid", lambda x: relu6(x + 3) / 6, 1.5, 1.5, kinks=(-3, 3), scale=np.ones_like),
    row(
        "hardswish",
        lambda x: np.where(x <= -3, 0, x * (relu6(x + 3) / 6)),
        2,
        2,
        kinks=(-3, 3),
        scale=by_magnitude,
    ),
    row("softsign", lambda x: x / (1 + np.abs(x)), 1.5, 1.5),
    row("logsigmoid", logsigmoid, 2.5, 2.5),
    row("tanhshrink", lambda x: x - np.tanh(x), 1.5, 2, scale=by_magnitude),
    row("gelu_erf", gelu, 8, 8, call=tw.gelu, scale=gelu_scale),
    row(
        "gelu_tanh",
        lambda x: gelu(x, "tanh"),
        8,
        8,
        call=lambda x: tw.gelu(x, approximate="tanh"),
        scale=lambda x: gelu_scale(x, "tanh"),
    ),
    row("elu", elu, 1.7, 2, kinks=(0,), variants=({}, {"alpha": 1.5})),
    row("celu", celu, 2.5, 2.5, kinks=(0,), variants=({}, {"alpha": 2.0})),
    row("hardshrink", hardshrink, 0, 0, kinks=(-0.5, 0.5), variants=({}, {"lambd": 0.25})),
    row("softshrink", softshrink, 0.5, 0.5, kinks=(-0.5, 0.5), variants=({}, {"lambd": 0.25})),
    row("softplus", softplus, 2.5, 2.5, variants=({}, {"beta": 2.0, "threshold": 10.0})),
    row("hardtanh", hardtanh, 0, 0, kinks=(-1, 1, -2), variants=({}, {"min_val": -2.0})),
    row(
        "threshold",
        threshold,
        0,
        0,
        call=lambda x: tw.threshold(x, 0.25, -2.0),
        kinks=(0.25,),
    ),
    replace(
        make(
            "leaky_relu",
            leaky_relu,
            (LINE, LINE),
            {**floats(0.5, 0.5), **promoted(0.5)},
            floating,
            kinks=(0,),
            gradient_tolerance=4,
            no_errors=True,
            signed_zero=False,
        ),
        derivatives=LEAKY,
    ),
    replace(
        make(
            "multiply_add",
            lambda a, b, c: a * b + c,
            (LINE, LINE, LINE),
            {**floats(1, 1), **WHOLE, "complex64": 2.0, "complex128": 2.0, "bool": 0.0},
            same,
            call=lambda a, b, c: tw.addcmul(c, a, b),
            scale=lambda a, b, c: np.abs(a * b) + np.abs(c),
            gradient_tolerance=4,
            no_errors=True,
            signed_zero=False,
            special=lambda dtype: [],
        ),
        derivatives=MULTIPLY_ADD,
    ),
    make(
        "logistic_loss",
        logistic_loss,
        (LINE, LINE),
        {**floats(3, 3), **promoted(3)},
        floating,
        call=through_loss("binary_cross_entropy_with_logits"),
        scale=logistic_scale,
        gradient_tolerance=4,
        no_errors=True,
        signed_zero=False,
    ),
    make(
        "gated",
        lambda a, b: a * sigmoid(b),
        (LINE, LINE),
        {**floats(3, 3), **promoted(3)},
        floating,
        call=lambda a, b: tw.glu(tw.stack(tw.broadcast_tensors(a, b)), axis=0)[0],
        scale=lambda a, b: np.abs(a) * np.maximum(sigmoid(b), 2.0**-126),  # what is a share of 0
        gradient_tolerance=4,
        no_errors=True,
        signed_zero=False,
        derivatives=binary(
            (lambda a, b: sigmoid(b), lambda a, b: a * bell(b)),
            (zero, lambda a, b: bell(b), lambda a, b: a * bell(b) * (sigmoid(-b) - sigmoid(b))),
            absolute=lambda a, b: 1 + np.abs(a),  # of the slope's slope, which vanishes at 0
        ),
    ),
    make(
        "huber_distance",
        huber_distance,
        (LINE, LINE),
        {**floats(3, 3), **promoted(3)},
        floating,
        call=through_loss("huber_loss"),
        gradient_tolerance=4,
        no_errors=True,
        signed_zero=False,
    ),
    make(
        "square_distance",
        lambda a, b: (a - b) ** 2,
        (LINE, LINE),
        {**floats(3, 3), **promoted(3)},
        floating,
        call=through_loss("mse_loss"),
        gradient_tolerance=4,
        no_errors=True,
        signed_zero=False,
    ),
)


# ---- ops that are made of rows ----


def prelu_arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    shapes = (((5, 3), (3,)), ((2, 3, 4), (3,)), ((2, 3, 4), (1,)), ((7,), (1,)), ((0, 3), (3,)))
    return [tuple(values(rng, dtype, LINE, s) for s in shape) for shape in shapes]


def prelu(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return leaky_relu(x, w.reshape(-1, *(1,) * max(x.ndim - 2, 0)))


def away_from_0(x: np.ndarray) -> np.ndarray:
    return x + np.where(x > 0, 0.1, -0.1)


def glu(x: np.ndarray, axis: int = -1) -> np.ndarray:
    a, b = np.split(x, 2, axis)
    return a * sigmoid(b)


def glu_arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [(values(rng, dtype, LINE, s),) for s in ((4, 6), (2, 38), (8, 2), (0, 4))]


OPS = (
    OpCase(
        "gelu",
        tw.gelu,
        gelu,
        lambda rng, dtype: [(values(rng, dtype, RANGE, s),) for s in ((67,), (2, 5), ())],
        floats(8, 8),
        floating,
        gelu_scale,
        ({}, {"approximate": "tanh"}),
        signed_zero=False,
        differentiable=(0,),
        smooth=lambda rng: [(rng.normal(size=(2, 3)),)],
        gradient_tolerance=8,
        errors=(
            ErrorInput(
                lambda: tw.gelu(tw.ones((2,)), approximate="erf"),
                ValueError,
                "gelu: approximate must be 'none' or 'tanh', got 'erf'",
            ),
        ),
    ),
    OpCase(
        "addcmul",
        tw.addcmul,
        lambda c, a, b, value=1: c + value * a * b,
        lambda rng, dtype: [tuple(values(rng, dtype, LINE, s) for s in ((5, 7), (7,), (5, 1)))],
        {"float32": 2.0, "float64": 2.0},
        floating,
        lambda c, a, b, value=1: np.abs(c) + np.abs(value * a * b),
        ({}, {"value": 2.5}),
        signed_zero=False,
        differentiable=(0, 1, 2),
        smooth=lambda rng: [tuple(rng.normal(size=s) for s in ((2, 3), (3,), (2, 1)))],
        gradient_tolerance=8,
    ),
    OpCase(
        "prelu",
        tw.prelu,
        prelu,
        prelu_arguments,
        floats(0.5, 0.5),
        floating,
        signed_zero=False,
        differentiable=(0, 1),
        smooth=lambda rng: [
            (away_from_0(rng.normal(size=(2, 3, 2))), rng.normal(size=n)) for n in (3, 1)
        ],
        gradient_tolerance=8,
        errors=(
            ErrorInput(
                lambda: tw.prelu(tw.ones((2, 3)), tw.ones((2,))),
                ValueError,
                "prelu: 2 weights do not fit an input of shape (2, 3), which has 3 channels",
            ),
            ErrorInput(
                lambda: tw.prelu(tw.ones((2, 3)), tw.ones((3, 1))),
                ValueError,
                "prelu: expected a weight of shape (1,) or (channels,), got (3, 1)",
            ),
        ),
    ),
    OpCase(
        "glu",
        tw.glu,
        glu,
        glu_arguments,
        {"float32": 4.0, "float64": 4.0},
        floating,
        variants=({"axis": 0}, {}),
        signed_zero=False,
        differentiable=(0,),
        smooth=lambda rng: [(rng.normal(size=(2, 4)),)],
        gradient_tolerance=8,
        errors=(
            ErrorInput(
                lambda: tw.glu(tw.ones((2, 3))),
                ValueError,
                "glu: axis 1 of shape (2, 3) is of odd length 3",
            ),
            ErrorInput(lambda: tw.glu(tw.ones((2, 4)), axis=2), IndexError, "glu: axis 2"),
        ),
    ),
)
RECORDS = (*ROWS, *OPS)
