"""Measured points as CSV: a line a case, with the median time of each contender.

The first line is a comment that holds the conditions (machine, peers, threads) as JSON, the second
names the columns. Times are microseconds with four digits. Such a file is the record of a run:
small enough to be kept, and enough to print the tables and draw the pictures again.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.bench.harness import OURS, Result, Timing
from tilewright.io import write_whole

_DIGITS = 4
_UNIT = "_us"
_TUNED = "tuned_"
_CASE, _KERNEL, _RATIO, _RUNS = "case", "kernel", "ratio", "runs"


@dataclass
class Points:
    """What a file holds. `tuned`: the same cases with the other allocation, by name. `kernels`: of
    ours, by name, where they are known.
    """

    conditions: dict[str, Any]
    results: list[Result]
    tuned: dict[str, Result] = field(default_factory=dict)
    kernels: dict[str, str] = field(default_factory=dict)


def write_points(path: str | os.PathLike[str], points: Points) -> None:
    """Writes the file, whole or not at all. Raises OSError where it cannot be written."""
    names = list(dict.fromkeys(name for result in points.results for name in result.timings))
    several = any(len(result.runs) > 1 for result in points.results)
    columns = [
        _CASE,
        *[_KERNEL] * bool(points.kernels),
        *(name + _UNIT for name in names),
        _RATIO,
        *[_RUNS] * several,
        *(_TUNED + name + _UNIT for name in names if points.tuned),
        *[_TUNED + _RATIO] * bool(points.tuned),
    ]
    text = io.StringIO()
    text.write(f"# {json.dumps(points.conditions)}\n")
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for result in points.results:
        row = _cells(result) | {_CASE: result.name}
        if points.kernels:
            row[_KERNEL] = points.kernels.get(result.name, "")
        if several:
            row[_RUNS] = " ".join(_digits(ratio) for ratio in result.runs)
        if result.name in points.tuned:
            row |= {_TUNED + key: cell for key, cell in _cells(points.tuned[result.name]).items()}
        writer.writerow(row)
    write_whole(path, text.getvalue().encode(), "--csv")


def read_points(paths: Sequence[str | os.PathLike[str]]) -> Points:
    """Reads files of one comparison, such as one for each element type, one after the other.

    The conditions are those of the first. Raises ValueError for a file of anything else.
    """
    found = [_read(path) for path in paths]
    points = found[0]
    for more in found[1:]:
        points.results += more.results
        points.tuned |= more.tuned
        points.kernels |= more.kernels
    return points


def _read(path: str | os.PathLike[str]) -> Points:
    with open(path, encoding="utf-8", newline="") as file:
        head, rows = file.readline(), csv.DictReader(file)
        try:
            conditions = json.loads(head.removeprefix("# "))
        except ValueError:
            conditions = None
        if not isinstance(conditions, dict) or _CASE not in (rows.fieldnames or ()):
            raise ValueError(f"--from {os.fspath(path)}: not written by --csv")
        points = Points(conditions, [])
        for row in rows:
            try:
                _add(points, row)
            except (ValueError, TypeError):
                where = f"--from {os.fspath(path)}: line {rows.line_num + 1}"
                raise ValueError(f"{where} is no point") from None
    return points


def _add(points: Points, row: Mapping[str, str]) -> None:
    name = row[_CASE]
    runs = tuple(map(float, (row.get(_RUNS) or "").split()))
    points.results.append(_result(name, row, "", runs))
    if row.get(_TUNED + _RATIO):
        points.tuned[name] = _result(name, row, _TUNED)
    if row.get(_KERNEL):
        points.kernels[name] = row[_KERNEL]


def _result(name: str, row: Mapping[str, str], before: str, runs: tuple[float, ...] = ()) -> Result:
    timings = {
        column.removeprefix(before).removesuffix(_UNIT): Timing(1e-6 * float(cell), math.nan, 0)
        for column, cell in row.items()
        if cell and column.endswith(_UNIT) and column.startswith(_TUNED) == bool(before)
    }
    return Result(name, timings, 0.0, "", {}, runs)


def _cells(result: Result) -> dict[str, str]:
    times = {name + _UNIT: _digits(1e6 * t.median_s) for name, t in result.timings.items()}
    compared = OURS in result.timings and result.best_peer
    return times | {_RATIO: _digits(result.ratio) if compared else ""}


def _digits(value: float) -> str:
    text = f"{value:.{_DIGITS}g}"
    return f"{float(text):.0f}" if "e+" in text else text
