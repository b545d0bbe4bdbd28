"""Predicting the next character of a text, by an LSTM or a transformer; and writing such text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from os import PathLike
from typing import Any, ClassVar

import tilewright as tw
from tilewright import Tensor, data, nn
from tilewright.data.sampler import weighted_choices
from tilewright.train.models import CharLstm, Gpt
from tilewright.train.options import Options
from tilewright.train.task import Trainable

# The rest is for validation.
_TRAINED_SHARE = 0.9
# Windows that a validation passes through the model at a time.
_TEST_BATCH = 64


class Text(Trainable):
    """A text's characters: its first nine tenths are trained on, at random places; the windows of
    the last tenth are judged by the bits that a character takes.
    """

    name = "shakespeare"
    metric: ClassVar[str] = "bits_per_character"
    unit: ClassVar[str] = "characters"
    models: ClassVar[tuple[str, ...]] = ("lstm", "gpt")

    def __init__(self, text: str) -> None:
        self.vocabulary = data.Vocabulary.from_text(text)
        tokens = self.vocabulary.encode(text)
        trained = int(_TRAINED_SHARE * len(tokens))
        self.train_tokens, self.test_tokens = tokens[:trained], tokens[trained:]

    def build(self, options: Options) -> nn.Module:
        symbols = len(self.vocabulary)
        if options.model == "lstm":
            return CharLstm(symbols, options.hidden, options.layers)
        return Gpt(symbols, options.hidden, options.layers, options.length)

    def loader(self, options: Options) -> data.DataLoader:
        for tokens in (self.train_tokens, self.test_tokens):
            if len(tokens) <= options.length:
                raise ValueError(
                    f"train: parts of {len(self.train_tokens)} and {len(self.test_tokens)} "
                    f"characters hold no window of {options.length} each; give a longer text or a "
                    "smaller length"
                )
        windows = data.Windows(self.train_tokens, options.length, stride=1)
        # As many windows an epoch as would cover the text once, in whole batches.
        steps = max(len(self.train_tokens) // (options.length * options.batch), 1)
        draws = tw.Generator(options.seed)
        sampler = data.RandomSampler(windows, True, steps * options.batch, draws)
        return data.DataLoader(windows, options.batch, sampler=sampler)

    def loss(self, model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        logits = model(x)
        logits = logits[0] if isinstance(logits, tuple) else logits
        return tw.cross_entropy(logits.reshape((-1, len(self.vocabulary))), y.reshape((-1,)))

    def evaluate(self, model: nn.Module, options: Options) -> float:
        windows = data.Windows(self.test_tokens, options.length)
        total = 0.0
        for x, y in data.DataLoader(windows, _TEST_BATCH):
            there = self.loss(model, x.to(options.device), y.to(options.device))
            total += there.item() * x.shape[0]
        return total / len(windows) / math.log(2)

    def count(self, x: Tensor) -> int:
        return x.size

    def facts(self) -> Mapping[str, Any]:
        return {
            "characters": len(self.train_tokens) + len(self.test_tokens),
            "symbols": self.vocabulary.symbols,
        }

    def headline(self, options: Options) -> str:
        plural = "" if options.layers == 1 else "s"
        return (
            f"{options.model}, {options.layers} layer{plural} of {options.hidden}, windows of "
            f"{options.length}, {len(self.train_tokens):,} training and "
            f"{len(self.test_tokens):,} validation characters, {len(self.vocabulary)} symbols"
        )

    def sample(
        self,
        model: nn.Module,
        length: int,
        temperature: float = 1.0,
        seed: int = 0,
        start: str = "\n",
    ) -> str:
        """So many characters that the model writes behind `start`, which is not told again.

        Each is drawn from the model's probabilities: at temperatures below 1 from the likely ones
        more often, above 1 less. The model's state is kept, not computed anew. Raises ValueError
        for a start of characters that the text does not have.
        """
        if length < 0 or not 0 < temperature < math.inf:
            raise ValueError(
                f"sample: length from 0 and a temperature above 0, got {length} and {temperature}"
            )
        known = set(self.vocabulary.symbols)
        start = start if start != "\n" or "\n" in known else self.vocabulary.symbols[0]
        tokens: list[int] = self.vocabulary.encode(start).tolist()
        if not tokens:
            raise ValueError("sample: start is empty; give a character at least")
        draws: list[float] = tw.rand(length, generator=tw.Generator(seed)).tolist()
        written: list[int] = []
        state: Any = None
        model.eval()
        with tw.no_grad():
            for draw in draws:
                logits, state = model.follow(tokens, state)  # type: ignore[attr-defined]
                shares = tw.softmax(logits / temperature, axis=-1).tolist()
                tokens = weighted_choices(shares, [draw])
                written += tokens
        return self.vocabulary.decode(written)


def shakespeare_task(path: str | PathLike[str] | None = None) -> Text:
    """The text of `data.tinyshakespeare`."""
    return Text(data.tinyshakespeare(path))
