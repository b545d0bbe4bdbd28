"""Steps that change memory: in-place operators and methods, assignment, operands that overlap."""

from __future__ import annotations

from programs.generator import LARGEST, State, Value
from programs.operations import Span
from programs.views import key, on_positions

IN_PLACE = {
    "+=": ("add_", "{o} + {0}"),
    "-=": ("sub_", "{o} - {0}"),
    "*=": ("mul_", "{o} * {0}"),
    "/=": ("div_", "{o} / {0}"),
}


def write(s: State) -> None:
    """Changes a value: mostly one that no gradient needs, rarely any."""

    def safe(v: Value) -> bool:
        return not v.memory.kept and not (v.memory.is_leaf and not s.no_grad) and v.distinct

    def allowed(v: Value) -> bool:
        return (
            not v.memory.frozen
            and not v.forward_hook
            and (s.no_grad or not v.apart)
            and v.positions.size > 0
            and not s.is_outside(v)
        )

    with s.without_grad(s.body_from is None and s.chance(0.12)):
        careful = not s.chance(0.12)
        x = s.pick(lambda v: allowed(v) and (safe(v) or not careful))
        if x is None:
            # A fresh copy of some value: what follows is most likely to be right and to be checked.
            y = s.any()
            x = s.pure("{0} * 1.25", "", [y], y.shape, Span(*[e * 1.25 for e in y.span]), "")
        if x is not None:
            s.rng.choice([arithmetic, arithmetic, arithmetic, assignment, whole, aliased, aliased])(
                s, x
            )


def part(s: State, x: Value) -> tuple[str, tuple[int, ...]]:
    """A region of the target as text, and its shape."""
    if not x.shape or s.chance(0.65):
        return "", x.shape
    text = f"[{key(s, x.shape)}]"
    shape = on_positions("{0}" + text, x.positions).shape
    return (text, shape) if 0 not in shape else ("", x.shape)


def changed(
    s: State,
    x: Value,
    text: str,
    torch: str,
    args: list[Value],
    region: str,
    becomes: str,
    span: Span,
) -> None:
    """Appends a write and notes what it does to the target's memory."""
    if not span.largest <= LARGEST:
        return
    s.step(
        "write",
        text,
        torch,
        args=tuple(v.id for v in args),
        out=x.id,
        region=region,
        becomes=becomes,
    )
    x.memory.span = x.memory.span.hull(span)
    if s.no_grad or (x.memory.is_leaf and not s.no_grad):
        return
    if x.recorded or any(v.recorded for v in args):
        # Views are joined to the graph with their base.
        for v in s.values:
            if v.memory is x.memory and v.writes_seen >= 0:
                v.recorded = v.recorded or v is x or (v.is_view)
        x.recorded = True
        x.memory.writes += 1
        x.writes_seen = x.memory.writes
        for v in s.values:
            if v.memory is x.memory and not v.is_view:
                v.writes_seen = x.memory.writes


def outcome(operator: str, a: Span, b: Span) -> Span | None:
    """What an in-place operator may leave; None where it is not to be used."""
    if operator == "/=":
        if b.low < 0.2 and b.high > -0.2:
            return None
        ends = [x / y for x in a for y in b]
    else:
        f = {"+=": float.__add__, "-=": float.__sub__, "*=": float.__mul__}[operator]
        ends = [f(float(x), float(y)) for x in a for y in b]
    return Span(min(ends), max(ends))


def arithmetic(s: State, x: Value) -> None:
    region, shape = part(s, x)
    operator = s.rng.choice(list(IN_PLACE))
    if s.chance(0.2):
        y, operand, span = [], s.rng.choice(["0.75", "1.5", "-0.5"]), Span(*[0.75] * 2)
        span = Span(float(operand), float(operand))
    else:
        v = s.broadcastable(shape)
        y, operand, span = [v], "{0}", v.span
    apply(s, x, operator, region, operand, y, span)


def apply(
    s: State,
    x: Value,
    operator: str,
    region: str,
    operand: str,
    args: list[Value],
    operand_span: Span,
    torch_operand: str = "",
) -> None:
    span = outcome(operator, x.memory.span, operand_span)
    if span is None:
        return
    method, becomes = IN_PLACE[operator]
    form = f"{{o}}{region} {operator} {operand}"
    if s.chance(0.3):
        form = f"{{o}}{region}.{method}({operand})"
    torch = form.replace(operand, torch_operand) if torch_operand else ""
    changed(s, x, form, torch, args, region, becomes.replace("{0}", torch_operand or operand), span)
    if operator in {"*=", "/="} and args and (x.recorded or args[0].recorded) and not s.no_grad:
        args[0].memory.kept = True


def assignment(s: State, x: Value) -> None:
    """x[...] = v, also through integer arrays and masks."""
    if not x.shape:
        return
    r, n = s.rng, x.shape[0]
    form = r.random()
    if form < 0.5:
        region = f"[{key(s, x.shape)}]"
        torch_region = region
    elif form < 0.75:
        rows = r.sample(range(n), r.randint(1, n))
        region, torch_region = f"[tw.asarray({rows})]", f"[torch.tensor({rows})]"
    else:
        mask = [r.random() < 0.6 for _ in range(n)]
        region, torch_region = f"[tw.asarray({mask})]", f"[torch.tensor({mask})]"
    shape = on_positions("{0}" + torch_region, x.positions).shape
    if 0 in shape:
        return
    if s.chance(0.25):
        number = r.choice(["0.0", "0.25", "-1.0"])
        changed(
            s,
            x,
            f"{{o}}{region} = {number}",
            f"{{o}}{torch_region} = {number}",
            [],
            torch_region,
            f"{{o}} * 0 + {number}",
            Span(float(number), float(number)),
        )
        return
    v = s.broadcastable(shape)
    changed(
        s,
        x,
        f"{{o}}{region} = {{0}}",
        f"{{o}}{torch_region} = {{0}}",
        [v],
        torch_region,
        "{0}",
        v.span,
    )


def whole(s: State, x: Value) -> None:
    """copy_, fill_, zero_, addmm_."""
    form = s.rng.choice(["copy_", "fill_", "zero_", "addmm_"])
    if form == "copy_":
        v = s.broadcastable(x.shape)
        changed(s, x, "{o}.copy_({0})", "", [v], "", "{0}", v.span)
    elif form == "fill_":
        changed(s, x, "{o}.fill_(0.5)", "", [], "", "{o} * 0 + 0.5", Span(0.5, 0.5))
    elif form == "zero_":
        changed(s, x, "{o}.zero_()", "", [], "", "{o} * 0 + 0.0", Span(0, 0))
    elif len(x.shape) == 2:
        k = 96 if s.wide else s.rng.choice((1, 2, 3))
        a, b = s.matching((x.shape[0], k)), s.matching((k, x.shape[1]))
        beta, alpha = s.rng.choice([(1.0, 1.0), (0.5, 1.0), (1.0, -0.75)])
        size = beta * x.span.largest + abs(alpha) * k * a.span.largest * b.span.largest
        changed(
            s,
            x,
            f"{{o}}.addmm_({{0}}, {{1}}, beta={beta}, alpha={alpha})",
            "",
            [a, b],
            "",
            f"{beta} * {{o}} + {alpha} * ({{0}} @ {{1}})",
            Span(-size, size),
        )
        a.memory.kept = b.memory.kept = True


# The target's own memory as the operand, seen in some way; {0} is the target.
ALIASES = [
    ("{0}", "{0}"),
    ("{0}.detach()", "{0}.detach()"),
    ("{0}[...]", "{0}[...]"),
    ("tw.asarray({0}.detach().numpy())", "torch.from_numpy({0}.detach().numpy())"),
    ("tw.from_dlpack({0}.detach())", "torch.from_dlpack({0}.detach())"),
    ("{0}[:1]", "{0}[:1]"),
    ("{0}[-1]", "{0}[-1]"),
    ("{0}[::-1]", "{0}.flip(0)"),
    ("{0}.T", "{0}.T"),
]


def aliased(s: State, x: Value) -> None:
    """A write whose operand shares memory with its target."""
    operator = s.rng.choice(list(IN_PLACE))
    if x.shape and x.shape[0] > 1 and s.chance(0.25):
        to, source = s.rng.choice([("[1:]", "{0}[:-1]"), ("[:-1]", "{0}[1:]"), ("[1:]", "{0}[0]")])
        if s.chance(0.3):
            changed(s, x, f"{{o}}{to} = {source}", "", [x], to, source, x.span)
        else:
            apply(s, x, operator, to, source, [x], x.memory.span)
        return
    operand, torch_operand = s.rng.choice(ALIASES)
    square = len(x.shape) == 2 and x.shape[0] == x.shape[1]
    if (not x.shape and "[" in operand) or (operand == "{0}.T" and not square):
        operand, torch_operand = ALIASES[0]
    others = [
        v
        for v in s.values
        if v.memory is x.memory
        and v is not x
        and not v.stale
        and not v.forward_hook
        and v.shape == x.shape
    ]
    if others and s.chance(0.4):
        apply(s, x, operator, "", "{0}", [s.rng.choice(others)], x.memory.span)
    else:
        apply(s, x, operator, "", operand, [x], x.memory.span, torch_operand)
