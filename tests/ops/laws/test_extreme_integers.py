"""Integers at the ends of their range, in every argument: sizes never wrap around."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from checkout import ROOT

import tilewright as tw
from tilewright.nn import functional

LOWEST, HIGHEST = -(2**63), 2**63 - 1


def test_every_op_with_every_integer_argument() -> None:
    """In a process of its own, which a fault may end."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(
        [sys.executable, "-m", "cases.extreme_integers"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert not done.stdout, done.stdout[:4000]


def test_the_lowest_integer_is_not_taken_for_none() -> None:
    """It stands for None inside of the engine, wherever a parameter takes None."""
    images = tw.ones((1, 1, 4, 4))
    for call in (
        lambda: functional.adaptive_avg_pool2d(images, LOWEST),
        lambda: functional.adaptive_avg_pool2d(images, (LOWEST, 2)),
        lambda: functional.adaptive_max_pool2d(images, [2, LOWEST]),
        lambda: functional.avg_pool2d(images, 2, divisor_override=LOWEST),
        lambda: tw.sort(images, axis=LOWEST),
        lambda: tw.median(images, axis=LOWEST),
        lambda: tw.topk(images, 1, axis=LOWEST),
        lambda: tw.eye(3, LOWEST),
        lambda: tw.repeat_interleave(tw.asarray([1, 2]), output_size=LOWEST),
    ):
        with pytest.raises((ValueError, IndexError)):
            call()
    assert functional.adaptive_avg_pool2d(images, (None, 2)).shape == (1, 1, 4, 2)


def test_numbers_of_more_than_64_bits_are_refused_by_name() -> None:
    for value in (2**63, LOWEST - 1, 2**64, 10**30):
        with pytest.raises(ValueError, match=f"topk: k is out of range: {value}"):
            tw.topk(tw.ones(3), value)
        with pytest.raises(ValueError, match="zeros: shape is out of range"):
            tw.zeros(value)
        with pytest.raises(ValueError, match="zeros: shape is out of range"):
            tw.zeros((1, value))


def test_slices_as_numpy() -> None:
    ends = (None, 0, 1, -1, HIGHEST, LOWEST, 2**62, -(2**62))
    for extent in (0, 1, 4):
        x = np.arange(extent)
        ours = tw.asarray(x)
        for start, stop, step in product(ends, ends, [e for e in ends if e != 0]):
            place = slice(start, stop, step)
            assert ours[place].tolist() == x[place].tolist(), (extent, place)
            changed, expected = ours.copy(), x.copy()
            changed[place] = 7
            expected[place] = 7
            assert changed.tolist() == expected.tolist(), (extent, place)


def test_steps_of_parts() -> None:
    x = tw.arange(4.0)
    for step in (HIGHEST, 2**62, 5):
        y = tw.slice_scatter(x, tw.asarray([9.0]), step=step)
        assert y.tolist() == [9, 1, 2, 3]
        assert x.unfold(0, 2, step).tolist() == [[0, 1]]


def test_pads_beyond_64_bits_are_refused() -> None:
    x = tw.arange(16.0).reshape(1, 4, 4)
    for mode in ("constant", "replicate", "reflect", "circular"):
        for before, behind in product((HIGHEST, LOWEST, 2**62, -(2**62)), repeat=2):
            with pytest.raises((ValueError, MemoryError), match=r"pad|too large|elements"):
                functional.pad(x, (before, behind), mode=mode)


def test_views_have_bytes_that_64_bits_count() -> None:
    assert tw.broadcast_to(tw.ones(1), (1 << 60,)).nbytes == 1 << 62
    for shape in ((1 << 62,), (1 << 31, 1 << 31)):
        with pytest.raises(ValueError, match="do not fit 64 bits"):
            tw.broadcast_to(tw.ones(1), shape)
    # As in NumPy an axis of no elements makes no room for others.
    with pytest.raises(ValueError, match="more elements than 64 bits"):
        tw.zeros((0, 2**62, 2**62))


def test_windows_beyond_64_bits_are_refused() -> None:
    x = tw.ones((1, 4, 4, 4))
    with pytest.raises(ValueError, match="unfold: sizes of the result do not fit 64 bits"):
        functional.unfold(x, 2**31 - 1, padding=2**31 - 1)
    wide = tw.broadcast_to(tw.ones(1), (1, 1, 2**40))
    with pytest.raises(ValueError, match="conv_transpose1d: sizes of the result"):
        functional.conv_transpose1d(wide, tw.ones((1, 1, 1)), stride=2**31 - 1)
    with pytest.raises(ValueError, match=r"conv1d: sizes of the result .*4 \* 46116"):
        functional.conv1d(tw.ones((1, 4, 1)), tw.ones((0, 4, 1)), groups=2**62 + 1)


def test_triangles_of_any_offset() -> None:
    for offset in (*range(-5, 7), HIGHEST, LOWEST, 2**62, -(2**62)):
        near = max(min(offset, 10), -10)
        for ours, numpy_s in (
            (tw.tril_indices, np.tril_indices),
            (tw.triu_indices, np.triu_indices),
        ):
            expected = [list(part) for part in numpy_s(4, near, 5)]
            assert ours(4, 5, offset).tolist() == expected, offset
    assert tw.triu_indices(4, HIGHEST, HIGHEST - 1).tolist() == [[0], [HIGHEST - 1]]
    assert tw.triu_indices(0, HIGHEST, HIGHEST).shape == (2, 0)
    assert tw.tril_indices(2, HIGHEST, -1).tolist() == [[1], [0]]


def test_shifts_as_numpy() -> None:
    x = np.arange(5)
    for shift in (HIGHEST, LOWEST, 2**62, -(2**62), -3):
        assert tw.roll(tw.asarray(x), shift).tolist() == np.roll(x, shift % 5).tolist()


def test_ranges_have_the_elements_of_numpy_s(rng) -> None:
    """Of ends beyond 2^53 and any steps: the difference of whole numbers is exact."""
    cases = [(-9223372036854772225, -9223372036854766764, 170.65625), (2**62, 2**62 + 9, 2.5)]
    for _ in range(2000):
        start = int(rng.integers(LOWEST, HIGHEST)) >> int(rng.integers(0, 40))
        step = float(rng.choice([1.5, 170.65625, 3.0, 0.25, -2.75, 1e3]))
        cases.append(
            (start, start + int(step * rng.integers(0, 300)) + int(rng.integers(-3, 4)), step)
        )
        whole = int(rng.choice([1, 3, -7, 1000]))
        cases.append((start, start + whole * int(rng.integers(0, 50)), whole))
    for start, stop, step in cases:
        if not LOWEST <= stop <= HIGHEST:
            continue
        expected = len(np.arange(start, stop, step))
        assert tw.arange(start, stop, step, dtype=tw.float64).shape == (expected,), (
            start,
            stop,
            step,
        )
    assert tw.arange(LOWEST, HIGHEST, 2**62).tolist() == [LOWEST, -(2**62), 0, 2**62]


def test_repeats_whose_sum_leaves_64_bits() -> None:
    with pytest.raises(ValueError, match="add up to"):
        tw.repeat(tw.arange(4), tw.asarray([2**62] * 4))
