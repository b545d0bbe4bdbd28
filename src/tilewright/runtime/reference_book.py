"""The bookkeeping of tasks in plain Python: what core/runtime/tasks/task_book.cpp must agree with.

It decides by looking at every task, so that each rule stands here as one sees it, and is slow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewright import _core

POLICIES = ("fifo", "shortest", "priority")
QUALITIES = ("guaranteed", "burstable", "best_effort")
_LARGEST_KEY = 1 << 62
_LARGEST_PRIORITY = 1_000_000
_NO_LIMIT = (1 << 63) - 1


@dataclass
class Record:
    """A task as the bookkeeping sees it."""

    id: int
    payload: Any
    submitted_ns: int
    name: str
    key: int
    estimate_bytes: int
    quality: str
    group: str
    share: float
    deadline_ns: int | None
    ready_ns: int = 0
    ready_order: int = 0
    state: str = "pending"
    cause: str = "none"
    ready: bool = False
    unmet: int = 0
    dependents: list[int] = field(default_factory=list)
    worker: int | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    use_bytes: int = 0
    peak_use_bytes: int = 0

    @property
    def need_bytes(self) -> int:
        """What must be free for it to start."""
        return 1 if self.quality == "best_effort" else self.estimate_bytes

    @property
    def charge_bytes(self) -> int:
        """What it counts while it runs."""
        if self.quality == "guaranteed":
            return self.estimate_bytes
        if self.quality == "burstable":
            return max(self.estimate_bytes, self.use_bytes)
        return self.use_bytes

    def figures(self) -> dict[str, Any]:
        """As `Task.stats` gives them."""
        wait = None if self.started_ns is None else self.started_ns - self.submitted_ns
        ran = self.started_ns is not None and self.ended_ns is not None
        return {
            "id": self.id,
            "name": self.name,
            "state": self.state,
            "quality": self.quality,
            "worker": self.worker,
            "submitted_ns": self.submitted_ns,
            "started_ns": self.started_ns,
            "ended_ns": self.ended_ns,
            "wait_ns": wait,
            "run_ns": self.ended_ns - self.started_ns if ran else None,  # type: ignore[operator]
            "estimate_bytes": self.estimate_bytes,
            "use_bytes": self.use_bytes,
            "peak_use_bytes": self.peak_use_bytes,
        }


@dataclass(frozen=True)
class End:
    """A task that ended, or passed its limit, other than by its own `finish`."""

    id: int
    payload: Any
    state: str
    cause: str
    blame: int = 0
    running: bool = False


class ReferenceBook:
    """States, order, admission, dependencies, pacing and limits; every step takes its time."""

    def __init__(
        self, memory_bytes: int | None, policy: str, aging_ns: int, history: int = 16384
    ) -> None:
        self.memory_bytes = memory_bytes
        self.policy = policy
        self.aging_ns = aging_ns
        self.history = history
        self.closed = False
        self.records: dict[int, Record] = {}
        self.ended: list[int] = []
        self.not_before_ns: dict[str, int] = {}
        self.counts = dict.fromkeys(("pending", "running", "completed", "failed", "cancelled"), 0)
        self.submitted = self.ran = self.started = self.wait_sum_ns = 0
        self.peak_bytes = 0
        self.first_submitted_ns: int | None = None
        self.last_ended_ns = 0

    def submit(
        self,
        payload: Any,
        now: int,
        *,
        memory_bytes: int = 0,
        priority: int = 0,
        expected_ns: int | None = None,
        after: tuple[int, ...] = (),
        lost: int = 0,
        quality: str = "burstable",
        group: str = "",
        share: float = 1.0,
        timeout_ns: int | None = None,
        name: str = "",
    ) -> tuple[int, list[End]]:
        """The new task's id, and the task itself among the ends where a dependency has failed."""
        self._check(memory_bytes, priority, after, group, share)
        self.submitted += 1
        record = Record(
            self.submitted, payload, now, name, self._key(priority, expected_ns, now),
            memory_bytes, quality, group, share,
            None if timeout_ns is None else now + timeout_ns,
        )  # fmt: skip
        self.records[record.id] = record
        self.counts["pending"] += 1
        if self.first_submitted_ns is None:
            self.first_submitted_ns = now
        ends: list[End] = []
        for id in after:
            lost = lost or self._depend(record, self.records[id])
        if lost:
            self._end_pending(record, "cancelled", "dependency", now, ends, lost)
            self._forget()
        elif record.unmet == 0:
            record.ready, record.ready_ns = True, now
        return record.id, ends

    def select(self, now: int) -> Record | None:
        """The task to start now."""
        waiting = [r for r in self._unfinished("pending") if r.ready and self._open(r, now)]
        free = self._free_bytes()
        if self.aging_ns and waiting:
            eldest = min(waiting, key=lambda r: (r.ready_ns, r.id))
            if now - eldest.ready_ns >= self.aging_ns:
                return eldest if eldest.need_bytes <= free else None
        fitting = [r for r in waiting if r.need_bytes <= free]
        return min(fitting, key=lambda r: (r.key, r.id), default=None)

    def start(self, record: Record, worker: int, now: int) -> None:
        """Marks a selected task as running."""
        self._move(record, "running")
        record.started_ns, record.worker = now, worker
        self.started += 1
        self.wait_sum_ns += now - record.submitted_ns
        self.peak_bytes = max(self.peak_bytes, self.charged_bytes())

    def finish(self, id: int, state: str, now: int) -> list[End]:
        """Ends a running task; the tasks that are cancelled with it."""
        record = self.known(id, "finish")
        if record.state != "running":
            raise _core.StateError(f"finish: task {id} is {record.state}, not running")
        if record.cause == "timeout":
            state = "failed"
        self.ran += 1
        if record.share < 1 and record.started_ns is not None:
            held = int((now - record.started_ns) / record.share)
            self.not_before_ns[record.group] = record.started_ns + held
        self._end(record, state, now)
        ends: list[End] = []
        if state == "completed":
            self._release(record, now)
        else:
            self._orphan(record, now, ends)
        self._forget()
        return ends

    def cancel(self, id: int, now: int) -> tuple[bool, list[End]]:
        """Whether it was not too late, and what ended."""
        record = self.known(id, "cancel")
        ends: list[End] = []
        if record.state == "running":
            if record.cause == "none":
                record.cause = "request"
        elif record.state == "pending":
            self._end_pending(record, "cancelled", "request", now, ends)
            self._forget()
        else:
            return False, ends
        return True, ends

    def expire(self, now: int) -> list[End]:
        """Ends pending tasks whose time is up and asks running ones to stop."""
        ends: list[End] = []
        late = [
            r for r in self._unfinished()
            if r.deadline_ns is not None and r.deadline_ns <= now and r.cause != "timeout"
        ]  # fmt: skip
        for record in sorted(late, key=lambda r: (r.deadline_ns, r.id)):
            if record.state == "pending":
                self._end_pending(record, "failed", "timeout", now, ends)
            elif record.state == "running":
                record.cause = "timeout"
                ends.append(End(record.id, record.payload, "failed", "timeout", running=True))
                self._orphan(record, now, ends)
        self._forget()
        return ends

    def close(self, cancel: bool, now: int) -> list[End]:
        """No more submissions; `cancel` ends what is pending and asks the rest to stop."""
        self.closed = True
        ends: list[End] = []
        for record in self._unfinished() if cancel else []:
            if record.state == "pending":
                self._end_pending(record, "cancelled", "request", now, ends)
            elif record.state == "running" and record.cause == "none":
                record.cause = "request"
        self._forget()
        return ends

    def set_use(self, id: int, use_bytes: int) -> None:
        """Tells a running task's real use."""
        record = self.records.get(id)
        if record is None or record.state != "running":
            return
        record.use_bytes = use_bytes
        record.peak_use_bytes = max(record.peak_use_bytes, use_bytes)
        self.peak_bytes = max(self.peak_bytes, self.charged_bytes())

    def known(self, id: int, what: str) -> Record:
        """The record; raises ValueError for an id that never was or is forgotten."""
        if id not in self.records:
            raise _core.InvalidValueError(f"{what}: no task {id}; it never was or is forgotten")
        return self.records[id]

    def charged_bytes(self) -> int:
        """What running tasks count together."""
        return sum(r.charge_bytes for r in self._unfinished("running"))

    def next_deadline_ns(self) -> int | None:
        """When the first limit passes that has not passed yet."""
        limits = [
            r.deadline_ns for r in self._unfinished()
            if r.deadline_ns is not None and r.cause != "timeout"
        ]  # fmt: skip
        return min(limits, default=None)

    def next_opening_ns(self, now: int) -> int | None:
        """When the first held-back group that has work may run again."""
        times = [
            self.not_before_ns[r.group] for r in self._unfinished("pending")
            if r.ready and r.share < 1 and self.not_before_ns.get(r.group, now) > now
        ]  # fmt: skip
        return min(times, default=None)

    def figures(self) -> dict[str, Any]:
        """As `Scheduler.stats` gives them."""
        elapsed = self.last_ended_ns - (self.first_submitted_ns or 0)
        kept = [self.records[id] for id in self.ended]
        waits = sorted(r.started_ns - r.submitted_ns for r in kept if r.started_ns is not None)
        rank = (len(waits) * 95 + 99) // 100
        return {
            "submitted": self.submitted,
            **self.counts,
            "memory_bytes": self.charged_bytes(),
            "peak_memory_bytes": self.peak_bytes,
            "throughput_per_s": self.ran / (elapsed * 1e-9) if self.ran and elapsed > 0 else 0.0,
            "mean_wait_ns": self.wait_sum_ns / self.started if self.started else 0.0,
            "p95_wait_ns": waits[rank - 1] if waits else 0,
        }

    def _check(
        self, memory_bytes: int, priority: int, after: tuple[int, ...], group: str, share: float
    ) -> None:
        if self.closed:
            raise _core.StateError("submit: the scheduler is closed")
        if memory_bytes < 0:
            _refuse(f"memory_bytes must not be negative, got {memory_bytes}")
        if self.memory_bytes is not None and memory_bytes > self.memory_bytes:
            _refuse(
                f"the task needs {memory_bytes} bytes and the scheduler has {self.memory_bytes}; "
                "give it more or split the task"
            )
        if not 0 < share <= 1:
            _refuse(f"share must be in (0, 1], got {share:g}")
        if share < 1 and not group:
            _refuse(f"share {share:g} paces a group; name it with group=")
        if abs(priority) > _LARGEST_PRIORITY:
            _refuse(f"priority must be within +-{_LARGEST_PRIORITY}, got {priority}")
        for id in after:
            if id not in self.records:
                _refuse(f"after: no task {id}; it never was or is forgotten")
        if group:
            self._check_share(group, share)

    def _check_share(self, group: str, share: float) -> None:
        """Only a paced group remembers its share."""
        shares = {r.share for r in self._unfinished() if r.group == group and r.share < 1}
        if shares - {share}:
            _refuse(
                f"group '{group}' has share {shares.pop():g} while its tasks are unfinished, "
                f"got {share:g}"
            )

    def _key(self, priority: int, expected_ns: int | None, now: int) -> int:
        aging = self.aging_ns
        if self.policy == "shortest":
            if expected_ns is None:
                key = now + aging if aging else _LARGEST_KEY
            else:
                key = expected_ns + (now if aging else 0)
        elif self.policy == "priority":
            key = now - priority * aging if aging else -priority
        else:
            key = 0
        return max(-_LARGEST_KEY, min(_LARGEST_KEY, key))

    def _depend(self, record: Record, dependency: Record) -> int:
        """Waits for the dependency; its id where it has failed."""
        if dependency.state == "completed":
            return 0
        late = dependency.state == "running" and dependency.cause == "timeout"
        if late or dependency.state in ("failed", "cancelled"):
            return dependency.id
        dependency.dependents.append(record.id)
        record.unmet += 1
        return 0

    def _free_bytes(self) -> int:
        if self.memory_bytes is None:
            return _NO_LIMIT
        return self.memory_bytes - self.charged_bytes()

    def _open(self, record: Record, now: int) -> bool:
        """Whether its group may start a task."""
        if record.share == 1:
            return True
        busy = any(r.group == record.group and r.share < 1 for r in self._unfinished("running"))
        return not busy and self.not_before_ns.get(record.group, now) <= now

    def _unfinished(self, *states: str) -> list[Record]:
        wanted = states or ("pending", "running")
        return [r for r in self.records.values() if r.state in wanted]

    def _move(self, record: Record, state: str) -> None:
        self.counts[record.state] -= 1
        self.counts[state] += 1
        record.state = state

    def _end(self, record: Record, state: str, now: int) -> None:
        self._move(record, state)
        record.ended_ns, record.payload = now, None
        self.last_ended_ns = now
        self.ended.append(record.id)

    def _end_pending(
        self, record: Record, state: str, cause: str, now: int, ends: list[End], blame: int = 0
    ) -> None:
        record.cause = cause
        ends.append(End(record.id, record.payload, state, cause, blame))
        self._end(record, state, now)
        if cause != "dependency":
            self._orphan(record, now, ends)

    def _orphan(self, record: Record, now: int, ends: list[End]) -> None:
        orphans = [(id, record.id) for id in record.dependents]
        record.dependents = []
        for id, blame in orphans:  # grows on the way: breadth first
            orphan = self.records.get(id)
            if orphan is not None and orphan.state == "pending":
                self._end_pending(orphan, "cancelled", "dependency", now, ends, blame)
                orphans += [(next, id) for next in orphan.dependents]
                orphan.dependents = []

    def _release(self, record: Record, now: int) -> None:
        for id in record.dependents:
            dependent = self.records.get(id)
            if dependent is not None and dependent.state == "pending":
                dependent.unmet -= 1
                if dependent.unmet == 0:
                    dependent.ready, dependent.ready_ns = True, now
        record.dependents = []

    def _forget(self) -> None:
        while len(self.ended) > self.history:
            del self.records[self.ended.pop(0)]


def _refuse(text: str) -> None:
    raise _core.InvalidValueError(f"submit: {text}")
