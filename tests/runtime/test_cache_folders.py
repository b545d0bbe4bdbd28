"""Folders for caches and spilled blocks beside those of other users."""

from __future__ import annotations

import os
import stat

import pytest

import tilewright as tw
from tilewright._engine import cache
from tilewright.memory import Pool
from tilewright.tune import table

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")


def test_folders_are_made_for_their_user(tmp_path) -> None:
    cache.make_folder(os.fspath(tmp_path / "new"))
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) & 0o077 == 0
    cache.make_folder(os.fspath(tmp_path / "new"))


def test_files_that_others_may_have_written(tmp_path) -> None:
    file = tmp_path / "x"
    file.write_text("{}", encoding="utf-8")
    for mode, others in ((0o600, False), (0o664, False), (0o646, True)):
        file.chmod(mode)
        assert cache.may_be_of_others(file.stat()) is others
    values = list(file.stat())
    values[stat.ST_UID] = os.geteuid() + 1
    assert cache.may_be_of_others(os.stat_result(values))


def test_a_table_that_others_may_write_is_not_read(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", os.fspath(tmp_path))
    file = tmp_path / "tuning.json"
    file.write_text("{}", encoding="utf-8")
    file.chmod(0o666)
    with pytest.raises(ValueError, match="another user may have written it"):
        table.read(os.fspath(file))
    file.chmod(0o600)
    with pytest.raises(ValueError, match="damaged"):
        table.read(os.fspath(file))


def test_spilled_blocks_are_their_users(tmp_path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "lock").touch()
    (tmp_path / "tilewright-spill-1-planted").symlink_to(victim)
    (tmp_path / "tilewright-spill-2-lock").mkdir()
    (tmp_path / "tilewright-spill-2-lock" / "lock").symlink_to(victim / "lock")
    planted = set(tmp_path.iterdir())
    os.umask(before := os.umask(0))
    with Pool(quota_bytes=2 << 20, spill_dir=tmp_path) as pool:
        os.umask(0)
        try:
            tensors = [tw.full((1 << 18,), float(i)) for i in range(4)]
        finally:
            os.umask(before)
        assert pool.stats()["spills"] > 0
        (folder,) = set(tmp_path.glob("tilewright-spill-*")) - planted
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(f.stat().st_mode) & 0o077 for f in folder.iterdir()} == {0}
        assert [x[0].item() for x in tensors] == [0.0, 1.0, 2.0, 3.0]
    assert (victim / "lock").exists()
    assert (tmp_path / "tilewright-spill-1-planted").is_symlink()
    assert (tmp_path / "tilewright-spill-2-lock").exists()
