"""Lists of numbers, tensors and arrays as tensors: types and ranks, and elements that misbehave."""

import gc
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

import tilewright as tw

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


def sources(dtype, shape):
    """The same values as an array, as a tensor and, of no dimensions, as NumPy's scalar."""
    x = (np.arange(np.prod(shape, dtype=int)) % 2 + 1).reshape(shape).astype(dtype)
    yield x
    yield tw.tensor(x)
    if shape == ():
        yield x[()]


class TestTypesAndRanks:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_elements_keep_them(self, dtype):
        for shape in ((), (1,), (3,), (2, 3), (0,), (0, 2), (1, 1, 1)):
            for x in sources(dtype, shape):
                for wrap in (lambda x: [x], lambda x: (x, x), lambda x: [[x, x], (x, x)]):
                    t, expected = tw.tensor(wrap(x)), np.array(wrap(np.asarray(x)))
                    note = f"{wrap(x)}"
                    assert (t.dtype.name, t.shape) == (dtype, expected.shape), note
                    assert t.tolist() == expected.tolist(), note

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_values_are_exact(self, dtype):
        kind = np.dtype(dtype).kind
        info = np.iinfo(dtype) if kind in "iu" else None if kind == "b" else np.finfo(dtype)
        ends = [True, False] if info is None else [info.min, info.max]
        if kind in "fc":
            ends += [info.tiny, info.smallest_subnormal, 1 + info.eps, -0.0, np.inf]
        x = np.array(ends, dtype)
        assert np.asarray(tw.tensor(list(x))).tobytes() == x.tobytes()
        assert np.asarray(tw.tensor(list(tw.tensor(x)))).tobytes() == x.tobytes()
        assert np.asarray(tw.tensor(list(x[:, None]))).tobytes() == x.tobytes()

    def test_bfloat16(self):
        x = tw.tensor([1.5, -0.0], dtype=tw.bfloat16)
        for t in (tw.tensor(list(x)), tw.tensor([x])[0]):
            assert t.dtype == tw.bfloat16
            assert t.tolist() == [1.5, -0.0]

    def test_several_types_are_promoted(self):
        for a, b in itertools.product(DTYPES, DTYPES):
            pair = [np.ones((), a)[()], np.ones(2, b)[0]]
            apart = {a, b} & {"uint64"} and {a, b} & {"int8", "int16", "int32", "int64"}
            expected = tw.float64 if apart else tw.result_type(getattr(tw, a), getattr(tw, b))
            assert tw.tensor(pair).dtype == expected, (a, b)

    @pytest.mark.parametrize(
        ("value", "dtype"),
        [
            ([np.int8(1), 300], tw.int64),
            ([np.float16(1), 2], tw.float16),
            ([np.float16(1), 2.5], tw.float32),
            ([np.float64(1), 2.5], tw.float64),
            ([np.float64(1), 1j], tw.complex128),
            ([np.float32(1), 2**70], tw.float32),
            ([np.uint64(2**64 - 1), 1], tw.uint64),
            ([np.uint64(5), -1], tw.float64),
            ([np.bool_(True), False], tw.bool),
            ([np.bool_(True), 2], tw.int64),
            ([2**63, np.uint8(1)], tw.uint64),
            ([True, np.int16(3)], tw.int16),
        ],
    )
    def test_pythons_numbers_beside_them_are_of_their_natural_type(self, value, dtype):
        t = tw.tensor(value)
        assert t.dtype == dtype
        assert t.tolist() == [dtype_cast(v, t) for v in value]

    @pytest.mark.parametrize(
        "value",
        [
            [np.ones(2), [1, 2]],
            [[1, 2], np.ones(2)],
            [[np.ones(2), (3, 4)], np.zeros((2, 2))],
            [np.zeros((2, 2)), [np.ones(2), (3, 4)]],
            [range(3), [4.0, 5.0, 6.0]],
            [[], np.zeros(0)],
        ],
    )
    def test_arrays_stand_for_lists(self, value):
        np.testing.assert_array_equal(np.asarray(tw.tensor(value)), np.array(value))

    @pytest.mark.parametrize(
        "value",
        [
            [np.ones(2), np.ones(3)],
            [np.ones(1), 2.0],
            [2.0, np.ones(1)],
            [np.ones(2), np.ones((2, 2))],
            [np.ones((2, 2)), np.ones(2)],
            [[1, 2], np.ones((1, 2))],
            [np.zeros((0, 3)), []],
            [[], 1],
        ],
    )
    def test_what_does_not_fit(self, value):
        with pytest.raises(ValueError, match="nested lists of different"):
            tw.tensor(value)

    def test_the_lengths_are_told(self):
        with pytest.raises(ValueError, match="lengths do not make a tensor: 2 and 3 along axis 1"):
            tw.tensor([[1, 2], [3, 4, 5]])
        with pytest.raises(ValueError, match="depths do not make a tensor: 1 and 2"):
            tw.tensor([[1, 2], 3])

    def test_a_type_that_is_given(self):
        for dtype in (tw.int8, tw.float16, tw.float64, tw.complex128):
            t = tw.tensor([np.float32(1), [2][0], tw.tensor(3.0)], dtype=dtype)
            assert (t.dtype, t.tolist()) == (dtype, [1, 2, 3])
            t = tw.tensor([np.ones(2, "float32"), [2, 3]], dtype=dtype)
            assert (t.dtype, t.tolist()) == (dtype, [[1, 1], [2, 3]])
        assert tw.tensor([2**70], dtype=tw.float64).item() == 2.0**70
        with pytest.raises(OverflowError, match="300 does not fit uint8"):
            tw.tensor([np.int64(300)], dtype=tw.uint8)
        for value in ([np.complex64(1)], [np.ones(2, "complex64")]):
            with pytest.raises(TypeError):
                tw.tensor(value, dtype=tw.float32)

    def test_the_arrays_of_pytorch(self):
        torch = pytest.importorskip("torch")
        t = tw.tensor([torch.ones(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)])
        assert (t.dtype, t.tolist()) == (tw.float64, [[1, 1], [0, 0]])
        assert tw.tensor([torch.tensor(3, dtype=torch.int16)]).dtype == tw.int16

    def test_indices_and_values(self):
        x = tw.arange(6).reshape(2, 3)
        assert x[[np.int32(1), 0]].tolist() == [[3, 4, 5], [0, 1, 2]]
        assert x[[np.array([0, 1]), np.array([1, 0])]].shape == (2, 2, 3)
        x[0] = [np.int64(7), 8, tw.tensor(9)]
        assert x[0].tolist() == [7, 8, 9]

    def test_lists_that_hold_themselves(self):
        value = []
        value.append(value)
        with pytest.raises(ValueError, match="at most 32 dimensions"):
            tw.tensor(value)


def dtype_cast(value, t):
    """A number of the list as the tensor's type has it."""
    return np.dtype(t.dtype.name).type(value).item()


# Elements that change the lists that they are in, each in another of the protocols by which they
# are read. Freed memory is filled with other bytes (PYTHONMALLOC=debug): its use is noticed.
PROGRAM = """
import gc, sys
import numpy as np
import tilewright as tw

class Hostile:
    def __init__(self, action):
        self.lists, self.action, self.left = [], action, 1

    def act(self):
        if not self.left:
            return
        self.left -= 1
        for items in self.lists:
            self.action(items)
        gc.collect()
        self.junk = [bytes(48) for _ in range(1000)]

class ByDlpack(Hostile):
    def __dlpack__(self, **options):
        self.act()
        return np.float32(3).reshape(()).__array__().copy().__dlpack__()
    def __dlpack_device__(self):
        self.act()
        return (1, 0)

class ByArray(Hostile):
    def __array__(self, *args, **options):
        self.act()
        return np.array(3.0)

class ByIndex(Hostile):
    def __index__(self):
        self.act()
        return 1

class ByFloat(Hostile):
    def __float__(self):
        self.act()
        return 1.0

class ByLength(Hostile):
    def __len__(self):
        self.act()
        return 1
    def __getitem__(self, i):
        self.act()
        return 1

class ByInterface(Hostile):
    @property
    def __cuda_array_interface__(self):
        self.act()
        raise AttributeError

class Raises:
    def __dlpack_device__(self):
        return (1, 0)
    def __dlpack__(self, **options):
        raise ZeroDivisionError
    def __index__(self):
        raise ZeroDivisionError

def shrink(items): del items[1:]
def clear(items): items.clear()
def grow(items): items.extend(float(i) + 0.5 for i in range(1000))
def replace(items): items[:] = [float(i) + 0.25 for i in range(len(items))]
def pop(items): items.pop(0)

x = tw.arange(12.0).reshape(3, 4)
def assign(v): x.clone()[0] = v
CALLS = [
    tw.asarray, tw.tensor, tw.Tensor, lambda v: tw.tensor(v, dtype=tw.float64), lambda v: x[v],
    lambda v: x[v, v], lambda v: x[0, v], assign, tw.zeros, x.reshape, x.permute_dims, x.sum,
    lambda v: tw.sum(x, axis=v), lambda v: tw.split(x, v), lambda v: tw.tile(x, v),
    lambda v: tw.broadcast_to(x, v), lambda v: x.flip(v), lambda v: tw.roll(x, v, v),
    lambda v: tw.concat(v), lambda v: tw.stack(v), lambda v: tw.broadcast_shapes(v, v),
    lambda v: tw.nn.functional.pad(x, v), lambda v: tw.as_tensor(v), lambda v: tw.where(v, x, x),
    lambda v: tw.full(v, 1.0), lambda v: tw.randint(0, 3, v), lambda v: tw.tensor_split(x, v),
    lambda v: x.index_put((v,), 1.0), lambda v: tw.nn.functional.interpolate(x[None], v),
]
calls = refused = 0
for call in CALLS:
    for kind in (ByDlpack, ByArray, ByIndex, ByFloat, ByLength, ByInterface, None):
        for action in (shrink, clear, grow, replace, pop):
            for nested in (False, True):
                for place in (0, 1):
                    items = [float(i) + 0.125 for i in range(4)]
                    items[place] = kind(action) if kind else Raises()
                    outer = [items, [float(i) for i in range(4)]] if nested else items
                    if kind:
                        items[place].lists = [items, outer] if nested else [items]
                    calls += 1
                    try:
                        call(outer)
                    except (TypeError, ValueError, IndexError, OverflowError, RuntimeError,
                            BufferError, ZeroDivisionError, AttributeError) as error:
                        refused += 1
                        del error
                    del items, outer
print(calls, refused)
"""


def test_elements_may_change_their_lists():
    """Refused or read, but never read from memory that is gone."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", PROGRAM],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONMALLOC": "debug"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    calls, refused = map(int, done.stdout.split())
    assert calls == 29 * 7 * 5 * 2 * 2
    assert refused > calls / 2


def test_a_list_that_changes_is_told():
    class Popping:
        def __dlpack__(self, **options):
            items.pop()
            return np.ones(()).__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    items = [Popping(), 2.0, 3.0]
    with pytest.raises(ValueError, match="a list of 3 elements was changed to one of 2"):
        tw.asarray(items)


def test_lists_of_ints_that_change_are_refused():
    class Shrinking:
        def __index__(self):
            del items[1:]
            return 0

    x = tw.ones((2, 3, 4))
    calls = {
        "shape": lambda: tw.zeros(items),
        "axes": lambda: x.sum(items),
        "reshape": lambda: tw.zeros((0,)).reshape(items),
        "parts": lambda: tw.split(x, items),
    }
    for name, call in calls.items():
        items = [Shrinking(), 1, 2]
        with pytest.raises((TypeError, ValueError)):
            print(name, call())


def test_elements_are_read_once():
    calls = []

    class Counting:
        def __array__(self, *args, **options):
            calls.append(1)
            return np.float32(2.5).reshape(())

    assert tw.tensor([Counting(), 1], dtype=tw.float64).tolist() == [2.5, 1.0]
    assert calls == [1]


def test_elements_are_let_go():
    class Array(np.ndarray):
        pass

    x = np.ones(3).view(Array)
    before = sys.getrefcount(x)
    t = tw.tensor([x, x])
    gc.collect()
    assert sys.getrefcount(x) == before
    x[0] = 5
    assert t[0, 0].item() == 1
