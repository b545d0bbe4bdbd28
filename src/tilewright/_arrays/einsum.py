"""Einstein's notation: einsum, its subscripts, diagonals and axes that stretch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import tilewright as tw
from tilewright import Tensor
from tilewright._arrays.contraction import check_tensors
from tilewright._arrays.contraction_order import (
    Labels,
    Plan,
    Shape,
    Step,
    Term,
    contraction,
    sizes_of,
    through,
)


def einsum(subscripts: str, /, *operands: Tensor) -> Tensor:
    """Sums of products by Einstein's notation: "ij,jk->ik" is a matrix product.

    A letter names an axis; one that is in several operands is one axis; one that is not behind the
    arrow is summed over. "..." stands for axes that broadcast, a letter twice in one operand for
    its diagonal. Without an arrow the result has the axes of "...", then the letters that occur
    once, in alphabetical order. Pairs of operands are contracted by `matmul`, in the order with the
    fewest multiplications. Raises ValueError for subscripts that do not fit the operands.

    Shapes: each operand has an axis for each of its letters, the result one for each letter
    behind the arrow.
    Types: integer, floating, complex. Result: the common type.
    Raises TypeError for operands that are no tensors and for subscripts that are no text.
    Source: PyTorch's torch.einsum, NumPy's numpy.einsum.

    >>> import tilewright as tw
    >>> tw.einsum("bij,bjk->bik", tw.ones((2, 3, 4)), tw.ones((2, 4, 5))).shape
    (2, 3, 5)
    """
    if not isinstance(subscripts, str):
        raise TypeError(f"einsum: subscripts is a str, got {type(subscripts).__name__}")
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    check_tensors("einsum", *operands)
    return _plan(subscripts, tuple([x.shape for x in operands]))(operands)


@lru_cache(maxsize=1024)
def _plan(subscripts: str, shapes: tuple[Shape, ...]) -> Plan:
    terms, out = _parse(subscripts, shapes)
    steps: list[list[Step]] = [[] for _ in terms]
    terms = [_diagonals(term, todo) for term, todo in zip(terms, steps, strict=True)]
    terms = _without_ones(terms, steps)
    contract = contraction(terms, out)
    if not any(steps):
        return contract
    return lambda operands: contract(
        [through(x, todo) for x, todo in zip(operands, steps, strict=True)]
    )


# ---- subscripts ----


def _parse(subscripts: str, shapes: Sequence[Shape]) -> tuple[list[Term], Labels]:
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(shapes):
        raise ValueError(
            f"einsum: {subscripts!r} names {len(parts)} operands, but {len(shapes)} are given"
        )
    terms = [
        Term(shape, _labels(part, subscripts, len(shape), i))
        for i, (part, shape) in enumerate(zip(parts, shapes, strict=True))
    ]
    widest = max((sum(isinstance(n, int) for n in term.labels) for term in terms), default=0)
    broad = tuple(range(-widest, 0))
    if arrow:
        out = _labels(right, subscripts, None, None, broad)
    else:
        every = [label for term in terms for label in term.labels if isinstance(label, str)]
        out = broad + tuple(sorted(label for label in {*every} if every.count(label) == 1))
    if len({*out}) < len(out):
        raise ValueError(f"einsum: a letter is twice in the result of {subscripts!r}")
    known = {label for term in terms for label in term.labels}
    if missing := [str(label) for label in out if label not in known]:
        raise ValueError(f"einsum: {missing[0]!r} of the result is in no operand: {subscripts!r}")
    sizes_of("einsum", terms)
    return terms, out


def _labels(
    part: str, subscripts: str, rank: int | None, operand: int | None, broad: Labels = ()
) -> Labels:
    """Letters, and negative numbers for the axes that "..." stands for, counted from its end."""
    before, dots, behind = part.partition("...")
    for letter in before + behind:
        if not (letter.isascii() and letter.isalpha()):
            raise ValueError(f"einsum: {letter!r} in {subscripts!r} is no letter")
    if rank is None:
        return (*before, *(broad if dots else ()), *behind)
    rest = rank - len(before) - len(behind)
    if rest < 0 or (rest > 0 and not dots):
        raise ValueError(f"einsum: {part!r} does not fit operand {operand}, of {rank} axes")
    return (*before, *range(-rest, 0), *behind)


# ---- diagonals, and axes that stretch ----


def _diagonals(term: Term, steps: list[Step]) -> Term:
    """With each label once; `steps` gets what makes its tensor from the given one's."""
    for label in dict.fromkeys(term.labels):
        shape, labels = term
        places = [i for i, each in enumerate(labels) if each == label]
        if len(places) == 1:
            continue
        size = max(shape[i] for i in places)
        rest = [i for i in range(len(shape)) if i not in places]
        whole = [shape[i] == size for i in places]
        steps.append(partial(tw.permute_dims, axes=(*places, *rest)))
        steps.append(partial(_diagonal, size=size, whole=whole))
        names = (label, *(labels[i] for i in rest))
        term = Term((size, *(shape[i] for i in rest)), names)
    return term


def _diagonal(x: Tensor, size: int, whole: list[bool]) -> Tensor:
    """Of the leading axes, of which those that are not whole have size 1."""
    every, none = tw.arange(size, dtype=tw.int64), tw.zeros((size,), dtype=tw.int64)
    return x[tuple(every if each else none for each in whole)]


def _without_ones(terms: list[Term], steps: list[list[Step]]) -> list[Term]:
    """Without axes of size 1 that stretch to another operand's."""
    sizes, result = sizes_of("einsum", terms), []
    for (shape, labels), todo in zip(terms, steps, strict=True):
        ones = [i for i, name in enumerate(labels) if shape[i] == 1 and sizes[name] != 1]
        if ones:
            todo.append(partial(tw.squeeze, axis=tuple(ones)))
        kept = [i for i in range(len(labels)) if i not in ones]
        result.append(Term(tuple(shape[i] for i in kept), tuple(labels[i] for i in kept)))
    return result
