"""Tensors live on a device: where they are made, how they move, what may not be mixed."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core

MAKERS = {
    "empty": lambda **o: tw.empty((2, 3), **o),
    "zeros": lambda **o: tw.zeros((2, 3), **o),
    "ones": lambda **o: tw.ones((2, 3), **o),
    "full": lambda **o: tw.full((2, 3), 1.5, **o),
    "arange": lambda **o: tw.arange(6, **o),
    "linspace": lambda **o: tw.linspace(0, 1, 6, **o),
    "eye": lambda **o: tw.eye(3, **o),
    "rand": lambda **o: tw.rand((2, 3), **o),
    "randn": lambda **o: tw.randn((2, 3), **o),
    "randint": lambda **o: tw.randint(0, 9, (6,), **o),
    "randperm": lambda **o: tw.randperm(6, **o),
    "uniform": lambda **o: tw.uniform(0.0, 1.0, (6,), **o),
    "normal": lambda **o: tw.normal(0.0, 1.0, (6,), **o),
    "bernoulli": lambda **o: tw.bernoulli(0.5, (6,), **o),
    "asarray": lambda **o: tw.asarray([1.0, 2.0], **o),
    "tensor": lambda **o: tw.tensor([1.0, 2.0], **o),
    "zeros_like": lambda **o: tw.zeros_like(tw.ones((3,)), **o),
    "full_like": lambda **o: tw.full_like(tw.ones((3,)), 2, **o),
    "empty_like": lambda **o: tw.empty_like(tw.ones((3,)), **o),
    "ones_like": lambda **o: tw.ones_like(tw.ones((3,)), **o),
}


@pytest.fixture
def null_by_default():
    tw.set_device("null")
    yield
    tw.set_device("cpu")


@pytest.mark.parametrize("name", list(MAKERS))
def test_device_argument(name):
    assert MAKERS[name]().device == "cpu"
    assert MAKERS[name](device="null").device == "null"
    assert MAKERS[name](device="cpu").device == "cpu"
    with pytest.raises(ValueError, match="no device 'gpu'; there are 'cpu', 'null', and 'cuda'"):
        MAKERS[name](device="gpu")


@pytest.mark.parametrize("name", list(MAKERS))
def test_the_threads_device_is_where_tensors_are_made(name, null_by_default):
    assert MAKERS[name]().device == "null"
    assert MAKERS[name](device="cpu").device == "cpu"


def test_operands_say_where_an_op_runs(null_by_default):
    x = tw.ones((3,), device="cpu")
    y = (x * 2 + 1).sum()
    assert (y.device, y.item()) == ("cpu", 9.0)
    assert tw.ones_like(x).tolist() == [1.0] * 3
    assert tw.one_hot(tw.asarray([1, 0], device="cpu"), 2).tolist() == [[0, 1], [1, 0]]
    assert tw.nonzero(x)[0].device == "cpu"
    assert x[tw.asarray([2], device="cpu")].tolist() == [1.0]


def test_to():
    x = tw.arange(4, dtype=tw.float32)
    there = x.to("null")
    assert (x.device, there.device, there.shape, there.dtype) == ("cpu", "null", (4,), tw.float32)
    assert there.to("null") is there
    assert x.to("cpu") is x
    assert there.to(device="cpu", dtype=tw.int32).dtype == tw.int32
    assert x.to(there).device == "null"
    assert there.cpu().device == "cpu"
    assert x.reshape(2, 2).T.to("null").shape == (2, 2)
    assert there[1:3].device == "null"
    assert there.reshape(2, 2).T.device == "null"
    with pytest.raises(ValueError, match="no device 'gpu'"):
        x.to("gpu")


def test_gradients_come_back_to_where_the_leaf_is():
    x = tw.ones((3,), requires_grad=True)
    y = (x.to("null") * 2).sum()
    y.backward()
    assert (x.grad.device, x.grad.shape) == ("cpu", (3,))
    w = tw.ones((3,), device="null", requires_grad=True)
    (w * 2).sum().backward()
    assert w.grad.device == "null"
    (w.to("cpu") * tw.ones((3,))).sum().backward()
    assert w.grad.device == "null"


def test_mixing_is_refused_and_changes_nothing():
    a, b = tw.ones((3,)), tw.ones((3,), device="null")
    text = r"add: operands are on different devices: float32 \(3,\) on 'cpu' and .*on 'null'"
    with pytest.raises(ValueError, match=text):
        a + b
    with pytest.raises(ValueError, match="different devices"):
        a += b
    with pytest.raises(ValueError, match="different devices"):
        a[...] = b
    with pytest.raises(ValueError, match="different devices"):
        tw.concat([a, b])
    with pytest.raises(ValueError, match="different devices"):
        a[tw.asarray([0], device="null")]
    with pytest.raises(ValueError, match="different devices"):
        tw.sgd_step([a], [b], step=1, lr=1.0)
    assert a.tolist() == [1.0] * 3
    assert (a + 1).tolist() == [2.0] * 3


def test_what_needs_the_memory_says_so():
    x = tw.ones((2,), device="null")
    assert x.tolist() == [0.0, 0.0]  # what comes back from there is zero
    assert x[0].item() == 0.0
    assert "0." in repr(x)
    for read in (np.asarray, np.from_dlpack, memoryview, tw.Tensor.numpy):
        with pytest.raises((BufferError, ValueError, TypeError), match=r"device 'null'|buffer"):
            read(x)
    with pytest.raises(BufferError, match=r"to\('cpu'\)"):
        x.numpy()
    assert tw.nonzero(x)[0].shape == (0,)


def test_a_network_runs_there():
    tw.set_device("null")
    try:
        model = tw.nn.Sequential(
            tw.nn.Linear(8, 4), tw.nn.ReLU(), tw.nn.Dropout(), tw.nn.Linear(4, 2)
        )
        optimizer = tw.optim.Adam(model.parameters())
        loss = tw.cross_entropy(model(tw.rand((5, 8))), tw.zeros((5,), dtype=tw.int64))
        loss.backward()
        optimizer.step()
    finally:
        tw.set_device("cpu")
    assert {p.grad.device for p in model.parameters()} == {loss.device} == {"null"}


def test_copies_stay_there_and_files_ask_for_the_cpu(tmp_path):
    x = tw.ones((2,), device="null")
    assert x.copy().device == copy.deepcopy(x).device == "null"
    x.requires_grad = True
    y = pickle.loads(pickle.dumps(x))
    assert (y.device, y.shape, y.requires_grad) == ("null", (2,), True)
    with pytest.raises(BufferError, match=r"to\('cpu'\)"):
        tw.save({"x": x}, tmp_path / "x.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_capture_has_the_device_of_its_inputs():
    captured = _core._capture(lambda x: x + 1, [tw.ones((2,), device="null")])
    (y,) = captured.replay([tw.ones((2,), device="null")])
    assert (y.device, y.shape) == ("null", (2,))
    with pytest.raises(ValueError, match=r"capture: inputs are on different devices"):
        _core._capture(lambda x, y: x, [tw.ones((2,)), tw.ones((2,), device="null")])
    there = tw.ones((2,), device="null")
    with pytest.raises(RuntimeError, match=r"capture: add runs on 'null'.*one capture has one"):
        _core._capture(lambda x: (x + 1, there + 1), [tw.ones((2,))])


def test_what_is_refused_is_not_counted_as_a_change():
    x, w = tw.ones((3,)), tw.ones((3,), requires_grad=True)
    y = (x * w).sum()
    with pytest.raises(ValueError, match="different devices"):
        x[...] = tw.ones((3,), device="null")
    with pytest.raises(ValueError, match="different devices"):
        x[tw.asarray([0], device="null")] = 5.0
    with pytest.raises(ValueError, match="different devices"):
        x[tw.asarray([0])] = tw.ones((1,), device="null")
    y.backward()
    assert w.grad.tolist() == [1.0] * 3


def test_hooks_keep_gradients_where_they_are():
    w = tw.ones((3,), requires_grad=True)
    w.register_hook(lambda g: g.to("null"))
    with pytest.raises(ValueError, match="on another device"):
        (w * 2).sum().backward()


def test_names_that_are_no_text():
    with pytest.raises(UnicodeEncodeError):
        tw.ones((3,), device="\ud800")
