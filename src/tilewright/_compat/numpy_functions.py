"""What NumPy's functions do with tensors: imported when NumPy asks."""

from __future__ import annotations

from typing import Any

from tilewright import Tensor

# The functions behind NumPy's operators: an array beside a tensor makes a tensor, whoever is first.
_OPERATORS = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
    "true_divide": ("__truediv__", "__rtruediv__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"),
    "remainder": ("__mod__", "__rmod__"),
    "divmod": ("__divmod__", "__rdivmod__"),
    "power": ("__pow__", "__rpow__"),
    "matmul": ("__matmul__", "__rmatmul__"),
    "bitwise_and": ("__and__", "__rand__"),
    "bitwise_or": ("__or__", "__ror__"),
    "bitwise_xor": ("__xor__", "__rxor__"),
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
}


# The letters of types that tensors have.
_KINDS = "biufc"


def call(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A tensor where the function is an operator's, else what NumPy makes of the tensors' memory.

    NumPy's own way is also that of arrays that keep their operators (units, masks) and of types
    that tensors lack (dates). Raises RuntimeError for a tensor in a graph, which would not learn of
    NumPy's result, and TypeError where a tensor should take the result.
    """
    if method == "__call__" and not options and ufunc.__name__ in _OPERATORS:
        result = _operated(*_OPERATORS[ufunc.__name__], *inputs)
        if result is not NotImplemented:
            return result
    if any(isinstance(x, Tensor) for x in options.get("out", ())):
        raise TypeError(f"{ufunc.__name__}: a tensor cannot take NumPy's result; pass x.numpy()")
    return getattr(ufunc, method)(*map(_as_array, inputs), **options)


def _operated(plain: str, reflected: str, a: Any, b: Any) -> Any:
    """What the tensor's operator gives, or NotImplemented."""
    x, name, other = (a, plain, b) if isinstance(a, Tensor) else (b, reflected, a)
    kind = getattr(getattr(other, "dtype", None), "kind", "f")
    return NotImplemented if kind not in _KINDS else getattr(x, name)(other)


def _as_array(x: Any) -> Any:
    return x.numpy() if isinstance(x, Tensor) else x
