"""Layers as functions of tensors against PyTorch's functional module, forward and with backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tilewright as tw
from tilewright.bench.harness import OURS, Case, statement


class Layer(NamedTuple):
    """One row: shapes of the operands, and the same layer as each library writes it.

    PyTorch's is an expression of its functional module (as f) and x.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    ours: Callable[..., tw.Tensor]
    torch: str


_BACKWARD = "y = call(*x); y.backward(g)\nfor leaf in x: leaf.grad = None"


def layer_cases(layers: Sequence[Layer], peers: Mapping[str, Any]) -> Iterator[Case]:
    """Each layer in float32; the work is the bytes of its input, read and written once."""
    for layer in layers:
        x = [tw.randn(*shape) for shape in layer.shapes]
        work = 8e-9 * x[0].size
        contenders = {OURS: statement("call(*x)", call=layer.ours, x=x)}
        g = tw.randn(*layer.ours(*x).shape)
        leaves = [a.copy().requires_grad_() for a in x]
        both = {OURS: statement(_BACKWARD, call=layer.ours, x=leaves, g=g)}
        if "torch" in peers:
            torch = peers["torch"]
            call = eval(f"lambda *x: {layer.torch}", {"f": torch.nn.functional})
            theirs = [torch.from_numpy(a.numpy()) for a in x]
            contenders["torch"] = statement("call(*x)", call=call, x=theirs)
            copies = [a.clone().requires_grad_() for a in theirs]
            both["torch"] = statement(_BACKWARD, call=call, x=copies, g=torch.from_numpy(g.numpy()))
        yield Case(layer.name, contenders, work, "GB")
        yield Case(f"{layer.name}, with backward", both, 2 * work, "GB")
