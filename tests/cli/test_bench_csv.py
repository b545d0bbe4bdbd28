"""Points that `tilewright bench --csv` writes and `--from` reads, and the records in the docs."""

import csv
import json
import math
import re
import subprocess
import sys

import pytest
from checkout import ROOT

from tilewright.bench.harness import OURS, Result, Timing
from tilewright.bench.points import Points, read_points, write_points
from tilewright.cli import bench_matmul, main

RECORDS = sorted((ROOT / "docs" / "measured").glob("[!o]*.csv")) + sorted(
    (ROOT / "docs" / "measured").glob(
        "ops_*.csv"
    )  # those of optimizations have a test of their own
)
LARGEST_BYTES = 200_000
OPS = ["bench", "ops", "--ops", "add,exp", "--sizes", "64", "--dtypes", "float32"]
OPS += ["--peers", "numpy", "--threads", "1"]


def result(name, ours, runs=(), **peers):
    timings = {OURS: Timing(ours, ours, 9)}
    timings |= {peer: Timing(seconds, seconds, 9) for peer, seconds in peers.items()}
    return Result(name, timings, 0, "", {}, runs)


def test_what_is_written_is_read(tmp_path):
    target = tmp_path / "points.csv"
    results = [
        result("a, with a comma", 1.23456e-6, (0.5, 2.0), torch=2.5e-6, numpy=1e-6),
        result("b", 12.3456789, (3.0,), torch=40.0),
        result("alone", 1e-9),
    ]
    tuned = {"b": result("b", 12.0, torch=24.0)}
    conditions = {"machine": {"threads": 1}}
    write_points(target, Points(conditions, results, tuned, {"a, with a comma": "tiled"}))
    found = read_points([target])
    assert found.conditions == conditions
    assert [each.name for each in found.results] == ["a, with a comma", "b", "alone"]
    assert [each.best_peer for each in found.results] == ["numpy", "torch", None]
    assert found.results[0].runs == (0.5, 2.0)
    assert found.kernels == {"a, with a comma": "tiled"}
    assert list(found.tuned) == ["b"]
    assert found.tuned["b"].ratio == pytest.approx(2.0, rel=1e-3)
    for each, before in zip(found.results, results, strict=True):
        for name, timing in before.timings.items():
            assert each.timings[name].median_s == pytest.approx(timing.median_s, rel=1e-3)
    both = read_points([target, target])
    assert len(both.results) == 2 * len(results)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "not written by --csv"),
        ("name,ours\na,1\n", "not written by --csv"),
        ("# {}\nname,ours\na,1\n", "not written by --csv"),
        ("# []\ncase,ratio\na,1\n", "not written by --csv"),
        ("# {}\ncase,tilewright_us\nadd,1\nexp,fast\n", "line 4 is no point"),
    ],
)
def test_another_file_is_refused_in_a_line(tmp_path, capsys, content, text):
    target = tmp_path / "other.csv"
    target.write_text(content)
    assert main(["bench", "ops", "--from", str(target)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert text in printed.err
    assert str(target) in printed.err


def test_a_run_is_printed_and_drawn_again_from_its_points(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    target, picture = tmp_path / "ops.csv", tmp_path / "ops.png"
    assert main([*OPS, "--csv", str(target)]) == 0
    assert f"points: {target}" in capsys.readouterr().out
    measured = read_points([target])
    assert measured.conditions["machine"]["threads"] == 1
    assert main(["bench", "ops", "--from", str(target), "--plot", str(picture)]) == 0
    out = capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"{len(measured.results)} cases against the best peer" in out
    for each in measured.results:
        (line,) = (line for line in out.splitlines() if line.split("  ")[1:2] == [each.name])
        assert f"{each.ratio:.2f}x" in line
    assert main(["bench", "ops", "--from", str(target), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in report["results"]] == [r.name for r in measured.results]


def test_a_map_of_products_is_printed_and_drawn_again_from_its_points(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    record = ROOT / "docs" / "measured" / "matmul_zen5.csv"
    arguments = ["bench", "matmul", "--map", "--from", str(record)]
    assert main([*arguments, "--plot", str(tmp_path / "map.png")]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"map-map.png", "map-shapes.png"}
    out = capsys.readouterr().out
    assert "312 shapes against the best peer: geometric mean 2.02x; 4 below 1.0" in out
    ops = ROOT / "docs" / "measured" / "ops_zen5.csv"
    assert main(["bench", "matmul", "--map", "--from", str(ops)]) == 1
    assert "--from: no points of products" in capsys.readouterr().err


def test_a_measured_map_of_products_is_written(tmp_path, capsys, monkeypatch):
    plan = bench_matmul.Plan((1, 8), (2,), (bench_matmul.Shape(4, 4, 4, batch=3),), 2)
    monkeypatch.setattr(bench_matmul, "QUICK", plan)
    monkeypatch.setattr(bench_matmul, "_PEAK_SECONDS", 0.01)
    target = tmp_path / "map.csv"
    options = ["--map", "--rounds", "2", "--peers", "numpy", "--threads", "1"]
    assert main(["bench", "matmul", *options, "--csv", str(target)]) == 0
    points = read_points([target])
    names = {shape.name for shape in plan.shapes()}
    assert {each.name for each in points.results} == names == points.kernels.keys()
    assert all(len(each.runs) == 2 for each in points.results)
    assert points.conditions["runs"] == 2
    capsys.readouterr()
    assert main(["bench", "matmul", "--map", "--from", str(target)]) == 0
    assert f"{len(names)} shapes against the best peer" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--csv", "--from"])
def test_products_have_points_only_of_a_map(capsys, option):
    assert main(["bench", "matmul", option, "x.csv"]) == 1
    assert f"{option}: only with --map" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_fails_before_the_work(tmp_path, capsys):
    target = tmp_path / "nowhere" / "x.csv"
    assert main([*OPS, "--csv", str(target)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"--csv: cannot write {target}" in printed.err


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_records_are_small_and_true_to_themselves(path):
    assert path.stat().st_size <= LARGEST_BYTES
    points = read_points([path])
    machine = points.conditions["machine"]
    assert {"isa", "threads", "tilewright", "torch", "kernels"} <= machine.keys()
    assert len({each.name for each in points.results}) == len(points.results)
    with path.open(newline="") as file:
        file.readline()
        rows = list(csv.DictReader(file))
    for row, each in zip(rows, points.results, strict=True):
        assert row["case"] == each.name
        if not each.runs:
            assert float(row["ratio"]) == pytest.approx(each.ratio, rel=2e-3)
        else:  # of several runs the middle one counts, whose times stand there
            assert sorted(each.runs)[len(each.runs) // 2] == pytest.approx(each.ratio, rel=0.01)


MAPS = re.findall(
    r"^\| ([^|]+) \| [^|]+ \| (\d) \| ([\d,]+) \| ([\d.]+)\S \| (\d+) \| ([\d.]+) \| (.*) \|$",
    (ROOT / "docs" / "measured" / "ops.md").read_text(encoding="utf-8"),
    flags=re.MULTILINE,
)


@pytest.mark.parametrize("row", MAPS, ids=lambda row: row[-1][:40])
def test_the_table_of_maps_says_what_the_records_hold(row):
    _, threads, count, mean, lost, least, files = row
    paths = [ROOT / "docs" / "measured" / name for name in re.findall(r"\((\S+\.csv)\)", files)]
    points = read_points(paths)
    ratios = [result.ratio for result in points.results]
    assert points.conditions["machine"]["threads"] == int(threads)
    assert len(ratios) == int(count.replace(",", ""))
    found = math.exp(sum(map(math.log, ratios)) / len(ratios))
    assert found == pytest.approx(float(mean), abs=0.0051)
    assert sum(ratio < 0.9 for ratio in ratios) == int(lost)
    assert min(ratios) == pytest.approx(float(least), abs=0.0051)


def test_every_record_of_ops_has_its_row():
    listed = {name for row in MAPS for name in re.findall(r"\((\S+\.csv)\)", row[-1])}
    assert listed == {path.name for path in RECORDS if path.name.startswith("ops_")}


def test_pictures_of_the_docs_are_drawn_from_the_records(tmp_path):
    image = pytest.importorskip("matplotlib.image")
    script = ROOT / "tools" / "draw_measured.py"
    subprocess.run([sys.executable, script, tmp_path], check=True)
    kept = sorted((ROOT / "docs" / "measured").glob("*.png"))
    assert [path.name for path in kept] == sorted(path.name for path in tmp_path.iterdir())
    for path in kept:
        assert path.stat().st_size <= 100_000
        assert image.imread(path).shape[1] <= 1000
