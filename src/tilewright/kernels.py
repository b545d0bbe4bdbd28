"""The kernel registry: what there is, and forcing a choice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tilewright import _core


def ops() -> list[str]:
    """Ops that have registered kernels."""
    return list(_core.kernel_ops())


def names(op: str) -> list[str]:
    """Kernels of an op, in ladder order.

    >>> import tilewright as tw
    >>> tw.kernels.names("matmul")[:2]
    ['naive', 'tiled']
    """
    return [kernel["name"] for kernel in describe(op)]


def describe(op: str) -> list[dict[str, Any]]:
    """Records of an op's kernels: name, device, precision class, help.

    Classes, the most exact first: `ieee` (multiply-adds in some order), `fp32` (another algorithm,
    no less exact), `high` (about 16 bits of float32's 24) and `medium` (8). Those that the free
    choice may use are set by `tw.set_float32_matmul_precision`: 'highest' allows `fp32`, 'high'
    and 'medium' the class of their name, each what comes before.

    Raises ValueError for an op without kernels.
    """
    kernels = list(_core.kernels_of_op(op))
    if not kernels:
        raise ValueError(f"no kernels for op {op!r}; ops with kernels: {', '.join(ops())}")
    return kernels


def isas() -> list[str]:
    """Instruction sets that this machine can run, slowest first."""
    return list(_core.cpu_info()["isas"])


def _forced(op: str) -> str:
    """Name of the forced kernel; a wrong name in the environment counts as none."""
    try:
        return _core.forced_kernel(op)
    except ValueError:
        return ""


@contextmanager
def use(*, isa: str | None = None, **forced: str) -> Iterator[None]:
    """Forces kernels by op, and the instruction set of all kernels, within a `with` block.

    Raises ValueError for unknown names; what was in force before is restored.

    >>> import tilewright as tw
    >>> with tw.kernels.use(matmul="tiled"):
    ...     y = tw.ones((4, 4)) @ tw.ones((4, 4))
    """
    before = {op: _forced(op) for op in forced}
    isa_before = _core.active_isa()
    try:
        if isa is not None:
            _core.set_isa(isa)
        for op, name in forced.items():
            _core.force_kernel(op, name)
        yield
    finally:
        for op, name in before.items():
            _core.force_kernel(op, name)
        _core.set_isa(isa_before)
