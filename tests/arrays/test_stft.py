"""Short-time transforms and their windows against PyTorch's and SciPy's."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")  # of PyTorch's

WINDOWS = ("bartlett", "blackman", "hamming", "hann", "kaiser")


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("length", [0, 1, 2, 7, 64])
@pytest.mark.parametrize("periodic", [True, False])
def test_windows_are_pytorchs_and_scipys(name: str, length: int, periodic: bool) -> None:
    signal = pytest.importorskip("scipy.signal")
    own = getattr(tw, f"{name}_window")(length, periodic, dtype=tw.float64)
    theirs = getattr(torch, f"{name}_window")(length, periodic, dtype=torch.float64)
    np.testing.assert_allclose(own, theirs, rtol=1e-12, atol=1e-12)
    given = ("kaiser", 12.0) if name == "kaiser" else name
    if length:
        np.testing.assert_allclose(
            own, signal.get_window(given, length, fftbins=periodic), rtol=1e-12, atol=1e-12
        )


def test_settings_of_windows() -> None:
    assert tw.hann_window(3).dtype == tw.float32
    assert tw.hamming_window(3, requires_grad=True).requires_grad
    np.testing.assert_allclose(
        tw.hamming_window(9, alpha=0.6, beta=0.3), torch.hamming_window(9, True, 0.6, 0.3), 1e-6
    )
    np.testing.assert_allclose(
        tw.kaiser_window(9, beta=3.0), torch.kaiser_window(9, True, 3.0), 1e-6
    )
    with pytest.raises(ValueError, match="hann_window: window_length"):
        tw.hann_window(-1)
    with pytest.raises(TypeError, match="kaiser_window: dtype"):
        tw.kaiser_window(3, dtype=tw.int32)


SETTINGS = [
    {},
    {"hop_length": 3},
    {"hop_length": 2, "win_length": 6, "window": True},
    {"win_length": 5},
    {"window": True, "center": False},
    {"window": True, "pad_mode": "constant"},
    {"window": True, "normalized": True},
    {"window": True, "onesided": False},
    {"window": True, "return_complex": False},
]


def both(settings, n_fft):
    own, theirs = dict(settings), {"return_complex": True, **settings}
    if "window" in settings:
        length = settings.get("win_length", n_fft)
        own["window"] = tw.hann_window(length, dtype=tw.float64)
        theirs["window"] = torch.hann_window(length, dtype=torch.float64)
    return own, theirs


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("shape", [(29,), (2, 32)])
@pytest.mark.parametrize("n_fft", [8, 9])
@pytest.mark.parametrize("parts", [1, 2])
def test_transforms_and_their_gradients_are_pytorchs(settings, shape, n_fft, parts) -> None:
    if parts == 2 and (settings.get("onesided") or "return_complex" in settings):
        return
    rng = np.random.default_rng(0)
    values = rng.normal(size=shape) + (1j * rng.normal(size=shape) if parts == 2 else 0)
    own, theirs = both(settings, n_fft)
    x, t = tw.asarray(values).requires_grad_(), torch.tensor(values, requires_grad=True)
    got, want = tw.stft(x, n_fft, **own), torch.stft(t, n_fft, **theirs)
    np.testing.assert_allclose(got.detach(), want.detach(), rtol=1e-10, atol=1e-10)
    assert x.stft(n_fft, **own).shape == got.shape
    (abs(got) ** 2).sum().backward()
    (abs(want) ** 2).sum().backward()
    np.testing.assert_allclose(x.grad, t.grad, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"length": 20},
        {"length": 60},
        {"hop_length": 3, "window": True},
        {"hop_length": 2, "win_length": 6, "window": True},
        {"normalized": True},
        {"center": False},
        {"onesided": False},
        {"onesided": False, "return_complex": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [(5, 9), (2, 5, 9)])
def test_signals_and_their_gradients_are_pytorchs(settings, shape) -> None:
    rng = np.random.default_rng(0)
    if "onesided" in settings:
        shape = (*shape[:-2], 8, 9)
    values = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    own, theirs = both(settings, 8)
    theirs = {"return_complex": False, **{k: v for k, v in theirs.items() if k in settings}}
    x, t = tw.asarray(values).requires_grad_(), torch.tensor(values, requires_grad=True)
    got, want = tw.istft(x, 8, **own), torch.istft(t, 8, **theirs)
    np.testing.assert_allclose(got.detach(), want.detach(), rtol=1e-10, atol=1e-10)
    (abs(got) ** 2).sum().backward()
    (abs(want) ** 2).sum().backward()
    np.testing.assert_allclose(x.grad, t.grad, rtol=1e-9, atol=1e-9)


def test_a_signal_comes_back() -> None:
    x = tw.randn(2, 100)
    window = tw.hann_window(16)
    y = tw.istft(tw.stft(x, 16, 4, window=window), 16, 4, window=window, length=100)
    np.testing.assert_allclose(y, x, atol=1e-5)


X = np.ones(32)
Z = np.ones((5, 9), dtype=np.complex128)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tw.stft(tw.asarray(X[None, None]), 8), ValueError, "1 or 2 dimensions"),
        (lambda: tw.stft(tw.ones(9, dtype=tw.int32), 8), TypeError, "int32"),
        (lambda: tw.stft(tw.asarray(X), 0), ValueError, "n_fft"),
        (lambda: tw.stft(tw.asarray(X), 8, 0), ValueError, "hop_length"),
        (lambda: tw.stft(tw.asarray(X), 8, 2, 9), ValueError, "win_length"),
        (lambda: tw.stft(tw.asarray(X), 8, window=tw.ones(7)), ValueError, "window"),
        (lambda: tw.stft(tw.asarray(X), 64, center=False), ValueError, "frames of 64"),
        (lambda: tw.stft(tw.asarray(X) * 1j, 8, onesided=True), TypeError, "onesided"),
        (lambda: tw.istft(tw.asarray(X), 8), ValueError, "2 or 3"),
        (lambda: tw.istft(tw.asarray(Z.real.copy()), 8), TypeError, "complex"),
        (lambda: tw.istft(tw.asarray(Z), 12), ValueError, "frames of 12"),
        (lambda: tw.istft(tw.asarray(Z), 8, return_complex=True), ValueError, "real"),
        (lambda: tw.istft(tw.asarray(Z), 8, 7, 6), ValueError, "gaps"),
        (lambda: tw.istft(tw.asarray(Z), 8, window=tw.zeros(8)), ValueError, "windows are 0"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call()
