"""`load_state_dict(assign=True)`: a module takes the memory of a saved state, as PyTorch's does."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))


def state(dtype=tw.float32) -> dict[str, tw.Tensor]:
    rng = np.random.default_rng(3)
    values = {
        name: tw.asarray(rng.random(x.shape), dtype=dtype)
        for name, x in model().state_dict().items()
        if x.is_floating_point()
    }
    return values | {"1.num_batches_tracked": tw.asarray(5)}


def test_memory_is_shared_and_parameters_stay_the_same_objects():
    ours, given = model(), state()
    parameters = list(ours.parameters())
    ours.load_state_dict(given, assign=True)
    assert all(a is b for a, b in zip(ours.parameters(), parameters, strict=True))
    assert all(x.requires_grad and x.is_leaf for x in parameters)
    given["0.weight"][0, 0] = 9.0
    given["1.running_mean"][0] = 7.0
    assert ours[0].weight[0, 0].item() == 9
    assert ours[1].running_mean[0].item() == 7
    assert ours[1].num_batches_tracked.item() == 5


def test_dtype_and_device_are_those_of_the_state():
    ours = model().to_empty(device="null")
    ours.load_state_dict(state(tw.float64), assign=True)
    assert {x.dtype for x in ours.parameters()} == {tw.float64}
    assert {x.device for x in ours.parameters()} == {"cpu"}
    x = tw.ones((4, 3), dtype=tw.float64)
    ours(x).sum().backward()
    assert ours[0].weight.grad.dtype == tw.float64


def test_an_optimizer_made_before_trains_the_new_memory():
    ours, given = model(), state()
    optimizer = tw.optim.SGD(ours.parameters(), lr=1.0)
    ours.load_state_dict(given, assign=True)
    before = given["0.weight"].copy()
    (ours(tw.asarray(np.eye(3, dtype=np.float32))) ** 3).sum().backward()
    optimizer.step()
    assert not np.array_equal(given["0.weight"].numpy(), before.numpy())
    np.testing.assert_array_equal(given["0.weight"].numpy(), ours[0].weight.detach().numpy())


def test_a_state_with_a_graph_is_cut_off():
    ours, w = nn.Linear(2, 1, bias=False), tw.ones((1, 2), requires_grad=True)
    ours.load_state_dict({"weight": w * 2}, assign=True)
    ours(tw.ones((1, 2))).sum().backward()
    assert w.grad is None
    assert ours.weight.grad.tolist() == [[1, 1]]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"0.weight": tw.ones((2, 3), dtype=tw.int64)}, "int64 does not fit float32"),
        ({"0.weight": tw.ones((2, 3), dtype=tw.complex64)}, "complex64 does not fit float32"),
        ({"0.weight": tw.ones((3, 2))}, "shape"),
        ({"more": tw.ones(())}, "unexpected: more"),
    ],
)
def test_what_does_not_fit_changes_nothing(change, text):
    ours = model()
    before = {name: (x.data_ptr, x.tolist()) for name, x in ours.state_dict().items()}
    with pytest.raises(ValueError, match=text):
        ours.load_state_dict(state() | change, assign=True)
    assert before == {name: (x.data_ptr, x.tolist()) for name, x in ours.state_dict().items()}


def test_read_only_memory_can_be_assigned_and_used():
    array = np.full((1, 2), 3, np.float32)
    array.flags.writeable = False
    ours = nn.Linear(2, 1, bias=False)
    ours.load_state_dict({"weight": tw.asarray(array, copy=False)}, assign=True)
    assert ours(tw.ones((1, 2))).item() == 6
    with tw.no_grad(), pytest.raises(ValueError, match="read-only"):
        ours.weight += 1
