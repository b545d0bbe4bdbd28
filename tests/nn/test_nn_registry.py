"""What modules register, and that a module calls what its children override: beside PyTorch."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn

torch = pytest.importorskip("torch")
PACKAGES = {"ours": (tw, nn), "theirs": (torch, torch.nn)}


def both(story) -> None:
    """A story told with modules of ours is the one that PyTorch's tell."""
    ours, theirs = story(tw, nn), story(torch, torch.nn)
    assert ours == theirs


# ---- overrides ----


def load(root) -> None:
    root.load_state_dict({key: value * 1 for key, value in root.state_dict().items()})


# Methods that PyTorch's documentation lets a class override, the layer that is overridden, and
# what calls them: made(root, layer) where `layer`, a child of `root`, is of that class.
OVERRIDES = {
    "forward": ("Linear", lambda p, root, layer: root(p.ones((2, 2)))),
    "train": ("Linear", lambda p, root, layer: root.train()),
    "train ": ("Linear", lambda p, root, layer: root.eval()),
    "apply": ("Linear", lambda p, root, layer: root.apply(lambda module: None)),
    "_apply": ("Linear", lambda p, root, layer: root.double()),
    "_apply ": ("Linear", lambda p, root, layer: root.to("cpu")),
    "_apply  ": ("Linear", lambda p, root, layer: root.to_empty(device="cpu")),
    "state_dict": ("Linear", lambda p, root, layer: root.state_dict()),
    "_save_to_state_dict": ("Linear", lambda p, root, layer: root.state_dict()),
    "_load_from_state_dict": ("Linear", lambda p, root, layer: load(root)),
    "extra_repr": ("Linear", lambda p, root, layer: repr(root)),
    "_get_name": ("Linear", lambda p, root, layer: repr(root)),
    "__repr__": ("Linear", lambda p, root, layer: repr(root)),
    "named_modules": ("Linear", lambda p, root, layer: list(root.parameters())),
    "named_modules ": ("Linear", lambda p, root, layer: list(root.named_buffers())),
    "named_modules  ": ("Linear", lambda p, root, layer: list(root.modules())),
    "named_parameters": ("Linear", lambda p, root, layer: list(layer.parameters())),
    "named_parameters ": ("Linear", lambda p, root, layer: layer.parameters().__next__()),
    "parameters": ("Linear", lambda p, root, layer: layer.zero_grad()),
    "parameters ": ("Linear", lambda p, root, layer: layer.requires_grad_()),
    "named_buffers": ("BatchNorm1d", lambda p, root, layer: list(layer.buffers())),
    "children": ("Sequential", lambda p, root, layer: root.train()),
    "children ": ("Sequential", lambda p, root, layer: root.apply(lambda module: None)),
    "children  ": ("Sequential", lambda p, root, layer: root.double()),
    "named_children": ("Sequential", lambda p, root, layer: list(layer.children())),
    "register_parameter": ("Linear", lambda p, root, layer: None),  # by the constructor
    "register_parameter ": (
        "Identity",
        lambda p, root, layer: setattr(layer, "w", layers(p).Parameter(p.ones(2))),
    ),
    "register_buffer": ("BatchNorm1d", lambda p, root, layer: None),
    "register_buffer ": (
        "Identity",
        lambda p, root, layer: setattr(layer, "b", layers(p).Buffer(p.ones(2))),
    ),
    "add_module": ("ModuleList", lambda p, root, layer: layer.append(layers(p).ReLU())),
    "add_module ": ("Identity", lambda p, root, layer: layer.register_module("a", None)),
    "reset_parameters": ("Linear", lambda p, root, layer: None),
    "__setattr__": ("Identity", lambda p, root, layer: setattr(layer, "training", True)),
    "__delattr__": ("Linear", lambda p, root, layer: delattr(layer, "bias")),
    "__setstate__": ("Linear", lambda p, root, layer: copy.deepcopy(root)),
}


def layers(package):
    return tw.nn if package is tw else torch.nn


ARGUMENTS = {
    "Linear": (2, 2), "Bilinear": (2, 2, 2), "BatchNorm1d": (2,), "BatchNorm2d": (2,),
    "BatchNorm3d": (2,), "Conv1d": (2, 2, 1), "Conv2d": (2, 2, 1), "Conv3d": (2, 2, 1),
    "ConvTranspose1d": (2, 2, 1), "ConvTranspose2d": (2, 2, 1), "ConvTranspose3d": (2, 2, 1),
    "LayerNorm": (2,), "RMSNorm": (2,), "GroupNorm": (1, 2), "PReLU": (), "Embedding": (2, 2),
    "EmbeddingBag": (2, 2), "RNN": (2, 2), "LSTM": (2, 2), "GRU": (2, 2), "RNNCell": (2, 2),
    "LSTMCell": (2, 2), "GRUCell": (2, 2),
}  # fmt: skip


def calls_of(package, base: str, name: str, act) -> int:
    """How often an override is called."""
    calls = []

    def override(self, *args, **kwargs):
        calls.append(name)
        return getattr(super(cls, self), name)(*args, **kwargs)

    cls = type("Own", (getattr(layers(package), base),), {name: override})
    layer = cls(*ARGUMENTS.get(base, ()))
    act(package, layers(package).Sequential(layer), layer)
    return len(calls)


def test_every_method_that_may_be_overridden_is_called():
    for name, (base, act) in OVERRIDES.items():
        calls = [calls_of(package, base, name.strip(), act) for package in (tw, torch)]
        assert min(calls) > 0, (name, calls)


def test_every_layer_draws_its_first_values_by_its_own_method():
    for base, arguments in ARGUMENTS.items():
        for name in ("reset_parameters", "reset_running_stats"):
            if not hasattr(getattr(nn, base), name):
                continue
            calls = []
            cls = type("Own", (getattr(nn, base),), {name: lambda self, c=calls: c.append(self)})
            assert cls(*arguments) in calls, (base, name)


def test_a_batch_norm_that_stays_in_evaluation():
    def story(package, layer):
        class Frozen(layer.BatchNorm1d):
            def train(self, mode=True):
                return super().train(False)

        model = layer.Sequential(layer.Sequential(Frozen(2)))
        model.train()
        model(package.ones((4, 2)))
        return model[0][0].running_mean.tolist()

    both(story)


def test_tensors_of_ones_own_are_converted_and_saved():
    class Own(nn.Linear):
        def __init__(self):
            super().__init__(2, 2)
            self.plain = tw.ones(2)

        def _apply(self, fn):
            super()._apply(fn)
            self.plain = fn(self.plain)
            return self

        def _save_to_state_dict(self, destination, prefix, keep_vars):
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[prefix + "plain"] = self.plain

        def _load_from_state_dict(self, state, prefix, *rest):
            self.plain = state.pop(prefix + "plain")
            super()._load_from_state_dict(state, prefix, *rest)
            self.total = float(self.weight.detach().sum())

    model, other = nn.Sequential(nn.ReLU(), Own()).double(), nn.Sequential(nn.ReLU(), Own())
    assert model[1].plain.dtype == tw.float64
    other.load_state_dict(model.state_dict())
    assert other[1].plain.dtype == tw.float64
    assert other[1].total == pytest.approx(float(model[1].weight.detach().sum()), rel=1e-5)
    before = other[1].weight.tolist()
    with pytest.raises(ValueError, match="unexpected: 7"):
        other.load_state_dict({**nn.Sequential(nn.ReLU(), Own()).state_dict(), "7": tw.ones(1)})
    assert other[1].weight.tolist() == before


def test_extra_state():
    def story(package, layer):
        class Counts(layer.Module):
            def __init__(self):
                super().__init__()
                self.seen = 0

            def get_extra_state(self):
                return {"seen": self.seen}

            def set_extra_state(self, state):
                self.seen = state["seen"]

        a, b = layer.Sequential(Counts()), layer.Sequential(Counts())
        a[0].seen = 5
        state = a.state_dict()
        keys = b.load_state_dict({}, strict=False)
        b.load_state_dict(state)
        return list(state), b[0].seen, list(keys.missing_keys)

    both(story)
    counts = type("Counts", (nn.Module,), {"set_extra_state": lambda self, state: None})()
    with pytest.raises(ValueError, match=r"missing: .*_extra_state"):
        counts.load_state_dict({})


def test_versions_of_states():
    def story(package, layer):
        class Versioned(layer.Linear):
            _version = 3
            loaded = None

            def _load_from_state_dict(self, state, prefix, metadata, *rest):
                self.loaded = metadata.get("version")
                super()._load_from_state_dict(state, prefix, metadata, *rest)

        model = layer.Sequential(Versioned(2, 2))
        model.load_state_dict(model.state_dict())
        return model[0].loaded

    both(story)


def test_hooks_see_what_differs_before_the_error():
    def story(package, layer):
        model = layer.Sequential(layer.Linear(2, 2))
        told = []

        def forgive(module, keys):
            told.append(module[0].bias.tolist())
            keys.missing_keys.clear()

        model.register_load_state_dict_post_hook(forgive)
        model.load_state_dict({"0.bias": package.ones(2)})
        return told

    both(story)


def test_a_refused_state_changes_nothing_although_a_hook_saw_it():
    model = nn.Sequential(nn.Linear(2, 2))
    before = model[0].bias.tolist()
    told = []
    model.register_load_state_dict_post_hook(lambda m, keys: told.append(m[0].bias.tolist()))
    for assign in (False, True):
        with pytest.raises(ValueError, match=r"missing: 0\.weight"):
            model.load_state_dict({"0.bias": tw.ones(2)}, assign=assign)
        assert told.pop() == [1, 1]
        assert model[0].bias.tolist() == before


# ---- names and slots ----


def registered(module) -> tuple:
    kinds = (module._parameters, module._buffers, module._modules)
    return (*map(list, kinds), sorted(map(str, module.state_dict())))


# Changes of a module with two parameters, two buffers and a child.
CHANGES = {
    "nothing": lambda p, n, m: None,
    "a parameter": lambda p, n, m: setattr(m, "new", n.Parameter(p.ones(1))),
    "a parameter in place of a buffer": lambda p, n, m: setattr(m, "b", n.Parameter(p.ones(1))),
    "a parameter in place of an unsaved buffer": lambda p, n, m: setattr(
        m, "unsaved", n.Parameter(p.ones(1))
    ),
    "a parameter in place of a module": lambda p, n, m: setattr(m, "c", n.Parameter(p.ones(1))),
    "a parameter in place of a number": lambda p, n, m: setattr(m, "k", n.Parameter(p.ones(1))),
    "a module in place of a buffer": lambda p, n, m: setattr(m, "b", n.ReLU()),
    "a module in place of a number": lambda p, n, m: setattr(m, "k", n.ReLU()),
    "a buffer by another tensor": lambda p, n, m: setattr(m, "b", p.zeros(3)),
    "none in place of a parameter": lambda p, n, m: setattr(m, "w", None),
    "none in place of a buffer": lambda p, n, m: setattr(m, "b", None),
    "none in place of a module": lambda p, n, m: setattr(m, "c", None),
    "none and then another": lambda p, n, m: (
        setattr(m, "w", None), setattr(m, "w", n.Parameter(p.ones(2))),
    ),
    "a deleted buffer whose name comes again": lambda p, n, m: (
        delattr(m, "unsaved"), setattr(m, "unsaved", p.ones(1)),
    ),
    "a deleted parameter": lambda p, n, m: delattr(m, "w"),
    "a deleted module": lambda p, n, m: delattr(m, "c"),
    "a name that is registered again": lambda p, n, m: m.register_parameter(
        "w", n.Parameter(p.ones(5))
    ),
    "a buffer that is saved from now on": lambda p, n, m: m.register_buffer("unsaved", p.ones(1)),
    "a hidden teacher": lambda p, n, m: object.__setattr__(m, "teacher", n.Linear(2, 2)),
    "the mapping itself": lambda p, n, m: m._parameters.pop("w"),
    "the mapping of modules": lambda p, n, m: m._modules.update(last=n.ReLU()),
    "another mapping": lambda p, n, m: setattr(m, "_modules", {"x": n.Linear(1, 1)}),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_names_of_slots(change):
    def story(package, layer):
        module = layer.Module()
        module.w = layer.Parameter(package.ones(2))
        module.register_buffer("b", package.ones(2))
        module.register_buffer("unsaved", package.ones(2), persistent=False)
        module.v = layer.Parameter(package.ones(2))
        module.c = layer.Linear(2, 2)
        module.k = 3
        CHANGES[change](package, layer, module)
        twin = copy.deepcopy(module)
        shown = [getattr(module, name) is held for name, held in module._parameters.items()]
        names = [name for name, _ in module.named_parameters()]
        return registered(module), registered(twin), all(shown), names

    both(story)


# What is refused, and changes nothing.
REFUSALS = {
    "a tensor for a parameter": lambda p, n, m: setattr(m, "w", p.ones(2)),
    "a number for a buffer": lambda p, n, m: setattr(m, "b", 3),
    "a number for a module": lambda p, n, m: setattr(m, "c", 3),
    "a name with dots": lambda p, n, m: setattr(m, "a.b", n.Parameter(p.ones(1))),
    "a method's name": lambda p, n, m: m.register_parameter("forward", None),
    "a buffer's name": lambda p, n, m: m.register_parameter("b", None),
    "a module that is none": lambda p, n, m: m.add_module("x", 3),
    "a deleted name": lambda p, n, m: delattr(m, "nothing"),
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_refused_names(refusal):
    def story(package, layer):
        module = layer.Module()
        module.w = layer.Parameter(package.ones(2))
        module.register_buffer("b", package.ones(2))
        module.c = layer.ReLU()
        with pytest.raises((TypeError, KeyError, ValueError, AttributeError)):
            REFUSALS[refusal](package, layer, module)
        return registered(module)

    both(story)


def test_a_hidden_module_is_nobodys_child():
    model, teacher = nn.Linear(2, 2), nn.Linear(2, 2)
    object.__setattr__(model, "teacher", teacher)
    model.eval()
    assert teacher.training
    assert len(list(model.parameters())) == 2
    assert not list(model.children())


def test_modules_below_themselves():
    parent = nn.Sequential(nn.Linear(2, 2))
    parent[0].parent = parent
    seen = []
    parent.eval().double().apply(seen.append)
    assert seen == [parent[0], parent]
    assert not parent[0].training
    assert parent[0].weight.dtype == tw.float64
    assert list(parent.state_dict()) == ["0.weight", "0.bias"]
    parent.load_state_dict(parent.state_dict())


def test_wrappers_that_ask_what_they_wrap():
    class Wrapper(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.module, name)

        def forward(self, x):
            return self.module(x)

    wrapper = Wrapper(nn.Linear(2, 3))
    assert wrapper.out_features == 3
    globals()["Wrapper"] = Wrapper
    Wrapper.__qualname__ = "Wrapper"
    for twin in (copy.deepcopy(wrapper), copy.copy(wrapper), pickle.loads(pickle.dumps(wrapper))):
        assert twin.out_features == 3
        assert twin(tw.ones((1, 2))).shape == (1, 3)
    wrapper.weight = nn.Parameter(tw.ones(1))
    assert list(wrapper._parameters) == ["weight"]


def test_a_shallow_copy_registers_for_itself():
    layer = nn.Linear(2, 2)
    twin = copy.copy(layer)
    twin.more = nn.Parameter(tw.ones(1))
    assert list(layer._parameters) == ["weight", "bias"]
    assert twin.weight is layer.weight


# ---- containers ----


CONTAINERS = {
    "add_module": lambda n: add(n.Sequential(n.Linear(2, 3)), "last", n.Linear(3, 5)),
    "an attribute": lambda n: put(n.Sequential(n.Linear(2, 3)), "last", n.Linear(3, 5)),
    "an attribute of a list": lambda n: put(n.ModuleList([n.Linear(2, 3)]), "last", n.ReLU()),
    "an attribute of a dict": lambda n: put(n.ModuleDict({"a": n.ReLU()}), "b", n.Tanh()),
    "a replaced attribute": lambda n: put(n.Sequential(n.Linear(2, 3)), "0", n.Linear(2, 4)),
    "numbers as names": lambda n: dropped(
        n.Sequential({"0": n.ReLU(), "1": n.Tanh(), "2": n.GELU()})
        if n is nn else n.Sequential(n.ReLU(), n.Tanh(), n.GELU())
    ),
    "None in a list": lambda n: n.ModuleList([None, n.ReLU()]),
    "a list extended by itself": lambda n: doubled(n.ModuleList([n.ReLU(), n.Tanh()])),
    "a list and more": lambda n: n.ModuleList([n.ReLU()]) + [n.Tanh()],  # noqa: RUF005
    "+=": lambda n: added(n.ModuleList([n.ReLU()]), n.Tanh()),
    "+": lambda n: n.Sequential(n.ReLU()) + n.Sequential(n.Tanh()),
    "*": lambda n: n.Sequential(n.Linear(2, 2), n.ReLU()) * 2,
    "insert": lambda n: inserted(n.Sequential(n.ReLU(), n.Tanh())),
    "insert into a list": lambda n: inserted(n.ModuleList([n.ReLU(), n.Tanh()])),
    "lists of parameters": lambda n: n.ParameterList(
        [tensor(n, 2), n.ParameterList([tensor(n, 3)]), n.ParameterDict({"a": tensor(n, 4)})]
    ),
    "more of a list": lambda n: added(n.ParameterList([tensor(n, 2)]), tensor(n, 1)),
    "dicts of parameters": lambda n: n.ParameterDict(
        {"a": tensor(n, 2), "b": n.ParameterList([tensor(n, 3)])}
    ),
    "joined dicts": lambda n: n.ParameterDict({"a": tensor(n, 2)}) | {"b": tensor(n, 1)},
    "a parameter beside a dict's": lambda n: put(
        n.ParameterDict({"a": tensor(n, 2)}), "own", n.Linear(2, 2)
    ),
    "a module beside a list's": lambda n: put(
        n.ParameterList([tensor(n, 2)]), "own", n.Linear(1, 1)
    ),
}  # fmt: skip


def tensor(layer, size):
    return (tw if layer is nn else torch).ones(size)


def add(container, name, module):
    container.add_module(name, module)
    return container


def put(container, name, module):
    setattr(container, name, module)
    return container


def dropped(container):
    del container[0]
    return container.append(type(container[0])())


def doubled(container):
    return container.extend(container if isinstance(container, nn.Module) else [*container])


def added(container, module):
    container += [module]
    return container


def inserted(container):
    container.insert(1, type(container[0])())
    return container


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_hold_their_children_as_every_module_does(name):
    def story(package, layer):
        container = CONTAINERS[name](layer)
        kinds = [(path, type(module).__name__) for path, module in container.named_modules()]
        shapes = [(path, tuple(x.shape)) for path, x in container.named_parameters()]
        length = len(list(container)) if "beside" not in name else None
        twin = [path for path, _ in copy.deepcopy(container).named_modules()]
        return kinds, shapes, list(container.state_dict()), length, twin

    both(story)


def test_what_was_added_runs():
    model = nn.Sequential(nn.Linear(2, 3))
    model.add_module("last", nn.Linear(3, 5))
    model.head = nn.Linear(5, 7)
    assert model(tw.ones((1, 2))).shape == (1, 7)
    assert model[-1] is model.head
    del model.head
    assert model(tw.ones((1, 2))).shape == (1, 5)


def test_names_stay_apart_when_children_come_and_go():
    rng = np.random.default_rng(2)
    for layers_of in (nn.Sequential, lambda *modules: nn.ModuleList(modules)):
        model = layers_of(*(nn.Linear(1, 1) for _ in range(4)))
        model.own = nn.Linear(1, 1)
        for _ in range(60):
            if rng.random() < 0.5 and len(model) > 1:
                del model[int(rng.integers(len(model)))]
            elif rng.random() < 0.5:
                model.insert(int(rng.integers(len(model) + 1)), nn.Linear(1, 1))
            else:
                model.append(nn.Linear(1, 1))
            assert len(model.state_dict()) == 2 * len(model) == len(list(model.parameters()))
            assert all(getattr(model, name) is child for name, child in model._modules.items())


def test_names_of_methods_are_kept_for_them():
    for container in (nn.ModuleDict({"pop": nn.ReLU()}), nn.Sequential({"append": nn.ReLU()})):
        assert callable(getattr(container, next(iter(container._modules))))
        assert not isinstance(getattr(container, next(iter(container._modules))), nn.Module)
        assert len(container) == len(list(container.children())) == 1
    values = nn.ParameterDict({"items": tw.ones(2)})
    values["items"] = tw.ones(3)
    assert [(name, x.shape) for name, x in values.items()] == [("items", (3,))]
    values.load_state_dict({"items": tw.zeros(3)})
    assert values["items"].tolist() == [0, 0, 0]


def test_mappings_are_the_modules_own():
    layer = nn.Linear(2, 3)
    assert list(layer._parameters) == ["weight", "bias"]
    layer._parameters["bias"] = bias = nn.Parameter(tw.ones(3))
    assert layer.bias is bias
    del layer._parameters["bias"]
    assert not hasattr(layer, "bias")
    assert layer._buffers == {} == nn.Module()._modules
    assert isinstance(copy.deepcopy(layer._parameters), dict)
    assert next(reversed(nn.BatchNorm1d(2)._buffers)) == "num_batches_tracked"
    with pytest.raises(KeyError):
        layer._modules["nothing"]


def test_axes_by_either_name_follow() -> None:
    softmax, flatten, x = nn.Softmax(1), nn.Flatten(), tw.ones((2, 3, 4))
    softmax.dim = 0
    np.testing.assert_allclose(softmax(x).numpy(), np.full((2, 3, 4), 0.5))
    assert softmax.axis == 0
    flatten.start_dim, flatten.end_dim = 0, 1
    assert flatten(x).shape == (6, 4)
    assert (flatten.start_axis, flatten.end_axis) == (0, 1)
