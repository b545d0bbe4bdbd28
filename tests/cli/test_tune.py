"""tw.tune: the table's life, what does not count, right results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from cases.tuning import Machine

import tilewright as tw
from tilewright import tune
from tilewright._engine.cache import cache_folder, tuning_path
from tilewright.cli import main
from tilewright.tune import table
from tilewright.tune.search import Search

NAMES = list(tune.defaults())


@pytest.fixture(autouse=True)
def folder(tuning_folder):
    return tuning_folder


def made(**values: float) -> tune.Table:
    """A table for this machine."""
    gains = dict.fromkeys(values, 1.05)
    date = "2026-01-02T03:04:05+00:00"
    return tune.Table(values, gains, table.machine(), tw.__version__, date, 12.5)


def start(code: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program that reads the table as every user's does."""
    variables = {k: v for k, v in os.environ.items() if k != "TILEWRIGHT_TUNE"} | environment
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


REPORT = """
import json
import tilewright as tw
a = tw.arange(0, 35 * 40, dtype=tw.float32).reshape(35, 40) / 1000
right = abs((a @ a.T).sum().item() - ((a.sum(axis=0)) ** 2).sum().item()) < 1
print(json.dumps([tw.tune.current(), tw.tune.source(), bool(right)]))
"""


def report(*options: str, **environment: str) -> tuple[dict[str, float], str, str]:
    """Numbers in force, their source and what was printed beside, in a fresh process."""
    done = start(REPORT, *options, **environment)
    values, source, right = json.loads(done.stdout)
    assert right
    return values, source, done.stderr


class TestNumbers:
    def test_each_is_documented_and_within_its_limits(self):
        for row in tw._core.matmul_tunables():
            assert row["least"] <= row["default"] <= row["most"]
            assert row["value"] == row["default"]
            assert len(row["help"]) > 10

    def test_use_restores(self):
        before = tune.current()
        with tune.use(block_bytes=8192, work_per_part=5e5):
            assert tune.current() == before | {"block_bytes": 8192, "work_per_part": 5e5}
            assert tune.source() == "set in this process"
        assert tune.current() == before

    @pytest.mark.parametrize(
        ("values", "text"),
        [
            ({"block_bytes": 1}, r"block_bytes must be in \[4096, "),
            ({"block_bytes": 5000.5}, "block_bytes must be a whole number"),
            ({"packed_ns_per_flop": -1}, "packed_ns_per_flop must be in"),
            ({"packed_ns_per_flop": float("nan")}, "packed_ns_per_flop must be in"),
            ({"blocks": 4096}, "no number 'blocks'; choose from block_bytes, "),
        ],
    )
    def test_what_the_limits_do_not_allow_changes_nothing(self, values, text):
        before = tune.current()
        with pytest.raises(ValueError, match=text), tune.use(run_bytes=128, **values):
            pass
        assert tune.current() == before

    def test_a_table_with_a_wrong_value_changes_nothing(self):
        with pytest.raises(ValueError, match="must be in"):
            tune.apply(made(run_bytes=128, block_bytes=1))
        assert tune.current() == tune.defaults()


class TestTable:
    def test_round_trip(self, folder):
        written = made(block_bytes=3 << 17, packed_ns_per_flop=0.004)
        assert tune.save(written) == str(folder / "tuning.json") == tune.path()
        tune.reset()
        assert tune.load() == written
        assert tune.current() == tune.defaults() | written.values
        assert tune.source() == f"measured on 2026-01-02, {tune.path()}"
        assert tune.differences(written)["block_bytes"] == (
            tune.defaults()["block_bytes"],
            3 << 17,
        )

    def test_people_can_read_it(self, folder):
        tune.save(made(block_bytes=3 << 17))
        text = (folder / "tuning.json").read_text()
        assert '"block_bytes": 393216' in text
        assert "\n" in text
        assert set(json.loads(text)) == set(made().as_dict())

    def test_a_process_takes_it_over(self):
        tune.save(made(block_bytes=3 << 17))
        values, source, errors = report()
        assert values["block_bytes"] == 3 << 17
        assert "2026-01-02" in source
        assert errors == ""

    def test_a_variable_switches_it_off(self):
        tune.save(made(block_bytes=3 << 17))
        values, source, errors = report(TILEWRIGHT_TUNE="0")
        assert values == tune.defaults()
        assert source.startswith("defaults")
        assert errors == ""

    def test_none_is_silent(self):
        assert tune.load() is None
        values, source, errors = report("-W", "error")
        assert values == tune.defaults()
        assert source.startswith("defaults")
        assert errors == ""

    def test_export_import_clear(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="`tilewright tune` measures one"):
            tune.export(tmp_path / "mine.json")
        tune.save(made(block_bytes=3 << 17))
        tune.export(tmp_path / "mine.json")
        assert tune.clear()
        assert not tune.clear()
        assert tune.current() == tune.defaults()
        assert tune.import_(tmp_path / "mine.json") == made(block_bytes=3 << 17)
        assert tune.current()["block_bytes"] == 3 << 17
        assert tune.load() == made(block_bytes=3 << 17)

    def test_nothing_half_written(self, folder, monkeypatch):
        tune.save(made(block_bytes=3 << 17))

        def fail(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="tune: No space left"):
            tune.save(made(block_bytes=1 << 18))
        assert [file.name for file in folder.iterdir()] == ["tuning.json"]
        assert table.read(tune.path()) == made(block_bytes=3 << 17)
        assert tune.current()["block_bytes"] == 3 << 17

    def test_two_processes_write_at_once(self, folder):
        code = (
            "import sys, tilewright as tw\n"
            "from tilewright.tune import table\n"
            "for i in range(50):\n"
            "    tw.tune.save(tw.tune.Table({'block_bytes': int(sys.argv[1]) + i}, {},\n"
            "                 table.machine(), tw.__version__, 'x' * 1000, 1.0))\n"
            "    assert table.read(table.path()).values\n"
        )
        with ThreadPoolExecutor() as pool:
            jobs = [
                pool.submit(
                    subprocess.run, [sys.executable, "-c", code, str(first)], check=True, timeout=60
                )
                for first in (10_000, 20_000)
            ]
            assert all(job.result().returncode == 0 for job in jobs)
        assert table.read(tune.path()).values["block_bytes"] in (10_049, 20_049)
        assert [file.name for file in folder.iterdir()] == ["tuning.json"]

    def test_the_folder_is_platformdirs_own(self, monkeypatch):
        platformdirs = pytest.importorskip("platformdirs")
        monkeypatch.delenv("TILEWRIGHT_CACHE_DIR")
        for value in (None, "", "  ", "/somewhere"):
            monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
            if value is not None:
                monkeypatch.setenv("XDG_CACHE_HOME", value)
            assert cache_folder() == platformdirs.user_cache_dir("tilewright")
        assert tuning_path().endswith("tuning.json")


def changed(**changes):
    """The text of a table with some of its parts changed."""
    return json.dumps({**made(block_bytes=3 << 17).as_dict(), **changes}).encode()


def without(key):
    content = made().as_dict()
    del content[key]
    return json.dumps(content).encode()


MACHINE = table.machine()
DAMAGED = {
    "empty": (b"", "no JSON"),
    "truncated": (changed()[:-30], "no JSON"),
    "binary": (bytes(range(256)), "no JSON"),
    "a list": (b"[1, 2]", "no table"),
    "nested": (b"[" * 20_000, "no JSON"),
    "huge": (b" " * 100_000 + changed(), "bytes are no table"),
    "stale": (changed(tilewright="0.0.1"), "made by version 0.0.1, this is"),
    "other features": (changed(machine={**MACHINE, "features": ["sse"]}), "other CPU features"),
    "other threads": (changed(machine={**MACHINE, "threads": 999}), "threads 999, here"),
    "other caches": (changed(machine={**MACHINE, "l2_bytes": 7}), "l2_bytes 7, here"),
    "no machine": (changed(machine=None), "for which machine"),
    "other format": (changed(format=99), "format 99, expected 2"),
    "no format": (without("format"), "format None"),
    "no version": (without("tilewright"), "'tilewright' is no text"),
    "no date": (changed(date=7), "'date' is no text"),
    "no values": (without("matmul"), "'matmul' does not hold numbers"),
    "text for a number": (changed(matmul={"block_bytes": "many"}), "does not hold numbers"),
    "true for a number": (changed(matmul={"block_bytes": True}), "does not hold numbers"),
    "negative": (changed(matmul={"block_bytes": -4096}), "does not hold numbers"),
    "infinite": (changed(matmul={"block_bytes": float("inf")}), "does not hold numbers"),
    "no number": (changed(matmul={"work_per_part": float("nan")}), "does not hold numbers"),
    "a giant": (changed(matmul={"work_per_part": 10**400}), "does not hold numbers"),
    "too large": (changed(matmul={"block_bytes": 1 << 40}), "block_bytes must be in"),
    "too small": (changed(matmul={"block_bytes": 1}), "block_bytes must be in"),
    "a fraction": (changed(matmul={"block_bytes": 5000.5}), "must be a whole number"),
    "unknown": (changed(matmul={"speed": 3}), "no number is called 'speed'"),
    "wrong gains": (changed(gains=[1]), "'gains' does not hold numbers"),
    "wrong seconds": (changed(seconds="long"), "'seconds' does not hold numbers"),
}


class TestWhatDoesNotCount:
    @pytest.mark.parametrize("case", DAMAGED)
    def test_is_refused_with_the_reason(self, folder, case):
        text, reason = DAMAGED[case]
        folder.mkdir()
        (folder / "tuning.json").write_bytes(text)
        with pytest.raises(ValueError, match=r"damaged|made by|another machine") as caught:
            tune.load()
        assert reason in str(caught.value)
        with pytest.raises(ValueError, match=r"damaged|made by|another machine"):
            tune.import_(folder / "tuning.json")
        assert tune.current() == tune.defaults()
        assert (folder / "tuning.json").read_bytes() == text

    @pytest.mark.parametrize("case", ["truncated", "stale", "other threads", "a giant", "nested"])
    def test_costs_a_process_one_notice(self, folder, case):
        text, reason = DAMAGED[case]
        folder.mkdir()
        (folder / "tuning.json").write_bytes(text)
        values, source, errors = report()
        assert values == tune.defaults()
        assert source.startswith("defaults")
        assert errors.count("TuningWarning") == 1
        assert errors.count("is ignored") == 1
        assert reason in errors

    def test_is_no_error_where_warnings_are(self, folder):
        folder.mkdir()
        (folder / "tuning.json").write_bytes(b"{")
        values, _, errors = report("-W", "error")
        assert values == tune.defaults()
        assert errors.count("is ignored") == 1
        assert report("-W", "ignore")[2] == ""

    @pytest.mark.parametrize("what", ["folder", "loop", "pipe", "unreadable"])
    def test_no_file_to_read(self, folder, what):
        folder.mkdir()
        file = folder / "tuning.json"
        if what == "folder":
            file.mkdir()
        elif what == "loop":
            file.symlink_to(file)
        elif what == "pipe":
            os.mkfifo(file)
        else:
            file.write_bytes(changed())
            file.chmod(0)
            if os.access(file, os.R_OK):
                pytest.skip("this user may read everything")
        values, _, errors = report()
        assert values == tune.defaults()
        assert errors.count("is ignored") == 1

    def test_a_folder_that_is_a_file_is_silent(self, folder):
        folder.write_text("in the way")
        assert report()[0] == tune.defaults()
        assert report()[2] == ""
        assert tune.load() is None
        assert not tune.clear()

    def test_measuring_says_at_once_that_it_cannot_write(self, folder):
        folder.write_text("in the way")
        clock = Machine()
        with pytest.raises(OSError, match=r"tune: cannot write the table: .*TILEWRIGHT_CACHE_DIR"):
            Search(clock, 60).run()
        assert clock.samples == 0

    def test_a_folder_that_may_not_be_written(self, folder):
        folder.mkdir(mode=0o500)
        if os.access(folder, os.W_OK):
            pytest.skip("this user may write everywhere")
        with pytest.raises(PermissionError, match="tune: cannot write the table"):
            tune.save(made())
        assert report()[2] == ""


EXTREMES = [
    {"block_bytes": 4096, "run_bytes": 64, "small_bytes_of_a": 0},
    {"block_bytes": 1 << 26, "run_bytes": 1 << 16},
    {"small_bytes_of_a": 1 << 26, "dot_bytes": 1 << 20, "cold_bytes": 0},
    {"dot_bytes": 0, "cold_bytes": 1 << 30, "run_bytes": 100},
    {"work_per_part": 1e4, "parts_per_thread": 16},
    {"work_per_part": 1e4, "parts_per_thread": 1, "most_threads": 1},
    {"work_per_part": 1e4, "most_threads": 2, "block_bytes": 4096},
    {"work_per_part": 1e12},
    {"naive_ns_per_flop": 1e-6, "naive_overhead_ns": 0},
]
SHAPES = [(1, 1, 1), (7, 13, 5), (65, 300, 129), (257, 33, 3), (3, 70, 1030), (33, 2500, 70)]


class TestProducts:
    @pytest.mark.parametrize("values", EXTREMES, ids=lambda values: next(iter(values)))
    @pytest.mark.parametrize("rung", ["", "simd", "packed", "direct"])
    def test_are_right_with_any_values(self, rng, values, rung, isa):
        for m, k, n in SHAPES:
            for dtype in ("float32", "float64"):
                x, y = (rng.uniform(-1, 1, s).astype(dtype) for s in ((m, k), (k, n)))
                wanted = x.astype(np.float64) @ y.astype(np.float64)
                # Higham, Accuracy and Stability, (3.5): any order of sums, twice for the reference.
                bound = (k + 1) * np.finfo(dtype).eps * (np.abs(x) @ np.abs(y))
                a, b = tw.asarray(x), tw.asarray(y)
                for left, right in ((a, b), (a, b.T.contiguous().T), (a.T.contiguous().T, b)):
                    with tune.use(**values), tw.kernels.use(matmul=rung):
                        try:
                            got = left @ right
                        except tw.InvalidValueError:
                            assert rung == "direct"
                            continue
                    assert (np.abs(np.asarray(got) - wanted) <= bound).all(), (m, k, n, dtype)

    @pytest.mark.parametrize("values", EXTREMES, ids=lambda values: next(iter(values)))
    def test_do_not_depend_on_the_threads(self, rng, values):
        for m, k, n in ((300, 1200, 200), (64, 784, 256), (1000, 20, 30)):
            x, y = (tw.asarray(rng.uniform(-1, 1, s).astype("float32")) for s in ((m, k), (k, n)))
            results = []
            for threads in (1, 2, 3, 7):
                tw.set_num_threads(threads)
                with tune.use(**values):
                    results.append(np.asarray(x @ y).tobytes())
            assert len(set(results)) == 1


class TestExplain:
    def test_the_terms_make_up_the_estimate(self):
        for m, k, n in ((1, 1, 1), (64, 784, 256), (1024, 1024, 1024)):
            for batch in ((), (3,)):
                with tw.explain() as report:
                    tw.ones((*batch, m, k)) @ tw.ones((*batch, k, n))
                candidates = report._recorded[-1].candidates
                for rung in (rung for rung in candidates if rung.cost_ns is not None):
                    assert sum(ns for _, ns in rung.terms) == pytest.approx(rung.cost_ns)

    def test_says_where_the_numbers_come_from(self):
        x = tw.ones((64, 64))
        with tw.explain() as report:
            x @ x
        assert "Estimates: defaults for this machine's caches" in str(report)
        assert "chosen: overhead" in str(report)
        assert report.as_dict()["estimates"].startswith("defaults")
        tune.save(made(block_bytes=3 << 17))
        assert f"Estimates: measured on 2026-01-02, {tune.path()}; scaled" in str(report)
        with tw.explain() as other:
            x + x
        assert "Estimates" not in str(other)

    def test_the_choice_follows_the_numbers(self):
        x = tw.ones((64, 64))
        with tune.use(naive_ns_per_flop=1e-6, naive_overhead_ns=0), tw.explain() as report:
            x @ x
        assert report[0].kernel == "naive"


class TestCommand:
    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch):
        """A made-up machine that likes smaller blocks, without a GPU, stands in for this one."""
        monkeypatch.setattr(tw.cuda, "is_available", lambda: False)
        usual = tune.defaults()["block_bytes"]
        monkeypatch.setattr(
            "tilewright.tune.timing.Stopwatch", lambda: Machine(best={"block_bytes": usual // 2})
        )

    def json(self, capsys, *arguments):
        assert main(["tune", *arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    def fails(self, capsys, *arguments):
        assert main(["tune", *arguments]) == 1
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1
        return captured.err

    def test_measures_and_writes(self, capsys, folder):
        assert main(["tune"]) == 0
        out = capsys.readouterr().out
        assert "replaces the default" in out
        assert "within the noise" in out
        assert f"written: {folder / 'tuning.json'}" in out
        assert table.read(tune.path()).values == {
            "block_bytes": tune.defaults()["block_bytes"] // 2
        }

    def test_json(self, capsys):
        told = self.json(capsys, "--seconds", "30")
        assert told["table"]["seconds"] <= 33
        assert {step["name"] for step in told["steps"]} >= {"block_bytes", "cost model"}

    def test_show(self, capsys):
        assert self.json(capsys, "show")["state"] == "none"
        tune.save(made(block_bytes=3 << 17))
        shown = self.json(capsys, "show")
        assert shown["current"]["block_bytes"] == 3 << 17
        assert shown["defaults"] == tune.defaults()
        assert main(["tune", "show"]) == 0
        out = capsys.readouterr().out
        assert all(name in out for name in NAMES)
        Path(tune.path()).write_text("{")
        assert main(["tune", "show"]) == 0
        assert "ignored: damaged: no JSON" in capsys.readouterr().out

    def test_info_and_doctor_tell(self, capsys, monkeypatch):
        monkeypatch.delenv("TILEWRIGHT_TUNE")
        tune.save(made(block_bytes=3 << 17))
        for command in ("info", "doctor"):
            main([command])
            assert "measured on 2026-01-02" in capsys.readouterr().out
        Path(tune.path()).write_bytes(DAMAGED["stale"][0])
        main(["doctor"])
        out = capsys.readouterr().out
        assert "ignored: made by version 0.0.1" in out
        assert "tuning: measure anew with `tilewright tune`" in out

    def test_diff(self, capsys, tmp_path):
        assert "`tilewright tune` measures one" in self.fails(capsys, "diff")
        tune.save(made(block_bytes=3 << 17))
        tune.export(tmp_path / "x.json")
        for arguments in ((), (str(tmp_path / "x.json"),)):
            changes = self.json(capsys, "diff", *arguments)["changes"]
            assert changes == {
                "block_bytes": {"default": tune.defaults()["block_bytes"], "value": 3 << 17}
            }
        tune.save(made())
        assert main(["tune", "diff"]) == 0
        assert "the defaults stay" in capsys.readouterr().out

    def test_export_import_clear(self, capsys, tmp_path):
        file = str(tmp_path / "x.json")
        assert "no table" in self.fails(capsys, "export", file)
        tune.save(made(block_bytes=3 << 17))
        assert main(["tune", "export", file]) == 0
        assert main(["tune", "clear"]) == 0
        assert not Path(tune.path()).exists()
        assert main(["tune", "import", file]) == 0
        assert table.read(tune.path()) == made(block_bytes=3 << 17)
        capsys.readouterr()

    def test_a_table_of_another_machine_is_not_imported(self, capsys, tmp_path):
        (tmp_path / "x.json").write_bytes(DAMAGED["other threads"][0])
        error = self.fails(capsys, "import", str(tmp_path / "x.json"))
        assert "measured on another machine: threads 999" in error
        assert not Path(tune.path()).exists()

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (("export",), "tilewright tune export FILE"),
            (("import",), "tilewright tune import FILE"),
            (("clear", "x"), "clear takes no file, got 'x'"),
            (("import", "nowhere.json"), "nowhere.json"),
        ],
    )
    def test_wrong_use(self, capsys, arguments, text):
        assert text in self.fails(capsys, *arguments)

    def test_a_folder_that_cannot_be_written(self, capsys, folder):
        folder.write_text("in the way")
        assert "set TILEWRIGHT_CACHE_DIR" in self.fails(capsys)
