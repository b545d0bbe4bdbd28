"""The reports that are open: what is decided outside any op is noted in them."""

from __future__ import annotations

import threading
from typing import Any, Protocol


class Report(Protocol):
    """What notes where device="auto" came to."""

    placements: list[Any]


# With the thread that each listens to.
open_reports: list[tuple[int, Report]] = []


def tell_placement(placement: object) -> None:
    """What device="auto" came to on this thread, to those who listen."""
    me = threading.get_ident()
    for thread, report in list(open_reports):
        if thread == me:
            report.placements.append(placement)
