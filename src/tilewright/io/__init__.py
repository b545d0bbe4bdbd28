"""Tensors in files, alone or in nested dictionaries: safetensors, written atomically.

Source of the format: https://github.com/huggingface/safetensors (8 bytes length, a JSON header,
the elements). It is read and written here rather than by the safetensors package so that tensors
of every dtype, bfloat16 and complex64 included, go between file and tensor memory without a copy
and without NumPy.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import tilewright as tw
from tilewright import Tensor
from tilewright.io import nesting
from tilewright.io.atomic import TEMPORARY_SUFFIX as TEMPORARY_SUFFIX
from tilewright.io.atomic import Path, atomic_writer
from tilewright.io.atomic import remove_temporaries as remove_temporaries
from tilewright.io.atomic import write_whole as write_whole

_CODES = {
    "bool": "BOOL",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
}
_NAMES = {code: name for name, code in _CODES.items()}
# The format's own limit on headers; a longer one is damage, and must not be read into memory.
_LARGEST_HEADER_BYTES = 100_000_000
# What else tensors are kept in, by its first bytes.
_OTHER_FORMATS = {
    b"PK\x03\x04": "an archive, as torch.save and numpy.savez write: load it with torch or NumPy",
    b"\x93NUMPY": "an array of NumPy: read it with numpy.load",
    b"\x89HDF": "an HDF5 file",
}
# The engine's own limit on axes.
_LARGEST_RANK = 32
# The text of a nested structure, among the metadata; other readers see the flat tensors.
_STRUCTURE = "tilewright:structure"

File = Path | IO[bytes]


class _Entry(NamedTuple):
    """One tensor of a file: bytes [start, end) after the header."""

    name: str
    dtype: Any
    shape: tuple[int, ...]
    start: int
    end: int


def save(
    tensors: Mapping[str, Any],
    path: File,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes named tensors, such as a module's `state_dict()`, as a safetensors file.

    Values may be dicts, lists, tuples, texts, numbers, bools and None as well, so that a whole
    checkpoint is one file: tensors get dotted names, the rest stands as JSON in the metadata.

    The file appears whole or not at all: after a failure or a kill an older file of that name is
    intact. A binary file that is open, such as io.BytesIO, is written to where it stands. Raises
    TypeError for what is neither, ValueError for a name that is no valid Unicode and OSError, with
    the path, where the file cannot be written.

    >>> import tempfile, tilewright as tw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tw.save({"model": {"x": tw.asarray([1.0, 2.0])}, "epoch": 3}, f"{folder}/x.safetensors")
    ...     held = tw.load(f"{folder}/x.safetensors")
    ...     held["model"]["x"].tolist(), held["epoch"]
    ([1.0, 2.0], 3)
    """
    _check_names(tensors)
    _check_metadata(metadata)
    if not nesting.is_flat(tensors):
        tensors, structure = nesting.flatten(tensors)
        metadata = {**(metadata or {}), _STRUCTURE: structure}
    # Largest elements first keeps every tensor aligned to its element size.
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    header = _header({name: tensors[name] for name in names}, metadata)
    with _written(path) as file:
        _write_all(file, header, len(header))
        for name in names:
            if tensors[name].size:
                x = tensors[name].detach()
                # What is on the null device has no values to write.
                x = (x.to("cpu") if x.device.startswith("cuda") else x).contiguous()
                _write_all(file, x, x.nbytes)


def load(
    path: File, map_location: str | None = None, *, weights_only: bool = True
) -> dict[str, Any]:
    """Reads all tensors of a safetensors file, in the nested structure in which they were saved.

    An open binary file is read from where it stands to its end. `map_location` is the device that
    they go to, the CPU where left out. `weights_only` is taken for PyTorch's programs and changes
    nothing: a file holds no code.

    Raises FileNotFoundError, ValueError that says what is wrong with a damaged or truncated file,
    and TypeError for element types that Tilewright does not have.
    """
    with _opened(path) as (file, shown):
        entries, metadata, first = _read_header(file, shown)
        tensors = {entry.name: _read_tensor(file, first, entry, shown) for entry in entries}
    if map_location is not None:
        tensors = {name: tensor.to(map_location) for name, tensor in tensors.items()}
    if _STRUCTURE not in metadata:
        return tensors
    try:
        return nesting.restore(metadata[_STRUCTURE], tensors)
    except ValueError as error:
        raise ValueError(f"{shown}: {error}") from None


def load_metadata(path: File) -> dict[str, str]:
    """The texts that were saved beside the tensors.

    Raises FileNotFoundError, and ValueError for a damaged file.
    """
    with _opened(path) as (file, shown):
        metadata = _read_header(file, shown)[1]
    metadata.pop(_STRUCTURE, None)
    return metadata


def names(path: File) -> list[str]:
    """The names of the tensors in a safetensors file, in the order of their bytes.

    Raises FileNotFoundError, and ValueError for a damaged file.
    """
    with _opened(path) as (file, shown):
        return [entry.name for entry in _read_header(file, shown)[0]]


def locate(path: File, name: str) -> tuple[tuple[int, ...], Any, int]:
    """Shape, dtype and first byte of one tensor in a safetensors file.

    Raises KeyError, with the names there are, for another name, and what `load` raises.
    """
    with _opened(path) as (file, shown):
        entries, _, first = _read_header(file, shown)
    for entry in entries:
        if entry.name == name:
            return entry.shape, entry.dtype, first + entry.start
    known = ", ".join(repr(entry.name) for entry in entries) or "none"
    raise KeyError(f"{shown}: no tensor {name!r}; there are: {known}")


@contextmanager
def _opened(file: File) -> Iterator[tuple[IO[bytes], str]]:
    """The file, and its name in messages."""
    if not isinstance(file, (str, bytes, os.PathLike)):
        _check_open("load", file, "readinto")
        name = str(getattr(file, "name", type(file).__name__))
        if _gives_parts(file):
            reader = io.BufferedReader(file)  # type: ignore[type-var]  # any IOBase will do
            try:
                yield reader, name
                file.seek(reader.tell())
            finally:
                reader.detach()
        else:
            yield file, name
        return
    path = os.fsdecode(file)
    with open(path, "rb") as opened:
        yield opened, path


@contextmanager
def _written(file: File) -> Iterator[IO[bytes]]:
    if not isinstance(file, (str, bytes, os.PathLike)):
        _check_open("save", file, "write")
        if _gives_parts(file):
            writer = io.BufferedWriter(file)
            try:
                yield writer
            finally:
                writer.detach()
        else:
            yield file
        return
    with atomic_writer(os.fsdecode(file), "save") as opened:
        yield opened


def _write_all(file: IO[bytes], content: Any, size: int) -> None:
    written = file.write(content)
    if isinstance(written, int) and written != size:
        raise OSError(errno.EIO, f"save: the file took {written} of {size} bytes")


def _gives_parts(file: Any) -> bool:
    """Whether a call may read or write less than it was asked to, as those of raw files do."""
    whole = (io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.BytesIO)
    return isinstance(file, io.IOBase) and not isinstance(file, whole)


def _check_open(who: str, file: Any, method: str) -> None:
    if not hasattr(file, method) or hasattr(file, "encoding"):
        got = type(file).__name__
        raise TypeError(
            f"{who}: expected str, bytes or os.PathLike, or an open binary file, got {got}"
        )


def _check_names(tensors: Any) -> None:
    if not isinstance(tensors, Mapping):
        raise TypeError(
            f"save: expected a dict of tensors, such as model.state_dict(), "
            f"got {type(tensors).__name__}"
        )
    for name in tensors:
        if not isinstance(name, str) or name == "__metadata__":
            raise TypeError(f"save: {name!r} cannot name a tensor")
        if not _is_unicode(name):
            raise ValueError(f"save: {name!r} cannot name a tensor: it holds a lone surrogate")


def _check_metadata(metadata: Mapping[str, str] | None) -> None:
    for key, value in (metadata or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"save: metadata maps text to text; {key!r}: {value!r} does not")
        if key == _STRUCTURE:
            raise ValueError(f"save: metadata {key!r} is the name of the nested structure's text")
        if not _is_unicode(key + value):
            raise ValueError(f"save: metadata {key!r}: {value!r} holds a lone surrogate")


def _is_unicode(text: str) -> bool:
    """Whether UTF-8 can hold it; JSON's escapes and file names can bring lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _header(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> bytes:
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, tensor in tensors.items():
        if tensor.dtype.name not in _CODES:
            raise TypeError(
                f"save: {name} is {tensor.dtype}, for which the format has no code; "
                "save tw.view_as_real of it"
            )
        start, end = end, end + tensor.nbytes
        header[name] = {
            "dtype": _CODES[tensor.dtype.name],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _LARGEST_HEADER_BYTES:
        raise ValueError(
            f"save: names and values beside the tensors take {len(text)} bytes, the format allows "
            f"{_LARGEST_HEADER_BYTES}; make tensors of long lists"
        )
    return struct.pack("<Q", len(text)) + text


def _read_header(file: IO[bytes], path: str) -> tuple[list[_Entry], dict[str, str], int]:
    """Checked entries, metadata, and where the tensors' bytes start."""
    if not file.seekable():
        raise ValueError(f"{path}: not a safetensors file: it cannot be read out of order")
    begin = file.tell()
    file_bytes = file.seek(0, os.SEEK_END) - begin
    file.seek(begin)
    if file_bytes < 8:
        raise ValueError(f"{path}: not a safetensors file: {file_bytes} bytes are no header")
    start = file.read(8)
    (length,) = struct.unpack("<Q", start)
    if length > min(file_bytes - 8, _LARGEST_HEADER_BYTES):
        for magic, other in _OTHER_FORMATS.items():
            if start.startswith(magic):
                raise ValueError(f"{path}: not a safetensors file but {other}")
        raise ValueError(
            f"{path}: truncated or not a safetensors file: it promises a header of {length} bytes "
            f"and has {file_bytes - 8}"
        )
    header = _parse_json(file.read(length), path)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError(f"{path}: metadata is not a table of texts")
    entries = [_parse_entry(name, value, path) for name, value in header.items()]
    _check_layout(entries, file_bytes - 8 - length, path)
    return entries, metadata, begin + 8 + length


def _parse_json(text: bytes, path: str) -> dict[str, Any]:
    try:
        header = json.loads(text.decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a safetensors file: damaged header: {error}") from None
    if not isinstance(header, dict):
        raise ValueError(f"{path}: not a safetensors file: the header is no table")
    return header


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a name stands there twice")
    return table


def _parse_entry(name: str, value: Any, path: str) -> _Entry:
    try:
        code, shape, (start, end) = value["dtype"], tuple(value["shape"]), value["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise ValueError(f"{path}: tensor {name!r}: damaged header entry") from None
    if not isinstance(code, str) or not _is_unicode(name):
        raise ValueError(
            f"{path}: tensor {name!r}: damaged header entry: no text where one must be"
        )
    if not all(type(number) is int and number >= 0 for number in (*shape, start, end)):
        raise ValueError(f"{path}: tensor {name!r}: sizes and offsets must be whole and positive")
    if code not in _NAMES:
        raise TypeError(
            f"{path}: tensor {name!r} has element type {code}, which Tilewright does not have; "
            f"known: {', '.join(_NAMES)}"
        )
    dtype = getattr(tw, _NAMES[code])
    if len(shape) > _LARGEST_RANK or math.prod(filter(None, shape)) * dtype.itemsize >= 2**63:
        raise ValueError(
            f"{path}: tensor {name!r}: shape {shape} has more than {_LARGEST_RANK} axes or more "
            "bytes than 64 bits count"
        )
    if math.prod(shape) * dtype.itemsize != end - start:
        raise ValueError(
            f"{path}: tensor {name!r}: shape {shape} of {code} does not fill {end - start} bytes"
        )
    return _Entry(name, dtype, shape, start, end)


def _check_layout(entries: list[_Entry], data_bytes: int, path: str) -> None:
    """Tensors must follow one another and fill the file: neither holes nor overlaps nor a cut."""
    position = 0
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.end)):
        if entry.start != position:
            raise ValueError(
                f"{path}: tensor {entry.name!r}: starts at {entry.start}, not {position}"
            )
        position = entry.end
    if position > data_bytes:
        raise ValueError(f"{path}: truncated: {position} bytes of tensors, {data_bytes} are there")
    if position < data_bytes:
        raise ValueError(f"{path}: {data_bytes - position} bytes too many after the last tensor")


def _read_tensor(file: IO[bytes], first: int, entry: _Entry, path: str) -> Tensor:
    tensor = tw.empty(entry.shape, dtype=entry.dtype, device="cpu")
    if tensor.size:
        file.seek(first + entry.start)
        if file.readinto(tensor) != tensor.nbytes:  # type: ignore[attr-defined]
            raise ValueError(f"{path}: truncated while reading tensor {entry.name!r}")
        if entry.dtype == tw.bool and _largest_byte(tensor) > 1:
            raise ValueError(f"{path}: tensor {entry.name!r}: a BOOL byte is neither 0 nor 1")
    return tensor


def _largest_byte(tensor: Tensor) -> int:
    return int(tw.frombuffer(memoryview(tensor), dtype=tw.uint8).max().item())
