"""What happened to the memory of tensors over time: a log, as a trace, a picture and a table."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from tilewright import _core
from tilewright._report import figures, trace

# Rows of a printed log; the op with the most bytes first.
_MOST_ROWS = 20
MEMORY_EVENTS = ["allocate", "release", "spill", "restore"]


class Timeline:
    """The memory events of a `with tw.memory.record()` block, once it has ended; printed, a table.

    `events` holds dicts with kind ('allocate', 'release', 'spill', 'restore'), ns since the start,
    block (equal for all events of one block), bytes, live_bytes afterwards, op, tensor (type and
    shape), source ('file:line'), module, thread and device. `dropped` counts the oldest ones
    that did not fit `capacity`.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.events: list[dict[str, Any]] = []
        self.dropped = 0

    def __len__(self) -> int:
        return len(self.events)

    def __repr__(self) -> str:
        dropped = f", {self.dropped} dropped" if self.dropped else ""
        return f"<Timeline: {len(self)} events{dropped}>"

    def __str__(self) -> str:
        if not self.events:
            return "no memory event"
        totals = self.by_op()
        rows = [
            (op or "(no op)", f"{total['allocations']:,}", f"{total['bytes'] / 2**20:,.2f}")
            for op, total in list(totals.items())[:_MOST_ROWS]
        ]
        table = [("op", "allocations", "MiB"), *rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            f"{op.ljust(widths[0])}  {count.rjust(widths[1])}  {size.rjust(widths[2])}"
            for op, count, size in table
        ]
        if len(totals) > _MOST_ROWS:
            lines.append(f"and {len(totals) - _MOST_ROWS} more ops: see by_op()")
        peak = max(event["live_bytes"] for event in self.events)
        dropped = f"; the oldest {self.dropped:,} events are dropped" if self.dropped else ""
        lines.append(f"at most {peak / 2**20:,.2f} MiB live at one time{dropped}")
        return "\n".join(lines)

    def by_op(self) -> dict[str, dict[str, int]]:
        """Allocations and their bytes for each op, largest first."""
        totals: dict[str, dict[str, int]] = defaultdict(lambda: {"allocations": 0, "bytes": 0})
        for event in self.events:
            if event["kind"] == "allocate":
                totals[event["op"]]["allocations"] += 1
                totals[event["op"]]["bytes"] += event["bytes"]
        return dict(sorted(totals.items(), key=lambda item: -item[1]["bytes"]))

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Writes Chrome's trace format (open it in ui.perfetto.dev): a counter of live bytes, and
        a span for the life of each tensor with its op, bytes and source line.
        """
        trace.write(self._trace_events(), path)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws live and spilled bytes over time; needs matplotlib (the `plot` extra)."""
        figures.save(self.figure(), path)

    def figure(self) -> Any:
        """The picture of `plot`, a matplotlib figure."""
        figure = figures.figure(9, 4, "the picture")
        axes = figures.plain(figure.subplots())
        live = [event["live_bytes"] for event in self.events]
        spilled = self._spilled_bytes()
        span = (self.events[-1]["ns"] - self.events[0]["ns"]) / 1e9 if self.events else 0.0
        per_second, unit = figures.time_scale(span)
        per_unit, bytes_unit = figures.byte_scale(max([*live, *spilled], default=0))
        times = [event["ns"] / 1e9 * per_second for event in self.events]
        live = [count / per_unit for count in live]
        axes.step(times, live, where="post", color=figures.BLUE, label="live")
        axes.fill_between(times, live, step="post", color=figures.BLUE, alpha=0.2)
        if any(spilled):
            away = [count / per_unit for count in spilled]
            axes.step(times, away, where="post", color=figures.ORANGE, label="spilled to files")
            axes.legend(frameon=False, loc="upper left")
        axes.set_xlabel(f"time since the log began, {unit}")
        axes.set_ylabel(f"tensors, {bytes_unit}")
        axes.set_ylim(bottom=0)
        peak = f"{max(live):.3g} {bytes_unit} at most" if live else "no event"
        figures.title(axes, f"Memory of tensors: {peak}")
        return figure

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes one HTML file that needs no network: bytes over time, what was alive at the peak,
        and sums.

        Raises OSError where it cannot be written.
        """
        from tilewright._report.html import page  # noqa: PLC0415  (imported on use)
        from tilewright.memory.timeline_page import of_timeline  # noqa: PLC0415  (imported on use)

        lines = str(self).splitlines()
        page.write(path, "Memory of tensors", of_timeline(self), lines[-1])

    def _repr_html_(self) -> str:
        from tilewright._report.html.tables import for_notebook  # noqa: PLC0415  (imported on use)

        rows = [
            (op or "(no op)", f"{total['allocations']:,}", f"{total['bytes'] / 2**20:,.2f}")
            for op, total in self.by_op().items()
        ]
        title = f"memory: {len(self):,} events"
        columns = ("op", "allocations", "MiB")
        return for_notebook(title, columns, rows, str(self).splitlines()[-1])

    def _spilled_bytes(self) -> list[int]:
        away: set[int] = set()
        spilled, out = 0, []
        for event in self.events:
            if event["kind"] == "spill":
                away.add(event["block"])
                spilled += event["bytes"]
            elif event["block"] in away and event["kind"] in ("restore", "release"):
                away.discard(event["block"])
                spilled -= event["bytes"]
            out.append(spilled)
        return out

    def _trace_events(self) -> Iterator[dict[str, Any]]:
        names: dict[int, str] = {}  # of blocks whose life is in the log
        for event in self.events:
            ns, block = event["ns"], event["block"]
            yield trace.event("C", "live bytes", ns, 1, args={"bytes": event["live_bytes"]})
            if event["kind"] == "allocate":
                names[block] = f"{event['op'] or 'tensor'} {event['tensor']}".strip()
                details = {key: event[key] for key in ("bytes", "op", "tensor", "source")}
                yield trace.event("b", names[block], ns, 1, cat="tensor", id=block, args=details)
            elif block in names:
                phase = "e" if event["kind"] == "release" else "n"
                details = {"event": event["kind"]}
                yield trace.event(phase, names[block], ns, 1, cat="tensor", id=block, args=details)
                if phase == "e":
                    del names[block]


class record:  # noqa: N801  (a context manager, used like a function)
    """Logs what happens to the memory of tensors inside the block, at most `capacity` events.

    The block gets the `Timeline`, of what all threads of the process do. Raises ValueError for
    a capacity below 1, TypeError for one that is no whole number.

    >>> import tilewright as tw
    >>> with tw.memory.record() as timeline:
    ...     y = tw.ones((256,)) + 1
    >>> [event["op"] for event in timeline.events if event["kind"] == "allocate"][-1]
    'add'
    """

    def __init__(self, capacity: int = 100_000) -> None:
        if isinstance(capacity, bool) or not isinstance(capacity, int):
            raise TypeError(f"record: capacity is a whole number, got {capacity!r}")
        if capacity < 1:
            raise ValueError(f"record: capacity must be at least 1, got {capacity}")
        self.capacity = capacity
        self._lock = threading.RLock()  # garbage collection may end a block within a block
        self._open: list[tuple[int, Timeline, _core._Observing]] = []  # by thread

    def __enter__(self) -> Timeline:
        timeline = Timeline(self.capacity)
        observing = _core._Observing(MEMORY_EVENTS, everywhere=True, capacity=self.capacity)
        self._open.append((threading.get_ident(), timeline, observing))
        return timeline

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            if not self._open:
                raise _core.StateError("memory.record: no block of this recorder is open")
            me = threading.get_ident()
            here = [i for i, (thread, *_) in enumerate(self._open) if thread == me]
            _, timeline, observing = self._open.pop(here[-1] if here else -1)
        timeline.events = observing.stop()
        timeline.dropped = observing.dropped
        for event in timeline.events:
            event["ns"] = event.pop("start_ns") - observing.began_ns

    def __repr__(self) -> str:
        return f"<memory.record: with tw.memory.record({self.capacity}) as timeline: ...>"
