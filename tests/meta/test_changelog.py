"""The changelog keeps up with the package."""

from __future__ import annotations

import re

from repository import ROOT

import langmem_ext
from langmem_ext.storage.schema.migrations import MIGRATIONS

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
RELEASES = re.findall(r"^## \[([^\]]+)\](?: - (\d{4}-\d{2}-\d{2}))?$", CHANGELOG, re.MULTILINE)


def test_the_top_release_is_the_package_or_still_to_come() -> None:
    assert RELEASES[0][0] in ("Unreleased", langmem_ext.__version__)


def test_every_release_has_a_date() -> None:
    assert [name for name, date in RELEASES if not date and name != "Unreleased"] == []


def test_headings_are_those_of_keep_a_changelog() -> None:
    kinds = set(re.findall(r"^### (.+)$", CHANGELOG, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Migrations"}


def test_every_change_of_the_schema_is_named() -> None:
    assert [
        migration.name for migration in MIGRATIONS if f"`{migration.name}`" not in CHANGELOG
    ] == []
