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
        ([0, 2], {"include_last_offset": True}, "rise from 0 and end with the number"),
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
        ours(i, weight, starts, mode="sum", per_sample_weights=tw.ones((2,)))
    with pytest.raises(ValueError, match="are for mode='sum'"):
        ours(i, weight, starts, mode="mean", per_sample_weights=tw.ones((3,)))
    with pytest.raises(TypeError, match="max_norm is a number"):
        ours(i, weight, starts, "sum")
    with pytest.raises(IndexError):
        ours(tw.asarray([1, 9]), weight, starts)


# ---- what PyTorch's layers and functions may be asked beside ----

NUMBERS = np.array([[3, 1, 4, 1], [5, 1, 2, 0]])


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
@pytest.mark.parametrize("scale_grad_by_freq", [False, True])
@pytest.mark.parametrize("padding_idx", [None, 1])
def test_embedding_limits_rows_and_shares_gradients_as_in_pytorch(
    padding_idx, scale_grad_by_freq, norm_type
):
    options = {"max_norm": 0.7, "norm_type": norm_type, "scale_grad_by_freq": scale_grad_by_freq}
    layers = [
        module.nn.Embedding(6, 3, padding_idx, **options, dtype=module.float64)
        for module in (tw, torch)
    ]
    layers[0].load_state_dict(layers[1].state_dict())
    made = []
    for module, layer in zip((tw, torch), layers, strict=True):
        y = layer(module.tensor(NUMBERS))
        (y * y).sum().backward()
        made.append([y.detach(), layer.weight.detach(), layer.weight.grad])
    for mine, other in zip(*made, strict=True):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_share_gradients_among_equal_indices(mode, flat):
    # By the formula: PyTorch's CPU kernel divides by the count of another index.
    weight = tw.asarray(np.random.default_rng(1).normal(size=(6, 3))).requires_grad_()
    i, starts = tw.asarray(NUMBERS), None
    if flat:
        i, starts = i.flatten(), tw.asarray([0, 4])
    y = ours(i, weight, starts, scale_grad_by_freq=True, mode=mode)
    g = np.random.default_rng(2).normal(size=(2, 3))
    y.backward(tw.asarray(g))
    want = np.zeros((6, 3))
    np.add.at(want, NUMBERS, np.repeat(g[:, None], 4, axis=1) / (1 if mode == "sum" else 4))
    counts = np.bincount(NUMBERS.ravel(), minlength=6)
    np.testing.assert_allclose(weight.grad.numpy(), want / counts[:, None], rtol=1e-12)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_limit_rows_as_in_pytorch(mode):
    rows = np.random.default_rng(3).normal(size=(6, 3))
    made = []
    for module in (tw, torch):
        function = module.nn.functional.embedding_bag
        weight, i = module.tensor(rows), module.tensor(NUMBERS)
        made.append([function(i, weight, None, 0.9, 1.0, False, mode), weight])
    for mine, other in zip(*made, strict=True):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", ["Embedding", "EmbeddingBag"])
def test_layers_of_given_rows(name):
    rows = tw.asarray([[3.0, 4.0], [0.0, 0.5]])
    layer = getattr(tw.nn, name).from_pretrained(rows, max_norm=1.0, padding_idx=0)
    assert repr(layer).startswith(f"{name}(2, 2, padding_idx=0, max_norm=1.0")
    assert not layer.weight.requires_grad
    np.testing.assert_array_equal(layer.weight.numpy(), rows.numpy())
    assert getattr(tw.nn, name).from_pretrained(rows, False).weight.requires_grad
    with pytest.raises(ValueError, match=f"{name}: from_pretrained needs"):
        getattr(tw.nn, name).from_pretrained(rows[0])


def test_refused_tables():
    with pytest.raises(ValueError, match="embedding: max_norm must be above 0"):
        tw.nn.Embedding(3, 2, max_norm=-1.0)(tw.asarray([0]))
    with pytest.raises(ValueError, match="scale_grad_by_freq is for mode"):
        tw.nn.EmbeddingBag(3, 2, scale_grad_by_freq=True, mode="max")(tw.asarray([[0]]))
    layer = tw.nn.Embedding(3, 2, max_norm=0.1)
    before = layer.weight.tolist()
    with pytest.raises(IndexError, match="out of range"):
        layer(tw.asarray([0, 3]))
    assert layer.weight.tolist() == before
