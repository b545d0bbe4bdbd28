"""What every change is judged by: small calls, trainings, products and convolutions.

Run as a program, of any build's Python, it times them for the process that started it: a line
`NAME CALLS` on standard input is answered by seconds, or by why the build has no such call. So it
imports nothing of this package but what any build has.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from random import randrange
from timeit import Timer
from typing import Any, NamedTuple


class Call(NamedTuple):
    """A statement over `names`; `m` is the module. Recorded: a and b require gradients."""

    name: str
    text: str
    recorded: bool = False


# Tensors are float32 of 8 x 8 where a name says nothing else.
CALLS = (
    Call("a + b", "a + b"),
    Call("a + b, recorded", "a + b", True),
    Call("a + 1", "a + 1"),
    Call("-a", "-a"),
    Call("exp", "m.exp(a)"),
    Call("relu", "m.relu(a)"),
    Call("a ** 2", "a ** 2"),
    Call("where", "m.where(mask, a, b)"),
    Call("a == b", "a == b"),
    Call("clip", "m.clip(a, -1.0, 1.0)"),
    Call("any", "mask.any()"),
    Call("item", "number.item()"),
    Call("sum", "a.sum()"),
    Call("sum(0)", "a.sum(0)"),
    Call("mean", "a.mean()"),
    Call("max(1)", "m.max(a, axis=1)"),
    Call("argmax", "a.argmax()"),
    Call("softmax", "m.softmax(a, -1)"),
    Call("a @ b", "a @ b"),
    Call("a @ b, recorded", "a @ b", True),
    Call("linear", "m.linear(a, b, row)"),
    Call("layer_norm", "F.layer_norm(a, (8,), row, row)"),
    Call("cross_entropy", "m.cross_entropy(a, classes)"),
    Call("embedding", "F.embedding(classes, a)"),
    Call("conv2d", "F.conv2d(image, kernel)"),
    Call("reshape", "a.reshape((4, 16))"),
    Call(".T", "a.T"),
    Call("a[2:5]", "a[2:5]"),
    Call("a[0]", "a[0]"),
    Call("a[0] = row", "a[0] = row"),
    Call("concat", "m.concat([a, b])"),
    Call("stack", "m.stack([a, b])"),
    Call("copy", "a.copy()"),
    Call("astype", "a.astype(m.float64)"),
    Call("zeros", "m.zeros((8, 8))"),
    Call("ones", "m.ones((8, 8))"),
    Call("arange", "m.arange(64)"),
    Call("tensor(list)", "m.tensor(numbers)"),
    Call("randn", "m.randn(8, 8)"),
    Call("(a * b).sum().backward()", "(a * b).sum().backward()", True),
    Call("sgd.step()", "sgd.step()", True),
)


def names(m: Any, call: Call) -> dict[str, Any]:
    """What a call's statement speaks of."""
    a, b = (m.randn(8, 8, requires_grad=call.recorded) for _ in range(2))
    made = {"m": m, "F": m.nn.functional, "a": a, "b": b, "mask": a > 0, "row": m.ones(8)}
    made |= {"number": m.ones(()), "classes": m.arange(8), "numbers": [1.0, 2.0, 3.0, 4.0]}
    made |= {"image": m.randn(1, 1, 8, 8), "kernel": m.randn(1, 1, 3, 3)}
    if "sgd" in call.text:
        a.grad = m.ones(8, 8)
        made["sgd"] = m.optim.SGD([a], lr=1e-3)
    return made


# ---- trainings ----

_BATCH, _SYMBOLS = 64, 65


def _mlp(m: Any) -> tuple[Any, ...]:
    nn = m.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    return model, m.optim.SGD(model.parameters(), lr=0.1), *_images(m)


def _cnn(m: Any) -> tuple[Any, ...]:
    from tilewright.train.models import Cnn  # noqa: PLC0415  (of the build that is timed)

    model = Cnn(28, 128, 10)
    return model, m.optim.Adam(model.parameters()), *_images(m)


def _lstm(m: Any) -> tuple[Any, ...]:
    from tilewright.train.models import CharLstm  # noqa: PLC0415  (imported on use)

    model = CharLstm(_SYMBOLS, 256, 2)
    return model, m.optim.Adam(model.parameters()), *_text(m, 32, 64)


def _gpt(m: Any) -> tuple[Any, ...]:
    from tilewright.train.models import Gpt  # noqa: PLC0415  (imported on use)

    model = Gpt(_SYMBOLS, 128, 4, 64)
    return model, m.optim.Adam(model.parameters()), *_text(m, 16, 64)


def _images(m: Any) -> tuple[Any, Any]:
    return m.rand(_BATCH, 784), m.randint(0, 10, (_BATCH,))


def _text(m: Any, rows: int, length: int) -> tuple[Any, Any]:
    text = m.randint(0, _SYMBOLS, (rows, length + 1))
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


TRAININGS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "MNIST 784-256-10, batch 64, SGD": _mlp,
    "CNN of 32 and 64 channels, batch 64, Adam": _cnn,
    "LSTM 2 x 256, 32 x 64 characters, Adam": _lstm,
    "GPT 4 x 128, 16 x 64 characters, Adam": _gpt,
}


# What commands call them.
SHORT_NAMES = dict(zip(("mnist", "cnn", "lstm", "gpt"), TRAININGS, strict=True))


def training_step(m: Any, name: str) -> Callable[[], float]:
    """A step of a training, which gives its loss."""
    return _step(m, *TRAININGS[name](m))


def _step(m: Any, model: Any, optimizer: Any, x: Any, y: Any) -> Callable[[], float]:
    def step() -> float:
        optimizer.zero_grad()
        logits = model(x)
        logits = logits[0] if isinstance(logits, tuple) else logits
        loss = m.cross_entropy(logits.reshape((-1, logits.shape[-1])), y.reshape((-1,)))
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


# ---- products and convolutions, read from the names that `bench matmul` and `bench convolution`
# ---- give them

_PRODUCT = re.compile(r"(?:(\d+)x )?(\d+)x(\d+)x(\d+) ([ntps])([ntps])(, one y)?")
_CONVOLUTION = re.compile(
    r"conv (?P<batch>\d+)x(?P<channels>\d+)x(?P<size>\d+)x\d+(?: depthwise| to (?P<out>\d+)), "
    r"(?P<kernel>\d+)x\d+(?: stride (?P<stride>\d+))?: (?P<part>.*)"
)
_PADDING = 16  # of rows that are parts of wider ones


def _operand(m: Any, lead: tuple[int, ...], rows: int, columns: int, layout: str) -> Any:
    if layout == "t":
        return m.randn(*lead, columns, rows).mT
    if layout == "p":
        return m.randn(*lead, rows, columns + _PADDING)[..., :columns]
    if layout == "s":
        return m.randn(*lead, rows, 2 * columns)[..., ::2]
    return m.randn(*lead, rows, columns)


def _product(m: Any, found: re.Match[str]) -> tuple[str, dict[str, Any]]:
    batch, rows, columns, terms = (int(number or 1) for number in found.groups()[:4])
    lead = (batch,) if batch > 1 else ()
    x = _operand(m, lead, rows, terms, found[5])
    y = _operand(m, () if found[7] else lead, terms, columns, found[6])
    return "x @ y", {"x": x, "y": y}


def _convolution(m: Any, found: re.Match[str]) -> tuple[str, dict[str, Any]]:
    batch, channels, size, out, kernel, stride = (
        int(found[part] or 0) for part in ("batch", "channels", "size", "out", "kernel", "stride")
    )
    options = {"stride": stride or 1, "padding": kernel // 2, "groups": 1 if out else channels}
    part = found["part"]
    x = m.randn(batch, channels, size, size, requires_grad=part == "input gradient")
    w = m.randn(
        out or channels,
        channels if out else 1,
        kernel,
        kernel,
        requires_grad=part == "weight gradient",
    )
    known = {"m": m, "x": x, "w": w, "options": options}
    if part == "forward":
        return "m.conv2d(x, w, **options)", known
    known["y"] = m.conv2d(x, w, **options)
    known["g"] = m.randn(*known["y"].shape)
    known["leaf"] = x if x.requires_grad else w
    return "m.grad(y, [leaf], [g], retain_graph=True)", known


def statement(m: Any, name: str) -> tuple[str, dict[str, Any]]:
    """The statement that a name stands for, and what it speaks of.

    Raises StopIteration for a name that is none.
    """
    if name in TRAININGS:
        return "step()", {"step": training_step(m, name)}
    if found := _PRODUCT.fullmatch(name):
        return _product(m, found)
    if found := _CONVOLUTION.fullmatch(name):
        return _convolution(m, found)
    call = next(call for call in CALLS if call.name == name)
    return call.text, names(m, call)


def timer(m: Any, name: str) -> Timer:
    """Of a call, a training step, a product or a part of a convolution, by its name."""
    text, known = statement(m, name)
    return Timer(text, globals=known)


# ---- as a program ----


def answers(
    m: Any, lines: Iterator[str], timer: Callable[[Any, str], Timer] = timer
) -> Iterator[str]:
    """Seconds of so many calls for each line; `timer` gives that of a name."""
    known: dict[str, Timer] = {}
    for line in lines:
        name, _, count = line.strip().rpartition(" ")
        try:
            if name not in known:
                known.clear()  # of one case at a time
                known[name] = timer(m, name)
            yield f"{known[name].timeit(int(count))!r}"
        except Exception as error:  # whatever the build raises is its answer
            yield f"{type(error).__name__}: {error}".replace("\n", " ")


def main() -> None:
    """Answers what another process asks, of the build that this Python imports."""
    sys.path.pop(0)  # this file's folder, whose modules are no names to import by
    # Addresses decide which loads wait for stores that have nothing to do with them (the lowest 12
    # bits are what a processor compares first): another layout of the heap in each process.
    shifts = [bytearray(randrange(520, 4096)) for _ in range(randrange(64))]  # noqa: F841  (kept)
    import tilewright  # noqa: PLC0415  (the build that is timed)

    print(f"{tilewright.__version__} {os.path.dirname(tilewright.__file__)}", flush=True)
    for answer in answers(tilewright, iter(sys.stdin)):
        print(answer, flush=True)


if __name__ == "__main__":
    main()
