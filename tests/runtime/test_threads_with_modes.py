"""Threads with opposite modes side by side get what their own mode says, op by op."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from threading import Barrier, BrokenBarrierError
from typing import Any

import numpy as np
import pytest
from cases import RECORDS
from cases.arrays import FLOATS
from cases.record import OpCase
from cases.uses import bits, large_use, per, uses

import tilewright as tw
from tilewright import _core

THREADS = 3
ROUNDS = 2  # in each of which every thread runs every mode once, in an order of its own
OTHER_ISA = tw.kernels.isas()[0]
# Of ladders whose last rung refuses some problems, one that takes all of those here.
TAKES_ANY = {
    "matmul": "simd",
    "convolution": "im2col",
    "convolution_input_gradient": "im2col",
    "convolution_weight_gradient": "im2col",
}


class Use:
    """A call of a record on operands that all threads share."""

    def __init__(self, case: OpCase, args: Sequence[tw.Tensor], options: dict[str, Any]) -> None:
        self.case, self.options = case, options
        self.leaves = [x.detach() for x in args]
        for i, leaf in enumerate(self.leaves):
            if i in case.differentiable and str(leaf.dtype) in FLOATS:
                leaf.requires_grad_()
        self.there = [x.to("null") for x in args]

    def call(self, *args: tw.Tensor) -> tw.Tensor:
        return self.case.call(*(args or self.leaves), **self.options)

    def gradients(self, y: tw.Tensor, leaves: Sequence[tw.Tensor]) -> list[bytes]:
        wanted = [x for x in leaves if x.requires_grad]
        return [bits(g) for g in tw.grad((y * y).sum(), wanted)] if y.requires_grad else []

    @cached_property
    def forced(self) -> dict[str, str]:
        """Of the ops that it launches, another kernel or the body."""
        choices = {op: tw.kernels.names(op) for op in tw.kernels.ops()}
        with tw.explain() as report:
            self.call()
        launched = {entry.op for entry in report._recorded} & set(choices)
        return {op: TAKES_ANY.get(op, choices[op][-1]) for op in launched}


# ---- modes: what a thread sees under each ----


def seen(y: tw.Tensor) -> tuple[Any, ...]:
    values = bits(y) if y.device == "cpu" else None
    return values, y.requires_grad, y.device, y.shape, str(y.dtype)


def events_of(report: tw.explain) -> list[tuple[str, ...]]:
    return [(e.op, e.kernel, e.isa, e.problem) for e in report._recorded]


def recorded(use: Use) -> Any:
    y = use.call()
    return seen(y), use.gradients(y, use.leaves)


def unrecorded(use: Use) -> Any:
    with tw.no_grad():
        return seen(use.call())


def observed(use: Use) -> Any:
    with tw.explain() as report:
        y = use.call()
    return seen(y), events_of(report)


def under_forced_kernels(use: Use) -> Any:
    with tw.kernels.use(**use.forced), tw.no_grad(), tw.explain() as report:
        y = use.call()
    return seen(y), events_of(report)


def on_another_instruction_set(use: Use) -> Any:
    with tw.kernels.use(isa=OTHER_ISA), tw.explain() as report:
        y = use.call()
        gradients = use.gradients(y, use.leaves)
    return seen(y), gradients, events_of(report)


def on_the_null_device(use: Use) -> Any:
    return seen(use.call(*use.there)), tw.ones((2,)).device


def making_tensors_on_the_null_device(use: Use) -> Any:
    tw.set_device("null")
    try:
        return seen(use.call()), tw.ones((2,)).device
    finally:
        tw.set_device("cpu")


def captured(use: Use) -> Any:
    with tw.no_grad():
        inputs = [x.detach() for x in use.leaves]
        recording = _core._capture(use.call, inputs)
        return recording.calls(), recording.figures(), [seen(y) for y in recording.replay(inputs)]


def in_a_pool(use: Use) -> Any:
    with tw.memory.Pool() as pool:
        y = use.call()
    return seen(y), pool.stats()["allocations"]


def with_a_planned_backward(use: Use) -> Any:
    """Whose plan is made by a dry run."""
    leaves = [x.detach().requires_grad_(x.requires_grad) for x in use.leaves]
    y = use.call(*leaves)
    if y.requires_grad:
        (y * y).sum().backward(plan=True)
    return seen(y), [None if x.grad is None else bits(x.grad) for x in leaves]


def checkpointed(use: Use) -> Any:
    y = tw.checkpoint(use.call, *use.leaves)
    return seen(y), use.gradients(y, use.leaves)


def under_autocast(use: Use) -> Any:
    """Of float32 leaves, which is what it narrows."""
    leaves = [x.astype(tw.float32) if x.dtype == tw.float64 else x for x in use.leaves]
    with tw.autocast(), tw.explain() as report:
        y = use.call(*leaves)
    return seen(y), events_of(report)


def batch_invariant(use: Use) -> Any:
    with tw.use_batch_invariant(), tw.explain() as report:
        y = use.call()
        gradients = use.gradients(y, use.leaves)
    return seen(y), gradients, events_of(report), tw.is_batch_invariant()


MODES: tuple[Callable[[Use], Any], ...] = (
    recorded,
    unrecorded,
    observed,
    under_forced_kernels,
    on_another_instruction_set,
    on_the_null_device,
    making_tensors_on_the_null_device,
    captured,
    in_a_pool,
    with_a_planned_backward,
    checkpointed,
    under_autocast,
    batch_invariant,
)


# ---- side by side ----


@pytest.fixture(scope="module", autouse=True)
def frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(THREADS) as threads:
        yield threads


def side_by_side(use: Use, rounds: int, seed: int, pool: ThreadPoolExecutor) -> None:
    expected = [mode(use) for mode in MODES]
    barrier = Barrier(THREADS)

    def work(thread: int) -> None:
        rng = np.random.default_rng((seed, thread))
        try:
            for i in np.concatenate([rng.permutation(len(MODES)) for _ in range(rounds)]):
                barrier.wait(60)
                got = MODES[i](use)
                assert got == expected[i], f"{use.case} {MODES[i].__name__}"
        except BaseException:
            barrier.abort()
            raise

    errors = [done.exception() for done in [pool.submit(work, i) for i in range(THREADS)]]
    for error in errors:
        if error is not None and not isinstance(error, BrokenBarrierError):
            raise error
    assert errors == [None] * THREADS


@per(RECORDS)
def test_small_calls(case: OpCase, seed: list[int], pool: ThreadPoolExecutor) -> None:
    found = [(args, options) for args, options in uses(case, 1) if all(x.size for x in args)]
    args, options = found[seed[-1] % len(found)]
    side_by_side(Use(case, args, options), ROUNDS, seed[-1], pool)


@per(RECORDS)
def test_calls_without_the_lock(case: OpCase, seed: list[int], pool: ThreadPoolExecutor) -> None:
    args, options = large_use(case, seed)
    side_by_side(Use(case, args, options), 1, seed[-1], pool)
