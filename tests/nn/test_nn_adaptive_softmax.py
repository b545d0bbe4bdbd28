"""The adaptive softmax against PyTorch's, with its weights."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn

torch = pytest.importorskip("torch")

SETTINGS = [
    ((16, 20, [5, 10, 15]), {"div_value": 2.0}),
    ((12, 40, [7]), {"head_bias": True}),
    ((20, 9, [1, 3]), {"div_value": 1.5, "head_bias": True}),
]


def pair(args, options):
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(*args, **options, dtype=torch.float64)
    ours = nn.AdaptiveLogSoftmaxWithLoss(*args, **options, dtype=tw.float64)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


@pytest.mark.parametrize(("args", "options"), SETTINGS)
def test_values_and_gradients_are_pytorchs(args, options) -> None:
    ours, theirs = pair(args, options)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, args[0]))
    for classes in (rng.integers(0, args[1], 30), np.zeros(30, int), np.full(30, args[1] - 1)):
        x, z = tw.asarray(values).requires_grad_(), torch.tensor(values, requires_grad=True)
        got, want = ours(x, tw.asarray(classes)), theirs(z, torch.tensor(classes))
        np.testing.assert_allclose(got.output.detach(), want.output.detach(), rtol=1e-12)
        np.testing.assert_allclose(got.loss.item(), want.loss.item(), rtol=1e-12)
        ours.zero_grad()
        theirs.zero_grad()
        (got.loss + got.output[3]).backward()
        (want.loss + want.output[3]).backward()
        np.testing.assert_allclose(x.grad, z.grad, rtol=1e-10, atol=1e-14)
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert (a.grad is None) == (b.grad is None)  # of a cluster without targets
            if a.grad is not None:
                np.testing.assert_allclose(a.grad, b.grad, rtol=1e-10, atol=1e-14)
    one, single = ours(x[0], tw.asarray(args[1] - 1)), theirs(z[0], torch.tensor(args[1] - 1))
    assert one.output.shape == ()
    np.testing.assert_allclose(one.output.item(), single.output.item(), rtol=1e-12)


@pytest.mark.parametrize(("args", "options"), SETTINGS)
def test_all_classes(args, options) -> None:
    ours, theirs = pair(args, options)
    rng = np.random.default_rng(1)
    for scale in (0.1, 30.0):  # few rows, and many, whose best class is in a cluster
        values = scale * rng.normal(size=(50, args[0]))
        every = ours.log_prob(tw.asarray(values)).detach()
        np.testing.assert_allclose(
            every, theirs.log_prob(torch.tensor(values)).detach(), 1e-9, 1e-14
        )
        np.testing.assert_allclose(every.exp().sum(axis=1), np.ones(50), rtol=1e-12)
        best = ours.predict(tw.asarray(values))
        assert best.dtype == tw.int64
        assert best.tolist() == theirs.predict(torch.tensor(values)).tolist()
    assert ours.predict(tw.zeros((0, args[0]), dtype=tw.float64)).shape == (0,)


def test_shapes_of_parameters_and_refusals() -> None:
    ours, theirs = pair(*SETTINGS[0])
    assert [(n, tuple(p.shape)) for n, p in ours.named_parameters()] == [
        (n, tuple(p.shape)) for n, p in theirs.named_parameters()
    ]
    first = [p.tolist() for p in ours.parameters()]
    ours.reset_parameters(tw.Generator(1))
    assert [p.tolist() for p in ours.parameters()] != first
    for cutoffs in ([], [5, 5], [0, 5], [20], [5, 3], [2.5]):
        with pytest.raises(ValueError, match="cutoffs are whole numbers that rise"):
            nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs)
    x = tw.zeros((3, 16), dtype=tw.float64)
    for rows, target, error, text in (
        (x, tw.asarray([0, 1, 20]), ValueError, "from 0 to 19, got 0 to 20"),
        (x, tw.asarray([0, -1, 2]), ValueError, "from 0 to 19, got -1 to 2"),
        (x, tw.asarray([0, 1]), ValueError, r"got \(3, 16\) and \(2,\)"),
        (x[0], tw.asarray([0]), ValueError, r"got \(16,\) and \(1,\)"),
        (x, tw.zeros((3, 1), dtype=tw.int64), ValueError, r"got \(3, 16\) and \(3, 1\)"),
        (x, tw.zeros((3,)), TypeError, "integers, got float32"),
    ):
        with pytest.raises(error, match=text):
            ours(rows, target)
    for call in (ours.log_prob, ours.predict):
        with pytest.raises(ValueError, match=r"expected an input \(n, 16\), got \(16,\)"):
            call(x[0])
