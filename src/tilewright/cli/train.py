"""`tilewright train`: a task once, or on every rung of the ladder."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import tilewright as tw
from tilewright import train as job
from tilewright._inspect.placement import Placement
from tilewright.cli import arguments, picture_train
from tilewright.cli.console import Bar, Console, format_seconds, progress_bar
from tilewright.cli.page_sections import of_training
from tilewright.cli.picture import check_plot

_SAMPLE, _TEMPERATURE = 400, 0.8
_OVERRIDES = (
    "epochs", "batch", "hidden", "layers", "length", "optimizer", "lr", "decay", "seed", "kernel",
    "device",
)  # fmt: skip


def add_parser(commands: arguments.Subparsers) -> None:
    """Adds the command."""
    parser = arguments.add_parser(
        commands, "train", run, "train a network on a task, on any rung of the ladder"
    )
    parser.add_argument(
        "task", choices=job.TASKS, help="digits are embedded; mnist and shakespeare are files"
    )
    parser.add_argument(
        "--data", metavar="DIR", help="folder of the task's files (see also TILEWRIGHT_DATA)"
    )
    parser.add_argument("--model", choices=job.MODELS, help="default: the task's first")
    for name, text in (
        ("epochs", "passes over the training data"),
        ("batch", "items of a step"),
        ("hidden", "width of the layers inside"),
        ("layers", "recurrent layers, or blocks of the gpt"),
        ("length", "characters of a window of text"),
    ):
        parser.add_argument(
            f"--{name}", type=arguments.positive, metavar="N", help=_help(name, text)
        )
    parser.add_argument(
        "--optimizer", choices=tuple(job.LEARNING_RATES), help=_help("optimizer", "")
    )
    parser.add_argument("--lr", type=arguments.positive_real, metavar="X", help=_lr_help())
    parser.add_argument(
        "--decay",
        type=arguments.positive_real,
        metavar="X",
        help=_help("decay", "an epoch's learning rate as a multiple of the one before"),
    )
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="cpu, cuda, cuda:1, or auto for where a step should take less time (default: cpu); "
        "GPUs: tilewright info",
    )
    parser.add_argument("--seed", type=arguments.seed, metavar="N", help="default: 1")
    rungs = parser.add_mutually_exclusive_group()
    kernels = (*tw.kernels.names("matmul"), job.AUTOMATIC)
    rungs.add_argument("--kernel", choices=kernels, help="matmul kernel to force (default: auto)")
    rungs.add_argument("--ladder", action="store_true", help="train once per kernel and compare")
    _add_checkpoint(parser)
    _add_sample(parser)
    arguments.add_threads(parser)
    arguments.add_plot(parser)


def run(args: argparse.Namespace) -> int:
    """Trains and reports."""
    check_plot(args.plot)
    checkpoint = _checkpoint(args)
    console = Console.of(args)
    if args.threads:
        tw.set_num_threads(args.threads)
    options = _options(args, checkpoint)
    _check_sample(args)
    _check_unused(args, options)
    arguments.check_devices([options.device])  # which may be the checkpoint's
    task = job.load_task(args.task, args.data)
    placement = job.placed(task, options) if options.device == job.AUTOMATIC else None
    if placement is not None:
        options = replace(options, device=placement.device)
    console.line(_headline(task, options))
    if placement is not None:
        console.line(str(placement))
    told = _Told(console)
    with progress_bar() as bar:
        on_batch = _Shown(bar, task.unit, options.epochs)
        if args.ladder:
            runs = job.ladder(task, options, on_batch, on_run=partial(_show_run, console))
        else:
            runs = [job.train(task, options, on_batch, told, checkpoint)]
    if checkpoint is not None and checkpoint.resume and not told.epochs:
        console.line(
            f"nothing left to do: {args.checkpoint} has all {options.epochs} epochs behind it; "
            "a larger --epochs makes the training longer"
        )
    _report(console, runs, args, task, placement)
    if args.plot:
        _draw(console, args, task, runs)
    return 0


def _help(name: str, text: str) -> str:
    """The text, with the default of each task, or of each of its models where they differ."""
    told = []
    for task in job.TASKS:
        values = {m: getattr(job.default_options(task, m), name) for m in job.models_of(task)}
        if len(set(values.values())) == 1:
            values = {"": next(iter(values.values()))}
        told += [f"{task}{' ' if model else ''}{model} {value}" for model, value in values.items()]
    return f"{text} (default: {', '.join(told)})".lstrip()


def _lr_help() -> str:
    rates = ", ".join(f"{name} {rate:g}" for name, rate in job.LEARNING_RATES.items())
    return f"learning rate (default: the task's with its optimizer, else {rates})"


def _add_checkpoint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--checkpoint", metavar="FILE", help="write model, optimizer and position there meanwhile"
    )
    parser.add_argument(
        "--every",
        type=arguments.positive_real,
        metavar="SECONDS",
        help="time between checkpoints (default: 60); one follows each epoch as well, "
        "but for those that are short beside the writing",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on from the checkpoint, to the same bits"
    )


def _add_sample(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sample",
        type=arguments.positive,
        metavar="N",
        help=f"characters that the model writes at the end, of text (default: {_SAMPLE})",
    )
    parser.add_argument(
        "--temperature",
        type=arguments.positive_real,
        metavar="X",
        help=f"below 1 it writes what is likely more often, above 1 less (default: {_TEMPERATURE})",
    )


def _check_sample(args: argparse.Namespace) -> None:
    for name, value in (("--sample", args.sample), ("--temperature", args.temperature)):
        if value and args.task != "shakespeare":
            raise ValueError(f"{name} is of text, of which {args.task} has none")


def _check_unused(args: argparse.Namespace, options: job.Options) -> None:
    if args.data is not None and args.task in ("digits", "sine"):
        raise ValueError(f"--data is of tasks that are files; {args.task} reads none")
    for name in ("layers", "length"):
        if getattr(args, name) is not None and options.model not in job.Text.models:
            raise ValueError(
                f"--{name} is of the models {' and '.join(job.Text.models)}; "
                f"here it is the {options.model}"
            )


def _checkpoint(args: argparse.Namespace) -> job.Checkpoint | None:
    if args.checkpoint is None:
        for name, value in (("--resume", args.resume), ("--every", args.every)):
            if value:
                raise ValueError(f"{name} needs a file: add --checkpoint FILE")
        return None
    if args.ladder:
        raise ValueError("--checkpoint is of one training; leave --ladder out")
    arguments.check_target("--checkpoint", args.checkpoint)
    return job.Checkpoint(args.checkpoint, args.every or 60.0, args.resume)


def _options(args: argparse.Namespace, checkpoint: job.Checkpoint | None) -> job.Options:
    """The task's own, or the checkpoint's, with what was given on the command line."""
    options = job.default_options(args.task, args.model)
    if checkpoint is not None and checkpoint.resume:
        options = checkpoint.options(args.task)
        if args.model is not None:
            options = replace(options, model=args.model)
    elif args.optimizer not in (None, options.optimizer):
        options = replace(options, lr=None)  # which is of the task's optimiser
    given = {name: getattr(args, name) for name in _OVERRIDES if getattr(args, name) is not None}
    if args.ladder and options.model != "mlp":
        raise ValueError(
            f"--ladder compares kernels of matmul, where a {options.model} spends little of its "
            "time; train an mlp"
        )
    return replace(options, **given)


def _headline(task: job.Trainable, options: job.Options) -> str:
    return (
        f"{task.name}: {task.headline(options)}, "
        f"batch {options.batch}, {options.optimizer}, {tw.get_num_threads()} thread(s), "
        f"{tw._core.cpu_info()['active_isa']}"
    )


class _Shown:
    """The bar's text after each batch: loss, rate, and the time left."""

    def __init__(self, bar: Bar, unit: str, epochs: int) -> None:
        self.bar, self.unit, self.epochs = bar, unit, epochs
        self._started: tuple[float, int] | None = None

    def __call__(self, now: job.Progress) -> None:
        done, total = (now.epoch - 1) * now.batches + now.batch, self.epochs * now.batches
        clock = time.perf_counter()
        # A rung of the ladder begins anew; a resumed training not at 0.
        if self._started is None or done <= self._started[1]:
            self._started = clock, done
        begun, before = self._started
        left = (clock - begun) / max(done - before, 1) * (total - done)
        kernel = "" if now.kernel == job.AUTOMATIC else f"{now.kernel}  "
        text = (
            f"{kernel}epoch {now.epoch}/{self.epochs}  loss {now.loss:.4f}  "
            f"{now.rate:,.0f} {self.unit}/s  {_left(left) if done > before else ''}"
        )
        self.bar.update(done, total, text)


def _left(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} left" if hours else f"{minutes}:{rest:02} left"


class _Told:
    """A line after each epoch, and one when the loss is lost."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.epochs = 0
        self._lost = False

    def __call__(self, run: job.Run) -> None:
        epoch, metric = run.epochs[-1], job.METRICS[run.metric]
        self.epochs += 1
        self.console.line(
            f"epoch {epoch.number:>2}/{run.options.epochs}  loss {epoch.loss:.4f}  "
            f"{metric.title} {metric.show(epoch.score)}  {format_seconds(epoch.seconds)}  "
            f"{epoch.rate:,.0f} {run.unit}/s"
        )
        if not math.isfinite(epoch.loss) and not self._lost:
            self._lost = True
            self.console.line(
                f"the loss is no longer finite: try an --lr below {run.options.learning_rate:g}"
            )


def _show_run(console: Console, run: job.Run) -> None:
    metric = job.METRICS[run.metric]
    if run.error:
        console.line(f"{run.options.kernel}: refused: {run.error}")
    else:
        console.line(
            f"{run.options.kernel}: {format_seconds(run.epoch_seconds)} an epoch, "
            f"{metric.title} {metric.show(run.score)}"
        )


def _report(
    console: Console,
    runs: Sequence[job.Run],
    args: argparse.Namespace,
    task: job.Trainable,
    placement: Placement | None,
) -> None:
    if args.ladder:
        short = job.METRICS[runs[0].metric].title.split()[-1]
        columns = ("kernel", "epoch", "total", f"{runs[0].unit}/s", short, "speed-up")
        console.table(f"The ladder on {args.task}", columns, _ladder_rows(runs))
    console.on_page(*of_training(runs))
    results = [run.as_dict() for run in runs]
    if isinstance(task, job.Text):
        results[0]["sample"] = _sampled(console, runs[0], task, args)
    told = {} if placement is None else {"placement": placement.as_dict()}
    console.json({"runs": results, **told})


def _sampled(console: Console, run: job.Run, task: job.Text, args: argparse.Namespace) -> str:
    """What the model writes, told with its speed."""
    assert run.model is not None
    start = time.perf_counter()
    count, temperature = args.sample or _SAMPLE, args.temperature or _TEMPERATURE
    text = task.sample(run.model, count, temperature, run.options.seed)
    seconds = time.perf_counter() - start
    console.line(
        f"{count} characters at temperature {temperature:g}, {count / seconds:,.0f} a second:"
    )
    console.line(text)
    return text


def _draw(
    console: Console, args: argparse.Namespace, task: job.Trainable, runs: Sequence[job.Run]
) -> None:
    if not any(run.epochs for run in runs):
        console.line("no picture: no rung took the training")
        return
    if args.ladder:
        picture_train.draw_ladder(args.plot, args.task, runs)
    elif isinstance(task, job.Sine):
        picture_train.draw_fit(args.plot, runs[0], task)
    else:
        picture_train.draw_training(args.plot, runs[0], picture_train.Losses.of(runs[0]))
    console.line(f"picture: {args.plot}")


def _ladder_rows(runs: Sequence[job.Run]) -> list[list[str]]:
    first = next((run for run in runs if run.epochs), None)
    rows = []
    for run in runs:
        cells = ["refused", "", "", "", ""]
        if run.epochs and first:
            cells = [
                format_seconds(run.epoch_seconds),
                format_seconds(run.total_seconds),
                f"{_rate(run):,.0f}",
                job.METRICS[run.metric].show(run.score),
                f"{first.epoch_seconds / run.epoch_seconds:.1f}x",
            ]
        rows.append([run.options.kernel, *cells])
    return rows


def _rate(run: job.Run) -> float:
    return sum(epoch.rate for epoch in run.epochs) / len(run.epochs)
