"""What happened to the memory of tensors over time: a log, as a trace, a picture and a table."""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from tilewright import _core, pictures
from tilewright.io import write_whole

# Lines in here are not the user's.
_PACKAGE = str(Path(__file__).parents[1]) + os.sep
# Rows of a printed log; the op with the most bytes first.
_MOST_ROWS = 20


class Timeline:
    """The memory events of a `with tw.memory.record()` block, once it has ended; printed, a table.

    `events` holds dicts with kind ('allocate', 'release', 'spill', 'restore'), ns since the start,
    block (equal for all events of one block), bytes, live_bytes afterwards, op, tensor (type and
    shape) and source ('file:line'). `dropped` counts the oldest ones that did not fit `capacity`.
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
            (op or "(no op)", f"{figures['allocations']:,}", f"{figures['bytes'] / 2**20:,.2f}")
            for op, figures in list(totals.items())[:_MOST_ROWS]
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
        text = json.dumps({"traceEvents": list(self._trace_events())})
        write_whole(path, text.encode(), "trace")

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws live and spilled bytes over time; needs matplotlib (the `plot` extra)."""
        pictures.save(self.figure(), path)

    def figure(self) -> Any:
        """The picture of `plot`, a matplotlib figure."""
        figure = pictures.figure(9, 4, "the picture")
        axes = pictures.plain(figure.subplots())
        live = [event["live_bytes"] for event in self.events]
        spilled = self._spilled_bytes()
        span = (self.events[-1]["ns"] - self.events[0]["ns"]) / 1e9 if self.events else 0.0
        per_second, unit = pictures.time_scale(span)
        per_unit, bytes_unit = pictures.byte_scale(max([*live, *spilled], default=0))
        times = [event["ns"] / 1e9 * per_second for event in self.events]
        live = [count / per_unit for count in live]
        axes.step(times, live, where="post", color=pictures.BLUE, label="live")
        axes.fill_between(times, live, step="post", color=pictures.BLUE, alpha=0.2)
        if any(spilled):
            away = [count / per_unit for count in spilled]
            axes.step(times, away, where="post", color=pictures.ORANGE, label="spilled to files")
            axes.legend(frameon=False, loc="upper left")
        axes.set_xlabel(f"time since the log began, {unit}")
        axes.set_ylabel(f"tensors, {bytes_unit}")
        axes.set_ylim(bottom=0)
        peak = f"{max(live):.3g} {bytes_unit} at most" if live else "no event"
        pictures.title(axes, f"Memory of tensors: {peak}")
        return figure

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
        process = {"pid": os.getpid(), "tid": 1}
        open_spans: dict[int, dict[str, Any]] = {}
        for event in self.events:
            time = {"ts": event["ns"] / 1e3, **process}
            yield {
                "name": "live bytes", "ph": "C", "args": {"bytes": event["live_bytes"]}, **time
            }  # fmt: skip
            if event["kind"] == "allocate":
                span = {
                    "name": f"{event['op'] or 'tensor'} {event['tensor']}".strip(),
                    "cat": "tensor",
                    "id": event["block"],
                }
                open_spans[event["block"]] = span
                details = {key: event[key] for key in ("bytes", "op", "tensor", "source")}
                yield {**span, "ph": "b", "args": details, **time}
            elif event["block"] in open_spans:
                span = open_spans[event["block"]]
                if event["kind"] == "release":
                    yield {**span, "ph": "e", **time}
                    del open_spans[event["block"]]
                else:
                    yield {**span, "ph": "n", "args": {"event": event["kind"]}, **time}


class record:  # noqa: N801  (a context manager, used like a function)
    """Logs what happens to the memory of tensors inside the block, at most `capacity` events.

    The block gets the `Timeline`, of what all threads of the process do. Logs do not nest: an inner
    one ends the outer one. Raises ValueError for a capacity below 1, TypeError for one that is no
    whole number.

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
        self._timeline: Timeline | None = None

    def __enter__(self) -> Timeline:
        self._timeline = Timeline(self.capacity)
        _core._start_memory_log(self.capacity)
        return self._timeline

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._timeline is not None:
            self._timeline.events, self._timeline.dropped = _core._stop_memory_log()

    def __repr__(self) -> str:
        return f"<memory.record: with tw.memory.record({self.capacity}) as timeline: ...>"


def source_position() -> str:
    """The innermost line of the running program outside this package, as 'file:line'."""
    frame = sys._getframe(0)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]  # the outermost has none
    return ""
