"""Errors where memory runs out list who holds it."""

from __future__ import annotations

import re

import pytest

import tilewright as tw

MIB = 1 << 20
HERE = re.escape(__file__)


def refused(call) -> str:
    """The error's text."""
    with pytest.raises(MemoryError) as told:
        call()
    return str(told.value)


def too_much() -> None:
    tw.zeros((1 << 46,), dtype=tw.uint8)


def test_shapes_are_told_without_a_log():
    held = [tw.ones((3, MIB), dtype=tw.float32) for _ in range(2)]
    text = refused(too_much)
    assert "cannot allocate" in text
    assert "24 MiB in 2 blocks of float32 (3, 1048576)" in text
    del held
    assert "(3, 1048576)" not in refused(too_much)


def test_ops_modules_and_lines_are_told_with_one():
    class Doubled(tw.nn.Module):
        def forward(self, x):
            return x + x

    x = tw.ones((5, MIB), dtype=tw.float32)
    with tw.memory.record():
        y = Doubled()(x)
        text = refused(too_much)
    assert re.search(
        rf"20 MiB in 1 block of float32 \(5, 1048576\) by add in Doubled at {HERE}:\d+", text
    )
    assert y.shape == (5, MIB)


def test_the_largest_come_first_and_few():
    held = [tw.ones((rows, MIB), dtype=tw.uint8) for rows in range(40, 48)]
    text = refused(too_much)
    rows = [int(found) for found in re.findall(r"uint8 \((\d+), 1048576\)", text)]
    assert rows[:5] == [47, 46, 45, 44, 43]
    assert "more" in text
    assert len(held) == 8


def test_a_quota_s_holders():
    pool = tw.memory.Pool(quota_bytes=16 * MIB, spill_dir=False)
    outside = tw.ones((30, MIB), dtype=tw.uint8)
    with pool:
        held = tw.ones((3, 4 * MIB), dtype=tw.uint8)
        text = refused(lambda: tw.ones((8 * MIB,), dtype=tw.uint8))
        assert "does not fit the quota" in text
        assert "12 MiB in 1 block of uint8 (3, 4194304)" in text
        assert "(30, 1048576)" not in text
        with tw.memory.record():
            more = held[0] * 1  # a block with a name
            told = refused(lambda: tw.ones((8 * MIB,), dtype=tw.uint8))
        assert re.search(rf"4 MiB in 1 block of uint8 \(4194304,\) by multiply at {HERE}:\d+", told)
        del held, more
        tw.ones((8 * MIB,), dtype=tw.uint8)
    assert outside.shape == (30, MIB)


def test_a_pool_that_refuses_goes_on():
    pool = tw.memory.Pool(quota_bytes=8 * MIB, spill_dir=False)
    with pool:
        for _ in range(20):
            blocks = [tw.ones((2 * MIB,), dtype=tw.uint8) for _ in range(3)]
            assert "6 MiB in 3 blocks" in refused(lambda: tw.ones((4 * MIB,), dtype=tw.uint8))
            del blocks
