"""Traces of what ran, in the Chrome trace format, which Perfetto reads too (ui.perfetto.dev).

Source of the format: "Trace Event Format", the Chromium project.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tilewright.io import write_whole

# Lines in here are not the user's.
_PACKAGE = str(Path(__file__).parent) + os.sep
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


def source_position() -> str:
    """The innermost line of the running program outside this package, as 'file:line'."""
    frame = sys._getframe(0)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]  # the outermost has none
    return ""
