"""A GPU's memory: quotas with tiers below, the same bits with and without, reuse, what holds it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn

pytestmark = pytest.mark.skipif(
    not tw.cuda.is_available(), reason=f"no GPU: {tw.cuda.why_unavailable()}"
)

EMULATED = tw.cuda.is_available() and tw.cuda.get_device_name() == "emulated GPU"
# 64 KiB, the least that leaves.
SIDE = 128


def here(x: tw.Tensor) -> np.ndarray:
    return np.asarray(x.detach().to("cpu"))


def layers() -> nn.Sequential:
    parts = []
    for _ in range(5):
        parts += [nn.Linear(SIDE, SIDE), nn.Tanh()]
    return nn.Sequential(*parts)


class Checkpointed(nn.Module):
    """The layers, of which the backward pass computes two anew."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = layers()

    def forward(self, x: tw.Tensor) -> tw.Tensor:
        x = self.layers[:2](x)
        x = tw.checkpoint(self.layers[2:6], x)
        return self.layers[6:](x)


def trained(pool, make=layers, plan: bool = False) -> list[np.ndarray]:
    """Losses and parameters of a training within a pool."""
    tw.manual_seed(5)
    rng = np.random.default_rng(5)
    inputs = [rng.standard_normal((SIDE, SIDE)).astype("float32") for _ in range(3)]
    with pool or contextlib.nullcontext():
        model = make().to("cuda")
        optimizer = tw.optim.Adam(model.parameters(), lr=1e-2)
        results = []
        for x in inputs:
            optimizer.zero_grad()
            loss = (model(tw.asarray(x).to("cuda")) ** 2).mean()
            loss.backward(plan=plan)
            optimizer.step()
            results.append(here(loss))
        results += [here(p) for p in model.parameters()]
        return results


def peak_bytes(**options) -> int:
    pool = tw.memory.Pool(device="cuda")
    trained(pool, **options)
    return pool.stats()["peak_live_bytes"]


class TestQuota:
    @pytest.mark.parametrize("plan", [False, True], ids=["eager", "planned"])
    @pytest.mark.parametrize("make", [layers, Checkpointed])
    def test_a_training_beyond_the_quota_has_the_same_bits(self, make, plan):
        expected = trained(None, make, plan)
        peak = peak_bytes(make=make, plan=plan)
        pool = tw.memory.Pool(int(peak / 1.5), device="cuda", spill_dir=False)
        got = trained(pool, make, plan)
        for a, e in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a, e)
        stats = pool.stats()
        assert stats["spills"] > 0
        assert stats["restores"] > 0
        assert stats["peak_live_bytes"] <= stats["quota_bytes"]

    @pytest.mark.skipif(not EMULATED, reason="a GPU's copies are as long as they are")
    def test_blocks_leave_beside_kernels(self):
        program = (
            f"import json, sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
            "from test_gpu_memory import *\n"
            "expected, peak = trained(None), peak_bytes()\n"
            "pool = tw.memory.Pool(int(peak / 1.5), device='cuda', spill_dir=False)\n"
            "with tw.profile() as report:\n"
            "    got = trained(pool)\n"
            "assert all((a == e).all() for a, e in zip(got, expected, strict=True))\n"
            "print(json.dumps([list(report.events), pool.stats()]))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "TW_EMULATED_BESIDE": "1"},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        events, stats = json.loads(done.stdout)
        starts = [e["start_ns"] for e in events if e["kind"] == "op"]
        left = [e for e in events if e.get("direction") == "download" and e["bytes"] >= 65536]
        assert len(left) >= stats["spills"] > stats["left_ahead"] > 0
        # Kernels began while these were in flight: nobody waited for them.
        beside = [e for e in left if any(0 < s - e["start_ns"] < e["ns"] for s in starts)]
        assert len(beside) >= len(left) / 4

    def test_a_block_that_changes_after_its_copy_leaves_with_what_it_became(self):
        quota = 16 * 65536
        pool = tw.memory.Pool(quota, device="cuda", spill_dir=False)
        with pool:
            blocks = [tw.full((SIDE, SIDE), float(i), device="cuda") for i in range(15)]
            more = [tw.full((SIDE, SIDE), float(i), device="cuda") for i in range(15, 18)]
            before = pool.stats()
            assert before["spills"] == 2  # and the next ones have been copied
            assert before["host_bytes"] > 2 * 65536
            for i in (2, 3, 4):
                blocks[i] += 100
            more += [tw.full((SIDE, SIDE), float(i), device="cuda") for i in range(18, 34)]
            del more[8:12]  # some of which have copies
            assert pool.stats()["left_ahead"] > 0
            for i, x in enumerate(blocks):
                assert x[3, 5].item() == i + 100 * (2 <= i <= 4)
            for i, x in zip([*range(15, 23), *range(27, 34)], more, strict=True):
                assert x[3, 5].item() == i
        stats = pool.stats()
        assert stats["peak_live_bytes"] <= quota
        del blocks, more, x
        stats = pool.stats()
        assert (stats["live_bytes"], stats["host_bytes"]) == (0, 0)

    def test_a_pool_that_holds_all_copies_nothing(self):
        before = tw.cuda.memory_stats()["pinned"]["allocations"]
        pool = tw.memory.Pool(16 * 65536, device="cuda", spill_dir=False)
        with pool:
            kept = [tw.full((SIDE, SIDE), float(i), device="cuda") for i in range(16)]
            assert kept[3][0, 0].item() == 3
        assert pool.stats()["spills"] == pool.stats()["left_ahead"] == 0
        assert tw.cuda.memory_stats()["pinned"]["allocations"] == before

    def test_copies_ahead_make_room_for_those_that_must_be(self, tmp_path):
        # The tier below holds four blocks, and files nothing.
        pool = tw.memory.Pool(8 * 65536, device="cuda", host_bytes=4 * 65536, spill_dir=False)
        with pool:
            kept = [tw.full((SIDE, SIDE), float(i), device="cuda") for i in range(10)]
            for _ in range(3):
                for i, x in enumerate(kept):
                    assert (x + 0 if i % 2 else x)[1, 1].item() == i

    def test_planned_passes_take_one_arena_of_the_gpu(self):
        x = tw.ones((SIDE, SIDE), device="cuda", requires_grad=True)
        loss = ((x * 2).tanh() * x).sum()
        loss.backward(plan=True)
        plan = tw.memory.last_plan()
        assert plan["fallbacks"] == 0
        assert 0 < plan["arena_bytes"] <= plan["sum_bytes"]
        y = tw.ones((SIDE, SIDE), requires_grad=True)
        ((y * 2).tanh() * y).sum().backward()
        np.testing.assert_allclose(here(x.grad), here(y.grad), rtol=1e-5)

    def test_what_pinned_memory_has_no_room_for_goes_to_files(self, tmp_path):
        quota, host = 4 * 65536, 3 * 65536
        pool = tw.memory.Pool(quota, tmp_path, device="cuda", host_bytes=host)
        values = [
            np.random.default_rng(i).standard_normal((SIDE, SIDE)).astype("float32")
            for i in range(12)
        ]
        with pool:
            tensors = [tw.asarray(v).to("cuda") for v in values]
            stats = pool.stats()
            assert stats["live_bytes"] <= quota
            assert 0 < stats["host_bytes"] <= host
            assert stats["file_bytes"] >= 5 * 65536
            assert len(list(tmp_path.glob("*/block-*.bin"))) >= 5
            for _ in range(2):
                for x, v in zip(tensors, values, strict=True):
                    np.testing.assert_array_equal(here(x + 0), v)
                for x, v in zip(reversed(tensors), reversed(values), strict=True):
                    np.testing.assert_array_equal(here(x), v)
        del tensors, x
        stats = pool.stats()
        assert (stats["live_bytes"], stats["host_bytes"], stats["file_bytes"]) == (0, 0, 0)
        assert list(tmp_path.glob("*/block-*.bin")) == []

    def test_blocks_come_back_before_they_are_asked_for(self):
        pool = tw.memory.Pool(4 * 65536, device="cuda", spill_dir=False)
        with pool:
            kept = [tw.full((SIDE, SIDE), float(i), device="cuda") for i in range(10)]
            seen = []
            while kept:
                x = kept.pop(0)
                seen.append((x * 2)[0, 0].item())
                del x
        assert seen == [2.0 * i for i in range(10)]
        assert pool.stats()["foreseen"] > 0

    def test_threads_drive_out_each_others_blocks(self, tmp_path):
        pool = tw.memory.Pool(10 * 65536, device="cuda", spill_dir=tmp_path, host_bytes=2 * 65536)
        errors: list[BaseException] = []

        def work(k: int) -> None:
            pick = random.Random(k)
            try:
                with pool:
                    for _ in range(12):
                        n = pick.choice([SIDE * SIDE, SIDE * SIDE, 100])
                        xs = [tw.full((n,), float(i + k), device="cuda") for i in range(6)]
                        for i in (*pick.sample(range(6), 6), *reversed(range(6))):
                            seen = here(xs[i] * 2)
                            assert seen[0] == seen[-1] == 2 * (i + k)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        stats = pool.stats()
        assert stats["spills"] > 50
        assert (stats["live_bytes"], stats["host_bytes"], stats["file_bytes"]) == (0, 0, 0)

    def test_what_fits_nowhere_is_refused_with_figures(self):
        pool = tw.memory.Pool(2 * 65536, False, device="cuda", host_bytes=65536)
        with pool:
            kept = [tw.ones((SIDE, SIDE), device="cuda") for _ in range(3)]
            with pytest.raises(MemoryError, match=r"pool on device 'cuda:0': no room below it"):
                kept.append(tw.ones((SIDE, SIDE), device="cuda"))
            assert here(kept[2])[0, 0] == 1
        nothing = tw.memory.Pool(65536, device="cuda", host_bytes=0)
        with nothing:
            first = tw.ones((SIDE, SIDE), device="cuda")
            with pytest.raises(MemoryError, match="nothing can be spilled"):
                tw.ones((SIDE, SIDE), device="cuda")
            assert here(first).sum() == SIDE * SIDE

    def test_pools_of_two_devices_nest(self):
        here_pool, there_pool = tw.memory.Pool(), tw.memory.Pool(device="cuda")
        with here_pool, there_pool:
            a = tw.ones((SIDE, SIDE))
            b = tw.ones((SIDE, SIDE), device="cuda")
            assert here_pool.stats()["live_bytes"] >= 65536
            assert there_pool.stats()["live_bytes"] == 65536
        c = tw.ones((SIDE, SIDE), device="cuda")
        assert there_pool.stats()["live_bytes"] == 65536
        assert (a.device, b.device, c.device) == ("cpu", "cuda:0", "cuda:0")

    def test_options_are_checked(self):
        with pytest.raises(ValueError, match="host_bytes is for pools on a GPU"):
            tw.memory.Pool(1000, host_bytes=5)
        with pytest.raises(ValueError, match="device 'null' has no memory of its own"):
            tw.memory.Pool(1000, device="null")
        with pytest.raises(ValueError, match="host_bytes must be at least 0"):
            tw.memory.Pool(1000, device="cuda", host_bytes=-1)

    def test_blocks_of_a_pool(self):
        pool = tw.memory.Pool(1 << 20, device="cuda")
        block = pool.allocate(1000, zero=True)
        assert block.nbytes == 1000
        with pytest.raises(BufferError, match="on device 'cuda:0'"):
            memoryview(block)
        assert pool.stats()["live_bytes"] == 1024
        block.free()
        assert pool.stats()["live_bytes"] == 0

    def test_spills_are_events_of_the_gpu(self):
        pool = tw.memory.Pool(2 * 65536, device="cuda", spill_dir=False)
        with tw.memory.record() as log, pool:
            kept = [tw.ones((SIDE, SIDE), device="cuda") for _ in range(4)]
            here(kept[0] + 1)
        spilled = [e for e in log.events if e["kind"] == "spill"]
        assert spilled
        assert all(e["device"] == "cuda:0" for e in spilled)


class TestFigures:
    def test_live_and_reserved_are_kept_apart(self):
        before = tw.cuda.memory_stats()
        x = tw.zeros((1 << 20,), device="cuda")
        stats = tw.cuda.memory_stats()
        assert stats["live_bytes"] - before["live_bytes"] == 4 << 20
        assert stats["reserved_bytes"] >= stats["live_bytes"]
        del x
        assert tw.cuda.memory_stats()["live_bytes"] == before["live_bytes"]
        assert tw.cuda.max_memory_allocated() >= stats["live_bytes"]
        tw.cuda.reset_peak_memory_stats()
        assert tw.cuda.max_memory_allocated() == tw.cuda.memory_allocated()
        free, total = tw.cuda.mem_get_info()
        assert 0 < free < total

    def test_a_bound_of_the_process(self):
        with pytest.raises(ValueError, match=r"fraction must be in \(0, 1\], got 0"):
            tw.cuda.set_per_process_memory_fraction(0)
        tw.cuda.empty_cache()
        total = tw.cuda.facts()["memory_bytes"]
        bound = tw.cuda.memory_reserved() + (80 << 20)
        tw.cuda.set_per_process_memory_fraction(bound / total)
        try:
            with pytest.raises(MemoryError, match=r"out of memory: .* limit \d+"):
                tw.zeros((256 << 20,), dtype=tw.uint8, device="cuda")
            assert tw.zeros((1 << 20,), dtype=tw.uint8, device="cuda").sum().item() == 0
        finally:
            tw.cuda.set_per_process_memory_fraction(1)

    def test_out_of_memory_says_what_holds_it(self):
        x = tw.ones((512, 512), device="cuda")
        kept = [x + i for i in range(3)]
        with pytest.raises(MemoryError, match=r"made by.*add \d+ bytes in \d+ blocks?"):
            tw.zeros((1 << 50,), dtype=tw.uint8, device="cuda")
        with tw.memory.record():
            told = x * 2
            with pytest.raises(MemoryError, match=r"float32.*512, 512.* at .*test_gpu_memory\.py"):
                tw.zeros((1 << 50,), dtype=tw.uint8, device="cuda")
        assert len(kept) == 3
        assert told.shape == (512, 512)

    def test_many_sizes_come_and_go(self, rng):
        kept: dict[int, tuple[tw.Tensor, float]] = {}
        for step in range(400):
            size = int(2 ** rng.uniform(0, 18))
            if rng.random() < 0.5 and kept:
                key = list(kept)[rng.integers(len(kept))]
                x, value = kept.pop(key)
                assert here(x[:1])[0] == value
                assert here(x[-1:])[0] == value
            value = float(step)
            kept[step] = tw.full((size,), value, device="cuda"), value
        live = tw.cuda.memory_allocated()
        kept.clear()
        assert tw.cuda.memory_allocated() < live
        tw.cuda.empty_cache()
