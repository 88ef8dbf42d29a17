"""Items as lines of JSON, to be kept elsewhere and stored again: a head, then one line an item.

A line has all of an item: namespace, key, value, owner, times, the threads that it comes from, and
its put's `ttl` and `index`. Words and vectors are left out: the index of the store that reads the
line makes them again. Times are Unix milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langmem_ext.errors import InvalidInput, MalformedExport
from langmem_ext.log.message_log import thread_key
from langmem_ext.storage.operation import Op, Row, fetch, operation
from langmem_ext.store import statements as sql
from langmem_ext.store.index import Fields
from langmem_ext.store.names import bytes_of, labels_of, path_of, text_of
from langmem_ext.store.operations import Put, SourceThread, require_item
from langmem_ext.store.values import dump_value

HEAD: Final = {"format": "langmem-ext/store", "version": 1}

PAGE: Final = 200
"""How many items are read, or stored, in one transaction."""

_TIMES: Final = ("created_at", "updated_at", "ttl", "expires_at")


def head_line() -> str:
    """The first line."""
    return json.dumps(HEAD)


@operation
def read_page(after: int, owner: str | None) -> Op[list[Row]]:
    """Items after a number, in the order of their first put, expired ones included."""
    where = {"after": after, "owner": owner, "limit": PAGE}
    rows = yield from fetch(sql.SELECT_EXPORTED, **where)
    if not rows:
        return []
    sources = yield from fetch(sql.SELECT_SOURCES, first=rows[0][0], last=rows[-1][0])
    threads: dict[int, list[str]] = {}
    for item, thread_id in sources:
        threads.setdefault(item, []).append(thread_id)
    return [(*row, threads.get(row[0])) for row in rows]


def line_of(row: Row) -> str:
    """The line of an item.

    Raises:
        DamagedRow: It has changed since it was written.
    """
    _, path, key, value, crc, owner, fields, *times, threads = row
    require_item(path, key, value, crc)
    line = {"namespace": labels_of(path), "key": text_of(key), "owner": owner}
    line |= dict(zip(_TIMES, times, strict=True)) | {"threads": threads}
    line |= {"index": None if fields is None else json.loads(fields), "value": json.loads(value)}
    text = json.dumps(
        {name: part for name, part in line.items() if part is not None}, ensure_ascii=False
    )
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a character, which a file can only hold as an escape
        return json.dumps(json.loads(text))
    return text


@dataclass(frozen=True, slots=True)
class Exported:
    """An item read from a line.

    Attributes:
        owner: Its owner.
        put: The put that stores it.
        value, fields: What it is indexed by.
    """

    owner: str | None
    put: Put
    value: dict[str, Any]
    fields: Fields


def read_lines(lines: Iterable[str]) -> Iterator[Sequence[Exported]]:
    """The items of lines, in pages.

    Raises:
        MalformedExport: A line is invalid.
    """
    page: list[Exported] = []
    for number, line in enumerate(lines, start=1):
        if number == 1:
            _require_head(line)
        elif line.strip():
            page.append(_read(number, line))
        if len(page) == PAGE:
            yield page
            page = []
    if page:
        yield page


def _require_head(line: str) -> None:
    try:
        head = json.loads(line)
    except ValueError:
        head = None
    if head != HEAD:
        raise MalformedExport(1, "this is no export of a store's items, or one of a newer release")


def _read(number: int, text: str) -> Exported:
    try:
        line = json.loads(text)
        if not isinstance(line, dict):
            raise InvalidInput("it is no item")
        value, fields, owner = line["value"], line.get("index"), line.get("owner")
        times: dict[str, Any] = {name: line.get(name) for name in _TIMES}
        if not all(time is None or type(time) is int for time in times.values()):
            raise InvalidInput("a time is no number of milliseconds")
        if owner is not None and not (isinstance(owner, str) and owner):
            raise InvalidInput("its owner is no name")
        dumped, plain = dump_value(value)
        path, key = path_of(tuple(line["namespace"])), bytes_of(line["key"])
        kept = None if fields is None else json.dumps(fields)
        threads = [SourceThread(thread_key(name)) for name in line.get("threads", ())]
        put = Put(f"line {number}", path, key, dumped, plain, kept, threads=threads, **times)
        return Exported(owner, put, value, fields)
    except KeyError as error:
        raise MalformedExport(number, f"{error} is missing") from None
    except (InvalidInput, TypeError) as error:
        raise MalformedExport(number, str(error)) from None
    except (ValueError, RecursionError):
        raise MalformedExport(number, "it is no JSON") from None
