"""Threads by their rows: listed, counted, named, archived, deleted, without reading messages.

A thread's row holds what a list shows. So a caller that only lists threads, like the command line,
needs no message class and no graph.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, Unpack, get_args
from uuid import UUID, uuid4

from langmem_ext.errors import InvalidInput, ThreadExists
from langmem_ext.log.closing import Closing
from langmem_ext.log.message_log import owner_key, thread_key
from langmem_ext.log.shown import ReprFacts
from langmem_ext.storage.operation import Operation
from langmem_ext.storage.prune import prune as forget_ops
from langmem_ext.storage.rows.clock import now_ms
from langmem_ext.storage.threads import list as listing_ops
from langmem_ext.storage.threads.list import count_all
from langmem_ext.threads.validation import (
    Wanted,
    checked_limit,
    checked_metadata,
    checked_tags,
    checked_title,
    plan_filter,
)
from langmem_ext.types import Pruned, ThreadInfo, ThreadKey, ThreadStatistics

if TYPE_CHECKING:
    from langmem_ext.log.message_log import MessageLog

ThreadId: TypeAlias = str | int | UUID
Page: TypeAlias = list[ThreadInfo]
Rank: TypeAlias = Literal["stored_messages", "tokens"]
"""What threads may be sorted by, besides the time of their last use."""

PAGE: Final = 50
"""Threads of a page."""


class ThreadRows(Closing):
    """The part of `Threads` that needs their rows alone.

    Args:
        log: The database; it stays open.
        owner: Only this owner's threads are seen; None for everybody's.
    """

    def __init__(self, log: MessageLog, owner: str | None = None) -> None:
        self.log = log
        self.owner = owner
        self._opened = False

    def _repr_facts(self) -> ReprFacts:
        return ReprFacts(self.log.driver, self.owner)

    # -- finding -----------------------------------------------------------------------------------

    def get(self, thread_id: ThreadId) -> ThreadInfo:
        """One thread.

        Raises:
            ThreadNotFound: The thread does not exist, or belongs to another owner.
            ThreadExpired: It has expired; until the next sweep, lists still show it.
            DamagedRow: Its row is damaged; lists skip it.
        """
        return self.log.run(self._live(thread_id), write=False)

    async def aget(self, thread_id: ThreadId) -> ThreadInfo:
        """Async twin of `get`."""
        return await self.log.arun(self._live(thread_id), write=False)

    def list(
        self, *, limit: int = PAGE, after: ThreadInfo | None = None, **wanted: Unpack[Wanted]
    ) -> Page:
        """A page of threads, most recently written first.

        Expired threads are listed until they are deleted.

        Args:
            limit: The maximum number.
            after: The last thread of the previous page.
            wanted: Which (`Wanted`).

        Raises:
            InvalidInput: An argument is invalid.
        """
        return self.log.run(self._list(limit, after, wanted), write=False)

    async def alist(
        self, *, limit: int = PAGE, after: ThreadInfo | None = None, **wanted: Unpack[Wanted]
    ) -> Page:
        """Async twin of `list`."""
        return await self.log.arun(self._list(limit, after, wanted), write=False)

    def largest(
        self,
        by: Rank,
        *,
        limit: int = PAGE,
        after: ThreadInfo | None = None,
        **wanted: Unpack[Wanted],
    ) -> Page:
        """A page of threads, largest first: by stored messages, or by tokens.

        Args:
            by: `stored_messages` or `tokens`.
            limit: The maximum number.
            after: The last thread of the previous page.
            wanted: Which (`Wanted`).

        Raises:
            InvalidInput: An argument is invalid.
        """
        return self.log.run(self._largest(by, limit, after, wanted), write=False)

    async def alargest(
        self,
        by: Rank,
        *,
        limit: int = PAGE,
        after: ThreadInfo | None = None,
        **wanted: Unpack[Wanted],
    ) -> Page:
        """Async twin of `largest`."""
        return await self.log.arun(self._largest(by, limit, after, wanted), write=False)

    def each(self, **wanted: Unpack[Wanted]) -> Iterator[ThreadInfo]:
        """All matching threads, read in pages.

        No lock is held in between, so threads written to meanwhile may be missed.
        """
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
        """The number of matching threads."""
        return self.log.run(listing_ops.count_threads(plan_filter(wanted, self.owner)), write=False)

    async def acount(self, **wanted: Unpack[Wanted]) -> int:
        """Async twin of `count`."""
        return await self.log.arun(
            listing_ops.count_threads(plan_filter(wanted, self.owner)), write=False
        )

    def stats(self) -> ThreadStatistics:
        """Count threads by status and tool, and their contents, without decoding a message."""
        return self.log.run(count_all(self.owner), write=False)

    async def astats(self) -> ThreadStatistics:
        """Async twin of `stats`."""
        return await self.log.arun(count_all(self.owner), write=False)

    # -- making ------------------------------------------------------------------------------------

    def create(
        self,
        thread_id: ThreadId | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        exist_ok: bool = False,
    ) -> ThreadInfo:
        """Create an empty thread; without this, its first message creates it.

        Args:
            thread_id: Its id. Default: a new one.
            metadata: Its metadata (see `note`).
            exist_ok: Whether to return an existing thread, unchanged.

        Raises:
            ThreadExists: The thread exists already.
            ThreadNotFound: The thread exists, and belongs to another owner.
            InvalidInput: An argument is invalid.
        """
        return _new(*self.log.run(self._create(thread_id, metadata), write=True), exist_ok=exist_ok)

    async def acreate(
        self,
        thread_id: ThreadId | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        exist_ok: bool = False,
    ) -> ThreadInfo:
        """Async twin of `create`."""
        return _new(
            *(await self.log.arun(self._create(thread_id, metadata), write=True)), exist_ok=exist_ok
        )

    def _create(
        self, thread_id: ThreadId | None, metadata: Mapping[str, Any] | None
    ) -> Operation[tuple[ThreadInfo, bool]]:
        key = self._key(uuid4() if thread_id is None else thread_id)
        noted = {
            name: value
            for name, value in checked_metadata(metadata or {}).items()
            if value is not None
        }
        return listing_ops.create_thread(key, noted, now=now_ms(), caches=self.log.caches)

    # -- naming ------------------------------------------------------------------------------------

    def rename(self, thread_id: ThreadId, title: str) -> ThreadInfo:
        """Rename a thread; after an empty title, its next message sets a title again."""
        return self._change(thread_id, {"title": checked_title(title)})

    async def arename(self, thread_id: ThreadId, title: str) -> ThreadInfo:
        """Async twin of `rename`."""
        return await self._achange(thread_id, {"title": checked_title(title)})

    def tag(self, thread_id: ThreadId, *tags: str, remove: Iterable[str] = ()) -> ThreadInfo:
        """Add tags to a thread, and remove others."""
        return self._change(thread_id, {"tag": checked_tags(tags), "untag": checked_tags(remove)})

    async def atag(self, thread_id: ThreadId, *tags: str, remove: Iterable[str] = ()) -> ThreadInfo:
        """Async twin of `tag`."""
        return await self._achange(
            thread_id, {"tag": checked_tags(tags), "untag": checked_tags(remove)}
        )

    def note(self, thread_id: ThreadId, metadata: Mapping[str, Any]) -> ThreadInfo:
        """Set metadata of a thread: JSON values by name.

        None removes a name; other names stay as they are.
        """
        return self._change(thread_id, {"metadata": checked_metadata(metadata)})

    async def anote(self, thread_id: ThreadId, metadata: Mapping[str, Any]) -> ThreadInfo:
        """Async twin of `note`."""
        return await self._achange(thread_id, {"metadata": checked_metadata(metadata)})

    def archive(self, thread_id: ThreadId) -> ThreadInfo:
        """Archive a thread: lists leave it out by default. It can be continued as before."""
        return self._change(thread_id, {"status": "archived"})

    async def aarchive(self, thread_id: ThreadId) -> ThreadInfo:
        """Async twin of `archive`."""
        return await self._achange(thread_id, {"status": "archived"})

    def unarchive(self, thread_id: ThreadId) -> ThreadInfo:
        """Undo `archive`: lists show the thread again."""
        return self._change(thread_id, {"status": "active"})

    async def aunarchive(self, thread_id: ThreadId) -> ThreadInfo:
        """Async twin of `unarchive`."""
        return await self._achange(thread_id, {"status": "active"})

    def give(self, thread_id: ThreadId, owner: str) -> ThreadInfo:
        """Give a thread to another owner, with everything it has; the one before sees it no more.

        Its memory, and the facts that stand on it alone, are deleted: they are the former owner's,
        and are written again for the new one. A run of the former owner that is under way can store
        nothing more. Copies of the thread stay where they are.

        Raises:
            ThreadNotFound: The thread does not exist, or belongs to another owner.
            InvalidInput: The owner is not a name.
        """
        return self.log.run(self._give(thread_id, owner), write=True)

    async def agive(self, thread_id: ThreadId, owner: str) -> ThreadInfo:
        """Async twin of `give`."""
        return await self.log.arun(self._give(thread_id, owner), write=True)

    def _give(self, thread_id: ThreadId, owner: str) -> Operation[ThreadInfo]:
        if (name := owner_key(owner)) is None:
            raise InvalidInput("owner must be a name, not None: a thread is given to somebody")
        return forget_ops.give_thread(self._key(thread_id), name, caches=self.log.caches)

    def _change(self, thread_id: ThreadId, changes: Mapping[str, Any]) -> ThreadInfo:
        return self.log.run(
            listing_ops.describe_thread(self._key(thread_id), changes, caches=self.log.caches),
            write=True,
        )

    async def _achange(self, thread_id: ThreadId, changes: Mapping[str, Any]) -> ThreadInfo:
        return await self.log.arun(
            listing_ops.describe_thread(self._key(thread_id), changes, caches=self.log.caches),
            write=True,
        )

    # -- deleting ----------------------------------------------------------------------------------

    def delete(self, *thread_ids: ThreadId) -> Pruned:
        """Delete threads and all their data, each in its own transaction; missing ones are skipped.

        `MessageLog.compact` shrinks the file, and overwrites deleted data.
        """
        total = Pruned()
        for key in [self._key(thread_id) for thread_id in thread_ids]:
            total += self.log.run(
                forget_ops.drop_thread(key, caches=self.log.caches, dry_run=False), write=True
            )
        return total

    async def adelete(self, *thread_ids: ThreadId) -> Pruned:
        """Async twin of `delete`."""
        total = Pruned()
        for key in [self._key(thread_id) for thread_id in thread_ids]:
            total += await self.log.arun(
                forget_ops.drop_thread(key, caches=self.log.caches, dry_run=False), write=True
            )
        return total

    # -- parts -------------------------------------------------------------------------------------

    def _list(self, limit: int, after: ThreadInfo | None, wanted: Wanted) -> Operation[Page]:
        _require_thread(after)
        return listing_ops.list_threads(
            plan_filter(wanted, self.owner), after, checked_limit(limit, "threads per page")
        )

    def _largest(
        self, by: Rank, limit: int, after: ThreadInfo | None, wanted: Wanted
    ) -> Operation[Page]:
        _require_thread(after)
        if by not in get_args(Rank):
            raise InvalidInput(
                f"threads are ranked by one of {', '.join(get_args(Rank))}, not by {by!r}"
            )
        return listing_ops.rank_threads(
            plan_filter(wanted, self.owner), by, after, checked_limit(limit, "threads per page")
        )

    def _live(self, thread_id: ThreadId) -> Operation[ThreadInfo]:
        return listing_ops.read_thread(self._key(thread_id))

    def _key(self, thread_id: ThreadId) -> ThreadKey:
        return ThreadKey(thread_key(thread_id), self.owner)


def _require_thread(after: object) -> None:
    if after is not None and not isinstance(after, ThreadInfo):
        raise InvalidInput(
            f"after must be the last ThreadInfo of the previous page, not {type(after).__name__}"
        )


def _new(thread: ThreadInfo, made: bool, *, exist_ok: bool) -> ThreadInfo:
    if not made and not exist_ok:
        raise ThreadExists(thread.id)
    return thread
