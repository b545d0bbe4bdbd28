"""Steps along a line satisfy the strong Wolfe conditions, computed here from the function."""

from __future__ import annotations

import math

import pytest

import tilewright as tw
from tilewright.optim.line_search import Point, strong_wolfe

# A function of the step's length, and its slope.
LINES = {
    "parabola": (lambda t: (t - 1) ** 2, lambda t: 2 * (t - 1)),
    "quartic": (lambda t: (t - 3) ** 4 / 4, lambda t: (t - 3) ** 3),
    "waves": (lambda t: 0.1 * t - math.sin(t), lambda t: 0.1 - math.cos(t)),
    "flat far out": (lambda t: -t / (t * t + 2), lambda t: (t * t - 2) / (t * t + 2) ** 2),
    "infinite behind a wall": (
        lambda t: -math.log(1 - t) - 5 * t if t < 1 else math.inf,
        lambda t: 1 / (1 - t) - 5 if t < 1 else math.nan,
    ),
    "no number behind a wall": (
        lambda t: -math.sqrt(2 - t) - 2 * t if t <= 1.9 else math.nan,
        lambda t: 0.5 / math.sqrt(2 - t) - 2 if t <= 1.9 else math.nan,
    ),
    "kink": (lambda t: abs(t - 1) + 0.01 * t * t, lambda t: math.copysign(1, t - 1) + 0.02 * t),
    "cubic": (lambda t: t**3 - 3 * t, lambda t: 3 * t * t - 3),
    "falls for ever": (lambda t: -t, lambda t: -1.0),
    "slope that lies": (lambda t: t, lambda t: 1.0 if t else -1.0),
}
WITH_GOOD_STEPS = ["parabola", "quartic", "waves", "flat far out", "infinite behind a wall"]


def searched(name: str, first: float) -> tuple[float, Point, list[float]]:
    """The step that is found along `direction` 2, its point, and the lengths that were tried."""
    loss, slope = LINES[name]
    tried = []

    def evaluate(t: float) -> Point:
        tried.append(t)
        return Point(loss(t), tw.asarray([slope(t) / 2], dtype=tw.float64))

    direction = tw.asarray([2.0], dtype=tw.float64)
    start = Point(loss(0.0), tw.asarray([slope(0.0) / 2], dtype=tw.float64))
    t, point = strong_wolfe(evaluate, direction, first, start, slope(0.0), 1e-9)
    return t, point, tried


@pytest.mark.parametrize("first", [1e-4, 0.3, 1.0, 1.99, 40.0, 1e4])
@pytest.mark.parametrize("name", WITH_GOOD_STEPS)
def test_both_conditions_hold(name, first):
    loss, slope = LINES[name]
    t, point, tried = searched(name, first)
    assert t > 0
    assert loss(t) <= loss(0.0) + 1e-4 * t * slope(0.0)
    assert abs(slope(t)) <= 0.9 * abs(slope(0.0))
    assert point.loss == loss(t)
    assert point.gradient.item() == slope(t) / 2
    assert tried.count(t) == 1
    assert len(tried) <= 25


@pytest.mark.parametrize("name", [*WITH_GOOD_STEPS, "no number behind a wall", "kink"])
@pytest.mark.parametrize("first", [1e-3, 1.0, 30.0])
def test_the_loss_falls_where_no_step_is_flat(name, first):
    loss, slope = LINES[name]
    t, point, tried = searched(name, first)
    assert loss(t) <= loss(0.0) + 1e-4 * t * slope(0.0)
    assert point.loss == min(loss(x) for x in tried if not math.isnan(loss(x)))
    assert len(tried) <= 25


def test_a_cubic_is_met_at_once():
    t, _, tried = searched("cubic", 2.0)
    assert tried == [2.0, pytest.approx(1.0)]
    assert t == tried[-1]


def test_a_loss_that_only_falls_ends_the_search():
    t, _, tried = searched("falls for ever", 1.0)
    assert len(tried) == 25
    assert t == tried[-1] == max(tried)


def test_a_loss_that_only_rises_takes_no_step():
    t, point, _ = searched("slope that lies", 1.0)
    assert t == 0.0
    assert point.loss == 0.0
