"""The sections of the page of a memory log."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from tilewright._report.html.charts import Timeline as Chart
from tilewright._report.html.sections import FlameGraph, Frame, Section, Table, Text

if TYPE_CHECKING:
    from tilewright.memory.timeline import Timeline

_OUTSIDE, _NO_OP, _NO_LINE = "(outside of modules)", "(no op)", "(no line)"


def of_timeline(log: Timeline) -> list[Section]:
    """Live bytes over time, what was alive at their peak, and what allocated them."""
    if not log.events:
        return [Text("Memory", "no memory event")]
    lines = {"live": [(event["ns"], event["live_bytes"]) for event in log.events]}
    spilled = log._spilled_bytes()
    if any(spilled):
        moments = [event["ns"] for event in log.events]
        lines["spilled to files"] = list(zip(moments, spilled, strict=True))
    made = [event for event in log.events if event["kind"] == "allocate"]
    sections: list[Section] = [Chart("Bytes over time", (), lines)]
    if alive := _alive_at_peak(log):
        note = (
            "Tensors that were allocated within the log and alive when most bytes were. "
            f"{_mebibytes(sum(event['bytes'] for event in alive))} of "
            f"{_mebibytes(max(event['live_bytes'] for event in log.events))}."
        )
        columns = ("bytes", "op", "tensor", "module", "line")
        rows = [
            (_mebibytes(e["bytes"]), e["op"] or _NO_OP, e["tensor"], e["module"], _line(e))
            for e in sorted(alive, key=lambda event: -event["bytes"])
        ]
        sections.append(Table("Alive at the peak", columns, rows, note))
    root = Frame("all allocations")
    for event in made:
        inside = event["module"].split(".") if event["module"] else [_OUTSIDE]
        root.add([*inside, _line(event), event["op"] or _NO_OP], event["bytes"])
    sections.append(FlameGraph("Allocated bytes by module, line and op", root, "bytes"))
    for name, key in (
        ("op", lambda event: event["op"] or _NO_OP),
        ("module", lambda event: event["module"] or _OUTSIDE),
        ("line", _line),
    ):
        sections.append(_sums(name, made, key))
    return sections


def _alive_at_peak(log: Timeline) -> list[dict[str, Any]]:
    """The allocations that were not released when most bytes were live."""
    peak = max(range(len(log.events)), key=lambda i: log.events[i]["live_bytes"])
    held: dict[int, dict[str, Any]] = {}
    for event in log.events[: peak + 1]:
        if event["kind"] in ("allocate", "restore"):
            held[event["block"]] = event
        else:
            held.pop(event["block"], None)
    return list(held.values())


def _sums(name: str, made: Iterable[dict[str, Any]], key: Callable[[dict[str, Any]], str]) -> Table:
    totals: dict[str, list[int]] = {}
    for event in made:
        total = totals.setdefault(key(event), [0, 0])
        total[0] += 1
        total[1] += event["bytes"]
    ordered = sorted(totals.items(), key=lambda item: -item[1][1])
    rows = [(each, f"{count:,}", _mebibytes(size)) for each, (count, size) in ordered]
    return Table(f"By {name}", (name, "allocations", "bytes"), rows)


def _line(event: dict[str, Any]) -> str:
    return os.path.basename(event["source"]) or _NO_LINE


def _mebibytes(count: float) -> str:
    return f"{count / 2**20:,.3f} MiB"
