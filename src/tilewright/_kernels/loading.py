"""Kernels from outside: libraries of `tilewright_kernel.h`, loaded by path or by entry point."""

from __future__ import annotations

import ctypes
import os
import threading
import warnings

from tilewright import _core

ENTRY_POINTS = "tilewright.kernels"

_lock = threading.RLock()
_loaded: dict[str, list[tuple[str, str]]] = {}  # op and name of each kernel, by the library's path
_kept: list[ctypes.CDLL] = []  # libraries stay for as long as the process lives
_looked_for_installed = False


class _Kernel(ctypes.Structure):
    _fields_ = (
        ("op", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("help", ctypes.c_char_p),
        ("accepts", ctypes.c_void_p),
        ("cost_ns", ctypes.c_void_p),
        ("run", ctypes.c_void_p),
    )


class _Kernels(ctypes.Structure):
    _fields_ = (
        ("abi", ctypes.c_int32),
        ("count", ctypes.c_int32),
        ("kernels", ctypes.POINTER(_Kernel)),
    )


def load(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Registers the kernels of a library; what was loaded before is loaded once."""
    where = os.path.realpath(os.fspath(path))
    with _lock:
        if where in _loaded:
            return list(_loaded[where])
        if not os.path.isfile(where):
            raise FileNotFoundError(f"kernels.load: no file {os.fspath(path)!r}")
        library = ctypes.CDLL(where)
        try:
            table_of = library.tilewright_kernels
        except AttributeError:
            raise ValueError(
                f"kernels.load: {os.fspath(path)!r} exports no function tilewright_kernels; "
                "`tilewright kernel new` writes a library that does"
            ) from None
        table_of.restype = ctypes.POINTER(_Kernels)
        table = table_of()
        if not table:
            raise ValueError(f"kernels.load: tilewright_kernels of {os.fspath(path)!r} gave null")
        _kept.append(library)
        _core._add_external_kernels(ctypes.addressof(table.contents))
        given = [table.contents.kernels[i] for i in range(table.contents.count)]
        _loaded[where] = [(kernel.op.decode(), kernel.name.decode()) for kernel in given]
        return list(_loaded[where])


def load_installed() -> None:
    """Loads the libraries that installed packages name, once a process.

    An entry point of the group `tilewright.kernels` is a function that returns a library's path.
    Where that fails, a warning says whose it is: the others are loaded all the same.
    """
    global _looked_for_installed  # noqa: PLW0603  (once a process)
    with _lock:
        if _looked_for_installed:
            return
        _looked_for_installed = True
        from importlib import metadata  # noqa: PLC0415  (20 ms that most programs do without)

        for point in metadata.entry_points(group=ENTRY_POINTS):
            try:
                load(point.load()())
            except Exception as error:
                warnings.warn(
                    f"kernels of the entry point {point.name!r} ({point.value}) are not loaded: "
                    f"{error}",
                    RuntimeWarning,
                    stacklevel=3,
                )
