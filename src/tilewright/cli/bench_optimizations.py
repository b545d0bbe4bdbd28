"""`tilewright bench optimizations`: what each row of the table of optimizations buys."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright.bench import optimizations
from tilewright.bench.conditions import conditions
from tilewright.bench.optimizations import Gain
from tilewright.cli import arguments
from tilewright.cli.console import Console, format_bytes, format_seconds
from tilewright.cli.kept_results import Saving
from tilewright.io.atomic import write_whole

_COLUMNS = ("optimization", "reason", "work", "on", "off", "gain", "95 %", "peak, on and off")
_POINTS = (
    "optimization", "work", "on_us", "off_us", "gain", "low", "high",
    "on_peak_bytes", "off_peak_bytes",
)  # fmt: skip


def add_parser(comparisons: arguments.Subparsers) -> None:
    """Adds the comparison."""
    parser = arguments.add_parser(
        comparisons, "optimizations", run, "work with each optimization on and off, by turns"
    )
    parser.add_argument(
        "--only",
        metavar="A,B",
        type=arguments.texts,
        default=(),
        help="names of tw.optimizations.table(), or its reasons (default: all)",
    )
    parser.add_argument(
        "--csv", metavar="FILE", help="write the gains: a line a piece of work, with both times"
    )
    arguments.add_threads(parser)
    arguments.add_save(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the comparison and reports it."""
    if args.csv:
        arguments.check_target("--csv", args.csv)
    saving = Saving(args.save)
    console = Console.of(args)
    if args.threads:
        tw.set_num_threads(args.threads)
    chosen = _chosen(args.only)
    known = conditions(tw.get_num_threads())
    console.line(arguments.conditions_text(known))
    found = []
    for gain in optimizations.gains(chosen, known["threads"]):
        console.line(_progress(gain))
        found.append(gain)
    console.table("bench optimizations", _COLUMNS, [_cells(gain) for gain in found])
    console.text("gain: time without the optimization over time with it")
    console.json({"conditions": known, "results": [gain.as_dict() for gain in found]})
    rows = {f"{gain.name}: {gain.work}": gain.on for gain in found if gain.on}
    saving.write(console, "optimizations", known["threads"], rows)
    if args.csv:
        write_whole(args.csv, _points(known, found).encode(), "--csv")
        console.line(f"gains: {args.csv}")
    return 0


def _chosen(only: Sequence[str]) -> list[tw.optimizations.Optimization]:
    table = tw.optimizations.table()
    for word in only:
        if word not in tw.optimizations.REASONS and all(row.name != word for row in table):
            known = [row.name for row in table]
            raise ValueError(f"bench optimizations: --only: {_unknown(word, known)}")
    return [row for row in table if not only or row.name in only or row.reason in only]


def _unknown(word: str, known: Sequence[str]) -> str:
    return tw.optimizations.unknown(word, [*known, *tw.optimizations.REASONS])


def _progress(gain: Gain) -> str:
    if gain.gain is None:
        return f"{gain.name}: {gain.work or 'no work'}: {gain.skipped}"
    assert gain.on
    seconds = format_seconds(gain.on.median_s)
    return f"{gain.name}: {gain.work}: {seconds}, {gain.gain.value:.2f}x"


def _cells(gain: Gain) -> list[str]:
    cells = [gain.name, gain.reason, gain.work]
    if gain.gain is None:
        return [*cells, "-", "-", "-", gain.skipped, ""]
    assert gain.on
    assert gain.off
    cells += [format_seconds(timing.median_s) for timing in (gain.on, gain.off)]
    peak = ""
    if gain.peaks:
        on, off = gain.peaks
        peak = format_bytes(off) if on == off else f"{format_bytes(on)}, {format_bytes(off)}"
    return [*cells, f"{gain.gain.value:.2f}x", str(gain.gain), peak]


def _points(known: dict[str, Any], found: Sequence[Gain]) -> str:
    text = io.StringIO()
    text.write(f"# {json.dumps(known)}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_POINTS)
    for gain in found:
        if gain.gain is None or gain.on is None or gain.off is None:
            continue
        times = [f"{1e6 * timing.median_s:.4g}" for timing in (gain.on, gain.off)]
        ends = [f"{end:.3f}" for end in (gain.gain.value, gain.gain.low, gain.gain.high)]
        writer.writerow([gain.name, gain.work, *times, *ends, *(gain.peaks or ("", ""))])
    return text.getvalue()
