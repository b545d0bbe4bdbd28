"""Tables of vectors that are looked up by number."""

from __future__ import annotations

import tilewright as tw
from tilewright import Tensor
from tilewright.nn import init
from tilewright.nn.bags import embedding_bag
from tilewright.nn.module import Module
from tilewright.nn.parameter import Parameter


def _checked_padding(layer: str, padding_idx: int | None, rows: int) -> int | None:
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise ValueError(f"{layer}: padding_idx {padding_idx} is out of range for {rows} rows")
    return padding_idx % rows


class Embedding(Module):
    """A vector for each of `num_embeddings` numbers: indices of any shape give shape + (dim,).

    The row `padding_idx` starts as zeros and gets no gradient. Rows start standard normal. Raises
    IndexError for indices out of range.

    >>> import tilewright as tw
    >>> tw.nn.Embedding(10, 3)(tw.asarray([[1, 2], [4, 5]])).shape
    (2, 2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        dtype: tw.dtype | None = None,
        *,
        device: str | None = None,
    ) -> None:
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = _checked_padding("Embedding", padding_idx, num_embeddings)
        self.weight = Parameter(
            tw.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Standard normal rows; that of the padding 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with tw.no_grad():
                self.weight[self.padding_idx] = 0

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None
    ) -> Embedding:
        """A layer with a copy of the rows of `embeddings` (rows, features); frozen by default."""
        if embeddings.ndim != 2:
            raise ValueError(
                f"Embedding: from_pretrained needs (rows, features), got {embeddings.shape}"
            )
        rows, features = embeddings.shape
        layer = cls(rows, features, padding_idx=padding_idx, dtype=embeddings.dtype)
        with tw.no_grad():
            layer.weight.copy_(embeddings)
        layer.weight.requires_grad = not freeze
        return layer

    def forward(self, indices: Tensor) -> Tensor:
        return tw.embedding(indices, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"


class EmbeddingBag(Module):
    """The sum, mean or maximum of the vectors of each bag of indices (bags, length).

    With offsets (bags,) the indices come one bag after the other, each of its own length; see
    `nn.functional.embedding_bag`. The row `padding_idx` does not count. Raises IndexError for
    indices out of range.

    >>> import tilewright as tw
    >>> tw.nn.EmbeddingBag(10, 3)(tw.asarray([[1, 2, 4], [4, 3, 9]])).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        mode: str = "mean",
        padding_idx: int | None = None,
        dtype: tw.dtype | None = None,
        *,
        include_last_offset: bool = False,
        device: str | None = None,
    ) -> None:
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"EmbeddingBag: mode is 'sum', 'mean' or 'max', got {mode!r}")
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.include_last_offset = include_last_offset
        self.padding_idx = _checked_padding("EmbeddingBag", padding_idx, num_embeddings)
        self.weight = Parameter(
            tw.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Standard normal rows; that of the padding 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with tw.no_grad():
                self.weight[self.padding_idx] = 0

    def forward(
        self,
        indices: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        return embedding_bag(
            indices,
            self.weight,
            offsets,
            self.mode,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"
