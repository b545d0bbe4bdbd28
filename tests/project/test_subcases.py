"""Cases inside of one test: all run, and each that fails is named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from subcases import each, seed_of


def request(nodeid: str = "tests/ops/test_x.py::test_y", case: str = "") -> Any:
    options = {"--seed": 3, "--case": case}
    return SimpleNamespace(
        node=SimpleNamespace(nodeid=nodeid),
        path=SimpleNamespace(name="test_x.py"),
        config=SimpleNamespace(getoption=options.__getitem__),
    )


def test_all_cases_run_and_each_that_fails_is_named() -> None:
    ran = []

    @each("b", lambda a: [a, 10 * a])
    @each("a", [1, 2, 3])
    def test(a: int, b: int) -> None:
        ran.append((a, b))
        assert b != 2, "is two"
        if b == 30:
            raise KeyError("thirty")

    with pytest.raises(AssertionError) as caught:
        test(request=request())
    assert ran == [(1, 1), (1, 10), (2, 2), (2, 20), (3, 3), (3, 30)]
    text = str(caught.value)
    assert text.startswith("2 of 6 cases failed: 2-2, 3-30\n")
    assert "is two" in text
    assert "thirty" in text
    assert f"{__file__}:" in text


def test_some_cases_may_be_skipped_or_left_out() -> None:
    ran = []

    @each("a", ["one", "two", "three"])
    def test(a: str) -> None:
        ran.append(a)
        if a != "two":
            pytest.skip(f"not {a}")

    test(request=request())
    assert ran == ["one", "two", "three"]
    for case, text in (("one|three", "not three"), ("four", "no case with 'four'")):
        with pytest.raises(pytest.skip.Exception, match=text):
            test(request=request(case=case))


def test_a_test_without_cases_fails() -> None:
    @each("a", [])
    def test(a: int) -> None:
        pass

    with pytest.raises(AssertionError, match="no cases"):
        test(request=request())


def test_a_failing_pytest_raises_is_a_failure() -> None:
    @each("a", [1])
    def test(a: int) -> None:
        with pytest.raises(ValueError, match="x"):
            pass

    with pytest.raises(AssertionError, match="1 of 1 cases failed"):
        test(request=request())


def test_seeds_are_those_of_a_test_of_that_name() -> None:
    drawn = []

    @each("a", ["one", "two"])
    def test(a: str, seed: list[int]) -> None:
        drawn.append(seed)

    test(request=request())
    assert drawn == [seed_of(request(f"test_x.py::test_y[{a}]")) for a in ("one", "two")]
    assert drawn[0] != drawn[1]
    for outer, whole in (
        ("[p]", "[p-one]"),
        ("[p-scalar]", "[p-one-scalar]"),
        ("[scalar]", "[one-scalar]"),
    ):
        expected = seed_of(request(f"test_x.py::test_y{whole}"))
        assert seed_of(request(f"test_x.py::test_y{outer}"), "one") == expected
