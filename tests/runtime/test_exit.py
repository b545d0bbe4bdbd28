"""Programs that end while threads compute: the exit code is theirs, and nothing else is said."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest
from cases.threads import PATIENCE_SECONDS

START = """
import os, signal, sys, threading, time
import tilewright as tw

def endless(work):
    def run():
        while True:
            work()
    return run

def daemons(work, count=2):
    for _ in range(count):
        threading.Thread(target=endless(work), daemon=True).start()
    time.sleep(0.1)

def scheduled(work, count=2, **options):
    scheduler = tw.runtime.Scheduler(workers=count)
    for _ in range(count + 1):
        scheduler.submit(endless(work), **options)
    time.sleep(0.1)
    return scheduler

def spin(*_):
    while True:
        pass
"""

# What the threads do when the program ends. Each leaves and takes Python's lock in another place.
WORK = {
    "a large product": "a = tw.randn(1500, 1500); {run}(lambda: a @ a)",
    "large pointwise ops": "a = tw.randn(1000, 1000); {run}(lambda: tw.exp(a))",
    "backward": """
        a = tw.randn(500, 500, requires_grad=True)
        {run}(lambda: (tw.exp(a) @ a).sum().backward())""",
    "a hook that is called often": """
        a = tw.randn(4, 4, requires_grad=True)
        a.register_hook(lambda g: g * 2)
        {run}(lambda: (a * a).sum().backward())""",
    "a hook that does not return": """
        a = tw.randn(4, 4, requires_grad=True)
        a.register_hook(spin)
        {run}(lambda: (a * a).sum().backward())""",
    "a forward hook in a slot": """
        a = tw.randn(4, 4)
        a.register_forward_hook(spin)
        {run}(lambda: a + 1)""",
    "a forward hook in a function": """
        a = tw.randn(4, 4)
        a.register_forward_hook(spin)
        {run}(lambda: tw.sum(a))""",
    "a checkpointed function": """
        a = tw.randn(4, 4, requires_grad=True)
        {run}(lambda: tw.checkpoint(spin, a))""",
    "texts": "a = tw.randn(4, 4); {run}(lambda: repr(a))",
    "explain": """
        a = tw.randn(300, 300)
        def work():
            with tw.explain() as report:
                a @ a
            str(report)
        {run}(work)""",
    "a pool that spills": """
        pool = tw.memory.Pool(quota_bytes=1 << 22)
        def work():
            with pool:
                parts = [tw.zeros(100_000) + i for i in range(20)]
                for part in parts:
                    part.add_(1)
        {run}(work)""",
    "a pool under pressure": """
        pool = tw.memory.Pool(quota_bytes=1 << 20)
        pool.on_pressure(0.1, spin)
        def work():
            with pool:
                tw.zeros(200_000)
        {run}(work)""",
    "transfers": """
        from tilewright.runtime import transfer
        x, y = tw.zeros(10_000_000), tw.zeros(10_000_000)
        {run}(lambda: transfer.copy(x, y).wait())""",
    "batches from a file": """
        import tempfile
        folder = tempfile.TemporaryDirectory()
        tw.save({{"x": tw.zeros((10_000, 16))}}, folder.name + "/x.safetensors")
        data = tw.data.FileTensor.from_safetensors(folder.name + "/x.safetensors", "x")
        {run}(lambda: list(tw.data.DataLoader(data, batch_size=100, shuffle=True)))""",
    "arrays": """
        import numpy as np
        a = np.zeros((10, 10), np.float32)
        {run}(lambda: (np.from_dlpack(tw.asarray(a)), tw.from_dlpack(a).numpy()))""",
}

# How programs end, their exit code, and the last line they leave.
ENDINGS = {
    "normally": ("", 0, ""),
    "by an exception": ("raise ValueError('mine')", 1, "ValueError: mine"),
    "by sys.exit": ("sys.exit(3)", 3, ""),
    "by Ctrl-C": (
        "os.kill(os.getpid(), signal.SIGINT); time.sleep(100)",
        -signal.SIGINT,
        "KeyboardInterrupt",
    ),
    "after another thread": (
        "def late(): time.sleep(0.1); print('last', file=sys.stderr)\n"
        "threading.Thread(target=late).start()",
        0,
        "last",
    ),
    "by os._exit": ("os._exit(4)", 4, ""),
    "in a fork": (
        "child = os.fork()\nif child == 0: sys.exit(7)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))",
        7,
        "",
    ),
    "from a task": ("tw.runtime.Scheduler(workers=1).submit(sys.exit, 9).exception()", 0, ""),
    "in a with block": (
        "with tw.runtime.Scheduler(workers=1) as s:\n"
        "    s.submit(time.sleep, 0.2); time.sleep(0.05); s.submit(spin); raise ValueError('mine')",
        1,
        "ValueError: mine",
    ),
}


def run_program(text, **environment):
    """Exit code and standard error of a program of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", START + text],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return done.returncode, done.stderr


class TestExit:
    @pytest.mark.parametrize("work", WORK)
    def test_while_daemon_threads_are_at_work(self, work):
        assert run_program(textwrap.dedent(WORK[work]).format(run="daemons")) == (0, "")

    @pytest.mark.parametrize(
        "work", ["a large product", "backward", "a hook that does not return", "a pool that spills"]
    )
    @pytest.mark.parametrize("native", ["0", "1"])
    def test_while_tasks_are_at_work(self, work, native):
        program = textwrap.dedent(WORK[work]).format(run="scheduled")
        assert run_program(program, TILEWRIGHT_NATIVE_RUNTIME=native) == (0, "")

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_the_exit_code_is_the_programs(self, ending):
        statement, code, last = ENDINGS[ending]
        program = "a = tw.randn(1000, 1000)\ns = scheduled(lambda: tw.exp(a))\n" + statement
        got, said = run_program(program)
        assert (got, said.strip().split("\n")[-1]) == (code, last)
        assert not last or "Traceback" in said or said.strip() == last

    def test_with_pools_of_tasks(self):
        program = """
pool = tw.memory.Pool(quota_bytes=1 << 24)
scheduled(lambda: tw.zeros(100_000) + 1, pool=pool)
"""
        assert run_program(program) == (0, "")

    def test_short_tasks_may_finish_and_pending_ones_never_start(self):
        program = """
scheduler = tw.runtime.Scheduler(workers=1)
def first():
    time.sleep(0.2)
    print("first", file=sys.stderr)
scheduler.submit(first)
scheduler.submit(lambda: print("second", file=sys.stderr))
time.sleep(0.05)
"""
        assert run_program(program) == (0, "first\n")

    def test_running_tasks_are_asked_to_stop(self):
        program = """
def work():
    try:
        while True:
            tw.runtime.current_task().check()
    except BaseException as error:
        print(type(error).__name__, file=sys.stderr)
scheduler = tw.runtime.Scheduler(workers=1)
scheduler.submit(work)
time.sleep(0.05)
"""
        assert run_program(program) == (0, "CancelledError\n")

    def test_what_is_written_beside_the_program_is_there(self, tmp_path):
        program = f"""
tw.runtime.transfer.write({str(tmp_path / "x")!r}, tw.ones(1_000_000))
sys.exit(5)
"""
        assert run_program(program) == (5, "")
        assert (tmp_path / "x").stat().st_size == 4_000_000
