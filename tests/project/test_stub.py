"""The stubs say what the modules have, and type checkers accept code that uses it."""

import ast
import importlib
import inspect
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


def by_pytorchs_names(x: tw.Tensor) -> tw.Tensor:
    y = tw.sum(input=x, dim=0) + x.sum(dim=1, keepdim=True) + x.sum(axis=1, keepdim=True)
    y = tw.cat(tensors=[y, y], dim=0) + tw.pow(y, exponent=2) + tw.mm(input=x, mat2=x)
    y = tw.where(y > 0, input=y, other=0.0) + tw.add(y, y, alpha=2).max(y) + tw.double.itemsize
    values, indices = x.max(dim=1)
    values = x.sort(dim=-1).values + tw.median(input=x, dim=0, keepdim=True).indices
    y = y.std(dim=0, correction=1) + tw.linalg.vector_norm(x, dim=1) + tw.linalg.det(input=x)
    y = y.permute(1, 0).unsqueeze(dim=1).flatten(start_dim=1) + tw.special.entr(input=x)
    y = tw.zeros(2, 3) + tw.zeros(size=(2, 3)) + tw.randint(9, (2, 3)) + tw.inverse(input=x)
    (places,) = tw.where(x > 1)
    return tw.clip(y, a_min=0) + values + indices + places + x.float().to(tw.float)
"""

WRONG = """
import tilewright as tw

tw.exp("text")
tw.ones((2, 3)).sum(axes=0)
tw.Tensor.shape = 3
tw.no_such_op(1.0)
tw.sum(tw.ones(2), dimm=0)
tw.ones(2).max(dim=0).item()
tw.linalg.det(matrix=tw.ones(2))
"""


@pytest.fixture(scope="module")
def make_stub():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        yield importlib.import_module("make_stub")


def test_what_is_made_from_the_modules_is_up_to_date(make_stub):
    for path, make in make_stub.MADE.items():
        assert make() == path.read_text(encoding="utf-8"), f"{path.name}: run `make stub`"


def names_told(*stubs):
    """What stubs define, or take from elsewhere by its own name."""
    for stub in stubs:
        for node in ast.parse((SOURCE / stub).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom):
                yield from (a.name for a in node.names if a.asname == a.name)
            elif isinstance(node, ast.AnnAssign):
                yield node.target.id
            elif isinstance(node, ast.Assign):
                yield node.targets[0].id
            elif hasattr(node, "name"):
                yield node.name


def test_static_tools_see_every_public_name():
    there = {
        name
        for name in set(dir(tw)) - {"annotations"}
        if not name.startswith("_") and not inspect.ismodule(getattr(tw, name))
    }
    there |= {*tw._SUBMODULES}
    assert there - {*names_told("_core.pyi", "_names.pyi", "__init__.py")} == set()
    assert all(hasattr(tw, name) for name in names_told("_names.pyi") if not name.startswith("_"))


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


CALLS = """
from typing import Any
import tilewright as tw
a: Any = ...
t = tw.ones(1)
"""


def calls_by_other_names():
    for prefix, owner in (("tw.", tw), ("tw.linalg.", tw.linalg), ("t.", tw.Tensor)):
        for name in dir(owner):
            function = getattr(owner, name, None)
            others = getattr(function, "other_arguments", {})
            if name.startswith("_") or not others:
                continue
            parameters = list(inspect.signature(function).parameters.values())[owner is tw.Tensor :]
            own = {p.name for p in parameters}
            for theirs, ours in others.items():
                if ours in own:
                    yield f"{prefix}{name}({call_by(theirs, ours, parameters, others)})"
    for row in _core._spellings():
        if row["kind"] == "name":
            yield f"tw.{row['theirs']}" if hasattr(tw, row["theirs"]) else f"t.{row['theirs']}"


def call_by(theirs, ours, parameters, others):
    """Arguments of a call by one library's names; those in front of them by place."""
    needed = [p for p in parameters if p.default is p.empty]
    names = [p.name for p in needed]
    at = names.index(ours) if ours in names else len(names)
    same = [other for other, own in others.items() if own == ours].index(theirs)
    given = []
    for i, p in enumerate(needed):
        by_name = [other for other, own in others.items() if own == p.name] or [p.name]
        placed = i < at and p.kind is not p.KEYWORD_ONLY
        given.append("a" if placed else f"{by_name[min(same, len(by_name) - 1)]}=a")
    return ", ".join([*given, f"{theirs}=a"] if at == len(names) else given)


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
        assert lines == {4, 5, 6, 7, 8, 9, 10}, done.stdout

    @pytest.mark.tier("all")
    def test_every_spelling_passes(self, run, tmp_path):
        """A call by each name of each argument, and each function by its other names."""
        path = tmp_path / "spellings.py"
        calls = [*calls_by_other_names()]
        assert len(calls) > 700
        path.write_text(CALLS + "\n".join(calls) + "\n")
        done = run(path)
        assert done.returncode == 0, done.stdout

    def test_the_package_passes(self, run):
        done = run("-p", "tilewright")
        assert done.returncode == 0, done.stdout
