"""`tilewright profile`: where the time of a program goes."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

import tilewright as tw
from tilewright.cli import arguments
from tilewright.cli.console import Console
from tilewright.profiling import SUMS


def add_parser(commands: arguments.Subparsers) -> None:
    """Adds the command."""
    parser = arguments.add_parser(
        commands, "profile", run, "run a Python program and say where its time goes, op by op"
    )
    parser.add_argument(
        "--by", choices=SUMS, action="append", help="what to sum up by (default: op and module)"
    )
    parser.add_argument("--trace", metavar="FILE", help="write a trace (.json) for ui.perfetto.dev")
    arguments.add_plot(parser)
    arguments.add_threads(parser)
    parser.add_argument("program", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the program")


def run(args: argparse.Namespace) -> int:
    """Runs the program in this process, as `python program arguments` would; tells what it did.

    Standard output is the program's: tables and JSON go to standard error beside it. The exit code
    is the program's; what it raises comes after the report.
    """
    console = Console(args.json, beside_a_program=True)
    for option in ("trace", "plot"):
        if target := getattr(args, option):
            arguments.check_target(f"--{option}", target)
    if not Path(args.program).is_file():
        raise FileNotFoundError(f"no program {args.program}")
    if args.threads:
        tw.set_num_threads(args.threads)
    code, report = 0, tw.profile()
    argv, path = sys.argv, list(sys.path)
    sys.argv = [args.program, *args.arguments]
    sys.path.insert(0, str(Path(args.program).resolve().parent))
    try:
        with report:
            runpy.run_path(args.program, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv, sys.path[:] = argv, path
        sys.stdout.flush()
        _tell(console, report, args)
    return code


def _tell(console: Console, report: tw.profile, args: argparse.Namespace) -> None:
    console.text(
        "\n\n".join([report.summary, *map(report.table, args.by)]) if args.by else str(report)
    )
    console.json(report.as_dict())
    if args.trace:
        report.trace(args.trace)
        console.line(f"trace: {args.trace}")
    if args.plot:
        report.plot(args.plot)
        console.line(f"picture: {args.plot}")
