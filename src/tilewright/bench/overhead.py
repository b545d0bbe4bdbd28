"""What a call costs when there is next to nothing to compute."""

from __future__ import annotations

from collections.abc import Iterator
from timeit import Timer
from typing import Any

import tilewright as tw
from tilewright.bench.harness import OURS, Case, statement

# Name, statement, whether gradients are recorded. `m` is the module, x and y are 8 x 8.
_CALLS = (
    ("a + b, 8x8", "x + y", False),
    ("a + b, 8x8, recording", "x + y", True),
    ("relu, 8x8, recording", "m.relu(x)", True),
    ("sum, 8x8", "m.sum(x)", False),
    ("a @ b, 8x8", "x @ y", False),
    ("slice of rows", "x[2:5]", False),
    ("zeros 8x8", "m.zeros((8, 8))", False),
)


def overhead_cases(peers: dict[str, Any]) -> Iterator[Case]:
    """Single calls, a whole step of a tiny network, and an epoch of batches."""
    for name, text, recording in _CALLS:
        contenders = {OURS: statement(text, m=tw, **_pair(tw.randn, recording))}
        if "torch" in peers:
            torch = peers["torch"]
            contenders["torch"] = statement(text, m=torch, **_pair(torch.randn, recording))
        if "numpy" in peers and not recording:
            numpy = peers["numpy"]
            pair = {name: x.numpy() for name, x in _pair(tw.randn, False).items()}
            contenders["numpy"] = statement(text, m=numpy, **pair)
        yield Case(name, contenders)
    yield Case("step of 8-16-1, batch 8, Adam", _steps(peers))
    yield Case("shuffled epoch of 1,797 in batches of 32", _loaders(peers))


def _pair(randn: Any, recording: bool) -> dict[str, Any]:
    keywords = {"requires_grad": True} if recording else {}
    return {"x": randn(8, 8, **keywords), "y": randn(8, 8, **keywords)}


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
