"""`tilewright bench ... --save`, `bench compare` and `bench history`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.bench import builds, harness, saved
from tilewright.bench.harness import Timing
from tilewright.cli.commands import run as main

SITE = Path(tw.__file__).parent.parent
FEW = ["--only", "a + b,reshape", "--threads", "1"]


@pytest.fixture(autouse=True)
def _few(monkeypatch, tmp_path):
    """Rows are judged, not times; names lie in a folder of the test's."""
    monkeypatch.setattr(builds, "_ROUNDS", 2)
    monkeypatch.setattr(harness, "_SAMPLE_SECONDS", 1e-4)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))


def timing(median_s: float, spread: float = 0.01) -> Timing:
    return Timing(median_s, median_s * 1.1, 25, median_s * (1 - spread), median_s * (1 + spread))


def write(path: Path, date: str = "2026-01-01T00:00:00Z", threads: int = 1, **seconds) -> Path:
    """Results of some cases."""
    saved.save(path, "calls", threads, {name: timing(value) for name, value in seconds.items()})
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"date": date}))
    return path


def test_what_is_saved_is_read_again(tmp_path) -> None:
    rows = {"a": timing(1e-6), "b": Timing(2e-6, float("nan"), 0)}
    saved.save(tmp_path / "x.json", "calls", 2, rows)
    found = saved.read(tmp_path / "x.json")
    assert found.rows["a"] == rows["a"]
    assert found.rows["b"].median_s == 2e-6
    assert found.conditions["threads"] == 2
    assert found.conditions["isa"] == tw.active_isa()
    assert found.conditions["version"] == tw.__version__
    assert found.date.startswith("20")
    assert found.conditions["processor"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "another", "cases": []}', '{"format":']
)
def test_other_files_are_refused(tmp_path, capsys, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    write(tmp_path / "y.json", a=1.0)
    assert main(["bench", "compare", str(tmp_path / "x.json"), str(tmp_path / "y.json")]) == 1
    assert "no results that --save has written" in capsys.readouterr().err


def test_calls_are_saved_by_name_and_compared(tmp_path, capsys) -> None:
    assert main(["bench", "calls", *FEW, "--save", "before"]) == 0
    assert (tmp_path / "cache" / "results" / "before.json").is_file()
    assert main(["bench", "calls", *FEW, "--save", str(tmp_path / "after.json")]) == 0
    capsys.readouterr()
    arguments = ["bench", "compare", "before", str(tmp_path / "after.json"), "--margin", "50"]
    assert main([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in report["results"]] == ["a + b", "a + b, recorded", "reshape"]
    for row in report["results"]:
        assert row["verdict"] == "same"
        assert 0 < row["ratio"]["low"] <= row["ratio"]["value"] <= row["ratio"]["high"]


def test_every_comparison_can_save(tmp_path, capsys) -> None:
    for what in (
        ["overhead", "--peers", "numpy"],
        ["optimizations", "--only", "call_cache"],
        ["ladder", "--sizes", "64"],
    ):
        target = tmp_path / f"{what[0]}.json"
        assert main(["bench", *what, "--threads", "1", "--save", str(target)]) == 0
        found = saved.read(target)
        assert found.rows
        for name, row in found.rows.items():
            assert "numpy" not in name
            assert 0 < row.low_s <= row.median_s <= row.high_s
    assert set(found.rows) == {"ladder: 64x64x64 nn"}
    capsys.readouterr()


def test_a_slower_row_fails_and_is_named(tmp_path, capsys) -> None:
    old = write(tmp_path / "old.json", same=1.0, slow=1.0, quick=1.0, gone=1.0, within=1.0)
    new = write(tmp_path / "new.json", same=1.0, slow=1.2, quick=0.8, added=1.0, within=1.04)
    assert main(["bench", "compare", str(old), str(new), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["slower"] == ["slow"]
    assert {row["name"]: row["verdict"] for row in report["results"]} == {
        "same": "same", "slow": "slower", "quick": "faster", "added": "only new",
        "within": "same", "gone": "only old",
    }  # fmt: skip
    assert main(["bench", "compare", str(old), str(new), "--margin", "0.015"]) == 1
    assert "2 slower, 1 faster, 1 same, 2 without a pair" in capsys.readouterr().out
    assert main(["bench", "compare", str(new), str(old), "--margin", "0.3"]) == 0


def test_unlike_machines_are_refused_or_marked(tmp_path, capsys) -> None:
    old = write(tmp_path / "old.json", threads=1, a=1.0)
    new = write(tmp_path / "new.json", threads=2, a=1.0)
    assert main(["bench", "compare", str(old), str(new)]) == 1
    assert "threads 1 and 2" in capsys.readouterr().err
    assert main(["bench", "compare", str(old), str(new), "--unlike"]) == 0
    assert "UNLIKE: threads 1 and 2" in capsys.readouterr().out


def test_two_builds_take_turns(capsys) -> None:
    arguments = ["bench", "compare", str(SITE), str(SITE), *FEW, "--pairs", "2", "--margin", "50"]
    assert main([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in report["results"]] == ["a + b", "a + b, recorded", "reshape"]
    for row in report["results"]:
        assert row["old"]["median_s"] > 0
        assert row["new"]["median_s"] > 0
        assert row["verdict"] == "same"


@pytest.mark.parametrize(
    ("old", "text"),
    [
        ("/nowhere", "no saved result /nowhere, and no build /nowhere"),
        ("nobody", "no saved result"),
        (str(SITE), "one is a saved result and the other a build"),
    ],
)
def test_what_cannot_be_compared_is_refused(tmp_path, capsys, old: str, text: str) -> None:
    new = write(tmp_path / "new.json", a=1.0)
    assert main(["bench", "compare", old, str(new)]) == 1
    assert text in capsys.readouterr().err


def test_nothing_is_measured_for_a_file_that_cannot_be_written(tmp_path, capsys) -> None:
    target = tmp_path / "nowhere" / "x.json"
    assert main(["bench", "calls", *FEW, "--save", str(target)]) == 1
    assert f"--save: cannot write {target}" in capsys.readouterr().err


def test_points_of_a_file_are_not_saved(tmp_path, capsys) -> None:
    assert main(["bench", "ops", "--from", "x.csv", "--save", "x"]) == 1
    assert "leave out --save, or --from" in capsys.readouterr().err


def test_history_is_by_date_and_machine(tmp_path, capsys) -> None:
    write(tmp_path / "c.json", "2026-03-01T00:00:00Z", a=1.0, b=0.5, new=1.0)
    write(tmp_path / "a.json", "2026-01-01T00:00:00Z", a=1.0, b=1.0)
    write(tmp_path / "b.json", "2026-02-01T00:00:00Z", a=1.0, b=2.0)
    write(tmp_path / "d.json", "2026-02-01T00:00:00Z", threads=2, a=1.0)
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("no results")
    picture = tmp_path / "history.png"
    assert main(["bench", "history", str(tmp_path), "--json", "--plot", str(picture)]) == 0
    told = capsys.readouterr()
    assert "left out: other.json" in told.err
    one, two = json.loads(told.out)["groups"]
    assert [Path(each["place"]).stem for each in one["results"]] == ["a", "b", "c"]
    means = [each["geometric_mean_to_first"] for each in one["results"]]
    assert means == pytest.approx([1.0, 2**0.5, 0.5**0.5])
    assert two["conditions"]["threads"] == 2
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_folder_without_results_is_told(tmp_path, capsys) -> None:
    assert main(["bench", "history", str(tmp_path)]) == 1
    assert "holds no results" in capsys.readouterr().err
    assert main(["bench", "history", str(tmp_path / "nowhere")]) == 1
    assert "nowhere" in capsys.readouterr().err
