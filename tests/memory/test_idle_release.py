"""Large blocks that nobody uses go back to the system after a while."""

from __future__ import annotations

import time

import pytest

import tilewright as tw
from tilewright import _core

MIB = 1 << 20
SECONDS = 0.2


@pytest.fixture(autouse=True)
def _shortly():
    before = _core._set_idle_release(SECONDS)
    tw.memory.trim()
    yield
    _core._set_idle_release(before)


def reserved() -> int:
    return tw.memory.stats()["reserved_bytes"]


def touch() -> None:
    """Takes and returns a large block, by which the pool looks at the clock."""
    tw.zeros((2 * MIB,), dtype=tw.uint8)


def test_what_nobody_uses_goes_back():
    large = tw.ones((64 * MIB,), dtype=tw.uint8)
    with_it = reserved()
    del large
    touch()
    assert reserved() >= with_it
    time.sleep(3 * SECONDS)
    touch()
    touch()
    assert reserved() <= with_it - 48 * MIB


def test_what_lies_between_live_blocks_goes_back_too():
    blocks = [tw.ones((8 * MIB,), dtype=tw.uint8) for _ in range(9)]
    with_them = reserved()
    del blocks[1::2]
    time.sleep(3 * SECONDS)
    touch()
    touch()
    assert reserved() <= with_them - 24 * MIB
    assert all(bool((block == 1).all()) for block in blocks)
    again = [tw.ones((8 * MIB,), dtype=tw.uint8) for _ in range(4)]
    assert all(bool((block == 1).all()) for block in again)


def test_what_is_used_again_and_again_stays():
    stats = tw.memory.stats()
    end = time.monotonic() + 4 * SECONDS
    tw.ones((32 * MIB,), dtype=tw.uint8)
    kept = reserved()
    while time.monotonic() < end:
        tw.ones((32 * MIB,), dtype=tw.uint8)
        assert reserved() >= kept
    assert tw.memory.stats()["peak_reserved_bytes"] <= max(
        stats["peak_reserved_bytes"], kept + 8 * MIB
    )


def test_off_it_stays():
    tw.optimizations.disable("idle_release")
    try:
        large = tw.ones((64 * MIB,), dtype=tw.uint8)
        with_it = reserved()
        del large
        time.sleep(3 * SECONDS)
        touch()
        touch()
        assert reserved() >= with_it
    finally:
        tw.optimizations.enable("idle_release")


def test_a_program_s_own_pool_gives_back_too():
    pool = tw.memory.Pool()
    with pool:
        large = tw.ones((64 * MIB,), dtype=tw.uint8)
        with_it = pool.stats()["reserved_bytes"]
        del large
        time.sleep(3 * SECONDS)
        touch()
        touch()
        assert pool.stats()["reserved_bytes"] <= with_it - 48 * MIB
