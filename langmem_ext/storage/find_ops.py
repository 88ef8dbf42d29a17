"""The operation that searches.

What is compared with a query is each message's words (`messages.words`). Of a few threads they are read one by one: they are one range of
rowids, so that costs what the threads weigh, however large the database is, and the beginning of a word costs no more than a whole one.
Of more, the newest are read in the same way: what is common is found there. For the rest FTS5 finds them, within the range of a large
thread.

FTS5's own ranking counts each word in all of the database, once for each search, and compares a thread with all others. Here each message
that is found has all of the words, and how much each of them tells is counted in what is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from langmem_ext.errors import DamagedRow, ThreadNotFound
from langmem_ext.messages.query import Term, cut_snippet, rank, weigh
from langmem_ext.storage import search_statements as sql
from langmem_ext.storage.clock import moment_of
from langmem_ext.storage.dialect import KEY_BITS, NUMBER
from langmem_ext.storage.effects import PAUSE, PAUSE_EVERY, Op, fetch, fetch_one, operation
from langmem_ext.storage.ids import decode_id
from langmem_ext.storage.index import ThreadIndex
from langmem_ext.storage.search_ops import FORMAT, read_packed_item, read_state
from langmem_ext.storage.search_statements import row_key
from langmem_ext.storage.statements import SELECT_ITEM
from langmem_ext.types import Codec, SearchHit

READ: Final = 4096
"""Messages that are read one by one: of more, the index finds those that have the words."""

THREADS: Final = 256
"""Threads that are read one by one."""

RANKED: Final = 500
"""Messages with all of the words that are ranked: of more, the newest."""

COMMON: Final = 0.05
"""A beginning of words that stands in so many of the newest messages is not looked up: FTS5 would put together where each of the words that
begin so stands, in all of the database. What the other words find is looked at instead."""

EVERY_THREAD: Final = (0, 1 << 62)

Bounds: TypeAlias = tuple[int, int]
"""The first key, and the one behind the last."""

Candidate: TypeAlias = tuple[int, str]
"""A message that has all terms: its key, and its words."""

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
    """Where a search looks: ranges of keys, whether all of their messages are read one by one, and whose they must be."""

    ranges: Sequence[Bounds]
    read: bool
    owner: str | None = None


@operation
def find_messages(search: Search, codec: Codec) -> Op[Found | None]:
    """The messages that have all terms; None where the database has no index.

    Raises:
        ThreadNotFound: There is no such thread, or it is another owner's.
    """
    field = yield from _field(search)
    state = yield from read_state()
    if state.get("search") != FORMAT:
        return None
    wanted = max(RANKED, search.limit)
    counts, total = [0] * len(search.terms), 0
    found: list[Candidate] = []
    for bounds in field.ranges:
        total += yield from _count(search.terms, bounds, counts)
        found += yield from _candidates(search, field, bounds, wanted, read=True)
        yield PAUSE
    if not field.read and len(found) < wanted:
        looked_up = _looked_up(search.terms, counts, total)
        found = yield from _candidates(search, field, field.ranges[0], wanted, read=False, looked_up=looked_up)
    found = sorted(found, reverse=True)[:wanted]
    ranks = rank([words for _, words in found], search.terms, weigh(counts, total))
    best = sorted(zip(ranks, (key for key, _ in found), strict=True), reverse=True)[: search.limit]
    hits = yield from _load(best, search.terms, codec)
    return Found(hits, "search_backfill" not in state)


def _field(search: Search) -> Op[_Field]:
    if search.thread is not None:
        owned = "" if search.owner is None else " AND owner = :owner"
        row = yield from fetch_one(sql.SELECT_THREAD.format(owner=owned), thread=search.thread, owner=search.owner)
        if row is None:
            raise ThreadNotFound(f"there is no thread {search.thread!r}: list those that there are")
        return _Field([_bounds(row[0])], row[1] <= READ)
    if search.owner is not None:
        rows = yield from fetch(sql.SELECT_THREADS_OF, owner=search.owner, limit=THREADS + 1)
        if len(rows) <= THREADS and sum(items for _, items in rows) <= READ:
            return _Field([_bounds(number) for number, _ in rows], True)
    return _Field([EVERY_THREAD], False, search.owner)


def _bounds(thread: int) -> Bounds:
    return row_key(thread, 0), row_key(thread + 1, 0)


def _candidates(
    search: Search, field: _Field, bounds: Bounds, limit: int, *, read: bool, looked_up: Sequence[Term] = ()
) -> Op[list[Candidate]]:
    """The newest messages that have all terms.

    Args:
        search: What is searched for.
        field: Where.
        bounds: In which range.
        limit: How many.
        read: Among the newest of the range, which are read; else FTS5 finds those that have what is looked up, and the rest is read.
        looked_up: The terms that FTS5 looks up.
    """
    params: dict[str, Any] = {"low": bounds[0], "high": bounds[1], "limit": limit, "newest": READ}
    conditions, joins = [], ""
    for at, term in enumerate(search.terms):
        if term not in looked_up:
            conditions.append(f"instr(search.words, :term{at})")
            params[f"term{at}"] = term.pattern
    if looked_up:
        params["match"] = _match(looked_up)
    if search.role is not None or search.since is not None:
        joins += sql.JOIN_ITEM
    if field.owner is not None or search.since is not None:
        joins += sql.JOIN_THREAD
    if search.role is not None:
        conditions.append("item.role % 6 = :role")
        params["role"] = _ROLES[search.role]
    if search.since is not None:
        conditions.append("thread.epoch + item.seconds >= :since")
        params["since"] = search.since
    if field.owner is not None:
        conditions.append("thread.owner = :owner")
        params["owner"] = field.owner
    statement = sql.SELECT_NEWEST_WITH if read else sql.SELECT_MATCHES
    return list((yield from fetch(statement.format(joins=joins, conditions="".join(f" AND {one}" for one in conditions)), **params)))


def _count(terms: Sequence[Term], bounds: Bounds, counts: list[int]) -> Op[int]:
    """Add to each term's count in how many of the newest messages of a range it stands; how many these are."""
    if len(terms) == 1 and bounds != EVERY_THREAD:
        return 1  # nothing to compare it with
    columns = "".join(f", coalesce(sum(instr(words, :term{at}) > 0), 0)" for at in range(len(terms)))
    params = {f"term{at}": term.pattern for at, term in enumerate(terms)}
    [(total, *row)] = yield from fetch(sql.COUNT_NEWEST.format(counts=columns), **params, low=bounds[0], high=bounds[1], newest=READ)
    for at, count in enumerate(row):
        counts[at] += count
    return int(total)


def _looked_up(terms: Sequence[Term], counts: Sequence[int], total: int) -> list[Term]:
    """The terms that FTS5 looks up, of some that stand together in few of the newest messages."""
    common = [term for term, count in zip(terms, counts, strict=True) if term.prefix and count > COMMON * total]
    return [term for term in terms if term not in common] or list(terms)


def _match(terms: Sequence[Term]) -> str:
    """Terms as FTS5 takes them: quoted, and without anything in them that it would take for more than letters."""
    return " ".join(f'"{term.words}"{"*" if term.prefix else ""}' for term in terms)


def _load(best: Sequence[tuple[float, int]], terms: Sequence[Term], codec: Codec) -> Op[list[SearchHit]]:
    """The messages themselves; one that is damaged is passed over, and the doctor names it."""
    indexes: dict[int, ThreadIndex] = {}
    titles: dict[int, tuple[str, str | None, int] | None] = {}
    hits: list[SearchHit] = []
    for count, (worth, key) in enumerate(best, start=1):
        thread = key >> KEY_BITS
        if thread not in titles:
            titles[thread] = yield from fetch_one(sql.SELECT_TITLE, thread=thread)
        row = yield from fetch_one(SELECT_ITEM, thread=thread, number=key & NUMBER)
        try:
            packed = b"" if row is None else (yield from read_packed_item(indexes.setdefault(thread, ThreadIndex(thread)), row, codec))
        except DamagedRow:
            continue
        shown = codec.shown_of(packed) if packed else None
        found = titles[thread]
        if row is None or shown is None or found is None:
            continue
        snippet, highlights = cut_snippet(shown.text, terms)
        thread_id, title, epoch = found
        try:
            created_at = moment_of((epoch + row[6]) * 1000)
        except (TypeError, OverflowError):
            continue
        hits.append(
            SearchHit(
                thread_id=thread_id,
                title=title,
                message_id=None if row[1] is None else decode_id(row[1]),
                number=key & NUMBER,
                role=shown.role,
                created_at=created_at,
                snippet=snippet,
                highlights=highlights,
                rank=worth,
            )
        )
        if count % PAUSE_EVERY == 0:
            yield PAUSE
    return hits
