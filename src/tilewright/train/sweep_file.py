"""The file of a sweep: which configurations to train, checked when it is read, line by line."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright import train as job

_SWEEP_KEYS = ("data", "epochs")
_DATA = ("digits", "mnist")
# The file's word to the training's.
_OPTIONS = {
    "lr": "lr", "hidden": "hidden", "batch_size": "batch", "optimizer": "optimizer", "seed": "seed",
    "epochs": "epochs",
}  # fmt: skip
KEYS = tuple(_OPTIONS)

# Where something stands in the file: ("grid", "lr"), ("runs", 0, "lr"), ("grid", "lr", 2).
_Place = tuple[Any, ...]


@dataclass(frozen=True)
class Configuration:
    """One training of a sweep: the data's name and what differs from its default options."""

    data: str
    settings: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Names the result: equal for equal configurations, in whatever order they are written."""
        told = json.dumps({"data": self.data, **self.settings}, sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def options(self) -> job.Options:
        """The training's options; raises ValueError or TypeError for values that cannot be."""
        given = {_OPTIONS[key]: value for key, value in self.settings.items()}
        return replace(job.default_options(self.data), **given)


def read_configurations(path: str | os.PathLike[str]) -> list[Configuration]:
    """The configurations of a TOML or JSON file, each once, in the order of the file.

    `[sweep]` has `data` ("digits" or "mnist") and `epochs`; `[grid]` a list for each option, of
    which all combinations are trained; `[[runs]]` single ones. Raises ValueError, with file and
    line, for unknown keys and for values that no training can have, and for a file that holds no
    configuration.
    """
    file = _File(Path(path))
    file.check_keys(file.tables, ("sweep", "grid", "runs"), ())
    common = file.table("sweep")
    file.check_keys(common, _SWEEP_KEYS, ("sweep",))
    data = common.get("data", "digits")
    if data not in _DATA:
        raise file.error(("sweep", "data"), f"data is {' or '.join(_DATA)}, got {data!r}")
    shared = {"epochs": common["epochs"]} if "epochs" in common else {}
    if shared:
        file.check_value(("sweep", "epochs"), "epochs", shared["epochs"])
    found = [*_grid(file), *_runs(file)]
    configurations = [Configuration(data, {**shared, **settings}) for settings in found]
    if not configurations:
        raise ValueError(f"{path}: no configuration; write a [grid] or [[runs]]")
    return list({each.digest: each for each in configurations}.values())


class _File:
    """The parsed tables, and on which line each key stands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text(encoding="utf-8")
        is_json = path.suffix == ".json"
        try:
            tables = json.loads(text) if is_json else _toml().loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: {error}") from None
        if not isinstance(tables, dict):
            raise ValueError(f"{path}: expected tables, got {type(tables).__name__}")
        self.tables: dict[str, Any] = tables
        self._lines = dict(_json_lines(text) if is_json else _toml_lines(text))

    def error(self, place: _Place, text: str) -> ValueError:
        """What is wrong at a place: file, line where it is known, table, text."""
        line = next((self._lines[p] for p in _upwards(place) if p in self._lines), None)
        where = f"{self.path}:{line}" if line else f"{self.path}"
        name = "[[runs]]" if place[:1] == ("runs",) else f"[{place[0]}]" if len(place) > 1 else ""
        return ValueError(f"{where}: {name} {text}" if name else f"{where}: {text}")

    def table(self, name: str) -> dict[str, Any]:
        """A table of the file; empty where it is not there."""
        table = self.tables.get(name, {})
        if not isinstance(table, dict):
            raise self.error((name,), f"{name} must be a table, got {table!r}")
        return table

    def check_keys(self, table: Mapping[str, Any], known: tuple[str, ...], place: _Place) -> None:
        """Raises ValueError for the first key that means nothing here."""
        for key in table:
            if key not in known:
                name = (
                    "[[runs]]: " if place[:1] == ("runs",) else f"[{place[0]}]: " if place else ""
                )
                text = f"unknown key {key!r}; known: {', '.join(known)}"
                line = self._lines.get((*place, key))
                raise ValueError(f"{self.path}{f':{line}' if line else ''}: {name}{text}")

    def check_value(self, place: _Place, key: str, value: Any) -> None:
        """Raises ValueError where no training can have the value."""
        try:
            replace(job.Options(), **{_OPTIONS[key]: value})
        except (TypeError, ValueError) as error:
            # The command line's name of an option may be another than the file's.
            fact = str(error).removeprefix(f"train: {_OPTIONS[key]} ")
            raise self.error(place, f"{key}: {key} {fact}") from None


def _grid(file: _File) -> Iterator[dict[str, Any]]:
    table = file.table("grid")
    file.check_keys(table, KEYS, ("grid",))
    for key, values in table.items():
        if not isinstance(values, list):
            raise file.error(("grid", key), f"{key} must be a list of values, got {values!r}")
        if not values:
            raise file.error(("grid", key), f"{key} must have one value or more, got []")
        for i, value in enumerate(values):
            file.check_value(("grid", key, i), key, value)
    if table:
        for values in itertools.product(*table.values()):
            yield dict(zip(table, values, strict=True))


def _runs(file: _File) -> Iterator[dict[str, Any]]:
    runs = file.tables.get("runs", [])
    if not isinstance(runs, list) or not all(isinstance(run, dict) for run in runs):
        raise file.error(("runs",), "runs must be tables, each headed [[runs]]")
    for i, run in enumerate(runs):
        file.check_keys(run, KEYS, ("runs", i))
        for key, value in run.items():
            file.check_value(("runs", i, key), key, value)
        yield run


def _toml() -> Any:
    if sys.version_info < (3, 11):
        raise ImportError("reading TOML needs Python 3.11; write the configuration as .json")
    import tomllib  # noqa: PLC0415  (not there before Python 3.11)

    return tomllib


def _upwards(place: _Place) -> Iterator[_Place]:
    """The place itself, then what holds it."""
    for length in range(len(place), 0, -1):
        yield place[:length]


def _toml_lines(text: str) -> Iterator[tuple[_Place, int]]:
    """Places and their lines in valid TOML, for the forms that sweeps are written in: headers and
    one key a line. What is written otherwise is found by the line of what holds it.
    """
    table: _Place = ()
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*(\[\[?)\s*([\w-]+)\s*\]", line):
            name = header[2]
            table = (name,)
            if header[1] == "[[":
                table = (name, counts.get(name, 0))
                counts[name] = table[1] + 1
            yield table, number
        elif key := re.match(r"""\s*["']?([\w-]+)["']?\s*(?:\.\s*["']?([\w-]+)["']?\s*)?=""", line):
            yield (*table, *filter(None, key.groups())), number


def _json_lines(text: str) -> Iterator[tuple[_Place, int]]:
    """Places and their lines in valid JSON: keys of objects and elements of lists."""
    stack: list[Any] = []  # for each open object its key, None before one; for a list its index
    line, last = 1, 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[{}\[\],]|[^\s{}\[\],:"]+', text):
        line += text.count("\n", last, match.start())
        last = match.start()
        token = match[0]
        if token in "}]":
            stack.pop()
        elif token == ",":
            stack[-1] = None if isinstance(stack[-1], (str, type(None))) else stack[-1] + 1
        elif stack and stack[-1] is None:
            stack[-1] = json.loads(token)
            yield tuple(stack), line
            continue
        elif stack and isinstance(stack[-1], int):
            yield tuple(stack), line
        if token in "{[":
            stack.append(None if token == "{" else 0)
