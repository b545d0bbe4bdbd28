"""Modes belong to a thread: recording, forced kernels, observation, device and pool."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core

RUNGS = ["naive", "tiled", "simd", "packed"]


def modes() -> tuple[Any, ...]:
    return (
        tw.is_grad_enabled(),
        tw.active_isa(),
        _core.forced_kernel("matmul"),
        tw.active_device(),
    )


DEFAULTS = modes()


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    yield
    assert modes() == DEFAULTS
    assert run_in_thread(modes) == DEFAULTS


def run_in_thread(function: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(function).result()


def on_threads(count: int, function: Callable[[int], None]) -> None:
    """All start together; the first error is raised here."""
    barrier = threading.Barrier(count)

    def run(i: int) -> None:
        barrier.wait()
        function(i)

    with ThreadPoolExecutor(count) as threads:
        for done in [threads.submit(run, i) for i in range(count)]:
            done.result()


def other_isa() -> str:
    return next(isa for isa in tw.kernels.isas() if isa != tw.active_isa())


class TestThreads:
    def test_each_runs_under_its_own(self):
        x = tw.ones((128, 128), requires_grad=True)
        isas = tw.kernels.isas()

        def work(i: int) -> None:
            rung, isa = RUNGS[i], isas[i % len(isas)]
            for round_ in range(25):
                with contextlib.ExitStack() as stack:
                    report = stack.enter_context(tw.explain())
                    stack.enter_context(tw.set_grad_enabled(i % 2 == 0))
                    stack.enter_context(tw.kernels.use(matmul=rung, isa=isa))
                    y = x @ x
                    z = tw.exp(y * 0.001)
                    assert modes() == (i % 2 == 0, isa, rung, "cpu")
                    assert z.requires_grad == (i % 2 == 0)
                assert [entry.op for entry in report] == ["matmul", "multiply", "exp"]
                assert report[0].kernel == rung
                assert {entry.isa for entry in report} == {isa}
                assert float(y.detach()[3, 5]) == 128
                tw.set_device("null" if (i + round_) % 2 else "cpu")
                assert tw.active_device() == ("null" if (i + round_) % 2 else "cpu")
                tw.set_device("cpu")

        on_threads(4, work)

    def test_what_ends_under_other_modes_does_not_reach_others(self):
        def work(i: int) -> None:
            tw.set_device("null")
            _core.force_kernel("matmul", RUNGS[i])
            _core.set_isa(tw.kernels.isas()[0])
            tw.no_grad().__enter__()
            tw.explain().__enter__()
            assert modes() == (False, tw.kernels.isas()[0], RUNGS[i], "null")

        on_threads(4, work)
        assert modes() == DEFAULTS
        assert (tw.ones((2,)) + 1.0).tolist() == [2.0, 2.0]

    def test_a_new_thread_starts_with_the_defaults(self):
        with tw.no_grad(), tw.kernels.use(matmul="naive", isa=other_isa()), tw.explain() as report:
            got = run_in_thread(modes)
            run_in_thread(lambda: tw.ones((2,)) + 1.0)
        assert got == DEFAULTS
        assert not len(report)

    @pytest.mark.parametrize("block", [
        tw.no_grad, lambda: tw.kernels.use(matmul="naive", isa=other_isa()),
        tw.inference_mode,
    ], ids=["no_grad", "use", "inference_mode"])  # fmt: skip
    def test_one_object_for_all(self, block):
        shared = block()

        def work(i: int) -> None:
            rng = np.random.default_rng(i)
            for _ in range(200):
                depth = int(rng.integers(1, 4))
                for _ in range(depth):
                    shared.__enter__()
                    assert modes() != DEFAULTS
                for _ in range(depth):
                    assert modes() != DEFAULTS
                    shared.__exit__(None, None, None)
                assert modes() == DEFAULTS

        on_threads(4, work)

    def test_one_report_for_all(self):
        report = tw.explain()

        def work(i: int) -> None:
            x = tw.ones((4, i + 1))
            for _ in range(100):
                with report:
                    x + x

        on_threads(4, work)
        assert len(report) == 400
        assert {entry.problem for entry in report._recorded} == {
            f"float32 (4, {i})" for i in range(1, 5)
        }

    def test_one_recorder_for_all(self):
        recorder = tw.memory.record()
        second_is_in, first_is_out = threading.Event(), threading.Event()

        def first() -> tw.memory.Timeline:
            with recorder as timeline:
                tw.ones((1000,))
                threads.submit(second)
                assert second_is_in.wait(10)
            return timeline

        def second() -> None:
            with recorder:
                second_is_in.set()
                assert first_is_out.wait(10)

        with ThreadPoolExecutor(2) as threads:
            timeline = threads.submit(first).result()
            events = list(timeline.events)
            first_is_out.set()
        assert events, "the log of the block that ended is there"

    def test_reading_a_report_side_by_side(self):
        x = tw.ones((64, 64))
        with tw.explain() as report:
            for _ in range(20):
                x = x @ x * 0.01

        def work(i: int) -> None:
            for _ in range(5):
                if i == 0:
                    with report:
                        x + x
                assert "matmul" in str(report)
                assert [entry.op for entry in report][:2] == ["matmul", "multiply"]

        on_threads(4, work)
        assert len(report.entries) == len(report) == 45

    def test_dry_walks_beside_kernels_that_run_without_the_lock(self):
        """A planned pass finds its plan while others compute: neither takes the other's lock."""
        large = tw.ones((1024, 1024))

        def work(i: int) -> None:
            if i % 2:
                for _ in range(15):
                    assert float((large + large).sum()) == 2 * 1024**2
                return
            w = tw.ones((256, 256), requires_grad=True)
            for _ in range(15):
                w.grad = None
                (tw.exp(w) * w).sum().backward(plan=True)
                assert abs(float(w.grad[5, 5]) - 5.4365637) < 1e-5

        on_threads(4, work)

    def test_observing_and_devices_beside_the_memory_log(self):
        x = tw.ones((64, 64))

        def work(i: int) -> None:
            for _ in range(20):
                if i == 0:
                    with tw.memory.record():
                        x + x
                else:
                    with tw.explain() as report:
                        x @ x
                    assert len(report) == 1

        on_threads(3, work)


class TestPassesOfThreads:
    """Kernels of a pass run without Python's lock, so that passes of threads interleave."""

    def test_into_one_leaf(self):
        w = tw.ones((1024, 1024), requires_grad=True)

        def work(i: int) -> None:
            for _ in range(10):
                (w * float(i + 1)).sum().backward()

        on_threads(4, work)
        np.testing.assert_array_equal(w.grad.numpy(), np.full((1024, 1024), 100.0))

    @pytest.mark.parametrize("retain", [False, True])
    def test_through_one_graph(self, retain):
        """One pass at a time: the others get an error, or their turn where the graph stays."""
        w = tw.randn(512, 512).requires_grad_()
        y = w
        for _ in range(4):
            y = tw.tanh(y @ w * 0.01)
        loss = y.sum()
        errors = []

        def work(_: int) -> None:
            for _ in range(3):
                try:
                    loss.backward(retain_graph=retain)
                except RuntimeError as error:
                    errors.append(str(error))

        on_threads(4, work)
        assert len(errors) >= (0 if retain else 11)
        for error in errors:
            assert "one pass at a time" in error or "released by the first" in error


class TestOrder:
    """Blocks may end in any order, also as generators are collected."""

    @pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
    def test_of_recording(self, order):
        blocks = [tw.no_grad(), tw.enable_grad(), tw.inference_mode()]
        wanted = [False, True, False]
        for block in blocks:
            block.__enter__()
        left = [0, 1, 2]
        for i in order:
            blocks[i].__exit__(None, None, None)
            left.remove(i)
            assert tw.is_grad_enabled() == (wanted[left[-1]] if left else True)

    @pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
    def test_of_kernels(self, order):
        isa = other_isa()
        blocks = [
            tw.kernels.use(matmul="naive"),
            tw.kernels.use(isa=isa),
            tw.kernels.use(matmul="tiled", isa=tw.active_isa()),
        ]
        kernels, isas = ["naive", None, "tiled"], [None, isa, tw.active_isa()]
        for block in blocks:
            block.__enter__()
        left = [0, 1, 2]
        for i in order:
            blocks[i].__exit__(None, None, None)
            left.remove(i)
            kernel = [kernels[j] for j in left if kernels[j]]
            chosen = [isas[j] for j in left if isas[j]]
            assert _core.forced_kernel("matmul") == (kernel[-1] if kernel else "")
            assert tw.active_isa() == (chosen[-1] if chosen else DEFAULTS[1])

    @pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
    def test_of_observers(self, order):
        x = tw.ones((3,))
        reports = [tw.explain() for _ in range(3)]
        for report in reports:
            report.__enter__()
            x + x
        for i in order:
            reports[i].__exit__(None, None, None)
            x + x
        for i, report in enumerate(reports):
            assert len(report) == 3 - i + order.index(i)

    def test_unknown_names_change_nothing(self):
        with pytest.raises(ValueError, match="no kernel 'fastest'"):
            tw.kernels.use(matmul="fastest", isa=other_isa()).__enter__()
        with pytest.raises(ValueError, match="no op 'nothing'"):
            tw.kernels.use(matmul="naive", nothing="naive").__enter__()

    def test_an_empty_use(self):
        with tw.kernels.use():
            assert modes() == DEFAULTS

    def test_setters_within_a_block_end_with_it(self):
        with tw.kernels.use(matmul="naive"):
            _core.force_kernel("matmul", "tiled")
            assert _core.forced_kernel("matmul") == "tiled"

    def test_ending_on_another_thread_is_an_error_and_changes_nothing_there(self):
        block = tw.no_grad()
        block.__enter__()

        def end() -> bool:
            with pytest.raises(RuntimeError, match="modes belong to a thread"):
                block.__exit__(None, None, None)
            return tw.is_grad_enabled()

        assert run_in_thread(end)
        assert not tw.is_grad_enabled()
        block.__exit__(None, None, None)

    @pytest.mark.parametrize("block", [
        tw.explain, tw.memory.record, tw.no_grad, tw.autocast,
        lambda: tw.kernels.use(matmul="naive"), lambda: tw.memory.Pool(quota_bytes=1 << 20),
    ], ids=["explain", "record", "no_grad", "autocast", "use", "Pool"])  # fmt: skip
    def test_ending_what_is_not_open_is_an_error(self, block):
        ended = block()
        with ended:
            pass
        for nothing_open in (ended, block()):
            with pytest.raises(tw.StateError):
                nothing_open.__exit__(None, None, None)
        assert modes() == DEFAULTS

    def test_blocks_show_what_they_choose(self):
        assert repr(tw.no_grad()) == "<no_grad: mode=False>"
        forced = tw.kernels.use(matmul="naive")
        assert repr(forced) == "<use: isa=None, forced={'matmul': 'naive'}>"
        assert repr(tw.autocast()) == "<autocast: dtype=tilewright.bfloat16, enabled=True>"

    def test_a_report_may_end_on_another_thread(self):
        x = tw.ones((2,))
        report = tw.explain()
        report.__enter__()
        x = x + 1.0
        run_in_thread(lambda: report.__exit__(None, None, None))
        x + x
        assert len(report) == 1

    def test_generators_with_reports(self):
        def opened(x: tw.Tensor) -> Iterator[tw.explain]:
            with tw.explain() as report:
                x + x
                yield report
                x * x

        x = tw.ones((2,))
        generators = [opened(x) for _ in range(4)]
        reports = [next(generator) for generator in generators]
        for i in (1, 3, 0, 2):
            generators[i].close()
            x - x
        assert [len(report) for report in reports] == [6, 3, 5, 2]
        with_collector = [next(generator) for generator in [opened(x)]]
        gc.collect()
        x + x
        assert len(with_collector[0]) == 1

    def test_generators_that_threads_share(self):
        """A generator entered on one thread and ended by another leaves the others alone."""

        def opened() -> Iterator[tw.explain]:
            with tw.explain() as report:
                yield report

        generator = run_in_thread(lambda: (g := opened(), next(g))[0])
        tw.ones((2,)) + 1.0
        generator.close()


class TestDecorators:
    def test_functions(self):
        @tw.no_grad()
        def inside(deep: int) -> bool:
            return inside(deep - 1) if deep else tw.is_grad_enabled()

        assert not inside(3)
        assert tw.kernels.use(matmul="naive")(_core.forced_kernel)("matmul") == "naive"

    def test_generators_are_inside_only_while_they_run(self):
        @tw.no_grad()
        def numbers() -> Iterator[Any]:
            try:
                got = yield tw.is_grad_enabled()
                assert got == "sent"
                try:
                    yield tw.is_grad_enabled()
                except KeyError:
                    yield tw.is_grad_enabled()
            finally:
                assert not tw.is_grad_enabled()
            return "end"

        def through() -> Iterator[Any]:
            assert (yield from numbers()) == "end"

        generator = numbers()
        assert not next(generator)
        assert tw.is_grad_enabled()
        assert not generator.send("sent")
        assert tw.is_grad_enabled()
        assert not generator.throw(KeyError("x"))
        assert tw.is_grad_enabled()
        generator.close()
        both = through()
        assert not next(both)
        assert not both.send("sent")
        assert next(both, "end") == "end"

    def test_coroutines_are_inside_only_while_they_run(self):
        @tw.no_grad()
        async def inside(turns: int) -> list[bool]:
            seen = []
            for _ in range(turns):
                seen.append(tw.is_grad_enabled())
                await asyncio.sleep(0)
            return seen

        async def outside(turns: int) -> list[bool]:
            return await type(self).plain(turns)

        async def both() -> list[list[bool]]:
            return await asyncio.gather(inside(5), outside(5), inside(4))

        assert asyncio.run(both()) == [[False] * 5, [True] * 5, [False] * 4]
        assert asyncio.iscoroutinefunction(inside)

    @staticmethod
    async def plain(turns: int) -> list[bool]:
        seen = []
        for _ in range(turns):
            seen.append(tw.is_grad_enabled())
            await asyncio.sleep(0)
        return seen

    def test_blocks_of_asyncio_tasks_share_the_thread(self):
        """As documented: and once all have ended, nothing is left in force."""

        async def task(turns: int) -> None:
            with tw.no_grad(), tw.kernels.use(matmul="naive"), tw.explain():
                for _ in range(turns):
                    await asyncio.sleep(0)
                    assert not tw.is_grad_enabled()

        async def all_of_them() -> None:
            await asyncio.gather(*(task(turns) for turns in (3, 1, 4, 2)))

        asyncio.run(all_of_them())

    def test_asynchronous_generators_are_refused(self):
        async def numbers():
            yield 1

        with pytest.raises(TypeError, match="asynchronous generator"):
            tw.no_grad()(numbers)


class TestTasks:
    def test_run_under_their_submitters_modes(self):
        isa = other_isa()
        x = tw.ones((64, 64), requires_grad=True)
        with tw.runtime.Scheduler(workers=3) as scheduler:
            plain = scheduler.submit(modes)
            with tw.no_grad(), tw.kernels.use(matmul="naive", isa=isa):
                forced = [scheduler.submit(modes) for _ in range(10)]
                product = scheduler.submit(lambda: (x @ x).requires_grad)
            tw.set_device("null")
            elsewhere = scheduler.submit(tw.active_device)
            tw.set_device("cpu")
            after = [scheduler.submit(modes) for _ in range(10)]
        assert plain.result() == DEFAULTS
        assert {task.result() for task in forced} == {(False, isa, "naive", "cpu")}
        assert product.result() is False
        assert elsewhere.result() == "null"
        assert {task.result() for task in after} == {DEFAULTS}

    def test_each_submitter_has_its_own(self):
        with tw.runtime.Scheduler(workers=4) as scheduler:

            def work(i: int) -> None:
                with tw.kernels.use(matmul=RUNGS[i]), tw.set_grad_enabled(i % 2 == 0):
                    tasks = [scheduler.submit(modes) for _ in range(30)]
                assert {task.result()[2] for task in tasks} == {RUNGS[i]}
                assert {task.result()[0] for task in tasks} == {i % 2 == 0}

            on_threads(4, work)

    def test_reports_hear_of_them(self):
        x = tw.ones((8, 8))
        with tw.runtime.Scheduler(workers=4) as scheduler:
            with tw.explain() as report:
                tasks = [scheduler.submit(lambda: x @ x) for _ in range(50)]
                scheduler.submit(lambda: tw.kernels.use(matmul="naive").__enter__())
                for task in tasks:
                    task.result()
            late = scheduler.submit(lambda: x + x)
            late.result()
        assert [entry.op for entry in report] == ["matmul"] * 50

    def test_a_report_that_ends_before_its_tasks(self):
        x = tw.ones((8, 8))
        go = threading.Event()

        def slow() -> None:
            go.wait(60)
            x @ x

        with tw.runtime.Scheduler(workers=2) as scheduler:
            with tw.explain() as report:
                tasks = [scheduler.submit(slow) for _ in range(4)]
            go.set()
            for task in tasks:
                task.result()
        assert len(report) == 0

    def test_what_a_task_changes_ends_with_it(self):
        def change() -> None:
            tw.set_device("null")
            _core.force_kernel("matmul", "naive")
            tw.no_grad().__enter__()
            tw.explain().__enter__()
            tw.memory.Pool().__enter__()

        pool = tw.memory.Pool()
        with tw.runtime.Scheduler(workers=1) as scheduler:
            scheduler.submit(change).result()
            got = scheduler.submit(modes)
            with pool:
                inside = scheduler.submit(tw.zeros, (1024,))
            outside = scheduler.submit(tw.zeros, (1024,))
        assert got.result() == DEFAULTS
        assert inside.result().shape == outside.result().shape
        assert pool.stats()["allocations"] == 1

    def test_a_pool_stays_for_the_tasks_that_use_it(self):
        go = threading.Event()
        with tw.runtime.Scheduler(workers=1) as scheduler:
            scheduler.submit(go.wait, 60)
            with tw.memory.Pool(quota_bytes=1 << 20):
                task = scheduler.submit(lambda: tw.full((1000,), 2.0) + 1.0)
            gc.collect()
            go.set()
        assert float(task.result()[7]) == 3.0

    def test_the_python_bookkeeping_does_so_too(self):
        code = """
            import tilewright as tw
            x = tw.ones((4, 4))
            with tw.runtime.Scheduler(workers=2) as scheduler:
                with tw.no_grad(), tw.kernels.use(matmul="naive"), tw.explain() as report:
                    tasks = [scheduler.submit(lambda: (x @ x, tw.is_grad_enabled())[1])
                             for _ in range(5)]
                    print([task.result() for task in tasks])
                print(scheduler.submit(tw.is_grad_enabled).result())
            print([entry.kernel for entry in report])
        """
        lines = "\n".join(line[12:] for line in code.splitlines())
        done = subprocess.run(
            [sys.executable, "-c", lines], capture_output=True, text=True, timeout=60, check=True,
            env={"TILEWRIGHT_NATIVE_RUNTIME": "0"},
        )  # fmt: skip
        assert done.stdout.splitlines() == [str([False] * 5), "True", str(["naive"] * 5)]

    def test_bound_functions_on_other_threads(self):
        x = tw.ones((4, 4))
        with tw.no_grad(), tw.kernels.use(matmul="naive"), tw.explain() as report:
            bound = tw.runtime.bind_modes(modes)
            product = tw.runtime.bind_modes(lambda *, y: x @ y)
            with ThreadPoolExecutor(2) as threads:
                got = list(threads.map(lambda _: bound(), range(8)))
                threads.submit(product, y=x).result()
                assert threads.submit(modes).result() == DEFAULTS
        assert set(got) == {(False, DEFAULTS[1], "naive", "cpu")}
        assert [entry.op for entry in report] == ["matmul"]
        assert bound()[:3] == (False, DEFAULTS[1], "naive")

    def test_errors_of_bound_functions_leave_the_thread_as_it_was(self):
        with tw.no_grad():
            fails = tw.runtime.bind_modes(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            fails()
        assert tw.is_grad_enabled()


class TestLoaders:
    def test_batches_are_made_under_the_consumers_modes(self, tmp_path):
        """Files are read by the engine's threads; every op on them runs where batches are taken."""
        x = tw.arange(32, dtype=tw.float32).reshape((8, 4))
        path = tmp_path / "x.bin"
        path.write_bytes(x.numpy().tobytes())
        stored = tw.data.FileTensor(path, (8, 4), tw.float32)
        loader = tw.data.DataLoader([stored, x], batch_size=2, shuffle=True, seed=1)

        def work(i: int) -> None:
            for _ in range(5):
                with tw.kernels.use(isa=tw.kernels.isas()[i % 2]), tw.explain() as report:
                    for a, b in loader:
                        np.testing.assert_array_equal(a.numpy(), b.numpy())
                assert len(report) >= 4

        on_threads(4, work)


class TestProcessSettings:
    """Shared by all threads, as in PyTorch."""

    def test_precision_and_threads(self):
        before = tw.get_float32_matmul_precision(), tw.get_num_threads()
        try:
            tw.set_float32_matmul_precision("medium")
            tw.set_num_threads(1)
            seen = run_in_thread(lambda: (tw.get_float32_matmul_precision(), tw.get_num_threads()))
            assert seen == ("medium", 1)
        finally:
            tw.set_float32_matmul_precision(before[0])
            tw.set_num_threads(before[1])


def test_the_environment_forces_in_every_thread():
    code = """
        import threading
        import tilewright as tw
        from concurrent.futures import ThreadPoolExecutor
        def kernel():
            with tw.explain() as report:
                tw.ones((4, 4)) @ tw.ones((4, 4))
            return report[-1].kernel, report[-1].isa
        with tw.kernels.use(matmul="simd"), ThreadPoolExecutor(1) as threads:
            print(kernel()[0], *threads.submit(kernel).result())
    """
    lines = "\n".join(line[8:] for line in code.splitlines())
    done = subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, timeout=60, check=True,
        env={"TILEWRIGHT_MATMUL": "tiled", "TILEWRIGHT_ISA": "scalar"},
    )  # fmt: skip
    assert done.stdout.split() == ["simd", "tiled", "scalar"]


class TestWorkersOfLoaders:
    class Modes:
        """A data set whose items are the modes that they are read under."""

        def __len__(self) -> int:
            return 12

        def __getitem__(self, i: int) -> tuple[Any, ...]:
            return (*modes(), tw.is_autocast_enabled(), tw.is_batch_invariant())

    @staticmethod
    def seen(workers: int) -> list[tuple[Any, ...]]:
        loader = tw.data.DataLoader(
            TestWorkersOfLoaders.Modes(), 3, num_workers=workers, collate_fn=list
        )
        return [item for batch in loader for item in batch]

    @pytest.mark.parametrize("workers", [0, 1, 3])
    def test_run_under_those_of_who_takes_the_batches(self, workers):
        block = tw.kernels.use(matmul="naive", isa=other_isa())
        with tw.no_grad(), block, tw.autocast(), tw.use_batch_invariant():
            expected = (*modes(), True, True)
            assert expected[:4] != DEFAULTS
            assert self.seen(workers) == [expected] * 12
        assert self.seen(workers) == [(*DEFAULTS, False, False)] * 12

    @pytest.mark.parametrize("workers", [0, 2])
    def test_those_of_a_thread_do_not_reach_others(self, workers):
        def work(i: int) -> None:
            with tw.kernels.use(matmul=RUNGS[i]), tw.set_grad_enabled(i % 2 == 0):
                for _ in range(5):
                    assert {item[:4] for item in self.seen(workers)} == {modes()}

        on_threads(4, work)

    def test_batches_are_made_in_the_pool_in_force(self):
        loader = tw.data.DataLoader(list(range(12)), 3, num_workers=2)
        with tw.memory.Pool() as pool:
            kept = list(loader)
            assert pool.stats()["live_bytes"] >= sum(x.nbytes for x in kept)
