"""Pointwise ops and reductions against the peers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from timeit import Timer
from typing import Any, NamedTuple

import tilewright as tw
from tilewright.bench.harness import OURS, Case, statement

SIZES = (256, 1024, 4096)


class _Op(NamedTuple):
    """One row: bytes moved per element, and the same op as each library writes it.

    JAX's is an expression of jnp (as m), x and y, compiled by jax.jit.
    """

    name: str
    bytes_per_element: int
    ours: str
    torch: str
    numpy: str
    jax: str


_OPS = (
    _Op("add", 12, "x + y", "x + y", "x + y", "x + y"),
    _Op("relu", 8, "m.relu(x)", "m.relu(x)", "m.maximum(x, 0)", "m.maximum(x, 0)"),
    _Op("exp", 8, "m.exp(x)", "m.exp(x)", "m.exp(x)", "m.exp(x)"),
    _Op("sum", 4, "m.sum(x)", "m.sum(x)", "m.sum(x)", "m.sum(x)"),
    *(
        _Op(
            f"sum axis {axis}",
            4,
            f"m.sum(x, axis={axis})",
            f"m.sum(x, dim={axis})",
            f"m.sum(x, axis={axis})",
            f"m.sum(x, axis={axis})",
        )
        for axis in (0, 1)
    ),
)


def pointwise_cases(peers: Mapping[str, Any], sizes: Sequence[int] = SIZES) -> Iterator[Case]:
    """add, relu, exp and sums over n x n float32."""
    for n in sizes:
        x, y = tw.randn(n, n), tw.randn(n, n)
        for op in _OPS:
            contenders = {
                OURS: statement(op.ours, m=tw, x=x, y=y),
                **dict(_others(peers, op, x, y)),
            }
            work = 1e-9 * op.bytes_per_element * n * n
            yield Case(f"{op.name} {n}x{n}", contenders, work, "GB")


def _others(
    peers: Mapping[str, Any], op: _Op, x: tw.Tensor, y: tw.Tensor
) -> Iterator[tuple[str, Timer]]:
    a, b = x.numpy(), y.numpy()
    if "torch" in peers:
        torch = peers["torch"]
        yield "torch", statement(op.torch, m=torch, x=torch.from_numpy(a), y=torch.from_numpy(b))
    if "numpy" in peers:
        yield "numpy", statement(op.numpy, m=peers["numpy"], x=a, y=b)
    if "jax" in peers:
        jnp = peers["jax"].numpy
        compiled = peers["jax"].jit(eval(f"lambda x, y: {op.jax}", {"m": jnp}))
        names = {"f": compiled, "x": jnp.asarray(a), "y": jnp.asarray(b)}
        yield "jax", statement("f(x, y).block_until_ready()", **names)
