"""Ops on blocks that leave memory and come back: the same bits as in memory that stays.

Random chains of every family of ops run once in the default pool and once in pools with quotas of a
few tensors, with and without checkpoints, planned passes and hooks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.memory import Pool

SIDE = 128  # float64: tensors of 128 KiB, twice the smallest block that is spilled
TENSOR = SIDE * SIDE * 8


def fresh(seed: int, *shape: int) -> tw.Tensor:
    values = np.random.default_rng(seed).uniform(-0.9, 0.9, shape or (SIDE, SIDE))
    return tw.asarray(values) * 1.0  # in the pool in force


ROWS = np.random.default_rng(0).integers(0, SIDE, SIDE)
MASK = np.random.default_rng(1).random((SIDE, SIDE)) > 0.5
CLASSES = np.random.default_rng(2).integers(0, SIDE, SIDE)


def assigned(x: tw.Tensor, w: tw.Tensor) -> tw.Tensor:
    y = x * 1.0
    y[tw.asarray(ROWS[: SIDE // 2])] = w[: SIDE // 2]
    y[::3] = 0.5
    return y


# Each takes and gives a square matrix with values of about one.
STEPS: dict[str, Callable[[tw.Tensor, tw.Tensor], tw.Tensor]] = {
    "tanh sin exp": lambda x, w: tw.tanh(tw.exp(tw.sin(x)) * 0.5),
    "two operands": lambda x, w: tw.where(x > w, x * w, tw.atan2(x, w * w + 1.0)) - x / (w + 3.0),
    "in place": lambda x, w: (x * 1.0).add_(w).mul_(0.5),
    "matmul": lambda x, w: tw.tanh(x @ w),
    "matmul of views": lambda x, w: tw.sin(x.T @ w[::-1] * 0.1),
    "linear": lambda x, w: tw.linear(x, w, w[0], activation="relu") + x,
    "addmm": lambda x, w: tw.addmm(x, x, w, beta=0.5, alpha=0.01),
    "softmax": lambda x, w: tw.softmax(x * 3.0, axis=1) * w,
    "log_softmax": lambda x, w: tw.log_softmax(x + w, axis=0) * 0.2,
    "sum and mean": lambda x, w: x - x.sum(axis=1, keepdims=True) / SIDE * x.mean(axis=0),
    "extrema": lambda x, w: x * x.max(axis=1, keepdims=True) + w.min(axis=0),
    "product": lambda x, w: x + (w * 0.1 + 1.0).prod(axis=1, keepdims=True),
    "variance": lambda x, w: (x - x.mean()) / (x.var() + 1.0),
    "logsumexp": lambda x, w: x - tw.logsumexp(x * w, axis=1, keepdims=True) * 0.1,
    "rows": lambda x, w: tw.tanh(x[tw.asarray(ROWS)] * w),
    "mask": lambda x, w: x * 0.5 + (x * w)[tw.asarray(MASK)].sum() / SIDE**2,
    "slices": lambda x, w: tw.concat([x[SIDE // 2 :] * w[: SIDE // 2], tw.flip(x)[SIDE // 2 :]]),
    "stack": lambda x, w: tw.stack([x, w, x * w]).mean(axis=0),
    "assign rows": assigned,
    "types": lambda x, w: tw.sin(x.astype(tw.float32) * 2.0).astype(tw.float64) * w,
    "cross entropy": lambda x, w: x * tw.cross_entropy(x * 2.0 + w, tw.asarray(CLASSES)) * 0.2,
    "losses": lambda x, w: (
        x * tw.cross_entropy(x, tw.asarray(CLASSES), reduction="none").reshape((SIDE, 1)) * 0.2
    ),
    "dropout": lambda x, w: tw.nn.Dropout(0.25)(x * w),
    "random": lambda x, w: x + 0.1 * tw.randn(SIDE, SIDE, dtype=tw.float64) * w,
    "triangles": lambda x, w: tw.tril(x) - tw.triu(w, 1) * x,
    "contiguous": lambda x, w: (x.T.copy() * w).T,
}


def chains() -> list[tuple[str, ...]]:
    """Each family after another one, then longer chains at random."""
    names = list(STEPS)
    out = list(itertools.pairwise([*names, names[0]]))
    rng = np.random.default_rng(11)
    for length in (3, 4, 5, 6):
        for _ in range(3):
            out.append(tuple(str(name) for name in rng.choice(names, length)))
    return out


def gradients(
    chain: tuple[str, ...], checkpoints: bool, options: dict[str, bool]
) -> list[np.ndarray]:
    tw.manual_seed(5)
    x = fresh(3).detach().requires_grad_()
    weights = [fresh(20 + i).detach().requires_grad_() for i in range(len(chain))]
    h = x
    for name, w in zip(chain, weights, strict=True):
        step = STEPS[name]
        h = tw.checkpoint(step, h, w) if checkpoints else step(h, w)
    loss = (h * h).mean()
    loss.backward(**options)
    out = [loss.detach().copy().numpy()]
    return out + [g.grad.numpy().copy() for g in (x, *weights) if g.grad is not None]


def least_quota(chain: tuple[str, ...], folder: Path, checkpoints: bool, **options: bool) -> None:
    """From a quota that is too small up: an error or the right bits, nothing else."""
    expected = gradients(chain, False, {})
    passed = 0
    for tensors in (*range(3, 13), 16, 24, 48):
        pool = Pool(quota_bytes=tensors * TENSOR + TENSOR // 2, spill_dir=folder)
        with pool:
            try:
                got = gradients(chain, checkpoints, options)
            except MemoryError:
                assert tensors < 24, "one op does not need so much"
                continue
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"quota of {tensors} tensors")
        passed += 1
        if passed == 3:
            return


@pytest.mark.parametrize("chain", chains(), ids=" - ".join)
def test_a_quota_and_checkpoints_change_no_bit(chain, tmp_path):
    least_quota(chain, tmp_path, checkpoints=True)


@pytest.mark.parametrize("chain", chains()[::3], ids=" - ".join)
def test_a_quota_changes_no_bit(chain, tmp_path):
    least_quota(chain, tmp_path, checkpoints=False)


@pytest.mark.parametrize("chain", chains()[1::3], ids=" - ".join)
def test_planned_passes_with_checkpoints(chain, tmp_path):
    least_quota(chain, tmp_path, checkpoints=True, plan=True)


@pytest.mark.parametrize("tensors", range(4, 11))
def test_two_checkpoints_of_tanh_sin_exp(tensors, tmp_path):
    def block(v):
        return tw.exp(tw.sin(tw.tanh(v)))

    def run(checkpoint):
        x = fresh(1).detach().requires_grad_()
        checkpoint(block, checkpoint(block, x)).sum().backward()
        return x.grad.numpy().copy()

    expected = run(lambda function, v: function(v))
    with Pool(quota_bytes=tensors * TENSOR, spill_dir=tmp_path):
        got = run(tw.checkpoint)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("make", [
    lambda p: tw.optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: tw.optim.Adam(p, lr=0.1),
    lambda p: tw.optim.Adagrad(p, lr=0.1),
], ids=["sgd", "adam", "adagrad"])  # fmt: skip
def test_optimizer_steps(make, tmp_path):
    def train() -> list[np.ndarray]:
        weights = [fresh(i).detach().requires_grad_() for i in range(2)]
        optimizer = make(weights)
        x = fresh(9)
        for _ in range(3):
            optimizer.zero_grad()
            h = x
            for w in weights:
                h = tw.checkpoint(lambda v, w: tw.tanh(tw.sin(v) @ w), h, w)
            (h * h).sum().backward()
            optimizer.step()
        return [w.detach().copy().numpy() for w in weights]

    expected = train()
    pool = Pool(quota_bytes=9 * TENSOR, spill_dir=tmp_path)
    with pool:
        got = train()
    assert pool.stats()["spills"] > 0
    for a, b in zip(expected, got, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("plan", [False, True])
@pytest.mark.parametrize("call", [lambda f, x: f(x), tw.checkpoint], ids=["plain", "checkpoint"])
def test_training_of_an_encoder_layer(call, plan, tmp_path):
    """With dropout, from half of the memory that it takes up down to what is too little."""

    def train(call, plan) -> list[np.ndarray]:
        tw.manual_seed(3)
        layer = tw.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, batch_first=True)
        optimizer = tw.optim.Adam(layer.parameters(), lr=1e-3)
        x = tw.astype(fresh(1, 8, 64, 64), tw.float32)
        for _ in range(3):
            optimizer.zero_grad()
            h = call(layer, call(layer, x))
            (h * h * h).mean().backward(plan=plan)
            optimizer.step()
        return [p.detach().numpy().copy() for p in layer.parameters()]

    with Pool() as free:
        expected = train(lambda f, x: f(x), False)
    peak = free.stats()["peak_live_bytes"]
    passed = 0
    for part in (0.55, 0.5, 0.4, 0.3, 0.2):
        with Pool(quota_bytes=int(peak * part), spill_dir=tmp_path) as pool:
            try:
                got = train(call, plan)
            except MemoryError:
                break
        assert pool.stats()["spills"] > 0
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_array_equal(a, b)
        passed += 1
    assert passed


def test_hooks_that_run_ops_in_between(tmp_path):
    def run(checkpoint):
        x = fresh(1).detach().requires_grad_()
        others = [fresh(40 + i) for i in range(5)]

        def hook(g):
            for other in others:
                g = g + tw.sin(other) * 0.01
            return g

        h = checkpoint(lambda v: tw.tanh(tw.exp(v)), x)
        h.register_hook(hook)
        x.register_hook(hook)
        checkpoint(lambda v: tw.exp(tw.sin(v)), h).sum().backward()
        return x.grad.numpy().copy()

    expected = run(lambda function, v: function(v))
    for tensors in (5, 6, 8):
        with Pool(quota_bytes=tensors * TENSOR, spill_dir=tmp_path):
            got = run(tw.checkpoint)
        np.testing.assert_array_equal(got, expected)


def test_numbers_whose_conversion_runs_ops(tmp_path):
    """`asarray` holds an address while Python code of the elements runs."""
    with Pool(quota_bytes=3 * TENSOR, spill_dir=tmp_path):
        others = [fresh(i) for i in range(3)]

        class Number(float):
            def __float__(self) -> float:
                for other in others:
                    tw.sin(other)
                return super().__float__()

        got = tw.asarray([[Number(i + 1) for i in range(SIDE)]] * SIDE, dtype=tw.float64)
        np.testing.assert_array_equal(got.numpy(), np.tile(np.arange(1.0, SIDE + 1), (SIDE, 1)))


def test_nothing_stays_pinned(tmp_path):
    pool = Pool(quota_bytes=8 * TENSOR, spill_dir=tmp_path)
    with pool:
        x, w = fresh(1).detach().requires_grad_(), fresh(2)
        tw.checkpoint(STEPS["matmul"], x, w).sum().backward()
        with pytest.raises(ValueError, match="inner sizes"):
            x @ w[:3]
        with pytest.raises(IndexError):
            x[tw.asarray([SIDE])]
    assert pool.stats()["pinned_bytes"] == 0
    del x, w
    assert pool.stats()["live_bytes"] == 0
