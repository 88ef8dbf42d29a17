"""Operations on the list of threads: find threads by their rows, describe one, count."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, TypeVar

from langmem_ext.errors import DamagedRow, InvalidInput, ThreadNotFound, cause, safe_text
from langmem_ext.messages.size_limits import load_json
from langmem_ext.storage.cache import ThreadCaches
from langmem_ext.storage.checkpoints import sql as rows_sql
from langmem_ext.storage.checkpoints.lookup import read_word
from langmem_ext.storage.checkpoints.thread_row import ensure_thread, find_thread
from langmem_ext.storage.operation import (
    PAUSE,
    Op,
    Row,
    Statement,
    fetch,
    fetch_one,
    operation,
    side_by_side,
)
from langmem_ext.storage.rows import checksum as checks
from langmem_ext.storage.rows.clock import MINUTE_MS, moment_of, unix_ms
from langmem_ext.storage.rows.message import AI_CODES, HUMAN_CODES, damaged_item, decode_item
from langmem_ext.storage.schema.dialect import BEHIND, ITEM_OF_THREAD, KEY, NUMBER, OF_ID
from langmem_ext.storage.threads import sql
from langmem_ext.types import Codec, Snapshot, ThreadInfo, ThreadKey, ThreadStatistics

T = TypeVar("T")

MINUTE: Final = 500
"""The most threads of one minute that are sorted by exact time: each page reads all of them."""

UPDATED_AT: Final = 6
"""The position of `updated_at` in a row."""

STATUSES: Final = ("active", "archived")

LARGEST_METADATA: Final = 64 * 1024
"""The maximum size of a thread's metadata as JSON, in bytes."""

TAG_END: Final = "\n"
"""Stands before and after each tag in the column."""


@dataclass(frozen=True, slots=True)
class ThreadFilter:
    """Which threads to list; None means any.

    Attributes:
        owner: Their owner.
        status: `active` or `archived`.
        waiting_for: The parameter that they wait for.
        waiting, resting: Only threads that wait for a parameter; only threads that do not.
        pending: Only threads that wait for a parameter, or whose newest checkpoint has pending
            writes, as the question of any graph is. No index covers it.
        tool: The tool of the newest turn that names a tool.
        tag: One of their tags.
        since, until: The time of the last write, in Unix milliseconds: at or after; before.
        begins: The beginning of their id.
        title: A pattern of their title, for `LIKE` with `!` as escape.
        noted: Texts that their metadata contains as JSON (`metadata_text`).
    """

    owner: str | None = None
    status: str | None = None
    waiting_for: str | None = None
    waiting: bool | None = None
    resting: bool | None = None
    pending: bool | None = None
    tool: str | None = None
    tag: str | None = None
    since: int | None = None
    until: int | None = None
    begins: str | None = None
    title: str | None = None
    noted: tuple[str, ...] = ()

    def conditions(self) -> tuple[list[str], dict[str, Any]]:
        """The conditions as SQL, and their parameters; without the status."""
        params = {
            name: value for name in sql.CONDITIONS if (value := getattr(self, name)) is not None
        }
        if self.tag is not None:
            params["tag"] = f"{TAG_END}{self.tag}{TAG_END}"
        noted = {f"noted{at}": text for at, text in enumerate(self.noted)}
        conditions = [sql.CONDITIONS[name] for name in params]
        return [*conditions, *(sql.NOTED.format(name=name) for name in noted)], params | noted


@operation
def list_threads(
    wanted: ThreadFilter, after: ThreadInfo | None, limit: int
) -> Op[list[ThreadInfo]]:
    """A page of threads, the last written first.

    Of more than `MINUTE` threads of one minute, the one that was created last comes first.

    Args:
        wanted: Which threads.
        after: The last thread of the previous page.
        limit: The maximum number.
    """
    conditions, params = wanted.conditions()
    conditions.append(sql.SOUND)
    conditions.append(_of_status(params))
    statuses = STATUSES if wanted.status is None else (wanted.status,)
    page: list[Row] = []
    minute = sql.NEVER
    if after is not None:
        minute, at = (
            unix_ms(after.updated_at) // MINUTE_MS,
            (unix_ms(after.updated_at), after.number),
        )
        within = [*conditions, sql.WITHIN]
        rows = yield from _rows(within, params, statuses, MINUTE + 1, minute=minute)
        if len(rows) <= MINUTE:
            page = sorted((row for row in rows if _moment(row) < at), key=_moment, reverse=True)
        else:
            page = yield from _rows(
                [*within, sql.BEFORE], params, statuses, limit, minute=minute, number=after.number
            )
    if len(page) < limit:
        rows = yield from _rows(
            [*conditions, sql.EARLIER], params, statuses, limit - len(page) + MINUTE, minute=minute
        )
        for _, group in groupby(rows, key=_minute):
            together = list(group)
            # The index orders by the minute. Within a minute, they are sorted here, unless they are
            # too many to sort for every page.
            page += (
                sorted(together, key=_moment, reverse=True) if len(together) <= MINUTE else together
            )
    return [_info(row) for row in page[:limit]]


def _of_status(params: Collection[str], *, all_rows: bool = False) -> str:
    """The SQL condition on the status, with or without its index.

    The index is not used where another one selects fewer threads, or where nearly every row is
    read: it would cost three times as much as a scan.

    Args:
        params: The names of the other conditions.
        all_rows: Whether every matching row is read.
    """
    if {"waiting_for", "waiting", "tool"}.intersection(params):
        return sql.STATUS_OF_FEW
    is_recent = not {"since", "until"}.isdisjoint(params)
    return sql.STATUS_OF_FEW if (all_rows or "title" in params) and not is_recent else sql.STATUS


def _rows(
    conditions: Sequence[str],
    params: Mapping[str, Any],
    statuses: Sequence[str],
    limit: int,
    **further: int,
) -> Op[list[Row]]:
    """The first rows of all these statuses, by minute and number."""
    statement = sql.SELECT_PAGE.format(where=_where(conditions))
    merged: list[Row] = []
    for status in statuses:
        merged += yield from fetch(statement, **params, **further, status=status, limit=limit)
    if len(statuses) > 1:
        merged.sort(key=lambda row: (_minute(row), row[0]), reverse=True)
    return merged[:limit]


def _minute(row: Row) -> int:
    return int(row[UPDATED_AT] // MINUTE_MS)


def _moment(row: Row) -> tuple[int, int]:
    return row[UPDATED_AT], row[0]


@operation
def rank_threads(
    wanted: ThreadFilter, by: str, after: ThreadInfo | None, limit: int
) -> Op[list[ThreadInfo]]:
    """A page of threads, the largest first.

    Args:
        wanted: Which threads.
        by: What they are ranked by: a key of `storage.threads.sql.RANKS`.
        after: The last thread of the previous page.
        limit: The maximum number.
    """
    column = sql.RANKS[by]
    conditions, params = wanted.conditions()
    conditions.append(sql.SOUND)
    if wanted.status is not None:
        conditions.append(_of_status(params, all_rows=True))
        params["status"] = wanted.status
    if after is not None:
        conditions.append(sql.RANKED_AFTER.format(column=column))
        params |= {"rank": getattr(after, by), "number": after.number}
    statement = sql.SELECT_RANKED.format(where=_where(conditions), column=column)
    return [_info(row) for row in (yield from fetch(statement, **params, limit=limit))]


@operation
def list_owned(owner: str, limit: int) -> Op[list[str]]:
    """The ids of some of an owner's threads, damaged ones included."""
    rows = yield from fetch(sql.SELECT_OWNED, owner=owner, limit=limit)
    return [thread_id for (thread_id,) in rows]


@operation
def has_store_items() -> Op[bool]:
    """Whether the long-term store holds anything."""
    return bool((yield from fetch(sql.SELECT_ANY_ITEM)))


@operation
def count_threads(wanted: ThreadFilter) -> Op[int]:
    """How many threads match a filter."""
    conditions, params = wanted.conditions()
    if wanted.status is not None:
        conditions.append(_of_status(params))
        params["status"] = wanted.status
    [(count,)] = yield from fetch(sql.COUNT_PAGE.format(where=_where(conditions)), **params)
    return int(count)


@operation
def pick_threads(
    wanted: ThreadFilter, order: str, *, offset: int, limit: int
) -> Op[list[ThreadInfo]]:
    """Threads by their position in an order.

    Args:
        wanted: Which threads.
        order: One of `storage.threads.sql.ORDERS`.
        offset: How many of them to skip.
        limit: The maximum number.
    """
    conditions, params = wanted.conditions()
    conditions.append(sql.SOUND)
    if wanted.status is not None:
        conditions.append(sql.STATUS)
        params["status"] = wanted.status
    statement = sql.PICK_PAGE.format(where=_where(conditions), order=sql.ORDERS[order])
    rows = yield from fetch(statement, **params, offset=offset, limit=limit)
    return list(map(_info, rows))


@operation
def read_threads(keys: Sequence[ThreadKey]) -> Op[list[ThreadInfo]]:
    """The threads of these ids that exist, in the order of the ids."""
    rows = yield from side_by_side(
        [fetch_one(sql.SELECT_LISTED, id=key.id, owner=key.owner) for key in keys]
    )
    return [_info(row) for row in rows if row is not None]


@operation
def create_thread(
    key: ThreadKey, metadata: Mapping[str, Any], *, now: int, caches: ThreadCaches
) -> Op[tuple[ThreadInfo, bool]]:
    """Create an empty thread unless it exists; its row, and whether it was created.

    Raises:
        ThreadNotFound: The id belongs to another owner's thread.
    """
    row = yield from fetch_one(sql.SELECT_LISTED, id=key.id, owner=key.owner)
    if row is not None:
        return _info(row), False
    thread, _ = yield from ensure_thread(key, now=now, caches=caches)
    if metadata:
        yield from fetch(sql.SET_METADATA, thread=thread.number, metadata=metadata_text(metadata))
    return (yield from read_info(key)), True


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def read_info(key: ThreadKey, *, lock: bool = False) -> Op[ThreadInfo]:
    """A thread's row. With `lock`, no other operation can write it until this one ends.

    Raises:
        ThreadNotFound: It does not exist, or belongs to another owner.
        DamagedRow: A column is invalid.
    """
    row = yield from fetch_one(
        sql.LOCK_LISTED if lock else sql.SELECT_LISTED, id=key.id, owner=key.owner
    )
    if row is None:
        raise ThreadNotFound(f"thread {key.id!r} not found; see `langmem-ext threads list`")
    try:
        return _info(row)
    except (TypeError, ValueError, OverflowError) as error:
        raise DamagedRow(
            f"the row of thread {key.id!r} is damaged ({safe_text(error)}):"
            " see `langmem-ext doctor`"
        ) from cause(error)


@operation
def read_thread(key: ThreadKey) -> Op[ThreadInfo]:
    """`read_info` by itself."""
    return (yield from read_info(key))


@operation
def describe_thread(
    key: ThreadKey, changes: Mapping[str, Any], *, caches: ThreadCaches
) -> Op[ThreadInfo]:
    """Change a thread's title, status, metadata or tags; its new row.

    Args:
        key: The thread.
        changes: `title`, `status`, `metadata` (a dict; a value of None removes its key), `tags`
            (all of them), `tag` and `untag` (some).
        caches: The caches of this process.

    Raises:
        ThreadNotFound: It does not exist, or belongs to another owner.
        InvalidInput: Its metadata would be too large; nothing is changed.
    """
    info = yield from read_info(key, lock=True)
    if "title" in changes:
        yield from fetch(sql.SET_TITLE, thread=info.number, title=changes["title"])
        caches.forget_thread(key.id)
    if "status" in changes:
        yield from fetch(sql.SET_STATUS, thread=info.number, status=changes["status"])
    if "metadata" in changes:
        merged = {
            name: value
            for name, value in {**info.metadata, **changes["metadata"]}.items()
            if value is not None
        }
        metadata = metadata_text(merged) if merged else None
        if metadata is not None and len(metadata.encode()) > LARGEST_METADATA:
            raise InvalidInput(
                f"the metadata of a thread must not exceed {LARGEST_METADATA} bytes: remove a key"
                " first, by None"
            )
        yield from fetch(sql.SET_METADATA, thread=info.number, metadata=metadata)
    if {"tags", "tag", "untag"} & changes.keys():
        tags = {*changes.get("tags", info.tags), *changes.get("tag", ())} - {
            *changes.get("untag", ())
        }
        column = f"{TAG_END}{TAG_END.join(sorted(tags))}{TAG_END}" if tags else None
        yield from fetch(sql.SET_TAGS, thread=info.number, tags=column)
    return (yield from read_info(key))


def metadata_text(metadata: Mapping[str, Any]) -> str:
    """A thread's metadata as its column stores it."""
    return json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@operation
def read_titled_by(key: ThreadKey) -> Op[int | None]:
    """The number of the message that titles a thread; None if none does, or the title was set."""
    info = yield from read_info(key)
    [(number,)] = yield from fetch(sql.SELECT_TITLED_BY, thread=info.number)
    return None if number is None else int(number)


@operation
def write_title(key: ThreadKey, title: str, titled_by: int) -> Op[ThreadInfo]:
    """Replace a thread's title if that is still its first prompt; its new row.

    Raises:
        ThreadNotFound: It does not exist, or belongs to another owner.
    """
    info = yield from read_info(key)
    yield from fetch(sql.SET_WRITTEN_TITLE, thread=info.number, title=title, titled_by=titled_by)
    return (yield from read_info(key))


def _info(row: Row) -> ThreadInfo:
    (
        number,
        thread_id,
        owner,
        title,
        status,
        created_at,
        updated_at,
        messages,
        items,
        tokens,
        waiting_for,
        tool,
        tags,
        metadata,
        origin,
    ) = row
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
    """A thread's metadata; empty if the column is damaged, so that listing continues."""
    try:
        metadata = load_json(column) if column else {}
    except ValueError:
        return {}
    return metadata if isinstance(metadata, dict) else {}


# -- counts of threads by their rows, and the messages of models -----------------------------------

PAGE: Final = 64
"""Messages that are decoded between two pauses."""

COUNT_THREADS = (
    "SELECT status, tool, waiting_for IS NOT NULL, count(*), CAST(sum(items) AS BIGINT),"
    f" CAST(sum(tokens) AS BIGINT) FROM thread WHERE {rows_sql.OWNED} GROUP BY 1, 2, 3"
)

COUNT_TURNS = f"SELECT count(*) FROM item WHERE role IN {HUMAN_CODES}"
COUNT_TURNS_OF = (
    f"SELECT count(*) FROM thread JOIN item ON {ITEM_OF_THREAD} WHERE thread.owner = :owner AND"
    f" item.role IN {HUMAN_CODES}"
)

# A model's message, or one that is stored whole.
SELECT_ANSWERS = (
    f"SELECT {rows_sql.ITEM_COLUMNS} FROM item WHERE {BEHIND}"
    f" AND (role IN {AI_CODES} OR (role IS NULL AND rest IS NOT NULL)) ORDER BY {KEY} LIMIT :limit"
)

MOST_GLANCED: Final = 1_000
"""The most threads that a quick count covers: SQLite counts them in a moment."""

_GLANCE = "SELECT count(*), sum(items) FROM (SELECT items FROM thread {where} LIMIT :limit)"


def glance_at_database(owner: str | None) -> Statement:
    """A query for the number of threads and stored messages, an owner's or all."""
    # Not by `OWNED`, which no index serves.
    where = "" if owner is None else "WHERE owner = :owner"
    return Statement(
        _GLANCE.format(where=where),
        {"limit": MOST_GLANCED + 1} | ({} if owner is None else {"owner": owner}),
    )


def glance_at_thread(key: ThreadKey) -> Statement:
    """A query for the number of messages in a thread's newest checkpoint."""
    return Statement(
        f"SELECT head_messages FROM thread WHERE {OF_ID} AND {rows_sql.OWNED}",
        {"id": key.id, "owner": key.owner},
    )


@operation
def count_all(owner: str | None) -> Op[ThreadStatistics]:
    """Counts of an owner's threads, or of all threads."""
    rows = yield from fetch(COUNT_THREADS, owner=owner)
    [(turns,)] = (
        (yield from fetch(COUNT_TURNS))
        if owner is None
        else (yield from fetch(COUNT_TURNS_OF, owner=owner))
    )
    by_status: dict[str, int] = {}
    by_tool: dict[str | None, int] = {}
    for status, tool, _, count, *_ in rows:
        by_status[status] = by_status.get(status, 0) + count
        by_tool[tool] = by_tool.get(tool, 0) + count
    return ThreadStatistics(
        threads=sum(row[3] for row in rows),
        turns=turns,
        messages=sum(row[4] for row in rows),
        tokens=sum(row[5] for row in rows),
        waiting=sum(row[3] for row in rows if row[2]),
        by_status=by_status,
        by_tool=by_tool,
    )


def read_answers(
    key: ThreadKey, pick: Callable[[Snapshot], T | None], *, caches: ThreadCaches, codec: Codec
) -> Op[list[T]]:
    """What `pick` returns for each of the model's messages in a thread, in all branches.

    Raises:
        ThreadNotFound: The thread does not exist, or belongs to another owner.
        DamagedRow: A message is damaged.
    """
    thread = yield from find_thread(key, caches)
    if thread is None:
        raise ThreadNotFound(f"thread {key.id!r} not found; see `langmem-ext threads list`")
    cache = caches.of(key.id, thread.row(), codec)
    after = -1
    answers: list[T] = []
    while rows := (yield from fetch(SELECT_ANSWERS, thread=thread.number, after=after, limit=PAGE)):
        after = rows[-1][0] & NUMBER
        changed = checks.changed_items(rows, thread.number)
        for row in rows:
            if row[0] in changed:
                raise damaged_item(thread.number, row, checks.CHANGED)
            keys = None if row[8] is None else (yield from read_word(cache, row[8]))
            packed, _ = decode_item(thread.number, row, keys, codec)
            picked = pick(packed)
            if picked is not None:
                answers.append(picked)
        yield PAUSE
    caches.keep(cache)
    return answers
