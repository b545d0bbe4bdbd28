"""Tables of vectors that are looked up by number."""

from __future__ import annotations

from typing import Any, TypeVar

import tilewright as tw
from tilewright import Tensor
from tilewright.nn import init
from tilewright.nn.functions.embedding_bag import embedding, embedding_bag
from tilewright.nn.module.module import Module
from tilewright.nn.module.parameter import Parameter

T = TypeVar("T", bound="_Table")


def _checked_padding(layer: str, padding_idx: int | None, rows: int) -> int | None:
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise ValueError(f"{layer}: padding_idx {padding_idx} is out of range for {rows} rows")
    return padding_idx % rows


class _Table(Module):
    """The rows that both layers look up, and what PyTorch lets one ask of them."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
    ) -> None:
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = _checked_padding(type(self).__name__, padding_idx, num_embeddings)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
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
        cls: type[T], embeddings: Tensor, freeze: bool = True, *args: Any, **kwargs: Any
    ) -> T:
        """A layer with a copy of the rows of `embeddings` (rows, features); frozen by default.

        What else is given are the layer's own arguments after its two sizes.
        """
        if embeddings.ndim != 2:
            raise ValueError(
                f"{cls.__name__}: from_pretrained needs (rows, features), got {embeddings.shape}"
            )
        rows, features = embeddings.shape
        layer = cls(rows, features, *args, dtype=embeddings.dtype, **kwargs)
        with tw.no_grad():
            layer.weight.copy_(embeddings)
        layer.weight.requires_grad = not freeze
        return layer

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        usual = {"padding_idx": None, "max_norm": None, "norm_type": 2.0}
        for name, value in (usual | {"scale_grad_by_freq": False}).items():
            if getattr(self, name) != value:
                text += f", {name}={getattr(self, name)}"
        return text


class Embedding(_Table):
    """A vector for each of `num_embeddings` numbers: indices of any shape give shape + (dim,).

    The row `padding_idx` starts as zeros and gets no gradient. Rows start standard normal. Rows
    that are looked up and whose `norm_type`-norm is above `max_norm` are scaled down to it, in the
    weight itself. `scale_grad_by_freq` divides a row's gradient by how often the indices have it.
    `sparse` is PyTorch's and changes nothing: gradients are dense. Raises IndexError for indices
    out of range.

    >>> import tilewright as tw
    >>> tw.nn.Embedding(10, 3)(tw.asarray([[1, 2], [4, 5]])).shape
    (2, 2, 3)
    """

    def forward(self, indices: Tensor) -> Tensor:
        if self.max_norm is None and not self.scale_grad_by_freq:
            return tw.embedding(indices, self.weight, self.padding_idx)
        return embedding(
            indices,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
        )


class EmbeddingBag(_Table):
    """The sum, mean or maximum of the vectors of each bag of indices (bags, length).

    With offsets (bags,) the indices come one bag after the other, each of its own length; see
    `nn.functional.embedding_bag`. The row `padding_idx` does not count. `max_norm`, `norm_type`,
    `scale_grad_by_freq` and `sparse` are those of `Embedding`. Raises IndexError for indices out of
    range.

    >>> import tilewright as tw
    >>> tw.nn.EmbeddingBag(10, 3)(tw.asarray([[1, 2, 4], [4, 3, 9]])).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        *,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: str | None = None,
        dtype: tw.dtype | None = None,
    ) -> None:
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"EmbeddingBag: mode is 'sum', 'mean' or 'max', got {mode!r}")
        self.mode, self.include_last_offset = mode, include_last_offset
        super().__init__(
            num_embeddings,
            embedding_dim,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            device=device,
            dtype=dtype,
        )

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
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding_idx,
        )

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"
