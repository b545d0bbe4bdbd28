"""A scheduler's records as a timeline in the Chrome trace format, which Perfetto reads too.

Source of the format: "Trace Event Format", the Chromium project.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

_NS_PER_US = 1e3


def write_timeline(records: Sequence[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    """Writes the records, as `Scheduler.tasks` gives them, to a JSON file."""
    events = list(_rows(records))
    for record in records:
        events += _waiting(record)
        if record["started_ns"] is not None:
            events.append(_running(record, records))
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)


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
    end = record["ended_ns"]
    if end is None:  # still running: up to the last thing known
        end = max(known["ended_ns"] or known["submitted_ns"] for known in records)
    span = max(end - record["started_ns"], 0)
    told = ("id", "state", "quality", "estimate_bytes", "peak_use_bytes")
    return {
        "ph": "X",
        "name": _name(record),
        "cat": record["state"],
        "pid": 1,
        "tid": record["worker"],
        "ts": record["started_ns"] / _NS_PER_US,
        "dur": span / _NS_PER_US,
        "args": {key: record[key] for key in told},
    }


def _name(record: dict[str, Any]) -> str:
    return record["name"] or f"task {record['id']}"
