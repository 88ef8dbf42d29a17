"""The operation that searches.

What is compared with a query is each message's words (`messages.words`). Of a few threads they are read one by one: they are one range of
rowids, so that costs what the threads weigh, however large the database is, and the beginning of a word costs no more than a whole one.
Of more, FTS5 finds them, within the range of a large thread.

FTS5's own ranking counts each word in all of the database, once for each search, and compares a thread with all others. Here each message
that is found has all of the words, and how much each of them tells is counted where is searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from langmem_ext.errors import DamagedRow, ThreadNotFound
from langmem_ext.messages.query import Term, cut_snippet, rank, weigh
from langmem_ext.storage import search_statements as sql
from langmem_ext.storage.clock import moment_of
from langmem_ext.storage.effects import PAUSE, PAUSE_EVERY, Op, fetch, fetch_one
from langmem_ext.storage.ids import decode_id
from langmem_ext.storage.index import ThreadIndex
from langmem_ext.storage.search_ops import FORMAT, read_packed_item, read_state
from langmem_ext.storage.statements import KEY_BITS, SELECT_ITEM, row_key
from langmem_ext.types import Codec, SearchHit

READ: Final = 4096
"""Messages that are read one by one: of more, the index finds those that have the words."""

THREADS: Final = 256
"""Threads that are read one by one."""

RANKED: Final = 1000
"""Messages with all of the words that are ranked: of more, the newest."""

COUNTED: Final = 4096
"""Up to where is counted in how many messages a word stands."""

EVERY_THREAD: Final = (0, 1 << 62)

Bounds: TypeAlias = tuple[int, int]
"""The first key, and the one behind the last."""

_ROLES: Final = {"human": 0, "ai": 1, "system": 2, "tool": 3}
ROLES: Final = tuple(_ROLES)


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched for, and where.

    Attributes:
        terms: What must stand in a message; at least one.
        owner: Whose messages; None: everybody's.
        thread: Of one thread.
        role: Of one role.
        since: Stored at this Unix second or later.
        limit: How many at most.
    """

    terms: Sequence[Term]
    owner: str | None
    thread: str | None
    role: str | None
    since: int | None
    limit: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a search has found, the best first, and whether all messages were searched."""

    hits: list[SearchHit]
    complete: bool


@dataclass(frozen=True, slots=True)
class _Field:
    """Where a search looks: ranges of keys, whether their messages are read one by one, and how many messages there are, about."""

    ranges: Sequence[Bounds]
    read: bool
    total: int
    owner: str | None = None


def find_messages(search: Search, codec: Codec) -> Op[Found | None]:
    """The messages that have all terms; None where the database has no index.

    Raises:
        ThreadNotFound: There is no such thread, or it is another owner's.
    """
    field = yield from _field(search)
    state = yield from read_state()
    if state.get("search") != FORMAT:
        return None
    found = yield from _candidates(search, field)
    weights = [1.0]
    if found and len(search.terms) > 1:
        weights = weigh((yield from _counts(search.terms, field)), field.total)
    ranks = rank([words for _, words in found], search.terms, weights)
    best = sorted(zip(ranks, (key for key, _ in found), strict=True), reverse=True)[: search.limit]
    hits = yield from _load(best, search.terms, codec)
    return Found(hits, "search_backfill" not in state)


def _field(search: Search) -> Op[_Field]:
    if search.thread is not None:
        owned = "" if search.owner is None else " AND owner = :owner"
        row = yield from fetch_one(sql.SELECT_THREAD.format(owner=owned), thread=search.thread, owner=search.owner)
        if row is None:
            raise ThreadNotFound(f"there is no thread {search.thread!r}: list those that there are")
        return _Field([_bounds(row[0])], row[1] <= READ, row[1])
    if search.owner is not None:
        rows = yield from fetch(sql.SELECT_THREADS_OF, owner=search.owner, limit=THREADS + 1)
        total = sum(items for _, items in rows)
        if len(rows) <= THREADS and total <= READ:
            return _Field([_bounds(number) for number, _ in rows], True, total)
    return _Field([EVERY_THREAD], False, 2 * COUNTED, search.owner)


def _bounds(thread: int) -> Bounds:
    return row_key(thread, 0), row_key(thread + 1, 0)


def _candidates(search: Search, field: _Field) -> Op[list[tuple[int, str]]]:
    """Key and words of the newest messages that have all terms."""
    conditions, joins = [], ""
    params: dict[str, Any] = {"limit": max(RANKED, search.limit)}
    if field.read:
        for at, term in enumerate(search.terms):
            conditions.append(f"instr(search.words, :term{at})")
            params[f"term{at}"] = term.pattern
    else:
        conditions.append("search MATCH :match")
        params["match"] = _match(search.terms)
    if search.role is not None or search.since is not None:
        joins += sql.JOIN_ITEM
    if search.role is not None:
        conditions.append("item.role % 6 = :role")
        params["role"] = _ROLES[search.role]
    if search.since is not None:
        conditions.append("thread.epoch + item.seconds >= :since")
        params["since"] = search.since
    if field.owner is not None or search.since is not None:
        joins += sql.JOIN_THREAD
    if field.owner is not None:
        conditions.append("thread.owner = :owner")
        params["owner"] = field.owner
    statement = sql.SELECT_CANDIDATES.format(joins=joins, conditions=" AND ".join(conditions))
    found: list[tuple[int, str]] = []
    for low, high in field.ranges:
        found += yield from fetch(statement, **params, low=low, high=high)
        yield PAUSE
    return sorted(found, reverse=True)[: params["limit"]]


def _match(terms: Sequence[Term]) -> str:
    """Terms as FTS5 takes them: quoted, and without anything in them that it would take for more than letters."""
    return " ".join(f'"{term.words}"{"*" if term.prefix else ""}' for term in terms)


def _counts(terms: Sequence[Term], field: _Field) -> Op[list[int]]:
    """In how many messages of those that are searched each term stands, up to a bound."""
    counts = [0] * len(terms)
    if field.read:
        columns = ", ".join(f"coalesce(sum(instr(words, :term{at}) > 0), 0)" for at in range(len(terms)))
        params = {f"term{at}": term.pattern for at, term in enumerate(terms)}
        for low, high in field.ranges:
            [row] = yield from fetch(sql.COUNT_IN_THREAD.format(counts=columns), **params, low=low, high=high)
            counts = [count + more for count, more in zip(counts, row, strict=True)]
        return counts
    [(low, high)] = field.ranges
    for at, term in enumerate(terms):
        [(counts[at],)] = yield from fetch(sql.COUNT_MATCHES, match=_match([term]), low=low, high=high, limit=COUNTED)
    return counts


def _load(best: Sequence[tuple[float, int]], terms: Sequence[Term], codec: Codec) -> Op[list[SearchHit]]:
    """The messages themselves; one that is damaged is passed over, and the doctor names it."""
    indexes: dict[int, ThreadIndex] = {}
    titles: dict[int, tuple[str, str | None, int]] = {}
    hits: list[SearchHit] = []
    for count, (worth, key) in enumerate(best, start=1):
        thread = key >> KEY_BITS
        if thread not in titles:
            [titles[thread]] = yield from fetch(sql.SELECT_TITLE, thread=thread)
        row = yield from fetch_one(SELECT_ITEM, key=key)
        try:
            packed = b"" if row is None else (yield from read_packed_item(indexes.setdefault(thread, ThreadIndex(thread)), row, codec))
        except DamagedRow:
            continue
        shown = codec.shown_of(packed) if packed else None
        if row is None or shown is None:
            continue
        snippet, highlights = cut_snippet(shown.text, terms)
        thread_id, title, epoch = titles[thread]
        hits.append(
            SearchHit(
                thread_id=thread_id,
                title=title,
                message_id=None if row[1] is None else decode_id(row[1]),
                number=key & (1 << KEY_BITS) - 1,
                role=shown.role,
                created_at=moment_of((epoch + row[6]) * 1000),
                snippet=snippet,
                highlights=highlights,
                rank=worth,
            )
        )
        if count % PAUSE_EVERY == 0:
            yield PAUSE
    return hits
