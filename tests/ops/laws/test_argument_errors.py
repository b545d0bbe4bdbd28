"""Wrong calls are refused in words: whose argument it is, what was given, what is expected."""

from __future__ import annotations

import ast
import builtins
import fractions
import importlib
import inspect
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from checkout import ROOT
from subcases import each

import tilewright as tw
from tilewright import _core
from tilewright._engine import argument_errors


class Foreign:
    """What no argument of the engine is."""


# What a message must never show: nanobind's, C++'s and the module's own vocabulary.
RAW = re.compile(
    r"incompatible function|following argument types|Invoked with|nanobind|nb_|std::|_core\."
    r"|collections\.abc|\barg\d*\b"
)
# One good value for each annotation, so that a single argument is the wrong one.
GOOD: dict[str, Any] = {
    "Tensor": tw.ones((2, 3)),
    "Tensor | Iterable[Tensor]": tw.ones((), requires_grad=True),
    "Sequence[Tensor]": [tw.ones((2, 3))],
    "Sequence[int | Sequence[int]]": [(2, 3)],
    "int": 1,
    "int | Sequence[int]": (2, 3),
    "float": 0.5,
    "bool": False,
    "str": "matmul",
    "dtype": tw.float32,
    "bool | int | float | complex": 1.0,
    "Tensor | bool | int | float | complex": 1.0,
    "object": b"12345678",
    "Buffer": b"12345678",
    "handle": b"12345678",
}


def natives() -> Iterator[tuple[str, Any, bool]]:
    """Every function and method of the module that nanobind serves."""
    for name, value in sorted(vars(_core).items()):
        if hasattr(value, "__nb_signature__") and not name.startswith("_"):
            yield name, value, False
        if isinstance(value, type) and not name.startswith("_"):
            for key, member in sorted(vars(value).items()):
                if hasattr(member, "__nb_signature__") and not key.startswith("__"):
                    yield f"{name}.{key}", member, True


NATIVES = {name: (function, method) for name, function, method in natives()}
OWNERS = {
    "Tensor": lambda: tw.ones((2, 3)),
    "Generator": lambda: tw.Generator(0),
    "Pool": tw.Pool,
    "HookHandle": lambda: tw.ones((2,), requires_grad=True).register_hook(lambda g: None),
}


def spoken(name: str) -> str:
    """How messages call it."""
    return name.removeprefix("Tensor.")


def good(parameter: inspect.Parameter) -> Any:
    text = str(parameter.annotation).removesuffix(" | None")
    return "sum" if parameter.name == "reduce" else GOOD.get(text)


def refused(call: Callable[[], object], name: str) -> str:
    """The message of a call that must be refused."""
    with pytest.raises((TypeError, ValueError, IndexError)) as caught:
        call()
    text = str(caught.value)
    assert text.startswith((f"{name}: ", f"Tensor.{name}() ")), text
    assert not RAW.search(text), text
    return text


def native(name: str) -> tuple[str, Callable[..., Any], list[Any]]:
    """The name in messages, a call, and the parameters after self."""
    function, method = NATIVES[name]
    parameters = list(inspect.signature(function).parameters.values())
    if not method:
        return spoken(name), function, parameters
    owner = name.partition(".")[0]
    if owner not in OWNERS:
        pytest.skip(f"{owner} objects come from the engine alone")
    return spoken(name), getattr(OWNERS[owner](), name.partition(".")[2]), parameters[1:]


class TestEveryNativeFunction:
    @each("function", NATIVES)
    def test_unknown_keyword(self, function: str) -> None:
        name, call, parameters = native(function)
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            return
        required = [
            good(p) for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL
        ]
        text = refused(lambda: call(*required, nonsense=1), name)
        assert "unexpected argument 'nonsense'" in text

    @each("function", NATIVES)
    def test_too_many(self, function: str) -> None:
        name, call, parameters = native(function)
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            return
        assert "got 14" in refused(lambda: call(*[Foreign()] * 14), name)

    @each("function", NATIVES)
    def test_missing(self, function: str) -> None:
        name, call, parameters = native(function)
        required = [
            p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL
        ]
        if required:
            text = refused(call, name)
            assert f"missing argument '{required[0].name}'" in text

    @each("function", NATIVES)
    def test_wrong_type(self, function: str) -> None:
        name, call, parameters = native(function)
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for wrong in parameters:
            if wrong.annotation.startswith(("object", "handle")) or "args" in wrong.name:
                continue
            given = {
                p.name: Foreign() if p is wrong else good(p)
                for p in parameters
                if p is wrong or p.default is p.empty
            }
            args = [given.pop(p.name) for p in parameters if p.kind == positional[0]]
            text = refused(lambda args=args, given=given: call(*args, **given), name)
            if "no dtype" not in text:
                assert re.search(rf"\b({wrong.name}|value) must be ", text), text
                assert "Foreign" in text

    @each("function", NATIVES)
    def test_junk_is_refused_in_words_or_taken(self, function: str) -> None:
        name, call, parameters = native(function)
        if name in ("set_device", "set_isa", "force_kernel"):
            return
        for junk in (None, "text", [1, "a"], {}, Foreign(), -1, 2**70, lambda: None):
            for args in ([junk], [junk, junk], [good(p) for p in parameters[:1]] + [junk]):
                try:
                    call(*args)
                except (TypeError, ValueError, IndexError, OverflowError, tw.Error) as error:
                    text = str(error)
                    assert text.startswith((f"{name}: ", f"Tensor.{name}() ")), (text, args)
                    assert not RAW.search(text), (text, args)


# Functions whose parameters are the row's operands, any of which may be a number.
OF_OPERANDS = {
    op["name"]
    for op in _core._op_records()
    if op["function"] and op["signature"].startswith(("(x: Operand)", "(a: Operand,"))
}
ROWS = {row["name"]: row for row in _core.pointwise_table() if row["name"] in OF_OPERANDS}


class TestPointwiseFunctions:
    @each("name", ROWS)
    def test_wrong_calls(self, name: str) -> None:
        function, arity = getattr(tw, name), ROWS[name]["arity"]
        names = ["x"] if arity == 1 else ["a", "b", "c"][:arity]
        ones = [tw.ones((2,))] * arity
        assert f"missing argument '{names[-1]}'" in refused(lambda: function(*ones[1:]), name)
        assert f"got {arity + 1}" in refused(lambda: function(*ones, 1), name)
        assert "unexpected argument 'nonsense'" in refused(lambda: function(nonsense=1), name)
        for i, wrong in enumerate(names):
            for value in ("text", None, [1.0], Foreign()):
                args = [*ones[:i], value, *ones[i + 1 :]]
                text = refused(lambda args=args: function(*args), name)
                assert f"{wrong} must be a tensor or a number, got " in text
        assert "given twice" in refused(lambda: function(*ones, **{names[0]: 1}), name)

    @each("name", [n for n, row in ROWS.items() if row["arity"] == 1])
    def test_methods(self, name: str) -> None:
        refused(lambda: getattr(tw.ones((2,)), name)(1), name)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tw.randn(2, device="gpu"), "randn: no device 'gpu'; there are 'cpu'"),
        (lambda: tw.randn(2, dtype="text"), "randn: no dtype 'text'; choose from bool"),
        (lambda: tw.randn(2, colour=1), "randn: unexpected argument 'colour'; it takes size"),
        (lambda: tw.ones((2,)).sum(axs=0), "sum: unexpected argument 'axs'; did you mean 'axis'?"),
        (lambda: tw.ones((2,)).sum(0, axis=0), "sum: argument 'axis' given twice"),
        (lambda: tw.ones((2,)).sum(axis=0, dim=0), "sum: argument 'axis' given twice"),
        (lambda: tw.sum([1, 2]), "sum: x must be a tensor, got [1, 2]; make one with"),
        (lambda: tw.sum(np.ones(2)), "sum: x must be a tensor, got an object of type numpy"),
        (lambda: tw.concat([tw.ones((2,)), 3]), "arrays must be a sequence of tensors, got 3"),
        (lambda: tw.manual_seed(-1), "manual_seed: seed is out of range: -1"),
        (lambda: tw.Generator("a"), "Generator: seed must be an int, got 'a'"),
        (lambda: tw.Generator(1, 2), "Generator: takes at most 1 argument (seed), got 2"),
        (lambda: tw.Pool(quota=1), "Pool: unexpected argument 'quota'; did you mean"),
        (tw.HookHandle, "HookHandle: made by the engine"),
        (tw.Tensor, "Tensor: takes 1 argument (x), got 0"),
        (lambda: tw.Tensor([1.0], dtype="int8"), "Tensor: takes 1 argument (x), got 2"),
        (lambda: tw.Tensor("a"), "Tensor: cannot make a tensor of str"),
        (lambda: tw.tensor("a"), "tensor: cannot make a tensor of str"),
        (lambda: tw.Tensor.sum(3), "sum: self must be a Tensor, got 3"),
        (lambda: tw.ones((2,)).register_hook(None), "register_hook: hook must be a function"),
        (lambda: tw.grad(3, 4), "grad: inputs must be a tensor or tensors, got 4"),
        (lambda: tw.memory.report(lambda: None), "memory.report: function() must return its loss"),
        (lambda: tw.memory.report(3), "memory.report: function must be a function"),
        (lambda: tw.memory.report(lambda: tw.ones(2).sum()), "memory.report: the loss of"),
        (lambda: tw.memory.allocate("a"), "allocate: nbytes must be an int, got 'a'"),
        (lambda: tw.runtime.transfer.read("a", 3), "transfer.read: out must be a tensor, got 3"),
        (lambda: tw.kernels.names(3), "kernels.names: op must be a str, got 3"),
        (lambda: tw.nn.init.uniform_([1.0]), "uniform_: tensor must be a tensor, got list"),
        (lambda: tw.nn.init.xavier_normal_(tw.ones(2)), "xavier_normal_: fans need at least 2"),
        (lambda: tw.nn.init.calculate_gain([]), "calculate_gain: no gain for []"),
    ],
)  # fmt: skip
def test_messages(call: Callable[[], object], text: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert text in str(caught.value)


@pytest.mark.parametrize("name", ["requires_grad", "grad", "name"])
def test_setters_name_their_attribute(name: str) -> None:
    x = tw.ones((2,))
    with pytest.raises(TypeError, match=rf"^{name}: value must be .*, got "):
        setattr(x, name, Foreign())


@pytest.mark.parametrize("number", [np.longdouble(1), np.clongdouble(1), fractions.Fraction(1, 2)])
def test_numbers_of_types_that_tensors_lack_are_told(number: Any) -> None:
    x = tw.ones((2,))
    for name, call in (
        ("full: fill_value", lambda: tw.full((2,), number)),
        ("fill_: value", lambda: x.fill_(number)),
        ("arange: start", lambda: tw.arange(number)),
        ("add: other", lambda: x.add(fractions.Fraction(1))),
    ):
        with pytest.raises(TypeError, match=rf"^{name} must be .*a number, got an object of type"):
            call()


def test_errors_of_a_users_function_are_left_alone() -> None:
    def hook(_: tw.Tensor) -> None:
        raise TypeError("incompatible wishes")

    x = tw.ones((2,), requires_grad=True)
    x.register_hook(hook)
    with pytest.raises(TypeError, match=r"^incompatible wishes$"):
        (x * 2).sum().backward()


def test_subclasses_of_native_classes_are_told_as_well() -> None:
    class Mine(tw.Pool):
        pass

    assert Mine(quota_bytes=2**20).quota_bytes == 2**20
    with pytest.raises(TypeError, match="quota_bytes must be an int or None, got 'a'"):
        Mine(quota_bytes="a")


# ---- functions in Python ----

MODULES = ("memory", "kernels", "runtime", "optim", "nn", "nn.init", "data", "train", "tune")
# Told by Python itself: what is no path, no file descriptor, no mapping.
PYTHONS_OWN = re.compile(
    r"expected str, bytes or os.PathLike|No such file|file descriptor|not a mapping"
)


def pythons() -> Iterator[tuple[str, Any]]:
    for module in MODULES:
        space = importlib.import_module(f"tilewright.{module}")
        for name in getattr(space, "__all__", None) or dir(space):
            value = getattr(space, name)
            of_ours = str(getattr(value, "__module__", "")).startswith("tilewright.")
            if not name.startswith("_") and callable(value) and of_ours:
                if value is tw.Block:
                    continue  # the engine makes them, as Python says
                if not isinstance(value, types.ModuleType) and not hasattr(value, "extents_at"):
                    yield f"{module}.{name}", value
    for name in ("checkpoint", "checkpoint_sequential", "explain", "gradcheck", "load", "save"):
        yield name, getattr(tw, name)


PYTHONS = dict(pythons())


@each("name", PYTHONS)
def test_functions_in_python_refuse_unknown_keywords_in_their_name(name: str) -> None:
    function = PYTHONS[name]
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        pytest.skip("a type without a signature")
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    with pytest.raises(TypeError) as caught:
        function(nonsense=1)
    short = name.rpartition(".")[2]
    assert re.match(rf"(\w+\.)*{short}\b", str(caught.value)), caught.value
    assert not RAW.search(str(caught.value))


LAYERS = [name for name in tw.nn.__all__ if isinstance(getattr(tw.nn, name), type)]


@each("name", LAYERS)
def test_layers_that_share_an_init_are_told_by_their_own_name(name: str) -> None:
    layer = getattr(tw.nn, name)
    if "__init__" in vars(layer):
        assert layer.__init__.__qualname__ == f"{name}.__init__"
    else:
        assert layer.__init__ is object.__init__


def test_a_users_layer_keeps_pythons_order_of_base_classes() -> None:
    class Base(tw.nn.Module):
        def __init__(self) -> None:
            self.made_by = "Base"

    class Left(Base):
        pass

    class Right(Base):
        def __init__(self) -> None:
            super().__init__()
            self.made_by = "Right"

    class Both(Left, Right):
        pass

    assert "__init__" not in vars(Left)
    assert Both().made_by == "Right"


# ---- advice ----

# A call in a message: name(. Words of formulas and signatures that are no functions of ours.
CALLED = re.compile(r"(?<![\w.])((?:\w+\.)*[a-z_]\w*)\(")
NO_FUNCTIONS = {"callback", "f", "function", "g", "hook", "jvp"}


def literals(node: ast.AST) -> Iterator[str]:
    """Text of an expression in the order in which it is read."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for child in ast.iter_child_nodes(node):
        yield from literals(child)


def messages() -> Iterator[tuple[str, str]]:
    """Texts in the sources that users may read: C++ literals, and Python's in raise statements."""
    for folder in ("core", "binding"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cpp", ".h") and "tests" not in path.parts:
                source = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
                for call in re.findall(r"\bfail\((.*?)\);", source, flags=re.DOTALL):
                    text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', call))
                    yield f"{path.name}", text
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and node.exc is not None:
                yield path.name, "".join(literals(node.exc))


PLACES: list[Any] = [
    tw, tw.Tensor, tw.Pool, tw.Generator, tw.nn, tw.nn.Module, tw.nn.init, tw.optim, tw.data,
    tw.memory, tw.runtime, tw.runtime.Scheduler, tw.runtime.Task, tw.runtime.transfer, tw.kernels,
    tw.io, tw.tune, tw.train, tw.Block, tw.data.DataLoader, tw.optim.Optimizer, tw.TransferEvent,
    builtins,
]  # fmt: skip


OBJECTS: dict[str, Any] = {
    "x": tw.Tensor, "model": tw.nn.Module, "np": np, "array": np.ndarray,
}  # fmt: skip


def resolves(dotted: str) -> bool:
    names = dotted.removeprefix("tilewright.").removeprefix("tw.").split(".")
    if names[0] in OBJECTS:
        return all(hasattr(OBJECTS[names[0]], name) for name in names[1:2])
    for place in PLACES:
        value = place
        for name in names:
            value = getattr(value, name, None)
        if value is not None:
            return True
    return False


def test_advice_names_what_exists() -> None:
    missing = {
        f"{path}: {name}() in {text!r}"
        for path, text in messages()
        for name in CALLED.findall(text)
        if name not in NO_FUNCTIONS and not resolves(name)
    }
    assert not missing, "\n".join(sorted(missing))


def test_advice_to_convert_or_use_names_what_exists() -> None:
    named = re.compile(r"(?:; use|convert with|make one with|use|with) ([a-z_][\w.]*_[\w.]*)")
    missing = {
        f"{path}: {name} in {text!r}"
        for path, text in messages()
        for name in named.findall(text)
        if not resolves(name.rstrip(".")) and not _is_argument(name.rstrip("."))
    }
    assert not missing, "\n".join(sorted(missing))


def _is_argument(name: str) -> bool:
    names = {p for f, _ in NATIVES.values() for p in inspect.signature(f).parameters}
    for value in PYTHONS.values():
        try:
            names |= set(inspect.signature(value).parameters)
        except ValueError:
            continue
    return name in names | {"has_aux", "spill_dir", "memory_bytes", "quota_bytes"}


def test_documentation_names_what_exists() -> None:
    dotted = re.compile(r"\b(?:tw|tilewright)((?:\.[A-Za-z_]\w*)+)")
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
    texts |= {path: path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")}
    texts[ROOT / "README.md"] = (ROOT / "README.md").read_text(encoding="utf-8")
    missing = set()
    for path, text in texts.items():
        for match in dotted.finditer(text):
            names = match.group(1).strip(".").split(".")
            if (ROOT / "src/tilewright" / "/".join(names)).with_suffix(".pyi").exists():
                continue  # for type checkers alone
            value: Any = tw
            for i, name in enumerate(names):
                if isinstance(value, types.ModuleType) and not hasattr(value, name):
                    try:
                        value = importlib.import_module(".".join(["tilewright", *names[: i + 1]]))
                    except ImportError:
                        missing.add(f"{path.name}: {match.group(0)}")
                        break
                else:
                    if not hasattr(value, name):
                        missing.add(f"{path.name}: {match.group(0)}")
                        break
                    value = getattr(value, name)
    assert not missing, sorted(missing)


def test_a_value_is_told_by_itself_or_by_what_it_is() -> None:
    shown = argument_errors.shown
    assert shown(tw.ones((2, 3))) == "a tensor of shape (2, 3), float32"
    assert shown([tw.ones(2)]) == "a list of 1 elements"
    assert shown(np.ones(2)) == "an object of type numpy.ndarray"
    assert shown(int) == "the class int"
    assert shown(tw.int8) == "the dtype int8"
    assert len(shown("a" * 1000)) < 50
    assert shown((1, None)) == "(1, None)"
