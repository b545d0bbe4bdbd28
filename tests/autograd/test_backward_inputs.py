"""backward(inputs=...) adds to the grads of its inputs alone, as PyTorch's does."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright as tw

torch = pytest.importorskip("torch")


def leaves(lib: Any) -> list[Any]:
    values = [1.0, 2.0], [3.0, 4.0], [5.0, 6.0]
    return [lib.tensor(v, dtype=lib.float64, requires_grad=True) for v in values]


def grads(tensors: list[Any]) -> list[Any]:
    return [None if x.grad is None else x.grad.tolist() for x in tensors]


def both(work: Any) -> tuple[list[Any], list[Any]]:
    """The grads after work(lib, leaves), with both libraries."""
    made = []
    for lib in (tw, torch):
        tensors = leaves(lib)
        work(lib, tensors)
        made.append(grads(tensors))
    return made[0], made[1]


def one(lib, x):
    (x[0] * x[1]).sum().backward(inputs=x[0])


def several(lib, x):
    (x[0] * x[1] * x[1]).sum().backward(inputs=[x[1], x[0]])


def unused(lib, x):
    (x[0] * x[1]).sum().backward(inputs=[x[0], x[2]])


def added_to_what_was_there(lib, x):
    loss = (x[0] * x[0]).sum()
    loss.backward(retain_graph=True)
    loss.backward(inputs=[x[0]])


def with_a_seed(lib, x):
    seed = lib.tensor([2.0, -1.0], dtype=lib.float64)
    (x[0] * x[1]).backward(seed, inputs=[x[0]])


def of_second_order(lib, x):
    (x[0] ** 3).sum().backward(create_graph=True, inputs=[x[0]])
    first, x[0].grad = x[0].grad, None
    first.sum().backward(inputs=[x[0]])


def from_several_results(lib, x):
    lib.autograd.backward([(x[0] * x[1]).sum(), (x[0] * 2.0).sum()], inputs=[x[0]])


CALLS = [one, several, unused, added_to_what_was_there, with_a_seed, of_second_order]


@pytest.mark.parametrize("work", [*CALLS, from_several_results], ids=lambda work: work.__name__)
@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
def test_grads_are_pytorchs(work):
    ours, theirs = both(work)
    assert ours == theirs


def test_grads_of_two_inputs_share_no_memory():
    a, b, _ = leaves(tw)
    (a + b).sum().backward(inputs=[a, b])
    a.grad *= 3.0
    assert b.grad.tolist() == [1.0, 1.0]


def test_grads_are_not_recorded():
    a, b, _ = leaves(tw)
    for _ in range(2):
        (a * b).sum().backward(inputs=[a])
    assert not a.grad.requires_grad


def test_refusals_change_nothing():
    a, b, _ = leaves(tw)
    loss = (a * b).sum()
    for inputs, error, text in (
        ([], RuntimeError, "backward: inputs are empty"),
        (3, TypeError, "backward: inputs must be a tensor or tensors, got 3"),
        ([a, 3], TypeError, "backward: inputs must be tensors, got int"),
    ):
        with pytest.raises(error, match=text):
            loss.backward(inputs=inputs)
    with pytest.raises(ValueError, match="backward: a plan is for all leaves"):
        loss.backward(inputs=[a], plan=True)
    assert grads([a, b]) == [None, None]
    loss.backward()
    assert a.grad.tolist() == b.tolist()
