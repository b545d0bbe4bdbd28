"""`tilewright bench compare`: two saved results, or two installed builds by turns."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import tilewright as tw
from tilewright.bench import builds, saved
from tilewright.bench.intervals import median_interval
from tilewright.bench.saved import Change
from tilewright.cli import arguments, bench_calls
from tilewright.cli.console import Console, format_timing

# So many make an interval of 95 %.
_PAIRS = 6
_COLUMNS = ("case", "old (p95)", "new (p95)", "new / old", "95 %", "verdict")


def add_parser(comparisons: arguments.Subparsers) -> None:
    """Adds the comparison."""
    parser = arguments.add_parser(
        comparisons, "compare", run, "two saved results, or two builds: fails where one is slower"
    )
    for name in ("old", "new"):
        parser.add_argument(
            name,
            metavar=name.upper(),
            help="what --save wrote, by its NAME or FILE; or a build: its Python, or the folder "
            "that its package lies in",
        )
    parser.add_argument(
        "--margin",
        metavar="X",
        type=arguments.not_negative,
        default=saved.MARGIN,
        help="a case is slower where its interval lies above 1 + X; processes differ by so much "
        f"with the same instructions (default: {saved.MARGIN})",
    )
    parser.add_argument(
        "--unlike",
        action="store_true",
        help="compare results of unlike machines, threads or benchmarks too",
    )
    bench_calls.add_cases(parser, "of builds: ")
    parser.add_argument(
        "--pairs",
        metavar="N",
        type=arguments.positive,
        default=_PAIRS,
        help=f"of builds: so often, each time in fresh processes (default: {_PAIRS})",
    )
    arguments.add_threads(parser)


def run(args: argparse.Namespace) -> int:
    """Compares and reports; 1 where a case is slower."""
    console = Console.of(args)
    files = [saved.path_of(name) for name in (args.old, args.new)]
    are_saved = _is_saved(args.old, files[0]), _is_saved(args.new, files[1])
    if are_saved[0] != are_saved[1]:
        raise ValueError("bench compare: one is a saved result and the other a build")
    found = _of_saved(console, args, files) if are_saved[0] else _of_builds(console, args)
    verdicts = {change.name: change.verdict(args.margin) for change in found}
    slower = [name for name, verdict in verdicts.items() if verdict == "slower"]
    console.table("bench compare", _COLUMNS, [_cells(change, args.margin) for change in found])
    console.text(_summary(found, verdicts, args.margin))
    console.json(
        {
            "margin": args.margin,
            "results": [change.as_dict(args.margin) for change in found],
            "geometric_mean": saved.mean_ratio(found),
            "slower": slower,
        }
    )
    return 1 if slower else 0


def _is_saved(name: str, file: Path) -> bool:
    """Whether it is a file of results; else it must be a build."""
    if file.is_file() and file.suffix == ".json":
        return True
    if name.endswith(".json") or not Path(name).exists():
        raise FileNotFoundError(f"bench compare: no saved result {file}, and no build {name}")
    return False


def _of_saved(console: Console, args: argparse.Namespace, files: Sequence[Path]) -> list[Change]:
    old, new = map(saved.read, files)
    for role, each in (("old", old), ("new", new)):
        console.line(f"{role}: {each.text}")
    if differences := saved.unlike(old, new):
        told = "; ".join(differences)
        if not args.unlike:
            raise ValueError(f"bench compare: {told}: such times say nothing; --unlike compares")
        console.line(f"UNLIKE: {told}")
    return saved.changes(old, new)


def _of_builds(console: Console, args: argparse.Namespace) -> list[Change]:
    names = bench_calls.chosen(args, "bench compare")
    threads = args.threads or tw.get_num_threads()

    def tell(pair: int, told: list[str]) -> None:
        console.line(f"{pair + 1} of {args.pairs}, {threads} threads: {' against '.join(told)}")

    results = builds.times(names, args.old, threads, args.pairs, tell, now=args.new)
    return [_change(result) for result in results]


def _change(result: builds.Compared) -> Change:
    ratio = median_interval(result.ratios) if result.ratios else None
    return Change(result.name, result.before, result.now, ratio, result.missing)


def _cells(change: Change, margin: float) -> list[str]:
    ratio = "-" if change.ratio is None else f"{change.ratio.value:.3f}"
    ends = "-"
    if change.ratio:
        ends = f"{change.ratio.low:.3f} to {change.ratio.high:.3f}"
    times = [format_timing(timing) for timing in (change.old, change.new)]
    return [change.name, *times, ratio, ends, change.verdict(margin)]


def _summary(found: Sequence[Change], verdicts: dict[str, str], margin: float) -> str:
    counts = {
        verdict: sum(each == verdict for each in verdicts.values())
        for verdict in ("slower", "faster", "same")
    }
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    others = len(found) - sum(counts.values())
    told += f", {others} without a pair" if others else ""
    return f"geometric mean {saved.mean_ratio(found):.3f}; {told} (margin {margin:g})"
