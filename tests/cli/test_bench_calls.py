"""`tilewright bench calls`: the small calls and trainings, alone and against another build."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.bench import builds, harness, shapes, small_calls
from tilewright.bench.networks import convolution
from tilewright.cli.commands import run as main

SITE = Path(tw.__file__).parent.parent


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    """Rows are judged, not times."""
    monkeypatch.setattr(builds, "_ROUNDS", 2)
    monkeypatch.setattr(builds, "_STEPS", 1)
    monkeypatch.setattr(harness, "_SAMPLE_SECONDS", 1e-4)


def report_of(capsys, *arguments: str) -> dict:
    assert main(["bench", "calls", *arguments, "--threads", "1", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("call", small_calls.CALLS, ids=lambda call: call.name)
def test_each_call_runs_and_is_recorded_as_it_says(call) -> None:
    names = small_calls.names(tw, call)
    try:
        y = eval(call.text, names)
    except SyntaxError:
        exec(call.text, names)
        return
    if isinstance(y, tw.Tensor):
        assert y.requires_grad == call.recorded


def test_names_are_of_one_line_and_unique() -> None:
    names = [call.name for call in small_calls.CALLS] + list(small_calls.TRAININGS)
    assert len(set(names)) == len(names)
    assert all(name == name.strip() and "\n" not in name for name in names)


def test_a_training_step_learns() -> None:
    m = tw
    tw.manual_seed(0)
    parts = small_calls.TRAININGS["MNIST 784-256-10, batch 64, SGD"](m)
    model, _, x, y = parts
    step = small_calls._step(m, *parts)
    before = tw.cross_entropy(model(x), y).item()
    for _ in range(20):
        step()
    assert tw.cross_entropy(model(x), y).item() < before


def test_times_alone(capsys) -> None:
    report = report_of(capsys)
    assert [result["name"] for result in report["results"]] == [c.name for c in small_calls.CALLS]
    assert report["threads"] == 1
    for result in report["results"]:
        assert result["now"]["median_s"] > 0
        assert result["before"] is None
        assert not result["missing"]


def test_trainings(capsys) -> None:
    report = report_of(capsys, "--cases", "trainings")
    assert [result["name"] for result in report["results"]] == list(small_calls.TRAININGS)
    assert all(result["now"]["median_s"] > 0 for result in report["results"])


def test_products_are_those_of_their_names() -> None:
    for shape in shapes.FULL.shapes():
        if max(shape.m, shape.n, shape.k) > 1024:
            continue
        text, known = small_calls.statement(tw, shape.name)
        assert text == "x @ y"
        for name, expected in zip("xy", shape.operands(tw.float32), strict=True):
            assert known[name].shape == expected.shape, shape.name
            assert known[name].strides == expected.strides, shape.name


def test_convolutions_are_those_of_their_names() -> None:
    for layer in convolution.TABLE[4:]:
        for part, expected in convolution._ours(layer).items():
            text, known = small_calls.statement(tw, convolution.case_name(layer, part))
            calls = []
            for run in (small_calls.Timer(text, globals=known), expected):
                with tw.explain() as seen:
                    run.timeit(1)
                calls.append([(call.op, call.problem) for call in seen])
            assert calls[0] == calls[1], (layer, part)


def test_against_another_build(capsys) -> None:
    report = report_of(capsys, "--before", str(SITE), "--only", "a + b,reshape", "--pairs", "2")
    assert [result["name"] for result in report["results"]] == [
        "a + b",
        "a + b, recorded",
        "reshape",
    ]
    ratios = []
    for result in report["results"]:
        assert len(result["ratios"]) == 2
        assert result["ratio"] == pytest.approx(np.median(result["ratios"]))
        assert result["before"]["median_s"] > 0
        ratios.append(result["ratio"])
    mean = math.exp(np.mean(np.log(ratios)))
    assert report["geometric_mean"] == pytest.approx(mean)
    assert main(["bench", "calls", "--before", str(SITE), "--only", "reshape", "--pairs", "1"]) == 0
    out = capsys.readouterr().out
    assert "now / before" in out
    assert "geometric mean" in out


def test_a_call_that_the_other_build_lacks_is_told(tmp_path, capsys) -> None:
    package = tmp_path / "tilewright"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = '0.0'\n")
    report = report_of(capsys, "--before", str(tmp_path), "--only", "reshape", "--pairs", "1")
    (result,) = report["results"]
    assert result["missing"].startswith("AttributeError: ")
    assert result["ratios"] == []
    (package / "__init__.py").write_text("raise SystemExit(3)\n")
    assert main(["bench", "calls", "--before", str(tmp_path), "--only", "reshape"]) == 1
    assert "ended with code 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--before", "/nowhere/python"], "neither a folder nor a Python to run"),
        (["--before", "/"], "holds no folder tilewright"),
        (["--only", "nonsense"], "--only nonsense names none of the calls"),
    ],
)
def test_what_cannot_be_compared_is_refused(capsys, arguments, text) -> None:
    assert main(["bench", "calls", *arguments]) == 1
    assert text in capsys.readouterr().err


def test_marks_need_two_slow_pairs() -> None:
    def compared(*ratios: float) -> builds.Compared:
        return builds.Compared("x", None, None, ratios)

    assert compared(1.06).is_slower
    assert compared(1.06, 1.0, 1.07).is_slower
    assert not compared(1.2, 1.0, 1.01).is_slower
    assert not compared().is_slower
    assert math.isnan(compared().ratio)
    assert math.isnan(builds.mean_ratio([compared()]))
