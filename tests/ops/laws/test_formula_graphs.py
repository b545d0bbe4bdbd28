"""The graph of each row's formula says what its text says."""

from __future__ import annotations

import ast

from subcases import each

from tilewright import _core

ROWS = {row["name"]: row for row in _core.pointwise_table()}
FORMULAS = [(name, row["formula"], row["graph"]) for name, row in ROWS.items()] + [
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
    return tree_of(ast.parse(text.strip(), mode="eval").body)


def tree_of(node: ast.expr):
    match node:
        case ast.Name(name):
            tree = ("input", name)
        case ast.Constant(value):
            tree = ("number", float(value))
        case ast.UnaryOp(ast.USub(), ast.Constant(value)):
            tree = ("number", -float(value))
        case ast.UnaryOp(ast.USub(), operand):
            tree = ("negative", tree_of(operand))
        case ast.BinOp(left, kind, right) | ast.Compare(left, [kind], [right]):
            tree = (OPERATORS[type(kind)], tree_of(left), tree_of(right))
        case ast.Call(ast.Name(name), operands):
            tree = (name, *map(tree_of, operands))
        case _:
            raise AssertionError(f"no part of a formula: {ast.dump(node)}")
    return tree


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
