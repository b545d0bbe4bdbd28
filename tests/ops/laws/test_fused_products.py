"""A product is fused into a sum where `fma` is written, and nowhere else: the formula decides bits.

Neither the place in a vector or a row does, nor the instruction set, where it has FMAs and computes
the same operations.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cases import RECORDS
from cases.ops.updates import OPS as STEPS
from subcases import each

import tilewright as tw

BY_NAME = {case.name: case for case in RECORDS}
ROWS = [
    row
    for row in tw._core.pointwise_table()
    if "floating" in row["kinds"] and not row["truth"] and BY_NAME[row["name"]].elementwise
    if row["name"] != "finite_or"  # one of its numbers is the type's largest
]
DTYPES = ("float32", "float64")
# Operands behind the first that are numbers.
NUMBERS = {
    "elu": (1.5,),
    "celu": (1.5,),
    "hardshrink": (0.5,),
    "softshrink": (0.5,),
    "softplus": (2.0, 20.0),
    "hardtanh": (-1.0, 1.5),
    "threshold": (0.5, -2.0),
}
FUSED = [isa for isa in tw.kernels.isas() if isa in ("avx2", "avx512", "neon")]
needs_fma = pytest.mark.skipif(not FUSED, reason="this machine has no FMA")

# ---- an FMA of whole fractions ----

DIGITS = {np.dtype("float32"): (24, -149, 128), np.dtype("float64"): (53, -1074, 1024)}


def rounded(exact: Fraction, dtype: np.dtype[Any]) -> float:
    """To the nearest number of the type, ties to even."""
    digits, least, most = DIGITS[dtype]
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    last_place = Fraction(2) ** max(exponent - digits + 1, least)
    whole = round(size / last_place) * last_place
    near = math.inf if whole >= Fraction(2) ** most else float(whole)
    return -near if exact < 0 else near


def one_fma(a: float, b: float, c: float, dtype: np.dtype[Any]) -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact:
        return rounded(exact, dtype)
    product_sign = math.copysign(1, a) * math.copysign(1, b)
    same = product_sign == math.copysign(1, c)
    if a == 0 or b == 0:
        return c if same else 0.0 if c == 0 else c
    return 0.0


def exact_fma(a: Any, b: Any, c: Any) -> np.ndarray:
    dtype = next(x.dtype for x in (a, b, c) if isinstance(x, np.ndarray))
    # A number is one of the type, as a vector of it is.
    a, b, c = np.broadcast_arrays(*(np.asarray(x, dtype) for x in (a, b, c)))
    values = zip(a.ravel().tolist(), b.ravel().tolist(), c.ravel().tolist(), strict=True)
    return np.array([one_fma(*each, dtype) for each in values], dtype).reshape(a.shape)


# What formulas of exactly rounded operations call. `-x * y` and `where(...)` are Python as well.
EXACT: dict[str, Any] = {
    "fma": exact_fma,
    "where": np.where,
    "abs": np.abs,
    "sign": lambda x: np.where(x > 0, 1, np.where(x < 0, -1, x + 0)).astype(x.dtype),
    "maximum": np.maximum,
    "minimum": np.minimum,
    "copysign": np.copysign,
    "trunc": np.trunc,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "sqrt": np.sqrt,
}


def is_exact(formula: str) -> bool:
    return formula not in ("g", "0", "none") and set(re.findall(r"[a-z_]\w+", formula)) <= set(
        EXACT
    )


# ---- values ----


def grid(dtype: str, arity: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Special values beside each other, and numbers of all sizes whose products cancel in sums."""
    kind = np.finfo(dtype)
    small = float(kind.smallest_normal)
    special = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, small, -small / 4, kind.max]
    special += [0.5, 3.0, 1 + float(kind.eps), 1 / 3, -1e-3, float(kind.smallest_subnormal)]
    few = special if arity < 3 else special[::2]
    columns = np.array(list(itertools.product(few, repeat=arity))).T
    near = rng.uniform(-2, 2, (arity, 300))
    wide = rng.normal(size=(arity, 200)) * np.exp2(rng.integers(-20, 20, (arity, 200)))
    with np.errstate(over="ignore"):
        return [column.astype(dtype) for column in np.concatenate([columns, near, wide], axis=1)]


def bits(x: np.ndarray) -> np.ndarray:
    """As whole numbers; all NaN alike."""
    x = np.where(np.isnan(x), np.asarray(math.nan, x.dtype), x)
    return x.view(np.uint32 if x.dtype == np.float32 else np.uint64)


def wide_array(x: tw.Tensor) -> np.ndarray:
    narrow = x.dtype in (tw.bfloat16, tw.float16)
    return (x.detach().astype(tw.float32) if narrow else x.detach()).numpy()


def value_and_slopes(row: dict[str, Any], dtype: str, in_: list[np.ndarray]) -> list[np.ndarray]:
    """Of a row's kernels: the result, then its gradients by g = the last of `in_`; empty where
    there is none."""
    *operands, g = [tw.asarray(x).astype(getattr(tw, dtype)) for x in in_]
    numbers = NUMBERS.get(row["name"], ())
    leaves = operands[: len(operands) - len(numbers)]
    for leaf, gradient in zip(leaves, row["gradients"], strict=False):
        leaf.requires_grad_(gradient != "none")
    name = row["name"]
    y = getattr(tw, name)(*leaves, *numbers) if numbers else BY_NAME[name].call(*leaves)
    found = [wide_array(y)]
    for leaf in leaves:
        (slope,) = (
            tw.grad(y, [leaf], [g], retain_graph=True, allow_unused=True)
            if leaf.requires_grad and y.requires_grad
            else (None,)
        )
        found.append(np.empty(0) if slope is None else wide_array(slope))
    return found


def named(row: dict[str, Any], in_: list[np.ndarray]) -> dict[str, np.ndarray]:
    """What a row's texts call its operands, and g."""
    *operands, g = in_
    numbers = NUMBERS.get(row["name"], ())
    first = operands[: len(operands) - len(numbers)]
    values = [*first, *(np.full_like(g, x) for x in numbers)]
    return dict(zip("x" if row["arity"] == 1 else "abc", values, strict=False)) | {"g": g}


# ---- rows ----

PLACES = [(start, count) for start in (0, 1, 3, 6) for count in (1, 2, 5, 8, 15, 17, 33, 70)]


@needs_fma
@each("dtype", (*DTYPES, "bfloat16", "float16"))
@each("row", ROWS, ids=lambda row: row["name"])
def test_a_row_has_the_same_bits_in_every_place(
    row: dict[str, Any], dtype: str, isa: str, rng: np.random.Generator
) -> None:
    wide = dtype if dtype in DTYPES else "float32"
    in_ = [x[rng.permutation(x.size)][:150] for x in grid(wide, row["arity"] + 1, rng)]
    whole = value_and_slopes(row, dtype, in_)
    for start, count in PLACES:
        part = value_and_slopes(row, dtype, [x[start : start + count] for x in in_])
        for i, (got, of_all) in enumerate(zip(part, whole, strict=True)):
            want = bits(of_all[start : start + count])
            np.testing.assert_array_equal(bits(got), want, f"{i} at {start}, {count}")


def exact_parts(row: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Which of value and gradients are made of exactly rounded operations: their place, their text.

    A row in which the value is none is called to have the gradient's y.
    """
    for i, text in enumerate([row["formula"], *row["gradients"]]):
        if is_exact(text):
            yield i, text


@needs_fma
@each("dtype", DTYPES)
@each("row", [row for row in ROWS if any(exact_parts(row))], ids=lambda row: row["name"])
def test_rows_of_exactly_rounded_operations(
    row: dict[str, Any], dtype: str, rng: np.random.Generator
) -> None:
    """Each operation of the text is rounded once, an fma as a whole; on all instruction sets."""
    in_ = grid(dtype, row["arity"] + 1, rng)
    found = {}
    for isa in FUSED:
        with tw.kernels.use(isa=isa):
            found[isa] = value_and_slopes(row, dtype, in_)
    for i, text in exact_parts(row):
        of_isa = {isa: results[i] for isa, results in found.items()}
        for isa, got in of_isa.items():
            known = named(row, in_) | {"y": found[isa][0]}
            with np.errstate(all="ignore"):
                want = np.broadcast_to(eval(text, dict(EXACT), known), got.shape)
            assert want.dtype == got.dtype
            np.testing.assert_array_equal(got, want, f"{text} on {isa}")
        if is_exact(row["formula"]):  # else y differs
            first, *others = of_isa.values()
            for other in others:
                np.testing.assert_array_equal(bits(first), bits(other), text)


def test_formulas_with_sums_of_products_are_among_them() -> None:
    texts = [text for row in ROWS for _, text in exact_parts(row)]
    assert sum("fma(" in text for text in texts) >= 6
    assert len(texts) >= 40


# ---- updates ----


def stepped(name: str, arrays: list[np.ndarray], **more: Any) -> list[np.ndarray]:
    states, settings = STEPS[name]
    tensors = [tw.asarray(x.copy()) for x in arrays[: 2 + states]]
    settings = {"lr": 0.1, "step": 7} | settings | more
    getattr(tw, name)(*([x] for x in tensors), **settings)
    return [tensors[0].numpy(), *(x.numpy() for x in tensors[2:])]


def step_arrays(dtype: str, rng: np.random.Generator) -> list[np.ndarray]:
    param, gradient, *states = grid(dtype, 2, rng) + grid(dtype, 2, rng) + grid(dtype, 2, rng)[:1]
    order = rng.permutation(param.size)
    return [param, gradient, *(np.abs(x[order]) for x in states)]


@needs_fma
@each("dtype", DTYPES)
@each("name", list(STEPS))
def test_steps_have_the_same_bits_everywhere(
    name: str, dtype: str, rng: np.random.Generator
) -> None:
    """On each instruction set, at each place."""
    arrays = step_arrays(dtype, rng)
    results = []
    for isa in FUSED:
        with tw.kernels.use(isa=isa):
            whole = [bits(x) for x in stepped(name, arrays)]
            for start, count in PLACES:
                part = stepped(name, [x[start : start + count] for x in arrays])
                for got, want in zip(part, whole, strict=True):
                    np.testing.assert_array_equal(bits(got), want[start : start + count])
        results.append(whole)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def average(p: np.ndarray, g: np.ndarray, f: Callable[[float], np.ndarray]) -> list[np.ndarray]:
    return [exact_fma(f(0.1), g - p, p)]


def descent(p: np.ndarray, g: np.ndarray, f: Callable[[float], np.ndarray]) -> list[np.ndarray]:
    return [exact_fma(f(-0.1), exact_fma(f(1), g, f(0) * 0), p)]


def lion(
    p: np.ndarray, g: np.ndarray, m: np.ndarray, f: Callable[[float], np.ndarray]
) -> list[np.ndarray]:
    d = exact_fma(f(1), g, -m)
    step = f(0.1) * EXACT["sign"](exact_fma(f(1 - 0.9), d, m))
    return [exact_fma(f(1 - 0.1 * 0.1), p, -step), exact_fma(f(1 - 0.99), d, m)]


def momentum(
    p: np.ndarray, g: np.ndarray, m: np.ndarray, f: Callable[[float], np.ndarray]
) -> list[np.ndarray]:
    m = exact_fma(f(1), exact_fma(f(1), g, f(0) * 0), f(0.9) * m)
    return [exact_fma(f(-0.1), m, p), m]


@needs_fma
@each("dtype", DTYPES)
@each(
    "name, formula",
    [
        ("average_step", average),
        ("sgd_step", descent),
        ("lion_step", lion),
        ("momentum_step", momentum),
    ],
    ids=lambda case: case[0],
)
def test_steps_of_sums_and_products(
    name: str, formula: Callable[..., list[np.ndarray]], dtype: str, rng: np.random.Generator
) -> None:
    arrays = step_arrays(dtype, rng)

    def constant(x: float) -> np.ndarray:
        return np.full_like(arrays[0], x)

    with np.errstate(all="ignore"):
        expected = formula(*arrays[: 2 + STEPS[name][0]], constant)
    for isa in FUSED:
        with tw.kernels.use(isa=isa):
            for got, want in zip(stepped(name, arrays), expected, strict=True):
                np.testing.assert_array_equal(got, want, isa)


# ---- reductions ----


@needs_fma
@each("dtype", DTYPES)
@each("axis", [0, 1])
@each("name", ["sum", "mean", "nansum", "l1_norm", "l2_norm", "prod", "max", "min"])
def test_reductions_finish_alike(
    name: str, axis: int, dtype: str, rng: np.random.Generator
) -> None:
    """Of whole numbers, whose sums are exact in any order, nothing but the finish is rounded."""
    for m, n in ((1, 1), (5, 3), (7, 23), (11, 40), (3, 70)):
        x = rng.integers(1 if name == "prod" else -9, 3 if name == "prod" else 9, (m, n))
        results = []
        for isa in FUSED:
            with tw.kernels.use(isa=isa):
                results.append(getattr(tw, name)(tw.asarray(x.astype(dtype)), axis=axis).numpy())
        whole = x.astype(object)
        exact = {
            "sum": whole.sum(axis),
            "mean": whole.sum(axis) / x.shape[axis],
            "l1_norm": abs(whole).sum(axis),
            "l2_norm": np.sqrt((whole * whole).sum(axis).astype(np.float64)),
            "prod": whole.prod(axis),
            "max": whole.max(axis),
            "min": whole.min(axis),
        }
        want = exact.get(name, exact["sum"])
        for got in results:
            np.testing.assert_array_equal(
                bits(got), bits(np.asarray(want, np.float64).astype(dtype) + 0)
            )
