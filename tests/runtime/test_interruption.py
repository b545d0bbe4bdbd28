"""What a signal's handler raises ends a long op, and nothing is left half-done.

A timer's signal stands for Ctrl-C. Ops are so long that the signal arrives inside; an op that was
ended early tells no observer of its end.
"""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import tilewright as tw
from tilewright._engine.background import call_apart

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="timers send no signals there")


class SignalError(Exception):
    """Raised by the handler."""


@contextmanager
def interrupted(after_seconds: float = 0.05, raises: bool = True) -> Iterator[list[int]]:
    """A signal while the block runs; yields the signals that have arrived."""
    arrived: list[int] = []

    def handler(number: int, frame: object) -> None:
        arrived.append(number)
        if raises:
            raise SignalError

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, after_seconds)
    try:
        yield arrived
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def for_ever(call: Callable[[], object]) -> None:
    while True:
        call()


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = tw.get_num_threads()
    tw.set_num_threads(request.param)
    yield request.param
    tw.set_num_threads(before)


def repeated(*shape: int, dtype: tw.dtype = tw.float32) -> tw.Tensor:
    """A tensor of any size in the memory of one element."""
    return tw.broadcast_to(tw.full((1,) * len(shape), 0.5).astype(dtype), shape)


def endless_calls() -> dict[str, Callable[[], object]]:
    """Hours of work each, in the memory of a few elements."""
    row, column = repeated(64, 1 << 34), repeated(1 << 34, 64)
    return {
        "matmul": lambda: row @ column,
        "matmul of float64": lambda: (
            repeated(8, 1 << 36, dtype=tw.float64) @ repeated(1 << 36, 8, dtype=tw.float64)
        ),
        "matmul of integers": lambda: (
            repeated(64, 1 << 34, dtype=tw.int64) @ repeated(1 << 34, 64, dtype=tw.int64)
        ),
    }


def long_calls() -> dict[str, Callable[[], object]]:
    """Seconds of work each."""
    square = repeated(5000, 5000, dtype=tw.float64)
    images, weights = tw.ones((16, 256, 64, 64)), tw.ones((256, 256, 5, 5))
    heads = repeated(8, 8, 4096, 64)
    line = tw.rand(20_000_000).double()
    return {
        "matmul": lambda: square @ square,
        "convolution_sums": lambda: tw.conv2d(images, weights),
        "scaled_dot_product_attention": lambda: tw.scaled_dot_product_attention(
            heads, heads, heads
        ),
        "sort": lambda: tw.sort(line),
        "sum": lambda: tw.sum(repeated(1 << 36)),
        "var": lambda: tw.var(repeated(1 << 35)),
        "argmax": lambda: tw.argmax(repeated(1 << 35)),
    }


def check_engine() -> None:
    """Memory is as it was, and the next op is right."""
    x = tw.rand((200, 200))
    assert tw.allclose((x @ x).sum(), (x.double() @ x.double()).sum().float())


@pytest.mark.parametrize("name", endless_calls())
def test_endless_ops_end(name: str, threads: int) -> None:
    call = endless_calls()[name]
    gc.collect()
    live = tw.memory.stats()["live_bytes"]
    with pytest.raises(SignalError), interrupted():
        call()
    gc.collect()
    assert tw.memory.stats()["live_bytes"] == live
    check_engine()


def test_long_ops_end_early(threads: int) -> None:
    for name, call in long_calls().items():
        gc.collect()
        live = tw.memory.stats()["live_bytes"]
        with tw.explain() as report, pytest.raises(SignalError), interrupted():
            call()
        assert name not in [record.op for record in report]
        gc.collect()
        assert tw.memory.stats()["live_bytes"] == live, name
        check_engine()


def test_the_handler_decides(threads: int) -> None:
    """One that raises nothing lets the op go on, to the same result."""
    x = tw.rand((1000, 1000)).double()
    expected = x @ x
    with interrupted(0.02, raises=False) as arrived:
        while not arrived:
            assert bool((x @ x == expected).all())
    assert arrived


def test_ops_in_place_run_to_their_end(threads: int) -> None:
    x = tw.zeros(30_000_000)
    with pytest.raises(SignalError), interrupted():
        for_ever(lambda: x.add_(1))
    assert bool((x == x[0]).all())
    version = x.version
    with pytest.raises(SignalError), interrupted():
        for_ever(lambda: x.mul_(1.0001))
    assert bool((x == x[0]).all())
    assert x.version > version


def test_a_backward_pass_leaves_whole_gradients(threads: int) -> None:
    w = tw.rand((1000, 1000)).double()
    w.requires_grad = True

    def step() -> None:
        w.grad = None
        (w @ w @ w).sum().backward()

    step()
    expected = w.grad
    with pytest.raises(SignalError), interrupted(0.2):
        for_ever(step)
    assert w.grad is None or bool((w.grad == expected).all())


def test_long_calls_of_other_libraries_end_early() -> None:
    small = tw.rand((30, 30)).double()
    assert tw.allclose(tw.linalg.inv(small) @ small, tw.eye(30).double())
    tw.fft.fft(tw.linalg.svdvals(small))  # modules are imported
    x = tw.rand((2000, 2000)).double()
    with pytest.raises(SignalError), interrupted():
        for_ever(lambda: tw.linalg.svdvals(x))
    line = tw.rand(1 << 22)
    with pytest.raises(SignalError), interrupted():
        for_ever(lambda: tw.fft.fft(line))
    assert tw.allclose(tw.linalg.inv(small) @ small, tw.eye(30).double())


def test_errors_of_long_calls_are_their_own() -> None:
    def fails() -> None:
        raise ZeroDivisionError("here")

    with pytest.raises(ZeroDivisionError, match="here"):
        call_apart(1e12, fails)
    assert call_apart(1e12, divmod, 7, 2) == (3, 1)
