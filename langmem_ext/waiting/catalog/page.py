"""The tables of catalog keys in `docs/waiting.md`: `python -m langmem_ext.waiting.catalog.page docs/waiting.md` writes them anew."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from langmem_ext.waiting.catalog.intent import CatalogFields, Intent, Replies
from langmem_ext.waiting.catalog.param import Param, ParamType, doubtful_below

TABLES: Final[dict[str, type[BaseModel]]] = {"catalog": CatalogFields, "intents": Intent, "params": Param, "replies": Replies}
"""The sections of a catalog to the declarations that they hold."""


def table(model: type[BaseModel]) -> str:
    """The keys of a declaration as a table of Markdown, from its own docstring."""
    return "\n".join(["| key | default | meaning |", "|---|---|---|", *_rows(model)])


def types_table() -> str:
    """The types of parameters as a table of Markdown."""
    meanings = _meanings(ParamType)
    rows = [f"| `{kind}` | {meanings[kind.name]} | {doubtful_below(Param(name='x', type=kind)) or ''} |" for kind in ParamType]
    return "\n".join(["| type | its values | doubtful below |", "|---|---|---|", *rows])


def with_tables(page: str) -> str:
    """The page with the tables as they are now."""
    tables = {name: table(model) for name, model in TABLES.items()} | {"types": types_table()}
    for name, shown in tables.items():
        begin, end = f"<!-- {name}: made by `make fix` -->", f"<!-- end of {name} -->"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n\n{shown}\n\n{end}{after}"
    return page


def _rows(model: type[BaseModel]) -> Iterator[str]:
    meanings = _meanings(model)
    for name, field in model.model_fields.items():
        default = "" if field.is_required() or field.default_factory else field.default
        shown = f"`{default}`" if default not in ("", None, ()) else ""
        yield f"| `{name}` | {shown.replace('|', ' ')} | {meanings[name].replace('|', ' or ')} |"


def _meanings(model: type[object]) -> dict[str, str]:
    """What the docstring says of each attribute."""
    _, _, attributes = inspect.cleandoc(model.__doc__ or "").partition("Attributes:\n")
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")
