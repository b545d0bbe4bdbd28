"""A scheduler's records as a timeline in the Chrome trace format, which Perfetto reads too.

Source of the format: "Trace Event Format", the Chromium project.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.extras import require

_NS_PER_US = 1e3
_NS_PER_S = 1e9
_COLOURS = {
    "completed": "#2a9d8f", "running": "#8ecae6", "failed": "#d62828", "cancelled": "#adb5bd",
}  # fmt: skip


def write_timeline(records: Sequence[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    """Writes the records, as `Scheduler.tasks` gives them, to a JSON file."""
    events = list(_rows(records))
    for record in records:
        events += _waiting(record)
        if record["started_ns"] is not None:
            events.append(_running(record, records))
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)


def draw_timeline(records: Sequence[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    """Draws running spans by worker, coloured by outcome, and how many tasks wait above them."""
    pictures = require("matplotlib.figure", purpose="the picture", install="tilewright[plot]")
    figure = pictures.Figure(figsize=(10, 5), layout="constrained")
    above, rows = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2))
    origin = min((record["submitted_ns"] for record in records), default=0)
    _draw_waiting(above, records, origin)
    for state, colour in _COLOURS.items():
        spans = [_span(record, records, origin) for record in records if record["state"] == state]
        for worker, start, length, name in filter(None, spans):
            rows.barh(worker, length, left=start, height=0.8, color=colour, edgecolor="white")
            rows.text(start + length / 2, worker, name, ha="center", va="center", clip_on=True)
    workers = {record["worker"] for record in records if record["worker"] is not None}
    rows.set_yticks(sorted(workers), [f"worker {worker}" for worker in sorted(workers)])
    rows.set_xlabel("seconds")
    figure.savefig(path)


def _draw_waiting(axes: Any, records: Sequence[dict[str, Any]], origin: int) -> None:
    changes: list[tuple[int, int]] = []
    for record in records:
        end = record["started_ns"] or record["ended_ns"]
        changes.append((record["submitted_ns"], 1))
        if end is not None:
            changes.append((end, -1))
    times, counts, waiting = [0.0], [0], 0
    for ns, step in sorted(changes):
        waiting += step
        times.append((ns - origin) / _NS_PER_S)
        counts.append(waiting)
    axes.step(times, counts, where="post", color="#5c677d")
    axes.set_ylabel("tasks waiting")
    axes.set_ylim(bottom=0)


def _span(
    record: dict[str, Any], records: Sequence[dict[str, Any]], origin: int
) -> tuple[int, float, float, str] | None:
    """Worker, start and length in seconds, name; None for a task that never ran."""
    if record["started_ns"] is None:
        return None
    start = (record["started_ns"] - origin) / _NS_PER_S
    return record["worker"], start, _run_ns(record, records) / _NS_PER_S, _name(record)


def _run_ns(record: dict[str, Any], records: Sequence[dict[str, Any]]) -> int:
    end = record["ended_ns"]
    if end is None:  # still running: up to the last thing known
        end = max(known["ended_ns"] or known["submitted_ns"] for known in records)
    return max(int(end - record["started_ns"]), 0)


def _rows(records: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    workers = {record["worker"] for record in records if record["worker"] is not None}
    for worker in sorted(workers):
        name = {"name": f"worker {worker}"}
        yield {"ph": "M", "name": "thread_name", "pid": 1, "tid": worker, "args": name}


def _waiting(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Two events that open and close a span outside the workers' rows."""
    end = record["started_ns"]
    end = record["ended_ns"] if end is None else end
    if end is None:
        return []
    common = {"name": _name(record), "cat": "pending", "id": record["id"], "pid": 1, "tid": 0}
    times = (("b", record["submitted_ns"]), ("e", end))
    return [{**common, "ph": phase, "ts": ns / _NS_PER_US} for phase, ns in times]


def _running(record: dict[str, Any], records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    told = ("id", "state", "quality", "estimate_bytes", "peak_use_bytes")
    return {
        "ph": "X",
        "name": _name(record),
        "cat": record["state"],
        "pid": 1,
        "tid": record["worker"],
        "ts": record["started_ns"] / _NS_PER_US,
        "dur": _run_ns(record, records) / _NS_PER_US,
        "args": {key: record[key] for key in told},
    }


def _name(record: dict[str, Any]) -> str:
    return record["name"] or f"task {record['id']}"
