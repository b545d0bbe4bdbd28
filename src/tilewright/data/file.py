"""Rows that stay in their file until a batch asks for them."""

from __future__ import annotations

import math
import operator
import os
from typing import Any

import tilewright as tw
from tilewright import Tensor, _core, io
from tilewright.data.byte_order import is_foreign
from tilewright.data.compressed import GZIP_MAGIC
from tilewright.data.idx import parse_header
from tilewright.data.npy import LARGEST_START_BYTES
from tilewright.data.npy import parse_header as parse_npy_header

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]

# Four bytes of type and rank, then at most 255 sizes.
_LARGEST_IDX_HEADER_BYTES = 4 + 4 * 255


class FileTensor:
    """A tensor that lies in a file: `shape` and `dtype` from `offset_bytes` on, row-major.

    Indexing its first axis with an int, a slice or an int64 tensor reads those rows; `DataLoader`
    reads them ahead of their use. Elements have the machine's byte order. The file is opened once:
    removing or replacing it leaves the rows as they are, while writing to it or cutting it makes
    reading raise OSError. Raises FileNotFoundError, and ValueError for a file that is too small.

    >>> import tempfile, tilewright as tw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tw.save({"x": tw.arange(6).reshape((3, 2))}, f"{folder}/x.safetensors")
    ...     x = tw.data.FileTensor.from_safetensors(f"{folder}/x.safetensors", "x")
    ...     x.shape, x[-1].tolist()
    ((3, 2), [4, 5])
    """

    def __init__(
        self, path: Path, shape: tuple[int, ...], dtype: Any, offset_bytes: int = 0
    ) -> None:
        self.path = os.fsdecode(path)
        self.shape = tuple(_whole(self.path, "shape", size) for size in shape)
        self.offset_bytes = _whole(self.path, "offset_bytes", offset_bytes)
        self.dtype = tw.empty(0, dtype=dtype).dtype
        if not self.shape:
            raise ValueError(f"{self.path}: FileTensor: shape () has no axis to go along")
        if self.dtype == tw.bool:
            raise TypeError(
                f"{self.path}: FileTensor: bool elements hold only 0 and 1, those of a file any "
                "byte; use dtype uint8 and compare with 0"
            )
        self._file = _core.SourceFile(path)
        self._check_size()

    @classmethod
    def from_npy(cls, path: Path) -> FileTensor:
        """The array of a .npy file.

        Raises ValueError for a damaged header, Fortran order and foreign byte order, TypeError for
        element types that Tilewright does not have.
        Source of the format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
        """
        name = os.fsdecode(path)
        with open(path, "rb") as file:
            header = parse_npy_header(file.read(LARGEST_START_BYTES), name)
        if is_foreign(header.order):
            raise ValueError(
                f"{name}: {header.dtype.name} elements have foreign byte order; use read_npy(), or "
                "save array.astype(array.dtype.newbyteorder('='))"
            )
        if header.fortran_order:
            raise ValueError(
                f"{name}: the array is in Fortran order, its rows do not lie together; "
                "save np.ascontiguousarray(array)"
            )
        return cls(path, header.shape, header.dtype, header.offset)

    @classmethod
    def from_safetensors(cls, path: Path, name: str) -> FileTensor:
        """One tensor of a safetensors file, such as `tilewright.save` writes.

        Raises KeyError for a name that is not in the file and what `tilewright.load` raises.
        """
        shape, dtype, offset = io.locate(path, name)
        return cls(path, shape, dtype, offset)

    @classmethod
    def from_idx(cls, path: Path) -> FileTensor:
        """The bytes of an IDX file, the format of MNIST.

        Raises ValueError for a damaged header, for elements of several bytes, whose order is not
        the machine's, and for files compressed with gzip.
        """
        name = os.fsdecode(path)
        with open(path, "rb") as file:
            start = file.read(_LARGEST_IDX_HEADER_BYTES)
        if start.startswith(GZIP_MAGIC):
            raise ValueError(
                f"{name}: rows of a gzip stream cannot be read alone; decompress it with gunzip"
            )
        sizes, dtype, first = parse_header(start, name, 0)
        if dtype.itemsize > 1 and is_foreign(">"):
            raise ValueError(f"{name}: elements are {dtype.name}, big-endian; use read_idx()")
        return cls(path, sizes, dtype, first)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes in the file."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"FileTensor({self.path!r}, {self.shape}, tilewright.{self.dtype.name})"

    def __getitem__(self, key: int | slice | Tensor) -> Tensor:
        if isinstance(key, slice):
            return self._rows(tw.arange(*key.indices(len(self))))
        if isinstance(key, Tensor) and key.ndim == 1:
            return self._rows(key.astype(tw.int64) if _is_integer(key) else key)
        try:
            index = operator.index(key)
        except TypeError:
            raise TypeError(
                "FileTensor: an index is an int, a slice or an integer tensor of one axis, "
                f"got {type(key).__name__}"
            ) from None
        return self._rows(tw.asarray([index], dtype=tw.int64))[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.path, self.shape, self.dtype.name, self.offset_bytes)

    def gather(self, rows: Tensor) -> tuple[Tensor, _core.TransferEvent]:
        """Starts to read the rows at `rows` (int64, one axis); the tensor holds them once the event
        is done.

        Raises IndexError for rows that are not there.
        """
        out = tw.empty((rows.shape[0], *self.shape[1:]), dtype=self.dtype)
        event = _core._transfer_gather(self._file, out, rows, self.shape[0], self.offset_bytes)
        return out, event

    def _rows(self, rows: Tensor) -> Tensor:
        out, event = self.gather(rows)
        event.wait()
        return out

    def _check_size(self) -> None:
        needed, there = self.offset_bytes + self.nbytes, self._file.size_bytes
        if needed > there:
            raise ValueError(
                f"{self.path}: truncated: shape {self.shape} of {self.dtype.name} from byte "
                f"{self.offset_bytes} on needs {needed} bytes, the file has {there}"
            )


def _reopen(path: str, shape: tuple[int, ...], dtype: str, offset_bytes: int) -> FileTensor:
    return FileTensor(path, shape, dtype, offset_bytes)


def _is_integer(x: Tensor) -> bool:
    return x.dtype.name.startswith(("int", "uint"))


def _whole(path: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{path}: FileTensor: {name} takes whole numbers, got {value!r}")
    if value < 0:
        raise ValueError(f"{path}: FileTensor: {name} must be at least 0, got {value}")
    return operator.index(value)
