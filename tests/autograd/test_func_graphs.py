"""Which derivatives of func keep a graph, how often a function runs, and Functions on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import Tensor, func, nn
from tilewright.autograd.function import once_differentiable

X = [0.5, -1.5, 2.0]

# Of a function of one tensor, and the same by `tw.grad`: what each gives is one tensor.
DERIVATIVES: dict[str, Callable[..., Tensor]] = {
    "grad": lambda f, x, **more: func.grad(f)(x, **more),
    "grad_and_value": lambda f, x, **more: func.grad_and_value(f)(x, **more)[0],
    "value": lambda f, x, **more: func.grad_and_value(f)(x, **more)[1],
    "vjp": lambda f, x, **more: func.vjp(lambda x: f(x, **more), x)[1](
        tw.asarray(2.0, dtype=tw.float64)
    )[0],
    "jvp": lambda f, x, **more: func.jvp(lambda x: f(x, **more), (x,), (x + 1.0,))[1],
    "jacrev": lambda f, x, **more: func.jacrev(f)(x, **more),
    "jacfwd": lambda f, x, **more: func.jacfwd(f)(x, **more),
    "hessian": lambda f, x, **more: func.hessian(f)(x, **more),
}


def written_out(name: str, f: Callable[..., Tensor], x: Tensor, **more: Any) -> Tensor:
    own = x.detach().requires_grad_()
    y = f(own, **more)
    (g,) = tw.grad(y, own, create_graph=True)
    if name == "hessian":
        return tw.stack([tw.grad(g[i], own, create_graph=True)[0] for i in range(len(X))])
    values = {"value": y, "vjp": g * 2.0, "jvp": (g * (x + 1.0)).sum()}
    return values.get(name, g)


W = tw.tensor(3.0, dtype=tw.float64, requires_grad=True)
MODEL = nn.Linear(3, 1, dtype=tw.float64)


def by_keyword(x: Tensor, *, w: Tensor) -> Tensor:
    return (w * w * x**3).sum()


def hooked(x: Tensor) -> Tensor:
    h = x * x
    if h.requires_grad:
        h.register_hook(lambda g: g * W)
    return (h * x).sum()


CAPTURED: dict[str, tuple[Callable[..., Tensor], dict[str, Any], Tensor]] = {
    "captured": (lambda x: (W * W * x**3).sum(), {}, W),
    "keyword": (by_keyword, {"w": W}, W),
    "model": (lambda x, *, model: (model(x).tanh() * x**2).sum(), {"model": MODEL}, MODEL.weight),
    "by a hook": (hooked, {}, W),
}


@pytest.mark.parametrize("captured", CAPTURED)
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_have_gradients_by_what_the_function_captures(name: str, captured: str) -> None:
    f, more, w = CAPTURED[captured]
    x = tw.asarray(X, dtype=tw.float64)
    got, want = DERIVATIVES[name](f, x, **more), written_out(name, f, x, **more)
    if captured == "by a hook" and name in ("value", "jvp", "jacfwd"):
        return  # in which hooks have no part
    assert got.requires_grad
    np.testing.assert_allclose(got.detach(), want.detach(), rtol=1e-12)
    weights = tw.asarray(np.arange(1.0, got.numel() + 1).reshape(got.shape))
    gradients = [tw.grad((y * weights).sum(), w, allow_unused=True)[0] for y in (got, want)]
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-12)


@pytest.mark.parametrize("name", DERIVATIVES)
def test_without_anything_captured_there_is_no_graph(name: str) -> None:
    x = tw.asarray(X, dtype=tw.float64)
    assert not DERIVATIVES[name](lambda x: (x**3).sum(), x).requires_grad
    with tw.no_grad():
        assert not DERIVATIVES[name](CAPTURED["captured"][0], x).requires_grad
    assert tw.is_grad_enabled()
    assert W.grad is None


@pytest.mark.parametrize("name", DERIVATIVES)
def test_functions_are_called_once(name: str) -> None:
    calls: list[Tensor] = []

    def noisy(x: Tensor) -> Tensor:
        mask = tw.dropout(tw.ones(3, dtype=tw.float64), 0.5) + 1.0
        calls.append(mask)
        return (mask * x**2).sum()

    x = tw.asarray(X, dtype=tw.float64)
    got = DERIVATIVES[name](noisy, x)
    (mask,) = calls
    want = written_out(name, lambda x: (mask * x**2).sum(), x)
    np.testing.assert_allclose(got, want.detach(), rtol=1e-12)


def test_a_batch_counts_once() -> None:
    for derive in (func.jacfwd, func.jacrev):
        norm = nn.BatchNorm1d(3)
        derive(norm)(tw.randn(4, 3))
        assert norm.num_batches_tracked.item() == 1
    norm = nn.BatchNorm1d(3)
    y, back = func.vjp(norm, tw.randn(4, 3))
    back(y)
    back(y)
    assert norm.num_batches_tracked.item() == 1


def test_aux_comes_along() -> None:
    def f(x: Tensor) -> tuple[Tensor, dict[str, Any]]:
        return x * x, {"twice": x * 2.0, "name": "f", "w": W * 1.0}

    x = tw.asarray([1.0, 2.0])
    found = {
        "jacrev": func.jacrev(f, has_aux=True)(x),
        "jacfwd": func.jacfwd(f, has_aux=True)(x),
        "jvp": func.jvp(f, (x,), (x,), has_aux=True)[1:],
        "vjp": (func.vjp(f, x, has_aux=True)[1](x)[0], func.vjp(f, x, has_aux=True)[2]),
    }
    for name, (value, aux) in found.items():
        square = name.startswith("jac")
        assert value.tolist() == ([[2.0, 0.0], [0.0, 4.0]] if square else [2.0, 8.0])
        assert aux["twice"].tolist() == [2.0, 4.0]
        assert aux["name"] == "f"
        assert not aux["twice"].requires_grad
        assert aux["w"].requires_grad
    with pytest.raises(TypeError, match=r"func gives .* where has_aux=True"):
        func.jacrev(lambda x: x * x, has_aux=True)(x)


# ---- Functions and hooks on the way ----


def square(backward: Callable[..., Any], **more: Any) -> Callable[[Tensor], Tensor]:
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward), **more}
    return type("Square", (tw.autograd.Function,), methods).apply


def recorded(ctx: Any, g: Tensor) -> Tensor:
    return 2.0 * g * ctx.saved_tensors[0]


def by_numpy(ctx: Any, g: Tensor) -> Tensor:
    return tw.asarray(2.0 * g.detach().numpy() * ctx.saved_tensors[0].detach().numpy())


CALLED: list[str] = []


def jvp(ctx: Any, t: Tensor) -> Tensor:
    CALLED.append("jvp")
    return 2.0 * t * ctx.saved_tensors[0]


def refuse(ctx: Any, g: Tensor) -> Tensor:
    raise AssertionError("backward was called")


WAYS = {
    "recorded": square(recorded),
    "outside of the graph": square(by_numpy),
    "with a jvp": square(recorded, jvp=staticmethod(jvp)),
    "with a jvp alone": square(refuse, jvp=staticmethod(jvp)),
}


@pytest.mark.parametrize("way", WAYS)
def test_products_with_a_jacobian_through_functions(way: str) -> None:
    x, t = tw.asarray(X, dtype=tw.float64), tw.asarray([1.0, 2.0, 3.0], dtype=tw.float64)

    def f(x: Tensor) -> Tensor:
        return W * WAYS[way](x).sin() * x

    def plain(x: Tensor) -> Tensor:
        return W * (x * x).sin() * x

    CALLED.clear()
    for derive in (lambda f: func.jvp(f, (x,), (t,))[1], lambda f: func.jacfwd(f)(x)):
        got, want = derive(f), derive(plain)
        np.testing.assert_allclose(got.detach(), want.detach(), rtol=1e-12)
        if way == "outside of the graph":
            with pytest.raises(RuntimeError, match="the backward of Square is not made of"):
                got.sum().backward()
            continue
        got_w, want_w = (tw.grad(y.sum(), W)[0] for y in (got, want))
        np.testing.assert_allclose(got_w, want_w, rtol=1e-12)
    assert bool(CALLED) == ("jvp" in way)
    got, want = (tw.autograd.functional.jvp(f, x, t)[1] for f in (f, plain))
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_second_derivatives_through_functions() -> None:
    x = tw.asarray(X, dtype=tw.float64)

    def total(f: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        return lambda x: (f(x) * x).sum()

    want = func.hessian(total(lambda x: x * x))(x)
    np.testing.assert_allclose(func.hessian(total(WAYS["recorded"]))(x), want, rtol=1e-12)
    with pytest.raises(RuntimeError, match="the backward of Square is not made of recorded ops"):
        func.hessian(total(WAYS["outside of the graph"]))(x)
    flat = square(lambda ctx, g: tw.zeros_like(g.detach()))
    assert func.hessian(lambda x: flat(x).sum())(x).tolist() == [[0.0] * 3] * 3


@pytest.mark.parametrize("backward", [recorded, by_numpy])
def test_gradients_that_are_the_last_say_so(backward: Callable[..., Any]) -> None:
    last = square(once_differentiable(backward))
    x = tw.asarray(X, dtype=tw.float64)
    np.testing.assert_allclose(func.grad(lambda x: last(x).sum())(x), [1.0, -3.0, 4.0])
    derivations = (
        lambda: func.jvp(last, (x,), (x,)),
        lambda: func.jacfwd(last)(x),
        lambda: func.hessian(lambda x: last(x).sum())(x),
        lambda: func.grad(lambda x: func.grad(lambda x: last(x).sum())(x).sum())(x),
    )
    for derive in derivations:
        with pytest.raises(RuntimeError, match="once_differentiable"):
            derive()


def test_hooks_have_no_part_in_products_with_a_jacobian() -> None:
    seen = []

    def f(x: Tensor) -> Tensor:
        h = x * x
        h.register_hook(lambda g: seen.append(g) or g.detach() * 3.0)
        return h * x

    x, t = tw.asarray(2.0), tw.asarray(1.0)
    assert func.jvp(f, (x,), (t,))[1].item() == 12.0
    assert func.jacfwd(f)(x).item() == 12.0
    layer = nn.Linear(1, 1)
    layer.register_full_backward_hook(lambda *given: seen.append(given))
    func.jvp(layer, (tw.ones(1),), (tw.ones(1),))
    assert not seen


def test_several_results_and_arguments_of_a_function_with_a_jvp() -> None:
    class Both(tw.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, n: int, y: Tensor) -> tuple[Tensor, int, Tensor]:
            ctx.save_for_forward(x, y)
            return x * y, n, x + n * y

        @staticmethod
        def jvp(ctx: Any, s: Tensor, n: None, t: Tensor) -> tuple[Tensor, None, Tensor]:
            x, y = ctx.saved_tensors
            assert n is None
            return s * y + x * t, None, s + 3.0 * t

    def f(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        product, _, total = Both.apply(x, 3, y)
        return product * x, total

    def plain(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x * y * x, x + 3.0 * y

    given = tuple(tw.asarray(v) for v in ([1.0, 2.0], [3.0, 5.0]))
    along = tuple(tw.asarray(v) for v in ([0.5, 1.0], [2.0, -1.0]))
    for derive in (
        lambda f: func.jvp(f, given, along)[1],
        lambda f: func.jacfwd(f, argnums=(0, 1))(*given),
        lambda f: func.jacfwd(lambda x: f(x, given[1])[0])(given[0]),
    ):
        for got, want in zip(derive(f), derive(plain), strict=True):
            for a, b in zip(got, want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_vmap_of_a_functions_own_is_refused() -> None:
    def own(info: Any, in_dims: Any, x: Tensor) -> Any:
        raise AssertionError

    apply = square(recorded, vmap=staticmethod(own))
    assert apply(tw.asarray([2.0])).tolist() == [4.0]
    with pytest.raises(NotImplementedError, match=r"Square: vmap calls functions slice by slice"):
        func.vmap(apply)(tw.ones((2, 3)))
    assert func.vmap(WAYS["recorded"])(tw.ones((2, 3))).tolist() == [[1.0] * 3] * 2
