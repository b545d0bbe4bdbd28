"""Running a program on Tilewright and on PyTorch."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional

import tilewright as tw
from programs.program import Program, Step, data, fill_in

# What a library raises where it refuses an operation; anything else is a fault of its own.
REFUSALS = (RuntimeError, ValueError, IndexError, NotImplementedError, BufferError)
Numbers = Callable[[tuple[int, ...], tuple[int, ...], float, float], np.ndarray]


@dataclass
class Outcome:
    """What a run leaves to compare."""

    # Steps that were refused, with what the library said.
    refused: dict[int, str] = field(default_factory=dict)
    # Steps that lacked what a refused one was to make.
    lacking: set[int] = field(default_factory=set)
    values: dict[int, np.ndarray] = field(default_factory=dict)
    requires_grad: dict[int, bool] = field(default_factory=dict)
    # By (kind of gradient, value).
    gradients: dict[tuple[str, int], np.ndarray | None] = field(default_factory=dict)
    seen: dict[int, list[np.ndarray]] = field(default_factory=dict)
    # What the gradients' computation was refused with.
    failure: str | None = None


@lru_cache(20000)
def compiled(text: str, count: int, library: Any = tw) -> Callable[..., None]:
    """A step's text as a function of (values, out, operands, handles, seen, data)."""
    body = fill_in(text, "v[o]", [f"a[{i}]" for i in range(count)])
    scope: dict[str, Any] = {"tw": library, "torch": torch, "F": torch.nn.functional, "np": np}
    exec(f"def step(v, o, a, handles, seen, data):\n    {body}", scope)
    return scope["step"]  # type: ignore[no-any-return]


class Run:
    """One run of a program; the two libraries differ in a few methods."""

    refusals: tuple[type[Exception], ...] = REFUSALS
    library: Any = tw  # what `tw` is in steps

    def __init__(self, program: Program, skip: Collection[int], numbers: Numbers = data) -> None:
        self.program, self.skip, self.numbers = program, skip, numbers
        self.values: dict[int, Any] = {}
        self.handles: dict[int, Any] = {}
        self.seen: dict[int, list[Any]] = defaultdict(list)
        self.outcome = Outcome()

    def text(self, step: Step) -> str | None:
        raise NotImplementedError

    def no_grad(self) -> Any:
        raise NotImplementedError

    def checkpointed(self, step: Step) -> tuple[Any, ...]:
        raise NotImplementedError

    def whole(self) -> Outcome:
        for number, step in enumerate(self.program.steps):
            if number not in self.skip:
                self.attempt(number, step)
            elif step.kind == "backward":
                self.forget_gradients()
        try:
            self.finale()
        except self.refusals as error:
            self.outcome.failure = said(error)
        self.collect()
        return self.outcome

    def attempt(self, number: int, step: Step) -> None:
        """The step, unless it needs what an earlier refusal left undefined."""
        try:
            self.perform(step, self.values)
        except KeyError:
            self.outcome.lacking.add(number)
        except self.refusals as error:
            self.outcome.refused[number] = said(error)
            if step.kind == "backward":
                self.forget_gradients()

    def forget_gradients(self) -> None:
        """After a backward pass that was refused, and may have got to some of the leaves."""
        for value in self.leaves().values():
            value.grad = None

    def perform(self, step: Step, values: dict[int, Any]) -> None:
        if step.no_grad:
            with self.no_grad():
                self.execute(step, values)
        else:
            self.execute(step, values)

    def execute(self, step: Step, values: dict[int, Any]) -> None:
        if step.kind == "checkpoint":
            values.update(zip(step.results, self.checkpointed(step), strict=True))
            return
        text = self.text(step)
        if text is None:
            raise NotImplementedError("no such operation")
        operands = [self.operand_in(step, i, values) for i in step.args]
        if step.kind in {"write", "toggle"}:
            values[step.out]
        compiled(text, len(operands), self.library)(
            values, step.out, operands, self.handles, self.seen, self.numbers
        )

    def operand_in(self, step: Step, i: int, values: dict[int, Any]) -> Any:
        return values[i]

    def body(self, step: Step, outer: dict[int, Any], inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """A checkpoint's function."""
        local = {**outer, **dict(zip(step.args, inputs, strict=True))}
        for inner in step.body:
            self.perform(inner, local)
        return tuple(local[i] for i in step.results)

    def live(self) -> dict[int, Any]:
        return {i: v for i, v in self.values.items() if v is not None}

    def leaves(self) -> dict[int, Any]:
        return {i: v for i, v in sorted(self.live().items()) if self.is_leaf(v)}

    def is_leaf(self, value: Any) -> bool:
        return value.is_leaf and value.requires_grad  # type: ignore[no-any-return]

    def loss(self) -> Any:
        terms = [self.values[i] for i in self.program.terms if i in self.values]
        terms = [t for t in terms if t.requires_grad]
        return sum(terms[1:], terms[0]) if terms else None

    def gradients_of(self, loss: Any, inputs: list[Any], create_graph: bool) -> Any:
        raise NotImplementedError

    def backward_of(self, loss: Any, create_graph: bool, retain_graph: bool) -> None:
        raise NotImplementedError

    def asarray(self, array: np.ndarray) -> Any:
        raise NotImplementedError

    def grad_of(self, value: Any) -> Any:
        return value.grad

    def finale(self) -> None:
        loss, leaves, how = self.loss(), self.leaves(), self.program.settings.finale
        if loss is None or not leaves:
            return
        if how == "grad":
            first = self.gradients_of(loss, list(leaves.values()), True)
            self.keep("first", leaves, first)
            total = self.projection(leaves, first)
            if total is not None:
                self.keep("second", leaves, self.gradients_of(total, list(leaves.values()), False))
            return
        if how == "twice":
            self.backward_of(loss, False, True)
        self.backward_of(loss, how == "graph", False)
        if how == "graph":
            total = self.projection(leaves, [x.grad for x in leaves.values()])
            if total is not None:
                self.backward_of(total, False, False)

    def projection(self, leaves: dict[int, Any], gradients: Any) -> Any:
        """A weighted sum of gradients."""
        terms = [
            (g * self.asarray(data((self.program.seed, 1000 + i), tuple(g.shape), -1, 1))).sum()
            for i, g in zip(leaves, gradients, strict=True)
            if g is not None and g.requires_grad
        ]
        return sum(terms[1:], terms[0]) if terms else None

    def keep(self, kind: str, leaves: dict[int, Any], gradients: Any) -> None:
        for i, g in zip(leaves, gradients, strict=True):
            self.outcome.gradients[kind, i] = None if g is None else array_of(g)

    def collect(self) -> None:
        """Values, flags, grads and what the hooks saw."""
        out = self.outcome
        for i, v in self.live().items():
            out.values[i] = array_of(v)
            out.requires_grad[i] = bool(v.requires_grad)
            if out.failure is None:
                grad = self.grad_of(v)
                out.gradients["grad", i] = None if grad is None else array_of(grad)
        if out.failure is None:
            out.seen = {n: [array_of(g) for g in gs] for n, gs in self.seen.items()}
        for v in self.leaves().values():  # a grad with a graph holds its leaf
            v.grad = None
        self.values.clear()


def array_of(tensor: Any) -> np.ndarray:
    if isinstance(tensor, torch.Tensor):
        # What PyTorch knows to be zero has no memory; numpy(force=True) of a part of it writes to
        # where that part would be.
        held = torch.zeros_like(tensor) if tensor._is_zerotensor() else tensor
        return np.array(held.numpy(force=True))
    here = tensor.detach().to("cpu")
    if here.dtype == tw.bfloat16:
        here = here.astype(tw.float32)
    return np.array(here.numpy())


def said(error: Exception) -> str:
    text = re.sub(r"\s+", " ", str(error))
    return f"{type(error).__name__}: {text}"


def takes(step: Step, i: int) -> bool:
    """Whether the step is an operation on the value, which its forward hook sees."""
    return step.kind == "pure" or (step.kind == "write" and i != step.out)


class OnTilewright(Run):
    def text(self, step: Step) -> str | None:
        return step.tw

    def no_grad(self) -> Any:
        return tw.no_grad()

    def checkpointed(self, step: Step) -> tuple[Any, ...]:
        inputs, outer = [self.values[i] for i in step.args], dict(self.values)
        return tw.checkpoint(lambda *values: self.body(step, outer, values), *inputs)

    def gradients_of(self, loss: Any, inputs: list[Any], create_graph: bool) -> Any:
        return tw.grad(loss, inputs, create_graph=create_graph, allow_unused=True)

    def backward_of(self, loss: Any, create_graph: bool, retain_graph: bool) -> None:
        plan = self.program.settings.plan
        loss.backward(create_graph=create_graph, retain_graph=retain_graph, plan=plan)

    def asarray(self, array: np.ndarray) -> Any:
        return tw.asarray(array)


class OnTorch(Run):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.versions: dict[int, int] = {}

    def execute(self, step: Step, values: dict[int, Any]) -> None:
        if step.kind in {"hook", "retain"} and step.args[0] in self.versions:
            # A view of a leaf, written under no_grad, then hooked: PyTorch 2.13 ends the process.
            i = step.args[0]
            if i in values and values[i]._version != self.versions[i]:
                raise NotImplementedError("a hook on a view that was written")
        super().execute(step, values)
        if step.kind == "view":
            self.versions[step.out] = values[step.out]._version

    def is_leaf(self, value: Any) -> bool:
        try:
            return super().is_leaf(value)
        except RuntimeError:  # views made under no_grad whose base was written: not even looked at
            return False

    def text(self, step: Step) -> str | None:
        return step.torch

    def no_grad(self) -> Any:
        return torch.no_grad()

    def operand_in(self, step: Step, i: int, values: dict[int, Any]) -> Any:
        value = values[i]
        hook = self.handles.get(f"f{i}") if takes(step, i) else None
        return hook(value) if hook else value

    def checkpointed(self, step: Step) -> tuple[Any, ...]:
        return self.body(step, self.values, tuple(self.values[i] for i in step.args))

    def gradients_of(self, loss: Any, inputs: list[Any], create_graph: bool) -> Any:
        return torch.autograd.grad(loss, inputs, create_graph=create_graph, allow_unused=True)

    def backward_of(self, loss: Any, create_graph: bool, retain_graph: bool) -> None:
        # A graph that is kept, so that what was recorded twice stays.
        loss.backward(create_graph=create_graph, retain_graph=retain_graph or create_graph)

    def asarray(self, array: np.ndarray) -> Any:
        return torch.from_numpy(array)

    def grad_of(self, value: Any) -> Any:
        return value.grad if self.is_leaf(value) or value.retains_grad else None
