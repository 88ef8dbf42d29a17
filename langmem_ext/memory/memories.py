"""`ConversationMemories`: the memories of conversations, one a thread, in a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp

from langmem_ext._internal import html
from langmem_ext.errors import ThreadDeleted, ThreadNotFound
from langmem_ext.log.message_log import Database, is_address
from langmem_ext.memory.calls import Call, Steps, arun, run
from langmem_ext.memory.facts.facts import facts_in, remove_sources
from langmem_ext.memory.items import (
    ROOT,
    Namespace,
    OwnedStores,
    items_below,
    label_of,
    with_sources,
)
from langmem_ext.storage.rows.clock import moment_of, now_ms, unix_ms
from langmem_ext.store.operations import SourceThread
from langmem_ext.store.store import DeltaStore
from langmem_ext.threads.rows import ThreadId
from langmem_ext.threads.threads import Threads
from langmem_ext.types import ThreadInfo

PAGE: Final = 50
"""Threads that are looked at together."""

_OF_A_THREAD: Final = ("threads", "failures", "read")
"""What there may be of a thread: its memory, why there is none, and how far facts were looked for
in it."""


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """The memory of a conversation.

    Attributes:
        thread_id: The conversation.
        data: What it says, by the keys of its schema.
        messages: Ids of the messages it comes from.
        thread_updated_at: When the conversation was last written before it was read; with a time
            zone.
        written_at: When the memory was written; with a time zone.
    """

    thread_id: str
    data: Mapping[str, Any]
    messages: tuple[str, ...]
    thread_updated_at: datetime
    written_at: datetime

    def _repr_html_(self) -> str:
        rows = [*self.data.items(), ("from", f"{len(self.messages)} messages")]
        return html.titled(f"Memory of {self.thread_id}", html.table(rows))

    def value(self) -> dict[str, Any]:
        """As the store has it."""
        return {
            "memory": dict(self.data),
            "messages": list(self.messages),
            "thread_updated_at": self.thread_updated_at.isoformat(),
            "written_at": self.written_at.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the last generation for a thread wrote no memory.

    Attributes:
        reason: What went wrong, in words that quote nothing.
        thread_updated_at: When the conversation was last written before; with a time zone.
        at: When it failed; with a time zone.
    """

    reason: str
    thread_updated_at: datetime
    at: datetime

    def value(self) -> dict[str, Any]:
        """As the store has it."""
        return {
            "reason": self.reason,
            "thread_updated_at": self.thread_updated_at.isoformat(),
            "at": self.at.isoformat(),
        }


class ConversationMemories:
    """The memories of a database's conversations; those of one owner, where one is named.

    A thread's memory is found by its thread: where that is gone, or another owner's, there is none.

    Args:
        log: The database: a `MessageLog`, a `DeltaSaver`, a path or a URL.
        store: Where the memories are: any LangGraph store, by default the database's own
            (`DeltaStore`). One namespace of another one belongs to one database.
        owner: Bind to an owner.
        namespace: The namespace of the store that they are below.

    Raises:
        InvalidInput: An argument is invalid.
    """

    def __init__(
        self,
        log: Database,
        store: BaseStore | None = None,
        *,
        owner: str | None = None,
        namespace: Namespace = ROOT,
    ) -> None:
        # Without limits: what has expired is read until it is deleted.
        self.threads = Threads(log, owner=owner, tool_ttl=None, max_turns=None)
        self.store = (
            DeltaStore(self.threads.log if is_address(log) else log, owner=self.threads.owner)
            if store is None
            else store
        )
        self.stores = OwnedStores(self.store)
        self.root = tuple(namespace)

    def get(self, thread_id: ThreadId) -> StoredMemory | None:
        """The memory of a conversation; None where there is none, or no such conversation."""
        return run(self._get(thread_id))

    async def aget(self, thread_id: ThreadId) -> StoredMemory | None:
        """Async twin of `get`."""
        return await arun(self._get(thread_id))

    def put(
        self, thread_id: ThreadId, data: Mapping[str, Any], *, messages: Sequence[str] = ()
    ) -> StoredMemory:
        """Write a conversation's memory that was made elsewhere, in place of the one before.

        Args:
            thread_id: The conversation.
            data: What it says: JSON.
            messages: Ids of the messages it comes from.

        Raises:
            ThreadNotFound: The conversation does not exist.
        """
        return run(self._put(thread_id, data, messages))

    async def aput(
        self, thread_id: ThreadId, data: Mapping[str, Any], *, messages: Sequence[str] = ()
    ) -> StoredMemory:
        """Async twin of `put`."""
        return await arun(self._put(thread_id, data, messages))

    def failure(self, thread_id: ThreadId) -> Failure | None:
        """Why the last generation for a conversation wrote no memory; None where it wrote one.

        Raises:
            ThreadNotFound: The conversation does not exist.
        """
        return run(self._failure(thread_id))

    async def afailure(self, thread_id: ThreadId) -> Failure | None:
        """Async twin of `failure`."""
        return await arun(self._failure(thread_id))

    def all(self) -> list[StoredMemory]:
        """All memories, in the store's order; those of threads that are gone are left out."""
        return run(self._all())

    async def aall(self) -> list[StoredMemory]:
        """Async twin of `all`."""
        return await arun(self._all())

    def forget(self, thread_id: ThreadId) -> bool:
        """Delete a conversation's memory; whether there was one. The conversation stays.

        Raises:
            ThreadNotFound: The conversation does not exist.
        """
        return run(self._forget(thread_id))

    async def aforget(self, thread_id: ThreadId) -> bool:
        """Async twin of `forget`."""
        return await arun(self._forget(thread_id))

    def sweep(self) -> int:
        """Delete the memories of threads that are gone, and the facts that come from them alone.

        In the database's own store they go with their threads; there it looks after what another
        version, or a store of another kind, has left.

        A namespace of a store that several databases share has memories of threads that are not
        here: never sweep it.

        Returns:
            How many were deleted.
        """
        return run(self.sweeping())

    async def asweep(self) -> int:
        """Async twin of `sweep`."""
        return await arun(self.sweeping())

    # -- steps -------------------------------------------------------------------------------------

    def beside(
        self, threads: Sequence[ThreadInfo]
    ) -> Steps[list[tuple[StoredMemory | None, Failure | None]]]:
        """What the store has of each thread: its memory, and why the last generation wrote none."""
        known: dict[str, tuple[StoredMemory | None, Failure | None]] = {}
        for owner in dict.fromkeys(thread.owner for thread in threads):
            own = [thread for thread in threads if thread.owner == owner]
            reads: list[Op] = [
                GetOp(place, thread.id, refresh_ttl=False)
                for thread in own
                for place in self._places(thread)[:2]
            ]
            items: list[Item | None] = yield Call(self.stores.of(owner), "batch", reads)
            for thread, memory, failure in zip(own, items[::2], items[1::2], strict=True):
                known[thread.id] = _memory_of(thread, memory), _failure_in(failure)
        return [known[thread.id] for thread in threads]

    def writing(self, thread: ThreadInfo, memory: StoredMemory) -> Steps[bool]:
        """Write a thread's memory in place of the one before.

        Returns:
            Whether the thread is still there; else nothing is left of it.
        """
        memories, failures, _ = self._places(thread)
        written = PutOp(memories, thread.id, memory.value(), index=["memory"])
        return (yield from self._storing(thread, written, PutOp(failures, thread.id, None)))

    def noting(self, thread: ThreadInfo, failure: Failure) -> Steps[bool]:
        """Note why no memory was written; the memory that there is stays.

        Returns:
            Whether the thread is still there; else nothing is left of it.
        """
        place = self._places(thread)[1]
        noted = PutOp(place, thread.id, failure.value(), index=False)
        return (yield from self._storing(thread, noted))

    def with_source(self, thread: ThreadInfo, put: PutOp) -> PutOp:
        """A put whose item goes with a thread, and is refused where that is gone (`is_own`)."""
        return (
            with_sources(self.store, put, [SourceThread(thread.id, began(thread))])
            if self.is_own
            else put
        )

    def _storing(self, thread: ThreadInfo, put: PutOp, *others: PutOp) -> Steps[bool]:
        try:
            yield Call(
                self.stores.of(thread.owner), "batch", [self.with_source(thread, put), *others]
            )
        except ThreadDeleted:
            return False
        return self.is_own or (yield from self._is_there(thread))

    @property
    def is_own(self) -> bool:
        """Whether the store is the database's own, so that a thread which is not here is gone."""
        return isinstance(self.store, DeltaStore) and self.store.log is self.threads.log

    def sweeping(self) -> Steps[int]:
        """The steps of `sweep`."""
        deleted = 0
        for kind in _OF_A_THREAD:
            items = yield from items_below(self.store, self._all_of(kind))
            gone = yield from self._gone(item.key for item in items)
            deletes: list[Op] = [
                PutOp(item.namespace, item.key, None) for item in items if item.key in gone
            ]
            if deletes:
                yield Call(self.store, "batch", deletes)
            deleted += len(deletes) if kind == "threads" else 0
        facts = yield from items_below(self.store, self._all_of("facts"))
        gone = yield from self._gone(
            source.thread_id for fact in facts_in(facts) for source in fact.sources
        )
        if gone:
            deleted += yield from remove_sources(self.store, self._all_of("facts"), gone)
        return deleted

    def _gone(self, thread_ids: Iterable[str]) -> Steps[set[str]]:
        """Those of the threads that are not there."""
        gone: set[str] = set()
        for thread_id in set(thread_ids):
            if (yield from self._thread(thread_id)) is None:
                gone.add(thread_id)
        return gone

    def _get(self, thread_id: ThreadId) -> Steps[StoredMemory | None]:
        thread = yield from self._thread(thread_id)
        if thread is None:
            return None
        [(memory, _)] = yield from self.beside([thread])
        return memory

    def _put(
        self, thread_id: ThreadId, data: Mapping[str, Any], messages: Sequence[str]
    ) -> Steps[StoredMemory]:
        thread: ThreadInfo = yield Call(self.threads, "get", thread_id)
        memory = StoredMemory(
            thread.id, dict(data), tuple(messages), thread.updated_at, moment_of(now_ms())
        )
        if not (yield from self.writing(thread, memory)):
            raise ThreadNotFound(
                f"thread {thread.id!r} was deleted meanwhile: nothing of its memory is left"
            )
        return memory

    def _failure(self, thread_id: ThreadId) -> Steps[Failure | None]:
        thread = yield Call(self.threads, "get", thread_id)
        [(_, failure)] = yield from self.beside([thread])
        return failure

    def _all(self) -> Steps[list[StoredMemory]]:
        items = yield from items_below(self.store, self._all_of("threads"))
        threads: list[ThreadInfo] = []
        for thread_id in dict.fromkeys(item.key for item in items):
            thread = yield from self._thread(thread_id)
            threads += [] if thread is None else [thread]
        known = yield from self.beside(threads)
        return [memory for memory, _ in known if memory is not None]

    def _forget(self, thread_id: ThreadId) -> Steps[bool]:
        thread = yield Call(self.threads, "get", thread_id)
        [(memory, _)] = yield from self.beside([thread])
        deletes: list[Op] = [PutOp(place, thread.id, None) for place in self._places(thread)[:2]]
        yield Call(self.stores.of(thread.owner), "batch", deletes)
        return memory is not None

    def _is_there(self, thread: ThreadInfo) -> Steps[bool]:
        """Whether the thread is still there; else what was written of it is deleted again."""
        if (yield from self._thread(thread.id)) is not None:
            return True
        deletes: list[Op] = [PutOp(place, thread.id, None) for place in self._places(thread)]
        yield Call(self.store, "batch", deletes)
        yield from remove_sources(
            self.store, (*self.root, "facts", label_of(thread.owner)), {thread.id}
        )
        return False

    def _thread(self, thread_id: ThreadId) -> Steps[ThreadInfo | None]:
        try:
            thread: ThreadInfo = yield Call(self.threads, "get", thread_id)
        except ThreadNotFound:
            return None
        return thread

    def _places(self, thread: ThreadInfo) -> list[Namespace]:
        """Where the store has what it has of a thread."""
        return [(*self.root, kind, label_of(thread.owner)) for kind in _OF_A_THREAD]

    def _all_of(self, kind: str) -> Namespace:
        owner = self.threads.owner
        return (*self.root, kind) if owner is None else (*self.root, kind, label_of(owner))


def began(thread: ThreadInfo) -> int:
    """When a thread began, as `SourceThread` tells it from an earlier one."""
    return unix_ms(thread.created_at)


def _memory_of(thread: ThreadInfo, item: Item | None) -> StoredMemory | None:
    """The memory that an item holds; None if it holds no memory, or one of an earlier thread."""
    memory = _memory_in(item)
    return memory if memory is not None and memory.thread_updated_at >= thread.created_at else None


def _memory_in(item: Item | None) -> StoredMemory | None:
    if item is None:
        return None
    value = item.value
    try:
        return StoredMemory(
            thread_id=item.key,
            data=dict(value["memory"]),
            messages=tuple(value["messages"]),
            thread_updated_at=datetime.fromisoformat(value["thread_updated_at"]),
            written_at=datetime.fromisoformat(value["written_at"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _failure_in(item: Item | None) -> Failure | None:
    """The failure that an item records; None if it records none."""
    if item is None:
        return None
    value = item.value
    try:
        return Failure(
            value["reason"],
            datetime.fromisoformat(value["thread_updated_at"]),
            datetime.fromisoformat(value["at"]),
        )
    except (KeyError, TypeError, ValueError):
        return None
