"""What all pictures share: figures without a display, axes in units, files that appear whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import BytesIO
from typing import Any

from tilewright._engine.optional_packages import require
from tilewright.io.atomic import write_whole

# Of Okabe and Ito's palette, which people with any kind of colour vision can tell apart.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
# For up to ten things side by side; black is left for what stands out.
COLOURS = (
    "#8a8f98", "#E69F00", "#56B4E9", GREEN, BLUE, PINK, ORANGE, "#8c6d31", "#637939", "#7b4173",
)  # fmt: skip
GREY, FAINT, GRID = "#5c6470", "#c9ccd1", "#eceef0"
_DPI = 150


def figure(width: float, height: float, purpose: str = "--plot") -> Any:
    """An empty figure in inches; raises ImportError that says how to get matplotlib."""
    # The figure module alone needs no display.
    module = require("matplotlib.figure", purpose=purpose, install="tilewright[plot]")
    return module.Figure(figsize=(width, height), layout="constrained")


def save(drawn: Any, path: str | os.PathLike[str]) -> None:
    """Writes a figure, in the format that the path ends with (png without an ending).

    The file appears whole or not at all. Raises ValueError for a format that matplotlib does not
    have, OSError where the file cannot be written.
    """
    ending = os.path.splitext(os.fspath(path))[1][1:].lower() or "png"
    content = BytesIO()
    drawn.savefig(content, format=ending, dpi=_DPI)
    write_whole(path, content.getvalue(), "picture")


def plain(axes: Any) -> Any:
    """An axes object without the lines that carry nothing, with a faint grid; gives it back."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=GRID)
    axes.set_axisbelow(True)
    return axes


def title(axes: Any, text: str, below: str = "") -> None:
    """A title on the left, with a smaller line of facts below it."""
    axes.set_title(text, loc="left", fontweight="bold", pad=22 if below else 8)
    if below:
        axes.annotate(
            below, (0, 1), (0, 7), xycoords="axes fraction", textcoords="offset points",
            fontsize=9, color=GREY,
        )  # fmt: skip


def in_units(axis: Any, unit: str = "") -> None:
    """Ticks such as 150 k or 20 ms in place of 1.5e5 and 0.02."""
    ticker = require("matplotlib.ticker", purpose="the picture", install="tilewright[plot]")
    axis.set_major_formatter(ticker.EngFormatter(unit))
    axis.set_minor_formatter(ticker.NullFormatter())


def whole_numbers(axis: Any) -> None:
    """Ticks at whole numbers only."""
    ticker = require("matplotlib.ticker", purpose="the picture", install="tilewright[plot]")
    axis.set_major_locator(ticker.MaxNLocator(integer=True, min_n_ticks=1, steps=(1, 2, 5, 10)))


def written_as(axis: Any, write: Callable[[float], str]) -> None:
    """Ticks written by a function of their value."""
    axis.set_major_formatter(lambda value, _: write(value))


def time_scale(seconds: float) -> tuple[float, str]:
    """Units a second, and the unit's name, in which a span of time has a number of few digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return 1 / scale, unit
    return 1e9, "ns"


def byte_scale(count: float) -> tuple[float, str]:
    """Bytes a unit, and the unit's name, in which a number of bytes has few digits."""
    for unit, scale in (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10)):
        if count >= scale:
            return scale, unit
    return 1.0, "bytes"
