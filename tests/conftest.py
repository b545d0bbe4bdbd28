"""What all tests share: one printed seed, and every instruction set as a parameter."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

# Before the first import: a table of `tilewright tune` would change kernels and orders of addition.
os.environ["TILEWRIGHT_TUNE"] = "0"

# A shell starts jobs in the background with interrupts ignored, which programs under test inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import emulator

if emulator.is_wanted():
    os.environ.update(emulator.variables())

from subcases import seed_of

import tilewright as tw

# Of `make test`, and of `make test-all`: docs/design/testing.md.
TIERS = ("test", "all")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=20240229, help="seed of all random test data")
    parser.addoption("--programs", type=int, default=3000, help="how many random programs to run")
    parser.addoption("--gpu-programs", type=int, default=24, help="how many of them on the GPU")
    parser.addoption("--program-seed", type=int, default=None, help="one random program to run")
    parser.addoption(
        "--feature-programs", type=int, default=300, help="how many to run under several features"
    )
    parser.addoption("--feature-seed", type=int, default=None, help="one of these")
    parser.addoption("--tier", choices=TIERS, help="the tests of one tier alone")
    parser.addoption("--case", default="", help="of tests of many cases, those whose id it finds")


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [
        f"tilewright: {tw.__file__}",
        f"seed: {config.getoption('--seed')} (change with --seed); "
        f"instruction sets: {', '.join(tw.kernels.isas())}",
    ]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Millions of objects describe the tests: garbage collections leave them alone.

    References compute on one thread: theirs wait by spinning, on a core that another process's test
    has. (A test that is about them sets its own number.)
    """
    gc.collect()
    gc.freeze()
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    with contextlib.suppress(ImportError):  # a machine with a GPU may not have it
        importlib.import_module("threadpoolctl").threadpool_limits(1)


@pytest.fixture(scope="module", autouse=True)
def _settled() -> Iterator[None]:
    """What the tests of a file leave behind for good, collections leave alone too."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> list[int]:
    """Differs between tests."""
    value = seed_of(request)
    print(f"seed: {value}")  # pytest shows it when the test fails
    return value


@pytest.fixture
def rng(seed: list[int]) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(autouse=True)
def _seeded_engine(request: pytest.FixtureRequest) -> None:
    tw.manual_seed(request.config.getoption("--seed"))


@pytest.fixture
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the test once on each instruction set that this machine has."""
    with tw.kernels.use(isa=request.param):
        yield request.param


def tier_of(item: pytest.Item) -> str:
    """The later of what its file, its function and its parameters ask for."""
    asked = [TIERS.index(mark.args[0]) for mark in item.iter_markers("tier")]
    return TIERS[max(asked, default=0)]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--tier")
    if wanted:
        config.hook.pytest_deselected(items=[i for i in items if tier_of(i) != wanted])
        items[:] = [item for item in items if tier_of(item) == wanted]


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Instruction sets are the last parameter: tests on the same data follow each other.

    `make test` runs the widest, whose kernels have the most cases of their own.
    """
    if "isa" in metafunc.fixturenames:
        *narrower, widest = tw.kernels.isas()
        others = [pytest.param(isa, marks=pytest.mark.tier("all")) for isa in narrower]
        metafunc.parametrize("isa", [*others, widest], indirect=True)


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
