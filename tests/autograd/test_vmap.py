"""Functions over slices, Jacobians by columns, and ensembles, against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import func, nn

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")  # of PyTorch's

X = np.linspace(-1.0, 2.0, 12).reshape(3, 4)
Y = np.cos(X)
W = np.linspace(0.5, 1.5, 20).reshape(4, 5)


def flat(value):
    if isinstance(value, dict):
        return [each for key in sorted(value) for each in flat(value[key])]
    if not isinstance(value, (tuple, list)):
        return [value]
    return [each for part in value for each in flat(part)]


def loss(w, x):
    return ((x @ w) ** 2).sum()


@pytest.mark.parametrize(
    "make",
    [
        lambda f, x, y, w: f.vmap(lambda a, b: a * b)(x, y),
        lambda f, x, y, w: f.vmap(lambda a, b: a * b, in_dims=(1, 1), out_dims=1)(x, y),
        lambda f, x, y, w: f.vmap(lambda a, b: (a.sum(), a * b), in_dims=(0, None))(x, y[0]),
        lambda f, x, y, w: f.vmap(lambda a, b: (a, b), out_dims=(0, -1))(x, y),
        lambda f, x, y, w: f.vmap(lambda p: p["a"] @ p["b"])({"a": x, "b": y}),
        lambda f, x, y, w: f.vmap(lambda p: p[0] + p[1], in_dims=((0, None),))((x, y[0])),
        lambda f, x, y, w: f.vmap(lambda a, scale: a * scale)(x, scale=y[0]),
        lambda f, x, y, w: f.vmap(f.vmap(lambda a, b: a * b), in_dims=1)(x, y),
        lambda f, x, y, w: f.vmap(lambda a: f.vmap(lambda b: a * b)(y))(x),
        lambda f, x, y, w: f.vmap(f.grad(loss), in_dims=(None, 0))(w, x),  # by sample
        lambda f, x, y, w: f.grad(lambda a: f.vmap(lambda b: (a * b).sum())(y).prod())(x[0]),
        lambda f, x, y, w: f.vmap(f.jacrev(lambda a: a**2))(x),
        lambda f, x, y, w: f.vmap(f.hessian(lambda a: (a**3).sum()))(x),
        lambda f, x, y, w: f.jacfwd(lambda a: f.vmap(lambda b: (a * b) ** 2)(y))(x[0]),
        lambda f, x, y, w: f.jacfwd(lambda a: a @ w)(x),
        lambda f, x, y, w: f.jacfwd(lambda a, b: (a**2, a * b), argnums=1)(x[0], y[0]),
        lambda f, x, y, w: f.jacfwd(f.jacrev(lambda a: (a**3).sum()))(x[0]),
        lambda f, x, y, w: f.jacrev(f.jacfwd(lambda a: (a**3).sum()))(x[0]),
        lambda f, x, y, w: f.jacrev(f.jacrev(lambda a: a**3))(x[0]),
        lambda f, x, y, w: f.grad(lambda a: f.jvp(lambda b: b**3, (a,), (y[0],))[1].sum())(x[0]),
        lambda f, x, y, w: f.grad(lambda a: f.vjp(lambda b: b**3, a)[1](y[0])[0].sum())(x[0]),
        lambda f, x, y, w: f.grad(lambda a: f.hessian(lambda b: (b**4).sum())(a).sum())(x[0]),
    ],
)
def test_results_are_pytorchs(make) -> None:
    got = make(func, *map(tw.asarray, (X, Y, W)))
    want = make(torch.func, *map(torch.tensor, (X, Y, W)))
    for a, b in zip(flat(got), flat(want), strict=True):
        assert not a.requires_grad
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_gradients_reach_what_is_outside() -> None:
    w = tw.asarray(W).requires_grad_()
    func.vmap(lambda x: (x @ w).sum())(tw.asarray(X)).sum().backward()
    np.testing.assert_allclose(w.grad, np.repeat(X.sum(0)[:, None], 5, 1), rtol=1e-12)


def test_an_ensemble_is_one_function() -> None:
    models = [nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).eval() for _ in range(2)]
    parameters, buffers = func.stack_module_state(models)
    assert all(x.requires_grad for x in parameters.values())
    x = tw.randn(5, 4)

    def call(parameters, buffers, x):
        return func.functional_call(models[0], (parameters, buffers), x)

    y = func.vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
    assert y.tolist() == tw.stack([model(x) for model in models]).tolist()
    with pytest.raises(ValueError, match="one class"):
        func.stack_module_state([models[0], models[0][0]])
    with pytest.raises(ValueError, match="different names"):
        func.stack_module_state([nn.Linear(2, 1), nn.Linear(2, 1, bias=False)])
    with pytest.raises(ValueError, match="some modules train"):
        func.stack_module_state([nn.Linear(2, 1), nn.Linear(2, 1).eval()])
    frozen = nn.Linear(2, 1)
    frozen.weight.requires_grad_(False)
    with pytest.raises(ValueError, match="weight requires grad in some modules alone"):
        func.stack_module_state([nn.Linear(2, 1), frozen])
    parameters, _ = func.stack_module_state([frozen, frozen])
    assert {name: x.requires_grad for name, x in parameters.items()} == {
        "weight": False,
        "bias": True,
    }


def test_random_numbers_are_refused_anew_or_the_same() -> None:
    x = tw.zeros((3, 2))
    with pytest.raises(RuntimeError, match="drew random numbers"):
        func.vmap(lambda x: x + tw.rand(2))(x)
    rows = func.vmap(lambda x: x + tw.rand(2), randomness="same")(x).tolist()
    assert rows[0] == rows[1] == rows[2]
    rows = func.vmap(lambda x: x + tw.rand(2), randomness="different")(x).tolist()
    assert rows[0] != rows[1] != rows[2]
    with pytest.raises(ValueError, match="randomness is"):
        func.vmap(lambda x: x, randomness="some")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: func.vmap(lambda x: x)(3), ValueError, "for a int"),
        (lambda: func.vmap(lambda x: x, in_dims=2)(tw.ones((2, 2))), ValueError, "in_dims has 2"),
        (lambda: func.vmap(lambda x: x, in_dims=None)(tw.ones(2)), ValueError, "slices nothing"),
        (lambda: func.vmap(lambda x, y: x)(tw.ones(2), tw.ones(3)), ValueError, r"\[2, 3\] differ"),
        (lambda: func.vmap(lambda x: x, in_dims=(0, 0))(tw.ones(2)), ValueError, "form"),
        (lambda: func.vmap(lambda x: x, in_dims=((0,),))(tw.ones(2)), ValueError, "one value"),
        (lambda: func.vmap(lambda x: x)(tw.ones((0, 2))), ValueError, "no slice"),
        (lambda: func.vmap(lambda x: 3.0)(tw.ones(2)), TypeError, "must give tensors"),
        (lambda: func.vmap(lambda x: x, out_dims=3)(tw.ones(2)), ValueError, "out_dims has 3"),
        (lambda: func.vmap(lambda x: x, out_dims=(0, 0))(tw.ones(2)), ValueError, "one value"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call()
