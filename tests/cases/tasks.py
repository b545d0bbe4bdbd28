"""What tests of the scheduler share."""

import threading

import pytest

from tilewright.runtime import scheduler as module

# A wait that ends long before unless something is broken.
PATIENCE = 60


@pytest.fixture(params=["native", "reference"], autouse=True)
def implementation(request, monkeypatch):
    monkeypatch.setattr(module, "_REFERENCE", request.param == "reference")
    return request.param


class Gate:
    """A task's function that stands still until it is opened."""

    def __init__(self):
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self, *result):
        self.entered.set()
        assert self.opened.wait(PATIENCE)
        return result
