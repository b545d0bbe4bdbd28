"""PyTorch's and NumPy's spellings, where they leave no doubt; told apart where they mean more."""

from __future__ import annotations

import copy
import inspect
import operator
import pickle
import pydoc
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw

X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4) - 7


@pytest.fixture
def x() -> tw.Tensor:
    return tw.asarray(X.copy())


def same(y: Any, expected: Any) -> None:
    assert y.shape == np.shape(expected)
    np.testing.assert_array_equal(np.asarray(y), expected)


# ---- arguments ----

AXES = {
    name: getattr(np, name) for name in ("sum", "mean", "prod", "any", "all", "argmax", "argmin")
}


@pytest.mark.parametrize("name", AXES)
def test_dim_and_keepdim_are_axis_and_keepdims(x: tw.Tensor, name: str) -> None:
    for axis in (0, -1):
        for keep in (False, True):
            expected = np.asarray(getattr(tw, name)(x, axis=axis, keepdims=keep))
            same(getattr(tw, name)(x, dim=axis, keepdim=keep), expected)
            same(getattr(x, name)(dim=axis, keepdim=keep), expected)
            np.testing.assert_allclose(expected, AXES[name](X, axis=axis, keepdims=keep), rtol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_dim_of_the_softmax_family(x: tw.Tensor, name: str) -> None:
    expected = np.asarray(getattr(tw, name)(x, axis=1))
    same(getattr(tw, name)(x, dim=1), expected)
    same(getattr(x, name)(dim=1), expected)


def test_dim_of_shape_ops(x: tw.Tensor) -> None:
    same(tw.concat([x, x], dim=1), np.concatenate([X, X], 1))
    same(tw.concat(tensors=[x, x], dim=2), np.concatenate([X, X], 2))
    same(tw.stack([x, x], dim=-1), np.stack([X, X], -1))
    same(tw.flip(x, dims=(0, 2)), np.flip(X, (0, 2)))
    same(tw.squeeze(tw.ones((1, 2)), dim=0), np.ones(2))
    same(x.flatten(start_dim=1), X.reshape(2, 12))
    same(x.transpose(dim0=0, dim1=2), X.transpose(2, 1, 0))
    same(tw.sum(input=x, dim=0), X.sum(0))
    same(tw.maximum(input=x, other=2.0), np.maximum(X, 2))


M = np.array([[2.0, 1.0], [1.0, 3.0]], np.float32)
V, B, K = M[0], M[None], np.array([1, 0])
# PyTorch's names of all tensors, by what the call gives.
NAMED: dict[str, tuple[dict[str, Any], Any]] = {
    "add": ({"input": M, "other": M}, M + M),
    "bmm": ({"input": B, "mat2": B}, B @ B),
    "dot": ({"input": V, "tensor": V}, V @ V),
    "eye": ({"n": 2, "m": 3}, np.eye(2, 3)),
    "float_power": ({"input": M, "exponent": 2}, np.float_power(M, 2)),
    "inner": ({"input": V, "other": V}, V @ V),
    "inverse": ({"input": np.eye(2, dtype=np.float32)}, np.eye(2)),
    "kron": ({"input": M, "other": M}, np.kron(M, M)),
    "logdet": ({"input": np.eye(2, dtype=np.float32)}, np.zeros(())),
    "matrix_power": ({"input": M, "n": 2}, M @ M),
    "mm": ({"input": M, "mat2": M}, M @ M),
    "mv": ({"input": M, "vec": V}, M @ V),
    "one_hot": ({"tensor": K, "num_classes": 2}, np.eye(2)[K]),
    "outer": ({"input": V, "vec2": V}, np.outer(V, V)),
    "pow": ({"input": M, "exponent": 2}, M**2),
    "searchsorted": ({"sorted_sequence": np.sort(V), "values": V}, [1, 0]),
    "tensor": ({"data": [1.0, 2.0]}, [1.0, 2.0]),
    "vdot": ({"input": V, "other": V}, V @ V),
    "where": ({"condition": M > 1, "input": M, "other": -M}, np.where(M > 1, M, -M)),
}


@pytest.mark.parametrize("name", NAMED)
def test_pytorchs_names_of_operands(name: str) -> None:
    named, expected = NAMED[name]
    own = {key: tw.asarray(x) if isinstance(x, np.ndarray) else x for key, x in named.items()}
    same(getattr(tw, name)(**own), expected)
    first, *rest = own.items()  # the first by its place, as it mostly stands
    same(getattr(tw, name)(first[1], **dict(rest)), expected)


def test_numpys_names_of_where() -> None:
    same(tw.where(tw.asarray(M > 1), x=tw.asarray(M), y=tw.asarray(-M)), np.where(M > 1, M, -M))


def test_pytorchs_names_beside_alpha() -> None:
    m = tw.asarray(M)
    for name, expected in (("add", 3 * M), ("sub", -M), ("subtract", -M)):
        same(getattr(tw, name)(m, other=m, alpha=2), expected)
        same(getattr(tw, name)(m, b=m, alpha=2), expected)


def test_operands_given_twice_or_not_at_all_are_told() -> None:
    m = tw.asarray(M)
    with pytest.raises(TypeError, match="mm: argument 'x1' given twice, by place and by name"):
        tw.mm(m, m, input=m)
    with pytest.raises(TypeError, match="mm: missing argument 'x1'"):
        tw.mm(mat2=m)
    with pytest.raises(TypeError, match="where: argument 'b' given twice, by place and by name"):
        tw.where(m > 1, m, input=m)


def test_names_made_at_run_time_are_taken_as_well(x: tw.Tensor) -> None:
    same(x.sum(**{"".join(["d", "im"]): 1}), X.sum(1))


@pytest.mark.parametrize("name", ["max", "min"])
def test_dim_of_max_and_min_gives_indices_too(x: tw.Tensor, name: str) -> None:
    for pair in (
        getattr(x, name)(dim=0, keepdim=True),
        getattr(tw, name)(input=x, dim=0, keepdim=True),
    ):
        same(pair.values, getattr(X, name)(0, keepdims=True))
        same(pair.indices, getattr(X, f"arg{name}")(0, keepdims=True))
        values, indices = pair
        assert (values is pair[0], indices is pair.indices) == (True, True)
    same(getattr(x, name)(axis=0), getattr(X, name)(0))  # one tensor, as in NumPy
    with pytest.raises(TypeError, match=f"^{name}.*axis"):
        getattr(x, name)(axis=0, dim=0)


def test_pairs_are_tuples_that_can_be_copied_and_pickled(x: tw.Tensor) -> None:
    pair = x.max(dim=1)
    assert isinstance(pair, tuple)
    for other in (pickle.loads(pickle.dumps(pair)), copy.deepcopy(pair), copy.copy(pair)):
        assert type(other) is type(pair)
        same(other.values, X.max(1))
        same(other.indices, X.argmax(1))


@pytest.mark.parametrize("name", ["max", "min"])
def test_max_and_min_of_two_tensors(x: tw.Tensor, name: str) -> None:
    y = tw.asarray(-X)
    expected = getattr(np, f"{name}imum")(X, -X)
    same(getattr(tw, name)(x, y), expected)
    same(getattr(x, name)(y), expected)


@pytest.mark.parametrize("name", ["std", "var"])
def test_dim_of_std_and_var_tells_the_difference(x: tw.Tensor, name: str) -> None:
    for call in (lambda: getattr(x, name)(dim=0), lambda: getattr(tw, name)(x, dim=0)):
        with pytest.raises(TypeError, match=rf"^{name}: .*n - 1.*axis=.*correction=1"):
            call()
    with pytest.raises(TypeError, match="correction=1 for unbiased=True"):
        getattr(x, name)(unbiased=False)
    # Said explicitly, there is no doubt.
    expected = getattr(np, name)(X.astype(np.float64), axis=0, ddof=1)
    np.testing.assert_allclose(np.asarray(getattr(x, name)(dim=0, correction=1)), expected, 1e-6)


# ---- extents one by one ----


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
def test_extents_may_stand_alone(name: str) -> None:
    make = getattr(tw, name)
    for shape in ((), (3,), (2, 3), (2, 0, 4)):
        assert make(shape).shape == shape
        if shape:
            assert make(*shape).shape == shape
            assert make(*shape, dtype=tw.float64).dtype == tw.float64
    assert make(2, 3, requires_grad=True, device="cpu").requires_grad
    assert make(np.int64(2), 3).shape == (2, 3)
    assert make([2, 3]).shape == (2, 3)


def test_what_follows_a_shape_is_still_a_dtype() -> None:
    assert tw.zeros((2, 3), tw.int8).dtype == tw.int8
    assert tw.zeros(2, tw.int8).shape == (2,)
    assert tw.full(2, 3).tolist() == [3, 3]
    assert tw.zeros(size=(2, 3)).shape == (2, 3)
    assert tw.uniform(0.0, 1.0, shape=(3,)).shape == (3,)


def test_extents_of_views(x: tw.Tensor) -> None:
    for call in (
        lambda: x.reshape(4, 6),
        lambda: x.reshape((4, 6)),
        lambda: x.reshape(shape=(4, 6)),
        lambda: tw.reshape(x, 4, 6),
        lambda: tw.reshape(x, 4, -1),
        lambda: x.view(-1, 6),
        lambda: x.view([4, 6]),
    ):
        same(call(), X.reshape(4, 6))
    for call in (
        lambda: x.permute(2, 0, 1),
        lambda: x.permute((2, 0, 1)),
        lambda: x.permute(dims=(2, 0, 1)),
        lambda: x.permute_dims(2, 0, 1),
        lambda: tw.permute(x, 2, 0, 1),
        lambda: tw.permute_dims(x, (2, 0, 1)),
    ):
        same(call(), X.transpose(2, 0, 1))
    same(tw.broadcast_to(x, 5, 2, 3, 4), np.broadcast_to(X, (5, 2, 3, 4)))
    same(tw.ones((3, 1)).expand(2, -1, 4), np.ones((2, 3, 4)))
    same(tw.ones((3, 1)).expand((3, 4)), np.ones((3, 4)))
    with pytest.raises(ValueError, match=r"^view: .* without a copy"):
        x.permute(2, 0, 1).view(24)


# ---- names of methods and functions ----

CASTS = {
    "bool": "bool", "byte": "uint8", "char": "int8", "short": "int16", "int": "int32",
    "long": "int64", "half": "float16", "bfloat16": "bfloat16", "float": "float32",
    "double": "float64",
}  # fmt: skip


@pytest.mark.parametrize("name", CASTS)
def test_casts(x: tw.Tensor, name: str) -> None:
    y = getattr(x.clip(0, 9), name)()
    assert str(y.dtype) == CASTS[name]
    assert y.tolist() == x.clip(0, 9).astype(CASTS[name]).tolist()
    assert getattr(y, name)() is y


def test_to(x: tw.Tensor) -> None:
    assert x.to("cpu") is x
    assert x.to(device="cpu", dtype=tw.float32) is x
    assert x.to(x.dtype, copy=True) is not x
    for call in (
        lambda: x.to(tw.float64),
        lambda: x.to("float64"),
        lambda: x.to("cpu", tw.float64),
        lambda: x.to(dtype=tw.float64),
        lambda: x.to(tw.ones(1, dtype=tw.float64)),
        lambda: x.type_as(tw.ones(1, dtype=tw.float64)),
    ):
        assert call().dtype == tw.float64
        assert call().tolist() == x.tolist()
    with pytest.raises(ValueError, match=r"^to: no device 'gpu'; there are 'cpu'"):
        x.to("gpu")
    with pytest.raises(
        TypeError, match=r"^to: target must be a dtype, the name of a device or a tensor, got 3"
    ):
        x.to(3)


def test_casts_are_recorded() -> None:
    w = tw.ones((2,), requires_grad=True)
    (w.double() * 3).to(tw.float32).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [3.0, 3.0]


def test_facts(x: tw.Tensor) -> None:
    assert x.numel() == x.nelement() == x.size == 24
    assert x.dim() == x.ndimension() == x.ndim == 3
    assert x.element_size() == x.itemsize == 4
    assert x.stride() == x.strides == (12, 4, 1)
    assert x.is_floating_point()
    assert not x.int().is_floating_point()
    assert x.cpu() is x


def test_shapes(x: tw.Tensor) -> None:
    same(x.unsqueeze(1), X[:, None])
    same(x.unsqueeze(dim=-1), X[..., None])
    same(tw.unsqueeze(x, 1), X[:, None])
    same(tw.expand_dims(x, 1), X[:, None])
    same(x[0].t(), X[0].T)
    assert x[0, 0].t().shape == (4,)
    same(x.swapaxes(0, 1), X.swapaxes(0, 1))
    same(x.view_as(tw.ones((4, 6))), X.reshape(4, 6))
    same(x.reshape_as(tw.ones((4, 6))), X.reshape(4, 6))
    same(tw.ones(3).expand_as(tw.ones((2, 3))), np.ones((2, 3)))
    same(tw.cat([x, x], 1), np.concatenate([X, X], 1))
    same(tw.concatenate([x, x], axis=1), np.concatenate([X, X], 1))
    with pytest.raises(IndexError, match=r"^unsqueeze: axis 7 is out of range"):
        x.unsqueeze(7)
    with pytest.raises(ValueError, match=r"^t: needs at most 2 dimensions"):
        x.t()


def test_clone_is_a_copy_in_the_graph() -> None:
    w = tw.ones((2,), requires_grad=True)
    y = w.clone()
    y.sum().backward()
    assert w.grad is not None
    assert y.tolist() == [1.0, 1.0]


BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "maximum": np.maximum, "minimum": np.minimum,
    "remainder": np.remainder, "floor_divide": np.floor_divide, "atan2": np.arctan2,
    "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_binary_methods(name: str) -> None:
    a = np.array([1.5, 2.0, 3.25], np.float64)
    b = np.array([2.0, 2.0, 0.5], np.float64)
    y = getattr(tw.asarray(a), name)(tw.asarray(b))
    np.testing.assert_allclose(np.asarray(y), BINARY[name](a, b), rtol=1e-15)
    y = getattr(tw.asarray(a), name)(other=2.0)
    np.testing.assert_allclose(np.asarray(y), BINARY[name](a, 2.0), rtol=1e-15)


def test_clamp(x: tw.Tensor) -> None:
    for call in (
        lambda: x.clamp(-1, 2),
        lambda: x.clip(min=-1, max=2),
        lambda: tw.clamp(x, -1, 2),
        lambda: tw.clip(x, a_min=-1, a_max=2),
    ):
        same(call(), X.clip(-1, 2))
    same(x.clamp(min=0), X.clip(0))
    same(x.clamp(max=0), X.clip(max=0))


def test_tensor_is_a_leaf_of_its_own() -> None:
    w = tw.ones((2,), requires_grad=True)
    y = tw.tensor(w * 2)
    assert y.is_leaf
    assert not y.requires_grad
    assert tw.tensor([1, 2], dtype=tw.float64, requires_grad=True, device="cpu").requires_grad
    with pytest.raises(
        TypeError, match=r"^tensor: only floating-point and complex tensors can require grad"
    ):
        tw.tensor([1, 2], requires_grad=True)


# ---- Python's own functions ----


def test_dtypes_compare_with_anything() -> None:
    for other in (None, "float32", 3, object(), np.float32):
        assert not tw.float32 == other  # noqa: SIM201
        assert tw.float32 != other
    assert tw.float32 == tw.float32
    assert tw.float32 in {tw.float32: 1}


INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_beyond_the_type_compare_by_value(dtype: str, compare: str) -> None:
    bounds = np.iinfo(dtype)
    values = [bounds.min, 0, 1, bounds.max]
    x = tw.asarray(values, dtype=dtype)
    compared = getattr(operator, compare)
    function = getattr(
        tw,
        {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
         "ge": "greater_equal"}[compare],
    )  # fmt: skip
    beyond = [bounds.min - 1, bounds.max + 1, -1, 300, 2**63, 2**64, -(2**63) - 1, 2**80, -(2**80)]
    for number in (*beyond, bounds.min, bounds.max, 0):
        expected = [compared(value, number) for value in values]
        y = compared(x, number)
        assert y.dtype == tw.bool
        assert y.tolist() == expected, number
        assert function(x, number).tolist() == expected
        assert function(number, x).tolist() == [compared(number, value) for value in values]
        assert getattr(x, compare)(number).tolist() == expected
    assert compared(x.reshape(2, 2), 2**80).shape == (2, 2)


def test_bool_tensors_compare_with_wide_integers() -> None:
    x = tw.asarray([True, False])
    assert (x < 2**80).tolist() == [True, True]
    assert (x == -(2**80)).tolist() == [False, False]


def test_arithmetic_beyond_the_type_still_raises() -> None:
    with pytest.raises(OverflowError, match=r"^add: 300 does not fit uint8"):
        tw.asarray([1], dtype="uint8") + 300


def test_format() -> None:
    assert f"{tw.asarray(1.2345):.2f}" == "1.23"
    assert f"{tw.asarray(7):5d}" == "    7"
    assert f"{tw.asarray(1.5, dtype=tw.float64):>8.1e}" == " 1.5e+00"
    x = tw.ones((2,))
    assert f"{x}" == str(x)
    with pytest.raises(TypeError, match=r"^format: '\.2f' formats a number, got .*item\(\)"):
        f"{x:.2f}"


def test_round() -> None:
    values = np.array([0.5, 1.5, 2.5, -0.5, 1.005, 2.345, 123.456])
    x = tw.asarray(values)
    same(round(x), np.round(values))
    for digits in (0, 1, 2, -1, -2):
        np.testing.assert_allclose(np.asarray(round(x, digits)), np.round(values, digits), 1e-15)
    assert round(tw.asarray([15]), 2).tolist() == [15]
    with pytest.raises(ValueError, match=r"^round: -1 digits of int64"):
        round(tw.asarray([15]), -1)


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8"])
def test_divmod(dtype: str) -> None:
    a, b = np.array([7, 9, 4], dtype), np.array([2, 3, 5], dtype)
    for got, expected in (
        (divmod(tw.asarray(a), tw.asarray(b)), np.divmod(a, b)),
        (divmod(tw.asarray(a), 2), np.divmod(a, 2)),
        (divmod(9, tw.asarray(b)), np.divmod(9, b)),
    ):
        same(got[0], expected[0])
        same(got[1], expected[1])
    with pytest.raises(TypeError, match="unsupported operand"):
        divmod(tw.asarray(a), "a")


def test_divmod_of_negative_numbers() -> None:
    a = np.array([-7.5, 7.5, -7.0])
    quotient, rest = divmod(tw.asarray(a), 2.0)
    same(quotient, np.floor_divide(a, 2.0))
    same(rest, np.remainder(a, 2.0))


# ---- NumPy's functions ----


@pytest.mark.parametrize(
    "function", [np.exp, np.sin, np.isnan, np.square, np.cumsum, np.linalg.norm]
)
def test_numpys_functions_take_tensors(x: tw.Tensor, function: Callable[..., Any]) -> None:
    y = function(x)
    assert isinstance(y, (np.ndarray, np.generic))
    np.testing.assert_array_equal(y, function(X))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "std", "var", "any", "all"])
def test_numpys_reductions_become_ours(x: tw.Tensor, name: str) -> None:
    y = getattr(np, name)(x, axis=1)
    assert isinstance(y, tw.Tensor)
    np.testing.assert_allclose(np.asarray(y), getattr(np, name)(X, axis=1), rtol=1e-6)
    assert getattr(np, name)(x).shape == ()


def test_numpys_arguments(x: tw.Tensor) -> None:
    np.testing.assert_allclose(np.asarray(np.std(x, ddof=1)), np.std(X, ddof=1), rtol=1e-6)
    same(np.argmax(x, axis=0), X.argmax(0))
    same(np.clip(x, 0, 2), X.clip(0, 2))
    with pytest.raises(TypeError, match=r"^sum: unexpected argument 'out'"):
        np.sum(x, out=np.zeros(()))


@pytest.mark.parametrize("op", ["add", "sub", "mul", "truediv", "lt", "eq", "pow"])
def test_operators_with_numpys_arrays_give_tensors(x: tw.Tensor, op: str) -> None:
    compute = getattr(operator, op)
    other = abs(X) + 1
    x = abs(x) + 0.5
    for a, b in (
        (other, x), (x, other), (np.float32(2), x), (x, np.float32(2)), (np.float64(2), x),
        (np.int64(2), x),
    ):  # fmt: skip
        y = compute(a, b)
        assert isinstance(y, tw.Tensor), (type(a), type(b))
        expected = compute(np.asarray(a, np.float32), np.asarray(b, np.float32))
        np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-5)


def test_numpys_functions_behind_operators_give_tensors(x: tw.Tensor) -> None:
    for y, expected in (
        (np.add(X, x), X * 2),
        (np.subtract(x, X), X * 0),
        (np.less(X, x), X.copy() != X),
    ):
        assert isinstance(y, tw.Tensor)
        same(y, expected)
    with pytest.raises(TypeError, match=r"^exp: a tensor cannot take NumPy's result"):
        np.exp(X, out=x)
    out = np.empty_like(X)
    assert np.add(x, x, out=out) is out
    np.testing.assert_array_equal(out, X + X)
    assert np.add.reduce(x).tolist() == X.sum(0).tolist()


def test_numpys_functions_refuse_tensors_in_a_graph() -> None:
    w = tw.ones((2,), requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad; use detach"):
        np.exp(w)
    with pytest.raises(RuntimeError, match="requires grad; use detach"):
        w.numpy()
    np.testing.assert_allclose(np.exp(w.detach()), np.exp(np.ones(2, np.float32)))
    assert np.sum(w).requires_grad, "NumPy hands this one to us"


# ---- what Python tells of functions ----


@pytest.mark.parametrize(
    "name", ["sum", "zeros", "reshape", "cat", "matmul", "Generator.manual_seed"]
)
def test_functions_have_names_signatures_and_help(name: str) -> None:
    function = operator.attrgetter(name)(tw)
    assert function.__qualname__ == name
    assert function.__name__ == name.rpartition(".")[2]
    assert inspect.isroutine(function)
    assert list(inspect.signature(function).parameters)
    assert name.rpartition(".")[2] in pydoc.render_doc(function)
    assert pickle.loads(pickle.dumps(function)) is function


def test_methods_have_names_signatures_and_help(x: tw.Tensor) -> None:
    assert str(inspect.signature(tw.Tensor.squeeze)) == (
        "(self, axis: 'int | Sequence[int] | None' = None) -> 'Tensor'"
    )
    assert list(inspect.signature(x.squeeze).parameters) == ["axis"]
    assert x.sum.__self__ is x
    assert pickle.loads(pickle.dumps(tw.Tensor.sum)) is tw.Tensor.sum


def test_help_tells_other_spellings() -> None:
    assert "dim (axis)" in tw.sum.__doc__
    assert "keepdim (keepdims)" in tw.Tensor.sum.__doc__
    assert "dim (axis)" not in tw.max.__doc__
    assert "dim (for values and indices)" in tw.max.__doc__
    assert "zeros(2, 3)" in tw.zeros.__doc__
    assert "reshape(x, 2, 3)" in tw.reshape.__doc__
    for name in dir(tw):
        lines = (getattr(tw, name).__doc__ or "").splitlines()
        others = re.findall(r"(\w+) \(", next((t for t in lines if t.startswith("Also taken")), ""))
        assert len(set(others)) == len(others), f"{name} takes a name for two arguments: {others}"


def test_import_loads_no_more_than_before() -> None:
    code = (
        "import sys, tilewright as tw; tw.ones(2, 3).sum(dim=0);"
        "print([m for m in ('ast', 'inspect', 'numpy', 'tilewright._engine.argument_errors')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
