"""What tests of programs ask of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright._compat.foreign_arrays import as_tensor, is_array

__all__ = ["assert_close"]

# By type: how far numbers may be apart, relative to the expected one and absolutely.
_TOLERANCES = {
    tw.float16: (1e-3, 1e-5),
    tw.bfloat16: (1.6e-2, 1e-5),
    tw.float32: (1.3e-6, 1e-5),
    tw.complex64: (1.3e-6, 1e-5),
    tw.float64: (1e-7, 1e-7),
    tw.complex128: (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_dtype: bool = True,
    check_device: bool = True,
    msg: str | None = None,
) -> None:
    """Raises AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

    Takes tensors, arrays of other libraries, numbers, and sequences and dicts of those, which must
    have the same form. Without tolerances those of the wider of both types are PyTorch's: 1.3e-6
    and 1e-5 for float32, 1e-7 and 1e-7 for float64, 1e-3 and 1e-5 for float16, 1.6e-2 and 1e-5 for
    bfloat16, 0 for whole numbers. Infinities are close to themselves, NaN with `equal_nan`. `msg`
    takes the place of what is told. Raises ValueError for one tolerance without the other and for
    negative ones, TypeError for what cannot be compared.

    Shapes: equal ones. Types: all. Result: None.
    Source: PyTorch's torch.testing.assert_close.

    >>> import tilewright as tw
    >>> tw.testing.assert_close(tw.asarray([1.0]) / 3, tw.asarray([0.3333333]))
    """
    if (rtol is None) != (atol is None):
        raise ValueError("assert_close: give rtol and atol, or neither of them")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance is not None and not tolerance >= 0:
            raise ValueError(f"assert_close: {name} must be at least 0, got {tolerance}")
    tolerances = None if rtol is None or atol is None else (rtol, atol)
    fault = _fault(actual, expected, tolerances, (equal_nan, check_dtype, check_device), "")
    if fault:
        raise AssertionError(msg or fault)


def _fault(actual: Any, expected: Any, tolerances: Any, flags: Any, where: str) -> str | None:
    """What differs first, or None."""
    place = f"{where}: " if where else ""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        if actual.keys() != expected.keys():
            differ = sorted(map(str, actual.keys() ^ expected.keys()))
            return f"{place}keys differ: {', '.join(differ)}"
        parts = [(f"[{key!r}]", actual[key], expected[key]) for key in expected]
    elif _is_sequence(expected) and _is_sequence(actual):
        if len(actual) != len(expected):
            return f"{place}{len(actual)} parts, expected {len(expected)}"
        parts = [(f"[{i}]", a, b) for i, (a, b) in enumerate(zip(actual, expected, strict=True))]
    else:
        return _fault_of_tensors(_as_tensor(actual), _as_tensor(expected), tolerances, flags, place)
    for name, a, b in parts:
        if fault := _fault(a, b, tolerances, flags, where + name):
            return fault
    return None


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _as_tensor(value: Any) -> Tensor:
    if isinstance(value, (Tensor, bool, int, float, complex)):
        return tw.asarray(value).detach() if isinstance(value, Tensor) else _of_number(value)
    if is_array(value):
        return as_tensor(value)
    raise TypeError(
        f"assert_close: expected tensors, arrays or numbers, got {type(value).__name__}"
    )


def _of_number(value: complex) -> Tensor:
    wide = {bool: tw.bool, int: tw.int64, float: tw.float64}.get(type(value), tw.complex128)
    return tw.asarray(value, dtype=wide)


def _fault_of_tensors(
    actual: Tensor, expected: Tensor, tolerances: Any, flags: Any, place: str
) -> str | None:
    equal_nan, check_dtype, check_device = flags
    if actual.shape != expected.shape:
        return f"{place}shape {actual.shape}, expected {expected.shape}"
    if check_device and actual.device != expected.device:
        return f"{place}lies on {actual.device}, expected {expected.device}"
    if check_dtype and actual.dtype != expected.dtype:
        return f"{place}{actual.dtype}, expected {expected.dtype}"
    rtol, atol = tolerances or max(_TOLERANCES.get(x.dtype, (0.0, 0.0)) for x in (actual, expected))
    if rtol == atol == 0 and actual.dtype == expected.dtype:
        close = actual == expected
        if equal_nan and not tw.isdtype(actual.dtype, ("bool", "integral")):
            close = close | (actual.isnan() & expected.isnan())
    else:
        of_complex = any(tw.is_complex(x) for x in (actual, expected))
        wide = tw.complex128 if of_complex else tw.float64
        close = tw.isclose(
            actual.cpu().astype(wide), expected.cpu().astype(wide), rtol, atol, equal_nan
        )
    wrong = int((~close).sum().item())
    return _told(actual, expected, close, wrong, (rtol, atol), place) if wrong else None


def _told(
    actual: Tensor, expected: Tensor, close: Tensor, wrong: int, tolerances: Any, place: str
) -> str:
    first = tuple(int(axis[0].item()) for axis in tw.nonzero((~close).reshape(close.shape or (1,))))
    at = first if close.ndim else ()
    a, b = actual[at].item(), expected[at].item()
    return (
        f"{place}{wrong} of {close.numel()} elements are not close (rtol {tolerances[0]:g}, atol "
        f"{tolerances[1]:g}); the first is {a} at {at}, expected {b}"
    )
