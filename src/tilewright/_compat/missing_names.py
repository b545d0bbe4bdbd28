"""PyTorch's names that the package has not, with what to write instead."""

from __future__ import annotations

_LINALG = "tilewright.linalg has"
REMEDIES = {
    "as_strided": "slices, unfold and diagonal are views that know what they are of",
    "compile": "models run as they are; the engine's kernels are compiled already",
    "distributed": "one device trains one model",
    "eig": f"{_LINALG} eig and eigh",
    "jit": "models run as they are",
    "lstsq": f"{_LINALG} lstsq",
    "lu": f"{_LINALG} lu_factor, whose result lu_unpack takes apart, and lu",
    "lu_solve": f"{_LINALG} lu_solve(LU, pivots, b)",
    "matrix_rank": f"{_LINALG} matrix_rank",
    "multiprocessing": "loaders have threads",
    "qr": f"{_LINALG} qr",
    "quantization": "tensors are dense and floating",
    "range": "arange, without the end",
    "set_default_tensor_type": "set_default_dtype and set_default_device",
    "solve": f"{_LINALG} solve",
    "sparse_coo_tensor": "tensors are dense",
    "svd": f"{_LINALG} svd, which gives Vh, the adjoint of PyTorch's V",
    "symeig": f"{_LINALG} eigh",
    "triangular_solve": f"{_LINALG} solve_triangular",
}
