"""Holds a kernel against the definition, and measures it beside the engine's own choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from timeit import Timer
from typing import TYPE_CHECKING

import tilewright as tw
from tilewright.nn import functional

if TYPE_CHECKING:
    from tilewright import Tensor
    from tilewright._engine.modes import ModeBlock

# Sums of this many terms and more are compared; an error grows with the root of their number.
_ULPS = {"float32": 2.0**-23, "float64": 2.0**-52}
_ALLOWED_ULPS = 16.0
_ROUNDS = 7


@dataclass(frozen=True)
class Problem:
    """Operands of one call, and the call."""

    text: str
    dtype: str
    terms: int
    call: Callable[[], Tensor]
    precise: Callable[[], Tensor]  # in float64


@dataclass(frozen=True)
class Verdict:
    """What a kernel did with one problem.

    `error`: the largest error as a share of the result's largest number; None where it refused, for
    `reason`. `speed`: the time of the engine's own choice over this kernel's, where measured.
    """

    problem: str
    error: float | None
    allowed: float
    reason: str = ""
    speed: float | None = None

    @property
    def is_right(self) -> bool:
        """Whether it refused, or its error is within what is allowed."""
        return self.error is None or self.error <= self.allowed


def validate(op: str, name: str, use: type[ModeBlock], *, measure: bool = False) -> list[Verdict]:
    """Runs a kernel on problems of many sizes and layouts, and compares with float64.

    `use` forces kernels within a block.
    """
    return [_judge(op, name, use, problem, measure) for problem in _problems(op)]


def _judge(op: str, name: str, use: type[ModeBlock], problem: Problem, measure: bool) -> Verdict:
    allowed = _ALLOWED_ULPS * _ULPS[problem.dtype] * max(problem.terms, 1) ** 0.5
    with use(**{op: "naive"}):
        want = problem.precise()
    try:
        with use(**{op: name}):
            got = problem.call()
    except ValueError as refusal:
        reason = str(refusal).partition("does not accept this problem: ")[2]
        if not reason:
            raise
        return Verdict(problem.text, None, allowed, reason)
    size = float(abs(want).max()) if want.size else 0.0
    error = float(abs(got.astype(tw.float64) - want).max()) / (size or 1.0) if want.size else 0.0
    if error != error:  # noqa: PLR0124  (NaN: of elements that were not written, say)
        error = float("inf")
    speed = _speed(op, name, use, problem.call) if measure else None
    return Verdict(problem.text, error, allowed, speed=speed)


def _speed(op: str, name: str, use: type[ModeBlock], call: Callable[[], Tensor]) -> float:
    """Ours over theirs, taking turns."""
    timer = Timer(call)
    number = max(1, int(1e-3 / max(timer.timeit(1), 1e-7)))
    ours, theirs = [], []
    for _ in range(_ROUNDS):
        ours.append(timer.timeit(number))
        with use(**{op: name}):
            theirs.append(timer.timeit(number))
    return median(ours) / median(theirs)


def _problems(op: str) -> Iterator[Problem]:
    yield from _products() if op == "matmul" else _convolutions(op)


def _product(text: str, dtype: str, a: Tensor, b: Tensor) -> Problem:
    wide_a, wide_b = a.astype(tw.float64), b.astype(tw.float64)
    return Problem(text, dtype, a.shape[-1], lambda: a @ b, lambda: wide_a @ wide_b)


def _biased(dtype: str, x: Tensor, w: Tensor, bias: Tensor) -> Problem:
    wide = [each.astype(tw.float64) for each in (x, w, bias)]
    text = f"{dtype} linear 33x31x20 with bias"
    return Problem(text, dtype, 20, lambda: tw.linear(x, w, bias), lambda: tw.linear(*wide))


def _products() -> Iterator[Problem]:
    stream = tw.Generator(0)

    def numbers(*shape: int, dtype: str) -> Tensor:
        return tw.normal(0.0, 1.0, shape, dtype=getattr(tw, dtype), generator=stream)

    for dtype in _ULPS:
        for m, n, k in (
            (1, 1, 1), (3, 5, 7), (1, 64, 33), (17, 1, 65), (16, 16, 16), (64, 64, 64),
            (100, 37, 129), (256, 256, 256), (5, 300, 0),
        ):  # fmt: skip
            shape = f"{dtype} {m}x{n}x{k}"
            a, b = numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype)
            yield _product(shape, dtype, a, b)
            if k:
                turned_a, turned_b = numbers(k, m, dtype=dtype).T, numbers(n, k, dtype=dtype).T
                yield _product(f"{shape}, A transposed", dtype, turned_a, b)
                yield _product(f"{shape}, B transposed", dtype, a, turned_b)
        a, b = numbers(4, 9, 20, dtype=dtype), numbers(4, 20, 31, dtype=dtype)
        yield _product(f"{dtype} 4x 9x31x20", dtype, a, b)
        yield _product(f"{dtype} 4x 9x31x20, one B", dtype, a, b[0])
        yield _biased(dtype, *(numbers(*s, dtype=dtype) for s in ((33, 20), (31, 20), (31,))))


def _convolutions(op: str) -> Iterator[Problem]:
    stream = tw.Generator(0)
    for dtype in _ULPS:
        for text, x_shape, w_shape, options in (
            ("3x3", (2, 3, 9, 11), (4, 3, 3, 3), {}),
            ("3x3 padded", (2, 8, 14, 14), (16, 8, 3, 3), {"padding": 1}),
            ("5x5 stride 2", (1, 4, 17, 15), (6, 4, 5, 5), {"stride": 2, "padding": 2}),
            ("1x1", (2, 16, 7, 7), (8, 16, 1, 1), {}),
            ("3x3 dilated", (1, 2, 12, 12), (3, 2, 3, 3), {"dilation": 2}),
            ("3x3 of groups", (2, 6, 8, 8), (6, 3, 3, 3), {"groups": 2}),
            ("depthwise", (1, 8, 10, 10), (8, 1, 3, 3), {"groups": 8}),
        ):
            x, w = (
                tw.normal(0.0, 1.0, shape, dtype=getattr(tw, dtype), generator=stream)
                for shape in (x_shape, w_shape)
            )

            def call(x: Tensor = x, w: Tensor = w, options: dict[str, int] = options) -> Tensor:
                x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
                y: Tensor = functional.conv2d(x, w, **options)
                if op == "convolution":
                    return y.detach()
                of = x if op == "convolution_input_gradient" else w
                return tw.autograd.grad(y.sum(), of)[0]

            def precise(call: Callable[..., Tensor] = call, x: Tensor = x, w: Tensor = w) -> Tensor:
                return call(x.astype(tw.float64), w.astype(tw.float64))

            terms = w[0].size if op == "convolution" else x.size
            yield Problem(f"{dtype} {text} {x_shape} * {w_shape}", dtype, terms, call, precise)
