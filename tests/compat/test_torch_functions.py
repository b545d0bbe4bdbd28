"""Small functions and slopes of samples, against PyTorch and NumPy."""

from __future__ import annotations

import re

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


def test_the_diagonal_is_filled() -> None:
    for shape in ((3, 3), (2, 4), (4, 2), (3, 3, 3)):
        got, want = tw.zeros(shape), torch.zeros(shape)
        assert got.fill_diagonal_(2.5) is got
        np.testing.assert_array_equal(got, want.fill_diagonal_(2.5))
    x = tw.asarray(X[:, :2]).requires_grad_()
    (x * 1).fill_diagonal_(0.0).sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    for x, wrap in ((tw.ones(2), False), (tw.ones(2, 3, 3), False), (tw.ones(4, 2), True)):
        with pytest.raises(ValueError, match="fill_diagonal_: "):
            x.fill_diagonal_(1.0, wrap)


def test_names_of_devices_and_conjugates() -> None:
    assert tw.set_default_device is tw.set_device
    assert tw.get_default_device() == "cpu"
    x = tw.asarray(X * 1j)
    assert x.resolve_conj() is x


def test_names_that_are_not_there_tell_what_to_write() -> None:
    for name, remedy in tw._core._remedies("package").items():
        assert hasattr(torch, name) or name in ("symeig", "range")
        with pytest.raises(AttributeError, match=f"no attribute '{name}': ") as caught:
            getattr(tw, name)
        assert str(caught.value).endswith(remedy)
        for other in re.findall(r"linalg has ([a-z_]+)", remedy):
            assert callable(getattr(tw.linalg, other))
    with pytest.raises(AttributeError, match=r"no attribute 'nowhere'$"):
        tw.nowhere  # noqa: B018  (looking for the name is what raises)
