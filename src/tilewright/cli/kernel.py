"""`tilewright kernel`: a kernel of one's own: written from a template, validated, measured."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import tilewright as tw
from tilewright._kernels import template
from tilewright.cli import arguments
from tilewright.cli.console import Console


def add_parser(commands: arguments.Subparsers) -> None:
    """Adds the command."""
    parser = arguments.add_parser(
        commands, "kernel", run, "write a kernel of your own, validate it and measure it"
    )
    what = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    new = what.add_parser("new", help="write a first kernel, with a Makefile and a package")
    new.add_argument("name", help="what the kernel is called, such as mine")
    new.add_argument("--op", choices=template.OPS, default="matmul", help="(default: matmul)")
    new.add_argument(
        "--folder", type=Path, default=None, help="a new folder (default: the kernel's name)"
    )
    check = what.add_parser("check", help="load a library, and try its kernels on many problems")
    check.add_argument("library", type=Path, help="the library that `make` has built")
    what.add_parser("include", help="print the folder of tilewright_kernel.h, for a compiler's -I")


def run(args: argparse.Namespace) -> int:
    """Does what was asked for; 1 where a kernel is wrong."""
    console = Console.of(args)
    if args.what == "include":
        print(tw.kernels.include_folder())
        return 0
    if args.what == "new":
        folder = args.folder or Path(args.name)
        for path in template.write(folder, args.op, args.name):
            console.text(f"wrote {path}")
        console.text(f"next: cd {folder}; make check")
        return 0
    return _check(console, args.library)


def _check(console: Console, library: Path) -> int:
    told: list[dict[str, Any]] = []
    wrong = 0
    for op, name in tw.kernels.load(library):
        verdicts = tw.kernels.validate(op, name, measure=True)
        rows = []
        for each in verdicts:
            is_refused = each.error is None
            state = "refused" if is_refused else "right" if each.is_right else "WRONG"
            detail = each.reason if is_refused else f"{each.error:.1e} of {each.allowed:.1e}"
            rows.append((each.problem, state, detail, f"{each.speed:.2f}x" if each.speed else ""))
            told.append({"op": op, "kernel": name, "state": state, **vars(each)})
        wrong += sum(not each.is_right for each in verdicts)
        columns = ("problem", "", "error, or reason", "own choice / kernel")
        console.table(f"{name} of {op}", columns, rows, text=True)
    console.text("1 problem is wrong" if wrong == 1 else f"{wrong or 'no'} problems are wrong")
    console.json({"verdicts": told})
    return 1 if wrong else 0
