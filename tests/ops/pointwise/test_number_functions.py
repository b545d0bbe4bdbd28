"""Functions of numbers at their edges, held against PyTorch and NumPy."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import arrays

import tilewright as tw

torch = pytest.importorskip("torch")

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-30, -1e-30, 1e30, math.inf, -math.inf, math.nan]
FLOATS = ("float32", "float64")
# Tolerances of isclose, absurd ones too.
CLOSE = [(1e-5, 1e-8), (0, 0), (1e-7, 0), (0, 1e-45), (1e-5, 1e-35), (0.5, 1e39), (1e38, 1e-3)]
CLOSE += [
    (0.3, 0),
    (0.7, 1e-30),
    (1e300, 0),
    (math.nan, 0),
    (0, math.nan),
    (math.inf, 0),
    (0, math.inf),
]


def edges(dtype: str, arity: int) -> list[np.ndarray]:
    columns = zip(*itertools.product(EDGES, repeat=arity), strict=True)
    return [np.array(column, dtype) for column in columns]


def same(got: tw.Tensor, want: object, rtol: float = 1e-5) -> None:
    got, want = arrays.array(got), np.asarray(want)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-7)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("logaddexp", torch.logaddexp),
        ("logaddexp2", torch.logaddexp2),
        ("xlogy", torch.xlogy),
        ("xlog1py", torch.special.xlog1py),
        ("nextafter", torch.nextafter),
    ],
)
def test_edges_of_two_arguments(name: str, theirs, dtype: str) -> None:
    x = edges(dtype, 2)
    same(getattr(tw, name)(*map(tw.asarray, x)), theirs(*map(torch.from_numpy, x)).numpy())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["logit", "nan_to_num", "frac", "deg2rad", "rad2deg", "sinc"])
def test_edges_of_one_argument(name: str, dtype: str) -> None:
    x = np.array([0, -0.0, 1, 0.5, 0.25, 0.75, -3, 1.5, 7.25, *EDGES[-3:]], dtype)
    same(getattr(tw, name)(tw.asarray(x)), getattr(torch, name)(torch.from_numpy(x)).numpy())


@pytest.mark.parametrize("name", ["isposinf", "isneginf"])
def test_signs_of_infinities(name: str) -> None:
    x = np.array(EDGES, "float32")
    same(getattr(tw, name)(tw.asarray(x)), getattr(np, name)(x))


@pytest.mark.parametrize("dtype", FLOATS)
def test_nextafter_gives_the_same_bits(dtype: str) -> None:
    a, b = edges(dtype, 2)
    got = arrays.array(tw.nextafter(tw.asarray(a), tw.asarray(b)))
    want = np.nextafter(a, b)
    number = ~np.isnan(want)
    assert np.array_equal(np.isnan(got), ~number)
    assert got[number].tobytes() == want[number].tobytes()


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint64"])
def test_fmod_of_whole_numbers_at_the_ends_of_the_type(dtype: str) -> None:
    ends = np.iinfo(dtype)
    values = np.array([ends.min, ends.min + 1, 0, 1, 3, 7, ends.max - 1, ends.max], dtype)
    a, b = (x.ravel() for x in np.meshgrid(values, values[values != 0]))
    same(tw.fmod(tw.asarray(a), tw.asarray(b)), np.fmod(a, b), rtol=0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_edges_of_fmod(dtype: str) -> None:
    a, b = edges(dtype, 2)  # PyTorch gives NaN for quotients beyond the type's range
    with np.errstate(invalid="ignore"):
        same(tw.fmod(tw.asarray(a), tw.asarray(b)), np.fmod(a, b), rtol=0)


def test_zeros_of_fmod_keep_the_sign_of_the_dividend() -> None:
    a, b = np.float32([0.0, -0.0, 6, -6, 6, -6]), np.float32([3, 3, 3, 3, -3, -3])
    got = arrays.array(tw.fmod(tw.asarray(a), tw.asarray(b)))
    assert np.array_equal(np.signbit(got), np.signbit(a))
    assert not got.any()


def division_pairs(dtype: str, rng) -> tuple[np.ndarray, np.ndarray]:
    """Dividends at and beside multiples of their divisors, up to quotients that no type holds;
    zeros, infinities, subnormal numbers and the largest, among others and alone."""
    info = np.finfo(dtype)
    digits = info.nmant + 1
    k = np.concatenate(
        [np.arange(1, 9), *(2.0**e + np.arange(-2, 3) for e in range(3, digits + 3))]
    )
    k = np.repeat(k, 8).astype(dtype)
    b = (rng.uniform(0.5, 2, k.size) * 2.0 ** rng.integers(-20, 20, k.size)).astype(dtype)
    b[::4] = np.round(b[::4] * 64) + 1
    a = k * b
    a = np.concatenate([a, np.nextafter(a, dtype(0)), np.nextafter(a, dtype(np.inf))])
    b = np.tile(b, 3)
    tiny = info.smallest_subnormal
    ends = [0, 1, 3, tiny, 5 * tiny, info.tiny, info.max, np.inf, np.nan]
    ends = np.array([*ends, info.tiny * dtype(1.5)], dtype)
    p, q = (x.ravel() for x in np.meshgrid(ends, ends))
    a, b = np.concatenate([a, p]), np.concatenate([b, q])
    a = np.concatenate([a, -a, a, -a])
    b = np.concatenate([b, b, -b, -b])
    order = rng.permutation(a.size)
    return np.concatenate([a, a[order]]), np.concatenate([b, b[order]])


def floored(a: float, b: float) -> tuple[float, float]:
    """Python's quotient and remainder of finite numbers, each rounded once."""
    quotient = Fraction(a) // Fraction(b)
    rest = Fraction(a) - quotient * Fraction(b)
    return (
        math.copysign(float(quotient), a / b) if quotient == 0 else float(quotient),
        math.copysign(float(rest), b),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_divisions_with_a_remainder_are_exact(dtype, isa: str, rng) -> None:
    with np.errstate(all="ignore"):
        a, b = division_pairs(dtype, rng)
        plain = np.isfinite(a) & np.isfinite(b) & (b != 0)
        exact = plain & (np.abs(a / b) < 2.0 ** (np.finfo(dtype).nmant - 2))
        want = {"fmod": np.fmod(a, b), "remainder": np.remainder(a, b)}
    pairs = [floored(float(p), float(q)) for p, q in zip(a[exact], b[exact], strict=True)]
    quotients, rests = (np.array(column, dtype) for column in zip(*pairs, strict=True))
    np.testing.assert_array_equal(want["remainder"][exact], rests)
    x, y = tw.asarray(a), tw.asarray(b)
    bits = "u4" if dtype is np.float32 else "u8"
    for name, values in want.items():
        got = getattr(tw, name)(x, y).numpy()
        np.testing.assert_array_equal(np.isnan(got), np.isnan(values), err_msg=name)
        number = ~np.isnan(values)
        np.testing.assert_array_equal(
            got[number].view(bits), values[number].view(bits), err_msg=name
        )
    got = tw.floor_divide(x, y).numpy()
    np.testing.assert_array_equal(got[exact].view(bits), quotients.view(bits))
    large = plain & ~exact  # rounded twice, as in Python
    with np.errstate(all="ignore"):
        theirs = np.floor_divide(a[large], b[large])
    np.testing.assert_allclose(got[large], theirs, rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
def test_a_division_does_not_depend_on_its_neighbours(name: str, dtype, isa: str, rng) -> None:
    a, b = division_pairs(dtype, rng)
    a, b = a[:997], b[:997]
    function = getattr(tw, name)
    whole = function(tw.asarray(a), tw.asarray(b)).numpy()
    for i in range(0, a.size, 7):
        alone = function(tw.asarray(a[i : i + 1]), tw.asarray(b[i : i + 1])).numpy()
        assert alone.tobytes() == whole[i : i + 1].tobytes() or np.isnan([alone, whole[i]]).all()


def test_lerp_meets_its_ends() -> None:
    a, b = tw.asarray(np.float32([1e8, 0.1])), tw.asarray(np.float32([1.0, 0.7]))
    assert tw.lerp(a, b, 0.0).tolist() == a.tolist()
    assert tw.lerp(a, b, 1.0).tolist() == b.tolist()
    x, y = (torch.from_numpy(arrays.array(t)) for t in (a, b))
    for weight in (0.25, 0.5, 0.75, 2.0):
        same(tw.lerp(a, b, weight), torch.lerp(x, y, weight).numpy())


@pytest.mark.parametrize("equal_nan", [False, True])
def test_isclose(equal_nan: bool) -> None:
    a, b = edges("float64", 2)
    for rtol, atol in ((1e-5, 1e-8), (0.6, 0.0), (0.0, 2.0)):
        options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan}
        got = tw.isclose(tw.asarray(a), tw.asarray(b), **options)
        same(got, np.isclose(a, b, **options))
        got = tw.allclose(tw.asarray(a), tw.asarray(a), **options)
        assert bool(got) is np.allclose(a, a, **options)


def near_the_bound(rng: np.random.Generator, bound: float) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of float32 of all sizes, and others that lie about `bound` from them."""
    edges = np.float32([0, -0.0, 1e-45, 2e-38, 3.4e38, -3.4e38, math.inf, -math.inf, math.nan, 1])
    first, second = (x.ravel() for x in np.meshgrid(edges, edges))
    b = rng.standard_normal(1500) * 10.0 ** rng.integers(-44, 38, 1500)
    parts = bound * (1 + rng.integers(-3, 4, 1500) * 2.0 ** rng.integers(-26, -3, 1500))
    with np.errstate(over="ignore"):
        b = b.astype("float32")
        a = (b * (1 + rng.choice([-1, 1], 1500) * parts)).astype("float32")
    # Edges by themselves: a group of numbers of which one is in doubt is compared in float64.
    return np.concatenate([first, a]), np.concatenate([second, b])


@pytest.mark.parametrize(("rtol", "atol"), CLOSE)
def test_isclose_decides_as_float64_does(
    rtol: float, atol: float, isa: str, rng: np.random.Generator
) -> None:
    a, b = near_the_bound(rng, rtol if 0 < rtol < 1 else 1e-6)
    x, y = a.astype("float64"), b.astype("float64")
    with np.errstate(invalid="ignore", over="ignore"):
        close = (x == y) | (np.isfinite(y) & (np.abs(x - y) <= atol + rtol * np.abs(y)))
    for n in (len(a), 5, 8, 33, 100):
        for equal_nan in (False, True):
            want = close | (np.isnan(a) & np.isnan(b)) if equal_nan else close
            got = tw.isclose(
                tw.asarray(a[:n]), tw.asarray(b[:n]), rtol=rtol, atol=atol, equal_nan=equal_nan
            )
            np.testing.assert_array_equal(arrays.array(got), want[:n])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", *FLOATS])
@pytest.mark.parametrize("nan", [0.0, -7.25, math.nan, math.inf])
def test_nan_to_num_has_the_bits_of_pytorch(dtype: str, nan: float, isa: str) -> None:
    values = [*EDGES, 6e4, -6e4, 3e38, -3e38, 3.4028234e38, 1e300, -1e300, *range(20)]
    t = torch.tensor(values, dtype=torch.float64).to(getattr(torch, dtype)).requires_grad_()
    x = tw.asarray(t.detach().double().numpy()).astype(getattr(tw, dtype)).requires_grad_()
    y, u = tw.nan_to_num(x, nan), torch.nan_to_num(t, nan)
    y.backward(tw.full_like(y, 3))
    u.backward(torch.full_like(u, 3))
    for ours, theirs in ((y.detach(), u.detach()), (x.grad, t.grad)):
        got, want = np.asarray(ours.astype(tw.float64)), theirs.double().numpy()
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_heaviside() -> None:
    x, v = np.float32([-1, 0, 2, -0.0, math.nan, math.inf]), np.float32([0.5] * 6)
    same(tw.heaviside(tw.asarray(x), tw.asarray(v)), np.heaviside(x, v))


def test_float_power_is_of_float64() -> None:
    x = tw.asarray(np.array([2, 3], "int32"))
    same(tw.float_power(x, tw.asarray(np.array([-1, 2]))), np.float64([0.5, 9]))


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["nansum", "nanmean"])
def test_reductions_without_nan(name: str, axis, keepdims: bool) -> None:
    x = np.random.default_rng(1).normal(size=(3, 4, 5)).astype("float32")
    x[x > 1] = math.nan
    same(
        getattr(tw, name)(tw.asarray(x), axis=axis, keepdims=keepdims),
        getattr(np, name)(x, axis=axis, keepdims=keepdims),
    )


def test_nothing_but_nan() -> None:
    x = tw.full((3,), math.nan)
    assert tw.nansum(x).item() == 0
    assert math.isnan(tw.nanmean(x).item())
    assert tw.nansum(tw.zeros((0,))).item() == 0
    assert tw.nansum(tw.asarray(np.array([1, 2], "int8"))).dtype == tw.int64
    with pytest.raises(TypeError, match="nanmean: needs a floating-point input"):
        tw.nanmean(tw.asarray(np.array([1, 2])))


GRADIENTS = {
    "clip at its bounds": (lambda m, x: m.clip(x, -1.0, 1.0), [-1, 1, 0, 2]),
    "clamp_min at its bound": (lambda m, x: m.clamp_min(x, 1.0), [1, 0, 2]),
    "clamp_max at its bound": (lambda m, x: m.clamp_max(x, 1.0), [1, 0, 2]),
    "x ** 0 at 0": (lambda m, x: x**0, [0, 1, -2]),
    "prod with a zero": (lambda m, x: m.prod(x), [2, 0, 3]),
    "prod with two zeros": (lambda m, x: m.prod(x), [0, 0, 3]),
    "xlogy at 0": (lambda m, x: m.xlogy(x, x * 0 + 2), [0, 1, -1]),
    "logaddexp of equal numbers": (lambda m, x: m.logaddexp(x, x * 1), [0, 3]),
    "nan_to_num": (lambda m, x: m.nan_to_num(x), [1, math.inf, math.nan, -math.inf]),
    "sinc at 0": (lambda m, x: m.sinc(x), [0, 0.5, 1]),
    "logit": (lambda m, x: m.logit(x, 0.1), [0.05, 0.3, 0.5, 0.95]),
    "fmod": (lambda m, x: m.fmod(x * 7, x), [1.5, -2.5]),
    "nanmean": (lambda m, x: m.nanmean(x), [1, math.nan, 3]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_at_delicate_points(name: str) -> None:
    function, values = GRADIENTS[name]
    x = tw.asarray(np.array(values, "float64")).requires_grad_()
    function(tw, x).sum().backward()
    t = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    function(torch, t).sum().backward()
    same(x.grad, t.grad.numpy(), rtol=1e-12)


def test_gradient_of_elu_for_large_numbers() -> None:
    x = tw.asarray(np.float32([800, -800, 0])).requires_grad_()
    tw.elu(x).sum().backward()
    assert x.grad.tolist() == [1, 0, 1]


def test_gradient_of_atan2_at_the_origin() -> None:
    x = tw.zeros((1,)).requires_grad_()
    tw.atan2(x, tw.zeros((1,))).sum().backward()
    assert x.grad.tolist() == [0]


@pytest.mark.parametrize("name", ["logaddexp2", "xlog1py", "float_power"])
def test_complex_numbers_are_refused(name: str) -> None:
    x = tw.ones((2,), dtype=tw.complex64)
    with pytest.raises(TypeError, match=name):
        getattr(tw, name)(x, x)


# Around 0, beyond the power series, and where it ends.
SINC_POINTS = [0.0, 1e-300, 1e-20, -1e-9, 1e-4, 0.01, -0.2, 0.2499, 0.2501, 0.7, 1.0, -3.5]


@pytest.mark.parametrize("dtype", FLOATS)
def test_slope_and_curvature_of_sinc_near_0(dtype: str) -> None:
    values = np.array(SINC_POINTS, dtype)
    x = tw.asarray(values).requires_grad_()
    (slope,) = tw.grad(tw.sinc(x).sum(), x, create_graph=True)
    (curvature,) = tw.grad(slope.sum(), x)
    # sinc(x) is the integral of cos(pi x u) over u from 0 to 1 (Gauss-Legendre).
    u, weights = np.polynomial.legendre.leggauss(60)
    u, weights = (u + 1) / 2, weights / 2
    angle = np.pi * values.astype("float64")[:, None] * u
    turn = np.pi * u
    expected = (-turn * np.sin(angle)) @ weights, (-(turn**2) * np.cos(angle)) @ weights
    ulps = 128 * arrays.eps(dtype)
    for got, want in zip((slope, curvature), expected, strict=True):
        # Relative near 0, where the slope's parts cancel.
        size = np.where(np.abs(values) < 0.5, np.abs(want), 1)
        assert (np.abs(arrays.array(got.detach()) - want) <= ulps * size).all()


def test_curvature_of_logaddexp2_where_its_arguments_meet() -> None:
    pairs = [(0.0, 0.0), (3.0, 3.0), (-1.0, 2.0), (1e30, 1e30), (5000.0, 0.0)]
    a, b = (tw.asarray(list(column)).astype(tw.float64) for column in zip(*pairs, strict=True))
    a, b = a.requires_grad_(), b.requires_grad_()
    (slope,) = tw.grad(tw.logaddexp2(a, b).sum(), a, create_graph=True)
    share = np.array([1 / (1 + 2.0 ** (y - x)) for x, y in pairs])
    np.testing.assert_allclose(slope.tolist(), share, rtol=1e-13)
    for leaf, sign in ((a, 1), (b, -1)):
        (curvature,) = tw.grad(slope.sum(), leaf, retain_graph=True)
        want = sign * math.log(2) * share * (1 - share)
        np.testing.assert_allclose(curvature.tolist(), want, rtol=1e-12)


@pytest.mark.parametrize("narrow", ["float16", "bfloat16", "float32", "int8"])
def test_xlog1py_is_computed_in_the_wider_type(narrow: str) -> None:
    a, b = np.array([0.25, -1.5, 3.0]), tw.asarray([1.0, 2.0, 7.0]).astype(getattr(tw, narrow))
    same(tw.xlog1py(tw.asarray(a), b), a * np.log1p([1.0, 2.0, 7.0]), rtol=1e-15)


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_gradients_of_a_mean_of_nothing_are_nothing(shape: tuple[int, ...]) -> None:
    x, g = tw.zeros(shape).requires_grad_(), tw.ones(()).requires_grad_()
    (dx,) = tw.grad(tw.mean(x), x, g, create_graph=True)
    assert dx.shape == shape
    (of_g,) = tw.grad(dx, g, tw.ones(shape))
    assert of_g.item() == 0
