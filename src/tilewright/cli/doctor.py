"""`tilewright doctor`: checks the surroundings and says what to do about what is missing."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import tilewright as tw
from tilewright._engine.cache import cache_folder
from tilewright._engine.optional_packages import available
from tilewright.cli import arguments
from tilewright.cli.console import Console, format_bytes
from tilewright.data.mnist import default_folder, missing_files

OK, NOTE, PROBLEM = "ok", "note", "problem"

# Module, what it is for, how to get it.
_PACKAGES = (
    ("rich", "tables and progress", "rich"),
    ("platformdirs", "the cache folder", "platformdirs"),
    ("numpy", "exchange of arrays", "numpy"),
    ("matplotlib", "pictures (--plot)", "tilewright[plot]"),
    ("pooch", "download of data sets", "tilewright[data]"),
    ("torch", "comparisons (bench)", "tilewright[bench]"),
)
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@dataclass(frozen=True)
class Finding:
    """One check: what was looked at, how it stands, and what to do."""

    what: str
    status: str
    detail: str
    remedy: str = ""


def add_parser(commands: arguments.Subparsers) -> None:
    """Adds the command."""
    arguments.add_parser(
        commands, "doctor", run, "check the installation and say what is missing and what to do"
    )


def run(args: argparse.Namespace) -> int:
    """Prints all findings; exit code 1 where one of them is a problem."""
    console = Console.of(args)
    findings = [finding for check in CHECKS for finding in check()]
    rows = [(f.what, f.status, f.detail) for f in findings]
    console.table("tilewright doctor", ("what", "status", "detail"), rows, text=True)
    for finding in findings:
        if finding.remedy:
            console.text(f"{finding.what}: {finding.remedy}")
    console.json({"findings": [asdict(finding) for finding in findings]})
    return 1 if any(finding.status == PROBLEM for finding in findings) else 0


def check_engine() -> list[Finding]:
    """Whether the native part computes, and on which instruction set."""
    info = tw._core.cpu_info()
    total = (tw.ones((64, 64)) @ tw.ones((64, 64))).sum().item()
    right = total == 64.0**3
    engine = Finding(
        "engine",
        OK if right else PROBLEM,
        f"tilewright {tw.__version__}, {info['active_isa']}, Python {platform.python_version()}",
        ""
        if right
        else "a 64x64 product is wrong: please report this with `tilewright info --json`",
    )
    best = info["isas"][-1] if info["isas"] else info["active_isa"]
    if info["active_isa"] == best:
        return [engine]
    isa = Finding(
        "instruction set",
        NOTE,
        f"{info['active_isa']}, this machine can run {best}",
        "unset TILEWRIGHT_ISA to use the best one",
    )
    return [engine, isa]


def check_threads() -> list[Finding]:
    """Threads against the processors that this process may use."""
    info = tw._core.cpu_info()
    threads, usable = tw.get_num_threads(), info["usable_processors"]
    detail = f"{threads} in use, {usable} usable of {info['logical_processors']} processors"
    if threads > usable:
        remedy = (
            f"more threads than processors slow each other down: set TILEWRIGHT_THREADS={usable}"
        )
        return [Finding("threads", PROBLEM, detail, remedy)]
    if threads < usable:
        return [Finding("threads", NOTE, detail, f"tw.set_num_threads({usable}) uses all of them")]
    return [Finding("threads", OK, detail)]


def check_huge_pages() -> list[Finding]:
    """Huge pages make first use of large blocks cheaper."""
    try:
        text = _HUGE_PAGES.read_text()
    except OSError:
        return [Finding("huge pages", NOTE, "unknown on this system")]
    chosen = text.partition("[")[2].partition("]")[0]
    if chosen == "never":
        remedy = f"as root: echo madvise > {_HUGE_PAGES}"
        return [Finding("huge pages", NOTE, "switched off in the kernel", remedy)]
    return [Finding("huge pages", OK, chosen)]


def check_memory() -> list[Finding]:
    """Memory that the system still has."""
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return [Finding("memory", NOTE, "unknown on this system")]
    # MNIST as float32 with everything beside it takes about half of this.
    scarce = free < 512 << 20
    remedy = "close other programs, or train on the embedded digits" if scarce else ""
    return [Finding("memory", NOTE if scarce else OK, f"{format_bytes(free)} available", remedy)]


def check_packages() -> list[Finding]:
    """Optional packages; none is needed to import and compute."""
    findings = []
    for module, purpose, install in _PACKAGES:
        if available(module):
            findings.append(Finding(module, OK, f"{_version(module)}, for {purpose}"))
        else:
            remedy = f"pip install '{install}'"
            findings.append(Finding(module, NOTE, f"not installed, for {purpose}", remedy))
    return findings


def check_cache_folder() -> list[Finding]:
    """Whether downloads and measurements have a place."""
    try:
        folder = Path(cache_folder())
    except ImportError:
        return []
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if os.access(existing, os.W_OK | os.X_OK):
        return [Finding("cache folder", OK, str(folder))]
    remedy = "make it writable, or set TILEWRIGHT_CACHE_DIR to a folder that is"
    return [Finding("cache folder", PROBLEM, f"{existing} is not writable", remedy)]


def check_tuning() -> list[Finding]:
    """Whether the table of `tilewright tune`, if there is one, counts on this machine."""
    try:
        state = tw.tune.table.state()
    except ImportError:
        return []
    if state.startswith("ignored"):
        remedy = f"measure anew with `tilewright tune`, or delete {tw.tune.path()}"
        return [Finding("tuning", NOTE, state, remedy)]
    return [Finding("tuning", OK, tw.tune.source())]


def check_gpu() -> list[Finding]:
    """Whether device="cuda" works, and what is missing where it does not."""
    if reason := tw.cuda.why_unavailable():
        what, _, remedy = reason.partition("; ")
        return [Finding("GPU", NOTE, what, remedy)]
    return [Finding("GPU", OK, ", ".join(_gpu(i) for i in range(tw.cuda.device_count())))]


def _gpu(number: int) -> str:
    facts = tw.cuda.facts(number)
    major, minor = facts["capability"]
    return f"{facts['name']} ({major}.{minor}, {format_bytes(facts['memory_bytes'])})"


def check_data() -> list[Finding]:
    """Whether MNIST is where the commands look for it."""
    try:
        folder = default_folder()
    except ImportError:
        return []
    missing = missing_files(folder)
    if not missing:
        return [Finding("MNIST", OK, str(folder))]
    detail = f"{len(missing)} of 4 files missing in {folder}"
    remedy = "set TILEWRIGHT_DATA, pass --data DIR, or run tw.data.mnist(download=True)"
    return [Finding("MNIST", NOTE, detail, remedy)]


def _version(module: str) -> str:
    try:
        return metadata.version(module)
    except metadata.PackageNotFoundError:
        return "unknown version"


CHECKS: tuple[Callable[[], list[Finding]], ...] = (
    check_engine,
    check_threads,
    check_huge_pages,
    check_memory,
    check_packages,
    check_cache_folder,
    check_tuning,
    check_gpu,
    check_data,
)
