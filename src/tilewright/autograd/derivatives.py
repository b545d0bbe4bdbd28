"""Products with Jacobians and their transposes, for what a function gave for inputs of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor, _core
from tilewright.autograd.function import Context, Function, watched_pass


class TensorList(list[Tensor]):
    """Tensors, and whether they came as one alone."""

    single = False


def listed(who: str, what: str, given: Any) -> TensorList:
    tensors = TensorList([given] if isinstance(given, Tensor) else given)
    tensors.single = isinstance(given, Tensor)
    for x in tensors:
        if not isinstance(x, Tensor):
            raise TypeError(f"{who}: {what} must be tensors, got {type(x).__name__}")
    return tensors


def vectors(who: str, v: Any, like: TensorList) -> list[Tensor]:
    if v is None:
        if len(like) != 1 or like[0].size != 1:
            raise ValueError(f"{who}: v may be left out only where it is one number")
        return [tw.ones_like(like[0])]
    vs = listed(who, "v", v)
    shapes = [x.shape for x in like]
    if [x.shape for x in vs] != shapes:
        raise ValueError(f"{who}: v has shapes {[x.shape for x in vs]}, which must be {shapes}")
    return vs


def formed(tensors: Sequence[Any], single: bool) -> Any:
    return tensors[0] if single else tuple(tensors)


def one_number(who: str, y: Any) -> Tensor:
    if not isinstance(y, Tensor) or y.size != 1:
        got = f"shape {y.shape}" if isinstance(y, Tensor) else type(y).__name__
        raise ValueError(f"{who}: func must give one number, got {got}")
    return y


def gradients(
    ys: Sequence[Tensor], xs: Sequence[Tensor], vs: Sequence[Tensor | None], create_graph: bool
) -> list[Tensor]:
    """Gradients, of zeros where nothing depends on an input."""
    recorded = [(y, v) for y, v in zip(ys, vs, strict=True) if y.requires_grad]
    if not recorded:
        return [tw.zeros_like(x) for x in xs]
    roots, seeds = zip(*recorded, strict=True)
    grads = _core.grad(roots, list(xs), seeds, True, create_graph, allow_unused=True)
    return [tw.zeros_like(x) if g is None else g for x, g in zip(xs, grads, strict=True)]


def linear_gradients(
    ys: Sequence[Tensor], xs: Sequence[Tensor], us: Sequence[Tensor]
) -> list[Tensor]:
    """Gradients with a graph and without what hooks make of them."""
    recorded = [(y, u) for y, u in zip(ys, us, strict=True) if y.requires_grad]
    if not recorded:
        return [tw.zeros_like(x) for x in xs]
    roots, seeds = zip(*recorded, strict=True)
    grads: list[Any] = _core._linear_gradients(list(roots), list(xs), list(seeds))
    return [tw.zeros_like(x) if g is None else g for x, g in zip(xs, grads, strict=True)]


def rows(y: Tensor, xs: TensorList, create_graph: bool) -> list[Tensor]:
    """The derivatives of one result by each input."""
    flat = y.reshape((-1,))
    by_row = [gradients([flat[i]], xs, [None], create_graph) for i in range(flat.shape[0])]
    if not by_row:
        return [tw.zeros((*y.shape, *x.shape), dtype=y.dtype, device=y.device) for x in xs]
    return [
        tw.stack(of_x).reshape((*y.shape, *x.shape))
        for x, of_x in zip(xs, zip(*by_row, strict=True), strict=True)
    ]


def slopes(who: str, y: Tensor, xs: Sequence[Tensor], own: list[Tensor]) -> list[Tensor]:
    """Gradients of one number that have gradients in turn; adds leaves that are made to `own`.

    Raises RuntimeError for a `Function` whose gradients are made outside of the graph: the ones of
    those would be 0 without a word.
    """
    # Seen as a map of a seed, a gradient is known from one that depends on nothing.
    seeds = [tw.ones_like(y).requires_grad_()] if _core._behind([y], [])[1] else []
    own += seeds
    with watched_pass() as seen:
        grads = gradients([y], xs, seeds or [None], create_graph=True)
    if seen.cut:
        raise RuntimeError(
            f"{who}: the backward of {seen.cut} is not made of recorded ops, so that its gradients "
            "have none; make it of ops of tensors"
        )
    return grads


class Tangents:
    """The Jacobian of one call of a function: of tangents of its inputs, those of its results.

    By two passes backwards: the gradient of a product with a vector, with respect to that. Where a
    gradient on the way was made outside of the graph, the product does not show it, and rows of
    the Jacobian are made instead, a pass for each element of the results.
    """

    def __init__(self, ys: TensorList, xs: TensorList) -> None:
        self._ys, self._xs = ys, xs
        # Leaves that products may lead to.
        self.us = [tw.zeros_like(y).requires_grad_() for y in ys]
        with watched_pass(linear=True) as seen:
            self._through = linear_gradients(ys, xs, self.us)
        self._cut = seen.cut

    def __call__(self, vs: Sequence[Tensor], create_graph: bool) -> list[Tensor]:
        if not self._cut:
            return gradients(self._through, self.us, vs, create_graph)
        products = [self._by_row(y, vs).detach() for y in self._ys]
        if not create_graph:
            return products
        return [_Last.apply(self._cut, t, *self._ys, *vs) for t in products]

    def _by_row(self, y: Tensor, vs: Sequence[Tensor]) -> Tensor:
        flat = y.reshape((-1,))
        one = tw.ones((), dtype=y.dtype, device=y.device)
        tangents = []
        for i in range(flat.shape[0]):
            row = linear_gradients([flat[i]], self._xs, [one])
            # A row is what a gradient is, the conjugate of the derivatives.
            terms = [(g.conj() * v).sum() for g, v in zip(row, vs, strict=True)]
            tangents.append(tw.stack(terms).sum())
        return tw.stack(tangents).reshape(y.shape) if tangents else tw.zeros_like(y)


class _Last(Function):
    """A product that has no gradient, though what it was made of has a graph."""

    @staticmethod
    def forward(ctx: Context, cut: str, product: Tensor, *others: Tensor) -> Tensor:
        ctx.cut = cut
        return product.copy()

    @staticmethod
    def backward(ctx: Context, g: Tensor) -> Any:
        raise RuntimeError(
            f"jvp: the backward of {ctx.cut} is not made of recorded ops, so that products with "
            "its Jacobian have no gradients; make it of ops of tensors, or give it a jvp"
        )
