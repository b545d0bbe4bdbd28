"""The embedded data set: 1,797 handwritten digits of 8x8 pixels (licence: digits-LICENSE.txt)."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import NamedTuple

from tilewright import Tensor
from tilewright.data.idx import parse_idx, read_bytes


class Digits(NamedTuple):
    """Images (n, 8, 8) uint8 with grey levels 0 to 16, labels (n,) uint8 from 0 to 9."""

    images: Tensor
    labels: Tensor


def digits() -> Digits:
    """The 1,797 digits in their original order.

    Source: E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine
    Learning Repository, 1998, CC BY 4.0.

    >>> import tilewright as tw
    >>> tw.data.digits().images.shape
    (1797, 8, 8)
    """
    with as_file(files("tilewright.data") / "digits.idx.gz") as path:
        data = read_bytes(path)
    images, end = parse_idx(data, "digits.idx.gz", shape=(None, 8, 8))
    labels, _ = parse_idx(data, "digits.idx.gz", offset=end, shape=(images.shape[0],))
    return Digits(images, labels)
