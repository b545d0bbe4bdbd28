"""Writes the rows of docs/design/optimizations.md from the table and the recorded gains.

python tools/list_optimizations.py           writes the page
python tools/list_optimizations.py --check   fails where it is not what table and records give

The table is core/base/optimizations.inc, the records docs/measured/optimizations_*.csv, which
`tilewright bench optimizations --csv FILE` writes.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE, NAMES = "core/base/optimizations.inc", "core/base/optimizations.h"
PAGE, RECORDS = "docs/design/optimizations.md", "docs/measured"
# Names of processors on the page; a record of another has its file's name.
PROCESSORS = {
    "intel_amx": "Intel with AMX",
    "intel": "Intel",
    "zen3": "AMD Zen 3",
    "zen4": "AMD Zen 4",
    "zen5": "AMD Zen 5",
}

# What is below it on the page is written here.
MARK = "<!-- rows: tools/list_optimizations.py -->\n"


@dataclass(frozen=True)
class Optimization:
    name: str
    reason: str
    scope: str
    bits: str
    families: str
    how: str
    source: str


@dataclass(frozen=True)
class Record:
    """Gains on one processor, by the row's name."""

    processor: str
    conditions: dict[str, Any]
    gains: dict[str, list[dict[str, str]]] = field(default_factory=dict)


def reasons(root: Path = ROOT) -> dict[str, str]:
    """What the reasons of the table are called, in their order."""
    source = (root / NAMES).read_text()
    words = re.search(r"enum class Reason[^{]*\{([^}]*)\}", source)
    texts = re.search(r"kReasonNames\[\] = \{([^}]*)\}", source)
    assert words
    assert texts
    found = [word.strip() for word in words[1].split(",")]
    return dict(zip(found, re.findall(r'"([^"]*)"', texts[1]), strict=True))


def read(root: Path = ROOT) -> list[Optimization]:
    """The rows of the table."""
    source = re.sub(r"^//.*\n", "", (root / TABLE).read_text(), flags=re.MULTILINE)
    source = re.sub(r'"\s*\n\s*"', "", source)
    text = r'"([^"]*)"'
    pattern = rf"TW_OPTIMIZATION\((\w+),\s*(\w+),\s*(\w+),\s*(\w+),\s*{text},\s*{text},\s*{text}\)"
    rows = [Optimization(*found) for found in re.findall(pattern, source)]
    if len(rows) != source.count("TW_OPTIMIZATION("):
        raise SystemExit(f"{TABLE}: {source.count('TW_OPTIMIZATION(') - len(rows)} are not read")
    return rows


def records(root: Path = ROOT) -> list[Record]:
    """What was measured, a record a processor."""
    found = []
    for path in sorted((root / RECORDS).glob("optimizations_*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            conditions = json.loads(file.readline().removeprefix("# "))
            key = path.stem.removeprefix("optimizations_")
            record = Record(PROCESSORS.get(key, key), conditions)
            for row in csv.DictReader(file):
                record.gains.setdefault(row["optimization"], []).append(row)
            found.append(record)
    return found


def page(rows: list[Optimization], measured: list[Record], before: str, root: Path = ROOT) -> str:
    """The page with these rows; `before`: as it was."""
    parts = [before.partition(MARK)[0], MARK, "\n", "".join(map(conditions, measured))]
    gains = "".join(f" gain: {record.processor} |" for record in measured)
    for word, text in reasons(root).items():
        of_reason = [row for row in rows if row.reason == word]
        if not of_reason:
            continue
        parts.append(f"\n## {text[0].upper()}{text[1:]}\n\n")
        parts.append(f"| optimization | how | where | off by | bits |{gains}\n")
        parts.append("|---|---|---|---|---|" + "---|" * len(measured) + "\n")
        for row in of_reason:
            source = f" Source: {row.source}." if row.source else ""
            cells = [f"`{row.name}`", row.how + source, row.families, row.scope, row.bits]
            cells += [gain_text(record.gains.get(row.name, [])) for record in measured]
            parts.append(f"| {' | '.join(cells)} |\n")
    return "".join(parts)


def conditions(record: Record) -> str:
    known = record.conditions
    return (
        f"- {record.processor}: {known['isa']}, {known['threads']} threads, "
        f"version {known['version']}, {known['date'][:10]}.\n"
    )


def gain_text(works: list[dict[str, str]]) -> str:
    """Each work with its gain, where that lies, and the peaks of memory where they differ."""
    return "; ".join(map(work_text, works)) or "-"


def work_text(work: dict[str, str]) -> str:
    ends = f"{float(work['low']):.2f} to {float(work['high']):.2f}"
    text = f"{work['work']}: {float(work['gain']):.2f}x ({ends})"
    on, off = work["on_peak_bytes"], work["off_peak_bytes"]
    if on != off:
        text += f", {int(on) / 2**20:.1f} MiB beside {int(off) / 2**20:.1f} MiB"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    before = (ROOT / PAGE).read_text()
    made = page(read(), records(), before)
    if not parser.parse_args().check:
        (ROOT / PAGE).write_text(made)
    elif before != made:
        sys.exit(
            f"{PAGE} is not what {TABLE} and the records give: run tools/list_optimizations.py"
        )


if __name__ == "__main__":
    main()
