"""What hooks of a module's gradients are given, beside PyTorch."""

from __future__ import annotations

import typing
from typing import Any

import pytest

import tilewright as tw
from tilewright import nn

torch = pytest.importorskip("torch")


class Pair(typing.NamedTuple):
    first: Any
    second: Any


def modules(lib: Any) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Modules and the arguments that they are called with."""

    def leaf() -> Any:
        return lib.tensor([1.0, 2.0], requires_grad=True)

    def plain() -> Any:
        return lib.tensor([3.0, 4.0])

    def module(forward: Any) -> Any:
        class Called(lib.nn.Module):
            def forward(self, *args: Any) -> Any:
                return forward(*args)

        return Called()

    both = module(lambda x, y: x * y)
    weight = leaf()
    return {
        "both": (both, (leaf(), leaf())),
        "an argument without gradient": (both, (leaf(), plain())),
        "the other one": (both, (plain(), leaf())),
        "no argument with gradient": (module(lambda x: x * weight), (plain(),)),
        "numbers": (module(lambda x, n, y: x * n + y), (leaf(), 3, plain())),
        "named results": (module(lambda x: Pair(x * 2, x * 3)), (leaf(),)),
        "a number among results": (module(lambda x: (x * 2, 7, x * 3)), (leaf(),)),
        "a result without gradient": (module(lambda x: (x * 2, x.detach())), (leaf(),)),
        "a result of no use": (module(lambda x: (x * 2, x * 3)), (leaf(),)),
    }


def told(lib: Any, name: str) -> Any:
    module, args = modules(lib)[name]
    seen: list[Any] = []
    module.register_full_backward_pre_hook(lambda m, o: seen.append(("before", o)))
    module.register_full_backward_hook(lambda m, i, o: seen.append(("after", i, o)))
    result = module(*args)
    kind = type(result).__name__
    used = result if isinstance(result, tuple) else (result,)
    used = used[:1] if name == "a result of no use" else used
    sum(y.sum() for y in used if isinstance(y, lib.Tensor) and y.requires_grad).backward()
    return kind, numbers(lib, seen), [numbers(lib, getattr(x, "grad", None)) for x in args]


def numbers(lib: Any, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [numbers(lib, part) for part in value]
    return value.tolist() if isinstance(value, lib.Tensor) else value


@pytest.mark.filterwarnings("ignore")  # of PyTorch's
@pytest.mark.parametrize("name", modules(torch))
def test_hooks_are_given_what_pytorch_gives(name: str) -> None:
    ours, theirs = told(tw, name), told(torch, name)
    if "argument" in name or name in (
        "the other one",
        "numbers",
    ):  # zeros are PyTorch's for what has no gradient
        for _, given, *_ in theirs[1][1:]:
            given[:] = [None if g == [0.0, 0.0] else g for g in given]
    assert ours == theirs


@pytest.mark.parametrize("lib", [tw, torch], ids=["tilewright", "torch"])
def test_a_hook_can_replace_what_has_a_gradient(lib: Any) -> None:
    module, (x, y) = modules(lib)["an argument without gradient"]
    module.register_full_backward_pre_hook(lambda m, o: (o[0] * 10,))
    module.register_full_backward_hook(lambda m, i, o: (i[0] + o[0], None))
    module(x, y).sum().backward()
    assert x.grad.tolist() == [40.0, 50.0]
    assert y.grad is None


def test_a_gradient_for_a_module_without_any_is_refused() -> None:
    module, args = modules(tw)["no argument with gradient"]
    module.register_full_backward_hook(lambda m, i, o: (tw.ones(2),))
    with pytest.raises(RuntimeError, match="no argument of the module requires grad"):
        module(*args).sum().backward()


def test_a_gradient_that_did_not_come_by_the_results_is_not_told() -> None:
    class Keeps(nn.Module):
        def forward(self, x: tw.Tensor) -> tw.Tensor:
            self.kept = x * 2.0
            return x * 3.0

    module, seen = Keeps(), list[Any]()
    module.register_full_backward_hook(lambda *given: seen.append(given))
    x = tw.ones(2, requires_grad=True)
    module(x)
    module.kept.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]
    assert not seen
