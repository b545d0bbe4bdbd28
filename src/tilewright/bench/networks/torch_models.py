"""The networks of `tilewright train` as PyTorch's users write them: same names, so same states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.train.models import CharLstm, Cnn, Gpt

_HEADS = 4


def twin(torch: Any, model: Any) -> Any:
    """The same network with the same weights in PyTorch; raises TypeError for one without."""
    makers: dict[type, Callable[[Any, Any], Any]] = {Cnn: _cnn, CharLstm: _lstm, Gpt: _gpt}
    make = makers.get(type(model))
    if make is None:
        raise TypeError(f"twin: no network of PyTorch for a {type(model).__name__}")
    theirs = make(torch, model)
    state = model.state_dict().items()
    theirs.load_state_dict({name: torch.from_numpy(x.copy().numpy()) for name, x in state})
    return theirs


def _cnn(torch: Any, model: Cnn) -> Any:
    nn, relu = torch.nn, torch.relu

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
            self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
            self.pool = nn.MaxPool2d(2)
            self.fc1 = nn.Linear(model.fc1.in_features, model.fc1.out_features)
            self.fc2 = nn.Linear(model.fc2.in_features, model.fc2.out_features)

        def forward(self, x: Any) -> Any:
            x = x.reshape(-1, 1, model.side, model.side)
            x = self.pool(relu(self.conv1(x)))
            x = self.pool(relu(self.conv2(x)))
            return self.fc2(relu(self.fc1(x.flatten(1))))

    return Net()


def _lstm(torch: Any, model: CharLstm) -> Any:
    nn = torch.nn
    (symbols, width), layers = model.embedding.weight.shape, model.layers
    hidden = model.head.in_features

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(symbols, width)
            self.lstm = nn.LSTM(width, hidden, layers, batch_first=True)
            self.head = nn.Linear(hidden, symbols)

        def forward(self, tokens: Any, state: Any = None) -> Any:
            y, state = self.lstm(self.embedding(tokens), state)
            return self.head(y), state

    return Net()


def _gpt(torch: Any, model: Gpt) -> Any:
    nn = torch.nn
    (symbols, width), layers = model.wte.weight.shape, len(model.h)

    class Attention(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: Any, seen: Any, first: int) -> Any:
            batch, length, _ = x.shape
            heads = self.c_attn(x).reshape(batch, length, 3, _HEADS, -1).permute(2, 0, 3, 1, 4)
            query, key, value = heads
            if seen is not None:
                # Of six spellings the quickest.
                seen.narrow(3, first, length).copy_(heads[1:])
                key, value = seen.narrow(3, 0, first + length)
            attend = nn.functional.scaled_dot_product_attention
            y = attend(query, key, value, is_causal=length > 1)
            return self.c_proj(y.transpose(1, 2).reshape(batch, length, width))

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attn, self.gelu = Attention(), nn.GELU()
            self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any, seen: Any, first: int) -> Any:
            x = x + self.attn(self.ln_1(x), seen, first)
            return x + self.c_proj(self.gelu(self.c_fc(self.ln_2(x))))

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.wte, self.wpe = nn.Embedding(symbols, width), nn.Embedding(model.context, width)
            self.h = nn.ModuleList([Block() for _ in range(layers)])
            self.context = model.context
            self.ln_f, self.head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)

        def forward(self, tokens: Any, cache: Any = None, first: int = 0) -> Any:
            """`cache`: keys and values of the `first` tokens before, by layer."""
            x = self.wte(tokens) + self.wpe(torch.arange(first, first + tokens.shape[1]))
            for i, block in enumerate(self.h):
                x = block(x, None if cache is None else cache[i], first)
            return self.head(self.ln_f(x))

        def new_cache(self) -> Any:
            """Room for keys and values of one sequence."""
            shape = (2, 1, _HEADS, self.context, width // _HEADS)
            return [torch.empty(shape) for _ in range(layers)]

    return Net()
