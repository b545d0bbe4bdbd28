"""Pooling against the peers, forward and with backward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import tilewright as tw
from tilewright.bench.harness import OURS, Case, statement


class _Pool(NamedTuple):
    """One row: the input's shape, and the function that both libraries call by this name."""

    name: str
    shape: tuple[int, ...]
    function: str
    arguments: tuple[Any, ...]


_POOLS = (
    _Pool("max_pool2d 32x16x24x24, 2x2", (32, 16, 24, 24), "max_pool2d", (2,)),
    _Pool("max_pool2d 32x64x56x56, 2x2", (32, 64, 56, 56), "max_pool2d", (2,)),
    _Pool("max_pool2d 8x64x112x112, 3x3 s2", (8, 64, 112, 112), "max_pool2d", (3, 2, 1)),
    _Pool("avg_pool2d 32x64x56x56, 2x2", (32, 64, 56, 56), "avg_pool2d", (2,)),
    _Pool("adaptive_avg_pool2d 32x512x7x7, 1", (32, 512, 7, 7), "adaptive_avg_pool2d", ((1, 1),)),
    _Pool("adaptive_avg_pool2d 32x64x56x56, 1", (32, 64, 56, 56), "adaptive_avg_pool2d", ((1, 1),)),
)
_BACKWARD = "call(x, *rest).backward(g)\nx.grad = None"


def pooling_cases(peers: Mapping[str, Any]) -> Iterator[Case]:
    """Each pool in float32; the work is the bytes of its input and its result."""
    for pool in _POOLS:
        x, call = tw.randn(*pool.shape), getattr(tw, pool.function)
        g = tw.randn(*call(x, *pool.arguments).shape)
        work = 4e-9 * (x.size + g.size)
        rest = pool.arguments
        contenders = {OURS: statement("call(x, *rest)", call=call, x=x, rest=rest)}
        leaf = x.copy().requires_grad_()
        both = {OURS: statement(_BACKWARD, call=call, x=leaf, g=g, rest=rest)}
        if "torch" in peers:
            torch = peers["torch"]
            theirs = getattr(torch.nn.functional, pool.function)
            y, dy = torch.from_numpy(x.numpy()), torch.from_numpy(g.numpy())
            contenders["torch"] = statement("call(x, *rest)", call=theirs, x=y, rest=rest)
            copy = y.clone().requires_grad_()
            both["torch"] = statement(_BACKWARD, call=theirs, x=copy, g=dy, rest=rest)
        yield Case(pool.name, contenders, work, "GB")
        yield Case(f"{pool.name}, with backward", both, 2 * work, "GB")
