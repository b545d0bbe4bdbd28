"""The machine's limits as this engine reaches them: arithmetic and memory bandwidth."""

from __future__ import annotations

from functools import cache
from timeit import Timer
from typing import NamedTuple

import tilewright as tw
from tilewright import kernels

_ROUNDS = 9
# Long enough for a dozen rounds, of which one has the machine to itself.
_QUICK_SECONDS = 0.025
# The sizes of a product that takes about 2 ms at 200, and at 2, GFLOP/s: what a processor with
# vectors, and one without, does on one thread.
_QUICK_SIZES = (512, 96)
# Three blocks of this size lie beyond the L2 of every core; larger ones take longer to write once
# than all the rest of a quick measurement.
_QUICK_BLOCK_BYTES = 16 << 20
_SLOW_FLOPS = 1e10
# By so much a rate may exceed the best one that was measured before another level must have served.
_TOLERANCE = 1.05
# Of one cache's measurement.
_CACHE_SECONDS = 0.002


class Level(NamedTuple):
    """A level of memory: how much it holds for all threads, and its best rate to all of them."""

    name: str
    capacity_bytes: float
    bytes_per_s: float


class Peaks(NamedTuple):
    """What share of a roofline is told against.

    `levels`: from the first-level cache to memory, as far as their sizes are known. `slowdown`: the
    time of a product over what the cost estimates say of it, by which they are scaled.
    """

    flops_per_s: float
    levels: tuple[Level, ...]
    slowdown: float

    @property
    def bytes_per_s(self) -> float:
        """The rate of memory."""
        return self.levels[-1].bytes_per_s

    def served_by(self, moved_bytes: float, ns: float) -> Level:
        """The level that the data of an op came from: the first that holds them all.

        Where that could not have moved them in so short a time, the slowest one that could.
        """
        at = next(i for i, level in enumerate(self.levels) if moved_bytes <= level.capacity_bytes)
        while at > 0 and moved_bytes / ns * 1e9 > _TOLERANCE * self.levels[at].bytes_per_s:
            at -= 1
        return self.levels[at]


def matmul_flops(
    n: int = 1024, dtype: tw.dtype = tw.float32, seconds: float | None = None
) -> float:
    """Best rate of an n x n product, FLOP a second. 1024 is past every start-up cost."""
    stream = tw.Generator(0)
    x, y = (tw.normal(0.0, 1.0, (n, n), dtype=dtype, generator=stream) for _ in range(2))
    return 2.0 * n**3 / _best_seconds(Timer("x @ y", globals={"x": x, "y": y}), seconds)


def add_bandwidth(block_bytes: int = 64 << 20, seconds: float | None = None) -> float:
    """Best rate of x + y, bytes a second. 64 MiB blocks lie far beyond most L3 caches."""
    x, y = (tw.full((block_bytes // 4,), value, dtype=tw.float32) for value in (1.5, 2.5))
    return 3.0 * block_bytes / _best_seconds(Timer("x + y", globals={"x": x, "y": y}), seconds)


@cache
def does_all_work(op: str, kernel: str) -> bool:
    """Whether a kernel does what its op is told to do: others do less, or in a narrower type."""
    known = {each["name"]: each["precision"] for each in tw._core.kernels_of_op(op)}
    return bool(known.get(kernel, "ieee") == "ieee")


def quick_peaks(dtype: str = "float32") -> Peaks:
    """Peaks of the active instruction set and thread count, measured once a process.

    Takes about a twentieth of a second the first time. Rates of caches are those of one core times
    the number of threads. Kernels that are forced have no influence,
    the random stream stays as it is, and no surrounding `explain` sees the ops. Types other than
    float64 are told against float32, in which they are computed.
    """
    computed = "float64" if dtype == "float64" else "float32"
    return _measured(tw.active_isa(), tw.get_num_threads(), computed)


@cache
def _measured(isa: str, threads: int, dtype: str) -> Peaks:
    observing = tw._core._Observing(alone=True)
    # Timing through an observer costs its record, some microseconds in milliseconds.
    try:
        with tw.no_grad(), kernels.use(matmul=""):
            return Peaks(_quick_flops(dtype), _levels(isa, threads), _slowdown(dtype))
    finally:
        observing.stop()


@cache
def _levels(_isa: str, threads: int) -> tuple[Level, ...]:
    info = tw._core.cpu_info()
    levels: list[Level] = []
    for name, key, shared in (("L1", "l1d_bytes", 1), ("L2", "l2_bytes", 1), ("L3", "l3_bytes", 0)):
        size = info[key]
        # Half of the level, and at least twice what the level before holds.
        least = 2 * levels[-1].capacity_bytes / threads if levels else 0
        measured = max(min(size / 2, _QUICK_BLOCK_BYTES), least)
        if not size or measured > size:
            continue
        rate = tw._core._add_bandwidth(int(measured), _CACHE_SECONDS)
        levels.append(Level(name, size * (threads if shared else 1), rate * threads))
    rate = add_bandwidth(_QUICK_BLOCK_BYTES, _QUICK_SECONDS)
    return (*levels, Level("memory", float("inf"), rate))


def _slowdown(dtype: str) -> float:
    """Measured time of a product over the estimate by which its kernel was chosen."""
    stream = tw.Generator(0)
    x = tw.normal(0.0, 1.0, (_QUICK_SIZES[1],) * 2, dtype=getattr(tw, dtype), generator=stream)
    observing = tw._core._Observing(alone=True)
    for _ in range(9):
        x @ x
    seen = [event for event in observing.stop() if event["op"] == "matmul"]
    estimates = [c["cost_ns"] for c in seen[-1]["candidates"] if c["chosen"] and c["cost_ns"]]
    measured = sorted(event["ns"] for event in seen)[len(seen) // 2]
    return measured / estimates[0] if estimates else 1.0


def _quick_flops(dtype: str) -> float:
    large, small = _QUICK_SIZES
    element = getattr(tw, dtype)
    rate = matmul_flops(small, element, _QUICK_SECONDS / 5)
    return rate if rate < _SLOW_FLOPS else matmul_flops(large, element, _QUICK_SECONDS)


def _best_seconds(timer: Timer, budget_s: float | None = None) -> float:
    """The fastest of a fixed number of rounds, or of as many as fit into a budget, at least 2."""
    if budget_s is None:
        return min(timer.repeat(_ROUNDS, 1))
    best = timer.timeit(1)
    left = budget_s - best
    while True:
        took = timer.timeit(1)
        best, left = min(best, took), left - took
        if left < took:
            return best
