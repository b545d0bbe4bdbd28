"""Writes the type stubs, _core.pyi and others, from the modules themselves.

Functions keep their signatures, and have overloads for the spellings of other libraries. What these
do not know (operators, and types that C++ calls `object`) stands here.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from page_tables import FEATURES, SPELLINGS, make_features, make_spellings
from stub_signatures import (
    IMPORTS,
    Param,
    documented,
    first_line,
    forms,
    other_forms,
    overloaded,
    params,
    parse,
    python_signature,
    spelled,
    type_text,
    with_self,
    without_shadows,
)

import tilewright as tw
from tilewright import _core
from tilewright._engine.lazy_methods import LazyMethod
from tilewright.optim.averaged_model import EMA
from tilewright.optim.fused import FusedOptimizer
from tilewright.optim.optimizer import Optimizer

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "tilewright"

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
    """Writes the stubs; with --check only says whether they are up to date."""
    made = {path: make() for path, make in MADE.items()}
    stale = [path for path, text in made.items() if not is_current(path, text)]
    if "--check" in sys.argv[1:]:
        return 1 if stale else 0
    for path in stale:
        path.write_text(made[path], encoding="utf-8")
    return 0


def is_current(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def make_stub() -> str:
    """The whole stub."""
    names = sorted(vars(_core))
    classes = _classes()
    header = HEADER.format(imports="\n".join(sorted(IMPORTS)))
    lines = [header, *classes, *_values(names), *_errors(names), ""]
    for name in names:
        value = getattr(_core, name)
        if hasattr(value, "__nb_signature__"):
            lines += _function(value)
    return "\n".join(lines) + "\n"


def _values(names: list[str]) -> list[str]:
    types = {_core.dtype: "_DType", dict: "dict[str, str]", list: "list[str]"}
    told = ((name, types.get(type(getattr(_core, name)))) for name in names)
    return [*(f"{name}: {text}" for name, text in told if text), ""]


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
        f'    """{first_line(_core.Tensor.__doc__)}"""',
        "",
        "    def __new__(cls, x: Any) -> Self: ...",
        *(without_shadows(f"    {operator}") for operator in OPERATORS),
        *map(without_shadows, _members(_core.Tensor)),
        "",
        *SCHEDULER,
        "",
    ]
    return lines


def _class(cls: type) -> list[str]:
    return [
        f"class {cls.__name__}:",
        f'    """{first_line(cls.__doc__)}"""',
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


def _python_method(name: str, function: Any) -> Iterator[str]:
    """A function of the package as a method: its first parameter is self."""
    parameters, result = python_signature(function)
    others = getattr(function, "other_arguments", {})
    parameters, others = with_self(parameters, others)
    forms = [(each, result) for each in spelled(parameters, others)]
    yield from overloaded("    ", name, forms, function.__doc__)


def _property(name: str, value: property) -> Iterator[str]:
    (getter,) = parse(value.fget)
    result = type_text(ast.unparse(getter.returns), column=1)
    yield "    @property"
    doc = value.__doc__ or value.fget.__nb_signature__[0][1]
    yield from documented("    ", name, [Param("self")], result, doc)
    if value.fset is not None:
        (setter,) = parse(value.fset)
        arguments = [*setter.args.posonlyargs, *setter.args.args]
        given = type_text(ast.unparse(arguments[1].annotation))
        yield f"    @{name}.setter"
        yield f"    def {name}(self, value: {given}, /) -> None: ..."


def _function(function: Any, method: bool = False) -> list[str]:
    lines = []
    # A function may stand under other libraries' names as well; setters have no name.
    name, indent = function.__name__, "    " if method else ""
    for node, doc in zip(
        parse(function), (entry[1] for entry in function.__nb_signature__), strict=True
    ):
        told = ast.unparse(node.returns)
        in_place = node.name.endswith("_") and "__" not in node.name
        if method and in_place and told in ("object", "Tensor"):
            result = "Self"
        else:
            result = type_text(told, column=1)
        own = node.name if node.name.startswith("__") else name
        found = [(form, result) for form in forms(function, params(node.args))]
        if not own.startswith("_"):
            found += other_forms(own, method)
        lines += overloaded(indent, own, found, doc)
    return lines


# ---- the package's own names ----

NAMES = '''"""{title} Made by tools/make_stub.py."""

# Signatures as they are: long, and with names of builtins.
# ruff: noqa
# fmt: off

{header}
{imports}

{lines}
'''
OF_FUNCTIONS = """import builtins
from collections.abc import Sequence
from typing import Any, TypeAlias, overload

from tilewright._core import Generator, Tensor, ValuesAndIndices, _DType, _DTypeLike

_Bool: TypeAlias = builtins.bool
_Int: TypeAlias = builtins.int
_Float: TypeAlias = builtins.float
"""


def make_names() -> str:
    """The stub of what the package's `__init__` finds by its lists, which it takes at once."""
    homes: dict[str, list[str]] = defaultdict(list)
    imports = [f"from tilewright import {name} as {name}" for name in tw._SUBMODULES]
    lines: list[str] = []
    for name, home in tw._LAZY.items():
        value = getattr(tw, name)
        if has_other_arguments(value):
            lines += _python_function(name, value)
        else:
            homes[home].append(name)
    for name, ours in _core._other_names.items():
        if has_other_arguments(value := getattr(tw, name)):
            lines += _python_function(name, value)
        else:
            imports.append(f"from tilewright._core import {ours} as _{ours}")
            lines.append(f"{name} = _{ours}")
    lines += [f"{name} = Tensor.{name}" for name in tw._AS_FUNCTIONS]
    for home in sorted(homes):
        imports += [f"from {home} import {name} as {name}" for name in sorted(homes[home])]
    types = [f"{name}: _DType" for name in _core._other_dtypes]
    title = "What `import tilewright` names beside the engine's functions."
    return _names_text(title, imports, lines, types)


def make_package(package: ModuleType) -> str:
    """The stub of a package whose `__init__` imports functions that take other names."""
    source = Path(str(package.__file__)).read_text(encoding="utf-8")
    imports, lines, rest = [], [], []
    for node in ast.parse(source).body[1:]:
        if not isinstance(node, ast.ImportFrom):
            rest.append(ast.unparse(node))
        elif node.module != "__future__":
            (alias,) = node.names
            name = alias.asname or alias.name
            value = getattr(package, name)
            if has_other_arguments(value):
                lines += _python_function(name, value)
            else:
                imports.append(ast.unparse(node))
    return _names_text(f"The names of {package.__name__}.", imports, lines, rest)


def _names_text(title: str, imports: list[str], functions: list[str], rest: list[str]) -> str:
    """`rest` stands as it is."""
    lines = [*map(without_shadows, functions), *rest]
    body = "\n".join(lines)
    needed = {line for line in IMPORTS if re.search(rf"\b{line.split()[-1]}\b", body)}
    imports = sorted({*imports, *needed})
    text = "\n".join(imports)
    return NAMES.format(title=title, header=OF_FUNCTIONS, imports=text, lines=body)


def has_other_arguments(value: Any) -> bool:
    """Whether it is a function written in Python that other libraries' names call as well."""
    return isinstance(value, FunctionType) and bool(getattr(value, "other_arguments", None))


def _python_function(name: str, function: Any) -> Iterator[str]:
    parameters, result = python_signature(function)
    forms = [(each, result) for each in spelled(parameters, function.other_arguments)]
    yield from overloaded("", name, forms, function.__doc__)


# ---- the optimizers ----

OPTIM = '''"""Optimisers: each step is one native kernel over all parameters of a group."""

# Made by tools/make_stub.py from the modules beside it.

from tilewright.optim import lr_scheduler, swa_utils
{imports}

__all__ = [
{names}
]
'''


def optimizers() -> dict[str, list[type]]:
    """By module: the public optimisers that it defines, and averages of weights."""
    found: dict[str, list[type]] = defaultdict(list)
    for path in sorted((PACKAGE / "optim").glob("[a-z]*.py")):
        module = import_module(f"tilewright.optim.{path.stem}")
        for name, value in sorted(vars(module).items()):
            is_one = isinstance(value, type) and issubclass(value, (Optimizer, EMA))
            if is_one and value.__module__ == module.__name__ and value is not FusedOptimizer:
                found[path.stem].append(value)
                assert value.__name__ == name
    return found


def make_optim() -> str:
    """The package's `__init__`: a new optimiser is there once its module is."""
    modules = {stem: [value.__name__ for value in values] for stem, values in optimizers().items()}
    imports = [
        f"from tilewright.optim.{stem} import {', '.join(names)}" for stem, names in modules.items()
    ]
    names = ["lr_scheduler", "swa_utils", *(name for each in modules.values() for name in each)]
    names.sort(key=lambda name: (not name.isupper(), name[0].islower(), name))
    listed = "\n".join(f'    "{name}",' for name in names)
    return OPTIM.format(imports="\n".join(imports), names=listed)


def fused_names() -> list[str]:
    """Those whose steps are rows of updates.inc."""
    return [
        value.__name__
        for values in optimizers().values()
        for value in values
        if issubclass(value, FusedOptimizer)
    ]


MADE: dict[Path, Callable[[], str]] = {
    PACKAGE / "_core.pyi": make_stub,
    PACKAGE / "_names.pyi": make_names,
    PACKAGE / "linalg/__init__.pyi": lambda: make_package(import_module("tilewright.linalg")),
    PACKAGE / "special/__init__.pyi": lambda: make_package(import_module("tilewright.special")),
    PACKAGE / "optim/__init__.py": make_optim,
    SPELLINGS: make_spellings,
    FEATURES: lambda: make_features(fused_names()),
}


if __name__ == "__main__":
    raise SystemExit(main())
