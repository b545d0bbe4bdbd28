"""Short-time Fourier transforms, and the windows that they look through."""

from __future__ import annotations

import math
from typing import Any

import tilewright as tw
from tilewright import Tensor

# ---- windows ----


def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A raised cosine that ends at 0: (1 - cos(2 pi k / n)) / 2.

    A periodic one repeats after `window_length` elements, as transforms take it; else it is
    symmetric. Raises ValueError for a negative length, TypeError for a dtype that is not floating.

    Shapes: the result is (window_length,).
    Types: floating. Result: dtype, by default the default floating type.
    Source: PyTorch's torch.hann_window.

    >>> import tilewright as tw
    >>> tw.hann_window(4).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    terms = (0.5, 0.5)
    return _cosines("hann_window", window_length, periodic, terms, (dtype, device, requires_grad))


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A raised cosine, alpha - beta cos(2 pi k / n); periodic as in `hann_window`.

    Raises ValueError for a negative length, TypeError for a dtype that is not floating.

    Shapes: the result is (window_length,).
    Types: floating. Result: dtype, by default the default floating type.
    Source: PyTorch's torch.hamming_window.
    """
    terms = (alpha, beta)
    return _cosines(
        "hamming_window", window_length, periodic, terms, (dtype, device, requires_grad)
    )


def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Three cosines, 0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n); periodic as `hann_window`.

    Raises ValueError for a negative length, TypeError for a dtype that is not floating.

    Shapes: the result is (window_length,).
    Types: floating. Result: dtype, by default the default floating type.
    Source: PyTorch's torch.blackman_window.
    """
    terms = (0.42, 0.5, 0.08)
    return _cosines(
        "blackman_window", window_length, periodic, terms, (dtype, device, requires_grad)
    )


def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle from 0 to 1 and back, 1 - |2 k / n - 1|; periodic as in `hann_window`.

    Raises ValueError for a negative length, TypeError for a dtype that is not floating.

    Shapes: the result is (window_length,).
    Types: floating. Result: dtype, by default the default floating type.
    Source: PyTorch's torch.bartlett_window.

    >>> import tilewright as tw
    >>> tw.bartlett_window(4).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    made = (dtype, device, requires_grad)
    return _window(
        "bartlett_window", window_length, periodic, lambda k, n: 1 - tw.abs(2 * k / n - 1), made
    )


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """I0(beta sqrt(1 - (2 k / n - 1)^2)) / I0(beta), I0 a Bessel function; periodic as above.

    The larger `beta`, the narrower. Raises ValueError for a negative length, TypeError for a dtype
    that is not floating.

    Shapes: the result is (window_length,).
    Types: floating. Result: dtype, by default the default floating type.
    Source: PyTorch's torch.kaiser_window.
    """

    def value(k: Tensor, n: int) -> Tensor:
        height = tw.maximum(1 - tw.square(2 * k / n - 1), 0)
        # By I0(x) e^-|x|, so that neither leaves the range.
        inner, outer = beta * tw.sqrt(height), tw.full((), beta, dtype=tw.float64)
        return tw.special.i0e(inner) / tw.special.i0e(outer) * tw.exp(tw.abs(inner) - abs(beta))

    made = (dtype, device, requires_grad)
    return _window("kaiser_window", window_length, periodic, value, made)


def _cosines(
    who: str, length: int, periodic: bool, terms: tuple[float, ...], made: tuple[Any, Any, bool]
) -> Tensor:
    def value(k: Tensor, n: int) -> Tensor:
        y = tw.zeros_like(k)
        for j, a in enumerate(terms):
            y = y + (-a if j % 2 else a) * tw.cos(2 * math.pi * j * k / n)
        return y

    return _window(who, length, periodic, value, made)


def _window(
    who: str, length: int, periodic: bool, value: Any, made: tuple[Any, Any, bool]
) -> Tensor:
    dtype, device, requires_grad = made
    if length < 0:
        raise ValueError(f"{who}: window_length must not be negative, got {length}")
    dtype = tw.get_default_dtype() if dtype is None else tw.result_type(dtype)
    if not tw.isdtype(dtype, "real floating"):
        raise TypeError(f"{who}: dtype must be a floating one, got {dtype}")
    n = length if periodic else length - 1
    places = tw.arange(length, dtype=tw.float64)
    x: Tensor = (value(places, n) if length > 1 else places + 1).astype(dtype)
    x = x if device is None else x.to(device)
    return x.requires_grad_() if requires_grad else x


# ---- transforms ----


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    """Fourier transforms of frames of a signal: how strong each frequency is over time.

    Frames have `n_fft` elements, each `hop_length` (a quarter of that) behind the one before, and
    are multiplied with the window (of `win_length`, `n_fft` unless given, in the middle of the
    frame; 1 without one). With `center` the signal is first padded by n_fft // 2 on both sides,
    so that frame t stands around element t hop_length. `normalized` divides by sqrt(n_fft).
    `onesided`, the default for real numbers, leaves out what is the conjugate of another frequency.
    Without `return_complex=False` the result is complex; PyTorch asks for that flag.

    Raises TypeError for integers and bool and for onesided transforms of complex numbers,
    ValueError for other shapes, for lengths out of range, for an unknown pad_mode and for tensors
    that lie elsewhere than on the CPU.

    Shapes: input (B, L) or (L,), window (win_length,); the result is (B, N, T) or (N, T), N
    frequencies (n_fft // 2 + 1 where onesided) and T frames, with a last axis of 2 where not
    complex.
    Types: floating, complex. Result: complex64, of float64 and complex128 complex128.
    Source: PyTorch's torch.stft.

    >>> import tilewright as tw
    >>> x = tw.sin(tw.arange(64) * (2 * tw.pi / 8))
    >>> y = tw.stft(x, 16, window=tw.hann_window(16))
    >>> y.shape, tw.argmax(abs(y[:, 8])).item()
    ((9, 17), 2)
    """
    hop, length, window = _checked("stft", input, (1, 2), n_fft, hop_length, win_length, window)
    real = not (input.is_complex() or (window is not None and window.is_complex()))
    onesided = real if onesided is None else onesided
    if onesided and not real:
        raise TypeError("stft: onesided=True is for real numbers")
    x = input if input.ndim == 2 else input[None]
    if center:
        x = tw.pad(x[None], (n_fft // 2, n_fft // 2), mode=pad_mode)[0]
    if x.shape[1] < n_fft:
        raise ValueError(f"stft: frames of {n_fft} elements for a signal of {x.shape[1]}")
    frames = x.unfold(1, n_fft, hop)
    if window is not None:
        frames = frames * _fitted(window, length, n_fft)
    elif length < n_fft:
        frames = frames * _fitted(tw.ones(length, dtype=tw.real(x).dtype), length, n_fft)
    norm = "ortho" if normalized else "backward"
    y = (tw.fft.rfft if onesided else tw.fft.fft)(frames, norm=norm).mT
    y = y if input.ndim == 2 else y[0]
    return tw.view_as_real(y) if return_complex is False else y


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal of which `stft` gave frames, by least squares where frames contradict each other.

    The settings are those of `stft`; `onesided` is the default where input has fewer than n_fft
    frequencies. `length` cuts the signal or fills it up with zeros; without it the signal ends
    with the last frame, or n_fft // 2 elements before where `center`. Raises TypeError for input
    that is not complex, ValueError for other shapes, for lengths out of range, for a window with
    zeros where no other frame overlaps, and for complex results of onesided transforms.

    Shapes: input (B, N, T) or (N, T), window (win_length,); the result is (B, L) or (L,).
    Types: complex. Result: that of their parts.
    Source: PyTorch's torch.istft.

    >>> import tilewright as tw
    >>> x, w = tw.arange(32.0), tw.hann_window(8)
    >>> tw.allclose(tw.istft(tw.stft(x, 8, window=w), 8, window=w), x, atol=1e-4)
    True
    """
    hop, size, window = _checked("istft", input, (2, 3), n_fft, hop_length, win_length, window)
    if not input.is_complex():
        raise TypeError(f"istft: takes complex numbers, got {input.dtype}")
    x = (input if input.ndim == 3 else input[None]).mT
    onesided = x.shape[2] != n_fft if onesided is None else onesided
    if x.shape[2] != (n_fft // 2 + 1 if onesided else n_fft) or x.shape[1] == 0:
        raise ValueError(f"istft: shape {input.shape} is not one of frames of {n_fft}")
    if onesided and return_complex:
        raise ValueError("istft: of one half of the frequencies the signal is real")
    if hop > size:
        raise ValueError(f"istft: hop_length {hop} leaves gaps between windows of {size}")
    norm = "ortho" if normalized else "backward"
    if return_complex:
        frames = tw.fft.ifft(x, norm=norm)
    else:
        frames = tw.fft.irfft(x[..., : n_fft // 2 + 1], n_fft, norm=norm)
    shape = _fitted(
        tw.ones(size, dtype=tw.real(x).dtype) if window is None else window, size, n_fft
    )
    total = n_fft + hop * (x.shape[1] - 1)
    start = n_fft // 2 if center else 0
    end = total - start if length is None else start + length
    weight = _overlaid(tw.broadcast_to(shape * shape, frames.shape[1:])[None], hop)
    weight = weight[:, start:end]
    if weight.size and bool((abs(weight) < 1e-11).any()):
        raise ValueError(
            "istft: some of the signal lies in no frame, or where the windows are 0; use another "
            "window or a shorter hop_length, or center=True"
        )
    y = _overlaid(frames * shape, hop)[:, start:end] / weight
    if end > total:
        y = tw.concat([y, tw.zeros((y.shape[0], end - total), dtype=y.dtype)], axis=1)
    return y if input.ndim == 3 else y[0]


def _overlaid(frames: Tensor, hop: int) -> Tensor:
    """Frames (B, T, n) added where they lie in the signal (B, L)."""
    if frames.is_complex():
        return tw.complex(_overlaid(frames.real, hop), _overlaid(frames.imag, hop))
    _, count, n = frames.shape
    total = n + hop * (count - 1)
    y = tw.fold(frames.mT, (1, total), (1, n), stride=(1, hop))
    return y.reshape((-1, total))


def _fitted(window: Tensor, length: int, n_fft: int) -> Tensor:
    """The window in the middle of a frame."""
    left = (n_fft - length) // 2
    ends = [tw.zeros(n, dtype=window.dtype) for n in (left, n_fft - length - left)]
    return tw.concat([ends[0], window, ends[1]]) if n_fft > length else window


def _checked(
    who: str,
    x: Any,
    ranks: tuple[int, int],
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Any,
) -> tuple[int, int, Tensor | None]:
    """How far frames are apart, how long the window is, and the window."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{who}: takes tensors, got {type(x).__name__}")
    if not (x.is_floating_point() or x.is_complex()):
        raise TypeError(f"{who}: takes floating or complex numbers, got {x.dtype}")
    if x.ndim not in ranks:
        raise ValueError(f"{who}: needs {ranks[0]} or {ranks[1]} dimensions, got shape {x.shape}")
    if n_fft < 1:
        raise ValueError(f"{who}: n_fft must be at least 1, got {n_fft}")
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if hop < 1:
        raise ValueError(f"{who}: hop_length must be at least 1, got {hop}")
    if not 1 <= length <= n_fft:
        raise ValueError(f"{who}: win_length must lie in [1, n_fft], got {length}")
    if window is not None and (not isinstance(window, Tensor) or window.shape != (length,)):
        raise ValueError(f"{who}: window must be a tensor of shape ({length},)")
    return hop, length, window
