"""Arrays and tensors of all dtypes, and the distance between a result and its reference.

NumPy has no bfloat16: such arrays are float32 arrays of numbers that bfloat16 has.
"""

from __future__ import annotations

import numpy as np

import tilewright as tw

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
HALVES = ("float16", "bfloat16")
FLOATS = (*HALVES, "float32", "float64")
COMPLEX = ("complex64", "complex128")
ALL = ("bool", *INTEGERS, *FLOATS, *COMPLEX)

# Bits of the significand behind the point, smallest normal exponent, largest finite number.
_FORMATS = {
    "float16": (10, -14, 65504.0),
    "bfloat16": (7, -126, float(np.float32(3.3895314e38))),
    "float32": (23, -126, float(np.finfo(np.float32).max)),
    "float64": (52, -1022, float(np.finfo(np.float64).max)),
}
_FORMATS |= {"complex64": _FORMATS["float32"], "complex128": _FORMATS["float64"]}


def eps(dtype: str) -> float:
    return 2.0 ** -_FORMATS[dtype][0]


def largest(dtype: str) -> float:
    return _FORMATS[dtype][2]


def smallest(dtype: str) -> float:
    """Smallest positive denormal."""
    bits, exponent, _ = _FORMATS[dtype]
    return 2.0 ** (exponent - bits)


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """Rounds float32 numbers to the nearest of bfloat16, ties to even."""
    x = np.asarray(x, np.float32)
    bits = np.atleast_1d(x).view(np.uint32).astype(np.uint64)
    rounded = (
        (bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)
    ) << np.uint64(16)
    y = rounded.astype(np.uint32).view(np.float32).reshape(x.shape)
    return np.where(np.isnan(x), np.float32(np.nan), y)


def numpy_type(dtype: str) -> np.dtype:
    return np.dtype("float32" if dtype == "bfloat16" else dtype)


def rounded(x: object, dtype: str) -> np.ndarray:
    """`x` as an array of the numbers that `dtype` has."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        y = np.asarray(x).astype(numpy_type(dtype))
    return to_bfloat16(y) if dtype == "bfloat16" else y


def tensor(x: np.ndarray, dtype: str) -> tw.Tensor:
    y = tw.asarray(np.ascontiguousarray(x).reshape(x.shape), copy=True)
    return y if dtype == "bool" else tw.astype(y, getattr(tw, dtype))


def array(y: tw.Tensor) -> np.ndarray:
    """A copy of a tensor's values."""
    y = y.detach()
    return np.array(tw.astype(y, tw.float32) if y.dtype == tw.bfloat16 else y)


def widened(x: np.ndarray, dtype: str) -> np.ndarray:
    """What a reference computes with: exact for every dtype, and wider than the result's."""
    if dtype in FLOATS:
        return x.astype(np.longdouble if dtype == "float64" else np.float64)
    if dtype in UNSIGNED:
        return x.astype(np.uint64)
    if dtype in SIGNED:
        return x.astype(np.int64)
    if dtype in COMPLEX:
        return x.astype(np.complex128 if dtype == "complex64" else np.clongdouble)
    return x


def ulp(x: np.ndarray, dtype: str) -> np.ndarray:
    """Distance between neighbours in `dtype` at |x|."""
    bits, lowest, _ = _FORMATS[dtype]
    _, exponent = np.frexp(np.abs(x))
    return np.ldexp(np.ones_like(x), np.maximum(exponent - 1, lowest) - bits)


def error_in_ulps(got: np.ndarray, expected: np.ndarray, scale: np.ndarray, dtype: str) -> float:
    """The largest of |got - expected| / ulp(scale); infinite where a NaN, an infinity or its sign
    differs. A result beyond the largest number may be that or infinite."""
    if got.dtype.kind == "c":
        expected, scale = np.asarray(expected, np.clongdouble), np.abs(scale)
        return max(
            error_in_ulps(got.real, expected.real, scale, dtype),
            error_in_ulps(got.imag, expected.imag, scale, dtype),
        )
    wide = got.astype(np.longdouble)
    expected = np.asarray(expected).astype(np.longdouble)
    limit = largest(dtype) * (1 + eps(dtype) / 2)
    beyond = np.isfinite(expected) & (np.abs(expected) >= limit * (1 - 4 * eps(dtype)))
    fits = np.where(beyond & np.isinf(wide) & (np.sign(wide) == np.sign(expected)), True, False)
    fits |= (np.isnan(wide) & np.isnan(expected)) | (wide == expected)
    odd = ~fits & ~(np.isfinite(wide) & np.isfinite(expected))
    if odd.any():
        return float("inf")
    distance = np.where(fits, 0, np.abs(np.where(fits, 0, wide) - np.where(fits, 0, expected)))
    scale = np.where(np.isfinite(scale), np.abs(scale), 0).astype(np.longdouble)
    return float((distance / ulp(np.broadcast_to(scale, distance.shape), dtype)).max(initial=0))


def worst(got: np.ndarray, expected: np.ndarray, scale: np.ndarray, dtype: str) -> str:
    """Where the largest difference is, for messages."""
    if got.size == 0:
        return "empty"
    flat = [
        error_in_ulps(g, e, s, dtype)
        for g, e, s in zip(
            got.reshape(-1, 1),
            np.broadcast_to(expected, got.shape).reshape(-1, 1),
            np.broadcast_to(scale, got.shape).reshape(-1, 1),
            strict=True,
        )
    ]
    at = int(np.argmax(flat))
    where = np.unravel_index(at, got.shape)
    return (
        f"at {tuple(int(i) for i in where)}: got {got.reshape(-1)[at]!r}, "
        f"expected {np.broadcast_to(expected, got.shape).reshape(-1)[at]!r}, {flat[at]:.3g} ulp"
    )
