"""The npm packages that pages embed: what is committed, and the tool that downloads them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.util
import io
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from checkout import ROOT

from tilewright._report.html import charts, page, sections

ROOM = ROOT / "src/tilewright/_report/html"


class TestPackages:
    def test_the_archive_holds_what_the_table_names(self):
        wanted = {
            f"{row['name']}/{path}"
            for row in page.packages()
            for path in [*row["files"], *row["licence_files"]]
        }
        assert set(page._archive()) == wanted
        assert all(row["licence_files"] for row in page.packages())
        assert (ROOM / "packages.tar.gz").stat().st_size < 600_000

    def test_scripts_name_their_version(self):
        for row in page.packages():
            for path in row["files"]:
                start = page.content(row["name"], path)[:200]
                if found := re.search(r"\bv(\d+\.\d+\.\d+)", start):
                    assert found[1] == row["version"], row["name"]

    def test_the_page_of_dependencies_names_them(self):
        text = (ROOT / "docs/design/dependencies.md").read_text()
        for row in page.packages():
            assert f"| `{row['name']}` | {row['version']} | {row['licence']} |" in text

    def test_sections_need_packages_of_the_table(self):
        known = {row["name"] for row in page.packages()}
        kinds = (
            sections.Text, sections.Table, sections.FlameGraph, charts.Timeline, charts.Scatter,
            charts.Waterfall,
        )  # fmt: skip
        assert all(known.issuperset(kind.packages) for kind in kinds)


@pytest.fixture(scope="module")
def vendoring():
    spec = importlib.util.spec_from_file_location("vendor_web", ROOT / "tools/vendor_web.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestVendoring:
    @pytest.fixture
    def npm(self, monkeypatch):
        """Packages as npm would download them."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as files:
            for name, content in (("a.js", b"1\n//# sourceMappingURL=a.map"), ("b", b"</SCRIPT>")):
                member = tarfile.TarInfo(f"package/{name}")
                member.size = len(content)
                files.addfile(member, io.BytesIO(content))

        def run(command, cwd, **_):
            assert command[:2] == ["npm", "pack"]
            (Path(cwd) / "x.tgz").write_bytes(packed.getvalue())

        monkeypatch.setattr(subprocess, "run", run)
        return packed.getvalue()

    def test_another_sum_is_refused(self, vendoring, npm):
        digest = base64.b64encode(hashlib.sha512(npm).digest()).decode()
        right = {"name": "x", "version": "1.0.0", "integrity": f"sha512-{digest}"}
        assert vendoring.download(right) == npm
        with pytest.raises(SystemExit, match="x: expected sha512-AAAA, got sha512-"):
            vendoring.download({**right, "integrity": "sha512-AAAA"})
        new = {**right, "integrity": ""}
        vendoring.download(new)
        assert new == right

    def test_text_that_would_end_its_element_is_refused(self, vendoring, npm):
        assert vendoring.taken(npm, "a.js") == b"1"
        with pytest.raises(SystemExit, match="b contains </script"):
            vendoring.taken(npm, "b")

    def test_the_same_bytes_each_time(self, vendoring):
        contents = {name: text.encode() for name, text in page._archive().items()}
        again = vendoring.archive(contents)
        committed = (ROOM / "packages.tar.gz").read_bytes()
        assert gzip.decompress(again) == gzip.decompress(committed)
