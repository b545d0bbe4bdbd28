"""The memory report and the benchmark of a training step."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.bench import memory

MIB = 2**20


def chain(m, x, length=8):
    y = x
    for _ in range(length):
        y = m.sin(y)
    return y.sum()


class TestReport:
    def test_figures_of_a_chain(self):
        x = tw.randn(512, 1024).requires_grad_()  # 2 MiB
        report = tw.memory.report(lambda: chain(tw, x))
        assert list(report) == ["eager", "planned"]
        for figures in report.values():
            # 7 results are saved; the leaf was there before, and the sum keeps nothing.
            assert 7 * 2 * MIB <= figures["activation_bytes"] <= 8 * 2 * MIB + MIB
            # One gradient while the next is made.
            assert 2 * 2 * MIB <= figures["gradient_live_bytes"] <= 2 * 2 * MIB + MIB
            assert figures["gradient_reserved_bytes"] >= figures["gradient_live_bytes"] - MIB
        assert tw.memory.last_plan()["fallbacks"] == 0

    def test_grads_stay_as_they_are(self):
        x, w = tw.randn(4, 4).requires_grad_(), tw.randn(4, 4).requires_grad_()
        x.grad = tw.ones((4, 4))
        held = x.grad
        tw.memory.report(lambda: tw.sum(x @ w))
        assert x.grad is held
        np.testing.assert_array_equal(held.numpy(), np.ones((4, 4)))
        assert w.grad is None

    def test_temporaries_of_kernels(self):
        w = tw.randn(300, 300).requires_grad_()
        report = tw.memory.report(lambda: tw.sum((w @ w) @ w))
        assert report["eager"]["temporary_bytes"] > 0

    def test_as_a_table(self):
        x = tw.randn(4).requires_grad_()
        lines = str(tw.memory.report(lambda: tw.exp(x).sum())).splitlines()
        assert lines[0].split()[0] == "MiB"
        assert [line.split()[0] for line in lines[1:]] == ["eager", "planned"]

    def test_beside_torch(self):
        torch = pytest.importorskip("torch")
        x = tw.randn(512, 1024).requires_grad_()
        theirs = torch.randn(512, 1024).requires_grad_()
        theirs.grad = torch.ones_like(theirs)
        report = tw.memory.report(lambda: chain(tw, x), torch=lambda: chain(torch, theirs))
        figures = report["torch"]
        assert figures["temporary_bytes"] is None
        assert 7 * 2 * MIB <= figures["activation_bytes"] <= 8 * 2 * MIB + MIB
        # Its sine's gradient makes the cosine first.
        assert 2 * 2 * MIB <= figures["gradient_live_bytes"] <= 4 * 2 * MIB
        assert theirs.grad.sum() == 512 * 1024


class TestBench:
    def test_peaks_of_fresh_processes(self):
        (peak,) = memory.peaks(("planned",))
        assert peak.way == "planned"
        # Parameters and their gradients are 96 MiB.
        assert peak.peak_bytes - peak.start_bytes > 96 * MIB

    def test_step_report(self):
        report = memory.step_report(False, (8, 32, 2))
        assert {"eager", "planned"} <= set(report)


class TestTemporaries:
    def test_figures_are_apart_from_the_pool(self):
        tw.memory.reset_peaks()
        before = tw.memory.stats()
        tw.randperm(50_000)
        after = tw.memory.stats()
        assert after["temporary_live_bytes"] == 0
        assert after["temporary_peak_live_bytes"] >= before["temporary_live_bytes"] + 400_000
        assert after["temporary_reserved_bytes"] >= after["temporary_peak_live_bytes"]
        tw.memory.trim()
