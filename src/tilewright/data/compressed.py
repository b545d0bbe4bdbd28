"""Compressed files, expanded up to a bound: a few kilobytes can stand for a whole memory."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from tilewright.data.checks import whole

GZIP_MAGIC = b"\x1f\x8b"
_PIECE_BYTES = 1 << 20
# A GiB is held by any machine; data that shrink to less than a 64th are rare.
_LEAST_BOUND, _USUAL_RATIO = 1 << 30, 64


class Bound:
    """How many bytes a file of `compressed_bytes` may expand to: `max_bytes`, where it is given."""

    def __init__(self, name: str, compressed_bytes: int, max_bytes: int | None) -> None:
        if max_bytes is None:
            max_bytes = max(_LEAST_BOUND, _USUAL_RATIO * compressed_bytes)
        self._name, self._compressed = name, compressed_bytes
        self._most = whole(name, "max_bytes", max_bytes, 0)
        self._taken = 0

    def take(self, count: int) -> None:
        """Counts bytes that are expanded next; raises ValueError where they are too many."""
        self._taken += count
        if self._taken > self._most:
            raise ValueError(
                f"{self._name}: {self._compressed} compressed bytes expand to {self._taken} or "
                f"more, above the bound of {self._most}; give max_bytes= where that is right"
            )


def expanded(content: bytes, name: str, max_bytes: int | None) -> bytes:
    """What a gzip stream holds."""
    bound, parts = Bound(name, len(content), max_bytes), []
    with damage_told(name), gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
        while part := stream.read(_PIECE_BYTES):
            bound.take(len(part))
            parts.append(part)
    return b"".join(parts)


@contextmanager
def damage_told(name: str) -> Iterator[None]:
    """Turns what gzip raises of a damaged stream into ValueError."""
    try:
        yield
    except EOFError:
        raise ValueError(f"{name}: truncated: the gzip stream ends too early") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{name}: damaged gzip data: {error}") from None


class BoundedReader(io.RawIOBase):
    """A gzip file as bytes to read, up to a bound."""

    def __init__(self, file: IO[bytes], bound: Bound) -> None:
        self._stream, self._bound = gzip.GzipFile(fileobj=file), bound

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._stream.readinto(buffer)
        self._bound.take(count)
        return count
