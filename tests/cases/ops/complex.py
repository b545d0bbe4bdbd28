"""Records of the ops on complex numbers and their parts. Gradients: test_complex.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import ALL
from cases.generators import exact, same, values
from cases.record import Arrays, ErrorInput, OpCase

WIDE = (-1e4, 1e4)
SHAPES = ((7,), (2, 3), (0, 2), ())


def of_shapes(*shapes: tuple[int, ...], count: int = 1) -> Any:
    def make(rng: np.random.Generator, dtype: str) -> list[Arrays]:
        return [tuple(values(rng, dtype, WIDE, s) for _ in range(count)) for s in shapes]

    return make


def real_of(dtype: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def refused(call: Callable[[], object], expected: type[Exception], text: str) -> ErrorInput:
    return ErrorInput(call, expected, text)


def pair(x: np.ndarray) -> np.ndarray:
    return np.stack([x.real, x.imag], -1)


def record(name: str, call: Any, reference: Any, dtypes: Any, result: Any, *errors: Any) -> OpCase:
    smooth = {
        "differentiable": (0,),
        "smooth": lambda rng: [(rng.normal(size=s),) for s in ((4,), (2, 3))],
        "gradient_tolerance": 0,
    }
    return OpCase(
        name,
        call,
        reference,
        of_shapes(*SHAPES),
        dtypes if isinstance(dtypes, dict) else exact(*dtypes),
        result,
        errors=errors,
        **(smooth if "float64" in dtypes else {}),
    )


x = tw.ones((2, 3))
z = tw.ones((2, 3), dtype=tw.complex64)

RECORDS = (
    record("real", tw.real, np.real, ALL, real_of),
    record(
        "imag",
        tw.imag,
        np.imag,
        ("complex64", "complex128"),
        real_of,
        refused(lambda: tw.imag(x), TypeError, "imag: needs a complex tensor, got float32"),
    ),
    record("conj", tw.conj, lambda v: v if v.dtype == bool else np.conj(v), ALL, same),
    record(
        "view_as_real",
        tw.view_as_real,
        pair,
        ("complex64", "complex128"),
        real_of,
        refused(lambda: tw.view_as_real(x), TypeError, "view_as_real: needs a complex tensor, got"),
    ),
    OpCase(
        "view_as_complex",
        lambda x: tw.view_as_complex(x if x.strides[-1] == 1 else x.contiguous()),
        lambda v: v[..., 0] + 1j * v[..., 1],
        of_shapes((7, 2), (2, 3, 2), (0, 2), (2,)),
        {"float32": 0},
        lambda _: "complex64",
        errors=(
            refused(lambda: tw.view_as_complex(x), ValueError, "last axis must have extent 2"),
            refused(
                lambda: tw.view_as_complex(z), TypeError, "needs float32 or float64, got complex64"
            ),
        ),
    ),
    OpCase(
        "complex",
        tw.complex,
        lambda a, b: a + 1j * b,
        of_shapes(*SHAPES, count=2),
        {"float32": 0},
        lambda _: "complex64",
        errors=(
            refused(
                lambda: tw.complex(x, z),
                TypeError,
                "complex: needs two tensors of float32 or float64, got",
            ),
        ),
    ),
    OpCase(
        "vdot_complex",
        lambda a, b: tw.vdot(tw.flatten(tw.complex(a, b)), tw.flatten(tw.complex(b, -a))),
        lambda a, b: np.vdot(a + 1j * b, b - 1j * a),
        of_shapes((7,), (1,), (0,), (70,), count=2),
        {"float32": 4},
        lambda _: "complex64",
        scale=lambda a, b: np.sum(a * a + b * b),
    ),
    OpCase(
        "polar",
        tw.polar,
        lambda a, b: a * np.cos(b) + 1j * (a * np.sin(b)),
        lambda rng, dtype: [
            (values(rng, dtype, (0, 9), s), values(rng, dtype, (-3, 3), s)) for s in SHAPES
        ],
        {"float32": 4},
        lambda _: "complex64",
        scale=lambda a, b: a * np.exp(1j * b),
        errors=(
            refused(
                lambda: tw.polar(x, z),
                TypeError,
                "polar: needs two tensors of float32 or float64, got",
            ),
        ),
    ),
    record(
        "angle",
        tw.angle,
        np.angle,
        {"complex64": 2, "complex128": 2, "float32": 0.51, "float64": 0.51},
        real_of,
    ),
)
