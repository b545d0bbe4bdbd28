"""Charts of a page: timelines, scatter plots and waterfalls, drawn by Chart.js."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

from tilewright._report import figures
from tilewright._report.html.sections import embedded
from tilewright._report.html.tables import sortable
from tilewright._report.text import time_text

_CHARTS = ("chart.js", "chartjs-plugin-zoom")
_NS_PER_S = 1e9
# A browser draws and finds so many bars, and points of a line, within a frame or two.
MOST_SPANS, MOST_POINTS = 5000, 8000
_OTHERS = "others"
# Groups that have a colour of their own.
_MOST_GROUPS = len(figures.COLOURS) - 1


@dataclass(frozen=True)
class _Chart:
    """What is drawn by Chart.js."""

    packages: ClassVar[tuple[str, ...]] = _CHARTS
    title: str
    note: str = field(default="", kw_only=True)

    def config(self) -> dict[str, Any]:
        """What Chart.js is given."""
        raise NotImplementedError

    @property
    def height(self) -> int:
        """In pixels."""
        return 420

    def body(self) -> str:
        """See Section."""
        return (
            '<div class="chart"><div class="tools">drag to zoom in, Ctrl and wheel to zoom '
            "<button>whole chart</button></div>"
            f'<div class="canvas" style="height:{self.height}px"><canvas></canvas></div>'
            f"{embedded(self.config())}</div>"
        )


class Span(NamedTuple):
    """What a row of a timeline does for a while; spans of one group have one colour."""

    row: str
    start_ns: float
    ns: float
    group: str
    text: str


@dataclass(frozen=True)
class Timeline(_Chart):
    """Spans in rows, and above them bytes over time, as steps; both may be empty.

    Where there are more spans than a browser draws well, neighbours are drawn as one.
    """

    spans: Sequence[Span] = ()
    lines: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)  # ns, bytes

    @property
    def height(self) -> int:
        """See _Chart."""
        rows = {span.row for span in self.spans}
        return 90 + 250 * bool(self.lines) + (60 + 30 * len(rows)) * bool(rows)

    def config(self) -> dict[str, Any]:
        """See _Chart."""
        ends = [span.start_ns + span.ns for span in self.spans]
        ends += [points[-1][0] for points in self.lines.values() if points]
        end = max(ends, default=0.0)
        per_second, unit = figures.time_scale(end / _NS_PER_S)
        scale = per_second / _NS_PER_S
        highest = max((y for points in self.lines.values() for _, y in points), default=0.0)
        per_unit, bytes_unit = figures.byte_scale(highest)
        colours = (figures.BLUE, figures.ORANGE, figures.GREEN, figures.PINK)
        sets: list[dict[str, Any]] = [
            {
                "type": "line", "label": name, "yAxisID": "bytes", "stepped": True,
                "borderColor": colour, "borderWidth": 1.5, "pointRadius": 0, "pointHitRadius": 4,
                "data": [
                    {"x": _short(x * scale), "y": _short(y / per_unit)} for x, y in thinned(points)
                ],
            }
            for (name, points), colour in zip(self.lines.items(), colours, strict=False)
        ]  # fmt: skip
        for name, colour, spans in _coloured(joined(self.spans)):
            sets.append(
                {
                    "type": "bar", "label": name, "yAxisID": "names", "indexAxis": "y",
                    "grouped": False, "backgroundColor": colour, "barPercentage": 0.95,
                    "categoryPercentage": 0.95, "minBarLength": 1,
                    "data": [
                        {
                            "x": [_short(s.start_ns * scale), _short((s.start_ns + s.ns) * scale)],
                            "y": s.row, "text": s.text,
                        }
                        for s in spans
                    ],
                }
            )  # fmt: skip
        x = _axis(f"time, {unit}") | {"type": "linear", "min": 0, "max": _short(end * scale)}
        axes: dict[str, Any] = {"x": x}
        rows = sorted({span.row for span in self.spans})
        if rows:
            axes["names"] = {
                "type": "category", "labels": rows, "axis": "y", "offset": True, "stack": "y",
                "stackWeight": max(len(rows), 2), "grid": {"display": False},
            }  # fmt: skip
        if self.lines:
            axes["bytes"] = _axis(f"tensors, {bytes_unit}") | {
                "type": "linear", "axis": "y", "min": 0, "stack": "y", "weight": 1,
                "stackWeight": 6,
            }  # fmt: skip
        return _config("line", sets, axes, "x")


class Point(NamedTuple):
    """A point of a scatter plot; `text` is shown where the pointer is on it."""

    x: float
    y: float
    group: str
    text: str


@dataclass(frozen=True)
class Scatter(_Chart):
    """Points over two axes, and lines: a roofline has a line for each roof."""

    x: str
    y: str
    points: Sequence[Point]
    lines: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    logarithmic: bool = True

    def config(self) -> dict[str, Any]:
        """See _Chart."""
        sets: list[dict[str, Any]] = [
            {
                "type": "scatter", "label": name, "backgroundColor": f"{colour}cc",
                "borderColor": "#ffffff", "borderWidth": 0.5, "pointRadius": 5,
                "pointHoverRadius": 7,
                "data": [{"x": _short(p.x), "y": _short(p.y), "text": p.text} for p in points],
            }
            for name, colour, points in _coloured(self.points)
        ]  # fmt: skip
        dashes: tuple[list[int], ...] = ([], [6, 4], [2, 3], [8, 3, 2, 3])
        for at, (name, line) in enumerate(self.lines.items()):
            sets.append(
                {
                    "type": "line", "label": name, "borderColor": figures.GREY, "borderWidth": 1.5,
                    "borderDash": dashes[at % len(dashes)], "pointRadius": 0, "pointHitRadius": 0,
                    "order": 1, "data": [{"x": _short(x), "y": _short(y)} for x, y in line],
                }
            )  # fmt: skip
        kind = "logarithmic" if self.logarithmic else "linear"
        axes = {"x": _axis(self.x) | {"type": kind}, "y": _axis(self.y) | {"type": kind}}
        return _config("scatter", sets, axes, "xy")


class Step(Protocol):
    """A row of a waterfall: what was added, the time then, and the factor that this bought.

    `low` and `high` bound the factor.
    """

    @property
    def name(self) -> str: ...
    @property
    def factor(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def ms(self) -> float: ...


@dataclass(frozen=True)
class Waterfall(_Chart):
    """How a time came down, step by step: a bar reaches from the time before to the one after.

    The axis is logarithmic, so that the length of a bar is its factor. The first and the last bar
    are the whole times.
    """

    steps: Sequence[Step]

    @property
    def height(self) -> int:
        """See _Chart."""
        return 110 + 30 * (len(self.steps) + 1)

    def config(self) -> dict[str, Any]:
        """See _Chart."""
        times = [step.ms for step in self.steps]
        floor = 0.7 * min(times, default=1.0)
        bars: list[tuple[float, float, str, str]] = []
        for i, step in enumerate(self.steps):
            to = time_text(1e6 * step.ms)
            if i == 0:
                bars.append((floor, step.ms, f"{step.name}: {to}", figures.COLOURS[0]))
                continue
            text = (
                f"{step.name}: {time_text(1e6 * times[i - 1])} to {to}, {step.factor:.2f} times as "
                f"fast ({step.low:.2f} to {step.high:.2f})"
            )
            colour = figures.BLUE if step.factor >= 1 else figures.ORANGE
            low, high = sorted((times[i - 1], step.ms))
            bars.append((low, high, text, colour))
        if times:
            text = f"all of it: {time_text(1e6 * times[-1])}"
            bars.append((floor, times[-1], text, figures.COLOURS[0]))
        # Numbered: a category that comes twice would be one.
        names = [*(step.name for step in self.steps), *(["all of it"] if times else [])]
        labels = [f"{i}. {name}" for i, name in enumerate(names, 1)]
        data = [
            {"x": [_short(low), _short(high)], "y": label, "text": text}
            for label, (low, high, text, _) in zip(labels, bars, strict=True)
        ]
        shown = {
            "type": "bar", "label": "time", "indexAxis": "y", "data": data, "minBarLength": 2,
            "backgroundColor": [colour for *_, colour in bars],
        }  # fmt: skip
        axes = {
            "x": _axis("time, ms") | {"type": "logarithmic", "min": floor},
            "y": {"type": "category", "labels": labels, "grid": {"display": False}},
        }
        config = _config("bar", [shown], axes, "x")
        config["options"]["indexAxis"] = "y"
        config["options"]["plugins"]["legend"] = {"display": False}
        return config

    def body(self) -> str:
        """See Section: the chart, and its numbers."""
        columns = ("step", "time", "times as fast", "from", "to")
        rows = [
            (s.name, time_text(1e6 * s.ms), f"{s.factor:.2f}", f"{s.low:.2f}", f"{s.high:.2f}")
            for s in self.steps
        ]
        return super().body() + sortable(columns, rows)

    packages: ClassVar[tuple[str, ...]] = (*_CHARTS, "tablesort")


def joined(spans: Sequence[Span], most: int = MOST_SPANS) -> list[Span]:
    """The spans, or fewer: neighbours of a row that lie close together become one."""
    joining_ns = 0.0
    total = max((span.start_ns + span.ns for span in spans), default=0.0)
    ordered = sorted(spans, key=lambda span: (span.row, span.start_ns))
    found = list(ordered)
    while len(found) > most:
        joining_ns = 2 * joining_ns or total / most / 4
        found = _joined_within(ordered, joining_ns)
        if joining_ns > total:
            break
    return found


def _joined_within(ordered: Iterable[Span], ns: float) -> list[Span]:
    found: list[Span] = []
    held: list[Span] = []
    for span in ordered:
        if held and (span.row != held[0].row or span.start_ns + span.ns - held[0].start_ns > ns):
            found.append(_one_of(held))
            held = []
        held.append(span)
    return [*found, *([_one_of(held)] if held else [])]


def _one_of(spans: Sequence[Span]) -> Span:
    """In the colour of the longest."""
    if len(spans) == 1:
        return spans[0]
    longest = max(spans, key=lambda span: span.ns)
    start = spans[0].start_ns
    ns = max(span.start_ns + span.ns for span in spans) - start
    text = f"{len(spans)} spans in {time_text(ns)}; the longest: {longest.text}"
    return Span(longest.row, start, ns, longest.group, text)


def thinned(
    points: Sequence[tuple[float, float]], most: int = MOST_POINTS
) -> list[tuple[float, float]]:
    """The points of a line, or of each stretch of it the lowest and the highest, in order."""
    if len(points) <= most:
        return list(points)
    stretch = -(-2 * len(points) // most)
    kept = {0, len(points) - 1}
    for start in range(0, len(points), stretch):
        here = range(start, min(start + stretch, len(points)))
        kept |= {min(here, key=lambda i: points[i][1]), max(here, key=lambda i: points[i][1])}
    return [points[i] for i in sorted(kept)]


def _coloured(items: Sequence[Any]) -> list[tuple[str, str, list[Any]]]:
    """Groups with the most time, or points, first, each with its colour; the rest in grey."""
    groups: dict[str, list[Any]] = {}
    for item in items:
        groups.setdefault(item.group, []).append(item)
    ordered = sorted(
        groups.items(), key=lambda pair: -sum(getattr(item, "ns", 1.0) for item in pair[1])
    )
    if len(ordered) > _MOST_GROUPS:
        rest = [item for _, held in ordered[_MOST_GROUPS - 1 :] for item in held]
        ordered = [*ordered[: _MOST_GROUPS - 1], (_OTHERS, rest)]
    palette = [*figures.COLOURS[1:]]
    return [
        (name, figures.COLOURS[0] if name == _OTHERS else palette[i], held)
        for i, (name, held) in enumerate(ordered)
    ]


def _axis(title: str) -> dict[str, Any]:
    return {"title": {"display": True, "text": title}, "grid": {"color": figures.GRID}}


def _config(
    kind: str, sets: list[dict[str, Any]], axes: dict[str, Any], zoomed: str
) -> dict[str, Any]:
    """Chart.js's configuration. Source: chartjs.org and chartjs-plugin-zoom's own pages."""
    zoom = {
        "mode": zoomed,
        "drag": {"enabled": True, "threshold": 4},
        "wheel": {"enabled": True, "modifierKey": "ctrl"},
    }
    return {
        "type": kind,
        "data": {"datasets": sets},
        "options": {
            "animation": False,
            "maintainAspectRatio": False,
            "interaction": {"mode": "nearest", "intersect": True},
            "scales": axes,
            "plugins": {
                "zoom": {"zoom": zoom},
                "tooltip": {},
                "legend": {"position": "bottom", "labels": {"boxWidth": 12, "boxHeight": 12}},
            },
        },
    }


def _short(value: float) -> float | None:
    """Seven digits: what a screen shows. None, a gap, for what JSON and axes do not have."""
    return float(f"{value:.7g}") if math.isfinite(value) else None
