"""What handing over ten thousand calls costs: ours, its reference, and Python's own executor."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from timeit import Timer
from typing import Any

from tilewright import _core
from tilewright.bench.harness import OURS, Case
from tilewright.runtime.reference import ReferenceScheduler
from tilewright.runtime.scheduler import Scheduler

_SUBMISSIONS = 10_000
_REFERENCE = "reference"
_EXECUTOR = "ThreadPoolExecutor"
# Of a GPU runtime whose scheduler is a simulation; its authors' machine.
_PUBLISHED = {"native": 9.27e-3, "pure Python": 44.6e-3}
# Far above what ten thousand submits take; the last executor holds up the exit for the rest of it.
_LONGEST_SECONDS = 2


def scheduler_cases() -> Iterator[Case]:
    """Submissions alone, then the whole way through one worker."""
    alone: dict[str, _Native | _Blocked] = {
        OURS: _Native(),
        _REFERENCE: _Reference(),
        _EXECUTOR: _Blocked(),
    }
    timers = {name: Timer(each.submit_all, each.renew) for name, each in alone.items()}
    yield Case(
        "10,000 submits, no free worker",
        timers,
        _SUBMISSIONS,
        "tasks",
        rounds=9,
        once=True,
        published=_PUBLISHED,
    )
    through = {OURS: Timer(_run_ours), _EXECUTOR: Timer(_run_executor)}
    name = "10,000 tasks, submit to result, 1 worker"
    yield Case(name, through, _SUBMISSIONS, "tasks", rounds=9, once=True)


def _work() -> None:
    """A task as small as one can be."""


class _Native:
    """A scheduler without workers, made anew outside the time that is taken."""

    make: Any = _core._Scheduler

    def __init__(self) -> None:
        self.core: Any = None

    def renew(self) -> None:
        """Drops what was submitted."""
        if self.core is not None:
            self.core.close(True)
        # No task has a time limit, so nothing is to be done for one.
        self.core = self.make(None, "fifo", 10.0, _SUBMISSIONS, None, lambda _: None)

    def submit_all(self) -> None:
        """What is timed."""
        core = self.core
        for _ in range(_SUBMISSIONS):
            core.submit(_work)


class _Reference(_Native):
    make = ReferenceScheduler


class _Blocked:
    """Python's executor, its only worker kept busy."""

    def __init__(self) -> None:
        self.executor: ThreadPoolExecutor | None = None
        self.opened = Event()

    def renew(self) -> None:
        """Drops what was submitted."""
        if self.executor is not None:
            self.opened.set()
            self.executor.shutdown(cancel_futures=True)
        self.opened = Event()
        self.executor = ThreadPoolExecutor(1)
        self.executor.submit(self.opened.wait, _LONGEST_SECONDS)

    def submit_all(self) -> None:
        """What is timed."""
        assert self.executor is not None
        for _ in range(_SUBMISSIONS):
            self.executor.submit(_work)


def _run_ours() -> None:
    with Scheduler(workers=1) as scheduler:
        for task in [scheduler.submit(_work) for _ in range(_SUBMISSIONS)]:
            task.result()


def _run_executor() -> None:
    with ThreadPoolExecutor(1) as executor:
        for future in [executor.submit(_work) for _ in range(_SUBMISSIONS)]:
            future.result()
