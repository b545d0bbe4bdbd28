"""Parameters that are computed, and padded sequences, against PyTorch."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn
from tilewright.nn.utils import parametrizations, parametrize, rnn

torch = pytest.importorskip("torch")
theirs_of = torch.nn.utils.parametrizations


def state_of(module: Any) -> dict[str, np.ndarray]:
    return {name: x.detach().numpy().copy() for name, x in module.state_dict().items()}


LAYERS = (
    ("Linear", (4, 3), (5, 4)),
    ("Conv2d", (2, 3, 3), (1, 2, 5, 5)),
    ("ConvTranspose1d", (2, 3, 3), (1, 2, 5)),
)


@pytest.mark.parametrize(("name", "args", "shape"), LAYERS)
@pytest.mark.parametrize("options", [{}, {"dim": None}, {"dim": 1}])
def test_weight_norm(name, args, shape, options, rng) -> None:
    ours = getattr(nn, name)(*args, dtype=tw.float64)
    theirs = getattr(torch.nn, name)(*args).double()
    plain = {k: tw.asarray(v) for k, v in state_of(theirs).items()}
    ours.load_state_dict(plain)
    before = ours.weight.detach().numpy().copy()
    assert parametrizations.weight_norm(ours, **options) is ours
    theirs_of.weight_norm(theirs, **options)
    assert {k: v.shape for k, v in state_of(ours).items()} == {
        k: v.shape for k, v in state_of(theirs).items()
    }
    np.testing.assert_allclose(ours.weight.detach().numpy(), before, atol=1e-12)
    x = rng.normal(size=shape)
    y, want = ours(tw.asarray(x)), theirs(torch.tensor(x))
    np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), atol=1e-12)
    (y * y).sum().backward()
    (want * want).sum().backward()
    wanted = {k: v.grad.numpy() for k, v in theirs.named_parameters()}
    for k, v in ours.named_parameters():
        np.testing.assert_allclose(v.grad.numpy(), wanted[k], atol=1e-10, err_msg=k)


@pytest.mark.parametrize(("name", "args", "shape"), LAYERS)
def test_spectral_norm(name, args, shape, rng) -> None:
    ours = getattr(nn, name)(*args, dtype=tw.float64)
    theirs = getattr(torch.nn, name)(*args).double()
    parametrizations.spectral_norm(ours, n_power_iterations=2)
    theirs_of.spectral_norm(theirs, n_power_iterations=2)
    ours.load_state_dict({k: tw.asarray(v) for k, v in state_of(theirs).items()})
    x = rng.normal(size=shape)
    for training in (True, False):
        ours.train(training)
        theirs.train(training)
        y, want = ours(tw.asarray(x)), theirs(torch.tensor(x))
        np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), atol=1e-12)
        ours.zero_grad()
        theirs.zero_grad()
        (y * y).sum().backward()
        (want * want).sum().backward()
        wanted = {k: v.grad.numpy() for k, v in theirs.named_parameters()}
        for k, v in ours.named_parameters():
            np.testing.assert_allclose(v.grad.numpy(), wanted[k], atol=1e-10, err_msg=k)
        for k, v in state_of(theirs).items():
            np.testing.assert_allclose(state_of(ours)[k], v, atol=1e-12, err_msg=k)


def test_two_calls_before_one_backward() -> None:
    layer = parametrizations.spectral_norm(nn.Linear(4, 3))
    loss = (layer(tw.ones((2, 4))) - layer(tw.zeros((2, 4)))).sum()
    loss.backward()
    assert layer.parametrizations.weight.original.grad is not None


class Symmetric(nn.Module):
    def forward(self, x: tw.Tensor) -> tw.Tensor:
        return tw.triu(x) + tw.triu(x, 1).T

    def right_inverse(self, x: tw.Tensor) -> tw.Tensor:
        return tw.triu(x)


class Doubled(nn.Module):
    def forward(self, x: tw.Tensor) -> tw.Tensor:
        return x * 2


def test_any_parametrization() -> None:
    layer = nn.Linear(3, 3)
    weight = layer.weight
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias")
    assert type(layer).__name__ == "ParametrizedLinear"
    assert isinstance(layer, nn.Linear)
    assert layer.parametrizations["weight"].original is weight  # optimisers keep it
    wanted = np.arange(9.0, dtype=np.float32).reshape(3, 3)
    wanted = wanted + wanted.T
    layer.weight = tw.asarray(wanted)
    np.testing.assert_array_equal(layer.weight.detach().numpy(), wanted)
    parametrize.register_parametrization(layer, "weight", Doubled())
    np.testing.assert_array_equal(layer.weight.detach().numpy(), 2 * wanted)
    with pytest.raises(RuntimeError, match="Doubled: has no right_inverse"):
        layer.weight = tw.asarray(wanted)
    other = copy.deepcopy(layer)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert isinstance(layer.weight, nn.Parameter)
    np.testing.assert_array_equal(layer.weight.detach().numpy(), 2 * wanted)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    np.testing.assert_array_equal(other.weight.detach().numpy(), 2 * wanted)
    parametrize.remove_parametrizations(other, "weight", leave_parametrized=False)
    np.testing.assert_array_equal(other.weight.detach().numpy(), np.triu(wanted))


def test_training_a_parametrized_layer() -> None:
    tw.manual_seed(1)
    layer = parametrizations.weight_norm(nn.Linear(4, 1))
    optimizer = tw.optim.SGD(layer.parameters(), lr=0.1)
    x = tw.randn((20, 4))
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = ((layer(x) - x.sum(axis=1, keepdims=True)) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


def test_what_cannot_be_parametrized() -> None:
    layer = nn.Linear(4, 3)
    with pytest.raises(KeyError, match="has no parameter or buffer 'wait'"):
        parametrize.register_parametrization(layer, "wait", Doubled())
    with pytest.raises(ValueError, match="'weight' is not parametrized"):
        parametrize.remove_parametrizations(layer, "weight")
    with pytest.raises(ValueError, match="became"):
        parametrize.register_parametrization(layer, "weight", nn.Linear(4, 2))
    assert not parametrize.is_parametrized(layer)
    parametrizations.weight_norm(layer)
    with pytest.raises(ValueError, match="computed from 2 tensors"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    with pytest.raises(ValueError, match="n_power_iterations must be above 0"):
        parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
    with pytest.raises(IndexError, match="dim 2 is out of range"):
        parametrizations.spectral_norm(nn.Linear(2, 2), dim=2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm"])
@pytest.mark.parametrize(("name", "args", "shape"), LAYERS)
def test_older_states(kind, name, args, shape, rng) -> None:
    ours = getattr(nn, name)(*args, dtype=tw.float64)
    theirs = getattr(torch.nn, name)(*args).double()
    assert getattr(nn.utils, kind)(ours) is ours
    getattr(torch.nn.utils, kind)(theirs)
    ours.load_state_dict({k: tw.asarray(v) for k, v in state_of(theirs).items()})
    x = rng.normal(size=shape)
    for training in (True, False):
        ours.train(training)
        theirs.train(training)
        y, want = ours(tw.asarray(x)), theirs(torch.tensor(x))
        np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), atol=1e-12)
        ours.zero_grad()
        theirs.zero_grad()
        (y * y).sum().backward()
        (want * want).sum().backward()
        wanted = {k: v.grad.numpy() for k, v in theirs.named_parameters()}
        assert set(wanted) == {k for k, _ in ours.named_parameters()}
        for k, v in ours.named_parameters():
            np.testing.assert_allclose(v.grad.numpy(), wanted[k], atol=1e-10, err_msg=k)
        for k, v in state_of(theirs).items():
            np.testing.assert_allclose(state_of(ours)[k], v, atol=1e-12, err_msg=k)
    getattr(nn.utils, f"remove_{kind}")(ours)
    assert sorted(ours.state_dict()) == ["bias", "weight"]
    y = ours(tw.asarray(x))
    np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), atol=1e-12)
    with pytest.raises(ValueError, match=f"{kind} of 'weight' not found"):
        getattr(nn.utils, f"remove_{kind}")(ours)
    with pytest.raises(ValueError, match=f"{kind}: {name} has no"):
        getattr(nn.utils, kind)(ours, "wait")


def test_padded_sequences(rng) -> None:
    data = [rng.normal(size=(n, 3)) for n in (4, 2, 5, 0)]
    for first in (False, True):
        for side in ("right", "left"):
            got = rnn.pad_sequence([tw.asarray(x) for x in data], first, 7.0, side)
            want = torch.nn.utils.rnn.pad_sequence(
                [torch.tensor(x) for x in data], first, 7.0, side
            )
            np.testing.assert_array_equal(got.numpy(), want.numpy())
        got = rnn.pad_sequence([tw.asarray(x) for x in data], first)
        for x, y in zip(data, rnn.unpad_sequence(got, (4, 2, 5, 0), first), strict=True):
            np.testing.assert_array_equal(y.numpy(), x)
    with pytest.raises(ValueError, match="needs at least one tensor"):
        rnn.pad_sequence([])
    with pytest.raises(ValueError, match="differ behind their first axis"):
        rnn.pad_sequence([tw.ones((2, 3)), tw.ones((2, 4))])
    with pytest.raises(ValueError, match="3 lengths for 4 sequences"):
        rnn.unpad_sequence(got, (1, 2, 3), True)


# ---- optimizers, copies and pickles ----

WAYS = {
    "weight_norm": (nn.utils.weight_norm, nn.utils.remove_weight_norm),
    "spectral_norm": (nn.utils.spectral_norm, nn.utils.remove_spectral_norm),
    "parametrizations.weight_norm": (
        nn.utils.parametrizations.weight_norm,
        lambda m: nn.utils.parametrize.remove_parametrizations(m, "weight"),
    ),
    "parametrizations.spectral_norm": (
        nn.utils.parametrizations.spectral_norm,
        lambda m: nn.utils.parametrize.remove_parametrizations(m, "weight"),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_optimizer_trains_what_is_computed_and_what_is_left(way):
    norm, remove = WAYS[way]
    layer = nn.Linear(3, 2)
    before = tw.optim.SGD(layer.parameters(), lr=0.1)
    norm(layer)
    inside = tw.optim.SGD(layer.parameters(), lr=0.1)
    for optimizer in (before, inside):
        values = layer(tw.ones((1, 3))).tolist()
        layer(tw.ones((1, 3))).square().sum().backward()
        layer.bias.grad = None
        optimizer.step()
        optimizer.zero_grad()
        assert layer.eval()(tw.ones((1, 3))).tolist() != values
        layer.train()
    layer.eval()
    values = layer(tw.ones((1, 3))).tolist()
    remove(layer)
    np.testing.assert_allclose(layer(tw.ones((1, 3))).tolist(), values, rtol=1e-6)
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight"]
    layer(tw.ones((1, 3))).square().sum().backward()
    held = layer.weight.tolist()
    inside.step()
    assert layer.weight.tolist() != held


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("called", [False, True])
def test_copies_and_pickles_are_of_their_own(way, called):
    norm, remove = WAYS[way]
    layer = norm(nn.Linear(3, 2))
    x = tw.ones((1, 3))
    if called:
        layer(x)
    layer.eval()
    values = layer(x).tolist()
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert list(twin.state_dict()) == list(layer.state_dict())
        twin(x).sum().backward()
        assert all(x.grad is not None for x in twin.parameters())
        assert all(x.grad is None for x in layer.parameters())
        remove(twin)
        np.testing.assert_allclose(twin(x).tolist(), values, rtol=1e-6)
        with tw.no_grad():
            next(layer.parameters()).mul_(1)
        assert layer(x).tolist() == values
        assert "weight" not in dict(layer.named_parameters())


def test_a_plain_parametrization_leaves_the_parameter_that_it_had():
    class Doubled(nn.Module):
        def forward(self, x):
            return 2 * x

    for leave in (True, False):
        layer = nn.Linear(2, 2)
        weight, held = layer.weight, layer.weight.tolist()
        nn.utils.parametrize.register_parametrization(layer, "weight", Doubled())
        nn.utils.parametrize.remove_parametrizations(layer, "weight", leave)
        assert layer.weight is weight
        assert weight.is_leaf
        factor = 2 if leave else 1
        assert weight.tolist() == [[factor * x for x in row] for row in held]
