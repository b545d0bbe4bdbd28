"""Fits the matmul ladder to this machine: measures, keeps a table, says what is in force."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    kept_or_empty,
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
    seconds: float = 90.0,
    on_progress: Callable[[float, str], None] | None = None,
    devices: Sequence[str] | None = None,
) -> tuple[Table, list[Outcome]]:
    """Measures this machine for about `seconds`, writes the table and puts it into force.

    `devices`: "cpu" for the ladder of matmul, and GPUs by name, each for some seconds more; by
    default all there are. What is not measured stays as the table has it. Returns the table and
    what each step of the search found. `on_progress(share, text)` is called as it goes on. Raises
    ValueError where a kernel is forced or a device is unknown, OSError where the table cannot be
    written; both before anything is measured. An exception leaves table and numbers as they were.
    """
    # The search loads what an import that only reads a table does not need.
    from tilewright.tune import gpu, search, timing  # noqa: PLC0415  (imported on use)

    numbers = gpu.numbers_of(devices)
    found = kept_or_empty()
    outcomes: list[Outcome] = []
    if devices is None or "cpu" in devices:
        found, outcomes = search.Search(timing.Stopwatch(), seconds, on_progress).run()
    for number in numbers:
        found, told = gpu.tuned(found, number, on_progress)
        outcomes += told
    return found, outcomes
