"""Recordings of a model's calls are good until something that the calls depend on changes."""

from __future__ import annotations

import copy
import gc
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import tilewright as tw
from tilewright import Tensor, nn
from tilewright._core import _ModuleState as ModuleState
from tilewright.nn.utils import parametrizations, parametrize
from tilewright.train.models import Gpt


class Settings:
    """Of a model, in an object of its own."""

    def __init__(self) -> None:
        self.scale = 1.0


class Model(nn.Module):
    """Parts of each kind."""

    def __init__(self) -> None:
        self.first = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.many = nn.ModuleList([nn.Linear(4, 4), nn.ReLU()])
        self.named = nn.ModuleDict({"a": nn.Linear(4, 4)})
        self.body = nn.Sequential(OrderedDict(one=nn.Linear(4, 4), two=nn.Tanh()))
        self.factors = [2.0, 3.0]
        self.table = {"a": [1, 2]}
        self.settings = Settings()
        self.vocabulary = list(range(100_000))
        self.register_buffer("seen", tw.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.body(self.norm(self.first(x))) * self.settings.scale
        return y


class Doubled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


CHANGES: dict[str, Callable[[Model], object]] = {
    "a setting": lambda m: setattr(m.norm, "eps", 0.1),
    "a new attribute": lambda m: setattr(m, "note", 1),
    "a deleted attribute": lambda m: delattr(m, "table"),
    "a setting in the dictionary": lambda m: vars(m.norm).__setitem__("eps", 0.1),
    "a setting of an object": lambda m: setattr(m.settings, "scale", 2.0),
    "an element of a list": lambda m: m.factors.__setitem__(0, 5.0),
    "a longer list": lambda m: m.factors.append(1.0),
    "a longer vocabulary": lambda m: m.vocabulary.append(1),
    "an element of a list in a dictionary": lambda m: m.table["a"].append(3),
    "a submodule": lambda m: setattr(m, "first", nn.Linear(4, 4)),
    "no submodule": lambda m: delattr(m, "norm"),
    "None for a submodule": lambda m: setattr(m, "norm", None),
    "a submodule of a list": lambda m: m.many.__setitem__(1, nn.GELU()),
    "a submodule less": lambda m: m.many.__delitem__(1),
    "a submodule more": lambda m: m.many.append(nn.GELU()),
    "a submodule of a dictionary": lambda m: m.named.__setitem__("a", nn.Linear(4, 4)),
    "a submodule of a sequence": lambda m: setattr(m.body, "one", nn.Linear(4, 4)),
    "a submodule by add_module": lambda m: m.body.add_module("three", nn.GELU()),
    "a submodule by set_submodule": lambda m: m.set_submodule("body.two", nn.GELU()),
    "another parameter": lambda m: setattr(m.first, "weight", nn.Parameter(tw.zeros((4, 4)))),
    "no parameter": lambda m: setattr(m.first, "bias", None),
    "a parameter more": lambda m: m.register_parameter("more", nn.Parameter(tw.zeros(1))),
    "a parameter's memory": lambda m: setattr(m.first.weight, "data", tw.zeros((4, 4))),
    "a parameter's type": lambda m: m.first.double(),
    "a frozen parameter": lambda m: m.first.weight.requires_grad_(False),
    "another buffer": lambda m: setattr(m, "seen", tw.ones(3)),
    "a buffer more": lambda m: m.register_buffer("other", tw.ones(3)),
    "evaluation": lambda m: m.eval(),
    "a forward of its own": lambda m: setattr(m.norm, "forward", lambda x: x),
    "a method of its own": lambda m: setattr(
        m.norm, "forward", types.MethodType(lambda self, x: x, m.norm)
    ),
    "another class": lambda m: setattr(m.norm, "__class__", Doubled),
    "a hook before": lambda m: m.first.register_forward_pre_hook(lambda *_: None),
    "a hook": lambda m: m.body.two.register_forward_hook(lambda *_: None),
    "a hook of gradients": lambda m: m.first.register_full_backward_hook(lambda *_: None),
    "a hook of a parameter": lambda m: m.first.weight.register_hook(lambda g: None),
    "a parametrization": lambda m: parametrize.register_parametrization(
        m.first, "weight", Doubled()
    ),
    "weight norm": lambda m: parametrizations.weight_norm(m.first),
    "loaded by assignment": lambda m: m.load_state_dict(copy.deepcopy(m).state_dict(), assign=True),
}
SAME: dict[str, Callable[[Model], object]] = {
    "nothing": lambda m: None,
    "a call": lambda m: m(tw.ones((2, 4))),
    "values in place": lambda m: m.first.weight.detach().mul_(2),
    "a gradient": lambda m: m(tw.ones((2, 4))).sum().backward(),
    "a step": lambda m: tw.optim.SGD(m.parameters(), lr=0.1).step(),
    "a loaded state": lambda m: m.load_state_dict(copy.deepcopy(m).state_dict()),
    "questions": lambda m: (repr(m), list(m.named_parameters()), m.state_dict(), vars(m)),
    "a copy": lambda m: copy.deepcopy(m).eval(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_seen(name: str) -> None:
    model = Model()
    state = ModuleState(model)
    assert state.holds_for(model)
    CHANGES[name](model)
    assert not state.holds_for(model)
    assert ModuleState(model).holds_for(model)


@pytest.mark.parametrize("name", SAME)
def test_what_is_no_change(name: str) -> None:
    model = Model()
    state = ModuleState(model)
    SAME[name](model)
    assert state.holds_for(model)


def test_a_hook_that_goes_is_a_change() -> None:
    model = Model()
    handles = [
        model.first.register_forward_hook(lambda *_: None),
        model.first.weight.register_hook(lambda g: None),
    ]
    for handle in handles:
        state = ModuleState(model)
        handle.remove()
        assert not state.holds_for(model)


@contextmanager
def patched(cls: type, name: str, value: object) -> Iterator[None]:
    own = name in vars(cls)
    before = vars(cls).get(name)
    type.__setattr__(cls, name, value)
    try:
        yield
    finally:
        type.__setattr__(cls, name, before) if own else type.__delattr__(cls, name)


@pytest.mark.parametrize("cls", [Model, nn.LayerNorm, nn.Module, Settings])
def test_classes_may_be_patched(cls: type) -> None:
    model = Model()
    state = ModuleState(model)
    with patched(cls, "forward", lambda self, x: x):
        assert not state.holds_for(model)
    with patched(cls, "new_setting", 1):
        assert not state.holds_for(model)


def test_another_module_is_another_state() -> None:
    model = Model()
    assert not ModuleState(model).holds_for(copy.deepcopy(model))


def test_modules_that_know_one_another() -> None:
    model = Model()
    model.first.above = model
    model.kept = ModuleState(model)  # counts as a change: made before the attribute
    assert not model.kept.holds_for(model)
    state = ModuleState(model)
    assert state.holds_for(model)
    gone = weakref.ref(model)
    model.state = state
    del model, state
    gc.collect()
    assert gone() is None


def test_long_lists_of_modules_are_seen_whole() -> None:
    model = nn.ModuleList([nn.ReLU() for _ in range(600)])
    state = ModuleState(model)
    model[599].inplace = True
    assert not state.holds_for(model)


# ---- a model that writes text ----


def small() -> Gpt:
    tw.manual_seed(4)
    return Gpt(symbols=17, width=8, layers=3, context=16)


class Shifted(nn.Module):
    """In the place of a block."""

    def forward(self, x: Tensor, *_: object) -> Tensor:
        return x + 1


GPT_CHANGES: dict[str, Callable[[Gpt], object]] = {
    "a replaced block": lambda m: m.h.__setitem__(1, Shifted()),
    "a deleted block": lambda m: m.h.__delitem__(1),
    "a setting": lambda m: setattr(m.h[0].ln_1, "eps", 0.5),
    "a replaced layer": lambda m: setattr(m, "head", nn.Linear(8, 17, bias=True)),
    "a forward of its own": lambda m: setattr(m.ln_f, "forward", lambda x: x * 2),
    "a parametrization": lambda m: parametrize.register_parametrization(
        m.head, "weight", Doubled()
    ),
    "a hook": lambda m: m.h[1].register_forward_hook(lambda module, args, y: y * 2),
    "a hook before": lambda m: m.head.register_forward_pre_hook(lambda module, args: args[0] * 2),
    "a parameter's memory": lambda m: setattr(m.head.weight, "data", m.head.weight.data * 2),
    "another parameter": lambda m: setattr(
        m.head, "weight", nn.Parameter(m.head.weight.detach() * 2)
    ),
    "loaded by assignment": lambda m: m.load_state_dict(
        {k: v * 2 for k, v in m.state_dict().items()}, assign=True
    ),
    "values in place": lambda m: m.head.weight.detach().mul_(2),
}


@pytest.mark.parametrize("name", GPT_CHANGES)
def test_recorded_steps_follow_the_model(name: str) -> None:
    logits = {}
    for replays in (False, True):
        model = small()
        model.replays = replays
        tw.manual_seed(8)
        with tw.no_grad():
            _, cache = model.follow([3])
            _, cache = model.follow([5], cache)
            assert (cache.recorded is not None) is replays
            GPT_CHANGES[name](model)
            logits[replays] = [model.follow([token], cache)[0].tolist() for token in (7, 2, 9)]
    assert logits[True] == logits[False]


def test_a_cache_may_serve_another_model() -> None:
    first, second = small(), small()
    with tw.no_grad():
        second.head.weight.mul_(2)
        _, cache = first.follow([3])
        expected = [first.follow([5], cache)[0] * 2]
        cache.reset()
        first.follow([3], cache)
        assert second.follow([5], cache)[0].tolist() == expected[0].tolist()
