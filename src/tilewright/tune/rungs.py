"""The cost model's rates, fitted to times, so that the cheapest estimate is the fastest rung."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from statistics import fmean, median
from typing import NamedTuple

import tilewright as tw
from tilewright.tune import table
from tilewright.tune.timing import Clock, Work, rounds

# Time of each rung on each product: medians, in ns, without the cost of a call from Python.
Times = Mapping[Work, Mapping[str, float]]
Values = Mapping[str, float]

_LEAST_ROUNDS, _MOST_ROUNDS = 3, 15
# A rung whose estimate is this many times the cheapest is no rival, however wrong the estimate.
_HOPELESS = 30.0
# What a value must save on average over the products, as a share of time, to be worth its change.
_LEAST_SAVING = 0.002
# Estimates should come near the times as well, but choosing rightly counts this many times as much.
_CHOICE_WEIGHT = 10.0
# What no line fits, such as tiny products that wait for partial vectors, must not outweigh others.
_MOST_REGRET, _MOST_ERROR = math.log(1.5), math.log(2)
# Least squares fit a line; these shifts of a rung's rates mend the order of rungs where it matters.
_SHIFTS = {
    "overhead_ns": (0.5, 0.7, 1.4, 2.0),
    "ns_per_flop": (0.9, 0.95, 1.05, 1.1),
}
# Tried in place of the numbers that are no rates: factors of the values in force.
_MISSES = {
    "cold_bytes": (1.0, 2.0, 4.0),
    "cold_ns": (1.0, 0.25, 0.5, 2.0),
    "conflict_ns": (1.0, 0.5, 2.0),
    "alias_ns": (1.0, 0.3, 2.0),
}
_FEWEST_PRODUCTS = 3
_EMPTY = Work(1, 1, 1, kernel="naive")

WORKS = (
    *(Work(n, n, n) for n in (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)),
    Work(8, 784, 256),
    Work(64, 784, 256),
    Work(64, 784, 256, transposed=True),
    Work(64, 256, 10, transposed=True),
    Work(2048, 256, 64),
    Work(64, 256, 2048),
    Work(128, 128, 1024),
    Work(128, 1024, 1024),
)


class Estimate(NamedTuple):
    """What the engine expects of a rung: `fixed_ns` does not depend on its two rates.

    `chosen`: it is the cheapest of those with rates. A rung without (bfloat16 parts on tile
    registers, say) may be cheaper still; no rate of this table is to make up for that.
    """

    ns: float
    fixed_ns: float
    chosen: bool


def estimates(work: Work) -> dict[str, Estimate]:
    """The engine's own estimates for the rungs that accept a product; nothing is computed."""
    device = tw.active_device()
    observing = tw._core._Observing(alone=True)
    try:
        tw.set_device("null")
        y = tw.empty((work.n, work.k)).T if work.transposed else tw.empty((work.k, work.n))
        tw.empty((work.m, work.k)) @ y
    finally:
        tw.set_device(device)
        seen = observing.stop()
    found = {}
    for rung in seen[-1]["candidates"]:
        if rung["accepted"]:
            rated = sum(ns for name, ns in rung["terms"] if name in ("overhead", "arithmetic"))
            ns = rung["cost_ns"]
            found[rung["name"]] = Estimate(ns, ns - rated, chosen=False)
    cheapest = min(filter(_rates_of, found), key=lambda name: found[name].ns)
    found[cheapest] = found[cheapest]._replace(chosen=True)
    return found


def measure(clock: Clock, seconds: float, tell: Callable[[Work], None]) -> Times:
    """One thread's times, of as many products as fit into the time, small ones first."""
    start = clock.now()
    pairs: list[Work] = []
    costs = 0.0
    for work in sorted(WORKS, key=lambda work: work.m * work.k * work.n):
        rivals = estimates(work)
        cheapest = min(estimate.ns for estimate in rivals.values())
        kernels = [name for name, rung in rivals.items() if rung.ns < _HOPELESS * cheapest]
        new = [work._replace(kernel=kernel) for kernel in kernels if _rates_of(kernel)]
        before = clock.now()
        for pair in new:
            tell(pair)
            clock.seconds(pair)
        costs += clock.now() - before
        # Making operands and finding the length of a sample costs a first time about two rounds.
        if clock.now() - start + costs * _LEAST_ROUNDS > seconds:
            break
        pairs += new
    if not pairs:
        return {}
    samples: dict[Work, list[float]] = {pair: [] for pair in (_EMPTY, *pairs)}
    for i in rounds(clock, start + seconds - clock.now(), _LEAST_ROUNDS, _MOST_ROUNDS):
        order = list(samples)
        for pair in order[i:] + order[:i]:
            tell(pair)
            samples[pair].append(clock.seconds(pair))
    call_ns = 1e9 * median(samples[_EMPTY]) - estimates(_EMPTY)["naive"].ns
    times: dict[Work, dict[str, float]] = {}
    for pair in pairs:
        # A nanosecond stands for what the clock cannot tell apart.
        ns = max(1e9 * median(samples[pair]) - call_ns, 1.0)
        times.setdefault(pair._replace(kernel=""), {})[pair.kernel] = ns
    return times


def fitted(times: Times) -> dict[str, float]:
    """Values with which the choices lose least against the fastest rungs; empty: those in force.

    What a cache miss costs is tried, and for each attempt the rates follow by least squares of
    relative errors; then one rate after another is shifted a little.
    """
    best: dict[str, float] = {}
    least = _loss(times, best)
    for misses in _miss_values():
        with table.use(**misses):
            rates = {name: x for rung in _names(times) for name, x in _fit(rung, times).items()}
        if (loss := _loss(times, {**misses, **rates})) < least - _LEAST_SAVING:
            best, least = {**misses, **rates}, loss
    for rung, (rate, factors) in product(_names(times), _SHIFTS.items()):
        name = f"{rung}_{rate}"
        middle = best.get(name, table.current()[name])
        for factor in factors:
            tried = {**best, name: _rounded(name, middle * factor)}
            if (loss := _loss(times, tried)) < least - _LEAST_SAVING:
                best, least = tried, loss
    now = table.current()
    return {name: value for name, value in best.items() if value != now[name]}


def _miss_values() -> Iterator[dict[str, float]]:
    now = table.current()
    for factors in product(*_MISSES.values()):
        yield {
            name: _rounded(name, now[name] * factor)
            for name, factor in zip(_MISSES, factors, strict=True)
        }


def changed_choices(times: Times, values: Values) -> list[Work]:
    """The products for which other rungs are chosen with these values."""
    before = {work: _chosen(work) for work in times}
    with table.use(**values):
        return [work for work in times if _chosen(work) != before[work]]


def _loss(times: Times, values: Values) -> float:
    """What the choices lose against the fastest rungs, and how far the estimates are off.

    Means of logarithms over products; the first weighs more.
    """
    if not times:
        return 0.0
    losses, errors = [], []
    with table.use(**values):
        for work, measured in times.items():
            rivals = estimates(work)
            losses.append(min(_regret(measured, rivals), _MOST_REGRET))
            for name, ns in measured.items():
                errors.append(min(abs(math.log(max(rivals[name].ns, 1) / ns)), _MOST_ERROR))
    return fmean(losses) + fmean(errors) / _CHOICE_WEIGHT


def _regret(measured: Mapping[str, float], rivals: Mapping[str, Estimate]) -> float:
    chosen = next(name for name, rival in rivals.items() if rival.chosen)
    # A rung that was too slow to be measured loses by more than any that was.
    ns = measured.get(chosen, max(measured.values()) * _HOPELESS)
    return math.log(ns / min(measured.values()))


def _chosen(work: Work) -> str:
    return next(name for name, estimate in estimates(work).items() if estimate.chosen)


def _names(times: Times) -> list[str]:
    return list(dict.fromkeys(name for measured in times.values() for name in measured))


@functools.cache
def _rates_of(rung: str) -> bool:
    return f"{rung}_ns_per_flop" in table.defaults()


def _fit(rung: str, times: Times) -> dict[str, float]:
    """Overhead o and rate r of t = o + r * flops + fixed, weighted by 1 / t^2."""
    points = []
    for work, measured in times.items():
        if rung in measured:
            fixed = estimates(work)[rung].fixed_ns
            points.append((2.0 * work.m * work.k * work.n, measured[rung] - fixed, measured[rung]))
    if len(points) < _FEWEST_PRODUCTS:
        return {}
    w = sum(1 / t**2 for _, _, t in points)
    f = sum(x / t**2 for x, _, t in points)
    ff = sum(x * x / t**2 for x, _, t in points)
    y = sum(rest / t**2 for _, rest, t in points)
    fy = sum(x * rest / t**2 for x, rest, t in points)
    overhead = (y * ff - fy * f) / (w * ff - f * f)
    if overhead < 0:
        overhead = 0.0
    rate = (fy - overhead * f) / ff
    found = {f"{rung}_overhead_ns": overhead, f"{rung}_ns_per_flop": rate}
    limits = {row["name"]: row for row in tw._core.matmul_tunables()}
    if any(not limits[name]["least"] <= x <= limits[name]["most"] for name, x in found.items()):
        return {}
    return {name: _rounded(name, value) for name, value in found.items()}


def _rounded(name: str, value: float) -> float:
    """Whole where it must be, else four digits: more would promise too much."""
    return round(value) if isinstance(table.defaults()[name], int) else float(f"{value:.4g}")
