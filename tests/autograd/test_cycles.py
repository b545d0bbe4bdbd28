"""Cycles through hooks, checkpoints and recorded gradients end: Python's collector sees them."""

import functools
import gc
import threading
import weakref

import pytest

import tilewright as tw


class Marker:
    """Something that a closure holds besides tensors; its end is observed."""


def keep(*_):
    """What hooks and closures hold by naming it."""


def leaf(size=256):
    return tw.ones((size,), requires_grad=True)


def live_bytes():
    gc.collect()
    return tw.memory.stats()["live_bytes"]


def on_leaf(marker):
    x = leaf()
    x.register_hook(lambda g: keep(x, marker))


def on_leaf_after_backward(marker):
    x = leaf()
    x.register_hook(lambda g: keep(x, marker))
    (x * x).sum().backward()


def on_leaf_and_result(marker):
    x = leaf()
    y = tw.exp(x * x).sum()
    x.register_hook(lambda g: keep(x, y, marker))


def on_result(marker):
    y = leaf() * 2.0
    y.register_hook(lambda g: keep(y, marker))


def on_result_with_what_follows(marker):
    y = leaf() * 2.0
    z = (y * y).sum()
    y.register_hook(lambda g: keep(z, marker))


def on_result_with_all(marker):
    x = leaf()
    y = x * 2.0
    y.register_hook(lambda g: keep(x, y, kept, marker))
    kept = [tw.exp(y), (y * y).sum(), y + y]


def on_view(marker):
    x = leaf()
    y = x[3:]
    y.register_hook(lambda g: keep(x, y, marker))


def on_changed_in_place(marker):
    y = leaf() * 2.0
    y += 1.0
    y.register_hook(lambda g: keep(y, marker))
    y *= 2.0


def forward(marker):
    x = leaf()
    x.register_forward_hook(lambda v: keep(x, marker))
    x + 1.0


def on_gradient(marker):
    x = leaf()
    (x * x).sum().backward()
    x.grad.register_forward_hook(lambda v: keep(x, marker))


def by_a_method(marker):
    class Watcher:
        def __init__(self, x):
            self.x, self.marker = x, marker
            self.handle = x.register_hook(self.see)

        def see(self, g):
            pass

    Watcher(leaf())


def by_partial(marker):
    x = leaf()
    x.register_hook(functools.partial(lambda *_: None, x, marker))


def in_a_module(marker):
    class Net(tw.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = tw.nn.Linear(8, 8), tw.nn.Linear(8, 8)
            self.first.weight.register_hook(self.see)
            self.marker = marker

        def see(self, g):
            self.grad = g

        def __call__(self, x):
            self.hidden = tw.relu(self.first(x))
            self.hidden.register_hook(self.see)
            self.loss = (self.second(self.hidden) ** 2).sum()
            return self.loss

    Net()(tw.ones((4, 8))).backward()
    Net()(tw.ones((4, 8))).backward(retain_graph=True)
    Net()(tw.ones((4, 8)))


def by_checkpoint(marker):
    x = leaf()
    held = [x, marker]

    def function(v):
        return tw.exp(v * held[0]).sum()

    held.append(tw.checkpoint(function, x))


def by_checkpoint_in_a_module(marker):
    class Block(tw.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.marker = tw.nn.Linear(8, 8), marker

        def compute(self, x):
            return tw.softmax(tw.log_softmax(self.linear(x) @ self.linear.weight) - 1.0)

        def __call__(self, x):
            self.out = tw.checkpoint(self.compute, x)
            return self.out

    Block()(tw.ones((4, 8))).sum()


def recorded_gradient(marker):
    x = leaf()
    x.register_hook(lambda g: keep(x, marker))
    (x * x * x).sum().backward(create_graph=True)


def of_a_subclass(marker):
    x = tw.nn.Parameter(tw.ones((4,)))
    x.me, x.marker = x, marker
    x.register_hook(x.me.sum)


CYCLES = [
    on_leaf, on_leaf_after_backward, on_leaf_and_result, on_result, on_result_with_what_follows,
    on_result_with_all, on_view, on_changed_in_place, forward, on_gradient, by_a_method, by_partial,
    in_a_module, by_checkpoint, by_checkpoint_in_a_module, recorded_gradient, of_a_subclass,
]  # fmt: skip


class TestCyclesThroughFunctions:
    @pytest.mark.parametrize("make", CYCLES)
    def test_are_collected(self, make):
        make(Marker())
        before = live_bytes()
        marker = Marker()
        gone = weakref.ref(marker)
        for _ in range(3):
            make(marker)
        del marker
        gc.collect()
        assert gone() is None
        assert live_bytes() == before

    def test_of_tensors_that_are_reachable_stay(self):
        seen = []

        def build(kind):
            x = leaf(2)
            y = x * 2.0
            (x if kind == "leaf" else y).register_hook(lambda g: seen.append((x, y, kind)))
            return y.sum()

        for kind in ("leaf", "result"):
            z = build(kind)
            gc.collect()
            z.backward()
            assert [entry[2] for entry in seen] == [kind]
            assert seen[0][0].grad.tolist() == [2.0, 2.0]
            seen.clear()

    def test_stay_while_another_tensor_leads_to_them(self):
        """The leaf's object is garbage by itself, its hook is not: a graph will call it."""
        x, seen = tw.nn.Parameter(tw.ones((2,))), []
        x.me = x  # a cycle that only the collector ends
        x.register_hook(lambda g: seen.append(g.tolist()))
        y = (x * 3.0).sum()
        del x
        gc.collect()
        y.backward()
        assert seen == [[3.0, 3.0]]

    def test_with_two_owners_end_with_the_last(self):
        def build(marker):
            x = leaf()
            y = x * 2.0
            y.register_hook(lambda g: keep(x, y, marker))
            return y * 1.0, y * 2.0

        marker = Marker()
        gone = weakref.ref(marker)
        a, b = build(marker)
        del marker
        del a
        gc.collect()
        assert gone() is not None
        b.sum().backward(retain_graph=True)
        del b
        gc.collect()
        assert gone() is None

    def test_collected_within_a_hook(self):
        x = leaf()
        seen = []

        @tw.enable_grad()
        def hook(g):
            on_result_with_all(Marker())
            gc.collect()
            seen.append(g.tolist()[0])

        y = x * 2.0
        y.register_hook(hook)
        (y * y).sum().backward()
        assert seen == [4.0]
        assert x.grad.tolist()[0] == 8.0

    def test_of_a_graph_that_is_walked_stay(self):
        """Nobody but the running pass holds the graph when the collector looks."""
        seen = []

        def build():
            x = leaf(2)
            y = x * 2.0
            x.register_hook(lambda g: seen.append((g.tolist(), x, y)) and None)
            y.register_hook(lambda g: keep(gc.collect(), x, y))
            return (y * y).sum()

        build().backward()
        assert seen[0][0] == [8.0, 8.0]

    def test_many_collections_while_threads_compute(self):
        stop, errors = threading.Event(), []

        def work():
            try:
                while not stop.is_set():
                    for make in CYCLES:
                        make(Marker())
                    x = leaf(100_000)
                    x.register_hook(lambda g: g * 2.0)
                    tw.exp(x * 0.0).sum().backward()
                    assert x.grad[7].item() == 0.0
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(30):
            gc.collect()
        stop.set()
        for thread in threads:
            thread.join()
        assert errors == []

    def test_finalizers_may_bring_them_back(self):
        back = []

        class Phoenix:
            def __init__(self, x):
                self.x = x

            def __del__(self):
                back.append(self.x)

        def build():
            x = leaf(2)
            phoenix = Phoenix(x)
            x.register_hook(lambda g: phoenix and g * 5.0)

        build()
        gc.collect()
        (back[0] * 2.0).sum().backward()
        assert back[0].grad.tolist() == [10.0, 10.0]


class TestPools:
    def test_with_calls_that_hold_them_are_collected(self):
        marker = Marker()
        gone = weakref.ref(marker)
        pool = tw.memory.Pool(quota_bytes=1 << 16, spill_dir=False)
        pool.on_pressure(0.5, lambda live, held=marker, itself=pool: None)
        with pool:
            x = tw.ones((10_000,))
        del marker, pool
        gc.collect()
        assert gone() is None
        assert x[7].item() == 1.0


class TestRecordedGradients:
    @pytest.mark.parametrize("kind", ["leaf", "retained", "unnamed leaf", "two leaves"])
    def test_end_with_their_tensor(self, kind):
        def build():
            x, other = leaf(), leaf()
            if kind == "unnamed leaf":
                (leaf() ** 3).sum().backward(create_graph=True)
            elif kind == "retained":
                y = x * 1.0
                y.retain_grad()
                (y * y * y).sum().backward(create_graph=True)
            else:
                (x * x * (other if kind == "two leaves" else x)).sum().backward(create_graph=True)

        build()
        before = live_bytes()
        for _ in range(5):
            build()
        assert live_bytes() == before

    def test_are_there_as_long_as_anyone_can_ask(self):
        x = leaf(2)
        (x * x * x).sum().backward(create_graph=True)
        g = x.grad
        (g * g).sum().backward()
        # 3 x^2, and the second pass's 2 * 3 x^2 * 6 x
        assert x.grad.tolist() == [39.0, 39.0]
        del x
        gc.collect()
        assert g.sum().item() == 6.0


class TestHandles:
    def test_do_not_keep_the_tensor(self):
        x = leaf()
        handle = x.register_hook(lambda g: None)
        gone = weakref.ref(x)
        before = live_bytes()
        del x
        assert gone() is None
        assert live_bytes() < before
        handle.remove()

    def test_remove_through_an_in_place_change(self):
        y = leaf(2) * 2.0
        seen = []
        handle = y.register_forward_hook(lambda v: seen.append(1))
        y += 1.0
        y + 1.0
        handle.remove()
        y + 1.0
        assert seen == [1]

    def test_a_removed_hook_is_free_at_once(self):
        marker = Marker()
        gone = weakref.ref(marker)
        x = leaf()
        handle = x.register_hook(lambda g, kept=marker: None)
        del marker
        handle.remove()
        assert gone() is None


class TestPlainTensors:
    def test_are_unknown_to_the_collector(self):
        x = tw.ones((2,))
        assert not gc.is_tracked(x)
        assert not gc.is_tracked(x + x)
        assert not gc.is_tracked(tw.Tensor(x))

    def test_are_watched_from_their_first_hook_on(self):
        y = leaf(2) * 2.0
        y.register_hook(lambda g: None)
        assert gc.is_tracked(y)
