"""The picture of `tilewright bench history`: times over time, as multiples of the first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tilewright._report import figures
from tilewright.bench.saved import Saved, changes, mean_ratio

# Cases that are named: those that moved most.
_NAMED = 5
_WIDTH_INCHES, _PANEL_INCHES = 9.5, 3.4
_LONGEST_NAME, _MOST_LABELS = 34, 8


def draw_history(path: str, groups: Sequence[tuple[str, Sequence[Saved]]]) -> None:
    """Writes a panel a group, with its title."""
    figure = figures.figure(_WIDTH_INCHES, 0.3 + _PANEL_INCHES * len(groups))
    panels = figure.subplots(len(groups), 1, squeeze=False)[:, 0]
    for axes, (title, group) in zip(panels, groups, strict=True):
        _draw_group(figures.plain(axes), title, group)
    figures.save(figure, path)


def _draw_group(axes: Any, title: str, group: Sequence[Saved]) -> None:
    places = list(range(len(group)))
    lines = _lines(group)
    moved = sorted(lines, key=lambda name: -abs(_last(lines[name]) - 1))[:_NAMED]
    for name, line in lines.items():
        if name not in moved:
            axes.plot(places, line, color=figures.FAINT, linewidth=0.8)
    colours = (figures.BLUE, figures.ORANGE, figures.GREEN, figures.PINK, figures.COLOURS[1])
    for name, colour in zip(moved, colours, strict=False):
        axes.plot(places, lines[name], "o-", color=colour, markersize=3, label=_short(name))
    means = [mean_ratio(changes(group[0], each)) for each in group]
    axes.plot(places, means, "o-", color="black", linewidth=2.2, label="geometric mean")
    axes.axhline(1, color=figures.GREY, linewidth=0.8, linestyle="--")
    told = places[:: -(-len(places) // _MOST_LABELS)]
    axes.set_xticks(told, [_label(group[place]) for place in told], fontsize=8)
    axes.margins(x=0.05)
    axes.set_ylabel("time / first")
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figures.title(axes, title, "below 1: faster than at first; the cases that moved most are named")


def _lines(group: Sequence[Saved]) -> dict[str, list[float]]:
    """Of each case, its time as a multiple of the first that is known; NaN where it is missing."""
    names = dict.fromkeys(name for each in group for name in each.rows)
    lines = {}
    for name in names:
        times = [each.rows[name].median_s if name in each.rows else float("nan") for each in group]
        first = next(time for time in times if not math.isnan(time))
        lines[name] = [time / first for time in times]
    return lines


def _last(line: Sequence[float]) -> float:
    return next(value for value in reversed(line) if not math.isnan(value))


def _label(each: Saved) -> str:
    """Version and day, below each other."""
    try:
        day = datetime.strptime(each.date, "%Y-%m-%dT%H:%M:%SZ").strftime("%d %b %Y\n%H:%M")
    except ValueError:
        day = each.date
    return f"{each.conditions.get('version', '')}\n{day}"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 3] + "..."
