"""device="auto": planted figures decide, and the reason tells them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn, train
from tilewright._inspect import placement
from tilewright._inspect.placement import Load, Speed, Work, choose
from tilewright.cli import main
from tilewright.tune import table

CPU = Speed("cpu", {"": 1e11}, 2e10, 1e-6, math.inf, math.inf, "planted")


def gpu(number: int = 0, **changed: object) -> Speed:
    facts = {
        "flops": {"": 1e13, "bfloat16": 1e14}, "bytes": 1e12, "op_s": 5e-6, "copied_bytes": 1e10,
        "free_bytes": 1e9, "source": "planted",
    }  # fmt: skip
    return Speed(f"cuda:{number}", **(facts | changed))


def load(ops: int = 1, flops: float = 0, size: float = 0, copied: int = 0, held: int = 0) -> Load:
    return Load((Work(flops, size),) * ops, copied, held)


class TestTheChoice:
    def test_many_small_ops_stay_on_the_cpu(self):
        chosen = choose(load(ops=100, flops=1e4), CPU, [gpu()])
        assert chosen.device == "cpu"
        assert chosen.seconds == pytest.approx({"cpu": 100e-6, "cuda:0": 500e-6})
        assert str(chosen).startswith("device cpu: about 100 µs a step, on cuda:0 500 µs (100 ops")

    def test_large_products_go_to_the_gpu(self):
        chosen = choose(load(ops=10, flops=1e9), CPU, [gpu()])
        assert chosen.device == "cuda:0"
        assert chosen.seconds == pytest.approx({"cpu": 0.1, "cuda:0": 1e-3})
        assert "10 GFLOP" in chosen.reason
        assert "cuda:0: planted" in chosen.reason

    def test_passes_over_memory_count(self):
        assert choose(load(size=1e8), CPU, [gpu()]).seconds == pytest.approx(
            {"cpu": 5e-3, "cuda:0": 1e-4}
        )

    def test_copies_to_the_gpu_may_cost_more_than_they_bring(self):
        work = load(flops=1e9)  # 10 ms here, 0.1 ms there
        assert choose(work, CPU, [gpu()]).device == "cuda:0"
        moved = Load(work.works, 200_000_000, 0)  # 20 ms
        assert choose(moved, CPU, [gpu()]).device == "cpu"

    def test_what_does_not_fit_stays_however_fast_the_gpu_is(self):
        chosen = choose(load(flops=1e12, held=950_000_000), CPU, [gpu()])
        assert chosen.device == "cpu"
        assert chosen.reason == (
            "a step holds 906 MiB, cuda:0 has 954 MiB free, of which 90% count"
        )
        assert choose(load(flops=1e12, held=890_000_000), CPU, [gpu()]).device == "cuda:0"

    def test_of_several_gpus_the_fastest_that_holds_it(self):
        slow, fast = gpu(0, flops={"": 1e12}), gpu(1)
        small = gpu(2, flops={"": 1e15}, free_bytes=1e6)
        step = load(flops=1e11, held=10_000_000)
        assert choose(step, CPU, [slow, fast, small]).device == "cuda:1"
        assert choose(load(flops=1e11), CPU, [slow, fast, small]).device == "cuda:2"

    def test_types_have_their_own_rates(self):
        work = Load((Work(1e11, 0, "bfloat16"),), 0, 0)
        assert gpu().seconds(work) == pytest.approx(1e-3)
        assert gpu().seconds(load(flops=1e11)) == pytest.approx(1e-2)


class TestTheLoad:
    def test_is_that_of_the_step(self):
        def step(device: str) -> None:
            x = tw.zeros((32, 64), device=device)
            y = tw.zeros((64, 16), device=device)
            x @ y

        found = placement.measured_load(step, 7, 100)
        assert [work.flops for work in found.works][-1] == 2 * 32 * 64 * 16
        assert found.works[-1].dtype == "float32"
        assert found.copied_bytes == 7
        assert found.held_bytes >= 100 + 4 * (32 * 64 + 64 * 16 + 32 * 16)
        assert found.held_bytes < 100 + 8 * (32 * 64 + 64 * 16 + 32 * 16)

    def test_leaves_everything_as_it_was(self):
        model = nn.Sequential(nn.Linear(8, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))
        tw.manual_seed(3)
        before = {name: np.array(x) for name, x in model.state_dict().items()}
        tw.auto_device(model, (5, 8))
        assert tw.active_device() == "cpu"
        assert all((np.array(x) == before[n]).all() for n, x in model.state_dict().items())
        assert all(x.grad is None for x in model.parameters())
        drawn = np.array(tw.rand(4))
        tw.manual_seed(3)
        np.testing.assert_array_equal(np.array(tw.rand(4)), drawn)

    def test_a_step_that_fails_leaves_the_device(self):
        with pytest.raises(ValueError, match="inner sizes differ"):
            placement.measured_load(lambda d: tw.ones((2, 3)) @ tw.ones((2, 3)), 0, 0)
        assert tw.active_device() == "cpu"

    def test_what_is_no_model(self):
        with pytest.raises(TypeError, match="auto_device: expected a Module, got int"):
            tw.auto_device(3)
        with pytest.raises(TypeError, match=r"tw\.auto_device\(model, inputs\) chooses one"):
            nn.Linear(2, 2).to("auto")


def test_without_a_gpu_it_is_the_cpu_and_no_error(monkeypatch, capsys):
    monkeypatch.setattr(tw.cuda, "why_unavailable", lambda: "no driver: install one")
    chosen = tw.auto_device(nn.Linear(4, 3), (2, 4))
    assert (chosen.device, chosen.reason) == ("cpu", "no GPU: no driver: install one")
    assert main(["train", "sine", "--epochs", "1", "--device", "auto"]) == 0
    assert "device cpu: no GPU: no driver: install one" in capsys.readouterr().out


def test_options_take_auto_and_nothing_else_that_is_no_device():
    assert train.Options(device="auto").device == "auto"
    with pytest.raises(ValueError, match="cpu, cuda, cuda:1 or auto, got 'automatic'"):
        train.Options(device="automatic")


# Rates of a GPU at which the choice is clear.
FAST = {"registers": 1e6, "memory": 1e6, "launch_ns": 1.0, "upload": 1e5}
SLOW = {"registers": 1e-4, "memory": 1e-4, "launch_ns": 1e9, "upload": 1e-5}


@pytest.mark.skipif(not tw.cuda.is_available(), reason="no GPU, and no emulator of one")
class TestWithAGpu:
    """Its rates are planted."""

    def planted(self, rates):
        return table.use_gpu_rates({tw._core._gpu_rates_key(0): rates})

    @pytest.mark.parametrize(("rates", "device"), [(FAST, "cuda:0"), (SLOW, "cpu")])
    def test_a_model_goes_where_the_rates_say(self, rates, device):
        model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
        with self.planted(rates), tw.explain() as report:
            chosen = tw.auto_device(model, (32, 64))
        assert chosen.device == device
        assert set(chosen.seconds) == {"cpu", "cuda:0"}
        assert chosen.seconds[device] == min(chosen.seconds.values())
        assert report.placements == [chosen]
        assert str(report).startswith(f"device {device}: about ")
        told = json.loads(json.dumps(report.as_dict()["placements"]))
        assert told[0]["device"] == device
        assert told[0]["copied_bytes"] == 4 * 32 * 64
        # Forward, and backward for the weights: twice the first layer, three times the second.
        assert told[0]["flops"] >= 2 * 2 * 32 * 64 * 64 + 3 * 2 * 32 * 64
        with tw.explain() as other:
            tw.ones((2,)) + 1
        assert other.placements == []

    def test_a_gpu_that_cannot_be_used(self, monkeypatch):
        def too_old(number: int) -> None:
            raise RuntimeError("cuda:0 is too old")

        monkeypatch.setattr(tw.cuda, "facts", too_old)
        chosen = tw.auto_device(nn.Linear(4, 3), (2, 4))
        assert str(chosen) == "device cpu: no GPU: cuda:0 is too old"

    def test_too_little_memory(self, monkeypatch):
        monkeypatch.setattr(tw.cuda, "mem_get_info", lambda number: (1000, 2000))
        monkeypatch.setattr(
            tw.cuda, "memory", lambda number: {"reserved_bytes": 0, "live_bytes": 0}
        )
        with self.planted(FAST):
            chosen = tw.auto_device(nn.Linear(64, 64), (32, 64))
        assert chosen.device == "cpu"
        assert "cuda:0 has 1000 B free" in chosen.reason

    @pytest.mark.parametrize(("rates", "device"), [(FAST, "cuda:0"), (SLOW, "cpu")])
    def test_a_training(self, capsys, rates, device):
        command = ["train", "sine", "--epochs", "1", "--hidden", "8", "--batch", "512"]
        with self.planted(rates):
            assert main([*command, "--device", "auto", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["placement"]["device"] == device
        assert told["runs"][0]["options"]["device"] == device
        assert main([*command, "--device", device, "--json"]) == 0
        plain = json.loads(capsys.readouterr().out)
        assert "placement" not in plain
        # Weighing draws nothing that the training would draw.
        for run in (told, plain):
            for epoch in run["runs"][0]["epochs"]:
                del epoch["seconds"], epoch["points_per_second"]
        assert told["runs"][0]["epochs"] == plain["runs"][0]["epochs"]

    @pytest.mark.parametrize("model", train.MODELS)
    def test_every_model_can_be_weighed(self, model):
        is_text = model in train.Text.models
        task = train.Text("to be or not to be " * 200) if is_text else train.load_task("digits")
        options = train.Options(model=model, hidden=16, length=16, batch=4)
        with self.planted(SLOW):
            chosen = train.placed(task, options)
        assert chosen.device == "cpu"
        assert len(chosen.load.works) > 5

    def test_an_op_on_the_command_line(self, capsys):
        with self.planted(FAST):
            assert main(["explain", "matmul", "24x24x24", "--device", "auto"]) == 0
        out = capsys.readouterr().out
        assert "device cuda:0: about" in out
        assert "Estimates on cuda:0" in out
        assert tw.active_device() == "cpu"
