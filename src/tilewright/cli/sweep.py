"""`tilewright sweep`: trains many configurations side by side within one memory budget."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tilewright as tw
from tilewright._engine.optional_packages import available, require
from tilewright.cli import arguments
from tilewright.cli.console import Console, format_bytes, format_seconds
from tilewright.cli.page_sections import of_sweep
from tilewright.cli.picture import check_plot
from tilewright.cli.picture_sweep import draw_sweep
from tilewright.train import load_images
from tilewright.train.sweep import Row, Sweep, read_configurations

_COLUMNS = ("configuration", "state", "epoch", "loss", "accuracy", "time", "memory")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def add_parser(commands: arguments.Subparsers) -> None:
    """Adds the command."""
    parser = arguments.add_parser(
        commands, "sweep", run, "train many configurations side by side within a memory budget"
    )
    parser.add_argument(
        "--config", metavar="FILE", required=True, help="what to train: .toml, .json"
    )
    parser.add_argument(
        "--out", metavar="DIR", help="folder for the results; a second start goes on from there"
    )
    parser.add_argument(
        "--workers", type=arguments.positive, metavar="N", help="trainings at a time (processors)"
    )
    parser.add_argument(
        "--memory", type=_size, metavar="SIZE", help="such as 500MB or 2GiB (default: no limit)"
    )
    parser.add_argument(
        "--data", metavar="DIR", help="folder of the MNIST files (see also TILEWRIGHT_DATA)"
    )
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help="timeline of the trainings: .json for ui.perfetto.dev, else a picture",
    )
    arguments.add_threads(parser)
    arguments.add_plot(parser)


def run(args: argparse.Namespace) -> int:
    """Trains and reports; 1 where a configuration failed."""
    check_plot(args.plot)
    if args.trace and args.trace.endswith(".json"):
        arguments.check_target("--trace", args.trace)
    else:
        check_plot(args.trace, "--trace")
    console = Console.of(args)
    if args.threads:
        tw.set_num_threads(args.threads)
    configurations = read_configurations(args.config)
    task = load_images(configurations[0].data, args.data)
    sweep = Sweep(configurations, task, args.out)
    budget = "no limit" if args.memory is None else format_bytes(args.memory)
    console.line(f"{len(sweep.rows)} configurations on {task.name}, memory: {budget}")
    with _view(console, sweep.rows) as on_tick:
        rows = sweep.run(args.workers, args.memory, on_tick, args.trace)
    console.table(f"Sweep on {task.name}", _COLUMNS, [_cells(row) for row in rows])
    console.on_page(*of_sweep(rows))
    failed = [row for row in rows if row.state != "completed"]
    for row in failed:
        console.text(f"{row.name}: {row.state}: {row.error}")
    console.json({"data": task.name, "results": [row.as_dict() for row in rows]})
    _draw(console, args, rows)
    return 1 if failed else 0


@contextmanager
def _view(console: Console, rows: Sequence[Row]) -> Iterator[Callable[[], None]]:
    """What to call to show how far it is: a live table on a terminal, else a line for each end."""
    if not console.stream.isatty() or "NO_COLOR" in os.environ or not available("rich"):
        shown: set[int] = set()

        def tell() -> None:
            for i, row in enumerate(rows):
                if row.done and i not in shown:
                    shown.add(i)
                    console.line(_line(row))

        yield tell
        return
    live = require("rich.live", purpose="the live table", install="rich")
    target = require("rich.console", purpose="the live table", install="rich").Console(
        file=console.stream, markup=False, highlight=False
    )
    # No refresh thread: it would take a processor from the work.
    with live.Live(console=target, auto_refresh=False, transient=True) as table:
        yield lambda: table.update(_live_table(rows), refresh=True)


def _live_table(rows: Sequence[Row]) -> Any:
    tables, box = (
        require(f"rich.{part}", purpose="the live table", install="rich")
        for part in ("table", "box")
    )
    table = tables.Table(box=box.SIMPLE)
    for i, column in enumerate(_COLUMNS):
        table.add_column(column, justify="right" if i else "left", overflow="fold")
    for row in rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> list[str]:
    loss, accuracy = ("", "") if not row.epochs else (f"{row.loss:.4f}", f"{row.accuracy:.2%}")
    epoch = f"{len(row.epochs)}/{row.total_epochs}" if row.total_epochs else ""
    seconds = format_seconds(row.seconds) if row.seconds else ""
    memory = format_bytes(row.estimate_bytes) if row.estimate_bytes else ""
    return [row.name, row.state, epoch, loss, accuracy, seconds, memory]


def _line(row: Row) -> str:
    if row.error:
        return f"{row.name}: {row.state}: {row.error}"
    source = "taken over" if row.resumed else f"{format_seconds(row.seconds)}"
    return f"{row.name}: loss {row.loss:.4f}, test accuracy {row.accuracy:.2%}, {source}"


def _draw(console: Console, args: argparse.Namespace, rows: Sequence[Row]) -> None:
    if args.trace:
        console.line(f"timeline: {args.trace}")
    if not args.plot:
        return
    if not any(row.epochs for row in rows):
        console.line("no picture: no configuration gave a result")
        return
    draw_sweep(args.plot, rows)
    console.line(f"picture: {args.plot}")


def _size(text: str) -> int:
    """Bytes of 1500, 500MB, 2 GiB."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?i?)b?", text.strip().lower())
    if not match or match[2] not in _UNITS or float(match[1]) * _UNITS[match[2]] < 1:
        raise argparse.ArgumentTypeError(f"expected a size such as 500MB or 2GiB, got {text!r}")
    if float(match[1]) * _UNITS[match[2]] >= 2**63:
        raise argparse.ArgumentTypeError(f"no machine has that much memory: {text!r}")
    return int(float(match[1]) * _UNITS[match[2]])
