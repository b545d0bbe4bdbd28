"""`tilewright bench matmul` and `bench ladder`: validates, measures, reports."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import tilewright as tw
from tilewright._inspect.machine_peaks import matmul_flops
from tilewright.bench import matmul
from tilewright.bench.harness import (
    OURS,
    Case,
    Result,
    median_run,
    run_cases,
    wait_for_peers,
)
from tilewright.bench.peers import PEERS, Peers, load_peers
from tilewright.bench.points import Points, read_points, write_points
from tilewright.bench.shapes import FULL, QUICK, Plan, Shape, square
from tilewright.bench.validation import FAILING, PASSED, Check
from tilewright.cli import arguments, matmul_report, picture_matmul
from tilewright.cli.console import Bar, Console, progress_bar
from tilewright.cli.page_sections import of_comparison
from tilewright.cli.picture import check_plot

# Past every start-up cost. The time is enough for one round that others do not disturb.
_PEAK_SIZES, _PEAK_SECONDS = (512, 1024), 1.0
# Ours, one set a peer, and copies in float64 while they are checked.
_MATRICES = 12
# Threads are measured at this size or the largest below it; the picture of the ladder is of the
# nearest.
_TYPICAL_SIZE = 1024
_ROUNDS = 25
# A round has every thread count of every peer.
_THREAD_ROUNDS = 15

PLOT_HELP = ", a picture for each part: a.png gives a-ladder.png and so on"

_PARTS = ("ladder", "sizes", "threads")
_PRECISIONS = ("highest", "high", "medium")

# What the points of a map stand under.
_CONDITIONS = ("machine", "dtype", "runs", "peak_flops_per_s")

_Tell = Callable[[list[Check], list[Result]], None]


def add_options(parser: argparse.ArgumentParser, what: str) -> None:
    """The options of `matmul` and `ladder` beside those of all comparisons."""
    parser.add_argument(
        "--sizes", metavar="N,N", type=arguments.sizes, help="sides of squares (default: 8 to 2048)"
    )
    parser.add_argument(
        "--dtype", choices=matmul.DTYPES, default="float32", help="default: float32"
    )
    parser.add_argument(
        "--precision",
        choices=_PRECISIONS,
        default="highest",
        help="set_float32_matmul_precision, PyTorch's as well as ours (default: highest)",
    )
    if what == "ladder":
        parser.set_defaults(map=False, full=False, rounds=1, brief=None, rung="", parts=("ladder",))
        parser.set_defaults(csv=None, from_csv=None)
        return
    parser.add_argument(
        "--parts",
        metavar="A,B",
        type=_part_names,
        default=_PARTS,
        help=f"without --map (default: {','.join(_PARTS)}; threads only with several)",
    )
    parser.add_argument(
        "--rung",
        choices=tw.kernels.names("matmul"),
        default="",
        help="compare this rung with the peers (default: what the engine chooses)",
    )
    parser.add_argument(
        "--map", action="store_true", help="compare many shapes instead: a minute or two"
    )
    parser.add_argument(
        "--full", action="store_true", help="with --map: several hundred shapes, five times as long"
    )
    parser.add_argument(
        "--rounds",
        type=arguments.positive,
        default=1,
        metavar="N",
        help="with --map: go through all shapes N times; each shape's median run counts",
    )
    parser.add_argument(
        "--brief", metavar="FILE", help="with --map: JSON with a line for each shape"
    )
    arguments.add_points(parser, "--map")


def _part_names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in _PARTS:
            raise argparse.ArgumentTypeError(f"no part {name!r}; known: {', '.join(_PARTS)}")
    return names


def run(args: argparse.Namespace) -> int:
    """Validates, measures and reports; 1 where one of our products was wrong."""
    _check_arguments(args)
    for picture in _pictures(args) if args.plot else ():
        check_plot(picture_matmul.path_of(args.plot, picture))
    if args.brief:
        arguments.check_target("--brief", args.brief)
    if args.csv:
        arguments.check_target("--csv", args.csv)
    console = Console.of(args)
    if args.from_csv:
        return _report_points(console, args)
    if args.threads:
        tw.set_num_threads(args.threads)
    wanted = () if args.what == "ladder" else args.peers
    peers = load_peers(wanted, tw.get_num_threads(), program=args.whole_process)
    with progress_bar() as bar, _precision(args.precision, peers.modules):
        session = _Session(args, console, bar, peers)
        return session.run(_parts(session, args))


@contextmanager
def _precision(setting: str, modules: Mapping[str, Any]) -> Iterator[None]:
    """The same setting for all that have it."""
    own = (tw.get_float32_matmul_precision, tw.set_float32_matmul_precision)
    torch = modules.get("torch")
    theirs = (
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision) if torch else own
    )
    before = own[0](), theirs[0]()
    try:
        for _, setter in (own, theirs):
            setter(setting)
        yield
    finally:
        for (_, setter), value in zip((own, theirs), before, strict=True):
            setter(value)


def _parts(session: _Session, args: argparse.Namespace) -> list[_Part]:
    if args.map:
        return [session.map(FULL if args.full else QUICK, args.rounds)]
    sizes = sorted(set(args.sizes or matmul.SIZES))
    if args.what == "ladder":
        return [session.ladder(sizes, alone=True)]
    small = max((n for n in sizes if n <= _TYPICAL_SIZE), default=_TYPICAL_SIZE)
    makers: dict[str, Callable[[], _Part]] = {
        "ladder": lambda: session.ladder(sizes, alone=False),
        "sizes": lambda: session.squares(sizes),
        "threads": lambda: session.scaling(small),
    }
    found = [name for name in makers if name in args.parts]
    return [makers[name]() for name in found if name != "threads" or session.threads > 1]


def _pictures(args: argparse.Namespace) -> tuple[str, ...]:
    if args.map:
        return ("map", "shapes")
    return tuple(args.parts)


def _check_arguments(args: argparse.Namespace) -> None:
    if args.full and not args.map:
        raise ValueError("--full: only with --map, whose shapes it extends")
    if args.rounds > 1 and not args.map:
        raise ValueError("--rounds: only with --map")
    for option, value in (("brief", args.brief), ("csv", args.csv), ("from", args.from_csv)):
        if value and not args.map:
            raise ValueError(f"--{option}: only with --map")
    if args.map and args.sizes:
        raise ValueError("--sizes: not with --map, which has shapes of its own")
    largest = max(args.sizes or (1,))
    needed = _MATRICES * largest**2 * getattr(tw, args.dtype).itemsize
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > memory:
        raise ValueError(
            f"--sizes: {largest} needs about {needed / 2**30:,.0f} GiB, "
            f"and this machine has {memory / 2**30:,.0f} GiB"
        )


@dataclass
class _Part:
    """One comparison: what is checked, then timed, told and drawn."""

    name: str
    shapes: Sequence[Shape]
    validate: Callable[[], Iterator[Check]]
    cases: Callable[[list[Check]], Iterator[Case]]
    # Peers' threads spin for a while after a call.
    settle: bool
    tell: _Tell
    line: Callable[[Result], str] = matmul_report.progress
    # Times through all cases; of each case the median run is told.
    runs: int = 1


class _Session:
    """What the parts share: conditions, progress, and the report that grows."""

    def __init__(self, args: argparse.Namespace, console: Console, bar: Bar, peers: Peers) -> None:
        self.console, self.bar, self.loaded = console, bar, peers
        self.plot, self.brief, self.csv, self.rung = args.plot, args.brief, args.csv, args.rung
        self.dtype: tw.dtype = getattr(tw, args.dtype)
        self.threads, self.peers, self.peak = peers.threads, peers.modules, 0.0
        precision = tw.get_float32_matmul_precision()
        self.report: dict[str, Any] = {
            "machine": peers.conditions() | {"precision": precision},
            "dtype": args.dtype,
            "rung": args.rung or "as chosen",
            "runs": args.rounds,
            "results": [],
        }
        for line in (*peers.heading(), f"precision {precision}"):
            console.line(line)

    def run(self, parts: Sequence[_Part]) -> int:
        """First every validation, then the timings; 1 where a product of ours was wrong."""
        checks = {part.name: self._validate(part) for part in parts}
        wait_for_peers()
        self.peak = max(matmul_flops(n, self.dtype, _PEAK_SECONDS) for n in _PEAK_SIZES)
        self.console.line(f"peak, the best of our products: {self.peak / 1e9:,.1f} GFLOP/s")
        self.report["peak_flops_per_s"] = self.peak
        self.report["checks"] = [
            {"part": name, **check.as_dict()}
            for name, of_part in checks.items()
            for check in of_part
        ]
        for part in parts:
            part.tell(checks[part.name], self._time(part, checks[part.name]))
        self.console.json(self.report)
        failing = [
            check for of_part in checks.values() for check in of_part if _is_our_fault(check)
        ]
        return int(bool(failing))

    def _validate(self, part: _Part) -> list[Check]:
        places = {shape.name: i for i, shape in enumerate(part.shapes)}
        checks = []
        for check in part.validate():
            checks.append(check)
            self.bar.update(places[check.name], len(places), f"{part.name}: {check.name} checked")
            if check.status != PASSED:
                self.console.line(f"{check.name}: {matmul_report.verdict(check)}")
        matmul.set_threads(self.peers, self.threads)
        errors = [check.error.rms for check in checks if check.error]
        self.console.line(
            f"{part.name}: {len(errors)} products held against float64, "
            f"rms error up to {max(errors, default=0.0):.1e}"
        )
        return checks

    def _time(self, part: _Part, checks: list[Check]) -> list[Result]:
        runs: dict[str, list[Result]] = {}
        done, total = 0, part.runs * len(part.shapes)
        with matmul.free_choice():
            for run in range(part.runs):
                for result in run_cases(part.cases(checks), part.settle):
                    runs.setdefault(result.name, []).append(result)
                    done += 1
                    name = f"{part.name}: {result.name}"
                    self.bar.update(done, total, name)
                    of_runs = f"run {run + 1}, " if part.runs > 1 else ""
                    self.console.line(f"{of_runs}{name}: {part.line(result)}")
        matmul.set_threads(self.peers, self.threads)
        if part.runs == 1:
            return [result for results in runs.values() for result in results]
        return [median_run(results) for results in runs.values()]

    def _table(self, title: str, columns: list[str], cells: list[list[str]]) -> None:
        """One in which peers stand: with their kernels below."""
        self.console.table(title, columns, cells)
        for line in self.loaded.footing():
            self.console.line(line)
        self.console.line()

    def ladder(self, sizes: Sequence[int], alone: bool) -> _Part:
        """The rungs among themselves."""

        def tell(checks: list[Check], results: list[Result]) -> None:
            chosen = {square(n).name: matmul.chosen_kernel(square(n), self.dtype) for n in sizes}
            rows = matmul_report.ladder_rows(checks, results, chosen, self.peak)
            for table in matmul_report.ladder_tables(rows, self.dtype.name):
                self.console.table(*table)
            self.report["ladder"] = rows
            if alone:
                self.report["results"] = [result.as_dict() for result in results]
            timed = [row["m"] for row in rows if row["gflops"]]
            if timed:
                n = nearest(timed, _TYPICAL_SIZE)
                at_n = [row for row in rows if row["m"] == n and row["gflops"]]
                self._draw("ladder", picture_matmul.draw_ladder, at_n)

        return _Part(
            "ladder",
            [square(n) for n in sizes],
            lambda: matmul.check_rungs(sizes, self.dtype),
            lambda checks: matmul.ladder_cases(sizes, self.dtype, checks),
            # Nobody but us runs.
            settle=False,
            tell=tell,
        )

    def squares(self, sizes: Sequence[int]) -> _Part:
        """Squares against the peers."""
        shapes = [square(n) for n in sizes]

        def tell(checks: list[Check], results: list[Result]) -> None:
            rows = matmul_report.shape_rows(shapes, checks, results, self.peak)
            self.report["results"] = rows
            names = list(self.peers)
            self._table(*matmul_report.size_table(rows, self.dtype.name, names, self.loaded.label))
            self._draw("sizes", picture_matmul.draw_sizes, [r for r in rows if r["gflops"]])

        return self._against_peers("sizes", shapes, _ROUNDS, tell)

    def map(self, plan: Plan, runs: int) -> _Part:
        """Many shapes against the peers, the worst first."""
        shapes = plan.shapes()

        def tell(checks: list[Check], results: list[Result]) -> None:
            rows = matmul_report.worst_first(
                matmul_report.shape_rows(shapes, checks, results, self.peak)
            )
            self.report["results"] = rows
            names = list(self.peers)
            self._table(*matmul_report.map_table(rows, self.dtype.name, names, self.loaded.label))
            self.console.on_page(*of_comparison("map", results))
            self.console.line(matmul_report.map_summary(rows))
            if self.brief:
                with open(self.brief, "w", encoding="utf-8") as file:
                    file.write(matmul_report.brief(self.report))
            if self.csv:
                known = {name: self.report[name] for name in _CONDITIONS}
                kernels = {row["name"]: row["kernel"] for row in rows}
                write_points(self.csv, Points(known, results, kernels=kernels))
                self.console.line(f"points: {self.csv}")
            _draw_map(self.console, self.plot, plan, rows, self.report)

        return replace(self._against_peers("map", shapes, plan.rounds, tell), runs=runs)

    def scaling(self, n: int) -> _Part:
        """1 to all threads, ours and the peers'."""
        counts = matmul.thread_counts(self.threads)

        def contenders(shape: Shape) -> matmul.Contenders:
            own = matmul.against_peers(shape, self.dtype, self.peers, self.rung)
            return matmul.with_threads(own, self.peers, counts)

        def tell(_: list[Check], results: list[Result]) -> None:
            rows = matmul_report.thread_rows(results, [OURS, *self.peers], counts)
            self.report["threads"] = rows
            if rows:
                self._table(
                    *matmul_report.thread_table(rows, self.dtype.name, n, self.loaded.label)
                )
            fixed = set(self.peers) - {row["contender"] for row in rows}
            if fixed:
                self.console.line(
                    f"cannot change threads while running: {', '.join(sorted(fixed))}"
                    + (" (numpy can with threadpoolctl)" if "numpy" in fixed else "")
                )
            self._draw("threads", picture_matmul.draw_threads, rows)

        part = self._compared("threads", [square(n)], contenders, _THREAD_ROUNDS, tell)
        return replace(part, line=matmul_report.rates)

    def _against_peers(self, name: str, shapes: Sequence[Shape], rounds: int, tell: _Tell) -> _Part:
        def contenders(shape: Shape) -> matmul.Contenders:
            return matmul.against_peers(shape, self.dtype, self.peers, self.rung)

        return self._compared(name, shapes, contenders, rounds, tell)

    def _compared(
        self,
        name: str,
        shapes: Sequence[Shape],
        contenders: Callable[[Shape], matmul.Contenders],
        rounds: int,
        tell: _Tell,
    ) -> _Part:
        return _Part(
            name,
            shapes,
            lambda: matmul.check_shapes(shapes, self.dtype, contenders),
            lambda checks: matmul.shape_cases(shapes, contenders, checks, rounds),
            settle=self.threads > 1 and bool(self.peers),
            tell=tell,
        )

    def _draw(self, name: str, draw: picture_matmul.Draw, rows: list[matmul_report.Row]) -> None:
        if not self.plot or not rows:
            return
        _draw_part(self.console, self.plot, name, draw, rows, self.report)


def _draw_part(
    console: Console,
    plot: str,
    name: str,
    draw: picture_matmul.Draw,
    rows: list[matmul_report.Row],
    report: Mapping[str, Any],
) -> None:
    path = picture_matmul.path_of(plot, name)
    draw(path, rows, matmul_report.facts(report))
    console.line(f"picture: {path}")


def _draw_map(
    console: Console,
    plot: str | None,
    plan: Plan,
    rows: Sequence[matmul_report.Row],
    report: Mapping[str, Any],
) -> None:
    """The grid of m and n for each k, and the shapes of other kinds."""
    if not plot:
        return
    compared = [row for row in rows if row["ratios"]]
    parts: tuple[tuple[str, picture_matmul.Draw, Iterable[Shape]], ...] = (
        ("map", picture_matmul.draw_map, plan.grid()),
        ("shapes", picture_matmul.draw_shapes, plan.others),
    )
    for name, draw, shapes in parts:
        names = {shape.name for shape in shapes}
        if own := [row for row in compared if row["name"] in names]:
            _draw_part(console, plot, name, draw, own, report)


def _report_points(console: Console, args: argparse.Namespace) -> int:
    """Prints and draws a map that was measured before."""
    points = read_points(args.from_csv)
    if missing := [name for name in _CONDITIONS if name not in points.conditions]:
        raise ValueError(f"--from: no points of products, {missing[0]} is missing")
    names = {result.name for result in points.results}
    plan = QUICK if names <= {shape.name for shape in QUICK.shapes()} else FULL
    known = {shape.name: shape for shape in plan.shapes()}
    if strange := sorted(names - known.keys()):
        raise ValueError(f"--from: the map has no shape {strange[0]!r}")
    timed = [
        replace(result, work=1e-9 * known[result.name].flops, unit="GFLOP")
        for result in points.results
    ]
    checks = [
        Check(result.name, OURS, "", PASSED, kernel=points.kernels.get(result.name, ""))
        for result in timed
    ]
    console.line(arguments.conditions_text(points.conditions))
    peak = points.conditions["peak_flops_per_s"]
    rows = matmul_report.worst_first(
        matmul_report.shape_rows([known[result.name] for result in timed], checks, timed, peak)
    )
    peers = list(dict.fromkeys(name for row in rows for name in row["ratios"]))
    console.table(*matmul_report.map_table(rows, points.conditions["dtype"], peers))
    console.on_page(*of_comparison("map", timed))
    console.line(matmul_report.map_summary(rows))
    report = points.conditions | {"results": rows}
    console.json(report)
    _draw_map(console, args.plot, plan, rows, report)
    return 0


def _is_our_fault(check: Check) -> bool:
    # A contender of several threads is called `torch, 2 threads`.
    return check.status == FAILING and check.contender.partition(",")[0] not in PEERS


def nearest(sizes: Sequence[int], wanted: int) -> int:
    """The size that differs least from the wanted one, as a ratio."""
    return min(sizes, key=lambda n: abs(math.log(n / wanted)))
