"""Layers of convolution against PyTorch's: outputs, gradients, state, first values, text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'")

LAYERS = (
    ("Conv1d", (3, 8, 5), {}, (2, 3, 17)),
    ("Conv1d", (4, 8, 3), {"padding": "same", "dilation": 2, "groups": 2}, (2, 4, 17)),
    ("Conv1d", (4, 8, 4), {"padding": 2, "padding_mode": "circular"}, (4, 9)),
    ("Conv1d", (2, 2, 4), {"padding": "same", "padding_mode": "replicate"}, (1, 2, 9)),
    ("Conv2d", (3, 8, 3), {"stride": 2, "padding": 1}, (2, 3, 11, 12)),
    ("Conv2d", (3, 8, (3, 5)), {"padding": (0, 2), "bias": False}, (3, 11, 12)),
    ("Conv2d", (6, 12, 3), {"groups": 6, "padding": 1, "padding_mode": "reflect"}, (2, 6, 7, 8)),
    ("Conv2d", (3, 2, 3), {"padding": "valid", "padding_mode": "reflect"}, (2, 3, 7, 8)),
    ("Conv2d", (3, 2, 1), {"padding": (0, 3), "padding_mode": "replicate"}, (2, 3, 2, 2)),
    ("Conv3d", (2, 3, (1, 2, 3)), {"stride": (1, 2, 1), "dilation": 2}, (2, 2, 3, 5, 6)),
    ("ConvTranspose1d", (3, 8, 5), {"stride": 3, "output_padding": 2}, (2, 3, 7)),
    ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, (2, 4, 5, 6)),
    ("ConvTranspose2d", (4, 6, 3), {"dilation": 2, "bias": False}, (4, 5, 6)),
    ("ConvTranspose3d", (2, 3, 2), {"stride": (1, 2, 1)}, (2, 2, 3, 4, 5)),
)
BY_LAYER = pytest.mark.parametrize(("name", "sizes", "options", "shape"), LAYERS)


def pair(name: str, sizes: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any]:
    """Ours with PyTorch's state, both in float64."""
    theirs = getattr(torch.nn, name)(*sizes, **options, dtype=torch.float64)
    ours = getattr(nn, name)(*sizes, **options, dtype=tw.float64)
    ours.load_state_dict({k: tw.asarray(v.numpy()) for k, v in theirs.state_dict().items()})
    return ours, theirs


@BY_LAYER
def test_outputs_and_gradients_are_pytorchs(name, sizes, options, shape, rng) -> None:
    ours, theirs = pair(name, sizes, options)
    data = rng.normal(size=shape)
    x, z = tw.asarray(data).requires_grad_(), torch.tensor(data, requires_grad=True)
    y, want = ours(x), theirs(z)
    np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), rtol=1e-12, atol=1e-12)
    (y * y).sum().backward()
    (want * want).sum().backward()
    pairs = [(x, z), *zip(ours.parameters(), theirs.parameters(), strict=True)]
    for a, b in pairs:
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-11, atol=1e-11)


@BY_LAYER
def test_they_show_and_save_as_pytorchs_do(name, sizes, options, shape) -> None:
    ours, theirs = pair(name, sizes, options)
    assert repr(ours) == repr(theirs)
    state = {k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()}
    theirs.load_state_dict(state)
    assert list(state) == list(theirs.state_dict())


@pytest.mark.parametrize("name", ["Conv2d", "ConvTranspose2d"])
def test_first_values_are_spread_as_pytorchs(name: str) -> None:
    layer = getattr(nn, name)(64, 32, 3, groups=2, generator=tw.Generator(5))
    bound = 1 / math.sqrt(math.prod(layer.weight.shape[1:]))
    for parameter in layer.parameters():
        values = parameter.detach().numpy()
        assert np.abs(values).max() <= bound
        assert np.abs(values).max() > 0.8 * bound
    assert abs(layer.weight.detach().numpy().std() - bound / math.sqrt(3)) < 0.02 * bound
    again = getattr(nn, name)(64, 32, 3, groups=2, generator=tw.Generator(5))
    assert (again.weight.detach().numpy() == layer.weight.detach().numpy()).all()


def test_output_size_chooses_among_those_a_stride_leaves(rng) -> None:
    ours, theirs = pair("ConvTranspose2d", (2, 3, 3), {"stride": 3, "padding": 1})
    data = rng.normal(size=(1, 2, 4, 5))
    for size in ((10, 13), (12, 14), (1, 3, 11, 15)):
        y = ours(tw.asarray(data), output_size=size)
        want = theirs(torch.tensor(data), output_size=size)
        assert y.shape == tuple(want.shape)
        np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), rtol=1e-12)
    with pytest.raises(ValueError, match=r"output_size \(9, 13\) is not between \(10, 13\) and"):
        ours(tw.asarray(data), output_size=(9, 13))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "groups=2 do not divide in_channels=3"),
        (lambda: nn.Conv2d(4, 3, 3, groups=2), ValueError, "groups=2 do not divide out_channels=3"),
        (lambda: nn.Conv2d(4, 3, 3, groups=0), ValueError, "Conv2d: groups=0 do not divide"),
        (lambda: nn.Conv2d(4, 3, (3, 3, 3)), ValueError, "kernel_size is one number or 2"),
        (lambda: nn.Conv2d(4, 3, 3, padding="full"), ValueError, "'valid' or 'same', got 'full'"),
        (lambda: nn.Conv1d(4, 3, 3, stride=2, padding="same"), ValueError, "needs stride 1"),
        (lambda: nn.Conv1d(4, 3, 3, padding_mode="wrap"), ValueError, "padding_mode is one of"),
        (lambda: nn.ConvTranspose1d(4, 3, 3, padding_mode="reflect"), ValueError, "is 'zeros'"),
        (lambda: nn.Conv1d(4, 3, 2.5), TypeError, "kernel_size is a whole number, got 2.5"),
        (lambda: nn.Conv1d(4, 3, 3)([1.0]), TypeError, "Conv1d: expected a Tensor, got list"),
        (
            lambda: nn.Conv1d(1, 1, 3, padding=3, padding_mode="reflect")(tw.ones((1, 1, 3))),
            ValueError,
            "pad: width 3 is more than axis 2 of (1, 1, 3) allows in mode 'reflect'",
        ),
        (lambda: nn.Conv2d(3, 4, 5)(tw.ones((1, 3, 4, 4))), ValueError, "conv2d: kernel (5, 5)"),
    ],
)
def test_errors(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        make()
    assert text in str(caught.value)


def test_a_small_network_learns(rng) -> None:
    """Which half of a picture is bright."""
    x = rng.normal(size=(64, 1, 8, 8)).astype(np.float32)
    labels = rng.integers(0, 2, 64)
    for picture, label in zip(x, labels, strict=True):
        picture[:, :, 4 * label : 4 * label + 4] += 1
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, generator=tw.Generator(1)),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, stride=2, generator=tw.Generator(2)),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(72, 2, generator=tw.Generator(3)),
    )
    optimizer = tw.optim.Adam(model.parameters(), lr=0.01)
    inputs, targets = tw.asarray(x), tw.asarray(labels)
    for _ in range(30):
        optimizer.zero_grad()
        loss = tw.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.2
