"""Operations on a store's items. A batch is one: its reads see the state before its puts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any, Final, TypeAlias

from langgraph.store.base import Item, MatchCondition, SearchItem

from langmem_ext.errors import DamagedRow, ThreadDeleted
from langmem_ext.storage.cache import ThreadCaches
from langmem_ext.storage.checkpoints.late_writes import Origin
from langmem_ext.storage.checkpoints.thread_row import require_run
from langmem_ext.storage.operation import (
    PAUSE,
    Batch,
    Op,
    Row,
    execute,
    fetch,
    fetch_one,
    operation,
    side_by_side,
)
from langmem_ext.storage.prune.store_items import (
    DELETE_SOURCES,
    DELETE_VECTORS,
    SWEPT,
    delete_expired,
    delete_held,
)
from langmem_ext.storage.rows.checksum import check_of
from langmem_ext.storage.rows.clock import moment_of
from langmem_ext.store import statements as sql
from langmem_ext.store.filters import Narrowing, passes
from langmem_ext.store.names import DEEPEST, WALK_BYTES, end_of, labels_of, matches, text_of
from langmem_ext.store.ranking import best, fuse, score_words
from langmem_ext.store.values import load_value
from langmem_ext.store.vectors import Vectors
from langmem_ext.types import ThreadKey

PAGE: Final = 500
"""How many items a filter looks at first; the next page is larger."""

LARGER: Final = 4
LARGEST_PAGE: Final = 16_000
"""The factor by which each page is larger than the one before, and the largest page."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and when.

    Attributes:
        owner: Only this owner's items are visible; None if all are, empty if nobody's are.
        now: The current time, in Unix milliseconds.
    """

    owner: str | None
    now: int


@dataclass(frozen=True, slots=True)
class Run:
    """The run of a graph that puts: once its thread is deleted, its puts are refused.

    Attributes:
        key: Its thread.
        origin: The checkpoint that its task belongs to.
        caches: The caches of this process.
    """

    key: ThreadKey
    origin: Origin
    caches: ThreadCaches


@dataclass(frozen=True, slots=True)
class SourceThread:
    """A thread that an item comes from: the item is deleted with the last of its threads.

    Attributes:
        thread_id: The thread's id.
        begun: When the thread began, in Unix milliseconds: if it was deleted since, nothing is put.
            None for any thread of this id, even a later one.
    """

    thread_id: str
    begun: int | None = None


@dataclass(frozen=True, slots=True)
class Get:
    """Read one item; that may restart its time to live."""

    path: bytes
    key: bytes
    refresh: bool


@dataclass(frozen=True, slots=True)
class Query:
    """A query: its words, and its vector if there is a model."""

    words: Sequence[str]
    vector: bytes | None
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class Search:
    """Search the items below a namespace."""

    path: bytes
    filter: Mapping[str, Any] = field(hash=False)
    narrowing: Narrowing = field(hash=False)
    limit: int
    offset: int
    query: Query | None = field(hash=False)
    refresh: bool

    @property
    def is_heavy(self) -> bool:
        """Whether it may read many more items than it returns."""
        return bool(self.filter or self.query)


@dataclass(frozen=True, slots=True)
class Listing:
    """List the namespaces below one that match all conditions, cut to a depth."""

    path: bytes
    conditions: Sequence[MatchCondition]
    max_depth: int | None
    limit: int
    offset: int


@dataclass(frozen=True, slots=True)
class Put:
    """Store an item, replacing the earlier one; or delete it, if `value` is None.

    Attributes:
        at: What the caller calls it, for errors.
        ttl: How long it lives after it was last put or read, in milliseconds; None for ever.
        words: The words by which it is found; None if no query finds it.
        vectors: The vectors of its texts.
        threads: The threads that it comes from.
        created_at, updated_at, expires_at: The times of an item that is stored again; None if they
            begin now.
    """

    at: str
    path: bytes
    key: bytes
    value: str | None
    plain: bool = True
    fields: str | None = None
    signature: int | None = None
    ttl: int | None = None
    words: str | None = None
    vectors: Sequence[bytes] = ()
    threads: Sequence[SourceThread] = ()
    created_at: int | None = None
    updated_at: int | None = None
    expires_at: int | None = None


Step: TypeAlias = Get | Search | Listing | Put
Found: TypeAlias = Item | list[SearchItem] | list[tuple[str, ...]] | None


@dataclass(frozen=True, slots=True)
class Call:
    """A batch: its reads see the state before its puts; of several puts of a key the last counts.

    Attributes:
        steps: What is to be done.
        caller: Who asks.
        by: The run that puts, if any is known.
    """

    steps: Sequence[Step]
    caller: Caller
    by: Run | None = None

    @property
    def puts(self) -> dict[tuple[bytes, bytes], Put]:
        """Its puts, by their items."""
        return {(step.path, step.key): step for step in self.steps if isinstance(step, Put)}


@dataclass(slots=True)
class Outcome:
    """The results of each batch, and the numbers of the items whose time to live restarts."""

    results: list[list[Found]] = field(default_factory=list)
    read: list[int] = field(default_factory=list)


@operation
def run_calls(calls: Sequence[Call], *, writes: bool, sweep: bool) -> Op[Outcome]:
    """Run batches as one transaction, with the results that they would have one after the other.

    Args:
        calls: The batches, in order.
        writes: Whether there are puts among them.
        sweep: Whether to delete some expired items, too.

    Raises:
        ThreadDeleted: The thread of a run, or one that an item comes from, was deleted meanwhile.
        DamagedRow: An item that was to be read is damaged.
    """
    outcome = Outcome()
    for group in _side_by_side(calls):
        read: list[int] = []
        outcome.results += yield from _read(group, read)
        outcome.read += read
        if writes:
            yield from _refresh(read, calls[0].caller)
        yield from _write(group)
    if sweep:
        yield from delete_expired(calls[-1].caller.owner, calls[-1].caller.now)
    return outcome


def _side_by_side(calls: Iterable[Call]) -> Iterator[list[Call]]:
    """Batches in groups: no batch reads, or puts, what one before it in its group puts."""
    group: list[Call] = []
    put: set[tuple[bytes, bytes]] = set()
    for call in calls:
        puts = call.puts
        reads = any(not isinstance(step, Put) for step in call.steps)
        if put and (reads or not put.isdisjoint(puts)):
            yield group
            group, put = [], set()
        group.append(call)
        put.update(puts)
    yield group


@operation
def put_new(put: Put, caller: Caller) -> Op[str]:
    """Store an item without a time to live, unless the caller has one with its key.

    An item of an owner is not a caller's who has none.

    Returns:
        The value that is stored now, this one or the earlier.

    Raises:
        DamagedRow: The earlier item is damaged.
    """
    yield from execute(sql.INSERT_ITEM, **(_row_of(put, caller) | {"seen": None}))
    where = {"path": put.path, "key": put.key, "owner": caller.owner, "now": caller.now}
    [(_, _, _, value, *_, crc)] = yield from fetch(sql.SELECT_ITEM, **where)
    require_item(put.path, put.key, value, crc)
    return str(value)


@operation
def refresh(numbers: Sequence[int], caller: Caller) -> Op[None]:
    """Restart the time to live of items that have not expired."""
    yield from _refresh(numbers, caller)


def _refresh(numbers: Sequence[int], caller: Caller) -> Op[None]:
    if numbers:
        params = [{"number": number, "now": caller.now} for number in sorted(set(numbers))]
        yield Batch(sql.REFRESH_ITEM, params)


def _read(calls: Sequence[Call], read: list[int]) -> Op[list[list[Found]]]:
    """The results of batches; what several ask for is read once, and built for each."""
    asked = dict.fromkeys(
        (step, call.caller) for call in calls for step in call.steps if _is_light(step)
    )
    rows = yield from side_by_side(starmap(_rows_of, asked))
    known = dict(zip(asked, rows, strict=True))
    results: list[list[Found]] = []
    for call in calls:
        results.append([])
        for step in call.steps:
            if isinstance(step, Put):
                found = None
            elif _is_light(step):
                found = _built(step, known[step, call.caller], read)
            else:
                found = _built(step, (yield from _rows_of(step, call.caller)), read)
            results[-1].append(found)
    return results


def _is_light(step: Step) -> bool:
    return not isinstance(step, Put) and not (isinstance(step, Search) and step.is_heavy)


def _rows_of(step: Get | Search | Listing, caller: Caller) -> Op[Any]:
    if isinstance(step, Get):
        where = {"path": step.path, "key": step.key, "owner": caller.owner, "now": caller.now}
        return [(row, None) for row in (yield from fetch(sql.SELECT_ITEM, **where))]
    if isinstance(step, Listing):
        return (yield from _list(step, caller))
    return (yield from _search(step, caller))


def _built(step: Get | Search | Listing, rows: Any, read: list[int]) -> Found:
    """A step's result, from what was read; and which items' time to live that restarts."""
    if isinstance(step, Listing):
        return list(rows)
    if step.refresh:
        read += [row[0] for row, _ in rows if row[6] is not None]
    if isinstance(step, Get):
        return _item(Item, rows[0][0]) if rows else None
    return [_item(SearchItem, row, score=score) for row, score in rows]


def _item(kind: Callable[..., Any], row: Row, **more: Any) -> Any:
    _, path, key, value, created_at, updated_at, _, crc = row
    require_item(path, key, value, crc)
    return kind(
        namespace=labels_of(path),
        key=text_of(key),
        value=load_value(value),
        created_at=moment_of(created_at),
        updated_at=moment_of(updated_at),
        **more,
    )


def require_item(path: bytes, key: bytes, value: str, crc: int) -> None:
    """Require that an item has not changed since it was written.

    Raises:
        DamagedRow: It has.
    """
    if crc != check_of(0, path, key, value):
        place = f"{text_of(key)!r} in {labels_of(path)!r}"
        raise DamagedRow(f"the store's item {place} is damaged: put it anew, or delete it")


# -- searching ---------------------------------------------------------------------------------

Scored: TypeAlias = list[tuple[Row, float | None]]
Ranked: TypeAlias = list[tuple[int, float | None]]


def _search(search: Search, caller: Caller) -> Op[Scored]:
    within: dict[str, Any] = {
        "low": search.path,
        "high": end_of(search.path),
        "owner": caller.owner,
        "now": caller.now,
    }
    if search.query is not None:
        return (yield from _rank(search, search.query, within))
    if not search.filter:
        where = {**within, "limit": search.limit, "offset": search.offset}
        return [(row, None) for row in (yield from fetch(sql.SELECT_SOME, **where))]
    end = search.offset + search.limit
    rows = yield from _filtered(search, within, end)
    return [(row, None) for row in rows[search.offset : end]]


def _filtered(search: Search, within: dict[str, Any], enough: int | None) -> Op[list[Row]]:
    """The items that pass a filter, until there are enough."""
    narrowed = f" AND {search.narrowing.sql}" if search.narrowing.sql else ""
    statement = sql.SELECT_PAGE if search.path or not narrowed else sql.SELECT_PAGE_OF_ALL
    statement = statement.format(narrowing=narrowed)
    where = {**within, **search.narrowing.params, "after": -1}
    kept: list[Row] = []
    limit = PAGE
    while enough is None or len(kept) < enough:
        rows = yield from fetch(statement, **where, limit=limit)
        kept += [row for row in rows if passes(load_value(row[3]), search.filter)]
        if len(rows) < limit:
            break
        where |= {"low": rows[-1][1], "after": rows[-1][0]}
        limit = min(limit * LARGER, LARGEST_PAGE)
        yield PAUSE
    return kept


def _rank(search: Search, query: Query, within: dict[str, Any]) -> Op[Scored]:
    rows: dict[int, Row] = {}
    end = search.offset + search.limit
    if query.vector is None and not search.filter:
        wanted = (yield from _rank_by_words(query, within, end))[search.offset :]
        return (yield from _with_rows(wanted, rows))
    if search.filter:
        rows = {row[0]: row for row in (yield from _filtered(search, within, None))}
        numbers = list(rows)
    else:
        numbers = [number for (number,) in (yield from fetch(sql.SELECT_NUMBERS, **within))]
    words = yield from _score_words(query, within, len(numbers))
    vectors: dict[int, float] | None = None
    indexed: frozenset[int] = frozenset()
    if query.vector is not None:
        vectors = yield from query.vectors.scores(query.vector, len(numbers), within)
    else:
        findable = yield from fetch(sql.SELECT_INDEXED, **within)
        indexed = frozenset(number for (number,) in findable)
    ranked = best(fuse(numbers, words, vectors, indexed), end)
    return (yield from _with_rows(ranked[search.offset :], rows))


def _rank_by_words(query: Query, within: dict[str, Any], end: int) -> Op[Ranked]:
    """The best items by their words; items without any are read only to fill a page."""
    count = sql.COUNT_WITHIN if within["low"] else sql.COUNT_ALL
    [(total,)] = yield from fetch(count, **within)
    scores = yield from _score_words(query, within, total)
    ranked: Ranked = best(scores, end)
    for words, score in (("NOT NULL", 0.0), ("NULL", None)):
        if len(ranked) < end:
            more = yield from fetch(sql.SELECT_FIRST.format(words=words), **within, limit=end)
            ranked += [(number, score) for (number,) in more if number not in scores]
    return ranked[:end]


def _with_rows(wanted: Ranked, rows: dict[int, Row]) -> Op[Scored]:
    """Items with their scores; items that are not among `rows` are read."""
    for number, _ in wanted:
        if number not in rows:
            [rows[number]] = yield from fetch(sql.SELECT_NUMBERED, number=number)
    return [(rows[number], score) for number, score in wanted]


def _score_words(query: Query, within: dict[str, Any], total: int) -> Op[dict[int, float]]:
    if not query.words:
        return {}
    either = " OR ".join(sql.has_word(at) for at in range(len(query.words)))
    named = {f"word{at}": word for at, word in enumerate(query.words)}
    statement = sql.SELECT_WORDS if within["low"] else sql.SELECT_WORDS_OF_ALL
    rows = yield from fetch(statement.format(either=either), **within, **named)
    return score_words(query.words, [(number, words) for number, words in rows], total)


def _list(listing: Listing, caller: Caller) -> Op[list[tuple[str, ...]]]:
    where: dict[str, Any] = {"low": listing.path, "high": end_of(listing.path)}
    where |= {"owner": caller.owner, "now": caller.now}
    below = labels_of(listing.path)
    if listing.max_depth != 0 and all(
        condition.match_type == "prefix" and condition.path == below
        for condition in listing.conditions
    ):
        sizes = {"depth": listing.max_depth, "limit": listing.limit, "offset": listing.offset}
        part = {name: DEEPEST if n is None else min(n, DEEPEST) for name, n in sizes.items()}
        rows = yield from fetch(sql.WALK_PATHS, **where, **part, **WALK_BYTES)
        return [labels_of(path) for (path,) in rows]
    rows = yield from fetch(sql.SELECT_PATHS, **where)
    namespaces = [
        namespace[: listing.max_depth]
        for namespace in (labels_of(path) for (path,) in rows)
        if all(matches(each, namespace) for each in listing.conditions)
    ]
    return list(dict.fromkeys(namespaces))[listing.offset : listing.offset + listing.limit]


# -- writing -----------------------------------------------------------------------------------


def _require_threads(puts: Iterable[Put], by: Run | None) -> Op[None]:
    """Require that the threads that puts come from exist, and lock them."""
    stored = [put for put in puts if put.value is not None]
    if by is not None and stored:
        yield from require_run(by.key, by.origin, by.caches)
    begun = {
        (thread.thread_id, thread.begun)
        for put in stored
        for thread in put.threads
        if thread.begun is not None
    }
    for thread_id, moment in sorted(begun):
        if (yield from fetch_one(sql.LOCK_BEGUN, id=thread_id)) != (moment,):
            raise ThreadDeleted(thread_id)


def _write(calls: Sequence[Call]) -> Op[None]:
    for call in calls:
        if call.puts:
            yield from _require_threads(call.puts.values(), call.by)
    yield from side_by_side(
        [_put(put, call.caller) for call in calls for put in call.puts.values()]
    )


def _put(put: Put, caller: Caller) -> Op[None]:
    if put.value is None:
        where = {"path": put.path, "key": put.key, "owner": caller.owner}
        for (number,) in (yield from fetch(sql.DELETE_ITEM, **where)):
            yield from delete_held([(number,)])
        return
    [(number, has_sources)] = yield from fetch(
        sql.UPSERT_ITEM, **_row_of(put, caller), now=caller.now
    )
    if has_sources:
        yield from execute(DELETE_SOURCES, item=number)
    if put.threads:
        threads = sorted({thread.thread_id for thread in put.threads})
        sources = [{"thread_id": thread_id, "item": number} for thread_id in threads]
        yield Batch(sql.INSERT_SOURCE, sources)
    yield from _put_vectors(number, put.vectors, put.signature)


def _row_of(put: Put, caller: Caller) -> dict[str, Any]:
    """The columns of an item's row; and where the caller sees the item that is put anew.

    An imported item has its own owner, or none, whoever has another with its key.
    """
    ends = (
        caller.now + put.ttl if put.expires_at is None and put.ttl is not None else put.expires_at
    )
    return {
        "path": put.path,
        "seen": put.path if put.created_at is None and caller.owner is None else None,
        "key": put.key,
        "owner": caller.owner,
        "value": put.value,
        "plain": int(put.plain),
        "fields": put.fields,
        "signature": put.signature,
        "ttl": put.ttl,
        "expires_at": ends,
        "created_at": caller.now if put.created_at is None else put.created_at,
        "updated_at": caller.now if put.updated_at is None else put.updated_at,
        "crc": check_of(0, put.path, put.key, put.value or ""),
        "words": put.words,
    }


def _put_vectors(item: int, vectors: Sequence[bytes], signature: int | None) -> Op[None]:
    yield from execute(DELETE_VECTORS, item=item)
    if vectors:
        rows = [{"item": item, "signature": signature, "vector": vector} for vector in vectors]
        yield Batch(sql.INSERT_VECTOR, rows)


@operation
def delete_owned(owner: str) -> Op[int]:
    """Delete some of an owner's items, expired ones included; how many."""
    return (yield from delete_held((yield from fetch(sql.DELETE_OWNED, owner=owner, limit=SWEPT))))


@operation
def count_rows() -> Op[tuple[int, int]]:
    """How many items and vectors there are, expired ones included."""
    [(items, vectors)] = yield from fetch(sql.COUNT_ROWS)
    return items, vectors


# -- indexing anew -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outdated:
    """An item that was put with another index, and its new words and vectors."""

    number: int
    value: str
    crc: int
    updated_at: int
    fields: str | None
    words: str | None = None
    vectors: Sequence[bytes] = ()


@operation
def read_outdated(signature: int, owner: str | None, after: int, limit: int) -> Op[list[Outdated]]:
    """Items after a number that were put with another index than this one, in their order."""
    where = {"signature": signature, "owner": owner, "after": after, "limit": limit}
    outdated = []
    for row in (yield from fetch(sql.SELECT_OUTDATED, **where)):
        number, path, key, value, _, updated_at, _, crc, fields = row
        require_item(path, key, value, crc)
        outdated.append(Outdated(number, value, crc, updated_at, fields))
    return outdated


@operation
def index_anew(items: Sequence[Outdated], signature: int) -> Op[int]:
    """Index items with this index, except those that were put meanwhile; how many."""
    done = 0
    for item in items:
        where = {
            "number": item.number,
            "crc": item.crc,
            "updated_at": item.updated_at,
            "words": item.words,
        }
        if (yield from fetch(sql.SET_SIGNATURE, **where, signature=signature)):
            yield from _put_vectors(item.number, item.vectors, signature)
            done += 1
    return done
