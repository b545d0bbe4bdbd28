"""Schedulers from their making to their end, and what they tell; native and reference."""

import gc
import json
import os
import re
import subprocess
import sys
import threading
import time

import pytest
from cases.tasks import PATIENCE, Gate, implementation  # noqa: F401  (a fixture)

from tilewright.runtime import Scheduler
from tilewright.runtime import scheduler as module


class TestLifetime:
    def test_a_dropped_scheduler_finishes_its_work(self):
        gate = Gate()
        tasks = [Scheduler(workers=1).submit(gate, i) for i in range(2)]
        gc.collect()
        gate.opened.set()
        assert [task.result(PATIENCE) for task in tasks] == [(0,), (1,)]

    def test_without_workers_it_is_cancelled(self):
        task = Scheduler(start=False).submit(int)
        assert task.state == "cancelled"

    def test_close_from_within_a_task(self):
        scheduler = Scheduler(workers=1)
        assert scheduler.submit(scheduler.close).result(PATIENCE) is None

    def test_many_submitters(self):
        with Scheduler(workers=3) as scheduler:
            totals = []

            def submit(base):
                tasks = [scheduler.submit(abs, -base - i) for i in range(200)]
                totals.append(sum(task.result(PATIENCE) for task in tasks))

            threads = [threading.Thread(target=submit, args=(1000 * k,)) for k in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert sum(totals) == sum(1000 * k + i for k in range(4) for i in range(200))

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_a_fork(self):
        with Scheduler() as scheduler:
            scheduler.submit(int).result(PATIENCE)
            pid = os.fork()
            if pid == 0:
                try:
                    scheduler.submit(int)
                except RuntimeError as error:
                    with Scheduler(workers=1) as own:
                        fine = own.submit(int).result(PATIENCE) == 0
                    os._exit(0 if fine and "forked" in str(error) else 3)
                os._exit(4)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    @pytest.mark.parametrize("work", ["time.sleep(1000)", "loop()", "task.result()"])
    def test_the_interpreter_leaves_in_spite_of_tasks(self, work):
        program = f"""
import time, tilewright as tw
def loop():
    while True: pass
scheduler = tw.runtime.Scheduler(workers=1)
task = scheduler.submit(lambda: {work}, timeout_s=1000)
pending = scheduler.submit(int)
time.sleep(0.05)
print("end")
"""
        native = "0" if module._REFERENCE else "1"
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "TILEWRIGHT_NATIVE_RUNTIME": native},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


class TestFigures:
    def test_of_a_task(self):
        with Scheduler(memory_bytes=100) as scheduler:
            task = scheduler.submit(time.sleep, 0.001, memory_bytes=10, quality="guaranteed")
        figures = task.stats()
        assert figures["submitted_ns"] <= figures["started_ns"] < figures["ended_ns"]
        assert figures["run_ns"] == figures["ended_ns"] - figures["started_ns"]
        assert figures["estimate_bytes"] == 10
        assert scheduler.tasks() == [figures]

    def test_of_the_whole(self):
        with Scheduler() as scheduler:
            scheduler.submit(int)
            scheduler.submit(int, "x")
        figures = scheduler.stats()
        assert (figures["completed"], figures["failed"]) == (1, 1)
        assert figures["throughput_per_s"] > 0
        assert "0 pending" in repr(scheduler)

    def test_a_timeline(self, tmp_path):
        with Scheduler(workers=2) as scheduler:
            for i in range(5):
                scheduler.submit(time.sleep, 0.001, name=f"nap {i}")
        scheduler.trace(tmp_path / "tasks.json")
        events = json.loads((tmp_path / "tasks.json").read_text())["traceEvents"]
        ran = [event for event in events if event["ph"] == "X"]
        assert [event["name"] for event in ran] == [f"nap {i}" for i in range(5)]
        assert all(event["dur"] >= 1000 for event in ran)
        spans = {phase: [e["id"] for e in events if e["ph"] == phase] for phase in "be"}
        assert spans["b"] == spans["e"] == [1, 2, 3, 4, 5]
        rows = {event["tid"] for event in events if event["ph"] == "M"}
        assert rows == {event["tid"] for event in ran}

    def test_a_picture(self, tmp_path):
        scheduler = Scheduler(workers=2)
        scheduler.plot(tmp_path / "empty.png")
        with scheduler:
            scheduler.submit(time.sleep, 0.001)
            failed = scheduler.submit(int, "x")
            scheduler.submit(int, after=failed)  # cancelled: never ran
        scheduler.plot(tmp_path / "tasks.svg")
        assert (tmp_path / "empty.png").read_bytes().startswith(b"\x89PNG")
        assert re.search("worker [01]", (tmp_path / "tasks.svg").read_text())
