"""floor_divide, remainder and fmod of integers, against whole numbers of Python: signs, ends of the
types, zero divisors (which give 0), all lengths around a vector's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
LENGTHS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 129, 300)

OPS: dict[str, Callable[[int, int], int]] = {
    "floor_divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "fmod": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
}


def wrapped(value: int, dtype: str) -> int:
    bits = np.iinfo(dtype).bits
    value %= 2**bits
    return value - 2**bits if value > np.iinfo(dtype).max else value


def expected(name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    dtype = str(a.dtype)
    pairs = zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
    exact = [0 if q == 0 else OPS[name](p, q) for p, q in pairs]
    return np.array([wrapped(value, dtype) for value in exact], dtype).reshape(a.shape)


def edges(dtype: str) -> np.ndarray:
    limits = np.iinfo(dtype)
    near = [*range(-9, 10), 46340, 46341, 65535, 65536, 2**24 + 1, 2**31 - 1, 2**31 - 2]
    near += [limits.min, limits.min + 1, limits.min + 2, limits.max, limits.max - 1]
    near += [limits.max // 2, limits.max // 2 + 1, limits.max // 3]
    near += [-value for value in near]
    return np.array(sorted({v for v in near if limits.min <= v <= limits.max}), dtype)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_every_pair_of_edges(dtype: str, name: str, isa: str) -> None:
    a, b = (
        np.ascontiguousarray(x) for x in np.broadcast_arrays(edges(dtype)[:, None], edges(dtype))
    )
    got = getattr(tw, name)(tw.asarray(a), tw.asarray(b))
    assert str(got.dtype) == dtype
    np.testing.assert_array_equal(got.numpy(), expected(name, a, b))


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["int16", "int32"])
def test_every_length_and_layout(dtype: str, n: int, isa: str, rng) -> None:
    limits = np.iinfo(dtype)
    a, b = rng.integers(limits.min, limits.max, (2, 3, n + 1), dtype=dtype, endpoint=True)
    b >>= rng.integers(0, limits.bits, b.shape, dtype=dtype)  # of every size, and zeros
    x, y = tw.asarray(a), tw.asarray(b)
    for name in OPS:
        op = getattr(tw, name)
        for cut in (np.s_[:, :n], np.s_[:, 1:], np.s_[:, ::-2]):
            p, q = np.ascontiguousarray(a[cut]), np.ascontiguousarray(b[cut])
            np.testing.assert_array_equal(op(x[cut], y[cut]).numpy(), expected(name, p, q))
        column = np.ascontiguousarray(np.broadcast_to(b[:, :1], a.shape))
        np.testing.assert_array_equal(op(x, y[:, :1]).numpy(), expected(name, a, column))
        np.testing.assert_array_equal(op(x, -7).numpy(), expected(name, a, np.full_like(a, -7)))


def test_many_random_quotients_of_int32(isa: str, rng) -> None:
    a, b = rng.integers(-(2**31), 2**31, (2, 200_000)).astype(np.int32)
    b >>= rng.integers(0, 32, b.shape).astype(np.int32)
    whole = b.astype(np.int64)
    safe = np.where(whole == 0, 1, whole)
    quotient = np.where(whole == 0, 0, a.astype(np.int64) // safe).astype(np.int32)
    rest = np.where(whole == 0, 0, a.astype(np.int64) % safe).astype(np.int32)
    x, y = tw.asarray(a), tw.asarray(b)
    np.testing.assert_array_equal(tw.floor_divide(x, y).numpy(), quotient)
    np.testing.assert_array_equal(tw.remainder(x, y).numpy(), rest)
    # Products, whose quotients are whole, and their neighbours.
    factor = rng.integers(1, 46341, 200_000).astype(np.int32)
    other = rng.integers(-46340, 46341, 200_000).astype(np.int32)
    for off in (-1, 0, 1):
        product = factor * other + np.int32(off)
        got = tw.floor_divide(tw.asarray(product), tw.asarray(factor)).numpy()
        np.testing.assert_array_equal(got, product.astype(np.int64) // factor)
