"""Reads IDX files, the format of MNIST: a big-endian header with type and sizes, then elements.

Source of the format: http://yann.lecun.com/exdb/mnist/ ("the IDX file format").
"""

from __future__ import annotations

import math
import os
import struct
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.data.byte_order import read_elements
from tilewright.data.compressed import GZIP_MAGIC, expanded

_TYPES = {
    0x08: "uint8",
    0x09: "int8",
    0x0B: "int16",
    0x0C: "int32",
    0x0D: "float32",
    0x0E: "float64",
}


def read_idx(
    path: str | os.PathLike[str],
    shape: tuple[int | None, ...] | None = None,
    *,
    dtype: Any = None,
    max_bytes: int | None = None,
) -> Tensor:
    """Reads one array from an IDX file, compressed with gzip or not.

    `shape` is what the caller expects, None for a size that may vary, `dtype` the type. Elements
    of several bytes, which such files have big-endian, are turned round. A compressed file may
    expand to `max_bytes` (default: a GiB, or 64 times its size). Raises FileNotFoundError, and
    ValueError that says what is wrong with which file.
    """
    data = read_bytes(path, max_bytes)
    tensor, end = parse_idx(data, os.fspath(path), shape=shape, dtype=dtype)
    if end != len(data):
        raise ValueError(
            f"{os.fspath(path)}: {len(data) - end} bytes too many after the last element"
        )
    return tensor


def read_bytes(path: str | os.PathLike[str], max_bytes: int | None = None) -> bytes:
    """The file's content, decompressed where it starts with gzip's magic bytes."""
    with open(path, "rb") as file:
        data = file.read()
    return expanded(data, os.fspath(path), max_bytes) if data.startswith(GZIP_MAGIC) else data


def parse_idx(
    data: bytes,
    name: str,
    *,
    offset: int = 0,
    shape: tuple[int | None, ...] | None = None,
    dtype: Any = None,
) -> tuple[Tensor, int]:
    """The array that starts at `offset`, and where it ends; `name` stands in errors."""
    sizes, held, first = parse_header(data, name, offset)
    if dtype not in (None, held):
        raise ValueError(f"{name}: elements are {held.name}, expected {dtype.name}")
    if shape is not None and not _fits(sizes, shape):
        expected = " x ".join("n" if size is None else str(size) for size in shape)
        raise ValueError(f"{name}: sizes are {_text(sizes)}, expected {expected}")
    end = first + math.prod(sizes) * held.itemsize
    if end > len(data):
        raise ValueError(
            f"{name}: truncated: {_text(sizes)} elements need {end - first} bytes, "
            f"{len(data) - first} are there"
        )
    if end == first:
        return tw.empty(sizes, dtype=held), end
    return read_elements(memoryview(data)[first:end], held, ">").reshape(sizes), end


def parse_header(data: bytes, name: str, offset: int) -> tuple[tuple[int, ...], Any, int]:
    """Sizes, type, and the position of the first element."""
    if len(data) - offset < 4:
        raise ValueError(f"{name}: truncated: {len(data) - offset} bytes are no IDX header")
    zero, code, ndim = struct.unpack_from(">HBB", data, offset)
    if zero or code not in _TYPES:
        magic = data[offset : offset + 4].hex(" ")
        raise ValueError(f"{name}: not an IDX file: starts with {magic}, expected 00 00 08 ..")
    first = offset + 4 + 4 * ndim
    if len(data) < first:
        raise ValueError(f"{name}: truncated: the header of {ndim} sizes is incomplete")
    return struct.unpack_from(f">{ndim}I", data, offset + 4), getattr(tw, _TYPES[code]), first


def _fits(sizes: tuple[int, ...], shape: tuple[int | None, ...]) -> bool:
    return len(sizes) == len(shape) and all(
        want is None or size == want for size, want in zip(sizes, shape, strict=True)
    )


def _text(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes)) or "scalar"
