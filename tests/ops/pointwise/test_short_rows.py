"""Pointwise ops whose last axis is short: many rows go through the kernel as one run."""

from __future__ import annotations

import numpy as np
import pytest
from cases import arrays
from subcases import each

import tilewright as tw

LENGTHS = (1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 127, 128, 129, 200)


def operands(rng: np.random.Generator, rows: int, n: int, dtype: str) -> dict[str, np.ndarray]:
    """Arrays that broadcast to (rows, n), by how they lie."""
    whole = arrays.rounded(rng.uniform(0.5, 2, (rows, n)), dtype)
    return {
        "whole": whole,
        "row": whole[:1],
        "column": whole[:, :1],
        "number": whole[:1, :1],
        "transposed": np.ascontiguousarray(whole.T).T,
        "every second": np.repeat(whole, 2, axis=1)[:, ::2],
        "reversed": np.ascontiguousarray(whole[:, ::-1])[:, ::-1],
    }


def made(x: np.ndarray, layout: str, dtype: str) -> tw.Tensor:
    if layout == "transposed":
        return arrays.tensor(np.ascontiguousarray(x.T), dtype).T
    if layout == "every second":
        return arrays.tensor(np.repeat(x, 2, axis=1), dtype)[:, ::2]
    if layout == "reversed":
        return arrays.tensor(np.ascontiguousarray(x[:, ::-1]), dtype)[:, ::-1]
    return arrays.tensor(np.ascontiguousarray(x), dtype)


@each("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_every_pair_of_layouts(dtype: str, n: int, isa: str, rng) -> None:
    for rows in (1, 2, 9, 700):
        kinds = operands(rng, rows, n, dtype)
        for first, x in kinds.items():
            for second, y in kinds.items():
                want = arrays.rounded(x.astype(np.float64) * y.astype(np.float64), dtype)
                got = made(x, first, dtype) * made(y, second, dtype)
                np.testing.assert_array_equal(arrays.array(got), want, f"{first} * {second}")


@pytest.mark.parametrize("n", LENGTHS)
def test_types_of_operands_and_results(n: int, isa: str, rng) -> None:
    x = rng.normal(size=(300, n)).astype(np.float32)
    whole = rng.integers(-5, 5, (1, n))
    few = rng.integers(0, 100, (300, 1)).astype(np.uint8)
    a, b, c = tw.asarray(x), tw.asarray(whole), tw.asarray(few)
    np.testing.assert_array_equal((a > b.astype(tw.float32)).numpy(), x > whole)
    np.testing.assert_array_equal((b + c.astype(tw.int64)).numpy(), whole + few)
    np.testing.assert_array_equal((c + c[:1]).numpy(), few + few[:1])
    mask = x > 0
    got = tw.where(tw.asarray(mask), a, c.astype(tw.float32)).numpy()
    np.testing.assert_array_equal(got, np.where(mask, x, few.astype(np.float32)))
    z = (x + 1j * x[:, ::-1]).astype(np.complex64)
    sums = (tw.asarray(z) + tw.asarray(z[:1])).numpy()
    np.testing.assert_array_equal(sums, z + z[:1])


@pytest.mark.parametrize("shape", [(5, 40, 3), (2, 3, 1000, 8), (70, 1, 9, 4), (3, 50000, 2)])
def test_more_axes_in_place_and_threads(shape: tuple[int, ...], threads, rng) -> None:
    x = rng.normal(size=shape).astype(np.float32)
    row = rng.normal(size=shape[-1]).astype(np.float32)
    column = rng.normal(size=(*shape[:-1], 1)).astype(np.float32)
    first = rng.normal(size=(shape[0], *(1,) * (len(shape) - 1))).astype(np.float32)
    for count in (1, 2):
        tw.set_num_threads(count)
        for y in (row, column, first):
            np.testing.assert_array_equal((tw.asarray(x) - tw.asarray(y)).numpy(), x - y)
        z = tw.asarray(x.copy())
        z *= tw.asarray(row)
        z += tw.asarray(column)
        np.testing.assert_array_equal(z.numpy(), x * row + column)


# Indices that leave short rows with gaps.
PARTS = {
    "cut": (..., slice(1, -1)),
    "cut twice": (..., slice(1, -1), slice(2, None)),
    "every second": (..., slice(None, None, 2)),
    "every second row": (..., slice(None, None, 2), slice(None)),
    "backwards": (..., slice(None, None, -1)),
    "rows backwards": (..., slice(-2, None, -1), slice(1, None)),
    "some planes": (slice(1, None, 2), ..., slice(1, None)),
}


GAPPED = [
    (700, 3),
    (300, 9),
    (90, 31),
    (50, 140),
    (400, 3, 4),
    (60, 7, 5),
    (30, 17, 35),
    (2, 3, 4, 5),
]


@pytest.mark.parametrize("shape", GAPPED)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "float32", "float64", "complex128"])
def test_rows_with_gaps(dtype: str, shape: tuple[int, ...], isa: str, threads, rng) -> None:
    a, b = rng.integers(0, 50, (2, *shape)).astype(dtype)
    for count in (1, 2):
        tw.set_num_threads(count)
        for name, part in PARTS.items():
            x, y = tw.asarray(a)[part], tw.asarray(b)[part]
            row, column = y[..., :1, :], y[..., :1]
            u, v = a[part], b[part]
            bools = tw.asarray(b == 20)[part]
            got = {
                "x + y": (x + y, u + v),
                "x + whole": (x + tw.asarray(v.copy()), u + v),
                "x * row": (x * row, u * v[..., :1, :]),
                "x + column": (x + column, u + v[..., :1]),
                "x * number": (x * 2, u * np.array(2, dtype)),
                "x == y": (x == y, u == v),
                "where": (tw.where(x == y, x, 7), np.where(u == v, u, np.array(7, dtype))),
                "of two types": (x + bools, u + (v == 20)),
            }
            for which, (result, want) in got.items():
                message = f"{name}: {which}"
                np.testing.assert_array_equal(result.numpy(), want, message)
                np.testing.assert_equal(result.numpy().dtype, want.dtype, message)
            z, want = tw.asarray(a.copy()), a.copy()
            z[part] += y
            want[part] += v
            z[part] *= z[part]
            want[part] *= want[part]
            np.testing.assert_array_equal(z.numpy(), want, name)


@pytest.mark.parametrize("plane", [(8, 128), (33, 32), (40, 30), (64, 32), (41, 50)])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "int16", "float16"])
def test_planes_of_narrow_numbers(
    plane: tuple[int, int], dtype: str, isa: str, rng: np.random.Generator
) -> None:
    """These are computed in wider types, of which fewer fit into a buffer."""
    rows, n = plane
    x = rng.integers(0, 2 if dtype == "bool" else 60, (6, rows + 2, n + 2)).astype(dtype)
    t = tw.asarray(x)
    cut, whole = (slice(None), slice(-2), slice(-2)), (slice(None), slice(rows), slice(n))
    for part in (cut, whole):
        a, v = t[part], x[part]
        for b, w in ((a[::-1], v[::-1]), (a[:1], v[:1]), (a[:, :, :1], v[:, :, :1]), (a, v)):
            np.testing.assert_array_equal((a <= b).numpy(), v <= w)
            np.testing.assert_array_equal(tw.maximum(a, b).numpy(), np.maximum(v, w))
            np.testing.assert_array_equal(tw.where(a > 0, a, b).numpy(), np.where(v > 0, v, w))
            if dtype != "bool":
                np.testing.assert_array_equal((a + b).numpy(), v + w)


def weights_of(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Softmax and log-sum-exp in float64, as the formulas say."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        top = x.max(axis, keepdims=True)
        shift = np.where(np.isfinite(top), top, 0)
        total = np.log(np.exp(x - shift).sum(axis, keepdims=True)) + shift
        return np.exp(x - top) / np.exp(x - top).sum(axis, keepdims=True), total


@pytest.mark.parametrize(
    "shape", [(16, 1), (700, 3), (5000, 16), (33, 5, 4), (20, 60, 3), (300, 2, 15)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_of_many_short_groups(
    shape: tuple[int, ...], dtype: str, isa: str, threads: None, rng: np.random.Generator
) -> None:
    x = rng.normal(size=shape).astype(dtype) * 5
    g = rng.normal(size=shape).astype(dtype)
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    for count in (1, 2):
        tw.set_num_threads(count)
        beside = x.copy()
        beside[:, 1:][rng.random(beside[:, 1:].shape) < 0.05] = -np.inf
        for values in (x, beside):
            p, total = weights_of(values.astype(np.float64), 1)
            t = tw.asarray(values).requires_grad_()
            near = {"rtol": tolerance, "atol": tolerance}
            np.testing.assert_allclose(tw.softmax(t, axis=1).detach().numpy(), p, **near)
            np.testing.assert_allclose(
                tw.log_softmax(t, axis=1).detach().numpy(), values - total, **near
            )
            y = tw.logsumexp(t, axis=1, keepdims=True)
            np.testing.assert_allclose(y.detach().numpy(), total, **near)
            slope = g.sum(1, keepdims=True)
            cases = {
                "softmax": (tw.softmax(t, axis=1), g, p * (g - (p * g).sum(1, keepdims=True))),
                "log_softmax": (tw.log_softmax(t, axis=1), g, g - p * slope),
                "logsumexp": (y, slope, p * slope),
                "one gradient for all": (tw.log_softmax(t, axis=1).sum(), None, 1 - p * shape[1]),
            }
            for name, (result, seed, want) in cases.items():
                (got,) = tw.grad(result, [t], None if seed is None else tw.asarray(seed))
                np.testing.assert_allclose(
                    got.numpy(), want, rtol=tolerance, atol=20 * tolerance, err_msg=name
                )


@pytest.mark.parametrize("shape", [(64, 3), (32, 3, 2)])
def test_softmax_of_short_groups_with_infinities(shape: tuple[int, ...], isa: str) -> None:
    x = np.zeros(shape, np.float32)
    x[1], x[2, 0], x[3, 0], x[4, 1] = -np.inf, np.inf, np.nan, -np.inf
    y, total = weights_of(x.astype(np.float64), 1)
    total[1], total[2], total[3] = -np.inf, np.inf, np.nan
    t = tw.asarray(x)
    np.testing.assert_allclose(tw.softmax(t, axis=1).numpy(), y, 1e-6)
    np.testing.assert_allclose(tw.logsumexp(t, axis=1, keepdims=True).numpy(), total, 1e-6)
