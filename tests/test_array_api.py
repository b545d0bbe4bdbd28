"""The Python Array API standard, version 2024.12: names, signatures, behaviour, against NumPy."""

from __future__ import annotations

import ast
import inspect
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tilewright as tw

# As the standard writes them: what stands before "/" is given by place, behind "*" by name.
SIGNATURES = """
    arange(start, /, stop=None, step=1, *, dtype=None, device=None)
    asarray(obj, /, *, dtype=None, device=None, copy=None)
    empty(shape, *, dtype=None, device=None)
    empty_like(x, /, *, dtype=None, device=None)
    eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
    from_dlpack(x, /, *, device=None, copy=None)
    full(shape, fill_value, *, dtype=None, device=None)
    full_like(x, /, fill_value, *, dtype=None, device=None)
    linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
    meshgrid(*arrays, indexing="xy")
    ones(shape, *, dtype=None, device=None)
    ones_like(x, /, *, dtype=None, device=None)
    tril(x, /, *, k=0)
    triu(x, /, *, k=0)
    zeros(shape, *, dtype=None, device=None)
    zeros_like(x, /, *, dtype=None, device=None)
    astype(x, dtype, /, *, copy=True, device=None)
    can_cast(from_, to, /)
    finfo(type, /)
    iinfo(type, /)
    isdtype(dtype, kind)
    result_type(*arrays_and_dtypes)
    clip(x, /, min=None, max=None)
    take(x, indices, /, *, axis=None)
    take_along_axis(x, indices, /, *, axis=-1)
    matmul(x1, x2, /)
    matrix_transpose(x, /)
    tensordot(x1, x2, /, *, axes=2)
    vecdot(x1, x2, /, *, axis=-1)
    broadcast_arrays(*arrays)
    broadcast_to(x, /, shape)
    concat(arrays, /, *, axis=0)
    expand_dims(x, /, axis)
    flip(x, /, *, axis=None)
    moveaxis(x, source, destination, /)
    permute_dims(x, /, axes)
    repeat(x, repeats, /, *, axis=None)
    reshape(x, /, shape, *, copy=None)
    roll(x, /, shift, *, axis=None)
    squeeze(x, /, axis)
    stack(arrays, /, *, axis=0)
    tile(x, repetitions, /)
    unstack(x, /, *, axis=0)
    argmax(x, /, *, axis=None, keepdims=False)
    argmin(x, /, *, axis=None, keepdims=False)
    count_nonzero(x, /, *, axis=None, keepdims=False)
    nonzero(x, /)
    searchsorted(x1, x2, /, *, side="left", sorter=None)
    where(condition, x1, x2, /)
    unique_all(x, /)
    unique_counts(x, /)
    unique_inverse(x, /)
    unique_values(x, /)
    argsort(x, /, *, axis=-1, descending=False, stable=True)
    sort(x, /, *, axis=-1, descending=False, stable=True)
    cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
    cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
    max(x, /, *, axis=None, keepdims=False)
    mean(x, /, *, axis=None, keepdims=False)
    min(x, /, *, axis=None, keepdims=False)
    prod(x, /, *, axis=None, dtype=None, keepdims=False)
    std(x, /, *, axis=None, correction=0.0, keepdims=False)
    sum(x, /, *, axis=None, dtype=None, keepdims=False)
    var(x, /, *, axis=None, correction=0.0, keepdims=False)
    all(x, /, *, axis=None, keepdims=False)
    any(x, /, *, axis=None, keepdims=False)
    diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
    __array_namespace_info__()
"""


def words(text: str) -> list[str]:
    return text.split()


UNARY = words(
    """abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag
    isfinite isinf isnan log log1p log2 log10 logical_not negative positive real reciprocal round
    sign signbit sin sinh square sqrt tan tanh trunc"""
)
BINARY = words(
    """add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
    copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp
    logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder
    subtract"""
)
# What is not there yet.
MISSING: set[str] = set()
DTYPES = words(
    """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64
    complex128"""
)
CONSTANTS = {"e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None, "pi": math.pi}


def functions() -> dict[str, inspect.Signature]:
    """By name: the parameters that the standard gives."""
    found = {}
    lines = [line for line in SIGNATURES.splitlines() if line.strip()]
    lines += [f"{name}(x, /)" for name in UNARY] + [f"{name}(x1, x2, /)" for name in BINARY]
    for line in lines:
        node = ast.parse(f"def {line.strip()}: ...").body[0]
        scope: dict[str, Any] = {}
        exec(compile(ast.Module([node], []), "standard", "exec"), scope)
        found[node.name] = inspect.signature(scope[node.name])
    return found


FUNCTIONS = functions()
THERE = [name for name in FUNCTIONS if name not in MISSING]


def per_function(names: list[str]) -> Any:
    return pytest.mark.parametrize("name", names)


def test_names_that_are_missing_are_missing() -> None:
    everything = {*FUNCTIONS, *DTYPES, "fft", "linalg"}
    assert everything >= MISSING
    assert {name for name in everything if not hasattr(tw, name)} == MISSING


def test_constants_and_version() -> None:
    assert tw.__array_api_version__ == "2024.12"
    for name, value in CONSTANTS.items():
        np.testing.assert_equal(getattr(tw, name), value)
    for name in set(DTYPES) - MISSING:
        assert getattr(tw, name) == getattr(tw, name)
        assert getattr(tw, name) != tw.float16


# ---- signatures ----

X = np.array([[0.25, -0.5, 0.75], [0.5, 0.875, -0.125]], np.float32)
WHOLE = np.array([[5, 2, 3], [1, 7, 4]], np.int32)
# Arguments by function and parameter, else by parameter. Of types NumPy's own.
COMMON: dict[str, Any] = {
    "x": X,
    "x1": X,
    "x2": np.array([0.5, 2.0, -0.25], np.float32),
    "shape": (2, 3),
    "dtype": np.dtype("float64"),
    "device": "cpu",
    "k": 1,
    "axis": 0,
    "axes": (1, 0),
    "keepdims": True,
    "copy": True,
    "correction": 1.0,
    "arrays": [X, X],
    "fill_value": 2.5,
    "start": 1,
    "stop": 7,
    "step": 2,
    "num": 4,
    "endpoint": False,
    "indices": np.array([1, 0], np.int64),
    "n_rows": 3,
    "n_cols": 4,
    "min": 0.1,
    "max": 0.5,
    "source": 0,
    "destination": 1,
    "repeats": 2,
    "repetitions": (2, 1),
    "shift": 1,
    "condition": X > 0,
    "indexing": "ij",
    "include_initial": False,
    "descending": False,
    "stable": True,
    "side": "right",
    "n": 1,
    "offset": 1,
    "prepend": X,
    "append": X,
}
OF_WHOLE = {name for name in (*UNARY, *BINARY) if name.startswith("bitwise")}
SPECIAL: dict[tuple[str, str], Any] = {
    ("asarray", "obj"): [[1.0, 2.0], [3.0, 4.0]],
    ("acosh", "x"): 1 + np.abs(X),
    ("log", "x"): np.abs(X),
    ("log2", "x"): np.abs(X),
    ("log10", "x"): np.abs(X),
    ("sqrt", "x"): np.abs(X),
    ("pow", "x1"): np.abs(X),
    ("matmul", "x2"): np.ascontiguousarray(X.T),
    ("take", "x"): X[0],  # which needs no axis
    ("squeeze", "x"): X[None],
    ("squeeze", "axis"): 0,
    ("reshape", "shape"): (3, 2),
    ("broadcast_to", "shape"): (4, 2, 3),
    ("linspace", "start"): 0.0,
    ("linspace", "stop"): 1.0,
    ("isdtype", "dtype"): np.dtype("float32"),
    ("isdtype", "kind"): ("integral", "real floating"),
    ("can_cast", "from_"): np.dtype("int8"),
    ("can_cast", "to"): np.dtype("int16"),
    ("finfo", "type"): np.dtype("float32"),
    ("iinfo", "type"): np.dtype("int32"),
    ("imag", "x"): X + 2j,
    ("cumulative_prod", "x"): X[0],
    ("cumulative_sum", "x"): X[0],
    ("searchsorted", "x1"): np.sort(X[0]),
    ("take_along_axis", "indices"): np.array([[1, 0, 1]], np.int64),
    ("tensordot", "x1"): X[:, :2],
    ("tensordot", "x2"): X[:, 1:],
    ("tensordot", "axes"): 1,
    ("vecdot", "x2"): X + 1,
    **{(name, x): WHOLE for name in OF_WHOLE for x in ("x", "x1")},
    **{(name, "x2"): np.array([1, 2, 3], np.int32) for name in OF_WHOLE},
}
VARIADIC = {
    "meshgrid": (X[0], X[:, 0]),
    "broadcast_arrays": (X, X[:1]),
    "result_type": (np.dtype("int8"), X, 1.0),
}
LISTS_OR_TUPLES = ("meshgrid", "broadcast_arrays", "unstack")
# NumPy's own name of a parameter, and what it has not.
NUMPY_NAMES = {("std", "correction"): "ddof", ("var", "correction"): "ddof"}


def argument(name: str, parameter: str) -> Any:
    return SPECIAL.get((name, parameter), COMMON.get(parameter))


def ours(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return tw.asarray(value, copy=True)
    if isinstance(value, np.dtype):
        return getattr(tw, value.name)
    if isinstance(value, (list, tuple)):
        return type(value)(map(ours, value))
    return value


def calls(name: str) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """With what is required alone; with all by place where that is allowed; with all by name."""
    given = FUNCTIONS[name].parameters.values()
    kinds = inspect.Parameter
    if name in VARIADIC:
        yield list(VARIADIC[name]), {}
        named = {p.name: argument(name, p.name) for p in given if p.kind is kinds.KEYWORD_ONLY}
        if named:
            yield list(VARIADIC[name]), named
        return
    required = [p for p in given if p.default is p.empty]
    yield [argument(name, p.name) for p in required], {}
    only_by_place = [p for p in given if p.kind is kinds.POSITIONAL_ONLY]
    either = [p for p in given if p.kind is kinds.POSITIONAL_OR_KEYWORD]
    by_name = [p for p in given if p.kind is kinds.KEYWORD_ONLY]
    named = {p.name: argument(name, p.name) for p in by_name}
    yield [argument(name, p.name) for p in (*only_by_place, *either)], named
    named = {p.name: argument(name, p.name) for p in (*either, *by_name)}
    yield [argument(name, p.name) for p in only_by_place], named
    for p in by_name:
        yield [argument(name, q.name) for q in required], {p.name: argument(name, p.name)}


def compare(y: Any, z: Any, name: str) -> None:
    if isinstance(z, (list, tuple)):
        assert isinstance(y, tuple if isinstance(z, tuple) else list) or name in LISTS_OR_TUPLES
        assert getattr(y, "_fields", None) == getattr(z, "_fields", None)
        assert len(y) == len(z)
        for a, b in zip(y, z, strict=True):
            compare(a, b, name)
    elif isinstance(y, tw.Tensor):
        z = np.asarray(z)
        assert y.shape == z.shape
        assert np.dtype(str(y.dtype)).kind == z.dtype.kind
        np.testing.assert_allclose(y.numpy(), z, rtol=2e-6, atol=1e-7)
    elif isinstance(y, tw.dtype):
        assert str(y) == str(z)
    elif name in ("finfo", "iinfo"):
        for fact in ("bits", "max", "min"):
            assert getattr(y, fact) == getattr(z, fact)
    else:
        assert y == z


def numpys(name: str, args: list[Any], named: dict[str, Any]) -> Any:
    """The same by NumPy, some of whose parameters have other names and defaults."""
    options = {NUMPY_NAMES.get((name, key), key): value for key, value in named.items()}
    options.pop("descending", None)  # False, always
    if name == "isdtype":
        return np.isdtype(*args, *options.values())
    return getattr(np, name)(*args, **options)


@per_function([name for name in THERE if not name.startswith(("empty", "__"))])
def test_signatures_by_calling(name: str) -> None:
    for args, named in calls(name):
        result = getattr(tw, name)(*map(ours, args), **{k: ours(v) for k, v in named.items()})
        compare(result, numpys(name, args, named), name)


def test_signatures_of_empty() -> None:
    for name in ("empty", "empty_like"):
        for args, named in calls(name):
            y = getattr(tw, name)(*map(ours, args), **{k: ours(v) for k, v in named.items()})
            assert y.shape == (2, 3)
            assert y.dtype == (tw.float64 if "dtype" in named else tw.float32)


def test_lists_and_tuples() -> None:
    x = tw.ones((2, 2))
    assert type(tw.meshgrid(x[0], x[0])) is list
    assert type(tw.broadcast_arrays(x, x)) is list
    assert type(tw.unstack(x)) is tuple
    assert type(tw.nonzero(x)) is tuple
    assert tw.broadcast_arrays(x)[0].dtype == x.dtype


@per_function([name for name in BINARY if name not in MISSING])
def test_functions_of_two_take_a_number_on_either_side(name: str) -> None:
    """Since 2024.12."""
    data = WHOLE if name in OF_WHOLE else np.abs(X)
    number: Any = 2 if name in OF_WHOLE else 2.0
    function, theirs = getattr(tw, name), getattr(np, name)
    compare(function(ours(data), number), theirs(data, number), name)
    compare(function(number, ours(data)), theirs(number, data), name)
    assert function(ours(data), number).dtype in (ours(data).dtype, tw.bool)


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


# ---- types ----

PROMOTIONS = """int8 int16 int16; int8 int64 int64; uint8 uint32 uint32; int8 uint8 int16
    int16 uint8 int16; int32 uint16 int32; int8 uint32 int64; int64 uint32 int64; uint8 int64 int64
    float32 float64 float64; float32 complex64 complex64; float64 complex64 complex128
    complex64 complex128 complex128; float32 complex128 complex128; uint64 uint8 uint64
    bool bool bool"""


def test_result_type() -> None:
    for row in PROMOTIONS.replace("\n", ";").split(";"):
        a, b, expected = row.split()
        for p, q in ((a, b), (b, a)):
            left, right = getattr(tw, p), getattr(tw, q)
            assert str(tw.result_type(left, right)) == expected
            assert str(tw.result_type(tw.ones((2,), dtype=left), right)) == expected
            if expected != "bool":
                y = tw.ones((2,), dtype=left) + tw.ones((2,), dtype=right)
                assert str(y.dtype) == expected
    assert tw.result_type(tw.int8, 1) == tw.int8
    assert tw.result_type(tw.float64, 1, 2.0) == tw.float64
    assert tw.result_type(tw.float32, 1j) == tw.complex64


def test_can_cast() -> None:
    for row in PROMOTIONS.replace("\n", ";").split(";"):
        a, b, both = (getattr(tw, name) for name in row.split())
        assert tw.can_cast(a, both)
        assert tw.can_cast(tw.ones((1,), dtype=b), both)
        assert tw.can_cast(a, b) == (both == b)
    assert not tw.can_cast(tw.float64, tw.complex64)
    assert tw.can_cast(tw.float64, tw.complex128)
    assert not tw.can_cast(tw.complex128, tw.complex64)
    assert not tw.can_cast(tw.complex64, tw.float32)
    assert not tw.can_cast(tw.int64, tw.uint64)
    assert not tw.can_cast(tw.uint64, tw.int64)
    assert not tw.can_cast(tw.float32, tw.int64)
    assert tw.can_cast(tw.bool, tw.int8)
    assert tw.can_cast("float16", tw.complex64)
    with pytest.raises(TypeError, match="can_cast: expected a dtype or a tensor, got 'text'"):
        tw.can_cast("text", tw.int8)


KINDS = {
    "bool": "bool",
    "signed integer": "int8 int16 int32 int64",
    "unsigned integer": "uint8 uint16 uint32 uint64",
    "integral": "int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "real floating": "float16 bfloat16 float32 float64",
    "complex floating": "complex64 complex128",
}


def test_isdtype() -> None:
    every = [getattr(tw, n) for n in (*DTYPES, "float16", "bfloat16") if n not in MISSING]
    for dtype in every:
        for kind, names in KINDS.items():
            assert tw.isdtype(dtype, kind) is (dtype.name in names.split())
        assert tw.isdtype(dtype, "numeric") is (dtype != tw.bool)
        assert tw.isdtype(dtype, dtype) is True
        assert tw.isdtype(dtype, (tw.int8, "real floating", "bool")) is (
            dtype.name in ("int8", "bool", *KINDS["real floating"].split())
        )
        assert tw.isdtype(dtype, ()) is False
    assert tw.isdtype(dtype=tw.int8, kind="integral")
    with pytest.raises(ValueError, match="isdtype: no kind 'integer'; choose from 'bool'"):
        tw.isdtype(tw.int8, "integer")
    with pytest.raises(ValueError, match="isdtype: no kind 3"):
        tw.isdtype(tw.int8, ("integral", 3))
    with pytest.raises(TypeError, match="isdtype: dtype must be a dtype, got 'int8'"):
        tw.isdtype("int8", "integral")


def test_finfo() -> None:
    for name in ("float16", "float32", "float64"):
        expected = np.finfo(name)
        for given in (getattr(tw, name), name, tw.ones((1,), dtype=name)):
            found = tw.finfo(given)
            for fact in ("bits", "eps", "max", "min", "smallest_normal", "tiny"):
                assert getattr(found, fact) == float(getattr(expected, fact)), (name, fact)
                assert type(getattr(found, fact)) is (int if fact == "bits" else float)
            assert found.dtype == getattr(tw, name)
    half = tw.finfo(tw.bfloat16)
    assert (half.bits, half.eps, half.smallest_normal) == (16, 2.0**-7, 2.0**-126)
    assert tw.asarray([half.max]).astype(tw.bfloat16).item() == half.max
    assert tw.finfo(tw.complex64) == tw.finfo(tw.float32)
    assert tw.finfo(tw.complex64).dtype == tw.float32
    assert tw.finfo(tw.complex128) == tw.finfo(tw.float64)
    for wrong in (tw.int32, tw.bool, "text", None):
        with pytest.raises(TypeError, match="finfo: "):
            tw.finfo(wrong)


def test_iinfo() -> None:
    for name in KINDS["integral"].split():
        expected = np.iinfo(name)
        found = tw.iinfo(getattr(tw, name))
        assert (found.bits, found.max, found.min) == (expected.bits, expected.max, expected.min)
        assert found.dtype == getattr(tw, name)
        assert tw.iinfo(tw.ones((1,), dtype=name)) == found
    for wrong in (tw.float32, tw.bool, "text", None):
        with pytest.raises(TypeError, match="iinfo: "):
            tw.iinfo(wrong)


def test_astype() -> None:
    x = tw.asarray([1.0, 2.0])
    assert tw.astype(x, tw.float32, copy=False) is x
    assert tw.astype(x, tw.float32, copy=False, device="cpu") is x
    y = tw.astype(x, tw.float32)
    y[0] = 5
    assert x.tolist() == [1, 2]
    assert tw.astype(x, tw.int8, device="null").device == "null"
    assert tw.astype(x, tw.int8, device="null").dtype == tw.int8
    assert tw.astype(tw.ones((2,), device="null"), tw.float32, device="cpu").device == "cpu"
    with pytest.raises(ValueError, match="astype: no device 'gpu'"):
        tw.astype(x, tw.int8, device="gpu")
    with pytest.raises(TypeError, match="imaginary part"):
        tw.astype(tw.asarray([1j]), tw.float32)
    assert tw.astype(tw.asarray([0.0, math.nan, -2.0]), tw.bool).tolist() == [False, True, True]


def test_asarray() -> None:
    x = tw.asarray([1.0, 2.0])
    assert tw.asarray(x) is x
    assert tw.asarray(x, copy=False) is x
    assert tw.asarray(x, copy=False, device="cpu", dtype=tw.float32) is x
    for y in (tw.asarray(x, copy=True), tw.asarray(x, dtype=tw.float64)):
        y[0] = 9
    array = np.array([1.0, 2.0])
    tw.asarray(array)[0] = 5
    tw.asarray(array, copy=False)[1] = 6
    tw.asarray(array, copy=True)[1] = 7
    assert (x.tolist(), array.tolist()) == ([1, 2], [5, 6])
    for source, options in (
        ([1.0], {}),
        (1.0, {}),
        (x, {"dtype": tw.float64}),
        (array, {"dtype": tw.float32}),
        (x, {"device": "null"}),
    ):
        with pytest.raises(ValueError, match=r"asarray: .*copy=False was given"):
            tw.asarray(source, copy=False, **options)
    assert tw.asarray(x, device="null").device == "null"
    assert tw.asarray(tw.ones((2,), device="null")).device == "null"
    with pytest.raises(ValueError, match="asarray: no device 'gpu'"):
        tw.asarray(x, device="gpu")
    for wrong in (1, "yes"):
        with pytest.raises(TypeError, match="asarray: copy must be"):
            tw.asarray(x, copy=wrong)
    kinds = ((True, "bool"), (1, "int64"), (1.0, "float32"), (1j, "complex64"))
    for value, dtype in kinds:
        assert str(tw.asarray(value).dtype) == str(tw.asarray([[value]]).dtype) == dtype
    assert tw.asarray([True, 1]).dtype == tw.int64
    assert tw.asarray([1, 1.5]).dtype == tw.float32
    assert tw.asarray([1, 1.5, 1j]).dtype == tw.complex64
    assert tw.asarray([tw.asarray(1.0), 2]).tolist() == [1, 2]


# ---- what the library says of itself ----


def test_namespace_info() -> None:
    info = tw.__array_namespace_info__()
    found = info.capabilities()
    assert found == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 32,
    }
    tw.ones((1,) * found["max dimensions"])
    with pytest.raises(ValueError, match="at most 32 dimensions"):
        tw.ones((1,) * (found["max dimensions"] + 1))
    assert info.default_device() == "cpu" == tw.ones((1,)).device
    assert info.devices()[0] == "cpu"
    assert all(name.startswith("cuda:") for name in info.devices()[1:])
    for device in info.devices():
        assert tw.zeros((2,), device=device).device == device
    assert info.default_dtypes() == info.default_dtypes(device="cpu")
    assert info.default_dtypes() == {
        "real floating": tw.ones(()).dtype,
        "complex floating": tw.asarray(1j).dtype,
        "integral": tw.asarray(1).dtype,
        "indexing": tw.argmax(tw.ones((1,))).dtype,
    }
    expected = {name: getattr(tw, name) for name in DTYPES if name not in MISSING}
    assert info.dtypes() == info.dtypes(device="cpu") == expected
    for kind, names in KINDS.items():
        standard = {n: expected[n] for n in names.split() if n in expected}
        assert info.dtypes(kind=kind) == standard
    assert set(info.dtypes(kind="numeric")) == set(expected) - {"bool"}
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}
    assert info.dtypes(kind=()) == {}
    with pytest.raises(ValueError, match="dtypes: no kind 'integer'"):
        info.dtypes(kind="integer")
    for function in (info.dtypes, info.default_dtypes):
        with pytest.raises(ValueError, match="no device 'gpu'"):
            function(device="gpu")


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


# ---- the default type ----


@pytest.fixture
def in_float64() -> Iterator[None]:
    tw.set_default_dtype(tw.float64)
    yield
    tw.set_default_dtype(tw.float32)


MADE: dict[str, Callable[[], Any]] = {
    "asarray": lambda: tw.asarray([1.5]),
    "tensor": lambda: tw.tensor(0.5),
    "zeros": lambda: tw.zeros((2,)),
    "ones": lambda: tw.ones(2),
    "empty": lambda: tw.empty((2,)),
    "full": lambda: tw.full((2,), 1.5),
    "eye": lambda: tw.eye(2),
    "arange": lambda: tw.arange(0.0, 1.0, 0.25),
    "linspace": lambda: tw.linspace(0, 1, 3),
    "rand": lambda: tw.rand(3),
    "randn": lambda: tw.randn(3),
    "uniform": lambda: tw.uniform(0, 1, (3,)),
    "normal": lambda: tw.normal(0, 1, (3,)),
    "bernoulli": lambda: tw.bernoulli(0.5, (3,)),
    "sqrt of integers": lambda: tw.sqrt(tw.asarray([2, 3])),
    "a number beside integers": lambda: tw.asarray([2, 3]) * 1.1,
    "softmax of integers": lambda: tw.softmax(tw.asarray([2, 3])),
    "mean of bool": lambda: tw.asarray([True, False]) * 0.1,
    "float": lambda: tw.asarray([1], dtype=float),
    "result_type": lambda: tw.ones((2,), dtype=tw.result_type(1, 2.5)),
    "linear": lambda: tw.nn.Linear(2, 3).weight,
    "convolution": lambda: tw.nn.Conv2d(2, 3, 1).bias,
    "norm": lambda: tw.nn.BatchNorm1d(3).running_mean,
    "embedding": lambda: tw.nn.Embedding(3, 2).weight,
    "lstm": lambda: tw.nn.LSTM(2, 3).weight_ih_l0,
}


@pytest.mark.parametrize("name", MADE)
def test_the_default_type(name: str, in_float64: None) -> None:
    assert MADE[name]().dtype == tw.float64
    tw.set_default_dtype(tw.float32)
    assert MADE[name]().dtype == tw.float32


def test_the_default_type_decides_no_more_than_that(in_float64: None) -> None:
    assert tw.get_default_dtype() == tw.float64
    assert tw.__array_namespace_info__().default_dtypes()["real floating"] == tw.float64
    assert tw.asarray([0.1]).item() == 0.1
    assert (tw.sqrt(tw.asarray([2])).item(), (tw.asarray([1]) / 3).item()) == (2**0.5, 1 / 3)
    np.testing.assert_allclose(
        tw.softmax(tw.asarray([1, 2])).numpy(), np.exp([1, 2]) / np.exp([1, 2]).sum(), rtol=1e-14
    )
    x = tw.ones((2,), dtype=tw.float32)
    assert (x * 2.5).dtype == tw.float32
    assert tw.asarray(np.ones(2, np.float32)).dtype == tw.float32
    assert tw.ones_like(x).dtype == tw.float32
    assert tw.asarray([1]).dtype == tw.int64


def test_the_default_type_is_a_wide_floating_one() -> None:
    assert tw.get_default_dtype() == tw.float32
    for wrong in (tw.int32, tw.float16, tw.complex64):
        with pytest.raises(TypeError, match="set_default_dtype: dtype must be float32 or float64"):
            tw.set_default_dtype(wrong)
    assert tw.get_default_dtype() == tw.float32


def test_linspace_of_complex_ends() -> None:
    for ends in ((0, 1j), (1 - 1j, 3.0), (2.0, 2.0 + 4j)):
        for num in (0, 1, 2, 7):
            for endpoint in (True, False):
                got = tw.linspace(*ends, num, endpoint=endpoint)
                compare(got, np.linspace(*ends, num, endpoint=endpoint), "linspace")
                assert got.dtype == tw.complex64
    assert tw.linspace(0, 1j, 3, dtype=tw.complex128).dtype == tw.complex128
    with pytest.raises(TypeError, match="complex numbers do not fit float32"):
        tw.linspace(0, 1j, 3, dtype=tw.float32)


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
