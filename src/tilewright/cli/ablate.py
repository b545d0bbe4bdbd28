"""`tilewright ablate`: which optimizations make a training fast."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import tilewright as tw
from tilewright.bench import ablation
from tilewright.bench.ablation import ALL, PLAIN, Measured, Part
from tilewright.bench.conditions import conditions
from tilewright.bench.intervals import Interval
from tilewright.bench.small_calls import SHORT_NAMES
from tilewright.cli import arguments
from tilewright.cli.console import Console, format_seconds, progress_bar
from tilewright.cli.picture import check_plot
from tilewright.cli.picture_ablation import Bar, draw_ablation

_SECONDS, _WIDTH = 10.0, 0.02
_TRAIN = "train"


def add_parser(commands: arguments.Subparsers) -> None:
    """Adds the command."""
    parser = arguments.add_parser(
        commands, "ablate", run, "train with the optimizations of each reason taken away"
    )
    parser.add_argument(
        "program",
        metavar="PROGRAM",
        help=f"a Python file that trains with an optimizer, or: train {'|'.join(SHORT_NAMES)}",
    )
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS", help="of the program"
    )
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds",
        type=arguments.positive_real,
        metavar="X",
        default=_SECONDS,
        help="run as many steps of each line as fit into this, at least two "
        f"(default: {_SECONDS:g})",
    )
    parser.add_argument(
        "--width",
        type=arguments.positive_real,
        metavar="X",
        default=_WIDTH,
        help="stop a line earlier where its factor is known within this share "
        f"(default: {_WIDTH:g})",
    )
    arguments.add_threads(parser)
    arguments.add_plot(parser)


def run(args: argparse.Namespace) -> int:
    """Runs all lines and reports; 1 where one gave another loss, or everything gave none."""
    what, rest = _what(args)
    for option, target in (("--json", args.json), ("--plot", args.plot)):
        if target is not None and target.endswith(".py"):
            raise ValueError(f"{option} would write over a program, {target}; say {option}=FILE")
    check_plot(args.plot)
    console = Console.of(args)
    threads = args.threads or tw.get_num_threads()
    known = conditions(threads)
    console.line(arguments.conditions_text(known))
    found = ablation.parts(threads)
    cumulative, single = ablation.lines(found)
    console.line(f"{len(cumulative) + len(single)} lines, {args.seconds:g} s each at most")
    measured = list(_measured(args, what, rest, threads, [*cumulative, *single]))
    base = next(line for line in measured if line.line.name == ALL)
    if base.refused:
        raise ValueError(f"ablate: {base.refused}")
    step, losses = ablation.common_loss(measured)
    told = _Told(what, measured, step, losses)
    _print(console, told, found, len(cumulative))
    console.json(_report(known, told, found))
    if args.plot:
        _draw(args.plot, told, known, len(cumulative))
        console.line(f"picture: {args.plot}")
    return 0 if ablation.agree(losses) else 1


def _what(args: argparse.Namespace) -> tuple[str, list[str]]:
    """What the lines run, as the worker takes it, and the program's arguments.

    Options may stand behind `train NAME`, where no program's arguments are.
    """
    if args.program != _TRAIN:
        return args.program, args.arguments
    parser = argparse.ArgumentParser(prog="tilewright ablate train")
    parser.add_argument("name", choices=tuple(SHORT_NAMES), help="what to train")
    arguments.add_json(parser)
    _add_options(parser)
    parser.parse_args(args.arguments, args)
    return f"train:{args.name}", []


def _measured(
    args: argparse.Namespace,
    what: str,
    rest: Sequence[str],
    threads: int,
    lines: Sequence[ablation.Line],
) -> Sequence[Measured]:
    with progress_bar() as bar:

        def show(at: int, done: int, count: int) -> None:
            bar.update(done, count, f"round {at}: {done} of {count} lines are known")

        return list(ablation.measure(lines, what, rest, threads, args.seconds, args.width, show))


class _Told:
    """All lines, with what they are compared with."""

    def __init__(
        self, what: str, measured: Sequence[Measured], step: int, losses: Sequence[float]
    ) -> None:
        self.what, self.measured, self.step = what, measured, step
        self.losses = {each.line.name: loss for each, loss in zip(measured, losses, strict=True)}
        self.by_name = {each.line.name: each for each in measured}

    @property
    def title(self) -> str:
        """What was trained."""
        return SHORT_NAMES.get(self.what.removeprefix("train:"), self.what)

    def factor(self, each: Measured) -> Interval | None:
        """How many times as long: the line before over this one; without a part, over all."""
        other = self.by_name.get(each.line.before)
        if other is None:
            return None
        return each.over(other) if other.line.name == ALL else other.over(each)

    def loss(self, each: Measured) -> str:
        """Of the last step that all lines have."""
        loss = self.losses[each.line.name]
        return f"{loss:.5f}" if loss == loss else "-"  # noqa: PLR0124  (NaN)


def _print(console: Console, told: _Told, found: Sequence[Part], cumulative: int) -> None:
    loss = f"loss of step {told.step}"
    plain = told.measured[0]
    rows = []
    for each in told.measured[:cumulative]:
        total = plain.over(each)
        rows.append([*_cells(told, each), f"{total.value:.1f}x" if total else "-"])
        rows[-1] += [told.loss(each), _steps(each)]
    columns = ("line", "a step", "faster", "95 %", "in all", loss, "steps")
    console.table(f"{told.title}: from plain loops to everything", columns, rows)
    rows = [
        [*_cells(told, each), told.loss(each), _steps(each)] for each in told.measured[cumulative:]
    ]
    console.table(
        f"{told.title}: everything, but for one reason",
        ("line", "a step", "slower", "95 %", loss, "steps"),
        rows,
    )
    for line in _notes(told, found):
        console.text(line)


def _cells(told: _Told, each: Measured) -> list[str]:
    factor = told.factor(each)
    step = format_seconds(each.step_s) if each.turns else "-"
    if factor is None:
        return [each.line.text, step, "-", "-"]
    return [each.line.text, step, f"{factor.value:.2f}x", str(factor)]


def _steps(each: Measured) -> str:
    return each.refused or str(each.steps)


def _notes(told: _Told, found: Sequence[Part]) -> list[str]:
    most = max(each.steps for each in told.measured)
    plain = told.measured[0]
    notes = [f"{part.name}: {part.text}" for part in found]
    if plain.steps < most:
        notes.append(
            f"{PLAIN} ran a slice of the steps, {plain.steps} where the fastest line ran {most}: "
            "times are of a step, and those of a whole training are scaled from it"
        )
    losses = list(told.losses.values())
    if not told.step:
        notes.append("no loss was seen in all lines")
    elif ablation.agree(losses):
        notes.append(f"all losses agree within {ablation.TOLERANCE:g} of their size")
    else:
        notes.append(f"LOSSES DIFFER by more than {ablation.TOLERANCE:g} of their size")
    return notes


def _report(known: Mapping[str, Any], told: _Told, found: Sequence[Part]) -> dict[str, Any]:
    rows = []
    for each in told.measured:
        factor = told.factor(each)
        rows.append(
            {
                "line": each.line.name,
                "without": [part.name for part in each.line.without],
                "step_s": each.step_s,
                "compared_with": each.line.before,
                "factor": asdict(factor) if factor else None,
                "loss": told.losses[each.line.name],
                "steps": each.steps,
                "turns": len(each.turns),
                "refused": each.refused,
            }
        )
    return {
        "conditions": dict(known),
        "what": told.what,
        "title": told.title,
        "parts": {
            part.name: {"optimizations": part.rows, "kernels": dict(part.kernels), "isa": part.isa}
            for part in found
        },
        "loss_of_step": told.step,
        "losses_agree": ablation.agree(list(told.losses.values())),
        "lines": rows,
    }


def _draw(path: str, told: _Told, known: Mapping[str, Any], cumulative: int) -> None:
    bars = [
        Bar(each.line.text, each.step_s, told.factor(each)) for each in told.measured if each.turns
    ]
    steps = [bar for bar in bars if not bar.name.startswith("without ")]
    single = [bar for bar in bars if bar.name.startswith("without ")]
    below = (
        f"{known['processor']}, {known['isa']}, {known['threads']} threads, version "
        f"{known['version']}; steps of {PLAIN}: {told.measured[0].steps}, scaled"
    )
    draw_ablation(path, told.title, below, steps, single)
