"""Signatures as type stubs write them, with overloads for the spellings of other libraries."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tilewright import _core

# What annotations name.
IMPORTS = {
    "from tilewright._engine.device_names import device as _Device",
    "from tilewright._engine.element_count import ElementCount as _ElementCount",
}

LINE_WIDTH = 100

# Words of the binding's annotations, where Python has a better name. The second column is for
# results.
TYPES = {
    r"Tensor \| bool \| int \| float \| complex": ("_Operand", "Tensor"),
    r"bool \| int \| float \| complex": ("_Number", "_Number"),
    r"\bbool\b": ("_Bool", "_Bool"),  # the module has functions and types of these names
    r"\bcomplex\b": ("_Complex", "_Complex"),
    r"\bdtype\b": ("_DTypeLike", "_DType"),
    r"^int \| Sequence\[int\]$": ("int | Sequence[int]", "tuple[int, ...]"),
    r"^object \| None$": ("object", "Any"),
    r"^object$": ("object", "Any"),
    r"^Callable$": ("Callable[..., Any]", "Callable[..., Any]"),
    r"^dict$": ("dict[str, Any]", "dict[str, Any]"),
    r"^list$": ("list[Any]", "list[dict[str, Any]]"),
    r"^tuple$": ("tuple[Any, ...]", "tuple[Any, ...]"),
}


@dataclass
class Param:
    """A parameter as a stub has it; kinds are in the order in which they stand."""

    POSITIONAL_ONLY: ClassVar[int] = 0
    PLAIN: ClassVar[int] = 1
    VARIABLE: ClassVar[int] = 2
    KEYWORD_ONLY: ClassVar[int] = 3
    KEYWORDS: ClassVar[int] = 4

    name: str
    annotation: str | None = None
    default: str | None = None
    kind: int = 1

    def __str__(self) -> str:
        stars = {self.VARIABLE: "*", self.KEYWORDS: "**"}.get(self.kind, "")
        annotation = "" if self.annotation is None else f": {self.annotation}"
        default = "" if self.default is None else f"={self.default}"
        return f"{stars}{self.name}{annotation}{default}"


def first_line(doc: str | None) -> str:
    """A docstring's first paragraph, on one line."""
    text = " ".join((doc or "").strip().partition("\n\n")[0].split())
    return textwrap.shorten(text, LINE_WIDTH - 16, placeholder=" ...")


def without_shadows(line: str) -> str:
    """A line of the class with int and float by names that no method hides."""
    if line.lstrip().startswith('"""'):
        return line
    line = re.sub(r"(?<!def )\bint\b", "_Int", line)
    return re.sub(r"(?<!def )\bfloat\b", "_Float", line)


def documented(
    indent: str, name: str, parameters: list[Param], result: str, doc: str | None
) -> Iterator[str]:
    """A function's head and the first sentence of its documentation."""
    told = doc is not None and not doc.startswith("(")  # nanobind's stand-in where there is none
    end = "" if told else " ..."
    parts = list(written(parameters))
    head = f"{indent}def {name}({', '.join(parts)}) -> {result}:"
    shown = without_shadows(head) if indent else head  # as the class will have it
    if len(shown) + len(end) <= LINE_WIDTH:
        yield head + end
    else:
        yield f"{indent}def {name}("
        yield from (f"{indent}    {part}," for part in parts)
        yield f"{indent}) -> {result}:{end}"
    if told:
        yield f'{indent}    """{first_line(doc)}"""'


def written(parameters: list[Param]) -> Iterator[str]:
    """Each parameter, with the marks between kinds."""
    kinds = [p.kind for p in parameters]
    for i, p in enumerate(parameters):
        starts = p.kind == Param.KEYWORD_ONLY and Param.KEYWORD_ONLY not in kinds[:i]
        if starts and Param.VARIABLE not in kinds:
            yield "*"
        yield str(p)
        if p.kind == Param.POSITIONAL_ONLY and Param.POSITIONAL_ONLY not in kinds[i + 1 :]:
            yield "/"


def overloaded(
    indent: str, name: str, forms: list[tuple[list[Param], str]], doc: str | None
) -> Iterator[str]:
    """A function's overloads; the first has the documentation."""
    for i, (parameters, result) in enumerate(forms):
        if len(forms) > 1:
            yield f"{indent}@overload"
        yield from documented(indent, name, parameters, result, None if i else doc)


# ---- from functions to parameters ----


def parse(function: Any) -> list[Any]:
    """nanobind's signatures as syntax trees, with the defaults put in."""
    nodes = []
    for signature, _, defaults in function.__nb_signature__:
        text = signature
        # From the last on, so that \\1 is not taken for the start of \\10.
        for i in reversed(range(len(defaults or ()))):
            text = text.replace(f"\\{i}", default_text(defaults[i]))
        text = text.replace("def (", "def _(")
        nodes += ast.parse(f"{text}: ...").body
    return nodes


def default_text(value: Any) -> str:
    return repr(value) if value is None or isinstance(value, (bool, int, float, str)) else "..."


def type_text(told: str, column: int = 0) -> str:
    text = re.sub(r"collections\.abc\.|tilewright\._core\.|typing\.|os\.", "", told)
    text = text.replace("None | None", "None")
    for words, names in TYPES.items():
        text = re.sub(words, names[column], text)
    return text


def name_of(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def params(arguments: ast.arguments) -> list[Param]:
    """In order; the annotations are those of the stub."""
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = dict(zip(reversed(plain), reversed(arguments.defaults), strict=False))
    defaults |= dict(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    rows = [
        *((a, Param.POSITIONAL_ONLY) for a in arguments.posonlyargs),
        *((a, Param.PLAIN) for a in arguments.args),
        *((a, Param.VARIABLE) for a in [arguments.vararg] if a),
        *((a, Param.KEYWORD_ONLY) for a in arguments.kwonlyargs),
        *((a, Param.KEYWORDS) for a in [arguments.kwarg] if a),
    ]
    return [
        Param(
            a.arg,
            None if a.arg == "self" else type_text(ast.unparse(a.annotation or name_of("object"))),
            ast.unparse(default) if (default := defaults.get(a)) else None,
            kind,
        )
        for a, kind in rows
    ]


def native_signature(function: Any) -> tuple[list[Param], str]:
    (node,) = parse(function)
    return params(node.args), type_text(ast.unparse(node.returns), 1)


def python_signature(function: Any) -> tuple[list[Param], str]:
    """Parameters and result of a function of the package, in the stub's words."""
    told = inspect.signature(function)
    home = inspect.getmodule(inspect.unwrap(function))

    def annotation(text: Any, column: int) -> str:
        if text is inspect.Signature.empty:
            return "Any"
        text = re.sub(r"\b(_\w+)\b", lambda m: alias_text(getattr(home, m[1])), text)
        return type_text(text.replace("tw.", ""), column)

    parameters = [
        Param(
            p.name,
            annotation(p.annotation, 0),
            None if p.default is p.empty else default_text(p.default),
            p.kind,
        )
        for p in told.parameters.values()
    ]
    result = annotation(told.return_annotation, 1)
    if result.endswith("Result"):
        owner = getattr(home, result).__module__
        IMPORTS.add(f"from {owner} import {result} as _{result}")
        result = f"_{result}"
    return parameters, result


def alias_text(alias: Any) -> str:
    return str(alias).replace("collections.abc.", "")


def with_self(
    parameters: list[Param], others: dict[str, str]
) -> tuple[list[Param], dict[str, str]]:
    """A function's parameters as a method's."""
    first, *behind = parameters
    left = {other: ours for other, ours in others.items() if ours != first.name}
    return [Param("self", kind=first.kind), *behind], left


# ---- overloads ----


SPELLINGS = _core._spellings()


def rows(kind: str, function: str | None = None) -> list[dict[str, str]]:
    """Rows of one kind, of one function where it is named."""
    return [
        row
        for row in SPELLINGS
        if row["kind"] == kind and (function is None or row["function"] == function)
    ]


def own_name(name: str) -> str:
    """Ours, of a function that may go by another library's name."""
    return next((row["ours"] for row in rows("name") if row["theirs"] == name), name)


def spelled(parameters: list[Param], others: dict[str, str]) -> list[list[Param]]:
    """The parameter lists that take other libraries' names as well as ours.

    An optional argument may have any of its names in any call. An argument that a call must have
    has an overload for each name: the first names of all, then the second ones.
    """
    own = {p.name: p for p in parameters}
    more = [
        Param(other, own[ours].annotation, "...", Param.KEYWORD_ONLY)
        for other, ours in others.items()
        if own[ours].default is not None
    ]
    names: dict[str, list[str]] = {}
    for other, ours in others.items():
        if own[ours].default is None:
            names.setdefault(ours, []).append(other)
    lists = [parameters]
    for i in range(max(map(len, names.values()), default=0)):
        chosen = {ours: theirs[min(i, len(theirs) - 1)] for ours, theirs in names.items()}
        renamed = [replace(p, name=chosen.get(p.name, p.name)) for p in parameters]
        for p in renamed:
            p.kind = Param.PLAIN if p.kind == Param.POSITIONAL_ONLY else p.kind
        lists.append(renamed)
    return [sorted([*each, *more], key=lambda p: p.kind) for each in lists]


def forms(function: Any, parameters: list[Param]) -> list[list[Param]]:
    """The function's own signature with all spellings, and with extents one by one."""
    others = dict(getattr(function, "other_arguments", {}))
    if function.__name__.startswith("_"):
        others = {}
    if rows("pair", function.__name__):
        others.pop("dim", None)  # asks for another result
    lists = spelled(parameters, others)
    at = getattr(function, "extents_at", None)
    if at is not None:
        optional = {p.name for p in parameters[at + 1 :]}
        others = {other: ours for other, ours in others.items() if ours in optional}
        lists.insert(1, spelled(spread(parameters, at), others)[0])
    return lists


def spread(parameters: list[Param], at: int) -> list[Param]:
    """The extents one by one, and what follows them by name alone."""
    before, extents, behind = parameters[:at], parameters[at], parameters[at + 1 :]
    return [
        *before,
        Param(extents.name, "int", None, Param.VARIABLE),
        *(replace(p, kind=Param.KEYWORD_ONLY) for p in behind),
    ]


def other_forms(name: str, method: bool) -> Iterator[tuple[list[Param], str]]:
    """Calls of another library that have other arguments, or another result."""
    for row in rows("pair", name):
        yield from with_required(row["ours"], method, (row["theirs"],))
    for row in rows("difference", name):
        if row["ours"]:
            yield from with_required(name, method, (row["theirs"], row["ours"]))
    if not method and any(row["function"] == own_name(name) for row in rows("method argument")):
        function = getattr(_core.Tensor, name)
        parameters, result = native_signature(function)
        first = Param("x", "Tensor", kind=Param.POSITIONAL_ONLY)
        for each in spelled(parameters[1:], function.other_arguments):
            yield [first, *each], result
    for row in rows("form", name):
        (node,) = ast.parse(f"def _{row['note']}: ...").body
        parameters = params(node.args)
        if method and parameters[0].name != "x":
            continue  # a method of this name does something else
        if method:
            parameters, _ = with_self(parameters, {})
        yield parameters, type_text(ast.unparse(node.returns), 1)


def with_required(
    name: str, method: bool, required: tuple[str, ...]
) -> Iterator[tuple[list[Param], str]]:
    """A function with some arguments that a call must have by name; axes have that name alone."""
    function = getattr(_core, name)
    parameters, result = native_signature(function)
    others = {"dim": "axis", **function.other_arguments}
    if method:
        parameters, others = with_self(parameters, others)
    left_out = {"axis", "dims", "ddof"} - {*required}
    for each in spelled(parameters, others):
        chosen = []
        for p in each:
            if p.name in required:
                chosen.append(replace(p, default=None, kind=Param.KEYWORD_ONLY))
            elif p.name not in left_out:
                kind = p.kind if p.default is None else Param.KEYWORD_ONLY
                chosen.append(replace(p, kind=kind))
        yield sorted(chosen, key=lambda p: p.kind), result
