"""gradcheck and gradgradcheck: pass right gradients, and name wrong ones."""

import pytest

import tilewright as tw


def leaf(*shape, seed=0):
    stream = tw.Generator(seed)
    return tw.normal(0.0, 1.0, shape, dtype=tw.float64, generator=stream, requires_grad=True)


def lost_half(x):
    """x * x, of which one factor's gradient is lost."""
    return x * x.detach()


def lost_second(x):
    """x ** 3 with a right first gradient, of which the second loses a part."""
    return x.detach() * x.detach() * x * 3.0 - 2.0 * x.detach() * x.detach() * x.detach()


MODES = pytest.mark.parametrize("fast", [False, True])


@MODES
class TestRight:
    def test_one_input(self, fast):
        assert tw.gradcheck(tw.tanh, leaf(3, 2), fast=fast)

    def test_many_inputs_and_outputs(self, fast):
        def fn(a, b, factor):
            return a @ b * factor, (a * a).sum(), tw.argmax(b)

        inputs = (leaf(2, 3), leaf(3, 2, seed=1), 3)
        assert tw.gradcheck(fn, inputs, fast=fast)
        assert tw.gradgradcheck(fn, inputs, fast=fast)

    def test_second_gradients(self, fast):
        assert tw.gradgradcheck(lambda x: tw.exp(x) * tw.sin(x), leaf(4), fast=fast)

    def test_second_gradients_of_linear_functions_are_none(self, fast):
        assert tw.gradgradcheck(lambda x: x * 2.0 + 1.0, leaf(3), fast=fast)

    def test_given_gradients_that_come_in(self, fast):
        assert tw.gradgradcheck(tw.exp, leaf(3), leaf(3, seed=4), fast=fast)

    def test_strided_scalar_and_empty_inputs(self, fast):
        wide = leaf(3, 4).detach().T[::-1].requires_grad_()
        assert tw.gradcheck(lambda x: (x * x).sum(axis=0), wide, fast=fast)
        assert tw.gradcheck(tw.exp, leaf(), fast=fast)
        assert tw.gradcheck(tw.exp, leaf(0, 3), fast=fast)

    def test_an_input_that_is_not_used(self, fast):
        assert tw.gradcheck(lambda a, b: a * 2.0, (leaf(2), leaf(2, seed=1)), fast=fast)

    def test_outputs_that_are_views_of_inputs(self, fast):
        assert tw.gradcheck(lambda x: x.reshape(4), leaf(2, 2), fast=fast)

    def test_inputs_are_restored(self, fast):
        x = leaf(5)
        before = x.tolist()
        tw.gradcheck(tw.exp, x, fast=fast)
        assert x.tolist() == before
        assert x.grad is None

        def fails(x):
            raise KeyError("inside")

        with pytest.raises(KeyError):
            tw.gradcheck(fails, x, fast=fast)
        assert x.tolist() == before


@MODES
class TestWrong:
    def test_wrong_value(self, fast):
        x = tw.asarray([[2.0, 3.0]], dtype=tw.float64).requires_grad_()
        text = (
            r"gradcheck: d output 0\[0, 0\] / d input 0\[0, 0\]: analytical 2, numerical 4.*"
            r"\(difference 2, atol 1e-05, rtol 0\.001\)"
        )
        with pytest.raises(tw.Error, match=text) as caught:
            tw.gradcheck(lost_half, x, fast=fast)
        assert isinstance(caught.value, RuntimeError)
        assert type(caught.value).__name__ == "GradcheckError"

    def test_names_the_input_and_element(self, fast):
        def fn(a, b):
            scale = tw.asarray([1.0, 0.0], dtype=tw.float64)
            return a.sum(), b * (1.0 - scale) + b.detach() * scale

        with pytest.raises(RuntimeError, match=r"d output 1\[0\] / d input 1\[0\]: analytical 0, "):
            tw.gradcheck(fn, (leaf(2), leaf(2, seed=1)), fast=fast)

    def test_graph_cut_off(self, fast):
        with pytest.raises(RuntimeError, match="analytical 0, numerical 2"):
            tw.gradcheck(lambda x: x.detach() * 2.0, leaf(2), fast=fast)

    def test_without_exception(self, fast):
        assert tw.gradcheck(lost_half, leaf(2), raise_exception=False, fast=fast) is False

    def test_wrong_second_gradient(self, fast):
        x = leaf(3)
        assert tw.gradcheck(tw.exp, x, fast=fast)
        with pytest.raises(RuntimeError, match="d output 0"):
            tw.gradgradcheck(lost_second, x, fast=fast)

    def test_nan_is_never_right(self, fast):
        x = tw.asarray([-1.0], dtype=tw.float64).requires_grad_()
        with pytest.raises(RuntimeError, match="nan"):
            tw.gradcheck(tw.log, x, fast=fast)


class TestRefused:
    def test_other_types(self):
        with pytest.raises(TypeError, match="input 1 is float32; differences need float64"):
            tw.gradcheck(tw.add, (leaf(2), tw.randn(2, requires_grad=True)))

    def test_nothing_to_check(self):
        with pytest.raises(ValueError, match="no input is a tensor that requires grad"):
            tw.gradcheck(tw.exp, leaf(2).detach())

    def test_shared_elements(self):
        x = tw.broadcast_to(leaf(1).detach(), (3,)).requires_grad_()
        with pytest.raises(ValueError, match="elements of input 0 share memory"):
            tw.gradcheck(tw.exp, x)

    def test_outputs(self):
        with pytest.raises(TypeError, match="output 0 is a float, not a tensor"):
            tw.gradcheck(lambda x: 1.0, leaf(2))
        with pytest.raises(TypeError, match="output 0 is float32"):
            tw.gradcheck(lambda x: x.astype(tw.float32), leaf(2))
