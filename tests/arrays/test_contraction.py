"""Sums of products over axes, held against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw


def pair(rng, *shapes):
    values = [rng.standard_normal(shape) for shape in shapes]
    return values, [tw.asarray(each, dtype=tw.float64) for each in values]


def close(got, expected):
    assert tuple(got.shape) == np.shape(expected)
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=1e-12, atol=1e-12)


SUBSCRIPTS = [
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("ij,jk", (3, 4), (4, 5)),
    ("ij,jk->ki", (3, 4), (4, 5)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("bij,bkj->b", (2, 3, 4), (2, 5, 4)),
    ("i,i", (4,), (4,)),
    ("i,j->ij", (4,), (3,)),
    ("i,j->ji", (4,), (3,)),
    ("ii", (4, 4)),
    ("ii->i", (4, 4)),
    ("iij->ji", (4, 4, 3)),
    ("iii->i", (3, 3, 3)),
    ("ij->", (3, 4)),
    ("ij->ji", (3, 4)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
    ("...ij,jk", (2, 3, 4), (4, 2)),
    ("i...,i...->...", (3, 2, 5), (3, 2, 5)),
    ("...,...", (3, 2), (2,)),
    ("ij,kj->ik", (3, 1), (4, 5)),
    ("ij,jk,kl->il", (3, 4), (4, 5), (5, 2)),
    ("ab,bc,cd,de,ef->af", (2, 7), (7, 3), (3, 6), (6, 2), (2, 5)),
    ("ab,bc,cd,de,ef,fg->ag", (2, 7), (7, 3), (3, 6), (6, 2), (2, 5), (5, 3)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("ijk,ilm,njm,nlk->", (2, 3, 4), (2, 5, 3), (6, 3, 3), (6, 5, 4)),
    ("ab,ab->ab", (3, 4), (3, 4)),
    (" i j , j -> i ", (3, 4), (4,)),
    ("ij,jk->ik", (3, 0), (0, 5)),
    (",ij->ij", (), (2, 3)),
]


@pytest.mark.parametrize("case", SUBSCRIPTS, ids=lambda case: case[0])
def test_einsum_is_numpys(case, rng):
    subscripts, *shapes = case
    values, tensors = pair(rng, *shapes)
    close(tw.einsum(subscripts, *tensors), np.einsum(subscripts, *values))


@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "iij,jk->k", "...i,...i->...", "ij,jk,kl->il"])
def test_einsum_gradients(subscripts, rng):
    shapes = {
        "ij,jk->ik": [(2, 3), (3, 4)],
        "iij,jk->k": [(2, 2, 3), (3, 4)],
        "...i,...i->...": [(2, 3), (3,)],
        "ij,jk,kl->il": [(2, 3), (3, 2), (2, 2)],
    }[subscripts]
    _, tensors = pair(rng, *shapes)
    for x in tensors:
        x.requires_grad = True
    assert tw.gradcheck(lambda *xs: tw.einsum(subscripts, *xs), tuple(tensors))
    assert tw.gradgradcheck(lambda *xs: tw.einsum(subscripts, *xs), tuple(tensors))


def test_random_subscripts(rng):
    for _ in range(200):
        sizes = {letter: int(rng.integers(1, 5)) for letter in "abcdef"}
        parts = ["".join(rng.choice(list("abcdef"), rng.integers(0, 4))) for _ in range(3)]
        used = sorted({*"".join(parts)})
        out = "".join(rng.permutation(used)[: rng.integers(0, len(used) + 1)]) if used else ""
        text = ",".join(parts) + "->" + out
        values, tensors = pair(rng, *[tuple(sizes[c] for c in part) for part in parts])
        close(tw.einsum(text, *tensors), np.einsum(text, *values))


def test_integers_and_other_types(rng):
    a, b = rng.integers(-9, 9, (3, 4)), rng.integers(-9, 9, (4, 5))
    got = tw.einsum("ij,jk->ik", tw.asarray(a), tw.asarray(b))
    assert got.dtype == tw.int64
    assert got.tolist() == (a @ b).tolist()
    assert tw.tensordot(tw.asarray(a), tw.asarray(b), axes=1).tolist() == (a @ b).tolist()


@pytest.mark.parametrize("subscripts", ["ij,ij->i", "ij,ji->j", "ij,ij->", "i...,i...->..."])
def test_products_without_other_axes_keep_their_type(subscripts, rng):
    """Also where matrix products take their place: of whole and complex numbers, by autocast."""
    values = rng.integers(-9, 9, (2, 4, 4)).astype(float)
    expected = np.einsum(subscripts, *values)
    for dtype in ("float32", "float64", "float16", "bfloat16", "int32", "complex64"):
        got = tw.einsum(subscripts, *(tw.asarray(each).astype(dtype) for each in values))
        assert str(got.dtype) == dtype
        np.testing.assert_array_equal(got.astype(tw.complex128).numpy(), expected)
    with tw.autocast():
        got = tw.einsum(subscripts, *(tw.asarray(each).astype(tw.float32) for each in values))
    assert got.dtype == tw.bfloat16


@pytest.mark.parametrize(
    ("subscripts", "shapes", "message"),
    [
        ("ij,jk->ik", [(2, 3)], "names 2 operands"),
        ("ij->ik", [(2, 3)], "in no operand"),
        ("ij->ii", [(2, 3)], "twice in the result"),
        ("ijk->i", [(2, 3)], "does not fit"),
        ("i->i", [(2, 3)], "does not fit"),
        ("i1->i", [(2, 3)], "no letter"),
        ("ij,jk", [(2, 3), (4, 5)], "has sizes 3 and 4"),
        ("ii", [(2, 3)], "has sizes 2 and 3"),
        ("i.j", [(2, 3)], "no letter"),
    ],
)
def test_wrong_subscripts(subscripts, shapes, message, rng):
    with pytest.raises(ValueError, match=message):
        tw.einsum(subscripts, *pair(rng, *shapes)[1])


def test_wrong_arguments():
    x = tw.ones((2, 3))
    with pytest.raises(TypeError, match="takes tensors, got ndarray"):
        tw.einsum("i", np.ones(2))
    with pytest.raises(TypeError, match="subscripts is a str"):
        tw.einsum(x, "ij")
    with pytest.raises(ValueError, match="cannot be summed over"):
        tw.tensordot(x, x, axes=3)
    with pytest.raises(ValueError, match="differ"):
        tw.tensordot(x, x, axes=1)
    with pytest.raises(ValueError, match="repeated"):
        tw.tensordot(tw.ones((2, 2)), tw.ones((2, 2)), axes=((0, 0), (0, 1)))
    with pytest.raises(ValueError, match="out of range"):
        tw.tensordot(x, x, axes=((2,), (0,)))
    with pytest.raises(ValueError, match="has size 3 in x1 and 2 in x2"):
        tw.vecdot(x, tw.ones((2, 2)))
    with pytest.raises(ValueError, match="axes are needed"):
        tw.outer(x, x)
    with pytest.raises(ValueError, match="2 matrices by 3"):
        tw.bmm(tw.ones((2, 2, 2)), tw.ones((3, 2, 2)))


@pytest.mark.parametrize("axes", [0, 1, 2, ((1,), (0,)), ((-1, 0), (0, 2)), ((), ()), (1, 0)])
def test_tensordot_is_numpys(axes, rng):
    shapes = {2: [(2, 3, 4), (3, 4, 5)], ((-1, 0), (0, 2)): [(2, 3, 4), (4, 3, 2)]}
    shapes[(1,), (0,)] = shapes[(1, 0)] = [(2, 3), (3, 4)]
    values, tensors = pair(rng, *shapes.get(axes, [(2, 3), (3, 4)]))
    close(tw.tensordot(*tensors, axes=axes), np.tensordot(*values, axes=axes))


def test_vectors_and_matrices(rng):
    (u, v, a, b), (x, y, m, n) = pair(rng, (3,), (3,), (2, 3), (3, 3))
    close(tw.vecdot(x, y), u @ v)
    close(tw.vecdot(m, x), a @ u)
    close(tw.vecdot(tw.permute_dims(m, (1, 0)), tw.expand_dims(x, 1), axis=-2), a @ u)
    close(tw.outer(x, y), np.outer(u, v))
    close(tw.dot(x, y), u @ v)
    close(tw.inner(m, n), np.inner(a, b))
    close(tw.mm(m, n), a @ b)
    close(tw.mv(m, x), a @ u)
    close(tw.bmm(m[None], n[None]), (a @ b)[None])
    close(tw.kron(m, n), np.kron(a, b))
    close(tw.kron(x, n), np.kron(u, b))


def test_operands_are_not_changed(rng):
    _, tensors = pair(rng, (3, 3), (3, 3))
    kept = [x.numpy().copy() for x in tensors]
    tw.einsum("ij,jk,kl->il", *tensors, tensors[0])
    for x, before in zip(tensors, kept, strict=True):
        np.testing.assert_array_equal(x.numpy(), before)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_products_of_operands_that_broadcast(dtype: str) -> None:
    """Each pair of shapes of up to two axes, of which some have one element."""
    shapes = [(), (1,), (3,), (1, 1), (1, 3), (4, 1), (4, 3)]
    for first in shapes:
        for second in shapes:
            a = np.arange(1, np.prod(first, dtype=int) + 1.0).reshape(first)
            b = np.arange(2, np.prod(second, dtype=int) + 2.0).reshape(second)
            products = a * b
            for axis in (None, *range(-products.ndim, 0)):
                x, y = tw.asarray(a).astype(dtype), tw.asarray(b).astype(dtype)
                got = tw.sum_of_products(x, y, axis=axis).astype(tw.float64).numpy()
                expected = np.sum(products, axis=axis)
                assert got.shape == expected.shape
                np.testing.assert_allclose(got, expected, 0.004)
    x, y = np.ones((1, 3)), np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(tw.vecdot(tw.asarray(x), tw.asarray(y)).numpy(), y.sum(1))


def test_products_in_a_batch_have_the_bits_of_each_alone() -> None:
    rng = np.random.default_rng(7)
    x, w = tw.asarray(rng.normal(size=(9, 301))), tw.asarray(rng.normal(size=(1, 301)))
    with tw.use_batch_invariant():
        together = tw.vecdot(x, w).numpy()
        alone = [tw.vecdot(x[i : i + 1], w).numpy()[0] for i in range(9)]
    np.testing.assert_array_equal(together, alone)
