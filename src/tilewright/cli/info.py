"""`tilewright info`: the processor, the kernels and the threads in use."""

from __future__ import annotations

import argparse
import platform
from typing import Any

import tilewright as tw
from tilewright._inspect.machine_peaks import add_bandwidth, matmul_flops
from tilewright.cli import arguments
from tilewright.cli.console import Console, format_bytes


def add_parser(commands: arguments.Subparsers) -> None:
    """Adds the command."""
    parser = arguments.add_parser(
        commands, "info", run, "show processor features, caches, kernels and threads"
    )
    parser.add_argument(
        "--measure", action="store_true", help="measure peak FLOP/s and memory bandwidth as well"
    )
    arguments.add_threads(parser)


def run(args: argparse.Namespace) -> int:
    """Prints what the engine found."""
    console = Console.of(args)
    if args.threads:
        tw.set_num_threads(args.threads)
    facts = collect(args.measure)
    console.table("Tilewright", ("what", "value"), _machine_rows(facts), text=True)
    rows = _kernel_rows(facts["kernels"])
    console.table("Kernels, slowest rung first", ("kernels", "ops"), rows, text=True)
    console.json(facts)
    return 0


def collect(measure: bool) -> dict[str, Any]:
    """All facts, as JSON has them."""
    facts: dict[str, Any] = {
        "version": tw.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "threads": tw.get_num_threads(),
        **tw._core.cpu_info(),
        "tuning": tw.tune.source(),
        "gpus": _gpus(),
        "kernels": {op: list(tw.kernels.names(op)) for op in tw.kernels.ops()},
    }
    if measure:
        facts["matmul_flops_per_s"] = matmul_flops()
        facts["bandwidth_bytes_per_s"] = add_bandwidth()
    return facts


def _gpus() -> list[dict[str, Any]]:
    if not tw.cuda.is_available():
        return []
    return [dict(tw.cuda.facts(number)) for number in range(tw.cuda.device_count())]


def _kernel_rows(kernels: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Ops with the same kernels share a row."""
    ops_of: dict[str, list[str]] = {}
    for op, names in kernels.items():
        ops_of.setdefault(", ".join(names), []).append(op)
    return [(names, " ".join(sorted(ops))) for names, ops in sorted(ops_of.items())]


def _machine_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("version", facts["version"]),
        ("Python", f"{facts['python']} on {facts['platform']}"),
        ("instruction set", f"{facts['active_isa']} (of {', '.join(facts['isas'])})"),
        ("features", " ".join(facts["features"])),
        ("caches", _caches(facts)),
        ("processors", f"{facts['logical_processors']}, {facts['usable_processors']} usable"),
        ("threads", str(facts["threads"])),
        ("matmul's numbers", facts["tuning"]),
    ]
    for number, gpu in enumerate(facts["gpus"]):
        capability = ".".join(map(str, gpu["capability"]))
        memory = format_bytes(gpu["memory_bytes"])
        rows.append((f"cuda:{number}", f"{gpu['name']}, capability {capability}, {memory}"))
    if "matmul_flops_per_s" in facts:
        rows.append(("matmul 1024, float32", f"{facts['matmul_flops_per_s'] / 1e9:.1f} GFLOP/s"))
        rows.append(("x + y, 64 MiB each", f"{facts['bandwidth_bytes_per_s'] / 1e9:.1f} GB/s"))
    return rows


def _caches(facts: dict[str, Any]) -> str:
    sizes = ((level, facts[f"{level.lower()}_bytes"]) for level in ("L1d", "L2", "L3"))
    return ", ".join(
        f"{level} {format_bytes(size) if size else 'unknown'}" for level, size in sizes
    )
