"""What `tilewright bench gpu` measures: products, passes over memory, and whole steps on a GPU."""

from __future__ import annotations

from tilewright.bench.gpu.lines import Judged, Line, judge
from tilewright.bench.gpu.memory import memory_lines
from tilewright.bench.gpu.products import product_lines
from tilewright.bench.gpu.rivals import Rivals
from tilewright.bench.gpu.steps import step_lines

__all__ = ["Judged", "Line", "Rivals", "judge", "memory_lines", "product_lines", "step_lines"]
