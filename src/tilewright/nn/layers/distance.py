"""Distances and angles between vectors."""

from __future__ import annotations

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.module.module import Module


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along an axis.

    >>> import tilewright as tw
    >>> tw.nn.CosineSimilarity(dim=0)(tw.asarray([1.0, 0.0]), tw.asarray([0.0, 3.0])).item()
    0.0
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return tw.cosine_similarity(x1, x2, self.dim, self.eps)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, eps={self.eps}"


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last axis.

    >>> import tilewright as tw
    >>> x = tw.asarray([[3.0, 4.0]])
    >>> round(tw.nn.PairwiseDistance()(x, tw.zeros((1, 2))).item(), 4)
    5.0
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return tw.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)

    def extra_repr(self) -> str:
        return f"p={self.norm}, eps={self.eps}"
