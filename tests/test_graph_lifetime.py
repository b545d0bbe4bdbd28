"""Graphs end when nothing needs them: depth, memory, early release, no cycles."""

import gc
import weakref

import numpy as np
import pytest

import tilewright as tw


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
