"""What a lowering and its kernels both know is in one header, which both include.

A struct or a constant that is written twice, once in C++ and once in the text of a kernel, differs
one day, and nothing but a wrong result would tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from checkout import ROOT

CUDA = ROOT / "core/cuda"
EMULATOR = CUDA / "emulator"


@cache
def text_of(file: Path) -> str:
    """Without comments, and lines that go on joined."""
    text = file.read_text().replace("\\\n", " ")
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


@cache
def files(*patterns: str) -> list[Path]:
    found = [f for p in patterns for f in CUDA.rglob(p) if EMULATOR not in f.parents]
    assert found, patterns
    return sorted(found)


def kernels() -> list[Path]:
    return files("*.cuh")


@cache
def shared() -> list[Path]:
    """What is part of kernels' texts and of the host's sources."""
    return [*files("*parameters.h"), ROOT / "core/problems/attribute_values.h"]


@cache
def hosts() -> list[Path]:
    return [f for f in files("*.cpp", "*.h") if f not in shared()]


STRUCT = re.compile(
    r"\b(?:struct|enum class|enum)\s+(?:alignas\([^)]*\)\s*)?(\w+)\s*(?::[^{;]*)?\{"
)
CONSTANTS = re.compile(
    r"\bconstexpr\s+(?:inline\s+)?(?:unsigned|int|std::\w+|\w+_t)\s+(k[A-Z][^;()]*);"
)
MACRO = re.compile(r"^\s*#define (TW_\w+)", re.M)
ALIAS = re.compile(r"\busing (\w+) = (?:tw::)?(\w+)\b")


def structs(text: str) -> set[str]:
    return set(STRUCT.findall(text))


def constants(text: str) -> set[str]:
    """Those outside of functions: what a body calls its own matters to nobody else."""
    at_start = [
        m[1] for m in CONSTANTS.finditer(text) if text.rfind("\n", 0, m.start()) == m.start() - 1
    ]
    return {name for names in at_start for name in re.findall(r"(?:^|,)\s*(k\w+)\s*=", names)}


def kernels_of(text: str) -> Iterator[tuple[str, str]]:
    """Names of kernels, and of their parameters' types."""
    yield from re.findall(r"^TW_KERNEL\((\w+), (\w+),", text, re.M)


def test_parameters_of_kernels_are_declared_once() -> None:
    """In a header that the host includes, too, and in no kernel's text."""
    declared = {name for file in shared() for name in structs(text_of(file))}
    alias = {file: dict(ALIAS.findall(text_of(file))) for file in [*kernels(), *shared()]}
    of_all = {name: made_of for each in alias.values() for name, made_of in each.items()}
    found = 0
    for file in kernels():
        for kernel, parameter in kernels_of(text_of(file)):
            found += 1
            made_of = (of_all | alias[file]).get(parameter, parameter)
            assert made_of in declared, f"{file}: {parameter}, which {kernel} is given"
    assert found > 80


def test_no_name_is_declared_by_kernels_and_by_the_host() -> None:
    """Structs, enumerations, constants and macros of one room."""

    def declared(file: Path) -> set[str]:
        text = text_of(file)
        return structs(text) | constants(text) | set(MACRO.findall(text))

    theirs = [(file, declared(file)) for file in [*hosts(), *shared()]]
    twice = []
    for kernel in kernels():
        ours = declared(kernel)
        for file, names in theirs:
            room = file.relative_to(ROOT).parts[2]
            is_near = room == kernel.relative_to(ROOT).parts[2]
            # All rooms' sources see these.
            is_near |= room in {"gpu", "driver", "prelude"} and file.suffix == ".h"
            if is_near and (both := ours & names):
                twice.append(f"{kernel.name} and {file.name}: {', '.join(sorted(both))}")
    assert not twice, "\n".join(twice)


def test_launches_have_no_numbers_of_their_own() -> None:
    """Threads of a block and bytes of its shared memory follow from the header."""
    for file in hosts():
        for line in re.findall(r"\.(?:threads|shared_bytes) = [^;]*;", text_of(file)):
            assert not re.search(r"\b\d", line), f"{file}: {line}"
    for file in kernels():
        for line in re.findall(r"^TW_KERNEL\((.*)\) \{", text_of(file), re.M):
            bound = line.split(",", 2)[2]
            assert not re.search(r"\b(?:[2-9]|\d\d)", bound), f"{file}: TW_KERNEL({line})"


def test_settings_that_kernels_ask_for_are_given() -> None:
    """The preprocessor takes a name that is not defined for 0."""
    texts = [text_of(file) for file in [*kernels(), *shared()]]
    defined = {name for text in texts for name in MACRO.findall(text)}
    given = {name for f in hosts() for name in re.findall(r'"(?:#define )?(TW_\w+)', text_of(f))}
    asked = {
        name
        for text in texts
        for line in re.findall(r"^\s*#(?:el)?if(?:n?def)? .*", text, re.M)
        for name in re.findall(r"\bTW_\w+", line)
    }
    assert len(asked) > 10
    unknown = asked - defined - given - {"TW_EMULATED"}
    assert not unknown, unknown


def test_what_is_shared_needs_no_standard_library() -> None:
    """NVRTC has none."""
    for file in shared():
        text = text_of(file)
        assert "std::" not in text, file
        outside = re.sub(r"#ifdef __CUDACC__.*?#endif", "", text, flags=re.S)
        assert not re.search(r"#\s*include\s*<", outside), file
        names = re.findall(r'#include "([^"]*)"', text)
        known = {f.relative_to(ROOT).as_posix() for f in shared()}
        assert set(names) <= known, f"{file}: what a kernel's text cannot include"


LAWS = (
    test_parameters_of_kernels_are_declared_once,
    test_no_name_is_declared_by_kernels_and_by_the_host,
    test_launches_have_no_numbers_of_their_own,
    test_settings_that_kernels_ask_for_are_given,
    test_what_is_shared_needs_no_standard_library,
)
# A file, and what it might say instead.
PLANTED = {
    "a struct of its own": (
        "scan.cuh", "using Scan = ScanOf<T>;", "struct Scan { int64_t lines, inner, n, reverse; };",
    ),
    "a tile of its own": (
        "taps.cuh", "int kChannels = kSpreadChannels;", "int kSpreadChannels = 4;",
    ),
    "threads of its own": ("tensor.cpp", "threads = kTensorThreads;", "threads = 256;"),
    "another bound": ("conj.cuh", "Conjugate, kBlockThreads)", "Conjugate, 128)"),
    "a mode that is not there": ("recurrent.cuh", "== TW_CELL_LSTM", "== TW_CELL_LTSM"),
    "a type of the library": ("fill_parameters.h", "int64_t count;", "std::int64_t count;"),
}  # fmt: skip


@pytest.mark.parametrize("what", PLANTED)
def test_what_is_planted_is_found(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, right, wrong = PLANTED[what]
    real = text_of

    assert [file for file in files(name) if right in real(file)]

    def planted(file: Path) -> str:
        return real(file).replace(right, wrong) if file.name == name else real(file)

    monkeypatch.setitem(globals(), "text_of", planted)
    caught = 0
    for law in LAWS:
        try:
            law()
        except AssertionError:
            caught += 1
    assert caught
