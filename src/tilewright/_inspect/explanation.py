"""`tw.explain`: which kernel ran for each op, why, and how near it came to the machine's limits."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from tilewright import _core
from tilewright._inspect.open_reports import open_reports
from tilewright._report import figures
from tilewright._report.text import aligned, time_text

if TYPE_CHECKING:
    from tilewright._inspect.placement import Placement


@dataclass(frozen=True)
class Candidate:
    """A kernel that was weighed: `reason` says why it was refused, `cost_ns` what it would take.

    `cost_ns` is the estimate that the choice is made by, None where the kernel was refused;
    `terms` are the parts it is the sum of, name and ns, where the kernel tells them. `error`: the
    largest error of the kernel's float32 results that was measured, as a share of the largest
    result, on standard normal numbers; None where that was not measured.
    """

    name: str
    accepted: bool
    reason: str
    cost_ns: float | None
    chosen: bool
    error: float | None = None
    terms: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Entry:
    """One op that ran. `ns`: the kernel's time; `flops`, `bytes`: what the op has to do.

    `start_ns` is on the clock of `time.perf_counter_ns`, `thread` a native id, `module` the path of
    the `nn.Module` whose forward ran, `source` the line of the program as 'file:line'. Of an op of
    a gradient (`backward`) they are those of the forward op, where that was observed too.

    `optimizations`: names of those that it used, of the rows of `tw.optimizations.table()`.
    `inner`: op and kernel of parts of its problem, as the products of a convolution.

    `roofline_percent`: the share of the speed that the machine's arithmetic (`bound` is
    "compute") or the level of memory that the data came from ("L1", "L2", "L3", "memory") would
    allow. The level is the first that holds what the op reads and writes, or a faster one where
    that one could not have been so fast. None for an op that neither computes nor moves anything.
    Source: Williams, Waterman and Patterson, Roofline, CACM 52(4), 2009; levels: Ilic, Pratas and
    Sousa, Cache-aware roofline model, 2014.

    `first`: whether others of this kernel and problem follow in the report, and none comes before:
    caches may have been cold then, and pages new. `calls`: how often it ran, where `ns` is the
    median of several runs; `low_ns` and `high_ns` are the least and the most of them.
    """

    op: str
    kernel: str
    isa: str
    problem: str
    candidates: tuple[Candidate, ...]
    ns: float
    flops: float
    bytes: float
    threads: int
    start_ns: int = 0
    thread: int = 0
    device: str = "cpu"
    module: str = ""
    source: str = ""
    backward: bool = False
    optimizations: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    roofline_percent: float | None = None
    bound: str | None = None
    first: bool = False
    calls: int = 1
    low_ns: float | None = None
    high_ns: float | None = None

    @property
    def gflops(self) -> float:
        """Arithmetic rate, 10^9 FLOP a second."""
        return self.flops / self.ns if self.ns else 0.0

    @property
    def gbs(self) -> float:
        """Memory rate, 10^9 bytes a second."""
        return self.bytes / self.ns if self.ns else 0.0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "gflops": self.gflops, "gbs": self.gbs}


class explain(Sequence[Entry]):  # noqa: N801  (a context manager, used like a function)
    """Records this thread's ops within a `with` block; a sequence of entries once it has ended.

    Tasks that were submitted to a `Scheduler` inside are recorded as well, other threads' ops are
    not. Observers nest, and may end in any order, on any thread: each has what ran while it was
    there. One report may be used for several blocks, also by threads side by side. The peaks that
    shares of the roofline refer to are measured when an entry is first looked at, once a process,
    instruction set and thread count.

    >>> import tilewright as tw
    >>> with tw.explain() as report:
    ...     y = tw.ones((4, 4)) @ tw.ones((4, 4))
    >>> report[-1].op
    'matmul'
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # garbage collection may end a block within a block
        self._recorded: list[Entry] = []
        self._entries: list[Entry] = []  # of those, as they are shown
        self._open: list[tuple[int, _core._Observing]] = []  # by thread
        # What device="auto" came to inside, in order.
        self.placements: list[Placement] = []

    def __enter__(self) -> explain:
        self._open.append((threading.get_ident(), _core._Observing()))
        open_reports.append((threading.get_ident(), self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        threads = _core.get_num_threads()
        with self._lock:
            me = threading.get_ident()
            here = [i for i, (thread, _) in enumerate(self._open) if thread == me]
            if not self._open:
                raise _core.StateError("explain: no block of this report is open")
            entered, observing = self._open.pop(here[-1] if here else -1)
            open_reports.remove((entered, self))
        entries = []
        for seen in observing.stop():
            del seen["kind"]
            candidates = tuple(Candidate(**candidate) for candidate in seen.pop("candidates"))
            entries.append(Entry(**seen, candidates=candidates, threads=threads))
        self._recorded.extend(entries)

    @property
    def entries(self) -> list[Entry]:
        """The ops in the order in which they ran."""
        with self._lock:
            if len(self._entries) < len(self._recorded):
                self._entries = _looked_at(self._recorded)
            return self._entries

    @classmethod
    def call(
        cls, function: Callable[..., Any], *args: Any, repeat: int = 9, **options: Any
    ) -> explain:
        """A report of `function(*args, **options)`: each op's median of so many calls.

        One call more comes first, which is not counted: it finds caches cold and pages new. The
        spread is in `low_ns` and `high_ns`. Raises ValueError where the calls run other ops each
        time, or for fewer than one.

        >>> import tilewright as tw
        >>> report = tw.explain.call(tw.exp, tw.ones(1000), repeat=5)
        >>> report[0].op, report[0].calls
        ('exp', 5)
        """
        if repeat < 1:
            raise ValueError(f"explain.call: repeat must be at least 1, got {repeat}")
        function(*args, **options)
        runs: list[list[Entry]] = []
        for _ in range(repeat):
            with cls() as report:
                function(*args, **options)
            runs.append(report._recorded)
        kinds = [[(entry.op, entry.problem, entry.kernel) for entry in run] for run in runs]
        if any(kind != kinds[0] for kind in kinds):
            raise ValueError("explain.call: the function ran other ops in some of its calls")
        whole = cls()
        for same in zip(*runs, strict=True):
            times = sorted(entry.ns for entry in same)
            whole._recorded.append(
                replace(
                    same[-1], ns=median(times), calls=repeat, low_ns=times[0], high_ns=times[-1]
                )
            )
        return whole

    @overload
    def __getitem__(self, at: int) -> Entry: ...
    @overload
    def __getitem__(self, at: slice) -> list[Entry]: ...
    def __getitem__(self, at: int | slice) -> Entry | list[Entry]:
        return self.entries[at]

    def __len__(self) -> int:
        return len(self._recorded)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def as_dict(self) -> dict[str, Any]:
        """All entries, and where the estimates' numbers come from, as JSON has them."""
        return {
            "entries": [entry.as_dict() for entry in self.entries],
            "placements": [placement.as_dict() for placement in self.placements],
            "estimates": _estimates_source(),
            "gpu_estimates": {device: _gpu_source(device) for device in _rated_gpus(self.entries)},
        }

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes one HTML file that needs no network: ops, choices with their reasons, a roofline.

        Raises OSError where it cannot be written.
        """
        from tilewright._inspect import report_pages  # noqa: PLC0415  (imported on use)
        from tilewright._report.html import page  # noqa: PLC0415  (imported on use)

        page.write(path, "Explain: which kernel ran", report_pages.of_explain(self), self._counted)

    def roofline(self, path: str | os.PathLike[str]) -> None:
        """Draws each op under this machine's roofline; needs matplotlib (the `plot` extra)."""
        from tilewright._inspect import roofline  # noqa: PLC0415  (imported on use)

        ops = [vars(entry) for entry in self.entries]
        figures.save(roofline.figure(ops, f"Roofline: {self._counted}"), path)

    def _repr_html_(self) -> str:
        from tilewright._report.html.tables import for_notebook  # noqa: PLC0415  (imported on use)

        rows = [_row(entry) for entry in self.entries]
        return for_notebook(f"explain: {self._counted}", _COLUMNS, rows)

    def __rich__(self) -> Any:
        """A table for rich's print; rich calls this."""
        from rich.table import Table  # noqa: PLC0415  (imported on use)

        table = Table(*_COLUMNS)
        for entry in self.entries:
            table.add_row(*_row(entry))
        return table

    def __repr__(self) -> str:
        return f"<explain: {self._counted}>"

    @property
    def _counted(self) -> str:
        return f"{len(self):,} op{'' if len(self) == 1 else 's'}"

    def __str__(self) -> str:
        chosen = [str(placement) for placement in self.placements]
        if not self._recorded:
            return "\n\n".join([*chosen, "no op ran"])
        rows = [_COLUMNS, *(_row(entry) for entry in self.entries)]
        parts = ["\n".join(aligned(rows)), *_choices(self.entries), legend(self.entries)]
        return "\n\n".join([*chosen, *parts])


_COLUMNS = ("op", "problem", "kernel", "time", "GFLOP/s", "GB/s", "roofline")


def _looked_at(recorded: Sequence[Entry]) -> list[Entry]:
    """The entries with their shares of the roofline, first ones of several alike marked."""
    kinds = [(entry.op, entry.problem, entry.kernel) for entry in recorded]
    often = {kind for kind, count in Counter(kinds).items() if count > 1}
    # What an exact kernel reached here, the machine can do: its peak may have been measured beside
    # other work.
    from tilewright._inspect.machine_peaks import does_all_work  # noqa: PLC0415  (imported on use)

    reached: dict[bool, float] = {}
    for entry in recorded:
        if does_all_work(entry.op, entry.kernel):
            double = entry.problem.startswith("float64")
            reached[double] = max(reached.get(double, 0.0), entry.gflops * 1e9)
    entries = []
    for entry, kind in zip(recorded, kinds, strict=True):
        best = reached.get(entry.problem.startswith("float64"), 0.0)
        entries.append(_with_roofline(replace(entry, first=kind in often), best))
        often.discard(kind)
    return entries


def _with_roofline(entry: Entry, reached: float) -> Entry:
    if entry.device != "cpu" or not entry.ns or not (entry.flops or entry.bytes):
        return entry  # the peaks are this processor's
    # Loaded here: a report that nobody reads needs no measurement.
    from tilewright._inspect.machine_peaks import quick_peaks  # noqa: PLC0415  (imported on use)

    peaks = quick_peaks(entry.problem.partition(" ")[0])
    compute_ns = 1e9 * entry.flops / max(peaks.flops_per_s, reached)
    level = peaks.served_by(entry.bytes, entry.ns)
    memory_ns = 1e9 * entry.bytes / level.bytes_per_s
    bound = "compute" if compute_ns > memory_ns else level.name
    share = 100 * max(compute_ns, memory_ns) / entry.ns
    return replace(entry, roofline_percent=share, bound=bound)


def _row(entry: Entry) -> tuple[str, ...]:
    share = "" if entry.roofline_percent is None else f"{entry.roofline_percent:.0f}% {entry.bound}"
    kernel = _kernel_text(entry)
    return (
        entry.op, entry.problem, kernel, _time(entry), _rate(entry.gflops), _rate(entry.gbs), share,
    )  # fmt: skip


def _time(entry: Entry) -> str:
    if entry.low_ns is None or entry.high_ns is None:
        return time_text(entry.ns) + (" first" if entry.first else "")
    return f"{time_text(entry.ns)} ({time_text(entry.low_ns)} to {time_text(entry.high_ns)})"


# Of nearly all calls: the number of threads says enough.
_UNTOLD = {"choice_cache", "lock_release", "threads", "chunk_ownership"}


def _kernel_text(entry: Entry) -> str:
    """The kernel, its instruction set, and what else made it fast."""
    parts = [f"{entry.kernel} ({entry.isa})" if entry.isa else entry.kernel, *entry.inner]
    parts += [name.replace("_", " ") for name in entry.optimizations if name not in _UNTOLD]
    if "threads" in entry.optimizations:
        parts.append(f"{entry.threads} threads")
    return " + ".join(parts)


def _choices(entries: Iterable[Entry]) -> Iterator[str]:
    """For each problem that kernels competed for: what each would cost, or why it could not."""
    told = set()
    for entry in entries:
        problem = (entry.op, entry.problem, entry.candidates)
        if not entry.candidates or problem in told:
            continue
        told.add(problem)
        rows = [_verdict(candidate, slowdown(entry)) for candidate in entry.candidates]
        yield "\n".join([f"{entry.op} {entry.problem}: choice of kernel", *aligned(rows, left=4)])


def slowdown(entry: Entry) -> float:
    """What scales estimates, which are of a processor like this one, to this very machine."""
    if entry.device != "cpu":
        return 1.0
    from tilewright._inspect.machine_peaks import quick_peaks  # noqa: PLC0415  (imported on use)

    return quick_peaks(entry.problem.partition(" ")[0]).slowdown


def _verdict(candidate: Candidate, scale: float) -> tuple[str, str, str, str]:
    mark = "->" if candidate.chosen else "  "
    if not candidate.accepted:
        return (mark, candidate.name, "", f"refused: {candidate.reason}")
    cost = "" if candidate.cost_ns is None else f"about {time_text(scale * candidate.cost_ns)}"
    if candidate.error is not None:
        cost += f", error {candidate.error:.0e}"
    if candidate.chosen:
        return (mark, candidate.name, cost, f"chosen{_sum(candidate.terms, scale)}")
    return (mark, candidate.name, cost, candidate.reason or "costs more")


INVARIANCE = "for batch invariance"


def _sum(terms: Iterable[tuple[str, float]], scale: float) -> str:
    """What makes up an estimate: parts that are none are left out."""
    named = {name: scale * ns for name, ns in terms}
    price = named.pop(INVARIANCE, 0)
    parts = [f"{name} {time_text(ns)}" for name, ns in named.items() if ns]
    text = f": {' + '.join(parts)}" if parts else ""
    return f"{text}, {time_text(price)} of it {INVARIANCE}" if price else text


def _estimates_source() -> str:
    from tilewright.tune.table import source  # noqa: PLC0415  (imported on use)

    return source()


def _gpu_source(device: str) -> str:
    from tilewright.tune.gpu import source  # noqa: PLC0415  (imported on use)

    return source(device)


def _rated_gpus(entries: Iterable[Entry]) -> list[str]:
    """Those on which kernels were weighed by estimates."""
    return sorted(
        {
            entry.device
            for entry in entries
            if entry.device.startswith("cuda")
            and any(candidate.cost_ns is not None for candidate in entry.candidates)
        }
    )


def legend(entries: Iterable[Entry]) -> str:
    entries = list(entries)
    threads = ", ".join(map(str, sorted({entry.threads for entry in entries})))
    rated = any(candidate.terms for entry in entries for candidate in entry.candidates)
    firsts = (
        "\nfirst: of several calls of this kernel and problem; it may have found caches cold and "
        "pages new."
        if any(entry.first for entry in entries)
        else ""
    )
    estimates = (
        f"\nEstimates: {_estimates_source()}; scaled by a product that was measured here."
        if rated
        else ""
    )
    if any(candidate.error is not None for entry in entries for candidate in entry.candidates):
        estimates += (
            "\nErrors: the largest of float32 results that were measured, as shares of the largest "
            "result."
        )
    for device in _rated_gpus(entries):
        estimates += f"\nEstimates on {device}: {_gpu_source(device)}."
    return (
        f"{threads} thread{'' if threads == '1' else 's'}. Roofline: share of the speed that this "
        "machine's arithmetic (compute), or the level of memory\nthat the data came from, allows, "
        f"as measured in this process.{firsts}{estimates}"
    )


def _rate(value: float) -> str:
    return f"{value:.1f}" if value else ""
