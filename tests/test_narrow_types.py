"""float16 and bfloat16: what lies between argument and result is computed in float32, so nothing
overflows that the result could hold, and only the result is rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import arrays

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


@pytest.mark.parametrize("dtype", arrays.HALVES)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", OPS)
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
