"""Mixed precision: what runs in which type, gradients, and the scaling of losses."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")

NARROW = [tw.bfloat16, tw.float16]


def model(seed: int = 3) -> tw.nn.Sequential:
    tw.manual_seed(seed)
    return tw.nn.Sequential(
        tw.nn.Linear(20, 32), tw.nn.Tanh(), tw.nn.Linear(32, 32), tw.nn.ReLU(), tw.nn.Linear(32, 5)
    )


def torch_model(ours: tw.nn.Sequential) -> Any:
    theirs = torch.nn.Sequential(
        torch.nn.Linear(20, 32),
        torch.nn.Tanh(),
        torch.nn.Linear(32, 32),
        torch.nn.ReLU(),
        torch.nn.Linear(32, 5),
    )
    theirs.load_state_dict(
        {name: torch.from_numpy(value.numpy().copy()) for name, value in ours.state_dict().items()}
    )
    return theirs


def batch(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal((16, 20), dtype=np.float32), rng.integers(0, 5, 16)


def loss_of(module: tw.nn.Module, images: np.ndarray, labels: np.ndarray) -> tw.Tensor:
    return tw.cross_entropy(module(tw.asarray(images)), tw.asarray(labels))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_types_are_pytorchs(dtype: tw.dtype) -> None:
    name = dtype.name
    x, w = tw.randn(4, 8), tw.randn(8, 8)
    a, b = torch.randn(4, 8), torch.randn(8, 8)
    with tw.autocast(dtype=dtype), torch.autocast("cpu", dtype=getattr(torch, name)):
        cases = {
            "matmul": (x @ w, a @ b),
            "linear": (tw.linear(x, w), torch.nn.functional.linear(a, b)),
            "addmm": (tw.addmm(x, x, w), torch.addmm(a, a, b)),
            "attention": (
                tw.scaled_dot_product_attention(x, x, x @ w),
                torch.nn.functional.scaled_dot_product_attention(a, a, a @ b),
            ),
            "sum of two types": ((x @ w) + x, (a @ b) + a),
            "relu": (tw.relu(x @ w), torch.relu(a @ b)),
            "exp": (tw.exp(x), torch.exp(a)),
            "double": (x.astype(tw.float64) + 1, a.double() + 1),
            "mse": (tw.mse_loss(x @ w, x), torch.nn.functional.mse_loss(a @ b, a)),
        }
    for case, (ours, theirs) in cases.items():
        assert ours.dtype.name == str(theirs.dtype).removeprefix("torch."), case


def test_softmax_and_losses_run_in_float32() -> None:
    x = tw.randn(4, 8)
    with tw.autocast():
        logits = x @ tw.randn(8, 8)
        assert logits.dtype == tw.bfloat16
        for y in (tw.softmax(logits), tw.log_softmax(logits)):
            assert y.dtype == tw.float32
        assert tw.cross_entropy(logits, tw.zeros((4,), dtype=tw.int64)).dtype == tw.float32


def test_float64_is_left_alone() -> None:
    x = tw.randn(4, 4, dtype=tw.float64)
    with tw.autocast():
        assert (x @ x).dtype == tw.float64


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_gradients_are_float32_and_those_of_rounded_operands(
    dtype: tw.dtype, rng: np.random.Generator
) -> None:
    x, w = rng.standard_normal((6, 7)), rng.standard_normal((5, 7))
    x32, w32 = (tw.asarray(v, dtype=tw.float32) for v in (x, w))
    x32.requires_grad = w32.requires_grad = True
    with tw.autocast(dtype=dtype):
        y = tw.linear(x32, w32)
    y.astype(tw.float32).sum().backward()
    rounded_x = x32.detach().astype(dtype).astype(tw.float64).numpy()
    rounded_w = w32.detach().astype(dtype).astype(tw.float64).numpy()
    step = 2.0**-8 if dtype == tw.bfloat16 else 2.0**-11
    assert x32.grad.dtype == w32.grad.dtype == tw.float32
    sums = np.abs(rounded_w).sum(0) * step
    assert (np.abs(x32.grad.numpy() - rounded_w.sum(0)) <= sums).all()
    sums = np.abs(rounded_x).sum(0) * step
    assert (np.abs(w32.grad.numpy() - rounded_x.sum(0)) <= sums).all()


def test_a_step_is_close_to_pytorchs(rng: np.random.Generator) -> None:
    ours = model()
    theirs = torch_model(ours)
    images, labels = batch(rng)
    with tw.autocast():
        loss = loss_of(ours, images, labels)
    loss.backward()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = theirs(torch.from_numpy(images))
        expected = torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels))
    expected.backward()
    assert abs(loss.item() - expected.item()) < 0.01
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        scale = q.grad.abs().max().item()
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), atol=0.03 * scale, err_msg=name)


def test_explain_shows_casts_and_types() -> None:
    x, w = tw.randn(32, 32), tw.randn(32, 32)
    with tw.explain() as seen, tw.autocast():
        x @ w
    ops = [(entry["op"], entry["problem"]) for entry in seen.as_dict()["entries"]]
    assert ops[:2] == [("astype", "float32 (32, 32) to bfloat16")] * 2
    assert sum(op == "matmul" for op, _ in ops) == 1  # in float32 where no kernel is for bfloat16


def test_blocks_nest_end_in_any_order_and_restore() -> None:
    x = tw.randn(4, 4)
    outer, inner = tw.autocast(dtype=tw.float16), tw.autocast(dtype=tw.bfloat16)
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert (x @ x).dtype == tw.bfloat16
    inner.__exit__(None, None, None)
    assert (x @ x).dtype == tw.float32
    with tw.autocast():
        with tw.autocast(enabled=False):
            assert not tw.is_autocast_enabled()
            assert (x @ x).dtype == tw.float32
        assert tw.get_autocast_dtype() == tw.bfloat16
    with pytest.raises(RuntimeError, match="stop here"), tw.autocast():
        raise RuntimeError("stop here")
    assert not tw.is_autocast_enabled()


def test_it_belongs_to_a_thread() -> None:
    x = tw.randn(4, 4)
    seen = []
    with tw.autocast():
        plain = threading.Thread(target=lambda: seen.append((x @ x).dtype))
        bound = threading.Thread(target=tw.runtime.bind_modes(lambda: seen.append((x @ x).dtype)))
        for thread in (plain, bound):
            thread.start()
            thread.join()
    assert seen == [tw.float32, tw.bfloat16]


def test_a_checkpoint_runs_again_in_the_types_of_its_run(rng: np.random.Generator) -> None:
    images, labels = batch(rng)
    grads = []
    for wrap in (lambda f, x: f(x), tw.checkpoint):
        module = model()
        with tw.autocast():
            hidden = wrap(module[:3], tw.asarray(images))
            loss = tw.cross_entropy(module[3:](hidden), tw.asarray(labels))
        loss.backward()
        grads.append([p.grad.numpy() for p in module.parameters()])
    for plain, again in zip(*grads, strict=True):
        np.testing.assert_array_equal(plain, again)


def test_a_captured_call_replays_its_casts(rng: np.random.Generator) -> None:
    w = tw.asarray(rng.standard_normal((8, 8)), dtype=tw.float32)
    first, second = (tw.asarray(rng.standard_normal((8, 8)), dtype=tw.float32) for _ in range(2))

    def f(x: tw.Tensor) -> tw.Tensor:
        with tw.autocast():
            return tw.softmax(x @ w)

    captured = tw._core._capture(f, [first])
    (replayed,) = captured.replay([second])
    np.testing.assert_array_equal(replayed.numpy(), f(second).numpy())


@pytest.mark.parametrize("overflows", [False, True])
def test_scaler_does_what_pytorchs_does(overflows: bool) -> None:
    start = np.array([1.0, -2.0, 3.0], np.float32)
    p, q = tw.asarray(start.copy()), torch.tensor(start.copy())
    p.requires_grad = q.requires_grad = True
    settings = {"init_scale": 1024.0, "growth_interval": 2}
    ours, theirs = tw.amp.GradScaler(**settings), torch.amp.GradScaler("cpu", **settings)
    ours_sgd, theirs_sgd = tw.optim.SGD([p], lr=0.1), torch.optim.SGD([q], lr=0.1)
    for i in range(7):
        factor = 3e38 if overflows and i == 3 else 0.5
        ours_sgd.zero_grad()
        theirs_sgd.zero_grad()
        ours.scale((p * factor).sum()).backward()
        theirs.scale((q * factor).sum()).backward()
        done = ours.step(ours_sgd)
        theirs.step(theirs_sgd)
        assert done == (factor == 0.5)
        ours.update()
        theirs.update()
        assert ours.get_scale() == theirs.get_scale()
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-6)
    assert ours.state_dict() == theirs.state_dict()
    other = tw.amp.GradScaler()
    other.load_state_dict(theirs.state_dict())
    assert other.state_dict() == ours.state_dict()


def test_scaler_divides_once_and_steps_once() -> None:
    p = tw.ones((3,), requires_grad=True)
    scaler, optimizer = tw.amp.GradScaler(init_scale=8.0), tw.optim.SGD([p], lr=1.0)
    scaler.scale((p * 2).sum()).backward()
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="divided already"):
        scaler.unscale_(optimizer)
    assert scaler.step(optimizer)
    assert p.tolist() == [-1, -1, -1]
    with pytest.raises(RuntimeError, match="update"):
        scaler.step(optimizer)


def test_small_gradients_of_float16_survive_the_scaling() -> None:
    def gradient(scaler: tw.amp.GradScaler) -> float:
        w = tw.ones((1, 1), requires_grad=True)
        optimizer = tw.optim.SGD([w], lr=1.0)
        with tw.autocast(dtype=tw.float16):
            y = tw.linear(tw.ones((1, 1)), w)
        scaler.scale(y.astype(tw.float32).sum() * 1e-8).backward()
        scaler.unscale_(optimizer)
        return w.grad.item()

    assert gradient(tw.amp.GradScaler(enabled=False)) == 0
    assert gradient(tw.amp.GradScaler()) == pytest.approx(1e-8, rel=1e-3)


def test_pytorchs_device_names_change_nothing() -> None:
    for where in ("cpu", "cuda"):
        with tw.autocast(where, dtype=tw.bfloat16):
            assert (tw.ones((2, 2)) @ tw.ones((2, 2))).dtype == tw.bfloat16
        assert tw.amp.GradScaler(where, init_scale=4.0).get_scale() == 4.0


def test_bad_arguments() -> None:
    with pytest.raises(TypeError, match="bfloat16 or float16"):
        tw.autocast(dtype=tw.float32)
    with pytest.raises(ValueError, match="device_type is 'cpu' or 'cuda', got 'tpu'"):
        tw.autocast("tpu")
    with pytest.raises(ValueError, match="device is 'cpu' or 'cuda', got 'tpu'"):
        tw.amp.GradScaler("tpu")
    with pytest.raises(ValueError, match="growth_factor must be above 1"):
        tw.amp.GradScaler(growth_factor=0.5)
    with pytest.raises(TypeError, match="expected a tensor, got str"):
        tw.amp.GradScaler().scale("loss")
    with pytest.raises(ValueError, match="missing: scale"):
        tw.amp.GradScaler().load_state_dict({})
