"""Data sets, and the loader that gathers batches natively."""

from tilewright.data.collate import collate, default_collate
from tilewright.data.csv import read_csv
from tilewright.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from tilewright.data.digits import Digits, digits
from tilewright.data.file import FileTensor
from tilewright.data.files import from_file
from tilewright.data.idx import read_idx
from tilewright.data.items import item_generator
from tilewright.data.loader import DataLoader
from tilewright.data.mnist import Mnist, mnist
from tilewright.data.npy import read_npy, read_npz
from tilewright.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from tilewright.data.shakespeare import tinyshakespeare
from tilewright.data.text import ByteVocabulary, Vocabulary, Windows
from tilewright.data.transforms import (
    Compose,
    Normalize,
    RandomCrop,
    RandomHorizontalFlip,
    RandomShift,
)
from tilewright.data.workers import get_worker_info

__all__ = [
    "BatchSampler",
    "ByteVocabulary",
    "ChainDataset",
    "Compose",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "Digits",
    "FileTensor",
    "IterableDataset",
    "Mnist",
    "Normalize",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomSampler",
    "RandomShift",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "Vocabulary",
    "WeightedRandomSampler",
    "Windows",
    "collate",
    "default_collate",
    "digits",
    "from_file",
    "get_worker_info",
    "item_generator",
    "mnist",
    "random_split",
    "read_csv",
    "read_idx",
    "read_npy",
    "read_npz",
    "tinyshakespeare",
]
