"""Two installed builds against each other: each in a process of its own, by turns.

A process's layout in memory moves small calls by up to a tenth, with the same instructions: so each
process shifts its stack and its heap by a random amount, a comparison takes several pairs of
processes, and the middle of their ratios counts.
Source: Mytkowicz et al., "Producing wrong data without doing anything obviously wrong" (2009).
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from random import randrange
from statistics import geometric_mean, median
from timeit import Timer
from typing import Any

from tilewright.bench import small_calls
from tilewright.bench.harness import OURS, Case, Timing, compare

BEFORE = "before"
# Above this a call is marked.
SLOWER = 1.05
_ROUNDS, _STEPS, _FEW = 25, 15, 7


class Worker:
    """A process that times calls of one build."""

    def __init__(
        self,
        build: str | None,
        threads: int,
        program: Sequence[str] = (small_calls.__file__,),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`build`: a Python, or a folder that holds the package; None: this one.

        `program`: what the Python is told to run, `settings`: of its environment.
        """
        python, folder = _python_of(build)
        environment = os.environ | {"TILEWRIGHT_THREADS": str(threads)} | dict(settings or {})
        environment["TILEWRIGHT_BENCH_SHIFT"] = "." * randrange(4096)  # of the stack
        if folder:
            environment["PYTHONPATH"] = folder
        self._process = subprocess.Popen(
            [python, *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=tempfile.gettempdir(),
        )
        self.version, _, self.place = self._answer().partition(" ")
        if folder and not Path(self.place).samefile(Path(folder) / "tilewright"):
            self.close()
            raise ValueError(
                f"{folder} holds no tilewright that its Python imports; it imports "
                f"{self.place}. Give the folder that the package lies in, or a Python"
            )

    def seconds(self, name: str, count: int) -> float:
        """Of so many calls. Raises LookupError where the build has none of the name."""
        assert self._process.stdin
        print(f"{name} {count}", file=self._process.stdin, flush=True)
        answer = self._answer()
        try:
            return float(answer)
        except ValueError:
            raise LookupError(answer) from None

    def close(self) -> int:
        """Ends the process; its exit code."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait()

    def _answer(self) -> str:
        assert self._process.stdout
        answer = self._process.stdout.readline().strip()
        if not answer:
            code = self.close()
            raise OSError(f"bench: the build's process ended with code {code}")
        return answer


class Remote(Timer):
    """A timer whose calls run in a worker."""

    def __init__(self, worker: Worker, name: str) -> None:
        self._worker, self._name = worker, name

    def timeit(self, number: int = 1) -> float:
        return self._worker.seconds(self._name, number)


@dataclass(frozen=True)
class Compared:
    """A call's times now and before, each the middle one of all pairs of processes.

    `ratios`: now over before of each pair, none without a build to compare with. `missing`: what a
    build without the call says.
    """

    name: str
    now: Timing | None
    before: Timing | None = None
    ratios: tuple[float, ...] = ()
    missing: str = ""

    @property
    def ratio(self) -> float:
        """The middle one; NaN without any."""
        return median(self.ratios) if self.ratios else math.nan

    @property
    def is_slower(self) -> bool:
        """Whether the middle ratio is above the mark, and that of two pairs where there are two."""
        above = sum(ratio > SLOWER for ratio in self.ratios)
        return self.ratio > SLOWER and above >= min(2, len(self.ratios))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "ratio": self.ratio, "is_slower": self.is_slower}


def times(
    calls: Sequence[str],
    before: str | None,
    threads: int,
    pairs: int,
    on_pair: Callable[[int, list[str]], None],
    now: str | None = None,
) -> list[Compared]:
    """Times calls now, and of a build before. `on_pair` is told of each pair's processes.

    `now`: the build that is new, None for this one.
    """
    found: dict[str, list[Compared]] = {name: [] for name in calls}
    for pair in range(pairs):
        with ExitStack() as stack:
            workers = {}
            for name, build in ((OURS, now), (BEFORE, before)):
                if name == OURS or before is not None:
                    workers[name] = Worker(build, threads)
                    stack.callback(workers[name].close)
            on_pair(pair, [f"{worker.version} of {worker.place}" for worker in workers.values()])
            for result in _of_pair(calls, workers):
                found[result.name].append(result)
    return [_together(results) for results in found.values()]


def mean_ratio(results: Sequence[Compared]) -> float:
    """The geometric mean of all ratios; NaN without any."""
    ratios = [result.ratio for result in results if result.ratios]
    return geometric_mean(ratios) if ratios else math.nan


def _of_pair(calls: Sequence[str], workers: dict[str, Worker]) -> Iterator[Compared]:
    for name in calls:
        contenders: dict[str, Timer] = {who: Remote(w, name) for who, w in workers.items()}
        small = any(call.name == name for call in small_calls.CALLS)
        rounds = _ROUNDS if small else _STEPS if name in small_calls.TRAININGS else _FEW
        try:
            timings = compare(Case(name, contenders, rounds=rounds), settle=False)
        except LookupError as error:
            yield Compared(name, None, missing=str(error))
            continue
        now, before = timings[OURS], timings.get(BEFORE)
        ratios = (now.median_s / before.median_s,) if before else ()
        yield Compared(name, now, before, ratios)


def _together(results: list[Compared]) -> Compared:
    """Of one call in all pairs."""
    first = results[0]
    if first.now is None:
        return first
    now, before = (_middle([getattr(r, part) for r in results]) for part in ("now", "before"))
    ratios = tuple(ratio for result in results for ratio in result.ratios)
    return Compared(first.name, now, before, ratios)


def _middle(timings: list[Timing | None]) -> Timing | None:
    known = sorted((t for t in timings if t), key=lambda t: t.median_s)
    return known[(len(known) - 1) // 2] if known else None


def _python_of(build: str | None) -> tuple[str, str | None]:
    """The Python of a build, and the folder of the package where that is not its own."""
    if build is None:
        return sys.executable, str(Path(small_calls.__file__).parents[2])
    path = Path(build)
    if path.is_dir():
        if not (path / "tilewright").is_dir():
            raise ValueError(f"{path} holds no folder tilewright; give the folder that does")
        return sys.executable, str(path.resolve())
    if not os.access(path, os.X_OK):
        raise ValueError(f"{path} is neither a folder nor a Python to run")
    return str(path), None
