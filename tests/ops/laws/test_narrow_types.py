"""float16 and bfloat16: what lies between argument and result is computed in float32, so nothing
overflows that the result could hold, and only the result is rounded."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import arrays
from subcases import each

import tilewright as tw

COUNT = 70_000  # beyond float16's largest number
ROWS = {
    "squares beyond the range": [300.0, -300.0, 200.0],
    "partial sums beyond the range": [60000.0, 60000.0, -60000.0],
    "partial products beyond the range": [256.0, 256.0, 2.0**-8],
    "partial products below the range": [2.0**-14, 2.0**-14, 2.0**14],
    "more elements than float16 counts": [1.0] * COUNT,
    "two values": [1.0, 2.0] * (COUNT // 2),
    "large and close together": [10000.0, 10008.0, 10016.0],
    "all alike": [60000.0] * 100,
}


def product_gradient(x: np.ndarray) -> np.ndarray:
    if x.size > 100:  # of powers of 2
        return np.prod(x) / x
    return np.array([np.prod(np.delete(x, i)) for i in range(x.size)])


def softmax(x: np.ndarray) -> np.ndarray:
    t = np.exp(x - x.max())
    return t / t.sum()


def std_gradient(x: np.ndarray) -> np.ndarray:
    return (x - x.mean()) / (x.size * x.std()) if x.std() > 0 else 0 * x


OPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (np.sum, np.ones_like),
    "mean": (np.mean, lambda x: np.full_like(x, 1 / x.size)),
    "prod": (np.prod, product_gradient),
    "var": (np.var, lambda x: 2 * (x - x.mean()) / x.size),
    "std": (np.std, std_gradient),
    "max": (np.max, lambda x: (x == x.max()) / np.sum(x == x.max())),
    "min": (np.min, lambda x: (x == x.min()) / np.sum(x == x.min())),
    "logsumexp": (lambda x: np.log(np.sum(np.exp(x - x.max()))) + x.max(), softmax),
}


@each("dtype", arrays.HALVES)
@each("row", ROWS)
@each("name", OPS)
def test_reductions_round_the_result_alone(name: str, row: str, dtype: str) -> None:
    value, slope = OPS[name]
    x = arrays.rounded(np.array(ROWS[row]), dtype)
    wide = x.astype(np.float64)
    t = arrays.tensor(x, dtype).requires_grad_()
    y = getattr(tw, name)(t)
    with np.errstate(over="ignore"):
        expected = arrays.rounded(value(wide), dtype), arrays.rounded(slope(wide), dtype)
    (gradient,) = tw.grad(y, [t])
    for got, rounded in zip((y.detach(), gradient), expected, strict=True):
        assert str(got.dtype) == dtype
        found, want = arrays.array(got).astype(float), rounded.astype(float)
        least = arrays.smallest(dtype)
        size = np.where(np.isfinite(want), np.abs(want), 0)
        with np.errstate(invalid="ignore"):
            distance = np.abs(found - want)
        close = (found == want) | (distance <= 2 * arrays.eps(dtype) * size + least)
        assert close.all(), (found[~close][:5], want[~close][:5])


@pytest.mark.parametrize("dtype", arrays.HALVES)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_squares_of_mse_loss_may_be_larger_than_the_loss(dtype: str, reduction: str) -> None:
    x = arrays.tensor(np.array([300.0, 0.0, 0.0, 0.0], arrays.numpy_type(dtype)), dtype)
    loss = tw.mse_loss(x, tw.zeros_like(x), reduction=reduction)
    expected = 22500.0 if reduction == "mean" else 90000.0
    assert str(loss.dtype) == dtype
    assert arrays.array(loss) == arrays.rounded(np.array(expected), dtype)


def test_mse_loss_of_many_float16_numbers_has_a_gradient() -> None:
    x = tw.ones((COUNT,), dtype=tw.float16).requires_grad_()
    tw.mse_loss(x, tw.zeros_like(x)).backward()
    np.testing.assert_allclose(arrays.array(x.grad), 2 / COUNT, rtol=0.01)


def test_mse_loss_takes_floating_numbers() -> None:
    for x in (tw.ones((2,), dtype=tw.int64), tw.ones((2,), dtype=tw.complex64)):
        for reduction in ("mean", "sum", "none"):
            with pytest.raises(TypeError, match="mse_loss: needs floating-point inputs"):
                tw.mse_loss(x, x, reduction=reduction)
    assert tw.mse_loss(tw.ones((2,)), tw.zeros((2,), dtype=tw.int64)).item() == 1


# Sizes that are shared between threads, by rows or, where these are few, by parts of rows.
@pytest.mark.parametrize(
    "shape", [(1024, 1024), (16400, 64), (3, 300_000), (1000, 999), (40, 16384)]
)
@pytest.mark.parametrize("dtype", arrays.HALVES)
def test_large_reductions_along_either_axis(
    dtype: str, shape: tuple[int, ...], threads: None, rng: np.random.Generator
) -> None:
    x = arrays.rounded(rng.normal(size=shape), dtype)
    x[shape[0] // 2, shape[1] // 3] = -9
    t = arrays.tensor(x, dtype)
    for axis in (0, 1):
        expected = {
            "sum": arrays.rounded(x.sum(axis=axis, dtype=np.float64), dtype),
            "max": x.max(axis=axis),
            "min": x.min(axis=axis),
        }
        for name, want in expected.items():
            by_threads = []
            for count in (1, 2, 3):
                tw.set_num_threads(count)
                by_threads.append(arrays.array(getattr(tw, name)(t, axis=axis)))
            for got in by_threads:
                np.testing.assert_array_equal(got, by_threads[0])
            # A sum that lies between two numbers of the type may go to either.
            tolerance = arrays.eps(dtype) if name == "sum" else 0
            np.testing.assert_allclose(by_threads[0], want, rtol=tolerance, atol=1e-3 * tolerance)


def exact(name: str, x: np.ndarray, g: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """The result and its gradient, in float64."""
    t = x.astype(np.float64) - x.max(axis=axis, keepdims=True)
    total = np.exp(t).sum(axis=axis, keepdims=True)
    p = np.exp(t) / total
    if name == "softmax":
        return p, p * (g - (p * g).sum(axis=axis, keepdims=True))
    return t - np.log(total), g - p * g.sum(axis=axis, keepdims=True)


# The gradient is made of the result in float32, also where it is recorded.
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((3, 5000), 1), ((700, 129), 1), ((20000, 70), 0), ((130, 1030), 0), ((5, 40, 333), 1)],
)
@pytest.mark.parametrize("dtype", arrays.HALVES)
def test_softmax_rounds_results_alone(
    dtype: str, shape: tuple[int, ...], axis: int, name: str, threads: None, rng
) -> None:
    x = arrays.rounded(rng.normal(size=shape), dtype)
    numbers = arrays.rounded(rng.normal(size=shape), dtype)
    for g, one in ((numbers, False), (np.full_like(numbers, 0.75), True)):
        given = tw.full((), 0.75).astype(getattr(tw, dtype)).expand(*shape)
        given = given if one else arrays.tensor(g, dtype)
        value, slope = exact(name, x, g.astype(np.float64), axis)
        for order in (range(len(shape)), range(len(shape))[::-1]):
            across = arrays.tensor(np.ascontiguousarray(x.transpose(order)), dtype)
            leaf = across.permute(*np.argsort(order).tolist()).requires_grad_()
            tw.set_num_threads(3 if one else 1)
            y = getattr(tw, name)(leaf, axis=axis)
            for recorded in (False, True):
                (dx,) = tw.grad(
                    y, [leaf], grad_outputs=given, retain_graph=True, create_graph=recorded
                )
                # What cancels is as exact as float32.
                least = 2e-6 * np.abs(g).max() + 4 * arrays.smallest(dtype)
                found = arrays.array(dx.detach())
                np.testing.assert_allclose(found, slope, rtol=arrays.eps(dtype), atol=least)
            found = arrays.array(y.detach())
            least = 4 * arrays.smallest(dtype)
            np.testing.assert_allclose(found, value, rtol=arrays.eps(dtype), atol=least)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        *(((3, 5000), 1), ((700, 129), 1), ((40, 17), 1), ((5, 17), 1), ((2, 9, 4097), 2)),
        *(((5000, 7), 0), ((700, 129), 0), ((2, 900, 1030), 1), ((40, 300), 0), ((9000, 33), 0)),
        *(((1, 64), 0), ((3, 17, 20), 1), ((20, 8, 5), 1), ((2, 300, 4, 40), 1)),
    ],
)
@pytest.mark.parametrize("dtype", arrays.HALVES)
def test_results_that_no_gradient_needs_are_those_of_float32_rounded(
    dtype: str, shape: tuple[int, ...], axis: int, threads: None, rng
) -> None:
    """Also where they pass through a buffer, and beside infinities and NaN."""
    x = arrays.tensor(arrays.rounded(rng.normal(size=shape), dtype), dtype)
    ends = x.reshape(-1)
    ends[3], ends[shape[-1] % 7 + 5], ends[6], ends[-2] = math.inf, -math.inf, 3, math.nan
    wide = x.astype(tw.float32)
    for count in (1, 3):
        tw.set_num_threads(count)
        for name in ("softmax", "log_softmax", "logsumexp"):
            found, wanted = (getattr(tw, name)(each, axis=axis) for each in (x, wide))
            wanted = wanted.astype(found.dtype)
            np.testing.assert_array_equal(arrays.array(found), arrays.array(wanted), err_msg=name)


def test_the_sum_of_a_gradient_may_be_larger_than_float16() -> None:
    x = tw.zeros((1, 200), dtype=tw.float16).requires_grad_()
    y, g = tw.log_softmax(x, axis=1), tw.full((1, 200), 1024.0, dtype=tw.float16)
    for recorded in (False, True):
        (dx,) = tw.grad(y, [x], grad_outputs=g, retain_graph=True, create_graph=recorded)
        np.testing.assert_allclose(arrays.array(dx.detach()), 0, atol=0.1)


@pytest.mark.parametrize("dtype", arrays.HALVES)
@pytest.mark.parametrize("given", ["float32", "float64", "int64"])
def test_the_spread_of_numbers_that_the_type_of_the_result_lacks(given: str, dtype: str) -> None:
    for row in ([1001, 1002, 1003, 1004], [70000, 70010, 70020], [5]):
        a = np.array(row, given)
        x = tw.asarray(a)
        for name in ("var", "std"):
            y = getattr(tw, name)(x, dtype=getattr(tw, dtype))
            assert str(y.dtype) == dtype
            want = arrays.rounded(getattr(np, name)(a.astype(np.float64)), dtype)
            np.testing.assert_allclose(arrays.array(y), want, rtol=arrays.eps(dtype))
        if given == "int64":
            continue
        leaf = x.detach().requires_grad_()
        y = tw.var(leaf, dtype=getattr(tw, dtype))
        for recorded in (False, True):
            (dx,) = tw.grad(y, [leaf], retain_graph=True, create_graph=recorded)
            want = 2 * (a - a.mean()) / a.size
            np.testing.assert_allclose(dx.detach().numpy(), want, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [(n, w) for n in (*arrays.HALVES, "float32") for w in ("float32", "float64") if n != w],
)
@pytest.mark.parametrize("layout", ["rows", "transposed", "every second"])
def test_terms_are_widened_as_they_are_read(
    layout: str, narrow: str, wide: str, isa: str, rng
) -> None:
    x = arrays.rounded(rng.uniform(0.5, 1.5, size=(37, 300)), narrow)
    t = arrays.tensor(x, narrow)
    if layout == "transposed":
        t, x = t.T, x.T
    if layout == "every second":
        t, x = t[:, ::2], x[:, ::2]
    for axis in (None, 0, 1, (0, 1)):
        for name in ("sum", "mean", "prod"):
            leaf = t.detach().requires_grad_()
            y = getattr(tw, name)(leaf, axis=axis, dtype=getattr(tw, wide))
            assert str(y.dtype) == wide
            want = getattr(np, name)(x.astype(np.float64), axis=axis)
            # In float32 blocks of some hundred terms are added, and products are rounded.
            rtol = 1e-13 if wide == "float64" else 1e-5
            np.testing.assert_allclose(arrays.array(y.detach()), want, rtol=rtol, atol=1e-37)
            (dx,) = tw.grad(y.sum(), [leaf])
            assert str(dx.dtype) == narrow
            if name != "prod":
                slope = 1 if name == "sum" else np.asarray(want).size / x.size
                np.testing.assert_allclose(arrays.array(dx), slope, rtol=arrays.eps(narrow))
    found = arrays.array(tw.sum(t, dtype=tw.int64))
    assert found == x.astype(np.int64).sum()


@pytest.mark.parametrize("dtype", [*arrays.HALVES, "float32", "float64"])
def test_gradients_of_the_variance_of_numbers_far_from_zero(dtype: str, isa: str, rng) -> None:
    a = arrays.rounded(rng.normal(size=(33, 70)) * 8 + 300, dtype)
    for axis in (None, 0, 1):
        for correction in (0, 1):
            x = arrays.tensor(a, dtype).requires_grad_()
            y = tw.var(x, axis=axis, correction=correction)
            (dx,) = tw.grad(y.sum(), [x])
            wide = a.astype(np.float64)
            terms = wide.size if axis is None else wide.shape[axis]
            want = 2 * (wide - wide.mean(axis=axis, keepdims=True)) / (terms - correction)
            rtol = max(arrays.eps(dtype), 2e-5 if dtype == "float32" else 1e-11)
            least = arrays.eps("float64" if dtype == "float64" else "float32") * 1200 / terms
            np.testing.assert_allclose(arrays.array(dx), want, rtol=rtol, atol=least)
    same = arrays.tensor(np.full((3, 5), 1.25, arrays.numpy_type(dtype)), dtype).requires_grad_()
    (dx,) = tw.grad(tw.var(same, axis=1).sum(), [same])
    np.testing.assert_array_equal(arrays.array(dx), 0)


def test_second_gradients_of_variance(rng) -> None:
    a, b = rng.normal(size=(2, 5, 7))
    x = tw.asarray(a).requires_grad_()
    (dx,) = tw.grad(tw.var(x, axis=1).sum(), [x], create_graph=True)
    (found,) = tw.grad(dx, [x], grad_outputs=tw.asarray(b))
    want = 2 * (b - b.mean(axis=1, keepdims=True)) / 7
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-12, atol=1e-14)


# ---- complex numbers ----

COMPLEX = np.array([[1 + 2j, 3 - 4j], [0, -2], [5j, 1 + 1j]], np.complex64)


@pytest.mark.parametrize("layout", ["rows", "transposed", "every second"])
@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}])
@pytest.mark.parametrize("name", ["var", "std"])
def test_spread_of_complex_numbers_is_that_of_their_distances(
    name: str, options: dict[str, Any], layout: str
) -> None:
    x = {
        "rows": COMPLEX,
        "transposed": COMPLEX.T,
        "every second": np.repeat(COMPLEX, 2, axis=1)[:, ::2],
    }[layout]
    y = getattr(tw, name)(tw.asarray(x), correction=0.5, **options)
    expected = getattr(np, name)(x.astype(np.complex128), ddof=0.5, **options)
    assert y.dtype == tw.float32
    assert y.shape == expected.shape
    np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-6)


def test_limits_of_logit_are_those_that_were_given() -> None:
    """1 - eps is not rounded to 1."""
    for dtype, eps in (("bfloat16", 1e-3), ("float16", 1e-6), ("float16", 1e-3)):
        got = tw.logit(tw.asarray([1.0, 0.0]).astype(dtype), eps)
        assert str(got.dtype) == dtype
        largest = np.log((1 - eps) / eps)
        np.testing.assert_allclose(got.astype(tw.float64).numpy(), [largest, -largest], 0.004)


@pytest.mark.parametrize("dtype", ["int32", "int64", "complex64"])
def test_sums_without_nan_in_types_without_it(dtype: str) -> None:
    x = tw.asarray([[1.5, float("nan"), 2.5], [float("nan")] * 3])
    expected = np.array([3, 0]) if "int" in dtype else np.array([4, 0])
    got = tw.nansum(x, axis=1, dtype=getattr(tw, dtype))
    assert str(got.dtype) == dtype
    np.testing.assert_array_equal(got.numpy(), expected)


def test_addcdiv_divides_before_it_multiplies() -> None:
    """Quotients of whole numbers are floating, and 16-bit operands need not hold the product."""

    def of(values: list[float], dtype: str) -> tw.Tensor:
        return tw.asarray(np.array(values)).astype(dtype)

    small, large = of([100, 7], "int8"), of([200, 2], "uint8")
    one = of([1], "float32")
    got = tw.addcdiv(one, small[:1], small[1:], value=2)
    assert got.item() == pytest.approx(1 + 200 / 7, 1e-6)
    assert tw.addcdiv(one, large[:1], large[1:], value=-1).item() == -99
    wide = of([2**62], "int64")
    assert tw.addcdiv(one, wide, wide, value=4).item() == 5
    half = of([60000, 4], "float16")
    assert tw.addcdiv(of([0], "float16"), half[:1], half[1:], value=2).item() == 30000
    assert (
        str(tw.addcdiv(of([1], "float16"), of([3], "int32"), of([2], "int32")).dtype) == "float32"
    )
