"""tw.explain: what ran, what else could have, and how fast it was."""

import json
import math

import pytest

import tilewright as tw
from tilewright._inspect import machine_peaks
from tilewright._inspect.machine_peaks import Level, Peaks, quick_peaks


@pytest.fixture
def matmul_entry():
    a, b = tw.randn(64, 48), tw.randn(48, 32)
    with tw.explain() as report:
        a @ b
    (entry,) = report
    return entry


class TestEntries:
    def test_what_ran(self, matmul_entry):
        assert matmul_entry.op == "matmul"
        assert matmul_entry.kernel in tw.kernels.names("matmul")
        assert matmul_entry.isa == tw.active_isa()
        assert matmul_entry.problem == "float32 64x32x48"
        assert matmul_entry.threads == tw.get_num_threads()

    def test_work_and_rates(self, matmul_entry):
        assert matmul_entry.flops == 2 * 64 * 48 * 32
        assert matmul_entry.bytes >= 4 * (64 * 48 + 48 * 32 + 64 * 32)
        assert matmul_entry.gflops == pytest.approx(matmul_entry.flops / matmul_entry.ns)
        assert matmul_entry.gbs == pytest.approx(matmul_entry.bytes / matmul_entry.ns)

    def test_candidates_are_the_ladder_with_one_choice(self, matmul_entry):
        assert [c.name for c in matmul_entry.candidates] == tw.kernels.names("matmul")
        chosen = [c for c in matmul_entry.candidates if c.chosen]
        assert [c.name for c in chosen] == [matmul_entry.kernel]
        for candidate in matmul_entry.candidates:
            assert candidate.accepted or candidate.reason
            assert candidate.cost_ns is None or math.isfinite(candidate.cost_ns)

    def test_roofline_share_is_of_the_slower_bound(self, matmul_entry):
        peaks = quick_peaks()
        # A peak that was measured beside other work is at least what was reached here.
        roof = max(peaks.flops_per_s, 1e9 * matmul_entry.gflops)
        compute_ns = 1e9 * matmul_entry.flops / roof
        level = peaks.served_by(matmul_entry.bytes, matmul_entry.ns)
        memory_ns = 1e9 * matmul_entry.bytes / level.bytes_per_s
        assert matmul_entry.bound == ("compute" if compute_ns > memory_ns else level.name)
        share = 100 * max(compute_ns, memory_ns) / matmul_entry.ns
        assert matmul_entry.roofline_percent == pytest.approx(share)

    def test_refused_kernels_say_why(self):
        a = tw.ones((3, 3), dtype=tw.int32)
        with tw.explain() as report:
            a @ a
        refused = [c for c in report[-1].candidates if not c.accepted]
        assert refused
        assert all(c.reason and c.cost_ns is None for c in refused)
        assert f"refused: {refused[0].reason}" in str(report)

    def test_forced_kernel(self):
        a = tw.randn(8, 8)
        with tw.kernels.use(matmul="naive"), tw.explain() as report:
            a @ a
        assert report[0].kernel == "naive"
        assert "'naive' is forced" in str(report)

    def test_backward_is_seen(self):
        x = tw.randn(4, 4, requires_grad=True)
        with tw.explain() as report:
            (x @ x).sum().backward()
        assert [entry.op for entry in report].count("matmul") == 3


class TestLevels:
    def test_data_comes_from_the_first_level_that_holds_them(self):
        levels = (Level("L1", 100, 8e9), Level("L2", 1000, 4e9), Level("memory", math.inf, 1e9))
        peaks = Peaks(1e9, levels, 1.0)
        assert peaks.served_by(80, 1e3).name == "L1"
        assert peaks.served_by(101, 1e3).name == "L2"
        assert peaks.served_by(2000, 1e9).name == "memory"
        # Too fast for that one: a faster one has served, or the fastest.
        assert peaks.served_by(2000, 1000).name == "L2"
        assert peaks.served_by(2000, 100).name == "L1"

    def test_levels_grow_and_slow_down_to_memory(self):
        levels = quick_peaks().levels
        assert levels[-1].name == "memory"
        assert all(level.bytes_per_s > 0 for level in levels)
        sizes = [level.capacity_bytes for level in levels]
        assert sizes == sorted(sizes)

    def test_no_share_passes_the_level_that_served(self):
        x = tw.randn(512, 512)
        report = tw.explain.call(lambda: x + x, repeat=20)
        assert report[0].bound in {"L1", "L2", "L3", "memory", "compute"}
        assert report[0].bound == "L1" or report[0].roofline_percent <= 106


class TestCall:
    def test_median_and_spread(self):
        report = tw.explain.call(lambda x: tw.exp(x) + 1, tw.ones(1000), repeat=7)
        assert [entry.op for entry in report] == ["exp", "add"]
        for entry in report:
            assert entry.calls == 7
            assert entry.low_ns <= entry.ns <= entry.high_ns
            assert not entry.first
        assert "(" in str(report).splitlines()[1].split("exp", 1)[1]

    def test_arguments_reach_the_function(self):
        report = tw.explain.call(tw.sum, tw.ones((3, 4)), axis=0, repeat=1)
        assert report[0].problem == "float32 (3, 4) to (4,)"

    def test_other_ops_each_time(self):
        ops = iter([tw.exp, tw.exp, tw.log, tw.exp])
        with pytest.raises(ValueError, match="other ops"):
            tw.explain.call(lambda: next(ops)(tw.ones(3)), repeat=3)

    def test_fewer_than_one(self):
        with pytest.raises(ValueError, match="repeat must be at least 1, got 0"):
            tw.explain.call(tw.exp, tw.ones(3), repeat=0)

    def test_the_first_of_a_kind_is_marked(self):
        x = tw.ones((3,))
        with tw.explain() as report:
            x + x
            x + x
            x * x
        assert [entry.first for entry in report] == [True, False, False]
        assert "first: of several calls" in str(report)


class TestScope:
    def test_nothing_outside_the_block(self):
        x = tw.ones((3,))
        x + x
        with tw.explain() as report:
            pass
        x + x
        assert len(report) == 0
        assert str(report) == "no op ran"
        assert list(report) == []

    def test_nested(self):
        x = tw.ones((3,))
        with tw.explain() as outer:
            x + x
            with tw.explain() as inner:
                x * x
            x - x
        assert [entry.op for entry in inner] == ["multiply"]
        assert [entry.op for entry in outer] == ["add", "multiply", "subtract"]

    def test_reading_a_report_within_another_adds_nothing(self):
        machine_peaks._measured.cache_clear()
        x = tw.ones((3,))
        with tw.explain() as outer:
            with tw.explain() as inner:
                x + x
            str(inner)
        assert [entry.op for entry in outer] == ["add"]

    def test_exception(self):
        x = tw.ones((3,))
        with pytest.raises(IndexError), tw.explain() as report:
            (x + x)[7]
        assert [entry.op for entry in report] == ["add"]
        with tw.explain() as after:
            x * x
        assert [entry.op for entry in after] == ["multiply"]

    def test_a_refused_op_leaves_no_entry(self):
        with tw.explain() as report, pytest.raises(ValueError, match="matmul"):
            tw.ones((2, 3)) @ tw.ones((2, 3))
        assert "matmul" not in [entry.op for entry in report]

    def test_one_report_for_two_blocks(self):
        x = tw.ones((3,))
        report = tw.explain()
        with report:
            x + x
        assert len(list(report)) == 1
        with report:
            x * x
        assert [entry.op for entry in report] == ["add", "multiply"]


class TestFormats:
    def test_sequence(self):
        x = tw.ones((3,))
        with tw.explain() as report:
            x + x
            x * x
        assert report[0].op == "add"
        assert report[-1].op == "multiply"
        assert [entry.op for entry in report[:1]] == ["add"]
        assert repr(report) == "<explain: 2 ops>"
        with pytest.raises(IndexError):
            report[2]

    def test_json(self, matmul_entry):
        a = tw.randn(16, 16)
        with tw.explain() as report:
            a @ a
        told = json.loads(json.dumps(report.as_dict(), allow_nan=False))
        (entry,) = told["entries"]
        assert entry["op"] == "matmul"
        assert entry["gflops"] > 0
        assert {c["name"] for c in entry["candidates"]} == set(tw.kernels.names("matmul"))

    def test_table_for_people(self):
        a = tw.randn(64, 64)
        with tw.explain() as report:
            a @ a
            a @ a
            tw.exp(a)
        lines = str(report).splitlines()
        assert lines[0].split() == [
            "op",
            "problem",
            "kernel",
            "time",
            "GFLOP/s",
            "GB/s",
            "roofline",
        ]
        assert [line.split()[0] for line in lines[1:4]] == ["matmul", "matmul", "exp"]
        # The same choice is told once.
        assert sum("choice of kernel" in line for line in lines) == 1
        assert [line for line in lines if line.startswith("->")]
        assert all(len(line) < 120 for line in lines)


class TestPeaks:
    def test_measured_once(self):
        assert quick_peaks() is quick_peaks()
        assert quick_peaks("bfloat16") is quick_peaks("float32")
        assert quick_peaks("float64") is not quick_peaks("float32")

    def test_random_stream_and_forced_kernels_stay(self):
        machine_peaks._measured.cache_clear()
        tw.manual_seed(3)
        expected = tw.randn(4).tolist()
        tw.manual_seed(3)
        with tw.kernels.use(matmul="naive"):
            quick_peaks("float64")
            assert tw.forced_kernel("matmul") == "naive"
        assert tw.randn(4).tolist() == expected
