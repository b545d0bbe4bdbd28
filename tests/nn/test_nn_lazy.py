"""Layers that take their input's size from the first one they see."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

import tilewright as tw

nn = tw.nn
# Arguments, and shapes of first inputs with and without a batch.
CASES = {
    "Linear": ((4,), [(5, 3), (3,), (2, 5, 3)]),
    "Conv1d": ((4, 3), [(2, 6, 9), (6, 9)]),
    "Conv2d": ((4, 3), [(2, 6, 9, 8), (6, 9, 8)]),
    "Conv3d": ((4, 3), [(2, 6, 5, 4, 3), (6, 5, 4, 3)]),
    "ConvTranspose1d": ((4, 3), [(2, 6, 9), (6, 9)]),
    "ConvTranspose2d": ((4, 3), [(2, 6, 5, 4), (6, 5, 4)]),
    "ConvTranspose3d": ((4, 3), [(2, 6, 3, 2, 2), (6, 3, 2, 2)]),
    "BatchNorm1d": ((), [(5, 6), (5, 6, 3)]),
    "BatchNorm2d": ((), [(5, 6, 3, 2)]),
    "BatchNorm3d": ((), [(5, 6, 3, 2, 2)]),
    "InstanceNorm1d": ((1e-5, 0.1, True, True), [(5, 6, 3), (6, 3)]),
    "InstanceNorm2d": ((1e-5, 0.1, True, True), [(5, 6, 3, 2), (6, 3, 2)]),
    "InstanceNorm3d": ((1e-5, 0.1, True, True), [(5, 6, 3, 2, 2), (6, 3, 2, 2)]),
}


def size_of(name, shape):
    return shape[-1] if name == "Linear" else 6


@pytest.mark.parametrize("name", CASES)
def test_first_input_makes_the_regular_layer(name):
    arguments, shapes = CASES[name]
    for shape in shapes:
        x = tw.randn(shape)
        tw.manual_seed(5)
        want_layer = getattr(nn, name)(size_of(name, shape), *arguments)
        want = want_layer(x)
        layer = getattr(nn, f"Lazy{name}")(*arguments)
        assert isinstance(layer, getattr(nn, name))
        assert repr(layer).startswith(f"Lazy{name}(?")
        held = list(layer.parameters())
        tw.manual_seed(5)
        got = layer(x)
        assert type(layer) is getattr(nn, name)
        assert repr(layer) == repr(want_layer)
        assert all(a is b for a, b in zip(held, layer.parameters(), strict=True))
        np.testing.assert_array_equal(got.detach().numpy(), want.detach().numpy())
        assert list(layer.state_dict()) == list(want_layer.state_dict())


@pytest.mark.parametrize("name", CASES)
def test_signatures_lack_the_first_size(name):
    lazy, regular = (inspect.signature(getattr(nn, prefix + name)) for prefix in ("Lazy", ""))
    assert list(lazy.parameters) == list(regular.parameters)[1:]
    with pytest.raises(TypeError, match="colour"):
        getattr(nn, f"Lazy{name}")(*CASES[name][0], colour="red")


def test_an_optimizer_made_before_trains_what_comes_after():
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    optimizer = tw.optim.Adam(model.parameters(), lr=0.1)
    x = tw.randn(8, 3, 5, 5)
    before = None
    for _ in range(2):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        before = before or [p.tolist() for p in model.parameters()]
        optimizer.step()
    assert all(p.tolist() != old for p, old in zip(model.parameters(), before, strict=True))
    assert [type(layer).__name__ for layer in model] == [
        "Conv2d", "BatchNorm2d", "Flatten", "Linear",
    ]  # fmt: skip


def test_what_was_set_before_the_first_call_holds():
    layer = nn.LazyLinear(2).double().eval().requires_grad_(False)
    seen = []
    layer.register_forward_hook(lambda module, args, y: seen.append(y.shape))
    layer(tw.ones((5, 3), dtype=tw.float64))
    assert layer.weight.dtype == tw.float64
    assert not layer.weight.requires_grad
    assert not layer.training
    assert seen == [(5, 2)]


def test_groups_and_copies():
    layer = nn.LazyConv2d(4, 3, groups=2, bias=False)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert twin(tw.ones((1, 6, 5, 5))).shape == (1, 4, 3, 3)
        assert twin.weight.shape == (4, 3, 3, 3)
    assert type(layer) is nn.LazyConv2d
    with pytest.raises(ValueError, match="groups=2 do not divide in_channels=3"):
        layer(tw.ones((1, 3, 5, 5)))
    assert type(layer) is nn.LazyConv2d  # still waits for an input that fits


def test_inputs_that_do_not_fit():
    for layer, shape in (
        (nn.LazyConv2d(4, 3), (3,)), (nn.LazyBatchNorm2d(), (3, 4)), (nn.LazyLinear(2), ()),
        (nn.LazyBatchNorm1d(), (3,)), (nn.LazyInstanceNorm1d(), (3,)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=type(layer).__name__):
            layer(tw.zeros(shape))
    with pytest.raises(TypeError, match="LazyLinear: expected a Tensor, got list"):
        nn.LazyLinear(2)([1.0])


def test_a_class_on_a_lazy_one():
    class Mine(nn.LazyLinear):
        pass

    layer = Mine(2)
    assert layer(tw.ones((5, 3))).shape == (5, 2)


@pytest.mark.parametrize("name", CASES)
def test_a_state_says_the_size(name):
    arguments, shapes = CASES[name]
    trained = nn.Sequential(getattr(nn, name)(size_of(name, shapes[0]), *arguments))
    x = tw.randn(shapes[0])
    trained(x)
    layer = getattr(nn, f"Lazy{name}")(*arguments)
    model = nn.Sequential(layer)
    optimizer = tw.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ValueError, match="unexpected: more"):
        model.load_state_dict({**trained.state_dict(), "more": tw.ones(1)})
    assert type(layer) is getattr(nn, f"Lazy{name}")
    model.load_state_dict(trained.state_dict())
    assert type(layer) is getattr(nn, name)
    assert repr(layer) == repr(trained[0])
    np.testing.assert_array_equal(
        model.eval()(x).detach().numpy(), trained.eval()(x).detach().numpy()
    )
    before = [p.tolist() for p in model.parameters()]
    model.train()(x).square().sum().backward()
    optimizer.step()
    assert not before or [p.tolist() for p in model.parameters()] != before


def test_a_state_of_a_group():
    trained = nn.Conv2d(6, 4, 3, groups=2)
    layer = nn.LazyConv2d(4, 3, groups=2)
    layer.load_state_dict(trained.state_dict())
    assert layer.in_channels == 6


def test_what_a_class_on_a_lazy_one_defines_runs():
    class Doubled(nn.LazyLinear):
        resets = 0

        def reset_parameters(self, generator=None):
            super().reset_parameters(generator)
            self.resets += 1
            with tw.no_grad():
                self.weight.copy_(tw.ones_like(self.weight))

        def forward(self, x):
            return 2 * super().forward(x)

    layer = Doubled(2, bias=False)
    twin = copy.deepcopy(layer)
    seen = []
    layer.register_forward_hook(lambda module, args, y: seen.append(y.shape))
    for _ in range(2):
        np.testing.assert_array_equal(layer(tw.ones((4, 3))).detach().numpy(), np.full((4, 2), 6))
    assert type(layer) is Doubled
    assert (layer.resets, seen, repr(layer)) == (2, [(4, 2)] * 2, "Doubled(3, 2, bias=False)")
    assert repr(twin) == "Doubled(?, 2, bias=False)"
    twin.load_state_dict(layer.state_dict())
    np.testing.assert_array_equal(twin(tw.ones((1, 3))).detach().numpy(), [[6, 6]])
    twin.load_state_dict({"weight": tw.zeros((2, 3))})
    with pytest.raises(ValueError, match="shape"):
        twin.load_state_dict({"weight": tw.zeros((2, 5))})
    with pytest.raises(ValueError, match="4, 5"):
        layer(tw.ones((4, 5)))
    assert not copy.deepcopy(layer)(tw.zeros((1, 3))).any()


def test_weights_without_a_size_are_not_computed_from_others():
    utils = nn.utils
    for function in (
        utils.weight_norm,
        utils.spectral_norm,
        utils.parametrizations.weight_norm,
        utils.parametrizations.spectral_norm,
        lambda layer: utils.parametrize.register_parametrization(layer, "weight", nn.Identity()),
    ):
        for layer in (nn.LazyLinear(2), nn.LazyConv2d(4, 3), nn.Sequential(nn.LazyConv1d(2, 1))[0]):
            names = layer.state_dict().keys()
            with pytest.raises(ValueError, match=r"Lazy\w+ have no sizes before its first call"):
                function(layer)
            assert layer.state_dict().keys() == names
        layer = nn.LazyLinear(2)
        layer(tw.ones((1, 3)))
        function(layer)
        assert layer(tw.ones((1, 3))).shape == (1, 2)
