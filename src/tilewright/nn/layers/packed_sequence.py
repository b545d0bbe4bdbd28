"""Sequences of different lengths without padding between them, as recurrent layers take them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tilewright as tw
from tilewright import Tensor


class PackedSequence(NamedTuple):
    """The steps of several sequences, longest first: all first steps, all second steps and so on.

    `data` is (all steps, ...), `batch_sizes` says how many sequences have a first, a second, ...
    step; `sorted_indices` are the sequences from longest to shortest and `unsorted_indices` the way
    back, or None where they came in that order. `pack_padded_sequence` and `pack_sequence` make
    one; RNN, LSTM and GRU take it and give one, and compute no step that a sequence has not.
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def segments(self) -> Iterator[tuple[int, int, int]]:
        """(first row of data, steps, sequences) of each run of steps of the same sequences."""
        row = step = 0
        sizes = self.batch_sizes.tolist()
        while step < len(sizes):
            steps = 1
            while step + steps < len(sizes) and sizes[step + steps] == sizes[step]:
                steps += 1
            yield row, steps, sizes[step]
            row, step = row + steps * sizes[step], step + steps

    def sorted(self, states: Tensor) -> Tensor:
        """(layers, sequences, ...) states in the order of the longest first."""
        order = self.sorted_indices
        return states if order is None else tw.take(states, order, axis=1)

    def unsorted(self, states: Tensor) -> Tensor:
        """(layers, sequences, ...) states in the order in which the sequences came."""
        order = self.unsorted_indices
        return states if order is None else tw.take(states, order, axis=1)


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """A padded (longest, batch, ...), or (batch, longest, ...), without its padding.

    With enforce_sorted=False the sequences need not come longest first. Raises ValueError for
    lengths that do not fit `input` or are not in that order, and for lengths below 1.

    >>> import tilewright as tw
    >>> x = tw.asarray([[1.0, 2.0], [3.0, 0.0]])
    >>> packed = tw.nn.utils.rnn.pack_padded_sequence(x, [2, 1], batch_first=True)
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1.0, 3.0, 2.0], [2, 1])
    """
    if input.ndim < 2:
        raise ValueError(f"pack_padded_sequence: needs (steps, batch, ...), got {input.shape}")
    rows = input.transpose(0, 1) if batch_first else input
    sizes = _checked_lengths(lengths, rows)
    order = sorted(range(len(sizes)), key=lambda i: -sizes[i])
    came_sorted = order == list(range(len(sizes)))
    if enforce_sorted and not came_sorted:
        raise ValueError(
            f"pack_padded_sequence: lengths {sizes} must fall; enforce_sorted=False sorts them"
        )
    ordered = tw.asarray([sizes[i] for i in order], dtype=tw.int64)
    steps, places = tw.nonzero(tw.expand_dims(tw.arange(max(sizes)), 1) < ordered)
    sequences = tw.asarray(order, dtype=tw.int64)
    flat = rows.reshape((-1, *rows.shape[2:]))
    chosen = steps * len(sizes) + tw.take(sequences, places, axis=0)
    data = tw.take(flat, chosen.to(input.device), axis=0)
    batch_sizes = tw.bincount(steps)
    if came_sorted:
        return PackedSequence(data, batch_sizes)
    back = tw.argsort(sequences).to(input.device)
    return PackedSequence(data, batch_sizes, sequences.to(input.device), back)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """(longest, batch, ...), or (batch, longest, ...), and the lengths, in the order they came in.

    `total_length` pads further. Raises ValueError where that is below the longest.

    >>> import tilewright as tw
    >>> packed = tw.nn.utils.rnn.pack_sequence([tw.asarray([1.0]), tw.asarray([2.0, 3.0])], False)
    >>> x, lengths = tw.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    >>> x.tolist(), lengths.tolist()
    ([[1.0, 0.0], [2.0, 3.0]], [1, 2])
    """
    if not isinstance(sequence, PackedSequence):
        raise TypeError(
            f"pad_packed_sequence: expected a PackedSequence, got {type(sequence).__name__}"
        )
    data, sizes = sequence.data, sequence.batch_sizes
    longest = sizes.shape[0] if total_length is None else total_length
    if longest < sizes.shape[0]:
        raise ValueError(
            f"pad_packed_sequence: total_length {longest} is below the longest, {sizes.shape[0]}"
        )
    batch = int(sizes[0].item())
    lengths = tw.sum(tw.arange(batch) < tw.expand_dims(sizes, 1), axis=0)
    there = tw.expand_dims(tw.arange(longest), 1) < lengths
    # Rows of data in the order of the padded ones; behind the last of them stands the padding.
    row = tw.cumulative_sum(there.reshape(-1).astype(tw.int64)) - 1
    row = tw.where(there.reshape(-1), row, data.shape[0]).to(data.device)
    padding = tw.full((1, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    padded = tw.take(tw.concat([data, padding]), row, axis=0)
    padded = sequence.unsorted(padded.reshape((longest, batch, *data.shape[1:])))
    if sequence.unsorted_indices is not None:
        lengths = tw.take(lengths, sequence.unsorted_indices.to("cpu"), axis=0)
    return padded.transpose(0, 1) if batch_first else padded, lengths


def _checked_lengths(lengths: Tensor | Sequence[int], rows: Tensor) -> list[int]:
    who = "pack_padded_sequence"
    sizes = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    if not all(hasattr(size, "__index__") and not isinstance(size, bool) for size in sizes):
        raise TypeError(f"{who}: lengths are whole numbers, got {sizes}")
    sizes = [int(size) for size in sizes]
    if len(sizes) != rows.shape[1]:
        raise ValueError(f"{who}: {len(sizes)} lengths for {rows.shape[1]} sequences")
    if not sizes or min(sizes) < 1 or max(sizes) > rows.shape[0]:
        raise ValueError(f"{who}: lengths lie between 1 and {rows.shape[0]}, got {sizes}")
    return sizes
