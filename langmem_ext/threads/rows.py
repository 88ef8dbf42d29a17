"""Threads as their rows show them: listed, counted, named, put away, deleted. No message is read for it.

A thread's row holds what a list shows. So whoever only lists threads, as the command line does, needs no message class and no graph.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Unpack
from uuid import UUID

from langmem_ext.errors import InvalidInput
from langmem_ext.log import thread_key
from langmem_ext.shown import Shown
from langmem_ext.storage import forget_ops, listing_ops
from langmem_ext.storage.effects import Operation
from langmem_ext.storage.tally_ops import count_all
from langmem_ext.threads.closing import Closing
from langmem_ext.threads.validation import Wanted, checked_limit, checked_metadata, checked_tags, checked_title, plan_filter
from langmem_ext.types import Pruned, ThreadInfo, ThreadKey, ThreadStatistics

if TYPE_CHECKING:
    from langmem_ext.log import MessageLog

ThreadId: TypeAlias = str | int | UUID
Page: TypeAlias = list[ThreadInfo]

PAGE: Final = 50
"""Threads of a page."""


class ThreadRows(Closing):
    """The part of `Threads` that needs their rows alone.

    Args:
        log: The database; it stays open.
        owner: Only this owner's threads are there; None: everybody's.
    """

    def __init__(self, log: MessageLog, owner: str | None = None) -> None:
        self.log = log
        self.owner = owner
        self._opened = False

    def _shown(self) -> Shown:
        return Shown(self.log.driver, self.owner)

    # -- finding -------------------------------------------------------------------------------------------------------------------------

    def get(self, thread_id: ThreadId) -> ThreadInfo:
        """One thread.

        Raises:
            ThreadNotFound: There is none of this id, or it is another owner's.
            ThreadExpired: It has expired; until the next sweep, lists still show it.
            DamagedRow: What its row says cannot be; lists go on without it.
        """
        return self.log.run(self._live(thread_id), write=False)

    async def aget(self, thread_id: ThreadId) -> ThreadInfo:
        """Async twin of `get`."""
        return await self.log.arun(self._live(thread_id), write=False)

    def list(self, *, limit: int = PAGE, after: ThreadInfo | None = None, **wanted: Unpack[Wanted]) -> Page:
        """A page of threads, the one that was written last first. Those that have expired are shown until they are deleted.

        Args:
            limit: At most so many.
            after: The last thread of the page before.
            wanted: Which (`Wanted`).

        Raises:
            InvalidInput: An argument cannot be used.
        """
        return self.log.run(self._list(limit, after, wanted), write=False)

    async def alist(self, *, limit: int = PAGE, after: ThreadInfo | None = None, **wanted: Unpack[Wanted]) -> Page:
        """Async twin of `list`."""
        return await self.log.arun(self._list(limit, after, wanted), write=False)

    def each(self, **wanted: Unpack[Wanted]) -> Iterator[ThreadInfo]:
        """All of them, read a page at a time: no lock is held while the caller works, and what is written meanwhile may be passed over."""
        after: ThreadInfo | None = None
        while page := self.log.run(self._list(PAGE, after, wanted), write=False):
            yield from page
            after = page[-1]

    async def aeach(self, **wanted: Unpack[Wanted]) -> AsyncIterator[ThreadInfo]:
        """Async twin of `each`."""
        after: ThreadInfo | None = None
        while page := await self.log.arun(self._list(PAGE, after, wanted), write=False):
            for thread in page:
                yield thread
            after = page[-1]

    def count(self, **wanted: Unpack[Wanted]) -> int:
        """How many there are."""
        return self.log.run(listing_ops.count_threads(plan_filter(wanted, self.owner)), write=False)

    async def acount(self, **wanted: Unpack[Wanted]) -> int:
        """Async twin of `count`."""
        return await self.log.arun(listing_ops.count_threads(plan_filter(wanted, self.owner)), write=False)

    def stats(self) -> ThreadStatistics:
        """How many threads there are, by status and by tool, and what they hold; no message is decoded for it."""
        return self.log.run(count_all(self.owner), write=False)

    async def astats(self) -> ThreadStatistics:
        """Async twin of `stats`."""
        return await self.log.arun(count_all(self.owner), write=False)

    # -- naming --------------------------------------------------------------------------------------------------------------------------

    def rename(self, thread_id: ThreadId, title: str) -> ThreadInfo:
        """Call a thread something else; an empty title makes its next message give it one again."""
        return self._change(thread_id, {"title": checked_title(title)})

    async def arename(self, thread_id: ThreadId, title: str) -> ThreadInfo:
        """Async twin of `rename`."""
        return await self._achange(thread_id, {"title": checked_title(title)})

    def tag(self, thread_id: ThreadId, *tags: str, remove: Iterable[str] = ()) -> ThreadInfo:
        """Give a thread tags, and take others away."""
        return self._change(thread_id, {"tag": checked_tags(tags), "untag": checked_tags(remove)})

    async def atag(self, thread_id: ThreadId, *tags: str, remove: Iterable[str] = ()) -> ThreadInfo:
        """Async twin of `tag`."""
        return await self._achange(thread_id, {"tag": checked_tags(tags), "untag": checked_tags(remove)})

    def note(self, thread_id: ThreadId, metadata: Mapping[str, Any]) -> ThreadInfo:
        """Note something on a thread: what JSON can say, by name. A value of None takes its name away; other names stay as they are."""
        return self._change(thread_id, {"metadata": checked_metadata(metadata)})

    async def anote(self, thread_id: ThreadId, metadata: Mapping[str, Any]) -> ThreadInfo:
        """Async twin of `note`."""
        return await self._achange(thread_id, {"metadata": checked_metadata(metadata)})

    def archive(self, thread_id: ThreadId) -> ThreadInfo:
        """Put a thread away: lists leave it out unless they are asked for it. It can be continued as before."""
        return self._change(thread_id, {"status": "archived"})

    async def aarchive(self, thread_id: ThreadId) -> ThreadInfo:
        """Async twin of `archive`."""
        return await self._achange(thread_id, {"status": "archived"})

    def unarchive(self, thread_id: ThreadId) -> ThreadInfo:
        """Take an archived thread back into the lists."""
        return self._change(thread_id, {"status": "active"})

    async def aunarchive(self, thread_id: ThreadId) -> ThreadInfo:
        """Async twin of `unarchive`."""
        return await self._achange(thread_id, {"status": "active"})

    def _change(self, thread_id: ThreadId, changes: Mapping[str, Any]) -> ThreadInfo:
        return self.log.run(listing_ops.describe_thread(self._key(thread_id), changes, indexes=self.log.indexes), write=True)

    async def _achange(self, thread_id: ThreadId, changes: Mapping[str, Any]) -> ThreadInfo:
        return await self.log.arun(listing_ops.describe_thread(self._key(thread_id), changes, indexes=self.log.indexes), write=True)

    # -- deleting ------------------------------------------------------------------------------------------------------------------------

    def delete(self, *thread_ids: ThreadId) -> Pruned:
        """Delete threads with everything that they have, each in a transaction of its own; those that are not there are passed over.

        The file gets smaller, and what it held is overwritten, by `MessageLog.compact`.
        """
        total = Pruned()
        for key in [self._key(thread_id) for thread_id in thread_ids]:
            total += self.log.run(forget_ops.drop_thread(key, indexes=self.log.indexes, dry_run=False), write=True)
        return total

    async def adelete(self, *thread_ids: ThreadId) -> Pruned:
        """Async twin of `delete`."""
        total = Pruned()
        for key in [self._key(thread_id) for thread_id in thread_ids]:
            total += await self.log.arun(forget_ops.drop_thread(key, indexes=self.log.indexes, dry_run=False), write=True)
        return total

    # -- parts ---------------------------------------------------------------------------------------------------------------------------

    def _list(self, limit: int, after: ThreadInfo | None, wanted: Wanted) -> Operation[Page]:
        if after is not None and not isinstance(after, ThreadInfo):
            raise InvalidInput(f"after is the last thread of the page before, not {type(after).__name__}")
        return listing_ops.list_threads(plan_filter(wanted, self.owner), after, checked_limit(limit, "threads a page has"))

    def _live(self, thread_id: ThreadId) -> Operation[ThreadInfo]:
        return listing_ops.read_thread(self._key(thread_id))

    def _key(self, thread_id: ThreadId) -> ThreadKey:
        return ThreadKey(thread_key(thread_id), self.owner)
