"""Attention of several heads, with its projections."""

from __future__ import annotations

import math

import tilewright as tw
from tilewright import Tensor
from tilewright.nn import init
from tilewright.nn.layers.linear import Linear
from tilewright.nn.module.module import Module
from tilewright.nn.module.parameter import Parameter


class MultiheadAttention(Module):
    """Projects query, key and value, attends in `num_heads` parts of `embed_dim`, projects back.

    query (L, N, E), key (S, N, kdim) and value (S, N, vdim) give (L, N, E) and, with need_weights,
    the weights (N, L, S), or (N, heads, L, S) without average_attn_weights; with batch_first N is
    the first axis, and without N all is for one sequence. attn_mask is (L, S) or (N * heads, L, S),
    key_padding_mask (N, S): where a bool mask is True, or a floating one -inf, nothing is attended
    to; a query for which that holds everywhere gets weights of 0, as in
    `scaled_dot_product_attention`. is_causal says that attn_mask is causal, which is then not read
    where that is faster; it may be left out. add_bias_kv appends a learnt key and value,
    add_zero_attn one of zeros. Raises ValueError for extents and masks that do not fit. Source:
    Vaswani et al., "Attention is all you need" (2017).

    >>> import tilewright as tw
    >>> attend = tw.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = tw.ones((3, 5, 8))
    >>> y, weights = attend(x, x, x)
    >>> y.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    in_proj_weight: Parameter | None = None
    q_proj_weight: Parameter | None = None
    k_proj_weight: Parameter | None = None
    v_proj_weight: Parameter | None = None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(
                f"MultiheadAttention: embed_dim {embed_dim} is no positive multiple of "
                f"num_heads {num_heads}"
            )
        if not 0 <= dropout <= 1:
            raise ValueError(f"MultiheadAttention: dropout lies between 0 and 1, got {dropout}")
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.head_dim = embed_dim // num_heads
        self.batch_first, self.add_zero_attn = batch_first, add_zero_attn

        def parameter(*shape: int) -> Parameter:
            return Parameter(tw.zeros(shape, device=device, dtype=dtype))

        alike = self.kdim == self.vdim == embed_dim
        for name, width in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            own = None if alike else parameter(embed_dim, width)
            self.register_parameter(f"{name}_proj_weight", own)
        joined = parameter(3 * embed_dim, embed_dim) if alike else None
        self.register_parameter("in_proj_weight", joined)
        self.register_parameter("in_proj_bias", parameter(3 * embed_dim) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device=device, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            row = parameter(1, 1, embed_dim) if add_bias_kv else None
            self.register_parameter(name, row)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights (Xavier's); biases become 0."""
        for name, weight in self.named_parameters(recurse=False):
            if name.endswith("_weight"):
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.constant_(bias, 0.0)
        for row in (self.bias_k, self.bias_v):
            if row is not None:
                init.xavier_normal_(row)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        self._check(query, key, value)
        batched = query.ndim == 3
        if not batched:
            at = 0 if self.batch_first else 1
            query, key, value = (tw.expand_dims(x, at) for x in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = tw.expand_dims(key_padding_mask, 0)
        q, k, v = (self._heads(x) for x in self._projected(query, key, value))
        keys = k.shape[2]
        k, v = self._extended(k, self.bias_k), self._extended(v, self.bias_v)
        causal = is_causal and k.shape[2] == keys and key_padding_mask is None
        if causal and not need_weights:
            mask = None
        else:
            if is_causal and attn_mask is None:
                attn_mask = tw.triu(tw.ones((q.shape[2], keys), dtype=tw.bool), 1)
            mask = self._mask(q, keys, k.shape[2], attn_mask, key_padding_mask)
        p = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            weights = _weights(q, k, mask)
            if p > 0:
                weights = tw.dropout(weights, p)
            y = tw.matmul(weights, v)
            if average_attn_weights:
                weights = tw.mean(weights, axis=1)
        else:
            allowed = None if mask is None else ~mask if mask.dtype == tw.bool else mask
            y = tw.scaled_dot_product_attention(q, k, v, allowed, p, causal)
        y = self.out_proj(self._joined(y))
        if batched:
            return y, weights
        return y.squeeze(at), None if weights is None else weights.squeeze(0)

    def _check(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        for name, x, size in (
            ("query", query, self.embed_dim),
            ("key", key, self.kdim),
            ("value", value, self.vdim),
        ):
            if x.ndim not in (2, 3) or x.ndim != query.ndim or x.shape[-1] != size:
                raise ValueError(
                    f"MultiheadAttention: {name} has shape {x.shape}; expected "
                    f"{max(2, min(query.ndim, 3))} axes, the last of {size}"
                )
        batch = 0 if self.batch_first else 1
        if key.shape[:-1] != value.shape[:-1] or (
            query.ndim == 3 and query.shape[batch] != key.shape[batch]
        ):
            raise ValueError(
                f"MultiheadAttention: query {query.shape}, key {key.shape} and value "
                f"{value.shape} do not fit together"
            )

    def _projected(self, *inputs: Tensor) -> list[Tensor]:
        size = self.embed_dim
        parts = [slice(i * size, (i + 1) * size) for i in range(3)]
        if self.in_proj_weight is not None:
            # Each part by itself: slices of one wide product would cost copies going back.
            weights = [self.in_proj_weight[part] for part in parts]
        else:
            assert self.q_proj_weight is not None
            assert self.k_proj_weight is not None
            assert self.v_proj_weight is not None
            weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        bias = self.in_proj_bias
        return [
            tw.linear(x, weight, None if bias is None else bias[part])
            for x, weight, part in zip(inputs, weights, parts, strict=True)
        ]

    def _heads(self, x: Tensor) -> Tensor:
        """(N, heads, rows, size), a view."""
        split = tw.reshape(x, (*x.shape[:2], self.num_heads, self.head_dim))
        return tw.permute_dims(split, (0, 2, 1, 3) if self.batch_first else (1, 2, 0, 3))

    def _joined(self, y: Tensor) -> Tensor:
        y = tw.permute_dims(y, (0, 2, 1, 3) if self.batch_first else (2, 0, 1, 3))
        return tw.reshape(y, (*y.shape[:2], self.embed_dim))

    def _extended(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """With a learnt row and a row of zeros behind the others."""
        batch, heads, _, size = x.shape
        shape = (batch, heads, 1, size)
        if bias is not None:
            row = tw.reshape(bias, (1, heads, 1, size))
            x = tw.concat([x, tw.broadcast_to(row, shape)], axis=2)
        if self.add_zero_attn:
            x = tw.concat([x, tw.zeros(shape, dtype=x.dtype)], axis=2)
        return x

    def _mask(
        self, q: Tensor, keys: int, extended: int, attn: Tensor | None, padding: Tensor | None
    ) -> Tensor | None:
        """Both masks as one that scores can take: bool (True: not attended to) or added."""
        batch, heads, queries, _ = q.shape
        masks = []
        if attn is not None:
            if attn.shape not in ((queries, keys), (batch * heads, queries, keys)):
                raise ValueError(
                    f"MultiheadAttention: attn_mask has shape {attn.shape}; expected "
                    f"{(queries, keys)} or {(batch * heads, queries, keys)}"
                )
            masks.append(
                tw.reshape(attn, (-1 if attn.ndim == 2 else batch, 1, queries, keys))
                if attn.ndim == 2
                else tw.reshape(attn, (batch, heads, queries, keys))
            )
        if padding is not None:
            if padding.shape != (batch, keys):
                raise ValueError(
                    f"MultiheadAttention: key_padding_mask has shape {padding.shape}; expected "
                    f"{(batch, keys)}"
                )
            masks.append(tw.reshape(padding, (batch, 1, 1, keys)))
        if not masks:
            return None
        if any(mask.dtype != tw.bool for mask in masks):
            masks = [_added(mask, q.dtype) for mask in masks]
            both = masks[0] if len(masks) == 1 else masks[0] + masks[1]
        else:
            both = masks[0] if len(masks) == 1 else masks[0] | masks[1]
        if extended > keys:
            more = tw.zeros((*both.shape[:3], extended - keys), dtype=both.dtype)
            both = tw.concat([both, more], axis=3)
        return both

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}, batch_first={self.batch_first}"


def _added(mask: Tensor, dtype: tw.dtype) -> Tensor:
    if mask.dtype != tw.bool:
        return mask.astype(dtype)
    return tw.where(mask, -math.inf, 0.0).astype(dtype)


def _weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """softmax(q @ k.T / sqrt(size) + mask), and 0 for queries that attend to nothing."""
    scale = 1 / math.sqrt(q.shape[-1])
    scores = tw.matmul(q * scale, tw.permute_dims(k, (0, 1, 3, 2)))
    if mask is None:
        return tw.softmax(scores, axis=-1)
    scores = scores + _added(mask, q.dtype)
    nothing = tw.all(scores == -math.inf, axis=-1, keepdims=True)
    return tw.where(nothing, 0, tw.softmax(tw.where(nothing, 0, scores), axis=-1))
