"""The log of memory events: what it says, what it costs when full, and its trace and picture."""

from __future__ import annotations

import json

import pytest

import tilewright as tw

MIB = 1 << 20


def test_events_name_op_tensor_and_line():
    x = tw.ones((256, 256))
    with tw.memory.record() as timeline:
        y = x * 2
        del y
    allocate, release = timeline.events
    assert allocate["kind"] == "allocate"
    assert allocate["op"] == "multiply"
    assert allocate["tensor"] == "float32 (256, 256)"
    assert allocate["bytes"] == 256 * 256 * 4
    assert allocate["source"].endswith(f"test_timeline.py:{_line_of('y = x * 2')}")
    assert release["kind"] == "release"
    assert release["block"] == allocate["block"]
    assert release["ns"] >= allocate["ns"]
    assert allocate["live_bytes"] - release["live_bytes"] == allocate["bytes"]


def _line_of(text: str) -> int:
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, 1) if line.strip() == text)


def test_live_bytes_are_the_pool_s():
    with tw.memory.record() as timeline:
        keep = [tw.zeros((i * 1000,)) for i in range(1, 6)]
        live = tw.memory.stats()["live_bytes"]
    assert timeline.events[-1]["live_bytes"] == live
    assert len(keep) == 5


def test_gradients_are_in_the_log():
    w = tw.ones((64, 64), requires_grad=True)
    with tw.memory.record() as timeline:
        (w @ w).sum().backward()
    ops = timeline.by_op()
    assert "matmul" in ops
    assert ops["matmul"]["allocations"] >= 3  # the product and two gradients


def test_spills_are_in_the_log(tmp_path):
    pool = tw.memory.Pool(quota_bytes=2 * MIB, spill_dir=tmp_path)
    with tw.memory.record() as timeline, pool:
        xs = [tw.full((MIB // 4,), i, dtype=tw.float32) for i in range(4)]
        xs[0] + 0
    kinds = [event["kind"] for event in timeline.events]
    assert kinds.count("spill") >= 2
    assert kinds.count("restore") == 1
    spilled = {e["block"] for e in timeline.events if e["kind"] == "spill"}
    assert spilled <= {e["block"] for e in timeline.events if e["kind"] == "allocate"}


def test_the_log_is_bounded():
    with tw.memory.record(capacity=10) as timeline:
        for _ in range(50):
            tw.ones((10,))
    assert len(timeline) == 10
    assert timeline.dropped == 90
    with pytest.raises(ValueError, match="capacity"), tw.memory.record(capacity=0):
        pass


def test_nothing_is_logged_outside():
    with tw.memory.record() as timeline:
        pass
    tw.ones((10,))
    assert timeline.events == []


def test_trace_is_chrome_s_format(tmp_path):
    with tw.memory.record() as timeline:
        y = tw.ones((100,)) + 1
        del y
    timeline.trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    phases = [event["ph"] for event in events]
    assert phases.count("C") == len(timeline)
    assert phases.count("b") == phases.count("e") == 2
    assert all({"name", "ts", "pid", "tid"} <= set(event) for event in events)
    counters = [e["ts"] for e in events if e["ph"] == "C"]
    assert counters == sorted(counters)


def test_the_picture_is_one(tmp_path):
    pool = tw.memory.Pool(quota_bytes=2 * MIB, spill_dir=tmp_path)
    with tw.memory.record() as timeline, pool:
        xs = [tw.full((MIB // 4,), i, dtype=tw.float32) for i in range(4)]
        assert sum(float((x + 0)[0]) for x in xs) == 6.0
    timeline.plot(tmp_path / "memory.png")
    assert (tmp_path / "memory.png").read_bytes().startswith(b"\x89PNG")
