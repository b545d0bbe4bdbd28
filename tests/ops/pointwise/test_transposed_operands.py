"""Results lie as their operands do where these lie alike; operands that lie across the result go
through transposed tiles; elements that are repeated are spread by vectors, which may not reach
beyond their rows."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

SHAPES = ((1, 5), (4, 255), (17, 256), (65, 257), (300, 33), (3, 70, 40), (2, 5, 9, 300))
DTYPES = ("bool", "uint8", "int16", "int32", "float32", "float64", "complex128")


def across(array: np.ndarray, order: tuple[int, ...]) -> tw.Tensor:
    """The same numbers, in memory along `order`."""
    lying = np.ascontiguousarray(array.transpose(order))
    return tw.asarray(lying).permute(*np.argsort(order).tolist())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_order_of_axes(dtype: str, shape: tuple[int, ...], isa: str, rng) -> None:
    rank = len(shape)
    a, b = (rng.integers(0, 100, shape).astype(dtype) for _ in range(2))
    one = rng.integers(0, 100, (*shape[:-1], 1)).astype(dtype)
    orders = {tuple(range(rank))[::-1], (rank - 1, *range(rank - 1)), tuple(rng.permutation(rank))}
    for order in orders:
        x, y = across(a, order), across(b, tuple(range(rank))[::-1])
        plain, column = tw.asarray(b), tw.asarray(one)
        np.testing.assert_array_equal((x + plain).numpy(), a + b)
        np.testing.assert_array_equal((x + y).numpy(), a + b)
        np.testing.assert_array_equal((x * column).numpy(), a * one)
        np.testing.assert_array_equal(tw.where(x == y, x, plain).numpy(), np.where(a == b, a, b))
        np.testing.assert_array_equal(x.astype(tw.complex64).numpy(), a.astype(np.complex64))
        if dtype != "complex128":
            np.testing.assert_array_equal(x.astype(tw.float32).numpy(), a.astype(np.float32))
            np.testing.assert_array_equal(x.astype(tw.int64).numpy(), a.astype(np.int64))
        backwards = tw.flip(x, (0, rank - 1))
        np.testing.assert_array_equal(backwards.contiguous().numpy(), np.flip(a, (0, rank - 1)))
        np.testing.assert_array_equal((backwards + plain).numpy(), np.flip(a, (0, rank - 1)) + b)


def steps(x: tw.Tensor) -> list[int]:
    """Strides along the axes of more than one element: the others' mean nothing."""
    return [step for step, extent in zip(x.strides, x.shape, strict=True) if extent > 1]


@pytest.mark.parametrize("shape", SHAPES)
def test_results_lie_as_operands_do(shape: tuple[int, ...], isa: str, rng) -> None:
    a, b = rng.normal(size=(2, *shape)).astype(np.float32)
    row, column = b[..., :1, :], b[..., :1]
    for order in {tuple(range(len(shape)))[::-1], tuple(rng.permutation(len(shape)))}:
        x, y = across(a, order), across(b, order)
        got = {
            "sum": (x + y, a + b),
            "number": (2 - x, 2 - a),
            "row": (x * tw.asarray(row), a * row),
            "column": (tw.asarray(column) * x, a * column),
            "stretched": (x * tw.asarray(column).broadcast_to(shape), a * column),
            "truth": (x < y, a < b),
            "chosen": (tw.where(x < y, x, 0.5), np.where(a < b, a, np.float32(0.5))),
            "converted": (x.astype(tw.float64), a.astype(np.float64)),
            "of two types": (x + y.astype(tw.float64), a + b.astype(np.float64)),
        }
        for name, (result, want) in got.items():
            np.testing.assert_array_equal(result.numpy(), want, err_msg=name)
            assert steps(result) == steps(x), name
            assert result.is_contiguous == x.is_contiguous, name


def test_other_results_are_row_major(rng) -> None:
    a, b = rng.normal(size=(2, 6, 8))
    x, y = across(a, (1, 0)), tw.asarray(b)
    for result in (x + y, y - x, x + y.broadcast_to((2, 6, 8)), x.copy(), x.contiguous()):
        assert result.is_contiguous
    three = across(rng.normal(size=(3, 4, 5)), (2, 0, 1))
    other = across(rng.normal(size=(3, 4, 5)), (1, 2, 0))
    assert (three + other).is_contiguous
    assert (three + tw.asarray(rng.normal(size=(3, 4, 7)))[..., 1:-1]).is_contiguous
    windows = y.unfold(0, 3, 1).unfold(1, 3, 1)  # which show elements more than once
    assert (windows + 1).is_contiguous
    np.testing.assert_array_equal((windows + 1).numpy(), windows.numpy() + 1)


def gaps(array: np.ndarray, order: tuple[int, ...], kind: str) -> tw.Tensor:
    """The same numbers, in a part of memory along `order`."""
    if kind == "backwards":
        every = (slice(None, None, -1),) * array.ndim
        return across(np.ascontiguousarray(array[every]), order)[every]
    start, step = (1, 1) if kind == "cut" else (0, 2)
    wide = np.full([n * step + 2 * start for n in array.shape], 77, array.dtype)
    part = tuple(slice(start, start + n * step, step) for n in array.shape)
    wide[part] = array
    return across(wide, order)[part]


@pytest.mark.parametrize("shape", [(1, 5), (65, 3), (3, 70, 40), (40, 2, 3), (2, 5, 9, 4)])
@pytest.mark.parametrize("kind", ["cut", "every second", "backwards"])
def test_results_lie_in_the_order_of_operands_with_gaps(kind, shape, isa: str, rng) -> None:
    a, b = rng.normal(size=(2, *shape)).astype(np.float32)
    row = b[..., :1, :]
    for order in {
        tuple(range(len(shape))),
        tuple(range(len(shape)))[::-1],
        (1, 0, *range(2, len(shape))),
    }:
        x, y, whole = gaps(a, order, kind), gaps(b, order, kind), across(b, order)
        got = {
            "sum": (x + y, a + b),
            "number": (2 - x, 2 - a),
            "row": (x * tw.asarray(row), a * row),
            "truth": (x < y, a < b),
            "without gaps": (x * whole, a * b),
            "chosen": (tw.where(x < y, x, 0.5), np.where(a < b, a, np.float32(0.5))),
            "converted": (x.astype(tw.float64), a.astype(np.float64)),
            "difference": (tw.diff(x, axis=1), np.diff(a, axis=1)),
        }
        for name, (result, want) in got.items():
            np.testing.assert_array_equal(result.numpy(), want, err_msg=name)
            assert steps(result) == steps(across(want, order)), name


def test_nothing_is_row_major_in_any_layout() -> None:
    x = tw.ones((4, 3, 5)).permute_dims((2, 0, 1))
    for nothing in (x[:, :0], x[:0], x[..., :0], x[:, :0] * 2, tw.hsplit(x, (0,))[0]):
        assert nothing.is_contiguous
        assert nothing.contiguous() is nothing
        assert nothing.view(-1).shape == (0,)


def test_gradients_through_transposed_results(rng) -> None:
    a, b, g = rng.normal(size=(3, 5, 7))
    x, y = (tw.tensor(v, requires_grad=True) for v in (a, b))
    ((x.T * y.T).exp() * tw.asarray(g).T).sum().backward()
    slope = np.exp(a * b) * g
    np.testing.assert_allclose(x.grad.numpy(), slope * b, rtol=1e-12)
    np.testing.assert_allclose(y.grad.numpy(), slope * a, rtol=1e-12)


def test_in_place_and_on_threads(threads, rng) -> None:
    a, b = rng.normal(size=(2, 700, 900)).astype(np.float32)
    for count in (1, 2, 3):
        tw.set_num_threads(count)
        np.testing.assert_array_equal((across(a, (1, 0)) - tw.asarray(b)).numpy(), a - b)
        got = across(a, (1, 0)).astype(tw.float64).numpy()
        np.testing.assert_array_equal(got, a.astype(np.float64))
        x = tw.asarray(a.copy())
        x += across(b, (1, 0))
        np.testing.assert_array_equal(x.numpy(), a + b)
        y = across(a, (1, 0))
        y *= tw.asarray(b)
        np.testing.assert_array_equal(y.numpy(), a * b)
        z = across(a, (1, 0))[::2]  # with gaps
        z -= across(b, (1, 0))[::2]
        np.testing.assert_array_equal(z.numpy(), (a - b)[::2])


@pytest.mark.parametrize("dtype", DTYPES)
def test_repeats_stay_within_their_rows(dtype: str, isa: str, threads, rng) -> None:
    for rows, times in ((1, 3), (7, 1), (100, 2), (65, 3), (9, 16), (5, 61), (40_000, 5)):
        x = rng.integers(0, 100, rows).astype(dtype)
        for count in (1, 3):
            tw.set_num_threads(count)
            np.testing.assert_array_equal(
                tw.repeat(tw.asarray(x), times).numpy(), np.repeat(x, times)
            )
            whole = tw.zeros((rows + 8, times), dtype=tw.asarray(x).dtype)
            whole[:rows] = tw.asarray(x).reshape(rows, 1)
            np.testing.assert_array_equal(whole[rows:].numpy(), np.zeros((8, times), dtype))
            np.testing.assert_array_equal(whole[:rows].numpy().reshape(-1), np.repeat(x, times))


# A column's values are spread for 64 rows at once.
@pytest.mark.parametrize("rows", [1, 2, 63, 64, 65, 127, 128, 129, 200])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float32", "float64", "complex128"])
def test_columns_of_any_length(dtype: str, rows: int, isa: str, threads, rng) -> None:
    a = rng.integers(1, 90, (3, rows, 333)).astype(dtype)
    dense = rng.integers(1, 90, (3, rows, 1)).astype(dtype)
    long = rng.integers(1, 90, (3, 2 * rows, 2)).astype(dtype)
    small = rng.integers(1, 90, (3, rows, 1)).astype(np.int8)
    one = dense[:, :1]
    columns = {
        "dense": (tw.asarray(dense), dense),
        "every second": (tw.asarray(long)[:, ::2, :1], long[:, ::2, :1]),
        "of another type": (tw.asarray(small), small),
        "one for each matrix": (tw.asarray(one), one),
    }
    x, chosen = tw.asarray(a), tw.asarray(a.real > 40)
    for name, (column, values) in columns.items():
        for count in (1, 2):
            tw.set_num_threads(count)
            got = (x + column).numpy()
            np.testing.assert_array_equal(got, (a + values).astype(got.dtype), err_msg=name)
            np.testing.assert_array_equal((column - x).numpy(), values - a, err_msg=name)
            got = tw.where(chosen, column, x).numpy()
            np.testing.assert_array_equal(got, np.where(a.real > 40, values, a), err_msg=name)


@pytest.mark.parametrize("axis", [0, 1])
def test_gradients_of_gathers(axis: int, rng) -> None:
    x = tw.tensor(rng.normal(size=(40, 30)), requires_grad=True)
    index = rng.integers(-20, 20, (25, 20))
    g = rng.normal(size=index.shape)
    (tw.gather(x, axis, tw.asarray(index)) * tw.asarray(g)).sum().backward()
    want = np.zeros((40, 30))
    for (i, j), at in np.ndenumerate(index):
        want[(at, j) if axis == 0 else (i, at)] += g[i, j]
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-12)
