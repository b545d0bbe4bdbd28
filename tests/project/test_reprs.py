"""What public objects print: their contents, never an address."""

import inspect
import re

import pytest

import tilewright as tw
from tilewright import train as job


def objects():
    """One of each public class that a user gets hold of."""
    x = tw.ones((2,), requires_grad=True)
    yield x, x * 2, tw.float32, tw.Generator(3)
    yield tw.memory.Pool(), tw.memory.Pool(quota_bytes=1 << 20), tw.memory.allocate(64)
    yield tw.memory.record(), tw.memory.record(7), tw.memory.Timeline(3)
    yield tw.memory.report(lambda: tw.exp(x).sum())
    yield (tw.explain(),)
    yield tw.nn.Linear(2, 2), tw.nn.Sequential(tw.nn.ReLU()), tw.nn.Parameter(tw.ones((2,)))
    yield tw.optim.SGD([x]), tw.optim.Adam([x]), tw.optim.Adagrad([x])
    yield tw.data.DataLoader(tw.arange(3)), tw.data.TensorDataset(tw.arange(3), tw.ones((3, 2)))
    yield tw.data.DataLoader([1, 2, 3]), tw.data.digits()
    handle = x.register_hook(tw.exp)
    yield (handle,)
    handle.remove()
    yield (handle,)
    with tw.runtime.Scheduler() as scheduler:
        task = scheduler.submit(int)
        yield scheduler, task
    with tw.memory.record() as log:
        (x * 2).sum().backward()
    yield (log,)
    with tw.explain() as report:
        x + 1
    yield report, report[0]
    yield job.Options(), job.Run("digits", job.Options(), 1), tw.train.load_task("digits")


def test_no_address():
    for group in objects():
        for each in group:
            for text in (repr(each), str(each)):
                assert text
                assert not re.search(r"\b0x[0-9a-f]{6,}", text), text


def test_files(tmp_path):
    tw.save({"x": tw.ones((4, 2))}, tmp_path / "x")
    rows = tw.data.FileTensor.from_safetensors(tmp_path / "x", "x")
    _, event = rows.gather(tw.asarray([1]))
    event.wait()
    assert repr(event) == "<TransferEvent: completed>"
    assert "0x" not in repr(rows) + repr(rows._file) + repr(tw.data.DataLoader(rows))


def test_a_log_prints_a_table():
    x = tw.ones((512, 1024))
    with tw.memory.record() as log:
        y = x + 1
        z = y @ y.T
    lines = str(log).splitlines()
    assert lines[0].split() == ["op", "allocations", "MiB"]
    by_op = {line.split()[0]: line.split()[1:] for line in lines[1:-1]}
    assert by_op["add"] == ["1", "2.00"]
    assert by_op["matmul"] == ["1", "1.00"]
    assert re.fullmatch(r"at most \d+\.\d\d MiB live at one time", lines[-1])
    assert repr(log) == f"<Timeline: {len(log)} events>"
    assert str(tw.memory.Timeline(1)) == "no memory event"
    del z


def test_record_shows_how_it_is_used():
    assert repr(tw.memory.record(5)) == "<memory.record: with tw.memory.record(5) as timeline: ...>"
    assert inspect.signature(tw.memory.record).parameters["capacity"].default == 100_000
    for capacity, error in ((0, ValueError), (-1, ValueError), ("a", TypeError), (True, TypeError)):
        with pytest.raises(error, match="record: capacity"):
            tw.memory.record(capacity)


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda: None, TypeError, "must return its loss, a tensor, got NoneType"),
        (lambda: 3.0, TypeError, "must return its loss, a tensor, got float"),
        (lambda: tw.ones((2,)).sum(), ValueError, "records no gradient"),
        (lambda: tw.ones((2,), requires_grad=True) * 2, ValueError, r"has shape \(2,\); reduce it"),
        (3, TypeError, "function must be a function that builds a loss, got int"),
        (None, TypeError, "function must be a function that builds a loss, got NoneType"),
    ],
)
def test_what_is_no_step(function, error, text):
    with pytest.raises(error, match=f"memory.report: .*{text}"):
        tw.memory.report(function)


def test_torch_must_be_a_function_too():
    x = tw.ones((2,), requires_grad=True)
    with pytest.raises(TypeError, match=r"memory\.report: torch must be a function .* got int"):
        tw.memory.report(x.sum, torch=3)
