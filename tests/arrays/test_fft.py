"""Discrete Fourier transforms against NumPy's and PyTorch's, their gradients against PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")

NORMS = ("backward", "ortho", "forward")
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
OF_NUMPY = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
SEVERAL = (*OF_NUMPY, "hfftn", "ihfftn", "hfft2", "ihfft2")
TAKES_REAL = ("rfft", "ihfft", "rfftn", "rfft2", "ihfftn", "ihfft2")
TOLERANCE = {"float32": 2e-6, "complex64": 2e-6, "float64": 1e-13, "complex128": 1e-13}


def numbers(name: str, shape: tuple[int, ...], wide: bool, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if name not in TAKES_REAL:
        x = x + 1j * rng.normal(size=shape)
    return x if wide else x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)


def close(got: tw.Tensor, expected: Any) -> None:
    expected = expected.resolve_conj() if isinstance(expected, torch.Tensor) else expected
    assert got.shape == tuple(expected.shape)
    assert str(got.dtype) == str(expected.dtype).removeprefix("torch.")
    tolerance = TOLERANCE[str(got.dtype)]
    scale = float(np.abs(np.asarray(expected)).max(initial=1))
    np.testing.assert_allclose(
        np.asarray(got.detach()), np.asarray(expected), rtol=0, atol=tolerance * scale * 8
    )


def both(name: str, x: np.ndarray, **options: Any) -> tuple[Any, Any, Any, Any]:
    ours, theirs = tw.asarray(x, copy=True), torch.tensor(x)
    ours.requires_grad_()
    theirs.requires_grad_()
    y, z = getattr(tw.fft, name)(ours, **options), getattr(torch.fft, name)(theirs, **options)
    return ours, theirs, y, z


def agree(name: str, x: np.ndarray, **options: Any) -> None:
    """The result, its gradient, and the gradient of that one."""
    ours, theirs, y, z = both(name, x, **options)
    close(y, z.detach())
    g = numbers("fft" if z.is_complex() else "rfft", tuple(z.shape), x.itemsize % 8 == 0, 1)
    g = g.astype(str(z.dtype).removeprefix("torch."))
    weight = np.random.default_rng(2).normal(size=z.shape).astype(g.real.dtype)
    (dx,) = tw.grad(y * y * tw.asarray(weight), [ours], [tw.asarray(g)], create_graph=True)
    (dz,) = torch.autograd.grad(
        z * z * torch.tensor(weight), [theirs], [torch.tensor(g)], create_graph=True
    )
    close(dx, dz.detach())
    (ddx,) = tw.grad(tw.sum(tw.abs(dx) ** 2), [ours])
    (ddz,) = torch.autograd.grad(torch.sum(torch.abs(dz) ** 2), [theirs])
    close(ddx, ddz)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ONE)
def test_along_one_axis(name: str, norm: str, wide: bool) -> None:
    for shape in ((8,), (7,), (3, 6), (2, 5, 3)):
        x = numbers(name, shape, wide)
        for n in (None, 1, 4, 5, 11):
            for axis in range(-len(shape), len(shape)):
                agree(name, x, n=n, dim=axis, norm=norm)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", SEVERAL)
def test_along_several_axes(name: str, norm: str) -> None:
    for shape in ((4, 5), (3, 2, 6), (2, 3, 4, 5)):
        x = numbers(name, shape, True)
        for s in (None, (4, 7), (3, 2), (-1, 4)):
            for dim in ((-2, -1), (0, 1), (1, 0)):
                agree(name, x, s=s, dim=dim, norm=norm)
        if name.endswith("n"):
            agree(name, x, norm=norm)
            agree(name, x, s=(4, 3), norm=norm)
            agree(name, x, dim=(0,), norm=norm)


@pytest.mark.parametrize("name", SEVERAL)
def test_several_axes_in_single_precision(name: str) -> None:
    for norm in NORMS:
        agree(name, numbers(name, (3, 5), False), norm=norm)
        agree(name, numbers(name, (3, 5), False), s=(4, 7), norm=norm)


@pytest.mark.parametrize("name", [*ONE, *SEVERAL])
def test_gradients_by_differences(name: str) -> None:
    x = tw.asarray(numbers(name, (3, 4), True)).requires_grad_()
    size: dict[str, Any] = {"n": 5} if name in ONE else {"s": (2, 5)}
    assert tw.gradcheck(lambda z: getattr(tw.fft, name)(z, **size, norm="ortho"), (x,))


@pytest.mark.parametrize("name", [*ONE, *OF_NUMPY])
def test_the_names_of_numpy(name: str) -> None:
    x = numbers(name, (4, 6), True)
    call, numpys = getattr(tw.fft, name), getattr(np.fft, name)
    close(call(tw.asarray(x)), numpys(x))
    axis = {"axis": 0} if name in ONE else {"axes": (1, 0)}
    close(call(tw.asarray(x), **axis, norm="ortho"), numpys(x, **axis, norm="ortho"))
    turned = tw.asarray(x).T[:, ::-1]
    close(call(turned), numpys(x.T[:, ::-1]))


def test_types() -> None:
    for dtype, expected in (
        ("float16", "complex64"),
        ("bfloat16", "complex64"),
        ("float32", "complex64"),
        ("float64", "complex128"),
        ("int32", "complex64"),
        ("bool", "complex64"),
        ("complex64", "complex64"),
        ("complex128", "complex128"),
    ):
        x = tw.ones((4,), dtype=getattr(tw, dtype))
        assert str(tw.fft.fft(x).dtype) == expected
        assert tw.fft.fft(x).tolist() == [4, 0, 0, 0]
    assert tw.fft.irfft(tw.ones((3,))).dtype == tw.float32


def test_frequencies() -> None:
    for n in (1, 2, 7, 8):
        for d in (1.0, 0.25):
            for name in ("fftfreq", "rfftfreq"):
                got = getattr(tw.fft, name)(n, d=d, dtype=tw.float64)
                np.testing.assert_array_equal(np.asarray(got), getattr(np.fft, name)(n, d))
                assert getattr(tw.fft, name)(n, d=d).dtype == tw.float32
    x = np.arange(24).reshape(2, 3, 4)
    for axes in (None, 0, (1, 2), -1):
        for name in ("fftshift", "ifftshift"):
            got = getattr(tw.fft, name)(tw.asarray(x), axes=axes)
            np.testing.assert_array_equal(np.asarray(got), getattr(np.fft, name)(x, axes))
    z = tw.asarray(numbers("fft", (5, 6), True))
    assert tw.all(tw.fft.ifftshift(tw.fft.fftshift(z)) == z).item()


def test_there_and_back() -> None:
    x = tw.randn(6, 9, dtype=tw.float64)
    for norm in NORMS:
        np.testing.assert_allclose(tw.fft.irfft(tw.fft.rfft(x, norm=norm), 9, norm=norm), x)
        np.testing.assert_allclose(tw.fft.hfft(tw.fft.ihfft(x, norm=norm), 9, norm=norm), x)
        np.testing.assert_allclose(tw.fft.irfftn(tw.fft.rfftn(x), (6, 9)), x)
        y = tw.fft.ihfftn(x, norm=norm)
        np.testing.assert_allclose(tw.fft.hfftn(y, (6, 9), norm=norm), x)
        y = tw.fft.ihfft2(x, axes=(1, 0), norm=norm)
        np.testing.assert_allclose(tw.fft.hfft2(y, (9, 6), axes=(1, 0), norm=norm), x)


def test_errors() -> None:
    x, z = tw.ones((2, 3)), tw.ones((2, 3), dtype=tw.complex64)
    for call, kind, text in (
        (lambda: tw.fft.fft([1.0]), TypeError, "fft: takes tensors, got list"),
        (lambda: tw.fft.rfft(z), TypeError, "rfft: takes real numbers, got complex64"),
        (lambda: tw.fft.ihfft(z), TypeError, "ihfft: takes real numbers"),
        (lambda: tw.fft.rfftn(z), TypeError, "rfftn: takes real numbers"),
        (lambda: tw.fft.ihfftn(z), TypeError, "ihfftn: takes real numbers"),
        (lambda: tw.fft.hfftn(z[:, :1]), ValueError, "hfftn: a transform of 0 elements"),
        (lambda: tw.fft.hfftn(z, (3, 0)), ValueError, "hfftn: a transform of 0 elements"),
        (lambda: tw.fft.hfftn(z, axes=()), ValueError, "hfftn: needs an axis"),
        (lambda: tw.fft.ihfftn(x, axes=()), ValueError, "ihfftn: needs an axis"),
        (lambda: tw.fft.hfft2(z[0]), IndexError, "axis -2 is out of range"),
        (lambda: tw.fft.hfft2(z, axes=(0, 1), dim=(0, 1)), TypeError, "axes or dim, not both"),
        (lambda: tw.fft.fft(x, 0), ValueError, "fft: a transform of 0 elements"),
        (lambda: tw.fft.fft(x, -1), ValueError, "fft: a transform of -1 elements"),
        (lambda: tw.fft.fft(x, 2.5), TypeError, "integer"),
        (lambda: tw.fft.fft(x[:, :0]), ValueError, "a transform of 0 elements along axis 1"),
        (lambda: tw.fft.irfft(z[:, :1]), ValueError, "irfft: a transform of 0 elements"),
        (lambda: tw.fft.fft(x, axis=2), IndexError, "axis 2 is out of range"),
        (lambda: tw.fft.fftn(x, axes=(0, -2)), ValueError, "named twice"),
        (lambda: tw.fft.fftn(x, (2,), (0, 1)), ValueError, "1 sizes for 2 axes"),
        (lambda: tw.fft.fft(x, norm="none"), ValueError, "norm is 'backward', 'ortho' or"),
        (lambda: tw.fft.fft(x, axis=0, dim=0), TypeError, "axis or dim, not both"),
        (lambda: tw.fft.fft2(x[0]), IndexError, "axis -2 is out of range"),
        (lambda: tw.fft.rfftn(x, axes=()), ValueError, "needs an axis"),
        (lambda: tw.fft.fftfreq(0), ValueError, "fftfreq"),
    ):
        with pytest.raises(kind, match=text):
            call()
    assert tw.fft.fftn(z, axes=()).tolist() == z.tolist()
