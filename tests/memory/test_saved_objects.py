"""What was pickled before the modules moved into rooms comes back."""

import pickle

import pytest
from cases import saved_objects

PICKLES = saved_objects.pickles()


@pytest.fixture(scope="module")
def made_now():
    return saved_objects.objects()


@pytest.mark.parametrize("name", PICKLES)
def test_an_older_pickle_is_of_the_class_of_today(name, made_now):
    older, now = pickle.loads(PICKLES[name]), made_now[name]
    # A parametrized module has a class of its own, which is made anew.
    assert type(older).__qualname__ == type(now).__qualname__
    assert type(older).__mro__[1:] == type(now).__mro__[1:]
    if isinstance(older, dict):  # functions, which are compared by themselves
        assert older.items() <= now.items()
    if hasattr(older, "state_dict"):
        assert sorted(older.state_dict()) == sorted(now.state_dict())
