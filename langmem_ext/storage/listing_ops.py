"""Operations on threads as a list: find some by what their rows say, describe one. None reads a message or a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from langmem_ext.errors import DamagedRow, InvalidInput, ThreadNotFound, cause, told
from langmem_ext.messages.proportion import load_json
from langmem_ext.storage import thread_statements as sql
from langmem_ext.storage.clock import MINUTE_MS, moment_of, unix_ms
from langmem_ext.storage.effects import Op, Row, fetch, fetch_one, operation
from langmem_ext.storage.index import Indexes
from langmem_ext.types import ThreadInfo, ThreadKey

MINUTE: Final = 500
"""Threads of one minute up to which they are sorted by the moment: a page costs what it costs to read these."""

UPDATED_AT: Final = 6
"""Where a row says when the thread was last written."""

STATUSES: Final = ("active", "archived")

LARGEST_METADATA: Final = 64 * 1024
"""Bytes of a thread's metadata, as JSON."""

TAG_END: Final = "\n"
"""Stands before and behind each tag in the column."""


@dataclass(frozen=True, slots=True)
class ThreadFilter:
    """Which threads are asked for; None: whatever it is.

    Attributes:
        owner: Whose they are.
        status: `active` or `archived`; None: both.
        waiting_for: The parameter that they wait for.
        waiting, resting: Only those that wait for one, or for none.
        tool: The tool of their newest turn that names one.
        tag: A tag that they have.
        since, until: When they were last written, in Unix milliseconds: at or after, before.
        begins: What their id begins with.
        title: A pattern of their title, for `LIKE` with `!` as escape.
    """

    owner: str | None = None
    status: str | None = None
    waiting_for: str | None = None
    waiting: bool | None = None
    resting: bool | None = None
    tool: str | None = None
    tag: str | None = None
    since: int | None = None
    until: int | None = None
    begins: str | None = None
    title: str | None = None

    def conditions(self) -> tuple[list[str], dict[str, Any]]:
        """As SQL, and its parameters; without the status."""
        params = {name: value for name in sql.CONDITIONS if (value := getattr(self, name)) is not None}
        if self.tag is not None:
            params["tag"] = f"{TAG_END}{self.tag}{TAG_END}"
        return [sql.CONDITIONS[name] for name in params], params


@operation
def list_threads(wanted: ThreadFilter, after: ThreadInfo | None, limit: int) -> Op[list[ThreadInfo]]:
    """A page of threads, the one that was written last first; of a minute in which very many were written, the one made last.

    Args:
        wanted: Which.
        after: The last thread of the page before.
        limit: At most so many.
    """
    conditions, params = wanted.conditions()
    conditions.append(sql.SOUND)
    conditions.append(sql.STATUS_OF_FEW if {"waiting_for", "waiting", "tool"} & params.keys() else sql.STATUS)
    statuses = STATUSES if wanted.status is None else (wanted.status,)
    found: list[Row] = []
    minute = sql.NEVER
    if after is not None:
        minute, at = unix_ms(after.updated_at) // MINUTE_MS, (unix_ms(after.updated_at), after.number)
        within = [*conditions, sql.WITHIN]
        rows = yield from _rows(within, params, statuses, MINUTE + 1, minute=minute)
        if len(rows) <= MINUTE:
            found = sorted((row for row in rows if _moment(row) < at), key=_moment, reverse=True)
        else:
            found = yield from _rows([*within, sql.BEFORE], params, statuses, limit, minute=minute, number=after.number)
    if len(found) < limit:
        rows = yield from _rows([*conditions, sql.EARLIER], params, statuses, limit - len(found) + MINUTE, minute=minute)
        for _, group in groupby(rows, key=_minute):
            together = list(group)
            # The index gives the minute. Within one, they are sorted here, unless they are too many for every page to sort.
            found += sorted(together, key=_moment, reverse=True) if len(together) <= MINUTE else together
    return [_info(row) for row in found[:limit]]


def _rows(conditions: Sequence[str], params: Mapping[str, Any], statuses: Sequence[str], limit: int, **further: int) -> Op[list[Row]]:
    """The first rows of the statuses together, by minute and number."""
    statement = sql.SELECT_PAGE.format(where=_where(conditions))
    found: list[Row] = []
    for status in statuses:
        found += yield from fetch(statement, **params, **further, status=status, limit=limit)
    if len(statuses) > 1:
        found.sort(key=lambda row: (_minute(row), row[0]), reverse=True)
    return found[:limit]


def _minute(row: Row) -> int:
    return int(row[UPDATED_AT] // MINUTE_MS)


def _moment(row: Row) -> tuple[int, int]:
    return row[UPDATED_AT], row[0]


@operation
def count_threads(wanted: ThreadFilter) -> Op[int]:
    """How many threads there are of a kind."""
    conditions, params = wanted.conditions()
    if wanted.status is not None:
        conditions.append(sql.STATUS)
        params["status"] = wanted.status
    [(count,)] = yield from fetch(sql.COUNT_PAGE.format(where=_where(conditions)), **params)
    return int(count)


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def read_info(key: ThreadKey, *, lock: bool = False) -> Op[ThreadInfo]:
    """A thread's row. `lock`: nobody else writes to it until the operation has ended.

    Raises:
        ThreadNotFound: There is none, or it is another owner's.
        DamagedRow: It says what cannot be.
    """
    row = yield from fetch_one(sql.LOCK_LISTED if lock else sql.SELECT_LISTED, id=key.id, owner=key.owner)
    if row is None:
        raise ThreadNotFound(f"thread {key.id!r} not found; `langmem-ext threads list` shows those that there are")
    try:
        return _info(row)
    except (TypeError, ValueError, OverflowError) as error:
        raise DamagedRow(f"the row of thread {key.id!r} is damaged ({told(error)}): `langmem-ext doctor` says more") from cause(error)


@operation
def read_thread(key: ThreadKey) -> Op[ThreadInfo]:
    """`read_info` by itself."""
    return (yield from read_info(key))


@operation
def describe_thread(key: ThreadKey, changes: Mapping[str, Any], *, indexes: Indexes) -> Op[ThreadInfo]:
    """Change what a thread's row says of it, apart from what follows from its messages; its row then.

    Args:
        key: The thread.
        changes: `title`, `status`, `metadata` (a dict; a value of None takes its key out), `tags` (all of them), `tag` and `untag` (some).
        indexes: What this process knows.

    Raises:
        ThreadNotFound: There is none, or it is another owner's.
        InvalidInput: Its metadata would be too large; nothing is changed.
    """
    info = yield from read_info(key, lock=True)
    if "title" in changes:
        yield from fetch(sql.SET_TITLE, thread=info.number, title=changes["title"])
        indexes.forget_thread(key.id)
    if "status" in changes:
        yield from fetch(sql.SET_STATUS, thread=info.number, status=changes["status"])
    if "metadata" in changes:
        merged = {name: value for name, value in {**info.metadata, **changes["metadata"]}.items() if value is not None}
        metadata = metadata_text(merged) if merged else None
        if metadata is not None and len(metadata.encode()) > LARGEST_METADATA:
            raise InvalidInput(f"what is noted on a thread takes at most {LARGEST_METADATA} bytes in all: take a name away first, by None")
        yield from fetch(sql.SET_METADATA, thread=info.number, metadata=metadata)
    if {"tags", "tag", "untag"} & changes.keys():
        tags = {*changes.get("tags", info.tags), *changes.get("tag", ())} - {*changes.get("untag", ())}
        column = f"{TAG_END}{TAG_END.join(sorted(tags))}{TAG_END}" if tags else None
        yield from fetch(sql.SET_TAGS, thread=info.number, tags=column)
    return (yield from read_info(key))


def metadata_text(metadata: Mapping[str, Any]) -> str:
    """What is noted on a thread, as its column has it."""
    return json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@operation
def read_titled_by(key: ThreadKey) -> Op[int | None]:
    """The number of the message that gave a thread its title; None where it has none, or somebody gave it."""
    info = yield from read_info(key)
    [(number,)] = yield from fetch(sql.SELECT_TITLED_BY, thread=info.number)
    return None if number is None else int(number)


@operation
def write_title(key: ThreadKey, title: str, titled_by: int) -> Op[ThreadInfo]:
    """Call a thread something better than its first prompt, if that still gives its title; its row then.

    Raises:
        ThreadNotFound: There is none, or it is another owner's.
    """
    info = yield from read_info(key)
    yield from fetch(sql.SET_WRITTEN_TITLE, thread=info.number, title=title, titled_by=titled_by)
    return (yield from read_info(key))


def _info(row: Row) -> ThreadInfo:
    number, thread_id, owner, title, status, created_at, updated_at, messages, items, tokens, waiting_for, tool, tags, metadata, origin = (
        row
    )
    return ThreadInfo(
        id=thread_id,
        owner=owner,
        title=title,
        status=status,
        created_at=moment_of(created_at),
        updated_at=moment_of(updated_at),
        messages=messages or 0,
        stored_messages=items,
        tokens=tokens,
        waiting_for=waiting_for,
        tool=tool,
        tags=tuple((tags or "").split(TAG_END)[1:-1]),
        metadata=_metadata(metadata),
        forked_from=origin,
        number=number,
    )


def _metadata(column: str | None) -> dict[str, Any]:
    """What is noted on a thread; nothing where the column is damaged: a list goes on."""
    try:
        metadata = load_json(column) if column else {}
    except ValueError:
        return {}
    return metadata if isinstance(metadata, dict) else {}
