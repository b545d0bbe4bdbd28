"""The GPU as a device: moving, errors that come late, memory, random numbers, training, forcing."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases.ops.updates import fused_optimizers

import tilewright as tw
from tilewright import nn

pytestmark = pytest.mark.skipif(
    not tw.cuda.is_available(), reason=f"no GPU: {tw.cuda.why_unavailable()}"
)


def there(x, **options) -> tw.Tensor:
    return tw.asarray(np.asarray(x), **options).to("cuda")


def here(x: tw.Tensor) -> np.ndarray:
    return np.asarray(x.detach().to("cpu"))


def run(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


class TestPlace:
    def test_moving_keeps_bits_shape_and_type(self, rng):
        for dtype in ("float32", "float64", "int8", "bool", "complex64", "uint64"):
            x = (rng.standard_normal((3, 5)) * 3).astype(dtype)
            y = there(x)
            assert (y.device, y.shape, y.dtype.name) == ("cuda:0", (3, 5), dtype)
            np.testing.assert_array_equal(here(y), x)
        assert there(np.zeros((0, 3))).to("cpu").shape == (0, 3)

    def test_names(self):
        x = tw.ones((2,))
        assert x.to("cuda").device == x.to("cuda:0").device == "cuda:0"
        assert x.to("cuda").to("cuda:0").device == "cuda:0"
        count = tw.cuda.device_count()
        with pytest.raises(ValueError, match=f"no device 'cuda:{count}'; this machine has"):
            x.to(f"cuda:{count}")
        for name in ("cuda:", "cuda:x", "cuda1", "cuda:-1"):
            with pytest.raises(ValueError, match=f"no device '{name}'"):
                x.to(name)

    def test_views_and_writes_stay_there(self, rng):
        x = rng.standard_normal((4, 6)).astype("float32")
        y = there(x)
        view = y[1:, ::2].T
        assert view.device == "cuda:0"
        np.testing.assert_array_equal(here(view), x[1:, ::2].T)
        y[0] = 5
        y[:, 1] += 1
        y[2, 2:4] = there(np.array([7, 8], dtype="float32"))
        x[0] = 5
        x[:, 1] += 1
        x[2, 2:4] = [7, 8]
        np.testing.assert_array_equal(here(y), x)

    def test_reading_one_number(self):
        x = there(np.arange(6.0).reshape(2, 3))
        assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert (x[1, 2].item(), float(x.sum()), bool((x < 9).all())) == (5.0, 15.0, True)
        assert "device='cuda:0'" in repr(x)

    def test_mixing_is_refused_with_both_names(self):
        with pytest.raises(ValueError, match=r"on 'cuda:0' and .* on 'cpu'; move one"):
            there([1.0]) + tw.ones((1,), dtype=tw.float64)
        with pytest.raises(BufferError, match=r"on device 'cuda:0'; copy it to the CPU first"):
            np.asarray(there([1.0]))

    def test_gradients_come_back_to_where_the_leaf_is(self):
        x = tw.ones((3,), requires_grad=True)
        (x.to("cuda") * 2).sum().backward()
        assert (x.grad.device, x.grad.tolist()) == ("cpu", [2.0] * 3)
        w = tw.ones((3,), device="cuda", requires_grad=True)
        (w * w).sum().backward()
        assert (w.grad.device, w.grad.tolist()) == ("cuda:0", [2.0] * 3)

    def test_two_gpus(self):
        program = (
            "import tilewright as tw\n"
            "a = tw.ones((3,), device='cuda:0'); b = tw.ones((3,), device='cuda:1')\n"
            "assert a.device == 'cuda:0' and b.device == 'cuda:1', (a.device, b.device)\n"
            "assert (a.to('cuda:1') + b).tolist() == [2.0] * 3\n"
            "try:\n    a + b\nexcept ValueError as error:\n    print(error)\n"
        )
        if tw.cuda.get_device_name() != "emulated GPU":
            pytest.skip("the emulator has as many GPUs as it is told")
        done = run(program, TW_EMULATED_GPUS="2")
        assert "on 'cuda:0' and" in done.stdout, done.stderr


class TestLateErrors:
    def test_targets_and_indices_are_told_when_the_program_waits(self):
        x = there(np.zeros((2, 3), dtype="float32"))
        loss = nn.functional.cross_entropy(x, there([0, 5]))
        with pytest.raises(IndexError, match="target 5 in row 1 is out of range for 3 classes"):
            loss.item()
        picked = x[there([0, 7])]
        with pytest.raises(IndexError, match="index: 7 is out of range for axis 0 with size 2"):
            picked.tolist()
        assert x.tolist() == [[0.0] * 3] * 2  # told once

    def test_synchronize_tells_too(self):
        tw.zeros((2,), device="cuda")[there([-3])]
        with pytest.raises(IndexError, match="index: -3 is out of range"):
            tw.cuda.synchronize()


class TestMemory:
    def test_what_is_freed_serves_again(self):
        tw.cuda.synchronize()
        x = tw.zeros((1000,), device="cuda")
        before = tw.cuda.memory()
        for _ in range(100):
            x = x + 1
        after = tw.cuda.memory()
        assert after["driver_allocations"] == before["driver_allocations"]
        assert after["live_bytes"] == before["live_bytes"]
        assert x.tolist() == [100.0] * 1000

    def test_live_bytes_follow_tensors(self):
        before = tw.cuda.memory_allocated()
        x = tw.zeros((1 << 20,), device="cuda")
        assert tw.cuda.memory_allocated() - before == 4 << 20
        del x
        assert tw.cuda.memory_allocated() == before
        tw.cuda.empty_cache()
        assert tw.cuda.memory_reserved() <= tw.cuda.max_memory_allocated() + (64 << 20)

    def test_too_much_is_a_memory_error_with_figures(self):
        with pytest.raises(MemoryError, match=r"out of memory: \d+ bytes asked for, \d+ in use"):
            tw.zeros((1 << 50,), dtype=tw.uint8, device="cuda")
        assert tw.ones((3,), device="cuda").tolist() == [1.0] * 3

    def test_memory_for_others_is_given_back_when_it_is_short(self):
        program = (
            "import tilewright as tw\n"
            "for _ in range(6):\n"
            "    x = tw.zeros((48 << 20,), dtype=tw.uint8, device='cuda'); del x\n"
            "    x = tw.zeros((96 << 20,), dtype=tw.uint8, device='cuda'); del x\n"
            "print('done')\n"
        )
        if tw.cuda.get_device_name() != "emulated GPU":
            pytest.skip("the emulator has as much memory as it is told")
        done = run(program, TW_EMULATED_MEMORY=str(160 << 20))
        assert done.stdout == "done\n", done.stderr


class TestRandomNumbers:
    @pytest.mark.parametrize("count", [1, 5, 1023, 1024, 5000])
    def test_the_words_are_the_cpus(self, count):
        def drawn(make):
            results = []
            for device in ("cpu", "cuda"):
                tw.manual_seed(3)
                results.append([here(make(device)) for _ in range(2)])
            return results

        for dtype in (tw.float32, tw.float64):
            a, b = drawn(lambda d, t=dtype: tw.rand((count,), dtype=t, device=d))
            np.testing.assert_array_equal(a, b)
            a, b = drawn(lambda d, t=dtype: tw.randn((count,), dtype=t, device=d))
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        a, b = drawn(lambda d: tw.randint(-5, 100, (count,), device=d))
        np.testing.assert_array_equal(a, b)
        a, b = drawn(lambda d: tw.nn.functional.dropout(tw.ones((count,), device=d), 0.3))
        np.testing.assert_array_equal(a, b)


class TestProducts:
    RUNGS = tuple(tw.kernels.names("matmul", "cuda"))
    ANY_TYPE = ("naive", "tiled", "registers")

    @pytest.mark.parametrize("rung", ANY_TYPE)
    @pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
    def test_every_rung_on_odd_shapes_and_layouts(self, rung, dtype, rng):
        shapes = [(1, 1, 1), (5, 7, 3), (33, 65, 17), (130, 140, 40), (64, 1, 100), (3, 4, 0)]
        for m, n, k in shapes:
            a = (rng.standard_normal((m, k)) * 3).astype(dtype)
            b = (rng.standard_normal((k, n)) * 3).astype(dtype)
            expected = a.astype("longdouble") @ b.astype("longdouble")
            layouts = [
                (there(a), there(b)),
                (there(np.ascontiguousarray(a.T)).T, there(np.ascontiguousarray(b.T)).T),
                (there(np.repeat(a, 2, 1))[:, ::2], there(np.repeat(b, 2, 0))[::2]),
            ]
            for left, right in layouts:
                with tw.kernels.use(matmul=rung):
                    c = here(left @ right)
                if dtype.startswith("float"):
                    bound = 1e-5 if dtype == "float32" else 1e-13
                    np.testing.assert_allclose(c, expected, rtol=bound, atol=bound * max(k, 1))
                else:
                    np.testing.assert_array_equal(
                        c, (a.astype("int64") @ b.astype("int64")).astype(dtype)
                    )

    @pytest.mark.parametrize("rung", ANY_TYPE)
    def test_batches_epilogues_and_sums_into(self, rung, rng):
        a = rng.standard_normal((3, 1, 20, 30))
        b = rng.standard_normal((4, 30, 10))
        x, w, bias = (
            rng.standard_normal((9, 30)),
            rng.standard_normal((12, 30)),
            rng.standard_normal(12),
        )
        with tw.kernels.use(matmul=rung):
            np.testing.assert_allclose(here(there(a) @ there(b)), a @ b, atol=1e-12)
            y = tw.linear(there(x), there(w), there(bias), activation="relu")
            np.testing.assert_allclose(here(y), np.maximum(x @ w.T + bias, 0), atol=1e-12)
            z = tw.addmm(there(x[:, :12].copy()), there(x), there(w.T.copy()), beta=2.0, alpha=-0.5)
            np.testing.assert_allclose(here(z), 2 * x[:, :12] - 0.5 * x @ w.T, atol=1e-12)

    # Largest error in units of |a| |b|: by the bits that a rung keeps.
    @pytest.mark.parametrize(
        ("rung", "bound"),
        [("registers", 1e-6), ("bf16x6", 2e-7), ("bf16x3", 2e-5), ("bf16", 1e-2)],
    )
    def test_parts_keep_the_bits_that_they_claim(self, rung, bound, rng):
        for m, n, k in [(1, 1, 1), (17, 9, 33), (200, 130, 300), (16, 70, 1000)]:
            a = rng.standard_normal((m, k)).astype("float32")
            b = rng.standard_normal((k, n)).astype("float32")
            exact, scale = a.astype("float64") @ b, np.abs(a).astype("float64") @ np.abs(b)
            columns = there(np.ascontiguousarray(a.T)).T, there(np.ascontiguousarray(b.T)).T
            for left, right in ((there(a), there(b)), columns):
                with tw.kernels.use(matmul=rung):
                    error = np.abs(here(left @ right) - exact) / scale
                assert error.max() <= bound, (rung, m, n, k)

    @pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
    def test_halves_on_tensor_cores(self, dtype, rng):
        for m, n, k in [(1, 1, 1), (40, 30, 70), (129, 65, 200)]:
            a = tw.asarray(rng.standard_normal((m, k))).astype(dtype)
            b = tw.asarray(rng.standard_normal((k, n))).astype(dtype)
            exact = a.astype(tw.float64).numpy() @ b.astype(tw.float64).numpy()
            with tw.kernels.use(matmul="tensor"):
                c = (a.to("cuda") @ b.to("cuda")).to("cpu")
            bound = 2.0 ** (-8 if dtype == "bfloat16" else -11)
            np.testing.assert_allclose(
                c.astype(tw.float64).numpy(), exact, rtol=bound, atol=1e-4 * k**0.5
            )

    def test_rungs_refuse_types_that_are_not_theirs(self):
        x = there(np.zeros((4, 4)))
        with tw.kernels.use(matmul="tensor"), pytest.raises(ValueError, match="for bfloat16 and"):
            x @ x
        with tw.kernels.use(matmul="bf16x6"), pytest.raises(ValueError, match="for float32"):
            x @ x

    def test_infinities_and_nan_go_through_parts(self):
        x = np.eye(20, dtype="float32")
        x[3, 3], x[5, 5] = np.inf, np.nan
        ones = np.ones((20, 20), dtype="float32")
        with tw.kernels.use(matmul="bf16x6"):
            y = here(there(x) @ there(ones))
        assert np.isposinf(y[3]).all()
        assert np.isnan(y[5]).all()
        assert (y[[0, 1, 2, 4, 6]] == 1).all()

    def test_explain_says_what_ran(self):
        x = there(np.zeros((40, 40), dtype="float32"))
        with tw.kernels.use(matmul="tiled"), tw.explain() as report:
            x @ x
        entry = report.entries[-1]
        assert (entry.op, entry.kernel, entry.device) == ("matmul", "tiled", "cuda:0")
        assert {c.name for c in entry.candidates} == set(self.RUNGS)
        with pytest.raises(ValueError, match=r"choose from .*cuda: naive, tiled"):
            tw._core.force_kernel("matmul", "no such rung")


# Where the defaults of an optimizer would not do.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "ASGD": [{"lr": 1e-1}],
    "Adagrad": [{"lr": 1e-2}],
    "Adam": [{"lr": 1e-2}],
    "AdamW": [{"lr": 1e-2, "amsgrad": True}],
    "Lion": [{"lr": 1e-3}],
    "NAdam": [{"lr": 1e-3}],
    "RAdam": [{"lr": 1e-2}],
    "RMSprop": [{"lr": 1e-3, "centered": True, "momentum": 0.5}],
    "Rprop": [{"lr": 1e-3}],
    "SGD": [{"lr": 0.1}, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}],
}
OPTIMIZERS = (
    *((kind, settings) for kind in fused_optimizers() for settings in SETTINGS.get(kind, [{}])),
    ("Adafactor", {"lr": 1e-1}),
)


class TestTraining:
    def losses(
        self, device: str, kind: str, settings: dict[str, Any]
    ) -> tuple[list[float], list[np.ndarray]]:
        tw.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(20, 32), nn.ReLU(), nn.LayerNorm(32), nn.Dropout(0.1), nn.Linear(32, 5)
        ).to(device)
        steps = getattr(tw.optim, kind)(model.parameters(), **settings)
        rng = np.random.default_rng(0)
        x = tw.asarray(rng.standard_normal((64, 20)).astype("float32")).to(device)
        y = tw.asarray(rng.integers(0, 5, 64)).to(device)
        losses = []
        for _ in range(6):
            steps.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            steps.step()
            losses.append(loss.item())
        return losses, [here(p) for p in model.parameters()]

    @pytest.mark.parametrize(("kind", "settings"), OPTIMIZERS)
    def test_a_network_trains_as_on_the_cpu(self, kind, settings):
        (a, p), (b, q) = (self.losses(device, kind, settings) for device in ("cpu", "cuda"))
        assert a[-1] < a[0]
        np.testing.assert_allclose(b, a, rtol=1e-4)
        for x, y in zip(p, q, strict=True):
            np.testing.assert_allclose(y, x, rtol=2e-3, atol=2e-4)

    def test_twice_gives_the_same_bits(self):
        first, second = (self.losses("cuda", "Adam", {"lr": 1e-2}) for _ in range(2))
        assert first[0] == second[0]
        for x, y in zip(first[1], second[1], strict=True):
            np.testing.assert_array_equal(x, y)

    @pytest.mark.parametrize("say", [{"non_blocking": True}, True, {}])
    def test_a_model_moves_beside_the_program(self, say):
        model = nn.Sequential(nn.Linear(70, 300), nn.BatchNorm1d(300))
        before = [x.detach().numpy().copy() for x in model.parameters()]
        late = bool(say)
        args, named = ((say,), {}) if say is True else ((), say)
        model.to("cuda", *args, **named)
        model(tw.ones((4, 70), device="cuda")).sum().backward()
        model.to("cpu", *args, **named)
        for x, y in zip(model.parameters(), before, strict=True):
            assert x.is_pinned() == late
            assert x.grad.is_pinned() == late
            np.testing.assert_array_equal((x + 0).detach().numpy(), y)

    def test_a_state_saved_there_loads_here(self, tmp_path: Path):
        model = nn.Linear(3, 2).to("cuda")
        tw.save(model.state_dict(), tmp_path / "state.safetensors")
        other = nn.Linear(3, 2)
        other.load_state_dict(tw.load(tmp_path / "state.safetensors"))
        np.testing.assert_array_equal(other.weight.detach().numpy(), here(model.weight))

    def test_launches_of_a_step_are_counted(self):
        """One launch an op: nothing is split, nothing runs that was not asked for."""
        x = tw.ones((64, 32), device="cuda")
        w = tw.ones((16, 32), device="cuda")
        b = tw.ones((16,), device="cuda")
        counts = {
            "add": lambda: x + x,
            "linear": lambda: tw.linear(x, w, b, activation="relu"),
            "softmax": lambda: tw.softmax(x),
            "log_softmax": lambda: tw.log_softmax(x),
            "sum": x.sum,
            "layer_norm": lambda: nn.functional.layer_norm(x, (32,)),
            "transposed copy": x.T.copy,
            "adam": lambda: tw.adam_step([w], [w + 0], [w + 0], [w + 0], step=1, lr=0.1),
        }
        for name, call in counts.items():
            call()
            before = tw._core._gpu_launches(0)
            call()
            launched = tw._core._gpu_launches(0) - before
            assert launched == (4 if name == "adam" else 1), (name, launched)


class TestSurroundings:
    def test_without_a_driver_everything_else_works(self):
        program = (
            "import tilewright as tw\n"
            "assert not tw.cuda.is_available() and tw.cuda.device_count() == 0\n"
            "print(tw.cuda.why_unavailable())\n"
            "assert tw.device_names() == ['cpu', 'null']\n"
            "assert (tw.ones((2,)) + 1).tolist() == [2.0, 2.0]\n"
            "try:\n    tw.ones((2,), device='cuda')\n"
            "except RuntimeError as error:\n    print(error)\n"
        )
        done = run(program, TILEWRIGHT_CUDA_DRIVER="/nowhere/libcuda.so.1")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("the CUDA driver (libcuda.so.1) is not there") == 2

    def test_without_the_compiler_the_error_says_how_to_get_it(self):
        program = (
            "import tilewright as tw\n"
            "assert not tw.cuda.is_available() and tw.cuda.device_count() >= 1\n"
            "try:\n    tw.ones((2,), device='cuda')\n"
            "except RuntimeError as error:\n    print(error)\n"
        )
        done = run(program, TILEWRIGHT_NVRTC="/nowhere/libnvrtc.so")
        assert "pip install nvidia-cuda-nvrtc" in done.stdout, done.stderr

    def test_gpus_that_are_too_old_are_named(self):
        if tw.cuda.get_device_name() != "emulated GPU":
            pytest.skip("the emulator has the capability that it is told")
        program = (
            "import tilewright as tw\n"
            "try:\n    tw.ones((2,), device='cuda')\n"
            "except RuntimeError as error:\n    print(error)\n"
        )
        done = run(program, TW_EMULATED_CAPABILITY="75")
        assert "compute capability 7.5; the oldest that kernels are for is 8.0" in done.stdout

    def test_compiled_kernels_are_kept_and_damage_is_mended(self, tmp_path: Path):
        program = (
            "import time, warnings, tilewright as tw\n"
            "with warnings.catch_warnings(record=True) as told:\n"
            "    warnings.simplefilter('always')\n"
            "    assert (tw.ones((2,), device='cuda') + 1).tolist() == [2.0, 2.0]\n"
            "print(len(told), *[str(w.message)[:30] for w in told])\n"
        )
        first = run(program, TILEWRIGHT_CACHE_DIR=str(tmp_path))
        assert first.stdout.startswith("0"), first.stderr
        kept = sorted((tmp_path / "kernels").iterdir())
        assert kept
        assert all(path.suffix == ".cubin" for path in kept)
        times = [path.stat().st_mtime_ns for path in kept]
        assert run(program, TILEWRIGHT_CACHE_DIR=str(tmp_path)).stdout.startswith("0")
        assert [path.stat().st_mtime_ns for path in kept] == times  # nothing was compiled
        for path in kept:
            data = bytearray(path.read_bytes())
            data[-1] ^= 1
            path.write_bytes(bytes(data))
        again = run(program, TILEWRIGHT_CACHE_DIR=str(tmp_path))
        assert again.stdout.startswith("1 a compiled kernel is damaged"), again.stderr
        assert run(program, TILEWRIGHT_CACHE_DIR=str(tmp_path)).stdout.startswith("0")

    def test_kernels_that_others_could_have_written_are_not_run(self, tmp_path: Path):
        program = "import tilewright as tw\nprint((tw.ones((2,), device='cuda') + 1).tolist())\n"
        folder = tmp_path / "kernels"

        def result() -> tuple[str, int]:
            done = run(program, TILEWRIGHT_CACHE_DIR=str(tmp_path))
            return done.stdout, done.stderr.count("is no file of this user's alone")

        assert result() == ("[2.0, 2.0]\n", 0)
        assert folder.stat().st_mode & 0o777 == 0o700
        for path in folder.iterdir():
            data = path.read_bytes()
            digits, cubin = data[:64], data[64:]
            assert hashlib.sha256(path.stem.encode() + b"\n" + cubin).hexdigest() == digits.decode()
            assert path.stat().st_mode & 0o777 == 0o600
            path.chmod(0o666)
        assert result() == ("[2.0, 2.0]\n", 1)
        assert result() == ("[2.0, 2.0]\n", 0)  # written anew

    def test_a_folder_that_cannot_be_written_costs_time_alone(self, tmp_path: Path):
        (tmp_path / "kernels").write_text("a file in the place of the folder")
        program = "import tilewright as tw\nprint((tw.ones((2,), device='cuda') + 1).tolist())\n"
        done = run(program, TILEWRIGHT_CACHE_DIR=str(tmp_path))
        assert done.stdout == "[2.0, 2.0]\n", done.stderr

    def test_every_launch_waits_where_that_is_asked_for(self):
        program = (
            "import tilewright as tw\n"
            "x = tw.ones((2,), device='cuda')\n"
            "try:\n    x[tw.asarray([9]).to('cuda')]\n"
            "except IndexError as error:\n    print(error)\n"
        )
        assert "9 is out of range" in run(program, TILEWRIGHT_CUDA_SYNC="1").stdout

    def test_a_program_may_end_while_work_runs(self):
        done = run(
            "import tilewright as tw\nx = tw.ones((9,), device='cuda')\n"
            "for _ in range(9):\n    x = x * 2\n"
        )
        assert (done.returncode, done.stderr) == (0, "")
