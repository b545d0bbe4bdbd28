"""`tw.nn.functional`: PyTorch's names, for what there is."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.nn import functional

torch = pytest.importorskip("torch")

CALLS = {
    "relu": lambda f, x: f.relu(x),
    "sigmoid": lambda f, x: f.sigmoid(x),
    "tanh": lambda f, x: f.tanh(x),
    "silu": lambda f, x: f.silu(x),
    "elu": lambda f, x: f.elu(x),
    "softplus": lambda f, x: f.softplus(x),
    "softmax": lambda f, x: f.softmax(x, dim=0),
    "log_softmax": lambda f, x: f.log_softmax(x, dim=-1),
    "linear": lambda f, x: f.linear(x, x[:2], x[0, :2]),
    "mse_loss": lambda f, x: f.mse_loss(x, x * 2, reduction="sum"),
    "dropout": lambda f, x: f.dropout(x, 0.5, training=False),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_are_pytorchs(name):
    x = np.random.default_rng(0).normal(size=(4, 3))
    got = CALLS[name](functional, tw.asarray(x))
    want = CALLS[name](torch.nn.functional, torch.tensor(x))
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    "name", ["celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "selu_", "threshold_"]
)
def test_activations_in_place(name):
    values = np.random.default_rng(1).normal(size=(4, 3))
    settings = (0.25, -0.5) if name == "threshold_" else ()
    x, theirs = tw.tensor(values), torch.tensor(values)
    assert getattr(functional, name)(x, *settings) is x
    getattr(torch.nn.functional, name)(theirs, *settings)
    np.testing.assert_allclose(x.numpy(), theirs.numpy(), rtol=1e-12)


def test_losses_and_classes():
    logits, targets = np.eye(3), np.array([0, 2, 1])
    got = functional.cross_entropy(tw.asarray(logits), tw.asarray(targets))
    want = torch.nn.functional.cross_entropy(torch.tensor(logits), torch.tensor(targets))
    assert got.item() == pytest.approx(want.item(), rel=1e-12)
    assert functional.one_hot(tw.asarray(targets), 3).shape == (3, 3)


def test_every_name_is_pytorchs():
    for name in functional._NAMES:
        assert callable(getattr(torch.nn.functional, name)), name


def test_every_function_that_tilewright_has_is_there():
    theirs = {name for name in dir(torch.nn.functional) if name.islower() and name[0] != "_"}
    shared = {
        name
        for name in theirs
        if callable(getattr(tw, name, None)) and callable(getattr(torch.nn.functional, name))
    }
    assert shared - set(functional._NAMES) <= {"grad"}
    made = set(functional._MADE_OF_OPS)
    assert sorted(shared & set(functional._NAMES) | functional._OWN | made) == dir(functional)
    for name in set(dir(functional)) - made:
        assert getattr(functional, name) is getattr(tw, name)
    for name in made:
        assert getattr(functional, name).__name__ == name
        assert callable(getattr(torch.nn.functional, name)), name


def test_what_is_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'no_such_function'"):
        functional.no_such_function  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'arange'"):
        functional.arange  # noqa: B018
