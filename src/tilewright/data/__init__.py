"""Data sets and the loader that gathers batches natively."""

from tilewright.data.collate import collate
from tilewright.data.digits import Digits, digits
from tilewright.data.file import FileTensor
from tilewright.data.idx import read_idx
from tilewright.data.loader import DataLoader, TensorDataset
from tilewright.data.mnist import Mnist, mnist

__all__ = [
    "DataLoader",
    "Digits",
    "FileTensor",
    "Mnist",
    "TensorDataset",
    "collate",
    "digits",
    "mnist",
    "read_idx",
]
