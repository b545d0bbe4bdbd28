"""Attention against PyTorch, with and without its gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from timeit import Timer
from typing import Any

import tilewright as tw
from tilewright.bench.harness import OURS, Case

# (batch, heads, length, size)
SHAPES = ((8, 8, 256, 64),)


def attention_cases(peers: Mapping[str, Any]) -> Iterator[Case]:
    """Causal or not."""
    for shape in SHAPES:
        for causal in (False, True):
            yield from _op_cases(peers, shape, causal)


def _case(
    peers: Mapping[str, Any],
    name: str,
    make: Callable[[Any], Callable[[], Any]],
    work: float,
    unit: str,
) -> Case:
    contenders = {OURS: Timer(make(tw))}
    if "torch" in peers:
        contenders["torch"] = Timer(make(peers["torch"]))
    return Case(name, contenders, work, unit)


def _op_cases(peers: Mapping[str, Any], shape: tuple[int, ...], causal: bool) -> Iterator[Case]:
    data = [tw.randn(shape) for _ in range(4)]
    batch, heads, length, size = shape
    flops = 4 * batch * heads * length**2 * size / (2 if causal else 1)
    name = f"attention {batch}x{heads}x{length}x{size}" + (" causal" if causal else "")

    def forward(lib: Any) -> Callable[[], Any]:
        q, k, v, _ = _tensors(lib, data)
        attend = _attention_of(lib)
        return lambda: attend(q, k, v, is_causal=causal)

    def both(lib: Any) -> Callable[[], Any]:
        *leaves, g = _tensors(lib, data)
        for leaf in leaves:
            leaf.requires_grad = True
        attend = _attention_of(lib)
        grad = tw.grad if lib is tw else lib.autograd.grad
        return lambda: grad(attend(*leaves, is_causal=causal), leaves, g)

    yield _case(peers, name, forward, 1e-9 * flops, "GFLOP")
    yield _case(peers, name + " +backward", both, 3.5e-9 * flops, "GFLOP")


def _tensors(lib: Any, data: list[tw.Tensor]) -> list[Any]:
    return [x.copy() if lib is tw else lib.from_numpy(x.numpy().copy()) for x in data]


def _attention_of(lib: Any) -> Any:
    functions = tw if lib is tw else lib.nn.functional
    return functions.scaled_dot_product_attention
