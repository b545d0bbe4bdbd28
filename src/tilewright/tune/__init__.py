"""Fits the matmul ladder to this machine: measures, keeps a table, says what is in force."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tilewright.tune.table import (
    Table,
    TuningWarning,
    apply,
    clear,
    current,
    defaults,
    differences,
    export,
    import_,
    load,
    path,
    reset,
    save,
    source,
    use,
)

if TYPE_CHECKING:
    from tilewright.tune.search import Outcome

__all__ = [
    "Table",
    "TuningWarning",
    "apply",
    "clear",
    "current",
    "defaults",
    "differences",
    "export",
    "import_",
    "load",
    "path",
    "reset",
    "run",
    "save",
    "source",
    "use",
]


def run(
    seconds: float = 90.0, on_progress: Callable[[float, str], None] | None = None
) -> tuple[Table, list[Outcome]]:
    """Measures this machine for about `seconds`, writes the table and puts it into force.

    Returns the table and what each step of the search found. `on_progress(share, text)` is called
    as it goes on. Raises ValueError where a kernel is forced, OSError where the table cannot be
    written; both before anything is measured. An exception leaves table and numbers as they were.
    """
    # The search loads what an import that only reads a table does not need.
    from tilewright.tune.search import Search  # noqa: PLC0415
    from tilewright.tune.timing import Stopwatch  # noqa: PLC0415

    return Search(Stopwatch(), seconds, on_progress).run()
