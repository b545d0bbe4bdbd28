"""Gradients that are kept or handed out have memory of their own, and bits as without hooks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright import Tensor


def leaf(*shape: int, seed: int = 0) -> Tensor:
    values = np.random.default_rng(seed).uniform(0.5, 1.5, shape)
    return tw.tensor(values, dtype=tw.float32, requires_grad=True)


# ---- looking on changes no bit ----


def pointwise(x: Tensor) -> Tensor:
    return (x * 1.1).sum() + (x * 2.7).exp().sum() + (x * x).sum()


def products(w: Tensor) -> Tensor:
    x = leaf(9, w.shape[0], seed=1).detach()
    return ((x @ w).tanh() @ w.T[:, : w.shape[0]]).sum() + (x @ w).sum()


def parts(x: Tensor) -> Tensor:
    return (x[1:] * 1.3).sum() + x[:2].exp().sum() + (x[0] * x[1]).sum()


OBSERVERS: dict[str, Callable[[Tensor], object]] = {
    "hook": lambda x: x.register_hook(lambda g: None),
    "two hooks": lambda x: [x.register_hook(lambda g: None) for _ in range(2)],
    "hook that gives what it got": lambda x: x.register_hook(lambda g: g),
    "hook after": lambda x: x.register_post_accumulate_grad_hook(lambda x: None),
    "both": lambda x: [
        x.register_hook(lambda g: None),
        x.register_post_accumulate_grad_hook(lambda x: None),
    ],
}


@pytest.mark.parametrize("observer", OBSERVERS)
@pytest.mark.parametrize("function", [pointwise, products, parts])
@pytest.mark.parametrize("options", [{}, {"plan": True}, {"create_graph": True}], ids=str)
def test_who_looks_on_changes_no_bit(
    observer: str, function: Callable[[Tensor], Tensor], options: dict[str, bool]
) -> None:
    found = []
    for observed in (False, True):
        x = leaf(300, 7) if function is products else leaf(7)
        x.grad = leaf(*x.shape, seed=2).detach()
        if observed:
            OBSERVERS[observer](x)
        for _ in range(2):
            function(x).backward(**options)
        assert x.grad is not None
        found.append(x.grad.detach().numpy().tobytes())
    assert found[0] == found[1]


def test_a_hook_of_a_result_leaves_the_layout_that_a_pass_goes_on_with() -> None:
    found = []
    for observed in (False, True):
        x, w = leaf(40, 30), leaf(30, 20, seed=1)
        y = x @ w
        if observed:
            y.register_hook(lambda g: None)
            y.retain_grad()
        y.sum().backward()
        found.append([g.numpy().tobytes() for g in (x.grad, w.grad) if g is not None])
    assert found[0] == found[1]


def test_a_hook_that_changes_the_gradient_in_place_still_counts() -> None:
    x = leaf(3)
    x.grad = tw.ones(3)
    x.register_hook(double)
    (x * 3.0).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [7.0] * 3


def double(g: Tensor) -> None:
    g.mul_(2.0)


def test_a_grad_that_a_hook_replaces_is_added_to() -> None:
    x = leaf(2)
    x.grad = tw.ones(2)

    def replace(g: Tensor) -> None:
        x.grad = tw.asarray([10.0, 20.0])

    x.register_hook(replace)
    (x * 3.0).sum().backward()
    assert x.grad.tolist() == [13.0, 23.0]


# ---- memory of their own ----


def everything_kept(create_graph: bool) -> dict[str, Tensor]:
    """All that one pass leaves with a program, by where it is."""
    a, b = leaf(3), leaf(3, seed=1)
    h = a + b
    y = h + 1.0
    seed = tw.ones(3)
    kept: dict[str, Tensor] = {"seed": seed}
    h.retain_grad()
    y.retain_grad()
    h.register_hook(lambda g: kept.update({"hook of h": g}))
    y.register_hook(lambda g: kept.update({"hook of y": g}))
    y.backward(seed, create_graph=create_graph)
    for name, x in {"a": a, "b": b, "h": h, "y": y}.items():
        assert x.grad is not None
        kept[f"grad of {name}"] = x.grad
    return kept


@pytest.mark.parametrize("create_graph", [False, True])
def test_what_a_pass_leaves_shares_no_memory(create_graph: bool) -> None:
    names = everything_kept(create_graph)
    if create_graph:  # hooks see what goes on in the graph
        names = {name: x for name, x in names.items() if not name.startswith("hook")}
    for changed in names:
        kept = everything_kept(create_graph)
        with tw.no_grad():
            kept[changed].mul_(0.0)
        for name in names:
            expected = 0.0 if name == changed else 1.0
            assert kept[name].tolist() == [expected] * 3, f"{name} after a change of {changed}"


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_that_are_returned_share_no_memory(create_graph: bool) -> None:
    a, b, seed = leaf(3), leaf(3, seed=1), tw.ones(3)
    y = a + b
    grads = tw.grad(y, [a, b, y, a], seed, create_graph=create_graph)
    assert len({id(g) for g in grads}) == 4
    for g in grads:
        with tw.no_grad():
            g.mul_(0.0)
        assert seed.tolist() == [1.0] * 3
    again = tw.grad(a + b, [a, b], seed)
    again[0].mul_(0.0)
    assert again[1].tolist() == [1.0] * 3


def test_a_function_may_write_to_the_gradient_that_it_gets() -> None:
    class Flip(tw.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor) -> Tensor:
            return x * 1.0

        @staticmethod
        def backward(ctx: object, g: Tensor) -> Tensor:
            return g.mul_(-1.0)

    a, b, seed = leaf(3), leaf(3, seed=1), tw.ones(3)
    (Flip.apply(a) + b).backward(seed)
    assert a.grad is not None
    assert a.grad.tolist() == [-1.0] * 3
    assert b.grad is not None
    assert b.grad.tolist() == [1.0] * 3
    Flip.apply(a).backward(seed)
    assert seed.tolist() == [1.0] * 3
