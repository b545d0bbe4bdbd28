"""Checkpointed functions: the gradients of the plain ones, with less kept in between."""

import contextlib
import gc
import threading

import numpy as np
import pytest

import tilewright as tw
import tilewright.memory


def leaf(*shape, dtype=tw.float32):
    return tw.randn(*shape, dtype=dtype).requires_grad_()


def gradients(loss, leaves, **options):
    for x in leaves:
        x.grad = None
    loss.backward(**options)
    return [x.grad.numpy().copy() for x in leaves]


def check(build, leaves, **options):
    """`build(checkpoint)` gives the same gradients with and without checkpoints."""

    def plain(function, *args, **kwargs):
        return function(*args, **kwargs)

    stream = tw.randint(0, 1 << 30, (1,)).item()
    tw.manual_seed(stream)
    expected = gradients(build(plain), leaves)
    tw.manual_seed(stream)
    got = gradients(build(tw.checkpoint), leaves, **options)
    for a, b in zip(expected, got, strict=True):
        np.testing.assert_array_equal(a, b)


class Plus(tw.autograd.Function):
    """A sum that saves nothing."""

    @staticmethod
    def forward(ctx, a, b):
        return a + b

    @staticmethod
    def backward(ctx, g):
        return g, None


class Statistics(tw.nn.Module):
    """Its input beside a running mean of what it saw, which no gradient needs."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", tw.zeros((3,)))

    def forward(self, v):
        h = tw.tanh(v) + self.seen
        with tw.no_grad():
            self.seen.mul_(0.9).add_(h.mean(axis=0))
        return h


PLANS = pytest.mark.parametrize("plan", [False, True])


@PLANS
class TestGradients:
    def test_function_of_an_input_and_a_closure(self, plan):
        x, w = leaf(4, 5), leaf(5, 3)
        check(lambda cp: cp(lambda v: tw.tanh(v @ w).exp(), x).sum(), [x, w], plan=plan)

    def test_several_outputs_and_keywords(self, plan):
        x, w = leaf(4, 5), leaf(5, 5)

        def parts(v, *, pair, scale=1.0):
            h = tw.sigmoid(v @ pair["w"]) * scale
            return {"a": tw.exp(h), "b": [h * h, pair["other"][0] * v]}

        def build(cp):
            out = cp(parts, x, pair={"w": w, "other": [x * 2.0]}, scale=0.5)
            return (out["a"] * out["b"][0]).sum() + out["b"][1].mean()

        check(build, [x, w], plan=plan)

    def test_nested(self, plan):
        x, w, v = leaf(4, 4), leaf(4, 4), leaf(4, 4)

        def build(cp):
            def inner(h):
                return tw.tanh(h @ w) * h

            def outer(h):
                h = cp(inner, tw.exp(h * 0.1))
                return cp(inner, h @ v) + tw.sin(h)

            return cp(outer, cp(outer, x * 1.0)).sum()

        check(build, [x, w, v], plan=plan)

    def test_one_after_another(self, plan):
        x, w = leaf(4, 4), leaf(4, 4)

        def build(cp):
            h = x
            for _ in range(5):
                h = cp(lambda v: tw.tanh(v @ w), h)
            return (h * h).sum()

        check(build, [x, w], plan=plan)

    def test_dropout_has_the_same_mask(self, plan):
        x = leaf(40, 30)
        drop = tw.nn.Dropout(0.4)

        def build(cp):
            h = cp(lambda v: tw.exp(drop(v) * 0.3) * tw.randn(30), x)
            return (h * tw.rand(30)).sum()

        check(build, [x], plan=plan)

    def test_reductions_softmax_and_losses(self, plan):
        x = leaf(6, 5)
        t = tw.randint(0, 5, (6,))

        def body(v):
            h = tw.softmax(v, axis=1) * v.max(axis=0) + v.T.reshape(6, 5).prod(
                axis=1, keepdims=True
            )
            return tw.cross_entropy(h[[0, 1, 1, 5]], t[:4])

        check(lambda cp: cp(body, x), [x], plan=plan)

    def test_in_place_ops_inside(self, plan):
        x = leaf(6, 5)

        def body(v):
            h = tw.exp(v)
            y = h * 2.0
            y += v
            y *= h
            return y

        check(lambda cp: cp(body, x).sum(), [x], plan=plan)

    def test_inputs_without_a_gradient(self, plan):
        w, data = leaf(5, 3), tw.randn(4, 5)
        check(lambda cp: tw.exp(cp(lambda v: tw.tanh(v @ w), data)).sum(), [w], plan=plan)

    def test_retained_graph(self, plan):
        x, runs = leaf(3, 3), []

        def body(v):
            runs.append(1)
            return tw.exp(v).sin()

        y = tw.checkpoint(body, x).sum()
        first = gradients(y, [x], retain_graph=True, plan=plan)
        second = gradients(y, [x], plan=plan)
        np.testing.assert_array_equal(first[0], second[0])
        assert len(runs) == 2
        with pytest.raises(RuntimeError, match="a second time"):
            y.backward()

    @pytest.mark.parametrize("hooked", [False, True])
    def test_gradients_of_gradients_by_values_of_the_function(self, plan, hooked):
        def inner(v):
            h = tw.sin(v) * v
            return h, tw.exp(h) * h

        def build(cp):
            u, h, y = cp(lambda v: (u := tw.tanh(v * w), *cp(inner, u)), x)
            if hooked:
                h.register_hook(lambda g: g * g * 0.25)
            inside = [u, h, x, w]
            first = tw.grad((y + h**3 + u * u).sum(), inside, create_graph=True)
            total = sum((g * g).sum() for g in first)
            second = tw.grad(total, inside, create_graph=True)
            return sum((g * g).sum() for g in [*first, *second])

        x, w = leaf(3, dtype=tw.float64), leaf(3, dtype=tw.float64)
        check(build, [x, w], plan=plan)

    def test_hooks(self, plan):
        x, seen = leaf(3, 3), []

        def build(cp):
            def body(v):
                h = tw.exp(v)
                h.register_hook(lambda g: seen.append(g.numpy().copy()))
                return h * h

            y = cp(body, x)
            y.register_hook(lambda g: g * 3.0)
            return y.sum()

        check(build, [x], plan=plan)
        assert len(seen) == 2
        np.testing.assert_array_equal(*seen)


class TestRuns:
    def test_once_forward_and_once_backward(self):
        x, runs = leaf(3), []

        def body(v):
            runs.append(tw.is_grad_enabled())
            return tw.exp(tw.exp(v * 0.1))

        loss = tw.checkpoint(body, x).sum()
        assert runs == [True]
        loss.backward(plan=True)
        assert runs == [True, True]

    def test_without_recording_it_is_a_plain_call(self):
        x = leaf(3)
        with tw.no_grad():
            y = tw.checkpoint(tw.exp, x)
        assert not y.requires_grad

    def test_grad_of_chosen_inputs(self):
        x, w = leaf(3, 3), leaf(3, 3)
        (expected,) = tw.grad(tw.tanh(x @ w).sum(), [w])
        (got,) = tw.grad(tw.checkpoint(lambda v: tw.tanh(v @ w), x).sum(), [w])
        np.testing.assert_array_equal(expected.numpy(), got.numpy())
        assert x.grad is None

    def test_gradients_of_gradients(self):
        x = leaf(3, 3, dtype=tw.float64)
        w = leaf(3, 3, dtype=tw.float64)

        def function(a, b):
            return tw.checkpoint(lambda v: tw.exp(tw.tanh(v @ b) * v), a)

        assert tw.gradcheck(function, (x, w))
        assert tw.gradgradcheck(function, (x, w))

    def test_random_state_goes_on_as_if_run_once(self):
        x = leaf(50)
        loss = tw.checkpoint(lambda v: tw.dropout(v, 0.5) * v, x).sum()
        position = tw.rand(3).tolist()
        tw.manual_seed(0)
        loss.backward()
        after = tw.rand(3).tolist()
        tw.manual_seed(0)
        assert after == tw.rand(3).tolist()
        assert position != after

    def test_generators_of_ones_own(self):
        x, stream = leaf(50), tw.Generator(9)
        loss = tw.checkpoint(lambda v: tw.exp(tw.dropout(v, 0.5, generator=stream)), x).sum()
        position = stream.position
        loss.backward()
        assert stream.position == position
        mask = x.grad.numpy() != 0
        again = tw.dropout(tw.ones((50,)), 0.5, generator=tw.Generator(9)).numpy() != 0
        np.testing.assert_array_equal(mask, again)


@PLANS
class TestRandomNumbers:
    """The rerun gets the numbers of the run, whatever became of the generators since."""

    def check(self, x, make, between, plan):
        """The gradient of sum(exp(x * r)) where `make()` draws r."""
        seen = []

        def body(v):
            r = make()
            seen.append(r.numpy().copy())
            return tw.exp(v * r)

        loss = tw.checkpoint(body, x).sum()
        between()
        (got,) = gradients(loss, [x], plan=plan)
        assert len(seen) == 2
        np.testing.assert_array_equal(*seen)
        r = seen[0].astype(np.float64)
        np.testing.assert_allclose(got, r * np.exp(x.detach().numpy() * r), rtol=1e-4)

    @pytest.mark.parametrize(
        "make",
        [
            lambda: tw.rand(40),
            lambda: tw.randn(40),
            lambda: tw.randint(0, 3, (40,)).astype(tw.float32),
            lambda: tw.randperm(40).astype(tw.float32) * 0.05,
            lambda: tw.bernoulli(0.5, (40,)),
            lambda: tw.dropout(tw.ones((40,)), 0.5),
        ],
    )
    def test_of_every_kind_with_a_new_seed_in_between(self, make, plan):
        self.check(leaf(40), make, lambda: tw.manual_seed(1), plan)

    def test_generators_reseeded_and_used_by_others(self, plan):
        stream, other = tw.Generator(4), tw.Generator(5)

        def make():
            return tw.uniform(0, 1, (40,), generator=stream) * tw.rand(40) + tw.normal(
                0, 1, (40,), generator=other
            )

        def between():
            stream.manual_seed(9)
            tw.rand(3)

        self.check(leaf(40), make, between, plan)
        assert (stream.seed, stream.position) == (9, 0)
        assert other.position == 40

    def test_nested(self, plan):
        x, seen = leaf(30), []

        def inner(v):
            r = tw.rand(30)
            seen.append(("inner", r.numpy().copy()))
            return tw.exp(tw.dropout(v, 0.3) * r)

        def outer(v):
            h = tw.checkpoint(inner, v * tw.rand(30))
            r = tw.randn(30)
            seen.append(("outer", r.numpy().copy()))
            return tw.sin(tw.checkpoint(inner, h) * r)

        loss = tw.checkpoint(outer, x).sum()
        first = dict(enumerate(seen))
        tw.manual_seed(0)
        expected = tw.rand(2, 2).tolist()
        tw.manual_seed(0)
        loss.backward(plan=plan)
        assert tw.rand(2, 2).tolist() == expected  # nothing was drawn
        # Each inner function runs a third time, for its own frame, which the rerun made.
        runs = {name: [r for n, r in seen if n == name] for name in ("inner", "outer")}
        kinds = {name: [r for n, r in first.values() if n == name] for name in runs}
        assert len(seen) > len(first)
        for name, values in runs.items():
            for r in values:
                assert any((r == known).all() for known in kinds[name])

    def test_threads_share_a_generator(self, plan):
        stream, failures = tw.Generator(2), []
        x = tw.linspace(0.1, 1, 40)

        def work():
            try:
                for _ in range(20):
                    self.check(
                        x.copy().requires_grad_(),
                        lambda: tw.uniform(0, 1, (40,), generator=stream),
                        lambda: None,
                        plan,
                    )
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert stream.position == 4 * 20 * 40  # a rerun draws nothing

    def test_in_a_pool_with_a_quota(self, plan, tmp_path):
        x = leaf(40)
        with tw.memory.Pool(quota_bytes=1 << 16, spill_dir=tmp_path):

            def between():
                tw.manual_seed(1)
                kept.extend(tw.ones((1024,)) for _ in range(14))

            kept: list[tw.Tensor] = []
            self.check(x, lambda: tw.rand(40), between, plan)
            kept.clear()

    def test_an_error_between_draws(self, plan):
        x, runs, seen = leaf(20), [], []

        def failing(v):
            tw.rand(3)
            raise KeyError("inside")

        def body(v):
            runs.append(1)
            a = tw.rand(20)
            with contextlib.suppress(KeyError):
                tw.checkpoint(failing, v)
            if len(runs) == 2:
                raise KeyError("second")
            b = tw.rand(20)
            seen.append((a.tolist(), b.tolist()))
            return tw.exp(v * a) * b

        loss = tw.checkpoint(body, x).sum()
        with pytest.raises(KeyError, match="second"):
            loss.backward(plan=plan)
        tw.manual_seed(1)
        loss.backward(plan=plan)
        assert seen[1] == seen[0]

    def test_twice_over_a_retained_graph(self, plan):
        x, seen = leaf(20), []

        def body(v):
            r = tw.rand(20)
            seen.append(r.tolist())
            h = tw.exp(v * r)
            return h * tw.checkpoint(lambda u: tw.sin(tw.dropout(u, 0.5)), h)

        y = tw.checkpoint(body, x).sum()
        first = gradients(y, [x], retain_graph=True, plan=plan)
        tw.manual_seed(3)
        second = gradients(y, [x], plan=plan)
        np.testing.assert_array_equal(first[0], second[0])
        assert all(r == seen[0] for r in seen)

    @pytest.mark.parametrize(
        ("counts", "text"),
        [
            ([(3,), (3, 3)], "more often than the 1 times of the first run"),
            ([(3, 3), (3,)], "1 times instead of 2"),
            ([(3,), ()], "0 times instead of 1"),
            ([(3, 4), (3, 5)], "5 words instead of 4"),
        ],
    )
    def test_other_draws_in_the_rerun(self, counts, text, plan):
        runs = list(counts)

        def body(v):
            for count in runs.pop(0):
                tw.rand(count)
            return tw.exp(v)

        loss = tw.checkpoint(body, leaf(3)).sum()
        with pytest.raises(RuntimeError, match=f"drew other random numbers: {text}"):
            loss.backward(plan=plan)

    def test_a_rerun_that_failed_leaves_nothing_behind(self, plan):
        x, runs, seen = leaf(3), [], []

        def body(v):
            runs.append(1)
            fails = len(runs) == 2
            h = tw.exp(v - 3.0 if fails else v)
            seen.append(tw.rand(3))
            if not fails:
                tw.rand(3)
            return h * seen[-1]

        loss = tw.checkpoint(body, x).sum()
        with pytest.raises(RuntimeError, match="drew other random numbers: 1 times instead of 2"):
            loss.backward(plan=plan)
        (got,) = gradients(loss, [x], plan=plan)
        np.testing.assert_allclose(got, np.exp(x.detach().numpy()) * seen[0].numpy(), rtol=1e-5)


class TestMemory:
    def live(self):
        gc.collect()
        return tw.memory.stats()["live_bytes"]

    def kept(self, cp):
        """Bytes alive between forward and backward of a chain of 20, and after it."""
        x = leaf(64, 64)
        before = self.live()

        def body(v):
            for _ in range(20):
                v = tw.sin(v)
            return v

        loss = cp(body, x * 1.0).sum()
        between = self.live() - before
        loss.backward(plan=True)
        del loss
        x.grad = None
        return between, self.live() - before

    def test_activations_are_not_kept(self):
        block = 64 * 64 * 4
        plain, _ = self.kept(lambda f, v: f(v))
        checkpointed, after = self.kept(tw.checkpoint)
        assert plain >= 20 * block
        assert checkpointed <= 2 * block
        assert after == 0

    def test_inputs_of_inner_checkpoints_are_not_kept(self):
        x = leaf(64, 64)
        before = self.live()

        def outer(v):
            for _ in range(10):
                v = tw.checkpoint(lambda h: tw.sin(tw.cos(h)), v)
            return v

        loss = tw.checkpoint(outer, x).sum()
        assert self.live() - before <= 2 * 64 * 64 * 4
        loss.backward()
        del loss, x
        assert self.live() <= before

    def test_nothing_stays_when_the_graph_is_dropped(self):
        x = leaf(64, 64)
        before = self.live()
        y = tw.checkpoint(lambda v: tw.exp(tw.sin(v)), x)
        y.sum().backward(retain_graph=True)
        x.grad = None
        del y
        assert self.live() == before


def filled(data):
    rows = tw.zeros((3, 3))
    rows[tw.asarray([2, 0])] = data[:2]
    return rows


class TestErrors:
    @PLANS
    def test_changed_input(self, plan):
        w, data = leaf(3, 3), tw.randn(3, 3)
        loss = tw.checkpoint(lambda v: tw.tanh(v @ w), data).sum()
        data += 1.0
        with pytest.raises(RuntimeError, match=r"checkpoint: backward needs its input.*changed in"):
            loss.backward(plan=plan)

    def test_changed_value_of_the_closure(self):
        x, data = leaf(3, 3), tw.randn(3, 3)
        loss = tw.checkpoint(lambda v: v * data, x).sum()
        data += 1.0
        with pytest.raises(RuntimeError, match=r"checkpoint: .* was changed in place since"):
            loss.backward()

    @pytest.mark.parametrize(
        "function",
        [
            lambda v, data: tw.exp(v + data),
            lambda v, data: tw.exp((v + data)[1:].detach() * v[1:]),
            lambda v, data: tw.exp(tw.checkpoint(lambda u: u + data, v)),
            lambda v, data: tw.exp(tw.stack([v, v]).add_(data)[1]),
            lambda v, data: tw.exp(Plus.apply(v, data)),
            # By way of ops that are not recorded.
            lambda v, data: tw.exp(v + data * 2.0),
            lambda v, data: v / (data.square() + 1.0),
            lambda v, data: tw.atan2(v, tw.zeros_like(data).copy_(data.T)),
            lambda v, data: v * tw.zeros((3, 3)).add_(data),
            lambda v, data: v * filled(data),
            lambda v, data: tw.checkpoint(lambda u: u * tw.sin(data), v.sin()),
        ],
    )
    def test_changed_value_that_no_op_saves(self, function):
        x, data = leaf(3, 3), tw.randn(3, 3)
        loss = tw.checkpoint(lambda v: function(v, data), x).sum()
        data += 1.0
        with pytest.raises(RuntimeError, match=r"checkpoint: .* was changed in place since"):
            loss.backward()

    @pytest.mark.parametrize(
        "function",
        [
            lambda v, data: tw.exp(v) + data,
            lambda v, data: (tw.exp(v) + data)[1:] * 2.0,
            lambda v, data: tw.exp(v) + tw.checkpoint(lambda u: tw.sin(u) + data, v),
            lambda v, data: Plus.apply(tw.exp(v), data),
            lambda v, data: tw.exp(v) + data.sin() * 2.0,
        ],
    )
    def test_changed_value_that_no_gradient_needs(self, function):
        x, data = leaf(3, 3), tw.randn(3, 3)
        (expected,) = gradients(function(x, data).sum(), [x])
        loss = tw.checkpoint(lambda v: function(v, data), x).sum()
        data += 1.0
        np.testing.assert_array_equal(gradients(loss, [x])[0], expected)

    def test_statistics_that_the_function_gathers(self):
        x = leaf(5, 3)
        check(lambda cp: tw.exp(cp(Statistics(), x)).sum(), [x])
        check(lambda cp: tw.exp(cp(tw.nn.BatchNorm1d(3), x)).sum(), [x])

    def test_constants_that_the_first_run_makes(self):
        table, data = [], tw.ones((4,))
        data.add_(1.0)

        def body(v):
            if not table:
                table.append(tw.arange(4.0).add_(1.0).mul_(2.0))
            return tw.exp(v * 0.1) * table[0] * (data * 3.0)

        x = leaf(4)
        (expected,) = gradients(body(x).sum(), [x])
        table.clear()
        loss = tw.checkpoint(body, x).sum()
        np.testing.assert_array_equal(gradients(loss, [x])[0], expected)

    def test_constants_of_a_function_around(self):
        def outer(v):
            scale = tw.arange(3.0)
            h = tw.checkpoint(lambda u: tw.exp(u) * (scale * 2.0), v)
            scale.add_(1.0)
            return h

        x = leaf(3)
        with pytest.raises(RuntimeError, match="changed in place since"):
            outer(x).sum().backward()
        with pytest.raises(RuntimeError, match="changed in place since"):
            tw.checkpoint(outer, x).sum().backward()

    def test_changes_within_the_function(self):
        def filled(v):
            h = tw.zeros((4,))
            h[:2] = v[:2]
            h[2:] = v[2:] * 2.0
            h[1:3].mul_(3.0)
            return tw.exp(h.add_(1.0))

        x = leaf(4)
        check(
            lambda cp: cp(lambda v: cp(filled, cp(filled, v) * 0.1).sin().mul_(2.0), x).sum(), [x]
        )

    def test_changed_parameter(self):
        x, w = leaf(3, 3), leaf(3, 3)
        loss = tw.checkpoint(lambda v: tw.tanh(v @ w), x).sum()
        with tw.no_grad():
            w += 1.0
        with pytest.raises(RuntimeError, match="changed in place"):
            loss.backward()

    @pytest.mark.parametrize(
        ("first", "then", "text"),
        [
            (tw.exp, lambda v: tw.exp(tw.exp(v)), "more than the 1 values"),
            (lambda v: tw.exp(tw.exp(v)), tw.exp, "1 values instead of 2"),
            (
                lambda v: tw.exp(v).sum(),
                lambda v: tw.exp(v[:1]).sum(),
                r"float32 \(1, 3\) instead of float32 \(3, 3\)",
            ),
            (
                lambda v: tw.exp(v) * 1.0,
                lambda v: tw.exp(v) * tw.rand(3),
                "drew other random numbers",
            ),
        ],
    )
    @PLANS
    def test_not_deterministic(self, first, then, text, plan):
        runs = [first, then]

        def body(v):
            return runs.pop(0)(v)

        loss = tw.checkpoint(body, leaf(3, 3)).sum()
        with pytest.raises(RuntimeError, match=f"not deterministic.*{text}"):
            loss.backward(plan=plan)

    def test_decision_by_a_value_that_was_changed(self):
        x, gate = leaf(3), tw.ones(())
        loss = tw.checkpoint(lambda v: tw.exp(v) if gate.item() > 0 else tw.exp(v.exp()), x).sum()
        gate -= 2.0
        with pytest.raises(RuntimeError, match="the same each time, on values that stay as they"):
            loss.backward()
        gate += 2.0
        loss.backward()
        np.testing.assert_allclose(x.grad.numpy(), np.exp(x.detach().numpy()), rtol=1e-6)

    def test_error_in_the_second_run(self):
        x, runs = leaf(3), []

        def body(v):
            runs.append(1)
            if len(runs) == 2:
                raise KeyError("second")
            return tw.exp(v)

        loss = tw.checkpoint(body, x).sum()
        with pytest.raises(KeyError, match="second"):
            loss.backward(plan=True)
        assert tw.is_grad_enabled()
        loss.backward()
        np.testing.assert_allclose(x.grad.numpy(), np.exp(x.detach().numpy()), rtol=1e-6)

    def test_backward_inside(self):
        def body(v):
            tw.exp(v).sum().backward()
            return v

        with pytest.raises(RuntimeError, match="backward ran inside the checkpointed function"):
            tw.checkpoint(body, leaf(3))


class TestSequential:
    @pytest.mark.parametrize("segments", [1, 2, 3, 5])
    def test_same_gradients(self, segments):
        model = tw.nn.Sequential(
            tw.nn.Linear(6, 8), tw.nn.Tanh(), tw.nn.Dropout(0.2), tw.nn.Linear(8, 8), tw.nn.ReLU()
        )
        leaves, x = list(model.parameters()), tw.randn(4, 6)
        tw.manual_seed(2)
        expected = gradients(model(x).sum(), leaves)
        tw.manual_seed(2)
        got = gradients(tw.checkpoint_sequential(model, segments, x).sum(), leaves)
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_segments_are_checked(self):
        model = tw.nn.Sequential(tw.nn.Linear(2, 2))
        with pytest.raises(ValueError, match="2 segments for 1 modules"):
            tw.checkpoint_sequential(model, 2, tw.ones((1, 2)))

    def test_pytorchs_spelling(self):
        model, x = tw.nn.Sequential(tw.nn.Linear(2, 2)), tw.ones((1, 2))
        assert tw.checkpoint(model, x, use_reentrant=False).shape == (1, 2)
        assert tw.checkpoint_sequential(model, 1, x, use_reentrant=False).shape == (1, 2)
        with pytest.raises(ValueError, match="checkpoint: use_reentrant=True: there is only"):
            tw.checkpoint(model, x, use_reentrant=True)
        with pytest.raises(ValueError, match="checkpoint_sequential: use_reentrant=True"):
            tw.checkpoint_sequential(model, 1, x, use_reentrant=True)
