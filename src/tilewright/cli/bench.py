"""`tilewright bench`: comparisons with the peers that are installed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import tilewright as tw
from tilewright.bench import loader, matmul, memory, overhead, pointwise, scheduler, train
from tilewright.bench.harness import OURS, Case, Result, Timing, run_cases
from tilewright.bench.peers import PEERS, load_peers, versions
from tilewright.cli import arguments
from tilewright.cli.console import Console, format_seconds
from tilewright.cli.picture import bars, check_plot
from tilewright.train import default_options, load_task

_ABOUT = {
    "matmul": "square products, 16 to 2048",
    "train": "an epoch of the main job",
    "loader": "batches from files and from memory",
    "overhead": "calls on tiny tensors",
    "pointwise": "add, relu, exp, sum up to 4096x4096",
    "scheduler": "10,000 tasks against the reference and Python's own executor",
    "memory": "10,000 allocations and frees; the peak of a deep network's training",
    "ladder": "the rungs of the matmul ladder among themselves",
}


def add_parser(commands: arguments.Subparsers) -> None:
    """Adds the command."""
    parser = arguments.add_parser(
        commands, "bench", run, "compare with PyTorch, NumPy and JAX, as far as they are installed"
    )
    about = "; ".join(f"{name}: {text}" for name, text in _ABOUT.items())
    parser.add_argument("what", choices=tuple(_ABOUT), help=about)
    parser.add_argument(
        "--sizes", metavar="N,N", type=_sizes, help="for matmul, ladder and pointwise"
    )
    parser.add_argument(
        "--peers", metavar="A,B", type=_peers, default=PEERS, help="default: torch,numpy,jax"
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="train, loader: MNIST's folder; without it the embedded digits",
    )
    arguments.add_threads(parser)
    arguments.add_plot(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the comparison and reports it."""
    check_plot(args.plot)
    console = Console(args.json)
    if args.threads:
        tw.set_num_threads(args.threads)
    threads = tw.get_num_threads()
    peers = load_peers(() if args.what in ("ladder", "scheduler") else args.peers, threads)
    machine = {
        "isa": tw._core.cpu_info()["active_isa"],
        "threads": threads,
        "tilewright": tw.__version__,
        **versions(peers),
    }
    console.line(", ".join(f"{key} {value}" for key, value in machine.items()))
    results = []
    for result in run_cases(_cases(args, peers), settle=threads > 1):
        results.append(result)
        console.line(_progress(result))
    console.table(f"bench {args.what}", *_table(results))
    report = {"machine": machine, "results": [result.as_dict() for result in results]}
    if args.what == "memory":
        report |= memory.report_peaks(console, peers)
    console.json(report)
    _draw(console, args, results)
    return 0


def _cases(args: argparse.Namespace, peers: dict[str, Any]) -> Iterator[Case]:
    sizes = {"sizes": args.sizes} if args.sizes else {}
    name = "mnist" if args.data else "digits"
    makers: dict[str, Callable[[], Iterator[Case]]] = {
        "matmul": lambda: matmul.matmul_cases(peers, **sizes),
        "ladder": lambda: matmul.ladder_cases(**sizes),
        "pointwise": lambda: pointwise.pointwise_cases(peers, **sizes),
        "overhead": lambda: overhead.overhead_cases(peers),
        "scheduler": scheduler.scheduler_cases,
        "memory": lambda: memory.pool_cases(peers),
        "loader": lambda: loader.loader_cases(peers, load_task(name, args.data)),
        "train": lambda: train.train_cases(
            peers, load_task(name, args.data), default_options(name)
        ),
    }
    return makers[args.what]()


def _progress(result: Result) -> str:
    ours = format_seconds(result.timings[OURS].median_s)
    if result.best_peer is None:
        return f"{result.name}: {ours}"
    return f"{result.name}: {ours}, {result.ratio:.2f}x {result.best_peer}"


def _table(results: list[Result]) -> tuple[list[str], list[list[str]]]:
    names = list(dict.fromkeys(name for result in results for name in result.timings))
    published = list(dict.fromkeys(name for result in results for name in result.published))
    unit = next((result.unit for result in results if result.unit), "")
    columns = [
        "case",
        *(f"{name} (p95)" for name in names),
        *([f"{unit}/s"] if unit else []),
        "ratio",
        *(f"published: {name}" for name in published),
    ]
    rows = []
    for result in results:
        cells = [_cell(result.timings.get(name)) for name in names]
        if unit:
            cells.append(f"{result.work / result.timings[OURS].median_s:,.4g}")
        cells.append("" if result.best_peer is None else f"{result.ratio:.2f}x")
        for name in published:
            known = result.published.get(name)
            cells.append("-" if known is None else format_seconds(known))
        rows.append([result.name, *cells])
    return columns, rows


def _cell(timing: Timing | None) -> str:
    if timing is None:
        return "-"
    return f"{format_seconds(timing.median_s)} ({format_seconds(timing.p95_s)})"


def _draw(console: Console, args: argparse.Namespace, results: list[Result]) -> None:
    compared = [result for result in results if result.best_peer]
    if not args.plot or not compared:
        return
    labels = [f"{result.name} / {result.best_peer}" for result in compared]
    unit = "best peer's time over ours"
    bars(args.plot, f"bench {args.what}", unit, labels, [result.ratio for result in compared], 1.0)
    console.line(f"picture: {args.plot}")


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(arguments.positive(part) for part in text.split(","))


def _peers(text: str) -> tuple[str, ...]:
    names = tuple(text.split(",")) if text else ()
    for name in names:
        if name not in PEERS:
            raise argparse.ArgumentTypeError(f"no peer {name!r}; known: {', '.join(PEERS)}")
    return names
