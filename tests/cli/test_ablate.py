"""`tilewright ablate`: what its lines are, that they train alike, and what it tells."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import tilewright as tw
from tilewright._report import figures
from tilewright.bench import ablation
from tilewright.bench.ablation import ALL, KERNELS, PLAIN, Measured
from tilewright.bench.intervals import Interval
from tilewright.bench.small_calls import SHORT_NAMES
from tilewright.cli import picture_ablation
from tilewright.cli.commands import run as main

PROGRAM = """
import sys
import tilewright as tw

print("which nobody should see")
model = tw.nn.Sequential(tw.nn.Linear(8, 16), tw.nn.Tanh(), tw.nn.Linear(16, 3))
optimizer = tw.optim.Adam(model.parameters(), lr=0.01)
x, y = tw.randn(32, 8), tw.randint(0, 3, (32,))
for _ in range(int(sys.argv[1])):
    optimizer.zero_grad()
    loss = tw.cross_entropy(model(x), y){more}
    loss.backward()
    optimizer.step()
"""


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    """Lines are judged, not times."""
    monkeypatch.setattr(ablation, "_TURN_SECONDS", 0.002)
    monkeypatch.setattr(ablation, "_MOST_TURNS", 2)


@pytest.fixture
def few(monkeypatch):
    """Plain loops, everything, and what lacks the kernels: a process each."""
    lines = ablation.lines

    def three(parts):
        cumulative, single = lines(parts)
        return [cumulative[0], ablation.Line(ALL, (), PLAIN)], single[:1]

    monkeypatch.setattr(ablation, "lines", three)


def program(folder: Path, more: str = "") -> str:
    path = folder / "program.py"
    path.write_text(PROGRAM.replace("{more}", more))
    return str(path)


def report_of(capsys, *arguments: str, code: int = 0) -> dict:
    assert main(["ablate", "--seconds", "0.05", "--threads", "1", "--json=-", *arguments]) == code
    return json.loads(capsys.readouterr().out)


# ---- the lines ----


def test_each_row_belongs_to_one_part() -> None:
    rows = [row for part in ablation.parts(2) for row in part.rows]
    assert sorted(rows) == sorted(row.name for row in tw.optimizations.table())


def test_plain_loops_have_nothing_and_everything_has_all() -> None:
    parts = ablation.parts(4)
    cumulative, single = ablation.lines(parts)
    plain, everything = cumulative[0], cumulative[-1]
    assert plain.name == PLAIN
    settings = plain.settings(4)
    off = set(settings["TILEWRIGHT_OFF"].split(","))
    assert off == {row.name for row in tw.optimizations.table()}
    assert settings["TILEWRIGHT_ISA"] == "scalar"
    assert settings["TILEWRIGHT_THREADS"] == "1"
    for op in tw.kernels.ops():
        if tw.kernels.names(op)[0] == "naive":
            assert plain.kernels()[op] == "naive"
    assert everything.name == ALL
    assert everything.settings(4) == {"TILEWRIGHT_OFF": "", "TILEWRIGHT_THREADS": "4"}
    assert everything.kernels() == {}
    assert [len(line.without) for line in cumulative] == list(range(len(parts), -1, -1))
    assert [line.without for line in single] == [(part,) for part in parts]
    assert {line.before for line in single} == {ALL}


def test_on_one_thread_no_line_is_of_cores() -> None:
    assert "more cores" in [part.name for part in ablation.parts(2)]
    assert "more cores" not in [part.name for part in ablation.parts(1)]


def test_rows_that_are_off_stay_off(monkeypatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_OFF", "call_cache")
    assert ablation.Line(ALL, (), "").settings(1)["TILEWRIGHT_OFF"] == "call_cache"


# ---- what is measured ----


def test_a_program_trains_alike_on_every_line(tmp_path, capsys) -> None:
    picture = tmp_path / "x.png"
    report = report_of(capsys, f"--plot={picture}", program(tmp_path), "100000")
    names = [line["line"] for line in report["lines"]]
    cumulative, single = ablation.lines(ablation.parts(1))
    assert names == [line.name for line in [*cumulative, *single]]
    assert report["losses_agree"]
    assert report["loss_of_step"] >= 2
    for line in report["lines"]:
        assert not line["refused"]
        assert line["step_s"] > 0
        assert line["steps"] >= 1
        assert line["loss"] == pytest.approx(report["lines"][0]["loss"], rel=1e-3)
    assert report["conditions"]["threads"] == 1
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("few")
def test_the_loss_is_the_programs(tmp_path, capsys) -> None:
    report = report_of(capsys, program(tmp_path), "100000")
    tw.manual_seed(0)
    model = tw.nn.Sequential(tw.nn.Linear(8, 16), tw.nn.Tanh(), tw.nn.Linear(16, 3))
    optimizer = tw.optim.Adam(model.parameters(), lr=0.01)
    x, y = tw.randn(32, 8), tw.randint(0, 3, (32,))
    for _ in range(report["loss_of_step"]):
        optimizer.zero_grad()
        loss = tw.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    assert report["lines"][1]["loss"] == pytest.approx(loss.item(), rel=1e-4)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("name", ["mnist", "cnn", "lstm", "gpt"])
def test_trainings(monkeypatch, capsys, name: str) -> None:
    monkeypatch.setattr(ablation, "lines", lambda _: ([ablation.Line(ALL, (), "")], []))
    report = report_of(capsys, "train", name, "--width", "0.5")
    assert report["title"] == SHORT_NAMES[name]
    (line,) = report["lines"]
    assert math.isfinite(line["loss"])
    assert line["steps"] >= 1


@pytest.mark.usefixtures("few")
def test_plain_loops_are_a_slice_that_is_scaled(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(ablation, "_TURN_SECONDS", 0.02)
    monkeypatch.setattr(ablation, "_MOST_TURNS", 6)
    told = tmp_path / "told.json"
    arguments = ["ablate", "--seconds", "0.05", "--threads", "1", "--json", str(told)]
    assert main([*arguments, program(tmp_path), "99999"]) == 0
    out = capsys.readouterr().out
    assert "from plain loops to everything" in out
    plain, *others = (line["steps"] for line in json.loads(told.read_text())["lines"])
    assert ("ran a slice of the steps" in out) == (plain < max(others))
    assert "all losses agree" in out
    assert "which nobody should see" not in out


@pytest.mark.usefixtures("few")
def test_losses_that_differ_fail(tmp_path, capsys) -> None:
    more = " * (2 if tw.active_isa() == 'scalar' else 1)"
    report = report_of(capsys, program(tmp_path, more), "100000", code=1)
    assert not report["losses_agree"]


@pytest.mark.usefixtures("few")
def test_a_program_that_ends_early_is_enough(tmp_path, capsys) -> None:
    report = report_of(capsys, program(tmp_path), "5")
    assert report["loss_of_step"] >= 2
    assert max(line["steps"] for line in report["lines"]) <= 4


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1", "the program ended before an optimizer made a step"),
        ("raise RuntimeError('no data')", "RuntimeError: no data"),
        ("raise SystemExit(4)", "ended with code 4 before a step"),
        (PROGRAM.replace("{more}", "").replace("sys.argv[1]", "1"), "ended after one step"),
    ],
)
def test_programs_without_steps_are_told(tmp_path, capsys, text: str, told: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(text)
    assert main(["ablate", "--seconds", "0.05", str(path)]) == 1
    assert told in capsys.readouterr().err


def test_wrong_usage_is_told(tmp_path, capsys) -> None:
    assert main(["ablate", str(tmp_path / "nothing.py")]) == 1
    assert "no program" in capsys.readouterr().err
    path = program(tmp_path)
    assert main(["ablate", "--json", path, "train", "mnist"]) == 1
    assert "would write over a program" in capsys.readouterr().err
    assert Path(path).read_text() == PROGRAM.replace("{more}", "")
    with pytest.raises(SystemExit):
        main(["ablate", "train", "vgg"])


# ---- what it is made of ----


def measured(*turns: float) -> Measured:
    return Measured(ablation.Line("x", (), ""), dict(enumerate(turns)))


def test_ratios_are_of_the_same_rounds_where_these_are_many() -> None:
    drifting = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    twice = measured(*(2 * x for x in drifting)).over(measured(*drifting))
    assert twice == Interval(2.0, 2.0, 2.0)
    few = measured(4.0, 4.4).over(measured(*drifting))
    assert few is not None
    assert few.value == 1.0
    assert few.low < 1.0 < few.high
    one = measured(8.0).over(measured(*drifting))
    assert one is not None
    assert (one.value, str(one)) == (2.0, "not known")
    assert measured().over(measured(1.0)) is None


def test_losses_agree_within_the_tolerance() -> None:
    assert ablation.agree([2.0, 2.001, math.nan])
    assert not ablation.agree([2.0, 2.0, 2.01])
    assert ablation.agree([])
    first, second, third = measured(1.0), measured(1.0), measured()
    first.losses, second.losses, third.refused = [3.0, 2.0, 1.0], [3.0, 2.5], "why"
    step, losses = ablation.common_loss([first, second, third])
    assert step == 2
    assert losses[:2] == [2.0, 2.5]
    assert math.isnan(losses[2])


def test_the_waterfall_hangs_together(monkeypatch) -> None:
    pytest.importorskip("matplotlib")
    drawn = []
    monkeypatch.setattr(figures, "save", lambda figure, path: drawn.append(figure))
    bar = picture_ablation.Bar
    steps = [
        bar(PLAIN, 8.0, None),
        bar(f"+ {KERNELS}", 4.0, Interval(2.0, 1.9, 2.1)),
        bar("+ slower", 5.0, Interval(0.8, 0.8, 0.8)),
        bar(ALL, 2.0, Interval(2.5, math.nan, math.nan)),
    ]
    single = [bar("without kernels", 6.0, Interval(3.0, 2.5, 3.5)), bar("x", 2.0, None)]
    picture_ablation.draw_ablation("x.png", "title", "below", steps, single)
    above, under = drawn[0].axes
    spans = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in above.patches]
    assert spans == [(0.0, 8.0), (4.0, 8.0), (4.0, 5.0), (0.0, 2.0), (2.0, 5.0)]
    texts = [text.get_text() for text in above.texts]
    assert "4 s   2x (1.90 to 2.10)" in texts
    assert "2 s   2.5x" in texts
    assert above.get_xscale() == "linear"
    (alone,) = under.patches
    assert alone.get_width() == 3.0
    picture_ablation.draw_ablation("x.png", "t", "b", [bar(PLAIN, 100.0, None), *steps], single)
    assert drawn[1].axes[0].get_xscale() == "log"
