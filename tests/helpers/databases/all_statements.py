"""What the tests of dialects know: every statement that the package makes."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from langmem_ext import storage
from langmem_ext.storage.checkpoints import sql
from langmem_ext.storage.schema import search_dialect
from langmem_ext.storage.schema.dialect import label, scalar
from langmem_ext.storage.search import sql as search
from langmem_ext.storage.threads import sql as threads
from langmem_ext.storage.threads.rows_sql import AFTER, SELECT_IDS, TABLES

SQLITE_ALONE: Final = re.compile(
    r"\b(PRAGMA|pragma_\w+|sqlite_\w+|checkpoints|writes|search \(search,"
    r" rank|total_changes)\b(?!')"
)
"""What only SQLite is asked: the files of other checkpointers, FTS5 to merge, and SQLite's own
pages."""

_BEGINNING: Final = re.compile(
    r"(SELECT|INSERT|UPDATE|DELETE|\[(integrity|pages|has sizes|sizes|size|hindrance|put words|copy"
    r" words|mark stale)\])"
)
_PATTERN: Final = re.compile(r"\{\w+\}")


def statements() -> Iterator[tuple[str, str]]:
    """Names and texts of all statements, but those that create tables or list them."""
    for module in pkgutil.walk_packages(storage.__path__, f"{storage.__name__}."):
        if module.ispkg or module.name == "langmem_ext.storage.schema.postgres":
            continue
        for name, value in vars(import_module(module.name)).items():
            if name.isupper() and not name.startswith("_"):
                for at, text in enumerate(_texts(value)):
                    if _BEGINNING.match(text) and not _PATTERN.search(text):
                        yield f"{module.name}.{name}.{at}", text
    yield from _composed()


def _texts(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, str):
        value = (value,)
    return [one for one in value if isinstance(one, str)] if isinstance(value, tuple) else []


def _composed() -> Iterator[tuple[str, str]]:
    """Those that are put together, each part of them once."""
    for table in TABLES:
        yield f"insert {table.name}", table.insert()
        yield f"page of {table.name}", table.page()
    yield "items by id", sql.FIND_ITEMS.format(ids=":id0, :id1")
    labels = {
        "label": f"{label(0)} = {scalar(0)}",
        "no label": f"{label(1)} IS NULL",
        "after": sql.PAGE_AFTER,
    }
    for name, condition in (sql.PAGE_CONDITIONS | labels).items():
        yield (
            f"checkpoints by {name}",
            sql.SELECT_CHECKPOINT_PAGE.format(where=f" WHERE {condition}"),
        )
    for latest in (
        search_dialect.LATEST_OF_THREAD,
        search_dialect.LATEST_OF_OWNER,
        search_dialect.LATEST_OF_ALL,
    ):
        conditions = (
            f" AND {search_dialect.OF_OWNER} AND {search_dialect.OF_ROLE} AND"
            f" {search_dialect.SINCE} AND {search_dialect.looked_at(1)}"
        )
        yield (
            f"{latest} with words",
            search.SELECT_LATEST_WITH.format(latest=latest, conditions=conditions),
        )
        yield f"number of {latest}", search.COUNT_LATEST.format(latest=latest, counts="")
        yield f"matches of {latest}", search.SELECT_MATCHES.format(conditions=conditions)
    further = {
        name: getattr(threads, name)
        for name in ("SOUND", "STATUS", "STATUS_OF_FEW", "WITHIN", "BEFORE", "EARLIER")
    }
    for name, condition in (threads.CONDITIONS | further).items():
        yield f"threads by {name}", threads.SELECT_PAGE.format(where=f" WHERE {condition}")
        yield f"number of threads by {name}", threads.COUNT_PAGE.format(where=f" WHERE {condition}")
        yield (
            f"ids of threads by {name}",
            SELECT_IDS.format(where=f" WHERE {condition} AND {AFTER}"),
        )
