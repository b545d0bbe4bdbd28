"""PyTorch's names of functions on tensors, for those that `tw` has.

>>> import tilewright as tw
>>> import tilewright.nn.functional as F
>>> F.relu(tw.asarray([-1.0, 2.0])).tolist()
[0.0, 2.0]
"""

from __future__ import annotations

import importlib as _importlib
import typing as _typing

import tilewright as _tw

# All of them: a name is here as soon as `tw` has it.
_ALL = """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices
    adaptive_max_pool3d adaptive_max_pool3d_with_indices affine_grid alpha_dropout avg_pool1d
    avg_pool2d avg_pool3d batch_norm bilinear binary_cross_entropy
    binary_cross_entropy_with_logits celu celu_ channel_shuffle conv1d conv2d conv3d
    conv_transpose1d conv_transpose2d conv_transpose3d cosine_embedding_loss cosine_similarity
    cross_entropy ctc_loss dropout dropout1d dropout2d dropout3d elu elu_ embedding embedding_bag
    feature_alpha_dropout fold gaussian_nll_loss gelu glu grid_sample group_norm gumbel_softmax
    hardshrink hardsigmoid hardswish hardtanh hardtanh_ hinge_embedding_loss huber_loss
    instance_norm interpolate kl_div l1_loss layer_norm leaky_relu leaky_relu_ linear
    local_response_norm log_softmax logsigmoid lp_pool1d lp_pool2d lp_pool3d margin_ranking_loss
    max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d
    max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d mish mse_loss multi_margin_loss
    multilabel_margin_loss multilabel_soft_margin_loss nll_loss normalize one_hot pad
    pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu relu6 relu_
    rms_norm rrelu scaled_dot_product_attention selu selu_ sigmoid silu smooth_l1_loss
    soft_margin_loss softmax softmin softplus softshrink softsign tanh tanhshrink threshold
    threshold_ triplet_margin_loss triplet_margin_with_distance_loss unfold upsample
"""
# Beside PyTorch's, since models call them with those.
_OWN = frozenset({"rotary_embedding"})
_NAMES = frozenset(_ALL.split())

if _typing.TYPE_CHECKING:  # with the types that they have in tw
    from tilewright import binary_cross_entropy as binary_cross_entropy  # noqa: PLC0414
    from tilewright import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits  # noqa: PLC0414
    from tilewright import cosine_embedding_loss as cosine_embedding_loss  # noqa: PLC0414
    from tilewright import cosine_similarity as cosine_similarity  # noqa: PLC0414
    from tilewright import cross_entropy as cross_entropy  # noqa: PLC0414
    from tilewright import dropout as dropout  # noqa: PLC0414
    from tilewright import elu as elu  # noqa: PLC0414
    from tilewright import gaussian_nll_loss as gaussian_nll_loss  # noqa: PLC0414
    from tilewright import hinge_embedding_loss as hinge_embedding_loss  # noqa: PLC0414
    from tilewright import huber_loss as huber_loss  # noqa: PLC0414
    from tilewright import kl_div as kl_div  # noqa: PLC0414
    from tilewright import l1_loss as l1_loss  # noqa: PLC0414
    from tilewright import linear as linear  # noqa: PLC0414
    from tilewright import log_softmax as log_softmax  # noqa: PLC0414
    from tilewright import margin_ranking_loss as margin_ranking_loss  # noqa: PLC0414
    from tilewright import mse_loss as mse_loss  # noqa: PLC0414
    from tilewright import nll_loss as nll_loss  # noqa: PLC0414
    from tilewright import one_hot as one_hot  # noqa: PLC0414
    from tilewright import pad as pad  # noqa: PLC0414
    from tilewright import pairwise_distance as pairwise_distance  # noqa: PLC0414
    from tilewright import poisson_nll_loss as poisson_nll_loss  # noqa: PLC0414
    from tilewright import relu as relu  # noqa: PLC0414
    from tilewright import rotary_embedding as rotary_embedding  # noqa: PLC0414
    from tilewright import sigmoid as sigmoid  # noqa: PLC0414
    from tilewright import silu as silu  # noqa: PLC0414
    from tilewright import smooth_l1_loss as smooth_l1_loss  # noqa: PLC0414
    from tilewright import soft_margin_loss as soft_margin_loss  # noqa: PLC0414
    from tilewright import softmax as softmax  # noqa: PLC0414
    from tilewright import softplus as softplus  # noqa: PLC0414
    from tilewright import tanh as tanh  # noqa: PLC0414
    from tilewright import triplet_margin_loss as triplet_margin_loss  # noqa: PLC0414


# Those that are no ops of their own, by the module that has them.
_MADE_OF_OPS = {
    "ctc_loss": "ctc_loss",
    "embedding": "embedding_bag",
    "embedding_bag": "embedding_bag",
    "interpolate": "interpolate",
    "upsample": "interpolate",
    **dict.fromkeys(
        ("max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
         "adaptive_max_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d", "fractional_max_pool2d",
         "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
         "fractional_max_pool3d_with_indices"),
        "pooling",
    ),
    **dict.fromkeys(
        ("gumbel_softmax", "normalize", "pdist", "rrelu", "softmin",
         "triplet_margin_with_distance_loss"),
        "composites",
    ),
}  # fmt: skip


def __getattr__(name: str) -> _typing.Any:
    if name in _MADE_OF_OPS:
        home = _importlib.import_module(f"tilewright.nn.functions.{_MADE_OF_OPS[name]}")
        function = getattr(home, name)
    else:
        function = getattr(_tw, name, None) if name in _NAMES | _OWN else None
    if function is None:
        raise AttributeError(f"module 'tilewright.nn.functional' has no attribute {name!r}")
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted({name for name in _NAMES | _OWN if hasattr(_tw, name)} | set(_MADE_OF_OPS))
