"""Plants one bug at a time in a copy of the sources and runs the tests that must find it.

`python tools/planted_bugs.py [NAME ...]` works in build/planted, where a build without optimisation
is kept; `--check` says alone whether each bug still has its place in the sources.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build" / "planted"
COPIED = ("core", "binding", "blas", "src", "tests", "tools", "examples")
FILES = ("CMakeLists.txt", "pyproject.toml", "Makefile", "ARCHITECTURE.md", "CONTRIBUTING.md")


@dataclass(frozen=True)
class Bug:
    """`right` stands once in the sources; `wrong` takes its place."""

    name: str
    right: str
    wrong: str
    tests: str  # what must fail: arguments of pytest, or a target of make
    tier: str = "test"


LAWS = "tests/ops/laws"
RECORDS = f"{LAWS}/test_records.py"
BUGS = (
    Bug(
        "off by one in a tail",
        "if (rest) step(n - rest, rest);",
        "if (rest > 1) step(n - rest, rest);",
        f"{RECORDS} -k cumsum",
    ),
    Bug(
        "a missing mask",
        "fill_after(Vec<T>::load(x, count), count, (T)-kInfinity)",
        "Vec<T>::load(x, count)",
        f"{RECORDS} -k softmax",
    ),
    Bug(
        "a wrong bound",
        "best[1] = larger(Vec<T>::load(x + n - L), best[1]);",
        "best[1] = larger(Vec<T>::load(x + n - L - 1), best[1]);",
        f"{RECORDS} -k softmax",
    ),
    Bug(
        "a read behind the end",
        "exp_below(load_some(x + at, count) - top)",
        "exp_below(Vec<T>::load(x + at) - top)",
        "tests/ops/pointwise/test_page_boundaries.py",
    ),
    Bug(
        "a wrong gradient",
        "tanh(x),          g * fma(-y, y, 1),",
        "tanh(x),          g * (1 - y),",
        f"{RECORDS} -k tanh",
    ),
    Bug(
        "a lost barrier",
        "warps[threadIdx.x / 32] = s;\n  __syncthreads();\n  s = warps[threadIdx.x % 8];\n"
        "#pragma unroll\n  for (int bits = 4; bits > 0; bits /= 2) s = combine(s,",
        "warps[threadIdx.x / 32] = s;\n  s = warps[threadIdx.x % 8];\n"
        "#pragma unroll\n  for (int bits = 4; bits > 0; bits /= 2) s = combine(s,",
        "tests/cuda/test_gpu_records.py tests/cuda/test_gpu_sizes.py",
    ),
    Bug(
        "aliasing",
        "return overwrites(x) && !is_target(x) ? copy(x) : x;",
        "return x;",
        f"{LAWS}/test_in_place.py",
    ),
    Bug(
        "a mode that leaks",
        "    def __exit__(self, *exception: object) -> None:\n        _core._leave_modes(self)\n",
        "    def __exit__(self, *exception: object) -> None:\n        if exception[0] is None:\n"
        "            _core._leave_modes(self)\n",
        "tests/runtime/test_modes.py",
    ),
    Bug(
        "a stale cache",
        "words_[count++] = x->strides[axis];",
        "words_[count++] = 0;",
        f"{LAWS}/test_call_cache.py {RECORDS}",
    ),
    Bug(
        "a wrong promotion",
        "return signed_of_size(2 * size_of(u));",
        "return signed_of_size(size_of(u));",
        f"{LAWS}/test_dtypes.py",
    ),
    Bug(
        "a hook lost",
        '" for a gradient of ", name_of(g.dtype()));\n    g = replaced;\n',
        '" for a gradient of ", name_of(g.dtype()));\n',
        "tests/autograd/test_hooks.py",
    ),
    Bug(
        "an unnoticed change",
        "++other.storage->version;",
        "(void)other;",
        f"{LAWS}/test_in_place.py",
    ),
    Bug(
        "a gradient of the wrong shape",
        "(shape[i - lead] == 1 && x.size(i) != 1)",
        "(shape[i - lead] == 1 && x.size(i) > 2)",
        f"{RECORDS} tests/autograd/test_autograd.py",
    ),
    Bug(
        "an optimizer's wrong formula",
        "-(f[5] * s1 / fma(sqrt(s2), f[6], f[7]))); })\n\nTW_UPDATE(amsgrad",
        "-(f[5] * s1 / (sqrt(s2 + f[7]) * f[6]))); })\n\nTW_UPDATE(amsgrad",
        "tests/optim/test_steps.py tests/optim/test_optim.py",
    ),
    Bug(
        "a dropped fma",
        "return (Raw)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);",
        "return a * b + c;",
        f"{LAWS}/test_fused_products.py",
    ),
    Bug(
        "a swapped fma",
        "s1 = fma(f[3], g, weighted(f[2], s1)); p = fma(f[0], -s1, p); })",
        "s1 = fma(f[2], s1, f[3] * g); p = fma(f[0], -s1, p); })",
        f"{LAWS}/test_fused_products.py",
    ),
    Bug(
        "a schedule one epoch early",
        "due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0",
        "due = self.last_epoch > 0 and (self.last_epoch + 1) % self.step_size == 0",
        "tests/optim/test_lr_scheduler.py",
    ),
    Bug(
        "a data race",
        "  const Lock lock(impl.mutex);\n  const TaskId id = impl.book.submit(",
        "  const TaskId id = impl.book.submit(",
        "test-races",
        tier="all",
    ),
    Bug(
        "a window too many",
        "(size[i] - 1) * stride[i] >= image[i] + padding[i]",
        "(size[i] - 1) * stride[i] > image[i] + padding[i]",
        "tests/ops/convolution/test_pooling.py",
    ),
    Bug(
        "a NaN lost",
        "(largest ? x > best : x < best) | (is_nan(x) & !is_nan(best));",
        "(largest ? x > best : x < best);",
        f"{RECORDS} -k argm",
    ),
    Bug(
        "sizes that wrap around",
        "overflow |= __builtin_mul_overflow(count, extent == 0 ? 1 : extent, &count);",
        "(void)__builtin_mul_overflow(count, extent == 0 ? 1 : extent, &count);",
        f"{LAWS}/test_extreme_integers.py",
    ),
    Bug(
        "one instruction set alone",
        "_mm256_maskload_epi32((const int*)p, words_at(kOnes + 8 - words))",
        "_mm256_maskload_epi32((const int*)p, words_at(kOnes + 9 - words))",
        f"{RECORDS} -k avx2",
        tier="all",
    ),
)


def places(bug: Bug, root: Path) -> list[Path]:
    """Files whose text has it, once for each time."""
    found = []
    for top in ("core", "src"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in {".h", ".cpp", ".inc", ".cuh", ".py"} and "tests" not in path.parts:
                found += [path] * path.read_text().count(bug.right)
    return found


def run(*command: str | Path, quiet: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(COPY / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    output = subprocess.PIPE if quiet else None
    return subprocess.run(
        command, cwd=COPY, env=environment, stdout=output, stderr=output, text=True, check=False
    )


def build() -> None:
    made = run("cmake", "--build", "build/module", "--target", "_core")
    if made.returncode:
        raise SystemExit(f"the copy does not build:\n{made.stdout[-3000:]}")
    (module,) = (COPY / "build/module").glob("_core.*.so")
    shutil.copy2(module, COPY / "src/tilewright")


def prepare() -> None:
    """A copy of the sources, and its module; files that are as they were are not touched."""
    for top in COPIED:
        for path in (ROOT / top).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so":
                update(path, COPY / path.relative_to(ROOT))
    for name in FILES:
        update(ROOT / name, COPY / name)
    emulator = COPY / "build/emulator"
    if (ROOT / "build/emulator").exists() and not emulator.exists():
        emulator.parent.mkdir(exist_ok=True)
        emulator.symlink_to(ROOT / "build/emulator")
    nanobind = run(sys.executable, "-m", "nanobind", "--cmake_dir").stdout.strip()
    options = ("-DCMAKE_BUILD_TYPE=Quick", "-DTW_BUILD_BLAS=OFF", f"-Dnanobind_DIR={nanobind}")
    sets = "scalar;avx2" if "avx2" in Path("/proc/cpuinfo").read_text() else "scalar"
    done = run(
        "cmake", "-S", ".", "-B", "build/module", "-G", "Ninja", f"-DTW_ISAS={sets}",
        f"-DPython_EXECUTABLE={sys.executable}", *options,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr)
    build()


def update(source: Path, target: Path) -> None:
    data = source.read_bytes()
    if not target.exists() or target.read_bytes() != data:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


@contextmanager
def planted(bug: Bug) -> Iterator[None]:
    (path,) = places(bug, COPY)
    text = path.read_text()
    path.write_text(text.replace(bug.right, bug.wrong))
    try:
        yield
    finally:
        path.write_text(text)


def finds(bug: Bug) -> str:
    """The first failure, or nothing."""
    with planted(bug):
        if bug.tests == "test-races":
            venv = COPY / ".venv"
            if not venv.exists():
                venv.symlink_to(Path(sys.executable).parent.parent)
            done = run("make", "-o", ".venv/.tools", bug.tests)
        else:
            build()
            tier = ("--tier", "test") if bug.tier == "test" else ()
            options = ("-x", "-q", "-p", "no:cacheprovider", *tier)
            done = run(sys.executable, "-m", "pytest", *options, *bug.tests.split())
    if done.returncode == 0:
        return ""
    lines = (done.stdout + done.stderr).splitlines()
    told = [x for x in lines if x.startswith(("FAILED", "ERROR", "failed", "WARNING: Thread"))]
    return (told or [f"ended with {done.returncode}: {lines[-1] if lines else ''}"])[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="bugs; all where none is named")
    parser.add_argument("--check", action="store_true", help="only whether each has its place")
    options = parser.parse_args()
    bugs = [bug for bug in BUGS if bug.name in options.names or not options.names]
    lost = [bug.name for bug in bugs if len(places(bug, ROOT)) != 1]
    if lost or options.check:
        print(f"without one place: {lost}")
        return bool(lost)
    COPY.mkdir(parents=True, exist_ok=True)
    prepare()
    missed = 0
    for bug in bugs:
        found = finds(bug)
        missed += not found
        print(f"{bug.name} ({bug.tier}): {found or 'MISSED'}", flush=True)
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
