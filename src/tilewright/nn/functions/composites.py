"""Functions of PyTorch's that are a few ops each."""

from __future__ import annotations

from collections.abc import Callable

import tilewright as tw
from tilewright import Tensor


def softmin(input: Tensor, dim: int = -1, *, dtype: tw.dtype | None = None) -> Tensor:
    """softmax of -input.

    Shapes: input (..., n, ...); the result has its shape.
    Types: floating; integers become the default floating type. Result: the same type.
    Raises IndexError for a dim out of range, TypeError for complex numbers and bool.
    Source: PyTorch's torch.nn.functional.softmin.

    >>> import tilewright as tw
    >>> tw.nn.functional.softmin(tw.asarray([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """
    return tw.softmax(-input, dim, dtype=dtype)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Vectors along an axis over their p-norm, which counts as `eps` below that.

    Shapes: input (..., n, ...); the result has its shape.
    Types: floating, complex. Result: the same type.
    Raises IndexError for a dim out of range, TypeError for other types.
    Source: PyTorch's torch.nn.functional.normalize.

    >>> import tilewright as tw
    >>> [round(v, 4) for v in tw.nn.functional.normalize(tw.asarray([3.0, 4.0]), dim=0).tolist()]
    [0.6, 0.8]
    """
    if input.is_complex():
        length = tw.linalg.vector_norm(input, ord=p, axis=dim, keepdims=True)
        return input / tw.maximum(length, eps)
    return tw._core.unit_vectors(input, ord=p, axis=dim, eps=eps)


def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A random draw of a class by each row of logits, as smooth as `tau` is large.

    `hard` draws are 1 for one class and 0 for the others, with the gradient of smooth ones. `eps`
    is PyTorch's and does nothing. Raises ValueError for tau <= 0. Source: E. Jang, S. Gu and B.
    Poole, "Categorical reparameterization with Gumbel-softmax", ICLR 2017.

    Shapes: logits (..., n, ...); the result has their shape.
    Types: floating. Result: the same type.
    Raises IndexError for a dim out of range, TypeError for other types.

    >>> import tilewright as tw
    >>> tw.nn.functional.gumbel_softmax(tw.zeros((5, 3)), hard=True).sum().item()
    5.0
    """
    if not tau > 0:
        raise ValueError(f"gumbel_softmax: tau must be above 0, got {tau}")
    # 1 - u lies in (0, 1], so that no logarithm is infinite but that of -log(1) = 0.
    u = 1 - tw.rand(logits.shape, dtype=logits.dtype)
    waiting = tw.maximum(-tw.log(u), tw.finfo(logits.dtype).smallest_normal)
    soft = tw.softmax((logits - tw.log(waiting)) / tau, dim)
    if not hard:
        return soft
    winner = tw.argmax(soft, axis=dim, keepdims=True)
    one = tw.zeros_like(soft).scatter(dim, winner, tw.ones_like(winner, dtype=soft.dtype))
    return one - soft.detach() + soft


def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """What is below 0 times a slope, uniform in [lower, upper) for each element while training,
    else their mean; written over `input` where `inplace`. Raises ValueError for lower > upper.

    Shapes: input of any shape; the result has it.
    Types: floating. Result: the same type.
    Raises TypeError for other types.
    Source: PyTorch's torch.nn.functional.rrelu.

    >>> import tilewright as tw
    >>> tw.nn.functional.rrelu(tw.asarray([-2.0, 3.0]), 0.25, 0.75).tolist()
    [-1.0, 3.0]
    """
    if not lower <= upper:
        raise ValueError(f"rrelu: lower {lower} is above upper {upper}")
    slopes: Tensor | float = (lower + upper) / 2
    if training and lower != upper:
        slopes = tw.uniform(lower, upper, input.shape, dtype=input.dtype, device=input.device)
    if inplace:
        return tw.leaky_relu(input, slopes, inplace=True)
    return tw.leaky_relu(input, slopes)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of each two rows of a matrix, the first with all others first.

    Raises ValueError for what is no matrix and a negative p.

    Shapes: input (n, k); the result is (n * (n - 1) / 2,).
    Types: floating. Result: the same type.
    Raises TypeError for other types.
    Source: PyTorch's torch.nn.functional.pdist.

    >>> import tilewright as tw
    >>> tw.nn.functional.pdist(tw.asarray([[0.0], [1.0], [3.0]])).tolist()
    [1.0, 3.0, 2.0]
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"pdist: takes tensors, got {type(input).__name__}")
    if input.ndim != 2:
        raise ValueError(f"pdist: input must be a matrix, got shape {input.shape}")
    if not p >= 0:
        raise ValueError(f"pdist: p must not be negative, got {p}")
    rows, columns = tw.triu_indices(input.shape[0], input.shape[0], 1)
    if input.shape[1] == 0:  # no largest difference either
        return tw.sum(input[rows], axis=1)
    return tw.pairwise_distance(input[rows], input[columns], p, eps=0.0)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + distance to the positive - distance to the negative), by any distance.

    The default is `pairwise_distance`. `swap` takes the distance from positive to negative where
    that is less. Raises ValueError for margin <= 0 and tensors of different ranks.

    Shapes: anchor, positive and negative of one shape; the result is (), or that of the
    distances for 'none'.
    Types: floating. Result: the same type.
    Raises TypeError for other types.
    Source: PyTorch's torch.nn.functional.triplet_margin_with_distance_loss.

    >>> import tilewright as tw
    >>> a, p, n = (tw.asarray([[v]]) for v in (0.0, 1.0, 3.0))
    >>> loss = tw.nn.functional.triplet_margin_with_distance_loss
    >>> loss(a, p, n, distance_function=lambda x, y: abs(x - y), margin=2.5).item()
    0.5
    """
    name = "triplet_margin_with_distance_loss"
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{name}: reduction is one of mean, sum, none; got {reduction!r}")
    if not margin > 0:
        raise ValueError(f"{name}: margin must be above 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ValueError(
            f"{name}: tensors must have as many axes, got {anchor.shape}, {positive.shape} and "
            f"{negative.shape}"
        )
    distance = distance_function or tw.pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = tw.minimum(far, distance(positive, negative))
    losses = tw.clip(near - far + margin, 0.0, None)
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()
