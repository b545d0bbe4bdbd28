"""Whole training steps against the peers, from the same weights: forward, loss, backward, Adam.

The models are those of `tilewright train`: MNIST's convolutional network, and for a text of 65
symbols an LSTM and a transformer. That one also takes its step under bfloat16 autocast, where the
processor has instructions for it, and is asked for a text, with the keys and values of what it has
written kept in place: by replays of a recorded step, and by calls of its modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from timeit import Timer
from typing import Any

import tilewright as tw
from tilewright.bench.harness import OURS, Case
from tilewright.bench.networks.torch_models import twin
from tilewright.train.models import CharLstm, Cnn, Gpt

_BATCH = 64
_SIDE, _HIDDEN, _CLASSES = 28, 128, 10
_SYMBOLS, _TEXTS, _LENGTH = 65, 32, 128
_Types = Callable[[], AbstractContextManager[Any]]


def training_cases(peers: Mapping[str, Any]) -> Iterator[Case]:
    """A step of each model, and characters that a transformer samples."""
    images = tw.rand(_BATCH, _SIDE * _SIDE), tw.randint(0, _CLASSES, (_BATCH,))
    name = f"MNIST CNN 1-32-64-{_HIDDEN}-{_CLASSES} step, batch {_BATCH}"
    yield _steps(peers, name, Cnn(_SIDE, _HIDDEN, _CLASSES), "Adam", *images, "images")
    text = tw.randint(0, _SYMBOLS, (_TEXTS, _LENGTH + 1))
    windows = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    about = f"step, batch {_TEXTS}, sequence {_LENGTH}"
    lstm, gpt = CharLstm(_SYMBOLS, 256, 2), Gpt(_SYMBOLS, 128, 4, _LENGTH)
    yield _steps(peers, f"character LSTM 2x256 {about}", lstm, "Adam", *windows, "characters")
    yield _steps(peers, f"GPT 4x128 {about}", gpt, "AdamW", *windows, "characters")
    if {"avx512_bf16", "amx_bf16"} & set(tw.cpu_info()["features"]):
        name = f"GPT 4x128 in bfloat16 {about}"
        yield _steps(peers, name, gpt, "AdamW", *windows, "characters", narrow=True)
    yield _sampling(peers, gpt, replays=True)
    yield _sampling(peers, gpt, replays=False)


def _steps(
    peers: Mapping[str, Any],
    name: str,
    model: Any,
    optimizer: str,
    x: tw.Tensor,
    y: tw.Tensor,
    unit: str,
    narrow: bool = False,
) -> Case:
    ours = getattr(tw.optim, optimizer)(model.parameters())
    types: _Types = tw.autocast if narrow else nullcontext
    contenders = {OURS: Timer(_step(model, ours, tw.cross_entropy, x, y, types))}
    if "torch" in peers:
        torch = peers["torch"]
        model = twin(torch, model)
        theirs = getattr(torch.optim, optimizer)(model.parameters())
        batch = torch.from_numpy(x.numpy()), torch.from_numpy(y.numpy())
        loss_of = torch.nn.functional.cross_entropy
        types = partial(torch.autocast, "cpu", torch.bfloat16) if narrow else nullcontext
        contenders["torch"] = Timer(_step(model, theirs, loss_of, *batch, types))
    return Case(name, contenders, y.size, unit, rounds=15)


def _step(
    model: Any,
    optimizer: Any,
    loss_of: Any,
    x: Any,
    y: Any,
    types: _Types,
) -> Callable[[], None]:
    def step() -> None:
        optimizer.zero_grad()
        with types():
            logits = model(x)
            logits = logits[0] if isinstance(logits, tuple) else logits
            loss = loss_of(logits.reshape((-1, logits.shape[-1])), y.reshape((-1,)))
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def _sampling(peers: Mapping[str, Any], model: Gpt, replays: bool) -> Case:
    contenders = {OURS: Timer(lambda: likeliest(model, replays))}
    if "torch" in peers:
        torch = peers["torch"]
        net = twin(torch, model)
        contenders["torch"] = Timer(lambda: likeliest_of_torch(torch, net))
    name = f"GPT 4x128 sampling {_LENGTH - 1} characters with a cache"
    name += "" if replays else ", each step called"
    return Case(name, contenders, _LENGTH - 1, "characters")


def likeliest(model: Gpt, replays: bool = True) -> list[int]:
    """A full context of characters, each the likeliest behind those before it."""
    model.replays = replays
    written, cache = [0], None
    with tw.no_grad():
        while len(written) < model.context:
            logits, cache = model.follow(written[-1:], cache)
            written.append(int(logits.argmax().item()))
    return written


def likeliest_of_torch(torch: Any, net: Any) -> list[int]:
    """The same by a transformer's twin."""
    written, cache = [0], net.new_cache()
    with torch.inference_mode():
        while len(written) < net.context:
            logits = net(torch.tensor([written[-1:]]), cache, len(written) - 1)[0, -1]
            written.append(int(logits.argmax().item()))
    return written
