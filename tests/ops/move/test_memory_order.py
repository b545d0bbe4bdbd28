"""Ops along axes of operands whose memory has its axes in another order: no copies, same values."""

from itertools import permutations

import numpy as np
import pytest
from cases import arrays

import tilewright as tw

torch = pytest.importorskip("torch")

SHAPE = (5, 7, 6)
ONE_AXIS = {
    "softmax": (tw.softmax, torch.softmax),
    "log_softmax": (tw.log_softmax, torch.log_softmax),
    "cumulative_sum": (lambda x, axis: tw.cumulative_sum(x, axis=axis), torch.cumsum),
    "cumulative_prod": (lambda x, axis: tw.cumulative_prod(x, axis=axis), torch.cumprod),
    "logcumsumexp": (tw.logcumsumexp, torch.logcumsumexp),
    "cummax": (lambda x, axis: tw.cummax(x, axis)[0], lambda x, axis: torch.cummax(x, axis)[0]),
    "cummin": (lambda x, axis: tw.cummin(x, axis)[0], lambda x, axis: torch.cummin(x, axis)[0]),
    "max": (lambda x, axis: tw.max(x, axis=axis), torch.amax),
    "prod": (lambda x, axis: tw.prod(x, axis=axis), torch.prod),
}


def moved(values, order):
    """The values, their memory's axes in this order."""
    x = tw.asarray(np.ascontiguousarray(values.transpose(order)))
    return tw.permute_dims(x, tuple(int(i) for i in np.argsort(order))).detach()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ONE_AXIS)
def test_values_and_gradients(name: str, dtype: str, rng) -> None:
    ours, theirs = ONE_AXIS[name]
    values = rng.normal(size=SHAPE).round(1).astype(dtype)  # some are equal
    close = {"rtol": 2e-6 if dtype == "float32" else 1e-13, "atol": 1e-6}
    for order in permutations(range(3)):
        for axis in (0, 1, 2, -1):
            x = moved(values, order).requires_grad_()
            y = ours(x, axis)
            t = torch.tensor(values, requires_grad=True)
            want = theirs(t, axis)
            np.testing.assert_allclose(arrays.array(y), want.detach().numpy(), **close)
            weights = rng.normal(size=want.shape).astype(dtype)
            (y * tw.asarray(weights)).sum().backward()
            (want * torch.tensor(weights)).sum().backward()
            np.testing.assert_allclose(arrays.array(x.grad), t.grad.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (0, 2), (2, 0), (-1, -2), (0, 1, 2), None])
def test_lists_of_axes(axes, rng) -> None:
    values = rng.normal(size=SHAPE).round(0)
    for order in permutations(range(3)):
        x, plain = moved(values, order).requires_grad_(), tw.asarray(values).requires_grad_()
        weights = tw.asarray(rng.normal(size=SHAPE))
        for each in (x, plain):
            (tw.max(each, axis=axes, keepdims=True) * weights).sum().backward()
        np.testing.assert_allclose(arrays.array(x.grad), arrays.array(plain.grad), 1e-12, 1e-12)


def test_the_result_lies_as_the_operand_and_nothing_is_copied() -> None:
    x = tw.rand(3, 4, 5).permute((2, 0, 1))
    with tw.explain() as report:
        y = tw.softmax(x, axis=1)
    assert [entry.op for entry in report] == ["softmax"]
    assert y.stride() == x.stride()


def test_gaps_are_copied_as_before(rng) -> None:
    values = rng.normal(size=(6, 8))
    x = tw.asarray(values)[::2, 1:5].T
    want = torch.softmax(torch.tensor(values)[::2, 1:5].T, 0)
    np.testing.assert_allclose(arrays.array(tw.softmax(x, axis=0)), want.numpy(), 1e-12)


def test_gradients_of_gradients(rng) -> None:
    x = moved(rng.normal(size=(3, 4)), (1, 0)).requires_grad_()
    assert tw.autograd.gradgradcheck(lambda x: tw.softmax(x, axis=0), (x,))
    assert tw.autograd.gradgradcheck(lambda x: tw.cumulative_prod(x, axis=1), (x,))


@pytest.mark.parametrize("k", [0, 3, -2, 7, -7, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles(name: str, k: int, rng) -> None:
    values = rng.normal(size=SHAPE)
    within = max(-9, min(9, k))  # as far as the matrix reaches
    for order in permutations(range(3)):
        x = moved(values, order).requires_grad_()
        y = getattr(tw, name)(x, k)
        np.testing.assert_array_equal(arrays.array(y.detach()), getattr(np, name)(values, within))
        assert y.is_contiguous
        weights = rng.normal(size=SHAPE)
        (slope,) = tw.grad(y, [x], tw.asarray(weights), create_graph=True)
        expected = getattr(np, name)(weights, within)
        np.testing.assert_array_equal(arrays.array(slope.detach()), expected)
        changed = moved(values, order)
        getattr(changed, name + "_")(k)
        np.testing.assert_array_equal(arrays.array(changed), getattr(np, name)(values, within))


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_close_values(dtype: str, equal_nan: bool, rng) -> None:
    a = rng.normal(size=SHAPE) * 100
    b = a * (1 + rng.choice([0, 1e-6, 1e-3], SHAPE))
    if dtype != "int32":
        a[0, 0, 0] = b[0, 0, 0] = a[1, 1, 1] = np.nan
        b[2, 2, 2] = a[2, 2, 2] = np.inf
    a, b = a.astype(dtype), b.astype(dtype)
    for first in permutations(range(3)):
        for second in permutations(range(3)):
            y = tw.isclose(moved(a, first), moved(b, second), equal_nan=equal_nan)
            np.testing.assert_array_equal(arrays.array(y), np.isclose(a, b, equal_nan=equal_nan))
            if first == second and dtype != "int32":
                assert y.stride() == moved(a, first).stride()
        y = tw.isclose(moved(a, first), tw.asarray(b[0]), equal_nan=equal_nan)
        np.testing.assert_array_equal(arrays.array(y), np.isclose(a, b[0], equal_nan=equal_nan))
