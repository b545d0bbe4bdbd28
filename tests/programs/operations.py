"""What pointwise operations the programs are made of: texts, domains and ranges of their values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """The least and the largest value that a tensor may hold."""

    low: float
    high: float

    def hull(self, other: Span) -> Span:
        return Span(min(self.low, other.low), max(self.high, other.high))

    @property
    def largest(self) -> float:
        return max(abs(self.low), abs(self.high))

    @property
    def halved(self) -> Span:
        return Span(self.low / 2, self.high / 2)

    def within(self, other: Span) -> bool:
        return other.low <= self.low and self.high <= other.high


@dataclass(frozen=True)
class Domain:
    """Where an operation is smooth, and what takes any value there first."""

    span: Span
    text: str
    image: Span

    def entered(self, operand: str, span: Span) -> tuple[str, Span]:
        """The operand's text and values, brought into the domain where it may lie outside."""
        if span.within(self.span):
            return operand, span
        return self.text.replace("x", operand), self.image


# `m.` stands for the library.
ANY = Domain(Span(-math.inf, math.inf), "x", Span(-math.inf, math.inf))
MODERATE = Domain(Span(-3, 3), "m.tanh(x)", Span(-1, 1))
WIDE = Domain(Span(-30, 30), "m.tanh(x)", Span(-1, 1))
POSITIVE = Domain(Span(0.2, 30), "(m.tanh(x) + 1.5)", Span(0.5, 2.5))
UNIT = Domain(Span(-0.9, 0.9), "(m.tanh(x) * 0.9)", Span(-0.9, 0.9))
ABOVE_ONE = Domain(Span(1.2, 30), "(m.tanh(x) + 2.5)", Span(1.5, 3.5))


@dataclass(frozen=True)
class Unary:
    """An operation of one tensor.

    `reads`: whether its gradient reads the operand or the result; "xy" where libraries differ.
    """

    tw: str
    domain: Domain
    image: Callable[[float, float], tuple[float, float]]
    reads: str = "x"
    torch: str = ""


def _rising(f: Callable[[float], float]) -> Callable[[float, float], tuple[float, float]]:
    return lambda low, high: (f(low), f(high))


def _falling(f: Callable[[float], float]) -> Callable[[float, float], tuple[float, float]]:
    return lambda low, high: (f(high), f(low))


def _always(low: float, high: float) -> Callable[[float, float], tuple[float, float]]:
    return lambda _low, _high: (low, high)


def _even(f: Callable[[float], float]) -> Callable[[float, float], tuple[float, float]]:
    def image(low: float, high: float) -> tuple[float, float]:
        least = 0.0 if low < 0 < high else min(abs(low), abs(high))
        return f(least), f(max(abs(low), abs(high)))

    return image


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _scaled(factor: float, offset: float = 0.0) -> Callable[[float, float], tuple[float, float]]:
    def image(low: float, high: float) -> tuple[float, float]:
        ends = sorted((low * factor + offset, high * factor + offset))
        return ends[0], ends[1]

    return image


UNARY = [
    Unary("-{0}", ANY, _scaled(-1), ""),
    Unary("m.negative({0})", ANY, _scaled(-1), ""),
    Unary("m.positive({0})", ANY, _scaled(1), "", "{0}.clone()"),
    Unary("{0}.copy()", ANY, _scaled(1), "", "{0}.clone()"),
    Unary("m.abs({0})", ANY, _even(abs)),
    Unary("abs({0})", ANY, _even(abs)),
    Unary("m.sign({0})", ANY, _always(-1, 1), ""),
    Unary("m.square({0})", MODERATE, _even(lambda x: x * x)),
    Unary("{0} ** 2", MODERATE, _even(lambda x: x * x)),
    Unary("{0} ** 3", MODERATE, _rising(lambda x: x**3)),
    Unary("{0} ** 0.5", POSITIVE, _rising(math.sqrt)),
    Unary("2.0 ** {0}", MODERATE, _rising(lambda x: 2**x)),
    Unary("m.sqrt({0})", POSITIVE, _rising(math.sqrt), "y"),
    Unary("m.rsqrt({0})", POSITIVE, _falling(lambda x: x**-0.5), "y"),
    Unary("m.reciprocal({0})", POSITIVE, _falling(lambda x: 1 / x), "y"),
    Unary("1.5 / {0}", POSITIVE, _falling(lambda x: 1.5 / x), "xy"),
    Unary("m.exp({0})", MODERATE, _rising(math.exp), "y"),
    Unary("m.exp2({0})", MODERATE, _rising(lambda x: 2**x), "y"),
    Unary("m.expm1({0})", MODERATE, _rising(math.expm1), "y"),
    Unary("m.log({0})", POSITIVE, _rising(math.log)),
    Unary("m.log2({0})", POSITIVE, _rising(math.log2)),
    Unary("m.log10({0})", POSITIVE, _rising(math.log10)),
    Unary("m.log1p({0})", POSITIVE, _rising(math.log1p)),
    Unary("m.sin({0})", WIDE, _always(-1, 1)),
    Unary("m.cos({0})", WIDE, _always(-1, 1)),
    Unary("m.tan({0})", UNIT, _rising(math.tan), "y"),
    Unary("m.asin({0})", UNIT, _rising(math.asin)),
    Unary("m.acos({0})", UNIT, _falling(math.acos)),
    Unary("m.atan({0})", WIDE, _rising(math.atan)),
    Unary("m.sinh({0})", MODERATE, _rising(math.sinh)),
    Unary("m.cosh({0})", MODERATE, _even(math.cosh)),
    Unary("m.tanh({0})", ANY, _always(-1, 1), "y"),
    Unary("m.asinh({0})", WIDE, _rising(math.asinh)),
    Unary("m.acosh({0})", ABOVE_ONE, _rising(math.acosh)),
    Unary("m.atanh({0})", UNIT, _rising(math.atanh)),
    Unary("m.erf({0})", MODERATE, _always(-1, 1)),
    Unary("m.sigmoid({0})", WIDE, _rising(_sigmoid), "y"),
    Unary("m.softplus({0})", MODERATE, _always(0, 3.1), "x", "F.softplus({0})"),
    Unary("m.relu({0})", ANY, _rising(lambda x: max(x, 0.0)), "y"),
    Unary("m.elu({0})", MODERATE, _always(-1, 3), "x", "F.elu({0})"),
    Unary("m.silu({0})", MODERATE, _always(-0.3, 3), "x", "F.silu({0})"),
    Unary("m.floor({0})", ANY, lambda low, high: (low - 1, high), ""),
    Unary("m.ceil({0})", ANY, lambda low, high: (low, high + 1), ""),
    Unary("m.trunc({0})", ANY, lambda low, high: (low - 1, high + 1), ""),
    Unary("m.round({0})", ANY, lambda low, high: (low - 1, high + 1), ""),
    Unary("{0} * 0.7", ANY, _scaled(0.7), ""),
    Unary("{0} + 0.4", ANY, _scaled(1, 0.4), ""),
    Unary("1.25 - {0}", ANY, _scaled(-1, 1.25), ""),
    Unary("{0} / 1.6", ANY, _scaled(1 / 1.6), ""),
    Unary("m.clip({0}, -0.5, 0.75)", ANY, _always(-0.5, 0.75), "x", "torch.clip({0}, -0.5, 0.75)"),
    Unary("m.clip({0}, min=0.25)", ANY, _rising(lambda x: max(x, 0.25))),
    Unary("m.clip({0}, max=0.25)", ANY, _rising(lambda x: min(x, 0.25))),
    Unary("m.where({0} > 0.25, {0}, {0} * 0.5)", ANY, lambda a, b: (min(a, a / 2), b), ""),
    Unary("m.square(m.tanh({0}))", ANY, _always(0, 1), "y"),
]


@dataclass(frozen=True)
class Binary:
    """An operation of two tensors that are broadcast to one shape."""

    tw: str
    image: Callable[[Span, Span], Span]
    left: Domain = ANY
    right: Domain = ANY
    reads: bool = True
    torch: str = ""


def _corners(f: Callable[[float, float], float]) -> Callable[[Span, Span], Span]:
    def image(a: Span, b: Span) -> Span:
        ends = [f(x, y) for x in a for y in b]
        return Span(min(ends), max(ends))

    return image


ZERO = Span(0, 0)
_TURN = Span(-math.pi, math.pi)
# The gradient that PyTorch gives a power's base takes an exponent of 0 for a constant, so that its
# own gradient by that exponent is wrong.
_POWER = "m.exp({1} * m.log({0}))"
BINARY = [
    Binary("{0} + {1}", _corners(lambda a, b: a + b), reads=False),
    Binary("m.add({0}, {1})", _corners(lambda a, b: a + b), reads=False),
    Binary("{0} - {1}", _corners(lambda a, b: a - b), reads=False),
    Binary("m.subtract({0}, {1})", _corners(lambda a, b: a - b), reads=False),
    Binary("{0} * {1}", _corners(lambda a, b: a * b)),
    Binary("{0} * {1}", _corners(lambda a, b: a * b)),
    Binary("m.multiply({0}, {1})", _corners(lambda a, b: a * b)),
    Binary("{0} / {1}", _corners(lambda a, b: a / b), right=POSITIVE),
    Binary("m.divide({0}, {1})", _corners(lambda a, b: a / b), right=POSITIVE),
    Binary("m.maximum({0}, {1})", _corners(max)),
    Binary("m.minimum({0}, {1})", _corners(min)),
    Binary("{0} ** {1}", _corners(lambda a, b: a**b), POSITIVE, UNIT, torch=_POWER),
    Binary("m.pow({0}, {1})", _corners(lambda a, b: a**b), POSITIVE, UNIT, torch=_POWER),
    Binary("m.atan2({0}, {1})", lambda _a, _b: _TURN, WIDE, POSITIVE),
    Binary("m.hypot({0}, {1})", lambda a, b: Span(0.2, a.largest + b.largest), POSITIVE),
    Binary("m.copysign({0}, {1})", lambda a, _b: Span(-a.largest, a.largest), POSITIVE),
    Binary("m.remainder({0}, {1})", lambda _a, b: Span(0, b.high), WIDE, POSITIVE),
    Binary("m.where({0} > {1}, {0}, {1} * 0.5)", lambda a, b: a.hull(b).hull(ZERO), reads=False),
    Binary("m.clip({0}, {1}, {1} + 0.5)", lambda a, b: a.hull(Span(b.low, b.high + 0.5))),
]
