"""Small functions and slopes of samples, against PyTorch and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")

X = np.array([[2.5, -1.0, 0.25], [3.0, 7.5, -0.0]])


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: m.isreal(x),
        lambda m, x: m.isreal(x * 1j),
        lambda m, x: x.isreal(),
        lambda m, x: m.msort(x),
        lambda m, x: m.adjoint(x * (1 + 1j)),
        lambda m, x: m.ldexp(x, x),
        lambda m, x: m.mvlgamma(abs(x) + 3, 3),
        lambda m, x: x.split_with_sizes([1, 2], dim=1)[1],
        lambda m, x: m.split_with_sizes(x, [0, 2])[1],
    ],
)
def test_results_are_pytorchs(call) -> None:
    got, want = call(tw, tw.asarray(X)), call(torch, torch.tensor(X))
    np.testing.assert_allclose(got, want.resolve_conj(), rtol=1e-12)


def test_gradients() -> None:
    x = tw.asarray(abs(X) + 2)
    assert tw.gradcheck(lambda x: tw.mvlgamma(x, 3), (x.requires_grad_(),))
    assert tw.gradcheck(lambda x: tw.ldexp(x, 2.0) + tw.ldexp(x, x), (x,))
    assert tw.gradcheck(lambda x: tw.gradient(x, axis=1, edge_order=2), (x,))


def test_questions_about_one_element() -> None:
    assert tw.is_nonzero(tw.asarray([2.0]))
    assert not tw.asarray(0).is_nonzero()
    with pytest.raises(ValueError, match="one element"):
        tw.is_nonzero(tw.ones(2))


def test_dimensions_of_the_gamma_function() -> None:
    assert np.isposinf(tw.mvlgamma(tw.asarray([0.5]), 2).item())  # a pole
    with pytest.raises(ValueError, match="p must be"):
        tw.mvlgamma(tw.ones(1), 0)


PLACES = np.array([0.0, 1.0, 1.5, 4.0])
SAMPLES = np.random.default_rng(0).normal(size=(5, 4))


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize(
    ("spacing", "options"),
    [
        ((), {}), ((2.0,), {}), ((2.0, 3.0), {}), ((2.0, PLACES), {}),
        ((), {"axis": 0}), ((PLACES,), {"axis": -1}), ((0.5,), {"axis": (1, 0)}),
    ],
)  # fmt: skip
def test_slopes_are_numpys(spacing, options, edge_order) -> None:
    got = tw.gradient(tw.asarray(SAMPLES), *spacing, edge_order=edge_order, **options)
    want = np.gradient(SAMPLES, *spacing, edge_order=edge_order, **options)
    got, want = (x if isinstance(x, (tuple, list)) else [x] for x in (got, want))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
