"""The transformer of Vaswani et al., "Attention is all you need" (2017): layers and stacks."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.nn import init
from tilewright.nn.layers.attention import MultiheadAttention
from tilewright.nn.layers.dropout import Dropout
from tilewright.nn.layers.linear import Linear, relu_of
from tilewright.nn.layers.norm import LayerNorm
from tilewright.nn.module.container import ModuleList
from tilewright.nn.module.module import Module

Activation = str | Callable[[Tensor], Tensor]


class _Layer(Module):
    """What encoder and decoder layers share: self-attention, the wide layers, where norms stand."""

    dropout1: Dropout

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
    ) -> None:
        if isinstance(activation, str) and activation not in ("relu", "gelu"):
            raise ValueError(
                f"{type(self).__name__}: activation must be 'relu', 'gelu' or a function, "
                f"got {activation!r}"
            )
        self.norm_first, self.activation = norm_first, activation
        made: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self._made_of = {"batch_first": batch_first, **made}
        self._eps = layer_norm_eps
        self._add_attentions(d_model, nhead, dropout)
        self.linear1 = Linear(d_model, dim_feedforward, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **made)
        self._add_norms(d_model)

    def _add_attentions(self, d_model: int, nhead: int, dropout: float) -> None:
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, **self._made_of)

    def _add_norms(self, d_model: int) -> None:
        raise NotImplementedError

    def _norm(self, d_model: int) -> LayerNorm:
        made = {name: self._made_of[name] for name in ("bias", "device", "dtype")}
        return LayerNorm(d_model, eps=self._eps, **made)

    def _residual(self, x: Tensor, norm: LayerNorm, inner: Callable[[Tensor], Tensor]) -> Tensor:
        if self.norm_first:
            y: Tensor = x + inner(norm(x))
        else:
            y = norm(x + inner(x))
        return y

    # The blocks have PyTorch's names and parameters, because subclasses define them anew.
    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        y: Tensor = self.dropout1(
            _attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal)
        )
        return y

    def _wide(self, x: Tensor) -> Tensor:
        if self.activation == "relu":
            x = relu_of(self.linear1, x)
        else:
            x = self.linear1(x)
            x = tw.gelu(x) if self.activation == "gelu" else self.activation(x)  # type: ignore[operator]
        y: Tensor = self.linear2(self.dropout(x))
        return y


def _attend(
    attention: MultiheadAttention,
    x: Tensor,
    memory: Tensor,
    mask: Tensor | None,
    padding: Tensor | None,
    is_causal: bool,
) -> Tensor:
    y: Tensor
    y, _ = attention(
        x,
        memory,
        memory,
        attn_mask=mask,
        key_padding_mask=padding,
        need_weights=False,
        is_causal=is_causal,
    )
    return y


class TransformerEncoderLayer(_Layer):
    """Self-attention and two linear layers, each with dropout, a residual path and a layer norm.

    src (S, N, d_model), or (N, S, d_model) with batch_first, gives the same shape. Masks are those
    of MultiheadAttention. norm_first: norms stand before what they feed. activation: "relu",
    "gelu" or a function.

    >>> import tilewright as tw
    >>> layer = tw.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer(tw.ones((3, 5, 8))).shape
    (3, 5, 8)
    """

    def _add_norms(self, d_model: int) -> None:
        self.norm1, self.norm2 = self._norm(d_model), self._norm(d_model)
        self.dropout1, self.dropout2 = Dropout(self.dropout.p), Dropout(self.dropout.p)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self._sa_block(x, src_mask, src_key_padding_mask, is_causal=is_causal)

        x = self._residual(src, self.norm1, attend)
        return self._residual(x, self.norm2, self._ff_block)

    def _ff_block(self, x: Tensor) -> Tensor:
        y: Tensor = self.dropout2(self._wide(x))
        return y


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to `memory` and two linear layers, each with residual and norm.

    tgt (T, N, d_model) and memory (S, N, d_model), N first with batch_first, give tgt's shape.

    >>> import tilewright as tw
    >>> layer = tw.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> layer(tw.ones((3, 5, 8)), tw.ones((3, 7, 8))).shape
    (3, 5, 8)
    """

    # Parameters stand in PyTorch's order, by which an optimizer's state counts them.
    def _add_attentions(self, d_model: int, nhead: int, dropout: float) -> None:
        super()._add_attentions(d_model, nhead, dropout)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, **self._made_of)

    def _add_norms(self, d_model: int) -> None:
        p = self.dropout.p
        self.norm1, self.norm2, self.norm3 = (self._norm(d_model) for _ in range(3))
        self.dropout1, self.dropout2, self.dropout3 = (Dropout(p) for _ in range(3))

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self._sa_block(x, tgt_mask, tgt_key_padding_mask, is_causal=tgt_is_causal)

        def look(x: Tensor) -> Tensor:
            padding = memory_key_padding_mask
            return self._mha_block(x, memory, memory_mask, padding, is_causal=memory_is_causal)

        x = self._residual(tgt, self.norm1, attend)
        x = self._residual(x, self.norm2, look)
        return self._residual(x, self.norm3, self._ff_block)

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        y: Tensor = self.dropout2(
            _attend(self.multihead_attn, x, mem, attn_mask, key_padding_mask, is_causal)
        )
        return y

    def _ff_block(self, x: Tensor) -> Tensor:
        y: Tensor = self.dropout3(self._wide(x))
        return y


class TransformerEncoder(Module):
    """`num_layers` copies of a layer, one after the other, and a final norm.

    Each layer gets the masks; is_causal says that `mask` is causal.

    >>> import tilewright as tw
    >>> layer = tw.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> tw.nn.TransformerEncoder(layer, 2)(tw.ones((3, 5, 8))).shape
    (3, 5, 8)
    """

    def __init__(
        self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Module | None = None
    ) -> None:
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        x = src
        for layer in self.layers:
            x = layer(
                x,
                src_mask=mask,
                src_key_padding_mask=src_key_padding_mask,
                is_causal=bool(is_causal),
            )
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """`num_layers` copies of a decoder layer, one after the other, and a final norm.

    >>> import tilewright as tw
    >>> layer = tw.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> tw.nn.TransformerDecoder(layer, 2)(tw.ones((3, 5, 8)), tw.ones((3, 4, 8))).shape
    (3, 5, 8)
    """

    def __init__(
        self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None
    ) -> None:
        self.layers = ModuleList(copy.deepcopy(decoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder of `src` and a decoder of `tgt` that attends to what the encoder gives.

    >>> import tilewright as tw
    >>> model = tw.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> model(tw.ones((3, 5, 8)), tw.ones((3, 4, 8))).shape
    (3, 4, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
    ) -> None:
        made_of: dict[str, Any] = {
            "dim_feedforward": dim_feedforward,
            "dropout": dropout,
            "activation": activation,
            "layer_norm_eps": layer_norm_eps,
            "batch_first": batch_first,
            "norm_first": norm_first,
            "bias": bias,
            "device": device,
            "dtype": dtype,
        }

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        # A custom stack may have a length, and be empty.
        if custom_encoder is None:
            layer = TransformerEncoderLayer(d_model, nhead, **made_of)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            decoder_layer = TransformerDecoderLayer(d_model, nhead, **made_of)
            custom_decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm())
        self.decoder = custom_decoder
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        y: Tensor = self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
        return y

    @staticmethod
    def generate_square_subsequent_mask(sz: int, dtype: tw.dtype | None = None) -> Tensor:
        """The causal mask to add to scores: -inf above the diagonal."""
        return tw.triu(tw.full((sz, sz), -math.inf, dtype=dtype), 1)
