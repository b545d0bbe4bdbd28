"""`tilewright bench ops`: the same work in each library, results that are kept, the picture."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from subcases import each

import tilewright as tw
from tilewright.bench import ops
from tilewright.bench.harness import OURS, Result, Timing
from tilewright.bench.peers import load_peers
from tilewright.cli import main
from tilewright.cli.kept_results import KeptResults
from tilewright.cli.picture_ops import draw_ops, ops_figure

torch = pytest.importorskip("torch")
ALL = ops.all_ops()
PEERS = {"torch": torch, "numpy": np}


def result(name, ratio=2.0):
    timings = {OURS: Timing(1, 1, 1), "torch": Timing(ratio, ratio, 1)}
    return Result(name, timings, 0, "", {})


@each(("name", "layout"), [(op.name, layout) for op in ALL.values() for layout in op.layouts])
def test_libraries_compute_the_same(name, layout):
    op = ALL[name]
    dtype = op.dtypes[0]
    problem = ops.Problem(name, dtype, layout, 8, False)
    arrays = ops.arrays_of(op, problem)
    ours = np.asarray(op.call(OURS, tw)(*arrays))
    found = 0
    for library, module in PEERS.items():
        try:
            function = op.call(library, module)
        except AttributeError:
            continue
        given = [x.numpy() if library == "numpy" else torch.from_numpy(x.numpy()) for x in arrays]
        np.testing.assert_allclose(ours, np.asarray(function(*given)), 1e-4, 1e-5)
        found += 1
    assert found


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32"])
def test_libraries_compute_in_the_type_that_is_told(dtype):
    problem = ops.Problem("add", dtype, "contiguous", 64, False)
    (x, y) = ops.arrays_of(ALL["add"], problem)
    for library, module in load_peers(("torch", "numpy", "jax"), 1).modules.items():
        if (library, dtype) == ("numpy", "bfloat16"):
            continue
        given = [ops.argument_of(library, module, a, problem) for a in (x, y)]
        found = ALL["add"].call(library, module)(*given)
        assert {str(a.dtype).removeprefix("torch.") for a in (*given, found)} == {dtype}


def test_a_new_row_of_the_table_is_measured():
    rows = {row["name"] for row in tw._core.pointwise_table() if row["arity"] < 3}
    assert {name for name in rows if hasattr(tw, name)} <= set(ALL)


def test_problems():
    found = [str(p) for p in ops.problems_of(ALL["exp"], (64, 256), ops.LAYOUTS, ("float32",))]
    assert found == [
        "exp float32 64 contiguous",
        "exp float32 64 contiguous +backward",
        "exp float32 256x256 contiguous",
        "exp float32 256x256 contiguous +backward",
        "exp float32 256x256 transposed",
        "exp float32 256x256 transposed +backward",
    ]
    assert not list(ops.problems_of(ALL["exp"], (64,), ops.LAYOUTS, ("int32",)))
    assert not list(ops.problems_of(ALL["contiguous"], (64,), ops.LAYOUTS, ops.DTYPES))


def test_arguments_lie_as_the_layout_says():
    case = next(ops.op_cases(PEERS, ["add"], (256,), ("transposed",), ("float32",)))
    for timer in case.contenders.values():
        assert timer.timeit(1) > 0
    (x, y) = ops.arrays_of(ALL["add"], ops.Problem("add", "float32", "row", 256, False))
    assert (x.shape, y.shape) == ((256, 256), (1, 256))


@each("name", [op.name for op in ALL.values() if "transposed" in op.layouts])
def test_a_library_without_views_reads_and_writes_the_same_memory(name):
    op = ALL[name]
    problem = ops.Problem(name, op.dtypes[0], "transposed", 8, False)
    arrays = ops.arrays_of(op, problem)
    given = [ops.argument_of(OURS, tw, x, problem) for x in arrays]
    expected = op.call(OURS, tw)(*given)
    memory = [np.ascontiguousarray(x.numpy().T) for x in arrays]
    try:
        function = ops.of_lying("numpy", np, op, problem, arrays)
        got = np.asarray(function(*memory))
    except (AttributeError, TypeError):
        pytest.skip("NumPy has no such function")
    lies = expected.ndim == 2 and not expected.is_contiguous
    assert got.shape == (expected.T if lies else expected).shape
    np.testing.assert_allclose(got.T if lies else got, np.asarray(expected), 1e-4, 1e-5)


def test_jax_gets_transposed_arguments_as_they_lie():
    problem = ops.Problem("exp", "float32", "transposed", 8, False)
    (x,) = ops.arrays_of(ALL["exp"], problem)
    given = ops.argument_of("jax", SimpleNamespace(numpy=np), x, problem)
    np.testing.assert_array_equal(given, x.numpy().T)
    given = ops.argument_of("numpy", np, x, problem)
    np.testing.assert_array_equal(given, x.numpy())
    assert given.flags.f_contiguous
    assert not given.flags.c_contiguous


def test_done_ones_are_not_run_again(tmp_path, capsys):
    kept = tmp_path / "kept.jsonl"
    call = ["bench", "ops", "--ops", "add,sign", "--sizes", "64", "--layouts", "contiguous"]
    call += ["--dtypes", "int32", "--peers", "numpy", "--threads", "1", "--resume", str(kept)]
    kept.write_text(json.dumps(result("add int32 64 contiguous", 7.0).as_dict()) + "\n" + '{"na')
    assert main(call) == 0
    names = [json.loads(line)["name"] for line in kept.read_text().splitlines()]
    assert names == ["add int32 64 contiguous", "sign int32 64 contiguous"]
    assert "7.00x" in capsys.readouterr().out


def test_errors(tmp_path, capsys):
    assert main(["bench", "ops", "--ops", "nothing", "--peers", "numpy"]) == 1
    assert "no op 'nothing'" in capsys.readouterr().err
    other = tmp_path / "other"
    other.write_text("hello\n")
    with pytest.raises(ValueError, match="line 1 is no result"):
        KeptResults(str(other))
    assert other.read_text() == "hello\n"


def test_the_picture(tmp_path):
    pytest.importorskip("matplotlib")
    names = ["add float32 64 contiguous", "add float32 256x256 row", "add int32 64 contiguous"]
    names += ["sum of rows float32 64 contiguous", "add float32 64 contiguous +backward"]
    figure = ops_figure([result(name, 2 + i / 4) for i, name in enumerate(names)])
    first = figure.axes[0]
    assert [label.get_text() for label in first.get_yticklabels()] == [
        "add",
        "sum of rows",
        "add +backward",
    ]
    ticks = [label.get_text() for label in first.get_xticklabels()]
    assert ticks == ["64 contiguous", "256² row"]
    assert [text.get_text() for text in first.texts] == ["2.00", "2.25", "2.75", "3.00"]
    draw_ops(str(tmp_path / "ops.png"), [result(name) for name in names])
    assert (tmp_path / "ops.png").stat().st_size > 1000


def test_a_peer_that_returns_its_argument_takes_no_part():
    x = torch.ones(2)
    assert torch.positive(x) is x
    case = next(ops.op_cases(PEERS, ("positive",)))
    assert case.contenders.keys() == {OURS, "numpy"}
