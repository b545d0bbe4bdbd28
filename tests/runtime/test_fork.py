"""Processes that fork after computing, and Python threads that compute at the same time."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from cases.threads import PATIENCE_SECONDS, run_all

import tilewright as tw
from tilewright.runtime import Scheduler

# A child that hangs is killed after this time, far above what its work takes.


def train_step(n=192):
    """Forward and backward that use all threads; True where the gradient is right."""
    stream = tw.Generator(1)
    x = tw.normal(0.0, 1.0, (n, n), generator=stream)
    w = tw.normal(0.0, 1.0, (n, n), generator=stream, requires_grad=True)
    (x @ w).sum().backward()
    expected = np.asarray(x).sum(axis=0)[:, None].repeat(n, axis=1)
    return bool(np.allclose(np.asarray(w.grad), expected, rtol=1e-3, atol=1e-2))


def exit_code_of_child(work):
    """Runs `work` in a fork; its exit code, or an assertion where it hangs or crashes."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if work() else 3)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(4)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert not os.WIFSIGNALED(status), f"killed by signal {os.WTERMSIG(status)}"
            return os.WEXITSTATUS(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pytest.fail("the child hangs")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
class TestFork:
    @pytest.fixture(autouse=True)
    def _two_threads(self, threads):
        tw.set_num_threads(2)

    def test_after_backward(self):
        assert train_step()
        assert exit_code_of_child(train_step) == 0
        assert train_step()

    def test_of_a_fork(self):
        assert train_step()
        assert exit_code_of_child(lambda: exit_code_of_child(train_step) == 0) == 0

    def test_many_times(self):
        for _ in range(5):
            train_step()
            assert exit_code_of_child(train_step) == 0

    def test_child_changes_the_number_of_threads(self):
        def work():
            tw.set_num_threads(3)
            return train_step()

        train_step()
        assert exit_code_of_child(work) == 0
        assert tw.get_num_threads() == 2

    def test_memory_is_the_childs_own(self):
        x = tw.zeros((1000,))

        def work():
            x.fill_(1.0)
            return x.sum().item() == 1000.0

        assert exit_code_of_child(work) == 0
        assert x.sum().item() == 0.0

    def test_from_another_thread(self):
        codes = []
        train_step()
        thread = threading.Thread(target=lambda: codes.append(exit_code_of_child(train_step)))
        thread.start()
        thread.join()
        assert codes == [0]

    def test_while_pools_schedulers_and_modes_are_in_use(self, tmp_path):
        """Child and parent go on, each with what all these threads do."""

        def streams():
            # Every use of a matrix drives another one out, and the next comes back beside it.
            with tw.memory.Pool(quota_bytes=5 * 128 * 1024, spill_dir=tmp_path):
                kept = [tw.full((128, 128), float(i), dtype=tw.float64) for i in range(12)]
                for i, x in enumerate(kept):
                    tw.zeros((256, 128), dtype=tw.float64)
                    assert x.max().item() == x.min().item() == i

        def schedules():
            with Scheduler(1 << 30, workers=2) as scheduler:
                tasks = [scheduler.submit(train_step, 64) for _ in range(4)]
                assert all(task.result(PATIENCE_SECONDS) for task in tasks)

        def chooses():
            a = tw.full((64, 64), 2.0, requires_grad=True)
            with tw.no_grad(), tw.kernels.use(matmul="naive"), tw.explain() as report:
                y = a @ a
            assert (y.requires_grad, report._recorded[0].kernel) == (False, "naive")

        def observes():
            with tw.memory.record():
                assert (tw.ones((1000,)) * 2).sum().item() == 2000

        works = [streams, schedules, chooses, observes, train_step]

        def all_works():
            for work in works:
                work()
            return True

        all_works()  # imports what is imported on first use: a fork leaves Python's locks held
        stop = threading.Event()
        errors = []

        def repeat(work):
            try:
                while not stop.is_set():
                    work()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=repeat, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        try:
            for _ in range(10):
                assert exit_code_of_child(all_works) == 0
        finally:
            stop.set()
            for thread in threads:
                thread.join(PATIENCE_SECONDS)
        assert errors == []
        assert not any(thread.is_alive() for thread in threads)
        assert all_works()


class TestThreads:
    @pytest.mark.parametrize("n", [8, 300])
    def test_products_are_right(self, n):
        data = np.random.default_rng(0).standard_normal((4, n, n)).astype(np.float32)
        expected = [a @ a for a in data]

        def work(i):
            a = tw.asarray(data[i])
            for _ in range(20):
                np.testing.assert_allclose(np.asarray(a @ a), expected[i], rtol=1e-3, atol=1e-2)

        run_all(work)

    def test_training_is_right(self):
        def work(_):
            for _ in range(10):
                assert train_step(96)

        run_all(work)

    def test_large_pointwise_and_reductions(self):
        def work(i):
            x = tw.full((500_000,), float(i + 1))
            for _ in range(20):
                y = x * 2.0 + 1.0
                assert y.min().item() == y.max().item() == 2.0 * (i + 1) + 1.0

        run_all(work)

    def test_modes_belong_to_their_thread(self):
        started, checked = threading.Event(), threading.Event()
        seen = []

        def work(i):
            if i == 0:
                with tw.no_grad():
                    started.set()
                    checked.wait(PATIENCE_SECONDS)
            else:
                started.wait(PATIENCE_SECONDS)
                seen.append(tw.is_grad_enabled())
                checked.set()

        run_all(work, count=2)
        assert seen == [True]

    def test_tensors_may_end_on_another_thread(self):
        before = tw.memory.stats()["live_bytes"]
        kept = [tw.randn(1000, requires_grad=True) * 2.0 for _ in range(50)]
        run_all(lambda i: kept.clear() if i == 0 else None)
        assert tw.memory.stats()["live_bytes"] == before
