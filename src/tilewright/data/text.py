"""Text as numbers: vocabularies of characters or bytes, and windows of a long sequence."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright._compat.foreign_arrays import as_tensor
from tilewright.data.checks import whole
from tilewright.data.dataset import Dataset, checked_index

_UTF32 = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"
# Unknown characters that an error names.
_MOST_NAMED = 5


class Vocabulary:
    """Characters, numbered from 0 in the order given.

    Raises ValueError for none or for one given twice. `encode` and `decode` are table look-ups in
    native code.

    >>> import tilewright as tw
    >>> letters = tw.data.Vocabulary.from_text("hello")
    >>> letters.symbols, letters.encode("hole").tolist(), letters.decode(tw.asarray([1, 0]))
    ('ehlo', [1, 3, 2, 0], 'he')
    """

    def __init__(self, symbols: Iterable[str]) -> None:
        self.symbols = "".join(symbols)
        if not self.symbols:
            raise ValueError("Vocabulary: no symbols")
        if len(set(self.symbols)) != len(self.symbols):
            twice = next(c for i, c in enumerate(self.symbols) if c in self.symbols[:i])
            raise ValueError(f"Vocabulary: {twice!r} is given twice")
        points = list(map(ord, self.symbols))
        self._points = tw.asarray(points, dtype=tw.int32)
        numbers = [-1] * (max(points) + 2)  # the last stands for all characters beyond
        for number, point in enumerate(points):
            numbers[point] = number
        self._numbers = tw.asarray(numbers, dtype=tw.int64)

    @classmethod
    def from_text(cls, text: str) -> Vocabulary:
        """The characters of a text, in the order of their code points."""
        return cls(sorted(set(text)))

    def __len__(self) -> int:
        return len(self.symbols)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.symbols == other.symbols

    def __hash__(self) -> int:
        return hash(self.symbols)

    def __repr__(self) -> str:
        return f"Vocabulary({self.symbols!r})"

    def encode(self, text: str) -> Tensor:
        """The characters' numbers, int64 of one axis.

        Raises ValueError that names the characters that are not in the vocabulary, and where the
        first one stands.
        """
        content = text.encode(_UTF32, "surrogatepass")
        points = tw.frombuffer(content, dtype=tw.int32) if content else tw.empty(0, dtype=tw.int32)
        beyond = self._numbers.shape[0] - 1
        numbers = tw.take(self._numbers, tw.minimum(points, beyond).astype(tw.int64), axis=0)
        if numbers.size and numbers.min().item() < 0:
            raise ValueError(self._unknown(text))
        return numbers

    def decode(self, tokens: Any) -> str:
        """The text of a tensor or list of numbers; raises ValueError for one out of range."""
        points = tw.take(self._points, _tokens("Vocabulary", tokens, len(self)), axis=0)
        return bytes(memoryview(points)).decode(_UTF32, "surrogatepass") if points.size else ""

    def _unknown(self, text: str) -> str:
        known = set(self.symbols)
        unknown = list(dict.fromkeys(c for c in text if c not in known))
        named = ", ".join(map(repr, unknown[:_MOST_NAMED]))
        more = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
        place = text.index(unknown[0])
        return (
            f"Vocabulary: encode: {named}{more} not among the {len(self)} characters known; "
            f"the first at position {place}"
        )


class ByteVocabulary:
    """Bytes as they are: 256 symbols, for text of any language in UTF-8 and for files.

    >>> import tilewright as tw
    >>> tw.data.ByteVocabulary().encode("hé").tolist()
    [104, 195, 169]
    """

    def __len__(self) -> int:
        return 256

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByteVocabulary)

    def __hash__(self) -> int:
        return hash(ByteVocabulary)

    def __repr__(self) -> str:
        return "ByteVocabulary()"

    def encode(self, text: str | bytes) -> Tensor:
        """The bytes' numbers, int64 of one axis; a text's are those of its UTF-8."""
        content = text.encode() if isinstance(text, str) else bytes(text)
        if not content:
            return tw.empty(0, dtype=tw.int64)
        return tw.frombuffer(content, dtype=tw.uint8).astype(tw.int64)

    def decode(self, tokens: Any) -> str:
        """The text; bytes that are no UTF-8, such as half a character, become U+FFFD."""
        numbers = _tokens("ByteVocabulary", tokens, 256).astype(tw.uint8)
        return bytes(memoryview(numbers)).decode(errors="replace") if numbers.size else ""


class Windows(Dataset):
    """Windows of a long sequence for predicting what comes next: item i is `length` elements from
    `i * stride` on, and the same moved by one.

    `stride` defaults to `length`, windows that do not overlap; with 1 there is a window at each
    place, of which `RandomSampler` draws. Batches are gathered by native code: inputs and targets
    of shape (batch, length). Raises ValueError where the sequence holds no window.

    >>> import tilewright as tw
    >>> windows = tw.data.Windows(tw.arange(10), length=4)
    >>> len(windows), [part.tolist() for part in windows[1]]
    (2, [[4, 5, 6, 7], [5, 6, 7, 8]])
    """

    def __init__(self, sequence: Any, length: int, stride: int | None = None) -> None:
        self.sequence = as_tensor(sequence)
        self.length = whole("Windows", "length", length, 1)
        self.stride = self.length if stride is None else whole("Windows", "stride", stride, 1)
        if self.sequence.ndim != 1:
            raise ValueError(
                f"Windows: a sequence has one axis, this one shape {self.sequence.shape}"
            )
        if len(self.sequence) <= self.length:
            raise ValueError(
                f"Windows: a sequence of {len(self.sequence)} elements holds no window of "
                f"{self.length} and the element after it"
            )
        self._offsets = tw.arange(self.length + 1).reshape((1, -1))

    def __len__(self) -> int:
        return (len(self.sequence) - self.length - 1) // self.stride + 1

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        start = checked_index("Windows", index, len(self)) * self.stride
        end = start + self.length
        return self.sequence[start:end], self.sequence[start + 1 : end + 1]

    def __repr__(self) -> str:
        return f"Windows({len(self)} of {self.length}, stride={self.stride})"

    def gather(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and targets of the windows at `rows`."""
        starts = (rows if self.stride == 1 else rows * self.stride).reshape((-1, 1))
        both = tw.take(self.sequence, starts + self._offsets, axis=0)
        return both[:, :-1].contiguous(), both[:, 1:].contiguous()


def _tokens(who: str, tokens: Any, count: int) -> Tensor:
    """As an int64 tensor of one axis, every number below `count`."""
    found = as_tensor(tokens) if not isinstance(tokens, (list, tuple, range)) else None
    numbers = tw.asarray(list(tokens), dtype=tw.int64) if found is None else found
    if numbers.dtype.name.startswith(("float", "bfloat", "complex")):
        raise TypeError(f"{who}: decode: tokens are whole numbers, got {numbers.dtype.name}")
    numbers = numbers.reshape((-1,)).astype(tw.int64)
    if numbers.size and not 0 <= numbers.min().item() <= numbers.max().item() < count:
        low, high = numbers.min().item(), numbers.max().item()
        wrong = low if low < 0 else high
        raise ValueError(f"{who}: decode: token {wrong} is not one of 0 to {count - 1}")
    return numbers
