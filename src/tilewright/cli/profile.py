"""`tilewright profile`: where the time of a program goes."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import threading
import traceback
from pathlib import Path

import tilewright as tw
from tilewright._inspect.profiling import SUMS
from tilewright._inspect.report_pages import of_profile
from tilewright.cli import arguments
from tilewright.cli.console import Console

_TARGETS = ("json", "html", "trace", "plot", "roofline")
_INTERRUPTED = 130  # as a shell tells the end by Ctrl-C


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
    parser.add_argument(
        "--roofline",
        metavar="FILE",
        help="draw each op under this machine's roofline (png, svg or pdf; needs matplotlib)",
    )
    arguments.add_threads(parser)
    parser.add_argument("program", metavar="PROGRAM", help="a Python file")
    parser.add_argument(
        "arguments", metavar="ARGUMENTS", nargs=argparse.REMAINDER, help="of the program"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the program in this process, as `python PROGRAM ARGUMENTS` would; tells what it did.

    Standard output is the program's: tables and JSON go to standard error beside it. Where the
    program raises, its traceback comes before the report. The exit code is the program's.
    """
    for option in _TARGETS:
        _check_target(args, option)
    console = Console.of(args, beside_a_program=True)
    if not Path(args.program).is_file():
        raise FileNotFoundError(f"no program {args.program}")
    if args.threads:
        tw.set_num_threads(args.threads)
    report = tw.profile()
    argv, path = sys.argv, list(sys.path)
    sys.argv = [args.program, *args.arguments]
    sys.path.insert(0, str(Path(args.program).resolve().parent))
    try:
        with report:
            code = _run_program(args.program)
    finally:
        sys.argv, sys.path[:] = argv, path
    _tell(console, report, args)
    return code


def _check_target(args: argparse.Namespace, option: str) -> None:
    """Raises for what must not or cannot be written, and notes where it is: programs may chdir."""
    target = getattr(args, option)
    if target in (None, "-"):
        return
    if target.endswith(".py"):
        raise ValueError(
            f"--{option} would write over a program, {target}; "
            f"name the file: --{option}=FILE, then the program"
        )
    arguments.check_target(f"--{option}", target)
    setattr(args, option, os.path.abspath(target))


def _run_program(program: str) -> int:
    """The exit code, once the program and the threads that it waits for have ended."""
    code, before = 0, set(threading.enumerate())
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except KeyboardInterrupt:
        traceback.print_exc()
        code = _INTERRUPTED
    except BaseException:
        traceback.print_exc()
        code = 1
    for thread in set(threading.enumerate()) - before:
        if not thread.daemon:
            thread.join()
    return code


def _tell(console: Console, report: tw.profile, args: argparse.Namespace) -> None:
    tables = "\n\n".join([report.summary, *map(report.table, args.by or ())])
    page = of_profile(report) if args.html else None
    console.text(tables if args.by else str(report), page)
    console.json(report.as_dict())
    if args.trace:
        report.trace(args.trace)
        console.line(f"trace: {args.trace}")
    if args.plot:
        report.plot(args.plot)
        console.line(f"picture: {args.plot}")
    if args.roofline:
        report.roofline(args.roofline)
        console.line(f"picture: {args.roofline}")
