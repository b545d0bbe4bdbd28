"""The picture of `tilewright bench ops`: each op against the best peer."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from tilewright._report import figures
from tilewright.bench.harness import Result
from tilewright.bench.ops import DTYPES, LAYOUTS
from tilewright.cli.picture_ratios import draw_ratios, draw_scale

_ROW_INCHES, _COLUMN_INCHES, _LABEL_INCHES = 0.24, 0.62, 2.2


def draw_ops(path: str, results: Sequence[Result]) -> None:
    """Writes the picture."""
    figures.save(ops_figure(results), path)


def ops_figure(results: Sequence[Result]) -> Any:
    """The best peer's time over ours: a panel an element type, a row an op, with its gradient a
    row of its own; a column a size and layout.
    """
    cells: dict[str, dict[str, dict[str, float]]] = {}
    for result in results:
        dtype, row, column = _place(result.name)
        cells.setdefault(dtype, {}).setdefault(row, {})[column] = result.ratio
    columns = {
        dtype: sorted({c for values in rows.values() for c in values}, key=_column_order)
        for dtype, rows in cells.items()
    }
    deepest = max(len(rows) for rows in cells.values())
    widths = [_LABEL_INCHES + _COLUMN_INCHES * len(each) for each in columns.values()]
    figure = figures.figure(sum(widths) + 1.5, 2.0 + _ROW_INCHES * deepest)
    figure.suptitle("Ops against the best peer", fontweight="bold")
    panels = figure.subplots(1, len(cells), squeeze=False, width_ratios=widths)[0]
    image = None
    for axes, (dtype, rows) in zip(panels, cells.items(), strict=True):
        image = draw_ratios(
            axes,
            [[values.get(c, math.nan) for c in columns[dtype]] for values in rows.values()],
        )
        axes.set_aspect("auto")
        axes.set_title(dtype, loc="left", fontsize=11)
        axes.set_yticks(range(len(rows)), list(rows), fontsize=8)
        labels = [re.sub(r"\b(\d+)x\1\b", r"\1²", column) for column in columns[dtype]]
        axes.set_xticks(range(len(labels)), labels, fontsize=8, rotation=60, ha="left")
        axes.xaxis.tick_top()
        axes.tick_params(axis="x", pad=0)
    draw_scale(figure, image, panels)
    return figure


def _place(name: str) -> tuple[str, str, str]:
    """Element type, row and column of a case by its name."""
    words = name.split(" ")
    at = next(i for i, word in enumerate(words) if word in DTYPES)
    more = " +backward" if words[-1] == "+backward" else ""
    return words[at], " ".join(words[:at]) + more, " ".join(words[at + 1 : at + 3])


def _column_order(column: str) -> tuple[int, int]:
    size, layout = column.split(" ")
    return int(size.partition("x")[0]), LAYOUTS.index(layout)
