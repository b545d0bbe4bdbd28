"""Rows in files: the same values as in memory, in the same order; damage is told, not returned."""

import gc
import os
import pickle
import signal
import struct

import numpy as np
import pytest
from cases.threads import PATIENCE_SECONDS, run_all
from safetensors.numpy import save_file

import tilewright as tw
from tilewright.data import DataLoader, FileTensor, TensorDataset
from tilewright.runtime import transfer

DTYPES = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


def array(rng, dtype="float32", shape=(103, 5)):
    return rng.integers(0, 200, shape).astype("uint8").astype(dtype)


def npy(path, x):
    np.save(path, x)
    return FileTensor.from_npy(path)


@pytest.fixture
def pair(tmp_path, rng):
    """Images and labels, in files and in memory."""
    x, y = rng.standard_normal((103, 4, 3)).astype(np.float32), np.arange(103)
    files = npy(tmp_path / "x.npy", x), npy(tmp_path / "y.npy", y)
    return files, (tw.asarray(x), tw.asarray(y))


def epochs(data, count=2, **options):
    loader = DataLoader(data, **options)
    return [[tuple(np.asarray(part) for part in batch) for batch in loader] for _ in range(count)]


def assert_same_epochs(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        for a, b in zip(one, other, strict=True):
            for p, q in zip(a, b, strict=True):
                assert p.dtype == q.dtype
                np.testing.assert_array_equal(p, q, strict=True)


def in_flight():
    queue = transfer.stats()["queues"]["read"]
    return queue["waiting"] + queue["running"]


class TestFormats:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("shape", [(7,), (7, 3), (2, 3, 4), (0, 3), (3, 0)])
    def test_npy(self, tmp_path, rng, dtype, shape):
        x = array(rng, dtype, shape)
        file = npy(tmp_path / "x.npy", x)
        assert file.shape == shape
        assert file.dtype.name == dtype
        assert len(file) == shape[0]
        assert file.ndim == len(shape)
        assert file.nbytes == x.nbytes
        np.testing.assert_array_equal(np.asarray(file[:]), x, strict=True)

    @pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
    def test_npy_versions(self, tmp_path, rng, version):
        x = array(rng)
        with open(tmp_path / "x.npy", "wb") as out:
            np.lib.format.write_array(out, x, version)
        assert (np.asarray(FileTensor.from_npy(tmp_path / "x.npy")[:]) == x).all()

    @pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "complex128"])
    def test_safetensors_of_the_reference_package(self, tmp_path, rng, dtype):
        x, y = array(rng, dtype), np.arange(3)
        save_file({"x": x, "labels": y}, tmp_path / "data.safetensors")
        file = FileTensor.from_safetensors(tmp_path / "data.safetensors", "x")
        np.testing.assert_array_equal(np.asarray(file[:]), x, strict=True)
        labels = FileTensor.from_safetensors(tmp_path / "data.safetensors", "labels")
        assert labels[1:].tolist() == [1, 2]
        with pytest.raises(KeyError, match="no tensor 'z'; there are: '"):
            FileTensor.from_safetensors(tmp_path / "data.safetensors", "z")

    def test_safetensors_of_our_own(self, tmp_path):
        x = tw.randn(5, 2).astype(tw.bfloat16)
        tw.save({"x": x}, tmp_path / "x.safetensors")
        file = FileTensor.from_safetensors(tmp_path / "x.safetensors", "x")
        assert file[3].tolist() == x[3].tolist()

    def test_idx(self, tmp_path, rng):
        x = rng.integers(0, 256, (6, 4, 5)).astype(np.uint8)
        header = struct.pack(">HBB3I", 0, 8, 3, *x.shape)
        (tmp_path / "x.idx").write_bytes(header + x.tobytes())
        file = FileTensor.from_idx(tmp_path / "x.idx")
        np.testing.assert_array_equal(np.asarray(file[:]), x, strict=True)
        (tmp_path / "x.gz").write_bytes(b"\x1f\x8b" + bytes(20))
        with pytest.raises(ValueError, match="decompress it with gunzip"):
            FileTensor.from_idx(tmp_path / "x.gz")
        (tmp_path / "x.idx").write_bytes(struct.pack(">HBB1I", 0, 0x0D, 1, 3) + bytes(12))
        with pytest.raises(ValueError, match="elements are float32, big-endian; use read_idx"):
            FileTensor.from_idx(tmp_path / "x.idx")

    def test_raw(self, tmp_path, rng):
        x = array(rng, "float64")
        (tmp_path / "x").write_bytes(b"header!" + x.tobytes())
        file = FileTensor(tmp_path / "x", x.shape, tw.float64, offset_bytes=7)
        np.testing.assert_array_equal(np.asarray(file[:]), x, strict=True)
        assert repr(file) == f"FileTensor({str(tmp_path / 'x')!r}, (103, 5), tilewright.float64)"


class TestWrongHeaders:
    @pytest.mark.parametrize(
        ("content", "error", "text"),
        [
            (np.asfortranarray(np.ones((3, 4))), ValueError, "Fortran order"),
            (np.array([{}, 1], dtype=object), TypeError, "Python objects"),
            (np.ones(3, ">f4"), ValueError, "foreign byte order"),
            (np.ones(3, "clongdouble"), TypeError, "no dtype for NumPy's '<c32'"),
            (np.zeros(3, [("a", "i4")]), TypeError, "no dtype for NumPy's"),
            (np.array(["a"]), TypeError, "no dtype for NumPy's '<U1'"),
            (np.ones(3, bool), TypeError, "use dtype uint8"),
            (np.array(1.0), ValueError, "no axis"),
        ],
    )
    def test_npy_that_numpy_writes(self, tmp_path, content, error, text):
        np.save(tmp_path / "x.npy", content, allow_pickle=True)
        with pytest.raises(error, match=text):
            FileTensor.from_npy(tmp_path / "x.npy")

    @pytest.mark.parametrize(
        ("damage", "text"),
        [
            (lambda b: b"", "not a .npy file"),
            (lambda b: b"\x93NUMPY", "not a .npy file"),
            (lambda b: b"PK" + b, "not a .npy file"),
            (lambda b: b[:6] + b"\x09" + b[7:], "version 9 is unknown"),
            (lambda b: b[:40], "not there whole"),
            (lambda b: b[:8] + b"\xff\xff" + b[10:], "not there whole"),
            (lambda b: b.replace(b"descr", b"descx"), "damaged .npy header"),
            (lambda b: b.replace(b"{", b"("), "damaged .npy header"),
            (lambda b: b.replace(b"(103, 5)", b"[103, 5]"), "damaged .npy header"),
            (lambda b: b.replace(b"(103, 5)", b"(-03, 5)"), "damaged .npy header"),
            (lambda b: b.replace(b"(103, 5)", b"(-13, 5)"), "at least 0, got -13"),
            (lambda b: b.replace(b"(103, 5)", b"(903, 5)"), "truncated: shape .* the file has"),
            (lambda b: b[:-1], r"truncated: .* needs 2188 bytes, the file has 2187"),
        ],
    )
    def test_damaged_npy(self, tmp_path, rng, damage, text):
        np.save(tmp_path / "x.npy", array(rng))
        content = (tmp_path / "x.npy").read_bytes()
        (tmp_path / "x.npy").write_bytes(damage(content))
        with pytest.raises(ValueError, match=rf"x\.npy: .*{text}"):
            FileTensor.from_npy(tmp_path / "x.npy")

    def test_raw(self, tmp_path):
        (tmp_path / "x").write_bytes(bytes(100))
        with pytest.raises(ValueError, match="from byte 4 on needs 104 bytes, the file has 100"):
            FileTensor(tmp_path / "x", (25,), tw.float32, 4)
        with pytest.raises(TypeError, match=r"shape takes whole numbers, got 2\.0"):
            FileTensor(tmp_path / "x", (2.0,), tw.float32)
        with pytest.raises(ValueError, match="offset_bytes must be at least 0, got -1"):
            FileTensor(tmp_path / "x", (2,), tw.float32, -1)
        with pytest.raises(FileNotFoundError):
            FileTensor(tmp_path / "none", (1,), tw.float32)
        with pytest.raises(IsADirectoryError):
            FileTensor(tmp_path, (1,), tw.float32)

    def test_a_file_that_may_not_be_read(self, tmp_path):
        (tmp_path / "x").write_bytes(bytes(100))
        (tmp_path / "x").chmod(0)
        if os.access(tmp_path / "x", os.R_OK):
            pytest.skip("this user may read everything")
        with pytest.raises(PermissionError):
            FileTensor(tmp_path / "x", (1,), tw.float32)


class TestIndexing:
    @pytest.mark.parametrize(
        "key",
        [
            0, 102, -1, -103, np.int64(3), slice(None), slice(3, 9), slice(-5, None),
            slice(None, None, -1), slice(90, 10, -7), slice(5, 5), slice(200, 300),
        ],
        ids=str,
    )  # fmt: skip
    def test_equals_numpy(self, tmp_path, rng, key):
        x = array(rng)
        np.testing.assert_array_equal(
            np.asarray(npy(tmp_path / "x.npy", x)[key]), x[key], strict=True
        )

    def test_index_tensors(self, tmp_path, rng):
        x = array(rng)
        file = npy(tmp_path / "x.npy", x)
        rows = rng.integers(-103, 103, 500)
        for dtype in ("int64", "int32", "int16"):
            got = file[tw.asarray(rows.astype(dtype))]
            np.testing.assert_array_equal(np.asarray(got), x[rows], strict=True)

    @pytest.mark.parametrize("key", [103, -104])
    def test_outside(self, tmp_path, rng, key):
        with pytest.raises(IndexError, match=f"index {key} is out of range for 103 rows"):
            npy(tmp_path / "x.npy", array(rng))[key]

    @pytest.mark.parametrize("key", ["a", 1.0, None, (0, 1), tw.ones(2)])
    def test_wrong_kinds(self, tmp_path, rng, key):
        with pytest.raises(TypeError, match=r"int, a slice or an integer tensor|must be int64"):
            npy(tmp_path / "x.npy", array(rng))[key]

    def test_iteration(self, tmp_path):
        assert [row.item() for row in npy(tmp_path / "x.npy", np.arange(5))] == [0, 1, 2, 3, 4]

    def test_pickled_it_opens_its_file_again(self, tmp_path, rng):
        x = array(rng)
        file = pickle.loads(pickle.dumps(npy(tmp_path / "x.npy", x)))
        assert (np.asarray(file[:]) == x).all()


class TestEpochs:
    @pytest.mark.parametrize("prefetch", [0, 1, 2, 50])
    @pytest.mark.parametrize("shuffle", [True, False])
    @pytest.mark.parametrize("batch_size", [1, 10, 103, 500])
    def test_equal_those_from_memory(self, pair, prefetch, shuffle, batch_size):
        files, memory = pair
        options = {"batch_size": batch_size, "shuffle": shuffle, "seed": 3}
        assert_same_epochs(epochs(files, prefetch=prefetch, **options), epochs(memory, **options))

    @pytest.mark.parametrize("shuffle", [True, False])
    def test_drop_last(self, pair, shuffle):
        files, memory = pair
        options = {"batch_size": 10, "shuffle": shuffle, "seed": 3, "drop_last": True}
        assert_same_epochs(epochs(files, **options), epochs(memory, **options))

    def test_follow_manual_seed(self, pair):
        results = []
        for data in pair:
            tw.manual_seed(11)
            results.append(epochs(data, batch_size=7, shuffle=True))
        assert_same_epochs(*results)

    def test_files_beside_memory(self, pair):
        (x_file, _), (x, y) = pair
        options = {"batch_size": 8, "shuffle": True, "seed": 1}
        assert_same_epochs(epochs((x_file, y), **options), epochs((x, y), **options))

    def test_a_single_file_gives_tensors(self, pair):
        (_, labels), _ = pair
        assert [batch.tolist() for batch in DataLoader(labels, 50)][2] == [100, 101, 102]

    def test_a_dataset(self, pair):
        files, memory = pair
        dataset = TensorDataset(*files)
        assert len(dataset) == 103
        for a, b in zip(dataset[5], TensorDataset(*memory)[5], strict=True):
            assert a.tolist() == b.tolist()
        with pytest.raises(ValueError, match="first axes differ"):
            TensorDataset(files[0], tw.ones(3))

    def test_no_rows(self, tmp_path):
        assert list(DataLoader(npy(tmp_path / "x.npy", np.ones((0, 3))), 4, shuffle=True)) == []

    def test_prefetch_is_checked(self):
        with pytest.raises(ValueError, match="prefetch must be at least 0, got -1"):
            DataLoader(tw.arange(3), prefetch=-1)
        with pytest.raises(TypeError, match="prefetch is a whole number"):
            DataLoader(tw.arange(3), prefetch=None)

    def test_batches_are_the_users_own(self, pair):
        files, memory = pair
        for (x, _), (expected, _) in zip(
            DataLoader(files, 10), DataLoader(memory, 10), strict=True
        ):
            before = expected.tolist()
            x.fill_(1.0)
            assert expected.tolist() == before
        assert_same_epochs(epochs(files, batch_size=10), epochs(memory, batch_size=10))

    def test_training_gives_the_same_weights(self, pair):
        weights = []
        for data in pair:
            tw.manual_seed(5)
            w = tw.zeros((12, 1), requires_grad=True)
            optimizer = tw.optim.SGD([w], lr=0.01)
            for x, y in DataLoader(data, 16, shuffle=True, seed=2):
                error = x.reshape((-1, 12)) @ w - y.astype(tw.float32).reshape((-1, 1))
                optimizer.zero_grad()
                (error * error).mean().backward()
                optimizer.step()
            weights.append(w.detach().tolist())
        assert weights[0] == weights[1]


class TestFaults:
    def test_a_file_cut_midway(self, tmp_path):
        file = npy(tmp_path / "x.npy", np.arange(1000))
        loader = iter(DataLoader(file, 100))
        seen = [*next(loader).tolist(), *next(loader).tolist()]
        os.truncate(tmp_path / "x.npy", 4128)
        with pytest.raises(OSError, match=r"ends early|had 8128 bytes when opened and has 4128"):
            seen.extend(row for batch in loader for row in batch.tolist())
        # What was read before the cut is right; nothing after it is handed out.
        assert 200 <= len(seen) <= 500
        assert seen == list(range(len(seen)))
        assert in_flight() == 0

    def test_a_file_written_to_midway(self, tmp_path):
        file = npy(tmp_path / "x.npy", np.arange(1000))
        loader = iter(DataLoader(file, 100, prefetch=0))
        next(loader)
        with open(tmp_path / "x.npy", "r+b") as other:
            other.seek(2000)
            other.write(bytes(1000))
        os.utime(tmp_path / "x.npy", (1, 1))  # clocks of file systems are coarse
        with pytest.raises(OSError, match="written to since it was opened"):
            next(loader)
        with pytest.raises(OSError, match=r"x\.npy'; open it anew"):
            file[0]
        assert FileTensor.from_npy(tmp_path / "x.npy")[0].item() == 0

    def test_a_removed_or_replaced_file_keeps_its_rows(self, tmp_path):
        file = npy(tmp_path / "x.npy", np.arange(1000))
        loader = iter(DataLoader(file, 100))
        next(loader)
        np.save(tmp_path / "y.npy", np.zeros(1000, int))
        os.replace(tmp_path / "y.npy", tmp_path / "x.npy")
        assert next(loader).tolist() == list(range(100, 200))
        (tmp_path / "x.npy").unlink()
        rest = [row for batch in loader for row in batch.tolist()]
        assert rest == list(range(200, 1000))
        with pytest.raises(FileNotFoundError):
            FileTensor.from_npy(tmp_path / "x.npy")

    def test_an_error_comes_at_its_batch(self, tmp_path):
        whole, cut = np.arange(1000), tmp_path / "cut.npy"
        files = npy(tmp_path / "x.npy", whole), npy(cut, whole)
        loader = iter(DataLoader(files, 100, prefetch=3))
        for _ in range(4):
            next(loader)
        os.truncate(cut, 128)
        with pytest.raises(OSError, match=r"cut\.npy"):
            list(loader)
        with pytest.raises(StopIteration):
            next(loader)
        assert in_flight() == 0


class TestAbandoned:
    @pytest.mark.parametrize("prefetch", [0, 2, 30])
    def test_nothing_is_left(self, tmp_path, prefetch):
        file = npy(tmp_path / "x.npy", np.ones((2000, 500)))
        descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        transfer.stats()
        before = tw.memory.stats()["live_bytes"]
        for _ in range(20):
            loader = iter(DataLoader(file, 50, shuffle=True, prefetch=prefetch))
            next(loader)
            del loader
            gc.collect(0)
            assert in_flight() == 0
        assert tw.memory.stats()["live_bytes"] == before
        if descriptors:
            assert len(os.listdir("/proc/self/fd")) == descriptors

    def test_by_an_exception_in_the_loop(self, pair):
        files, _ = pair

        def train():
            for _ in DataLoader(files, 10):
                raise RuntimeError("step failed")

        with pytest.raises(RuntimeError, match="step failed"):
            train()
        assert in_flight() == 0

    def test_descriptors_are_closed(self, tmp_path):
        if not os.path.isdir("/proc/self/fd"):
            pytest.skip("no /proc here")
        np.save(tmp_path / "x.npy", np.ones(10))
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(50):
            FileTensor.from_npy(tmp_path / "x.npy")[2:4]
        assert len(os.listdir("/proc/self/fd")) == before


class TestAtOnce:
    def test_several_threads_iterate(self, pair):
        files, memory = pair
        expected = epochs(memory, batch_size=7, shuffle=True, seed=1)

        def work(_):
            for _ in range(5):
                assert_same_epochs(epochs(files, batch_size=7, shuffle=True, seed=1), expected)

        run_all(work)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_a_forked_child_reads_the_same_file(self, pair):
        files, memory = pair
        expected = epochs(memory, batch_size=7, shuffle=True, seed=1)
        for _ in range(5):
            next(iter(DataLoader(files, 10)))
            pid = os.fork()
            if pid == 0:
                signal.alarm(PATIENCE_SECONDS)
                try:
                    assert_same_epochs(epochs(files, batch_size=7, shuffle=True, seed=1), expected)
                    os._exit(0)
                except BaseException as error:
                    os.write(2, repr(error).encode())
                    os._exit(4)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
