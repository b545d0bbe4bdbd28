"""Graphs end when nothing needs them: depth, memory, early release, no cycles."""

import gc
import weakref

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn


def leaf(values):
    return tw.asarray(values, copy=True).requires_grad_()


def live_bytes():
    gc.collect()
    return tw.memory.stats()["live_bytes"]


class TestLifetime:
    def test_a_very_deep_graph(self):
        x = leaf([1.0])
        y = x
        for _ in range(100_000):
            y = y + 1.0
        y.sum().backward()
        assert x.grad.tolist() == [1.0]
        for _ in range(100_000):
            y = y * 1.0
        before = live_bytes()
        del y
        assert live_bytes() < before

    def test_a_very_deep_graph_of_gradients(self):
        x = leaf([1.0])
        y = x
        for _ in range(20_000):
            y = y * 1.0
        (g,) = tw.grad(y.sum(), x, create_graph=True)
        del y
        (g * x).sum().backward()
        assert x.grad.tolist() == [1.0]

    def test_steps_leave_nothing_behind(self):
        w = tw.randn(32, 32, requires_grad=True)
        x = tw.randn(8, 32)

        def step():
            w.grad = None
            y = x @ w
            y += 1.0
            y[0] = 0.0
            y.register_hook(lambda g: g * 1.0)
            tw.log_softmax(tw.relu(y))[:, 0].sum().backward()
            with tw.no_grad():
                w.add_(w.grad * -0.01)

        step()
        before = live_bytes()
        for _ in range(50):
            step()
        assert live_bytes() == before

    def test_second_gradients_leave_nothing_behind(self):
        x = tw.randn(16, requires_grad=True)

        def step():
            (g,) = tw.grad(tw.exp(x).sum(), x, create_graph=True)
            tw.grad((g * g).sum(), x)

        step()
        before = live_bytes()
        for _ in range(20):
            step()
        assert live_bytes() == before

    @pytest.mark.parametrize("change", ["in place", "assignment", "saved result", "retained"])
    def test_graphs_that_are_never_walked_leave_nothing_behind(self, change):
        def build():
            x = tw.randn(64, requires_grad=True)
            y = tw.exp(x)
            if change == "in place":
                y += y
                y *= y
            elif change == "assignment":
                y[:2] = y[2:4]
                y[0] = x[1]
            elif change == "retained":
                y.retain_grad()
                (y * y).sum().backward()
            else:
                y = tw.softmax(y)

        build()
        before = live_bytes()
        for _ in range(20):
            build()
        assert live_bytes() == before

    def test_saved_values_go_during_the_walk(self):
        """At the last node of the walk, the first one's saved megabytes are gone."""
        x = leaf(np.zeros(1 << 18, np.float32))
        seen = []
        x.register_hook(lambda g: seen.append(tw.memory.stats()["live_bytes"]))
        y = x
        for _ in range(16):
            y = tw.exp(y) * 0.5
        y = y.sum()
        before = live_bytes()
        y.backward()
        assert seen[0] < before - 8 * x.nbytes

    def test_results_may_go_before_backward(self):
        x = leaf([1.0])
        y = x * 2.0
        gone = weakref.ref(y)
        z = y + 1.0
        del y
        assert gone() is None
        z.sum().backward()
        assert x.grad.tolist() == [2.0]

    def test_hooks_are_dropped_with_the_graph(self):
        class Hook:
            def __call__(self, g):
                return None

        hook = Hook()
        gone = weakref.ref(hook)
        x = leaf([1.0])
        y = x * 2.0
        y.register_hook(hook)
        y.sum().backward()
        del hook, y
        gc.collect()
        assert gone() is None


class Named(nn.Parameter):
    """A leaf with an attribute of its own."""

    label = ""


class TestLeavesThatTheGraphHolds:
    @pytest.mark.parametrize(
        "make", [lambda: tw.ones(3, requires_grad=True), lambda: Named(tw.ones(1))]
    )
    def test_their_objects_live_as_long_as_the_graph(self, make):
        x = make()
        if isinstance(x, Named):
            x.label = "mine"
        alive, y = weakref.ref(x), None
        y = x * 2.0
        del x
        gc.collect()
        x = alive()
        assert x is not None
        assert x.requires_grad
        assert getattr(x, "label", "mine") == "mine"
        y.sum().backward()
        assert x.grad is not None
        del y
        gc.collect()
        assert alive() is x
        assert (x * 2.0).tolist() is not None
        del x
        gc.collect()
        assert alive() is None

    @pytest.mark.parametrize(
        "make", [lambda: tw.ones(3, requires_grad=True), lambda: Named(tw.ones(1))]
    )
    def test_their_objects_go_with_the_graph(self, make):
        x = make()
        alive = weakref.ref(x)
        y = x * 2.0
        before = live_bytes()
        del x
        y.sum().backward()
        assert alive() is not None
        del y
        assert alive() is None
        assert live_bytes() < before

    def test_a_hook_gets_the_object(self):
        x = Named(tw.ones(1))
        x.label = "mine"
        seen = []
        x.register_post_accumulate_grad_hook(lambda x: seen.append((type(x), x.label)))
        y = x * 2.0
        del x
        y.sum().backward()
        assert seen == [(Named, "mine")]

    def test_other_memory_for_a_leaf_that_came_back(self):
        x = tw.ones(2, requires_grad=True)
        alive = weakref.ref(x)
        y = x * 2.0
        del x
        alive().data = tw.zeros(2)
        y.sum().backward()
        assert alive().grad.tolist() == [2.0, 2.0]
        del y
        gc.collect()
        assert alive() is None

    def test_a_recorded_grad_does_not_keep_its_leaf(self):
        for make in (lambda: tw.ones(3, requires_grad=True), lambda: Named(tw.ones(1))):
            x = make()
            alive = weakref.ref(x)
            (x**3).sum().backward(create_graph=True)
            assert x.grad.requires_grad
            del x
            gc.collect()
            assert alive() is None

    def test_many_come_and_go(self):
        def step():
            leaves = [tw.ones(4, requires_grad=True) for _ in range(20)]
            y = sum(x.sum() for x in leaves)
            kept = [weakref.ref(x) for x in leaves[:3]]
            del leaves
            y.backward()
            again = [r() for r in kept]
            del y
            return sum(x.sum() for x in again)

        step()
        before = live_bytes()
        for _ in range(20):
            step()
        assert live_bytes() == before


class TestRecordedGrads:
    """Of leaves whose graphs lead to functions of Python, which lead back."""

    @staticmethod
    def hooked_layer():
        layer = nn.Linear(64, 64)
        layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
        return layer

    def test_modules_with_hooks_go(self):
        def step(way):
            layer = self.hooked_layer()
            y = layer(tw.ones((2, 64), requires_grad=True)).tanh().sum()
            if way == "backward":
                y.backward(create_graph=True)
            elif way == "backward of several":
                tw.autograd.backward([y, y * 2.0], create_graph=True)
            elif way == "inputs":
                y.backward(create_graph=True, inputs=list(layer.parameters()))
            else:
                (layer.weight.grad,) = tw.grad(y, layer.weight, create_graph=True)
            return weakref.ref(layer)

        for way in ("backward", "backward of several", "inputs", "assigned"):
            step(way)
            before = live_bytes()
            layers = [step(way) for _ in range(5)]
            assert live_bytes() == before
            assert [layer() for layer in layers] == [None] * 5

    def test_views_of_tensors_that_are_gone_hide_no_cycle(self):
        def step():
            x = tw.ones(64, requires_grad=True)
            y = (x * 2.0)[1:]
            y.register_hook(lambda g: print(y.shape) if g is None else None)
            return weakref.ref(y)

        step()
        before = live_bytes()
        views = [step() for _ in range(5)]
        assert live_bytes() == before
        assert [view() for view in views] == [None] * 5
