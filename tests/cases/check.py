"""Holds an op against its record."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np

import tilewright as tw
from cases import arrays
from cases.arrays import FLOATS
from cases.record import Arrays, OpCase


def dtype_of(x: np.ndarray, dtype: str) -> str:
    """The dtype of an argument: conditions and indices keep theirs."""
    return dtype if x.dtype == arrays.numpy_type(dtype) else x.dtype.name


def tensors(args: Arrays, dtype: str) -> list[tw.Tensor]:
    return [arrays.tensor(x, dtype_of(x, dtype)) for x in args]


# What references gave for the latest arguments, by all that it depends on. Instruction sets and
# layouts are tested on the same numbers, one after the other.
_MOST_KNOWN = 500
_known: OrderedDict[Any, Any] = OrderedDict()


def expected_values(case: OpCase, args: Arrays, dtype: str, options: Mapping[str, Any]) -> Any:
    """Result and error scale of the reference."""
    bits = tuple((x.shape, x.dtype.str, x.tobytes()) for x in args)
    key = (case.reference, case.scale, case.result(dtype), dtype, repr(options), bits)
    if key not in _known:
        _known[key] = _referred(case, args, dtype, options)
        if len(_known) > _MOST_KNOWN:
            _known.popitem(last=False)
    return _known[key]


def _referred(case: OpCase, args: Arrays, dtype: str, options: Mapping[str, Any]) -> Any:
    wide = []
    for x in args:
        own = dtype_of(x, dtype)
        if case.result(dtype) == "float32" and own == dtype and x.dtype.kind not in "fc":
            wide.append(x.astype(np.float32).astype(np.float64))
        else:
            wide.append(arrays.widened(x, own))
    with np.errstate(all="ignore"):
        y = np.asarray(case.reference(*wide, **options))
        scale = y if case.scale is None else np.asarray(case.scale(*wide, **options))
    return y, scale


def assert_close(case: OpCase, y: tw.Tensor, expected: Any, dtype: str, note: object = "") -> None:
    """Dtype, shape and values of a result; `expected` is what expected_values gave."""
    result = case.result(dtype)
    want, scale = expected
    assert str(y.dtype) == result, f"{case.name} of {dtype}: dtype {y.dtype}, expected {result}"
    assert y.shape == want.shape, f"{case.name} of {dtype}: shape {y.shape}, expected {want.shape}"
    got = arrays.array(y)
    if result not in (*FLOATS, *arrays.COMPLEX):
        with np.errstate(all="ignore"):
            want = want.astype(result)
        np.testing.assert_array_equal(got, want, f"{case.name} of {dtype} {note}")
        return
    tolerance = case.tolerance[dtype]
    error = arrays.error_in_ulps(got, want, scale, result)
    assert error <= tolerance, (
        f"{case.name} of {dtype} {note}: off by {error:.3g} ulp, allowed {tolerance}; "
        + arrays.worst(got, want, scale, result)
    )


def assert_signs_of_zeros(case: OpCase, y: tw.Tensor, want: np.ndarray, dtype: str) -> None:
    got = arrays.array(y)
    with np.errstate(all="ignore"):
        zero = (got == 0) & (want == 0)
    wrong = zero & (np.signbit(got) != np.signbit(want))
    assert not wrong.any(), (
        f"{case.name} of {dtype}: sign of zero at {np.argwhere(wrong)[:5].tolist()}"
    )


def check(
    case: OpCase, args: Arrays, dtype: str, options: Mapping[str, Any], note: object = ""
) -> None:
    y = case.call(*tensors(args, dtype), **options)
    assert_close(case, y, expected_values(case, args, dtype, options), dtype, note or options)
