"""A module as a notebook shows it: a table of its submodules."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tilewright._report.html.tables import for_notebook

if TYPE_CHECKING:
    from tilewright.nn.module.module import Module

_COLUMNS = ("module", "type", "settings", "parameters", "mode")


def table(module: Module) -> str:
    """HTML without script: a row for each module, with what is its own."""
    rows: list[tuple[str, ...]] = []
    counted: set[int] = set()
    total = 0
    for path, each in module.named_modules():
        own = [x for x in each.parameters(recurse=False) if id(x) not in counted]
        counted.update(map(id, own))
        count = sum(math.prod(x.shape) for x in own)
        total += count
        name = "  " * (path.count(".") + 1) + path.rpartition(".")[2] if path else "(itself)"
        mode = "training" if each.training else "evaluation"
        size = f"{count:,}" if count else ""
        rows.append((name, each._get_name(), each.extra_repr(), size, mode))
    title = f"{module._get_name()}: {total:,} parameters"
    return for_notebook(title, _COLUMNS, rows)
