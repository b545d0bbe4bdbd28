"""Results of a comparison in a file: to go on with it, or to compare with it later."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.bench import saved
from tilewright.bench.harness import Result, Timing
from tilewright.cli.arguments import check_target
from tilewright.cli.console import Console


class Saving:
    """What --save asks for.

    Raises OSError at once where the file cannot be written, ValueError where nothing is measured,
    as results come from `points`.
    """

    def __init__(self, name: str | None, points: Sequence[str] | None = None) -> None:
        if name is not None and points:
            raise ValueError("--save is of what is measured: leave out --save, or --from")
        self._path = None if name is None else saved.prepare(name)
        if self._path:
            check_target("--save", str(self._path))

    def write(self, console: Console, what: str, threads: int, rows: Mapping[str, Timing]) -> None:
        """Saves the rows and tells where; does nothing where nobody asked."""
        if self._path:
            saved.save(self._path, what, threads, rows)
            console.line(f"saved: {self._path}")


class KeptResults:
    """Results in order; those that `path` has come first, and what is added goes there at once.

    Without a path they are kept in memory alone. A last line that was cut off is left out. Raises
    ValueError for a file of anything else, OSError where it cannot be read or written.
    """

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else Path(path)
        self.results: list[Result] = []
        if self._path is None or not self._path.exists():
            return
        text = self._path.read_text()
        whole = text.rpartition("\n")[0]
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                self.results.append(Result.from_dict(json.loads(line)))
            except (ValueError, KeyError, TypeError, AttributeError):
                raise ValueError(f"--resume {path}: line {number} is no result") from None
        if not text.endswith("\n"):
            self._path.write_text(whole + "\n" if whole else "")

    @property
    def names(self) -> frozenset[str]:
        """Of the cases that need not be run."""
        return frozenset(result.name for result in self.results)

    def add(self, result: Result) -> None:
        """Keeps a result."""
        self.results.append(result)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(result.as_dict()) + "\n")
