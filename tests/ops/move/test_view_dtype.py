"""`view(dtype)`: the same bits as elements of another type, against NumPy's views."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases.arrays import ALL
from subcases import each

import tilewright as tw
from tilewright import _core

# NumPy has no bfloat16: there its bits are these.
STANDS_FOR = {"bfloat16": "uint16"}
OTHERS = [name for name in ALL if name != "bool"]


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(STANDS_FOR.get(name, name))


def bits(x: tw.Tensor) -> bytes:
    """The elements' bytes in row-major order, by way of NumPy's own view of the memory."""
    x = x.contiguous()
    return b"" if not x.size else torch.from_dlpack(x).view(torch.uint8).numpy().tobytes()


def sample(name: str, shape: tuple[int, ...]) -> tuple[tw.Tensor, np.ndarray]:
    """A tensor of arbitrary bits, and an array over a copy of the same bytes."""
    item = numpy_dtype(name).itemsize
    raw = np.random.default_rng(7).integers(0, 256, (*shape[:-1], shape[-1] * item), np.uint8)
    array = raw.copy().view(numpy_dtype(name))
    theirs = torch.from_numpy(raw.copy()).view(getattr(torch, name))
    return tw.from_dlpack(theirs), array


@each("source", OTHERS)
@each("target", OTHERS)
def test_bits_are_those_of_numpy_s_view(source, target):
    x, array = sample(source, (3, 2, 16))
    got = x.view(getattr(tw, target))
    want = array.view(numpy_dtype(target))
    assert (got.shape, got.dtype) == (want.shape, getattr(tw, target))
    assert bits(got) == want.tobytes()
    assert got.data_ptr == x.data_ptr
    assert bits(got.view(x.dtype)) == array.tobytes()


@pytest.mark.parametrize(
    "part",
    [
        lambda x: x[::2],
        lambda x: x[:, 1:, 4:12],
        lambda x: x.transpose(0, 1) if isinstance(x, tw.Tensor) else x.swapaxes(0, 1),
        lambda x: x[2, 1],
        lambda x: x[:0],
        lambda x: x[..., :0],
    ],
)
@pytest.mark.parametrize("target", ["uint8", "int16", "float32", "float64", "complex64"])
def test_parts_keep_their_places(part, target):
    x, array = sample("float32", (4, 3, 16))
    got = part(x).view(getattr(tw, target))
    want = part(array).view(target)
    assert got.shape == want.shape
    assert got.stride() == tuple(s // want.itemsize for s in want.strides) or got.size == 0
    assert bits(got) == np.ascontiguousarray(want).tobytes()


def test_writes_are_seen_both_ways():
    x = tw.asarray([1.0, -2.0, 0.0, 4.0])
    words = x.view(tw.int32)
    words &= 0x7FFFFFFF
    np.testing.assert_array_equal(x.numpy(), [1, 2, 0, 4])
    x[0] = -0.5
    assert words[0].item() == np.float32(-0.5).view(np.int32)


def test_takes_no_part_in_the_graph_but_its_changes_are_counted():
    x = tw.tensor([1.0, 2.0], requires_grad=True)
    assert not x.view(tw.int32).requires_grad
    assert not x.view(tw.bfloat16).requires_grad
    y = x * x
    x.detach().view(tw.int32)[0] = 0
    with pytest.raises(tw.StateError, match="changed in place"):
        y.sum().backward()


def test_changes_of_a_result_in_the_graph_are_refused():
    """Through another type they would be in no gradient."""
    x = tw.tensor([1.0, 2.0], requires_grad=True)
    h = x * 3
    words = h.view(tw.int32)
    with pytest.raises(tw.StateError, match="in-place change of int32"):
        words += 1
    (h * h).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [18, 36])


@pytest.mark.skipif(not tw.cuda.is_available(), reason=f"no GPU: {tw.cuda.why_unavailable()}")
def test_on_a_gpu():
    x, array = sample("float32", (3, 8))
    there = x.to("cuda")
    words = there.view(tw.int16)
    assert (words.device, words.shape) == ("cuda:0", (3, 16))
    words[:, ::2] = 0
    array.view(np.int16)[:, ::2] = 0
    assert bits(there.to("cpu")) == array.tobytes()


def test_its_own_type_gives_itself_with_its_gradient():
    x = tw.tensor([1.0, 2.0], requires_grad=True)
    x.view(tw.float32).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1])


@pytest.mark.parametrize("spelling", [tw.int32, "int32", np.int32, np.dtype("int32")])
def test_names_of_a_type(spelling):
    x = tw.ones((2, 3))
    assert x.view(spelling).dtype == tw.int32
    assert x.view(dtype=spelling).shape == (2, 3)


def test_extents_are_still_extents():
    x = tw.arange(6.0)
    assert x.view(2, 3).shape == x.view((2, 3)).shape == x.view(-1, 3).shape == (2, 3)
    assert x.view(size=(3, 2)).shape == (3, 2)
    assert tw.ones(()).view(()).shape == ()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tw.ones((4,)).view(tw.bool), TypeError, "no bool"),
        (lambda: tw.ones((3,)).view(tw.float64), ValueError, "a last axis that 2 divides"),
        (lambda: tw.ones(()).view(tw.float64), ValueError, "an axis for the elements"),
        (lambda: tw.ones((4, 4)).mT.view(tw.uint8), ValueError, "without gaps"),
        (lambda: tw.ones((4, 3))[:, :2].view(tw.float64), ValueError, "strides that 2 divides"),
        (lambda: tw.ones((5,))[1:].view(tw.float64), ValueError, "cannot begin at this address"),
        (lambda: tw.ones((4,)).view("float31"), TypeError, "shape must be an int, a sequence"),
        (lambda: tw.ones((4,)).view(2.0), TypeError, "shape must be an int, a sequence"),
        (lambda: tw.ones((4,)).view(None), TypeError, "shape must be an int, a sequence"),
        (lambda: tw.ones((4,)).view(3), ValueError, "cannot view 4 elements"),
    ],
)
def test_what_does_not_fit_is_told(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_read_only_memory_stays_read_only():
    array = np.arange(4, dtype=np.float32)
    array.flags.writeable = False
    words = tw.asarray(array, copy=False).view(tw.int32)
    with pytest.raises(ValueError, match="read-only"):
        words += 1
    assert array[0] == 0


def test_a_captured_step_reads_the_bits_of_its_own_run():
    step = _core._capture(lambda x: (x * 2).view(tw.int32) + 1, [tw.ones((5,))])
    for value in (1.0, 3.5):
        want = np.full(5, 2 * value, np.float32).view(np.int32) + 1
        np.testing.assert_array_equal(step.replay([tw.full((5,), value)])[0].numpy(), want)
