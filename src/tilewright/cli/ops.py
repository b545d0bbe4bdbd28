"""`tilewright ops`: which ops there are, and what each one has."""

from __future__ import annotations

import argparse
import difflib
import fnmatch
from typing import Any

import tilewright as tw
from tilewright.cli import arguments
from tilewright.cli.console import Console


def add_parser(commands: arguments.Subparsers) -> None:
    """Adds the command."""
    parser = arguments.add_parser(
        commands, "ops", run, "list the ops; of one op, show its help, kernels and gradient"
    )
    parser.add_argument(
        "pattern",
        nargs="?",
        default="*",
        metavar="PATTERN",
        help="an op's name, or a pattern such as '*norm*' (default: all that can be called)",
    )
    parser.add_argument(
        "--internal",
        action="store_true",
        help="as well what only other ops call, such as gradients with kernels",
    )


def run(args: argparse.Namespace) -> int:
    """Prints a table, or one op in full. Raises ValueError where no op has the name."""
    console = Console.of(args)
    known = {fact["name"]: fact for fact in collect()}
    single = known.get(args.pattern)
    if single:
        _show(console, single)
        console.json({"ops": [single]})
        return 0
    found = [
        fact
        for name, fact in known.items()
        if (args.internal or fact["function"]) and fnmatch.fnmatchcase(name, args.pattern)
    ]
    if not found:
        raise ValueError(f"no op {args.pattern!r}{_suggestion(args.pattern, list(known))}")
    rows = [(f["name"], _marks(f), ", ".join(f["kernels"]) or "-", f["summary"]) for f in found]
    console.table(f"{len(found)} ops", ("op", "has", "kernels", "what it does"), rows, text=True)
    console.text("g: a gradient of its own. i: an in-place form.")
    console.text("b: a body of other ops, whose gradient is theirs.")
    console.json({"ops": found})
    return 0


def collect() -> list[dict[str, Any]]:
    """Name, signature, help, kernels on the CPU (slowest first) and abilities of every op."""
    with_kernels = set(tw.kernels.ops())
    facts = []
    for record in sorted(tw._core._op_records(), key=lambda record: str(record["name"])):
        name, text = str(record["name"]), str(record["help"])
        kernels = list(tw.kernels.names(name)) if name in with_kernels else []
        abilities = {k: bool(record[k]) for k in ("function", "gradient", "in_place", "body")}
        facts.append(
            {
                "name": name,
                "signature": str(record["signature"]),
                "summary": text.split("\n", 1)[0].partition(". ")[0].rstrip("."),
                "help": text,
                "kernels": kernels,
                **abilities,
            }
        )
    return facts


def _marks(fact: dict[str, Any]) -> str:
    of = {"gradient": "g", "in_place": "i", "body": "b"}
    return "".join(mark for ability, mark in of.items() if fact[ability])


def _suggestion(pattern: str, names: list[str]) -> str:
    close = difflib.get_close_matches(pattern, names, n=3)
    return f"; did you mean {' or '.join(close)}?" if close else "; tilewright ops lists all"


def _show(console: Console, fact: dict[str, Any]) -> None:
    yes_no = {True: "yes", False: "no"}
    rows = [
        ("signature", f"{fact['name']}{fact['signature']}"),
        ("kernels, slowest first", ", ".join(fact["kernels"]) or "none: its body runs"),
        ("gradient of its own", yes_no[fact["gradient"]]),
        ("in-place form", yes_no[fact["in_place"]]),
        ("body of other ops", yes_no[fact["body"]]),
    ]
    console.table(fact["name"], ("what", "value"), rows, text=True)
    console.text(fact["help"])
