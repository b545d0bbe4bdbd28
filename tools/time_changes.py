"""Measures how long a change takes on this machine: builds and tests, without a compiler cache.

`python tools/time_changes.py [--write] [--all]` prints the table of CONTRIBUTING.md, and writes it
there. Nothing else may run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
PLACE = re.compile(r"(<!-- times: make times -->\n).*?(<!-- end of times -->)", re.S)
KERNEL = "core/cpu/normalization/softmax_loops.h"
OP = "core/ops/normalization/softmax.cpp"


def seconds(*command: str | Path, cwd: Path = ROOT) -> float:
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    began = time.monotonic()
    subprocess.run(command, cwd=cwd, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def copied(folder: Path) -> None:
    """The files that git knows, so that a clean build touches nothing of this checkout's."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, names.stdout.decode().split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())


def builds(kernel: str, op: str) -> dict[str, float]:
    """The extension module with kernels of all sets, and again after one file changed."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        copied(copy)
        nanobind = [sys.executable, "-m", "nanobind", "--cmake_dir"]
        folder = subprocess.run(nanobind, capture_output=True, text=True, check=True).stdout
        options = [
            "-DCMAKE_BUILD_TYPE=Release",
            f"-Dnanobind_DIR={folder.strip()}",
            f"-DPython_EXECUTABLE={sys.executable}",
        ]
        build = ("cmake", "--build", "build")
        configured = seconds("cmake", "-S", ".", "-B", "build", "-G", "Ninja", *options, cwd=copy)
        found["a clean build, all instruction sets"] = configured + seconds(*build, cwd=copy)
        for path, what in ((kernel, "one kernel file"), (op, "one op file")):
            (copy / path).write_bytes((copy / path).read_bytes() + b"\n")
            found[f"a build after {what} changed (`{path}`)"] = seconds(*build, cwd=copy)
    return found


def tests(names: list[str]) -> dict[str, float]:
    seconds("make", "build", ".venv/.test")
    return {f"`make {name}`, built": seconds("make", name) for name in names}


def processor() -> str:
    info = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", info.read_text()) if info.exists() else []
    return names[0] if names else platform.processor() or platform.machine()


def table(found: dict[str, float]) -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    rows = [f"| {what} | {int(s // 60)}:{round(s % 60):02} |" for what, s in found.items()]
    return "\n".join([f"| on {cores} cores of {processor()} | min:s |", "|---|---|", *rows, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    parser.add_argument("--all", action="store_true", help="`make test-all` too")
    parser.add_argument("--kernel", default=KERNEL, help="the kernel file that is changed")
    parser.add_argument("--op", default=OP, help="the op's file that is changed")
    options = parser.parse_args()
    found = builds(options.kernel, options.op)
    found |= tests(["test", "test-all"] if options.all else ["test"])
    text = table(found)
    print(text)
    if options.write:
        page, count = PLACE.subn(lambda match: match[1] + text + match[2], PAGE.read_text())
        assert count == 1, f"{PAGE.name} has no place for the times"
        PAGE.write_text(page)


if __name__ == "__main__":
    main()
