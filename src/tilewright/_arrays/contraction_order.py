"""The order in which operands are contracted, each pair by one matrix product."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import tilewright as tw
from tilewright import Tensor

# Of so many operands every order is tried; of more the cheapest pair goes first.
_FEW = 5
Labels = tuple[Any, ...]
Shape = tuple[int, ...]
# What is to be done with tensors of known shapes; einsum keeps the plans of its last calls.
Step = Callable[[Tensor], Tensor]
_Product = Callable[[Tensor, Tensor], Tensor]
Plan = Callable[[Sequence[Tensor]], Tensor]


class Term(NamedTuple):
    """An operand: the sizes of its axes and their labels."""

    shape: Shape
    labels: Labels


def contraction(terms: list[Term], out: Labels) -> Plan:
    """What makes the tensor with the labels `out` of tensors of these shapes."""
    products: list[tuple[int, int, _Product]] = []
    while len(terms) > 1:
        i, j = _next_pair(terms, out)
        a, b = terms[i], terms[j]
        terms = [term for n, term in enumerate(terms) if n not in (i, j)]
        needed = {*out, *(label for term in terms for label in term.labels)}
        product, term = _pair(a, b, needed)
        products.append((i, j, product))
        terms.append(term)
    finish: list[Step] = []
    _ordered(_summed(terms[0], {*out}, finish), out, finish)
    if len(products) == 1 and not finish:
        only = products[0][2]
        return lambda operands: only(operands[0], operands[1])

    def contract(operands: Sequence[Tensor]) -> Tensor:
        left = list(operands)
        for i, j, product in products:
            both = product(left[i], left[j])
            left = [x for n, x in enumerate(left) if n not in (i, j)]
            left.append(both)
        return through(left[0], finish)

    return contract


def _next_pair(terms: list[Term], out: Labels) -> tuple[int, int]:
    if len(terms) == 2:
        return 0, 1
    sizes = sizes_of("einsum", terms)
    names = [frozenset(term.labels) for term in terms]
    pairs = [(i, j) for j in range(len(terms)) for i in range(j)]
    depth = len(terms) if len(terms) <= _FEW else 2
    return min(pairs, key=lambda pair: _cost(names, pair, frozenset(out), sizes, depth))


def _cost(
    names: list[frozenset[Any]],
    pair: tuple[int, int],
    out: frozenset[Any],
    sizes: dict[Any, int],
    depth: int,
) -> int:
    """Multiplications of a pair, and, so many operands deep, of the cheapest way on from there."""
    both = names[pair[0]] | names[pair[1]]
    rest = [each for n, each in enumerate(names) if n not in pair]
    cost = math.prod(sizes[label] for label in both)
    if depth <= 2 or not rest:
        return cost
    left = [*rest, both & frozenset().union(out, *rest)]
    pairs = [(i, j) for j in range(len(left)) for i in range(j)]
    return cost + min(_cost(left, each, out, sizes, depth - 1) for each in pairs)


def _pair(a: Term, b: Term, needed: set[Any]) -> tuple[_Product, Term]:
    """The product of two operands, summed over the axes that nobody needs."""
    to_x: list[Step] = []
    to_y: list[Step] = []
    x = _summed(a, needed | {*b.labels}, to_x)
    y = _summed(b, needed | {*x.labels}, to_y)
    batch = [label for label in x.labels if label in y.labels and label in needed]
    summed = [label for label in x.labels if label in y.labels and label not in needed]
    rows = [label for label in x.labels if label not in y.labels]
    columns = [label for label in y.labels if label not in x.labels]
    whole = (tuple(to_x), tuple(to_y))
    sizes = sizes_of("einsum", [x, y])
    shared = [batch] if batch else []
    _grouped(x, [*shared, rows, summed], sizes, to_x)
    _grouped(y, [*shared, summed, columns], sizes, to_y)
    labels = (*batch, *rows, *columns)
    shape = tuple(sizes[label] for label in labels)
    multiply = tw.matmul if summed else operator.mul

    def product(first: Tensor, second: Tensor) -> Tensor:
        return tw.reshape(multiply(through(first, to_x), through(second, to_y)), shape)

    term = Term(shape, labels)
    if not summed or rows or columns:
        return product, term
    return _dot_products(x, y, summed, whole, product), term


def _dot_products(
    x: Term,
    y: Term,
    summed: list[Any],
    steps: tuple[tuple[Step, ...], tuple[Step, ...]],
    product: _Product,
) -> _Product:
    """Products of elements, summed, in one op; as matrices where that has no kernel."""
    to_x, to_y = steps[0], list(steps[1])
    _ordered(y, x.labels, to_y)
    axes = tuple(x.labels.index(label) for label in summed)

    def dot_products(first: Tensor, second: Tensor) -> Tensor:
        floating = first.is_floating_point() and second.is_floating_point()
        if not floating or tw.is_autocast_enabled():  # which turns operands of `matmul`
            return product(first, second)
        first, second = through(first, to_x), through(second, to_y)
        return tw.sum_of_products(first, second, axis=axes)

    return dot_products


def _grouped(
    term: Term, groups: Sequence[list[Any]], sizes: dict[Any, int], steps: list[Step]
) -> None:
    ordered = _ordered(term, tuple(label for group in groups for label in group), steps)
    shape = tuple(math.prod(sizes[label] for label in group) for group in groups)
    if shape != ordered.shape:
        steps.append(lambda x: tw.reshape(x, shape))


def _summed(term: Term, needed: set[Any], steps: list[Step]) -> Term:
    gone = tuple(i for i, label in enumerate(term.labels) if label not in needed)
    if not gone:
        return term
    steps.append(lambda x: tw.sum(x, axis=gone, dtype=x.dtype))
    kept = [i for i in range(len(term.labels)) if i not in gone]
    return Term(tuple(term.shape[i] for i in kept), tuple(term.labels[i] for i in kept))


def _ordered(term: Term, order: Labels, steps: list[Step]) -> Term:
    if term.labels == order:
        return term
    axes = tuple(term.labels.index(label) for label in order)
    steps.append(lambda x: tw.permute_dims(x, axes))
    return Term(tuple(term.shape[i] for i in axes), order)


def sizes_of(who: str, terms: Iterable[Term]) -> dict[Any, int]:
    """Of each label; an axis of size 1 stretches."""
    sizes: dict[Any, int] = {}
    for shape, labels in terms:
        for size, label in zip(shape, labels, strict=True):
            if sizes.setdefault(label, size) == 1:
                sizes[label] = size
            elif size not in (1, sizes[label]):
                raise ValueError(f"{who}: axis {label!r} has sizes {sizes[label]} and {size}")
    return sizes


def through(x: Tensor, steps: Iterable[Step]) -> Tensor:
    for step in steps:
        x = step(x)
    return x
