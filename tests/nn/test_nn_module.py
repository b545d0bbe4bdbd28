"""Modules: containers, names, hooks, conversion, and errors that say which layer raised them."""

from __future__ import annotations

import collections
import copy
import dataclasses
import gc
import pickle
import subprocess
import sys
import traceback

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn

torch = pytest.importorskip("torch")


def called(module, *args):
    calls.append(args)


calls: list = []


class TestContainers:
    def test_module_dict(self):
        heads = nn.ModuleDict({"a": nn.Linear(2, 1), "items": nn.ReLU()})
        heads["b"] = nn.Linear(2, 3)
        heads.update([("c", nn.Tanh())])
        assert list(heads) == list(heads.keys()) == ["a", "items", "b", "c"]
        assert [type(m).__name__ for m in heads.values()] == ["Linear", "ReLU", "Linear", "Tanh"]
        names = ["a.weight", "a.bias", "b.weight", "b.bias"]
        assert [name for name, _ in heads.named_parameters()] == names
        assert "b" in heads
        assert heads.pop("b").out_features == 3
        del heads["c"]
        assert len(heads) == 2
        assert "(items): ReLU()" in repr(heads)
        heads.clear()
        assert not heads.items()

    @pytest.mark.parametrize(
        ("name", "value", "error", "text"),
        [
            (3, nn.ReLU(), TypeError, "a name is text, got 3"),
            ("a.b", nn.ReLU(), ValueError, "has no dots, got 'a.b'"),
            ("", nn.ReLU(), ValueError, "is not empty"),
            ("a", 3, TypeError, "expected a Module, got int"),
        ],
    )
    def test_module_dict_refuses(self, name, value, error, text):
        with pytest.raises(error, match=f"ModuleDict: .*{text}"):
            nn.ModuleDict({name: value})

    def test_parameter_list_and_dict(self):
        class Model(nn.Module):
            def __init__(self):
                self.many = nn.ParameterList([tw.zeros((2,)), nn.Parameter(tw.ones((3,)))])
                self.named = nn.ParameterDict({"scale": tw.ones((1,))})
                self.named["shift"] = tw.zeros((1,))

        model = Model()
        names = ["many.0", "many.1", "named.scale", "named.shift"]
        assert [name for name, _ in model.named_parameters()] == list(model.state_dict()) == names
        model.many.append(tw.ones((4,)))
        model.many[0] = tw.full((5,), 2.0)
        assert [p.shape for p in model.many] == [(5,), (3,), (4,)]
        assert len(model.many[1:]) == 2
        assert all(p.requires_grad for p in model.parameters())
        assert "scale" in model.named
        assert model.named.pop("scale").shape == (1,)
        assert repr(model.many) == "ParameterList(float32 (5,), float32 (3,), float32 (4,))"
        with pytest.raises(TypeError, match="ParameterList: expected a Parameter, got int"):
            model.many.append(3)
        with pytest.raises(TypeError, match="ParameterDict: expected a Parameter, got int"):
            model.named["x"] = 3

    def test_lists_change(self):
        layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])
        layers.insert(1, nn.Sigmoid())
        layers.extend([nn.Identity()])
        layers[0] = nn.Softmax()
        del layers[2]
        assert [type(m).__name__ for m in layers] == ["Softmax", "Sigmoid", "Identity"]
        assert isinstance(layers.pop(0), nn.Softmax)
        with pytest.raises(IndexError):
            layers[7] = nn.ReLU()
        with pytest.raises(TypeError, match="expected a Module, got int"):
            layers[0] = 3
        assert len(layers) == 2

    def test_sequences_with_names(self):
        model = nn.Sequential({"first": nn.Linear(3, 4), "act": nn.ReLU()})
        theirs = torch.nn.Sequential(
            collections.OrderedDict(first=torch.nn.Linear(3, 4), act=torch.nn.ReLU())
        )
        model.load_state_dict(theirs.state_dict())
        assert model.first is model[0]
        assert [name for name, _ in model[:1].append(nn.Tanh()).named_children()] == ["first", "1"]
        model.insert(1, nn.Tanh())
        model[0] = nn.Linear(3, 4)
        assert [name for name, _ in model.named_children()] == ["first", "2", "act"]
        assert isinstance(model.pop(1), nn.Tanh)
        assert [type(m).__name__ for m in copy.deepcopy(model)] == ["Linear", "ReLU"]
        assert list(pickle.loads(pickle.dumps(model)).state_dict()) == [
            "first.weight",
            "first.bias",
        ]
        with pytest.raises(AttributeError, match="no attribute 'second'"):
            model.second  # noqa: B018
        with pytest.raises(ValueError, match=r"has no dots, got 'a\.b'"):
            nn.Sequential({"a.b": nn.ReLU()})

    def test_a_class_without_init_takes_no_arguments(self):
        class Net(nn.Module):
            pass

        assert vars(Net()) == {}
        with pytest.raises(TypeError, match=r"Net\(\) takes no arguments"):
            Net(3)

    def test_attributes_of_the_programs_own(self):
        class Own(nn.Module):
            def __init__(self):
                self._hooks, self.hooks, self.path = [1], {"a": 2}, "here"

            def forward(self, x):
                return (self._hooks, self.hooks, self.path)

        assert Own()(1) == ([1], {"a": 2}, "here")

    def test_identity(self):
        x = tw.ones((2,))
        assert nn.Identity(3, unused=True)(x) is x


class TestNames:
    def test_arguments_of_the_walks(self):
        shared = nn.Linear(2, 2)
        model = nn.Sequential(shared, shared, nn.Linear(2, 1))
        model.register_buffer("mean", tw.zeros((1,)))

        def names(pairs):
            return [name for name, _ in pairs]

        assert names(model.named_parameters(recurse=False)) == []
        assert names(model.named_buffers("model")) == ["model.mean"]
        assert len(names(model.named_parameters("m", remove_duplicate=False))) == 6
        assert names(model.named_modules("m")) == ["m", "m.0", "m.2"]
        assert names(model.named_modules(remove_duplicate=False)) == ["", "0", "1", "2"]
        assert len(list(model.parameters(recurse=False))) == 0
        assert len(list(model.buffers(recurse=False))) == 1

    def test_getting_by_name(self):
        model = nn.Sequential(nn.Sequential(nn.Linear(4, 3)))
        model[0][0].register_buffer("mean", tw.zeros((1,)))
        assert model.get_submodule("") is model
        assert model.get_submodule("0.0") is model[0][0]
        assert model.get_parameter("0.0.weight") is model[0][0].weight
        assert model.get_buffer("0.0.mean") is model[0][0].mean
        for get, name in (
            (model.get_submodule, "0.1"),
            (model.get_parameter, "0.0.mean"),
            (model.get_parameter, "0.0.scale"),
            (model.get_buffer, "0.0.weight"),
        ):
            with pytest.raises(AttributeError, match=f"Sequential: '{name}': .* has no"):
                get(name)

    def test_setting_by_name(self):
        model = nn.Sequential({"body": nn.Sequential(nn.Linear(4, 3)), "heads": nn.ModuleDict()})
        model.set_submodule("body.0", nn.ReLU())
        model.set_submodule("body.1", nn.Tanh())
        model.set_submodule("heads.a", nn.Linear(3, 2))
        model.set_submodule("last", nn.Identity())
        names = ["body", "body.0", "body.1", "heads", "heads.a", "last"]
        assert [name for name, _ in model.named_modules()] == ["", *names]
        assert isinstance(model[0][0], nn.ReLU)
        assert isinstance(model.last, nn.Identity)
        layer = nn.Module()
        layer.set_submodule("act", nn.ReLU())
        layer.set_submodule("act", nn.Tanh(), strict=True)
        assert isinstance(layer.act, nn.Tanh)
        for target, module, strict, error, text in (
            ("", nn.ReLU(), False, ValueError, "'' names no submodule"),
            ("act", 3, False, TypeError, "expected a Module, got int"),
            ("other", nn.ReLU(), True, AttributeError, "Module has no module 'other'"),
            ("training", nn.ReLU(), False, AttributeError, "Module has no module 'training'"),
            ("a.b", nn.ReLU(), False, AttributeError, "Module has no module 'a'"),
        ):
            with pytest.raises(error, match=text):
                layer.set_submodule(target, module, strict)

    def test_buffers_by_assignment(self):
        layer = nn.Module()
        layer.mean = nn.Buffer(tw.zeros((3,)))
        layer.mask = nn.Buffer(tw.ones((2,)), persistent=False)
        assert [name for name, _ in layer.named_buffers()] == ["mean", "mask"]
        assert list(layer.state_dict()) == ["mean"]
        for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert list(again.state_dict()) == ["mean"]
            assert again.mask.tolist() == [1, 1]
        layer.double()
        assert layer.mask.dtype == tw.float64
        assert list(layer.state_dict()) == ["mean"]
        layer.mask = nn.Buffer(tw.ones((2,)))
        assert list(layer.state_dict()) == ["mean", "mask"]
        layer.mask = tw.zeros((4,))
        assert layer.get_buffer("mask").tolist() == [0] * 4
        values = tw.ones((2,), requires_grad=True)
        assert not nn.Buffer(values).requires_grad
        with pytest.raises(TypeError, match="Buffer: expected a tensor, got list"):
            nn.Buffer([1.0])
        with pytest.raises(TypeError, match="persistent is True or False, got 1"):
            nn.Buffer(tw.ones(1), persistent=1)

    def test_registering(self):
        module = nn.Module()
        module.register_parameter("weight", nn.Parameter(tw.zeros((2,))))
        module.register_parameter("bias", None)
        module.add_module("act", nn.ReLU())
        module.register_module("none", None)
        assert [name for name, _ in module.named_parameters()] == ["weight"]
        assert [name for name, _ in module.named_children()] == ["act"]
        assert module.bias is None
        for wrong in ("a.b", ""):
            with pytest.raises(ValueError, match="a name is not empty and has no dots"):
                module.register_parameter(wrong, None)
        with pytest.raises(ValueError, match="has that attribute already"):
            module.add_module("forward", nn.ReLU())
        with pytest.raises(TypeError, match="parameter 'x': expected a Parameter, got Tensor"):
            module.register_parameter("x", tw.zeros((1,)))
        with pytest.raises(TypeError, match="module 'x': expected a Module, got int"):
            module.add_module("x", 3)

    def test_buffers_that_are_not_saved(self):
        module = nn.Module()
        module.register_buffer("kept", tw.zeros((1,)))
        module.register_buffer("mask", tw.ones((2,)), persistent=False)
        module.register_buffer("later", None)
        assert list(module.state_dict()) == ["kept"]
        assert [name for name, _ in module.named_buffers()] == ["kept", "mask"]
        module.load_state_dict({"kept": tw.ones((1,))})
        module.later = tw.zeros((3,))
        assert list(module.state_dict()) == ["kept", "later"]
        module.register_buffer("mask", tw.ones((2,)))
        assert "mask" in module.state_dict()
        with pytest.raises(TypeError, match=r"Module\.kept: is a buffer, got float"):
            module.kept = 3.0

    def test_state_under_a_prefix(self):
        layer = nn.Linear(2, 1)
        assert list(layer.state_dict(prefix="head.")) == ["head.weight", "head.bias"]
        assert layer.state_dict(keep_vars=True)["weight"] is layer.weight
        assert not layer.state_dict()["weight"].requires_grad


def tensors_of(model) -> list:
    return [*model.parameters(), *model.buffers()]


class TestConversion:
    @pytest.mark.parametrize(
        ("convert", "dtype"),
        [
            (lambda m: m.double(), tw.float64),
            (lambda m: m.half(), tw.float16),
            (lambda m: m.bfloat16(), tw.bfloat16),
            (lambda m: m.to(tw.float64).float(), tw.float32),
            (lambda m: m.type(tw.float64), tw.float64),
            (lambda m: m.to(tw.zeros((1,), dtype=tw.float64)), tw.float64),
            (lambda m: m.to(dtype=tw.float64, device="cpu"), tw.float64),
            (lambda m: m.to("cpu", tw.float64).cpu(), tw.float64),
        ],
    )
    def test_dtypes(self, convert, dtype):
        model = nn.Sequential(nn.Linear(3, 2))
        model.register_buffer("mean", tw.ones((2,)))
        model.register_buffer("count", tw.zeros((), dtype=tw.int64))
        weight, before = model[0].weight, model[0].weight.tolist()
        model(tw.ones((1, 3))).sum().backward()
        assert convert(model) is model
        assert model[0].weight is weight
        assert weight.requires_grad
        assert (weight.dtype, weight.grad.dtype, model.mean.dtype) == (dtype,) * 3
        assert model.count.dtype == tw.int64
        np.testing.assert_allclose(weight.tolist(), before, rtol=1e-2)
        model(tw.ones((1, 3), dtype=dtype)).sum().backward()
        assert weight.grad.tolist() == [[2.0] * 3] * 2

    def test_sharing_optimizers_and_hooks_stay(self):
        layer = nn.Linear(2, 2, bias=False)
        model = nn.Sequential(layer, layer)
        optimizer = tw.optim.SGD(model.parameters(), lr=0.5)
        seen = []
        layer.weight.register_hook(lambda g: seen.append(g.dtype))
        model.double()
        assert model[0].weight is model[1].weight
        model(tw.ones((1, 2), dtype=tw.float64)).sum().backward()
        before = layer.weight.detach().copy()
        optimizer.step()
        assert seen == [tw.float64]
        assert layer.weight.tolist() != before.tolist()

    @pytest.mark.parametrize(
        "convert", [lambda m: m.to("cpu"), lambda m: m.float(), lambda m: m.cpu().to(tw.float32)]
    )
    def test_what_changes_nothing_leaves_graphs_and_buffers(self, convert):
        model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        y = model(tw.randn(4, 3)).square().sum()
        tensors = tensors_of(model)
        convert(model)
        assert all(a is b for a, b in zip(tensors, tensors_of(model), strict=True))
        y.backward()
        assert all(x.grad is not None for x in model.parameters())

    def test_shared_buffers_stay_shared(self):
        model = nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm1d(2))
        model[1].running_mean = model[0].running_mean
        model.double()
        assert model[1].running_mean is model[0].running_mean

    def test_a_conversion_that_fails_changes_nothing(self):
        class Fails(nn.Linear):
            def _apply(self, fn):
                fn(tw.ones(1))
                raise RuntimeError("no")

        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        with pytest.raises(TypeError, match="'gpu' is neither a dtype nor a device"):
            model.to("gpu", tw.float64)
        assert {x.dtype for x in model.parameters()} == {tw.float32}
        with pytest.raises(RuntimeError, match="no"):
            nn.Sequential(Fails(2, 2)).double()

    def test_new_memory(self):
        model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Linear(2, 1))
        model[2].weight = nn.Parameter(tw.ones((1, 2)))
        model[0].bias = model[1].bias  # shared
        parameters = list(model.parameters())
        model(tw.ones((4, 3))).sum().backward()
        places = [x.data_ptr for x in parameters]
        assert model.to_empty(device=None) is model
        assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
        assert model[0].bias is model[1].bias
        assert all(x.grad is None and x.requires_grad for x in parameters)
        assert places != [x.data_ptr for x in parameters]
        assert [x.shape for x in model.buffers()] == [(2,), (2,), ()]
        model.to_empty(device="null")
        assert {x.device for x in (*model.parameters(), *model.buffers())} == {"null"}
        model.to_empty(device="cpu", recurse=False)
        assert model[0].weight.device == "null"
        model.to_empty(device="cpu").load_state_dict(model.state_dict())
        with pytest.raises(ValueError, match="gpu"):
            model.to_empty(device="gpu")

    def test_devices(self):
        model = nn.Linear(3, 2).to("null")
        assert model.weight.device == "null"
        assert model(tw.ones((1, 3), device="null")).device == "null"
        assert model.cpu().weight.device == "cpu"

    @pytest.mark.parametrize(
        ("args", "kwargs", "text"),
        [
            ((), {}, "expected a dtype, a device or a tensor"),
            ((tw.int32,), {}, "modules hold floating or complex numbers, got int32"),
            (("gpu",), {}, "'gpu' is neither a dtype nor a device, which are 'cpu', 'null'"),
            ((), {"memory_format": 1}, "got memory_format"),
        ],
    )
    def test_refused(self, args, kwargs, text):
        layer = nn.Linear(2, 2)
        with pytest.raises((TypeError, ValueError), match=text):
            layer.to(*args, **kwargs)
        assert layer.weight.dtype == tw.float32


class TestHooks:
    """The same hooks on a model of ours and on PyTorch's see and change the same."""

    @staticmethod
    def models():
        theirs = torch.nn.Sequential(
            torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2, bias=False)
        ).double()
        ours = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2, bias=False)).double()
        ours.load_state_dict(theirs.state_dict())
        x = np.random.default_rng(0).normal(size=(5, 3))
        return (ours, tw.asarray(x)), (theirs, torch.tensor(x))

    def compare(self, register, input_grad=True):
        logs = []
        for model, x in self.models():
            log: list = []
            x.requires_grad = input_grad
            register(model, log)
            (model(x) ** 2).sum().backward()
            numbers = [p.grad.tolist() for p in model.parameters()]
            logs.append((log, numbers, x.grad.tolist() if input_grad else None))
        (log, grads, gx), (want, want_grads, want_gx) = logs
        assert log == want
        for got, wanted in zip(grads, want_grads, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-10)
        if input_grad:
            np.testing.assert_allclose(gx, want_gx, rtol=1e-10)

    def test_forward_hooks(self):
        def register(model, log):
            model[0].register_forward_pre_hook(lambda m, a: (a[0] * 2,))
            model[0].register_forward_pre_hook(
                lambda m, a, k: log.append(("pre", len(a), k)), with_kwargs=True, prepend=True
            )
            model[1].register_forward_hook(lambda m, a, y: y * 3)
            model[1].register_forward_hook(lambda m, a, y: log.append(("first", tuple(y.shape))))
            model[1].register_forward_hook(
                lambda m, a, k, y: log.append(("kwargs", k)), with_kwargs=True, prepend=True
            )

        self.compare(register)

    def test_backward_hooks(self):
        def register(model, log):
            def shapes(grads):
                return [None if g is None else tuple(g.shape) for g in grads]

            model[1].register_full_backward_hook(lambda m, i, o: (i[0] * 2,))
            model[1].register_full_backward_hook(
                lambda m, i, o: log.append(("full", shapes(i), shapes(o)))
            )
            model[2].register_full_backward_pre_hook(lambda m, o: (o[0] * 3,))
            model[2].register_full_backward_hook(
                lambda m, i, o: log.append(("last", shapes(i), round(float(o[0].sum()), 8)))
            )
            model.register_full_backward_hook(
                lambda m, i, o: log.append(("all", shapes(i), shapes(o)))
            )

        self.compare(register)

    @pytest.mark.filterwarnings("ignore:Full backward hook")
    def test_backward_hooks_without_gradients_of_inputs(self):
        def register(model, log):
            model[0].register_full_backward_hook(
                lambda m, i, o: log.append((list(i), tuple(o[0].shape)))
            )

        self.compare(register, input_grad=False)

    def test_removal(self):
        layer, log = nn.Identity(), []
        first = layer.register_forward_hook(lambda m, a, y: log.append(1))
        with layer.register_forward_hook(lambda m, a, y: log.append(2)):
            layer(0)
        layer(0)
        first.remove()
        first.remove()
        layer(0)
        assert log == [1, 2, 1]

    def test_hooks_that_are_always_called(self):
        class Fails(nn.Module):
            def forward(self, x):
                raise ValueError("no")

        layer, log = Fails(), []
        layer.register_forward_hook(lambda m, a, y: log.append(y), always_call=True)
        layer.register_forward_hook(lambda m, a, y: log.append("never"))
        with pytest.raises(ValueError, match="no"):
            layer(1)
        assert log == [None]

    def test_refused(self):
        layer = nn.Linear(2, 2)
        with pytest.raises(TypeError, match="a hook must be callable, got int"):
            layer.register_forward_hook(3)
        layer.register_forward_pre_hook(lambda m, a, k: 3, with_kwargs=True)
        with pytest.raises(RuntimeError, match=r"needs None or \(args, kwargs\), got 3"):
            layer(tw.ones((1, 2)))
        other = nn.Linear(2, 2)
        other.register_full_backward_hook(lambda m, i, o: (None, None))
        with pytest.raises(RuntimeError, match="backward hook: returned 2 gradients for 1"):
            other(tw.ones((1, 2), requires_grad=True)).sum().backward()

    def test_copies_and_pickles(self):
        layer = nn.Linear(2, 1)
        handle = layer.register_forward_hook(called)
        twin, loaded = copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))
        handle.remove()
        calls.clear()
        layer(tw.ones((1, 2)))
        assert not calls
        twin(tw.ones((1, 2)))
        loaded(tw.ones((1, 2)))
        assert len(calls) == 2
        assert loaded.weight.tolist() == layer.weight.tolist()

    def test_handles_belong_to_what_was_copied_with_them(self):
        layer = nn.Linear(2, 1)
        layer.handle = layer.register_forward_hook(called)
        for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            twin.handle.remove()
            calls.clear()
            twin(tw.ones((1, 2)))
            assert not calls
            layer(tw.ones((1, 2)))
            assert len(calls) == 1
        alone = copy.deepcopy(layer.handle)
        alone.remove()
        layer(tw.ones((1, 2)))
        assert len(calls) == 2

    def test_numbers_of_unpickled_hooks_are_not_given_again(self):
        layer = nn.Identity()
        for _ in range(3):
            layer.register_forward_hook(called)
        program = (
            "import pickle, tilewright; layer = pickle.loads({!r}); log = []\n"
            "handles = [layer.register_forward_hook(lambda *a: log.append(1)) for _ in range(9)]\n"
            "print(len(layer._call_hooks.forward))"
        )
        layer._call_hooks.forward = {
            number: dataclasses.replace(hook, function=print)
            for number, hook in enumerate(layer._call_hooks.forward.values())
        }
        run = subprocess.check_output([sys.executable, "-c", program.format(pickle.dumps(layer))])
        assert run == b"12\n"

    def test_hooks_that_were_unpickled_are_called_in_a_program_without_others(self):
        layer = nn.Identity()
        layer.register_forward_hook(print)
        program = f"import pickle; pickle.loads({pickle.dumps(layer)!r})(3)"
        assert subprocess.check_output([sys.executable, "-c", program]) == b"Identity() (3,) 3\n"

    def test_observers_still_hear_the_module(self):
        model = nn.Sequential(nn.Linear(2, 1))
        model[0].register_forward_hook(lambda m, a, y: None)
        with tw.explain() as report:
            model(tw.ones((1, 2)))
        assert report[-1].module == "Sequential.0"


class Failing(nn.Module):
    def __init__(self, error):
        self.error = error

    def forward(self, x):
        raise self.error


class Block(nn.Module):
    def __init__(self, inner):
        self.conv = inner

    def forward(self, x):
        return self.conv(x)


class Model(nn.Module):
    def __init__(self, error):
        self.layers = nn.ModuleList([nn.ReLU(), nn.ReLU(), Block(Failing(error))])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class CodeError(Exception):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    text: str


class OwnTextError(Exception):
    def __init__(self, got, wanted):
        super().__init__(got, wanted)

    def __str__(self):
        return "own text"


class TestErrors:
    @staticmethod
    def raised(model):
        with pytest.raises(Exception) as caught:  # noqa: PT011  (any type)
            model(tw.ones((1, 2)))
        return caught.value

    @pytest.mark.parametrize(
        "error",
        [ValueError("conv2d: no"), IndexError("conv2d: no"), RuntimeError("conv2d: no")],
    )
    def test_the_path_stands_in_front(self, error):
        caught = self.raised(Model(error))
        assert caught is error
        assert str(caught) == "layers.2.conv: conv2d: no"
        functions = [frame.name for frame in traceback.extract_tb(caught.__traceback__)]
        assert functions[-1] == "forward"

    def test_errors_of_the_engine(self):
        model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(4, 1)))
        error = self.raised(model)
        assert isinstance(error, ValueError)
        assert str(error).startswith("1.1: linear: ")

    def test_the_module_itself_has_no_path(self):
        assert str(self.raised(Failing(ValueError("no")))) == "no"
        assert str(self.raised(nn.Sequential(Failing(ValueError("no"))))) == "0: no"

    def test_classes_of_the_program(self):
        error = self.raised(Model(CodeError(7)))
        assert type(error) is CodeError
        assert (str(error), error.code) == ("layers.2.conv: code 7", 7)

    def test_assertions_without_text(self):
        assert str(self.raised(Model(AssertionError()))) == "in layers.2.conv"

    @pytest.mark.parametrize(
        "error",
        [KeyError("name"), OwnTextError(1, 2), OSError(2, "gone"), CodeError, ValueError(1, 2)],
    )
    def test_other_arguments_stay_and_get_a_note(self, error):
        error = CodeError.__new__(CodeError) if error is CodeError else error
        args, text = error.args, str(error)
        caught = self.raised(Model(error))
        assert (caught.args, str(caught)) == (args, text)
        assert caught.__notes__ == ["in layers.2.conv"]

    def test_an_error_that_is_handled_inside_names_nothing(self):
        class Tries(nn.Module):
            def __init__(self):
                self.first = Failing(ValueError("first"))
                self.second = Failing(ValueError("second"))

            def forward(self, x):
                with pytest.raises(ValueError, match=r"^first$"):
                    self.first(x)
                return self.second(x)

        assert str(self.raised(nn.Sequential(Tries()))) == "0.second: second"

    def test_an_error_that_becomes_another(self):
        class Wraps(nn.Module):
            def __init__(self):
                self.inner = Failing(ValueError("inner"))

            def forward(self, x):
                try:
                    return self.inner(x)
                except ValueError as error:
                    raise RuntimeError("outer") from error

        error = self.raised(nn.Sequential(Wraps()))
        assert (str(error), str(error.__cause__)) == ("0: outer", "inner")

    def test_modules_that_nobody_holds(self):
        class Makes(nn.Module):
            def forward(self, x):
                return Block(Failing(ValueError("no")))(x)

        assert str(self.raised(nn.Sequential(Makes()))) == "conv: no"

    def test_the_same_error_twice(self):
        model = Model(ValueError("no"))
        assert str(self.raised(model)) == str(self.raised(model)) == "layers.2.conv: no"

    def test_errors_that_let_nobody_set_attributes(self):
        error = self.raised(Model(FrozenError("no")))
        assert (type(error), str(error)) == (FrozenError, "layers.2.conv: no")

    def test_errors_travel_without_the_model(self):
        model = Model(ValueError("no"))
        model.own = lambda: None  # which no pickle takes
        loaded = pickle.loads(pickle.dumps(self.raised(model)))
        assert (type(loaded), str(loaded)) == (ValueError, "layers.2.conv: no")
        assert str(self.raised(nn.Sequential(Failing(loaded)))) == "layers.2.conv: no"

    def test_with_hooks_and_observers(self):
        model = Model(ValueError("no"))
        model.layers[2].register_forward_hook(lambda m, a, y: y)
        with tw.explain():
            assert str(self.raised(model)) == "layers.2.conv: no"


class TestCalls:
    class Echo(nn.Module):
        def forward(self, *args, **kwargs):
            return args, kwargs

    @pytest.mark.parametrize("count", [0, 1, 6, 7, 20])
    def test_arguments_arrive_as_they_were_given(self, count):
        args = tuple(range(count))
        assert self.Echo()(*args) == (args, {})
        assert self.Echo()(*args, scale=2) == (args, {"scale": 2})

    def test_a_call_of_ones_own_goes_round_the_forward(self):
        class Doubled(self.Echo):
            def __call__(self, x):
                return super().__call__(2 * x)

        assert Doubled()(3) == ((6,), {})
        assert nn.Module.__call__(Doubled(), 3) == ((3,), {})

    def test_an_instance_may_have_a_forward_of_its_own(self):
        model = self.Echo()
        model.forward = lambda x: x + 1
        assert model(1) == 2

    def test_other_bases(self):
        class Named:
            def __init__(self, name):
                self.name = name

        class Both(nn.Module, Named):
            def __init__(self):
                nn.Module.__init__(self)
                Named.__init__(self, "both")

            def forward(self, x):
                return self.name, x

        assert Both()(1) == ("both", 1)
        twin = copy.deepcopy(pickle.loads(pickle.dumps(nn.Linear(2, 3))))
        assert twin(tw.ones((1, 2))).shape == (1, 3)

    def test_what_is_no_exception_passes(self):
        class Leaving(nn.Module):
            def forward(self):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt) as caught:
            Leaving()()
        assert not vars(caught.value)

    def test_a_module_without_forward(self):
        with pytest.raises(NotImplementedError, match=r"Module: define forward\(\)"):
            nn.Module()()

    def test_endless_calls_end(self):
        class Endless(nn.Module):
            def forward(self):
                return self()

        with pytest.raises(RecursionError):
            Endless()()

    def test_nothing_is_kept(self):
        model, value = self.Echo(), object()
        before = sys.getrefcount(value)
        for _ in range(100):
            model(value, key=value)
            with pytest.raises(TypeError):
                nn.Linear(2, 3)(value)
        gc.collect()
        assert sys.getrefcount(value) == before


# ---- hooks of states ----


def states_with_hooks(package) -> list:
    """What hooks of a small model's states see, and what they change."""
    told: list = []
    model = package.Sequential(package.Linear(2, 2), package.Linear(2, 1))
    inner = model[1]
    inner.register_state_dict_pre_hook(lambda m, prefix, keep: told.append((prefix, keep)))

    def rename(module, state, prefix, metadata) -> None:
        assert module is inner
        told.append(sorted(state))
        state[prefix + "w"] = state.pop(prefix + "weight")

    def back(module, state, prefix, metadata, strict, missing, unexpected, errors) -> None:
        told.append((prefix, strict))
        state[prefix + "weight"] = state.pop(prefix + "w")

    hooks = [
        inner.register_state_dict_post_hook(rename),
        inner.register_load_state_dict_pre_hook(back),
        model.register_load_state_dict_post_hook(lambda m, keys: told.append(keys.missing_keys)),
        inner.register_load_state_dict_post_hook(lambda m, keys: told.append("inner")),
    ]
    state = model.state_dict()
    told.append(sorted(state))
    model.load_state_dict(state)
    assert "1.w" in state
    told.append(sorted(model.state_dict(prefix="m.", keep_vars=True)))
    for hook in hooks:
        hook.remove()
    told.append(sorted(model.state_dict()))
    return told


def test_hooks_of_states_are_pytorchs():
    assert states_with_hooks(nn) == states_with_hooks(torch.nn)


def test_a_hook_of_states_refuses():
    model = nn.Linear(2, 2)
    before = model.weight.tolist()

    def refuse(module, state, prefix, metadata, strict, missing, unexpected, errors) -> None:
        errors.append("an old format")

    hook = model.register_load_state_dict_pre_hook(refuse)
    with pytest.raises(ValueError, match="Linear: an old format"):
        model.load_state_dict({"weight": tw.zeros((2, 2)), "bias": tw.zeros(2)})
    assert model.weight.tolist() == before
    hook.remove()
    model.register_state_dict_post_hook(lambda module, state, prefix, metadata: state)
    with pytest.raises(RuntimeError, match="returns None"):
        model.state_dict()
    assert model(tw.ones((1, 2))).shape == (1, 2)
