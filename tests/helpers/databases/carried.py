"""What the tests of exporting and importing know: the rows that a thread has, wherever it stands,
and how to write a line of one anew.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

from prune_reference import rows

from langmem_ext import DeltaSaver, Threads
from langmem_ext.storage.rows.checksum import moved
from langmem_ext.storage.schema.dialect import KEY, NUMBER, ROW_THREAD
from langmem_ext.storage.threads.rows_sql import TABLES, THREAD_COLUMNS


def rows_of(saver: DeltaSaver, thread: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of a thread without its number, and without what follows from that."""
    [(number, *own)] = rows(
        saver, f"SELECT number, {', '.join(THREAD_COLUMNS)} FROM thread WHERE id = '{thread}'"
    )
    found: dict[str, list[tuple[Any, ...]]] = {"thread": [tuple(own)]}
    for table in TABLES:
        where = f"{ROW_THREAD if table.placed else 'thread'} = {number}"
        crc = table.columns.index("crc")
        key = (KEY,) if table.placed else table.columns[1 : 1 + table.keys]
        columns = ", ".join((KEY, *table.columns[2:]) if table.placed else table.columns[1:])
        found[table.name] = [
            (
                row[0] & NUMBER if table.placed else row[0],
                *row[1 : crc - 1],
                moved(row[crc - 1], -number),
                *row[crc:],
            )
            for row in rows(
                saver, f"SELECT {columns} FROM {table.name} WHERE {where} ORDER BY {', '.join(key)}"
            )
        ]
    return found


def ids_of(saver: DeltaSaver) -> list[str]:
    """The ids of all threads, in the order in which they were made."""
    return [thread_id for (thread_id,) in rows(saver, "SELECT id FROM thread ORDER BY number")]


def exported(saver: DeltaSaver, *threads: str) -> str:
    """An export of threads."""
    return "".join(Threads(saver).export_lines(*threads))


def body_of(export: str) -> str:
    """An export without its first line, which says when it was made."""
    return export.partition("\n")[2]


def threads_in(export: str) -> list[list[str]]:
    """An export's threads, each by its lines; in an order that is the same wherever they come from:
    each kind of database has its own.
    """
    threads: list[list[str]] = []
    for line in body_of(export).splitlines()[:-1]:
        if line.startswith('{"kind":"thread"'):
            threads.append([])
        threads[-1].append(line)
    return sorted(threads)


def bring_in(saver: DeltaSaver, export: str, **options: Any) -> Any:
    """Import an export."""
    return Threads(saver).import_from(io.StringIO(export), **options)


def sealed(lines: Iterable[str]) -> str:
    """An export of these lines, whose counts and checksums are right: what somebody writes who
    knows the format.
    """
    told: list[str] = []
    thread: list[str] = []
    threads = 0
    for text in lines:
        line = json.loads(text)
        if not isinstance(line, dict) or "kind" not in line:
            told.append(text)
        elif line["kind"] == "end":
            counts = dict.fromkeys(
                ("namespace", "word", "message", "value", "checkpoint", "write"), 0
            )
            for row in map(json.loads, thread[1:]):
                if (
                    isinstance(row, dict)
                    and isinstance(row.get("kind"), str)
                    and row["kind"] in counts
                ):
                    counts[row["kind"]] += 1
            digest = sha256(
                "".join(f"{one}\n" for one in thread).encode("utf-8", "surrogatepass")
            ).hexdigest()
            told += [*thread, written({**line, "rows": counts, "sha256": digest})]
            thread, threads = [], threads + 1
        elif line["kind"] == "total":
            told.append(written({**line, "threads": threads}))
        else:
            thread.append(text)
    return "".join(f"{text}\n" for text in [*told, *thread])


ORDER = (
    *(
        "kind",
        "id",
        "owner",
        "title",
        "status",
        "tags",
        "metadata",
        "titled_by",
        "created_at",
        "epoch",
        "updated_at",
        "messages",
    ),
    *("stored_messages", "tokens", "waiting_for", "tool", "forked_from", "next"),
)
"""The fields of a thread's line."""


def written(line: Any) -> str:
    """A line as an export writes it."""
    if isinstance(line, dict) and line.get("kind") == "thread":
        line = {
            name: line[name]
            for name in [*(name for name in ORDER if name in line), *(line.keys() - {*ORDER})]
        }
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def changed(export: str, kind: str, change: Callable[[dict[str, Any]], Any], which: int = 0) -> str:
    """An export in which one line is another, with counts and checksums that are right."""
    lines = export.splitlines()
    at = [number for number, text in enumerate(lines) if json.loads(text).get("kind") == kind][
        which
    ]
    line = json.loads(lines[at])
    other = change(line)
    lines[at] = written(line if other is None else other)
    return sealed(lines)
