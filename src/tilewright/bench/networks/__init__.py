"""What networks are made of, against the peers: one module a family, each with its cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from tilewright.bench.harness import Case

FAMILIES = (
    "convolution", "norm", "attention", "recurrence", "pooling", "embedding", "losses",
    "optimizer", "training",
)  # fmt: skip


def network_cases(peers: Mapping[str, Any], families: Sequence[str]) -> Iterator[Case]:
    """All cases of these families, in order."""
    for family in families:
        module = import_module(f"{__name__}.{family}")
        yield from getattr(module, f"{family}_cases")(peers)
