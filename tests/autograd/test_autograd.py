"""Define-by-run gradients: accumulation, modes, views, in-place changes."""

import numpy as np
import pytest

import tilewright as tw


def leaf(values, dtype=tw.float32, name=""):
    x = tw.asarray(values, dtype=dtype, copy=True).requires_grad_()
    if name:
        x.name = name
    return x


class TestAccumulation:
    def test_uses_of_one_tensor_add_up(self):
        x = leaf([2.0, 3.0])
        (x * x + x).sum().backward()
        assert x.grad.tolist() == [5.0, 7.0]

    def test_passes_add_up_until_the_grad_is_cleared(self):
        x = leaf([1.0])
        for _ in range(3):
            (x * 2.0).sum().backward()
        assert x.grad.tolist() == [6.0]
        x.grad = None
        (x * 2.0).sum().backward()
        assert x.grad.tolist() == [2.0]

    def test_accumulation_does_not_write_into_a_gradient_that_was_handed_out(self):
        x = leaf([1.0])
        (x * 2.0).sum().backward()
        first = x.grad
        seen = first.detach().copy()
        x.grad = None
        (x * 3.0).sum().backward()
        assert first.tolist() == seen.tolist()

    def test_the_seed_is_not_shared_with_the_grad(self):
        x = leaf([1.0, 1.0])
        seed = tw.ones((2,))
        (x + 0.0).backward(seed)
        x.grad += 5.0
        assert seed.tolist() == [1.0, 1.0]

    def test_two_leaves_do_not_share_one_gradient(self):
        a, b = leaf([1.0]), leaf([2.0])
        (a + b).sum().backward()
        a.grad += 5.0
        assert b.grad.tolist() == [1.0]

    def test_diamond(self):
        x = leaf(3.0)
        y = x * x
        z = y * 2.0 + y * y
        z.backward()
        assert x.grad.item() == 2 * 3 * (2 + 2 * 9)

    def test_grad_is_checked_when_set(self):
        x = leaf([1.0, 2.0])
        with pytest.raises(ValueError, match=r"grad of shape \(3,\) for a tensor of shape \(2,\)"):
            x.grad = tw.ones((3,))
        with pytest.raises(TypeError, match="grad of type float64 for a tensor of type float32"):
            x.grad = tw.ones((2,), dtype=tw.float64)


class TestModes:
    def test_no_grad(self):
        x = leaf([1.0])
        with tw.no_grad():
            y = x * 2.0
            assert not tw.is_grad_enabled()
            with tw.enable_grad():
                z = x * 2.0
        assert not y.requires_grad
        assert z.requires_grad
        assert tw.is_grad_enabled()

    def test_restored_after_an_exception(self):
        with pytest.raises(KeyError), tw.no_grad():
            raise KeyError
        assert tw.is_grad_enabled()

    def test_decorators(self):
        @tw.no_grad()
        def off(x):
            """Doc."""
            return x * 2.0, tw.is_grad_enabled()

        @tw.enable_grad()
        def on(x):
            return x * 2.0

        x = leaf([1.0])
        y, enabled = off(x)
        assert not y.requires_grad
        assert not enabled
        assert off.__doc__ == "Doc."
        with tw.no_grad():
            assert on(x).requires_grad

    def test_set_grad_enabled(self):
        with tw.set_grad_enabled(False):
            assert not tw.is_grad_enabled()

    def test_detach_shares_memory_and_stops_gradients(self):
        x = leaf([2.0])
        d = x.detach()
        assert d.data_ptr == x.data_ptr
        assert not d.requires_grad
        (x * d).sum().backward()
        assert x.grad.tolist() == [2.0]

    def test_requires_grad_is_for_floating_leaves(self):
        with pytest.raises(
            TypeError, match="only floating-point and complex tensors can require grad, got int64"
        ):
            tw.arange(3).requires_grad_()
        y = leaf([1.0]) * 2.0
        with pytest.raises(RuntimeError, match=r"cannot be switched off; use detach\(\)"):
            y.requires_grad = False


class TestBackward:
    def test_needs_a_graph(self):
        with pytest.raises(RuntimeError, match="has no graph"):
            tw.ones((1,)).backward()

    def test_needs_a_seed_unless_one_number(self):
        x = leaf([1.0, 2.0])
        with pytest.raises(RuntimeError, match=r"is not a single number; give the gradient"):
            (x * 2.0).backward()
        (x * 2.0).backward(tw.asarray([1.0, 10.0]))
        assert x.grad.tolist() == [2.0, 20.0]

    def test_seed_is_checked(self):
        y = leaf([1.0, 2.0]) * 2.0
        with pytest.raises(
            ValueError, match=r"gradient of shape \(3,\) for a tensor of shape \(2,\)"
        ):
            y.backward(tw.ones((3,)))
        with pytest.raises(
            TypeError, match="gradient of type float64 for a tensor of type float32"
        ):
            y.backward(tw.ones((2,), dtype=tw.float64))
        y.backward(tw.ones((2,)))

    def test_a_leaf_is_its_own_graph(self):
        x = leaf(3.0)
        x.backward()
        assert x.grad.item() == 1.0

    def test_second_backward_names_the_op(self):
        x = leaf([1.0, 2.0])
        y = tw.exp(x)
        y.backward(tw.ones((2,)))
        text = r"exp: backward through this op a second time.*call backward\(retain_graph=True\)"
        with pytest.raises(RuntimeError, match=text):
            y.backward(tw.ones((2,)))

    def test_retain_graph(self):
        x = leaf([1.0, 2.0])
        y = (x * x).sum()
        y.backward(retain_graph=True)
        y.backward()
        assert x.grad.tolist() == [4.0, 8.0]
        with pytest.raises(RuntimeError, match="multiply: backward through this op a second time"):
            y.backward()

    def test_ops_that_save_nothing_can_be_walked_again(self):
        x = leaf([1.0, 2.0])
        shared = x + 1.0
        first, second = shared.sum(), (shared + x).sum()
        first.backward()
        second.backward()
        assert x.grad.tolist() == [3.0, 3.0]

    def test_op_names(self):
        x = leaf([1.0])
        assert x.op is None
        assert x.is_leaf
        assert tw.exp(x).op == "exp"
        assert (x + 1.0).op == "add"


class TestInPlace:
    def test_change_of_a_saved_value_names_op_and_tensor(self):
        x = leaf([1.0, 2.0])
        w = tw.ones((2,))
        w.name = "weights"
        y = (x * w).sum()
        w += 1.0
        text = (
            r"multiply: backward needs its .* 'weights' float32 \(2,\), which was changed in place "
            r"since .*change a copy\(\) instead"
        )
        with pytest.raises(RuntimeError, match=text):
            y.backward()

    def test_change_of_a_saved_result(self):
        x = leaf([1.0, 2.0])
        y = tw.exp(x)
        z = y.sum()
        y *= 2.0
        with pytest.raises(RuntimeError, match="exp: backward needs its result"):
            z.backward()

    def test_change_through_a_view_is_seen(self):
        x = leaf([1.0, 2.0])
        w = tw.ones((2,))
        y = (x * w).sum()
        w[0] = 5.0
        with pytest.raises(RuntimeError, match="changed in place"):
            y.backward()

    def test_change_of_a_value_that_is_not_needed(self):
        x = leaf([1.0, 2.0])
        w = tw.ones((2,))
        y = (x + w).sum()
        w += 1.0
        y.backward()
        assert x.grad.tolist() == [1.0, 1.0]

    @pytest.mark.parametrize(
        "change",
        [
            lambda x: x.__iadd__(1.0),
            lambda x: x.fill_(0.0),
            lambda x: x.__setitem__(0, 0.0),
            lambda x: x.copy_(tw.ones((2,))),
        ],
    )
    def test_leaves_that_require_grad_refuse(self, change):
        x = leaf([1.0, 2.0])
        with pytest.raises(
            RuntimeError,
            match=r"in-place change of .* a leaf that requires grad; do it under no_grad",
        ):
            change(x)
        assert x.tolist() == [1.0, 2.0]
        assert x.requires_grad
        with tw.no_grad():
            change(x)
        assert x.requires_grad
        assert x.is_leaf

    def test_recorded_changes_of_views_reach_the_tensor(self):
        x = leaf([1.0, 2.0])
        y = x * 2.0
        y[0:1].fill_(0.0)
        assert y.tolist() == [0.0, 4.0]
        y.sum().backward()
        assert x.grad.tolist() == [0.0, 2.0]

    def test_recorded_changes_of_views_taken_without_grad_name_the_remedy(self):
        y = leaf([1.0, 2.0]) * 2.0
        with tw.no_grad():
            view = y[0:1]
        with pytest.raises(
            RuntimeError, match=r"write through the tensor .* base\[index\] = value"
        ):
            view *= y[1:]
        y[0:1] = 0.0
        assert y.tolist() == [0.0, 4.0]

    @pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
    def test_recorded_changes_as_torch_has_them(self, op):
        torch = pytest.importorskip("torch")
        values, others = [1.0, 2.0, 4.0], [0.5, 3.0, -2.0]

        def run(make):
            x, w = make(values), make(others)
            y = x * 3.0
            getattr(y, f"{op}_")(w)
            y = y * y
            y.sum().backward()
            return [x.grad.tolist(), w.grad.tolist(), y.tolist()]

        expected = run(lambda v: torch.tensor(v, requires_grad=True))
        for ours, theirs in zip(run(leaf), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)

    def test_recorded_operators(self):
        x = leaf([1.0, 2.0])
        y = x * 1.0
        before = y
        y += x
        y *= x
        assert y is before
        assert y.op == "multiply"
        y.sum().backward()
        assert x.grad.tolist() == [4.0, 8.0]

    @pytest.mark.parametrize(
        "index",
        [0, slice(1, 3), (slice(None), 1), (..., slice(None, None, 2)), ([0, 2], [1, 1])],
    )
    def test_index_assignment_as_torch_has_it(self, index):
        torch = pytest.importorskip("torch")
        values = np.arange(12, dtype=np.float32).reshape(4, 3)

        def run(make, ones):
            x = make(values)
            y = x * 2.0
            v = make(ones(y[index].shape))
            y[index] = v * 5.0
            (y * y).sum().backward()
            return [np.asarray(t.grad.tolist()) for t in (x, v)]

        ours = run(leaf, lambda shape: np.ones(shape, np.float32))
        theirs = run(
            lambda v: torch.tensor(v, requires_grad=True),
            lambda shape: np.ones(tuple(shape), np.float32),
        )
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)

    def test_assigned_scalars_stop_gradients(self):
        x = leaf([1.0, 2.0, 3.0])
        y = x * 2.0
        y[1] = 0.0
        y.sum().backward()
        assert x.grad.tolist() == [2.0, 0.0, 2.0]


VIEWS = {
    "slice": lambda x: x[1:, ::2],
    "negative step": lambda x: x[::-1, ::-2],
    "integer": lambda x: x[1],
    "element": lambda x: x[1, 2],
    "new axis": lambda x: x[None, :, None],
    "transpose": lambda x: x.transpose(0, 1),
    "T": lambda x: x.T,
    "permute_dims": lambda x: x.permute_dims(1, 0),
    "reshape": lambda x: x.reshape(4, 3),
    "reshape of strided": lambda x: x.T.reshape(2, 6),
    "broadcast_to": lambda x: x.broadcast_to((2, 3, 4)),
    "expand_dims": lambda x: x.expand_dims(1),
    "squeeze": lambda x: x.expand_dims(0).squeeze(),
    "flatten": lambda x: x.flatten(),
    "flip": lambda x: tw.flip(x, axis=1),
    "mask": lambda x: x[x > 0.0],
    "integer array": lambda x: x[[2, 0, 2]],
    "pairs": lambda x: x[[0, 1, 1], [3, 2, 2]],
    "mixed": lambda x: x[1:, [0, 0, 3]],
    "view of a view": lambda x: x[1:].T[::2].reshape(-1)[1:],
    "contiguous": lambda x: x.T.contiguous(),
    "copy": lambda x: x.copy(),
}


class TestViews:
    @pytest.mark.parametrize("name", VIEWS)
    def test_gradients(self, name):
        x = tw.normal(0.0, 1.0, (3, 4), dtype=tw.float64, requires_grad=True)

        def fn(x):
            y = VIEWS[name](x)
            return y * y

        assert tw.gradcheck(fn, x)
        assert tw.gradgradcheck(fn, x)

    def test_gradient_of_a_part_is_zero_elsewhere(self):
        x = leaf([[1.0, 2.0], [3.0, 4.0]])
        x[1].sum().backward()
        assert x.grad.tolist() == [[0.0, 0.0], [1.0, 1.0]]


class TestGrad:
    def test_leaves_grads_alone(self):
        x, w = leaf([2.0]), leaf([3.0])
        dx, dw = tw.grad((x * w).sum(), (x, w))
        assert (dx.item(), dw.item()) == (3.0, 2.0)
        assert x.grad is None
        assert w.grad is None

    def test_of_results_within_the_graph(self):
        x = leaf([2.0])
        y = x * x
        z = y * y
        (dy,) = tw.grad(z.sum(), y)
        assert dy.item() == 8.0

    def test_of_many_outputs_with_seeds(self):
        x = leaf([1.0, 2.0])
        (dx,) = tw.grad((x * 2.0, x * x), x, (tw.ones((2,)), tw.asarray([1.0, 10.0])))
        assert dx.tolist() == [4.0, 42.0]

    def test_unused_input(self):
        x, w = leaf([1.0]), leaf([1.0], name="w")
        y = (x * 2.0).sum()
        with pytest.raises(RuntimeError, match=r"grad: input 'w' .* not used.*allow_unused=True"):
            tw.grad(y, (x, w), retain_graph=True)
        dx, dw = tw.grad(y, (x, w), allow_unused=True)
        assert dx.item() == 2.0
        assert dw is None

    def test_refused_arguments(self):
        x = leaf([1.0])
        y = (x * 2.0).sum()
        with pytest.raises(RuntimeError, match="does not require grad"):
            tw.grad(y, tw.ones((1,)))
        with pytest.raises(TypeError, match="inputs must be"):
            tw.grad(y, 3)
        with pytest.raises(ValueError, match="2 gradients for 1 tensors"):
            tw.grad(y, x, (tw.ones(()), tw.ones(())))

    def test_third_derivative(self):
        x = leaf([0.5, 2.0], tw.float64)
        y = x**5
        for factor, power in ((5.0, 4), (20.0, 3), (60.0, 2)):
            (y,) = tw.grad(y.sum(), x, create_graph=True)
            np.testing.assert_allclose(y.tolist(), [factor * v**power for v in (0.5, 2.0)])

    def test_backward_through_a_gradient(self):
        x = leaf([2.0])
        (dx,) = tw.grad((x * x * x).sum(), x, create_graph=True)
        (dx * dx).sum().backward()
        assert x.grad.item() == 2 * 12.0 * 12.0

    def test_backward_with_create_graph(self):
        x = leaf([2.0])
        (x * x * x).sum().backward(create_graph=True)
        assert x.grad.requires_grad
        (d2,) = tw.grad(x.grad.sum(), x)
        assert d2.item() == 12.0
        x.grad = None


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_of_silu_at_infinity_are_its_limits(dtype: str, device: str, isa: str) -> None:
    """PyTorch's formula gives NaN there."""
    if device == "cuda" and not tw.cuda.is_available():
        pytest.skip(f"no GPU: {tw.cuda.why_unavailable()}")
    x = tw.asarray([-np.inf, np.inf, np.nan, 0.0] * 5, dtype=getattr(tw, dtype), device=device)
    x.requires_grad_()
    tw.silu(x).sum().backward()
    np.testing.assert_array_equal(x.grad.to_device("cpu").numpy(), [0, 1, np.nan, 0.5] * 5)


class TestDataSetWhileAGraphIsPending:
    """Gradients of what was recorded before arrive where the object's own do."""

    @pytest.mark.parametrize("dtype", [tw.float32, tw.float64])
    def test_gradients_arrive(self, dtype):
        w = tw.ones((2,), requires_grad=True)
        y = (w * 2).sum()
        w.data = tw.full((2,), 5.0, dtype=dtype)
        again = (w * 3).sum()
        w.data = tw.full((2,), 7.0, dtype=dtype)
        y.backward()
        assert (w.grad.tolist(), w.grad.dtype) == ([2, 2], dtype)
        again.backward()
        (w * 4).sum().backward()
        assert w.grad.tolist() == [9, 9]

    def test_saved_values_are_those_of_before(self):
        w = tw.ones((2,), requires_grad=True)
        y = (w * w).sum()
        w.data = tw.full((2,), 5.0)
        y.backward()
        assert w.grad.tolist() == [2, 2]

    def test_hooks_hear_of_them(self):
        w, observed = tw.ones((2,), requires_grad=True), []
        w.register_hook(lambda g: g * 10)
        w.register_post_accumulate_grad_hook(lambda x: observed.append(x.grad.tolist()))
        y = (w * 2).sum()
        w.data = tw.zeros(2)
        y.backward()
        assert observed == [[20, 20]]

    def test_another_shape_is_refused(self):
        w = tw.ones((2,), requires_grad=True)
        y = (w * 2).sum()
        w.data = tw.zeros(3)
        with pytest.raises(RuntimeError, match="whose data was set after the graph was recorded"):
            y.backward()
        assert w.grad is None

    def test_a_model_that_is_converted(self):
        model = tw.nn.Sequential(tw.nn.Linear(3, 2), tw.nn.Linear(2, 1))
        y = model(tw.ones((1, 3))).sum()
        model.double()
        y.backward()
        assert {x.grad.dtype for x in model.parameters()} == {tw.float64}
