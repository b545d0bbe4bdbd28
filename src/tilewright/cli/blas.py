"""`tilewright blas`: runs any BLAS program on the engine's kernels, and counts its calls."""

from __future__ import annotations

import argparse
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import tilewright as tw
from tilewright.cli import arguments
from tilewright.cli.console import Console

SYMBOLS = ("sgemm_", "dgemm_", "cblas_sgemm", "cblas_dgemm")
# 64-bit words that the library adds to, as blas/tally.h says: calls and flops of each symbol, then
# calls computed by each kernel of the ladder.
_TALLY = struct.Struct(f"={2 * len(SYMBOLS) + 24}Q")
_NOTE = """\
The library takes the place of four symbols of a shared BLAS whose whole numbers have 32 bits; all
else of a BLAS stays the program's own. Programs that bring an OpenBLAS under other names, such as
the wheels of NumPy and SciPy (scipy_openblas64_), are not reached; NumPy of a Linux distribution
is. The variables TILEWRIGHT_MATMUL, TILEWRIGHT_ISA and TILEWRIGHT_THREADS apply."""


def add_parser(commands: arguments.Subparsers) -> None:
    """Adds the command."""
    parser = arguments.add_parser(
        commands, "blas", run, "run a BLAS program with its sgemm and dgemm computed by Tilewright"
    )
    parser.usage = "%(prog)s [options] [-- program arguments ...]"
    parser.epilog = f"Returns the program's exit code. {_NOTE}"
    parser.add_argument(
        "--rung",
        metavar="NAME",
        choices=tw.kernels.names("matmul"),
        help=f"compute all products with one of {', '.join(tw.kernels.names('matmul'))} "
        "(default: the cheapest for each)",
    )
    parser.add_argument(
        "--isa",
        metavar="NAME",
        choices=tw.kernels.isas(),
        help=f"instruction set, of {', '.join(tw.kernels.isas())} (default: the last)",
    )
    arguments.add_threads(parser)
    parser.add_argument(
        "--count",
        action="store_true",
        help="then print on standard error how many calls came and which rungs computed them "
        "(--json implies it, and without FILE puts JSON there in their place)",
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the program and its arguments")


def run(args: argparse.Namespace) -> int:
    """Runs the program; without one, says where the library is and how to use it."""
    console = Console.of(args, beside_a_program=bool(args.program))
    program = args.program[1:] if args.program[:1] == ["--"] else args.program
    if program:
        return _run_program(program, args, console)
    if args.program or args.rung or args.isa or args.threads or args.count:
        raise ValueError("no program to run; name it last: tilewright blas --count -- ./program")
    path = library()
    console.text(f"{path}\nexports {', '.join(SYMBOLS)}.\n\n{_NOTE}\n")
    console.text(f"tilewright blas --rung tiled --count -- ./program\nLD_PRELOAD={path} ./program")
    console.json({"library": str(path), "symbols": SYMBOLS})
    return 0


def library() -> Path:
    """Path of the shared library, beside the extension module.

    Raises OSError where this system or build has none.
    """
    if not sys.platform.startswith("linux"):
        raise OSError(f"the BLAS library needs Linux's LD_PRELOAD, this is {sys.platform}")
    path = Path(tw._core.__file__).with_name("libtilewright_blas.so")
    if not path.is_file():
        raise FileNotFoundError(f"no {path}: build the package with TW_BUILD_BLAS=ON")
    return path


def _run_program(program: list[str], args: argparse.Namespace, console: Console) -> int:
    if not shutil.which(program[0]):
        raise FileNotFoundError(f"{program[0]}: no such program, or not executable")
    counts = args.count or args.json is not None
    with tempfile.TemporaryDirectory(prefix="tilewright-blas-") as folder:
        environment = {**os.environ, "LD_PRELOAD": _preload(library(), Path(folder))}
        chosen = {"MATMUL": args.rung, "ISA": args.isa, "THREADS": args.threads}
        environment |= {f"TILEWRIGHT_{name}": str(value) for name, value in chosen.items() if value}
        tally = Path(folder) / "tally"
        if counts:
            tally.write_bytes(bytes(_TALLY.size))
            environment["TILEWRIGHT_BLAS_COUNT"] = str(tally)
        sys.stdout.flush()
        code = subprocess.run(program, env=environment, check=False).returncode
        if counts:
            _report(program, code, _TALLY.unpack(tally.read_bytes()), console)
    return code if code >= 0 else 128 - code  # as a shell tells the end by a signal


def _preload(path: Path, folder: Path) -> str:
    """The list for the loader: this library, then what the user preloads already.

    Spaces and colons part its entries, so a path that has some goes through a link.
    """
    if set(" :") & set(str(path)):
        link = folder / path.name
        link.symlink_to(path)
        path = link
    if set(" :") & set(str(path)):
        raise ValueError(f"LD_PRELOAD takes no path with a space or colon: {path}; set TMPDIR")
    before = os.environ.get("LD_PRELOAD")
    return f"{path}:{before}" if before else str(path)


def _report(program: list[str], code: int, words: tuple[int, ...], console: Console) -> None:
    pairs = zip(SYMBOLS, words[0::2], words[1::2], strict=False)
    symbols = {name: {"calls": calls, "flops": flops} for name, calls, flops in pairs}
    computed = words[2 * len(SYMBOLS) :]
    kernels = dict(zip(tw.kernels.names("matmul"), computed, strict=False))
    console.table(
        f"Calls of {program[0]}",
        ("symbol", "calls", "flops"),
        [(name, f"{s['calls']:,}", f"{s['flops']:,}") for name, s in symbols.items() if s["calls"]],
    )
    if not any(s["calls"] for s in symbols.values()):
        console.text("None: does it call another BLAS, or under other names? See --help.")
    rungs = [(name, f"{calls:,}") for name, calls in kernels.items() if calls]
    if rungs:
        console.table("Computed by (the rest had nothing to multiply)", ("rung", "calls"), rungs)
    console.json({"program": program, "exit_code": code, "symbols": symbols, "kernels": kernels})
