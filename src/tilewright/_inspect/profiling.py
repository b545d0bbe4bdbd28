"""`tw.profile`: where the time of a program goes, by op, kernel, module or line, and when."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NamedTuple

from tilewright import _core
from tilewright._inspect import steps
from tilewright._inspect.observation import Cost, cost_of_observing
from tilewright._inspect.steps import Step
from tilewright._report import figures, trace
from tilewright._report.text import aligned, time_text
from tilewright.memory.timeline import MEMORY_EVENTS
from tilewright.optim.hooks import HookedOptimizer, step_watchers

# Rows of a printed table; the ones that took longest first.
_MOST_ROWS = 15
SUMS = ("op", "kernel", "module", "source", "thread", "device", "problem")
_COLOURS = len(figures.COLOURS) - 1
_NS_PER_S = 1e9


# Above all numbers of threads: copies have rows of their own, by GPU and direction.
_COPY_ROWS = 1 << 40


def _row_of_copy(event: dict[str, Any]) -> str:
    return f"{event['device']} {event['direction']}"


class Total(NamedTuple):
    """What the ops of one name took together: ns of their kernels, FLOP and bytes of their work."""

    calls: int
    ns: float
    flops: float
    bytes: float


class profile:  # noqa: N801  (a context manager, used like a function)
    """Observes every op, task and change of memory of all threads within a `with` block.

    Printed once the block has ended, a table of the ops that took longest; `by("module")` and its
    like sum the same up in other ways, `trace(path)` writes a file for ui.perfetto.dev and
    `plot(path)` draws the ops of each thread over time. `events` holds dicts with kind ('op',
    'task', 'allocate', 'release', 'spill', 'restore', and 'copy' between a GPU and the host beside
    its kernels, with its direction), start_ns since the block began, ns, thread,
    device, op, module, source ('file:line') and what the kind adds; of at most `capacity`, so that
    `dropped` counts the oldest that did not fit. Parallel kernels are told by the thread that
    called them. Modules are named from the outermost call on, by its class: "Net.layers.0". Ops of
    a gradient (`backward` is True) carry module and line of the op that it is of, if that ran in
    the block too; what else runs outside of a forward has no module.

    `steps` are the steps of a training: each ends with `step()` of the optimizer that is given as
    `step`, by default the first one that steps, or where `mark_step()` is called. Printed are their
    median and 95th percentile; the first ones, which warm the machine up, are left out and told.

    `observing` is what the block was slowed down by: `event_ns` is measured once a process, as is
    `inside_ns`, the part of it that would be in the time of a kernel and is subtracted. An event
    takes 128 bytes, about four kilobytes once the block has ended. Raises TypeError for a capacity
    that is no whole number and a step that is no optimizer, ValueError for a capacity below 1.

    >>> import tilewright as tw
    >>> with tw.profile() as report:
    ...     y = tw.ones((4, 4)) @ tw.ones((4, 4))
    >>> list(report.by("op"))[-1] in ("ones", "matmul")
    True
    """

    def __init__(self, capacity: int = 100_000, step: Any = None) -> None:
        if isinstance(capacity, bool) or not isinstance(capacity, int):
            raise TypeError(f"profile: capacity is a whole number, got {capacity!r}")
        if capacity < 1:
            raise ValueError(f"profile: capacity must be at least 1, got {capacity}")
        if step is not None and not isinstance(step, HookedOptimizer):
            raise TypeError(f"profile: step is an optimizer, got {type(step).__name__}")
        self.capacity = capacity
        self.observing = Cost(0.0, 0)
        self._stepper: Any = step
        self._step_ends: list[float] = []
        self.events: list[dict[str, Any]] = []
        self.dropped = 0
        self.wall_ns = 0
        self._observing: _core._Observing | None = None

    def __enter__(self) -> profile:
        if self._observing is not None:
            raise RuntimeError("profile: this one is running; make another one to nest")
        kinds = ["op", "task", "copy", *MEMORY_EVENTS]
        self._step_ends = []
        self._observing = _core._Observing(kinds, everywhere=True, capacity=self.capacity)
        step_watchers.append(self._on_step)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        observing, self._observing = self._observing, None
        if observing is None:
            return
        step_watchers.remove(self._on_step)
        end = time.perf_counter_ns()
        self.events = observing.stop()
        self.dropped = observing.dropped
        self.wall_ns = end - observing.began_ns
        self.observing = cost_of_observing()
        for event in self.events:
            event["start_ns"] -= observing.began_ns
            if event["kind"] == "op":
                event["ns"] = max(event["ns"] - self.observing.inside_ns, 0)
        self._step_ends = [end - observing.began_ns for end in self._step_ends]

    def mark_step(self) -> None:
        """Ends a step here; steps of optimizers count no more."""
        if self._observing is None:
            raise _core.StateError("profile: a step ends within the block")
        if self._stepper is not self:
            self._stepper, self._step_ends = self, []
        self._step_ends.append(time.perf_counter_ns())

    def _on_step(self, optimizer: Any) -> None:
        if self._stepper is None:
            self._stepper = optimizer
        if self._stepper is optimizer:
            self._step_ends.append(time.perf_counter_ns())

    @property
    def steps(self) -> list[Step]:
        """The steps that ended in the block, in order; ops of dropped events are not counted."""
        return steps.split(self._step_ends, self.ops)

    @property
    def ops(self) -> list[dict[str, Any]]:
        """The events of ops, in the order in which they ended."""
        return [event for event in self.events if event["kind"] == "op"]

    def by(self, key: str = "op") -> dict[str, Total]:
        """Totals by 'op', 'kernel', 'module', 'source', 'thread', 'device' or 'problem'.

        The largest first. Raises ValueError for another key.
        """
        if key not in SUMS:
            raise ValueError(f"profile: sums are by {', '.join(SUMS)}, got {key!r}")
        totals: dict[str, Total] = {}
        for op in self.ops:
            calls, ns, flops, size = totals.get(str(op[key]), (0, 0.0, 0.0, 0.0))
            totals[str(op[key])] = Total(
                calls + 1, ns + op["ns"], flops + op["flops"], size + op["bytes"]
            )
        return dict(sorted(totals.items(), key=lambda item: -item[1].ns))

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Writes Chrome's trace format: a row of ops and tasks for each thread, live bytes."""
        trace.write(self._trace_events(), path)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws ops by thread over time, and live bytes; needs matplotlib (the `plot` extra)."""
        figures.save(self.figure(), path)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes one HTML file that needs no network: flame graph, timeline, roofline, sums.

        Raises OSError where it cannot be written.
        """
        from tilewright._inspect import report_pages  # noqa: PLC0415  (imported on use)
        from tilewright._report.html import page  # noqa: PLC0415  (imported on use)

        page.write(path, "Profile", report_pages.of_profile(self), self.summary)

    def roofline(self, path: str | os.PathLike[str]) -> None:
        """Draws each op under this machine's roofline; needs matplotlib (the `plot` extra)."""
        from tilewright._inspect import roofline  # noqa: PLC0415  (imported on use)

        figures.save(roofline.figure(self.ops, "Roofline"), path)

    def _repr_html_(self) -> str:
        from tilewright._report.html.tables import for_notebook  # noqa: PLC0415  (imported on use)

        columns, rows = self._rows("op")
        return for_notebook(f"profile: {self.summary}", columns, rows)

    @property
    def summary(self) -> str:
        """One line: how many ops, the time in their kernels, and that of the block."""
        threads = len({op["thread"] for op in self.ops})
        kernels_ns = sum(op["ns"] for op in self.ops)
        count = len(self.events) + self.dropped
        observed = (
            f", about {time_text(count * self.observing.event_ns)} of it for observing"
            if self.observing.event_ns
            else ""
        )
        return (
            f"{len(self.ops):,} ops on {threads} thread{'s' * (threads != 1)}: "
            f"{time_text(kernels_ns)} in kernels, {time_text(self.wall_ns)} altogether{observed}"
        )

    def as_dict(self) -> dict[str, Any]:
        """The sums by all keys, as JSON has them."""
        sums = {
            key: [{key: name, **total._asdict()} for name, total in self.by(key).items()]
            for key in SUMS
        }
        return {
            "wall_ns": self.wall_ns,
            "dropped": self.dropped,
            "observing": self.observing._asdict(),
            "steps": [step._asdict() for step in self.steps],
            "sums": sums,
        }

    def table(self, key: str = "op") -> str:
        """The totals by a key as text, with each one's share of the block's time."""
        columns, rows = self._rows(key)
        lines = list(aligned([columns, *rows[:_MOST_ROWS]], left=1))
        if len(rows) > _MOST_ROWS:
            rest = list(self.by(key).values())[_MOST_ROWS:]
            rest_ns = sum(total.ns for total in rest)
            lines.append(f"and {len(rest)} more: {time_text(rest_ns)}; see by({key!r})")
        return "\n".join(lines)

    def _rows(self, key: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Heads and cells of the table by a key."""
        rows = []
        for name, total in self.by(key).items():
            share = f"{100 * total.ns / (self.wall_ns or 1):.1f}%"
            rates = (f"{amount / total.ns:.1f}" if total.ns else "" for amount in total[2:])
            rows.append((name or "(none)", str(total.calls), time_text(total.ns), share, *rates))
        return (key, "calls", "time", "share", "GFLOP/s", "GB/s"), rows

    def __repr__(self) -> str:
        return f"<profile: {len(self.ops)} ops, {len(self.events)} events>"

    def __str__(self) -> str:
        if not self.events:
            return "no op ran"
        lines = [self.summary]
        if found := self.steps:
            lines.append(steps.text(found))
        lines += ["", self.table("op")]
        if any(op["module"] for op in self.ops):
            lines += ["", self.table("module")]
        if self.dropped:
            lines += ["", f"the oldest {self.dropped:,} events did not fit the capacity"]
        return "\n".join(lines)

    def figure(self) -> Any:
        """The picture of `plot`, a matplotlib figure."""
        threads = sorted({op["thread"] for op in self.ops})
        figure = figures.figure(10, 2.6 + 0.6 * len(threads), "the picture")
        memory, rows = figure.subplots(
            2, 1, sharex=True, height_ratios=(1, max(len(threads), 1) * 0.6 + 0.6)
        )
        figures.plain(memory)
        figures.plain(rows)
        per_second, unit = figures.time_scale(self.wall_ns / _NS_PER_S)
        scale = per_second / _NS_PER_S
        self._draw_memory(memory, scale)
        largest = list(self.by("op"))[: _COLOURS - 1]
        colours = figures.COLOURS[1:]
        for place, name in enumerate([*largest, None]):
            for row, thread in enumerate(threads):
                spans = [
                    (op["start_ns"] * scale, op["ns"] * scale)
                    for op in self.ops
                    if op["thread"] == thread
                    and (op["op"] == name if name else op["op"] not in largest)
                ]
                label = (name or "others") if row == 0 else None
                place_of_row = (row - 0.4, 0.8)
                rows.broken_barh(
                    spans, place_of_row, color=colours[place], label=label, linewidth=0
                )
        rows.set_yticks(range(len(threads)), [f"thread {thread}" for thread in threads])
        rows.grid(axis="y", visible=False)
        rows.set_xlabel(f"time since the block began, {unit}")
        if threads:
            figure.legend(frameon=False, ncols=5, loc="outside lower left", fontsize=8)
        figures.title(memory, self.summary)
        return figure

    def _draw_memory(self, axes: Any, scale: float) -> None:
        told = [event for event in self.events if event["kind"] in MEMORY_EVENTS]
        live = [event["live_bytes"] for event in told]
        per_unit, unit = figures.byte_scale(max(live, default=0))
        times = [event["start_ns"] * scale for event in told]
        axes.step(times, [size / per_unit for size in live], where="post", color=figures.BLUE)
        axes.set_ylabel(f"tensors, {unit}")
        axes.set_ylim(bottom=0)

    def _trace_events(self) -> Iterator[dict[str, Any]]:
        for thread in sorted({event["thread"] for event in self.events}):
            yield trace.row_name(thread, f"thread {thread}")
        copies = sorted({_row_of_copy(e) for e in self.events if e["kind"] == "copy"})
        for number, name in enumerate(copies):
            yield trace.row_name(_COPY_ROWS + number, name)
        for event in self.events:
            start, thread = event["start_ns"], event["thread"]
            if event["kind"] == "op":
                told = ("kernel", "isa", "problem", "module", "source", "device", "flops", "bytes")
                args = {key: event[key] for key in told}
                yield trace.span(event["op"], start, event["ns"], thread, cat="op", args=args)
            elif event["kind"] == "task":
                name = event["op"] or f"task {event['task']}"
                args = {"task": event["task"], "state": event["state"]}
                yield trace.span(name, start, event["ns"], thread, cat="task", args=args)
            elif event["kind"] == "copy":
                row = _COPY_ROWS + copies.index(_row_of_copy(event))
                args = {key: event[key] for key in ("bytes", "module", "source", "device")}
                name = event["direction"]
                yield trace.span(name, start, event["ns"], row, cat="copy", args=args)
            else:
                args = {"bytes": event["live_bytes"]}
                yield trace.event("C", "live bytes", start, thread, args=args)
