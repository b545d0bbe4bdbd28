"""A program as data: steps over numbered values, each with its text for both libraries."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

# `{o}` is the value that a step defines or changes, `{0}`, `{1}`, ... are its operands.
_PLACE = re.compile(r"\{(o|\d+)\}")


@dataclass(frozen=True)
class Step:
    """One statement."""

    # What the reference must know: leaf, pure, view, write, hook, forward, unhook, toggle,
    # backward, delete or checkpoint.
    kind: str
    # The statement for each library; no text for PyTorch where it has no such operation.
    tw: str
    torch: str | None
    args: tuple[int, ...] = ()
    out: int = -1
    # The shape of the value that the step defines.
    shape: tuple[int, ...] = ()
    # Of a write: which part of the target, and what it becomes, as an expression without writes.
    region: str = ""
    becomes: str = ""
    no_grad: bool = False
    # Of a checkpoint: the body, and the values that it returns.
    body: tuple[Step, ...] = ()
    results: tuple[int, ...] = ()

    @property
    def defines(self) -> tuple[int, ...]:
        """The values that exist after the step and did not before."""
        if self.kind == "checkpoint":
            return self.results
        return (self.out,) if self.kind in {"leaf", "pure", "view"} else ()


@dataclass(frozen=True)
class Settings:
    """What a program runs in, and how its gradients are taken. None of it may change a result."""

    # grad: gradients of gradients too. graph: backward(create_graph=True), then backward again.
    finale: str = "grad"
    plan: bool = False
    isa: str | None = None
    matmul: str | None = None
    threads: int | None = None
    # The share of the memory that the program needs at its peak which a pool leaves it.
    quota: float | None = None


@dataclass(frozen=True)
class Program:
    """Steps, the last of which are the terms of the loss."""

    seed: int
    steps: tuple[Step, ...]
    terms: tuple[int, ...]
    settings: Settings = field(default_factory=Settings)


@lru_cache(512)
def _drawn(key: tuple[int, ...], shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    return np.random.default_rng(key).uniform(low, high, shape)


def data(key: tuple[int, ...], shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    """The numbers that a key stands for: leaves and weights, the same in every library."""
    return _drawn(key, shape, low, high).copy()


def fill_in(text: str, out: str, operands: list[str]) -> str:
    """A step's text with names for its places."""
    return _PLACE.sub(lambda m: out if m[1] == "o" else operands[int(m[1])], text)


def hidden_from_pytorch(program: Program) -> bool:
    """Whether a write reads the memory it changes, or NumPy or DLPack change it.

    PyTorch computes such writes in any order and misses changes from outside: it may be wrong.
    """
    family: dict[int, int] = {}
    for step in (inner for outer in program.steps for inner in (*outer.body, outer)):
        if step.kind == "view":
            family[step.out] = family.get(step.args[0], step.args[0])
        if "numpy()" in step.tw or "from_dlpack" in step.tw:
            return True
        target = family.get(step.out, step.out)
        if step.kind == "write" and target in {family.get(i, i) for i in step.args}:
            return True
    return False


HEADER = """\
import collections, warnings
import numpy as np
import tilewright as tw, torch
import torch.nn.functional as F

warnings.simplefilter("ignore")
torch.set_default_dtype(torch.float64)

def data(key, shape, low, high):
    return np.random.default_rng(key).uniform(low, high, shape)
"""


def rendered(program: Program) -> str:
    """The program as Python that runs, for Tilewright and for PyTorch."""
    s = program.settings
    lines = [f"# seed {program.seed}, {s}", HEADER]
    for library in ("tw", "torch"):
        lines += [f"def on_{library}():", *_indented(_body(program, library)), ""]
    return "\n".join([*lines, "on_tw()", "on_torch()"])


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def _body(program: Program, library: str) -> list[str]:
    lines = ["handles, seen = {}, collections.defaultdict(list)"]
    hooked: set[int] = set()
    for step in program.steps:
        lines += _statement(step, library, hooked)
    return lines + _finale(program, library)


def _statement(step: Step, library: str, hooked: set[int]) -> list[str]:
    lines = _lines_of(step, library, hooked)
    return [f"with {library}.no_grad():", *_indented(lines)] if step.no_grad else lines


def _lines_of(step: Step, library: str, hooked: set[int]) -> list[str]:
    if step.kind == "checkpoint":
        return _checkpoint(step, library, hooked)
    names = [f"v{i}" for i in step.args]
    if library == "torch" and step.kind in {"pure", "write"}:
        names = [
            f"handles['f{i}']({n})" if i in hooked and (step.kind == "pure" or i != step.out) else n
            for i, n in zip(step.args, names, strict=True)
        ]
    if step.kind == "forward":
        hooked.add(step.args[0])
    if step.kind == "unhook":
        hooked.discard(step.args[0])
    text = step.tw if library == "tw" else step.torch
    if text is None:
        return [f"raise NotImplementedError  # PyTorch has no such operation: {step.tw}"]
    return [fill_in(text, f"v{step.out}", names)]


def _checkpoint(step: Step, library: str, hooked: set[int]) -> list[str]:
    inputs = ", ".join(f"v{i}" for i in step.args)
    results = ", ".join(f"v{i}" for i in step.results)
    body = [line for inner in step.body for line in _statement(inner, library, hooked)]
    call = f"tw.checkpoint(block, {inputs})" if library == "tw" else f"block({inputs})"
    return [
        f"def block({inputs}):",
        *_indented([*body, f"return {results}"]),
        f"{results} = {call}",
    ]


def _finale(program: Program, library: str) -> list[str]:
    s = program.settings
    kept = sorted({i for step in program.steps for i in step.defines} - set(program.terms))
    values = ", ".join(f"{i}: v{i}" for i in kept)
    plan = ", plan=True" if s.plan and library == "tw" else ""
    lines = [
        f"loss = {' + '.join(f'v{i}' for i in program.terms)}",
        f"values = {{{values}}}",
        "values = {i: v for i, v in values.items() if v is not None}",
        "leaves = {i: v for i, v in values.items() if v.is_leaf and v.requires_grad}",
    ]
    grad = "tw.grad" if library == "tw" else "torch.autograd.grad"
    number = "tw.asarray" if library == "tw" else "torch.from_numpy"
    weights = f"{number}(data(({program.seed}, 1000 + i), tuple(g.shape), -1, 1))"
    total = [
        "used = {i: g for i, g in grads.items() if g is not None and g.requires_grad}",
        f"terms = [(g * {weights}).sum() for i, g in used.items()]",
    ]
    show = "print({i: g if g is None else g.tolist() for i, g in grads.items()})"
    if s.finale == "grad":
        inputs = "list(leaves.values())"
        return [
            *lines,
            f"first = {grad}(loss, {inputs}, create_graph=True, allow_unused=True)",
            "grads = dict(zip(leaves, first))",
            show,
            *total,
            "if terms:",
            f"    second = {grad}(sum(terms[1:], terms[0]), {inputs}, allow_unused=True)",
            "    grads = dict(zip(leaves, second))",
            f"    {show}",
        ]
    if s.finale == "twice":
        lines.append(f"loss.backward(retain_graph=True{plan})")
    lines.append(f"loss.backward(create_graph={s.finale == 'graph'}{plan})")
    if s.finale == "graph":
        lines += ["grads = {i: x.grad for i, x in leaves.items()}", *total]
        lines += ["if terms:", "    sum(terms[1:], terms[0]).backward()"]
    return [*lines, "grads = {i: x.grad for i, x in leaves.items()}", show]
