"""What each optimization buys: work with it on and off, by turns.

Run as a program, it times work for the process that started it, for rows that can be off from the
start alone (`small_calls` has the protocol).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from random import randrange
from timeit import Timer
from typing import Any

import tilewright as tw
from tilewright.bench.builds import Remote, Worker
from tilewright.bench.harness import Case, Timing, samples, timing_of
from tilewright.bench.intervals import Interval, median_interval, ratio_interval
from tilewright.bench.optimization_cases import CASES, Work
from tilewright.bench.small_calls import answers

ON, OFF = "on", "off"
# A process's layout moves small calls by up to a tenth: rows that need fresh processes have several
# pairs, whose ratios make the interval.
_PAIRS, _PAIR_ROUNDS = 6, 7
_ROUNDS = 25
_REASON_OF_BYTES = "less allocation"


@dataclass(frozen=True)
class Gain:
    """A piece of work, with its row on and off.

    `gain`: time off over time on, None where the work was not timed; `skipped` says why not.
    `peaks`: bytes of tensors and of temporary memory at the peak of a call, on and off, where the
    row is to save memory.
    """

    name: str
    reason: str
    work: str
    on: Timing | None = None
    off: Timing | None = None
    gain: Interval | None = None
    peaks: tuple[int, int] | None = None
    skipped: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def gains(
    rows: Sequence[tw.optimizations.Optimization], threads: int, rounds: int = _ROUNDS
) -> Iterator[Gain]:
    """Times the work of each row; a row without any is told as skipped."""
    for row in rows:
        works = CASES.get(row.name, ())
        if not works:
            yield Gain(row.name, row.reason, "", skipped="no work is known for it")
        for at, work in enumerate(works):
            reason = why_skipped(row, work, threads)
            if reason:
                yield Gain(row.name, row.reason, work.text, skipped=reason)
            else:
                yield _gain(row, at, work, threads, rounds)


def why_skipped(row: tw.optimizations.Optimization, work: Work, threads: int) -> str:
    """Why the work tells nothing here; empty where it does."""
    if work.threads > threads:
        return f"needs {work.threads} threads"
    if not work.only_where():
        return f"only on {work.where}"
    return "" if row.on else "off already"


class Settings(ExitStack):
    """What is forced and off on both sides of a piece of work, within a block."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def __enter__(self) -> Settings:
        super().__enter__()
        self.enter_context(tw.kernels.use(**self._work.kernels))
        self.enter_context(tw.optimizations.off(*self._work.beside))
        return self


class Without:
    """A row off within a block, by whichever way its scope allows."""

    def __init__(self, row: tw.optimizations.Optimization) -> None:
        self._row = row
        self._block = tw.optimizations.off(row.name) if row.scope == "call" else None

    def __enter__(self) -> None:
        if self._block:
            self._block.__enter__()
        else:
            tw.optimizations.disable(self._row.name)

    def __exit__(self, *error: object) -> None:
        if self._block:
            self._block.__exit__(*error)
        else:
            tw.optimizations.enable(self._row.name)


class _WhileOff(Timer):
    """A timer whose calls run without a row; turning it off is outside the time."""

    def __init__(self, timer: Timer, row: tw.optimizations.Optimization) -> None:
        self._timer, self._row = timer, row

    def timeit(self, number: int = 1) -> float:
        with Without(self._row):
            return self._timer.timeit(number)


def _gain(
    row: tw.optimizations.Optimization, at: int, work: Work, threads: int, rounds: int
) -> Gain:
    if row.scope == "start":
        return _gain_of_processes(row, at, work, threads)
    with Settings(work):
        run = work.make()
        timer = Timer(run)
        contenders = {ON: timer, OFF: _WhileOff(timer, row)}
        found = samples(Case(f"{row.name}: {work.text}", contenders, rounds=rounds), settle=False)
        gain = ratio_interval(found[OFF], found[ON])
        peaks = _peaks(run, row) if row.reason == _REASON_OF_BYTES else None
    on, off = (timing_of(found[side]) for side in (ON, OFF))
    return Gain(row.name, row.reason, work.text, on, off, gain, peaks)


def _gain_of_processes(
    row: tw.optimizations.Optimization, at: int, work: Work, threads: int
) -> Gain:
    """In pairs of fresh processes, one of which has the row off from its start."""
    seconds: dict[str, list[float]] = {ON: [], OFF: []}
    ratios = []
    for _ in range(_PAIRS):
        with ExitStack() as stack:
            contenders: dict[str, Timer] = {}
            for side in (ON, OFF):
                settings = {"TILEWRIGHT_OFF": _off_from_the_start(row.name if side == OFF else "")}
                worker = Worker(None, threads, ("-m", __name__), settings)
                stack.callback(worker.close)
                contenders[side] = Remote(worker, f"{row.name}:{at}")
            found = samples(Case(row.name, contenders, rounds=_PAIR_ROUNDS), settle=False)
        for side, values in found.items():
            seconds[side] += values
        ratios.append(ratio_interval(found[OFF], found[ON]).value)
    on, off = (timing_of(seconds[side]) for side in (ON, OFF))
    return Gain(row.name, row.reason, work.text, on, off, median_interval(ratios))


def _off_from_the_start(name: str) -> str:
    known = [*os.environ.get("TILEWRIGHT_OFF", "").split(","), name]
    return ",".join(part.strip() for part in known if part.strip())


def _peaks(run: Callable[[], Any], row: tw.optimizations.Optimization) -> tuple[int, int]:
    on = _peak(run)
    with Without(row):
        return on, _peak(run)


def _peak(run: Callable[[], Any]) -> int:
    """Bytes of tensors and of temporary memory that a call adds at its peak."""
    run()
    tw.memory.reset_peaks()
    before = _bytes("live_bytes", "temporary_live_bytes")
    run()
    return _bytes("peak_live_bytes", "temporary_peak_live_bytes") - before


def _bytes(*names: str) -> int:
    known = tw.memory.stats()
    return sum(known[name] for name in names)


# ---- as a program ----


def _timer(_: Any, name: str) -> Timer:
    row, _, at = name.partition(":")
    work = CASES[row][int(at)]
    Settings(work).__enter__()  # until another work comes, or the process ends
    return Timer(work.make())


def main() -> None:
    """Answers what another process asks."""
    shifts = [bytearray(randrange(520, 4096)) for _ in range(randrange(64))]  # noqa: F841  (kept)
    print(f"{tw.__version__} {os.path.dirname(tw.__file__)}", flush=True)
    for answer in answers(tw, iter(sys.stdin), _timer):
        print(answer, flush=True)


if __name__ == "__main__":
    main()
