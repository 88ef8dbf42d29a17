"""What a release says of itself: its addresses, and the README with links that lead there.

An index shows the README on a page of its own, where links of this repository lead nowhere. The
address of the repository stands in one place: `[tool.langmem-ext] repository` in pyproject.toml.
Where that is empty, what would be a link is text alone, and a picture is left out.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"!\[[^\]]*\]\((?!https?:)[^)]+\)\n*|<picture>.*?</picture>\n*", re.DOTALL)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)([^)]+)\)")


class CustomMetadataHook(MetadataHookInterface):
    """Fills in `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add what is known."""
        root = Path(self.root)
        repository = _repository(root)
        text = (root / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": readme(text, repository, metadata["version"]),
        }
        metadata["urls"] = urls(repository)


def _repository(root: Path) -> str:
    told = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return str(told["tool"]["langmem-ext"]["repository"]).rstrip("/")


def urls(repository: str) -> dict[str, str]:
    """The addresses that an index shows; none without a repository."""
    if not repository:
        return {}
    return {
        "Source": repository,
        "Documentation": f"{repository}/blob/main/docs/index.md",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


def readme(text: str, repository: str, version: str) -> str:
    """The README for an index: links and pictures of this version, by their whole address."""
    pages, files = (f"{repository}/{kind}/v{version}" for kind in ("blob", "raw"))

    def picture(found: re.Match[str]) -> str:
        if not repository:
            return ""
        return re.sub(r'(srcset=|src=|\]\()("?)(?!https?:)', rf"\1\2{files}/", found[0])

    def link(found: re.Match[str]) -> str:
        if not repository:
            return found[1]
        where = found[2] if not found[2].startswith("#") else f"README.md{found[2]}"
        return f"[{found[1]}]({pages}/{where})"

    return LINK.sub(link, PICTURE.sub(picture, text))
