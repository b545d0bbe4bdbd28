"""Factors, eigenvalues and their reports against PyTorch, NumPy and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import linalg

torch = pytest.importorskip("torch")

DTYPES = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(3, 3), (40, 40), (70, 33), (33, 70), (2, 3, 20, 20), (2, 5, 3), (1, 1)]
EMPTY = [(5, 0), (0, 5), (0, 3, 3), (2, 0, 0)]


def numbers(rng: Any, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    a = rng.normal(size=shape)
    return (a + 1j * rng.normal(size=shape) if dtype.startswith("complex") else a).astype(dtype)


def close(got: tw.Tensor, want: Any, dtype: str) -> None:
    want = np.asarray(want)
    assert str(got.dtype) == str(want.dtype)
    assert got.shape == want.shape
    tolerance = 1e-9 if dtype in ("float64", "complex128") else 5e-3
    np.testing.assert_allclose(np.asarray(got.detach()), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES + EMPTY, ids=str)
def test_elimination_is_pytorchs(shape: tuple[int, ...], dtype: str, rng: Any) -> None:
    a = numbers(rng, shape, dtype)
    for got, want in zip(linalg.lu(tw.asarray(a)), torch.linalg.lu(torch.tensor(a)), strict=True):
        close(got, want, dtype)
    got, want = linalg.lu_factor_ex(tw.asarray(a)), torch.linalg.lu_factor_ex(torch.tensor(a))
    close(got.LU, want.LU, dtype)
    assert (got.pivots.dtype, got.info.dtype) == (tw.int32, tw.int32)
    assert got.pivots.tolist() == want.pivots.tolist()
    assert got.info.tolist() == want.info.tolist()


def test_elimination_without_exchanges(rng: Any) -> None:
    a = numbers(rng, (2, 30, 30), "float64") + 30 * np.eye(30)
    p, lower, upper = linalg.lu(tw.asarray(a), pivot=False)
    np.testing.assert_array_equal(p, np.broadcast_to(np.eye(30), a.shape))
    np.testing.assert_allclose(lower @ upper, a, rtol=1e-12)


def test_singular_matrices_are_told_of() -> None:
    a = np.array([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]]])
    assert linalg.lu_factor_ex(tw.asarray(a)).info.tolist() == [2, 0]
    assert linalg.lu(tw.asarray(a)).U[0, 1, 1].item() == 0.0
    with pytest.raises(linalg.LinAlgError, match=r"^lu_factor: U\[2, 2\], counted from 1, is 0"):
        linalg.lu_factor(tw.asarray(a))
    with pytest.raises(TypeError, match="lu_unpack: pivots are a tensor of int32, got float64"):
        tw.lu_unpack(tw.asarray(a), tw.asarray(a))
    with pytest.raises(ValueError, match="lu_unpack: pivots are rows, from 1 to 2"):
        tw.lu_unpack(tw.asarray(a[0]), tw.asarray([0, 2], dtype=tw.int32))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(2, 4, 4), (4, 2), (2, 4)], ids=str)
def test_gradients_of_elimination(shape: tuple[int, ...], dtype: str, rng: Any) -> None:
    x = tw.asarray(numbers(rng, shape, dtype)).requires_grad_()

    def parts(x: tw.Tensor) -> tuple[tw.Tensor, ...]:
        factors = linalg.lu_factor_ex(x).LU
        return (tw.real(factors), tw.imag(factors)) if x.is_complex() else (factors,)

    assert tw.gradcheck(parts, (x,))
    assert tw.gradgradcheck(parts, (x,))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_equations_by_factors(left: bool, adjoint: bool, dtype: str, rng: Any) -> None:
    a = numbers(rng, (2, 4, 4), dtype)
    b = numbers(rng, (2, 4, 3) if left else (2, 3, 4), dtype)
    x, y = (tw.asarray(each).requires_grad_() for each in (a, b))

    def solved(x: tw.Tensor, y: tw.Tensor) -> tw.Tensor:
        return linalg.lu_solve(*linalg.lu_factor(x), y, left=left, adjoint=adjoint)

    factors = torch.linalg.lu_factor(torch.tensor(a))
    want = torch.linalg.lu_solve(*factors, torch.tensor(b), left=left, adjoint=adjoint)
    close(solved(x, y), want.resolve_conj(), dtype)
    assert tw.gradcheck(lambda x, y: tw.abs(solved(x, y)), (x, y))


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_of_any_matrix(dtype: str, rng: Any) -> None:
    a = numbers(rng, (2, 3, 4, 4), dtype)
    values, vectors = linalg.eig(tw.asarray(a))
    np.testing.assert_allclose(
        a @ np.asarray(vectors), np.asarray(vectors) * np.asarray(values)[..., None, :], atol=1e-4
    )
    want = np.sort_complex(np.linalg.eigvals(a))
    got = np.sort_complex(np.asarray(linalg.eigvals(tw.asarray(a))))
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)
    assert linalg.eigvals(tw.eye(2, dtype=tw.float32)).dtype == tw.complex64
    assert linalg.eig(tw.zeros((0, 3, 3), dtype=tw.float64)).eigenvectors.dtype == tw.complex128


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_of_eigenvalues_are_pytorchs(dtype: str, rng: Any) -> None:
    a = numbers(rng, (2, 4, 4), dtype)
    grads = []
    for module in (tw, torch):
        x = module.asarray(a).requires_grad_()
        values, vectors = module.linalg.eig(x)
        sizes = module.abs(vectors) ** 2
        total = module.real(values**3).sum() + (sizes[..., 0, :] * module.abs(values)).sum()
        (total + module.abs(module.linalg.eigvals(x)).sum()).backward()
        grads.append(np.asarray(x.grad))
    np.testing.assert_allclose(*grads, rtol=1e-9, atol=1e-10)
    x = tw.asarray(a[0]).requires_grad_()
    assert tw.gradcheck(lambda x: tw.abs(linalg.eigvals(x).exp().sum()), (x,))


def test_reports_of_a_batch(rng: Any) -> None:
    a = numbers(rng, (3, 4, 4), "float64")
    positive = a @ a.swapaxes(-1, -2)
    positive[1, 2, 2] = -1.0
    a[2, 1] = 0
    for name, x in (("cholesky_ex", positive), ("inv_ex", a)):
        got = getattr(linalg, name)(tw.asarray(x))
        want = getattr(torch.linalg, name)(torch.tensor(x))
        assert got.info.tolist() == want.info.tolist()
        assert got.info.dtype == tw.int32
        good = np.flatnonzero(np.asarray(got.info) == 0)
        np.testing.assert_allclose(np.asarray(got[0])[good], want[0].numpy()[good], rtol=1e-9)
        assert np.isnan(np.asarray(got[0])).any(axis=(1, 2)).sum() == 1
        with pytest.raises(linalg.LinAlgError):
            getattr(linalg, name)(tw.asarray(x), check_errors=True)
    b = tw.asarray(numbers(rng, (3, 2, 4), "float64"))
    found = linalg.solve_ex(tw.asarray(a[:2]), b[:2], left=False)
    np.testing.assert_allclose(found.result @ tw.asarray(a[:2]), b[:2], rtol=1e-9)
    assert linalg.solve_ex(tw.asarray(a), b, left=False).info.tolist() == [0, 0, 4]
    x = tw.asarray(positive[:1]).requires_grad_()
    assert tw.gradcheck(lambda x: linalg.cholesky_ex(x + x.mT).L, (x,))


def test_products_of_reflections(rng: Any) -> None:
    a = numbers(rng, (5, 3), "float64")
    h, tau = np.linalg.qr(a, mode="raw")
    x, t = (tw.asarray(np.ascontiguousarray(each)).requires_grad_() for each in (h.T, tau))
    np.testing.assert_allclose(
        linalg.householder_product(x, t).detach(), np.linalg.qr(a).Q, atol=1e-13
    )
    assert tw.gradcheck(linalg.householder_product, (x, t))


def test_powers_as_rows(rng: Any) -> None:
    a = numbers(rng, (2, 3), "float64")
    for count in (2, 3, 5, None):
        want = torch.linalg.vander(torch.tensor(a), N=count)
        np.testing.assert_allclose(linalg.vander(tw.asarray(a), N=count), want)
    whole = linalg.vander(tw.asarray([2, -3], dtype=tw.int32), N=4)
    assert (whole.dtype, whole.tolist()) == (tw.int64, [[1, 2, 4, 8], [1, -3, 9, -27]])
    x = tw.asarray([0.0, 2.0], dtype=tw.float64).requires_grad_()
    assert tw.gradcheck(lambda x: linalg.vander(x, N=4), (x,))


def test_maps_between_tensors(rng: Any) -> None:
    a, b = rng.normal(size=(2, 3, 4, 2, 4, 3)), rng.normal(size=(2, 3, 4))
    x, y = tw.asarray(a), tw.asarray(b)
    np.testing.assert_allclose(linalg.tensorinv(x, 3), np.linalg.tensorinv(a, 3), rtol=1e-7)
    np.testing.assert_allclose(linalg.tensorsolve(x, y), np.linalg.tensorsolve(a, b), rtol=1e-7)
    moved = tw.asarray(np.moveaxis(a, 5, 0))
    np.testing.assert_allclose(
        linalg.tensorsolve(moved, y, dims=(0,)), np.linalg.tensorsolve(a, b), rtol=1e-7
    )


def test_the_inverse_by_a_factor(rng: Any) -> None:
    a = numbers(rng, (2, 4, 4), "complex128")
    a = a @ a.conj().swapaxes(-1, -2)
    for upper in (False, True):
        factor = linalg.cholesky(tw.asarray(a), upper=upper)
        np.testing.assert_allclose(tw.cholesky_inverse(factor, upper), np.linalg.inv(a), rtol=1e-8)
