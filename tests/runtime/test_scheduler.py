"""`tw.runtime.Scheduler`: what users rely on, for the native scheduler and for the reference."""

import asyncio
import copy
import gc
import threading
import time
import traceback
import weakref
from concurrent.futures import CancelledError

import pytest
from cases.tasks import PATIENCE, Gate, implementation  # noqa: F401  (a fixture)

import tilewright as tw
from tilewright.runtime import Scheduler, current_task
from tilewright.runtime import scheduler as module


def order_of(submissions, **options):
    """The order in which a single worker runs tasks that were all there when it started."""
    ran = []
    with Scheduler(workers=1, start=False, **options) as scheduler:
        for name, settings in submissions:
            scheduler.submit(ran.append, name, **settings)
        scheduler.start()
    return ran


class TestOrder:
    def test_fifo(self):
        assert order_of([(i, {"priority": i}) for i in range(5)]) == [0, 1, 2, 3, 4]

    def test_priority(self):
        submissions = [("low", {}), ("high", {"priority": 2}), ("middle", {"priority": 1})]
        assert order_of(submissions, policy="priority") == ["high", "middle", "low"]

    @pytest.mark.parametrize("aging", [10.0, None])
    def test_shortest(self, aging):
        expected = {"long": 3.0, "short": 1.0, "unknown": None, "middle": 2.0}
        submissions = [(name, {"expected_s": seconds}) for name, seconds in expected.items()]
        ran = order_of(submissions, policy="shortest", aging_s=aging)
        assert ran == ["short", "middle", "long", "unknown"]

    def test_dependencies_run_first(self):
        ran = []
        with Scheduler(workers=2, policy="priority") as scheduler:
            first = scheduler.submit(ran.append, 1)
            second = scheduler.submit(ran.append, 2, after=first, priority=5)
            scheduler.submit(ran.append, 3, after=[first, second], priority=9)
        assert ran == [1, 2, 3]


class TestResults:
    def test_values_and_arguments(self):
        with Scheduler() as scheduler:
            task = scheduler.submit(int, "12", kwargs={"base": 3}, name="ternary")
            assert task.result(PATIENCE) == 5
            assert task.exception() is None
            assert task.done()
            assert repr(task) == "<Task 1 'ternary': completed>"
            assert scheduler.submit(dict, kwargs={"a": 1}).result(PATIENCE) == {"a": 1}

    def test_errors_keep_their_traceback(self):
        def fail_here():
            raise KeyError("gone")

        with Scheduler() as scheduler:
            task = scheduler.submit(fail_here)
            for _ in range(2):
                with pytest.raises(KeyError, match="gone") as caught:
                    task.result(PATIENCE)
                frames = traceback.extract_tb(caught.value.__traceback__)
                assert "fail_here" in [frame.name for frame in frames]
            assert task.state == "failed"
            assert scheduler.submit(int).result(PATIENCE) == 0  # the worker lives

    @pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
    def test_no_exception_ends_a_worker(self, error):
        def stop():
            raise error

        with Scheduler(workers=1) as scheduler:
            assert isinstance(scheduler.submit(stop).exception(PATIENCE), error)
            assert scheduler.submit(len, "ab").result(PATIENCE) == 2

    def test_results_in_time(self):
        gate = Gate()
        with Scheduler() as scheduler:
            task = scheduler.submit(gate)
            with pytest.raises(TimeoutError, match=r"is not done after 0\.01 s"):
                task.result(0.01)
            gate.opened.set()
            assert task.result(PATIENCE) == ()

    def test_callbacks(self):
        seen = []
        with Scheduler() as scheduler:
            task = scheduler.submit(len, "abc")
            task.add_done_callback(seen.append)
        task.add_done_callback(lambda done: seen.append(done.result()))
        assert seen == [task, 3]
        with pytest.raises(TypeError, match="not callable"):
            task.add_done_callback(3)

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_a_failing_callback_harms_nobody(self):
        seen = []
        scheduler = Scheduler(start=False)
        task = scheduler.submit(int)
        task.add_done_callback(lambda _: 1 / 0)
        task.add_done_callback(seen.append)
        task.cancel()
        assert seen == [task]

    def test_await(self):
        async def work(scheduler):
            tasks = [scheduler.submit(pow, 2, n) for n in range(10)]
            with pytest.raises(ZeroDivisionError):
                await scheduler.submit(divmod, 1, 0)
            return [await task for task in tasks]

        with Scheduler() as scheduler:
            assert asyncio.run(work(scheduler)) == [2**n for n in range(10)]

    def test_the_current_task(self):
        assert current_task() is None
        with Scheduler() as scheduler:
            task = scheduler.submit(current_task)
            assert task.result(PATIENCE) is task
            assert task.check() is None

    def test_memory_of_the_call_is_released(self):
        class Argument:
            pass

        argument = Argument()
        gone = weakref.ref(argument)
        with Scheduler() as scheduler:
            task = scheduler.submit(id, argument)
            task.result(PATIENCE)
            del argument
        assert gone() is None

    def test_cycles_through_results_are_collected(self):
        class Holder:
            pass

        holder = Holder()
        gone = weakref.ref(holder)
        with Scheduler() as scheduler:
            holder.task = scheduler.submit(copy.copy, [holder])
            assert holder.task.result(PATIENCE) == [holder]
        del holder, scheduler
        gc.collect()
        assert gone() is None


class TestCancellation:
    def test_pending(self):
        scheduler = Scheduler(start=False)
        first = scheduler.submit(int, name="first")
        second = scheduler.submit(int, after=first)
        assert first.state == "pending"
        assert first.cancel()
        assert not first.cancel()
        with pytest.raises(CancelledError, match=r"task 1 \(first\) was cancelled"):
            first.result()
        with pytest.raises(CancelledError, match="it needs task 1"):
            second.result()
        assert scheduler.submit(int, after=second).state == "cancelled"

    def test_running_tasks_are_asked(self):
        entered = threading.Event()

        def work():
            entered.set()
            while True:
                current_task().check()
                time.sleep(0.001)

        with Scheduler() as scheduler:
            task = scheduler.submit(work)
            assert entered.wait(PATIENCE)
            assert task.cancel()
            with pytest.raises(CancelledError):
                task.result(PATIENCE)
        assert task.state == "cancelled"

    def test_a_result_in_spite_of_it_stands(self):
        gate = Gate()
        with Scheduler() as scheduler:
            task = scheduler.submit(gate, 7)
            assert gate.entered.wait(PATIENCE)
            task.cancel()
            gate.opened.set()
            assert task.result(PATIENCE) == (7,)

    def test_a_failed_dependency(self):
        with Scheduler() as scheduler:
            failed = scheduler.submit(int, "x")
            later = scheduler.submit(int, after=failed)
            with pytest.raises(CancelledError, match="needs task 1, which has no result"):
                later.result(PATIENCE)

    def test_an_exception_in_the_block_cancels(self):
        tasks = []

        def block():
            with Scheduler(workers=1, start=False) as scheduler:
                tasks.append(scheduler.submit(int))
                raise ValueError("mine")

        with pytest.raises(ValueError, match="mine"):
            block()
        assert tasks[0].state == "cancelled"


class TestTimeLimits:
    def test_pending(self):
        gate = Gate()
        with Scheduler(workers=1) as scheduler:
            running = scheduler.submit(gate)
            task = scheduler.submit(int, timeout_s=0.01, name="late")
            with pytest.raises(TimeoutError, match=r"task 2 \(late\) passed its time limit"):
                task.result(PATIENCE)
            assert task.state == "failed"
            gate.opened.set()
            assert running.result(PATIENCE) == ()

    def test_running(self):
        gate = Gate()
        stopped = []

        def work():
            gate()
            try:
                current_task().check()
            except TimeoutError as error:
                stopped.append(error)
                raise

        with Scheduler(memory_bytes=100) as scheduler:
            task = scheduler.submit(work, timeout_s=0.02, memory_bytes=60)
            later = scheduler.submit(int, after=task)
            assert isinstance(task.exception(PATIENCE), TimeoutError)  # at once, not at its end
            assert scheduler.stats()["memory_bytes"] == 60
            assert isinstance(later.exception(PATIENCE), CancelledError)
            gate.opened.set()
            assert scheduler.wait(PATIENCE)
            assert scheduler.stats()["memory_bytes"] == 0
        assert stopped
        assert task.stats()["state"] == "failed"


class Pool:
    """What the scheduler needs of a tw.memory.Pool."""

    def __init__(self):
        self.bytes, self.inside = 0, 0

    def __enter__(self):
        self.inside += 1

    def __exit__(self, *_):
        self.inside -= 1

    def stats(self):
        return {"live_bytes": self.bytes}


class TestMemory:
    def test_the_budget_holds(self):
        lock = threading.Lock()
        used, most = 0, 0

        def work(need):
            nonlocal used, most
            with lock:
                used += need
                most = max(most, used)
            time.sleep(0.001)
            with lock:
                used -= need

        with Scheduler(memory_bytes=100, workers=8) as scheduler:
            for i in range(60):
                scheduler.submit(work, 10 + i % 50, memory_bytes=10 + i % 50)
        assert 0 < most <= 100
        assert scheduler.stats()["peak_memory_bytes"] <= 100

    def test_best_effort_runs_where_others_do_not_fit(self):
        gate = Gate()
        with Scheduler(memory_bytes=100, workers=2) as scheduler:
            scheduler.submit(gate, memory_bytes=60, quality="guaranteed")
            blocked = scheduler.submit(int, memory_bytes=60)
            free = scheduler.submit(int, memory_bytes=60, quality="best_effort")
            assert free.result(PATIENCE) == 0
            assert not blocked.done()
            gate.opened.set()

    def test_real_use_of_a_pool(self):
        pool, gate = Pool(), Gate()

        def work():
            pool.bytes = 90
            gate()
            return pool.inside

        with Scheduler(memory_bytes=100, workers=2) as scheduler:
            task = scheduler.submit(work, memory_bytes=10, pool=pool)
            assert gate.entered.wait(PATIENCE)
            second = scheduler.submit(int, memory_bytes=50)
            with pytest.raises(TimeoutError):
                second.result(0.05)
            pool.bytes = 20  # nobody is told; the scheduler looks
            assert second.result(PATIENCE) == 0
            gate.opened.set()
            assert task.result(PATIENCE) == 1
        assert pool.inside == 0
        assert task.stats()["peak_use_bytes"] >= 90

    def test_a_pool_of_the_engine(self):
        gate, pool = Gate(), tw.memory.Pool()

        def work():
            held = tw.zeros((30_000,))  # 120 kB, though ten were announced
            gate()
            return held.nbytes

        with Scheduler(memory_bytes=150_000, workers=2) as scheduler:
            task = scheduler.submit(work, memory_bytes=10, pool=pool)
            assert gate.entered.wait(PATIENCE)
            second = scheduler.submit(int, memory_bytes=50_000)
            with pytest.raises(TimeoutError):
                second.result(0.05)
            gate.opened.set()
            assert second.result(PATIENCE) == 0
        assert task.stats()["peak_use_bytes"] >= task.result() == 120_000
        assert pool.stats()["live_bytes"] == 0

    def test_a_large_task_is_not_starved(self):
        now = 0
        core = module.make_core(100, "fifo", 10.0, clock=lambda: now)
        core.submit(int, memory_bytes=40)
        running = core.take(0, 0.0)
        large = core.submit(int, memory_bytes=100)
        small = core.submit(int, memory_bytes=10)
        assert core.take(0, 0.0) is small
        now = 10 * 10**9
        core.submit(int, memory_bytes=10)
        core.finish(small, "completed")
        assert core.take(0, 0.0) is None
        core.finish(running, "completed")
        assert core.take(0, 0.0) is large
        core.finish(large, "completed")
        core.close(True)

    def test_waiting_for_a_dependency_does_not_age(self):
        now = 0
        core = module.make_core(100, "fifo", 10.0, clock=lambda: now)
        first, busy = core.submit(int), core.submit(int, memory_bytes=60)
        large = core.submit(int, memory_bytes=100, after=first)
        assert [core.take(0, 0.0), core.take(0, 0.0)] == [first, busy]
        now = 10 * 10**9
        core.finish(first, "completed")
        small = core.submit(int, memory_bytes=10)
        assert core.take(0, 0.0) is small  # the large one waits for its turn only since now
        core.finish(small, "completed")
        core.finish(busy, "completed")
        assert core.take(0, 0.0) is large
        core.finish(large, "completed")

    def test_a_group_keeps_its_share(self):
        now = 0
        core = module.make_core(None, "fifo", None, clock=lambda: now)
        tasks = [core.submit(int, group="g", share=0.25) for _ in range(2)]
        assert core.take(0, 0.0) is tasks[0]
        now = 1_000
        core.finish(tasks[0], "completed")
        now = 3_999
        assert core.take(0, 0.0) is None
        now = 4_000
        assert core.take(0, 0.0) is tasks[1]
        core.finish(tasks[1], "completed")

    def test_a_paced_group_goes_on_by_itself(self):
        with Scheduler(workers=2) as scheduler:
            for _ in range(5):
                scheduler.submit(time.sleep, 0.001, group="g", share=0.5)


class TestMisuse:
    @pytest.mark.parametrize(
        ("options", "error", "text"),
        [
            ({"memory_bytes": 101}, ValueError, "needs 101 bytes and the scheduler has 100"),
            ({"memory_bytes": -1}, ValueError, "must not be negative, got -1"),
            ({"share": 0.5}, ValueError, "name it with group="),
            ({"share": 0.0, "group": "g"}, ValueError, r"share must be in \(0, 1\], got 0"),
            ({"priority": 10**7}, ValueError, "priority must be within"),
            ({"quality": "best"}, ValueError, "one of guaranteed, burstable, best_effort"),
            ({"timeout_s": 0}, ValueError, "timeout_s must be above 0"),
            ({"expected_s": -1.0}, ValueError, "expected_s must be from 0"),
            ({"after": [3]}, TypeError, "after takes tasks, got int"),
            ({"color": 1}, TypeError, "no option 'color'; known: memory_bytes, "),
        ],
    )
    def test_submissions(self, options, error, text):
        scheduler = Scheduler(memory_bytes=100, start=False)
        with pytest.raises(error, match=text):
            scheduler.submit(int, **options)
        assert scheduler.stats()["submitted"] == 0

    def test_what_is_no_function(self):
        with pytest.raises(TypeError, match="must be callable"):
            Scheduler(start=False).submit(3)

    def test_a_task_of_another_scheduler(self):
        first, second = Scheduler(start=False), Scheduler(start=False)
        task = first.submit(int)
        with pytest.raises(ValueError, match="belongs to another scheduler"):
            second.submit(int, after=task)

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"memory_bytes": 0}, "memory_bytes must be at least 1, got 0"),
            ({"workers": 0}, "workers must be at least 1, got 0"),
            ({"policy": "best"}, "one of fifo, shortest, priority; got 'best'"),
            ({"aging_s": -1.0}, "aging_s must be from 0"),
        ],
    )
    def test_schedulers(self, options, text):
        with pytest.raises(ValueError, match=text):
            Scheduler(**options)

    def test_after_the_close(self):
        scheduler = Scheduler()
        scheduler.close()
        scheduler.close(cancel=True)
        with pytest.raises(RuntimeError, match="the scheduler is closed"):
            scheduler.submit(int)

    def test_waiting_without_workers(self):
        scheduler = Scheduler(start=False)
        assert scheduler.wait(0)
        scheduler.submit(int)
        with pytest.raises(RuntimeError, match=r"1 tasks are pending and no worker runs"):
            scheduler.wait()

    def test_tasks_are_made_by_submit_alone(self):
        with pytest.raises(TypeError, match=r"made by Scheduler\.submit"):
            tw.runtime.Task()
