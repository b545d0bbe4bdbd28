"""The networks that tasks train, with the names that their parts have in PyTorch."""

from __future__ import annotations

import math
from typing import Any

import tilewright as tw
from tilewright import Tensor, nn

_EMBEDDING = 64
_HEADS = 4
# GPT-2's deviation of first weights (A. Radford et al., 2019).
_DEVIATION = 0.02
# Cosines and sines of some positions.
Angles = tuple[Tensor, Tensor]


def mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Inputs, one hidden ReLU layer, outputs."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


class Cnn(nn.Module):
    """Two convolutions of 3 x 3 with 32 and 64 channels, each halved by max pooling, and two linear
    layers, for square grey images given as rows of pixels.
    """

    def __init__(self, side: int, hidden: int, classes: int) -> None:
        self.side = side
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(64 * (side // 4) ** 2, hidden)
        self.fc2 = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = x.reshape((-1, 1, self.side, self.side))
        x = self.pool(tw.relu(self.conv1(x)))
        x = self.pool(tw.relu(self.conv2(x)))
        x = tw.relu(self.fc1(x.reshape((x.shape[0], -1))))
        logits: Tensor = self.fc2(x)
        return logits


class CharLstm(nn.Module):
    """Embedded symbols, LSTM layers, and logits of what comes next.

    `forward` takes tokens (batch, length) and, to go on from there, the state that an earlier call
    returned; it gives logits (batch, length, symbols) and the state.
    """

    def __init__(self, symbols: int, hidden: int, layers: int) -> None:
        self.layers = layers
        self.embedding = nn.Embedding(symbols, _EMBEDDING)
        self.lstm = nn.LSTM(_EMBEDDING, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, symbols)

    def forward(self, tokens: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        y, state = self.lstm(self.embedding(tokens), state)
        return self.head(y), state

    def follow(self, tokens: list[int], state: Any = None) -> tuple[Tensor, Any]:
        """Logits (symbols,) behind these tokens, which follow those that led to `state`."""
        device = next(self.parameters()).device
        logits, state = self(tw.asarray([tokens]).to(device), state)
        return logits[0, -1], state


class Gpt(nn.Module):
    """A transformer that predicts the next symbol: blocks with the norm before attention and
    before the two linear layers, learned positions (A. Radford et al., 2019) or, with `rotary`,
    positions as rotations of queries and keys (J. Su et al., 2021).

    `forward` takes tokens (batch, length) of at most `context` and gives logits (batch, length,
    symbols); with a cache the tokens follow those that it has seen. For one token their number may
    be a tensor, `seen`, so that the ops can be recorded and run again behind other tokens.
    """

    # Whether `follow` records the ops of one token's step and from then on runs those alone, on the
    # CPU and without gradients: the same bits without the calls of modules in between.
    replays: bool = True
    cos: Tensor
    sin: Tensor

    def __init__(
        self, symbols: int, width: int, layers: int, context: int, *, rotary: bool = False
    ) -> None:
        if width % _HEADS:
            raise ValueError(f"gpt: {_HEADS} heads do not divide a width of {width}")
        self.context = context
        self.wte = nn.Embedding(symbols, width)
        if rotary:
            half = width // _HEADS // 2
            angles = tw.arange(context)[:, None] * 10000.0 ** (-tw.arange(half) / half)
            self.register_buffer("cos", tw.cos(angles), persistent=False)
            self.register_buffer("sin", tw.sin(angles), persistent=False)
        else:
            self.wpe = nn.Embedding(context, width)
        self.rotary = rotary
        self.h = nn.ModuleList([Block(width) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, symbols, bias=False)
        self._first_weights(layers)

    def forward(
        self, tokens: Tensor, cache: Cache | None = None, seen: Tensor | None = None
    ) -> Tensor:
        if seen is None:
            first = 0 if cache is None else cache.length
            places = tw.arange(first, first + tokens.shape[1], device=tokens.device)
        else:
            places = seen  # of one token
        x, angles = self.wte(tokens), None
        if self.rotary:
            angles = self.cos[places], self.sin[places]
        else:
            x = x + self.wpe(places)
        for i, block in enumerate(self.h):
            x = block(x, None if cache is None else cache.layers[i], seen, angles)
        logits: Tensor = self.head(self.ln_f(x))
        return logits

    def follow(self, tokens: list[int], cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """Logits (symbols,) behind these tokens, which follow those in the cache.

        Where the context is full the cache is filled anew with its last half, once for many
        tokens: learned positions do not move. The model may change while a cache is in use: a step
        is recorded anew where its parts are no longer those of the recording.
        """
        cache = Cache(self) if cache is None else cache
        known = [*cache.tokens, *tokens]
        if len(known) > self.context:
            known = tokens = known[-max(self.context // 2, 1) :]
            cache.reset()
        cache.tokens = known
        if len(tokens) == 1 and self.replays and cache.may_record(self):
            return cache.step(self, tokens[0]), cache
        return self(tw.asarray([tokens]).to(cache.device), cache)[0, -1], cache

    def _first_weights(self, layers: int) -> None:
        for name, value in self.named_parameters():
            # What adds to the residual path is smaller, the more of it there is.
            shrunk = math.sqrt(2 * layers) if name.endswith("c_proj.weight") else 1.0
            if name.endswith("bias"):
                nn.init.constant_(value, 0.0)
            elif not name.startswith("ln_f") and ".ln_" not in name:
                nn.init.normal_(value, 0.0, _DEVIATION / shrunk)


class Block(nn.Module):
    """Attention and two linear layers, each behind a norm and added to what came in."""

    def __init__(self, width: int) -> None:
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = nn.Linear(width, 4 * width)
        self.gelu = nn.GELU()
        self.c_proj = nn.Linear(4 * width, width)

    def forward(
        self,
        x: Tensor,
        cache: nn.KeyValueCache | None,
        seen: Tensor | None,
        angles: Angles | None,
    ) -> Tensor:
        x = x + self.attn(self.ln_1(x), cache, seen, angles)
        y: Tensor = x + self.c_proj(self.gelu(self.c_fc(self.ln_2(x))))
        return y


class Attention(nn.Module):
    """Causal attention of several heads; a cache holds keys and values of the tokens before."""

    def __init__(self, width: int) -> None:
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(
        self,
        x: Tensor,
        cache: nn.KeyValueCache | None,
        seen: Tensor | None,
        angles: Angles | None,
    ) -> Tensor:
        batch, length, width = x.shape
        heads = self.c_attn(x).reshape((batch, length, 3, _HEADS, width // _HEADS))
        query, key, value = heads.permute((2, 0, 3, 1, 4))
        if angles is not None:
            query, key = (tw.rotary_embedding(part, *angles) for part in (query, key))
        if cache is None:
            y = tw.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            y = cache.attend(query, key, value, filled=seen)
        out: Tensor = self.c_proj(y.swapaxes(1, 2).reshape((batch, length, width)))
        return out


class Cache:
    """Keys and values of a sequence's tokens so far, in memory for a whole context.

    `recorded` is the step of one token as `Gpt.follow` replays it, whose `calls()` are the ops and
    their kernels; None before the first. `refused` says why there is none where it cannot be, of
    the model as it was then.
    """

    def __init__(self, model: Gpt) -> None:
        width = model.wte.weight.shape[1]
        self.device: str = model.wte.weight.device
        self.layers = [
            nn.KeyValueCache(1, _HEADS, model.context, width // _HEADS, device=self.device)
            for _ in model.h
        ]
        self.tokens: list[int] = []
        self.recorded: Any = None
        self._recorded_of: Any = None
        self.refused = "" if self.device == "cpu" else f"on {self.device}"
        self._refused_of: Any = None
        self._hook_changes = -1
        self._has_hooks = False

    @property
    def length(self) -> int:
        """How many tokens it has seen."""
        return len(self.layers[0])

    def reset(self) -> None:
        """Forgets the tokens; memory and recording stay."""
        self.tokens = []
        for layer in self.layers:
            layer.reset()

    def may_record(self, model: Gpt) -> bool:
        """Whether nothing but ops belongs to a step: no gradients, and no hooks of modules."""
        changes = tw._core._module_hook_changes()
        if changes != self._hook_changes:
            self._hook_changes = changes
            self._has_hooks = any(module._call_hooks is not None for module in model.modules())
        if self._refused_of is not None and not self._is_refused_still(model):
            self.refused, self._refused_of = "", None
        return not (self.refused or self._has_hooks or tw.is_grad_enabled())

    def _is_current(self, model: Gpt) -> bool:
        """Whether the recorded step is what the model would do now."""
        recorded = self.recorded is not None and self.recorded.is_current()
        return recorded and self._recorded_of.holds_for(model)

    def _refuse(self, why: str, model: Gpt, inputs: list[Tensor]) -> None:
        self.recorded = None
        try:
            settings = tw._core._capture(lambda *at: at, inputs)
        except tw.StateError:
            return  # within a recording of others: not of the model
        self.refused, self._refused_of = why, (tw._core._ModuleState(model), settings)

    def _is_refused_still(self, model: Gpt) -> bool:
        """Whether the model, kernels, precision and autocast are what a step was refused for."""
        state, settings = self._refused_of
        return bool(state.holds_for(model) and settings.is_current())

    def step(self, model: Gpt, token: int) -> Tensor:
        """Logits (symbols,) behind one token more: recorded once, then replayed."""
        inputs = [tw.asarray(x).to(self.device) for x in ([[token]], [self.length])]
        if not self._is_current(model):
            try:
                self.recorded = tw._core._capture(
                    lambda *at: model(at[0], self, at[1])[0, -1], inputs
                )
            except tw.StateError as refusal:
                # Nothing that a second run does not write again.
                self._refuse(str(refusal), model, inputs)
                called: Tensor = model(inputs[0], self)[0, -1]
                return called
            self._recorded_of = tw._core._ModuleState(model)
        logits: Tensor = self.recorded.replay(inputs)[0]
        for layer in self.layers:
            layer.advance(1)
        return logits
