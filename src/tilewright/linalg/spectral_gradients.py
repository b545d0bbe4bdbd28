"""Gradients of eigh and svd, and what becomes of them where values coincide.

Vectors of values that coincide may be turned among themselves. A function that no such turn changes
(of a polar factor, of the projection onto their space) has a gradient there; its quotients are 0
over 0, and what rounding leaves of both is noise. As far as the function reads vectors alone, their
limit is 0. Where it reads the values too (as functions of the product of the factors do), the limit
depends on how it reads them nearby, which no gradient at this place tells: NaN.

Source: M. Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008).
"""

from __future__ import annotations

import math

import tilewright as tw
from tilewright import Tensor

# Values coincide up to so many steps of the largest.
_STEPS = 16


def of_eigh(
    values: Tensor, vectors: Tensor, of_values: Tensor | None, of_vectors: Tensor | None
) -> Tensor | None:
    adjoint = _adjoint(vectors)
    inner = None if of_values is None else _diagonal(of_values)
    if of_vectors is not None:
        product = adjoint @ of_vectors
        gaps = tw.expand_dims(values, -2) - tw.expand_dims(values, -1)
        skew = (product - _adjoint(product)) * 0.5
        mixed = _quotients(skew, gaps, values, of_values, _largest(product))
        inner = mixed if inner is None else inner + mixed
    return None if inner is None else vectors @ inner @ adjoint


def of_svd(
    u: Tensor,
    s: Tensor,
    vh: Tensor,
    of_u: Tensor | None,
    of_s: Tensor | None,
    of_vh: Tensor | None,
) -> Tensor:
    inner = _diagonal(tw.zeros_like(s) if of_s is None else of_s)
    if of_u is not None or of_vh is not None:
        inner = inner + _turns(u, s, vh, of_u, of_s, of_vh)
    result = u @ inner @ vh
    count = s.shape[-1]
    if of_u is not None and u.shape[-2] > count:
        scaled = _over(of_u, tw.expand_dims(s, -2))
        result = result + (scaled - u @ (_adjoint(u) @ scaled)) @ vh
    if of_vh is not None and vh.shape[-1] > count:
        scaled = _over(of_vh, tw.expand_dims(s, -1))
        result = result + u @ (scaled - (scaled @ _adjoint(vh)) @ vh)
    return result


def _turns(
    u: Tensor,
    s: Tensor,
    vh: Tensor,
    of_u: Tensor | None,
    of_s: Tensor | None,
    of_vh: Tensor | None,
) -> Tensor:
    """Of U and Vh within their spaces: together, which coinciding values leave free, and apart."""
    products = []
    if of_u is not None:
        products.append(_adjoint(u) @ of_u)
    if of_vh is not None:
        products.append(vh @ _adjoint(of_vh))
    size = _largest(*products)
    skew = [product - _adjoint(product) for product in products]
    if of_vh is None:
        together = apart = skew[0]
    elif of_u is None:
        together, apart = skew[0], -skew[0]
    else:
        together, apart = skew[0] + skew[1], skew[0] - skew[1]
    along, across = tw.expand_dims(s, -2), tw.expand_dims(s, -1)
    result = 0.5 * (
        _quotients(together, along - across, s, of_s, size)
        + _quotients(apart, along + across, s, of_s, size)
    )
    if len(products) == 2 and u.is_complex():
        # U and V turn together by a phase for each singular value.
        result = result + _over(skew[0] * _eye(s), 2 * along)
    return result


def _quotients(
    numerator: Tensor, gaps: Tensor, values: Tensor, of_values: Tensor | None, size: Tensor
) -> Tensor:
    """numerator / gaps off the diagonal of matrices, on which it is 0.

    `of_values` is the gradient by the values, `size` (..., 1, 1) the magnitude of what the
    numerator is a difference of.
    """
    count, step = values.shape[-1], tw.finfo(values.dtype).eps
    diagonal = _eye(values) != 0
    with tw.no_grad():
        close = tw.abs(gaps) <= _STEPS * step * _largest(tw.expand_dims(values, -1))
        none = close & (tw.abs(numerator) <= 8 * count * step * size) & ~diagonal
        limit = tw.zeros_like(gaps)
        if of_values is not None:
            read = of_values != 0
            limit = tw.where(tw.expand_dims(read, -1) | tw.expand_dims(read, -2), math.nan, limit)
    left_out = none | diagonal
    quotient = tw.where(left_out, 0, numerator) / tw.where(left_out, 1, gaps)
    return tw.where(none, limit, quotient)


def _over(x: Tensor, divisor: Tensor) -> Tensor:
    """x / divisor, and 0 where x is 0."""
    zero = x == 0
    return tw.where(zero, 0, x) / tw.where(zero, 1, divisor)


def _largest(*matrices: Tensor) -> Tensor:
    """The largest magnitude in matrices that belong together, (..., 1, 1)."""
    flat = [tw.flatten(tw.abs(x.detach()), -2) for x in matrices]
    both = flat[0] if len(flat) == 1 else tw.concat(flat, axis=-1)
    if both.size == 0:
        return tw.zeros((*both.shape[:-1], 1, 1), dtype=both.dtype)
    return tw.max(both, axis=-1)[..., None, None]


def _eye(values: Tensor) -> Tensor:
    return tw.eye(values.shape[-1], dtype=values.dtype)


def _diagonal(values: Tensor) -> Tensor:
    return tw.expand_dims(values, -1) * _eye(values)


def _adjoint(x: Tensor) -> Tensor:
    return tw.conj(x.mT)
