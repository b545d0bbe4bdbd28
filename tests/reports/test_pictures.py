"""Pictures by what they hold: data, units, labels and legends of matplotlib's objects."""

import math

import pytest

import tilewright as tw
from tilewright import train as job
from tilewright._report import figures
from tilewright.cli import picture, picture_train
from tilewright.runtime import timeline

pytest.importorskip("matplotlib")


@pytest.fixture
def drawn(monkeypatch):
    """The figures that would be written."""
    saved = []
    monkeypatch.setattr(figures, "save", lambda figure, path: saved.append(figure))
    return saved


def run_of(epochs, kernel="auto", seconds=0.5):
    run = job.Run("digits", job.Options(epochs=epochs, kernel=kernel), threads=1)
    for i in range(epochs):
        run.epochs.append(job.Epoch(i + 1, 1 / (i + 1), 0.9 + i / 100, seconds, 1000 / seconds))
    return run


def ticks(axis):
    axis.figure.draw_without_rendering()
    return [label.get_text() for label in axis.get_ticklabels() if label.get_text()]


class TestTraining:
    def test_loss_and_accuracy_over_epochs_and_time(self, drawn):
        losses = picture_train.Losses()
        for epoch in range(1, 5):
            for batch in range(1, 201):
                now = job.Progress("auto", epoch, batch, 200, 9.0, 9.0, batch_loss=1 / epoch)
                losses.add(now)
        picture_train.draw_training("x.png", run_of(4), losses)
        (figure,) = drawn
        above, below = figure.axes
        (batches,) = above.get_lines()
        assert len(batches.get_xdata()) <= 250
        assert batches.get_xdata()[-1] == pytest.approx(4, abs=0.02)
        assert batches.get_ydata()[0] == 1.0
        assert batches.get_ydata()[-1] == 0.25
        (stairs,) = above.patches
        assert list(stairs.get_data().values) == [1, 1 / 2, 1 / 3, 1 / 4]
        assert [t.get_text() for t in above.get_legend().get_texts()] == [
            "mean of 4 batches",
            "mean of each epoch",
        ]
        (accuracy,) = below.get_lines()
        assert list(accuracy.get_xdata()) == [1, 2, 3, 4]
        assert list(accuracy.get_ydata()) == pytest.approx([90, 91, 92, 93])
        assert all(text.endswith(" %") for text in ticks(below.yaxis))
        assert all(text.isdigit() for text in ticks(below.xaxis))
        (seconds,) = above.child_axes
        assert seconds.get_xlabel().startswith("training time, s ")
        figure.draw_without_rendering()
        assert seconds.get_xlim()[1] == pytest.approx(2.0, rel=0.02)

    @pytest.mark.parametrize("loss", [math.nan, math.inf, 0.0])
    def test_one_epoch_that_diverged(self, tmp_path, loss):
        losses = picture_train.Losses()
        losses.add(job.Progress("auto", 1, 1, 1, loss, 9.0, loss))
        run = job.Run("digits", job.Options(epochs=1), 1)
        run.epochs.append(job.Epoch(1, loss, 0.1, 1e-9, 1e9))
        picture_train.draw_training(str(tmp_path / "x.png"), run, losses)
        assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")

    def test_the_ladder_has_a_colour_for_each_rung(self, drawn):
        kernels = [*tw.kernels.names("matmul"), "auto"]
        runs = [run_of(3, kernel, 0.001 * 10**i) for i, kernel in enumerate(kernels[:4])]
        runs += [run_of(3, kernel) for kernel in kernels[4:]]
        runs.insert(2, job.Run("digits", job.Options(kernel="naive"), 1, error="refused"))
        picture_train.draw_ladder("x.png", "digits", runs)
        (figure,) = drawn
        speed, loss, accuracy = figure.axes
        assert [label.get_text() for label in speed.get_yticklabels()] == kernels
        colours = [bar.get_facecolor() for bar in speed.patches]
        assert len({tuple(colour) for colour in colours}) == len(kernels)
        assert [bar.get_width() for bar in speed.patches][:2] == pytest.approx([1e6, 1e5])
        for axes in (loss, accuracy):
            assert [line.get_label() for line in axes.get_lines()] == kernels
            assert axes.get_lines()[1].get_xdata() == pytest.approx([0.01, 0.02, 0.03])
            assert not any("e" in text or "^" in text for text in ticks(axes.xaxis))
        assert [t.get_text() for t in accuracy.get_legend().get_texts()] == kernels


@pytest.mark.parametrize("largest", [5, 1_000_000, 2.5e9])
@pytest.mark.parametrize("smallest", [1.0, 0.9])
def test_bars_have_ticks_without_powers_of_ten(drawn, largest, smallest):
    values = [largest * smallest, largest] if smallest < 1 else [1.0, largest]
    picture.bars("x.png", "title", "images a second", ["a", "b"], values, mark=1.0)
    (axes,) = drawn[0].axes
    assert axes.get_xlabel() == "images a second"
    assert [bar.get_width() for bar in axes.patches] == values
    assert not any("e" in text or "^" in text for text in ticks(axes.xaxis))


def record(number, worker, start, end, state="completed", name=""):
    return {
        "id": number, "name": name, "state": state, "worker": worker, "submitted_ns": 0,
        "started_ns": start, "ended_ns": end, "quality": "burstable", "estimate_bytes": 0,
        "peak_use_bytes": 0,
    }  # fmt: skip


class TestTimelines:
    def test_long_names_stand_in_a_key_and_never_over_one_another(self):
        records = [
            record(i, i % 2, 10**6 * i, 10**6 * (i + 2), name=f"a long name of task {i}")
            for i in range(50)
        ]
        figure = timeline.timeline_figure(records)
        _, rows, key = figure.axes
        assert [text.get_text().split("  ")[1] for text in key.texts] == [
            f"a long name of task {i}" for i in range(50)
        ]
        assert {text.get_text() for text in rows.texts} <= {str(i + 1) for i in range(50)}
        figure.draw_without_rendering()
        for bar in rows.patches[:50]:
            box = bar.get_window_extent()
            inside = [t for t in rows.texts if box.contains(*t.get_window_extent().p0)]
            assert all(box.contains(*t.get_window_extent().p1) for t in inside)
        assert rows.get_xlabel() == "time since the first was submitted, ms"

    def test_few_short_names_stand_in_their_spans(self):
        figure = timeline.timeline_figure(
            [record(1, 0, 0, 9, name="one"), record(2, 1, 0, 9, "failed", "two")]
        )
        above, rows = figure.axes
        assert [text.get_text() for text in rows.texts] == ["one", "two"]
        assert above.get_title(loc="left") == "2 tasks: 1 completed, 1 failed"
        legend = [text.get_text() for text in rows.get_legend().get_texts()]
        assert legend == ["completed", "failed"]

    def test_the_key_ends_where_a_picture_does(self):
        records = [record(i, 0, i, i + 1, name=f"task number {i}") for i in range(500)]
        key = timeline.timeline_figure(records).axes[2]
        assert len(key.texts) == 120
        assert key.texts[-1].get_text() == "and 381 more: see the trace (.json)"

    @pytest.mark.parametrize("records", [[], [record(1, None, None, 5, "cancelled")]])
    def test_nothing_ran(self, tmp_path, records):
        timeline.draw_timeline(records, tmp_path / "x.png")
        assert (tmp_path / "x.png").exists()


class TestMemory:
    def test_bytes_and_times_in_fitting_units(self):
        log = tw.memory.Timeline(10)
        for i, (live, ns) in enumerate([(2**21, 0), (2**22, 3_000_000), (2**20, 9_000_000)]):
            log.events.append(
                {"kind": "allocate", "ns": ns, "block": i, "bytes": 1, "live_bytes": live, "op": ""}
            )
        (axes,) = log.figure().axes
        assert axes.get_ylabel() == "tensors, MiB"
        assert axes.get_xlabel() == "time since the log began, ms"
        assert axes.get_title(loc="left") == "Memory of tensors: 4 MiB at most"
        (live,) = axes.get_lines()
        assert list(live.get_xdata()) == [0, 3, 9]
        assert list(live.get_ydata()) == [2, 4, 1]

    def test_nothing_happened(self, tmp_path):
        tw.memory.Timeline(1).plot(tmp_path / "x.svg")
        assert "no event" in (tmp_path / "x.svg").read_text()


class TestFiles:
    def test_a_picture_that_fails_leaves_the_old_one(self, tmp_path, monkeypatch):
        target = tmp_path / "x.png"
        target.write_bytes(b"old")
        figure = figures.figure(1, 1)
        with pytest.raises(ValueError, match="docx"):
            figures.save(figure, tmp_path / "x.docx")

        def fail(file, **_):
            file.write(b"half")
            raise OSError("disk full")

        monkeypatch.setattr(figure, "savefig", fail)
        with pytest.raises(OSError, match="disk full"):
            figures.save(figure, target)
        assert target.read_bytes() == b"old"
        assert [path.name for path in tmp_path.iterdir()] == ["x.png"]
