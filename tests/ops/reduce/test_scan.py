"""Running sums and their relatives at the edges, against NumPy and PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import arrays

import tilewright as tw

FLOATS = ("float32", "float64")
SHAPES = ((), (1,), (7,), (0,), (3, 0, 2), (0, 4), (2, 3, 4), (5, 1, 3), (70_001,), (2, 40_000))
AXES = pytest.mark.parametrize("shape", SHAPES, ids=str)


def both(x: np.ndarray) -> tuple[tw.Tensor, torch.Tensor]:
    return tw.asarray(x.copy()), torch.from_numpy(x.copy())


def axes_of(shape: tuple[int, ...]) -> range:
    rank = max(len(shape), 1)
    return range(-rank, rank)


def close(y: tw.Tensor, z: torch.Tensor, tolerance: float = 1e-6) -> None:
    assert y.shape == tuple(z.shape)
    assert str(y.dtype) == str(z.dtype).removeprefix("torch.")
    np.testing.assert_allclose(
        arrays.array(y), z.detach().numpy(), rtol=tolerance, atol=tolerance, equal_nan=True
    )


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.asarray(rng.normal(size=shape)).astype(dtype)


# ---- values ----


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp"])
@AXES
def test_as_pytorch_along_every_axis(name: str, shape, dtype: str, rng, isa: str) -> None:
    for axis in axes_of(shape):
        x, t = both(numbers(rng, shape, dtype))
        for y in (getattr(tw, name)(x, dim=axis), getattr(x, name)(axis)):
            close(y, getattr(torch, name)(t, axis), 1e-4 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "uint8", "bool"])
@AXES
def test_extremes_and_places_as_pytorch(name: str, dtype: str, shape, rng) -> None:
    for axis in axes_of(shape):
        x = np.asarray(rng.integers(0, 5, shape)).astype(dtype)  # many are equal
        if dtype in FLOATS and x.size > 3:
            x.reshape(-1)[rng.integers(0, x.size, 2)] = np.nan
        ours, theirs = both(x)
        y, places = getattr(ours, name)(dim=axis)
        z, expected = getattr(torch, name)(theirs, axis)
        np.testing.assert_array_equal(arrays.array(y), z.numpy())
        np.testing.assert_array_equal(arrays.array(places), expected.numpy())
        assert (places.dtype, y.shape) == (tw.int64, ours.shape)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_default_dtypes_of_the_standard(name: str) -> None:
    function = getattr(tw, name)
    for dtype in ("bool", "int8", "int16", "int32", "int64"):
        assert function(tw.ones((3,), dtype=getattr(tw, dtype))).dtype == tw.int64
    for dtype in ("uint8", "uint16", "uint32", "uint64"):
        assert function(tw.ones((3,), dtype=getattr(tw, dtype))).dtype == tw.uint64
    for dtype in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128"):
        assert function(tw.ones((3,), dtype=getattr(tw, dtype))).dtype == getattr(tw, dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "float64"])
def test_a_dtype_that_is_asked_for(dtype: str, rng) -> None:
    x = rng.integers(-100, 100, (4, 300))
    y = tw.cumulative_sum(tw.asarray(x), axis=1, dtype=getattr(tw, dtype))
    assert str(y.dtype) == dtype
    np.testing.assert_array_equal(arrays.array(y), x.astype(dtype).cumsum(1, dtype=dtype))
    z = tw.cumulative_prod(tw.asarray(x), axis=1, dtype=getattr(tw, dtype))
    if dtype != "float64":
        np.testing.assert_array_equal(arrays.array(z), x.astype(dtype).cumprod(1, dtype=dtype))


def test_the_initial_value() -> None:
    x = tw.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert tw.cumulative_sum(x, axis=0, include_initial=True).tolist() == [[0, 0], [1, 2], [4, 6]]
    assert tw.cumulative_prod(x, axis=1, include_initial=True).tolist() == [[1, 1, 2], [1, 3, 12]]
    empty = tw.cumulative_sum(tw.zeros((2, 0)), axis=1, include_initial=True)
    assert empty.tolist() == [[0], [0]]
    whole = tw.cumulative_prod(tw.asarray([2, 3]), include_initial=True)
    assert (whole.tolist(), whole.dtype) == ([1, 2, 6], tw.int64)
    with pytest.raises(ValueError, match="include_initial needs at least one dimension"):
        tw.cumulative_sum(tw.ones(()), include_initial=True)


def test_the_only_axis_may_be_left_out() -> None:
    assert tw.cumulative_sum(tw.asarray([1, 2, 3])).tolist() == [1, 3, 6]
    assert tw.cumsum(tw.asarray(5)).tolist() == 5
    assert np.cumsum(tw.asarray([1.0, 2.0])).tolist() == [1, 3]
    assert np.cumsum(tw.ones((2, 2))).tolist() == [1, 2, 3, 4]  # all of them, in NumPy


def test_infinities_nan_and_zeros_of_both_signs() -> None:
    x = [-0.0, -0.0, 1.0, np.inf, 2.0, -np.inf, 3.0, np.nan, 1.0] * 3
    for dtype in FLOATS:
        ours, theirs = both(np.array(x, dtype))
        for name in ("cumsum", "cumprod", "logcumsumexp"):
            close(getattr(tw, name)(ours, 0), getattr(torch, name)(theirs, 0))
        assert np.signbit(arrays.array(ours.cumsum(0)))[:2].all()


def test_long_float32_sums_keep_their_digits(rng) -> None:
    x = rng.random(1_000_003).astype(np.float32)
    y = arrays.array(tw.cumsum(tw.asarray(x), 0)).astype(np.float64)
    exact = np.cumsum(x.astype(np.float64))
    assert (np.abs(y - exact) <= 0.51 * np.spacing(exact.astype(np.float32))).all()


def test_products_within_the_range_are_not_lost_on_the_way() -> None:
    for dtype, big in (("float64", 1e200), ("float32", 1e30)):
        x = np.array([big, 1 / big, 1 / big, big, 1 / big, big, big, 1 / big, 1] * 2, dtype)
        expected = np.cumprod(x.astype(np.longdouble))
        np.testing.assert_allclose(
            arrays.array(tw.cumprod(tw.asarray(x), 0)), expected.astype(dtype), rtol=1e-6
        )


def test_log_sums_of_small_beside_large_numbers() -> None:
    x = tw.asarray([-1000.0, 0.0, -2000.0, 1000.0])
    assert tw.logcumsumexp(x, 0).tolist() == [-1000.0, 0.0, 0.0, 1000.0]
    infinite = tw.full((3,), -tw.inf)
    assert tw.logcumsumexp(infinite, 0).tolist() == [-tw.inf] * 3


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp", "cummax"])
@pytest.mark.parametrize("shape", [(300_001,), (3, 100_000), (500, 700), (3, 1000, 5)], ids=str)
def test_the_same_bits_with_any_number_of_threads(name: str, shape, rng) -> None:
    x = tw.asarray(1 + 1e-4 * rng.normal(size=shape), dtype=tw.float32)
    before = tw.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3, 7):
            tw.set_num_threads(threads)
            for axis in range(len(shape)):
                y = getattr(tw, name)(x, axis)
                found.append(arrays.array(y[0] if isinstance(y, tuple) else y).tobytes())
    finally:
        tw.set_num_threads(before)
    assert len(set(found)) == len(shape)


# ---- differences ----


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
def test_differences_as_numpy(dtype: str, rng) -> None:
    for shape in ((5,), (3, 4), (2, 0, 3), (1, 2, 1)):
        x, first = (np.asarray(rng.integers(0, 9, shape)).astype(dtype) for _ in range(2))
        for axis in range(-len(shape), len(shape)):
            for n in (0, 1, 2, 6):
                y = tw.diff(tw.asarray(x), n=n, axis=axis)
                np.testing.assert_array_equal(arrays.array(y), np.diff(x, n, axis))
            both_ends = tw.diff(
                tw.asarray(x), axis=axis, prepend=tw.asarray(first), append=tw.asarray(first)
            )
            expected = np.diff(x, axis=axis, prepend=first, append=first)
            np.testing.assert_array_equal(arrays.array(both_ends), expected)


def test_a_difference_of_order_0_is_a_copy() -> None:
    x = tw.ones((3,))
    y = tw.diff(x, 0)
    y.fill_(2)
    assert x.tolist() == [1, 1, 1]


# ---- gradients ----


def gradients(name: str, x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    ours, theirs = both(x)
    ours.requires_grad_()
    theirs.requires_grad_()
    y, z = getattr(tw, name)(ours, axis), getattr(torch, name)(theirs, axis)
    if isinstance(y, tuple):
        y, z = y[0], z[0]
    weights = np.cos(np.arange(x.size)).reshape(x.shape).astype(x.dtype)
    (y * tw.asarray(weights)).sum().backward()
    (z * torch.from_numpy(weights)).sum().backward()
    return arrays.array(ours.grad), theirs.grad.numpy()


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"])
def test_gradients_as_pytorch(name: str, rng) -> None:
    for shape in ((), (6,), (0,), (3, 4), (2, 0, 3), (2, 3, 4), (70_000,)):
        for axis in axes_of(shape):
            x = numbers(rng, shape, "float64")
            if x.size > 100:
                x = x / 20 + 1 if name == "cumprod" else x
                x = np.clip(x, 0.999, 1.001) if name == "cumprod" else x
            got, expected = gradients(name, x, axis)
            np.testing.assert_allclose(got, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("zeros", [(0,), (2,), (4,), (1, 3), (0, 1, 2, 3, 4)])
def test_gradients_of_products_with_zeros(zeros: tuple[int, ...]) -> None:
    x = np.array([1.5, -2.0, 0.5, 3.0, -1.0])
    x[list(zeros)] = 0
    got, expected = gradients("cumprod", x, 0)
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    t = tw.asarray(x).requires_grad_()
    assert tw.gradgradcheck(lambda x: tw.cumprod(x, 0), (t,))


def test_gradients_of_log_sums_at_the_ends_of_the_range() -> None:
    x = tw.asarray([-tw.inf, -1000.0, 0.0, 1000.0, 5.0]).requires_grad_()
    tw.logcumsumexp(x, 0)[1:].sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 2, 0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_types_are_rounded_once(dtype: str, rng) -> None:
    x = arrays.rounded(rng.uniform(0.9, 1.1, (2, 500)), dtype)
    t = arrays.tensor(x, dtype)
    for ours, theirs in ((tw.cumsum, np.cumsum), (tw.cumprod, np.cumprod)):
        y = ours(t, 1)
        assert str(y.dtype) == dtype
        expected = theirs(x.astype(np.float64), 1)
        assert arrays.error_in_ulps(arrays.array(y), expected, expected, dtype) <= 0.51
    leaf = t.requires_grad_()
    tw.cumsum(leaf, 1).sum().backward()
    assert leaf.grad.dtype == t.dtype


# ---- errors ----


def test_wrong_arguments() -> None:
    x = tw.ones((2, 3))
    with pytest.raises(TypeError, match="cumsum: axis is needed for 2 dimensions"):
        tw.cumsum(x)
    for name in ("cummax", "cummin", "logcumsumexp"):
        with pytest.raises(TypeError):
            getattr(tw, name)(x)
        with pytest.raises(IndexError):
            getattr(tw, name)(tw.ones(()), 1)
    with pytest.raises(TypeError):
        tw.cumulative_sum(x, axis=(0, 1))
    with pytest.raises(TypeError):
        tw.cumulative_sum([1.0, 2.0])
    with pytest.raises(TypeError):
        tw.cumulative_sum(tw.full((2,), 1j), dtype=tw.float32)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod", "logcumsumexp"])
@pytest.mark.parametrize("shape", [(40, 33), (3, 20, 17), (2, 3, 4, 65)])
def test_memory_in_another_order_of_axes(name: str, shape: tuple[int, ...], isa: str, rng) -> None:
    a = rng.uniform(0.5, 1.5, shape)
    reference = {
        "cumulative_sum": np.cumsum,
        "cumulative_prod": np.cumprod,
        "logcumsumexp": np.logaddexp.accumulate,
    }[name]
    rank = len(shape)
    for order in (tuple(range(rank))[::-1], (rank - 1, *range(rank - 1))):
        lying = np.ascontiguousarray(a.transpose(order))
        x = tw.asarray(lying).permute(*np.argsort(order).tolist()).requires_grad_()
        for axis in range(rank):
            y = getattr(tw, name)(x, axis=axis)
            np.testing.assert_allclose(y.detach().numpy(), reference(a, axis=axis), rtol=1e-12)
            weights = rng.normal(size=shape)
            (got,) = tw.grad((y * tw.asarray(weights)).sum(), [x])
            plain = tw.asarray(a).requires_grad_()
            z = getattr(tw, name)(plain, axis=axis)
            (want,) = tw.grad((z * tw.asarray(weights)).sum(), [plain])
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-10)
    whole = rng.integers(-(2**31), 2**31, shape[::-1]).astype(np.int32)
    for axis in range(rank):
        got = tw.cumulative_sum(tw.asarray(whole).T if rank == 2 else tw.asarray(whole), axis=axis)
        want = np.cumsum(whole.T if rank == 2 else whole, axis=axis, dtype=np.int64)
        np.testing.assert_array_equal(got.numpy(), want)
        narrow = tw.cumulative_sum(tw.asarray(whole), axis=axis, dtype=tw.int32).numpy()
        np.testing.assert_array_equal(narrow, np.cumsum(whole, axis=axis, dtype=np.int32))
