"""The kernel registry: what there is, and forcing a choice."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tilewright import _core
from tilewright._engine.modes import ModeBlock, Switch
from tilewright._kernels import loading

if TYPE_CHECKING:
    from tilewright._kernels.validation import Verdict


def ops() -> list[str]:
    """Ops whose kernels can be forced."""
    return list(_core.kernel_ops())


def names(op: str, device: str = "cpu") -> list[str]:
    """Kernels of an op on a device, in ladder order; at the end "body" where other ops can say it.

    Raises ValueError for an op without kernels.

    >>> import tilewright as tw
    >>> tw.kernels.names("matmul")[:2]
    ['naive', 'tiled']
    """
    return [kernel["name"] for kernel in _described(op, device, "names")]


def describe(op: str, device: str = "cpu") -> list[dict[str, Any]]:
    """Records of an op's kernels on a device: name, device, precision class, help, error.

    Classes, the most exact first: `ieee` (multiply-adds in some order), `fp32` (another algorithm,
    no less exact), `high` (about 16 bits of float32's 24) and `medium` (8). Those that the free
    choice may use are set by `tw.set_float32_matmul_precision`: 'highest' allows `fp32`, 'high'
    and 'medium' the class of their name, each what comes before. The error is the largest of
    float32 results that was measured, as a share of the largest result, on standard normal numbers;
    None where that was not measured.

    Raises ValueError for an op without kernels.
    """
    return _described(op, device, "describe")


def _described(op: str, device: str, caller: str) -> list[dict[str, Any]]:
    if not isinstance(op, str):
        raise TypeError(f"kernels.{caller}: op must be a str, got {op!r}")
    loading.load_installed()
    own = (device.partition(":")[0], "any")
    kernels = [kernel for kernel in _core.kernels_of_op(op) if kernel["device"] in own]
    if not kernels:
        known = ", ".join(ops())
        raise ValueError(f"kernels.{caller}: no kernels for op {op!r}; ops with kernels: {known}")
    return kernels


def load(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Makes the kernels of a library rungs of the ladders of their ops; returns their op and name.

    The library is written against `tilewright_kernel.h` (`tw.kernels.include_folder()`), for
    products and convolutions; `tilewright kernel new` writes a first one. Its kernels are explained
    and forced like others, and chosen by their estimates. What a package names as an entry point of
    the group `tilewright.kernels` is loaded when kernels are first asked for or forced. A library
    runs with all rights of the program: load what you trust.

    Raises FileNotFoundError where there is no file, OSError for what is no library, ValueError for
    one without kernels or of another version of the interface, and for names that are taken.
    """
    return loading.load(path)


def include_folder() -> str:
    """The folder of `tilewright_kernel.h`."""
    return os.path.dirname(loading.__file__)


def validate(op: str, name: str, *, measure: bool = False) -> list[Verdict]:
    """Holds a kernel of matmul or of convolutions against the definition in float64.

    Each verdict has the problem, the error and what is allowed, or why the kernel refused; with
    `measure` the time of the engine's own choice over the kernel's, taking turns.

    Raises ValueError for a kernel that there is not, and for other ops.

    >>> import tilewright as tw
    >>> all(verdict.is_right for verdict in tw.kernels.validate("matmul", "tiled"))
    True
    """
    from tilewright._kernels import validation  # noqa: PLC0415  (imported on use)

    ops = ("matmul", "convolution", "convolution_input_gradient", "convolution_weight_gradient")
    if op not in ops:
        raise ValueError(f"kernels.validate: op must be one of {', '.join(ops)}, got {op!r}")
    if name not in names(op):
        raise ValueError(f"kernels.validate: {op} has no kernel {name!r}")
    return validation.validate(op, name, use, measure=measure)


def isas() -> list[str]:
    """Instruction sets that this machine can run, slowest first."""
    return list(_core.cpu_info()["isas"])


def _forced(op: str) -> str:
    """Name of the forced kernel; a wrong name in the environment counts as none."""
    try:
        return _core.forced_kernel(op)
    except ValueError:
        return ""


class use(ModeBlock):  # noqa: N801  (a context manager, used like a function)
    """Forces kernels by op, and the instruction set of all kernels, on this thread within a block.

    With "body" an op runs as other ops where its kernel would: `use(softmax="body")` shows what the
    kernel is an optimisation of. Gradients have names of their own (`softmax_backward`).
    A name is forced on every device that has a kernel of it.
    Raises ValueError for unknown names; what was in force before is restored. Other threads keep
    what they have; a new one starts with what the environment forces, a task of a `Scheduler` with
    its submitter's.

    >>> import tilewright as tw
    >>> with tw.kernels.use(matmul="tiled"):
    ...     y = tw.ones((4, 4)) @ tw.ones((4, 4))
    """

    def __init__(self, *, isa: str | None = None, **forced: str) -> None:
        self.isa = isa
        self.forced = forced

    def _enter(self) -> None:
        if self.forced:
            loading.load_installed()
        _core._enter_kernels(self, self.isa, self.forced)


class use_batch_invariant(Switch):  # noqa: N801  (a switch, called like a function)
    """Whether a row gets the same bits however many rows are computed with it.

    Sets it for this thread; as a context manager or decorator, for what is inside. Kernels that add
    up in an order that depends on the number of rows are left out of the choice, and so are those
    whose bits differ from the kernels that stay: `tw.explain` shows them and what that costs. A
    kernel that is forced runs all the same.

    >>> import tilewright as tw
    >>> x, w = tw.randn(64, 512), tw.randn(4, 512)
    >>> with tw.use_batch_invariant():
    ...     bool((tw.linear(x, w)[:1] == tw.linear(x[:1], w)).all())
    True
    """

    def __init__(self, enabled: bool = True) -> None:
        self.enabled = bool(enabled)
        super().__init__(self.enabled)

    def _value(self) -> bool:
        return _core.is_batch_invariant()

    def _set(self, value: bool) -> None:
        _core._set_batch_invariant(value)

    def _enter(self) -> None:
        _core._enter_batch_invariance(self, self.enabled)
