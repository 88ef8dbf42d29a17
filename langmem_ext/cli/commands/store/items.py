"""The items of the long-term store, from the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer
from langgraph.store.base import IndexConfig

from langmem_ext.cli.attribute import load
from langmem_ext.cli.commands.threads.listing import counted, opened_log, settings_for
from langmem_ext.cli.commands.threads.transfer import SafeOutput
from langmem_ext.cli.control_characters import escaped, json_line, printable
from langmem_ext.cli.errors import in_a_line
from langmem_ext.errors import InvalidInput, LangmemExtError
from langmem_ext.store.store import DeltaStore
from langmem_ext.threads.export.files import read_lines, written
from langmem_ext.threads.export.reader import MAX_BYTES, MAX_LINE

PAGE = 100
"""Namespaces, or items, that are listed at a time."""


def list_with(
    db: str | None, owner: str | None, namespace: Sequence[str], *, as_json: bool
) -> None:
    """Print namespaces, or the items below one, a line each.

    Raises:
        LangmemExtError: The database cannot be read.
    """
    with _opened(db, owner, read_only=True) as store:
        for at in range(0, sys.maxsize, PAGE):
            lines = _items(store, tuple(namespace), at) if namespace else _namespaces(store, at)
            for line in lines:
                typer.echo(json_line(line) if as_json else _shown(line))
            if len(lines) < PAGE:
                return


def _namespaces(store: DeltaStore, offset: int) -> list[dict[str, object]]:
    return [
        {"namespace": list(namespace)}
        for namespace in store.list_namespaces(limit=PAGE, offset=offset)
    ]


def _items(store: DeltaStore, prefix: tuple[str, ...], offset: int) -> list[dict[str, object]]:
    items = store.search(prefix, limit=PAGE, offset=offset, refresh_ttl=False)
    return [
        {name: value for name, value in item.dict().items() if name != "score"} for item in items
    ]


def _shown(line: dict[str, object]) -> str:
    labels, key = line["namespace"], line.get("key")
    assert isinstance(labels, list)
    parts = ["/".join(labels), *([] if key is None else [str(key), json_line(line["value"])])]
    return "\t".join(printable(part) for part in parts)


def export_with(db: str | None, owner: str | None, to: str) -> None:
    """Write all items to a file or to standard output.

    Raises:
        LangmemExtError: An item is damaged, or the file cannot be written.
    """
    target = (
        (SafeOutput(sys.stdout, escaped) if sys.stdout.isatty() else sys.stdout)
        if to == "-"
        else to
    )
    count = -1  # but for the first line
    with _opened(db, owner, read_only=True) as store, written(target) as write:
        for line in store.export_lines():
            write(line.encode() + b"\n")
            count += 1
    typer.echo(f"{counted(count, 'item')} exported", err=True)


def import_with(db: str | None, owner: str | None, source: str) -> None:
    """Store the items of a file.

    Raises:
        LangmemExtError: A line is no item, or the database cannot be written.
    """
    with (
        read_lines(source, max_bytes=MAX_BYTES, max_line=MAX_LINE) as lines,
        _opened(db, owner, read_only=False) as store,
    ):
        count = store.import_lines(line.decode("utf-8", "surrogatepass") for line in lines)
    typer.echo(f"{counted(count, 'item')} imported")


def reindex_with(db: str | None, model: str, dims: int, fields: Sequence[str]) -> None:
    """Have all items found by a model.

    Raises:
        LangmemExtError: The model cannot be used, or an item is damaged.
    """
    place = model.rpartition(":")[0]
    embed = load(model, "--embed") if place.endswith(".py") or "." in place else model
    index: IndexConfig = {"dims": dims, "embed": embed, "fields": list(fields) or ["$"]}
    try:
        with _opened(db, None, read_only=False, index=index) as store:
            count = store.reindex()
    except LangmemExtError:
        raise
    except Exception as error:  # whatever a model does that cannot be made, or reached
        raise InvalidInput(
            f"the embedding model {model!r} cannot be used ({in_a_line(error)})"
        ) from error
    typer.echo(f"{counted(count, 'item')} embedded by {printable(model)}")


@contextmanager
def _opened(
    db: str | None, owner: str | None, *, read_only: bool, index: IndexConfig | None = None
) -> Iterator[DeltaStore]:
    settings = settings_for(db, owner)
    with opened_log(settings, read_only=read_only) as log:
        yield DeltaStore(log, owner=settings.owner or None, index=index)
