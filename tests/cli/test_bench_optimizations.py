"""`tilewright bench optimizations`, and the laws of the table's rows: each can be off, and then
results are right and reports do not name it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import tilewright as tw
from tilewright.bench import harness, intervals, optimizations
from tilewright.bench.optimization_cases import CASES, Work
from tilewright.cli.commands import run as main

ROWS = {row.name: row for row in tw.optimizations.table()}
WORKS = [
    pytest.param(name, work, id=f"{name}: {work.text}")
    for name, works in CASES.items()
    for work in works
    if name in ROWS
]


@pytest.fixture
def _few(monkeypatch):
    """Rows are judged, not times."""
    monkeypatch.setattr(optimizations, "_PAIRS", 1)
    monkeypatch.setattr(optimizations, "_PAIR_ROUNDS", 2)
    monkeypatch.setattr(optimizations, "_ROUNDS", 2)
    monkeypatch.setattr(harness, "_SAMPLE_SECONDS", 1e-4)


@pytest.fixture
def _two_threads():
    before = tw.get_num_threads()
    tw.set_num_threads(2)
    yield
    tw.set_num_threads(before)


def named(report: tw.explain) -> set[str]:
    return {name for entry in report for name in entry.optimizations}


def arrays(results) -> list[np.ndarray]:
    results = results if isinstance(results, (list, tuple)) else [results]
    wide = [x.astype(tw.float32) if x.dtype == tw.bfloat16 else x for x in results]
    return [np.asarray(x) for x in wide]


def test_each_row_has_work() -> None:
    assert sorted(CASES) == sorted(ROWS)
    assert all(CASES.values())


@pytest.mark.usefixtures("_two_threads")
@pytest.mark.parametrize(("name", "work"), WORKS)
def test_a_row_is_named_where_it_is_used_and_results_are_right_without_it(
    name: str, work: Work
) -> None:
    row = ROWS[name]
    with optimizations.Settings(work):
        run = work.make()
        with tw.explain() as used:
            expected = arrays(run())
        if work.unseen:
            assert name not in named(used)
        elif work.only_where():
            assert name in named(used)
        if row.scope == "start":
            return
        with optimizations.Without(row), tw.explain() as unused:
            found = arrays(run())
        assert name not in named(unused)
    for with_it, without in zip(expected, found, strict=True):
        if row.same_bits:
            assert with_it.tobytes() == without.tobytes()
        else:
            scale = np.abs(with_it).max()
            most = 2**-7 if "bfloat16" in work.text else 1e-5  # one place of 8 bits
            np.testing.assert_allclose(without, with_it, rtol=most, atol=1e-5 * scale)


@pytest.mark.parametrize("name", tw.optimizations.names(scope="start"))
def test_results_are_right_without_a_row_from_the_start(name: str) -> None:
    program = (
        "import sys, tilewright as tw\n"
        "from tilewright.bench.optimization_cases import CASES\n"
        f"assert not tw.optimizations.is_on({name!r}) or sys.argv[1] == ''\n"
        "tw.manual_seed(1)\n"
        f"for work in CASES[{name!r}]:\n"
        "    found = work.make()()\n"
        "    for x in found if isinstance(found, list) else [found]:\n"
        "        print(hash(bytes(memoryview(x.reshape((-1,))).cast('B'))))\n"
    )
    seen = set()
    for off in ("", name):
        environment = os.environ | {"TILEWRIGHT_OFF": off, "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            [sys.executable, "-c", program, off],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        seen.add(done.stdout)
    assert len(seen) == 1


@pytest.mark.usefixtures("_few")
def test_every_scope_is_timed(capsys, tmp_path) -> None:
    only = "call_cache,spin_then_park,object_free_lists,thread_cache,early_release"
    path = tmp_path / "gains.csv"
    arguments = ["bench", "optimizations", "--only", only, "--threads", "1", "--csv", str(path)]
    assert main([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["conditions"]["threads"] == 1
    assert report["conditions"]["processor"]
    for result in report["results"]:
        if result["name"] == "spin_then_park":
            assert result["skipped"] == "needs 2 threads"
            assert result["gain"] is None
            continue
        gain = result["gain"]
        assert 0 < gain["low"] <= gain["value"] <= gain["high"]
        if result["name"] == "early_release":
            on, off = result["peaks"]
            assert on < off
    lines = path.read_text().splitlines()
    assert json.loads(lines[0].removeprefix("# ")) == report["conditions"]
    timed = [result for result in report["results"] if result["gain"]]
    assert len(lines) == 2 + len(timed)


@pytest.mark.usefixtures("_few")
def test_only_takes_reasons_and_refuses_what_is_neither(capsys) -> None:
    assert main(["bench", "optimizations", "--only", "less work a call", "--threads", "1"]) == 0
    out = capsys.readouterr().out
    assert "call_shortcuts" in out
    assert "early_release" not in out
    assert main(["bench", "optimizations", "--only", "call_cash"]) == 1
    assert "did you mean 'call_cache'?" in capsys.readouterr().err


def test_rows_without_work_or_off_already_are_told() -> None:
    row = ROWS["call_cache"]
    assert optimizations.why_skipped(row, CASES[row.name][0], 1) == ""
    with tw.optimizations.off("call_cache"):
        (off,) = (r for r in tw.optimizations.table() if r.name == "call_cache")
        assert optimizations.why_skipped(off, CASES[row.name][0], 1) == "off already"
    new = tw.optimizations.Optimization(
        "new", "less allocation", "call", True, "all", "Somehow.", "", True
    )
    (gain,) = optimizations.gains([new], 1)
    assert gain.skipped == "no work is known for it"


def test_intervals_hold_the_median() -> None:
    """As often as they say, of numbers whose median is known."""
    rng = np.random.default_rng(5)
    for count in (6, 9, 25):
        held = 0
        for _ in range(2000):
            found = intervals.median_interval(list(rng.exponential(size=count)))
            held += found.low <= np.log(2) <= found.high
        assert 0.95 <= held / 2000 < 0.985
    few = intervals.median_interval([3.0, 1.0, 2.0])
    assert (few.low, few.value, few.high) == (1.0, 2.0, 3.0)
    with pytest.raises(ValueError, match="no values"):
        intervals.median_interval([])
