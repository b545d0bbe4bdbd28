"""Whose folders a pool removes, and what it reads, in a folder that others write to as well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.memory import Pool

MIB = 1 << 20


def fill(parent: Path) -> None:
    """A pool that spills, and brings back what it spilled."""
    with Pool(quota_bytes=MIB, spill_dir=parent) as pool:
        xs = [tw.full((MIB // 4,), float(i)) for i in range(3)]
        assert [float(x[0]) for x in xs] == [0, 1, 2]
        mode = os.stat(pool.spill_folder).st_mode
        assert mode & 0o77 == 0
        assert all(path.stat().st_mode & 0o77 == 0 for path in Path(pool.spill_folder).iterdir())


def left_behind(folder: Path) -> Path:
    """What a process that was killed leaves."""
    folder.mkdir()
    (folder / "lock").touch()
    (folder / "block-0.bin").write_text("values")
    return folder


def test_what_a_process_left_is_removed(tmp_path):
    folder = left_behind(tmp_path / "tilewright-spill-1-aaaaaa")
    fill(tmp_path)
    assert not folder.exists()


def test_links_lead_to_nothing_that_is_removed(tmp_path):
    parent, precious = tmp_path / "parent", left_behind(tmp_path / "precious")
    parent.mkdir()
    (parent / "tilewright-spill-1-aaaaaa").symlink_to(precious)
    own = parent / "tilewright-spill-1-bbbbbb"
    own.mkdir()
    (own / "lock").symlink_to(precious / "lock")
    fill(parent)
    assert sorted(path.name for path in precious.iterdir()) == ["block-0.bin", "lock"]
    assert own.exists()  # whose lock is a link, so not a pool's


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_folders_of_other_users_are_left_alone(tmp_path):
    folder = left_behind(tmp_path / "tilewright-spill-1-aaaaaa")
    os.chown(folder, 12345, 12345)
    fill(tmp_path)
    assert (folder / "block-0.bin").read_text() == "values"
