"""What the Python Array API standard (2024.12) lets programs ask: kinds and limits of types, and
what the library can do. https://data-apis.org/array-api/2024.12
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tilewright import Tensor, _core
from tilewright._engine.value_text import shown

_DType = _core.dtype

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
_MAX_DIMENSIONS = 32

# The canonical names, in the order of the standard's table.
_STANDARD = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)
_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float16", "bfloat16", "float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]

# Bits of the fraction, and the largest exponent.
_FORMATS = {"float16": (10, 15), "bfloat16": (7, 127), "float32": (23, 127), "float64": (52, 1023)}
_COMPONENTS = {"complex64": "float32", "complex128": "float64"}


@dataclass(frozen=True)
class FloatLimits:
    """Limits of a floating type, of which `max` and its like are Python's floats."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: _DType

    @property
    def tiny(self) -> float:
        """`smallest_normal` under PyTorch's name."""
        return self.smallest_normal


@dataclass(frozen=True)
class IntegerLimits:
    """Limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: _DType


def finfo(type: Any, /) -> FloatLimits:
    """Limits of a floating dtype or of a tensor's: of a complex one those of its parts.

    `eps` is the distance from 1 to the next number. Raises TypeError for other types.

    >>> import tilewright as tw
    >>> tw.finfo(tw.float32).eps == 2**-23
    True
    """
    found = _dtype_of("finfo", type)
    name = _COMPONENTS.get(found.name, found.name)
    if name not in _FORMATS:
        raise TypeError(f"finfo: needs a floating dtype, got {found}; iinfo is for integers")
    fraction, exponent = _FORMATS[name]
    largest = (2 - 2.0**-fraction) * 2.0**exponent
    of: _DType = getattr(_core, name)
    return FloatLimits(
        8 * of.itemsize, 2.0**-fraction, largest, -largest, 2.0 ** (1 - exponent), of
    )


def iinfo(type: Any, /) -> IntegerLimits:
    """Limits of an integer dtype or of a tensor's. Raises TypeError for other types.

    >>> import tilewright as tw
    >>> tw.iinfo(tw.int8).max
    127
    """
    found = _dtype_of("iinfo", type)
    if found.name not in _KINDS["integral"]:
        raise TypeError(f"iinfo: needs an integer dtype, got {found}; finfo is for floating types")
    bits = 8 * found.itemsize
    if found.name in _KINDS["unsigned integer"]:
        return IntegerLimits(bits, 2**bits - 1, 0, found)
    return IntegerLimits(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), found)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind, is another dtype, or is either of one of a tuple of these.

    Kinds are "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex
    floating" and "numeric"; float16 and bfloat16 are "real floating". Raises TypeError for what is
    no dtype, ValueError for other kinds.

    >>> import tilewright as tw
    >>> tw.isdtype(tw.float32, ("integral", "real floating"))
    True
    """
    if not isinstance(dtype, _DType):
        raise TypeError(f"isdtype: dtype must be a dtype, got {shown(dtype)}")
    if isinstance(kind, tuple):
        found = [_is_of(dtype, one) for one in kind]  # each of them is checked
        return any(found)
    return _is_of(dtype, kind)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether promotion with `to` turns a dtype, or a tensor's, into that.

    So it is for integers to floating types, as in PyTorch: values may lose digits. Raises
    TypeError for what is no dtype.

    >>> import tilewright as tw
    >>> tw.can_cast(tw.int8, tw.int16), tw.can_cast(tw.float64, tw.float32)
    (True, False)
    """
    source, target = _dtype_of("can_cast", from_), _dtype_of("can_cast", to)
    if source.name in _FORMATS and target.name in _COMPONENTS:
        source_bits, target_bits = finfo(source).bits, finfo(target).bits
        return source_bits <= target_bits
    try:
        return _core.result_type(source, target) == target
    except TypeError:  # uint64 with a signed integer
        return False


class NamespaceInfo:
    """What `__array_namespace_info__` gives: what the library has and can do."""

    def capabilities(self) -> dict[str, Any]:
        """What is supported, by the standard's names."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": _MAX_DIMENSIONS,
        }

    def default_device(self) -> str:
        """The device of new tensors."""
        return _core.active_device()

    def default_dtypes(self, *, device: str | None = None) -> dict[str, _DType]:
        """The dtypes of new tensors where nothing else decides, by their kinds."""
        _check_device("default_dtypes", device)
        return {
            "real floating": _core.get_default_dtype(),
            "complex floating": _core.result_type(1j),
            "integral": _core.int64,
            "indexing": _core.int64,
        }

    def devices(self) -> list[str]:
        """Names of the devices that compute."""
        return [name for name in _core.device_names() if name != "null"]

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, _DType]:
        """The standard's dtypes by their names, of all kinds or of some; float16 is not among them.

        Raises ValueError for other kinds than `isdtype` knows.
        """
        _check_device("dtypes", device)
        kinds = (kind,) if isinstance(kind, str) else kind
        names: tuple[str, ...] = _STANDARD
        if kinds is not None:
            wanted = {name for each in kinds for name in _names_of("dtypes", each)}
            names = tuple(name for name in _STANDARD if name in wanted)
        return {name: getattr(_core, name) for name in names if hasattr(_core, name)}


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807  (the standard's name)
    """What the library has and can do: dtypes, devices, defaults, capabilities.

    >>> import tilewright as tw
    >>> tw.__array_namespace_info__().default_dtypes()["integral"]
    tilewright.int64
    """
    return NamespaceInfo()


def namespace(api_version: str | None) -> ModuleType:
    """The package, for a version of the standard; raises ValueError for an unknown one."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"__array_namespace__: api_version must be one of {', '.join(VERSIONS)}, "
            f"got {shown(api_version)}"
        )
    return sys.modules["tilewright"]


def _dtype_of(name: str, given: Any) -> _DType:
    if isinstance(given, Tensor):
        return given.dtype
    try:
        return _core._dtype_named(given)
    except TypeError:
        raise TypeError(f"{name}: expected a dtype or a tensor, got {shown(given)}") from None


def _names_of(name: str, kind: object) -> tuple[str, ...]:
    if not isinstance(kind, str) or kind not in _KINDS:
        known = ", ".join(map(repr, _KINDS))
        raise ValueError(f"{name}: no kind {shown(kind)}; choose from {known}")
    return _KINDS[kind]


def _is_of(given: _DType, kind: object) -> bool:
    if isinstance(kind, _DType):
        return given == kind
    return given.name in _names_of("isdtype", kind)


def _check_device(name: str, device: object) -> None:
    if device is not None and not (isinstance(device, str) and _core._is_device_name(device)):
        raise ValueError(f"{name}: no device {shown(device)}")
