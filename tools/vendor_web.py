"""Writes the npm packages that reports embed into src/tilewright/_report/html.

`packages.json` there names each package with its version, the sha512 of its archive, its licence
and the files that are taken. This tool downloads exactly these versions with npm, refuses archives
of another sum, and writes `packages.tar.gz`: the same bytes for the same table.

    python tools/vendor_web.py                       # writes the archive anew
    python tools/vendor_web.py chart.js@4.6.1        # takes this version from now on
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

ROOM = Path(__file__).resolve().parent.parent / "src/tilewright/_report/html"
TABLE, ARCHIVE = ROOM / "packages.json", ROOM / "packages.tar.gz"


def main() -> None:
    """Downloads, checks and writes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "package", nargs="*", metavar="NAME@VERSION", help="take this version from now on"
    )
    table: list[dict[str, Any]] = json.loads(TABLE.read_text())
    for chosen in parser.parse_args().package:
        name, _, version = chosen.rpartition("@")
        row = next((row for row in table if row["name"] == name), None)
        if row is None:
            parser.error(f"no package {name!r}; known: {', '.join(row['name'] for row in table)}")
        if version != row["version"]:
            row |= {"version": version, "integrity": ""}
    contents: dict[str, bytes] = {}
    for row in table:
        packed = download(row)
        for path in [*row["files"], *row["licence_files"]]:
            contents[f"{row['name']}/{path}"] = taken(packed, path)
    TABLE.write_text(json.dumps(table, indent=2) + "\n")
    ARCHIVE.write_bytes(archive(contents))
    print(f"{ARCHIVE}: {len(table)} packages, {ARCHIVE.stat().st_size:,} bytes")


def download(row: dict[str, Any]) -> bytes:
    """A package's archive, whose sum is the table's; a row without a sum gets it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["npm", "pack", "--silent", f"{row['name']}@{row['version']}"],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (file,) = Path(folder).iterdir()
        packed = file.read_bytes()
    found = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
    if found != (row["integrity"] or found):
        raise SystemExit(f"{row['name']}: expected {row['integrity']}, got {found}")
    row["integrity"] = found
    return packed


def taken(packed: bytes, path: str) -> bytes:
    """A file of a package. Raises SystemExit for text that would end the element it is put into."""
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        found = files.extractfile(f"package/{path}")
        assert found is not None, path
        content = found.read()
    for end in (b"</script", b"</style", b"<!--"):
        if end in content.lower():
            raise SystemExit(f"{path} contains {end.decode()}: it cannot be embedded")
    # A name of a further file, which browsers would ask for.
    lines = [line for line in content.split(b"\n") if not line.startswith(b"//# sourceMappingURL")]
    return b"\n".join(lines)


def archive(contents: dict[str, bytes]) -> bytes:
    """A compressed archive without dates and owners."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as files:
        for path, content in sorted(contents.items()):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            files.addfile(member, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), compresslevel=9, mtime=0)


if __name__ == "__main__":
    main()
