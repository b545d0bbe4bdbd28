"""What observing costs a program: measured once a process, for reports to tell and subtract."""

from __future__ import annotations

import functools
import threading
import time
from typing import NamedTuple

import tilewright as tw
from tilewright import _core
from tilewright.memory.timeline import MEMORY_EVENTS

_CALLS = 300  # a loop of some 0.3 ms
_ROUNDS = 5
_EVENTS_OF_A_CALL = 3  # memory of its result, the op, the memory's release


class Cost(NamedTuple):
    """`event_ns`: what an event costs the program; `inside_ns`: how much of that an op's ns has."""

    event_ns: float
    inside_ns: int


def cost_of_observing() -> Cost:
    """Measured on the first call while nobody observes; zeros where that was never so."""
    return (
        Cost(0.0, 0) if _core._observed() and not _measured.cache_info().currsize else _measured()
    )


@functools.cache
def _measured() -> Cost:
    found: list[Cost] = []
    # A thread of its own has none of the modes that the program's may be in.
    thread = threading.Thread(target=lambda: found.append(_measure()))
    thread.start()
    thread.join()
    return found[0] if found else Cost(0.0, 0)


def _measure() -> Cost:
    inside = _core._least_observed_ns(_CALLS)
    x = tw.ones((1,))

    def least_ns() -> float:
        return min(_loop_ns(x) for _ in range(_ROUNDS))

    plain = least_ns()
    observing = _core._Observing(["op", *MEMORY_EVENTS], everywhere=True, capacity=_CALLS)
    try:
        observed = least_ns()
    finally:
        observing.stop()
    return Cost(max(observed - plain, 0.0) / (_CALLS * _EVENTS_OF_A_CALL), inside)


def _loop_ns(x: tw.Tensor) -> float:
    start = time.perf_counter_ns()
    for _ in range(_CALLS):
        tw.exp(x)
    return time.perf_counter_ns() - start
