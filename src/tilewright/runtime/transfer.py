"""Copies that run beside the program: between files and tensors, and between tensors."""

from __future__ import annotations

import atexit
import os
from typing import Any

from tilewright import Tensor, _core
from tilewright._core import TransferEvent as Event

__all__ = ["Event", "cancel_task", "copy", "read", "set_in_flight", "stats", "write"]

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def read(path: Path, out: Tensor, offset_bytes: int = 0, priority: int = 0) -> Event:
    """Fills `out` with the bytes of a file from `offset_bytes` on, while the program goes on.

    `out` is contiguous and writable; its values are unspecified until the event is done. Higher
    priority starts first. Raises ValueError for targets that cannot be filled; `Event.wait` raises
    OSError, with the path, where the file cannot be read or ends early.

    >>> import tempfile, tilewright as tw
    >>> from tilewright.runtime import transfer
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     transfer.write(file.name, tw.arange(4)).wait()
    ...     x = tw.zeros(2, dtype=tw.int64)
    ...     transfer.read(file.name, x, offset_bytes=16).wait()
    ...     x.tolist()
    [2, 3]
    """
    return _core._transfer_read(path, out, offset_bytes, priority)


def write(path: Path, x: Tensor, offset_bytes: int = 0, priority: int = 0) -> Event:
    """Writes the elements of `x` in row-major order to a file, from `offset_bytes` on.

    Creates the file where there is none and keeps what it holds elsewhere; `tilewright.save` writes
    whole files that appear at once or not at all. Do not change `x` before the event is done.
    `Event.wait` raises OSError, with the path, where not every byte could be written. A program
    that ends waits for its writes.
    """
    return _core._transfer_write(path, x, offset_bytes, priority)


def copy(src: Tensor, dst: Tensor, priority: int = 0) -> Event:
    """Copies `src` to `dst`, of the same shape and dtype, while the program goes on.

    Either may be on a GPU: copies to one are of the queue "upload", from one of "download", and
    come after what this thread asked of the GPU so far. Raises ValueError for tensors that differ
    in shape or dtype, share memory or are not contiguous.

    >>> import tilewright as tw
    >>> from tilewright.runtime import transfer
    >>> x, y = tw.ones(3), tw.zeros(3)
    >>> transfer.copy(x, y).wait()
    >>> y.tolist()
    [1.0, 1.0, 1.0]
    """
    return _core._transfer_copy(src, dst, priority)


def stats() -> dict[str, dict[Any, dict[str, int]]]:
    """Figures of transfers: "queues" by name, "tasks" by the scheduler's number of a task.

    Counts, `bytes` moved, `busy_ns` on a thread, `waiting_ns` before the start, `peak_in_flight`.

    >>> from tilewright.runtime import transfer
    >>> sorted(transfer.stats()["queues"])
    ['background', 'copy', 'download', 'read', 'upload', 'write']
    """
    return _core._transfer_stats()


def set_in_flight(queue: str, limit: int) -> None:
    """Sets how many transfers of a queue may run at once (1 to 16).

    Raises ValueError for an unknown queue or another limit.
    """
    _core._transfer_set_in_flight(queue, limit)


def cancel_task(id: int) -> int:
    """Cancels the transfers that a scheduler's task has in flight; returns how many there were."""
    return _core._transfer_cancel_task(id)


def _finish_writes() -> None:
    """Short waits, so that Ctrl-C still ends a program whose disk does not answer."""
    while not _core._transfer_wait_idle("write", 0.05):
        pass


atexit.register(_finish_writes)
