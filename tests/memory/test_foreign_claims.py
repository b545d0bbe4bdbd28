"""What other libraries say of their memory: what cannot be is refused by name, nothing is lost."""

import ctypes
import gc
import subprocess
import sys

import numpy as np
import pytest

import tilewright as tw


class View(ctypes.Structure):
    """DLTensor of DLPack."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_uint64),
        ("strides", ctypes.c_uint64),
        ("byte_offset", ctypes.c_uint64),
    )


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("view", View), ("context", ctypes.c_void_p), ("deleter", DELETER))


class ManagedVersioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("view", View),
    )


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
name_of_capsule = ctypes.pythonapi.PyCapsule_GetName
name_of_capsule.restype, name_of_capsule.argtypes = ctypes.c_char_p, [ctypes.py_object]


class Producer:
    """Six float32 in two rows, or what a test says of them."""

    def __init__(self, versioned=True, **claims):
        self.memory = np.arange(6, dtype=np.float32)
        self.deleted = 0
        self.extents = (ctypes.c_int64 * 40)(*claims.pop("shape", (2, 3)))
        self.steps = (ctypes.c_int64 * 40)(*claims.pop("strides", (3, 1)))
        self.managed = ManagedVersioned() if versioned else Managed()
        self.managed.deleter = self.deleter = DELETER(self.delete)
        view = self.managed.view
        view.data, view.device_type, view.ndim = self.memory.ctypes.data, 1, 2
        view.code, view.bits, view.lanes = 2, 32, 1
        view.shape, view.strides = map(ctypes.addressof, (self.extents, self.steps))
        if versioned:
            self.managed.major = 1
        for name, value in claims.items():
            own = name in dict(type(self.managed)._fields_)
            setattr(self.managed if own else view, name, value)
        self.name = b"dltensor_versioned" if versioned else b"dltensor"
        self.capsule = new_capsule(ctypes.addressof(self.managed), self.name, None)

    def delete(self, _):
        self.deleted += 1

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


LIES = [
    ({"ndim": -1}, r"ndim -1, which is negative"),
    ({"ndim": -(2**31)}, r"ndim -2147483648"),
    ({"shape": (-2, 3)}, r"shape \(-2, 3\), which has a negative extent"),
    ({"shape": (2, -(2**63))}, r"which has a negative extent"),
    ({"shape": (0, -1)}, r"which has a negative extent"),
    ({"shape": (2**62, 2**62)}, r"which has more elements than 64 bits can count"),
    ({"shape": (2**62, 2**62), "strides": (0, 0)}, r"which has more elements than 64 bits"),
    ({"shape": (2**62, 2**62, 0), "ndim": 3}, r"which has more elements than 64 bits"),
    ({"shape": (2**61, 1)}, r"lead out of memory"),
    ({"shape": 0}, r"ndim 2, but has no shape"),
    ({"strides": (2**61, 1)}, r"strides \(2305843009213693952, 1\) .* lead out of memory"),
    ({"strides": (2**63 - 1, 1)}, r"lead out of memory"),
    ({"strides": (-(2**63), 1)}, r"lead out of memory"),
    ({"strides": (-(2**60), 1)}, r"lead out of memory"),
    ({"strides": (2**60, -(2**60))}, r"lead out of memory"),
    ({"data": 0}, r"shape \(2, 3\), but has no memory"),
    ({"data": 2**64 - 8}, r"lead out of memory"),
    ({"byte_offset": 2**64 - 4}, r"offset 18446744073709551612, which lead out of memory"),
    ({"byte_offset": 2**63}, r"lead out of memory"),
    ({"bits": 7}, r"no dtype for DLPack type code 2 with 7 bits and 1 lanes"),
    ({"bits": 255}, r"255 bits"),
    ({"lanes": 0}, r"0 lanes"),
    ({"lanes": 65535}, r"65535 lanes"),
    ({"code": 77}, r"type code 77"),
    ({"device_type": 77}, r"memory of device type 77"),
    ({"device_type": -1}, r"memory of device type -1"),
]


class TestDLPack:
    @pytest.mark.parametrize("versioned", [True, False])
    def test_what_is_true_is_believed(self, versioned):
        for claims, expected in (
            ({}, [[0, 1, 2], [3, 4, 5]]),
            ({"strides": (1, 2)}, [[0, 2, 4], [1, 3, 5]]),
            ({"shape": (0, 3), "data": 0}, []),
            ({"shape": (1, 3), "strides": (2**62, 1)}, [[0, 1, 2]]),
            ({"ndim": 0, "shape": 0}, 0),
            ({"byte_offset": 8, "shape": (2, 2), "strides": (2, 1)}, [[2, 3], [4, 5]]),
        ):
            shape = claims.pop("shape", (2, 3))
            producer = Producer(versioned, **claims, **({"shape": shape} if shape else {}))
            x = tw.from_dlpack(producer)
            assert x.tolist() == expected
            assert name_of_capsule(producer.capsule) == b"used_" + producer.name
            assert producer.deleted == 0
            del x
            gc.collect()
            assert producer.deleted == 1

    @pytest.mark.parametrize("versioned", [True, False])
    @pytest.mark.parametrize(("claims", "text"), LIES)
    def test_lies_are_named(self, claims, text, versioned):
        claims = dict(claims)
        none = claims.get("shape") == 0
        if none:
            del claims["shape"]
        producer = Producer(versioned, **claims)
        if none:
            producer.managed.view.shape = 0
        for read in (tw.from_dlpack, tw.asarray, lambda p: tw.from_dlpack(p, copy=True)):
            with pytest.raises(BufferError, match=text) as told:
                read(producer)
            assert isinstance(told.value, tw.Error)
        # The capsule is as it was: its memory is its own to give back.
        assert name_of_capsule(producer.capsule) == producer.name
        assert producer.deleted == 0

    @pytest.mark.parametrize("rank", [33, 64, 2**31 - 1])
    def test_more_axes_than_a_tensor_has(self, rank):
        producer = Producer(ndim=rank)
        with pytest.raises(
            ValueError, match=f"Producer: a tensor has at most 32 dimensions, got {rank}"
        ):
            tw.from_dlpack(producer)
        assert name_of_capsule(producer.capsule) == producer.name

    @pytest.mark.parametrize("major", [0, 2, 3, 2**32 - 1])
    def test_versions_that_are_not_known(self, major):
        producer = Producer(major=major, minor=7, ndim=-1)  # nothing else of it may be read
        with pytest.raises(BufferError, match=rf"Producer gave DLPack {major}\.7"):
            tw.from_dlpack(producer)
        assert name_of_capsule(producer.capsule) == producer.name

    def test_a_deleter_may_be_absent(self):
        producer = Producer(deleter=DELETER())
        assert tw.from_dlpack(producer).tolist() == [[0, 1, 2], [3, 4, 5]]

    def test_what_can_be_written(self):
        """As NumPy: a capsule from before 1.0 could not say that its memory is read-only."""
        for versioned, flags, writable in ((True, 0, True), (True, 1, False), (False, None, False)):
            producer = Producer(versioned, **({} if flags is None else {"flags": flags}))
            x = tw.from_dlpack(producer)
            if writable:
                x[0, 0] = 9.0
                assert producer.memory[0] == 9.0
            else:
                with pytest.raises(ValueError, match=r"read-only; copy\(\) it first"):
                    x[0, 0] = 9.0
                assert not np.asarray(x).flags.writeable
            copied = tw.from_dlpack(Producer(False), copy=True)
            copied[0, 0] = 9.0

    def test_a_capsule_is_used_once(self):
        producer = Producer()
        x = tw.from_dlpack(producer)
        with pytest.raises(TypeError, match="must give an unused capsule named 'dltensor'"):
            tw.from_dlpack(producer)
        assert x.tolist() == [[0, 1, 2], [3, 4, 5]]

    @pytest.mark.parametrize("given", [None, 3, "capsule", object(), (1, 2)])
    def test_what_is_no_capsule(self, given):
        producer = Producer()
        producer.capsule = given
        with pytest.raises(
            TypeError, match=r"Producer\.__dlpack__\(\) must give an unused capsule"
        ):
            tw.from_dlpack(producer)

    @pytest.mark.parametrize(
        "given", [None, 3, "cpu", (1,), (1, 0, 0), (1.0, 0), ("cpu", 0), [1, 0], (True, 0)]
    )
    def test_what_is_no_device(self, given):
        class Somewhere(Producer):
            def __dlpack_device__(self):
                return given

        for read in (tw.from_dlpack, tw.asarray):
            with pytest.raises(
                TypeError, match=r"__dlpack_device__\(\) must give \(device type, nu"
            ):
                read(Somewhere())

    def test_gpus_that_are_not_there(self):
        for number in (-1, 2**31 - 1, 2**70, -(2**70)):

            class OnGpu(Producer):
                def __dlpack_device__(self, number=number):
                    return (2, number)

            with pytest.raises((tw.Error, TypeError)):
                tw.from_dlpack(OnGpu())
            if abs(number) < 2**31:
                with pytest.raises(tw.Error):
                    tw.from_dlpack(Producer(device_type=2, device_id=number))

    def test_wrong_arguments(self):
        x = tw.ones((2,))
        for copy in ("yes", 1, 0, [], np.True_):
            with pytest.raises(TypeError, match="copy must be True"):
                tw.from_dlpack(Producer(), copy=copy)
            with pytest.raises(TypeError, match="copy must be True"):
                x.__dlpack__(copy=copy)
        for version in (1, "1.0", (1,), (1, 0, 0), ("1", 0), (1.5, 0)):
            with pytest.raises(TypeError, match=r"max_version must be \(major, minor\), got"):
                x.__dlpack__(max_version=version)
        for device in (1, "cpu", (1,), ("cpu", 0)):
            with pytest.raises(TypeError, match=r"dl_device must be \(device type, number\), got"):
                x.__dlpack__(dl_device=device)

    def test_claims_at_random(self, rng):
        """Either an error of ours or a tensor; what it shows is not looked at."""
        ends = [0, 1, -1, 2, 3, 2**31, 2**32, 2**47, 2**57, 2**61, 2**62, 2**63 - 1, -(2**63)]
        accepted = 0
        for _ in range(3000):
            claims = {
                "shape": tuple(int(rng.choice(ends)) for _ in range(2)),
                "strides": tuple(int(rng.choice(ends)) for _ in range(2)),
                "ndim": int(rng.integers(-2, 5)),
                "code": int(rng.choice([0, 1, 2, 4, 5])),  # bool's bytes are looked at
                "bits": int(rng.choice([8, 16, 32, 64, 128])),
                "byte_offset": int(rng.choice([0, 0, 4, 2**32, 2**63])),
            }
            kept = {name: claims[name] for name in claims if rng.random() < 0.5}
            producer = Producer(bool(rng.integers(2)), **kept)
            try:
                x = tw.from_dlpack(producer)
            except BufferError:
                continue
            accepted += 1
            assert min(x.shape, default=0) >= 0
            assert x.ndim == kept.get("ndim", 2)
            del x
            assert producer.deleted == 1
        assert accepted > 30


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="calls the C library's own")
@pytest.mark.parametrize("options", ["", "max_version=(1, 0)"])
def test_consumers_may_outlive_the_interpreter(options):
    """A deleter that is called once Python has ended does nothing."""
    place = "PyCapsule_GetPointer(capsule, name)"
    program = f"""
import ctypes, tilewright as tw
capsule = tw.ones((1000,)).__dlpack__({options})
name = b"dltensor_versioned" if "{options}" else b"dltensor"
api = ctypes.pythonapi
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
managed = api.{place}
used = b"used"
api.PyCapsule_SetName(capsule, used)
deleter = ctypes.c_void_p.from_address(managed + (16 if "{options}" else 56)).value
register = ctypes.CDLL(None).__cxa_atexit
register.argtypes = [ctypes.c_void_p] * 3
register(deleter, managed, None)
print("ends")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")


class Interface:
    """An array that says where its memory is by the CUDA array interface alone."""

    def __init__(self, **changes):
        told = {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3, **changes}
        self.__cuda_array_interface__ = {k: v for k, v in told.items() if v is not ...}


class TestCudaArrayInterface:
    """Seen before a GPU is asked for."""

    @pytest.mark.parametrize(
        ("changes", "error", "text"),
        [
            ({"shape": ...}, TypeError, "'shape' .* must be a tuple of ints, got None"),
            ({"shape": 3}, TypeError, "'shape' .* must be a tuple of ints, got 3"),
            ({"shape": (2.5,)}, TypeError, "'shape' .* must be a tuple of ints"),
            ({"shape": (2**64,)}, TypeError, "'shape' .* must be a tuple of ints"),
            ({"shape": (-2, 3)}, BufferError, "negative extent"),
            ({"shape": (2**62, 2**62)}, BufferError, "more elements than 64 bits can count"),
            ({"shape": (1,) * 33}, ValueError, "at most 32 dimensions"),
            ({"typestr": ...}, TypeError, "'typestr' .* must be a str, got None"),
            ({"typestr": 4}, TypeError, "'typestr' .* must be a str, got 4"),
            ({"typestr": ""}, TypeError, "no dtype for the type string ''"),
            ({"typestr": "\ud800"}, TypeError, "no dtype for the type string"),
            ({"typestr": "<M8[D]"}, TypeError, "no dtype for the type string"),
            ({"data": ...}, TypeError, r"'data' .* must be \(address, read-only\), got None"),
            ({"data": (4096,)}, TypeError, r"'data' .* must be \(address, read-only\)"),
            ({"data": 4096}, TypeError, r"'data' .* must be \(address, read-only\)"),
            ({"data": ("here", False)}, TypeError, "'data' .* must be"),
            ({"data": (-1, False)}, TypeError, "'data' .* must be"),
            ({"data": (2**64, False)}, TypeError, "'data' .* must be"),
            ({"data": (2**64 - 8, False)}, BufferError, "lead out of memory"),
            ({"data": (0, False)}, BufferError, "has no memory"),
            ({"strides": (12,)}, TypeError, "'strides' .* must be as long as the shape"),
            ({"strides": (12, 4, 4)}, TypeError, "'strides' .* must be as long as the shape"),
            ({"strides": "row"}, TypeError, "'strides' .* must be a tuple of ints"),
            ({"strides": (2**62, 4)}, BufferError, "lead out of memory"),
            ({"strides": (13, 4)}, BufferError, "strides are not whole elements"),
        ],
    )
    def test_lies_are_named(self, changes, error, text):
        with pytest.raises(error, match=text) as told:
            tw.asarray(Interface(**changes))
        assert isinstance(told.value, tw.Error)

    def test_what_is_no_dictionary(self):
        array = Interface()
        array.__cuda_array_interface__ = 5
        with pytest.raises(TypeError, match="of Interface must be a dict, got 5"):
            tw.asarray(array)


class TestOtherInterfaces:
    @pytest.mark.parametrize("given", [None, 3, "text", [1.0, 2.0], object()])
    def test_arrays_that_are_none(self, given):
        class Array:
            def __array__(self, *args, **options):
                return given

        for read in (tw.asarray, lambda x: tw.tensor([x])):
            with pytest.raises(TypeError, match=r"Array\.__array__\(\) must give an array, got"):
                read(Array())

    def test_numbers_of_other_libraries(self):
        class Number:
            shape, dtype, requires_grad = (), np.dtype("float32"), "perhaps"

            def __dlpack__(self, **options):
                raise AssertionError

            def item(self):
                return 2.0

        with pytest.raises(TypeError):
            tw.full((2,), Number())

    def test_texts_without_utf8(self):
        """Half of a pair of surrogates names nothing."""
        x, text = tw.ones((2,)), "\ud800"
        for call in (
            lambda: tw.zeros((2,), dtype=text),
            lambda: x.sum(**{text: 1}),
            lambda: tw.asarray([1], **{text: 1}),
            lambda: x.to(text),
            lambda: tw.result_type(text),
            lambda: tw.quantile(x, 0.5, interpolation=text),
            lambda: tw.nn.functional.pad(x, (1, 1), mode=text),
        ):
            with pytest.raises((TypeError, ValueError)):
                call()
