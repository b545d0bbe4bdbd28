"""Attention layers and transformers: outputs and gradients are PyTorch's with the same state."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")
# PyTorch warns of masks of two types, and of paths that it does not take.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch")


def pair(name: str, *args: Any, **options: Any) -> tuple[tw.nn.Module, Any]:
    """Our module and PyTorch's with its state, in float64, without dropout."""
    torch.manual_seed(3)
    theirs = getattr(torch.nn, name)(*args, **options).double().eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4)
    options.pop("enable_nested_tensor", None)
    ours = getattr(tw.nn, name)(*args, **options, dtype=tw.float64).eval()
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def both(rng: np.random.Generator, *shape: int) -> tuple[tw.Tensor, Any]:
    x = rng.normal(size=shape)
    return tw.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)


def same_masks(mask: np.ndarray | None) -> tuple[Any, Any]:
    return (None, None) if mask is None else (tw.asarray(mask), torch.tensor(mask))


def assert_like(
    ours: tw.nn.Module, theirs: Any, y: Any, z: Any, inputs: list, others: list
) -> None:
    """The same values, and the same gradients of inputs and parameters."""
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-9, atol=1e-10)
    names = [name for name, _ in ours.named_parameters()]
    by_name = dict(theirs.named_parameters())
    got = tw.grad((y * y).sum(), [*inputs, *ours.parameters()])
    want = torch.autograd.grad((z * z).sum(), [*others, *(by_name[name] for name in names)])
    for g, w, name in zip(got, want, [*map(str, range(len(inputs))), *names], strict=True):
        np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-8, atol=1e-8, err_msg=name)


def mask_of(kind: str | None, rng: np.random.Generator, *shape: int) -> np.ndarray | None:
    if kind is None:
        return None
    blocked = rng.random(shape) < 0.4
    blocked[..., 0] = False  # each query has a key: PyTorch gives NaN for what has none
    return blocked if kind == "bool" else np.where(blocked, -np.inf, rng.normal(size=shape))


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("attn", [None, "bool", "float", "heads"])
@pytest.mark.parametrize("padding", [None, "bool", "float"])
@pytest.mark.parametrize("options", [{}, {"batch_first": True, "bias": False}])
def test_multihead_attention(options, padding, attn, need_weights, rng) -> None:
    ours, theirs = pair("MultiheadAttention", 8, 2, **options)
    first = options.get("batch_first", False)
    shape, other = ((3, 5, 8), (3, 6, 8)) if first else ((5, 3, 8), (6, 3, 8))
    inputs, others = zip(both(rng, *shape), both(rng, *other), both(rng, *other), strict=True)
    heads = (6, 5, 6) if attn == "heads" else (5, 6)
    mask, their_mask = same_masks(mask_of("float" if attn == "heads" else attn, rng, *heads))
    pad, their_pad = same_masks(mask_of(padding, rng, 3, 6))
    y, weights = ours(*inputs, pad, need_weights, mask)
    z, their_weights = theirs(*others, their_pad, need_weights, their_mask)
    assert (weights is None) == (their_weights is None)
    if weights is not None:
        np.testing.assert_allclose(weights.detach().numpy(), their_weights.detach(), atol=1e-12)
    assert_like(ours, theirs, y, z, list(inputs), list(others))


@pytest.mark.parametrize(
    "options",
    [
        {"kdim": 5, "vdim": 3},
        {"add_bias_kv": True},
        {"add_zero_attn": True},
        {"add_bias_kv": True, "add_zero_attn": True, "kdim": 4},
    ],
)
@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention_of_other_sizes(options, need_weights, rng) -> None:
    ours, theirs = pair("MultiheadAttention", 8, 4, **options)
    sizes = options.get("kdim", 8), options.get("vdim", 8)
    inputs, others = zip(
        both(rng, 5, 2, 8), both(rng, 6, 2, sizes[0]), both(rng, 6, 2, sizes[1]), strict=True
    )
    mask, their_mask = same_masks(mask_of("bool", rng, 5, 6))
    y, _ = ours(*inputs, need_weights=need_weights, attn_mask=mask)
    z, _ = theirs(*others, need_weights=need_weights, attn_mask=their_mask)
    assert_like(ours, theirs, y, z, list(inputs), list(others))


def test_one_sequence_and_weights_of_each_head(rng) -> None:
    ours, theirs = pair("MultiheadAttention", 8, 2)
    x, t = both(rng, 5, 8)
    y, weights = ours(x, x, x, average_attn_weights=False)
    z, their_weights = theirs(t, t, t, average_attn_weights=False)
    assert weights.shape == (2, 5, 5)
    np.testing.assert_allclose(weights.detach().numpy(), their_weights.detach(), atol=1e-12)
    assert_like(ours, theirs, y, z, [x], [t])


def test_is_causal_is_the_causal_mask(rng) -> None:
    ours, _ = pair("MultiheadAttention", 8, 2)
    x, _ = both(rng, 5, 3, 8)
    mask = tw.nn.Transformer.generate_square_subsequent_mask(5, tw.float64)
    want, _ = ours(x, x, x, attn_mask=mask, need_weights=False)
    for need_weights in (True, False):
        y, _ = ours(x, x, x, is_causal=True, need_weights=need_weights)
        np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), atol=1e-12)


@pytest.mark.parametrize("kind", ["bool", "float", "padding", "of each head"])
def test_queries_that_attend_to_nothing_agree_with_and_without_weights(kind, rng) -> None:
    ours, _ = pair("MultiheadAttention", 8, 2, batch_first=True)
    data, _ = both(rng, 3, 5, 8)
    hidden = np.zeros((5, 5), bool)
    hidden[2] = True
    masks = {}
    if kind == "padding":
        masks["key_padding_mask"] = tw.asarray(np.array([[False] * 5, [True] * 5, [False] * 5]))
    elif kind == "of each head":
        masks["attn_mask"] = tw.asarray(np.stack([hidden, hidden.T] * 3))
    else:
        mask = hidden if kind == "bool" else np.where(hidden, -np.inf, 0.0)
        masks["attn_mask"] = tw.asarray(mask)
    found = []
    for need_weights in (True, False):
        x = data.detach().requires_grad_()
        y, weights = ours(x, x, x, need_weights=need_weights, **masks)
        (g,) = tw.grad(y.square().sum(), [x])
        found.append((y.detach().numpy(), g.numpy()))
        if weights is not None:
            assert np.isfinite(weights.detach().numpy()).all()
    for with_weights, without in zip(*found, strict=True):
        assert np.isfinite(with_weights).all()
        np.testing.assert_allclose(with_weights, without, atol=1e-12)


LAYERS = [
    {},
    {"norm_first": True, "activation": "gelu", "batch_first": True},
    {"bias": False, "layer_norm_eps": 1e-3},
]


@pytest.mark.parametrize("options", LAYERS)
def test_encoder(options, rng) -> None:
    ours, theirs = pair("TransformerEncoderLayer", 8, 2, 16, 0.0, **options)
    x, t = both(rng, 5, 5, 8)
    mask, their_mask = same_masks(mask_of("float", rng, 5, 5))
    y, z = ours(x, mask), theirs(t, their_mask)
    assert_like(ours, theirs, y, z, [x], [t])


@pytest.mark.parametrize("options", LAYERS)
def test_decoder(options, rng) -> None:
    ours, theirs = pair("TransformerDecoderLayer", 8, 2, 16, 0.0, **options)
    (x, t), (memory, their_memory) = both(rng, 5, 5, 8), both(rng, 5, 5, 8)
    mask, their_mask = same_masks(mask_of("bool", rng, 5, 5))
    pad, their_pad = same_masks(mask_of("bool", rng, 5, 5))
    y = ours(x, memory, mask, memory_key_padding_mask=pad)
    z = theirs(t, their_memory, their_mask, memory_key_padding_mask=their_pad)
    assert_like(ours, theirs, y, z, [x, memory], [t, their_memory])


@pytest.mark.parametrize("options", LAYERS)
def test_transformer(options, rng) -> None:
    options = {"layer_norm_eps": 1e-5, **options}
    ours, theirs = pair("Transformer", 8, 2, 2, 2, 16, 0.0, **options)
    (x, t), (y, u) = both(rng, 5, 5, 8), both(rng, 5, 5, 8)
    mask = tw.nn.Transformer.generate_square_subsequent_mask(5, tw.float64)
    their_mask = torch.nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    a = ours(x, y, tgt_mask=mask, tgt_is_causal=True)
    b = theirs(t, u, tgt_mask=their_mask, tgt_is_causal=True)
    assert_like(ours, theirs, a, b, [x, y], [t, u])


def test_layers_of_a_stack_are_copies() -> None:
    stack = tw.nn.TransformerEncoder(tw.nn.TransformerEncoderLayer(8, 2, 16), 2, tw.nn.LayerNorm(8))
    assert len({id(p) for p in stack.parameters()}) == 26
    theirs = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(8, 2, 16), 2, torch.nn.LayerNorm(8), False
    )
    assert set(stack.state_dict()) == set(theirs.state_dict())
    state = {name: torch.tensor(x.numpy()) for name, x in stack.state_dict().items()}
    theirs.load_state_dict(state)


def test_dropout_acts_in_training_alone(rng) -> None:
    layer = tw.nn.TransformerEncoderLayer(8, 2, 16, 0.5)
    x = tw.asarray(rng.normal(size=(5, 3, 8)), dtype=tw.float32)
    assert not np.array_equal(layer(x).detach().numpy(), layer(x).detach().numpy())
    layer.eval()
    assert np.array_equal(layer(x).detach().numpy(), layer(x).detach().numpy())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tw.nn.MultiheadAttention(7, 2), "embed_dim 7 is no positive multiple"),
        (lambda: tw.nn.MultiheadAttention(8, 2, 1.5), "dropout lies between 0 and 1, got 1.5"),
        (lambda: tw.nn.TransformerEncoderLayer(8, 2, activation="tanh"), "got 'tanh'"),
        (lambda: attend(tw.ones((2, 3, 7))), "query has shape (2, 3, 7)"),
        (lambda: attend(attn_mask=tw.ones((2, 3))), "attn_mask has shape (2, 3); expected (2, 2)"),
        (lambda: attend(key_padding_mask=tw.ones((9, 2))), "key_padding_mask has shape (9, 2)"),
        (lambda: attend(tw.ones((2, 4, 8))), "do not fit together"),
    ],
)
def test_what_does_not_fit_is_refused(call, text) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        call()


def attend(query: tw.Tensor | None = None, **masks: tw.Tensor) -> object:
    x = tw.ones((2, 3, 8))
    return tw.nn.MultiheadAttention(8, 2)(x if query is None else query, x, x, **masks)


# ---- sampling ----


def test_a_cache_gives_what_the_whole_sequence_gives(rng) -> None:
    q, k, v = (tw.asarray(rng.normal(size=(2, 4, 20, 8))) for _ in range(3))
    want = tw.scaled_dot_product_attention(q, k, v, is_causal=True).numpy()
    for pieces in ((1,) * 20, (7, 1, 1, 5, 6), (20,)):
        cache = tw.nn.KeyValueCache(2, 4, 20, 8, dtype=tw.float64)
        got, at = [], 0
        for rows in pieces:
            part = (slice(None), slice(None), slice(at, at + rows))
            got.append(cache.attend(q[part], k[part], v[part]).numpy())
            at += rows
        assert len(cache) == 20
        np.testing.assert_allclose(np.concatenate(got, axis=2), want, atol=1e-13)
        np.testing.assert_array_equal(cache.keys.numpy(), k.numpy())
        np.testing.assert_array_equal(cache.values.numpy(), v.numpy())


def test_a_cache_of_fewer_heads(rng) -> None:
    q = tw.asarray(rng.normal(size=(1, 6, 5, 4)))
    k, v = (tw.asarray(rng.normal(size=(1, 2, 5, n))) for n in (4, 3))
    cache = tw.nn.KeyValueCache(1, 2, 8, 4, 3, dtype=tw.float64)
    y = cache.attend(q, k, v)
    want = tw.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    np.testing.assert_allclose(y.numpy(), want.numpy(), atol=1e-13)


def test_no_gradients_pass_through_a_cache() -> None:
    cache = tw.nn.KeyValueCache(1, 2, 4, 3)
    x = tw.ones((1, 2, 2, 3), requires_grad=True)
    assert not cache.attend(x, x, x).requires_grad
    assert not cache.keys.requires_grad
    with pytest.raises(ValueError, match=r"query \(1, 2, 1, 3\) and key \(1, 2, 2, 3\) have other"):
        cache.attend(x[:, :, :1], x, x)
    assert len(cache) == 2


def test_a_full_cache_refuses_and_stays_as_it_was() -> None:
    cache = tw.nn.KeyValueCache(1, 2, 4, 3)
    x = tw.ones((1, 2, 3, 3))
    cache.append(x, x)
    with pytest.raises(ValueError, match="3 rows do not fit: 3 of 4 are filled"):
        cache.append(x, x)
    with pytest.raises(ValueError, match=r"value has shape \(1, 2, 3, 4\)"):
        cache.append(x, tw.ones((1, 2, 3, 4)))
    assert len(cache) == 3
    cache.reset()
    assert cache.keys.shape == (1, 2, 0, 3)


def rows_of(rng, heads: int, rows: int, dtype: tw.dtype = tw.float64) -> tw.Tensor:
    """(2, heads, rows, 8), laid out as a projection to all heads leaves them."""
    return tw.asarray(rng.normal(size=(2, rows, heads, 8)), dtype=dtype).permute((0, 2, 1, 3))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_the_kernel_gives_what_the_ops_give(rows: int, dtype: str, isa: str, rng) -> None:
    kind = getattr(tw, dtype)
    steps = [[rows_of(rng, heads, rows, kind) for heads in (6, 3, 3)] for _ in range(7)]

    def attended() -> tuple[np.ndarray, np.ndarray]:
        cache = tw.nn.KeyValueCache(2, 3, 40, 8, dtype=kind)
        y = [cache.attend(*step, scale=0.3).astype(tw.float64).numpy() for step in steps]
        return np.concatenate(y, axis=2), cache.keys.astype(tw.float64).numpy()

    got, keys = attended()
    with tw.kernels.use(attend_with_cache="body"):
        want, same_keys = attended()
    np.testing.assert_array_equal(keys, same_keys)
    tolerance = {"float32": 2e-6, "float64": 1e-14, "bfloat16": 0}[dtype]
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)
    q, k, v = (
        np.concatenate([x[i].astype(tw.float64).numpy() for x in steps], 2) for i in range(3)
    )
    scores = 0.3 * q @ np.repeat(k, 2, axis=1).swapaxes(2, 3)
    scores = np.where(np.tri(7 * rows, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ np.repeat(v, 2, axis=1)
    tolerance = {"float32": 2e-6, "float64": 1e-13, "bfloat16": 0.05}[dtype]
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


def test_the_number_of_rows_may_be_a_tensor(rng) -> None:
    steps = [[rows_of(rng, 3, 1) for _ in range(3)] for _ in range(5)]
    by_count, by_tensor = (tw.nn.KeyValueCache(2, 3, 5, 8, dtype=tw.float64) for _ in range(2))
    for i, step in enumerate(steps):
        y = by_tensor.attend(*step, filled=tw.asarray([i]))
        assert len(by_tensor) == i
        by_tensor.advance(1)
        np.testing.assert_array_equal(y.numpy(), by_count.attend(*step).numpy())
    np.testing.assert_array_equal(by_tensor.values.numpy(), by_count.values.numpy())
    for filled in (5, -1):
        with pytest.raises(ValueError, match=f"1 rows do not fit: {filled} of 5 are filled"):
            by_tensor.attend(*steps[0], filled=tw.asarray([filled]))
    np.testing.assert_array_equal(by_tensor.values.numpy(), by_count.values.numpy())
    for wrong in (tw.asarray([1.0]), tw.asarray([1, 2])):
        with pytest.raises(TypeError, match="filled must be an int64 tensor of one element, got"):
            by_tensor.attend(*steps[0], filled=wrong)
    with pytest.raises(ValueError, match="1 rows behind 5 of 5 cannot be"):
        by_tensor.advance(1)


def test_a_recorded_step_goes_on_behind_other_rows(rng) -> None:
    eager, recorded = (tw.nn.KeyValueCache(2, 3, 9, 8, dtype=tw.float64) for _ in range(2))
    steps = [[rows_of(rng, 3, 1) for _ in range(3)] for _ in range(9)]
    step = tw._core._capture(
        lambda filled, *rows: recorded.attend(*rows, filled=filled), [tw.asarray([0]), *steps[0]]
    )
    version = recorded._keys.version
    for i, rows in enumerate(steps):
        (y,) = step.replay([tw.asarray([i]), *rows])
        np.testing.assert_array_equal(y.numpy(), eager.attend(*rows).numpy())
    assert recorded._keys.version == version + 9
    with pytest.raises(ValueError, match="1 rows do not fit: 9 of 9 are filled"):
        step.replay([tw.asarray([9]), *steps[0]])
    many = [rows_of(rng, 3, 4) for _ in range(3)]
    with pytest.raises(tw.StateError, match="KeyValueCache reads how many rows are filled"):
        tw._core._capture(lambda at: recorded.attend(*many, filled=at), [tw.asarray([0])])


def test_rows_that_lie_in_the_cache_are_read_first(rng) -> None:
    cache = tw.nn.KeyValueCache(1, 2, 8, 8)
    x = tw.asarray(rng.normal(size=(1, 2, 3, 8)), dtype=tw.float32)
    cache.append(x, x * 2)
    before = cache.keys.numpy().copy()
    cache.attend(x[:, :, :2], cache._keys[:, :, 2:4], cache.values[:, :, :2])
    np.testing.assert_array_equal(cache.keys.numpy()[:, :, 3], before[:, :, 2])
    np.testing.assert_array_equal(cache.values.numpy()[:, :, 3:], 2 * before[:, :, :2])


def test_queries_that_do_not_fit_a_cache() -> None:
    cache = tw.nn.KeyValueCache(1, 2, 4, 3)
    x = tw.ones((1, 2, 1, 3))
    for shape in ((1, 3, 1, 3), (1, 2, 1, 4), (2, 2, 1, 3)):
        with pytest.raises(ValueError, match=r"does not fit keys \(1, 2, 4, 3\)"):
            cache.attend(tw.ones(shape), x, x)
    assert len(cache) == 0
