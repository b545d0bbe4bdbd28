"""Argument types and options that commands share."""

from __future__ import annotations

import argparse
import errno
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tilewright as tw
from tilewright.bench.networks import FAMILIES
from tilewright.bench.peers import PEERS
from tilewright.io.atomic import TEMPORARY_SUFFIX

Subparsers = Any  # argparse keeps the class of add_subparsers() private
# 10^15 elements of one byte are a petabyte; far longer numbers would not fit 64 bits either.
_LARGEST_SIZE_DIGITS = 15
# The engine's own limits.
_MOST_THREADS = 1024
_LARGEST_SEED = 2**64 - 1
# Counts are C's 64-bit numbers further down, and are multiplied there.
_LARGEST_COUNT = 2**31 - 1


def add_parser(
    commands: Subparsers, name: str, run: Callable[[argparse.Namespace], int], text: str
) -> argparse.ArgumentParser:
    """A command's parser with what every command has; `text` becomes its help and description."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + "."
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="write the results as JSON: to FILE, beside the tables on standard output; without "
        "FILE to standard output, instead of the tables (progress then goes to standard error)",
    )
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="write the results as one HTML page that needs no network: sortable tables, charts",
    )
    return parser


def add_threads(parser: argparse.ArgumentParser) -> None:
    """--threads, for commands that compute."""
    parser.add_argument(
        "--threads",
        type=threads,
        metavar="N",
        help=f"threads to compute with (default: {tw.get_num_threads()})",
    )


def check_devices(names: Sequence[str]) -> None:
    """Raises ValueError, before a command's work, where a GPU is named on a machine without one."""
    for name in names:
        if name.startswith("cuda") and (reason := tw.cuda.why_unavailable()):
            raise ValueError(f"--device {name}: {reason}")


def add_plot(parser: argparse.ArgumentParser, more: str = "") -> None:
    """--plot, for commands that have something to draw; `more` is added to its help."""
    text = f"draw the results (png, svg or pdf; needs matplotlib){more}"
    parser.add_argument("--plot", metavar="FILE", help=text)


def add_points(parser: argparse.ArgumentParser, only: str = "") -> None:
    """--csv and --from, for comparisons whose points are kept; `only` says with what else."""
    with_what = f"with {only}: " if only else ""
    parser.add_argument(
        "--csv",
        metavar="FILE",
        help=f"{with_what}write the points: a line a case with each contender's median time",
    )
    parser.add_argument(
        "--from",
        nargs="+",
        dest="from_csv",
        metavar="FILE",
        help=f"{with_what}print and draw the points of such files; nothing is measured",
    )


def conditions_text(conditions: Mapping[str, Any]) -> str:
    """Under which points were measured, in a line."""
    plain = {**conditions.get("machine", {}), **conditions}
    return ", ".join(f"{k} {v}" for k, v in plain.items() if isinstance(v, (str, int, float)))


def positive(text: str) -> int:
    """A whole number of at least 1."""
    return _whole(text, 1, _LARGEST_COUNT)


def threads(text: str) -> int:
    """A number of threads that the engine can start."""
    return _whole(text, 1, _MOST_THREADS)


def seed(text: str) -> int:
    """A whole number of 64 bits without a sign."""
    return _whole(text, 0, _LARGEST_SEED)


def _whole(text: str, smallest: int, largest: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = smallest - 1
    if value < smallest:
        raise argparse.ArgumentTypeError(
            f"expected a whole number of at least {smallest}, got {text!r}"
        )
    if value > largest:
        raise argparse.ArgumentTypeError(
            f"expected a whole number of at most {largest}, got {text!r}"
        )
    return value


def positive_real(text: str) -> float:
    """A finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return value


def sizes(text: str) -> tuple[int, ...]:
    """Sizes such as 256,512, each at least 1."""
    return tuple(positive(part) for part in text.split(","))


def peers(text: str) -> tuple[str, ...]:
    """Names of peers such as torch,numpy; an empty text names none."""
    return _names(text, "peer", PEERS)


def texts(text: str) -> tuple[str, ...]:
    """Words such as add,exp."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def names(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Some of the known words."""
    return _names(text, "such choice", known)


def families(text: str) -> tuple[str, ...]:
    """Names of families of network layers, as `bench networks` knows them."""
    return _names(text, "family", FAMILIES)


def _names(text: str, kind: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(text.split(",")) if text else ()
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"no {kind} {name!r}; known: {', '.join(known)}")
    return names


def shape(text: str) -> tuple[int, ...]:
    """Sizes such as 512x512x512, each at least 1."""
    parts = text.lower().split("x")
    if not all(part.isascii() and part.isdigit() and part.strip("0") for part in parts):
        raise argparse.ArgumentTypeError(
            f"expected sizes of at least 1, such as 512x512, got {text!r}"
        )
    if any(len(part) > _LARGEST_SIZE_DIGITS for part in parts):
        raise argparse.ArgumentTypeError(f"no memory holds a tensor of these sizes: {text!r}")
    return tuple(map(int, parts))


def check_target(option: str, path: str) -> None:
    """Raises early what would fail at a long command's end: a file that cannot be written."""
    target = os.path.realpath(path)
    there = os.path.exists(target)
    if there and not os.path.isdir(target) and not os.path.isfile(target):
        return  # a device or a pipe: opening it could wait or have an effect
    try:
        if os.path.isdir(target):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if there and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        # Results are written beside the file and take its place when they are whole.
        beside = f"{target}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}"
        with open(beside, "xb"):
            os.unlink(beside)
    except OSError as error:
        reason = f"{option}: cannot write {path}: {error.strerror}; {_remedy(path)}"
        raise type(error)(reason) from None


def _remedy(path: str) -> str:
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        return f"create the folder {folder} first"
    return "name a file that you may write"
