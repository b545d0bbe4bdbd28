"""Square matrix products against the peers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tilewright as tw
from tilewright.bench.harness import OURS, Case, statement

SIZES = (16, 32, 64, 128, 256, 512, 1024, 2048)
_KERNEL_SIZES = (64, 128, 256, 512)


def matmul_cases(peers: dict[str, Any], sizes: Sequence[int] = SIZES) -> Iterator[Case]:
    """x @ y for n x n float32."""
    for n in sizes:
        x, y = tw.randn(n, n), tw.randn(n, n)
        contenders = {OURS: statement("x @ y", x=x, y=y)}
        for name, peer in peers.items():
            a, b = (_to_peer(name, peer, t) for t in (x, y))
            text = "(x @ y).block_until_ready()" if name == "jax" else "x @ y"
            contenders[name] = statement(text, x=a, y=b)
        yield Case(f"{n}", contenders, 2e-9 * n**3, "GFLOP")


def ladder_cases(sizes: Sequence[int] = _KERNEL_SIZES) -> Iterator[Case]:
    """Each rung of the ladder, the engine's own choice as `tilewright`."""
    text = "with use(matmul=kernel): x @ y"
    for n in sizes:
        x, y = tw.randn(n, n), tw.randn(n, n)
        contenders = {OURS: statement("x @ y", x=x, y=y)}
        for kernel in tw.kernels.names("matmul"):
            if _accepts(kernel, x, y):
                contenders[kernel] = statement(text, use=tw.kernels.use, kernel=kernel, x=x, y=y)
        yield Case(f"{n}", contenders, 2e-9 * n**3, "GFLOP", rounds=9)


def _accepts(kernel: str, x: tw.Tensor, y: tw.Tensor) -> bool:
    try:
        with tw.kernels.use(matmul=kernel):
            x @ y
    except ValueError:
        return False
    return True


def _to_peer(name: str, peer: Any, tensor: tw.Tensor) -> Any:
    if name == "torch":
        return peer.from_numpy(tensor.numpy())
    return peer.numpy.asarray(tensor.numpy()) if name == "jax" else tensor.numpy()
