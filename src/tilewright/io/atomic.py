"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

TEMPORARY_SUFFIX = ".tilewright-tmp"
Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


@contextmanager
def atomic_writer(path: str, who: str) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` when the block ends without an exception.

    Raises OSError that starts with `who`, the function that the user called.
    """
    target = os.path.realpath(path)
    mode = _mode_of_regular_file(target, who)
    temporary = f"{target}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}"
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise _named(error, target, who) from None
        raise
    _sync_folder(os.path.dirname(target))


def write_whole(path: Path, content: bytes, who: str) -> None:
    """Writes a file that appears whole or not at all; to a device or a pipe, as it is.

    Raises OSError that starts with `who`.
    """
    name = os.fsdecode(path)
    if os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name):
        with open(name, "wb") as file:
            file.write(content)
        return
    with atomic_writer(name, who) as file:
        file.write(content)


def remove_temporaries(path: Path) -> None:
    """Removes what killed processes left of the file; none may be writing it at the moment.

    Raises OSError where a file cannot be removed.
    """
    target = os.path.realpath(os.fsdecode(path))
    pattern = re.compile(
        re.escape(os.path.basename(target)) + r"\.[0-9a-f]{8}" + re.escape(TEMPORARY_SUFFIX)
    )
    folder = os.path.dirname(target)
    for name in os.listdir(folder):
        if pattern.fullmatch(name):
            with suppress(OSError):  # it is only in the way
                os.unlink(os.path.join(folder, name))


def _mode_of_regular_file(target: str, who: str) -> int | None:
    """Permissions of the file to replace, None where there is none."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, f"{who}: is a folder", target)
    if not stat.S_ISREG(mode):
        text = f"{who}: not a regular file, it cannot be replaced atomically"
        raise OSError(errno.EINVAL, text, target)
    return stat.S_IMODE(mode)


def _named(error: OSError, target: str, who: str) -> OSError:
    """The same error about the target: the user does not know the temporary name."""
    return OSError(error.errno, f"{who}: {error.strerror}", target)


def _sync_folder(folder: str) -> None:
    """Makes the rename itself survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
