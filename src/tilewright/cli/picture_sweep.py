"""The picture of `tilewright sweep`: which runs came best, and what each setting does."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from tilewright._report import figures
from tilewright.train.sweep import Row

# A ranking with more rows than these is cut in the middle.
_MOST_NAMED, _BEST, _WORST = 30, 20, 6
# A setting with more values than these is an axis of numbers.
_MOST_CATEGORIES = 10
_LOGARITHMIC_FROM = 50
_ROW_INCHES, _PANEL_INCHES = 0.23, 2.3
# Runs with the same value stand side by side within this share of the place.
_SPREAD = 0.36


def draw_sweep(path: str, rows: Sequence[Row]) -> None:
    """Writes the picture of a sweep's finished runs."""
    figures.save(sweep_figure(rows), path)


def sweep_figure(rows: Sequence[Row]) -> Any:
    """The ranking of the finished runs on the left; a panel for each setting that varies."""
    finished = sorted((row for row in rows if row.epochs), key=lambda row: -row.accuracy)
    settings = _varied(finished)
    shown = min(len(finished), _BEST + 1 + _WORST if len(finished) > _MOST_NAMED else len(finished))
    panels = -(-len(settings) // 2) if len(settings) > 2 else len(settings)
    height = 1.7 + max(_ROW_INCHES * shown, _PANEL_INCHES * panels, 1.0)
    columns = 0 if not settings else 2 if len(settings) > 2 else 1
    figure = figures.figure(7 + 3.2 * columns, height)
    grid = figure.add_gridspec(
        max(panels, 1), 1 + columns, width_ratios=(5, *[3.2] * columns)
    )  # fmt: skip
    figure.suptitle(_title(rows, finished), x=0.01, ha="left", fontweight="bold")
    _draw_ranking(figures.plain(figure.add_subplot(grid[:, 0])), finished)
    for i, key in enumerate(settings):
        axes = figures.plain(figure.add_subplot(grid[i // columns, 1 + i % columns]))
        _draw_setting(axes, key, finished)
    return figure


def _title(rows: Sequence[Row], finished: Sequence[Row]) -> str:
    best = finished[0]
    left = len(rows) - len(finished)
    lost = f", {left} without a result" if left else ""
    runs = "1 run" if len(finished) == 1 else f"{len(finished)} runs"
    return (
        f"Sweep on {best.configuration.data}: {runs}{lost}; "
        f"best {_percent(100 * best.accuracy, 2)} with {best.name}"
    )


def _draw_ranking(axes: Any, finished: Sequence[Row]) -> None:
    """A dot a run, the best on top; of many runs the middle is one row."""
    cut = len(finished) > _MOST_NAMED
    top, bottom = (finished[:_BEST], finished[-_WORST:]) if cut else (finished, [])
    labels = [row.name for row in top]
    axes.plot(*_places(top, 0), "o", color=figures.BLUE, markersize=5)
    if cut:
        middle = finished[_BEST:-_WORST]
        accuracies = [100 * row.accuracy for row in middle]
        axes.plot(accuracies, [_BEST] * len(middle), "|", color=figures.GREY, markersize=9)
        labels.append(f"... {len(middle)} runs between ...")
        labels += [row.name for row in bottom]
        axes.plot(*_places(bottom, _BEST + 1), "o", color=figures.BLUE, markersize=5)
    axes.plot(100 * finished[0].accuracy, 0, "o", color=figures.ORANGE, markersize=7)
    axes.set_yticks(range(len(labels)), labels, fontsize=9)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xlabel("test accuracy after the last epoch")
    figures.title(axes, "Runs, best first")
    _percent_scale(axes.xaxis, [100 * row.accuracy for row in finished])


def _places(rows: Sequence[Row], first: int) -> tuple[list[float], list[int]]:
    return [100 * row.accuracy for row in rows], list(range(first, first + len(rows)))


def _draw_setting(axes: Any, key: str, finished: Sequence[Row]) -> None:
    """A dot a run by its value of the setting; a line at each value's median."""
    groups: dict[Any, list[float]] = {}
    for row in finished:
        value = row.configuration.settings.get(key, "default")
        groups.setdefault(value, []).append(100 * row.accuracy)
    values = sorted(groups, key=lambda value: (isinstance(value, str), value))
    numbers = [value for value in values if not isinstance(value, str)]
    if len(values) > _MOST_CATEGORIES and len(numbers) == len(values):
        points = [(value, accuracy) for value in values for accuracy in groups[value]]
        axes.plot(*zip(*points, strict=True), "o", color=figures.BLUE, markersize=4)
        if min(numbers) > 0 and max(numbers) > _LOGARITHMIC_FROM * min(numbers):
            axes.set_xscale("log")
        figures.in_units(axes.xaxis)
    else:
        _draw_categories(axes, [str(value) for value in values], [groups[v] for v in values])
    figures.title(axes, key)
    axes.set_ylabel("test accuracy")
    _percent_scale(axes.yaxis, [100 * row.accuracy for row in finished])


def _draw_categories(axes: Any, names: Sequence[str], groups: Sequence[Sequence[float]]) -> None:
    for place, group in enumerate(groups):
        steps = [i / max(len(group) - 1, 1) - 0.5 for i in range(len(group))]
        spread = [place + 2 * _SPREAD * step * (len(group) > 1) for step in steps]
        axes.plot(spread, sorted(group), "o", color=figures.BLUE, markersize=4, alpha=0.8)
        label = "median" if place == 0 else "_"
        axes.hlines(
            median(group), place - 0.42, place + 0.42, color=figures.ORANGE, linewidth=2,
            label=label,
        )  # fmt: skip
    axes.set_xticks(range(len(names)), names, rotation=90 if max(map(len, names)) > 9 else 0)
    axes.set_xlim(-0.6, len(names) - 0.4)
    # Above the panel, where no dot can lie.
    axes.legend(
        frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 1.0), handlelength=1.2
    )


def _varied(finished: Sequence[Row]) -> list[str]:
    """Settings that differ between the runs, in the order in which they are written."""
    keys = dict.fromkeys(key for row in finished for key in row.configuration.settings)
    return [
        key for key in keys if len({row.configuration.settings.get(key) for row in finished}) > 1
    ]


def _percent_scale(axis: Any, values: Sequence[float]) -> None:
    digits = 0 if max(values) - min(values) > 4 else 1 if max(values) - min(values) > 0.4 else 2
    figures.written_as(axis, lambda value: _percent(value, digits))


def _percent(value: float, digits: int) -> str:
    return f"{value:.{digits}f} %"
