"""Reads NumPy's files: .npy, one array, and .npz, a zip archive of them.

Source of the format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

from __future__ import annotations

import ast
import errno
import math
import os
import struct
import zipfile
import zlib
from typing import Any, NamedTuple

import tilewright as tw
from tilewright import Tensor
from tilewright.data.byte_order import read_elements
from tilewright.data.compressed import Bound

_MAGIC = b"\x93NUMPY"
# NumPy itself refuses longer headers, for the same reason: evaluating them takes memory and time.
_LARGEST_HEADER_BYTES = 10_000
LARGEST_START_BYTES = 12 + _LARGEST_HEADER_BYTES
_ZIP_MAGIC = b"PK"


class Header(NamedTuple):
    """What stands before the elements, which begin at `offset`."""

    shape: tuple[int, ...]
    dtype: Any
    fortran_order: bool
    offset: int
    order: str  # of the bytes: '<', '>', or '|' where there is none


def read_npy(path: str | os.PathLike[str]) -> Tensor:
    """The array of a .npy file, in row-major order.

    Elements of the other byte order are turned round. Raises FileNotFoundError, ValueError for a
    damaged file, TypeError for element types that Tilewright does not have.
    """
    with open(path, "rb") as file:
        content = file.read()
    name = os.fspath(path)
    return _array(content, parse_header(content[:LARGEST_START_BYTES], name), name)


def read_npz(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> dict[str, Tensor]:
    """The arrays of a .npz file by name, compressed or not.

    Together they may take `max_bytes` (default: a GiB, or 64 times the file's size); no more than
    that is expanded. Raises FileNotFoundError, ValueError for a damaged file, and what `read_npy`
    raises, with the array's name.
    """
    name = os.fspath(path)
    bound = Bound(name, os.path.getsize(path), max_bytes)
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                entry.filename.removesuffix(".npy"): _entry(archive, entry, name, bound)
                for entry in archive.infolist()
            }
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError) as error:
        # A damaged directory may say that an array begins before the file.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise ValueError(f"{name}: damaged, or not a .npz file: {error}") from None


def _entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str, bound: Bound) -> Tensor:
    """One array; of what does not fit its header only the first byte too many is expanded."""
    name = f"{name}: {entry.filename}"
    with archive.open(entry) as stream:
        start = stream.read(LARGEST_START_BYTES)
        header = parse_header(start, name)
        size = header.offset + _size_bytes(header, name)
        bound.take(max(size, len(start)))
        rest = stream.read(size - len(start) + 1) if size >= len(start) else b""
    return _array(start + rest, header, name)


def _size_bytes(header: Header, name: str) -> int:
    if not all(type(size) is int and size >= 0 for size in header.shape):
        raise ValueError(f"{name}: damaged .npy header: shape {header.shape}")
    return math.prod(header.shape) * int(header.dtype.itemsize)


def parse_header(start: bytes, name: str) -> Header:
    """The header of a file that starts with `start`; `name` stands in errors."""
    if len(start) < 10 or not start.startswith(_MAGIC):
        hint = ", a .npz archive: use read_npz()" if start.startswith(_ZIP_MAGIC) else ""
        raise ValueError(f"{name}: not a .npy file: starts with {start[:6]!r}{hint}")
    if start[6] not in (1, 2, 3):
        raise ValueError(f"{name}: .npy version {start[6]} is unknown; known: 1, 2, 3")
    # Version 1 counts the header in two bytes, later ones in four; 3 allows UTF-8.
    layout, first = ("<H", 10) if start[6] == 1 else ("<I", 12)
    if len(start) < first:
        raise ValueError(f"{name}: truncated: {len(start)} bytes are no .npy header")
    (length,) = struct.unpack_from(layout, start, 8)
    if length > min(len(start) - first, _LARGEST_HEADER_BYTES):
        raise ValueError(
            f"{name}: truncated or damaged: the .npy header of {length} bytes is not there whole"
        )
    try:
        header = ast.literal_eval(start[first : first + length].decode("utf-8").strip())
        complete = header.keys() == {"descr", "fortran_order", "shape"}
    except (ValueError, SyntaxError, AttributeError, MemoryError, RecursionError):
        complete = False
    if not complete or not isinstance(header["shape"], tuple):
        raise ValueError(f"{name}: damaged .npy header")
    descr = header["descr"]
    dtype = _dtype(descr, name)
    return Header(header["shape"], dtype, bool(header["fortran_order"]), first + length, descr[0])


def _array(content: bytes, header: Header, name: str) -> Tensor:
    shape = header.shape
    needed, there = _size_bytes(header, name), len(content) - header.offset
    if needed != there:
        wrong = "truncated" if needed > there else "damaged"
        raise ValueError(
            f"{name}: {wrong}: shape {shape} of {header.dtype.name} takes {needed} bytes, "
            f"{there} are there"
        )
    if not needed:
        return tw.empty(shape, dtype=header.dtype)
    elements = _elements(memoryview(content)[header.offset :], header, name)
    if header.fortran_order:
        return (
            elements.reshape(shape[::-1]).permute_dims(tuple(range(len(shape)))[::-1]).contiguous()
        )
    return elements.reshape(shape)


def _elements(content: memoryview, header: Header, name: str) -> Tensor:
    if header.dtype == tw.bool:
        numbers = tw.frombuffer(content, dtype=tw.uint8)
        if numbers.max().item() > 1:
            raise ValueError(f"{name}: damaged: a bool byte is neither 0 nor 1")
        return numbers.astype(tw.bool)
    return read_elements(content, header.dtype, header.order)


def _dtype(descr: Any, name: str) -> Any:
    """Ours for NumPy's text such as '<f4': byte order, kind, bytes."""
    if isinstance(descr, str) and "O" in descr:
        raise TypeError(
            f"{name}: the array holds Python objects, not numbers; save it with a numeric dtype"
        )
    kinds = {"i": "int", "u": "uint", "f": "float", "c": "complex"}
    known = isinstance(descr, str) and descr[1:2] in kinds and descr[2:].isdigit()
    if isinstance(descr, str) and descr[1:] == "b1":
        return tw.bool
    dtype = getattr(tw, f"{kinds[descr[1]]}{8 * int(descr[2:])}", None) if known else None
    if dtype is None:
        raise TypeError(f"{name}: Tilewright has no dtype for NumPy's {descr!r}")
    return dtype
