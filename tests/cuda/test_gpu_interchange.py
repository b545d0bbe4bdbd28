"""Memory of GPUs shared with other libraries: DLPack with streams, the CUDA array interface."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np
import pytest

import tilewright as tw

pytestmark = pytest.mark.skipif(
    not tw.cuda.is_available(), reason=f"no GPU: {tw.cuda.why_unavailable()}"
)
EMULATED = tw.cuda.is_available() and tw.cuda.get_device_name() == "emulated GPU"
emulated_alone = pytest.mark.skipif(not EMULATED, reason="a GPU may be early enough")
LEGACY = 1


def there(x) -> tw.Tensor:
    return tw.asarray(np.asarray(x)).to("cuda")


def here(x: tw.Tensor) -> np.ndarray:
    return np.asarray(x.detach().to("cpu"))


class View(ctypes.Structure):
    """DLTensor of DLPack."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


def view_of(capsule: Any) -> View:
    """What a capsule of DLPack before 1.0 says, which is the capsule's memory."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    view = View.from_address(get(capsule, b"dltensor"))
    view.capsule = capsule
    return view


class Driver:
    """What another library would do with the GPU, on the driver's own stream or one of its own."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(os.environ.get("TILEWRIGHT_CUDA_DRIVER", "libcuda.so.1"))
        self.buffers: list[Any] = []

    def check(self, result: int) -> None:
        assert result == 0

    def stream(self) -> int:
        made = ctypes.c_void_p()
        self.check(self.library.cuStreamCreateWithPriority(ctypes.byref(made), 1, 0))
        assert made.value
        return made.value

    def pinned(self, count: int) -> Any:
        made = ctypes.c_void_p()
        size = ctypes.c_size_t(4 * count)
        self.check(self.library.cuMemHostAlloc(ctypes.byref(made), size, 0))
        return (ctypes.c_float * count).from_address(made.value)

    def copy(self, to: int, source: int, count: int, stream: int) -> None:
        self.check(
            self.library.cuMemcpyAsync(
                ctypes.c_ulonglong(to),
                ctypes.c_ulonglong(source),
                ctypes.c_size_t(4 * count),
                ctypes.c_void_p(stream),
            )
        )

    def read(self, address: int, count: int, stream: int) -> Any:
        """A copy to the host, in flight."""
        buffer = self.pinned(count)
        self.copy(ctypes.addressof(buffer), address, count, stream)
        return buffer

    def write(self, address: int, values: list[float], stream: int) -> None:
        buffer = self.pinned(len(values))
        buffer[:] = values
        self.buffers.append(buffer)
        self.copy(address, ctypes.addressof(buffer), len(values), stream)

    def synchronize(self, stream: int) -> None:
        self.check(self.library.cuStreamSynchronize(ctypes.c_void_p(stream)))


@pytest.fixture(scope="module")
def driver() -> Driver:
    tw.cuda.synchronize()  # the GPU is open
    return Driver()


class Producer:
    """A library that hands tensors out by DLPack, and notes what it was asked for."""

    def __init__(self, x: tw.Tensor, modern: bool = True) -> None:
        self.x, self.modern = x, modern
        self.options: dict[str, Any] = {}

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __dlpack__(self, **options):
        if not self.modern and options.keys() - {"stream"}:
            raise TypeError("unexpected keyword")
        self.options = options
        return self.x.__dlpack__(**options)


class Array:
    """A library's array that only has the CUDA array interface."""

    def __init__(self, x: tw.Tensor | None = None, **changes: Any) -> None:
        self.x = x
        self.__cuda_array_interface__ = {
            **(x.__cuda_array_interface__ if x is not None else {}),
            **changes,
        }


class TestDLPack:
    @pytest.mark.parametrize("modern", [True, False])
    def test_memory_is_shared_both_ways(self, modern):
        x = there(np.arange(12, dtype="float32").reshape(3, 4))[:, 1:3]
        producer = Producer(x, modern)
        y = tw.from_dlpack(producer)
        assert (y.device, y.shape, y.dtype) == ("cuda:0", (3, 2), tw.float32)
        assert producer.options["stream"] == tw.cuda.current_stream().cuda_stream
        y += 100
        np.testing.assert_array_equal(here(x), here(y))
        assert here(x)[0].tolist() == [101, 102]
        assert tw.asarray(producer).device == "cuda:0"

    def test_what_a_capsule_says(self):
        x = there(np.zeros((2, 3), dtype="int16"))
        assert x.__dlpack_device__() == (2, 0)
        assert tw.ones((2,)).__dlpack_device__() == (1, 0)
        view = view_of(x.T.__dlpack__())
        assert tuple(view.device) == (2, 0)
        assert (view.code, view.bits, view.ndim) == (0, 16, 2)
        assert (view.shape[:2], view.strides[:2]) == ([3, 2], [1, 3])

    @emulated_alone
    def test_the_consumers_stream_waits_for_ours(self, driver):
        x = tw.ones((1000,), device="cuda")
        tw.cuda.synchronize()
        x += 1
        view = view_of(x.__dlpack__(stream=-1))
        early = driver.read(view.data, 1000, LEGACY)
        driver.synchronize(LEGACY)
        assert list(early) == [1.0] * 1000  # who asks for no order gets none
        for stream in (None, 1, 2, driver.stream()):
            x += 1
            view = view_of(x.__dlpack__(stream=stream))
            late = driver.read(view.data, 1000, stream or LEGACY)
            driver.synchronize(stream or LEGACY)
            np.testing.assert_array_equal(list(late), here(x))

    @emulated_alone
    @pytest.mark.parametrize("own", [False, True])
    def test_memory_serves_again_after_the_consumer(self, driver, own):
        stream = driver.stream() if own else LEGACY
        x = tw.full((1000,), 7.0, device="cuda")
        view = view_of(x.__dlpack__(stream=stream))
        read = driver.read(view.data, 1000, stream)
        del x, view
        y = tw.zeros((1000,), device="cuda")
        assert y.sum().item() == 0
        driver.synchronize(stream)
        assert list(read) == [7.0] * 1000

    @emulated_alone
    def test_a_producer_gets_its_memory_back_when_we_are_done(self):
        s = tw.cuda.Stream()
        x = tw.ones((1000,), device="cuda")
        with tw.cuda.stream(s):
            y = tw.from_dlpack(Producer(x)) * 3
        x += 1  # the import has ended, so what it read is read
        tw.cuda.synchronize()
        assert y.tolist() == [3.0] * 1000

    def test_uploads_in_flight_are_waited_for(self, driver):
        x = tw.ones((100_000,)).pin_memory().to("cuda", non_blocking=True)
        view = view_of(x.__dlpack__(stream=None))
        read = driver.read(view.data, 100_000, LEGACY)
        driver.synchronize(LEGACY)
        assert sum(read) == 100_000

    def test_another_device_is_a_copy(self):
        x = there(np.arange(4.0))
        view = view_of(x.__dlpack__(dl_device=(1, 0)))
        assert tuple(view.device) == (1, 0)
        values = ctypes.cast(view.data, ctypes.POINTER(ctypes.c_double))[:4]
        assert values == [0, 1, 2, 3]
        y = tw.from_dlpack(Producer(x), device="cpu")
        assert (y.device, y.tolist()) == ("cpu", [0, 1, 2, 3])
        assert tw.from_dlpack(np.arange(3.0), device="cuda").device == "cuda:0"
        with pytest.raises(ValueError, match="another device needs a copy"):
            tw.from_dlpack(Producer(x), device="cpu", copy=False)
        with pytest.raises(BufferError, match="the CPU needs a copy"):
            x.__dlpack__(dl_device=(1, 0), copy=False)
        with pytest.raises(BufferError, match=r"not exported to device \(2, 5\)"):
            x.__dlpack__(dl_device=(2, 5))
        with pytest.raises(BufferError, match=r"not exported to device \(2, 0\)"):
            tw.ones((3,)).__dlpack__(dl_device=(2, 0))

    def test_wrong_streams_are_told(self):
        x = there([1.0])
        with pytest.raises(BufferError, match="stream 0 does not say which"):
            x.__dlpack__(stream=0)
        with pytest.raises(TypeError, match="stream must be a whole number or None"):
            x.__dlpack__(stream="first")

    def test_gradients_are_not_shared(self):
        x = tw.ones((3,), device="cuda", requires_grad=True)
        with pytest.raises(RuntimeError, match=r"requires grad; use detach\(\)"):
            x.__dlpack__()
        with pytest.raises(RuntimeError, match=r"requires grad; use detach\(\)"):
            _ = x.__cuda_array_interface__

    def test_blocks_that_are_lent_stay_in_their_place(self):
        pool = tw.memory.Pool(3 * 65536, device="cuda", spill_dir=False)
        with pool:
            x = tw.full((128, 128), 5.0, device="cuda")
            y = tw.from_dlpack(Producer(x))
            kept = [tw.zeros((128, 128), device="cuda") for _ in range(5)]
            y += 1
            assert here(x)[0, 0] == 6
            assert len(kept) == 5


class TestCudaArrayInterface:
    @pytest.mark.parametrize(
        "dtype", ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "complex64"]
    )
    def test_round_trips(self, dtype, rng):
        x = (rng.standard_normal((4, 6)) * 3).astype(dtype)
        t = there(x)
        for view, expected in ((t, x), (t.T, x.T), (t[1:, ::2], x[1:, ::2])):
            told = view.__cuda_array_interface__
            assert told["version"] == 3
            assert told["typestr"] == x.dtype.str
            assert told["shape"] == expected.shape
            assert (told["strides"] is None) == view.is_contiguous
            back = tw.asarray(Array(view))
            assert (back.device, back.dtype.name) == ("cuda:0", dtype)
            np.testing.assert_array_equal(here(back), expected)

    def test_memory_is_shared(self):
        x = there(np.arange(3.0))
        y = tw.asarray(Array(x))
        y *= 2
        assert x.tolist() == [0, 2, 4]
        address, read_only = x.__cuda_array_interface__["data"]
        assert not read_only
        fixed = tw.asarray(Array(x, data=(address, True)))
        with pytest.raises(ValueError, match="read-only"):
            fixed += 1
        assert tw.asarray(Array(x), device="cpu").tolist() == [0, 2, 4]
        assert tw.asarray(Array(x), dtype=tw.float32).dtype == tw.float32

    @emulated_alone
    def test_the_producers_stream_is_waited_for(self, driver):
        x = tw.zeros((1000,), device="cuda")
        tw.cuda.synchronize()
        stream = driver.stream()
        address = x.__cuda_array_interface__["data"][0]
        driver.write(address, [4.0] * 1000, stream)
        assert tw.asarray(Array(x, stream=None)).sum().item() == 0
        assert tw.asarray(Array(x, stream=stream)).sum().item() == 4000
        assert x.__cuda_array_interface__["stream"] == tw.cuda.current_stream().cuda_stream

    def test_the_array_lives_as_long_as_the_tensor(self):
        array = Array(there(np.arange(3.0)))
        y = tw.asarray(array)
        del array
        tw.zeros((3,), dtype=tw.float64, device="cuda")
        assert y.tolist() == [0, 1, 2]

    def test_what_cannot_be_told_or_read(self):
        assert not hasattr(tw.ones((3,)), "__cuda_array_interface__")
        narrow = tw.ones((3,), dtype=tw.bfloat16, device="cuda")
        with pytest.raises(AttributeError, match="bfloat16 has no type string; use DLPack"):
            _ = narrow.__cuda_array_interface__
        x = there(np.arange(3.0))
        with pytest.raises(TypeError, match="no dtype for the type string '>f8'"):
            tw.asarray(Array(x, typestr=">f8"))
        with pytest.raises(BufferError, match="masked GPU arrays"):
            tw.asarray(Array(x, mask=Array(x)))
        with pytest.raises(BufferError, match="strides are not whole elements"):
            tw.asarray(Array(x, strides=(3,)))
        own = np.arange(3.0)
        with pytest.raises(BufferError, match="is not a GPU's memory"):
            tw.asarray(Array(x, data=(own.ctypes.data, False)))
        empty = there(np.zeros((0, 3)))
        assert empty.__cuda_array_interface__["data"] == (0, False)
        assert tw.asarray(Array(empty)).shape == (0, 3)
