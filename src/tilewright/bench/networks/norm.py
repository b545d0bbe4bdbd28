"""Normalisation, activations and softmax against the peers, forward and with backward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tilewright as tw
from tilewright.bench.harness import Case
from tilewright.bench.networks.layers import Layer, layer_cases

_LAYERS = (
    Layer(
        "layer_norm 64x256x768",
        ((64, 256, 768), (768,), (768,)),
        lambda x, w, b: tw.layer_norm(x, (768,), w, b),
        "f.layer_norm(x[0], (768,), x[1], x[2])",
    ),
    Layer(
        "batch_norm 32x64x56x56, training",
        ((32, 64, 56, 56), (64,), (64,)),
        lambda x, w, b: tw.batch_norm(x, None, None, w, b, True),
        "f.batch_norm(x[0], None, None, x[1], x[2], True)",
    ),
    Layer(
        "group_norm 8x64x56x56, 32 groups",
        ((8, 64, 56, 56), (64,), (64,)),
        lambda x, w, b: tw.group_norm(x, 32, w, b),
        "f.group_norm(x[0], 32, x[1], x[2])",
    ),
    Layer("gelu 4096x3072", ((4096, 3072),), tw.gelu, "f.gelu(x[0])"),
    Layer("softmax 4096x4096", ((4096, 4096),), tw.softmax, "f.softmax(x[0], -1)"),
)


def norm_cases(peers: Mapping[str, Any]) -> Iterator[Case]:
    yield from layer_cases(_LAYERS, peers)
