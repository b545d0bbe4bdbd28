"""Kernels from outside: the template, its validation, loading, and what is refused."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

import tilewright as tw
from tilewright._kernels import template
from tilewright.cli import main

COMPILER = shutil.which("cc")
pytestmark = pytest.mark.skipif(not COMPILER, reason="takes a C compiler")

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def built(folder: Path, source: str, name: str = "library") -> Path:
    """The library of a source."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "source.c").write_text(source, encoding="utf-8")
    library = folder / f"{name}.so"
    include = f"-I{tw.kernels.include_folder()}"
    command = [COMPILER, "-O1", "-shared", "-fPIC", include, "-o", library, folder / "source.c"]
    subprocess.run(command, check=True)
    return library


def in_process(code: str, *paths: object) -> str:
    """What a program prints: kernels stay for as long as a process lives."""
    ran = subprocess.run(
        [sys.executable, "-c", code, *map(str, paths)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def template_source(tmp_path: Path, op: str, name: str = "mine") -> str:
    files = template.write(tmp_path / f"of_{op}_{name}", op, name)
    return next(path.read_text() for path in files if path.suffix == ".c")


CHECK = """
import sys
from tilewright.cli import main
raise SystemExit(main(["kernel", "check", sys.argv[1]]))
"""


@pytest.mark.parametrize("op", template.OPS)
def test_the_template_is_right(op: str, tmp_path: Path) -> None:
    library = built(tmp_path, template_source(tmp_path, op))
    out = in_process(CHECK, library)
    assert "no problems are wrong" in out
    assert re.search(r"float32 .* right +\d\.\de-\d\d of \d\.\de-\d\d +\d+\.\d\dx", out)
    assert re.search(r"float64 .* refused +for float32 alone", out)


def test_a_wrong_kernel_is_found(tmp_path: Path) -> None:
    source = template_source(tmp_path, "matmul").replace("sum += a[", "sum -= a[")
    library = built(tmp_path, source)
    ran = subprocess.run(
        [sys.executable, "-c", CHECK, library], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert "WRONG" in ran.stdout


def test_one_that_leaves_its_last_column_is_found(tmp_path: Path) -> None:
    source = template_source(tmp_path, "matmul").replace(
        "column < p->n;", "column < p->n - (p->n > 50);"
    )
    code = """
import sys
import tilewright as tw
tw.kernels.load(sys.argv[1])
verdicts = tw.kernels.validate("matmul", "mine")
print(sum(not each.is_right for each in verdicts) > 0)
"""
    assert in_process(code, built(tmp_path, source)).split() == ["True"]


def test_it_is_a_rung_like_others(tmp_path: Path) -> None:
    library = built(tmp_path, template_source(tmp_path, "matmul"))
    code = """
import sys
import tilewright as tw
a, b = tw.randn(20, 30), tw.randn(30, 40)
want = a @ b
print(tw.kernels.load(sys.argv[1]), tw.kernels.load(sys.argv[1]))
print(tw.kernels.names("matmul")[-1], tw.kernels.describe("matmul")[-1]["help"])
with tw.kernels.use(matmul="mine"), tw.explain() as report:
    got = a @ b
print(report[0].kernel, bool((abs(got - want) < 1e-4).all()))
with tw.explain() as report:
    a @ b
print([c.name for c in report[0].candidates if c.chosen] != ["mine"])
try:
    with tw.kernels.use(matmul="mine"):
        a.astype(tw.float64) @ b.astype(tw.float64)
except ValueError as error:
    print(error)
"""
    lines = in_process(code, library).splitlines()
    assert lines == [
        "[('matmul', 'mine')] [('matmul', 'mine')]",
        "mine a kernel from outside",
        "mine True",
        "True",
        "matmul: the forced kernel 'mine' does not accept this problem: for float32 alone",
    ]


def test_it_is_chosen_where_its_estimate_is_the_least(tmp_path: Path) -> None:
    source = template_source(tmp_path, "matmul").replace("return 500 + 1.0 *", "return 1e-9 *")
    code = """
import sys
import tilewright as tw
a = tw.randn(64, 64)
a @ a
tw.kernels.load(sys.argv[1])
with tw.explain() as report:
    a @ a
print(report[0].kernel)
"""
    assert in_process(code, built(tmp_path, source)).split() == ["mine"]


def test_one_without_an_estimate_runs_where_it_is_forced(tmp_path: Path) -> None:
    source = template_source(tmp_path, "matmul").replace("accepts, cost_ns, run", "accepts, 0, run")
    code = """
import sys
import tilewright as tw
tw.kernels.load(sys.argv[1])
a = tw.randn(64, 64)
with tw.explain() as report:
    a @ a
(mine,) = [c for c in report[0].candidates if c.name == "mine"]
print(mine.chosen, mine.reason)
"""
    assert in_process(code, built(tmp_path, source)).strip() == "False runs where it is forced"


def test_its_error_is_an_exception(tmp_path: Path) -> None:
    source = template_source(tmp_path, "matmul").replace(
        "  return 0;\n}\n\n/* An estimate", "  return 7;\n}\n\n/* An estimate"
    )
    code = """
import sys
import tilewright as tw
tw.kernels.load(sys.argv[1])
try:
    with tw.kernels.use(matmul="mine"):
        tw.ones(3, 3) @ tw.ones(3, 3)
except RuntimeError as error:
    print(error)
"""
    out = in_process(code, built(tmp_path, source))
    assert out.strip() == "matmul: kernel 'mine' failed with code 7"


def table(kernels: str, abi: str = "TW_KERNEL_ABI") -> str:
    return f"""
#include <stddef.h>
#include "tilewright_kernel.h"
static int run(const void *problem) {{ (void)problem; return 0; }}
static const tw_kernel kernels[] = {{{kernels}}};
const tw_kernels *tilewright_kernels(void) {{
  static const tw_kernels all = {{{abi}, sizeof kernels / sizeof *kernels, kernels}};
  return &all;
}}
"""


@pytest.mark.parametrize(
    ("kernels", "abi", "text"),
    [
        ('{"matmul", "mine", 0, 0, 0, run}', "99", "version 99 of the interface, this is 1"),
        ('{"softmax", "mine", 0, 0, 0, run}', "1", "'softmax' takes no kernels from outside"),
        ('{"matmul", "packed", 0, 0, 0, run}', "1", "matmul has a kernel 'packed' already"),
        ('{"matmul", "mine", 0, 0, 0, 0}', "1", "without op, name or run"),
        (
            '{"matmul", "mine", 0, 0, 0, run}, {"matmul", "mine", 0, 0, 0, run}',
            "1",
            "two kernels 'mine' of matmul",
        ),
    ],
)
def test_a_library_is_refused_whole(kernels: str, abi: str, text: str, tmp_path: Path) -> None:
    before = tw.kernels.names("matmul")
    with pytest.raises(ValueError, match=re.escape(text)):
        tw.kernels.load(built(tmp_path, table(kernels, abi)))
    assert tw.kernels.names("matmul") == before


def test_what_is_no_library_of_kernels(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file"):
        tw.kernels.load(tmp_path / "none.so")
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(OSError, match="text"):
        tw.kernels.load(tmp_path / "text.so")
    with pytest.raises(ValueError, match="exports no function tilewright_kernels"):
        tw.kernels.load(built(tmp_path, "int other(void) { return 0; }"))


def test_an_installed_package_is_found(tmp_path: Path) -> None:
    """As pip leaves it: a module, and metadata with the entry point."""
    folder = tmp_path / "mine"
    template.write(folder, "matmul", "mine")
    library = built(tmp_path / "build", (folder / "mine.c").read_text())
    shutil.copy(library, folder / "tilewright_mine" / "mine.so")
    metadata = folder / "tilewright_mine-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tilewright-mine\nVersion: 0.1.0\n"
    )
    project = (folder / "pyproject.toml").read_text()
    entry = re.search(r'\[project.entry-points."(.*)"\]\n(\w+) = "(.*)"', project)
    assert entry
    (metadata / "entry_points.txt").write_text("[{}]\n{} = {}\n".format(*entry.groups()))
    code = "import tilewright as tw; print(tw.kernels.names('matmul')[-1])"
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert ran.stdout.split() == ["mine"]
    # One that does not load is told, and in nobody's way.
    (folder / "tilewright_mine" / "mine.so").unlink()
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert ran.stdout.split() == ["bf16"]
    assert (
        "RuntimeWarning: kernels of the entry point 'mine' (tilewright_mine:library)" in ran.stderr
    )


@pytest.mark.parametrize("op", template.OPS)
def test_the_guide_gives_a_kernel(op: str, tmp_path: Path) -> None:
    """The commands of CONTRIBUTING.md, one after the other, and then its change to the source."""
    heading = {"matmul": "A product's kernel", "convolution": "A convolution's kernel"}[op]
    part = CONTRIBUTING.split(f"### {heading}", 1)[1].split("\n## ", 1)[0].split("\n### ", 1)[0]
    (console,) = re.findall(r"```console\n(.*?)```", part, flags=re.DOTALL)
    commands = [line.removeprefix("$ ") for line in console.splitlines() if line.startswith("$ ")]
    (change,) = re.findall(r"```c\n(.*?)```", part, flags=re.DOTALL)
    script = "set -e\n" + "\n".join(command.split("  #")[0] for command in commands[:-1])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, check=True)
    (source,) = tmp_path.glob("*/*.c")
    text = source.read_text(encoding="utf-8")
    start = re.search(r"static int run\(const void \*problem\) \{", text)
    assert start
    end = text.index("\n}\n", start.start()) + 3
    source.write_text(text[: start.start()] + change + text[end:], encoding="utf-8")
    ran = subprocess.run(
        ["make", "check"], cwd=source.parent, env=environment, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert "no problems are wrong" in ran.stdout


def test_errors_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "something").write_text("")
    assert main(["kernel", "new", "mine", "--folder", str(tmp_path)]) == 1
    assert "is not empty" in capsys.readouterr().err
    assert main(["kernel", "new", "Not-a-name", "--folder", str(tmp_path / "new")]) == 1
    assert "a name is of a-z, 0-9 and _" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    with pytest.raises(ValueError, match="op must be one of"):
        tw.kernels.validate("softmax", "vector")
    with pytest.raises(ValueError, match="matmul has no kernel 'nope'"):
        tw.kernels.validate("matmul", "nope")


def test_all_products_kernels_pass_the_validation() -> None:
    for kernel in ("tiled", "simd", "packed", "direct"):
        for verdict in tw.kernels.validate("matmul", kernel):
            assert verdict.is_right, (kernel, verdict)
    for kernel in ("im2col", "direct"):
        for verdict in tw.kernels.validate("convolution", kernel):
            assert verdict.is_right, (kernel, verdict)
