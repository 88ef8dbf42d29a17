"""The operation that searches.

A query is compared with each message's words (`messages.search.words`). In a few threads they are
read one by one: they are stored together in the index, so that costs what the threads weigh,
however large the database is, and the beginning of a word costs no more than a whole one. In more
threads, the latest messages are read in the same way: what is common is found there. For the rest
the database's own index finds them, FTS5 or GIN; so it does within a large thread.

FTS5's own ranking counts each word in all of the database, once for each search, and compares a
thread with all others. Here each message that is found has all of the words, and how much each of
them tells is counted in what is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, TypeAlias

from langmem_ext.errors import DamagedRow, ThreadNotFound
from langmem_ext.messages.search.query import Term, cut_snippet, rank, weigh
from langmem_ext.storage.cache import ThreadIndex
from langmem_ext.storage.checkpoints.sql import SELECT_ITEM
from langmem_ext.storage.operation import (
    PAUSE,
    PAUSE_EVERY,
    Op,
    Row,
    Rows,
    Statement,
    Together,
    operation,
    side_by_side,
)
from langmem_ext.storage.rows.clock import moment_of
from langmem_ext.storage.rows.ids import decode_id
from langmem_ext.storage.schema.dialect import INSTR
from langmem_ext.storage.schema.search_dialect import (
    LATEST_OF_ALL,
    LATEST_OF_OWNER,
    LATEST_OF_THREAD,
    OF_OWNER,
    OF_ROLE,
    SINCE,
    WORDS_OF_THREAD,
    looked_at,
)
from langmem_ext.storage.search import sql
from langmem_ext.storage.search.index import read_packed_item
from langmem_ext.types import Codec, SearchHit, Shown

READ: Final = 4096
"""Messages that are read one by one: of more, the index finds those that have the words."""

THREADS: Final = 256
"""Threads that are read one by one."""

RANKED: Final = 500
"""Messages with all of the words that are ranked: of more, the newest."""

COMMON: Final = 0.05
"""A beginning of words that stands in so many of the newest messages is not looked up: the index
would put together where each of the words that begin so stands, in all of the database. What the
other words find is looked at instead."""

Candidate: TypeAlias = tuple[int, int, int, str]
"""A message that has all terms: its time, where that tells which of two threads' messages is the
later one; thread, number, and words."""

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
    """Where a search looks.

    Attributes:
        latest: The messages that are read one by one.
        read: Whether these are all of the field's.
        params: What the thread or the owner is.
    """

    latest: str
    read: bool
    params: Mapping[str, Any]


@operation
def find_messages(search: Search, codec: Codec) -> Op[Found | None]:
    """The messages that have all terms; None where the database has no index.

    Raises:
        ThreadNotFound: The thread does not exist, or belongs to another owner.
    """
    states, *rows = yield Together((Statement(sql.SELECT_STATE, {}), *_field_asked(search)))
    field, state = _field(search, rows), dict(states)
    if "search" not in state:
        return None
    wanted = max(RANKED, search.limit)
    patterns = {f"term{at}": term.pattern for at, term in enumerate(search.terms)}
    counts, total = [0] * len(search.terms), 1
    asked = [_candidates(search, field, patterns, wanted)]
    if (
        len(search.terms) > 1 or field.latest == LATEST_OF_ALL
    ):  # else there is nothing to compare it with
        asked.append(
            Statement(_count(search.terms, field), {**field.params, **patterns, "latest": READ})
        )
    found, *counted = yield Together(asked)
    if counted:
        [[(total, *counts)]] = counted
    if not field.read and len(found) < wanted:
        looked_up = _looked_up(search.terms, counts, total)
        yield PAUSE
        found = yield _candidates(search, field, patterns, wanted, looked_up=looked_up)
    found = sorted(found, reverse=True)[:wanted]
    ranks = rank([candidate[-1] for candidate in found], search.terms, weigh(counts, total))
    best = sorted(zip(ranks, (candidate[:-1] for candidate in found), strict=True), reverse=True)[
        : search.limit
    ]
    hits = yield from _load(
        [(worth, thread, number) for worth, (_, thread, number) in best], search.terms, codec
    )
    return Found(hits, "search_backfill" not in state)


def _field_asked(search: Search) -> list[Statement]:
    """What tells where a search looks."""
    if search.thread is not None:
        return [Statement(sql.SELECT_THREAD, {"id": search.thread, "owner": search.owner})]
    return [
        Statement(sql.SELECT_BOUND, {}),
        Statement(sql.SELECT_THREADS_OF, {"owner": search.owner, "limit": THREADS + 1}),
    ]


def _field(search: Search, asked: Sequence[Rows]) -> _Field:
    if search.thread is not None:
        [threads] = asked
        if not threads:
            raise ThreadNotFound(
                f"thread {search.thread!r} not found; see `langmem-ext threads list`"
            )
        [(number, items)] = threads
        return _Field(LATEST_OF_THREAD, items <= READ, {"thread": number})
    [[(bound,)], threads] = asked
    if bound is not None:
        # Row-level security looks at a message's thread before anything else may look at the
        # message: no index of words is of use then.
        return _Field(LATEST_OF_OWNER, True, {"owner": search.owner or bound})
    if (
        search.owner is not None
        and len(threads) <= THREADS
        and sum(items for (items,) in threads) <= READ
    ):
        return _Field(LATEST_OF_OWNER, True, {"owner": search.owner})
    return _Field(LATEST_OF_ALL, False, {"owner": search.owner})


def _candidates(
    search: Search,
    field: _Field,
    patterns: Mapping[str, str],
    limit: int,
    *,
    looked_up: Sequence[Term] = (),
) -> Statement:
    """The newest messages that have all terms.

    Args:
        search: What is searched for.
        field: Where.
        patterns: What must stand in a message's words, by parameter.
        limit: How many.
        looked_up: The terms that the index looks up; none of them: among the latest of the field,
            which are read.
    """
    params: dict[str, Any] = {**field.params, **patterns, "limit": limit, "latest": READ}
    conditions = [
        looked_at(at) if term in looked_up else f"{INSTR}(search.words, :term{at}) > 0"
        for at, term in enumerate(search.terms)
    ]
    if field.params.get("owner") is not None:
        conditions.append(OF_OWNER)
    if search.role is not None:
        conditions.append(OF_ROLE)
        params["role"] = _ROLES[search.role]
    if search.since is not None:
        conditions.append(SINCE)
        params["since"] = search.since
    if looked_up and "thread" in params:
        conditions.append(WORDS_OF_THREAD)
    if looked_up:
        params |= {
            "owner": field.params.get("owner"),
            "match": _match(looked_up),
            "query": _query(looked_up, params.get("thread")),
        }
    statement = sql.SELECT_MATCHES if looked_up else sql.SELECT_LATEST_WITH
    both = "".join(f" AND {one}" for one in conditions)
    return Statement(statement.format(latest=field.latest, conditions=both), params)


def _count(terms: Sequence[Term], field: _Field) -> str:
    """Counts the latest messages of a field, and in how many of them each term stands."""
    columns = "".join(
        f", count(CASE WHEN {INSTR}(words, :term{at}) > 0 THEN 1 END)" for at in range(len(terms))
    )
    return sql.COUNT_LATEST.format(counts=columns, latest=field.latest)


def _looked_up(terms: Sequence[Term], counts: Sequence[int], total: int) -> list[Term]:
    """The terms that FTS5 looks up, of some that stand together in few of the newest messages."""
    common = [
        term
        for term, count in zip(terms, counts, strict=True)
        if term.prefix and count > COMMON * total
    ]
    return [term for term in terms if term not in common] or list(terms)


def _match(terms: Sequence[Term]) -> str:
    """Terms as FTS5 takes them: quoted, so that nothing in them is syntax."""
    return " ".join(f'"{term.words}"{"*" if term.prefix else ""}' for term in terms)


def _query(terms: Sequence[Term], thread: int | None) -> str:
    """The words of terms and the thread's mark, as a tsquery; quoted, and no word has a quote."""
    words = [f"'{word}'" for term in terms for word in term.words.split(" ")]
    ends = accumulate(term.words.count(" ") + 1 for term in terms)
    for end in (end for end, term in zip(ends, terms, strict=True) if term.prefix):
        words[end - 1] += ":*"
    return " & ".join(words if thread is None else [*words, f"'#{thread}'"])


def _load(
    best: Sequence[tuple[float, int, int]], terms: Sequence[Term], codec: Codec
) -> Op[list[SearchHit]]:
    """The messages themselves; one that is damaged is passed over, and the doctor names it."""
    threads = list(dict.fromkeys(thread for _, thread, _ in best))
    asked = [
        Statement(SELECT_ITEM, {"thread": thread, "number": number}) for _, thread, number in best
    ]
    asked += [Statement(sql.SELECT_TITLE, {"thread": thread}) for thread in threads]
    rows: Sequence[Rows] = (yield Together(asked)) if asked else ()
    items, titles = rows[: len(best)], dict(zip(threads, rows[len(best) :], strict=True))
    indexes = {thread: ThreadIndex(thread) for thread in threads}
    shown = yield from side_by_side(
        _shown(indexes[thread], item, codec)
        for (_, thread, _), item in zip(best, items, strict=True)
    )
    hits: list[SearchHit] = []
    for count, ((worth, thread, number), item, one) in enumerate(
        zip(best, items, shown, strict=True), start=1
    ):
        hit = (
            None
            if one is None or not titles[thread]
            else _hit(titles[thread][0], item[0], one, terms, number, worth)
        )
        if hit is not None:
            hits.append(hit)
        if count % PAUSE_EVERY == 0:
            yield PAUSE
    return hits


def _shown(index: ThreadIndex, rows: Rows, codec: Codec) -> Op[Shown | None]:
    """What may be shown of an item, by its row; None where it has gone, or is damaged."""
    try:
        return (
            None
            if not rows
            else codec.shown_of((yield from read_packed_item(index, rows[0], codec)))
        )
    except DamagedRow:
        return None


def _hit(
    thread: Row, item: Row, shown: Shown, terms: Sequence[Term], number: int, worth: float
) -> SearchHit | None:
    """A message as it is given; None where its time is none."""
    thread_id, title, epoch = thread
    snippet, highlights = cut_snippet(shown.text, terms)
    try:
        created_at = moment_of((epoch + item[6]) * 1000)
    except (TypeError, OverflowError):
        return None
    return SearchHit(
        thread_id=thread_id,
        title=title,
        message_id=None if item[1] is None else decode_id(item[1]),
        number=number,
        role=shown.role,
        created_at=created_at,
        snippet=snippet,
        highlights=highlights,
        rank=worth,
    )
