"""Streams, events, pinned memory, copies beside kernels, and limits of launches."""

from __future__ import annotations

import ctypes
import json
import os
import threading

import numpy as np
import pytest

import tilewright as tw
from tilewright.runtime import Scheduler, transfer

pytestmark = pytest.mark.skipif(
    not tw.cuda.is_available(), reason=f"no GPU: {tw.cuda.why_unavailable()}"
)
EMULATED = tw.cuda.is_available() and tw.cuda.get_device_name() == "emulated GPU"
# More than what goes to the GPU within the queue of commands.
COUNT = 100_000


def here(x: tw.Tensor) -> np.ndarray:
    return np.asarray(x.detach().to("cpu"))


class TestStreams:
    def test_work_goes_to_the_stream_of_the_thread(self):
        s = tw.cuda.Stream()
        assert tw.cuda.current_stream() == tw.cuda.default_stream() != s
        with tw.cuda.stream(s) as entered:
            assert entered is s
            assert tw.cuda.current_stream() == s
            with tw.cuda.stream(None):
                assert tw.cuda.current_stream() == s
            seen = []
            thread = threading.Thread(target=lambda: seen.append(tw.cuda.current_stream()))
            thread.start()
            thread.join()
            assert seen == [tw.cuda.default_stream()]
            x = tw.arange(10, device="cuda") * 2
            before = tw.cuda.launches()["streams"]
            assert any(number > 2 for number in before)
            assert x.tolist() == list(range(0, 20, 2))
        assert tw.cuda.current_stream() == tw.cuda.default_stream()
        assert s.device == "cuda:0"
        assert s.query()

    def test_streams_wait_for_each_other(self):
        s = tw.cuda.Stream()
        x = tw.ones((1000,), device="cuda") + 1
        s.wait_stream(tw.cuda.current_stream())
        with tw.cuda.stream(s):
            y = x * 3
        tw.cuda.current_stream().wait_stream(s)
        assert (y + x).tolist() == [8.0] * 1000

    @pytest.mark.skipif(not EMULATED, reason="a GPU may be early enough")
    def test_a_missing_wait_shows(self):
        s = tw.cuda.Stream()
        x = tw.ones((1000,), device="cuda")
        tw.cuda.synchronize()
        x += 1
        with tw.cuda.stream(s):
            assert (x * 3).tolist() == [3.0] * 1000
        assert x.tolist() == [2.0] * 1000

    def test_memory_that_another_stream_uses_is_not_served_again(self):
        s = tw.cuda.Stream()
        x = tw.ones((1000,), device="cuda")
        s.wait_stream(tw.cuda.current_stream())
        with tw.cuda.stream(s):
            y = x * 3
        waiting = tw.cuda.memory()["waiting_bytes"]
        del x
        assert tw.cuda.memory()["waiting_bytes"] > waiting
        z = tw.zeros((1000,), device="cuda")
        tw.cuda.current_stream().synchronize()
        with tw.cuda.stream(s):
            assert y.tolist() == [3.0] * 1000
        assert z.tolist() == [0.0] * 1000
        tw.cuda.synchronize()
        del z
        for _ in range(40):  # the pool looks now and then
            tw.zeros((10,), device="cuda")
        assert tw.cuda.memory()["waiting_bytes"] == 0

    def test_other_libraries_uses_can_be_told(self):
        s = tw.cuda.Stream()
        x = tw.ones((1000,), device="cuda")
        x.record_stream(s)
        waiting = tw.cuda.memory()["waiting_bytes"]
        del x
        assert tw.cuda.memory()["waiting_bytes"] > waiting
        with pytest.raises(ValueError, match=r"record_stream: .* is not on 'cuda:0'"):
            tw.ones((3,)).record_stream(s)

    def test_there_are_as_many_as_asked_for(self):
        streams = [tw.cuda.Stream(priority=-1) for _ in range(100)]
        assert all(s.priority in (0, -1) for s in streams)
        assert len({s.cuda_stream for s in streams}) > 30
        with tw.cuda.stream(streams[-1]):
            assert tw.ones((3,), device="cuda").tolist() == [1.0] * 3

    def test_tasks_start_on_their_submitters_stream(self):
        s = tw.cuda.Stream()
        with Scheduler(workers=1) as scheduler:
            with tw.cuda.stream(s):
                task = scheduler.submit(tw.cuda.current_stream)
            assert task.result() == s
            assert scheduler.submit(tw.cuda.current_stream).result() == tw.cuda.default_stream()

    def test_wrong_devices_are_told(self):
        with pytest.raises(ValueError, match="expected a GPU such as 'cuda'"):
            tw.cuda.Stream("cpu")
        with pytest.raises(ValueError, match="no device 'cuda:99'"):
            tw.cuda.Stream(99)


class TestEvents:
    def test_an_event_is_a_place_in_a_stream(self):
        event = tw.cuda.Event()
        assert event.query()  # never recorded
        x = tw.ones((10,), device="cuda") + 1
        event.record()
        event.synchronize()
        assert event.query()
        s = tw.cuda.Stream()
        x += 1
        s.wait_event(tw.cuda.current_stream().record_event())
        with tw.cuda.stream(s):
            assert x.tolist() == [3.0] * 10

    def test_time_between_events(self):
        begin, end = (tw.cuda.Event(enable_timing=True) for _ in range(2))
        with pytest.raises(ValueError, match="both events must be recorded first"):
            begin.elapsed_time(end)
        begin.record()
        tw.ones((1000,), device="cuda")
        end.record()
        if EMULATED:
            with pytest.raises(RuntimeError, match="has not happened yet"):
                begin.elapsed_time(end)
        end.synchronize()
        assert begin.elapsed_time(end) >= 0
        with pytest.raises(ValueError, match="enable_timing=True"):
            begin.elapsed_time(tw.cuda.Event())


class TestPinnedMemory:
    def test_pinning_is_a_copy(self, rng):
        x = rng.standard_normal((300, 5))
        t = tw.asarray(x)
        p = t.pin_memory()
        assert not t.is_pinned()
        assert p.is_pinned()
        assert p.pin_memory() is p or p.pin_memory().data_ptr == p.data_ptr
        np.testing.assert_array_equal(np.asarray(p), x)
        p += 1
        np.testing.assert_array_equal(np.asarray(p), x + 1)
        np.testing.assert_array_equal(np.asarray(t), x)
        assert tw.cuda.memory_stats()["pinned"]["live_bytes"] >= x.nbytes

    def test_a_gpus_memory_is_not_pinned(self):
        x = tw.ones((3,), device="cuda")
        assert not x.is_pinned()
        with pytest.raises(RuntimeError, match="only memory of the CPU can be pinned"):
            x.pin_memory()

    @pytest.mark.parametrize("count", [5, COUNT, 3_000_000])
    @pytest.mark.parametrize("non_blocking", [False, True])
    def test_copies_both_ways(self, count, non_blocking, rng):
        x = rng.standard_normal(count).astype("float32")
        for made in (tw.tensor(x), tw.asarray(x).pin_memory()):
            source = made
            there = source.to("cuda", non_blocking=non_blocking)
            source += 1  # waits for the copy, or is after it
            np.testing.assert_array_equal(here(there * 2), x * 2)
            back = (there + there).to("cpu", non_blocking=non_blocking)
            assert back.is_pinned() == non_blocking
            np.testing.assert_array_equal(np.asarray(back + 0), x * 2)
            np.testing.assert_array_equal(np.asarray(source), x + 1)
            source -= 1

    @pytest.mark.skipif(not EMULATED, reason="a GPU may be early enough")
    def test_a_copy_goes_on_when_the_call_returns(self):
        pinned = tw.zeros((COUNT,)).pin_memory()
        view = np.asarray(pinned)
        there = pinned.to("cuda", non_blocking=True)
        view[0] = 7  # behind the engine's back, which is the program's to order
        assert there[0].item() == 7
        back = there.to("cpu", non_blocking=True)
        assert (back + 0)[0].item() == 7

    def test_memory_given_back_early_is_not_served_again(self):
        x = tw.ones((COUNT,)).pin_memory()
        there = x.to("cuda", non_blocking=True)
        del x
        other = tw.zeros((COUNT,)).pin_memory()
        assert there.sum().item() == COUNT
        assert other.sum().item() == 0

    def test_a_tensor_that_nobody_waited_for(self):
        for _ in range(3):
            tw.ones((COUNT,)).pin_memory().to("cuda", non_blocking=True)
        x = tw.full((COUNT,), 2.0).to("cuda")
        assert x.sum().item() == 2 * COUNT

    def test_modules_and_gradients_take_it(self):
        x = tw.ones((COUNT,), requires_grad=True)
        (x.to("cuda", non_blocking=True) * 2).sum().backward()
        assert x.grad.sum().item() == 2 * COUNT
        assert tw.ones((3,)).cuda(0).device == "cuda:0"
        assert tw.ones((3,)).cuda(non_blocking=True).cpu().tolist() == [1.0] * 3


class TestTransfers:
    def test_the_engine_has_a_queue_for_each_direction(self, rng):
        x = rng.standard_normal(COUNT).astype("float32")
        there = tw.zeros((COUNT,), device="cuda")
        before = transfer.stats()["queues"]
        transfer.copy(tw.asarray(x), there).wait()
        np.testing.assert_array_equal(here(there), x)
        there += 1
        back = tw.zeros((COUNT,))
        transfer.copy(there, back, priority=3).wait()
        np.testing.assert_array_equal(np.asarray(back), x + 1)
        other = tw.zeros((COUNT,), device="cuda")
        transfer.copy(there, other).wait()
        np.testing.assert_array_equal(here(other), x + 1)
        after = transfer.stats()["queues"]
        for queue in ("upload", "download"):
            assert after[queue]["completed"] == before[queue]["completed"] + 1
            assert after[queue]["bytes"] == before[queue]["bytes"] + x.nbytes
        transfer.set_in_flight("upload", 1)
        transfer.set_in_flight("upload", 2)

    def test_it_comes_after_what_the_thread_asked_for(self):
        s = tw.cuda.Stream()
        with tw.cuda.stream(s):
            x = tw.ones((COUNT,), device="cuda")
            x *= 5
            back = tw.zeros((COUNT,))
            transfer.copy(x, back).wait()
        assert back.sum().item() == 5 * COUNT

    def test_within_a_quota(self):
        pool = tw.memory.Pool(3 * 65536, device="cuda", spill_dir=False)
        with pool:
            kept = [tw.zeros((128, 128), device="cuda") for _ in range(6)]
            for i, x in enumerate(kept):
                transfer.copy(tw.full((128, 128), float(i)), x).wait()
            assert [x[0, 0].item() for x in kept] == [0, 1, 2, 3, 4, 5]

    def test_files_are_the_processors(self, tmp_path):
        with pytest.raises(BufferError, match="on device 'cuda:0'"):
            transfer.write(tmp_path / "x", tw.ones((3,), device="cuda"))

    def test_figures_of_copies(self):
        before = tw.cuda.memory_stats()
        x = tw.ones((COUNT,)).to("cuda")
        x.to("cpu")
        after = tw.cuda.memory_stats()
        assert after["upload_bytes"] - before["upload_bytes"] == 4 * COUNT
        assert after["download_bytes"] - before["download_bytes"] == 4 * COUNT
        assert after["staged_bytes"] - before["staged_bytes"] == 8 * COUNT

    def test_a_profile_shows_copies_in_rows_of_their_own(self, tmp_path):
        pinned = tw.ones((COUNT,)).pin_memory()
        with tw.profile() as report:
            x = pinned.to("cuda", non_blocking=True)
            y = tw.ones((COUNT,), device="cuda") * 2  # beside it
            z = x + y
            z.to("cpu")
        copies = [e for e in report.events if e["kind"] == "copy"]
        assert [c["direction"] for c in copies] == ["upload", "download"]
        assert all(c["bytes"] == 4 * COUNT for c in copies)
        assert all("test_gpu_streams.py" in c["source"] for c in copies)
        assert 0 <= copies[0]["start_ns"] <= copies[1]["start_ns"]
        if EMULATED:  # the copy is not waited for by ops that do not need it
            upload = copies[0]
            multiplied = next(e for e in report.ops if e["op"] == "multiply")
            assert upload["start_ns"] + upload["ns"] >= multiplied["start_ns"] + multiplied["ns"]
        report.trace(tmp_path / "trace.json")
        trace = json.loads((tmp_path / "trace.json").read_text())
        events = trace["traceEvents"] if isinstance(trace, dict) else trace
        assert {e["name"] for e in events if e.get("cat") == "copy"} == {"upload", "download"}
        names = [e["args"]["name"] for e in events if e.get("ph") == "M"]
        assert "cuda:0 upload" in names


class TestLaunches:
    def test_a_limit_makes_the_program_wait(self):
        tw.cuda.set_launch_limit(4)
        try:
            before = tw.cuda.launches()["streams"].get(0, {"waits": 0})["waits"]
            x = tw.zeros((10,), device="cuda")
            for _ in range(50):
                x = x + 1
            figures = tw.cuda.launches()
            assert figures["in_flight_limit"] == 4
            assert figures["streams"][0]["waits"] > before
            assert x.tolist() == [50.0] * 10
        finally:
            tw.cuda.set_launch_limit(0)
        with pytest.raises(ValueError, match="in_flight must be at least 0, got -1"):
            tw.cuda.set_launch_limit(-1)

    def test_launches_are_counted_by_task(self):
        def work() -> float:
            return (tw.ones((10,), device="cuda") + 1).sum().item()

        with Scheduler(workers=1) as scheduler:
            task = scheduler.submit(work)
            assert task.result() == 20
        assert tw.cuda.launches()["tasks"][task.id]["launches"] >= 3

    @pytest.mark.skipif(not EMULATED, reason="a GPU may be early enough")
    def test_a_task_waits_for_its_own_limit(self):
        def work(streams: int) -> tuple[tw.Tensor, list[int]]:
            task = tw.runtime.current_task().id
            others = [tw.cuda.Stream() for _ in range(streams)]
            x, in_flight = tw.zeros((10,), device="cuda"), []
            for i in range(12):
                if others:
                    tw.cuda.current_stream().synchronize()
                    tw.cuda.set_stream(others[i % streams])
                x = x + 1
                in_flight.append(tw.cuda.launches()["tasks"][task]["in_flight"])
            return x, in_flight

        tw.cuda.set_launch_limit(3, of="task")
        try:
            with Scheduler(workers=1) as scheduler:
                task = scheduler.submit(work, 0)
                x, in_flight = task.result()
                assert in_flight == [2, *[3] * 11]  # with the one that makes x
                figures = tw.cuda.launches()["tasks"][task.id]
                assert figures == {"launches": 13, "waits": 10, "in_flight": 0}
                assert x.tolist() == [12.0] * 10
                tw.cuda.set_launch_limit(4, of="task")  # marks two launches apart
                x, in_flight = scheduler.submit(work, 2).result()
                assert max(in_flight) == 4
                assert x.tolist() == [12.0] * 10
            # What is launched outside tasks knows no such limit.
            before = tw.cuda.launches()["streams"][0]["waits"]
            x = tw.zeros((10,), device="cuda")
            for _ in range(12):
                x = x + 1
            assert tw.cuda.launches()["streams"][0]["waits"] == before
            assert tw.cuda.launches()["in_flight_limit_of_a_task"] == 4
        finally:
            tw.cuda.set_launch_limit(0, of="task")
        with pytest.raises(ValueError, match="of must be 'stream' or 'task', got 'thread'"):
            tw.cuda.set_launch_limit(1, of="thread")

    @pytest.mark.skipif(not EMULATED, reason="a GPU may be early enough")
    def test_the_end_of_a_task_waits_for_its_launches(self):
        done = []

        def work() -> tw.Tensor:
            x = tw.ones((10,), device="cuda") + 1
            event = tw.cuda.Event()
            event.record()
            done.append(event)
            assert not event.query()
            return x

        with Scheduler(workers=1) as scheduler:
            task = scheduler.submit(work)
            task.result()
            assert done[0].query()

    def test_what_is_wrong_in_a_tasks_data_fails_the_task(self):
        def work() -> tw.Tensor:
            return tw.ones((2, 3), device="cuda")[tw.asarray([7]).to("cuda")]

        with Scheduler(workers=1) as scheduler:
            task = scheduler.submit(work)
            with pytest.raises(IndexError, match="index: 7 is out of range for axis 0"):
                task.result()
        tw.cuda.synchronize()  # told once


class TestSmallTransfers:
    """Up to 4,064 bytes go as arguments of a launch, and come by memory that the GPU writes to."""

    @pytest.fixture
    def counted(self):
        """How many small uploads, small downloads and copies of the driver a block makes."""
        library = ctypes.CDLL(os.environ["TILEWRIGHT_CUDA_DRIVER"]) if EMULATED else None

        def now() -> tuple[int, int, int]:
            figures = tw.cuda.memory_stats()
            copies = ctypes.c_ulonglong.in_dll(library, "tw_emulated_copies") if library else None
            small = figures["small_uploads"], figures["small_downloads"]
            return (*small, copies.value if copies else 0)

        before = now()
        return lambda: tuple(a - b for a, b in zip(now(), before, strict=True))

    def test_they_are_no_copies(self, counted):
        x = tw.asarray([1.0, 2.0]).to("cuda")
        assert counted() == (1, 0, 0)
        total = (x * 2).sum()
        assert total.item() == 6
        assert counted() == (1, 1, 0)
        assert (float(total), bool(total > 5), x.tolist()) == (6.0, True, [1.0, 2.0])
        assert counted() == (1, 4, 0)

    @pytest.mark.parametrize("size", [1, 3, 47, 48, 49, 1000, 4063, 4064])
    def test_every_byte_arrives(self, size, rng, counted):
        x = rng.integers(0, 256, size, dtype="uint8")
        source = tw.tensor(x)
        there = source.to("cuda")
        source += 1  # what was sent is not what it becomes
        np.testing.assert_array_equal(here(there), x)
        np.testing.assert_array_equal(here(there + 1), (x + 1).astype("uint8"))
        assert counted() == (1, 2, 0)
        there[size // 2 :] = tw.asarray(x[: size - size // 2]).to("cuda")
        x[size // 2 :] = x[: size - size // 2].copy()
        np.testing.assert_array_equal(here(there), x)
        assert counted() == (2, 3, 0)

    def test_what_is_larger_is_copied(self, counted):
        x = tw.ones((4065,), dtype=tw.uint8).to("cuda")
        x.to("cpu")
        small_up, small_down, copies = counted()
        assert (small_up, small_down) == (0, 0)
        assert copies == (2 if EMULATED else 0)

    @pytest.mark.skipif(not EMULATED, reason="a GPU may be early enough")
    def test_an_upload_waits_for_nothing(self):
        x = tw.ones((10,), device="cuda") + 1
        event = tw.cuda.current_stream().record_event()
        y = tw.asarray([3.0]).to("cuda")
        assert not event.query()  # the work before it has not been waited for
        assert (x * y).tolist() == [6.0] * 10

    def test_the_order_is_the_streams(self):
        x = tw.zeros((1,), device="cuda")
        for i in range(20):
            x += 1
            x *= tw.asarray([float(i % 3)]).to("cuda")
        expected = 0.0
        for i in range(20):
            expected = (expected + 1) * (i % 3)
        assert x.item() == expected
        s = tw.cuda.Stream()
        with tw.cuda.stream(s):
            y = tw.asarray([2.0]).to("cuda")
            assert (y * y).item() == 4

    def test_many_threads_fetch_at_once(self):
        values = [tw.full((100,), float(i), device="cuda") for i in range(8)]
        seen: dict[int, set[float]] = {}

        def fetch(i: int) -> None:
            seen[i] = {values[i].sum().item() for _ in range(20)}

        threads = [threading.Thread(target=fetch, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == {i: {100.0 * i} for i in range(8)}
