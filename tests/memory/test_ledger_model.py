"""The native ledger and the one in Python decide alike, whatever happens to them."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tilewright import _core
from tilewright.memory.reference import SMALLEST_SPILL, Ledger

QUOTA = 20 * SMALLEST_SPILL
SIZES = st.one_of(
    st.integers(1, 4).map(lambda i: i * SMALLEST_SPILL),
    st.sampled_from([64, SMALLEST_SPILL - 64, SMALLEST_SPILL + 64, QUOTA, QUOTA + 64]),
)
PICKS = st.integers(0, 1000)


class BothLedgers(RuleBasedStateMachine):
    """Applies each operation to both and compares what they say."""

    def __init__(self) -> None:
        super().__init__()
        self.ledgers = (_core._Ledger(QUOTA, True), Ledger(QUOTA, True))
        self.pins: dict[int, int] = {}  # of the blocks in memory
        self.away: list[int] = []
        self.bytes: dict[int, int] = {}
        self.last = 0

    def each(self, name: str, *arguments: int) -> object:
        outcomes = []
        for ledger in self.ledgers:
            try:
                outcomes.append(getattr(ledger, name)(*arguments))
            except MemoryError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]
        return outcomes[0]

    def pick(self, blocks: list[int], at: int) -> int:
        return blocks[at % len(blocks)]

    def leave(self, keys: list[int]) -> None:
        for key in keys:
            assert self.pins.pop(key) == 0
            self.away.append(key)
            self.each("spill", key)

    @rule(bytes=SIZES)
    def allocate(self, bytes: int) -> None:
        leaving = self.each("make_room", bytes)
        if isinstance(leaving, str):
            assert "does not fit the quota" in leaving
            return
        self.leave(leaving)
        self.last += 1
        self.each("add", self.last, bytes)
        self.pins[self.last] = 0
        self.bytes[self.last] = bytes

    @precondition(lambda self: self.pins)
    @rule(at=PICKS)
    def use(self, at: int) -> None:
        self.each("use", self.pick(list(self.pins), at))

    @precondition(lambda self: self.pins)
    @rule(at=PICKS)
    def pin(self, at: int) -> None:
        key = self.pick(list(self.pins), at)
        self.pins[key] += 1
        self.each("pin", key)

    @precondition(lambda self: any(self.pins.values()))
    @rule(at=PICKS)
    def unpin(self, at: int) -> None:
        key = self.pick([key for key, pins in self.pins.items() if pins], at)
        self.pins[key] -= 1
        self.each("unpin", key)

    @precondition(lambda self: self.away)
    @rule(at=PICKS)
    def restore(self, at: int) -> None:
        key = self.pick(self.away, at)
        leaving = self.each("make_room", self.bytes[key])
        if isinstance(leaving, str):
            return
        self.leave(leaving)
        self.away.remove(key)
        self.each("restore", key)
        self.pins[key] = 0

    @precondition(lambda self: self.pins or self.away)
    @rule(at=PICKS)
    def release(self, at: int) -> None:
        key = self.pick([*self.pins, *self.away], at)
        self.each("remove", key)
        self.pins.pop(key, None)
        if key in self.away:
            self.away.remove(key)

    @rule()
    def spill_all(self) -> None:
        self.leave(self.each("cold"))

    @rule()
    def reset_peaks(self) -> None:
        self.each("reset_peaks")

    @invariant()
    def figures_agree_and_hold(self) -> None:
        figures = self.each("figures")
        assert 0 <= figures["live_bytes"] <= figures["peak_live_bytes"] <= QUOTA
        assert figures["spills"] - figures["restores"] >= 0
        assert (figures["pinned_bytes"] > 0) == any(self.pins.values())
        blocks = figures["allocations"] - figures["releases"]
        assert blocks == len(self.pins) + len(self.away)


TestLedgers = BothLedgers.TestCase
TestLedgers.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
