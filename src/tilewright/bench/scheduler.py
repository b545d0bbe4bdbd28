"""What handing over ten thousand calls costs: ours, its reference, and Python's own executor."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from timeit import Timer
from typing import Any

from tilewright import _core
from tilewright.bench.harness import OURS, Case
from tilewright.runtime.reference import ReferenceScheduler
from tilewright.runtime.scheduler import Scheduler

_SUBMISSIONS = 10_000
_REFERENCE = "reference"
_EXECUTOR = "ThreadPoolExecutor"


def scheduler_cases() -> Iterator[Case]:
    """Submissions without workers, submissions beside idle workers, and the whole way."""
    alone = {OURS: Timer(lambda: _submit(_native())), _REFERENCE: Timer(lambda: _submit(_slow()))}
    yield Case("10,000 submits, no worker", alone, _SUBMISSIONS, "tasks", rounds=9)
    through = {OURS: Timer(_run_ours), _EXECUTOR: Timer(_run_executor)}
    yield Case("10,000 tasks, submit to result, 1 worker", through, _SUBMISSIONS, "tasks", rounds=9)


def _native() -> Any:
    return _core._Scheduler(None, "fifo", 10.0, _SUBMISSIONS, None, _no_limits)


def _slow() -> Any:
    return ReferenceScheduler(None, "fifo", 10.0, _SUBMISSIONS, None, _no_limits)


def _no_limits(_: Any) -> None:
    """Stands for the thread that watches time limits: no task here has one."""


def _work() -> None:
    """A task as small as one can be."""


def _submit(core: Any) -> None:
    for _ in range(_SUBMISSIONS):
        core.submit(_work)
    core.close(True)


def _run_ours() -> None:
    with Scheduler(workers=1) as scheduler:
        for task in [scheduler.submit(_work) for _ in range(_SUBMISSIONS)]:
            task.result()


def _run_executor() -> None:
    with ThreadPoolExecutor(1) as executor:
        for future in [executor.submit(_work) for _ in range(_SUBMISSIONS)]:
            future.result()
