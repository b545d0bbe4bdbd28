"""Pages of reports: what they hold, what they escape, and that they ask for nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from dataclasses import dataclass
from html.parser import HTMLParser

import pytest

import tilewright as tw
from tilewright import nn
from tilewright._inspect import roofline
from tilewright._inspect.machine_peaks import Peaks
from tilewright._report.html import charts, page, sections, tables
from tilewright.bench.harness import OURS, Result, Timing
from tilewright.bench.points import Points, write_points
from tilewright.cli import main
from tilewright.cli.commands import COMMANDS

EVIL = "<script>alert(1)</script>"


class Parsed(HTMLParser):
    """Elements with their attributes, the text outside of scripts, and the data of sections."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.data: list[object] = []
        self.scripts: list[str] = []
        # Rows of cells by the title of their section.
        self.tables: dict[str, list[list[str]]] = {}
        self._inside: list[str] = []
        self._rows: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        kind = dict(attrs).get("type")
        self._inside.append("data" if kind == "application/json" else tag)
        if tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside.pop()

    def handle_data(self, text: str) -> None:
        inside = self._inside[-1] if self._inside else ""
        if inside == "data":
            self.data.append(json.loads(text))
        elif inside == "script":
            self.scripts.append(text)
        elif inside != "style":
            self.texts.append(text)
        if inside == "h2":
            self._rows = self.tables.setdefault(text, [])
        elif inside in ("td", "th"):
            self._rows[-1][-1] = text

    def error(self, message: str) -> None:
        raise AssertionError(message)


# Elements without an end, which the parser's stack must not keep.
VOID = re.compile(r"<(meta|input)\b[^>]*>")


def parsed(text: str) -> Parsed:
    found = Parsed(VOID.sub("", text))
    found.elements += [(tag, {}) for tag in VOID.findall(text)]
    return found


def written(report, tmp_path) -> Parsed:
    report.to_html(tmp_path / "report.html")
    return parsed((tmp_path / "report.html").read_text())


def evil_model() -> nn.Module:
    """A module whose class, and so whose path in reports, is a script."""
    inner = type(EVIL, (nn.Linear,), {})
    return nn.Sequential(inner(4, 4), nn.ReLU())


@pytest.fixture
def reports():
    model = type(EVIL, (nn.Sequential,), {})(evil_model(), nn.Linear(4, 2))
    x = tw.ones((3, 4))
    with tw.profile() as profile, tw.memory.record() as log, tw.explain() as explained:
        model(x).sum().backward()
    return {"profile": profile, "explain": explained, "memory": log}


class TestTables:
    @pytest.mark.parametrize(
        ("text", "key"),
        [
            ("1.5 ms (2 ms)", 0.0015), ("12 µs", 12e-6), ("3 s", 3.0), ("1,024", 1024.0),
            ("-2.5", -2.5), ("1e-05", 1e-5), ("1.90x", 1.9), ("43% memory", 43.0), ("10/10", 10.0),
            ("2 KiB", 2048.0), ("0.50 MiB", 0.5 * 2**20), ("4 GB", 4e9), ("32.8 k", 32800.0),
            ("512x512", None), ("", None), ("-", None), ("avx512", None), ("3rd", None),
        ],
    )  # fmt: skip
    def test_numbers_of_cells(self, text, key):
        assert tables.sort_key(text) == (None if key is None else pytest.approx(key))

    def test_columns_of_numbers_have_keys(self):
        rows = [("a", "2 ms", "-"), ("b", "30 µs", "x"), ("c", "", "1")]
        found = parsed(tables.sortable(("name", "time", "mixed"), rows))
        heads = [attrs for tag, attrs in found.elements if tag == "th"]
        assert ["data-sort-method" in attrs for attrs in heads] == [False, True, False]
        keys = [float(a["data-sort"]) for _, a in found.elements if a.get("data-sort")]
        assert keys == pytest.approx([2e-3, 3e-5, -1])

    def test_long_tables_say_what_is_left_out(self):
        rows = [(str(i),) for i in range(tables.PAGE_ROWS + 5)]
        found = parsed(tables.sortable(("n",), rows))
        assert sum(tag == "tr" for tag, _ in found.elements) == tables.PAGE_ROWS + 1
        assert found.texts[-1] == "and 5 more rows"


class TestCharts:
    def test_thinned_lines_keep_their_ends_and_extremes(self, rng):
        points = [(float(i), float(v)) for i, v in enumerate(rng.normal(size=50_000))]
        kept = charts.thinned(points, 1000)
        assert len(kept) <= 1002
        assert set(kept) <= set(points)
        assert kept == sorted(kept)
        assert (kept[0], kept[-1]) == (points[0], points[-1])
        for extreme in (min, max):
            assert extreme(y for _, y in kept) == extreme(y for _, y in points)

    def test_close_spans_are_joined(self, rng):
        starts = sorted(rng.uniform(0, 1e9, 20_000))
        spans = [
            charts.Span(f"thread {i % 2}", start, 1e4, f"op {i % 3}", str(i))
            for i, start in enumerate(starts)
        ]
        found = charts.joined(spans, 500)
        assert 0 < len(found) <= 500
        counts = [re.match(r"(\d+) spans", span.text) for span in found]
        assert sum(int(count[1]) if count else 1 for count in counts) == len(spans)
        for span in spans:
            assert any(
                each.row == span.row
                and each.start_ns <= span.start_ns
                and each.start_ns + each.ns >= span.start_ns + span.ns
                for each in found
            )
        assert charts.joined(spans[:500], 500) == sorted(spans[:500], key=lambda s: s[:2])

    def test_frames_sum_up(self):
        root = sections.Frame("all")
        for path, value in ((("a", "b"), 3), (("a", "c"), 1), (("d",), 2), (("a", "b"), 4)):
            root.add(path, value)
        assert root.value == 10
        assert {name: frame.value for name, frame in root.inside.items()} == {"a": 8, "d": 2}
        assert {n: f.value for n, f in root.inside["a"].inside.items()} == {"b": 7, "c": 1}

    def test_waterfall(self):
        @dataclass
        class Row:
            name: str
            factor: float
            low: float
            high: float
            ms: float

        rows = [
            Row("plain", 1, 1, 1, 900.0),
            Row("tiles", 3, 2, 4, 300.0),
            Row("x", 0.5, 0, 1, 600),
        ]
        config = charts.Waterfall("Ablation", rows).config()
        (bars,) = config["data"]["datasets"]
        assert [each["x"] for each in bars["data"]][1:3] == [[300, 900], [300, 600]]
        assert bars["data"][-1]["x"][1] == 600
        assert "3.00 times as fast (2.00 to 4.00)" in bars["data"][1]["text"]
        assert config["options"]["scales"]["y"]["labels"] == [
            "1. plain", "2. tiles", "3. x", "4. all of it",
        ]  # fmt: skip
        assert charts.Waterfall("Ablation", []).body()


class TestPages:
    @pytest.mark.parametrize("name", ["profile", "explain", "memory"])
    def test_texts_of_users_are_texts(self, reports, name, tmp_path):
        found = written(reports[name], tmp_path)
        assert all("alert(1)" not in script for script in found.scripts)
        assert any(EVIL in text for text in [*found.texts, json.dumps(found.data)])
        assert not any(key[:2] == "on" for _, attrs in found.elements for key in attrs)

    @pytest.mark.parametrize("name", ["profile", "explain", "memory"])
    def test_nothing_is_asked_for(self, reports, name, tmp_path):
        found = written(reports[name], tmp_path)
        links = [a[k] for _, a in found.elements for k in ("src", "href", "action") if k in a]
        assert all(re.fullmatch(r"#s\d+", link) for link in links)
        text = (tmp_path / "report.html").read_text()
        (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
        allowed = re.findall(r"'sha256-([^']+)'", policy)
        sums = [
            base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in found.scripts
        ]
        assert allowed == sums
        assert policy.startswith("default-src 'none';")

    def test_profile(self, reports, tmp_path):
        profile = reports["profile"]
        found = written(profile, tmp_path)
        flame, timeline, *_ = found.data
        assert flame["value"] == pytest.approx(sum(op["ns"] for op in profile.ops))
        bars = [d for s in timeline["data"]["datasets"] if s["type"] == "bar" for d in s["data"]]
        assert len(bars) == len(profile.ops)
        assert {"By op", "By module", "By line", "Roofline"} <= set(found.texts)

    def test_steps_are_told(self, tmp_path):
        model = nn.Linear(4, 4)
        optimizer = tw.optim.Adam(model.parameters())
        with tw.profile() as report:
            for _ in range(3):
                optimizer.zero_grad()
                model(tw.ones((2, 4))).sum().backward()
                optimizer.step()
        found = written(report, tmp_path)
        head, *steps = found.tables["Steps"]
        assert head == ["step", "time", "in kernels", "ops", "most live bytes"]
        assert [row[0] for row in steps] == ["1", "2", "3"]
        assert sum(int(row[3]) for row in steps) == len(report.ops)
        assert all(0 < tables.sort_key(row[2]) < tables.sort_key(row[1]) for row in steps)
        bars = [bar for each in found.data[1]["data"]["datasets"] for bar in each["data"]]
        assert sorted(bar["text"][:7] for bar in bars if bar["y"] == "steps") == [
            "step 1:", "step 2:", "step 3:",
        ]  # fmt: skip

    def test_explain_names_choices_and_reasons(self, tmp_path):
        x = tw.ones((64, 64))
        with tw.explain() as report:
            x @ x.T
        _, *rows = written(report, tmp_path).tables["Choice of kernel"]
        assert len(rows) == len(report[0].candidates) > 5
        for row, candidate in zip(rows, report[0].candidates, strict=True):
            assert row[:3] == ["matmul", report[0].problem, candidate.name]
            assert (row[3] == "chosen") == candidate.chosen
            assert (row[3] == "refused") == (not candidate.accepted)
            assert candidate.accepted or row[6] == candidate.reason

    def test_memory_at_the_peak(self, tmp_path):
        with tw.memory.record() as log:
            a = tw.ones((1 << 18,))
            b = a + 1
            del a
            c = tw.exp(b[:16])
        found = written(log, tmp_path)
        rows = found.tables["Alive at the peak"][1:]
        assert [row[:2] for row in rows] == [["1.000 MiB", "full"], ["1.000 MiB", "add"]]
        assert [row[:3] for row in found.tables["By op"][1:]] == [
            ["full", "1", "1.000 MiB"], ["add", "1", "1.000 MiB"], ["exp", "1", "0.000 MiB"],
        ]  # fmt: skip
        del b, c

    def test_numbers_without_a_place_are_gaps(self, tmp_path):
        points = [charts.Point(1.0, math.nan, "a", "x"), charts.Point(math.inf, 2.0, "a", "y")]
        page.write(tmp_path / "x.html", "x", [charts.Scatter("x", "x", "y", points)])
        (data,) = parsed((tmp_path / "x.html").read_text()).data
        assert [p["y"] for p in data["data"]["datasets"][0]["data"]] == [None, 2.0]

    def test_names_that_are_no_text(self, tmp_path):
        page.write(tmp_path / "x.html", "a\udcff", [sections.Text("x", "b\udcfe")])
        assert "b\\udcfe" in parsed((tmp_path / "x.html").read_text()).texts

    @pytest.mark.parametrize("report", [tw.profile(), tw.explain(), tw.memory.Timeline(1)])
    def test_empty_reports(self, report, tmp_path):
        assert any(text.startswith("no ") for text in written(report, tmp_path).texts)
        assert "<script" not in report._repr_html_()

    def test_a_folder_that_is_not_there(self, reports, tmp_path):
        for report in reports.values():
            with pytest.raises(OSError, match="to_html"):
                report.to_html(tmp_path / "none" / "x.html")


class TestNotebooks:
    def test_no_script_and_no_markup_of_users(self, reports):
        model = evil_model()
        shown = [
            *reports.values(), model, nn.summary(model, (2, 4)), nn.LazyLinear(3),
            tw.memory.report(lambda: model(tw.ones((1, 4))).sum()),
        ]  # fmt: skip
        for each in shown:
            found = parsed(each._repr_html_())
            assert {tag for tag, _ in found.elements} <= {
                "div", "p", "b", "table", "thead", "tbody", "tr", "th", "td",
            }  # fmt: skip
            assert all(set(attrs) <= {"style"} for _, attrs in found.elements)
        assert EVIL in parsed(model._repr_html_()).texts

    def test_a_module_has_a_row_for_each_of_its_own(self):
        model = nn.Sequential(nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 2, bias=False)))
        texts = parsed(model._repr_html_()).texts
        assert texts[0] == "Sequential: 12 parameters"
        assert "3, 2, bias=True" in texts
        rows = [text.strip() for text in texts if text.startswith("  ")]
        assert rows == ["0", "1", "0"]

    def test_long_ones_are_cut(self):
        model = nn.Sequential(*[nn.ReLU() for _ in range(100)])
        assert "and 76 more rows" in parsed(model._repr_html_()).texts


OP = {"device": "cpu", "op": "add", "kernel": "vector", "problem": "float32 (4,)"}


class TestRoofline:
    def test_work_is_summed_by_problem(self):
        ops = [
            {**OP, "ns": 10.0, "flops": 40.0, "bytes": 20.0},
            {**OP, "ns": 30.0, "flops": 40.0, "bytes": 20.0},
            {**OP, "ns": 1.0, "flops": 4.0, "bytes": 2.0, "problem": "float64 (4,)"},
            {**OP, "ns": 1.0, "flops": 0.0, "bytes": 2.0, "problem": "copied"},
            {**OP, "ns": 1.0, "flops": 4.0, "bytes": 2.0, "device": "cuda"},
        ]
        first, second = roofline.work_of(ops)
        assert (first.calls, first.ns, first.intensity, first.gflops) == (2, 40.0, 2.0, 2.0)
        assert second.problem == "float64 (4,)"

    def test_picture(self, monkeypatch):
        pytest.importorskip("matplotlib")
        peaks = {"float32": Peaks(100e9, 10e9), "float64": Peaks(50e9, 10e9)}
        monkeypatch.setattr(
            "tilewright._inspect.machine_peaks.quick_peaks",
            peaks.__getitem__,
        )
        ops = [
            {**OP, "op": f"op{i}", "ns": float(i + 1), "flops": 40.0, "bytes": 20.0}
            for i in range(14)
        ]
        ops.append({**OP, "ns": 1.0, "flops": 4.0, "bytes": 2.0, "problem": "float64 (4,)"})
        figure = roofline.figure(ops, "Roofline")
        (axes,) = figure.axes
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        single, double = axes.get_lines()
        assert list(single.get_ydata())[1:] == [100, 100]
        assert list(single.get_xdata())[1] == 10
        assert list(double.get_ydata())[1:] == [50, 50]
        assert list(double.get_xdata())[1] == 5
        for line in (single, double):  # the slope is the bandwidth
            assert line.get_ydata()[0] == pytest.approx(10 * line.get_xdata()[0])
        assert sum(len(each.get_offsets()) for each in axes.collections) == len(ops)
        names = [text.get_text() for text in figure.legends[0].get_texts()]
        assert names[-1] == "others"
        assert names[2] == "op13"

    def test_a_roof_is_at_least_what_was_reached(self, monkeypatch):
        slow = Peaks(1e9, 1e9)
        monkeypatch.setattr("tilewright._inspect.machine_peaks.quick_peaks", lambda dtype: slow)
        work = roofline.work_of([{**OP, "ns": 2.0, "flops": 16.0, "bytes": 4.0}])
        (line,) = roofline.roofs(work).values()
        assert line[1:] == [(8.0, 8.0), (128.0, 8.0)]

    def test_files(self, reports, tmp_path):
        pytest.importorskip("matplotlib")
        for name in ("profile", "explain"):
            reports[name].roofline(tmp_path / f"{name}.png")
            assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


class TestCommands:
    def test_explain(self, tmp_path, capsys):
        target = tmp_path / "x.html"
        assert main(["explain", "matmul", "8x8x8", "--html", str(target)]) == 0
        assert f"page: {target}" in capsys.readouterr().out
        found = parsed(target.read_text())
        assert "tilewright explain matmul" in found.texts
        assert "Choice of kernel" in found.texts

    def test_profile(self, tmp_path, monkeypatch):
        program = tmp_path / "program.py"
        program.write_text(
            "import os, tilewright as tw\nos.mkdir('below')\nos.chdir('below')\ntw.ones((4,)) + 1\n"
        )
        monkeypatch.chdir(tmp_path)
        assert main(["profile", "--html", "x.html", str(program)]) == 0
        assert "Timeline" in parsed((tmp_path / "x.html").read_text()).texts
        assert main(["profile", "--html", "other.py", str(program)]) == 1

    def test_sweep(self, tmp_path):
        config = tmp_path / "sweep.toml"
        config.write_text('[sweep]\ndata = "digits"\nepochs = 1\n[grid]\nhidden = [8, 16]\n')
        target = tmp_path / "x.html"
        assert main(["sweep", "--config", str(config), "--html", str(target)]) == 0
        found = parsed(target.read_text())
        assert {"Sweep on digits", "Accuracy and time", "Workers"} <= set(found.texts)
        accuracy, workers = found.data
        assert sum(len(each["data"]) for each in accuracy["data"]["datasets"]) == 2
        assert sum(len(each["data"]) for each in workers["data"]["datasets"]) == 2

    def test_train(self, tmp_path):
        target = tmp_path / "x.html"
        command = ["train", "digits", "--epochs", "2", "--hidden", "8", "--html", str(target)]
        assert main(command) == 0
        found = parsed(target.read_text())
        assert [row[1] for row in found.tables["Epochs"]] == ["epoch", "1", "2"]
        assert len(found.data[0]["data"]["datasets"][0]["data"]) == 2

    def test_bench_points(self, tmp_path):
        timings = {OURS: Timing(1e-6, math.nan, 1), "numpy": Timing(3e-6, math.nan, 1)}
        results = [Result(f"{EVIL} 4x4", timings, 0.0, "", {})]
        write_points(tmp_path / "p.csv", Points({"machine": {}}, results))
        target = tmp_path / "x.html"
        command = ["bench", "pointwise", "--from", str(tmp_path / "p.csv"), "--html", str(target)]
        assert main(command) == 0
        found = parsed(target.read_text())
        assert f"{EVIL} 4x4" in found.texts
        ((point,), _) = (each["data"] for each in found.data[0]["data"]["datasets"])
        assert (point["x"], point["y"]) == (1, 3)

    @pytest.mark.parametrize("command", COMMANDS)
    def test_every_command_has_it(self, command, capsys):
        name = command.__name__.rpartition(".")[2]
        with pytest.raises(SystemExit):
            main([name, *["pointwise"] * (name == "bench"), "--help"])
        assert "--html FILE" in capsys.readouterr().out

    def test_a_target_that_cannot_be_written_ends_it_at_once(self, tmp_path, capsys):
        assert main(["info", "--html", str(tmp_path / "none" / "x.html")]) == 1
        assert "--html: cannot write" in capsys.readouterr().err
