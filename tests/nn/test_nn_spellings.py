"""Arguments that PyTorch's programs give to modules, optimisers and loaders."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import tilewright as tw

nn = tw.nn
# What each module that has parameters or buffers of its own takes first.
ARGUMENTS = {
    "Linear": (3, 2), "Bilinear": (2, 3, 4), "Embedding": (5, 3), "EmbeddingBag": (5, 3),
    "Conv1d": (2, 4, 3), "Conv2d": (2, 4, 3), "Conv3d": (2, 4, 3), "ConvTranspose1d": (2, 4, 3),
    "ConvTranspose2d": (2, 4, 3), "ConvTranspose3d": (2, 4, 3), "LayerNorm": (4,), "RMSNorm": (4,),
    "GroupNorm": (2, 4), "BatchNorm1d": (4,), "BatchNorm2d": (4,), "BatchNorm3d": (4,),
    "PReLU": (), "RNN": (3, 4), "LSTM": (3, 4), "GRU": (3, 4), "RNNCell": (3, 4),
    "LSTMCell": (3, 4), "GRUCell": (3, 4), "MultiheadAttention": (8, 2),
    "TransformerEncoderLayer": (8, 2, 16), "TransformerDecoderLayer": (8, 2, 16),
    "Transformer": (8, 2, 1, 1, 16),
}  # fmt: skip
# Without parameters unless asked for.
SETTINGS = {f"InstanceNorm{n}d": (4, 1e-5, 0.1, True, True) for n in (1, 2, 3)}


@pytest.mark.parametrize("name", [*ARGUMENTS, *SETTINGS])
def test_a_module_is_made_on_a_device(name):
    arguments = {**ARGUMENTS, **SETTINGS}[name]
    module = getattr(nn, name)(*arguments, device="null", dtype=tw.float64)
    tensors = [*module.parameters(), *module.buffers()]
    assert tensors
    assert {x.device for x in tensors} == {"null"}
    assert {x.dtype for x in tensors} <= {tw.float64, tw.int64}
    default = [*(made := getattr(nn, name)(*arguments)).parameters(), *made.buffers()]
    assert {x.device for x in default} == {"cpu"}
    with pytest.raises(ValueError, match="no device 'gpu'"):
        getattr(nn, name)(*arguments, device="gpu")


@pytest.mark.filterwarnings("ignore:enable_nested_tensor:UserWarning")
@pytest.mark.parametrize("name", [*ARGUMENTS, *SETTINGS])
def test_parameters_stand_in_pytorchs_order(name):
    # An optimizer's state counts them by it.
    torch = pytest.importorskip("torch")
    arguments = {**ARGUMENTS, **SETTINGS}[name]
    ours, theirs = getattr(nn, name)(*arguments), getattr(torch.nn, name)(*arguments)
    assert [key for key, _ in ours.named_parameters()] == [k for k, _ in theirs.named_parameters()]
    assert list(ours.state_dict()) == list(theirs.state_dict())


def test_every_module_that_takes_a_dtype_takes_a_device():
    for name in dir(nn):
        module = getattr(nn, name)
        if inspect.isclass(module) and "dtype" in inspect.signature(module).parameters:
            assert "device" in inspect.signature(module).parameters, name


def test_a_model_moves_to_a_gpu_by_name_or_number(monkeypatch):
    asked = []
    monkeypatch.setattr(nn.Module, "to", lambda self, where: asked.append(where) or self)
    model = nn.Linear(2, 2)
    assert model.cuda().cuda(1).cuda("cuda:2") is model
    assert asked == ["cuda", "cuda:1", "cuda:2"]


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Softmin", "GLU"])
def test_dim_is_axis(name):
    x = tw.randn(2, 4, 6)
    for axis in (0, 1, -1):
        want = getattr(nn, name)(axis)(x)
        assert getattr(nn, name)(dim=axis)(x).tolist() == want.tolist()
        assert repr(getattr(nn, name)(dim=axis)) == f"{name}(axis={axis})"


def test_flattened_dims():
    assert nn.Flatten(start_dim=0, end_dim=1)(tw.zeros((2, 3, 4))).shape == (6, 4)
    with pytest.raises(TypeError, match="axes are whole numbers"):
        nn.Flatten(start_dim=1.5)


ACTIVATIONS = {
    "ReLU": (), "ReLU6": (), "LeakyReLU": (0.2,), "ELU": (1.5,), "CELU": (1.5,), "SELU": (),
    "SiLU": (), "Mish": (), "Hardtanh": (-0.5, 0.5), "Hardswish": (), "Hardsigmoid": (),
    "Threshold": (0.1, 7.0), "RReLU": (0.25, 0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_in_place_activations_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    numbers = np.random.default_rng(0).normal(size=(4, 5)) * 3
    ours = getattr(nn, name)(*ACTIVATIONS[name], inplace=True).eval()
    theirs = getattr(torch.nn, name)(*ACTIVATIONS[name], inplace=True).eval()
    assert "inplace=True" in repr(ours)
    assert "inplace" not in repr(getattr(nn, name)(*ACTIVATIONS[name]))
    leaf, other = tw.asarray(numbers.copy()), torch.tensor(numbers)
    leaf.requires_grad = other.requires_grad = True
    x, y = leaf * 2, other * 2
    assert ours(x) is x
    assert theirs(y) is y
    np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-12)
    x.sum().backward()
    y.sum().backward()
    # PyTorch divides by 6 with a factor in float32, and takes an ELU's slope from its result.
    loose = 1e-7 if name == "Hardsigmoid" else 1e-12
    np.testing.assert_allclose(leaf.grad.numpy(), other.grad.numpy(), rtol=loose, atol=1e-14)
    with pytest.raises(RuntimeError, match="leaf"):
        ours(leaf)


@pytest.mark.parametrize(
    "name", ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout",
             "FeatureAlphaDropout"]
)  # fmt: skip
def test_in_place_dropout(name):
    shape = {"Dropout1d": (2, 3, 4), "Dropout3d": (2, 3, 4, 5, 2)}.get(name, (2, 3, 4, 5))
    layer, other = getattr(nn, name)(0.5, inplace=True), getattr(nn, name)(0.5)
    tw.manual_seed(3)
    want = other(tw.ones(shape))
    tw.manual_seed(3)
    x = tw.ones(shape)
    assert layer(x) is x
    assert x.tolist() == want.tolist()
    before = x.tolist()
    assert layer.eval()(x).tolist() == before
    assert repr(layer) == f"{name}(p=0.5, inplace=True)"


def test_gradients_are_dropped_or_set_to_zero():
    model = nn.Linear(3, 2)
    optimizer = tw.optim.SGD(model.parameters(), lr=0.1)
    for clear in (model.zero_grad, optimizer.zero_grad):
        model(tw.ones((4, 3))).sum().backward()
        kept = model.weight.grad
        clear(set_to_none=False)
        assert kept.tolist() == model.weight.grad.tolist() == [[0.0] * 3] * 2
        clear(set_to_none=True)
        assert model.weight.grad is None
        clear(set_to_none=False)
        assert model.weight.grad is None


def test_gradients_with_a_graph_are_set_to_zero():
    x = tw.ones((2,), requires_grad=True)
    (x**3).sum().backward(create_graph=True)
    tw.optim.SGD([x], lr=0.1).zero_grad(set_to_none=False)
    assert x.grad.tolist() == [0.0, 0.0]
    assert not x.grad.requires_grad


@pytest.mark.parametrize(
    "name",
    [
        "SGD",
        "Adam",
        "AdamW",
        "RMSprop",
        "Adagrad",
        "Adadelta",
        "Adamax",
        "NAdam",
        "RAdam",
        "ASGD",
        "Rprop",
    ],
)
def test_ways_to_compute_change_nothing(name):
    made = []
    for options in ({}, {"fused": True, "foreach": False}):
        x = tw.ones((3,), requires_grad=True)
        optimizer = getattr(tw.optim, name)([x], lr=0.1, **options)
        (x * x).sum().backward()
        optimizer.step()
        made.append(x.tolist())
        assert "fused" not in optimizer.param_groups[0]
    assert made[0] == made[1]


def test_what_a_dictionary_holds_is_an_attribute():
    model = nn.ModuleDict({"a": nn.Linear(2, 3), "pop": nn.ReLU()})
    assert model.a is model["a"]
    assert callable(model.pop)
    assert not isinstance(model.pop, nn.Module)
    model.a.weight = nn.Parameter(tw.zeros((3, 2)))
    assert model["a"].weight.tolist() == [[0.0, 0.0]] * 3
    model.a = other = nn.Linear(2, 2)
    assert model["a"] is other
    assert [name for name, _ in model.named_children()] == ["a", "pop"]
    with pytest.raises(AttributeError, match="no attribute 'b'"):
        model.b  # noqa: B018
    with pytest.raises(TypeError, match="expected a Module"):
        model.a = 3
    values = nn.ParameterDict({"scale": tw.ones((2,))})
    assert values.scale is values["scale"]


def test_a_loader_takes_pytorchs_arguments():
    data = tw.arange(10)
    plain = [batch.tolist() for batch in tw.data.DataLoader(data, 4)]
    loader = tw.data.DataLoader(
        data, batch_size=4, pin_memory=True, prefetch_factor=3, persistent_workers=True
    )
    assert [batch.tolist() for batch in loader] == plain
    assert loader.prefetch == 3
    with pytest.raises(ValueError, match="prefetch_factor"):
        tw.data.DataLoader(data, prefetch_factor=0)
    for name in ("pin_memory", "persistent_workers"):
        with pytest.raises(TypeError, match=name):
            tw.data.DataLoader(data, **{name: "yes"})
