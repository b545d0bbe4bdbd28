"""Steps captured on the GPU: replayed as one launch, with the bits of running them op by op."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core

pytestmark = pytest.mark.skipif(
    not tw.cuda.is_available(), reason=f"no GPU: {tw.cuda.why_unavailable()}"
)


def there(x, dtype=None) -> tw.Tensor:
    return tw.asarray(np.asarray(x), dtype=dtype).to("cuda")


def bits(x: tw.Tensor) -> bytes:
    return np.asarray(x.detach().to("cpu")).tobytes()


def launches() -> int:
    return _core._gpu_launches(0)


class Training:
    """784-256-10 with dropout, cross-entropy with ignored targets, and Adam."""

    def __init__(self, hidden: int = 256) -> None:
        tw.manual_seed(3)
        self.model = tw.nn.Sequential(
            tw.nn.Linear(784, hidden), tw.nn.ReLU(), tw.nn.Dropout(0.3), tw.nn.Linear(hidden, 10)
        ).to("cuda")
        self.parameters = list(self.model.parameters())
        self.averages = [
            [tw.zeros(p.shape, device="cuda") for p in self.parameters] for _ in range(2)
        ]
        self.number = tw.zeros((), dtype=tw.int64, device="cuda")

    def step(self, x: tw.Tensor, targets: tw.Tensor, lr: tw.Tensor) -> tw.Tensor:
        self.model.zero_grad()
        loss = tw.cross_entropy(self.model(x), targets)
        loss.backward()
        self.number += 1
        grads = [p.grad for p in self.parameters]
        tw.adam_step(self.parameters, grads, *self.averages, step=self.number, lr=lr)
        return loss

    def state(self) -> list[bytes]:
        grads = [p.grad for p in self.parameters]
        means, squares = self.averages
        return [bits(x) for x in (*self.parameters, *grads, *means, *squares, self.number)]


def batches(count: int, rows: int = 16):
    rng = np.random.default_rng(1)
    for i in range(count):
        targets = rng.integers(0, 10, rows)
        targets[rng.random(rows) < 0.2] = -100
        yield (
            there(rng.random((rows, 784)), tw.float32),
            there(targets),
            there(0.01 / (1 + i), tw.float32),
        )


def test_a_training_step_gives_the_bits_of_eager_for_ten_steps_in_one_launch_each():
    eager, captured = Training(), Training()
    expected = []
    tw.manual_seed(7)
    for batch in batches(11):
        loss = eager.step(*batch)
        expected.append((bits(loss), eager.state()))
    draws_after = tw.rand(5).tolist()
    tw.manual_seed(7)
    first, *rest = batches(11)
    step = _core._capture(captured.step, list(first))
    assert captured.state() == expected[0][1]
    kept = []
    for batch, (loss, state) in zip(rest, expected[1:], strict=True):
        before = launches()
        (result,) = step.replay(list(batch))
        # The key of the random numbers, and all else.
        assert launches() - before == 2
        kept.append((result, loss))
        assert bits(result) == loss
        assert captured.state() == state
    assert all(bits(result) == loss for result, loss in kept)  # later replays left them alone
    assert tw.rand(5).tolist() == draws_after
    names = [name for name, _ in step.calls()]
    assert {"draw", "dropout_by", "cross_entropy_total", "adam_step", "linear"} <= set(names)
    assert step.figures()["graph_launches"] >= len(names) - 1


def test_observed_replays_run_op_by_op_to_the_same_bits():
    x = there(np.arange(6.0).reshape(2, 3), tw.float32)
    step = _core._capture(lambda x: (tw.softmax(x) * 2, x.sum()), [x])
    a = [bits(y) for y in step.replay([x])]
    with tw.explain() as report:
        b = [bits(y) for y in step.replay([x])]
    assert a == b
    assert [entry.op for entry in report] == [name for name, _ in step.calls()]
    assert {entry.device for entry in report} == {"cuda:0"}


def test_what_is_written_is_where_it_was():
    state = there(np.ones(3), tw.float32)

    def add(x):
        state[...] = state + x
        x *= 3
        return state * 2

    step = _core._capture(add, [there(np.ones(3), tw.float32)])
    x = there(np.full(3, 5.0), tw.float32)
    version = state.version
    (y,) = step.replay([x])
    assert (state.tolist(), y.tolist(), x.tolist()) == ([7.0] * 3, [14.0] * 3, [15.0] * 3)
    assert state.version > version


def test_inputs_may_lie_anywhere_and_overlap_as_they_did():
    data = there(np.arange(60.0).reshape(10, 6), tw.float32)
    step = _core._capture(lambda a, b: a * 2 + b[0], [data[2:5, ::2], data[4:6, ::2]])
    for start in (0, 3, 4):
        a, b = data[start : start + 3, ::2], data[start + 2 : start + 4, ::2]
        assert bits(step.replay([a, b])[0]) == bits(a * 2 + b[0])
    backwards = _core._capture(lambda x: x + 1, [data[::-1]])
    assert bits(backwards.replay([data.copy()[::-1]])[0]) == bits(data[::-1] + 1)


def test_gradients_arrive_and_add_up():
    w = there(np.ones(3), tw.float32).requires_grad_()
    (w * 1.0).sum().backward()
    step = _core._capture(lambda x: (w * x).sum().backward(), [there(np.full(3, 2.0), tw.float32)])
    assert step.replay([there(np.full(3, 4.0), tw.float32)]) == []
    assert w.grad.tolist() == [7.0] * 3
    x = there(np.full(2, 3.0), tw.float32).requires_grad_()
    square = _core._capture(lambda x: (x * x).sum().backward(), [x])
    other = there(np.full(2, 5.0), tw.float32).requires_grad_()
    square.replay([other])
    assert (other.grad.tolist(), x.grad.tolist()) == ([10.0] * 2, [6.0] * 2)


def test_random_numbers_are_drawn_anew_and_may_be_returned():
    ones = there(np.ones(1000), tw.float32)
    step = _core._capture(lambda x: (tw.dropout(x, 0.5, True), tw.dropout(x, 0.2, True)), [ones])
    tw.manual_seed(5)
    replayed = [bits(y) for _ in range(2) for y in step.replay([ones])]
    tw.manual_seed(5)
    eager = [bits(tw.dropout(ones, p, True)) for p in (0.5, 0.2, 0.5, 0.2)]
    assert replayed == eager
    assert len(set(replayed)) == 4


def test_memory_of_kernels_is_the_graphs_own():
    """What kernels ask for between launches must not be a tensor's by the next replay."""
    x = there(np.random.default_rng(0).random((3, 70000)), tw.float32)
    step = _core._capture(lambda x: (x.sum(axis=1), tw.argsort(x[:, :3000])), [x])
    expected = [bits(y) for y in step.replay([x])]
    held = [tw.full((n,), 7.0, device="cuda") for n in (64, 512, 4096, 70000) for _ in range(8)]
    for _ in range(3):
        assert [bits(y) for y in step.replay([x])] == expected
    assert all(bool((h == 7.0).all()) for h in held)


def test_memory_comes_back_with_the_capture():
    x = there(np.ones((300, 300)), tw.float32)
    step = _core._capture(lambda x: tw.tanh(x @ x) @ x, [x])
    step.replay([x])
    tw.cuda.synchronize()
    held = tw.cuda.memory_allocated()
    del step
    assert tw.cuda.memory_allocated() < held
    y = x @ x
    assert y.shape == (300, 300)


def test_indices_are_checked_in_every_replay():
    table = there(np.arange(12.0).reshape(4, 3), tw.float32)
    step = _core._capture(lambda i: table[i], [there([0, 1])])
    assert step.replay([there([3, -4])])[0].tolist() == [[9, 10, 11], [0, 1, 2]]
    with pytest.raises(IndexError, match="4 is out of range for axis 0 with size 4"):
        step.replay([there([0, 4])])[0].tolist()
    assert step.replay([there([1, 1])])[0].tolist() == [[3, 4, 5], [3, 4, 5]]


def test_devices_are_not_mixed():
    x, y = tw.ones((3,)), there(np.ones(3), tw.float32)
    with pytest.raises(ValueError, match=r"inputs are on different devices: .* 'cpu' and .*'cuda"):
        _core._capture(lambda a, b: a, [x, y])
    with pytest.raises(RuntimeError, match=r"add runs on 'cpu', the inputs are on 'cuda:0'"):
        _core._capture(lambda a: (x + x, a)[1], [y])
    with pytest.raises(RuntimeError, match="moves to another device"):
        _core._capture(lambda a: a.to("cpu"), [y])
    step = _core._capture(lambda a: a + 1, [y])
    with pytest.raises(ValueError, match=r"on 'cpu'; the recording was on 'cuda:0'"):
        step.replay([x])


def test_a_failed_capture_leaves_the_device_as_it_was():
    x = there(np.ones(3), tw.float32)
    with pytest.raises(RuntimeError, match=r"item\(\) reads a value"):
        _core._capture(lambda a: a * a.sum().item(), [x])
    assert (x + 1).tolist() == [2.0] * 3
    assert _core._capture(lambda a: a + 1, [x]).replay([x])[0].tolist() == [2.0] * 3


@pytest.mark.parametrize("name", ["sgd", "momentum", "nesterov", "adam", "amsgrad", "nadam"])
def test_steps_and_rates_in_the_gpus_memory_give_what_numbers_give(name):
    op = getattr(tw, f"{name}_step")
    states = {"sgd": 0, "momentum": 1, "nesterov": 1, "adam": 2, "amsgrad": 3, "nadam": 2}[name]
    words = {"momentum": 0.9} if name in ("momentum", "nesterov") else {}
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(50) for _ in range(2)]

    def after(step, lr) -> list[bytes]:
        p, g = (there(v, tw.float64) for v in values)
        s = [[there(np.abs(values[1]), tw.float64)] for _ in range(states)]
        op([p], [g], *s, step=step, lr=lr, **words)
        return [np.frombuffer(bits(x)) for x in (p, *(x for (x,) in s))]

    for a, b in zip(
        after(3, 0.125), after(there(3, tw.int64), there(0.125, tw.float32)), strict=True
    ):
        np.testing.assert_allclose(b, a, rtol=1e-13)
