"""Pooling with PyTorch's arguments, shuffles and local response norms, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn

torch = pytest.importorskip("torch")
F, TF = nn.functional, torch.nn.functional


def assert_like_pytorch(call, shape, rng, tolerance=1e-10) -> None:
    """call(module, functional, x) of ours and of PyTorch's, with gradients."""
    data = rng.normal(size=shape)
    x, z = tw.asarray(data).requires_grad_(), torch.tensor(data, requires_grad=True)
    y, want = call(nn, F, x), call(torch.nn, TF, z)
    np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), atol=tolerance)
    (y * y).sum().backward()
    (want * want).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), z.grad.numpy(), atol=tolerance)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_max_pools_give_indices_on_demand(axes, rng) -> None:
    data = rng.normal(size=(2, 3, *[7] * axes))
    for name, args in (("max_pool", (3, 2, 1)), ("adaptive_max_pool", (3,))):
        ours, theirs = (getattr(m, f"{name}{axes}d") for m in (F, TF))
        got = ours(tw.asarray(data), *args, return_indices=True)
        want = theirs(torch.tensor(data), *args, return_indices=True)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
        plain = ours(tw.asarray(data), *args)
        np.testing.assert_array_equal(plain.numpy(), want[0].numpy())


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("p", [2, 3.0, 4, float("inf")])
def test_lp_pool(axes, p, rng) -> None:
    for options in ({}, {"stride": 1}, {"stride": 2, "ceil_mode": True}):
        data = np.abs(rng.normal(size=(2, 3, *[6] * axes))) + 0.1
        x, z = tw.asarray(data).requires_grad_(), torch.tensor(data, requires_grad=True)
        y = getattr(F, f"lp_pool{axes}d")(x, p, 3, **options)
        want = getattr(TF, f"lp_pool{axes}d")(z, p, 3, **options)
        np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), rtol=1e-11)
        y.sum().backward()
        want.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), z.grad.numpy(), rtol=1e-10)
    x = tw.zeros((1, 1, *[4] * axes)).requires_grad_()
    getattr(F, f"lp_pool{axes}d")(x, 2, 2).sum().backward()
    assert not x.grad.numpy().any()
    with pytest.raises(ValueError, match="norm_type must not be 0"):
        getattr(F, f"lp_pool{axes}d")(x, 0, 2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_lp_pool_of_16_bit_numbers(dtype) -> None:
    """Powers that float16 does not hold, of which the root is a number."""
    x = tw.asarray([[[300.0, 400.0, 0.0, 1.0]]], dtype=dtype).requires_grad_()
    y = F.lp_pool1d(x, 2, 2)
    assert y.dtype == x.dtype
    np.testing.assert_allclose(y.tolist(), [[[500, 1]]], rtol=2**-7)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [[[0.6, 0.8, 0, 1]]], rtol=2**-7)


@pytest.mark.parametrize("axes", [2, 3])
def test_fractional_max_pool(axes, rng) -> None:
    data = rng.normal(size=(2, 3, *[9, 11, 10][:axes]))
    u = rng.random((2, 3, axes))
    x, z = tw.asarray(data).requires_grad_(), torch.tensor(data, requires_grad=True)
    for options in ({"output_size": (4, 7, 5)[:axes]}, {"output_ratio": (0.6,) * axes}):
        ours, theirs = (getattr(m, f"fractional_max_pool{axes}d") for m in (F, TF))
        got = ours(x, 2, **options, return_indices=True, _random_samples=tw.asarray(u))
        want = theirs(z, 2, **options, return_indices=True, _random_samples=torch.tensor(u))
        np.testing.assert_array_equal(got[0].detach().numpy(), want[0].detach().numpy())
        np.testing.assert_array_equal(got[1].numpy(), want[1].numpy())
        got[0].sum().backward()
        want[0].sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), z.grad.numpy())
        assert ours(tw.asarray(data), 2, **options).shape == got[0].shape
        assert ours(tw.asarray(data)[0], 2, **options).shape == got[0].shape[1:]
    with pytest.raises(ValueError, match="give either output_size or output_ratio"):
        ours(x, 2)
    with pytest.raises(ValueError, match="do not fit"):
        ours(x, 2, 10)


@pytest.mark.parametrize("shape", [(2, 5, 4), (1, 6, 3, 4), (2, 3, 2, 3, 4)])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_local_response_norm(shape, size, rng) -> None:
    options = {"alpha": 0.4, "beta": 0.6, "k": 1.5}
    assert_like_pytorch(lambda m, f, x: f.local_response_norm(x, size, **options), shape, rng)
    assert_like_pytorch(lambda m, f, x: m.LocalResponseNorm(size)(x), shape, rng)


SHUFFLES = (
    ("PixelShuffle", 2, (2, 8, 3, 5)),
    ("PixelShuffle", 3, (9, 2, 2)),
    ("PixelShuffle", 2, (1, 2, 2, 4, 3, 5)),
    ("PixelUnshuffle", 2, (2, 3, 4, 6)),
    ("PixelUnshuffle", 3, (1, 3, 6)),
    ("ChannelShuffle", 3, (2, 6, 4)),
    ("ChannelShuffle", 2, (1, 4, 2, 2, 3)),
)


@pytest.mark.parametrize(("name", "factor", "shape"), SHUFFLES)
def test_shuffles(name, factor, shape, rng) -> None:
    assert_like_pytorch(lambda m, f, x: getattr(m, name)(factor)(x), shape, rng)
    assert repr(getattr(nn, name)(factor)) == repr(getattr(torch.nn, name)(factor))


LAYERS = (
    ("LPPool1d", (2, 3), {}, (2, 3, 9)),
    ("LPPool2d", (3.0, (2, 3)), {"stride": 2, "ceil_mode": True}, (2, 3, 9, 8)),
    ("LPPool3d", (2, 2), {}, (1, 2, 4, 5, 6)),
    ("LocalResponseNorm", (3,), {"k": 2.0}, (1, 4, 5)),
)


@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS)
def test_layers_are_pytorchs(name, args, options, shape, rng) -> None:
    ours, theirs = (getattr(m, name)(*args, **options) for m in (nn, torch.nn))
    assert repr(ours) == repr(theirs)
    data = np.abs(rng.normal(size=shape)) + 0.1
    np.testing.assert_allclose(
        ours(tw.asarray(data)).numpy(), theirs(torch.tensor(data)).numpy(), rtol=1e-11
    )


def test_fractional_layers(rng) -> None:
    x = tw.asarray(rng.normal(size=(2, 3, 9, 9)))
    layer = nn.FractionalMaxPool2d(2, output_size=5, return_indices=True)
    y, index = layer(x)
    assert repr(layer) == repr(torch.nn.FractionalMaxPool2d(2, output_size=5))
    found = np.take_along_axis(x.numpy().reshape(2, 3, -1), index.numpy().reshape(2, 3, -1), 2)
    np.testing.assert_array_equal(found.reshape(y.shape), y.numpy())
    assert nn.FractionalMaxPool3d(2, output_ratio=0.5)(tw.ones((1, 1, 6, 6, 6))).shape[2:] == (
        3,
        3,
        3,
    )


def test_local_response_of_numbers_whose_squares_overflow() -> None:
    values = [[[1e19], [-1e20], [3.0], [1.0], [0.0], [3e38], [-3e38], [2e-20]]]
    for size, alpha, beta, k in ((2, 1e-4, 0.75, 1.0), (1, 1e-4, 1.0, 0.0), (5, 2.0, 0.5, 3.0)):
        if k == 0.0:
            values = [[[1e19], [-1e20], [3e38], [1e10]]]
        results = []
        for dtype in (tw.float32, tw.float64):
            x = tw.asarray(values, dtype=dtype).requires_grad_()
            y = tw.local_response_norm(x, size, alpha, beta, k)
            y.backward(tw.ones_like(y))
            results.append((y.detach().numpy(), x.grad.numpy()))
        (y, dx), (expected, slope) = results
        np.testing.assert_allclose(y, expected, rtol=2e-6, atol=1e-38)
        np.testing.assert_allclose(dx, slope, rtol=2e-5, atol=1e-37)
    huge = tw.asarray([[[1e200], [-1e300]]], dtype=tw.float64)
    y = tw.local_response_norm(huge, 1).numpy().ravel()
    np.testing.assert_allclose(y, [1e-97, -1e-147], rtol=1e-12)
