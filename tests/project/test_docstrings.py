"""Docstrings of public functions say shapes, types, errors and source, and what they say is so."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cases import RECORDS, arrays, documented, refusals
from cases.arguments import arguments
from cases.check import tensors
from cases.record import OpCase
from subcases import each

import tilewright as tw
from tilewright import _core, linalg
from tilewright.autograd.gradient_check import GradcheckError

MODULES = (
    "tilewright", "tilewright.linalg", "tilewright.fft", "tilewright.nn.functional",
    "tilewright.nn.init", "tilewright.nn.utils", "tilewright.optim", "tilewright.autograd",
    "tilewright.amp", "tilewright.kernels", "tilewright.memory", "tilewright.runtime",
    "tilewright.io", "tilewright.cuda", "tilewright.func", "tilewright.distributions",
    "tilewright.special", "tilewright.testing",
)  # fmt: skip
OPS = {op["name"]: op for op in _core._op_records()}
KINDS = {
    "bool": ("bool",),
    "integer": arrays.INTEGERS,
    "floating": arrays.FLOATS,
    "complex": arrays.COMPLEX,
    "all": arrays.ALL,
    **{name: (name,) for name in ("float32", "float64", "int64")},
}


def public_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """Functions by their full names, each object once."""
    seen: set[int] = set()
    for path in MODULES:
        module = importlib.import_module(path)
        for name in sorted(getattr(module, "__all__", dir(module))):
            value = getattr(module, name)
            if name.startswith("_") or isinstance(value, type) or not callable(value):
                continue
            ours = (getattr(value, "__module__", None) or "").startswith("tilewright")
            if ours and not is_imported(path, value) and id(value) not in seen:
                seen.add(id(value))
                yield f"{path}.{name}", value


def is_imported(path: str, value: Callable[..., object]) -> bool:
    """Whether a module only uses a function that another package of ours shows."""
    home = value.__module__
    return home == "tilewright._engine.optional_packages" and path != home


FUNCTIONS = dict(public_functions())


def text_of(function: Callable[..., object]) -> str:
    return " ".join((inspect.getdoc(function) or "").split())


def own_name(name: str) -> str:
    """The name by which the docstring knows a function, which others stand for as well."""
    shown = re.match(r"(\w+)\(", inspect.getdoc(FUNCTIONS[name]) or "")
    return shown[1] if shown else name.rpartition(".")[2]


def is_about_tensors(function: Callable[..., object]) -> bool:
    """Whether a tensor goes in or comes out, by the signature."""
    shown = inspect.signature(function)
    annotations = [p.annotation for p in shown.parameters.values()] + [shown.return_annotation]
    return any(re.search(r"\b(Tensor|ValuesAndIndices|\w+Result)\b", str(a)) for a in annotations)


def takes_arguments(function: Callable[..., object]) -> bool:
    return any(name != "self" for name in inspect.signature(function).parameters)


per_function = each("name", FUNCTIONS)


# ---- the parts ----


@per_function
def test_a_docstring_begins_with_a_sentence(name: str) -> None:
    text = inspect.getdoc(FUNCTIONS[name]) or ""
    if re.match(r"\w+\(.*\) -> ", text):  # the engine's begin with their signature
        text = text.partition("\n\n")[2]
    assert re.match(r"\S.*?\.", text, re.S), text


@per_function
def test_errors_are_named(name: str) -> None:
    """Where there are arguments, there are wrong ones."""
    function = FUNCTIONS[name]
    if takes_arguments(function):
        assert re.search(
            r"[Rr]aises `?\w*(Error|Exception)|Raises what|errors are those of", text_of(function)
        )


@per_function
def test_shapes_types_and_source_are_told(name: str) -> None:
    function = FUNCTIONS[name]
    if is_about_tensors(function):
        text = text_of(function)
        for part in ("Shapes: ", "Types: ", "Source: "):
            assert text.count(part) == 1, part


# ---- sources ----


def resolved(path: str) -> object:
    root, *rest = path.split(".")
    value: object = pytest.importorskip(root)
    for i, part in enumerate(rest):
        if not hasattr(value, part):
            value = importlib.import_module(".".join([root, *rest[: i + 1]]))
        else:
            value = getattr(value, part)
    return value


@per_function
def test_sources_are_there(name: str) -> None:
    """The named function is another library's, the standard's, or a publication has its year."""
    told = re.search(r"Source: (.*)", text_of(FUNCTIONS[name]))
    if not told:
        return
    source = told[1]
    named = re.match(r"(?:PyTorch|NumPy|SciPy)'s ([\w.]*\w)", source)
    if named:
        assert callable(resolved(named[1]))
    elif source.startswith("Array API standard 2024.12"):
        strict = pytest.importorskip("array_api_strict")
        of = re.match(r"Array API standard 2024.12, ([\w.]*\w)", source)
        path = of[1] if of else own_name(name)
        for part in path.split("."):
            strict = getattr(strict, part)
    else:
        assert re.search(r"\b(1[6-9]|20)\d\d\b|definition|this package", source), source


# ---- element types ----


def told_types(text: str) -> tuple[str, str]:
    """What a docstring says of operands and of the result."""
    told = re.search(r"Types: (.*?)\. (?:Result: (.*?)(?:\. |\.$|$))?", text + " ")
    assert told, text
    return told[1], told[2] or ""


def taken_kinds(operands: str) -> set[str]:
    """The dtypes that a line of types names."""
    kinds, _, more = operands.partition(";")
    taken = {dtype for kind in kinds.split(", ") for dtype in KINDS[kind]}
    if "integers" in more and "become" in more:
        taken |= {*arrays.INTEGERS} | ({"bool"} if "and bool" in more else set())
    return taken


SIZES = {"complex64": "float32", "complex128": "float64"}
PARTS = {real: whole for whole, real in SIZES.items()}
NAMED = {
    "integers": arrays.INTEGERS,
    "integers and bool": ("bool", *arrays.INTEGERS),
    "bool and integers": ("bool", *arrays.INTEGERS),
    "bool": ("bool",),
    "complex numbers": arrays.COMPLEX,
    "float64 and complex128": ("float64", "complex128"),
    "float64": ("float64",),
    "uint64": ("uint64",),
}


def one_dtype(phrase: str, dtype: str) -> str | None:
    """The dtype that a phrase means for operands of a dtype; None: it depends on more."""
    if phrase.endswith(("the same type", "the common type")):
        return dtype
    if phrase == "the default floating type":
        return "float32"
    if phrase == "int64 or uint64":
        return "uint64" if dtype.startswith("u") else "int64"
    if phrase in ("that of their parts", "that of the parts"):
        return SIZES[dtype]
    if phrase == "the complex type of such parts":
        return PARTS[dtype]
    return phrase if phrase in arrays.ALL else None


def told_dtype(operands: str, result: str, dtype: str) -> str | None:
    """The dtype of the (first) result for operands of a dtype, as the docstring says."""
    if "become the default floating type" in operands and dtype in NAMED["integers and bool"]:
        dtype = "float32"
    result = result.rpartition("by default ")[2]
    first, *others = re.split(r", of ", result)
    phrase = re.split(r"[,;]", first)[0]
    for other in others:
        for kind in sorted(NAMED, key=len):
            if other.startswith(f"{kind} ") and dtype in NAMED[kind]:
                phrase = other.removeprefix(f"{kind} ").split(";")[0]
    return one_dtype(phrase, dtype)


def check_types(text: str, call: Callable[[str], object]) -> None:
    operands, result = told_types(text)
    taken = taken_kinds(operands)
    for dtype in arrays.ALL:
        if dtype not in taken:
            with pytest.raises(TypeError):
                call(dtype)
            continue
        found = call(dtype)
        if isinstance(found, (tuple, list)):
            found = found[0]
        expected = {told_dtype(operands, result, dtype)}
        if result.startswith("dtype"):  # which calls may have given
            expected |= {dtype}
        if "indices of int64" in result:  # which records may look at
            expected |= {"int64"}
        if None not in expected and not (dtype == "bool" and "takes part as a number" in operands):
            assert str(found.dtype) in expected, dtype


def call_of(case: OpCase) -> Callable[[str], object]:
    """The op on its record's arguments, those of the record's main dtype in another one."""
    main = next(d for d in ("float32", "float64", "complex64", "int32") if d in case.tolerance)
    given = tensors(case.arguments(np.random.default_rng(0), main)[0], main)

    def call(dtype: str) -> object:
        of_main = [str(x.dtype) == main for x in given]
        args = [
            tw.astype(abs(x) if dtype == "bool" else x, getattr(tw, dtype)) if turns else x
            for x, turns in zip(given, of_main, strict=True)
        ]
        return case.call(*args, **case.variants[0])

    return call


TABLE = {row["name"]: row for row in _core.pointwise_table()}
ROWS = set(TABLE)
DESCRIBED = [case for case in RECORDS if case.name not in ROWS and OPS[case.name]["function"]]


@pytest.mark.filterwarnings("ignore")
@each("case", DESCRIBED, ids=str)
def test_ops_take_and_give_the_types_that_are_told(case: OpCase) -> None:
    check_types(text_of(getattr(tw, case.name)), call_of(case))


@pytest.mark.filterwarnings("ignore")
@each("name", documented.BY_DTYPE)
def test_functions_take_and_give_the_types_that_are_told(name: str) -> None:
    check_types(text_of(resolved(name)), documented.BY_DTYPE[name])


# ---- shapes ----

# What lines of shapes say, and the result's shape by those of the tensors and the words given.
SHAPES: dict[str, Callable[[list[tuple[int, ...]], dict[str, Any]], tuple[int, ...]]] = {
    r"^(x|input|tensor) of any shape; the result has it\b(?!,)": lambda x, _: x[0],
    r"the result has (x|input)'s shape\.": lambda x, _: x[0],
    r"operands broadcast; the result has their common shape": lambda x, _: tw.broadcast_shapes(*x),
    r"^\w+(, \w+)* and \w+ broadcast; the result has their common shape[.,]": (
        lambda x, _: tw.broadcast_shapes(*x)
    ),
    r"the result has no dimensions": lambda *_: (),
    r"the result is \(\), or": lambda *_: (),
    r"of any shape; the result lacks the ax[ie]s": (
        lambda x, given: tuple(
            n for i, n in enumerate(x[0]) if "axis" in given and i != given["axis"]
        )
    ),
    r"the result has the shape (given|size)": lambda _, given: given.get(
        "shape", given.get("size", ())
    ),
    r"the result has index's shape": lambda x, _: x[1],
}


@each("name", [name for name, op in OPS.items() if op["function"]])
def test_shapes_that_are_told_are_the_results(name: str) -> None:
    told = re.search(r"Shapes: (.*?) Types: ", text_of(getattr(tw, name)))
    assert told
    given = arguments(OPS[name])
    shapes = [value.shape for value in given.values() if isinstance(value, tw.Tensor)]
    for phrase, shape in SHAPES.items():
        if re.search(phrase, told[1]):
            result = getattr(tw, name)(**given)
            assert result.shape == shape(shapes, given)


# ---- errors ----

BUILTIN = {
    error.__name__: error
    for error in (
        TypeError, ValueError, IndexError, RuntimeError, OverflowError, BufferError, KeyError,
        OSError, FileNotFoundError, MemoryError, AssertionError, NotImplementedError,
        ImportError, linalg.LinAlgError, GradcheckError,
    )
}  # fmt: skip


def told_errors(name: str) -> set[str]:
    return set(re.findall(r"\b(\w+Error)\b", text_of(FUNCTIONS[name])))


def raised_by(call: Callable[[], object]) -> Exception:
    try:
        result = call()
    except Exception as error:
        return error
    raise AssertionError(f"not refused: {call} gave {result!r}")


def refused_calls(name: str) -> list[Callable[[], object]]:
    """Calls that must be refused: what the signature says of any function, and what is listed."""
    function = FUNCTIONS[name]
    calls = list(refusals.REFUSED.get(name, []))
    required = [
        p for p in inspect.signature(function).parameters.values() if p.default is p.empty
    ] or [next(iter(inspect.signature(function).parameters.values()))]
    places = [p for p in required if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    words = {p.name: object() for p in required if p.kind is p.KEYWORD_ONLY}
    if type(function).__name__ in ("Function", "Method"):
        calls.append(lambda: function(*(object() for _ in places), **words))
    if "In place it also raises" in text_of(function):
        others = [0.5 for _ in places[1:]] or [0.5]
        calls.append(lambda: function(tw.ones(3).requires_grad_(), *others))
        calls.append(lambda: function(tw.ones(3), tw.ones((2, 3)), *others[1:]))
    if own_name(name) in ROWS:
        calls += refused_by_row(TABLE[own_name(name)], function, told_errors(name))
    op = OPS.get(own_name(name))
    if op and op["function"] and type(function) is type(tw.add):
        calls += [error.call for error in ERROR_INPUTS.get(op["name"], ())]
        calls += refused_by_signature(op, function)
    return calls


ERROR_INPUTS = {case.name: case.errors for case in RECORDS}


def refused_by_row(
    row: dict[str, Any], function: Callable[..., object], told: set[str]
) -> list[Callable[[], object]]:
    x, between = tw.ones(2, dtype=tw.int8), row["arity"] - 2
    calls: list[Callable[[], object]] = []
    if "shapes that do not broadcast" in text_of(function):
        calls.append(lambda: function(*(tw.ones(n + 2) for n in range(row["arity"]))))
    if "OverflowError" in told:
        calls.append(lambda: function(x, *[x] * between, 1000))
    return calls


def refused_by_signature(
    op: dict[str, str], function: Callable[..., object]
) -> list[Callable[[], object]]:
    given = arguments(op)
    function(**given)
    wrong: list[dict[str, object]] = []
    for axis in re.findall(r"(axis\d?|axes|\w+_axis): (?:int|Axes)", op["signature"]):
        wrong.append({axis: 99})
    for axes in re.findall(r"(\w+): Axes", op["signature"]):
        wrong.append({axes: (0, 0)})
    for word in re.findall(r"(\w+): (?:Shape \| )?'", op["signature"]):
        wrong.append({word: "nonsense"})
    if "device: Device" in op["signature"]:
        wrong.append({"device": "nowhere"})
    operands = [key for key, value in given.items() if isinstance(value, tw.Tensor)]
    if len(operands) > 1:
        wrong.append({operands[-1]: given[operands[-1]].to("null")})
    if several := re.match(r"\((\w+): Sequence\[Tensor\]", op["signature"]):
        wrong.append({several[1]: [tw.ones(2), tw.ones(2).to("null")]})
    return [functools.partial(function, **{**given, **changed}) for changed in wrong]


@pytest.mark.filterwarnings("ignore")
@per_function
def test_errors_that_are_told_are_raised_and_no_others(name: str) -> None:
    """Each call is refused with an error that the docstring names, and each of these occurs."""
    function = FUNCTIONS[name]
    if not takes_arguments(function):
        return
    told = told_errors(name)
    found: set[str] = set()
    for call in refused_calls(name):
        error = raised_by(call)
        kinds = {kind for kind in told if isinstance(error, BUILTIN[kind])}
        assert kinds, f"{type(error).__mro__}: {error}"
        found |= kinds
    operands = re.search(r"Types: (all)?", text_of(function))
    if operands and not operands[1]:
        found |= told & {"TypeError"}  # see the tests of types
    if "RuntimeError without a usable GPU" in text_of(function) and tw.cuda.is_available():
        found |= {"RuntimeError"}
    assert found == told


IN_PLACE = [name for name, op in OPS.items() if op["in_place"]]


@each("name", IN_PLACE)
def test_forms_in_place_tell_what_else_they_raise(name: str) -> None:
    method = getattr(tw.Tensor, f"{name}_")
    assert "In place it also raises RuntimeError for a leaf that requires grad" in text_of(method)
    given = arguments(OPS[name])
    x, *others = (given[n] for n in inspect.signature(getattr(tw, name)).parameters if n in given)
    if x.dtype != tw.float32:
        return  # which has no gradients
    with pytest.raises(RuntimeError, match="leaf"):
        getattr(tw.ones(x.shape).requires_grad_(), f"{name}_")(*others)


def test_a_form_in_place_keeps_shape_and_kind_of_type() -> None:
    with pytest.raises(ValueError, match="cannot be written in place"):
        tw.ones(3).add_(tw.ones((2, 3)))
    with pytest.raises(TypeError, match="cannot be written in place"):
        tw.ones(3, dtype=tw.int32).multiply_(1.5)


# ---- optimizers ----

OPTIMIZERS = [
    optimizer
    for name in tw.optim.__all__
    if isinstance(optimizer := getattr(tw.optim, name), type)
    and issubclass(optimizer, tw.optim.Optimizer)
    and optimizer is not tw.optim.Optimizer
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers_tell_shapes_types_errors_and_source(
    optimizer: type[tw.optim.Optimizer],
) -> None:
    text = text_of(optimizer)
    for part in ("Shapes: ", "Types: ", "Source: "):
        assert text.count(part) == 1, part
    assert "Raises ValueError for settings out of range and for no parameters, TypeError" in text
    assert re.search(r"\b(19|20)\d\d\b|torch\.optim", text)
    x = tw.ones(2, requires_grad=True)
    for params, settings in (([x], {"lr": -1.0}), ([], {})):
        with pytest.raises(ValueError, match=r"lr|no parameters"):
            optimizer(params, **settings)
    for params in ([object()], [tw.ones(2, dtype=tw.int32)], x):
        with pytest.raises(TypeError):
            optimizer(params)
