"""Steps that make another tensor of the same memory."""

from __future__ import annotations

import numpy as np
import torch

from programs.generator import State, Value

# PyTorch's flatten of a row is the row itself.
FLAT = ("{0}.flatten()", "{0}.reshape(-1)")


def key(s: State, shape: tuple[int, ...]) -> str:
    """A basic index: integers, slices, None, an ellipsis."""
    parts: list[str] = []
    for n in shape[: s.rng.randint(1, len(shape))]:
        start = s.rng.randrange(n)
        parts.append(s.rng.choice([
            str(s.rng.randrange(-n, n)), ":", f"{start}:", f":{start + 1}", f"{start}:{n}", "::2",
        ]))  # fmt: skip
    if s.chance(0.15):
        parts.insert(s.rng.randint(0, len(parts)), "None")
    if s.chance(0.1):
        parts.append("...")
    return ", ".join(parts)


def view_text(s: State, x: Value) -> tuple[str, str] | None:  # noqa: PLR0911  (one a form)
    """A view's expression for Tilewright and for PyTorch."""
    ndim, r = len(x.shape), s.rng
    form = r.choice(["key", "key", "key", "T", "permute", "reshape", "axis", "squeeze", "broadcast",
                     "flip", "flatten", "mT", "transpose"])  # fmt: skip
    if form == "key" and ndim:
        return (f"{{0}}[{key(s, x.shape)}]",) * 2
    if form == "T" and ndim == 2:
        return ("{0}.T",) * 2
    if form == "mT" and ndim >= 2:
        return ("{0}.mT",) * 2
    if form == "permute" and ndim:
        order = tuple(r.sample(range(ndim), ndim))
        return f"{{0}}.permute_dims({order})", f"{{0}}.permute({order})"
    if form == "transpose" and ndim:
        a, b = r.randrange(ndim), r.randrange(-ndim, ndim)
        return (f"{{0}}.transpose({a}, {b})",) * 2
    if form in {"reshape", "flatten"}:
        shape = r.choice([(-1,), (x.positions.size,), (1, *x.shape), (*x.shape, 1), x.shape[::-1]])
        return (f"{{0}}.reshape({shape})",) * 2 if form == "reshape" else FLAT
    if form == "axis":
        axis = r.randint(0, ndim)
        return f"{{0}}.expand_dims({axis})", f"{{0}}.unsqueeze({axis})"
    if form == "squeeze" and 1 in x.shape:
        axis = x.shape.index(1)
        return f"{{0}}.squeeze({axis})", f"{{0}}.squeeze({axis})"
    if form == "broadcast":
        shape = tuple(n if n > 1 else r.choice((1, 2)) for n in x.shape)
        shape = (2, *shape) if s.chance(0.3) else shape
        return f"{{0}}.broadcast_to({shape})", f"{{0}}.expand({shape})"
    if form == "flip" and ndim:
        axis = r.randrange(ndim)
        return f"tw.flip({{0}}, axis={axis})", f"torch.flip({{0}}, ({axis},))"
    return None


def on_positions(torch_text: str, positions: np.ndarray) -> np.ndarray:
    """The positions that a view of these positions has."""
    return eval(
        torch_text.replace("{0}", "x"), {"x": torch.from_numpy(positions), "torch": torch}
    ).numpy()


def view(s: State) -> Value | None:
    x = s.pick(lambda v: not v.forward_hook)
    if not x:
        return None
    texts = ("{0}.detach()",) * 2 if s.chance(0.08) else view_text(s, x)
    if texts is None:
        return None
    positions = on_positions(texts[1], x.positions)
    if not positions.size or positions.size > (20000 if s.wide else 200):
        return None
    return add_view(s, x, texts, positions)


def add_view(s: State, x: Value, texts: tuple[str, str], positions: np.ndarray) -> Value:
    i = s.new_id()
    copied = "torch.flip" in texts[1]
    # Whether reshape shares memory depends on strides, and PyTorch's flip never does.
    unsure = copied or ".reshape" in texts[0] or ".flatten" in texts[0]
    if (unsure and not _in_order(x)) or copied:
        x.memory.frozen = True
    detached = texts[0] == "{0}.detach()"
    # PyTorch 2.13 takes a view from under no_grad for a leaf; ours is a constant.
    apart = s.no_grad and not detached
    s.step(
        "view",
        f"{{o}} = {texts[0]}",
        f"{{o}} = {texts[1]}{'.detach()' if apart else ''}",
        args=(x.id,),
        out=i,
        shape=positions.shape,
    )
    recorded = x.recorded and not detached and not s.no_grad
    value = Value(
        i,
        positions.shape,
        x.memory,
        positions,
        recorded,
        True,
        writes_seen=x.memory.writes if not detached else -1,
    )
    value.apart = apart or x.apart
    if detached:
        value.writes_seen = x.memory.writes
        value.is_view = False
    s.values.append(value)
    return value


def _in_order(x: Value) -> bool:
    """Whether row-major without gaps, so that every reshape is a view."""
    flat = x.positions.reshape(-1)
    return x.memory.ordered and bool((np.diff(flat) == 1).all())
