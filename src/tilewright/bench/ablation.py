"""Which optimizations make a training fast: it runs with those of each reason taken away.

Each line is a training in a process of its own, from the same seed, with some parts of the engine
off. Processes take turns, step by step, and wait meanwhile. A line's factor is the middle of the
ratios of its turns to another line's turns in the same rounds.
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import IO, Any

import tilewright as tw
from tilewright.bench.intervals import Interval, median_interval
from tilewright.optimizations import REASONS

PLAIN, ALL = "plain loops", "everything"
KERNELS = "chosen kernels"
_VECTORS, _LAUNCHES, _CORES = "vector and matrix instructions", "fewer launches", "more cores"
# In which order the reasons come back to plain loops.
_ORDER = (
    "better memory access",
    "fewer multiplications",
    _VECTORS,
    _LAUNCHES,
    "less allocation",
    "less work a call",
    _CORES,
)
# Without the current folder, whose files are no modules of the standard library.
_WORKER = (
    f"import sys; sys.path[:1] = []; sys.path.append({str(Path(__file__).parents[2])!r}); "
    "from tilewright.bench.ablation_worker import main; main()"
)
# A turn is long against a process's way back to its caches, and short against a machine's moods.
_TURN_SECONDS, _SHORT_STEP_SECONDS = 0.15, 0.05
_FEWEST_TURNS, _MOST_TURNS = 8, 40
_FEWEST_PAIRS = 6
# Losses of two lines agree within this share, after steps that differ in rounding alone.
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Part:
    """What is taken away together: rows of the table, and what stands for it besides.

    `kernels`: what is forced without it. `isa`, `threads`: what is used without it, else None.
    """

    name: str
    rows: tuple[str, ...] = ()
    kernels: Mapping[str, str] = field(default_factory=dict)
    isa: str | None = None
    threads: int | None = None

    @property
    def text(self) -> str:
        """What it is made of."""
        told = []
        if self.kernels:
            kinds = sorted(set(self.kernels.values()))
            told.append(f"{len(self.kernels)} ops' kernels but {', '.join(kinds)}")
        told += ["wide vectors"] * bool(self.isa) + ["all threads but one"] * bool(self.threads)
        return ", ".join([*told, *self.rows])


def parts(threads: int) -> list[Part]:
    """In the order in which they come back to plain loops: kernels, then the reasons' rows."""
    naive = _with_kernel(lambda kernels: kernels[0] if kernels[0]["name"] == "naive" else None)
    bodies = _with_kernel(lambda kernels: kernels[-1] if kernels[-1]["device"] == "any" else None)
    fused = {op: name for op, name in bodies.items() if op not in naive}
    found = [Part(KERNELS, (), naive)]
    for reason in (*_ORDER, *(reason for reason in REASONS if reason not in _ORDER)):
        part = Part(
            reason,
            tuple(tw.optimizations.names(reason)),
            fused if reason == _LAUNCHES else {},
            "scalar" if reason == _VECTORS else None,
            1 if reason == _CORES and threads > 1 else None,
        )
        # Rows of several threads do nothing on one.
        if part.text and not (reason == _CORES and threads == 1):
            found.append(part)
    return found


def _with_kernel(find: Callable[[list[dict[str, Any]]], dict[str, Any] | None]) -> dict[str, str]:
    """The kernel's name by op, where it has the one that is looked for."""
    found = ((op, find(tw.kernels.describe(op))) for op in tw.kernels.ops())
    return {op: kernel["name"] for op, kernel in found if kernel}


@dataclass(frozen=True)
class Line:
    """A training without some parts. `before`: the line that its factor is against.

    `adds`: the part that the line before lacks and this one has.
    """

    name: str
    without: tuple[Part, ...]
    before: str
    adds: str = ""

    @property
    def text(self) -> str:
        """The name, with what the last line adds."""
        return f"+ {self.adds}: {ALL}" if self.name == ALL else self.name

    def kernels(self) -> dict[str, str]:
        """What is forced."""
        forced: dict[str, str] = {}
        for part in reversed(self.without):
            forced |= part.kernels
        return forced

    def settings(self, threads: int) -> dict[str, str]:
        """Of the process's environment."""
        off = [os.environ.get("TILEWRIGHT_OFF", ""), *(r for p in self.without for r in p.rows)]
        settings = {"TILEWRIGHT_OFF": ",".join(row for row in off if row)}
        isa = next((part.isa for part in self.without if part.isa), None)
        if isa:
            settings["TILEWRIGHT_ISA"] = isa
        fewer = next((part.threads for part in self.without if part.threads), None)
        return settings | {"TILEWRIGHT_THREADS": str(fewer or threads)}


def lines(found: Sequence[Part]) -> tuple[list[Line], list[Line]]:
    """Cumulatively, from plain loops to everything; and everything without one part each."""
    cumulative = [Line(PLAIN, tuple(found), "")]
    for at, part in enumerate(found):
        name = ALL if at + 1 == len(found) else f"+ {part.name}"
        cumulative.append(Line(name, tuple(found[at + 1 :]), cumulative[-1].name, part.name))
    return cumulative, [Line(f"without {part.name}", (part,), ALL) for part in found]


@dataclass
class Measured:
    """A line with what its turns gave.

    `turns`: seconds of a step, by round. `steps`: how many were timed. `refused`: why the line has
    no figures.
    """

    line: Line
    turns: dict[int, float] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    steps: int = 0
    refused: str = ""

    @property
    def step_s(self) -> float:
        """The median turn; NaN without any."""
        return median(self.turns.values()) if self.turns else math.nan

    def over(self, other: Measured) -> Interval | None:
        """This line's time over another's, None without a turn of both.

        The middle of the rounds that both have, or, where these are few, the medians of all: an
        interval of a single turn is not known, which NaN says.
        """
        if not self.turns or not other.turns:
            return None
        rounds = [at for at in self.turns if at in other.turns]
        if len(rounds) >= _FEWEST_PAIRS:
            return median_interval([self.turns[at] / other.turns[at] for at in rounds])
        own, others = (median_interval(list(each.turns.values())) for each in (self, other))
        if min(len(self.turns), len(other.turns)) == 1:
            return Interval(own.value / others.value, math.nan, math.nan)
        return Interval(own.value / others.value, own.low / others.high, own.high / others.low)


class _Process:
    """A line's process."""

    def __init__(self, line: Line, what: str, arguments: Sequence[str], threads: int) -> None:
        to_child, from_child = os.pipe(), os.pipe()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the process)
        self._process = subprocess.Popen(
            [
                sys.executable, "-c", _WORKER,
                str(to_child[0]), str(from_child[1]), json.dumps(line.kernels()), what, *arguments,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            pass_fds=(to_child[0], from_child[1]),
            env=os.environ | line.settings(threads) | {"PYTHONHASHSEED": "0"},
        )  # fmt: skip
        os.close(to_child[0])
        os.close(from_child[1])
        self._grants = os.fdopen(to_child[1], "w")
        self._answers = os.fdopen(from_child[0])

    def run(self, steps: int) -> dict[str, Any]:
        """Seconds and losses of so many steps, fewer where the program ends.

        Raises ValueError with the process's last line where it failed.
        """
        try:
            print(steps, file=self._grants, flush=True)
            answer = self._answers.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise ValueError(self._last_words())
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        """Ends the process: no step is granted any more."""
        for end in (self._grants, self._answers):
            with suppress(BrokenPipeError):
                end.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:  # in the middle of a step
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def _last_words(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        return said[-1] if said else f"the program ended with code {code} before a step"


class _Runner:
    """A line that is being measured."""

    def __init__(self, process: _Process, line: Line, seconds: float) -> None:
        self.measured = Measured(line)
        self.done = False
        self._process, self._seconds = process, seconds
        self._spent, self._step = 0.0, 0.0

    def turn(self, at: int) -> None:
        """Some steps of a round."""
        try:
            if not self._step:
                self._first()
            self._more(at)
        except ValueError as error:
            self.done = True
            self.measured.refused = "" if self.measured.turns else str(error)

    def _first(self) -> None:
        """The first step finds cold caches, and the program's start is part of it: not timed."""
        seconds = self._run(1)
        if not seconds:
            raise ValueError("the program ended before an optimizer made a step")
        self._step, self._spent = seconds[0], 0.0

    def _more(self, at: int) -> None:
        count = max(1, round(_TURN_SECONDS / self._step))
        is_short = self._step < _SHORT_STEP_SECONDS
        seconds = self._run(count + is_short)[int(is_short) :]
        if seconds:
            self._step = fmean(seconds)
            self._keep(at, seconds)
        elif not self.measured.turns:
            raise ValueError("the program ended after one step")
        self.done |= self._spent >= self._seconds

    def _run(self, steps: int) -> list[float]:
        answer = self._process.run(steps)
        seconds: list[float] = answer["seconds"]
        self.measured.losses += [math.nan if x is None else x for x in answer["losses"]]
        self._spent += sum(seconds)
        self.done |= answer["ended"]
        return seconds

    def _keep(self, at: int, seconds: Sequence[float]) -> None:
        self.measured.turns[at] = fmean(seconds)
        self.measured.steps += len(seconds)

    def is_narrow(self, all_of_it: Measured, width: float) -> bool:
        """Whether its factor is known within a share of it."""
        ratio = self.measured.over(all_of_it)
        turns = len(self.measured.turns)
        return turns >= _MOST_TURNS or (
            turns >= _FEWEST_TURNS and ratio is not None and ratio.half_width < width
        )


def measure(
    chosen: Sequence[Line],
    what: str,
    arguments: Sequence[str],
    threads: int,
    seconds: float,
    width: float,
    on_round: Callable[[int, int, int], None],
) -> Iterator[Measured]:
    """Runs the lines by turns, until each is known within `width` or has run for `seconds`.

    `what`: `train:NAME` or a Python file. `on_round` is told of the round, of the lines that are
    done, and of how many there are.
    """
    if not what.startswith("train:") and not Path(what).is_file():
        raise FileNotFoundError(f"no program {what}")
    order = random.Random(what)
    with ExitStack() as stack:
        runners = []
        for line in chosen:
            process = _Process(line, what, arguments, threads)
            stack.callback(process.close)
            runners.append(_Runner(process, line, seconds))
        base = next(runner for runner in runners if runner.measured.line.name == ALL)
        limit = time.monotonic() + 2 * seconds * len(runners)
        for at in range(_MOST_TURNS):
            # What is all there is takes part as long as another does.
            going = [runner for runner in runners if not runner.done or runner is base]
            for runner in order.sample(going, len(going)):
                runner.turn(at)
            for runner in runners:
                runner.done |= runner.is_narrow(base.measured, width)
            done = sum(runner.done for runner in runners)
            on_round(at + 1, done, len(runners))
            if done == len(runners) or base.measured.refused or time.monotonic() > limit:
                break
    yield from (runner.measured for runner in runners)


def common_loss(found: Sequence[Measured]) -> tuple[int, list[float]]:
    """The last step of which all lines tell the loss, from 1, and each line's; 0 without one."""
    known = [line for line in found if not line.refused]
    last = min((len(line.losses) for line in known), default=0)
    return last, [
        line.losses[last - 1] if last and not line.refused else math.nan for line in found
    ]


def agree(losses: Sequence[float]) -> bool:
    """Whether all that are known are the same within the tolerance."""
    known = [loss for loss in losses if not math.isnan(loss)]
    middle = median(known) if known else 0.0
    return all(abs(loss - middle) <= TOLERANCE * abs(middle) + 1e-6 for loss in known)
