"""PyTorch's test records (OpInfo); without PyTorch the tests that walk them are skipped."""

import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # what PyTorch's test modules need beside it
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of PyTorch's own imports
    from torch.testing._internal import common_utils
    from torch.testing._internal.common_methods_invocations import op_db

# What a record costs besides its samples, five times as much under pytest: it looks for a
# unittest.TestCase on the stack, and for each sample seeds devices that are not there, noting the
# stack for each of them.
common_utils.extract_test_fn = lambda: None
torch.manual_seed = torch.default_generator.manual_seed

__all__ = ["op_db", "torch"]
