"""Pointwise ops that read and write bfloat16 as it lies: every number, and every pair of a grid of
numbers, gives what NumPy's float32 gives, rounded once; signs of zeros and NaN included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import arrays
from subcases import each

import tilewright as tw

EVERY = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
# Every eighth number of each sign and the neighbours of zero, one and infinity.
GRID = np.concatenate([EVERY[::131], EVERY[:3], EVERY[0x3F7F:0x3F82], EVERY[0x7F7E:0x7F82]])
GRID = np.concatenate([GRID, -GRID])
LENGTHS = (1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 511, 513, 2049, 4100)

UNARY: dict[str, Callable[..., Any]] = {
    "negative": np.negative,
    "positive": np.positive,
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "square": np.square,
    "sqrt": np.sqrt,
    "reciprocal": np.reciprocal,
    "relu": lambda x: np.maximum(x, 0) + 0,
    "relu6": lambda x: np.minimum(np.maximum(x, 0) + 0, 6),
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
    "logical_not": np.logical_not,
}
BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}


def check(got: tw.Tensor, want: np.ndarray, signs: bool = True) -> None:
    if want.dtype == bool:
        assert got.dtype == tw.bool
    else:
        assert got.dtype == tw.bfloat16
        want = arrays.to_bfloat16(want)
        if signs:
            plain = ~np.isnan(want)
            np.testing.assert_array_equal(
                np.signbit(arrays.array(got))[plain], np.signbit(want)[plain]
            )
    np.testing.assert_array_equal(arrays.array(got), want)


def bfloat16(x: np.ndarray) -> tw.Tensor:
    return arrays.tensor(x, "bfloat16")


@pytest.mark.parametrize("name", UNARY)
@np.errstate(all="ignore")
def test_every_number(name: str, isa: str) -> None:
    # The sign of 0 is kept, but where 0 is added to it.
    check(getattr(tw, name)(bfloat16(EVERY)), UNARY[name](EVERY), signs=name not in ("sign",))


@pytest.mark.parametrize("name", BINARY)
@np.errstate(all="ignore")
def test_every_pair(name: str, isa: str) -> None:
    a, b = (np.ascontiguousarray(x) for x in np.broadcast_arrays(GRID[:, None], GRID))
    signs = name not in ("maximum", "minimum")  # of 0 and -0 either will do
    op, want = getattr(tw, name), BINARY[name](a, b)
    check(op(bfloat16(a), bfloat16(b)), want, signs)
    check(op(bfloat16(GRID[:, None]), bfloat16(GRID)), want, signs)
    check(op(bfloat16(np.ascontiguousarray(a.T)).T, bfloat16(b)), want, signs)


@pytest.mark.parametrize("n", LENGTHS)
@np.errstate(all="ignore")
def test_every_length_and_offset(n: int, isa: str, rng) -> None:
    a, b = (rng.choice(GRID, (3, n + 3)) for _ in range(2))
    c = rng.integers(0, 2, (3, n + 3)).astype(bool)
    x, y, chosen = bfloat16(a), bfloat16(b), tw.asarray(c)
    for start in (0, 1, 3):
        cut = np.s_[:, start : start + n]
        check(-x[cut], -a[cut])
        check(x[cut] * y[cut], a[cut] * b[cut])
        check(x[cut] < y[cut], a[cut] < b[cut])
        check(x[cut] + y[1, start : start + n], a[cut] + b[1, start : start + n])
        check(tw.copysign(x[cut], y[:, :1]), np.copysign(a[cut], b[:, :1]))
        check(tw.where(chosen[cut], x[cut], y[cut]), np.where(c[cut], a[cut], b[cut]))
        check(tw.where(chosen[:, :1], x[cut], y[1:2, :1]), np.where(c[:, :1], a[cut], b[1:2, :1]))


@np.errstate(all="ignore")
def test_numbers_and_other_types_beside_bfloat16(isa: str, rng) -> None:
    a = rng.choice(GRID, (5, 301))
    x = bfloat16(a)
    check(x * 3, a * np.float32(3))
    check(2 - x, np.float32(2) - a)
    check(tw.clip(x, -1.5, 2.0), np.clip(a, -1.5, 2.0), signs=False)
    check(tw.where(x > 0, x, 0.5), np.where(a > 0, a, np.float32(0.5)))
    whole = rng.integers(-100, 100, (5, 301)).astype(np.int8)
    check(x + tw.asarray(whole), a + whole.astype(np.float32))
    bools = rng.integers(0, 2, (5, 301)).astype(bool)
    check(x * tw.asarray(bools), a * bools.astype(np.float32))
    b = rng.normal(size=(5, 301)).astype(np.float32)
    np.testing.assert_array_equal(arrays.array(x + tw.asarray(b)), a + b)
    np.testing.assert_array_equal((x < tw.asarray(b)).numpy(), a < b)


def test_any_number_of_threads_and_results_beyond_the_caches(threads, rng) -> None:
    a = rng.normal(size=(4100, 4099)).astype(np.float32)
    x = bfloat16(a)
    for count in (1, 2, 3):
        tw.set_num_threads(count)
        check(-x, -arrays.to_bfloat16(a))


@np.errstate(all="ignore")
def test_in_place_and_gradients(isa: str, rng) -> None:
    a, b = rng.normal(size=(2, 3, 77)).astype(np.float32)
    a, b = arrays.to_bfloat16(a), arrays.to_bfloat16(b)
    x = bfloat16(a)
    x.mul_(bfloat16(b))
    check(x, a * b)
    x = bfloat16(a).requires_grad_()
    tw.maximum(x, bfloat16(b)).sum().backward()
    np.testing.assert_array_equal(arrays.array(x.grad), (a > b) + (a == b) / 2)


@each("n", LENGTHS)
@pytest.mark.parametrize("rows", [1, 3, 8, 21])
def test_extrema_and_sums_of_rows_and_columns(rows: int, n: int, isa: str, rng) -> None:
    whole = GRID[~np.isnan(GRID)]
    odd = np.concatenate([[np.nan, np.inf, -np.inf], rng.normal(size=5)]).astype(np.float32)
    ones = rng.integers(-1, 2, (rows, n)).astype(np.float32)
    few = np.where(rng.random((rows, n)) < 2 / n, np.float32(np.nan), rng.choice(whole, (rows, n)))
    negative = -few  # NaN of the other sign
    for given in (rng.choice(whole, (rows, n)), few, negative, rng.choice(odd, (rows, n)), ones):
        x = arrays.to_bfloat16(given)
        signs = rng.normal(size=x.shape)
        a = np.where(np.isnan(x), np.copysign(x, signs), x).astype(np.float32)
        lying = {"rows": bfloat16(a), "columns": bfloat16(np.ascontiguousarray(a.T)).T}
        lying["cut"] = bfloat16(np.pad(a, 1))[1:-1, 1:-1]
        for t in lying.values():
            for axis in (None, 0, 1):
                check(tw.max(t, axis=axis), a.max(axis=axis), signs=False)
                check(tw.min(t, axis=axis), a.min(axis=axis), signs=False)
                if given is ones:  # sums that are exact
                    check(tw.sum(t, axis=axis), a.sum(axis=axis), signs=False)


# Gradients that are read and written as they lie, of g, the operands and the result; in float32.
F = np.float32


def chosen(where: np.ndarray, g: np.ndarray) -> np.ndarray:
    return np.where(where, g, F(0))


def shared(least: np.ndarray, most: np.ndarray, g: np.ndarray) -> np.ndarray:
    return np.where(least > most, F(0), np.where(least == most, g / 2, g))


UNARY_GRADIENTS: dict[str, Callable[..., Any]] = {
    "negative": lambda g, x, y: -g,
    "abs": lambda g, x, y: g * np.sign(x),
    "relu": lambda g, x, y: chosen(~(x <= 0), g),
    "relu6": lambda g, x, y: chosen(~((x <= 0) | (x >= 6)), g),
    "square": lambda g, x, y: 2 * g * x,
    "sqrt": lambda g, x, y: g / (2 * y),
    "rsqrt": lambda g, x, y: g * y * y * y / -2,
    "reciprocal": lambda g, x, y: -g * y * y,
    "exp": lambda g, x, y: g * y,
    "log": lambda g, x, y: g / x,
    "log2": lambda g, x, y: g / x * F(1.4426950408889634),
    "log10": lambda g, x, y: g / x * F(0.4342944819032518),
    "log1p": lambda g, x, y: g / (x + 1),
    "tan": lambda g, x, y: g * (y * y + 1),
    "atan": lambda g, x, y: g / (x * x + 1),
    "tanh": lambda g, x, y: g * (1 - y * y),
    "sigmoid": lambda g, x, y: g * y * (1 - y),
    "hardsigmoid": lambda g, x, y: chosen(~((x <= -3) | (x >= 3)), g / 6),
    "hardswish": lambda g, x, y: np.where(x <= -3, F(0), np.where(x < 3, g * (x / 3 + F(0.5)), g)),
    "softsign": lambda g, x, y: g / (1 + abs(x)) / (1 + abs(x)),
    "hardshrink": lambda g, x, y: chosen(~(abs(x) <= F(0.5)), g),
    "softshrink": lambda g, x, y: chosen(~(abs(x) <= F(0.5)), g),
    "hardtanh": lambda g, x, y: chosen(~((x <= -1) | (x >= 1)), g),
}
BINARY_GRADIENTS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "subtract": (lambda g, a, b: g, lambda g, a, b: -g),
    "multiply": (lambda g, a, b: g * b, lambda g, a, b: g * a),
    "divide": (lambda g, a, b: g / b, lambda g, a, b: -g * (a / b) / b),
    "maximum": (lambda g, a, b: shared(b, a, g), lambda g, a, b: shared(a, b, g)),
    "minimum": (lambda g, a, b: shared(a, b, g), lambda g, a, b: shared(b, a, g)),
    "copysign": (
        lambda g, a, b: g * np.sign(a) * np.copysign(F(1), b),
        lambda g, a, b: np.zeros_like(g),
    ),
    "leaky_relu": (
        lambda g, a, b: np.where(a > 0, g, g * b),
        lambda g, a, b: chosen(~(a > 0), g * a),
    ),
}
TERNARY_GRADIENTS: dict[str, tuple[Callable[..., Any], ...]] = {
    "clip": (
        lambda g, a, b, c: chosen(~((a < b) | (a > c)), g),
        lambda g, a, b, c: chosen(~((a >= b) | (b > c)), g),
        lambda g, a, b, c: chosen(~((a <= c) & (b <= c)), g),
    ),
    "addcmul": (lambda g, a, b, c: g, lambda g, a, b, c: g * c, lambda g, a, b, c: g * b),
    "lerp": (
        lambda g, a, b, c: g * (1 - c),
        lambda g, a, b, c: g * c,
        lambda g, a, b, c: g * (b - a),
    ),
}


def check_gradient(got: tw.Tensor, want: np.ndarray) -> None:
    """Rounded once: to a number that the reference may be rounded to, if that errs by 2^-20."""
    assert got.dtype == tw.bfloat16
    y = arrays.array(got)
    with np.errstate(all="ignore"):
        ends = arrays.to_bfloat16(want * F(1 - 2**-20)), arrays.to_bfloat16(want * F(1 + 2**-20))
    np.testing.assert_array_equal(np.isnan(y), np.isnan(want))
    near = (np.minimum(*ends) <= y) & (y <= np.maximum(*ends))
    assert (near | np.isnan(want)).all(), (y[~near][:4], want[~near][:4])


def gradients(op: Callable[..., tw.Tensor], given: list[np.ndarray], g: np.ndarray) -> Any:
    operands = [bfloat16(x).requires_grad_() for x in given]
    y = op(*operands)
    return y, tw.grad(y, operands, grad_outputs=bfloat16(g))


@pytest.mark.parametrize("name", UNARY_GRADIENTS)
@np.errstate(all="ignore")
def test_gradients_of_every_number(name: str, isa: str, rng) -> None:
    for of_all in (rng.choice(GRID, EVERY.shape), rng.normal(size=EVERY.shape)):
        g = arrays.to_bfloat16(of_all)
        y, (dx,) = gradients(getattr(tw, name), [EVERY], g)
        check_gradient(dx, UNARY_GRADIENTS[name](g, EVERY, arrays.array(y.detach())))


@pytest.mark.parametrize("name", [*BINARY_GRADIENTS, *TERNARY_GRADIENTS])
@np.errstate(all="ignore")
def test_gradients_of_several(name: str, isa: str, rng) -> None:
    formulas = (BINARY_GRADIENTS | TERNARY_GRADIENTS)[name]
    for numbers in (GRID, arrays.to_bfloat16(rng.normal(size=4000))):
        g, *given = (rng.choice(numbers, 20011) for _ in range(len(formulas) + 1))
        _, found = gradients(getattr(tw, name), given, g)
        for dx, formula in zip(found, formulas, strict=True):
            check_gradient(dx, formula(g, *given))


@np.errstate(all="ignore")
def test_gradients_of_choices(isa: str, rng) -> None:
    c = rng.integers(0, 2, 20011).astype(bool)
    g, a, b = (rng.choice(GRID, 20011) for _ in range(3))
    for condition in (tw.asarray(c), bfloat16(c.astype(np.float32) * 3)):
        _, (da, db) = gradients(lambda x, y, at=condition: tw.where(at, x, y), [a, b], g)
        check(da, chosen(c, g))
        check(db, chosen(~c, g))


@pytest.mark.parametrize("n", LENGTHS)
@np.errstate(all="ignore")
def test_gradients_of_every_length(n: int, isa: str, rng) -> None:
    g, a = rng.choice(GRID, (2, 3, n))
    column, row = rng.choice(GRID, (3, 1)), rng.choice(GRID, (1, n))
    for b in (column, row):
        x, other = bfloat16(a).requires_grad_(), bfloat16(b)
        dx = tw.grad(x * other, [x], grad_outputs=bfloat16(g))[0]
        check_gradient(dx, g * b)
        dx = tw.grad(x / other, [x], grad_outputs=bfloat16(np.ascontiguousarray(g.T)).T)[0]
        check_gradient(dx, g / b)
