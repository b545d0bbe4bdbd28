"""The command line: one module per command."""

from tilewright.cli.main import main

__all__ = ["main"]
