"""Optional packages: imported on first use, with an error that says how to get them."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any


def require(module: str, *, purpose: str, install: str) -> Any:
    """The module; raises ImportError that says what needs it and how to install it.

    >>> require("json", purpose="read reports", install="json").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{purpose} needs the package {package!r}, which is not installed: "
            f"pip install '{install}'"
        ) from error


def available(module: str) -> bool:
    """Whether the package can be found, without importing it."""
    return importlib.util.find_spec(module) is not None
