"""Linear algebra against PyTorch, and gradients against differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")
la = tw.linalg


def tensor(values, requires_grad=False):
    x = tw.asarray(np.array(values), dtype=tw.float64)
    x.requires_grad = requires_grad
    return x


def close(got, expected, tolerance=1e-10):
    expected = expected.resolve_conj() if isinstance(expected, torch.Tensor) else expected
    assert tuple(got.shape) == tuple(expected.shape)
    np.testing.assert_allclose(
        got.detach().numpy(), np.asarray(expected), rtol=tolerance, atol=tolerance
    )


def matrices(rng, *shape):
    return rng.standard_normal(shape)


def definite(rng, *shape):
    x = matrices(rng, *shape)
    return x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1])


BATCHES = [(), (3,), (2, 1), (0,)]


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "cholesky", "eigh", "eigvalsh"])
def test_square_matrices(name, size, batch, rng):
    values = definite(rng, *batch, size, size)
    got, expected = (
        getattr(la, name)(tensor(values)),
        getattr(torch.linalg, name)(torch.tensor(values)),
    )
    if name == "eigh":
        close(got.eigenvalues, expected.eigenvalues)
        again = got.eigenvectors @ (got.eigenvalues[..., None] * got.eigenvectors.mT)
        return close(again, values)
    if name == "slogdet":
        close(got.sign, expected.sign)
        return close(got.logabsdet, expected.logabsdet)
    return close(got, expected)


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5), (2, 4, 3), (2, 0, 3), (0, 3, 3)])
def test_other_matrices(shape, rng):
    values = matrices(rng, *shape)
    x, theirs = tensor(values), torch.tensor(values)
    for full in (False, True):
        u, s, vh = la.svd(x, full_matrices=full)
        expected = torch.linalg.svd(theirs, full_matrices=full)
        assert [tuple(p.shape) for p in (u, s, vh)] == [tuple(p.shape) for p in expected]
        count = s.shape[-1]
        close(u[..., :count] @ (s[..., None] * vh[..., :count, :]), values)
        close(s, expected.S)
    close(la.svdvals(x), torch.linalg.svdvals(theirs))
    for mode in ("reduced", "complete"):
        q, r = la.qr(x, mode=mode)
        expected = torch.linalg.qr(theirs, mode=mode)
        assert [tuple(p.shape) for p in (q, r)] == [tuple(p.shape) for p in expected]
        close(q @ r, values)
    close(la.pinv(x), torch.linalg.pinv(theirs))
    if 0 not in shape:
        close(la.matrix_rank(x), torch.linalg.matrix_rank(theirs))
        close(la.cond(x), torch.linalg.cond(theirs))


def test_rank_counts_what_is_not_small():
    x = np.ones((4, 3))
    assert la.matrix_rank(tensor(x)).item() == 1
    assert la.matrix_rank(tensor(np.zeros((2, 3, 3)))).tolist() == [0, 0]
    assert la.matrix_rank(tensor(np.diag([1.0, 1e-3, 1e-6])), rtol=1e-4).item() == 2


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 3), (3,)),
        ((3, 3), (3, 2)),
        ((2, 3, 3), (3, 2)),
        ((3, 3), (2, 3, 4)),
        ((2, 1, 3, 3), (4, 3, 1)),
    ],
)
def test_solve(a, b, rng):
    values = definite(rng, *a), matrices(rng, *b)
    x, y = (tensor(v, requires_grad=True) for v in values)
    close(la.solve(x, y), np.linalg.solve(values[0], values[1]))
    assert tw.gradcheck(la.solve, (x, y))
    assert tw.gradgradcheck(la.solve, (x, y))


def symmetric(x):
    return x + x.mT


GRADIENTS = {
    "inv": (la.inv, (2, 3, 3)),
    "det": (la.det, (2, 3, 3)),
    "slogdet": (lambda x: la.slogdet(x).logabsdet, (2, 3, 3)),
    "cholesky": (lambda x: la.cholesky(symmetric(x)), (2, 3, 3)),
    "cholesky upper": (lambda x: la.cholesky(symmetric(x), upper=True), (3, 3)),
    "eigvalsh": (lambda x: la.eigvalsh(symmetric(x)), (2, 3, 3)),
    "eigh": (lambda x: tw.abs(la.eigh(symmetric(x)).eigenvectors), (3, 3)),
    "qr": (lambda x: sum(tw.sum(p * p * p) for p in la.qr(x)), (4, 3)),
    "qr wide": (lambda x: sum(tw.sum(p * p * p) for p in la.qr(x)), (2, 3, 5)),
    "qr complete": (lambda x: la.qr(x, mode="complete").R, (3, 4)),
    "svdvals": (la.svdvals, (2, 3, 4)),
    "svd": (lambda x: tuple(tw.abs(p) for p in la.svd(x, full_matrices=False)), (3, 3)),
    "svd tall": (lambda x: tuple(tw.abs(p) for p in la.svd(x, full_matrices=False)), (4, 2)),
    "svd wide": (lambda x: tuple(tw.abs(p) for p in la.svd(x, full_matrices=False)), (2, 4)),
    "pinv": (la.pinv, (4, 3)),
    "pinv wide": (la.pinv, (2, 3, 4)),
    "power": (lambda x: la.matrix_power(x, 3), (3, 3)),
    "inverse power": (lambda x: la.matrix_power(x, -2), (3, 3)),
    "trace": (la.trace, (2, 3, 4)),
    "diagonal": (lambda x: la.diagonal(x, offset=1), (2, 3, 4)),
    "vector norm": (lambda x: la.vector_norm(x, axis=-1), (2, 3)),
    "vector norm 3": (lambda x: la.vector_norm(x, axis=(0, 1), ord=3), (2, 3)),
    "matrix norm": (lambda x: la.matrix_norm(x, ord="nuc"), (2, 3, 3)),
    "cond": (la.cond, (3, 3)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name, rng):
    function, shape = GRADIENTS[name]
    values = matrices(rng, *shape)
    if shape[-1] == shape[-2]:
        values = values + 4 * np.diag(np.arange(1.0, 1 + shape[-1]))
    x = tensor(values, requires_grad=True)
    assert tw.gradcheck(function, (x,))
    assert tw.gradgradcheck(function, (x,))


def test_determinants_of_singular_matrices_have_a_gradient():
    for values in ([[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]):
        x = tensor(values, requires_grad=True)
        la.det(x).backward()
        (a, b), (c, d) = values
        np.testing.assert_allclose(x.grad.numpy(), [[d, -c], [-b, a]], atol=1e-12)


@pytest.mark.parametrize("n", [-2, -1, 0, 1, 2, 5])
def test_powers(n, rng):
    values = definite(rng, 2, 3, 3)
    close(la.matrix_power(tensor(values), n), np.linalg.matrix_power(values, n), 1e-8)


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf])
@pytest.mark.parametrize("keepdims", [False, True])
def test_matrix_norms(ord, keepdims, rng):
    values = matrices(rng, 2, 3, 4)
    got = la.matrix_norm(tensor(values), ord=ord, keepdims=keepdims)
    close(got, torch.linalg.matrix_norm(torch.tensor(values), ord, keepdim=keepdims))
    expected = torch.linalg.norm(torch.tensor(values), ord, (0, 2), keepdims)
    close(la.norm(tensor(values), ord, (0, 2), keepdims), expected)


@pytest.mark.parametrize("ord", [0, 1, 2, 3, -1, 0.5, math.inf, -math.inf])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_vector_norms(ord, axis, rng):
    values = matrices(rng, 2, 3, 4)
    for keepdims in (False, True):
        got = la.vector_norm(tensor(values), axis=axis, keepdims=keepdims, ord=ord)
        expected = torch.linalg.vector_norm(torch.tensor(values), ord, axis, keepdims)
        close(got, expected)


@pytest.mark.parametrize("ord", [1, 2, 3, 2.5, 0.5, -1, -2])
@pytest.mark.parametrize("values", [(0.0, 0.0), (0.0, -2.0), (3.0, 4.0)])
def test_gradients_of_norms_at_zeros_as_pytorch(ord, values):
    x = tensor(np.array(values), requires_grad=True)
    theirs = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    la.vector_norm(x, ord=ord).backward()
    torch.linalg.vector_norm(theirs, ord).backward()
    close(x.grad, theirs.grad)


@pytest.mark.parametrize("offset", [-5, -2, -1, 0, 1, 3, 9])
def test_diagonals(offset, rng):
    values = matrices(rng, 2, 3, 4)
    got = la.diagonal(tensor(values), offset=offset)
    expected = np.diagonal(values, offset, -2, -1) if -3 < offset < 4 else np.zeros((2, 0))
    close(got, expected)
    close(la.trace(tensor(values), offset=offset), expected.sum(-1))


def test_cross(rng):
    a, b = matrices(rng, 2, 3), matrices(rng, 4, 1, 3)
    close(la.cross(tensor(a), tensor(b)), np.cross(a, b))
    a, b = matrices(rng, 3, 2), matrices(rng, 3, 2)
    close(la.cross(tensor(a), tensor(b), axis=0), np.cross(a, b, axis=0))
    with pytest.raises(ValueError, match="must have size 3"):
        la.cross(tensor(a), tensor(b))


def test_results_do_not_share_memory_with_operands(rng):
    values = definite(rng, 3, 3)
    x = tensor(values)
    for y in (la.inv(x), la.cholesky(x), la.qr(x).R, la.svd(x).U, la.solve(x, x)):
        y.add_(1.0)
    np.testing.assert_array_equal(x.numpy(), values)


def test_multi_dot(rng):
    shapes = (2, 9), (9, 3), (3, 7), (7, 4)
    values = [matrices(rng, *shape) for shape in shapes]
    close(la.multi_dot([tensor(v) for v in values]), np.linalg.multi_dot(values))
    values[0], values[-1] = values[0][0], values[-1][:, 0]
    close(la.multi_dot([tensor(v) for v in values]), np.linalg.multi_dot(values))


def test_wrong_operands():
    singular = tensor(np.ones((2, 2)))
    with pytest.raises(la.LinAlgError, match="inv"):
        la.inv(singular)
    with pytest.raises(la.LinAlgError, match="solve"):
        la.solve(singular, singular)
    with pytest.raises(la.LinAlgError, match="cholesky"):
        la.cholesky(tensor([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match="square matrices"):
        la.inv(tw.ones((2, 3)))
    with pytest.raises(ValueError, match="a matrix or a batch"):
        la.svd(tw.ones((3,)))
    with pytest.raises(TypeError, match="takes float32, float64 or complex numbers, got"):
        la.det(tw.asarray([[1, 2], [3, 4]]))
    with pytest.raises(TypeError, match="takes tensors, got ndarray"):
        la.qr(np.ones((2, 2)))
    with pytest.raises(ValueError, match="mode"):
        la.qr(tw.ones((2, 2)), mode="r")
    with pytest.raises(ValueError, match="does not fit"):
        la.solve(tw.eye(3), tw.ones((2,)))
    with pytest.raises(ValueError, match="ord is"):
        la.matrix_norm(tw.ones((2, 2)), ord=3)
    with pytest.raises(ValueError, match="'fro' is a norm of matrices"):
        la.norm(tw.ones((2, 2)), "fro", 0)
    with pytest.raises(ValueError, match="runs on the CPU"):
        la.inv(tw.eye(2).to("null"))
    x = tw.ones((4, 2), requires_grad=True)
    with pytest.raises(RuntimeError, match="no gradient"):
        la.qr(x, mode="complete").Q.sum().backward()
    with pytest.raises(RuntimeError, match="full_matrices=False alone"):
        la.svd(x).U.sum().backward()


# ---- complex numbers ----


def complex_matrices(rng, *shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def of_both(call, theirs, *arrays, tolerance=1e-9):
    """Values of a function that is told tensors by either library, and gradients of a real loss."""
    ours = [tw.asarray(np.array(a), copy=True).requires_grad_() for a in arrays]
    other = [torch.tensor(np.array(a)).requires_grad_() for a in arrays]
    y, z = call(ours), theirs(other)
    close(y, z.detach(), tolerance)
    rng = np.random.default_rng(3)
    g = rng.standard_normal(y.shape)
    if z.is_complex():
        g = g + 1j * rng.standard_normal(y.shape)
    y.backward(tw.asarray(np.array(g), copy=True))
    z.backward(torch.tensor(np.array(g)))
    for a, b in zip(ours, other, strict=True):
        close(a.grad, b.grad, tolerance)


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("name", ["inv", "det", "pinv"])
def test_complex_matrices(name, batch, rng):
    x = complex_matrices(rng, *batch, 4, 4)
    of_both(lambda t: getattr(la, name)(*t), lambda t: getattr(torch.linalg, name)(*t), x)


def test_complex_decompositions(rng):
    x, b = complex_matrices(rng, 3, 4, 4), complex_matrices(rng, 3, 4, 2)
    hermitian = x + np.swapaxes(x.conj(), -1, -2)
    tl = torch.linalg
    of_both(lambda t: la.solve(*t), lambda t: tl.solve(*t), x, b)
    of_both(lambda t: la.slogdet(*t).sign, lambda t: tl.slogdet(*t)[0], x)
    of_both(lambda t: la.slogdet(*t).logabsdet, lambda t: tl.slogdet(*t)[1], x)

    # Of a product, so that what is no gradient of Hermitian matrices falls out.
    def factor(t, m, upper):
        eye = (tw.asarray if m is tw else torch.tensor)(np.eye(4))
        return m.linalg.cholesky(t[0] @ t[0].mH + 4 * eye, upper=upper)

    for upper in (False, True):
        of_both(lambda t, u=upper: factor(t, tw, u), lambda t, u=upper: factor(t, torch, u), x)
    of_both(lambda t: la.eigvalsh(*t), lambda t: tl.eigvalsh(*t), hermitian)
    of_both(lambda t: tw.abs(la.eigh(*t)[1]), lambda t: torch.abs(tl.eigh(*t)[1]), hermitian)
    of_both(lambda t: la.svdvals(*t), lambda t: tl.svdvals(*t), x[..., :3])
    for values in (x, x[..., :3], x[..., :3, :]):
        for i in range(2):
            of_both(lambda t, i=i: la.qr(*t)[i], lambda t, i=i: tl.qr(*t)[i], values)
        for i in (0, 2):
            of_both(
                lambda t, i=i: tw.abs(la.svd(*t, full_matrices=False)[i]),
                lambda t, i=i: torch.abs(tl.svd(*t, full_matrices=False)[i]),
                values,
            )

        def product(t, svd):
            u, s, vh = svd(*t, full_matrices=False)
            return (u * (s**2)[..., None, :]) @ vh

        of_both(lambda t, f=product: f(t, la.svd), lambda t, f=product: f(t, tl.svd), values)


def test_complex_norms(rng):
    x = complex_matrices(rng, 3, 4)
    for order in (2, 1, 3, np.inf, -np.inf):
        of_both(
            lambda t, o=order: la.vector_norm(*t, ord=o),
            lambda t, o=order: torch.linalg.vector_norm(*t, ord=o),
            x,
        )
    for order in ("fro", "nuc", 1, 2, np.inf):
        of_both(
            lambda t, o=order: la.matrix_norm(*t, ord=o),
            lambda t, o=order: torch.linalg.matrix_norm(*t, ord=o),
            x,
        )
    assert la.vector_norm(tw.asarray(np.array([1j, 0, 2])), ord=0).item() == 2
    of_both(lambda t: tw.vecdot(*t), lambda t: torch.linalg.vecdot(*t), x, x[::-1].copy())
    close(la.matrix_power(tw.asarray(x[:, :3].copy()), 3), np.linalg.matrix_power(x[:, :3], 3))
    singular = np.outer(x[0, :3], x[1, :3])
    of_both(lambda t: la.det(*t), lambda t: torch.linalg.det(*t), singular + 0, tolerance=1e-7)


# ---- PyTorch's and NumPy's options ----


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_options_of_pytorch(dtype):
    rng = np.random.default_rng(3)
    x = matrices(rng, 2, 4, 3).astype(dtype)
    square = matrices(rng, 2, 3, 3).astype(dtype)
    if dtype == np.complex128:
        x, square = x + 1j * matrices(rng, 2, 4, 3), square + 1j * matrices(rng, 2, 3, 3)
    hermitian = square + np.swapaxes(square.conj(), -1, -2)
    t, u, h = (torch.asarray(v) for v in (x, square, hermitian))
    a, b, c = (tw.asarray(v) for v in (x, square, hermitian))
    tl = torch.linalg
    close(la.vector_norm(a, 3, dim=1, keepdim=True), tl.vector_norm(t, 3, dim=1, keepdim=True))
    close(la.matrix_norm(a, "nuc", (0, 1), True), tl.matrix_norm(t, "nuc", (0, 1), True))
    close(la.matrix_norm(a, 1, dim=(2, 0)), tl.matrix_norm(t, 1, dim=(2, 0)))
    close(la.norm(a, 1, dim=(0, 1), keepdim=True), tl.norm(t, 1, dim=(0, 1), keepdim=True))
    close(la.vecdot(a, a, dim=1), tl.vecdot(t, t, dim=1))
    close(la.diagonal(a, offset=1, dim1=0, dim2=2), tl.diagonal(t, offset=1, dim1=0, dim2=2))
    for triangle in ("L", "U"):
        close(la.eigvalsh(b, UPLO=triangle), tl.eigvalsh(u, UPLO=triangle))
        values, vectors = la.eigh(b, triangle)
        expected = tl.eigh(u, triangle)
        close(values, expected[0])
        close(tw.abs(vectors), torch.abs(expected[1]))
    close(la.pinv(c, hermitian=True), tl.pinv(h, hermitian=True))
    for atol, rtol in ((1.5, None), (0.1, 0.7), (None, 0.9), (0.0, 0.0)):
        close(la.pinv(a, atol=atol, rtol=rtol), tl.pinv(t, atol=atol, rtol=rtol))
        close(la.matrix_rank(a, atol=atol, rtol=rtol), tl.matrix_rank(t, atol=atol, rtol=rtol))
        close(
            la.matrix_rank(c, atol=atol, rtol=rtol, hermitian=True),
            tl.matrix_rank(h, atol=atol, rtol=rtol, hermitian=True),
        )
    with pytest.raises(ValueError, match=r"^eigh: UPLO is 'L' or 'U', got 'X'"):
        la.eigh(b, UPLO="X")


def test_gradients_through_a_triangle_and_a_limit():
    x = tensor(matrices(np.random.default_rng(5), 3, 3), requires_grad=True)
    assert tw.gradcheck(lambda x: la.eigvalsh(x + x.mT, UPLO="U"), (x,))
    assert tw.gradcheck(lambda x: la.pinv(x + x.mT, hermitian=True), (x,))
    assert tw.gradcheck(lambda x: la.pinv(x, atol=1e-3), (x,))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_norms_of_16_bit_numbers_are_summed_in_32(dtype):
    values = [300.0, -400.0, 0.0, 1.0]
    x = tw.asarray(values, dtype=dtype)
    for order in (2, 3, 1, math.inf, 0):
        y = la.vector_norm(x, ord=order)
        expected = torch.linalg.vector_norm(
            torch.tensor(values, dtype=getattr(torch, dtype)), order
        )
        assert y.dtype == x.dtype
        np.testing.assert_allclose(float(y), float(expected), rtol=2**-7)
    close(tw.nn.functional.normalize(x, dim=0).astype(tw.float32), np.array(values) / 500, 5e-3)


@pytest.mark.parametrize("size", [1e-40, 1e-37, 1e-25, 1e25, 1e37])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_norms_and_their_gradients_beyond_the_range_of_squares(size, axis, rng):
    values = (rng.uniform(0.5, 1, (5, 40)) * size).astype(np.float32)
    x = tw.asarray(values).requires_grad_()
    y = la.vector_norm(x, axis=axis, keepdims=True)
    y.sum().backward()
    wide = values.astype(np.float64)
    norm = np.sqrt(np.sum(wide * wide, axis=axis, keepdims=True))
    places = 1e-4 if size < 1e-38 else 1e-6  # numbers below 1.2e-38 have fewer digits
    np.testing.assert_allclose(y.detach().numpy(), norm, rtol=places)
    np.testing.assert_allclose(x.grad.numpy(), wide / norm, rtol=places)


def test_cross_products_are_row_major():
    a = np.arange(27.0).reshape(3, 3, 3)
    x = tw.permute_dims(tw.asarray(a), (2, 0, 1))
    assert la.cross(x, x + 1).is_contiguous
    np.testing.assert_array_equal(la.cross(x, x + 1).numpy(), np.cross(x.numpy(), x.numpy() + 1))


def test_norms_of_nothing_are_0():
    x = tw.zeros((2, 0))
    for y in (
        la.vector_norm(x, ord=math.inf), la.matrix_norm(x, ord=1), la.matrix_norm(x, ord=2),
        la.matrix_norm(x, ord=math.inf), la.matrix_norm(x, ord="nuc"), la.vector_norm(x, ord=3),
    ):  # fmt: skip
        assert (y.shape, y.item()) == ((), 0.0)
    assert la.vector_norm(x, axis=1, ord=math.inf).tolist() == [0.0, 0.0]
    assert la.vector_norm(x, axis=0, ord=math.inf).shape == (0,)
    with pytest.raises(ValueError, match="no elements"):
        la.vector_norm(x, ord=-math.inf)


# ---- triangles, least squares, exponentials ----


def both_ways(call, reference, *arrays, rtol=1e-9):
    """Values and gradients against PyTorch's, from arrays."""
    own = [tw.asarray(x.copy()).requires_grad_() for x in arrays]
    other = [torch.tensor(x, requires_grad=True) for x in arrays]
    y, z = call(*own), reference(*other)
    np.testing.assert_allclose(y.detach(), z.detach(), rtol=rtol, atol=1e-12)
    (y * tw.conj(y)).sum().real.backward()
    (z * z.conj()).sum().real.backward()
    for a, b in zip(own, other, strict=True):
        np.testing.assert_allclose(a.grad, b.grad, rtol=100 * rtol, atol=1e-10)


@pytest.mark.parametrize("unitriangular", [False, True])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("upper", [True, False])
def test_triangles(upper, left, unitriangular, rng) -> None:
    options = {"upper": upper, "left": left, "unitriangular": unitriangular}
    for a, b in (
        (rng.normal(size=(4, 4)) + 3 * np.eye(4), rng.normal(size=(4, 3) if left else (3, 4))),
        (rng.normal(size=(2, 3, 3)) + 3 * np.eye(3), rng.normal(size=(2, 3, 3))),
        (rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)) + 3 * np.eye(3), np.eye(3) + 0j),
    ):
        both_ways(
            lambda x, y: la.solve_triangular(x, y, **options),
            lambda x, y: torch.linalg.solve_triangular(x, y, **options),
            a,
            b,
        )


@pytest.mark.parametrize("upper", [True, False])
def test_solutions_by_cholesky(upper, rng) -> None:
    root = rng.normal(size=(2, 4, 4))
    a = root @ root.transpose(0, 2, 1) + np.eye(4)
    b = rng.normal(size=(2, 4, 3))
    factor = la.cholesky(tw.asarray(a), upper=upper)
    np.testing.assert_allclose(
        tw.cholesky_solve(tw.asarray(b), factor, upper=upper), np.linalg.solve(a, b), rtol=1e-9
    )
    both_ways(
        lambda x, y: tw.cholesky_solve(y, x, upper=upper),
        lambda x, y: torch.cholesky_solve(y, torch.triu(x) if upper else torch.tril(x), upper),
        np.asarray(factor),
        b,
    )


def test_least_squares(rng) -> None:
    for shape in ((6, 3), (3, 3), (3, 5), (2, 6, 3)):
        a, b = rng.normal(size=shape), rng.normal(size=(*shape[:-1], 2))
        got, want = (
            la.lstsq(tw.asarray(a), tw.asarray(b)),
            torch.linalg.lstsq(torch.tensor(a), torch.tensor(b)),
        )
        np.testing.assert_allclose(got.solution, want.solution, rtol=1e-9)
        left = np.square(a @ want.solution.numpy() - b).sum(-2) if shape[-2] > shape[-1] else []
        np.testing.assert_allclose(got.residuals, left, rtol=1e-9)
        assert got.rank.tolist() == want.rank.tolist()
        both_ways(
            lambda x, y: la.lstsq(x, y).solution,
            lambda x, y: torch.linalg.lstsq(x, y).solution,
            a,
            b,
        )
    a = np.outer([1.0, 2.0, 3.0], [1.0, 1.0])  # of rank 1
    got = la.lstsq(tw.asarray(a), tw.ones(3, 1, dtype=tw.float64))
    np.testing.assert_allclose(got.solution, np.linalg.lstsq(a, np.ones((3, 1)), rcond=None)[0])
    assert (got.rank.item(), got.residuals.shape, got.singular_values.shape) == (1, (0,), (0,))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_exponentials_of_matrices(scale, rng) -> None:
    for x in (rng.normal(size=(4, 4)), rng.normal(size=(2, 3, 3)), rng.normal(size=(1, 1))):
        turning = scale * (x - x.swapaxes(-1, -2) + 0.1 * x)
        both_ways(tw.matrix_exp, torch.matrix_exp, turning, rtol=1e-8)
    z = scale * (rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))) / 5
    both_ways(tw.matrix_exp, torch.matrix_exp, z, rtol=1e-8)
    narrow = tw.asarray(turning, dtype=tw.float32)
    np.testing.assert_allclose(
        tw.matrix_exp(narrow), torch.matrix_exp(torch.tensor(turning)), rtol=1e-4 * max(scale, 1)
    )


def test_exponentials_that_are_known() -> None:
    zeros = tw.zeros((2, 2), dtype=tw.float64)
    assert tw.matrix_exp(zeros).tolist() == np.eye(2).tolist()
    assert tw.matrix_exp(tw.zeros((0, 3, 3))).shape == (0, 3, 3)
    turn = np.array([[0.0, -np.pi / 2], [np.pi / 2, 0.0]])
    np.testing.assert_allclose(tw.asarray(turn).matrix_exp(), [[0, -1], [1, 0]], atol=1e-15)
    with pytest.raises(ValueError, match="matrix_exp: an element is not finite"):
        tw.matrix_exp(zeros + np.inf)


def test_seeds_and_repeatable_algorithms() -> None:
    tw.cuda.manual_seed_all(3)
    first = tw.rand(3).tolist()
    tw.cuda.manual_seed(3)
    assert tw.rand(3).tolist() == first
    tw.use_deterministic_algorithms(False, warn_only=True)
    assert tw.are_deterministic_algorithms_enabled() is True


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("axis", [True, 1.5, (0, True), "1", [0.0]])
def test_what_is_no_axis_of_a_norm_is_refused(axis, dtype):
    x = tw.ones((2, 3), dtype=getattr(tw, dtype))
    with pytest.raises(TypeError, match="vector_norm: axis must be an int, a sequence of ints"):
        tw.linalg.vector_norm(x, axis=axis)
    norms = tw.linalg.vector_norm(x, axis=np.int64(1))
    np.testing.assert_allclose(norms.numpy(), np.sqrt([3, 3]), 1e-6)


def test_the_condition_of_a_singular_matrix_is_infinite_and_its_batchs_own() -> None:
    singular = np.array([[1.0, 1.0], [1.0, 1.0]])
    regular = np.array([[2.0, 1.0], [0.0, 1.0]])
    batch = tw.asarray(np.stack([regular, singular, np.zeros((2, 2)), 3 * regular]))
    for p in (None, 2, "fro", "nuc", 1, -1, math.inf, -math.inf):
        for one in (singular, np.zeros((2, 2))):
            assert la.cond(tw.asarray(one), p).item() > 1e15
        x = batch.clone().requires_grad_()
        y = la.cond(x, p)
        want = np.linalg.cond(regular, p)
        np.testing.assert_allclose(y.detach().numpy()[[0, 3]], [want, want], rtol=1e-12)
        assert (y.detach().numpy()[1:3] > 1e15).all()
        if p not in (None, 2):
            y[0].backward()
            alone = tw.asarray(regular).requires_grad_()
            la.cond(alone, p).backward()
            np.testing.assert_allclose(x.grad[0], alone.grad, rtol=1e-12)
            assert not x.grad[1:].numpy().any()
