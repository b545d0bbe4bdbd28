"""Losses, padding, gather and multinomial draws against PyTorch, forward and with the gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from timeit import Timer
from typing import Any

import tilewright as tw
from tilewright.bench.harness import OURS, Case

PAIR, ROWS, IMAGES = (512, 1024), (4096, 1000), (8, 21, 128, 128)
VOCABULARY = 50_000
PIXELS = (32, 16, 56, 56)


def losses_cases(peers: Mapping[str, Any]) -> Iterator[Case]:
    """Elements are those of the input that has a gradient."""
    x, y, p = tw.randn(PAIR), tw.randn(PAIR), tw.rand(PAIR)
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        yield from _both(peers, name, name, [x, y])
    for name, first in (
        ("binary_cross_entropy", p),
        ("binary_cross_entropy_with_logits", x),
        ("kl_div", x),
        ("poisson_nll_loss", x),
    ):
        yield from _both(peers, name, name, [first, tw.rand(PAIR)])
    rows, classes = tw.randn(ROWS), tw.randint(0, ROWS[1], ROWS[:1])
    yield from _both(peers, "nll_loss", "nll_loss", [rows, classes])
    for name, options in (("", {}), (" smoothed", {"label_smoothing": 0.1})):
        yield from _both(peers, "cross_entropy" + name, "cross_entropy", [rows, classes], **options)
    words = [tw.randn(ROWS[0], VOCABULARY), tw.randint(0, VOCABULARY, ROWS[:1])]
    yield from _both(peers, f"cross_entropy {ROWS[0]}x{VOCABULARY}", "cross_entropy", words)
    del words
    images = [tw.randn(IMAGES), tw.randint(0, IMAGES[1], (IMAGES[0], *IMAGES[2:]))]
    yield from _both(peers, "cross_entropy of images", "cross_entropy", images)
    for mode in ("constant", "reflect", "replicate", "circular"):
        yield from _both(peers, f"pad {mode}", "pad", [tw.randn(PIXELS)], pad=(1,) * 4, mode=mode)
    for samples, again in ((1, False), (64, True)):
        yield _multinomial(peers, samples, again)


def _both(
    peers: Mapping[str, Any], title: str, name: str, data: list[tw.Tensor], **options: Any
) -> Iterator[Case]:
    def forward(lib: Any) -> Callable[[], Any]:
        tensors, function = _tensors(lib, data), getattr(lib.nn.functional, name)
        return lambda: function(*tensors, **options)

    def backward(lib: Any) -> Callable[[], Any]:
        tensors, function = _tensors(lib, data), getattr(lib.nn.functional, name)
        tensors[0].requires_grad = True
        grad = tw.grad if lib is tw else lib.autograd.grad
        return lambda: grad(function(*tensors, **options).sum(), tensors[:1])

    size = 1e-6 * data[0].size
    yield _case(peers, title, forward, size, "million elements")
    yield _case(peers, title + " +backward", backward, size, "million elements")


def _multinomial(peers: Mapping[str, Any], samples: int, again: bool) -> Case:
    data = [tw.rand((256, 1000))]

    def draw(lib: Any) -> Callable[[], Any]:
        (p,) = _tensors(lib, data)
        return lambda: lib.multinomial(p, samples, again)

    title = f"multinomial {samples} of 1000" + (" with replacement" if again else "")
    return _case(peers, title, draw, 256 * samples * 1e-3, "thousand samples")


def _case(
    peers: Mapping[str, Any],
    title: str,
    make: Callable[[Any], Callable[[], Any]],
    work: float,
    unit: str,
) -> Case:
    contenders = {OURS: Timer(make(tw))}
    if "torch" in peers:
        contenders["torch"] = Timer(make(peers["torch"]))
    return Case(title, contenders, work, unit, budget_s=6.0)


def _tensors(lib: Any, data: list[tw.Tensor]) -> list[Any]:
    return [x.copy() if lib is tw else lib.from_numpy(x.numpy().copy()) for x in data]
