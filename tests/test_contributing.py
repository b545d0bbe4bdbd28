"""The recipes of CONTRIBUTING.md, followed to the letter on a copy of the sources."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# What the recipe promises, as a C++ test of the copy: the new op computes and has two gradients,
# and a registered kernel is listed, explained and forced by its name.
RECIPE_TEST = r"""
#include "core/autograd/backward.h"
#include "core/ops/apply.h"
#include "core/ops/create.h"
#include "core/ops/pointwise.h"
#include "core/ops/records.h"
#include "core/ops/reduce.h"
#include "core/runtime/registry.h"
#include "core/tensor/access.h"
#include "core/tests/check.h"

using namespace tw;

TW_TEST(recipe_of_an_op) {
  const Tensor x = full({3}, 2, DType::float64);
  x->requires_grad = true;
  const Tensor y = sum(cube(x), {}, false);
  CHECK_EQ(*Access().as<double>(y), 24.0);
  const Tensor first = gradients({y}, {}, {x}, {.create_graph = true})[0];
  const Tensor second = gradients({sum(first, {}, false)}, {}, {x}, {})[0];
  CHECK_EQ(*Access().as<double>(first), 12.0);
  CHECK_EQ(*Access().as<double>(second), 12.0);
}

TW_TEST(recipe_of_an_op_made_of_others) {
  const Tensor a = full({3}, 5, DType::float64), b = full({3}, 2, DType::float64);
  a->requires_grad = true;
  const Tensor y = apply(kSquareDistance, {a, b});
  CHECK_EQ(*Access().as<double>(y), 27.0);
  CHECK_EQ(*Access().as<double>(gradients({y}, {}, {a}, {})[0]), 6.0);
  CHECK_EQ(std::string(op_records().back()->name), "square_distance");
}

TW_TEST(recipe_of_an_optimizer) {
  const Tensor p = full({3}, 1, DType::float64), g = full({3}, 2, DType::float64);
  const Tensor s = full({3}, 0, DType::float64);
  const Operand in[] = {p, g, s, 1, 0.5};
  const Word words[] = {word_of(0.75)};
  apply(k_signum_step, in, 5, {words, 1}, nullptr);
  CHECK_EQ(*Access().as<double>(s), 0.5);
  CHECK_EQ(*Access().as<double>(p), 0.5);
}

TW_TEST(recipe_of_a_kernel) {
  static const Kernel mine = {
      "cube", "mine", "cpu", Precision::ieee, "a test's kernel",
      [](const void*, std::string* reason) {
        if (reason) *reason = "only on Sundays";
        return false;
      },
      nullptr, [](const void*) {}};
  register_kernel(&mine);
  CHECK_EQ(std::string(kernels_of_op("cube").back()->name), "mine");
  force_kernel("cube", "mine");
  CHECK_EQ(forced_kernel("cube"), "mine");
  CHECK_THROWS(ErrorKind::value, cube(full({2, 3}, 2, DType::int32)), "only on Sundays");
}
"""


def tool(name: str) -> str:
    """A build tool, beside the interpreter or on the path."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        pytest.skip(f"no {name} here")
    return found


def recipe_row() -> str:
    """The row that the recipe adds."""
    match = re.search(r"```cpp\n(TW_UNARY\(cube.*\))\n```", (ROOT / "CONTRIBUTING.md").read_text())
    assert match, "CONTRIBUTING.md has no row to add"
    return match[1]


def recipe_update() -> str:
    """The row of an optimizer that the recipe adds."""
    match = re.search(r"```cpp\n(TW_UPDATE.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.S)
    assert match, "CONTRIBUTING.md has no optimizer to add"
    return match[1]


def recipe_file() -> str:
    """The file that holds the recipe's record."""
    match = re.search(r"```cpp\n(// Distances.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.S)
    assert match, "CONTRIBUTING.md has no file with a record"
    return match[1]


def test_add_an_op_and_a_kernel(tmp_path: Path) -> None:
    cmake, ninja = tool("cmake"), tool("ninja")
    for part in ("core", "tools", "CMakeLists.txt"):
        source = ROOT / part
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / part)
    for test in (tmp_path / "core/tests").glob("test_*.cpp"):
        test.unlink()
    table = tmp_path / "core/ops/pointwise.inc"
    rows = table.read_text()
    table.write_text(rows.replace("TW_BINARY(add,", f"{recipe_row()}\nTW_BINARY(add,"))
    (tmp_path / "core/ops/distance.cpp").write_text(recipe_file())
    with (tmp_path / "core/ops/updates.inc").open("a") as updates:
        updates.write(recipe_update())
    with (tmp_path / "core/ops/ops.inc").open("a") as ops:
        ops.write("TW_OP(kSquareDistance)\n")
    (tmp_path / "core/tests/test_recipe.cpp").write_text(RECIPE_TEST)
    options = [
        f"-DCMAKE_MAKE_PROGRAM={ninja}",
        "-DTW_ISAS=scalar",
        "-DTW_BUILD_MODULE=OFF",
        "-DTW_BUILD_TESTS=ON",
        "-DCMAKE_BUILD_TYPE=Quick",  # no optimisation: the build is what takes the time
    ]
    run([cmake, "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", *options])
    run([cmake, "--build", tmp_path / "build"])
    assert "4 passed, 0 failed" in run([tmp_path / "build/tilewright_tests"])


def run(command: list[str | Path]) -> str:
    """Standard output; the test fails with all output where the command does."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout
