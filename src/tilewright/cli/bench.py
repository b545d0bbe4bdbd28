"""`tilewright bench`: comparisons with the peers that are installed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import tilewright as tw
from tilewright.bench import loader, memory, overhead, pointwise, scheduler, threads, train
from tilewright.bench.harness import OURS, Case, Result, run_cases
from tilewright.bench.peers import PEERS, conditions, load_peers
from tilewright.cli import arguments, bench_matmul
from tilewright.cli.console import Console, format_seconds, format_timing
from tilewright.cli.picture import bars, check_plot
from tilewright.train import Task, default_options, load_task

_ABOUT = {
    "matmul": "products: the ladder, sizes against the peers, threads, and a map of shapes",
    "ladder": "the rungs of the matmul ladder among themselves",
    "train": "an epoch of the main job",
    "loader": "batches from files and from memory",
    "overhead": "calls on tiny tensors",
    "pointwise": "add, relu, exp, sum up to 4096x4096",
    "threads": "products after a rest, behind another library's threads, beside other processes",
    "scheduler": "10,000 tasks against the reference and Python's own executor",
    "memory": "10,000 allocations and frees; the peak of a deep network's training",
}
_PRODUCTS = ("matmul", "ladder")


def add_parser(commands: arguments.Subparsers) -> None:
    """Adds the command, with a command below it for each comparison."""
    about = "compare with PyTorch, NumPy and JAX, as far as they are installed"
    parser = commands.add_parser("bench", help=about, description=f"{about[0].upper()}{about[1:]}.")
    comparisons = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    for name, text in _ABOUT.items():
        _add_comparison(comparisons, name, text)


def _add_comparison(comparisons: arguments.Subparsers, name: str, text: str) -> None:
    command = bench_matmul.run if name in _PRODUCTS else run
    parser = arguments.add_parser(comparisons, name, command, text)
    if name in _PRODUCTS:
        bench_matmul.add_options(parser, name)
    if name in ("pointwise", "threads"):
        parser.add_argument("--sizes", metavar="N,N", type=arguments.sizes, help="sides of squares")
    if name in ("train", "loader"):
        parser.add_argument(
            "--data", metavar="DIR", help="MNIST's folder; without it the embedded digits"
        )
    parser.add_argument(
        "--peers",
        metavar="A,B",
        type=arguments.peers,
        default=PEERS,
        help="with whom, where peers take part (default: torch,numpy,jax)",
    )
    arguments.add_threads(parser)
    arguments.add_plot(parser, bench_matmul.PLOT_HELP if name in _PRODUCTS else "")


def run(args: argparse.Namespace) -> int:
    """Runs the comparison and reports it."""
    check_plot(args.plot)
    console = Console(args.json)
    if args.threads:
        tw.set_num_threads(args.threads)
    count = tw.get_num_threads()
    peers = load_peers(() if args.what == "scheduler" else args.peers, count)
    machine = conditions(peers)
    console.line(", ".join(f"{key} {value}" for key, value in machine.items()))
    results = []
    for result in run_cases(_cases(args, peers), settle=count > 1):
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
    makers: dict[str, Callable[[], Iterator[Case]]] = {
        "pointwise": lambda: pointwise.pointwise_cases(peers, args.sizes or pointwise.SIZES),
        "overhead": lambda: overhead.overhead_cases(peers),
        "threads": lambda: threads.thread_cases(peers, args.sizes or threads.SIZES),
        "scheduler": scheduler.scheduler_cases,
        "memory": lambda: memory.pool_cases(peers),
        "loader": lambda: loader.loader_cases(peers, _task(args)),
        "train": lambda: train.train_cases(peers, _task(args), default_options(_task_name(args))),
    }
    return makers[args.what]()


def _task_name(args: argparse.Namespace) -> str:
    return "mnist" if args.data else "digits"


def _task(args: argparse.Namespace) -> Task:
    return load_task(_task_name(args), args.data)


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
        cells = [format_timing(result.timings.get(name)) for name in names]
        if unit:
            cells.append(f"{result.work / result.timings[OURS].median_s:,.4g}")
        cells.append("" if result.best_peer is None else f"{result.ratio:.2f}x")
        for name in published:
            known = result.published.get(name)
            cells.append("-" if known is None else format_seconds(known))
        rows.append([result.name, *cells])
    return columns, rows


def _draw(console: Console, args: argparse.Namespace, results: list[Result]) -> None:
    compared = [result for result in results if result.best_peer]
    if not args.plot or not compared:
        return
    labels = [f"{result.name} / {result.best_peer}" for result in compared]
    unit = "best peer's time over ours"
    bars(args.plot, f"bench {args.what}", unit, labels, [result.ratio for result in compared], 1.0)
    console.line(f"picture: {args.plot}")
