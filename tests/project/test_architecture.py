"""ARCHITECTURE.md's tree and the repository agree, and lower floors do not include higher ones."""

import re
from pathlib import Path

import pytest
from checkout import ROOT

FLOORS = ["base", "memory", "runtime", "tensor", "autograd", "ops"]


def tree() -> dict[str, set[str]]:
    """Folder to the words behind it."""
    text = (ROOT / "ARCHITECTURE.md").read_text().split("```")[1]
    entries: dict[str, set[str]] = {}
    folder = ""
    for line in text.strip().splitlines():
        match = re.match(r"(\S+/)\s+(.*)", line)
        if match:
            folder = match[1].rstrip("/")
        entries.setdefault(folder, set()).update(re.findall(r"\w+", match[2] if match else line))
    return entries


def sources(folder: Path) -> set[str]:
    files = [f for f in folder.iterdir() if f.suffix in {".h", ".cpp", ".inc", ".py"}]
    return {f.stem for f in files if not f.stem.startswith(("_", "test_"))}


@pytest.mark.parametrize("folder", sorted(tree()))
def test_every_source_is_in_the_tree(folder: str) -> None:
    if folder in {"tests", "examples"}:
        assert (ROOT / folder).is_dir()
        return
    missing = sources(ROOT / folder) - tree()[folder]
    assert not missing, f"{folder}: not in ARCHITECTURE.md: {sorted(missing)}"


def test_every_folder_is_in_the_tree() -> None:
    for top in ("core", "binding", "blas", "src/tilewright"):
        for path in (ROOT / top, *(ROOT / top).rglob("*")):
            if path.is_dir() and path.name != "__pycache__" and sources(path):
                assert str(path.relative_to(ROOT)) in tree()


@pytest.mark.parametrize("floor", FLOORS)
def test_a_floor_knows_only_the_floors_below(floor: str) -> None:
    above = FLOORS[FLOORS.index(floor) + 1 :]
    for file in (ROOT / "core" / floor).glob("*.[hc]*"):
        included = set(re.findall(r'#include "core/(\w+)/', file.read_text()))
        assert not included & set(above), f"{file.name} includes {sorted(included & set(above))}"


def test_the_core_knows_no_python() -> None:
    for file in (*(ROOT / "core").rglob("*.[hc]*"), *(ROOT / "blas").glob("*.[hc]*")):
        assert "Python.h" not in file.read_text()
        assert "nanobind" not in file.read_text()


@pytest.mark.parametrize("floor", FLOORS[1:])  # the lowest lists the instruction sets
def test_ops_know_no_device(floor: str) -> None:
    """What computes is found in the registry."""
    for file in (ROOT / "core" / floor).iterdir():
        included = re.findall(r'#include ["<](.*)[">]', file.read_text())
        assert not [path for path in included if re.search(r"(^|/)(cpu|cuda|null)/", path)], file


def test_includes_are_written_from_the_root() -> None:
    """As the tests of floors read them."""
    for folder in ("core", "binding", "blas"):
        for file in (ROOT / folder).rglob("*.[hci]*"):
            for path in re.findall(r'#include "(.*)"', file.read_text()):
                assert (ROOT / path).exists() or "/" not in path, f"{file.name} includes {path}"


def test_forks_have_one_handler() -> None:
    """Whose list states the order of the locks; a second handler would take its own at any time."""
    handlers = [
        str(file.relative_to(ROOT))
        for folder in ("core", "binding", "blas")
        for file in (ROOT / folder).rglob("*.[hc]*")
        if "pthread_atfork(" in file.read_text()
    ]
    assert handlers == ["core/base/fork.cpp"]
