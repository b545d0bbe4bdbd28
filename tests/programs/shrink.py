"""The smallest program that still goes wrong in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from programs.program import Program, Settings, Step


def shrunk(program: Program, fails: Callable[[Program], bool], tries: int = 600) -> Program:
    """Drops and simplifies steps while `fails` holds."""
    best = program
    progress = True
    while progress and tries > 0:
        progress = False
        for candidate in _simpler(best):
            tries -= 1
            if tries <= 0:
                break
            if _is_sound(candidate) and fails(candidate):
                best, progress = candidate, True
                break
    return best


def _simpler(program: Program) -> Iterator[Program]:
    """Simpler programs, those that leave out most first."""
    yield from _plainer_settings(program)
    if len(program.terms) > 1:
        for term in program.terms:
            yield _without_value(program, term)
    steps = program.steps
    for size in (8, 4, 2):
        for start in range(len(steps) - size, -1, -size):
            if all(_is_idle(program, s) for s in steps[start : start + size]):
                yield replace(program, steps=steps[:start] + steps[start + size :])
    for n in range(len(steps) - 1, -1, -1):
        yield from _without(program, n)


def _plainer_settings(program: Program) -> Iterator[Program]:
    s, plain = program.settings, Settings(finale="once")
    for name in ("isa", "matmul", "threads", "quota", "plan", "finale"):
        if getattr(s, name) != getattr(plain, name):
            yield replace(program, settings=replace(s, **{name: getattr(plain, name)}))


def _is_idle(program: Program, step: Step) -> bool:
    """Whether nothing after the step names what it defines."""
    made = set(step.defines)
    named = {i for other in program.steps if other is not step for i in _named(other)}
    return not made & (named | set(program.terms))


def _is_sound(program: Program) -> bool:
    """Whether values with a forward hook are only read, as in the programs that are generated."""
    hooked: set[int] = set()
    for step in program.steps:
        if step.kind == "forward":
            hooked.add(step.args[0])
        if step.kind == "unhook":
            hooked.discard(step.args[0])
        if step.kind in {"write", "toggle"} and step.out in hooked:
            return False
        if step.kind in {"view", "checkpoint"} and hooked & set(step.args):
            return False
    return True


def _named(step: Step) -> set[int]:
    """The values that a step reads or changes."""
    own = {step.out} - set(step.defines)
    inner = {i for s in step.body for i in _named(s)}
    return {*step.args, *own, *inner} - {i for s in step.body for i in s.defines}


def _without_value(program: Program, value: int) -> Program:
    steps = tuple(s for s in program.steps if value not in s.defines)
    return replace(program, steps=steps, terms=tuple(t for t in program.terms if t != value))


def _without(program: Program, n: int) -> Iterator[Program]:
    """Programs in which step n is gone, or less."""
    steps, step = program.steps, program.steps[n]
    if _is_idle(program, step):
        yield replace(program, steps=steps[:n] + steps[n + 1 :])
    if step.no_grad:
        yield _with(program, n, replace(step, no_grad=False))
    if step.kind == "checkpoint":
        yield replace(program, steps=steps[:n] + step.body + steps[n + 1 :])
        for k in range(len(step.body)):
            yield _with(program, n, replace(step, body=step.body[:k] + step.body[k + 1 :]))
    if step.kind in {"pure", "view"} and step.out not in program.terms:
        shapes = {s.out: s.shape for s in steps if s.kind in {"leaf", "pure", "view"}}
        for i in step.args:
            if shapes.get(i) == step.shape:
                renamed = tuple(_renamed(s, step.out, i) for s in steps[n + 1 :])
                yield replace(program, steps=steps[:n] + renamed)
        yield _with(program, n, _leaf(program.seed, step, "v"))
    if step.kind == "leaf" and ".requires_grad_()" in step.tw:
        yield _with(program, n, _leaf(program.seed, step, ""))


def _with(program: Program, n: int, step: Step) -> Program:
    return replace(program, steps=(*program.steps[:n], step, *program.steps[n + 1 :]))


def _leaf(seed: int, step: Step, grad: str) -> Step:
    numbers = f"data(({seed}, {step.out}), {step.shape}, 0.3, 1.5)"
    grad = ".requires_grad_()" if grad else ""
    return Step(
        "leaf",
        f"{{o}} = tw.asarray({numbers}, copy=True){grad}",
        f"{{o}} = torch.from_numpy({numbers}){grad}",
        out=step.out,
        shape=step.shape,
    )


def _renamed(step: Step, old: int, new: int) -> Step:
    handle = (f"'f{old}'", f"'f{new}'")
    return replace(
        step,
        tw=step.tw.replace(*handle),
        torch=step.torch.replace(*handle) if step.torch else step.torch,
        args=tuple(new if i == old else i for i in step.args),
        out=new if step.out == old else step.out,
        body=tuple(_renamed(s, old, new) for s in step.body),
    )
