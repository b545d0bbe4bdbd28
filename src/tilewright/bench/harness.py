"""Interleaved timing: contenders take turns, so that a noisy machine disturbs them alike."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from timeit import Timer
from typing import Any

from tilewright.bench.intervals import median_interval

OURS = "tilewright"
# A sample this long is far above the clock's resolution and a thread's wake-up, and short enough
# that other work on the machine rarely hits all contenders' samples alike.
_SAMPLE_SECONDS = 2e-3
# A peer's threads may spin after a call: libgomp's 5 ms, OpenBLAS's 2^26 or 2^28 clock ticks (103
# ms at 2.6 GHz). Whoever comes next would share a processor with them. They sleep when two looks so
# far apart find none at work.
_SETTLE_SECONDS, _LONGEST_SETTLE_SECONDS = 0.005, 0.25
# What is slow takes part in at least so many rounds.
_FEWEST_SAMPLES = 3
# Calls before a sample bring data and threads back. A last-level cache that takes what the second
# level drops holds data only after several passes: with one, whoever came first with an array took
# up to 1.6 of the time of the next. A call of 10 ms works on more than caches hold, one of half a
# second needs no warming.
_WARMING_CALLS = 4
_UNCACHED_CALL_SECONDS, _LONG_CALL_SECONDS = 0.01, 0.5


@dataclass(frozen=True)
class Timing:
    """Time of one call over all samples.

    `low_s`, `high_s`: where the median lies, by 95 % confidence; None where that is not known.
    """

    median_s: float
    p95_s: float
    samples: int
    low_s: float | None = None
    high_s: float | None = None


@dataclass(frozen=True)
class Case:
    """One row of a benchmark: the same work by each contender, ours first.

    `work` counts what one call does, in `unit` (such as GFLOP), for rates; 0 where there is no
    rate. `once`: each call needs the timer's setup anew, so a sample is a single call. `published`
    holds seconds that others measured elsewhere: shown beside ours, never compared. A contender
    whose samples have taken `budget_s` drops out of the later rounds.
    """

    name: str
    contenders: Mapping[str, Timer]
    work: float = 0.0
    unit: str = ""
    rounds: int = 25
    once: bool = False
    published: Mapping[str, float] = field(default_factory=dict)
    budget_s: float = float("inf")


@dataclass(frozen=True)
class Result:
    """A case with its timings."""

    name: str
    timings: dict[str, Timing]
    work: float
    unit: str
    published: dict[str, float]
    # The ratios of all runs where this is the median one of several.
    runs: tuple[float, ...] = ()

    @property
    def best_peer(self) -> str | None:
        """The fastest contender besides ours."""
        peers = [name for name in self.timings if name != OURS]
        return min(peers, key=lambda name: self.timings[name].median_s, default=None)

    @property
    def ratio(self) -> float:
        """Best peer's median over ours: above 1 we are faster; NaN without a peer or ours."""
        if self.best_peer is None or OURS not in self.timings:
            return float("nan")
        return self.timings[self.best_peer].median_s / self.timings[OURS].median_s

    @property
    def ratios(self) -> dict[str, float]:
        """The same for each peer; empty where ours is missing."""
        if OURS not in self.timings:
            return {}
        ours = self.timings[OURS].median_s
        return {name: t.median_s / ours for name, t in self.timings.items() if name != OURS}

    def rate(self, name: str) -> float:
        """Work a second of a contender, in the case's unit."""
        return self.work / self.timings[name].median_s

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **asdict(self),
            "best_peer": self.best_peer,
            "ratio": self.ratio,
            "ratios": self.ratios,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Result:
        """What another process wrote as JSON."""
        timings = {name: Timing(**timing) for name, timing in values["timings"].items()}
        rest = {name: values[name] for name in ("name", "work", "unit", "published")}
        return cls(timings=timings, **rest)


def statement(text: str, **names: Any) -> Timer:
    """Times a statement itself, without the cost of a function call around it."""
    return Timer(text, globals=names)


def wait_for_peers() -> None:
    """Until the threads of what ran before sleep; where the system does not tell, long enough."""
    limit = time.monotonic() + _LONGEST_SETTLE_SECONDS
    asleep = 0
    while asleep < 2 and time.monotonic() < limit:
        time.sleep(_SETTLE_SECONDS)
        asleep = 0 if _other_threads_run() else asleep + 1


def _other_threads_run() -> bool:
    """Whether another thread of this process is on a processor or waits for one."""
    own = str(threading.get_native_id())
    try:
        threads = [task for task in Path("/proc/self/task").iterdir() if task.name != own]
        states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in threads]
    except OSError:  # a thread that has just ended: look again; or the system does not tell
        return True
    return "R" in states


def compare(case: Case, settle: bool) -> dict[str, Timing]:
    """Times contenders in turn; `settle` waits before each until a peer's threads sleep."""
    return {name: timing_of(values) for name, values in samples(case, settle).items()}


def samples(case: Case, settle: bool) -> dict[str, list[float]]:
    """Seconds of a call in each round, by contender; those of a round were taken in turn."""
    contenders = case.contenders
    found = {
        name: (1, 0.0) if case.once else _calls_per_sample(timer)
        for name, timer in contenders.items()
    }
    calls = {name: count for name, (count, _) in found.items()}
    call_seconds = {name: seconds for name, (_, seconds) in found.items()}
    found_s: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    spent = dict.fromkeys(names, 0.0)
    order = random.Random(case.name)
    for _ in range(case.rounds):
        # Nobody always runs behind the same neighbour, as when the order only turns.
        for name in order.sample(names, len(names)):
            if spent[name] > case.budget_s and len(found_s[name]) >= _FEWEST_SAMPLES:
                continue
            if settle:
                wait_for_peers()
            if call_seconds[name] < _LONG_CALL_SECONDS:
                cached = call_seconds[name] < _UNCACHED_CALL_SECONDS and not case.once
                contenders[name].timeit(_WARMING_CALLS if cached else 1)
            seconds = contenders[name].timeit(calls[name])
            call_seconds[name] = seconds / calls[name]
            found_s[name].append(call_seconds[name])
            spent[name] += seconds
    return found_s


def run_cases(
    cases: Iterable[Case], settle: bool, on_case: Callable[[Result], None] | None = None
) -> Iterator[Result]:
    """Runs cases one by one; data of a case is freed before the next is built."""
    for case in cases:
        timings = compare(case, settle)
        result = Result(case.name, timings, case.work, case.unit, dict(case.published))
        if on_case:
            on_case(result)
        yield result


def median_run(runs: Sequence[Result]) -> Result:
    """Of one case measured several times, the run with the median ratio; the lower of two."""
    ordered = sorted(runs, key=lambda run: run.ratio)
    return replace(ordered[(len(ordered) - 1) // 2], runs=tuple(run.ratio for run in runs))


def _calls_per_sample(timer: Timer) -> tuple[int, float]:
    """How many calls fill a sample, and the seconds of one."""
    timer.timeit(1)
    calls = 1
    while (seconds := timer.timeit(calls)) < _SAMPLE_SECONDS / 2:
        calls *= 2 if seconds > _SAMPLE_SECONDS / 20 else 10
    return max(1, round(calls * _SAMPLE_SECONDS / seconds)), seconds / calls


def timing_of(seconds: Sequence[float]) -> Timing:
    """Of the samples of one contender."""
    ordered = sorted(seconds)
    middle = median_interval(ordered)
    p95 = ordered[round(0.95 * (len(ordered) - 1))]
    return Timing(middle.value, p95, len(ordered), middle.low, middle.high)
