"""Operands that repeat: in `xlogy` (logarithms once), `where` (by bytes), gradients of softmax."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilewright as tw

SPECIAL = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, -2, 0.5, 3])
REPEATED = [
    ((37, 300), (1, 300)),
    ((37, 300), (37, 1)),
    ((300, 40), (1, 40)),
    ((4, 37, 200), (37, 1)),
    ((9, 10, 130), (9, 1, 130)),
    ((50, 60, 70), (60, 1)),
    ((64, 200), (1, 1)),
]
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
DTYPES += ("complex64", "complex128")


def bits(x: tw.Tensor) -> np.ndarray:
    """Values with the signs of zeros; every NaN is like another."""
    values = np.asarray(x.detach().astype(tw.float64))
    return np.stack([values, np.signbit(values) & ~np.isnan(values)])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(("shape", "repeated"), REPEATED)
def test_xlogy_of_what_repeats_has_the_bits_of_the_whole(
    shape: tuple[int, ...],
    repeated: tuple[int, ...],
    dtype: str,
    isa: str,
    rng: np.random.Generator,
) -> None:
    kind = getattr(tw, dtype)
    few = rng.choice(SPECIAL, repeated)
    b, whole = (tw.asarray(x).astype(kind) for x in (few, np.broadcast_to(few, shape).copy()))
    plain = tw.asarray(rng.choice(SPECIAL, shape)).astype(kind)
    turned = plain.swapaxes(-1, -2).contiguous().swapaxes(-1, -2)
    for a in (plain, turned):
        slopes = []
        for other in (b, whole):
            leaf = a.detach().requires_grad_()
            y = tw.xlogy(leaf, other)
            y.sum().backward()
            assert leaf.grad is not None
            slopes.append((bits(y), bits(leaf.grad)))
        np.testing.assert_array_equal(slopes[0][0], slopes[1][0])
        np.testing.assert_array_equal(slopes[0][1], slopes[1][1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_by_truths_of_any_layout(dtype: str, isa: str, rng: np.random.Generator) -> None:
    shapes = ((37, 300), (1, 300), (37, 1))
    for condition, first, second in itertools.product(shapes, repeat=3):
        c = rng.random(condition) > 0.5
        b, d = (rng.integers(0, 2, s).astype(dtype) * 3 for s in (first, second))
        b, d = b.astype(dtype), d.astype(dtype)
        expected = np.where(c, b, d)
        every_second = tw.asarray(np.repeat(c, 2, axis=1))[:, ::2]
        for layout in (tw.asarray(c), tw.asarray(c.T.copy()).T, every_second):
            got = np.asarray(tw.where(layout, tw.asarray(b), tw.asarray(d)))
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)


def test_where_by_truths_beside_numbers_and_large_results(isa: str) -> None:
    c = np.arange(9_000_001) % 3 == 0
    x = np.arange(9_000_001, dtype=np.float32)
    got = tw.where(tw.asarray(c), tw.asarray(x), -1)
    np.testing.assert_array_equal(np.asarray(got), np.where(c, x, np.float32(-1)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((37, 300), 1),
        ((300, 37), 0),
        ((3, 5, 4111), 1),
        ((1, 7), 0),
        ((5, 1), 1),
        ((0, 4), 1),
        ((6,), 0),
    ],
)
def test_softmax_of_one_gradient_for_all_has_the_bits_of_many(
    shape: tuple[int, ...], axis: int, name: str, dtype: str, isa: str, rng: np.random.Generator
) -> None:
    kind = getattr(tw, dtype)
    x = tw.asarray(rng.normal(size=shape)).astype(kind)
    slopes = []
    for gradient in (tw.full((), 1.7, dtype=kind).expand(*shape), tw.full(shape, 1.7, dtype=kind)):
        leaf = x.detach().requires_grad_()
        getattr(tw, name)(leaf, axis).backward(gradient)
        assert leaf.grad is not None
        slopes.append(bits(leaf.grad))
    np.testing.assert_array_equal(*slopes)
