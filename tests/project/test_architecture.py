"""The sources keep the laws of ARCHITECTURE.md: floors, rooms, its tree, and names that resolve."""

import importlib.util
import re
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest
from checkout import ROOT

_spec = importlib.util.spec_from_file_location("draw_floors", ROOT / "tools/draw_floors.py")
assert _spec is not None
assert _spec.loader is not None
floors = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(floors)

# What a floor may include beside itself. No kernel includes an op, and the CPU's and the GPU's do
# not include each other's.
MAY_INCLUDE = {
    "core/base": "",
    "core/memory": "base",
    "core/runtime": "base memory",
    "core/tensor": "base memory runtime",
    "core/autograd": "base memory runtime tensor",
    "core/problems": "base memory runtime",
    "core/null": "base memory runtime",
    "core/cpu": "base memory runtime problems",
    "core/cuda": "base memory runtime problems",
    "core/ops": "base memory runtime tensor autograd problems",
    "blas": "base memory runtime problems cpu",
    "binding": "base memory runtime tensor autograd problems ops cpu cuda null",
}


@cache
def includes() -> list[tuple[str, str]]:
    found = floors.includes(ROOT)
    assert len(found) > 1000
    return found


def folders(*tops: str) -> list[Path]:
    found = [path for top in tops for path in (ROOT / top, *(ROOT / top).rglob("*"))]
    return [path for path in found if path.is_dir() and path.name != "__pycache__"]


def files_in(folder: Path) -> list[Path]:
    """Without what builds leave there."""
    return [
        file for file in folder.iterdir() if file.is_file() and file.suffix not in {".so", ".pyc"}
    ]


def sources(*tops: str) -> list[Path]:
    return [f for top in tops for f in (ROOT / top).rglob("*") if f.suffix in floors.SUFFIXES]


# ---- the tree of ARCHITECTURE.md ----


def tree() -> set[str]:
    """Its folders.

    A line begins with one, or with `core/{ops,cpu}/` for several. A word behind it that ends in `/`
    is a folder below. A line that is indented goes on with the one above.
    """
    text = (ROOT / "ARCHITECTURE.md").read_text().split("```")[1]
    entries: set[str] = set()
    parents: list[str] = []
    for line in text.strip().splitlines():
        words = [word.rstrip(",;") for word in line.split()]
        if not line.startswith(" "):
            first = words.pop(0)
            assert first.endswith("/"), f"ARCHITECTURE.md: no folder begins the line {line!r}"
            start, _, rest = first.partition("{")
            names, _, end = rest.partition("}")
            parents = [f"{start}{name}{end}" for name in names.split(",")]
            entries.update(parents)
        below = [word for word in words if re.fullmatch(r"[\w/]+/", word)]
        entries.update(parent + word for parent in parents for word in below)
    return {entry.rstrip("/") for entry in entries}


def test_every_folder_is_in_the_tree() -> None:
    held = {
        path.relative_to(ROOT).as_posix()
        for path in folders("core", "binding", "blas", "src/tilewright", "tests")
        if any(file.suffix in {*floors.SUFFIXES, ".py"} for file in files_in(path))
    }
    assert len(held) > 20
    missing = held - tree()
    assert not missing, f"not in ARCHITECTURE.md: {sorted(missing)}"


def test_every_entry_of_the_tree_is_a_folder() -> None:
    gone = [entry for entry in sorted(tree()) if not (ROOT / entry).is_dir()]
    assert not gone, f"in ARCHITECTURE.md alone: {gone}"


def test_a_folder_is_seen_at_a_glance() -> None:
    full = {
        path.relative_to(ROOT).as_posix(): len(files_in(path))
        for path in folders("core", "binding", "blas", "src", "tests", "tools", "examples")
        if len(files_in(path)) > 40
    }
    assert not full, f"folders of more than 40 files: {full}"


# ---- floors and rooms ----


@pytest.mark.parametrize("floor", MAY_INCLUDE)
def test_a_floor_includes_only_floors_below(floor: str) -> None:
    assert any(a.startswith(f"{floor}/") for a, _ in includes())
    allowed = {floor, *(f"core/{name}" for name in MAY_INCLUDE[floor].split())}
    against = [
        f"{a} includes {b}"
        for a, b in includes()
        if floors.floor_of(a) == floor and floors.floor_of(b) not in allowed
    ]
    assert not against, "\n".join(against)


def test_every_folder_of_the_core_is_a_floor() -> None:
    """Or holds tests; a folder without a law would be outside of all of these."""
    found = {f"core/{path.name}" for path in (ROOT / "core").iterdir() if path.is_dir()}
    assert found == {floor for floor in MAY_INCLUDE if floor.startswith("core/")} | {"core/tests"}


def circle(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


# A stream, a block and a copy ask the GPU that they are a part of.
OF_A_GPU = ("core/cuda/driver/", "core/cuda/memory/")


@pytest.mark.parametrize(
    ("floor", "read"),
    [
        ("core", "headers"),
        ("binding", "headers"),
        # Sources of ops write their gradients with each other's ops; kernels have no such reason.
        ("core/cpu", "all sources"),
        ("core/cuda", "all sources"),
    ],
)
def test_rooms_include_each_other_without_a_circle(floor: str, read: str) -> None:
    graph: dict[str, set[str]] = defaultdict(set)
    example: dict[tuple[str, str], str] = {}
    for a, b in includes():
        if not (a.startswith(f"{floor}/") and b.startswith(f"{floor}/")):
            continue
        if a.endswith(".cpp") and (read == "headers" or a.startswith(OF_A_GPU)):
            continue
        rooms = (a.rsplit("/", 1)[0], b.rsplit("/", 1)[0])
        if rooms[0] != rooms[1]:
            graph[rooms[0]].add(rooms[1])
            example[rooms] = f"{a} includes {b}"
    assert graph, f"no room of {floor} includes another"
    around = circle(graph)  # each room stands behind one that it includes
    arrows = [example[a, b] for b, a in pairwise(around)]
    assert not arrows, "\n".join(arrows)


def test_the_picture_of_the_floors_is_what_the_sources_give() -> None:
    drawn = floors.Picture(floors.House(ROOT)).draw()
    committed = (ROOT / floors.PICTURE).read_text()
    assert floors.same_picture(committed, drawn), "run tools/draw_floors.py"


def test_the_picture_differs_where_an_arrow_does() -> None:
    house = floors.House(ROOT)
    drawn = floors.Picture(house).draw()
    house.arrows["core/tensor", "core/base"] += 1
    assert floors.same_picture(drawn, floors.Picture(house).draw())
    house.arrows["core/tensor", "core/base"] += 100
    assert not floors.same_picture(drawn, floors.Picture(house).draw())
    del house.arrows["core/tensor", "core/base"]
    assert not floors.same_picture(drawn, floors.Picture(house).draw())


def test_the_core_knows_no_python() -> None:
    for file in sources("core", "blas"):
        text = file.read_text()
        assert "Python.h" not in text, file
        assert "nanobind/" not in text, file


def test_forks_have_one_handler() -> None:
    """Whose list states the order of the locks; a second handler would take its own at any time."""
    handlers = [
        file.relative_to(ROOT).as_posix()
        for file in sources("core", "binding", "blas")
        if "pthread_atfork(" in file.read_text()
    ]
    assert handlers == ["core/base/fork.cpp"]


# ---- names in strings and texts ----


def test_includes_are_written_from_the_root() -> None:
    """As these tests read them. CUDA kernels alone name each other without a folder."""
    names = {file.name for file in sources("core")}
    for file in sources("core", "binding", "blas"):
        for mark, path in re.findall(r'^\s*#\s*include\s+(["<])([^">]+)', file.read_text(), re.M):
            if mark == "<":
                assert not (ROOT / path).exists(), f"{file}: <{path}> is a file of ours"
            elif "/" in path or file.suffix != ".cuh":
                beside = (file.parent / path).exists()
                assert (ROOT / path).exists() or beside, f"{file} includes {path}"
            else:
                assert path in names, f"{file} includes {path}"


def test_modules_that_the_binding_imports_exist() -> None:
    """With the attribute it asks of them."""
    pattern = r'import_\(\s*"(tilewright[\w.]*)"\)(?:\s*\.attr\(\s*"(\w+)"\))?'
    found = 0
    for file in sources("binding"):
        for module, name in re.findall(pattern, file.read_text()):
            if module in {"tilewright", "tilewright._core"}:
                continue
            path = ROOT / "src" / module.replace(".", "/")
            text = next(
                (p for p in (path.with_suffix(".py"), path / "__init__.py") if p.exists()), None
            )
            assert text, f"{file} imports {module}"
            assert re.search(rf"\b{name}\b", text.read_text()), f"{file}: {module} has no {name}"
            found += 1
    assert found >= 10


# Files that a recipe makes, that the tests write, or that are other projects'.
NOT_HERE = {
    "test_x",
    "unit_rows",
    "unit_rows_loops",
    "distance",
    "signum",
    "test_NAME",
    "nb_type",
    "setmaxnreg",
    "1",
}
TEXTS = {*floors.SUFFIXES, ".py", ".md", ".cmake", ".txt", ".toml", ".sh"}
ROOTED = re.compile(
    r"(?<![\w./$}>-])((?:core|binding|blas|tools|tests|docs|examples|src/tilewright)/[\w./-]*)(.?)"
)
NAMED = re.compile(r"(?<![\w./<{}$*%\\-])(?:\w+/)*\w+\.(?:h|cpp|inc|cuh)\b(?!\()")


def texts() -> list[Path]:
    """Sources and pages, but for the changelog, which tells of what was."""
    tops = ("core", "binding", "blas", "src", "tests", "tools", "docs", "examples")
    below = [file for top in tops for file in (ROOT / top).rglob("*") if file.suffix in TEXTS]
    beside = [file for file in ROOT.iterdir() if file.suffix in TEXTS or file.name == "Makefile"]
    return sorted(file for file in (*below, *beside) if file.name != "CHANGELOG.md")


def resolves(path: str, behind: str) -> bool:
    """A file, with or without its suffix, or a folder; before a pattern, how some of them begin."""
    if (ROOT / path).exists() or Path(path).stem in NOT_HERE:
        return True
    more = "*" if behind in set("*<{$[\\") else ".*"
    return any(ROOT.glob(path.rstrip("/") + more))


def test_paths_in_sources_and_pages_exist() -> None:
    gone = []
    for file in texts():
        for number, line in enumerate(file.read_text().splitlines(), 1):
            for match, behind in ROOTED.findall(line):
                path = match.rstrip(".-")
                if not resolves(path, behind):
                    gone.append(f"{file.relative_to(ROOT)}:{number}: {path}")
    assert not gone, "\n".join(gone)


def test_files_that_sources_and_pages_name_exist() -> None:
    """By name, or with their last folders: such as `x.cuh` in what loads a GPU's kernels."""
    names = set()
    for folder in folders("core", "binding", "blas"):
        for file in files_in(folder):
            parts = file.relative_to(ROOT).parts
            names.update("/".join(parts[start:]) for start in range(len(parts)))
    gone = []
    for file in texts():
        if file.suffix == ".py":
            continue  # attributes look the same there
        for number, line in enumerate(file.read_text().splitlines(), 1):
            for name in NAMED.findall(line):
                if name not in names and Path(name).stem not in NOT_HERE:
                    gone.append(f"{file.relative_to(ROOT)}:{number}: {name}")
    assert not gone, "\n".join(gone)


def test_links_of_pages_resolve() -> None:
    gone = []
    for page in (p for p in texts() if p.suffix == ".md"):
        prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
            if "://" not in target and not (page.parent / target).exists():
                gone.append(f"{page.relative_to(ROOT)}: {target}")
    assert not gone, "\n".join(gone)
