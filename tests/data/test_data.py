"""Data sets and the loader: right content, damaged and missing files, batches and their order."""

import gzip
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from cases.mnist import NAMES, idx

import tilewright as tw
from tilewright import data
from tilewright.data.mnist import missing_files

COUNTS = (5, 3)


@pytest.fixture
def folder(tmp_path):
    """Four small files of the right form."""
    for name, (split, kind) in NAMES.items():
        sizes = (COUNTS[split], 28, 28) if kind == "images" else (COUNTS[split],)
        (tmp_path / name).write_bytes(idx(sizes))
    return tmp_path


class TestMnist:
    def test_reads_plain_files(self, folder):
        mnist = data.mnist(folder)
        assert [t.shape for t in mnist] == [(5, 28, 28), (5,), (3, 28, 28), (3,)]
        assert mnist.train_labels.tolist() == [0, 1, 2, 3, 4]
        assert mnist.test_images.dtype == tw.uint8
        assert mnist.train_images[0, 0, :4].tolist() == [0, 1, 2, 3]

    def test_reads_compressed_files(self, folder):
        for name in NAMES:
            path = folder / name
            path.with_name(name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
        assert data.mnist(folder).train_labels.tolist() == [0, 1, 2, 3, 4]

    def test_the_real_files(self):
        folders = [os.environ.get("TILEWRIGHT_DATA"), "../shared/data"]
        folder = next((f for f in folders if f and not missing_files(Path(f))), None)
        if folder is None:
            pytest.skip("no MNIST here: set TILEWRIGHT_DATA to the folder of its files")
        mnist = data.mnist(folder)
        assert [t.shape[0] for t in mnist] == [60000, 60000, 10000, 10000]
        assert mnist.train_labels[:5].tolist() == [5, 0, 4, 1, 9]
        assert mnist.test_labels[:5].tolist() == [7, 2, 1, 0, 4]

    def test_finds_a_subfolder_and_the_environment_variable(self, folder, monkeypatch):
        inner = folder / "mnist"
        inner.mkdir()
        for name in NAMES:
            (folder / name).rename(inner / name)
        assert data.mnist(folder).test_labels.tolist() == [0, 1, 2]
        monkeypatch.setenv("TILEWRIGHT_DATA", str(folder))
        assert data.mnist().test_labels.tolist() == [0, 1, 2]

    @pytest.mark.parametrize("name", NAMES)
    def test_a_missing_file_is_named_with_a_remedy(self, folder, name):
        (folder / name).unlink()
        with pytest.raises(FileNotFoundError, match=rf"no {name}\[\.gz\].*--data DIR"):
            data.mnist(folder)

    def test_a_missing_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere"):
            data.mnist(tmp_path / "nowhere")

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize(
        ("damage", "text"),
        [
            (lambda b: b"", "truncated: 0 bytes are no IDX header"),
            (lambda b: b[:3], "truncated: 3 bytes"),
            (lambda b: b[:6], "truncated: the header"),
            (lambda b: b[:-1], "truncated: .* need"),
            (lambda b: b + b"x", "1 bytes too many"),
            (lambda b: b"\x00\x01" + b[2:], "not an IDX file"),
            (lambda b: b"<html>" + b, "not an IDX file"),
            (lambda b: b"\x00\x00\x0d" + b[3:], "elements are float32, expected uint8"),
            (lambda b: b"\x00\x00\x08\x02" + b[4:], "sizes are .*, expected n|truncated"),
            (lambda b: gzip.compress(b)[:-20], "truncated: the gzip stream"),
            (lambda b: gzip.compress(b)[:-8] + bytes(8), "damaged gzip data"),
            (lambda b: b"\x1f\x8b" + bytes(30), "damaged gzip data"),
        ],
    )
    def test_damage_is_described_with_the_file(self, folder, name, damage, text):
        path = folder / name
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(ValueError, match=f"{name}: ({text})"):
            data.mnist(folder)

    def test_sizes_that_would_fill_memory_are_refused(self, folder):
        huge = struct.pack(">HBBIII", 0, 8, 3, 0xFFFFFFFF, 28, 28)
        (folder / "train-images-idx3-ubyte").write_bytes(huge)
        with pytest.raises(ValueError, match="truncated: 4294967295 x 28 x 28"):
            data.mnist(folder)

    def test_images_of_another_size(self, folder):
        (folder / "t10k-images-idx3-ubyte").write_bytes(idx((3, 8, 8)))
        with pytest.raises(ValueError, match="sizes are 3 x 8 x 8, expected n x 28 x 28"):
            data.mnist(folder)

    def test_images_and_labels_must_match(self, folder):
        (folder / "train-labels-idx1-ubyte").write_bytes(idx((4,)))
        with pytest.raises(ValueError, match=r"5 images, .* 4 labels"):
            data.mnist(folder)

    @pytest.mark.parametrize("split", ["train", "t10k"])
    def test_files_without_images(self, folder, split):
        (folder / f"{split}-images-idx3-ubyte").write_bytes(idx((0, 28, 28)))
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(idx((0,)))
        with pytest.raises(ValueError, match=f"{split}-images-idx3-ubyte: holds 0 images"):
            data.mnist(folder)

    def test_labels_beyond_nine(self, folder):
        (folder / "t10k-labels-idx1-ubyte").write_bytes(idx((3,), b"\x00\x0a\x01"))
        with pytest.raises(ValueError, match="labels go from 0 to 9, found 10"):
            data.mnist(folder)

    def test_download_without_pooch_says_what_to_install(self, folder, monkeypatch):
        monkeypatch.setitem(sys.modules, "pooch", None)
        (folder / "t10k-labels-idx1-ubyte").unlink()
        with pytest.raises(ImportError, match=r"pip install 'tilewright\[data\]'"):
            data.mnist(folder, download=True)


class TestDigits:
    def test_content(self):
        images, labels = data.digits()
        assert images.shape == (1797, 8, 8)
        assert labels.shape == (1797,)
        assert images.dtype == labels.dtype == tw.uint8
        # Facts of the published set: grey levels to 16, their sum, and the counts of each digit.
        assert images.max().item() == 16
        assert images.astype(tw.int64).sum().item() == 561718
        counts = [labels.tolist().count(digit) for digit in range(10)]
        assert counts == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]

    def test_equals_scikit_learns_copy(self):
        datasets = pytest.importorskip("sklearn.datasets")
        theirs = datasets.load_digits()
        images, labels = data.digits()
        assert (images.numpy() == theirs.images).all()
        assert (labels.numpy() == theirs.target).all()


class TestDataLoader:
    def test_batches_in_order(self):
        x, y = tw.arange(10).reshape((5, 2)), tw.arange(5)
        loader = data.DataLoader((x, y), batch_size=2)
        assert len(loader) == 3
        batches = [(a.tolist(), b.tolist()) for a, b in loader]
        assert batches[0] == ([[0, 1], [2, 3]], [0, 1])
        assert batches[2] == ([[8, 9]], [4])

    def test_drop_last(self):
        loader = data.DataLoader(tw.arange(5), batch_size=2, drop_last=True)
        assert len(loader) == 2
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]

    def test_an_epoch_has_every_row_once_and_rows_stay_together(self):
        x = tw.arange(101)
        loader = data.DataLoader((x, x * 3), batch_size=10, shuffle=True, seed=1)
        rows = [(a, b) for xs, ys in loader for a, b in zip(xs.tolist(), ys.tolist(), strict=True)]
        assert sorted(a for a, _ in rows) == list(range(101))
        assert all(b == 3 * a for a, b in rows)
        assert [a for a, _ in rows] != list(range(101))

    def test_each_epoch_has_an_order_of_its_own(self):
        loader = data.DataLoader(tw.arange(50), batch_size=50, shuffle=True, seed=1)
        (first,), (second,) = list(loader), list(loader)
        assert first.tolist() != second.tolist()

    def test_a_seed_gives_the_same_epochs_again(self):
        def epochs():
            loader = data.DataLoader(tw.arange(50), batch_size=7, shuffle=True, seed=3)
            tw.rand((3,))  # other draws do not matter
            return [[batch.tolist() for batch in loader] for _ in range(2)]

        assert epochs() == epochs()

    def test_without_a_seed_manual_seed_decides(self):
        def order():
            tw.manual_seed(4)
            return [b.tolist() for b in data.DataLoader(tw.arange(20), 20, shuffle=True)]

        assert order() == order()

    def test_a_dataset(self):
        dataset = data.TensorDataset(tw.arange(4), tw.arange(4) * 2)
        assert [item.item() for item in dataset[3]] == [3, 6]
        assert len(list(data.DataLoader(dataset, 3))) == 2

    def test_no_rows(self):
        loader = data.DataLoader(tw.zeros((0, 3)), 4, shuffle=True)
        assert len(loader) == 0
        assert list(loader) == []

    @pytest.mark.parametrize(
        ("make", "error", "text"),
        [
            (lambda: data.DataLoader(tw.arange(3), 0), ValueError, "at least 1, got 0"),
            (lambda: data.DataLoader(tw.arange(3), -2), ValueError, "at least 1, got -2"),
            (
                lambda: data.DataLoader(tw.arange(3), True),
                TypeError,
                "batch_size is a whole number",
            ),
            (lambda: data.DataLoader(tw.arange(3), 2.0), TypeError, "batch_size is a whole number"),
            (lambda: data.DataLoader(tw.arange(3), "2"), TypeError, "whole number, got '2'"),
            (lambda: data.DataLoader(tw.arange(3), seed=-1), ValueError, "seed must be at least 0"),
            (lambda: data.DataLoader(tw.arange(3), seed=2**64), ValueError, "seed must be below"),
            (lambda: data.DataLoader(tw.arange(3), seed="a"), TypeError, "seed is a whole number"),
            (lambda: data.DataLoader(tw.arange(3), seed=True), TypeError, "seed is a whole number"),
            (lambda: data.DataLoader(tw.arange(3), generator=3), TypeError, "generator is a int"),
            (lambda: data.DataLoader(None), TypeError, "TensorDataset, got NoneType"),
            (lambda: data.DataLoader({"x": tw.arange(3)}), TypeError, "TensorDataset, got dict"),
            (lambda: data.DataLoader((tw.arange(3), tw.arange(4))), ValueError, r"\(3,\), \(4,\)"),
            (lambda: data.DataLoader(()), ValueError, "no tensors"),
            (lambda: data.DataLoader(([1, 2],)), TypeError, "item 0 is a list"),
            (lambda: data.DataLoader(tw.asarray(1.0)), ValueError, "no axis"),
            (
                lambda: data.DataLoader(tw.arange(3), seed=1, generator=tw.Generator(1)),
                ValueError,
                "not both",
            ),
        ],
    )
    def test_errors(self, make, error, text):
        with pytest.raises(error, match=text):
            make()


class Squares:
    """A data set of the kind that PyTorch's users write."""

    def __init__(self, length, make):
        self.length, self.make, self.read = length, make, []

    def __len__(self):
        return self.length

    def __getitem__(self, row):
        self.read.append(row)
        return self.make(row)


class Point(NamedTuple):
    x: Any
    label: int


class TestArrays:
    def test_numpy_arrays_are_tensors_over_their_memory(self):
        x, y = np.arange(12.0).reshape(6, 2), np.arange(6, dtype=np.int32)
        batches = list(data.DataLoader((x, y), batch_size=4))
        assert [batch.shape for batch in batches[1]] == [(2, 2), (2,)]
        assert batches[0][0].dtype == tw.float64
        assert batches[0][1].dtype == tw.int32
        x[0, 0] = 99.0
        assert batches[0][0][0, 0].item() == 99.0

    def test_one_array_gives_tensors(self):
        (batch,) = data.DataLoader(np.arange(3), batch_size=8)
        assert batch.tolist() == [0, 1, 2]

    @pytest.mark.parametrize("shuffle", [False, True])
    def test_shuffled_rows_stay_together(self, shuffle):
        x = np.asfortranarray(np.arange(40).reshape(20, 2)[:, ::-1])
        x.flags.writeable = False
        rows = []
        for xs, ys in data.DataLoader([x, tw.arange(20)], 6, shuffle, seed=2):
            rows += zip(xs.tolist(), ys.tolist(), strict=True)
        assert sorted(y for _, y in rows) == list(range(20))
        assert all(pair == [2 * y + 1, 2 * y] for pair, y in rows)

    def test_torch_tensors(self):
        torch = pytest.importorskip("torch")
        (batch,) = data.DataLoader((torch.ones(2, 3, dtype=torch.bfloat16),), 2)
        assert (batch[0].dtype, batch[0].shape) == (tw.bfloat16, (2, 3))

    @pytest.mark.parametrize(
        ("array", "text"),
        [
            (np.array(["a"]), "item 0: cannot read a ndarray of <U1"),
            (np.array([None]), "item 0: cannot read a ndarray of object"),
            (np.array([1], ">i4"), "item 0: cannot read a ndarray of >i4: .*native"),
        ],
    )
    def test_arrays_without_a_dtype_of_ours(self, array, text):
        with pytest.raises(TypeError, match=text):
            data.DataLoader(array)

    def test_an_array_without_rows(self):
        with pytest.raises(ValueError, match="tensor 0 has no axis"):
            data.DataLoader(np.array(3.0))


class TestItems:
    def test_tuples_of_arrays_and_numbers(self):
        items = Squares(5, lambda i: (np.full(3, i, np.float32), i * i))
        loader = data.DataLoader(items, batch_size=2)
        assert len(loader) == 3
        batches = list(loader)
        assert isinstance(batches[0], tuple)
        assert [x.tolist() for x, _ in batches][2] == [[4.0, 4.0, 4.0]]
        assert [y.tolist() for _, y in batches] == [[0, 1], [4, 9], [16]]
        assert batches[0][0].dtype == tw.float32
        assert batches[0][1].dtype == tw.int64
        assert items.read == [0, 1, 2, 3, 4]

    def test_shuffled_and_without_the_last(self):
        def epochs():
            items = Squares(11, lambda i: i)
            loader = data.DataLoader(items, 4, shuffle=True, drop_last=True, seed=5)
            return [[batch.tolist() for batch in loader] for _ in range(2)]

        first, second = epochs()
        assert [len(batch) for batch in first] == [4, 4]
        rows = [row for batch in first for row in batch]
        assert len(set(rows)) == 8
        assert set(rows) < set(range(11))
        assert first != second
        assert epochs() == [first, second]

    @pytest.mark.parametrize(
        ("make", "check"),
        [
            (lambda i: i, lambda b: (b.dtype, b.tolist()) == (tw.int64, [0, 1, 2])),
            (lambda i: i / 2, lambda b: (b.dtype, b.tolist()) == (tw.float32, [0.0, 0.5, 1.0])),
            (lambda i: i > 0, lambda b: (b.dtype, b.tolist()) == (tw.bool, [False, True, True])),
            (np.float64, lambda b: b.dtype == tw.float64),
            (lambda i: tw.arange(2) + i, lambda b: b.tolist() == [[0, 1], [1, 2], [2, 3]]),
            (lambda i: f"text {i}", lambda b: b == ["text 0", "text 1", "text 2"]),
            (lambda i: {"x": i, "y": [i, str(i)]}, lambda b: b["y"][1] == ["0", "1", "2"]),
            (lambda i: {"x": i}, lambda b: b["x"].tolist() == [0, 1, 2]),
            (lambda i: [i, (i, i)], lambda b: type(b) is list and type(b[1]) is tuple),
            (lambda i: Point(i, 1), lambda b: type(b) is Point and b.label.tolist() == [1, 1, 1]),
        ],
    )
    def test_collate(self, make, check):
        (batch,) = data.DataLoader(Squares(3, make), 3)
        assert check(batch)

    def test_a_list_of_items(self):
        (batch,) = data.DataLoader([(1, 2.0), (3, 4.0)], 2)
        assert [part.tolist() for part in batch] == [[1, 3], [2.0, 4.0]]

    def test_data_sets_of_pytorch(self):
        torch = pytest.importorskip("torch")
        items = torch.utils.data.TensorDataset(torch.arange(6).reshape(3, 2), torch.arange(3))
        x, y = next(iter(data.DataLoader(items, 3)))
        assert (x.tolist(), y.tolist()) == ([[0, 1], [2, 3], [4, 5]], [0, 1, 2])

    def test_a_collate_of_ones_own(self):
        loader = data.DataLoader(Squares(4, lambda i: [i] * i), 2, collate=lambda items: items)
        assert list(loader) == [[[], [1]], [[2, 2], [3, 3, 3]]]
        pairs = data.DataLoader((tw.arange(2), tw.arange(2)), 2, collate=len)
        assert list(pairs) == [2]
        single = data.DataLoader(tw.arange(3), 3, collate=lambda items: [x.item() for x in items])
        assert list(single) == [[0, 1, 2]]

    @pytest.mark.parametrize(
        ("make", "error", "text"),
        [
            (
                lambda i: np.zeros(2 + (i == 3)),
                ValueError,
                r"item 3 has shape \(3,\), that of item 2 \(2,\); pad them, or give DataLoader a",
            ),
            (lambda i: {"x": (i, np.zeros(i))}, ValueError, r"item 1\['x'\]\[1\] has shape \(1,\)"),
            (
                lambda i: np.zeros(2, "f4" if i else "f8"),
                TypeError,
                "item 1 is float32, .* float64",
            ),
            (lambda i: None, TypeError, "item 0 is a NoneType; give DataLoader a collate"),
            (lambda i: None if i else 0, TypeError, "item 1 is a NoneType, that of item 0 a int"),
            (lambda i: (1,) * (i + 1), ValueError, "item 1 has 2 parts, that of item 0 1"),
            (lambda i: {i: 1}, ValueError, r"item 1 has keys \[1\], that of item 0 \[0\]"),
            (lambda i: np.array(["a"]), TypeError, "item 0: cannot read a ndarray of <U1"),
        ],
    )
    def test_items_that_make_no_batch(self, make, error, text):
        with pytest.raises(error, match=f"DataLoader: {text}"):
            list(data.DataLoader(Squares(6, make), 2))

    def test_an_error_of_the_data_set_says_which_item(self):
        loader = data.DataLoader(Squares(3, lambda i: 1 // (2 - i)), 1)
        with pytest.raises(ZeroDivisionError) as caught:
            list(loader)
        if sys.version_info >= (3, 11):
            assert caught.value.__notes__ == ["DataLoader: while reading item 2"]

    @pytest.mark.parametrize(
        ("make", "text"),
        [
            (lambda: data.DataLoader(iter([1])), "__getitem__ and __len__ .* got list_iterator"),
            (lambda: data.DataLoader({1, 2}), "got set"),
            (lambda: data.DataLoader("abc"), "got str"),
            (lambda: data.DataLoader([tw.arange(2), 3]), "item 1 is a int, not a tensor"),
            (lambda: data.DataLoader(tw.arange(2), collate=3), "collate is a function, got int"),
            (lambda: data.DataLoader(tw.arange(2), shuffle="no"), "shuffle is True or False"),
            (lambda: data.DataLoader(tw.arange(2), drop_last=1), "drop_last is True or False"),
        ],
    )
    def test_what_is_no_data_set(self, make, text):
        with pytest.raises(TypeError, match=text):
            make()


def test_importing_data_loads_no_third_party_package():
    program = (
        "import sys, tilewright as tw; tw.data, tw.nn, tw.optim, tw.save; "
        "loaded = {'numpy', 'rich', 'pooch', 'platformdirs', 'safetensors'} & set(sys.modules); "
        "sys.exit(str(loaded) if loaded else 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
