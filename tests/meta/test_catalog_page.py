"""The page about the waiting graph names every key of a catalog and every command."""

from __future__ import annotations

import typing

from repository import ROOT

from docs.making.pages import DECLARATIONS, with_catalog
from langmem_ext.waiting.catalog.param import ParamType
from langmem_ext.waiting.understand.commands import Command

PAGE = (ROOT / "docs" / "guide" / "waiting.md").read_text(encoding="utf-8")


def test_the_tables_are_up_to_date() -> None:
    assert with_catalog(PAGE) == PAGE, "make fix writes them anew"
    assert [kind for kind in ParamType if f"\n| `{kind}` |" not in PAGE] == []
    for model in DECLARATIONS.values():
        assert [name for name in model.model_fields if f"\n| `{name}` |" not in PAGE] == []


def test_every_command_is_on_the_page() -> None:
    names = [kind.__name__.lower() for kind in typing.get_args(Command)]
    assert [name for name in names if f"`{name}`" not in PAGE] == []
