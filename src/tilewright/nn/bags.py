"""Bags of different lengths, one after the other."""

from __future__ import annotations

import math

import tilewright as tw
from tilewright import Tensor


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    mode: str = "mean",
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """`tw.embedding_bag` that also takes the indices of all bags one after the other.

    input (indices,) with offsets (bags,): where each bag begins, the first at 0; with
    `include_last_offset` also where the last ends. Without offsets input is (bags, length). Gives
    (bags, features); bags of nothing, or of the row `padding_idx` alone, are 0. Raises ValueError
    for shapes and offsets that do not fit and IndexError for indices out of range.

    >>> import tilewright as tw
    >>> rows = tw.asarray([[1.0], [10.0], [100.0]])
    >>> i, starts = tw.asarray([0, 1, 2]), tw.asarray([0, 2])
    >>> tw.nn.functional.embedding_bag(i, rows, starts, mode="sum").tolist()
    [[11.0], [100.0]]
    """
    if offsets is None:
        if input.ndim == 1:
            raise ValueError(
                f"embedding_bag: input {input.shape} needs offsets; without them it is "
                "(bags, length)"
            )
        return tw.embedding_bag(input, weight, per_sample_weights, mode, padding_idx)
    starts, lengths = _spans(input, offsets, include_last_offset)
    _check_mode(mode, input, per_sample_weights)
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]
    rows = tw.embedding(input, weight, padding_idx)
    if per_sample_weights is not None:
        rows = rows * tw.expand_dims(per_sample_weights, -1)
    bags, length = starts.shape[0], input.shape[0]
    bag = tw.repeat(tw.arange(bags, device=input.device), lengths, axis=0)
    counts = lengths
    if padding_idx is not None:
        counted = input != padding_idx
        counts = tw.zeros_like(lengths).index_add(0, bag, counted.astype(lengths.dtype))
        rows = tw.where(tw.expand_dims(counted, -1), rows, -math.inf if mode == "max" else 0.0)
    some = tw.expand_dims(counts > 0, -1)
    if mode != "max":
        sums = tw.zeros((bags, weight.shape[1]), dtype=rows.dtype, device=rows.device)
        y = sums.index_add(0, bag, rows)
        return y if mode == "sum" else y / tw.maximum(tw.expand_dims(counts, -1), 1).astype(y.dtype)
    step = tw.arange(max(1, int(lengths.max().item()) if bags else 1), device=input.device)
    place = tw.where(step < tw.expand_dims(lengths, -1), step + tw.expand_dims(starts, -1), length)
    nothing = tw.full((1, weight.shape[1]), -math.inf, dtype=rows.dtype, device=rows.device)
    largest = tw.max(tw.take(tw.concat([rows, nothing]), place, axis=0), axis=1)
    return tw.where(some, largest, 0.0)


def _spans(input: Tensor, offsets: Tensor, include_last: bool) -> tuple[Tensor, Tensor]:
    """Where each bag begins, and its length."""
    if input.ndim != 1 or offsets.ndim != 1:
        raise ValueError(
            "embedding_bag: with offsets both are one-dimensional, got input "
            f"{input.shape} and offsets {offsets.shape}"
        )
    begins = [int(start) for start in offsets.tolist()]
    length = input.shape[0]
    if not include_last and begins:
        begins.append(length)
    begins, ends = begins[:-1], begins[1:]
    rises = all(begin <= end for begin, end in zip(begins, ends, strict=True))
    covered = (begins[0], ends[-1]) if begins else (0, 0)
    if not rises or covered != (0, length):
        raise ValueError(
            f"embedding_bag: offsets must rise from 0 to at most the {length} indices, got "
            f"{offsets.tolist()}"
        )
    starts = tw.asarray(begins, dtype=tw.int64, device=input.device)
    sizes = [end - begin for begin, end in zip(begins, ends, strict=True)]
    return starts, tw.asarray(sizes, dtype=tw.int64, device=input.device)


def _check_mode(mode: str, input: Tensor, per_sample_weights: Tensor | None) -> None:
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: mode is 'sum', 'mean' or 'max', got {mode!r}")
    if per_sample_weights is None:
        return
    if mode != "sum":
        raise ValueError("embedding_bag: per_sample_weights are for mode='sum'")
    if per_sample_weights.shape != input.shape:
        raise ValueError(
            f"embedding_bag: per_sample_weights {per_sample_weights.shape} must have the shape of "
            f"the indices {input.shape}"
        )
