"""Tables of ratios as pictures: a coloured cell each, losses in a frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright._engine.optional_packages import require

LOSS = "#a33b00"
# What is lost by more than the noise of a shared machine stands out.
CLEAR_LOSS = 0.95
# Red to blue, which those who see no green can tell apart as well; a factor of four is full colour.
_COLOUR_MAP, _FULL_COLOUR = "RdBu", 4.0


def draw_ratios(axes: Any, values: Sequence[Sequence[float]]) -> Any:
    """A cell for each ratio, row by row, NaN left empty; gives the image for `draw_scale`."""
    colours = require("matplotlib.colors", purpose="--plot", install="tilewright[plot]")
    norm = colours.LogNorm(1 / _FULL_COLOUR, _FULL_COLOUR)
    image = axes.imshow(values, cmap=_COLOUR_MAP, norm=norm)
    for y, line in enumerate(values):
        for x, value in enumerate(line):
            if not math.isnan(value):
                _draw_cell(axes, x, y, value)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image


def draw_scale(figure: Any, image: Any, panels: Any) -> None:
    """What the colours of the panels mean, on their right."""
    bar = figure.colorbar(image, ax=panels, shrink=0.8, extend="both", pad=0.02)
    ticks = [0.25, 0.5, 1, 2, 4]
    bar.set_ticks(ticks, labels=[f"{tick:g}x" for tick in ticks])
    bar.minorticks_off()
    bar.outline.set_visible(False)
    bar.set_label("best peer's time / ours: red is lost, blue is won")


def _draw_cell(axes: Any, x: int, y: int, value: float) -> None:
    strong = abs(math.log(value)) > 0.62 * math.log(_FULL_COLOUR)
    lost = value < CLEAR_LOSS
    axes.text(
        x,
        y,
        f"{value:.2f}" if value < 9.95 else f"{value:.0f}",
        ha="center",
        va="center",
        fontsize=9,
        color="white" if strong else "black",
        fontweight="bold" if lost else "normal",
    )
    if lost:
        patches = require("matplotlib.patches", purpose="--plot", install="tilewright[plot]")
        frame = patches.Rectangle((x - 0.46, y - 0.46), 0.92, 0.92)
        axes.add_patch(frame).set(fill=False, edgecolor=LOSS, linewidth=1.6)
