"""Packed sequences against PyTorch's: the layout, padding, and recurrent layers over them."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.nn.utils import rnn

torch = pytest.importorskip("torch")
theirs = torch.nn.utils.rnn

LENGTHS = {
    "falling": [7, 5, 5, 2],
    "mixed": [2, 7, 1, 5, 7],
    "equal": [3, 3],
    "one": [4],
}


def sequences(lengths, features, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, features)) for n in lengths]


def both(arrays):
    ours = [tw.asarray(x) for x in arrays]
    for x in ours:
        x.requires_grad = True
    return ours, [torch.tensor(x, requires_grad=True) for x in arrays]


def same(got, want, **kwargs):
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), **kwargs)


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_layout_and_padding_are_pytorchs(lengths, batch_first):
    ours, others = both(sequences(lengths, 3))
    mine = rnn.pad_sequence(ours, batch_first=batch_first)
    other = theirs.pad_sequence(others, batch_first=batch_first)
    packed = rnn.pack_padded_sequence(mine, lengths, batch_first, enforce_sorted=False)
    want = theirs.pack_padded_sequence(other, lengths, batch_first, enforce_sorted=False)
    same(packed.data.sum(0), want.data.sum(0), rtol=1e-12)
    assert packed.batch_sizes.tolist() == want.batch_sizes.tolist()
    for value, total in ((0.0, None), (-1.0, 9)):
        x, sizes = rnn.pad_packed_sequence(packed, batch_first, value, total)
        y, wanted = theirs.pad_packed_sequence(want, batch_first, value, total)
        same(x, y)
        assert sizes.tolist() == wanted.tolist() == lengths
        (x * x).sum().backward(retain_graph=True)
        (y * y).sum().backward(retain_graph=True)
    for x, y in zip(ours, others, strict=True):
        same(x.grad, y.grad, rtol=1e-12)


def test_sequences_come_back():
    arrays = sequences([2, 5, 1], 3)
    back = rnn.unpack_sequence(rnn.pack_sequence([tw.asarray(x) for x in arrays], False))
    for x, y in zip(arrays, back, strict=True):
        np.testing.assert_array_equal(x, y.numpy())


KINDS = {"RNN": 1, "GRU": 1, "LSTM": 2}


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}], ids=str)
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_layers_are_pytorchs(kind, given, options, lengths):
    mine = getattr(tw.nn, kind)(3, 4, dtype=tw.float64, **options)
    other = getattr(torch.nn, kind)(3, 4, dtype=torch.float64, **options)
    mine.load_state_dict(other.state_dict())
    arrays = sequences(lengths, 3)
    ours, others = both(arrays)
    passes = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    first, others_first = both(
        np.random.default_rng(7).normal(size=(KINDS[kind], passes, len(lengths), 4))
    )
    states = [None, None]
    if given:
        pairs = (first, others_first)
        states = [tuple(pair) if kind == "LSTM" else pair[0] for pair in pairs]
    y, last = mine(rnn.pack_sequence(ours, enforce_sorted=False), states[0])
    want, want_last = other(theirs.pack_sequence(others, enforce_sorted=False), states[1])
    padded, sizes = rnn.pad_packed_sequence(y)
    want_padded, _ = theirs.pad_packed_sequence(want)
    assert sizes.tolist() == lengths
    same(padded, want_padded, rtol=1e-10, atol=1e-12)
    lasts = zip(last, want_last, strict=True) if kind == "LSTM" else [(last, want_last)]
    loss, want_loss = (padded * padded).sum(), (want_padded * want_padded).sum()
    for ours_last, theirs_last in lasts:
        same(ours_last, theirs_last, rtol=1e-10, atol=1e-12)
        loss, want_loss = loss + ours_last.exp().sum(), want_loss + theirs_last.exp().sum()
    loss.backward()
    want_loss.backward()
    inputs = [*zip(ours, others, strict=True)]
    inputs += zip(first, others_first, strict=True) if given else []
    for x, other_x in [*inputs, *zip(mine.parameters(), other.parameters(), strict=True)]:
        same(x.grad, other_x.grad, rtol=1e-9, atol=1e-12)


def test_padding_does_not_count():
    layer = tw.nn.LSTM(3, 4, batch_first=True)
    x = tw.randn(2, 6, 3)
    other = x.copy()
    other[1, 2:] = float("nan")
    made = [layer(rnn.pack_padded_sequence(each, [6, 2], True))[0].data for each in (x, other)]
    np.testing.assert_array_equal(made[0].detach().numpy(), made[1].detach().numpy())


def test_what_does_not_fit():
    x = tw.zeros((4, 2, 3))
    with pytest.raises(ValueError, match="must fall; enforce_sorted=False"):
        rnn.pack_padded_sequence(x, [2, 4])
    for lengths, message in (
        ([4], "1 lengths for 2 sequences"),
        ([5, 1], "lie between 1 and 4"),
        ([4, 0], "lie between 1 and 4"),
    ):
        with pytest.raises(ValueError, match=message):
            rnn.pack_padded_sequence(x, lengths)
    with pytest.raises(TypeError, match="whole numbers"):
        rnn.pack_padded_sequence(x, [4.0, 2.0])
    packed = rnn.pack_padded_sequence(x, tw.asarray([4, 2]))
    with pytest.raises(ValueError, match="total_length 3 is below the longest, 4"):
        rnn.pad_packed_sequence(packed, total_length=3)
    with pytest.raises(TypeError, match="expected a PackedSequence"):
        rnn.pad_packed_sequence(x)
    with pytest.raises(ValueError, match="input_size is 5"):
        tw.nn.GRU(5, 2)(packed)
    with pytest.raises(ValueError, match="h0"):
        tw.nn.GRU(3, 2)(packed, tw.zeros((1, 3, 2)))
