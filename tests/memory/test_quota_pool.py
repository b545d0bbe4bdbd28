"""Pools with a quota: what leaves, what comes back, what is refused, and what stays behind."""

from __future__ import annotations

import gc
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.memory import Pool

MIB = 1 << 20


def folders(parent: Path) -> list[Path]:
    return list(parent.glob("tilewright-spill-*"))


def blocks(parent: Path) -> list[Path]:
    return list(parent.glob("tilewright-spill-*/*.bin"))


def mib_of(value: float) -> tw.Tensor:
    return tw.full((MIB // 4,), value, dtype=tw.float32)


def test_live_and_reserved_are_kept_apart():
    pool = Pool()
    with pool:
        x = tw.zeros((MIB,), dtype=tw.uint8)
        y = tw.zeros((4 * MIB,), dtype=tw.uint8)
    before = pool.stats()
    assert before["live_bytes"] == 5 * MIB
    assert before["reserved_bytes"] >= 5 * MIB
    assert before["allocations"] == 2
    del x, y
    after = pool.stats()
    assert after["live_bytes"] == 0
    assert after["peak_live_bytes"] == 5 * MIB
    assert after["reserved_bytes"] == before["reserved_bytes"]
    assert pool.trim() == before["reserved_bytes"]
    assert pool.stats()["reserved_bytes"] == 0


def test_a_freed_block_is_used_again():
    pool = Pool()
    pool.allocate(3 * MIB).free()
    assert pool.allocate(3 * MIB).nbytes == 3 * MIB
    stats = pool.stats()
    assert stats["reuses"] == 1
    assert stats["reserved_bytes"] == 3 * MIB


def test_only_tensors_made_inside_live_in_the_pool():
    pool = Pool()
    outside = tw.ones((1000,))
    with pool:
        inside = outside + 1
    after = inside * 2
    assert pool.stats()["allocations"] == 1
    assert after.tolist() == [4.0] * 1000


def test_pools_nest():
    outer, inner = Pool(), Pool()
    with outer:
        with inner:
            x = tw.ones((100,))
        y = tw.ones((100,))
    assert inner.stats()["allocations"] == outer.stats()["allocations"] == 1
    assert (x + y).tolist() == [2.0] * 100


def test_leaving_in_another_order_is_an_error():
    a, b = Pool(), Pool()
    a.__enter__()
    b.__enter__()
    with pytest.raises(RuntimeError, match="another order"):
        a.__exit__(None, None, None)
    b.__exit__(None, None, None)
    a.__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="another order"):
        a.__exit__(None, None, None)


def test_tensors_outlive_their_pool():
    pool = Pool(quota_bytes=2 * MIB)
    with pool:
        xs = [mib_of(i) for i in range(6)]
    del pool
    gc.collect()
    assert [float(x[0]) for x in xs] == [0, 1, 2, 3, 4, 5]


def test_over_the_quota_the_coldest_leaves_first(tmp_path):
    pool = Pool(quota_bytes=3 * MIB + 4096, spill_dir=tmp_path)
    with pool:
        a, b, c = mib_of(1), mib_of(2), mib_of(3)
        assert float(a.sum()) == MIB / 4  # now b is the coldest
        d = mib_of(4)
        assert pool.stats()["spills"] == 1
        restores = pool.stats()["restores"]
        for x in (a, c, d):
            x.sum()
        assert pool.stats()["restores"] == restores
        assert float(b[5]) == 2.0
        assert pool.stats()["restores"] == restores + 1
    assert pool.stats()["live_bytes"] <= 3 * MIB + 4096


def test_values_survive_leaving(rng, tmp_path):
    pool = Pool(quota_bytes=4 * MIB, spill_dir=tmp_path)
    arrays = [rng.standard_normal(200_000 + i).astype(np.float32) for i in range(12)]
    with pool:
        tensors = [tw.asarray(a).copy() for a in arrays]
        for order in (range(12), reversed(range(12)), rng.permutation(12), range(12)):
            for i in order:
                np.testing.assert_array_equal(tensors[i].numpy(), arrays[i])
    assert pool.stats()["peak_live_bytes"] <= 4 * MIB
    assert pool.stats()["restores"] > 20


def test_a_changed_block_comes_back_changed(tmp_path):
    with Pool(quota_bytes=2 * MIB, spill_dir=tmp_path):
        xs = [mib_of(i) for i in range(5)]
        for _ in range(3):
            for i in range(5):
                xs[i] += 1
        assert [float(x[-1]) for x in xs] == [3, 4, 5, 6, 7]


def test_memory_in_other_hands_keeps_its_place(tmp_path):
    pool = Pool(quota_bytes=3 * MIB, spill_dir=tmp_path)
    with pool:
        x = mib_of(7)
        array = x.numpy()
        others = [mib_of(i) for i in range(6)]
        assert pool.stats()["pinned_bytes"] == MIB
        array[:] = 8
        assert float(x[3]) == 8.0
        assert (array == 8).all()
        del array
        assert pool.stats()["pinned_bytes"] == 0
        assert [float(y[0]) for y in others] == [0, 1, 2, 3, 4, 5]
        assert float(x[3]) == 8.0


def test_tensors_in_other_hands_are_told_apart():
    with Pool():
        a, b = tw.ones((4,)), tw.zeros((4,))
    held = a.numpy(), b.numpy()
    a[...] = b
    a += 1
    assert (a.tolist(), b.tolist()) == ([1.0] * 4, [0.0] * 4)
    assert (a.version, b.version) == (2, 0)
    again = tw.asarray(held[0])
    again += 1
    assert (a.tolist(), a.version) == ([2.0] * 4, 3)


def test_all_pinned_is_refused_clearly(tmp_path):
    pool = Pool(quota_bytes=2 * MIB, spill_dir=tmp_path)
    with pool:
        held = [np.asarray(mib_of(i)) for i in range(2)]
        with pytest.raises(MemoryError, match=r"does not fit the quota of 2097152 bytes"):
            mib_of(3)
    assert [h[0] for h in held] == [0, 1]


def test_a_quota_too_small_for_one_op_is_refused_and_nothing_is_lost(tmp_path):
    with Pool(quota_bytes=5 * MIB // 2, spill_dir=tmp_path):
        a, b = mib_of(1), mib_of(2)
        with pytest.raises(MemoryError, match="raise quota_bytes"):
            a + b  # two operands and a result are in use at once
        assert float(a.sum()) == MIB / 4
        assert float(b.sum()) == MIB / 2


def test_an_array_that_finds_no_room_is_out_of_memory(tmp_path):
    with Pool(quota_bytes=2 * MIB, spill_dir=tmp_path):
        x = mib_of(1)
        held = [np.asarray(mib_of(i)) for i in range(2)]
        for array in (np.asarray, np.from_dlpack, lambda y: y.numpy(), memoryview):
            with pytest.raises(MemoryError, match="raise quota_bytes"):
                array(x)
        del held
        assert x.numpy()[0] == 1.0


def test_without_a_folder_the_quota_is_a_wall():
    pool = Pool(quota_bytes=2 * MIB, spill_dir=False)
    with pool:
        x = mib_of(1)
        y = mib_of(2)
        with pytest.raises(MemoryError, match="nothing can be spilled"):
            mib_of(3)
        del x
        assert float(mib_of(3)[0]) == 3.0
        assert float(y[0]) == 2.0


@pytest.mark.parametrize("quota", [0, -5])
def test_a_quota_must_be_positive(quota):
    with pytest.raises(ValueError, match="quota_bytes must be positive"):
        Pool(quota_bytes=quota)


def test_wrong_types_are_refused():
    with pytest.raises(TypeError):
        Pool(quota_bytes="much")
    with pytest.raises(TypeError):
        Pool(quota_bytes=MIB, spill_dir=3)
    with pytest.raises(ValueError, match="negative"):
        Pool().allocate(-1)
    with pytest.raises(MemoryError):
        Pool().allocate(1 << 62)


def test_a_missing_spill_folder_is_told_when_it_is_needed(tmp_path):
    with Pool(quota_bytes=2 * MIB, spill_dir=tmp_path / "no" / "such"):
        a, b = mib_of(1), mib_of(2)
        with pytest.raises(OSError, match="choose another spill_dir"):
            mib_of(3)
        assert float(a[0]) + float(b[0]) == 3.0


def test_files_go_with_their_tensors(tmp_path):
    pool = Pool(quota_bytes=2 * MIB, spill_dir=tmp_path)
    with pool:
        xs = [mib_of(i) for i in range(8)]
    assert len(blocks(tmp_path)) == 6
    assert pool.spill_folder == str(folders(tmp_path)[0])
    del xs
    assert blocks(tmp_path) == []
    del pool
    gc.collect()
    assert folders(tmp_path) == []


def test_a_removed_file_is_an_error_and_the_rest_goes_on(tmp_path):
    with Pool(quota_bytes=2 * MIB, spill_dir=tmp_path):
        xs = [mib_of(i) for i in range(5)]
        for file in blocks(tmp_path):
            file.unlink()
        with pytest.raises(OSError, match="No such file"):
            xs[0].sum()
        with pytest.raises(OSError, match="No such file"):
            xs[0].tolist()
        assert float(xs[4][0]) == 4.0
        assert float(mib_of(9)[0]) == 9.0


def test_a_shortened_file_is_an_error(tmp_path):
    with Pool(quota_bytes=2 * MIB, spill_dir=tmp_path):
        xs = [mib_of(i) for i in range(3)]
        (file,) = blocks(tmp_path)
        os.truncate(file, 1000)
        with pytest.raises(OSError, match=r"has 1000 bytes where 1048576 were written"):
            xs[0] + 1
        assert [float(x[0]) for x in xs[1:]] == [1, 2]


def test_a_full_disk_is_an_error_and_nothing_is_lost(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Pool(quota_bytes=2 * MIB, spill_dir=tmp_path):
        xs = [mib_of(i) for i in range(2)]
        resource.setrlimit(resource.RLIMIT_FSIZE, (MIB // 2, limits[1]))
        try:
            with pytest.raises(OSError, match="the values are still in memory"):
                mib_of(3)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert blocks(tmp_path) == []
        assert [float(x[0]) for x in xs] == [0, 1]
        assert float(mib_of(3)[0]) == 3.0


def run(code: str, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


FILL = """
    import sys, os, signal
    import tilewright as tw
    pool = tw.memory.Pool(quota_bytes=1 << 20, spill_dir=sys.argv[1])
    pool.__enter__()
    xs = [tw.full((1 << 18,), i, dtype=tw.float32) for i in range(4)]
    assert os.listdir(pool.spill_folder)
"""


@pytest.mark.parametrize("end", ["", "    sys.exit(3)", "    raise ValueError", "    del pool"])
def test_nothing_is_left_behind_at_exit(tmp_path, end):
    done = run(FILL + end, str(tmp_path))
    assert done.returncode == (3 if "exit" in end else 1 if "raise" in end else 0), done.stderr
    assert folders(tmp_path) == []


def test_what_a_killed_process_left_is_removed_at_the_next_start(tmp_path):
    done = run(FILL + "    os.kill(os.getpid(), signal.SIGKILL)", str(tmp_path))
    assert done.returncode == -signal.SIGKILL
    assert len(folders(tmp_path)) == 1
    with Pool(quota_bytes=MIB, spill_dir=tmp_path) as pool:
        xs = [mib_of(i) for i in range(2)]
        assert [str(f) for f in folders(tmp_path)] == [pool.spill_folder]
    del xs


def test_folders_of_the_living_are_left_alone(tmp_path):
    with Pool(quota_bytes=MIB, spill_dir=tmp_path):
        xs = [mib_of(i) for i in range(2)]
        assert run(FILL, str(tmp_path)).returncode == 0
        assert [float(x[0]) for x in xs] == [0, 1]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_goes_on_with_a_folder_of_its_own(tmp_path):
    with Pool(quota_bytes=2 * MIB, spill_dir=tmp_path):
        xs = [mib_of(i) for i in range(4)]
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            same = [float(x[0]) for x in xs] == [0, 1, 2, 3]
            more = [mib_of(10 + i) for i in range(3)]
            same = same and [float(x[0]) for x in more] == [10, 11, 12]
            os._exit(0 if same else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert [float(x[0]) for x in xs] == [0, 1, 2, 3]


def test_threads_share_a_pool(tmp_path):
    pool = Pool(quota_bytes=16 * MIB, spill_dir=tmp_path)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with pool:
                xs = [mib_of(number * 100 + i) for i in range(6)]
                for _ in range(5):
                    for i, x in enumerate(xs):
                        y = x + tw.zeros((1,))
                        assert float(y[-1]) == number * 100 + i
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert pool.stats()["live_bytes"] == 0
    assert pool.stats()["spilled_bytes"] == 0


def test_spill_on_request(tmp_path):
    pool = Pool(quota_bytes=64 * MIB, spill_dir=tmp_path)
    with pool:
        xs = [mib_of(i) for i in range(4)]
        small = tw.ones((10,))
    assert pool.spill() == 4 * MIB
    stats = pool.stats()
    assert stats["spilled_bytes"] == 4 * MIB
    assert stats["live_bytes"] == 64  # small blocks stay
    assert float(small.sum()) == 10.0
    assert [float(x[0]) for x in xs] == [0, 1, 2, 3]


def test_pressure_calls_before_anything_is_spilled(tmp_path):
    pool = Pool(quota_bytes=4 * MIB, spill_dir=tmp_path)
    cache: list[tw.Tensor] = []
    told: list[int] = []

    def shed(live_bytes: int) -> None:
        told.append(live_bytes)
        cache.clear()

    pool.on_pressure(0.75, shed)
    with pool:
        cache.extend(mib_of(i) for i in range(2))
        kept = [mib_of(5)]
        kept.append(mib_of(6))
    assert told == [3 * MIB]
    assert pool.stats()["spills"] == 0
    with pool:
        kept.append(mib_of(7))
    assert told == [3 * MIB, 3 * MIB]


def test_what_a_pressure_call_computes_changes_no_other_call():
    x, row, two = tw.ones((64, 4)), tw.ones((4,)), tw.ones((2,))
    for _ in range(3):
        x + row  # known by its shapes from now on
    pool = tw.memory.Pool(quota_bytes=MIB)
    told = []

    def compute(live_bytes: int) -> None:
        if told:
            return  # what is computed here meets pressure as well
        told.append(live_bytes)
        for n in range(1, 2000):
            tw.ones((n, 2)) * two

    pool.on_pressure(4608 / MIB, compute)  # between the two blocks
    with pool:
        kept = tw.zeros((4096,), dtype=tw.uint8)
        assert told == []
        y = x + row
    assert told
    assert y.shape == (64, 4)
    assert (y.numpy() == 2).all()
    del kept


def test_pressure_is_checked():
    with pytest.raises(ValueError, match="no pressure"):
        Pool().on_pressure(0.5, print)
    for level in (0, 1.5):
        with pytest.raises(ValueError, match="level"):
            Pool(quota_bytes=MIB).on_pressure(level, print)
    with pytest.raises(TypeError, match="must be a function"):
        Pool(quota_bytes=MIB).on_pressure(0.5, 3)


def test_blocks_are_memory():
    block = tw.memory.allocate(1000, zero=True)
    assert block.nbytes == len(block) == 1000
    view = memoryview(block)
    assert bytes(view) == bytes(1000)
    view[3] = 7
    assert np.frombuffer(block, np.uint8)[3] == 7
    with pytest.raises(BufferError, match="still in use"):
        block.free()
    view.release()
    gc.collect()
    block.free()
    block.free()
    assert block.nbytes == 0
    with pytest.raises(ValueError, match="freed"):
        memoryview(block)
    assert repr(block) == "<Block, freed>"


def test_a_block_that_was_away_is_found_again(tmp_path):
    pool = Pool(quota_bytes=2 * MIB, spill_dir=tmp_path)
    held = [pool.allocate(MIB) for _ in range(4)]
    for i, block in enumerate(held):
        with memoryview(block) as view:
            view[:] = bytes([i]) * MIB
    for i, block in enumerate(held):
        with memoryview(block) as view:
            assert view[0] == view[-1] == i
    assert pool.stats()["spills"] >= 2


def train(steps: int, width: int = 256) -> list[np.ndarray]:
    tw.manual_seed(3)
    layers = [tw.nn.Linear(width, width) for _ in range(6)]
    model = tw.nn.Sequential(*(m for layer in layers for m in (layer, tw.nn.ReLU())))
    optimizer = tw.optim.Adam(model.parameters(), lr=1e-3)
    x, y = tw.randn(2048, width), tw.randn(2048, width)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
    return [p.detach().copy().numpy() for p in model.parameters()] + [loss.detach().numpy()]


def test_training_over_the_quota_gives_the_same_bits(tmp_path):
    expected = train(3)
    pool = Pool(quota_bytes=16 * MIB, spill_dir=tmp_path)
    with pool:
        got = train(3)
    assert pool.stats()["spills"] > 10
    assert pool.stats()["peak_live_bytes"] <= 16 * MIB
    for a, b in zip(expected, got, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_python_ledger_runs_pools_too(tmp_path):
    code = """
        import sys
        import tilewright as tw
        pool = tw.memory.Pool(quota_bytes=2 << 20, spill_dir=sys.argv[1])
        with pool:
            xs = [tw.full((1 << 18,), i, dtype=tw.float32) for i in range(5)]
            assert [float((x + 0)[0]) for x in xs] == [0, 1, 2, 3, 4]
            try:
                tw.zeros((1 << 20,))
            except MemoryError as error:
                assert "does not fit" in str(error), error
            else:
                raise SystemExit("no error")
        print(pool.stats()["spills"] >= 3, "tilewright.memory.reference" in sys.modules)
    """
    done = run(code, str(tmp_path), env={**os.environ, "TILEWRIGHT_NATIVE_RUNTIME": "0"})
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_a_pool_whose_ledger_decides_otherwise_than_the_reference_says_so(tmp_path):
    code = """
        import sys
        import tilewright as tw
        from tilewright.memory import reference
        reference.Ledger.cold = lambda self: list(reversed(list(self._by_use)))
        pool = tw.memory.Pool(quota_bytes=2 << 20, spill_dir=sys.argv[1])
        xs = [pool.allocate(1 << 20) for i in range(2)]
        try:
            pool.stats(), pool.allocate(1 << 20), pool.stats()
        except RuntimeError as error:
            print(error)
    """
    done = run(code, str(tmp_path), env={**os.environ, "TILEWRIGHT_NATIVE_RUNTIME": "0"})
    assert "differ in make_room" in done.stdout, done.stderr


@pytest.mark.parametrize("native", ["1", "0"])
def test_threads_share_a_pool_for_blocks_of_all_sizes(native, tmp_path):
    """Small blocks, large ones and gradients; each thread drives out what others use."""
    code = """
        import random, sys, threading
        import tilewright as tw
        pool = tw.memory.Pool(quota_bytes=6 << 20, spill_dir=sys.argv[1])
        errors = []

        def work(k):
            pick = random.Random(k)
            try:
                with pool:
                    for _ in range(60):
                        n = pick.choice([20000, 40000, 100])
                        xs = [tw.full((n,), float(i + k)) for i in range(8)]
                        w = tw.ones((n,)).requires_grad_()
                        try:
                            for i in pick.sample(range(8), 8):
                                y = xs[i] * 2 + tw.zeros((1,))
                                assert float(y[0]) == float(y[-1]) == 2 * (i + k)
                            ((w * xs[3]).sum() + (w * w).sum()).backward()
                            assert float(w.grad[5]) == 3 + k + 2
                            m = tw.full((100, n // 100), 3.0) + tw.ones((n // 100,))
                            assert m.shape == (100, n // 100) and float(m.sum()) == 4 * m.numel()
                        except MemoryError:  # the others have the rest of the quota
                            pass
                        if pick.random() < 0.1:
                            pool.spill(), pool.stats(), pool.trim()
            except BaseException as error:
                errors.append(repr(error))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stats = pool.stats()
        print(errors, stats["live_bytes"], stats["spilled_bytes"], stats["spills"] > 50)
    """
    done = run(code, str(tmp_path), env={**os.environ, "TILEWRIGHT_NATIVE_RUNTIME": native})
    assert done.stdout.split() == ["[]", "0", "0", "True"], (done.stdout, done.stderr)
