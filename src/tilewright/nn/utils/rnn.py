"""Sequences of different lengths side by side."""

from __future__ import annotations

from collections.abc import Sequence

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.layers.packed_sequence import (
    PackedSequence,
    pack_padded_sequence,
    pad_packed_sequence,
)

__all__ = [
    "PackedSequence",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """(length, ...) tensors as one (longest, batch, ...), or (batch, longest, ...).

    Raises ValueError for no tensors, and where they differ in more than the first axis.

    >>> import tilewright as tw
    >>> x = tw.nn.utils.rnn.pad_sequence([tw.ones((2,)), tw.ones((1,))], batch_first=True)
    >>> x.tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """
    if padding_side not in ("right", "left"):
        raise ValueError(f"pad_sequence: padding_side is right or left, got {padding_side!r}")
    if not len(sequences):
        raise ValueError("pad_sequence: needs at least one tensor")
    for x in sequences:
        if x.ndim < 1 or x.shape[1:] != sequences[0].shape[1:]:
            raise ValueError(
                f"pad_sequence: sequences differ behind their first axis: {x.shape} and "
                f"{sequences[0].shape}"
            )
    longest = max(x.shape[0] for x in sequences)
    rows = []
    for x in sequences:
        lack = longest - x.shape[0]
        sides = (0, lack) if padding_side == "right" else (lack, 0)
        rows.append(tw.pad(x, (*[0] * (2 * x.ndim - 2), *sides), value=padding_value))
    return tw.stack(rows, axis=0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """The tensors that `pad_sequence` made one, from their lengths, as views.

    >>> import tilewright as tw
    >>> [x.tolist() for x in tw.nn.utils.rnn.unpad_sequence(tw.ones((2, 2)), [2, 1])]
    [[1.0, 1.0], [1.0]]
    """
    sizes = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    rows = padded_sequences if batch_first else tw.moveaxis(padded_sequences, 1, 0)
    if len(sizes) != rows.shape[0]:
        raise ValueError(f"unpad_sequence: {len(sizes)} lengths for {rows.shape[0]} sequences")
    return [rows[i, :size] for i, size in enumerate(sizes)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """(length, ...) tensors as one PackedSequence; see `pack_padded_sequence`.

    >>> import tilewright as tw
    >>> tw.nn.utils.rnn.pack_sequence([tw.ones((2,)), tw.ones((1,))]).batch_sizes.tolist()
    [2, 1]
    """
    lengths = [x.shape[0] for x in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The (length, ...) tensors that `pack_sequence` made one, in the order they came in.

    >>> import tilewright as tw
    >>> packed = tw.nn.utils.rnn.pack_sequence([tw.ones((2,)), tw.ones((1,))])
    >>> [x.tolist() for x in tw.nn.utils.rnn.unpack_sequence(packed)]
    [[1.0, 1.0], [1.0]]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
