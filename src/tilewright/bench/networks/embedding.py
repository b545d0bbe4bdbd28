"""Rows of tables by their numbers against the peers, forward and with the table's gradient."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tilewright as tw
from tilewright.bench.harness import OURS, Case, statement

_TOKENS, _WIDTH = 8192, 256
_BACKWARD = "call(i, w).backward(g)\nw.grad = None"


def embedding_cases(peers: Mapping[str, Any]) -> Iterator[Case]:
    """8192 tokens x 256 of a small and of a large table; the work is the bytes of the result."""
    for rows in (65, 50_000):
        w, i = tw.randn(rows, _WIDTH), tw.randint(0, rows, (_TOKENS,))
        g, leaf = tw.randn(_TOKENS, _WIDTH), w.copy().requires_grad_()
        contenders = {OURS: statement("call(i, w)", call=tw.embedding, i=i, w=w)}
        both = {OURS: statement(_BACKWARD, call=tw.embedding, i=i, w=leaf, g=g)}
        if "torch" in peers:
            torch = peers["torch"]
            call, at = torch.nn.functional.embedding, torch.from_numpy(i.numpy())
            table = torch.from_numpy(w.numpy())
            contenders["torch"] = statement("call(i, w)", call=call, i=at, w=table)
            theirs, grad = table.clone().requires_grad_(), torch.from_numpy(g.numpy())
            both["torch"] = statement(_BACKWARD, call=call, i=at, w=theirs, g=grad)
        name = f"embedding {_TOKENS}x{_WIDTH} of {rows}"
        work = 4e-9 * _TOKENS * _WIDTH
        yield Case(name, contenders, work, "GB")
        yield Case(f"{name}, with backward", both, 2 * work, "GB")
