"""Every op's record on the GPU: values and gradients are those of the CPU's references."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from cases import RECORDS, arrays
from cases.check import assert_close, expected_values, tensors
from cases.record import OpCase
from subcases import each

import tilewright as tw

pytestmark = pytest.mark.skipif(
    not tw.cuda.is_available(), reason=f"no GPU: {tw.cuda.why_unavailable()}"
)
DTYPES = (
    "float32", "float64", "bfloat16", "float16", "int32", "int64", "uint8", "bool", "complex64",
    "complex128",
)  # fmt: skip
# Functions of the GPU's compiler have up to 4 units in the last place (CUDA C++ Programming Guide,
# "Mathematical functions"), where the CPU's have their own bounds. Of integers they are float32's.
LEAST_TOLERANCE = {"float32": 4.0, "float64": 4.0, "float16": 1.0, "bfloat16": 1.0}


def moved(y, device: str):
    if isinstance(y, (tuple, list)):
        return [moved(part, device) for part in y]
    return y.to(device)


@contextmanager
def skipping_without_kernel() -> Iterator[None]:
    """Skips a test whose op says that it has no kernel here, as the list below says too."""
    try:
        yield
    except NotImplementedError as error:
        op, _, rest = str(error).partition(": ")
        if not rest.startswith("no kernel on device 'cuda:0' yet") or op not in WITHOUT_KERNELS:
            raise
        pytest.skip(str(error))


def runs(case: OpCase, dtype: str, limit: int | None = None):
    rng = np.random.default_rng(7)
    for args in case.arguments(rng, dtype)[:limit]:
        for options in case.variants[:3]:
            axis = options.get("axis")
            if not (isinstance(axis, int) and args[0].ndim == 0):
                yield args, options


def check_values(case: OpCase, dtype: str) -> None:
    for args, options in runs(case, dtype):
        y = case.call(*(x.to("cuda") for x in tensors(args, dtype)), **options)
        for part in y if isinstance(y, (tuple, list)) else [y]:
            assert part.device == "cuda:0"
        note = (options, [x.shape for x in args])
        kind = dtype
        if isinstance(y, tw.Tensor) and y.dtype == tw.float32:
            kind = "float32"
        loose = max(case.tolerance[dtype], LEAST_TOLERANCE.get(kind, 0.0))
        record = case if loose == case.tolerance[dtype] else replaced(case, dtype, loose)
        assert_close(
            record, moved(y, "cpu"), expected_values(case, args, dtype, options), dtype, note
        )


def replaced(case: OpCase, dtype: str, tolerance: float) -> OpCase:
    copy = object.__new__(OpCase)
    copy.__dict__.update(case.__dict__, tolerance={**case.tolerance, dtype: tolerance})
    return copy


def first_dtype(case: OpCase) -> list[str]:
    return [dtype for dtype in DTYPES if dtype in case.tolerance][:1]


def other_dtypes(case: OpCase) -> list[str]:
    return [dtype for dtype in DTYPES if dtype in case.tolerance][1:]


@pytest.mark.parametrize("case", [c for c in RECORDS if first_dtype(c)], ids=str)
@each("dtype", first_dtype)
def test_values(case: OpCase, dtype: str) -> None:
    with skipping_without_kernel():
        check_values(case, dtype)


@pytest.mark.tier("all")
@pytest.mark.parametrize("case", [c for c in RECORDS if other_dtypes(c)], ids=str)
@each("dtype", other_dtypes)
def test_values_of_other_types(case: OpCase, dtype: str) -> None:
    with skipping_without_kernel():
        check_values(case, dtype)


DIFFERENTIABLE = [case for case in RECORDS if case.differentiable]


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
def test_gradients(case: OpCase) -> None:
    rng = np.random.default_rng(7)
    for args in case.smooth(rng)[:2]:
        for options in case.variants[:2]:
            axis = options.get("axis")
            if isinstance(axis, int) and args[0].ndim == 0:
                continue
            with skipping_without_kernel():
                here, there = (gradients(case, args, options, d) for d in ("cpu", "cuda"))
            for a, b in zip(here, there, strict=True):
                scale = max(1.0, float(np.abs(a).max(initial=0)))
                np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9 * scale)


def gradients(case: OpCase, args, options, device: str) -> list[np.ndarray]:
    """Of a weighted sum of the result, by every input that has one, in float64."""
    inputs = []
    for i, x in enumerate(args):
        t = arrays.tensor(x, "float64" if x.dtype == np.float64 else x.dtype.name).to(device)
        inputs.append(t.detach().requires_grad_() if i in case.differentiable else t)
    y = case.call(*inputs, **options)
    y = y[0] if isinstance(y, (tuple, list)) else y
    weights = np.cos(np.arange(y.size, dtype=np.float64)).reshape(y.shape)
    (y * tw.asarray(weights).to(device)).sum().backward()
    found = [inputs[i].grad for i in case.differentiable]
    return [arrays.array(g.to("cpu")) for g in found if g is not None]


# Ops that have neither a kernel nor a body here yet, and say so by name; the list may only shrink.
_WITHOUT = ""
WITHOUT_KERNELS = frozenset(_WITHOUT.split())


def test_the_list_says_what_is_missing() -> None:
    missing = set()
    for op in tw._core.kernel_ops():
        devices = {kernel["device"] for kernel in tw._core.kernels_of_op(op)}
        if "cpu" in devices and not devices & {"cuda", "any"}:
            missing.add(op)
    assert missing == WITHOUT_KERNELS
