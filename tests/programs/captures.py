"""Programs as functions of their leaves: captured with some numbers, replayed with others."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import tilewright as tw
from programs.engines import REFUSALS, OnTilewright, array_of, said
from programs.program import Program, Step, data
from tilewright import _core

# Whose numbers may be scaled. Recordings are made for both cases, by one node more, so that
# gradients of gradients are added in another order.
SCALED = (".std(", ".var(")
KINDS = {"leaf", "pure", "view", "write", "checkpoint"}


class Constants:
    """Stands for the library in steps; the tensors that they make of numbers are made once.

    So a recording finds all of them as tensors from before it began.
    """

    def __init__(self) -> None:
        self._made: list[tw.Tensor] = []
        self._next = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(tw, name)

    def asarray(self, *args: Any, **options: Any) -> tw.Tensor:
        if self._next == len(self._made):
            self._made.append(tw.asarray(*args, **options))
        self._next += 1
        made = self._made[self._next - 1]
        return made.copy() if options.get("copy") else made  # which may be written

    def rewind(self) -> None:
        self._next = 0


class AsFunction(OnTilewright):
    """A program without what is done to its tensors by hand; leaves are the operands."""

    def __init__(self, program: Program) -> None:
        steps = tuple(step for step in program.steps if step.kind in KINDS)
        super().__init__(replace(program, steps=steps), ())
        self.library = Constants()
        self.operands = [step for step in steps if step.kind == "leaf"]

    def numbers_of(self, shift: int) -> list[tw.Tensor]:
        """Operands: those of the program, or others by a shift."""
        return [
            tw.asarray(data((self.program.seed, step.out, shift), step.shape, 0.3, 1.5))
            for step in self.operands
        ]

    def __call__(self, *operands: tw.Tensor) -> tuple[tw.Tensor, ...]:
        """The terms, and first and second gradients by the leaves."""
        self.library.rewind()
        self.values = {}
        leaves = [x.detach().requires_grad_() for x in operands]
        self.values.update(zip((step.out for step in self.operands), leaves, strict=True))
        for step in self.program.steps:
            if step.kind != "leaf":
                self.perform(step, self.values)
        terms = [self.values[i] for i in self.program.terms]
        loss = sum(terms[1:], terms[0])
        first = tw.grad(loss, leaves, create_graph=True, allow_unused=True)
        used = [g for g in first if g is not None and g.requires_grad]
        second: list[Any] = []
        if used:
            total = sum((g.square().sum() for g in used[1:]), used[0].square().sum())
            second = list(tw.grad(total, leaves, allow_unused=True))
        self.exact = len(terms) + sum(g is not None for g in first)
        found = (*terms, *first, *second)
        return tuple(x.detach() for x in found if x is not None)


def is_capturable(step: Step) -> bool:
    """Whether a step reads no numbers: what a recording holds cannot follow those."""
    return "numpy()" not in step.tw and "dlpack" not in step.tw


def capture_finding(program: Program) -> str | None:
    """Where replays with fresh numbers differ from calls; None where nothing is compared."""
    if not all(is_capturable(s) for step in program.steps for s in (step, *step.body)):
        return None
    function = AsFunction(program)
    try:
        called = [function(*function.numbers_of(shift)) for shift in (1, 2, 3)]
    except (*REFUSALS, KeyError):  # of steps that were left out, or wrong in any way of running
        return None
    scaled = any(
        name in s.tw for step in program.steps for s in (step, *step.body) for name in SCALED
    )
    exact = function.exact if scaled else len(called[0])
    close = partial(np.allclose, rtol=1e-12, atol=1e-12)
    function.library.rewind()
    try:
        captured = _core._capture(function, function.numbers_of(1))
    except RuntimeError as error:
        return None if "capture" in str(error) else f"capture refuses: {said(error)}"
    for shift, expected in zip((2, 3, 2), (*called[1:], called[1]), strict=True):
        found = captured.replay(function.numbers_of(shift))
        if len(found) != len(expected):
            return f"a replay gives {len(found)} results, a call {len(expected)}"
        for n, (x, y) in enumerate(zip(found, expected, strict=True)):
            same = close if n >= exact else np.array_equal
            if not same(array_of(x), array_of(y), equal_nan=True):
                return f"result {n} of a replay is {array_of(x)}, of a call {array_of(y)}"
    return ""
