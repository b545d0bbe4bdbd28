"""Random programs under several features at once: the bits of the plain run, whatever is combined.

`--feature-programs N` runs more of them, `--feature-seed S` one of them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import tilewright as tw

torch = pytest.importorskip("torch")

from programs.captures import capture_finding  # noqa: E402  (they import torch)
from programs.features import (  # noqa: E402  (they import torch)
    WITHIN,
    WRAPPERS,
    Features,
    Surroundings,
    features_of,
    nested,
    run_under,
)
from programs.generator import program as program_of  # noqa: E402
from programs.judge import differing  # noqa: E402
from programs.program import Program, rendered  # noqa: E402
from programs.shrink import shrunk  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
RUNGS = ["naive", "tiled", "simd", "packed"]
PER_TEST = 100
AT_ONCE = 1  # of these tests run with `make test`
# Every so many of them is of tensors that are large enough to leave a pool.
WIDE = 12


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each hundred seeds, so that many programs show how far they are."""
    if "seeds" not in metafunc.fixturenames:
        return
    one = metafunc.config.getoption("feature_seed")
    count = metafunc.config.getoption("feature_programs")
    ranges = [range(i, min(i + PER_TEST, count)) for i in range(0, count, PER_TEST)]
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
def around(tmp_path: Path) -> Iterator[Surroundings]:
    made = Surroundings(tmp_path)
    yield made
    made.close()


def made(seed: int) -> tuple[Program, Features]:
    wide = seed % WIDE == 0
    program = program_of(seed + 10**6, tw.kernels.isas(), RUNGS, wide)
    if seed % 2:
        program = nested(program, random.Random(seed))
    return program, features_of(seed, wide)


def finding(program: Program, features: Features, around: Surroundings) -> str:
    """Where the run under all features differs from that under arithmetic alone, or nothing."""
    plain = run_under(program, features.arithmetic, around)
    try:
        together = run_under(program, features, around)
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"
    changed = any("changed in place since" in (run.failure or "") for run in (plain, together))
    if "tasks" in features.neutral and changed:
        return ""  # what another thread's ops keep lies in no checkpoint's frame
    if (together.refused, together.failure) != (plain.refused, plain.failure):
        refused = f"refused {together.refused}, {together.failure}"
        return f"{refused}, plainly {plain.refused}, {plain.failure}"
    return differing(together, plain, exact=True)


def fewest(program: Program, features: Features, around: Surroundings) -> Features:
    """Of the neutral ones those without which nothing is found."""
    for name in sorted(features.neutral):
        fewer = replace(features, neutral=features.neutral - {name})
        if finding(program, fewer, around):
            features = fewer
    return features


def report(program: Program, features: Features, around: Surroundings, text: str) -> str:
    features = fewest(program, features, around)
    small = shrunk(program, lambda p: bool(finding(p, features, around)), tries=200)
    return (
        f"program {features.seed}: {text}\n"
        f"again: pytest {__file__} --feature-seed {features.seed}\n"
        f"{sorted(features.neutral)} of {features}: {finding(small, features, around)}\n\n"
        f"{rendered(small)}"
    )


def test_features_together_change_no_bit(seeds: range, around: Surroundings) -> None:
    findings = []
    for seed in seeds:
        program, features = made(seed)
        text = finding(program, features, around)
        if text:
            findings.append(report(program, features, around, text))
        if len(findings) == 3:
            break
    if findings:
        pytest.fail("\n\n".join(findings), pytrace=False)


def test_captures_follow_fresh_numbers() -> None:
    compared = 0
    for seed in range(300):
        program = program_of(seed + 2 * 10**6, tw.kernels.isas(), RUNGS, is_wide=False)
        if seed % 3 == 0:
            program = nested(program, random.Random(seed))
        text = capture_finding(program)
        compared += text == ""
        if text:
            small = shrunk(program, lambda p: bool(capture_finding(p)), tries=200)
            pytest.fail(f"program {seed}: {text}\n{capture_finding(small)}\n\n{rendered(small)}")
    assert compared > 120


def test_all_features_meet_each_other() -> None:
    """In the daily programs each pair of neutral features, and each with each arithmetic."""
    pairs: Counter[tuple[str, str]] = Counter()
    for seed in range(300):
        program, f = made(seed)
        settings = program.settings
        told = {"narrow": f.narrow, "autocast": f.autocast, "invariant": f.invariant}
        told |= {"isa": settings.isa, "rung": settings.matmul}
        names = [*f.neutral, *(name for name, on in told.items() if on)]
        names += ["checkpoints"] * any(step.kind == "checkpoint" for step in program.steps)
        pairs.update((a, b) for a in names for b in names if a < b)
    neutral = (*WRAPPERS, *WITHIN)
    for a in neutral:
        for b in (*neutral, "narrow", "autocast", "invariant", "isa", "rung", "checkpoints"):
            assert a == b or pairs[min(a, b), max(a, b)], (a, b)
