"""Special functions by the names of SciPy's and PyTorch's `special`.

Many are ops of the package under another name; the others are made of ops, and run wherever these
do.
"""

from __future__ import annotations

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
from tilewright._compat.torch_functions import mvlgamma as multigammaln
from tilewright.special.bessel import i0 as i0
from tilewright.special.bessel import i0e as i0e
from tilewright.special.bessel import i1 as i1
from tilewright.special.bessel import i1e as i1e
from tilewright.special.entropy import entr as entr
from tilewright.special.hurwitz import zeta as zeta
from tilewright.special.normal import erfcx as erfcx
from tilewright.special.normal import log_ndtr as log_ndtr
from tilewright.special.normal import ndtr as ndtr
from tilewright.special.normal import ndtri as ndtri

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammaln",
    "i0", "i0e", "i1", "i1e", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp",
    "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round", "sinc", "softmax", "xlog1py",
    "xlogy", "zeta",
]  # fmt: skip
