"""Test records, one for each op, by family."""

from cases import matmul, network, pointwise, reductions, shapes, softmax
from cases.record import OpCase

RECORDS: tuple[OpCase, ...] = (
    *pointwise.RECORDS,
    *reductions.RECORDS,
    *matmul.RECORDS,
    *softmax.RECORDS,
    *network.RECORDS,
    *shapes.RECORDS,
)
