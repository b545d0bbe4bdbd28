"""Rotary position embedding beside its record: where operands lie, their types, what it is for."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw


def angles(length: int, half: int) -> tuple[tw.Tensor, tw.Tensor]:
    turns = np.arange(length)[:, None] * 100.0 ** (-np.arange(half) / half)
    return tw.asarray(np.cos(turns)), tw.asarray(np.sin(turns))


@pytest.mark.parametrize("interleaved", [False, True])
def test_scores_depend_on_distances_alone(interleaved: bool, rng: np.random.Generator) -> None:
    q, k = (tw.asarray(np.tile(rng.normal(size=10), (9, 1))) for _ in range(2))
    cos, sin = angles(9, 5)
    q, k = (tw.rotary_embedding(x, cos, sin, interleaved=interleaved) for x in (q, k))
    scores = np.asarray(q @ k.T)
    for distance in range(-8, 9):
        diagonal = np.diagonal(scores, distance)
        np.testing.assert_allclose(diagonal, diagonal[0], rtol=1e-12, atol=1e-12)
    assert np.unique(scores.round(6)).size == 17


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("kernel", ["vector", "naive", "body"])
def test_operands_may_lie_anywhere(
    interleaved: bool, kernel: str, rng: np.random.Generator
) -> None:
    cos, sin = (x.astype("float32") for x in angles(7, 5))
    x = tw.asarray(rng.normal(size=(2, 7, 3, 12)).astype("float32"))
    wide = tw.asarray(np.repeat(np.asarray(x), 2, axis=-1))
    late = tw.asarray(np.ascontiguousarray(np.asarray(cos).T)).T
    with tw.kernels.use(rotary_embedding=kernel):
        expected = tw.rotary_embedding(
            x.permute((0, 2, 1, 3)).copy(), cos, sin, interleaved=interleaved
        ).tolist()
        for there in (x, wide[..., ::2]):
            for c in (cos, late, tw.broadcast_to(cos, (3, 7, 5))):
                got = tw.rotary_embedding(
                    there.permute((0, 2, 1, 3)), c, sin, interleaved=interleaved
                )
                assert got.tolist() == expected


@pytest.mark.parametrize("x_type", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("angle_type", ["bfloat16", "float32", "float64"])
def test_the_result_has_the_type_of_x(x_type: str, angle_type: str, rng) -> None:
    x = tw.asarray(rng.normal(size=(3, 6, 8))).astype(x_type).requires_grad_()
    cos, sin = (a.astype(angle_type).requires_grad_() for a in angles(6, 4))
    y = tw.rotary_embedding(x, cos, sin)
    y.sum().backward()
    assert (str(y.dtype), str(x.grad.dtype), str(cos.grad.dtype)) == (
        str(x.dtype), str(x.dtype), str(cos.dtype),
    )  # fmt: skip
    wide = [np.asarray(a.detach().astype("float64")) for a in (x, cos, sin)]
    first, second = wide[0][..., :4], wide[0][..., 4:]
    expected = np.concatenate(
        [first * wide[1] - second * wide[2], first * wide[2] + second * wide[1]], axis=-1
    )
    loose = 0.02 if "bfloat16" in (x_type, angle_type) else 2e-3 if x_type == "float16" else 1e-6
    np.testing.assert_allclose(
        np.asarray(y.detach().astype("float64")), expected, rtol=loose, atol=loose
    )


def test_a_rotation_back_is_the_gradient(rng: np.random.Generator) -> None:
    x = tw.asarray(rng.normal(size=(6, 9))).requires_grad_()
    cos, sin = angles(6, 4)
    with tw.explain() as report:
        tw.rotary_embedding(x, cos, sin).square().sum().backward()
    np.testing.assert_allclose(np.asarray(x.grad), 2 * np.asarray(x.detach()), rtol=1e-12)
    assert [e.kernel for e in report._recorded if e.op == "rotary_embedding"] == ["vector"] * 2
