"""The scheduler in plain Python, for TILEWRIGHT_NATIVE_RUNTIME=0 and for tests of the native one.

The same members as `_core._Scheduler` and `_core._Task`, over `ReferenceBook`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from types import SimpleNamespace
from typing import Any

from tilewright import _core
from tilewright._engine.modes import bind_modes
from tilewright.runtime.reference_book import POLICIES, QUALITIES, End, ReferenceBook
from tilewright.runtime.task import TaskInterface, ended_error, run_in_pool

_LONGEST_SECONDS = 4e9
_PROBE_SECONDS = 0.01
_OPTIONS = (
    "memory_bytes", "priority", "expected_s", "after", "quality", "group", "share", "timeout_s",
    "name", "kwargs", "pool",
)  # fmt: skip
_running = threading.local()


def current_task() -> ReferenceTask | None:
    """The task that this thread runs."""
    return getattr(_running, "task", None)


class ReferenceTask(TaskInterface):
    """The outcome of a submission."""

    def __init__(
        self, scheduler: ReferenceScheduler, call: Callable[[], Any], name: str, pool: Any
    ) -> None:
        self.id = 0
        self.name = name
        self.pool = pool
        self.scheduler = scheduler
        self._call: Callable[[], Any] | None = call
        self._value: Any = None
        self._error: BaseException | None = None
        self._settled: str | None = None
        self._callbacks: list[Callable[[Any], object]] = []
        self._lock = threading.Lock()

    @property
    def state(self) -> str:
        """pending, running, completed, failed or cancelled."""
        return self._settled or self.scheduler.state(self.id)

    def done(self) -> bool:
        """Whether the outcome is known."""
        return self._settled is not None

    def cancel(self) -> bool:
        """Ends a pending task and asks a running one to stop; False when it is done already."""
        return not self.done() and self.scheduler.cancel(self.id)

    def check(self) -> None:
        """Raises where the task was asked to stop."""
        cause = self.scheduler.stop_cause(self.id)
        if cause != "none":
            raise ended_error(self, cause, 0)

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Calls a function with the task when it is done, or now when it is done already."""
        if not callable(callback):
            raise TypeError(f"add_done_callback: {callback!r} is not callable")
        with self._lock:
            if self._settled is None:
                self._callbacks.append(callback)
                return
        self._call_back(callback)

    def settle(self, state: str, value: Any, error: BaseException | None) -> None:
        """Fixes the outcome; the first one counts."""
        with self._lock:
            if self._settled is not None:
                return
            self._value, self._error, self._call = value, error, None
            self._settled = state
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self._call_back(callback)

    def _figures(self) -> dict[str, Any]:
        return self.scheduler.task_figures(self.id)

    def _run(self) -> None:
        call = self._call
        value, error = None, None
        if call is not None:
            self.scheduler.entered(self)
            outer, _running.task = current_task(), self
            try:
                value = call()
            except BaseException as caught:
                error = caught
            finally:
                _running.task = outer
                self.scheduler.left(self)
        state = "completed" if error is None else "failed"
        if isinstance(error, CancelledError) and self.scheduler.stop_cause(self.id) == "request":
            state = "cancelled"
        self.scheduler.finish_with(self, state, value, error)

    def _call_back(self, callback: Callable[[Any], object]) -> None:
        try:
            callback(self)
        except BaseException as error:
            told = SimpleNamespace(
                exc_type=type(error), exc_value=error, exc_traceback=error.__traceback__,
                err_msg=None, object=callback,
            )  # fmt: skip
            sys.unraisablehook(told)


class ReferenceScheduler:
    """One lock over a `ReferenceBook`; workers wait on its condition."""

    def __init__(
        self,
        memory_bytes: int | None,
        policy: str,
        aging_s: float | None,
        history: int,
        clock: Callable[[], int] | None,
        watcher: Callable[[Any], None] | None,
    ) -> None:
        if memory_bytes is not None and memory_bytes < 1:
            raise _core.InvalidValueError(
                f"Scheduler: memory_bytes must be at least 1, got {memory_bytes}"
            )
        _choose(policy, POLICIES, "Scheduler: policy")
        if history < 1:
            raise _core.InvalidValueError(f"Scheduler: history must be at least 1, got {history}")
        aging_ns = 0 if aging_s is None else _nanoseconds(aging_s, "Scheduler: aging_s")
        self._book = ReferenceBook(memory_bytes, policy, aging_ns, history)
        self._clock = clock or time.monotonic_ns
        self._watcher = watcher
        self._changed = threading.Condition()
        self._pooled: dict[int, Any] = {}
        self._process = os.getpid()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **given: Any) -> ReferenceTask:
        """Hands over a call; its task is the outcome."""
        if not callable(fn):
            raise TypeError("submit: the first argument must be callable")
        for name in given:
            if name not in _OPTIONS:
                raise _core.InvalidTypeError(
                    f"submit: no option '{name}'; known: {', '.join(_OPTIONS)}; keywords of the "
                    "function itself go into kwargs={...}"
                )
        options = {name: value for name, value in given.items() if value is not None}
        kwargs, pool = options.pop("kwargs", None) or {}, options.pop("pool", None)
        spec = self._spec(options)
        self._check_process()

        @bind_modes
        def call() -> Any:
            return fn(*args, **kwargs) if pool is None else run_in_pool(pool, fn, args, kwargs)

        name = spec.setdefault("name", getattr(fn, "__qualname__", ""))
        task = ReferenceTask(self, call, name, pool)
        with self._changed:
            task.id, ends = self._book.submit(task, self._clock(), **spec)
            self._changed.notify_all()
        self._settle(ends)
        if "timeout_ns" in spec and self._watcher:
            watcher, self._watcher = self._watcher, None
            watcher(self)
        return task

    def take(self, worker: int, timeout_s: float | None = None) -> ReferenceTask | None:
        """The next task, now running; waits for one."""
        self._check_process()
        until = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        while True:
            self._look_at_use()
            with self._changed:
                now = self._clock()
                record = self._book.select(now)
                if record is not None:
                    self._book.start(record, worker, now)
                    task: ReferenceTask = record.payload
                    return task
                if self._book.closed and not self._book.counts["pending"]:
                    return None
                left = until - time.monotonic()
                if left <= 0:
                    return None
                self._changed.wait(self._patience(left, now))

    def finish(self, task: ReferenceTask, state: str) -> None:
        """Ends a taken task without a call."""
        _choose(state, ("completed", "failed", "cancelled"), "finish: state")
        self.finish_with(task, state, None, None)

    def finish_with(
        self, task: ReferenceTask, state: str, value: Any, error: BaseException | None
    ) -> None:
        """Ends a taken task with its outcome."""
        with self._changed:
            ends = self._book.finish(task.id, state, self._clock())
            self._changed.notify_all()
        task.settle(state, value, error)
        self._settle(ends)

    def cancel(self, id: int) -> bool:
        """Ends a pending task or asks a running one to stop."""
        self._check_process()
        with self._changed:
            reached, ends = self._book.cancel(id, self._clock())
            self._changed.notify_all()
        self._settle(ends)
        return reached

    def expire(self) -> int:
        """Ends what has passed its time limit; how many."""
        with self._changed:
            ends = self._book.expire(self._clock())
            self._changed.notify_all()
        self._settle(ends)
        return len(ends)

    def await_deadline(self) -> bool:
        """Sleeps until a time limit passes; False when closed and nothing is left."""
        with self._changed:
            while not (self._book.closed and self._is_idle()):
                next_ns = self._book.next_deadline_ns()
                left = None if next_ns is None else (next_ns - self._clock()) * 1e-9
                if left is not None and left <= 0:
                    return True
                self._changed.wait(left)
        return False

    def close(self, cancel: bool) -> None:
        """Takes no more submissions; cancels what is left where told."""
        self._check_process()
        with self._changed:
            ends = self._book.close(cancel, self._clock())
            self._changed.notify_all()
        self._settle(ends)

    def await_idle(self, timeout_s: float) -> bool:
        """Waits until nothing is pending or running."""
        self._check_process()
        with self._changed:
            return self._changed.wait_for(self._is_idle, timeout_s)

    def set_use(self, task: ReferenceTask, use_bytes: int) -> None:
        """Tells a running task's real use."""
        with self._changed:
            self._book.set_use(task.id, use_bytes)
            self._changed.notify_all()

    def state(self, id: int) -> str:
        """A task's state."""
        return self._book.known(id, "state").state

    def stop_cause(self, id: int) -> str:
        """Who asked a task to stop: none, request or timeout."""
        return self._book.known(id, "stop_cause").cause

    def task_figures(self, id: int) -> dict[str, Any]:
        """A task's record."""
        with self._changed:
            return self._book.known(id, "figures").figures()

    def records(self) -> list[dict[str, Any]]:
        """The kept records, oldest first."""
        with self._changed:
            return [record.figures() for record in self._book.records.values()]

    def figures(self) -> dict[str, Any]:
        """Figures of the whole scheduler."""
        self._check_process()
        with self._changed:
            return self._book.figures()

    def entered(self, task: ReferenceTask) -> None:
        """A task with a pool begins its call."""
        if task.pool is not None:
            self._pooled[task.id] = task

    def left(self, task: ReferenceTask) -> None:
        """A task ended its call."""
        self._pooled.pop(task.id, None)

    def _spec(self, options: dict[str, Any]) -> dict[str, Any]:
        """The book's arguments."""
        spec = dict(options)
        for seconds, ns in (("expected_s", "expected_ns"), ("timeout_s", "timeout_ns")):
            if seconds in spec:
                spec[ns] = _nanoseconds(spec.pop(seconds), f"submit: {seconds}")
        if spec.get("timeout_ns") == 0:
            raise _core.InvalidValueError("submit: timeout_s must be above 0")
        if "quality" in spec:
            _choose(spec["quality"], QUALITIES, "submit: quality")
        for text in ("group", "name"):
            if not isinstance(spec.get(text, ""), str):
                raise _core.InvalidTypeError(
                    f"submit: {text} must be text, got {type(spec[text]).__name__}"
                )
        after = spec.pop("after", ())
        tasks = (after,) if isinstance(after, ReferenceTask) else tuple(after)
        spec["after"], spec["lost"] = self._dependencies(tasks)
        return spec

    def _dependencies(self, tasks: Iterable[Any]) -> tuple[tuple[int, ...], int]:
        pending, lost = [], 0
        for task in tasks:
            if not isinstance(task, ReferenceTask):
                raise _core.InvalidTypeError(
                    f"submit: after takes tasks, got {type(task).__name__}"
                )
            if task.scheduler is not self:
                raise _core.InvalidValueError(
                    f"submit: after: task {task.id} belongs to another scheduler"
                )
            if not task.done():
                pending.append(task.id)
            elif task.state != "completed":
                lost = lost or task.id
        return tuple(pending), lost

    def _settle(self, ends: Iterable[End]) -> None:
        for end in ends:
            end.payload.settle(end.state, None, ended_error(end.payload, end.cause, end.blame))

    def _patience(self, left: float, now: int) -> float | None:
        """How long to sleep before looking again; None: until a change."""
        opening = self._book.next_opening_ns(now)
        if opening is not None:
            left = min(left, (opening - now) * 1e-9)
        if self._pooled and self._book.counts["pending"]:
            left = min(left, _PROBE_SECONDS)
        return None if left == float("inf") else left

    def _look_at_use(self) -> None:
        for id, task in list(self._pooled.items()):
            use_bytes = task.pool.stats()["live_bytes"]
            with self._changed:
                self._book.set_use(id, use_bytes)

    def _is_idle(self) -> bool:
        return not self._book.counts["pending"] + self._book.counts["running"]

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise _core.StateError(
                "scheduler: this process was forked from the one that made it, its workers are "
                "not here; make a scheduler of its own"
            )


def _choose(value: Any, names: tuple[str, ...], what: str) -> None:
    if value not in names:
        raise _core.InvalidValueError(f"{what} is one of {', '.join(names)}; got {value!r}")


def _nanoseconds(seconds: float, what: str) -> int:
    if not 0 <= seconds <= _LONGEST_SECONDS:
        raise _core.InvalidValueError(
            f"{what} must be from 0 to {_LONGEST_SECONDS:g} seconds, got {seconds:g}"
        )
    return int(seconds * 1e9)
