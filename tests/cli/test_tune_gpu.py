"""`tilewright tune` on GPUs: rates that were planted are found, kept by GPU, and chosen by."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cases.tuning import Machine

import tilewright as tw
from tilewright import tune
from tilewright.cli import main
from tilewright.tune import gpu, table

pytestmark = pytest.mark.skipif(
    not tw.cuda.is_available(), reason=f"no GPU: {tw.cuda.why_unavailable()}"
)
SMALL = gpu.Sizes(waves=1, terms=32, bytes=1 << 14)
PLANTED = {
    "launch_ns": 2500.0,
    "memory": 1234.0,
    "upload": 7.5,
    "download": 6.25,
    "naive": 3.0,
    "tiled": 55.5,
    "registers_small": 99.0,
    "registers": 210.0,
    "warps": 777.0,
    "groups_narrow": 1900.0,
    "groups": 3100.0,
}


@pytest.fixture(autouse=True)
def folder(tuning_folder):
    return tuning_folder


def key() -> str:
    return tw._core._gpu_rates_key(0)


def rates(field: str = "value") -> dict[str, float]:
    return {row["name"]: row[field] for row in tw._core._gpu_rates(0)}


class MadeUp:
    """A GPU that takes what estimates by planted rates say; nothing is computed."""

    def __init__(self, planted: dict[str, float], *_: object) -> None:
        self.planted, self.doing = planted, ""

    def tell(self, text: str) -> None:
        self.doing = text

    def device_seconds(self, call) -> float:
        launch = self.planted["launch_ns"]
        if self.doing == "launch":
            return 1e-9 * launch
        if self.doing == "memory":
            return 1e-9 * (launch + 2 * SMALL.bytes / self.planted["memory"])
        rung, sizes, dtype = self.doing.split()
        with table.use_gpu_rates({key(): self.planted}):
            estimates = tw._core._gpu_estimates(
                0, tuple(map(int, sizes.split("x"))), getattr(tw, dtype)
            )
        return 1e-9 * estimates[rung]

    def host_seconds(self, call) -> float:
        return 1e-9 * (SMALL.bytes // 4) / self.planted[self.doing]


def measured(planted: dict[str, float]) -> dict[str, float]:
    clock = MadeUp(planted)
    return gpu.measure(0, clock, SMALL, clock.tell)


def keep(**changed: float) -> tune.Table:
    kept = {"date": "2026-01-02T03:04:05+00:00", "rates": changed}
    made = table.kept_or_empty()._replace(gpus={key(): kept})
    tune.save(made)
    return made


def test_planted_rates_are_found():
    has = {name for name, guess in rates("guess").items() if guess}
    assert {"naive", "tiled", "registers_small", "registers", "warps"} <= has
    assert measured(PLANTED) == pytest.approx({name: PLANTED[name] for name in has}, rel=1e-3)
    slow = {name: value / 50 for name, value in PLANTED.items()} | {"launch_ns": 9e5}
    assert measured(slow) == pytest.approx({name: slow[name] for name in has}, rel=1e-3)
    assert rates() == rates("guess")  # nothing is in force that was tried


def test_what_took_no_time_is_left_out():
    class Sudden(MadeUp):
        def device_seconds(self, call) -> float:
            sudden = self.doing == "memory" or self.doing.startswith("naive")
            return 1e-9 if sudden else super().device_seconds(call)

    clock = Sudden(PLANTED)
    found = gpu.measure(0, clock, SMALL, clock.tell)
    assert set(found) == set(measured(PLANTED)) - {"naive", "memory"}


@pytest.mark.parametrize("waves", [1, 4])
def test_products_are_whole_waves_of_whole_tiles(waves):
    processors = tw.cuda.facts()["multiprocessors"]
    for product in gpu.PRODUCTS:
        m, k, n = gpu._sizes_of(0, product, gpu.Sizes(waves, 64))
        assert (m % product.high, k, n % product.wide) == (0, 64, 0)
        tiles = m // product.high * (n // product.wide)
        wanted = processors * (min(waves, 3) if product.rate == "registers_small" else waves)
        assert 0.8 * wanted <= tiles <= wanted
        assert 1 / 8 <= m / n <= 8


def test_the_real_way_on_this_gpu():
    """Figures of the emulator mean nothing; that there are some, within their limits, does."""
    clock = gpu.Stopwatch("cuda:0", samples=1, sample_seconds=1e-6)
    told: list[str] = []
    found = gpu.measure(0, clock, SMALL, told.append)
    assert {"launch_ns", "upload", "download"} <= set(found)
    assert set(found) <= set(PLANTED)
    assert [text.split()[0] for text in told][:4] == ["launch", "memory", "upload", "download"]
    assert {"naive", "tiled", "registers"} <= {text.split()[0] for text in told}


def test_a_table_holds_gpus_and_is_taken_over():
    made = keep(naive=5.0, launch_ns=4321.0)
    assert rates()["naive"] == 5
    assert rates()["launch_ns"] == 4321
    assert rates()["tiled"] == rates("guess")["tiled"]
    tune.reset()
    assert rates() == rates("guess")
    assert tune.load() == made
    assert rates()["naive"] == 5
    assert tune.clear()
    assert rates() == rates("guess")


def test_a_table_of_another_gpu_changes_nothing():
    kept = {"date": "2026-01-02", "rates": {"naive": 5.0}}
    tune.save(table.kept_or_empty()._replace(gpus={"Another GPU, driver 1.0": kept}))
    assert rates() == rates("guess")
    assert "guessed from data sheets" in gpu.source("cuda")


def test_measuring_the_processor_keeps_the_gpus(monkeypatch):
    keep(naive=5.0)
    monkeypatch.setattr("tilewright.tune.timing.Stopwatch", Machine)
    found, _ = tune.run(5.0, devices=["cpu"])
    assert found.gpus[key()]["rates"] == {"naive": 5.0}
    assert rates()["naive"] == 5


STARTED = """
import json, tilewright as tw
opened = "libemulated" in open("/proc/self/maps").read()
print(json.dumps([opened, {row["name"]: row["value"] for row in tw._core._gpu_rates(0)}]))
"""


def start(**environment: str) -> subprocess.CompletedProcess[str]:
    variables = {k: v for k, v in os.environ.items() if k != "TILEWRIGHT_TUNE"} | environment
    return subprocess.run(
        [sys.executable, "-c", STARTED], env=variables, capture_output=True, text=True, check=True
    )


def test_a_process_takes_them_over_and_opens_nothing():
    keep(naive=5.0)
    opened, found = json.loads(start().stdout)
    assert not opened
    assert found["naive"] == 5
    opened, found = json.loads(start(TILEWRIGHT_TUNE="0").stdout)
    assert found["naive"] == rates("guess")["naive"]


@pytest.mark.parametrize(
    ("gpus", "reason"),
    [
        ([], "'gpus' holds no GPUs"),
        ({"a": 1}, "does not say when"),
        ({"a": {"date": "x", "rates": {"naive": -1}}}, "'rates' does not hold numbers"),
        ({"a": {"date": "x", "rates": {"naive": 0}}}, "naive must be in"),
        ({"a": {"date": "x", "rates": {"speed": 1}}}, "has no rate 'speed'; choose from naive"),
    ],
)
def test_damaged_ones_cost_one_notice(gpus, reason):
    keep(naive=5.0)
    content = json.loads(Path(tune.path()).read_text()) | {"gpus": gpus}
    Path(tune.path()).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=reason):
        tune.load()
    assert rates()["naive"] == 5  # what was in force before
    done = start()
    assert done.stderr.count("TuningWarning") == 1
    assert json.loads(done.stdout)[1] == rates("guess")


def test_the_choice_follows_and_explain_says_by_which():
    x = tw.ones((40, 40), device="cuda")
    with tw.explain() as report:
        x @ x
    guessed = "Estimates on cuda:0: rates guessed from data sheets; `tilewright tune` measures."
    assert guessed in str(report)
    assert report.as_dict()["gpu_estimates"] == {"cuda:0": gpu.source("cuda:0")}
    for winner in ("naive", "tiled", "registers"):
        slow = dict.fromkeys(("naive", "tiled", "registers", "registers_small", "warps"), 0.001)
        fast = {"registers_small": 1e5} if winner == "registers" else {winner: 1e5}
        keep(**{**slow, **fast})
        with tw.explain() as report:
            x @ x
        assert report[0].kernel == winner
        assert "rates measured on 2026-01-02 (" in str(report)
        costs = {c.name: c.cost_ns for c in report[0].candidates if c.accepted}
        assert min(costs, key=costs.get) == winner
    with tw.explain() as report:
        x + x
    assert "Estimates on" not in str(report)


class TestCommand:
    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch):
        clock = MadeUp(PLANTED)
        measure = gpu.measure
        monkeypatch.setattr(
            gpu,
            "measure",
            lambda number, _clock, _sizes, tell: measure(
                number, clock, SMALL, lambda text: (clock.tell(text), tell(text))
            ),
        )

    def test_measures_and_writes(self, capsys):
        guess = next(row["guess"] for row in tw._core._gpu_rates(0) if row["name"] == "tiled")
        assert main(["tune", "--device", "cuda"]) == 0
        out = capsys.readouterr().out
        assert "cuda:0 tiled" in out
        assert f"55.5, guess {guess:g}" in out
        assert json.loads(Path(tune.path()).read_text())["gpus"][key()]["rates"]["tiled"] == 55.5
        assert rates()["tiled"] == 55.5
        assert main(["tune", "show"]) == 0
        out = capsys.readouterr().out
        assert "cuda:0: rates measured on" in out
        assert "55.5" in out
        assert main(["explain", "matmul", "8x8x8", "--device", "cuda"]) == 0
        assert "Estimates on cuda:0: rates measured on" in capsys.readouterr().out
        assert tw.active_device() == "cpu"

    def test_show_before_anything_is_measured(self, capsys):
        assert main(["tune", "show", "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert {row["name"] for row in shown["gpus"][key()]} <= set(PLANTED)

    def test_a_gpu_that_is_not_there(self, capsys):
        assert main(["tune", "--device", "cuda:63"]) == 1
        assert capsys.readouterr().err.count("\n") == 1
        assert main(["tune", "--device", "tpu"]) == 1
        assert "'tpu'" in capsys.readouterr().err
