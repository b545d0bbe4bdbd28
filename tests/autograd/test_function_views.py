"""Results of Functions and hooked modules that share memory with what these were given."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright as tw
from tilewright import Tensor, nn


class View(tw.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x[:]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g


class Reversed(tw.autograd.Function):
    """Gradient reversal."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return -g


class Same(Reversed):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x


class Part(tw.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        return x[:1], x * 2.0

    @staticmethod
    def backward(ctx: Any, of_part: Tensor, of_double: Tensor) -> Tensor:
        g = 2.0 * of_double
        g[:1] += of_part
        return g


class Pair(tw.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2.0
        return y, y[:1]

    @staticmethod
    def backward(ctx: Any, of_all: Tensor, of_part: Tensor) -> Tensor:
        g = 2.0 * of_all
        g[:1] += 2.0 * of_part
        return g


def start() -> tuple[Tensor, Tensor]:
    b = tw.tensor([1.0, -2.0], requires_grad=True)
    return b, b * 3.0


@pytest.mark.parametrize("function", [View, Same, Reversed])
def test_a_result_is_of_no_use_after_its_argument_changed(function: Any) -> None:
    _, h = start()
    y = function.apply(h)
    part = y[:1]
    h.mul_(-1.0)
    for stale in (y, part):
        with pytest.raises(RuntimeError, match="a result of a Function, shares memory"):
            stale.sum()
        with pytest.raises(RuntimeError, match="a result of a Function, shares memory"):
            stale.mul_(2.0)
    assert h.tolist() == [-3.0, 6.0]


@pytest.mark.parametrize(("function", "sign"), [(View, 1.0), (Same, -1.0), (Reversed, -1.0)])
def test_a_change_of_the_result_is_one_of_the_argument(function: Any, sign: float) -> None:
    b, h = start()
    y = function.apply(h)
    y.relu_()
    (y.sum() + 10.0 * h.sum()).backward()
    assert y.tolist() == h.tolist() == [3.0, 0.0]
    assert b.grad is not None
    assert b.grad.tolist() == [sign * 33.0, 0.0]


def test_a_change_of_a_part_reaches_the_rest_by_its_own_way() -> None:
    b, h = start()
    part, double = Part.apply(h)
    part.mul_(5.0)
    (h.sum() + double.sum()).backward()
    assert h.tolist() == [15.0, -6.0]
    assert b.grad is not None
    assert b.grad.tolist() == [3.0 * (5.0 + 2.0), 3.0 * (1.0 + 2.0)]


def test_results_that_share_memory_with_each_other() -> None:
    b, _ = start()
    y, part = Pair.apply(b)
    part.mul_(5.0)
    y.sum().backward()
    assert b.grad is not None
    assert b.grad.tolist() == [10.0, 2.0]
    y, part = Pair.apply(b)
    y.mul_(5.0)
    with pytest.raises(RuntimeError, match="a result of a Function, shares memory"):
        part.sum()


def test_a_leaf_stays_what_it_is() -> None:
    x = tw.ones(2, requires_grad=True)
    y = Reversed.apply(x)
    with pytest.raises(RuntimeError, match="a leaf that requires grad"):
        y.mul_(2.0)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [-1.0, -1.0]


class AddOne(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.add_(1.0)


def test_a_module_in_place_with_a_hook() -> None:
    relu = nn.ReLU(inplace=True)
    seen: list[Any] = []
    relu.register_full_backward_hook(lambda m, i, o: seen.append((i[0].tolist(), o[0].tolist())))
    b, h = start()
    y = relu(h)
    (y.sum() + 10.0 * h.sum()).backward()
    assert b.grad is not None
    assert b.grad.tolist() == [33.0, 0.0]
    assert seen == [([11.0, 0.0], [1.0, 1.0])]


class Halves(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x[:1], x[1:]


MODULES = (AddOne(), Halves(), nn.Flatten(0), nn.Identity())


@pytest.mark.parametrize("module", MODULES, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("change", ["nothing", "argument", "result"])
def test_modules_are_the_same_with_hooks_that_look_on(module: nn.Module, change: str) -> None:
    found = []
    for hooked in (False, True):
        handles = []
        if hooked:
            handles += [module.register_full_backward_hook(lambda *_: None)]
            handles += [module.register_full_backward_pre_hook(lambda *_: None)]
        b, h = start()
        y = module(h)
        first = y[0] if isinstance(y, tuple) else y
        if change == "argument":
            h.add_(h.detach())
        if change == "result":
            first.add_(first * 2.0)
        (first.sum() + 10.0 * h.sum()).backward()
        assert b.grad is not None
        found.append((b.grad.tolist(), first.tolist(), h.tolist()))
        for handle in handles:
            handle.remove()
    assert found[0] == found[1]
