"""What an index shows of a release: addresses, and a README whose links lead somewhere."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from repository import ROOT

import langmem_ext

ADDRESS = "https://example.com/langmem-ext/langmem-ext"


def metadata(folder: Path, repository: str) -> ProjectMetadata[PluginManager]:
    """What the build backend says of the project, with an address of the repository."""
    for name in ("README.md", "LICENSE", "hatch_build.py"):
        shutil.copy(ROOT / name, folder)
    (folder / "langmem_ext").mkdir()
    shutil.copy(ROOT / "langmem_ext" / "__init__.py", folder / "langmem_ext")
    told = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    told = re.sub(r'^repository = ".*"', f'repository = "{repository}"', told, flags=re.MULTILINE)
    (folder / "pyproject.toml").write_text(told, encoding="utf-8")
    return ProjectMetadata(str(folder), PluginManager())


def links_of(text: str) -> list[str]:
    found = re.findall(r"\]\(([^)]+)\)|(?:src|srcset)=\"([^\"]+)\"", text)
    return [link or source for link, source in found]


def test_links_and_pictures_lead_into_the_repository_at_this_version(tmp_path: Path) -> None:
    core = metadata(tmp_path, f"{ADDRESS}/").core
    assert core.urls["Source"] == ADDRESS
    assert all(url.startswith(ADDRESS) for url in core.urls.values())
    links = links_of(core.readme)
    own = [link.removeprefix(ADDRESS) for link in links if link.startswith(ADDRESS)]
    assert len(own) > 40
    assert [link for link in links if not link.startswith("https://")] == []
    version = f"v{langmem_ext.__version__}"
    for link in own:
        kind, tag, path = re.fullmatch(r"/(blob|raw)/([^/]+)/([^#]+)(?:#.*)?", link).groups()  # type: ignore[union-attr]
        assert (ROOT / path).exists(), link
        assert tag == version
        assert (kind == "raw") == (Path(path).suffix in (".png", ".svg"))


def test_without_an_address_nothing_is_linked_that_leads_nowhere(tmp_path: Path) -> None:
    core = metadata(tmp_path, "").core
    assert core.urls == {}
    assert [link for link in links_of(core.readme) if "://" not in link] == []
    assert "<picture>" not in core.readme
    assert "# langmem-ext" in core.readme
    assert "Try it" in core.readme


def test_what_the_project_says_of_itself_is_complete() -> None:
    core = ProjectMetadata(str(ROOT), PluginManager()).core
    assert core.license_expression == "MIT"
    assert core.description
    assert "Typing :: Typed" in core.classifiers
    assert (ROOT / "langmem_ext" / "py.typed").exists()
