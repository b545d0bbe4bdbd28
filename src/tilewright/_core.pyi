"""The engine: tensors, ops, gradients, kernels. Made by tools/make_stub.py."""

# ruff: noqa: N801, N802, N803, N812  (the Array API's names, and PyTorch's)
# fmt: off

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, Protocol, SupportsIndex, TypeAlias, overload

from typing_extensions import Buffer, Self

from tilewright._arrays.extremes import AminmaxResult as _AminmaxResult
from tilewright._arrays.sets import HistogramResult as _HistogramResult
from tilewright._arrays.sets import UniqueAllResult as _UniqueAllResult
from tilewright._arrays.sets import UniqueCountsResult as _UniqueCountsResult
from tilewright._arrays.sets import UniqueInverseResult as _UniqueInverseResult
from tilewright._compat.torch_functions import FrexpResult as _FrexpResult
from tilewright._engine.device_names import device as _Device
from tilewright._engine.element_count import ElementCount as _ElementCount
from tilewright.linalg.decompositions import SlogdetResult as _SlogdetResult
from tilewright.linalg.elimination import LUResult as _LUResult

_Bool: TypeAlias = builtins.bool
# Tensor has methods of these names.
_Int: TypeAlias = builtins.int
_Float: TypeAlias = builtins.float
# The module has a function of this name.
_Complex: TypeAlias = builtins.complex
_Number: TypeAlias = _Bool | int | float | _Complex

class _Array(Protocol):
    """Another library's array."""

    def __dlpack_device__(self) -> tuple[Any, Any]: ...

_Operand: TypeAlias = Tensor | _Number | _Array

class dtype:
    """An element type."""

    def __eq__(self, arg: object, /) -> _Bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> str: ...
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    @property
    def dtype(self) -> Any:
        """NumPy's type, by which NumPy takes this one where it asks for a type."""
    @property
    def is_complex(self) -> _Bool:
        """Whether it is a complex type."""
    @property
    def is_floating_point(self) -> _Bool:
        """Whether it is a floating type; complex ones are not."""
    @property
    def is_signed(self) -> _Bool:
        """Whether its numbers may be negative."""
    @property
    def itemsize(self) -> int:
        """Bytes an element."""
    @property
    def kind(self) -> str:
        """NumPy's letter: 'b' of bool, 'i' and 'u' of integers with and without a sign, ..."""
    @property
    def name(self) -> str: ...

_DType: TypeAlias = dtype
_DTypeLike: TypeAlias = dtype | str | type[Any] | Any

class Generator:
    """A stream of random numbers: seed and position."""

    def __getstate__(self) -> tuple[int, int]: ...
    def __init__(self, seed: int=0, *, device: str | None=None) -> None:
        """`device` is taken for PyTorch's programs: a seed gives the same numbers on all."""
    def __repr__(self) -> str: ...
    def __setstate__(self, arg: tuple[int, int], /) -> None: ...
    def get_state(self) -> Tensor:
        """Seed and position, two numbers of uint64 for `set_state`."""
    def initial_seed(self) -> int:
        """The seed, as `seed`."""
    def manual_seed(self, seed: int) -> Generator:
        """Starts the stream of another seed and returns the generator."""
    @property
    def position(self) -> int:
        """32-bit words already used, a multiple of 4."""
    @position.setter
    def position(self, value: int, /) -> None: ...
    @property
    def seed(self) -> int: ...
    def set_state(self, state: Tensor) -> None:
        """Goes on from a state that `get_state` gave; raises ValueError for another tensor."""

class HookHandle:
    """A registered hook."""

    def __repr__(self) -> str: ...
    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""

class Pool:
    """Memory with a quota of its own."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    def __init__(
        self,
        quota_bytes: int | None=None,
        spill_dir: str | PathLike[str] | _Bool | None=None,
        *,
        device: str | None=None,
        host_bytes: int | None=None,
    ) -> None: ...
    def __repr__(self) -> str: ...
    def allocate(self, nbytes: int, zero: _Bool=False) -> Block:
        """A block of this pool; with zero=True its bytes are 0, else unspecified."""
    def on_pressure(self, level: float, callback: Callable[[int], object]) -> None:
        """Calls callback(live_bytes) before live bytes rise to level * quota_bytes: what ..."""
    @property
    def quota_bytes(self) -> int | None:
        """The quota, or None."""
    def reset_peaks(self) -> None:
        """Starts the peak figures anew."""
    def spill(self) -> int:
        """Writes out every block that is not in use, pinned or small; returns bytes."""
    @property
    def spill_folder(self) -> str:
        """Where the files of spilled blocks are; '' while there are none."""
    def stats(self) -> dict[str, Any]:
        """Figures in bytes and counts."""
    def trim(self) -> int:
        """Gives memory kept for reuse back to the system; returns bytes."""

class SourceFile:
    """A file to gather rows from, opened on first use."""

    def __init__(self, arg: object, /) -> None: ...
    def __repr__(self) -> str: ...
    @property
    def size_bytes(self) -> int:
        """When opened."""

class TransferEvent:
    """A transfer on its way; it keeps its tensors alive until it is done."""

    def __repr__(self) -> str: ...
    def cancel(self) -> None:
        """Keeps a waiting transfer from starting and stops a running one; the target's ..."""
    def done(self) -> _Bool:
        """Whether it has completed, failed or been cancelled."""
    @property
    def state(self) -> str:
        """'waiting', 'running', 'completed', 'failed' or 'cancelled'."""
    def wait(self, timeout: float | None=None) -> None:
        """Returns when the transfer has completed; timeout in seconds."""

class _Captured:
    """Recorded calls that run again on other inputs."""

    def calls(self) -> list[dict[str, Any]]:
        """Names of the ops and their kernels, in order."""
    def figures(self) -> dict[str, int]:
        """Sizes, in bytes and counts."""
    def is_current(self) -> _Bool:
        """Whether kernels, precision and autocast are in force as they were when it was ..."""
    def replay(self, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        """What the recorded function would return for these inputs."""

class _GpuEvent:
    """A place in a stream."""

    def __init__(self, timed: _Bool) -> None: ...
    def elapsed_ms(self, end: _GpuEvent) -> float: ...
    def hold(self, stream: _GpuStream) -> None: ...
    def query(self) -> _Bool: ...
    def record(self, stream: _GpuStream) -> None: ...
    def synchronize(self) -> None: ...

class _GpuStream:
    """A queue of work of a GPU."""

    @property
    def address(self) -> int: ...
    @property
    def gpu(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def priority(self) -> int: ...
    def query(self) -> _Bool: ...
    def synchronize(self) -> None: ...

class _Ledger:
    """The native ledger, as tilewright.memory.reference."""

    def __init__(self, quota_bytes: int, may_spill: _Bool) -> None: ...
    def add(self, arg0: int, arg1: int, /) -> None: ...
    def cold(self) -> list[int]: ...
    def figures(self) -> dict[str, int]: ...
    def make_room(self, arg: int, /) -> list[int]: ...
    def pin(self, arg: int, /) -> None: ...
    def remove(self, arg: int, /) -> None: ...
    def reset_peaks(self) -> None: ...
    def restore(self, arg: int, /) -> None: ...
    def spill(self, arg: int, /) -> None: ...
    def unpin(self, arg: int, /) -> None: ...
    def use(self, arg: int, /) -> None: ...

class _Modes:
    """This thread's modes, for other threads to run under."""

    def __init__(self) -> None: ...
    def enter(self) -> None:
        """The calling thread runs under them until leave()."""
    def leave(self) -> None:
        """Ends the calling thread's last enter(), and what changed since."""

class _ModuleState:
    """What calls of a module depend on besides their arguments, as it is now. That is: ..."""

    def __init__(self, module: object) -> None: ...
    def holds_for(self, module: object) -> _Bool:
        """Whether `module` is the one that was looked at, and all is as it was. An ..."""

class _Observing:
    """Observes events of some kinds, of the thread that makes it or of all."""

    def __init__(
        self,
        kinds: Sequence[str]=...,
        alone: _Bool=False,
        everywhere: _Bool=False,
        capacity: int=9223372036854775807,
    ) -> None: ...
    @property
    def began_ns(self) -> int: ...
    @property
    def dropped(self) -> int:
        """Oldest events that did not fit the capacity."""
    def stop(self) -> list[dict[str, Any]]:
        """Ends it, on any thread; what was observed."""

class Block:
    """Memory of a pool, with the buffer protocol: memoryview(block)."""

    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __len__(self) -> int: ...
    @property
    def address(self) -> int:
        """Where the block is; it stays there from now on."""
    @property
    def nbytes(self) -> int:
        """Bytes asked for; 0 after free()."""
    def free(self) -> None:
        """Gives the memory back now; BufferError while a memoryview is over it."""

class _ModuleCall:
    """Calls `forward`, within hooks."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class ValuesAndIndices(tuple[Tensor, Tensor]):
    """Elements of a tensor, and where they are."""

    def __new__(cls, pair: Sequence[Tensor], /) -> Self: ...
    @property
    def values(self) -> Tensor:
        """The elements."""
    @property
    def indices(self) -> Tensor:
        """Where they are along the axis, int64."""

class Tensor:
    """An n-dimensional array that takes part in autograd."""

    def __new__(cls, x: Any) -> Self: ...
    def __add__(self, other: _Operand, /) -> Tensor: ...
    def __and__(self, other: _Operand, /) -> Tensor: ...
    def __floordiv__(self, other: _Operand, /) -> Tensor: ...
    def __lshift__(self, other: _Operand, /) -> Tensor: ...
    def __matmul__(self, other: _Operand, /) -> Tensor: ...
    def __mod__(self, other: _Operand, /) -> Tensor: ...
    def __mul__(self, other: _Operand, /) -> Tensor: ...
    def __or__(self, other: _Operand, /) -> Tensor: ...
    def __pow__(self, other: _Operand, /) -> Tensor: ...
    def __rshift__(self, other: _Operand, /) -> Tensor: ...
    def __sub__(self, other: _Operand, /) -> Tensor: ...
    def __truediv__(self, other: _Operand, /) -> Tensor: ...
    def __xor__(self, other: _Operand, /) -> Tensor: ...
    def __radd__(self, other: _Operand, /) -> Tensor: ...
    def __rand__(self, other: _Operand, /) -> Tensor: ...
    def __rfloordiv__(self, other: _Operand, /) -> Tensor: ...
    def __rlshift__(self, other: _Operand, /) -> Tensor: ...
    def __rmatmul__(self, other: _Operand, /) -> Tensor: ...
    def __rmod__(self, other: _Operand, /) -> Tensor: ...
    def __rmul__(self, other: _Operand, /) -> Tensor: ...
    def __ror__(self, other: _Operand, /) -> Tensor: ...
    def __rpow__(self, other: _Operand, /) -> Tensor: ...
    def __rrshift__(self, other: _Operand, /) -> Tensor: ...
    def __rsub__(self, other: _Operand, /) -> Tensor: ...
    def __rtruediv__(self, other: _Operand, /) -> Tensor: ...
    def __rxor__(self, other: _Operand, /) -> Tensor: ...
    def __iadd__(self, other: _Operand, /) -> Self: ...
    def __iand__(self, other: _Operand, /) -> Self: ...
    def __ifloordiv__(self, other: _Operand, /) -> Self: ...
    def __ilshift__(self, other: _Operand, /) -> Self: ...
    def __imatmul__(self, other: _Operand, /) -> Self: ...
    def __imod__(self, other: _Operand, /) -> Self: ...
    def __imul__(self, other: _Operand, /) -> Self: ...
    def __ior__(self, other: _Operand, /) -> Self: ...
    def __ipow__(self, other: _Operand, /) -> Self: ...
    def __irshift__(self, other: _Operand, /) -> Self: ...
    def __isub__(self, other: _Operand, /) -> Self: ...
    def __itruediv__(self, other: _Operand, /) -> Self: ...
    def __ixor__(self, other: _Operand, /) -> Self: ...
    def __divmod__(self, other: _Operand, /) -> tuple[Tensor, Tensor]: ...
    def __rdivmod__(self, other: _Operand, /) -> tuple[Tensor, Tensor]: ...
    def __ge__(self, other: _Operand, /) -> Tensor: ...
    def __gt__(self, other: _Operand, /) -> Tensor: ...
    def __le__(self, other: _Operand, /) -> Tensor: ...
    def __lt__(self, other: _Operand, /) -> Tensor: ...
    def __eq__(self, other: _Operand, /) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: _Operand, /) -> Tensor: ...  # type: ignore[override]
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __bool__(self) -> _Bool: ...
    def __buffer__(self, flags: _Int, /) -> memoryview: ...
    def __float__(self) -> _Float: ...
    def __int__(self) -> _Int: ...
    def __index__(self) -> _Int: ...
    def __len__(self) -> _Int: ...
    def __hash__(self) -> _Int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __getitem__(self, key: Any, /) -> Tensor: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __delitem__(self, key: Any, /) -> None: ...
    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix."""
    @property
    def T(self) -> Tensor:
        """The transpose of a matrix, as a view."""
    def __array__(self, dtype: object=None, copy: object=None) -> Any: ...
    def __array_namespace__(self, *, api_version: str | None=None) -> Any: ...
    def __array_ufunc__(
        self,
        function: object,
        kind: str,
        *inputs: object,
        **options: object,
    ) -> Any: ...
    def __complex__(self) -> _Complex: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """How other libraries find the memory of a tensor on a GPU (version 3)."""
    def __deepcopy__(self, memo: dict[_Int, Any]) -> Tensor: ...
    def __dlpack__(
        self,
        *,
        stream: object=None,
        max_version: object=None,
        dl_device: object=None,
        copy: object=None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[_Int, _Int]: ...
    def __format__(self, specification: str) -> str: ...
    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]: ...
    def __round__(self, ndigits: _Int | None=None) -> Tensor: ...
    def abs(self) -> Tensor:
        """Absolute value. Source: Array API standard 2024.12."""
    def abs_(self) -> Self:
        """`abs`, written in place. Absolute value. Source: Array API standard 2024.12."""
    def absolute(self) -> Tensor:
        """Absolute value. Source: Array API standard 2024.12."""
    def absolute_(self) -> Self:
        """`abs`, written in place. Absolute value. Source: Array API standard 2024.12."""
    def acos(self) -> Tensor:
        """Inverse cosine, in radians. Source: Array API standard 2024.12."""
    def acos_(self) -> Self:
        """`acos`, written in place. Inverse cosine, in radians. Source: Array API standard ..."""
    def acosh(self) -> Tensor:
        """Inverse hyperbolic cosine. Source: Array API standard 2024.12."""
    def acosh_(self) -> Self:
        """`acosh`, written in place. Inverse hyperbolic cosine. Source: Array API standard ..."""
    def adaptive_avg_pool1d(self, output_size: _Int | Sequence[_Int | None] | None) -> Tensor:
        """The means of output_size windows an axis that cover input (batch, channels, ..."""
    def adaptive_avg_pool2d(self, output_size: _Int | Sequence[_Int | None] | None) -> Tensor:
        """The means of output_size windows an axis that cover input (batch, channels, ..."""
    def adaptive_avg_pool3d(self, output_size: _Int | Sequence[_Int | None] | None) -> Tensor:
        """The means of output_size windows an axis that cover input (batch, channels, ..."""
    def adaptive_max_pool1d(self, output_size: _Int | Sequence[_Int | None] | None) -> Tensor:
        """The largest elements of output_size windows an axis that cover input (batch, ..."""
    def adaptive_max_pool1d_with_indices(
        self,
        output_size: _Int | Sequence[_Int | None] | None,
    ) -> tuple[Tensor, Tensor]:
        """The results of adaptive_max_pool1d, and where in its plane each lies: int64, in ..."""
    def adaptive_max_pool2d(self, output_size: _Int | Sequence[_Int | None] | None) -> Tensor:
        """The largest elements of output_size windows an axis that cover input (batch, ..."""
    def adaptive_max_pool2d_with_indices(
        self,
        output_size: _Int | Sequence[_Int | None] | None,
    ) -> tuple[Tensor, Tensor]:
        """The results of adaptive_max_pool2d, and where in its plane each lies: int64, in ..."""
    def adaptive_max_pool3d(self, output_size: _Int | Sequence[_Int | None] | None) -> Tensor:
        """The largest elements of output_size windows an axis that cover input (batch, ..."""
    def adaptive_max_pool3d_with_indices(
        self,
        output_size: _Int | Sequence[_Int | None] | None,
    ) -> tuple[Tensor, Tensor]:
        """The results of adaptive_max_pool3d, and where in its plane each lies: int64, in ..."""
    @overload
    def add(self, other: _Operand, *, alpha: _Number=1) -> Tensor:
        """The operator's result, of alpha times the other."""
    @overload
    def add(self, b: _Operand, *, alpha: _Number=1) -> Tensor: ...
    @overload
    def add_(self, other: _Operand, *, alpha: _Number=1) -> Self:
        """The operator's result, of alpha times the other. Written in place. In place it ..."""
    @overload
    def add_(self, b: _Operand, *, alpha: _Number=1) -> Self: ...
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: _Float=1, alpha: _Float=1) -> Tensor:
        """beta * x + alpha * the sum of all products of bmm(batch1, batch2)."""
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: _Operand=1) -> Tensor:
        """x + value * tensor1 / tensor2. Shapes: x, tensor1 and tensor2 broadcast; the ..."""
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: _Operand=1) -> Self:
        """`addcdiv`, written in place. x + value * tensor1 / tensor2. Shapes: x, tensor1 ..."""
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: _Operand=1) -> Tensor:
        """x + value * tensor1 * tensor2, of floating numbers in one pass where value is 1. ..."""
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: _Operand=1) -> Self:
        """`addcmul`, written in place. x + value * tensor1 * tensor2, of floating numbers ..."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: _Float=1.0, alpha: _Float=1.0) -> Tensor:
        """beta * input + alpha * (mat1 @ mat2), for floating types; mat1 is (m, k), mat2 ..."""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: _Float=1.0, alpha: _Float=1.0) -> Self:
        """beta * self + alpha * (mat1 @ mat2), written in place."""
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: _Float=1, alpha: _Float=1) -> Tensor:
        """beta * x + alpha * mv(mat, vec)."""
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: _Float=1, alpha: _Float=1) -> Tensor:
        """beta * x + alpha * outer(vec1, vec2)."""
    def adjoint(self) -> Tensor:
        """The conjugate transpose of matrices, x.mH."""
    @overload
    def affine_grid(self, size: _Int | Sequence[_Int], align_corners: _Bool=False) -> Tensor:
        """The grid that grid_sample takes for affine maps theta (batch, 2, 3), or (batch, ..."""
    @overload
    def affine_grid(self, shape: _Int | Sequence[_Int], align_corners: _Bool=False) -> Tensor: ...
    def all(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Whether all elements are nonzero. Source: Array API standard 2024.12. Shapes: x ..."""
    @overload
    def allclose(
        self,
        b: Tensor,
        rtol: _Float=1e-05,
        atol: _Float=1e-08,
        equal_nan: _Bool=False,
    ) -> Tensor:
        """Whether isclose holds everywhere, as a 0-d tensor of bool. Raises ValueError for ..."""
    @overload
    def allclose(
        self,
        other: Tensor,
        rtol: _Float=1e-05,
        atol: _Float=1e-08,
        equal_nan: _Bool=False,
    ) -> Tensor: ...
    def alpha_dropout(
        self,
        p: _Float=0.5,
        training: _Bool=False,
        inplace: _Bool=False,
        generator: Generator | None=None,
    ) -> Tensor:
        """Sets elements with probability p to SELU's value far below 0 and shifts and ..."""
    def amax(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Largest element; NaN where there is one. Source: Array API standard 2024.12. ..."""
    def amin(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Smallest element; NaN where there is one. Source: Array API standard 2024.12. ..."""
    def aminmax(
        self,
        *,
        axis: _Int | None=None,
        keepdims: _Bool=False,
        dim: _Int | None=...,
        dims: _Int | None=...,
        keepdim: _Bool=...,
    ) -> _AminmaxResult:
        """Smallest and largest of all elements, or along an axis."""
    def angle(self) -> Tensor:
        """The angle of complex numbers in radians, from -pi to pi; of real numbers pi ..."""
    def any(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Whether any element is nonzero. Source: Array API standard 2024.12. Shapes: x of ..."""
    def arccos(self) -> Tensor:
        """Inverse cosine, in radians. Source: Array API standard 2024.12."""
    def arccos_(self) -> Self:
        """`acos`, written in place. Inverse cosine, in radians. Source: Array API standard ..."""
    def arccosh(self) -> Tensor:
        """Inverse hyperbolic cosine. Source: Array API standard 2024.12."""
    def arccosh_(self) -> Self:
        """`acosh`, written in place. Inverse hyperbolic cosine. Source: Array API standard ..."""
    def arcsin(self) -> Tensor:
        """Inverse sine, in radians. Source: Array API standard 2024.12."""
    def arcsin_(self) -> Self:
        """`asin`, written in place. Inverse sine, in radians. Source: Array API standard ..."""
    def arcsinh(self) -> Tensor:
        """Inverse hyperbolic sine. Source: Array API standard 2024.12."""
    def arcsinh_(self) -> Self:
        """`asinh`, written in place. Inverse hyperbolic sine. Source: Array API standard ..."""
    def arctan(self) -> Tensor:
        """Inverse tangent, in radians. Source: Array API standard 2024.12."""
    @overload
    def arctan2(self, b: _Operand) -> Tensor:
        """Angle of the point (b, a), in radians. Source: Array API standard 2024.12."""
    @overload
    def arctan2(self, other: _Operand) -> Tensor: ...
    @overload
    def arctan2_(self, b: _Operand) -> Self:
        """`atan2`, written in place. Angle of the point (b, a), in radians. Source: Array ..."""
    @overload
    def arctan2_(self, other: _Operand) -> Self: ...
    def arctan_(self) -> Self:
        """`atan`, written in place. Inverse tangent, in radians. Source: Array API ..."""
    def arctanh(self) -> Tensor:
        """Inverse hyperbolic tangent. Source: Array API standard 2024.12."""
    def arctanh_(self) -> Self:
        """`atanh`, written in place. Inverse hyperbolic tangent. Source: Array API ..."""
    def argmax(
        self,
        axis: _Int | None=None,
        keepdims: _Bool=False,
        *,
        dim: _Int | None=...,
        dims: _Int | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Index of the first largest element (of the flattened x by default). Source: ..."""
    def argmin(
        self,
        axis: _Int | None=None,
        keepdims: _Bool=False,
        *,
        dim: _Int | None=...,
        dims: _Int | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Index of the first smallest element (of the flattened x by default). Source: ..."""
    def argsort(
        self,
        axis: _Int=-1,
        descending: _Bool=False,
        stable: _Bool=True,
        *,
        dim: _Int=...,
        dims: _Int=...,
    ) -> Tensor:
        """The indices (int64) that put the elements along an axis in order. NaN is last, ..."""
    def argwhere(self) -> Tensor:
        """The indices of the elements that are not 0, a row for each (n, x.ndim), as int64."""
    def asin(self) -> Tensor:
        """Inverse sine, in radians. Source: Array API standard 2024.12."""
    def asin_(self) -> Self:
        """`asin`, written in place. Inverse sine, in radians. Source: Array API standard ..."""
    def asinh(self) -> Tensor:
        """Inverse hyperbolic sine. Source: Array API standard 2024.12."""
    def asinh_(self) -> Self:
        """`asinh`, written in place. Inverse hyperbolic sine. Source: Array API standard ..."""
    def astype(self, dtype: _DTypeLike) -> Tensor:
        """Converted to another dtype; itself where it has it."""
    def atan(self) -> Tensor:
        """Inverse tangent, in radians. Source: Array API standard 2024.12."""
    @overload
    def atan2(self, b: _Operand) -> Tensor:
        """Angle of the point (b, a), in radians. Source: Array API standard 2024.12."""
    @overload
    def atan2(self, other: _Operand) -> Tensor: ...
    @overload
    def atan2_(self, b: _Operand) -> Self:
        """`atan2`, written in place. Angle of the point (b, a), in radians. Source: Array ..."""
    @overload
    def atan2_(self, other: _Operand) -> Self: ...
    def atan_(self) -> Self:
        """`atan`, written in place. Inverse tangent, in radians. Source: Array API ..."""
    def atanh(self) -> Tensor:
        """Inverse hyperbolic tangent. Source: Array API standard 2024.12."""
    def atanh_(self) -> Self:
        """`atanh`, written in place. Inverse hyperbolic tangent. Source: Array API ..."""
    def avg_pool1d(
        self,
        kernel_size: _Int | Sequence[_Int],
        stride: _Int | Sequence[_Int] | None=None,
        padding: _Int | Sequence[_Int]=0,
        ceil_mode: _Bool=False,
        count_include_pad: _Bool=True,
    ) -> Tensor:
        """The mean of each window of input (batch, channels, length), or without batch; ..."""
    def avg_pool2d(
        self,
        kernel_size: _Int | Sequence[_Int],
        stride: _Int | Sequence[_Int] | None=None,
        padding: _Int | Sequence[_Int]=0,
        ceil_mode: _Bool=False,
        count_include_pad: _Bool=True,
        divisor_override: _Int | None=None,
    ) -> Tensor:
        """The mean of each window of input (batch, channels, height, width), or without ..."""
    def avg_pool3d(
        self,
        kernel_size: _Int | Sequence[_Int],
        stride: _Int | Sequence[_Int] | None=None,
        padding: _Int | Sequence[_Int]=0,
        ceil_mode: _Bool=False,
        count_include_pad: _Bool=True,
        divisor_override: _Int | None=None,
    ) -> Tensor:
        """The mean of each window of input (batch, channels, depth, height, width), or ..."""
    def backward(
        self,
        gradient: Tensor | None=None,
        retain_graph: _Bool=False,
        create_graph: _Bool=False,
        inputs: Tensor | Sequence[Tensor] | None=None,
        plan: _Bool=False,
    ) -> None:
        """Adds the gradient of this tensor to the grad of every leaf it was computed from, ..."""
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: _Float=1, alpha: _Float=1) -> Tensor:
        """beta * x + alpha * bmm(batch1, batch2); x broadcasts, and does not count where ..."""
    def batch_norm(
        self,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        weight: Tensor | None=None,
        bias: Tensor | None=None,
        training: _Bool=False,
        momentum: _Operand=0.1,
        eps: _Float=1e-05,
    ) -> Tensor:
        """Each channel of (batch, channels, ...) with mean 0 and variance 1 over the ..."""
    def bernoulli(
        self,
        size: _Int | Sequence[_Int] | None=None,
        dtype: _DTypeLike | None=None,
        generator: Generator | None=None,
        device: str | None=None,
        *,
        shape: _Int | Sequence[_Int] | None=...,
    ) -> Tensor:
        """1 with probability p, else 0. Where p is a tensor, shape and type are its own ..."""
    def bernoulli_(self, p: _Operand=0.5, *, generator: Generator | None=None) -> Self:
        """Overwritten with 1 with probability p, else 0; p is a number or a tensor that ..."""
    def bfloat16(self) -> Tensor:
        """As bfloat16; itself where it is one."""
    def bilinear(self, input2: Tensor, weight: Tensor, bias: Tensor | None=None) -> Tensor:
        """input1 @ weight[k] @ input2 + bias[k] for each k: inputs (..., in1) and (..., ..."""
    def binary_cross_entropy(
        self,
        target: Tensor,
        weight: Tensor | None=None,
        reduction: str='mean',
    ) -> Tensor:
        """Negative log-likelihood of targets from 0 to 1 under probabilities; NaN stays. ..."""
    def binary_cross_entropy_with_logits(
        self,
        target: Tensor,
        weight: Tensor | None=None,
        reduction: str='mean',
        pos_weight: Tensor | None=None,
    ) -> Tensor:
        """binary_cross_entropy of sigmoid(input), without overflow; pos_weight multiplies ..."""
    def bincount(self, weights: Tensor | None=None, minlength: _Int=0) -> Tensor:
        """How many elements of x (n,) are 0, 1, ... up to the largest (int64), or the sums ..."""
    def binomial(self, prob: Tensor, generator: Generator | None=None) -> Tensor:
        """How many of count trials succeed, each with probability prob; exact up to 2^53. ..."""
    @overload
    def bitwise_and(self, b: _Operand) -> Tensor:
        """Bits set in both. Source: Array API standard 2024.12."""
    @overload
    def bitwise_and(self, other: _Operand) -> Tensor: ...
    @overload
    def bitwise_and_(self, b: _Operand) -> Self:
        """`bitwise_and`, written in place. Bits set in both. Source: Array API standard ..."""
    @overload
    def bitwise_and_(self, other: _Operand) -> Self: ...
    def bitwise_invert(self) -> Tensor:
        """Each bit inverted, for integers and bool. Shapes: x of any shape; the result has ..."""
    def bitwise_invert_(self) -> Self:
        """`bitwise_invert`, written in place. Each bit inverted, for integers and bool. ..."""
    @overload
    def bitwise_left_shift(self, b: _Operand) -> Tensor:
        """a with its bits moved up by b places; none are left from the type's width on. ..."""
    @overload
    def bitwise_left_shift(self, other: _Operand) -> Tensor: ...
    @overload
    def bitwise_left_shift_(self, b: _Operand) -> Self:
        """`bitwise_left_shift`, written in place. a with its bits moved up by b places; ..."""
    @overload
    def bitwise_left_shift_(self, other: _Operand) -> Self: ...
    def bitwise_not(self) -> Tensor:
        """Each bit inverted, for integers and bool. Shapes: x of any shape; the result has ..."""
    def bitwise_not_(self) -> Self:
        """`bitwise_invert`, written in place. Each bit inverted, for integers and bool. ..."""
    @overload
    def bitwise_or(self, b: _Operand) -> Tensor:
        """Bits set in either. Source: Array API standard 2024.12."""
    @overload
    def bitwise_or(self, other: _Operand) -> Tensor: ...
    @overload
    def bitwise_or_(self, b: _Operand) -> Self:
        """`bitwise_or`, written in place. Bits set in either. Source: Array API standard ..."""
    @overload
    def bitwise_or_(self, other: _Operand) -> Self: ...
    @overload
    def bitwise_right_shift(self, b: _Operand) -> Tensor:
        """a with its bits moved down by b places; the sign stays. Source: Array API ..."""
    @overload
    def bitwise_right_shift(self, other: _Operand) -> Tensor: ...
    @overload
    def bitwise_right_shift_(self, b: _Operand) -> Self:
        """`bitwise_right_shift`, written in place. a with its bits moved down by b places; ..."""
    @overload
    def bitwise_right_shift_(self, other: _Operand) -> Self: ...
    @overload
    def bitwise_xor(self, b: _Operand) -> Tensor:
        """Bits set in exactly one. Source: Array API standard 2024.12."""
    @overload
    def bitwise_xor(self, other: _Operand) -> Tensor: ...
    @overload
    def bitwise_xor_(self, b: _Operand) -> Self:
        """`bitwise_xor`, written in place. Bits set in exactly one. Source: Array API ..."""
    @overload
    def bitwise_xor_(self, other: _Operand) -> Self: ...
    @overload
    def bmm(self, x2: Tensor, /) -> Tensor:
        """Products of as many pairs of matrices: (b, n, k) and (b, k, m) to (b, n, m)."""
    @overload
    def bmm(self, mat2: Tensor) -> Tensor: ...
    @overload
    def bmm(self, other: Tensor) -> Tensor: ...
    def bool(self) -> Tensor:
        """As bool; itself where it is one."""
    @overload
    def broadcast_to(self, shape: _Int | Sequence[_Int]) -> Tensor:
        """Axes of extent 1 repeated, as a view. Shapes: x that broadcasts to the shape ..."""
    @overload
    def broadcast_to(self, *shape: _Int) -> Tensor: ...
    @overload
    def broadcast_to(self, size: _Int | Sequence[_Int]) -> Tensor: ...
    def bucketize(
        self,
        boundaries: Tensor,
        *,
        right: _Bool=False,
        out_int32: _Bool=False,
    ) -> Tensor:
        """How many of the sorted boundaries (n,) lie below each element, or with ..."""
    def byte(self) -> Tensor:
        """As uint8; itself where it is one."""
    def cauchy_(
        self,
        median: _Float=0.0,
        sigma: _Float=1.0,
        *,
        generator: Generator | None=None,
    ) -> Self:
        """Overwritten with numbers of Cauchy's distribution."""
    @overload
    def cdist(self, x2: Tensor, p: _Float=2.0) -> Tensor:
        """Distances of all rows of x1 from all of x2: (..., n, k) and (..., m, k) to (..., ..."""
    @overload
    def cdist(self, other: Tensor, p: _Float=2.0) -> Tensor: ...
    def ceil(self) -> Tensor:
        """Smallest whole number not below x. Source: Array API standard 2024.12."""
    def ceil_(self) -> Self:
        """`ceil`, written in place. Smallest whole number not below x. Source: Array API ..."""
    def celu(self, alpha: _Number=1.0, inplace: _Bool=False) -> Tensor:
        """x where positive, else alpha * (exp(x / alpha) - 1). Raises ValueError for an ..."""
    def celu_(self, alpha: _Number=1.0) -> Self:
        """`celu`, written in place. x where positive, else alpha * (exp(x / alpha) - 1). ..."""
    def channel_shuffle(self, groups: _Int) -> Tensor:
        """Images (batch, channels, ...) with the first channel of each group first, then ..."""
    def char(self) -> Tensor:
        """As int8; itself where it is one."""
    def cholesky_inverse(self, /, upper: _Bool=False) -> Tensor:
        """The inverse of the matrix of which `cholesky` made x."""
    def cholesky_solve(self, x: Tensor, /, upper: _Bool=False) -> Tensor:
        """The solution y of a @ y = b, where x is what `cholesky` made of a."""
    def chunk(
        self,
        chunks: _Int,
        axis: _Int=0,
        *,
        dim: _Int=...,
        dims: _Int=...,
    ) -> tuple[Tensor, ...]:
        """At most so many parts along an axis, as views, of one extent but for the last. ..."""
    def clamp(
        self,
        min: _Operand | None=None,
        max: _Operand | None=None,
        *,
        a_min: _Operand | None=...,
        a_max: _Operand | None=...,
    ) -> Tensor:
        """x limited to the range from min to max. Source: Array API standard 2024.12."""
    def clamp_(
        self,
        min: _Operand | None=None,
        max: _Operand | None=None,
        *,
        a_min: _Operand | None=...,
        a_max: _Operand | None=...,
    ) -> Self:
        """`clip`, written in place. x limited to the range from min to max. Source: Array ..."""
    @overload
    def clamp_max(self, max: _Operand) -> Tensor:
        """clip(x, max=max): the gradient at the bound is the whole one. Shapes: x and max ..."""
    @overload
    def clamp_max(self, a_max: _Operand) -> Tensor: ...
    @overload
    def clamp_max_(self, max: _Operand) -> Self:
        """`clamp_max`, written in place. clip(x, max=max): the gradient at the bound is ..."""
    @overload
    def clamp_max_(self, a_max: _Operand) -> Self: ...
    @overload
    def clamp_min(self, min: _Operand) -> Tensor:
        """clip(x, min): the gradient at the bound is the whole one. Shapes: x and min ..."""
    @overload
    def clamp_min(self, a_min: _Operand) -> Tensor: ...
    @overload
    def clamp_min_(self, min: _Operand) -> Self:
        """`clamp_min`, written in place. clip(x, min): the gradient at the bound is the ..."""
    @overload
    def clamp_min_(self, a_min: _Operand) -> Self: ...
    def clip(
        self,
        min: _Operand | None=None,
        max: _Operand | None=None,
        *,
        a_min: _Operand | None=...,
        a_max: _Operand | None=...,
    ) -> Tensor:
        """x limited to the range from min to max. Source: Array API standard 2024.12."""
    def clip_(
        self,
        min: _Operand | None=None,
        max: _Operand | None=None,
        *,
        a_min: _Operand | None=...,
        a_max: _Operand | None=...,
    ) -> Self:
        """`clip`, written in place. x limited to the range from min to max. Source: Array ..."""
    def clone(self) -> Tensor:
        """The same values in fresh row-major memory. Shapes: any; the result has it. ..."""
    def combinations(self, r: _Int=2, with_replacement: _Bool=False) -> Tensor:
        """All choices of r elements of x (n,), each in the order of x, as rows (choices, ..."""
    def complex(self, imag: Tensor) -> Tensor:
        """Complex numbers of the given parts, two tensors of float32 or float64 that ..."""
    def conj(self) -> Tensor:
        """The complex conjugate; a real tensor itself. Shapes: x of any shape; the result ..."""
    def contiguous(self) -> Tensor:
        """Itself where row-major, else a copy. Raises TypeError for arguments that the ..."""
    def conv1d(
        self,
        weight: Tensor,
        bias: Tensor | None=None,
        stride: _Int | Sequence[_Int]=1,
        padding: _Int | Sequence[_Int] | str=0,
        dilation: _Int | Sequence[_Int]=1,
        groups: _Int=1,
    ) -> Tensor:
        """Cross-correlation of input (batch, in, length) or (in, length) with weight (out, ..."""
    def conv2d(
        self,
        weight: Tensor,
        bias: Tensor | None=None,
        stride: _Int | Sequence[_Int]=1,
        padding: _Int | Sequence[_Int] | str=0,
        dilation: _Int | Sequence[_Int]=1,
        groups: _Int=1,
    ) -> Tensor:
        """Cross-correlation of input (batch, in, height, width) or (in, height, width) ..."""
    def conv3d(
        self,
        weight: Tensor,
        bias: Tensor | None=None,
        stride: _Int | Sequence[_Int]=1,
        padding: _Int | Sequence[_Int] | str=0,
        dilation: _Int | Sequence[_Int]=1,
        groups: _Int=1,
    ) -> Tensor:
        """Cross-correlation of input (batch, in, depth, height, width), or without batch, ..."""
    def conv_transpose1d(
        self,
        weight: Tensor,
        bias: Tensor | None=None,
        stride: _Int | Sequence[_Int]=1,
        padding: _Int | Sequence[_Int]=0,
        output_padding: _Int | Sequence[_Int]=0,
        groups: _Int=1,
        dilation: _Int | Sequence[_Int]=1,
    ) -> Tensor:
        """The gradient of conv1d's input as an op: input (batch, in, length) or (in, ..."""
    def conv_transpose2d(
        self,
        weight: Tensor,
        bias: Tensor | None=None,
        stride: _Int | Sequence[_Int]=1,
        padding: _Int | Sequence[_Int]=0,
        output_padding: _Int | Sequence[_Int]=0,
        groups: _Int=1,
        dilation: _Int | Sequence[_Int]=1,
    ) -> Tensor:
        """The gradient of conv2d's input as an op: input (batch, in, height, width), or ..."""
    def conv_transpose3d(
        self,
        weight: Tensor,
        bias: Tensor | None=None,
        stride: _Int | Sequence[_Int]=1,
        padding: _Int | Sequence[_Int]=0,
        output_padding: _Int | Sequence[_Int]=0,
        groups: _Int=1,
        dilation: _Int | Sequence[_Int]=1,
    ) -> Tensor:
        """The gradient of conv3d's input as an op: input (batch, in, depth, height, ..."""
    def copy(self) -> Tensor:
        """The same values in fresh row-major memory. Shapes: any; the result has it. ..."""
    def copy_(self, value: _Operand) -> Self:
        """Overwritten with another tensor's values, broadcast, converted and from any device."""
    @overload
    def copysign(self, b: _Operand) -> Tensor:
        """Magnitude of a with the sign of b. Source: Array API standard 2024.12."""
    @overload
    def copysign(self, other: _Operand) -> Tensor: ...
    @overload
    def copysign_(self, b: _Operand) -> Self:
        """`copysign`, written in place. Magnitude of a with the sign of b. Source: Array ..."""
    @overload
    def copysign_(self, other: _Operand) -> Self: ...
    def corrcoef(self) -> Tensor:
        """Correlations of the rows of a matrix, of which each column is one observation ..."""
    def cos(self) -> Tensor:
        """Cosine; x in radians. Source: Array API standard 2024.12."""
    def cos_(self) -> Self:
        """`cos`, written in place. Cosine; x in radians. Source: Array API standard 2024.12."""
    def cosh(self) -> Tensor:
        """Hyperbolic cosine. Source: Array API standard 2024.12."""
    def cosh_(self) -> Self:
        """`cosh`, written in place. Hyperbolic cosine. Source: Array API standard 2024.12."""
    def cosine_embedding_loss(
        self,
        input2: Tensor,
        target: Tensor,
        margin: _Float=0.0,
        reduction: str='mean',
    ) -> Tensor:
        """1 - cosine of pairs whose target is 1, and the cosine above the margin where it ..."""
    @overload
    def cosine_similarity(
        self,
        x2: Tensor,
        axis: _Int=1,
        eps: _Float=1e-08,
        *,
        dim: _Int=...,
        dims: _Int=...,
    ) -> Tensor:
        """The cosine of the angle between vectors along an axis of what x1 and x2 ..."""
    @overload
    def cosine_similarity(
        self,
        other: Tensor,
        axis: _Int=1,
        eps: _Float=1e-08,
        *,
        dim: _Int=...,
        dims: _Int=...,
    ) -> Tensor: ...
    def count_nonzero(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """How many elements are not zero (int64), over all or some axes; NaN is not. ..."""
    def cov(
        self,
        *,
        correction: _Int=1,
        fweights: Tensor | None=None,
        aweights: Tensor | None=None,
        ddof: _Int=...,
    ) -> Tensor:
        """Covariances of the rows of a matrix, of which each column is one observation (n, n)."""
    def cpu(self, non_blocking: _Bool=False) -> Tensor:
        """In the CPU's memory; itself where it is there. With non_blocking=True in pinned ..."""
    @overload
    def cross(self, x2: Tensor, *, axis: _Int=-1, dim: _Int=..., dims: _Int=...) -> Tensor:
        """Cross product of vectors of three numbers along an axis; other axes broadcast. ..."""
    @overload
    def cross(self, other: Tensor, *, axis: _Int=-1, dim: _Int=..., dims: _Int=...) -> Tensor: ...
    @overload
    def cross_entropy(
        self,
        targets: Tensor,
        weight: Tensor | None=None,
        ignore_index: _Int=-100,
        reduction: str='mean',
        label_smoothing: _Float=0.0,
    ) -> Tensor:
        """Negative log-likelihood of integer targets (n, d, ...) under logits (n, classes, ..."""
    @overload
    def cross_entropy(
        self,
        target: Tensor,
        weight: Tensor | None=None,
        ignore_index: _Int=-100,
        reduction: str='mean',
        label_smoothing: _Float=0.0,
    ) -> Tensor: ...
    @overload
    def ctc_loss(
        self,
        targets: Tensor,
        input_lengths: Tensor,
        target_lengths: Tensor,
        blank: _Int=0,
        reduction: str='mean',
        zero_infinity: _Bool=False,
    ) -> Tensor:
        """-log of the probability of sequences of labels under log_probs (steps, batch, ..."""
    @overload
    def ctc_loss(
        self,
        target: Tensor,
        input_lengths: Tensor,
        target_lengths: Tensor,
        blank: _Int=0,
        reduction: str='mean',
        zero_infinity: _Bool=False,
    ) -> Tensor: ...
    def cuda(self, device: str | None=None, non_blocking: _Bool=False) -> Tensor:
        """On a GPU, the first one unless device says another; itself where it is there."""
    @overload
    def cummax(self, axis: _Int) -> ValuesAndIndices:
        """The largest of all elements up to each along an axis, and where it is (int64): ..."""
    @overload
    def cummax(self, dim: _Int) -> ValuesAndIndices: ...
    @overload
    def cummax(self, dims: _Int) -> ValuesAndIndices: ...
    @overload
    def cummin(self, axis: _Int) -> ValuesAndIndices:
        """The smallest of all elements up to each along an axis, and where it is (int64): ..."""
    @overload
    def cummin(self, dim: _Int) -> ValuesAndIndices: ...
    @overload
    def cummin(self, dims: _Int) -> ValuesAndIndices: ...
    def cumprod(
        self,
        axis: _Int | None=None,
        dtype: _DTypeLike | None=None,
        include_initial: _Bool=False,
        *,
        dim: _Int | None=...,
        dims: _Int | None=...,
    ) -> Tensor:
        """Products of all elements up to each along an axis; include_initial puts a 1 ..."""
    def cumprod_(
        self,
        axis: _Int | None=None,
        dtype: _DTypeLike | None=None,
        include_initial: _Bool=False,
        *,
        dim: _Int | None=...,
        dims: _Int | None=...,
    ) -> Self:
        """`cumulative_prod`, written in place. Products of all elements up to each along ..."""
    def cumsum(
        self,
        axis: _Int | None=None,
        dtype: _DTypeLike | None=None,
        include_initial: _Bool=False,
        *,
        dim: _Int | None=...,
        dims: _Int | None=...,
    ) -> Tensor:
        """Sums of all elements up to each along an axis; include_initial puts a 0 before ..."""
    def cumsum_(
        self,
        axis: _Int | None=None,
        dtype: _DTypeLike | None=None,
        include_initial: _Bool=False,
        *,
        dim: _Int | None=...,
        dims: _Int | None=...,
    ) -> Self:
        """`cumulative_sum`, written in place. Sums of all elements up to each along an ..."""
    def cumulative_prod(
        self,
        axis: _Int | None=None,
        dtype: _DTypeLike | None=None,
        include_initial: _Bool=False,
        *,
        dim: _Int | None=...,
        dims: _Int | None=...,
    ) -> Tensor:
        """Products of all elements up to each along an axis; include_initial puts a 1 ..."""
    def cumulative_prod_(
        self,
        axis: _Int | None=None,
        dtype: _DTypeLike | None=None,
        include_initial: _Bool=False,
        *,
        dim: _Int | None=...,
        dims: _Int | None=...,
    ) -> Self:
        """`cumulative_prod`, written in place. Products of all elements up to each along ..."""
    def cumulative_sum(
        self,
        axis: _Int | None=None,
        dtype: _DTypeLike | None=None,
        include_initial: _Bool=False,
        *,
        dim: _Int | None=...,
        dims: _Int | None=...,
    ) -> Tensor:
        """Sums of all elements up to each along an axis; include_initial puts a 0 before ..."""
    def cumulative_sum_(
        self,
        axis: _Int | None=None,
        dtype: _DTypeLike | None=None,
        include_initial: _Bool=False,
        *,
        dim: _Int | None=...,
        dims: _Int | None=...,
    ) -> Self:
        """`cumulative_sum`, written in place. Sums of all elements up to each along an ..."""
    def cumulative_trapezoid(
        self,
        x: Tensor | None=None,
        *,
        dx: _Float | None=None,
        axis: _Int=-1,
        dim: _Int=...,
        dims: _Int=...,
    ) -> Tensor:
        """Integrals from the first sample to each other one along an axis, as `trapezoid`."""
    @property
    def data(self) -> Tensor:
        """The same memory outside the graph, as detach() gives it; setting it makes a leaf ..."""
    @data.setter
    def data(self, value: Tensor, /) -> None: ...
    @property
    def data_ptr(self) -> _Int:
        """Address of the first element."""
    def deg2rad(self) -> Tensor:
        """Degrees as radians. Shapes: x of any shape; the result has it. Types: floating; ..."""
    def deg2rad_(self) -> Self:
        """`deg2rad`, written in place. Degrees as radians. Shapes: x of any shape; the ..."""
    def det(self, /) -> Tensor:
        """Determinants of square matrices. Of singular ones the gradient has no gradient."""
    def detach(self) -> Tensor:
        """The same memory outside the graph. Shapes: any; the result has it. Types: all. ..."""
    @property
    def device(self) -> _Device:
        """Name of the device that the memory belongs to, with its `type` and `index`."""
    def diag(self, k: _Int=0, *, diagonal: _Int=...) -> Tensor:
        """A copy of the k-th diagonal of a matrix, or zeros with a vector on that ..."""
    def diag_embed(
        self,
        offset: _Int=0,
        axis1: _Int=-2,
        axis2: _Int=-1,
        *,
        dim1: _Int=...,
        dim2: _Int=...,
    ) -> Tensor:
        """Zeros with the last axis of x on a diagonal of the plane of two axes: its ..."""
    def diagflat(self, offset: _Int=0) -> Tensor:
        """A matrix of zeros with all elements of x, in row-major order, on a diagonal. ..."""
    def diagonal(
        self,
        offset: _Int=0,
        axis1: _Int=0,
        axis2: _Int=1,
        *,
        dim1: _Int=...,
        dim2: _Int=...,
    ) -> Tensor:
        """The elements whose index along axis2 is `offset` above that along axis1, along a ..."""
    def diagonal_scatter(self, src: Tensor, offset: _Int=0, dim1: _Int=0, dim2: _Int=1) -> Tensor:
        """A copy of x whose `diagonal` is src."""
    def diff(
        self,
        n: _Int=1,
        axis: _Int=-1,
        prepend: Tensor | None=None,
        append: Tensor | None=None,
        *,
        dim: _Int=...,
        dims: _Int=...,
    ) -> Tensor:
        """Differences of neighbours along an axis, n times, of bool whether they differ; ..."""
    def digamma(self) -> Tensor:
        """Derivative of lgamma; NaN at whole numbers below 0. Near its zeros below 0 ..."""
    def digamma_(self) -> Self:
        """`digamma`, written in place. Derivative of lgamma; NaN at whole numbers below 0. ..."""
    def dim(self) -> _Int:
        """Number of dimensions, as `ndim`."""
    @overload
    def dist(self, x2: Tensor, p: _Float=2.0) -> Tensor:
        """The `p`-norm of all elements of x1 - x2, which broadcast."""
    @overload
    def dist(self, other: Tensor, p: _Float=2.0) -> Tensor: ...
    def div(self, other: _Operand, *, rounding_mode: str | None=None) -> Tensor:
        """The operator's result; with rounding_mode 'floor' or 'trunc' the whole number ..."""
    def div_(self, other: _Operand, *, rounding_mode: str | None=None) -> Self:
        """The operator's result; with rounding_mode 'floor' or 'trunc' the whole number ..."""
    def divide(self, other: _Operand, *, rounding_mode: str | None=None) -> Tensor:
        """The operator's result; with rounding_mode 'floor' or 'trunc' the whole number ..."""
    def divide_(self, other: _Operand, *, rounding_mode: str | None=None) -> Self:
        """The operator's result; with rounding_mode 'floor' or 'trunc' the whole number ..."""
    def dot(self, other: Tensor) -> Tensor:
        """Matrix product."""
    def double(self) -> Tensor:
        """As float64; itself where it is one."""
    def dropout(
        self,
        p: _Float=0.5,
        training: _Bool=True,
        inplace: _Bool=False,
        generator: Generator | None=None,
    ) -> Tensor:
        """Zeroes elements with probability p and scales the rest by 1 / (1 - p), while ..."""
    def dropout1d(
        self,
        p: _Float=0.5,
        training: _Bool=True,
        inplace: _Bool=False,
        generator: Generator | None=None,
    ) -> Tensor:
        """Zeroes whole channels of (batch, channels, length), or without a batch, with ..."""
    def dropout2d(
        self,
        p: _Float=0.5,
        training: _Bool=True,
        inplace: _Bool=False,
        generator: Generator | None=None,
    ) -> Tensor:
        """Zeroes whole channels of (batch, channels, height, width), or of (batch, ..."""
    def dropout3d(
        self,
        p: _Float=0.5,
        training: _Bool=True,
        inplace: _Bool=False,
        generator: Generator | None=None,
    ) -> Tensor:
        """Zeroes whole channels of (batch, channels, depth, height, width), or without a ..."""
    @overload
    def dsplit(self, indices_or_sections: _Int | Sequence[_Int]) -> tuple[Tensor, ...]:
        """So many parts of one extent, as views, or the parts between indices: along axis ..."""
    @overload
    def dsplit(self, indices: _Int | Sequence[_Int]) -> tuple[Tensor, ...]: ...
    @overload
    def dsplit(self, sections: _Int | Sequence[_Int]) -> tuple[Tensor, ...]: ...
    @property
    def dtype(self) -> _DType:
        """Element type."""
    def element_size(self) -> _Int:
        """Bytes an element."""
    def elu(self, alpha: _Number=1.0, inplace: _Bool=False) -> Tensor:
        """x where positive, else alpha * (exp(x) - 1). Source: PyTorch's ..."""
    def elu_(self, alpha: _Number=1.0) -> Self:
        """`elu`, written in place. x where positive, else alpha * (exp(x) - 1). Source: ..."""
    def embedding(self, weight: Tensor, padding_idx: _Int | None=None) -> Tensor:
        """Rows of weight (rows, features) at the integers of input, of any shape: ..."""
    def embedding_bag(
        self,
        weight: Tensor,
        per_sample_weights: Tensor | None=None,
        mode: str='mean',
        padding_idx: _Int | None=None,
    ) -> Tensor:
        """Rows of weight (rows, features) at the indices of each bag, a row of input ..."""
    def empty_like(
        self,
        dtype: _DTypeLike | None=None,
        device: str | None=None,
        requires_grad: _Bool=False,
    ) -> Tensor:
        """Like empty, shape and dtype from x. Shapes: x of any shape; the result has it. ..."""
    @overload
    def eq(self, b: _Operand) -> Tensor:
        """Whether a equals b. Source: Array API standard 2024.12."""
    @overload
    def eq(self, other: _Operand) -> Tensor: ...
    @overload
    def eq_(self, b: _Operand) -> Self:
        """`equal`, written in place. Whether a equals b. Source: Array API standard 2024.12."""
    @overload
    def eq_(self, other: _Operand) -> Self: ...
    @overload
    def equal_(self, b: _Operand) -> Self:
        """`equal`, written in place. Whether a equals b. Source: Array API standard 2024.12."""
    @overload
    def equal_(self, other: _Operand) -> Self: ...
    def erf(self) -> Tensor:
        """Error function. Source: PyTorch's torch.erf."""
    def erf_(self) -> Self:
        """`erf`, written in place. Error function. Source: PyTorch's torch.erf."""
    def erfc(self) -> Tensor:
        """1 - erf(x), exact where that is near 0. Source: PyTorch's torch.erfc."""
    def erfc_(self) -> Self:
        """`erfc`, written in place. 1 - erf(x), exact where that is near 0. Source: ..."""
    def erfinv(self) -> Tensor:
        """Inverse of the error function; infinite at -1 and 1, NaN beyond. Source: ..."""
    def erfinv_(self) -> Self:
        """`erfinv`, written in place. Inverse of the error function; infinite at -1 and 1, ..."""
    def exp(self) -> Tensor:
        """e to the power of each element. Source: Array API standard 2024.12."""
    def exp2(self) -> Tensor:
        """2 to the power of each element. Source: PyTorch's torch.exp2."""
    def exp2_(self) -> Self:
        """`exp2`, written in place. 2 to the power of each element. Source: PyTorch's ..."""
    def exp_(self) -> Self:
        """`exp`, written in place. e to the power of each element. Source: Array API ..."""
    @overload
    def expand(self, shape: _Int | Sequence[_Int]) -> Tensor:
        """Axes of extent 1 repeated, as a view; -1 keeps an axis as it is."""
    @overload
    def expand(self, *shape: _Int) -> Tensor: ...
    @overload
    def expand(self, size: _Int | Sequence[_Int]) -> Tensor: ...
    def expand_as(self, other: Tensor) -> Tensor:
        """Axes of extent 1 repeated to the shape of another tensor, as a view."""
    def expand_dims(self, axis: _Int=0, *, dim: _Int=..., dims: _Int=...) -> Tensor:
        """A new axis of extent 1. Shapes: x of any shape; the result has one axis more, of ..."""
    def expit(self) -> Tensor:
        """1 / (1 + exp(-x)). Source: PyTorch's torch.nn.functional.sigmoid."""
    def expit_(self) -> Self:
        """`sigmoid`, written in place. 1 / (1 + exp(-x)). Source: PyTorch's ..."""
    def expm1(self) -> Tensor:
        """exp(x) - 1, exact near 0. Source: Array API standard 2024.12."""
    def expm1_(self) -> Self:
        """`expm1`, written in place. exp(x) - 1, exact near 0. Source: Array API standard ..."""
    def exponential_(self, lambd: _Float=1.0, *, generator: Generator | None=None) -> Self:
        """Overwritten with exponentially distributed numbers of mean 1 / lambd."""
    def feature_alpha_dropout(
        self,
        p: _Float=0.5,
        training: _Bool=False,
        inplace: _Bool=False,
        generator: Generator | None=None,
    ) -> Tensor:
        """alpha_dropout of whole channels of (batch, channels, ...). Shapes: input (batch, ..."""
    def fill_(self, value: _Number) -> Self:
        """Every element set to one number."""
    def fill_diagonal_(self, fill_value: _Float, wrap: _Bool=False) -> Tensor:
        """Writes a number to the elements whose indices are all the same, in place, and ..."""
    def fix(self) -> Tensor:
        """Whole part, towards zero. Source: Array API standard 2024.12."""
    def fix_(self) -> Self:
        """`trunc`, written in place. Whole part, towards zero. Source: Array API standard ..."""
    def flatten(
        self,
        start_axis: _Int=0,
        end_axis: _Int=-1,
        *,
        start_dim: _Int=...,
        end_dim: _Int=...,
    ) -> Tensor:
        """Axes merged into one. Shapes: x of any shape; the result has one axis in place ..."""
    @overload
    def flip(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
    ) -> Tensor:
        """Order reversed along axes (all by default), as a view. Shapes: x of any shape; ..."""
    @overload
    def flip(self, *axis: _Int) -> Tensor: ...
    def fliplr(self) -> Tensor:
        """The order along axis 1 reversed, as a view. Raises ValueError below 2 ..."""
    def flipud(self) -> Tensor:
        """The order along axis 0 reversed, as a view. Raises ValueError for 0 dimensions. ..."""
    def float(self) -> Tensor:
        """As float32; itself where it is one."""
    @overload
    def float_power(self, b: _Operand) -> Tensor:
        """a to the power of b in float64. Shapes: a and b broadcast; the result has their ..."""
    @overload
    def float_power(self, exponent: _Operand) -> Tensor: ...
    @overload
    def float_power(self, other: _Operand) -> Tensor: ...
    @overload
    def float_power_(self, b: _Operand) -> Self:
        """`float_power`, written in place. a to the power of b in float64. Shapes: a and b ..."""
    @overload
    def float_power_(self, exponent: _Operand) -> Self: ...
    @overload
    def float_power_(self, other: _Operand) -> Self: ...
    def floor(self) -> Tensor:
        """Largest whole number not above x. Source: Array API standard 2024.12."""
    def floor_(self) -> Self:
        """`floor`, written in place. Largest whole number not above x. Source: Array API ..."""
    @overload
    def floor_divide(self, b: _Operand) -> Tensor:
        """Largest whole number not above a / b; 0 for whole numbers over 0. Source: Array ..."""
    @overload
    def floor_divide(self, other: _Operand) -> Tensor: ...
    @overload
    def floor_divide_(self, b: _Operand) -> Self:
        """`floor_divide`, written in place. Largest whole number not above a / b; 0 for ..."""
    @overload
    def floor_divide_(self, other: _Operand) -> Self: ...
    @overload
    def fmax(self, x2: Tensor) -> Tensor:
        """Larger of two; of a NaN and a number the number. Of equal ones x1 has the gradient."""
    @overload
    def fmax(self, other: Tensor) -> Tensor: ...
    @overload
    def fmin(self, x2: Tensor) -> Tensor:
        """Smaller of two; of a NaN and a number the number. Of equal ones x1 has the gradient."""
    @overload
    def fmin(self, other: Tensor) -> Tensor: ...
    @overload
    def fmod(self, b: _Operand) -> Tensor:
        """a - b * trunc(a / b): the sign of a; exact. Source: PyTorch's torch.fmod."""
    @overload
    def fmod(self, other: _Operand) -> Tensor: ...
    @overload
    def fmod_(self, b: _Operand) -> Self:
        """`fmod`, written in place. a - b * trunc(a / b): the sign of a; exact. Source: ..."""
    @overload
    def fmod_(self, other: _Operand) -> Self: ...
    def fold(
        self,
        output_size: _Int | Sequence[_Int],
        kernel_size: _Int | Sequence[_Int],
        dilation: _Int | Sequence[_Int]=1,
        padding: _Int | Sequence[_Int]=0,
        stride: _Int | Sequence[_Int]=1,
    ) -> Tensor:
        """Images (batch, channels, *output_size) as the sum of windows that are columns, ..."""
    def frac(self) -> Tensor:
        """x - trunc(x), with the sign of x. Shapes: x of any shape; the result has it. ..."""
    def frac_(self) -> Self:
        """`frac`, written in place. x - trunc(x), with the sign of x. Shapes: x of any ..."""
    def frexp(self) -> _FrexpResult:
        """x as mantissa * 2 ** exponent, exactly: 0.5 <= abs(mantissa) < 1."""
    def full_like(
        self,
        fill_value: _Number,
        dtype: _DTypeLike | None=None,
        device: str | None=None,
        requires_grad: _Bool=False,
    ) -> Tensor:
        """Like full, shape and dtype from x. Shapes: x of any shape; the result has it. ..."""
    @overload
    def gather(self, axis: _Int, index: Tensor) -> Tensor:
        """y[i, j, k] = x[i, index[i, j, k], k] for axis 1: the index has the shape of the ..."""
    @overload
    def gather(self, dim: _Int, index: Tensor) -> Tensor: ...
    @overload
    def gather(self, dims: _Int, index: Tensor) -> Tensor: ...
    def gaussian_nll_loss(
        self,
        target: Tensor,
        var: Tensor,
        full: _Bool=False,
        eps: _Float=1e-06,
        reduction: str='mean',
    ) -> Tensor:
        """Negative log-likelihood of targets under normal distributions of means and ..."""
    @overload
    def gcd(self, x2: Tensor) -> Tensor:
        """Greatest common divisor, by Euclid's algorithm; 0 of two zeros."""
    @overload
    def gcd(self, other: Tensor) -> Tensor: ...
    @overload
    def ge(self, b: _Operand) -> Tensor:
        """Whether a is at least b. Source: Array API standard 2024.12."""
    @overload
    def ge(self, other: _Operand) -> Tensor: ...
    @overload
    def ge_(self, b: _Operand) -> Self:
        """`greater_equal`, written in place. Whether a is at least b. Source: Array API ..."""
    @overload
    def ge_(self, other: _Operand) -> Self: ...
    def gelu(self, approximate: str='none') -> Tensor:
        """x times the share of a normal distribution below x (Hendrycks, Gimpel, 2016). ..."""
    def geometric_(self, p: _Float, *, generator: Generator | None=None) -> Self:
        """Overwritten with numbers of trials until one succeeds with probability p."""
    @overload
    def ger(self, x2: Tensor, /) -> Tensor:
        """Products of each element of a vector with each of another: shape (n,) and (m,) ..."""
    @overload
    def ger(self, vec2: Tensor) -> Tensor: ...
    @overload
    def ger(self, other: Tensor) -> Tensor: ...
    def get_device(self) -> _Int:
        """The number of its GPU; -1 on the CPU."""
    def glu(self, axis: _Int=-1, *, dim: _Int=..., dims: _Int=...) -> Tensor:
        """The first half along an axis times the sigmoid of the second (Dauphin et al., ..."""
    @property
    def grad(self) -> Tensor | None:
        """Gradient added up by backward, or None."""
    @grad.setter
    def grad(self, value: Tensor | None, /) -> None: ...
    @property
    def grad_fn(self) -> str | None:
        """Name of the recorded op that made it, or None."""
    @overload
    def greater(self, b: _Operand) -> Tensor:
        """Whether a is above b. Source: Array API standard 2024.12."""
    @overload
    def greater(self, other: _Operand) -> Tensor: ...
    @overload
    def greater_(self, b: _Operand) -> Self:
        """`greater`, written in place. Whether a is above b. Source: Array API standard ..."""
    @overload
    def greater_(self, other: _Operand) -> Self: ...
    @overload
    def greater_equal(self, b: _Operand) -> Tensor:
        """Whether a is at least b. Source: Array API standard 2024.12."""
    @overload
    def greater_equal(self, other: _Operand) -> Tensor: ...
    @overload
    def greater_equal_(self, b: _Operand) -> Self:
        """`greater_equal`, written in place. Whether a is at least b. Source: Array API ..."""
    @overload
    def greater_equal_(self, other: _Operand) -> Self: ...
    def grid_sample(
        self,
        grid: Tensor,
        mode: str='bilinear',
        padding_mode: str='zeros',
        align_corners: _Bool=False,
    ) -> Tensor:
        """Elements of images (batch, channels, height, width) at places grid (batch, rows, ..."""
    def group_norm(
        self,
        num_groups: _Int,
        weight: Tensor | None=None,
        bias: Tensor | None=None,
        eps: _Float=1e-05,
    ) -> Tensor:
        """Groups of the channels of each sample of (batch, channels, ...) with mean 0 and ..."""
    def gru_cell(
        self,
        h: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor | None=None,
        bias_hh: Tensor | None=None,
    ) -> Tensor:
        """One step of gru_layer: x (batch, in), h and the result (batch, hidden). Shapes: ..."""
    def gru_layer(
        self,
        h0: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor | None=None,
        bias_hh: Tensor | None=None,
        reverse: _Bool=False,
    ) -> tuple[Tensor, Tensor]:
        """All steps of x (steps, batch, in) through a GRU from h0 (batch, hidden): the ..."""
    @overload
    def gt(self, b: _Operand) -> Tensor:
        """Whether a is above b. Source: Array API standard 2024.12."""
    @overload
    def gt(self, other: _Operand) -> Tensor: ...
    @overload
    def gt_(self, b: _Operand) -> Self:
        """`greater`, written in place. Whether a is above b. Source: Array API standard ..."""
    @overload
    def gt_(self, other: _Operand) -> Self: ...
    def half(self) -> Tensor:
        """As float16; itself where it is one."""
    def hardshrink(self, lambd: _Number=0.5) -> Tensor:
        """x, and 0 where it is within lambd of 0. Source: PyTorch's ..."""
    def hardshrink_(self, lambd: _Number=0.5) -> Self:
        """`hardshrink`, written in place. x, and 0 where it is within lambd of 0. Source: ..."""
    def hardsigmoid(self, inplace: _Bool=False) -> Tensor:
        """relu6(x + 3) / 6, lines in the place of sigmoid. Source: PyTorch's ..."""
    def hardsigmoid_(self) -> Self:
        """`hardsigmoid`, written in place. relu6(x + 3) / 6, lines in the place of ..."""
    def hardswish(self, inplace: _Bool=False) -> Tensor:
        """x * relu6(x + 3) / 6, lines in the place of silu. Source: PyTorch's ..."""
    def hardswish_(self) -> Self:
        """`hardswish`, written in place. x * relu6(x + 3) / 6, lines in the place of silu. ..."""
    def hardtanh(self, min_val: _Number=-1.0, max_val: _Number=1.0, inplace: _Bool=False) -> Tensor:
        """x limited to the range from min_val to max_val. Raises ValueError for a min_val ..."""
    def hardtanh_(self, min_val: _Number=-1.0, max_val: _Number=1.0) -> Self:
        """`hardtanh`, written in place. x limited to the range from min_val to max_val. ..."""
    def heaviside(self, values: Tensor) -> Tensor:
        """0 below 0, 1 above, values at 0; NaN stays. Shapes: x and values broadcast; the ..."""
    def heaviside_(self, values: Tensor) -> Self:
        """`heaviside`, written in place. 0 below 0, 1 above, values at 0; NaN stays. ..."""
    def hinge_embedding_loss(
        self,
        target: Tensor,
        margin: _Float=1.0,
        reduction: str='mean',
    ) -> Tensor:
        """Distances as they are where the target is 1, and what they lack of the margin ..."""
    def histc(
        self,
        bins: _Int=100,
        min: _Float=0.0,
        max: _Float=0.0,
        *,
        a_min: _Float=...,
        a_max: _Float=...,
    ) -> Tensor:
        """How many elements lie in each of so many bins of equal width from min to max, in ..."""
    def histogram(
        self,
        bins: _Int | Tensor | Sequence[_Float]=10,
        *,
        range: tuple[_Float, _Float] | None=None,
        weight: Tensor | None=None,
        density: _Bool=False,
    ) -> _HistogramResult:
        """How many elements lie in each bin, in x's type, and the edges of the bins."""
    @overload
    def hsplit(self, indices_or_sections: _Int | Sequence[_Int]) -> tuple[Tensor, ...]:
        """So many parts of one extent, as views, or the parts between indices: along axis ..."""
    @overload
    def hsplit(self, indices: _Int | Sequence[_Int]) -> tuple[Tensor, ...]: ...
    @overload
    def hsplit(self, sections: _Int | Sequence[_Int]) -> tuple[Tensor, ...]: ...
    def huber_loss(self, target: Tensor, reduction: str='mean', delta: _Float=1.0) -> Tensor:
        """Differences d as d * d / 2 below delta, and delta * (|d| - delta / 2) above ..."""
    @overload
    def hypot(self, b: _Operand) -> Tensor:
        """sqrt(a * a + b * b) without overflow. Source: Array API standard 2024.12."""
    @overload
    def hypot(self, other: _Operand) -> Tensor: ...
    @overload
    def hypot_(self, b: _Operand) -> Self:
        """`hypot`, written in place. sqrt(a * a + b * b) without overflow. Source: Array ..."""
    @overload
    def hypot_(self, other: _Operand) -> Self: ...
    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind and order 0."""
    @property
    def imag(self) -> Tensor:
        """The imaginary part, a view; of real tensors zeros that cannot be written to."""
    @overload
    def index_add(self, axis: _Int, index: Tensor, source: Tensor, *, alpha: _Number=1) -> Tensor:
        """A copy of x with the parts of alpha * source added at indices along an axis, in ..."""
    @overload
    def index_add(
        self,
        dim: _Int,
        index: Tensor,
        source: Tensor,
        *,
        alpha: _Number=1,
    ) -> Tensor: ...
    @overload
    def index_add(
        self,
        dims: _Int,
        index: Tensor,
        source: Tensor,
        *,
        alpha: _Number=1,
    ) -> Tensor: ...
    @overload
    def index_add_(self, axis: _Int, index: Tensor, source: Tensor, *, alpha: _Number=1) -> Self:
        """`index_add`, written in place. A copy of x with the parts of alpha * source ..."""
    @overload
    def index_add_(self, dim: _Int, index: Tensor, source: Tensor, *, alpha: _Number=1) -> Self: ...
    @overload
    def index_add_(
        self,
        dims: _Int,
        index: Tensor,
        source: Tensor,
        *,
        alpha: _Number=1,
    ) -> Self: ...
    @overload
    def index_copy(self, axis: _Int, index: Tensor, source: Tensor) -> Tensor:
        """A copy of x with the parts of source at indices along an axis; of several for ..."""
    @overload
    def index_copy(self, dim: _Int, index: Tensor, source: Tensor) -> Tensor: ...
    @overload
    def index_copy(self, dims: _Int, index: Tensor, source: Tensor) -> Tensor: ...
    @overload
    def index_copy_(self, axis: _Int, index: Tensor, source: Tensor) -> Self:
        """`index_copy`, written in place. A copy of x with the parts of source at indices ..."""
    @overload
    def index_copy_(self, dim: _Int, index: Tensor, source: Tensor) -> Self: ...
    @overload
    def index_copy_(self, dims: _Int, index: Tensor, source: Tensor) -> Self: ...
    @overload
    def index_fill(self, axis: _Int, index: Tensor, value: _Operand) -> Tensor:
        """A copy of x with one number at indices along an axis. index is a vector, or a ..."""
    @overload
    def index_fill(self, dim: _Int, index: Tensor, value: _Operand) -> Tensor: ...
    @overload
    def index_fill(self, dims: _Int, index: Tensor, value: _Operand) -> Tensor: ...
    @overload
    def index_fill_(self, axis: _Int, index: Tensor, value: _Operand) -> Self:
        """`index_fill`, written in place. A copy of x with one number at indices along an ..."""
    @overload
    def index_fill_(self, dim: _Int, index: Tensor, value: _Operand) -> Self: ...
    @overload
    def index_fill_(self, dims: _Int, index: Tensor, value: _Operand) -> Self: ...
    def index_put(
        self,
        indices: Sequence[Tensor],
        values: Tensor | _Float,
        accumulate: _Bool=False,
    ) -> Tensor:
        """A copy `y` of x with `y[indices] = values`, or `y[indices] += values` with ..."""
    def index_put_(
        self,
        indices: Sequence[Tensor],
        values: Tensor | _Float,
        accumulate: _Bool=False,
    ) -> Tensor:
        """`index_put` in place, `x[indices] = values`, which gives x."""
    @overload
    def index_reduce(
        self,
        axis: _Int,
        index: Tensor,
        source: Tensor,
        reduce: str,
        *,
        include_self: _Bool=True,
    ) -> Tensor:
        """A copy of x with source[i] joined to x[index[i]] along an axis, as ..."""
    @overload
    def index_reduce(
        self,
        dim: _Int,
        index: Tensor,
        source: Tensor,
        reduce: str,
        *,
        include_self: _Bool=True,
    ) -> Tensor: ...
    @overload
    def index_reduce(
        self,
        dims: _Int,
        index: Tensor,
        source: Tensor,
        reduce: str,
        *,
        include_self: _Bool=True,
    ) -> Tensor: ...
    @overload
    def index_select(self, axis: _Int, index: Tensor) -> Tensor:
        """The parts of x at indices along an axis, a copy. index is a vector, or a number; ..."""
    @overload
    def index_select(self, dim: _Int, index: Tensor) -> Tensor: ...
    @overload
    def index_select(self, dims: _Int, index: Tensor) -> Tensor: ...
    @overload
    def inner(self, x2: Tensor, /) -> Tensor:
        """Sums of products over the last axis of both: (..., n) and (***, n) to (..., ***)."""
    @overload
    def inner(self, other: Tensor) -> Tensor: ...
    def instance_norm(
        self,
        running_mean: Tensor | None=None,
        running_var: Tensor | None=None,
        weight: Tensor | None=None,
        bias: Tensor | None=None,
        use_input_stats: _Bool=True,
        momentum: _Operand=0.1,
        eps: _Float=1e-05,
    ) -> Tensor:
        """Each channel of each sample of (batch, channels, ...) with mean 0 and variance ..."""
    def int(self) -> Tensor:
        """As int32; itself where it is one."""
    def inverse(self, /) -> Tensor:
        """The inverse of square matrices. Raises `LinAlgError` for a singular one."""
    def is_complex(self) -> _Bool:
        """Whether its dtype is a complex one."""
    @property
    def is_contiguous(self) -> _Bool:
        """Whether row-major without gaps."""
    @property
    def is_cpu(self) -> _Bool:
        """Whether it is on the CPU."""
    @property
    def is_cuda(self) -> _Bool:
        """Whether it is on a GPU."""
    def is_floating_point(self) -> _Bool:
        """Whether its dtype is a floating one."""
    @property
    def is_leaf(self) -> _Bool:
        """Whether no recorded op made it."""
    def is_nonzero(self) -> _Bool:
        """Whether the one element of a tensor is not 0. Raises ValueError for several or none."""
    def is_pinned(self) -> Any:
        """Whether its memory is pinned."""
    def is_signed(self) -> _Bool:
        """Whether its dtype has negative numbers."""
    @property
    def is_sparse(self) -> _Bool:
        """False: all elements are stored. As PyTorch's, which optimizers ask of gradients."""
    @overload
    def isclose(
        self,
        b: Tensor,
        rtol: _Float=1e-05,
        atol: _Float=1e-08,
        equal_nan: _Bool=False,
    ) -> Tensor:
        """Whether a and b are equal or abs(a - b) <= atol + rtol * abs(b), in float64. ..."""
    @overload
    def isclose(
        self,
        other: Tensor,
        rtol: _Float=1e-05,
        atol: _Float=1e-08,
        equal_nan: _Bool=False,
    ) -> Tensor: ...
    def isfinite(self) -> Tensor:
        """Whether neither infinite nor NaN. Source: Array API standard 2024.12."""
    def isfinite_(self) -> Self:
        """`isfinite`, written in place. Whether neither infinite nor NaN. Source: Array ..."""
    def isin(
        self,
        test_elements: _Operand,
        *,
        assume_unique: _Bool=False,
        invert: _Bool=False,
    ) -> Tensor:
        """Whether each element is among test_elements, or with invert=True is not; NaN ..."""
    def isinf(self) -> Tensor:
        """Whether infinite. Source: Array API standard 2024.12."""
    def isinf_(self) -> Self:
        """`isinf`, written in place. Whether infinite. Source: Array API standard 2024.12."""
    def isnan(self) -> Tensor:
        """Whether not a number. Source: Array API standard 2024.12."""
    def isnan_(self) -> Self:
        """`isnan`, written in place. Whether not a number. Source: Array API standard 2024.12."""
    def isneginf(self) -> Tensor:
        """Whether infinite and negative. Shapes: x of any shape; the result has it. Types: ..."""
    def isposinf(self) -> Tensor:
        """Whether infinite and positive. Shapes: x of any shape; the result has it. Types: ..."""
    def isreal(self) -> Tensor:
        """Whether the imaginary part of each element is 0."""
    def istft(
        self,
        n_fft: _Int,
        hop_length: _Int | None=None,
        win_length: _Int | None=None,
        window: Tensor | None=None,
        center: _Bool=True,
        normalized: _Bool=False,
        onesided: _Bool | None=None,
        length: _Int | None=None,
        return_complex: _Bool=False,
    ) -> Tensor:
        """The signal of which `stft` gave frames, by least squares where frames contradict ..."""
    def item(self) -> Any:
        """The only element as a number."""
    @property
    def itemsize(self) -> _Int:
        """Bytes an element."""
    def kl_div(self, target: Tensor, reduction: str='mean', log_target: _Bool=False) -> Tensor:
        """target * (log(target) - input): Kullback and Leibler's divergence of log- ..."""
    @overload
    def kron(self, x2: Tensor, /) -> Tensor:
        """Kronecker product: each element of x1 times the whole of x2, as blocks."""
    @overload
    def kron(self, other: Tensor) -> Tensor: ...
    def kthvalue(
        self,
        k: _Int,
        axis: _Int=-1,
        keepdims: _Bool=False,
        *,
        dim: _Int=...,
        dims: _Int=...,
        keepdim: _Bool=...,
    ) -> ValuesAndIndices:
        """The k-th smallest element along an axis, from 1 on, and its index (int64). Of ..."""
    def l0_norm(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        dtype: _DTypeLike | None=None,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """How many elements are not 0, over all or some axes; NaN is not. Source: ..."""
    def l1_loss(self, target: Tensor, reduction: str='mean') -> Tensor:
        """Absolute differences, averaged by default; shapes must be equal. Shapes: input ..."""
    def l1_norm(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        dtype: _DTypeLike | None=None,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Sum of absolute values over all or some axes. Source: PyTorch's ..."""
    def l2_norm(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        dtype: _DTypeLike | None=None,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Root of the sum of squares over all or some axes, which neither overflow nor ..."""
    def layer_norm(
        self,
        normalized_shape: _Int | Sequence[_Int],
        weight: Tensor | None=None,
        bias: Tensor | None=None,
        eps: _Float=1e-05,
    ) -> Tensor:
        """The last axes, of normalized_shape, with mean 0 and variance 1, then scaled by ..."""
    @overload
    def lcm(self, x2: Tensor) -> Tensor:
        """Least common multiple; 0 where one is 0. Raises TypeError for types that are not ..."""
    @overload
    def lcm(self, other: Tensor) -> Tensor: ...
    @overload
    def ldexp(self, y: Tensor | _Float) -> Tensor:
        """x times 2 to the power of y."""
    @overload
    def ldexp(self, other: Tensor | _Float) -> Tensor: ...
    @overload
    def le(self, b: _Operand) -> Tensor:
        """Whether a is at most b. Source: Array API standard 2024.12."""
    @overload
    def le(self, other: _Operand) -> Tensor: ...
    @overload
    def le_(self, b: _Operand) -> Self:
        """`less_equal`, written in place. Whether a is at most b. Source: Array API ..."""
    @overload
    def le_(self, other: _Operand) -> Self: ...
    def leaky_relu(self, negative_slope: _Operand=0.01, inplace: _Bool=False) -> Tensor:
        """x where positive, else x times negative_slope. Source: PyTorch's ..."""
    def leaky_relu_(self, negative_slope: _Operand=0.01) -> Self:
        """`leaky_relu`, written in place. x where positive, else x times negative_slope. ..."""
    def lerp(self, end: _Operand, weight: _Operand) -> Tensor:
        """a + weight * (b - a): a where the weight is 0, and end where it is 1, exactly. ..."""
    def lerp_(self, end: _Operand, weight: _Operand) -> Self:
        """`lerp`, written in place. a + weight * (b - a): a where the weight is 0, and end ..."""
    @overload
    def less(self, b: _Operand) -> Tensor:
        """Whether a is below b. Source: Array API standard 2024.12."""
    @overload
    def less(self, other: _Operand) -> Tensor: ...
    @overload
    def less_(self, b: _Operand) -> Self:
        """`less`, written in place. Whether a is below b. Source: Array API standard 2024.12."""
    @overload
    def less_(self, other: _Operand) -> Self: ...
    @overload
    def less_equal(self, b: _Operand) -> Tensor:
        """Whether a is at most b. Source: Array API standard 2024.12."""
    @overload
    def less_equal(self, other: _Operand) -> Tensor: ...
    @overload
    def less_equal_(self, b: _Operand) -> Self:
        """`less_equal`, written in place. Whether a is at most b. Source: Array API ..."""
    @overload
    def less_equal_(self, other: _Operand) -> Self: ...
    def lgamma(self) -> Tensor:
        """Logarithm of the magnitude of the gamma function. Near its zeros below 0 errors ..."""
    def lgamma_(self) -> Self:
        """`lgamma`, written in place. Logarithm of the magnitude of the gamma function. ..."""
    def linear(
        self,
        weight: Tensor,
        bias: Tensor | None=None,
        *,
        activation: str | None=None,
    ) -> Tensor:
        """x @ weight.T + bias for x (..., in), weight (out, in), bias (out,); with ..."""
    @overload
    def local_response_norm(
        self,
        size: _Int,
        alpha: _Float=0.0001,
        beta: _Float=0.75,
        k: _Float=1.0,
    ) -> Tensor:
        """input / (k + alpha * mean of the squares of size neighbouring channels) ** beta, ..."""
    @overload
    def local_response_norm(
        self,
        shape: _Int,
        alpha: _Float=0.0001,
        beta: _Float=0.75,
        k: _Float=1.0,
    ) -> Tensor: ...
    def log(self) -> Tensor:
        """Natural logarithm. Source: Array API standard 2024.12."""
    def log10(self) -> Tensor:
        """Logarithm to base 10. Source: Array API standard 2024.12."""
    def log10_(self) -> Self:
        """`log10`, written in place. Logarithm to base 10. Source: Array API standard 2024.12."""
    def log1p(self) -> Tensor:
        """log(1 + x), exact near 0. Source: Array API standard 2024.12."""
    def log1p_(self) -> Self:
        """`log1p`, written in place. log(1 + x), exact near 0. Source: Array API standard ..."""
    def log2(self) -> Tensor:
        """Logarithm to base 2. Source: Array API standard 2024.12."""
    def log2_(self) -> Self:
        """`log2`, written in place. Logarithm to base 2. Source: Array API standard 2024.12."""
    def log_(self) -> Self:
        """`log`, written in place. Natural logarithm. Source: Array API standard 2024.12."""
    def log_normal_(
        self,
        mean: _Float=1.0,
        std: _Float=2.0,
        *,
        generator: Generator | None=None,
    ) -> Self:
        """Overwritten with numbers whose logarithms are normally distributed."""
    def log_softmax(
        self,
        axis: _Int=-1,
        dtype: _DTypeLike | None=None,
        *,
        dim: _Int=...,
        dims: _Int=...,
    ) -> Tensor:
        """log(softmax(x)), computed in one pass, of x as dtype where that is given. ..."""
    @overload
    def logaddexp(self, b: _Operand) -> Tensor:
        """log(exp(a) + exp(b)), without overflow. Source: Array API standard 2024.12."""
    @overload
    def logaddexp(self, other: _Operand) -> Tensor: ...
    @overload
    def logaddexp2(self, b: Tensor) -> Tensor:
        """log2(2 ** a + 2 ** b), without overflow. Shapes: a and b broadcast; the result ..."""
    @overload
    def logaddexp2(self, other: Tensor) -> Tensor: ...
    @overload
    def logaddexp2_(self, b: Tensor) -> Self:
        """`logaddexp2`, written in place. log2(2 ** a + 2 ** b), without overflow. Shapes: ..."""
    @overload
    def logaddexp2_(self, other: Tensor) -> Self: ...
    @overload
    def logaddexp_(self, b: _Operand) -> Self:
        """`logaddexp`, written in place. log(exp(a) + exp(b)), without overflow. Source: ..."""
    @overload
    def logaddexp_(self, other: _Operand) -> Self: ...
    @overload
    def logcumsumexp(self, axis: _Int) -> Tensor:
        """log(sum(exp(x))) of all elements up to each along an axis, whatever their range. ..."""
    @overload
    def logcumsumexp(self, dim: _Int) -> Tensor: ...
    @overload
    def logcumsumexp(self, dims: _Int) -> Tensor: ...
    def logdet(self, /) -> Tensor:
        """Logarithm of the determinant; NaN where that is negative."""
    @overload
    def logical_and(self, b: _Operand) -> Tensor:
        """Whether both are nonzero. Source: Array API standard 2024.12."""
    @overload
    def logical_and(self, other: _Operand) -> Tensor: ...
    @overload
    def logical_and_(self, b: _Operand) -> Self:
        """`logical_and`, written in place. Whether both are nonzero. Source: Array API ..."""
    @overload
    def logical_and_(self, other: _Operand) -> Self: ...
    def logical_not(self) -> Tensor:
        """Whether zero. Source: Array API standard 2024.12."""
    def logical_not_(self) -> Self:
        """`logical_not`, written in place. Whether zero. Source: Array API standard 2024.12."""
    @overload
    def logical_or(self, b: _Operand) -> Tensor:
        """Whether either is nonzero. Source: Array API standard 2024.12."""
    @overload
    def logical_or(self, other: _Operand) -> Tensor: ...
    @overload
    def logical_or_(self, b: _Operand) -> Self:
        """`logical_or`, written in place. Whether either is nonzero. Source: Array API ..."""
    @overload
    def logical_or_(self, other: _Operand) -> Self: ...
    @overload
    def logical_xor(self, b: _Operand) -> Tensor:
        """Whether exactly one is nonzero. Source: Array API standard 2024.12."""
    @overload
    def logical_xor(self, other: _Operand) -> Tensor: ...
    @overload
    def logical_xor_(self, b: _Operand) -> Self:
        """`logical_xor`, written in place. Whether exactly one is nonzero. Source: Array ..."""
    @overload
    def logical_xor_(self, other: _Operand) -> Self: ...
    def logit(self, eps: _Float | None=None) -> Tensor:
        """log(x / (1 - x)), the inverse of sigmoid; x is limited to the range from eps to ..."""
    def logit_(self, eps: _Float | None=None) -> Self:
        """`logit`, written in place. log(x / (1 - x)), the inverse of sigmoid; x is ..."""
    def logsigmoid(self) -> Tensor:
        """log(sigmoid(x)), without overflow. Source: PyTorch's torch.nn.functional.logsigmoid."""
    def logsigmoid_(self) -> Self:
        """`logsigmoid`, written in place. log(sigmoid(x)), without overflow. Source: ..."""
    def logsumexp(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """log(sum(exp(x))) without overflow. Shapes: x of any shape; the result lacks the ..."""
    def long(self) -> Tensor:
        """As int64; itself where it is one."""
    def lstm_cell(
        self,
        h: Tensor,
        c: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor | None=None,
        bias_hh: Tensor | None=None,
    ) -> tuple[Tensor, Tensor]:
        """One step of lstm_layer: x (batch, in); h and c (batch, hidden), and so the new ..."""
    def lstm_layer(
        self,
        h0: Tensor,
        c0: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor | None=None,
        bias_hh: Tensor | None=None,
        reverse: _Bool=False,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """All steps of x (steps, batch, in) through an LSTM from h0 and c0 (batch, ..."""
    @overload
    def lt(self, b: _Operand) -> Tensor:
        """Whether a is below b. Source: Array API standard 2024.12."""
    @overload
    def lt(self, other: _Operand) -> Tensor: ...
    @overload
    def lt_(self, b: _Operand) -> Self:
        """`less`, written in place. Whether a is below b. Source: Array API standard 2024.12."""
    @overload
    def lt_(self, other: _Operand) -> Self: ...
    def lu_unpack(
        self,
        pivots: Tensor,
        unpack_data: _Bool=True,
        unpack_pivots: _Bool=True,
    ) -> _LUResult:
        """P, L and U of what `lu_factor` gives; those that are not asked for are empty."""
    @property
    def mH(self) -> Tensor:
        """The conjugate of mT: a view of real numbers, a copy of complex ones."""
    @property
    def mT(self) -> Tensor:
        """The last two axes swapped, as a view."""
    def margin_ranking_loss(
        self,
        input2: Tensor,
        target: Tensor,
        margin: _Float=0.0,
        reduction: str='mean',
    ) -> Tensor:
        """max(0, margin - target * (input1 - input2)): 0 where the first is above the ..."""
    def masked_fill(self, mask: Tensor, value: _Operand) -> Tensor:
        """x with one number where the mask is true; both are broadcast, the dtype is that ..."""
    def masked_fill_(self, mask: Tensor, value: _Operand) -> Self:
        """`masked_fill`, written in place. x with one number where the mask is true; both ..."""
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """x with the elements of source, in order, where the mask is true; x and mask are ..."""
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Self:
        """`masked_scatter`, written in place. x with the elements of source, in order, ..."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """A vector of the elements where the mask is true; both are broadcast. Raises ..."""
    def matmul(self, other: Tensor) -> Tensor:
        """Matrix product."""
    def matrix_exp(self, /) -> Tensor:
        """The exponential of square matrices: the sum of their powers x^k / k!."""
    @overload
    def matrix_power(self, n: _Int, /) -> Tensor:
        """x multiplied by itself n times, by squaring; of a negative n the inverse's power."""
    @overload
    def matrix_power(self, n: _Int) -> Tensor: ...
    def matrix_transpose(self) -> Tensor:
        """The last two axes swapped, as a view. Raises ValueError below 2 dimensions. ..."""
    @overload
    def max(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        *,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Largest element; NaN where there is one. Source: Array API standard 2024.12. ..."""
    @overload
    def max(self, *, keepdims: _Bool=False, dim: _Int, keepdim: _Bool=...) -> ValuesAndIndices: ...
    @overload
    def max(self, other: Tensor) -> Tensor: ...
    def max_pool1d(
        self,
        kernel_size: _Int | Sequence[_Int],
        stride: _Int | Sequence[_Int] | None=None,
        padding: _Int | Sequence[_Int]=0,
        dilation: _Int | Sequence[_Int]=1,
        ceil_mode: _Bool=False,
    ) -> Tensor:
        """The largest element of each window of input (batch, channels, length), or ..."""
    def max_pool1d_with_indices(
        self,
        kernel_size: _Int | Sequence[_Int],
        stride: _Int | Sequence[_Int] | None=None,
        padding: _Int | Sequence[_Int]=0,
        dilation: _Int | Sequence[_Int]=1,
        ceil_mode: _Bool=False,
    ) -> tuple[Tensor, Tensor]:
        """The results of max_pool1d, and where in its plane each lies: int64, in row-major ..."""
    def max_pool2d(
        self,
        kernel_size: _Int | Sequence[_Int],
        stride: _Int | Sequence[_Int] | None=None,
        padding: _Int | Sequence[_Int]=0,
        dilation: _Int | Sequence[_Int]=1,
        ceil_mode: _Bool=False,
    ) -> Tensor:
        """The largest element of each window of input (batch, channels, height, width), or ..."""
    def max_pool2d_with_indices(
        self,
        kernel_size: _Int | Sequence[_Int],
        stride: _Int | Sequence[_Int] | None=None,
        padding: _Int | Sequence[_Int]=0,
        dilation: _Int | Sequence[_Int]=1,
        ceil_mode: _Bool=False,
    ) -> tuple[Tensor, Tensor]:
        """The results of max_pool2d, and where in its plane each lies: int64, in row-major ..."""
    def max_pool3d(
        self,
        kernel_size: _Int | Sequence[_Int],
        stride: _Int | Sequence[_Int] | None=None,
        padding: _Int | Sequence[_Int]=0,
        dilation: _Int | Sequence[_Int]=1,
        ceil_mode: _Bool=False,
    ) -> Tensor:
        """The largest element of each window of input (batch, channels, depth, height, ..."""
    def max_pool3d_with_indices(
        self,
        kernel_size: _Int | Sequence[_Int],
        stride: _Int | Sequence[_Int] | None=None,
        padding: _Int | Sequence[_Int]=0,
        dilation: _Int | Sequence[_Int]=1,
        ceil_mode: _Bool=False,
    ) -> tuple[Tensor, Tensor]:
        """The results of max_pool3d, and where in its plane each lies: int64, in row-major ..."""
    def max_unpool1d(
        self,
        indices: Tensor,
        kernel_size: _Int | Sequence[_Int],
        stride: _Int | Sequence[_Int] | None=None,
        padding: _Int | Sequence[_Int]=0,
        output_size: _Int | Sequence[_Int] | None=None,
    ) -> Tensor:
        """Planes of zeros with the elements of input at the places that max pooling's ..."""
    def max_unpool2d(
        self,
        indices: Tensor,
        kernel_size: _Int | Sequence[_Int],
        stride: _Int | Sequence[_Int] | None=None,
        padding: _Int | Sequence[_Int]=0,
        output_size: _Int | Sequence[_Int] | None=None,
    ) -> Tensor:
        """Planes of zeros with the elements of input at the places that max pooling's ..."""
    def max_unpool3d(
        self,
        indices: Tensor,
        kernel_size: _Int | Sequence[_Int],
        stride: _Int | Sequence[_Int] | None=None,
        padding: _Int | Sequence[_Int]=0,
        output_size: _Int | Sequence[_Int] | None=None,
    ) -> Tensor:
        """Planes of zeros with the elements of input at the places that max pooling's ..."""
    def max_with_indices(
        self,
        axis: _Int=-1,
        keepdims: _Bool=False,
        *,
        dim: _Int=...,
        dims: _Int=...,
        keepdim: _Bool=...,
    ) -> ValuesAndIndices:
        """The largest element along an axis, and its index (int64): of equal ones the ..."""
    @overload
    def maximum(self, b: _Operand) -> Tensor:
        """Larger of a and b; NaN if either is. Source: Array API standard 2024.12."""
    @overload
    def maximum(self, other: _Operand) -> Tensor: ...
    @overload
    def maximum_(self, b: _Operand) -> Self:
        """`maximum`, written in place. Larger of a and b; NaN if either is. Source: Array ..."""
    @overload
    def maximum_(self, other: _Operand) -> Self: ...
    def mean(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        dtype: _DTypeLike | None=None,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Mean over all or some axes, in x's floating type, or in dtype, which integers ..."""
    @overload
    def median(
        self,
        axis: _Int | None=None,
        keepdims: _Bool=False,
        *,
        dims: _Int | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Median of all elements or along an axis: of an even number the mean of the two ..."""
    @overload
    def median(
        self,
        *,
        keepdims: _Bool=False,
        dim: _Int,
        keepdim: _Bool=...,
    ) -> ValuesAndIndices: ...
    def median_with_indices(
        self,
        axis: _Int=-1,
        keepdims: _Bool=False,
        *,
        dim: _Int=...,
        dims: _Int=...,
        keepdim: _Bool=...,
    ) -> ValuesAndIndices:
        """The median along an axis, of an even number the lower of the two in the middle, ..."""
    @overload
    def min(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        *,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Smallest element; NaN where there is one. Source: Array API standard 2024.12. ..."""
    @overload
    def min(self, *, keepdims: _Bool=False, dim: _Int, keepdim: _Bool=...) -> ValuesAndIndices: ...
    @overload
    def min(self, other: Tensor) -> Tensor: ...
    def min_with_indices(
        self,
        axis: _Int=-1,
        keepdims: _Bool=False,
        *,
        dim: _Int=...,
        dims: _Int=...,
        keepdim: _Bool=...,
    ) -> ValuesAndIndices:
        """The smallest element along an axis, and its index (int64): of equal ones the ..."""
    @overload
    def minimum(self, b: _Operand) -> Tensor:
        """Smaller of a and b; NaN if either is. Source: Array API standard 2024.12."""
    @overload
    def minimum(self, other: _Operand) -> Tensor: ...
    @overload
    def minimum_(self, b: _Operand) -> Self:
        """`minimum`, written in place. Smaller of a and b; NaN if either is. Source: Array ..."""
    @overload
    def minimum_(self, other: _Operand) -> Self: ...
    def mish(self, inplace: _Bool=False) -> Tensor:
        """x * tanh(softplus(x)). Source: PyTorch's torch.nn.functional.mish."""
    def mish_(self) -> Self:
        """`mish`, written in place. x * tanh(softplus(x)). Source: PyTorch's ..."""
    @overload
    def mm(self, x2: Tensor, /) -> Tensor:
        """Product of two matrices; `matmul` also takes vectors and batches."""
    @overload
    def mm(self, mat2: Tensor) -> Tensor: ...
    @overload
    def mm(self, other: Tensor) -> Tensor: ...
    def mode(
        self,
        axis: _Int=-1,
        keepdims: _Bool=False,
        *,
        dim: _Int=...,
        dims: _Int=...,
        keepdim: _Bool=...,
    ) -> ValuesAndIndices:
        """The most frequent element along an axis, and the last place where it is (int64)."""
    def moveaxis(self, source: _Int | Sequence[_Int], destination: _Int | Sequence[_Int]) -> Tensor:
        """The axes `source` at the places `destination`, the others in their order, as a ..."""
    def movedim(self, source: _Int | Sequence[_Int], destination: _Int | Sequence[_Int]) -> Tensor:
        """The axes `source` at the places `destination`, the others in their order, as a ..."""
    @overload
    def mse_loss(self, y: Tensor, reduction: str='mean') -> Tensor:
        """Squared differences, averaged by default. 16-bit numbers are squared and added ..."""
    @overload
    def mse_loss(self, target: Tensor, reduction: str='mean') -> Tensor: ...
    def msort(self) -> Tensor:
        """Elements in rising order along the first axis."""
    @overload
    def mul(self, b: _Operand) -> Tensor:
        """Product of a and b. Source: Array API standard 2024.12."""
    @overload
    def mul(self, other: _Operand) -> Tensor: ...
    @overload
    def mul_(self, b: _Operand) -> Self:
        """`multiply`, written in place. Product of a and b. Source: Array API standard ..."""
    @overload
    def mul_(self, other: _Operand) -> Self: ...
    def multi_margin_loss(
        self,
        target: Tensor,
        p: _Int=1,
        margin: _Float=1.0,
        weight: Tensor | None=None,
        reduction: str='mean',
    ) -> Tensor:
        """max(0, margin - input[target] + input[i]) ** p of all other classes i, over the ..."""
    def multilabel_margin_loss(self, target: Tensor, reduction: str='mean') -> Tensor:
        """max(0, 1 - input[label] + input[i]) of all labels and all classes i that are ..."""
    def multilabel_soft_margin_loss(
        self,
        target: Tensor,
        weight: Tensor | None=None,
        reduction: str='mean',
    ) -> Tensor:
        """The mean over the classes, along the last axis, of ..."""
    def multinomial(
        self,
        num_samples: _Int,
        replacement: _Bool=False,
        generator: Generator | None=None,
    ) -> Tensor:
        """Class numbers (int64) drawn from rows of probabilities (n, classes) or from ..."""
    @overload
    def multiply(self, b: _Operand) -> Tensor:
        """Product of a and b. Source: Array API standard 2024.12."""
    @overload
    def multiply(self, other: _Operand) -> Tensor: ...
    @overload
    def multiply_(self, b: _Operand) -> Self:
        """`multiply`, written in place. Product of a and b. Source: Array API standard ..."""
    @overload
    def multiply_(self, other: _Operand) -> Self: ...
    @overload
    def mv(self, x2: Tensor, /) -> Tensor:
        """Product of a matrix and a vector."""
    @overload
    def mv(self, vec: Tensor) -> Tensor: ...
    @overload
    def mv(self, other: Tensor) -> Tensor: ...
    def mvlgamma(self, p: _Int) -> Tensor:
        """Logarithm of the multivariate gamma function of dimension p, for x > (p - 1) / 2."""
    @property
    def name(self) -> str:
        """Shown in error messages."""
    @name.setter
    def name(self, value: str, /) -> None: ...
    def nan_to_num(
        self,
        nan: _Float=0.0,
        posinf: _Float | None=None,
        neginf: _Float | None=None,
    ) -> Tensor:
        """x with numbers for NaN and the infinities, the type's largest and least by ..."""
    def nan_to_num_(
        self,
        nan: _Float=0.0,
        posinf: _Float | None=None,
        neginf: _Float | None=None,
    ) -> Self:
        """`nan_to_num`, written in place. x with numbers for NaN and the infinities, the ..."""
    def nanmean(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        dtype: _DTypeLike | None=None,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Mean over all or some axes of what is no NaN; NaN where nothing is. Shapes: x of ..."""
    @overload
    def nanmedian(
        self,
        axis: _Int | None=None,
        keepdims: _Bool=False,
        *,
        dims: _Int | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Median without NaN of all elements or along an axis: of an even number the mean ..."""
    @overload
    def nanmedian(
        self,
        *,
        keepdims: _Bool=False,
        dim: _Int,
        keepdim: _Bool=...,
    ) -> ValuesAndIndices: ...
    def nanmedian_with_indices(
        self,
        axis: _Int=-1,
        keepdims: _Bool=False,
        *,
        dim: _Int=...,
        dims: _Int=...,
        keepdim: _Bool=...,
    ) -> ValuesAndIndices:
        """The median without NaN along an axis, of an even number the lower of the two in ..."""
    def nanquantile(
        self,
        q: _Operand,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        *,
        interpolation: str='linear',
        method: str=...,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """The element at the place q * (n - 1) of the n elements that are not NaN in ..."""
    def nansum(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        dtype: _DTypeLike | None=None,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Sum over all or some axes of what is no NaN; of integers in 64 bits. Source: ..."""
    @overload
    def narrow(self, axis: _Int, start: _Int, length: _Int) -> Tensor:
        """`length` places along an axis from start on, as a view. Raises IndexError for a ..."""
    @overload
    def narrow(self, dim: _Int, start: _Int, length: _Int) -> Tensor: ...
    @overload
    def narrow(self, dims: _Int, start: _Int, length: _Int) -> Tensor: ...
    @property
    def nbytes(self) -> _Int:
        """Bytes of all elements."""
    @property
    def ndim(self) -> _Int:
        """Number of dimensions."""
    def ndimension(self) -> _Int:
        """Number of dimensions, as `ndim`."""
    @overload
    def ne(self, b: _Operand) -> Tensor:
        """Whether a differs from b. Source: Array API standard 2024.12."""
    @overload
    def ne(self, other: _Operand) -> Tensor: ...
    @overload
    def ne_(self, b: _Operand) -> Self:
        """`not_equal`, written in place. Whether a differs from b. Source: Array API ..."""
    @overload
    def ne_(self, other: _Operand) -> Self: ...
    def neg(self) -> Tensor:
        """Negative of each element. Source: Array API standard 2024.12."""
    def neg_(self) -> Self:
        """`negative`, written in place. Negative of each element. Source: Array API ..."""
    def negative(self) -> Tensor:
        """Negative of each element. Source: Array API standard 2024.12."""
    def negative_(self) -> Self:
        """`negative`, written in place. Negative of each element. Source: Array API ..."""
    def nelement(self) -> _Int:
        """Number of elements, as `size`."""
    def new(self, *size: Any) -> Tensor:
        """Memory of another shape, or a copy of a list of numbers, in the type and place of x."""
    def new_empty(
        self,
        *size: Any,
        dtype: Any=None,
        device: str | None=None,
        requires_grad: _Bool=False,
    ) -> Tensor:
        """Memory of another shape, in the type and on the device of x unless others are given."""
    def new_full(
        self,
        size: _Int | Sequence[_Int],
        fill_value: _Complex,
        dtype: Any=None,
        device: str | None=None,
        requires_grad: _Bool=False,
    ) -> Tensor:
        """One number in another shape, in the type and on the device of x unless others ..."""
    def new_ones(
        self,
        *size: Any,
        dtype: Any=None,
        device: str | None=None,
        requires_grad: _Bool=False,
    ) -> Tensor:
        """Ones in another shape, in the type and on the device of x unless others are given."""
    def new_tensor(
        self,
        data: Any,
        dtype: Any=None,
        device: str | None=None,
        requires_grad: _Bool=False,
    ) -> Tensor:
        """A copy of data, in the type and on the device of x unless others are given."""
    def new_zeros(
        self,
        *size: Any,
        dtype: Any=None,
        device: str | None=None,
        requires_grad: _Bool=False,
    ) -> Tensor:
        """Zeros in another shape, in the type and on the device of x unless others are given."""
    @overload
    def nextafter(self, b: _Operand) -> Tensor:
        """The next number of the type after a towards b; of 16-bit types that of float32, ..."""
    @overload
    def nextafter(self, other: _Operand) -> Tensor: ...
    @overload
    def nextafter_(self, b: _Operand) -> Self:
        """`nextafter`, written in place. The next number of the type after a towards b; of ..."""
    @overload
    def nextafter_(self, other: _Operand) -> Self: ...
    def nll_loss(
        self,
        target: Tensor,
        weight: Tensor | None=None,
        ignore_index: _Int=-100,
        reduction: str='mean',
    ) -> Tensor:
        """-input[target] of log-likelihoods (n, classes, d, ...) and class indices (n, d, ..."""
    def nonzero(self, *, as_tuple: _Bool=True) -> Any:
        """The indices of the elements that are not 0, a tensor for each axis; with ..."""
    def norm(
        self,
        p: _Float | str | None='fro',
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """The `p`-norm of all elements or along axes, as in PyTorch: "fro" is 2 for any axes."""
    def normal_(
        self,
        mean: _Float=0.0,
        std: _Float=1.0,
        *,
        generator: Generator | None=None,
    ) -> Self:
        """Overwritten with normally distributed numbers."""
    @overload
    def not_equal(self, b: _Operand) -> Tensor:
        """Whether a differs from b. Source: Array API standard 2024.12."""
    @overload
    def not_equal(self, other: _Operand) -> Tensor: ...
    @overload
    def not_equal_(self, b: _Operand) -> Self:
        """`not_equal`, written in place. Whether a differs from b. Source: Array API ..."""
    @overload
    def not_equal_(self, other: _Operand) -> Self: ...
    def numel(self) -> _Int:
        """Number of elements, as `size`."""
    def numpy(self, *, force: _Bool=False) -> Any:
        """A NumPy array over the same memory; with force also of a tensor in the graph, ..."""
    def one_hot(self, num_classes: _Int, dtype: _DTypeLike=...) -> Tensor:
        """1 at each index along a new last axis, else 0. Shapes: indices of any shape; the ..."""
    def ones_like(
        self,
        dtype: _DTypeLike | None=None,
        device: str | None=None,
        requires_grad: _Bool=False,
    ) -> Tensor:
        """Like ones, shape and dtype from x. Shapes: x of any shape; the result has it. ..."""
    @property
    def op(self) -> str | None:
        """Name of the recorded op that made it, or None."""
    @overload
    def outer(self, x2: Tensor, /) -> Tensor:
        """Products of each element of a vector with each of another: shape (n,) and (m,) ..."""
    @overload
    def outer(self, vec2: Tensor) -> Tensor: ...
    @overload
    def outer(self, other: Tensor) -> Tensor: ...
    def pad(
        self,
        pad: _Int | Sequence[_Int],
        mode: str='constant',
        value: _Number | None=None,
    ) -> Tensor:
        """Elements around x: widths in front of and behind the last axis, then the one ..."""
    @overload
    def pairwise_distance(
        self,
        x2: Tensor,
        p: _Float=2.0,
        eps: _Float=1e-06,
        keepdims: _Bool=False,
        *,
        keepdim: _Bool=...,
    ) -> Tensor:
        """The p-norm of x1 - x2 + eps along the last axis. Raises ValueError for numbers ..."""
    @overload
    def pairwise_distance(
        self,
        other: Tensor,
        p: _Float=2.0,
        eps: _Float=1e-06,
        keepdims: _Bool=False,
        *,
        keepdim: _Bool=...,
    ) -> Tensor: ...
    @overload
    def permute(self, axes: _Int | Sequence[_Int]) -> Tensor:
        """Axes in another order, as a view. Shapes: x of n dimensions and n axes; the ..."""
    @overload
    def permute(self, *axes: _Int) -> Tensor: ...
    @overload
    def permute(self, dims: _Int | Sequence[_Int]) -> Tensor: ...
    @overload
    def permute_dims(self, axes: _Int | Sequence[_Int]) -> Tensor:
        """Axes in another order, as a view. Shapes: x of n dimensions and n axes; the ..."""
    @overload
    def permute_dims(self, *axes: _Int) -> Tensor: ...
    @overload
    def permute_dims(self, dims: _Int | Sequence[_Int]) -> Tensor: ...
    def pin_memory(self) -> Any:
        """A copy in pinned memory of the host, from and to which GPUs copy beside other ..."""
    def pinverse(
        self,
        /,
        *,
        atol: _Float | Tensor | None=None,
        rtol: _Float | Tensor | None=None,
        hermitian: _Bool=False,
    ) -> Tensor:
        """The pseudo-inverse (Moore and Penrose): small singular values count as 0."""
    def pixel_shuffle(self, upscale_factor: _Int) -> Tensor:
        """Images (..., channels * r * r, height, width) as (..., channels, height * r, ..."""
    def pixel_unshuffle(self, downscale_factor: _Int) -> Tensor:
        """Images (..., channels, height * r, width * r) as (..., channels * r * r, height, ..."""
    def poisson(self, generator: Generator | None=None) -> Tensor:
        """A count of Poisson's distribution for each rate, in its type. Raises ValueError ..."""
    def poisson_nll_loss(
        self,
        target: Tensor,
        log_input: _Bool=True,
        full: _Bool=False,
        eps: _Float=1e-08,
        reduction: str='mean',
    ) -> Tensor:
        """Negative log-likelihood of counts under Poisson distributions of means, or of ..."""
    def polar(self, angle: Tensor) -> Tensor:
        """Complex numbers of the given magnitudes and angles in radians, two tensors of ..."""
    def positive(self) -> Tensor:
        """Each element unchanged. Source: Array API standard 2024.12."""
    def positive_(self) -> Self:
        """`positive`, written in place. Each element unchanged. Source: Array API standard ..."""
    @overload
    def pow(self, b: _Operand) -> Tensor:
        """a to the power of b. Source: Array API standard 2024.12."""
    @overload
    def pow(self, exponent: _Operand) -> Tensor: ...
    @overload
    def pow(self, other: _Operand) -> Tensor: ...
    @overload
    def pow_(self, b: _Operand) -> Self:
        """`pow`, written in place. a to the power of b. Source: Array API standard 2024.12."""
    @overload
    def pow_(self, exponent: _Operand) -> Self: ...
    @overload
    def pow_(self, other: _Operand) -> Self: ...
    def power_norm(
        self,
        ord: _Float=2.0,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor: ...
    def prelu(self, weight: Tensor) -> Tensor:
        """x where positive, else x times weight, which is one number or one for each ..."""
    def prod(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        dtype: _DTypeLike | None=None,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Product over all or some axes; of integers in 64 bits. Source: Array API ..."""
    def put(self, index: Tensor, source: Tensor, accumulate: _Bool=False) -> Tensor:
        """A copy of x with elements of source at places of x, counted through x as if it ..."""
    def quantile(
        self,
        q: _Operand,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        *,
        interpolation: str='linear',
        method: str=...,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """The element at the place q * (n - 1) of the n elements in order, of all or along ..."""
    def rad2deg(self) -> Tensor:
        """Radians as degrees. Shapes: x of any shape; the result has it. Types: floating; ..."""
    def rad2deg_(self) -> Self:
        """`rad2deg`, written in place. Radians as degrees. Shapes: x of any shape; the ..."""
    def rand_like(
        self,
        dtype: _DTypeLike | None=None,
        generator: Generator | None=None,
        device: str | None=None,
        requires_grad: _Bool=False,
    ) -> Tensor:
        """Like rand, shape and dtype from x. Shapes: x of any shape; the result has it. ..."""
    def randint_like(
        self,
        low: _Int=0,
        high: _Int | None=None,
        dtype: _DTypeLike | None=None,
        generator: Generator | None=None,
        device: str | None=None,
        requires_grad: _Bool=False,
    ) -> Tensor:
        """Like randint, shape and dtype from x; one number alone is high. Raises ..."""
    def randn_like(
        self,
        dtype: _DTypeLike | None=None,
        generator: Generator | None=None,
        device: str | None=None,
        requires_grad: _Bool=False,
    ) -> Tensor:
        """Like randn, shape and dtype from x. Shapes: x of any shape; the result has it. ..."""
    def random_(
        self,
        low: _Int=0,
        high: _Int | None=None,
        *,
        generator: Generator | None=None,
    ) -> Self:
        """Overwritten with whole numbers in [low, high): one number alone is high, none ..."""
    def ravel(self) -> Tensor:
        """All elements along one axis, in row-major order; a view where strides allow it. ..."""
    @property
    def real(self) -> Tensor:
        """The real part, a view; a real tensor itself."""
    def reciprocal(self) -> Tensor:
        """One over each element. Source: Array API standard 2024.12."""
    def reciprocal_(self) -> Self:
        """`reciprocal`, written in place. One over each element. Source: Array API ..."""
    def record_stream(self, stream: object) -> None:
        """Says that another library uses its memory on a tw.cuda.Stream: it serves again ..."""
    def register_forward_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Calls hook(value) when an op takes the tensor; the op uses a returned tensor ..."""
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Calls hook(grad) when the gradient is complete; a returned tensor replaces it."""
    def register_post_accumulate_grad_hook(
        self,
        hook: Callable[[Tensor], Tensor | None],
    ) -> HookHandle:
        """Calls hook(tensor) once backward() has added to the tensor's grad, which the ..."""
    def relu(self, inplace: _Bool=False) -> Tensor:
        """Larger of x and 0. Source: PyTorch's torch.nn.functional.relu."""
    def relu6(self, inplace: _Bool=False) -> Tensor:
        """x limited to the range from 0 to 6. Source: PyTorch's torch.nn.functional.relu6."""
    def relu6_(self) -> Self:
        """`relu6`, written in place. x limited to the range from 0 to 6. Source: PyTorch's ..."""
    def relu_(self) -> Self:
        """`relu`, written in place. Larger of x and 0. Source: PyTorch's ..."""
    @overload
    def remainder(self, b: _Operand) -> Tensor:
        """a - b * floor(a / b): the sign of b; 0 for whole numbers modulo 0. Source: Array ..."""
    @overload
    def remainder(self, other: _Operand) -> Tensor: ...
    @overload
    def remainder_(self, b: _Operand) -> Self:
        """`remainder`, written in place. a - b * floor(a / b): the sign of b; 0 for whole ..."""
    @overload
    def remainder_(self, other: _Operand) -> Self: ...
    @overload
    def renorm(self, p: _Float, axis: _Int, maxnorm: _Float) -> Tensor:
        """x with each slice along an axis whose `p`-norm is above `maxnorm` scaled down to it."""
    @overload
    def renorm(self, p: _Float, dim: _Int, maxnorm: _Float) -> Tensor: ...
    @overload
    def renorm(self, p: _Float, dims: _Int, maxnorm: _Float) -> Tensor: ...
    def repeat_interleave(
        self,
        repeats: _Operand | None=None,
        axis: _Int | None=None,
        *,
        output_size: _Int | None=None,
        dim: _Int | None=...,
        dims: _Int | None=...,
    ) -> Tensor:
        """Each position of an axis (None: of all elements in row-major order) `repeats` ..."""
    @property
    def requires_grad(self) -> _Bool:
        """Whether ops on it are recorded."""
    @requires_grad.setter
    def requires_grad(self, value: _Bool, /) -> None: ...
    def requires_grad_(self, requires_grad: _Bool=True) -> Self:
        """Sets requires_grad and returns the tensor."""
    @overload
    def resample(
        self,
        size: _Int | Sequence[_Int],
        mode: str='nearest',
        align_corners: _Bool=False,
        antialias: _Bool=False,
        scale0: _Float=0.0,
        scale1: _Float=0.0,
        scale2: _Float=0.0,
    ) -> Tensor:
        """Images (batch, channels, ...) with another size of the 1 to 3 axes behind the ..."""
    @overload
    def resample(
        self,
        shape: _Int | Sequence[_Int],
        mode: str='nearest',
        align_corners: _Bool=False,
        antialias: _Bool=False,
        scale0: _Float=0.0,
        scale1: _Float=0.0,
        scale2: _Float=0.0,
    ) -> Tensor: ...
    @overload
    def reshape(self, shape: _Int | Sequence[_Int], *, copy: _Bool | None=None) -> Tensor:
        """The same elements in another shape; one extent may be -1. A view where strides ..."""
    @overload
    def reshape(self, *shape: _Int, copy: _Bool | None=None) -> Tensor: ...
    @overload
    def reshape(self, size: _Int | Sequence[_Int], *, copy: _Bool | None=None) -> Tensor: ...
    def reshape_as(self, other: Tensor) -> Tensor:
        """The same elements in the shape of another tensor."""
    def resolve_conj(self) -> Tensor:
        """x itself: conjugates are computed at once here, not when they are next used."""
    def retain_grad(self) -> None:
        """Keeps the gradient of a result in its grad."""
    @property
    def retains_grad(self) -> _Bool:
        """Whether it is a result that keeps its gradient: retain_grad was called."""
    def rms_norm(
        self,
        normalized_shape: _Int | Sequence[_Int],
        weight: Tensor | None=None,
        eps: _Float | None=None,
    ) -> Tensor:
        """The last axes, of normalized_shape, over the root of their mean square, then ..."""
    def rnn_cell(
        self,
        h: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor | None=None,
        bias_hh: Tensor | None=None,
        nonlinearity: str='tanh',
    ) -> Tensor:
        """One step of rnn_layer: x (batch, in), h and the result (batch, hidden). Shapes: ..."""
    def rnn_layer(
        self,
        h0: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor | None=None,
        bias_hh: Tensor | None=None,
        reverse: _Bool=False,
        nonlinearity: str='tanh',
    ) -> tuple[Tensor, Tensor]:
        """All steps of x (steps, batch, in) through an Elman layer from h0 (batch, ..."""
    @overload
    def roll(
        self,
        shift: _Int | Sequence[_Int],
        axis: _Int | Sequence[_Int] | None=None,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
    ) -> Tensor:
        """Elements moved by `shift` places along axes; what leaves at the end comes in at ..."""
    @overload
    def roll(
        self,
        shifts: _Int | Sequence[_Int],
        axis: _Int | Sequence[_Int] | None=None,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
    ) -> Tensor: ...
    def rot90(
        self,
        k: _Int=1,
        axes: _Int | Sequence[_Int] | None=None,
        *,
        dims: _Int | Sequence[_Int] | None=...,
    ) -> Tensor:
        """Turned k times by 90 degrees from the first of two axes towards the second, as a ..."""
    def rotary_embedding(self, cos: Tensor, sin: Tensor, *, interleaved: _Bool=False) -> Tensor:
        """Rotary position embedding: pairs of each row's first numbers, rotated by the ..."""
    def round(self, *, decimals: _Int=0) -> Tensor:
        """Nearest whole number, halves to even; or to so many decimals, of tens for ..."""
    def round_(self, *, decimals: _Int=0) -> Self:
        """`round`, written in place. In place it also raises RuntimeError for a leaf that ..."""
    def rsqrt(self) -> Tensor:
        """One over the square root. Source: PyTorch's torch.rsqrt."""
    def rsqrt_(self) -> Self:
        """`rsqrt`, written in place. One over the square root. Source: PyTorch's torch.rsqrt."""
    def scaled_dot_product_attention(
        self,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None=None,
        dropout_p: _Float=0.0,
        is_causal: _Bool=False,
        scale: _Float | None=None,
        enable_gqa: _Bool=False,
    ) -> Tensor:
        """softmax(query @ key.T * scale + attn_mask) @ value over the last two axes, ..."""
    @overload
    def scatter(
        self,
        axis: _Int,
        index: Tensor,
        src: _Operand,
        *,
        reduce: str | None=None,
    ) -> Tensor:
        """A copy y of x with y[i, index[i, j, k], k] = src[i, j, k] for axis 1; of several ..."""
    @overload
    def scatter(
        self,
        dim: _Int,
        index: Tensor,
        value: _Operand,
        *,
        reduce: str | None=None,
    ) -> Tensor: ...
    @overload
    def scatter(
        self,
        dims: _Int,
        index: Tensor,
        value: _Operand,
        *,
        reduce: str | None=None,
    ) -> Tensor: ...
    @overload
    def scatter_(
        self,
        axis: _Int,
        index: Tensor,
        src: _Operand,
        *,
        reduce: str | None=None,
    ) -> Self:
        """`scatter`, written in place. A copy y of x with y[i, index[i, j, k], k] = src[i, ..."""
    @overload
    def scatter_(
        self,
        dim: _Int,
        index: Tensor,
        value: _Operand,
        *,
        reduce: str | None=None,
    ) -> Self: ...
    @overload
    def scatter_(
        self,
        dims: _Int,
        index: Tensor,
        value: _Operand,
        *,
        reduce: str | None=None,
    ) -> Self: ...
    @overload
    def scatter_add(self, axis: _Int, index: Tensor, src: _Operand) -> Tensor:
        """A copy y of x with y[i, index[i, j, k], k] += src[i, j, k] for axis 1, in the ..."""
    @overload
    def scatter_add(self, dim: _Int, index: Tensor, src: _Operand) -> Tensor: ...
    @overload
    def scatter_add(self, dims: _Int, index: Tensor, src: _Operand) -> Tensor: ...
    @overload
    def scatter_add_(self, axis: _Int, index: Tensor, src: _Operand) -> Self:
        """`scatter_add`, written in place. A copy y of x with y[i, index[i, j, k], k] += ..."""
    @overload
    def scatter_add_(self, dim: _Int, index: Tensor, src: _Operand) -> Self: ...
    @overload
    def scatter_add_(self, dims: _Int, index: Tensor, src: _Operand) -> Self: ...
    @overload
    def scatter_reduce(
        self,
        axis: _Int,
        index: Tensor,
        src: _Operand,
        reduce: str,
        *,
        include_self: _Bool=True,
    ) -> Tensor:
        """A copy y of x with all src[i, j, k] joined to y[i, index[i, j, k], k] for axis ..."""
    @overload
    def scatter_reduce(
        self,
        dim: _Int,
        index: Tensor,
        src: _Operand,
        reduce: str,
        *,
        include_self: _Bool=True,
    ) -> Tensor: ...
    @overload
    def scatter_reduce(
        self,
        dims: _Int,
        index: Tensor,
        src: _Operand,
        reduce: str,
        *,
        include_self: _Bool=True,
    ) -> Tensor: ...
    @overload
    def scatter_reduce_(
        self,
        axis: _Int,
        index: Tensor,
        src: _Operand,
        reduce: str,
        *,
        include_self: _Bool=True,
    ) -> Self:
        """`scatter_reduce`, written in place. A copy y of x with all src[i, j, k] joined ..."""
    @overload
    def scatter_reduce_(
        self,
        dim: _Int,
        index: Tensor,
        src: _Operand,
        reduce: str,
        *,
        include_self: _Bool=True,
    ) -> Self: ...
    @overload
    def scatter_reduce_(
        self,
        dims: _Int,
        index: Tensor,
        src: _Operand,
        reduce: str,
        *,
        include_self: _Bool=True,
    ) -> Self: ...
    @overload
    def searchsorted(
        self,
        x2: _Operand,
        *,
        side: str | None=None,
        sorter: Tensor | None=None,
        right: _Bool=False,
        out_int32: _Bool=False,
    ) -> Tensor:
        """Where elements of x2 belong in the sorted x1 (n,), or rows of x2 (..., m) in ..."""
    @overload
    def searchsorted(
        self,
        input: _Operand,
        *,
        side: str | None=None,
        sorter: Tensor | None=None,
        right: _Bool=False,
        out_int32: _Bool=False,
    ) -> Tensor: ...
    @overload
    def searchsorted(
        self,
        values: _Operand,
        *,
        side: str | None=None,
        sorter: Tensor | None=None,
        right: _Bool=False,
        out_int32: _Bool=False,
    ) -> Tensor: ...
    @overload
    def searchsorted(
        self,
        other: _Operand,
        *,
        side: str | None=None,
        sorter: Tensor | None=None,
        right: _Bool=False,
        out_int32: _Bool=False,
    ) -> Tensor: ...
    @overload
    def select(self, axis: _Int, index: _Int) -> Tensor:
        """One place along an axis, which is dropped, as a view. IndexError out of range. ..."""
    @overload
    def select(self, dim: _Int, index: _Int) -> Tensor: ...
    @overload
    def select(self, dims: _Int, index: _Int) -> Tensor: ...
    @overload
    def select_scatter(self, src: Tensor, axis: _Int, index: _Int) -> Tensor:
        """A copy of x with src at one place along an axis: what select shows. Raises ..."""
    @overload
    def select_scatter(self, src: Tensor, dim: _Int, index: _Int) -> Tensor: ...
    @overload
    def select_scatter(self, src: Tensor, dims: _Int, index: _Int) -> Tensor: ...
    def selu(self, inplace: _Bool=False) -> Tensor:
        """1.0507 times x where positive, else times 1.6733 * (exp(x) - 1). Source: ..."""
    def selu_(self) -> Self:
        """`selu`, written in place. 1.0507 times x where positive, else times 1.6733 * ..."""
    def sgn(self) -> Tensor:
        """-1, 0 or 1 by the sign; 0 for -0.0. Source: Array API standard 2024.12."""
    def sgn_(self) -> Self:
        """`sign`, written in place. -1, 0 or 1 by the sign; 0 for -0.0. Source: Array API ..."""
    @property
    def shape(self) -> tuple[_Int, ...]:
        """Extents, a tuple of ints."""
    def short(self) -> Tensor:
        """As int16; itself where it is one."""
    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x)). Source: PyTorch's torch.nn.functional.sigmoid."""
    def sigmoid_(self) -> Self:
        """`sigmoid`, written in place. 1 / (1 + exp(-x)). Source: PyTorch's ..."""
    def sign(self) -> Tensor:
        """-1, 0 or 1 by the sign; 0 for -0.0. Source: Array API standard 2024.12."""
    def sign_(self) -> Self:
        """`sign`, written in place. -1, 0 or 1 by the sign; 0 for -0.0. Source: Array API ..."""
    def signbit(self) -> Tensor:
        """Whether the sign bit is set. Source: Array API standard 2024.12."""
    def signbit_(self) -> Self:
        """`signbit`, written in place. Whether the sign bit is set. Source: Array API ..."""
    def silu(self, inplace: _Bool=False) -> Tensor:
        """x * sigmoid(x), also called swish. Source: PyTorch's torch.nn.functional.silu."""
    def silu_(self) -> Self:
        """`silu`, written in place. x * sigmoid(x), also called swish. Source: PyTorch's ..."""
    def sin(self) -> Tensor:
        """Sine; x in radians. Source: Array API standard 2024.12."""
    def sin_(self) -> Self:
        """`sin`, written in place. Sine; x in radians. Source: Array API standard 2024.12."""
    def sinc(self) -> Tensor:
        """sin(pi x) / (pi x), and 1 at 0. Shapes: x of any shape; the result has it. ..."""
    def sinc_(self) -> Self:
        """`sinc`, written in place. sin(pi x) / (pi x), and 1 at 0. Shapes: x of any ..."""
    def sinh(self) -> Tensor:
        """Hyperbolic sine. Source: Array API standard 2024.12."""
    def sinh_(self) -> Self:
        """`sinh`, written in place. Hyperbolic sine. Source: Array API standard 2024.12."""
    @property
    def size(self) -> _ElementCount:
        """Number of elements; called, the shape or the extent of one axis."""
    def slice_scatter(
        self,
        src: Tensor,
        axis: _Int=0,
        start: _Int | None=None,
        end: _Int | None=None,
        step: _Int=1,
        *,
        dim: _Int=...,
        dims: _Int=...,
    ) -> Tensor:
        """A copy of x with src at the places start:end:step along an axis. Raises ..."""
    def slogdet(self, /) -> _SlogdetResult:
        """Sign (0 for singular matrices) and logarithm of the absolute value of determinants."""
    def smooth_l1_loss(self, target: Tensor, reduction: str='mean', beta: _Float=1.0) -> Tensor:
        """Differences d as d * d / (2 * beta) below beta, and |d| - beta / 2 above ..."""
    def soft_margin_loss(self, target: Tensor, reduction: str='mean') -> Tensor:
        """log(1 + exp(-target * input)) for targets 1 and -1, without overflow. Shapes: ..."""
    def softmax(
        self,
        axis: _Int=-1,
        dtype: _DTypeLike | None=None,
        *,
        dim: _Int=...,
        dims: _Int=...,
    ) -> Tensor:
        """exp(x) / sum(exp(x)) along an axis, of x as dtype where that is given. Shapes: x ..."""
    def softplus(self, beta: _Number=1.0, threshold: _Number=20.0) -> Tensor:
        """log(1 + exp(beta * x)) / beta, without overflow; x where beta * x is above ..."""
    def softplus_(self, beta: _Number=1.0, threshold: _Number=20.0) -> Self:
        """`softplus`, written in place. log(1 + exp(beta * x)) / beta, without overflow; x ..."""
    def softshrink(self, lambd: _Number=0.5) -> Tensor:
        """x moved by lambd towards 0, and 0 within lambd of it. Raises ValueError for a ..."""
    def softshrink_(self, lambd: _Number=0.5) -> Self:
        """`softshrink`, written in place. x moved by lambd towards 0, and 0 within lambd ..."""
    def softsign(self) -> Tensor:
        """x / (1 + abs(x)). Source: PyTorch's torch.nn.functional.softsign."""
    def softsign_(self) -> Self:
        """`softsign`, written in place. x / (1 + abs(x)). Source: PyTorch's ..."""
    @overload
    def sort(
        self,
        *,
        axis: _Int=-1,
        descending: _Bool=False,
        stable: _Bool=True,
        dims: _Int=...,
    ) -> Tensor:
        """The elements along an axis in order: values alone, argsort has their places. NaN ..."""
    @overload
    def sort(
        self,
        *,
        descending: _Bool=False,
        stable: _Bool=True,
        dim: _Int,
    ) -> ValuesAndIndices: ...
    def sort_with_indices(
        self,
        *,
        axis: _Int=-1,
        descending: _Bool=False,
        stable: _Bool=True,
        dim: _Int=...,
        dims: _Int=...,
    ) -> ValuesAndIndices:
        """What sort gives, and the indices (int64) that argsort gives. Shapes: x (..., n, ..."""
    @overload
    def split(
        self,
        split_size_or_sections: _Int | Sequence[_Int],
        axis: _Int=0,
        *,
        dim: _Int=...,
        dims: _Int=...,
    ) -> tuple[Tensor, ...]:
        """Parts along an axis, as views: of one extent, the last one smaller where it must ..."""
    @overload
    def split(
        self,
        split_size: _Int | Sequence[_Int],
        axis: _Int=0,
        *,
        dim: _Int=...,
        dims: _Int=...,
    ) -> tuple[Tensor, ...]: ...
    def split_with_sizes(self, split_sizes: Sequence[_Int], dim: _Int=0) -> tuple[Tensor, ...]:
        """`split` by extents. Raises what `split` does."""
    def sqrt(self) -> Tensor:
        """Square root. Source: Array API standard 2024.12."""
    def sqrt_(self) -> Self:
        """`sqrt`, written in place. Square root. Source: Array API standard 2024.12."""
    def square(self) -> Tensor:
        """Square of each element. Source: Array API standard 2024.12."""
    def square_(self) -> Self:
        """`square`, written in place. Square of each element. Source: Array API standard ..."""
    def squeeze(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
    ) -> Tensor:
        """Drops axes of extent 1 (all of them by default). Shapes: x of any shape; the ..."""
    def standard_gamma(self, generator: Generator | None=None) -> Tensor:
        """A number of the gamma distribution of scale 1 for each shape parameter, in its ..."""
    @overload
    def std(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        correction: _Float=0.0,
        keepdims: _Bool=False,
        dtype: _DTypeLike | None=None,
        *,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
        ddof: _Float=...,
    ) -> Tensor:
        """Standard deviation; correction is taken off the number of elements. Its gradient ..."""
    @overload
    def std(
        self,
        *,
        correction: _Float,
        keepdims: _Bool=False,
        dtype: _DTypeLike | None=None,
        dim: _Int | Sequence[_Int] | None,
        keepdim: _Bool=...,
    ) -> Tensor: ...
    @overload
    def std_mean(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        *,
        correction: _Float,
        keepdims: _Bool=False,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> tuple[Tensor, Tensor]:
        """Standard deviation and mean of all elements, or along axes; `correction` as in ..."""
    @overload
    def std_mean(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        *,
        ddof: _Float,
        keepdims: _Bool=False,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> tuple[Tensor, Tensor]: ...
    def stft(
        self,
        n_fft: _Int,
        hop_length: _Int | None=None,
        win_length: _Int | None=None,
        window: Tensor | None=None,
        center: _Bool=True,
        pad_mode: str='reflect',
        normalized: _Bool=False,
        onesided: _Bool | None=None,
        return_complex: _Bool | None=None,
    ) -> Tensor:
        """Fourier transforms of frames of a signal: how strong each frequency is over time."""
    def storage_offset(self) -> _Int:
        """Where its first element lies in the memory that its views share, in elements."""
    def stride(self) -> tuple[_Int, ...]:
        """Steps between elements, in elements, as `strides`."""
    @property
    def strides(self) -> tuple[_Int, ...]:
        """Steps between elements, in elements."""
    @overload
    def sub(self, other: _Operand, *, alpha: _Number=1) -> Tensor:
        """The operator's result, of alpha times the other."""
    @overload
    def sub(self, b: _Operand, *, alpha: _Number=1) -> Tensor: ...
    @overload
    def sub_(self, other: _Operand, *, alpha: _Number=1) -> Self:
        """The operator's result, of alpha times the other. Written in place. In place it ..."""
    @overload
    def sub_(self, b: _Operand, *, alpha: _Number=1) -> Self: ...
    @overload
    def subtract(self, other: _Operand, *, alpha: _Number=1) -> Tensor:
        """The operator's result, of alpha times the other."""
    @overload
    def subtract(self, b: _Operand, *, alpha: _Number=1) -> Tensor: ...
    @overload
    def subtract_(self, other: _Operand, *, alpha: _Number=1) -> Self:
        """The operator's result, of alpha times the other. Written in place. In place it ..."""
    @overload
    def subtract_(self, b: _Operand, *, alpha: _Number=1) -> Self: ...
    def sum(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        keepdims: _Bool=False,
        dtype: _DTypeLike | None=None,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> Tensor:
        """Sum over all or some axes; of integers in 64 bits. Source: Array API standard ..."""
    def sum_of_products(
        self,
        y: Tensor,
        axis: _Int | Sequence[_Int] | None=None,
        *,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
    ) -> Tensor:
        """Sum of x * y over all or some axes of what they broadcast to. Shapes: x and y ..."""
    def sum_to_size(self, *size: Any) -> Tensor:
        """x summed to a shape that broadcasts to its own: what a broadcast's gradient is."""
    def swapaxes(
        self,
        axis0: _Int | Sequence[_Int] | None=None,
        axis1: _Int | None=None,
        *,
        axes: _Int | Sequence[_Int] | None=...,
        dim0: _Int | Sequence[_Int] | None=...,
        dim1: _Int | None=...,
    ) -> Tensor:
        """Two axes swapped, or all axes in another order, as a view. Two numbers are the ..."""
    def swapdims(
        self,
        axis0: _Int | Sequence[_Int] | None=None,
        axis1: _Int | None=None,
        *,
        axes: _Int | Sequence[_Int] | None=...,
        dim0: _Int | Sequence[_Int] | None=...,
        dim1: _Int | None=...,
    ) -> Tensor:
        """Two axes swapped, or all axes in another order, as a view. Two numbers are the ..."""
    def t(self) -> Tensor:
        """The transpose of a matrix, as a view; itself below 2 dimensions. Shapes: x (m, ..."""
    def take_along_axis(
        self,
        indices: Tensor,
        axis: _Int=-1,
        *,
        dim: _Int=...,
        dims: _Int=...,
    ) -> Tensor:
        """y[i, j, k] = x[i, indices[i, j, k], k] for axis 1; the other axes are broadcast. ..."""
    def take_along_dim(
        self,
        indices: Tensor,
        axis: _Int | None=None,
        *,
        dim: _Int | None=...,
        dims: _Int | None=...,
    ) -> Tensor:
        """`take_along_axis` by PyTorch's name: without an axis, elements of the flat tensor."""
    def tan(self) -> Tensor:
        """Tangent; x in radians. Source: Array API standard 2024.12."""
    def tan_(self) -> Self:
        """`tan`, written in place. Tangent; x in radians. Source: Array API standard 2024.12."""
    def tanh(self) -> Tensor:
        """Hyperbolic tangent. Source: Array API standard 2024.12."""
    def tanh_(self) -> Self:
        """`tanh`, written in place. Hyperbolic tangent. Source: Array API standard 2024.12."""
    def tanhshrink(self) -> Tensor:
        """x - tanh(x). Source: PyTorch's torch.nn.functional.tanhshrink."""
    def tanhshrink_(self) -> Self:
        """`tanhshrink`, written in place. x - tanh(x). Source: PyTorch's ..."""
    @overload
    def tensor_split(
        self,
        indices_or_sections: _Int | Sequence[_Int],
        axis: _Int=0,
        *,
        dim: _Int=...,
        dims: _Int=...,
    ) -> tuple[Tensor, ...]:
        """So many parts along an axis, as views, the first ones an element longer where ..."""
    @overload
    def tensor_split(
        self,
        indices: _Int | Sequence[_Int],
        axis: _Int=0,
        *,
        dim: _Int=...,
        dims: _Int=...,
    ) -> tuple[Tensor, ...]: ...
    @overload
    def tensor_split(
        self,
        sections: _Int | Sequence[_Int],
        axis: _Int=0,
        *,
        dim: _Int=...,
        dims: _Int=...,
    ) -> tuple[Tensor, ...]: ...
    @overload
    def tensordot(
        self,
        x2: Tensor,
        /,
        axes: _Int | tuple[Sequence[_Int], Sequence[_Int]]=2,
        *,
        dims: _Int | tuple[Sequence[_Int], Sequence[_Int]]=...,
    ) -> Tensor:
        """Sum of products over pairs of axes: the last `axes` of x1 with the first of x2, ..."""
    @overload
    def tensordot(
        self,
        other: Tensor,
        axes: _Int | tuple[Sequence[_Int], Sequence[_Int]]=2,
        *,
        dims: _Int | tuple[Sequence[_Int], Sequence[_Int]]=...,
    ) -> Tensor: ...
    def threshold(self, threshold: _Number, value: _Number, inplace: _Bool=False) -> Tensor:
        """x where above threshold, else value. Source: PyTorch's ..."""
    def threshold_(self, threshold: _Number, value: _Number) -> Self:
        """`threshold`, written in place. x where above threshold, else value. Source: ..."""
    @overload
    def tile(self, repetitions: _Int | Sequence[_Int]) -> Tensor:
        """Copies of x side by side: so many along each axis. What has fewer axes, x or the ..."""
    @overload
    def tile(self, *repetitions: _Int) -> Tensor: ...
    @overload
    def tile(self, dims: _Int | Sequence[_Int]) -> Tensor: ...
    @overload
    def tile(self, reps: _Int | Sequence[_Int]) -> Tensor: ...
    def to(
        self,
        target: Tensor | _DTypeLike | None=None,
        dtype: _DTypeLike | None=None,
        device: str | None=None,
        copy: _Bool=False,
        non_blocking: _Bool=False,
    ) -> Tensor:
        """In another dtype, on another device, or both as another tensor has them; itself ..."""
    def to_device(self, device: str, *, stream: object=None) -> Tensor:
        """On another device; itself where it is there."""
    def tolist(self) -> Any:
        """Nested lists of numbers."""
    def topk(
        self,
        k: _Int,
        axis: _Int=-1,
        largest: _Bool=True,
        sorted: _Bool=True,
        *,
        dim: _Int=...,
        dims: _Int=...,
    ) -> ValuesAndIndices:
        """The k largest elements along an axis, or the smallest, and their indices ..."""
    def trace(self, offset: _Int=0) -> Tensor:
        """The sum of a diagonal of a matrix, of whole numbers as int64. Raises ValueError ..."""
    @overload
    def transpose(
        self,
        axis0: _Int | Sequence[_Int] | None=None,
        axis1: _Int | None=None,
        *,
        axes: _Int | Sequence[_Int] | None=...,
        dim0: _Int | Sequence[_Int] | None=...,
        dim1: _Int | None=...,
    ) -> Tensor:
        """Two axes swapped, or all axes in another order, as a view. Two numbers are the ..."""
    @overload
    def transpose(self, *axis0: _Int, axis1: _Int | None=None, dim1: _Int | None=...) -> Tensor: ...
    def trapezoid(
        self,
        x: Tensor | None=None,
        *,
        dx: _Float | None=None,
        axis: _Int=-1,
        dim: _Int=...,
        dims: _Int=...,
    ) -> Tensor:
        """Integral of samples along an axis by the trapezoidal rule."""
    def trapz(
        self,
        x: Tensor | None=None,
        *,
        dx: _Float | None=None,
        axis: _Int=-1,
        dim: _Int=...,
        dims: _Int=...,
    ) -> Tensor:
        """Integral of samples along an axis by the trapezoidal rule."""
    def tril(self, k: _Int=0, *, diagonal: _Int=...) -> Tensor:
        """The part of the last two axes on and below diagonal k. Shapes: x (..., m, n); ..."""
    def tril_(self, k: _Int=0, *, diagonal: _Int=...) -> Self:
        """`tril`, written in place. The part of the last two axes on and below diagonal k. ..."""
    def triplet_margin_loss(
        self,
        positive: Tensor,
        negative: Tensor,
        margin: _Float=1.0,
        p: _Float=2.0,
        eps: _Float=1e-06,
        swap: _Bool=False,
        reduction: str='mean',
    ) -> Tensor:
        """max(0, margin + distance to the positive - distance to the negative) (Balntas et ..."""
    def triu(self, k: _Int=0, *, diagonal: _Int=...) -> Tensor:
        """The part of the last two axes on and above diagonal k. Shapes: x (..., m, n); ..."""
    def triu_(self, k: _Int=0, *, diagonal: _Int=...) -> Self:
        """`triu`, written in place. The part of the last two axes on and above diagonal k. ..."""
    def true_divide(self, other: _Operand, *, rounding_mode: str | None=None) -> Tensor:
        """The operator's result; with rounding_mode 'floor' or 'trunc' the whole number ..."""
    def true_divide_(self, other: _Operand, *, rounding_mode: str | None=None) -> Self:
        """The operator's result; with rounding_mode 'floor' or 'trunc' the whole number ..."""
    def trunc(self) -> Tensor:
        """Whole part, towards zero. Source: Array API standard 2024.12."""
    def trunc_(self) -> Self:
        """`trunc`, written in place. Whole part, towards zero. Source: Array API standard ..."""
    def type(self, dtype: _DTypeLike | None=None) -> Tensor | _DType:
        """In another dtype; its own dtype without one."""
    def type_as(self, other: Tensor) -> Tensor:
        """In the dtype of another tensor; itself where it has it."""
    def unbind(self, axis: _Int=0, *, dim: _Int=..., dims: _Int=...) -> tuple[Tensor, ...]:
        """The parts at each position of an axis, without that axis, as views. Shapes: x ..."""
    @overload
    def unflatten(self, axis: _Int, sizes: _Int | Sequence[_Int]) -> Tensor:
        """One axis as several of these extents, one of which may be -1; a view where ..."""
    @overload
    def unflatten(self, dim: _Int, sizes: _Int | Sequence[_Int]) -> Tensor: ...
    @overload
    def unflatten(self, dims: _Int, sizes: _Int | Sequence[_Int]) -> Tensor: ...
    @overload
    def unfold(self, dimension: _Int, size: _Int, step: _Int) -> Tensor:
        """Windows of size elements along a dimension, each step behind the one before, as ..."""
    @overload
    def unfold(self, dimension: _Int, shape: _Int, step: _Int) -> Tensor: ...
    def uniform_(
        self,
        low: _Float=0.0,
        high: _Float=1.0,
        *,
        generator: Generator | None=None,
    ) -> Self:
        """Overwritten with uniform numbers in [low, high)."""
    def unique(
        self,
        sorted: _Bool=True,
        return_inverse: _Bool=False,
        return_counts: _Bool=False,
        axis: _Int | None=None,
        *,
        dim: _Int | None=None,
    ) -> Tensor | tuple[Tensor, ...]:
        """The different elements of x in order, whatever `sorted` says; or along an axis ..."""
    def unique_all(self, /) -> _UniqueAllResult:
        """The different elements of x in order (n,), where in the flattened x each is ..."""
    def unique_consecutive(
        self,
        return_inverse: _Bool=False,
        return_counts: _Bool=False,
        axis: _Int | None=None,
        *,
        dim: _Int | None=None,
    ) -> Tensor | tuple[Tensor, ...]:
        """The elements of the flat tensor, or the slices along an axis, without ..."""
    def unique_counts(self, /) -> _UniqueCountsResult:
        """The different elements of x in order (n,), and how often each is there (n,), int64."""
    def unique_inverse(self, /) -> _UniqueInverseResult:
        """The different elements of x in order (n,), and which of them each element is: ..."""
    def unique_values(self, /) -> Tensor:
        """The different elements of x in order (n,); NaN each on their own."""
    def unit_vectors(
        self,
        ord: _Float=2.0,
        axis: _Int=1,
        eps: _Float=1e-12,
        *,
        dim: _Int=...,
        dims: _Int=...,
    ) -> Tensor:
        """Vectors along an axis over their norm of order ord, which counts as eps below ..."""
    def unravel_index(self, shape: _Int | Sequence[_Int]) -> tuple[Tensor, ...]:
        """The indices (int64) along each axis of elements of the flat tensor of a shape."""
    def unsqueeze(self, axis: _Int=0, *, dim: _Int=..., dims: _Int=...) -> Tensor:
        """A new axis of extent 1. Shapes: x of any shape; the result has one axis more, of ..."""
    def unstack(self, axis: _Int=0, *, dim: _Int=..., dims: _Int=...) -> tuple[Tensor, ...]:
        """The parts at each position of an axis, without that axis, as views. Shapes: x ..."""
    def vander(self, N: _Int | None=None, increasing: _Bool=False) -> Tensor:
        """The powers of each element of x (n,) as rows of N columns (None: n), from N - 1 ..."""
    @overload
    def var(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        correction: _Float=0.0,
        keepdims: _Bool=False,
        dtype: _DTypeLike | None=None,
        *,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
        ddof: _Float=...,
    ) -> Tensor:
        """Variance; correction is taken off the number of elements. Of complex numbers: of ..."""
    @overload
    def var(
        self,
        *,
        correction: _Float,
        keepdims: _Bool=False,
        dtype: _DTypeLike | None=None,
        dim: _Int | Sequence[_Int] | None,
        keepdim: _Bool=...,
    ) -> Tensor: ...
    @overload
    def var_mean(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        *,
        correction: _Float,
        keepdims: _Bool=False,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> tuple[Tensor, Tensor]:
        """Variance and mean of all elements, or along axes."""
    @overload
    def var_mean(
        self,
        axis: _Int | Sequence[_Int] | None=None,
        *,
        ddof: _Float,
        keepdims: _Bool=False,
        dim: _Int | Sequence[_Int] | None=...,
        dims: _Int | Sequence[_Int] | None=...,
        keepdim: _Bool=...,
    ) -> tuple[Tensor, Tensor]: ...
    @overload
    def vdot(self, x2: Tensor, /) -> Tensor:
        """Sum of the products of two vectors of one size; the first is conjugated."""
    @overload
    def vdot(self, other: Tensor) -> Tensor: ...
    @overload
    def vecdot(self, x2: Tensor, /, *, axis: _Int=-1, dim: _Int=..., dims: _Int=...) -> Tensor:
        """Sum of products along an axis, of the conjugates of x1's numbers; other axes ..."""
    @overload
    def vecdot(self, other: Tensor, *, axis: _Int=-1, dim: _Int=..., dims: _Int=...) -> Tensor: ...
    @property
    def version(self) -> _Int:
        """How often its memory was changed in place."""
    @overload
    def view(self, shape: _Int | Sequence[_Int] | _DTypeLike) -> Tensor:
        """The same memory in another shape; ValueError where that takes a copy. Of a ..."""
    @overload
    def view(self, *shape: _Int) -> Tensor: ...
    @overload
    def view(self, dtype: _Int | Sequence[_Int] | _DTypeLike) -> Tensor: ...
    @overload
    def view(self, size: _Int | Sequence[_Int] | _DTypeLike) -> Tensor: ...
    def view_as(self, other: Tensor) -> Tensor:
        """The same memory in the shape of another tensor."""
    def view_as_complex(self) -> Tensor:
        """Pairs of numbers along the last axis, of extent 2, as complex numbers in the ..."""
    def view_as_real(self) -> Tensor:
        """The parts of complex numbers in the same memory: a real tensor with one axis ..."""
    @overload
    def vsplit(self, indices_or_sections: _Int | Sequence[_Int]) -> tuple[Tensor, ...]:
        """So many parts of one extent, as views, or the parts between indices: along axis ..."""
    @overload
    def vsplit(self, indices: _Int | Sequence[_Int]) -> tuple[Tensor, ...]: ...
    @overload
    def vsplit(self, sections: _Int | Sequence[_Int]) -> tuple[Tensor, ...]: ...
    def where(self, condition: _Operand, other: _Operand) -> Tensor:
        """Itself where the condition holds, else the other."""
    @overload
    def xlog1py(self, b: Tensor) -> Tensor:
        """a * log(1 + b), and 0 where a is 0 and b no NaN. Shapes: a and b broadcast; the ..."""
    @overload
    def xlog1py(self, other: Tensor) -> Tensor: ...
    @overload
    def xlog1py_(self, b: Tensor) -> Self:
        """`xlog1py`, written in place. a * log(1 + b), and 0 where a is 0 and b no NaN. ..."""
    @overload
    def xlog1py_(self, other: Tensor) -> Self: ...
    @overload
    def xlogy(self, b: _Operand) -> Tensor:
        """a * log(b), and 0 where a is 0 and b no NaN. Source: PyTorch's torch.xlogy."""
    @overload
    def xlogy(self, other: _Operand) -> Tensor: ...
    @overload
    def xlogy_(self, b: _Operand) -> Self:
        """`xlogy`, written in place. a * log(b), and 0 where a is 0 and b no NaN. Source: ..."""
    @overload
    def xlogy_(self, other: _Operand) -> Self: ...
    def zero_(self) -> Self:
        """Every element set to 0."""
    def zeros_like(
        self,
        dtype: _DTypeLike | None=None,
        device: str | None=None,
        requires_grad: _Bool=False,
    ) -> Tensor:
        """Like zeros, shape and dtype from x. Shapes: x of any shape; the result has it. ..."""

class _Task:
    """The outcome of a submission, native part."""

    id: int
    name: str
    @property
    def state(self) -> str: ...
    _value: Any
    _error: BaseException | None
    def done(self) -> _Bool: ...
    def cancel(self) -> _Bool: ...
    def check(self) -> None: ...
    def add_done_callback(self, callback: Callable[[Any], object], /) -> None: ...
    def _figures(self) -> dict[str, Any]: ...
    def _run(self) -> None: ...

class _Scheduler:
    """The scheduler's bookkeeping."""

    def __new__(
        cls,
        memory_bytes: int | None,
        policy: str,
        aging_s: float | None,
        history: int,
        clock: Callable[[], int] | None,
        watcher: Callable[[Any], None],
        /,
    ) -> Self: ...
    def submit(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Any: ...
    def take(self, worker: int, timeout_s: float | None = None, /) -> Any: ...
    def finish(self, task: Any, state: str, /) -> None: ...
    def expire(self) -> int: ...
    def await_deadline(self) -> _Bool: ...
    def close(self, cancel: _Bool, /) -> None: ...
    def await_idle(self, timeout_s: float, /) -> _Bool: ...
    def set_use(self, task: Any, use_bytes: int, /) -> None: ...
    def records(self) -> list[dict[str, Any]]: ...
    def figures(self) -> dict[str, Any]: ...

class _Submitter:
    """Native part of Scheduler."""

    _core: Any
    def submit(
        self,
        fn: Callable[..., Any],
        /,
        *args: Any,
        memory_bytes: int = 0,
        priority: int = 0,
        expected_s: float | None = None,
        after: Any = (),
        quality: str = "burstable",
        group: str | None = None,
        share: float = 1.0,
        timeout_s: float | None = None,
        name: str | None = None,
        kwargs: dict[str, Any] | None = None,
        pool: Any = None,
    ) -> Any:
        """Hands over `fn(*args, **kwargs)`; returns its `Task`."""

_other_dtypes: dict[str, str]
_other_names: dict[str, str]
bfloat16: _DType
bool: _DType
complex128: _DType
complex64: _DType
float16: _DType
float32: _DType
float64: _DType
int16: _DType
int32: _DType
int64: _DType
int8: _DType
uint16: _DType
uint32: _DType
uint64: _DType
uint8: _DType

class Error(Exception): ...
class ExchangeError(Error, BufferError): ...
class FileError(Error, OSError): ...
class InvalidTypeError(Error, TypeError): ...
class InvalidValueError(Error, ValueError): ...
class OutOfMemoryError(Error, MemoryError): ...
class SlowPathWarning(RuntimeWarning): ...
class StateError(Error, RuntimeError): ...
class InvalidIndexError(Error, IndexError): ...
class NumberTooLargeError(Error, OverflowError): ...
class UnsupportedError(Error, NotImplementedError): ...

def _add_bandwidth(bytes: int, seconds: float) -> float: ...
def _add_external_kernels(library: int) -> None:
    """Registers what a library's `tilewright_kernels()` gave, by its address."""
def _allocate(nbytes: int, zero: _Bool=False) -> Block:
    """A block of the pool in force; with zero=True its bytes are 0, else unspecified."""
def _append_rows(keys: Tensor, values: Tensor, filled: int, key: Tensor, value: Tensor) -> None:
    """Writes rows of keys and values behind those that are filled."""
def _as_bytes(x: Tensor) -> Tensor:
    """The memory of a row-major tensor of any dtype as uint8."""
def _attend_with_cache(
    keys: Tensor,
    values: Tensor,
    filled: _Operand,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float | None=None,
) -> Tensor:
    """Appends rows, and attends causally to all."""
def _backward(
    tensors: list[Any],
    grad_tensors: list[Any],
    retain_graph: _Bool | None=None,
    create_graph: _Bool=False,
) -> None: ...
def _become(tensor: object, value: Tensor) -> None: ...
def _behind(tensors: list[Any], known: list[Any]) -> tuple[Any, ...]: ...
def _beta_slope(a: Tensor, b: Tensor, log_odds: Tensor) -> Tensor:
    """How log-odds of beta distributions move with a; all float64, of one shape."""
def _broadcast_shapes(shapes: Sequence[int | Sequence[int]]) -> tuple[int, ...]:
    """The shape that all of `shapes` broadcast to."""
def _capture(function: Callable[..., Any], inputs: Sequence[Tensor]) -> _Captured:
    """Calls function(*inputs) and records what ops it runs. What Python does meanwhile ..."""
def _checkpoint(function: object, inputs: list[Any]) -> Any: ...
def _current_task() -> Any:
    """The task that this thread runs, or None."""
def _default_generator() -> Generator:
    """The generator of all draws that are given none."""
def _dtype_named(arg: _DTypeLike, /) -> _DType: ...
def _enter_anomaly_mode(block: object, enabled: _Bool) -> None: ...
def _enter_autocast(block: object, dtype: _DTypeLike | None) -> None: ...
def _enter_batch_invariance(block: object, on: _Bool) -> None: ...
def _enter_grad_mode(block: object, enabled: _Bool) -> None: ...
def _enter_kernels(block: object, isa: str | None, forced: dict[str, Any]) -> None: ...
def _enter_optimizations_off(block: object, names: Sequence[str]) -> None: ...
def _faults_left() -> int: ...
def _gpu_add_stream(number: int, priority: int) -> _GpuStream:
    """One more stream of a GPU, or one of those there are."""
def _gpu_choose_stream(stream: _GpuStream) -> _GpuStream:
    """Makes a stream this thread's; returns the one before."""
def _gpu_compile(file: str, settings: str, capability: int) -> tuple[Any, ...]:
    """Compiles a file of kernels: the cubin, and the compiler's figures."""
def _gpu_compiler_fault() -> str:
    """Why NVRTC cannot be used, or ''."""
def _gpu_copies(number: int) -> dict[str, Any]:
    """Copies from and to the host so far."""
def _gpu_copy(to: Tensor, source: Tensor) -> None:
    """Copies by the driver, in the order of launches."""
def _gpu_count() -> int:
    """Number of GPUs; 0 without a driver."""
def _gpu_current_stream(number: int) -> _GpuStream:
    """This thread's stream of a GPU."""
def _gpu_driver_fault() -> str:
    """Why the CUDA driver cannot be used, or ''."""
def _gpu_estimates(number: int, sizes: int | Sequence[int], dtype: _DTypeLike) -> dict[str, Any]:
    """Nanoseconds that each rung which accepts a product m x k @ k x n is taken to need."""
def _gpu_facts(number: int) -> dict[str, Any]:
    """Name, compute capability and sizes of a GPU."""
def _gpu_free_memory(number: int) -> tuple[Any, ...]:
    """Free and total bytes of a GPU, whoever holds the rest."""
def _gpu_launch_figures(number: int) -> dict[str, Any]:
    """Launches by stream and by task."""
def _gpu_launches(number: int) -> int:
    """How many kernels were launched on a GPU so far."""
def _gpu_memory(number: int) -> dict[str, Any]:
    """Figures of a GPU's memory pool, in bytes."""
def _gpu_own_stream(number: int) -> _GpuStream:
    """The stream that threads have from the start."""
def _gpu_rates(number: int) -> list[dict[str, Any]]:
    """Rates that a GPU's estimates stand on, each with its guess and limits."""
def _gpu_rates_key(number: int) -> str:
    """Name and driver of a GPU, to which measured rates belong."""
def _gpu_record_stream(x: Tensor, stream: _GpuStream) -> None:
    """Says that work outside the engine uses a tensor on a stream."""
def _gpu_reset_peaks(number: int) -> None:
    """Starts the peak figures of a GPU's memory anew."""
def _gpu_set_launch_limit(number: int, in_flight: int, of_task: _Bool) -> None:
    """How many launches of a stream, or of a task, may be in flight; 0: no limit of ours."""
def _gpu_set_limit(number: int, bytes: int) -> None:
    """Bounds what the pool takes from the driver; 0: nothing does."""
def _gpu_sources(number: int) -> list[dict[str, Any]]:
    """File, kernel and settings of every kernel that a GPU was asked for."""
def _gpu_synchronize(number: int) -> None:
    """Returns when all work of a GPU is done; raises what went wrong in it."""
def _gpu_trim(number: int) -> None:
    """Gives unused memory of a GPU back to the driver."""
def _gpu_versions() -> tuple[Any, ...]:
    """Major and minor of the CUDA that the driver has, and of NVRTC."""
def _graph(tensor: Tensor) -> list[dict[str, Any]]:
    """The nodes of records behind a tensor: what they should keep, and what they do."""
def _in_float_environment(function: Callable[..., Any]) -> Any:
    """function(), computed with the engine's rounding mode and subnormal numbers."""
def _is_device_name(name: str) -> _Bool:
    """Whether a name is that of a device, such as 'cuda:1', there or not."""
def _is_pinned(x: Tensor) -> _Bool:
    """Whether its memory is pinned."""
def _is_read_only(x: Tensor) -> _Bool:
    """Whether a tensor's memory may not be written to."""
def _kernel_abi() -> int: ...
def _last_plan() -> dict[str, int]: ...
def _least_observed_ns(count: int) -> int:
    """What observing an op adds to its time, of some that do nothing."""
def _leave_modes(block: object) -> None: ...
def _leaves(arg: Tensor, /) -> list[Tensor]: ...
def _linear_gradients(
    outputs: list[Any],
    inputs: list[Any],
    grad_outputs: list[Any],
) -> list[dict[str, Any]]: ...
def _module_hook_changes() -> int:
    """How often modules were given hooks, for what need not look again meanwhile."""
def _note_module_hooks() -> None:
    """From now on calls of modules look for hooks."""
def _nvtx_attached() -> _Bool:
    """Whether a tool listens for ranges."""
def _nvtx_mark(name: str) -> None:
    """Marks a moment."""
def _nvtx_pop() -> int:
    """Ends the latest range of this thread."""
def _nvtx_push(name: str) -> int:
    """Opens a range of this thread; the tool's number of its level."""
def _nvtx_set_emitting(emits: _Bool) -> _Bool:
    """Whether each op of this thread opens a range; returns what was before."""
def _observed() -> _Bool:
    """Whether anybody observes what this thread does."""
def _on_collection(arg0: str, arg1: dict[str, Any], /) -> None: ...
def _op_records() -> list[dict[str, Any]]:
    """All ops: name, signature, help, where they are shown, and which parts they have."""
def _optimization_reasons() -> list[str]: ...
def _optimization_rows() -> list[dict[str, Any]]:
    """The rows of the table of optimizations, and whether each is on for this thread."""
def _other_arguments(
    function: str,
    parameters: Sequence[str],
    positional_only: int=0,
) -> dict[str, Any]:
    """Other libraries' names of a function's parameters, of which the first ones may ..."""
def _pin_memory(x: Tensor) -> Tensor:
    """A copy in pinned memory; itself where it is there."""
def _pinned_memory() -> dict[str, Any]:
    """Figures of pinned memory, in bytes."""
def _pinned_trim() -> int:
    """Gives unused pinned memory back to the system; returns bytes."""
def _record_custom(
    context: object,
    name: str,
    inputs: list[Any],
    saved: list[Any],
    results: list[Any],
    differentiable: Sequence[_Bool],
    changed: Sequence[_Bool],
    passes_on: _Bool,
) -> list[Any]: ...
def _refuse_in_capture(what: str) -> None:
    """Raises RuntimeError while this thread records calls."""
def _remedies(owner: str) -> dict[str, Any]:
    """What to write instead of other libraries' names that "package" or "Tensor" has not."""
def _scratch_reset_peaks() -> None: ...
def _scratch_stats() -> dict[str, int]: ...
def _set_anomaly_mode(enabled: _Bool) -> None: ...
def _set_batch_invariant(on: _Bool) -> None: ...
def _set_faults_after(arg: int, /) -> None: ...
def _set_gpu_rates(measured: dict[str, Any]) -> None:
    """Replaces all measured rates, by key and name; opens no GPU."""
def _set_grad_enabled(enabled: _Bool) -> None: ...
def _set_idle_release(seconds: float) -> float:
    """How long large blocks may be unused before they go back; returns what it was."""
def _set_module(path: str) -> str:
    """Names the module whose forward this thread runs; returns the name before."""
def _set_optimizations_off(names: Sequence[str], off: _Bool) -> None: ...
def _set_package_folder(arg: str, /) -> None: ...
def _set_task_classes(
    task: object,
    cancelled: object,
    ended_error: object,
    run_in_pool: object,
) -> None:
    """What submissions are made of: once, before the first scheduler."""
def _spellings() -> list[dict[str, Any]]:
    """The rows of spellings.inc: kind, library, names, note."""
def _spoil_saved(tensor: Tensor, node: int, place: int) -> None:
    """Has a gradient that reads this saved value raise."""
def _to_dlpack(
    x: Tensor,
    stream: object,
    max_version: object,
    dl_device: object,
    copy: _Bool | None,
) -> Any: ...
def _transfer_cancel_task(task: int) -> int:
    """Cancels a task's transfers; returns how many there were."""
def _transfer_copy(src: Tensor, dst: Tensor, priority: int) -> TransferEvent:
    """Copies between tensors."""
def _transfer_gather(
    file: SourceFile,
    out: Tensor,
    indices: Tensor,
    rows: int,
    offset_bytes: int,
    priority: int=0,
) -> TransferEvent:
    """Fills a tensor with rows of a file, which has `rows` of them from offset_bytes on."""
def _transfer_read(path: object, out: Tensor, offset_bytes: int, priority: int) -> TransferEvent:
    """Fills a tensor from a file."""
def _transfer_set_in_flight(queue: str, limit: int) -> None:
    """Sets how many transfers of a queue may run at once."""
def _transfer_stats() -> dict[str, Any]:
    """Figures of transfers by queue and by task."""
def _transfer_wait_idle(queue: str, timeout: float) -> _Bool:
    """Whether nothing is in flight in a queue, within the timeout."""
def _transfer_write(path: object, x: Tensor, offset_bytes: int, priority: int) -> TransferEvent:
    """Writes a tensor's bytes to a file."""
def _unknown_optimizations() -> list[str]: ...
def _update_row(name: str) -> dict[str, Any]:
    """Names of an optimizer step's states, and its settings by name."""
def _vdot(x1: Tensor, x2: Tensor) -> Tensor: ...
@overload
def abs(x: _Operand) -> Tensor:
    """Absolute value. Source: Array API standard 2024.12."""
@overload
def abs(input: _Operand) -> Tensor: ...
@overload
def absolute(x: _Operand) -> Tensor:
    """Absolute value. Source: Array API standard 2024.12."""
@overload
def absolute(input: _Operand) -> Tensor: ...
@overload
def acos(x: _Operand) -> Tensor:
    """Inverse cosine, in radians. Source: Array API standard 2024.12."""
@overload
def acos(input: _Operand) -> Tensor: ...
@overload
def acosh(x: _Operand) -> Tensor:
    """Inverse hyperbolic cosine. Source: Array API standard 2024.12."""
@overload
def acosh(input: _Operand) -> Tensor: ...
def active_device() -> str:
    """Device on which this thread makes tensors."""
def active_isa() -> str:
    """Instruction set of the kernels that this thread uses."""
def adabelief_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_vars: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    beta1: float=0.9,
    beta2: float=0.999,
    eps: float=1e-16,
    weight_decay: float=0.0,
    decoupled: _Bool=False,
    maximize: _Bool=False,
) -> None:
    """AdaBelief on all params in place. Source: Zhuang et al., AdaBelief optimizer: ..."""
def adadelta_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    square_avgs: Sequence[Tensor],
    acc_deltas: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    rho: float=0.9,
    eps: float=1e-06,
    weight_decay: float=0.0,
    maximize: _Bool=False,
) -> None:
    """Adadelta (Zeiler, 2012) on all params in place. Source: PyTorch's ..."""
def adagrad_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    sums: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    eps: float=1e-10,
    weight_decay: float=0.0,
    lr_decay: float=0.0,
    maximize: _Bool=False,
) -> None:
    """Adagrad (Duchi, Hazan, Singer, 2011) on all params in place. Source: PyTorch's ..."""
def adam_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    beta1: float=0.9,
    beta2: float=0.999,
    eps: float=1e-08,
    weight_decay: float=0.0,
    decoupled: _Bool=False,
    maximize: _Bool=False,
) -> None:
    """Adam (Kingma and Ba, 2015), or AdamW where decoupled, on all params in place. ..."""
def adamax_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_infs: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    beta1: float=0.9,
    beta2: float=0.999,
    eps: float=1e-08,
    weight_decay: float=0.0,
    maximize: _Bool=False,
) -> None:
    """Adamax (Kingma and Ba, 2015) on all params in place. Source: PyTorch's ..."""
def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of output_size windows an axis that cover input (batch, channels, ..."""
def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of output_size windows an axis that cover input (batch, channels, ..."""
def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of output_size windows an axis that cover input (batch, channels, ..."""
def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The largest elements of output_size windows an axis that cover input (batch, ..."""
def adaptive_max_pool1d_with_indices(
    input: Tensor,
    output_size: int | Sequence[int | None] | None,
) -> tuple[Tensor, Tensor]:
    """The results of adaptive_max_pool1d, and where in its plane each lies: int64, in ..."""
def adaptive_max_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The largest elements of output_size windows an axis that cover input (batch, ..."""
def adaptive_max_pool2d_with_indices(
    input: Tensor,
    output_size: int | Sequence[int | None] | None,
) -> tuple[Tensor, Tensor]:
    """The results of adaptive_max_pool2d, and where in its plane each lies: int64, in ..."""
def adaptive_max_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The largest elements of output_size windows an axis that cover input (batch, ..."""
def adaptive_max_pool3d_with_indices(
    input: Tensor,
    output_size: int | Sequence[int | None] | None,
) -> tuple[Tensor, Tensor]:
    """The results of adaptive_max_pool3d, and where in its plane each lies: int64, in ..."""
@overload
def add(a: _Operand, b: _Operand) -> Tensor:
    """Sum of a and b. Source: Array API standard 2024.12."""
@overload
def add(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def add(x: Tensor, /, other: _Operand, *, alpha: _Number=1) -> Tensor: ...
@overload
def add(x: Tensor, /, b: _Operand, *, alpha: _Number=1) -> Tensor: ...
@overload
def addcdiv(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _Operand=1) -> Tensor:
    """x + value * tensor1 / tensor2. Shapes: x, tensor1 and tensor2 broadcast; the ..."""
@overload
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _Operand=1) -> Tensor: ...
@overload
def addcmul(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _Operand=1) -> Tensor:
    """x + value * tensor1 * tensor2, of floating numbers in one pass where value is 1. ..."""
@overload
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _Operand=1) -> Tensor: ...
def addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: float=1.0,
    alpha: float=1.0,
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2), for floating types; mat1 is (m, k), mat2 ..."""
@overload
def affine_grid(theta: Tensor, size: int | Sequence[int], align_corners: _Bool=False) -> Tensor:
    """The grid that grid_sample takes for affine maps theta (batch, 2, 3), or (batch, ..."""
@overload
def affine_grid(
    theta: Tensor,
    shape: int | Sequence[int],
    align_corners: _Bool=False,
) -> Tensor: ...
@overload
def all(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Whether all elements are nonzero. Source: Array API standard 2024.12. Shapes: x ..."""
@overload
def all(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def allclose(
    a: Tensor,
    b: Tensor,
    rtol: float=1e-05,
    atol: float=1e-08,
    equal_nan: _Bool=False,
) -> Tensor:
    """Whether isclose holds everywhere, as a 0-d tensor of bool. Raises ValueError for ..."""
@overload
def allclose(
    input: Tensor,
    other: Tensor,
    rtol: float=1e-05,
    atol: float=1e-08,
    equal_nan: _Bool=False,
) -> Tensor: ...
def alpha_dropout(
    input: Tensor,
    p: float=0.5,
    training: _Bool=False,
    inplace: _Bool=False,
    generator: Generator | None=None,
) -> Tensor:
    """Sets elements with probability p to SELU's value far below 0 and shifts and ..."""
@overload
def amax(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Largest element; NaN where there is one. Source: Array API standard 2024.12. ..."""
@overload
def amax(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def amin(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Smallest element; NaN where there is one. Source: Array API standard 2024.12. ..."""
@overload
def amin(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
def amsgrad_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    max_exp_avg_sqs: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    beta1: float=0.9,
    beta2: float=0.999,
    eps: float=1e-08,
    weight_decay: float=0.0,
    decoupled: _Bool=False,
    maximize: _Bool=False,
) -> None:
    """Adam with the largest of all mean squares so far (Reddi, Kale and Kumar, 2018) ..."""
@overload
def angle(x: Tensor) -> Tensor:
    """The angle of complex numbers in radians, from -pi to pi; of real numbers pi ..."""
@overload
def angle(input: Tensor) -> Tensor: ...
@overload
def any(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Whether any element is nonzero. Source: Array API standard 2024.12. Shapes: x of ..."""
@overload
def any(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
def arange(
    start: _Number,
    stop: _Number | None=None,
    step: _Number=1,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
    *,
    end: _Number | None=...,
) -> Tensor:
    """start, start + step, ... up to but without stop. Shapes: the result is ..."""
@overload
def arccos(x: _Operand) -> Tensor:
    """Inverse cosine, in radians. Source: Array API standard 2024.12."""
@overload
def arccos(input: _Operand) -> Tensor: ...
@overload
def arccosh(x: _Operand) -> Tensor:
    """Inverse hyperbolic cosine. Source: Array API standard 2024.12."""
@overload
def arccosh(input: _Operand) -> Tensor: ...
@overload
def arcsin(x: _Operand) -> Tensor:
    """Inverse sine, in radians. Source: Array API standard 2024.12."""
@overload
def arcsin(input: _Operand) -> Tensor: ...
@overload
def arcsinh(x: _Operand) -> Tensor:
    """Inverse hyperbolic sine. Source: Array API standard 2024.12."""
@overload
def arcsinh(input: _Operand) -> Tensor: ...
@overload
def arctan(x: _Operand) -> Tensor:
    """Inverse tangent, in radians. Source: Array API standard 2024.12."""
@overload
def arctan(input: _Operand) -> Tensor: ...
@overload
def arctan2(a: _Operand, b: _Operand) -> Tensor:
    """Angle of the point (b, a), in radians. Source: Array API standard 2024.12."""
@overload
def arctan2(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def arctanh(x: _Operand) -> Tensor:
    """Inverse hyperbolic tangent. Source: Array API standard 2024.12."""
@overload
def arctanh(input: _Operand) -> Tensor: ...
@overload
def argmax(
    x: Tensor,
    axis: int | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | None=...,
    dims: int | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Index of the first largest element (of the flattened x by default). Source: ..."""
@overload
def argmax(
    input: Tensor,
    axis: int | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | None=...,
    dims: int | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def argmin(
    x: Tensor,
    axis: int | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | None=...,
    dims: int | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Index of the first smallest element (of the flattened x by default). Source: ..."""
@overload
def argmin(
    input: Tensor,
    axis: int | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | None=...,
    dims: int | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def argsort(
    x: Tensor,
    axis: int=-1,
    descending: _Bool=False,
    stable: _Bool=True,
    *,
    dim: int=...,
    dims: int=...,
) -> Tensor:
    """The indices (int64) that put the elements along an axis in order. NaN is last, ..."""
@overload
def argsort(
    input: Tensor,
    axis: int=-1,
    descending: _Bool=False,
    stable: _Bool=True,
    *,
    dim: int=...,
    dims: int=...,
) -> Tensor: ...
def asarray(
    obj: object,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    copy: _Bool | None=None,
) -> Tensor:
    """A tensor from nested lists, numbers, or anything with the buffer protocol or ..."""
def asgd_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    averages: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    lambd: float=0.0001,
    t0: float=1000000.0,
    weight_decay: float=0.0,
    maximize: _Bool=False,
) -> None:
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992) on all params ..."""
@overload
def asin(x: _Operand) -> Tensor:
    """Inverse sine, in radians. Source: Array API standard 2024.12."""
@overload
def asin(input: _Operand) -> Tensor: ...
@overload
def asinh(x: _Operand) -> Tensor:
    """Inverse hyperbolic sine. Source: Array API standard 2024.12."""
@overload
def asinh(input: _Operand) -> Tensor: ...
@overload
def astype(x: Tensor, dtype: _DTypeLike, *, copy: _Bool=True, device: str | None=None) -> Tensor:
    """x converted to another dtype, and on another device where one is named. With ..."""
@overload
def astype(
    input: Tensor,
    dtype: _DTypeLike,
    *,
    copy: _Bool=True,
    device: str | None=None,
) -> Tensor: ...
@overload
def atan(x: _Operand) -> Tensor:
    """Inverse tangent, in radians. Source: Array API standard 2024.12."""
@overload
def atan(input: _Operand) -> Tensor: ...
@overload
def atan2(a: _Operand, b: _Operand) -> Tensor:
    """Angle of the point (b, a), in radians. Source: Array API standard 2024.12."""
@overload
def atan2(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def atanh(x: _Operand) -> Tensor:
    """Inverse hyperbolic tangent. Source: Array API standard 2024.12."""
@overload
def atanh(input: _Operand) -> Tensor: ...
def average_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
) -> None:
    """Moves all params in place by the share lr of their way to grads; equal means of ..."""
def avg_pool1d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None=None,
    padding: int | Sequence[int]=0,
    ceil_mode: _Bool=False,
    count_include_pad: _Bool=True,
) -> Tensor:
    """The mean of each window of input (batch, channels, length), or without batch; ..."""
def avg_pool2d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None=None,
    padding: int | Sequence[int]=0,
    ceil_mode: _Bool=False,
    count_include_pad: _Bool=True,
    divisor_override: int | None=None,
) -> Tensor:
    """The mean of each window of input (batch, channels, height, width), or without ..."""
def avg_pool3d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None=None,
    padding: int | Sequence[int]=0,
    ceil_mode: _Bool=False,
    count_include_pad: _Bool=True,
    divisor_override: int | None=None,
) -> Tensor:
    """The mean of each window of input (batch, channels, depth, height, width), or ..."""
@overload
def batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None=None,
    bias: Tensor | None=None,
    training: _Bool=False,
    momentum: _Operand=0.1,
    eps: float=1e-05,
) -> Tensor:
    """Each channel of (batch, channels, ...) with mean 0 and variance 1 over the ..."""
@overload
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None=None,
    bias: Tensor | None=None,
    training: _Bool=False,
    momentum: _Operand=0.1,
    eps: float=1e-05,
) -> Tensor: ...
@overload
def bernoulli(
    p: _Operand,
    size: int | Sequence[int] | None=None,
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    *,
    shape: int | Sequence[int] | None=...,
) -> Tensor:
    """1 with probability p, else 0. Where p is a tensor, shape and type are its own ..."""
@overload
def bernoulli(
    input: _Operand,
    size: int | Sequence[int] | None=None,
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    *,
    shape: int | Sequence[int] | None=...,
) -> Tensor: ...
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None=None) -> Tensor:
    """input1 @ weight[k] @ input2 + bias[k] for each k: inputs (..., in1) and (..., ..."""
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None=None,
    reduction: str='mean',
) -> Tensor:
    """Negative log-likelihood of targets from 0 to 1 under probabilities; NaN stays. ..."""
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None=None,
    reduction: str='mean',
    pos_weight: Tensor | None=None,
) -> Tensor:
    """binary_cross_entropy of sigmoid(input), without overflow; pos_weight multiplies ..."""
@overload
def bincount(x: Tensor, weights: Tensor | None=None, minlength: int=0) -> Tensor:
    """How many elements of x (n,) are 0, 1, ... up to the largest (int64), or the sums ..."""
@overload
def bincount(input: Tensor, weights: Tensor | None=None, minlength: int=0) -> Tensor: ...
def binomial(count: Tensor, prob: Tensor, generator: Generator | None=None) -> Tensor:
    """How many of count trials succeed, each with probability prob; exact up to 2^53. ..."""
@overload
def bitwise_and(a: _Operand, b: _Operand) -> Tensor:
    """Bits set in both. Source: Array API standard 2024.12."""
@overload
def bitwise_and(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def bitwise_invert(x: Tensor) -> Tensor:
    """Each bit inverted, for integers and bool. Shapes: x of any shape; the result has ..."""
@overload
def bitwise_invert(input: Tensor) -> Tensor: ...
@overload
def bitwise_left_shift(a: _Operand, b: _Operand) -> Tensor:
    """a with its bits moved up by b places; none are left from the type's width on. ..."""
@overload
def bitwise_left_shift(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def bitwise_not(x: Tensor) -> Tensor:
    """Each bit inverted, for integers and bool. Shapes: x of any shape; the result has ..."""
@overload
def bitwise_not(input: Tensor) -> Tensor: ...
@overload
def bitwise_or(a: _Operand, b: _Operand) -> Tensor:
    """Bits set in either. Source: Array API standard 2024.12."""
@overload
def bitwise_or(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def bitwise_right_shift(a: _Operand, b: _Operand) -> Tensor:
    """a with its bits moved down by b places; the sign stays. Source: Array API ..."""
@overload
def bitwise_right_shift(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def bitwise_xor(a: _Operand, b: _Operand) -> Tensor:
    """Bits set in exactly one. Source: Array API standard 2024.12."""
@overload
def bitwise_xor(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def broadcast_to(x: Tensor, shape: int | Sequence[int]) -> Tensor:
    """Axes of extent 1 repeated, as a view. Shapes: x that broadcasts to the shape ..."""
@overload
def broadcast_to(x: Tensor, *shape: int) -> Tensor: ...
@overload
def broadcast_to(input: Tensor, size: int | Sequence[int]) -> Tensor: ...
@overload
def bucketize(
    x: _Operand,
    boundaries: Tensor,
    *,
    right: _Bool=False,
    out_int32: _Bool=False,
) -> Tensor:
    """How many of the sorted boundaries (n,) lie below each element, or with ..."""
@overload
def bucketize(
    input: _Operand,
    boundaries: Tensor,
    *,
    right: _Bool=False,
    out_int32: _Bool=False,
) -> Tensor: ...
@overload
def cat(
    arrays: Sequence[Tensor],
    axis: int | None=0,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor:
    """Tensors joined along an existing axis (None: flattened). Shapes: tensors whose ..."""
@overload
def cat(
    tensors: Sequence[Tensor],
    axis: int | None=0,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor: ...
@overload
def cauchy(
    median: float,
    sigma: float,
    size: int | Sequence[int],
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor:
    """Numbers of Cauchy's distribution. Raises ValueError for sigma <= 0 and for a ..."""
@overload
def cauchy(
    median: float,
    sigma: float,
    shape: int | Sequence[int],
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def cdist(x1: Tensor, x2: Tensor, p: float=2.0) -> Tensor:
    """Distances of all rows of x1 from all of x2: (..., n, k) and (..., m, k) to (..., ..."""
@overload
def cdist(input: Tensor, other: Tensor, p: float=2.0) -> Tensor: ...
@overload
def ceil(x: _Operand) -> Tensor:
    """Smallest whole number not below x. Source: Array API standard 2024.12."""
@overload
def ceil(input: _Operand) -> Tensor: ...
@overload
def celu(x: Tensor, alpha: _Number=1.0, inplace: _Bool=False) -> Tensor:
    """x where positive, else alpha * (exp(x / alpha) - 1). Raises ValueError for an ..."""
@overload
def celu(input: Tensor, alpha: _Number=1.0, inplace: _Bool=False) -> Tensor: ...
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Images (batch, channels, ...) with the first channel of each group first, then ..."""
@overload
def chunk(
    x: Tensor,
    chunks: int,
    axis: int=0,
    *,
    dim: int=...,
    dims: int=...,
) -> tuple[Tensor, ...]:
    """At most so many parts along an axis, as views, of one extent but for the last. ..."""
@overload
def chunk(
    input: Tensor,
    chunks: int,
    axis: int=0,
    *,
    dim: int=...,
    dims: int=...,
) -> tuple[Tensor, ...]: ...
@overload
def clamp(
    x: Tensor,
    min: _Operand | None=None,
    max: _Operand | None=None,
    *,
    a_min: _Operand | None=...,
    a_max: _Operand | None=...,
) -> Tensor:
    """x limited to the range from min to max. Source: Array API standard 2024.12."""
@overload
def clamp(
    input: Tensor,
    min: _Operand | None=None,
    max: _Operand | None=None,
    *,
    a_min: _Operand | None=...,
    a_max: _Operand | None=...,
) -> Tensor: ...
@overload
def clamp_max(x: Tensor, max: _Operand) -> Tensor:
    """clip(x, max=max): the gradient at the bound is the whole one. Shapes: x and max ..."""
@overload
def clamp_max(input: Tensor, a_max: _Operand) -> Tensor: ...
@overload
def clamp_min(x: Tensor, min: _Operand) -> Tensor:
    """clip(x, min): the gradient at the bound is the whole one. Shapes: x and min ..."""
@overload
def clamp_min(input: Tensor, a_min: _Operand) -> Tensor: ...
@overload
def clip(
    x: Tensor,
    min: _Operand | None=None,
    max: _Operand | None=None,
    *,
    a_min: _Operand | None=...,
    a_max: _Operand | None=...,
) -> Tensor:
    """x limited to the range from min to max. Source: Array API standard 2024.12."""
@overload
def clip(
    input: Tensor,
    min: _Operand | None=None,
    max: _Operand | None=None,
    *,
    a_min: _Operand | None=...,
    a_max: _Operand | None=...,
) -> Tensor: ...
def clip_all(tensors: Sequence[Tensor], *, number: _Operand) -> None:
    """Limits all tensors in place to [-number, number]; NaN stays. Source: PyTorch's ..."""
@overload
def column_stack(arrays: Sequence[Tensor]) -> Tensor:
    """Tensors joined along axis 1; those of up to 1 dimension are columns. Raises ..."""
@overload
def column_stack(tensors: Sequence[Tensor]) -> Tensor: ...
@overload
def combinations(x: Tensor, r: int=2, with_replacement: _Bool=False) -> Tensor:
    """All choices of r elements of x (n,), each in the order of x, as rows (choices, ..."""
@overload
def combinations(input: Tensor, r: int=2, with_replacement: _Bool=False) -> Tensor: ...
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers of the given parts, two tensors of float32 or float64 that ..."""
@overload
def concat(
    arrays: Sequence[Tensor],
    axis: int | None=0,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor:
    """Tensors joined along an existing axis (None: flattened). Shapes: tensors whose ..."""
@overload
def concat(
    tensors: Sequence[Tensor],
    axis: int | None=0,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor: ...
@overload
def concatenate(
    arrays: Sequence[Tensor],
    axis: int | None=0,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor:
    """Tensors joined along an existing axis (None: flattened). Shapes: tensors whose ..."""
@overload
def concatenate(
    tensors: Sequence[Tensor],
    axis: int | None=0,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor: ...
@overload
def conj(x: Tensor) -> Tensor:
    """The complex conjugate; a real tensor itself. Shapes: x of any shape; the result ..."""
@overload
def conj(input: Tensor) -> Tensor: ...
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None=None,
    stride: int | Sequence[int]=1,
    padding: int | Sequence[int] | str=0,
    dilation: int | Sequence[int]=1,
    groups: int=1,
) -> Tensor:
    """Cross-correlation of input (batch, in, length) or (in, length) with weight (out, ..."""
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None=None,
    stride: int | Sequence[int]=1,
    padding: int | Sequence[int] | str=0,
    dilation: int | Sequence[int]=1,
    groups: int=1,
) -> Tensor:
    """Cross-correlation of input (batch, in, height, width) or (in, height, width) ..."""
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None=None,
    stride: int | Sequence[int]=1,
    padding: int | Sequence[int] | str=0,
    dilation: int | Sequence[int]=1,
    groups: int=1,
) -> Tensor:
    """Cross-correlation of input (batch, in, depth, height, width), or without batch, ..."""
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None=None,
    stride: int | Sequence[int]=1,
    padding: int | Sequence[int]=0,
    output_padding: int | Sequence[int]=0,
    groups: int=1,
    dilation: int | Sequence[int]=1,
) -> Tensor:
    """The gradient of conv1d's input as an op: input (batch, in, length) or (in, ..."""
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None=None,
    stride: int | Sequence[int]=1,
    padding: int | Sequence[int]=0,
    output_padding: int | Sequence[int]=0,
    groups: int=1,
    dilation: int | Sequence[int]=1,
) -> Tensor:
    """The gradient of conv2d's input as an op: input (batch, in, height, width), or ..."""
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None=None,
    stride: int | Sequence[int]=1,
    padding: int | Sequence[int]=0,
    output_padding: int | Sequence[int]=0,
    groups: int=1,
    dilation: int | Sequence[int]=1,
) -> Tensor:
    """The gradient of conv3d's input as an op: input (batch, in, depth, height, ..."""
@overload
def copysign(a: _Operand, b: _Operand) -> Tensor:
    """Magnitude of a with the sign of b. Source: Array API standard 2024.12."""
@overload
def copysign(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def cos(x: _Operand) -> Tensor:
    """Cosine; x in radians. Source: Array API standard 2024.12."""
@overload
def cos(input: _Operand) -> Tensor: ...
@overload
def cosh(x: _Operand) -> Tensor:
    """Hyperbolic cosine. Source: Array API standard 2024.12."""
@overload
def cosh(input: _Operand) -> Tensor: ...
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float=0.0,
    reduction: str='mean',
) -> Tensor:
    """1 - cosine of pairs whose target is 1, and the cosine above the margin where it ..."""
@overload
def cosine_similarity(
    x1: Tensor,
    x2: Tensor,
    axis: int=1,
    eps: float=1e-08,
    *,
    dim: int=...,
    dims: int=...,
) -> Tensor:
    """The cosine of the angle between vectors along an axis of what x1 and x2 ..."""
@overload
def cosine_similarity(
    input: Tensor,
    other: Tensor,
    axis: int=1,
    eps: float=1e-08,
    *,
    dim: int=...,
    dims: int=...,
) -> Tensor: ...
@overload
def count_nonzero(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """How many elements are not zero (int64), over all or some axes; NaN is not. ..."""
@overload
def count_nonzero(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
def cpu_info() -> dict[str, Any]:
    """What the processor can do and what of it is in use."""
@overload
def cross(x1: Tensor, x2: Tensor, *, axis: int=-1, dim: int=..., dims: int=...) -> Tensor:
    """Cross product of vectors of three numbers along an axis; other axes broadcast. ..."""
@overload
def cross(input: Tensor, other: Tensor, *, axis: int=-1, dim: int=..., dims: int=...) -> Tensor: ...
@overload
def cross_entropy(
    logits: Tensor,
    targets: Tensor,
    weight: Tensor | None=None,
    ignore_index: int=-100,
    reduction: str='mean',
    label_smoothing: float=0.0,
) -> Tensor:
    """Negative log-likelihood of integer targets (n, d, ...) under logits (n, classes, ..."""
@overload
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None=None,
    ignore_index: int=-100,
    reduction: str='mean',
    label_smoothing: float=0.0,
) -> Tensor: ...
@overload
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int=0,
    reduction: str='mean',
    zero_infinity: _Bool=False,
) -> Tensor:
    """-log of the probability of sequences of labels under log_probs (steps, batch, ..."""
@overload
def ctc_loss(
    log_probs: Tensor,
    target: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int=0,
    reduction: str='mean',
    zero_infinity: _Bool=False,
) -> Tensor: ...
@overload
def cummax(x: Tensor, axis: int) -> ValuesAndIndices:
    """The largest of all elements up to each along an axis, and where it is (int64): ..."""
@overload
def cummax(input: Tensor, dim: int) -> ValuesAndIndices: ...
@overload
def cummax(input: Tensor, dims: int) -> ValuesAndIndices: ...
@overload
def cummin(x: Tensor, axis: int) -> ValuesAndIndices:
    """The smallest of all elements up to each along an axis, and where it is (int64): ..."""
@overload
def cummin(input: Tensor, dim: int) -> ValuesAndIndices: ...
@overload
def cummin(input: Tensor, dims: int) -> ValuesAndIndices: ...
@overload
def cumprod(
    x: Tensor,
    axis: int | None=None,
    dtype: _DTypeLike | None=None,
    include_initial: _Bool=False,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor:
    """Products of all elements up to each along an axis; include_initial puts a 1 ..."""
@overload
def cumprod(
    input: Tensor,
    axis: int | None=None,
    dtype: _DTypeLike | None=None,
    include_initial: _Bool=False,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor: ...
@overload
def cumsum(
    x: Tensor,
    axis: int | None=None,
    dtype: _DTypeLike | None=None,
    include_initial: _Bool=False,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor:
    """Sums of all elements up to each along an axis; include_initial puts a 0 before ..."""
@overload
def cumsum(
    input: Tensor,
    axis: int | None=None,
    dtype: _DTypeLike | None=None,
    include_initial: _Bool=False,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor: ...
@overload
def cumulative_prod(
    x: Tensor,
    axis: int | None=None,
    dtype: _DTypeLike | None=None,
    include_initial: _Bool=False,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor:
    """Products of all elements up to each along an axis; include_initial puts a 1 ..."""
@overload
def cumulative_prod(
    input: Tensor,
    axis: int | None=None,
    dtype: _DTypeLike | None=None,
    include_initial: _Bool=False,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor: ...
@overload
def cumulative_sum(
    x: Tensor,
    axis: int | None=None,
    dtype: _DTypeLike | None=None,
    include_initial: _Bool=False,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor:
    """Sums of all elements up to each along an axis; include_initial puts a 0 before ..."""
@overload
def cumulative_sum(
    input: Tensor,
    axis: int | None=None,
    dtype: _DTypeLike | None=None,
    include_initial: _Bool=False,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor: ...
@overload
def deg2rad(x: Tensor) -> Tensor:
    """Degrees as radians. Shapes: x of any shape; the result has it. Types: floating; ..."""
@overload
def deg2rad(input: Tensor) -> Tensor: ...
def device_names() -> list[str]:
    """Devices that tensors can live on: 'null' computes nothing."""
@overload
def diag(x: Tensor, k: int=0, *, diagonal: int=...) -> Tensor:
    """A copy of the k-th diagonal of a matrix, or zeros with a vector on that ..."""
@overload
def diag(input: Tensor, k: int=0, *, diagonal: int=...) -> Tensor: ...
@overload
def diag_embed(
    x: Tensor,
    offset: int=0,
    axis1: int=-2,
    axis2: int=-1,
    *,
    dim1: int=...,
    dim2: int=...,
) -> Tensor:
    """Zeros with the last axis of x on a diagonal of the plane of two axes: its ..."""
@overload
def diag_embed(
    input: Tensor,
    offset: int=0,
    axis1: int=-2,
    axis2: int=-1,
    *,
    dim1: int=...,
    dim2: int=...,
) -> Tensor: ...
@overload
def diagflat(x: Tensor, offset: int=0) -> Tensor:
    """A matrix of zeros with all elements of x, in row-major order, on a diagonal. ..."""
@overload
def diagflat(input: Tensor, offset: int=0) -> Tensor: ...
@overload
def diagonal(
    x: Tensor,
    offset: int=0,
    axis1: int=0,
    axis2: int=1,
    *,
    dim1: int=...,
    dim2: int=...,
) -> Tensor:
    """The elements whose index along axis2 is `offset` above that along axis1, along a ..."""
@overload
def diagonal(
    input: Tensor,
    offset: int=0,
    axis1: int=0,
    axis2: int=1,
    *,
    dim1: int=...,
    dim2: int=...,
) -> Tensor: ...
@overload
def diff(
    x: Tensor,
    n: int=1,
    axis: int=-1,
    prepend: Tensor | None=None,
    append: Tensor | None=None,
    *,
    dim: int=...,
    dims: int=...,
) -> Tensor:
    """Differences of neighbours along an axis, n times, of bool whether they differ; ..."""
@overload
def diff(
    input: Tensor,
    n: int=1,
    axis: int=-1,
    prepend: Tensor | None=None,
    append: Tensor | None=None,
    *,
    dim: int=...,
    dims: int=...,
) -> Tensor: ...
@overload
def digamma(x: _Operand) -> Tensor:
    """Derivative of lgamma; NaN at whole numbers below 0. Near its zeros below 0 ..."""
@overload
def digamma(input: _Operand) -> Tensor: ...
@overload
def div(a: _Operand, b: _Operand) -> Tensor:
    """Quotient of a and b; whole numbers become floating-point first. Source: Array ..."""
@overload
def div(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def div(x: Tensor, /, other: _Operand, *, rounding_mode: str | None=None) -> Tensor: ...
@overload
def divide(a: _Operand, b: _Operand) -> Tensor:
    """Quotient of a and b; whole numbers become floating-point first. Source: Array ..."""
@overload
def divide(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def divide(x: Tensor, /, other: _Operand, *, rounding_mode: str | None=None) -> Tensor: ...
@overload
def dropout(
    x: Tensor,
    p: float=0.5,
    training: _Bool=True,
    inplace: _Bool=False,
    generator: Generator | None=None,
) -> Tensor:
    """Zeroes elements with probability p and scales the rest by 1 / (1 - p), while ..."""
@overload
def dropout(
    input: Tensor,
    p: float=0.5,
    training: _Bool=True,
    inplace: _Bool=False,
    generator: Generator | None=None,
) -> Tensor: ...
def dropout1d(
    input: Tensor,
    p: float=0.5,
    training: _Bool=True,
    inplace: _Bool=False,
    generator: Generator | None=None,
) -> Tensor:
    """Zeroes whole channels of (batch, channels, length), or without a batch, with ..."""
def dropout2d(
    input: Tensor,
    p: float=0.5,
    training: _Bool=True,
    inplace: _Bool=False,
    generator: Generator | None=None,
) -> Tensor:
    """Zeroes whole channels of (batch, channels, height, width), or of (batch, ..."""
def dropout3d(
    input: Tensor,
    p: float=0.5,
    training: _Bool=True,
    inplace: _Bool=False,
    generator: Generator | None=None,
) -> Tensor:
    """Zeroes whole channels of (batch, channels, depth, height, width), or without a ..."""
@overload
def dsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """So many parts of one extent, as views, or the parts between indices: along axis ..."""
@overload
def dsplit(input: Tensor, indices: int | Sequence[int]) -> tuple[Tensor, ...]: ...
@overload
def dsplit(input: Tensor, sections: int | Sequence[int]) -> tuple[Tensor, ...]: ...
@overload
def dstack(arrays: Sequence[Tensor]) -> Tensor:
    """Tensors joined along axis 2; a matrix (m, n) is (m, n, 1), a vector (1, n, 1). ..."""
@overload
def dstack(tensors: Sequence[Tensor]) -> Tensor: ...
@overload
def elu(x: Tensor, alpha: _Number=1.0, inplace: _Bool=False) -> Tensor:
    """x where positive, else alpha * (exp(x) - 1). Source: PyTorch's ..."""
@overload
def elu(input: Tensor, alpha: _Number=1.0, inplace: _Bool=False) -> Tensor: ...
def embedding(input: Tensor, weight: Tensor, padding_idx: int | None=None) -> Tensor:
    """Rows of weight (rows, features) at the integers of input, of any shape: ..."""
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    per_sample_weights: Tensor | None=None,
    mode: str='mean',
    padding_idx: int | None=None,
) -> Tensor:
    """Rows of weight (rows, features) at the indices of each bag, a row of input ..."""
@overload
def empty(
    shape: int | Sequence[int],
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor:
    """A tensor with unspecified contents. Shapes: the result has the shape given. ..."""
@overload
def empty(
    *shape: int,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def empty(
    size: int | Sequence[int],
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def empty_like(
    x: Tensor,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor:
    """Like empty, shape and dtype from x. Shapes: x of any shape; the result has it. ..."""
@overload
def empty_like(
    input: Tensor,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
def env_text(name: str) -> str:
    """Value of TILEWRIGHT_<name>, or '' where unset."""
def env_variables() -> dict[str, str]:
    """Environment variables that the engine reads, with their meaning."""
@overload
def eq(a: _Operand, b: _Operand) -> Tensor:
    """Whether a equals b. Source: Array API standard 2024.12."""
@overload
def eq(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def equal(a: _Operand, b: _Operand) -> Tensor:
    """Whether a equals b. Source: Array API standard 2024.12."""
@overload
def equal(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def erf(x: _Operand) -> Tensor:
    """Error function. Source: PyTorch's torch.erf."""
@overload
def erf(input: _Operand) -> Tensor: ...
@overload
def erfc(x: _Operand) -> Tensor:
    """1 - erf(x), exact where that is near 0. Source: PyTorch's torch.erfc."""
@overload
def erfc(input: _Operand) -> Tensor: ...
@overload
def erfinv(x: _Operand) -> Tensor:
    """Inverse of the error function; infinite at -1 and 1, NaN beyond. Source: ..."""
@overload
def erfinv(input: _Operand) -> Tensor: ...
@overload
def exp(x: _Operand) -> Tensor:
    """e to the power of each element. Source: Array API standard 2024.12."""
@overload
def exp(input: _Operand) -> Tensor: ...
@overload
def exp2(x: _Operand) -> Tensor:
    """2 to the power of each element. Source: PyTorch's torch.exp2."""
@overload
def exp2(input: _Operand) -> Tensor: ...
@overload
def expand_dims(x: Tensor, axis: int=0, *, dim: int=..., dims: int=...) -> Tensor:
    """A new axis of extent 1. Shapes: x of any shape; the result has one axis more, of ..."""
@overload
def expand_dims(input: Tensor, axis: int=0, *, dim: int=..., dims: int=...) -> Tensor: ...
@overload
def expit(x: _Operand) -> Tensor:
    """1 / (1 + exp(-x)). Source: PyTorch's torch.nn.functional.sigmoid."""
@overload
def expit(input: _Operand) -> Tensor: ...
@overload
def expm1(x: _Operand) -> Tensor:
    """exp(x) - 1, exact near 0. Source: Array API standard 2024.12."""
@overload
def expm1(input: _Operand) -> Tensor: ...
@overload
def exponential(
    lambd: float,
    size: int | Sequence[int],
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor:
    """Exponentially distributed numbers of mean 1 / lambd. Raises ValueError for lambd ..."""
@overload
def exponential(
    lambd: float,
    shape: int | Sequence[int],
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def eye(
    n_rows: int,
    n_cols: int | None=None,
    k: int=0,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
    *,
    m: int | None=...,
) -> Tensor:
    """Ones on the k-th diagonal, zeros elsewhere. Shapes: the result is (n_rows, ..."""
@overload
def eye(
    n: int,
    n_cols: int | None=None,
    k: int=0,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
    *,
    m: int | None=...,
) -> Tensor: ...
def feature_alpha_dropout(
    input: Tensor,
    p: float=0.5,
    training: _Bool=False,
    inplace: _Bool=False,
    generator: Generator | None=None,
) -> Tensor:
    """alpha_dropout of whole channels of (batch, channels, ...). Shapes: input (batch, ..."""
@overload
def fix(x: _Operand) -> Tensor:
    """Whole part, towards zero. Source: Array API standard 2024.12."""
@overload
def fix(input: _Operand) -> Tensor: ...
@overload
def flatten(
    x: Tensor,
    start_axis: int=0,
    end_axis: int=-1,
    *,
    start_dim: int=...,
    end_dim: int=...,
) -> Tensor:
    """Axes merged into one. Shapes: x of any shape; the result has one axis in place ..."""
@overload
def flatten(
    input: Tensor,
    start_axis: int=0,
    end_axis: int=-1,
    *,
    start_dim: int=...,
    end_dim: int=...,
) -> Tensor: ...
@overload
def flip(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
) -> Tensor:
    """Order reversed along axes (all by default), as a view. Shapes: x of any shape; ..."""
@overload
def flip(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
) -> Tensor: ...
@overload
def fliplr(x: Tensor) -> Tensor:
    """The order along axis 1 reversed, as a view. Raises ValueError below 2 ..."""
@overload
def fliplr(input: Tensor) -> Tensor: ...
@overload
def flipud(x: Tensor) -> Tensor:
    """The order along axis 0 reversed, as a view. Raises ValueError for 0 dimensions. ..."""
@overload
def flipud(input: Tensor) -> Tensor: ...
@overload
def float_power(a: Tensor, b: _Operand) -> Tensor:
    """a to the power of b in float64. Shapes: a and b broadcast; the result has their ..."""
@overload
def float_power(input: Tensor, exponent: _Operand) -> Tensor: ...
@overload
def float_power(input: Tensor, other: _Operand) -> Tensor: ...
@overload
def floor(x: _Operand) -> Tensor:
    """Largest whole number not above x. Source: Array API standard 2024.12."""
@overload
def floor(input: _Operand) -> Tensor: ...
@overload
def floor_divide(a: _Operand, b: _Operand) -> Tensor:
    """Largest whole number not above a / b; 0 for whole numbers over 0. Source: Array ..."""
@overload
def floor_divide(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def fmod(a: _Operand, b: _Operand) -> Tensor:
    """a - b * trunc(a / b): the sign of a; exact. Source: PyTorch's torch.fmod."""
@overload
def fmod(input: _Operand, other: _Operand) -> Tensor: ...
def fold(
    input: Tensor,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int]=1,
    padding: int | Sequence[int]=0,
    stride: int | Sequence[int]=1,
) -> Tensor:
    """Images (batch, channels, *output_size) as the sum of windows that are columns, ..."""
def force_kernel(op: str, name: str) -> None:
    """Forces a kernel by name on this thread; '' lifts it. Raises ValueError for an op ..."""
def forced_kernel(op: str) -> str:
    """Name of the kernel forced on this thread, or ''."""
@overload
def frac(x: Tensor) -> Tensor:
    """x - trunc(x), with the sign of x. Shapes: x of any shape; the result has it. ..."""
@overload
def frac(input: Tensor) -> Tensor: ...
@overload
def from_dlpack(x: object, *, device: str | None=None, copy: _Bool | None=None) -> Tensor:
    """A tensor over the memory of an object with __dlpack__. The host's memory is ..."""
@overload
def from_dlpack(input: object, *, device: str | None=None, copy: _Bool | None=None) -> Tensor: ...
def frombuffer(
    buffer: Buffer,
    dtype: _DTypeLike,
    shape: int | Sequence[int] | None=None,
    offset: int=0,
    *,
    size: int | Sequence[int] | None=...,
) -> Tensor:
    """A tensor over the bytes of a buffer; offset in bytes. Without a copy, except ..."""
@overload
def full(
    shape: int | Sequence[int],
    fill_value: _Number,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor:
    """A tensor of one value, of the number's own type by default. Shapes: the result ..."""
@overload
def full(
    size: int | Sequence[int],
    fill_value: _Number,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def full_like(
    x: Tensor,
    fill_value: _Number,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor:
    """Like full, shape and dtype from x. Shapes: x of any shape; the result has it. ..."""
@overload
def full_like(
    input: Tensor,
    fill_value: _Number,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def gather(x: Tensor, axis: int, index: Tensor) -> Tensor:
    """y[i, j, k] = x[i, index[i, j, k], k] for axis 1: the index has the shape of the ..."""
@overload
def gather(input: Tensor, dim: int, index: Tensor) -> Tensor: ...
@overload
def gather(input: Tensor, dims: int, index: Tensor) -> Tensor: ...
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor,
    full: _Bool=False,
    eps: float=1e-06,
    reduction: str='mean',
) -> Tensor:
    """Negative log-likelihood of targets under normal distributions of means and ..."""
@overload
def ge(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is at least b. Source: Array API standard 2024.12."""
@overload
def ge(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def gelu(x: Tensor, approximate: str='none') -> Tensor:
    """x times the share of a normal distribution below x (Hendrycks, Gimpel, 2016). ..."""
@overload
def gelu(input: Tensor, approximate: str='none') -> Tensor: ...
@overload
def geometric(
    p: float,
    size: int | Sequence[int],
    dtype: _DTypeLike=...,
    generator: Generator | None=None,
    device: str | None=None,
) -> Tensor:
    """Numbers of trials until one succeeds, each with probability p: 1, 2, ... Raises ..."""
@overload
def geometric(
    input: float,
    shape: int | Sequence[int],
    dtype: _DTypeLike=...,
    generator: Generator | None=None,
    device: str | None=None,
) -> Tensor: ...
def get_autocast_dtype(device_type: str | None=None) -> _DType:
    """The type that products run in within `autocast`; where it is off, its default."""
def get_default_dtype() -> _DType:
    """The type that set_default_dtype chose: float32."""
def get_float32_matmul_precision() -> str:
    """What float32 matmul may use."""
def get_num_threads() -> int:
    """Threads that parallel kernels use, the caller included."""
def get_thread_pinning() -> _Bool:
    """Whether workers are bound to a processor each."""
@overload
def glu(x: Tensor, axis: int=-1, *, dim: int=..., dims: int=...) -> Tensor:
    """The first half along an axis times the sigmoid of the second (Dauphin et al., ..."""
@overload
def glu(input: Tensor, axis: int=-1, *, dim: int=..., dims: int=...) -> Tensor: ...
def grad(
    outputs: Tensor | Iterable[Tensor],
    inputs: Tensor | Iterable[Tensor],
    grad_outputs: Tensor | Iterable[Tensor | None] | None=None,
    retain_graph: _Bool | None=None,
    create_graph: _Bool=False,
    allow_unused: _Bool=False,
    plan: _Bool=False,
    only_inputs: _Bool=True,
    materialize_grads: _Bool=False,
) -> tuple[Tensor, ...]:
    """Gradients of outputs with respect to inputs, as a tuple; no grad is touched. ..."""
@overload
def greater(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is above b. Source: Array API standard 2024.12."""
@overload
def greater(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def greater_equal(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is at least b. Source: Array API standard 2024.12."""
@overload
def greater_equal(input: _Operand, other: _Operand) -> Tensor: ...
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str='bilinear',
    padding_mode: str='zeros',
    align_corners: _Bool=False,
) -> Tensor:
    """Elements of images (batch, channels, height, width) at places grid (batch, rows, ..."""
@overload
def group_norm(
    x: Tensor,
    num_groups: int,
    weight: Tensor | None=None,
    bias: Tensor | None=None,
    eps: float=1e-05,
) -> Tensor:
    """Groups of the channels of each sample of (batch, channels, ...) with mean 0 and ..."""
@overload
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None=None,
    bias: Tensor | None=None,
    eps: float=1e-05,
) -> Tensor: ...
@overload
def gru_cell(
    x: Tensor,
    h: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None=None,
    bias_hh: Tensor | None=None,
) -> Tensor:
    """One step of gru_layer: x (batch, in), h and the result (batch, hidden). Shapes: ..."""
@overload
def gru_cell(
    input: Tensor,
    h: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None=None,
    bias_hh: Tensor | None=None,
) -> Tensor: ...
@overload
def gru_layer(
    x: Tensor,
    h0: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None=None,
    bias_hh: Tensor | None=None,
    reverse: _Bool=False,
) -> tuple[Tensor, Tensor]:
    """All steps of x (steps, batch, in) through a GRU from h0 (batch, hidden): the ..."""
@overload
def gru_layer(
    input: Tensor,
    h0: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None=None,
    bias_hh: Tensor | None=None,
    reverse: _Bool=False,
) -> tuple[Tensor, Tensor]: ...
@overload
def gt(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is above b. Source: Array API standard 2024.12."""
@overload
def gt(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def hardshrink(x: Tensor, lambd: _Number=0.5) -> Tensor:
    """x, and 0 where it is within lambd of 0. Source: PyTorch's ..."""
@overload
def hardshrink(input: Tensor, lambd: _Number=0.5) -> Tensor: ...
@overload
def hardsigmoid(x: _Operand, inplace: _Bool=False) -> Tensor:
    """relu6(x + 3) / 6, lines in the place of sigmoid. Source: PyTorch's ..."""
@overload
def hardsigmoid(input: _Operand, inplace: _Bool=False) -> Tensor: ...
@overload
def hardswish(x: _Operand, inplace: _Bool=False) -> Tensor:
    """x * relu6(x + 3) / 6, lines in the place of silu. Source: PyTorch's ..."""
@overload
def hardswish(input: _Operand, inplace: _Bool=False) -> Tensor: ...
@overload
def hardtanh(
    x: Tensor,
    min_val: _Number=-1.0,
    max_val: _Number=1.0,
    inplace: _Bool=False,
) -> Tensor:
    """x limited to the range from min_val to max_val. Raises ValueError for a min_val ..."""
@overload
def hardtanh(
    input: Tensor,
    min_val: _Number=-1.0,
    max_val: _Number=1.0,
    inplace: _Bool=False,
) -> Tensor: ...
@overload
def heaviside(x: Tensor, values: Tensor) -> Tensor:
    """0 below 0, 1 above, values at 0; NaN stays. Shapes: x and values broadcast; the ..."""
@overload
def heaviside(input: Tensor, values: Tensor) -> Tensor: ...
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float=1.0,
    reduction: str='mean',
) -> Tensor:
    """Distances as they are where the target is 1, and what they lack of the margin ..."""
@overload
def histc(
    x: Tensor,
    bins: int=100,
    min: float=0.0,
    max: float=0.0,
    *,
    a_min: float=...,
    a_max: float=...,
) -> Tensor:
    """How many elements lie in each of so many bins of equal width from min to max, in ..."""
@overload
def histc(
    input: Tensor,
    bins: int=100,
    min: float=0.0,
    max: float=0.0,
    *,
    a_min: float=...,
    a_max: float=...,
) -> Tensor: ...
@overload
def hsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """So many parts of one extent, as views, or the parts between indices: along axis ..."""
@overload
def hsplit(input: Tensor, indices: int | Sequence[int]) -> tuple[Tensor, ...]: ...
@overload
def hsplit(input: Tensor, sections: int | Sequence[int]) -> tuple[Tensor, ...]: ...
@overload
def hstack(arrays: Sequence[Tensor]) -> Tensor:
    """Tensors joined along axis 1, of up to 1 dimension along axis 0. Raises ..."""
@overload
def hstack(tensors: Sequence[Tensor]) -> Tensor: ...
def huber_loss(input: Tensor, target: Tensor, reduction: str='mean', delta: float=1.0) -> Tensor:
    """Differences d as d * d / 2 below delta, and delta * (|d| - delta / 2) above ..."""
@overload
def hypot(a: _Operand, b: _Operand) -> Tensor:
    """sqrt(a * a + b * b) without overflow. Source: Array API standard 2024.12."""
@overload
def hypot(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def imag(x: Tensor) -> Tensor:
    """The imaginary part, a view in the same memory. Shapes: x of any shape; the ..."""
@overload
def imag(input: Tensor) -> Tensor: ...
@overload
def index_add(x: Tensor, axis: int, index: Tensor, source: Tensor, *, alpha: _Number=1) -> Tensor:
    """A copy of x with the parts of alpha * source added at indices along an axis, in ..."""
@overload
def index_add(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    *,
    alpha: _Number=1,
) -> Tensor: ...
@overload
def index_add(
    input: Tensor,
    dims: int,
    index: Tensor,
    source: Tensor,
    *,
    alpha: _Number=1,
) -> Tensor: ...
@overload
def index_copy(x: Tensor, axis: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy of x with the parts of source at indices along an axis; of several for ..."""
@overload
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor: ...
@overload
def index_copy(input: Tensor, dims: int, index: Tensor, source: Tensor) -> Tensor: ...
@overload
def index_fill(x: Tensor, axis: int, index: Tensor, value: _Operand) -> Tensor:
    """A copy of x with one number at indices along an axis. index is a vector, or a ..."""
@overload
def index_fill(input: Tensor, dim: int, index: Tensor, value: _Operand) -> Tensor: ...
@overload
def index_fill(input: Tensor, dims: int, index: Tensor, value: _Operand) -> Tensor: ...
@overload
def index_select(x: Tensor, axis: int, index: Tensor) -> Tensor:
    """The parts of x at indices along an axis, a copy. index is a vector, or a number; ..."""
@overload
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor: ...
@overload
def index_select(input: Tensor, dims: int, index: Tensor) -> Tensor: ...
@overload
def instance_norm(
    x: Tensor,
    running_mean: Tensor | None=None,
    running_var: Tensor | None=None,
    weight: Tensor | None=None,
    bias: Tensor | None=None,
    use_input_stats: _Bool=True,
    momentum: _Operand=0.1,
    eps: float=1e-05,
) -> Tensor:
    """Each channel of each sample of (batch, channels, ...) with mean 0 and variance ..."""
@overload
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None=None,
    running_var: Tensor | None=None,
    weight: Tensor | None=None,
    bias: Tensor | None=None,
    use_input_stats: _Bool=True,
    momentum: _Operand=0.1,
    eps: float=1e-05,
) -> Tensor: ...
def is_anomaly_enabled() -> _Bool:
    """Whether this thread looks for NaN in gradients."""
def is_autocast_enabled(device_type: str | None=None) -> _Bool:
    """Whether products of this thread run in a narrower type, on any device."""
def is_batch_invariant() -> _Bool:
    """Whether this thread's kernels give a row the same bits whatever the rows beside it."""
def is_grad_enabled() -> _Bool:
    """Whether this thread's ops are recorded."""
@overload
def isclose(
    a: Tensor,
    b: Tensor,
    rtol: float=1e-05,
    atol: float=1e-08,
    equal_nan: _Bool=False,
) -> Tensor:
    """Whether a and b are equal or abs(a - b) <= atol + rtol * abs(b), in float64. ..."""
@overload
def isclose(
    input: Tensor,
    other: Tensor,
    rtol: float=1e-05,
    atol: float=1e-08,
    equal_nan: _Bool=False,
) -> Tensor: ...
@overload
def isfinite(x: _Operand) -> Tensor:
    """Whether neither infinite nor NaN. Source: Array API standard 2024.12."""
@overload
def isfinite(input: _Operand) -> Tensor: ...
def isin(
    elements: _Operand,
    test_elements: _Operand,
    *,
    assume_unique: _Bool=False,
    invert: _Bool=False,
) -> Tensor:
    """Whether each element is among test_elements, or with invert=True is not; NaN ..."""
@overload
def isinf(x: _Operand) -> Tensor:
    """Whether infinite. Source: Array API standard 2024.12."""
@overload
def isinf(input: _Operand) -> Tensor: ...
@overload
def isnan(x: _Operand) -> Tensor:
    """Whether not a number. Source: Array API standard 2024.12."""
@overload
def isnan(input: _Operand) -> Tensor: ...
@overload
def isneginf(x: Tensor) -> Tensor:
    """Whether infinite and negative. Shapes: x of any shape; the result has it. Types: ..."""
@overload
def isneginf(input: Tensor) -> Tensor: ...
@overload
def isposinf(x: Tensor) -> Tensor:
    """Whether infinite and positive. Shapes: x of any shape; the result has it. Types: ..."""
@overload
def isposinf(input: Tensor) -> Tensor: ...
def kernel_ops() -> list[str]:
    """Ops whose kernels, or body in their place, can be forced."""
def kernels_of_op(op: str) -> list[dict[str, Any]]:
    """Kernels of an op in ladder order, then its body."""
def kl_div(input: Tensor, target: Tensor, reduction: str='mean', log_target: _Bool=False) -> Tensor:
    """target * (log(target) - input): Kullback and Leibler's divergence of log- ..."""
@overload
def kthvalue(
    x: Tensor,
    k: int,
    axis: int=-1,
    keepdims: _Bool=False,
    *,
    dim: int=...,
    dims: int=...,
    keepdim: _Bool=...,
) -> ValuesAndIndices:
    """The k-th smallest element along an axis, from 1 on, and its index (int64). Of ..."""
@overload
def kthvalue(
    input: Tensor,
    k: int,
    axis: int=-1,
    keepdims: _Bool=False,
    *,
    dim: int=...,
    dims: int=...,
    keepdim: _Bool=...,
) -> ValuesAndIndices: ...
@overload
def l0_norm(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """How many elements are not 0, over all or some axes; NaN is not. Source: ..."""
@overload
def l0_norm(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
def l1_loss(input: Tensor, target: Tensor, reduction: str='mean') -> Tensor:
    """Absolute differences, averaged by default; shapes must be equal. Shapes: input ..."""
@overload
def l1_norm(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Sum of absolute values over all or some axes. Source: PyTorch's ..."""
@overload
def l1_norm(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def l2_norm(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Root of the sum of squares over all or some axes, which neither overflow nor ..."""
@overload
def l2_norm(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def layer_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None=None,
    bias: Tensor | None=None,
    eps: float=1e-05,
) -> Tensor:
    """The last axes, of normalized_shape, with mean 0 and variance 1, then scaled by ..."""
@overload
def layer_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None=None,
    bias: Tensor | None=None,
    eps: float=1e-05,
) -> Tensor: ...
@overload
def le(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is at most b. Source: Array API standard 2024.12."""
@overload
def le(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def leaky_relu(x: Tensor, negative_slope: _Operand=0.01, inplace: _Bool=False) -> Tensor:
    """x where positive, else x times negative_slope. Source: PyTorch's ..."""
@overload
def leaky_relu(input: Tensor, negative_slope: _Operand=0.01, inplace: _Bool=False) -> Tensor: ...
@overload
def lerp(x: _Operand, end: _Operand, weight: _Operand) -> Tensor:
    """a + weight * (b - a): a where the weight is 0, and end where it is 1, exactly. ..."""
@overload
def lerp(input: _Operand, end: _Operand, weight: _Operand) -> Tensor: ...
@overload
def less(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is below b. Source: Array API standard 2024.12."""
@overload
def less(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def less_equal(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is at most b. Source: Array API standard 2024.12."""
@overload
def less_equal(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def lgamma(x: _Operand) -> Tensor:
    """Logarithm of the magnitude of the gamma function. Near its zeros below 0 errors ..."""
@overload
def lgamma(input: _Operand) -> Tensor: ...
@overload
def linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None=None,
    *,
    activation: str | None=None,
) -> Tensor:
    """x @ weight.T + bias for x (..., in), weight (out, in), bias (out,); with ..."""
@overload
def linear(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None=None,
    *,
    activation: str | None=None,
) -> Tensor: ...
@overload
def linspace(
    start: _Number,
    stop: _Number,
    num: int,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    endpoint: _Bool=True,
    requires_grad: _Bool=False,
) -> Tensor:
    """num evenly spaced numbers from start to stop, which may be complex. Raises ..."""
@overload
def linspace(
    start: _Number,
    end: _Number,
    steps: int,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    endpoint: _Bool=True,
    requires_grad: _Bool=False,
) -> Tensor: ...
def lion_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    beta1: float=0.9,
    beta2: float=0.99,
    weight_decay: float=0.0,
    maximize: _Bool=False,
) -> None:
    """Lion on all params in place. Source: Chen et al., Symbolic discovery of ..."""
@overload
def local_response_norm(
    input: Tensor,
    size: int,
    alpha: float=0.0001,
    beta: float=0.75,
    k: float=1.0,
) -> Tensor:
    """input / (k + alpha * mean of the squares of size neighbouring channels) ** beta, ..."""
@overload
def local_response_norm(
    input: Tensor,
    shape: int,
    alpha: float=0.0001,
    beta: float=0.75,
    k: float=1.0,
) -> Tensor: ...
@overload
def log(x: _Operand) -> Tensor:
    """Natural logarithm. Source: Array API standard 2024.12."""
@overload
def log(input: _Operand) -> Tensor: ...
@overload
def log10(x: _Operand) -> Tensor:
    """Logarithm to base 10. Source: Array API standard 2024.12."""
@overload
def log10(input: _Operand) -> Tensor: ...
@overload
def log1p(x: _Operand) -> Tensor:
    """log(1 + x), exact near 0. Source: Array API standard 2024.12."""
@overload
def log1p(input: _Operand) -> Tensor: ...
@overload
def log2(x: _Operand) -> Tensor:
    """Logarithm to base 2. Source: Array API standard 2024.12."""
@overload
def log2(input: _Operand) -> Tensor: ...
@overload
def log_normal(
    mean: float,
    std: float,
    size: int | Sequence[int],
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor:
    """Numbers whose logarithms are normally distributed. Raises ValueError for std <= ..."""
@overload
def log_normal(
    mean: float,
    std: float,
    shape: int | Sequence[int],
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def log_softmax(
    x: Tensor,
    axis: int=-1,
    dtype: _DTypeLike | None=None,
    *,
    dim: int=...,
    dims: int=...,
) -> Tensor:
    """log(softmax(x)), computed in one pass, of x as dtype where that is given. ..."""
@overload
def log_softmax(
    input: Tensor,
    axis: int=-1,
    dtype: _DTypeLike | None=None,
    *,
    dim: int=...,
    dims: int=...,
) -> Tensor: ...
@overload
def logaddexp(a: _Operand, b: _Operand) -> Tensor:
    """log(exp(a) + exp(b)), without overflow. Source: Array API standard 2024.12."""
@overload
def logaddexp(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def logaddexp2(a: Tensor, b: Tensor) -> Tensor:
    """log2(2 ** a + 2 ** b), without overflow. Shapes: a and b broadcast; the result ..."""
@overload
def logaddexp2(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def logcumsumexp(x: Tensor, axis: int) -> Tensor:
    """log(sum(exp(x))) of all elements up to each along an axis, whatever their range. ..."""
@overload
def logcumsumexp(input: Tensor, dim: int) -> Tensor: ...
@overload
def logcumsumexp(input: Tensor, dims: int) -> Tensor: ...
@overload
def logical_and(a: _Operand, b: _Operand) -> Tensor:
    """Whether both are nonzero. Source: Array API standard 2024.12."""
@overload
def logical_and(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def logical_not(x: _Operand) -> Tensor:
    """Whether zero. Source: Array API standard 2024.12."""
@overload
def logical_not(input: _Operand) -> Tensor: ...
@overload
def logical_or(a: _Operand, b: _Operand) -> Tensor:
    """Whether either is nonzero. Source: Array API standard 2024.12."""
@overload
def logical_or(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def logical_xor(a: _Operand, b: _Operand) -> Tensor:
    """Whether exactly one is nonzero. Source: Array API standard 2024.12."""
@overload
def logical_xor(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def logit(x: Tensor, eps: float | None=None) -> Tensor:
    """log(x / (1 - x)), the inverse of sigmoid; x is limited to the range from eps to ..."""
@overload
def logit(input: Tensor, eps: float | None=None) -> Tensor: ...
@overload
def logsigmoid(x: _Operand) -> Tensor:
    """log(sigmoid(x)), without overflow. Source: PyTorch's torch.nn.functional.logsigmoid."""
@overload
def logsigmoid(input: _Operand) -> Tensor: ...
@overload
def logsumexp(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """log(sum(exp(x))) without overflow. Shapes: x of any shape; the result lacks the ..."""
@overload
def logsumexp(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def lstm_cell(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None=None,
    bias_hh: Tensor | None=None,
) -> tuple[Tensor, Tensor]:
    """One step of lstm_layer: x (batch, in); h and c (batch, hidden), and so the new ..."""
@overload
def lstm_cell(
    input: Tensor,
    h: Tensor,
    c: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None=None,
    bias_hh: Tensor | None=None,
) -> tuple[Tensor, Tensor]: ...
@overload
def lstm_layer(
    x: Tensor,
    h0: Tensor,
    c0: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None=None,
    bias_hh: Tensor | None=None,
    reverse: _Bool=False,
) -> tuple[Tensor, Tensor, Tensor]:
    """All steps of x (steps, batch, in) through an LSTM from h0 and c0 (batch, ..."""
@overload
def lstm_layer(
    input: Tensor,
    h0: Tensor,
    c0: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None=None,
    bias_hh: Tensor | None=None,
    reverse: _Bool=False,
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def lt(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is below b. Source: Array API standard 2024.12."""
@overload
def lt(input: _Operand, other: _Operand) -> Tensor: ...
def manual_seed(seed: int) -> Generator:
    """Seeds the default generator and returns it. Raises ValueError for a seed below 0 ..."""
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float=0.0,
    reduction: str='mean',
) -> Tensor:
    """max(0, margin - target * (input1 - input2)): 0 where the first is above the ..."""
@overload
def masked_fill(x: Tensor, mask: Tensor, value: _Operand) -> Tensor:
    """x with one number where the mask is true; both are broadcast, the dtype is that ..."""
@overload
def masked_fill(input: Tensor, mask: Tensor, value: _Operand) -> Tensor: ...
@overload
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with the elements of source, in order, where the mask is true; x and mask are ..."""
@overload
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor: ...
@overload
def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """A vector of the elements where the mask is true; both are broadcast. Raises ..."""
@overload
def masked_select(input: Tensor, mask: Tensor) -> Tensor: ...
@overload
def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Matrix product; 1-D operands are vectors, leading axes are broadcast batches. ..."""
@overload
def matmul(input: Tensor, other: Tensor) -> Tensor: ...
def matmul_tunables() -> list[dict[str, Any]]:
    """Numbers of the matmul ladder that depend on the machine: in force, default, limits."""
@overload
def matrix_transpose(x: Tensor) -> Tensor:
    """The last two axes swapped, as a view. Raises ValueError below 2 dimensions. ..."""
@overload
def matrix_transpose(input: Tensor) -> Tensor: ...
@overload
def max(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Largest element; NaN where there is one. Source: Array API standard 2024.12. ..."""
@overload
def max(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def max(x: Tensor, *, keepdims: _Bool=False, dim: int, keepdim: _Bool=...) -> ValuesAndIndices: ...
@overload
def max(
    input: Tensor,
    *,
    keepdims: _Bool=False,
    dim: int,
    keepdim: _Bool=...,
) -> ValuesAndIndices: ...
@overload
def max(x: Tensor, other: Tensor) -> Tensor: ...
def max_pool1d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None=None,
    padding: int | Sequence[int]=0,
    dilation: int | Sequence[int]=1,
    ceil_mode: _Bool=False,
) -> Tensor:
    """The largest element of each window of input (batch, channels, length), or ..."""
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None=None,
    padding: int | Sequence[int]=0,
    dilation: int | Sequence[int]=1,
    ceil_mode: _Bool=False,
) -> tuple[Tensor, Tensor]:
    """The results of max_pool1d, and where in its plane each lies: int64, in row-major ..."""
def max_pool2d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None=None,
    padding: int | Sequence[int]=0,
    dilation: int | Sequence[int]=1,
    ceil_mode: _Bool=False,
) -> Tensor:
    """The largest element of each window of input (batch, channels, height, width), or ..."""
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None=None,
    padding: int | Sequence[int]=0,
    dilation: int | Sequence[int]=1,
    ceil_mode: _Bool=False,
) -> tuple[Tensor, Tensor]:
    """The results of max_pool2d, and where in its plane each lies: int64, in row-major ..."""
def max_pool3d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None=None,
    padding: int | Sequence[int]=0,
    dilation: int | Sequence[int]=1,
    ceil_mode: _Bool=False,
) -> Tensor:
    """The largest element of each window of input (batch, channels, depth, height, ..."""
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None=None,
    padding: int | Sequence[int]=0,
    dilation: int | Sequence[int]=1,
    ceil_mode: _Bool=False,
) -> tuple[Tensor, Tensor]:
    """The results of max_pool3d, and where in its plane each lies: int64, in row-major ..."""
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None=None,
    padding: int | Sequence[int]=0,
    output_size: int | Sequence[int] | None=None,
) -> Tensor:
    """Planes of zeros with the elements of input at the places that max pooling's ..."""
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None=None,
    padding: int | Sequence[int]=0,
    output_size: int | Sequence[int] | None=None,
) -> Tensor:
    """Planes of zeros with the elements of input at the places that max pooling's ..."""
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None=None,
    padding: int | Sequence[int]=0,
    output_size: int | Sequence[int] | None=None,
) -> Tensor:
    """Planes of zeros with the elements of input at the places that max pooling's ..."""
@overload
def max_with_indices(
    x: Tensor,
    axis: int=-1,
    keepdims: _Bool=False,
    *,
    dim: int=...,
    dims: int=...,
    keepdim: _Bool=...,
) -> ValuesAndIndices:
    """The largest element along an axis, and its index (int64): of equal ones the ..."""
@overload
def max_with_indices(
    input: Tensor,
    axis: int=-1,
    keepdims: _Bool=False,
    *,
    dim: int=...,
    dims: int=...,
    keepdim: _Bool=...,
) -> ValuesAndIndices: ...
@overload
def maximum(a: _Operand, b: _Operand) -> Tensor:
    """Larger of a and b; NaN if either is. Source: Array API standard 2024.12."""
@overload
def maximum(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def mean(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Mean over all or some axes, in x's floating type, or in dtype, which integers ..."""
@overload
def mean(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def median(
    x: Tensor,
    axis: int | None=None,
    keepdims: _Bool=False,
    *,
    dims: int | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Median of all elements or along an axis: of an even number the mean of the two ..."""
@overload
def median(
    input: Tensor,
    axis: int | None=None,
    keepdims: _Bool=False,
    *,
    dims: int | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def median(
    x: Tensor,
    *,
    keepdims: _Bool=False,
    dim: int,
    keepdim: _Bool=...,
) -> ValuesAndIndices: ...
@overload
def median(
    input: Tensor,
    *,
    keepdims: _Bool=False,
    dim: int,
    keepdim: _Bool=...,
) -> ValuesAndIndices: ...
@overload
def median_with_indices(
    x: Tensor,
    axis: int=-1,
    keepdims: _Bool=False,
    *,
    dim: int=...,
    dims: int=...,
    keepdim: _Bool=...,
) -> ValuesAndIndices:
    """The median along an axis, of an even number the lower of the two in the middle, ..."""
@overload
def median_with_indices(
    input: Tensor,
    axis: int=-1,
    keepdims: _Bool=False,
    *,
    dim: int=...,
    dims: int=...,
    keepdim: _Bool=...,
) -> ValuesAndIndices: ...
def memory_reset_peaks() -> None:
    """Starts the peak figures anew."""
def memory_stats() -> dict[str, Any]:
    """Figures of the memory pool, in bytes and counts."""
def memory_trim() -> int:
    """Gives unused memory back to the system; returns bytes."""
@overload
def min(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Smallest element; NaN where there is one. Source: Array API standard 2024.12. ..."""
@overload
def min(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def min(x: Tensor, *, keepdims: _Bool=False, dim: int, keepdim: _Bool=...) -> ValuesAndIndices: ...
@overload
def min(
    input: Tensor,
    *,
    keepdims: _Bool=False,
    dim: int,
    keepdim: _Bool=...,
) -> ValuesAndIndices: ...
@overload
def min(x: Tensor, other: Tensor) -> Tensor: ...
@overload
def min_with_indices(
    x: Tensor,
    axis: int=-1,
    keepdims: _Bool=False,
    *,
    dim: int=...,
    dims: int=...,
    keepdim: _Bool=...,
) -> ValuesAndIndices:
    """The smallest element along an axis, and its index (int64): of equal ones the ..."""
@overload
def min_with_indices(
    input: Tensor,
    axis: int=-1,
    keepdims: _Bool=False,
    *,
    dim: int=...,
    dims: int=...,
    keepdim: _Bool=...,
) -> ValuesAndIndices: ...
@overload
def minimum(a: _Operand, b: _Operand) -> Tensor:
    """Smaller of a and b; NaN if either is. Source: Array API standard 2024.12."""
@overload
def minimum(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def mish(x: _Operand, inplace: _Bool=False) -> Tensor:
    """x * tanh(softplus(x)). Source: PyTorch's torch.nn.functional.mish."""
@overload
def mish(input: _Operand, inplace: _Bool=False) -> Tensor: ...
def momentum_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    momentum_buffers: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    momentum: float,
    dampening: float=0.0,
    weight_decay: float=0.0,
    maximize: _Bool=False,
) -> None:
    """Stochastic gradient descent with momentum (Polyak, 1964) on all params in place. ..."""
@overload
def moveaxis(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """The axes `source` at the places `destination`, the others in their order, as a ..."""
@overload
def moveaxis(
    input: Tensor,
    source: int | Sequence[int],
    destination: int | Sequence[int],
) -> Tensor: ...
@overload
def movedim(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """The axes `source` at the places `destination`, the others in their order, as a ..."""
@overload
def movedim(
    input: Tensor,
    source: int | Sequence[int],
    destination: int | Sequence[int],
) -> Tensor: ...
@overload
def mse_loss(x: Tensor, y: Tensor, reduction: str='mean') -> Tensor:
    """Squared differences, averaged by default. 16-bit numbers are squared and added ..."""
@overload
def mse_loss(input: Tensor, target: Tensor, reduction: str='mean') -> Tensor: ...
@overload
def mul(a: _Operand, b: _Operand) -> Tensor:
    """Product of a and b. Source: Array API standard 2024.12."""
@overload
def mul(input: _Operand, other: _Operand) -> Tensor: ...
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int=1,
    margin: float=1.0,
    weight: Tensor | None=None,
    reduction: str='mean',
) -> Tensor:
    """max(0, margin - input[target] + input[i]) ** p of all other classes i, over the ..."""
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str='mean') -> Tensor:
    """max(0, 1 - input[label] + input[i]) of all labels and all classes i that are ..."""
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None=None,
    reduction: str='mean',
) -> Tensor:
    """The mean over the classes, along the last axis, of ..."""
@overload
def multinomial(
    probabilities: Tensor,
    num_samples: int,
    replacement: _Bool=False,
    generator: Generator | None=None,
) -> Tensor:
    """Class numbers (int64) drawn from rows of probabilities (n, classes) or from ..."""
@overload
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: _Bool=False,
    generator: Generator | None=None,
) -> Tensor: ...
@overload
def multiply(a: _Operand, b: _Operand) -> Tensor:
    """Product of a and b. Source: Array API standard 2024.12."""
@overload
def multiply(input: _Operand, other: _Operand) -> Tensor: ...
def nadam_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    beta1: float=0.9,
    beta2: float=0.999,
    eps: float=1e-08,
    weight_decay: float=0.0,
    momentum_decay: float=0.004,
    decoupled: _Bool=False,
    maximize: _Bool=False,
    mu_product: float=0.0,
) -> None:
    """NAdam (Dozat, 2016) on all params in place; mu_product is that of the steps ..."""
@overload
def nan_to_num(
    x: Tensor,
    nan: float=0.0,
    posinf: float | None=None,
    neginf: float | None=None,
) -> Tensor:
    """x with numbers for NaN and the infinities, the type's largest and least by ..."""
@overload
def nan_to_num(
    input: Tensor,
    nan: float=0.0,
    posinf: float | None=None,
    neginf: float | None=None,
) -> Tensor: ...
@overload
def nanmean(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Mean over all or some axes of what is no NaN; NaN where nothing is. Shapes: x of ..."""
@overload
def nanmean(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def nanmedian(
    x: Tensor,
    axis: int | None=None,
    keepdims: _Bool=False,
    *,
    dims: int | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Median without NaN of all elements or along an axis: of an even number the mean ..."""
@overload
def nanmedian(
    input: Tensor,
    axis: int | None=None,
    keepdims: _Bool=False,
    *,
    dims: int | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def nanmedian(
    x: Tensor,
    *,
    keepdims: _Bool=False,
    dim: int,
    keepdim: _Bool=...,
) -> ValuesAndIndices: ...
@overload
def nanmedian(
    input: Tensor,
    *,
    keepdims: _Bool=False,
    dim: int,
    keepdim: _Bool=...,
) -> ValuesAndIndices: ...
@overload
def nanmedian_with_indices(
    x: Tensor,
    axis: int=-1,
    keepdims: _Bool=False,
    *,
    dim: int=...,
    dims: int=...,
    keepdim: _Bool=...,
) -> ValuesAndIndices:
    """The median without NaN along an axis, of an even number the lower of the two in ..."""
@overload
def nanmedian_with_indices(
    input: Tensor,
    axis: int=-1,
    keepdims: _Bool=False,
    *,
    dim: int=...,
    dims: int=...,
    keepdim: _Bool=...,
) -> ValuesAndIndices: ...
@overload
def nanquantile(
    x: Tensor,
    q: _Operand,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    interpolation: str='linear',
    method: str=...,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """The element at the place q * (n - 1) of the n elements that are not NaN in ..."""
@overload
def nanquantile(
    input: Tensor,
    q: _Operand,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    interpolation: str='linear',
    method: str=...,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def nansum(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Sum over all or some axes of what is no NaN; of integers in 64 bits. Source: ..."""
@overload
def nansum(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def narrow(x: Tensor, axis: int, start: int, length: int) -> Tensor:
    """`length` places along an axis from start on, as a view. Raises IndexError for a ..."""
@overload
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor: ...
@overload
def narrow(input: Tensor, dims: int, start: int, length: int) -> Tensor: ...
@overload
def ne(a: _Operand, b: _Operand) -> Tensor:
    """Whether a differs from b. Source: Array API standard 2024.12."""
@overload
def ne(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def neg(x: _Operand) -> Tensor:
    """Negative of each element. Source: Array API standard 2024.12."""
@overload
def neg(input: _Operand) -> Tensor: ...
@overload
def negative(x: _Operand) -> Tensor:
    """Negative of each element. Source: Array API standard 2024.12."""
@overload
def negative(input: _Operand) -> Tensor: ...
def nesterov_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    momentum_buffers: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    momentum: float,
    dampening: float=0.0,
    weight_decay: float=0.0,
    maximize: _Bool=False,
) -> None:
    """Stochastic gradient descent with Nesterov's momentum (Sutskever et al., 2013) on ..."""
@overload
def nextafter(a: _Operand, b: _Operand) -> Tensor:
    """The next number of the type after a towards b; of 16-bit types that of float32, ..."""
@overload
def nextafter(input: _Operand, other: _Operand) -> Tensor: ...
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None=None,
    ignore_index: int=-100,
    reduction: str='mean',
) -> Tensor:
    """-input[target] of log-likelihoods (n, classes, d, ...) and class indices (n, d, ..."""
@overload
def nonzero(x: Tensor) -> tuple[Tensor, ...]:
    """Positions of the nonzero elements: one int64 tensor for each axis, in row-major ..."""
@overload
def nonzero(input: Tensor) -> tuple[Tensor, ...]: ...
@overload
def nonzero(x: Tensor, /, *, as_tuple: _Bool=True) -> Any: ...
@overload
def normal(
    mean: float,
    std: float,
    size: int | Sequence[int],
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    requires_grad: _Bool=False,
    device: str | None=None,
) -> Tensor:
    """Normally distributed numbers (Box and Muller, 1958). Shapes: the result has the ..."""
@overload
def normal(
    mean: float,
    std: float,
    shape: int | Sequence[int],
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    requires_grad: _Bool=False,
    device: str | None=None,
) -> Tensor: ...
@overload
def normal(
    mean: Tensor | float,
    std: Tensor | float=1.0,
    *,
    generator: Generator | None=None,
) -> Tensor: ...
@overload
def not_equal(a: _Operand, b: _Operand) -> Tensor:
    """Whether a differs from b. Source: Array API standard 2024.12."""
@overload
def not_equal(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def one_hot(indices: Tensor, num_classes: int, dtype: _DTypeLike=...) -> Tensor:
    """1 at each index along a new last axis, else 0. Shapes: indices of any shape; the ..."""
@overload
def one_hot(tensor: Tensor, num_classes: int, dtype: _DTypeLike=...) -> Tensor: ...
@overload
def ones(
    shape: int | Sequence[int],
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor:
    """A tensor of ones. Shapes: the result has the shape given. Types: all. Result: ..."""
@overload
def ones(
    *shape: int,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def ones(
    size: int | Sequence[int],
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def ones_like(
    x: Tensor,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor:
    """Like ones, shape and dtype from x. Shapes: x of any shape; the result has it. ..."""
@overload
def ones_like(
    input: Tensor,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def pad(
    x: Tensor,
    pad: int | Sequence[int],
    mode: str='constant',
    value: _Number | None=None,
) -> Tensor:
    """Elements around x: widths in front of and behind the last axis, then the one ..."""
@overload
def pad(
    input: Tensor,
    pad: int | Sequence[int],
    mode: str='constant',
    value: _Number | None=None,
) -> Tensor: ...
@overload
def pairwise_distance(
    x1: Tensor,
    x2: Tensor,
    p: float=2.0,
    eps: float=1e-06,
    keepdims: _Bool=False,
    *,
    keepdim: _Bool=...,
) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last axis. Raises ValueError for numbers ..."""
@overload
def pairwise_distance(
    input: Tensor,
    other: Tensor,
    p: float=2.0,
    eps: float=1e-06,
    keepdims: _Bool=False,
    *,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def permute(x: Tensor, axes: int | Sequence[int]) -> Tensor:
    """Axes in another order, as a view. Shapes: x of n dimensions and n axes; the ..."""
@overload
def permute(x: Tensor, *axes: int) -> Tensor: ...
@overload
def permute(input: Tensor, dims: int | Sequence[int]) -> Tensor: ...
@overload
def permute_dims(x: Tensor, axes: int | Sequence[int]) -> Tensor:
    """Axes in another order, as a view. Shapes: x of n dimensions and n axes; the ..."""
@overload
def permute_dims(x: Tensor, *axes: int) -> Tensor: ...
@overload
def permute_dims(input: Tensor, dims: int | Sequence[int]) -> Tensor: ...
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Images (..., channels * r * r, height, width) as (..., channels, height * r, ..."""
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Images (..., channels, height * r, width * r) as (..., channels * r * r, height, ..."""
def pointwise_table() -> list[dict[str, Any]]:
    """The rows of the pointwise op table, as dictionaries."""
def poisson(input: Tensor, generator: Generator | None=None) -> Tensor:
    """A count of Poisson's distribution for each rate, in its type. Raises ValueError ..."""
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: _Bool=True,
    full: _Bool=False,
    eps: float=1e-08,
    reduction: str='mean',
) -> Tensor:
    """Negative log-likelihood of counts under Poisson distributions of means, or of ..."""
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers of the given magnitudes and angles in radians, two tensors of ..."""
@overload
def polygamma(n: int, x: Tensor) -> Tensor:
    """Derivative of order n of digamma at x; infinite at whole numbers below 0 for n > ..."""
@overload
def polygamma(n: int, input: Tensor) -> Tensor: ...
@overload
def positive(x: _Operand) -> Tensor:
    """Each element unchanged. Source: Array API standard 2024.12."""
@overload
def positive(input: _Operand) -> Tensor: ...
@overload
def pow(a: _Operand, b: _Operand) -> Tensor:
    """a to the power of b. Source: Array API standard 2024.12."""
@overload
def pow(input: _Operand, exponent: _Operand) -> Tensor: ...
@overload
def pow(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def power_norm(
    x: Tensor,
    ord: float=2.0,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def power_norm(
    input: Tensor,
    ord: float=2.0,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def prelu(x: Tensor, weight: Tensor) -> Tensor:
    """x where positive, else x times weight, which is one number or one for each ..."""
@overload
def prelu(input: Tensor, weight: Tensor) -> Tensor: ...
@overload
def prod(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Product over all or some axes; of integers in 64 bits. Source: Array API ..."""
@overload
def prod(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def quantile(
    x: Tensor,
    q: _Operand,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    interpolation: str='linear',
    method: str=...,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """The element at the place q * (n - 1) of the n elements in order, of all or along ..."""
@overload
def quantile(
    input: Tensor,
    q: _Operand,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    *,
    interpolation: str='linear',
    method: str=...,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def rad2deg(x: Tensor) -> Tensor:
    """Radians as degrees. Shapes: x of any shape; the result has it. Types: floating; ..."""
@overload
def rad2deg(input: Tensor) -> Tensor: ...
def radam_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    beta1: float=0.9,
    beta2: float=0.999,
    eps: float=1e-08,
    weight_decay: float=0.0,
    decoupled: _Bool=False,
    maximize: _Bool=False,
) -> None:
    """RAdam (Liu et al., 2020) on all params in place. Source: PyTorch's ..."""
@overload
def rand(
    size: int | Sequence[int]=...,
    *,
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
    shape: int | Sequence[int]=...,
) -> Tensor:
    """Uniform numbers in [0, 1). Shapes: the result has the shape size. Types: ..."""
@overload
def rand(
    *size: int,
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def rand_like(
    x: Tensor,
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor:
    """Like rand, shape and dtype from x. Shapes: x of any shape; the result has it. ..."""
@overload
def rand_like(
    input: Tensor,
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def randint(
    low: int,
    high: int,
    size: int | Sequence[int],
    dtype: _DTypeLike=...,
    generator: Generator | None=None,
    device: str | None=None,
) -> Tensor:
    """Whole numbers in [low, high). Shapes: the result has the shape size. Types: ..."""
@overload
def randint(
    low: int,
    high: int,
    shape: int | Sequence[int],
    dtype: _DTypeLike=...,
    generator: Generator | None=None,
    device: str | None=None,
) -> Tensor: ...
@overload
def randint(
    high: int,
    size: Sequence[int],
    dtype: _DTypeLike=...,
    generator: Generator | None=None,
    device: str | None=None,
) -> Tensor: ...
@overload
def randint_like(
    x: Tensor,
    low: int=0,
    high: int | None=None,
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor:
    """Like randint, shape and dtype from x; one number alone is high. Raises ..."""
@overload
def randint_like(
    input: Tensor,
    low: int=0,
    high: int | None=None,
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def randn(
    size: int | Sequence[int]=...,
    *,
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
    shape: int | Sequence[int]=...,
) -> Tensor:
    """Normally distributed numbers of mean 0 and variance 1. Shapes: the result has ..."""
@overload
def randn(
    *size: int,
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def randn_like(
    x: Tensor,
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor:
    """Like randn, shape and dtype from x. Shapes: x of any shape; the result has it. ..."""
@overload
def randn_like(
    input: Tensor,
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
def randperm(n: int, generator: Generator | None=None, device: str | None=None) -> Tensor:
    """0 to n - 1 in random order (Fisher and Yates). Shapes: the result is (n,). ..."""
@overload
def ravel(x: Tensor) -> Tensor:
    """All elements along one axis, in row-major order; a view where strides allow it. ..."""
@overload
def ravel(input: Tensor) -> Tensor: ...
@overload
def real(x: Tensor) -> Tensor:
    """The real part, a view in the same memory; a real tensor itself. Shapes: x of any ..."""
@overload
def real(input: Tensor) -> Tensor: ...
@overload
def reciprocal(x: _Operand) -> Tensor:
    """One over each element. Source: Array API standard 2024.12."""
@overload
def reciprocal(input: _Operand) -> Tensor: ...
@overload
def relu(x: _Operand, inplace: _Bool=False) -> Tensor:
    """Larger of x and 0. Source: PyTorch's torch.nn.functional.relu."""
@overload
def relu(input: _Operand, inplace: _Bool=False) -> Tensor: ...
@overload
def relu6(x: _Operand, inplace: _Bool=False) -> Tensor:
    """x limited to the range from 0 to 6. Source: PyTorch's torch.nn.functional.relu6."""
@overload
def relu6(input: _Operand, inplace: _Bool=False) -> Tensor: ...
@overload
def remainder(a: _Operand, b: _Operand) -> Tensor:
    """a - b * floor(a / b): the sign of b; 0 for whole numbers modulo 0. Source: Array ..."""
@overload
def remainder(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def repeat(
    x: Tensor,
    repeats: _Operand,
    axis: int | None=None,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor:
    """Each position of an axis (None: of all elements in row-major order) `repeats` ..."""
@overload
def repeat(
    input: Tensor,
    repeats: _Operand,
    axis: int | None=None,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor: ...
@overload
def repeat_interleave(
    x: Tensor,
    repeats: _Operand | None=None,
    axis: int | None=None,
    *,
    output_size: int | None=None,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor:
    """Each position of an axis (None: of all elements in row-major order) `repeats` ..."""
@overload
def repeat_interleave(
    input: Tensor,
    repeats: _Operand | None=None,
    axis: int | None=None,
    *,
    output_size: int | None=None,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor: ...
@overload
def resample(
    input: Tensor,
    size: int | Sequence[int],
    mode: str='nearest',
    align_corners: _Bool=False,
    antialias: _Bool=False,
    scale0: float=0.0,
    scale1: float=0.0,
    scale2: float=0.0,
) -> Tensor:
    """Images (batch, channels, ...) with another size of the 1 to 3 axes behind the ..."""
@overload
def resample(
    input: Tensor,
    shape: int | Sequence[int],
    mode: str='nearest',
    align_corners: _Bool=False,
    antialias: _Bool=False,
    scale0: float=0.0,
    scale1: float=0.0,
    scale2: float=0.0,
) -> Tensor: ...
@overload
def reshape(x: Tensor, shape: int | Sequence[int], *, copy: _Bool | None=None) -> Tensor:
    """The same elements in another shape; one extent may be -1. A view where strides ..."""
@overload
def reshape(x: Tensor, *shape: int, copy: _Bool | None=None) -> Tensor: ...
@overload
def reshape(input: Tensor, size: int | Sequence[int], *, copy: _Bool | None=None) -> Tensor: ...
def result_type(*args: Tensor | _DTypeLike | _Number) -> _DType:
    """The common type of tensors, dtypes and (weak) numbers. Shapes: any; they do not ..."""
@overload
def rms_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None=None,
    eps: float | None=None,
) -> Tensor:
    """The last axes, of normalized_shape, over the root of their mean square, then ..."""
@overload
def rms_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None=None,
    eps: float | None=None,
) -> Tensor: ...
def rmsprop_centered_momentum_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    square_avgs: Sequence[Tensor],
    grad_avgs: Sequence[Tensor],
    momentum_buffers: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    momentum: float,
    alpha: float=0.99,
    eps: float=1e-08,
    weight_decay: float=0.0,
    maximize: _Bool=False,
) -> None:
    """RMSprop by the variance of the gradient, with momentum, on all params in place. ..."""
def rmsprop_centered_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    square_avgs: Sequence[Tensor],
    grad_avgs: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    alpha: float=0.99,
    eps: float=1e-08,
    weight_decay: float=0.0,
    maximize: _Bool=False,
) -> None:
    """RMSprop by the variance of the gradient (Graves, 2013) on all params in place. ..."""
def rmsprop_momentum_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    square_avgs: Sequence[Tensor],
    momentum_buffers: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    momentum: float,
    alpha: float=0.99,
    eps: float=1e-08,
    weight_decay: float=0.0,
    maximize: _Bool=False,
) -> None:
    """RMSprop with momentum on all params in place. Source: PyTorch's ..."""
def rmsprop_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    square_avgs: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    alpha: float=0.99,
    eps: float=1e-08,
    weight_decay: float=0.0,
    maximize: _Bool=False,
) -> None:
    """RMSprop (Hinton, 2012) on all params in place. Source: PyTorch's ..."""
@overload
def rnn_cell(
    x: Tensor,
    h: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None=None,
    bias_hh: Tensor | None=None,
    nonlinearity: str='tanh',
) -> Tensor:
    """One step of rnn_layer: x (batch, in), h and the result (batch, hidden). Shapes: ..."""
@overload
def rnn_cell(
    input: Tensor,
    h: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None=None,
    bias_hh: Tensor | None=None,
    nonlinearity: str='tanh',
) -> Tensor: ...
@overload
def rnn_layer(
    x: Tensor,
    h0: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None=None,
    bias_hh: Tensor | None=None,
    reverse: _Bool=False,
    nonlinearity: str='tanh',
) -> tuple[Tensor, Tensor]:
    """All steps of x (steps, batch, in) through an Elman layer from h0 (batch, ..."""
@overload
def rnn_layer(
    input: Tensor,
    h0: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None=None,
    bias_hh: Tensor | None=None,
    reverse: _Bool=False,
    nonlinearity: str='tanh',
) -> tuple[Tensor, Tensor]: ...
@overload
def roll(
    x: Tensor,
    shift: int | Sequence[int],
    axis: int | Sequence[int] | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
) -> Tensor:
    """Elements moved by `shift` places along axes; what leaves at the end comes in at ..."""
@overload
def roll(
    input: Tensor,
    shifts: int | Sequence[int],
    axis: int | Sequence[int] | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
) -> Tensor: ...
@overload
def rot90(
    x: Tensor,
    k: int=1,
    axes: int | Sequence[int] | None=None,
    *,
    dims: int | Sequence[int] | None=...,
) -> Tensor:
    """Turned k times by 90 degrees from the first of two axes towards the second, as a ..."""
@overload
def rot90(
    input: Tensor,
    k: int=1,
    axes: int | Sequence[int] | None=None,
    *,
    dims: int | Sequence[int] | None=...,
) -> Tensor: ...
@overload
def rotary_embedding(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: _Bool=False) -> Tensor:
    """Rotary position embedding: pairs of each row's first numbers, rotated by the ..."""
@overload
def rotary_embedding(
    input: Tensor,
    cos: Tensor,
    sin: Tensor,
    *,
    interleaved: _Bool=False,
) -> Tensor: ...
@overload
def round(x: _Operand) -> Tensor:
    """Nearest whole number, halves to even. Source: Array API standard 2024.12."""
@overload
def round(input: _Operand) -> Tensor: ...
@overload
def round(x: Tensor, /, *, decimals: int=0) -> Tensor: ...
@overload
def row_stack(arrays: Sequence[Tensor]) -> Tensor:
    """Tensors joined along axis 0; those of up to 1 dimension are rows. Raises ..."""
@overload
def row_stack(tensors: Sequence[Tensor]) -> Tensor: ...
def rprop_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    prevs: Sequence[Tensor],
    step_sizes: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    eta_minus: float=0.5,
    eta_plus: float=1.2,
    smallest: float=1e-06,
    largest: float=50.0,
    maximize: _Bool=False,
) -> None:
    """Rprop (Riedmiller and Braun, 1993) on all params in place; lr is where ..."""
@overload
def rsqrt(x: _Operand) -> Tensor:
    """One over the square root. Source: PyTorch's torch.rsqrt."""
@overload
def rsqrt(input: _Operand) -> Tensor: ...
def scale_all(tensors: Sequence[Tensor], *, number: _Operand) -> None:
    """Multiplies all tensors in place. Source: PyTorch's ..."""
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None=None,
    dropout_p: float=0.0,
    is_causal: _Bool=False,
    scale: float | None=None,
    enable_gqa: _Bool=False,
) -> Tensor:
    """softmax(query @ key.T * scale + attn_mask) @ value over the last two axes, ..."""
@overload
def scatter(
    x: Tensor,
    axis: int,
    index: Tensor,
    src: _Operand,
    *,
    reduce: str | None=None,
) -> Tensor:
    """A copy y of x with y[i, index[i, j, k], k] = src[i, j, k] for axis 1; of several ..."""
@overload
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    value: _Operand,
    *,
    reduce: str | None=None,
) -> Tensor: ...
@overload
def scatter(
    input: Tensor,
    dims: int,
    index: Tensor,
    value: _Operand,
    *,
    reduce: str | None=None,
) -> Tensor: ...
@overload
def scatter_add(x: Tensor, axis: int, index: Tensor, src: _Operand) -> Tensor:
    """A copy y of x with y[i, index[i, j, k], k] += src[i, j, k] for axis 1, in the ..."""
@overload
def scatter_add(input: Tensor, dim: int, index: Tensor, src: _Operand) -> Tensor: ...
@overload
def scatter_add(input: Tensor, dims: int, index: Tensor, src: _Operand) -> Tensor: ...
@overload
def scatter_reduce(
    x: Tensor,
    axis: int,
    index: Tensor,
    src: _Operand,
    reduce: str,
    *,
    include_self: _Bool=True,
) -> Tensor:
    """A copy y of x with all src[i, j, k] joined to y[i, index[i, j, k], k] for axis ..."""
@overload
def scatter_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: _Operand,
    reduce: str,
    *,
    include_self: _Bool=True,
) -> Tensor: ...
@overload
def scatter_reduce(
    input: Tensor,
    dims: int,
    index: Tensor,
    src: _Operand,
    reduce: str,
    *,
    include_self: _Bool=True,
) -> Tensor: ...
@overload
def searchsorted(
    x1: Tensor,
    x2: _Operand,
    *,
    side: str | None=None,
    sorter: Tensor | None=None,
    right: _Bool=False,
    out_int32: _Bool=False,
) -> Tensor:
    """Where elements of x2 belong in the sorted x1 (n,), or rows of x2 (..., m) in ..."""
@overload
def searchsorted(
    sorted_sequence: Tensor,
    input: _Operand,
    *,
    side: str | None=None,
    sorter: Tensor | None=None,
    right: _Bool=False,
    out_int32: _Bool=False,
) -> Tensor: ...
@overload
def searchsorted(
    sorted_sequence: Tensor,
    values: _Operand,
    *,
    side: str | None=None,
    sorter: Tensor | None=None,
    right: _Bool=False,
    out_int32: _Bool=False,
) -> Tensor: ...
@overload
def searchsorted(
    sorted_sequence: Tensor,
    other: _Operand,
    *,
    side: str | None=None,
    sorter: Tensor | None=None,
    right: _Bool=False,
    out_int32: _Bool=False,
) -> Tensor: ...
@overload
def select(x: Tensor, axis: int, index: int) -> Tensor:
    """One place along an axis, which is dropped, as a view. IndexError out of range. ..."""
@overload
def select(input: Tensor, dim: int, index: int) -> Tensor: ...
@overload
def select(input: Tensor, dims: int, index: int) -> Tensor: ...
@overload
def select_scatter(x: Tensor, src: Tensor, axis: int, index: int) -> Tensor:
    """A copy of x with src at one place along an axis: what select shows. Raises ..."""
@overload
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor: ...
@overload
def select_scatter(input: Tensor, src: Tensor, dims: int, index: int) -> Tensor: ...
@overload
def selu(x: _Operand, inplace: _Bool=False) -> Tensor:
    """1.0507 times x where positive, else times 1.6733 * (exp(x) - 1). Source: ..."""
@overload
def selu(input: _Operand, inplace: _Bool=False) -> Tensor: ...
def set_default_dtype(dtype: _DTypeLike) -> None:
    """The type of numbers with a fraction, of new tensors and of what integers become ..."""
def set_device(name: str) -> None:
    """Where this thread makes tensors; an op runs where its operands are. Other ..."""
def set_float32_matmul_precision(precision: str) -> None:
    """The least exact kernels that float32 matmul chooses freely: 'highest' (as exact ..."""
def set_isa(name: str) -> None:
    """Uses the kernels of one instruction set on this thread. Raises ValueError for ..."""
def set_matmul_tuning(name: str, value: float) -> None:
    """Sets one of these numbers; raises ValueError for what its limits do not allow."""
def set_num_threads(count: int) -> None:
    """Sets the number of threads (1 to 1024), for the whole process. Raises ValueError ..."""
def set_thread_pinning(on: _Bool) -> None:
    """Binds each worker to one processor, the first left to the caller, from the next ..."""
def sgd_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    *,
    step: _Operand,
    lr: _Operand,
    weight_decay: float=0.0,
    maximize: _Bool=False,
) -> None:
    """Stochastic gradient descent on all params in place. Source: PyTorch's ..."""
@overload
def sgn(x: _Operand) -> Tensor:
    """-1, 0 or 1 by the sign; 0 for -0.0. Source: Array API standard 2024.12."""
@overload
def sgn(input: _Operand) -> Tensor: ...
@overload
def sigmoid(x: _Operand) -> Tensor:
    """1 / (1 + exp(-x)). Source: PyTorch's torch.nn.functional.sigmoid."""
@overload
def sigmoid(input: _Operand) -> Tensor: ...
@overload
def sign(x: _Operand) -> Tensor:
    """-1, 0 or 1 by the sign; 0 for -0.0. Source: Array API standard 2024.12."""
@overload
def sign(input: _Operand) -> Tensor: ...
@overload
def signbit(x: _Operand) -> Tensor:
    """Whether the sign bit is set. Source: Array API standard 2024.12."""
@overload
def signbit(input: _Operand) -> Tensor: ...
@overload
def silu(x: _Operand, inplace: _Bool=False) -> Tensor:
    """x * sigmoid(x), also called swish. Source: PyTorch's torch.nn.functional.silu."""
@overload
def silu(input: _Operand, inplace: _Bool=False) -> Tensor: ...
@overload
def sin(x: _Operand) -> Tensor:
    """Sine; x in radians. Source: Array API standard 2024.12."""
@overload
def sin(input: _Operand) -> Tensor: ...
@overload
def sinc(x: Tensor) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0. Shapes: x of any shape; the result has it. ..."""
@overload
def sinc(input: Tensor) -> Tensor: ...
@overload
def sinh(x: _Operand) -> Tensor:
    """Hyperbolic sine. Source: Array API standard 2024.12."""
@overload
def sinh(input: _Operand) -> Tensor: ...
@overload
def slice_scatter(
    x: Tensor,
    src: Tensor,
    axis: int=0,
    start: int | None=None,
    end: int | None=None,
    step: int=1,
    *,
    dim: int=...,
    dims: int=...,
) -> Tensor:
    """A copy of x with src at the places start:end:step along an axis. Raises ..."""
@overload
def slice_scatter(
    input: Tensor,
    src: Tensor,
    axis: int=0,
    start: int | None=None,
    end: int | None=None,
    step: int=1,
    *,
    dim: int=...,
    dims: int=...,
) -> Tensor: ...
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str='mean', beta: float=1.0) -> Tensor:
    """Differences d as d * d / (2 * beta) below beta, and |d| - beta / 2 above ..."""
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str='mean') -> Tensor:
    """log(1 + exp(-target * input)) for targets 1 and -1, without overflow. Shapes: ..."""
@overload
def softmax(
    x: Tensor,
    axis: int=-1,
    dtype: _DTypeLike | None=None,
    *,
    dim: int=...,
    dims: int=...,
) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis, of x as dtype where that is given. Shapes: x ..."""
@overload
def softmax(
    input: Tensor,
    axis: int=-1,
    dtype: _DTypeLike | None=None,
    *,
    dim: int=...,
    dims: int=...,
) -> Tensor: ...
@overload
def softplus(x: Tensor, beta: _Number=1.0, threshold: _Number=20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, without overflow; x where beta * x is above ..."""
@overload
def softplus(input: Tensor, beta: _Number=1.0, threshold: _Number=20.0) -> Tensor: ...
@overload
def softshrink(x: Tensor, lambd: _Number=0.5) -> Tensor:
    """x moved by lambd towards 0, and 0 within lambd of it. Raises ValueError for a ..."""
@overload
def softshrink(input: Tensor, lambd: _Number=0.5) -> Tensor: ...
@overload
def softsign(x: _Operand) -> Tensor:
    """x / (1 + abs(x)). Source: PyTorch's torch.nn.functional.softsign."""
@overload
def softsign(input: _Operand) -> Tensor: ...
@overload
def sort(
    x: Tensor,
    *,
    axis: int=-1,
    descending: _Bool=False,
    stable: _Bool=True,
    dims: int=...,
) -> Tensor:
    """The elements along an axis in order: values alone, argsort has their places. NaN ..."""
@overload
def sort(
    input: Tensor,
    *,
    axis: int=-1,
    descending: _Bool=False,
    stable: _Bool=True,
    dims: int=...,
) -> Tensor: ...
@overload
def sort(
    x: Tensor,
    *,
    descending: _Bool=False,
    stable: _Bool=True,
    dim: int,
) -> ValuesAndIndices: ...
@overload
def sort(
    input: Tensor,
    *,
    descending: _Bool=False,
    stable: _Bool=True,
    dim: int,
) -> ValuesAndIndices: ...
@overload
def sort_with_indices(
    x: Tensor,
    *,
    axis: int=-1,
    descending: _Bool=False,
    stable: _Bool=True,
    dim: int=...,
    dims: int=...,
) -> ValuesAndIndices:
    """What sort gives, and the indices (int64) that argsort gives. Shapes: x (..., n, ..."""
@overload
def sort_with_indices(
    input: Tensor,
    *,
    axis: int=-1,
    descending: _Bool=False,
    stable: _Bool=True,
    dim: int=...,
    dims: int=...,
) -> ValuesAndIndices: ...
@overload
def split(
    x: Tensor,
    split_size_or_sections: int | Sequence[int],
    axis: int=0,
    *,
    dim: int=...,
    dims: int=...,
) -> tuple[Tensor, ...]:
    """Parts along an axis, as views: of one extent, the last one smaller where it must ..."""
@overload
def split(
    tensor: Tensor,
    split_size: int | Sequence[int],
    axis: int=0,
    *,
    dim: int=...,
    dims: int=...,
) -> tuple[Tensor, ...]: ...
@overload
def split(
    input: Tensor,
    split_size: int | Sequence[int],
    axis: int=0,
    *,
    dim: int=...,
    dims: int=...,
) -> tuple[Tensor, ...]: ...
@overload
def sqrt(x: _Operand) -> Tensor:
    """Square root. Source: Array API standard 2024.12."""
@overload
def sqrt(input: _Operand) -> Tensor: ...
@overload
def square(x: _Operand) -> Tensor:
    """Square of each element. Source: Array API standard 2024.12."""
@overload
def square(input: _Operand) -> Tensor: ...
@overload
def squeeze(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
) -> Tensor:
    """Drops axes of extent 1 (all of them by default). Shapes: x of any shape; the ..."""
@overload
def squeeze(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
) -> Tensor: ...
@overload
def stack(arrays: Sequence[Tensor], axis: int=0, *, dim: int=..., dims: int=...) -> Tensor:
    """Tensors joined along a new axis. Shapes: n tensors of one shape; the result has ..."""
@overload
def stack(tensors: Sequence[Tensor], axis: int=0, *, dim: int=..., dims: int=...) -> Tensor: ...
def standard_gamma(input: Tensor, generator: Generator | None=None) -> Tensor:
    """A number of the gamma distribution of scale 1 for each shape parameter, in its ..."""
@overload
def std(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    correction: float=0.0,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
    ddof: float=...,
) -> Tensor:
    """Standard deviation; correction is taken off the number of elements. Its gradient ..."""
@overload
def std(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    correction: float=0.0,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
    ddof: float=...,
) -> Tensor: ...
@overload
def std(
    x: Tensor,
    *,
    correction: float,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    dim: int | Sequence[int] | None,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def std(
    input: Tensor,
    *,
    correction: float,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    dim: int | Sequence[int] | None,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def sub(a: _Operand, b: _Operand) -> Tensor:
    """Difference of a and b. Source: Array API standard 2024.12."""
@overload
def sub(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def sub(x: Tensor, /, other: _Operand, *, alpha: _Number=1) -> Tensor: ...
@overload
def sub(x: Tensor, /, b: _Operand, *, alpha: _Number=1) -> Tensor: ...
@overload
def subtract(a: _Operand, b: _Operand) -> Tensor:
    """Difference of a and b. Source: Array API standard 2024.12."""
@overload
def subtract(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def subtract(x: Tensor, /, other: _Operand, *, alpha: _Number=1) -> Tensor: ...
@overload
def subtract(x: Tensor, /, b: _Operand, *, alpha: _Number=1) -> Tensor: ...
@overload
def sum(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Sum over all or some axes; of integers in 64 bits. Source: Array API standard ..."""
@overload
def sum(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def sum_of_products(
    x: Tensor,
    y: Tensor,
    axis: int | Sequence[int] | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
) -> Tensor:
    """Sum of x * y over all or some axes of what they broadcast to. Shapes: x and y ..."""
@overload
def sum_of_products(
    input: Tensor,
    y: Tensor,
    axis: int | Sequence[int] | None=None,
    *,
    dim: int | Sequence[int] | None=...,
    dims: int | Sequence[int] | None=...,
) -> Tensor: ...
@overload
def swapaxes(
    x: Tensor,
    axis0: int | Sequence[int] | None=None,
    axis1: int | None=None,
    *,
    axes: int | Sequence[int] | None=...,
    dim0: int | Sequence[int] | None=...,
    dim1: int | None=...,
) -> Tensor:
    """Two axes swapped, or all axes in another order, as a view. Two numbers are the ..."""
@overload
def swapaxes(
    input: Tensor,
    axis0: int | Sequence[int] | None=None,
    axis1: int | None=None,
    *,
    axes: int | Sequence[int] | None=...,
    dim0: int | Sequence[int] | None=...,
    dim1: int | None=...,
) -> Tensor: ...
@overload
def swapdims(
    x: Tensor,
    axis0: int | Sequence[int] | None=None,
    axis1: int | None=None,
    *,
    axes: int | Sequence[int] | None=...,
    dim0: int | Sequence[int] | None=...,
    dim1: int | None=...,
) -> Tensor:
    """Two axes swapped, or all axes in another order, as a view. Two numbers are the ..."""
@overload
def swapdims(
    input: Tensor,
    axis0: int | Sequence[int] | None=None,
    axis1: int | None=None,
    *,
    axes: int | Sequence[int] | None=...,
    dim0: int | Sequence[int] | None=...,
    dim1: int | None=...,
) -> Tensor: ...
@overload
def take(
    x: Tensor,
    indices: Tensor,
    axis: int | None=None,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor:
    """Elements at integer indices of any shape, which replaces the axis. Only a tensor ..."""
@overload
def take(
    input: Tensor,
    indices: Tensor,
    axis: int | None=None,
    *,
    dim: int | None=...,
    dims: int | None=...,
) -> Tensor: ...
@overload
def take_along_axis(
    x: Tensor,
    indices: Tensor,
    axis: int=-1,
    *,
    dim: int=...,
    dims: int=...,
) -> Tensor:
    """y[i, j, k] = x[i, indices[i, j, k], k] for axis 1; the other axes are broadcast. ..."""
@overload
def take_along_axis(
    input: Tensor,
    indices: Tensor,
    axis: int=-1,
    *,
    dim: int=...,
    dims: int=...,
) -> Tensor: ...
@overload
def tan(x: _Operand) -> Tensor:
    """Tangent; x in radians. Source: Array API standard 2024.12."""
@overload
def tan(input: _Operand) -> Tensor: ...
@overload
def tanh(x: _Operand) -> Tensor:
    """Hyperbolic tangent. Source: Array API standard 2024.12."""
@overload
def tanh(input: _Operand) -> Tensor: ...
@overload
def tanhshrink(x: _Operand) -> Tensor:
    """x - tanh(x). Source: PyTorch's torch.nn.functional.tanhshrink."""
@overload
def tanhshrink(input: _Operand) -> Tensor: ...
@overload
def tensor(
    obj: object,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor:
    """A tensor with its own copy of the data, as asarray(obj, copy=True), outside any ..."""
@overload
def tensor(
    data: object,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def tensor_split(
    x: Tensor,
    indices_or_sections: int | Sequence[int],
    axis: int=0,
    *,
    dim: int=...,
    dims: int=...,
) -> tuple[Tensor, ...]:
    """So many parts along an axis, as views, the first ones an element longer where ..."""
@overload
def tensor_split(
    input: Tensor,
    indices: int | Sequence[int],
    axis: int=0,
    *,
    dim: int=...,
    dims: int=...,
) -> tuple[Tensor, ...]: ...
@overload
def tensor_split(
    input: Tensor,
    sections: int | Sequence[int],
    axis: int=0,
    *,
    dim: int=...,
    dims: int=...,
) -> tuple[Tensor, ...]: ...
@overload
def threshold(x: Tensor, threshold: _Number, value: _Number, inplace: _Bool=False) -> Tensor:
    """x where above threshold, else value. Source: PyTorch's ..."""
@overload
def threshold(
    input: Tensor,
    threshold: _Number,
    value: _Number,
    inplace: _Bool=False,
) -> Tensor: ...
@overload
def tile(x: Tensor, repetitions: int | Sequence[int]) -> Tensor:
    """Copies of x side by side: so many along each axis. What has fewer axes, x or the ..."""
@overload
def tile(input: Tensor, dims: int | Sequence[int]) -> Tensor: ...
@overload
def tile(input: Tensor, reps: int | Sequence[int]) -> Tensor: ...
@overload
def topk(
    x: Tensor,
    k: int,
    axis: int=-1,
    largest: _Bool=True,
    sorted: _Bool=True,
    *,
    dim: int=...,
    dims: int=...,
) -> ValuesAndIndices:
    """The k largest elements along an axis, or the smallest, and their indices ..."""
@overload
def topk(
    input: Tensor,
    k: int,
    axis: int=-1,
    largest: _Bool=True,
    sorted: _Bool=True,
    *,
    dim: int=...,
    dims: int=...,
) -> ValuesAndIndices: ...
def total_norm(tensors: Sequence[Tensor], ord: float=2.0) -> Tensor:
    """The norm of all elements of all tensors as one vector, in float32, or in float64 ..."""
@overload
def trace(x: Tensor, offset: int=0) -> Tensor:
    """The sum of a diagonal of a matrix, of whole numbers as int64. Raises ValueError ..."""
@overload
def trace(input: Tensor, offset: int=0) -> Tensor: ...
@overload
def transpose(
    x: Tensor,
    axis0: int | Sequence[int] | None=None,
    axis1: int | None=None,
    *,
    axes: int | Sequence[int] | None=...,
    dim0: int | Sequence[int] | None=...,
    dim1: int | None=...,
) -> Tensor:
    """Two axes swapped, or all axes in another order, as a view. Two numbers are the ..."""
@overload
def transpose(x: Tensor, *axis0: int, axis1: int | None=None, dim1: int | None=...) -> Tensor: ...
@overload
def transpose(
    input: Tensor,
    axis0: int | Sequence[int] | None=None,
    axis1: int | None=None,
    *,
    axes: int | Sequence[int] | None=...,
    dim0: int | Sequence[int] | None=...,
    dim1: int | None=...,
) -> Tensor: ...
@overload
def tril(x: Tensor, k: int=0, *, diagonal: int=...) -> Tensor:
    """The part of the last two axes on and below diagonal k. Shapes: x (..., m, n); ..."""
@overload
def tril(input: Tensor, k: int=0, *, diagonal: int=...) -> Tensor: ...
def tril_indices(
    row: int,
    col: int,
    offset: int=0,
    dtype: _DTypeLike=...,
    device: str | None=None,
) -> Tensor:
    """Places of the elements on and below a diagonal of a matrix (row, col), in row- ..."""
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float=1.0,
    p: float=2.0,
    eps: float=1e-06,
    swap: _Bool=False,
    reduction: str='mean',
) -> Tensor:
    """max(0, margin + distance to the positive - distance to the negative) (Balntas et ..."""
@overload
def triu(x: Tensor, k: int=0, *, diagonal: int=...) -> Tensor:
    """The part of the last two axes on and above diagonal k. Shapes: x (..., m, n); ..."""
@overload
def triu(input: Tensor, k: int=0, *, diagonal: int=...) -> Tensor: ...
def triu_indices(
    row: int,
    col: int,
    offset: int=0,
    dtype: _DTypeLike=...,
    device: str | None=None,
) -> Tensor:
    """Places of the elements on and above a diagonal of a matrix (row, col), in row- ..."""
@overload
def true_divide(a: _Operand, b: _Operand) -> Tensor:
    """Quotient of a and b; whole numbers become floating-point first. Source: Array ..."""
@overload
def true_divide(input: _Operand, other: _Operand) -> Tensor: ...
@overload
def true_divide(x: Tensor, /, other: _Operand, *, rounding_mode: str | None=None) -> Tensor: ...
@overload
def trunc(x: _Operand) -> Tensor:
    """Whole part, towards zero. Source: Array API standard 2024.12."""
@overload
def trunc(input: _Operand) -> Tensor: ...
@overload
def unbind(x: Tensor, axis: int=0, *, dim: int=..., dims: int=...) -> tuple[Tensor, ...]:
    """The parts at each position of an axis, without that axis, as views. Shapes: x ..."""
@overload
def unbind(input: Tensor, axis: int=0, *, dim: int=..., dims: int=...) -> tuple[Tensor, ...]: ...
@overload
def unflatten(x: Tensor, axis: int, sizes: int | Sequence[int]) -> Tensor:
    """One axis as several of these extents, one of which may be -1; a view where ..."""
@overload
def unflatten(input: Tensor, dim: int, sizes: int | Sequence[int]) -> Tensor: ...
@overload
def unflatten(input: Tensor, dims: int, sizes: int | Sequence[int]) -> Tensor: ...
def unfold(
    input: Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int]=1,
    padding: int | Sequence[int]=0,
    stride: int | Sequence[int]=1,
) -> Tensor:
    """The windows that a convolution of input (batch, channels, height, width) reads, ..."""
@overload
def uniform(
    low: float,
    high: float,
    size: int | Sequence[int],
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    requires_grad: _Bool=False,
    device: str | None=None,
) -> Tensor:
    """Uniform numbers in [low, high). Shapes: the result has the shape size. Types: ..."""
@overload
def uniform(
    low: float,
    high: float,
    shape: int | Sequence[int],
    dtype: _DTypeLike | None=None,
    generator: Generator | None=None,
    requires_grad: _Bool=False,
    device: str | None=None,
) -> Tensor: ...
@overload
def unit_vectors(
    x: Tensor,
    ord: float=2.0,
    axis: int=1,
    eps: float=1e-12,
    *,
    dim: int=...,
    dims: int=...,
) -> Tensor:
    """Vectors along an axis over their norm of order ord, which counts as eps below ..."""
@overload
def unit_vectors(
    input: Tensor,
    ord: float=2.0,
    axis: int=1,
    eps: float=1e-12,
    *,
    dim: int=...,
    dims: int=...,
) -> Tensor: ...
@overload
def unsqueeze(x: Tensor, axis: int=0, *, dim: int=..., dims: int=...) -> Tensor:
    """A new axis of extent 1. Shapes: x of any shape; the result has one axis more, of ..."""
@overload
def unsqueeze(input: Tensor, axis: int=0, *, dim: int=..., dims: int=...) -> Tensor: ...
@overload
def unstack(x: Tensor, axis: int=0, *, dim: int=..., dims: int=...) -> tuple[Tensor, ...]:
    """The parts at each position of an axis, without that axis, as views. Shapes: x ..."""
@overload
def unstack(input: Tensor, axis: int=0, *, dim: int=..., dims: int=...) -> tuple[Tensor, ...]: ...
@overload
def vander(x: Tensor, N: int | None=None, increasing: _Bool=False) -> Tensor:
    """The powers of each element of x (n,) as rows of N columns (None: n), from N - 1 ..."""
@overload
def vander(input: Tensor, N: int | None=None, increasing: _Bool=False) -> Tensor: ...
@overload
def var(
    x: Tensor,
    axis: int | Sequence[int] | None=None,
    correction: float=0.0,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
    ddof: float=...,
) -> Tensor:
    """Variance; correction is taken off the number of elements. Of complex numbers: of ..."""
@overload
def var(
    input: Tensor,
    axis: int | Sequence[int] | None=None,
    correction: float=0.0,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    *,
    dims: int | Sequence[int] | None=...,
    keepdim: _Bool=...,
    ddof: float=...,
) -> Tensor: ...
@overload
def var(
    x: Tensor,
    *,
    correction: float,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    dim: int | Sequence[int] | None,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def var(
    input: Tensor,
    *,
    correction: float,
    keepdims: _Bool=False,
    dtype: _DTypeLike | None=None,
    dim: int | Sequence[int] | None,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def view_as_complex(x: Tensor) -> Tensor:
    """Pairs of numbers along the last axis, of extent 2, as complex numbers in the ..."""
@overload
def view_as_complex(input: Tensor) -> Tensor: ...
@overload
def view_as_real(x: Tensor) -> Tensor:
    """The parts of complex numbers in the same memory: a real tensor with one axis ..."""
@overload
def view_as_real(input: Tensor) -> Tensor: ...
@overload
def vsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """So many parts of one extent, as views, or the parts between indices: along axis ..."""
@overload
def vsplit(input: Tensor, indices: int | Sequence[int]) -> tuple[Tensor, ...]: ...
@overload
def vsplit(input: Tensor, sections: int | Sequence[int]) -> tuple[Tensor, ...]: ...
@overload
def vstack(arrays: Sequence[Tensor]) -> Tensor:
    """Tensors joined along axis 0; those of up to 1 dimension are rows. Raises ..."""
@overload
def vstack(tensors: Sequence[Tensor]) -> Tensor: ...
@overload
def where(a: _Operand, b: _Operand, c: _Operand) -> Tensor:
    """b where a holds, else c. Source: Array API standard 2024.12."""
@overload
def where(condition: _Operand, input: _Operand, other: _Operand) -> Tensor: ...
@overload
def where(condition: _Operand, x: _Operand, y: _Operand) -> Tensor: ...
@overload
def where(condition: Tensor, /) -> tuple[Tensor, ...]: ...
@overload
def xlog1py(a: Tensor, b: Tensor) -> Tensor:
    """a * log(1 + b), and 0 where a is 0 and b no NaN. Shapes: a and b broadcast; the ..."""
@overload
def xlog1py(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def xlogy(a: _Operand, b: _Operand) -> Tensor:
    """a * log(b), and 0 where a is 0 and b no NaN. Source: PyTorch's torch.xlogy."""
@overload
def xlogy(input: _Operand, other: _Operand) -> Tensor: ...
def zero_grad(params: Sequence[Tensor]) -> None:
    """Drops the grads of params. Shapes: params of any shapes. Types: floating, ..."""
@overload
def zeros(
    shape: int | Sequence[int],
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor:
    """A tensor of zeros. Shapes: the result has the shape given. Types: all. Result: ..."""
@overload
def zeros(
    *shape: int,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def zeros(
    size: int | Sequence[int],
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def zeros_like(
    x: Tensor,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor:
    """Like zeros, shape and dtype from x. Shapes: x of any shape; the result has it. ..."""
@overload
def zeros_like(
    input: Tensor,
    dtype: _DTypeLike | None=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
