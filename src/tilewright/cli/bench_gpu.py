"""`tilewright bench gpu`: ours on a GPU against PyTorch and cuBLAS, line by line with its aim."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from statistics import median
from typing import Any

import tilewright as tw
from tilewright.bench import gpu
from tilewright.bench.harness import OURS, run_cases
from tilewright.cli import arguments
from tilewright.cli.console import Console, format_bytes, format_seconds, format_timing
from tilewright.cli.picture import bars, check_plot

_GROUPS = {
    "products": gpu.product_lines,
    "memory": gpu.memory_lines,
    "steps": gpu.step_lines,
}
_ROUNDS, _QUICK_ROUNDS = 15, 2
_SHAPES = "shapes "


def add_parser(comparisons: arguments.Subparsers) -> None:
    """Adds the comparison."""
    parser = arguments.add_parser(
        comparisons, "gpu", run, "products, passes over memory and whole steps on a GPU"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, to see that everything runs"
    )
    parser.add_argument(
        "--groups",
        metavar="A,B",
        type=lambda text: arguments.names(text, known=tuple(_GROUPS)),
        default=tuple(_GROUPS),
        help=f"which of {', '.join(_GROUPS)} (default: all)",
    )
    parser.add_argument(
        "--no-compile", action="store_true", help="leave torch.compile out, which takes its time"
    )
    arguments.add_plot(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the comparison and reports it."""
    check_plot(args.plot)
    if reason := tw.cuda.why_unavailable():
        raise ValueError(f"bench gpu: there is no GPU to measure: {reason}")
    console = Console.of(args)
    rivals = gpu.Rivals.found()
    rivals.compiles = not args.no_compile
    machine = _machine(rivals)
    console.line(
        f"{machine['gpu']} ({machine['capability']}, {format_bytes(machine['memory_bytes'])}), "
        f"driver for CUDA {machine['driver']}, NVRTC {machine['nvrtc']}, {machine['date']}"
    )
    console.line(f"compared with {rivals.what}")
    judged = list(_measured(console, rivals, args.groups, args.quick))
    console.table("bench gpu", *_table(judged))
    summary = _summary(judged)
    for line in summary:
        console.line(line)
    console.json(
        {"machine": machine, "results": [each.as_dict() for each in judged], "summary": summary}
    )
    if args.plot:
        _draw(console, args.plot, judged)
    return 0


def _machine(rivals: gpu.Rivals) -> dict[str, Any]:
    facts = tw.cuda.facts(0)
    driver, nvrtc = tw._core._gpu_versions()
    return {
        "gpu": facts["name"],
        "capability": ".".join(map(str, facts["capability"])),
        "memory_bytes": facts["memory_bytes"],
        "driver": ".".join(map(str, driver)),
        "nvrtc": ".".join(map(str, nvrtc)),
        "tilewright": tw.__version__,
        "torch": None if rivals.torch is None else str(rivals.torch.__version__),
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _measured(
    console: Console, rivals: gpu.Rivals, groups: Sequence[str], quick: bool
) -> Iterator[gpu.Judged]:
    for group in groups:
        for line in _GROUPS[group](rivals, quick):
            case = line.case(_QUICK_ROUNDS if quick else _ROUNDS)
            (result,) = run_cases([case], settle=False)
            found = gpu.judge(line, result)
            console.line(
                f"{line.name}: {format_seconds(result.timings[OURS].median_s)}{_verdict(found)}"
            )
            yield found


def _verdict(found: gpu.Judged) -> str:
    ratio = "" if found.ratio is None else f", {found.ratio:.2f}x"
    held = {True: "", False: ", LOST", None: ""}[found.holds]
    return f"{ratio} ({found.aim}{held})"


def _table(judged: Sequence[gpu.Judged]) -> tuple[list[str], list[list[str]]]:
    names = list(dict.fromkeys(name for each in judged for name in each.result.timings))
    columns = ["line", *(f"{name} (p95)" for name in names), "rate/s", "ratio", "aim", "holds"]
    rows = []
    for each in judged:
        result = each.result
        rate = f"{result.rate(OURS):,.3g} {result.unit}" if result.unit else ""
        rows.append(
            [
                result.name,
                *(format_timing(result.timings.get(name)) for name in names),
                rate,
                "-" if each.ratio is None else f"{each.ratio:.2f}x",
                each.aim,
                {True: "yes", False: "no", None: "-"}[each.holds],
            ]
        )
    return columns, rows


def _summary(judged: Sequence[gpu.Judged]) -> list[str]:
    """How many lines hold, and which are lost."""
    known = [each for each in judged if each.holds is not None]
    lost = [each for each in known if not each.holds]
    lines = [f"{len(known) - len(lost)} of {len(known)} aims hold; {len(judged) - len(known)} open"]
    lines += [f"lost: {each.result.name}{_verdict(each)}" for each in lost]
    for each in judged:
        if each.errors:
            told = ", ".join(f"{name} {error:.2g}" for name, error in each.errors.items())
            lines.append(f"largest error of {each.result.name}: {told}")
    return lines


def _draw(console: Console, path: str, judged: Sequence[gpu.Judged]) -> None:
    """A bar a line; of many shapes the worst and the middle one."""
    labels, values = [], []
    shapes: dict[str, list[float]] = {}
    for each in judged:
        if each.ratio is None:
            continue
        if each.group.startswith(_SHAPES):
            shapes.setdefault(each.group, []).append(each.ratio)
        else:
            labels.append(f"{each.result.name} ({each.aim})")
            values.append(each.ratio)
    for group, ratios in shapes.items():
        labels += [f"{len(ratios)} {group}, worst", f"{len(ratios)} {group}, median"]
        values += [min(ratios), median(ratios)]
    if not values:
        console.line("no picture: there is nobody to compare with")
        return
    bars(path, f"bench gpu: {tw.cuda.get_device_name(0)}", "time over ours", labels, values, 1.0)
    console.line(f"picture: {path}")
