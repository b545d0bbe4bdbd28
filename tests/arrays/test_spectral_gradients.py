"""Gradients of eigh and svd where values coincide, against differences of the function itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewright as tw
from tilewright import Tensor

linalg = tw.linalg
RNG = np.random.default_rng(5)


def orthogonal(n: int, m: int | None = None) -> np.ndarray:
    return np.linalg.qr(RNG.normal(size=(n, n if m is None else m)))[0]


def symmetric(*values: float) -> np.ndarray:
    q = orthogonal(len(values))
    return q * np.array(values) @ q.T


def rectangular(rows: int, *values: float) -> np.ndarray:
    return orthogonal(rows, len(values)) * np.array(values) @ orthogonal(len(values))


def weighted(y: Tensor) -> Tensor:
    weights = np.random.default_rng(1).normal(size=y.shape)
    return (y * tw.asarray(weights)).sum()


def polar(x: Tensor) -> Tensor:
    u, _, vh = linalg.svd(x, full_matrices=False)
    return weighted(u @ vh)


def space_of(count: int) -> Callable[[Tensor], Tensor]:
    def f(x: Tensor) -> Tensor:
        vectors = linalg.eigh(x).eigenvectors[:, -count:]
        return weighted(vectors @ vectors.mT)

    return f


def left_space_of(count: int) -> Callable[[Tensor], Tensor]:
    def f(x: Tensor) -> Tensor:
        u = linalg.svd(x, full_matrices=False).U[:, :count]
        return weighted(u @ u.mT)

    return f


def low_rank(count: int) -> Callable[[Tensor], Tensor]:
    def f(x: Tensor) -> Tensor:
        u, s, vh = linalg.svd(x, full_matrices=False)
        return weighted(u[:, :count] * s[:count] @ vh[:count])

    return f


class Smooth(NamedTuple):
    of: Callable[[Tensor], Tensor]
    at: np.ndarray
    hermitian: bool = False


SMOOTH: dict[str, Smooth] = {
    "polar factor of 1": Smooth(polar, np.eye(3)),
    "polar factor, exact": Smooth(polar, np.diag([2.0, 2.0, 1.0])),
    "polar factor, computed": Smooth(polar, rectangular(4, 3.0, 3.0, 3.0, 0.5)),
    "polar factor of a tall one": Smooth(polar, rectangular(6, 3.0, 1.5, 1.5)),
    "polar factor of a wide one": Smooth(polar, rectangular(6, 3.0, 1.5, 1.5).T),
    "space of three": Smooth(space_of(3), symmetric(1.0, 2.0, 5.0, 5.0, 5.0), True),
    "space of the others": Smooth(space_of(2), symmetric(1.0, 1.0, 1.0, 4.0, 6.0), True),
    "left space": Smooth(left_space_of(2), rectangular(5, 4.0, 4.0, 1.0, 1.0)),
    "sum of the singular values": Smooth(
        lambda x: linalg.svd(x, full_matrices=False).S.sum(), rectangular(4, 2.0, 2.0, 1.0)
    ),
    "function of eigenvalues": Smooth(
        lambda x: (linalg.eigh(x).eigenvalues ** 3).sum(), symmetric(2.0, 2.0, 3.0, 3.0), True
    ),
    "few of many that are 0": Smooth(low_rank(2), rectangular(6, 5.0, 3.0, 0.0, 0.0)),
}


def by_differences(f: Smooth, x: np.ndarray) -> np.ndarray:
    """Of symmetric matrices in symmetric directions."""
    step, g = 1e-5, np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        d = np.zeros_like(x)
        d[place] = step
        if f.hermitian:
            d = (d + d.T) / 2
        above, below = (f.of(tw.asarray(x + sign * d)).item() for sign in (1, -1))
        g[place] = (above - below) / (2 * step)
    return g


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions_have_their_gradient(name: str) -> None:
    f = SMOOTH[name]
    x = tw.asarray(f.at).requires_grad_()
    f.of(x).backward()
    assert x.grad is not None
    g = np.asarray(x.grad)
    if f.hermitian:
        g = (g + g.T) / 2
    want = by_differences(f, f.at)
    np.testing.assert_allclose(g, want, rtol=1e-6, atol=1e-6 * abs(want).max())


def test_a_batch_has_its_gradients_one_by_one() -> None:
    batch = np.stack([np.eye(3), rectangular(3, 2.0, 2.0, 1.0), rectangular(3, 3.0, 2.0, 1.0)])
    x = tw.asarray(batch).requires_grad_()
    u, _, vh = linalg.svd(x)
    weights = tw.asarray(np.random.default_rng(1).normal(size=(3, 3)))
    (u @ vh * weights).sum().backward()
    for i, each in enumerate(batch):
        alone = tw.asarray(each).requires_grad_()
        polar(alone).backward()
        np.testing.assert_allclose(x.grad[i], alone.grad, rtol=1e-12, atol=1e-12)


def test_the_polar_factor_of_complex_matrices() -> None:
    q = np.linalg.qr(RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3)))[0]
    x = tw.asarray(2 * q).requires_grad_()
    u, _, vh = linalg.svd(x)
    weights = tw.asarray(RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3)))
    tw.real((u @ vh * weights).sum()).backward()
    # W = X / 2 on the tangent space: of c = W^H G the skew part.
    g = np.conj(np.asarray(weights))
    c = q.conj().T @ g
    np.testing.assert_allclose(x.grad, q @ (c - c.conj().T) / 4, atol=1e-12)


def rebuilt(x: Tensor) -> Tensor:
    u, s, vh = linalg.svd(x)
    return weighted(u * s @ vh)


def rebuilt_of_eigenvectors(x: Tensor) -> Tensor:
    values, vectors = linalg.eigh(x)
    return weighted(vectors * values @ vectors.mT)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (rebuilt, np.eye(3)),
        (rebuilt, rectangular(3, 2.0, 2.0, 1.0)),
        (rebuilt_of_eigenvectors, np.eye(3)),
        (rebuilt_of_eigenvectors, np.zeros((3, 3))),
        (rebuilt_of_eigenvectors, symmetric(2.0, 2.0, 1.0)),
        (lambda x: linalg.eigh(x).eigenvectors[1, 0], np.eye(3)),
    ],
)
def test_what_cannot_be_known_is_no_number(f: Any, x: np.ndarray) -> None:
    of = tw.asarray(x).requires_grad_()
    f(of).backward()
    assert not np.isfinite(np.asarray(of.grad)).all()


def test_the_same_functions_apart_from_coincidence() -> None:
    for f, x in ((rebuilt, rectangular(3, 3.0, 2.0, 1.0)), (polar, rectangular(4, 3.0, 2.0, 1.0))):
        assert tw.gradcheck(f, (tw.asarray(x).requires_grad_(),))
        assert tw.gradgradcheck(f, (tw.asarray(x).requires_grad_(),))
