"""Features that programs run under, several at once.

Some choose arithmetic: instruction set, kernel, type, batch invariance. Under the same of these all
others, which move memory, threads and order of work, must leave every bit as it is.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from programs.engines import REFUSALS, OnTilewright, Outcome
from programs.program import Program, Step, data
from tilewright.data import FileTensor
from tilewright.runtime import Scheduler, transfer

PATIENCE = 60
WAYS_OF_FILES = ("npy", "safetensors", "part by part", "in the background")


@dataclass(frozen=True)
class Features:
    """`neutral` names what must change no bit; `share` is what a quota leaves of the peak."""

    seed: int
    narrow: bool = False
    autocast: bool = False
    invariant: bool = False
    neutral: frozenset[str] = frozenset()
    share: float = 0.6

    @property
    def arithmetic(self) -> Features:
        """The same without what is neutral."""
        return replace(self, neutral=frozenset())


def features_of(seed: int, wide: bool) -> Features:
    """Some of all, drawn by a seed; a quota where blocks are large enough to leave a pool."""
    rng = random.Random(seed * 7 + 1)
    names = [name for name in (*WRAPPERS, *WITHIN) if name != "quota"]
    chosen = set(rng.sample(names, rng.randint(2, 5)))
    narrow = rng.random() < 0.4
    return Features(
        seed,
        narrow=narrow,
        autocast=narrow and rng.random() < 0.6,
        invariant=rng.random() < 0.3,
        neutral=frozenset(chosen | ({"quota"} if wide else set())),
        share=rng.uniform(0.4, 0.9),
    )


class Surroundings:
    """What runs share: a folder, and schedulers of whole programs and of steps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs, self.steps = Scheduler(workers=1), Scheduler(workers=2)

    def close(self) -> None:
        self.programs.close()
        self.steps.close()


class UnderFeatures(OnTilewright):
    """A run whose steps and numbers go the features' ways."""

    refusals = (*REFUSALS, TypeError)  # operands in place of types that autocast made differ

    def __init__(self, program: Program, features: Features, around: Surroundings) -> None:
        super().__init__(program, ())
        self.features, self.around = features, around
        self.rng = random.Random(features.seed)
        self.numbers = self.numbers_of

    def numbers_of(
        self, key: tuple[int, ...], shape: tuple[int, ...], low: float, high: float
    ) -> np.ndarray:
        x = data(key, shape, low, high).astype("float32" if self.features.narrow else "float64")
        return self.from_file(x) if "files" in self.features.neutral else x

    def from_file(self, x: np.ndarray) -> np.ndarray:
        """The same numbers, written and read in some way."""
        way, path = self.rng.choice(WAYS_OF_FILES), self.around.folder / "numbers"
        if way == "in the background":
            transfer.write(path, tw.asarray(x)).wait()
            y = tw.empty(x.shape, dtype=str_of(x))
            transfer.read(path, y, priority=1).wait()
            return np.array(y.numpy())
        if way == "npy" or not x.ndim:
            np.save(path.with_suffix(".npy"), x)
            return np.load(path.with_suffix(".npy"))
        tw.save({"x": tw.asarray(x)}, path)
        if way == "safetensors":
            return np.array(tw.load(path)["x"].numpy())
        rows = FileTensor.from_safetensors(path, "x")
        return np.stack([rows[i].numpy() for i in range(x.shape[0])])

    def perform(self, step: Step, values: dict[int, Any]) -> None:
        work = super().perform
        if self.is_task(step):

            def in_a_task() -> None:
                with arithmetic(self.program, self.features):
                    work(step, values)

            self.around.steps.submit(in_a_task).result(PATIENCE)
        else:
            work(step, values)
        if "observers" in self.features.neutral and step.kind == "pure":
            observe(values[step.out])

    def is_task(self, step: Step) -> bool:
        """Whether a step runs in a task: always or never, as a checkpoint runs it again."""
        wanted = "tasks" in self.features.neutral and step.kind == "pure"
        return wanted and (self.features.seed + 3 * step.out) % 5 < 2

    def backward_of(self, loss: Any, create_graph: bool, retain_graph: bool) -> None:
        plan = self.program.settings.plan or ("plan" in self.features.neutral and not create_graph)
        loss.backward(create_graph=create_graph, retain_graph=retain_graph, plan=plan)


def observe(value: tw.Tensor) -> None:
    """A hook that looks at the gradient and leaves it."""
    if value.requires_grad:
        value.register_hook(lambda g: None if g.shape == value.shape else 1 / 0)


def str_of(x: np.ndarray) -> Any:
    return getattr(tw, str(x.dtype))


@contextmanager
def arithmetic(program: Program, features: Features) -> Iterator[None]:
    """What chooses a thread's arithmetic."""
    s = program.settings
    with ExitStack() as stack:
        if s.isa or s.matmul:
            forced = {"matmul": s.matmul} if s.matmul else {}
            stack.enter_context(tw.kernels.use(isa=s.isa, **forced))
        if features.autocast:
            stack.enter_context(tw.autocast(dtype=tw.bfloat16))
        if features.invariant:
            stack.enter_context(tw.use_batch_invariant())
        yield


# ---- around a whole run, the first ones outermost ----

_Run = Callable[[], Outcome]


def in_a_thread(run: _Run, _: Features, __: Surroundings) -> Outcome:
    found: list[Outcome | BaseException] = []

    def work() -> None:
        try:
            found.append(run())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PATIENCE)
    if not found:
        raise TimeoutError("the program's thread does not end")
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def in_a_task(run: _Run, _: Features, around: Surroundings) -> Outcome:
    return around.programs.submit(run).result(PATIENCE)  # type: ignore[no-any-return]


def beside_another(run: _Run, features: Features, _: Surroundings) -> Outcome:
    """While a thread computes under modes of its own."""
    done = threading.Event()

    def work() -> None:
        x = tw.asarray(data((features.seed,), (40, 40), -1, 1)).requires_grad_()
        with tw.use_batch_invariant(), tw.kernels.use(matmul="naive"), tw.memory.Pool():
            while not done.is_set():
                (tw.tanh(x @ x).sum() * 2).backward()
                x.grad = None

    other = threading.Thread(target=work)
    other.start()
    try:
        return run()
    finally:
        done.set()
        other.join(PATIENCE)


def on_more_threads(run: _Run, features: Features, _: Surroundings) -> Outcome:
    before = tw.get_num_threads()
    tw.set_num_threads(2 + features.seed % 3)
    try:
        return run()
    finally:
        tw.set_num_threads(before)


def in_a_pool(run: _Run, _: Features, __: Surroundings) -> Outcome:
    with tw.memory.Pool():
        return run()


def within_a_quota(run: _Run, features: Features, around: Surroundings) -> Outcome:
    free = tw.memory.Pool()
    with free:
        outcome = run()
    quota = int(free.stats()["peak_live_bytes"] * features.share)
    try:
        with tw.memory.Pool(quota_bytes=quota, spill_dir=str(around.folder)):
            return run()
    except MemoryError:  # too little even for one operation
        return outcome


def explained(run: _Run, _: Features, __: Surroundings) -> Outcome:
    with tw.explain():
        return run()


WRAPPERS: dict[str, Callable[[_Run, Features, Surroundings], Outcome]] = {
    "beside": beside_another,
    "task": in_a_task,
    "thread": in_a_thread,
    "more threads": on_more_threads,
    "pool": in_a_pool,
    "quota": within_a_quota,
    "explain": explained,
}
# What a run itself heeds.
WITHIN = ("observers", "tasks", "files", "plan")


def run_under(program: Program, features: Features, around: Surroundings) -> Outcome:
    """A run under all of the features."""

    def innermost() -> Outcome:
        with arithmetic(program, features):
            return UnderFeatures(program, features, around).whole()

    run: _Run = innermost
    for name, wrap in reversed(WRAPPERS.items()):
        if name in features.neutral:
            run = wrapped(wrap, run, features, around)
    return run()


def wrapped(
    wrap: Callable[[_Run, Features, Surroundings], Outcome],
    run: _Run,
    features: Features,
    around: Surroundings,
) -> _Run:
    return lambda: wrap(run, features, around)


# ---- checkpoints within checkpoints ----


def nested(program: Program, rng: random.Random) -> Program:
    """Runs of pure steps in checkpoints, and runs within these in inner ones."""
    # A hook that comes later would change what a checkpoint reads when it runs again.
    hooked = {step.args[0] for step in program.steps if step.kind in {"forward", "unhook"}}
    whole = {
        step.out
        for step in program.steps
        if step.kind == "pure" and not step.no_grad and not hooked & set(step.args)
    }
    return replace(program, steps=_in_checkpoints(program.steps, whole, set(program.terms), rng))


def _in_checkpoints(
    steps: tuple[Step, ...],
    whole: set[int],
    wanted: set[int],
    rng: random.Random,
    depth: int = 2,
) -> tuple[Step, ...]:
    """`whole` are values whose steps may run in a checkpoint, `wanted` what is read after all."""
    made: list[Step] = []
    n = 0
    while n < len(steps):
        end = n
        while end < len(steps) and steps[end].kind == "pure" and steps[end].out in whole:
            end += 1
        if end - n >= 2 and rng.random() < 0.7:
            end = rng.randint(n + 2, end)
            later = wanted | {i for step in steps[end:] for i in _read(step)}
            made.append(_checkpoint(steps[n:end], whole, later, rng, depth))
        else:
            end = max(end, n + 1)
            made += steps[n:end]
        n = end
    return tuple(made)


def _read(step: Step) -> set[int]:
    inner = {i for s in step.body for i in _read(s)}
    return {*step.args, *step.results, step.out, *inner}


def _checkpoint(
    body: tuple[Step, ...], whole: set[int], later: set[int], rng: random.Random, depth: int
) -> Step:
    own = {step.out for step in body}
    results = tuple(step.out for step in body if step.out in later or step is body[-1])
    inputs = tuple(dict.fromkeys(i for step in body for i in step.args if i not in own))
    if depth > 1 and len(body) > 2:
        body = _in_checkpoints(body, whole, set(results), rng, depth - 1)
    return Step("checkpoint", "", "", args=inputs, body=body, results=results)
