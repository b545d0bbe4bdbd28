"""Writes the type stub of the extension module, src/tilewright/_core.pyi, from the module itself.

Functions keep their signatures; what these do not know (operators, and types that C++ calls
`object`) stands here.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

from tilewright import _core
from tilewright._engine.lazy_methods import LazyMethod

STUB = Path(__file__).parent.parent / "src" / "tilewright" / "_core.pyi"

HEADER = '''"""The engine: tensors, ops, gradients, kernels. Made by tools/make_stub.py."""

# ruff: noqa: N801, N802, N803, N812  (the Array API's names, and PyTorch's)
# fmt: off

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, Protocol, SupportsIndex, TypeAlias, overload

from typing_extensions import Buffer, Self

{imports}

_Bool: TypeAlias = builtins.bool
# Tensor has methods of these names.
_Int: TypeAlias = builtins.int
_Float: TypeAlias = builtins.float
# The module has a function of this name.
_Complex: TypeAlias = builtins.complex
_Number: TypeAlias = _Bool | int | float | _Complex

class _Array(Protocol):
    """Another library's array."""

    def __dlpack_device__(self) -> tuple[Any, Any]: ...

_Operand: TypeAlias = Tensor | _Number | _Array
'''

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

# Each also reflected and in place.
BINARY = (
    *("add", "and", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow", "rshift"),
    *("sub", "truediv", "xor"),
)
OPERATORS = [
    *(f"def __{name}__(self, other: _Operand, /) -> Tensor: ..." for name in BINARY),
    *(f"def __r{name}__(self, other: _Operand, /) -> Tensor: ..." for name in BINARY),
    *(f"def __i{name}__(self, other: _Operand, /) -> Self: ..." for name in BINARY),
    "def __divmod__(self, other: _Operand, /) -> tuple[Tensor, Tensor]: ...",
    "def __rdivmod__(self, other: _Operand, /) -> tuple[Tensor, Tensor]: ...",
    *(
        f"def __{name}__(self, other: _Operand, /) -> Tensor: ..."
        for name in ("ge", "gt", "le", "lt")
    ),
    "def __eq__(self, other: _Operand, /) -> Tensor: ...  # type: ignore[override]",
    "def __ne__(self, other: _Operand, /) -> Tensor: ...  # type: ignore[override]",
    *(f"def __{name}__(self) -> Tensor: ..." for name in ("abs", "invert", "neg", "pos")),
    "def __bool__(self) -> _Bool: ...",
    "def __buffer__(self, flags: int, /) -> memoryview: ...",
    "def __float__(self) -> float: ...",
    "def __int__(self) -> int: ...",
    "def __index__(self) -> int: ...",
    "def __len__(self) -> int: ...",
    "def __hash__(self) -> int: ...",
    "def __iter__(self) -> Iterator[Tensor]: ...",
    "def __getitem__(self, key: Any, /) -> Tensor: ...",
    "def __setitem__(self, key: Any, value: Any, /) -> None: ...",
    "def __delitem__(self, key: Any, /) -> None: ...",
]


# A CPython type of its own, like Tensor.
BLOCK = '''class Block:
    """Memory of a pool, with the buffer protocol: memoryview(block)."""

    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __len__(self) -> int: ...
    @property
    def address(self) -> int:
        """Where the block is; it stays there from now on."""
    @property
    def nbytes(self) -> int:
        """Bytes asked for; 0 after free()."""
    def free(self) -> None:
        """Gives the memory back now; BufferError while a memoryview is over it."""
'''
# A tuple with names, made by the interpreter.
MODULE_CALL = '''class _ModuleCall:
    """Calls `forward`, within hooks."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
'''

PAIR = '''class ValuesAndIndices(tuple[Tensor, Tensor]):
    """Elements of a tensor, and where they are."""

    def __new__(cls, pair: Sequence[Tensor], /) -> Self: ...
    @property
    def values(self) -> Tensor:
        """The elements."""
    @property
    def indices(self) -> Tensor:
        """Where they are along the axis, int64."""
'''
# The scheduler's types are CPython's own and carry no signatures.
SCHEDULER = '''class _Task:
    """The outcome of a submission, native part."""

    id: int
    name: str
    @property
    def state(self) -> str: ...
    _value: Any
    _error: BaseException | None
    def done(self) -> _Bool: ...
    def cancel(self) -> _Bool: ...
    def check(self) -> None: ...
    def add_done_callback(self, callback: Callable[[Any], object], /) -> None: ...
    def _figures(self) -> dict[str, Any]: ...
    def _run(self) -> None: ...

class _Scheduler:
    """The scheduler's bookkeeping."""

    def __new__(
        cls,
        memory_bytes: int | None,
        policy: str,
        aging_s: float | None,
        history: int,
        clock: Callable[[], int] | None,
        watcher: Callable[[Any], None],
        /,
    ) -> Self: ...
    def submit(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Any: ...
    def take(self, worker: int, timeout_s: float | None = None, /) -> Any: ...
    def finish(self, task: Any, state: str, /) -> None: ...
    def expire(self) -> int: ...
    def await_deadline(self) -> _Bool: ...
    def close(self, cancel: _Bool, /) -> None: ...
    def await_idle(self, timeout_s: float, /) -> _Bool: ...
    def set_use(self, task: Any, use_bytes: int, /) -> None: ...
    def records(self) -> list[dict[str, Any]]: ...
    def figures(self) -> dict[str, Any]: ...

class _Submitter:
    """Native part of Scheduler."""

    _core: Any
    def submit(
        self,
        fn: Callable[..., Any],
        /,
        *args: Any,
        memory_bytes: int = 0,
        priority: int = 0,
        expected_s: float | None = None,
        after: Any = (),
        quality: str = "burstable",
        group: str | None = None,
        share: float = 1.0,
        timeout_s: float | None = None,
        name: str | None = None,
        kwargs: dict[str, Any] | None = None,
        pool: Any = None,
    ) -> Any:
        """Hands over `fn(*args, **kwargs)`; returns its `Task`."""
'''.splitlines()


def main() -> int:
    """Writes the stub; with --check only says whether it is up to date."""
    text = make_stub()
    if "--check" in sys.argv[1:]:
        return 0 if STUB.exists() and STUB.read_text(encoding="utf-8") == text else 1
    STUB.write_text(text, encoding="utf-8")
    return 0


def make_stub() -> str:
    """The whole stub."""
    names = sorted(vars(_core))
    classes = _classes()
    header = HEADER.format(imports="\n".join(sorted(IMPORTS)))
    lines = [header, *classes, *_dtypes(names), *_errors(names), ""]
    for name in names:
        value = getattr(_core, name)
        if hasattr(value, "__nb_signature__"):
            lines += _function(value)
    return "\n".join(lines) + "\n"


def _dtypes(names: list[str]) -> list[str]:
    return [f"{name}: _DType" for name in names if type(getattr(_core, name)) is _core.dtype] + [""]


def _errors(names: list[str]) -> Iterator[str]:
    """Error types, bases first."""
    types = [getattr(_core, name) for name in names]
    errors = [t for t in types if isinstance(t, type) and issubclass(t, Exception)]
    for error in sorted(errors, key=lambda error: (len(error.__mro__), error.__name__)):
        bases = ", ".join(base.__name__ for base in error.__bases__)
        yield f"class {error.__name__}({bases}): ..."


def _classes() -> list[str]:
    lines = _class(_core.dtype)
    lines += [
        "_DType: TypeAlias = dtype",
        "_DTypeLike: TypeAlias = dtype | str | type[Any] | Any",
        "",
    ]
    for _, cls in sorted(vars(_core).items()):
        if type(cls) is type(_core.dtype) and cls is not _core.dtype:
            lines += _class(cls)
    lines += [
        BLOCK,
        MODULE_CALL,
        PAIR,
        "class Tensor:",
        f'    """{_first_line(_core.Tensor.__doc__)}"""',
        "",
        "    def __new__(cls, x: Any) -> Self: ...",
        *(_without_shadows(f"    {operator}") for operator in OPERATORS),
        *map(_without_shadows, _members(_core.Tensor)),
        "",
        *SCHEDULER,
        "",
    ]
    return lines


def _without_shadows(line: str) -> str:
    """A line of the class with int and float by names that no method hides."""
    if line.lstrip().startswith('"""'):
        return line
    line = re.sub(r"(?<!def )\bint\b", "_Int", line)
    return re.sub(r"(?<!def )\bfloat\b", "_Float", line)


def _class(cls: type) -> list[str]:
    return [
        f"class {cls.__name__}:",
        f'    """{_first_line(cls.__doc__)}"""',
        "",
        *_members(cls),
        "",
    ]


def _members(cls: type) -> Iterator[str]:
    for name, value in sorted(vars(cls).items()):
        if isinstance(value, property):
            yield from _property(name, value)
        elif hasattr(value, "__nb_signature__"):
            yield from _function(value, method=True)
        elif isinstance(value, (LazyMethod, FunctionType)):  # not yet asked for, or asked for
            yield from _python_method(name, getattr(cls, name))


class _Words:
    """An annotation as it will be written."""

    def __init__(self, told: str) -> None:
        self.told = told

    def __repr__(self) -> str:
        return self.told


def _python_method(name: str, function: Any) -> Iterator[str]:
    """A function of the package as a method: its first parameter is self."""
    told = inspect.signature(function)
    home = inspect.getmodule(inspect.unwrap(function))

    def annotation(text: str, column: int) -> _Words:
        text = re.sub(r"\b(_\w+)\b", lambda m: _alias_text(getattr(home, m[1])), text)
        return _Words(_type(text.replace("tw.", ""), column))

    given = [p.replace(annotation=annotation(p.annotation, 0)) for p in told.parameters.values()]
    given[0] = given[0].replace(name="self", annotation=inspect.Parameter.empty)
    result = annotation(told.return_annotation, 1)
    if result.told.endswith("Result"):
        owner = getattr(home, result.told).__module__
        IMPORTS.add(f"from {owner} import {result.told} as _{result.told}")
        result = _Words(f"_{result.told}")
    text = str(told.replace(parameters=given, return_annotation=result))
    yield from _documented(f"    def {name}{text}:", function.__doc__)


def _alias_text(alias: Any) -> str:
    return str(alias).replace("collections.abc.", "")


def _property(name: str, value: property) -> Iterator[str]:
    (getter,) = _parse(value.fget)
    result = _type(ast.unparse(getter.returns), column=1)
    yield "    @property"
    head = f"    def {name}(self) -> {result}:"
    yield from _documented(head, value.__doc__ or value.fget.__nb_signature__[0][1])
    if value.fset is not None:
        (setter,) = _parse(value.fset)
        arguments = [*setter.args.posonlyargs, *setter.args.args]
        given = _type(ast.unparse(arguments[1].annotation))
        yield f"    @{name}.setter"
        yield f"    def {name}(self, value: {given}, /) -> None: ..."


def _function(function: Any, method: bool = False) -> list[str]:
    lines = []
    indent = "    " if method else ""
    extents_at = getattr(function, "extents_at", None)
    for node, doc in zip(
        _parse(function), (entry[1] for entry in function.__nb_signature__), strict=True
    ):
        arguments = node.args
        variable = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        for argument in (
            *arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *variable
        ):  # fmt: skip
            if argument.arg != "self":
                told = ast.unparse(argument.annotation) if argument.annotation else "object"
                argument.annotation = _name(_type(told))
        told = ast.unparse(node.returns)
        in_place = node.name.endswith("_") and "__" not in node.name
        if method and in_place and told in ("object", "Tensor"):
            result = "Self"
        else:
            result = _type(told, column=1)
        # A function may stand under other libraries' names as well; setters have no name.
        name = node.name if node.name.startswith("__") else function.__name__
        head = f"{indent}def {name}({ast.unparse(arguments)}) -> {result}:"
        if extents_at is None:
            lines += _documented(head, doc)
            continue
        lines += [f"{indent}@overload", *_documented(head, doc), f"{indent}@overload"]
        _spread(arguments, extents_at)
        head = f"{indent}def {name}({ast.unparse(arguments)}) -> {result}:"
        lines += _documented(head, None)
    return lines


def _spread(arguments: ast.arguments, at: int) -> None:
    """The extents one by one, and what follows them by name alone."""
    arguments.vararg = ast.arg(arguments.args[at].arg, _name("int"))
    behind = arguments.args[at + 1 :]
    defaults = arguments.defaults[len(arguments.defaults) - len(behind) :] if behind else []
    arguments.kwonlyargs = [*behind, *arguments.kwonlyargs]
    arguments.kw_defaults = [*defaults, *arguments.kw_defaults]
    arguments.args = arguments.args[:at]
    arguments.defaults = []


def _name(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _parse(function: Any) -> list[Any]:
    """nanobind's signatures as syntax trees, with the defaults put in."""
    nodes = []
    for signature, _, defaults in function.__nb_signature__:
        text = signature
        # From the last on, so that \\1 is not taken for the start of \\10.
        for i in reversed(range(len(defaults or ()))):
            text = text.replace(f"\\{i}", _default(defaults[i]))
        text = text.replace("def (", "def _(")
        nodes += ast.parse(f"{text}: ...").body
    return nodes


def _default(value: Any) -> str:
    return repr(value) if value is None or isinstance(value, (bool, int, float, str)) else "..."


def _type(told: str, column: int = 0) -> str:
    text = re.sub(r"collections\.abc\.|tilewright\._core\.|typing\.|os\.", "", told)
    text = text.replace("None | None", "None")
    for words, names in TYPES.items():
        text = re.sub(words, names[column], text)
    return text


def _documented(head: str, doc: str | None) -> Iterator[str]:
    """A function's head and the first sentence of its documentation."""
    indent = head[: len(head) - len(head.lstrip())]
    told = doc is not None and not doc.startswith("(")  # nanobind's stand-in where there is none
    end = "" if told else " ..."
    shown = _without_shadows(head) if indent else head  # as the class will have it
    if len(shown) + len(end) <= LINE_WIDTH:
        yield head + end
    else:
        opening, _, rest = head.partition("(")
        parameters, _, closing = rest.rpartition(") -> ")
        yield f"{opening}("
        # Commas within brackets belong to a type.
        yield from (f"{indent}    {part}," for part in re.split(r", (?![^\[]*\])", parameters))
        yield f"{indent}) -> {closing}{end}"
    if told:
        yield f'{indent}    """{_first_line(doc)}"""'


def _first_line(doc: str | None) -> str:
    """A docstring's first paragraph, on one line."""
    text = " ".join((doc or "").strip().partition("\n\n")[0].split())
    return textwrap.shorten(text, LINE_WIDTH - 16, placeholder=" ...")


if __name__ == "__main__":
    raise SystemExit(main())
