"""Element types: the Array API's promotion table, weak numbers, overflow, and conversions."""

from __future__ import annotations

import numpy as np
import pytest
from cases import arrays
from cases.arrays import ALL, FLOATS, INTEGERS, SIGNED
from subcases import each

import tilewright as tw

# Array API standard 2024.12, section 'Type promotion rules'; rows and columns in this order.
ORDER = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
I8, I16, I32, I64, U8, U16, U32, U64 = ORDER
TABLE = {
    I8: (I8, I16, I32, I64, I16, I32, I64, None),
    I16: (I16, I16, I32, I64, I16, I32, I64, None),
    I32: (I32, I32, I32, I64, I32, I32, I64, None),
    I64: (I64, I64, I64, I64, I64, I64, I64, None),
    U8: (I16, I16, I32, I64, U8, U16, U32, U64),
    U16: (I32, I32, I32, I64, U16, U16, U32, U64),
    U32: (I64, I64, I64, I64, U32, U32, U32, U64),
    U64: (None, None, None, None, U64, U64, U64, U64),
}
# bfloat16 and float16 are not in the standard: with each other they need float32 to lose nothing.
FLOATING = {
    ("float32", "float64"): "float64",
    ("float16", "float32"): "float32",
    ("float16", "float64"): "float64",
    ("bfloat16", "float32"): "float32",
    ("bfloat16", "float64"): "float64",
    ("bfloat16", "float16"): "float32",
    ("complex64", "float32"): "complex64",
    ("complex64", "float16"): "complex64",
    ("bfloat16", "complex64"): "complex64",
    ("complex64", "float64"): "complex128",
    ("complex64", "complex128"): "complex128",
    **{
        (name, "complex128"): "complex128" for name in ("float16", "bfloat16", "float32", "float64")
    },
}


def dtype(name: str) -> tw.dtype:
    return getattr(tw, name)


def promoted(a: str, b: str) -> str | None:
    if a == b:
        return a
    if a in TABLE and b in TABLE:
        return TABLE[a][ORDER.index(b)]
    if "bool" in (a, b):
        return b if a == "bool" else a
    if (
        a in INTEGERS or b in INTEGERS
    ):  # undefined in the standard: the floating type, as in PyTorch
        return b if a in INTEGERS else a
    return FLOATING.get((a, b)) or FLOATING[b, a]


@each("a", ALL)
@each("b", ALL)
def test_promotion(a: str, b: str) -> None:
    x, y = tw.ones((2,), dtype=dtype(a)), tw.ones((2,), dtype=dtype(b))
    expected = promoted(a, b)
    if expected is None:
        for call in (
            lambda: x + y,
            lambda: tw.result_type(x, y),
            lambda: tw.concat([x, y]),
            lambda: x < y,
        ):
            with pytest.raises(TypeError, match="no common type for uint64"):
                call()
        return
    assert str((x + y).dtype) == expected
    assert str(tw.result_type(x, y)) == expected
    assert str(tw.result_type(x.dtype, y.dtype)) == expected
    assert str(tw.concat([x, y]).dtype) == expected
    assert str(tw.where(tw.asarray(True), x, y).dtype) == expected
    assert (x == y).dtype == tw.bool
    if expected != "bool":
        assert str(tw.matmul(x, y).dtype) == expected


def test_zero_dimensional_tensors_take_part_like_others() -> None:
    assert (tw.ones((3,), dtype=tw.float32) + tw.ones((), dtype=tw.float64)).dtype == tw.float64
    assert (tw.ones((3,), dtype=tw.int8) + tw.ones((), dtype=tw.int64)).dtype == tw.int64


# ---- weak numbers ----


@pytest.mark.parametrize("name", ALL)
def test_numbers_are_weak(name: str) -> None:
    x = tw.ones((2,), dtype=dtype(name))
    whole = "int64" if name == "bool" else name
    real = "float32" if name == "bool" or name in INTEGERS else name
    imaginary = "complex128" if name in ("float64", "complex128") else "complex64"
    for number, expected in ((True, name), (2, whole), (0.5, real), (1j, imaginary)):
        for y in (x + number, number + x, x * number):
            assert str(y.dtype) == expected, (name, number)
        assert str(tw.result_type(x, number)) == expected
    if name != "bool":
        assert str((x - 1).dtype) == name
        assert str((1 - x).dtype) == name


@pytest.mark.parametrize("name", INTEGERS)
def test_numbers_that_do_not_fit_overflow(name: str) -> None:
    info = np.iinfo(name)
    x = tw.ones((2,), dtype=dtype(name))
    before = x.tolist()
    for number in (int(info.max) + 1, int(info.min) - 1, 2**70, -(2**70)):
        for call in (
            lambda n=number: x + n,
            lambda n=number: n * x,
            lambda n=number: x.fill_(n),
            lambda n=number: x.__setitem__(0, n),
            lambda n=number: x.__iadd__(n),
            lambda n=number: tw.full((2,), n, dtype=x.dtype),
            lambda n=number: tw.asarray([n], dtype=x.dtype),
            lambda n=number: tw.where(x > 0, x, n),
        ):
            with pytest.raises(OverflowError):
                call()
    assert x.tolist() == before
    for number in (int(info.max), int(info.min)):
        assert tw.full((1,), number, dtype=x.dtype).tolist() == [number]
        assert tw.asarray([number], dtype=x.dtype).tolist() == [number]
        assert (tw.zeros((1,), dtype=x.dtype) + number).tolist() == [number]


@pytest.mark.parametrize("name", INTEGERS)
def test_arithmetic_wraps_around(name: str) -> None:
    info = np.iinfo(name)
    top = tw.asarray(np.array([info.max], name))
    low = tw.asarray(np.array([info.min], name))
    assert (top + 1).tolist() == [info.min]
    assert (low - 1).tolist() == [info.max]
    assert (top * 2).tolist() == [-2 if name in SIGNED else info.max - 1]
    assert (-low).tolist() == [info.min]


@pytest.mark.parametrize("name", INTEGERS)
def test_division_by_zero_of_whole_numbers_gives_zero(name: str) -> None:
    x = tw.asarray(np.array([7, 0], name))
    assert (x // 0).tolist() == [0, 0]
    assert (x % 0).tolist() == [0, 0]


@pytest.mark.parametrize("name", SIGNED)
def test_division_rounds_like_python(name: str) -> None:
    a = np.arange(-7, 8).astype(name)
    for divisor in (3, -3, 1, -1):
        x = tw.asarray(a)
        assert (x // divisor).tolist() == [int(v) // divisor for v in a]
        assert (x % divisor).tolist() == [int(v) % divisor for v in a]


def test_true_division_of_whole_numbers() -> None:
    y = tw.asarray([1, 2, 3]) / 2
    assert y.dtype == tw.float32
    assert y.tolist() == [0.5, 1.0, 1.5]


def test_in_place_never_changes_the_dtype() -> None:
    x = tw.ones((2,), dtype=tw.int32)
    with pytest.raises(TypeError, match="float32 result cannot be written in place into int32"):
        x += 0.5
    with pytest.raises(TypeError, match="cannot be written in place"):
        x /= 2
    assert x.tolist() == [1, 1]
    h = tw.ones((2,), dtype=tw.float16)
    h += tw.ones((2,), dtype=tw.float32)
    assert h.dtype == tw.float16


# ---- conversions ----


def values_of(name: str) -> np.ndarray:
    """Values at the edges of the type that every other type can be asked to take."""
    if name == "bool":
        return np.array([False, True])
    if name in INTEGERS:
        info = np.iinfo(name)
        return np.array(
            [0, 1, 2, 3, 100, 127, info.min, info.max, info.max - 1, info.max // 2 + 1], name
        )
    x = [0, -0.0, 1, -1, 0.5, 2.5, -3.75, 100.25, 127, 1e-3, 1 / 3, 2049.5, 65504]
    if name in arrays.COMPLEX:
        return np.array([0, 1, -1j, 2 + 3j, 0.5, 1e-40 + 1e30j], name)
    odd = [
        np.inf,
        -np.inf,
        np.nan,
        arrays.smallest(name),
        arrays.largest(name),
        -arrays.largest(name),
    ]
    return arrays.rounded(np.array(x + odd), name)


def converted(x: np.ndarray, source: str, target: str) -> np.ndarray:
    """NumPy's conversion, and the rounding to bfloat16 by formula (from the exact value)."""
    if target != "bfloat16":
        with np.errstate(all="ignore"):
            return x.astype(target)
    if x.dtype.kind in "iub" or source in ("float16", "bfloat16", "float32"):
        wide = np.asarray(x, object if x.dtype.kind in "iu" else np.float64)
    else:
        wide = x.astype(np.float64)
    return np.array([nearest_bfloat16(v) for v in wide.ravel()], np.float32)


def nearest_bfloat16(value: float) -> float:
    """Among all bfloat16 numbers, by comparison: no double rounding."""
    if not np.isfinite(np.float64(value)) or value == 0:
        return float(value)
    with np.errstate(over="ignore"):
        near = float(arrays.to_bfloat16(np.float32(value)))
    candidates = [near]
    if np.isfinite(near):
        step = int(np.float32(near).view(np.uint32))
        beside = [np.uint32((step + d) % 2**32) for d in (-0x10000, 0x10000)]
        candidates += [
            float(bits.view(np.float32)) for bits in beside if not np.isnan(bits.view(np.float32))
        ]
    if not np.isfinite(near):
        return near
    finite = [c for c in candidates if np.isfinite(c)]
    return min(
        finite,
        key=lambda c: (abs(int(c) - value if isinstance(value, int) else c - value), is_odd(c)),
    )


def is_odd(value: float) -> bool:
    return bool(int(np.float32(value).view(np.uint32)) >> 16 & 1)


def representable(x: np.ndarray, target: str) -> np.ndarray:
    """Where a conversion to a whole number is defined."""
    if target not in INTEGERS or x.dtype.kind not in "fc":
        return np.ones(x.shape, bool)
    info = np.iinfo(target)
    real = np.trunc(x.real.astype(np.longdouble))
    with np.errstate(invalid="ignore"):
        return np.isfinite(real) & (real >= info.min) & (real <= info.max)


@each("source", ALL)
@each("target", ALL)
def test_conversions(source: str, target: str, isa: str) -> None:
    if source in arrays.COMPLEX and target not in (*arrays.COMPLEX, "bool"):
        pytest.skip("the standard has no conversion from complex to real numbers")
    x = np.resize(values_of(source), 83)  # beyond one vector, with a tail
    x = x[representable(x, target)]
    want = converted(x, source, target)
    t = arrays.tensor(x, source)
    y = tw.astype(t, dtype(target))
    assert str(y.dtype) == target
    np.testing.assert_array_equal(arrays.array(y), want)
    if want.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(arrays.array(y)), np.signbit(want))
    spaced = tw.full((x.size * 2,), 1, dtype=dtype(source))
    spaced[::2] = t
    np.testing.assert_array_equal(arrays.array(tw.astype(spaced[::2], dtype(target))), want)
    np.testing.assert_array_equal(arrays.array(tw.astype(tw.flip(t), dtype(target))), want[::-1])


@pytest.mark.parametrize("source", [*arrays.HALVES, "float32", "float64"])
@pytest.mark.parametrize("target", [*INTEGERS, "bool"])
def test_numbers_out_of_range_become_the_same_everywhere(source: str, target: str, rng) -> None:
    """Unspecified numbers, but one for each: in vectors, in their rest, alone, spaced."""
    x = np.ldexp(rng.uniform(1, 2, 499), rng.integers(-3, 130, 499)) * rng.choice([-1, 1], 499)
    edges = [2.0**e + d for e in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1, 0, 1)]
    x = np.concatenate([x, edges, np.negative(edges), [np.nan, np.inf, -np.inf, -0.9]])
    with np.errstate(over="ignore"):
        t = tw.astype(tw.asarray(rng.permutation(x)), dtype(source))
    spaced = tw.zeros((2 * x.size,), dtype=dtype(source))
    spaced[::2] = t
    results = []
    for isa in tw.kernels.isas():
        with tw.kernels.use(isa=isa):
            for first in (0, 1, 13):
                whole = tw.astype(t[first:], dtype(target)).tolist()
                results.append(tw.astype(t[:first], dtype(target)).tolist() + whole)
            results.append(tw.astype(spaced[::2], dtype(target)).tolist())
            results.append([tw.astype(t[i], dtype(target)).item() for i in range(x.size)])
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16", "int32"])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_truncation_to_few_bits_over_the_whole_range(source: str, target: str, isa: str) -> None:
    info = np.iinfo(target)
    inside = np.linspace(info.min, info.max, 4001)
    x = np.concatenate([inside, np.nextafter(np.round(inside), 0), [-0.99, 0.99, -0.0]])
    x = x.astype(source)
    x = x[representable(x, target)]
    got = arrays.array(tw.astype(tw.asarray(x), dtype(target)))
    np.testing.assert_array_equal(got, x.astype(target))


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_rounding_to_16_bits_of_any_number(source: str, target: str, isa: str, rng) -> None:
    """Bit patterns near every boundary between two neighbours, where double rounding would show."""
    high = rng.integers(0, 2**16, 4000, np.uint16).view(np.float16)
    if target == "bfloat16":
        high = (rng.integers(0, 2**16, 4000, np.uint32) << np.uint32(16)).view(np.float32)
    high = high[np.isfinite(high)].astype(np.float64)
    half = high * (1 + arrays.eps(target) / 2)
    x = np.concatenate([high, half, np.nextafter(half, np.inf), np.nextafter(half, -np.inf)])
    with np.errstate(over="ignore"):
        x = x.astype(source)
    want = converted(x[np.isfinite(x)], source, target)
    got = arrays.array(tw.astype(arrays.tensor(x[np.isfinite(x)], source), dtype(target)))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", arrays.HALVES)
def test_every_16_bit_number_survives_a_round_trip(name: str, isa: str) -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    x = (
        bits.view(np.float16)
        if name == "float16"
        else (bits.astype(np.uint32) << 16).view(np.float32)
    )
    for wide in (tw.float32, tw.float64):
        y = tw.astype(tw.astype(arrays.tensor(x, name), wide), dtype(name))
        np.testing.assert_array_equal(arrays.array(y), x)


def test_default_dtypes() -> None:
    assert tw.asarray([2**63]).dtype == tw.uint64
    assert tw.asarray([2**63, 1.0]).tolist() == [2.0**63, 1.0]
    with pytest.raises(OverflowError, match="-1 does not fit uint64"):
        tw.asarray([2**63, -1])
    assert tw.asarray([1, 2]).dtype == tw.int64
    assert tw.asarray([1.0, 2]).dtype == tw.float32
    assert tw.asarray([True, False]).dtype == tw.bool
    assert tw.asarray([1j]).dtype == tw.complex64
    assert tw.asarray([True, 2]).dtype == tw.int64
    assert tw.zeros((2,)).dtype == tw.float32
    assert tw.arange(3).dtype == tw.int64
    assert tw.arange(3.0).dtype == tw.float32


@pytest.mark.parametrize("name", ALL)
def test_dtype_objects(name: str) -> None:
    chosen = dtype(name)
    assert str(chosen) == name == chosen.name
    assert repr(chosen) == f"tilewright.{name}"
    assert chosen == tw.ones((1,), dtype=name).dtype
    assert chosen != dtype("int8" if name != "int8" else "int16")
    assert chosen.itemsize == (2 if name == "bfloat16" else np.dtype(name).itemsize)
    assert len({chosen, tw.ones((1,), dtype=chosen).dtype}) == 1


def test_unknown_dtypes_are_refused() -> None:
    for wrong in ("float128", "int", object, 3, np.dtype("U3"), np.dtype("float128")):
        with pytest.raises(TypeError):
            tw.zeros((2,), dtype=wrong)


def test_only_floating_tensors_require_grad() -> None:
    for name in ("bool", *INTEGERS):
        with pytest.raises(
            TypeError, match="only floating-point and complex tensors can require grad"
        ):
            tw.ones((2,), dtype=dtype(name)).requires_grad_()
    for name in FLOATS:
        assert tw.ones((2,), dtype=dtype(name)).requires_grad_().requires_grad


def test_gradients_pass_conversions(rng) -> None:
    x = tw.asarray(rng.normal(size=5), copy=True).requires_grad_()
    for name in FLOATS:
        (g,) = tw.grad((tw.astype(x, dtype(name)) * 2).sum(dtype=tw.float64), x)
        assert g.dtype == tw.float64
        assert g.tolist() == [2.0] * 5
    assert not tw.astype(x, tw.int32).requires_grad
