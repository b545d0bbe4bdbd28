"""Draws docs/design/floors.svg: the floors of the sources, their rooms, and who includes whom.

    python tools/draw_floors.py           writes the picture
    python tools/draw_floors.py --check   fails where it is not what the sources give

All of it is counted in the sources: files of a folder, `#include` lines of a floor. A picture
whose counts are off by a tenth is still right, so that a new file needs no new picture. A floor, a
room or an arrow that comes or goes does.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = "docs/design/floors.svg"

# From the top down. A floor includes floors below it; which of them, ARCHITECTURE.md says.
FLOORS = {
    "src/tilewright": "what users import",
    "binding": "nanobind and CPython",
    "blas": "sgemm and dgemm",
    "core/ops": "what each op is",
    "core/cpu": "loops for a CPU",
    "core/cuda": "kernels for a GPU",
    "core/null": "a device that computes nothing",
    "core/problems": "what kernels are given",
    "core/autograd": "the graph and the backward pass",
    "core/tensor": "storage, shape, strides",
    "core/runtime": "devices, kernels, threads, tasks",
    "core/memory": "pools, spilling, events",
    "core/base": "errors, types, environment",
}
FAMILY_FLOORS = ("core/ops", "core/cpu", "core/cuda")
SUFFIXES = {".h", ".cpp", ".inc", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)
IMPORTS_CORE = re.compile(
    r"^(?:from|import) (?:tilewright\._core\b|tilewright import .*\b_core\b)", re.M
)


# ---- what the sources say ----


def source_files(root: Path) -> list[str]:
    """Paths of all C++ and CUDA sources, the core's tests left out."""
    found = []
    for top in ("core", "binding", "blas"):
        for path in (root / top).rglob("*"):
            name = path.relative_to(root).as_posix()
            if path.suffix in SUFFIXES and not name.startswith("core/tests/"):
                found.append(name)
    return sorted(found)


def includes(root: Path) -> list[tuple[str, str]]:
    """Each `#include` of a source of this project: the file that says it, and the file it names.

    CUDA kernels name each other without a folder; they are embedded under these names.
    """
    files = source_files(root)
    known = set(files)
    by_name: dict[str, list[str]] = defaultdict(list)
    for path in files:
        by_name[path.rsplit("/", 1)[1]].append(path)
    found = []
    for path in files:
        folder = path.rsplit("/", 1)[0]
        for mark, named in INCLUDE.findall((root / path).read_text()):
            candidates = [named]
            if mark == '"':
                candidates.append(f"{folder}/{named}")
                candidates += by_name[named] if len(by_name[named]) == 1 else []
            found += [(path, name) for name in candidates if name in known][:1]
    return found


def floor_of(path: str) -> str:
    parts = path.split("/")
    return "/".join(parts[: 2 if parts[0] in {"core", "src"} else 1])


def room_of(path: str) -> str:
    """The folder below its floor; "" for a file that lies on the floor itself."""
    inside = path[len(floor_of(path)) + 1 :].split("/")
    return inside[0] if len(inside) > 1 else ""


class House:
    """The counts that are drawn."""

    def __init__(self, root: Path) -> None:
        package = root / "src/tilewright"
        modules = sorted(path.relative_to(root).as_posix() for path in package.rglob("*.py"))
        files = [*source_files(root), *modules]
        # core/groups.cmake, at the foot of the core, is not on a floor.
        self.files = Counter((floor_of(path), room_of(path)) for path in files)
        self.floors = [floor for floor in FLOORS if any(f == floor for f, _ in self.files)]
        unknown = {floor for floor, _ in self.files} - {*FLOORS}
        if unknown:
            raise SystemExit(f"draw_floors.py: FLOORS has no {', '.join(sorted(unknown))}")
        self.arrows = Counter(
            (floor_of(a), floor_of(b)) for a, b in includes(root) if floor_of(a) != floor_of(b)
        )
        self.arrows["src/tilewright", "binding"] = sum(
            len(IMPORTS_CORE.findall((root / path).read_text())) for path in modules
        )
        shared = Counter(room for floor in FAMILY_FLOORS for room in self.rooms(floor))
        self.families = [
            room for room in sorted(shared) if room in self.rooms("core/ops") and shared[room] > 1
        ]

    def rooms(self, floor: str) -> list[str]:
        return sorted(room for f, room in self.files if f == floor and room)

    def count(self, floor: str) -> int:
        return sum(count for (f, _), count in self.files.items() if f == floor)


# ---- the picture ----

LETTER = 6.2  # width of a letter of 12 px, on the safe side
LEFT, LABEL, LANE, LINE = 8, 116, 35, 19

STYLE = """
text { font: 12px -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.name { font-weight: 600; font-size: 13px }
.soft { fill: #59636e }
.floor { fill: #f6f8fa; stroke: #d1d9e0 }
.room { fill: #ddf4ff; stroke: #54aeff }
.lane { stroke: #8c959f; stroke-width: 1.5; fill: none }
.tip { fill: #8c959f }
.row { stroke: #e6eaef }
.count { fill: #ffffff; stroke: #8c959f }
.against { stroke: #d1242f; stroke-width: 2 }
.page { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc }
  .soft { fill: #9198a1 }
  .floor { fill: #151b23; stroke: #3d444d }
  .room { fill: #121d2f; stroke: #1f6feb }
  .lane { stroke: #6e7681 }
  .tip { fill: #6e7681 }
  .row { stroke: #262c36 }
  .count { fill: #0d1117; stroke: #6e7681 }
  .against { stroke: #f85149 }
  .page { fill: #0d1117 }
}
"""


def text(x: float, y: float, words: object, kind: str = "", anchor: str = "start") -> str:
    chosen = f' class="{kind}"' if kind else ""
    placed = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:g}" y="{y:g}"{chosen}{placed}>{escape(str(words))}</text>'


def box(x: float, y: float, width: float, height: float, kind: str, corner: int = 4) -> str:
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f'<rect {place} rx="{corner}" class="{kind}"/>'


def lines_of(words: Iterable[str], width: float) -> list[str]:
    """Words, parted by dots, in lines no wider than that."""
    lines = [""]
    for word in words:
        longer = f"{lines[-1]} · {word}" if lines[-1] else word
        if lines[-1] and len(longer) * LETTER > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return [line for line in lines if line]


class Picture:
    def __init__(self, house: House) -> None:
        self.house = house
        self.columns: dict[str, tuple[float, float]] = {}  # of a family: x and width
        x = float(LEFT + LABEL)
        for family in house.families:
            width = len(family) * LETTER + 10
            self.columns[family] = (x, width)
            x += width + 4
        self.right = x + 4
        self.middle: dict[str, float] = {}  # of a floor: y, where its arrows leave and arrive
        self.parts: list[str] = []
        self.y = 48.0

    def draw(self) -> str:
        for floor in self.house.floors:
            (self.family_floor if floor in FAMILY_FLOORS else self.plain_floor)(floor)
            self.y += 8
        lanes = self.lanes()
        width, height = self.right + lanes + 12, self.y + 30
        self.parts.append(
            text(
                LEFT,
                self.y + 14,
                "Numbers in boxes: files. Numbers on arrows: lines that include, or import _core.",
                "soft",
            )
        )
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" role="img">\n'
            "<title>The floors of the sources, and who includes whom</title>\n"
            f"<style>{STYLE}</style>\n"
        )
        page = f'<rect width="{width:g}" height="{height:g}" class="page"/>'
        return head + "\n".join([page, *self.parts]) + "\n</svg>\n"

    def heading(self, floor: str, height: float) -> None:
        self.parts.append(box(LEFT, self.y, self.right - LEFT, height, "floor"))
        self.parts.append(text(LEFT + 8, self.y + 18, floor, "name"))
        self.middle[floor] = self.y + height / 2

    def plain_floor(self, floor: str) -> None:
        rooms = self.house.rooms(floor)
        if floor == "src/tilewright":
            rooms = [room for room in rooms if not room.startswith("_")]
        lines = lines_of(rooms, self.right - LEFT - LABEL - 8)
        self.heading(floor, 27 + LINE * len(lines))
        self.parts.append(text(LEFT + LABEL, self.y + 18, FLOORS[floor], "soft"))
        self.parts.append(
            text(self.right - 8, self.y + 18, self.house.count(floor), "soft", anchor="end")
        )
        for number, line in enumerate(lines):
            self.parts.append(text(LEFT + LABEL, self.y + 18 + LINE * (number + 1), line))
        self.y += 27 + LINE * len(lines)

    def family_floor(self, floor: str) -> None:
        """Its families in columns that are the same on the other floors, then what only it has."""
        rooms = self.house.rooms(floor)
        own = [
            f"{room} {self.house.files[floor, room]}"
            for room in rooms
            if room not in self.house.families
        ]
        lines = lines_of(own, self.right - LEFT - LABEL - 8)
        height = 46 + LINE * len(lines)
        self.heading(floor, height)
        self.parts.append(text(LEFT + 8, self.y + 36, FLOORS[floor], "soft"))
        for family, (x, width) in self.columns.items():
            if family in rooms:
                self.parts.append(box(x, self.y + 6, width, 36, "room"))
                self.parts.append(text(x + width / 2, self.y + 20, family, anchor="middle"))
                count = self.house.files[floor, family]
                self.parts.append(text(x + width / 2, self.y + 36, count, "soft", "middle"))
        for number, line in enumerate(lines):
            self.parts.append(text(LEFT + LABEL, self.y + 58 + LINE * number, line))
        self.y += height

    def lanes(self) -> float:
        """One lane for each floor that others include. Lower ones stand outside: no two cross."""
        house, order = self.house, self.house.floors
        targets = [floor for floor in order if any(b == floor for _, b in house.arrows)]
        place = {target: self.right + 22 + LANE * n for n, target in enumerate(targets)}
        for floor in order:
            used = [place[target] for target in targets if house.arrows[floor, target]]
            if used:
                y = self.middle[floor]
                self.parts.append(f'<path class="row" d="M{self.right:g} {y:g}H{max(used):g}"/>')
        counts: list[str] = []  # above all lines
        for number, target in enumerate(targets):
            x, at = place[target], self.middle[target]
            users = [floor for floor in order if house.arrows[floor, target]]
            heights = [self.middle[user] for user in users]
            ends = (min([*heights, at]), max([*heights, at]))
            line = f"M{x:g} {ends[0]:g}V{ends[1]:g}M{x:g} {at:g}H{self.right + 7:g}"
            self.parts.append(f'<path class="lane" d="{line}"/>')
            self.parts.append(f'<path class="tip" d="M{self.right + 1:g} {at:g}l8 -4v8z"/>')
            name = target.rsplit("/", 1)[-1]
            self.parts.append(text(x, 18 if number % 2 else 36, name, "name", "middle"))
            for user, y in zip(users, heights, strict=True):
                count = house.arrows[user, target]
                against = " against" if order.index(user) > order.index(target) else ""
                counts.append(box(x - 15, y - 9, 30, 18, f"count{against}", 9))
                counts.append(text(x, y + 4, count, anchor="middle"))
        self.parts += counts
        return 22 + LANE * len(targets)


# ---- the committed picture against the sources ----

NUMBER = re.compile(r">(\d+)<| (\d+)(?= ·|<)")


def counts_in(picture: str) -> list[int]:
    return [int(a or b) for a, b in NUMBER.findall(picture)]


def same_picture(a: str, b: str) -> bool:
    """But for counts that are off by a tenth, or by three."""
    if NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return False
    pairs = zip(counts_in(a), counts_in(b), strict=True)
    return all(abs(x - y) <= max(3, max(x, y) / 10) for x, y in pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="fail where the picture is out of date"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to draw")
    options = parser.parse_args()
    picture, path = Picture(House(options.root)).draw(), options.root / PICTURE
    if options.check:
        if path.exists() and same_picture(path.read_text(), picture):
            return 0
        print(f"{PICTURE} is not what the sources give: run tools/draw_floors.py", file=sys.stderr)
        return 1
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
