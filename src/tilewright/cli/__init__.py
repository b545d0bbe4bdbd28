"""The command line: one module per command."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    try:
        # The commands take long enough to load that someone may interrupt it.
        from tilewright.cli.commands import run  # noqa: PLC0415  (imported on use)

        return run(argv)
    except KeyboardInterrupt:
        print("tilewright: interrupted", file=sys.stderr)
        return 130


__all__ = ["main"]
