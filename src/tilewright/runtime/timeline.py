"""A scheduler's records as a timeline: a trace, and a picture."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from tilewright._report import figures, trace

_NS_PER_S = 1e9
# State of a record that an earlier run left behind, such as a result that a sweep took over.
EARLIER = "earlier"
_COLOURS = {
    "completed": "#2a9d8f", EARLIER: "#b7ded8", "running": "#8ecae6", "failed": "#d62828",
    "cancelled": "#adb5bd",
}  # fmt: skip
_WIDTH, _KEY_COLUMN = 10.0, 3.6
# Names of the key that a picture has room for.
_MOST_NAMES, _NAMES_A_COLUMN = 120, 40
_LETTER_INCHES = 0.075
_LINE_INCHES = 0.155


def write_timeline(records: Sequence[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    """Writes the records, as `Scheduler.tasks` gives them, to a JSON file."""
    events = list(_rows(records))
    for record in records:
        events += _waiting(record)
        if record["started_ns"] is not None:
            events.append(_running(record, records))
    trace.write(events, path)


def draw_timeline(records: Sequence[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    """Draws running spans by worker, coloured by outcome, and how many tasks wait above them.

    A span carries its name where that fits, else a number, which a key beside it explains.
    """
    figures.save(timeline_figure(records), path)


def timeline_figure(records: Sequence[dict[str, Any]]) -> Any:
    """The picture of `draw_timeline`, not yet written."""
    ran = [record for record in records if record["started_ns"] is not None]
    origin = min((record["submitted_ns"] for record in records), default=0)
    spans = [_span(record, records, origin) for record in ran]
    total = max((start + length for _, start, length, _ in spans), default=0.0)
    fits = [
        _LETTER_INCHES * len(name) < _WIDTH * length / (total or 1) for *_, length, name in spans
    ]
    named = len(spans) if not all(fits) else 0
    columns = -(-min(named, _MOST_NAMES) // _NAMES_A_COLUMN)
    workers = sorted({record["worker"] for record in ran})
    height = max(3.2 + 0.55 * len(workers), 0.8 + _LINE_INCHES * min(named, _NAMES_A_COLUMN))
    figure = figures.figure(_WIDTH + _KEY_COLUMN * columns, height, "the picture")
    grid = figure.add_gridspec(
        2, 1 + bool(columns), height_ratios=(1, 2),
        width_ratios=(_WIDTH, *([_KEY_COLUMN * columns] if columns else [])),
    )  # fmt: skip
    above = figures.plain(figure.add_subplot(grid[0, 0]))
    rows = figures.plain(figure.add_subplot(grid[1, 0], sharex=above))
    scale, unit = figures.time_scale(total)
    _draw_waiting(above, records, origin, scale)
    for number, (record, (worker, start, length, name)) in enumerate(
        zip(ran, spans, strict=True), 1
    ):
        colour = _COLOURS.get(record["state"], "#adb5bd")
        rows.barh(
            worker, length * scale, left=start * scale, height=0.8, color=colour, edgecolor="white"
        )
        share = _WIDTH * length / (total or 1)
        label = name if not named else str(number)
        if _LETTER_INCHES * len(label) < share:
            middle = (start + length / 2) * scale
            rows.text(middle, worker, label, ha="center", va="center", fontsize=8, clip_on=True)
    _mark_resumption(above, rows, records, origin, scale)
    rows.set_yticks(workers, [f"worker {worker}" for worker in workers])
    rows.grid(axis="y", visible=False)
    rows.set_xlabel(f"time since the first was submitted, {unit}")
    figures.title(above, _headline(records))
    _legend(rows, {record["state"] for record in ran})
    if columns:
        _draw_key(figure.add_subplot(grid[:, 1]), [name for *_, name in spans], columns)
    return figure


def _headline(records: Sequence[dict[str, Any]]) -> str:
    states = [record["state"] for record in records]
    told = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    return f"{len(records)} tasks: {', '.join(told)}" if records else "no tasks"


def _legend(axes: Any, states: set[str]) -> None:
    if len(states) > 1:
        marks = [
            axes.barh(0, 0, color=colour, label=state)
            for state, colour in _COLOURS.items()
            if state in states
        ]
        axes.legend(
            handles=marks, frameon=False, ncols=len(marks), loc="upper right",
            bbox_to_anchor=(1.0, -0.12),
        )  # fmt: skip


def _draw_key(axes: Any, names: Sequence[str], columns: int) -> None:
    """The names of the numbered spans, in columns."""
    axes.set_axis_off()
    lines = [f"{number}  {name}" for number, name in enumerate(names, 1)]
    if len(lines) > _MOST_NAMES:
        left = len(lines) - _MOST_NAMES + 1
        lines[_MOST_NAMES - 1 :] = [f"and {left} more: see the trace (.json)"]
    for i, line in enumerate(lines):
        x, y = divmod(i, _NAMES_A_COLUMN)
        rows = min(len(lines), _NAMES_A_COLUMN)
        axes.text(x / columns, 1 - (y + 0.5) / rows, line, va="center", fontsize=7.5)


def _mark_resumption(
    above: Any, rows: Any, records: Sequence[dict[str, Any]], origin: int, scale: float
) -> None:
    """A line where what an earlier run did ends and this one begins."""
    new = [record["submitted_ns"] for record in records if record["state"] != EARLIER]
    if new and len(new) < len(records):
        begin = scale * (min(new) - origin) / _NS_PER_S
        for axes in (above, rows):
            axes.axvline(begin, color=figures.GREY, linestyle="--", linewidth=1)
        above.annotate(
            "resumed", (begin, 1), (3, -3), xycoords=("data", "axes fraction"),
            textcoords="offset points", va="top", fontsize=8, color=figures.GREY,
        )  # fmt: skip


def _draw_waiting(axes: Any, records: Sequence[dict[str, Any]], origin: int, scale: float) -> None:
    changes: list[tuple[int, int]] = []
    for record in records:
        end = record["started_ns"] or record["ended_ns"]
        changes.append((record["submitted_ns"], 1))
        if end is not None:
            changes.append((end, -1))
    times, counts, waiting = [0.0], [0], 0
    for ns, step in sorted(changes):
        waiting += step
        times.append(scale * (ns - origin) / _NS_PER_S)
        counts.append(waiting)
    axes.step(times, counts, where="post", color=figures.GREY)
    axes.fill_between(times, counts, step="post", color=figures.GREY, alpha=0.15)
    axes.set_ylabel("tasks waiting")
    axes.set_ylim(bottom=0)
    figures.whole_numbers(axes.yaxis)
    axes.tick_params(labelbottom=False)


def _span(
    record: dict[str, Any], records: Sequence[dict[str, Any]], origin: int
) -> tuple[int, float, float, str]:
    """Worker, start and length in seconds, name of a task that ran."""
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
        yield trace.row_name(worker, f"worker {worker}")


def _waiting(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Two events that open and close a span outside the workers' rows."""
    end = record["started_ns"]
    end = record["ended_ns"] if end is None else end
    if end is None:
        return []
    return [
        trace.event(phase, _name(record), ns, 0, cat="pending", id=record["id"])
        for phase, ns in (("b", record["submitted_ns"]), ("e", end))
    ]


def _running(record: dict[str, Any], records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    told = ("id", "state", "quality", "estimate_bytes", "peak_use_bytes")
    args = {key: record[key] for key in told}
    ns = _run_ns(record, records)
    start, worker = record["started_ns"], record["worker"]
    return trace.span(_name(record), start, ns, worker, cat=record["state"], args=args)


def _name(record: dict[str, Any]) -> str:
    return record["name"] or f"task {record['id']}"
