"""What is wrong with a call of the engine, in words: read only when a call was refused."""

from __future__ import annotations

import ast
import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tilewright import _core
from tilewright._engine.value_text import shown

# A signature as nanobind keeps it: text with \0, \1, ... for the defaults; documentation; defaults.
_Signature = tuple[str, Any, Any]
_Parameter = inspect.Parameter
_LARGEST_INT = 2**63 - 1


def refusal(
    name: str,
    native: _Signature,
    owner: type | None,
    args: Sequence[Any],
    keywords: Mapping[str, Any],
) -> TypeError | ValueError:
    """The error of a refused call: `owner` is the class of a method, whose args have self."""
    parameters = _parameters(native)
    others = _core._other_arguments(name, list(parameters))
    if owner is None:
        parameters.pop("self", None)
    elif not args or not isinstance(args[0], owner):
        got = shown(args[0]) if args else "nothing"
        return TypeError(f"{name}: self must be a {owner.__name__}, got {got}")
    else:
        del parameters["self"]
        args = args[1:]
    fault = _count_fault(parameters, others, args, keywords)
    bound = _bound(parameters, args, keywords)
    if fault is None:
        fault = _type_fault(parameters, bound)
    if fault is not None:
        return TypeError(f"{name}: {fault}")
    return ValueError(f"{name}: {_range_fault(bound)}")


def signature(native: _Signature) -> inspect.Signature:
    """A signature that `inspect` and `help` show, annotations as text."""
    try:
        tree = _parsed(native[0])
        visible = [
            p.replace(annotation=_Parameter.empty)
            if p.name == "self"
            else p.replace(annotation=_python_text(p.annotation))
            for p in _parameters(native).values()
        ]
        returns = _python_text(tree.returns) if tree.returns else inspect.Signature.empty
        return inspect.Signature(visible, return_annotation=returns)
    except (SyntaxError, ValueError) as error:  # no signature is better than a broken help()
        raise AttributeError("__signature__") from error


# ---- signatures ----


def _parsed(text: str) -> ast.FunctionDef:
    filled = re.sub(r"\\=?\d+", "0", text).replace("def (", "def _(")
    node = ast.parse(f"{filled}: ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def _parameters(native: _Signature) -> dict[str, _Parameter]:
    """Parameters in order; annotations are syntax trees."""
    given = _parsed(native[0]).args
    plain = [*given.posonlyargs, *given.args]
    optional = dict(zip(reversed(plain), reversed(given.defaults), strict=False))
    optional |= {a: d for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d}
    # Without them apart from the text, the text is a signature written by hand.
    defaults = iter(native[2] or ())
    rows = [
        *((a, _Parameter.POSITIONAL_ONLY) for a in given.posonlyargs),
        *((a, _Parameter.POSITIONAL_OR_KEYWORD) for a in given.args),
        *((a, _Parameter.VAR_POSITIONAL) for a in [given.vararg] if a),
        *((a, _Parameter.KEYWORD_ONLY) for a in given.kwonlyargs),
        *((a, _Parameter.VAR_KEYWORD) for a in [given.kwarg] if a),
    ]
    return {
        a.arg: _Parameter(
            a.arg,
            kind,
            default=next(defaults, ast.unparse(optional[a])) if a in optional else _Parameter.empty,
            annotation=a.annotation,
        )
        for a, kind in rows
    }


def _python_text(annotation: Any) -> str:
    parts = _alternatives(annotation) if annotation is not None else [ast.Name("object")]
    text = " | ".join(dict.fromkeys(map(ast.unparse, parts)))
    return re.sub(r"\b(collections\.abc|tilewright\._core|typing|os)\.", "", text)


# ---- arguments that do not fit the parameters ----


def _count_fault(
    parameters: Mapping[str, _Parameter],
    others: Iterable[str],
    args: Sequence[Any],
    keywords: Mapping[str, Any],
) -> str | None:
    named = [p.name for p in parameters.values() if _takes_keyword(p)]
    for keyword in keywords:
        if keyword not in named:
            return _unexpected(keyword, named, others)
    positional = [
        p.name
        for p in parameters.values()
        if p.kind in (_Parameter.POSITIONAL_ONLY, _Parameter.POSITIONAL_OR_KEYWORD)
    ]
    variadic = any(p.kind is _Parameter.VAR_POSITIONAL for p in parameters.values())
    if len(args) > len(positional) and not variadic:
        return f"takes {_counted(positional)}, got {len(args)}{_by_name_alone(parameters)}"
    for keyword in keywords:
        if keyword in positional[: len(args)]:
            return f"argument '{keyword}' given twice, by place and by name"
    bound = _bound(parameters, args, keywords)
    for p in parameters.values():
        if p.default is _Parameter.empty and p.name not in bound and not _is_variadic(p):
            return f"missing argument '{p.name}': {_words(p.annotation)}"
    return None


def _is_variadic(p: _Parameter) -> bool:
    return p.kind in (_Parameter.VAR_POSITIONAL, _Parameter.VAR_KEYWORD)


def _takes_keyword(p: _Parameter) -> bool:
    return p.kind in (_Parameter.POSITIONAL_OR_KEYWORD, _Parameter.KEYWORD_ONLY)


def _unexpected(keyword: str, known: list[str], others: Iterable[str]) -> str:
    near = difflib.get_close_matches(keyword, known, 1)
    if near := near or difflib.get_close_matches(keyword, others, 1):
        return f"unexpected argument '{keyword}'; did you mean '{near[0]}'?"
    takes = f"it takes {', '.join(known)}" if known else "it takes no arguments by name"
    return f"unexpected argument '{keyword}'; {takes}"


def _counted(names: list[str]) -> str:
    if not names:
        return "no arguments"
    return f"at most {len(names)} argument{'s' * (len(names) > 1)} ({', '.join(names)})"


def _by_name_alone(parameters: Mapping[str, _Parameter]) -> str:
    names = [p.name for p in parameters.values() if p.kind is _Parameter.KEYWORD_ONLY]
    return f"; by name alone: {', '.join(names)}" if names else ""


def _bound(
    parameters: Mapping[str, _Parameter], args: Sequence[Any], keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """Values by parameter; those behind *args are left out, as they take anything."""
    positional = [
        p.name
        for p in parameters.values()
        if p.kind in (_Parameter.POSITIONAL_ONLY, _Parameter.POSITIONAL_OR_KEYWORD)
    ]
    return {**dict(zip(positional, args, strict=False)), **keywords}


# ---- values of the wrong type ----


def _type_fault(parameters: Mapping[str, _Parameter], bound: Mapping[str, Any]) -> str | None:
    for name, value in bound.items():
        annotation = parameters[name].annotation
        if not _fits(annotation, value):
            got = _misfit(annotation, value)
            # nanobind calls what has no name, such as a property's value, arg.
            label = "value" if re.fullmatch(r"arg\d*", name) else name
            return f"{label} must be {_words(annotation)}, got {got}{_remedy(annotation, value)}"
    return None


def _range_fault(bound: Mapping[str, Any]) -> str:
    for name, value in bound.items():
        if _out_of_range(value):
            return f"{name} is out of range: {shown(value)}"
        for item in value if isinstance(value, (list, tuple)) else ():
            if isinstance(item, int) and abs(item) > _LARGEST_INT:
                return f"{name} is out of range: {shown(item)}"
    given = ", ".join(f"{name}={shown(value)}" for name, value in bound.items())
    return f"cannot take {given}" if given else "cannot be called so"


def _misfit(annotation: Any, value: Any) -> str:
    """What was given; of a list, the element that does not fit."""
    if isinstance(value, (list, tuple)):
        for part in filter(_is_sequence, _alternatives(annotation)):
            wrong = [i for i, item in enumerate(value) if not _fits(part.slice, item)]
            if wrong:
                return f"{shown(value[wrong[0]])} in place {wrong[0]}"
    return shown(value)


def _out_of_range(value: object) -> bool:
    return isinstance(value, int) and not 0 <= value <= _LARGEST_INT


def _remedy(annotation: Any, value: object) -> str:
    wants_tensor = any(_last_name(part) == "Tensor" for part in _alternatives(annotation))
    convertible = isinstance(value, (list, tuple, int, float, complex)) or hasattr(
        value, "__array__"
    )
    return "; make one with tilewright.asarray" if wants_tensor and convertible else ""


def _is_real(value: object) -> bool:
    if isinstance(value, (int, float, str)):
        return not isinstance(value, str)
    return hasattr(value, "__float__") and _kind(value) in "biufc"


def _is_number(value: Any) -> bool:
    """Whether it has a type that results can take: a long double and a fraction have none."""
    dtype = str(getattr(value, "dtype", ""))
    return isinstance(value, (int, float, complex)) or (
        isinstance(getattr(_core, dtype, None), _core.dtype) and getattr(value, "ndim", None) == 0
    )


def _is_index(value: Any) -> bool:
    if isinstance(value, _core.Tensor):
        return value.size == 1 and not value.is_floating_point() and not value.is_complex()
    return hasattr(value, "__index__") and not isinstance(value, bool) and _kind(value) in "biuf"


def _kind(value: object) -> str:
    """NumPy's letter of what an array or number holds: its dates convert to numbers as well."""
    return str(getattr(getattr(value, "dtype", None), "kind", "f"))


_PLAIN: dict[str, tuple[Callable[[Any], bool], str]] = {
    "Tensor": (lambda v: isinstance(v, _core.Tensor), "a tensor"),
    "bool": (lambda v: isinstance(v, bool), "True or False"),
    "int": (_is_index, "an int"),
    "float": (_is_real, "a number"),
    "complex": (lambda v: _is_real(v) or isinstance(v, complex), "a complex number"),
    "str": (lambda v: isinstance(v, str), "a str"),
    "bytes": (lambda v: isinstance(v, bytes), "bytes"),
    "dtype": (lambda v: isinstance(v, (_core.dtype, str, type)), "a dtype"),
    "object": (lambda v: v is not None, "anything but None"),
    "dict": (lambda v: isinstance(v, dict), "a dict"),
    "list": (lambda v: isinstance(v, list), "a list"),
    "tuple": (lambda v: isinstance(v, tuple), "a tuple"),
    "Callable": (callable, "a function"),
    "Buffer": (lambda v: v is not None, "an object with the buffer protocol, as bytes has"),
}
_NUMBER = {"bool", "int", "float", "complex"}


def _alternatives(annotation: Any) -> list[Any]:
    if isinstance(annotation, ast.BinOp):
        return [*_alternatives(annotation.left), *_alternatives(annotation.right)]
    return [annotation]


def _last_name(annotation: Any) -> str:
    if isinstance(annotation, ast.Subscript):
        return _last_name(annotation.value)
    if isinstance(annotation, ast.Attribute):
        return annotation.attr
    if isinstance(annotation, ast.Constant):
        return str(annotation.value).rpartition(":")[2]
    return annotation.id if isinstance(annotation, ast.Name) else "object"


def _is_sequence(annotation: Any) -> bool:
    return isinstance(annotation, ast.Subscript) and _last_name(annotation) in (
        "Sequence",
        "Iterable",
    )


def _fits(annotation: Any, value: object) -> bool:
    parts = _alternatives(annotation)
    if {_last_name(part) for part in parts} >= _NUMBER:
        if _is_number(value):
            return True
        parts = [part for part in parts if _last_name(part) not in _NUMBER]
    return any(_fits_one(part, value) for part in parts)


def _fits_one(annotation: Any, value: Any) -> bool:
    name = _last_name(annotation)
    if name == "None":
        return value is None
    if _is_sequence(annotation):
        if isinstance(value, (list, tuple)):
            return all(_fits(annotation.slice, v) for v in value)
        return name == "Iterable" and isinstance(value, Iterable)
    if name in _PLAIN:
        fits, _ = _PLAIN[name]
        return fits(value)
    cls = getattr(_core, name, None)
    return isinstance(value, cls) if isinstance(cls, type) else True


def _words(annotation: Any, plural: bool = False) -> str:
    """The values of a type, in words."""
    parts = _alternatives(annotation)
    names = [_last_name(part) for part in parts]
    words = []
    if set(names) >= _NUMBER:
        parts = [part for part, name in zip(parts, names, strict=True) if name not in _NUMBER]
        words = ["numbers" if plural else "a number"]
    shown_parts = [_words_of_one(part, plural) for part in parts]
    words = [
        *(w for w in shown_parts if w != "None"),
        *words,
        *(w for w in shown_parts if w == "None"),
    ]
    words = list(dict.fromkeys(words))
    return " or ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])} or {words[-1]}"


def _words_of_one(annotation: Any, plural: bool) -> str:
    name = _last_name(annotation)
    if name == "None":
        return "None"
    if _is_sequence(annotation):
        return f"{'sequences' if plural else 'a sequence'} of {_words(annotation.slice, True)}"
    words = _PLAIN[name][1] if name in _PLAIN else f"a {name}"
    if plural:
        words = re.sub(r"^an? ", "", words)
        return words + "s"
    return words
