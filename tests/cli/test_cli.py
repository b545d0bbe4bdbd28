"""The command line: results, JSON, exit codes, and errors in one line."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright as tw
from tilewright import train as job
from tilewright.bench import memory, scheduler
from tilewright.cli import main
from tilewright.data.mnist import missing_files

QUICK = ["train", "digits", "--epochs", "2", "--hidden", "16"]


def run_json(capsys, *arguments):
    """Exit code and what --json printed."""
    code = main([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def real_mnist():
    """The folder of the real files, where this machine has them."""
    for folder in (os.environ.get("TILEWRIGHT_DATA"), "../shared/data"):
        if folder and not missing_files(Path(folder)):
            return folder
    pytest.skip("no MNIST here: set TILEWRIGHT_DATA to the folder of its files")


@pytest.fixture(autouse=True)
def keep_threads():
    before = tw.get_num_threads()
    yield
    tw.set_num_threads(before)


class TestTrain:
    def test_digits_reach_their_accuracy(self, capsys):
        code, results = run_json(capsys, "train", "digits")
        assert code == 0
        (run,) = results["runs"]
        assert len(run["epochs"]) == 50
        assert run["accuracy"] >= 0.95

    def test_mnist_learns(self, capsys):
        folder = real_mnist()
        code, results = run_json(capsys, "train", "mnist", "--data", folder, "--epochs", "1")
        assert code == 0
        # After one epoch; three give the 95 % that docs/ladder.md states.
        assert results["runs"][0]["accuracy"] >= 0.90

    def test_the_same_seed_gives_the_same_losses(self, capsys):
        runs = [run_json(capsys, *QUICK, "--seed", "5")[1]["runs"][0] for _ in range(2)]
        losses = [[epoch["loss"] for epoch in run["epochs"]] for run in runs]
        assert losses[0] == losses[1]

    def test_output_for_people(self, capsys):
        assert main(QUICK) == 0
        out = capsys.readouterr().out
        assert "digits: 64-16-10, 1,437 training and 360 test images" in out
        assert "epoch  2/2" in out
        assert "images/s" in out

    @pytest.mark.parametrize("optimizer", list(job.LEARNING_RATES))
    def test_optimizers_learn(self, capsys, optimizer):
        _, results = run_json(capsys, *QUICK, "--optimizer", optimizer)
        losses = [epoch["loss"] for epoch in results["runs"][0]["epochs"]]
        assert losses[1] < losses[0]

    def test_the_ladder_agrees_on_every_rung(self, capsys):
        code, results = run_json(capsys, *QUICK, "--ladder")
        assert code == 0
        runs = [run for run in results["runs"] if run["epochs"]]
        names = [run["options"]["kernel"] for run in results["runs"]]
        assert names == [*tw.kernels.names("matmul"), "auto"]
        assert len(runs) >= 2
        accuracies = [run["accuracy"] for run in runs]
        # Rounding differs between rungs; 0.01 is three of the 360 test images.
        assert max(accuracies) - min(accuracies) <= 0.01

    def test_a_refused_rung_is_a_row_not_an_end(self, monkeypatch):
        def refuse(task, options, *callbacks):
            raise ValueError("direct: too large")

        monkeypatch.setattr(job.loop, "train", refuse)
        runs = job.ladder(empty_task(), job.Options())
        assert all(run.error == "direct: too large" for run in runs)

    def test_a_forced_kernel(self, capsys):
        kernel = tw.kernels.names("matmul")[0]
        _, results = run_json(capsys, *QUICK, "--kernel", kernel)
        assert results["runs"][0]["options"]["kernel"] == kernel

    def test_json_to_a_file(self, tmp_path, capsys):
        target = tmp_path / "run.json"
        assert main([*QUICK, "--json", str(target)]) == 0
        assert json.loads(target.read_text())["runs"][0]["task"] == "digits"
        assert "epoch" in capsys.readouterr().out

    def test_a_picture(self, tmp_path, capsys):
        pytest.importorskip("matplotlib")
        target = tmp_path / "ladder.png"
        assert main([*QUICK, "--plot", str(target)]) == 0
        assert target.read_bytes().startswith(b"\x89PNG")

    def test_a_picture_without_matplotlib_fails_before_the_work(self, monkeypatch, capsys):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        assert main([*QUICK, "--plot", "x.png"]) == 1
        captured = capsys.readouterr()
        assert "pip install 'tilewright[plot]'" in captured.err
        assert captured.out == ""

    def test_an_unknown_picture_format(self, capsys):
        pytest.importorskip("matplotlib")
        assert main([*QUICK, "--plot", "x.docx"]) == 1
        assert "no picture format 'docx'" in capsys.readouterr().err

    @pytest.mark.parametrize("command", [QUICK, ["bench", "overhead", "--peers", "numpy"]])
    @pytest.mark.parametrize("option", ["--json", "--plot"])
    def test_a_missing_folder_fails_before_the_work(self, tmp_path, capsys, command, option):
        if option == "--plot":
            pytest.importorskip("matplotlib")
        target = tmp_path / "nowhere" / "x.png"
        assert main([*command, option, str(target)]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert f"{option}: cannot write {target}" in captured.err
        assert f"create the folder {target.parent} first" in captured.err
        assert captured.err.count("\n") == 1

    def test_a_folder_is_no_file(self, tmp_path, capsys):
        assert main([*QUICK, "--json", str(tmp_path)]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert f"--json: cannot write {tmp_path}" in captured.err

    def test_a_later_failure_leaves_the_named_file_as_it_was(self, tmp_path, capsys):
        fresh, held = tmp_path / "fresh.json", tmp_path / "held.json"
        held.write_text("old")
        for target in (fresh, held):
            command = ["train", "mnist", "--data", str(tmp_path), "--json", str(target)]
            assert main(command) == 1
        assert "no train-images" in capsys.readouterr().err
        assert not fresh.exists()
        assert held.read_text() == "old"

    def test_missing_data(self, tmp_path, capsys):
        assert main(["train", "mnist", "--data", str(tmp_path)]) == 1
        error = capsys.readouterr().err
        assert "no train-images-idx3-ubyte[.gz]" in error
        assert error.count("\n") == 1

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (["train"], "required: task"),
            (["train", "cifar"], "invalid choice: 'cifar'"),
            (["train", "digits", "--epochs", "0"], "at least 1, got '0'"),
            (["train", "digits", "--lr", "-1"], "above 0, got '-1'"),
            (["train", "digits", "--lr", "nan"], "above 0, got 'nan'"),
            (["train", "digits", "--lr", "inf"], "above 0, got 'inf'"),
            (["train", "digits", "--lr", "x"], "above 0, got 'x'"),
            (["train", "digits", "--seed", "-1"], "whole number of at least 0, got '-1'"),
            (["train", "digits", "--seed", "x"], "whole number of at least 0, got 'x'"),
            (["train", "digits", "--seed", "1.5"], "whole number of at least 0, got '1.5'"),
            (["train", "digits", "--seed", str(2**64)], f"at most {2**64 - 1}, got '{2**64}'"),
            (["train", "digits", "--epochs", "9" * 30], "whole number of at most"),
            (["train", "digits", "--hidden", "9" * 5000], "whole number of at least 1"),
            (["train", "digits", "--threads", "0"], "at least 1, got '0'"),
            (["info", "--threads", "1025"], "at most 1024, got '1025'"),
            (["sweep", "--config", "x", "--memory", "9" * 30], "no machine has that much memory"),
            (["sweep", "--config", "x", "--workers", "-2"], "at least 1, got '-2'"),
            (["tune", "--seconds", "-1"], "above 0, got '-1'"),
            (["train", "digits", "--kernel", "magic"], "invalid choice: 'magic'"),
            (["train", "digits", "--kernel", "auto", "--ladder"], "not allowed with"),
            (["explain", "matmul", "12y"], "expected sizes of at least 1, such as 512x512"),
            (["explain", "matmul", "0x0x0"], "sizes of at least 1, such as 512x512, got '0x0x0'"),
            (["explain", "matmul", "4xx4"], "sizes of at least 1"),
            (["explain", "matmul", "99999999999999999999x1x1"], "no memory holds a tensor"),
            (["explain", "exp", "9" * 5000], "no memory holds a tensor"),
            (["bench", "matmul", "--peers", "excel"], "no peer 'excel'"),
            (["bench", "matmul", "--sizes", "16,x"], "at least 1, got 'x'"),
            ([], "required: COMMAND"),
        ],
    )
    def test_wrong_usage(self, capsys, arguments, text):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
        assert text in capsys.readouterr().err


def empty_task():
    return job.Task("digits", *[tw.zeros((1, 1))] * 4)


class TestInfo:
    def test_facts(self, capsys):
        code, facts = run_json(capsys, "info")
        assert code == 0
        assert facts["version"] == tw.__version__
        assert facts["kernels"]["matmul"] == list(tw.kernels.names("matmul"))
        assert facts["threads"] >= 1

    def test_measured_facts(self, capsys):
        _, facts = run_json(capsys, "info", "--measure", "--threads", "1")
        assert facts["threads"] == 1
        assert facts["matmul_flops_per_s"] > 0
        assert facts["bandwidth_bytes_per_s"] > 0

    def test_for_people(self, capsys):
        assert main(["info"]) == 0
        out = capsys.readouterr().out
        assert "instruction set" in out
        assert "matmul" in out


class TestExplain:
    @pytest.mark.parametrize(
        "extra", [[], ["--transpose-a"], ["--transpose-b", "--dtype", "float64"]]
    )
    def test_matmul(self, capsys, extra):
        assert main(["explain", "matmul", "32x16x8", *extra]) == 0
        out = capsys.readouterr().out
        assert "matmul" in out

    def test_forced(self, capsys):
        kernel = tw.kernels.names("matmul")[0]
        assert main(["explain", "matmul", "32x16x8", "--kernel", kernel]) == 0
        assert kernel in capsys.readouterr().out

    def test_other_ops(self, capsys):
        for op in ("exp", "add", "sum"):
            assert main(["explain", op, "64x64"]) == 0
            capsys.readouterr()

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (["explain", "matmul", "32x16"], "three sizes MxKxN, got 32x16"),
            (["explain", "frobnicate", "3"], "no op 'frobnicate'"),
            (["explain", "matmul", "4x4x4", "--kernel", "magic"], "magic"),
            (["explain", "exp", "4", "--transpose-a"], "are of matmul, not of exp"),
            (["explain", "save", "3"], "is no op of one or two float32 tensors"),
        ],
    )
    def test_errors(self, capsys, arguments, text):
        assert main(arguments) == 1
        error = capsys.readouterr().err
        assert text in error
        assert error.count("\n") == 1


class TestBench:
    @pytest.fixture(autouse=True)
    def _few(self, monkeypatch):
        """Rows are judged, not times: a hundred blocks and tasks, and a small network."""
        monkeypatch.setattr(memory, "_ALLOCATIONS", 100)
        monkeypatch.setattr(memory, "SIZES", (16, 32, 2))
        monkeypatch.setattr(scheduler, "_SUBMISSIONS", 100)

    @pytest.mark.parametrize(
        "arguments",
        [
            ["matmul", "--sizes", "8,16"],
            ["pointwise", "--sizes", "16"],
            ["ladder", "--sizes", "32"],
            ["overhead"],
            ["loader"],
            ["threads", "--sizes", "32"],
            ["scheduler"],
            ["memory"],
        ],
    )
    def test_rows_have_timings(self, capsys, arguments):
        code, report = run_json(capsys, "bench", *arguments, "--peers", "numpy", "--threads", "1")
        assert code == 0
        assert report["machine"]["threads"] == 1
        assert report["machine"]["isa"]
        for result in report["results"]:
            timing = result["timings"]["tilewright"]
            assert 0 < timing["median_s"] <= timing["p95_s"]


class TestDoctor:
    def test_findings(self, capsys):
        code, report = run_json(capsys, "doctor")
        statuses = {finding["what"]: finding["status"] for finding in report["findings"]}
        assert statuses["engine"] == "ok"
        assert code == ("problem" in statuses.values())

    def test_too_many_threads_are_a_problem(self, capsys):
        tw.set_num_threads(tw._core.cpu_info()["usable_processors"] + 1)
        assert main(["doctor"]) == 1
        assert "TILEWRIGHT_THREADS=" in capsys.readouterr().out


EVERY_COMMAND = [
    ["info"],
    QUICK,
    [*QUICK, "--ladder"],
    ["explain", "matmul", "8x8x8"],
    ["tune", "show"],
    ["bench", "overhead", "--peers", "numpy", "--threads", "1"],
    ["blas"],
    ["doctor"],
]


class TestOutput:
    """Where results go: tables or JSON on standard output, JSON in a file beside the tables."""

    @pytest.mark.parametrize("command", EVERY_COMMAND, ids=" ".join)
    def test_json_takes_the_place_of_the_tables(self, capsys, command):
        if command == ["blas"] and not sys.platform.startswith("linux"):
            pytest.skip("the BLAS library needs Linux")
        assert main(command) == 0
        plain = capsys.readouterr()
        tables = [line for line in plain.out.splitlines() if is_table(line)]
        assert tables or command[0] in ("train", "blas")
        assert main([*command, "--json"]) == 0
        captured = capsys.readouterr()
        json.loads(captured.out)
        told = captured.err.splitlines()
        assert not [line for line in told if is_table(line)]
        if command[0] not in ("train", "bench"):  # those tell how far they are
            assert captured.err == ""

    @pytest.mark.parametrize("command", EVERY_COMMAND, ids=" ".join)
    def test_json_in_a_file_leaves_the_tables_where_they_are(self, capsys, tmp_path, command):
        target = tmp_path / "results.json"
        assert main([*command, "--json", str(target)]) == 0
        captured = capsys.readouterr()
        assert captured.out
        assert captured.err == ""
        json.loads(target.read_text())
        assert os.listdir(tmp_path) == ["results.json"]

    @pytest.mark.parametrize("command", EVERY_COMMAND, ids=" ".join)
    def test_help_says_so(self, capsys, command):
        words = command[:2] if command[0] == "bench" else command[:1]
        with pytest.raises(SystemExit) as caught:
            main([*words, "--help"])
        assert caught.value.code == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "to FILE, beside the tables on standard output; without FILE to" in text

    def test_a_file_that_may_not_be_written(self, capsys, tmp_path, monkeypatch):
        held = tmp_path / "held.json"
        held.write_text("old")
        monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
        assert main(["info", "--json", str(held)]) == 1
        captured = capsys.readouterr()
        assert f"--json: cannot write {held}: Permission denied" in captured.err
        assert captured.out == ""
        assert held.read_text() == "old"

    def test_a_failed_write_leaves_the_old_file(self, capsys, tmp_path, monkeypatch):
        held = tmp_path / "held.json"
        held.write_text("old")

        def fail(_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", fail)
        assert main(["info", "--json", str(held)]) == 1
        assert "No space left on device" in capsys.readouterr().err
        assert held.read_text() == "old"
        assert os.listdir(tmp_path) == ["held.json"]

    def test_a_device(self, capsys):
        assert main(["info", "--json", os.devnull]) == 0


def is_table(line):
    """Two columns or more behind an indent, as tables and no lines of progress have."""
    return line.startswith("  ") and len(line.split("  ")) > 2


class TestProcess:
    @pytest.mark.parametrize("arguments", [["info"], ["info", "--json"]])
    @pytest.mark.parametrize("buffered", [True, False])
    def test_a_full_disk_is_one_line(self, arguments, buffered, monkeypatch):
        if not os.path.exists("/dev/full"):
            pytest.skip("no /dev/full here")
        monkeypatch.setenv("PYTHONUNBUFFERED", "" if buffered else "1")  # empty: as if not set
        with open("/dev/full", "w") as full:
            command = [sys.executable, "-m", "tilewright", *arguments]
            done = subprocess.run(
                command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert done.returncode == 1
        assert done.stderr == "tilewright info: [Errno 28] No space left on device\n"

    @pytest.mark.skipif(not hasattr(signal, "SIGINT"), reason="no SIGINT here")
    @pytest.mark.parametrize(
        "arguments",
        [
            ["train", "digits", "--epochs", "1000000"],
            ["train", "digits", "--epochs", "1000000", "--json"],
            ["sweep", "--config", "sweep.json", "--out", "out"],
            ["tune", "--seconds", "600"],
            [
                "blas",
                "--",
                sys.executable,
                "-c",
                "import time; print(1, flush=True); time.sleep(99)",
            ],
        ],
        ids=lambda arguments: " ".join(arguments[:2]),
    )
    def test_an_interrupt_ends_with_130_and_one_line(self, tmp_path, arguments):
        if arguments[0] == "blas" and not sys.platform.startswith("linux"):
            pytest.skip("the BLAS library needs Linux")
        tables = {"sweep": {"epochs": 10**6}, "grid": {"hidden": [64, 65]}}
        (tmp_path / "sweep.json").write_text(json.dumps(tables))
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "tilewright", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache")},
        )
        try:
            told = process.stderr if "--json" in arguments else process.stdout
            told.readline()  # it has begun
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        # Where the interrupt falls into text that Python compiles (a dataclass being made), CPython
        # ends the process by the signal itself, which shells call 130 as well.
        assert process.returncode in (130, -signal.SIGINT)
        assert err.endswith("tilewright: interrupted\n")
        assert "Traceback" not in out + err
        assert not [path for path in tmp_path.rglob("*") if path.suffix.endswith("tmp")]

    @pytest.mark.skipif(not hasattr(signal, "SIGINT"), reason="no SIGINT here")
    def test_an_interrupt_while_commands_load(self):
        program = (
            "import builtins, sys\n"
            "load = builtins.__import__\n"
            "def interrupted(name, *rest):\n"
            "    if name == 'tilewright.cli.commands': raise KeyboardInterrupt\n"
            "    return load(name, *rest)\n"
            "from tilewright.cli import main\n"
            "builtins.__import__ = interrupted\n"
            "sys.exit(main(['info']))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (130, "tilewright: interrupted\n")

    def test_module_runs_and_plain_text_has_no_escapes(self):
        environment = {**os.environ, "NO_COLOR": "1"}
        command = [sys.executable, "-m", "tilewright", "info"]
        result = subprocess.run(
            command, capture_output=True, text=True, env=environment, check=True
        )
        assert "\x1b" not in result.stdout

    def test_version(self, capsys):
        with pytest.raises(SystemExit) as caught:
            main(["--version"])
        assert caught.value.code == 0
        assert capsys.readouterr().out.strip() == f"tilewright {tw.__version__}"

    def test_a_closed_pipe_is_no_traceback(self):
        command = f"{sys.executable} -m tilewright info | true"
        result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        assert "Traceback" not in result.stderr
