"""Rows of a table as PyTorch's functions look them up, alone and in bags of different lengths."""

from __future__ import annotations

import math
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.autograd.function import Context, Function


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """`tw.embedding` with PyTorch's other arguments.

    Rows that are looked up and whose `norm_type`-norm is above `max_norm` are first scaled down to
    it, in `weight` itself. `scale_grad_by_freq`: a row's gradient is divided by how often `input`
    has it. `sparse` is PyTorch's and changes nothing: gradients are dense.

    Shapes: weight (rows, features), input of any shape; the result is (*input.shape, features).
    Types: all. Result: the same type.
    Raises IndexError for indices out of range, TypeError for indices that are not integers,
    ValueError for a weight of other than 2 dimensions.
    Source: PyTorch's torch.nn.functional.embedding.

    >>> import tilewright as tw
    >>> rows = tw.asarray([[3.0, 4.0], [0.0, 0.5]])
    >>> y = tw.nn.functional.embedding(tw.asarray([0, 1]), rows, max_norm=1.0)
    >>> [[round(v, 4) for v in row] for row in y.tolist()]
    [[0.6, 0.8], [0.0, 0.5]]
    """
    if max_norm is not None:
        _limit_rows("embedding", input, weight, max_norm, norm_type)
    rows = tw.embedding(input, weight, padding_idx)
    return _shared_among_equals(rows, input, weight.shape[0]) if scale_grad_by_freq else rows


def _limit_rows(op: str, input: Tensor, weight: Tensor, most: float, norm_type: float) -> None:
    if isinstance(most, bool) or not isinstance(most, (int, float)):
        raise TypeError(f"{op}: max_norm is a number, got {most!r}")
    if not most > 0:
        raise ValueError(f"{op}: max_norm must be above 0, got {most}")
    with tw.no_grad():
        numbers = input.flatten()  # rows that come twice are written twice, as the same
        rows = weight.detach()[numbers]
        # Norms of float32 may be beyond its range, where their elements are not.
        exact = rows.astype(tw.float64)
        norms = tw.linalg.vector_norm(exact, ord=norm_type, axis=1, keepdims=True)
        factors = tw.where(norms > most, most / (norms + 1e-7), 1.0)
        narrow = rows.dtype if rows.dtype == tw.float64 else tw.float32
        weight[numbers] = rows * factors.astype(narrow)


class _Scaled(Function):
    """Its input; the gradient is multiplied by `scale`."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, scale: Tensor) -> Tensor:
        ctx.save_for_backward(scale)
        return x

    @staticmethod
    def backward(ctx: Context, *grads: Any) -> tuple[Any, ...]:
        (scale,) = ctx.saved_tensors
        return grads[0] * scale, None


def _shared_among_equals(rows: Tensor, input: Tensor, count: int) -> Tensor:
    """The rows at `input`, with gradients divided by how often each row is there."""
    numbers = tw.where(input < 0, input + count, input).flatten()
    found = tw.bincount(numbers, minlength=count)[numbers].reshape(input.shape)
    scaled: Tensor = _Scaled.apply(rows, tw.expand_dims(1 / found.astype(rows.dtype), -1))
    return scaled


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """`tw.embedding_bag` that also takes the indices of all bags one after the other.

    input (indices,) with offsets (bags,): where each bag begins, the first at 0; with
    `include_last_offset` also where the last ends. Without offsets input is (bags, length). Gives
    (bags, features); bags of nothing, or of the row `padding_idx` alone, are 0. `max_norm`,
    `norm_type`, `scale_grad_by_freq` and `sparse` are those of `embedding`. Raises ValueError
    for shapes and offsets that do not fit and IndexError for indices out of range.

    Shapes: input (bags, length), or (indices,) with offsets (bags,), weight (rows, features); the
    result is (bags, features).
    Types: floating, complex; integers and bool become the default floating type. Result: the
    same type.
    Raises TypeError for indices that are not integers.
    Source: PyTorch's torch.nn.functional.embedding_bag.

    >>> import tilewright as tw
    >>> rows = tw.asarray([[1.0], [10.0], [100.0]])
    >>> i, starts = tw.asarray([0, 1, 2]), tw.asarray([0, 2])
    >>> tw.nn.functional.embedding_bag(i, rows, starts, mode="sum").tolist()
    [[11.0], [100.0]]
    """
    if offsets is None and input.ndim == 1:
        raise ValueError(
            f"embedding_bag: input {input.shape} needs offsets; without them it is (bags, length)"
        )
    _check_mode(mode, input, per_sample_weights)
    if scale_grad_by_freq and mode == "max":
        raise ValueError("embedding_bag: scale_grad_by_freq is for mode='sum' and mode='mean'")
    if max_norm is not None:
        _limit_rows("embedding_bag", input, weight, max_norm, norm_type)
    if offsets is None:
        if not scale_grad_by_freq or input.ndim != 2:
            return tw.embedding_bag(input, weight, per_sample_weights, mode, padding_idx)
        bags, length = input.shape
        offsets, include_last_offset = tw.arange(bags + 1, device=input.device) * length, True
        input = input.flatten()
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.flatten()
    starts, lengths = _spans(input, offsets, include_last_offset)
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]
    rows = embedding(input, weight, padding_idx, scale_grad_by_freq=scale_grad_by_freq)
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
        end = "end with" if include_last else "stay within"
        raise ValueError(
            f"embedding_bag: offsets must rise from 0 and {end} the number of indices, {length}, "
            f"got {offsets.tolist()}"
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
