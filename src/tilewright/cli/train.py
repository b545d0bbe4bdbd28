"""`tilewright train`: the main job, once or on every rung of the ladder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import tilewright as tw
from tilewright import train as job
from tilewright.cli import arguments, picture_train
from tilewright.cli.console import Bar, Console, format_seconds, progress_bar
from tilewright.cli.picture import check_plot
from tilewright.cli.picture_train import Losses

_OVERRIDES = ("epochs", "batch", "hidden", "optimizer", "lr", "seed", "kernel")


def add_parser(commands: arguments.Subparsers) -> None:
    """Adds the command."""
    parser = arguments.add_parser(
        commands, "train", run, "train a network on handwritten digits, on any rung of the ladder"
    )
    parser.add_argument("task", choices=("digits", "mnist"), help="embedded digits, or MNIST")
    parser.add_argument(
        "--data", metavar="DIR", help="folder of the MNIST files (see also TILEWRIGHT_DATA)"
    )
    parser.add_argument(
        "--epochs", type=arguments.positive, metavar="N", help="default: mnist 3, digits 50"
    )
    parser.add_argument(
        "--batch", type=arguments.positive, metavar="N", help="default: mnist 64, digits 32"
    )
    parser.add_argument(
        "--hidden", type=arguments.positive, metavar="N", help="default: mnist 256, digits 64"
    )
    parser.add_argument("--optimizer", choices=tuple(job.LEARNING_RATES), help="default: sgd")
    parser.add_argument("--lr", type=arguments.positive_real, metavar="X", help=_lr_help())
    parser.add_argument("--seed", type=arguments.seed, metavar="N", help="default: 1")
    rungs = parser.add_mutually_exclusive_group()
    kernels = (*tw.kernels.names("matmul"), job.AUTOMATIC)
    rungs.add_argument("--kernel", choices=kernels, help="matmul kernel to force (default: auto)")
    rungs.add_argument("--ladder", action="store_true", help="train once per kernel and compare")
    arguments.add_threads(parser)
    arguments.add_plot(parser)


def run(args: argparse.Namespace) -> int:
    """Trains and reports."""
    check_plot(args.plot)
    console = Console(args.json)
    if args.threads:
        tw.set_num_threads(args.threads)
    given = {name: getattr(args, name) for name in _OVERRIDES if getattr(args, name) is not None}
    options = replace(job.default_options(args.task), **given)
    task = job.load_task(args.task, args.data)
    console.line(_headline(task, options))
    losses = Losses()
    with progress_bar() as bar:

        def on_batch(now: job.Progress) -> None:
            losses.add(now)
            _show_batch(bar, options.epochs, now)

        if args.ladder:
            runs = job.ladder(task, options, on_batch, on_run=partial(_show_run, console))
        else:
            runs = [job.train(task, options, on_batch, partial(_show_epoch, console))]
    _report(console, runs, args)
    if args.plot:
        _draw(console, args, runs, losses)
    return 0


def _lr_help() -> str:
    rates = ", ".join(f"{name} {rate:g}" for name, rate in job.LEARNING_RATES.items())
    return f"learning rate (default: {rates})"


def _headline(task: job.Task, options: job.Options) -> str:
    pixels = task.train_images.shape[1]
    return (
        f"{task.name}: {pixels}-{options.hidden}-{task.classes}, "
        f"{task.train_images.shape[0]:,} training and {task.test_images.shape[0]:,} test images, "
        f"batch {options.batch}, {options.optimizer}, {tw.get_num_threads()} thread(s), "
        f"{tw._core.cpu_info()['active_isa']}"
    )


def _show_batch(bar: Bar, epochs: int, now: job.Progress) -> None:
    done = (now.epoch - 1) * now.batches + now.batch
    text = (
        f"{now.kernel}  epoch {now.epoch}/{epochs}  loss {now.loss:.4f}  "
        f"{now.images_per_second:,.0f} images/s"
    )
    bar.update(done, epochs * now.batches, text)


def _show_epoch(console: Console, run: job.Run) -> None:
    epoch = run.epochs[-1]
    console.line(
        f"epoch {epoch.number:>2}/{run.options.epochs}  loss {epoch.loss:.4f}  "
        f"test accuracy {epoch.accuracy:.2%}  {format_seconds(epoch.seconds)}  "
        f"{epoch.images_per_second:,.0f} images/s"
    )


def _show_run(console: Console, run: job.Run) -> None:
    if run.error:
        console.line(f"{run.options.kernel}: refused: {run.error}")
    else:
        console.line(
            f"{run.options.kernel}: {format_seconds(run.epoch_seconds)} an epoch, "
            f"test accuracy {run.accuracy:.2%}"
        )


def _report(console: Console, runs: Sequence[job.Run], args: argparse.Namespace) -> None:
    if args.ladder:
        columns = ("kernel", "epoch", "total", "images/s", "accuracy", "speed-up")
        console.table(f"The ladder on {args.task}", columns, _ladder_rows(runs))
    console.json({"runs": [run.as_dict() for run in runs]})


def _draw(
    console: Console, args: argparse.Namespace, runs: Sequence[job.Run], losses: Losses
) -> None:
    if not any(run.epochs for run in runs):
        console.line("no picture: no rung took the training")
        return
    if args.ladder:
        picture_train.draw_ladder(args.plot, args.task, runs)
    else:
        picture_train.draw_training(args.plot, runs[0], losses)
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
                f"{run.accuracy:.2%}",
                f"{first.epoch_seconds / run.epoch_seconds:.1f}x",
            ]
        rows.append([run.options.kernel, *cells])
    return rows


def _rate(run: job.Run) -> float:
    return sum(epoch.images_per_second for epoch in run.epochs) / len(run.epochs)
