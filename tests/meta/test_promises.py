"""The page of promises and the tests that hold them say the same, and use public names only."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from repository import ROOT

import langmem_ext

PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
TESTS = ROOT / "tests" / "promises"

PUBLIC = {
    "langmem_ext",
    "langmem_ext.cli.app",
    "langmem_ext.errors",
    "langmem_ext.inspector",
    "langmem_ext.mcp_server",
    "langmem_ext.server",
    "langmem_ext.telemetry",
}
"""Modules whose names users import."""


def rows() -> list[str]:
    return [
        line
        for line in PAGE.splitlines()
        if line.startswith("| ") and not line.startswith("| promise")
    ]


def test_each_promise_names_a_test_that_is_there() -> None:
    assert len(rows()) > 30
    for row in rows():
        named = re.findall(r"`(tests/\S+\.py)`", row)
        assert named, row
        assert [name for name in named if not (ROOT / name).exists()] == []


def test_each_test_of_a_promise_is_on_the_page() -> None:
    named = set(re.findall(r"`tests/promises/(\S+\.py)`", PAGE))
    assert {path.name for path in TESTS.glob("test_*.py")} == named


def internals_of(path: Path) -> list[str]:
    """What a file imports from the package that is not public."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names if name.name not in PUBLIC]
        elif isinstance(node, ast.ImportFrom) and node.module not in PUBLIC:
            found.append(str(node.module))
        elif isinstance(node, ast.ImportFrom) and node.module == "langmem_ext":
            found += [
                f"langmem_ext.{name.name}"
                for name in node.names
                if name.name not in langmem_ext.__all__
            ]
    return [name for name in found if name.split(".")[0] == "langmem_ext"]


def test_promises_are_tested_by_public_names() -> None:
    assert {
        path.name: internals for path in TESTS.glob("*.py") if (internals := internals_of(path))
    } == {}


def test_the_page_and_its_tests_stay_short() -> None:
    assert len(PAGE.splitlines()) <= 120
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in TESTS.rglob("*.py"))
    assert lines <= 6_000
