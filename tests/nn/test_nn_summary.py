"""`tw.nn.summary`: its figures, and that the model stays as it was."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright import nn


class Counting(nn.Module):
    """Changes a buffer, and is random in training."""

    def __init__(self):
        self.register_buffer("calls", tw.zeros(()))
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        self.calls += 1.0
        return self.drop(x) + tw.rand(x.shape)


def model():
    shared = nn.Linear(8, 8)
    return (
        nn.Sequential(nn.Linear(4, 8), shared, nn.ModuleDict(), Counting(), shared)[:2]
        .append(Counting())
        .append(shared)
    )


def test_figures():
    made = model()
    made[1].requires_grad_(False)
    report = nn.summary(made, (3, 4))
    assert report.dry_run
    rows = {layer.path: layer for layer in report.layers}
    assert list(rows) == ["", "0", "1", "2", "2.drop"]
    assert (report.parameters, report.trainable) == (40 + 72, 40)
    assert rows["0"].flops == 2 * 3 * 4 * 8
    assert (rows["1"].calls, rows["1"].output_shapes) == (2, [(3, 8), (3, 8)])
    assert rows["1"].flops == 2 * (2 * 3 * 8 * 8)
    assert rows["1"].output_bytes == 2 * 3 * 8 * 4
    assert report.output_bytes == (1 + 2 + 1) * 96
    assert report.flops == sum(layer.flops for layer in report.layers)
    assert rows["2.drop"].depth == 2


def test_nothing_of_the_model_changes():
    made = model().train()
    made[2].calls += 5.0
    hooked = []
    made.register_forward_hook(lambda *_: hooked.append(1))
    tw.manual_seed(3)
    expected = tw.rand((2,)).tolist()
    tw.manual_seed(3)
    state = {name: value.tolist() for name, value in made.state_dict().items()}
    for dry_run in (True, False):
        nn.summary(made, tw.ones((3, 4)), dry_run=dry_run)
    assert {name: value.tolist() for name, value in made.state_dict().items()} == state
    assert all(module.training for module in made.modules())
    assert not hooked
    assert tw.rand((2,)).tolist() == expected
    assert tw.active_device() == "cpu"


def test_text_and_table():
    report = nn.summary(model(), (3, 4))
    text = str(report)
    assert "(3, 8) x 2" in text
    assert "112 parameters" in text
    console = pytest.importorskip("rich.console").Console(width=120, record=True)
    console.print(report)
    assert "Counting" in console.export_text()
    assert repr(report) == "<summary: 5 modules, 112 parameters>"


def test_large_models_cost_nothing():
    huge = nn.Linear(4, 4)
    huge.weight = nn.Parameter(tw.empty((1 << 15, 1 << 15), device="null"))
    huge.bias = None
    assert nn.summary(huge, (1, 1 << 15)).flops == 2.0**31


def test_models_that_cannot_run_dry_run_for_real():
    class Own(nn.Module):
        def __init__(self):
            self.table = [tw.ones((4,))]  # of the CPU, and no buffer

        def forward(self, x):
            return x * self.table[0]

    report = nn.summary(Own(), (2, 4))
    assert not report.dry_run
    assert report.layers[0].output_shapes == [(2, 4)]


def test_errors_are_the_models():
    with pytest.raises(ValueError, match="0: linear: "):
        nn.summary(nn.Sequential(nn.Linear(4, 8)), (3, 5))
    with pytest.raises(TypeError, match="summary: expected a Module, got int"):
        nn.summary(3)
