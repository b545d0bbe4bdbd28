"""Saved results of benchmarks: files that tell what was measured, where and when, to compare with.

A file is JSON: what was measured, its conditions, and a row a case with the median time of a call
and where it lies. A name without a folder stands for a file of the user's cache folder.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from tilewright._engine.cache import cache_folder, make_folder
from tilewright.bench.conditions import conditions
from tilewright.bench.harness import OURS, Result, Timing
from tilewright.bench.intervals import Interval
from tilewright.io.atomic import write_whole

_FORMAT = "tilewright bench 1"
_ENDING = ".json"
# What figures must share to be comparable.
ALIKE = ("what", "processor", "isa", "threads")
# A process's layout in memory moves small calls by more than their samples spread, so a row is
# slower where its interval lies above 1 by more than this.
MARGIN = 0.05


@dataclass(frozen=True)
class Saved:
    """What a file holds. `place`: the file; `rows`: timings by the case's name."""

    place: str
    what: str
    conditions: Mapping[str, Any]
    rows: Mapping[str, Timing]

    @property
    def kind(self) -> tuple[Any, ...]:
        """What it must share with others."""
        return tuple(self.what if key == "what" else self.conditions.get(key) for key in ALIKE)

    @property
    def date(self) -> str:
        """Such as 2026-11-30T19:00:00Z, which sorts by time."""
        return str(self.conditions.get("date", ""))

    @property
    def text(self) -> str:
        """Name, version and date, in a line."""
        version = self.conditions.get("version", "unknown")
        return f"{Path(self.place).stem}: version {version}, {self.date}"


@dataclass(frozen=True)
class Change:
    """A case's time in two results; `ratio` is new over old, None where one of them lacks it."""

    name: str
    old: Timing | None
    new: Timing | None
    ratio: Interval | None
    missing: str = ""

    def verdict(self, margin: float) -> str:
        """ "slower" or "faster" beyond interval and margin, "same", or who lacks it."""
        if self.ratio is None:
            return self.missing or ("only new" if self.old is None else "only old")
        if self.ratio.low > 1 + margin:
            return "slower"
        return "faster" if self.ratio.high < 1 / (1 + margin) else "same"

    def as_dict(self, margin: float) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "verdict": self.verdict(margin)}


def folder() -> Path:
    """Where names without a folder lie."""
    return Path(cache_folder()) / "results"


def path_of(name: str) -> Path:
    """The file of a name; a path, or what ends in .json, is the file."""
    if os.sep in name or name.endswith(_ENDING):
        return Path(name)
    return folder() / (name + _ENDING)


def prepare(name: str) -> Path:
    """The same, with the folder of names made. Raises OSError where it cannot be."""
    path = path_of(name)
    if path.parent == folder():
        make_folder(os.fspath(path.parent))
    return path


def rows_of(results: Iterable[Result]) -> dict[str, Timing]:
    """Our timings of each case; where only kernels compete, each of them."""
    rows = {}
    for result in results:
        ours = [name for name in result.timings if name.partition(",")[0] == OURS]
        for name in ours or result.timings:
            row = result.name if name == OURS else f"{result.name}: {name}"
            rows[row] = result.timings[name]
    return rows


def save(path: Path, what: str, threads: int, rows: Mapping[str, Timing]) -> None:
    """Writes the file, whole or not at all. Raises OSError where it cannot be written."""
    content = {
        "format": _FORMAT,
        "what": what,
        **conditions(threads),
        "cases": [{"name": name, **asdict(timing)} for name, timing in rows.items()],
    }
    write_whole(path, (json.dumps(content, indent=1) + "\n").encode(), "--save")


def read(path: str | os.PathLike[str]) -> Saved:
    """Raises ValueError for a file of anything else, OSError where it cannot be read."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if content.pop("format") != _FORMAT:
            raise ValueError
        rows = {row.pop("name"): Timing(**row) for row in content.pop("cases")}
        return Saved(os.fspath(path), content.pop("what"), content, rows)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{os.fspath(path)}: no results that --save has written") from None


def read_folder(path: str | os.PathLike[str]) -> tuple[list[Saved], list[str]]:
    """All saved results of a folder by date, and names of JSON files that are none.

    Raises OSError where there is no such folder.
    """
    found, others = [], []
    for file in sorted(Path(path).iterdir()):
        if file.suffix != _ENDING:
            continue
        try:
            found.append(read(file))
        except ValueError:
            others.append(file.name)
    return sorted(found, key=lambda each: each.date), others


def unlike(old: Saved, new: Saved) -> list[str]:
    """In what two results differ that figures must share, such as "threads 1 and 2"."""
    pairs = zip(ALIKE, old.kind, new.kind, strict=True)
    return [f"{key} {before} and {after}" for key, before, after in pairs if before != after]


def changes(old: Saved, new: Saved) -> list[Change]:
    """Case by case, in the order of the new one."""
    names = dict.fromkeys([*new.rows, *old.rows])
    return [_change(name, old.rows.get(name), new.rows.get(name)) for name in names]


def _change(name: str, old: Timing | None, new: Timing | None) -> Change:
    if old is None or new is None:
        return Change(name, old, new, None)
    value = new.median_s / old.median_s
    low = new.low_s / old.high_s if new.low_s and old.high_s else value
    high = new.high_s / old.low_s if new.high_s and old.low_s else value
    return Change(name, old, new, Interval(value, low, high))


def mean_ratio(found: Sequence[Change]) -> float:
    """The geometric mean of all ratios; NaN without any."""
    ratios = [change.ratio.value for change in found if change.ratio]
    return geometric_mean(ratios) if ratios else math.nan
