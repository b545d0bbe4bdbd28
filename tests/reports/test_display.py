"""What a person sees: rows, columns, numbers, and what is told beside them."""

import pytest

import tilewright as tw
from tilewright import nn


def text_of(values, dtype=tw.float32):
    return repr(tw.asarray(values, dtype=dtype))


class TestNumbers:
    def test_columns_are_aligned(self):
        assert text_of([[1.5, -2.0], [0.25, 300.0]]) == (
            "tensor([[  1.5000,  -2.0000],\n"
            "        [  0.2500, 300.0000]], dtype=float32)"
        )  # fmt: skip

    def test_whole_numbers_have_no_decimals(self):
        assert text_of([1.0, -20.0, 0.0]) == "tensor([  1., -20.,   0.], dtype=float32)"

    @pytest.mark.parametrize("values", [[1e-5, 1.0], [1.5e8, 1.0], [1e-3, 1e3]])
    def test_exponents_where_decimals_would_hide_digits(self, values):
        text = text_of(values, tw.float64)
        for value in values:
            assert f"{value:.4e}" in text

    def test_special_values(self):
        text = text_of([float("nan"), float("inf"), -float("inf"), 1.5])
        assert text == "tensor([   nan,    inf,   -inf, 1.5000], dtype=float32)"
        assert text_of([float("nan"), -0.0]) == "tensor([nan, -0.], dtype=float32)"

    def test_integers_and_truth(self):
        assert text_of([1, -20], tw.int8) == "tensor([  1, -20], dtype=int8)"
        assert text_of([[255]], tw.uint8) == "tensor([[255]], dtype=uint8)"
        assert text_of([True, False], tw.bool) == "tensor([ True, False], dtype=bool)"

    @pytest.mark.parametrize("dtype", [tw.float16, tw.bfloat16, tw.float32, tw.float64])
    def test_every_floating_type(self, dtype):
        assert text_of([0.5, 2.25], dtype) == f"tensor([0.5000, 2.2500], dtype={dtype})"

    def test_complex(self):
        text = text_of([1 + 2j, -1.5 - 0.25j], tw.complex64)
        assert text == "tensor([ 1.0000+2.0000j, -1.5000-0.2500j], dtype=complex64)"


class TestShapes:
    def test_one_number(self):
        assert text_of(3.5) == "tensor(3.5000, dtype=float32)"

    def test_empty_tells_its_shape(self):
        assert text_of([]) == "tensor([], dtype=float32)"
        assert repr(tw.zeros((0, 3))) == "tensor([], shape=(0, 3), dtype=float32)"

    def test_blocks_are_parted_by_empty_lines(self):
        assert repr(tw.arange(4).reshape(2, 1, 2)) == (
            "tensor([[[0, 1]],\n"
            "\n"
            "        [[2, 3]]], dtype=int64)"
        )  # fmt: skip

    def test_long_rows_are_wrapped(self):
        lines = repr(tw.arange(100)).splitlines()
        assert all(len(line) <= 80 for line in lines)
        assert lines[0].startswith("tensor([ 0,  1,")
        assert lines[1].startswith(" " * 8)

    def test_more_than_a_thousand_elements_are_summarised(self):
        assert "..." not in repr(tw.zeros((1000,)))
        assert repr(tw.arange(1001)) == (
            "tensor([   0,    1,    2, ...,  998,  999, 1000], shape=(1001,), dtype=int64)"
        )
        assert repr(tw.arange(2000).reshape(1000, 2)).splitlines() == [
            "tensor([[   0,    1],",
            "        [   2,    3],",
            "        [   4,    5],",
            "        ...,",
            "        [1994, 1995],",
            "        [1996, 1997],",
            "        [1998, 1999]], shape=(1000, 2), dtype=int64)",
        ]

    def test_reads_only_the_edges(self):
        shown = repr(tw.broadcast_to(tw.asarray([[1.5], [2.5]]), (2, 10**15)))
        assert "shape=(2, 1000000000000000)" in shown

    def test_strided(self):
        assert repr(tw.arange(6).reshape(2, 3).T[::-1]) == (
            "tensor([[2, 5],\n"
            "        [1, 4],\n"
            "        [0, 3]], dtype=int64)"
        )  # fmt: skip


class TestFacts:
    def test_place_in_the_graph(self):
        x = tw.asarray([1.5]).requires_grad_()
        assert repr(x) == "tensor([1.5000], dtype=float32, requires_grad=True)"
        assert repr(x + x) == "tensor([3.], dtype=float32, op=add)"

    def test_name_and_class(self):
        x = nn.Parameter(tw.asarray([1.5]))
        x.name = "bias"
        assert repr(x) == "Parameter([1.5000], dtype=float32, requires_grad=True, name='bias')"

    def test_showing_changes_nothing(self):
        x = tw.randn(2000, requires_grad=True)
        calls = []
        x.register_forward_hook(calls.append)
        y = x * 2.0
        calls.clear()
        version = x.version
        repr(x), repr(y)
        assert not calls
        assert x.version == version
        y.sum().backward()
        assert x.grad[0].item() == 2.0
