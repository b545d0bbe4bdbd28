"""`tilewright bench calls`: small calls, trainings, products and convolutions, of two builds."""

from __future__ import annotations

import argparse

import tilewright as tw
from tilewright.bench import builds, shapes, small_calls
from tilewright.bench.networks import convolution
from tilewright.cli import arguments
from tilewright.cli.console import Console, format_timing

_PAIRS = 3
_CASES = {
    "calls": lambda: [call.name for call in small_calls.CALLS],
    "trainings": lambda: list(small_calls.TRAININGS),
    "products": lambda: [shape.name for shape in shapes.FULL.shapes()],
    "convolutions": lambda: [
        convolution.case_name(layer, part)
        for layer in convolution.TABLE
        for part in convolution.PARTS
    ],
}


def add_parser(comparisons: arguments.Subparsers) -> None:
    """Adds the comparison."""
    parser = arguments.add_parser(
        comparisons, "calls", run, "small calls and more, against an earlier build"
    )
    parser.add_argument(
        "--before",
        metavar="BUILD",
        help="the earlier build: its Python, or the folder that its package lies in "
        "(default: times alone)",
    )
    parser.add_argument(
        "--cases",
        choices=tuple(_CASES),
        default="calls",
        help="small calls, steps of four trainings, the products of `bench matmul --map --full`, "
        "or the convolutions of `bench convolution` (default: calls)",
    )
    parser.add_argument(
        "--only",
        metavar="A,B",
        type=arguments.texts,
        default=(),
        help="names that hold one of these",
    )
    parser.add_argument(
        "--pairs",
        metavar="N",
        type=arguments.positive,
        default=_PAIRS,
        help=f"so often, each time in fresh processes (default: {_PAIRS})",
    )
    arguments.add_threads(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the comparison and reports it."""
    console = Console.of(args)
    threads = args.threads or tw.get_num_threads()
    pairs = args.pairs if args.before else 1
    names = [
        name
        for name in _CASES[args.cases]()
        if not args.only or any(part in name for part in args.only)
    ]
    if not names:
        raise ValueError(
            f"bench calls: --only {','.join(args.only)} names none of the {args.cases}"
        )

    def tell(pair: int, told: list[str]) -> None:
        console.line(f"{pair + 1} of {pairs}, {threads} threads: {' against '.join(told)}")

    results = builds.times(names, args.before, threads, pairs, tell)
    console.table("bench calls", *_table(results, bool(args.before)))
    for line in _summary(results):
        console.line(line)
    console.json(
        {
            "threads": threads,
            "isa": tw.active_isa(),
            "results": [result.as_dict() for result in results],
            "geometric_mean": builds.mean_ratio(results),
            "slower": [result.name for result in results if result.is_slower],
        }
    )
    return 0


def _table(results: list[builds.Compared], is_compared: bool) -> tuple[list[str], list[list[str]]]:
    columns = ["call", "now (p95)"]
    if is_compared:
        columns += ["before (p95)", "now / before", "least to most", ""]
    rows = []
    for result in results:
        cells = [result.name, format_timing(result.now)]
        if is_compared and result.ratios:
            spread = f"{min(result.ratios):.3f} to {max(result.ratios):.3f}"
            mark = f"above {builds.SLOWER}" if result.is_slower else ""
            cells += [format_timing(result.before), f"{result.ratio:.3f}", spread, mark]
        elif is_compared:
            cells += ["-", "-", "-", result.missing]
        rows.append(cells)
    return columns, rows


def _summary(results: list[builds.Compared]) -> list[str]:
    ratios = [result.ratio for result in results if result.ratios]
    if not ratios:
        return []
    slower = [result.name for result in results if result.is_slower]
    told = f"{len(slower)} above {builds.SLOWER}" + (f": {', '.join(slower)}" if slower else "")
    return [
        f"geometric mean {builds.mean_ratio(results):.3f} of {len(ratios)}, "
        f"from {min(ratios):.3f} to {max(ratios):.3f}; {told}"
    ]
