"""Output of commands: tables, progress and JSON; with rich where installed, else plain."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, TextIO

from tilewright._core import active_isa, get_num_threads
from tilewright._engine.optional_packages import available, require
from tilewright._report.html.sections import Section, Table, Text
from tilewright.bench.harness import Timing
from tilewright.cli.arguments import check_target
from tilewright.io.atomic import write_whole

_REFRESH_SECONDS = 0.1
# Leaves the text of a training room in 80 columns.
_BAR_WIDTH = 16


class Console:
    """Where a command writes.

    Results (`table`, `text`) are not printed where JSON on standard output holds them. Progress and
    notes (`line`) are, on standard error. Beside a program, to which standard output belongs, all
    goes to standard error. Raises OSError at once where the JSON file cannot be written.
    """

    def __init__(
        self,
        json_target: str | None = None,
        beside_a_program: bool = False,
        html_target: str | None = None,
    ) -> None:
        if json_target not in (None, "-"):
            check_target("--json", json_target)
        if html_target is not None:
            check_target("--html", html_target)
        self.json_target = json_target
        self.html_target = html_target
        self._sections: list[Section] = []
        self._to_errors = json_target == "-" or beside_a_program
        self._json_to_errors = beside_a_program

    @classmethod
    def of(cls, args: argparse.Namespace, beside_a_program: bool = False) -> Console:
        """A command's console; once the command has run, its page is written."""
        console = cls(args.json, beside_a_program, args.html)
        args.console = console
        return console

    @property
    def stream(self) -> TextIO:
        """Looked up each time: a progress bar puts itself in front of a terminal's streams."""
        return sys.stderr if self._to_errors else sys.stdout

    def line(self, text: str = "") -> None:
        """One line of progress, or a note."""
        print(text, file=self.stream, flush=True)

    def text(self, text: str = "", page: Sequence[Section] | None = None) -> None:
        """Lines of results; on the page stand the sections in their place, where there are some."""
        if self.json_target != "-":
            self.line(text)
        if self.html_target is not None:
            self._sections += [Text("Results", text)] if page is None else page

    def on_page(self, *sections: Section) -> None:
        """What the page has and a terminal cannot show."""
        self._sections += sections

    def write_page(self, title: str) -> None:
        """Writes what was told where --html says; does nothing without it."""
        if self.html_target is None:
            return
        from tilewright._report.html.page import write  # noqa: PLC0415  (imported on use)

        at = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        below = f"{at}, {active_isa()}, {get_num_threads()} threads"
        write(self.html_target, title, self._sections, below)
        self.line(f"page: {self.html_target}")

    def table(
        self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], text: bool = False
    ) -> None:
        """A table; the first column stands left, the others right, or left where they hold text."""
        if self.html_target is not None:
            self._sections.append(Table(title, columns, rows))
        if self.json_target == "-":
            return
        self.line(title)
        if self.stream.isatty() and available("rich"):
            self._rich_table(columns, rows, text)
        else:
            self._plain_table(columns, rows, text)

    def json(self, results: Any) -> None:
        """Writes the results where --json says; does nothing without it."""
        if self.json_target is None:
            return
        text = json.dumps(_plain(results), indent=2, allow_nan=False) + "\n"
        if self.json_target == "-":
            (sys.stderr if self._json_to_errors else sys.stdout).write(text)
        else:
            write_whole(self.json_target, text.encode(), "--json")

    def _rich_table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], text: bool
    ) -> None:
        rich, box, tables = (
            require(f"rich.{part}", purpose="tables", install="rich")
            for part in ("console", "box", "table")
        )
        table = tables.Table(box=box.SIMPLE)
        for i, column in enumerate(columns):
            table.add_column(column, justify="right" if i and not text else "left", overflow="fold")
        for row in rows:
            table.add_row(*row)
        rich.Console(file=self.stream, markup=False, highlight=False).print(table)

    def _plain_table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], text: bool
    ) -> None:
        lines = [columns, *rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
        for line in lines:
            cells = [
                cell.rjust(width) if i and not text else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            self.line("  " + "  ".join(cells).rstrip())
        self.line()


class Bar:
    """A progress bar; redraws at most every tenth of a second, so that it costs next to nothing."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress
        self._next_draw = 0.0
        self._task = progress.add_task("", total=1) if progress else None

    def update(self, done: int, total: int, text: str) -> None:
        """Shows `done` of `total`, with a text behind the bar."""
        now = time.perf_counter()
        if self._progress is None or (now < self._next_draw and done < total):
            return
        self._next_draw = now + _REFRESH_SECONDS
        self._progress.update(self._task, completed=done, total=total, description=text)
        self._progress.refresh()


@contextmanager
def progress_bar() -> Iterator[Bar]:
    """A bar on standard error; draws nothing where that is no terminal or rich is missing."""
    if not sys.stderr.isatty() or not available("rich"):
        yield Bar(None)
        return
    rich = require("rich.progress", purpose="the progress bar", install="rich")
    console = require("rich.console", purpose="the progress bar", install="rich").Console(
        stderr=True, no_color="NO_COLOR" in os.environ
    )
    columns = (
        rich.BarColumn(_BAR_WIDTH),
        rich.TaskProgressColumn(),
        rich.TextColumn("{task.description}", markup=False),
    )
    # No refresh thread: it would take a processor from the work.
    with rich.Progress(
        *columns,
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=sys.stdout.isatty(),
    ) as progress:
        yield Bar(progress)


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: both become null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value


def format_bytes(count: float) -> str:
    """For people: 1536 gives 1.5 KiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if count == int(count) else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def format_seconds(seconds: float) -> str:
    """For people, with three digits: ns, µs, ms or s."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def format_number(value: float) -> str:
    """For people, with three digits, or all before the point."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def format_timing(timing: Timing | None) -> str:
    """Median and, in brackets, the 95th percentile where it is known; a dash where nothing was
    timed.
    """
    if timing is None:
        return "-"
    if math.isnan(timing.p95_s):
        return format_seconds(timing.median_s)
    return f"{format_seconds(timing.median_s)} ({format_seconds(timing.p95_s)})"
