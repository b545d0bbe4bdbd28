"""A line of the comparison on a GPU: who does the same work, and what ours must reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from timeit import Timer
from typing import Any

from tilewright.bench.harness import OURS, Case, Result

# The same call on different inputs, one after the other: none finds its inputs in a cache.
Calls = Sequence[Callable[[], object]]


@dataclass(frozen=True)
class Line:
    """A case that is built when its turn comes, and its aim.

    `make` gives the contenders' timers, ours first. `against`: whose time over ours is to be at
    least `least`; without one the best of the others. `most_s`: what ours may take, whoever else
    is there. `errors` gives each contender's largest relative error, and ours must not be above
    that of `against`.
    """

    name: str
    group: str
    make: Callable[[], Mapping[str, Timer]]
    least: float = 0.0
    against: str = ""
    most_s: float = 0.0
    work: float = 0.0
    unit: str = ""
    errors: Callable[[], Mapping[str, float]] | None = None

    def case(self, rounds: int) -> Case:
        """For the harness."""
        return Case(self.name, self.make(), self.work, self.unit, rounds=rounds, budget_s=1.5)


@dataclass(frozen=True)
class Judged:
    """A measured line. `holds` is None where whom it is to be held against is not there."""

    result: Result
    group: str
    aim: str
    ratio: float | None
    holds: bool | None
    errors: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return self.result.as_dict() | {
            "group": self.group,
            "aim": self.aim,
            "aimed_ratio": self.ratio,
            "holds": self.holds,
            "errors": dict(self.errors),
        }


def judge(line: Line, result: Result) -> Judged:
    """What the timings say of the aim."""
    errors = dict(line.errors()) if line.errors else {}
    against = line.against or result.best_peer or ""
    ratio = result.ratios.get(against)
    verdicts: list[bool | None] = []
    aims = []
    if line.least:
        aims.append(f">= {line.least:g}x {line.against or 'the best'}")
        verdicts.append(None if ratio is None else ratio >= line.least)
    if line.most_s:
        aims.append(f"<= {line.most_s * 1e6:g} us")
        verdicts.append(result.timings[OURS].median_s <= line.most_s)
    if errors:
        aims.append("error no larger")
        theirs = errors.get(against)
        verdicts.append(None if theirs is None else errors[OURS] <= theirs)
    holds = False if False in verdicts else None if None in verdicts or not verdicts else True
    return Judged(result, line.group, ", ".join(aims), ratio, holds, errors)
