"""Complex numbers on the GPU: functions, sums, products and gradients are NumPy's and the CPU's."""

from __future__ import annotations

import numpy as np
import pytest
from cases.complex_functions import FUNCTIONS, ODD, OF_CMATH

import tilewright as tw

pytestmark = pytest.mark.skipif(
    not tw.cuda.is_available(), reason=f"no GPU: {tw.cuda.why_unavailable()}"
)
TYPES = ("complex64", "complex128")
SHAPES = ((), (0,), (7,), (4, 5))
# Sizes at which intermediate squares, or exponentials, are no numbers.
EXTREME = (1e-320, 1e-200, 1e-20, 0.3, 1.0, 20.0, 709.5, 711.0, 1e15, 1e160, 1.2e308)


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def gpu(x: np.ndarray) -> tw.Tensor:
    return tw.asarray(np.array(x, order="C"), copy=True).to("cuda")


def back(y: tw.Tensor) -> np.ndarray:
    assert y.device == "cuda:0"
    return np.array(y.detach().to("cpu"))


def close(got: tw.Tensor, expected: np.ndarray, ulps: float = 8) -> None:
    """In units of the last place of an element's size."""
    y = back(got)
    assert y.shape == expected.shape
    assert np.iscomplexobj(y) == np.iscomplexobj(expected)
    unit = np.finfo(y.dtype).eps
    assert (np.abs(y - expected) <= ulps * unit * np.abs(expected)).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_those_of_numpy(name: str, dtype: str) -> None:
    for shape in SHAPES:
        x = numbers(shape, dtype, 1)
        y = getattr(tw, name)(gpu(x))
        assert str(y.dtype) == dtype
        close(y, FUNCTIONS[name](x.astype(np.clongdouble)))
    x = numbers((4, 6), dtype, 2)
    close(getattr(tw, name)(gpu(x).T[::2]), FUNCTIONS[name](x.astype(np.clongdouble)).T[::2])


def agree(y: np.ndarray, expected: np.ndarray, inputs: np.ndarray, ulps: float) -> None:
    """NaNs and infinities are where they are, and each part is as exact as the whole."""
    size = np.maximum(np.abs(expected.real), np.abs(expected.imag))
    unit = np.finfo(expected.dtype).eps
    for a, b in ((y.real, expected.real), (y.imag, expected.imag)):
        for z, p, q, s in zip(inputs, a, b, size, strict=True):
            assert np.isnan(p) == np.isnan(q), (z, p, q)
            if np.isnan(q):
                continue
            assert np.isinf(p) == np.isinf(q), (z, p, q)
            if not np.isinf(q):
                assert abs(p - q) <= ulps * unit * (s if np.isfinite(s) else abs(q)) + 1e-307, (
                    z, p, q,
                )  # fmt: skip


@pytest.mark.parametrize("name", OF_CMATH)
def test_special_cases_are_the_cpus(name: str) -> None:
    """Which tests/ops/pointwise/test_complex.py holds against those of Annex G."""
    x = ODD.astype(complex)
    agree(back(getattr(tw, name)(gpu(x))), np.asarray(getattr(tw, name)(tw.asarray(x))), x, 16)


@pytest.mark.parametrize("name", [*OF_CMATH, "expm1", "log1p", "log2", "log10"])
def test_small_and_large_numbers(name: str) -> None:
    parts = [s * e for e in EXTREME for s in (1, -1)] + [0.0]
    x = np.array([complex(a, b) for a in parts for b in parts])
    # The sine and cosine of so large angles are the processor's own in the emulator.
    agree(back(getattr(tw, name)(gpu(x))), np.asarray(getattr(tw, name)(tw.asarray(x))), x, 64)


def test_signs_on_the_cuts() -> None:
    """The side of a cut is told by the sign of a zero."""
    lines = np.array([complex(a, b) for a in (-3.0, -0.5, 0.5, 3.0) for b in (0.0, -0.0)])
    for x in (lines, np.array([complex(z.imag, z.real) for z in lines])):
        for name in ("log", "sqrt", "asin", "acos", "atan", "asinh", "acosh", "atanh"):
            got = back(getattr(tw, name)(gpu(x)))
            expected = np.asarray(getattr(tw, name)(tw.asarray(x)))
            np.testing.assert_allclose(got, expected, rtol=1e-14, atol=1e-14, err_msg=name)


@pytest.mark.parametrize("dtype", TYPES)
def test_powers(dtype: str) -> None:
    a, b = numbers((40,), dtype, 4), numbers((40,), dtype, 5)
    wide = a.astype(complex)
    close(gpu(a) ** gpu(b), wide ** b.astype(complex), 64)
    for n in (0, 1, 2, 3, 7, -1, -2, 0.5, 1j, 2 - 1j):
        close(gpu(a) ** n, wide**n, 64)
    close((2 - 1j) ** gpu(a), (2 - 1j) ** wide, 64)
    odd = gpu(np.zeros(5, dtype)) ** gpu(np.array([0, 2, 1 - 2j, -1, 1j], dtype))
    np.testing.assert_array_equal(back(odd)[:3], [1, 0, 0])
    assert np.isnan(back(odd)[3:]).all()
    exact = back(gpu(np.array([1 + 2j, -3j], dtype)) ** 3)
    np.testing.assert_array_equal(exact, [(1 + 2j) ** 3, 27j])


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_of_other_types_take_part(dtype: str) -> None:
    x, r = numbers((3, 5), dtype, 6), np.arange(5, dtype=np.float32)
    wide = x.astype(complex)
    close(gpu(x) * gpu(r) + 2, wide * r + 2)
    close(gpu(r) - gpu(x) * (0.5 - 2j), r - wide * (0.5 - 2j))
    close(3 / gpu(x), 3 / wide)
    close(gpu(r) * 1j, r * 1j)
    np.testing.assert_array_equal(back(gpu(x) == gpu(x[:1])), x == x[:1])
    np.testing.assert_array_equal(back(gpu(x) != x[0, 0].item()), x != x[0, 0])
    for name in ("isfinite", "isinf", "isnan", "logical_not"):
        np.testing.assert_array_equal(back(getattr(tw, name)(gpu(ODD))), getattr(np, name)(ODD))
    z = gpu(x)
    z *= 2j
    z[1] = z[0] + 1
    np.testing.assert_allclose(back(z)[1], x[0] * 2j + 1, rtol=1e-6)


def test_a_condition_is_true_where_any_part_is() -> None:
    z = np.array([0, 1j, 2, complex(0, np.nan)])
    np.testing.assert_array_equal(back(tw.where(gpu(z), 1.0, 2.0)), np.where(z, 1.0, 2.0))


# Rows in a warp, in a block, and cut between blocks; sums down columns; several axes.
REDUCED = [((3, 70), 1), ((2, 1500), 1), ((2, 20000), 1), ((40, 33), 0), ((4, 5, 6), (0, 2))]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("shape", "axis"), REDUCED)
def test_reductions(shape: tuple[int, ...], axis: object, dtype: str) -> None:
    x = numbers(shape, dtype, 7)
    wide = x.astype(np.clongdouble)
    z = gpu(x)
    close(tw.sum(z, axis), wide.sum(axis), 64)
    close(tw.mean(z, axis), wide.mean(axis), 64)
    close(tw.var(z, axis), wide.var(axis), 64)
    close(tw.std(z, axis), wide.std(axis), 64)
    unit = wide / np.abs(wide)
    close(tw.prod(gpu(unit.astype(dtype)), axis), unit.astype(dtype).astype(wide.dtype).prod(axis),
          4 * x.size)  # fmt: skip
    x[x.real < 0] = 0
    z = gpu(x)
    np.testing.assert_array_equal(back(tw.any(z, axis)), x.any(axis))
    np.testing.assert_array_equal(back(tw.all(z, axis)), x.all(axis))
    np.testing.assert_array_equal(back(tw.count_nonzero(z, axis)), np.count_nonzero(x, axis))


@pytest.mark.parametrize("dtype", TYPES)
def test_infinite_parts_stay_apart(dtype: str) -> None:
    x = np.array([complex(1, np.inf), 2], dtype)
    np.testing.assert_array_equal(back(tw.mean(gpu(x))), complex(1.5, np.inf))
    product = tw.matmul(gpu(x[None, :1]), gpu(np.array([[1]], dtype)))
    assert np.isnan(back(product).real)  # inf * 0
    assert np.isinf(back(product).imag)


@pytest.mark.parametrize("rung", ["naive", "tiled", "registers"])
@pytest.mark.parametrize("dtype", TYPES)
def test_products_on_each_rung(rung: str, dtype: str) -> None:
    for m, k, n in ((1, 1, 1), (3, 70, 5), (33, 31, 35), (65, 17, 66)):
        a, b = numbers((m, k), dtype, m), numbers((k, n), dtype, n)
        wide = a.astype(complex) @ b.astype(complex)
        scale = np.abs(a) @ np.abs(b)
        with tw.kernels.use(matmul=rung):
            for y in (
                gpu(a) @ gpu(b),
                gpu(a.T).T @ gpu(b.T).T,
                tw.stack([gpu(a), gpu(a)])[1] @ gpu(b),
            ):
                error = np.abs(back(y) - wide)
                assert (error <= 4 * np.finfo(y_real(dtype)).eps * scale).all()
    whole = gpu(numbers((40, 40), dtype)) @ gpu(numbers((2, 40, 40), dtype))
    assert whole.shape == (2, 40, 40)


def y_real(dtype: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}[dtype]


def test_rungs_of_tensor_cores_refuse() -> None:
    x = gpu(numbers((4, 4), "complex64"))
    for rung in ("tensor", "split", "bf16x6"):
        with tw.kernels.use(matmul=rung), pytest.raises(ValueError, match="for "):
            x @ x


# ---- gradients ----

FUNCTIONS_WITH_GRADIENTS = {
    **{name: lambda z, n=name: getattr(tw, n)(z) for name in FUNCTIONS if name != "sign"},
    "parts": lambda z: tw.abs(z) + tw.angle(z) * z.real - z.imag,
    "direction": tw.sign,
    "conjugates": lambda z: tw.conj(z) * z * z,
    "quotient": lambda z: z / (z * z + 2),
    "power": lambda z: (z + 3) ** z + z**3,
    "sums": lambda z: tw.sum(z, 0) + tw.mean(z) + tw.prod(z, 0),
    "deviation": lambda z: tw.var(z, 1) + tw.std(z, 0)[:1],
    "norm": tw.linalg.vector_norm,
    "cumulated": lambda z: tw.cumsum(z, 0) * tw.cumulative_prod(z, 1),
    "product": lambda z: z @ tw.conj(z).T,
    "joined": lambda z: tw.concat([z, tw.flip(z * 1j, (0,))]),
    "gathered": lambda z: z[tw.asarray([0, 2, 2], device=z.device)],
    "chosen": lambda z: tw.where(tw.abs(z) > 1, z, z * 2),
    "polar": lambda z: tw.polar(tw.abs(z), tw.angle(z)),
    "complex": lambda z: tw.complex(z.imag, z.real) ** 2,
    "pairs": lambda z: tw.view_as_complex(tw.view_as_real(z) * 2) * z,
}


@pytest.mark.parametrize("name", FUNCTIONS_WITH_GRADIENTS)
def test_gradients_are_the_cpus(name: str) -> None:
    """Which tests/ops/pointwise/test_complex.py holds against PyTorch."""
    x = numbers((4, 5), "complex128", 8)
    found = []
    for device in ("cpu", "cuda"):
        z = tw.asarray(x, copy=True).to(device).requires_grad_()
        y = FUNCTIONS_WITH_GRADIENTS[name](z)
        weights = np.cos(np.arange(y.size)).reshape(y.shape)
        tw.sum(tw.real(y * tw.asarray(weights * (1 - 2j)).to(device))).backward()
        assert z.grad.device == y.device
        found.append(np.array(z.grad.to("cpu")))
    scale = np.abs(found[0]).max()
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12, atol=1e-13 * scale)
