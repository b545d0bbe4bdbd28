"""Gradients of extrema, which equal elements share, and variances, which read their input twice."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

SHAPES = [(1,), (70_001,), (3, 66_000), (5, 33), (300, 7), (1030, 515), (4, 6, 9), (2, 3, 4, 5)]


def axes_of(rank: int) -> list[int | tuple[int, ...] | None]:
    return [None, *range(rank), *([(0, rank - 1)] if rank > 2 else [])]


def expected_gradient(a: np.ndarray, axis, largest: bool, weights: np.ndarray) -> np.ndarray:
    """The weight of an extremum, shared by all elements that are equal to it."""
    top = (np.max if largest else np.min)(a, axis=axis, keepdims=True)
    equal = a == top
    count = equal.sum(axis=axis, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        shared = np.where(equal, weights.reshape(top.shape) / count, 0)
    return np.where(np.isnan(top), np.nan, shared)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_extrema_share_their_gradient(shape, dtype: str, isa: str, rng) -> None:
    a = rng.integers(-3, 4, size=shape).astype(dtype)
    a[(0,) * len(shape)] = np.nan
    for axis in axes_of(len(shape)):
        for name in ("max", "min"):
            x = tw.tensor(a, requires_grad=True)
            y = getattr(tw, name)(x, axis=axis)
            weights = rng.normal(size=y.shape).astype(dtype)
            y.backward(tw.asarray(weights))
            want = expected_gradient(a.astype(float), axis, name == "max", weights.astype(float))
            np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-6, err_msg=f"{name} {axis}")


def test_extrema_of_other_layouts(threads, rng) -> None:
    a = rng.integers(-2, 3, size=(90, 40, 70)).astype(np.float32)
    for axis in (0, 1, 2, (0, 2), None):
        grads = []
        for layout in (lambda x: x, lambda x: tw.permute_dims(x, (2, 0, 1)), lambda x: x[::-1]):
            x = tw.tensor(a, requires_grad=True)
            y = tw.max(layout(x), axis=axis)
            y.sum().backward()
            view = layout(x.grad).numpy()
            shown = layout(tw.asarray(a)).numpy().astype(float)
            want = expected_gradient(shown, axis, True, np.ones(y.shape))
            np.testing.assert_allclose(view, want, rtol=1e-6)
            grads.append(x.grad)
    long = tw.tensor(np.tile(np.float32([1, 2, 2]), 100_000), requires_grad=True)
    tw.max(long).backward()
    np.testing.assert_array_equal(long.grad.numpy(), np.tile(np.float32([0, 5e-6, 5e-6]), 100_000))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_variance_far_from_zero(shape, dtype: str, isa: str, rng) -> None:
    a = (1000 + rng.normal(size=shape)).astype(dtype)
    wide = a.astype(float)
    for axis in axes_of(len(shape)):
        for correction in (0, 1):
            y = tw.var(tw.asarray(a), axis=axis, correction=correction)
            freedom = wide.size // max(y.size, 1) - correction
            squares = np.square(wide - wide.mean(axis=axis, keepdims=True)).sum(axis=axis)
            want = squares / freedom if freedom > 0 else np.full_like(squares, np.nan)
            # The mean is rounded to float32: the variance is larger by the square of that.
            slack = 5e-9 if dtype == "float32" else 1e-18
            np.testing.assert_allclose(y.numpy(), want, rtol=3e-6, atol=slack)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)], ids=str)
def test_variance_of_other_layouts(order: tuple[int, ...], threads, rng) -> None:
    a = rng.normal(size=(60, 50, 70)) + np.arange(70) * 10
    moved = tw.permute_dims(tw.asarray(a), order)
    spaced = moved[:, ::-2, ::3]
    for x in (moved, spaced):
        for axis in (0, 1, 2, (0, 2), (1, 2), (0, 1), None):
            want = np.var(x.numpy(), axis=axis)
            np.testing.assert_allclose(tw.var(x, axis=axis).numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("name", ["var", "std"])
def test_spread_in_another_type(name: str, rng) -> None:
    f, reference = getattr(tw, name), getattr(np, name)
    whole, half = rng.integers(0, 2**20, (5, 7)), rng.normal(size=(5, 7)).astype(np.float16)
    for a in (whole, half):
        for dtype in (np.float32, np.float64):
            y = f(tw.asarray(a), axis=1, correction=1, dtype=getattr(tw, np.dtype(dtype).name))
            assert str(y.dtype) == np.dtype(dtype).name
            want = reference(a.astype(float), axis=1, ddof=1)
            rtol = 1e-6 if dtype == np.float32 else 1e-12
            np.testing.assert_allclose(y.numpy(), want, rtol=rtol)
    x = tw.tensor(half, requires_grad=True)
    f(x, dtype=tw.float64).backward()
    wide = tw.tensor(half.astype(float), requires_grad=True)
    f(wide).backward()
    assert x.grad.dtype == tw.float16
    np.testing.assert_allclose(x.grad.numpy(), wide.grad.numpy(), rtol=1e-3)
    assert reference(tw.asarray(whole), dtype=np.float64) == pytest.approx(reference(whole))
    with pytest.raises(TypeError, match=f"^{name}: needs a floating-point input, got int32"):
        f(x, dtype=tw.int32)


def test_gradients_of_spread(rng) -> None:
    a = rng.normal(size=(4, 5, 3))
    for axis in (None, 1, (0, 2)):
        for name in ("var", "std"):
            f = getattr(tw, name)
            x = tw.tensor(a, requires_grad=True)
            assert tw.gradcheck(lambda x, f=f, axis=axis: f(x, axis=axis, correction=1), (x,))
            assert tw.gradgradcheck(lambda x, f=f, axis=axis: f(x, axis=axis, correction=1), (x,))
    half = tw.tensor(a.astype(np.float16), requires_grad=True)
    half.var().backward()
    wide = a.astype(np.float16).astype(float)
    np.testing.assert_allclose(half.grad.numpy(), 2 * (wide - wide.mean()) / wide.size, atol=2e-4)
    z = tw.tensor(a + 1j * a[::-1], requires_grad=True)
    assert tw.gradcheck(lambda z: tw.var(z, axis=0), (z,))


def test_gradient_of_a_gradient_of_an_extremum(rng) -> None:
    x = tw.tensor(rng.normal(size=(3, 4)), requires_grad=True)
    assert tw.gradgradcheck(lambda x: tw.max(x * x * x, axis=1), (x,))


@pytest.mark.parametrize("scale", [1e30, 1e-30, 1.0])
def test_squares_beyond_float32(scale: float, isa: str, rng) -> None:
    """Standard deviations and their gradients are numbers where variances are none."""
    for shape in ((5,), (40, 33), (2000, 5), (5, 5000), (9, 3, 17), (70_001,)):
        a = (rng.normal(size=shape) * scale).astype(np.float32)
        for x in (tw.asarray(a), tw.permute_dims(tw.asarray(a), tuple(range(a.ndim))[::-1])):
            wide = x.numpy().astype(float)
            for axis in (None, 0, -1):
                np.testing.assert_allclose(tw.std(x, axis=axis).numpy(), wide.std(axis), rtol=2e-6)
    # A column does not change with its neighbours.
    mixed = rng.normal(size=(20, 33)).astype(np.float32)
    alone = tw.std(tw.asarray(mixed), axis=0).numpy()[1:]
    mixed[:, 0] *= scale
    np.testing.assert_array_equal(tw.std(tw.asarray(mixed), axis=0).numpy()[1:], alone)
    x = tw.asarray(np.array([1, -1, 2, 0.5], np.float32) * np.float32(scale)).requires_grad_()
    x.std().backward()
    wide = x.detach().numpy().astype(float)
    want = (wide - wide.mean()) / wide.std() / wide.size
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-5)
