"""Writes the rows of docs/design/thresholds.md from core/base/thresholds.inc.

python tools/list_thresholds.py           writes the page
python tools/list_thresholds.py --check   fails where it is not what the table gives
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE, PAGE = "core/base/thresholds.inc", "docs/design/thresholds.md"

# What is below it on the page is written here.
MARK = "<!-- rows: tools/list_thresholds.py -->\n"


@dataclass(frozen=True)
class Threshold:
    name: str
    value: str  # as the table has it
    unit: str
    decides: str
    reason: str

    @property
    def number(self) -> int:
        first, *shift = self.value.replace("'", "").split("<<")
        return int(first) << int(shift[0]) if shift else int(first)


@dataclass(frozen=True)
class Technique:
    title: str
    text: str
    rows: list[Threshold] = field(default_factory=list)


def read(root: Path = ROOT) -> list[Technique]:
    """The rows of the table by technique."""
    source = (root / TABLE).read_text()
    source = re.sub(r"^//.*\n", "", source, flags=re.MULTILINE)
    source = re.sub(r'"\s*\n\s*"', "", source)
    techniques: list[Technique] = []
    pattern = re.compile(
        r'TW_TECHNIQUE\(\s*"([^"]*)",\s*"([^"]*)"\)|'
        r'TW_THRESHOLD\((\w+),\s*([^,]+),\s*"([^"]*)",\s*(time|bits),\s*"([^"]*)"\)'
    )
    for title, text, *row in pattern.findall(source):
        if title:
            techniques.append(Technique(title, text))
        else:
            techniques[-1].rows.append(Threshold(*row))
    read_rows = sum(len(each.rows) for each in techniques)
    if read_rows != source.count("TW_THRESHOLD("):
        raise SystemExit(f"{TABLE}: {source.count('TW_THRESHOLD(') - read_rows} rows are not read")
    return techniques


def shown(row: Threshold) -> str:
    number = row.number
    for size, name in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if number % size == 0:
            unit = f"{name}B" if row.unit == "bytes" else f"{name} {row.unit}"
            return f"{number // size} {unit}"
    return f"{number:,} {row.unit}"


def page(techniques: list[Technique], before: str) -> str:
    """The page with these rows; `before`: as it was."""
    parts = [before.partition(MARK)[0], MARK]
    for technique in techniques:
        parts.append(f"\n## {technique.title}\n\n{wrapped(technique.text)}\n")
        parts.append("\n| `thresholds::` | value | decides | why |\n|---|---|---|---|\n")
        parts += [
            f"| `{row.name}` | {shown(row)} | {row.decides} | {row.reason} |\n"
            for row in technique.rows
        ]
    return "".join(parts)


def wrapped(text: str, width: int = 124) -> str:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    before = (ROOT / PAGE).read_text()
    made = page(read(), before)
    if not parser.parse_args().check:
        (ROOT / PAGE).write_text(made)
    elif before != made:
        sys.exit(f"{PAGE} is not what {TABLE} gives: run tools/list_thresholds.py")


if __name__ == "__main__":
    main()
