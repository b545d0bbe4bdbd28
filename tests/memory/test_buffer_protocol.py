"""What consumers of the buffer protocol ask for by flags, and are shown: as NumPy does."""

import ctypes
import itertools

import numpy as np
import pytest

import tilewright as tw

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


class Buffer(ctypes.Structure):
    """Py_buffer."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


WRITABLE, FORMAT, ND, STRIDES = 0x1, 0x4, 0x8, 0x18
ROWS, COLUMNS, ANY, INDIRECT = 0x38, 0x58, 0x98, 0x118
get = ctypes.pythonapi.PyObject_GetBuffer
get.argtypes = [ctypes.py_object, ctypes.POINTER(Buffer), ctypes.c_int]
release = ctypes.pythonapi.PyBuffer_Release
release.argtypes = [ctypes.POINTER(Buffer)]


def shown(x, flags):
    """What a consumer that asks by these flags is shown; None where it is refused."""
    view = Buffer()
    try:
        get(x, ctypes.byref(view), flags)
    except (BufferError, ValueError):
        assert not view.obj
        return None
    steps = view.strides[: view.ndim] if view.strides else None
    told = (
        view.len, view.itemsize, bool(view.readonly), view.ndim, view.format,
        view.shape[: view.ndim] if view.shape else None,
        steps if view.len else bool(steps), view.suboffsets,
    )  # fmt: skip
    release(ctypes.byref(view))
    return told


VIEWS = {
    "rows": lambda x: x,
    "columns": lambda x: x.T,
    "every other": lambda x: x[::2],
    "a column": lambda x: x[:, 1],
    "a block": lambda x: x[1:3, 1:3],
    "backwards": lambda x: x[::1, 2:3],
    "one row": lambda x: x[1:2],
    "one column": lambda x: x[:, 1:2],
    "one of a column": lambda x: x[1:2, 1:2],
    "one row of columns": lambda x: x.T[1:2],
    "a number": lambda x: x[1, 1, ...],
    "nothing": lambda x: x[:0],
    "nothing of columns": lambda x: x.T[:, :0],
    "a vector": lambda x: x[1],
    "axes of one": lambda x: x[None, :, None],
    "three axes": lambda x: x.reshape(2, 2, 3),
}


@pytest.mark.parametrize("name", VIEWS)
def test_every_flag_is_obeyed(name):
    of_numpy = VIEWS[name](np.arange(12, dtype=np.int32).reshape(4, 3))
    ours = VIEWS[name](tw.arange(12, dtype=tw.int32).reshape(4, 3))
    layouts = (0, ND, STRIDES, ROWS, COLUMNS, ANY, INDIRECT, ROWS | COLUMNS, ROWS | ANY)
    for layout, writable, letter in itertools.product(layouts, (0, WRITABLE), (0, FORMAT)):
        flags = layout | writable | letter
        assert shown(ours, flags) == shown(of_numpy, flags), hex(flags)


def test_a_refusal_says_what_was_asked_for():
    x = tw.arange(12.0).reshape(4, 3)
    for of, flags, text in (
        (x[:, 1], ROWS, r"asks for row-major memory, but strides are \(3,\) for shape \(4,\)"),
        (x[:, 1], ND, "asks for row-major memory"),
        (x[:, 1], 0, "asks for row-major memory"),
        (x, COLUMNS, r"asks for column-major memory, but strides are \(3, 1\)"),
        (x[:, 1], ANY, r"asks for contiguous memory, .*; copy it first"),
        (tw.broadcast_to(x[0], (4, 3)), STRIDES | WRITABLE, "memory is read-only"),
    ):
        with pytest.raises(BufferError, match=text):
            get(of, ctypes.byref(Buffer()), flags)


def test_what_is_read_only():
    x = np.zeros(3, np.float32)
    x.flags.writeable = False
    for flags in (STRIDES, ROWS, ANY, ND, 0):
        assert shown(tw.asarray(x), flags)[2] is True
        assert shown(tw.asarray(x), flags | WRITABLE) is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_types_reach_numpy_as_its_own(dtype):
    """Also by number: int64 is a C long where NumPy has it so, as extensions take it."""
    t, expected = tw.zeros((2,), dtype=dtype), np.zeros(2, dtype)
    arrays = [
        np.asarray(t), np.array(t), t.numpy(), t.__array__(), np.from_dlpack(t),
        np.asarray(memoryview(t)), np.frombuffer(t, dtype), np.asarray([t])[0], np.stack([t])[0],
    ]  # fmt: skip
    for x in arrays:
        assert (x.dtype.num, x.dtype.char) == (expected.dtype.num, expected.dtype.char)
    assert memoryview(t).format == memoryview(expected).format
    assert np.dtype(t.dtype).num == expected.dtype.num


def test_extensions_take_whole_numbers():
    ndimage = pytest.importorskip("scipy.ndimage")
    labels = np.asarray(tw.tensor([1, 0, 2]))
    assert set(ndimage.value_indices(labels, ignore_value=0)) == {1, 2}
    assert ndimage.rank_filter(labels, 1, size=2).tolist() == [1, 1, 2]
