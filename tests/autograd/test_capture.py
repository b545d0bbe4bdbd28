"""Recorded calls: a replay gives the bits of the calls themselves, on other inputs."""

from __future__ import annotations

import gc
import math
import random
import threading
import time

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright.memory import Pool
from tilewright.runtime import Scheduler


def bits(x: tw.Tensor) -> bytes:
    return x.numpy().tobytes()


def uniform(rng, *shape, dtype=tw.float32) -> tw.Tensor:
    return tw.asarray(rng.random(shape), dtype=dtype)


# ---- a training step ----


class Training:
    """784-256-10 with dropout, cross-entropy with ignored targets, and Adam."""

    def __init__(self) -> None:
        tw.manual_seed(3)
        self.model = tw.nn.Sequential(
            tw.nn.Linear(784, 256), tw.nn.ReLU(), tw.nn.Dropout(0.3), tw.nn.Linear(256, 10)
        )
        self.parameters = list(self.model.parameters())
        self.averages = [[tw.zeros(p.shape) for p in self.parameters] for _ in range(2)]
        self.number = tw.zeros((), dtype=tw.int64)

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
        tensors = [*self.parameters, *grads, *self.averages[0], *self.averages[1], self.number]
        return [bits(x.detach()) for x in tensors]


def batches(count: int):
    rng = np.random.default_rng(1)
    for i in range(count):
        targets = rng.integers(0, 10, 64)
        targets[rng.random(64) < 0.2] = -100
        yield (
            uniform(rng, 64, 784),
            tw.asarray(targets),
            tw.asarray(0.01 / (1 + i), dtype=tw.float32),
        )


class Checkpointed:
    """A model whose forward runs under nested checkpoints."""

    def __init__(self, model: tw.nn.Module, forward) -> None:
        self.zero_grad = model.zero_grad
        self.forward = forward

    def __call__(self, x: tw.Tensor) -> tw.Tensor:
        return tw.checkpoint(self.forward, x)


def test_a_captured_training_step_gives_the_bits_of_eager_for_ten_steps():
    eager, captured = Training(), Training()
    losses = []
    tw.manual_seed(7)
    for batch in batches(11):
        loss = eager.step(*batch)
        losses.append((bits(loss.detach()), eager.state()))
    tw.manual_seed(7)
    first, *rest = batches(11)
    step = _core._capture(captured.step, list(first))
    assert captured.state() == losses[0][1]
    kept = []
    for batch, (loss, state) in zip(rest, losses[1:], strict=True):
        (result,) = step.replay(list(batch))
        kept.append((result, loss))
        assert bits(result) == loss
        assert captured.state() == state
    for result, loss in kept:  # later replays left them alone
        assert bits(result) == loss
    names = [name for name, _ in step.calls()]
    assert {"draw", "dropout_by", "cross_entropy_rows", "adam_step", "linear"} <= set(names)


def test_a_replay_allocates_its_results_alone():
    training = Training()
    first, *rest = batches(4)
    step = _core._capture(training.step, list(first))
    step.replay(list(rest[0]))
    pool = Pool()
    with pool:
        step.replay(list(rest[1]))
    # The loss and four gradients.
    assert pool.stats()["allocations"] == 5
    figures = step.figures()
    assert 0 < figures["lower_bound_bytes"] <= figures["arena_bytes"] < figures["sum_bytes"]


# ---- what varies, and what does not ----


def test_inputs_may_lie_anywhere():
    rng = np.random.default_rng(2)
    data = uniform(rng, 10, 6)
    double = _core._capture(lambda x: x * 2 + x[0], [data[2:5]])
    for start in (0, 3, 7):
        (y,) = double.replay([data[start : start + 3]])
        part = data[start : start + 3]
        assert bits(y) == bits(part * 2 + part[0])
    other = uniform(rng, 3, 6)
    assert bits(double.replay([other])[0]) == bits(other * 2 + other[0])


def test_states_are_read_and_written_where_they_are():
    state = tw.ones((3,))

    def add(x):
        state[...] = state + x
        return state * 2

    step = _core._capture(add, [tw.ones((3,))])
    assert state.tolist() == [2.0] * 3
    version = state.version
    (y,) = step.replay([tw.full((3,), 5.0)])
    assert (state.tolist(), y.tolist()) == ([7.0] * 3, [14.0] * 3)
    assert state.version > version
    state[...] = 0.0
    assert step.replay([tw.full((3,), 1.0)])[0].tolist() == [2.0] * 3


def test_inputs_may_be_written():
    def scale(x):
        x *= 3
        return x

    step = _core._capture(scale, [tw.ones((4,))])
    x = tw.full((4,), 2.0)
    (y,) = step.replay([x])
    assert x.tolist() == y.tolist() == [6.0] * 4
    fixed = np.ones(4, dtype=np.float32)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        step.replay([tw.asarray(fixed)])


def test_values_of_the_program_stay_what_they_were():
    step = _core._capture(lambda x: x * 3.5 + tw.asarray([1.0, 2.0]), [tw.zeros((2,))])
    assert step.replay([tw.ones((2,))])[0].tolist() == [4.5, 5.5]
    gc.collect()
    tw.full((2,), 9.0)
    assert step.replay([tw.zeros((2,))])[0].tolist() == [1.0, 2.0]


def test_gradients_that_add_up_go_on_adding():
    w = tw.ones((3,), requires_grad=True)
    (w * 1.0).sum().backward()

    def add(x):
        (w * x).sum().backward()

    step = _core._capture(add, [tw.full((3,), 2.0)])
    assert w.grad.tolist() == [3.0] * 3
    assert step.replay([tw.full((3,), 4.0)]) == []
    assert w.grad.tolist() == [7.0] * 3
    w.grad = None
    with pytest.raises(RuntimeError, match=r"gradient of .* is not the one of the recording"):
        step.replay([tw.full((3,), 4.0)])


def test_gradients_of_inputs_arrive_in_the_inputs_of_the_replay():
    def backward(x):
        (x * x).sum().backward()

    recorded = tw.full((2,), 3.0)
    recorded.requires_grad = True
    step = _core._capture(backward, [recorded])
    x = tw.full((2,), 5.0)
    x.requires_grad = True
    step.replay([x])
    assert x.grad.tolist() == [10.0, 10.0]
    assert recorded.grad.tolist() == [6.0, 6.0]


def test_random_numbers_are_drawn_anew():
    step = _core._capture(lambda x: tw.dropout(x, 0.5, True), [tw.ones((1000,))])
    tw.manual_seed(5)
    (a,), (b,) = step.replay([tw.ones((1000,))]), step.replay([tw.ones((1000,))])
    tw.manual_seed(5)
    assert bits(a) == bits(tw.dropout(tw.ones((1000,)), 0.5, True))
    assert bits(a) != bits(b)


def test_a_checkpointed_step_with_dropout_gives_the_bits_of_eager():
    eager, captured = Training(), Training()
    for training in (eager, captured):
        model, drop = training.model, tw.nn.Dropout(0.2)

        def forward(x, model=model, drop=drop):
            inner = tw.checkpoint(lambda v: drop(tw.tanh(model[0](v))), x)
            return model[3](model[2](inner) * tw.rand(256))

        training.model = Checkpointed(model, forward)
    batch, *rest = batches(6)
    tw.manual_seed(7)
    expected = [(bits(eager.step(*b).detach()), eager.state()) for b in (batch, *rest)]
    after = tw.rand(5).tolist()
    tw.manual_seed(7)
    step = _core._capture(captured.step, list(batch))
    assert captured.state() == expected[0][1]
    for given, (loss, state) in zip(rest, expected[1:], strict=True):
        assert bits(step.replay(list(given))[0]) == loss
        assert captured.state() == state
    assert tw.rand(5).tolist() == after
    drawn = [name for name, _ in step.calls() if name == "draw"]
    assert len(drawn) == 3  # two masks and a factor; the reruns draw nothing


def test_a_graph_from_before_keeps_its_random_numbers_in_every_replay():
    w, stream = tw.ones((50,), requires_grad=True), tw.Generator(3)
    y = tw.checkpoint(lambda v: tw.exp(tw.dropout(v, 0.5, generator=stream)), w)
    (expected,) = tw.grad(y.sum(), [w], retain_graph=True)

    def gradient(g):
        return tw.grad(y, [w], grad_outputs=g, retain_graph=True)

    step = _core._capture(gradient, [tw.ones((50,))])
    for _ in range(2):
        assert bits(step.replay([tw.ones((50,))])[0]) == bits(expected)


def test_indices_are_checked_in_every_replay():
    table = tw.arange(12, dtype=tw.float32).reshape((4, 3))
    step = _core._capture(lambda i: table[i], [tw.asarray([0, 1])])
    assert step.replay([tw.asarray([3, -4])])[0].tolist() == [[9, 10, 11], [0, 1, 2]]
    with pytest.raises(IndexError, match="4 is out of range for axis 0 with size 4"):
        step.replay([tw.asarray([0, 4])])
    assert step.replay([tw.asarray([1, 1])])[0].tolist() == [[3, 4, 5], [3, 4, 5]]


def test_kernels_are_those_of_the_recording():
    x = tw.rand((64, 64))
    with tw.kernels.use(matmul="tiled"):
        step = _core._capture(lambda x: x @ x, [x])
        expected = x @ x
    assert step.calls() == [("matmul", "tiled")]
    with tw.explain() as report, tw.kernels.use(matmul="naive"):
        (y,) = step.replay([x])
    assert bits(y) == bits(expected)
    assert [(record.op, record.kernel) for record in report] == [("matmul", "tiled")]


def test_under_a_quota(tmp_path):
    rng = np.random.default_rng(4)
    eager = [uniform(rng, 256, 256) for _ in range(4)]
    with Pool(quota_bytes=3 << 18, spill_dir=tmp_path):
        inside = [w.copy() for w in eager]

    def chain(weights):
        def run(x):
            for w in weights:
                x = tw.tanh(x @ w)
            return x

        return run

    x = uniform(rng, 256, 256)
    with pytest.raises(MemoryError):  # a replay pins all that it uses
        _core._capture(chain(inside), [x]).replay([x])
    few = _core._capture(chain(inside[:2]), [x])
    assert bits(few.replay([x])[0]) == bits(chain(eager[:2])(x))


# ---- what is refused ----


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x * x.sum().item(), r"item\(\) reads a value"),
        (lambda x: x if x.sum() > 0 else -x, "reads a value|item"),
        (lambda x: tw.asarray(x.tolist()), r"tolist\(\) reads values"),
        (lambda x: tw.asarray(x.numpy()), "another library"),
        (lambda x: tw.nonzero(x)[0], "nonzero"),
        (lambda x: tw.uniform(0.0, 1.0, (2,), generator=tw.Generator(3)), "generator"),
        (lambda x: _core._capture(lambda y: y, [x]), "one is running"),
    ],
)
def test_what_a_replay_could_not_repeat_is_refused(function, text):
    x = tw.ones((3,))
    with pytest.raises((RuntimeError, BufferError), match=text):
        _core._capture(function, [x])
    assert (x + 1).tolist() == [2.0] * 3  # nothing is recorded any more
    assert _core._capture(lambda x: x + 1, [x]).replay([x])[0].tolist() == [2.0] * 3


def test_hooks_and_pools_inside_are_refused():
    x, w = tw.ones((3,)), tw.ones((3,), requires_grad=True)
    handle = w.register_hook(lambda g: None)
    with pytest.raises(RuntimeError, match="a hook runs"):
        _core._capture(lambda x: (x * w).sum().backward(), [x])
    handle.remove()

    def inside(x):
        with Pool():
            return x + 1

    with pytest.raises(RuntimeError, match="a pool is entered"):
        _core._capture(inside, [x])
    with pytest.raises(RuntimeError, match="plans a backward pass"):
        _core._capture(lambda x: (x * w).sum().backward(plan=True), [x])


@pytest.mark.parametrize(
    "make",
    [
        lambda x, tasks: tasks.submit(lambda: x * 2).result(),
        lambda x, tasks: in_a_thread(lambda: x * 2),
        lambda x, tasks: in_a_thread(lambda: tw.asarray([1.0, 2.0, 3.0])),
        lambda x, tasks: tw.asarray(np.ones(3, dtype=np.float32)),
        lambda x, tasks: tw.from_dlpack(np.ones(3, dtype=np.float32)),
    ],
)
def test_what_others_made_meanwhile_is_refused(make):
    """Another thread's results, and memory of other libraries, are no constants."""
    x = tw.ones((3,))
    with Scheduler(workers=1) as tasks:
        with pytest.raises(RuntimeError, match=r"add uses .* another thread or library made mean"):
            _core._capture(lambda x: make(x, tasks) + 1, [x])
        before = make(x, tasks)  # is there before, and may be used
    step = _core._capture(lambda x: x + before, [x])
    assert step.replay([tw.full((3,), 5.0)])[0].tolist() == (before + 5).tolist()


def in_a_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


class Varying:
    """What differs from call to call, by the text that names it."""

    def __init__(self) -> None:
        self.count = 0
        self.kept = [tw.ones((3,)), tw.zeros((3,))]
        self.leaves = [tw.ones((3, 3), requires_grad=True) for _ in range(2)]

    def next(self) -> int:
        self.count += 1
        return self.count


VARYING = {
    "gave multiply the number 2, and 1 before": lambda self, x: x * self.next(),
    "gave subtract the number": lambda self, x: x - time.perf_counter(),
    "gave add the number .*, and .* before": lambda self, x: x + random.random(),
    "gave multiply another tensor, or another part": lambda self, x: x[self.next() - 1 :][:1] * 1,
    "with other sizes, indices or settings": lambda self, x: tw.cumsum(x, self.next() - 1),
    "gave concat another tensor": lambda self, x: tw.roll(x, self.next()),
    "gave divide the number": lambda self, x: x / time.time(),
    "made float32 .3,. of other values": lambda self, x: x * tw.asarray([self.next(), 0.5, 1]),
    "ran sin where it ran cos before": lambda self, x: (tw.cos, tw.sin)[self.next() - 1](x),
    "ran negative where it had ended before": lambda self, x: -x if self.next() > 1 else None,
    "ended where it ran negative before": lambda self, x: -x if self.next() == 1 else None,
    "gave add another tensor": lambda self, x: x + self.kept[self.next() - 1],
    "gave multiply another tensor": lambda self, x: x * x if self.next() > 1 else x * 2,
    "the result another tensor, or another part": lambda self, x: x[self.next()],
    "the result another tensor, or": lambda self, x: (x * 1, x * 1)[self.next() - 1],
    "the result another shape, layout": lambda self, x: x[: self.next()],
    "the result another shape, layout or type": lambda self, x: x.T if self.next() > 1 else x,
    "returned 2 tensors, and 1 before": lambda self, x: [x] * self.next(),
    "gradients of other leaves": lambda self, x: setattr(self.leaves[self.next() - 1], "grad", x),
    "a gradient another tensor": lambda self, x: setattr(
        self.leaves[0], "grad", (x * 1, x * 1)[self.next() - 1]
    ),
}


@pytest.mark.parametrize("text", VARYING)
def test_what_varies_in_python_is_refused(text):
    """A clock, a counter: a replay runs no Python, and would repeat the first call."""
    varying, x = Varying(), tw.ones((3, 3))
    with pytest.raises(RuntimeError, match=f"capture: called again, the function .*{text}") as info:
        _core._capture(lambda x: VARYING[text](varying, x), [x])
    if "ended where" not in text:  # the line is in the traceback
        assert info.traceback[-1].path.name == "test_capture.py" or len(info.traceback) > 2
    assert (x[0] + 1).tolist() == [2.0] * 3  # nothing is recorded any more


@pytest.mark.parametrize("make", [lambda x: x.detach(), lambda x: x * 1.0, lambda x: tw.ones(3)])
def test_leaves_may_be_made_inside(make):
    def step(x):
        leaf = make(x).detach().requires_grad_()
        (leaf * leaf * x).sum().backward()
        return leaf.grad

    x = tw.asarray([1.0, 2.0, 3.0])
    recorded = _core._capture(step, [tw.ones((3,))])
    assert recorded.replay([x])[0].tolist() == step(x).tolist()


def test_numbers_that_are_computed_alike_are_constants():
    shape = (4, 9)
    step = _core._capture(lambda x: x * (1 / math.sqrt(x.shape[-1])) + 10**6, [tw.ones(shape)])
    x = tw.full(shape, 3.0)
    assert step.replay([x])[0].tolist() == (x * (1 / math.sqrt(9)) + 10**6).tolist()


def test_a_rehearsal_computes_nothing():
    """The function is called twice; states, gradients and random numbers move once."""
    w, calls = tw.ones((3,), requires_grad=True), []
    state = tw.zeros((3,))

    def step(x):
        calls.append(1)
        state[...] = state + 1
        w.grad = None
        (w * tw.dropout(x, 0.5)).sum().backward()
        return state * 2

    tw.manual_seed(3)
    recorded = _core._capture(step, [tw.ones((3,))])
    grad, following = w.grad.tolist(), tw.rand(3).tolist()
    tw.manual_seed(3)
    assert grad == tw.dropout(tw.ones((3,)), 0.5).tolist()
    assert following == tw.rand(3).tolist()
    assert (len(calls), state.tolist()) == (2, [1.0] * 3)
    assert recorded.replay([tw.ones((3,))])[0].tolist() == [4.0] * 3
    assert len(calls) == 2


@pytest.mark.parametrize("held", [False, True])
def test_gradients_from_before_stay_through_a_refusal(held):
    w, count = tw.ones((3,), requires_grad=True), Varying()
    (w * 2.0).sum().backward()
    kept = w.grad if held else None  # then the pass adds to a copy
    with pytest.raises(RuntimeError, match="gave multiply the number"):
        _core._capture(lambda x: (w * x * count.next()).sum().backward(), [tw.ones((3,))])
    assert w.grad.tolist() == [3.0] * 3  # of the first call
    assert kept is None or kept.tolist() in ([2.0] * 3, [3.0] * 3)


def test_changes_of_constants_are_refused():
    def change(x):
        y = tw.asarray([1.0, 2.0, 3.0])
        y += x
        return y

    with pytest.raises(RuntimeError, match="changes in place what was made of values"):
        _core._capture(change, [tw.ones((3,))])


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ([], "0 inputs, but 1"),
        ([tw.ones((4, 3))], "recorded was float32 .3, 4."),
        ([tw.ones((3, 4), dtype=tw.float64)], "input 0 is float64"),
        ([tw.ones((4, 3)).T], "strides"),
    ],
)
def test_other_inputs_are_refused(inputs, text):
    step = _core._capture(lambda x: x + 1, [tw.ones((3, 4))])
    with pytest.raises(ValueError, match=text):
        step.replay(inputs)


def test_inputs_that_share_memory():
    data = tw.arange(8, dtype=tw.float32)

    def add(a, b):
        a += b
        return a

    apart = _core._capture(add, [tw.ones((4,)), tw.ones((4,))])
    with pytest.raises(ValueError, match="share memory that is written"):
        apart.replay([data[:4], data[2:6]])
    assert apart.replay([data[:4], data[4:]])[0].tolist() == [4.0, 6.0, 8.0, 10.0]
    data = tw.arange(8, dtype=tw.float32)
    shared = _core._capture(add, [data[:4], data[2:6]])
    other = tw.arange(8, dtype=tw.float32)
    expected = add(other[:4].copy(), other[2:6].copy()).tolist()
    assert shared.replay([other[:4], other[2:6]])[0].tolist() == expected
    with pytest.raises(ValueError, match="do not in the same way"):
        shared.replay([other[:4], other[3:7]])
    with pytest.raises(RuntimeError, match="shares memory with an input"):
        _core._capture(lambda x: x + data[4:], [data[:4]])


def test_what_lies_between_the_elements_of_an_input():
    base = tw.zeros((20,))
    odd = base[1:19:2]
    with pytest.raises(RuntimeError, match="shares memory with an input"):
        _core._capture(lambda x: odd + x[:9], [base[::2]])
    part = _core._capture(lambda x: x[1:3] * 2, [base[::2]])
    assert part.replay([tw.arange(20, dtype=tw.float32)[::2]])[0].tolist() == [4.0, 8.0]


def test_inputs_that_share_memory_with_states():
    w = tw.ones((4, 4))
    step = _core._capture(lambda x: (w.addmm_(x, x), None)[1], [tw.zeros((4, 4))])
    with pytest.raises(ValueError, match="shares memory that is written to"):
        step.replay([w])
    memory = np.arange(10, dtype=np.float32)

    def add(a, b):
        a += b

    apart = _core._capture(add, [tw.ones((9,)), tw.ones((9,))])
    with pytest.raises(ValueError, match="share memory that is written to"):
        apart.replay([tw.asarray(memory[1:]), tw.asarray(memory[:-1])])


def test_replays_are_on_the_cpu():
    state = tw.ones((3,))

    def add(x):
        state[...] = state + x
        return state * 2

    step = _core._capture(add, [tw.ones((3,))])
    with pytest.raises(ValueError, match=r"on 'null'; the recording was on 'cpu'"):
        step.replay([tw.ones((3,), device="null")])
    x = tw.ones((3,))
    tw.set_device("null")
    try:
        (y,) = step.replay([x])
    finally:
        tw.set_device("cpu")
    assert (y.device, y.tolist(), state.tolist()) == ("cpu", [6.0] * 3, [3.0] * 3)


def test_pools_may_not_end_inside():
    x, pool = tw.ones((3,)), Pool()
    with pool:
        with pytest.raises(RuntimeError, match="a pool is left"):
            _core._capture(lambda x: pool.__exit__(None, None, None), [x])
        y = tw.ones((1000,))
    assert pool.stats()["live_bytes"] >= y.nbytes


def test_constants_are_returned_fresh():
    step = _core._capture(lambda x: (x * 1, tw.asarray([1.0, 2.0])), [tw.ones((2,))])
    for _ in range(2):
        constant = step.replay([tw.ones((2,))])[1]
        assert constant.tolist() == [1.0, 2.0]
        constant += 10


def test_inputs_that_get_gradients_want_them():
    x = tw.ones((2,), requires_grad=True)
    step = _core._capture(lambda x: (x * x).sum().backward(), [x])
    with pytest.raises(ValueError, match="must be a leaf that requires grad"):
        step.replay([tw.ones((2,))])


def test_settings_of_a_step_may_be_made_inside():
    w = tw.zeros((3,))
    step = _core._capture(
        lambda g: tw.sgd_step([w], [g], step=1, lr=tw.asarray(0.5)), [tw.ones((3,))]
    )
    step.replay([tw.full((3,), 4.0)])
    assert w.tolist() == [-2.5] * 3


def test_optimizers_and_seeds_are_refused():
    w = tw.ones((2,), requires_grad=True)
    w.grad = tw.ones((2,))
    optimizer = tw.optim.SGD([w], lr=0.1)
    with pytest.raises(RuntimeError, match="counts its steps in Python"):
        _core._capture(lambda x: optimizer.step(), [tw.ones((2,))])
    with pytest.raises(RuntimeError, match="seeded"):
        _core._capture(lambda x: tw.manual_seed(1), [tw.ones((2,))])
