"""Records of functions of numbers that are made of pointwise rows, by formulas in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import tilewright as tw
from cases.formulas import polygamma
from cases.generators import (
    WHOLE,
    Domain,
    away_from,
    exact,
    floating,
    floats,
    generator,
    promoted,
    same,
    truth,
)
from cases.record import ErrorInput, OpCase

LINE = (-4.0, 4.0)
SMALL = (-9.0, 9.0)
FLOATING = ("float16", "bfloat16", "float32", "float64")


def refused(name: str, arity: int) -> tuple[ErrorInput, ...]:
    def call() -> object:
        return getattr(tw, name)(*[tw.ones((2,), dtype=tw.complex64)] * arity)

    return (ErrorInput(call, TypeError, name if arity < 3 else ""),)


def negative_tolerance(name: str) -> tuple[ErrorInput, ...]:
    def call() -> object:
        return getattr(tw, name)(tw.ones((2,)), tw.ones((2,)), rtol=-1.0)

    return (ErrorInput(call, ValueError, f"{name}: rtol is negative: -1"),)


def make(
    name: str,
    reference: Callable[..., Any],
    domains: tuple[Domain, ...],
    tolerance: Mapping[str, float],
    result: Callable[[str], str] = floating,
    *,
    smooth: tuple[Domain, ...] | None = None,
    kinks: tuple[float, ...] = (),
    differentiable: bool = True,
    **options: Any,
) -> OpCase:
    return OpCase(
        name=name,
        call=options.pop("call", getattr(tw, name)),
        reference=reference,
        arguments=generator(domains, options.pop("whole", domains)),
        tolerance=tolerance,
        result=result,
        differentiable=tuple(range(len(domains))) if differentiable else (),
        smooth=away_from(kinks, smooth or domains) if differentiable else None,
        gradient_tolerance=16 if differentiable else None,
        errors=options.pop("errors", None) or refused(name, len(domains)),
        **options,
    )


def both(single: float, double: float) -> dict[str, float]:
    return {**floats(single, double), **promoted(single)}


def size_of_terms(*terms: Any) -> Any:
    return sum(np.abs(x) for x in terms) + 1


def close(a: Any, b: Any, **options: Any) -> Any:
    """NumPy takes whole numbers in their own type, where differences wrap."""
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    return np.isclose(a.astype(wide), b.astype(wide), **options)


TOLERANCES: tuple[Mapping[str, Any], ...] = ({}, {"rtol": 0.5, "atol": 1.0})


RECORDS = (
    make(
        "logaddexp2",
        np.logaddexp2,
        (LINE, LINE),
        both(2, 2),
        scale=size_of_terms,
    ),
    make(
        "xlog1py",
        lambda a, b: a * np.log1p(b),
        (LINE, (-0.9, 9.0)),
        both(1.6, 1.6),
        whole=(SMALL, (0.0, 9.0)),
    ),
    make(
        "logit",
        lambda x, eps=None: (
            np.log(x) - np.log1p(-x)
            if eps is None
            else np.log(np.clip(x, eps, 1 - eps)) - np.log1p(-np.clip(x, eps, 1 - eps))
        ),
        ((0.01, 0.95),),
        floats(4, 4),
        variants=({}, {"eps": 0.25}),
        scale=lambda x, eps=None: 1 + np.abs(np.log(x / (1 - x))),
        smooth=((0.3, 0.7),),
    ),
    make(
        "nan_to_num",
        lambda x: x,
        (LINE,),
        {**exact(*FLOATING), **WHOLE},
        same,
    ),
    make("frac", lambda x: x - np.trunc(x), (SMALL,), exact(*FLOATING), same, smooth=((0.1, 0.9),)),
    make("deg2rad", np.deg2rad, ((-400.0, 400.0),), both(1.5, 1.5), whole=(SMALL,)),
    make("rad2deg", np.rad2deg, (SMALL,), both(1.5, 1.5)),
    make(
        "sinc",
        np.sinc,
        (LINE,),
        both(4, 4),
        scale=lambda x: 1 + 0 * x,
        smooth=((0.2, 2.0),),
        whole=(LINE,),
    ),
    make(
        "polygamma",
        polygamma,
        ((0.01, 50.0),),
        both(1, 8),
        call=lambda x, n=1: tw.polygamma(n, x),
        smooth=((0.5, 4.0),),
        whole=((1.0, 9.0),),
        variants=({}, {"n": 0}, {"n": 3}),
        errors=(
            ErrorInput(lambda: tw.polygamma(-1, tw.ones(2)), ValueError, "polygamma: n must be"),
            ErrorInput(lambda: tw.polygamma(171, tw.ones(2)), ValueError, "to 170, got 171"),
            ErrorInput(
                lambda: tw.polygamma(1, tw.ones(2, dtype=tw.complex64)), TypeError, "polygamma"
            ),
        ),
    ),
    make(
        "heaviside",
        lambda x, v: np.where(x == 0, v, np.where(x > 0, 1, 0)),
        (LINE, LINE),
        {**exact(*FLOATING), **WHOLE},
        same,
        differentiable=False,
    ),
    make(
        "float_power",
        np.float_power,
        ((0.1, 6.0), LINE),
        {"float64": 1.0},
        same,
        smooth=((0.5, 3.0), LINE),
    ),
    make(
        "isclose",
        close,
        (LINE, LINE),
        {**exact(*FLOATING, "complex64", "complex128"), **WHOLE, "bool": 0.0},
        truth,
        variants=TOLERANCES,
        errors=negative_tolerance("isclose"),
        differentiable=False,
    ),
    make(
        "allclose",
        lambda a, b, **options: close(a, b, **options).all(),
        (LINE, LINE),
        {**exact(*FLOATING, "complex64", "complex128"), **WHOLE, "bool": 0.0},
        truth,
        variants=TOLERANCES,
        errors=negative_tolerance("allclose"),
        differentiable=False,
    ),
    make(
        "isposinf",
        lambda x: x == np.inf,
        (LINE,),
        {**exact(*FLOATING), **WHOLE, "bool": 0.0},
        truth,
        differentiable=False,
    ),
    make(
        "isneginf",
        lambda x: x == -np.inf,
        (LINE,),
        {**exact(*FLOATING), **WHOLE, "bool": 0.0},
        truth,
        differentiable=False,
    ),
    make(
        "addcdiv",
        lambda x, a, b: x + a / b,
        (LINE, LINE, (0.5, 4.0)),
        {"float32": 2.0, "float64": 2.0},
        scale=lambda x, a, b: size_of_terms(x, a / b),
        errors=(
            ErrorInput(lambda: tw.addcdiv(tw.ones(2), tw.ones(3), tw.ones(2)), ValueError, ""),
        ),
    ),
    make(
        "clamp_min",
        np.maximum,
        (LINE, LINE),
        {**exact(*FLOATING), **WHOLE},
        same,
        smooth=((1.0, 2.0), (-2.0, 0.5)),
        signed_zero=False,
        errors=(ErrorInput(lambda: tw.clamp_min(tw.ones(2), tw.ones(3)), ValueError, ""),),
    ),
    make(
        "clamp_max",
        np.minimum,
        (LINE, LINE),
        {**exact(*FLOATING), **WHOLE},
        same,
        smooth=((1.0, 2.0), (-2.0, 0.5)),
        signed_zero=False,
        errors=(ErrorInput(lambda: tw.clamp_max(tw.ones(2), tw.ones(3)), ValueError, ""),),
    ),
    make(
        "nanmean",
        lambda x: np.nanmean(x) if x.size else np.nan,
        (LINE,),
        floats(2, 2),
        same,
        scale=lambda x: np.abs(x).max() + 1 if x.size else 1,
    ),
)
