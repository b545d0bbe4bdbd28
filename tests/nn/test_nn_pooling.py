"""Layers of pooling against PyTorch's: outputs, gradients, text, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn

torch = pytest.importorskip("torch")

LAYERS = (
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1}, (2, 3, 17)),
    ("MaxPool1d", ((2,),), {}, (3, 9)),
    ("MaxPool2d", (2,), {}, (2, 3, 8, 9)),
    ("MaxPool2d", ((3, 2), (2, 1), (1, 0)), {"dilation": (1, 2), "ceil_mode": True}, (2, 3, 8, 9)),
    ("MaxPool3d", (2,), {"stride": (1, 2, 2)}, (2, 4, 5, 6)),
    ("AvgPool1d", (3, 2, 1), {"count_include_pad": False}, (2, 3, 17)),
    ("AvgPool2d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, (2, 3, 8, 9)),
    ("AvgPool2d", ((2, 3),), {"divisor_override": 5}, (3, 8, 9)),
    ("AvgPool3d", ((1, 2, 2),), {}, (2, 2, 4, 5, 6)),
    ("AdaptiveAvgPool1d", (4,), {}, (2, 3, 17)),
    ("AdaptiveAvgPool2d", (1,), {}, (2, 3, 7, 7)),
    ("AdaptiveAvgPool2d", ((None, 3),), {}, (3, 7, 7)),
    ("AdaptiveAvgPool3d", ((2, 3, 4),), {}, (2, 3, 5, 5, 5)),
    ("AdaptiveMaxPool1d", (4,), {}, (2, 3, 17)),
    ("AdaptiveMaxPool2d", ((3, None),), {}, (2, 3, 7, 7)),
    ("AdaptiveMaxPool3d", ((None, 2, None),), {}, (2, 3, 2, 3, 2)),
)
BY_LAYER = pytest.mark.parametrize(("name", "sizes", "options", "shape"), LAYERS)


@BY_LAYER
def test_outputs_and_gradients_are_pytorchs(name, sizes, options, shape, rng) -> None:
    data = rng.normal(size=shape)
    x, z = tw.asarray(data).requires_grad_(), torch.tensor(data, requires_grad=True)
    y = getattr(nn, name)(*sizes, **options)(x)
    want = getattr(torch.nn, name)(*sizes, **options)(z)
    np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), rtol=1e-12, atol=1e-12)
    (y * y).sum().backward()
    (want * want).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), z.grad.numpy(), rtol=1e-12, atol=1e-12)


@BY_LAYER
def test_they_show_as_pytorchs_and_keep_no_state(name, sizes, options, shape) -> None:
    ours, theirs = getattr(nn, name)(*sizes, **options), getattr(torch.nn, name)(*sizes, **options)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict()) == []


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_indices_on_demand(axes: int, rng) -> None:
    data = rng.normal(size=(2, 3, *[6] * axes))
    for name, size in ((f"MaxPool{axes}d", 2), (f"AdaptiveMaxPool{axes}d", 4)):
        got = getattr(nn, name)(size, return_indices=True)(tw.asarray(data))
        want = getattr(torch.nn, name)(size, return_indices=True)(torch.tensor(data))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("name", ["avg_pool2d", "adaptive_avg_pool2d", "max_unpool2d"])
def test_the_functional_module_has_them(name: str) -> None:
    assert getattr(nn.functional, name) is getattr(tw, name)


REFUSED: tuple[tuple[Any, type[Exception], str], ...] = (
    (lambda: nn.MaxPool2d(2.5), TypeError, "MaxPool2d: kernel_size is a whole number, got 2.5"),
    (lambda: nn.AvgPool2d((1, 2, 3)), ValueError, "AvgPool2d: kernel_size is one number or 2"),
    (lambda: nn.AdaptiveAvgPool2d((1, 2, 3)), ValueError, "output_size is one number or 2"),
    (lambda: nn.AdaptiveMaxPool1d(True), TypeError, "output_size is a whole number, got True"),
    (lambda: nn.MaxPool2d(2)([1.0]), TypeError, "MaxPool2d: expected a Tensor, got list"),
    (lambda: nn.AdaptiveAvgPool1d(2)(None), TypeError, "expected a Tensor, got NoneType"),
)


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_what_they_refuse(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
