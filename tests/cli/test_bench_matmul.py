"""`tilewright bench matmul`: what it checks, times, stores and draws. No time is asserted."""

import hashlib
import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from timeit import Timer

import numpy as np
import pytest

import tilewright as tw
from tilewright.bench import harness, matmul, validation
from tilewright.bench.harness import OURS, Case, compare
from tilewright.bench.shapes import FULL, LAYOUTS, QUICK, Plan, Shape, square
from tilewright.bench.validation import FAILING, PASSED, REFUSED, SKIPPED, Reference, bound_of
from tilewright.cli import bench_matmul, main, matmul_report

PNG = b"\x89PNG\r\n\x1a\n"
RUNGS = tw.kernels.names("matmul")
SMALL_PLAN = Plan(
    sides=(1, 8),
    depths=(2, 8),
    others=(
        Shape(8, 9, 5, layout="tp"),
        Shape(4, 4, 4, batch=3, layout="sn"),
        Shape(4, 4, 4, batch=3, shared=True),
    ),
    rounds=2,
)

pytestmark = pytest.mark.usefixtures("threads")


@pytest.fixture
def run(capsys):
    """Runs a comparison with NumPy on one thread: exit code and what --json printed."""

    def run_one(*arguments):
        code = main(["bench", *arguments, "--peers", "numpy", "--json"])
        return code, json.loads(capsys.readouterr().out)

    return run_one


@pytest.fixture
def quick(monkeypatch):
    """Few rounds of short samples: the figures mean nothing, the rows are complete."""
    for name in ("_ROUNDS", "_THREAD_ROUNDS"):
        monkeypatch.setattr(bench_matmul, name, 2)
    monkeypatch.setattr(matmul, "_RUNG_ROUNDS", 2)
    monkeypatch.setattr(bench_matmul, "_PEAK_SECONDS", 0.01)
    monkeypatch.setattr(bench_matmul, "QUICK", SMALL_PLAN)


def with_text(monkeypatch, rung, text, **names):
    """Lets one rung compute something else."""
    original = matmul.rungs

    def changed(shape, dtype):
        found = original(shape, dtype)
        found[rung] = replace(found[rung], text=text, names={**found[rung].names, **names})
        return found

    monkeypatch.setattr(matmul, "rungs", changed)


def rungs_not_here():
    """Those that need instructions which this processor does not have."""
    missing = set()
    for rung in RUNGS:
        with tw.kernels.use(matmul=rung):
            try:
                tw.ones((8, 8)) @ tw.ones((8, 8))
            except ValueError:
                missing.add(rung)
    return missing


@pytest.mark.usefixtures("quick")
class TestReport:
    def test_everything_is_checked_and_timed(self, run):
        code, report = run("matmul", "--sizes", "16,8", "--threads", "1")
        assert code == 0
        assert report["machine"]["threads"] == 1
        assert report["peak_flops_per_s"] > 0
        assert {check["part"] for check in report["checks"]} == {"ladder", "sizes"}
        runs = [check for check in report["checks"] if check["contender"] not in rungs_not_here()]
        assert {check["status"] for check in runs} == {PASSED}
        for check in runs:
            assert check["error_rms"] <= check["bound_rms"]
        assert [row["m"] for row in report["results"]] == [8, 16]
        for row in report["results"]:
            assert row["kernel"] in RUNGS
            assert set(row["timings"]) == set(row["errors"]) == {OURS, "numpy"}
            assert row["ratio"] == row["ratios"]["numpy"] > 0
            assert row["gflops"][OURS] > 0 < row["peak_share"]
            assert row["timings"][OURS]["median_s"] <= row["timings"][OURS]["p95_s"]

    def test_the_ladder_has_a_row_for_each_rung_and_size(self, run):
        _, report = run("ladder", "--sizes", "8,32", "--dtype", "float64", "--threads", "1")
        assert report["dtype"] == "float64"
        rows = report["ladder"]
        assert [(row["m"], row["rung"]) for row in rows] == [
            (n, rung) for n in (8, 32) for rung in RUNGS
        ]
        for n in (8, 32):
            of_size = [row for row in rows if row["m"] == n]
            assert sum(row["chosen"] for row in of_size) == 1
            assert sum(row["winner"] for row in of_size) == 1
            assert all(row["gflops"] > 0 for row in of_size if row["status"] == PASSED)
        assert len(report["results"]) == 2

    def test_nothing_stays_forced(self, run):
        before = tw.kernels._forced("matmul")
        run("ladder", "--sizes", "8", "--threads", "1")
        assert tw.kernels._forced("matmul") == before

    def test_threads_are_honoured(self, run):
        _, report = run("matmul", "--sizes", "8", "--threads", "2")
        assert report["machine"]["threads"] == tw.get_num_threads() == 2
        own = [row for row in report["threads"] if row["contender"] == OURS]
        assert [row["threads"] for row in own] == [1, 2]
        assert own[0]["speedup"] == 1
        names = {check["contender"] for check in report["checks"] if check["part"] == "threads"}
        assert {OURS, f"{OURS}, 2 threads"} <= names

    def test_the_map_has_every_shape_worst_first(self, run):
        code, report = run("matmul", "--map", "--threads", "1")
        assert code == 0
        rows = report["results"]
        assert {row["name"] for row in rows} == {shape.name for shape in SMALL_PLAN.shapes()}
        ratios = [min(row["ratios"].values()) for row in rows]
        assert ratios == sorted(ratios)
        batched = next(row for row in rows if row["batch"] == 3 and row["layout"] == "sn")
        assert (batched["m"], batched["n"], batched["k"]) == (4, 4, 4)

    def test_of_three_runs_of_the_map_the_median_counts(self, run, tmp_path):
        target = tmp_path / "map.json"
        options = ["--rounds", "3", "--brief", str(target)]
        code, report = run("matmul", "--map", *options, "--threads", "1")
        assert code == 0
        for row in report["results"]:
            assert len(row["runs"]) == 3
            assert row["ratio"] == sorted(row["runs"])[1] == min(row["ratios"].values())
        brief = json.loads(target.read_text())
        assert [row["name"] for row in brief["shapes"]] == [r["name"] for r in report["results"]]
        assert brief["runs"] == 3
        assert {kernel["peer"] for kernel in brief["machine"]["kernels"]} == {"numpy"}
        assert target.read_text().count("\n") == len(brief["shapes"]) + 2

    def test_one_rung_under_a_setting(self, run):
        options = ["--parts", "sizes", "--rung", "packed", "--precision", "high"]
        code, report = run("matmul", "--sizes", "64", *options, "--threads", "1")
        assert code == 0
        assert [row["kernel"] for row in report["results"]] == ["packed"]
        assert report["machine"]["precision"] == "high"
        assert tw.get_float32_matmul_precision() == "highest"
        assert {check["part"] for check in report["checks"]} == {"sizes"}

    def test_bfloat16_against_pytorch(self, capsys):
        pytest.importorskip("torch")
        options = ["--dtype", "bfloat16", "--parts", "sizes", "--peers", "torch,numpy"]
        assert main(["bench", "matmul", "--sizes", "32", *options, "--threads", "1", "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["results"]
        assert set(row["timings"]) == {OURS, "torch"}

    def test_the_kernels_of_peers_are_stored(self, run):
        _, report = run("matmul", "--sizes", "8", "--threads", "1")
        kernels = report["machine"]["kernels"]
        assert {kernel["peer"] for kernel in kernels} == {"numpy"}
        assert all(kernel["library"] and kernel["runs"] for kernel in kernels)

    def test_without_peers(self, capsys):
        assert main(["bench", "matmul", "--map", "--peers", "", "--threads", "1"]) == 0
        assert "no peer" in capsys.readouterr().out

    def test_output_for_people(self, capsys):
        assert main(["bench", "matmul", "--sizes", "8", "--peers", "numpy", "--threads", "1"]) == 0
        out = capsys.readouterr().out
        for text in ("held against float64", "chosen", "peak", "/ numpy"):
            assert text in out


@pytest.mark.usefixtures("quick")
class TestVerdicts:
    def test_a_wrong_rung_fails_and_is_not_timed(self, run, monkeypatch):
        with_text(monkeypatch, "tiled", "(x @ y) * 1.001")
        code, report = run("ladder", "--sizes", "8", "--threads", "1")
        assert code == 1
        (tiled,) = (row for row in report["ladder"] if row["rung"] == "tiled")
        assert tiled["status"] == FAILING
        assert "allowed" in tiled["reason"]
        assert tiled["median_s"] is None
        assert "tiled" not in report["results"][0]["timings"]
        assert "naive" in report["results"][0]["timings"]

    def test_a_wrong_choice_of_the_engine_is_not_timed(self, run, monkeypatch):
        right = matmul.ours
        monkeypatch.setattr(
            matmul, "ours", lambda *shape: replace(right(*shape), text="x @ y + 0.5")
        )
        code, report = run("matmul", "--sizes", "8", "--threads", "1")
        assert code == 1
        assert report["results"][0]["timings"] == {}
        assert FAILING.upper() in report["results"][0]["not_timed"][0]

    def test_a_refusing_rung_tells_why(self, run, monkeypatch):
        with_text(monkeypatch, "tiled", "x.astype(t) @ y.astype(t)", t=tw.int32)
        code, report = run("ladder", "--sizes", "8", "--threads", "1")
        assert code == 0
        (refused,) = (row for row in report["ladder"] if row["rung"] == "tiled")
        assert refused["status"] == REFUSED
        others = {row["rung"] for row in report["ladder"] if row["status"] == REFUSED} - {"tiled"}
        assert others == rungs_not_here()
        assert refused["reason"] == "only float32 and float64 have vector kernels"
        assert refused["median_s"] is None

    def test_a_slow_rung_is_skipped_unchecked(self, run, monkeypatch):
        seconds = {"naive": 4000.0, "direct": None}
        monkeypatch.setattr(matmul, "_estimate", lambda name, *_: seconds.get(name, 900.0))
        code, report = run("ladder", "--sizes", "8", "--threads", "1")
        assert code == 0
        (naive,) = (row for row in report["ladder"] if row["rung"] == "naive")
        assert (naive["status"], naive["error_rms"]) == (SKIPPED, None)
        assert naive["reason"] == "at least 4,000 s a call; the limit is 3600 s"
        here = set(RUNGS) - rungs_not_here() - {"naive"}
        assert {row["status"] for row in report["ladder"] if row["rung"] in here} == {PASSED}

    def test_estimates(self):
        assert matmul._estimate("naive", tw.float32, 128) == 0
        assert matmul._estimate("naive", tw.float32, 130) > 0


@pytest.mark.usefixtures("quick")
class TestPictures:
    @pytest.mark.parametrize(
        ("arguments", "parts"),
        [
            (["matmul", "--sizes", "8,16", "--threads", "2"], ["ladder", "sizes", "threads"]),
            (["matmul", "--map", "--threads", "1"], ["map", "shapes"]),
            (["ladder", "--sizes", "8", "--threads", "1"], ["ladder"]),
        ],
    )
    def test_one_for_each_part(self, run, tmp_path, arguments, parts):
        code, _ = run(*arguments, "--plot", str(tmp_path / "products.png"))
        assert code == 0
        assert {path.name for path in tmp_path.iterdir()} == {f"products-{p}.png" for p in parts}
        assert all(path.read_bytes().startswith(PNG) for path in tmp_path.iterdir())


class TestArguments:
    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (["matmul", "--full"], "--full: only with --map"),
            (["matmul", "--map", "--sizes", "8"], "--sizes: not with --map"),
            (["matmul", "--rounds", "3"], "--rounds: only with --map"),
            (["matmul", "--brief", "x.json"], "--brief: only with --map"),
            (["matmul", "--sizes", "10000000"], "GiB"),
            (["matmul", "--plot", "nowhere/at/all.png"], "create the folder"),
            (["matmul", "--plot", "name.xyz"], "no picture format"),
            (["ladder", "--plot", "name"], "no picture format"),
            (["matmul", "--json", "nowhere/at/all.json"], "create the folder"),
        ],
    )
    def test_bad_ones_are_one_line_at_once(self, capsys, arguments, text):
        assert main(["bench", *arguments]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert text in printed.err
        assert printed.err.count("\n") == 1

    @pytest.mark.parametrize(
        "arguments",
        [
            ["matmul", "--sizes", "0"],
            ["matmul", "--dtype", "int8"],
            ["matmul", "--peers", "fortran"],
            ["matmul", "--parts", "sizes,none"],
            ["ladder", "--map"],
            ["overhead", "--sizes", "8"],
            ["nothing"],
            [],
        ],
    )
    def test_wrong_usage(self, capsys, arguments):
        with pytest.raises(SystemExit) as caught:
            main(["bench", *arguments])
        assert caught.value.code == 2
        assert "error:" in capsys.readouterr().err


class TestReference:
    @pytest.mark.parametrize("numpy", [True, False])
    @pytest.mark.parametrize(
        "shape",
        [
            Shape(5, 7, 3),
            Shape(1, 9, 64, layout="nt"),
            Shape(6, 4, 8, batch=5, layout="tp"),
            Shape(6, 4, 8, batch=4, layout="ss", shared=True),
        ],
    )
    def test_right_products_pass(self, monkeypatch, shape, numpy):
        monkeypatch.setattr(validation, "available", lambda _: numpy)
        for dtype in (tw.float32, tw.float64):
            x, y = shape.operands(dtype)
            check = Reference(x, y).check("it", "ours", "ieee", shape.k, lambda x=x, y=y: x @ y)
            assert check.status == PASSED
            assert check.error.max <= bound_of("ieee", dtype, shape.k).max

    def test_error_is_relative_to_the_product(self):
        x, y = square(16).operands(tw.float64)
        error = Reference(x, y).error((x @ y) * 1.5)
        assert error.rms == pytest.approx(0.5)
        true = x.numpy() @ y.numpy()
        assert error.max == pytest.approx(0.5 * np.abs(true).max() / np.sqrt((true**2).mean()))

    @pytest.mark.parametrize("spoiled", [np.s_[3, :], np.s_[:, 3], np.s_[0:6, 0:6]])
    def test_a_sample_meets_every_band(self, monkeypatch, spoiled):
        monkeypatch.setattr(validation, "_NUMPY_FLOPS", 2.0 * 48 * 48 * 12)
        x, y = square(48).operands(tw.float32)
        product = (x @ y).numpy().copy()
        product[spoiled] += 1
        check = Reference(x, y).check("it", "it", "ieee", 48, lambda: tw.asarray(product))
        assert check.status == FAILING

    def test_nan_fails(self):
        x, y = square(8).operands(tw.float32)
        check = Reference(x, y).check("it", "it", "medium", 8, lambda: x @ y * float("nan"))
        assert check.status == FAILING

    @pytest.mark.parametrize("kind", ["ieee", "fp32", "high", "medium"])
    def test_bfloat16_passes_as_its_class_only(self, kind):
        x, y = square(64).operands(tw.float32)
        cut = [t.astype(tw.bfloat16).astype(tw.float32) for t in (x, y)]
        check = Reference(x, y).check("it", "it", kind, 64, lambda: cut[0] @ cut[1])
        assert check.status == (PASSED if kind == "medium" else FAILING)

    def test_bounds_grow_with_the_class(self):
        kinds = ("ieee", "fp32", "high", "medium")
        bounds = [bound_of(kind, tw.float32, 512) for kind in kinds]
        assert bounds == sorted(bounds)

    def test_every_class_of_the_registry_has_a_bound(self):
        for kernel in tw.kernels.describe("matmul"):
            assert bound_of(kernel["precision"], tw.float32, 8).rms > 0


class TestShapes:
    @pytest.mark.parametrize("plan", [QUICK, FULL])
    def test_names_are_unique(self, plan):
        names = [shape.name for shape in plan.shapes()]
        assert len(set(names)) == len(names)

    def test_the_default_has_every_kind(self):
        shapes = QUICK.shapes()
        assert {letter for shape in shapes for letter in shape.layout} == set(LAYOUTS)
        assert {"nn", "nt", "tn", "tt"} <= {shape.layout for shape in shapes}
        assert any(shape.batch > 1 for shape in shapes)
        assert any(shape.m == 1 < shape.n for shape in shapes)
        assert any(shape.k < 8 < shape.m for shape in shapes)

    def test_operands_repeat(self):
        shape = Shape(3, 5, 7, batch=2, layout="ts", shared=True)
        (x, y), (again, _) = shape.operands(tw.float32), shape.operands(tw.float32)
        assert (x.shape, y.shape) == ((2, 3, 7), (7, 5))
        assert np.array_equal(x.numpy(), again.numpy())


def test_a_contender_drops_out_when_its_budget_is_spent():
    case = Case("it", {OURS: Timer("pass"), "other": Timer("pass")}, rounds=9, budget_s=0.0)
    assert {timing.samples for timing in compare(case, settle=False).values()} == {3}


def test_thread_counts():
    assert matmul.thread_counts(1) == [1]
    assert matmul.thread_counts(3) == [1, 2, 3]
    assert matmul.thread_counts(12) == [1, 2, 4, 8, 12]
    assert matmul.thread_counts(16) == [1, 2, 4, 8, 16]


def test_what_was_not_compared_comes_first():
    rows = [{"ratios": {"a": 2.0, "b": 0.5}}, {"ratios": {}}, {"ratios": {"a": 0.4}}]
    assert matmul_report.worst_first(rows) == [rows[1], rows[2], rows[0]]


def test_peers_are_waited_for_while_their_threads_spin() -> None:
    """OpenBLAS's do so for a tenth of a second: whoever came next shared a processor with them."""
    if not Path("/proc/self/task").is_dir():
        pytest.skip("only Linux tells what threads do")
    busy = threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"", b"", 2_000_000))
    busy.start()  # outside the interpreter's lock
    seen = any(harness._other_threads_run() for _ in iter(busy.is_alive, False))
    busy.join()
    assert seen
    assert any(not harness._other_threads_run() or time.sleep(0.01) for _ in range(500))
