"""The operation that searches.

A query is compared with each message's words (`messages.search.words`). In a few threads, messages
are read one by one: a thread's words are stored together in the index, so the cost depends on the
threads' size, not on the database's, and the beginning of a word costs no more than a whole one. In
more threads, the latest messages are read in the same way, which finds what is common. The
database's own index, FTS5 or GIN, finds the rest, and also searches within a large thread.

FTS5's own ranking counts each word in the whole database, once for each search, and compares a
thread with all others. Here each message that is found has all of the words, and the weight of each
word is counted in what is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, TypeAlias

from langmem_ext.errors import DamagedRow, ThreadNotFound
from langmem_ext.messages.search.query import Term, cut_snippet, rank, weigh
from langmem_ext.storage.cache import ThreadCache
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
"""How many messages are read one by one; beyond that the index finds those with the words."""

THREADS: Final = 256
"""How many threads are read one by one."""

RANKED: Final = 500
"""How many messages with all of the words are ranked: the newest."""

COMMON: Final = 0.05
"""The beginning of a word that is in this share of the newest messages is not looked up: the index
would collect the places of every word that begins so, in the whole database. Instead, what the
other words find is compared with it."""

Candidate: TypeAlias = tuple[int, int, int, str]
"""A message that has all terms: its time, if that decides which of two threads' messages is the
later one; thread, number, and words."""

_ROLES: Final = {"human": 0, "ai": 1, "system": 2, "tool": 3}
ROLES: Final = tuple(_ROLES)


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched for, and where.

    Attributes:
        terms: What a message must contain; at least one.
        owner: Only this owner's messages; None for everybody's.
        thread: Only messages of this thread.
        role: Only messages of this role.
        since: Only messages stored at this Unix second or later.
        limit: The maximum number of hits.
    """

    terms: Sequence[Term]
    owner: str | None
    thread: str | None
    role: str | None
    since: int | None
    limit: int


@dataclass(frozen=True, slots=True)
class Found:
    """The hits of a search, the best first, and whether all messages were searched."""

    hits: list[SearchHit]
    complete: bool


@dataclass(frozen=True, slots=True)
class _Field:
    """Where a search looks.

    Attributes:
        latest: SQL of the messages that are read one by one.
        read: Whether these are all.
        params: The thread or the owner.
    """

    latest: str
    read: bool
    params: Mapping[str, Any]


@operation
def find_messages(search: Search, codec: Codec) -> Op[Found | None]:
    """The messages that have all terms; None if the database has no index.

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
    # Else there is nothing to compare the counts with.
    if len(search.terms) > 1 or field.latest == LATEST_OF_ALL:
        asked.append(
            Statement(_count(search.terms, field), {**field.params, **patterns, "latest": READ})
        )
    candidates, *counted = yield Together(asked)
    if counted:
        [[(total, *counts)]] = counted
    if not field.read and len(candidates) < wanted:
        looked_up = _looked_up(search.terms, counts, total)
        yield PAUSE
        candidates = yield _candidates(search, field, patterns, wanted, looked_up=looked_up)
    candidates = sorted(candidates, reverse=True)[:wanted]
    ranks = rank([candidate[-1] for candidate in candidates], search.terms, weigh(counts, total))
    places = [candidate[:-1] for candidate in candidates]
    best = sorted(zip(ranks, places, strict=True), reverse=True)[: search.limit]
    hits = yield from _load(
        [(worth, thread, number) for worth, (_, thread, number) in best], search.terms, codec
    )
    return Found(hits, "search_backfill" not in state)


def _field_asked(search: Search) -> list[Statement]:
    """The statements whose rows say where a search looks."""
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
        # Row-level security checks a message's thread before anything else may see the message: an
        # index of words is of no use then.
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
        patterns: What a message's words must contain, by parameter.
        limit: The maximum number.
        looked_up: The terms that the index looks up; if there are none, the field's latest messages
            are read.
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
    further = "".join(f" AND {condition}" for condition in conditions)
    return Statement(statement.format(latest=field.latest, conditions=further), params)


def _count(terms: Sequence[Term], field: _Field) -> str:
    """SQL that counts the latest messages of a field, and how many of them contain each term."""
    columns = "".join(
        f", count(CASE WHEN {INSTR}(words, :term{at}) > 0 THEN 1 END)" for at in range(len(terms))
    )
    return sql.COUNT_LATEST.format(counts=columns, latest=field.latest)


def _looked_up(terms: Sequence[Term], counts: Sequence[int], total: int) -> list[Term]:
    """The terms that the index looks up, by how many of the newest messages have each of them."""
    common = [
        term
        for term, count in zip(terms, counts, strict=True)
        if term.prefix and count > COMMON * total
    ]
    return [term for term in terms if term not in common] or list(terms)


def _match(terms: Sequence[Term]) -> str:
    """Terms for FTS5: quoted, so that nothing in them is syntax."""
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
    """The hits' messages; a damaged one is skipped, and the doctor reports it."""
    threads = list(dict.fromkeys(thread for _, thread, _ in best))
    asked = [
        Statement(SELECT_ITEM, {"thread": thread, "number": number}) for _, thread, number in best
    ]
    asked += [Statement(sql.SELECT_TITLE, {"thread": thread}) for thread in threads]
    rows: Sequence[Rows] = (yield Together(asked)) if asked else ()
    items, titles = rows[: len(best)], dict(zip(threads, rows[len(best) :], strict=True))
    caches = {thread: ThreadCache(thread) for thread in threads}
    shown = yield from side_by_side(
        _shown(caches[thread], item, codec)
        for (_, thread, _), item in zip(best, items, strict=True)
    )
    hits: list[SearchHit] = []
    for count, ((worth, thread, number), item, message) in enumerate(
        zip(best, items, shown, strict=True), start=1
    ):
        hit = (
            None
            if message is None or not titles[thread]
            else _hit(titles[thread][0], item[0], message, terms, number, worth)
        )
        if hit is not None:
            hits.append(hit)
        if count % PAUSE_EVERY == 0:
            yield PAUSE
    return hits


def _shown(cache: ThreadCache, rows: Rows, codec: Codec) -> Op[Shown | None]:
    """What may be shown of an item, by its row; None if it is gone or damaged."""
    try:
        return (
            None
            if not rows
            else codec.shown_of((yield from read_packed_item(cache, rows[0], codec)))
        )
    except DamagedRow:
        return None


def _hit(
    thread: Row, item: Row, shown: Shown, terms: Sequence[Term], number: int, worth: float
) -> SearchHit | None:
    """A message as a hit; None if its time is invalid."""
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
