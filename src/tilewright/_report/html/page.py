"""A report as one HTML file that asks the network for nothing: sections, and what draws them."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import tilewright as tw
from tilewright._report.html.sections import Section
from tilewright.io.atomic import write_whole


def write(
    path: str | os.PathLike[str], title: str, sections: Iterable[Section], below: str = ""
) -> None:
    """Writes the page, whole or not at all. Raises OSError where it cannot be written."""
    text = page(title, list(sections), below)
    # A name of a file may hold bytes that are no text.
    write_whole(path, text.encode(errors="backslashreplace"), "to_html")


def page(title: str, sections: Sequence[Section], below: str = "") -> str:
    """The page's text. `below` stands under the title; all texts are escaped."""
    wanted = {name for section in sections for name in section.packages}
    scripts: list[str] = []
    styles = [_text("style.css")]
    for row in packages():
        if row["name"] in wanted:
            for path in row["files"]:
                (styles if path.endswith(".css") else scripts).append(content(row["name"], path))
    scripts.append(_text("glue.js"))
    # Only these scripts may run, and nothing may be loaded or sent.
    sums = " ".join(f"'sha256-{_sum(script)}'" for script in scripts)
    policy = (
        f"default-src 'none'; script-src {sums}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = [f'<section id="s{i}">{_section(each)}</section>' for i, each in enumerate(sections)]
    links = "".join(f'<a href="#s{i}">{escape(s.title)}</a>' for i, s in enumerate(sections))
    nav = f"<nav>{links}</nav>" if len(sections) > 1 else ""
    script = "".join(f"<script>{each}</script>" for each in scripts)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{''.join(styles)}</style></head>\n"
        f"<body><header><h1>{escape(title)}</h1><p>{escape(below)}</p>{nav}</header>\n"
        f"<main>{chr(10).join(parts)}</main>\n"
        f"<footer><p>Tilewright {escape(tw.__version__)}</p>{_licences(wanted)}</footer>"
        f"{script}</body></html>\n"
    )


def _section(section: Section) -> str:
    note = f'<p class="note">{escape(section.note)}</p>' if section.note else ""
    return f"<h2>{escape(section.title)}</h2>{note}{section.body()}"


def _licences(wanted: set[str]) -> str:
    """Of the packages in the page, and of what is built into them."""
    rows = [row for row in packages() if wanted & {row["name"], *row["built_into"]}]
    told = [
        f"<h3>{escape(row['name'])} {escape(row['version'])} ({escape(row['licence'])})</h3>"
        f"<pre>{escape(content(row['name'], path))}</pre>"
        for row in rows
        for path in row["licence_files"]
    ]
    summary = "Licences of the packages in this page"
    return f"<details><summary>{summary}</summary>{''.join(told)}</details>" if told else ""


@cache
def packages() -> list[dict[str, Any]]:
    """The rows of packages.json, in the order in which their scripts are loaded."""
    rows: list[dict[str, Any]] = json.loads(_text("packages.json"))
    return rows


def content(name: str, path: str) -> str:
    """A file of a package."""
    return _archive()[f"{name}/{path}"]


@cache
def _archive() -> dict[str, str]:
    packed = files(__package__).joinpath("packages.tar.gz").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(packed)) as members:
        return {
            member.name: file.read().decode()
            for member in members
            if (file := members.extractfile(member)) is not None
        }


@cache
def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _sum(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
