"""The machine's limits as this engine reaches them: arithmetic and memory bandwidth."""

from __future__ import annotations

from timeit import Timer

import tilewright as tw

_ROUNDS = 9


def matmul_flops(n: int = 1024) -> float:
    """Best rate of an n x n float32 product, FLOP a second. 1024 is past every start-up cost."""
    x, y = tw.randn(n, n), tw.randn(n, n)
    return 2.0 * n**3 / _best_seconds(Timer("x @ y", globals={"x": x, "y": y}))


def add_bandwidth(block_bytes: int = 64 << 20) -> float:
    """Best rate of x + y, bytes a second. 64 MiB blocks lie far beyond most L3 caches."""
    x, y = tw.randn(block_bytes // 4), tw.randn(block_bytes // 4)
    return 3.0 * block_bytes / _best_seconds(Timer("x + y", globals={"x": x, "y": y}))


def _best_seconds(timer: Timer) -> float:
    return min(timer.repeat(_ROUNDS, 1))
