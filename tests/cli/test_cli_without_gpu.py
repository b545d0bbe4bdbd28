"""Commands that are asked for a GPU on a machine that has none."""

import os
import subprocess
import sys

import pytest

from tilewright.cli.commands import build_parser

# What each command that takes --device needs beside it.
NEEDED = {"explain": ["matmul", "8x8x8"], "train": ["sine", "--epochs", "1"], "tune": []}


def test_every_command_with_a_device_is_here():
    (commands,) = build_parser()._subparsers._group_actions
    named = {
        name
        for name, command in commands.choices.items()
        if "--device" in command._option_string_actions
    }
    assert named == set(NEEDED)


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
@pytest.mark.parametrize("command", NEEDED)
def test_a_missing_gpu_is_one_line(command, device, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", command, *NEEDED[command], "--device", device],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            **os.environ,
            "TILEWRIGHT_CUDA_DRIVER": str(tmp_path / "none.so"),
            "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
        },
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"tilewright {command}: --device {device}: ")
    assert "driver" in line
    assert not os.listdir(tmp_path)
