"""`DeltaStore`: LangGraph's long-term store on the database that holds the threads."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby
from typing import Any, Final, Self, TypeAlias, TypedDict, TypeVar, Unpack
from weakref import WeakKeyDictionary

from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.store.base import BaseStore, IndexConfig, Op, Result, TTLConfig

from langmem_ext._internal.stepping import aperform, perform
from langmem_ext.checkpointer.opening import Done
from langmem_ext.errors import InvalidInput, StorageUnavailable
from langmem_ext.log.closing import Closing
from langmem_ext.log.message_log import Database, MessageLog, bound_owner, is_address
from langmem_ext.log.shown import ReprFacts
from langmem_ext.storage.operation import Operation
from langmem_ext.storage.prune.store_items import delete_expired
from langmem_ext.storage.rows.clock import now_ms
from langmem_ext.store import operations as ops
from langmem_ext.store.index import Index, words_of
from langmem_ext.store.lines import head_line, line_of, read_lines, read_page
from langmem_ext.store.operations import Caller, Outdated, Run
from langmem_ext.store.planning import Plan, milliseconds, plan_batch, run_of
from langmem_ext.store.values import load_value
from langmem_ext.store.vectors import Vectors

T = TypeVar("T")

SWEEP_EVERY: Final = 64
"""Of so many batches that put something, one also deletes some expired items."""

MANY: Final = 64
"""More batches than this do not run on an event loop together."""

PAGE: Final = 100
"""How many items are reindexed at a time."""

COPIED_AT_ONCE: Final = 20_000
"""A search has vectors copied for pgvector only if they are fewer: others wait some seconds."""


class StoreOptions(TypedDict, total=False):
    """The options of `DeltaStore`."""

    index: IndexConfig | None
    ttl: TTLConfig | None
    owner: str | None
    hybrid: bool


@dataclass(frozen=True, slots=True)
class _Run:
    """Run an operation."""

    op: Operation[Any]
    write: bool
    by_run: bool = False


@dataclass(frozen=True, slots=True)
class _Embed:
    """Embed texts and queries; the answer is their vectors, as two dicts."""

    texts: Sequence[str] = ()
    queries: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Look:
    """Ask whether the database compares vectors (`Driver.compares_vectors`)."""

    fewer: int


@dataclass(frozen=True, slots=True)
class _Each:
    """Do several works at once, or one after the other."""

    works: Sequence[_Work[None]]


_Asked: TypeAlias = _Run | _Embed | _Look | _Each
_Work: TypeAlias = Generator[_Asked, Any, T]
"""What to do, written once for sync and async callers."""


@dataclass(slots=True)
class _Call:
    """A batch that somebody waits for, and what came of it."""

    plan: Plan
    owner: str | None
    by: Run | None
    results: list[Result] = field(default_factory=list)
    error: Exception | None = None

    def outcome(self) -> list[Result]:
        """Its results; raises what it raised."""
        if self.error is not None:
            raise self.error
        return self.results


class DeltaStore(Closing, BaseStore):
    """Items by namespace and key, in one database with the threads or in a database of their own.

    One object serves sync and async callers, from any thread and event loop; many processes may use
    one file. A batch is one transaction: all of it happens, or nothing. Values are JSON, and come
    back as they were put; filters and TTL are exact. Every item is found by its words; with an
    embedding model also by its meaning, and the two are fused into one score between 0 and 1
    (`store.ranking`). No extension of SQLite or PostgreSQL is needed.

    Args:
        source: A `MessageLog`, a `DeltaSaver`, a path or a URL (see `MessageLog.open`).
        index: How items are found by meaning: LangGraph's `IndexConfig`.
        ttl: How long items live: LangGraph's `TTLConfig`. No read returns expired items, whatever
            `omit_expired` says.
        owner: Bind the store to an owner: it sees no items of others, and its items are marked with
            the owner.
        hybrid: Whether words count if there is a model; otherwise the score is the cosine.

    Raises:
        InvalidInput: An option cannot be used, or the source is a saver that encrypts.
        StorageError: The database cannot be opened.

    Example:
        `agent = create_agent(model, tools, checkpointer=saver, store=DeltaStore(saver))`
    """

    supports_ttl = True

    def __init__(
        self,
        source: Database = ":memory:",
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        owner: str | None = None,
        hybrid: bool = True,
    ) -> None:
        self.owner = bound_owner(source, owner)
        self.ttl_config = ttl
        if ttl is not None:
            milliseconds(ttl.get("default_ttl"))
        self.index_config = index
        self._index = Index(index)
        self._hybrid = hybrid or self._index.embeddings is None
        _require_plain(source)
        self._opened = is_address(source)
        self.log = MessageLog.of(source)
        self._vectors = Vectors(self._index.signature, self._index.dims)
        if self._index.embeddings is not None:
            self.log.driver.on_rollback(self._vectors.forget)
        self._puts = 0
        # Of each event loop: the batches that have come in this turn, and the task that runs them.
        self._turns: WeakKeyDictionary[
            asyncio.AbstractEventLoop, tuple[list[_Call], asyncio.Task[None]]
        ] = WeakKeyDictionary()

    # -- opening and closing -------------------------------------------------------------------

    @classmethod
    def open(cls, url: Database, **options: Unpack[StoreOptions]) -> Self:
        """Open a store by path or URL (see `MessageLog.open`); it is created if there is none."""
        return cls(url, **options)

    @classmethod
    async def aopen(cls, url: Database, **options: Unpack[StoreOptions]) -> Self:
        """Async twin of `open`, which does not block the event loop. Close it by `aclose`."""
        return await asyncio.to_thread(partial(cls, url, **options))

    def for_owner(self, owner: str) -> DeltaStore:
        """A store on the same log, with the same options, that is bound to an owner.

        The two share the vectors that are kept in memory. Closing it closes nothing.
        """
        bound = copy(self)
        bound.owner, bound._opened = bound_owner(self, owner), False
        return bound

    def for_nobody(self) -> DeltaStore:
        """A store like this one that sees nobody's items alone: those that have no owner.

        An unbound store reads and changes the items of all, so an owner whose role of PostgreSQL
        sends SQL of its own could give it what is taken for the application's.
        """
        if self.owner is not None:
            return self
        bound = copy(self)
        bound.owner, bound._opened = "", False
        return bound

    def setup(self) -> Awaitable[None]:
        """Does nothing: opening migrates. For code that calls it, with or without `await`."""
        return Done()

    def _repr_facts(self) -> ReprFacts:
        return ReprFacts(self.log.driver, self.owner)

    # -- batches -------------------------------------------------------------------------------

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations as one transaction: its reads see the state before its puts.

        Of several puts of one key the last counts.

        Raises:
            InvalidInput: An operation is invalid; nothing was changed.
            ThreadDeleted: The caller is a run whose thread, in the same database, was deleted
                meanwhile.
            DamagedRow: An item that was to be read is damaged.
            StorageError: The database refused; nothing was changed.
        """
        call = self._call(ops)
        perform(self._run_all([call]), self._answer)
        return call.outcome()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Async twin of `batch`.

        Batches that come in the same turn of an event loop share a transaction, and the request to
        the embedding model. Each has the result that it would have if they ran one after the other,
        in the order of the calls, and each succeeds or fails by itself. A read costs little then:
        gather as many as you like.
        """
        call, loop = self._call(ops), asyncio.get_running_loop()
        turn = self._turns.get(loop)
        if turn is None or turn[1].done():  # one that was cancelled before it began is left behind
            calls: list[_Call] = []
            # A task, which ends even if all who wait are cancelled; not `create_task`, by which an
            # eager one would begin before others have come.
            work = asyncio.Task(self._run_turn(loop, calls), loop=loop)
            turn = self._turns[loop] = calls, work
        turn[0].append(call)
        await asyncio.shield(turn[1])
        return call.outcome()

    async def _run_turn(self, loop: asyncio.AbstractEventLoop, calls: Sequence[_Call]) -> None:
        del self._turns[loop]  # who comes from now on waits for the next one
        await aperform(self._run_all(calls), self._aanswer)

    def _call(self, operations: Iterable[Op]) -> _Call:
        plan = plan_batch(operations, self._index)
        return _Call(plan, self.owner, run_of(self.log) if plan.writes else None)

    def _run_all(self, calls: Sequence[_Call]) -> _Work[None]:
        """Run batches; those that only read much do not keep the others waiting."""
        heavy = [call for call in calls if call.plan.is_heavy]
        if not heavy or len(calls) == 1 or any(call.plan.writes for call in calls):
            yield from self._run_together(calls)
            return
        light = [call for call in calls if not call.plan.is_heavy]
        groups = [*([call] for call in heavy), *([light] if light else [])]
        yield _Each([self._run_together(group) for group in groups])

    def _run_together(self, calls: Sequence[_Call]) -> _Work[None]:
        """Run batches in one transaction; if it fails, in two, so that each fails by itself."""
        yield from self._complete(calls)
        groups = [[call for call in calls if call.error is None]]
        while groups:
            if not (group := groups.pop()):
                continue
            try:
                yield from self._store(group)
            except Exception as error:
                if len(group) > 1 and not isinstance(error, StorageUnavailable):
                    half = len(group) // 2
                    groups += group[half:], group[:half]
                    continue
                for call in group:
                    call.error = error

    def _complete(self, calls: Sequence[_Call]) -> _Work[None]:
        """Embed what batches need; whose texts are refused fails by itself."""
        texts = list(dict.fromkeys(chain.from_iterable(call.plan.all_texts() for call in calls)))
        queries = list(
            dict.fromkeys(chain.from_iterable(call.plan.all_queries() for call in calls))
        )
        of_texts, of_queries = {}, {}
        try:
            if self._index.embeddings is not None and (texts or queries):
                of_texts, of_queries = yield _Embed(texts, queries)
            if queries:
                yield from self._look(COPIED_AT_ONCE)
        except Exception as error:
            if len(calls) == 1:
                calls[0].error = error
            else:
                yield _Each([self._complete([call]) for call in calls])
            return
        for call in calls:
            call.plan.complete(
                self._index, of_texts, of_queries, self._vectors, hybrid=self._hybrid
            )

    def _store(self, calls: Sequence[_Call]) -> _Work[None]:
        """Run batches in one transaction."""
        now, writes = now_ms(), any(call.plan.writes for call in calls)
        self._puts += writes
        op = ops.run_calls(
            [ops.Call(call.plan.steps, Caller(call.owner, now), call.by) for call in calls],
            writes=writes,
            sweep=writes and self._puts % SWEEP_EVERY == 0,
        )
        op.heavy = len(calls) > MANY or any(call.plan.is_heavy for call in calls)
        by_run = any(call.by is not None for call in calls)
        outcome = yield _Run(op, writes, by_run=by_run)
        if outcome.read and not writes:
            yield _Run(ops.refresh(outcome.read, Caller(None, now)), write=True)
        for call, results in zip(calls, outcome.results, strict=True):
            call.results = results

    def _look(self, fewer: int) -> _Work[None]:
        """Find out whether the database compares vectors, if that matters and is not known."""
        if self._index.embeddings is not None and self._vectors.looks:
            self._vectors.by_database = yield _Look(fewer)

    def _answer(self, asked: _Asked) -> Any:
        if isinstance(asked, _Look):
            return self.log.driver.compares_vectors(fewer=asked.fewer)
        if isinstance(asked, _Run):
            run = (
                self.log.write_of_run if asked.by_run else partial(self.log.run, write=asked.write)
            )
            return run(asked.op)
        if isinstance(asked, _Each):
            return [perform(work, self._answer) for work in asked.works]
        index, queries = self._index, asked.queries
        return index.embed(asked.texts), {query: index.embed_query(query) for query in queries}

    async def _aanswer(self, asked: _Asked) -> Any:
        if isinstance(asked, _Look):
            driver = self.log.driver
            return await driver.acall(partial(driver.compares_vectors, fewer=asked.fewer))
        if isinstance(asked, _Run):
            if asked.by_run:
                return await self.log.awrite_of_run(asked.op)
            return await self.log.arun(asked.op, write=asked.write)
        if isinstance(asked, _Each):
            return await asyncio.gather(*(aperform(work, self._aanswer) for work in asked.works))
        index, queries = self._index, asked.queries
        texts = await index.aembed(asked.texts)
        vectors = await asyncio.gather(*map(index.aembed_query, queries))
        return texts, dict(zip(queries, vectors, strict=True))

    # -- moving --------------------------------------------------------------------------------

    def export_lines(self) -> Iterator[str]:
        """All items as lines of JSON, without line ends: `import_lines` stores them again.

        Items are read in pages, and others may write meanwhile.

        Raises:
            DamagedRow: An item is damaged.
        """
        yield head_line()
        after = -1
        while page := self.log.run(read_page(after, self.owner), write=False):
            yield from map(line_of, page)
            after = page[-1][0]

    async def aexport_lines(self) -> AsyncIterator[str]:
        """Async twin of `export_lines`."""
        yield head_line()
        after = -1
        while page := await self.log.arun(read_page(after, self.owner), write=False):
            for row in page:
                yield line_of(row)
            after = page[-1][0]

    def import_lines(self, lines: Iterable[str]) -> int:
        """Store the items of lines; returns how many. An item with the same key is replaced.

        Items keep their owners and times, and are found by this store's index. A bound store gives
        all of them to its owner. An import takes many transactions: one that was stopped can be run
        again.

        Raises:
            MalformedExport: A line is invalid; the pages before it are stored.
        """
        return perform(self._import(lines), self._answer)

    async def aimport_lines(self, lines: Iterable[str]) -> int:
        """Async twin of `import_lines`."""
        return await aperform(self._import(lines), self._aanswer)

    def _import(self, lines: Iterable[str]) -> _Work[int]:
        done = 0
        for page in read_lines(lines):
            # In their order, so that it is the order of their first put.
            for owner, group in groupby(
                page, key=lambda item: item.owner if self.owner is None else self.owner
            ):
                items = list(group)
                plan = Plan([item.put for item in items])
                plan.texts = {
                    at: self._index.texts(item.value, item.fields) for at, item in enumerate(items)
                }
                call = _Call(plan, owner, None)
                yield from self._run_together([call])
                call.outcome()
            done += len(page)
        return done

    # -- upkeep --------------------------------------------------------------------------------

    def reindex(self) -> int:
        """Index all items with this store's index, after a change of model, dims or fields.

        Until it has ended, items of another index are found by their words, and never compared with
        vectors of this one. It works in pages, can be stopped at any moment and goes on where it
        stopped; items that are put meanwhile are indexed by their put. If pgvector is needed to
        compare vectors and has no copy of them, the copy is made at the end, however many there
        are.

        Returns:
            How many items were indexed.

        Raises:
            InvalidInput: The model's vectors have other dims than the index.
            DamagedRow: An item is damaged.
        """
        return perform(self._reindex(), self._answer)

    async def areindex(self) -> int:
        """Async twin of `reindex`."""
        return await aperform(self._reindex(), self._aanswer)

    def _reindex(self) -> _Work[int]:
        index, after, done = self._index, -1, 0
        while True:
            read = ops.read_outdated(index.signature, self.owner, after, PAGE)
            page: list[Outdated] = yield _Run(read, write=False)
            if not page:
                break
            texts = [index.texts(load_value(item.value), _fields_of(item)) for item in page]
            vectors, _ = yield _Embed(list(dict.fromkeys(chain.from_iterable(texts))))
            items = [
                replace(
                    item,
                    words=words_of(own_texts),
                    vectors=[vectors[text] for text in own_texts if text in vectors],
                )
                for item, own_texts in zip(page, texts, strict=True)
            ]
            done += yield _Run(ops.index_anew(items, index.signature), write=True)
            after = page[-1].number
        if self._index.embeddings is not None:
            yield _Run(self._vectors.count(), write=False)
            self._vectors.by_database = self._vectors.by_database or None
            yield from self._look(sys.maxsize)
        return done

    def sweep(self) -> int:
        """Delete expired items, a few at a time; returns how many.

        No read returns expired items, and puts delete some, too: a sweep frees space.
        """
        return perform(self._sweep(), self._answer)

    async def asweep(self) -> int:
        """Async twin of `sweep`."""
        return await aperform(self._sweep(), self._aanswer)

    def _sweep(self) -> _Work[int]:
        return (yield from _repeat(partial(delete_expired, self.owner, now_ms())))

    def forget_owner(self, owner: str) -> int:
        """Delete all items of an owner; returns how many. It can be stopped, and called again.

        Raises:
            InvalidInput: The owner is invalid, or another than the one that the store is bound to.
        """
        return perform(self._forget_owner(owner), self._answer)

    async def aforget_owner(self, owner: str) -> int:
        """Async twin of `forget_owner`."""
        return await aperform(self._forget_owner(owner), self._aanswer)

    def _forget_owner(self, owner: str) -> _Work[int]:
        name = bound_owner(self, owner)
        if name is None:
            raise InvalidInput("whose items are to be forgotten? give the owner's name")
        return (yield from _repeat(partial(ops.delete_owned, name)))


def _require_plain(source: object) -> None:
    """Require that items are not stored in plain text beside encrypted threads."""
    if isinstance(getattr(source, "serde", None), EncryptedSerializer):
        raise InvalidInput(
            "this saver encrypts what it stores, and a store cannot: items are found by their"
            " text. Use a store of another kind, or accept items in plain text in the same"
            " database: DeltaStore(saver.log)"
        )


def _repeat(some: Callable[[], Operation[int]]) -> _Work[int]:
    """Repeat an operation that deletes some, until none are left; how many were deleted."""
    deleted = 0
    while count := (yield _Run(some(), write=True)):
        deleted += count
    return deleted


def _fields_of(item: Outdated) -> Any:
    """The `index=` of the item's put."""
    return None if item.fields is None else json.loads(item.fields)
