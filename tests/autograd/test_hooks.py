"""Hooks on tensors, forward and backward, and gradients that results keep."""

import pytest

import tilewright as tw


def leaf(values):
    return tw.asarray(values, copy=True).requires_grad_()


class TestBackwardHooks:
    def test_observes_the_complete_gradient_once(self):
        x = leaf([1.0])
        seen = []
        y = x * 2.0
        y.register_hook(lambda g: seen.append(g.tolist()))
        (y + y * 3.0).sum().backward()
        assert seen == [[4.0]]
        assert x.grad.tolist() == [8.0]

    @pytest.mark.parametrize("plan", [False, True])
    def test_observes_the_complete_gradient_of_a_leaf_once(self, plan):
        x = leaf([1.0, 2.0])
        seen = []
        x.register_hook(lambda g: seen.append(g.tolist()))
        y = tw.stack([x, x]) * 3.0
        ((x * x).sum() + y.sum() + x[0] * 4.0).backward(plan=plan)
        assert seen == [[12.0, 10.0]]
        assert x.grad.tolist() == [12.0, 10.0]

    @pytest.mark.parametrize("plan", [False, True])
    def test_replaces_the_complete_gradient_of_a_leaf(self, plan):
        x = leaf([3.0])
        x.register_hook(lambda g: g * g)
        (x + x).sum().backward(plan=plan)
        assert x.grad.tolist() == [4.0]
        (x * 5.0).sum().backward(plan=plan)
        assert x.grad.tolist() == [29.0]
        assert tw.grad((x + x * 2.0).sum(), [x])[0].tolist() == [9.0]

    def test_of_a_leaf_that_is_not_asked_for_is_not_called(self):
        x, other = leaf([1.0]), leaf([2.0])
        seen = []
        other.register_hook(lambda g: seen.append("other"))
        assert tw.grad((x * other).sum(), [x])[0].tolist() == [2.0]
        assert not seen

    def test_replaces_on_results_and_leaves(self):
        x = leaf([1.0])
        y = x * 2.0
        y.register_hook(lambda g: g * 10.0)
        x.register_hook(lambda g: g + 1.0)
        y.sum().backward()
        assert x.grad.tolist() == [21.0]

    def test_run_in_order_of_registration(self):
        x = leaf([1.0])
        x.register_hook(lambda g: g + 1.0)
        x.register_hook(lambda g: g * 10.0)
        x.sum().backward()
        assert x.grad.tolist() == [20.0]

    def test_remove(self):
        x = leaf([1.0])
        handle = x.register_hook(lambda g: g * 10.0)
        handle.remove()
        handle.remove()
        x.sum().backward()
        assert x.grad.tolist() == [1.0]

    def test_remove_inside_the_hook(self):
        x = leaf([1.0])
        handles, seen = [], []

        def once(g):
            seen.append(g.item())
            handles[0].remove()

        handles.append(x.register_hook(once))
        x.register_hook(lambda g: seen.append("second"))
        x.sum().backward()
        x.sum().backward()
        assert seen == [1.0, "second", "second"]

    def test_wrong_results(self):
        x = leaf([1.0, 2.0])
        y = x * 2.0
        handle = y.register_hook(lambda g: tw.ones((3,)))
        text = r"multiply: a hook returned shape \(3,\) for a gradient of shape \(2,\)"
        with pytest.raises(ValueError, match=text):
            y.sum().backward(retain_graph=True)
        handle.remove()
        handle = y.register_hook(lambda g: 3.0)
        with pytest.raises(TypeError, match="a hook must return a tensor or None"):
            y.sum().backward(retain_graph=True)
        handle.remove()
        y.sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]

    def test_wrong_dtype(self):
        x = leaf([1.0, 2.0])
        y = x * 2.0
        y.register_hook(lambda g: g.astype(tw.float64))
        with pytest.raises(
            TypeError, match="multiply: a hook returned float64 for a gradient of float32"
        ):
            y.sum().backward()

    def test_an_exception_leaves_the_engine_usable(self):
        x = leaf([1.0])
        y = x * 2.0

        def fails(g):
            raise KeyError("from the hook")

        handle = y.register_hook(fails)
        with pytest.raises(KeyError, match="from the hook"):
            y.sum().backward(retain_graph=True)
        assert tw.is_grad_enabled()
        assert x.grad is None
        handle.remove()
        y.sum().backward()
        assert x.grad.tolist() == [2.0]

    def test_a_backward_of_another_graph_inside(self):
        x, other = leaf([1.0]), leaf([3.0])
        x.register_hook(lambda g: (other * 2.0).sum().backward() if tw.is_grad_enabled() else None)

        def inner(g):
            with tw.enable_grad():
                (other * 2.0).sum().backward()

        x.register_hook(inner)
        (x * 2.0).sum().backward()
        assert other.grad.tolist() == [2.0]
        assert x.grad.tolist() == [2.0]

    def test_refused(self):
        with pytest.raises(RuntimeError, match="does not require grad"):
            tw.ones((1,)).register_hook(print)
        with pytest.raises(TypeError, match="hook must be a function"):
            leaf([1.0]).register_hook(3)


class TestForwardHooks:
    def test_observes(self):
        x = leaf([1.0, 2.0])
        seen = []
        x.register_forward_hook(lambda v: seen.append(v.tolist()))
        y = x * 2.0
        assert seen == [[1.0, 2.0]]
        y.sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]

    def test_replaces_with_gradient(self):
        x = leaf([1.0, 2.0])
        handle = x.register_forward_hook(lambda v: v * 10.0)
        y = x + 1.0
        assert y.tolist() == [11.0, 21.0]
        y.sum().backward()
        assert x.grad.tolist() == [10.0, 10.0]
        handle.remove()
        assert (x + 1.0).tolist() == [2.0, 3.0]

    def test_run_in_order_of_registration(self):
        x = leaf([1.0])
        x.register_forward_hook(lambda v: v + 1.0)
        x.register_forward_hook(lambda v: v * 10.0)
        assert (x + 0.0).tolist() == [20.0]

    def test_optimizers_change_the_tensor_itself(self):
        x = leaf([1.0])
        x.register_forward_hook(lambda v: v * 10.0)
        (x * 1.0).sum().backward()
        tw.optim.SGD([x], lr=0.25).step()
        assert x.tolist() == [-1.5]

    def test_detached_values_may_be_computed_with_inside(self):
        x = leaf([1.0])
        x.register_forward_hook(lambda v: v.detach() * 3.0)
        assert (x + 0.0).tolist() == [3.0]

    def test_attributes_are_no_ops(self):
        x = leaf([1.0])
        seen = []
        x.register_forward_hook(seen.append)
        _ = x.shape, x.dtype, x.grad, x.requires_grad, x.tolist(), x.is_leaf, x.version, repr(x)
        assert not seen

    def test_remove(self):
        x = tw.ones((1,))
        handle = x.register_forward_hook(lambda v: v.detach() * 2.0)
        handle.remove()
        handle.remove()
        assert (x + 0.0).tolist() == [1.0]

    def test_exception(self):
        x = leaf([1.0])

        def fails(v):
            raise KeyError("from the hook")

        handle = x.register_forward_hook(fails)
        with pytest.raises(KeyError, match="from the hook"):
            x + 1.0
        handle.remove()
        assert (x + 1.0).tolist() == [2.0]

    def test_exception_in_a_function(self):
        x = leaf([[1.0]])

        def fails(v):
            raise KeyError("from the hook")

        x.register_forward_hook(fails)
        for call in (tw.exp, tw.sum, lambda x: tw.reshape(x, (1,)), lambda x: x.sum()):
            with pytest.raises(KeyError, match="from the hook"):
                call(x)


class TestRetainGrad:
    def test_keeps_the_gradient_of_a_result(self):
        x = leaf([1.0])
        y = x * 2.0
        z = y * 3.0
        y.retain_grad()
        z.sum().backward()
        assert y.grad.tolist() == [3.0]
        assert z.grad is None

    def test_after_hooks(self):
        x = leaf([1.0])
        y = x * 2.0
        y.retain_grad()
        y.register_hook(lambda g: g * 10.0)
        y.sum().backward()
        assert y.grad.tolist() == [10.0]

    def test_of_a_result_that_is_gone(self):
        x = leaf([1.0])
        y = x * 2.0
        y.retain_grad()
        z = y.sum()
        del y
        z.backward()
        assert x.grad.tolist() == [2.0]

    def test_refused(self):
        with pytest.raises(RuntimeError, match="does not require grad"):
            tw.ones((1,)).retain_grad()


class TestHooksBehindAccumulation:
    def test_sees_the_leaf_with_its_grad_once_a_pass(self):
        x = leaf([1.0, 2.0])
        seen = []
        x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.tolist())))
        (x * 2.0 + x).sum().backward()
        x.sum().backward()
        assert seen == [(True, [3.0, 3.0]), (True, [4.0, 4.0])]

    def test_may_step_and_drop_the_grad(self):
        layer = tw.nn.Linear(2, 1)
        want = [
            (p - 0.1 * tw.ones_like(p) * (2 if p.ndim == 2 else 1)).tolist()
            for p in layer.parameters()
        ]

        def step(p):
            p.detach().sub_(p.grad, alpha=0.1)
            p.grad = None

        for p in layer.parameters():
            p.register_post_accumulate_grad_hook(step)
        layer(tw.full((1, 2), 2.0)).sum().backward()
        assert all(p.grad is None for p in layer.parameters())
        for p, value in zip(layer.parameters(), want, strict=True):
            assert tw.allclose(p, tw.asarray(value))

    def test_comes_behind_other_hooks_and_ends_when_removed(self):
        x = leaf([1.0])
        seen = []
        x.register_hook(lambda g: g * 10.0)
        handle = x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
        (x * 1.0).sum().backward()
        handle.remove()
        (x * 1.0).sum().backward()
        assert seen == [[10.0]]

    def test_is_not_called_by_grad(self):
        x = leaf([1.0])
        x.register_post_accumulate_grad_hook(lambda t: pytest.fail("called"))
        assert tw.grad((x * 3.0).sum(), x)[0].tolist() == [3.0]

    def test_runs_in_planned_passes_once(self):
        x = leaf([1.0])
        seen = []
        x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
        (x * 3.0).sum().backward(plan=True)
        assert seen == [[3.0]]

    def test_results_and_constants_are_refused(self):
        x = leaf([1.0])
        for tensor, text in ((x * 2.0, "is no leaf"), (tw.ones(1), "does not require grad")):
            with pytest.raises(RuntimeError, match=text):
                tensor.register_post_accumulate_grad_hook(print)
        with pytest.raises(TypeError):
            x.register_post_accumulate_grad_hook(3)
