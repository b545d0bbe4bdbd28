"""A search along a line for a step that satisfies the strong Wolfe conditions.

Source: J. Nocedal and S. Wright, "Numerical optimization" (2nd edition, 2006): algorithms 3.5 and
3.6, with trial steps from the cubic of equation (3.59).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import tilewright as tw
from tilewright import Tensor

# c1 and c2 of the book for quasi-Newton directions: the loss must fall by this share of what the
# first slope promises, and the slope to this share of it.
_DECREASE, _CURVATURE = 1e-4, 0.9
_MOST_TRIALS = 25
# A trial beyond the last one is this many times as far at least and at most.
_LEAST_GROWTH, _MOST_GROWTH = 2.0, 10.0
# A trial within a bracket leaves this share of it on either side, or halves it.
_MARGIN = 0.1


class Point(NamedTuple):
    """Loss and gradient at a place."""

    loss: float
    gradient: Tensor


class _Trial(NamedTuple):
    """A step of length t: the loss there, its slope along the line, and where both are from."""

    t: float
    loss: float
    slope: float
    point: Point


def strong_wolfe(
    evaluate: Callable[[float], Point],
    direction: Tensor,
    t: float,
    start: Point,
    slope: float,
    tolerance_change: float,
) -> tuple[float, Point]:
    """The step length, and what is known there; `evaluate(t)` looks at a step of length t."""
    origin = _Trial(0.0, start.loss, slope, start)
    found = _Line(evaluate, direction, origin, tolerance_change).search(t)
    return found.t, found.point


class _Line:
    """The loss as a function of the step's length."""

    def __init__(
        self,
        evaluate: Callable[[float], Point],
        direction: Tensor,
        origin: _Trial,
        tolerance_change: float,
    ) -> None:
        self.evaluate = evaluate
        self.direction = direction
        self.origin = origin
        self.tolerance_change = tolerance_change
        self.longest: float = tw.max(tw.abs(direction)).item()
        self.trials = 0

    def search(self, t: float) -> _Trial:
        """Algorithm 3.5: goes further until a good step lies behind, or is met."""
        before, now = self.origin, self.look(t)
        while self.trials < _MOST_TRIALS:
            has_risen = before is not self.origin and now.loss >= before.loss
            if has_risen or not self.falls_enough(now):
                return self.zoom(before, now)
            if self.is_flat_enough(now):
                return now
            if now.slope >= 0:
                return self.zoom(now, before)
            before, now = now, self.look(_beyond(before, now))
        return now if now.loss < before.loss else before

    def zoom(self, low: _Trial, high: _Trial) -> _Trial:
        """Algorithm 3.6: narrows a bracket, of which `low` is the best step known."""
        while self.trials < _MOST_TRIALS and not self.is_narrow(low, high):
            now = self.look(_between(low, high))
            if now.loss >= low.loss or not self.falls_enough(now):
                high = now
                continue
            if self.is_flat_enough(now):
                return now
            if now.slope * (high.t - low.t) >= 0:
                high = low
            low = now
        return low

    def look(self, t: float) -> _Trial:
        self.trials += 1
        point = self.evaluate(t)
        return _Trial(t, point.loss, tw.sum(point.gradient * self.direction).item(), point)

    def falls_enough(self, trial: _Trial) -> bool:
        """Sufficient decrease; not so where the loss is NaN."""
        return trial.loss <= self.origin.loss + _DECREASE * trial.t * self.origin.slope

    def is_flat_enough(self, trial: _Trial) -> bool:
        return abs(trial.slope) <= _CURVATURE * abs(self.origin.slope)

    def is_narrow(self, a: _Trial, b: _Trial) -> bool:
        return abs(a.t - b.t) * self.longest < self.tolerance_change


def _beyond(before: _Trial, now: _Trial) -> float:
    least, most = _LEAST_GROWTH * now.t, _MOST_GROWTH * now.t
    t = _lowest_of_cubic(before, now)
    return most if math.isnan(t) else min(max(t, least), most)


def _between(low: _Trial, high: _Trial) -> float:
    t, margin = _lowest_of_cubic(low, high), _MARGIN * abs(high.t - low.t)
    first, last = sorted((low.t, high.t))
    return t if first + margin <= t <= last - margin else (first + last) / 2


def _lowest_of_cubic(a: _Trial, b: _Trial) -> float:
    """Where the cubic through two trials with their slopes is lowest (3.59); NaN if nowhere."""
    width = b.t - a.t
    d1 = a.slope + b.slope - 3 * (b.loss - a.loss) / width if width else math.nan
    square = d1 * d1 - a.slope * b.slope
    d2 = math.copysign(math.sqrt(square), width) if square >= 0 else math.nan
    divisor = b.slope - a.slope + 2 * d2
    return b.t - width * (b.slope + d2 - d1) / divisor if divisor else math.nan
