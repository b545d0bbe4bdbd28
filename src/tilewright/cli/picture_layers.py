"""The picture of `tilewright bench layers`: all convolutions of three networks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright._report import figures
from tilewright.bench.harness import Result
from tilewright.bench.networks.convolution import PARTS, Layer, case_name, network_layers
from tilewright.cli.picture_ratios import draw_ratios, draw_scale

_ROW_INCHES, _COLUMN_INCHES, _LABEL_INCHES = 0.27, 0.62, 2.6
_SHORT = {"forward": "y", "input gradient": "dx", "weight gradient": "dw"}


def draw_layers(path: str, results: Sequence[Result], batches: Sequence[int]) -> None:
    """Writes the picture."""
    figures.save(layers_figure(results, batches), path)


def layers_figure(results: Sequence[Result], batches: Sequence[int]) -> Any:
    """The best peer's time over ours: a panel a network, a row a layer, a column a batch's part."""
    ratios = {result.name: result.ratio for result in results}
    layers = {name: len(rows) for name, rows in network_layers(batches[0]).items()}
    columns = [(batch, part) for batch in batches for part in PARTS]
    width = len(layers) * (_LABEL_INCHES + _COLUMN_INCHES * len(columns)) + 1.5
    figure = figures.figure(width, 1.6 + _ROW_INCHES * max(layers.values()))
    figure.suptitle("Convolutions against the best peer, float32", fontweight="bold")
    panels = figure.subplots(1, len(layers), squeeze=False)[0]
    image = None
    for axes, name in zip(panels, layers, strict=True):
        by_batch = [network_layers(batch)[name] for batch in batches]
        image = draw_ratios(
            axes,
            [
                [ratios.get(case_name(layer, part), math.nan) for layer in same for part in PARTS]
                for same in zip(*by_batch, strict=True)
            ],
        )
        axes.set_aspect("auto")
        axes.set_title(name, loc="left", fontsize=11)
        axes.set_yticks(range(layers[name]), [_label(layer) for layer in by_batch[0]], fontsize=8)
        axes.set_xticks(
            range(len(columns)),
            [
                f"{_SHORT[part]}\n{batch} image{'s' if batch > 1 else ''}"
                if part == PARTS[1]
                else _SHORT[part]
                for batch, part in columns
            ],
        )
    draw_scale(figure, image, panels)
    return figure


def _label(layer: Layer) -> str:
    """The layer without its batch."""
    return str(layer).partition("x")[2]
