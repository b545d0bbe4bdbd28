"""Matrix products: the rungs of the ladder, the peers, threads, and a map of shapes.

Each part first says what is to be checked, then what is to be timed: nothing wrong gets a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from timeit import Timer
from typing import Any

import tilewright as tw
from tilewright._engine.optional_packages import require
from tilewright.bench.harness import OURS, Case
from tilewright.bench.peers import thread_setters
from tilewright.bench.shapes import Shape, square
from tilewright.bench.validation import PASSED, SKIPPED, Check, Reference

SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
DTYPES = ("float32", "float64", "bfloat16")
# A rung that would take longer for one product, and much longer than the fastest, is left out;
# naive takes some seconds at 1024.
LONGEST_CALL_SECONDS, _MUCH_LONGER = 5.0, 4.0
# What the samples of one rung at one size may take before it drops out of the later rounds.
_RUNG_BUDGET_SECONDS = 2.0
_RUNG_ROUNDS = 15
# What a rung takes at this size, past all start-up costs, says what it would take at a larger one;
# less surely, the more caches lie between: near the limit it is asked at twice the size, and so on.
_ESTIMATE_SIZE = 128
_SURELY_SHORT = 1 / 20
# What a contender may take at one shape: 8192 takes seconds a call.
_SHAPE_BUDGET_SECONDS = 10.0
# The layouts that a peer's operands can have: JAX has no views, but can be told to transpose.
_PEER_LAYOUTS = {"torch": "ntps", "numpy": "ntps", "jax": "nt"}
# What a setting of float32 products allows the peers, as a class of kernels.
_ALLOWED = {"highest": "ieee", "high": "high", "medium": "medium"}


def _nothing() -> None:
    """No preparation."""


@dataclass(frozen=True)
class Contender:
    """One product as one library writes it; `prepare` runs before, outside the time taken.

    `kernel` is the one that the engine chose, for ours.
    """

    text: str
    names: Mapping[str, Any]
    precision: str = "ieee"
    kernel: str = ""
    prepare: Callable[[], object] = _nothing

    def timer(self) -> Timer:
        """For a case."""
        return Timer(self.text, "prepare()", globals={**self.names, "prepare": self.prepare})

    def product(self) -> tw.Tensor:
        """The result as our tensor."""
        self.prepare()
        result = eval(self.text, dict(self.names))
        return result if isinstance(result, tw.Tensor) else tw.asarray(_to_numpy(result))


Contenders = dict[str, Contender]


def ours(shape: Shape, dtype: tw.dtype, rung: str = "") -> Contender:
    """Our product by the kernel that the engine chooses, or by one rung."""
    x, y = shape.operands(dtype)
    kinds = {kernel["name"]: kernel["precision"] for kernel in tw.kernels.describe("matmul")}
    kernel = rung or chosen_kernel(shape, dtype)
    return Contender("x @ y", {"x": x, "y": y}, kinds[kernel], kernel, _forcing(rung))


def chosen_kernel(shape: Shape, dtype: tw.dtype) -> str:
    """The kernel that the engine takes by itself; finding it out costs a product, once."""
    return _chosen(shape, dtype, _circumstances())


@cache
def _chosen(shape: Shape, dtype: tw.dtype, _circumstances: tuple[object, ...]) -> str:
    x, y = shape.operands(dtype)
    with free_choice(), tw.explain() as report:
        x @ y
    # Conversions of operands and results are entries of their own.
    (kernel,) = {entry.kernel for entry in report if entry.op == "matmul"}
    return kernel


def _circumstances() -> tuple[object, ...]:
    """What a choice and a time depend on besides the problem."""
    return tw.active_isa(), tw.get_num_threads(), tw.get_float32_matmul_precision()


def rungs(shape: Shape, dtype: tw.dtype) -> Contenders:
    """Each registered kernel, whether it accepts the shape or not."""
    x, y = shape.operands(dtype)
    return {
        kernel["name"]: Contender(
            "x @ y", {"x": x, "y": y}, kernel["precision"], prepare=_forcing(kernel["name"])
        )
        for kernel in tw.kernels.describe("matmul")
    }


def against_peers(
    shape: Shape, dtype: tw.dtype, peers: Mapping[str, Any], rung: str = ""
) -> Contenders:
    """Ours, and each peer that can take the same operands without copying them."""
    own = ours(shape, dtype, rung)
    contenders = {OURS: own}
    for name, peer in peers.items():
        if name == "numpy" and dtype == tw.bfloat16:
            continue  # has no such type
        if set(shape.layout) <= set(_PEER_LAYOUTS[name]):
            contenders[name] = _peer(name, peer, shape, own.names["x"], own.names["y"])
    return contenders


def with_threads(
    contenders: Mapping[str, Contender], peers: Mapping[str, Any], counts: Sequence[int]
) -> Contenders:
    """Of one shape, ours and those peers that can change their threads, with each number of them.

    The kernel of ours is forced, or left to the engine, before each call.
    """
    setters = {OURS: tw.set_num_threads, **thread_setters(peers)}
    return {
        thread_label(name, threads): replace(
            each, prepare=_both(each.prepare, _setting(setters[name], threads))
        )
        for name, each in contenders.items()
        if name in setters
        for threads in counts
    }


def set_threads(peers: Mapping[str, Any], threads: int) -> None:
    """Ours and those of all peers that can change theirs."""
    for setter in (tw.set_num_threads, *thread_setters(peers).values()):
        setter(threads)


def thread_label(name: str, threads: int) -> str:
    """What a contender of a thread count is called: ours alone where it has one thread."""
    return name if threads == 1 else f"{name}, {threads} threads"


def thread_counts(most: int) -> list[int]:
    """1 to `most`: all of a few, else powers of two and the last."""
    if most <= 4:
        return list(range(1, most + 1))
    return sorted({2**i for i in range(most.bit_length())} | {most})


def check_rungs(sizes: Iterable[int], dtype: tw.dtype) -> Iterator[Check]:
    """Each rung at each size; those that would take too long are skipped."""
    for shape in map(square, sizes):
        reference = Reference(*shape.operands(dtype))
        found = rungs(shape, dtype)
        seconds = {name: _estimate(name, dtype, shape.m) for name in found}
        known = [estimate for estimate in seconds.values() if estimate is not None]
        limit = max(LONGEST_CALL_SECONDS, _MUCH_LONGER * min(known, default=0.0))
        for name, rung in found.items():
            estimate = seconds[name]
            if estimate is not None and estimate > limit:
                reason = f"at least {estimate:,.0f} s a call; the limit is {limit:.0f} s"
                yield Check(shape.name, name, rung.precision, SKIPPED, reason)
            else:
                yield _check(reference, shape, name, rung)


def check_shapes(
    shapes: Iterable[Shape], dtype: tw.dtype, contenders_of: Callable[[Shape], Contenders]
) -> Iterator[Check]:
    """Each contender at each shape."""
    for shape in shapes:
        reference = Reference(*shape.operands(dtype))
        for name, each in contenders_of(shape).items():
            yield _check(reference, shape, name, each)


def _check(reference: Reference, shape: Shape, name: str, each: Contender) -> Check:
    with free_choice():
        check = reference.check(shape.name, name, each.precision, shape.k, each.product)
    return replace(check, kernel=each.kernel)


def ladder_cases(sizes: Iterable[int], dtype: tw.dtype, checks: Iterable[Check]) -> Iterator[Case]:
    """The rungs that passed, beside the engine's own choice as `tilewright`."""
    passed = passing(checks)
    for shape in map(square, sizes):
        found = {
            name: each for name, each in rungs(shape, dtype).items() if (shape.name, name) in passed
        }
        if chosen_kernel(shape, dtype) in found:
            found[OURS] = ours(shape, dtype)
        if found:
            yield _case(shape, found, _RUNG_ROUNDS, _RUNG_BUDGET_SECONDS)


def shape_cases(
    shapes: Iterable[Shape],
    contenders_of: Callable[[Shape], Contenders],
    checks: Iterable[Check],
    rounds: int,
) -> Iterator[Case]:
    """Those contenders that passed; a shape where ours did not is left out."""
    passed = passing(checks)
    for shape in shapes:
        found = {
            name: each
            for name, each in contenders_of(shape).items()
            if (shape.name, name) in passed
        }
        if OURS in found:
            yield _case(shape, found, rounds, _SHAPE_BUDGET_SECONDS)


def passing(checks: Iterable[Check]) -> Collection[tuple[str, str]]:
    """Shape and contender of what may be timed."""
    return {(check.name, check.contender) for check in checks if check.status == PASSED}


def _case(shape: Shape, contenders: Contenders, rounds: int, budget_s: float) -> Case:
    timers = {name: each.timer() for name, each in contenders.items()}
    return Case(shape.name, timers, 1e-9 * shape.flops, "GFLOP", rounds, budget_s=budget_s)


def _forcing(kernel: str) -> Callable[[], object]:
    return lambda: tw._core.force_kernel("matmul", kernel)


def _setting(setter: Callable[[int], object], threads: int) -> Callable[[], object]:
    return lambda: setter(threads)


def _both(first: Callable[[], object], then: Callable[[], object]) -> Callable[[], object]:
    return lambda: (first(), then())


def free_choice() -> Any:
    """A `with` block after which no rung of a benchmark is in force any more."""
    return tw.kernels.use(matmul="")


def _estimate(kernel: str, dtype: tw.dtype, n: int) -> float | None:
    """Seconds of an n x n product, or less; None for a kernel that refuses smaller ones."""
    estimate, size = 0.0, _ESTIMATE_SIZE
    while size < n:
        seconds = _seconds_at(kernel, dtype, size, _circumstances())
        if seconds is None:
            return None
        estimate = seconds * (n / size) ** 3
        if not LONGEST_CALL_SECONDS * _SURELY_SHORT < estimate <= LONGEST_CALL_SECONDS:
            break
        size *= 2
    return estimate


@cache
def _seconds_at(
    kernel: str, dtype: tw.dtype, size: int, _circumstances: tuple[object, ...]
) -> float | None:
    with free_choice():
        try:
            return min(rungs(square(size), dtype)[kernel].timer().repeat(2, 1))
        except ValueError:
            return None


def _peer(name: str, peer: Any, shape: Shape, x: tw.Tensor, y: tw.Tensor) -> Contender:
    allowed = _ALLOWED[tw.get_float32_matmul_precision()]
    precision = "medium" if x.dtype == tw.bfloat16 else allowed
    if name == "jax":
        text, names = "f(x, y).block_until_ready()", _jax_names(peer, shape, x, y)
    elif name == "torch":
        text, names = "x @ y", {"x": peer.from_dlpack(x), "y": peer.from_dlpack(y)}
    else:
        text, names = "x @ y", {"x": x.numpy(), "y": y.numpy()}
    return Contender(text, names, precision)


def _jax_names(jax: Any, shape: Shape, x: tw.Tensor, y: tw.Tensor) -> dict[str, Any]:
    """JAX has no views: what lies transposed is handed over as it lies."""
    flips = [letter == "t" for letter in shape.layout]
    names = {}
    for name, tensor, flip in zip("xy", (x, y), flips, strict=True):
        lying = tensor.mT if flip else tensor
        # NumPy has no bfloat16, and every bfloat16 is a float32.
        plain = lying.astype(tw.float32) if lying.dtype == tw.bfloat16 else lying
        names[name] = jax.numpy.asarray(plain.numpy(), dtype=x.dtype.name)
    return {**names, "f": _jax_product(jax, *flips)}


@cache
def _jax_product(jax: Any, flip_x: bool, flip_y: bool) -> Any:
    def multiply(x: Any, y: Any) -> Any:
        return (x.mT if flip_x else x) @ (y.mT if flip_y else y)

    return jax.jit(multiply)


def _to_numpy(result: Any) -> Any:
    if str(result.dtype).endswith("bfloat16"):
        result = result.float() if hasattr(result, "float") else result.astype("float32")
    if hasattr(result, "numpy"):
        return result.numpy()
    return require("numpy", purpose="the comparison", install="tilewright[bench]").array(result)
