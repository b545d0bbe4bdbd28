"""Each bug of tools/planted_bugs.py has its place in the sources, so that it can be planted."""

from __future__ import annotations

import importlib.util
import sys

from checkout import ROOT


def test_every_bug_can_be_planted() -> None:
    path = ROOT / "tools/planted_bugs.py"
    spec = importlib.util.spec_from_file_location("planted_bugs", path)
    planted_bugs = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = planted_bugs  # where its dataclass looks for itself
    spec.loader.exec_module(planted_bugs)
    assert len(planted_bugs.BUGS) >= 20
    places = {bug.name: planted_bugs.places(bug, ROOT) for bug in planted_bugs.BUGS}
    assert not [name for name, found in places.items() if len(found) != 1]
    targets = (ROOT / "Makefile").read_text()
    for bug in planted_bugs.BUGS:
        files = [word for word in bug.tests.split() if "/" in word]
        assert all((ROOT / file).exists() for file in files)
        assert files or f"\n{bug.tests}:" in targets
