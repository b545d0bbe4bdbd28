"""Tiny Shakespeare: finds, reads and, when asked, downloads the text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tilewright._engine.cache import make_folder
from tilewright._engine.optional_packages import require
from tilewright.data.mnist import default_folder

_NAME = "tinyshakespeare"
_FILE = "input.txt"
_URL = f"https://raw.githubusercontent.com/karpathy/char-rnn/master/data/{_NAME}/{_FILE}"
_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
_REMEDY = (
    "give its folder, or any text file, as path (tilewright train shakespeare --data PATH), set "
    "TILEWRIGHT_DATA, or call tinyshakespeare(download=True) while on line"
)


def tinyshakespeare(path: str | os.PathLike[str] | None = None, download: bool = False) -> str:
    """The text of input.txt: 1,115,394 characters of Shakespeare's plays, 65 of them distinct.

    `path` is its folder, one that has it in a subfolder tinyshakespeare, or a text file of one's
    own; None stands for TILEWRIGHT_DATA, then the user's cache folder. `download` fetches the file
    into that folder (needs pooch), checked by SHA-256. Raises FileNotFoundError where there is
    none, ValueError where it is empty or no UTF-8.

    Source: A. Karpathy, char-rnn, 2015.
    """
    given = Path(path) if path is not None else default_folder(_NAME)
    file = _find(given, download)
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: no UTF-8 text: {error.reason} at byte {error.start}") from None
    if not text:
        raise ValueError(f"{file}: is empty")
    return text


def _find(given: Path, download: bool) -> Path:
    for file in (given, given / _FILE, given / _NAME / _FILE):
        if file.is_file():
            return file
    if not download:
        missing = f"no {_FILE} in {given}" if given.is_dir() else f"no file or folder {given}"
        raise FileNotFoundError(f"tinyshakespeare: {missing}; {_REMEDY}")
    pooch: Any = require("pooch", purpose="downloading the text", install="tilewright[data]")
    make_folder(os.fspath(given))
    found = pooch.retrieve(_URL, known_hash=f"sha256:{_SHA256}", fname=_FILE, path=given)
    return Path(found)
