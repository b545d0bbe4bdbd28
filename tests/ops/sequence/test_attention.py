"""Attention beyond its record: masks, groups of heads, layouts, dropout, bits by thread count."""

from __future__ import annotations

import numpy as np
import pytest
from cases.ops.attention import scores, weights

import tilewright as tw


def reference(q, k, v, mask=None, is_causal=False):
    s = scores(q, k, is_causal, None)
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    return weights(s) @ v


def gradients(q, k, v, mask, is_causal, g):
    """Of sum(y * g), by the formulas."""
    scale = 1 / np.sqrt(q.shape[-1])
    s = scores(q, k, is_causal, None)
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    p = weights(s)
    dp = g @ np.swapaxes(v, -1, -2)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True)) * scale
    return ds @ k, np.swapaxes(ds, -1, -2) @ q, np.swapaxes(p, -1, -2) @ g


MASKS = {
    "rows and keys": lambda rng, b, h, n, m: rng.random((n, m)) < 0.5,
    "keys of each batch": lambda rng, b, h, n, m: rng.random((b, 1, 1, m)) < 0.5,
    "each head": lambda rng, b, h, n, m: rng.random((b, h, n, m)) < 0.1,
    "nothing at all": lambda rng, b, h, n, m: np.zeros((n, m), bool),
    "added": lambda rng, b, h, n, m: rng.normal(size=(h, n, m)),
    "added to rows": lambda rng, b, h, n, m: rng.normal(size=(n, 1)),
    "added -inf": lambda rng, b, h, n, m: np.where(rng.random((n, m)) < 0.5, 0.0, -np.inf),
    "whole rows far below": lambda rng, b, h, n, m: np.where(rng.random((n, 1)) < 0.5, -1e30, 0.0),
    "lowest": lambda rng, b, h, n, m: np.full((1, m), float(np.finfo("float32").min)),
    "large and negative": lambda rng, b, h, n, m: np.where(rng.random((n, m)) < 0.9, -1e30, 0),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "sizes", [(2, 3, 70, 90, 16, 24), (1, 2, 3, 40, 8, 8), (1, 1, 129, 65, 5, 3)]
)
@pytest.mark.parametrize("kind", MASKS)
def test_masks(kind, sizes, dtype, isa, rng) -> None:
    b, h, n, m, e, w = sizes
    q, k, v, g = (
        rng.normal(size=shape).astype(dtype)
        for shape in ((b, h, n, e), (b, h, m, e), (b, h, m, w), (b, h, n, w))
    )
    mask = MASKS[kind](rng, b, h, n, m)
    mask = mask if mask.dtype == bool else mask.astype(dtype)
    leaves = [tw.tensor(x, requires_grad=True) for x in (q, k, v)]
    y = tw.scaled_dot_product_attention(*leaves, tw.asarray(mask))
    wide = [x.astype(np.float64) for x in (q, k, v)]
    mask = mask if mask.dtype == bool else mask.astype(np.float64)
    tolerance = 60 * np.finfo(dtype).eps
    want = reference(*wide, mask)
    np.testing.assert_allclose(y.detach().numpy(), want, rtol=tolerance, atol=tolerance)
    expected = gradients(*wide, mask, False, g.astype(np.float64))
    for got, want in zip(tw.grad(y, leaves, tw.asarray(g)), expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=3 * tolerance)


# With fewer than four queries keys are taken by vectors of them, the last of which is short.
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1, 7, 16, 40])
def test_few_queries_and_any_number_of_keys(size, dtype, isa, rng) -> None:
    tolerance = 60 * np.finfo(dtype).eps
    for keys in range(1, 36):
        q, k, v = (
            rng.normal(size=shape).astype(dtype)
            for shape in ((2, 2, size), (2, keys, size), (2, keys, size + 2))
        )
        y = tw.scaled_dot_product_attention(*map(tw.asarray, (q, k, v)))
        want = reference(*(x.astype(np.float64) for x in (q, k, v)))
        np.testing.assert_allclose(y.numpy(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", ["whole rows far below", "nothing at all", "added"])
def test_the_body_knows_the_same_masks(kind, rng) -> None:
    q, k, v, g = (rng.normal(size=(2, 3, 7, 5)) for _ in range(4))
    mask = MASKS[kind](rng, 2, 3, 7, 7)
    leaves = [tw.tensor(x, requires_grad=True) for x in (q, k, v)]
    with tw.kernels.use(attention="body", attention_backward="body"):
        y = tw.scaled_dot_product_attention(*leaves, tw.asarray(mask))
        found = tw.grad(y, leaves, tw.asarray(g))
    np.testing.assert_allclose(y.detach().numpy(), reference(q, k, v, mask), rtol=1e-12, atol=1e-14)
    for dx, expected in zip(found, gradients(q, k, v, mask, False, g), strict=True):
        np.testing.assert_allclose(dx.numpy(), expected, rtol=1e-10, atol=1e-13)


def test_layouts_are_read_where_they_are(rng) -> None:
    """Heads split from rows, as layers do, repeated axes and reversed columns."""
    x = rng.normal(size=(2, 70, 3, 3, 16))
    parts = tw.asarray(x)
    q, k, v = (tw.permute_dims(parts[:, :, i], (0, 2, 1, 3)) for i in range(3))
    wide = [np.swapaxes(x[:, :, i], 1, 2) for i in range(3)]
    y = tw.scaled_dot_product_attention(q, k, v, is_causal=True)
    np.testing.assert_allclose(y.numpy(), reference(*wide, is_causal=True), atol=1e-13)
    y = tw.scaled_dot_product_attention(q[..., ::-1], k[..., ::-1], v[:1, :1])
    wide[2] = wide[2][:1, :1]
    np.testing.assert_allclose(y.numpy(), reference(*wide), atol=1e-13)


def test_gradients_of_operands_that_are_broadcast(rng) -> None:
    shapes = ((2, 3, 5, 4), (3, 6, 4), (1, 6, 2))
    leaves = [tw.tensor(rng.normal(size=shape), requires_grad=True) for shape in shapes]
    assert tw.gradcheck(tw.scaled_dot_product_attention, leaves)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"dropout_p": 0.0, "scale": 0.7}])
def test_second_gradients(options, rng) -> None:
    leaves = [tw.tensor(rng.normal(size=(2, 3, 2)), requires_grad=True) for _ in range(3)]
    assert tw.gradgradcheck(lambda *x: tw.scaled_dot_product_attention(*x, **options), leaves)


def test_gradients_of_a_mask_that_is_learnt(rng) -> None:
    shapes = ((2, 3, 4), (2, 5, 4), (2, 5, 2), (3, 5))
    leaves = [tw.tensor(rng.normal(size=shape), requires_grad=True) for shape in shapes]
    assert tw.gradcheck(tw.scaled_dot_product_attention, leaves)


def test_groups_of_heads(rng) -> None:
    q = rng.normal(size=(2, 6, 5, 4))
    k, v = (rng.normal(size=(2, n, 7, 4)) for n in (2, 3))
    leaves = [tw.tensor(x, requires_grad=True) for x in (q, k, v)]
    y = tw.scaled_dot_product_attention(*leaves, enable_gqa=True)
    wide = (q, np.repeat(k, 3, axis=1), np.repeat(v, 2, axis=1))
    np.testing.assert_allclose(y.detach().numpy(), reference(*wide), atol=1e-13)
    grads = gradients(*wide, None, False, np.ones(y.shape))
    expected = (
        grads[0],
        grads[1].reshape(2, 2, 3, 7, 4).sum(axis=2),
        grads[2].reshape(2, 3, 2, 7, 4).sum(axis=2),
    )
    for got, want in zip(tw.grad(y.sum(), leaves), expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want, atol=1e-12)


def test_nan_reaches_the_rows_that_read_it(rng) -> None:
    q, k, v = (rng.normal(size=(1, 1, 70, 16)).astype(np.float32) for _ in range(3))
    k[0, 0, 40, 3] = np.nan
    y = tw.scaled_dot_product_attention(*map(tw.asarray, (q, k, v)), is_causal=True).numpy()
    assert np.isfinite(y[0, 0, :40]).all()
    assert np.isnan(y[0, 0, 40:]).all()


def test_dropout(rng) -> None:
    q, k = (tw.asarray(rng.normal(size=(4, 60, 8))) for _ in range(2))
    eye = tw.asarray(np.broadcast_to(np.eye(60), (4, 60, 60)))
    whole = tw.scaled_dot_product_attention(q, k, eye).numpy()
    tw.manual_seed(3)
    kept = tw.scaled_dot_product_attention(q, k, eye, dropout_p=0.25).numpy()
    np.testing.assert_allclose(kept[kept != 0], whole[kept != 0] / 0.75)
    assert abs((kept == 0).mean() - 0.25) < 0.02
    tw.manual_seed(3)
    again = tw.scaled_dot_product_attention(q, k, eye, dropout_p=0.25).numpy()
    np.testing.assert_array_equal(kept, again)
    assert not tw.scaled_dot_product_attention(q, k, eye, dropout_p=1.0).numpy().any()


@pytest.mark.parametrize("is_causal", [False, True])
def test_the_number_of_threads_changes_no_bit(is_causal, rng) -> None:
    data = [rng.normal(size=(2, 3, 150, 16)).astype(np.float32) for _ in range(4)]
    before = tw.get_num_threads()
    seen = set()
    try:
        for threads in (1, 2, 3):
            tw.set_num_threads(threads)
            leaves = [tw.tensor(x, requires_grad=True) for x in data[:3]]
            y = tw.scaled_dot_product_attention(*leaves, is_causal=is_causal)
            grads = tw.grad(y, leaves, tw.asarray(data[3]))
            seen.add(b"".join(x.detach().numpy().tobytes() for x in (y, *grads)))
    finally:
        tw.set_num_threads(before)
    assert len(seen) == 1
