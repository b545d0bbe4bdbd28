"""A node keeps what its op's record says that the gradient reads, no less and no more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import pytest
from cases.uses import DIFFERENTIABLE, smooth_uses

import tilewright as tw
from tilewright import _core

LEVELS = 3  # gradients, their gradients, and those of these: some ops only appear there
COMPLEX = (tw.complex64, tw.complex128)
GRADIENTS = [op["name"] for op in _core._op_records() if op["gradient"]]

Function = Callable[..., tw.Tensor]


def assigned(x: tw.Tensor) -> tw.Tensor:
    y = tw.zeros_like(x)
    y.copy_(x)
    return y


# Ops that no test record has, or not of what has a gradient.
OTHERS: dict[str, Function] = {
    "assign": assigned,
    "astype": lambda x: x.astype(tw.float32),
    "conj": lambda x: tw.conj(tw.complex(x, x * x)),
    "dropout": lambda x: tw.dropout(x, 0.5),
    "masked attention": lambda x: tw.scaled_dot_product_attention(
        *[x.reshape(2, 4)] * 3, attn_mask=tw.eye(2, dtype=tw.float64)
    ),
    "standard_gamma": tw.standard_gamma,
    "to": lambda x: x.to("null"),
    "vdot": lambda x: tw.vdot(tw.complex(x, x * x), tw.complex(-x, x)),
    "windows": lambda x: x.unfold(0, 3, 2) ** 2,
}

# Whose own derivatives are refused.
LAST = {"gamma_slope", "beta_slope"}


def functions() -> Iterator[tuple[Function, list[tw.Tensor]]]:
    """Differentiable functions, of all operands that have a gradient and of each alone."""
    for case in DIFFERENTIABLE:
        places = case.differentiable
        for args, options in smooth_uses(case):
            for wanted in {places, *((i,) for i in places)}:

                def call(*leaves, case=case, args=args, options=options, wanted=wanted):
                    full = list(args)
                    for i, leaf in zip(wanted, leaves, strict=True):
                        full[i] = leaf
                    return case.call(*full, **options)

                yield call, [args[i] for i in wanted]
    for function in OTHERS.values():
        yield function, [tw.arange(1, 9, dtype=tw.float64)]


def total(tensors: Sequence[tw.Tensor]) -> tw.Tensor:
    real = [tw.view_as_real(x) if x.dtype in COMPLEX else x for x in tensors]
    return sum(x.sum() for x in real)


class Derivative:
    """The sum of the gradients of a function's result, `level` times."""

    def __init__(self, function: Function, operands: list[tw.Tensor], level: int) -> None:
        tw.manual_seed(3)
        self.inputs = [x.detach().requires_grad_() for x in operands]
        self.y = function(*self.inputs)
        for _ in range(level):
            if self.y.requires_grad:
                self.y = total([g for g in self.gradients(create_graph=True) if g.requires_grad])

    def gradients(self, **options: bool) -> list[tw.Tensor]:
        # What arrives takes part in the gradients' gradients.
        seed = tw.ones_like(self.y.detach()).requires_grad_()
        found = tw.grad(self.y, self.inputs, seed, allow_unused=True, **options)
        self.inputs.append(seed)
        return [g for g in found if g is not None]

    def reads(self, node: int, place: int) -> bool:
        """Whether the gradient reads the tensor that the node keeps at that place."""
        _core._spoil_saved(self.y, node, place)
        try:
            self.gradients()
        except tw.StateError as error:
            if "changed in place" not in str(error):
                raise
            return True
        except NotImplementedError:  # of one of the last
            pass
        return False


class Kept:
    """What nodes of one op were found to keep, over all functions."""

    def __init__(self) -> None:
        self.seen = False
        self.wrong: list[object] = []  # nodes that keep something else than their record says
        self.tensors: set[tuple[str, int]] = set()
        self.read: set[tuple[str, int]] = set()


def tensors_of(node: dict) -> list[tuple[str, int]]:
    """Names of the tensors that a node keeps, in the order in which it does."""
    inputs, results = node["keeps"]
    names = [("input", i) for i in inputs if i not in node["numbers"]]
    return names + [("result", i) for i in results]


@cache
def kept() -> dict[str, Kept]:
    found: dict[str, Kept] = defaultdict(Kept)
    for function, operands in functions():
        for level in range(LEVELS + 1):
            try:
                derivative = Derivative(function, operands, level)
            except NotImplementedError:
                break
            if not isinstance(derivative.y, tw.Tensor) or not derivative.y.requires_grad:
                break
            for at, node in enumerate(_core._graph(derivative.y)):
                op, names = found[node["op"]], tensors_of(node)
                if node["keeps"] != node["reads"] or node["tensors"] != len(names):
                    op.wrong.append(node)
                op.seen = True
                op.tensors |= set(names)
                for place, name in enumerate(names):
                    if name not in op.read:
                        again = Derivative(function, operands, level)
                        if again.reads(at, place):
                            op.read.add(name)
    return found


def runs_here(op: str) -> bool:
    return {kernel["device"] for kernel in _core.kernels_of_op(op)} != {"cuda"}


@pytest.mark.parametrize("op", [op for op in GRADIENTS if runs_here(op) and op not in LAST])
def test_what_is_kept_is_what_is_read(op: str) -> None:
    assert kept()[op].seen, "no function here has a node of it"
    assert not kept()[op].wrong
    unread = kept()[op].tensors - kept()[op].read
    assert not unread, "kept, and no gradient reads it"


def test_every_node_is_of_a_record_with_a_gradient() -> None:
    assert set(kept()) <= set(GRADIENTS)
