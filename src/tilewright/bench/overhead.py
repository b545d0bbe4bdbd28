"""What a call costs when there is next to nothing to compute."""

from __future__ import annotations

from collections.abc import Iterator
from timeit import Timer
from typing import Any

import tilewright as tw
from tilewright.bench.harness import OURS, Case, statement
from tilewright.bench.small_calls import CALLS

# Those of the small calls that a peer has by the same words.
_OF_TORCH = {
    "a + b", "a + b, recorded", "-a", "exp", "relu", "sum", "a @ b", "a[2:5]", "zeros",
    "(a * b).sum().backward()",
}  # fmt: skip
_OF_NUMPY = _OF_TORCH - {"a + b, recorded", "relu", "(a * b).sum().backward()"}


def overhead_cases(peers: dict[str, Any]) -> Iterator[Case]:
    """Single calls, a whole step of a tiny network, and an epoch of batches."""
    for name, text, recorded in CALLS:
        if name not in _OF_TORCH:
            continue
        contenders = {OURS: statement(text, m=tw, **_pair(tw.randn, recorded))}
        if "torch" in peers:
            torch = peers["torch"]
            contenders["torch"] = statement(text, m=torch, **_pair(torch.randn, recorded))
        if "numpy" in peers and name in _OF_NUMPY:
            numpy = peers["numpy"]
            pair = {name: x.numpy() for name, x in _pair(tw.randn, False).items()}
            contenders["numpy"] = statement(text, m=numpy, **pair)
        yield Case(f"{name}, 8x8", contenders)
    yield Case("step of 8-16-1, batch 8, Adam", _steps(peers))
    yield Case("shuffled epoch of 1,797 in batches of 32", _loaders(peers))


def _pair(randn: Any, recorded: bool) -> dict[str, Any]:
    return {name: randn(8, 8, requires_grad=recorded) for name in ("a", "b")}


def _steps(peers: dict[str, Any]) -> dict[str, Timer]:
    contenders = {OURS: _step(tw.nn, tw.optim, tw.mse_loss, tw.randn)}
    if "torch" in peers:
        torch = peers["torch"]
        loss = torch.nn.functional.mse_loss
        contenders["torch"] = _step(torch.nn, torch.optim, loss, torch.randn)
    return contenders


def _step(nn: Any, optim: Any, mse_loss: Any, randn: Any) -> Timer:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    x, y = randn(8, 8), randn(8, 1)

    def step() -> None:
        optimizer.zero_grad()
        mse_loss(model(x), y).backward()
        optimizer.step()

    return Timer(step)


def _loaders(peers: dict[str, Any]) -> dict[str, Timer]:
    x, y = tw.randn(1797, 64), tw.arange(1797)
    loader = tw.data.DataLoader((x, y), 32, shuffle=True, seed=0)
    contenders = {OURS: statement("for batch in loader: pass", loader=loader)}
    if "torch" in peers:
        torch = peers["torch"]
        rows = torch.from_numpy(x.numpy()), torch.from_numpy(y.numpy())
        dataset = torch.utils.data.TensorDataset(*rows)
        theirs = torch.utils.data.DataLoader(dataset, 32, shuffle=True)
        contenders["torch"] = statement("for batch in loader: pass", loader=theirs)
    return contenders
