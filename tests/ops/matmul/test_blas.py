"""The BLAS library and `tilewright blas`: netlib's own tests on every rung, real programs."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases.threads import run_all
from subcases import each

import tilewright as tw
from tilewright.cli import blas, main

if not sys.platform.startswith("linux"):
    pytest.skip("needs LD_PRELOAD", allow_module_level=True)

LIBRARY = blas.library()
NETLIB = next((path.parent for path in Path("/usr/lib").glob("*/blas/xblat3d")), None)
needs_netlib = pytest.mark.skipif(
    NETLIB is None, reason="no tests of netlib here: apt-get install libblas-test"
)
RUNGS = tw.kernels.names("matmul")
# What netlib's bounds are for; at these sizes strassen is the packed rung.
EXACT = (
    "strassen",
    *(k["name"] for k in tw.kernels.describe("matmul") if k["precision"] in ("ieee", "fp32")),
)
ROWS, COLUMNS = 101, 102
PLAIN, TRANSPOSED, CONJUGATED = 111, 112, 113


def command(*arguments, **options):
    """Runs `tilewright blas`."""
    return subprocess.run(
        [sys.executable, "-m", "tilewright", "blas", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def counted(folder, *arguments, **options):
    """Runs a program; what it did, and what --json tells of it."""
    target = folder / "count.json"
    done = command("--count", "--json", target, *arguments, cwd=folder, **options)
    assert target.exists(), done.stderr
    return done, json.loads(target.read_text())


def python_with_blas():
    """A Python whose NumPy calls a shared BLAS under the usual names."""
    probe = "import numpy; print('libblas.so.3' in open('/proc/self/maps').read())"
    path = "/usr/bin/python3"
    if not os.path.exists(path):
        return None
    done = subprocess.run(
        [path, "-c", probe], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin"}
    )
    return path if "True" in done.stdout else None


@needs_netlib
class TestNetlib:
    """The reference's tests of level 3; the other routines in them stay the reference's own."""

    def passed(self, output, routine, kinds):
        lines = [line.split() for line in output.splitlines()]
        found = [line for line in lines if line[:2] == [routine, "PASSED"]]
        assert [routine, "PASSED", "THE", "TESTS", "OF", "ERROR-EXITS"] in found, output
        computational = [line for line in found if line[-2:] == ["17496", "CALLS)"]]
        assert len(computational) == kinds, output

    def rung_ran(self, done, facts, rung):
        ran = {name for name, calls in facts["kernels"].items() if calls}
        assert ran
        if rung:
            assert ran == {rung} or "does not accept" in done.stderr

    @pytest.mark.parametrize("rung", ["", *EXACT])
    @pytest.mark.parametrize("letter", "sd")
    def test_fortran(self, tmp_path, letter, rung):
        choice = ["--rung", rung] if rung else []
        with open(NETLIB / f"{letter}blat3.in") as settings:
            done, facts = counted(
                tmp_path, *choice, "--", NETLIB / f"xblat3{letter}", stdin=settings
            )
        assert done.returncode == 0, done.stderr
        self.passed((tmp_path / f"{letter}blat3.out").read_text(), f"{letter}gemm".upper(), 1)
        assert facts["symbols"][f"{letter}gemm_"]["calls"] >= 17_496
        self.rung_ran(done, facts, rung)

    @pytest.mark.parametrize("rung", ["", *EXACT])
    @pytest.mark.parametrize("letter", "sd")
    def test_c(self, tmp_path, letter, rung):
        choice = ["--rung", rung] if rung else []
        with open(NETLIB / f"{letter}in3") as settings:
            done, facts = counted(
                tmp_path, *choice, "--", NETLIB / f"x{letter}cblat3", stdin=settings
            )
        assert done.returncode == 0, done.stderr
        self.passed(done.stdout, f"cblas_{letter}gemm", 2)
        assert facts["symbols"][f"cblas_{letter}gemm"]["calls"] >= 2 * 17_496
        self.rung_ran(done, facts, rung)

    @pytest.mark.parametrize("name", tw.kernels.isas())
    def test_instruction_sets(self, tmp_path, name):
        with open(NETLIB / "sin3") as settings:
            done, _ = counted(tmp_path, "--isa", name, "--", NETLIB / "xscblat3", stdin=settings)
        self.passed(done.stdout, "cblas_sgemm", 2)


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


@pytest.fixture(scope="module")
def library():
    return ctypes.CDLL(str(LIBRARY))


def fortran(library, dtype, flags, sizes, alpha, a, b, beta, c, leads):
    """gemm as Fortran calls it: everything by address."""
    call = library.sgemm_ if dtype == np.float32 else library.dgemm_
    real = ctypes.c_float if dtype == np.float32 else ctypes.c_double
    m, n, k = (ctypes.byref(ctypes.c_int32(x)) for x in sizes)
    lda, ldb, ldc = (ctypes.byref(ctypes.c_int32(x)) for x in leads)
    ta, tb = (ctypes.c_char_p(flag.encode()) for flag in flags)
    factors = [ctypes.byref(real(x)) for x in (alpha, beta)]
    call(ta, tb, m, n, k, factors[0], pointer(a), lda, pointer(b), ldb, factors[1], pointer(c), ldc)


def cblas(library, dtype, order, flags, sizes, alpha, a, b, beta, c, leads):
    call = library.cblas_sgemm if dtype == np.float32 else library.cblas_dgemm
    real = ctypes.c_float if dtype == np.float32 else ctypes.c_double
    lda, ldb, ldc = leads
    call(
        order, *flags, *sizes, real(alpha), pointer(a), lda, pointer(b), ldb, real(beta),
        pointer(c), ldc,
    )  # fmt: skip


def stored(matrix, order, slack):
    """The matrix in memory `slack` wider than it needs, its leading dimension, a view of it."""
    major = matrix if order == ROWS else matrix.T
    memory = np.full((max(1, major.shape[0]), max(1, major.shape[1]) + slack), 77, matrix.dtype)
    view = memory[: major.shape[0], : major.shape[1]]
    view[...] = major
    return memory, memory.shape[1], view if order == ROWS else view.T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [ROWS, COLUMNS, "fortran"])
class TestAgainstNumpy:
    @each("ta", "NnTtCc")
    @each("tb", "NTc")
    @each(("alpha", "beta"), [(1, 0), (0.5, 1), (-2, 0.25), (0, 2), (0, 0)])
    def test_values(self, library, rng, dtype, order, ta, tb, alpha, beta):
        for sizes in [(1, 1, 1), (5, 7, 3), (33, 20, 65), (64, 1, 40), (3, 4, 0)]:
            for slack in (0, 3):
                self.check(library, rng, dtype, order, (ta, tb), sizes, alpha, beta, slack)

    def check(self, library, rng, dtype, order, flags, sizes, alpha, beta, slack):
        m, n, k = sizes
        layout = ROWS if order == ROWS else COLUMNS
        a, b, c = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
        expected = alpha * (a.astype(np.float64) @ b) + (beta * c.astype(np.float64))
        if alpha == 0:
            a[...] = np.nan  # must not be read
        if beta == 0:
            c[...] = np.nan  # nor this
        plain = [flag in "Nn" for flag in flags]
        a_memory, lda, _ = stored(a if plain[0] else a.T, layout, slack)
        b_memory, ldb, _ = stored(b if plain[1] else b.T, layout, slack)
        c_memory, ldc, result = stored(c, layout, slack)
        rest = (sizes, alpha, a_memory, b_memory, beta, c_memory, (lda, ldb, ldc))
        if order == "fortran":
            fortran(library, dtype, flags, *rest)
        else:
            codes = {"N": PLAIN, "T": TRANSPOSED, "C": CONJUGATED}
            cblas(library, dtype, order, [codes[flag.upper()] for flag in flags], *rest)
        bound = (k + 3) * np.finfo(dtype).eps * max(1, abs(alpha), abs(beta)) * 20
        assert np.abs(result - expected).max() <= bound
        result[...] = 77
        assert (c_memory == 77).all()  # nothing beside C was written

    @pytest.mark.parametrize("sizes", [(0, 3, 4), (3, 0, 4)])
    def test_nothing_to_do(self, library, dtype, order, sizes):
        a, c = np.full((4, 4), np.nan, dtype), np.full((4, 4), 5, dtype)
        rest = (sizes, 1, a, a, 0, c, (4, 4, 4))
        if order == "fortran":
            fortran(library, dtype, "NN", *rest)
        else:
            cblas(library, dtype, order, (PLAIN, PLAIN), *rest)
        assert (c == 5).all()


class TestTogether:
    def test_threads_call_at_once(self, library, rng):
        a, b = rng.standard_normal((2, 150, 150))

        def work(i):
            for _ in range(20):
                c = np.empty((150, 150))
                cblas(
                    library, np.float64, ROWS, (PLAIN, PLAIN), (150, 150, 150), 1 + i, a, b, 0, c,
                    (150, 150, 150),
                )  # fmt: skip
                np.testing.assert_allclose(c, (1 + i) * (a @ b), atol=1e-10)

        run_all(work)

    def test_a_child_computes_and_is_counted(self, tmp_path):
        program = """
import ctypes, os
gemm, n = ctypes.CDLL(None).cblas_dgemm, 300
matrix = ctypes.c_double * (n * n)
def multiply():
    a, c = matrix(*[2.0] * (n * n)), matrix()
    one, zero = ctypes.c_double(1), ctypes.c_double(0)
    gemm(102, 111, 111, n, n, n, one, a, n, a, n, zero, c, n)
    return set(c) == {4.0 * n}
assert multiply()
child = os.fork()
if child == 0:
    os._exit(0 if multiply() else 1)
assert os.waitpid(child, 0)[1] == 0 and multiply()
"""
        done, facts = counted(
            tmp_path, "--threads", 2, "--", sys.executable, "-W", "ignore", "-c", program
        )
        assert done.returncode == 0, done.stderr
        assert facts["symbols"]["cblas_dgemm"] == {"calls": 3, "flops": 3 * 2 * 300**3}


# Reports every error by its own routines, as netlib's testers do. The lines: symbol, then the
# arguments but for the factors and matrices.
PROGRAM = r"""
#include <cstdio>
#include <cstring>
extern "C" {
using I = const int*;
using D = const double*;
void dgemm_(const char*, const char*, I, I, I, D, D, I, D, I, D, double*, I);
void cblas_dgemm(int, int, int, int, int, int, double, D, int, D, int, double, double*, int);
#if OWN_ROUTINES
void xerbla_(const char* name, const int* info, std::size_t length) {
  std::printf("%.*s %d\n", int(length), name, *info);
}
void cblas_xerbla(int info, const char* name, const char*, ...) {
  std::printf("%s %d\n", name, info);
}
#endif
}
int main() {
  double a[64] = {}, c[64];
  const double one = 1;
  for (double& x : c) x = 5;
  char symbol[20], ta, tb;
  int order, m, n, k, la, lb, lc;
  while (std::scanf("%19s", symbol) == 1) {
    if (!std::strcmp(symbol, "dgemm_")) {
      std::scanf(" %c %c %d %d %d %d %d %d", &ta, &tb, &m, &n, &k, &la, &lb, &lc);
      dgemm_(&ta, &tb, &m, &n, &k, &one, a, &la, a, &lb, &one, c, &lc);
    } else {
      int fa, fb;
      std::scanf("%d %d %d %d %d %d %d %d %d", &order, &fa, &fb, &m, &n, &k, &la, &lb, &lc);
      cblas_dgemm(order, fa, fb, m, n, k, one, a, la, a, lb, one, c, lc);
    }
  }
  for (double x : c)
    if (x != 5) return 1;
}
"""

# Call and the place that must be told; a call with several faults tells the first.
WRONG = [
    ("dgemm_ X N 1 1 1 1 1 1", "DGEMM  1"),
    ("dgemm_ N / 1 1 1 1 1 1", "DGEMM  2"),
    ("dgemm_ X / -1 1 1 1 1 1", "DGEMM  1"),
    ("dgemm_ N N -1 0 0 1 1 1", "DGEMM  3"),
    ("dgemm_ t c 0 -1 0 1 1 1", "DGEMM  4"),
    ("dgemm_ N N 0 0 -1 1 1 1", "DGEMM  5"),
    ("dgemm_ N N -1 -1 -1 0 0 0", "DGEMM  3"),
    ("dgemm_ N N 2 0 0 1 1 2", "DGEMM  8"),
    ("dgemm_ T N 0 0 2 1 2 1", "DGEMM  8"),
    ("dgemm_ N N 0 0 2 1 1 1", "DGEMM  10"),
    ("dgemm_ N T 0 2 0 1 1 1", "DGEMM  10"),
    ("dgemm_ N N 0 0 0 0 1 1", "DGEMM  8"),
    ("dgemm_ N N 2 0 0 2 1 1", "DGEMM  13"),
    ("cblas_dgemm 0 111 111 1 1 1 1 1 1", "cblas_dgemm 1"),
    ("cblas_dgemm 102 0 111 1 1 1 1 1 1", "cblas_dgemm 2"),
    ("cblas_dgemm 101 111 114 1 1 1 1 1 1", "cblas_dgemm 3"),
    ("cblas_dgemm 102 111 111 -1 0 0 1 1 1", "cblas_dgemm 4"),
    ("cblas_dgemm 101 111 111 -1 0 0 1 1 1", "cblas_dgemm 4"),
    ("cblas_dgemm 102 111 111 0 -1 0 1 1 1", "cblas_dgemm 5"),
    ("cblas_dgemm 101 111 111 0 -1 0 1 1 1", "cblas_dgemm 5"),
    ("cblas_dgemm 101 111 111 0 0 -1 1 1 1", "cblas_dgemm 6"),
    ("cblas_dgemm 102 111 111 2 0 0 1 1 2", "cblas_dgemm 9"),
    ("cblas_dgemm 101 111 111 0 0 2 1 1 1", "cblas_dgemm 9"),
    ("cblas_dgemm 101 112 111 2 0 0 1 1 1", "cblas_dgemm 9"),
    ("cblas_dgemm 102 111 111 0 0 2 1 1 1", "cblas_dgemm 11"),
    ("cblas_dgemm 101 111 111 0 2 0 1 1 2", "cblas_dgemm 11"),
    ("cblas_dgemm 102 111 111 2 0 0 2 1 1", "cblas_dgemm 14"),
    ("cblas_dgemm 101 111 111 0 2 0 1 2 1", "cblas_dgemm 14"),
]


@pytest.fixture(scope="module", params=[True, False], ids=["own routines", "none"])
def program(request, tmp_path_factory):
    """A program that is linked with the library, and whether it has error routines of its own."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if not compiler:
        pytest.skip("no C++ compiler here")
    folder = tmp_path_factory.mktemp("program")
    source = folder / "program.cpp"
    source.write_text(PROGRAM)
    libraries = [str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}"]
    define = f"-DOWN_ROUTINES={int(request.param)}"
    subprocess.run([compiler, define, source, "-o", folder / "program", *libraries], check=True)
    return folder / "program", request.param


def test_wrong_arguments_are_told_and_change_nothing(program):
    path, own_routines = program
    calls = "\n".join(call for call, _ in WRONG)
    done = subprocess.run([path], input=calls, capture_output=True, text=True, check=False)
    assert done.returncode == 0, "C was changed"
    if own_routines:
        assert done.stdout.splitlines() == [told for _, told in WRONG]
        return
    for line, (call, told) in zip(done.stderr.splitlines(), WRONG, strict=True):
        name, place = told.split()
        if call.startswith("cblas"):
            assert line == f"Parameter {place} to routine {name} was incorrect"
        else:
            assert (
                line == f" ** On entry to {name}  parameter number {place:>2} had an illegal value"
            )


class TestSettings:
    @pytest.mark.parametrize(
        ("variable", "value", "told"),
        [
            ("MATMUL", "quick", "TILEWRIGHT_MATMUL: matmul has no kernel 'quick'"),
            ("ISA", "sse9", "TILEWRIGHT_ISA: unknown instruction set 'sse9'"),
            ("THREADS", "many", "TILEWRIGHT_THREADS: not a whole number: 'many'"),
            ("BLAS_COUNT", "/nowhere/x", "TILEWRIGHT_BLAS_COUNT: /nowhere/x is no file"),
        ],
    )
    def test_a_wrong_one_is_told_once_and_left_aside(self, variable, value, told):
        program = f"""
import ctypes
gemm = ctypes.CDLL({str(LIBRARY)!r}).cblas_sgemm
one = ctypes.c_float(1)
a, c = (ctypes.c_float * 4)(1, 2, 3, 4), (ctypes.c_float * 4)()
for _ in range(3):
    gemm(101, 111, 111, 2, 2, 2, one, a, 2, a, 2, ctypes.c_float(0), c, 2)
assert list(c) == [7, 10, 15, 22]
"""
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, f"TILEWRIGHT_{variable}": value},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr.count(told) == 1
        assert done.stderr.count("\n") == 1


class TestLibrary:
    def test_shows_nothing_but_its_symbols(self):
        if not shutil.which("nm"):
            pytest.skip("no nm here")
        names = ["nm", "-D", "--defined-only", str(LIBRARY)]
        done = subprocess.run(names, capture_output=True, text=True, check=True)
        shown = {line.split()[-1] for line in done.stdout.splitlines()}
        assert shown == set(blas.SYMBOLS)

    def test_needs_no_python(self):
        assert b"Py_Initialize" not in LIBRARY.read_bytes()
        assert b"libpython" not in LIBRARY.read_bytes()

    def test_counts_have_a_place_for_every_rung(self):
        assert len(RUNGS) <= 24  # kTallyKernels


class TestCommand:
    def test_without_a_program_it_tells_how(self, capsys):
        assert main(["blas"]) == 0
        out = capsys.readouterr().out
        assert f"LD_PRELOAD={LIBRARY}" in out
        assert "scipy_openblas64_" in out

    def test_as_json(self, capsys):
        assert main(["blas", "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts == {"library": str(LIBRARY), "symbols": list(blas.SYMBOLS)}

    def test_help_says_what_is_not_reached(self, capsys):
        with pytest.raises(SystemExit):
            main(["blas", "--help"])
        out = " ".join(capsys.readouterr().out.split())
        assert "scipy_openblas64_" in out
        assert "32 bits" in out

    @pytest.mark.parametrize("arguments", [["--"], ["--count"], ["--rung", "naive", "--"]])
    def test_a_missing_program(self, capsys, arguments):
        assert main(["blas", *arguments]) == 1
        assert "no program to run" in capsys.readouterr().err

    def test_an_unknown_program(self, capsys):
        assert main(["blas", "no-such-program"]) == 1
        assert "no-such-program: no such program" in capsys.readouterr().err

    @pytest.mark.parametrize(("option", "known"), [("--rung", "'naive'"), ("--isa", "choose from")])
    def test_an_unknown_choice(self, capsys, option, known):
        with pytest.raises(SystemExit) as caught:
            main(["blas", option, "no-such", "--", "true"])
        assert caught.value.code == 2
        error = capsys.readouterr().err
        assert "'no-such'" in error
        assert known in error

    @pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 128 + 9)])
    def test_returns_the_exit_code(self, script, code):
        assert command("--", "sh", "-c", script).returncode == code

    def test_keeps_the_program_s_streams_and_arguments(self):
        done = command("--count", "--", "printf", "%s|", "--count", "--", "a b")
        assert done.stdout == "--count|--|a b|"
        assert "None: does it call another BLAS" in done.stderr

    def test_sets_what_was_asked_for_and_keeps_what_is_preloaded(self):
        isa = tw.kernels.isas()[0]
        done = command(
            "--rung", "tiled", "--threads", 1, "--isa", isa, "--",
            "sh", "-c", "echo $LD_PRELOAD $TILEWRIGHT_MATMUL $TILEWRIGHT_THREADS $TILEWRIGHT_ISA",
            env={**os.environ, "LD_PRELOAD": "libm.so.6"},
        )  # fmt: skip
        assert done.stdout.split() == [f"{LIBRARY}:libm.so.6", "tiled", "1", isa]

    def test_a_path_with_spaces_goes_through_a_link(self, monkeypatch, tmp_path, capfd):
        path = tmp_path / "a folder" / LIBRARY.name
        path.parent.mkdir()
        shutil.copy(LIBRARY, path)
        monkeypatch.setattr(blas, "library", lambda: path)
        assert main(["blas", "--", "sh", "-c", "grep -c 'a folder' /proc/self/maps"]) == 0
        captured = capfd.readouterr()
        assert int(captured.out) > 0
        assert captured.err == ""

    def test_a_library_that_was_not_built(self, monkeypatch, tmp_path, capsys):
        monkeypatch.setattr(tw._core, "__file__", str(tmp_path / "_core.so"))
        assert main(["blas"]) == 1
        assert "TW_BUILD_BLAS=ON" in capsys.readouterr().err

    @pytest.mark.parametrize("rung", RUNGS)
    def test_numpy_of_the_distribution(self, tmp_path, rung):
        python = python_with_blas()
        if not python:
            pytest.skip("no NumPy with a shared BLAS here: apt-get install python3-numpy")
        program = """
import numpy as np
a = np.arange(600.0).reshape(20, 30)
assert (a @ a[:, :30].T.copy() == np.einsum("ij,kj", a, a)).all()
m = np.eye(200) * 3 + np.arange(40000).reshape(200, 200) % 7
assert abs(np.linalg.inv(m) @ m - np.eye(200)).max() < 1e-8
"""
        done, facts = counted(
            tmp_path, "--rung", rung, "--", python, "-c", program, env={"PATH": "/usr/bin:/bin"}
        )
        assert done.returncode == 0, done.stderr
        assert facts["symbols"]["cblas_dgemm"]["calls"] >= 2
        assert facts["symbols"]["dgemm_"]["calls"] >= 1  # LAPACK's
