"""The examples run as they stand, with small arguments and data made here."""

import os
import subprocess
import sys

import pytest
from cases.mnist import NAMES, idx
from checkout import ROOT

EXAMPLES = ROOT / "examples"
ARGUMENTS = {
    "digits": [],
    "sine": ["--steps", "400", "--plot", "sine.png"],
    "mnist_mlp": ["--epochs", "1", "--images", "200"],
    "mnist_cnn": ["--epochs", "1", "--images", "200"],
    "char_lstm": ["--steps", "2", "--hidden", "16", "--sample", "20"],
    "gpt": ["--steps", "2"],
}
TELLS = {
    "digits": "test accuracy 9",
    "sine": "step 400: loss",
    "mnist_mlp": "epoch 1: test accuracy",
    "mnist_cnn": "epoch 1: loss",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small files with the names of MNIST's, and a short text."""
    folder = tmp_path_factory.mktemp("data")
    for name, (split, kind) in NAMES.items():
        count = (200, 50)[split]
        sizes = (count, 28, 28) if kind == "images" else (count,)
        (folder / name).write_bytes(idx(sizes))
    lines = ["to be, or not to be, that is the question:", "whether tis nobler in the mind"]
    (folder / "input.txt").write_text("\n".join(lines * 10), encoding="utf-8")
    return folder


def test_all_are_listed():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(ARGUMENTS)
    assert all(len(path.read_text().splitlines()) <= 60 for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_example_runs(name, folder, tmp_path):
    if name == "sine":
        pytest.importorskip("matplotlib")
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *ARGUMENTS[name]]
    environment = {**os.environ, "TILEWRIGHT_DATA": str(folder)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert TELLS.get(name, "") in done.stdout
    assert done.stdout.strip()
    assert (tmp_path / "sine.png").exists() == (name == "sine")
