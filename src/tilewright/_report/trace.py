"""Traces of what ran, in the Chrome trace format, which Perfetto reads too (ui.perfetto.dev).

Source of the format: "Trace Event Format", the Chromium project.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from tilewright.io.atomic import write_whole

_NS_PER_US = 1e3


def write(events: Iterable[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    """Writes the events, made by the functions below, to a JSON file."""
    text = json.dumps({"traceEvents": list(events), "displayTimeUnit": "ms"})
    write_whole(path, text.encode(), "trace")


def event(phase: str, name: str, ns: float, row: int, **rest: Any) -> dict[str, Any]:
    """One event at a time in ns, in the row of a thread or worker.

    Phases: 'b' and 'e' open and close a span outside the rows, 'n' marks an instant of it; 'C' is
    a counter.
    """
    place = {"pid": os.getpid(), "tid": row}
    return {"ph": phase, "name": name, "ts": ns / _NS_PER_US, **place, **rest}


def span(name: str, start_ns: float, ns: float, row: int, **rest: Any) -> dict[str, Any]:
    """What a row does from a start on."""
    return event("X", name, start_ns, row, dur=ns / _NS_PER_US, **rest)


def row_name(row: int, name: str) -> dict[str, Any]:
    return event("M", "thread_name", 0, row, args={"name": name})
