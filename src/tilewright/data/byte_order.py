"""Elements of the other byte order, as files of other machines have them."""

from __future__ import annotations

import array
import sys
from typing import Any

import tilewright as tw
from tilewright import Tensor

_OWN = "<" if sys.byteorder == "little" else ">"
# Arrays whose elements have so many bytes.
_CODES = {array.array(code).itemsize: code for code in "BHIQ"}


def is_foreign(order: str) -> bool:
    """Whether '<' or '>' is not this machine's order."""
    return order in "<>" and order != _OWN


def read_elements(content: Any, dtype: Any, order: str) -> Tensor:
    """The elements of one axis, in fresh memory."""
    width = dtype.itemsize // (2 if dtype.name.startswith("complex") else 1)
    if not is_foreign(order) or width == 1:
        # A copy, because the file's bytes are read-only and need not lie at a multiple of a size.
        return tw.frombuffer(bytes(content), dtype=dtype).copy()
    swapped = array.array(_CODES[width])
    swapped.frombytes(content)
    swapped.byteswap()
    return tw.frombuffer(swapped.tobytes(), dtype=dtype).copy()
