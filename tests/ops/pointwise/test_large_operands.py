"""Results beyond the first-level cache have loops of their own, and formulas ways of their own for
numbers at the ends of the type: the bits of an element depend on neither place nor neighbours."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cases import arrays

import tilewright as tw

COUNT, PIECE = 70_001, 997  # elements; pieces stay below 64 KiB
ONE = ("negative", "sqrt", "rsqrt", "tanh", "erf", "sinh", "cosh", "exp", "floor", "isnan")
TWO = ("add", "maximum", "less", "hypot", "copysign", "atan2")


def operands(dtype: str, count: int, rng: np.random.Generator) -> list[tw.Tensor]:
    x = [rng.normal(size=COUNT + 3) * 3 for _ in range(count)]
    for each in x:
        each[::1009] = rng.choice(
            [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38], each[::1009].size
        )
    return [arrays.tensor(np.float32(each) if dtype != "float64" else each, dtype) for each in x]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", [*ONE, *TWO])
@np.errstate(all="ignore")
def test_bits_of_large_results_are_those_of_pieces(
    name: str, dtype: str, isa: str, rng: np.random.Generator
) -> None:
    op, x = getattr(tw, name), operands(dtype, 1 + (name in TWO), rng)
    for start in (0, 1, 3):
        cut = [each[start : start + COUNT] for each in x]
        whole = arrays.array(op(*cut))
        pieces = [
            arrays.array(op(*(each[i : i + PIECE] for each in cut))) for i in range(0, COUNT, PIECE)
        ]
        np.testing.assert_array_equal(whole, np.concatenate(pieces))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@np.errstate(all="ignore")
def test_hypot_and_rsqrt_at_the_ends_of_the_type(dtype: str, isa: str) -> None:
    ends = np.finfo(dtype)
    sizes = [0, ends.smallest_subnormal, ends.tiny, 3e-25, 1, 5e12, ends.max / 2, ends.max]
    values = np.array([*sizes, np.inf, np.nan], dtype)
    values = np.concatenate([values, -values])
    a, b = (np.array(x, dtype) for x in zip(*itertools.product(values, values), strict=True))
    got, want = tw.hypot(tw.asarray(a), tw.asarray(b)).numpy(), np.hypot(a, b)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=ends.eps, atol=ends.smallest_subnormal)
    got, want = tw.rsqrt(tw.asarray(values)).numpy(), 1 / np.sqrt(values)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.signbit(got[want == -np.inf]), True)
    np.testing.assert_allclose(got, want, rtol=2 * ends.eps)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "uint64", "int8"])
def test_powers_of_whole_numbers(dtype: str, isa: str, rng: np.random.Generator) -> None:
    limits = np.iinfo(dtype)
    base = rng.integers(limits.min, limits.max, 1031, dtype=dtype, endpoint=True)
    most = min(limits.max, 2**62)
    mixed = np.array([*range(100), most, most // 2, 127], dtype)
    cases = [np.resize(mixed, base.size), rng.permutation(np.resize(mixed, base.size))]
    cases += [np.full(1, e, dtype) for e in (0, 1, 2, 7, 64, 100, limits.max)]
    for exponent in cases:
        exact = [
            pow(int(a), int(b), 2**limits.bits)
            for a, b in zip(base, np.broadcast_to(exponent, base.shape), strict=True)
        ]
        want = np.array(exact, np.uint64).astype(f"uint{limits.bits}").view(dtype)
        got = tw.pow(tw.asarray(base), tw.asarray(exponent))
        np.testing.assert_array_equal(got.numpy(), want)
