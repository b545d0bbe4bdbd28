"""Convolutions against the peers: forward, and the gradients of input and weight, each for itself.

Besides a table of telling shapes there are the distinct layers of three networks: ResNet-18 and
ResNet-50 (K. He et al., 2016; stride in the 3x3 layers), MobileNetV2 (M. Sandler et al., 2018).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from timeit import Timer
from typing import Any, NamedTuple

import tilewright as tw
from tilewright.bench.harness import OURS, Case, Result, statement

BATCHES = (1, 8, 32)
PARTS = ("forward", "input gradient", "weight gradient")


class Layer(NamedTuple):
    """A convolution of squares whose padding leaves the size to the stride alone."""

    batch: int
    channels: int
    size: int
    out: int
    kernel: int = 3
    stride: int = 1
    depthwise: bool = False

    @property
    def padding(self) -> int:
        return self.kernel // 2

    @property
    def groups(self) -> int:
        return self.channels if self.depthwise else 1

    @property
    def gflop(self) -> float:
        """Of each part, counted directly."""
        places = ((self.size - 1) // self.stride + 1) ** 2
        terms = self.channels // self.groups * self.kernel**2
        return 2e-9 * self.batch * self.out * places * terms

    def __str__(self) -> str:
        size = f"{self.batch}x{self.channels}x{self.size}x{self.size}"
        stride = f" stride {self.stride}" if self.stride > 1 else ""
        kind = " depthwise" if self.depthwise else f" to {self.out}"
        return f"{size}{kind}, {self.kernel}x{self.kernel}{stride}"


TABLE = (
    Layer(32, 1, 28, 32),
    Layer(32, 16, 28, 32),
    Layer(32, 64, 56, 64),
    Layer(8, 128, 28, 128),
    Layer(1, 3, 224, 64, 7, 2),
    Layer(1, 64, 56, 64),
    Layer(1, 256, 14, 256),
    Layer(1, 512, 7, 512),
    Layer(1, 64, 56, 256, 1),
    Layer(8, 64, 56, 128, 3, 2),
    Layer(8, 256, 14, 512, 3, 2),
    Layer(1, 64, 56, 128, 1, 2),
    Layer(8, 128, 28, 128, 3, 1, True),
)

# Channels, size of the input, output channels, kernel, stride.
_RESNET_18 = (
    (3, 224, 64, 7, 2),
    *((64 << i, 56 >> i, 64 << i, 3, 1) for i in range(4)),
    *((64 << i, 56 >> i, 128 << i, kernel, 2) for i in range(3) for kernel in (3, 1)),
)
_RESNET_50 = (
    (3, 224, 64, 7, 2),
    (64, 56, 64, 1, 1),
    *((64 << i, 56 >> i, 64 << i, 3, 1) for i in range(4)),
    *((64 << i, 56 >> i, 256 << i, 1, 1) for i in range(4)),
    *((256 << i, 56 >> i, 64 << i, 1, 1) for i in range(4)),
    *((256 << i, 56 >> i, 128 << i, 1, 1) for i in range(3)),
    *((128 << i, 56 >> i, 128 << i, 3, 2) for i in range(3)),
    *((256 << i, 56 >> i, 512 << i, 1, 2) for i in range(3)),
)
# Channels of a block's input, its size, its output, expansion, stride of the depthwise layer.
_MOBILENET_V2_BLOCKS = (
    (32, 112, 16, 1, 1),
    (16, 112, 24, 6, 2),
    (24, 56, 24, 6, 1),
    (24, 56, 32, 6, 2),
    (32, 28, 32, 6, 1),
    (32, 28, 64, 6, 2),
    (64, 14, 64, 6, 1),
    (64, 14, 96, 6, 1),
    (96, 14, 96, 6, 1),
    (96, 14, 160, 6, 2),
    (160, 7, 160, 6, 1),
    (160, 7, 320, 6, 1),
)


def network_layers(batch: int) -> dict[str, list[Layer]]:
    """The distinct convolutions of each network, in order."""
    mobilenet = [Layer(batch, 3, 224, 32, 3, 2)]
    for channels, size, out, expansion, stride in _MOBILENET_V2_BLOCKS:
        wide = channels * expansion
        if expansion > 1:
            mobilenet.append(Layer(batch, channels, size, wide, 1))
        mobilenet.append(Layer(batch, wide, size, wide, 3, stride, True))
        mobilenet.append(Layer(batch, wide, (size - 1) // stride + 1, out, 1))
    mobilenet.append(Layer(batch, 320, 7, 1280, 1))
    return {
        "ResNet-18": [Layer(batch, *row) for row in _RESNET_18],
        "ResNet-50": [Layer(batch, *row) for row in _RESNET_50],
        "MobileNetV2": list(dict.fromkeys(mobilenet)),
    }


def case_name(layer: Layer, part: str) -> str:
    """What the case of a layer's part is called."""
    return f"conv {layer}: {part}"


def convolution_cases(
    peers: Mapping[str, Any],
    layers: Iterable[Layer] = TABLE,
    parts: Iterable[str] = PARTS,
    rounds: int = 25,
) -> Iterator[Case]:
    """The parts of each layer, in float32; each contender takes 0.2 s a round at most."""
    parts = list(parts)
    for layer in layers:
        ours = _ours(layer)
        timers: dict[str, Mapping[str, Timer]] = {OURS: ours}
        timers |= {name: make(peers[name], layer, ours) for name, make in _PEERS if name in peers}
        for part in parts:
            contenders = {name: by_part[part] for name, by_part in timers.items()}
            yield Case(
                case_name(layer, part),
                contenders,
                layer.gflop,
                "GFLOP",
                rounds=rounds,
                budget_s=0.2 * rounds,
            )


def layer_cases(peers: Mapping[str, Any], batches: Iterable[int] = BATCHES) -> Iterator[Case]:
    """All parts of all layers of the networks, a layer of several once."""
    layers = [
        layer for batch in batches for each in network_layers(batch).values() for layer in each
    ]
    # Hundreds of cases: fewer rounds each.
    yield from convolution_cases(peers, dict.fromkeys(layers), rounds=5)


# What a choice may lose by the noise of a clock, and of estimates.
RUNG_MARGIN = 1.05


def rung_cases(batches: Iterable[int], precision: str) -> Iterator[Case]:
    """The chosen rung (ours) beside the others that the precision allows, for layers of ResNets."""
    tw.set_float32_matmul_precision(precision)
    networks = [
        network_layers(batch)[name] for batch in batches for name in ("ResNet-18", "ResNet-50")
    ]
    for layer in dict.fromkeys(layer for layers in networks for layer in layers):
        for part, timer in _ours(layer).items():
            with tw.explain() as seen:
                timer.timeit(1)
            call = next(entry for entry in seen if entry.op == _OPS[part])
            accepted = {rung.name for rung in call.candidates if rung.accepted}
            contenders = {OURS: timer} | {
                rung: _forced(timer, call.op, rung)
                for rung in _allowed(call.op, precision)
                if rung in accepted and rung != call.kernel
            }
            name = case_name(layer, part)
            yield Case(name, contenders, layer.gflop, "GFLOP", rounds=5, budget_s=2.0)


def rungs_missed(results: Iterable[Result]) -> str:
    """How many choices were off the quickest rung by more than the margin."""
    losses = [1 / result.ratio for result in results]
    missed = sum(loss > RUNG_MARGIN for loss in losses)
    return (
        f"{missed} of {len(losses)} chosen rungs take over {RUNG_MARGIN} of the quickest, "
        f"{max(losses):.2f} at most"
    )


_OPS = dict(
    zip(
        PARTS,
        ("convolution", "convolution_input_gradient", "convolution_weight_gradient"),
        strict=True,
    )
)
# The definition, and what takes other layers than these.
_NO_RIVALS = ("naive", "depthwise")
# Classes of precision of a product in float32, by what `set_float32_matmul_precision` allows.
_CLASSES = {"highest": ("ieee", "fp32"), "high": ("ieee", "fp32", "high")}


def _allowed(op: str, precision: str) -> list[str]:
    return [
        kernel["name"]
        for kernel in tw.kernels.describe(op)
        if kernel["precision"] in _CLASSES[precision] and kernel["name"] not in _NO_RIVALS
    ]


def _forced(timer: Timer, op: str, rung: str) -> Timer:
    def call() -> None:
        with tw.kernels.use(**{op: rung}):
            timer.timeit(1)

    return Timer(call)


class _Timers(dict[str, Timer]):
    """By part; with the arrays that all contenders work on."""

    arrays: tuple[Any, Any, Any]


def _ours(layer: Layer) -> _Timers:
    options: dict[str, Any] = {
        "stride": layer.stride,
        "padding": layer.padding,
        "groups": layer.groups,
    }
    x = tw.randn(layer.batch, layer.channels, layer.size, layer.size)
    w = tw.randn(layer.out, layer.channels // layer.groups, layer.kernel, layer.kernel)
    names: dict[str, Any] = {"m": tw, "x": x, "w": w, "options": options}
    g = tw.randn(*tw.conv2d(x, w, **options).shape)
    timers = _Timers(forward=statement("m.conv2d(x, w, **options)", **names))
    for part in PARTS[1:]:
        leaf = (x if part == "input gradient" else w).detach().requires_grad_()
        y = tw.conv2d(*((leaf, w) if part == "input gradient" else (x, leaf)), **options)
        text = "m.grad(y, [leaf], [g], retain_graph=True)"
        timers[part] = statement(text, m=tw, y=y, leaf=leaf, g=g)
    timers.arrays = (x, w, g)
    return timers


def _torch(torch: Any, layer: Layer, ours: _Timers) -> dict[str, Timer]:
    x, w, g = (torch.from_numpy(a.numpy()) for a in ours.arrays)
    options: dict[str, Any] = {
        "stride": layer.stride,
        "padding": layer.padding,
        "groups": layer.groups,
    }
    conv = torch.nn.functional.conv2d
    timers = {"forward": statement("f(x, w, **options)", f=conv, x=x, w=w, options=options)}
    for part in PARTS[1:]:
        leaf = (x if part == "input gradient" else w).detach().requires_grad_()
        y = conv(*((leaf, w) if part == "input gradient" else (x, leaf)), **options)
        text = "f(y, [leaf], [g], retain_graph=True)"
        timers[part] = statement(text, f=torch.autograd.grad, y=y, leaf=leaf, g=g)
    return timers


def _jax(jax: Any, layer: Layer, ours: _Timers) -> dict[str, Timer]:
    x, w, g = (jax.numpy.asarray(a.numpy()) for a in ours.arrays)

    def conv(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(
            x,
            w,
            (layer.stride, layer.stride),
            [(layer.padding, layer.padding)] * 2,
            feature_group_count=layer.groups,
        )

    functions = {
        "forward": lambda x, w, g: conv(x, w),
        "input gradient": lambda x, w, g: jax.vjp(lambda x: conv(x, w), x)[1](g),
        "weight gradient": lambda x, w, g: jax.vjp(lambda w: conv(x, w), w)[1](g),
    }
    text = "wait(f(x, w, g))"
    names = {"x": x, "w": w, "g": g, "wait": jax.block_until_ready}
    return {part: statement(text, f=jax.jit(f), **names) for part, f in functions.items()}


_PEERS = (("torch", _torch), ("jax", _jax))
