"""Parses arguments, runs a command and turns errors of the user's making into one line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import tilewright as tw
from tilewright.cli import bench, blas, doctor, explain, info, ops, profile, sweep, train, tune

COMMANDS = (info, ops, train, sweep, bench, explain, profile, tune, blas, doctor)

# What bad input, missing files, packages and GPUs and a full memory raise. Anything else is a bug
# and keeps its traceback.
_USER_ERRORS = (tw.Error, ValueError, TypeError, OSError, ImportError, MemoryError)


def build_parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    parser = argparse.ArgumentParser(
        prog="tilewright",
        description="A glass-box tensor engine: see which kernel runs, force it, measure it.",
        epilog="Set NO_COLOR to get plain text. Exit codes: 0 done, 1 failed, 2 wrong usage.",
    )
    parser.add_argument("--version", action="version", version=f"tilewright {tw.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(commands)
    return parser


def run(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code; KeyboardInterrupt is left to the caller."""
    arguments = build_parser().parse_args(argv)
    # A command may start the process anew where it is all that the process does.
    arguments.whole_process = argv is None
    try:
        code: int = arguments.run(arguments)
        if console := getattr(arguments, "console", None):
            console.write_page(_title(arguments))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader, such as `head`, has enough
        _drop_output()
        return 1
    except _USER_ERRORS as error:
        # Errors of the library name what was called, which may be what the command is called.
        text = _one_line(error).removeprefix(f"{arguments.command}: ")
        print(f"tilewright {arguments.command}: {text}", file=sys.stderr)
        try:
            sys.stdout.flush()
        except OSError:  # a full disk is told once
            _drop_output()
        return 1


def _title(arguments: argparse.Namespace) -> str:
    """The command, with what it was about."""
    about = (getattr(arguments, name, None) for name in ("what", "op", "program", "task"))
    return " ".join(["tilewright", arguments.command, *(x for x in about if isinstance(x, str))])


def _drop_output() -> None:
    """Keeps the interpreter from writing at its end what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
