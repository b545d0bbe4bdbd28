"""Complex numbers against NumPy and PyTorch: parts, functions, special cases, gradients."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest
from cases.complex_functions import FUNCTIONS, ODD, OF_CMATH

import tilewright as tw

torch = pytest.importorskip("torch")

# The type of the numbers; each test runs with both.
NUMBER: type = np.complex64
REAL: type = np.float32


@pytest.fixture(autouse=True, params=[np.complex64, np.complex128])
def _number(request, monkeypatch) -> None:
    monkeypatch.setitem(globals(), "NUMBER", request.param)
    monkeypatch.setitem(globals(), "REAL", request.param(0).real.dtype.type)


SHAPES = ((), (0,), (3,), (2, 0, 3), (4, 5), (2, 3, 4))


def numbers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(NUMBER)


def tensor(x: np.ndarray) -> tw.Tensor:
    return tw.asarray(np.array(x, order="C"), copy=True)


def close(got: tw.Tensor, expected: np.ndarray, tolerance: float = 2e-6) -> None:
    assert got.shape == expected.shape
    a = np.asarray(got.detach())
    if a.dtype in (np.float64, np.complex128):
        tolerance *= 2.0**-26
    np.testing.assert_allclose(a, expected, rtol=tolerance, atol=tolerance)


# ---- parts ----


@pytest.mark.parametrize("shape", SHAPES)
def test_parts_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    x = numbers(shape)
    z = tensor(x)
    for got, expected in (
        (tw.real(z), x.real),
        (tw.imag(z), x.imag),
        (z.real, x.real),
        (z.imag, x.imag),
        (tw.conj(z), x.conj()),
        (z.conj(), x.conj()),
    ):
        assert got.dtype == getattr(tw, str(expected.dtype))
        np.testing.assert_array_equal(np.asarray(got), expected)
    close(tw.abs(z), np.abs(x))
    close(abs(z), np.abs(x))
    close(tw.angle(z), np.angle(x))
    pairs = tw.view_as_real(z)
    assert pairs.shape == (*shape, 2)
    np.testing.assert_array_equal(np.asarray(tw.view_as_complex(pairs)), x)
    np.testing.assert_array_equal(np.asarray(tw.complex(z.real, z.imag)), x)
    close(tw.polar(tw.abs(z), tw.angle(z)), x)


def test_parts_of_views() -> None:
    x = numbers((4, 5, 6))
    z = tensor(x)
    for index in (np.s_[::2, 1:, ::-1], np.s_[:, 2], np.s_[..., :1]):
        np.testing.assert_array_equal(np.asarray(z[index].imag), x[index].imag)
        np.testing.assert_array_equal(np.asarray(tw.conj(z[index])), x[index].conj())
    transposed = tw.permute_dims(z, (2, 0, 1))
    np.testing.assert_array_equal(np.asarray(transposed.real), x.transpose(2, 0, 1).real)
    wide = tw.broadcast_to(z[:1], (3, 5, 6))
    np.testing.assert_array_equal(np.asarray(wide.imag), np.broadcast_to(x[:1], (3, 5, 6)).imag)


def test_parts_are_views() -> None:
    z = tensor(np.zeros((2, 3), NUMBER))
    z.real[0] = 1
    z.imag[:, 1] = 2
    tw.view_as_real(z)[1, 2] = tensor(np.array([3, 4], REAL))
    np.testing.assert_array_equal(np.asarray(z), [[1, 1 + 2j, 1], [0, 2j, 3 + 4j]])


def test_real_tensors() -> None:
    for dtype in (tw.float32, tw.float64, tw.int32, tw.bool):
        x = tw.ones((3,), dtype=dtype)
        assert tw.real(x).data_ptr == x.data_ptr
        assert tw.conj(x).data_ptr == x.data_ptr
        with pytest.raises(TypeError, match="imag: needs a complex tensor"):
            tw.imag(x)
        parts = x.imag  # as NumPy's: other libraries ask any array for it
        assert (parts.dtype, parts.tolist()) == (dtype, [0, 0, 0])
        with pytest.raises(ValueError, match="share memory"):
            parts.fill_(1)
        assert x.to("null").imag.device == "null"
    x = [-1.0, 0.0, 2.0, float("nan"), float("-inf"), -0.0]
    for dtype in ("float32", "float64"):
        expected = torch.angle(torch.tensor(x, dtype=getattr(torch, dtype))).numpy()
        got = np.asarray(tw.angle(tw.asarray(x, dtype=dtype)))
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


def test_errors() -> None:
    z = tw.ones((2, 2), dtype=tw.complex64)
    x = tw.ones((2, 3))
    for call, kind, text in (
        (lambda: tw.view_as_real(x), TypeError, "view_as_real: needs a complex tensor"),
        (lambda: tw.view_as_complex(z), TypeError, "view_as_complex: needs float32 or float64"),
        (lambda: tw.view_as_complex(x), ValueError, "must have extent 2"),
        (lambda: tw.view_as_complex(tw.asarray(1.0)), ValueError, "must have extent 2"),
        (lambda: tw.view_as_complex(x[:, ::2]), ValueError, "apart"),
        (lambda: tw.view_as_complex(x[:, :2]), ValueError, "apart"),
        (lambda: tw.complex(x, z), TypeError, "complex: needs two tensors of float32"),
        (lambda: tw.complex(x, x[:, :2]), ValueError, "complex"),
        (lambda: tw.polar(z, z), TypeError, "polar: needs two tensors of float32"),
        (lambda: z.astype(tw.float32), TypeError, "would drop the imaginary part"),
        (lambda: z < z * 2, TypeError, "less: no kernel for complex64"),
        (lambda: z >= 1, TypeError, "greater_equal: no kernel for complex64"),
        (lambda: tw.maximum(z, z), TypeError, "no kernel"),
        (lambda: tw.floor(z), TypeError, "no kernel"),
        (lambda: tw.max(z), TypeError, "no order"),
        (lambda: tw.arange(1j), TypeError, "no order"),
        (lambda: complex(x), TypeError, "not a single number"),
        (lambda: float(z[0, 0]), TypeError, "complex"),
    ):
        with pytest.raises(kind, match=text):
            call()


def test_complex_of_one_element() -> None:
    assert complex(tensor(np.complex64(1 + 2j))) == 1 + 2j
    assert complex(tw.asarray([3])) == 3
    assert complex(tw.asarray(2.5)) == 2.5


# ---- functions ----


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_functions_are_those_of_numpy(name: str, shape: tuple[int, ...]) -> None:
    x = numbers(shape, 1)
    expected = FUNCTIONS[name](x.astype(complex))
    got = getattr(tw, name)(tensor(x))
    assert got.dtype == tensor(x).dtype
    close(got, expected)
    if len(shape) > 1:
        z = tw.permute_dims(tensor(x), tuple(range(len(shape)))[::-1])
        close(getattr(tw, name)(z), expected.T)


# Where the standard leaves Python: a zero beside a NaN, by the part that is zero.
OWN = {"tanh": "real", "acosh": "real", "tan": "imag"}


@pytest.mark.parametrize("name", OF_CMATH)
def test_special_cases_are_those_of_annex_g(name: str) -> None:
    """Python's cmath has them, and raises where a flag would be set: those come from NumPy."""
    got = np.asarray(getattr(tw, name)(tensor(ODD.astype(NUMBER))))
    with np.errstate(all="ignore"):
        others = FUNCTIONS[name](ODD.astype(complex))
    for z, y, other in zip(ODD, got, others, strict=True):
        if name in OWN and getattr(z, OWN[name]) == 0 and np.isnan(z):
            continue
        try:
            expected = getattr(cmath, name)(complex(z))
        except (ValueError, OverflowError):
            expected = complex(other)
        for a, b in ((y.real, expected.real), (y.imag, expected.imag)):
            if np.isnan(b) or np.isinf(b):  # the sign of some infinities is left open
                assert np.isnan(a) == np.isnan(b), (z, y, expected)
                assert np.isinf(a) == np.isinf(b), (z, y, expected)
            elif b == 0:
                assert a == 0, (z, y, expected)
            else:
                assert a == pytest.approx(b, rel=1e-6), (z, y, expected)


@pytest.mark.parametrize(
    ("name", "z", "expected"),
    [
        ("expm1", complex(0, 0), complex(0, 0)),
        ("expm1", complex(float("inf"), 0), complex(float("inf"), 0)),
        ("expm1", complex(float("-inf"), 1), complex(-1, 0)),
        ("expm1", complex(float("-inf"), float("inf")), complex(-1, 0)),
        ("expm1", complex(1, float("inf")), complex(float("nan"), float("nan"))),
        ("expm1", complex(float("nan"), 0), complex(float("nan"), 0)),
        ("tanh", complex(0, float("nan")), complex(0, float("nan"))),
        ("tanh", complex(1, float("nan")), complex(float("nan"), float("nan"))),
        ("log1p", complex(-1, 0), complex(float("-inf"), 0)),
        ("log1p", complex(2, float("inf")), complex(float("inf"), np.pi / 2)),
        ("log1p", complex(float("-inf"), 1), complex(float("inf"), np.pi)),
        ("log1p", complex(float("inf"), 1), complex(float("inf"), 0)),
        ("log1p", complex(float("-inf"), float("inf")), complex(float("inf"), 3 * np.pi / 4)),
        ("log1p", complex(float("nan"), float("inf")), complex(float("inf"), float("nan"))),
    ],
)
def test_special_cases_of_the_standard(name: str, z: complex, expected: complex) -> None:
    got = np.asarray(getattr(tw, name)(tensor(np.array([z, z.conjugate()], NUMBER))))
    both = np.array([expected, expected.conjugate()])
    np.testing.assert_allclose(got.real, both.real, rtol=1e-6)
    np.testing.assert_allclose(got.imag, both.imag, rtol=1e-6)


@pytest.mark.parametrize("b", [0.0, 1.0, 2.0, 3.0, 1e16])
def test_zeros_of_infinite_arguments_have_the_sign_of_the_other_part(b: float) -> None:
    """tanh(inf + b j) is 1 + 0j and tan(b + inf j) is 0 + 1j, for each finite b."""
    inf = float("inf")
    for sign in (1.0, -1.0):
        for c in (b, -b):
            y = tw.tanh(complex(sign * inf, c)).item()
            assert y == sign
            assert np.signbit(y.imag) == np.signbit(c)
            y = tw.tan(complex(c, sign * inf)).item()
            assert y == sign * 1j
            assert np.signbit(y.real) == np.signbit(c)


def test_expm1_of_a_negative_zero_is_positive() -> None:
    for z in (complex(-0.0, 0.0), complex(-0.0, -0.0)):
        y = tw.expm1(tensor(np.array([z], NUMBER)))[0].item()
        assert y == 0
        assert not np.signbit(y.real)
        assert np.signbit(y.imag) == np.signbit(z.imag)


def test_functions_near_zero() -> None:
    x = (numbers((50,), 3) * 1e-6).astype(np.complex64)
    wide = x.astype(complex)
    series = wide + wide**2 / 2
    np.testing.assert_allclose(np.asarray(tw.expm1(tensor(x))), series, rtol=2e-7)
    np.testing.assert_allclose(np.asarray(tw.log1p(tensor(x))), wide - wide**2 / 2, rtol=2e-7)


def test_magnitudes_do_not_overflow() -> None:
    x = np.array([3e38 + 1e38j, 1e-40j, complex(float("inf"), float("nan"))], np.complex64)
    got = np.asarray(tw.abs(tensor(x)))
    np.testing.assert_allclose(got, np.abs(x.astype(complex)), rtol=1e-6)


def test_directions() -> None:
    x = np.array([3e38 - 3e38j, 1e-40j, 0, -2], np.complex64)
    half = np.sqrt(np.float32(0.5))
    close(tw.sign(tensor(x)), np.array([half - half * 1j, 1j, 0, -1]))
    assert tw.sign(3j).item() == 1j
    assert tw.abs(3 - 4j).item() == 5


def test_powers() -> None:
    a, b = numbers((40,), 4), numbers((40,), 5)
    close(tw.pow(tensor(a), tensor(b)), a.astype(complex) ** b.astype(complex), 5e-6)
    for n in (0, 1, 2, 3, 7, -1, -2, 0.5, 1j, 2 - 1j):
        close(tensor(a) ** n, a.astype(complex) ** n, 5e-6)
        if n not in (0.5, 1j, 2 - 1j):
            continue
        close(n ** tensor(a), n ** a.astype(complex), 5e-6)
    exact = np.asarray(tensor(np.array([1 + 2j, -3j], np.complex64)) ** 3)
    np.testing.assert_array_equal(exact, [(1 + 2j) ** 3, 27j])
    exponents = np.array([0, 2, 0.5, 1 + 1j, 0.25 - 3j, -1 + 1j, 1j], "c8")
    zero = np.asarray(tensor(np.zeros(7, np.complex64)) ** tensor(exponents))
    np.testing.assert_array_equal(zero[:5], [1, 0, 0, 0, 0])
    assert np.isnan(zero[5:]).all()
    z = tensor(a)
    z **= 2
    close(z, a.astype(complex) ** 2)


def test_rounding_is_of_both_parts() -> None:
    x = np.array([1.5 - 2.5j, 0.5 + 0.4j, -1.2 - 1.7j], np.complex64)
    np.testing.assert_array_equal(np.asarray(tw.round(tensor(x))), np.round(x))


def test_tests_of_values() -> None:
    z = tensor(ODD)
    for name in ("isfinite", "isinf", "isnan"):
        np.testing.assert_array_equal(np.asarray(getattr(tw, name)(z)), getattr(np, name)(ODD))
    np.testing.assert_array_equal(np.asarray(z == z.copy()), ~np.isnan(ODD))
    np.testing.assert_array_equal(np.asarray(z != 1), ODD != 1)


def test_a_condition_is_true_where_any_part_is() -> None:
    z = np.array([0, 1j, 2, complex(0, np.nan)], NUMBER)
    np.testing.assert_array_equal(np.asarray(tw.where(tensor(z), 1.0, 2.0)), np.where(z, 1.0, 2.0))


# ---- gradients ----


def gradients(f, *arrays: np.ndarray, seed: int = 7):
    """Of a random real-valued projection of f, by this engine and by PyTorch."""
    ours = [tensor(x).requires_grad_() for x in arrays]
    theirs = [torch.tensor(x).requires_grad_() for x in arrays]
    y, t = f(tw, *ours), f(torch, *theirs)
    assert y.shape == tuple(t.shape)
    g = np.random.default_rng(seed).normal(size=y.shape).astype(REAL)
    if t.is_complex():
        g = (g + 1j * np.random.default_rng(seed + 1).normal(size=y.shape)).astype(NUMBER)
    y.backward(tensor(g))
    t.backward(torch.tensor(g))
    return [(a.grad, b.grad) for a, b in zip(ours, theirs, strict=True)]


def agree(f, *arrays: np.ndarray, tolerance: float = 2e-5) -> None:
    for got, expected in gradients(f, *arrays):
        assert str(got.dtype) == str(expected.numpy().dtype)
        close(got, expected.numpy(), tolerance)


DIFFERENTIABLE = [n for n in FUNCTIONS if n not in ("sign",)] + ["abs", "angle", "real", "imag"]
DIFFERENTIABLE += ["view_as_real", "sum", "mean", "prod"]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_are_those_of_pytorch(name: str) -> None:
    agree(lambda m, z: getattr(m, name)(z), numbers((4, 5), 8))


def test_gradients_of_what_is_named_otherwise() -> None:
    z, w = numbers((4, 5), 9), numbers((5, 3), 10)
    x = z.real.copy()
    agree(lambda m, z: m.conj(z) * z, z)
    agree(lambda m, z: (m.sign if m is tw else m.sgn)(z), z)
    agree(lambda m, z: m.reshape(z, (2, 10)), z)
    agree(lambda m, z: z[1:, ::2], z)
    agree(lambda m, z: z.real * 2 + z.imag, z)
    agree(lambda m, z: z[(tw.asarray if m is tw else torch.tensor)([0, 2, 2])], z)
    agree(lambda m, z: m.var(z, correction=1), z)
    agree(lambda m, z: m.cumsum(z, 0), z)
    agree(lambda m, z: m.cumprod(z, 1), z)
    agree(lambda m, z: m.flip(m.cumprod(m.flip(z, (0,)), 0), (0,)), z)
    agree(lambda m, z: m.concat([z, z * 1j]), z)
    agree(lambda m, z: m.tril(m.flip(z, (0,))), z)
    agree(lambda m, z: m.where(m.abs(z) > 1, z, z * 2), z)
    agree(lambda m, z, w: m.matmul(z, w), z, w)
    agree(lambda m, z, w: m.matmul(m.stack([z, z * 1j]), w), z, w)
    agree(lambda m, z, w: m.matmul(z, w[:, 0]), z, w)
    agree(lambda m, x, w: x[..., None] * w, x, w)  # real and complex
    agree(lambda m, z, x: z / x + x / z - x * z, z, x)
    agree(lambda m, z, x: z + x, z, x[:1])
    agree(lambda m, z, w: m.pow(z[:, :3], w[:4]), z, w, tolerance=1e-4)
    agree(lambda m, z: z**3 + z**-1 + 2**z, z, tolerance=1e-4)
    agree(lambda m, x, y: m.complex(x, y) ** 2, x, w.T[:1].real.copy().repeat(4, 0))
    agree(lambda m, x, y: m.polar(x, y), np.abs(x), x)
    agree(lambda m, x: m.view_as_complex(m.reshape(x, (2, 5, 2))), x)


def test_gradients_at_zero() -> None:
    zero = np.zeros((2,), NUMBER)
    for name, other in (("abs", "abs"), ("sign", "sgn")):
        agree(lambda m, z, n=name, t=other: getattr(m, n if m is tw else t)(z), zero)


def test_second_gradients() -> None:
    x = numbers((5,), 11)

    def norm(m, z):
        return m.sum(m.abs(m.exp(z) * z) ** 2)

    z = tensor(x).requires_grad_()
    (g,) = tw.grad(norm(tw, z), [z], create_graph=True)
    (gg,) = tw.grad(tw.sum(tw.abs(g) ** 2), [z])
    t = torch.tensor(x).requires_grad_()
    (h,) = torch.autograd.grad(norm(torch, t), [t], create_graph=True)
    (hh,) = torch.autograd.grad(torch.sum(torch.abs(h) ** 2), [t])
    close(g, h.detach().numpy(), 1e-4)
    close(gg, hh.numpy(), 1e-3)


def test_a_complex_loss_needs_a_gradient() -> None:
    z = tensor(numbers(())).requires_grad_()
    with pytest.raises(RuntimeError, match="is complex; give the gradient"):
        (z * z).backward()


def test_recorded_changes_in_place() -> None:
    def changed(m, z):
        y = z * 2
        y *= z
        y[1:] = y[:-1] * 1j
        return y

    x = numbers((4,), 12)
    z = tensor(x).requires_grad_()
    changed(tw, z).backward(tensor(numbers((4,), 13)))
    t = torch.tensor(x).requires_grad_()
    y = t * 2
    y = y * t
    y = torch.cat([y[:1], y[:-1] * 1j])
    y.backward(torch.tensor(numbers((4,), 13)))
    close(z.grad, t.grad.numpy())


def test_recorded_changes_of_parts_are_refused() -> None:
    z = tensor(numbers((3,))).requires_grad_() * 1
    with pytest.raises(RuntimeError, match="in-place"):
        z.real[0] = 1


@pytest.mark.parametrize("shape", [(3, 4, 5), (64, 65, 66), (1, 200, 1), (5, 0, 3)])
def test_products(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b = numbers((m, k), 14), numbers((k, n), 15)
    close(tw.matmul(tensor(a), tensor(b)), a.astype(complex) @ b.astype(complex), 2e-5)
    close(tw.matmul(tensor(a.T).mT, tensor(b[::-1].copy())[::-1]), a.astype(complex) @ b, 2e-5)


def test_gradcheck() -> None:
    z = tw.asarray(numbers((3,), 20).astype(complex)).requires_grad_()
    w = tw.asarray(numbers((3,), 21).astype(complex)).requires_grad_()
    x = tw.asarray(np.array([0.5, 1.5, -2.0])).requires_grad_()
    for f, inputs in (
        (lambda z, w: tw.exp(z) * w / (z + 3), (z, w)),
        (lambda z, x: (tw.abs(z) * x, tw.conj(z)), (z, x)),
        (lambda x: tw.polar(x * x, x), (x,)),
    ):
        for fast in (False, True):
            assert tw.gradcheck(f, inputs, fast=fast)
            assert tw.gradgradcheck(f, inputs, fast=fast)

    class Wrong(tw.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]  # without the conjugate

    with pytest.raises(RuntimeError, match="d output 0"):
        tw.gradcheck(Wrong.apply, z)
    with pytest.raises(TypeError, match="is complex64; differences need complex128"):
        tw.gradcheck(tw.exp, tw.ones((2,), dtype=tw.complex64).requires_grad_())


@pytest.mark.parametrize(("dtype", "reach"), [("complex64", 25), ("complex128", 170)])
def test_whole_powers_leave_the_range_part_by_part(dtype: str, reach: int) -> None:
    """Where one part overflows the other is no NaN, and nothing overflows on the way."""
    large, small = 10.0**reach, 10.0**-reach
    for z, n, expected in (
        (large, 2, (math.inf, 0)),
        (-large, 3, (-math.inf, 0)),
        (complex(0, large), 2, (-math.inf, 0)),
        (complex(0, large), 3, (0, -math.inf)),
        (complex(large, large), 4, (-math.inf, 0)),
        (large, -2, (0, 0)),
        (small, 2, (0, 0)),
        (small, -3, (math.inf, 0)),
        (complex(small, small), -2, (0, -math.inf)),
    ):
        y = (tw.tensor([z], dtype=getattr(tw, dtype)) ** n).tolist()[0]
        assert (y.real, y.imag) == expected, (z, n)
    # The square of a number whose inverse square alone is in range.
    x = tw.tensor([complex(1e158, 0)], dtype=tw.complex128) ** -2
    assert x.tolist()[0] == pytest.approx(1e-316, rel=1e-6)
