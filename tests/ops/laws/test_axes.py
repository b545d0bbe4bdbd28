"""Axis arguments of every function that takes some, against NumPy: none, one, several, repeated,
out of range, and what is no axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from subcases import each

import tilewright as tw

SHAPES = ((), (3,), (2, 3), (0, 3), (1, 3, 1), (2, 2, 3))
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "var": np.var,
    "std": np.std,
    "max": np.max,
    "min": np.min,
    "any": np.any,
    "all": np.all,
}
ONE_AXIS: dict[str, Callable[..., Any]] = {"argmax": np.argmax, "argmin": np.argmin}
AXES = (None, 0, -1, 1, -2, 2, -3, 5, -6, (), (0,), (0, 1), (0, -1), (-1, 0), (0, 0), (0, -2), (5,))
NO_AXES = (True, False, (True,), 1.0, (1.0,), "0")


def values(shape: tuple[int, ...]) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5 - 1.5).astype(np.float64)


def outcome(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The result as an array, or the kind of error."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(function(*args, **options))
    except (IndexError, ValueError) as error:  # NumPy's axis error is both
        return IndexError if isinstance(error, IndexError) else ValueError


def agree(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, type) or isinstance(theirs, type):
        return ours is theirs
    return ours.shape == theirs.shape and np.allclose(ours, theirs, equal_nan=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of means over nothing
@each("keepdims", [False, True])
@each("axis", AXES, ids=str)
@each("name", [*REDUCTIONS, *ONE_AXIS])
def test_reductions_take_the_axes_that_numpy_takes(name: str, axis: Any, keepdims: bool) -> None:
    if name in ONE_AXIS and isinstance(axis, tuple):
        pytest.skip("takes one axis")
    reference = {**REDUCTIONS, **ONE_AXIS}[name]
    for shape in SHAPES:
        if shape == () and isinstance(axis, int):
            continue  # NumPy lets scalars pass as if they had one axis
        x = values(shape)
        theirs = outcome(reference, x, axis=axis, keepdims=keepdims)
        options = {"axis": axis, "keepdims": keepdims}
        for ours in (getattr(tw, name), lambda t, **o: getattr(t, name)(**o)):
            got = outcome(ours, tw.asarray(x), **options)
            assert agree(got, theirs), (shape, got, theirs)


@pytest.mark.parametrize("name", ["sum", "var", "std", "max", "logsumexp"])
def test_no_axes_leave_every_element_its_own_gradient(name: str) -> None:
    x = tw.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=tw.float64).requires_grad_()
    y = getattr(tw, name)(x, axis=())
    assert y.shape == (2, 2)
    y.sum().backward()
    expected = 0.0 if name in ("var", "std") else 1.0
    assert x.grad.tolist() == [[expected] * 2] * 2


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("n", [2, 5, 40, 300])
def test_slopes_of_logsumexp_beside_infinity_are_zero(n: int, columns: bool) -> None:
    """exp(x - y): NaN at the infinity itself, everywhere beside NaN or where all is -infinity."""
    rows = np.tile(np.linspace(-900, 900, n), (5, 1))
    rows[0, 1] = rows[1, 0] = rows[1, 1] = rows[2, 0] = np.inf
    rows[2, 1], rows[3] = np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        y = np.array([np.inf, np.inf, np.nan, -np.inf, np.logaddexp.reduce(rows[4])])
        expected = 2 * np.exp(rows - y[:, None])
    x = tw.asarray(rows.T.copy() if columns else rows).requires_grad_()
    tw.logsumexp(x, axis=0 if columns else 1).backward(tw.full((5,), 2.0, dtype=tw.float64))
    got = x.grad.numpy()
    np.testing.assert_allclose(got.T if columns else got, expected, rtol=1e-12, atol=1e-300)


def test_the_correction_counts_where_nothing_is_reduced() -> None:
    x = tw.ones((2,), dtype=tw.float64)
    assert tw.var(x, axis=()).tolist() == [0, 0]
    assert np.isnan(np.asarray(tw.var(x, axis=(), correction=1))).all()  # 0 / 0, as in NumPy


ALONG: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "flip": (tw.flip, np.flip),
    "squeeze": (tw.squeeze, np.squeeze),
    "squeeze method": (lambda x, axis: x.squeeze(axis=axis), np.squeeze),
    "expand_dims": (tw.expand_dims, np.expand_dims),
    "concat": (
        lambda x, axis: tw.concat([x, x], axis=axis),
        lambda x, axis: np.concatenate([x, x], axis=axis),
    ),
    "stack": (
        lambda x, axis: tw.stack([x, x], axis=axis),
        lambda x, axis: np.stack([x, x], axis=axis),
    ),
    "take": (
        lambda x, axis: tw.take(x, tw.asarray([0, -1]), axis=axis),
        lambda x, axis: np.take(x, [0, -1], axis=axis),
    ),
    "permute_dims": (
        lambda x, axis: tw.permute_dims(x, axes=axis),
        lambda x, axis: np.transpose(x, axes=axis),
    ),
}
SEVERAL = ("flip", "squeeze", "squeeze method", "permute_dims")


@each("axis", AXES[1:], ids=str)
@each("name", ALONG)
def test_other_functions_take_the_axes_that_numpy_takes(name: str, axis: Any) -> None:
    ours, theirs = ALONG[name]
    if isinstance(axis, tuple) and name not in SEVERAL:
        pytest.skip("takes one axis")
    for shape in SHAPES[1:]:
        x = values(shape)
        got, expected = outcome(ours, tw.asarray(x), axis=axis), outcome(theirs, x, axis=axis)
        if isinstance(got, type) and isinstance(expected, type):
            continue  # which of the two errors comes first is each library's own matter
        assert agree(got, expected), (shape, got, expected)


@each("axis", NO_AXES, ids=str)
@each("name", [*REDUCTIONS, *ONE_AXIS, *ALONG, "softmax", "log_softmax"])
def test_bools_and_fractions_are_no_axes(name: str, axis: Any) -> None:
    call = ALONG[name][0] if name in ALONG else getattr(tw, name)
    with pytest.raises(ValueError if axis == 2**70 else TypeError):
        call(tw.ones((2, 3)), axis=axis)


@pytest.mark.parametrize("axis", [2**70, -(2**70)])
@pytest.mark.parametrize("name", ["sum", "argmax", "flip", "concat", "softmax"])
def test_axes_beyond_64_bits_are_out_of_range(name: str, axis: int) -> None:
    call = ALONG[name][0] if name in ALONG else getattr(tw, name)
    with pytest.raises(ValueError, match="axis is out of range"):
        call(tw.ones((2, 3)), axis=axis)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: tw.flip(x, axis=(0, 0)), "flip: axis 0 is repeated"),
        (lambda x: tw.flip(x, axis=(0, -2)), "flip: axis -2 is repeated"),
        (lambda x: tw.squeeze(x, axis=(0, -2)), "squeeze: axis -2 is repeated"),
        (lambda x: tw.sum(x, axis=(1, 1)), "sum: axis 1 is repeated"),
        (lambda x: tw.std(x, axis=(1, 1)), "std: axis 1 is repeated"),
        (lambda x: tw.broadcast_to(x, (-1, 2, 3)), "broadcast_to: negative extent in (-1, 2, 3)"),
        (lambda _: tw.broadcast_shapes([(-1,)]), "broadcast_shapes: shape (-1,) has a negative"),
    ],
)
def test_refused_axes_and_extents_are_named(call: Callable[..., Any], text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        call(tw.ones((1, 3)))
    assert text in str(caught.value)


def test_transpose_swaps_two_numbers_and_orders_by_a_sequence() -> None:
    values = np.arange(24.0).reshape(2, 3, 4)
    x = tw.asarray(values)
    calls: list[Callable[[Any], Any]] = [
        lambda x: x.transpose(), lambda x: x.transpose(None), lambda x: x.transpose(2, 0, 1),
        lambda x: x.transpose((1, 0, 2)), lambda x: x.transpose([0, -1, 1]), np.transpose,
        lambda x: np.transpose(x, (1, 2, 0)), lambda x: np.transpose(x, axes=[1, 2, 0]),
        lambda x: x[0].transpose((0, 1)), lambda x: x[0, 0].transpose(0),
        lambda x: x[0, 0, 0].transpose(()), lambda x: x[0].transpose((1, 0)),
    ]  # fmt: skip
    for call in calls:
        np.testing.assert_array_equal(call(x), call(values))
    for a, b in ((0, 1), (1, 0), (-1, 0), (2, 2)):
        want = values.swapaxes(a, b)
        for got in (x.transpose(a, b), tw.transpose(x, a, b), x.transpose(dim0=a, dim1=b)):
            np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(tw.transpose(x, axes=(2, 1, 0)), values.T)
    assert x[0].transpose(0, 1).shape == (4, 3)  # PyTorch's: NumPy's would be x[0]
    for wrong in (lambda: x.transpose(1), lambda: x.transpose((0, 1)), lambda: x.transpose(0, 0, 1),
                  lambda: x.transpose((0, 1), 2), lambda: x.transpose(axis1=1)):  # fmt: skip
        with pytest.raises(ValueError, match="transpose: "):
            wrong()
    with pytest.raises(IndexError, match="transpose: axis 3"):
        x.transpose(0, 1, 3)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "nansum", "nanmean"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_in_a_type(name: str, dtype: str) -> None:
    floats = np.linspace(0.5, 1.5, 6).reshape(2, 3)
    for values in (floats, floats.astype("float32"), np.arange(6).reshape(2, 3) % 2 == 0):
        if name == "nanmean" and values.dtype == bool:
            continue
        for axis in (None, 0, -1):
            got = getattr(tw, name)(tw.asarray(values), axis=axis, dtype=getattr(tw, dtype))
            want = getattr(np, name)(values, axis=axis, dtype=dtype)
            assert str(got.dtype) == dtype
            np.testing.assert_allclose(got, want, rtol=1e-6)
    x = tw.asarray(floats.astype("float32")).requires_grad_()
    getattr(tw, name)(x, dtype=getattr(tw, dtype)).backward()
    assert x.grad.dtype == tw.float32
    assert np.mean(tw.asarray([1, 2]), dtype=np.float64) == 1.5


@pytest.mark.parametrize("name", ["mean", "nanmean"])
def test_means_are_floating(name: str) -> None:
    for dtype in (tw.int64, tw.bool):
        with pytest.raises(TypeError, match=f"{name}: dtype {dtype} cannot hold it"):
            getattr(tw, name)(tw.ones(2), dtype=dtype)


@pytest.mark.parametrize("size_and_step", [(1, 1), (2, 1), (3, 2), (2, 3), (4, 1), (0, 2)])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_windows_along_an_axis(size_and_step: tuple[int, int], axis: int) -> None:
    torch = pytest.importorskip("torch")
    values = np.arange(60.0).reshape(4, 3, 5) ** 2
    values = values.swapaxes(1, axis) if axis == 0 else values
    if size_and_step[0] > values.shape[axis]:
        with pytest.raises(ValueError, match="unfold: windows of 4 along an axis of 3"):
            tw.asarray(values).unfold(axis, *size_and_step)
        return
    x, z = tw.asarray(values).requires_grad_(), torch.tensor(values, requires_grad=True)
    got, want = x.unfold(axis, *size_and_step), z.unfold(axis, *size_and_step)
    np.testing.assert_array_equal(got.detach(), want.detach())
    (got**2).sum().backward()
    (want**2).sum().backward()
    np.testing.assert_array_equal(x.grad, z.grad)
    assert tw.gradgradcheck(lambda x: x.unfold(axis, *size_and_step) ** 3 / 1e4, (x,))


def test_windows_are_views() -> None:
    x = tw.asarray(np.arange(5.0))
    windows = x.unfold(dimension=0, size=3, step=1)
    x[2] = 9.0
    assert windows.tolist() == [[0, 1, 9], [1, 9, 3], [9, 3, 4]]
    with pytest.raises((RuntimeError, ValueError), match="overlapping windows"):
        windows.mul_(2.0)
    for call in (lambda: x.unfold(0, 6, 1), lambda: x.unfold(0, 2, 0), lambda: x.unfold(0, -1, 1)):
        with pytest.raises(ValueError, match="unfold"):
            call()
    with pytest.raises(IndexError, match="unfold: axis 1"):
        x.unfold(1, 2, 1)


def test_windows_of_what_is_changed_later() -> None:
    torch = pytest.importorskip("torch")
    grads = []
    for module in (tw, torch):
        x = module.ones(5, requires_grad=True)
        y = x * 1.0
        windows = y.unfold(0, 3, 1)
        y.mul_(module.arange(5.0))
        (windows**2).sum().backward()
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1]
