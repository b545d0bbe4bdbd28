"""Exchange with Python, NumPy and PyTorch: shared memory, lifetimes, and clear refusals."""

import array
import gc

import numpy as np
import pytest

import tilewright as tw

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


def samples(dtype, shape=(2, 3)):
    return (np.arange(np.prod(shape)) % 7).reshape(shape).astype(dtype)


class TestNumPy:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_memory_is_shared_both_ways(self, dtype):
        x = samples(dtype)
        t = tw.asarray(x)
        assert t.dtype.name == dtype
        x[0, 0] = 1
        assert t[0, 0].item() == x[0, 0]
        t[1, 2] = 1
        assert x[1, 2] == 1
        for back in (np.asarray(t), t.numpy(), np.from_dlpack(t)):
            assert back.dtype == x.dtype
            assert back.ctypes.data == x.ctypes.data
            back[0, 1] = 0
            assert t[0, 1].item() == 0

    @pytest.mark.parametrize(
        "view",
        [
            lambda x: x.T,
            lambda x: x[::2, ::-1],
            lambda x: x[1],
            lambda x: x[:, :, None],
            lambda x: x[2, 3],
            lambda x: x[:0],
            lambda x: np.broadcast_to(x[0], (3, 6)),
            np.asfortranarray,
        ],
    )
    def test_strides_are_kept(self, view):
        x = view(np.arange(24, dtype=np.float32).reshape(4, 6))
        t = tw.asarray(np.asarray(x))
        assert t.shape == x.shape
        np.testing.assert_array_equal(np.asarray(t), x)
        np.testing.assert_array_equal(np.asarray(t + 1.0), x + 1.0)
        np.testing.assert_array_equal(np.asarray(tw.asarray(np.asarray(x), copy=True)), x)

    def test_lifetimes(self):
        t = tw.asarray(np.arange(1000, dtype=np.float64))
        gc.collect()
        assert t[999].item() == 999.0
        x = np.asarray(tw.arange(1000))
        gc.collect()
        assert x[999] == 999

    def test_read_only(self):
        x = np.zeros(3, np.float32)
        x.flags.writeable = False
        t = tw.asarray(x)
        assert (t + 1.0).tolist() == [1.0, 1.0, 1.0]
        for change in (lambda: t.fill_(1.0), lambda: t.__setitem__(0, 1.0), lambda: t.add_(1.0)):
            with pytest.raises(ValueError, match=r"memory is read-only; copy\(\) it first"):
                change()
        assert x.tolist() == [0.0, 0.0, 0.0]
        assert not np.asarray(t).flags.writeable
        assert not np.from_dlpack(t).flags.writeable
        t.copy()[0] = 1.0

    def test_other_byte_order(self):
        x = np.arange(3, dtype=np.float32).astype(np.dtype(np.float32).newbyteorder())
        with pytest.raises(TypeError, match="byte order must be native"):
            tw.asarray(x)

    @pytest.mark.parametrize("dtype", ["clongdouble", "U3", "M8[s]", "O", "longdouble"])
    def test_types_that_there_are_not(self, dtype):
        with pytest.raises((TypeError, ValueError, BufferError)):
            tw.asarray(np.zeros(3, dtype))

    def test_packed_records(self):
        x = np.zeros(3, dtype=[("a", np.uint8), ("b", np.float32)])
        with pytest.raises(BufferError, match="strides are not whole elements"):
            tw.asarray(x["b"])

    @pytest.mark.parametrize(
        "op",
        [
            lambda a, b: a + b,
            lambda a, b: a - b,
            lambda a, b: a * b,
            lambda a, b: a / b,
            lambda a, b: a @ b,
            lambda a, b: a < b,
            lambda a, b: a == b,
        ],
    )
    def test_mixed_operators_give_tensors(self, op):
        x = np.asarray([[1.0, 2.0], [3.0, 5.0]], np.float32)
        t = tw.asarray([[2.0, 2.0], [1.0, 4.0]])
        expected = op(x, np.asarray(t))
        for y in (op(x, t), op(tw.asarray(x), np.asarray(t)), op(tw.asarray(x), t)):
            assert isinstance(y, tw.Tensor)
            np.testing.assert_allclose(np.asarray(y), expected)

    def test_mixed_operators_record_gradients(self):
        t = tw.asarray([2.0, 3.0]).requires_grad_()
        (np.asarray([4.0, 5.0], np.float32) * t).sum().backward()
        assert t.grad.tolist() == [4.0, 5.0]

    def test_in_place_into_an_array(self):
        x = before = np.zeros(2, np.float32)
        x += tw.ones((2,))
        assert x is before
        assert x.tolist() == [1.0, 1.0]
        with pytest.raises(RuntimeError, match="requires grad; use detach"):
            x += tw.ones((2,), requires_grad=True)
        assert x.tolist() == [1.0, 1.0]

    def test_array_protocol(self):
        t = tw.asarray([1.5, 2.5])
        assert np.asarray(t, dtype=np.float64).dtype == np.float64
        copied = np.array(t, copy=True)
        copied[0] = 9.0
        assert t[0].item() == 1.5

    def test_bfloat16_has_no_numpy_type(self):
        with pytest.raises(BufferError, match="bfloat16 has no buffer format"):
            np.asarray(tw.ones((2,), dtype=tw.bfloat16))
        with pytest.raises(BufferError, match="bfloat16 has no buffer format"):
            memoryview(tw.ones((2,), dtype=tw.bfloat16))

    def test_refused_while_in_a_graph(self):
        t = tw.ones((2,), requires_grad=True)
        for export in (np.asarray, memoryview, np.from_dlpack, lambda t: t.numpy()):
            with pytest.raises((BufferError, RuntimeError), match=r"requires grad; use detach\(\)"):
                export(t)
        assert np.asarray(t.detach()).tolist() == [1.0, 1.0]


class TestBuffers:
    def test_memoryview(self):
        t = tw.arange(6, dtype="int16").reshape(2, 3).T
        view = memoryview(t)
        assert (view.format, view.itemsize, view.shape, view.strides) == ("h", 2, (3, 2), (2, 6))
        view[0, 1] = 9
        assert t[0, 1].item() == 9
        del t
        gc.collect()
        assert view.tolist() == [[0, 9], [1, 4], [2, 5]]

    def test_contiguous_bytes(self):
        t = tw.asarray([1, 2], dtype=tw.int32)
        assert bytes(t) == np.asarray([1, 2], np.int32).tobytes()
        assert bytes(tw.arange(4, dtype="int32")[::2]) == np.asarray([0, 2], np.int32).tobytes()

    def test_arrays_and_memoryviews_of_python(self):
        source = array.array("d", [1.0, 2.0])
        t = tw.asarray(source)
        assert t.dtype == tw.float64
        t[0] = 5.0
        assert source[0] == 5.0
        with pytest.raises(BufferError):
            source.append(3.0)  # while its memory is lent
        del t
        gc.collect()
        source.append(3.0)
        assert tw.asarray(memoryview(source)[1:]).tolist() == [2.0, 3.0]

    def test_frombuffer(self):
        data = np.arange(6, dtype=np.float32).tobytes()
        t = tw.frombuffer(data, dtype=tw.float32)
        assert t.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        assert tw.frombuffer(data, tw.float32, (2, 2), offset=8).tolist() == [
            [2.0, 3.0],
            [4.0, 5.0],
        ]
        with pytest.raises(ValueError, match="read-only"):
            t[0] = 1.0
        writable = bytearray(data)
        tw.frombuffer(writable, tw.float32)[0] = 7.0
        assert np.frombuffer(bytes(writable), np.float32)[0] == 7.0
        assert tw.frombuffer(b"", tw.float32).shape == (0,)

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"dtype": tw.float64}, "12 bytes are not a multiple of 8 bytes an element"),
            (
                {"dtype": tw.float32, "shape": (4,)},
                r"shape \(4,\) needs 16 bytes, the buffer has 12",
            ),
            ({"dtype": tw.float32, "offset": 16}, "offset 16 is outside a buffer of 12 bytes"),
            ({"dtype": tw.float32, "offset": -4}, "offset -4 is outside"),
            ({"dtype": tw.float32, "shape": (-1,)}, "shape"),
            ({"dtype": tw.float32, "shape": (2**40, 2**40)}, "shape"),
        ],
    )
    def test_frombuffer_errors(self, options, text):
        with pytest.raises((ValueError, MemoryError), match=text):
            tw.frombuffer(bytes(12), **options)

    def test_frombuffer_of_what_is_no_buffer(self):
        with pytest.raises(TypeError):
            tw.frombuffer("text", tw.uint8)
        with pytest.raises(ValueError, match="not contiguous"):
            tw.frombuffer(np.zeros((4, 4), np.float32)[:, ::2], tw.float32)


class Producer:
    """Lends a NumPy array through DLPack, with the arguments of the version that it speaks."""

    def __init__(self, x, versioned):
        self.x = x
        self.versioned = versioned

    def __dlpack__(self, **options):
        if not self.versioned and options:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


class TestDLPack:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("versioned", [True, False])
    def test_import(self, dtype, versioned):
        x = samples(dtype)
        t = tw.from_dlpack(Producer(x, versioned))
        assert t.dtype.name == dtype
        assert t.data_ptr == x.ctypes.data
        np.testing.assert_array_equal(np.asarray(t), x)

    @pytest.mark.parametrize("options", [{}, {"max_version": (1, 0)}, {"max_version": (0, 8)}])
    def test_unused_capsules_free_what_they_hold(self, options):
        gc.collect()  # what other tests left
        before = tw.memory.stats()["live_bytes"]
        t = tw.ones((1 << 16,))
        capsule = t.__dlpack__(**options)
        del t
        gc.collect()
        assert tw.memory.stats()["live_bytes"] > before
        del capsule
        gc.collect()
        assert tw.memory.stats()["live_bytes"] == before

    def test_the_producer_goes_first(self):
        gc.collect()  # what other tests left
        before = tw.memory.stats()["live_bytes"]
        t = tw.arange(1000)
        x = np.from_dlpack(t)
        del t
        gc.collect()
        assert x[999] == 999
        t = tw.from_dlpack(x)
        del x
        gc.collect()
        assert t[999].item() == 999
        del t
        gc.collect()
        assert tw.memory.stats()["live_bytes"] == before

    def test_strides_and_copies(self):
        x = np.arange(12.0).reshape(3, 4)[:, ::-2]
        t = tw.from_dlpack(x)
        assert t.tolist() == x.tolist()
        for copied in (tw.from_dlpack(x, copy=True), tw.from_dlpack(Producer(x, False), copy=True)):
            assert copied.tolist() == x.tolist()
            copied[0, 0] = -1.0
            assert x[0, 0] == 3.0

    def test_read_only_needs_a_new_consumer(self):
        x = np.zeros(3, np.float32)
        x.flags.writeable = False
        t = tw.asarray(x)
        with pytest.raises(BufferError, match=r"read-only memory needs a consumer of DLPack 1\.0"):
            t.__dlpack__()
        back = tw.from_dlpack(t)
        with pytest.raises(ValueError, match="read-only"):
            back[0] = 1.0

    def test_device(self):
        assert tw.ones((1,)).__dlpack_device__() == (1, 0)
        with pytest.raises(BufferError, match="only CPU memory"):
            tw.ones((1,)).__dlpack__(dl_device=(2, 0))

    @pytest.mark.parametrize("stream", [-1, 0, 1, 2])
    def test_the_cpu_has_no_streams(self, stream):
        with pytest.raises(BufferError, match="stream must be None"):
            tw.ones((1,)).__dlpack__(stream=stream)

    def test_what_is_no_producer(self):
        with pytest.raises((TypeError, AttributeError)):
            tw.from_dlpack(3)


class TestTorch:
    @pytest.fixture
    def torch(self):
        return pytest.importorskip("torch")

    @pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
    def test_memory_is_shared_both_ways(self, torch, dtype):
        p = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
        for t in (tw.from_dlpack(p), tw.asarray(p)):
            assert t.dtype.name == dtype
            assert t.tolist() == p.tolist()
            assert t.data_ptr == p.data_ptr()
        back = torch.from_dlpack(t)
        assert back.dtype == p.dtype
        assert back.data_ptr() == p.data_ptr()
        t[0, 0] = 1
        assert p[0, 0].item() == 1
        assert back[0, 0].item() == 1

    def test_the_producer_goes_first(self, torch):
        p = torch.from_dlpack(tw.arange(1000))
        gc.collect()
        assert p[999].item() == 999
        t = tw.from_dlpack(torch.arange(1000))
        gc.collect()
        assert t[999].item() == 999

    def test_strides(self, torch):
        p = torch.arange(12.0).reshape(3, 4).T[::2]
        assert tw.from_dlpack(p).tolist() == p.tolist()
        t = tw.arange(12).reshape(3, 4).T[::2]
        assert torch.from_dlpack(t).tolist() == t.tolist()

    def test_graphs_do_not_cross(self, torch):
        with pytest.raises((BufferError, RuntimeError), match=r"requires grad|require gradient"):
            tw.from_dlpack(torch.ones(2, requires_grad=True))
        with pytest.raises(RuntimeError, match=r"requires grad; use detach\(\)"):
            torch.from_dlpack(tw.ones((2,), requires_grad=True))

    def test_through_numpy(self, torch):
        t = tw.asarray([1.0, 2.0])
        assert torch.as_tensor(np.asarray(t)).tolist() == [1.0, 2.0]


class TestLists:
    @pytest.mark.parametrize(
        ("value", "dtype", "shape"),
        [
            (True, tw.bool, ()),
            (3, tw.int64, ()),
            (2.5, tw.float32, ()),
            (1j, tw.complex64, ()),
            ([[1, 2], [3, 4]], tw.int64, (2, 2)),
            (((1, 2.5), (3, 4)), tw.float32, (2, 2)),
            ([True, 2], tw.int64, (2,)),
            ([], tw.float32, (0,)),
            ([[], []], tw.float32, (2, 0)),
            (range(3), tw.int64, (3,)),
        ],
    )
    def test_types_and_shapes(self, value, dtype, shape):
        t = tw.asarray(value)
        assert t.dtype == dtype
        assert t.shape == shape

    def test_tensors_and_numpy_numbers_inside(self):
        assert tw.asarray([tw.asarray(1.5), np.float64(2.5), 3]).tolist() == [1.5, 2.5, 3.0]

    def test_digits_of_float64_survive(self):
        assert tw.asarray([0.1], dtype=tw.float64).item() == 0.1
        assert tw.asarray(2**62 + 1).item() == 2**62 + 1

    @pytest.mark.parametrize("value", [[[1], [2, 3]], [[1, 2], 3], [1, [2]], [[], [1]]])
    def test_ragged(self, value):
        with pytest.raises(ValueError, match="nested lists of different"):
            tw.asarray(value)

    @pytest.mark.parametrize(
        "value", [None, "text", b"bytes", object(), {1: 2}, ["a"], [None], {1}]
    )
    def test_wrong_types(self, value):
        with pytest.raises(TypeError, match="asarray: cannot make a tensor of"):
            tw.asarray(value)

    def test_wrong_numbers(self):
        with pytest.raises(OverflowError):
            tw.asarray(2**70)
        with pytest.raises(TypeError):
            tw.asarray([1j], dtype=tw.float32)

    def test_copy_argument(self):
        x = np.zeros(2, np.float32)
        assert tw.asarray(x, copy=False).data_ptr == x.ctypes.data
        assert tw.asarray(x, copy=True).data_ptr != x.ctypes.data
        for value, dtype in ((x, tw.float64), ([1.0], None)):
            with pytest.raises(ValueError, match="a copy is needed here, but copy=False"):
                tw.asarray(value, dtype=dtype, copy=False)

    def test_device_argument(self):
        assert tw.asarray(1.0, device="cpu").device == "cpu"
        with pytest.raises(ValueError, match="no device 'gpu'"):
            tw.asarray(1.0, device="gpu")
        with pytest.raises(TypeError, match="device must be"):
            tw.asarray(1.0, device=0)

    def test_dtype_argument(self):
        for dtype in (tw.float64, "float64", np.float64, np.dtype("float64")):
            assert tw.asarray([1.0], dtype=dtype).dtype == tw.float64
        assert tw.asarray([1.0], dtype=int).dtype == tw.int64
        with pytest.raises(TypeError):
            tw.asarray([1.0], dtype="float63")

    def test_numbers_out(self):
        t = tw.asarray([[1, 2]])
        assert t.tolist() == [[1, 2]]
        assert float(tw.asarray([2.5])) == 2.5
        assert int(tw.asarray(3)) == 3
        assert range(5)[tw.asarray(3)] == 3
        assert bool(tw.asarray([True]))
        with pytest.raises(ValueError, match=r"use any\(\) or all\(\)"):
            bool(t)
        with pytest.raises(TypeError, match="not a single number"):
            float(t)
        with pytest.raises(ValueError, match="is not a single number"):
            t.item()
        with pytest.raises(TypeError, match="only a single integer can be used as an index"):
            range(5)[tw.asarray(1.0)]


class TestTruthValues:
    """A bool tensor's bytes are 0 or 1: kernels add and compare them as they are."""

    BYTES = bytes([0, 1, 2, 255, 128, 0] * 11)

    def readers(self):
        raw = np.frombuffer(self.BYTES, np.uint8)
        yield tw.frombuffer(self.BYTES, tw.bool)
        yield tw.frombuffer(b"\x07" + self.BYTES, tw.bool, offset=1)
        yield tw.asarray(raw.view(bool))
        yield tw.asarray(raw.copy().view(bool).reshape(6, 11).T)
        yield tw.from_dlpack(raw.copy().view(bool))
        yield tw.from_dlpack(raw.copy().view(bool), copy=True)

    def test_other_bytes_become_1(self):
        for x in self.readers():
            expected = np.asarray(tw.astype(x, tw.int32)) != 0
            assert int(np.asarray(x).view(np.uint8).max()) == 1
            assert int(x.sum()) == int(expected.sum()) == 44
            np.testing.assert_array_equal(np.asarray(x == tw.ones_like(x)), expected)
            np.testing.assert_array_equal(np.asarray(tw.logical_xor(x, x)), False)
            assert tw.max(x).item() is True

    def test_clean_memory_is_shared(self):
        x = np.array([True, False, True])
        for t in (tw.asarray(x), tw.from_dlpack(x), tw.frombuffer(x, tw.bool)):
            x[1] = not x[1]
            assert t[1].item() == x[1]
        assert tw.frombuffer(b"", tw.bool).shape == (0,)

    def test_a_copy_that_was_ruled_out_is_refused(self):
        x = np.array([0, 2], np.uint8).view(bool)
        for read in (tw.asarray, tw.from_dlpack):
            with pytest.raises(ValueError, match="bool bytes other than 0 and 1 need a copy"):
                read(x, copy=False)
        clean = np.array([True])
        assert tw.asarray(clean, copy=False).item() is True

    def test_masks_and_operands_from_numpy(self):
        mask = np.array([0, 2, 255], np.uint8).view(bool)
        x = tw.asarray([1.0, 2.0, 3.0])
        assert x[mask].tolist() == [2, 3]
        assert tw.where(mask, x, 0).tolist() == [0, 2, 3]
        assert (tw.asarray([True, True, False]) & mask).tolist() == [False, True, False]
