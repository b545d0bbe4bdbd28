"""Gradients of products add up within the product's kernel, the same bits whatever is around."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tilewright as tw
from tilewright.memory import Pool


def operands(dtype=tw.float32, rows=9, width=70) -> tuple[tw.Tensor, tw.Tensor]:
    rng = np.random.default_rng(8)
    x = tw.asarray(rng.standard_normal((rows, width)), dtype=dtype)
    w = tw.asarray(rng.standard_normal((width, width)) / width, dtype=dtype)
    return x, w


def loss_of(x: tw.Tensor, w: tw.Tensor) -> tw.Tensor:
    """A weight that is used three times."""
    y = tw.tanh(x @ w) @ w
    return tw.linear(y, w).sum()


def ops_of(report) -> list[str]:
    return [entry.op for entry in report]


def gradient(x, w, **options) -> bytes:
    w = w.detach().requires_grad_()
    loss_of(x, w).backward(**options)
    return w.grad.numpy().tobytes()


def exact(x: tw.Tensor, w: tw.Tensor) -> np.ndarray:
    """The same in float64, by hand."""
    x, w = (v.astype(tw.float64).numpy() for v in (x, w))
    h = np.tanh(x @ w)
    y = h @ w
    g = np.ones((len(x), len(w)))
    by_linear = g.T @ y
    gy = g @ w
    gh = gy @ w.T * (1 - h * h)
    return by_linear + h.T @ gy + x.T @ gh


@pytest.mark.parametrize("dtype", [tw.float32, tw.float64])
def test_no_addition_of_its_own(dtype):
    x, w = operands(dtype)
    w.requires_grad = True
    loss = loss_of(x, w)
    with tw.explain() as report:
        loss.backward()
    assert ops_of(report).count("matmul_into") == 2
    assert "add" not in ops_of(report)
    tolerance = 2e-4 if dtype == tw.float32 else 1e-12
    np.testing.assert_allclose(w.grad.numpy(), exact(x, w.detach()), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [tw.float16, tw.bfloat16])
def test_narrow_types_add_apart(dtype):
    x, w = operands(dtype)
    got = np.frombuffer(gradient(x.astype(tw.float32), w.astype(tw.float32)), np.float32)
    w.requires_grad = True
    loss_of(x, w).backward()
    near = w.grad.astype(tw.float32).numpy().ravel()
    np.testing.assert_allclose(near, got, rtol=0.1, atol=0.3)


@pytest.mark.parametrize("kernel", tw.kernels.names("matmul"))
def test_every_rung_adds(kernel):
    x, w = operands()
    try:
        with tw.kernels.use(matmul=kernel):
            got = np.frombuffer(gradient(x, w), np.float32).reshape(w.shape)
    except ValueError as error:
        pytest.skip(str(error))
    tolerance = 0.1 if kernel.startswith("bf16") else 2e-4
    np.testing.assert_allclose(got, exact(x, w), rtol=tolerance, atol=tolerance)


def test_steps_before_are_added_to():
    x, w = operands()
    w.requires_grad = True
    loss_of(x, w).backward()
    once, kept = w.grad.numpy().copy(), w.grad
    version = kept.version
    w.grad = kept.copy()
    with tw.explain() as report:
        loss_of(x, w).backward()
    assert "add" not in ops_of(report)
    np.testing.assert_allclose(w.grad.numpy(), 2 * once, rtol=1e-4, atol=1e-5)
    assert kept.version == version
    np.testing.assert_array_equal(kept.numpy(), once)


def test_who_holds_the_gradient_keeps_its_values():
    x, w = operands()
    w.requires_grad = True
    loss_of(x, w).backward()
    held, before = w.grad, w.grad.numpy().copy()
    view = held[0]
    loss_of(x, w).backward()
    assert w.grad is not held
    np.testing.assert_array_equal(held.numpy(), before)
    np.testing.assert_array_equal(view.numpy(), before[0])


def test_the_same_bits_whatever_is_around(tmp_path):
    x, w = operands()
    expected = gradient(x, w)
    assert gradient(x, w, plan=True) == expected
    assert gradient(x, w, retain_graph=True) == expected

    leaf = w.detach().requires_grad_()
    leaf.register_hook(lambda g: None)
    loss_of(x, leaf).backward()
    assert leaf.grad.numpy().tobytes() == expected

    leaf = w.detach().requires_grad_()
    (got,) = tw.grad(loss_of(x, leaf), [leaf])
    assert got.numpy().tobytes() == expected
    (got,) = tw.grad(loss_of(x, leaf), [leaf], plan=True)
    assert got.numpy().tobytes() == expected

    leaf = w.detach().requires_grad_()
    tw.checkpoint(loss_of, x, leaf).backward()
    assert leaf.grad.numpy().tobytes() == expected

    with Pool(quota_bytes=200_000, spill_dir=tmp_path):
        leaf = w.copy().requires_grad_()
        loss_of(x.copy(), leaf).backward()
        assert leaf.grad.numpy().tobytes() == expected


def test_a_weight_that_is_a_result():
    """Its gradient waits in the node that made it, and goes on through a hook of that result."""
    x, w = operands()
    expected = exact(x, w * 2) * 2
    w.requires_grad = True
    doubled = w * 2
    seen = []
    doubled.register_hook(lambda g: seen.append(g.numpy().copy()))
    with tw.explain() as report:
        loss_of(x, doubled).backward()
    assert ops_of(report).count("matmul_into") == 2
    np.testing.assert_allclose(w.grad.numpy(), expected, rtol=2e-3, atol=2e-3)
    np.testing.assert_array_equal(seen[0] * 2, w.grad.numpy())


def test_create_graph_records_the_additions():
    x, w = operands(tw.float64)
    w.requires_grad = True
    (g,) = tw.grad(loss_of(x, w), [w], create_graph=True)
    assert g.requires_grad
    (g * g).sum().backward()
    assert np.isfinite(w.grad.numpy()).all()


def test_a_product_with_itself():
    (_, w) = operands(tw.float64)
    leaf = w.detach().requires_grad_()
    (leaf @ leaf).sum().backward()
    ones = np.ones(w.shape)
    expected = ones @ w.numpy().T + w.numpy().T @ ones
    np.testing.assert_allclose(leaf.grad.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_a_failing_kernel_leaves_the_gradient():
    """A forced kernel that refuses the product raises; what had arrived is still there."""
    x, w = operands(tw.float64)
    w.requires_grad = True
    loss_of(x, w).backward()
    before = w.grad.numpy().copy()
    loss = (x @ w).sum()
    with tw.kernels.use(matmul="bf16x3"), pytest.raises(ValueError, match="bf16x3"):
        loss.backward()
    np.testing.assert_array_equal(w.grad.numpy(), before)


def test_other_threads_always_see_the_gradient():
    w = tw.rand((300, 300)).requires_grad_()
    x = tw.rand((300, 300))
    (x @ w).sum().backward()
    seen, stop = [], threading.Event()

    def watch():
        while not stop.is_set():
            seen.append(w.grad is None)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        for _ in range(10):
            (x @ w).sum().backward()
    finally:
        stop.set()
        thread.join()
    assert seen
    assert not any(seen)


@pytest.mark.parametrize("step", [1, 2])
def test_slices_write_to_their_parts(step):
    """One tensor of zeros for all of them, and exact sums where parts overlap."""
    x = tw.asarray(np.arange(48.0).reshape(6, 8)).requires_grad_()
    parts = [x[i] for i in range(0, 6, step)] + [x[:, 2:5], x[1:3, ::2]]
    loss = sum(((part * (i + 1)).sum() for i, part in enumerate(parts)), tw.zeros(()))
    with tw.explain() as report:
        loss.backward()
    assert ops_of(report).count("unslice") == 1
    expected = np.zeros((6, 8))
    for i, row in enumerate(range(0, 6, step)):
        expected[row] += i + 1
    count = len(range(0, 6, step))
    expected[:, 2:5] += count + 1
    expected[1:3, ::2] += count + 2
    np.testing.assert_array_equal(x.grad.numpy(), expected)
