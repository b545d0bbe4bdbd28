"""`tilewright ops`, and that the page of commands has every command."""

from __future__ import annotations

import json
import re

import pytest
from checkout import ROOT

import tilewright as tw
from tilewright.cli import main
from tilewright.cli.commands import build_parser


def ops(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict]:
    assert main(["ops", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["ops"]


def test_all_that_can_be_called_are_listed(capsys):
    found = {op["name"]: op for op in ops(capsys)}
    assert set(found) >= {"matmul", "exp", "sum", "softmax", "layer_norm"}
    assert all(hasattr(tw, name) or hasattr(tw.nn.functional, name) for name in found)
    assert found["matmul"]["kernels"] == list(tw.kernels.names("matmul"))
    assert all(op["summary"] and "\n" not in op["summary"] for op in found.values())


def test_gradients_with_kernels_are_internal(capsys):
    listed = {op["name"] for op in ops(capsys)}
    every = {op["name"] for op in ops(capsys, "--internal")}
    assert "softmax_backward" in every - listed
    assert every == {record["name"] for record in tw._core._op_records()}


def test_a_pattern_takes_what_it_matches(capsys):
    names = [op["name"] for op in ops(capsys, "*norm*")]
    assert "layer_norm" in names
    assert names == sorted(n for n in names if "norm" in n)


@pytest.mark.parametrize("name", ["exp", "softmax_backward"])
def test_one_op_in_full(capsys, name):
    assert main(["ops", name]) == 0
    text = capsys.readouterr().out
    (op,) = ops(capsys, name)
    for part in (name + op["signature"], *op["kernels"], *op["help"].splitlines()):
        assert part in text


def test_abilities_are_the_ops_own(capsys):
    (exp,), (argmax,) = ops(capsys, "exp"), ops(capsys, "argmax")
    assert exp["gradient"]
    assert exp["in_place"]
    assert hasattr(tw.Tensor, "exp_")
    assert not argmax["gradient"]
    assert not argmax["in_place"]
    assert not hasattr(tw.Tensor, "argmax_")


def test_a_misspelt_name_gets_a_suggestion(capsys):
    assert main(["ops", "sofmax"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tilewright ops: no op 'sofmax'; did you mean softmax")


def test_the_page_of_commands_has_every_command():
    (commands,) = build_parser()._subparsers._group_actions
    page = (ROOT / "docs/commands.md").read_text()
    overview = page.partition("\n## ")[0]
    assert set(re.findall(r"^\| `tilewright (\w+)", overview, re.M)) == set(commands.choices)
