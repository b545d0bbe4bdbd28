"""Kernels that fail after the call that launched them: errors name the launches that may have."""

from __future__ import annotations

import os
import subprocess
import sys

import emulator
import pytest

import tilewright as tw

pytestmark = pytest.mark.skipif(
    not emulator.is_wanted() or not tw.cuda.is_available(),
    reason="faults are planted in the emulator",
)

# Line 4 adds, line 5 multiplies, line 6 sums.
PROGRAM = """\
import tilewright as tw
x = tw.ones((300,), device="cuda")
tw.cuda.synchronize()
y = x + x
z = y * x
total = z.sum()
try:
    total.item()
except RuntimeError as error:
    print(error)
"""


def told(program: str, fault: str, **variables: str) -> str:
    """What a program in a file prints whose kernel is planted to fail."""
    environment = {**os.environ, "TW_EMULATED_FAULT": fault, **variables}
    done = subprocess.run(
        [sys.executable, "-"], input=program, env=environment,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


class TestLateFaults:
    def test_all_launches_that_may_have_failed_are_named_with_their_lines(self):
        text = told(PROGRAM, "pointwise:2")
        assert "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)" in text
        first, second, third = (
            text.index(f"{op} (kernel {kernel}) at <stdin>:{line}")
            for op, kernel, line in (
                ("add", "pointwise", 4),
                ("multiply", "pointwise", 5),
                ("sum", "reduce_rows", 6),
            )
        )
        assert first < second < third
        assert "one of the 3 launches since all was last known to be well, oldest first" in text
        assert "TILEWRIGHT_CUDA_SYNC=1 waits for each launch and names the one" in text
        assert "takes no more work from this process" in text

    def test_waiting_for_each_launch_names_the_one(self):
        program = (
            PROGRAM.replace("y = x + x", "try:\n    y = x + x")
            .replace(
                "total = z.sum()\ntry:\n    total.item()", "    total = z.sum()\n    total.item()"
            )
            .replace("z = y", "    z = y")
        )
        text = told(program, "pointwise:2", TILEWRIGHT_CUDA_SYNC="1")
        assert "the launch that failed: multiply (kernel pointwise) at <stdin>:6" in text
        assert "one of" not in text

    def test_what_the_program_has_waited_for_is_not_at_fault(self):
        program = PROGRAM.replace("z = y * x", "y.tolist(); z = y * x")
        text = told(program, "pointwise:2")
        assert "one of the 2 launches" in text
        assert "add (kernel" not in text

    def test_a_loop_s_launches_are_counted(self):
        program = PROGRAM.replace("z = y * x", "z = x\nfor _ in range(50):\n    z = z * x")
        text = told(program, "pointwise:40")
        assert "one of the 52 launches" in text
        assert "20 older ones, multiply (kernel pointwise) at <stdin>:7 (31 times), sum" in text

    def test_streams_are_told_apart_by_what_they_have_in_flight(self):
        program = (
            "import tilewright as tw\n"
            "s = tw.cuda.Stream()\n"
            "x = tw.ones((300,), device='cuda')\n"
            "x.tolist()\n"
            "with tw.cuda.stream(s):\n"
            "    y = x * x\n"
            "try:\n"
            "    (x + x).tolist()\n"  # waits for its own stream, where nothing fails
            "    s.synchronize()\n"
            "except RuntimeError as error:\n"
            "    print(error)\n"
        )
        text = told(program, "pointwise:2")
        assert "the launch that failed: multiply (kernel pointwise) at <stdin>:6" in text

    @pytest.mark.parametrize("waits", ["0", "1"])
    def test_a_captured_step_is_named_or_run_kernel_by_kernel(self, waits):
        program = (
            "import tilewright as tw\n"
            "x = tw.ones((300,), device='cuda')\n"
            "step = tw._core._capture(lambda x: (x + x) * x, [x])\n"
            "x.tolist()\n"
            "try:\n"
            "    step.replay([x])[0].tolist()\n"
            "except RuntimeError as error:\n"
            "    print(error)\n"
        )
        text = told(program, "pointwise:4", TILEWRIGHT_CUDA_SYNC=waits)
        said = ("a captured step", "multiply (kernel pointwise) at <stdin>:6")[int(waits)]
        assert f"the launch that failed: {said}" in text


class TestFaultsInData:
    def test_the_line_that_asked_is_told(self):
        x = tw.ones((2, 3), device="cuda")
        y = x[tw.asarray([7]).to("cuda")]
        line = sys._getframe().f_lineno - 1
        with pytest.raises(IndexError, match=rf"asked for at .*test_gpu_async_errors.py:{line}$"):
            (y + 1).tolist()

    def test_of_several_lines_all_are_told(self):
        x = tw.ones((2, 3), device="cuda")
        first, eighth = tw.asarray([0]).to("cuda"), tw.asarray([7]).to("cuda")
        tw.cuda.synchronize()
        y = x[first]
        z = x[eighth]
        line = sys._getframe().f_lineno - 1
        said = rf"at one of .*_errors.py:{line - 1}, .*_errors.py:{line}; TILEWRIGHT_CUDA_SYNC=1"
        with pytest.raises(IndexError, match=said):
            (y + z).tolist()
        x[tw.asarray([1]).to("cuda")].tolist()
        with pytest.raises(IndexError, match=r"out of range for axis 0 with size 2; asked for at"):
            x[tw.asarray([-5]).to("cuda")].tolist()

    @pytest.mark.parametrize("dtype", [tw.float32, tw.complex128])
    @pytest.mark.parametrize(
        "name",
        ["index_add", "index_copy", "index_fill", "scatter", "scatter_add", "scatter_reduce"],
    )
    def test_an_axis_without_places(self, name, dtype):
        x = tw.zeros((1, 0), dtype=dtype, device="cuda")
        index = tw.asarray([0, 0]).to("cuda")
        source = tw.ones((1, 2), dtype=dtype, device="cuda")
        if name.startswith("scatter"):
            index = index.reshape(1, 2)
        rest = {"index_fill": (2.0,), "scatter_reduce": (source, "prod")}.get(name, (source,))
        getattr(tw, name)(x, 1, index, *rest)
        with pytest.raises(IndexError, match=f"{name}: index 0 is out of range for axis 1 with"):
            tw.cuda.synchronize()
