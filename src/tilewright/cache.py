"""The user's cache folder: downloads, and what `tilewright tune` has measured."""

from __future__ import annotations

import os
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
    from tilewright.extras import require  # noqa: PLC0415  (off the path of an import)

    platformdirs = require(
        "platformdirs", purpose="finding the cache folder", install="platformdirs"
    )
    return str(platformdirs.user_cache_dir("tilewright"))


def tuning_path() -> str:
    """The table of `tilewright tune`, whether or not it exists."""
    return os.path.join(cache_folder(), "tuning.json")
