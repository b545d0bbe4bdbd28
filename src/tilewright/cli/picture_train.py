"""Pictures of `tilewright train`: one training over its epochs, or the rungs of the ladder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import pictures
from tilewright import train as job
from tilewright.cli.console import format_number, format_seconds
from tilewright.cli.picture import draw_bars

# Points of the curve of batch losses: more would be noise at the picture's width.
_POINTS = 250
# More marks than these would hide the line, or the other lines.
_MANY_EPOCHS, _FEW_EPOCHS = 60, 12
_LOGARITHMIC_FROM = 20


class Losses:
    """The losses of a training's batches, as (epochs done, loss)."""

    def __init__(self) -> None:
        self.points: list[tuple[float, float]] = []

    def add(self, now: job.Progress) -> None:
        """Told after each batch."""
        self.points.append((now.epochs_done, now.batch_loss))

    def averaged(self) -> tuple[list[float], list[float], int]:
        """At most `_POINTS` means of as many batches each: places, losses, batches of a mean."""
        width = -(-len(self.points) // _POINTS) if self.points else 1
        parts = [self.points[i : i + width] for i in range(0, len(self.points), width)]
        places = [sum(x for x, _ in part) / len(part) for part in parts]
        return places, [sum(y for _, y in part) / len(part) for part in parts], width


def draw_training(path: str, run: job.Run, losses: Losses) -> None:
    """Loss and test accuracy over the epochs, with the training's time above them."""
    figure = pictures.figure(8, 6)
    above, below = (pictures.plain(axes) for axes in figure.subplots(2, 1, sharex=True))
    options, epochs = run.options, run.epochs
    figure.suptitle(
        f"Training on {run.task}: {options.hidden} hidden units, {options.optimizer}, "
        f"batch {options.batch}",
        x=0.02,
        ha="left",
        fontweight="bold",
    )
    places, means, width = losses.averaged()
    told = "each batch" if width == 1 else f"mean of {width} batches"
    above.plot(places, means, color=pictures.FAINT, linewidth=1.2, label=told)
    above.stairs(
        [epoch.loss for epoch in epochs],
        range(len(epochs) + 1),
        baseline=None,
        color=pictures.BLUE,
        linewidth=2,
        label="mean of each epoch",
    )
    above.set_ylabel("training loss\n(cross-entropy, nats)")
    above.legend(frameon=False)
    _logarithmic_if_wide(above, [*means, *(epoch.loss for epoch in epochs)])
    percent = [100 * epoch.accuracy for epoch in epochs]
    marker = {"marker": "o", "markersize": 4} if len(epochs) <= _MANY_EPOCHS else {}
    below.plot([epoch.number for epoch in epochs], percent, color=pictures.BLUE, **marker)
    _percent(below)
    best = max(epochs, key=lambda epoch: epoch.accuracy)
    label = f"{100 * epochs[-1].accuracy:.2f} % after epoch {len(epochs)}"
    if best.accuracy > epochs[-1].accuracy:
        label += f"\nbest: {100 * best.accuracy:.2f} % after epoch {best.number}"
    below.annotate(
        label, (0.99, 0.06), xycoords="axes fraction", ha="right", color=pictures.BLUE
    )  # fmt: skip
    below.set_xlabel("epochs")
    below.set_xlim(0, len(epochs) * 1.01)
    pictures.whole_numbers(below.xaxis)
    _time_above(above, run)
    pictures.save(figure, path)


def draw_ladder(path: str, task: str, runs: Sequence[job.Run]) -> None:
    """Speed of each rung, and how soon each comes to the same loss and accuracy."""
    finished = [run for run in runs if run.epochs]
    figure = pictures.figure(10, 4.4 + 0.34 * len(finished))
    grid = figure.add_gridspec(2, 2, height_ratios=(1.2 + 0.34 * len(finished), 4))
    speed = figure.add_subplot(grid[0, :])
    threads = finished[0].threads
    figure.suptitle(
        f"The same training on {task}, once per rung of the matmul ladder, "
        f"{threads} thread{'' if threads == 1 else 's'}",
        x=0.02,
        ha="left",
        fontweight="bold",
    )
    rates = [sum(e.images_per_second for e in run.epochs) / len(run.epochs) for run in finished]
    styles = [_style(i, run.options.kernel) for i, run in enumerate(finished)]
    draw_bars(
        speed,
        "training images a second",
        [run.options.kernel for run in finished],
        rates,
        [style["color"] for style in styles],
    )
    loss, accuracy = (pictures.plain(figure.add_subplot(grid[1, i])) for i in range(2))
    for run, style in zip(finished, styles, strict=True):
        times = _times(run)
        marker = {"marker": "o", "markersize": 4} if len(run.epochs) <= _FEW_EPOCHS else {}
        loss.plot(times, [epoch.loss for epoch in run.epochs], **marker, **style)
        accuracy.plot(times, [100 * epoch.accuracy for epoch in run.epochs], **marker, **style)
    _percent(accuracy)
    _logarithmic_if_wide(loss, [epoch.loss for run in finished for epoch in run.epochs])
    loss.set_ylabel("training loss (nats)")
    for axes in (loss, accuracy):
        axes.set_xscale("log")
        axes.set_xlabel("training time")
        pictures.in_units(axes.xaxis, "s")
    accuracy.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), title="rung")
    pictures.save(figure, path)


def _percent(axes: Any) -> None:
    axes.set_ylabel("test accuracy")
    pictures.written_as(axes.yaxis, lambda value: f"{value:g} %")


def _logarithmic_if_wide(axes: Any, values: Sequence[float]) -> None:
    values = [value for value in values if value > 0]
    if values and max(values) > _LOGARITHMIC_FROM * min(values):
        axes.set_yscale("log")
        pictures.written_as(axes.yaxis, lambda value: f"{value:g}")


def _time_above(axes: Any, run: job.Run) -> None:
    """A second scale: epochs as the time that their training took."""
    scale, unit = pictures.time_scale(run.total_seconds)
    an_epoch = run.epoch_seconds * scale
    second = axes.secondary_xaxis("top", functions=(lambda x: x * an_epoch, lambda x: x / an_epoch))
    rate = format_number(len(run.epochs) and run.epochs[-1].images_per_second)
    second.set_xlabel(
        f"training time, {unit}   ({format_seconds(run.epoch_seconds)} an epoch, "
        f"{rate} images a second, {run.threads} thread{'' if run.threads == 1 else 's'})"
    )


def _times(run: job.Run) -> list[float]:
    """Seconds of training up to the end of each epoch."""
    total, out = 0.0, []
    for epoch in run.epochs:
        total += epoch.seconds
        out.append(total)
    return out


def _style(i: int, kernel: str) -> dict[str, Any]:
    """A colour for each rung; the engine's own choice is black."""
    if kernel == job.AUTOMATIC:
        return {"color": "black", "linewidth": 2, "linestyle": "--", "label": kernel}
    colour = pictures.COLOURS[i % len(pictures.COLOURS)]
    return {"color": colour, "linewidth": 1.5, "label": kernel}
