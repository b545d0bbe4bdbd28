"""Test records, one for each op, by family."""

from cases import (
    activations,
    attention,
    convolution,
    embedding,
    losses,
    matmul,
    network,
    norm,
    pointwise,
    pooling,
    recurrent,
    reductions,
    shapes,
    softmax,
    special,
    total_norm,
    vector_losses,
    windows,
)
from cases.record import OpCase

RECORDS: tuple[OpCase, ...] = (
    *pointwise.RECORDS,
    *activations.RECORDS,
    *special.RECORDS,
    *norm.RECORDS,
    *reductions.RECORDS,
    *matmul.RECORDS,
    *softmax.RECORDS,
    *attention.RECORDS,
    *network.RECORDS,
    *losses.RECORDS,
    *vector_losses.RECORDS,
    *convolution.RECORDS,
    *windows.RECORDS,
    *recurrent.RECORDS,
    *embedding.RECORDS,
    *pooling.RECORDS,
    *shapes.RECORDS,
    *total_norm.RECORDS,
)
