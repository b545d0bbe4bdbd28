"""Docstrings of public functions say shapes, types, errors and source, and what they say is so."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from cases import RECORDS, arrays
from cases.check import tensors
from cases.record import OpCase

import tilewright as tw
from tilewright import _core

MODULES = (
    "tilewright", "tilewright.linalg", "tilewright.fft", "tilewright.nn.functional",
    "tilewright.nn.init", "tilewright.nn.utils", "tilewright.optim", "tilewright.autograd",
    "tilewright.amp", "tilewright.kernels", "tilewright.memory", "tilewright.runtime",
    "tilewright.io", "tilewright.cuda",
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
    return home == "tilewright.extras" and path != home


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


per_function = pytest.mark.parametrize("name", FUNCTIONS)


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
        assert re.search(r"[Rr]aises `?\w*(Error|Exception)|Raises what|errors are those of",
                         text_of(function))


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
