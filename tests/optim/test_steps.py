"""Steps of optimisers as ops: settings in tensors, memory under a quota, wrong operands."""

from __future__ import annotations

import numpy as np
import pytest
from cases.ops.updates import OPS

import tilewright as tw
from tilewright.memory import Pool

per_op = pytest.mark.parametrize("name", list(OPS))


def columns(states: int, shapes=((3, 4), (70,), ()), dtype=tw.float32) -> list[list[tw.Tensor]]:
    """Parameters, gradients and states, the same ones at every call."""
    rng = np.random.default_rng(5)
    return [
        [tw.asarray(rng.random(shape), dtype=dtype if i < 2 else tw.float32) for shape in shapes]
        for i in range(2 + states)
    ]


def numbers(tensors: list[list[tw.Tensor]]) -> list[list[np.ndarray]]:
    return [[x.astype(tw.float64).numpy().copy() for x in column] for column in tensors]


@per_op
@pytest.mark.parametrize("lr_type", [tw.float32, tw.float64])
@pytest.mark.parametrize("step_type", [tw.int64, tw.float32])
def test_step_and_lr_in_tensors_give_the_bits_of_numbers(name, lr_type, step_type):
    states, settings = OPS[name]
    by_number, by_tensor = columns(states), columns(states)
    step = tw.asarray(0, dtype=step_type)
    lr = tw.asarray(0.0, dtype=lr_type)
    for number, rate in enumerate((0.5, 0.25, 0.125), 1):
        getattr(tw, name)(*by_number, step=number, lr=rate, **settings)
        step += 1
        lr[...] = rate
        getattr(tw, name)(*by_tensor, step=step, lr=lr, **settings)
    for a, b in zip(numbers(by_number), numbers(by_tensor), strict=True):
        for x, y in zip(a, b, strict=True):
            assert np.array_equal(x, y, equal_nan=True)


def test_every_step_is_here() -> None:
    steps = {
        op["name"]
        for op in tw._core._op_records()
        if op["signature"].startswith("(params: Sequence[Tensor]!")
    }
    assert set(OPS) == steps


@per_op
def test_replays_read_step_and_lr_anew(name):
    states, settings = OPS[name]
    eager, replayed = columns(states), columns(states)

    def run(step, lr):
        getattr(tw, name)(*replayed, step=step, lr=lr, **settings)
        return replayed[0][0] * 1

    def inputs(step, lr):
        return [tw.asarray(step), tw.asarray(lr)]

    captured = tw._core._capture(run, inputs(1, 0.5))  # which is a step itself
    for step, lr in ((1, 0.5), (2, 0.25), (7, 0.125)):
        if step > 1:
            captured.replay(inputs(step, lr))
        getattr(tw, name)(*eager, step=step, lr=lr, **settings)
        for a, b in zip(numbers(eager), numbers(replayed), strict=True):
            for x, y in zip(a, b, strict=True):
                assert np.array_equal(x, y, equal_nan=True)


@per_op
def test_a_quota_for_one_parameter_is_enough(name, tmp_path):
    states, settings = OPS[name]
    shapes = [(1 << 18,)] * 4
    expected, tensors = columns(states, shapes), columns(states, shapes)
    getattr(tw, name)(*expected, step=1, lr=0.5, **settings)
    quota = (2 + states) * (1 << 20) + (1 << 18)
    pool = Pool(quota_bytes=quota, spill_dir=tmp_path)
    with pool:
        inside = [[x.copy() for x in column] for column in tensors]
        getattr(tw, name)(*inside, step=1, lr=0.5, **settings)
        assert pool.stats()["spills"] > 0
        for a, b in zip(expected, inside, strict=True):
            for x, y in zip(a, b, strict=True):
                assert np.array_equal(x.numpy(), y.tolist(), equal_nan=True)


@per_op
def test_parameters_of_any_layout(name):
    states, settings = OPS[name]
    expected, tensors = columns(states, [(6, 4), (5,)]), columns(states, [(6, 4), (5,)])
    for at in (0, 1):  # parameter and gradient
        for lays in (lambda x: x.T.copy().T, lambda x: tw.concat([x, x], axis=1)[:, :4]):
            tensors[at][0] = lays(tensors[at][0])
            assert not tensors[at][0].is_contiguous
            getattr(tw, name)(*expected, step=1, lr=0.5, **settings)
            getattr(tw, name)(*tensors, step=1, lr=0.5, **settings)
            for a, b in zip(numbers(expected), numbers(tensors), strict=True):
                for x, y in zip(a, b, strict=True):
                    assert np.array_equal(x, y, equal_nan=True)


@pytest.mark.parametrize("dtype", [tw.float16, tw.bfloat16, tw.float64])
def test_parameters_of_several_types_step_together(dtype):
    apart = columns(0), columns(0, dtype=dtype)
    for tensors in apart:
        tw.sgd_step(*tensors, step=1, lr=0.5)
    a, b = columns(0), columns(0, dtype=dtype)
    tw.sgd_step(a[0] + b[0], a[1] + b[1], step=1, lr=0.5)
    for mixed, alone in zip((a, b), apart, strict=True):
        for x, y in zip(numbers(mixed)[0], numbers(alone)[0], strict=True):
            assert np.array_equal(x, y)


@per_op
def test_gradients_that_share_memory_with_what_is_written(name):
    states, settings = OPS[name]
    memory = tw.arange(12, dtype=tw.float32)
    expected = columns(states, [(10,)])
    expected[0], expected[1] = [memory[:10].copy()], [memory[2:].copy()]
    getattr(tw, name)(*expected, step=1, lr=0.5, **settings)
    shared = columns(states, [(10,)])
    shared[0], shared[1] = [memory[:10]], [memory[2:]]
    getattr(tw, name)(*shared, step=1, lr=0.5, **settings)
    assert memory[:10].tolist() == expected[0][0].tolist()


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"params": [tw.zeros((1, 2)).broadcast_to((3, 2))]}, ValueError, "share memory"),
        ({"params": [tw.zeros((3, 2), dtype=tw.int32)]}, TypeError, "floating type, got int32"),
        ({"grads": [tw.zeros((3,))]}, ValueError, "gradient float32 .3,. does not fit"),
        ({"grads": [tw.zeros((3, 2), dtype=tw.float64)]}, ValueError, "does not fit parameter"),
        ({"grads": []}, ValueError, "1 tensors in params, but 0 in grads"),
        ({"momentum_buffers": [tw.zeros((2, 2))]}, ValueError, "state float32 .2, 2. does not fit"),
        ({"lr": tw.zeros((2,))}, TypeError, "lr must be a number"),
        ({"step": tw.zeros((), dtype=tw.bool)}, TypeError, "step must be a number"),
        ({"lr": 1j}, TypeError, "lr must be a number"),
        ({"momentum": "much"}, TypeError, "momentum"),
    ],
)
def test_wrong_operands_change_nothing(change, error, text):
    param, buffer = tw.ones((3, 2)), tw.zeros((3, 2))
    call = {
        "params": [param],
        "grads": [tw.ones((3, 2))],
        "momentum_buffers": [buffer],
        "step": 1,
        "lr": 0.5,
        "momentum": 0.9,
    }
    with pytest.raises(error, match=f"momentum_step: .*{text}"):
        tw.momentum_step(**{**call, **change})
    assert param.tolist() == [[1.0, 1.0]] * 3
    assert buffer.tolist() == [[0.0, 0.0]] * 3


@pytest.mark.parametrize("threads", [1, 2])
def test_tensors_that_share_memory_step_one_after_the_other(threads):
    before = tw.get_num_threads()
    tw.set_num_threads(threads)
    try:
        memory, whole = tw.zeros((1 << 16,)), slice(None)
        for first, second in ((whole, whole), (slice(40000), slice(20000, None))):
            for parts in ([first, second], [second, first], [slice(0, 40000, 2), second]):
                memory.copy_(tw.arange(1 << 16) % 7)
                want = memory.copy()
                params = [memory[part] for part in parts]
                grads = [tw.ones(p.shape) for p in params]
                tw.sgd_step(params, grads, step=1, lr=0.5, weight_decay=0.5)
                for part, g in zip(parts, grads, strict=True):
                    tw.sgd_step([want[part]], [g], step=1, lr=0.5, weight_decay=0.5)
                assert np.array_equal(memory.numpy(), want.numpy())
    finally:
        tw.set_num_threads(before)


def test_states_that_share_memory_with_their_parameter_are_refused():
    p, q, s = tw.ones((4,)), tw.ones((4,)), tw.zeros((4,))
    for states in ([[p], [s]], [[s], [p]], [[s], [s]]):
        with pytest.raises(ValueError, match="of one parameter share memory, and both are to be"):
            tw.adam_step([p], [q], *states, step=1, lr=1.0)
    assert p.tolist() == [1.0] * 4
    tw.momentum_step([p, q], [tw.ones((4,))] * 2, [s, s], step=2, lr=1.0, momentum=0.5)
    assert (p.tolist(), q.tolist(), s.tolist()) == ([0.0] * 4, [-0.5] * 4, [1.5] * 4)


def test_gradients_that_are_other_parameters_are_read_first():
    p, q = tw.ones((3,)), tw.full((3,), 5.0)
    tw.sgd_step([p, q], [tw.ones((3,)), p], step=1, lr=1.0)
    assert (p.tolist(), q.tolist()) == ([0.0] * 3, [4.0] * 3)


def test_steps_count_from_one():
    with pytest.raises(ValueError, match="step counts from 1, got 0"):
        tw.adam_step(*columns(2), step=0, lr=0.1)


class TestChanges:
    """Ops on tensors that have neither gradients nor states."""

    @pytest.mark.parametrize("dtype", [tw.float16, tw.bfloat16, tw.float32, tw.float64])
    @pytest.mark.parametrize("number", [0.5, tw.asarray(0.5), tw.asarray(0.5, dtype=tw.float64)])
    def test_values(self, dtype, number):
        values = np.arange(-5000, 5000).reshape(100, 100) / 1024
        tensors = [tw.asarray(values, dtype=dtype), tw.asarray([np.nan, -np.inf], dtype=dtype)]
        wide = tensors[0].astype(tw.float64).numpy().copy()
        tw.scale_all(tensors, number=number)
        np.testing.assert_array_equal(tensors[0].astype(tw.float64).numpy(), wide * 0.5)
        tw.clip_all(tensors, number=number)
        np.testing.assert_array_equal(
            tensors[0].astype(tw.float64).numpy(), np.clip(wide * 0.5, -0.5, 0.5)
        )
        assert np.isnan(tensors[1][0].item())
        assert tensors[1][1].item() == -0.5

    def test_any_layout(self):
        whole = tw.ones((6, 4))
        tw.scale_all([whole[:3].T[::2], whole[3:, 1]], number=0.5)
        want = [[0.5, 1.0, 0.5, 1.0]] * 3 + [[1.0, 0.5, 1.0, 1.0]] * 3
        assert whole.tolist() == want

    @pytest.mark.parametrize(
        ("tensors", "number", "error", "text"),
        [
            ([tw.zeros((3,)).broadcast_to((2, 3))], 1.0, ValueError, "share memory"),
            ([tw.zeros((2,), dtype=tw.int32)], 1.0, TypeError, "floating type, got int32"),
            ([tw.zeros((2,))], tw.zeros((2,)), TypeError, "number must be a number"),
            ([tw.zeros((2,)), 3.0], 1.0, TypeError, "tensors"),
        ],
    )
    def test_wrong_operands(self, tensors, number, error, text):
        with pytest.raises(error, match=f"scale_all: .*{text}"):
            tw.scale_all(tensors, number=number)

    def test_a_quota_for_one_tensor_is_enough(self, tmp_path):
        with Pool(quota_bytes=3 << 20, spill_dir=tmp_path) as pool:
            tensors = [tw.full((1 << 18,), float(i)) for i in range(4)]
            tw.scale_all(tensors, number=0.5)
            assert [x.max().item() for x in tensors] == [0.0, 0.5, 1.0, 1.5]
            assert pool.stats()["spills"] > 0
