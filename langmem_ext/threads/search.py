"""The half of `Threads` that searches: what has been said, in one thread or in all.

The index is made when it is first asked for: a database that nobody searches has none, and pays nothing.
"""

from __future__ import annotations

import warnings
from datetime import datetime
from typing import Any, Final

from langmem_ext.codec import ForeignCodec
from langmem_ext.errors import InvalidInput, SearchUnavailable, StorageUnavailable
from langmem_ext.log import bound_owner, thread_key
from langmem_ext.messages.query import plan_query
from langmem_ext.storage import fill_ops, find_ops, search_ops
from langmem_ext.storage.clock import unix_ms
from langmem_ext.storage.find_ops import Found, Search
from langmem_ext.storage.steps import Running, Steps
from langmem_ext.threads.lifetime import LimitedThreads
from langmem_ext.threads.rows import ThreadId
from langmem_ext.threads.validation import checked_limit
from langmem_ext.types import SearchHit

LIMIT: Final = 20
"""Messages that a search gives."""


class SearchedThreads(LimitedThreads):
    """Threads whose messages can be searched."""

    def search(
        self,
        text: str,
        *,
        owner: str | None = None,
        thread: ThreadId | None = None,
        role: str | None = None,
        since: datetime | None = None,
        limit: int = LIMIT,
    ) -> list[SearchHit]:
        """Find messages that have all words of a text, the best first.

        The last word may be the beginning of one; words in double quotes must stand next to each other. Case and diacritics do not count.
        Of scripts without spaces, any part of a sentence is found. Sensitive values are not: they are in no index.

        The first search of a database makes its index, which takes a while where there is much; writers get on meanwhile. From then on it
        is kept with every message. A user's message that a graph has stored is found once it is answered, or the graph is done. Threads
        that have expired are searched until they are deleted.

        Args:
            text: What to look for; any text, none of it is a command.
            owner: Whose messages, for who is bound to no owner.
            thread: In this thread only.
            role: Only of `human`, `ai`, `system` or `tool`.
            since: Only what was stored then or later; with its time zone.
            limit: At most so many.

        Raises:
            InvalidInput: An argument cannot be used.
            ThreadNotFound: There is no such thread, or it is another owner's.
            SearchUnavailable: The saver's serializer hides the messages, the database has no index and can only be read, SQLite has no
                FTS5, or PostgreSQL lets only another role make the index.
        """
        return Running(self.log.driver, self._search(text, owner, thread, role, since, limit)).finish()

    async def asearch(
        self,
        text: str,
        *,
        owner: str | None = None,
        thread: ThreadId | None = None,
        role: str | None = None,
        since: datetime | None = None,
        limit: int = LIMIT,
    ) -> list[SearchHit]:
        """Async twin of `search`."""
        return await Running(self.log.driver, self._search(text, owner, thread, role, since, limit)).afinish()

    def enable_search(self) -> None:
        """Make the index now, or go on with making it, in short steps that let writers on.

        Raises:
            SearchUnavailable: The saver's serializer hides the messages, SQLite has no FTS5, or PostgreSQL lets only another role make it.
            StorageUnavailable: The database can only be read.
        """
        Running(self.log.driver, self._build()).finish()

    async def aenable_search(self) -> None:
        """Async twin of `enable_search`."""
        await Running(self.log.driver, self._build()).afinish()

    def rebuild_search(self) -> None:
        """Make the index anew, in short steps that let writers on; killed on the way, it is completed by the next search."""
        Running(self.log.driver, self._rebuild()).finish()

    async def arebuild_search(self) -> None:
        """Async twin of `rebuild_search`."""
        await Running(self.log.driver, self._rebuild()).afinish()

    # -- steps ---------------------------------------------------------------------------------------------------------------------------

    def _search(
        self, text: str, owner: str | None, thread: ThreadId | None, role: str | None, since: datetime | None, limit: int
    ) -> Steps[list[SearchHit]]:
        search = plan_search(text, self.owner, owner, thread, role, since, limit)
        self._require_shown()
        if not search.terms:
            return []
        found: Found | None = yield find_ops.find_messages(search, self._codec), False
        if found is None or not found.complete:
            try:
                yield from self._fill()
            except StorageUnavailable as error:
                if found is None:
                    raise SearchUnavailable(
                        f"the database has no search index yet, and none can be made here: search it once where it can be written ({error})"
                    ) from error
                warnings.warn("the search index is not complete: some threads were not searched", stacklevel=2)
            else:
                found = yield find_ops.find_messages(search, self._codec), False
        return found.hits if found is not None else []

    def _build(self) -> Steps[None]:
        self._require_shown()
        yield from self._fill()

    def _rebuild(self) -> Steps[None]:
        self._require_shown()
        yield fill_ops.require_maker(), False
        yield search_ops.drop_index(), True
        yield from self._fill()

    def _fill(self) -> Steps[None]:
        try:
            yield from fill_ops.build_steps(self._codec)
        finally:
            self.log.indexes.forget()  # threads say now that they are in the index

    def _require_shown(self) -> None:
        if isinstance(self._codec, ForeignCodec):
            raise SearchUnavailable(
                "the saver has a serializer of the application's own, which may encrypt: no text of it is put into an index, so there is"
                " nothing to search"
            )


def plan_search(text: Any, bound: str | None, owner: Any, thread: ThreadId | None, role: Any, since: Any, limit: Any) -> Search:
    """What a caller looks for, checked.

    Args:
        text: What is looked for.
        bound: Whose messages are there for the caller; None: everybody's.
        owner: Whose messages are asked for.
        thread: In which thread.
        role: Of which role.
        since: From when on.
        limit: How many at most.

    Raises:
        InvalidInput: It cannot be looked for.
    """
    if not isinstance(text, str):
        raise InvalidInput(f"a search is for a text, not {type(text).__name__}")
    asked = bound_owner(None, owner)
    if bound is not None and asked is not None and asked != bound:
        raise InvalidInput("these threads are bound to another owner: ask without one")
    if role is not None and role not in find_ops.ROLES:
        raise InvalidInput(f"role is one of {', '.join(find_ops.ROLES)}, not {role!r}")
    if since is not None and (not isinstance(since, datetime) or since.tzinfo is None):
        raise InvalidInput(f"since is a datetime with its time zone, not {since!r}")
    return Search(
        terms=plan_query(text),
        owner=bound or asked,
        thread=None if thread is None else thread_key(thread),
        role=role,
        since=None if since is None else -(-unix_ms(since) // 1000),
        limit=checked_limit(limit, "messages are given"),
    )
