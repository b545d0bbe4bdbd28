"""The steps of a training that was observed: which there were, and how they compare."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from tilewright._report.text import time_text

# Steps at the beginning that take more than this times the median warm the machine up.
_WARM = 1.2


class Step(NamedTuple):
    """One step: ns since the block began, its length, its ops and the time in their kernels.

    `warms_up`: one of the first, which take longer: caches are cold, memory is new.
    """

    start_ns: float
    ns: float
    ops: int
    kernels_ns: float
    warms_up: bool


def split(ends: Sequence[float], ops: Sequence[dict[str, Any]]) -> list[Step]:
    """The steps that end at these times; of the ops, those that started in each."""
    starts = [0.0, *ends][: len(ends)]
    lengths = [end - start for start, end in zip(starts, ends, strict=True)]
    counts, kernels = [0] * len(lengths), [0.0] * len(lengths)
    place = 0
    for op in sorted(ops, key=lambda op: op["start_ns"]):
        while place < len(ends) and op["start_ns"] >= ends[place]:
            place += 1
        if place == len(ends):
            break
        counts[place] += 1
        kernels[place] += op["ns"]
    warming = _warming(lengths)
    return [
        Step(start, length, count, inside, i < warming)
        for i, (start, length, count, inside) in enumerate(
            zip(starts, lengths, counts, kernels, strict=True)
        )
    ]


def _warming(lengths: Sequence[float]) -> int:
    """How many steps at the beginning warm up: of a few, none can be told from the others."""
    if len(lengths) < 3:
        return 0
    limit = _WARM * statistics.median(lengths)
    return next(i for i, length in enumerate(lengths) if length <= limit)


def p95(lengths: Sequence[float]) -> float:
    """The shortest time that 95 of 100 steps do not exceed."""
    ordered = sorted(lengths)
    return ordered[max(-(-95 * len(ordered) // 100) - 1, 0)]


def text(steps: Sequence[Step]) -> str:
    """One line: median and 95th percentile of the steps that are warm, then the first ones."""
    warm = [step for step in steps if not step.warms_up]
    lengths = [step.ns for step in warm]
    median = statistics.median(lengths)
    share = sum(step.kernels_ns for step in warm) / (sum(lengths) or 1)
    line = (
        f"{len(steps):,} step{'s' * (len(steps) != 1)}: median {time_text(median)}, "
        f"p95 {time_text(p95(lengths))}, {100 * share:.0f}% of it in kernels"
    )
    first = [time_text(step.ns) for step in steps if step.warms_up]
    if first:
        more = f" and {len(first) - 3} more" if len(first) > 3 else ""
        line += f"; without the first, which warm up: {', '.join(first[:3])}{more}"
    return line
