"""The picture of `tilewright ablate`: a waterfall from plain loops to everything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright._report import figures
from tilewright.bench.intervals import Interval
from tilewright.cli.console import format_seconds

_WIDTH_INCHES, _ROW_INCHES = 9.5, 0.36
# Beyond this ratio short bars vanish on a linear axis.
_LOGARITHMIC_FROM = 8
# For what is written beside the bars, of a logarithmic axis.
_MARGIN = 0.5


@dataclass(frozen=True)
class Bar:
    """A line: seconds of a step, and its factor to the line that it is compared with."""

    name: str
    step_s: float
    factor: Interval | None


def draw_ablation(
    path: str, title: str, below: str, steps: Sequence[Bar], single: Sequence[Bar]
) -> None:
    """Writes the waterfall of `steps`, and under it what each part alone is worth."""
    rows = len(steps) + len(single)
    figure = figures.figure(_WIDTH_INCHES, 2.1 + _ROW_INCHES * rows)
    above, under = figure.subplots(2, 1, height_ratios=(len(steps), max(len(single), 1)))
    _draw_waterfall(figures.plain(above), title, below, steps)
    _draw_single(figures.plain(under), single)
    figures.save(figure, path)


def _draw_waterfall(axes: Any, title: str, below: str, steps: Sequence[Bar]) -> None:
    times = [bar.step_s for bar in steps]
    is_logarithmic = max(times) > _LOGARITHMIC_FROM * min(times)
    left = min(times) / 2 if is_logarithmic else 0.0
    for at, bar in enumerate(steps):
        before = steps[at - 1].step_s if at else left
        is_end = at in (0, len(steps) - 1)
        # The last line has a bar of its own length behind what it saved.
        if is_end:
            axes.barh(at, bar.step_s - left, left=left, color=figures.BLUE, height=0.62)
        if at:
            colour = figures.GREEN if bar.step_s <= before else figures.ORANGE
            low, high = sorted((before, bar.step_s))
            axes.barh(at, high - low, left=low, color=colour, height=0.62)
            axes.plot((before, before), (at - 1.31, at + 0.31), color=figures.GREY, linewidth=0.8)
        axes.annotate(
            _told(bar), (max(before, bar.step_s), at), (5, 0), textcoords="offset points",
            va="center", fontsize=8.5,
        )  # fmt: skip
    if is_logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(left, max(times) * (max(times) / left) ** _MARGIN)
    else:
        axes.set_xlim(0, max(times) * 1.5)
    _rows(axes, [bar.name for bar in steps])
    figures.in_units(axes.xaxis, "s")
    axes.set_xlabel("time of a step" + (", logarithmic" if is_logarithmic else ""))
    figures.title(axes, title, below)


def _told(bar: Bar) -> str:
    seconds = format_seconds(bar.step_s)
    if bar.factor is None:
        return seconds
    return f"{seconds}   {_factor_text(bar.factor)}"


def _factor_text(factor: Interval) -> str:
    text = _times(factor.value)
    return text if math.isnan(factor.low) else f"{text} ({factor})"


def _draw_single(axes: Any, single: Sequence[Bar]) -> None:
    known = [(bar.name, bar.factor) for bar in single if bar.factor]
    lows, highs = zip(*(_ends(factor) for _, factor in known), strict=True)
    furthest = max(1.0, *highs)
    is_logarithmic = furthest > _LOGARITHMIC_FROM
    left = min(1.0, *lows) / 2 if is_logarithmic else 0.0
    for at, (_, factor) in enumerate(known):
        low, high = _ends(factor)
        axes.barh(at, factor.value - left, left=left, color=figures.BLUE, height=0.62)
        if low < high:
            ends = [[factor.value - low], [high - factor.value]]
            axes.errorbar(factor.value, at, xerr=ends, color="black", capsize=3, linewidth=1)
        axes.annotate(
            _factor_text(factor), (high, at), (7, 0), textcoords="offset points", va="center",
            fontsize=8.5,
        )  # fmt: skip
    axes.axvline(1, color="black", linewidth=0.8, linestyle="--")
    if is_logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(left, furthest * (furthest / left) ** _MARGIN)
        figures.written_as(axes.xaxis, lambda value: f"{value:g}")
    else:
        axes.set_xlim(0, furthest * 1.5)
    _rows(axes, [name for name, _ in known])
    axes.set_xlabel("times as long as with everything")
    figures.title(axes, "Everything, but for one reason")


def _ends(factor: Interval) -> tuple[float, float]:
    """Of the interval, or the factor itself where nobody knows it."""
    if math.isnan(factor.low):
        return factor.value, factor.value
    return factor.low, factor.high


def _rows(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")


def _times(value: float) -> str:
    return f"{value:.0f}x" if value >= 100 else f"{value:.3g}x"
