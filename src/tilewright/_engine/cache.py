"""The user's cache folder: downloads, and what `tilewright tune` has measured."""

from __future__ import annotations

import os
import stat
import sys

from tilewright import _core


def cache_folder() -> str:
    """TILEWRIGHT_CACHE_DIR where set, else platformdirs' `user_cache_dir("tilewright")`.

    On Linux the rule (XDG Base Directory Specification) stands here, because every import asks
    for it and platformdirs takes longer to load than the engine; a test holds the two together.
    Raises ImportError on other systems without platformdirs.
    """
    if named := _core.env_text("CACHE_DIR"):
        return named
    if sys.platform.startswith("linux"):
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not base.strip():
            base = os.path.expanduser("~/.cache")
        return os.path.join(base, "tilewright")
    from tilewright._engine.optional_packages import require  # noqa: PLC0415  (off the path of an import)

    platformdirs = require(
        "platformdirs", purpose="finding the cache folder", install="platformdirs"
    )
    return str(platformdirs.user_cache_dir("tilewright"))


def tuning_path() -> str:
    """The table of `tilewright tune`, whether or not it exists."""
    return os.path.join(cache_folder(), "tuning.json")


def make_folder(folder: str) -> None:
    """Makes it where it is missing, for this user alone."""
    os.makedirs(folder, mode=0o700, exist_ok=True)


def may_be_of_others(status: os.stat_result) -> bool:
    """Whether a user other than this one and the system's may have written a file."""
    if not hasattr(os, "geteuid"):  # on Windows the profile's folders are the user's
        return False
    return status.st_uid not in (0, os.geteuid()) or bool(status.st_mode & stat.S_IWOTH)
