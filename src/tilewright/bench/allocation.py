"""A comparison in a fresh process in which the C library keeps its memory.

PyTorch, NumPy and JAX take the memory of a large result from the system and give it back after use:
much of their time is then page faults. That is what their users meet, but no merit of a kernel of
ours. `tuned`, malloc keeps what is freed and a second result costs no faults.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tilewright.bench.peers import child_environment

DEFAULT, TUNED, BOTH = ALLOCATIONS = ("default", "tuned", "both")
# No block is mapped on its own, and the heap's end returns to the system beyond 64 GiB only.
_KEEPS_MEMORY = {
    "GLIBC_TUNABLES": f"glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold={64 << 30}"
}


def start_of(allocation: str) -> dict[str, str]:
    """What the environment must hold when a process with this allocation starts."""
    if allocation != TUNED:
        return {}
    if not can_be_tuned():
        raise ValueError("--allocation tuned: only glibc's malloc is tuned by GLIBC_TUNABLES")
    return dict(_KEEPS_MEMORY)


def can_be_tuned() -> bool:
    """Whether this system's malloc listens."""
    return platform.libc_ver()[0] == "glibc"


def run_tuned(arguments: Sequence[str]) -> dict[str, Any]:
    """The JSON report of `tilewright bench` with these arguments, tuned, in a fresh process."""
    command = [sys.executable, "-m", "tilewright", "bench", *arguments]
    done = subprocess.run(
        [*command, "--allocation", TUNED, "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=child_environment(_KEEPS_MEMORY),
    )
    if done.returncode:
        raise OSError(f"bench: the process with tuned allocation failed: {done.stderr[-500:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report
