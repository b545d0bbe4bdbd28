"""What `tune` times: products of benchmark shapes, one sample at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from timeit import Timer
from typing import NamedTuple, Protocol

import tilewright as tw
from tilewright import kernels

# Above the clock's resolution and a thread's wake-up; short, so that other work on the machine
# rarely hits all samples of a round alike.
_SAMPLE_SECONDS = 1e-3
# A call this long has its data in no L2 of the call before; it needs no warming.
_LONG_CALL_SECONDS = 5e-3


class Work(NamedTuple):
    """A product m x k @ k x n of float32, `transposed`: b lies by columns, as in x @ weight.T.

    `kernel`: the rung that does it, "" for the engine's choice; `threads`: 0 for all.
    """

    m: int
    k: int
    n: int
    transposed: bool = False
    kernel: str = ""
    threads: int = 1

    def __str__(self) -> str:
        return f"{self.m}x{self.k}x{self.n}{' (b transposed)' if self.transposed else ''}"


class Clock(Protocol):
    """Where the search takes its times from; tests put a made-up machine in its place."""

    def now(self) -> float:
        """Seconds from some start."""

    def seconds(self, work: Work) -> float:
        """Seconds of one call, from one sample, with the numbers that are in force."""

    def forget(self) -> None:
        """Frees what was kept for the samples so far."""


class Stopwatch:
    """This machine."""

    def __init__(self) -> None:
        self._timers: dict[Work, tuple[Timer, int]] = {}
        self._all_threads = tw.get_num_threads()

    def now(self) -> float:
        """Seconds from some start."""
        return time.perf_counter()

    def seconds(self, work: Work) -> float:
        """Seconds of one call, from one sample, with the numbers that are in force."""
        with ExitStack() as stack:
            stack.callback(tw.set_num_threads, tw.get_num_threads())
            tw.set_num_threads(work.threads or self._all_threads)
            stack.enter_context(tw.no_grad())
            if work.kernel:
                stack.enter_context(kernels.use(matmul=work.kernel))
            timer, calls = self._timer(work)
            first = timer.timeit(1)  # brings data and threads back
            return first if first > _LONG_CALL_SECONDS else timer.timeit(calls) / calls

    def forget(self) -> None:
        """Frees what was kept for the samples so far."""
        self._timers.clear()

    def _timer(self, work: Work) -> tuple[Timer, int]:
        if work not in self._timers:
            timer = Timer("x @ y", globals=_operands(work))
            self._timers[work] = timer, _calls_per_sample(timer)
        return self._timers[work]


def _operands(work: Work) -> dict[str, tw.Tensor]:
    stream = tw.Generator(0)
    shapes = (work.m, work.k), ((work.n, work.k) if work.transposed else (work.k, work.n))
    x, y = (tw.normal(0.0, 1.0, shape, generator=stream) for shape in shapes)
    return {"x": x, "y": y.T if work.transposed else y}


def _calls_per_sample(timer: Timer) -> int:
    seconds = timer.timeit(1)  # the first call also fetches memory
    calls = 1
    while seconds < _SAMPLE_SECONDS / 2:
        calls = max(2 * calls, min(10 * calls, int(calls * _SAMPLE_SECONDS / max(seconds, 1e-9))))
        seconds = timer.timeit(calls)
    return calls


def rounds(clock: Clock, seconds: float, least: int, most: int) -> Iterator[int]:
    """Numbers of rounds, as long as one more of the length of those so far fits into the time."""
    start = clock.now()
    for i in range(most):
        yield i
        spent = clock.now() - start
        if i + 1 >= least and spent + spent / (i + 1) > seconds:
            return
