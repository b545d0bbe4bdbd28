"""Records of the losses of elements, by formulas in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tw
from cases.generators import same, values
from cases.ops.linear_and_losses import REDUCTIONS, reduced
from cases.record import Arrays, ErrorInput, OpCase

Shapes = tuple[tuple[int, ...], ...]
SHAPES: Shapes = ((67,), (5, 33), (2, 3, 4))
NARROW = {"float16": 3.0, "bfloat16": 3.0, "float32": 16.0, "float64": 16.0}


def refused(call: Callable[[], object], expected: type[Exception], text: str) -> ErrorInput:
    return ErrorInput(call, expected, text)


def halves(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """1 and -1."""
    return rng.choice(np.array([1.0, -1.0], np.float32), shape)


def of_floats(*domains: tuple[float, float], shapes: Shapes = SHAPES, signs: bool = False) -> Any:
    """An argument for each domain, and behind them 1 and -1 where `signs`."""

    def make(rng: np.random.Generator, dtype: str) -> list[Arrays]:
        return [
            tuple(values(rng, dtype, domain, shape) for domain in domains)
            + ((halves(rng, shape).astype(values(rng, dtype, (0, 1), ()).dtype),) if signs else ())
            for shape in shapes
        ]

    return make


def smooth_of(*domains: tuple[float, float], signs: bool = False, shape: Any = (2, 3)) -> Any:
    def make(rng: np.random.Generator) -> list[Arrays]:
        made = tuple(rng.uniform(low, high, shape) for low, high in domains)
        return [made + ((halves(rng, shape).astype(float),) if signs else ())]

    return make


def elements(formula: Callable[..., Any]) -> Callable[..., Any]:
    """The reduced values of a formula of elements."""

    def reference(*args: Any, reduction: str = "mean", **options: Any) -> Any:
        return reduced(formula(*args, **options), reduction)

    return reference


def loss(
    name: str,
    formula: Callable[..., Any],
    domains: tuple[tuple[float, float], ...],
    *,
    scale: Callable[..., Any],
    options: tuple[dict[str, Any], ...] = (),
    signs: bool = False,
    differentiable: tuple[int, ...] = (0, 1),
    smooth: Any = None,
    errors: tuple[ErrorInput, ...] = (),
) -> OpCase:
    """A record of a loss whose options `formula` and `scale` take."""
    call = getattr(tw, name)
    two = (tw.ones((2,)), tw.ones((3,)))
    return OpCase(
        name,
        call,
        elements(formula),
        of_floats(*domains, signs=signs),
        NARROW,
        same,
        elements(scale),
        (*REDUCTIONS, *options),
        signed_zero=False,
        differentiable=differentiable,
        smooth=smooth or smooth_of(*domains, signs=signs),
        gradient_tolerance=16,
        errors=(
            *errors,
            refused(
                lambda: call(*(two[0] for _ in range(len(domains) + signs)), reduction="max"),
                ValueError,
                f"{name}: reduction must be",
            ),
            refused(
                lambda: call(*(tw.astype(two[0], tw.int32) for _ in range(len(domains) + signs))),
                TypeError,
                f"{name}: needs floating-point inputs, got int32",
            ),
        ),
    )


def shapes_differ(name: str) -> ErrorInput:
    return refused(
        lambda: getattr(tw, name)(tw.ones((2,)), tw.ones((3,))),
        ValueError,
        f"{name}: shapes differ: (2,) and (3,)",
    )


# ---- differences ----


def huber(x: Any, y: Any, delta: float = 1.0) -> Any:
    d = np.abs(x - y)
    return np.where(d < delta, d * d / 2, delta * (d - delta / 2))


def smooth_l1(x: Any, y: Any, beta: float = 1.0) -> Any:
    return np.abs(x - y) if beta == 0 else huber(x, y, beta) / beta


def apart(rng: np.random.Generator) -> list[Arrays]:
    """Differences that are near no kink: those of betas and deltas below, and 0."""
    y = rng.normal(size=(2, 3))
    return [(y + np.array([[0.1, -0.2, 0.7], [-1.3, 2.5, 0.8]]), y)]


def size_of_both(x: Any, y: Any, **_: Any) -> Any:
    return (np.abs(x) + np.abs(y)) * (1 + np.abs(x) + np.abs(y))


# ---- likelihoods ----


def bce(x: Any, t: Any) -> Any:
    return -t * np.maximum(np.log(x), -100) - (1 - t) * np.maximum(np.log1p(-x), -100)


def logistic(x: Any, t: Any) -> Any:
    return np.maximum(x, 0) - x * t + np.log1p(np.exp(-np.abs(x)))


def kl_div(x: Any, t: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    y = np.exp(t) * (t - x) if log_target else t * np.log(np.where(t == 0, 1, t)) - t * x
    return y.sum() / len(y) if reduction == "batchmean" else reduced(y, reduction)


def kl_scale(x: Any, t: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    p = np.exp(t) if log_target else np.abs(t)
    y = p * (np.abs(x) + np.abs(t) + 2)
    return y.sum() / len(y) if reduction == "batchmean" else reduced(y, reduction)


def gaussian_nll(x: Any, t: Any, var: Any, full: bool = False, eps: float = 1e-6) -> Any:
    v = np.maximum(var, eps)
    return (np.log(v) + (x - t) ** 2 / v) / 2 + (math.log(2 * math.pi) / 2 if full else 0)


def gaussian_scale(x: Any, t: Any, var: Any, **_: Any) -> Any:
    return np.abs(np.log(var)) + (np.abs(x) + np.abs(t)) ** 2 / var + 1


def poisson_nll(
    x: Any, t: Any, log_input: bool = True, full: bool = False, eps: float = 1e-8
) -> Any:
    y = np.exp(x) - t * x if log_input else x - t * np.log(x + eps)
    some = np.where(t > 1, t, 2)
    stirling = some * np.log(some) - some + np.log(2 * np.pi * some) / 2
    return y + np.where(t > 1, stirling, 0) if full else y


def poisson_scale(x: Any, t: Any, **_: Any) -> Any:
    return np.exp(x) + t * (np.abs(x) + np.abs(np.log(x + 1e-8)) + np.abs(np.log(t)) + 2) + 2


# ---- margins ----


def hinge(x: Any, t: Any, margin: float = 1.0) -> Any:
    return np.where(t == 1, x, np.maximum(margin - x, 0))


def ranking(a: Any, b: Any, t: Any, margin: float = 0.0) -> Any:
    return np.maximum(-t * (a - b) + margin, 0)


x23, t2 = tw.ones((2, 3)), tw.asarray([0, 1])

RECORDS = (
    loss(
        "l1_loss",
        lambda x, y: np.abs(x - y),
        ((-3, 3), (-3, 3)),
        scale=lambda x, y: np.abs(x) + np.abs(y),
        smooth=apart,
        errors=(shapes_differ("l1_loss"),),
    ),
    loss(
        "smooth_l1_loss",
        smooth_l1,
        ((-3, 3), (-3, 3)),
        scale=lambda x, y, beta=1.0: size_of_both(x, y) / (beta or 1),
        options=({"beta": 0.5}, {"beta": 0.0}, {"beta": 2.0, "reduction": "none"}),
        smooth=apart,
        errors=(
            shapes_differ("smooth_l1_loss"),
            refused(
                lambda: tw.smooth_l1_loss(t2 * 1.0, t2 * 1.0, beta=-1.0),
                ValueError,
                "smooth_l1_loss: beta is negative: -1",
            ),
        ),
    ),
    loss(
        "huber_loss",
        huber,
        ((-3, 3), (-3, 3)),
        scale=size_of_both,
        options=({"delta": 0.5}, {"delta": 2.0, "reduction": "none"}),
        smooth=apart,
        errors=(
            shapes_differ("huber_loss"),
            refused(
                lambda: tw.huber_loss(t2 * 1.0, t2 * 1.0, delta=0.0),
                ValueError,
                "huber_loss: delta must be above 0, got 0",
            ),
        ),
    ),
    loss(
        "binary_cross_entropy",
        bce,
        ((0.05, 0.95), (0, 1)),
        scale=lambda x, t: 1 + np.abs(np.log(x)) + np.abs(np.log1p(-x)),
        errors=(shapes_differ("binary_cross_entropy"),),
    ),
    loss(
        "binary_cross_entropy_with_logits",
        logistic,
        ((-9, 9), (0, 1)),
        scale=lambda x, t: 1 + np.abs(x),
        errors=(shapes_differ("binary_cross_entropy_with_logits"),),
    ),
    OpCase(
        "kl_div",
        tw.kl_div,
        kl_div,
        of_floats((-5, 0), (0, 1), shapes=SHAPES[1:]),
        NARROW,
        same,
        kl_scale,
        (
            *REDUCTIONS,
            {"reduction": "batchmean"},
            {"log_target": True},
            {"log_target": True, "reduction": "none"},
        ),
        signed_zero=False,
        differentiable=(0, 1),
        smooth=smooth_of((-5, 0), (0.1, 1)),
        gradient_tolerance=16,
        errors=(
            refused(
                lambda: tw.kl_div(x23, tw.ones((4,))),
                ValueError,
                "shapes do not broadcast: (4,) and (2, 3)",
            ),
            refused(
                lambda: tw.kl_div(x23, x23, reduction="max"),
                ValueError,
                "kl_div: reduction must be 'mean', 'sum', 'none' or 'batchmean', got 'max'",
            ),
        ),
    ),
    loss(
        "gaussian_nll_loss",
        gaussian_nll,
        ((-3, 3), (-3, 3), (0.5, 3)),
        scale=gaussian_scale,
        options=({"full": True}, {"eps": 1e-3, "reduction": "none"}),
        differentiable=(0, 1, 2),
        errors=(
            refused(
                lambda: tw.gaussian_nll_loss(x23, x23, tw.ones((3,))),
                ValueError,
                "gaussian_nll_loss: var (3,) does not fit an input of shape (2, 3)",
            ),
            refused(
                lambda: tw.gaussian_nll_loss(x23, x23, x23, eps=0.0),
                ValueError,
                "gaussian_nll_loss: eps must be above 0, got 0",
            ),
        ),
    ),
    loss(
        "poisson_nll_loss",
        poisson_nll,
        ((0.1, 3), (1.5, 9)),
        scale=poisson_scale,
        options=(
            {"full": True},
            {"log_input": False, "full": True},
            {"log_input": False, "reduction": "none"},
        ),
    ),
    loss(
        "soft_margin_loss",
        lambda x, t: np.log1p(np.exp(-t * x)),
        ((-9, 9),),
        scale=lambda x, t: 1 + np.abs(x),
        signs=True,
        differentiable=(0, 1),
    ),
    loss(
        "hinge_embedding_loss",
        hinge,
        ((-3, 3),),
        scale=lambda x, t, margin=1.0: np.abs(x) + margin,
        signs=True,
        options=({"margin": 0.5},),
        differentiable=(0,),
    ),
    loss(
        "margin_ranking_loss",
        ranking,
        ((-3, 3), (-3, 3)),
        scale=lambda a, b, t, margin=0.0: np.abs(a) + np.abs(b) + margin,
        signs=True,
        options=({"margin": 0.5},),
        differentiable=(0, 1, 2),
    ),
)
