"""`tilewright sweep`: configurations, results, going on after a kill, failures beside successes."""

import json
import math
import signal
import subprocess
import sys
import time

import pytest
from checkout import ROOT

from tilewright import train as job
from tilewright.cli import main
from tilewright.cli.picture_sweep import sweep_figure
from tilewright.train.sweep import (
    Configuration,
    Row,
    Sweep,
    earlier_records,
    estimate_bytes,
    read_configurations,
)
from tilewright.train.sweep_file import _json_lines

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
            ({"grid": {"lr": []}}, "[grid] lr must have one value or more, got []"),
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

    @pytest.mark.parametrize(
        ("key", "value", "text"),
        [
            ("lr", "much", "lr must be a number, got 'much'"),
            ("lr", 0, "lr must be a finite number above 0, got 0"),
            ("lr", -0.1, "lr must be a finite number above 0, got -0.1"),
            ("lr", math.nan, "lr must be a finite number above 0, got nan"),
            ("lr", math.inf, "lr must be a finite number above 0, got inf"),
            ("lr", True, "lr must be a number, got True"),
            ("hidden", 0, "hidden must be at least 1, got 0"),
            ("hidden", 2.5, "hidden must be a whole number, got 2.5"),
            ("hidden", 2**31, "hidden must be at most 2147483647"),
            ("batch_size", -4, "batch_size must be at least 1, got -4"),
            ("batch_size", [8], r"batch_size must be a whole number, got \[8\]"),
            ("epochs", True, "epochs must be a whole number, got True"),
            ("seed", -1, "seed must be at least 0, got -1"),
            ("seed", 2**64, "seed must be at most 18446744073709551615"),
            ("optimizer", "magic", "optimizer is one of sgd, momentum, adam, adamw; got 'magic'"),
            ("optimizer", 3, "optimizer is one of sgd, momentum, adam, adamw; got 3"),
        ],
    )
    def test_values_are_refused_with_file_line_and_key(self, config, key, value, text):
        good = {"lr": 0.1, "optimizer": "sgd"}.get(key, 8)
        written = json.dumps(value)
        path = config(f'{{"runs": [{{"{key}": {json.dumps(good)}}},\n{{\n"{key}": {written}}}]}}')
        with pytest.raises(ValueError, match=rf"^{path}:3: \[\[runs\]\] {key}: {text}"):
            read_configurations(path)
        grid = config(json.dumps({"grid": {key: [good, value]}}, indent=1), "grid.json")
        with pytest.raises(ValueError, match=rf"^{grid}:\d+: \[grid\] {key}: {text}"):
            read_configurations(grid)

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="no tomllib before Python 3.11")
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("[sweep]\nepochs = 0\n[[runs]]\n", r":2: \[sweep\] epochs: epochs must be at least 1"),
            ("[sweep]\ndata = 'cifar'\n", r":2: \[sweep\] data is digits or mnist"),
            ("# note\n[grid]\nlr = [1.0, -1.0]\n", r":3: \[grid\] lr: lr must be a finite"),
            ("grid.lr = [0.1]\ngrid.seed = ['a']\n", r":2: \[grid\] seed: seed must be a whole"),
            ("[[runs]]\nlr = 1\n\n[[runs]]\n\nlr = nan\n", r":6: \[\[runs\]\] lr: lr must be"),
            ("runs = [{lr = 1},\n{lr = 'x'}]", r":1: \[\[runs\]\] lr: lr must be a number"),
            ("[grid]\nrate = [1]\n", r":2: \[grid\]: unknown key 'rate'"),
            ("\n[[runs]]\n'rate' = 1\n", r":3: \[\[runs\]\]: unknown key 'rate'"),
            ("a = 1\n[sweep]\n", r":1: unknown key 'a'; known: sweep, grid, runs"),
            ("[grid]\nlr = 0.1\n", r":2: \[grid\] lr must be a list of values, got 0.1"),
            ("grid = 3\n", ":1: grid must be a table, got 3"),
        ],
    )
    def test_lines_of_toml(self, config, text, expected):
        path = config(text, "sweep.toml")
        with pytest.raises(ValueError, match=f"^{path}{expected}"):
            read_configurations(path)

    def test_lines_of_json(self, config):
        text = """{
          "sweep": {"epochs": 1, "data": "digits"},
          "grid": {"hidden": [8,
                              [], 16, "\\\\", {"a": [1, {"b": 2}]},
                              0]},
          "runs": [{}, {"lr": 1},
                   {"seed": 3,
                    "lr": {"x": 1}}]
        }"""
        lines = dict(_json_lines(text))
        expected = {
            ("sweep",): 2, ("sweep", "epochs"): 2, ("sweep", "data"): 2, ("grid",): 3,
            ("grid", "hidden"): 3, ("grid", "hidden", 0): 3, ("grid", "hidden", 1): 4,
            ("grid", "hidden", 2): 4, ("grid", "hidden", 3): 4, ("grid", "hidden", 4): 4,
            ("grid", "hidden", 4, "a"): 4, ("grid", "hidden", 4, "a", 0): 4,
            ("grid", "hidden", 4, "a", 1): 4, ("grid", "hidden", 4, "a", 1, "b"): 4,
            ("grid", "hidden", 5): 5, ("runs",): 6, ("runs", 0): 6, ("runs", 1): 6,
            ("runs", 1, "lr"): 6, ("runs", 2): 7, ("runs", 2, "seed"): 7, ("runs", 2, "lr"): 8,
            ("runs", 2, "lr", "x"): 8,
        }  # fmt: skip
        assert lines == expected

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

    def test_a_failure_is_a_row(self, config, capsys, tmp_path, monkeypatch):
        train = job.train

        def sometimes(task, options, *callbacks):
            if options.hidden == 9:
                raise ValueError("nine is refused")
            return train(task, options, *callbacks)

        monkeypatch.setattr(job, "train", sometimes)
        path = config({"sweep": {"epochs": 1}, "grid": {"hidden": [8, 9]}})
        code, results, _ = sweep(capsys, "--config", path, "--out", str(tmp_path / "out"))
        assert code == 1
        assert [result["state"] for result in results] == ["completed", "failed"]
        assert results[1]["error"] == "ValueError: nine is refused"

    def test_what_exceeds_the_budget_fails_alone(self, config, capsys):
        path = config({"sweep": {"epochs": 1}, "grid": {"hidden": [8, 4096]}})
        code, results, told = sweep(capsys, "--config", path, "--memory", "200KiB")
        assert code == 1
        assert [result["state"] for result in results] == ["completed", "failed"]
        assert "the scheduler has 204800" in told
        assert "the scheduler has 204800" in results[1]["error"]

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

    def test_the_picture_ranks_the_runs_and_shows_each_setting(self, digits):
        settings = [
            {"lr": lr, "hidden": hidden, "seed": seed, "epochs": 1}
            for lr in (0.01, 0.1)
            for hidden in (4, 8)
            for seed in range(12)
        ]
        rows = [Row(Configuration("digits", each), f"run {i}") for i, each in enumerate(settings)]
        for i, row in enumerate(rows):
            row.epochs = [{"loss": 1.0, "accuracy": 0.5 + i / 100}]
        rows.append(Row(Configuration("digits", {"lr": 9.0}), "failed"))
        figure = sweep_figure(rows)
        assert "48 runs, 1 without a result; best 97.00 % with run 47" in figure.get_suptitle()
        ranking, *panels = figure.axes
        labels = [label.get_text() for label in ranking.get_yticklabels()]
        assert labels[0] == "run 47"
        assert labels[19:22] == ["run 28", "... 22 runs between ...", "run 5"]
        assert labels[-1] == "run 0"
        drawn = [x for line in ranking.get_lines()[:3] for x in line.get_xdata()]
        assert sorted(drawn) == pytest.approx([50 + i for i in range(48)])
        assert [axes.get_title(loc="left") for axes in panels] == ["lr", "hidden", "seed"]
        for axes in panels:
            assert sum(len(line.get_ydata()) for line in axes.get_lines()) == 48
        lr = panels[0]
        assert [label.get_text() for label in lr.get_xticklabels()] == ["0.01", "0.1"]
        medians = [float(c.get_segments()[0][0][1]) for c in lr.collections]
        assert medians == pytest.approx([61.5, 85.5])
        assert lr.get_yticklabels()[0].get_text().endswith(" %")

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
        example = ROOT / "examples" / "sweep.toml"
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

    def test_the_timeline_of_a_resumed_sweep_has_all_runs(self, config, capsys, tmp_path):
        out, trace = str(tmp_path / "out"), tmp_path / "trace.json"
        sweep(capsys, "--config", config(TWO), "--out", out)
        wider = {**TWO, "grid": {"hidden": [8, 16, 24]}}
        for states in (["earlier"] * 3 + ["completed"], ["earlier"] * 4):
            sweep(capsys, "--config", config(wider), "--out", out, "--trace", str(trace))
            events = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
            assert sorted(event["cat"] for event in events) == sorted(states)
            assert all(event["ts"] >= 0 and event["dur"] > 0 for event in events)
        ends = {}
        for event in sorted(events, key=lambda event: event["ts"]):  # none over another
            assert event["ts"] >= ends.get(event["tid"], 0)
            ends[event["tid"]] = event["ts"] + event["dur"]
        picture = tmp_path / "trace.svg"
        sweep(capsys, "--config", config(wider), "--out", out, "--trace", str(picture))
        assert "hidden 24" in picture.read_text()

    def test_results_without_times_stand_one_after_another(self, digits):
        rows = [Row(Configuration("digits", {"seed": i}), f"run {i}") for i in range(3)]
        for row in rows:
            row.resumed, row.state, row.seconds = True, "completed", 2.0
            row.epochs = [{"loss": 1.0, "accuracy": 0.5}]
        spans = [(r["started_ns"], r["ended_ns"]) for r in earlier_records(rows)]
        assert spans == [(0, 2 * 10**9), (2 * 10**9, 4 * 10**9), (4 * 10**9, 6 * 10**9)]

    @pytest.mark.parametrize(
        "change",
        [
            {"epochs": []},
            {"epochs": [{"loss": "x", "accuracy": 0.5}]},
            {"epochs": [{"loss": 0.5, "accuracy": 7}]},
            {"seconds": "long"},
            {"estimate_bytes": None},
        ],
    )
    def test_results_of_another_form_are_trained_again(self, config, capsys, tmp_path, change):
        out = tmp_path / "out"
        path = config({"sweep": {"epochs": 1}, "runs": [{"hidden": 4}]})
        (first,) = sweep(capsys, "--config", path, "--out", str(out))[1]
        (out / f"{first['digest']}.json").write_text(json.dumps({**first, **change}))
        second, told = sweep(capsys, "--config", path, "--out", str(out))[1:]
        assert "taken over" not in told
        assert second[0]["epochs"][0]["loss"] == first["epochs"][0]["loss"]

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
