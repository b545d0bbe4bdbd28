"""Every model of `tilewright train` on the GPU: the CPU's losses; trainings that change sides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

import tilewright as tw
from tilewright import train as job
from tilewright.cli import main

pytestmark = [
    pytest.mark.tier("all"),
    pytest.mark.skipif(not tw.cuda.is_available(), reason=f"no GPU: {tw.cuda.why_unavailable()}"),
]

PROSE = "the quick brown fox jumps over the lazy dog and runs on. " * 8


def images(name: str, side: int, count: int) -> job.Task:
    """Bright bars whose place is the label."""
    labels = tw.arange(count) % 10
    rows = tw.zeros((count, side * side))
    for i in range(count):
        rows[i, i % 10 * side // 2 : i % 10 * side // 2 + side] = 1.0
    half = count // 2
    return job.Task(name, rows[:half], labels[:half], rows[half:], labels[half:])


SMALL = {"epochs": 2, "batch": 8, "hidden": 8}
TRAININGS = {
    "digits mlp": (lambda: images("digits", 8, 32), SMALL),
    "digits cnn": (lambda: images("digits", 8, 16), SMALL),
    "mnist mlp": (lambda: images("mnist", 28, 32), SMALL),
    "mnist cnn": (lambda: images("mnist", 28, 8), {**SMALL, "batch": 2}),
    "shakespeare lstm": (lambda: job.Text(PROSE), {**SMALL, "length": 12, "layers": 2}),
    "shakespeare gpt": (lambda: job.Text(PROSE), {**SMALL, "length": 12, "layers": 1}),
    "sine mlp": (job.Sine, {"epochs": 1, "batch": 128, "hidden": 8}),
}


def options(name: str, device: str, **changes) -> job.Options:
    task, model = name.split()
    own = job.default_options(task, model)
    return replace(own, **{**TRAININGS[name][1], "device": device, **changes})


class StopError(Exception):
    pass


def stop_after(count: int):
    def tell(progress) -> None:
        nonlocal count
        count -= 1
        if count == 0:
            raise StopError

    return tell


@pytest.mark.parametrize("name", TRAININGS)
def test_each_model_has_the_losses_of_the_cpu(name):
    task = TRAININGS[name][0]()
    here, there = (job.train(task, options(name, device)) for device in ("cpu", "cuda"))
    assert there.batch_losses[0] == pytest.approx(here.batch_losses[0], rel=1e-5)
    assert list(there.batch_losses) == pytest.approx(list(here.batch_losses), rel=2e-3)
    assert {p.device for p in there.model.parameters()} == {"cuda:0"}


@pytest.mark.parametrize("name", TRAININGS)
@pytest.mark.parametrize("way", [("cpu", "cuda"), ("cuda", "cpu")], ids="to".join)
def test_a_training_goes_on_on_the_other_device(name, way, tmp_path):
    task, path = TRAININGS[name][0](), tmp_path / "training.safetensors"
    first, second = way
    whole = job.train(task, options(name, second))
    kept = job.Checkpoint(path, every_seconds=1e-9)
    with pytest.raises(StopError):
        job.train(task, options(name, first), stop_after(2), checkpoint=kept)
    run = job.train(task, options(name, second), checkpoint=job.Checkpoint(path, resume=True))
    assert len(run.batch_losses) == len(whole.batch_losses)
    assert list(run.batch_losses) == pytest.approx(list(whole.batch_losses), rel=2e-3)
    assert {p.device.partition(":")[0] for p in run.model.parameters()} == {second}
    states = run.model.state_dict()
    fresh = task.build(options(name, first)).to(first)
    fresh.load_state_dict(states)
    for key, value in fresh.state_dict().items():
        assert value.to("cpu").tolist() == states[key].to("cpu").tolist()


@pytest.mark.parametrize("model", ["lstm", "gpt"])
def test_a_model_writes_the_same_text_on_both_devices(model):
    task = job.Text(PROSE)
    trained = task.build(options(f"shakespeare {model}", "cpu"))
    texts = [task.sample(trained.to(device), 10) for device in ("cpu", "cuda")]
    assert texts[0] == texts[1]


def test_the_command_trains_there(capsys, tmp_path):
    path = str(tmp_path / "sine.safetensors")
    small = ["--hidden", "8", "--batch", "256", "--checkpoint", path, "--json"]
    assert main(["train", "sine", "--epochs", "1", "--device", "cuda", *small]) == 0
    told = json.loads(capsys.readouterr().out)["runs"][0]
    assert told["options"]["device"] == "cuda"
    again = ["--resume", "--epochs", "2", "--device", "cpu", "--checkpoint", path, "--json"]
    assert main(["train", "sine", *again]) == 0
    told = json.loads(capsys.readouterr().out)["runs"][0]
    assert (told["options"]["device"], len(told["epochs"])) == ("cpu", 2)


def test_devices_that_are_not_there(capsys):
    count = tw.cuda.device_count()
    assert main(["train", "sine", "--epochs", "1", "--device", f"cuda:{count}"]) != 0
    assert f"no device 'cuda:{count}'" in capsys.readouterr().err


def test_without_a_driver_a_line_says_what_is_missing():
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", "train", "sine", "--device", "cuda"],
        env={**os.environ, "TILEWRIGHT_CUDA_DRIVER": "/nowhere/libcuda.so.1"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "the CUDA driver (libcuda.so.1) is not there; a GPU needs NVIDIA's driver" in done.stderr
    assert "Traceback" not in done.stderr
