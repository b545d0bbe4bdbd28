"""Transfers beside the program: right bytes, errors from wait(), cancellation, lifetimes, fork."""

import gc
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest
from cases.threads import PATIENCE_SECONDS, run_all

import tilewright as tw
from tilewright.runtime import transfer

# A transfer that hangs fails its test after this time, far above what any takes.

DTYPES = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
]  # fmt: skip


@pytest.fixture
def path(tmp_path):
    """A file of the numbers 0 to 99 as int64."""
    file = tmp_path / "numbers.bin"
    np.arange(100).tofile(file)
    return file


@pytest.fixture
def slow_queue(tmp_path):
    """A large read that keeps the queue busy, so that later ones wait."""
    file = tmp_path / "large.bin"
    with open(file, "wb") as out:
        out.truncate(256 << 20)
    transfer.set_in_flight("read", 1)
    target = tw.empty(256 << 20, dtype=tw.uint8)
    event = transfer.read(file, target)
    yield event
    event.cancel()
    transfer.set_in_flight("read", 2)


class TestRead:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_equals_numpy(self, tmp_path, rng, dtype):
        x = rng.integers(0, 100, (5, 7)).astype(dtype)
        x.tofile(tmp_path / "x")
        y = tw.empty((5, 7), dtype=dtype)
        transfer.read(tmp_path / "x", y).wait()
        assert (np.asarray(y) == x).all()

    def test_of_a_part(self, path):
        x = tw.zeros(3, dtype=tw.int64)
        transfer.read(str(path), x, offset_bytes=80).wait(PATIENCE_SECONDS)
        assert x.tolist() == [10, 11, 12]
        transfer.read(os.fsencode(path), x[1:], offset_bytes=0).wait()
        assert x.tolist() == [10, 0, 1]

    def test_of_nothing(self, path):
        transfer.read(path, tw.empty(0), offset_bytes=800).wait()

    def test_a_missing_file(self, tmp_path):
        event = transfer.read(tmp_path / "none", tw.empty(1))
        with pytest.raises(FileNotFoundError, match="No such file") as caught:
            event.wait()
        assert caught.value.filename == str(tmp_path / "none")
        assert event.done()
        assert event.state == "failed"
        with pytest.raises(FileNotFoundError):  # again
            event.wait()

    def test_a_folder(self, tmp_path):
        with pytest.raises(IsADirectoryError):
            transfer.read(tmp_path, tw.empty(1)).wait()

    def test_a_file_that_may_not_be_read(self, path):
        path.chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("this user may read everything")
        with pytest.raises(PermissionError, match=r"numbers\.bin"):
            transfer.read(path, tw.empty(1)).wait()

    def test_a_file_that_ends_early(self, path):
        with pytest.raises(OSError, match=r"400 of 800 bytes at offset 400.*numbers\.bin"):
            transfer.read(path, tw.empty(100, dtype=tw.int64), offset_bytes=400).wait()

    @pytest.mark.parametrize(
        ("target", "error", "text"),
        [
            (lambda: tw.zeros((4, 4)).mT, ValueError, r"not contiguous; use contiguous\(\)"),
            (lambda: tw.asarray(np.frombuffer(b"abcd", np.uint8)), ValueError, "read-only"),
            (lambda: tw.zeros(3, requires_grad=True), RuntimeError, r"requires grad; use no_grad"),
            (lambda: tw.zeros(3, dtype=tw.bool), TypeError, "read as uint8"),
            (lambda: [0.0], TypeError, r"out must be a tensor, got \[0\.0\]"),
        ],
    )
    def test_targets_that_cannot_be_filled(self, path, target, error, text):
        with pytest.raises(error, match=text):
            transfer.read(path, target())

    def test_wrong_offsets_and_paths(self, path):
        with pytest.raises(ValueError, match="at least 0, got -8"):
            transfer.read(path, tw.empty(1), offset_bytes=-8)
        with pytest.raises(TypeError, match=r"str, bytes or os\.PathLike"):
            transfer.read(7, tw.empty(1))
        with pytest.raises(ValueError, match="null"):
            transfer.read("a\0b", tw.empty(1))

    def test_counts_as_a_change(self, path):
        w = tw.ones(4, requires_grad=True)
        x = tw.zeros(4)
        y = (w * x).sum()
        transfer.read(path, x).wait()
        with pytest.raises(RuntimeError, match="changed"):
            y.backward()

    def test_fills_parameters_without_grad(self, path):
        w = tw.zeros(2, dtype=tw.float64, requires_grad=True)
        with tw.no_grad():
            transfer.read(path, w).wait()
        assert w.detach().tolist() == np.fromfile(path, np.float64, 2).tolist()


class TestWrite:
    def test_equals_numpy(self, tmp_path, rng):
        x = rng.standard_normal((50, 60))
        transfer.write(tmp_path / "x", tw.asarray(x)).wait()
        assert (np.fromfile(tmp_path / "x").reshape(50, 60) == x).all()

    def test_rows_of_a_view(self, tmp_path):
        transfer.write(tmp_path / "x", tw.arange(6).reshape((2, 3)).mT).wait()
        assert np.fromfile(tmp_path / "x", np.int64).tolist() == [0, 3, 1, 4, 2, 5]

    def test_into_a_file(self, path):
        transfer.write(path, tw.asarray([-1, -2]), offset_bytes=16).wait()
        assert np.fromfile(path, np.int64)[:6].tolist() == [0, 1, -1, -2, 4, 5]
        assert path.stat().st_size == 800

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
    def test_a_full_disk(self):
        with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
            transfer.write("/dev/full", tw.ones(10)).wait()

    def test_a_missing_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            transfer.write(tmp_path / "none" / "x", tw.ones(1)).wait()

    def test_a_program_that_ends_waits_for_its_writes(self, tmp_path):
        program = (
            "import sys, tilewright as tw\n"
            "for i in range(20):\n"
            " tw.runtime.transfer.write(f'{sys.argv[1]}/{i}', tw.ones(500_000))\n"
        )
        subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
        assert [(tmp_path / str(i)).stat().st_size for i in range(20)] == [2_000_000] * 20


class TestCopy:
    def test_equals_the_source(self, rng):
        x = tw.asarray(rng.standard_normal(1_500_000))
        y = tw.zeros_like(x)
        transfer.copy(x, y).wait()
        assert (np.asarray(x) == np.asarray(y)).all()

    def test_between_parts_of_one_memory(self):
        x = tw.arange(6)
        transfer.copy(x[:3], x[3:]).wait()
        assert x.tolist() == [0, 1, 2, 0, 1, 2]
        with pytest.raises(ValueError, match="share memory"):
            transfer.copy(x[:3], x[2:5])

    @pytest.mark.parametrize(
        ("src", "dst", "text"),
        [
            (lambda: tw.ones(3), lambda: tw.ones(4), r"\(3,\) does not fit float32 \(4,\)"),
            (lambda: tw.ones(3), lambda: tw.zeros(3, dtype=tw.int32), "does not fit int32"),
            (lambda: tw.ones((2, 3)).mT, lambda: tw.ones((3, 2)), "the source .* not contiguous"),
            (lambda: tw.ones((2, 3)), lambda: tw.ones((3, 2)).mT, "the target .* not contiguous"),
        ],
    )
    def test_what_does_not_fit(self, src, dst, text):
        with pytest.raises(ValueError, match=text):
            transfer.copy(src(), dst())


class TestEvent:
    def test_waits_no_longer_than_asked(self, slow_queue, path):
        event = transfer.read(path, tw.empty(1))
        for timeout in (0, 0.001, -1.0):
            with pytest.raises(TimeoutError, match="still in flight"):
                event.wait(timeout)
        assert not event.done()
        slow_queue.wait()
        event.wait(PATIENCE_SECONDS)
        assert event.done()
        event.wait(0)
        with pytest.raises(ValueError, match="nan"):
            transfer.read(path, tw.empty(1)).wait(float("nan"))

    def test_cancelled(self, slow_queue, path):
        event = transfer.read(path, tw.empty(1))
        assert event.state == "waiting"
        event.cancel()
        assert event.state == "cancelled"
        with pytest.raises(CancelledError, match="cancelled"):
            event.wait()
        slow_queue.cancel()
        with pytest.raises(CancelledError):
            slow_queue.wait()

    def test_priorities(self, slow_queue, path):
        targets = [tw.zeros(1, dtype=tw.int64) for _ in range(3)]
        low = transfer.read(path, targets[0], priority=-1)
        high = transfer.read(path, targets[1], priority=7)
        high.wait()
        low.wait()
        before = tw.runtime.transfer.stats()["queues"]["read"]
        assert before["waiting"] == before["running"] == 0

    def test_waiting_lets_other_threads_run_and_ends_with_a_signal(self, tmp_path):
        program = (
            "import os, signal, threading, tilewright as tw\n"
            "tw.runtime.transfer.set_in_flight('read', 1)\n"
            "x = tw.empty(256 << 20, dtype=tw.uint8)\n"
            "with open('large', 'wb') as file: file.truncate(256 << 20)\n"
            "for _ in range(500): event = tw.runtime.transfer.read('large', x)\n"
            "threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
            "try: event.wait()\n"
            "except KeyboardInterrupt: os._exit(7)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, timeout=PATIENCE_SECONDS, check=False
        )
        assert done.returncode == 7

    def test_tensors_live_until_the_end(self, slow_queue, tmp_path, rng):
        x = rng.standard_normal(100_000)
        x.tofile(tmp_path / "x")
        event = transfer.read(tmp_path / "x", y := tw.empty(100_000, dtype=tw.float64))
        view = y[50_000:]
        del y
        gc.collect()
        slow_queue.wait()
        event.wait()
        assert (np.asarray(view) == x[50_000:]).all()

    def test_forgotten_events_keep_their_memory_until_done(self, slow_queue, path):
        for _ in range(50):
            transfer.read(path, tw.empty(100, dtype=tw.int64))
        held = tw.memory.stats()["live_bytes"]
        slow_queue.wait()
        while transfer.stats()["queues"]["read"]["running"]:
            time.sleep(0.001)
        while transfer.stats()["queues"]["read"]["waiting"]:
            time.sleep(0.001)
        transfer.stats()
        assert tw.memory.stats()["live_bytes"] <= held - 50 * 800

    def test_borrowed_memory_is_given_back(self, path):
        x = np.zeros(100, np.int64)
        count = sys.getrefcount(x)
        for _ in range(10):
            transfer.read(path, tw.asarray(x)).wait()
        assert (x == np.arange(100)).all()
        assert sys.getrefcount(x) == count


class TestFigures:
    def test_of_a_queue(self, path):
        before = transfer.stats()["queues"]["read"]
        transfer.read(path, tw.empty(10, dtype=tw.int64)).wait()
        with pytest.raises(FileNotFoundError):
            transfer.read("/nowhere", tw.empty(1)).wait()
        after = transfer.stats()["queues"]["read"]
        changes = {name: after[name] - before[name] for name in after}
        assert changes["submitted"] == 2
        assert changes["completed"] == changes["failed"] == 1
        assert changes["bytes"] == 80
        assert changes["busy_ns"] > 0

    def test_limits(self):
        transfer.set_in_flight("write", 3)
        assert transfer.stats()["queues"]["write"]["in_flight_limit"] == 3
        transfer.set_in_flight("write", 1)
        with pytest.raises(ValueError, match=r"\[1, 16\], got 17"):
            transfer.set_in_flight("write", 17)
        with pytest.raises(ValueError, match="no queue 'disk'; there are: read, write"):
            transfer.set_in_flight("disk", 1)

    def test_no_task(self):
        assert transfer.cancel_task(123456) == 0
        assert transfer.cancel_task(0) == 0


def test_many_threads(tmp_path, rng):
    data = rng.integers(0, 1 << 40, (8, 1000))

    def work(i):
        file = tmp_path / str(i)
        for _ in range(30):
            transfer.write(file, tw.asarray(data[i])).wait()
            x = tw.empty(1000, dtype=tw.int64)
            transfer.read(file, x).wait()
            assert (np.asarray(x) == data[i]).all()

    run_all(work, 8)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_starts_afresh(path, slow_queue):
    waiting = transfer.read(path, tw.empty(1))
    pid = os.fork()
    if pid == 0:
        signal.alarm(PATIENCE_SECONDS)
        try:
            with pytest.raises(RuntimeError, match="forked"):
                waiting.wait()
            x = tw.empty(100, dtype=tw.int64)
            transfer.read(path, x).wait()
            os._exit(0 if x.tolist() == list(range(100)) else 3)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    waiting.wait()
