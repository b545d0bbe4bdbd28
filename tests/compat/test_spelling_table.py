"""The table of other libraries' spellings: each row names what exists, and is what calls take."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import pytest

import tilewright as tw
from tilewright import _core

Row = dict[str, str]
ROWS: list[Row] = _core._spellings()
KINDS = Counter(row["kind"] for row in ROWS)


def callables() -> Iterator[tuple[Any, str, Any]]:
    """All functions and methods that other libraries' names may call."""
    for owner in (tw, tw.linalg, tw.special, tw.Tensor):
        for name in dir(owner):
            value = getattr(owner, name, None)
            if not name.startswith("_") and hasattr(value, "other_arguments"):
                yield owner, name, value


CALLABLES = list(callables())


def named(name: str) -> list[Any]:
    """The functions and methods of a name."""
    return [value for _, own, value in CALLABLES if own in (name, f"{name}_")]


def parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def takes(function: Any, theirs: str, ours: str) -> bool:
    return function.other_arguments.get(theirs) == ours and ours in parameters(function)


def is_there(name: str) -> bool:
    """Whether the package or Tensor has it."""
    try:
        attrgetter(name)(tw)
    except AttributeError:
        return hasattr(tw.Tensor, name)
    return True


def fault_of_name(row: Row) -> bool:
    return not (is_there(row["ours"]) and is_there(row["theirs"]))


def fault_of_dtype(row: Row) -> bool:
    here = row["kind"] == "cast" or getattr(tw, row["theirs"]) is getattr(tw, row["ours"])
    return not (here and str(getattr(tw.ones(1), row["theirs"])().dtype) == row["ours"])


def fault_of_argument(row: Row) -> bool:
    candidates = named(row["function"]) if row["function"] else [f for _, _, f in CALLABLES]
    return not any(takes(function, row["theirs"], row["ours"]) for function in candidates)


def fault_of_extents(row: Row) -> bool:
    owner = tw.Tensor if row["note"] == "method" else tw
    return getattr(getattr(owner, row["function"], None), "extents_at", None) is None


def fault_of_pair(row: Row) -> bool:
    op = getattr(_core, row["ours"], None)
    return not (named(row["function"]) and op and "axis" in parameters(op))


def fault_of_method_argument(row: Row) -> bool:
    method = getattr(tw.Tensor, row["function"], None)
    return not (named(row["function"]) and row["theirs"] in parameters(method))


def fault_of_difference(row: Row) -> bool:
    functions = named(row["function"])
    return not functions or any(row["theirs"] in f.other_arguments for f in functions)


def fault_of_form(row: Row) -> bool:
    ast.parse(f"def _{row['note']}: ...")
    return not named(row["function"])


def fault_of_absent(row: Row) -> bool:
    return hasattr({"package": tw, "Tensor": tw.ones(1)}[row["function"]], row["theirs"])


FAULT: dict[str, Callable[[Row], bool]] = {
    "name": fault_of_name,
    "dtype": fault_of_dtype,
    "cast": fault_of_dtype,
    "argument of": fault_of_argument,
    "first": fault_of_argument,
    "argument": fault_of_argument,
    "extents": fault_of_extents,
    "pair": fault_of_pair,
    "method argument": fault_of_method_argument,
    "form": fault_of_form,
    "difference": fault_of_difference,
    "absent": fault_of_absent,
}


def key(row: Row) -> tuple[str, ...]:
    """What no two rows have in common; an argument may be ours by one of several names."""
    kind = "dtype" if row["kind"] == "cast" else row["kind"]
    ours = row["ours"] if kind in ("first", "argument") else ""
    return (kind, row["function"], row["theirs"], ours, row["note"] if kind == "extents" else "")


def faults(rows: list[Row]) -> list[Row]:
    """Rows that name what does not exist, or that another row contradicts."""
    counts = Counter(map(key, rows))
    return [row for row in rows if counts[key(row)] > 1 or FAULT[row["kind"]](row)]


def test_every_row_names_what_exists() -> None:
    assert faults(ROWS) == []


def row(kind: str, theirs: str, ours: str, function: str = "", note: str = "") -> Row:
    values = (kind, "torch", function, theirs, ours, note)
    return dict(zip(("kind", "library", "function", "theirs", "ours", "note"), values, strict=True))


@pytest.mark.parametrize(
    "planted",
    [
        row("name", "unsqueeze_all", "expand_all_dims"),
        row("name", "cat", "stack"),
        row("argument", "dimension", "axiss"),
        row("argument of", "exponent", "power", "pow"),
        row("argument of", "exponent", "b", "powder"),
        row("argument of", "exponent", "a", "pow"),
        row("argument", "dim", "axis"),
        row("extents", "", "", "exp", "method"),
        row("pair", "dim", "sum_with_indices", "sum"),
        row("method argument", "beta", "beta", "add"),
        row("difference", "dim", "", "sum"),
        row("form", "", "", "nowhere", "(x: Tensor) -> Tensor"),
        row("absent", "relu", "", "package"),
    ],
    ids=lambda row: f"{row['kind']} {row['function']}{row['theirs']}",
)
def test_a_wrong_row_is_found(planted: Row) -> None:
    assert planted in faults([*ROWS, planted])


@pytest.mark.parametrize("owner", [tw, tw.Tensor])
def test_functions_by_other_names_have_the_same_arguments(owner: Any) -> None:
    compared = 0
    for each in (row for row in ROWS if row["kind"] == "name"):
        try:
            other, own = getattr(owner, each["theirs"]), attrgetter(each["ours"])(owner)
        except AttributeError:
            continue  # a function alone, or a method alone
        compared += 1
        assert parameters(other) == parameters(own)
        # `amax` takes the `dim` with which `max` gives two tensors.
        assert getattr(other, "other_arguments", {}) == getattr(own, "other_arguments", {})
    assert compared > 30


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda x: x.sum(dimm=1), "dim"),
        (lambda x: tw.pow(x, exponnt=2), "exponent"),
        (lambda x: tw.sum(x, axs=1), "axis"),
    ],
)
def test_a_misspelt_name_is_told_by_the_nearest(call: Callable[..., Any], advice: str) -> None:
    with pytest.raises(TypeError, match=f"did you mean '{advice}'"):
        call(tw.ones((2, 3)))
