"""Bits do not depend on what another library has set on the thread that calls.

Flush-to-zero and denormals-are-zero are set by libraries that were linked with -ffast-math, other
rounding modes by interval arithmetic.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

import tilewright as tw

ON_GLIBC = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
MACHINE = platform.machine()
pytestmark = pytest.mark.skipif(
    not ON_GLIBC or MACHINE not in ("x86_64", "aarch64"),
    reason="the layout of fenv_t is that of glibc",
)

# Control words by name: MXCSR, or FPCR.
X86 = {
    "upward": 0x5F80,
    "downward": 0x3F80,
    "toward zero": 0x7F80,
    "flush to zero": 0x9F80,
    "denormals are zero": 0x1FC0,
    "both": 0x9FC0,
}
ARM = {
    "upward": 1 << 22,
    "downward": 2 << 22,
    "toward zero": 3 << 22,
    "flush to zero": 1 << 24,
    "default NaN": 1 << 25,
}
CONTROLS = X86 if MACHINE == "x86_64" else ARM
AT = 28 if MACHINE == "x86_64" else 0  # of the word in glibc's fenv_t


@contextmanager
def control(word: int) -> Iterator[None]:
    """This thread's environment as another library might leave it."""
    libc = ctypes.CDLL(None)
    before = ctypes.create_string_buffer(64)
    libc.fegetenv(before)
    other = ctypes.create_string_buffer(before.raw, 64)
    struct.pack_into("I", other, AT, word)
    libc.fesetenv(other)
    try:
        yield
    finally:
        libc.fesetenv(before)


def control_word() -> int:
    now = ctypes.create_string_buffer(64)
    ctypes.CDLL(None).fegetenv(now)
    word = int(struct.unpack_from("I", now, AT)[0])
    return word & ~0x3F if MACHINE == "x86_64" else word


# Made beforehand: tensors of numbers that every mode above would treat in its own way.
RNG = np.random.default_rng(5)
TINY = tw.asarray(RNG.random(40_000) * 1e-39, dtype=tw.float32)
TINY64 = tw.asarray(RNG.random(300) * 1e-310)
X = tw.asarray(RNG.random(3000) + 0.1, dtype=tw.float32)
LONG = tw.asarray(RNG.random(1 << 20), dtype=tw.float32)
M = tw.asarray(RNG.random((96, 96)), dtype=tw.float32)
IMAGES = tw.asarray(RNG.random((2, 8, 20, 20)), dtype=tw.float32)
WEIGHTS = tw.asarray(RNG.random((8, 8, 3, 3)), dtype=tw.float32)


def gradient() -> tw.Tensor:
    x = X.detach().copy()
    x.requires_grad = True
    (tw.tanh(x) * 0.3).sum().backward()
    return x.grad


def step() -> tw.Tensor:
    p = tw.nn.Parameter(X.copy())
    p.grad = X * 0.01
    tw.optim.Adam([p], lr=0.1).step()
    return p.detach()


CALLS: dict[str, Callable[[], tw.Tensor]] = {
    **{
        name: partial(getattr(tw, name), X)
        for name in ("sin", "tan", "exp", "log", "sqrt", "tanh", "erf", "rsqrt", "cumsum")
    },
    "softmax": lambda: tw.softmax(M, -1),
    "small sum": lambda: X[:7] + X[1:8],
    "add": lambda: TINY + TINY,
    "float64": lambda: TINY64 * 0.5 + TINY64,
    "number": lambda: X * 0.1,
    "divide": lambda: 1.0 / X,
    "in place": lambda: TINY.copy().mul_(0.5),
    "sum": TINY.sum,
    "long sum": LONG.sum,
    "prod": X[:50].prod,
    "matmul": lambda: M @ M,
    "small matmul": lambda: M[:8, :8] @ M[:8, :8],
    "convolution": lambda: tw.conv2d(IMAGES, WEIGHTS),
    "layer_norm": lambda: tw.nn.functional.layer_norm(M, (96,)),
    "to half": lambda: X.astype(tw.float16),
    "to bfloat16": lambda: X.astype(tw.bfloat16).view(tw.int16),
    "to float32": lambda: TINY64.astype(tw.float32),
    "full": lambda: tw.full((5,), 1e-39),
    "list": lambda: tw.tensor([0.1, 1e-39, 1 / 3]),
    "typed list": lambda: tw.tensor([0.1, 1e-39], dtype=tw.float32),
    "linspace": lambda: tw.linspace(0.0, 1.0, 77),
    "random": lambda: tw.rand(1000, generator=tw.Generator(3)),
    "normal": lambda: tw.normal(0.0, 1.0, (1000,), generator=tw.Generator(3)),
    "gradient": gradient,
    "optimizer": step,
}


def bits(x: tw.Tensor) -> bytes:
    return x.numpy().tobytes()


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = tw.get_num_threads()
    tw.set_num_threads(3)
    yield
    tw.set_num_threads(before)


@pytest.mark.parametrize("mode", CONTROLS)
def test_bits_are_the_same_in_every_environment(mode: str) -> None:
    expected = {name: bits(call()) for name, call in CALLS.items()}
    tw.set_num_threads(1)
    tw.set_num_threads(3)  # workers that start inside inherit what is set
    with control(CONTROLS[mode]):
        got = {name: bits(call()) for name, call in CALLS.items()}
        numbers = TINY64.tolist(), TINY[0].item(), tw.tensor(1e-39).item()
        left = control_word()
    assert [name for name in CALLS if got[name] != expected[name]] == []
    assert numbers == (TINY64.tolist(), TINY[0].item(), tw.tensor(1e-39).item())
    assert left == CONTROLS[mode]  # the thread has its own back


@pytest.mark.parametrize("mode", CONTROLS)
def test_replays_too(mode: str) -> None:
    recorded = tw._core._capture(lambda x: tw.sin(x * 0.1) + TINY[:3000], [X])
    expected = bits(recorded.replay([X])[0])
    with control(CONTROLS[mode]):
        assert bits(recorded.replay([X])[0]) == expected
        inside = tw._core._capture(lambda x: tw.sin(x * 0.1) + TINY[:3000], [X])
    assert bits(inside.replay([X])[0]) == expected
