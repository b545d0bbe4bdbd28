"""Pickles and copies keep values, dtype, shape, class, name and the wish for a gradient."""

import copy
import pickle

import pytest

import tilewright as tw
from tilewright import nn

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


class Labelled(tw.Tensor):
    """A subclass with an attribute of its own."""


def through_pickle(x, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(x, protocol))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_protocol(dtype, protocol):
    x = tw.arange(6, dtype="float32").reshape(2, 3).astype(dtype)
    y = through_pickle(x, protocol)
    assert y.dtype == x.dtype
    assert y.shape == (2, 3)
    assert y.tolist() == x.tolist()
    assert not y.requires_grad


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1)])
def test_shapes(shape, protocol):
    x = tw.ones(shape)
    y = through_pickle(x, protocol)
    assert y.shape == shape
    assert y.tolist() == x.tolist()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_result_can_be_written_to(protocol):
    y = through_pickle(tw.zeros((3,)), protocol)
    y[1] = 5.0
    y += 1.0
    assert y.tolist() == [1.0, 6.0, 1.0]


def test_strided_views_come_back_row_major():
    x = tw.arange(12).reshape(3, 4).T[::-2]
    y = through_pickle(x)
    assert y.tolist() == x.tolist()
    assert y.is_contiguous


def test_leaves_keep_requires_grad_and_results_are_values():
    w = tw.randn(3, requires_grad=True)
    w.name = "w"
    restored = through_pickle(w)
    assert restored.requires_grad
    assert restored.is_leaf
    assert restored.name == "w"
    (restored * 2.0).sum().backward()
    assert restored.grad.tolist() == [2.0] * 3
    value = through_pickle(w * 2.0)
    assert not value.requires_grad
    assert value.is_leaf


class TestOutOfBand:
    def test_buffers_are_shared_not_copied(self):
        x = tw.arange(5, dtype="float32")
        buffers = []
        data = pickle.dumps(x, 5, buffer_callback=buffers.append)
        assert len(buffers) == 1
        assert len(data) < 300
        y = pickle.loads(data, buffers=buffers)
        assert y.data_ptr == x.data_ptr
        x[0] = 7.0
        assert y.tolist() == [7.0, 1.0, 2.0, 3.0, 4.0]

    def test_the_producer_may_go_first(self):
        x = tw.arange(5, dtype="bfloat16")
        buffers = []
        data = pickle.dumps(x, 5, buffer_callback=buffers.append)
        y = pickle.loads(data, buffers=buffers)
        del x, buffers
        assert y.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]

    def test_read_only_buffers_are_copied(self):
        buffers = []
        data = pickle.dumps(tw.ones((2,)), 5, buffer_callback=buffers.append)
        y = pickle.loads(data, buffers=[bytes(buffers[0])])
        y[0] = 3.0
        assert y.tolist() == [3.0, 1.0]


class TestSubclasses:
    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_parameters(self, protocol):
        x = nn.Parameter(tw.ones((2,)))
        y = through_pickle(x, protocol)
        assert type(y) is nn.Parameter
        assert y.requires_grad
        assert not through_pickle(nn.Parameter(tw.ones((2,)), requires_grad=False)).requires_grad

    def test_attributes(self):
        x = Labelled(tw.ones((2,)))
        x.label = "left"
        y = through_pickle(x)
        assert type(y) is Labelled
        assert y.label == "left"

    def test_whole_modules(self):
        model = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))
        twin = through_pickle(model)
        x = tw.randn(4, 3)
        assert twin(x).tolist() == model(x).tolist()
        assert len(list(twin.parameters())) == 4


class TestCopies:
    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
    def test_memory_is_its_own(self, copied):
        x = tw.ones((3,), requires_grad=True)
        y = copied(x)
        with tw.no_grad():
            y[0] = 9.0
        assert x.tolist() == [1.0, 1.0, 1.0]
        assert y.requires_grad

    def test_deepcopy_of_a_shared_parameter_stays_shared(self):
        shared = nn.Parameter(tw.ones((2,)))
        a, b = copy.deepcopy([shared, shared])
        assert a is b
        assert a is not shared

    def test_dtypes_are_themselves(self):
        for name in DTYPES:
            dtype = getattr(tw, name)
            assert through_pickle(dtype) == dtype
            assert copy.deepcopy(dtype) == dtype


def test_damaged_data_is_refused():
    function, arguments = tw.ones((4,)).__reduce_ex__(2)
    with pytest.raises(ValueError, match="needs 16 bytes, the buffer has 8"):
        function(arguments[0], arguments[1][:8], *arguments[2:])


def test_deep_copies_keep_gradients_as_pytorchs():
    torch = pytest.importorskip("torch")
    results = []
    for package in (tw, torch):
        x = package.ones(2, requires_grad=True)
        p = package.nn.Parameter(package.ones(2))
        (3 * x.sum() + p.sum()).backward()
        y, q, pair = copy.deepcopy(x), copy.deepcopy(p), copy.deepcopy([x, x])
        assert pair[0] is pair[1]
        assert y.grad is not x.grad
        y.grad.zero_()
        results.append((x.grad.tolist(), q.grad, pair[0].grad.tolist(), y.requires_grad))
    assert results[0] == results[1]
