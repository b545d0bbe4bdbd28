"""The graph of each row's formula says what its text says."""

from __future__ import annotations

import ast
import operator

import numpy as np
import pytest

from subcases import each
from tilewright import _core

ROWS = {row["name"]: row for row in _core.pointwise_table()}
FORMULAS = [
    (name, row["formula"], row["graph"])
    for name, row in ROWS.items()
] + [
    (f"{name}, gradient {i}", text, graph)
    for name, row in ROWS.items()
    for i, (text, graph) in enumerate(zip(row["gradients"], row["gradient_graphs"], strict=True))
]

# Operators by the names that graphs give them; all else is a function by name.
OPERATORS = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
    ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal",
    ast.Gt: "greater", ast.GtE: "greater_equal",
    ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor",
}  # fmt: skip


def tree_of_text(text: str):
    """Of what a formula computes, by Python's parser: nested tuples as `tree_of_graph` has them."""

    def tree(node):
        match node:
            case ast.Expression(body):
                return tree(body)
            case ast.Name(name):
                return ("input", name)
            case ast.Constant(value):
                return ("number", float(value))
            case ast.UnaryOp(ast.USub(), ast.Constant(value)):
                return ("number", -float(value))
            case ast.UnaryOp(ast.USub(), operand):
                return ("negative", tree(operand))
            case ast.BinOp(left, kind, right):
                return (OPERATORS[type(kind)], tree(left), tree(right))
            case ast.Compare(left, [kind], [right]):
                return (OPERATORS[type(kind)], tree(left), tree(right))
            case ast.Call(ast.Name(name), operands):
                return (name, *map(tree, operands))
        raise AssertionError(f"no part of a formula: {ast.dump(node)}")

    return tree(ast.parse(text.strip(), mode="eval"))


def tree_of_graph(graph):
    trees = []
    for function, *operands in graph:
        leaf = function in ("input", "number")
        trees.append((function, *(operands if leaf else (trees[i] for i in operands))))
    return trees[-1]


@each(("name", "text", "graph"), FORMULAS, ids=lambda each: each[0])
def test_a_graph_is_its_text(name: str, text: str, graph: list) -> None:
    if text == "none":
        assert graph == []
    else:
        assert tree_of_graph(graph) == tree_of_text(text)


@each(("name", "text", "graph"), FORMULAS, ids=lambda each: each[0])
def test_steps_are_there_once_and_in_order(name: str, text: str, graph: list) -> None:
    assert len(set(graph)) == len(graph)
    for at, (function, *operands) in enumerate(graph):
        if function not in ("input", "number"):
            assert all(operand < at for operand in operands)
    read = {i for f, *of in graph if f not in ("input", "number") for i in of}
    assert read == set(range(len(graph) - 1)) or not graph
