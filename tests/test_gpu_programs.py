"""Random programs on the GPU and on PyTorch, on its GPU where it has one: values and gradients.

`--programs N` runs more of them, `--program-seed S` one of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.skipif(
    not tw.cuda.is_available(), reason=f"no GPU: {tw.cuda.why_unavailable()}"
)

ON_A_GPU = tw.cuda.is_available() and tw.cuda.get_device_name() != "emulated GPU"
COUNT = 400 if ON_A_GPU else 24
SIDES = (1, 2, 3, 5, 8, 33)
# Each takes the library's module and matrices of one shape, and gives a matrix.
UNARY: tuple[Callable[[Any, Any], Any], ...] = (
    lambda m, x: m.tanh(x),
    lambda m, x: m.sin(x) * 2 + 1,
    lambda m, x: m.exp(-x * x),
    lambda m, x: m.sqrt(m.abs(x) + 0.5),
    lambda m, x: x.T,
    lambda m, x: x.T.reshape(x.shape),
    lambda m, x: m.softmax(x, -1),
    lambda m, x: m.log_softmax(x, 0),
    lambda m, x: x - x.mean(0),
    lambda m, x: x / (1 + (x * x).sum(1, keepdims=True)),
    lambda m, x: m.where(x > 0.1, x, x * 0.1),
    lambda m, x: m.maximum(x, x * 0 + 0.25),
    lambda m, x: x[-1:] + x * x[:, :1],
    lambda m, x: m.flip(x, (0,)) if m is torch else m.flip(x, axis=0),
    lambda m, x: m.cumsum(x, 1) if m is torch else m.cumulative_sum(x, axis=1),
    lambda m, x: m.stack([x, x * x])[1],
    lambda m, x: m.sigmoid(x @ x.T) @ x,
)
BINARY: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda m, x, y: x + y,
    lambda m, x, y: x * y - y,
    lambda m, x, y: x / (y * y + 1),
    lambda m, x, y: x @ (y.T @ x) * 0.1,
    lambda m, x, y: m.where(x > y, x, y),
)


def seeds_of(config: pytest.Config) -> range:
    one = config.getoption("program_seed")
    return range(COUNT) if one is None else range(one, one + 1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", seeds_of(metafunc.config))


def run(seed: int, module: Any, leaves: list[Any]) -> Any:
    """The last value of a program of some ten steps, whose choices follow from the seed alone."""
    draws = random.Random(seed)
    values = list(leaves)
    for _ in range(draws.randint(3, 12)):
        x = draws.choice(values)
        likes = [v for v in values if tuple(v.shape) == tuple(x.shape)]
        if draws.random() < 0.6:
            values.append(draws.choice(UNARY)(module, x))
        else:
            values.append(draws.choice(BINARY)(module, x, draws.choice(likes)))
    return sum((v * v).sum() for v in values[-3:])


def close(a: np.ndarray, b: np.ndarray) -> bool:
    scale = max(1.0, float(np.abs(b).max(initial=0)))
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-9, atol=1e-9 * scale))


def test_programs_agree_with_pytorch(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(side) for side in rng.choice(SIDES, 2))
    arrays = [rng.standard_normal(shape) for _ in range(int(rng.integers(1, 4)))]
    ours = [tw.asarray(a).to("cuda").requires_grad_() for a in arrays]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    theirs = [torch.tensor(a, device=device, requires_grad=True) for a in arrays]
    y, z = run(seed, tw, ours), run(seed, torch, theirs)
    assert y.device == "cuda:0"
    assert close(np.asarray(y.item()), np.asarray(z.item())), (y.item(), z.item())
    y.backward()
    z.backward()
    for a, b in zip(ours, theirs, strict=True):
        expected = np.zeros(shape) if b.grad is None else b.grad.cpu().numpy()
        found = np.zeros(shape) if a.grad is None else np.asarray(a.grad.to("cpu"))
        assert close(found, expected)
