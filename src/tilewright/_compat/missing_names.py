"""What to write instead of PyTorch's names that the package has not."""

from __future__ import annotations

from tilewright import _core


def remedy(name: str) -> str:
    """ ": what to write", or nothing for a name that nobody asks for."""
    told = _core._remedies("package").get(name)
    return f": {told}" if told else ""
