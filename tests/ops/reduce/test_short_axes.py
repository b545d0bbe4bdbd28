"""Ops along axes of a few elements, whose groups kernels take some at a time, in any layout."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

Layout = tuple[np.ndarray, tw.Tensor]


def any_layout(rng: np.random.Generator, base: np.ndarray, dtype: str = "") -> Layout:
    """The same view of an array and of a tensor: axes permuted, cut, stepped, repeated."""
    view, x = base, tw.asarray(base)
    if dtype:
        x = x.astype(getattr(tw, dtype))
    order = tuple(int(i) for i in rng.permutation(base.ndim))
    view, x = view.transpose(order), tw.permute_dims(x, order)
    some = tuple(slice(*((None, None, None), (1, None, None), (None, None, 2), (None, None, -1))[i])
                 for i in rng.integers(0, 4, base.ndim))  # fmt: skip
    view, x = view[some], x[some]
    axis = int(rng.integers(0, base.ndim))
    if rng.random() < 0.3 and view.shape[axis] > 1:
        one = tuple(slice(1) if i == axis else slice(None) for i in range(base.ndim))
        view, x = np.broadcast_to(view[one], view.shape), tw.broadcast_to(x[one], x.shape)
    return view, x


def any_shape(rng: np.random.Generator) -> tuple[int, ...]:
    lengths = [1, 2, 3, 4, 5, 7] if rng.random() < 0.3 else [1, 2, 3, 4, 5, 8, 13, 17, 40, 70]
    return tuple(int(n) for n in rng.choice(lengths, rng.integers(1, 5)))


DTYPES = ("bool", "int8", "uint16", "int32", "float32", "int64", "float64", "complex128")


@pytest.mark.parametrize("dtype", DTYPES)
def test_take(rng: np.random.Generator, threads: None, dtype: str) -> None:
    for i in range(150):
        tw.set_num_threads(1 + i % 2)
        view, x = any_layout(rng, rng.integers(0, 100, any_shape(rng)).astype(dtype))
        axis = int(rng.integers(0, view.ndim))
        n = view.shape[axis]
        if n == 0:
            continue
        index = rng.integers(-n, n, rng.choice([0, 1, 2, 3, 7, 63, 64, 65, 300]))
        got = tw.take(x, tw.asarray(index), axis=axis)
        np.testing.assert_array_equal(got.numpy(), view.take(index, axis), f"{x.strides} {axis}")


def test_indices_out_of_range() -> None:
    x = tw.zeros((5, 3))
    for bad in (-4, 3, 2**62, -(2**63)):
        index = np.zeros(100, dtype=np.int64)
        index[70] = bad
        with pytest.raises(IndexError, match=str(bad)):
            tw.take(x, tw.asarray(index), axis=1)


@pytest.mark.parametrize("dtype", DTYPES[:-1])
def test_order(rng: np.random.Generator, isa: str, dtype: str) -> None:
    """Sorts, and places of the first extremum; NaN is the largest to a sort and any extremum."""
    for _ in range(80):
        base = rng.integers(0, 4, any_shape(rng)).astype(dtype)
        if dtype.startswith("float"):
            base[rng.random(base.shape) < 0.1] = np.nan
        view, x = any_layout(rng, base)
        axis = int(rng.integers(0, view.ndim))
        if view.shape[axis] == 0:
            continue
        where = f"{x.shape} {x.strides} along {axis}"
        np.testing.assert_array_equal(tw.sort(x, axis=axis).numpy(), np.sort(view, axis), where)
        places = np.argsort(view, axis, kind="stable")
        np.testing.assert_array_equal(tw.argsort(x, axis=axis).numpy(), places, where)
        np.testing.assert_array_equal(tw.argmax(x, axis=axis).numpy(), view.argmax(axis), where)
        np.testing.assert_array_equal(tw.argmin(x, axis=axis).numpy(), view.argmin(axis), where)
        np.testing.assert_array_equal(tw.max(x, axis=axis).numpy(), view.max(axis), where)


def test_a_sort_of_repeated_elements_is_a_copy() -> None:
    x = tw.broadcast_to(tw.asarray([[3.0], [1.0]]), (2, 4))
    y = tw.sort(x, axis=1)
    y[0, 0] = 7
    assert x.tolist() == [[3.0] * 4, [1.0] * 4]
    leaf = tw.asarray([[3.0], [1.0]]).requires_grad_()
    tw.sort(tw.broadcast_to(leaf, (2, 4)), axis=1).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [[4.0], [4.0]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_few_rows(rng: np.random.Generator, isa: str, dtype: str) -> None:
    """Factors whose product is out of float32's range on the way, but not in the end."""
    for _ in range(120):
        base = rng.uniform(0.5, 1.5, any_shape(rng))
        base[rng.random(base.shape) < 0.05] = 0
        if max(base.shape) <= 7:  # float64 holds the product of so many
            base *= 2.0 ** rng.choice([-100, 100], base.shape)
        view, x = any_layout(rng, base.astype(dtype))
        axis = int(rng.integers(0, view.ndim))
        with np.errstate(all="ignore"):
            want = np.prod(view.astype(np.longdouble), axis=axis).astype(dtype)
        eps = view.shape[axis] * float(np.finfo(dtype).eps)
        got = tw.prod(x, axis=axis).numpy()
        np.testing.assert_allclose(got, want, eps, 1e-44, err_msg=f"{x.shape} {x.strides} {axis}")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_running_sums(rng: np.random.Generator, isa: str, dtype: str, reverse: bool) -> None:
    for n in (1, 2, 3, 16, 33, 63, 64, 65, 130):
        for shape in ((1, n), (2, n), (7, n), (30, n), (n, 4), (3, n, 4), (2, n, 5)):
            base = rng.integers(-9, 9, shape).astype(dtype)
            for _ in range(3):
                view, x = any_layout(rng, base)
                axis = int(rng.integers(0, view.ndim))
                turned = np.flip(view, axis) if reverse else view
                want = np.cumsum(turned, axis, dtype=dtype)
                got = tw.cumulative_sum(tw.flip(x, axis=axis) if reverse else x, axis=axis)
                np.testing.assert_array_equal(got.numpy(), want)
                back = tw.flip(tw.cumulative_sum(tw.flip(x, axis=axis), axis=axis), axis=axis)
                np.testing.assert_array_equal(
                    back.numpy(), np.flip(np.cumsum(np.flip(view, axis), axis, dtype=dtype), axis)
                )


@pytest.mark.parametrize("n", [1, 2, 7, 8, 15, 16, 31, 32, 33, 64])
def test_bfloat16(rng: np.random.Generator, isa: str, n: int) -> None:
    """Whole numbers whose sums bfloat16 holds: exact in any order."""
    for shape in ((n, 3), (3, n), (40, n), (n, 40), (5, n, 3), (5, 4, n)):
        base = rng.integers(-1, 2, shape).astype(np.float32)
        for _ in range(4):
            view, x = any_layout(rng, base, "bfloat16")
            for axis in range(view.ndim):
                if view.shape[axis] == 0:
                    continue
                for got, want in (
                    (tw.sum(x, axis=axis), view.sum(axis)),
                    (tw.max(x, axis=axis), view.max(axis)),
                    (tw.norm(x, p=1, axis=axis), np.abs(view).sum(axis)),
                    (tw.vecdot(x, x, axis=axis), (view * view).sum(axis)),
                ):
                    np.testing.assert_array_equal(got.astype(tw.float32).numpy(), want)
