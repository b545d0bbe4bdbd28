"""The search of `tilewright tune` on made-up machines: what they like is found, noise is not."""

from __future__ import annotations

import pytest
from cases.tuning import Machine

import tilewright as tw
from tilewright import tune
from tilewright.tune import rungs, search, table
from tilewright.tune.search import Search
from tilewright.tune.timing import Stopwatch, Work


@pytest.fixture(autouse=True)
def folder(tuning_folder):
    return tuning_folder


def outcomes_of(clock, seconds=90.0):
    found, outcomes = Search(clock, seconds).run()
    return found, {outcome.name: outcome for outcome in outcomes}


class TestSearch:
    def test_a_machine_like_the_default_keeps_it(self):
        found, outcomes = outcomes_of(Machine())
        assert found.values == {}
        assert not any(outcome.values for outcome in outcomes.values())
        assert table.read(tune.path()) == found

    @pytest.mark.parametrize("factor", [0.5, 1.5])
    @pytest.mark.parametrize("name", ["block_bytes", "run_bytes", "small_bytes_of_a"])
    def test_finds_what_a_machine_likes(self, name, factor):
        usual = tune.defaults()[name]
        tried = next(step for step in search.STEPS if step.name == name).candidates(usual)
        wanted = min(tried, key=lambda value: abs(value - usual * factor))
        found, outcomes = outcomes_of(Machine(best={name: wanted}))
        assert found.values == {name: wanted}
        assert outcomes[name].gain > 0.05
        assert tune.current() == tune.defaults() | found.values

    @pytest.mark.parametrize("seed", range(5))
    def test_keeps_the_default_in_noise(self, seed):
        found, _ = outcomes_of(Machine(noise=0.2, seed=seed))
        assert found.values == {}

    def test_finds_it_in_noise_smaller_than_the_gain(self):
        usual = tune.defaults()["block_bytes"]
        clock = Machine(best={"block_bytes": usual // 2}, loss=0.3, noise=0.02)
        found, _ = outcomes_of(clock)
        assert found.values == {"block_bytes": usual // 2}

    def test_a_gain_below_two_percent_is_none(self):
        usual = tune.defaults()["block_bytes"]
        found, _ = outcomes_of(Machine(best={"block_bytes": usual // 2}, loss=0.01))
        assert found.values == {}

    def test_threads_are_measured_only_where_there_are_several(self):
        for threads in (1, 2):
            tw.set_num_threads(threads)
            clock = Machine()
            _, outcomes = outcomes_of(clock)
            assert ("work_per_part" in outcomes) == (threads > 1)
            assert {work.threads for work in clock.seen} == ({1} if threads == 1 else {0, 1})
            assert tw.get_num_threads() == threads

    def test_rates_follow_the_machine(self):
        # Packing is far slower here than the defaults think, and direct far quicker to start.
        usual = tune.defaults()["direct_ns_per_flop"]
        rates = {"packed": (60, 3 * usual), "simd": (90, 1.2 * usual), "direct": (500, 2 * usual)}
        clock = Machine(rates=rates)
        found, outcomes = outcomes_of(clock)
        assert outcomes["cost model"].gain > 0.02
        assert found.values.keys() & {f"{rung}_ns_per_flop" for rung in rates}
        for n in (96, 256, 512, 1024):
            work = Work(n, n, n)
            fastest = min(
                (name for name in rates),
                key=lambda rung: clock.seconds(work._replace(kernel=rung)),
            )
            assert rungs.estimates(work)[fastest].chosen

    def test_estimates_compute_nothing_and_leave_no_trace(self):
        with tw.explain() as outer:
            found = rungs.estimates(Work(4096, 4096, 4096, transposed=True))
        assert len(outer) == 0
        assert tw.active_device() == "cpu"
        assert sum(rung.chosen for rung in found.values()) == 1
        assert all(0 <= rung.fixed_ns <= rung.ns for rung in found.values())

    @pytest.mark.parametrize("speed", [1, 100, 10_000])
    @pytest.mark.parametrize("seconds", [1.0, 10.0, 90.0])
    def test_ends_in_time(self, speed, seconds):
        clock = Machine(speed=speed, noise=0.05)
        found, _ = outcomes_of(clock, seconds)
        one_call = 2.0 * 2048**3 * 0.005e-9 * speed
        assert found.seconds <= 1.1 * seconds + 2 * one_call

    def test_without_time_nothing_is_measured(self):
        found, outcomes = outcomes_of(Machine(speed=1e6), seconds=0.01)
        assert found.values == {}
        assert {outcome.note for outcome in outcomes.values()} <= {"no time left", "nothing to try"}

    def test_an_interrupt_leaves_no_table(self, folder):
        clock = Machine(best={"run_bytes": 2048})

        def interrupted(work):
            if clock.samples > 500:
                raise KeyboardInterrupt
            return Machine.seconds(clock, work)

        clock.seconds = interrupted
        threads = tw.get_num_threads()
        with pytest.raises(KeyboardInterrupt):
            Search(clock, 90).run()
        assert list(folder.iterdir()) == []
        assert tune.current() == tune.defaults()
        assert tw.get_num_threads() == threads

    def test_progress_goes_from_nothing_to_all(self):
        told = []
        Search(Machine(), 90, lambda share, text: told.append((share, text))).run()
        shares = [share for share, _ in told]
        assert shares == sorted(shares)
        assert 0 <= shares[0] < 0.1
        assert shares[-1] <= 1
        assert any("block_bytes  1024x1024x1024" in text for _, text in told)

    def test_a_forced_kernel_is_in_the_way(self):
        with tw.kernels.use(matmul="naive"), pytest.raises(ValueError, match="'naive' is forced"):
            Search(Machine(), 90).run()

    @pytest.mark.parametrize("seconds", [0, -1, float("nan")])
    def test_time_must_be_positive(self, seconds):
        with pytest.raises(ValueError, match="seconds must be above 0"):
            Search(Machine(), seconds)

    def test_a_real_run(self):
        told = []
        found, outcomes = tune.run(2.0, lambda share, text: told.append(share), ["cpu"])
        assert table.read(tune.path()) == found
        assert outcomes
        assert told

    def test_the_stopwatch_times_what_it_is_told(self):
        clock = Stopwatch()
        before = clock.now()
        with tw.explain() as report:
            seconds = clock.seconds(Work(8, 16, 24, transposed=True, kernel="naive"))
        assert 0 < seconds < clock.now() - before
        entries = [entry for entry in report._recorded if entry.op == "matmul"]
        assert {(entry.kernel, entry.problem) for entry in entries} == {
            ("naive", "float32 8x24x16")
        }
        assert {entry.threads for entry in entries} == {tw.get_num_threads()}
