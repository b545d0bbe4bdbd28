"""Steps that make a value in memory of its own."""

from __future__ import annotations

import math

import numpy as np

from programs.generator import State, Value
from programs.operations import BINARY, UNARY, Span


def unary(s: State) -> None:
    op, x = s.rng.choice(UNARY), s.any()
    operand, span = op.domain.entered("{0}", x.span)
    low, high = op.image(*span)
    torch = (op.torch or op.tw).replace("{0}", operand)
    s.pure(op.tw.replace("{0}", operand), torch, [x], x.shape, Span(low, high), op.reads)


def binary(s: State) -> None:
    op, a = s.rng.choice(BINARY), s.any()
    b = a if s.chance(0.08) else s.broadcastable(a.shape)
    left, span_a = op.left.entered("{0}", a.span)
    right, span_b = op.right.entered("{1}", b.span)
    if s.chance(0.3) and op.left is op.right:
        a, b = b, a
    tw, torch = (t.replace("{0}", left).replace("{1}", right) for t in (op.tw, op.torch))
    shape = np.broadcast_shapes(a.shape, b.shape)
    s.pure(tw, torch, [a, b], shape, op.image(span_a, span_b), "x" if op.reads else "")


def choice_by_mask(s: State) -> None:
    b = s.any()
    c = s.broadcastable(b.shape)
    mask = f"data(({s.seed}, {s.count}), {b.shape}, -1, 1) > 0"
    text = f"m.where({{lib}}({mask}), {{0}}, {{1}})"
    span = b.span.hull(c.span)
    tw, torch = (text.replace("{lib}", lib) for lib in ("tw.asarray", "torch.tensor"))
    s.pure(tw, torch, [b, c], b.shape, span, "")


def axes(s: State, x: Value, several: bool = True) -> tuple[str, tuple[int, ...]]:
    """The text of an axis argument, and the axes it means."""
    ndim = len(x.shape)
    if not ndim or s.chance(0.25):
        return "None", tuple(range(ndim))
    axis = s.rng.randrange(ndim)
    if several and ndim > 1 and s.chance(0.3):
        both = s.rng.sample(range(ndim), 2)
        return str(tuple(both)), tuple(both)
    return str(axis - ndim if s.chance(0.4) else axis), (axis,)


def reduced(x: Value, over: tuple[int, ...], keep: bool) -> tuple[int, ...]:
    return tuple(1 if i in over else n for i, n in enumerate(x.shape) if keep or i not in over)


def reduction(s: State) -> None:
    x = s.any()
    name = s.rng.choice(["sum", "sum", "mean", "max", "min", "prod", "var", "std", "logsumexp"])
    text, over = axes(s, x, name != "prod")
    keep = s.chance(0.4) and text != "None"
    n = math.prod(x.shape[i] for i in over)
    low, high = x.span
    options, torch, span = f"axis={text}, keepdims={keep}", f"dim={text}, keepdim={keep}", x.span
    torch_name, kept = name, "x"
    if name == "sum":
        span, kept = Span(min(low, n * low), max(high, n * high)), ""
    elif name == "mean":
        kept = ""
    elif name in {"max", "min"}:
        torch_name = "a" + name
        torch = torch.replace("None", "()")
    elif name == "prod":
        bound = max(x.span.largest, 1)
        limit = (
            bound**n if n * math.log10(bound) < 300 else math.inf
        )  # a power that overflows raises
        span = Span(-limit, limit)
        torch = "" if text == "None" else torch
    elif name in {"var", "std"}:
        correction = s.rng.choice([0, 0, 1]) if n > 1 else 0
        if n < 2 and name == "std":
            return
        options, torch = f"{options}, correction={correction}", f"{torch}, correction={correction}"
        span = Span(0, 2 * (high - low) ** 2) if name == "var" else Span(0, 2 * (high - low))
    else:
        span = Span(low, high + math.log(n))
        torch = torch.replace("None", str(tuple(range(len(x.shape)))))
    if s.wide and name == "prod":
        return
    s.pure(
        f"{{0}}.{name}({options})",
        f"{{0}}.{torch_name}({torch})",
        [x],
        reduced(x, over, keep),
        span,
        kept,
    )


def normalised(s: State) -> None:
    x = s.pick(lambda v: len(v.shape) > 0)
    if not x:
        return
    axis = s.rng.randrange(-len(x.shape), len(x.shape))
    if s.chance(0.5):
        s.pure(f"m.softmax({{0}}, {axis})", "", [x], x.shape, Span(0, 1), "y")
    else:
        low = min(x.span.low - x.span.high - math.log(max(x.shape)), -1)
        s.pure(f"m.log_softmax({{0}}, {axis})", "", [x], x.shape, Span(low, 0), "y")


def loss(s: State) -> None:
    x = s.pick(lambda v: len(v.shape) == 2) or s.leaf(s.shape() if s.wide else (3, 4))
    if len(x.shape) != 2:
        return
    if s.chance(0.3):
        y, how = s.matching(x.shape), s.rng.choice(["mean", "sum", "none"])
        span = Span(
            0, (x.span.largest + y.span.largest) ** 2 * (x.positions.size if how == "sum" else 1)
        )
        s.pure(
            f"tw.mse_loss({{0}}, {{1}}, reduction='{how}')",
            f"F.mse_loss({{0}}, {{1}}, reduction='{how}')",
            [x, y],
            x.shape if how == "none" else (),
            span,
        )
        return
    n, classes = x.shape
    targets = [s.rng.randrange(classes) for _ in range(n)]
    ignored = targets[0] if s.chance(0.2) and len(set(targets)) > 1 else -100
    how = s.rng.choice(["mean", "sum", "none"])
    options = f"reduction='{how}', ignore_index={ignored}"
    shape = (n,) if how == "none" else ()
    s.pure(
        f"tw.cross_entropy({{0}}, tw.asarray({targets}), {options})",
        f"F.cross_entropy({{0}}, torch.tensor({targets}), {options})",
        [x],
        shape,
        Span(0, (x.span.high - x.span.low + math.log(classes)) * (n if how == "sum" else 1)),
    )


def product(s: State) -> None:
    """matmul in its shapes, linear, addmm."""
    a = s.pick(lambda v: len(v.shape) > 0 and v.span.largest < 8)
    if not a:
        return
    k = a.shape[-1]
    n = 96 if s.wide else s.rng.choice(EXTENTS_OF_PRODUCTS)
    form = s.rng.choice(["matmul", "matmul", "matmul", "vector", "batch", "linear", "addmm"])
    if form == "addmm" and len(a.shape) == 2:
        _addmm(s, a, n)
    elif form == "linear":
        _linear(s, a, n)
    else:
        shapes = {"vector": (k,), "batch": (*a.shape[:-2], k, n)}
        b = s.matching(shapes.get(form, (k, n)))
        if form == "batch" and len(a.shape) == 1:
            return
        span = k * a.span.largest * b.span.largest
        try:
            shape = np.matmul(np.zeros(a.shape), np.zeros(b.shape)).shape
        except ValueError:
            return
        text = s.rng.choice(["{0} @ {1}", "m.matmul({0}, {1})", "{0}.matmul({1})"])
        s.pure(text, "", [a, b], shape, Span(-span, span))


EXTENTS_OF_PRODUCTS = (1, 2, 3, 5)


def _addmm(s: State, a: Value, n: int) -> None:
    (m, k), b = a.shape, s.matching((a.shape[1], n))
    c = s.broadcastable((m, n))
    beta, alpha = s.rng.choice([(1.0, 1.0), (0.5, 1.0), (1.0, -0.75), (0.5, 1.5)])
    span = abs(alpha) * k * a.span.largest * b.span.largest + beta * c.span.largest
    s.pure(
        f"m.addmm({{0}}, {{1}}, {{2}}, beta={beta}, alpha={alpha})",
        "",
        [c, a, b],
        (m, n),
        Span(-span, span),
    )


def _linear(s: State, x: Value, n: int) -> None:
    w = s.matching((n, x.shape[-1]))
    args = [x, w]
    span = x.shape[-1] * x.span.largest * w.span.largest
    if s.chance(0.6):
        args.append(s.matching((n,)))
        span += args[2].span.largest
    operands = ", ".join(f"{{{i}}}" for i in range(len(args)))
    relu = s.chance(0.3)
    s.pure(
        f"tw.linear({operands}, activation='relu')" if relu else f"tw.linear({operands})",
        f"torch.relu(F.linear({operands}))" if relu else f"F.linear({operands})",
        args,
        (*x.shape[:-1], n),
        Span(-span, span),
    )


def join(s: State) -> None:
    x = s.any()
    parts = [x, *(x if s.chance(0.15) else s.matching(x.shape) for _ in range(s.rng.randint(1, 2)))]
    operands = ", ".join(f"{{{i}}}" for i in range(len(parts)))
    span, ndim = x.span, len(x.shape)
    for p in parts:
        span = span.hull(p.span)
    if s.chance(0.5) or not ndim:
        axis = s.rng.randint(0, ndim)
        shape = (*x.shape[:axis], len(parts), *x.shape[axis:])
        s.pure(
            f"tw.stack([{operands}], axis={axis})",
            f"torch.stack([{operands}], dim={axis})",
            parts,
            shape,
            span,
            "",
        )
    else:
        axis = s.rng.randrange(ndim)
        shape = tuple(n * len(parts) if i == axis else n for i, n in enumerate(x.shape))
        s.pure(
            f"tw.concat([{operands}], axis={axis})",
            f"torch.cat([{operands}], dim={axis})",
            parts,
            shape,
            span,
            "",
        )


def gathered(s: State) -> None:
    """Integer arrays, masks, take, triangles: indexing that copies."""
    before = s.count
    _gather(s)
    for v in s.values:
        if v.id >= before:
            v.memory.ordered = False


def _gather(s: State) -> None:
    x = s.pick(lambda v: len(v.shape) > 0)
    if not x:
        return
    n, rest, r = x.shape[0], x.shape[1:], s.rng
    indices = [r.randrange(-n, n) for _ in range(r.randint(1, 4))]
    mask = [r.random() < 0.6 for _ in range(n)]
    form = r.choice(["array", "mask", "take", "pair", "triangle", "with slice"])
    if form == "array":
        text, shape = f"{{0}}[lib({indices})]", (len(indices), *rest)
    elif form == "mask" and any(mask):
        text, shape = f"{{0}}[lib({mask})]", (sum(mask), *rest)
    elif form == "take":
        axis = r.randrange(len(x.shape))
        indices = [r.randrange(x.shape[axis]) for _ in range(3)]
        shape = tuple(3 if i == axis else extent for i, extent in enumerate(x.shape))
        s.pure(
            f"tw.take({{0}}, tw.asarray({indices}), axis={axis})",
            f"torch.index_select({{0}}, {axis}, torch.tensor({indices}))",
            [x],
            shape,
            x.span,
            "",
        )
        return
    elif form == "pair" and rest:
        other = [r.randrange(rest[0]) for _ in indices]
        text, shape = f"{{0}}[lib({indices}), lib({other})]", (len(indices), *rest[1:])
    elif form == "with slice" and rest:
        columns = [r.randrange(rest[0]) for _ in range(2)]
        text, shape = f"{{0}}[:, lib({columns})]", (n, 2, *rest[1:])
    elif form == "triangle" and rest:
        k = r.randint(-1, 1)
        name = r.choice(["tril", "triu"])
        s.pure(f"m.{name}({{0}}, {k})", "", [x], x.shape, x.span.hull(Span(0, 0)), "")
        return
    else:
        return
    s.pure(
        text.replace("lib", "tw.asarray"),
        text.replace("lib", "torch.tensor"),
        [x],
        shape,
        x.span,
        "",
    )


def mixed(s: State) -> None:
    """A few texts of several operations, as people write them."""
    x = s.any()
    y = s.broadcastable(x.shape)
    both = x.span.largest + y.span.largest
    text, largest = s.rng.choice(
        [
            ("m.exp(-{0} * {0}) * {1}", y.span.largest),
            ("{1} / (1 + m.exp(-m.tanh({0})))", y.span.largest),
            ("({0} - {1}) * ({0} + {1})", both * both),
            ("m.tanh({0}) * {1} + {0}", both),
        ]
    )
    s.pure(text, "", [x, y], x.shape, Span(-largest, largest))
