"""Pointwise ops and reductions against the peers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tilewright as tw
from tilewright.bench.harness import OURS, Case, statement

SIZES = (256, 1024, 4096)
# Name, bytes moved per element, statement for us, PyTorch and NumPy.
_OPS = (
    ("add", 12, "x + y", "x + y", "x + y"),
    ("relu", 8, "m.relu(x)", "m.relu(x)", "m.maximum(x, 0)"),
    ("exp", 8, "m.exp(x)", "m.exp(x)", "m.exp(x)"),
    ("sum", 4, "m.sum(x)", "m.sum(x)", "m.sum(x)"),
)


def pointwise_cases(peers: dict[str, Any], sizes: Sequence[int] = SIZES) -> Iterator[Case]:
    """add, relu, exp and sum over n x n float32."""
    for n in sizes:
        x, y = tw.randn(n, n), tw.randn(n, n)
        for op, bytes_per_element, ours, torch, numpy in _OPS:
            contenders = {OURS: statement(ours, m=tw, x=x, y=y)}
            if "torch" in peers:
                module = peers["torch"]
                a, b = module.from_numpy(x.numpy()), module.from_numpy(y.numpy())
                contenders["torch"] = statement(torch, m=module, x=a, y=b)
            if "numpy" in peers:
                names = {"m": peers["numpy"], "x": x.numpy(), "y": y.numpy()}
                contenders["numpy"] = statement(numpy, **names)
            yield Case(f"{op} {n}x{n}", contenders, 1e-9 * bytes_per_element * n * n, "GB")
