"""Random programs of hooks that look on, views, changes in place and users' Functions.

Each runs beside PyTorch, and beside itself without the hooks: gradients have the same bits.
"""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")

PROGRAMS = 240
SHAPES = ((3,), (2, 3), (4, 2))


def functions(lib: Any) -> dict[str, Any]:
    """Functions that return a new tensor, their argument, or a view of it."""

    class Scale(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0]

    class Reverse(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return -g

    class Same(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 3 * g

    class Twice(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * x.sin()

    return {"scale": Scale.apply, "reverse": Reverse.apply, "same": Same.apply, "module": Twice}


LIBRARIES = {"tilewright": tw, "torch": torch}
FUNCTIONS = {name: functions(lib) for name, lib in LIBRARIES.items()}

UNARY = ("sin", "tanh", "square", "neg")
BINARY = ("add", "sub", "mul")
IN_PLACE = ("add_", "mul_", "sub_")
VIEWS = (
    lambda x: x[1:],
    lambda x: x[0],
    lambda x: x.reshape(-1),
    lambda x: x.T if x.ndim == 2 else x[:2],
    lambda x: x.reshape(-1)[::2],
)
KINDS = (
    ["unary"] * 3
    + ["binary"] * 4
    + ["view"] * 3
    + ["change"] * 3
    + ["scale", "reverse", "same", "hook", "hook", "retain", "module"]
)


def program(seed: int) -> list[tuple[str, int, int, int]]:
    """Steps: kind, two places among the tensors so far, and a choice."""
    rng = np.random.default_rng(seed)
    steps = []
    for _ in range(int(rng.integers(4, 14))):
        a, b, choice = (int(i) for i in rng.integers(0, 1 << 30, 3))
        steps.append((str(rng.choice(KINDS)), a, b, choice))
    return steps


class Run:
    """One run of a program: the leaves' gradients, of first and of second order."""

    def __init__(self, name: str, seed: int, hooked: bool) -> None:
        self.lib, self.own = LIBRARIES[name], FUNCTIONS[name]
        self.hooked = hooked
        self.observed: list[Any] = []
        rng = np.random.default_rng(seed)
        self.leaves = [self.leaf(rng.uniform(0.5, 1.5, SHAPES[i % 3])) for i in range(3)]
        self.tensors = [x * 1.0 for x in self.leaves] + self.leaves
        if rng.random() < 0.5:
            for x in self.leaves:
                x.grad = self.tensor(rng.uniform(0.5, 1.5, tuple(x.shape)))
        self.second = rng.random() < 0.3
        self.weights = rng.uniform(0.5, 1.5, 64)

    def tensor(self, values: np.ndarray) -> Any:
        return self.lib.tensor(values, dtype=self.lib.float64)

    def leaf(self, values: np.ndarray) -> Any:
        return self.tensor(values).requires_grad_()

    def step(self, kind: str, a: int, b: int, choice: int) -> None:
        x = self.tensors[a % len(self.tensors)]
        alike = [y for y in self.tensors if y.shape == x.shape]
        y = alike[b % len(alike)]
        if kind == "unary":
            self.tensors.append(getattr(x, UNARY[choice % len(UNARY)])())
        elif kind == "binary":
            self.tensors.append(getattr(x, BINARY[choice % len(BINARY)])(y))
        elif kind == "view" and x.ndim and len(x):
            self.tensors.append(VIEWS[choice % len(VIEWS)](x))
        elif kind == "change" and not x.is_leaf:
            getattr(x, IN_PLACE[choice % len(IN_PLACE)])(y * 0.5)
        elif kind in ("scale", "reverse", "same"):
            self.tensors.append(self.own[kind](x))
        elif kind == "module":
            module = self.own["module"]()
            if self.hooked:
                module.register_full_backward_hook(lambda m, i, o: self.observed.append((i, o)))
            self.tensors.append(module(x))
        elif self.hooked and kind == "hook":
            x.register_hook(self.observed.append)
        elif self.hooked and kind == "retain":
            x.retain_grad()

    def gradients(self, steps: list[tuple[str, int, int, int]]) -> list[np.ndarray]:
        for step in steps:
            self.step(*step)
        loss = sum(
            (x * self.tensor(self.weights[: x.numel()]).reshape(tuple(x.shape))).sum()
            for x in self.tensors[3:]
        )
        if not self.second:
            loss.backward()
            return [x.grad.numpy().copy() for x in self.leaves]
        grads = self.lib.autograd.grad(loss, self.leaves, create_graph=True)
        slope = sum((g * g).sum() for g in grads)
        if slope.requires_grad:
            slope.backward()
        found = [*grads, *(x.grad for x in self.leaves if x.grad is not None)]
        return [g.detach().numpy().copy() for g in found]


def outcome(name: str, seed: int, hooked: bool) -> list[np.ndarray] | RuntimeError:
    try:
        return Run(name, seed, hooked).gradients(program(seed))
    except RuntimeError as error:
        return error


def check(seed: int) -> str:
    """Compares the runs of one program; says what became of it."""
    hooked, plain = (outcome("tilewright", seed, hooks) for hooks in (True, False))
    theirs = outcome("torch", seed, False)
    if isinstance(hooked, RuntimeError) or isinstance(plain, RuntimeError):
        assert isinstance(hooked, RuntimeError), plain
        assert isinstance(plain, RuntimeError), hooked
        of_function = "a result of a Function" in str(plain)
        assert of_function or isinstance(theirs, RuntimeError), plain
        return "refused"
    has_module = any(kind == "module" for kind, *_ in program(seed))
    for i, (a, b) in enumerate(zip(hooked, plain, strict=True)):
        if i >= 3 and has_module:  # gradients of gradients add up in the order of the first pass
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
        else:
            assert a.tobytes() == b.tobytes(), "a hook that looks on changes bits"
    if isinstance(theirs, RuntimeError):
        return "ours"
    for a, b in zip(plain, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    return "compared"


def test_programs_with_hooks_agree_with_pytorch_and_with_themselves_without() -> None:
    outcomes: collections.Counter[str] = collections.Counter()
    for seed in range(PROGRAMS):
        try:
            outcomes[check(seed)] += 1
        except BaseException as error:
            error.add_note(f"seed {seed}: {program(seed)}")
            raise
    assert outcomes["compared"] > PROGRAMS // 2, outcomes
