"""Scattering, index_* and masked ops at the edges, against NumPy and PyTorch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from cases import arrays

import tilewright as tw

DTYPES = ("float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64", "bool")


def both(x: np.ndarray) -> tuple[tw.Tensor, torch.Tensor]:
    return tw.asarray(x.copy()), torch.from_numpy(x.copy())


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.asarray(rng.integers(0, 9, shape)).astype(dtype)


def equal(y: tw.Tensor, z: torch.Tensor) -> None:
    assert y.shape == tuple(z.shape)
    assert str(y.dtype) == str(z.dtype).removeprefix("torch.")
    np.testing.assert_array_equal(arrays.array(y), z.numpy())


def shapes(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Of x and of an index for one axis, which may be longer there."""
    rank = int(rng.integers(0, 5))
    x = tuple(int(n) for n in rng.integers(1, 6, rank))
    axis = int(rng.integers(-rank, rank)) if rank else 0
    index = [int(rng.integers(0 if rng.random() < 0.1 else 1, n + 1)) for n in x]
    if rank:
        index[axis] = int(rng.integers(0, 9))
    return x, tuple(index), axis


def indices(rng: np.random.Generator, shape: tuple[int, ...], extent: int) -> np.ndarray:
    return np.asarray(rng.integers(0, extent, shape))


def distinct(rng: np.random.Generator, shape: tuple[int, ...], extent: int, axis: int):
    """Of several for one place, PyTorch promises none."""
    shape = list(shape)
    if shape:
        shape[axis] = min(shape[axis], extent)
    order = np.argsort(rng.random((*shape[:axis], extent, *shape[axis:][1:])), axis)
    return np.take(order, np.arange(shape[axis]), axis) if shape else np.asarray(0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_as_pytorch_over_random_shapes(dtype: str, rng) -> None:
    for _ in range(60):
        x_shape, i_shape, axis = shapes(rng)
        extent = x_shape[axis] if x_shape else 1
        x, t = both(numbers(rng, x_shape, dtype))
        i, ti = both(indices(rng, i_shape, extent))
        src_shape = tuple(n + int(rng.integers(0, 3)) for n in i_shape)
        src, ts = both(numbers(rng, src_shape, dtype))
        equal(tw.gather(x, axis, i), torch.gather(t, axis, ti))
        equal(tw.scatter_add(x, axis, i, src), torch.scatter_add(t, axis, ti, ts))
        once = distinct(rng, i_shape, extent, axis % len(x_shape) if x_shape else 0)
        j, tj = both(once)
        equal(tw.scatter(x, axis, j, src), torch.scatter(t, axis, tj, ts))
        equal(tw.scatter(x, axis, i, 1), torch.scatter(t, axis, ti, 1))
        for reduce in ("sum", "prod", "amax", "amin"):
            for include_self in (True, False):
                equal(
                    tw.scatter_reduce(x, axis, i, src, reduce, include_self=include_self),
                    torch.scatter_reduce(t, axis, ti, ts, reduce, include_self=include_self),
                )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("include_self", [True, False])
def test_means_as_pytorch(dtype: str, include_self: bool, rng) -> None:
    for _ in range(20):
        x_shape, i_shape, axis = shapes(rng)
        x, t = both(numbers(rng, x_shape, dtype))
        i, ti = both(indices(rng, i_shape, x_shape[axis] if x_shape else 1))
        src, ts = both(numbers(rng, i_shape, dtype))
        y = tw.scatter_reduce(x, axis, i, src, "mean", include_self=include_self)
        z = torch.scatter_reduce(t, axis, ti, ts, "mean", include_self=include_self)
        np.testing.assert_allclose(arrays.array(y), z.numpy(), rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_index_ops_as_pytorch(dtype: str, rng) -> None:
    for _ in range(40):
        x_shape, _, axis = shapes(rng)
        extent, n = (x_shape[axis] if x_shape else 1), int(rng.integers(0, 6))
        moved = list(x_shape)
        if x_shape:
            moved[axis] = n
        else:
            n = 1
        x, t = both(numbers(rng, x_shape, dtype))
        i, ti = both(indices(rng, (n,), extent))
        src, ts = both(numbers(rng, tuple(moved), dtype))
        equal(tw.index_select(x, axis, i), torch.index_select(t, axis, ti))
        equal(tw.index_fill(x, axis, i, 1), torch.index_fill(t, axis, ti, 1))
        if dtype != "bool":
            equal(tw.index_add(x, axis, i, src, alpha=2), torch.index_add(t, axis, ti, ts, alpha=2))
        once = rng.permutation(extent)[:n]
        part = np.take(arrays.array(src), np.arange(len(once)), axis) if x_shape else ts.numpy()
        ours, theirs = both(np.asarray(part))
        j, tj = both(once)
        equal(tw.index_copy(x, axis, j, ours), torch.index_copy(t, axis, tj, theirs))


@pytest.mark.parametrize("dtype", DTYPES)
def test_masks_as_pytorch(dtype: str, rng) -> None:
    for x_shape, mask_shape in (((3, 4), (3, 4)), ((3, 4), (4,)), ((4,), (3, 1)), ((), ()),
                                ((2, 0), (2, 1)), ((5,), ()), ((), (3,))):  # fmt: skip
        x, t = both(numbers(rng, x_shape, dtype))
        mask, tm = both(np.asarray(rng.integers(0, 2, mask_shape)).astype(bool))
        source, ts = both(numbers(rng, (20,), dtype))
        equal(tw.masked_select(x, mask), torch.masked_select(t, tm))
        equal(tw.masked_fill(x, mask, 1), torch.masked_fill(t, tm, 1))
        equal(tw.masked_scatter(x, mask, source), torch.masked_scatter(t, tm, ts))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64"])
def test_every_integer_type_is_an_index(dtype: str) -> None:
    x, index = tw.arange(6.0), tw.asarray(np.array([5, 0, 5], dtype))
    assert tw.gather(x, 0, index).tolist() == [5, 0, 5]
    assert tw.scatter_add(x, 0, index, 1).tolist() == [1, 1, 2, 3, 4, 7]
    assert tw.index_select(x, 0, index).tolist() == [5, 0, 5]
    if dtype == "uint64":
        with pytest.raises(IndexError, match="out of range"):
            tw.gather(x, 0, tw.asarray(np.array([2**64 - 1], dtype)))


def test_layouts_and_broadcast_operands(rng) -> None:
    x = rng.normal(size=(6, 8))
    index = rng.integers(0, 6, (12, 8))
    src = rng.normal(size=(12, 8))
    expected = arrays.array(tw.scatter_add(tw.asarray(x), 0, tw.asarray(index), tw.asarray(src)))
    ours = tw.scatter_add(
        tw.asarray(x.T.copy()).T,
        0,
        tw.asarray(np.repeat(index, 2, 1))[:, ::2],
        tw.flip(tw.asarray(src[::-1].copy()), axis=0),
    )
    np.testing.assert_array_equal(arrays.array(ours), expected)
    rows = tw.broadcast_to(tw.asarray([[2], [0], [2]]), (3, 8))
    y = tw.scatter_add(tw.zeros((3, 8)), 0, rows, tw.broadcast_to(tw.ones(()), (3, 8)))
    assert arrays.array(y)[:, 3].tolist() == [1, 0, 2]


def test_nan_wins_among_extremes() -> None:
    x, index = tw.asarray([1.0, tw.nan, 2.0]), tw.asarray([0, 1, 2, 2])
    src = tw.asarray([tw.nan, 5.0, 3.0, tw.nan])
    for reduce in ("amax", "amin"):
        y = tw.scatter_reduce(x, 0, index, src, reduce)
        assert np.isnan(arrays.array(y)).all()


def test_whole_numbers_wrap() -> None:
    x = tw.full((2,), 120, dtype=tw.int8)
    assert tw.scatter_add(x, 0, tw.asarray([0, 0]), 10).tolist() == [-116, 120]
    assert tw.scatter(x, 0, tw.asarray([1]), 3, reduce="multiply").tolist() == [120, 104]


@pytest.mark.parametrize("shape", [(1000,), (300, 400), (40, 50, 60)], ids=str)
def test_the_same_bits_with_any_number_of_threads(shape: tuple[int, ...], rng) -> None:
    x = tw.asarray(rng.normal(size=shape), dtype=tw.float32)
    before = tw.get_num_threads()
    for axis in range(len(shape)):
        longer = list(shape)
        longer[axis] *= 40 if len(shape) == 1 else 3
        index = tw.asarray(rng.integers(0, shape[axis], longer))
        src = tw.asarray(rng.normal(size=longer), dtype=tw.float32)
        found = set()
        try:
            for threads in (1, 2, 5):
                tw.set_num_threads(threads)
                calls = (
                    tw.scatter_add(x, axis, index, src),
                    tw.scatter(x, axis, index, src),
                    tw.scatter_reduce(x, axis, index, src, "prod"),
                    tw.gather(x, axis, index),
                )
                found.add(b"".join(arrays.array(y).tobytes() for y in calls))
        finally:
            tw.set_num_threads(before)
        assert len(found) == 1


# ---- gradients ----


def gradients(ours: Any, theirs: Any, *inputs: np.ndarray) -> None:
    """Of both libraries, by all inputs."""
    a = [tw.asarray(x.copy()).requires_grad_() for x in inputs]
    b = [torch.from_numpy(x.copy()).requires_grad_() for x in inputs]
    y, z = ours(*a), theirs(*b)
    weights = np.cos(np.arange(y.size)).reshape(y.shape)
    (y * tw.asarray(weights)).sum().backward()
    (z * torch.from_numpy(weights)).sum().backward()
    for x, t in zip(a, b, strict=True):
        np.testing.assert_allclose(arrays.array(x.grad), t.grad.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_gradients_of_reductions_as_pytorch(reduce: str, include_self: bool, rng) -> None:
    index = rng.integers(0, 4, (3, 6))
    i, ti = tw.asarray(index), torch.from_numpy(index)
    pairs = [(rng.normal(size=(3, 4)), rng.normal(size=(3, 6)))]
    if include_self or reduce not in ("amax", "amin"):  # where PyTorch counts x among the winners
        ties = rng.integers(-1, 2, (3, 10)) * 1.0  # and zeros
        pairs.append((ties[:, :4].copy(), ties[:, 4:].copy()))
    for x, src in pairs:
        gradients(
            lambda x, s: tw.scatter_reduce(x, 1, i, s, reduce, include_self=include_self),
            lambda x, s: torch.scatter_reduce(x, 1, ti, s, reduce, include_self=include_self),
            x,
            src,
        )


def test_gradients_of_index_ops_as_pytorch(rng) -> None:
    index = np.array([2, 0, 3])
    i, ti = tw.asarray(index), torch.from_numpy(index)
    mask = rng.integers(0, 2, (4, 5)).astype(bool)
    m, tm = tw.asarray(mask), torch.from_numpy(mask)
    x, src, one = rng.normal(size=(4, 5)), rng.normal(size=(3, 5)), np.asarray(0.5)
    for ours, theirs, *inputs in (
        (lambda x: tw.index_select(x, 0, i), lambda x: torch.index_select(x, 0, ti), x),
        (lambda x, s: tw.index_add(x, 0, i, s, alpha=2),
         lambda x, s: torch.index_add(x, 0, ti, s, alpha=2), x, src),
        (lambda x, s: tw.index_copy(x, 0, i, s),
         lambda x, s: torch.index_copy(x, 0, ti, s), x, src),
        (lambda x, v: tw.index_fill(x, 0, i, v),
         lambda x, v: torch.index_fill(x, 0, ti, v), x, one),
        (lambda x, v: tw.masked_fill(x, m, v), lambda x, v: torch.masked_fill(x, tm, v), x, one),
        (lambda x: tw.masked_select(x, m), lambda x: torch.masked_select(x, tm), x),
        (lambda x, s: tw.select_scatter(x, s, 0, 1),
         lambda x, s: torch.select_scatter(x, s, 0, 1), x, src[0]),
        (lambda x, s: tw.slice_scatter(x, s, 0, 1),
         lambda x, s: torch.slice_scatter(x, s, 0, 1), x, src),
        (lambda x: tw.select(x, 1, -1), lambda x: torch.select(x, 1, -1), x),
        (lambda x: tw.narrow(x, 1, 1, 3), lambda x: torch.narrow(x, 1, 1, 3), x),
    ):  # fmt: skip
        gradients(ours, theirs, *inputs)


def test_only_what_stays_gets_a_gradient() -> None:
    index = tw.asarray([1, 0, 1, 1])
    x, src = tw.zeros((3,)).requires_grad_(), tw.arange(4.0).requires_grad_()
    y = tw.scatter(x, 0, index, src)
    assert y.tolist() == [1, 3, 0]
    y.sum().backward()
    assert (x.grad.tolist(), src.grad.tolist()) == ([0, 0, 1], [0, 1, 0, 1])
    value = tw.asarray(2.0).requires_grad_()
    tw.index_fill(tw.zeros((3,)), 0, index, value).sum().backward()
    assert value.grad.tolist() == 2


def test_second_gradients_of_products(rng) -> None:
    index = tw.asarray([[0, 2, 2, 1], [1, 1, 0, 0]])
    x, src = (tw.asarray(rng.normal(size=s)).requires_grad_() for s in ((2, 3), (2, 4)))
    assert tw.gradgradcheck(lambda x, s: tw.scatter_reduce(x, 1, index, s, "prod"), (x, src))


@pytest.mark.parametrize("dtype", [tw.float16, tw.bfloat16])
def test_gradients_of_products_of_16_bits_reach_as_far_as_the_type(dtype) -> None:
    x = tw.asarray([300.0, 0.5, 2.0]).astype(dtype).requires_grad_()
    src = tw.asarray([200.0, 200.0, 4.0]).astype(dtype).requires_grad_()
    y = tw.scatter_reduce(x, 0, tw.asarray([1, 1, 2]), src, "prod")
    g = tw.asarray([300.0, 2.0, 300.0]).astype(dtype)
    dx, dsrc = tw.grad(y, [x, src], g)
    # 300 beside a product of none; 2 * 200 * 200 is beyond float16, 2 * 0.5 * 200 is not.
    assert dx.tolist() == [300.0, math.inf if dtype == tw.float16 else dx[1].item(), 1200.0]
    assert dsrc.tolist() == [200.0, 200.0, 600.0]


# ---- in place ----


def test_methods_that_write_in_place(rng) -> None:
    index, rows = tw.asarray([[0, 2], [1, 0]]), tw.asarray([1, 0])
    src, x = tw.asarray(rng.normal(size=(2, 2))), tw.asarray(rng.normal(size=(2, 3)))
    mask, part = x > 0, tw.asarray(rng.normal(size=(2, 3)))
    for name, *arguments in (
        ("scatter", 1, index, src),
        ("scatter", 1, index, 2.0),
        ("scatter_add", 1, index, src),
        ("index_add", 0, rows, part),
        ("index_copy", 0, rows, part),
        ("index_fill", 0, rows, 3.0),
        ("masked_fill", mask, -tw.inf),
        ("masked_scatter", mask, part),
    ):
        y, window = x.copy(), None
        window = y[0]
        assert getattr(y, f"{name}_")(*arguments) is y
        expected = getattr(tw, name)(x, *arguments)
        np.testing.assert_array_equal(arrays.array(y), arrays.array(expected))
        np.testing.assert_array_equal(arrays.array(window), arrays.array(expected)[0])


def test_in_place_methods_are_recorded_and_refused_as_others() -> None:
    x = tw.ones((3,)).requires_grad_()
    with pytest.raises(RuntimeError, match="leaf"):
        x.scatter_add_(0, tw.asarray([0]), 1.0)
    src = tw.asarray([2.0, 3.0]).requires_grad_()
    y = x * 2
    y.scatter_add_(dim=0, index=tw.asarray([0, 0]), src=src)
    (y * y).sum().backward()
    assert (x.grad.tolist(), src.grad.tolist()) == ([28, 8, 8], [14, 14])
    with pytest.raises(ValueError, match="shape"):
        tw.ones((3,)).masked_fill_(tw.ones((2, 3)) > 0, 0.0)
    with pytest.raises(TypeError):
        tw.ones((3,)).scatter_add_(0, tw.asarray([0]))


# ---- index_put ----


def test_index_put_as_pytorch(rng) -> None:
    x, t = both(rng.normal(size=(4, 5, 3)))
    i, ti = both(np.array([[0, 3], [2, 0]]))
    j, tj = both(np.array([1, 4]))
    mask, tm = both(rng.integers(0, 2, (4, 5)).astype(bool))
    for ours, theirs, shape in (
        ([i], [ti], (2, 2, 5, 3)),
        ([i, j], [ti, tj], (2, 2, 3)),
        ([i, j], [ti, tj], (3,)),
        ([mask], [tm], (3,)),
        ([mask], [tm], ()),
    ):
        values, tv = both(rng.normal(size=shape))
        y = tw.index_put(x, ours, values, accumulate=True)
        np.testing.assert_allclose(
            arrays.array(y), torch.index_put(t, theirs, tv, accumulate=True).numpy(), rtol=1e-12
        )
        equal(tw.index_put(x, ours, 2.5), torch.index_put(t, theirs, torch.tensor(2.5).double()))
    leaf = tw.asarray(rng.normal(size=(3,))).requires_grad_()
    again = tw.index_put(x, [tw.asarray([1, 1])], tw.ones((2, 5, 3), dtype=tw.float64) * leaf, True)
    again.sum().backward()
    assert leaf.grad.tolist() == [10, 10, 10]


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put_in_place_as_pytorch(rng, accumulate: bool) -> None:
    a, v = rng.normal(size=(4, 3)), rng.normal(size=5)
    places = [0, 1, 0, -1, 0], [2, 1, 2, 0, 2] if accumulate else [2, 1, 0, 0, 1]
    results = []
    for module in (tw, torch):
        values = module.asarray(v).requires_grad_()
        x = module.asarray(a) * 1
        key = tuple(module.asarray(each) for each in places)
        assert x[:, :].index_put_(key, values * 2, accumulate=accumulate) is not None
        y = x * 1
        assert x.index_put_(key, values.square(), accumulate) is x
        (x * y).sum().backward()
        results.append([np.asarray(each.detach()) for each in (x, y, values.grad)])
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    x = tw.zeros((3, 4), dtype=tw.int64)
    x[:, ::2].index_put_((tw.asarray([0, 0]),), tw.asarray(1), accumulate=True)
    assert x.tolist() == [[2, 0, 2, 0], [0] * 4, [0] * 4]
    x.index_put_((x > 0,), 7)
    assert x[0].tolist() == [7, 0, 7, 0]
    with pytest.raises(RuntimeError, match="leaf"):
        tw.ones(3, requires_grad=True).index_put_((tw.asarray([0]),), 1.0, accumulate)
    with pytest.raises(TypeError, match=r"index_put_?: indices must be tensors"):
        tw.ones(3).index_put_([[0]], 1.0, accumulate)


def test_sums_of_many_values_for_a_place_have_the_same_bits(rng) -> None:
    places, values = tw.asarray(rng.integers(0, 50, 100_000)), tw.asarray(rng.normal(size=100_000))
    sums = [tw.zeros(50, dtype=tw.float64).index_put_((places,), values, True) for _ in range(3)]
    assert sums[0].tolist() == sums[1].tolist() == sums[2].tolist()


def test_index_put_refuses() -> None:
    x = tw.zeros((3, 2))
    for call, error in (
        (lambda: tw.index_put(x, [tw.asarray([3])], 1.0), IndexError),
        (lambda: tw.index_put(x, [tw.asarray([0.5])], 1.0), IndexError),
        (lambda: tw.index_put(x, [tw.asarray([0])], tw.ones((3,))), ValueError),
        (lambda: tw.index_put(x, [tw.asarray([0])], tw.ones((2,), dtype=tw.float64)), TypeError),
        (lambda: tw.index_put(x, [None, tw.asarray([0])], 1.0), TypeError),
    ):
        with pytest.raises(error):
            call()
    assert x.tolist() == [[0, 0]] * 3


# ---- parts of an axis, and take_along_axis ----


def test_parts_of_an_axis_are_views(rng) -> None:
    x = tw.zeros((3, 4))
    tw.select(x, 1, 2).fill_(1)
    x.narrow(dim=0, start=-1, length=1).fill_(2)
    assert x.tolist() == [[0, 0, 1, 0], [0, 0, 1, 0], [2, 2, 2, 2]]
    assert x.select(0, 0).shape == (4,)
    assert tw.narrow(x, 1, 4, 0).shape == (3, 0)


def test_slice_scatter_as_pytorch(rng) -> None:
    x, t = both(rng.normal(size=(7, 3)))
    for start, end, step in ((None, None, 1), (2, None, 2), (-3, -1, 1), (None, 100, 3), (5, 2, 1)):
        part = x[slice(start, end, step)]
        src, ts = both(rng.normal(size=part.shape))
        expected = torch.slice_scatter(t, ts, 0, start, max(end, start) if end == 2 else end, step)
        equal(tw.slice_scatter(x, src, 0, start, end, step), expected)


def test_take_along_axis_takes_what_argsort_gives(rng) -> None:
    x = rng.normal(size=(3, 5))
    order = np.argsort(x, 1)
    y = tw.take_along_axis(tw.asarray(x), tw.asarray(order))
    np.testing.assert_array_equal(arrays.array(y), np.sort(x, 1))
    one = tw.take_along_axis(tw.asarray(x), tw.asarray([[-1]]), axis=0)
    np.testing.assert_array_equal(arrays.array(one), x[-1:])
    with pytest.raises(ValueError, match="at least one"):
        tw.take_along_axis(tw.ones(()), tw.asarray(0))


def test_the_largest_row_of_axes() -> None:
    """More axes than fit a header."""
    shape = (2, 1) * 12
    x = tw.arange(2.0**12).reshape(shape)
    index = tw.zeros(shape, dtype=tw.int64)
    y = tw.scatter_add(x, 5, index, x)
    z = tw.gather(x, -2, index)
    assert y.shape == z.shape == shape
    assert z.reshape(-1).tolist()[:4] == [0, 0, 2, 2]
