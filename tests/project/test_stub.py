"""The stub says what the extension module has, and type checkers accept code that uses it."""

import ast
import importlib.util
import subprocess
import sys

import pytest
from checkout import ROOT

import tilewright as tw
from tilewright import _core
from tilewright._engine.lazy_methods import ABSENT

SOURCE = ROOT / "src" / "tilewright"

CALLER = """
import tilewright as tw
from tilewright import nn


def step(x: tw.Tensor, w: tw.Tensor) -> float:
    y = tw.relu(x @ w + 1.0) * 2
    y += x
    mask: tw.Tensor = y > 0.5
    first: tw.Tensor = y[mask][0, ..., None]
    loss = tw.where(mask, y, 0.0).sum(axis=(0, 1), keepdims=True) - first.mean()
    loss.backward()
    assert w.grad is not None
    (g,) = tw.grad(loss, [w], create_graph=True)
    handle = w.register_hook(lambda g: g * 2.0)
    handle.remove()
    shape: tuple[int, ...] = g.shape
    with tw.no_grad():
        w -= 0.1 * w.grad
    return float(tw.zeros(shape, dtype=tw.float64).exp().item())


def check(x: tw.Tensor) -> bool:
    with tw.explain() as report:
        tw.asarray([[1, 2]]).astype("float32").reshape(2, 1).T.contiguous()
    names: list[str] = [entry.op for entry in report]
    parameter: tw.Tensor = nn.Parameter(x, requires_grad=True)
    return tw.gradcheck(tw.exp, parameter) and bool(names)
"""

WRONG = """
import tilewright as tw

tw.exp("text")
tw.ones((2, 3)).sum(axes=0)
tw.Tensor.shape = 3
tw.no_such_op(1.0)
"""


@pytest.fixture(scope="module")
def make_stub():
    spec = importlib.util.spec_from_file_location("make_stub", ROOT / "tools" / "make_stub.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_stub_is_up_to_date(make_stub):
    text = (SOURCE / "_core.pyi").read_text(encoding="utf-8")
    assert make_stub.make_stub() == text, "run `make stub`"


def test_stub_names_everything():
    tree = ast.parse((SOURCE / "_core.pyi").read_text(encoding="utf-8"))
    told = {node.name for node in tree.body if hasattr(node, "name")}
    told |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    there = {name for name in vars(_core) if not name.startswith("__")}
    assert there - told == set()
    (tensor,) = [node for node in tree.body if getattr(node, "name", "") == "Tensor"]
    told = {node.name for node in tensor.body if hasattr(node, "name")}
    there = {name for name in vars(tw.Tensor) if not name.startswith("__")} - {*ABSENT}
    assert there == {name for name in told if not name.startswith("__")}
    operators = {name for name in told if name.startswith("__")}
    assert all(hasattr(tw.Tensor, name) for name in operators - {"__buffer__"})


def test_package_is_marked_as_typed():
    assert (SOURCE / "py.typed").exists()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """mypy, which reads the package once for all tests."""
    cache = tmp_path_factory.mktemp("mypy")
    return lambda *arguments: subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, *arguments],
        cwd=SOURCE.parent,
        capture_output=True,
        text=True,
        check=False,
    )


class TestMypy:
    @pytest.fixture(autouse=True)
    def _mypy(self):
        pytest.importorskip("mypy")

    def test_callers_pass(self, run, tmp_path):
        path = tmp_path / "caller.py"
        path.write_text(CALLER)
        done = run(path)
        assert done.returncode == 0, done.stdout

    def test_wrong_callers_do_not(self, run, tmp_path):
        path = tmp_path / "wrong.py"
        path.write_text(WRONG)
        done = run(path)
        lines = {int(line.split(":")[1]) for line in done.stdout.splitlines() if "error:" in line}
        assert lines == {4, 5, 6, 7}, done.stdout

    def test_the_package_passes(self, run):
        done = run("-p", "tilewright")
        assert done.returncode == 0, done.stdout
