"""What all tests share: one printed seed, and every instruction set as a parameter."""

from __future__ import annotations

import gc
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

# Before the first import: a table of `tilewright tune` would change kernels and orders of addition.
os.environ["TILEWRIGHT_TUNE"] = "0"

import emulator

if emulator.is_wanted():
    os.environ.update(emulator.variables())

import tilewright as tw


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=20240229, help="seed of all random test data")
    parser.addoption("--programs", type=int, default=3000, help="how many random programs to run")
    parser.addoption("--gpu-programs", type=int, default=24, help="how many of them on the GPU")
    parser.addoption("--program-seed", type=int, default=None, help="one random program to run")


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [
        f"tilewright: {tw.__file__}",
        f"seed: {config.getoption('--seed')} (change with --seed); "
        f"instruction sets: {', '.join(tw.kernels.isas())}",
    ]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Millions of objects describe the tests: garbage collections leave them alone."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> list[int]:
    """Differs between tests and depends on nothing but --seed and the test's name."""
    value = [request.config.getoption("--seed"), zlib.crc32(request.node.nodeid.encode())]
    print(f"seed: {value}")  # pytest shows it when the test fails
    return value


@pytest.fixture
def rng(seed: list[int]) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(autouse=True)
def _seeded_engine(request: pytest.FixtureRequest) -> None:
    tw.manual_seed(request.config.getoption("--seed"))


@pytest.fixture(params=tw.kernels.isas())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the test once on each instruction set that this machine has."""
    with tw.kernels.use(isa=request.param):
        yield request.param


@pytest.fixture
def threads() -> Iterator[None]:
    """Puts the number of threads back afterwards."""
    before = tw.get_num_threads()
    yield
    tw.set_num_threads(before)


@pytest.fixture
def tuning_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: None) -> Iterator[Path]:
    """A cache folder of its own, and the default tuning before and after."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    tw.tune.reset()
    yield tmp_path / "cache"
    tw.tune.reset()
