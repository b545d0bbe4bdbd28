"""Jacobians, Hessians and products with vectors, against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")
ours, theirs = tw.autograd.functional, torch.autograd.functional

# Functions of tensors, in names that both libraries have, with the shapes of their inputs.
FUNCTIONS = {
    "elements": (lambda m, x: m.exp(x) * x, [(2, 3)]),
    "of two": (lambda m, x, y: m.tanh(x) @ y, [(2, 3), (3, 2)]),
    "two of two": (lambda m, x, y: (x * y, m.sin(x).sum()), [(3,), (3,)]),
    "unused": (lambda m, x, y: x * 2.0, [(3,), (2,)]),
    "constant": (lambda m, x: m.ones((2,), dtype=m.float64), [(3,)]),
}
NUMBERS = {
    "cubes": (lambda m, x: (x * x * x).sum(), [(2, 3)]),
    "of two": (lambda m, x, y: (m.sin(x) * y * y).sum(), [(3,), (3,)]),
    "linear": (lambda m, x: x.sum(), [(3,)]),
    "one element": (lambda m, x: m.exp(x).sum().reshape((1,)), [(2,)]),
}


def inputs(shapes, seed=0):
    arrays = [np.random.default_rng(seed + i).normal(size=s) for i, s in enumerate(shapes)]
    made = [tuple(m.tensor(a) for a in arrays) for m in (tw, torch)]
    return [xs[0] if len(xs) == 1 else xs for xs in made]


def results_of(func, like):
    xs = like if isinstance(like, tuple) else (like,)
    ys = func(torch, *xs)
    shapes = [tuple(y.shape) for y in (ys if isinstance(ys, tuple) else (ys,))]
    return inputs(shapes, seed=50)


def same(got, want):
    if isinstance(want, tuple):
        assert isinstance(got, tuple)
        for a, b in zip(got, want, strict=True):
            same(a, b)
    else:
        assert not got.requires_grad
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("recorded", [True, False])
def test_jacobians_and_products(name, recorded):
    func, shapes = FUNCTIONS[name]
    mine, other = inputs(shapes)
    v, w = inputs(shapes, seed=9)
    u, t = results_of(func, other)
    with tw.set_grad_enabled(recorded):
        same(ours.jacobian(lambda *x: func(tw, *x), mine), _plain(
            theirs.jacobian(lambda *x: func(torch, *x), other)))  # fmt: skip
        same(ours.vjp(lambda *x: func(tw, *x), mine, u), _plain(
            theirs.vjp(lambda *x: func(torch, *x), other, t)))  # fmt: skip
        same(ours.jvp(lambda *x: func(tw, *x), mine, v), _plain(
            theirs.jvp(lambda *x: func(torch, *x), other, w)))  # fmt: skip
    for x in mine if isinstance(mine, tuple) else (mine,):
        assert not x.requires_grad
        assert x.grad is None


@pytest.mark.parametrize("name", NUMBERS)
def test_hessians_and_products(name):
    func, shapes = NUMBERS[name]
    mine, other = inputs(shapes)
    v, w = inputs(shapes, seed=9)
    same(ours.hessian(lambda *x: func(tw, *x), mine), _plain(
        theirs.hessian(lambda *x: func(torch, *x), other)))  # fmt: skip
    for product in ("hvp", "vhp"):
        same(getattr(ours, product)(lambda *x: func(tw, *x), mine, v), _plain(
            getattr(theirs, product)(lambda *x: func(torch, *x), other, w)))  # fmt: skip


def _plain(value):
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value.detach()


def test_derivatives_are_differentiated():
    x = tw.asarray([0.5, 2.0])
    x.requires_grad = True
    ours.jacobian(lambda z: z * z * z, x, create_graph=True).sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [3.0, 12.0])
    x.grad = None
    ours.hvp(lambda z: (z**4).sum(), x, tw.ones((2,)), create_graph=True)[1].sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [12.0, 48.0], rtol=1e-6)


def test_a_vector_left_out():
    assert ours.vjp(lambda x: (x * x).sum(), tw.asarray([3.0]))[1].tolist() == [6.0]
    for product in (ours.vjp, ours.jvp, ours.hvp):
        with pytest.raises(ValueError, match="may be left out only where it is one number"):
            product(lambda x: x * 2.0, tw.ones((3,)))


def test_what_does_not_fit():
    x = tw.ones((3,))
    with pytest.raises(ValueError, match=r"jvp: v has shapes \[\(2,\)\], which must be \[\(3,\)\]"):
        ours.jvp(lambda x: x, x, tw.ones((2,)))
    with pytest.raises(ValueError, match="hessian: func must give one number"):
        ours.hessian(lambda x: x, x)
    with pytest.raises(TypeError, match="jacobian: inputs must be tensors, got int"):
        ours.jacobian(lambda x: x, 3)
    with pytest.raises(TypeError, match="jacobian: inputs must be tensors, got float"):
        ours.jacobian(lambda x: x, [2.0])
    with pytest.raises(TypeError, match="vjp: func must give tensors, got NoneType"):
        ours.vjp(lambda x: None, x)
