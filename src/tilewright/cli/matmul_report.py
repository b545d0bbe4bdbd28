"""Rows and tables of `tilewright bench matmul`: a row is what JSON has and pictures show."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tilewright.bench.harness import OURS, Result
from tilewright.bench.matmul import thread_label
from tilewright.bench.shapes import Shape
from tilewright.bench.validation import FAILING, PASSED, Check
from tilewright.cli.console import format_number, format_seconds

Row = dict[str, Any]
Table = tuple[str, list[str], list[list[str]]]
# How a table calls a contender.
Label = Callable[[str], str]
_LOST = 0.95


def verdict(check: Check) -> str:
    """What became of a contender that was not timed."""
    status = check.status.upper() if check.status == FAILING else check.status
    return f"{check.contender} {status}: {check.reason}"


def progress(result: Result) -> str:
    """A finished case in short: ours beside the best of the others."""
    if OURS not in result.timings:
        return "the engine's choice was not timed"
    seconds = format_seconds(result.timings[OURS].median_s)
    ours = f"{seconds}, {format_number(result.rate(OURS))} GFLOP/s"
    return ours if result.best_peer is None else f"{ours}, {result.ratio:.2f}x {result.best_peer}"


def rates(result: Result) -> str:
    """A finished case in short: everybody's rate."""
    return ", ".join(
        f"{name} {format_number(result.rate(name))} GFLOP/s" for name in result.timings
    )


def facts(report: Mapping[str, Any]) -> dict[str, Any]:
    """What pictures say of the conditions."""
    machine = report["machine"]
    threads = machine["threads"]
    peers = {kernel["peer"]: kernel for kernel in reversed(machine.get("kernels", ()))}
    beside = ", ".join(
        f"{name} {kernel['runs']}" for name, kernel in peers.items() if kernel["isa"]
    )
    return {
        "dtype": report["dtype"],
        "peak_gflops": 1e-9 * report["peak_flops_per_s"],
        "conditions": f"{report['dtype']}, {machine['isa']}, "
        f"{threads} thread{'' if threads == 1 else 's'}" + (f"; peers: {beside}" if beside else ""),
    }


def ladder_rows(
    checks: Iterable[Check],
    results: Iterable[Result],
    chosen: Mapping[str, str],
    peak: float,
) -> list[Row]:
    """A row for each rung and size, timed or not."""
    of = {result.name: result for result in results}
    return [_rung_row(check, of.get(check.name), chosen[check.name], peak) for check in checks]


def _rung_row(check: Check, result: Result | None, chosen: str, peak: float) -> Row:
    sizes = check.name.partition(" ")[0].split("x")
    row: Row = {
        "m": int(sizes[0]),
        "rung": check.contender,
        **check.as_dict(),
        "chosen": check.contender == chosen,
        "winner": False,
        **dict.fromkeys(("median_s", "p95_s", "gflops", "peak_share")),
    }
    if result is None or check.contender not in result.timings:
        return row
    timing, rate = result.timings[check.contender], result.rate(check.contender)
    return row | {
        "winner": check.contender == result.best_peer,
        "median_s": timing.median_s,
        "p95_s": timing.p95_s,
        "gflops": rate,
        "peak_share": 1e9 * rate / peak,
    }


def ladder_tables(rows: Iterable[Row], dtype: str) -> Iterator[Table]:
    """A table for each size."""
    columns = ["rung", "median", "p95", "GFLOP/s", "peak", "error", ""]
    of_size: dict[int, list[list[str]]] = {}
    for row in rows:
        of_size.setdefault(row["m"], []).append(_rung_cells(row))
    for n, cells in of_size.items():
        yield f"ladder, {n} x {n} x {n}, {dtype}; error: rms against float64", columns, cells


def _rung_cells(row: Row) -> list[str]:
    timed = ["-"] * 4
    if row["gflops"] is not None:
        timed = [
            format_seconds(row["median_s"]),
            format_seconds(row["p95_s"]),
            format_number(row["gflops"]),
            _share(row),
        ]
    return [row["rung"], *timed, _error(row["error_rms"]), _remark(row)]


def _remark(row: Row) -> str:
    if row["status"] != PASSED:
        status = row["status"].upper() if row["status"] == FAILING else row["status"]
        return f"{status}: {row['reason']}"
    marks = [row["precision"]] if row["precision"] != "ieee" else []
    return ", ".join(marks + ["fastest"] * row["winner"] + ["chosen"] * row["chosen"])


def shape_rows(
    shapes: Iterable[Shape], checks: Iterable[Check], results: Iterable[Result], peak: float
) -> list[Row]:
    """A row for each shape: sizes, our kernel, timings, rates, ratios and errors by contender."""
    of_name = {result.name: result for result in results}
    of_shape: dict[str, list[Check]] = {}
    for check in checks:
        of_shape.setdefault(check.name, []).append(check)
    return [
        _shape_row(shape, of_shape[shape.name], of_name.get(shape.name), peak) for shape in shapes
    ]


def _shape_row(shape: Shape, checks: list[Check], result: Result | None, peak: float) -> Row:
    row: Row = {
        "name": shape.name,
        **asdict(shape),
        "kernel": next(check.kernel for check in checks if check.contender == OURS),
        "errors": {check.contender: check.error.rms for check in checks if check.error},
        "not_timed": [verdict(check) for check in checks if check.status != PASSED],
        "timings": {},
        "gflops": {},
        "ratios": {},
        "peak_share": None,
    }
    if result is None:
        return row
    rates = {name: result.rate(name) for name in result.timings}
    return row | {
        **result.as_dict(),
        "gflops": rates,
        "ratios": result.ratios,
        "peak_share": 1e9 * rates[OURS] / peak,
    }


def size_table(rows: Sequence[Row], dtype: str, peers: Sequence[str], label: Label = str) -> Table:
    """Squares against the peers."""
    labels = [label(peer) for peer in peers]
    columns = ["n", OURS, *labels, "peak", *(f"/ {peer}" for peer in labels)]
    cells = []
    for row in rows:
        rates = [_rate(row, name) for name in (OURS, *peers)]
        ratios = [_ratio(row, peer) for peer in peers]
        cells.append([str(row["m"]), *rates, _share(row), *ratios])
    title = f"squares, {dtype}: GFLOP/s, our share of the peak, a peer's time over ours"
    return title, *_with_kernel_and_remark(columns, cells, rows)


def _with_kernel_and_remark(
    columns: list[str], cells: list[list[str]], rows: Sequence[Row]
) -> tuple[list[str], list[list[str]]]:
    """The remark says what was not timed: a column only where there is such a thing."""
    remarked = any(row["not_timed"] for row in rows)
    ends = [[row["kernel"], *["; ".join(row["not_timed"])] * remarked] for row in rows]
    lines = [line + end for line, end in zip(cells, ends, strict=True)]
    return [*columns, "kernel", *["not timed"] * remarked], lines


def worst_first(rows: Iterable[Row]) -> list[Row]:
    """By the ratio to the best peer; what was not compared comes first of all."""
    return sorted(rows, key=lambda row: min(row["ratios"].values(), default=0.0))


def map_table(rows: Sequence[Row], dtype: str, peers: Sequence[str], label: Label = str) -> Table:
    """Shapes against the peers."""
    runs = max((len(row.get("runs", ())) for row in rows), default=0)
    columns = [
        "m x n x k",
        "median",
        "GFLOP/s",
        *(f"/ {label(peer)}" for peer in peers),
        *["all runs"] * (runs > 1),
    ]
    cells = [
        [
            row["name"],
            _median(row),
            _rate(row, OURS),
            *(_ratio(row, peer) for peer in peers),
            *[" ".join(f"{ratio:.2f}" for ratio in row.get("runs", ()))] * (runs > 1),
        ]
        for row in rows
    ]
    of_runs = f", the median of {runs} runs" if runs > 1 else ""
    title = f"shapes, {dtype}, worst first: a peer's time over ours{of_runs}"
    return title, *_with_kernel_and_remark(columns, cells, rows)


def map_summary(rows: Iterable[Row]) -> str:
    """How many shapes are lost, by how much, and which."""
    best = {row["name"]: min(row["ratios"].values()) for row in rows if row["ratios"]}
    if not best:
        return "no peer to compare with"
    ratios = best.values()
    mean = math.exp(sum(map(math.log, ratios)) / len(best))
    counts = (f"{sum(r < limit for r in ratios)} below {limit}" for limit in (1.0, _LOST, 0.8))
    worst = min(best, key=lambda name: best[name])
    text = f"{len(best)} shapes against the best peer: geometric mean {mean:.2f}x; "
    text += f"{', '.join(counts)}; worst {worst} {best[worst]:.2f}x"
    lost = [f"{name} {ratio:.2f}x" for name, ratio in best.items() if ratio < _LOST]
    return text + (f"\nbelow {_LOST}: {', '.join(lost)}" if lost else "")


def brief(report: Mapping[str, Any]) -> str:
    """JSON of a map with a line for each shape: short enough to be published."""
    facts = {name: report[name] for name in ("machine", "dtype", "runs", "peak_flops_per_s")}
    lines = [json.dumps(_brief_row(row)) for row in report["results"]]
    head = json.dumps(facts)[1:-1]
    return "{" + head + ', "shapes": [\n' + ",\n".join(lines) + "\n]}\n"


def _brief_row(row: Row) -> Row:
    kept = ("name", "m", "n", "k", "batch", "layout", "kernel")
    return {name: row[name] for name in kept} | {
        "median_us": {
            name: round(1e6 * timing["median_s"], 3) for name, timing in row["timings"].items()
        },
        "ratio": round(min(row["ratios"].values()), 3) if row["ratios"] else None,
        "runs": [round(ratio, 3) for ratio in row.get("runs", ())],
    }


def thread_rows(
    results: Iterable[Result], names: Sequence[str], counts: Sequence[int]
) -> list[Row]:
    """A row for each contender and number of threads."""
    rows: list[Row] = []
    for result in results:
        for name in names:
            alone = result.timings.get(thread_label(name, 1))
            for threads in counts:
                timing = result.timings.get(thread_label(name, threads))
                if timing is None:
                    continue
                row: Row = {"name": result.name, "contender": name, "threads": threads}
                row |= asdict(timing)
                row["gflops"] = result.work / timing.median_s
                row["speedup"] = alone.median_s / timing.median_s if alone else None
                rows.append(row)
    return rows


def thread_table(rows: Iterable[Row], dtype: str, n: int, label: Label = str) -> Table:
    """One contender after the other."""
    columns = ["contender", "threads", "median", "GFLOP/s", "/ 1 thread"]
    cells = [
        [
            label(row["contender"]),
            str(row["threads"]),
            format_seconds(row["median_s"]),
            format_number(row["gflops"]),
            f"{row['speedup']:.2f}x" if row["speedup"] else "-",
        ]
        for row in rows
    ]
    return f"threads, {n} x {n} x {n}, {dtype}", columns, cells


def _median(row: Row) -> str:
    timing = row["timings"].get(OURS)
    return "-" if timing is None else format_seconds(timing["median_s"])


def _rate(row: Row, name: str) -> str:
    rate = row["gflops"].get(name)
    return "-" if rate is None else format_number(rate)


def _share(row: Row) -> str:
    return "-" if row["peak_share"] is None else f"{row['peak_share']:.0%}"


def _ratio(row: Row, peer: str) -> str:
    ratio = row["ratios"].get(peer)
    return "-" if ratio is None else f"{ratio:.2f}x"


def _error(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"
