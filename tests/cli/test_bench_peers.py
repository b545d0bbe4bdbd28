"""Peers of the benchmarks: unshackled before they load, and marked where their kernels are slow."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

import tilewright as tw
from tilewright.bench import allocation, peers
from tilewright.bench.harness import OURS, Case, Result, Timing, median_run
from tilewright.bench.networks import convolution
from tilewright.bench.peer_kernels import Kernel, isa_of
from tilewright.bench.peers import Clearing, Peers, load_peers, shackles, unshackle
from tilewright.cli import main, matmul_report

# Stand-ins that remember the environment in which they were imported, and obey it as the real ones
# do.
FAKES = {
    "numpy": """
        import os
        SEEN = dict(os.environ)
        __version__ = "0"
        FOUND = [] if "NPY_DISABLE_CPU_FEATURES" in SEEN else ["X86_V3", "X86_V4"]
        def show_config(mode):
            return {"SIMD Extensions": {"baseline": ["X86_V2"], "found": FOUND}}
    """,
    "threadpoolctl": """
        import os
        class ThreadpoolController:
            def select(self, user_api): return self
            def limit(self, limits): pass
        def threadpool_info():
            runs = os.environ.get("OPENBLAS_CORETYPE", "SkylakeX")
            return [dict(user_api="blas", internal_api="openblas", version="1", prefix="lib",
                         num_threads=1, architecture=runs)]
    """,
    "torch": """
        import os
        from types import SimpleNamespace as Names
        SEEN = dict(os.environ)
        __version__ = "0"
        _RUNS = SEEN.get("ATEN_CPU_CAPABILITY", "AVX512")
        def set_num_threads(threads): pass
        def get_num_threads(): return int(SEEN["OMP_NUM_THREADS"])
        _ABSENT = Names(is_available=lambda: False)
        backends = Names(cpu=Names(get_cpu_capability=lambda: _RUNS), mkl=_ABSENT, mkldnn=_ABSENT)
    """,
}
SHACKLES = {
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_L2_SIZE": "64",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    "MKL_DEBUG_CPU_TYPE": "5",
    "MKL_CBWR": "COMPATIBLE",
    "MKL_DYNAMIC": "FALSE",
    "KMP_AFFINITY": "none",
    "OMP_WAIT_POLICY": "PASSIVE",
    "ATEN_CPU_CAPABILITY": "avx2",
    "DNNL_MAX_CPU_ISA": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "0",
    "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2",
}
COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
FILES = {"TORCH_HOME": "/somewhere", "JAX_COMPILATION_CACHE_DIR": "/somewhere", "MKL_ROOT": "/opt"}
LOAD = """
import json
import tilewright as tw
tw.kernels.isas = lambda: ["scalar", "avx2", "avx512"]
from tilewright.bench.peers import load_peers
peers = load_peers(("torch", "numpy"), 2)
print(json.dumps({
    "seen": {name: module.SEEN for name, module in peers.modules.items()},
    "conditions": peers.conditions(),
    "lines": peers.heading() + peers.footing(),
}))
"""


@pytest.fixture
def fakes(tmp_path):
    """A folder of stand-ins that hides the real modules."""
    for name, text in FAKES.items():
        lines = (line[8:] for line in text.splitlines())
        (tmp_path / f"{name}.py").write_text("\n".join(lines))
    return tmp_path


@pytest.fixture
def environment(monkeypatch):
    """Puts the process's environment, and what the module knows of it, back afterwards."""
    before = dict(os.environ)
    monkeypatch.setattr(peers._State, "settings", {})
    for name in shackles(before):
        del os.environ[name]
    yield os.environ
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def wide(monkeypatch):
    """A machine with AVX-512."""
    monkeypatch.setattr(tw.kernels, "isas", lambda: ["scalar", "avx2", "avx512"])


def run_python(program, folder, **variables):
    inherited = {k: v for k, v in os.environ.items() if k not in shackles(os.environ)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**inherited, **variables, "PYTHONPATH": str(folder)},
    )
    return json.loads(done.stdout)


class TestClearing:
    def test_no_peer_sees_what_holds_it_back(self, fakes):
        counts = dict.fromkeys(COUNTS, "1")
        found = run_python(LOAD, fakes, **SHACKLES, **counts, **FILES)
        for seen in found["seen"].values():
            assert not SHACKLES.keys() & seen.keys()
            assert {seen[name] for name in COUNTS} == {"2"}
            assert FILES.items() <= seen.items()
        conditions = found["conditions"]
        assert conditions["cleared"] == {**SHACKLES, **counts}
        assert conditions["too_late"] == {}
        assert conditions["below_machine"] == []
        (line,) = (line for line in found["lines"] if line.startswith("cleared"))
        assert "OPENBLAS_CORETYPE=Haswell" in line

    def test_a_peer_that_had_loaded_is_told_and_marked(self, fakes):
        found = run_python("import numpy, torch\n" + LOAD, fakes, OMP_NUM_THREADS="2", **SHACKLES)
        conditions = found["conditions"]
        late = {name for name in SHACKLES if not name.startswith("XLA_")}
        assert set(conditions["too_late"]) == late
        assert conditions["cleared"] == {"XLA_FLAGS": SHACKLES["XLA_FLAGS"]}
        assert conditions["below_machine"] == ["torch", "numpy"]
        kernels = {(k["peer"], k["library"]): k for k in conditions["kernels"]}
        assert kernels["numpy", "NumPy's loops"]["below_machine"]
        assert kernels["torch", "ATen"]["isa"] == "avx2"
        assert any("HAD LOADED" in line for line in found["lines"])
        assert any("* torch runs BELOW this machine's avx512" in line for line in found["lines"])

    def test_own_settings_are_no_shackles(self, environment):
        assert unshackle(1) == Clearing()
        assert environment["OMP_NUM_THREADS"] == environment["PJRT_NPROC"] == "1"
        assert unshackle(2) == Clearing()
        assert environment["OMP_NUM_THREADS"] == "2"
        assert not shackles(peers.child_environment({}))
        environment["OMP_NUM_THREADS"] = "7"
        assert unshackle(2) == Clearing({"OMP_NUM_THREADS": "7"})

    def test_what_is_read_when_the_process_starts_comes_too_late(self, environment):
        environment["MALLOC_ARENA_MAX"] = "1"
        assert unshackle(1).too_late == {"MALLOC_ARENA_MAX": "1"}
        with pytest.raises(
            ValueError, match="GLIBC_TUNABLES=x must be set when the process starts"
        ):
            unshackle(1, {"GLIBC_TUNABLES": "x"})

    def test_a_program_starts_itself_anew(self, environment, monkeypatch):
        class StartedError(Exception):
            pass

        def start(path, arguments, environ):
            assert (path, arguments[0]) == (sys.executable, sys.executable)
            os.environ.clear()
            os.environ.update(environ)
            raise StartedError

        monkeypatch.setattr(os, "execve", start)
        environment.update(MALLOC_ARENA_MAX="1", GLIBC_TUNABLES="other", XLA_FLAGS="--a")
        wanted = {"GLIBC_TUNABLES": "tuned"}
        with pytest.raises(StartedError):
            unshackle(1, wanted, program=True)
        cleared = {"MALLOC_ARENA_MAX": "1", "GLIBC_TUNABLES": "other", "XLA_FLAGS": "--a"}
        assert unshackle(1, wanted, program=True) == Clearing(cleared)
        assert environment["GLIBC_TUNABLES"] == "tuned"

    def test_the_command_line_starts_anew_once(self):
        command = "bench pointwise --sizes 4 --peers= --allocation default --threads 1 --json"
        done = subprocess.run(
            [sys.executable, "-m", "tilewright", *command.split()],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **SHACKLES, "MALLOC_ARENA_MAX": "1"},
        )
        machine = json.loads(done.stdout)["machine"]
        assert {**SHACKLES, "MALLOC_ARENA_MAX": "1"}.items() <= machine["cleared"].items()
        assert machine["too_late"] == {}
        assert "cleared" in done.stderr


@pytest.mark.usefixtures("environment")
class TestLoading:
    def test_jax_is_left_out_where_its_threads_cannot_be_held(self, monkeypatch):
        config = SimpleNamespace(update=lambda name, value: None)
        jax = SimpleNamespace(__version__="0", config=config)
        monkeypatch.setattr(peers, "available", lambda name: name == "jax")
        monkeypatch.setattr(peers, "require", lambda name, **_: jax)
        monkeypatch.setattr(peers, "_jax_product", lambda jax: None)
        monkeypatch.setattr(peers, "_busy_processors", lambda work, threads: 1.9)
        monkeypatch.delitem(sys.modules, "jax", raising=False)
        found = load_peers(("jax", "numpy"), 1)
        assert found.modules == {}
        assert "1.9 processors busy where 1" in found.left_out["jax"]
        assert "not installed" in found.left_out["numpy"]
        assert sum(line.startswith("left out") for line in found.heading()) == 2

    def test_jax_is_left_out_where_it_had_loaded_with_other_threads(self, monkeypatch):
        jax = SimpleNamespace(__version__="0")
        monkeypatch.setattr(peers, "available", lambda name: name == "jax")
        monkeypatch.setattr(peers, "require", lambda name, **_: jax)
        monkeypatch.setitem(sys.modules, "jax", jax)
        found = load_peers(("jax",), 1)
        assert found.modules == {}
        assert "another number of threads" in found.left_out["jax"]

    def test_busy_processors(self, monkeypatch):
        monkeypatch.setattr(peers, "_PROBE_SECONDS", 1e-3)
        monkeypatch.setattr(peers, "_processors", lambda: 8)
        assert 0 <= peers._busy_processors(lambda: None, 1) < 1.5
        assert peers._busy_processors(lambda: None, 8) == 0

    def test_real_peers_say_what_they_run(self):
        found = load_peers(("torch", "numpy"), 1)
        for kernel in found.kernels:
            assert kernel.library
            assert kernel.runs
        assert {kernel.peer for kernel in found.kernels} == set(found.modules)
        assert len(found.footing()) == len(found.modules) + len(found.below)


class TestMarking:
    @pytest.mark.parametrize(
        ("name", "of"),
        [
            ("SkylakeX", "avx512"),
            ("Cooperlake", "avx512"),
            ("SapphireRapids", "avx512"),
            ("Haswell", "avx2"),
            ("Zen", "avx2"),
            ("Sandybridge", "scalar"),
            ("Prescott", "scalar"),
            ("AVX512", "avx512"),
            ("AVX2", "avx2"),
            ("DEFAULT", "scalar"),
            ("Intel(R) Advanced Vector Extensions 512 (Intel(R) AVX-512)", "avx512"),
            ("Intel(R) Advanced Vector Extensions 2 (Intel(R) AVX2) enabled", "avx2"),
            ("Intel(R) Streaming SIMD Extensions 4.2", "scalar"),
            ("Intel AVX10.1 and Intel AMX with bfloat16", "avx512"),
            ("Intel AVX-512 with Intel DL Boost", "avx512"),
            ("Intel AVX", "scalar"),
            ("X86_V4", "avx512"),
            ("X86_V3", "avx2"),
            ("", ""),
        ],
    )
    @pytest.mark.usefixtures("wide")
    def test_names_of_kernels(self, name, of):
        assert isa_of(name) == of

    def test_names_on_arm(self, monkeypatch):
        monkeypatch.setattr(tw.kernels, "isas", lambda: ["scalar", "neon"])
        assert isa_of("neoversev1") == "neon"
        assert not Kernel("numpy", "OpenBLAS", "neoversev1", "neon").is_below("neon")

    @pytest.mark.usefixtures("wide")
    def test_the_slow_ones(self):
        slow = Kernel("numpy", "OpenBLAS 1", "Haswell", "avx2", 2)
        fast = Kernel("torch", "ATen", "AVX512", "avx512", 2)
        silent = Kernel("jax", "jaxlib 1", "by XLA")
        modules = {kernel.peer: SimpleNamespace(__version__="1") for kernel in (fast, slow, silent)}
        found = Peers(modules, 2, kernels=(fast, slow, silent))
        assert found.below == ["numpy"]
        assert [found.label(name) for name in (OURS, "numpy", "torch")] == [OURS, "numpy*", "torch"]
        assert found.label("numpy, 2 threads") == "numpy, 2 threads*"
        assert found.footing() == [
            "torch runs ATen: AVX512, 2 threads",
            "numpy* runs OpenBLAS 1: Haswell (avx2), 2 threads",
            "jax runs jaxlib 1: by XLA",
            "* numpy runs BELOW this machine's avx512: OpenBLAS 1 (avx2)",
        ]
        conditions = found.conditions()
        assert conditions["machine_isa"] == "avx512"
        assert [k["below_machine"] for k in conditions["kernels"]] == [False, True, False]

    @pytest.mark.usefixtures("wide", "environment", "threads")
    @pytest.mark.parametrize("command", ["matmul --sizes 8 --parts sizes", "pointwise --sizes 8"])
    def test_tables_and_json_have_the_mark(self, command, monkeypatch, capsys, tmp_path):
        slow = Kernel("numpy", "OpenBLAS 1", "Haswell", "avx2", 1)
        monkeypatch.setattr(peers, "kernels_of", lambda *_: [slow])
        monkeypatch.setattr(allocation, "can_be_tuned", lambda: False)
        target = tmp_path / "report.json"
        options = ["--peers", "numpy", "--threads", "1", "--json", str(target)]
        assert main(["bench", *command.split(), *options]) == 0
        out = capsys.readouterr().out
        assert "/ numpy*" in out
        assert "* numpy runs BELOW" in out
        machine = json.loads(target.read_text())["machine"]
        assert machine["below_machine"] == ["numpy"]
        assert machine["kernels"][0]["runs"] == "Haswell"


@pytest.mark.usefixtures("threads")
class TestRuns:
    def test_the_median_run_counts(self):
        def run(ratio):
            timings = {OURS: Timing(1.0, 1.0, 3), "numpy": Timing(ratio, ratio, 3)}
            return Result("it", timings, 1.0, "GB", {})

        found = median_run([run(3.0), run(0.5), run(2.0)])
        assert (found.ratio, found.runs) == (2.0, (3.0, 0.5, 2.0))
        assert median_run([run(3.0), run(0.5)]).ratio == 0.5
        again = Result.from_dict(json.loads(json.dumps(run(2.0).as_dict())))
        assert again == run(2.0)

    def test_the_summary_names_what_is_lost(self):
        rows = [
            {"name": "a", "ratios": {"numpy": 0.5, "torch": 2.0}},
            {"name": "b", "ratios": {"numpy": 0.96}},
            {"name": "c", "ratios": {"numpy": 0.94}},
            {"name": "d", "ratios": {}},
        ]
        text = matmul_report.map_summary(rows)
        assert text.startswith("3 shapes")
        assert "2 below 0.95" in text
        assert "worst a 0.50x" in text
        assert text.endswith("below 0.95: a 0.50x, c 0.94x")


@pytest.mark.usefixtures("threads")
class TestAllocation:
    def test_the_tuned_column_comes_from_a_fresh_process(self, capsys):
        if not allocation.can_be_tuned():
            pytest.skip("only glibc's malloc is tuned")
        command = "bench pointwise --sizes 8 --peers numpy --threads 1 --json"
        assert main(command.split()) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["allocation"] == "both"
        for result in report["results"]:
            assert set(result["tuned"]["timings"]) == set(result["timings"]) == {OURS, "numpy"}

    def test_elsewhere_there_is_none(self, monkeypatch, capsys):
        monkeypatch.setattr(allocation, "can_be_tuned", lambda: False)
        command = "bench pointwise --sizes 8 --peers numpy --threads 1 --json"
        assert main(command.split()) == 0
        assert "tuned" not in json.loads(capsys.readouterr().out)["results"][0]
        assert main(["bench", "pointwise", "--allocation", "tuned"]) == 1
        assert "only glibc" in capsys.readouterr().err

    def test_a_failure_there_is_told(self):
        with pytest.raises(OSError, match="no peer 'fortran'"):
            allocation.run_tuned(["pointwise", "--peers", "fortran"])


def test_every_pointwise_op_is_the_same_for_all():
    from tilewright.bench.pointwise import pointwise_cases  # noqa: PLC0415

    modules = load_peers(("torch", "numpy", "jax"), 1).modules
    for case in pointwise_cases(modules, [8]):
        assert isinstance(case, Case)
        assert set(case.contenders) == {OURS, *modules}
        for timer in case.contenders.values():
            timer.timeit(1)


@pytest.mark.parametrize("precision", ["highest", "high"])
def test_the_choice_of_a_rung_is_timed_beside_the_others_that_are_allowed(precision):
    before = tw.get_float32_matmul_precision()
    try:
        cases = convolution.rung_cases((1,), precision)
        first, wide = (
            next(cases),
            next(case for case in cases if "56x56 to 64, 3x3: input" in case.name),
        )
        assert len({"im2col", "direct"} - set(first.contenders)) == 1  # the chosen one
        rungs = {"im2col", "direct", "winograd", *["winograd4"] * (precision == "high")}
        assert set(wide.contenders) - {OURS} < rungs
        assert len(wide.contenders) == len(rungs)
        with tw.explain() as seen:
            wide.contenders["direct"].timeit(1)
        assert [entry.kernel for entry in seen if "input_gradient" in entry.op] == ["direct"]
    finally:
        tw.set_float32_matmul_precision(before)


def test_choices_that_were_off_are_counted():
    def case(ours: float, rung: float) -> Result:
        timings = {name: Timing(s, s, 5) for name, s in ((OURS, ours), ("direct", rung))}
        return Result("conv", timings, 1.0, "GFLOP", {})

    told = convolution.rungs_missed([case(1.0, 1.0), case(1.04, 1.0), case(1.2, 1.0)])
    assert told == "1 of 3 chosen rungs take over 1.05 of the quickest, 1.20 at most"
