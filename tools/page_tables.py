"""Lists in pages of docs/ that are made from the modules, between marks that name them."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from pathlib import Path

from stub_signatures import rows

DOCS = Path(__file__).parent.parent / "docs"
SPELLINGS = DOCS / "from_pytorch.md"
FEATURES = DOCS / "features.md"


def between(page: Path, name: str, made: str) -> str:
    """A page with what stands between its marks of this name."""
    begin, end = f"<!-- {name}: make stub -->", f"<!-- end of {name} -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, behind = rest.partition(end)
    return f"{before}{begin}\n{made}\n{end}{behind}"


def make_features(optimizers: list[str]) -> str:
    """The page with the names of the optimisers whose steps are fused."""
    text = f"- {', '.join(optimizers)}. Each step is one fused call. The state of float16 and "
    text += "bfloat16 parameters is float32."
    lines = textwrap.wrap(text, 118, subsequent_indent="  ")
    return between(FEATURES, "optimizers", "\n".join(lines))


def make_spellings() -> str:
    """The page with its tables of other libraries' names."""
    return between(SPELLINGS, "spellings", tables())


def tables() -> str:
    """Other libraries' names: of functions, types and arguments, and those that are not there."""
    return "\n".join(
        [
            *_table("here", "function or method", grouped("name", "ours", "theirs")),
            *_table("here", "type", grouped("dtype", "ours", "theirs")),
            *_table(
                "here, in every function that has it",
                "argument",
                grouped("argument", "ours", "theirs"),
            ),
            *_table(
                "here, in every function whose first it is",
                "argument",
                grouped("first", "ours", "theirs"),
            ),
            *_table("function", "argument (here)", arguments_by_function()),
            *_table("not there", "instead", absent()),
        ]
    ).rstrip()


def _table(left: str, right: str, lines: dict[str, str]) -> list[str]:
    text = [f"| {key} | {value} |" for key, value in lines.items()]
    return [f"| {left} | {right} |", "|---|---|", *text, ""]


def grouped(kind: str, by: str, of: str) -> dict[str, str]:
    """Rows of a kind: what one column has for each value of another."""
    found: dict[str, list[str]] = defaultdict(list)
    for row in rows(kind):
        found[f"`{row[by]}`"].append(f"`{row[of]}`")
    return {key: ", ".join(values) for key, values in found.items()}


def arguments_by_function() -> dict[str, str]:
    found: dict[str, list[str]] = defaultdict(list)
    for row in rows("argument of"):
        if row["library"] != "tilewright" and row["theirs"] != row["ours"]:
            found[f"`{row['function']}`"].append(f"`{row['theirs']}` (`{row['ours']}`)")
    return {key: ", ".join(values) for key, values in found.items()}


def absent() -> dict[str, str]:
    return {
        f"`{'x.' * (row['function'] == 'Tensor')}{row['theirs']}`": row["note"]
        for row in rows("absent")
    }
