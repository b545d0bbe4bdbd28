"""The search of `tune`: one number after another, and only what wins beyond the noise counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from functools import partial
from statistics import fmean, median
from typing import NamedTuple

import tilewright as tw
from tilewright import kernels
from tilewright.tune import rungs, table
from tilewright.tune.timing import Clock, Work, rounds

Values = Mapping[str, float]

# A candidate that wins by less is not worth a table that differs from its neighbour's.
_LEAST_GAIN = 1.02
# It must also win by this many times what the default "won" against itself in the same rounds.
_NOISE_FACTOR = 2.0
# And in this share of the rounds: a few slow rounds of the default can move its median by chance.
_LEAST_STEADINESS = 0.75
_LEAST_ROUNDS, _MOST_ROUNDS = 5, 31
# Of a step's time; the rest is for measuring the winner once more, or it would be who was lucky.
_FIRST_SHARE = 0.65

_SQUARES = tuple(Work(n, n, n) for n in (512, 1024, 2048))
_TALL, _WIDE, _DEEP = Work(4096, 512, 256), Work(256, 512, 4096), Work(256, 4096, 256)
_MNIST = Work(64, 784, 256)


class Step(NamedTuple):
    """One number, the values tried in its place, and the products they are tried on."""

    name: str
    candidates: Callable[[float], tuple[float, ...]]  # from the value in force
    works: tuple[Work, ...]


class Outcome(NamedTuple):
    """What a step found: `values` are the new ones, empty where the default stays.

    `gain`: the best candidate's, `noise`: what the default won or lost against itself, as shares
    of time; NaN where nothing was measured. `note` says why the default stays, or what the
    products it was tried on gained.
    """

    name: str
    values: dict[str, float]
    gain: float
    noise: float
    note: str = ""


def _times(*factors: float) -> Callable[[float], tuple[float, ...]]:
    return lambda value: tuple(float(round(value * factor)) for factor in factors)


def _on(kernel: str, *works: Work, threads: int = 1) -> tuple[Work, ...]:
    return tuple(work._replace(kernel=kernel, threads=threads) for work in works)


# The order matters: what later steps are measured with is what earlier ones have found. A rung with
# a number of its own gets a row here.
STEPS = (
    Step("run_bytes", _times(0.5, 0.75, 1.5, 2), _on("packed", *_SQUARES[1:], _TALL, _WIDE, _DEEP)),
    Step("block_bytes", _times(0.5, 0.75, 1.25, 1.5), _on("packed", *_SQUARES[1:], _TALL, _WIDE)),
    Step(
        "small_bytes_of_a",
        lambda value: (0.0, *_times(0.5, 2)(value)),
        _on("packed", _MNIST, Work(128, 1024, 1024), Work(256, 512, 512), _SQUARES[0]),
    ),
    Step(
        "dot_bytes",
        _times(0.5, 2),
        _on("", *(Work(m, k, 256, transposed=True) for m, k in ((8, 512), (16, 512), (32, 256)))),
    ),
    Step(
        "strassen_extent",
        _times(0.5, 0.75, 1.5),
        _on("strassen", *(Work(n, n, n) for n in (1024, 1536, 2048))),
    ),
)
THREAD_STEPS = (
    Step(
        "work_per_part",
        _times(0.25, 0.5, 2, 4),
        _on("", *(Work(n, n, n) for n in (96, 128, 160, 192, 256)), _MNIST, threads=0),
    ),
    # Two threads that share one core's vector units may be slower than one.
    Step(
        "most_threads",
        lambda _: tuple(float(n) for n in _fewer_threads(tw.get_num_threads())),
        _on("", *_SQUARES, _TALL, _WIDE, threads=0),
    ),
    Step(
        "parts_per_thread",
        lambda value: tuple(float(n) for n in (1, 2, 3, 4) if n != value),
        _on("", *_SQUARES, _TALL, _WIDE, threads=0),
    ),
)


def _fewer_threads(threads: int) -> list[int]:
    return sorted({n for n in (threads // 2, threads * 3 // 4) if 1 < n < threads})


class Search:
    """One run. `on_progress(share done, text)` is called as it goes on."""

    def __init__(
        self,
        clock: Clock,
        seconds: float,
        on_progress: Callable[[float, str], None] | None = None,
    ) -> None:
        if not seconds > 0:
            raise ValueError(f"tune: seconds must be above 0, got {seconds}")
        self._clock = clock
        self._seconds = seconds
        self._on_progress = on_progress or (lambda share, text: None)
        self._start = clock.now()

    def run(self) -> tuple[table.Table, list[Outcome]]:
        """Measures, writes the table and puts it into force."""
        if forced := kernels._forced("matmul"):
            raise ValueError(f"tune: kernel {forced!r} is forced for matmul: lift that first")
        table.check_writable()
        self._start = self._clock.now()
        with _surroundings():
            outcomes = list(self._outcomes())
        found = self._table(outcomes)
        table.save(found)
        return found, outcomes

    def _outcomes(self) -> Iterator[Outcome]:
        threads = tw.get_num_threads()
        steps: list[Callable[[float], Outcome]] = [self._tried(step) for step in STEPS]
        steps.append(self._rates)
        if threads > 1:
            steps += [self._tried(step) for step in THREAD_STEPS]
        for i, step in enumerate(steps):
            left = self._start + self._seconds - self._clock.now()
            outcome = step(left / (len(steps) - i))
            table.set_values(outcome.values)  # the next steps build on it
            self._clock.forget()
            yield outcome

    def _table(self, outcomes: Sequence[Outcome]) -> table.Table:
        values = {name: value for outcome in outcomes for name, value in outcome.values.items()}
        gains = {outcome.name: 1 + outcome.gain for outcome in outcomes if outcome.values}
        whole = {name for name, value in table.defaults().items() if isinstance(value, int)}
        return table.Table(
            {name: int(value) if name in whole else value for name, value in values.items()},
            {name: round(gain, 4) for name, gain in gains.items()},
            table.machine(),
            tw.__version__,
            datetime.now(timezone.utc).isoformat(timespec="seconds"),
            round(self._clock.now() - self._start, 1),
            table.kept_gpus(),
        )

    def _tried(self, step: Step) -> Callable[[float], Outcome]:
        def run(seconds: float) -> Outcome:
            limits = {row["name"]: row for row in tw._core.matmul_tunables()}[step.name]
            value = limits["value"]
            candidates = [
                {step.name: other}
                for other in step.candidates(value)
                if limits["least"] <= other <= limits["most"] and other != value
            ]
            return self.decide(step.name, candidates, step.works, seconds)

        return run

    def _rates(self, seconds: float) -> Outcome:
        """The cost model: fitted to each rung's times, then tried where it changes the choice."""
        name = "cost model"
        tell = partial(self._tell, name)
        times = rungs.measure(self._clock, seconds * _FIRST_SHARE, tell)
        fitted = rungs.fitted(times)
        changed = rungs.changed_choices(times, fitted)
        if not changed:
            note = "the estimates choose the same rungs" if times else "no time left"
            return Outcome(name, {}, math.nan, math.nan, note)
        return self.decide(name, [fitted], changed, seconds * (1 - _FIRST_SHARE))

    def decide(
        self, name: str, candidates: Sequence[Values], works: Sequence[Work], seconds: float
    ) -> Outcome:
        """The best candidate where it wins twice, beyond the noise; else the values in force."""
        if not candidates:
            return Outcome(name, {}, math.nan, math.nan, "nothing to try")
        gains = self._gains(name, candidates, works, seconds * _FIRST_SHARE)
        if gains is None:
            return Outcome(name, {}, math.nan, math.nan, "no time left")
        noise, *wins = gains
        best = max(range(len(wins)), key=wins.__getitem__)
        first = wins[best]
        if not first.is_clear(noise):
            return Outcome(name, {}, first.share, noise.share, "within the noise")
        again = self._gains(name, [candidates[best]], works, seconds * (1 - _FIRST_SHARE))
        if again is None or not again[1].is_clear(again[0]):
            return Outcome(name, {}, first.share, noise.share, "did not win again")
        gain = min(first.share, again[1].share)
        note = f"replaces the default: {again[1].least:+.1%} to {again[1].most:+.1%} by product"
        return Outcome(name, dict(candidates[best]), gain, again[0].share, note)

    def _gains(
        self, name: str, candidates: Sequence[Values], works: Sequence[Work], seconds: float
    ) -> list[_Gain] | None:
        """What is won against the values in force: by themselves (noise), by each candidate.

        None where the time does not suffice for the fewest rounds of a single product.
        """
        contenders: list[Values] = [{}, {}, *candidates]
        start = self._clock.now()
        works = self._affordable(works, len(contenders), seconds)
        if not works:
            return None
        samples: list[list[list[float]]] = [[[] for _ in works] for _ in contenders]
        left = start + seconds - self._clock.now()
        for i in rounds(self._clock, left, _LEAST_ROUNDS, _MOST_ROUNDS):
            # The order turns, so that nobody always runs behind the same neighbour.
            for j in range(len(contenders)):
                which = (i + j) % len(contenders)
                with table.use(**contenders[which]):
                    for k, work in enumerate(works):
                        self._tell(name, work)
                        samples[which][k].append(self._clock.seconds(work))
        return [_gain(samples[0], other) for other in samples[1:]]

    def _affordable(
        self, works: Sequence[Work], contenders: int, seconds: float
    ) -> tuple[Work, ...]:
        """The products, cheapest first, as far as the fewest rounds of them fit into the time."""
        costs: dict[Work, float] = {}
        start = self._clock.now()
        for work in sorted(works, key=lambda work: work.m * work.k * work.n):
            before = self._clock.now()
            if before - start > seconds / 2:
                break
            self._clock.seconds(work)  # the first time also makes the operands
            middle = self._clock.now()
            self._clock.seconds(work)
            costs[work] = self._clock.now() - middle
        left = seconds - (self._clock.now() - start)
        fitting: list[Work] = []
        for work, cost in costs.items():
            left -= cost * contenders * _LEAST_ROUNDS
            if left >= 0:
                fitting.append(work)
        return tuple(fitting)

    def _tell(self, name: str, work: Work) -> None:
        done = (self._clock.now() - self._start) / self._seconds
        self._on_progress(min(done, 1.0), f"{name}  {work}")


class _Gain(NamedTuple):
    """Share of time won over all products and by the extremes among them.

    `steadiness`: the share of the paired rounds in which some was won.
    """

    share: float
    least: float
    most: float
    steadiness: float

    def is_clear(self, noise: _Gain) -> bool:
        """Whether it is more than chance: large, larger than what the default won, and steady."""
        least = max(_LEAST_GAIN - 1, _NOISE_FACTOR * abs(noise.share))
        return self.share > least and self.steadiness >= _LEAST_STEADINESS


def _gain(usual: list[list[float]], other: list[list[float]]) -> _Gain:
    """From times by product and round: the geometric mean over products of the median of ratios."""
    logs = [
        [math.log(a / b) for a, b in zip(mine, its, strict=True)]
        for mine, its in zip(usual, other, strict=True)
    ]
    medians = [median(of_product) for of_product in logs]
    mean, least, most = map(math.expm1, (fmean(medians), min(medians), max(medians)))
    won = [sum(of_round) > 0 for of_round in zip(*logs, strict=True)]
    return _Gain(mean, least, most, sum(won) / len(won))


@contextmanager
def _surroundings() -> Iterator[None]:
    """Defaults in force, the best instruction set; afterwards everything as it was."""
    with ExitStack() as stack:
        stack.callback(tw.set_num_threads, tw.get_num_threads())
        stack.enter_context(table.use(**table.defaults()))
        stack.enter_context(kernels.use(isa=kernels.isas()[-1]))
        yield
