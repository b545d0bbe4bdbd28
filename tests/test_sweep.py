"""`tilewright sweep`: configurations, results, going on after a kill, failures beside successes."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tilewright import train as job
from tilewright.cli import main
from tilewright.sweep import Configuration, Sweep, estimate_bytes, read_configurations

PATIENCE = 60
TWO = {"sweep": {"epochs": 2}, "grid": {"hidden": [8, 16]}, "runs": [{"hidden": 8, "lr": 0.3}]}


@pytest.fixture
def config(tmp_path):
    def write(tables, name="sweep.json"):
        path = tmp_path / name
        path.write_text(tables if isinstance(tables, str) else json.dumps(tables))
        return str(path)

    return write


@pytest.fixture(scope="module")
def digits():
    return job.load_task("digits")


def sweep(capsys, *arguments):
    """Exit code, the results, and what stood on standard error."""
    code = main(["sweep", *arguments, "--json"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out)["results"], captured.err


class TestConfigurations:
    def test_all_combinations_then_single_runs(self, config):
        found = read_configurations(config({**TWO, "grid": {"hidden": [8, 16], "lr": [0.1, 0.2]}}))
        assert [dict(each.settings) for each in found] == [
            {"epochs": 2, "hidden": 8, "lr": 0.1},
            {"epochs": 2, "hidden": 8, "lr": 0.2},
            {"epochs": 2, "hidden": 16, "lr": 0.1},
            {"epochs": 2, "hidden": 16, "lr": 0.2},
            {"epochs": 2, "hidden": 8, "lr": 0.3},
        ]

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="no tomllib before Python 3.11")
    def test_toml_says_the_same(self, config):
        text = "[sweep]\nepochs = 2\n[grid]\nhidden = [8, 16]\n[[runs]]\nhidden = 8\nlr = 0.3\n"
        assert read_configurations(config(text, "sweep.toml")) == read_configurations(config(TWO))

    def test_the_same_twice_is_trained_once(self, config):
        assert len(read_configurations(config({"runs": [{"lr": 0.1}, {"lr": 0.1}]}))) == 1

    def test_the_digest_depends_on_the_content_alone(self):
        digest = Configuration("digits", {"lr": 0.1, "hidden": 8}).digest
        assert Configuration("digits", {"hidden": 8, "lr": 0.1}).digest == digest
        assert Configuration("digits", {"hidden": 9, "lr": 0.1}).digest != digest
        assert Configuration("mnist", {"hidden": 8, "lr": 0.1}).digest != digest

    @pytest.mark.parametrize(
        ("tables", "text"),
        [
            ({"grids": {}}, "unknown key 'grids'; known: sweep, grid, runs"),
            ({"sweep": {"epoch": 1}}, "[sweep]: unknown key 'epoch'; known: data, epochs"),
            ({"grid": {"rate": [1]}}, "[grid]: unknown key 'rate'; known: lr, hidden, batch_size"),
            ({"runs": [{"rate": 1}]}, "[[runs]]: unknown key 'rate'; known: lr"),
            ({"grid": {"lr": 0.1}}, "[grid] lr must be a list of values, got 0.1"),
            ({"runs": {"lr": 1}}, "runs must be tables, each headed [[runs]]"),
            ({"sweep": {"data": "cifar"}}, "data is digits or mnist, got 'cifar'"),
            ({}, "no configuration; write a [grid] or [[runs]]"),
            ([], "expected tables, got list"),
            ("{", "Expecting property name"),
        ],
    )
    def test_errors(self, config, capsys, tables, text):
        assert main(["sweep", "--config", config(tables)]) == 1
        error = capsys.readouterr().err
        assert text in error
        assert error.count("\n") == 1

    @pytest.mark.parametrize("size", ["0", "x", "5 parsec", "-1"])
    def test_sizes(self, capsys, size):
        with pytest.raises(SystemExit):
            main(["sweep", "--config", "x", f"--memory={size}"])
        assert "expected a size such as 500MB or 2GiB" in capsys.readouterr().err

    def test_the_estimate_grows_with_what_is_kept(self, digits):
        def of(**options):
            return estimate_bytes(digits, job.Options(**options))

        assert of(hidden=512) > of(hidden=64)
        assert of(optimizer="adam") > of(optimizer="momentum") > of(optimizer="sgd")
        assert of(batch=4096) > of(batch=32)
        # 784-256-10 has 203,530 parameters; with gradients and two buffers of Adam 3.3 MB.
        assert of(hidden=256, optimizer="adam") > 4 * 4 * (65 * 256 + 257 * 10)


class TestSweeps:
    def test_results_equal_single_trainings(self, config, capsys, digits):
        code, results, _ = sweep(capsys, "--config", config(TWO), "--workers", "3")
        assert code == 0
        assert [result["state"] for result in results] == ["completed"] * 3
        accuracies = [result["accuracy"] for result in results]
        assert accuracies == sorted(accuracies, reverse=True)
        for result in results:
            settings = Configuration("digits", result["configuration"])
            alone = job.train(digits, settings.options())
            assert [epoch["loss"] for epoch in result["epochs"]] == [e.loss for e in alone.epochs]

    def test_files(self, config, capsys, tmp_path):
        out = tmp_path / "out"
        _, results, _ = sweep(capsys, "--config", config(TWO), "--out", str(out))
        assert json.loads((out / "results.json").read_text()) == results
        files = {path.name for path in out.iterdir()}
        assert files == {"results.json", *(f"{result['digest']}.json" for result in results)}
        for result in results:
            assert json.loads((out / f"{result['digest']}.json").read_text()) == result

    def test_a_failure_is_a_row(self, config, capsys, tmp_path):
        runs = [{"hidden": 8}, {"hidden": 0}, {"hidden": 8, "optimizer": "magic"}, {"lr": "much"}]
        path = config({"sweep": {"epochs": 1}, "runs": runs})
        code, results, told = sweep(capsys, "--config", path, "--out", str(tmp_path / "out"))
        assert code == 1
        assert [result["state"] for result in results] == ["completed"] + ["failed"] * 3
        assert "ValueError: train: hidden must be at least 1, got 0" in told
        assert "optimizer is one of sgd, momentum, adam; got 'magic'" in told

    def test_what_exceeds_the_budget_fails_alone(self, config, capsys):
        path = config({"sweep": {"epochs": 1}, "grid": {"hidden": [8, 4096]}})
        code, results, told = sweep(capsys, "--config", path, "--memory", "200KiB")
        assert code == 1
        assert [result["state"] for result in results] == ["completed", "failed"]
        assert "the scheduler has 204800" in told

    def test_for_people(self, config, capsys):
        assert main(["sweep", "--config", config(TWO), "--memory", "1GB"]) == 0
        out = capsys.readouterr().out
        assert "3 configurations on digits, memory: 953.7 MiB" in out
        assert "hidden 16: loss " in out
        assert "lr 0.3, hidden 8" in out

    def test_a_picture(self, config, capsys, tmp_path):
        pytest.importorskip("matplotlib")
        target = tmp_path / "sweep.png"
        assert main(["sweep", "--config", config(TWO), "--plot", str(target)]) == 0
        assert target.read_bytes().startswith(b"\x89PNG")

    @pytest.mark.parametrize("name", ["trace.json", "trace.svg"])
    def test_a_timeline(self, config, capsys, tmp_path, name):
        target = tmp_path / name
        code, rows, _ = sweep(capsys, "--config", config(TWO), "--trace", str(target))
        assert code == 0
        text = target.read_text()
        assert all(row["name"] in text for row in rows)

    def test_a_timeline_without_a_place(self, config, capsys, tmp_path):
        target = str(tmp_path / "no" / "trace.json")
        assert main(["sweep", "--config", config(TWO), "--trace", target]) == 1
        assert "--trace" in capsys.readouterr().err

    def test_the_example(self, capsys):
        example = os.path.join(os.path.dirname(__file__), "..", "examples", "sweep.toml")
        assert len(read_configurations(example)) == 10


class TestResuming:
    def test_completed_results_are_taken_over(self, config, capsys, tmp_path):
        out = str(tmp_path / "out")
        first = sweep(capsys, "--config", config(TWO), "--out", out)[1]
        wider = {**TWO, "grid": {"hidden": [8, 16, 24]}}
        second, told = sweep(capsys, "--config", config(wider), "--out", out)[1:]
        assert told.count("taken over") == 3
        by_digest = {result["digest"]: result for result in second}
        assert len(by_digest) == 4
        for result in first:
            assert by_digest[result["digest"]]["epochs"] == result["epochs"]

    @pytest.mark.parametrize("damage", ["{", "{}", '{"state": "completed"}', "[]"])
    def test_damaged_results_are_trained_again(self, config, capsys, tmp_path, damage):
        out = tmp_path / "out"
        first = sweep(capsys, "--config", config(TWO), "--out", str(out))[1]
        (out / f"{first[0]['digest']}.json").write_text(damage)
        second, told = sweep(capsys, "--config", config(TWO), "--out", str(out))[1:]
        assert told.count("taken over") == 2
        assert [result["epochs"][0]["loss"] for result in second] == [
            result["epochs"][0]["loss"] for result in first
        ]

    def test_failures_are_tried_again(self, digits, tmp_path, monkeypatch):
        configurations = [Configuration("digits", {"hidden": 8, "epochs": 1})]
        with monkeypatch.context() as patched:

            def fail(*_):
                raise MemoryError("full")

            patched.setattr(job, "train", fail)
            (row,) = Sweep(configurations, digits, tmp_path).run()
        assert (row.state, row.error) == ("failed", "MemoryError: full")
        (row,) = Sweep(configurations, digits, tmp_path).run()
        assert (row.state, row.error, row.resumed) == ("completed", None, False)

    @pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
    def test_after_a_kill(self, config, capsys, tmp_path):
        out = tmp_path / "out"
        grid = {"sweep": {"epochs": 40}, "grid": {"hidden": [64], "seed": list(range(40))}}
        path = config(grid)
        command = [sys.executable, "-m", "tilewright", "sweep", "--config", path, "--out", str(out)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while len(list(out.glob("*.json"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
        held = {file.name: json.loads(file.read_text()) for file in out.glob("*.json")}
        held.pop("results.json", None)
        assert 2 <= len(held) < 40
        code, results, told = sweep(capsys, "--config", path, "--out", str(out))
        assert code == 0
        assert told.count("taken over") == len(held)
        assert len(results) == 40
        for result in results:
            assert held.get(f"{result['digest']}.json", result)["epochs"] == result["epochs"]
