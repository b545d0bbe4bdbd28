"""Reads CSV files: columns of numbers as tensors, columns of texts as lists.

Source of the format: RFC 4180, as Python's csv module reads it.
"""

from __future__ import annotations

import array
import csv
import io
import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import tilewright as tw
from tilewright import Tensor
from tilewright.data.compressed import GZIP_MAGIC, Bound, BoundedReader, damage_told

_LONGEST_CELL = 2**31 - 1  # what a C long holds on every system
_BOOLS = {"0": 0, "1": 1, "false": 0, "true": 1}
_Name = str | int


class _Kind(NamedTuple):
    """How the cells of a column are read, and in which array they wait: 'd', 'q', 'Q', 'B'."""

    read: Callable[[str], Any]
    code: str
    told: str


def read_csv(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str | int] | None = None,
    dtype: Any = None,
    header: bool = True,
    delimiter: str = ",",
    missing: float | None = None,
    max_bytes: int | None = None,
) -> dict[Any, Any]:
    """The columns of a file by name; without `header` by number, from 0.

    A file that is compressed with gzip may expand to `max_bytes` (default: a GiB, or 64 times its
    size).

    `columns` chooses some of them, in that order. `dtype` (default float32) is that of all, or a
    dict by column; `str` gives a list of the texts. Empty cells of floating columns become
    `missing` where that is given. Empty lines are left out.

    Raises FileNotFoundError, and ValueError that names line and column of a cell that is no number
    or beyond its column's type (1e39 in float32; "inf" is taken as such), the line of a row that is
    too short or too long, and columns not in the file.

    >>> import pathlib, tempfile, tilewright as tw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "x.csv"
    ...     _ = file.write_text("height,kind\\n1.5,a\\n2,b\\n")
    ...     table = tw.data.read_csv(file, dtype={"kind": str})
    >>> table["height"].tolist(), table["kind"]
    ([1.5, 2.0], ['a', 'b'])
    """
    name = os.fspath(path)
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise ValueError(f"read_csv: delimiter is one character, got {delimiter!r}")
    with _long_cells(), _opened(path, name, max_bytes) as file:
        lines = csv.reader(file, delimiter=delimiter, strict=True)
        rows = _rows(lines, name)
        try:
            line, first = next(rows)
        except StopIteration:
            raise ValueError(f"{name}: holds no {'header' if header else 'row'}") from None
        names: list[_Name] = list(first) if header else list(range(len(first)))
        table = _Table(name, names, columns, dtype, missing)
        if not header:
            table.add(line, first)
        for line, row in rows:
            table.add(line, row)
    return table.tensors()


@contextmanager
def _opened(path: Any, name: str, max_bytes: int | None) -> Iterator[IO[str]]:
    """The text of a file, compressed with gzip or not."""
    with open(path, "rb") as file:
        compressed = file.peek(2).startswith(GZIP_MAGIC)
        bytes_of: Any = file
        if compressed:
            bound = Bound(name, os.fstat(file.fileno()).st_size, max_bytes)
            bytes_of = io.BufferedReader(BoundedReader(file, bound))
        with io.TextIOWrapper(bytes_of, encoding="utf-8-sig", newline="") as text:
            yield text


class _long_cells:  # noqa: N801  (used like a function)
    """While a file is read csv's limit on cells, one for the process, is as large as can be."""

    _lock, _readers, _before = threading.Lock(), 0, 0

    def __enter__(self) -> None:
        kind = _long_cells
        with kind._lock:
            if kind._readers == 0:
                kind._before = csv.field_size_limit(_LONGEST_CELL)
            kind._readers += 1

    def __exit__(self, *exception: object) -> None:
        kind = _long_cells
        with kind._lock:
            kind._readers -= 1
            if kind._readers == 0:
                csv.field_size_limit(kind._before)


def _rows(lines: Any, name: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not empty, with the line on which each ends."""
    try:
        with damage_told(name):
            for row in lines:
                if row:
                    yield lines.line_num, row
    except csv.Error as error:
        raise ValueError(f"{name}: line {lines.line_num}: {error}") from None
    except UnicodeDecodeError as error:
        after = f"after line {lines.line_num}"
        raise ValueError(f"{name}: no UTF-8 text {after}: {error.reason}") from None


class _Table:
    """The chosen columns as they fill."""

    def __init__(
        self,
        path: str,
        names: list[_Name],
        columns: Sequence[_Name] | None,
        dtype: Any,
        missing: float | None,
    ) -> None:
        if len(set(names)) != len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise ValueError(f"{path}: line 1: column {twice!r} is named twice")
        self.path, self.missing, self.width = path, missing, len(names)
        self.chosen: list[_Name] = names if columns is None else list(columns)
        dtypes = dtype if isinstance(dtype, Mapping) else dict.fromkeys(names, dtype)
        for name in [*self.chosen, *dtypes]:
            if name not in names:
                known = ", ".join(map(repr, names))
                raise ValueError(f"{path}: no column {name!r}; there are: {known}")
        self.dtypes = {name: _dtype(dtypes.get(name)) for name in self.chosen}
        kinds = {name: _kind(self.dtypes[name]) for name in self.chosen}
        self.cells: dict[_Name, Any] = {
            name: array.array(kind.code) if kind.code else [] for name, kind in kinds.items()
        }
        self.readers = [(names.index(name), name, kinds[name]) for name in self.chosen]

    def add(self, line: int, row: list[str]) -> None:
        """One row more; raises ValueError with its line."""
        if len(row) != self.width:
            raise ValueError(f"{self.path}: line {line}: {len(row)} cells, expected {self.width}")
        for place, name, kind in self.readers:
            try:
                self.cells[name].append(kind.read(row[place]))
            except (ValueError, KeyError, OverflowError):
                self.cells[name].append(self._instead(line, name, kind, row[place]))

    def _instead(self, line: int, name: _Name, kind: _Kind, cell: str) -> float:
        """What stands for an empty cell."""
        empty = not cell.strip()
        if empty and kind.code == "d" and self.missing is not None:
            return self.missing
        told = "is empty; give missing=float('nan')" if empty else f"{cell!r} is no {kind.told}"
        if empty and kind.code != "d":
            told = f"is empty, no {kind.told}"
        raise ValueError(f"{self.path}: line {line}, column {name!r}: {told}")

    def tensors(self) -> dict[_Name, Any]:
        """The columns in their types."""
        return {name: self._tensor(name) for name in self.chosen}

    def _tensor(self, name: _Name) -> Tensor | list[str]:
        cells, dtype = self.cells[name], self.dtypes[name]
        if dtype is str:
            texts: list[str] = cells
            return texts
        if not cells:
            return tw.empty(0, dtype=dtype)
        wide = {"d": tw.float64, "q": tw.int64, "Q": tw.uint64, "B": tw.uint8}[cells.typecode]
        values = tw.frombuffer(cells.tobytes(), dtype=wide)
        return values.copy() if dtype == wide else values.astype(dtype)


def _dtype(dtype: Any) -> Any:
    """The dtype as the engine has it; `str` for texts."""
    return str if dtype is str else tw.empty(0, dtype=dtype or tw.float32).dtype


def _kind(dtype: Any) -> _Kind:
    if dtype is str:
        return _Kind(str, "", "text")
    if dtype == tw.bool:
        return _Kind(lambda cell: _BOOLS[cell.strip().lower()], "B", "bool")
    if dtype.name.startswith(("float", "bfloat")):
        most = tw.finfo(dtype).max
        told = f"number from {-most:.4g} to {most:.4g}"
        return _Kind(_finite(most), "d", told)
    if dtype == tw.uint64:  # what 64 bits without a sign do not hold, the array refuses
        return _Kind(_number(int), "Q", "whole number from 0 below 2 ** 64")
    if dtype.name.startswith(("int", "uint")):
        limits = tw.iinfo(dtype)
        told = f"whole number from {limits.min} to {limits.max}"
        return _Kind(_whole(limits.min, limits.max), "q", told)
    raise TypeError(f"read_csv: a column cannot be {dtype.name}")


def _number(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Numbers as files have them: Python's own also take 1_000, which other readers call text."""

    def checked(cell: str) -> Any:
        if "_" in cell:
            raise ValueError(cell)
        return read(cell)

    return checked


def _finite(most: float) -> Callable[[str], float]:
    """Those that do not round to infinity in a type up to `most`, unless they are written so."""
    exponent = math.frexp(most)[1]
    limit = math.inf if exponent == sys.float_info.max_exp else (most + 2.0**exponent) / 2
    number = _number(float)

    def checked(cell: str) -> float:
        value: float = number(cell)
        if abs(value) >= limit and "inf" not in cell.lower():
            raise OverflowError(cell)
        return value

    return checked


def _whole(least: int, most: int) -> Callable[[str], int]:
    """Those that the type holds: others would wrap around."""
    number = _number(int)

    def checked(cell: str) -> int:
        if not least <= (value := number(cell)) <= most:
            raise OverflowError(cell)
        return int(value)

    return checked
