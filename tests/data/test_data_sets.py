"""Data sets, samplers, worker threads, and loaders that go on where they were."""

import subprocess
import sys
import threading
import time
from collections import Counter

import numpy as np
import pytest

import tilewright as tw
from tilewright import data


def listed(loader):
    return [batch.tolist() if isinstance(batch, tw.Tensor) else batch for batch in loader]


class Items(data.Dataset):
    """Numbers, some of which take their time or fail."""

    def __init__(self, length, wait=lambda i: 0.0, fail=()):
        self.length, self.wait, self.fail = length, wait, fail

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        time.sleep(self.wait(i))
        if i in self.fail:
            raise KeyError(f"no file {i}")
        return i * 10


class Stream(data.IterableDataset):
    def __init__(self, length, fail=None):
        self.length, self.fail, self.read = length, fail, 0

    def __iter__(self):
        for i in range(self.length):
            if i == self.fail:
                raise OSError(f"line {i}")
            self.read = i + 1
            yield i


def worker_threads():
    return [t.name for t in threading.enumerate() if t.name.startswith("tilewright-data")]


class TestDatasets:
    def test_base_classes_say_what_to_define(self):
        with pytest.raises(NotImplementedError, match=r"Dataset: define __getitem__\(\)"):
            data.Dataset()[0]
        with pytest.raises(NotImplementedError, match=r"Dataset: define __len__\(\)"):
            len(data.Dataset())
        with pytest.raises(NotImplementedError, match=r"IterableDataset: define __iter__\(\)"):
            iter(data.IterableDataset())

    def test_sums(self):
        both = Items(3) + data.Subset(Items(9), [8, -9])
        assert len(both) == 5
        assert list(both) == [0, 10, 20, 80, 0]
        assert both[-1] == 0
        assert both[-5] == 0
        for index in (5, -6):
            with pytest.raises(IndexError, match=f"index {index} is out of range for 5 items"):
                both[index]
        assert listed(data.DataLoader(both, 2)) == [[0, 10], [20, 80], [0]]

    def test_a_subset_of_tensors_gathers_batches(self):
        x = tw.arange(20).reshape((10, 2))
        part = data.Subset(data.TensorDataset(x, x[:, 0]), tw.asarray([7, 1, 4]))
        ((xs, ys),) = data.DataLoader(part, 5)
        assert xs.tolist() == [[14, 15], [2, 3], [8, 9]]
        assert ys.tolist() == [14, 2, 8]
        assert [t.tolist() for t in part[1]] == [[2, 3], 2]
        assert [t.tolist() for t in data.Subset(part, [2]).gather(tw.asarray([0]))] == [
            [[8, 9]],
            [8],
        ]
        assert not hasattr(data.Subset(Items(4), [1]), "gather")

    def test_a_gather_of_ones_own(self):
        class Doubles(Items):
            def gather(self, rows):
                return rows * 2

        assert listed(data.DataLoader(Doubles(5), 3)) == [[0, 2, 4], [6, 8]]
        own = data.DataLoader(Doubles(2), 3, collate_fn=lambda items: items)
        assert listed(own) == [[0, 10]]

    def test_items_of_a_subclass_count(self):
        class Noisy(data.TensorDataset):
            def __getitem__(self, i):
                (x,) = super().__getitem__(i)
                return x + 100

        items = Noisy(tw.arange(4))
        assert listed(data.DataLoader(items, 3)) == [[100, 101, 102], [103]]
        assert listed(data.DataLoader(data.Subset(items, [2]), 3)) == [[102]]

    @pytest.mark.parametrize(
        ("lengths", "sizes"),
        [([7, 3], [7, 3]), ([0.75, 0.25], [8, 2]), ([0.5, 0.3, 0.2], [5, 3, 2]), ([1.0], [10])],
    )
    def test_random_split(self, lengths, sizes):
        parts = data.random_split(Items(10), lengths, tw.Generator(3))
        assert [len(part) for part in parts] == sizes
        assert sorted(i for part in parts for i in part.indices) == list(range(10))
        again = data.random_split(Items(10), lengths, tw.Generator(3))
        assert [part.indices for part in again] == [part.indices for part in parts]

    @pytest.mark.parametrize(
        ("lengths", "text"),
        [
            ([3, 4], "lengths sum to 7, the data set has 10 items"),
            ([0.5, 0.4], "fractions sum to 0.9, not to 1"),
            ([-1, 11], "lengths must be at least 0, got -1"),
        ],
    )
    def test_lengths_that_do_not_fit(self, lengths, text):
        with pytest.raises(ValueError, match=text):
            data.random_split(Items(10), lengths)

    @pytest.mark.parametrize(
        ("make", "error", "text"),
        [
            (lambda: data.ConcatDataset([]), ValueError, "no data sets"),
            (lambda: data.ConcatDataset([3]), TypeError, "ConcatDataset: .* got int"),
            (lambda: data.Subset(Items(3), [3]), IndexError, "index 3 is out of range"),
            (lambda: data.Subset(Items(3), [0.5]), TypeError, "whole number, got float"),
            (lambda: data.random_split(Items(3), ["a"]), TypeError, "lengths are numbers"),
        ],
    )
    def test_errors(self, make, error, text):
        with pytest.raises(error, match=text):
            make()


class TestSamplers:
    def test_random_orders(self):
        sampler = data.RandomSampler(Items(50), generator=tw.Generator(1))
        first, second = list(sampler), list(sampler)
        assert sorted(first) == sorted(second) == list(range(50))
        assert first != second
        assert first == list(data.RandomSampler(Items(50), generator=tw.Generator(1)))

    def test_some_of_the_items_and_more_than_all(self):
        few = data.RandomSampler(Items(50), num_samples=7)
        assert len(few) == len(set(few)) == 7
        many = data.RandomSampler(Items(5), replacement=True, num_samples=200)
        assert len(many) == len(list(many)) == 200
        assert set(many) == set(range(5))
        with pytest.raises(ValueError, match="num_samples 6 is more than the 5 items there are"):
            data.RandomSampler(Items(5), num_samples=6)

    @pytest.mark.parametrize("replacement", [True, False])
    def test_weights(self, replacement):
        weights = [0.0, 1.0, 3.0, 0.0]
        sampler = data.WeightedRandomSampler(weights, 1, replacement, tw.Generator(0))
        counts = Counter(row for _ in range(2000) for row in sampler)
        assert set(counts) == {1, 2}
        # Three times as often: 1,500 of 2,000, give or take five standard deviations of 19.4.
        assert abs(counts[2] - 1500) < 97

    def test_weights_without_replacement_draw_an_item_once(self):
        sampler = data.WeightedRandomSampler(tw.asarray([1.0, 9.0, 0.0, 2.0]), 3, False)
        for _ in range(20):
            assert sorted(sampler) == [0, 1, 3]

    @pytest.mark.parametrize(
        ("make", "error", "text"),
        [
            (lambda s: s([1, -1], 1), ValueError, "finite numbers from 0"),
            (lambda s: s([1, float("nan")], 1), ValueError, "finite numbers from 0"),
            (lambda s: s([0, 0], 1), ValueError, "0 weights above 0 do not give 1"),
            (lambda s: s([1, 0], 2, False), ValueError, "1 weights above 0 do not give 2"),
            (lambda s: s([1], -1), ValueError, "num_samples must be at least 0"),
            (lambda s: s([1], 1, generator=3), TypeError, "generator is a int"),
            (lambda s: s([1], 1, 1), TypeError, "replacement is True or False"),
        ],
    )
    def test_weights_that_are_none(self, make, error, text):
        with pytest.raises(error, match=f"WeightedRandomSampler: .*{text}"):
            make(data.WeightedRandomSampler)

    def test_in_a_loader(self):
        x = tw.arange(6) * 10
        assert listed(data.DataLoader(x, 2, sampler=[5, 0, 0])) == [[50, 0], [0]]
        assert listed(data.DataLoader(x, 2, sampler=[5, 0, 0], drop_last=True)) == [[50, 0]]
        own = data.DataLoader(x, batch_sampler=[[1], [2, 3]])
        assert len(own) == 2
        assert listed(own) == [[10], [20, 30]]
        batches = data.BatchSampler(data.SequentialSampler(x), 4, drop_last=False)
        assert len(batches) == 2
        for source in (x, Items(6)):
            assert listed(data.DataLoader(source, batch_sampler=batches)) == [
                [0, 10, 20, 30],
                [40, 50],
            ]
        random = data.RandomSampler(x, generator=tw.Generator(2))
        shuffled = data.DataLoader(x, 3, shuffle=True, seed=2)
        assert listed(data.DataLoader(x, 3, sampler=random)) == listed(shuffled)

    def test_a_row_that_is_not_there(self):
        with pytest.raises(IndexError):
            list(data.DataLoader(tw.arange(3), sampler=[3]))

    @pytest.mark.parametrize(
        ("options", "error", "text"),
        [
            ({"sampler": [0], "shuffle": True}, ValueError, "give sampler or shuffle, not both"),
            ({"sampler": [0], "batch_sampler": [[0]]}, ValueError, "sampler or batch_sampler"),
            ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, "stands for batch_size"),
            ({"batch_sampler": [[0]], "drop_last": True}, ValueError, "stands for batch_size"),
            ({"sampler": 3}, TypeError, "sampler is a int, not iterable"),
            ({"num_workers": -1}, ValueError, "num_workers must be at least 0, got -1"),
            ({"collate": len, "collate_fn": len}, ValueError, "collate_fn or collate, not both"),
        ],
    )
    def test_options_that_do_not_go_together(self, options, error, text):
        with pytest.raises(error, match=f"DataLoader: .*{text}"):
            data.DataLoader(tw.arange(3), **options)

    def test_numbers_that_are_not_whole(self):
        with pytest.raises(TypeError, match="a sampler gives whole numbers"):
            list(data.DataLoader(tw.arange(3), batch_sampler=[[[0]]]))


class TestStreams:
    @pytest.mark.parametrize("workers", [0, 1, 3])
    def test_items_come_in_their_order(self, workers):
        loader = data.DataLoader(Stream(7), 3, num_workers=workers)
        assert listed(loader) == [[0, 1, 2], [3, 4, 5], [6]]
        assert listed(data.DataLoader(Stream(7), 3, drop_last=True, num_workers=workers)) == [
            [0, 1, 2],
            [3, 4, 5],
        ]
        assert worker_threads() == []

    @pytest.mark.parametrize("workers", [0, 2])
    def test_what_goes_wrong_comes_in_its_place(self, workers):
        batches = iter(data.DataLoader(Stream(9, fail=5), 2, num_workers=workers))
        assert [next(batches).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
        with pytest.raises(OSError, match="line 5"):
            next(batches)
        assert worker_threads() == []

    def test_a_stream_without_end_is_read_only_so_far(self):
        stream = Stream(10**9)
        for batch in data.DataLoader(stream, 4, num_workers=2, prefetch=3):
            assert batch.tolist() == [0, 1, 2, 3]
            break
        # The first batch, six ahead, and none after.
        assert stream.read <= 28
        assert worker_threads() == []

    def test_no_order_but_its_own(self):
        with pytest.raises(ValueError, match="a Stream gives its items in its own order"):
            data.DataLoader(Stream(3), shuffle=True)
        with pytest.raises(TypeError):
            len(data.DataLoader(Stream(3)))

    def test_streams_of_pytorch(self):
        torch = pytest.importorskip("torch")

        class Theirs(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter([1, 2, 3])

        assert listed(data.DataLoader(Theirs(), 2)) == [[1, 2], [3]]


class TestWorkers:
    @pytest.mark.parametrize("workers", [1, 4])
    def test_order_does_not_depend_on_who_is_fast(self, workers):
        slow = Items(24, wait=lambda i: 0.002 * (i % 3))
        loader = data.DataLoader(slow, 2, shuffle=True, seed=4, num_workers=workers)
        alone = data.DataLoader(Items(24), 2, shuffle=True, seed=4)
        for _ in range(2):
            assert listed(loader) == listed(alone)
        assert worker_threads() == []

    def test_they_work_at_the_same_time(self):
        meeting = threading.Barrier(3, timeout=20)

        class Meeting(Items):
            def __getitem__(self, i):
                meeting.wait()
                return i

        assert listed(data.DataLoader(Meeting(6), 1, num_workers=3)) == [[i] for i in range(6)]

    def test_an_error_is_told_with_the_item_at_its_batch(self):
        loader = data.DataLoader(Items(20, fail=(7, 11)), 2, num_workers=3)
        batches = iter(loader)
        assert [next(batches).tolist() for _ in range(3)] == [[0, 10], [20, 30], [40, 50]]
        with pytest.raises(KeyError, match="no file 7") as caught:
            next(batches)
        if hasattr(caught.value, "__notes__"):
            assert caught.value.__notes__ == ["DataLoader: while reading item 7"]
        assert worker_threads() == []
        assert list(batches) == []

    def test_leaving_early_leaves_no_thread(self):
        for batch in data.DataLoader(Items(1000), 2, num_workers=3):
            assert len(worker_threads()) == 3
            if batch[0].item() >= 100:
                break
        assert worker_threads() == []

    def test_a_loop_that_fails_leaves_no_thread(self):
        def loop():
            for _ in data.DataLoader(Items(1000), 2, num_workers=3):
                raise RuntimeError("mine")

        with pytest.raises(RuntimeError, match="mine"):
            loop()
        assert worker_threads() == []

    def test_a_program_ends_while_they_work(self):
        program = """if True:
            import time, tilewright as tw
            class Slow(tw.data.Dataset):
                def __len__(self): return 1000
                def __getitem__(self, i): time.sleep(0.001); return tw.ones((50, 50))
            batches = iter(tw.data.DataLoader(Slow(), 4, num_workers=3))
            print(next(batches).shape)
        """
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
        )
        assert (done.stdout, done.stderr) == ("(4, 50, 50)\n", "")

    def test_random_numbers_of_items(self):
        class Noise(Items):
            def __getitem__(self, i):
                return tw.rand((2,), generator=data.item_generator())

        def epochs(workers):
            loader = data.DataLoader(
                Noise(9), 2, shuffle=True, generator=tw.Generator(8), num_workers=workers
            )
            return [listed(loader) for _ in range(2)]

        assert epochs(0) == epochs(3)
        first, second = epochs(0)
        rows = {tuple(row) for epoch in (first, second) for batch in epoch for row in batch}
        assert len(rows) == 18
        with pytest.raises(RuntimeError, match="no item is being read"):
            data.item_generator()


LOADERS = {
    "shuffled tensors": lambda: data.DataLoader(tw.arange(23), 4, shuffle=True, seed=1),
    "tensors in order": lambda: data.DataLoader(tw.arange(23), 4),
    "items": lambda: data.DataLoader(Items(23), 4, shuffle=True, seed=1),
    "workers": lambda: data.DataLoader(Items(23), 4, shuffle=True, seed=1, num_workers=2),
    "stream": lambda: data.DataLoader(Stream(23), 4),
    "default generator": lambda: data.DataLoader(tw.arange(23), 4, shuffle=True),
    "sampler": lambda: data.DataLoader(
        tw.arange(23), 4, sampler=data.RandomSampler(range(23), True, 15, tw.Generator(3))
    ),
    "batch sampler": lambda: data.DataLoader(
        Items(23),
        batch_sampler=data.BatchSampler(
            data.RandomSampler(range(23), generator=tw.Generator(3)), 4
        ),
    ),
}


class TestPosition:
    @pytest.mark.parametrize("stop", [0, 1, 3, 6])
    @pytest.mark.parametrize("name", LOADERS)
    def test_a_loader_goes_on_with_the_next_batch(self, name, stop):
        loader = LOADERS[name]()
        assert len(listed(loader)) >= 4  # an epoch before
        seen, state = [], loader.state_dict()
        for batch in loader:
            if len(seen) == stop:
                break
            seen.append(batch.tolist())
            state = loader.state_dict()
        expected = listed_after(LOADERS[name](), len(seen))
        other = LOADERS[name]()
        tw.manual_seed(12345)
        other.load_state_dict(state)
        assert [listed(other), listed(other)] == expected

    def test_what_is_no_state(self):
        loader = data.DataLoader(tw.arange(3), seed=1)
        for state in ({}, {"batch": -1, "began": [0, 0], "now": [0, 0]}, {"batch": 0, "began": 3}):
            with pytest.raises(ValueError, match="not the state of a loader"):
                loader.load_state_dict(state)


def listed_after(loader, count):
    """The rest of a second epoch, and the third, of one that was never interrupted."""
    tw.manual_seed(20240229)
    listed(loader)
    return [listed(loader)[count:], listed(loader)]


@pytest.fixture(autouse=True)
def _seeded():
    tw.manual_seed(20240229)


def test_numpy_indices():
    part = data.Subset(Items(5), np.asarray([1, 4]))
    assert list(part) == [10, 40]


# ---- what PyTorch's programs ask of a loader ----


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_without_batches_gives_items(workers):
    items = [{"x": np.full(2, i), "label": i} for i in range(5)]
    found = list(data.DataLoader(items, batch_size=None, num_workers=workers))
    assert [item["label"] for item in found] == [0, 1, 2, 3, 4]
    assert all(isinstance(item["x"], tw.Tensor) for item in found)
    loader = data.DataLoader(items, batch_size=None, shuffle=True, seed=3, num_workers=workers)
    assert len(loader) == 5
    assert sorted(item["label"] for item in loader) == [0, 1, 2, 3, 4]
    called = data.DataLoader(items, batch_size=None, collate_fn=lambda item: item["label"])
    assert list(called) == [0, 1, 2, 3, 4]
    rows = list(data.DataLoader(tw.arange(6).reshape(3, 2), batch_size=None, num_workers=workers))
    assert [row.tolist() for row in rows] == [[0, 1], [2, 3], [4, 5]]
    pairs = data.TensorDataset(tw.arange(3), tw.arange(3) * 2)
    assert [[a.item(), b.item()] for a, b in data.DataLoader(pairs, None)] == [
        [0, 0],
        [1, 2],
        [2, 4],
    ]
    with pytest.raises(ValueError, match="leave drop_last out"):
        data.DataLoader(items, batch_size=None, drop_last=True)


class Numbers(data.IterableDataset):
    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_iterable_sets_in_a_row_and_without_batches(workers):
    both = Numbers(3) + Numbers(2)
    assert list(data.DataLoader(both, None, num_workers=workers)) == [0, 1, 2, 0, 1]
    batches = data.DataLoader(both, batch_size=2, num_workers=workers)
    assert [batch.tolist() for batch in batches] == [[0, 1], [2, 0], [1]]


def test_sets_side_by_side():
    pairs = data.StackDataset(range(4), "abcd")
    batches = [(numbers.tolist(), texts) for numbers, texts in data.DataLoader(pairs, 3)]
    assert batches == [([0, 1, 2], ["a", "b", "c"]), ([3], ["d"])]
    assert data.StackDataset(n=range(4))[-1] == {"n": 3}
    with pytest.raises(ValueError, match="lengths differ: 2, 3"):
        data.StackDataset("ab", "abc")
    with pytest.raises(ValueError, match="give data sets"):
        data.StackDataset()


def test_workers_begin_with_a_function():
    begun = []
    list(data.DataLoader(list("abcdefgh"), num_workers=3, worker_init_fn=begun.append))
    assert sorted(begun) == [0, 1, 2]

    def fails(worker: int) -> None:
        raise OSError(f"no file for worker {worker}")

    with pytest.raises(OSError, match="no file for worker"):
        list(data.DataLoader(list("ab"), num_workers=2, worker_init_fn=fails))
    assert data.get_worker_info() is None
