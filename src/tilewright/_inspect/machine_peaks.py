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


class Peaks(NamedTuple):
    """What share of a roofline is told against."""

    flops_per_s: float
    bytes_per_s: float


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


def quick_peaks(dtype: str = "float32") -> Peaks:
    """Peaks of the active instruction set and thread count, measured once a process.

    Takes about a twentieth of a second the first time. Kernels that are forced have no influence,
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
            return Peaks(_quick_flops(dtype), _quick_bandwidth(isa, threads))
    finally:
        observing.stop()


@cache
def _quick_bandwidth(_isa: str, _threads: int) -> float:
    return add_bandwidth(_QUICK_BLOCK_BYTES, _QUICK_SECONDS)


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
