"""Pictures of `tilewright bench matmul`: the ladder, sizes, threads, and the maps of ratios."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.bench.harness import OURS
from tilewright.cli.console import format_number
from tilewright.cli.matmul_report import Row
from tilewright.cli.picture import pyplot
from tilewright.cli.picture_ratios import CLEAR_LOSS, LOSS, draw_ratios, draw_scale

Draw = Callable[[str, list[Row], Mapping[str, Any]], None]

# Of Okabe and Ito's palette, which people with any kind of colour vision can tell apart.
_COLOURS = {OURS: "#0072B2", "torch": "#D55E00", "numpy": "#009E73", "jax": "#CC79A7"}
_MARKERS = {OURS: "o", "torch": "s", "numpy": "^", "jax": "D"}
_OTHER = "#8a8f98"
_FAINT = "#c9ccd1"
_DPI = 150
_GRID = "#eceef0"
_PEAK = {"color": "black", "linewidth": 1, "linestyle": "--"}
_SMALL = {"fontsize": 9, "color": "#555555"}
# Ratios beyond these stand at the edge, so that one disturbed peer does not flatten the others.
_RATIO_LIMITS = (0.05, 20.0)
_LINE_POINTS = 13.0  # a line of text
_Label = tuple[float, str, str]


def path_of(plot: str, part: str) -> str:
    """The picture of a part: matmul.png gives matmul-ladder.png."""
    stem, dot, ending = plot.rpartition(".")
    return f"{stem}-{part}{dot}{ending}" if dot else plot


def draw_ladder(path: str, rows: list[Row], facts: Mapping[str, Any]) -> None:
    """Bars of one size's rungs, their rates on a logarithmic axis."""
    figure, axes = _figure(8, 1.6 + 0.46 * len(rows))
    rates = [row["gflops"] for row in rows]
    low, high = min(rates), max([*rates, facts["peak_gflops"]])
    start = 10 ** math.floor(math.log10(low) - 0.3)
    first = rows[0]
    for y, row in enumerate(rows):
        colour = _COLOURS[OURS] if row["chosen"] else _OTHER
        axes.barh(y, row["gflops"] - start, left=start, height=0.66, color=colour)
        times = f"  {format_number(row['gflops'] / first['gflops'])}x {first['rung']}" if y else ""
        note = "  engine's choice" if row["chosen"] else ""
        axes.annotate(
            f"{format_number(row['gflops'])}{times}{note}",
            (row["gflops"], y),
            (5, 0),
            textcoords="offset points",
            va="center",
            color=colour if row["chosen"] else "black",
            fontweight="bold" if row["chosen"] else "normal",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )
    labels = [
        row["rung"] if row["precision"] == "ieee" else f"{row['rung']} ({row['precision']})"
        for row in rows
    ]
    axes.set_yticks(range(len(rows)), labels)
    axes.set_xscale("log")
    axes.set_xlim(start, high * (high / start) ** 0.45)
    axes.invert_yaxis()
    axes.axvline(facts["peak_gflops"], **_PEAK)
    axes.annotate(
        f"peak {format_number(facts['peak_gflops'])}",
        (facts["peak_gflops"], 1.0),
        (0, 3),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="center",
        fontsize=9,
    )
    axes.xaxis.set_major_formatter(lambda rate, _: f"{rate:,g}")
    axes.set_xlabel("GFLOP/s (logarithmic)")
    n = rows[0]["m"]
    _title(figure, f"The matmul ladder at {n} x {n} x {n}", facts)
    _save(figure, path)


def draw_sizes(path: str, rows: list[Row], facts: Mapping[str, Any]) -> None:
    """Rates against size below the peak; underneath, each peer's time over ours."""
    names = _names(rows)
    peers = [name for name in names if name != OURS]
    panels = 2 if peers else 1
    figure = pyplot().Figure(figsize=(8.5, 2.5 + 2.5 * panels), layout="constrained")
    axes = list(
        figure.subplots(panels, 1, sharex=True, squeeze=False, height_ratios=(3, 2)[:panels]).flat
    )
    sizes = [row["m"] for row in rows]
    labels = [_lines(axes[0], rows, sizes, names, lambda row, name: row["gflops"].get(name))]
    _draw_peak(axes[0], rows, facts)
    axes[0].set_ylabel("GFLOP/s")
    if peers:
        labels.append(
            _lines(axes[1], rows, sizes, peers, lambda row, name: row["ratios"].get(name))
        )
        _, high = _ratio_axis(axes[1].yaxis, rows)
        for row in rows:
            for name, ratio in row["ratios"].items():
                if ratio > high:
                    _mark_beyond(axes[1], row["m"], high, f"{ratio:,.0f}x", _colour(name))
        axes[1].axhline(1.0, color="black", linewidth=1)
        axes[1].set_ylabel("peer's time / ours")
        axes[1].set_title("above 1 Tilewright is faster", loc="left", **_SMALL)
    axes[-1].set_xticks(sizes, [str(n) for n in sizes])
    axes[-1].minorticks_off()
    axes[-1].set_xlabel("n of an n x n x n product (logarithmic)")
    _title(figure, "Matrix products against size", facts)
    figure.draw_without_rendering()  # places of labels need the final axes
    for each, of_axes in zip(axes, labels, strict=True):
        _end_labels(each, sizes[-1], of_axes)
    _save(figure, path)


def _draw_peak(axes: Any, rows: Sequence[Row], facts: Mapping[str, Any]) -> None:
    peak = facts["peak_gflops"]
    axes.axhline(peak, **_PEAK)
    axes.annotate(
        f"peak {format_number(peak)}: our best product",
        (0.0, peak),
        (4, 4),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        fontsize=9,
    )
    axes.set_ylim(0, 1.12 * max([peak, *(rate for row in rows for rate in row["gflops"].values())]))


def draw_threads(path: str, rows: list[Row], facts: Mapping[str, Any]) -> None:
    """Speed relative to one thread, beside the ideal."""
    figure, axes = _figure(7, 5)
    counts = sorted({row["threads"] for row in rows})
    axes.plot(counts, counts, color=_FAINT, linestyle="--", linewidth=1.5)
    labels: list[_Label] = [(float(counts[-1]), "ideal", _OTHER)]
    for name in dict.fromkeys(row["contender"] for row in rows):
        own = [row for row in rows if row["contender"] == name and row["speedup"]]
        if not own:
            continue
        axes.plot([row["threads"] for row in own], [row["speedup"] for row in own], **_style(name))
        text = f"{name} {own[-1]['speedup']:.2f}x, {format_number(own[-1]['gflops'])} GFLOP/s"
        labels.append((own[-1]["speedup"], text, _colour(name)))
    axes.set_xticks(counts)
    axes.set_ylim(0, None)
    axes.set_xlabel("threads")
    axes.set_ylabel("speed, relative to one thread")
    axes.grid(axis="y", color=_GRID)
    _title(figure, f"{rows[0]['name'].partition(' ')[0]} on 1 to {counts[-1]} threads", facts)
    figure.draw_without_rendering()
    _end_labels(axes, counts[-1], labels)
    _save(figure, path)


def draw_map(path: str, rows: list[Row], facts: Mapping[str, Any]) -> None:
    """The best peer's time over ours, by m and n, a panel for each k."""
    depths = sorted({row["k"] for row in rows})
    sides = sorted({row["m"] for row in rows} | {row["n"] for row in rows})
    cell = 0.62
    width = min(len(depths), 3)
    height = -(-len(depths) // width)
    side = cell * len(sides) + 0.6
    figure = pyplot().Figure(
        figsize=(max(7.0, width * side + 1.6), height * (side + 0.4) + 0.6), layout="constrained"
    )
    panels = figure.subplots(height, width, squeeze=False)
    image = None
    for axes, k in zip(panels.flat, depths, strict=False):
        at = {(r["m"], r["n"]): min(r["ratios"].values()) for r in rows if r["k"] == k}
        image = draw_ratios(axes, [[at.get((m, n), math.nan) for n in sides] for m in sides])
        axes.set_title(f"k = {k}", fontsize=10)
        axes.set_xticks(range(len(sides)), [str(n) for n in sides])
        axes.set_yticks(range(len(sides)), [str(m) for m in sides])
        axes.set_xlabel("n")
        axes.set_ylabel("m")
    for axes in list(panels.flat)[len(depths) :]:
        axes.set_visible(False)
    draw_scale(figure, image, panels)
    _title(figure, "Matrix products of m x k by k x n against the best peer", facts)
    _save(figure, path)


def draw_shapes(path: str, rows: list[Row], facts: Mapping[str, Any]) -> None:
    """A line for each shape with a mark for each peer's time over ours, the worst on top."""
    peers = [name for name in _names(rows) if name in {p for row in rows for p in row["ratios"]}]
    figure, axes = _figure(8.5, 2.0 + 0.27 * len(rows))
    low, high = _ratio_axis(axes.xaxis, rows)
    for y, row in enumerate(rows):
        worst = min(row["ratios"].values())
        axes.plot(
            [min(worst, high), 1.0],
            [y, y],
            color=LOSS if worst < 1 else _FAINT,
            linewidth=1.5,
            zorder=1,
        )
        axes.annotate(
            f"{worst:.2f}",
            (1.01, y),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8.5,
            color=LOSS if worst < 1 else "black",
            fontweight="bold" if worst < CLEAR_LOSS else "normal",
            annotation_clip=False,
        )
    for name in peers:
        points = [(row["ratios"][name], y) for y, row in enumerate(rows) if name in row["ratios"]]
        axes.scatter(
            [min(max(x, low), high) for x, _ in points],
            [y for _, y in points],
            color=_colour(name),
            marker=_MARKERS.get(name, "o"),
            s=34,
            label=name,
            zorder=2,
            clip_on=False,
        )
    axes.axvline(1.0, color="black", linewidth=1, zorder=1)
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows], fontsize=8.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=_GRID)
    axes.set_axisbelow(True)
    axes.set_xlabel("peer's time / ours (logarithmic): right of 1 Tilewright is faster")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False, handletextpad=0)
    _title(
        figure,
        "Products of other shapes, m x n x k, against the peers",
        facts,
        "n rows in order, t transposed, p part of wider rows, s every other column",
    )
    _save(figure, path)


def _names(rows: Sequence[Row]) -> list[str]:
    """Contenders in the order in which they appear."""
    return list(dict.fromkeys(name for row in rows for name in row["gflops"]))


def _lines(
    axes: Any,
    rows: Sequence[Row],
    x: Sequence[int],
    names: Sequence[str],
    value_of: Callable[[Row, str], float | None],
) -> list[_Label]:
    """Draws a line for each contender; gives the names for their ends."""
    axes.set_xscale("log", base=2)
    labels = []
    for name in names:
        values = [value_of(row, name) for row in rows]
        points = [(n, value) for n, value in zip(x, values, strict=True) if value is not None]
        axes.plot([n for n, _ in points], [value for _, value in points], **_style(name))
        labels.append((points[-1][1], name, _colour(name)))
    axes.grid(axis="y", color=_GRID)
    return labels


def _end_labels(axes: Any, x: float, labels: Sequence[_Label]) -> None:
    """Names at the ends of lines, moved apart where they would cover each other."""
    points = 72 / axes.figure.dpi
    moved, below = [], -math.inf
    for value, text, colour in sorted(labels):
        at = axes.transData.transform((x, value))[1] * points
        below = max(at, below + _LINE_POINTS)
        moved.append((value, text, colour, below - at))
    # Half of the largest move is taken back by all, so that none is far from its line.
    back = max((up for *_, up in moved), default=0.0) / 2
    for value, text, colour, up in moved:
        axes.annotate(
            text,
            (x, value),
            (9, up - back),
            textcoords="offset points",
            va="center",
            color=colour,
            fontweight="bold" if text.startswith(OURS) else "normal",
            annotation_clip=False,
        )


def _mark_beyond(axes: Any, x: float, edge: float, text: str, colour: str) -> None:
    axes.annotate(
        text,
        (x, edge),
        (6, -1),
        textcoords="offset points",
        va="top",
        fontsize=8.5,
        color=colour,
    )


def _ratio_axis(axis: Any, rows: Sequence[Row]) -> tuple[float, float]:
    """A logarithmic axis about 1 whose ticks are ratios people think in; gives its ends."""
    values = [min(max(v, _RATIO_LIMITS[0]), _RATIO_LIMITS[1]) for v in _ratios(rows)]
    low, high = min([*values, 0.9]) / 1.06, max([*values, 1.1]) * 1.06
    axis.axes.set(**{f"{axis.axis_name}scale": "log", f"{axis.axis_name}lim": (low, high)})
    ticks = [step * 10.0**power for power in (-2, -1, 0, 1) for step in (1, 2, 5)]
    if high / low < 4:
        ticks += [0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 1.5]
    ticks = sorted(tick for tick in ticks if low <= tick <= high)
    axis.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)
    return low, high


def _ratios(rows: Sequence[Row]) -> list[float]:
    return [value for row in rows for value in row["ratios"].values()]


def _style(name: str) -> dict[str, Any]:
    ours = name == OURS
    return {
        "color": _colour(name),
        "marker": _MARKERS.get(name, "o"),
        "markersize": 5,
        "linewidth": 2.4 if ours else 1.6,
        "zorder": 3 if ours else 2,
    }


def _colour(name: str) -> str:
    return _COLOURS.get(name, _OTHER)


def _figure(width: float, height: float) -> tuple[Any, Any]:
    figure = pyplot().Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _title(figure: Any, text: str, facts: Mapping[str, Any], more: str = "") -> None:
    """The title in bold; the conditions in small print at the foot."""
    below = "; ".join(part for part in (facts["conditions"], more) if part)
    figure.suptitle(text, ha="left", fontsize=13, fontweight="bold")
    figure.supxlabel(below, ha="left", **_SMALL)


def _save(figure: Any, path: str) -> None:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.set_dpi(_DPI)  # the layout depends on it
    # Title and conditions begin where the axes do, which the layout finds in two steps.
    for _ in range(2):
        figure.draw_without_rendering()
        start = figure.axes[0].get_position().x0
        for text in (figure._suptitle, figure._supxlabel):
            text.set_x(start)
    figure.savefig(path, dpi=_DPI)
