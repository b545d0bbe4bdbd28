"""Planned backward passes: the same gradients, from one arena, without the pool's help."""

import gc
import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from cases import RECORDS

import tilewright as tw


def moved(run):
    """How far the pool's figures move while `run` runs."""
    before = tw.memory.stats()
    run()
    after = tw.memory.stats()
    return {name: after[name] - before[name] for name in after}


def backward_of(build, leaves, times=1, **options):
    """Gradients after `times` passes over one graph, and how far the figures moved in the last."""
    for x in leaves:
        x.grad = None
    loss = build()
    for _ in range(times - 1):
        loss.backward(retain_graph=True, **options)
    figures = moved(lambda: loss.backward(**options))
    return [x.grad.numpy().copy() for x in leaves], figures


def check(build, leaves, times=1):
    """A planned pass is the unplanned one bit for bit, and allocates what its plan says."""
    expected, _ = backward_of(build, leaves, times)
    got, figures = backward_of(build, leaves, times, plan=True)
    plan = tw.memory.last_plan()
    for a, b in zip(expected, got, strict=True):
        np.testing.assert_array_equal(a, b)
    assert plan["fallbacks"] == 0
    assert figures["allocations"] == plan["survivors"] + (plan["arena_bytes"] > 0)
    assert plan["lower_bound_bytes"] <= plan["arena_bytes"] <= plan["sum_bytes"]
    return plan


def parameters(*shapes):
    return [tw.randn(*shape).requires_grad_() for shape in shapes]


def mlp(depth=4, width=32, batch=16):
    layers = []
    for _ in range(depth):
        layers += [tw.nn.Linear(width, width), tw.nn.ReLU()]
    model = tw.nn.Sequential(*layers, tw.nn.Linear(width, 10))
    x, t = tw.randn(batch, width), tw.randint(0, 10, (batch,))
    return (lambda: tw.cross_entropy(model(x), t)), list(model.parameters())


class TestNetworks:
    def test_mlp(self):
        build, leaves = mlp()
        plan = check(build, leaves)
        assert plan["survivors"] == len(leaves)
        assert plan["arena_bytes"] < plan["sum_bytes"]

    def test_large_layers_on_all_threads(self):
        build, leaves = mlp(depth=3, width=300, batch=200)
        plan = check(build, leaves)
        assert plan["arena_bytes"] == plan["lower_bound_bytes"]

    def test_views_reductions_softmax_and_joins(self):
        a, b, c = parameters((6, 8), (8, 6), (6,))

        def build():
            h = a @ b + c
            left, right = h[:, :3], h[:, 3:]
            joined = tw.concat([tw.softmax(left, axis=1), right * left.mean(axis=1, keepdims=True)])
            picked = joined[[0, 2, 2], 1:] * joined.max(axis=0)[1:] + joined.T.reshape(-1)[:2]
            return tw.log_softmax(picked, axis=-1).std() + tw.logsumexp(h) + h.reshape(4, 9).prod()

        check(build, [a, b, c])

    def test_leaf_used_many_times(self):
        (w,) = parameters((8, 8))

        def build():
            h = w
            for _ in range(6):
                h = tw.tanh(h @ w) + w
            return (h * h).sum()

        check(build, [w])

    @pytest.mark.parametrize("held", [False, True])
    def test_accumulation(self, held):
        build, leaves = mlp()
        expected, _ = backward_of(build, leaves, times=3)
        for x in leaves:
            x.grad = None
        kept = []
        for _ in range(3):
            build().backward(plan=True)
            assert tw.memory.last_plan()["fallbacks"] == 0
            if held:
                kept.append([(x.grad, x.grad.numpy().copy()) for x in leaves])
        for x, g in zip(leaves, expected, strict=True):
            np.testing.assert_array_equal(x.grad.numpy(), g)
        for tensor, values in itertools.chain(*kept):
            if not any(tensor is x.grad for x in leaves):
                np.testing.assert_array_equal(tensor.numpy(), values)

    def test_retained_graph(self):
        build, leaves = mlp()
        check(build, leaves, times=3)

    def test_retained_gradients_of_results(self):
        (x,) = parameters((5, 5))
        seen = []

        def build():
            y = tw.exp(x)
            y.retain_grad()
            seen.append(y)
            return (y * y).sum()

        check(build, [x])
        np.testing.assert_array_equal(seen[0].grad.numpy(), seen[1].grad.numpy())

    def test_index_assignment_with_masks_and_arrays(self):
        x, v = parameters((6, 5), (2, 5))
        mask = tw.randn(6, 5) > 0.0

        def build():
            y = x * 2.0
            y[[4, 1]] = v
            y[mask] = 0.0
            y[1:3, ::2] = v[:, ::2] * 3.0
            return (y * y).sum() + y[mask].sum() + y[[[0], [5]], [1, 3]].sum()

        check(build, [x, v])

    def test_mixed_types(self):
        (x,) = parameters((9, 4))
        w = tw.randn(4, 3).astype(tw.float64).requires_grad_()
        check(lambda: ((x.astype(tw.float16) * 2.0).astype(tw.float32) @ w).sum() * 2.0, [x, w])

    def test_gradients_of_chosen_inputs(self):
        build, leaves = mlp()
        expected = tw.grad(build(), leaves[:3])
        got = tw.grad(build(), leaves[:3], plan=True)
        assert tw.memory.last_plan()["fallbacks"] == 0
        assert all(x.grad is None for x in leaves)
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())

    def test_a_long_chain(self):
        (x,) = parameters((4,))

        def build():
            y = x
            for _ in range(5000):
                y = y * 1.0001
            return y.sum()

        plan = check(build, [x])
        assert plan["arena_bytes"] <= 4 * 64


@pytest.mark.parametrize(
    "record", [r for r in RECORDS if r.differentiable], ids=lambda record: record.name
)
def test_every_op(record, rng):
    """Bit for bit, for every record with a gradient."""
    for options in record.variants:
        for arrays in record.smooth(rng):
            args = [tw.asarray(a, copy=True) if isinstance(a, np.ndarray) else a for a in arrays]
            leaves = [args[i].requires_grad_() for i in record.differentiable]

            def build(args=args, options=options):
                y = record.call(*args, **options)
                return (y * y).sum()

            check(build, leaves)


class TestHooks:
    def run(self, hook, plan):
        (w,) = parameters((6, 6))
        y = tw.exp(w * 0.1)
        z = tw.tanh(y @ y)
        y.register_hook(hook)
        z.register_hook(hook)
        loss = (z * z).sum()
        tw.manual_seed(3)
        loss.backward(plan=plan)
        return w

    def gradients(self, hook):
        tw.manual_seed(1)
        expected = self.run(hook, False).grad.numpy().copy()
        tw.manual_seed(1)
        got = self.run(hook, True).grad.numpy().copy()
        np.testing.assert_array_equal(expected, got)

    def test_observing(self):
        seen = []
        self.gradients(lambda g: seen.append(float(g.sum().item())))
        assert seen[:2] == seen[2:]

    def test_kept_gradients_keep_their_values(self):
        kept = []
        self.gradients(lambda g: kept.append((g, g.numpy().copy())))
        assert len(kept) == 4
        for _ in range(3):
            tw.randn(6, 6).sum()
        for g, values in kept:
            np.testing.assert_array_equal(g.numpy(), values)
        assert tw.memory.last_plan()["fallbacks"] == 0

    def test_replaced(self):
        self.gradients(lambda g: g * 2.0)
        self.gradients(lambda g: (g + 1.0).T)
        self.gradients(lambda g: tw.ones((6, 1)).broadcast_to((6, 6)))

    def test_views_kept(self):
        kept = []
        self.gradients(lambda g: kept.append((g[1:], g[1:].numpy().copy())))
        for g, values in kept:
            np.testing.assert_array_equal(g.numpy(), values)

    def test_errors_leave_no_memory_behind(self):
        def refuse(g):
            raise KeyError("stop")

        def attempt():
            with pytest.raises(KeyError):
                self.run(refuse, True)
            gc.collect()

        attempt()
        assert moved(attempt)["live_bytes"] == 0

    def test_called_once_a_pass(self):
        (x,) = parameters((3,))
        calls = []
        x.register_hook(lambda g: calls.append("leaf"))
        y = x * 2.0
        y.register_hook(lambda g: calls.append("node"))
        y.sum().backward(plan=True)
        assert calls == ["node", "leaf"]

    def test_ops_of_a_hook_use_the_pool(self):
        (x,) = parameters((300, 300))
        kept = []
        y = x * 2.0
        y.register_hook(lambda g: kept.append(g @ g))
        y.sum().backward(plan=True)
        np.testing.assert_array_equal(kept[0].numpy(), np.full((300, 300), 300.0))

    def test_a_pass_inside_a_hook(self):
        (x,) = parameters((4,))
        inner = []

        def hook(g):
            (v,) = parameters((4,))
            with tw.enable_grad():
                tw.exp(v).sum().backward(plan=True)
            inner.append((v.grad.numpy(), np.exp(v.detach().numpy())))

        y = x * 3.0
        y.register_hook(hook)
        y.sum().backward(plan=True)
        assert x.grad.tolist() == [3.0] * 4
        np.testing.assert_allclose(*inner[0], rtol=1e-6)


class TestErrors:
    def test_create_graph(self):
        (x,) = parameters((3,))
        with pytest.raises(ValueError, match="plan=True with create_graph=True"):
            x.sum().backward(plan=True, create_graph=True)

    def test_released_and_changed_values_are_told(self):
        (x,) = parameters((3,))
        y = tw.exp(x).sum()
        y.backward(plan=True)
        with pytest.raises(RuntimeError, match="a second time"):
            y.backward(plan=True)
        w = tw.ones((3,))
        z = (x * w).sum()
        w += 1.0
        with pytest.raises(RuntimeError, match="changed in place"):
            z.backward(plan=True)
        assert tw.active_device() == "cpu"

    def test_the_dry_walk_leaves_no_trace(self):
        (x,) = parameters((20, 20))
        w = tw.randn(20, 20)
        y = x @ w
        (y * y).sum().backward()
        grad, stream = x.grad, tw.Generator(5)
        version_before = grad.numpy().copy()
        with tw.explain() as report:
            ((x @ w) * y.detach()).sum().backward(plan=True)
        x.grad = grad
        with tw.explain() as plain:
            ((x @ w) * y.detach()).sum().backward()
        assert [entry.op for entry in report.entries] == [entry.op for entry in plain.entries]
        assert stream.position == 0
        np.testing.assert_array_equal(grad.numpy(), version_before)  # held: not written into


def test_resident_memory_is_not_what_addresses_are():
    """The dry walk reserves addresses and no memory: a pass stays within its arena."""
    (x,) = parameters((512, 1024))

    def resident():
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    y = x
    for _ in range(20):
        y = tw.sin(y)
    loss = y.sum()
    before = resident()
    loss.backward(plan=True, retain_graph=True)
    assert resident() - before < 8 * 512 * 1024 * 4
