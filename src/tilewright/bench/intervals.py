"""Where the median of some figures lies: intervals that assume nothing about how they spread.

Source: order statistics, W. R. Thompson, "On confidence ranges for the median and other expectation
distributions", Annals of Mathematical Statistics 7 (1936).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

# Of all intervals so made, this share misses the median.
_MISSES = 0.05


@dataclass(frozen=True)
class Interval:
    """A median, and from where to where it lies by 95 % confidence; NaN where nobody knows."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """The larger distance from the median to an end, as a share of the median."""
        return max(self.high - self.value, self.value - self.low) / self.value

    def __str__(self) -> str:
        if math.isnan(self.low):
            return "not known"
        return f"{self.low:.2f} to {self.high:.2f}"


def median_interval(values: Sequence[float]) -> Interval:
    """Of at least one value. Fewer than six have all of them as their interval.

    Raises ValueError without a value.
    """
    if not values:
        raise ValueError("median_interval: no values")
    ordered = sorted(values)
    count = len(ordered)
    outside, below = 0, 1 / 2**count  # values left out on each side; chance of more on one side
    while below <= _MISSES / 2:
        outside += 1
        below += comb(count, outside) / 2**count
    at = max(outside - 1, 0)
    return Interval(ordered[(count - 1) // 2], ordered[at], ordered[count - 1 - at])


def ratio_interval(above: Sequence[float], below: Sequence[float]) -> Interval:
    """Of the ratios of values that were taken in turn, a pair a round."""
    return median_interval([a / b for a, b in zip(above, below, strict=True)])
