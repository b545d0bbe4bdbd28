"""Vector kernels of complex numbers, on every instruction set, against formulas in float64."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

NUMBERS = (np.complex64, np.complex128)
# Below twice the widest vector, and beyond what a thread or a block takes at once.
SIZES = (*range(1, 18), 63, 1000, 4099, 70001)
SPECIAL = (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e-38, 3e38, 1e-45)


def numbers(shape: tuple[int, ...] | int, seed: int, kind: type) -> np.ndarray:
    """Parts of all sizes, so that parts of products cancel or overflow in float32."""
    rng = np.random.default_rng(seed)
    spread = np.exp(rng.uniform(-30, 30, np.shape(np.empty(shape))))
    return ((rng.normal(size=shape) + 1j * rng.normal(size=shape)) * spread).astype(kind)


def special(kind: type) -> np.ndarray:
    z = np.empty((len(SPECIAL), len(SPECIAL)), kind)
    z.real, z.imag = np.array(SPECIAL)[:, None], np.array(SPECIAL)
    return z.ravel()


def pair(re: np.ndarray, im: np.ndarray, kind: type) -> np.ndarray:
    z = np.empty(np.shape(re), kind)
    with np.errstate(all="ignore"):
        z.real, z.imag = re, im
    return z


def parts(*z: np.ndarray) -> list[np.ndarray]:
    return [part.astype(float) for x in z for part in (x.real, x.imag)]


def product(z: np.ndarray, w: np.ndarray) -> np.ndarray:
    a, b, c, d = parts(z, w)
    with np.errstate(all="ignore"):
        return pair(a * c - b * d, a * d + b * c, z.dtype.type)


def quotient(z: np.ndarray, w: np.ndarray) -> np.ndarray:
    """By R. Smith's method; by 0 each part is divided by it."""
    a, b, c, d = parts(z, w)
    with np.errstate(all="ignore"):
        leads, zero = np.abs(c) >= np.abs(d), (c == 0) & (d == 0)
        large, small = np.where(leads, c, d), np.where(leads, d, c)
        ratio = small / large
        size = np.where(zero, c, large + small * ratio)
        re = np.where(zero, a, np.where(leads, a + b * ratio, a * ratio + b))
        im = np.where(zero, b, np.where(leads, b - a * ratio, b * ratio - a))
        return pair(re / size, im / size, z.dtype.type)


def same_bits(got: tw.Tensor, expected: np.ndarray) -> None:
    """NaN where NaN is, all else bit for bit."""
    y, z = np.array(got, order="C"), np.array(expected, order="C")
    assert y.dtype == z.dtype
    assert y.shape == z.shape
    if z.dtype.kind == "c":
        y, z = y.view(y.real.dtype), z.view(z.real.dtype)
        np.testing.assert_array_equal(np.signbit(y) | np.isnan(y), np.signbit(z) | np.isnan(z))
    np.testing.assert_array_equal(y, z)


def near(got: tw.Tensor, expected: np.ndarray, scale: np.ndarray | float, ulp: float) -> None:
    """Within ulp of `scale`."""
    y = np.array(got)
    info = np.finfo(y.dtype)
    error = np.abs(y.astype(complex) - expected)
    np.testing.assert_array_less(error, ulp * float(info.eps) * scale + float(info.tiny))


@pytest.mark.parametrize("size", SIZES)
def test_arithmetic(isa: str, size: int) -> None:
    for kind in NUMBERS:
        a, b = numbers(size, 1, kind), numbers(size + 1, 2, kind)[1:]
        x, y = tw.asarray(a), tw.asarray(numbers(size + 1, 2, kind))[1:]
        same_bits(x + y, a + b)
        same_bits(x - y, a - b)
        same_bits(-x, -a)
        same_bits(tw.conj(x), np.conj(a))
        same_bits(x == y, a == b)
        same_bits(x != x * 1, np.zeros(size, bool))
        same_bits(tw.where(tw.asarray(a.real > 0), x, y), np.where(a.real > 0, a, b))
        if kind is np.complex64:  # exact products: one rounding wherever they are computed
            same_bits(x * y, product(a, b))
            same_bits(tw.square(x), product(a, a))
            same_bits(x * (1.5 - 2j), product(a, np.full(size, 1.5 - 2j, kind)))
        near(x * y, product(a, b), np.abs(a) * np.abs(b), 2)
        near(x / y, quotient(a, b), np.abs(quotient(a, b)), 8)


def test_special_values(isa: str) -> None:
    for kind in NUMBERS:
        a, b = (z.ravel() for z in np.meshgrid(special(kind), special(kind)))
        x, y = tw.asarray(a), tw.asarray(b)
        with np.errstate(all="ignore"):
            for got, expected in ((x + y, a + b), (x - y, a - b), (-x, -a), (tw.conj(x), a.conj())):
                same_bits(got, expected)
        same_bits(x == y, a == b)
        same_bits(x != y, a != b)
        same_bits(tw.isnan(x), np.isnan(a))
        same_bits(tw.isinf(x), np.isinf(a))
        same_bits(tw.isfinite(x), np.isfinite(a))
        same_bits(tw.logical_not(x), a == 0)
        if kind is np.complex64:
            same_bits(x * y, product(a, b))
        # Where parts cancel, what is left depends on whether multiply-adds round once.
        got, expected = np.array(x / y), quotient(a, b)
        left = np.isfinite(got) & np.isfinite(expected)
        same_bits(tw.asarray(np.where(left, 0, got)), np.where(left, 0, expected))
        near(tw.asarray(got[left]), expected[left], np.abs(expected[left]), 8)
        # Bits do not depend on the place.
        for f in (tw.multiply, tw.divide):
            whole = np.array(f(x, y))
            for i in (0, 17, 1234, len(a) - 1):
                same_bits(f(x[i : i + 1], y[i : i + 1]), whole[i : i + 1])


def test_layouts(isa: str) -> None:
    for kind in NUMBERS:
        a, b = numbers((6, 21, 9), 3, kind), numbers((6, 21, 9), 4, kind)
        x, y = tw.asarray(a), tw.asarray(b)
        for u, v, p, q in (
            (x[:, ::2], y[:, ::2], a[:, ::2], b[:, ::2]),
            (x[..., ::-1], y, a[..., ::-1], b),
            (x.mT, y.mT, a.swapaxes(1, 2), b.swapaxes(1, 2)),
            (x.mT, tw.asarray(b.swapaxes(1, 2).copy()), a.swapaxes(1, 2), b.swapaxes(1, 2)),
            (x, y[0], a, b[0]),
            (x, y[..., :1], a, b[..., :1]),
            (x, y[:1, :1, :1], a, b[:1, :1, :1]),
        ):
            wide = np.broadcast_arrays(p, q)
            near(u * v, product(*wide), np.abs(wide[0]) * np.abs(wide[1]), 2)
            same_bits(u + v, p + q)
        z = tw.asarray(a, copy=True)
        z *= z
        same_bits(z, np.array(x * x))


@pytest.mark.parametrize("size", SIZES)
def test_sums(isa: str, size: int) -> None:
    for kind in NUMBERS:
        rng = np.random.default_rng(size)
        a = (rng.normal(size=(3, size)) + 1j * rng.normal(size=(3, size))).astype(kind)
        x, wide = tw.asarray(a), a.astype(complex)
        bound = np.abs(a).sum(1)
        near(tw.sum(x, axis=1), wide.sum(1), bound, 2)
        near(tw.sum(x), wide.sum(), bound.sum(), 2)
        near(tw.mean(x, axis=1), wide.mean(1), bound / size, 2)
        near(tw.sum(x, axis=0), wide.sum(0), np.abs(a).sum(0), 2)
        near(tw.sum(x.mT, axis=0), wide.sum(1), bound, 2)
        near(tw.sum(x[:, ::-1], axis=1), wide.sum(1), bound, 2)
        near(tw.sum(x[:, ::2], axis=1), wide[:, ::2].sum(1), bound, 2)
        near(tw.cumulative_sum(x, axis=1), wide.cumsum(1), np.abs(a).cumsum(1), 40)
        np.testing.assert_array_equal(
            np.array(tw.cumulative_sum(x, axis=1)), np.array(tw.cumulative_sum(x.mT, axis=0).mT)
        )


def test_a_sum_keeps_its_parts_apart(isa: str) -> None:
    for kind in NUMBERS:
        for size in (5, 64, 1000, 5000):
            for at in (0, 3, size - 1):
                z = np.ones(size, kind)
                z.real[at] = np.inf
                assert np.array(tw.sum(tw.asarray(z))) == complex(np.inf, 0)
                z = np.ones(size, kind)
                z.imag[at] = np.nan
                y = np.array(tw.sum(tw.asarray(z)))
                assert y.real == size
                assert np.isnan(y.imag)


@pytest.mark.parametrize("columns", [2, 3, 5, 8, 17])
@pytest.mark.parametrize("rows", [31, 33, 1000, 70001])
def test_rows_of_a_few_elements(isa: str, rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    for kind in (np.float32, np.float64, np.int32, np.int16, np.uint8):
        a = (rng.normal(size=(rows, columns)) * 100).astype(kind)
        x, wide = tw.asarray(a), a.astype(float)
        if kind in (np.float32, np.float64):
            near(tw.sum(x, axis=0), wide.sum(0), np.abs(wide).sum(0), 2)
            a[rows // 2, 1] = np.nan
            assert np.isnan(np.array(tw.max(tw.asarray(a), axis=0))).tolist() == [
                j == 1 for j in range(columns)
            ]
        else:
            same_bits(tw.sum(x, axis=0, dtype=tw.int64), a.sum(0, dtype=np.int64))
            same_bits(tw.max(x, axis=0), a.max(0))
            same_bits(tw.min(x, axis=0), a.min(0))
        same_bits(tw.any(x > 50, axis=0), (a > 50).any(0))
        same_bits(tw.all(x > -1e9, axis=0), np.array([True] * columns) & ~np.isnan(a).any(0))
    z = tw.asarray(rng.normal(size=(rows, columns)).astype(np.float32)).astype(tw.bfloat16)
    wide = np.array(z.astype(tw.float64))
    y = np.array(tw.sum(z, axis=0, dtype=tw.float64))
    np.testing.assert_allclose(y, wide.sum(0), atol=1e-6 * np.abs(wide).sum(0).max())


@pytest.mark.parametrize("size", SIZES)
def test_products_of_vectors(isa: str, size: int) -> None:
    for kind in NUMBERS:
        rng = np.random.default_rng(size)
        a, b = ((rng.normal(size=size) + 1j * rng.normal(size=size)).astype(kind) for _ in "ab")
        x, y = tw.asarray(a), tw.asarray(b)
        u, v = a.astype(complex), b.astype(complex)
        bound = (np.abs(u) * np.abs(v)).sum()
        near(tw.dot(x, y), u @ v, bound, 4)
        near(tw.vdot(x, y), np.vdot(u, v), bound, 4)
        near(tw.vecdot(x, y), np.vdot(u, v), bound, 4)
        near(tw.dot(x[::-1], y), u[::-1] @ v, bound, 4)
        rows, columns = tw.stack([x, y])[:, None, :], tw.stack([y, x])[:, :, None]
        both = np.array(tw.matmul(rows, columns))
        np.testing.assert_array_less(np.abs(both.ravel() - u @ v), 4 * np.finfo(kind).eps * bound)


def test_gradients_of_products(isa: str) -> None:
    z, w = (tw.asarray(numbers(9, seed, np.complex128)).requires_grad_() for seed in (5, 6))
    z, w = (tw.asarray(np.array(t.detach()) / np.abs(np.array(t.detach()))) for t in (z, w))
    z.requires_grad, w.requires_grad = True, True
    for f in (tw.multiply, tw.divide, tw.vdot, tw.dot, lambda z, w: tw.sum(z * z / w)):
        assert tw.gradcheck(f, (z, w))
        assert tw.gradgradcheck(f, (z, w))


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 64, 65, 1000, 4099])
def test_products(isa: str, size: int) -> None:
    """Of rows, of columns and of numbers that lie apart, whose magnitude comes back to about 1."""
    rng = np.random.default_rng(size)
    for kind in NUMBERS:
        a = np.exp(rng.normal(size=(3, size)) + 6.3j * rng.random((3, size))).astype(kind)
        for spread in (0, 4 if kind is np.complex64 else 60):  # too far for so many in double
            a = (a * np.exp(np.where(np.arange(size) % 20 < 10, spread, -spread))).astype(kind)
            x, wide = tw.asarray(a), a.astype(np.clongdouble)
            expected = wide.prod(1)
            fits = np.abs(expected) < 1e30
            for got in (tw.prod(x, axis=1), tw.prod(x.mT.contiguous(), axis=0)):
                error = np.abs(np.array(got).astype(np.clongdouble) - expected) / np.abs(expected)
                bound = float(np.finfo(kind).eps) * (4 if kind is np.complex64 else 4 * size)
                assert (error[fits] < bound).all()
            near(
                tw.prod(x[:, ::2], axis=1),
                np.array(tw.prod(x[:, ::2].contiguous(), axis=1)),
                np.abs(np.array(tw.prod(x[:, ::2], axis=1))),
                4 * size,
            )
    z = np.ones((2, size), np.complex64)
    z[0, size // 2], z[1, size // 2] = 0, np.inf
    np.testing.assert_array_equal(np.array(tw.prod(tw.asarray(z), axis=1))[0], 0)
    assert not np.isfinite(np.array(tw.prod(tw.asarray(z), axis=1))[1])


def test_products_that_leave_the_range_on_the_way(isa: str) -> None:
    factors = np.tile([1e250 + 1e250j, 1e-250 - 1e-250j], 40)
    expected = np.prod(factors.astype(np.clongdouble))
    for order in (factors, np.roll(factors, 1)):
        x = tw.asarray(order)
        wide = float(np.abs(expected))
        near(tw.prod(x), expected.astype(complex), wide, 400)
        columns = tw.prod(tw.stack([x, x], axis=1), axis=0)
        near(columns, np.full(2, expected).astype(complex), wide, 400)


def test_reciprocals(isa: str) -> None:
    for kind in NUMBERS:
        a = numbers(1000, 5, kind)
        with np.errstate(all="ignore"):
            expected = np.conj(a).astype(np.clongdouble) / np.abs(a.astype(np.clongdouble)) ** 2
        near(
            tw.reciprocal(tw.asarray(a)),
            expected.astype(complex),
            np.abs(expected).astype(float),
            2,
        )
