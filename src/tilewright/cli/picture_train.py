"""Pictures of `tilewright train`: one training over its epochs, the rungs of the ladder, a fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright import train as job
from tilewright._report import figures
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

    @classmethod
    def of(cls, run: job.Run) -> Losses:
        """Those of a whole training, before an interruption as well."""
        losses = cls()
        batches = max(len(run.batch_losses) // max(len(run.epochs), 1), 1)
        losses.points = [((i + 1) / batches, loss) for i, loss in enumerate(run.batch_losses)]
        return losses

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
    """Loss and score over the epochs, with the training's time above them."""
    figure = figures.figure(8, 6)
    above, below = (figures.plain(axes) for axes in figure.subplots(2, 1, sharex=True))
    epochs = run.epochs
    figure.suptitle(_title(run), x=0.02, ha="left", fontweight="bold")
    _losses_over_epochs(above, run, losses)
    scale = 100 if run.metric == "accuracy" else 1
    marker = {"marker": "o", "markersize": 4} if len(epochs) <= _MANY_EPOCHS else {}
    scores = [scale * epoch.score for epoch in epochs]
    below.plot([epoch.number for epoch in epochs], scores, color=figures.BLUE, **marker)
    _score_axis(below, run.metric)
    below.annotate(
        _last_and_best(run), (0.99, 0.06), xycoords="axes fraction", ha="right",
        color=figures.BLUE,
    )  # fmt: skip
    below.set_xlabel("epochs")
    below.set_xlim(0, len(epochs) * 1.01)
    figures.whole_numbers(below.xaxis)
    _time_above(above, run)
    figures.save(figure, path)


def draw_fit(path: str, run: job.Run, task: job.Sine) -> None:
    """The points, the sine and what the network makes of them, above the loss over the epochs."""
    assert run.model is not None
    figure = figures.figure(8, 6)
    above, below = (figures.plain(axes) for axes in figure.subplots(2, 1, height_ratios=(2, 1)))
    figure.suptitle(_title(run), x=0.02, ha="left", fontweight="bold")
    places = task.places.reshape((-1,)).tolist()
    points = [column.reshape((-1,)).tolist() for column in (task.x, task.y)]
    above.plot(*points, ".", color=figures.FAINT, markersize=4, label="samples")
    sine = tw.sin(task.places).reshape((-1,)).tolist()
    above.plot(places, sine, color=figures.GREY, linewidth=1, linestyle="--", label="sin(x)")
    fit = task.curve(run.model).reshape((-1,)).tolist()
    error = job.METRICS[run.metric].show(run.score)
    above.plot(
        places, fit, color=figures.BLUE, linewidth=2, label=f"network, squared error {error}"
    )
    above.set_xlabel("x")
    above.legend(frameon=False)
    _losses_over_epochs(below, run, Losses.of(run))
    below.set_xlabel("epochs")
    figures.whole_numbers(below.xaxis)
    figures.save(figure, path)


def _title(run: job.Run) -> str:
    options = run.options
    return (
        f"Training on {run.task}: {options.model}, {options.hidden} hidden units, "
        f"{options.optimizer}, batch {options.batch}"
    )


def _losses_over_epochs(axes: Any, run: job.Run, losses: Losses) -> None:
    epochs = run.epochs
    places, means, width = losses.averaged()
    told = "each batch" if width == 1 else f"mean of {width} batches"
    axes.plot(places, means, color=figures.FAINT, linewidth=1.2, label=told)
    axes.stairs(
        [epoch.loss for epoch in epochs],
        range(len(epochs) + 1),
        baseline=None,
        color=figures.BLUE,
        linewidth=2,
        label="mean of each epoch",
    )
    axes.set_ylabel(f"training loss\n({job.METRICS[run.metric].loss})")
    axes.legend(frameon=False)
    _logarithmic_if_wide(axes, [*means, *(epoch.loss for epoch in epochs)])


def _last_and_best(run: job.Run) -> str:
    epochs, metric = run.epochs, job.METRICS[run.metric]

    def told(epoch: job.Epoch) -> str:
        percent = run.metric == "accuracy"
        score = f"{100 * epoch.score:.2f} %" if percent else metric.show(epoch.score)
        return f"{score} after epoch {epoch.number}"

    sign = 1 if metric.larger_is_better else -1
    best = max(epochs, key=lambda epoch: sign * epoch.score)
    better = sign * best.score > sign * epochs[-1].score
    return told(epochs[-1]) + (f"\nbest: {told(best)}" if better else "")


def draw_ladder(path: str, task: str, runs: Sequence[job.Run]) -> None:
    """Speed of each rung, and how soon each comes to the same loss and accuracy."""
    finished = [run for run in runs if run.epochs]
    figure = figures.figure(10, 4.4 + 0.34 * len(finished))
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
    rates = [sum(epoch.rate for epoch in run.epochs) / len(run.epochs) for run in finished]
    metric = finished[0].metric
    scale = 100 if metric == "accuracy" else 1
    styles = [_style(i, run.options.kernel) for i, run in enumerate(finished)]
    draw_bars(
        speed,
        f"training {finished[0].unit} a second",
        [run.options.kernel for run in finished],
        rates,
        [style["color"] for style in styles],
    )
    loss, score = (figures.plain(figure.add_subplot(grid[1, i])) for i in range(2))
    for run, style in zip(finished, styles, strict=True):
        times = _times(run)
        marker = {"marker": "o", "markersize": 4} if len(run.epochs) <= _FEW_EPOCHS else {}
        loss.plot(times, [epoch.loss for epoch in run.epochs], **marker, **style)
        score.plot(times, [scale * epoch.score for epoch in run.epochs], **marker, **style)
    _score_axis(score, metric)
    _logarithmic_if_wide(loss, [epoch.loss for run in finished for epoch in run.epochs])
    loss.set_ylabel(f"training loss ({job.METRICS[metric].loss})")
    for axes in (loss, score):
        axes.set_xscale("log")
        axes.set_xlabel("training time")
        figures.in_units(axes.xaxis, "s")
    score.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), title="rung")
    figures.save(figure, path)


def _score_axis(axes: Any, metric: str) -> None:
    """The metric's name, and percent where it is a share; values are drawn as percent then."""
    axes.set_ylabel(job.METRICS[metric].title)
    if metric == "accuracy":
        figures.written_as(axes.yaxis, lambda value: f"{value:g} %")


def _logarithmic_if_wide(axes: Any, values: Sequence[float]) -> None:
    values = [value for value in values if value > 0]
    if values and max(values) > _LOGARITHMIC_FROM * min(values):
        axes.set_yscale("log")
        figures.written_as(axes.yaxis, lambda value: f"{value:g}")


def _time_above(axes: Any, run: job.Run) -> None:
    """A second scale: epochs as the time that their training took."""
    scale, unit = figures.time_scale(run.total_seconds)
    an_epoch = run.epoch_seconds * scale
    second = axes.secondary_xaxis("top", functions=(lambda x: x * an_epoch, lambda x: x / an_epoch))
    rate = format_number(len(run.epochs) and run.epochs[-1].rate)
    second.set_xlabel(
        f"training time, {unit}   ({format_seconds(run.epoch_seconds)} an epoch, "
        f"{rate} {run.unit} a second, {run.threads} thread{'' if run.threads == 1 else 's'})"
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
    colour = figures.COLOURS[i % len(figures.COLOURS)]
    return {"color": colour, "linewidth": 1.5, "label": kernel}
