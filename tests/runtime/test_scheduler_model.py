"""The native bookkeeping and its Python reference, driven alike, never differ."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tilewright import _core, runtime  # noqa: F401  (the native scheduler needs its classes)
from tilewright.runtime.reference import ReferenceScheduler

SECOND = 1_000_000_000
HISTORY = 6

BYTES = st.integers(0, 12)
SUBMISSIONS = st.fixed_dictionaries(
    {},
    optional={
        "memory_bytes": BYTES,
        "priority": st.integers(-2, 2),
        "expected_s": st.sampled_from([0.0, 0.5, 1.0, 3.0]),
        "quality": st.sampled_from(["guaranteed", "burstable", "best_effort"]),
        "timeout_s": st.sampled_from([0.5, 2.0, 5.0]),
        "name": st.sampled_from(["a", "b"]),
    },
)
PACES = st.sampled_from([{}, {}, {"group": "g", "share": 0.25}, {"group": "h", "share": 0.3}])


class Pair(RuleBasedStateMachine):
    """Each step happens to both; times, states, order and figures must stay equal."""

    def __init__(self):
        super().__init__()
        self.now = 0
        self.tasks = []  # (native, reference), all ever made
        self.held = []  # those taken

    @initialize(
        memory=st.sampled_from([None, 8, 10, 14]),
        policy=st.sampled_from(["fifo", "shortest", "priority"]),
        aging=st.sampled_from([None, 1.0, 2.0, 2.0]),
    )
    def make(self, memory, policy, aging):
        arguments = (memory, policy, aging, HISTORY, lambda: self.now, lambda _: None)
        self.cores = _core._Scheduler(*arguments), ReferenceScheduler(*arguments)

    def both(self, step):
        """The two results, or the two errors, which must be of one kind and text."""
        results = []
        for core, side in zip(self.cores, (0, 1), strict=True):
            try:
                results.append((step(core, side), None))
            except (ValueError, RuntimeError) as error:
                results.append((None, (type(error), str(error))))
        assert results[0][1] == results[1][1]
        return results[0][0], results[1][0]

    @rule(options=SUBMISSIONS, pace=PACES, data=st.data())
    def submit(self, options, pace, data):
        after = []
        if self.tasks and data.draw(st.booleans()):
            after = data.draw(st.lists(st.sampled_from(range(len(self.tasks))), max_size=2))

        def step(core, side):
            needed = [self.tasks[i][side] for i in after]
            return core.submit(int, after=needed, **{"name": "n", **options}, **pace)

        pair = self.both(step)
        if pair[0] is not None:
            self.tasks.append(pair)

    @rule()
    def take(self):
        pair = self.both(lambda core, side: core.take(len(self.held), 0.0))
        assert (pair[0] is None) == (pair[1] is None)
        if pair[0] is not None:
            assert pair[0].id == pair[1].id
            self.held.append(pair)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), state=st.sampled_from(["completed", "completed", "failed", "cancelled"]))
    def finish(self, data, state):
        pair = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.both(lambda core, side: core.finish(pair[side], state))

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def finish_what_may_not_run(self, data):
        pair = data.draw(st.sampled_from(self.tasks))
        if pair not in self.held:
            self.both(lambda core, side: core.finish(pair[side], "completed"))

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def cancel(self, data):
        pair = data.draw(st.sampled_from(self.tasks))
        reached = self.both(lambda core, side: pair[side].cancel())
        assert reached[0] == reached[1]

    @precondition(lambda self: self.held)
    @rule(data=st.data(), use=st.integers(0, 15))
    def set_use(self, data, use):
        pair = data.draw(st.sampled_from(self.held))
        self.both(lambda core, side: core.set_use(pair[side], use))

    @rule(seconds=st.sampled_from([0.5, 1.0, 2.0]))
    def wait(self, seconds):
        self.now += int(seconds * SECOND)

    @rule()
    def expire(self):
        counts = self.both(lambda core, side: core.expire())
        assert counts[0] == counts[1]

    @rule(cancel=st.booleans(), rarely=st.integers(0, 15))
    def close(self, cancel, rarely):
        if rarely == 0:
            self.both(lambda core, side: core.close(cancel))

    @invariant()
    def agree(self):
        if not hasattr(self, "cores"):
            return
        assert self.cores[0].records() == self.cores[1].records()
        native, reference = (core.figures() for core in self.cores)
        for key in ("throughput_per_s", "mean_wait_ns"):
            assert native.pop(key) == pytest.approx(reference.pop(key), rel=1e-12)
        assert native == reference
        for native_task, task in self.tasks:
            assert native_task.done() == task.done()
            if task.done():
                assert native_task.state == task.state
                assert repr(native_task._error) == repr(task._error)

    def teardown(self):
        for pair in self.held:  # the core holds what was taken and not finished
            self.both(lambda core, side, pair=pair: core.finish(pair[side], "completed"))
        if hasattr(self, "cores"):
            self.both(lambda core, side: core.close(True))


TestPair = Pair.TestCase
TestPair.settings = settings(
    max_examples=300,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
