"""Pictures of results, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright._engine.optional_packages import require
from tilewright._report import figures
from tilewright.cli.arguments import check_target
from tilewright.cli.console import format_number

# One hue for bars keeps the eye on lengths.
COLOUR = "#2a6f97"
# Beyond this ratio short bars vanish on a linear axis.
_LOGARITHMIC_FROM = 30


def check_plot(path: str | None, option: str = "--plot") -> None:
    """Raises early what would fail at a long command's end: no matplotlib, format, place."""
    if path is None:
        return
    figure = pyplot().Figure()
    known = figure.canvas.get_supported_filetypes()
    ending = path.rpartition(".")[2].lower()
    if ending not in known:
        raise ValueError(
            f"{option}: no picture format {ending!r}; known: {', '.join(sorted(known))}"
        )
    check_target(option, path)


def bars(
    path: str,
    title: str,
    unit: str,
    labels: Sequence[str],
    values: Sequence[float],
    mark: float | None = None,
) -> None:
    """Horizontal bars, first label on top, with their values written out; a line at `mark`.

    Bars of very different lengths get a logarithmic axis.
    """
    figure = figures.figure(7, 1.2 + 0.42 * len(labels))
    axes = figure.subplots()
    draw_bars(axes, unit, labels, values)
    if mark is not None:
        axes.axvline(mark, color="black", linewidth=0.8, linestyle="--")
    axes.set_title(title, loc="left")
    figures.save(figure, path)


def draw_bars(
    axes: Any,
    unit: str,
    labels: Sequence[str],
    values: Sequence[float],
    colours: Sequence[str] | str = COLOUR,
) -> None:
    """The bars of `bars`, on axes of a larger picture."""
    drawn = axes.barh(range(len(labels)), values, color=colours)
    axes.set_yticks(range(len(labels)), labels)
    axes.bar_label(drawn, labels=[format_number(value) for value in values], padding=3)
    if max(values) > _LOGARITHMIC_FROM * min(values):
        # A decade below the shortest bar, so that it too has a length.
        axes.set_xscale("log")
        axes.set_xlim(min(values) / 10, max(values) * 4)
    else:
        axes.set_xlim(0, max(values) * 1.15)
    figures.in_units(axes.xaxis)
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    axes.spines[["top", "right"]].set_visible(False)


def pyplot() -> Any:
    """What figures are made by; raises ImportError that says how to get it."""
    # The figure module alone needs no display.
    return require("matplotlib.figure", purpose="--plot", install="tilewright[plot]")
