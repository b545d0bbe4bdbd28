"""Charts of the pages of `tilewright train`, `sweep` and `bench`, beside their tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright._report.html.charts import Point, Scatter, Span, Timeline
from tilewright._report.html.sections import Section, Table
from tilewright.bench.harness import OURS, Result
from tilewright.cli.console import format_seconds
from tilewright.train import METRICS, Run
from tilewright.train.sweep import Row

_US_PER_S = 1e6


def of_sweep(rows: Iterable[Row]) -> list[Section]:
    """Accuracy over the time that it took, and when each run was on which worker."""
    sections: list[Section] = []
    finished = [row for row in rows if row.epochs]
    if finished:
        points = [
            Point(row.seconds, 100 * row.accuracy, _optimizer(row), _told(row)) for row in finished
        ]
        axes = ("seconds of training", "test accuracy, %")
        sections.append(Scatter("Accuracy and time", *axes, points, logarithmic=False))
    # Of those that ran in one session; what was taken over from an earlier one has its own clock.
    sessions = {row.timing["session_ns"] for row in finished if row.timing}
    timed = [
        (row, row.timing)
        for row in finished
        if row.timing and row.timing["session_ns"] == max(sessions)
    ]
    if timed:
        begun = min(timing["started_ns"] for _, timing in timed)
        spans = [
            Span(
                f"worker {timing['worker']}",
                timing["started_ns"] - begun,
                timing["ended_ns"] - timing["started_ns"],
                _optimizer(row),
                _told(row),
            )
            for row, timing in timed
        ]
        sections.append(Timeline("Workers", spans))
    return sections


def of_training(runs: Sequence[Run]) -> list[Section]:
    """Each epoch with its loss and score; of a ladder, of each kernel."""
    epochs = [(run, epoch) for run in runs for epoch in run.epochs]
    if not epochs:
        return []
    metric = METRICS[runs[0].metric]
    columns = ("kernel", "epoch", "loss", metric.title, "time", f"{runs[0].unit}/s")
    rows = [
        (
            run.options.kernel, f"{epoch.number}", f"{epoch.loss:.4f}", metric.show(epoch.score),
            format_seconds(epoch.seconds), f"{epoch.rate:,.0f}",
        )
        for run, epoch in epochs
    ]  # fmt: skip
    points = [
        Point(
            epoch.number, epoch.loss, run.options.kernel, f"epoch {epoch.number}: {epoch.loss:.4f}"
        )
        for run, epoch in epochs
    ]
    chart = Scatter("Loss by epoch", "epoch", "mean training loss", points, logarithmic=False)
    return [Table("Epochs", columns, rows), chart]


def of_comparison(title: str, results: Sequence[Result]) -> list[Section]:
    """A point for each case: our time, and the best peer's as its multiple."""
    compared = [result for result in results if result.best_peer and result.ratio > 0]
    if not compared:
        return []
    points = []
    for result in compared:
        ours = result.timings[OURS].median_s
        text = f"{result.name}: {format_seconds(ours)}, {result.ratio:.2f}x {result.best_peer}"
        points.append(Point(_US_PER_S * ours, result.ratio, result.name.split()[0], text))
    ends = [point.x for point in points]
    line = {"as fast as the best peer": [(min(ends), 1.0), (max(ends), 1.0)]}
    note = "Above 1, Tilewright is faster."
    axes = ("Tilewright's time, µs", "time of the best peer, as a multiple of it")
    return [Scatter(f"{title}: against the best peer", *axes, points, line, note=note)]


def _optimizer(row: Row) -> str:
    return str(row.configuration.settings.get("optimizer", row.configuration.data))


def _told(row: Row) -> str:
    return f"{row.name}: {100 * row.accuracy:.2f} %, {format_seconds(row.seconds)}"
