"""Random programs on Tilewright and on PyTorch: values, first and second gradients, in float64.

`--programs N` runs more of them, `--program-seed S` one of them.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")

from programs.engines import OnTorch, Outcome  # noqa: E402  (they import torch)
from programs.generator import program as program_of  # noqa: E402
from programs.judge import Verdict, differing, finite, judge, run_tilewright  # noqa: E402
from programs.program import Program, hidden_from_pytorch, rendered  # noqa: E402
from programs.reference import Reference  # noqa: E402
from programs.shrink import shrunk  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True"),
    pytest.mark.usefixtures("_settings_of_pytorch"),
]

RUNGS = ["naive", "tiled", "simd", "packed"]
PER_TEST = 250
AT_ONCE = 2  # of these tests run with `make test`


def _scaled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A first gradient that is a millionth too large."""

    def wrapped(x: tw.Tensor) -> tw.Tensor:
        y = function(x)
        if y.requires_grad:
            y.register_hook(lambda g: g * (1 + 1e-6))
        return y

    return wrapped


def _cut(function: Callable[..., Any]) -> Callable[..., Any]:
    """A right first gradient that is no function of anything."""

    def wrapped(x: tw.Tensor) -> tw.Tensor:
        y = function(x)
        if y.requires_grad:
            y.register_hook(lambda g: g.detach())
        return y

    return wrapped


# The function to replace by name, what by, and what the smallest program must still contain.
FAULTS = {
    "a wrong gradient": ("sin", _scaled, "tw.sin("),
    "a wrong second gradient": ("tanh", _cut, "tw.tanh("),
    "a mode without effect": ("no_grad", lambda _: contextlib.nullcontext, "tw.no_grad()"),
    "a checkpoint that loses its inputs": (
        "checkpoint",
        lambda _: lambda function, *args: function(*(x.detach() for x in args)),
        "tw.checkpoint(",
    ),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each few hundred seeds, so that many programs show how far they are."""
    if "seeds" not in metafunc.fixturenames:
        return
    one = metafunc.config.getoption("program_seed")
    count = metafunc.config.getoption("programs")
    starts = range(0, count, PER_TEST)
    ranges = [range(i, min(i + PER_TEST, count)) for i in starts]
    if one is not None:
        ranges = [range(one, one + 1)]
    later = pytest.mark.tier("all")
    metafunc.parametrize(
        "seeds",
        [
            pytest.param(r, id=f"{r.start}-{r.stop - 1}", marks=later if i >= AT_ONCE else ())
            for i, r in enumerate(ranges)
        ],
    )


@pytest.fixture
def _settings_of_pytorch() -> Iterator[None]:
    """One thread: programs are small, and processors may be few. Rendered ones set the dtype."""
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    torch.set_default_dtype(dtype)


def made(seed: int) -> Program:
    return program_of(seed, tw.kernels.isas(), RUNGS)


def alike(text: str) -> str:
    """What a finding says, without its numbers."""
    return re.sub(r"[\W\d_]+", " ", text)[:40]


def smallest(program: Program, verdict: Verdict) -> tuple[Program, Verdict]:
    """A small program with the same kind of finding, and what is found there."""

    def fails(candidate: Program) -> bool:
        other = judge(candidate)
        return other.wrong and alike(other.text) == alike(verdict.text)

    small = shrunk(program, fails)
    return small, judge(small)


def report(program: Program, verdict: Verdict) -> str:
    """A finding as a program that runs."""
    small, found = smallest(program, verdict)
    return (
        f"program {program.seed}: {verdict.text}\n"
        f"again: pytest {__file__} --program-seed {program.seed}\n"
        f"the smallest like it: {found.text}\n\n{rendered(small)}"
    )


def test_programs_agree_with_pytorch(seeds: range) -> None:
    findings = []
    for seed in seeds:
        program = made(seed)
        verdict = judge(program)
        if verdict.wrong:
            findings.append(report(program, verdict))
        if len(findings) == 3:
            break
    if findings:
        pytest.fail("\n\n".join(findings), pytrace=False)


# Writes that PyTorch refuses before a refusal of ours, gradients kept beyond a view's write, zeros
# without a sign, a view from under no_grad, a power's and a quotient's own operands, a
# constant hook, and a quota that has no room for an array.
DELICATE = (514, 9612, 11111, 11505, 12181, 13023, 25694, 27025, 28775, 37589, 43330, 46717, 57904)


@pytest.mark.parametrize("seed", DELICATE)
def test_delicate_programs_agree_with_pytorch(seed: int) -> None:
    verdict = judge(made(seed))
    assert not verdict.wrong, verdict.text


def test_programs_side_by_side_give_the_bits_of_each_alone() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for first in range(0, 120, 4):
            compare_side_by_side([made(seed) for seed in range(first, first + 4)])
    finally:
        sys.setswitchinterval(before)


def compare_side_by_side(programs: list[Program]) -> None:
    programs = [replace(p, settings=replace(p.settings, threads=None)) for p in programs]
    alone = [run_tilewright(p) for p in programs]
    together: list[list[Outcome]] = [[] for _ in programs]
    start = threading.Barrier(len(programs))

    def work(n: int) -> None:
        start.wait()
        for _ in range(3):
            together[n].append(run_tilewright(programs[n]))

    workers = [threading.Thread(target=work, args=(n,)) for n in range(len(programs))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for program, expected, outcomes in zip(programs, alone, together, strict=True):
        assert len(outcomes) == 3, f"program {program.seed} did not end"
        for outcome in outcomes:
            text = differing(outcome, expected, exact=True)
            assert not text, f"program {program.seed} beside others: {text}\n{rendered(program)}"
            assert outcome.refused == expected.refused


@functools.cache
def sound_programs() -> frozenset[int]:
    """Those of the first few hundred in which nothing is found."""
    return frozenset(seed for seed in range(400) if not judge(made(seed)).wrong)


class TestTheTest:
    """The programs say something, the reference is right, and a wrong gradient is found."""

    def test_most_programs_are_compared(self) -> None:
        kinds = Counter(judge(made(seed)).kind for seed in range(5000, 5400))
        assert kinds["agree"] > 240, kinds
        assert kinds["unstable"] + kinds["not finite"] < 12, kinds

    def test_the_reference_is_what_pytorch_computes(self) -> None:
        compared = 0
        for seed in range(6000, 6400):
            program = made(seed)
            theirs = OnTorch(program, ()).whole()
            if theirs.failure or not finite(theirs) or hidden_from_pytorch(program):
                continue
            compared += 1
            text = differing(Reference(program, set(theirs.refused)).whole(), theirs)
            assert not text, f"program {seed}: {text}\n{rendered(program)}"
        assert compared > 150

    def test_reports_run(self, capsys: pytest.CaptureFixture[str]) -> None:
        for seed in range(7000, 7030):
            program = made(seed)
            theirs = OnTorch(program, ()).whole()
            if judge(program).kind == "agree" and not theirs.refused:
                exec(rendered(program), {})
                ours, expected = np.array_split(capsys.readouterr().out.splitlines(), 2)
                assert len(ours) == len(expected)

    @pytest.mark.parametrize("fault", FAULTS)
    def test_a_planted_fault_is_found(self, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
        name, replacement, witness = FAULTS[fault]
        before = getattr(tw, name)
        sound = sound_programs()
        monkeypatch.setattr(tw, name, replacement(before))
        seed = next(seed for seed in sorted(sound) if judge(made(seed)).wrong)
        program = made(seed)
        small, found = smallest(program, judge(program))
        assert found.wrong
        assert witness in rendered(small)
        # A leaf or two, what the fault needs, and a sum.
        assert len(small.steps) <= 6, rendered(small)
