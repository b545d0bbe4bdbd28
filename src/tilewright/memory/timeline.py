"""What happened to the memory of tensors over time: a log, as a trace, a picture and a table."""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tilewright import _core
from tilewright.extras import require

# Lines in here are not the user's.
_PACKAGE = str(Path(__file__).parents[1]) + os.sep


class Timeline:
    """The memory events of a `with tw.memory.record()` block, once it has ended.

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
        Path(path).write_text(json.dumps({"traceEvents": list(self._trace_events())}))

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws live and spilled bytes over time; needs matplotlib (the `plot` extra)."""
        pictures = require("matplotlib.figure", purpose="the picture", install="tilewright[plot]")
        figure = pictures.Figure(figsize=(9, 4), layout="constrained")
        axes = figure.subplots()
        times = [event["ns"] / 1e6 for event in self.events]
        live = [event["live_bytes"] / 2**20 for event in self.events]
        axes.step(times, live, where="post", label="live")
        axes.fill_between(times, live, step="post", alpha=0.25)
        if any(event["kind"] == "spill" for event in self.events):
            axes.step(times, self._spilled_mib(), where="post", label="spilled")
        axes.set_xlabel("milliseconds")
        axes.set_ylabel("MiB")
        axes.set_ylim(bottom=0)
        axes.set_title("memory of tensors")
        axes.legend(loc="upper left")
        figure.savefig(path)

    def _spilled_mib(self) -> list[float]:
        away: set[int] = set()
        spilled, out = 0, []
        for event in self.events:
            if event["kind"] == "spill":
                away.add(event["block"])
                spilled += event["bytes"]
            elif event["block"] in away and event["kind"] in ("restore", "release"):
                away.discard(event["block"])
                spilled -= event["bytes"]
            out.append(spilled / 2**20)
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


@contextmanager
def record(capacity: int = 100_000) -> Iterator[Timeline]:
    """Logs what happens to the memory of tensors inside the block, at most `capacity` events.

    Logs do not nest: an inner one ends the outer one.

    >>> import tilewright as tw
    >>> with tw.memory.record() as timeline:
    ...     y = tw.ones((256,)) + 1
    >>> [event["op"] for event in timeline.events if event["kind"] == "allocate"][-1]
    'add'
    """
    if capacity < 1:
        raise ValueError(f"record: capacity must be at least 1, got {capacity}")
    timeline = Timeline(capacity)
    _core._start_memory_log(capacity)
    try:
        yield timeline
    finally:
        timeline.events, timeline.dropped = _core._stop_memory_log()


def source_position() -> str:
    """The innermost line of the running program outside this package, as 'file:line'."""
    frame = sys._getframe(0)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]  # the outermost has none
    return ""
