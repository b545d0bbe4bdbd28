"""Steps around the computation: hooks, switches, backward passes, checkpoints."""

from __future__ import annotations

from programs import compute
from programs.generator import State, Value
from programs.program import Step
from programs.views import view
from programs.writes import write

# Of no gradient, which is none to PyTorch and zeros here, this makes one. Gradients of gradients
# hold such everywhere.
CONSTANT_HOOK = "lambda g: g * 0 + 1.25"
GRADIENT_HOOKS = [
    "lambda g: g * 1.5",
    CONSTANT_HOOK,
    "lambda g: g * g * 0.25",
    "lambda g: seen[{n}].append(g.detach() * 1.0)",
]
FORWARD_HOOKS = ["lambda t: t * 0.5", "lambda t: m.tanh(t)"]


def can_be_hooked(s: State, v: Value) -> bool:
    """Whether all libraries call a hook on the value equally often.

    In a gradient of gradients a hook is called once more where the first one read the result, and
    what reads results and what reads operands is each library's own affair.
    """
    twice = s.settings.finale in {"grad", "graph"}
    return v.recorded and not v.stale and not (twice and v.result_is_read)


def gradient_hook(s: State) -> None:
    x = s.pick(lambda v: can_be_hooked(s, v))
    if x and not s.no_grad:
        text = s.rng.choice(GRADIENT_HOOKS).replace("{n}", str(len(s.steps)))
        if text == CONSTANT_HOOK and s.settings.finale in {"grad", "graph"}:
            text = GRADIENT_HOOKS[0]
        s.step("hook", f"handles[{len(s.steps)}] = {{0}}.register_hook({text})", "", args=(x.id,))
        # Whether a later write passes a view's hook or goes past it to the base is a library's own.
        x.memory.frozen |= x.is_view
        if s.chance(0.15):
            s.step("hook", f"handles[{len(s.steps) - 1}].remove()", "", args=(x.id,))


def forward_hook(s: State) -> None:
    """A forward hook, on a value that is used only whole from then on."""
    x = s.pick(lambda v: not v.forward_hook and not v.stale and not v.is_view and not v.read_again)
    if x is None or s.body_from is not None:
        return
    hooked = [v for v in s.values if v.forward_hook]
    if hooked and s.chance(0.4):
        v = s.rng.choice(hooked)
        v.forward_hook = False
        s.step("unhook", f"handles['f{v.id}'].remove()", f"del handles['f{v.id}']", args=(v.id,))
        return
    text = s.rng.choice(FORWARD_HOOKS)
    s.step(
        "forward",
        f"handles['f{x.id}'] = {{0}}.register_forward_hook({text})",
        f"handles['f{x.id}'] = {text}",
        args=(x.id,),
    )
    x.forward_hook = True


def switch(s: State) -> None:
    """requires_grad_ on what is not recorded yet, retain_grad, numbers from outside, del."""
    form = s.rng.choice(["toggle", "retain", "outside", "delete", "delete"])
    if form == "toggle":
        x = s.pick(lambda v: not v.recorded and not v.memory.kept and not s.shared(v))
        if x:
            s.step("toggle", "{0}.requires_grad_()", "", args=(x.id,), out=x.id)
            x.recorded = x.memory.is_leaf = True
    elif form == "retain":
        x = s.pick(lambda v: can_be_hooked(s, v))
        if x:
            s.step("retain", "{0}.retain_grad()", "", args=(x.id,))
            x.memory.frozen |= x.is_view
    elif form == "outside":
        x = s.pick(
            lambda v: not v.memory.kept and not v.recorded and not v.memory.frozen and v.distinct
        )
        if x and not any(v.recorded for v in s.values if v.memory is x.memory):
            text = "np.copyto({0}.detach().numpy(), {0}.detach().numpy() * 0.5)"
            s.step("write", text, "", args=(x.id,), out=x.id, becomes="{0}.detach() * 0.5")
            x.memory.span = x.memory.span.hull(x.memory.span.halved)
    elif len(s.values) > 4:
        x = s.rng.choice(s.values)
        s.step("delete", "{o} = None", "", out=x.id)
        s.values.remove(x)


def backward(s: State) -> None:
    """A backward pass in the middle, which adds to the gradients of the leaves."""
    x = s.pick(lambda v: v.recorded and not v.stale and not v.forward_hook)
    if x and not s.no_grad:
        numbers = f"data(({s.seed}, {len(s.steps)}, 7), {x.shape}, -1, 1)"
        plan = ", plan=True" if s.chance(0.3) else ""
        s.step(
            "backward",
            f"{{0}}.backward(tw.asarray({numbers}), retain_graph=True{plan})",
            f"{{0}}.backward(torch.from_numpy({numbers}), retain_graph=True)",
            args=(x.id,),
        )


def constant(s: State) -> None:
    """A value that is computed without recording."""
    with s.without_grad(True):
        s.rng.choice([compute.unary, compute.binary, compute.reduction, view])(s)


BODY = (
    compute.unary,
    compute.unary,
    compute.binary,
    compute.binary,
    compute.product,
    compute.reduction,
    compute.mixed,
    view,
    write,
)


def checkpoint(s: State) -> None:
    """A function of some values, which may also read others and write what it made itself."""
    if s.body_from is not None:
        return
    usable = [v for v in s.values if not v.stale and not v.forward_hook]
    if not usable:
        return
    inputs = list({v.id: v for v in s.rng.choices(usable, k=s.rng.randint(1, 2))}.values())
    outer_steps, outer_values = s.steps, s.values
    s.steps, s.body_from = [], s.count
    s.outside = tuple(v.memory for v in outer_values)
    s.values = [*(usable if s.chance(0.3) else []), *inputs]
    for _ in range(s.rng.randint(1, 5)):
        s.rng.choice(BODY)(s)
    made = [v for v in s.values if v.id >= s.body_from and not s.is_outside(v)]
    body, s.steps, s.values = tuple(s.steps), outer_steps, outer_values
    s.body_from, s.outside = None, ()
    results = [v for v in made[-2:] if not v.stale and not v.is_view and v.depth][
        -s.rng.randint(1, 2) :
    ]
    if not results:
        return
    s.steps.append(_checkpoint_step(body, inputs, results))
    read = {i for step in body for i in step.args} | {v.id for v in inputs}
    for v in [*outer_values, *results]:
        if v in results or v.id in read:
            v.memory.kept = True
            v.read_again = v.id in read
    s.values += results


def _checkpoint_step(body: tuple[Step, ...], inputs: list[Value], results: list[Value]) -> Step:
    return Step(
        "checkpoint",
        "",
        "",
        args=tuple(v.id for v in inputs),
        body=body,
        results=tuple(v.id for v in results),
    )
