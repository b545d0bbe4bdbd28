"""`Scheduler`: worker threads over the bookkeeping, native or the Python reference."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tilewright import _core
from tilewright.runtime import task as _task_classes  # noqa: F401  (tells the core its classes)

# Records of ended tasks that statistics and timelines look back on: about 4 MB.
_HISTORY = 16384
# How long a waiting main thread is deaf to Ctrl-C.
_INTERRUPTIBLE_SECONDS = 0.1
# What an interpreter on its way out grants running tasks to notice that they are to stop.
_EXIT_SECONDS = 0.5


class Scheduler(_core._Submitter):
    """Runs calls on worker threads, as many side by side as `memory_bytes` and `workers` allow.

    `memory_bytes` None: no limit. `workers` None: one a processor. `policy` is "fifo", "shortest"
    (by `expected_s`) or "priority". A task that has waited `aging_s` seconds may not be passed by
    later ones, and until then waiting lifts its rank: by one level of priority for each `aging_s`,
    or by as many seconds as it waited; None: never. `start=False` leaves the workers to `start()`.

    A task runs under the modes of the thread that submitted it, as they were then: recording,
    forced kernels, `explain`, device and memory pool. What it changes ends with it.

    As a context manager it waits for all tasks, or cancels them where the block raised. At the
    interpreter's exit, pending tasks are cancelled and running ones are asked to stop, as by
    `Task.cancel`; what still runs after half a second, Python code or kernel, ends with the
    process. Call `close()` before to wait for them. Raises ValueError for limits out of range.

    >>> import tilewright as tw
    >>> with tw.runtime.Scheduler(memory_bytes=1 << 30) as scheduler:
    ...     tasks = [scheduler.submit(pow, 2, n, memory_bytes=1 << 20) for n in range(4)]
    >>> [task.result() for task in tasks]
    [1, 2, 4, 8]
    """

    def __init__(
        self,
        memory_bytes: int | None = None,
        workers: int | None = None,
        policy: str = "fifo",
        aging_s: float | None = 10.0,
        start: bool = True,
    ) -> None:
        count = _core.cpu_info()["usable_processors"] if workers is None else workers
        if count < 1:
            raise ValueError(f"Scheduler: workers must be at least 1, got {workers}")
        self.workers: int = count
        self._threads: list[threading.Thread] = []
        self._core = make_core(memory_bytes, policy, aging_s)
        # At the interpreter's exit _close_all does more than this.
        weakref.finalize(self, _abandon, self._core, self._threads).atexit = False
        _live.add(self)
        if start:
            self.start()

    def start(self) -> None:
        """Starts the workers; does nothing where they run."""
        if self._threads:
            return
        for i in range(self.workers):
            thread = threading.Thread(
                target=_work, args=(self._core, i), name=f"tilewright-task-{i}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def close(self, cancel: bool = False) -> None:
        """Takes no more submissions and waits for the rest, which `cancel` cancels or asks to stop.

        From within a task it does not wait. Calling it again does nothing more.
        """
        self._core.close(cancel)
        if not self._threads:
            self._core.close(True)  # nobody will run what is left
        for thread in self._threads:
            while thread.is_alive() and thread is not threading.current_thread():
                thread.join(_INTERRUPTIBLE_SECONDS)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until no task is pending or running; False when `timeout` seconds did not suffice.

        Raises RuntimeError where tasks are pending and no worker was started.
        """
        pending = self._core.figures()["pending"]
        if pending and not self._threads:
            raise RuntimeError(
                f"wait: {pending} tasks are pending and no worker runs; call start()"
            )
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        while not self._core.await_idle(_step(deadline)):
            if time.monotonic() >= deadline:
                return False
        return True

    def stats(self) -> dict[str, Any]:
        """Counts of tasks by state, memory in bytes, throughput in tasks/s, waits in ns.

        `memory_bytes` is what running tasks count now, `peak_memory_bytes` the most they did.
        `mean_wait_ns` is over all tasks that started, `p95_wait_ns` over the kept records.

        >>> import tilewright as tw
        >>> with tw.runtime.Scheduler() as scheduler:
        ...     task = scheduler.submit(int)
        >>> scheduler.stats()["completed"]
        1
        """
        figures: dict[str, Any] = self._core.figures()
        return figures

    def tasks(self) -> list[dict[str, Any]]:
        """The kept records as `Task.stats` gives them, oldest first."""
        records: list[dict[str, Any]] = self._core.records()
        return records

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the timeline of the kept records for https://ui.perfetto.dev or chrome://tracing.

        One row a worker; waiting is shown as a span of its own above them.
        """
        from tilewright.runtime.timeline import write_timeline  # noqa: PLC0415  (rarely needed)

        write_timeline(self.tasks(), path)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws the timeline of the kept records: a row a worker, waiting tasks above them.

        Needs matplotlib (the `plot` extra).
        """
        from tilewright.runtime.timeline import draw_timeline  # noqa: PLC0415  (rarely needed)

        draw_timeline(self.tasks(), path)

    def __enter__(self) -> Scheduler:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close(cancel=kind is not None)

    def __repr__(self) -> str:
        figures = self._core.figures()
        return (
            f"<Scheduler: {self.workers} workers, {figures['pending']} pending, "
            f"{figures['running']} running>"
        )


def current_task() -> Any:
    """The task that this thread runs, or None.

    Its `check()` raises where the task was cancelled or is out of time.

    >>> import tilewright as tw
    >>> tw.runtime.current_task() is None
    True
    """
    if _REFERENCE:
        from tilewright.runtime import reference  # noqa: PLC0415  (loaded where it is chosen)

        return reference.current_task()
    return _core._current_task()


def make_core(
    memory_bytes: int | None,
    policy: str,
    aging_s: float | None,
    history: int = _HISTORY,
    clock: Callable[[], int] | None = None,
) -> Any:
    """The bookkeeping: native, or the reference where TILEWRIGHT_NATIVE_RUNTIME is 0."""
    if _REFERENCE:
        from tilewright.runtime import reference  # noqa: PLC0415  (loaded where it is chosen)

        return reference.ReferenceScheduler(
            memory_bytes, policy, aging_s, history, clock, _start_watching
        )
    return _core._Scheduler(memory_bytes, policy, aging_s, history, clock, _start_watching)


def _start_watching(core: Any) -> None:
    """Called by a core when its first task with a time limit comes."""
    threading.Thread(
        target=_watch, args=(core,), name="tilewright-task-limits", daemon=True
    ).start()


def _watch(core: Any) -> None:
    while core.await_deadline():
        core.expire()


def _work(core: Any, worker: int) -> None:
    while (task := core.take(worker)) is not None:
        task._run()
        del task  # a sleeping worker must not keep the last result


def _abandon(core: Any, threads: list[threading.Thread]) -> None:
    """For a scheduler that nobody holds any more: its workers finish what they have."""
    if os.getpid() == _process:
        core.close(not threads)


def _step(deadline: float) -> float:
    return max(0.0, min(_INTERRUPTIBLE_SECONDS, deadline - time.monotonic()))


_REFERENCE = _core.env_text("NATIVE_RUNTIME") == "0"
_live: weakref.WeakSet[Scheduler] = weakref.WeakSet()
_process = os.getpid()


@atexit.register
def _close_all() -> None:
    if os.getpid() != _process:
        return
    deadline = time.monotonic() + _EXIT_SECONDS
    schedulers = list(_live)
    for scheduler in schedulers:
        scheduler._core.close(True)
    for scheduler in schedulers:
        for thread in scheduler._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
