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


def call(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A tensor where the function is an operator's, else what NumPy makes of the tensors' memory.

    Raises RuntimeError for a tensor in a graph, which would not learn of NumPy's result, and
    TypeError where a tensor should take the result.
    """
    if method == "__call__" and not options and ufunc.__name__ in _OPERATORS:
        plain, reflected = _OPERATORS[ufunc.__name__]
        a, b = inputs
        if isinstance(a, Tensor):
            return getattr(a, plain)(b)
        return getattr(b, reflected)(a)
    if any(isinstance(x, Tensor) for x in options.get("out", ())):
        raise TypeError(f"{ufunc.__name__}: a tensor cannot take NumPy's result; pass x.numpy()")
    return getattr(ufunc, method)(*map(_as_array, inputs), **options)


def _as_array(x: Any) -> Any:
    return x.numpy() if isinstance(x, Tensor) else x
