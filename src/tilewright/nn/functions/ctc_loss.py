"""The loss of sequences whose labels have no places."""

from __future__ import annotations

from collections.abc import Sequence

import tilewright as tw
from tilewright import Tensor
from tilewright._engine.value_text import shown

Lengths = Tensor | Sequence[int]


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """`tw.ctc_loss` that also takes lengths as tuples, and targets one after the other.

    log_probs are (steps, batch, classes), targets (batch, labels), or (all labels,) where the
    lengths say which belong to which sequence: these are read for it. Raises ValueError for
    lengths, labels and shapes that do not fit.

    Shapes: lengths are (batch,); the result is (), or (batch,) for 'none'.
    Types: floating. Result: the same type.
    Raises TypeError for other types.
    Source: PyTorch's torch.nn.functional.ctc_loss.

    >>> import tilewright as tw
    >>> x = tw.zeros((3, 2, 2)).log_softmax(-1)
    >>> loss = tw.nn.functional.ctc_loss(x, tw.asarray([1, 1, 1]), (3, 3), (1, 2))
    >>> round(loss.item(), 4)
    0.6637
    """
    inputs = _tensor("input_lengths", input_lengths)
    lengths = _tensor("target_lengths", target_lengths)
    if isinstance(log_probs, Tensor) and log_probs.ndim == 3 and targets.ndim == 1:
        targets = _padded(targets, lengths)
    elif isinstance(log_probs, Tensor) and log_probs.ndim == 2:  # one length may be a tuple
        inputs, lengths = (x.reshape(()) if x.shape == (1,) else x for x in (inputs, lengths))
    return tw.ctc_loss(log_probs, targets, inputs, lengths, blank, reduction, zero_infinity)


def _tensor(name: str, lengths: Lengths) -> Tensor:
    if isinstance(lengths, Tensor):
        return lengths
    if isinstance(lengths, int):
        return tw.asarray(lengths)
    if not all(isinstance(each, int) for each in lengths):
        raise TypeError(f"ctc_loss: {name} are whole numbers, got {shown(lengths)}")
    return tw.asarray(list(lengths), dtype=tw.int64)


def _padded(targets: Tensor, lengths: Tensor) -> Tensor:
    """(batch, longest) of targets one after the other."""
    sizes = [int(each) for each in lengths.tolist()]
    if any(size < 0 for size in sizes) or sum(sizes) != targets.size:
        raise ValueError(
            f"ctc_loss: target_lengths say {sum(sizes)} labels, but targets has {targets.size}"
        )
    longest = max(sizes, default=0)
    first, rows = 0, []
    for size in sizes:
        rows.append(tw.pad(targets[first : first + size], (0, longest - size)))
        first += size
    if not rows:
        return targets.reshape((0, 0))
    return tw.stack(rows)
