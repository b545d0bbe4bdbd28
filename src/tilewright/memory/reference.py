"""The pool's bookkeeping in plain Python: what may stay in memory and what must leave.

The native ledger (core/memory/ledger.cpp) does the same faster. With TILEWRIGHT_NATIVE_RUNTIME=0
this one is told what each pool's was told, and must decide the same, or RuntimeError is raised.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

# A file operation costs as much as writing this many bytes; smaller blocks stay in memory.
SMALLEST_SPILL = 64 << 10


@dataclass
class _Entry:
    bytes: int
    pins: int = 0
    spilled: bool = False


class Ledger:
    """Blocks by key, coldest first, against a quota; negative: no bound.

    Blocks that an op uses at the moment are pinned.

    >>> ledger = Ledger(quota_bytes=200_000, may_spill=True)
    >>> ledger.add(1, 100_000)
    >>> ledger.add(2, 100_000)
    >>> ledger.make_room(50_000)
    [1]
    """

    def __init__(self, quota_bytes: int, may_spill: bool) -> None:
        self._quota = quota_bytes
        self._may_spill = may_spill
        self._blocks: dict[int, _Entry] = {}
        self._by_use: OrderedDict[int, _Entry] = OrderedDict()  # in memory and large enough
        self._figures = dict.fromkeys(
            (
                "live_bytes",
                "peak_live_bytes",
                "spilled_bytes",
                "peak_spilled_bytes",
                "pinned_bytes",
                "allocations",
                "releases",
                "spills",
                "restores",
            ),
            0,
        )

    def make_room(self, bytes: int) -> list[int]:
        """Keys of the blocks that must leave so that `bytes` more fit; MemoryError if too few."""
        missing = 0 if self._quota < 0 else self._figures["live_bytes"] + bytes - self._quota
        leaving = []
        for key in self.cold():
            if missing <= 0:
                break
            leaving.append(key)
            missing -= self._blocks[key].bytes
        if missing > 0:
            what = "what is neither in use nor small" if self._may_spill else "nothing"
            raise MemoryError(
                f"pool: a block of {bytes} bytes does not fit the quota of {self._quota} bytes: "
                f"{self._figures['live_bytes']} are live and {what} can be spilled, which leaves "
                f"{missing} bytes too few; raise quota_bytes"
            )
        return leaving

    def cold(self) -> list[int]:
        """Keys of all blocks that may leave, coldest first."""
        if not self._may_spill:
            return []
        return [key for key, entry in self._by_use.items() if not entry.pins]

    def add(self, key: int, bytes: int) -> None:
        """A new block in memory."""
        self._blocks[key] = _Entry(bytes)
        self._figures["allocations"] += 1
        self._enter(key)

    def use(self, key: int) -> None:
        """The block was used."""
        if key in self._by_use:
            self._by_use.move_to_end(key)

    def pin(self, key: int) -> None:
        """The block keeps its place until it is unpinned as often."""
        entry = self._blocks[key]
        if entry.pins == 0:
            self._figures["pinned_bytes"] += entry.bytes
        entry.pins += 1

    def unpin(self, key: int) -> None:
        """Takes one pin back."""
        entry = self._blocks[key]
        entry.pins -= 1
        if entry.pins == 0:
            self._figures["pinned_bytes"] -= entry.bytes

    def spill(self, key: int) -> None:
        """The block left memory."""
        self._leave(key)
        entry = self._blocks[key]
        entry.spilled = True
        self._figures["spills"] += 1
        self._figures["spilled_bytes"] += entry.bytes
        self._raise_peak("spilled_bytes")

    def restore(self, key: int) -> None:
        """The block is back in memory."""
        entry = self._blocks[key]
        entry.spilled = False
        self._figures["restores"] += 1
        self._figures["spilled_bytes"] -= entry.bytes
        self._enter(key)

    def remove(self, key: int) -> None:
        """The block was released."""
        entry = self._blocks[key]
        if entry.pins:
            self._figures["pinned_bytes"] -= entry.bytes
        if entry.spilled:
            self._figures["spilled_bytes"] -= entry.bytes
        else:
            self._leave(key)
        self._figures["releases"] += 1
        del self._blocks[key]

    def figures(self) -> dict[str, int]:
        """Bytes and counts."""
        return dict(self._figures)

    def reset_peaks(self) -> None:
        """Starts the peaks anew."""
        self._figures["peak_live_bytes"] = self._figures["live_bytes"]
        self._figures["peak_spilled_bytes"] = self._figures["spilled_bytes"]

    def _enter(self, key: int) -> None:
        entry = self._blocks[key]
        self._figures["live_bytes"] += entry.bytes
        self._raise_peak("live_bytes")
        if entry.bytes >= SMALLEST_SPILL:
            self._by_use[key] = entry

    def _leave(self, key: int) -> None:
        self._figures["live_bytes"] -= self._blocks[key].bytes
        self._by_use.pop(key, None)

    def _raise_peak(self, name: str) -> None:
        peak = f"peak_{name}"
        self._figures[peak] = max(self._figures[peak], self._figures[name])
