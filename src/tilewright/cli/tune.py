"""`tilewright tune`: measures this machine and keeps what it found."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isnan
from typing import TYPE_CHECKING, Any

import tilewright as tw
from tilewright import tune
from tilewright.cli import arguments
from tilewright.cli.console import Console, format_seconds, progress_bar
from tilewright.tune import table as tables

if TYPE_CHECKING:
    from tilewright.tune.search import Outcome

_ACTIONS = {
    "run": "measures and writes the table (default)",
    "show": "the numbers in force and where they come from",
    "diff": "what the table changes, or FILE's",
    "export": "copies the table to FILE",
    "import": "takes over the table of FILE",
    "clear": "deletes the table",
}
_NEEDS_FILE = ("export", "import")
_STEPS = 1000  # of the progress bar


def add_parser(commands: arguments.Subparsers) -> None:
    """Adds the command."""
    parser = arguments.add_parser(
        commands, "tune", run, "fit the matmul ladder to this machine and keep what was measured"
    )
    about = "; ".join(f"{name}: {text}" for name, text in _ACTIONS.items())
    parser.add_argument("action", nargs="?", choices=tuple(_ACTIONS), default="run", help=about)
    parser.add_argument("file", nargs="?", metavar="FILE", help="for export, import and diff")
    parser.add_argument(
        "--seconds",
        type=arguments.positive_real,
        metavar="N",
        default=90.0,
        help="about how long to measure (default: 90); each GPU takes some seconds more",
    )
    parser.add_argument(
        "--device",
        metavar="NAME",
        action="append",
        help="measure cpu, cuda or cuda:1 alone; may be given again (default: all there are)",
    )


def run(args: argparse.Namespace) -> int:
    """Does what is asked; exit code 1 with one line where it cannot."""
    if args.action in _NEEDS_FILE and not args.file:
        raise ValueError(f"{args.action} needs a file: tilewright tune {args.action} FILE")
    if args.file and args.action not in (*_NEEDS_FILE, "diff"):
        raise ValueError(f"{args.action} takes no file, got {args.file!r}")
    actions: dict[str, Callable[[Console, argparse.Namespace], None]] = {
        "run": _run,
        "show": _show,
        "diff": _diff,
        "export": _export,
        "import": _import,
        "clear": _clear,
    }
    actions[args.action](Console.of(args), args)
    return 0


def _run(console: Console, args: argparse.Namespace) -> None:
    arguments.check_devices(args.device or ())
    threads = tw.get_num_threads()
    console.line(
        f"measuring for about {args.seconds:g} s, {tw.kernels.isas()[-1]}, {threads} thread(s); "
        "other programs disturb it"
    )
    with progress_bar() as bar:
        table, outcomes = tune.run(
            args.seconds,
            lambda share, text: bar.update(int(_STEPS * share), _STEPS, text),
            args.device,
        )
    rows = [_outcome_row(outcome) for outcome in outcomes]
    console.table("What was tried", ("what", "gain", "noise", "result"), rows)
    _table_of_changes(console, table)
    console.text(f"written: {tune.path()} ({format_seconds(table.seconds)} of measuring)")
    told = [outcome._asdict() for outcome in outcomes]
    console.json({"path": tune.path(), "table": table.as_dict(), "steps": told})


def _show(console: Console, args: argparse.Namespace) -> None:
    state = tables.state()
    console.text(f"table: {tune.path()} ({state})")
    console.text(f"in force: {tune.source()}")
    usual = tune.defaults()
    rows = [
        (name, _number(value), "" if value == usual[name] else _number(usual[name]), help_text)
        for (name, value), help_text in zip(tune.current().items(), _helps(), strict=True)
    ]
    console.table("Numbers", ("name", "in force", "default", "what it is"), rows, text=True)
    gpus = _show_gpus(console)
    console.json(
        {
            "gpus": gpus,
            "path": tune.path(),
            "state": state,
            "source": tune.source(),
            "machine": tables.machine(),
            "current": tune.current(),
            "defaults": usual,
        }
    )


def _show_gpus(console: Console) -> dict[str, list[dict[str, Any]]]:
    """Rates of each GPU of this machine, and where they come from."""
    from tilewright.tune import gpu  # noqa: PLC0415  (only where there is one)

    found = {}
    for number in gpu.numbers_of(None):
        key = tw._core._gpu_rates_key(number)
        found[key] = [dict(row) for row in tw._core._gpu_rates(number) if row["guess"]]
        rows = [
            (
                row["name"],
                f"{row['value']:g}",
                "" if row["value"] == row["guess"] else f"{row['guess']:g}",
                row["help"],
            )
            for row in found[key]
        ]
        console.text(f"cuda:{number}: {gpu.source(f'cuda:{number}')}")
        console.table(key, ("name", "in force", "guess", "what it is"), rows, text=True)
    return found


def _diff(console: Console, args: argparse.Namespace) -> None:
    with _naming(args.file):
        table = tables.read(args.file) if args.file else tables.held()
    _table_of_changes(console, table)
    changes = {
        name: {"default": usual, "value": value}
        for name, (usual, value) in tune.differences(table).items()
    }
    console.json({"changes": changes, "gains": table.gains, "date": table.date})


def _export(console: Console, args: argparse.Namespace) -> None:
    tune.export(args.file)
    console.text(f"written: {args.file}")
    console.json({"written": args.file})


def _import(console: Console, args: argparse.Namespace) -> None:
    with _naming(args.file):
        table = tune.import_(args.file)
    console.text(f"taken over: {len(table.values)} number(s) measured on {table.date[:10]}")
    console.json({"path": tune.path(), "table": table.as_dict()})


@contextmanager
def _naming(file: str | None) -> Iterator[None]:
    """Says which file an error is about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{file}: {error}" if file else str(error)) from None


def _clear(console: Console, args: argparse.Namespace) -> None:
    removed = tune.clear()
    console.text(f"deleted: {tune.path()}" if removed else f"no table at {tune.path()}")
    console.json({"path": tune.path(), "deleted": removed})


def _helps() -> list[str]:
    return [row["help"] for row in tw._core.matmul_tunables()]


def _table_of_changes(console: Console, table: tune.Table) -> None:
    changes = tune.differences(table)
    if not changes:
        console.text("the defaults stay: nothing was faster beyond the noise")
        return
    rows = [(name, _number(usual), _number(value)) for name, (usual, value) in changes.items()]
    console.table("What the table changes", ("name", "default", "value"), rows)


def _outcome_row(outcome: Outcome) -> Sequence[str]:
    gain, noise = (
        "" if isnan(share) else f"{100 * share:+.1f}%" for share in (outcome.gain, outcome.noise)
    )
    return (outcome.name, gain, noise, outcome.note)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
