"""Every allocation and every file operation fails once: a run ends with the right bits or a clear
error, and leaves nothing behind."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core

KIB = 1 << 10


@pytest.fixture(autouse=True)
def _no_faults_left() -> Iterator[None]:
    yield
    _core._set_faults_after(-1)


def train(pool: tw.memory.Pool) -> list[np.ndarray]:
    """Two steps of a small network whose activations exceed the pool."""
    tw.manual_seed(5)
    layers = [tw.nn.Linear(64, 64) for _ in range(8)]
    model = tw.nn.Sequential(*(m for layer in layers for m in (layer, tw.nn.ReLU())))
    optimizer = tw.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = tw.randn(512, 64), tw.randn(512, 64)
    with pool:
        for _ in range(2):
            optimizer.zero_grad()
            ((model(x) - y) ** 2).mean().backward()
            optimizer.step()
    return [p.detach().copy().numpy() for p in model.parameters()]


def new_pool(folder: Path) -> tw.memory.Pool:
    return tw.memory.Pool(quota_bytes=760 * KIB, spill_dir=folder)


def test_each_point_fails_once(tmp_path):
    pool = new_pool(tmp_path)
    expected = train(pool)
    assert pool.stats()["spills"] > 4
    finished = 0
    errors: list[str] = []
    live = tw.memory.stats()["live_bytes"]
    for point in range(10_000):
        pool = new_pool(tmp_path)
        _core._set_faults_after(point)
        try:
            got = train(pool)
        except (MemoryError, OSError) as error:
            errors.append(str(error))
        else:
            finished += 1
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_array_equal(a, b)
            del got, a, b
        reached = _core._faults_left() < 0
        _core._set_faults_after(-1)
        gc.collect()
        assert pool.stats()["live_bytes"] == pool.stats()["spilled_bytes"] == 0
        assert tw.memory.stats()["live_bytes"] <= live  # what other tests left may go meanwhile
        live = tw.memory.stats()["live_bytes"]
        assert list(tmp_path.glob("*/*.bin")) == []
        del pool
        assert list(tmp_path.iterdir()) == []
        if not reached:
            break
    assert len(errors) > 50
    assert all(text.startswith(("pool: ", "cannot allocate")) for text in errors)
    assert finished >= 1  # at least the run in which no point was left to fail


def test_values_survive_a_failing_pass(tmp_path):
    with new_pool(tmp_path):
        xs = [tw.full((128 * KIB // 4,), i, dtype=tw.float32) for i in range(8)]
        for point in range(40):
            _core._set_faults_after(point)
            try:
                for x in xs:
                    x + 1
            except (MemoryError, OSError):
                pass
            _core._set_faults_after(-1)
        assert [float(x[-1]) for x in xs] == list(range(8))
