"""The recipes of CONTRIBUTING.md, followed to the letter on one copy of the sources.

All are applied together and built once, into a module with which the tests run that cover an op
because it is listed. Objects that no recipe touches come from the build that the tests run on.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from checkout import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
BLOCKS = re.findall(r"^```\w+\n(.*?)^```$", TEXT, re.M | re.S)


def block(start: str) -> str:
    """The piece of CONTRIBUTING.md that begins so."""
    (found,) = (text for text in BLOCKS if text.lstrip().startswith(start))
    return found


def rows_of(*macros: str) -> list[str]:
    """Rows that stand in a sentence of CONTRIBUTING.md."""
    return [row for macro in macros for row in re.findall(rf"`({macro}\(.*?\))`", TEXT)]


@dataclass(frozen=True)
class Recipe:
    """What one adds: files, rows of tables, before the first of their kind, and a test record."""

    op: str
    files: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, str] = field(default_factory=dict)  # by table
    record: tuple[str, str, str] = ("", "", "")  # file of tests/cases/ops, the line above, the text
    more: tuple[tuple[str, str], ...] = ()  # the same file: lines above, texts

    def touched(self) -> set[str]:
        return {*self.files, *self.rows, f"tests/cases/ops/{self.record[0]}"}

    def follow(self, copy: Path) -> None:
        for path, text in self.files.items():
            (copy / path).write_text(text)
        for path, rows in self.rows.items():
            for row in re.split(r"\n(?=TW_)", rows.strip()):
                macro = row.split("(")[0]
                text = (copy / path).read_text()
                at = re.search(rf"^{macro}\(", text, re.M)
                assert at, f"{path} has no {macro}"
                (copy / path).write_text(f"{text[: at.start()]}{row}\n{text[at.start() :]}")
        file, above, text = self.record
        for line, each in ((above, text), *self.more):
            insert(copy / "tests/cases/ops" / file, line, each)


def insert(path: Path, behind: str, text: str) -> None:
    """Behind the beginning of the first line that begins so."""
    whole = path.read_text()
    at = re.search(rf"^{re.escape(behind)}", whole, re.M)
    assert at, f"{path} has no line {behind!r}"
    path.write_text(whole[: at.end()] + text + whole[at.end() :])


RECORD_OF_A_REDUCTION = """
    OpCase(
        "geometric_mean",
        with_axes(tw.geometric_mean),
        with_axes(lambda x, **o: np.prod(x, **o) ** (1 / (x.size / np.prod(x, **o).size))),
        arguments((0.8, 1.2), (1, 3), empty=False),
        {"float16": 1.0, "bfloat16": 1.0, "float32": 8.0, "float64": 64.0},
        same,
        None,
        MANY_AXES,
        None,
        differentiable=(0,),
        smooth=smooth(0.5, 2),
        gradient_tolerance=16,
        derivatives=RowDerivatives(
            ((1.0, 2.0, 4.0), (5.0,)),
            lambda x: np.prod(x) ** (1 / x.size) / (x.size * x),
            lambda x: (
                np.prod(x) ** (1 / x.size)
                * (1 / (x.size * x)[:, None] / (x.size * x) - np.diag(1 / (x.size * x * x)))
            ),
        ),
        errors=(
            *axis_errors("geometric_mean"),
            integer_error("geometric_mean"),
            empty_error("geometric_mean"),
        ),
    ),
"""
RECORD_OF_A_COMBINATION = """
    OpCase(
        "cube_sum",
        with_axes(tw.cube_sum),
        with_axes(lambda x, **o: np.sum(x * x * x, **o)),
        arguments((0, 2), (0, 5)),
        {"float16": 1.0, "bfloat16": 1.0, "float32": 8.0, "float64": 64.0},
        same,
        None,
        MANY_AXES,
        None,
        differentiable=(0,),
        smooth=smooth(-2, 2),
        gradient_tolerance=16,
        derivatives=RowDerivatives(
            ((1.0, -2.0, 4.0), (5.0,)), lambda x: 3 * x * x, lambda x: np.diag(6 * x)
        ),
        errors=(*axis_errors("cube_sum"), integer_error("cube_sum")),
    ),
"""
RECORD_OF_OTHERS = """
    OpCase(
        "squared_distance",
        tw.squared_distance,
        lambda a, b: np.sum((a - b) ** 2),
        lambda rng, dtype: [tuple(values(rng, dtype, (-3, 3), n) for n in ((5, 33), (33,)))],
        {"float16": 8.0, "bfloat16": 8.0, "float32": 16.0, "float64": 16.0},
        lambda dtype: dtype,
        differentiable=(0, 1),
        smooth=lambda rng: [(rng.normal(size=(2, 3)), rng.normal(size=3))],
        gradient_tolerance=16,
    ),
"""
RECORD_WITH_KERNELS = """
    OpCase(
        "unit_rows",
        tw.unit_rows,
        lambda x: x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True)),
        lambda rng, dtype: [(values(rng, dtype, (1, 9), shape),) for shape in SHAPES],
        {"float16": 1.0, "bfloat16": 1.0, "float32": 8.0, "float64": 8.0},
        lambda dtype: dtype,
        differentiable=(0,),
        smooth=lambda rng: [(rng.uniform(1, 2, shape),) for shape in ((2, 3), (3, 1), (2, 3, 2))],
        gradient_tolerance=16,
        errors=(
            ErrorInput(lambda: tw.unit_rows(tw.ones(())), ValueError, "unit_rows: x needs an axis"),
            ErrorInput(lambda: tw.unit_rows(tw.ones(2, dtype=tw.int8)), TypeError, "no kernel for"),
        ),
    ),
"""
RECIPES = (
    Recipe(
        "cube",
        rows={"core/problems/pointwise.inc": block("TW_UNARY(cube")},
        record=("pointwise.py", "UNARY = (\n", block("make(")),
    ),
    Recipe(
        "geometric_mean",
        rows={"core/problems/reductions.inc": block("TW_REDUCTION(geometric_mean")},
        record=("reductions.py", "RECORDS = (", RECORD_OF_A_REDUCTION),
    ),
    Recipe(
        "cube_sum",
        rows={
            "core/problems/combinations.inc": block("TW_COMBINATION"),
            "core/problems/reductions.inc": block("TW_REDUCTION(cube_sum"),
        },
        record=("reductions.py", "RECORDS = (", RECORD_OF_A_COMBINATION),
    ),
    Recipe(
        "signum_step",
        files={"src/tilewright/optim/signum.py": block('"""Signum.')},
        rows={"core/problems/updates.inc": block("TW_UPDATE")},
        record=("updates.py", "OPS = {", '\n    "signum_step": (1, {"momentum": 0.75}),'),
        more=(
            ("import math\n", f"\n\n{block('def signum')}\n"),
            ("FORMULAS = {", '\n    "signum": ("Signum", {"momentum": 0.75}, signum),'),
            ("BEYOND_PYTORCH = (", '"Signum", '),
        ),
    ),
    Recipe(
        "squared_distance",
        files={"core/ops/reduce/distance.cpp": block("// Distances.")},
        rows={"core/ops/engine/ops.inc": rows_of("TW_OP")[0]},
        record=("softmax.py", "RECORDS = (", RECORD_OF_OTHERS),
    ),
    Recipe(
        "unit_rows",
        files={
            "core/ops/normalization/unit_rows.cpp": block("// Rows of length 1.\n"),
            "core/cpu/normalization/unit_rows_loops.h": block("// Rows of length 1: "),
        },
        rows={
            "core/ops/engine/ops.inc": "\n".join(rows_of("TW_OP")[1:]),
            "core/cpu/isa/families.inc": "\n".join(rows_of("TW_FAMILY", "TW_KERNELS")),
        },
        record=("softmax.py", "RECORDS = (", RECORD_WITH_KERNELS),
    ),
)
OPS = [recipe.op for recipe in RECIPES]
TABLES = {path for recipe in RECIPES for path in recipe.rows}
TOUCHED = {path for recipe in RECIPES for path in recipe.touched()}


# A second kernel, which takes rows of some length alone: listed, explained and forced by its name.
KERNEL = """
  static const Kernel mine = {
      .op = "unit_rows",
      .name = "mine",
      .device = "cpu",
      .help = "a test's kernel",
      .accepts =
          [](const void* problem, std::string* reason) {
            if (reason) *reason = "rows are too short for it";
            return static_cast<const Problem*>(problem)->n > 4;
          },
      .cost_ns = cost_ns,
      .run = run<false>};
  register_kernel(&mine);
"""


def add_a_kernel(copy: Path) -> None:
    header = copy / "core/cpu/normalization/unit_rows_loops.h"
    text = header.read_text()
    start = "void register_unit_rows_kernels() {"
    assert start in text
    header.write_text(text.replace(start, start + KERNEL))


def tool(name: str) -> str:
    """A build tool, beside the interpreter or on the path."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        pytest.skip(f"no {name} here")
    return found


def untouched_objects(build: Path) -> list[str]:
    """Objects of a build folder that are newer than all of their sources, none of them touched."""
    listed = run([tool("ninja"), "-C", build, "-t", "deps"])
    found = []
    for entry in listed.strip().split("\n\n"):
        head, *sources = entry.splitlines()
        target = build / head.split(": #deps")[0]
        if target.suffix != ".o" or not target.exists():
            continue
        paths = [(build / source.strip()).resolve() for source in sources]
        made = target.stat().st_mtime
        if any(not path.exists() or path.stat().st_mtime > made for path in paths):
            continue
        names = {str(path.relative_to(ROOT)) for path in paths if path.is_relative_to(ROOT)}
        asks_for_sets = any(
            "TW_BUILT_" in path.read_text() for path in paths if path.suffix == ".cpp"
        )
        if not names & TOUCHED and not asks_for_sets:
            found.append(str(target.relative_to(build)))
    return found


def copied(copy: Path) -> None:
    """The sources with all recipes applied."""
    for part in ("core", "binding", "tools", "src", "tests", "blas", "examples"):
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs", copy / "docs", ignore=shutil.ignore_patterns("*.png", "*.json"))
    for part in ("CMakeLists.txt", "ARCHITECTURE.md", "pyproject.toml"):
        shutil.copy(ROOT / part, copy / part)
    for recipe in RECIPES:
        recipe.follow(copy)
    add_a_kernel(copy)
    (copy / "build").mkdir()
    if (ROOT / "build/emulator").exists():
        (copy / "build/emulator").symlink_to(ROOT / "build/emulator")


def built(copy: Path) -> None:
    """The copy's module beside its package, and the stub made from it."""
    build, version = copy / "build/module", "cp{}{}".format(*sys.version_info)
    options = [
        f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}",
        f"-Dnanobind_DIR={run([sys.executable, '-m', 'nanobind', '--cmake_dir']).strip()}",
        f"-DPython_EXECUTABLE={sys.executable}",
        "-DTW_ISAS=scalar",
        "-DTW_BUILD_BLAS=OFF",
        "-DCMAKE_BUILD_TYPE=Quick",  # no optimisation: the build is what takes the time
    ]
    reuse = {}
    for other in sorted(ROOT.glob(f"build/{version}-*/.ninja_deps"))[:1]:
        objects = copy / "build/untouched"
        objects.write_text("\n".join(untouched_objects(other.parent)))
        reuse["TW_REUSE_FROM"] = str(other.parent)
        reuse["TW_REUSE_LIST"] = str(objects)
        reuse["TW_REUSE_ROOT"] = str(ROOT).lstrip("/")
        options.append(f"-DCMAKE_CXX_COMPILER_LAUNCHER={copy / 'tests/reuse_object.sh'}")
    run([tool("cmake"), "-S", copy, "-B", build, "-G", "Ninja", *options], os.environ | reuse)
    run([tool("cmake"), "--build", build], os.environ | reuse)
    (module,) = build.glob("_core.*.so")
    shutil.copy(module, copy / "src/tilewright")
    run([sys.executable, copy / "tools/make_stub.py"], in_copy(copy))


def in_copy(copy: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}


def run(
    command: list[str | Path], environment: dict[str, str] | None = None, **more: object
) -> str:
    """Standard output; the test fails with all output where the command does."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, **more
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("recipe", RECIPES, ids=OPS)
def test_an_op_touches_few_files(recipe: Recipe) -> None:
    """A row or two and a record, and an optimizer's class; else also kernels, and lists."""
    lists = {"core/ops/engine/ops.inc", "core/cpu/isa/families.inc"}
    rooms = {str(Path(path).parent) for path in recipe.files}
    if rooms == {"src/tilewright/optim"}:
        assert len(recipe.touched()) == 3
        return
    assert len(recipe.touched()) <= (5 if recipe.files else 3)
    assert not recipe.files or set(recipe.rows) <= lists
    assert rooms <= {"core/ops/reduce", "core/ops/normalization", "core/cpu/normalization"}


# Tests that cover an op because it is listed, by file, and names of those that walk whole lists,
# or of files whose tests all do.
COVERED_BY = """
    test_op_tables test_records test_op_laws test_docstrings test_forced_kernels test_steps
    test_gpu_records test_architecture test_arguments test_optim
"""
WALKS = """
    every_row every_op every_function every_kernel every_step every_body every_record stub tree
    test_op_tables test_docstrings
"""


BEHAVIOUR = """
import numpy as np
import tilewright as tw
from tilewright import gradcheck, gradgradcheck

x = tw.asarray([[3.0, 4.0], [1.0, 2.0]], dtype=tw.float64).requires_grad_()
assert np.allclose((x**3).tolist(), tw.cube(x).tolist())
assert np.allclose(tw.unit_rows(x).tolist(), [[0.6, 0.8], [5**-0.5, 2 * 5**-0.5]])
assert np.allclose(x.geometric_mean(axis=1).tolist(), [12**0.5, 2**0.5])
for f in (tw.cube, tw.unit_rows, tw.geometric_mean, lambda x: tw.squared_distance(x, 2 * x + 1)):
    assert gradcheck(f, [x]) and gradgradcheck(f, [x])

p, g, s = tw.ones((3,)), tw.full((3,), 2.0), tw.zeros((3,))
tw.signum_step([p], [g], [s], step=1, lr=0.5, momentum=0.75)
assert (s.tolist(), p.tolist()) == ([0.5] * 3, [0.5] * 3)
optimizer = tw.optim.Signum([p.requires_grad_()], lr=0.25, momentum=0.5)
p.grad = g
optimizer.step()
assert p.tolist() == [0.25] * 3 and "momentum_buffer" in optimizer.state[p]

assert "mine" in tw.kernels.names("unit_rows")
with tw.explain() as report:
    tw.unit_rows(x).sum().backward()
ran = {(entry.op, entry.kernel) for entry in report._recorded}
assert {("unit_rows", "vector"), ("unit_rows_backward", "vector")} <= ran
with tw.kernels.use(unit_rows="mine"):
    try:
        tw.unit_rows(x)
    except ValueError as error:
        assert "rows are too short for it" in str(error)
    else:
        raise AssertionError("a forced kernel that refuses raises")
"""


@pytest.mark.tier("all")
def test_recipes_give_ops_that_are_documented_tested_and_right(tmp_path: Path) -> None:
    """One test, as the build is what takes the time."""
    pytest.importorskip("nanobind")
    copied(tmp_path)
    built(tmp_path)
    stub = (tmp_path / "src/tilewright/_core.pyi").read_text()
    for name in OPS:
        assert f"def {name}(" in stub
    run([sys.executable, "-c", BEHAVIOUR], in_copy(tmp_path))
    options = ["-q", "-p", "no:cacheprovider", "-k", " or ".join([*OPS, "Signum", *WALKS.split()])]
    files = [next(tmp_path.glob(f"tests/**/{name}.py")) for name in COVERED_BY.split()]
    out = run([sys.executable, "-m", "pytest", *options, *files], in_copy(tmp_path), cwd=tmp_path)
    assert int(re.findall(r"(\d+) passed", out)[0]) > 150, out
