"""The roofline: each op as a point under what this machine's arithmetic and memory allow.

Source: Williams, Waterman and Patterson, Roofline, CACM 52(4), 2009.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from tilewright._report import figures
from tilewright._report.text import time_text

_GIGA = 1e9
_MOST_COLOURS = len(figures.COLOURS) - 2
# Room around the points, and how far the roofs reach to both sides of their ridge.
_MARGIN = 2.0
_REACH = 8.0


@dataclass(frozen=True)
class Work:
    """What the calls of one op on one problem by one kernel did; rates are their mean."""

    op: str
    kernel: str
    problem: str
    calls: int
    ns: float
    flops: float
    bytes: float

    @property
    def intensity(self) -> float:
        """FLOP for each byte that has to move."""
        return self.flops / self.bytes

    @property
    def gflops(self) -> float:
        """10^9 FLOP a second."""
        return self.flops / self.ns

    def __str__(self) -> str:
        times = f"{self.calls:,} calls, {time_text(self.ns)}"
        rates = f"{self.gflops:.3g} GFLOP/s, {self.intensity:.3g} FLOP/byte"
        return f"{self.op} {self.problem} ({self.kernel}): {rates}; {times}"


def work_of(ops: Iterable[Mapping[str, Any]]) -> list[Work]:
    """Those that compute something, on the CPU; the peaks are this processor's."""
    sums: dict[tuple[str, str, str], list[float]] = {}
    for op in ops:
        if op["device"] == "cpu" and op["ns"] and op["flops"] and op["bytes"]:
            total = sums.setdefault((op["op"], op["kernel"], op["problem"]), [0, 0.0, 0.0, 0.0])
            for i, amount in enumerate((1, op["ns"], op["flops"], op["bytes"])):
                total[i] += amount
    return [
        Work(*names, int(calls), ns, flops, size)
        for names, (calls, ns, flops, size) in sums.items()
    ]


def roofs(work: Iterable[Work]) -> dict[str, list[tuple[float, float]]]:
    """Lines by name, in FLOP a byte and GFLOP a second: the arithmetic of each type, then levels of
    memory up to the highest of those.
    """
    # Loaded here: a report that nobody reads needs no measurement.
    from tilewright._inspect import machine_peaks  # noqa: PLC0415  (imported on use)

    work = list(work)
    best: dict[str, float] = {}
    for each in work:
        dtype = "float64" if each.problem.startswith("float64") else "float32"
        reached = each.gflops if machine_peaks.does_all_work(each.op, each.kernel) else 0.0
        best[dtype] = max(best.get(dtype, 0.0), reached)
    tops = {
        # A peak that was measured beside other work can be less than what an op reached here.
        dtype: max(machine_peaks.quick_peaks(dtype).flops_per_s / _GIGA, best[dtype])
        for dtype in sorted(best)
    }
    levels = machine_peaks.quick_peaks().levels
    top, slowest = max(tops.values()), levels[-1].bytes_per_s / _GIGA
    at = [each.intensity for each in work]
    low, high = min(*at, top / slowest / _REACH), max(*at, top / slowest * _REACH)
    low, high = low / _MARGIN, high * _MARGIN
    lines = {
        f"{dtype}: {compute:.3g} GFLOP/s": [(low, compute), (high, compute)]
        for dtype, compute in tops.items()
    }
    for level in levels:
        rate = level.bytes_per_s / _GIGA
        lines[f"{level.name}: {rate:.3g} GB/s"] = [(low, low * rate), (top / rate, top)]
    return lines


def figure(ops: Iterable[Mapping[str, Any]], title: str) -> Any:
    """The picture, a matplotlib figure; ops that take the most time have colours of their own."""
    work = work_of(ops)
    drawn = figures.figure(9, 5.5, "the picture")
    axes = figures.plain(drawn.subplots())
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("FLOP a byte")
    axes.set_ylabel("GFLOP a second")
    if not work:
        figures.title(axes, title, "no op that computes ran on the CPU")
        return drawn
    for (name, line), style in zip(
        roofs(work).items(), cycle(("-", "--", "-.", ":")), strict=False
    ):
        xs, ys = zip(*line, strict=True)
        axes.plot(xs, ys, style, color="black", linewidth=1, label=name)
    taken: dict[str, float] = {}
    for each in work:
        taken[each.op] = taken.get(each.op, 0.0) + each.ns
    largest = sorted(taken, key=lambda op: -taken[op])
    named, rest = largest[:_MOST_COLOURS], largest[_MOST_COLOURS:]
    groups = [*((op, {op}) for op in named), *([("others", set(rest))] if rest else [])]
    for (name, held), colour in zip(groups, figures.COLOURS[1:], strict=False):
        shown = [each for each in work if each.op in held]
        axes.scatter(
            [each.intensity for each in shown],
            [each.gflops for each in shown],
            s=[_area(each.ns, sum(taken.values())) for each in shown],
            color=figures.COLOURS[0] if name == "others" else colour,
            alpha=0.8,
            linewidth=0.5,
            edgecolor="white",
            label=name,
            zorder=3,
        )
    for axis in (axes.xaxis, axes.yaxis):
        figures.written_as(axis, lambda value: f"{value:g}")
    key = drawn.legend(frameon=False, loc="outside right upper", fontsize=8)
    for handle in key.legend_handles[len(axes.lines) :]:
        handle.set_sizes([30])
    figures.title(axes, title, "the area of a point is its share of the time")
    return drawn


def _area(ns: float, total_ns: float) -> float:
    """In square points: small ones can still be seen."""
    return 14 + 500 * ns / total_ns
