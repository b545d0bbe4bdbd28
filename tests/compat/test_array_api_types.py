"""The Array API's data types: promotion, casts, limits, the default type, inspection."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cases.array_api import DTYPES, MISSING

import tilewright as tw

PROMOTIONS = """int8 int16 int16; int8 int64 int64; uint8 uint32 uint32; int8 uint8 int16
    int16 uint8 int16; int32 uint16 int32; int8 uint32 int64; int64 uint32 int64; uint8 int64 int64
    float32 float64 float64; float32 complex64 complex64; float64 complex64 complex128
    complex64 complex128 complex128; float32 complex128 complex128; uint64 uint8 uint64
    bool bool bool"""


def test_result_type() -> None:
    for row in PROMOTIONS.replace("\n", ";").split(";"):
        a, b, expected = row.split()
        for p, q in ((a, b), (b, a)):
            left, right = getattr(tw, p), getattr(tw, q)
            assert str(tw.result_type(left, right)) == expected
            assert str(tw.result_type(tw.ones((2,), dtype=left), right)) == expected
            if expected != "bool":
                y = tw.ones((2,), dtype=left) + tw.ones((2,), dtype=right)
                assert str(y.dtype) == expected
    assert tw.result_type(tw.int8, 1) == tw.int8
    assert tw.result_type(tw.float64, 1, 2.0) == tw.float64
    assert tw.result_type(tw.float32, 1j) == tw.complex64


def test_can_cast() -> None:
    for row in PROMOTIONS.replace("\n", ";").split(";"):
        a, b, both = (getattr(tw, name) for name in row.split())
        assert tw.can_cast(a, both)
        assert tw.can_cast(tw.ones((1,), dtype=b), both)
        assert tw.can_cast(a, b) == (both == b)
    assert not tw.can_cast(tw.float64, tw.complex64)
    assert tw.can_cast(tw.float64, tw.complex128)
    assert not tw.can_cast(tw.complex128, tw.complex64)
    assert not tw.can_cast(tw.complex64, tw.float32)
    assert not tw.can_cast(tw.int64, tw.uint64)
    assert not tw.can_cast(tw.uint64, tw.int64)
    assert not tw.can_cast(tw.float32, tw.int64)
    assert tw.can_cast(tw.bool, tw.int8)
    assert tw.can_cast("float16", tw.complex64)
    with pytest.raises(TypeError, match="can_cast: expected a dtype or a tensor, got 'text'"):
        tw.can_cast("text", tw.int8)


KINDS = {
    "bool": "bool",
    "signed integer": "int8 int16 int32 int64",
    "unsigned integer": "uint8 uint16 uint32 uint64",
    "integral": "int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "real floating": "float16 bfloat16 float32 float64",
    "complex floating": "complex64 complex128",
}


def test_isdtype() -> None:
    every = [getattr(tw, n) for n in (*DTYPES, "float16", "bfloat16") if n not in MISSING]
    for dtype in every:
        for kind, names in KINDS.items():
            assert tw.isdtype(dtype, kind) is (dtype.name in names.split())
        assert tw.isdtype(dtype, "numeric") is (dtype != tw.bool)
        assert tw.isdtype(dtype, dtype) is True
        assert tw.isdtype(dtype, (tw.int8, "real floating", "bool")) is (
            dtype.name in ("int8", "bool", *KINDS["real floating"].split())
        )
        assert tw.isdtype(dtype, ()) is False
    assert tw.isdtype(dtype=tw.int8, kind="integral")
    with pytest.raises(ValueError, match="isdtype: no kind 'integer'; choose from 'bool'"):
        tw.isdtype(tw.int8, "integer")
    with pytest.raises(ValueError, match="isdtype: no kind 3"):
        tw.isdtype(tw.int8, ("integral", 3))
    with pytest.raises(TypeError, match="isdtype: dtype must be a dtype, got 'int8'"):
        tw.isdtype("int8", "integral")


def test_finfo() -> None:
    for name in ("float16", "float32", "float64"):
        expected = np.finfo(name)
        for given in (getattr(tw, name), name, tw.ones((1,), dtype=name)):
            found = tw.finfo(given)
            for fact in ("bits", "eps", "max", "min", "smallest_normal", "tiny"):
                assert getattr(found, fact) == float(getattr(expected, fact)), (name, fact)
                assert type(getattr(found, fact)) is (int if fact == "bits" else float)
            assert found.dtype == getattr(tw, name)
    half = tw.finfo(tw.bfloat16)
    assert (half.bits, half.eps, half.smallest_normal) == (16, 2.0**-7, 2.0**-126)
    assert tw.asarray([half.max]).astype(tw.bfloat16).item() == half.max
    assert tw.finfo(tw.complex64) == tw.finfo(tw.float32)
    assert tw.finfo(tw.complex64).dtype == tw.float32
    assert tw.finfo(tw.complex128) == tw.finfo(tw.float64)
    for wrong in (tw.int32, tw.bool, "text", None):
        with pytest.raises(TypeError, match="finfo: "):
            tw.finfo(wrong)


def test_iinfo() -> None:
    for name in KINDS["integral"].split():
        expected = np.iinfo(name)
        found = tw.iinfo(getattr(tw, name))
        assert (found.bits, found.max, found.min) == (expected.bits, expected.max, expected.min)
        assert found.dtype == getattr(tw, name)
        assert tw.iinfo(tw.ones((1,), dtype=name)) == found
    for wrong in (tw.float32, tw.bool, "text", None):
        with pytest.raises(TypeError, match="iinfo: "):
            tw.iinfo(wrong)


def test_astype() -> None:
    x = tw.asarray([1.0, 2.0])
    assert tw.astype(x, tw.float32, copy=False) is x
    assert tw.astype(x, tw.float32, copy=False, device="cpu") is x
    y = tw.astype(x, tw.float32)
    y[0] = 5
    assert x.tolist() == [1, 2]
    assert tw.astype(x, tw.int8, device="null").device == "null"
    assert tw.astype(x, tw.int8, device="null").dtype == tw.int8
    assert tw.astype(tw.ones((2,), device="null"), tw.float32, device="cpu").device == "cpu"
    with pytest.raises(ValueError, match="astype: no device 'gpu'"):
        tw.astype(x, tw.int8, device="gpu")
    with pytest.raises(TypeError, match="imaginary part"):
        tw.astype(tw.asarray([1j]), tw.float32)
    assert tw.astype(tw.asarray([0.0, math.nan, -2.0]), tw.bool).tolist() == [False, True, True]


def test_asarray() -> None:
    x = tw.asarray([1.0, 2.0])
    assert tw.asarray(x) is x
    assert tw.asarray(x, copy=False) is x
    assert tw.asarray(x, copy=False, device="cpu", dtype=tw.float32) is x
    for y in (tw.asarray(x, copy=True), tw.asarray(x, dtype=tw.float64)):
        y[0] = 9
    array = np.array([1.0, 2.0])
    tw.asarray(array)[0] = 5
    tw.asarray(array, copy=False)[1] = 6
    tw.asarray(array, copy=True)[1] = 7
    assert (x.tolist(), array.tolist()) == ([1, 2], [5, 6])
    for source, options in (
        ([1.0], {}),
        (1.0, {}),
        (x, {"dtype": tw.float64}),
        (array, {"dtype": tw.float32}),
        (x, {"device": "null"}),
    ):
        with pytest.raises(ValueError, match=r"asarray: .*copy=False was given"):
            tw.asarray(source, copy=False, **options)
    assert tw.asarray(x, device="null").device == "null"
    assert tw.asarray(tw.ones((2,), device="null")).device == "null"
    with pytest.raises(ValueError, match="asarray: no device 'gpu'"):
        tw.asarray(x, device="gpu")
    for wrong in (1, "yes"):
        with pytest.raises(TypeError, match="asarray: copy must be"):
            tw.asarray(x, copy=wrong)
    kinds = ((True, "bool"), (1, "int64"), (1.0, "float32"), (1j, "complex64"))
    for value, dtype in kinds:
        assert str(tw.asarray(value).dtype) == str(tw.asarray([[value]]).dtype) == dtype
    assert tw.asarray([True, 1]).dtype == tw.int64
    assert tw.asarray([1, 1.5]).dtype == tw.float32
    assert tw.asarray([1, 1.5, 1j]).dtype == tw.complex64
    assert tw.asarray([tw.asarray(1.0), 2]).tolist() == [1, 2]


# ---- what the library says of itself ----


def test_namespace_info() -> None:
    info = tw.__array_namespace_info__()
    found = info.capabilities()
    assert found == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 32,
    }
    tw.ones((1,) * found["max dimensions"])
    with pytest.raises(ValueError, match="at most 32 dimensions"):
        tw.ones((1,) * (found["max dimensions"] + 1))
    assert info.default_device() == "cpu" == tw.ones((1,)).device
    assert info.devices()[0] == "cpu"
    assert all(name.startswith("cuda:") for name in info.devices()[1:])
    for device in info.devices():
        assert tw.zeros((2,), device=device).device == device
    assert info.default_dtypes() == info.default_dtypes(device="cpu")
    assert info.default_dtypes() == {
        "real floating": tw.ones(()).dtype,
        "complex floating": tw.asarray(1j).dtype,
        "integral": tw.asarray(1).dtype,
        "indexing": tw.argmax(tw.ones((1,))).dtype,
    }
    expected = {name: getattr(tw, name) for name in DTYPES if name not in MISSING}
    assert info.dtypes() == info.dtypes(device="cpu") == expected
    for kind, names in KINDS.items():
        standard = {n: expected[n] for n in names.split() if n in expected}
        assert info.dtypes(kind=kind) == standard
    assert set(info.dtypes(kind="numeric")) == set(expected) - {"bool"}
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}
    assert info.dtypes(kind=()) == {}
    with pytest.raises(ValueError, match="dtypes: no kind 'integer'"):
        info.dtypes(kind="integer")
    for function in (info.dtypes, info.default_dtypes):
        with pytest.raises(ValueError, match="no device 'gpu'"):
            function(device="gpu")


# ---- the default type ----


@pytest.fixture
def in_float64() -> Iterator[None]:
    tw.set_default_dtype(tw.float64)
    yield
    tw.set_default_dtype(tw.float32)


MADE: dict[str, Callable[[], Any]] = {
    "asarray": lambda: tw.asarray([1.5]),
    "tensor": lambda: tw.tensor(0.5),
    "zeros": lambda: tw.zeros((2,)),
    "ones": lambda: tw.ones(2),
    "empty": lambda: tw.empty((2,)),
    "full": lambda: tw.full((2,), 1.5),
    "eye": lambda: tw.eye(2),
    "arange": lambda: tw.arange(0.0, 1.0, 0.25),
    "linspace": lambda: tw.linspace(0, 1, 3),
    "rand": lambda: tw.rand(3),
    "randn": lambda: tw.randn(3),
    "uniform": lambda: tw.uniform(0, 1, (3,)),
    "normal": lambda: tw.normal(0, 1, (3,)),
    "bernoulli": lambda: tw.bernoulli(0.5, (3,)),
    "sqrt of integers": lambda: tw.sqrt(tw.asarray([2, 3])),
    "a number beside integers": lambda: tw.asarray([2, 3]) * 1.1,
    "softmax of integers": lambda: tw.softmax(tw.asarray([2, 3])),
    "mean of bool": lambda: tw.asarray([True, False]) * 0.1,
    "float": lambda: tw.asarray([1], dtype=float),
    "result_type": lambda: tw.ones((2,), dtype=tw.result_type(1, 2.5)),
    "linear": lambda: tw.nn.Linear(2, 3).weight,
    "convolution": lambda: tw.nn.Conv2d(2, 3, 1).bias,
    "norm": lambda: tw.nn.BatchNorm1d(3).running_mean,
    "embedding": lambda: tw.nn.Embedding(3, 2).weight,
    "lstm": lambda: tw.nn.LSTM(2, 3).weight_ih_l0,
}


@pytest.mark.parametrize("name", MADE)
def test_the_default_type(name: str, in_float64: None) -> None:
    assert MADE[name]().dtype == tw.float64
    tw.set_default_dtype(tw.float32)
    assert MADE[name]().dtype == tw.float32


def test_the_default_type_decides_no_more_than_that(in_float64: None) -> None:
    assert tw.get_default_dtype() == tw.float64
    assert tw.__array_namespace_info__().default_dtypes()["real floating"] == tw.float64
    assert tw.asarray([0.1]).item() == 0.1
    assert (tw.sqrt(tw.asarray([2])).item(), (tw.asarray([1]) / 3).item()) == (2**0.5, 1 / 3)
    np.testing.assert_allclose(
        tw.softmax(tw.asarray([1, 2])).numpy(), np.exp([1, 2]) / np.exp([1, 2]).sum(), rtol=1e-14
    )
    x = tw.ones((2,), dtype=tw.float32)
    assert (x * 2.5).dtype == tw.float32
    assert tw.asarray(np.ones(2, np.float32)).dtype == tw.float32
    assert tw.ones_like(x).dtype == tw.float32
    assert tw.asarray([1]).dtype == tw.int64


def test_the_default_type_is_a_wide_floating_one() -> None:
    assert tw.get_default_dtype() == tw.float32
    for wrong in (tw.int32, tw.float16, tw.complex64):
        with pytest.raises(TypeError, match="set_default_dtype: dtype must be float32 or float64"):
            tw.set_default_dtype(wrong)
    assert tw.get_default_dtype() == tw.float32
