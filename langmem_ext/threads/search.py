"""The search of `Threads`: messages, in one thread or in all.

The index is made by the first search: a database that nobody searches has none, and pays nothing.
"""

from __future__ import annotations

import warnings
from datetime import datetime
from typing import Any, Final

from langmem_ext.errors import InvalidInput, SearchUnavailable, StorageUnavailable
from langmem_ext.log.codec import ForeignCodec
from langmem_ext.log.message_log import bound_owner, thread_key
from langmem_ext.messages.search.query import plan_query
from langmem_ext.storage.driver import Running, Steps
from langmem_ext.storage.rows.clock import unix_ms
from langmem_ext.storage.search import catch_up as fill_ops
from langmem_ext.storage.search import find as find_ops
from langmem_ext.storage.search import index as search_ops
from langmem_ext.storage.search.find import Found, Search
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
        """Find messages that contain all words of a text, best match first.

        The last word may be a prefix; words in double quotes are a phrase. Case and diacritics are
        ignored. In scripts without spaces, any part of a sentence is found. Sensitive values are
        never indexed.

        The first search of a database builds its index, which takes a while for many messages;
        writers continue meanwhile. From then on it is updated with every message. A user's message
        stored by a graph is found once it is answered, or the graph has finished. Expired threads
        are searched until they are deleted.

        Args:
            text: The text to search for; it has no operators.
            owner: Only messages of this owner, if these threads are not bound to one.
            thread: Only in this thread.
            role: Only `human`, `ai`, `system` or `tool` messages.
            since: Only messages stored at this time or later; with a time zone.
            limit: The maximum number.

        Raises:
            InvalidInput: An argument is invalid.
            ThreadNotFound: The thread does not exist, or belongs to another owner.
            SearchUnavailable: The saver's serializer hides the messages, the database has no index
                and can only be read, SQLite has no FTS5, or PostgreSQL lets only another role make
                the index.
        """
        return Running(
            self.log.driver, self._search(text, owner, thread, role, since, limit)
        ).finish()

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
        return await Running(
            self.log.driver, self._search(text, owner, thread, role, since, limit)
        ).afinish()

    def enable_search(self) -> None:
        """Build the index now, or continue building it, in short steps between which others write.

        Raises:
            SearchUnavailable: The saver's serializer hides the messages, SQLite has no FTS5, or
                PostgreSQL lets only another role make it.
            StorageUnavailable: The database can only be read.
        """
        Running(self.log.driver, self._build()).finish()

    async def aenable_search(self) -> None:
        """Async twin of `enable_search`."""
        await Running(self.log.driver, self._build()).afinish()

    def rebuild_search(self) -> None:
        """Rebuild the index, in short steps between which others write.

        If it is interrupted, the next search completes it.
        """
        Running(self.log.driver, self._rebuild()).finish()

    async def arebuild_search(self) -> None:
        """Async twin of `rebuild_search`."""
        await Running(self.log.driver, self._rebuild()).afinish()

    # -- steps -------------------------------------------------------------------------------------

    def _search(
        self,
        text: str,
        owner: str | None,
        thread: ThreadId | None,
        role: str | None,
        since: datetime | None,
        limit: int,
    ) -> Steps[list[SearchHit]]:
        search = plan_search(text, self.owner, owner, thread, role, since, limit)
        self._require_shown()
        if not search.terms:
            return []
        result: Found | None = yield find_ops.find_messages(search, self._codec), False
        if result is None or not result.complete:
            try:
                yield from self._fill()
            except StorageUnavailable as error:
                if result is None:
                    raise SearchUnavailable(
                        "the database has no search index, and none can be created here: search"
                        f" once with write access ({error})"
                    ) from error
                warnings.warn(
                    "the search index is incomplete: some threads were not searched", stacklevel=2
                )
            else:
                result = yield find_ops.find_messages(search, self._codec), False
        return result.hits if result is not None else []

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
            self.log.caches.forget()  # the threads' rows now say that they are in the index

    def _require_shown(self) -> None:
        if isinstance(self._codec, ForeignCodec):
            raise SearchUnavailable(
                "the saver has a custom serializer, which may encrypt, so its messages are not"
                " indexed: there is nothing to search"
            )


def plan_search(
    text: Any,
    bound: str | None,
    owner: Any,
    thread: ThreadId | None,
    role: Any,
    since: Any,
    limit: Any,
) -> Search:
    """A caller's search, checked.

    Args:
        text: The text to search for.
        bound: The owner whose messages the caller may see; None for everybody's.
        owner: Only messages of this owner.
        thread: Only messages in this thread.
        role: Only messages of this role.
        since: Only messages from this time on.
        limit: The maximum number.

    Raises:
        InvalidInput: An argument is invalid.
    """
    if not isinstance(text, str):
        raise InvalidInput(f"the search text must be a string, not {type(text).__name__}")
    asked = bound_owner(None, owner)
    if bound is not None and asked is not None and asked != bound:
        raise InvalidInput("this object is bound to another owner: omit `owner`")
    if role is not None and role not in find_ops.ROLES:
        raise InvalidInput(f"role must be one of {', '.join(find_ops.ROLES)}, not {role!r}")
    if since is not None and (not isinstance(since, datetime) or since.tzinfo is None):
        raise InvalidInput(f"since must be a datetime with a time zone, not {since!r}")
    return Search(
        terms=plan_query(text),
        owner=bound or asked,
        thread=None if thread is None else thread_key(thread),
        role=role,
        since=None if since is None else -(-unix_ms(since) // 1000),
        limit=checked_limit(limit, "messages are returned"),
    )
