"""Modules of the package: names in strings and pickles lead to them, imports have one direction."""

import ast
import importlib
import importlib.util
import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

import tilewright as tw
from tilewright._compat.moved_modules import NEW_NAMES

PACKAGE = ROOT / "src/tilewright"


def names_in(folder: str, pattern: str, *suffixes: str) -> set[tuple[str, str]]:
    """Modules that strings name, with the attribute that is taken of them, if any."""
    return {
        (name, attribute)
        for file in (ROOT / folder).rglob("*")
        if file.suffix in suffixes
        for name, attribute in re.findall(pattern, file.read_text())
    }


IMPORTED_BY_BINDING = names_in(
    "binding", r'import_\(\s*"(tilewright[\w.]*)"\)(?:\s*\.attr\("(\w+)"\))?', ".cpp", ".h"
)
IN_STRINGS = names_in("src/tilewright", r'"(tilewright(?:\.\w+)+)(?::(\w+))?"', ".py")


@pytest.mark.parametrize(("name", "attribute"), sorted(IMPORTED_BY_BINDING | IN_STRINGS))
def test_a_name_in_a_string_is_of_today(name: str, attribute: str) -> None:
    assert name not in NEW_NAMES, f"{name} is {NEW_NAMES[name]} now"
    assert importlib.util.find_spec(name) is not None
    if attribute:
        assert hasattr(importlib.import_module(name), attribute)


def test_the_binding_names_modules() -> None:
    assert ("tilewright._engine.pickling", "reduce") in IMPORTED_BY_BINDING


@pytest.mark.parametrize("former", NEW_NAMES)
def test_a_former_name_gives_the_module_of_today(former: str) -> None:
    module = importlib.import_module(former)
    assert module is importlib.import_module(NEW_NAMES[former])
    assert module.__name__ == module.__spec__.name == NEW_NAMES[former]


def test_former_names_can_be_taken_from_their_package() -> None:
    program = "from tilewright import sets; from tilewright.nn.linear import Linear; import "
    program += "tilewright.cache, tilewright as tw; print(sets.__name__, tw.nn.Linear is Linear)"
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.stdout == "tilewright._arrays.sets True\n", done.stderr


def test_a_name_of_no_module_is_still_missing() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'tilewright\.nowhere'"):
        importlib.import_module("tilewright.nowhere")


def test_an_import_loads_one_private_room() -> None:
    program = "import sys, tilewright; print(*[m for m in sys.modules if 'tilewright.' in m])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    rooms = {name.split(".")[1] for name in done.stdout.split()}
    assert rooms == {"_core", "_engine"}


def test_private_rooms_load_nothing_by_themselves() -> None:
    for file in PACKAGE.glob("_*/__init__.py"):
        assert not file.read_text(), file


@pytest.mark.parametrize("kind", [tw.nn.Linear, tw.optim.Adam, tw.explain, tw.nn.Module])
def test_the_source_of_a_class_is_found(kind: type) -> None:
    assert inspect.getsource(kind).startswith(f"class {kind.__name__}")


def test_a_pickle_names_no_former_module() -> None:
    written = pickle.dumps([tw.nn.Linear(1, 1), tw.optim.SGD([tw.ones(1, requires_grad=True)])], 2)
    assert not [former for former in NEW_NAMES if f"c{former}\n".encode() in written]


def imports_of(name: str, file: Path) -> set[str]:
    """Modules of the package that a module imports where it is loaded, or names in annotations."""
    found: set[str] = set()
    bodies = [ast.parse(file.read_text())]
    while bodies:
        node = bodies.pop()
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.startswith("tilewright")
        ):
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {each if each in MODULES else node.module for each in below}
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            bodies += ast.iter_child_nodes(node)
    return found - {"tilewright", name}


MODULES = {
    ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): file
    for file in PACKAGE.rglob("*.py")
}


def test_modules_import_one_another_in_one_direction() -> None:
    waiting = {name: imports_of(name, file) for name, file in MODULES.items() if "." in name}
    while ready := {name for name, needed in waiting.items() if not needed & waiting.keys()}:
        waiting = {name: needed for name, needed in waiting.items() if name not in ready}
    assert not waiting, f"in or behind a circle: {waiting}"


def test_rooms_below_know_none_above() -> None:
    above = {
        "_engine": "_arrays _compat _inspect _report autograd nn optim data io train cli bench",
        "_report": "_arrays _inspect autograd nn optim data train cli bench",
        "_compat": "_inspect _report nn optim data io train cli bench",
    }
    for room, others in above.items():
        for name, file in MODULES.items():
            if name.startswith(f"tilewright.{room}."):
                rooms = {each.split(".")[1] for each in imports_of(name, file)}
                assert not rooms & set(others.split()), f"{name} imports {sorted(rooms)}"
