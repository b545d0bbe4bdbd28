"""The Python Array API standard, version 2024.12: names, signatures, behaviour, against NumPy."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cases.array_api import DTYPES, MISSING, ours

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
