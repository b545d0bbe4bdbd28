"""`tilewright bench`: comparisons with the peers that are installed."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import tilewright as tw
from tilewright._report.html.sections import Text
from tilewright.bench import (
    allocation,
    loader,
    memory,
    networks,
    ops,
    overhead,
    pointwise,
    scheduler,
    threads,
    train,
)
from tilewright.bench.harness import OURS, Case, Result, run_cases
from tilewright.bench.networks import convolution
from tilewright.bench.peers import PEERS, Peers, load_peers
from tilewright.bench.points import Points, read_points, write_points
from tilewright.cli import arguments, bench_calls, bench_gpu, bench_matmul
from tilewright.cli.console import Console, format_seconds, format_timing
from tilewright.cli.kept_results import KeptResults
from tilewright.cli.page_sections import of_comparison
from tilewright.cli.picture import bars, check_plot
from tilewright.cli.picture_layers import draw_layers
from tilewright.cli.picture_ops import draw_ops
from tilewright.train import Task, default_options, load_images

_ABOUT = {
    "matmul": "products: the ladder, sizes against the peers, threads, and a map of shapes",
    "ladder": "the rungs of the matmul ladder among themselves",
    "train": "an epoch of the main job",
    "loader": "batches from files and from memory",
    "overhead": "calls on tiny tensors",
    "ops": "all ops that a peer has too: sizes, layouts, element types, with and without gradients",
    "pointwise": "add, relu, exp and sums up to 4096x4096",
    "networks": "layers and training steps of networks, forward and backward",
    "layers": "the convolutions of ResNet-18, ResNet-50 and MobileNetV2, forward and backward",
    "rungs": "the choice among the rungs of convolutions, for the layers of ResNets",
    "threads": "products after a rest, behind another library's threads, beside other processes",
    "scheduler": "10,000 tasks against the reference and Python's own executor",
    "memory": "10,000 allocations and frees; the peak of a deep network's training",
}
_PRODUCTS = ("matmul", "ladder")
# Who has something to compare with; a peer that takes no part is not loaded.
_TAKE_PART: dict[str, tuple[str, ...]] = {
    "train": ("torch", "jax"),
    "loader": ("torch",),
    "overhead": ("torch", "numpy"),
    "ops": PEERS,
    "pointwise": PEERS,
    "networks": ("torch", "jax"),
    "layers": ("torch", "jax"),
    "rungs": (),
    "threads": ("torch", "numpy"),
    "scheduler": (),
    "memory": ("torch",),
}
# A ratio of a single run below this is more than noise.
_LOST = 0.9
# What is kept as a record of a machine: cases that peers have too.
_KEPT_AS_POINTS = ("ops", "pointwise", "overhead", "networks", "layers")
_ALLOCATION_OF = {
    "ops": allocation.DEFAULT,
    "pointwise": allocation.BOTH,
    "networks": allocation.BOTH,
    "layers": allocation.BOTH,
    "train": allocation.DEFAULT,
}


def add_parser(commands: arguments.Subparsers) -> None:
    """Adds the command, with a command below it for each comparison."""
    about = "compare with PyTorch, NumPy and JAX, as far as they are installed"
    parser = commands.add_parser("bench", help=about, description=f"{about[0].upper()}{about[1:]}.")
    comparisons = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    for name, text in _ABOUT.items():
        _add_comparison(comparisons, name, text)
    bench_calls.add_parser(comparisons)
    bench_gpu.add_parser(comparisons)


def _add_comparison(comparisons: arguments.Subparsers, name: str, text: str) -> None:
    command = bench_matmul.run if name in _PRODUCTS else run
    parser = arguments.add_parser(comparisons, name, command, text)
    if name in _PRODUCTS:
        bench_matmul.add_options(parser, name)
    if name in ("pointwise", "threads"):
        parser.add_argument("--sizes", metavar="N,N", type=arguments.sizes, help="sides of squares")
    if name == "networks":
        parser.add_argument(
            "--families",
            metavar="A,B",
            type=arguments.families,
            default=networks.FAMILIES,
            help=f"which of {', '.join(networks.FAMILIES)} (default: all)",
        )
    if name == "ops":
        _add_ops_options(parser)
    if name in ("layers", "rungs"):
        parser.add_argument(
            "--batches",
            metavar="N,N",
            type=arguments.sizes,
            default=convolution.BATCHES,
            help="images a call (default: 1,8,32)",
        )
    if name == "rungs":
        parser.add_argument(
            "--precision",
            choices=("highest", "high"),
            default="highest",
            help="as set_float32_matmul_precision takes it: which rungs may be chosen",
        )
    if name in ("train", "loader"):
        parser.add_argument(
            "--data", metavar="DIR", help="MNIST's folder; without it the embedded digits"
        )
    if name in _ALLOCATION_OF:
        default = _ALLOCATION_OF[name]
        parser.add_argument(
            "--allocation",
            choices=allocation.ALLOCATIONS,
            default=default,
            help="memory of large results from the system each time, kept by malloc "
            f"(tuned, a fresh process), or both one after the other (default: {default})",
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
    if name in _KEPT_AS_POINTS:
        arguments.add_points(parser)


def _add_ops_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ops", metavar="A,B", type=arguments.texts, default=(), help="these only (default: all)"
    )
    for name, known, text in (
        ("--layouts", ops.LAYOUTS, "how arguments lie; row and column: the second one repeats"),
        ("--dtypes", ops.DTYPES, "element types"),
    ):
        parser.add_argument(
            name,
            metavar="A,B",
            type=partial(arguments.names, known=known),
            help=f"{text} (default: {','.join(known)})",
        )
    parser.add_argument(
        "--sizes",
        metavar="N,N",
        type=arguments.sizes,
        help=f"sides of squares; {ops.SIZES[0]}: so many elements "
        f"(default: {','.join(map(str, ops.SIZES))})",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="float32 only, two sizes and two layouts: about ten minutes",
    )
    parser.add_argument(
        "--resume",
        metavar="FILE",
        help="keep results in FILE, one a line, as they come; those that it has are not run again",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the comparison and reports it."""
    check_plot(args.plot)
    if getattr(args, "csv", None):
        arguments.check_target("--csv", args.csv)
    console = Console.of(args)
    if getattr(args, "from_csv", None):
        return _report_points(console, args)
    if args.threads:
        tw.set_num_threads(args.threads)
    count = tw.get_num_threads()
    chosen = getattr(args, "allocation", allocation.DEFAULT)
    names = [name for name in args.peers if name in _TAKE_PART[args.what]]
    peers = load_peers(names, count, allocation.start_of(chosen), args.whole_process)
    heading = list(peers.heading())
    for line in heading:
        console.line(line)
    console.on_page(Text("Conditions", "\n".join(heading)))
    kept = KeptResults(getattr(args, "resume", None))
    results = kept.results
    for result in run_cases(_cases(args, peers.modules, kept.names), settle=count > 1):
        kept.add(result)
        console.line(_progress(result))
    report: dict[str, Any] = {"machine": peers.conditions(), "allocation": chosen}
    tuned = _tuned(args, console, peers) if chosen == allocation.BOTH else {}
    report["results"] = _print_tables(
        console, args.what, peers.label, peers.footing(), results, tuned
    )
    if args.what == "rungs":
        console.line(convolution.rungs_missed(results))
    if args.what == "memory":
        report |= _report_peaks(console, peers.modules)
    console.json(report)
    if getattr(args, "csv", None):
        known = {"machine": report["machine"], "allocation": chosen}
        write_points(args.csv, Points(known, results, tuned))
        console.line(f"points: {args.csv}")
    _draw(console, args, results)
    return 0


def _report_points(console: Console, args: argparse.Namespace) -> int:
    """Prints and draws points that were measured before."""
    points = read_points(args.from_csv)
    conditions = arguments.conditions_text(points.conditions)
    console.line(conditions)
    console.on_page(Text("Conditions", conditions))
    rows = _print_tables(console, args.what, str, [], points.results, points.tuned)
    console.json(points.conditions | {"results": rows})
    _draw(console, args, points.results)
    return 0


def _tuned(args: argparse.Namespace, console: Console, peers: Peers) -> dict[str, Result]:
    """The same in a fresh process in which malloc keeps its memory; nothing where it cannot."""
    if not allocation.can_be_tuned() or not peers.modules:
        return {}
    console.line("the same with tuned allocation, in a fresh process")
    options = ["--threads", str(peers.threads), "--peers", ",".join(peers.modules)]
    if getattr(args, "sizes", None):
        options += ["--sizes", ",".join(map(str, args.sizes))]
    if getattr(args, "families", None):
        options += ["--families", ",".join(args.families)]
    for name in ("ops", "layouts", "dtypes", "batches"):
        if getattr(args, name, None):
            options += [f"--{name}", ",".join(map(str, getattr(args, name)))]
    options += ["--quick"] * getattr(args, "quick", False)
    if getattr(args, "data", None):
        options += ["--data", args.data]
    found = allocation.run_tuned([args.what, *options])["results"]
    return {each["name"]: Result.from_dict(each) for each in found}


def _print_tables(
    console: Console,
    what: str,
    label: Callable[[str], str],
    footing: Sequence[str],
    results: list[Result],
    tuned: Mapping[str, Result],
) -> list[dict[str, Any]]:
    """Prints the tables; gives the results for JSON."""
    tables = [(f"bench {what}", results, tuned)]
    if tuned:
        tables.append((f"bench {what}, allocation tuned", list(tuned.values()), {}))
    for title, rows, beside in tables:
        console.table(title, *_table(rows, label, beside))
        console.on_page(*of_comparison(title, rows))
        for line in footing:
            console.line(line)
        compared = [result.ratio for result in rows if result.best_peer]
        if compared and what in _KEPT_AS_POINTS:
            console.line(_summary(compared))
        console.line()
    return [
        result.as_dict() | ({"tuned": tuned[result.name].as_dict()} if result.name in tuned else {})
        for result in results
    ]


def _summary(ratios: Sequence[float]) -> str:
    """All cases in a line."""
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    lost = sum(ratio < _LOST for ratio in ratios)
    return (
        f"{len(ratios)} cases against the best peer: geometric mean {mean:.2f}x, "
        f"{lost} below {_LOST}, the least {min(ratios):.2f}x"
    )


def _op_cases(
    args: argparse.Namespace, peers: dict[str, Any], done: frozenset[str]
) -> Iterator[Case]:
    sizes, layouts, dtypes = (
        (ops.QUICK_SIZES, ops.QUICK_LAYOUTS, ops.QUICK_DTYPES)
        if args.quick
        else (ops.SIZES, ops.LAYOUTS, ops.DTYPES)
    )
    return ops.op_cases(
        peers,
        args.ops,
        args.sizes or sizes,
        args.layouts or layouts,
        args.dtypes or dtypes,
        done,
    )


def _cases(args: argparse.Namespace, peers: dict[str, Any], done: frozenset[str]) -> Iterator[Case]:
    makers: dict[str, Callable[[], Iterator[Case]]] = {
        "pointwise": lambda: pointwise.pointwise_cases(peers, args.sizes or pointwise.SIZES),
        "overhead": lambda: overhead.overhead_cases(peers),
        "ops": lambda: _op_cases(args, peers, done),
        "networks": lambda: networks.network_cases(peers, args.families),
        "layers": lambda: convolution.layer_cases(peers, args.batches),
        "rungs": lambda: convolution.rung_cases(args.batches, args.precision),
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
    return load_images(_task_name(args), args.data)


def _progress(result: Result) -> str:
    ours = format_seconds(result.timings[OURS].median_s)
    if result.best_peer is None:
        return f"{result.name}: {ours}"
    return f"{result.name}: {ours}, {result.ratio:.2f}x {result.best_peer}"


def _table(
    results: list[Result], label: Callable[[str], str], tuned: Mapping[str, Result]
) -> tuple[list[str], list[list[str]]]:
    """A row for each case; `tuned` holds the same cases with the other allocation."""
    names = list(dict.fromkeys(name for result in results for name in result.timings))
    peers = [name for name in names if name != OURS]
    published = list(dict.fromkeys(name for result in results for name in result.published))
    unit = next((result.unit for result in results if result.unit), "")
    columns = [
        "case",
        *(f"{label(name)} (p95)" for name in names),
        *([f"{unit}/s"] if unit else []),
        *(f"/ {label(name)}" for name in peers),
        "best",
        *(["best, tuned"] if tuned else []),
        *(f"published: {name}" for name in published),
    ]
    rows = []
    for result in results:
        cells = [format_timing(result.timings.get(name)) for name in names]
        if unit:
            cells.append(f"{result.rate(OURS):,.4g}")
        cells += [_ratio(result.ratios.get(name)) for name in peers]
        cells.append(_ratio(result.ratio if result.best_peer else None))
        if tuned:
            cells.append(_ratio(tuned[result.name].ratio if result.name in tuned else None))
        for name in published:
            known = result.published.get(name)
            cells.append("-" if known is None else format_seconds(known))
        rows.append([result.name, *cells])
    return columns, rows


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def _draw(console: Console, args: argparse.Namespace, results: list[Result]) -> None:
    compared = [result for result in results if result.best_peer]
    if not args.plot or not compared:
        return
    if args.what in ("layers", "ops"):
        if args.what == "layers":
            draw_layers(args.plot, compared, args.batches)
        else:
            draw_ops(args.plot, compared)
        console.line(f"picture: {args.plot}")
        return
    labels = [f"{result.name} / {result.best_peer}" for result in compared]
    unit = "best peer's time over ours"
    bars(args.plot, f"bench {args.what}", unit, labels, [result.ratio for result in compared], 1.0)
    console.line(f"picture: {args.plot}")


def _report_peaks(console: Console, peers: dict[str, Any]) -> dict[str, Any]:
    """Measures and prints both; what `bench memory` adds to the pool's cases."""
    ways = memory.WAYS if "torch" in peers else memory.WAYS[:-1]
    found = []
    for peak in memory.peaks(ways):
        found.append(peak)
        console.line(f"{peak.way}: {peak.peak_bytes / 2**20:,.0f} MiB")
    torch = next((peak for peak in found if peak.way == "torch"), None)
    rows = [[peak.way, *_peak_cells(peak, torch)] for peak in found]
    console.table(
        "peak resident memory: {2} layers of {1}, batch {0}, SGD".format(*memory.SIZES),
        ["way", "MiB", "of torch's", "above start, MiB", "of torch's"],
        rows,
    )
    report = memory.step_report("torch" in peers, memory.SIZES)
    console.table("memory of one step", report.columns(), report.rows())
    return {"peaks": [vars(peak) for peak in found], "step": dict(report)}


def _peak_cells(peak: memory.Peak, torch: memory.Peak | None) -> list[str]:
    cells = []
    for name in ("peak_bytes", "grown_bytes"):
        figure = getattr(peak, name)
        cells.append(f"{figure / 2**20:,.0f}")
        cells.append(f"{figure / getattr(torch, name):.2f}" if torch else "-")
    return cells
