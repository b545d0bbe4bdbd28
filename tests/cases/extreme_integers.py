"""Calls every op with integers at the ends of their range, one argument at a time.

Prints a line `fault: ...` for each call that ends in another way than with a result of its own size
or an error for bad arguments. The name of the op in progress goes to the standard error, for a
reader of a crash.
"""

from __future__ import annotations

import faulthandler
import math
import re
import resource
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from cases.arguments import arguments
from tilewright import _core

EXTREMES = (
    2**63 - 1, -(2**63), 2**62, -(2**62), 2**31 - 1, 2**31, 2**32 + 1, -(2**31), -1, 0, 2**63,
    -(2**63) - 1, 2**64, 10**30,
)  # fmt: skip
ALLOWED = (ValueError, IndexError, TypeError, MemoryError, OverflowError, NotImplementedError)
# Bytes that the process may ask for beside what it has: larger requests raise MemoryError.
ROOM = 1 << 28
LISTS = ("Shape", "Axes")
SECONDS_A_CALL = 60


def parameters(signature: str) -> Iterator[tuple[str, str]]:
    """Names and types of the integer parameters of a signature."""
    for text in re.split(r", (?=\*?\w+: )", signature[1 : signature.rindex(") ->")]):
        name, _, kind = text.partition(": ")
        kind = kind.split(" = ")[0].replace(" | None", "")
        if kind in ("int", "Diagonal", *LISTS):
            yield name.replace("*, ", ""), kind


def settings(kind: str, given: Any) -> Iterator[Any]:
    """What an argument of a kind may be: an extreme, or lists of extremes and usual numbers."""
    for value in EXTREMES:
        yield value
        if kind not in LISTS:
            continue
        yield (value,)
        usual = list(given) if isinstance(given, (tuple, list)) else [1, 1]
        yield (value, *usual)
        for place in range(len(usual)):
            yield (*usual[:place], value, *usual[place + 1 :])
        for length in range(2, 5):
            yield (value,) * length


def tensors_of(result: Any) -> Iterator[tw.Tensor]:
    if isinstance(result, tw.Tensor):
        yield result
    elif isinstance(result, (tuple, list)):
        for item in result:
            yield from tensors_of(item)


# ---- the shapes that results have by their documentation ----


def one_each(value: Any, axes: int, otherwise: int | None = None) -> list[int]:
    if value is None:
        assert otherwise is not None
        value = otherwise
    numbers = list(value) if isinstance(value, (tuple, list)) else [value]
    return numbers * axes if len(numbers) == 1 else numbers


def windows(x: tw.Tensor, axes: int, **given: Any) -> list[int]:
    """How many windows of a pool, or of an unfolding, lie along each of the last axes."""
    kernel = one_each(given["kernel_size"], axes)
    stride = kernel if given.get("stride") is None else one_each(given["stride"], axes)
    padding = one_each(given.get("padding"), axes, 0)
    dilation = one_each(given.get("dilation"), axes, 1)
    rows = zip(x.shape[-axes:], kernel, stride, padding, dilation, strict=True)
    return [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in rows]


def padded(x: tw.Tensor, pad: Any) -> tuple[int, ...]:
    widths = one_each(pad, 1)
    shape = list(x.shape)
    for i in range(len(widths) // 2):
        shape[-1 - i] += widths[2 * i] + widths[2 * i + 1]
    return tuple(shape)


def unfolded(input: tw.Tensor, **given: Any) -> tuple[int, ...]:
    kernel = one_each(given["kernel_size"], 2)
    places = windows(input, 2, **{"stride": 1, **given})
    return (input.shape[0], input.shape[1] * math.prod(kernel), math.prod(places))


def tiled(x: tw.Tensor, repetitions: Any) -> tuple[int, ...]:
    times = one_each(repetitions, 1)
    rank = max(x.ndim, len(times))
    shape = [1] * (rank - x.ndim) + list(x.shape)
    return tuple(n * t for n, t in zip(shape, [1] * (rank - len(times)) + times, strict=True))


def slices(x: tw.Tensor, src: tw.Tensor, axis: int = 0, **given: Any) -> tuple[int, ...]:
    """Of the part that src stands for, which is refused where src is not of its shape."""
    part = slice(given.get("start"), given.get("end"), given.get("step", 1))
    return tuple(x.shape) if src.shape[axis] == len(range(x.shape[axis])[part]) else ()


def diagonal_size(x: tw.Tensor, offset: int, axis1: int = 0, axis2: int = 1) -> int:
    rows, columns = x.shape[axis1], x.shape[axis2]
    return max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))


def triangle(row: int, col: int, offset: int, lower: bool) -> int:
    """How many places lie on and below a diagonal, or on and above it."""
    below = sum(min(max(i + offset + lower, 0), col) for i in range(row))
    return below if lower else row * col - below


MADE = ("zeros", "ones", "empty", "full", "rand", "randn", "uniform", "normal", "randint",
        "exponential", "log_normal", "geometric", "cauchy")  # fmt: skip
SHAPES: dict[str, Any] = {
    **{
        name: lambda shape=None, size=(), **_: tuple(
            one_each(shape if shape is not None else size, 1)
        )
        for name in MADE
    },
    **{
        f"adaptive_{kind}_pool{n}d": lambda input, output_size, n=n: (
            *input.shape[:-n],
            *one_each(output_size, n),
        )
        for kind in ("avg", "max")
        for n in (1, 2, 3)
    },
    **{
        f"{kind}_pool{n}d": lambda input, n=n, **given: (
            *input.shape[:-n],
            *windows(input, n, **given),
        )
        for kind in ("avg", "max")
        for n in (1, 2, 3)
    },
    "unfold": unfolded,
    "pad": padded,
    "tile": tiled,
    "slice_scatter": slices,
    "broadcast_to": lambda x, shape: tuple(one_each(shape, 1)),
    "linspace": lambda start, stop, num: (num,),
    "randperm": lambda n: (n,),
    "one_hot": lambda indices, num_classes: (*indices.shape, num_classes),
    "histc": lambda x, bins: (bins,),
    "bincount": lambda x, minlength: (max(1, minlength),),
    "eye": lambda n_rows, n_cols=None, k=0: (n_rows, n_rows if n_cols is None else n_cols),
    "vander": lambda x, **given: (x.shape[0], given["N"]),
    "roll": lambda x, shift, axis=None: x.shape,
    "diagonal": lambda x, offset=0, axis1=0, axis2=1: (diagonal_size(x, offset, axis1, axis2),),
    "diag": lambda x, k: (diagonal_size(x, k),),
    "diagflat": lambda x, offset: (x.size + abs(offset),) * 2,
    "tril_indices": lambda row, col, offset=0: (2, triangle(row, col, offset, True)),
    "triu_indices": lambda row, col, offset=0: (2, triangle(row, col, offset, False)),
    "narrow": lambda x, axis, start, length: tuple(
        length if i == axis % x.ndim else n for i, n in enumerate(x.shape)
    ),
}


def fault_of(op: str, given: dict[str, Any], result: Any) -> str | None:
    """Whether a result is less, or more, than its shape and its arguments say."""
    if op in SHAPES and tuple(result.shape) != tuple(SHAPES[op](**given)):
        return f"shape {result.shape}, expected {SHAPES[op](**given)}"
    for x in tensors_of(result):
        size = math.prod(x.shape)
        if any(n < 0 for n in x.shape) or x.size != size or x.nbytes != size * x.itemsize:
            return f"shape {x.shape} of {x.size} elements and {x.nbytes} bytes"
        if size <= 1 << 20 and max(x.shape, default=0) < 1 << 40:
            np.asarray(x.detach().copy())
    return None


# Where other arguments let more extremes through.
BASES = {
    "broadcast_to": {"x": tw.ones(1), "shape": (1,)},
    "slice_scatter": {"x": tw.ones((4, 4)), "src": tw.ones((1, 4))},
}


def calls(op: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """One integer argument after the other, then all of them at once."""
    given = {**arguments(op), **BASES.get(op["name"], {})}
    names = dict(parameters(op["signature"]))
    for name, kind in names.items():
        for value in settings(kind, given.get(name)):
            yield f"{op['name']}({name}={value})", {**given, name: value}
    for value in EXTREMES if len(names) > 1 else ():
        yield f"{op['name']}({', '.join(names)}={value})", {**given, **dict.fromkeys(names, value)}


def calls_of_others() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Functions of several results, and what tensors have beside the ops."""
    x = tw.ones((4, 4))
    for value in EXTREMES:
        for name in ("split", "chunk", "tensor_split", "hsplit", "vsplit"):
            for parts in (value, [value], [1, value]):
                function = getattr(tw, name)
                yield f"{name}({parts})", partial(function, x, parts)
        for name in ("expand", "view", "tile", "reshape", "permute", "new_zeros"):
            for sizes in ((value,), (value, 4), (4, value), (value, value), (value, 4, 4)):
                yield f"x.{name}{sizes}", partial(getattr(x, name), *sizes)
        for sizes in ((0, value, 1), (0, 1, value), (value, 1, 1)):
            yield f"x.unfold{sizes}", partial(x.unfold, *sizes)
        yield f"fft({value})", partial(tw.fft.fft, x, value)
        yield f"hann_window({value})", partial(tw.hann_window, value)


def fault_in(text: str, call: Callable[[], Any], judge: Callable[[Any], str | None]) -> str | None:
    faulthandler.dump_traceback_later(SECONDS_A_CALL, exit=True)
    print(text, file=sys.stderr, flush=True)
    try:
        return judge(call())
    except ALLOWED:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def run(op: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    function = getattr(_core, op["name"], None) or getattr(tw, op["name"], None)
    method = getattr(tw.Tensor, op["name"], None)
    for text, given in calls(op):
        first, *rest = given.items()
        call = partial(function, **given) if function else partial(method, first[1], **dict(rest))
        yield text, fault_in(text, call, partial(fault_of, op["name"], given))


def run_all() -> Iterator[tuple[str, str | None]]:
    for record in _core._op_records():
        if record["function"] or record["method"]:
            yield from run(record)
    for text, call in calls_of_others():
        yield text, fault_in(text, call, partial(fault_of, "", {}))


if __name__ == "__main__":
    faulthandler.enable()
    _core.set_num_threads(1)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    for text, fault in run_all():
        if fault:
            print(f"fault: {text}: {fault}", flush=True)
    faulthandler.cancel_dump_traceback_later()
