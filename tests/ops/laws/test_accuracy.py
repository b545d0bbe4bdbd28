"""Every bound of accuracy.inc holds: float32 on a stratified sample of all inputs (all of
them: tests/exhaustive.py), float64 on samples against arithmetic of any precision."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from cases.accuracy import EXACT, exact_error, float32_errors, function
from cases.bounds import ARITY, BOUNDS
from subcases import each

import tilewright as tw

DOCUMENTATION = {op["name"]: op["help"] for op in tw._core._op_records()}
UNARY = [name for name in BOUNDS if ARITY[name] == 1]
BINARY = [name for name in BOUNDS if ARITY[name] == 2]
EDGES = [0.0, 1.0, 0.5, 2.0, math.e, math.pi / 2, math.pi, 8.0, 88.72284, 127.5, 1e10, 3.4e38]
EDGES += [1e-45, 1.2e-38, 1e-10, 2.0**-12, math.inf, math.nan]


def stratified() -> np.ndarray:
    """Float32 numbers of every exponent and sign, and the neighbours of where formulas change."""
    spread = np.arange(0, 1 << 32, 30011, dtype=np.uint64).astype(np.uint32)
    edges = np.array(EDGES, np.float32).view(np.uint32)
    near = (edges[:, None] + np.arange(-40, 41, dtype=np.int64)).astype(np.uint32).ravel()
    bits = np.concatenate([spread, near, near ^ np.uint32(1 << 31)])
    return bits.view(np.float32)


def test_every_bound_has_a_reference() -> None:
    assert set(BOUNDS) == set(EXACT)


@pytest.mark.parametrize("name", UNARY)
def test_float32_of_one_argument(name: str, isa: str) -> None:
    x = stratified()
    worst = float32_errors(name, np.asarray(function(name)(tw.asarray(x))), (x,))
    assert not worst.wrong, f"{name} on {isa}: wrong special values at {worst.wrong}"
    assert worst.ulp <= BOUNDS[name][0], f"{name} on {isa}: {worst.ulp:.4f} ulp at {worst.at}"


def value_and_slope(name: str, x: np.ndarray) -> np.ndarray:
    leaf = tw.asarray(x).requires_grad_()
    y = function(name)(leaf)
    y.sum().backward()
    assert leaf.grad is not None
    return np.stack([y.detach().numpy(), leaf.grad.numpy()])


def of_all_sizes(dtype: str, rng: np.random.Generator) -> np.ndarray:
    if dtype == "float32":
        return stratified()[::29]
    sizes = np.exp2(rng.uniform(-1074, 1024, 3000)) * rng.choice([-1, 1], 3000)
    return np.concatenate([sizes, EDGES, np.negative(EDGES)])


@each("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_neighbours_change_no_bit(
    name: str, dtype: str, isa: str, rng: np.random.Generator
) -> None:
    """Rare numbers may take another formula; those that share a vector with them do not."""
    x = np.concatenate([rng.normal(0, 2, 4001).astype(dtype), of_all_sizes(dtype, rng)])
    order = rng.permutation(x.size)
    here, there = value_and_slope(name, x), value_and_slope(name, x[order])
    np.testing.assert_array_equal(here[:, order], there)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_reach_their_limits(isa: str, dtype: str) -> None:
    x = np.array([20.0, 40.0, 400.0, 1e10, np.inf] * 7, dtype)
    for name in ("tanh", "erf"):
        for sign in (1, -1):
            got = getattr(tw, name)(tw.asarray(sign * x)).numpy()
            np.testing.assert_array_equal(got, np.full_like(x, sign))
    x = np.array([40.0, 400.0, 1e10, np.inf] * 7, dtype)
    np.testing.assert_array_equal(tw.sigmoid(tw.asarray(x)).numpy(), np.ones_like(x))
    x = np.full(9, np.inf, dtype)
    np.testing.assert_array_equal(tw.atan(tw.asarray(x)).numpy(), np.full(9, np.pi / 2, dtype))
    assert not tw.sigmoid(tw.asarray(-x)).numpy().any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BINARY)
def test_neighbours_change_no_bit_of_two_arguments(
    name: str, dtype: str, isa: str, rng: np.random.Generator
) -> None:
    usual, rare = pairs(name, rng, dtype), of_all_sizes(dtype, rng)
    a = np.concatenate([usual[0], rare])
    b = np.concatenate([usual[1], rng.permutation(rare)])
    order = rng.permutation(a.size)
    f = function(name)
    here = np.asarray(f(tw.asarray(a), tw.asarray(b)))
    there = np.asarray(f(tw.asarray(a[order]), tw.asarray(b[order])))
    np.testing.assert_array_equal(here[order], there)


def pairs(name: str, rng: np.random.Generator, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Arguments of all sizes, of like sizes, and of every pair of edges."""
    highest = 100 if dtype == "float32" else 1000
    sizes = np.exp2(rng.uniform(-highest, highest, (2, 4000)))
    alike = np.exp2(rng.uniform(-3, 3, (2, 4000)))
    a, b = np.concatenate([sizes, alike], axis=1)
    if name == "pow":  # results that neither overflow nor vanish
        b = rng.uniform(-0.9, 0.9, a.shape) * highest / np.maximum(np.abs(np.log2(a)), 1e-6)
    else:
        a, b = a * rng.choice([-1, 1], a.shape), b * rng.choice([-1, 1], b.shape)
    with np.errstate(over="ignore"):
        return a.astype(dtype), b.astype(dtype)


@pytest.mark.parametrize("name", BINARY)
def test_float32_of_two_arguments(name: str, isa: str, rng: np.random.Generator) -> None:
    a, b = pairs(name, rng, "float32")
    edges = [sign * edge for edge in EDGES for sign in (1, -1)]
    more = np.array(list(itertools.product(edges, repeat=2)), np.float32).T
    args = (np.concatenate([a, more[0]]), np.concatenate([b, more[1]]))
    worst = float32_errors(name, np.asarray(function(name)(*map(tw.asarray, args))), args)
    assert not worst.wrong, f"{name} on {isa}: wrong special values at {worst.wrong}"
    assert worst.ulp <= BOUNDS[name][0], f"{name} on {isa}: {worst.ulp:.4f} ulp at {worst.at}"


def test_powers_that_are_float32_numbers_are_exact(isa: str) -> None:
    """Also where they share a vector with results that are rounded, vanish or overflow."""
    held = [
        (sign * base * 2.0**scale, power)
        for base in range(1, 200)
        for power in range(-140, 25)
        for scale in (0, -3)
        for sign in (1, -1)
        if (power >= 0 and base**power < 1 << 24) or base == 1
    ]
    fractions = [(float(base) ** 2, 0.5) for base in range(4096)]
    others = np.random.default_rng(0).normal(0, 3, (len(held), 2))
    a, b = np.concatenate([np.array(held), others, np.array(fractions)]).astype(np.float32).T
    order = np.random.default_rng(1).permutation(a.size)
    y = np.empty_like(a)
    y[order] = np.asarray(tw.pow(tw.asarray(a[order]), tw.asarray(b[order])))
    with np.errstate(over="ignore"):
        expected = np.array([base**power for base, power in held]).astype(np.float32)
    np.testing.assert_array_equal(y[: len(held)], expected)
    np.testing.assert_array_equal(y[-len(fractions) :], np.arange(4096))


def samples(name: str, rng: np.random.Generator) -> np.ndarray:
    """Float64 numbers from the domain: evenly, of all sizes, and around 1 and multiples of pi/4."""
    low, high = EXACT[name].domain
    largest = min(math.log2(max(-low, high)), 1000)
    signs = rng.choice([-1, 1], 300)
    parts = [
        rng.uniform(low / 2, high / 2, 200) * 2,
        rng.uniform(-2, 2, 600),
        np.exp2(rng.uniform(-60, largest, 300)) * signs,
        np.exp2(rng.uniform(-1074, largest, 100)) * signs[:100],
        (1 + np.exp2(rng.uniform(-52, -1, 300)) * signs) * signs[::-1],
        np.nextafter(np.arange(-200, 200) * (math.pi / 4), rng.choice([-1e9, 1e9], 400)),
    ]
    x = np.concatenate(parts)
    return x[(x >= low) & (x <= high)]


def float64_errors(name: str, *args: np.ndarray) -> dict[tuple[float, ...], float]:
    """Errors in ulp by result and arguments, of all instruction sets."""
    seen: dict[tuple[float, ...], float] = {}
    for isa in tw.kernels.isas():
        with tw.kernels.use(isa=isa):
            y = np.asarray(function(name)(*map(tw.asarray, args)))
        for got, *at in zip(y.tolist(), *(x.tolist() for x in args), strict=True):
            key = (got, *at)
            if math.isfinite(got) and key not in seen:
                seen[key] = exact_error(name, got, tuple(at), 53)
    return seen


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_float64(name: str, rng: np.random.Generator) -> None:
    args = (samples(name, rng),) if ARITY[name] == 1 else pairs(name, rng, "float64")
    if ARITY[name] == 2:
        args = args[0][::8], args[1][::8]
    seen = float64_errors(name, *args)
    worst = max(seen, key=seen.__getitem__)
    assert len(seen) > len(args[0]) // 2
    assert seen[worst] <= BOUNDS[name][1], f"{name}: {seen[worst]:.4f} ulp at {worst[1:]}"


def rounded_root(x: float) -> float:
    """The float64 number nearest to the root of x > 0, by whole numbers and a bit for the rest."""
    mantissa, exponent = math.frexp(x)
    square = int(math.ldexp(mantissa, 53)) << 121 - exponent % 2
    root = math.isqrt(square)
    return math.ldexp(float(2 * root + (root * root < square)), (exponent + exponent % 2) // 2 - 88)


def test_roots_beside_halfway_are_correctly_rounded(isa: str, rng: np.random.Generator) -> None:
    """Squares of what lies halfway between two numbers, and of numbers, as nearly as float64 holds
    them, of every exponent; rare lanes, which go another way, among them."""
    roots = rng.integers(1 << 52, 1 << 53, 4000).astype(float)
    near = np.concatenate([roots * roots, roots * roots * (1 + 2.0**-53), 4.0 ** np.arange(60)])
    x = (near[:, None].view(np.int64) + np.arange(-2, 3)).view(np.float64).ravel()
    x = np.ldexp(x, 2 * rng.integers(-590, 450, x.size))
    x = np.concatenate([x[x > 0], np.nextafter(2.0 ** np.arange(-1074.0, 1024), 0)[1:]])
    y = np.asarray(tw.sqrt(tw.asarray(x)))
    np.testing.assert_array_equal(y, [rounded_root(each) for each in x.tolist()])
    x[:: x.size // 50] = 0
    np.testing.assert_array_equal(np.asarray(tw.sqrt(tw.asarray(x)))[x > 0], y[x > 0])


def test_quotients_by_a_number_are_correctly_rounded(isa: str, rng: np.random.Generator) -> None:
    """Beside halfway between two numbers, rare ones among them, and by numbers too small or too
    large for steps."""
    divisors = [3.0, -3.0, 0.1, 2 - 2.0**-52, 1 + 2.0**-52, math.pi, -1 / 255, 2.0**500, 2.0**-501]
    divisors += [5e-324, 1e308, 0.0, math.inf, math.nan]
    rare = np.array([0.0, -0.0, 5e-324, -1e-300, 1e300, 2.0**-400, 2.0**400, -math.inf, math.nan])
    for c in divisors:
        quotients = rng.integers(1 << 52, 1 << 53, 4000) * 2.0 ** rng.integers(-60, -40, 4000)
        with np.errstate(all="ignore"):
            near = np.concatenate([quotients * c * (1 + 2.0**-53), quotients * c])
            x = (near.view(np.int64)[:, None] + np.arange(-2, 3)).view(np.float64).ravel()
            x[::37] = rng.choice(rare, x[::37].size)
            expected = x / c
        y = np.asarray(tw.asarray(x) / c)
        np.testing.assert_array_equal(y, expected)
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(y)[known], np.signbit(expected)[known])


# Where formulas of float64 change: the intervals of tables, and the ends of what tables cover; and
# where logarithms erred by 1 ulp and more once, as exponent and mantissa cancel.
QUARTERS = np.array([2.0 ** (n // 4) * (1 + n % 4 / 4) - 1 for n in range(17)])
MANTISSAS = np.concatenate([1 + np.arange(8) / 16, 0.75 + np.arange(8) / 32])
TURNS = (np.arange(-20, 20) + 0.5) * (math.pi / 16)
BESIDE_TURNS = [413441.44719405076, 826882.8943881015]  # multiples of pi / 2, all but
BORDERS = {
    "erfc": [*(QUARTERS / 0.549), 26, 27.22],
    "tanhshrink": [*(0.8 + QUARTERS * 1.22), 19.06, 2.0**-240],
    "erfinv": np.sqrt(-np.expm1(-QUARTERS / 0.4155)),
    "asin": [0.5, 1],
    "acos": [0.5, 1],
    "log": [*MANTISSAS, 0.74579793520395732],
    "log2": [*MANTISSAS, 1.4134910783996129],
    "log10": [*MANTISSAS, 0.74999999999995792, 0.74999099724180773],
    "sin": [*TURNS, 2.0**17, *BESIDE_TURNS],
    "cos": [*TURNS, 2.0**17, *BESIDE_TURNS],
    "tan": [*TURNS, 2.0**17, *BESIDE_TURNS],
    "exp": (np.arange(-1075, 1024, 97) + 0.5) * math.log(2),
    "exp2": np.arange(-1075, 1024, 97) + 0.5,
    "tanh": [0.96, 19.06, 20],
    "erf": [0.9602013000131664, 5.92, 5.95],
    "sigmoid": [*((np.arange(60) + 0.5) * math.log(2)), 36.74, 38, 700, 708.4],
    "silu": [*((np.arange(60) + 0.5) * math.log(2)), 36.74, 38, 700, 708.4, 744],
}


@pytest.mark.parametrize("name", list(BORDERS))
def test_float64_where_formulas_change(name: str) -> None:
    offsets = np.array([-1e-6, *(np.arange(-3, 4) * 2.0**-52), 1e-6])
    x = np.multiply.outer(np.asarray(BORDERS[name]), 1 + offsets).ravel()
    low, high = EXACT[name].domain
    x = np.concatenate([x, -x])
    seen = float64_errors(name, x[(x >= low) & (x <= high) & (np.abs(x) < 2.0**21)])
    worst = max(seen, key=seen.__getitem__)
    assert seen[worst] <= BOUNDS[name][1], f"{name}: {seen[worst]:.4f} ulp at {worst[1:]}"


def test_whole_powers_and_their_logarithms_are_exact(isa: str) -> None:
    whole = np.arange(-1074, 1024)
    exponents, powers = tw.asarray(whole.astype(float)), tw.asarray(np.ldexp(1.0, whole))
    assert (tw.exp2(exponents) == powers).all()
    assert (tw.log2(powers) == exponents).all()
    tens = np.array([10.0**n for n in range(23)])
    np.testing.assert_array_equal(tw.log10(tw.asarray(tens)).numpy(), np.arange(23.0))


def test_exponentials_reach_their_limits(isa: str) -> None:
    """Where the number taken off x to reduce it is itself rounded, too."""
    x = np.concatenate([2.0 ** np.arange(11, 1023, 0.37), 2.0**56 - 8 * np.arange(1.0, 2000)])
    for f in (tw.exp, tw.exp2):
        np.testing.assert_array_equal(f(tw.asarray(x)).numpy(), np.full_like(x, np.inf))
        np.testing.assert_array_equal(f(tw.asarray(-x)).numpy(), np.zeros_like(x))


@pytest.mark.parametrize("name", list(BOUNDS))
def test_float64_special_values(name: str, isa: str) -> None:
    """As C's annex F has them, which NumPy's functions follow."""
    edges = [sign * edge for edge in (*EDGES, 1e308, 5e-324) for sign in (1, -1)]
    if ARITY[name] == 1:
        args: tuple[np.ndarray, ...] = (np.array(edges),)
    else:
        args = tuple(np.array(list(itertools.product(edges, repeat=2))).T)
    y = np.asarray(function(name)(*map(tw.asarray, args)))
    with np.errstate(all="ignore"):
        expected = EXACT[name].wide(*args)
    for got, want, *at in zip(y, expected, *args, strict=True):
        if math.isnan(want) or (math.isfinite(want) and want != 0):
            alike = math.isnan(got) == math.isnan(want) and not math.isinf(got)
        else:
            alike = got == want and np.signbit(got) == np.signbit(want)
        assert alike, f"{name} on {isa} of {at}: {got}, expected {want}"


@pytest.mark.parametrize("name", list(BOUNDS))
def test_documentation_states_the_bound(name: str) -> None:
    stated = DOCUMENTATION[name]
    for bound in BOUNDS[name]:
        assert "correctly rounded" in stated if bound == 0.5 else f"at most {bound:g} ulp" in stated
