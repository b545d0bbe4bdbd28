"""The sections of the pages of `tw.profile` and `tw.explain`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright._inspect import roofline
from tilewright._inspect.explanation import legend, slowdown
from tilewright._inspect.steps import Step, text
from tilewright._report.html.charts import Point, Scatter, Span, Timeline
from tilewright._report.html.sections import FlameGraph, Frame, Section, Table, Text
from tilewright._report.text import time_text
from tilewright.memory.timeline import MEMORY_EVENTS

if TYPE_CHECKING:
    from tilewright._inspect.explanation import Candidate, Entry, explain
    from tilewright._inspect.profiling import profile

OUTSIDE = "(outside of modules)"
_NO_LINE = "(no line)"
_SUMS = ("op", "module", "source", "kernel", "problem", "thread", "device")
# Told even where all is of one kind.
_ALWAYS = ("op", "module", "source")


def of_profile(report: profile) -> list[Section]:
    """Flame graph, timeline, roofline and sums of a profile."""
    if not report.events:
        return [Text("Profile", "no op ran")]
    ops, steps, live = report.ops, report.steps, _live(report.events)
    sections: list[Section] = [
        flame_graph(ops, "Time by module, line and op"),
        Timeline("Timeline", [*_step_spans(steps), *_spans(ops)], {"live bytes": live}),
    ]
    if steps:
        sections.append(_steps_table(steps, live))
    sections.append(roofline_chart(ops))
    sections += [_sums(report, key) for key in _SUMS if len(report.by(key)) > 1 or key in _ALWAYS]
    return sections


def of_explain(report: explain) -> list[Section]:
    """Ops, choices of kernels with their reasons, flame graph and roofline of a report."""
    sections: list[Section] = [Text("Placement", str(placement)) for placement in report.placements]
    if not report.entries:
        return [*sections, Text("Ops", "no op ran")]
    columns = (
        "op", "problem", "kernel", "instructions", "time", "GFLOP/s", "GB/s", "roofline", "bound",
        "module", "line",
    )  # fmt: skip
    note = legend(report.entries)
    sections.append(Table("Ops", columns, [_entry_row(each) for each in report.entries], note))
    if choices := _choices(report.entries):
        weighed = ("op", "problem", "kernel", "verdict", "estimate", "error", "reason", "made of")
        note = (
            "The kernels that were weighed, for each problem. An estimate is what the choice is "
            "made by."
        )
        sections.append(Table("Choice of kernel", weighed, choices, note))
    ops = [vars(entry) for entry in report.entries]
    sections.append(flame_graph(ops, "Time by module, line and op"))
    sections.append(roofline_chart(ops))
    return sections


def flame_graph(ops: Iterable[Mapping[str, Any]], title: str) -> FlameGraph:
    """Modules by their path, in them lines of the program, in these ops."""
    root = Frame("all ops")
    for op in ops:
        root.add([*frames_of(op["module"], op["source"]), op["op"]], op["ns"])
    return FlameGraph(title, root)


def frames_of(module: str, source: str) -> list[str]:
    """Where an op or a block comes from, from the outside in."""
    return [*(module.split(".") if module else [OUTSIDE]), line_of(source)]


def line_of(source: str) -> str:
    """'file:line' without the folder."""
    return os.path.basename(source) if source else _NO_LINE


def roofline_chart(ops: Iterable[Mapping[str, Any]]) -> Section:
    """A point for each op, problem and kernel."""
    work = roofline.work_of(ops)
    title = "Roofline"
    if not work:
        return Text(title, "no op that computes ran on the CPU")
    note = (
        "What this machine's levels of memory and arithmetic allow, as measured in this process, "
        "and what each op reached. Ops without arithmetic are not shown."
    )
    points = [Point(each.intensity, each.gflops, each.op, str(each)) for each in work]
    lines = roofline.roofs(work)
    return Scatter(title, "FLOP a byte", "GFLOP a second", points, lines, note=note)


def _spans(ops: Iterable[Mapping[str, Any]]) -> list[Span]:
    return [
        Span(f"thread {op['thread']}", op["start_ns"], op["ns"], op["op"], _span_text(op))
        for op in ops
    ]


def _span_text(op: Mapping[str, Any]) -> str:
    what = f"{op['op']} {op['problem']} ({op['kernel']}): {time_text(op['ns'])}"
    where = ", ".join(part for part in (op["module"], line_of(op["source"])) if part)
    return f"{what}; {where}"


def _live(events: Iterable[Mapping[str, Any]]) -> list[tuple[float, float]]:
    return [
        (event["start_ns"], event["live_bytes"])
        for event in events
        if event["kind"] in MEMORY_EVENTS
    ]


def _steps_table(steps: Sequence[Step], live: Sequence[tuple[float, float]]) -> Table:
    columns = ("step", "time", "in kernels", "ops", "most live bytes")
    rows, at = [], 0
    for number, step in enumerate(steps, 1):
        most = 0.0
        while at < len(live) and live[at][0] <= step.start_ns + step.ns:
            most, at = max(most, live[at][1]), at + 1
        rows.append(
            (
                f"{number:,}", time_text(step.ns), time_text(step.kernels_ns), f"{step.ops:,}",
                f"{most / 2**20:,.2f} MiB",
            )
        )  # fmt: skip
    return Table("Steps", columns, rows, text(steps))


def _step_spans(steps: Sequence[Step]) -> list[Span]:
    return [
        Span(
            "steps", step.start_ns, step.ns, f"{'even' if number % 2 == 0 else 'odd'} steps",
            f"step {number}: {time_text(step.ns)}, {time_text(step.kernels_ns)} in kernels, "
            f"{step.ops} ops",
        )
        for number, step in enumerate(steps, 1)
    ]  # fmt: skip


def _sums(report: profile, key: str) -> Table:
    columns, rows = report._rows(key)
    return Table(f"By {'line' if key == 'source' else key}", columns, rows)


def _entry_row(entry: Entry) -> tuple[str, ...]:
    share = "" if entry.roofline_percent is None else f"{entry.roofline_percent:.0f}%"
    rates = (f"{rate:.1f}" if rate else "" for rate in (entry.gflops, entry.gbs))
    return (
        entry.op, entry.problem, entry.kernel, entry.isa, time_text(entry.ns), *rates, share,
        entry.bound or "", entry.module, line_of(entry.source),
    )  # fmt: skip


def _choices(entries: Iterable[Entry]) -> list[tuple[str, ...]]:
    told = {(e.op, e.problem, e.candidates): e for e in entries if e.candidates}
    return [
        (entry.op, entry.problem, *_verdict(candidate, slowdown(entry)))
        for entry in told.values()
        for candidate in entry.candidates
    ]


def _verdict(candidate: Candidate, scale: float) -> Sequence[str]:
    cost = "" if candidate.cost_ns is None else time_text(scale * candidate.cost_ns)
    error = "" if candidate.error is None else f"{candidate.error:.0e}"
    made_of = ", ".join(f"{name} {time_text(scale * ns)}" for name, ns in candidate.terms if ns)
    if not candidate.accepted:
        return (candidate.name, "refused", cost, error, candidate.reason, made_of)
    if candidate.chosen:
        return (candidate.name, "chosen", cost, error, candidate.reason, made_of)
    return (candidate.name, "", cost, error, candidate.reason or "costs more", made_of)
