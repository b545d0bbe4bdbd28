"""Under which conditions a figure was taken: what saved figures must share to be compared."""

from __future__ import annotations

import platform
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import tilewright as tw


def processor() -> str:
    """The processor's name, as the system tells it."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    name = found[1] if found else platform.processor() or platform.machine()
    return " ".join(name.split())


def conditions(threads: int) -> dict[str, Any]:
    """Version, processor, instruction set, threads, and the date."""
    return {
        "version": tw.__version__,
        "processor": processor(),
        "isa": tw.active_isa(),
        "threads": threads,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
