"""What users of loaders, samplers and data sets override or change afterwards is what runs."""

from __future__ import annotations

import collections
import copy
import itertools
import resource
from types import MappingProxyType

import numpy as np
import pytest

import tilewright as tw
from tilewright import data
from tilewright.data.collate import converted, pinned
from tilewright.data.sampler import BLOCK


class Items(data.Dataset):
    def __init__(self, count: int = 6) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> int:
        if i >= self.count:
            raise IndexError(i)
        return 100 + i


def listed(loader) -> list:
    return [batch.tolist() if isinstance(batch, tw.Tensor) else batch for batch in loader]


SAMPLERS = {
    "sequential": lambda kind: kind(range(6)),
    "random": lambda kind: kind(range(6), generator=tw.Generator(1)),
    "subset": lambda kind: kind([4, 2, 0], generator=tw.Generator(1)),
    "weighted": lambda kind: kind([1, 2, 3], 5, generator=tw.Generator(1)),
    "own": lambda kind: kind(),
}
KINDS = {
    "sequential": data.SequentialSampler,
    "random": data.RandomSampler,
    "subset": data.SubsetRandomSampler,
    "weighted": data.WeightedRandomSampler,
    "own": data.Sampler,
}


@pytest.mark.parametrize("name", KINDS)
def test_a_loader_gives_what_iterating_over_the_sampler_does(name: str) -> None:
    class Reversed(KINDS[name]):
        def __iter__(self):
            numbers = range(4) if name == "own" else super().__iter__()
            return iter(list(numbers)[::-1])

    class Ordered(KINDS[name]):
        def order(self):
            return tw.asarray([3, 1])

    class Named(Reversed):
        """An attribute that happens to have the name of a method of ours."""

        order = "ascending"

    for kind in (Reversed, Ordered, Named):
        want = [100 + i for i in SAMPLERS[name](kind)]
        loader = data.DataLoader(Items(), 2, sampler=SAMPLERS[name](kind))
        assert list(itertools.chain(*listed(loader))) == want
        of_tensor = data.DataLoader(tw.arange(100, 106), 2, sampler=SAMPLERS[name](kind))
        assert list(itertools.chain(*listed(of_tensor))) == want
        assert (want == [103, 101]) == (kind is Ordered)


def test_attributes_of_samplers_are_their_users() -> None:
    class Mine:
        def __init__(self) -> None:
            self.order, self.generator = [0], np.random.default_rng(0)

        def __iter__(self):
            return iter([2, 1])

    assert listed(data.DataLoader(Items(), 2, sampler=Mine())) == [[102, 101]]
    sampler = data.SequentialSampler(range(3))
    sampler.order = None
    assert list(sampler) == [0, 1, 2]
    assert listed(data.DataLoader(Items(3), 3, sampler=sampler)) == [[100, 101, 102]]


def test_overridden_ways_of_data_sets_are_taken() -> None:
    class Doubled(data.TensorDataset):
        def gather(self, rows):
            return tuple(2 * x for x in super().gather(rows))

    class Negative(data.TensorDataset):
        def __getitem__(self, i):
            return (-self.tensors[0][i],)

    asked: list = []

    class Several(Items):
        def __getitems__(self, rows):
            asked.append(rows)
            return [1000 + row for row in rows]

    for shuffle in (False, True):
        for kind, sign in ((Doubled, 2), (Negative, -1)):
            batches = data.DataLoader(kind(tw.arange(4)), 3, shuffle=shuffle, seed=0)
            assert sorted(x for (b,) in batches for x in b.tolist()) == sorted(
                sign * i for i in range(4)
            )
    assert listed(data.DataLoader(Several(5), 3)) == [[1000, 1001, 1002], [1003, 1004]]
    part = data.Subset(Several(5), [4, 1])
    assert listed(data.DataLoader(part, 2)) == [[1004, 1001]]
    assert asked == [[0, 1, 2], [3, 4], [4, 1]]
    assert not hasattr(data.Subset(Items(), [1]), "__getitems__")

    class Short(Items):
        def __getitems__(self, rows):
            return rows[1:]

    with pytest.raises(ValueError, match="__getitems__ gave 1 items for 2 rows"):
        list(data.DataLoader(Short(), 2))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_does_not_end_where_an_item_says_stop(workers: int) -> None:
    class Stops(Items):
        def __getitem__(self, i):
            return next(iter([])) if i == 3 else i

    def collate(items):
        return next(iter(()))

    with pytest.raises(RuntimeError, match="StopIteration"):
        list(data.DataLoader(Stops(), 2, num_workers=workers))
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(data.DataLoader(Items(), 2, num_workers=workers, collate_fn=collate))


class TestSettingsChangedAfterwards:
    """Each is followed by the next epoch, or refused."""

    def test_of_loaders(self) -> None:
        loader = data.DataLoader(Items(5), 2)
        changes = [
            ("batch_size", 3, [[100, 101, 102], [103, 104]]),
            ("drop_last", True, [[100, 101, 102]]),
            ("drop_last", False, [[100, 101, 102], [103, 104]]),
            ("dataset", Items(2), [[100, 101]]),
            ("dataset", tw.arange(4), [[0, 1, 2], [3]]),
            ("dataset", data.TensorDataset(tw.arange(2)), None),
            ("dataset", Items(4), [[100, 101, 102], [103]]),
            ("sampler", [3, 1], [[103, 101]]),
            ("sampler", None, [[100, 101, 102], [103]]),
            ("num_workers", 2, [[100, 101, 102], [103]]),
            ("collate_fn", sum, [303, 103]),
            ("batch_size", None, None),
            ("collate_fn", None, [100, 101, 102, 103]),
            ("batch_size", 4, [[100, 101, 102, 103]]),
        ]
        for name, value, want in changes:
            setattr(loader, name, value)
            if want is not None:
                assert listed(loader) == want, name
                assert len(loader) == len(want)
        assert loader.collate is loader.collate_fn is None
        loader.shuffle, loader.generator = True, tw.Generator(5)
        assert sorted(listed(loader)[0]) == [100, 101, 102, 103]
        loader.shuffle, loader.batch_size, loader.batch_sampler = False, 1, [[0], [2, 1]]
        assert listed(loader) == [[100], [102, 101]]

    def test_the_current_epoch_keeps_its_own(self) -> None:
        for source in (Items(6), tw.arange(100, 106)):
            for shuffled in (False, True):
                loader = data.DataLoader(source, 2, shuffle=shuffled, seed=3)
                want = listed(copy.deepcopy(loader))
                batches = iter(loader)
                got = [next(batches).tolist()]
                loader.batch_size, loader.dataset, loader.collate = 5, Items(1), sum
                assert got + listed(batches) == want

    @pytest.mark.parametrize(
        ("name", "value", "error"),
        [
            ("batch_size", 0, ValueError),
            ("batch_size", 2.5, TypeError),
            ("drop_last", 1, TypeError),
            ("shuffle", None, TypeError),
            ("num_workers", -1, ValueError),
            ("prefetch", "a", TypeError),
            ("collate_fn", 3, TypeError),
            ("dataset", 7, TypeError),
        ],
    )
    def test_wrong_ones_are_refused(self, name: str, value, error) -> None:
        loader = data.DataLoader(Items(2), 2)
        with pytest.raises(error, match="DataLoader: "):
            setattr(loader, name, value)
        assert listed(loader) == [[100, 101]]

    def test_what_does_not_go_together_is_refused_at_the_next_epoch(self) -> None:
        for changes, text in (
            ({"sampler": [1], "shuffle": True}, "sampler or shuffle"),
            ({"batch_sampler": [[1]]}, "a batch_sampler stands for batch_size"),
            ({"batch_size": None, "drop_last": True}, "leave drop_last out"),
        ):
            loader = data.DataLoader(Items(2), 2)
            for name, value in changes.items():
                setattr(loader, name, value)
            with pytest.raises(ValueError, match=text):
                list(loader)

    def test_of_samplers(self) -> None:
        rows = [0, 1, 2]
        sequential, shuffled = data.SequentialSampler(rows), data.RandomSampler(rows)
        batched = data.BatchSampler(sequential, 2)
        rows += [3, 4]
        assert (list(sequential), len(shuffled)) == ([0, 1, 2, 3, 4], 5)
        assert sorted(shuffled) == [0, 1, 2, 3, 4]
        shuffled.num_samples = 2
        assert len(list(shuffled)) == len(shuffled) == 2
        batched.batch_size, batched.drop_last = 3, True
        assert list(batched) == [[0, 1, 2]]
        batched.sampler = [7, 8, 9]
        assert list(batched) == [[7, 8, 9]]
        weighted = data.WeightedRandomSampler([1, 0], 3)
        weighted.weights, weighted.num_samples = [0.0, 1.0], 4
        assert list(weighted) == [1, 1, 1, 1]
        some = data.SubsetRandomSampler([1])
        some.indices = [5, 5]
        assert list(some) == [5, 5]
        for sampler, name, value, error in (
            (shuffled, "num_samples", 9, ValueError),
            (shuffled, "num_samples", -1, ValueError),
            (weighted, "weights", [-1.0], ValueError),
            (weighted, "weights", [0.0], ValueError),
            (weighted, "num_samples", "a", TypeError),
            (batched, "batch_size", 0, ValueError),
            (batched, "drop_last", 2, TypeError),
            (batched, "sampler", 3, TypeError),
        ):
            with pytest.raises(error):
                setattr(sampler, name, value)

    def test_of_data_sets(self) -> None:
        chosen = [0, 2]
        for source in (Items(), data.TensorDataset(tw.arange(100, 106))):
            part = data.Subset(source, chosen)
            loader = data.DataLoader(part, 4)

            def numbers(loader=loader):
                return [x for b in loader for x in (b[0] if isinstance(b, tuple) else b).tolist()]

            assert numbers() == [100, 102]
            part.indices.append(-1)
            assert numbers() == [100, 102, 105]
            part.indices = tw.asarray([3])
            assert numbers() == [103]
            with pytest.raises(IndexError):
                part.indices = [6]
            chosen = [0, 2]
        first, second = [1, 2], [3]
        both, beside = data.ConcatDataset([first, second]), data.StackDataset(first, [7, 8])
        first.append(9)
        assert list(both) == [1, 2, 9, 3]
        assert both.cumulative_sizes == [3, 4]
        with pytest.raises(ValueError, match="lengths differ: 3, 2"):
            len(beside)


def test_data_sets_without_a_length() -> None:
    class Endless:
        def __getitem__(self, i):
            return i * i

    assert listed(data.DataLoader(Endless(), 2, sampler=[3, 4, 5])) == [[9, 16], [25]]
    assert listed(data.DataLoader(Endless(), batch_sampler=[[2], [1, 3]])) == [[4], [1, 9]]
    assert "Endless" in repr(data.DataLoader(Endless(), sampler=[1]))
    with pytest.raises(TypeError, match="__getitem__ and __len__"):
        data.DataLoader(Endless(), 2)


class TestLongEpochs:
    """Of more item numbers than memory holds."""

    @staticmethod
    def within(gigabytes: float, make) -> list[int]:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        numbers = list(itertools.islice(make(), 5))
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < gigabytes * 2**20
        return numbers

    def test_begin_at_once(self) -> None:
        many = 10**11
        for make in (
            lambda: data.RandomSampler(range(9), replacement=True, num_samples=many),
            lambda: data.WeightedRandomSampler([0, 1, 1], many),
            lambda: data.SequentialSampler(range(many)),
        ):
            sampler = make()
            assert len(sampler) == many
            assert len(self.within(1, lambda sampler=sampler: iter(sampler))) == 5
            loader = data.DataLoader(range(99), 3, sampler=sampler)
            assert len(self.within(1, lambda loader=loader: iter(loader))) == 5
        loader = data.DataLoader(range(many), 4)
        assert next(iter(loader)).tolist() == [0, 1, 2, 3]

    def test_blocks_are_one_epoch(self) -> None:
        count = 2 * BLOCK + 10
        loader = data.DataLoader(range(count), 1000)
        assert tw.concat(list(_orders(loader))).tolist() == list(range(count))

        def sampler(seed):
            return data.RandomSampler(range(7), True, count, tw.Generator(seed))

        orders = [list(_orders(data.DataLoader(range(7), 1000, sampler=sampler(2))))]
        assert {len(part) for part in orders[0][:-1]} == {1000}
        whole = sampler(2).order()
        assert np.array_equal(tw.concat(orders[0]).numpy(), whole.numpy())
        counts = np.bincount(whole.numpy(), minlength=7) / count
        np.testing.assert_allclose(counts, 1 / 7, atol=2e-3)
        assert not np.array_equal(whole[:BLOCK].numpy(), whole[BLOCK : 2 * BLOCK].numpy())
        assert not np.array_equal(whole.numpy(), sampler(3).order().numpy())


def _orders(loader):
    return loader._orders(0)


def test_weights_have_the_digits_that_were_given() -> None:
    weights = [1.0, 1e-9]
    sampler = data.WeightedRandomSampler([0.1, 1 / 3], 1)
    assert sampler.weights.tolist() == [0.1, 1 / 3]
    for given in (weights, np.array(weights), tw.asarray(weights, dtype=tw.float64)):
        assert data.WeightedRandomSampler(given, 1).weights.tolist() == weights


class TestBatchesKeepTypes:
    def test_of_mappings(self) -> None:
        class Record(dict):
            pass

        class Table(collections.UserDict):
            note = "kept"

        ordered = data.default_collate([collections.OrderedDict(b=1, a=2)] * 2)
        assert type(ordered) is collections.OrderedDict
        assert list(ordered) == ["b", "a"]
        for kind in (Record, Table, dict, MappingProxyType):
            batch = data.default_collate([kind({"x": i, "y": {"z": tw.ones(2)}}) for i in range(3)])
            assert type(batch) is kind
            assert batch["x"].tolist() == [0, 1, 2]
            assert batch["y"]["z"].shape == (3, 2)
        filled = collections.defaultdict(list, x=1)
        assert data.default_collate([filled, filled]).default_factory is list
        assert dict(filled) == {"x": 1}

    def test_of_sequences(self) -> None:
        Pair = collections.namedtuple("Pair", "x y")

        class Own(list):
            pass

        class Strange(tuple):
            def __new__(cls, a, b):
                return super().__new__(cls, (a, b))

        for item in (Pair(1, 2), Own([1, 2]), collections.deque([1, 2]), (1, 2), [1, 2]):
            batch = data.default_collate([item, item])
            assert type(batch) is type(item)
            assert [x.tolist() for x in batch] == [[1, 1], [2, 2]]
        assert type(data.default_collate([Strange(1, 2)])) is tuple
        assert type(data.default_collate([range(2), range(2)])) is list
        assert type(converted(Own([np.ones(2)]))) is Own
        assert converted({"x": collections.deque([np.ones(2)])})["x"][0].shape == (2,)

    def test_a_batch_may_pin_itself(self) -> None:
        class Graph:
            def pin_memory(self):
                return "pinned"

        assert pinned([Graph(), {"g": Graph()}, 3]) == ["pinned", {"g": "pinned"}, 3]
