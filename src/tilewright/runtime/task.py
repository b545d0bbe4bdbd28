"""What a task is to its owner: result, error, waiting, awaiting; shared by both schedulers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, NoReturn

from tilewright import _core


class TaskInterface:
    """Everything that follows from `done`, `add_done_callback`, the value and the error."""

    __slots__ = ()

    # What the native and the reference task provide.
    id: int
    name: str
    _value: Any
    _error: BaseException | None
    done: Callable[[], bool]
    cancel: Callable[[], bool]
    check: Callable[[], None]
    add_done_callback: Callable[[Callable[[Any], object]], None]
    _figures: Callable[[], dict[str, Any]]

    if TYPE_CHECKING:

        @property
        def state(self) -> str:
            """pending, running, completed, failed or cancelled."""

    def result(self, timeout: float | None = None) -> Any:
        """What the function returned; waits up to `timeout` seconds for it.

        Raises what the function raised, concurrent.futures.CancelledError for a cancelled task,
        and TimeoutError when the task passed its own limit or is not done in time.

        >>> import tilewright as tw
        >>> with tw.runtime.Scheduler() as scheduler:
        ...     scheduler.submit(pow, 2, 10).result()
        1024
        """
        self._wait(timeout)
        if self._error is None:
            return self._value
        try:
            raise self._error
        finally:
            del self  # breaks the cycle from the error over its traceback to the task

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What `result` would raise, None where the task completed; waits like `result`.

        >>> import tilewright as tw
        >>> with tw.runtime.Scheduler() as scheduler:
        ...     scheduler.submit(int, "x").exception().__class__.__name__
        'ValueError'
        """
        self._wait(timeout)
        return self._error

    def stats(self) -> dict[str, Any]:
        """The record: state, worker, times in ns of a steady clock, bytes; None: not yet.

        Raises ValueError once the scheduler has forgotten the task (it keeps a bounded number).

        >>> import tilewright as tw
        >>> with tw.runtime.Scheduler() as scheduler:
        ...     task = scheduler.submit(len, "abc", memory_bytes=8)
        >>> task.stats()["estimate_bytes"]
        8
        """
        return self._figures()

    def _wait(self, timeout: float | None) -> None:
        if self.done():
            return
        event = threading.Event()
        self.add_done_callback(lambda _: event.set())
        if not event.wait(timeout):
            raise TimeoutError(f"{self!r} is not done after {timeout:g} s")

    def __await__(self) -> Generator[Any, None, Any]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not future.done():
                future.set_result(None)

        def on_done(_: Any) -> None:
            # The loop may have closed while the task ran; then nobody awaits it any more.
            if not loop.is_closed():
                loop.call_soon_threadsafe(wake)

        self.add_done_callback(on_done)
        yield from future
        return self.result(0)

    def __repr__(self) -> str:
        return f"<Task {self.id} {self.name!r}: {self.state}>"


class Task(TaskInterface, _core._Task):
    """The outcome of a submission; made by `Scheduler.submit`."""

    __slots__ = ()

    def __new__(cls, *_: object) -> NoReturn:
        """Refused: a task belongs to a scheduler."""
        raise TypeError("Task: made by Scheduler.submit")


def ended_error(task: Any, cause: str, blame: int) -> BaseException:
    """The exception of a task that ended through something else than its function."""
    told = f"task {task.id} ({task.name})"
    if cause == "timeout":
        return TimeoutError(f"{told} passed its time limit")
    if cause == "dependency":
        return CancelledError(f"{told} was cancelled: it needs task {blame}, which has no result")
    return CancelledError(f"{told} was cancelled")


def run_in_pool(
    pool: Any,
    function: Callable[..., Any],
    arguments: tuple[Any, ...] | None,
    keywords: dict[str, Any] | None,
) -> Any:
    """Calls the function with its allocations in `pool`."""
    with pool:
        return function(*(arguments or ()), **(keywords or {}))


_core._set_task_classes(Task, CancelledError, ended_error, run_in_pool)
