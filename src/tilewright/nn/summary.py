"""A model as a table: what each layer returns, holds, computes and keeps in memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tilewright as tw
from tilewright import _core
from tilewright.nn.dry_run import input_on, tensors_in, twin_on
from tilewright.nn.module.module import Module


@dataclass
class Layer:
    """One module: its results over all calls, and what is its own, not its submodules'."""

    path: str
    type: str
    parameters: int
    trainable: int
    calls: int = 0
    output_shapes: list[tuple[int, ...]] = field(default_factory=list)
    output_bytes: int = 0
    flops: float = 0.0

    @property
    def depth(self) -> int:
        """0 for the model itself."""
        return self.path.count(".") + 1 if self.path else 0


@dataclass
class ModelSummary:
    """What `summary` returns: a list of layers and totals; printing it shows a table."""

    layers: list[Layer]
    dry_run: bool

    @property
    def parameters(self) -> int:
        """Elements of all parameters, shared ones once."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def trainable(self) -> int:
        """Elements of the parameters that require grad."""
        return sum(layer.trainable for layer in self.layers)

    @property
    def flops(self) -> float:
        """Arithmetic of the forward pass."""
        return sum(layer.flops for layer in self.layers)

    @property
    def output_bytes(self) -> int:
        """Memory of the results of all layers that hold no others."""
        parents = {layer.path.rpartition(".")[0] for layer in self.layers if layer.path}
        leaves = [layer for layer in self.layers if layer.path not in parents]
        return sum(layer.output_bytes for layer in leaves)

    def __rich__(self) -> Any:
        """A table for rich's print; rich calls this."""
        from rich.console import Group  # noqa: PLC0415  (imported on use)
        from rich.table import Table  # noqa: PLC0415  (imported on use)

        table = Table(*_COLUMNS[:3])
        for column in _COLUMNS[3:]:
            table.add_column(column, justify="right")
        for row in self._rows():
            table.add_row(*row)
        return Group(table, self._totals())

    def _repr_html_(self) -> str:
        from tilewright._report.html.tables import for_notebook  # noqa: PLC0415  (imported on use)

        return for_notebook("summary", _COLUMNS, self._rows(), self._totals())

    def __str__(self) -> str:
        from tilewright._report.text import aligned  # noqa: PLC0415  (imported on use)

        return "\n".join([*aligned([_COLUMNS, *self._rows()]), "", self._totals()])

    def __repr__(self) -> str:
        return f"<summary: {len(self.layers)} modules, {self.parameters:,} parameters>"

    def _rows(self) -> list[tuple[str, ...]]:
        return [_row(layer) for layer in self.layers]

    def _totals(self) -> str:
        fixed = self.parameters - self.trainable
        return (
            f"{self.parameters:,} parameters"
            + (f", {fixed:,} of them fixed" if fixed else "")
            + f"; {_scaled(self.flops)}FLOP forward; {_scaled(self.output_bytes)}B of results"
        )


_COLUMNS = ("layer", "type", "output", "parameters", "FLOP", "output memory")


def _row(layer: Layer) -> tuple[str, ...]:
    shapes = Counter(layer.output_shapes)
    name = "  " * layer.depth + (layer.path.rpartition(".")[2] or "model")
    return (
        name,
        layer.type,
        ", ".join(f"{s} x {n}" if n > 1 else str(s) for s, n in shapes.items()),
        f"{layer.parameters:,}" if layer.parameters else "",
        _scaled(layer.flops) if layer.flops else "",
        f"{_scaled(layer.output_bytes)}B" if layer.output_bytes else "",
    )


def _scaled(value: float) -> str:
    for unit, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.0f} "


def summary(model: Module, *inputs: Any, dry_run: bool = True, **kwargs: Any) -> ModelSummary:
    """Each layer's path, type, results, parameters, FLOPs and memory, for inputs or their shapes.

    `inputs` are what the model is called with; a tuple or list of integers is the shape of a
    float32 tensor. A copy of the model runs in evaluation mode, so that the model's mode, buffers
    and hooks stay as they are. Where `dry_run`, it runs on the null device, which computes nothing;
    a model that fails there (its own tensors that are no buffers are on the CPU) runs for real.
    FLOPs are the estimates of the ops, by the layer that calls them.

    >>> import tilewright as tw
    >>> model = tw.nn.Sequential(tw.nn.Linear(4, 3), tw.nn.ReLU())
    >>> print(tw.nn.summary(model, (2, 4)))
    layer  type        output  parameters  FLOP  output memory
    model  Sequential  (2, 3)                             24 B
      0    Linear      (2, 3)          15   48            24 B
      1    ReLU        (2, 3)                 6            24 B
    <BLANKLINE>
    15 parameters; 54 FLOP forward; 48 B of results
    """
    if not isinstance(model, Module):
        raise TypeError(f"summary: expected a Module, got {type(model).__name__}")
    if dry_run:
        try:
            return _run(model, inputs, kwargs, "null")
        except Exception:
            pass
    return _run(model, inputs, kwargs, "cpu")


def _run(model: Module, inputs: Sequence[Any], kwargs: dict[str, Any], device: str) -> ModelSummary:
    before = _core.active_device()
    generator = _core._default_generator()
    position = generator.position
    _core.set_device(device)
    try:
        twin = twin_on(model, device).eval()
        args = [input_on(x, device) for x in inputs]
        named = {name: input_on(x, device) for name, x in kwargs.items()}
        layers = _layers(twin)
        with tw.no_grad():
            observing = _core._Observing()
            try:
                twin(*args, **named)
            finally:
                events = observing.stop()
    finally:
        _core.set_device(before)
        generator.position = position
    by_path = {layer.path: layer for layer in layers}
    for event in events:
        path = event["module"].partition(".")[2]
        by_path.get(path, layers[0]).flops += event["flops"]
    return ModelSummary(layers, device == "null")


def _layers(model: Module) -> list[Layer]:
    """A row for each module, which its calls fill in."""
    layers: list[Layer] = []
    counted: set[int] = set()
    for path, module in model.named_modules():
        own = [x for x in module.parameters(recurse=False) if id(x) not in counted]
        counted.update(map(id, own))
        sizes = [math.prod(x.shape) for x in own]
        trained = sum(n for n, x in zip(sizes, own, strict=True) if x.requires_grad)
        layer = Layer(path, type(module).__name__, sum(sizes), trained)
        layers.append(layer)

        def note(_module: Module, _args: Any, result: Any, layer: Layer = layer) -> None:
            layer.calls += 1
            for x in tensors_in(result):
                layer.output_shapes.append(x.shape)
                layer.output_bytes += x.nbytes

        module.register_forward_hook(note)
    return layers
