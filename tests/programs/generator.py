"""Programs from seeds: what the generator knows of its values, and which step comes next."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from programs.operations import Span
from programs.program import Program, Settings, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST = 60.0
EXTENTS = (1, 2, 2, 3, 3, 4)
# Only blocks of 64 KiB and more leave a pool.
WIDE_SHAPES = ((96, 96), (96, 96), (96, 96), (96, 1), (1, 96), (96,))


@dataclass
class Memory:
    """What several values may lie in."""

    span: Span
    # A recorded operation has kept what it read here: a write will be refused by backward.
    kept: bool = False
    # Libraries differ in what shares this memory, so that nothing may write to it.
    frozen: bool = False
    # Whether row-major; what gathers may come in another order, which only reshape sees.
    ordered: bool = True
    # How often recorded writes have changed it.
    writes: int = 0
    is_leaf: bool = False


@dataclass
class Value:
    """A tensor as the generator sees it."""

    id: int
    shape: tuple[int, ...]
    memory: Memory
    # Which elements of the memory, in the value's shape.
    positions: np.ndarray
    recorded: bool
    is_view: bool = False
    # A view taken under no_grad, which may be written there only.
    apart: bool = False
    forward_hook: bool = False
    # A checkpoint will read it again, and then expects what it found the first time.
    read_again: bool = False
    # Its operation's gradient may read the result in one library and the operands in another.
    result_is_read: bool = False
    writes_seen: int = 0
    depth: int = 0

    @property
    def span(self) -> Span:
        if not self.forward_hook:
            return self.memory.span
        return Span(min(self.memory.span.low / 2, -1), max(self.memory.span.high / 2, 1))

    @property
    def stale(self) -> bool:
        return self.is_view and self.writes_seen != self.memory.writes

    @property
    def distinct(self) -> bool:
        return len(np.unique(self.positions)) == self.positions.size


@dataclass
class State:
    """The program so far."""

    rng: random.Random
    seed: int
    settings: Settings
    wide: bool = False
    steps: list[Step] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    count: int = 0
    no_grad: bool = False
    # Within a checkpoint's body: the first value that the body makes, and what memory was there.
    body_from: int | None = None
    outside: tuple[Memory, ...] = ()

    def new_id(self) -> int:
        self.count += 1
        return self.count - 1

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def shape(self) -> tuple[int, ...]:
        if self.wide:
            return self.rng.choice(WIDE_SHAPES)
        return tuple(
            self.rng.choice(EXTENTS) for _ in range(self.rng.choice((0, 1, 1, 2, 2, 2, 3)))
        )

    def step(self, kind: str, text: str, torch: str | None = "", **fields: object) -> None:
        """Appends a step; `m.` stands for the library in the text of both."""
        torch = (torch or text).replace("m.", "torch.") if torch is not None else None
        tw = text.replace("m.", "tw.")
        self.steps.append(Step(kind, tw, torch, no_grad=self.no_grad, **fields))  # type: ignore[arg-type]

    def pick(self, accepts: Callable[[Value], bool] = lambda _: True) -> Value | None:
        """One of the values, newer ones and usable ones more often."""
        found = [v for v in self.values if accepts(v)]
        fresh = [v for v in found if not v.stale]
        if fresh and not self.chance(0.04):
            found = fresh
        if not found:
            return None
        return found[-1 - int(len(found) * self.rng.random() ** 1.6)]

    def shared(self, x: Value) -> bool:
        """Whether another value may lie in the same memory."""
        others = any(v.memory is x.memory for v in self.values if v is not x)
        return x.is_view or x.memory.frozen or others

    def is_outside(self, x: Value) -> bool:
        """Whether a checkpoint's body would change the memory again when it runs again."""
        return any(memory is x.memory for memory in self.outside)

    def any(self) -> Value:
        return self.pick() or self.leaf()

    def leaf(
        self, shape: tuple[int, ...] | None = None, requires_grad: bool | None = None
    ) -> Value:
        shape = self.shape() if shape is None else shape
        if self.body_from is not None:
            requires_grad = False
        if requires_grad is None:
            requires_grad = self.chance(0.75)
        low, high = self.rng.choice([(-1.5, 1.5), (-1.5, 1.5), (0.3, 1.5)])
        i = self.new_id()
        numbers = f"data(({self.seed}, {i}), {shape}, {low}, {high})"
        grad = ".requires_grad_()" if requires_grad else ""
        self.step(
            "leaf",
            f"{{o}} = tw.asarray({numbers}, copy=True){grad}",
            f"{{o}} = torch.from_numpy({numbers}){grad}",
            out=i,
            shape=shape,
        )
        memory = Memory(Span(low, high), is_leaf=requires_grad)
        return self.add(i, shape, memory, requires_grad)

    def add(self, i: int, shape: tuple[int, ...], memory: Memory, recorded: bool) -> Value:
        positions = np.arange(int(np.prod(shape))).reshape(shape)
        value = Value(i, shape, memory, positions, recorded)
        self.values.append(value)
        return value

    def pure(
        self,
        text: str,
        torch: str,
        args: list[Value],
        shape: tuple[int, ...],
        span: Span,
        kept: str = "x",
    ) -> Value | None:
        """A step that makes a new value; None where it could grow too large."""
        if not span.largest <= LARGEST or np.prod(shape) > (20000 if self.wide else 200):
            return None
        i = self.new_id()
        self.step(
            "pure",
            "{o} = " + text,
            "{o} = " + (torch or text),
            args=tuple(v.id for v in args),
            out=i,
            shape=shape,
        )
        recorded = not self.no_grad and any(v.recorded for v in args)
        if recorded and "x" in kept:
            for v in args:
                v.memory.kept = True
        memory = Memory(Span(*span), kept=recorded and "y" in kept)
        value = self.add(i, shape, memory, recorded)
        value.result_is_read = kept != "" and text != "{0} * {1}"
        value.depth = 1 + max((v.depth for v in args), default=0)
        return value

    def matching(self, shape: tuple[int, ...]) -> Value:
        """A value of this shape."""
        found = self.pick(lambda v: v.shape == shape) if self.chance(0.8) else None
        return found or self.leaf(shape)

    def broadcastable(self, shape: tuple[int, ...]) -> Value:
        """A value whose shape can be broadcast to this one."""
        if self.chance(0.75):
            found = self.pick(lambda v: fits(v.shape, shape))
            if found:
                return found
        kept = shape[self.rng.randint(0, len(shape)) :] if self.chance(0.3) else shape
        return self.leaf(tuple(1 if self.chance(0.2) else n for n in kept))

    @contextmanager
    def without_grad(self, on: bool) -> Iterator[None]:
        before, self.no_grad = self.no_grad, self.no_grad or on
        yield
        self.no_grad = before


def fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` can be broadcast to `target`."""
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def settings(rng: random.Random, wide: bool, isas: list[str], rungs: list[str]) -> Settings:
    """What a program runs in."""
    finale = rng.choice(["grad", "grad", "grad", "grad", "once", "twice", "graph"])
    return Settings(
        finale=finale,
        plan=finale in {"once", "twice"} and rng.random() < 0.5,
        isa=rng.choice(isas) if rng.random() < 0.15 else None,
        matmul=rng.choice(rungs) if rng.random() < 0.15 else None,
        threads=2 if wide and rng.random() < 0.3 else None,
        quota=rng.uniform(0.3, 0.9) if wide else None,
    )


def program(seed: int, isas: list[str], rungs: list[str], is_wide: bool | None = None) -> Program:
    """The program of a seed; one in a hundred is wide where it is not said."""
    from programs.choices import next_step  # noqa: PLC0415  (which builds on this module)

    rng = random.Random(seed)
    drawn = rng.random() < 0.01
    wide = drawn if is_wide is None else is_wide
    state = State(rng, seed, settings(rng, wide, isas, rungs), wide)
    for _ in range(rng.randint(1, 3)):
        state.leaf(requires_grad=True)
    length = rng.randint(5, 15) + len(state.steps)
    while len(state.steps) < length:
        next_step(state)
    terms = [term for v in chosen_outputs(state) if (term := add_term(state, v)) is not None]
    return Program(seed, tuple(state.steps), tuple(terms), state.settings)


def chosen_outputs(state: State) -> list[Value]:
    """Which values the loss is made of: most often the last ones, which hold the others."""
    recorded = [v for v in state.values if v.recorded and not v.stale] or state.values
    count = state.rng.choice((1, 2, 2, 3))
    last = recorded[-2:]
    return list({v.id: v for v in [*last, *state.rng.choices(recorded, k=count)]}.values())


def add_term(state: State, v: Value) -> int | None:
    """A weighted sum of a value as one term of the loss."""
    i = state.new_id()
    numbers = f"data(({state.seed}, {i}), {v.shape}, -1, 1)"
    state.step(
        "pure",
        f"{{o}} = ({{0}} * tw.asarray({numbers})).sum()",
        f"{{o}} = ({{0}} * torch.from_numpy({numbers})).sum()",
        args=(v.id,),
        out=i,
    )
    return i
