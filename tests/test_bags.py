"""Bags of different lengths against PyTorch's embedding_bag."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")
ours, theirs = tw.nn.functional.embedding_bag, torch.nn.functional.embedding_bag

BAGS = {
    "several": ([3, 1, 4, 1, 5, 0, 2, 2], [0, 2, 2, 5]),
    "an empty last": ([3, 1, 4], [0, 1, 3]),
    "one": ([3, 1, 4], [0]),
    "nothing": ([], [0, 0]),
    "no bags": ([], []),
}


@pytest.mark.parametrize("bags", BAGS.values(), ids=BAGS)
@pytest.mark.parametrize("padding", [None, 1, -5])
@pytest.mark.parametrize("include_last", [False, True])
@pytest.mark.parametrize("mode", ["sum", "mean", "max", "scaled"])
def test_values_and_gradients_are_pytorchs(mode, include_last, padding, bags):
    indices, offsets = bags
    if include_last:
        offsets = [*offsets, len(indices)] if offsets else [0]
    rng = np.random.default_rng(0)
    rows, scales = rng.normal(size=(6, 3)), rng.normal(size=len(indices))
    made = []
    for module, function in ((tw, ours), (torch, theirs)):
        weight = module.tensor(rows, requires_grad=True)
        options = {"mode": mode, "include_last_offset": include_last, "padding_idx": padding}
        leaves = [weight]
        if mode == "scaled":
            leaves.append(module.tensor(scales, requires_grad=True))
            options |= {"mode": "sum", "per_sample_weights": leaves[1]}
        i = module.tensor(indices, dtype=module.int64)
        starts = module.tensor(offsets, dtype=module.int64)
        if not offsets[: len(offsets) - include_last]:  # PyTorch takes no empty list of bags
            assert function(i, weight, starts, **options).shape == (0, 3)
            return
        y = function(i, weight, starts, **options)
        (y * y).sum().backward()
        made.append([y.detach(), *(leaf.grad for leaf in leaves)])
    for mine, other in zip(*made, strict=True):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-12)


def test_the_layer():
    layer = tw.nn.EmbeddingBag(6, 3, mode="sum", include_last_offset=True)
    i, starts = tw.asarray([3, 1, 4]), tw.asarray([0, 2, 3])
    want = [(layer.weight[3] + layer.weight[1]).tolist(), layer.weight[4].tolist()]
    np.testing.assert_allclose(layer(i, starts).tolist(), want, rtol=1e-6)
    scaled = layer(i, starts, tw.asarray([0.0, 0.0, 2.0], dtype=tw.float32))
    np.testing.assert_allclose(scaled[1].tolist(), (2 * layer.weight[4]).tolist(), rtol=1e-6)
    assert layer(tw.asarray([[1, 2]])).shape == (1, 3)


@pytest.mark.parametrize(
    ("offsets", "options", "message"),
    [
        ([1], {}, "rise from 0"),
        ([0, 2, 1], {}, "rise from 0"),
        ([0, 4], {}, "rise from 0"),
        ([0, 2], {"include_last_offset": True}, "rise from 0"),
        ([[0]], {}, "one-dimensional"),
        (None, {}, "needs offsets"),
        ([0], {"mode": "median"}, "mode is 'sum', 'mean' or 'max'"),
    ],
)
def test_what_does_not_fit(offsets, options, message):
    starts = None if offsets is None else tw.asarray(offsets)
    with pytest.raises(ValueError, match=message):
        ours(tw.asarray([1, 2, 3]), tw.ones((6, 3)), starts, **options)


def test_scales_that_do_not_fit():
    i, weight, starts = tw.asarray([1, 2, 3]), tw.ones((6, 3)), tw.asarray([0])
    with pytest.raises(ValueError, match="must have the shape of the indices"):
        ours(i, weight, starts, "sum", tw.ones((2,)))
    with pytest.raises(ValueError, match="are for mode='sum'"):
        ours(i, weight, starts, "mean", tw.ones((3,)))
    with pytest.raises(IndexError):
        ours(tw.asarray([1, 9]), weight, starts)
