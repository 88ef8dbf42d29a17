"""What `make docs` does besides: the notebooks become pages, links out of `docs/` stay links.

Everything that a page needs is in the site: no font, script or picture is fetched from a network.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import nbformat
from mkdocs.structure.files import File, Files
from nbconvert import HTMLExporter

import langmem_ext

ROOT: Final = Path(__file__).parents[2]


GROUPS: Final = {
    "checkpointer": ("Checkpointer and log", "checkpointer log maintenance storage telemetry"),
    "threads": ("Threads", "threads types messages.turns messages.annotations"),
    "waiting": ("The graph that asks", "waiting"),
    "context": ("Context", "context messages"),
    "memory": ("Memory and store", "memory store"),
    "errors": ("Errors and settings", "errors settings"),
}
"""The pages of the reference: their titles, and the packages whose public names they show."""


def on_files(files: Files, *, config: Any) -> Files:
    """Add the reference, and each notebook as a page of its own with what it shows."""
    for name, page in _reference():
        files.append(File.generated(config, f"reference/{name}.md", content=page))
    exporter = HTMLExporter(mathjax_url="", require_js_url="", jquery_url="", mermaid_js_url="")
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        page, _ = exporter.from_notebook_node(nbformat.read(path, as_version=4))
        page = re.sub(r'<script type="module">.*?</script>', "", page, flags=re.DOTALL)  # fetches
        page = page.replace("../docs/pictures/", "../pictures/")
        files.append(File.generated(config, f"notebooks/{path.stem}.html", content=page))
    return files


def _reference() -> Iterator[tuple[str, str]]:
    left = dict(langmem_ext._HOMES)
    for page, (title, packages) in GROUPS.items():
        roots = tuple(f"{package}." for package in packages.split())
        names = sorted(name for name, home in left.items() if f"{home}.".startswith(roots))
        lines = [f"::: langmem_ext.{left.pop(name)}.{name}" for name in names]
        note = "Import these from `langmem_ext`. What reads or writes has an async twin: `aget`."
        yield page, "\n\n".join([f"# {title}", note, *lines])
    if left:
        raise ValueError(f"in no page of the reference: {sorted(left)}")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Lead links to notebooks to their pages; what else is outside of `docs/` is named alone."""
    folder = posixpath.dirname(page.file.src_uri)

    def led(match: re.Match[str]) -> str:
        text, target = match[1], match[2]
        place = posixpath.normpath(posixpath.join("docs", folder, target))
        if place.startswith("docs/") or "://" in target or target.startswith("#"):
            return match[0]
        if place.startswith("notebooks/") and place.endswith(".ipynb"):
            page_of = f"{place.removesuffix('.ipynb')}.html"
            return f"[{text}]({posixpath.relpath(page_of, folder or '.')})"
        return f"{text} (`{place}`)"

    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", led, markdown)
