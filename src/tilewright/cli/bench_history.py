"""`tilewright bench history`: a folder of saved results over time."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tilewright.bench import saved
from tilewright.bench.saved import Saved
from tilewright.cli import arguments
from tilewright.cli.console import Console
from tilewright.cli.picture import check_plot
from tilewright.cli.picture_history import draw_history

_COLUMNS = ("result", "version", "date", "cases", "/ first", "/ last", "slower", "faster")


def add_parser(comparisons: arguments.Subparsers) -> None:
    """Adds the command."""
    parser = arguments.add_parser(
        comparisons, "history", run, "a folder of saved results over time, one table a machine"
    )
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        nargs="?",
        help="of files that --save has written (default: where its names lie)",
    )
    arguments.add_plot(parser)


def run(args: argparse.Namespace) -> int:
    """Prints and draws what the folder holds."""
    check_plot(args.plot)
    console = Console.of(args)
    place = args.folder or str(saved.folder())
    found, others = saved.read_folder(place)
    for name in others:
        console.line(f"left out: {name} is no saved result")
    if not found:
        raise ValueError(f"bench history: {place} holds no results that --save has written")
    groups = grouped(found)
    for group in groups:
        console.table(title(group), _COLUMNS, _rows(group))
    console.json({"groups": [_report(group) for group in groups]})
    if args.plot:
        draw_history(args.plot, [(title(group), group) for group in groups])
        console.line(f"picture: {args.plot}")
    return 0


def grouped(found: Sequence[Saved]) -> list[list[Saved]]:
    """Those that can be compared together."""
    groups: dict[tuple[object, ...], list[Saved]] = {}
    for each in found:
        groups.setdefault(each.kind, []).append(each)
    return list(groups.values())


def title(group: Sequence[Saved]) -> str:
    """What all of them share."""
    what, processor, isa, threads = group[0].kind
    return f"bench {what}: {processor}, {isa}, {threads} thread{'' if threads == 1 else 's'}"


def _rows(group: Sequence[Saved]) -> list[list[str]]:
    rows = []
    for at, each in enumerate(group):
        first, last = saved.changes(group[0], each), saved.changes(group[max(at - 1, 0)], each)
        verdicts = [change.verdict(saved.MARGIN) for change in last]
        rows.append(
            [
                each.place.rpartition("/")[2].removesuffix(".json"),
                str(each.conditions.get("version", "")),
                each.date,
                str(len(each.rows)),
                f"{saved.mean_ratio(first):.3f}",
                f"{saved.mean_ratio(last):.3f}" if at else "-",
                str(verdicts.count("slower")),
                str(verdicts.count("faster")),
            ]
        )
    return rows


def _report(group: Sequence[Saved]) -> dict[str, object]:
    return {
        "conditions": dict(zip(saved.ALIKE, group[0].kind, strict=True)),
        "results": [
            {
                "place": each.place,
                "version": each.conditions.get("version"),
                "date": each.date,
                "geometric_mean_to_first": saved.mean_ratio(saved.changes(group[0], each)),
                "median_s": {name: timing.median_s for name, timing in each.rows.items()},
            }
            for each in group
        ],
    }
