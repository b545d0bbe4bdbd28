"""Views and in-place changes: either the right gradient or an error, never a wrong gradient."""

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw


def leaf(*shape: int) -> tw.Tensor:
    return tw.ones(shape, requires_grad=True)


class TestStaleViews:
    def test_a_view_from_before_a_recorded_change_is_refused(self) -> None:
        y = leaf(4) * 2
        view = y[1:]
        y *= 3
        with pytest.raises(RuntimeError, match="taken before its base was changed"):
            view * view

    def test_also_when_the_view_took_no_part_in_a_graph(self) -> None:
        base, x = tw.zeros(3), leaf(3)
        view = base[1:]
        base += x
        with pytest.raises(RuntimeError, match="take the view again"):
            x[1:] * view

    def test_also_after_index_assignment(self) -> None:
        y = leaf(2, 2) * 1
        transposed = y.T
        y[0] = 5
        with pytest.raises(RuntimeError, match="take the view again"):
            transposed.sum()

    def test_a_view_taken_again_has_the_right_gradient(self) -> None:
        x = leaf(3)
        y = x * 2
        y[0] = 1.0
        view = y[1:]
        (view * view).sum().backward()
        assert x.grad.tolist() == [0.0, 8.0, 8.0]

    def test_a_row_buffer_written_step_by_step(self) -> None:
        x = leaf(2, 2)
        h = tw.zeros((3, 2))
        h[0] = x[0]
        h[1] = h[0] * 3
        h[1].sum().backward()
        assert x.grad.tolist() == [[3.0, 3.0], [0.0, 0.0]]

    def test_a_detached_tensor_sees_changes_as_constants(self) -> None:
        x = leaf(3)
        y = x * 2
        constant = y.detach()
        y *= 3
        (constant + y).sum().backward()
        assert constant.tolist() == [6.0] * 3
        assert x.grad.tolist() == [6.0] * 3


class TestHiddenChanges:
    def test_a_view_made_without_grad_cannot_change_the_graph_behind_its_back(self) -> None:
        y = leaf(3) * 2
        with tw.no_grad():
            view = y[1:]
        for change in (lambda: view.mul_(10), view.zero_, lambda: view.fill_(1)):
            with pytest.raises(RuntimeError, match="a view of a tensor in the graph"):
                change()
        with pytest.raises(RuntimeError, match="a view of a tensor in the graph"):
            view[0] = 3
        assert y.tolist() == [2.0] * 3

    def test_nor_a_view_of_what_became_a_leaf(self) -> None:
        x = tw.zeros(3)
        view = x[1:]
        x.requires_grad_()
        with pytest.raises(RuntimeError, match="a view of a tensor in the graph"):
            view += 1

    def test_without_recording_it_may(self) -> None:
        w = leaf(3)
        with tw.no_grad():
            row = w[1:]
            row *= 2
        assert w.tolist() == [1.0, 2.0, 2.0]


class TestSharedElements:
    @pytest.mark.parametrize(
        "change",
        [
            lambda x: x.copy_(tw.arange(3.0)),
            lambda x: x.add_(1),
            lambda x: x.__setitem__(1, 4),
        ],
    )
    def test_broadcast_tensors_are_not_written(self, change: Callable[[tw.Tensor], object]) -> None:
        x = tw.broadcast_to(tw.zeros(1), (3,))
        with pytest.raises(ValueError, match="share memory; copy"):
            change(x)
        assert x.tolist() == [0.0] * 3

    def test_their_arrays_are_read_only(self) -> None:
        x = tw.broadcast_to(tw.zeros(1), (3,))
        assert not np.asarray(x).flags.writeable
        assert np.asarray(x.copy()).flags.writeable


class TestLargeNumbers:
    def test_concat_counts_its_extent(self) -> None:
        huge = tw.broadcast_to(tw.ones(1), (2**62,))
        with pytest.raises(ValueError, match="more elements than 64 bits can count"):
            tw.concat([huge] * 4)

    def test_unsigned_indices_are_not_read_as_negative(self) -> None:
        with pytest.raises(IndexError, match="18446744073709551615 is out of range"):
            tw.ones(3)[tw.asarray([2**64 - 1], dtype=tw.uint64)]

    def test_wide_integers_fit_floating_tensors(self) -> None:
        x = tw.zeros(2)
        x[0] = 10**30
        assert x[0].item() == pytest.approx(1e30, rel=1e-6)
        with pytest.raises(OverflowError, match="does not fit int32"):
            tw.zeros(2, dtype=tw.int32) + 10**30
        with pytest.raises(OverflowError, match="beyond 64 bits"):
            tw.asarray(10**30)

    def test_sums_convert_their_terms_first(self) -> None:
        assert tw.full((3,), 1.7).sum(dtype=tw.int64).item() == 3
        with pytest.raises(TypeError, match="use any or all"):
            tw.ones(3).sum(dtype=tw.bool)
