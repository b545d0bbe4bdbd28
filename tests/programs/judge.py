"""Whether Tilewright did right, by PyTorch and, where PyTorch refuses, by the reference."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

import tilewright as tw
from programs.engines import OnTilewright, OnTorch, Outcome
from programs.program import Program, data, hidden_from_pytorch
from programs.reference import NotDefinedError, Reference

TOLERANCE = 1e-9

# What Tilewright documents that it refuses, where PyTorch may compute.
ALLOWED = [
    # A view from before a recorded change has to be taken again.
    r"taken (while recording was off, )?before its base was changed",
    # A checkpoint's function is to find in backward what it found the first time.
    r"checkpoint: .*changed in place",
    # PyTorch fills tensors whose elements share memory and assigns to parts of them.
    r"broadcast or overlapping windows, share memory",
    # The loss keeps its logits, PyTorch's keeps their log-softmax.
    r"cross_entropy(_rows|_total)?: backward needs its logits",
    # What stands for a power in PyTorch's text keeps the logarithm of its base.
    r"pow: backward needs its a ",
]


@dataclass(frozen=True)
class Verdict:
    """`kind` is wrong, or how the results came to agree, or why they could not be compared."""

    kind: str
    text: str = ""

    @property
    def wrong(self) -> bool:
        return self.kind == "wrong"


def run_tilewright(program: Program, pool: tw.memory.Pool | None = None) -> Outcome:
    """A run within what the program's settings ask for."""
    s = program.settings
    with ExitStack() as stack:
        if s.isa or s.matmul:
            forced = {"matmul": s.matmul} if s.matmul else {}
            stack.enter_context(tw.kernels.use(isa=s.isa, **forced))
        if s.threads:
            stack.callback(tw.set_num_threads, tw.get_num_threads())
            tw.set_num_threads(s.threads)
        if pool is not None:
            stack.enter_context(pool)
        return OnTilewright(program, ()).whole()


def judge(program: Program) -> Verdict:
    """Runs the program everywhere and compares."""
    try:
        ours = run_tilewright(program)
    except Exception as error:
        return Verdict("wrong", f"Tilewright raised {type(error).__name__}: {error}")
    verdict = against_torch(program, ours)
    if not verdict.wrong and program.settings.quota is not None:
        return within_quota(program, ours) or verdict
    return verdict


def against_torch(program: Program, ours: Outcome) -> Verdict:  # noqa: PLR0911  (one a case)
    theirs = OnTorch(program, ()).whole()
    alone = [n for n in ours.refused if n not in theirs.refused and n not in theirs.lacking]
    for n in alone:
        if not allowed(ours.refused[n]) and not unwritten_for_pytorch(n, ours, theirs):
            return Verdict("wrong", f"only Tilewright refuses step {n}: {ours.refused[n]}")
    if alone:
        theirs = OnTorch(program, set(ours.refused)).whole()
    if any(n not in ours.refused for n in theirs.refused):
        return against_reference(program, ours, "PyTorch refuses a step")
    if ours.failure is not None:
        if theirs.failure is not None:
            text = differing_values(ours, theirs)
            agree = Verdict("both refuse the gradients")
            return second_opinion(program, ours, theirs, text) if text else agree
        if allowed(ours.failure):
            return Verdict("a documented refusal")
        return Verdict("wrong", f"only Tilewright refuses the gradients: {ours.failure}")
    if theirs.failure is not None:
        return against_reference(program, ours, "PyTorch refuses the gradients")
    text = differing(ours, theirs)
    if not text:
        return Verdict("agree")
    return second_opinion(program, ours, theirs, text)


def unwritten_for_pytorch(n: int, ours: Outcome, theirs: Outcome) -> bool:
    """Whether step n is refused for a write, and PyTorch has refused one before it."""
    before = any(m < n and m not in ours.refused for m in theirs.refused)
    return before and "changed in place since" in ours.refused[n]


def second_opinion(program: Program, ours: Outcome, theirs: Outcome, text: str) -> Verdict:
    """Results differ: PyTorch may be wrong about numbers changed from outside, or nobody right."""
    if hidden_from_pytorch(program):
        verdict = against_reference(program, ours, "PyTorch is wrong")
        if not verdict.wrong:
            return verdict
    if not finite(theirs):
        return Verdict("not finite", text)
    if unstable(program, ours.refused):
        return Verdict("unstable", text)
    return Verdict("wrong", text)


def against_reference(program: Program, ours: Outcome, why: str) -> Verdict:
    try:
        right = Reference(program, set(ours.refused)).whole()
    except NotDefinedError as error:
        return Verdict("wrong", f"{why}, Tilewright does not: {error}")
    if right.refused or right.failure:
        said = right.failure or next(iter(right.refused.values()))
        return Verdict("wrong", f"{why}; the reference fails too: {said}")
    text = differing_values(ours, right) if ours.failure else differing(ours, right)
    if not text:
        return Verdict(f"{why}, ours are right" if not ours.failure else "refused gradients")
    if not finite(right):
        return Verdict("not finite", text)
    return Verdict("wrong", f"{why}, the reference says: {text}")


def within_quota(program: Program, ours: Outcome) -> Verdict | None:
    """None, or how a pool with little room changed bits."""
    with tempfile.TemporaryDirectory() as folder:
        free = tw.memory.Pool()
        run_tilewright(program, free)
        peak = int(free.stats()["peak_live_bytes"])
        quota = int(peak * float(program.settings.quota or 1))
        try:
            small = run_tilewright(program, tw.memory.Pool(quota_bytes=quota, spill_dir=folder))
        except MemoryError:  # too little even for one operation
            return None
    text = differing(small, ours, exact=True)
    if small.failure != ours.failure:
        text = f"refused: {small.failure}, without a quota: {ours.failure}"
    return Verdict("wrong", f"with a quota of {quota} of {peak} bytes: {text}") if text else None


def allowed(message: str) -> bool:
    return any(re.search(pattern, message) for pattern in ALLOWED)


def differing(a: Outcome, b: Outcome, exact: bool = False) -> str:
    """Where two outcomes differ, or nothing."""
    text = differing_values(a, b, exact)
    if text:
        return text
    for key in sorted(a.gradients.keys() | b.gradients.keys()):
        x, y = a.gradients.get(key), b.gradients.get(key)
        if not same(x, y, exact):
            return f"{key[0]} gradient of v{key[1]}: {shown(x)}, expected {shown(y)}"
    for n in sorted(a.seen.keys() | b.seen.keys()):
        # Whether zeros are passed on is each library's own affair.
        x, y = ([g for g in run.seen.get(n, []) if not same(g, None, False)] for run in (a, b))
        if len(x) != len(y):
            return f"the hook of step {n} was called {len(x)} times, expected {len(y)}"
        for g, h in zip(x, y, strict=True):
            if not same(g, h, exact):
                return f"the hook of step {n} saw {shown(g)}, expected {shown(h)}"
    return ""


def differing_values(a: Outcome, b: Outcome, exact: bool = False) -> str:
    for i in sorted(a.values.keys() | b.values.keys()):
        x, y = a.values.get(i), b.values.get(i)
        if x is None or y is None or x.shape != y.shape or not same(x, y, exact):
            return f"v{i} is {shown(x)}, expected {shown(y)}"
    for i in sorted(a.requires_grad.keys() & b.requires_grad.keys()):
        if a.requires_grad[i] != b.requires_grad[i]:
            return f"v{i}.requires_grad is {a.requires_grad[i]}"
    return ""


def same(x: np.ndarray | None, y: np.ndarray | None, exact: bool) -> bool:
    """Equal within the tolerance; no gradient counts as one of zeros."""
    if x is None:
        x, y = y, x
    if x is None:
        return True
    if y is None:
        y = np.zeros_like(x)
    if exact:
        return np.array_equal(x, y, equal_nan=True)
    if x.shape != y.shape:
        return False
    finite_y = y[np.isfinite(y)]
    scale = max(1.0, float(np.abs(finite_y).max())) if finite_y.size else 1.0
    return bool(np.allclose(x, y, rtol=0, atol=TOLERANCE * scale, equal_nan=True))


def shown(x: np.ndarray | None) -> str:
    return "None" if x is None else np.array2string(x, precision=12, threshold=20)


def finite(outcome: Outcome) -> bool:
    arrays = [*outcome.values.values(), *outcome.gradients.values()]
    return all(a is None or np.isfinite(a).all() for a in arrays)


def unstable(program: Program, skip: Collection[int]) -> bool:
    """Whether a change of the data far below the tolerance changes PyTorch's own results."""

    def jittered(sign: float):  # type: ignore[no-untyped-def]
        def numbers(
            key: tuple[int, ...], shape: tuple[int, ...], low: float, high: float
        ) -> np.ndarray:
            noise = np.random.default_rng(key[-1]).uniform(0.5, 1, shape) * sign * 1e-13
            return np.asarray(data(key, shape, low, high) * (1 + noise))

        return numbers

    runs = [OnTorch(program, skip, jittered(sign)).whole() for sign in (0.0, 1.0, -1.0)]
    return any(differing(runs[0], other) for other in runs[1:])
