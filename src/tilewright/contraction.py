"""Sums of products over axes of several tensors, each pair by one matrix product."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import tilewright as tw
from tilewright import Tensor, _core
from tilewright.other_names import other_names

# Of so many operands every order is tried; of more the cheapest pair goes first.
_FEW = 5
_Labels = tuple[Any, ...]
_Shape = tuple[int, ...]
# What is to be done with tensors of known shapes; einsum keeps the plans of its last calls.
_Step = Callable[[Tensor], Tensor]
_Product = Callable[[Tensor, Tensor], Tensor]
_Plan = Callable[[Sequence[Tensor]], Tensor]


class _Term(NamedTuple):
    """An operand: the sizes of its axes and their labels."""

    shape: _Shape
    labels: _Labels


@other_names
def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """Sum of products over pairs of axes: the last `axes` of x1 with the first of x2, or as listed.

    The result has the other axes of x1, then those of x2. Raises ValueError for axes that are out
    of range, repeated or of different sizes.

    Shapes: x1 (a, ..., k, ...), x2 (k, ..., b, ...); the result is (a, ..., b, ...).
    Types: integer, floating, complex. Result: the common type.
    Raises TypeError for operands that are no tensors.
    Source: Array API standard 2024.12.

    >>> import tilewright as tw
    >>> tw.tensordot(tw.ones((2, 3, 4)), tw.ones((4, 3, 5)), axes=((1, 2), (1, 0))).shape
    (2, 5)
    """
    _check_tensors("tensordot", x1, x2)
    if isinstance(axes, (tuple, list)):
        if len(axes) != 2:
            raise ValueError(f"tensordot: axes is a number or two lists of axes, got {axes!r}")
        lists = tuple([part] if isinstance(part, int) else list(part) for part in axes)
    else:
        count = operator.index(axes)
        if not 0 <= count <= min(x1.ndim, x2.ndim):
            raise ValueError(
                f"tensordot: {count} axes of shapes {x1.shape} and {x2.shape} cannot be summed over"
            )
        lists = (list(range(x1.ndim - count, x1.ndim)), list(range(count)))
    first = [_axis("tensordot", axis, x1) for axis in lists[0]]
    second = [_axis("tensordot", axis, x2) for axis in lists[1]]
    sizes = [x1.shape[i] for i in first], [x2.shape[j] for j in second]
    if sizes[0] != sizes[1]:
        raise ValueError(f"tensordot: sizes {sizes[0]} of x1 and {sizes[1]} of x2 differ")
    if len({*first}) < len(first) or len({*second}) < len(second):
        raise ValueError(f"tensordot: repeated axes: {axes!r}")
    left = list(range(x1.ndim))
    right: list[Any] = [("x2", j) for j in range(x2.ndim)]
    for i, j in zip(first, second, strict=True):
        right[j] = i
    out = [i for i in left if i not in first] + [j for j in right if j not in first]
    terms = [_Term(tuple(x1.shape), tuple(left)), _Term(tuple(x2.shape), tuple(right))]
    return _contraction(terms, tuple(out))((x1, x2))


@other_names
def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sum of products along an axis, of the conjugates of x1's numbers; other axes broadcast.

    Raises ValueError for an axis that is out of range or of different sizes.

    Shapes: x1 and x2 (..., n, ...), which broadcast; the result lacks the axis.
    Types: integer, floating, complex. Result: the common type.
    Raises TypeError for operands that are no tensors.
    Source: Array API standard 2024.12.

    >>> import tilewright as tw
    >>> tw.vecdot(tw.ones((2, 3)), tw.asarray([1.0, 2.0, 3.0])).tolist()
    [6.0, 6.0]
    """
    _check_tensors("vecdot", x1, x2)
    at, also = _axis("vecdot", axis, x1), _axis("vecdot", axis, x2)
    if x1.shape[at] != x2.shape[also]:
        raise ValueError(
            f"vecdot: axis {axis} has size {x1.shape[at]} in x1 and {x2.shape[also]} in x2"
        )
    from_end = at - x1.ndim
    if from_end != also - x2.ndim:
        x1, x2, from_end = _last(x1, at), _last(x2, also), -1
    return _products_of_conjugates(x1, x2, from_end)


@other_names
def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of each element of a vector with each of another: shape (n,) and (m,) to (n, m).

    Shapes: x1 (n,), x2 (m,); the result is (n, m).
    Types: all. Result: the same type.
    Raises ValueError for tensors that are no vectors, TypeError for operands that are no
    tensors.
    Source: PyTorch's torch.outer.
    """
    _check_ranks("outer", (x1, 1), (x2, 1))
    return tw.expand_dims(x1, 1) * tw.expand_dims(x2, 0)


@other_names
def dot(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Sum of the products of two vectors of one size; neither is conjugated.

    Shapes: x1 and x2 (n,); the result has no dimensions.
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.dot.
    """
    _check_vectors("dot", x1, x2)
    return _products(x1, x2, -1)


@other_names
def inner(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Sums of products over the last axis of both: (..., n) and (***, n) to (..., ***).

    Shapes: x1 (..., n), x2 (***, n); the result is (..., ***).
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for last axes of different sizes, TypeError for operands that are no
    tensors.
    Source: PyTorch's torch.inner.
    """
    _check_tensors("inner", x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        return x1 * x2
    return tensordot(x1, x2, axes=([-1], [-1]))


@other_names
def mm(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Product of two matrices; `matmul` also takes vectors and batches.

    Shapes: x1 (n, k), x2 (k, m); the result is (n, m).
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.mm.
    """
    _check_ranks("mm", (x1, 2), (x2, 2))
    return tw.matmul(x1, x2)


@other_names
def mv(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Product of a matrix and a vector.

    Shapes: x1 (n, k), x2 (k,); the result is (n,).
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.mv.
    """
    _check_ranks("mv", (x1, 2), (x2, 1))
    return tw.matmul(x1, x2)


@other_names
def bmm(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of as many pairs of matrices: (b, n, k) and (b, k, m) to (b, n, m).

    Shapes: x1 (b, n, k), x2 (b, k, m); the result is (b, n, m).
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.bmm.
    """
    _check_ranks("bmm", (x1, 3), (x2, 3))
    if x1.shape[0] != x2.shape[0]:
        raise ValueError(f"bmm: {x1.shape[0]} matrices by {x2.shape[0]}")
    return tw.matmul(x1, x2)


@other_names
def vdot(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Sum of the products of two vectors of one size; the first is conjugated.

    Shapes: x1 and x2 (n,); the result has no dimensions.
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.vdot.
    """
    _check_vectors("vdot", x1, x2)
    return _products_of_conjugates(x1, x2, -1)


@other_names
def baddbmm(
    x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """beta * x + alpha * bmm(batch1, batch2); x broadcasts, and does not count where beta is 0.

    Shapes: x broadcasts to (b, n, m), batch1 (b, n, k), batch2 (b, k, m); the result is (b, n,
    m).
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.baddbmm.
    """
    return _added(x, bmm(batch1, batch2), beta, alpha)


@other_names
def addbmm(
    x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """beta * x + alpha * the sum of all products of bmm(batch1, batch2).

    Shapes: x broadcasts to (n, m), batch1 (b, n, k), batch2 (b, k, m); the result is (n, m).
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.addbmm.
    """
    products = bmm(batch1, batch2)
    return _added(x, tw.sum(products, axis=0, dtype=products.dtype), beta, alpha)


@other_names
def addmv(x: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * x + alpha * mv(mat, vec).

    Shapes: x broadcasts to (n,), mat (n, m), vec (m,); the result is (n,).
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.addmv.
    """
    return _added(x, mv(mat, vec), beta, alpha)


@other_names
def addr(x: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * x + alpha * outer(vec1, vec2).

    Shapes: x broadcasts to (n, m), vec1 (n,), vec2 (m,); the result is (n, m).
    Types: all. Result: the same type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.addr.
    """
    return _added(x, outer(vec1, vec2), beta, alpha)


def _added(x: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    scaled = product if alpha == 1 else alpha * product
    if beta == 0:
        return tw.broadcast_to(scaled, tw.broadcast_shapes([scaled.shape, x.shape]))
    return (x if beta == 1 else beta * x) + scaled


@other_names
def kron(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Kronecker product: each element of x1 times the whole of x2, as blocks.

    Shapes: x1 (a, b, ...), x2 (c, d, ...); the result is (a * c, b * d, ...), missing leading
    axes counting as 1.
    Types: all. Result: the same type.
    Raises TypeError for operands that are no tensors.
    Source: PyTorch's torch.kron.
    """
    _check_tensors("kron", x1, x2)
    rank = max(x1.ndim, x2.ndim)
    first = (1,) * (rank - x1.ndim) + tuple(x1.shape)
    second = (1,) * (rank - x2.ndim) + tuple(x2.shape)
    wide = tw.reshape(x1, tuple(n for size in first for n in (size, 1)))
    narrow = tw.reshape(x2, tuple(n for size in second for n in (1, size)))
    sizes = tuple(a * b for a, b in zip(first, second, strict=True))
    return tw.reshape(wide * narrow, sizes)


def multi_dot(tensors: Sequence[Tensor], /) -> Tensor:
    """Product of several matrices in the cheapest order; the first and last may be vectors.

    Shapes: matrices (a, b), (b, c), ..., (y, z) give (a, z); a vector's axis is dropped.
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for fewer than two matrices and for shapes that do not fit, TypeError for
    operands that are no tensors.
    Source: PyTorch's torch.linalg.multi_dot.
    """
    chain = list(tensors)
    _check_tensors("multi_dot", *chain)
    if len(chain) < 2:
        raise ValueError(f"multi_dot: needs two matrices at least, got {len(chain)}")
    ends = (0, len(chain) - 1)
    for i, x in enumerate(chain):
        if x.ndim != 2 and not (x.ndim == 1 and i in ends):
            raise ValueError(f"multi_dot: operand {i} has shape {x.shape}: a matrix is needed")
    names: list[tuple[int, ...]] = [(i, i + 1) for i in range(len(chain))]
    out = [0, len(chain)]
    if chain[0].ndim == 1:
        names[0] = (1,)
        out.remove(0)
    if chain[-1].ndim == 1:
        names[-1] = (len(chain) - 1,)
        out.remove(len(chain))
    terms = [_Term(tuple(x.shape), labels) for x, labels in zip(chain, names, strict=True)]
    return _contraction(terms, tuple(out))(chain)


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
    _check_tensors("einsum", *operands)
    return _plan(subscripts, tuple([x.shape for x in operands]))(operands)


@lru_cache(maxsize=1024)
def _plan(subscripts: str, shapes: tuple[_Shape, ...]) -> _Plan:
    terms, out = _parse(subscripts, shapes)
    steps: list[list[_Step]] = [[] for _ in terms]
    terms = [_diagonals(term, todo) for term, todo in zip(terms, steps, strict=True)]
    terms = _without_ones(terms, steps)
    contract = _contraction(terms, out)
    if not any(steps):
        return contract
    return lambda operands: contract(
        [_through(x, todo) for x, todo in zip(operands, steps, strict=True)]
    )


# ---- subscripts ----


def _parse(subscripts: str, shapes: Sequence[_Shape]) -> tuple[list[_Term], _Labels]:
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(shapes):
        raise ValueError(
            f"einsum: {subscripts!r} names {len(parts)} operands, but {len(shapes)} are given"
        )
    terms = [
        _Term(shape, _labels(part, subscripts, len(shape), i))
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
    _sizes("einsum", terms)
    return terms, out


def _labels(
    part: str, subscripts: str, rank: int | None, operand: int | None, broad: _Labels = ()
) -> _Labels:
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


def _sizes(who: str, terms: Iterable[_Term]) -> dict[Any, int]:
    """Of each label; an axis of size 1 stretches."""
    sizes: dict[Any, int] = {}
    for shape, labels in terms:
        for size, label in zip(shape, labels, strict=True):
            if sizes.setdefault(label, size) == 1:
                sizes[label] = size
            elif size not in (1, sizes[label]):
                raise ValueError(f"{who}: axis {label!r} has sizes {sizes[label]} and {size}")
    return sizes


# ---- contraction ----


def _through(x: Tensor, steps: Iterable[_Step]) -> Tensor:
    for step in steps:
        x = step(x)
    return x


def _diagonals(term: _Term, steps: list[_Step]) -> _Term:
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
        term = _Term((size, *(shape[i] for i in rest)), names)
    return term


def _diagonal(x: Tensor, size: int, whole: list[bool]) -> Tensor:
    """Of the leading axes, of which those that are not whole have size 1."""
    every, none = tw.arange(size, dtype=tw.int64), tw.zeros((size,), dtype=tw.int64)
    return x[tuple(every if each else none for each in whole)]


def _without_ones(terms: list[_Term], steps: list[list[_Step]]) -> list[_Term]:
    """Without axes of size 1 that stretch to another operand's."""
    sizes, result = _sizes("einsum", terms), []
    for (shape, labels), todo in zip(terms, steps, strict=True):
        ones = [i for i, name in enumerate(labels) if shape[i] == 1 and sizes[name] != 1]
        if ones:
            todo.append(partial(tw.squeeze, axis=tuple(ones)))
        kept = [i for i in range(len(labels)) if i not in ones]
        result.append(_Term(tuple(shape[i] for i in kept), tuple(labels[i] for i in kept)))
    return result


def _contraction(terms: list[_Term], out: _Labels) -> _Plan:
    products: list[tuple[int, int, _Product]] = []
    while len(terms) > 1:
        i, j = _next_pair(terms, out)
        a, b = terms[i], terms[j]
        terms = [term for n, term in enumerate(terms) if n not in (i, j)]
        needed = {*out, *(label for term in terms for label in term.labels)}
        product, term = _pair(a, b, needed)
        products.append((i, j, product))
        terms.append(term)
    finish: list[_Step] = []
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
        return _through(left[0], finish)

    return contract


def _next_pair(terms: list[_Term], out: _Labels) -> tuple[int, int]:
    if len(terms) == 2:
        return 0, 1
    sizes = _sizes("einsum", terms)
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


def _pair(a: _Term, b: _Term, needed: set[Any]) -> tuple[_Product, _Term]:
    """The product of two operands, summed over the axes that nobody needs."""
    to_x: list[_Step] = []
    to_y: list[_Step] = []
    x = _summed(a, needed | {*b.labels}, to_x)
    y = _summed(b, needed | {*x.labels}, to_y)
    batch = [label for label in x.labels if label in y.labels and label in needed]
    summed = [label for label in x.labels if label in y.labels and label not in needed]
    rows = [label for label in x.labels if label not in y.labels]
    columns = [label for label in y.labels if label not in x.labels]
    whole = (tuple(to_x), tuple(to_y))
    sizes = _sizes("einsum", [x, y])
    shared = [batch] if batch else []
    _grouped(x, [*shared, rows, summed], sizes, to_x)
    _grouped(y, [*shared, summed, columns], sizes, to_y)
    labels = (*batch, *rows, *columns)
    shape = tuple(sizes[label] for label in labels)
    multiply = tw.matmul if summed else operator.mul

    def product(first: Tensor, second: Tensor) -> Tensor:
        return tw.reshape(multiply(_through(first, to_x), _through(second, to_y)), shape)

    term = _Term(shape, labels)
    if not summed or rows or columns:
        return product, term
    return _dot_products(x, y, summed, whole, product), term


def _dot_products(
    x: _Term,
    y: _Term,
    summed: list[Any],
    steps: tuple[tuple[_Step, ...], tuple[_Step, ...]],
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
        first, second = _through(first, to_x), _through(second, to_y)
        return tw.sum_of_products(first, second, axis=axes)

    return dot_products


def _grouped(
    term: _Term, groups: Sequence[list[Any]], sizes: dict[Any, int], steps: list[_Step]
) -> None:
    ordered = _ordered(term, tuple(label for group in groups for label in group), steps)
    shape = tuple(math.prod(sizes[label] for label in group) for group in groups)
    if shape != ordered.shape:
        steps.append(lambda x: tw.reshape(x, shape))


def _summed(term: _Term, needed: set[Any], steps: list[_Step]) -> _Term:
    gone = tuple(i for i, label in enumerate(term.labels) if label not in needed)
    if not gone:
        return term
    steps.append(lambda x: tw.sum(x, axis=gone, dtype=x.dtype))
    kept = [i for i in range(len(term.labels)) if i not in gone]
    return _Term(tuple(term.shape[i] for i in kept), tuple(term.labels[i] for i in kept))


def _ordered(term: _Term, order: _Labels, steps: list[_Step]) -> _Term:
    if term.labels == order:
        return term
    axes = tuple(term.labels.index(label) for label in order)
    steps.append(lambda x: tw.permute_dims(x, axes))
    return _Term(tuple(term.shape[i] for i in axes), order)


# ---- checks ----


def _check_tensors(who: str, *tensors: Any) -> None:
    for x in tensors:
        if not isinstance(x, Tensor):
            raise TypeError(f"{who}: takes tensors, got {type(x).__name__}")


def _check_ranks(who: str, *pairs: tuple[Any, int]) -> None:
    for x, rank in pairs:
        _check_tensors(who, x)
        if x.ndim != rank:
            raise ValueError(f"{who}: {rank} axes are needed, got shape {tuple(x.shape)}")


def _check_vectors(who: str, x1: Any, x2: Any) -> None:
    _check_ranks(who, (x1, 1), (x2, 1))
    if x1.shape != x2.shape:
        raise ValueError(f"{who}: sizes {x1.shape[0]} and {x2.shape[0]} differ")


def _products_of_conjugates(x1: Tensor, x2: Tensor, axis: int) -> Tensor:
    """Their sums along an axis counted from the end, of the conjugates of x1."""
    if x1.ndim == x2.ndim == 1 and (x1.is_complex() or x2.is_complex()):
        return _core._vdot(x1, x2)
    return _products(tw.conj(x1), x2, axis)


def _products(x1: Tensor, x2: Tensor, axis: int) -> Tensor:
    """Their sums along an axis counted from the end."""
    if x1.is_floating_point() and x2.is_floating_point():
        return tw.sum_of_products(x1, x2, axis=axis)
    if x1.ndim == x2.ndim == 1:
        return tw.matmul(x1, x2)
    return tw.sum(x1 * x2, axis=axis, dtype=tw.result_type(x1, x2))


def _axis(who: str, axis: int, x: Tensor) -> int:
    if not -x.ndim <= (at := operator.index(axis)) < x.ndim:
        raise ValueError(f"{who}: axis {axis} is out of range for shape {tuple(x.shape)}")
    return at % x.ndim


def _last(x: Tensor, axis: int) -> Tensor:
    order = [i for i in range(x.ndim) if i != axis]
    return x if axis == x.ndim - 1 else tw.permute_dims(x, (*order, axis))
