"""`tilewright bench gpu`: it runs, its verdicts follow its figures, and it says what is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.bench import gpu
from tilewright.bench.harness import OURS, Result, Timing, run_cases
from tilewright.cli import main

needs_gpu = pytest.mark.skipif(
    not tw.cuda.is_available(), reason=f"no GPU: {tw.cuda.why_unavailable()}"
)


def result(**seconds: float) -> Result:
    names = {"ours": OURS}
    timings = {names.get(name, name): Timing(s, s, 3) for name, s in seconds.items()}
    return Result("line", timings, 0.0, "", {})


def line(**aims) -> gpu.Line:
    return gpu.Line("line", "group", dict, **aims)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("aims", "seconds", "holds"),
        [
            ({"least": 0.9, "against": "a"}, {"ours": 1.0, "a": 0.95}, True),
            ({"least": 0.9, "against": "a"}, {"ours": 1.0, "a": 0.85, "b": 2.0}, False),
            ({"least": 0.9, "against": "a"}, {"ours": 1.0, "b": 2.0}, None),
            ({"least": 1.0}, {"ours": 1.0, "a": 5.0, "b": 0.5}, False),
            ({"most_s": 1e-3}, {"ours": 1e-3}, True),
            ({"most_s": 1e-3}, {"ours": 2e-3, "a": 9.0}, False),
            ({"least": 2.0, "most_s": 1.0}, {"ours": 0.5}, None),
            ({"least": 2.0, "most_s": 1.0}, {"ours": 1.5}, False),
        ],
    )
    def test_times(self, aims, seconds, holds):
        assert gpu.judge(line(**aims), result(**seconds)).holds is holds

    @pytest.mark.parametrize(("error", "holds"), [(1e-7, True), (3e-7, False)])
    def test_errors(self, error, holds):
        aims = {"least": 1.0, "against": "a", "errors": lambda: {OURS: error, "a": 2e-7}}
        assert gpu.judge(line(**aims), result(ours=1.0, a=1.0)).holds is holds


def test_odd_shapes_are_the_same_each_time():
    from tilewright.bench.gpu.products import odd_shapes  # noqa: PLC0415

    shapes = odd_shapes(60)
    assert len(set(shapes)) == 60
    assert shapes == odd_shapes(60)
    assert any(m % 2 and k % 2 and n % 2 for m, k, n in shapes)


@needs_gpu
def test_the_command_measures_every_line(capsys, tmp_path: Path):
    picture = tmp_path / "gpu.png"
    command = ["bench", "gpu", "--quick", "--no-compile", "--json", "--plot", str(picture)]
    assert main(command) == 0
    told = json.loads(capsys.readouterr().out)
    machine = told["machine"]
    assert machine["gpu"] == tw.cuda.get_device_name(0)
    assert machine["date"].endswith("UTC")
    assert machine["driver"].count(".") == 1
    names = " ".join(each["name"] for each in told["results"])
    for part in (
        "bfloat16", "free choice", "rung registers", "log-softmax", "softmax", "relu", "sum",
        "Adam", "conv2d", "a + b", "from a graph", "allocations",
    ):  # fmt: skip
        assert part in names
    assert all(each["timings"][OURS]["median_s"] > 0 for each in told["results"])
    errors = next(each["errors"] for each in told["results"] if "free choice" in each["name"])
    assert 0 < errors[OURS] < 1e-6
    relu = next(each for each in told["results"] if each["name"].startswith("relu"))
    assert "device copy" in relu["timings"]


@needs_gpu
def test_the_rivals_compute_the_same():
    """PyTorch on the CPU takes the part of its GPU."""
    torch = pytest.importorskip("torch")
    rivals = gpu.Rivals(torch, device="cpu", compiles=False)
    lines = [
        *gpu.product_lines(rivals, True),
        *gpu.memory_lines(rivals, True),
        *gpu.step_lines(rivals, True),
    ]
    for each in lines:
        (measured,) = run_cases([each.case(1)], settle=False)
        judged = gpu.judge(each, measured)
        assert set(measured.timings) > {OURS}, each.name
        assert judged.ratio is None or judged.ratio > 0
    x = tw.randn((5, 7))
    here, theirs = rivals.pairs(x)
    assert here.to("cpu").tolist() == theirs.tolist() == x.tolist()
    assert rivals.theirs(x.astype(tw.bfloat16)).dtype == torch.bfloat16


def test_without_a_gpu_it_says_so():
    environment = {**os.environ, "TILEWRIGHT_CUDA_DRIVER": "/nowhere/libcuda.so.1"}
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", "bench", "gpu"],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "there is no GPU to measure: the CUDA driver (libcuda.so.1) is not there" in done.stderr
    assert "Traceback" not in done.stderr
