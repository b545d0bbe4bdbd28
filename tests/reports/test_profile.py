"""tw.profile and the stream of events behind it: what is observed, of which threads, summed."""

from __future__ import annotations

import gc
import json
import os
import signal
import threading
import time

import pytest

import tilewright as tw
from tilewright import _core
from tilewright._inspect import steps
from tilewright.cli import main

PROGRAM = """
import sys
import tilewright as tw
x = tw.ones((32, 32))
print((x @ x).sum().item(), sys.argv[1:], __name__)
"""


def line_of(text: str) -> int:
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, 1) if line.strip() == text)


class TestEvents:
    def test_of_ops(self):
        x = tw.ones((64, 64))
        before = time.perf_counter_ns()
        with tw.profile() as report:
            y = tw.exp(x) @ x
        after = time.perf_counter_ns()
        assert y.shape == (64, 64)
        assert [op["op"] for op in report.ops] == ["exp", "matmul"]
        exp, matmul = report.ops
        assert exp["thread"] == threading.get_native_id()
        assert exp["device"] == "cpu"
        assert exp["module"] == ""
        assert exp["source"] == f"{__file__}:{line_of('y = tw.exp(x) @ x')}"
        assert 0 <= exp["start_ns"] <= exp["start_ns"] + exp["ns"] <= matmul["start_ns"]
        assert matmul["start_ns"] + matmul["ns"] <= report.wall_ns <= after - before
        assert matmul["kernel"] in tw.kernels.names("matmul")
        assert matmul["flops"] == 2 * 64**3

    def test_memory_of_an_op_carries_its_name(self):
        x = tw.ones((1000,))
        with tw.profile() as report:
            y = x + x
            del y
        kinds = [(event["kind"], event["op"]) for event in report.events]
        assert kinds == [("allocate", "add"), ("op", "add"), ("release", "")]

    def test_modules_by_their_path(self):
        class Model(tw.nn.Module):
            def __init__(self):
                self.layers = [tw.nn.Linear(3, 3)]
                self.body = tw.nn.Sequential(tw.nn.Linear(3, 3), tw.nn.ReLU())

            def forward(self, x):
                return self.body(tw.exp(self.layers[0](x)))

        model, x = Model(), tw.ones((2, 3))
        with tw.profile() as report:
            y = model(x) * 2
        assert y.shape == (2, 3)
        modules = {op["op"]: op["module"] for op in report.ops}
        assert modules["exp"] == "Model"
        assert modules["relu"] == "Model.body.1"
        assert modules["multiply"] == ""
        assert "Model.body.0" in report.by("module")
        assert "Linear" in report.by("module")  # a list is no module: the layer stands for itself

    def test_modules_that_call_themselves_and_many(self):
        class Twice(tw.nn.Module):
            def __init__(self):
                self.layer = tw.nn.ReLU()

            def forward(self, x, depth=2):
                return self(self.layer(x), depth - 1) if depth else self.layer(x)

        with tw.profile() as report:
            Twice()(tw.ones((2,)))
            tw.nn.Sequential(*[tw.nn.ReLU() for _ in range(500)])(tw.ones((2,)))
        assert report.by("module")["Twice.layer"].calls == 3
        assert report.by("module")["Sequential.499"].calls == 1

    def test_attributes_that_threads_change_meanwhile(self):
        class Model(tw.nn.Module):
            def __init__(self):
                self.layers = tw.nn.ModuleList([tw.nn.ReLU() for _ in range(50)])

            def forward(self, x):
                name = f"note{threading.get_ident()}"
                setattr(self, name, 1)
                for layer in self.layers:
                    x = layer(x)
                delattr(self, name)
                return x

        model, x, errors = Model(), tw.ones((2,)), []

        def work():
            try:
                for _ in range(30):
                    model(x)
            except BaseException as error:
                errors.append(error)

        with tw.profile():
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert errors == []

    def test_a_dry_backward_is_none(self):
        x = tw.ones((4, 4), requires_grad=True)
        y = (tw.exp(x) @ x).sum()
        with tw.profile() as eager:
            y.backward(retain_graph=True)
        with tw.profile() as planned:
            y.backward(plan=True)
        assert len(planned.ops) <= len(eager.ops) + 3  # adding to the gradient that is there

    def test_gradients_carry_line_and_module_of_their_op(self):
        class Model(tw.nn.Module):
            def forward(self, x):
                return tw.exp(x)  # whose gradient is one op

        x = tw.ones((3,), requires_grad=True)
        with tw.profile() as report:
            y = Model()(x).sum()
            y.backward()
        (gradient,) = (op for op in report.ops if op["op"].startswith("exp_backward"))
        assert gradient["backward"]
        assert gradient["module"] == "Model"
        line = line_of("return tw.exp(x)  # whose gradient is one op")
        assert gradient["source"] == f"{__file__}:{line}"
        assert not any(op["backward"] for op in report.ops if op["op"] in ("exp", "sum"))
        assert all(op["source"] for op in report.ops)

    def test_gradients_of_functions_carry_their_own_lines(self):
        class Double(tw.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return tw.square(g)  # in a function's own backward

        x = tw.ones((3,), requires_grad=True)
        with tw.profile() as report:
            Double.apply(x).sum().backward()
        (own,) = (op for op in report.ops if op["op"] == "square")
        line = line_of("return tw.square(g)  # in a function's own backward")
        assert own["source"] == f"{__file__}:{line}"
        assert own["backward"]

    def test_gradients_of_ops_that_were_not_observed_have_no_module(self):
        x = tw.ones((3,), requires_grad=True)
        y = tw.exp(x).sum()
        with tw.profile() as report:
            y.backward()
        assert {op["module"] for op in report.ops} == {""}
        assert {op["source"].rpartition(":")[0] for op in report.ops} == {__file__}

    def test_repeated_calls_tell_the_same_as_the_first(self):
        x = tw.ones((4, 4))
        tw.exp(x)  # kept while nobody observed
        with tw.profile() as report:
            for _ in range(4):
                tw.exp(x)
                x @ x
        told = ("kernel", "isa", "problem", "flops", "bytes", "device", "module")
        for op in ("exp", "matmul"):
            same = {tuple(event[key] for key in told) for event in report.ops if event["op"] == op}
            assert len(same) == 1
        assert report.ops[0]["problem"] == "float32 (4, 4)"

    def test_a_module_that_raises_ends_its_path(self):
        layer = tw.nn.Linear(3, 3)
        with tw.profile() as report:
            with pytest.raises(ValueError, match="linear"):
                layer(tw.ones((2, 4)))
            tw.exp(tw.ones((2,)))
        assert report.ops[-1]["module"] == ""

    def test_all_threads_and_tasks(self):
        x = tw.ones((8, 8))
        with tw.profile() as report, tw.runtime.Scheduler(workers=2) as scheduler:
            task = scheduler.submit(lambda: tw.exp(x), name="other")
            other = threading.Thread(target=lambda: tw.log(x))
            other.start()
            other.join()
            task.result()
        threads = {op["op"]: op["thread"] for op in report.ops}
        assert len({threads["exp"], threads["log"], threading.get_native_id()}) == 3
        (told,) = (event for event in report.events if event["kind"] == "task")
        assert (told["op"], told["state"]) == ("other", "completed")
        assert told["thread"] == threads["exp"]
        (exp,) = (op for op in report.ops if op["op"] == "exp")
        assert told["start_ns"] <= exp["start_ns"]
        assert told["start_ns"] + told["ns"] >= exp["start_ns"] + exp["ns"]

    def test_devices(self):
        x = tw.ones((4,), device="null")
        with tw.profile() as report:
            tw.exp(x)
        assert [op["device"] for op in report.ops] == ["null"]

    def test_a_large_op_tells_its_line_too(self):  # it gives Python's lock away
        x = tw.ones((1 << 20,))
        with tw.profile() as report:
            tw.exp(x)
        assert report.ops[0]["source"].startswith(__file__)

    def test_replays_are_observed(self):
        x = tw.ones((4,))
        captured = _core._capture(lambda x: tw.exp(x) + 1, [x])
        with tw.profile() as report:
            captured.replay([x])
        assert [op["op"] for op in report.ops] == ["exp", "add"]


class TestObservers:
    def test_nest_and_overlap(self):
        x = tw.ones((3,))
        with tw.profile() as outer, tw.explain() as explained, tw.memory.record() as timeline:
            x + x
            with tw.profile() as inner, tw.memory.record() as inside:
                x * x
            x - x
        assert [op["op"] for op in inner.ops] == ["multiply"]
        assert [op["op"] for op in outer.ops] == ["add", "multiply", "subtract"]
        assert [entry.op for entry in explained] == ["add", "multiply", "subtract"]
        assert [event["op"] for event in inside.events] == ["multiply", ""]
        assert len(timeline.events) == 6
        assert timeline.events[-1]["live_bytes"] == timeline.events[0]["live_bytes"] - 64

    def test_nothing_is_observed_afterwards(self):
        with tw.profile() as report:
            pass
        tw.exp(tw.ones((3,)))
        assert report.events == []
        assert not _core._observed()

    def test_one_that_is_dropped_hears_no_more(self):
        observing = _core._Observing(["op"], everywhere=True)
        assert _core._observed()
        del observing
        assert not _core._observed()

    def test_bits_are_those_of_unobserved_ops(self):
        def step():
            tw.manual_seed(3)
            w = tw.randn(20, 20, requires_grad=True)
            x = tw.randn(5, 20)
            tw.cross_entropy(tw.dropout(x @ w, 0.3), tw.randint(0, 20, (5,))).backward()
            return w.grad.tolist()

        plain = step()
        with tw.profile():
            assert step() == plain

    def test_threads_that_start_and_stop_observing_side_by_side(self):
        x, wrong = tw.ones((4,)), []

        def work():
            for _ in range(100):
                with tw.profile() as report, tw.explain() as own:
                    x + x
                me = threading.get_native_id()
                if [op["op"] for op in report.ops if op["thread"] == me] != ["add"] or len(
                    own
                ) != 1:
                    wrong.append(report.ops)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert not _core._observed()

    def test_signals_are_not_lost(self):
        class StopError(Exception):
            pass

        def stop(number, frame):
            raise StopError

        before = signal.signal(signal.SIGUSR1, stop)
        x, seen = tw.ones((4,)), 0
        try:
            with tw.profile(capacity=100), tw.explain():
                for _ in range(50):
                    try:
                        threading.Thread(
                            target=lambda: os.kill(os.getpid(), signal.SIGUSR1)
                        ).start()
                        deadline = time.monotonic() + 5
                        while time.monotonic() < deadline:
                            x + x
                    except StopError:
                        seen += 1
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert seen == 50

    def test_spills_while_garbage_is_collected(self, tmp_path):
        class Cycle:
            pass

        threshold = gc.get_threshold()
        pool = tw.memory.Pool(quota_bytes=4 << 20, spill_dir=tmp_path)
        try:
            gc.set_threshold(1)
            with tw.profile(capacity=1000), pool:
                xs = [tw.full((256, 1024), float(i)) for i in range(8)]
                for i in range(300):
                    cycle = Cycle()
                    cycle.me, cycle.tensor = cycle, xs[i % 8] + 1
                    del cycle
        finally:
            gc.set_threshold(*threshold)

    def test_misuse(self):
        with pytest.raises(TypeError, match="capacity is a whole number"):
            tw.profile("x")
        with pytest.raises(ValueError, match="capacity must be at least 1"):
            tw.profile(0)
        with tw.profile() as report, pytest.raises(RuntimeError, match="is running"):
            report.__enter__()
        with pytest.raises(ValueError, match="sums are by op, kernel"):
            report.by("colour")


class TestSums:
    def test_add_up(self):
        x = tw.ones((16, 16))
        with tw.profile() as report:
            for _ in range(3):
                x @ x
            tw.exp(x)
        totals = report.by("op")
        assert totals["matmul"].calls == 3
        assert totals["matmul"].flops == 3 * 2 * 16**3
        for key in ("op", "kernel", "source", "thread"):
            assert sum(total.ns for total in report.by(key).values()) == pytest.approx(
                sum(op["ns"] for op in report.ops)
            )
        assert [total.ns for total in totals.values()] == sorted(
            (total.ns for total in totals.values()), reverse=True
        )

    def test_printed(self):
        with tw.profile() as report:
            tw.nn.Linear(4, 4)(tw.ones((2, 4)))
        text = str(report)
        assert "in kernels" in text.splitlines()[0]
        assert "linear" in text
        assert "module" in text
        assert repr(report).startswith("<profile: ")
        assert str(tw.profile()) == "no op ran"

    def test_the_oldest_go_first(self):
        x = tw.ones((3,))
        with tw.profile(capacity=2) as report:
            for _ in range(5):
                x += 1
        assert len(report.events) == 2
        assert report.dropped == 3
        assert "the oldest 3 events" in str(report)


class TestSteps:
    def train(self, steps, step=None, others=()):
        w = tw.ones((4,), requires_grad=True)
        optimizer = tw.optim.SGD([w], lr=0.1)
        with tw.profile(step=optimizer if step else None) as report:
            for _ in range(steps):
                (w * w).sum().backward()
                optimizer.step()
                for other in others:
                    other.step()
        return report

    def test_end_with_the_optimizer_s(self):
        report = self.train(5)
        assert len(report.steps) == 5
        assert sum(step.ops for step in report.steps) == len(report.ops)
        assert len({step.ops for step in report.steps[1:]}) == 1
        starts = [step.start_ns for step in report.steps]
        assert starts[0] == 0
        assert starts[1:] == [step.start_ns + step.ns for step in report.steps[:-1]]
        assert all(0 < step.kernels_ns <= step.ns for step in report.steps)
        assert str(report).splitlines()[1].startswith("5 steps: median ")
        assert len(report.as_dict()["steps"]) == 5

    def test_of_several_optimizers_those_of_one(self):
        other = tw.optim.SGD([tw.ones((2,), requires_grad=True)], lr=0.1)
        assert len(self.train(3, others=(other,)).steps) == 3
        assert len(self.train(3, step=True, others=(other, other)).steps) == 3

    def test_marked_by_hand(self):
        with tw.profile() as report:
            for _ in range(4):
                tw.exp(tw.ones((3,)))
                report.mark_step()
        assert [step.ops for step in report.steps] == [2] * 4
        with pytest.raises(tw.StateError, match="within the block"):
            report.mark_step()
        with pytest.raises(TypeError, match="step is an optimizer"):
            tw.profile(step="adam")
        assert tw.profile().steps == []

    def test_the_first_are_told_apart(self):
        ends = [90, 110, 120, 130, 141, 150]
        found = steps.split(ends, [{"start_ns": 95, "ns": 4}, {"start_ns": 149, "ns": 5}])
        assert [step.warms_up for step in found] == [True, True, False, False, False, False]
        assert [step.kernels_ns for step in found] == [0, 4, 0, 0, 0, 5]
        text = steps.text(found)
        assert text.startswith("6 steps: median 10 ns, p95 11 ns, 12% of it in kernels")
        assert text.endswith("which warm up: 90 ns, 20 ns")


class TestCost:
    def test_is_told_and_subtracted(self):
        x = tw.ones((1,))
        with tw.profile() as report:
            for _ in range(1000):
                tw.exp(x)
        assert 0 < report.observing.inside_ns < report.observing.event_ns * 3
        assert "for observing" in report.summary
        assert all(op["ns"] >= 0 for op in report.ops)
        assert report.as_dict()["observing"]["event_ns"] == report.observing.event_ns


class TestFiles:
    def test_a_trace(self, tmp_path):
        x = tw.ones((3,))
        with tw.profile() as report:
            x + x
        report.trace(tmp_path / "trace.json")
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        spans = [event for event in events if event["ph"] == "X"]
        assert [span["name"] for span in spans] == ["add"]
        assert spans[0]["tid"] == threading.get_native_id()
        assert spans[0]["dur"] == report.ops[0]["ns"] / 1e3
        assert [event["ph"] for event in events].count("C") == 2
        assert all({"name", "ts", "pid", "tid"} <= set(event) for event in events)

    def test_a_picture(self, tmp_path):
        with tw.profile() as report:
            tw.ones((3,)) + 1
        report.plot(tmp_path / "profile.svg")
        text = (tmp_path / "profile.svg").read_text()
        assert "in kernels" in text
        assert "add" in text
        tw.profile().plot(tmp_path / "empty.png")
        assert (tmp_path / "empty.png").read_bytes().startswith(b"\x89PNG")


class TestCommand:
    def test_runs_a_program(self, tmp_path, capsys):
        program = tmp_path / "program.py"
        program.write_text(PROGRAM)
        trace, told = tmp_path / "t.json", tmp_path / "told.json"
        command = ["profile", "--trace", str(trace), "--json", str(told), "--by", "kernel"]
        assert main([*command, str(program), "--option", "x"]) == 0
        captured = capsys.readouterr()
        assert captured.out == "32768.0 ['--option', 'x'] __main__\n"
        assert "kernel" in captured.err
        assert "in kernels" in captured.err
        sums = json.loads(told.read_text())["sums"]
        assert {entry["op"] for entry in sums["op"]} >= {"matmul", "sum"}
        assert json.loads(trace.read_text())["traceEvents"]

    def test_the_program_s_end_is_the_command_s(self, tmp_path, capsys):
        program = tmp_path / "program.py"
        program.write_text("import sys\nsys.exit(3)")
        assert main(["profile", str(program)]) == 3
        program.write_text("import sys\nsys.exit('not today')")
        assert main(["profile", str(program)]) == 1
        assert "not today" in capsys.readouterr().err
        program.write_text("import tilewright as tw\ntw.exp(tw.ones((3,)))\nraise KeyError('x')")
        assert main(["profile", str(program)]) == 1
        told = capsys.readouterr().err
        assert f'File "{program}", line 3' in told
        assert "KeyError: 'x'" in told
        assert "exp" in told

    def test_the_program_s_threads_are_waited_for(self, tmp_path, capsys):
        program = tmp_path / "program.py"
        program.write_text(
            "import threading, time\nimport tilewright as tw\nx = tw.ones((3,))\n"
            "threading.Thread(target=lambda: (time.sleep(0.2), tw.exp(x))).start()"
        )
        assert main(["profile", str(program)]) == 0
        assert "exp" in capsys.readouterr().err

    def test_a_program_is_no_target(self, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "train.py").write_text("import os\nos.mkdir('sub')\nos.chdir('sub')")
        for option in ("--json", "--trace", "--plot"):
            assert main(["profile", option, "train.py", "train.py"]) == 1
            assert "would write over a program" in capsys.readouterr().err
        assert (tmp_path / "train.py").read_text().startswith("import os")
        assert main(["profile", "--trace", "t.json", "train.py"]) == 0
        assert (tmp_path / "t.json").exists()  # though the program went elsewhere

    def test_bad_targets_are_told_before_the_program_runs(self, tmp_path, capsys):
        program = tmp_path / "program.py"
        program.write_text("print('ran')")
        assert main(["profile", "--trace", str(tmp_path / "no" / "t.json"), str(program)]) == 1
        assert main(["profile", str(tmp_path / "none.py")]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "cannot write" in captured.err
        assert "no program" in captured.err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_goes_on_for_itself():
    x = tw.ones((3,))
    with tw.profile() as report:
        child = os.fork()
        if child == 0:
            x * x
            with tw.profile() as own:
                x - x
            right = own.ops[0]["thread"] == threading.get_native_id()
            os._exit(0 if right and [op["op"] for op in own.ops] == ["subtract"] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        x + x
    assert [op["op"] for op in report.ops] == ["add"]
