"""Sorts, selections, searches and counts, against PyTorch and NumPy, and at their edges."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from cases import arrays
from subcases import each

import tilewright as tw

torch = pytest.importorskip("torch")

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", *arrays.FLOATS)
# Beside insertion, all digits, rows shared between threads.
LENGTHS = (1, 2, 3, 39, 40, 41, 64, 257, 1000)


def data(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """All magnitudes, equal elements, zeros of both signs, NaN and infinities."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype not in arrays.FLOATS:
        info = np.iinfo(dtype)
        wide = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        few = rng.integers(0, 5, shape).astype(dtype)
        return np.where(rng.integers(0, 2, shape).astype(bool), wide, few)
    x = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)
    odd = rng.choice([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan], shape)
    return arrays.rounded(np.where(rng.integers(0, 3, shape) == 0, odd, x), dtype)


def theirs(x: np.ndarray, dtype: str) -> Any:
    return torch.tensor(x).to(getattr(torch, dtype))


def same(y: tw.Tensor, expected: Any) -> None:
    """The same numbers, NaN where there is one, and zeros of the same sign."""
    if isinstance(expected, torch.Tensor):
        expected = expected.float() if expected.dtype == torch.bfloat16 else expected
        expected = expected.numpy()
    got = arrays.array(y)
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)
    if got.dtype.kind == "f":
        real = ~np.isnan(got)
        np.testing.assert_array_equal(np.signbit(got[real]), np.signbit(expected[real]))


def unsigned_too() -> tuple[str, ...]:
    return (*DTYPES, "uint16", "uint32", "uint64")


REDUCING = ("max", "min", "median", "nanmedian", "mode", "kthvalue")


def plain(x: Any) -> np.ndarray:
    return (x.float() if x.dtype == torch.bfloat16 else x).numpy()


# ---- sorts ----


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", unsigned_too())
def test_sort_and_argsort(dtype: str, descending: bool, rng) -> None:
    shapes = [(n,) for n in LENGTHS] + [(3, 50), (50, 3), (2, 45, 3), (0,), (0, 4), (4, 0), ()]
    for shape in shapes:
        x = data(rng, dtype, shape)
        for axis in {-1, 0, len(shape) // 2} if shape else {-1}:
            made = arrays.tensor(x, dtype)
            places = tw.argsort(made, axis=axis, descending=descending)
            assert places.dtype == tw.int64
            if dtype.startswith("uint") and dtype != "uint8":  # which PyTorch does not sort
                wide = torch.tensor(x.astype(np.float64)).to(torch.float64)
                if dtype == "uint64":
                    wide = torch.tensor((x ^ np.uint64(1 << 63)).view(np.int64))
                expected = torch.sort(wide, dim=axis, descending=descending, stable=True).indices
                values = np.take_along_axis(x, expected.numpy(), axis) if shape else x
            else:
                values, expected = torch.sort(
                    theirs(x, dtype), dim=axis, descending=descending, stable=True
                )
            same(places, expected)
            same(tw.sort(made, axis=axis, descending=descending), values)
            same(made.sort(axis=axis, descending=descending, stable=False), values)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_rows_side_by_side(dtype: str, isa: str, rng) -> None:
    for rows in (4, 16, 17, 70):
        for n in (0, 1, 2, 3, 5, 8, 31, 33, 100, 1024, 1025):
            x = data(rng, dtype, (rows, n))
            made = arrays.tensor(x, dtype)
            expected = np.argsort(x, axis=1, kind="stable")
            same(tw.argsort(made), expected)
            same(tw.sort(made), np.take_along_axis(x, expected, 1))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64", "float64"])
@pytest.mark.parametrize(
    "shape",
    [
        (1, 1025),
        (1, 8192),
        (1, 8193),
        (3, 3000),
        (66, 1025),
        (66, 1366),
        (70, 2048),
        (17, 3000),
        (17, 8192),
    ],
    ids=str,
)
def test_networks_of_longer_rows(dtype: str, shape: tuple[int, int], isa: str, rng) -> None:
    x = data(rng, dtype, shape)
    made = arrays.tensor(x, dtype)
    for descending in (False, True):
        values, expected = torch.sort(theirs(x, dtype), dim=1, descending=descending, stable=True)
        same(tw.argsort(made, descending=descending), expected)
        same(tw.sort(made, descending=descending), values)


@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float32", "int64", "float64"])
def test_networks_of_every_length(dtype: str, isa: str, rng) -> None:
    """Powers of two, what is filled up to them and what is not; a row alone, and beside others."""
    lengths = [
        *range(1, 20),
        31,
        32,
        33,
        50,
        52,
        63,
        64,
        65,
        127,
        128,
        129,
        170,  # filled up from 171 on
        171,
        200,
        255,
        256,
        820,
        1023,
    ]
    for n in lengths:
        for rows in (1, 5):
            x = data(rng, dtype, (rows, n))
            made = arrays.tensor(x, dtype)
            for descending in (False, True):
                values, expected = torch.sort(
                    theirs(x, dtype), dim=1, descending=descending, stable=True
                )
                same(tw.argsort(made, descending=descending), expected)
                same(tw.sort(made, descending=descending), values)


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "uint8"])
@pytest.mark.parametrize("largest", [True, False])
def test_few_of_rows_of_whole_blocks(dtype: str, isa: str, largest: bool, rng) -> None:
    """The first of blocks' least elements, where many are equal, NaN, or in one block alone."""
    rising = np.arange(1024).astype(dtype)
    for x in (
        data(rng, dtype, (6, 1024)),
        np.stack([rising, rising[::-1], np.ones(1024, dtype), np.repeat(rising[:32], 32)]),
    ):
        order = tw.argsort(arrays.tensor(x, dtype), axis=1, descending=largest).numpy()
        for k in (1, 2, 5, 16):
            values, places = tw.topk(arrays.tensor(x, dtype), k, largest=largest)
            np.testing.assert_array_equal(places.numpy(), order[:, :k])
            same(values, np.take_along_axis(x, order[:, :k], 1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int64"])
def test_long_rows_on_any_number_of_threads(dtype: str, rng) -> None:
    x = data(rng, dtype, (300_001,))
    for part in (x, x[:131072], np.sort(x), x[:1].repeat(200_000)):
        made = arrays.tensor(part, dtype)
        expected = np.argsort(part, kind="stable")
        before = tw.get_num_threads()
        try:
            for threads in (1, 2, 3):
                tw.set_num_threads(threads)
                same(tw.argsort(made), expected)
                same(tw.sort(made), part[expected])
        finally:
            tw.set_num_threads(before)


def test_sort_of_views_and_zero_dimensions(rng) -> None:
    x = data(rng, "float32", (40, 60))
    made = tw.asarray(x)
    for view, expected in (
        (made.T, x.T),
        (made[::3, ::-2], x[::3, ::-2]),
        (tw.broadcast_to(made[0], (5, 60)), np.broadcast_to(x[0], (5, 60))),
    ):
        for axis in (0, 1):
            same(tw.sort(view, axis=axis), np.sort(expected, axis, kind="stable"))
            same(tw.argsort(view, axis=axis), np.argsort(expected, axis, kind="stable"))
    assert tw.sort(tw.asarray(3.0)).tolist() == 3.0
    assert tw.argsort(tw.asarray(3.0), axis=0).tolist() == 0
    with pytest.raises(IndexError, match="sort: axis 1"):
        tw.sort(tw.asarray(3.0), axis=1)


def test_results_are_fresh(rng) -> None:
    x = tw.asarray([3.0, 1.0])
    for call in (tw.sort, lambda x: tw.topk(x, 2)[0], lambda x: tw.sort(x[None], axis=0)):
        y = call(x)
        y.fill_(7)
        assert x.tolist() == [3.0, 1.0]
        assert y.is_contiguous


def test_spellings_of_sort() -> None:
    x = tw.asarray([[3.0, 1.0]])
    values, indices = x.sort(dim=1, descending=False)
    assert (values.tolist(), indices.tolist()) == ([[1, 3]], [[1, 0]])
    assert x.sort(axis=1).tolist() == [[1, 3]]
    assert x.argsort(dim=1).tolist() == [[1, 0]]
    with pytest.raises(TypeError):
        x.sort(1)


def test_gradients_of_equal_elements_go_where_the_values_come_from() -> None:
    x = tw.tensor([2.0, 1.0, 2.0], requires_grad=True)
    (tw.sort(x) * tw.asarray([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [10.0, 1.0, 100.0]


# ---- values and indices ----


@each("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("max", {}),
        ("min", {}),
        ("sort", {"stable": True}),
        ("sort", {"stable": True, "descending": True}),
        ("median", {}),
        ("nanmedian", {}),
        ("mode", {}),
        ("cummax", {}),
        ("cummin", {}),
        ("kthvalue", {"k": 2}),
        ("topk", {"k": 2}),
    ],
    ids=lambda part: part if isinstance(part, str) else "-".join(part),
)
def test_pairs_are_pytorchs(name: str, options: dict[str, Any], dtype: str, rng) -> None:
    if dtype == "bool" and name in ("median", "nanmedian", "kthvalue", "topk"):
        dtype = "uint8"  # PyTorch has them not for bool
    for shape in ((40,), (5, 7), (2, 30, 3)):
        x = data(rng, dtype, shape)
        if name == "mode":  # of which PyTorch orders NaN by their places
            x = np.nan_to_num(x)
        for axis in range(-1, len(shape)):
            for kept in ({}, {"keepdim": True}) if name in REDUCING else ({},):
                expected = getattr(torch, name)(theirs(x, dtype), dim=axis, **kept, **options)
                y = arrays.tensor(x, dtype)
                pair = getattr(y, name)(dim=axis, **kept, **options)
                assert type(pair) is tw._core.ValuesAndIndices
                np.testing.assert_array_equal(arrays.array(pair.values), plain(expected.values))
                assert pair.indices.dtype == tw.int64
                # Of equal elements PyTorch takes any, but where it says which.
                if name in ("max", "min", "sort", "cummax", "cummin"):
                    same(pair.indices, expected.indices)
                whole = (
                    pair.indices if kept or name not in REDUCING else pair.indices.unsqueeze(axis)
                )
                taken = tw.take_along_axis(y, whole, axis=axis)
                np.testing.assert_array_equal(
                    arrays.array(taken).reshape(pair.values.shape), arrays.array(pair.values)
                )


@pytest.mark.parametrize("name", ["max", "min", "sort", "median", "nanmedian", "mode", "cummax"])
def test_gradients_of_pairs_are_pytorchs(name: str, rng) -> None:
    x, g = rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 4, 5))
    for axis in range(3):
        got = []
        for library in (torch, tw):
            leaf = library.asarray(x.copy()).requires_grad_()
            values = getattr(leaf, name)(dim=axis).values
            weights = g if values.ndim == 3 else np.take(g, 0, axis)
            (values * values * library.asarray(weights)).sum().backward()
            got.append(np.asarray(leaf.grad))
        np.testing.assert_allclose(got[1], got[0], rtol=1e-14)


def test_mode_of_rows() -> None:
    x = tw.asarray([[3, 1, 2, 1, 3], [5, 5, 5, 4, 4]])
    values, indices = tw.mode(x)
    assert (values.tolist(), indices.tolist()) == ([1, 5], [3, 2])
    values, indices = tw.mode(tw.asarray(7.0))
    assert (values.item(), indices.item()) == (7.0, 0)
    nan = tw.asarray([np.nan, 1.0, np.nan])  # which differ from each other
    assert tw.mode(nan).values.item() == 1.0
    with pytest.raises(IndexError, match=r"^mode: axis 2 is out of range for 2 dim"):
        tw.mode(x, 2)
    with pytest.raises(ValueError, match=r"^mode: no elements along axis -1"):
        tw.mode(tw.ones((2, 0)))
    with pytest.raises(TypeError, match="complex numbers have no order"):
        tw.mode(tw.ones(2, dtype=tw.complex64))


# ---- the first of them ----


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", unsigned_too())
def test_topk_and_kthvalue_are_parts_of_the_order(dtype: str, largest: bool, rng) -> None:
    for shape in ((1,), (40,), (3, 700), (700, 3), (2, 30, 4)):
        x = arrays.tensor(data(rng, dtype, shape), dtype)
        for axis in range(-1, len(shape)):
            n = shape[axis]
            places = arrays.array(tw.argsort(x, axis=axis, descending=largest))
            for k in {0, 1, n // 3, n - 1, n}:
                values, indices = tw.topk(x, k, axis, largest)
                first = np.take(places, range(k), axis)
                same(indices, first)
                same(values, np.take_along_axis(arrays.array(x), first, axis))
                loose = tw.topk(x, k, axis, largest, sorted=False)[1]
                same(tw.sort(loose, axis=axis), np.sort(first, axis))
            if not largest:
                for k in {1, n // 2 + 1, n}:
                    for keepdims in (False, True):
                        values, indices = tw.kthvalue(x, k, axis, keepdims)
                        at = np.take(places, [k - 1], axis)
                        found = np.take_along_axis(arrays.array(x), at, axis)
                        same(indices, at if keepdims else at.squeeze(axis))
                        same(values, found if keepdims else found.squeeze(axis))


@pytest.mark.parametrize("dtype", unsigned_too())
def test_selection_in_rows_long_enough_for_counts_of_digits(dtype: str, rng) -> None:
    n = 5000
    spread = data(rng, dtype, (n,))
    few = rng.choice(spread[:5], n)  # so that every digit is shared
    for x in (spread, few, np.full(n, spread[0]), np.where(rng.random(n) < 0.5, spread, spread[0])):
        made = arrays.tensor(x.astype(spread.dtype), dtype)
        places = arrays.array(tw.argsort(made))
        for k in (1, 2, n // 3, n - 1, n):
            values, index = tw.kthvalue(made, k)
            assert index.item() == places[k - 1]
            same(values, arrays.array(made)[places[k - 1]])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "uint8"])
def test_topk_against_pytorch(dtype: str, rng) -> None:
    x = arrays.tensor(data(rng, dtype, (20, 3000)), dtype)
    for case in (x, tw.sort(x), tw.sort(x, descending=True)):
        for k in (1, 10, 200, 2999):
            for largest in (True, False):
                want = torch.topk(theirs(arrays.array(case), dtype), k, largest=largest).values
                got = tw.topk(case, k=k, dim=1, largest=largest)[0]
                np.testing.assert_array_equal(arrays.array(got), want.numpy())


def test_selections_of_zero_dimensions() -> None:
    x = tw.asarray(3.0)
    assert [y.tolist() for y in tw.topk(x, 1)] == [3.0, 0]
    assert [y.tolist() for y in x.kthvalue(1)] == [3.0, 0]
    assert x.median().tolist() == 3.0
    assert tw.quantile(x, 0.3).tolist() == 3.0
    assert tw.quantile(x, tw.asarray([0.3, 0.4]), 0, keepdims=True).tolist() == [3.0, 3.0]


def test_gradients_of_selections() -> None:
    x = tw.tensor([[2.0, 5.0, 2.0], [1.0, 0.0, 7.0]], requires_grad=True)
    values, places = tw.topk(x, 2)
    assert not places.requires_grad
    (values * tw.asarray([1.0, 10.0])).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[10.0, 1.0, 0.0], [10.0, 0.0, 1.0]]
    x.grad = None
    x.median().backward()
    assert x.grad.tolist() == [[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]  # both are in the middle


# ---- medians and quantiles ----


@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float16", "float32", "float64"])
def test_medians(name: str, dtype: str, rng) -> None:
    for shape in ((1,), (40,), (41,), (7, 30), (2, 5, 6)):
        whole = data(rng, dtype, shape)
        for x in (whole, np.nan_to_num(whole) if whole.dtype.kind == "f" else whole):
            made, function = arrays.tensor(x, dtype), getattr(tw, name)
            for axis in (None, *range(-1, len(shape))):
                for keepdims in (False, True):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # of rows that are NaN alone
                        want = getattr(np, name)(x, axis=axis, keepdims=keepdims)
                    got = function(made, axis, keepdims)
                    assert str(got.dtype) == (dtype if x.dtype.kind == "f" else "float32")
                    np.testing.assert_allclose(arrays.array(got), want, rtol=2e-7)


def test_medians_of_an_even_number() -> None:
    huge = tw.asarray([3e38, 3e38, -1.0, 3.2e38])
    assert huge.median().item() == np.float32(3e38)
    assert tw.asarray([-np.inf, np.inf]).median().isnan().item()
    assert tw.asarray([np.inf, 1.0, np.inf, np.inf]).median().item() == np.inf
    x = tw.tensor([[4.0, 1.0, 3.0, 2.0], [np.nan, 5.0, 7.0, np.nan]], requires_grad=True)
    y = tw.nanmedian(x, axis=1)
    assert y.tolist() == [2.5, 6.0]
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[0.0, 0.0, 0.5, 0.5], [0.0, 0.5, 0.5, 0.0]]
    assert x.detach().nanmedian(dim=1).values.tolist() == [2.0, 5.0]
    assert tw.asarray([2**31 - 1, 2**31 - 3]).median().dtype == tw.float32


def test_nothing_but_nan() -> None:
    x = tw.asarray([[np.nan, np.nan], [1.0, np.nan]])
    assert np.isnan(x.nanmedian(axis=1).tolist()).tolist() == [True, False]
    assert np.isnan(tw.nanquantile(x, 0.5, axis=1).tolist()).tolist() == [True, False]
    assert np.isnan(tw.quantile(x, 0.0, axis=1).tolist()).all()


HOW = ("linear", "lower", "higher", "midpoint", "nearest")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles(name: str, how: str, rng) -> None:
    for shape in ((1,), (11,), (6, 30), (3, 5, 8)):
        whole = rng.normal(size=shape)
        for x in (whole, np.where(rng.integers(0, 6, shape) == 0, np.nan, whole)):
            for q in (0.0, 0.37, 1.0, np.array([0.1, 0.5, 0.93])):
                for axis in (None, *range(-1, len(shape))):
                    for keepdims in (False, True):
                        want = getattr(torch, name)(
                            torch.tensor(x), torch.tensor(q, dtype=torch.float64), dim=axis,
                            keepdim=keepdims, interpolation=how,
                        )  # fmt: skip
                        shares = q if isinstance(q, float) else tw.asarray(q)
                        got = getattr(tw, name)(
                            tw.asarray(x), shares, dim=axis, keepdim=keepdims, interpolation=how
                        )
                        np.testing.assert_allclose(got.numpy(), want.numpy(), 1e-12, 1e-12)


def test_quantiles_beside_infinity() -> None:
    x = tw.asarray([np.inf, np.inf, -np.inf, 0.0, 1.0])
    assert tw.quantile(x, tw.asarray([0.0, 0.25, 1.0])).tolist() == [-np.inf, 0.0, np.inf]
    assert tw.quantile(tw.asarray([np.inf, np.inf]), 0.3).tolist() == np.inf


def test_refused_quantiles() -> None:
    x = tw.ones((4,))
    with pytest.raises(ValueError, match="q must be a number or have one axis"):
        tw.quantile(x, tw.ones((1, 1)))
    with pytest.raises(TypeError, match="q must be floating-point, got int64"):
        tw.quantile(x, tw.asarray([0]))
    with pytest.raises(ValueError, match="from 0 to 1, got nan"):
        tw.quantile(x, float("nan"))


# ---- searches ----


@pytest.mark.parametrize("dtype", DTYPES)
def test_searchsorted(dtype: str, rng) -> None:
    for n in (0, 1, 2, 15, 16, 17, 1000):
        x, v = np.sort(data(rng, dtype, (n,))), data(rng, dtype, (3, 37))
        for side in ("left", "right"):
            want = np.searchsorted(x, v, side)
            a, b = arrays.tensor(x, dtype), arrays.tensor(v, dtype)
            same(tw.searchsorted(a, b, side=side), want)
            same(tw.bucketize(b, a, right=side == "right"), want)
    shuffled = data(rng, dtype, (50,))
    a, b = arrays.tensor(shuffled, dtype), arrays.tensor(data(rng, dtype, (9,)), dtype)
    same(
        tw.searchsorted(a, b, sorter=tw.argsort(a)),
        arrays.array(tw.searchsorted(tw.sort(a), b)),
    )


def test_searchsorted_by_rows_and_numbers(rng) -> None:
    x, v = np.sort(rng.normal(size=(3, 4, 20))), rng.normal(size=(3, 4, 7))
    for right in (False, True):
        want = torch.searchsorted(torch.tensor(x), torch.tensor(v), right=right)
        same(tw.searchsorted(tw.asarray(x), tw.asarray(v), right=right), want)
    y = tw.searchsorted(tw.asarray([1, 3, 5]), 3)
    assert (y.shape, y.dtype, y.item()) == ((), tw.int64, 1)
    assert tw.searchsorted(tw.asarray([1, 3, 5]), 3.5).item() == 2
    assert tw.bucketize(3, tw.asarray([1, 3, 5]), right=True).item() == 2
    assert tw.searchsorted(tw.zeros((2, 0)), tw.zeros((2, 3))).tolist() == [[0] * 3] * 2
    big = 2**53
    assert tw.searchsorted(tw.asarray([big, big + 1]), tw.asarray([big + 1])).tolist() == [1]
    for shapes in (((2, 3), (3, 3)), ((2, 3), (2,)), ((), (2,))):
        with pytest.raises(ValueError, match="searchsorted: expected sorted elements"):
            tw.searchsorted(*(tw.zeros(s) for s in shapes))
    with pytest.raises(TypeError):
        tw.searchsorted(tw.asarray([1], dtype=tw.uint64), tw.asarray([1]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_isin(dtype: str, rng) -> None:
    x, test = data(rng, dtype, (20, 30)), data(rng, dtype, (50,))
    for invert in (False, True):
        want = np.isin(x, test, invert=invert)
        same(tw.isin(arrays.tensor(x, dtype), arrays.tensor(test, dtype), invert=invert), want)
    same(tw.isin(arrays.tensor(x, dtype), 1), np.isin(x, 1))


def test_isin_of_numbers() -> None:
    assert tw.isin(3, tw.asarray([1, 3])).item() is True
    assert tw.isin(tw.asarray([1, 2], dtype=tw.int8), 300).tolist() == [False, False]
    assert tw.isin(tw.asarray([1, 2]), tw.asarray([], dtype=tw.int64)).tolist() == [False, False]


# ---- counts ----


@pytest.mark.parametrize("dtype", unsigned_too())
def test_bincount(dtype: str, rng) -> None:
    if dtype == "bool" or dtype in arrays.FLOATS:
        with pytest.raises(TypeError, match="bincount: x must be integers"):
            tw.bincount(arrays.tensor(data(rng, dtype, (4,)), dtype))
        return
    for high, n in ((1, 9), (90, 1), (100, 1003), (127, 200_000)):
        x = rng.integers(0, high, n).astype(dtype)
        made = arrays.tensor(x, dtype)
        for least in (0, 50, 300):
            same(tw.bincount(made, minlength=least), np.bincount(x.astype(np.int64), None, least))
            same(made[::2].bincount(minlength=least), np.bincount(x[::2].astype(int), None, least))
        for type in ("float32", "float64", "float16"):
            weights = rng.integers(0, 4, n).astype(type)
            want = np.bincount(x.astype(np.int64), weights)
            if want.max() < 2000:
                got = tw.bincount(made, tw.asarray(weights))
                assert str(got.dtype) == type
                np.testing.assert_array_equal(arrays.array(got), want)
    assert tw.bincount(arrays.tensor(np.zeros(0, dtype), dtype), minlength=3).tolist() == [0, 0, 0]


def test_bincount_of_many_bins_and_threads(rng) -> None:
    before = tw.get_num_threads()
    try:
        for threads in (1, 2):
            tw.set_num_threads(threads)
            for high in (3, 1000, 5000, 10**6):
                x = rng.integers(0, high, 400_000)
                same(tw.bincount(tw.asarray(x)), np.bincount(x))
    finally:
        tw.set_num_threads(before)


def test_refused_bincounts() -> None:
    x = tw.asarray([1, 2])
    for call, text in (
        (lambda: tw.bincount(tw.asarray([1, -2])), "bincount: negative element -2"),
        (lambda: tw.bincount(tw.asarray([[1]])), "bincount: expected x"),
        (lambda: tw.bincount(x, tw.ones((3,))), "bincount: weights"),
        (lambda: tw.bincount(x, minlength=-1), "bincount: minlength is negative"),
        (lambda: tw.bincount(tw.asarray([2**64 - 1], dtype=tw.uint64)), "bincount: too large"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


def test_gradients_of_weights() -> None:
    w = tw.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = tw.bincount(tw.asarray([1, 0, 1]), w)
    assert y.tolist() == [2.0, 4.0]
    (y * tw.asarray([5.0, 7.0])).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [7.0, 5.0, 7.0]


def test_count_nonzero(rng) -> None:
    x = rng.integers(-1, 2, (3, 4, 5))
    for dtype in ("int64", "float32", "complex64", "bool"):
        made = tw.asarray(x.astype(dtype))
        for axis in (None, 0, -1, (0, 2), ()):
            want = np.count_nonzero(x, axis) if axis != () else (x != 0).astype(int)
            np.testing.assert_array_equal(tw.count_nonzero(made, axis).numpy(), want)
    assert made.count_nonzero(dim=1, keepdim=True).shape == (3, 1, 5)
    assert tw.count_nonzero(tw.asarray([np.nan, 0.0, -0.0])).item() == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_histc(dtype: str, rng) -> None:
    x = rng.normal(size=(30, 50)).astype(dtype)
    made, judge = tw.asarray(x), torch.tensor(x)
    for bins, low, high in ((100, 0, 0), (1, -1, 1), (7, -0.5, 2.5), (10, 50, 60)):
        want = torch.histc(judge, bins, low, high)
        np.testing.assert_array_equal(tw.histc(made, bins, low, high).numpy(), want.numpy())
    assert (
        tw.histc(tw.asarray([2.0, 2.0]), 4).tolist()
        == torch.histc(torch.tensor([2.0, 2.0]), 4).tolist()
    )
    assert tw.histc(tw.asarray([1.0, np.nan]), 2, 0.0, 2.0).tolist() == [0.0, 1.0]
    for odd in (np.nan, np.inf):
        with pytest.raises(ValueError, match="histc: no bins between"):
            tw.histc(tw.asarray([1.0, odd]), 4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("density", [False, True])
def test_histogram(dtype: str, density: bool, rng) -> None:
    x = rng.normal(size=(30, 50)).astype(dtype)
    weight = rng.random(size=(30, 50)).astype(dtype)
    made, judge = tw.asarray(x), torch.tensor(x)
    for bins, limits in ((10, None), (1, (-1.0, 1.0)), (9, (0.0, 0.0)), (8, (-0.5, 2.5))):
        for given in (None, weight):
            want = torch.histogram(
                judge, bins, range=limits, density=density,
                weight=None if given is None else torch.tensor(given),
            )  # fmt: skip
            got = tw.histogram(
                made, bins, range=limits, density=density,
                weight=None if given is None else tw.asarray(given),
            )  # fmt: skip
            np.testing.assert_allclose(got.hist.numpy(), want.hist.numpy(), 1e-4)
            np.testing.assert_allclose(got.bin_edges.numpy(), want.bin_edges.numpy(), 1e-5, 1e-6)
    edges = np.array([-1, 0, 0.25, 3], dtype)
    want, _ = np.histogram(x, edges, density=density)
    for given in (tw.asarray(edges), edges.tolist()):
        np.testing.assert_allclose(tw.histogram(made, given, density=density)[0].numpy(), want)


def test_edges_of_histograms() -> None:
    x = tw.asarray([0.0, 1.0, 2.0, np.nan, np.inf])
    assert tw.histogram(x, [0.0, 1.0, 2.0]).hist.tolist() == [1.0, 2.0]
    assert tw.histogram(x[:0], 2).bin_edges.tolist() == [0.0, 0.5, 1.0]
    for call, text in (
        (lambda: tw.histogram(x, 4), "no bins between"),
        (lambda: tw.histogram(x, 0), "bins must be at least 1"),
        (lambda: tw.histogram(x, [1.0]), "at least two edges"),
        (lambda: tw.histogram(x, [1.0, 0.0]), "not in order"),
        (lambda: tw.histogram(x, [0.0, 1.0], range=(0.0, 1.0)), "range is for a number of bins"),
        (lambda: tw.histogram(x, 2, weight=tw.ones((2,))), "does not fit"),
    ):
        with pytest.raises(ValueError, match=f"histogram: .*{text}"):
            call()
    with pytest.raises(TypeError, match="histogram: needs a floating-point input"):
        tw.histogram(tw.asarray([1]), 2)
    with pytest.raises(TypeError, match="histogram: x must be a Tensor, got list"):
        tw.histogram([1.0], 2)


# ---- different elements ----


@pytest.mark.parametrize("dtype", unsigned_too())
def test_unique(dtype: str, rng) -> None:
    for shape in ((), (1,), (0,), (50,), (20, 30), (2, 0)):
        x = data(rng, dtype, shape)
        made = arrays.tensor(x, dtype)
        values, indices, inverse, counts = np.unique(
            x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
        )
        got = tw.unique_all(made)
        same(got.values, values)
        same(got.indices, indices)
        same(got.inverse_indices, inverse.reshape(shape))
        same(got.counts, counts)
        assert {str(y.dtype) for y in got[1:]} == {"int64"}
        np.testing.assert_array_equal(arrays.array(tw.unique_values(made)), values)
        np.testing.assert_array_equal(arrays.array(tw.unique_counts(made).values), values)
        same(tw.unique_counts(made).counts, counts)
        same(tw.unique_inverse(made).values, values)
        same(tw.unique_inverse(made).inverse_indices, inverse.reshape(shape))
        same(tw.unique(made), values)
        assert [y.tolist() for y in tw.unique(made, return_counts=True)[1:]] == [counts.tolist()]


def test_unique_whole_numbers_at_the_ends_of_their_type() -> None:
    for dtype in ("int8", "uint8", "int64", "uint64"):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        few = [low, high], [low] * 3, [high, high - 1, high], [low, low + 2, low + 2, low]
        for x in (*few, *(x * 300 for x in few)):  # many are counted
            values, counts = np.unique(np.array(x, dtype), return_counts=True)
            got = tw.unique(tw.asarray(np.array(x, dtype)), return_counts=True)
            same(got[0], values)
            same(got[1], counts)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_unique_complex_numbers(dtype: str, rng) -> None:
    """In order of real parts, then of imaginary ones, as NumPy's."""
    parts = rng.choice([-0.0, 0.0, 1.5, -2.0, np.inf], (2, 200))
    x = np.empty(200, dtype)
    x.real, x.imag = parts
    want = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    made = tw.asarray(x.reshape(20, 10))
    got = tw.unique_all(made)
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_array_equal(ours.numpy().reshape(-1), theirs.reshape(-1))
    np.testing.assert_array_equal(tw.unique_values(made).numpy(), want[0])
    np.testing.assert_array_equal(tw.unique_counts(made).counts.numpy(), want[3])
    rows = x.reshape(100, 2)
    np.testing.assert_array_equal(tw.unique(tw.asarray(rows), axis=0), np.unique(rows, axis=0))
    nans = tw.asarray(np.array([1, np.nan, 1, complex(0, np.nan)], dtype))
    assert tw.unique_counts(nans).counts.tolist() == [2, 1, 1]


def test_unique_slices(rng) -> None:
    x = rng.integers(0, 2, (30, 3, 2))
    for axis in (0, 1, 2, -1):
        want = torch.unique(torch.tensor(x), dim=axis, return_inverse=True, return_counts=True)
        for got in (
            tw.unique(tw.asarray(x), True, True, True, axis),
            tw.unique(tw.asarray(x), return_inverse=True, return_counts=True, dim=axis),
        ):
            for ours, expected in zip(got, want, strict=True):
                same(ours, expected)
    with pytest.raises(IndexError, match="unique: axis 3 is out of range"):
        tw.unique(tw.asarray(x), axis=3)
    with pytest.raises(TypeError, match="unique: argument 'axis' given twice"):
        tw.unique(tw.asarray(x), axis=1, dim=1)
    assert tw.unique(tw.zeros((0, 2)), axis=0).shape == (0, 2)


@pytest.mark.parametrize(
    "name", ["unique", "unique_all", "unique_values", "unique_counts", "unique_inverse"]
)
def test_refused_elements(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: x must be a Tensor, got list"):
        getattr(tw, name)([1, 2])
