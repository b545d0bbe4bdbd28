"""Small calls that were made before: what changed meanwhile counts, whatever was remembered."""

from __future__ import annotations

import numpy as np
import pytest
from cases import arrays

import tilewright as tw


def ran(function) -> str:
    with tw.explain() as report:
        function()
    return report[-1].kernel


@pytest.fixture
def matrices() -> tuple[tw.Tensor, tw.Tensor]:
    rng = np.random.default_rng(3)
    return tuple(tw.asarray(rng.standard_normal((9, 9)).astype("float32")) for _ in "ab")


def test_values_are_those_of_the_operands_at_hand():
    rng = np.random.default_rng(4)
    for _ in range(5):
        x, y = (rng.standard_normal((5, 7)).astype("float32") for _ in "xy")
        got = arrays.array(tw.asarray(x) @ tw.asarray(y).mT)
        np.testing.assert_allclose(got, x.astype("float64") @ y.T.astype("float64"), rtol=1e-5)
        np.testing.assert_allclose(arrays.array(tw.asarray(x).sum(axis=0)), x.sum(0), rtol=1e-4)


def test_earlier_results_are_left_alone(matrices):
    a, b = matrices
    first = a @ b
    before = arrays.array(first).copy()
    second = a @ (b + 1)
    assert (arrays.array(first) == before).all()
    assert (arrays.array(second) != before).any()


def test_a_kernel_forced_between_two_calls_runs(matrices):
    a, b = matrices
    want = arrays.array(a).astype("float64") @ arrays.array(b).astype("float64")
    for kernel in ("naive", "tiled", "packed"):
        _ = a @ b
        with tw.kernels.use(matmul=kernel):
            assert ran(lambda: a @ b) == kernel
            np.testing.assert_allclose(arrays.array(a @ b), want, atol=1e-5)


def test_the_default_type_of_a_later_call_holds():
    x = tw.asarray([1, 2, 3])
    try:
        for dtype in (tw.float32, tw.float64, tw.float32):
            tw.set_default_dtype(dtype)
            assert (
                tw.softmax(x).dtype
                == tw.logsumexp(x).dtype
                == (x / 2).dtype
                == tw.eye(3).dtype
                == dtype
            )
    finally:
        tw.set_default_dtype(tw.float32)


@pytest.mark.parametrize("axis", [0, 1])
def test_words_and_strides_tell_calls_apart(axis):
    x = np.arange(36, dtype="float32").reshape(6, 6)
    for view in (tw.asarray(x), tw.asarray(x).mT, tw.asarray(x)[::-1]):
        want = arrays.array(view).sum(axis)
        assert arrays.array(view.sum(axis=axis)).tolist() == want.tolist()
        assert arrays.array(view.sum(axis=axis)).tolist() == want.tolist()


def test_wrong_shapes_are_refused_after_right_ones(matrices):
    a, b = matrices
    for _ in range(2):
        _ = a @ b
        with pytest.raises(ValueError, match="inner sizes differ"):
            a @ b[:4]
