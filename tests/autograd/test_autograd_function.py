"""Functions whose gradients Python defines: in graphs, checkpoints, threads and cycles."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import tilewright as tw
from tilewright.autograd import Function
from tilewright.autograd.function import once_differentiable


def leaf(*values: float) -> tw.Tensor:
    return tw.asarray(values, dtype=tw.float64).requires_grad_()


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3.0 * g * x * x


class ExpOfResult(Function):
    """Saves its result."""

    @staticmethod
    def forward(ctx, x):
        y = tw.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class Parts(Function):
    """Several arguments and results, of which some are no tensors."""

    @staticmethod
    def forward(ctx, x, scale, y=None):
        ctx.scale = scale
        ctx.needed = ctx.needs_input_grad
        return x * scale, "label", tw.argmax(x), (x + y if y is not None else x * 1.0)

    @staticmethod
    def backward(ctx, g, label, index, h):
        assert label is None
        assert index.tolist() == 0.0  # zeros stand for what has no gradient
        return g * ctx.scale + h, None, h


def test_values_and_gradients() -> None:
    x = leaf(1.0, -2.0)
    y = Cube.apply(x)
    assert y.op == "Cube"
    assert y.tolist() == [1.0, -8.0]
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]


@pytest.mark.parametrize("function", [Cube.apply, ExpOfResult.apply])
def test_gradients_of_all_orders(function) -> None:
    x = leaf(0.5, -1.5, 2.0)
    assert tw.autograd.gradcheck(function, (x,))
    assert tw.autograd.gradgradcheck(function, (x,))
    (first,) = tw.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (second,) = tw.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = tw.autograd.grad(second.sum(), x)
    assert third.tolist() == [6.0, 6.0, 6.0]


def test_several_arguments_and_results() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    a, label, index, b = Parts.apply(x, 5.0, y)
    assert (label, index.item(), index.requires_grad) == ("label", 1, False)
    assert a.requires_grad
    assert b.requires_grad
    (a.sum() + 2.0 * b.sum()).backward()
    assert x.grad.tolist() == [7.0, 7.0]
    assert y.grad.tolist() == [2.0, 2.0]
    x.grad = None
    Parts.apply(x, 5.0)  # an argument that is left out has no gradient to give


def test_missing_gradients_are_zeros_or_none() -> None:
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 2.0, x * 3.0

        @staticmethod
        def backward(ctx, g, h):
            seen.append(h if h is None else h.tolist())
            return g * 2.0, None

    for materialize in (True, False):
        x = leaf(1.0, 1.0)
        Two.apply(x, materialize)[0].sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]
    assert seen == [[0.0, 0.0], None]


def test_needs_input_grad_and_results_that_are_not_differentiable() -> None:
    class Sorted(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.seen = ctx.needs_input_grad
            rest = x * 0.5
            ctx.mark_non_differentiable(rest)
            return x + y, rest

        @staticmethod
        def backward(ctx, g, _):
            assert ctx.seen == ctx.needs_input_grad == (True, False)
            return g, g

    x, y = leaf(1.0), tw.asarray([2.0])
    total, rest = Sorted.apply(x, y)
    assert (total.requires_grad, rest.requires_grad) == (True, False)
    total.backward()
    assert x.grad.tolist() == [1.0]
    assert y.grad is None


class SquareInPlace(Function):
    """Changes its argument."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        ctx.save_for_backward(x.copy())
        return x.mul_(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2.0 * x * g


class ExpInPlace(Function):
    """Changes its argument and saves it, which is the result."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.exp_()
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * g


def test_arguments_that_are_changed_in_place() -> None:
    """Gradients by hand: of (1.5 w)^4, of exp(2 w)^2 behind a view, and the second of exp."""
    w = leaf(0.5, 2.0, 3.0)
    values = w.detach().numpy().copy()
    h = w * 1.5
    assert SquareInPlace.apply(h) is h
    assert h.op == "SquareInPlace"
    (h * h).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), 4 * 1.5**4 * values**3, rtol=1e-14)
    w.grad = None
    base = w * 2.0
    before, view = base[:2], base[1:]
    assert ExpInPlace.apply(view) is view
    (base * base).sum().backward(retain_graph=True)
    slopes = np.append(8 * values[:1], 4 * np.exp(4 * values[1:]))
    np.testing.assert_allclose(w.grad.numpy(), slopes, rtol=1e-14)
    w.grad = None
    before.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), [2, 2 * np.exp(4.0), 0], rtol=1e-14)
    h = w * 1.0
    ExpInPlace.apply(h)
    (first,) = tw.grad(h.sum(), [w], create_graph=True)
    (second,) = tw.grad(first.sum(), [w])
    np.testing.assert_allclose(second.numpy(), np.exp(values), rtol=1e-14)
    with tw.no_grad():
        kept = w.copy()
        assert SquareInPlace.apply(kept) is kept
        assert not kept.requires_grad
    plain = tw.asarray([3.0])
    assert SquareInPlace.apply(plain) is plain
    assert plain.tolist() == [9.0]


def test_what_was_saved_before_a_change_says_so() -> None:
    h = leaf(1.0, 2.0) * 2.0
    y = h * h
    SquareInPlace.apply(h)
    with pytest.raises(RuntimeError, match="changed in place"):
        y.sum().backward()


def test_wrong_marks() -> None:
    class Marks(Function):
        @staticmethod
        def forward(ctx, x, how):
            how(ctx, x)
            return x * 1.0

    x = leaf(1.0)
    for how, error, text in (
        (lambda ctx, x: ctx.mark_dirty(3), TypeError, "mark_dirty takes tensors, got int"),
        (lambda ctx, x: ctx.mark_dirty(x * 1), ValueError, "takes arguments of forward alone"),
        (lambda ctx, x: ctx.mark_dirty(x), RuntimeError, "a leaf that requires grad cannot"),
        (
            lambda ctx, x: ctx.mark_non_differentiable("y"),
            TypeError,
            "mark_non_differentiable takes tensors, got str",
        ),
        (
            lambda ctx, x: ctx.set_materialize_grads(1),
            TypeError,
            "set_materialize_grads takes True or False, got 1",
        ),
    ):
        with pytest.raises(error, match=f"^Marks: .*{text}"):
            Marks.apply(x, how)
    with pytest.raises(RuntimeError, match="forward returned 0 of the 1 arguments"):
        Marks.apply(x * 1, lambda ctx, x: ctx.mark_dirty(x))


def test_setup_context_is_apart_from_forward() -> None:
    class Scale(Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, g):
            assert ctx.saved_tensors[0].tolist() == [6.0]
            return g * ctx.factor, None

    x = leaf(2.0)
    Scale.apply(x, 3.0).backward()
    assert x.grad.tolist() == [3.0]


class TestModes:
    def test_nothing_is_recorded_without_need(self) -> None:
        x = leaf(2.0)
        with tw.no_grad():
            assert not Cube.apply(x).requires_grad
        assert not Cube.apply(x.detach()).requires_grad

    def test_forward_runs_unrecorded(self) -> None:
        class Look(Function):
            @staticmethod
            def forward(ctx, x):
                assert not tw.is_grad_enabled()
                return x * 1.0

        assert Look.apply(leaf(1.0)).op == "Look"

    def test_backward_records_with_create_graph_alone(self) -> None:
        modes = []

        class Look(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1.0

            @staticmethod
            def backward(ctx, g):
                modes.append(tw.is_grad_enabled())
                return g

        x = leaf(1.0)
        Look.apply(x).backward()
        tw.grad(Look.apply(x), x, create_graph=True)
        assert modes == [False, True]

    @pytest.mark.parametrize("function", [Cube.apply, ExpOfResult.apply])
    def test_within_a_checkpoint(self, function) -> None:
        expected, x = leaf(0.5, 1.5), leaf(0.5, 1.5)
        (function(expected * 2.0) * 3.0).sum().backward()
        calls = []

        def run(v):
            calls.append(1)
            return function(v * 2.0) * 3.0

        tw.checkpoint(run, x).sum().backward()
        assert x.grad.tolist() == expected.grad.tolist()
        assert len(calls) == 2

    def test_planned_backward(self) -> None:
        expected, x = leaf(0.5, 1.5), leaf(0.5, 1.5)
        tw.sin(Cube.apply(tw.exp(expected))).sum().backward()
        tw.sin(Cube.apply(tw.exp(x))).sum().backward(plan=True)
        assert x.grad.tolist() == expected.grad.tolist()

    def test_side_by_side_in_threads(self) -> None:
        results = {}

        def work(number: int) -> None:
            x = leaf(float(number))
            for _ in range(50):
                x.grad = None
                Cube.apply(Cube.apply(x)).sum().backward()
            results[number] = x.grad.item()

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == {i: 9.0 * i**8 for i in range(4)}

    def test_views_and_inputs_as_results(self) -> None:
        class Same(Function):
            @staticmethod
            def forward(ctx, x):
                return x, x[:1], x

            @staticmethod
            def backward(ctx, g, h, k):
                out = (g + k).copy()
                out[:1] += h
                return out

        x = leaf(1.0, 2.0)
        y, view, z = Same.apply(x)
        assert x.is_leaf
        assert y is not x
        assert z is not y
        (y.sum() + 3.0 * view.sum() + 4.0 * z.sum()).backward()
        assert x.grad.tolist() == [8.0, 5.0]

    def test_broadcast_and_other_dtypes_fit_the_argument(self) -> None:
        class Add(Function):
            @staticmethod
            def forward(ctx, x, y):
                return x + y

            @staticmethod
            def backward(ctx, g):
                return g, g

        x = tw.ones((1, 3), requires_grad=True)
        y = tw.ones((2, 3), dtype=tw.float64, requires_grad=True)
        Add.apply(x, y).sum().backward()
        assert x.grad.tolist() == [[2.0, 2.0, 2.0]]
        assert (x.grad.dtype, y.grad.dtype) == (tw.float32, tw.float64)


class TestOnceDifferentiable:
    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 0.5

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return tw.asarray(np.array(g.numpy()) * 0.5)

    def test_first_gradients(self) -> None:
        x = leaf(1.0, 2.0)
        self.Half.apply(x).sum().backward()
        assert x.grad.tolist() == [0.5, 0.5]

    def test_second_gradients_raise(self) -> None:
        x = leaf(1.0, 2.0)
        (g,) = tw.grad((self.Half.apply(x) * x).sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="Half: its backward is marked once_differentiable"):
            g.sum().backward()


class TestErrors:
    @staticmethod
    def made(backward, arguments=1):
        class Broken(Function):
            @staticmethod
            def forward(ctx, *args):
                ctx.save_for_backward(args[0])
                return args[0] * 1.0

        Broken.backward = staticmethod(backward)
        x = leaf(1.0, 2.0)
        return x, Broken.apply(x, *range(arguments - 1)).sum()

    @pytest.mark.parametrize(
        ("backward", "error", "text"),
        [
            (lambda ctx, g: (g, g), RuntimeError, "returned 2 gradients for 1 arguments"),
            (lambda ctx, g: (), RuntimeError, "returned 0 gradients for 1 arguments"),
            (lambda ctx, g: 3.0, TypeError, "returned a float as gradient 0"),
            (lambda ctx, g: g[:1], ValueError, r"gradient 0 of shape \(1,\) for an input of"),
            (lambda ctx, g: g > 0, TypeError, "gradients are of a floating type"),
        ],
    )
    def test_wrong_gradients(self, backward, error, text) -> None:
        x, y = self.made(backward)
        with pytest.raises(error, match=f"Broken: backward .*{text}|Broken: .*{text}"):
            y.backward()
        assert x.grad is None

    def test_gradients_of_what_is_no_tensor(self) -> None:
        _, y = self.made(lambda ctx, g: (g, g), arguments=2)
        with pytest.raises(RuntimeError, match="for argument 1, which is no tensor"):
            y.backward()

    def test_exceptions_pass_through(self) -> None:
        class OwnError(Exception):
            pass

        def backward(ctx, g):
            raise OwnError("from backward")

        _, y = self.made(backward)
        with pytest.raises(OwnError, match="from backward"):
            y.backward()

    def test_a_second_pass_needs_retain_graph(self) -> None:
        y = Cube.apply(leaf(2.0))
        y.backward(retain_graph=True)
        y.backward()
        with pytest.raises(RuntimeError, match="Cube: backward through this op a second time"):
            y.backward()

    def test_saved_values_must_stay(self) -> None:
        x = leaf(2.0)
        z = x * 1.0
        y = Cube.apply(z)
        with tw.no_grad():
            z += 1.0
        with pytest.raises(RuntimeError, match=r"Cube: .*changed in place since"):
            y.backward()

    def test_saved_tensors_are_there_in_backward(self) -> None:
        class Early(Function):
            @staticmethod
            def forward(ctx, x):
                return ctx.saved_tensors

        with pytest.raises(RuntimeError, match="Early: saved_tensors can be read while"):
            Early.apply(leaf(1.0))

    def test_what_is_no_tensor_is_an_attribute(self) -> None:
        class Keep(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(3)

        with pytest.raises(TypeError, match="Keep: save_for_backward takes tensors or None"):
            Keep.apply(leaf(1.0))

    def test_parts_that_are_missing(self) -> None:
        with pytest.raises(NotImplementedError, match="define forward"):
            Function.apply(leaf(1.0))


class TestCycles:
    """What a context holds ends with its graph."""

    @staticmethod
    def ends(make) -> bool:
        class Marker:
            pass

        marker = Marker()
        alive = weakref.ref(marker)
        make(marker)
        del marker
        gc.collect()
        return alive() is None

    @staticmethod
    def keeping(choose):
        class Keep(Function):
            @staticmethod
            def forward(ctx, x, marker):
                y = x * 2.0
                ctx.marker = marker
                ctx.kept = choose(x, y)
                return y

            @staticmethod
            def backward(ctx, g):
                return g * 2.0, None

        return Keep

    @pytest.mark.parametrize(
        "choose",
        [lambda x, y: None, lambda x, y: x, lambda x, y: y, lambda x, y: [x, y]],
        ids=["nothing", "argument", "result", "list"],
    )
    def test_attributes_end(self, choose) -> None:
        function = self.keeping(choose)

        def make(marker):
            function.apply(leaf(1.0) * 1.0, marker)

        def after_backward(marker):
            (function.apply(leaf(1.0) * 1.0, marker) * 3.0).backward()

        assert self.ends(make)
        assert self.ends(after_backward)

    def test_a_result_that_knows_what_follows(self) -> None:
        contexts = []

        class Keep(Function):
            @staticmethod
            def forward(ctx, x, marker):
                ctx.marker = marker
                contexts.append(weakref.ref(ctx))
                return x * 2.0

            @staticmethod
            def backward(ctx, g):
                return g * 2.0, None

        def make(marker):
            y = Keep.apply(leaf(1.0), marker)
            contexts[-1]().later = (y * y).sum()

        assert self.ends(make)


def test_backward_from_several_results() -> None:
    x = leaf(1.0, 2.0)
    tw.autograd.backward([x * 2.0, (x * x).sum()], [tw.ones((2,), dtype=tw.float64), None])
    assert x.grad.tolist() == [4.0, 6.0]
    with pytest.raises(TypeError, match="backward: expected tensors, got int"):
        tw.autograd.backward([3])


def test_names() -> None:
    assert tw.autograd.grad is tw.grad
    assert tw.autograd.gradcheck is tw.gradcheck
    assert tw.autograd.no_grad is tw.no_grad
    assert pickle.loads(pickle.dumps(Cube)) is Cube
