"""Pooling against PyTorch: values, places, gradients, NaN, infinities; the same bits by threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")
F = torch.nn.functional

SHAPES = {1: (2, 3, 37), 2: (2, 3, 19, 22), 3: (2, 3, 7, 9, 11)}
OPTIONS: tuple[dict[str, Any], ...] = (
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 1, "padding": 1, "ceil_mode": True},
    {"kernel_size": 2, "stride": 3, "ceil_mode": True},
    {"kernel_size": 5, "stride": 4, "padding": 2},
)
DILATED = {"kernel_size": 2, "dilation": 3, "padding": 1, "ceil_mode": True}


def both(name: str, x: np.ndarray, *args: Any, theirs: Any = None, **options: Any) -> None:
    """Values and gradients, with a different weight for each element of the result."""
    a = tw.asarray(x).requires_grad_()
    b = torch.from_numpy(x.copy()).requires_grad_()
    y = getattr(tw, name)(a, *args, **options)
    z = (theirs or getattr(F, name))(b, *args, **options)
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-6, atol=1e-6)
    g = np.random.default_rng(1).standard_normal(y.shape).astype(x.dtype)
    y.backward(tw.asarray(g))
    z.backward(torch.from_numpy(g))
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-5, atol=1e-6)


def images(rng: np.random.Generator, axes: int, ties: bool = False) -> np.ndarray:
    x = rng.standard_normal(SHAPES[axes], dtype=np.float32)
    return np.round(x) if ties else x


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("options", [*OPTIONS, DILATED], ids=str)
@pytest.mark.parametrize("ties", [False, True])
def test_max(rng, axes, options, ties):
    x = images(rng, axes, ties)
    both(f"max_pool{axes}d", x, **options)
    y, places = getattr(tw, f"max_pool{axes}d_with_indices")(tw.asarray(x), **options)
    z, theirs = getattr(F, f"max_pool{axes}d")(torch.from_numpy(x), return_indices=True, **options)
    np.testing.assert_array_equal(y.numpy(), z.numpy())
    np.testing.assert_array_equal(places.numpy(), theirs.numpy())


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("counts", [True, False])
def test_avg(rng, axes, options, counts):
    both(f"avg_pool{axes}d", images(rng, axes), count_include_pad=counts, **options)


@pytest.mark.parametrize("axes", [2, 3])
def test_avg_with_a_divisor(rng, axes):
    both(f"avg_pool{axes}d", images(rng, axes), 3, 2, 1, divisor_override=-2)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 13])
def test_adaptive(rng, axes, size):
    x = images(rng, axes, ties=True)
    both(f"adaptive_avg_pool{axes}d", x, size)
    both(f"adaptive_max_pool{axes}d", x, size)
    y, places = getattr(tw, f"adaptive_max_pool{axes}d_with_indices")(tw.asarray(x), size)
    z, theirs = getattr(F, f"adaptive_max_pool{axes}d")(
        torch.from_numpy(x), size, return_indices=True
    )
    np.testing.assert_array_equal(y.numpy(), z.numpy())
    np.testing.assert_array_equal(places.numpy(), theirs.numpy())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite(rng, value):
    x = images(rng, 2)
    x[rng.random(x.shape) < 0.3] = value
    x[0, 0] = value
    for options in (*OPTIONS, DILATED):
        both("max_pool2d", x, **options)
        _, places = tw.max_pool2d_with_indices(tw.asarray(x), **options)
        _, theirs = F.max_pool2d(torch.from_numpy(x), return_indices=True, **options)
        np.testing.assert_array_equal(places.numpy(), theirs.numpy())
    both("avg_pool2d", x, 3, 2, 1)
    both("adaptive_max_pool2d", x, (5, 7))
    both("adaptive_avg_pool2d", x, (5, 7))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_unpool(rng, axes):
    shape = (2, 3, 6, 8, 10)[: axes + 2]  # whole windows, so that None is the input's size
    x = rng.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32)
    y, places = getattr(tw, f"max_pool{axes}d_with_indices")(tw.asarray(x), 2)
    z, theirs = getattr(F, f"max_pool{axes}d")(torch.from_numpy(x), 2, return_indices=True)
    for size in (None, x.shape[2:]):
        back = getattr(tw, f"max_unpool{axes}d")(y, places, 2, output_size=size)
        again = getattr(F, f"max_unpool{axes}d")(z, theirs, 2, output_size=size)
        np.testing.assert_array_equal(back.numpy(), again.numpy())
    with pytest.raises(IndexError):
        getattr(tw, f"max_unpool{axes}d")(y, places + 10**6, 2)
    with pytest.raises(ValueError, match="must have the shape of the input"):
        getattr(tw, f"max_unpool{axes}d")(y, places[:1], 2)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_unpool_of_overlapping_windows(rng, axes):
    """One place, named by several windows, has their value once; each of them has its gradient."""
    shape = (2, 3, 7, 9, 5)[: axes + 2]
    x = rng.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32)
    y, places = getattr(tw.nn.functional, f"max_pool{axes}d")(
        tw.asarray(x), 3, 2, 1, return_indices=True
    )
    z, theirs = getattr(F, f"max_pool{axes}d")(torch.from_numpy(x), 3, 2, 1, return_indices=True)
    y, z = y.detach().requires_grad_(), z.detach().requires_grad_()
    for size in (shape[2:], shape):
        back = getattr(tw, f"max_unpool{axes}d")(y, places, 3, 2, 1, output_size=size)
        again = getattr(F, f"max_unpool{axes}d")(z, theirs, 3, 2, 1, output_size=size)
        np.testing.assert_array_equal(back.detach().numpy(), again.detach().numpy())
        weights = rng.standard_normal(shape).astype(np.float32)
        (ours,) = tw.grad(back, [y], tw.asarray(weights))
        (expected,) = torch.autograd.grad(again, [z], torch.from_numpy(weights))
        np.testing.assert_array_equal(ours.numpy(), expected.numpy())
    with pytest.raises(ValueError, match="does not fit"):
        getattr(tw, f"max_unpool{axes}d")(y, places, 3, 2, 1, output_size=(5, *shape[1:]))


@pytest.mark.parametrize("axes", [2, 3])
def test_a_size_of_none_is_the_inputs(rng, axes):
    x = rng.standard_normal((2, 3, 6, 8, 7)[: axes + 2], dtype=np.float32)
    for size in ((None, 3, 2)[:axes], (5, None, None)[:axes], (None,) * axes, 4):
        for name in ("avg", "max"):
            function = f"adaptive_{name}_pool{axes}d"
            got = getattr(tw, function)(tw.asarray(x), size)
            expected = getattr(F, function)(torch.from_numpy(x), size)
            np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_large_kernels_and_planes(rng):
    x = rng.standard_normal((1, 2, 70, 90), dtype=np.float32)
    both("max_pool2d", x, (70, 90))
    both("max_pool2d", x, (31, 40), (7, 11), (15, 20))
    both("avg_pool2d", x, (31, 40), (7, 11), (15, 20))
    both("max_pool2d", x, 1)


def test_the_same_bits_for_any_number_of_threads(rng):
    x = tw.asarray(rng.standard_normal((8, 16, 40, 40), dtype=np.float32))
    found = []
    before = tw.get_num_threads()
    try:
        for threads in (1, 2, 3):
            tw.set_num_threads(threads)
            leaf = x.copy().requires_grad_()
            y = tw.max_pool2d(leaf, 3, 2, 1) + tw.avg_pool2d(leaf, 3, 2, 1)
            y.square().sum().backward()
            found.append(y.detach().numpy().tobytes() + leaf.grad.numpy().tobytes())
    finally:
        tw.set_num_threads(before)
    assert len(set(found)) == 1


def test_other_layouts(rng):
    x = rng.standard_normal((2, 9, 8, 6), dtype=np.float32)
    both("max_pool2d", x.transpose(0, 3, 2, 1).copy(), 2)
    a = tw.asarray(x).permute_dims((0, 3, 2, 1))
    np.testing.assert_array_equal(
        tw.max_pool2d(a, 2).numpy(), F.max_pool2d(torch.from_numpy(x).permute(0, 3, 2, 1), 2)
    )


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_modules(rng, axes):
    x = images(rng, axes)
    a, b = tw.asarray(x), torch.from_numpy(x)
    for name, args, options in (
        ("MaxPool", (3, 2, 1), {}),
        ("MaxPool", (2,), {"ceil_mode": True}),
        ("AvgPool", (3, 2, 1), {"count_include_pad": False}),
        ("AdaptiveAvgPool", (3,), {}),
        *([("AdaptiveAvgPool", ((None,) * axes,), {})] if axes > 1 else []),
        ("AdaptiveMaxPool", (4,), {}),
    ):
        ours = getattr(tw.nn, f"{name}{axes}d")(*args, **options)
        theirs = getattr(torch.nn, f"{name}{axes}d")(*args, **options)
        np.testing.assert_allclose(ours(a).numpy(), theirs(b).numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(ours(a[0]).numpy(), theirs(b[0]).numpy(), rtol=1e-5, atol=1e-6)
        assert ours.state_dict() == {}
    pool, back = f"MaxPool{axes}d", f"MaxUnpool{axes}d"
    ours = getattr(tw.nn, pool)(2, return_indices=True)
    theirs = getattr(torch.nn, pool)(2, return_indices=True)
    np.testing.assert_array_equal(
        getattr(tw.nn, back)(2)(*ours(a), output_size=x.shape).numpy(),
        getattr(torch.nn, back)(2)(*theirs(b), output_size=x.shape).numpy(),
    )


@pytest.mark.parametrize("axes", [1, 2])
def test_few_wide_windows(rng, axes):
    x = rng.standard_normal({1: (2, 3, 40_000), 2: (2, 200, 210)}[axes], dtype=np.float32)
    for options in (
        {"kernel_size": {1: 30_000, 2: (200, 210)}[axes]},
        {"kernel_size": {1: 9000, 2: (100, 99)}[axes], "stride": {1: 7000, 2: (50, 70)}[axes]},
        {"kernel_size": {1: 9000, 2: 120}[axes], "padding": 50, "ceil_mode": True},
    ):
        both(f"max_pool{axes}d", x, **options)
        both(f"avg_pool{axes}d", x, **options)
        _, places = getattr(tw, f"max_pool{axes}d_with_indices")(tw.asarray(x), **options)
        pool = getattr(F, f"max_pool{axes}d")
        _, theirs = pool(torch.from_numpy(x), return_indices=True, **options)
        np.testing.assert_array_equal(places.numpy(), theirs.numpy())
    assert tw.max_pool1d(tw.asarray(x[0, :1]), 2, 2**31 - 1).shape == (1, 1)


def test_places_in_windows_beyond_what_float32_counts():
    x = np.full((1, 2**24 + 8), -1, np.float32)
    x[0, 2**24 + 1] = 1
    a = tw.asarray(x).requires_grad_()
    y, places = tw.max_pool1d_with_indices(a, 2**24 + 5, 1)
    assert places.tolist() == [[2**24 + 1] * 4]
    y.sum().backward()
    assert np.flatnonzero(a.grad.numpy()).tolist() == [2**24 + 1]
    assert a.grad[0, 2**24 + 1].item() == 4


@pytest.mark.parametrize("size", [1, 2, 4])
def test_only_window_is_cut_off(rng, size):
    x = rng.standard_normal((1, 2, size, size), dtype=np.float32)
    both("max_pool2d", x, 3, 3, ceil_mode=True)
    both("avg_pool2d", x, 3, 3, ceil_mode=True)
    with pytest.raises(ValueError, match="are larger than the padded input"):
        tw.max_pool2d(tw.ones((1, 1, 1, 1)), 3, 2, ceil_mode=True)


def test_errors_of_modules_name_their_path():
    model = tw.nn.Sequential(tw.nn.Identity(), tw.nn.MaxPool2d(9))
    with pytest.raises(ValueError, match=r"^1: max_pool2d: windows of \(9, 9\) are larger"):
        model(tw.ones((1, 1, 4, 4)))
    with pytest.raises(ValueError, match=r"AdaptiveAvgPool2d: output_size is one number or 2"):
        tw.nn.AdaptiveAvgPool2d((1, 2, 3))(tw.ones((1, 1, 4, 4)))
