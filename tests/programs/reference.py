"""What a program means, computed without a single write.

A tensor that is changed in place, and all that shares its memory, is replaced by new tensors: each
value knows which positions of its memory it covers, and a write makes the memory's next tensor out
of the last one. So the gradients are right where PyTorch refuses to give any.

Memory may be seen by several families: a detached alias has no part in its base's graph. A write
through one family changes the others' numbers, not what their gradients flow to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import torch

from programs.engines import OnTorch, array_of, compiled, takes
from programs.program import Step


class NotDefinedError(Exception):
    """The program does what has no right result, so that it ought to have been refused."""


@dataclass(eq=False)
class Family:
    """One graph's view of a memory: the tensor of the whole, and what views were read from it."""

    memory: list[Family]
    node: torch.Tensor
    # What the values' tensors are at this version of the node.
    read: dict[int, torch.Tensor] = field(default_factory=dict)
    is_leaf: bool = False
    # By value, None for the node: its tensor before writes that were not recorded.
    before: dict[int | None, torch.Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.memory.append(self)

    def joined(self, node: torch.Tensor) -> None:
        """Goes on with the node that a recorded write made."""
        self.node, self.read, self.before = node, {}, {}


@dataclass(eq=False)
class Place:
    """A value: its family and which elements it covers, None for all in order."""

    number: int
    family: Family
    positions: torch.Tensor
    whole: bool

    def hook_point(self) -> torch.Tensor:
        """Where all gradients of the value pass, of uses before unrecorded writes as well."""
        tensor = self.tensor()
        return self.family.before.get(None if self.whole else self.number, tensor)

    def tensor(self) -> torch.Tensor:
        family = self.family
        if self.whole:
            return family.node
        if self.number not in family.read:
            with torch.enable_grad():  # what is read belongs to the graph, whoever reads it first
                family.read[self.number] = family.node.reshape(-1)[self.positions]
        return family.read[self.number]


def shifted(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """The new numbers, whose gradient flows to the old tensor."""
    return old + (new.detach() - old.detach())


class Reference(OnTorch):
    """Runs the same steps on places instead of tensors."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # Those made inside of a checkpoint too, which are in no dictionary of the program's values.
        self.places: dict[int, Place] = {}
        self.leaf_tensors: dict[int, torch.Tensor] = {}
        self.retained: dict[int, torch.Tensor] = {}

    def execute(self, step: Step, values: dict[int, Any]) -> None:
        places = [values[i] for i in step.args]
        if step.kind == "checkpoint":
            values.update(zip(step.results, self.body(step, values, tuple(places)), strict=True))
        elif step.kind == "view":
            values[step.out] = self.view(step, places[0])
        elif step.kind == "write":
            operands = self.hooked(step, [p.tensor() for p in places])
            self.write(step, values[step.out], operands)
        elif step.kind == "toggle":
            self.toggle(values[step.out])
        elif step.kind in {"forward", "unhook", "delete"}:
            self.run_text(step, values, places)
        else:
            at = step.kind in {"hook", "retain"}
            tensors = [p.hook_point() if at else p.tensor() for p in places]
            tensors = self.hooked(step, tensors)
            if step.kind == "retain" and tensors[0].requires_grad:
                self.retained[step.args[0]] = tensors[0]
            self.run_text(step, values, tensors)
            if step.kind in {"leaf", "pure"}:
                self.define(step, values)

    def hooked(self, step: Step, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        hooks = [self.handles.get(f"f{i}") if takes(step, i) else None for i in step.args]
        return [h(t) if h else t for h, t in zip(hooks, tensors, strict=True)]

    def run_text(self, step: Step, values: dict[int, Any], operands: list[Any]) -> None:
        if step.torch is None:
            raise NotImplementedError("no such operation")
        compiled(step.torch, len(operands))(
            values, step.out, operands, self.handles, self.seen, self.numbers
        )

    def define(self, step: Step, values: dict[int, Any]) -> None:
        """Gives a new tensor a memory of its own."""
        tensor = values[step.out]
        if step.kind == "leaf" and tensor.requires_grad:
            self.leaf_tensors[step.out] = tensor
        positions = torch.arange(tensor.numel()).reshape(tensor.shape)
        family = Family([], tensor, is_leaf=step.out in self.leaf_tensors)
        values[step.out] = self.places[step.out] = Place(step.out, family, positions, True)

    def view(self, step: Step, base: Place) -> Place:
        expression = step.torch.split(" = ", 1)[1] if step.torch else ""
        if expression.endswith(".detach()"):
            family = Family(base.family.memory, base.family.node.detach())
        else:
            family = base.family
        positions = apply(expression, base.positions)
        whole = positions.shape == family.node.shape and bool(
            (positions.reshape(-1) == torch.arange(family.node.numel())).all()
        )
        whole = whole and family is not base.family
        place = Place(step.out, family, positions, whole)
        if family is base.family:
            family.read[step.out] = apply(expression, base.tensor())
        self.places[step.out] = place
        return place

    def write(self, step: Step, target: Place, operands: list[torch.Tensor]) -> None:
        family, positions = target.family, target.positions
        if step.region:
            positions = positions[index_of(step.region)]
        part = family.node.reshape(-1)[positions]
        scope = {"torch": torch, **{f"a{i}": t for i, t in enumerate(operands)}, "old": part}
        text = re.sub(r"\{(\w)\}", lambda m: "old" if m[1] == "o" else f"a{m[1]}", step.becomes)
        outside = "copyto" in step.tw
        new = eval(text, scope).expand(positions.shape)
        flat = family.node.reshape(-1).index_put((positions.reshape(-1),), new.reshape(-1))
        node = flat.reshape(family.node.shape)
        recorded = torch.is_grad_enabled() and node.requires_grad and not outside
        if recorded and family.is_leaf:
            raise NotDefinedError("a leaf that requires grad was changed while recording")
        for other in family.memory:
            if other is family and recorded:
                family.joined(node)
            else:
                self.shift(other, node)
        if recorded:
            self.keep_retained(family)

    def keep_retained(self, family: Family) -> None:
        """Gradients that were asked for are those of the numbers that a write has left."""
        for number, old in self.retained.items():
            if self.places[number].family is family:
                tensor = self.places[number].tensor()
                tensor.retain_grad()
                tensor.grad = old.grad
                self.retained[number] = tensor

    def shift(self, family: Family, node: torch.Tensor) -> None:
        """Changes the numbers of a family and leaves its graph."""
        numbers = node.detach().reshape(-1)
        with torch.enable_grad():
            for number, tensor in family.read.items():
                place = self.places.get(number)
                if place is not None and place.family is family:
                    family.before.setdefault(number, tensor)
                    family.read[number] = shifted(tensor, numbers[place.positions])
            family.before.setdefault(None, family.node)
            family.node = shifted(family.node, numbers.reshape(family.node.shape))

    def toggle(self, place: Place) -> None:
        """The value becomes a leaf; views from before stay outside of its graph."""
        if place.tensor().requires_grad:
            return
        if not place.whole:
            raise NotDefinedError("a view became a leaf")
        constant = Family(place.family.memory, place.family.node)
        for other in self.places.values():
            if other.family is place.family and other is not place:
                other.family = constant
        leaf = place.tensor().detach().clone().requires_grad_()
        place.family.joined(leaf)
        place.family.is_leaf = True
        self.leaf_tensors[place.number] = leaf

    # ---- what the finale needs: tensors

    def leaves(self) -> dict[int, torch.Tensor]:
        kept = sorted(i for i in self.leaf_tensors if self.values.get(i) is not None)
        return {i: self.leaf_tensors[i] for i in kept}

    def loss(self) -> Any:
        terms = [self.values[i].tensor() for i in self.program.terms if i in self.values]
        terms = [t for t in terms if t.requires_grad]
        return sum(terms[1:], terms[0]) if terms else None

    def collect(self) -> None:
        out = self.outcome
        for i, place in self.live().items():
            tensor = place.tensor()
            out.values[i] = array_of(tensor)
            out.requires_grad[i] = tensor.requires_grad
            owner = self.leaf_tensors.get(i, self.retained.get(i))
            grad = None if owner is None else owner.grad
            out.gradients["grad", i] = None if grad is None else array_of(grad)
        out.seen = {n: [array_of(g) for g in gs] for n, gs in self.seen.items()}
        self.values.clear()
        self.places.clear()


def apply(expression: str, x: torch.Tensor) -> torch.Tensor:
    """A view's expression on a tensor."""
    return eval(expression.replace("{0}", "x"), {"x": x, "torch": torch})  # type: ignore[no-any-return]


def index_of(region: str) -> Any:
    """What stands between the brackets of a region's text."""

    class Key:
        def __getitem__(self, key: Any) -> Any:
            return key

    return eval("key" + region, {"key": Key(), "torch": torch})
