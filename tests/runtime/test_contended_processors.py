"""Threads that hold: other processes, a spinning neighbour, and a quota of one processor.

How long things take is `tilewright bench threads`; here is that they end, and with the same bits.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from cases.threads import PATIENCE_SECONDS

import tilewright as tw

pytestmark = pytest.mark.tier("all")

WORK = """
import hashlib, sys
import tilewright as tw
if len(sys.argv) > 1: tw.set_num_threads(int(sys.argv[1]))
stream = tw.Generator(5)
x = tw.normal(0.0, 1.0, (300, 300), generator=stream)
y = x
for _ in range(200): y = tw.relu(x @ y) / 300
print(tw.get_num_threads(), hashlib.sha256(bytes(memoryview(y).cast("B"))).hexdigest())
"""
SPIN = "print(flush=True)\nwhile True: pass"


def digest() -> str:
    """Of the same work in this process, on one thread."""
    tw.set_num_threads(1)
    stream = tw.Generator(5)
    x = tw.normal(0.0, 1.0, (300, 300), generator=stream)
    y = x
    for _ in range(200):
        y = tw.relu(x @ y) / 300
    return hashlib.sha256(bytes(memoryview(y).cast("B"))).hexdigest()


@pytest.fixture(autouse=True)
def _threads(threads) -> None:
    """Puts the number of threads back."""


def start(*arguments: str, program: str = WORK) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if k != "TILEWRIGHT_THREADS"}
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def outcome(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Threads and digest that a process of WORK printed; kills and fails where it hangs."""
    try:
        text, _ = process.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        pytest.fail("the process hangs")
    assert process.returncode == 0
    threads, found = text.split()
    return int(threads), found


def test_two_processes_on_the_same_processors() -> None:
    processes = [start("2") for _ in range(2)]
    assert [outcome(process) for process in processes] == [(2, digest())] * 2


def test_beside_neighbours_that_spin() -> None:
    with ExitStack() as stack:
        for _ in range(2):
            spinner = stack.enter_context(start(program=SPIN))
            stack.callback(spinner.kill)
            assert spinner.stdout
            spinner.stdout.readline()
        assert outcome(start("2")) == (2, digest())


def test_more_threads_than_processors() -> None:
    assert outcome(start("9")) == (9, digest())


@contextmanager
def group_of_one_processor() -> Iterator[Path]:
    """A control group whose members get one processor's time; needs a system that lets us."""
    v1, v2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
    name = f"tilewright-test-{os.getpid()}"
    group = (v1 if v1.is_dir() else v2) / name
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error.strerror}")
    try:
        try:
            if v1.is_dir():
                (group / "cpu.cfs_period_us").write_text("100000")
                (group / "cpu.cfs_quota_us").write_text("100000")
            else:
                (group / "cpu.max").write_text("100000 100000")
        except OSError as error:
            pytest.skip(f"no quota can be set here: {error.strerror}")
        yield group
    finally:
        group.rmdir()


def in_group(group: Path, *arguments: str) -> tuple[int, str]:
    join = f"open({str(group / 'cgroup.procs')!r}, 'w').write('0')\n"
    return outcome(start(*arguments, program=join + WORK))


def test_a_quota_of_one_processor_is_one_thread() -> None:
    with group_of_one_processor() as group:
        assert in_group(group) == (1, digest())


def test_more_threads_than_the_quota_pays_for() -> None:
    with group_of_one_processor() as group:
        assert in_group(group, "2") == (2, digest())
