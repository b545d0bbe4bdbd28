"""Rows and tables of `tilewright bench matmul`: a row is what JSON has and pictures show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tilewright.bench.harness import OURS, Result, Timing
from tilewright.bench.matmul import thread_label
from tilewright.bench.shapes import Shape, square
from tilewright.bench.validation import FAILING, PASSED, Check
from tilewright.cli.console import format_seconds, format_timing

Row = dict[str, Any]
Table = tuple[str, list[str], list[list[str]]]


def verdict(check: Check) -> str:
    """What became of a contender that was not timed."""
    status = check.status.upper() if check.status == FAILING else check.status
    return f"{check.contender} {status}: {check.reason}"


def progress(result: Result) -> str:
    """One line for a finished case: ours beside the best of the others."""
    if OURS not in result.timings:
        return f"{result.name}: the engine's choice was not timed"
    ours = f"{format_seconds(result.timings[OURS].median_s)}, {result.rate(OURS):,.4g} GFLOP/s"
    if result.best_peer is None:
        return f"{result.name}: {ours}"
    return f"{result.name}: {ours}, {result.ratio:.2f}x {result.best_peer}"


def rates(result: Result) -> str:
    """One line for a finished case: everybody's rate."""
    return ", ".join(f"{name} {result.rate(name):,.4g} GFLOP/s" for name in result.timings)


def facts(report: Mapping[str, Any]) -> dict[str, Any]:
    """What pictures say of the conditions."""
    machine = report["machine"]
    threads = machine["threads"]
    return {
        "dtype": report["dtype"],
        "peak_gflops": 1e-9 * report["peak_flops_per_s"],
        "conditions": f"{report['dtype']}, {machine['isa']}, "
        f"{threads} thread{'' if threads == 1 else 's'}",
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
    columns = ["rung", "class", "median", "p95", "GFLOP/s", "of peak", "error rms", "max", ""]
    of_size: dict[int, list[list[str]]] = {}
    for row in rows:
        of_size.setdefault(row["m"], []).append(_rung_cells(row))
    for n, cells in of_size.items():
        yield f"ladder, {n} x {n} x {n}, {dtype}", columns, cells


def _rung_cells(row: Row) -> list[str]:
    timed = ["-"] * 4
    if row["gflops"] is not None:
        timed = [
            format_seconds(row["median_s"]),
            format_seconds(row["p95_s"]),
            f"{row['gflops']:,.4g}",
            f"{row['peak_share']:.0%}",
        ]
    errors = [_error(row["error_rms"]), _error(row["error_max"])]
    return [row["rung"], row["precision"], *timed, *errors, _remark(row)]


def _remark(row: Row) -> str:
    if row["status"] != PASSED:
        status = row["status"].upper() if row["status"] == FAILING else row["status"]
        return f"{status}: {row['reason']}"
    marks = ["fastest"] * row["winner"] + ["engine's choice"] * row["chosen"]
    return ", ".join(marks)


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


def size_table(rows: Iterable[Row], dtype: str, peers: Sequence[str]) -> Table:
    """Squares against the peers."""
    names = [OURS, *peers]
    columns = ["n", *(f"{name} (p95)" for name in names), "GFLOP/s", "of peak"]
    columns += [f"/ {peer}" for peer in peers] + ["error rms", "best peer's", "kernel", ""]
    cells = []
    for row in rows:
        timings = [_timing(row, name) for name in names]
        share = "-" if row["peak_share"] is None else f"{row['peak_share']:.0%}"
        cells.append(
            [str(row["m"]), *timings, _rate(row), share]
            + [_ratio(row, peer) for peer in peers]
            + [_error(row["errors"].get(OURS)), _error(_least_error(row)), row["kernel"]]
            + ["; ".join(row["not_timed"])]
        )
    return f"squares, {dtype}: a peer's time over ours", columns, cells


def _least_error(row: Row) -> float | None:
    return min((error for name, error in row["errors"].items() if name != OURS), default=None)


def worst_first(rows: Iterable[Row]) -> list[Row]:
    """By the ratio to the best peer; what was not compared comes first of all."""
    return sorted(rows, key=lambda row: min(row["ratios"].values(), default=0.0))


def map_table(rows: Iterable[Row], dtype: str, peers: Sequence[str]) -> Table:
    """Shapes against the peers."""
    columns = ["m x n x k", "kernel", "median", "GFLOP/s", *(f"/ {peer}" for peer in peers), ""]
    cells = [
        [row["name"], row["kernel"], _median(row), _rate(row)]
        + [_ratio(row, peer) for peer in peers]
        + ["; ".join(row["not_timed"])]
        for row in rows
    ]
    return f"shapes, {dtype}, worst first: a peer's time over ours", columns, cells


def map_summary(rows: Iterable[Row]) -> str:
    """How many shapes are lost, and by how much."""
    best = [min(row["ratios"].values()) for row in rows if row["ratios"]]
    if not best:
        return "no peer to compare with"
    mean = math.exp(sum(map(math.log, best)) / len(best))
    lost = ", ".join(f"{sum(r < limit for r in best)} below {limit}" for limit in (1.0, 0.95, 0.8))
    return f"{len(best)} shapes against the best peer: geometric mean {mean:.2f}x; {lost}"


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


def thread_table(rows: Sequence[Row], dtype: str, n: int) -> Table:
    """Threads downwards, contenders to the right."""
    names = list(dict.fromkeys(row["contender"] for row in rows))
    at = {(row["contender"], row["threads"]): row for row in rows}
    columns = ["threads"]
    for name in names:
        columns += [f"{name}, GFLOP/s", "/ 1 thread"]
    cells = []
    for threads in sorted({row["threads"] for row in rows}):
        line = [str(threads)]
        for name in names:
            row = at.get((name, threads))
            speedup = row and row["speedup"]
            line.append(f"{row['gflops']:,.4g}" if row else "-")
            line.append(f"{speedup:.2f}x" if speedup else "-")
        cells.append(line)
    return f"threads, {square(n).name}, {dtype}", columns, cells


def _timing(row: Row, name: str) -> str:
    timing = row["timings"].get(name)
    return format_timing(Timing(**timing) if timing else None)


def _median(row: Row) -> str:
    timing = row["timings"].get(OURS)
    return "-" if timing is None else format_seconds(timing["median_s"])


def _rate(row: Row) -> str:
    return f"{row['gflops'][OURS]:,.4g}" if row["gflops"] else "-"


def _ratio(row: Row, peer: str) -> str:
    ratio = row["ratios"].get(peer)
    return "-" if ratio is None else f"{ratio:.2f}x"


def _error(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"
