"""Draws the pictures of docs/measured from the CSV files beside them.

    python tools/draw_measured.py [FOLDER]

A picture is at most 1000 pixels wide, so that a page shows it as it is.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright import pictures
from tilewright.bench.harness import Result
from tilewright.bench.points import read_points
from tilewright.bench.shapes import FULL

RECORDS = Path(__file__).parents[1] / "docs" / "measured"
_WIDTH_INCHES, _DPI = 9.0, 110
# What is lost by more than noise.
_LOST = 0.9
_TICKS = (0.25, 0.5, 1, 2, 5, 10, 20, 50)

_COMPARISONS = "equal not_equal less less_equal greater greater_equal isclose"
_MASKS = "isnan isinf isfinite signbit logical_not logical_and logical_or logical_xor where"
_ARITHMETIC = (
    "negative positive abs sign square reciprocal sqrt rsqrt add subtract multiply divide "
    "floor_divide remainder fmod maximum minimum copysign nextafter floor ceil trunc round clip "
    "lerp nan_to_num bitwise_and bitwise_or bitwise_xor bitwise_invert bitwise_left_shift "
    "bitwise_right_shift"
)
# The first word of a case's name, by family; whatever is named nowhere is a function.
_FAMILIES: dict[str, str] = {
    "arithmetic": _ARITHMETIC,
    "comparisons, masks": f"{_COMPARISONS} {_MASKS} mask",
    "reductions": "sum mean prod max min any all var norm nansum trapezoid rows",
    "positions": "argmax argmin",
    "softmax, logsumexp": "softmax log_softmax logsumexp",
    "running sums": "cumulative_sum cumulative_prod diff",
    "sorts": "sort argsort",
    "moving data": "flip concat stack contiguous tril triu roll tile",
}
_FUNCTIONS = "functions (exp, tanh, pow)"


def family_of(case: str) -> str:
    """The family of a case of `bench ops`."""
    word = case.partition(" ")[0]
    return next((name for name, words in _FAMILIES.items() if word in words.split()), _FUNCTIONS)


def kind_of_layer(case: str) -> str:
    """The kind of a case of `bench layers`, such as `conv 1x64x56x56 to 64, 3x3: forward`."""
    kernel = re.search(r", (\d+x\d+)", case)
    if "depthwise" in case or "groups" in case:
        return "depthwise"
    return kernel.group(1) if kernel else "1x1"


def draw_ops(folder: Path) -> None:
    """Every op, element type and layout by family, forward and with the gradient."""
    points = read_points(sorted(RECORDS.glob("ops_zen4_full_*.csv")))

    def group(result: Result) -> tuple[str, str]:
        gradient = result.name.endswith("+backward")
        return family_of(result.name), "with gradient" if gradient else "forward"

    order = ["arithmetic", _FUNCTIONS, *list(_FAMILIES)[1:]]
    _draw_spreads(
        folder / "ops_by_family.png",
        f"{len(points.results):,} points of ops against the best peer",
        "AMD Zen 4, one thread; four element types, up to 1024 x 1024, four layouts",
        _grouped(points.results, group),
        order,
    )


def draw_layers(folder: Path) -> None:
    """Convolutions of three networks by kind of layer, as installed and tuned."""
    points = read_points([RECORDS / "layers_zen4.csv"])
    groups = _grouped(points.results, lambda r: (_layer(r), "as installed"))
    groups |= _grouped(points.tuned.values(), lambda r: (_layer(r), "tuned"))
    order = list(dict.fromkeys(name for name, _ in groups))
    _draw_spreads(
        folder / "convolutions_by_kind.png",
        f"{len(points.results)} cases of convolutions against PyTorch",
        "AMD Zen 4, one thread, float32; ResNet-18, ResNet-50, MobileNetV2; 1, 8 and 32 images",
        groups,
        sorted(order),
    )


def _layer(result: Result) -> str:
    return f"{kind_of_layer(result.name)}, {result.name.rpartition(': ')[2]}"


def draw_products(folder: Path) -> None:
    """Each shape's ratio by the size of the product, on two processors."""
    flops = {shape.name: shape.flops for shape in FULL.shapes()}
    figure, axes = _figure(4.6)
    for record, label, colour, marker in (
        ("matmul_zen5", "AMD Zen 5", pictures.BLUE, "o"),
        ("matmul_intel", "Intel with AVX-512", pictures.ORANGE, "s"),
    ):
        results = read_points([RECORDS / f"{record}.csv"]).results
        axes.scatter(
            [flops[result.name] for result in results],
            [min(result.ratio, _TICKS[-1]) for result in results],
            s=16, color=colour, marker=marker, alpha=0.75, linewidths=0, label=label,
        )  # fmt: skip
    axes.set_xscale("log")
    pictures.in_units(axes.xaxis, "FLOP")
    axes.set_xlabel("size of the product (logarithmic)")
    _ratio_axis(axes.yaxis, 0.5, 50)
    axes.axhline(1, color="black", linewidth=1)
    axes.set_ylabel("best peer's time / ours")
    axes.legend(frameon=False, loc="upper right")
    title = "312 shapes of float32 products against the best peer"
    pictures.title(
        axes, title, "one thread, the median of three runs; above 1 Tilewright is faster"
    )
    figure.savefig(folder / "products_by_size.png", dpi=_DPI)


_Groups = dict[tuple[str, str], list[float]]


def _grouped(results: Any, group: Callable[[Result], tuple[str, str]]) -> _Groups:
    groups: _Groups = {}
    for result in results:
        groups.setdefault(group(result), []).append(result.ratio)
    return groups


def _draw_spreads(
    path: Path, title: str, below: str, groups: Mapping[tuple[str, str], list[float]],
    order: Sequence[str],
) -> None:  # fmt: skip
    """For each row and series: a line over nine tenths of the points, a bar over the middle half,
    a mark at the median, and each point that is lost.
    """
    series = list(dict.fromkeys(name for _, name in groups))
    figure, axes = _figure(1.6 + 0.42 * len(order))
    colours = dict(zip(series, (pictures.BLUE, pictures.GREEN), strict=False))
    for (row, name), ratios in groups.items():
        y = order.index(row) + (0.19 if series.index(name) else -0.19)
        ordered = sorted(ratios)
        ends = [_quantile(ordered, share) for share in (0.05, 0.25, 0.5, 0.75, 0.95)]
        axes.plot([ends[0], ends[4]], [y, y], color=colours[name], linewidth=1.2)
        axes.plot([ends[1], ends[3]], [y, y], color=colours[name], linewidth=6, alpha=0.45)
        axes.plot(ends[2], y, "o", color=colours[name], markersize=6)
        lost = [ratio for ratio in ordered if ratio < _LOST]
        axes.plot(lost, [y] * len(lost), "|", color=pictures.ORANGE, markersize=9)
    handles = [
        axes.plot([], [], "o-", color=colours[name], label=name)[0] for name in series
    ]  # one entry a series, however many rows it has
    handles += axes.plot([], [], "|", color=pictures.ORANGE, label=f"a point below {_LOST}")
    axes.set_yticks(range(len(order)), order)
    axes.set_ylim(len(order) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    _ratio_axis(axes.xaxis, 0.4, 60)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel(
        "best peer's time / ours (logarithmic): right of 1 Tilewright is faster\n"
        "dot: median; bar: middle half; line: nine tenths of the points"
    )
    figure.legend(handles=handles, frameon=False, loc="outside lower center", ncols=3)
    pictures.title(axes, title, below)
    figure.savefig(path, dpi=_DPI)


def _figure(height: float) -> tuple[Any, Any]:
    figure = pictures.figure(_WIDTH_INCHES, height)
    return figure, pictures.plain(figure.subplots())


def _ratio_axis(axis: Any, low: float, high: float) -> None:
    axis.axes.set(**{f"{axis.axis_name}scale": "log", f"{axis.axis_name}lim": (low, high)})
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axis.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Between neighbours on the scale of logarithms."""
    place = share * (len(ordered) - 1)
    low, part = int(place), place % 1
    high = min(low + 1, len(ordered) - 1)
    return math.exp((1 - part) * math.log(ordered[low]) + part * math.log(ordered[high]))


def main() -> None:
    """Draws all."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    for draw in (draw_ops, draw_layers, draw_products):
        draw(folder)


if __name__ == "__main__":
    main()
