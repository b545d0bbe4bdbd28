"""The names of tilewright.special. Made by tools/make_stub.py."""

# Signatures as they are: long, and with names of builtins.
# ruff: noqa
# fmt: off

import builtins
from collections.abc import Sequence
from typing import Any, TypeAlias, overload

from tilewright._core import Generator, Tensor, ValuesAndIndices, _DType, _DTypeLike

_Bool: TypeAlias = builtins.bool
_Int: TypeAlias = builtins.int
_Float: TypeAlias = builtins.float

from tilewright import digamma as digamma
from tilewright import digamma as psi
from tilewright import erf as erf
from tilewright import erfc as erfc
from tilewright import erfinv as erfinv
from tilewright import exp2 as exp2
from tilewright import expm1 as expm1
from tilewright import lgamma as gammaln
from tilewright import log1p as log1p
from tilewright import log_softmax as log_softmax
from tilewright import logit as logit
from tilewright import logsumexp as logsumexp
from tilewright import polygamma as polygamma
from tilewright import round as round
from tilewright import sigmoid as expit
from tilewright import sinc as sinc
from tilewright import softmax as softmax
from tilewright import xlog1py as xlog1py
from tilewright import xlogy as xlogy
from tilewright.special.hurwitz import zeta as zeta

@overload
def multigammaln(x: Tensor, p: _Int) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension p, for x > (p - 1) / 2."""
@overload
def multigammaln(input: Tensor, p: _Int) -> Tensor: ...
@overload
def i0(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind and order 0."""
@overload
def i0(input: Tensor) -> Tensor: ...
@overload
def i0e(x: Tensor) -> Tensor:
    """e^-|x| I0(x), which neither grows nor overflows."""
@overload
def i0e(input: Tensor) -> Tensor: ...
@overload
def i1(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind and order 1, the derivative of I0."""
@overload
def i1(input: Tensor) -> Tensor: ...
@overload
def i1e(x: Tensor) -> Tensor:
    """e^-|x| I1(x), which neither grows nor overflows."""
@overload
def i1e(input: Tensor) -> Tensor: ...
@overload
def entr(x: Tensor) -> Tensor:
    """-x log(x), a term of an entropy: 0 at 0 and negative infinity below."""
@overload
def entr(input: Tensor) -> Tensor: ...
@overload
def erfcx(x: Tensor) -> Tensor:
    """e^(x^2) erfc(x), the complement of the error function without its decay."""
@overload
def erfcx(input: Tensor) -> Tensor: ...
@overload
def log_ndtr(x: Tensor) -> Tensor:
    """The logarithm of `ndtr`, which stays finite where that is 0."""
@overload
def log_ndtr(input: Tensor) -> Tensor: ...
@overload
def ndtr(x: Tensor) -> Tensor:
    """The share of the standard normal distribution below x."""
@overload
def ndtr(input: Tensor) -> Tensor: ...
@overload
def ndtri(x: Tensor) -> Tensor:
    """The place below which a share x of the standard normal distribution lies, ..."""
@overload
def ndtri(input: Tensor) -> Tensor: ...
__all__ = ['digamma', 'entr', 'erf', 'erfc', 'erfcx', 'erfinv', 'exp2', 'expit', 'expm1', 'gammaln', 'i0', 'i0e', 'i1', 'i1e', 'log1p', 'log_ndtr', 'log_softmax', 'logit', 'logsumexp', 'multigammaln', 'ndtr', 'ndtri', 'polygamma', 'psi', 'round', 'sinc', 'softmax', 'xlog1py', 'xlogy', 'zeta']
