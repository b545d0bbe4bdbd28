"""The Array API's array object: operators, attributes, methods, truth values as indices."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest
from cases.array_api import DTYPES, MISSING, ours

import tilewright as tw

# ---- operators ----

ARITHMETIC = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
}
BITS = {
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
OPERATORS = {**ARITHMETIC, **BITS}
COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}


def operands(name: str, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    if dtype == "bool":
        return np.array([True, True, False, False]), np.array([True, False, True, False])
    a, b = np.array([7, 5, 3, 9]), np.array([2, 1, 3, 2])
    return a.astype(dtype), b.astype(dtype)


def dtypes_of(name: str) -> list[str]:
    whole = [d for d in DTYPES if "int" in d]
    if name in ("lshift", "rshift"):
        return whole
    if name in BITS:
        return ["bool", *whole]
    return ["float32", "float64"] if name == "truediv" else [*whole, "float32", "float64"]


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name in OPERATORS for dtype in dtypes_of(name)]
)
def test_operators(name: str, dtype: str) -> None:
    a, b = operands(name, dtype)
    x, y = ours(a), ours(b)
    plain = getattr(operator, {"and": "and_", "or": "or_"}.get(name, name))
    number = True if dtype == "bool" else 2
    kind = type(number) if dtype == "bool" else (float if dtype.startswith("f") else int)
    cases = [(x, y, a, b), (x, kind(number), a, kind(number)), (kind(number), y, kind(number), b)]
    function = getattr(tw, OPERATORS[name] if dtype != "bool" else f"logical_{name}")
    for p, q, u, v in cases:
        got, expected = plain(p, q), plain(u, v)
        assert str(got.dtype) == dtype
        np.testing.assert_array_equal(got.numpy(), expected)
        np.testing.assert_array_equal(function(p, q).numpy(), expected)
    np.testing.assert_array_equal(getattr(y, f"__r{name}__")(x).numpy(), plain(a, b))


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name in OPERATORS for dtype in dtypes_of(name)]
)
def test_operators_in_place(name: str, dtype: str) -> None:
    """The same object, the same memory, seen through views, counted as a change."""
    change = getattr(operator, f"i{name}")
    for other in ("tensor", "number", "view", "itself"):
        a, b = operands(name, dtype)
        x = ours(a)
        window, version, address, memory = x[1:], x.version, x.data_ptr, x
        number = True if dtype == "bool" else (2.0 if dtype.startswith("f") else 2)
        q, v = {
            "tensor": (ours(b), b),
            "number": (number, number),
            "view": (x[:1], a[:1].copy()),
            "itself": (x, a.copy()),
        }[other]
        if name in ("lshift", "rshift", "pow") and other in ("view", "itself"):
            continue  # beyond the type
        x = change(x, q)
        expected = change(a.copy(), v)
        assert x is memory
        assert (x.data_ptr, x.version) == (address, version + 1)
        np.testing.assert_array_equal(x.numpy(), expected)
        np.testing.assert_array_equal(window.numpy(), expected[1:])


def test_matmul_operators() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(9.0).reshape(3, 3)
    x, y = ours(a), ours(b)
    np.testing.assert_array_equal((x @ y).numpy(), a @ b)
    np.testing.assert_array_equal(y.__rmatmul__(x).numpy(), a @ b)
    same, window, version = x, x[1:], x.version
    x @= y
    assert x is same
    assert x.version == version + 1
    np.testing.assert_array_equal(x.numpy(), a @ b)
    np.testing.assert_array_equal(window.numpy(), (a @ b)[1:])
    y @= y  # itself
    np.testing.assert_array_equal(y.numpy(), b @ b)
    with pytest.raises(ValueError, match=r"matmul: a product of shape \(2, 4\) cannot be written"):
        x @= tw.ones((3, 4), dtype=tw.float64)
    for value in (2, 2.0):
        with pytest.raises(TypeError):
            x @= value
        with pytest.raises(TypeError):
            x @ value


def test_changes_in_place_are_refused_where_the_result_does_not_fit() -> None:
    whole, real, truth = tw.ones((2,), dtype=tw.int32), tw.ones((2,)), tw.asarray([True, False])
    for change in (
        lambda: operator.ipow(whole, 0.5),
        lambda: operator.itruediv(whole, 2),
        lambda: operator.imod(whole, real),
        lambda: operator.ifloordiv(whole, 2.0),
        lambda: operator.iand(truth, whole),
        lambda: operator.ior(real, whole),
        lambda: operator.ixor(real, 1),
        lambda: operator.ilshift(real, 1),
        lambda: operator.irshift(truth, 1),
        lambda: operator.imatmul(tw.ones((2, 2), dtype=tw.int32), tw.ones((2, 2))),
    ):
        with pytest.raises(TypeError):
            change()
    for change in (operator.ipow, operator.imod, operator.ifloordiv, operator.iadd):
        with pytest.raises(ValueError, match="cannot be written in place"):
            change(real, tw.ones((3, 2)))
    assert (whole.tolist(), real.tolist(), truth.tolist()) == ([1, 1], [1, 1], [True, False])
    assert (whole.version, real.version, truth.version) == (0, 0, 0)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"])
def test_gradients_through_changes_in_place(name: str) -> None:
    change, plain = getattr(operator, f"i{name}"), getattr(operator, name)

    def changed(x: tw.Tensor, y: tw.Tensor) -> tw.Tensor:
        z = x * 1.5
        window = z[1:]
        z = change(z, y)
        if name != "pow":  # whose gradient reads its result
            window = change(window, y[1:])  # through a view of what was changed
        return z * window.sum()

    def unchanged(x: tw.Tensor, y: tw.Tensor) -> tw.Tensor:
        z = plain(x * 1.5, y)
        window = z[1:] if name == "pow" else plain(z[1:], y[1:])
        return tw.concat([z[:1], window]) * window.sum()

    given = ([1.2, 2.3, 3.1], [0.7, 1.4, 0.9])
    results = []
    for function in (changed, unchanged):
        x, y = (tw.asarray(v, dtype=tw.float64).requires_grad_() for v in given)
        out = function(x, y)
        out.sum().backward()
        results.append([v.tolist() for v in (out.detach(), x.grad, y.grad)])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)


def test_gradients_through_matmul_in_place() -> None:
    data, factor = np.arange(4.0).reshape(2, 2) + 1, np.array([[1.0, 2.0], [0.5, -1.0]])
    grads = []
    for in_place in (True, False):
        x, y = ours(data).requires_grad_(), ours(factor).requires_grad_()
        z = x * 2
        if in_place:
            z @= y
        else:
            z = z @ y
        (z * z).sum().backward()
        grads.append((x.grad.tolist(), y.grad.tolist()))
    assert grads[0] == grads[1]


def test_what_a_gradient_reads_may_not_be_changed() -> None:
    x = tw.asarray([1.0, 2.0]).requires_grad_()
    for change in (operator.ipow, operator.imod, operator.ifloordiv):
        y = x * 2
        z = y * y
        change(y, 2.0)
        with pytest.raises(RuntimeError, match="in place"):
            z.sum().backward()
        with pytest.raises(RuntimeError, match="a leaf that requires grad"):
            change(x, 2.0)


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name: str) -> None:
    compare_with = getattr(operator, name)
    for dtype in DTYPES:
        ordered = name not in ("eq", "ne")
        if dtype in MISSING or (ordered and dtype in ("bool", "complex64", "complex128")):
            continue
        a, b = operands(name, dtype)
        for q, v in ((ours(b), b), (b[0].item(), b[0].item())):
            got = compare_with(ours(a), q)
            assert got.dtype == tw.bool
            np.testing.assert_array_equal(got.numpy(), compare_with(a, v))
        np.testing.assert_array_equal(
            getattr(tw, COMPARISONS[name])(ours(a), ours(b)).numpy(), compare_with(a, b)
        )


def test_none_is_not_equal() -> None:
    for x in (tw.ones((2,)), tw.asarray(1.0), tw.asarray([True])):
        assert (x == None) is False  # noqa: E711
        assert (x != None) is True  # noqa: E711
        assert (None == x) is False  # noqa: E711, SIM300
        with pytest.raises(TypeError):
            x < None  # noqa: B015


def test_unary_operators() -> None:
    x = np.array([3, -2, 0])
    for op in (operator.neg, operator.pos, operator.abs, operator.invert):
        np.testing.assert_array_equal(op(ours(x)).numpy(), op(x))
    np.testing.assert_array_equal((~tw.asarray([True, False])).numpy(), [False, True])
    with pytest.raises(TypeError, match="bitwise_invert: no kernel for float32"):
        ~tw.ones((2,))


def test_floor_divide_of_infinities() -> None:
    inf = math.inf
    for dtype in (tw.float32, tw.float64):
        for a, b, expected in (
            (inf, 2, inf),
            (inf, -2, -inf),
            (-inf, 2, -inf),
            (-inf, -2, inf),
            (3, inf, 0.0),
            (3, -inf, -0.0),
            (-3, inf, -0.0),
            (-3, -inf, 0.0),
            (inf, inf, math.nan),
            (inf, 0.0, inf),
        ):
            for count in (1, 40):  # one by one, and in vectors
                x = tw.full((count,), a, dtype=dtype)
                got = (x // tw.full((count,), b, dtype=dtype)).tolist()
                assert all(repr(y) == repr(float(expected)) for y in got), (a, b, got[0])


# ---- attributes and methods ----


def test_attributes() -> None:
    x = tw.ones((2, 3), dtype=tw.float64)
    assert (x.dtype, x.device, x.ndim, x.shape, x.size) == (tw.float64, "cpu", 2, (2, 3), 6)
    assert x.T.shape == x.mT.shape == (3, 2)
    assert tw.ones((4, 2, 3)).mT.shape == (4, 3, 2)
    with pytest.raises(ValueError, match="T: needs 2 dimensions"):
        _ = tw.ones((2,)).T
    with pytest.raises(ValueError, match="mT: needs at least 2 dimensions"):
        _ = tw.ones((2,)).mT


def test_namespace() -> None:
    x = tw.ones((2,))
    assert x.__array_namespace__() is tw
    for version in ("2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is tw
    with pytest.raises(ValueError, match=r"api_version must be one of 2021\.12"):
        x.__array_namespace__(api_version="2020.01")


def test_to_device() -> None:
    x = tw.ones((2,))
    assert x.to_device("cpu") is x
    assert x.to_device(x.device, stream=None) is x
    assert x.to_device("null").device == "null"
    with pytest.raises(ValueError, match="to_device: no device 'gpu'"):
        x.to_device("gpu")
    with pytest.raises(ValueError, match="to_device: no device here has streams"):
        x.to_device("cpu", stream=1)
    with pytest.raises(TypeError, match="to_device: device must be"):
        x.to_device(None)
    leaf = tw.ones((2,), requires_grad=True)
    assert leaf.to_device("null").requires_grad


@pytest.mark.parametrize("dtype", DTYPES[:-1])
def test_numbers(dtype: str) -> None:
    x = tw.astype(tw.asarray([[1]]), getattr(tw, dtype))[0, 0]
    assert bool(x) is True
    assert complex(x) == 1
    assert type(complex(x)) is complex
    if dtype.startswith("complex"):
        assert complex(tw.asarray(1.5 - 2j)) == 1.5 - 2j
        with pytest.raises(TypeError):
            float(x)
        with pytest.raises(TypeError):
            int(x)
        return
    assert float(x) == 1.0
    assert int(x) == 1
    if "int" in dtype:
        assert operator.index(x) == 1
    else:
        with pytest.raises(TypeError):
            operator.index(x)


def test_numbers_are_of_one_element() -> None:
    for convert in (float, int, complex):
        with pytest.raises(TypeError, match=r"a tensor of shape \(2,\) is not a single number"):
            convert(tw.ones((2,)))
        assert convert(tw.ones((1, 1))) == 1
    assert math.isnan(complex(tw.asarray(math.nan)).real)


def test_dlpack() -> None:
    x = tw.asarray([1.0, 2.0])
    assert x.__dlpack_device__() == (1, 0)
    np.testing.assert_array_equal(np.from_dlpack(x), [1, 2])
    y = tw.from_dlpack(x, copy=True)
    y[0] = 5
    assert x.tolist() == [1, 2]
    tw.from_dlpack(x, device="cpu", copy=False)[0] = 7
    assert x[0].item() == 7


# ---- single truth values as indices ----


def indices(rank: int) -> list[Any]:
    found: list[Any] = [True, False, np.True_, (True,), (False, ...), (..., True), (None, True)]
    found += [(True, True), (True, False), (False, None), (True, [0]), (False, [0])]
    if rank > 0:
        found += [(True, 0), (0, True), (slice(0, 1), True), (True, [0, 1, 0]), ([1, 0], True)]
        found += [(slice(None, None, -1), False)]
    if rank > 1:
        found += [(0, True, 1), (slice(None), True, [0, 1]), ([0, 1], True, [1, 0])]
        found += [(True, slice(None), [0, 1]), (0, slice(None), True), (..., True, 0)]
    return [i for i in found if rank > 0 or not (isinstance(i, tuple) and [0] in i)]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 2), (2, 0)])
def test_single_truth_values(shape: tuple[int, ...]) -> None:
    x = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
    for index in indices(len(shape)):
        try:
            expected = x[index]
        except IndexError:
            with pytest.raises(IndexError):
                tw.asarray(x)[index]
            continue
        got = tw.asarray(x)[index]
        assert got.shape == expected.shape, index
        np.testing.assert_array_equal(got.numpy(), expected, f"{index}")
        written, t = x.copy(), tw.asarray(x, copy=True)
        written[index] = -1
        t[index] = -1
        np.testing.assert_array_equal(t.numpy(), written, f"{index}")
        if expected.size:
            values = np.arange(expected.size, dtype=np.float64).reshape(expected.shape) + 50
            written[index], t[index] = values, tw.asarray(values)
            np.testing.assert_array_equal(t.numpy(), written, f"{index}")


def test_0d_masks() -> None:
    x = tw.asarray([[1.0, 2.0], [3.0, 4.0]])
    yes, no = tw.asarray(True), tw.asarray(False)
    assert x[yes].shape == (1, 2, 2)
    assert x[no].shape == (0, 2, 2)
    assert x[x[0, 0] > 0, 1].tolist() == [[3, 4]]
    x[no] = 9
    assert x[0, 0].item() == 1
    x[x[0, 0] > 0] = 9
    assert x.tolist() == [[9, 9], [9, 9]]
    point = tw.asarray(3.0)
    assert point[point > 2].tolist() == [3]
    assert point[point > 5].tolist() == []
    point[point > 2] = 5
    assert point.item() == 5
    y = x[True]
    y[:] = 0  # a copy, as of every mask
    assert x[0, 0].item() == 9
    with pytest.raises(ValueError, match="index assignment"):
        x[True] = tw.ones((3, 2))


def test_gradients_of_0d_masks() -> None:
    x = tw.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=tw.float64).requires_grad_()
    assert tw.gradcheck(lambda x: x[True] ** 2, (x,))
    assert tw.gradcheck(lambda x: x[True, [1, 0]] ** 2, (x,))
    y = x * 2
    y[tw.asarray(True)] = 3.0
    y.sum().backward()
    assert x.grad.tolist() == [[0, 0], [0, 0]]
