"""`Threads`: the conversations of a database, as people handle them: list, find, name, tag, put away, fork, delete.

A thread is made by its first message, whoever writes it: a graph on a `DeltaSaver`, a chat history, a session. Its row holds what a list
shows, and is written with the message that changes it, so no list opens a message.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict, Unpack
from uuid import UUID, uuid4

from langmem_ext.codec import MessageCodec
from langmem_ext.errors import InvalidInput
from langmem_ext.log import MessageLog, bound_owner, thread_key
from langmem_ext.meaning import CheckpointMeaning
from langmem_ext.serde import RestorePolicy
from langmem_ext.storage import forget_ops, listing_ops
from langmem_ext.storage.clock import now_ms, unix_ms
from langmem_ext.storage.effects import Op
from langmem_ext.storage.fork_ops import fork_thread
from langmem_ext.storage.listing_ops import ThreadFilter
from langmem_ext.types import Pruned, ThreadInfo, ThreadKey

if TYPE_CHECKING:
    from langmem_ext.checkpoint import DeltaSaver

ThreadId: TypeAlias = str | int | UUID
Page: TypeAlias = list[ThreadInfo]

PAGE: Final = 50
"""Threads of a page."""

LONGEST_TITLE: Final = 1000
"""Characters of a title that somebody gives."""

LONGEST_TAG: Final = 100
"""Characters of a tag."""

LARGEST_METADATA: Final = 64 * 1024
"""Bytes of a thread's metadata, as JSON."""


class Wanted(TypedDict, total=False):
    """Which threads are asked for. Without `status`, archived ones are left out."""

    owner: str
    """Whose, for who is bound to no owner."""
    status: str | None
    """`active`, `archived`, or None for both."""
    waiting_for: str | bool
    """Name of the parameter that they wait for; True: any; False: those that wait for none."""
    tool: str
    """The tool of their newest turn that names one."""
    tag: str
    """A tag that they have."""
    since: datetime
    """Last written then or later; with its time zone."""
    until: datetime
    """Last written before; with its time zone."""
    title: str
    """A part of their title; the case of ASCII letters does not count."""


class Threads:
    """The threads of a database; those of one owner, where one is named: another owner's are not there.

    Args:
        log: The database: a `MessageLog`, a `DeltaSaver` (whose serializer and owner are then used too) or a URL.
        owner: Bind to an owner.

    Example:
        `for thread in Threads("memory.db").list(limit=10): print(thread.updated_at, thread.title)`
    """

    def __init__(self, log: MessageLog | DeltaSaver | str, *, owner: str | None = None) -> None:
        self.log = MessageLog.of(log)
        self.owner = bound_owner(log, owner)
        self._codec: MessageCodec = getattr(log, "codec", None) or MessageCodec(RestorePolicy(), self.log.templates)

    # -- finding -------------------------------------------------------------------------------------------------------------------------

    def list(self, *, limit: int = PAGE, after: ThreadInfo | None = None, **wanted: Unpack[Wanted]) -> Page:
        """A page of threads, the one that was written last first.

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
        """All of them, read a page at a time: no lock is held while the caller works."""
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
        return self.log.run(listing_ops.count_threads(self._filter(wanted)), write=False)

    async def acount(self, **wanted: Unpack[Wanted]) -> int:
        """Async twin of `count`."""
        return await self.log.arun(listing_ops.count_threads(self._filter(wanted)), write=False)

    def get(self, thread_id: ThreadId) -> ThreadInfo:
        """One thread.

        Raises:
            ThreadNotFound: There is none of this id, or it is another owner's.
        """
        return self.log.run(listing_ops.read_info(self._key(thread_id)), write=False)

    async def aget(self, thread_id: ThreadId) -> ThreadInfo:
        """Async twin of `get`."""
        return await self.log.arun(listing_ops.read_info(self._key(thread_id)), write=False)

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
        return self.log.run(listing_ops.describe_thread(self._key(thread_id), changes), write=True)

    async def _achange(self, thread_id: ThreadId, changes: Mapping[str, Any]) -> ThreadInfo:
        return await self.log.arun(listing_ops.describe_thread(self._key(thread_id), changes), write=True)

    # -- copying and deleting ------------------------------------------------------------------------------------------------------------

    def fork(
        self, thread_id: ThreadId, *, checkpoint_id: str | None = None, message_id: str | None = None, to: ThreadId | None = None
    ) -> ThreadInfo:
        """Copy a thread, whole or up to a place in it; the two share nothing afterwards.

        Where the copy ends before the source does, what its last step was about to do is still to be done: a question that waited there is
        asked again, a prompt is answered again.

        Args:
            thread_id: The thread.
            checkpoint_id: The checkpoint that the copy ends with.
            message_id: Instead of it, the message that the copy's conversation ends with. Where it came in one step with later ones, these
                are in the copy too.
            to: The copy's id; a new one by default.

        Raises:
            ThreadNotFound: There is no such thread.
            InvalidInput: It has no such checkpoint or message, or there is a thread `to` already.
        """
        op, target = self._fork(thread_id, checkpoint_id, message_id, to)
        self.log.run(op, write=True)
        return self.get(target)

    async def afork(
        self, thread_id: ThreadId, *, checkpoint_id: str | None = None, message_id: str | None = None, to: ThreadId | None = None
    ) -> ThreadInfo:
        """Async twin of `fork`."""
        op, target = self._fork(thread_id, checkpoint_id, message_id, to)
        await self.log.arun(op, write=True)
        return await self.aget(target)

    def _fork(self, thread_id: ThreadId, checkpoint_id: str | None, message_id: str | None, to: ThreadId | None) -> tuple[Op[None], str]:
        if checkpoint_id is not None and message_id is not None:
            raise InvalidInput("a fork ends at a checkpoint or at a message: name one of them")
        target = str(uuid4()) if to is None else thread_key(to)
        op = fork_thread(
            self._key(thread_id),
            target,
            checkpoint=checkpoint_id,
            message=message_id,
            now=now_ms(),
            meaning=CheckpointMeaning(self._codec),
            indexes=self.log.indexes,
        )
        return op, target

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

    def _key(self, thread_id: ThreadId) -> ThreadKey:
        return ThreadKey(thread_key(thread_id), self.owner)

    def _list(self, limit: int, after: ThreadInfo | None, wanted: Wanted) -> Op[Page]:
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise InvalidInput(f"limit is how many threads a page has, at least 1, not {limit!r}")
        return listing_ops.list_threads(self._filter(wanted), after, limit)

    def _filter(self, wanted: Wanted) -> ThreadFilter:
        return plan_filter(wanted, self.owner)


def plan_filter(wanted: Wanted, owner: str | None) -> ThreadFilter:
    """What a caller asks for.

    Args:
        wanted: In the caller's words.
        owner: Whose threads are there for the caller; None: everybody's.

    Raises:
        InvalidInput: It cannot be asked for.
    """
    if unknown := wanted.keys() - Wanted.__annotations__.keys():
        raise InvalidInput(f"threads cannot be listed by {sorted(unknown)[0]!r}: use one of {', '.join(sorted(Wanted.__annotations__))}")
    asked = bound_owner(None, wanted.get("owner"))
    if owner is not None and asked is not None and asked != owner:
        raise InvalidInput("these threads are bound to another owner: ask without one")
    status = wanted.get("status", "active")
    if status is not None and status not in listing_ops.STATUSES:
        raise InvalidInput(f"status is 'active', 'archived' or None for both, not {status!r}")
    waiting = wanted.get("waiting_for")
    title = wanted.get("title")
    return ThreadFilter(
        owner=owner or asked,
        status=status,
        waiting_for=waiting if isinstance(waiting, str) else None,
        waiting=True if waiting is True else None,
        resting=True if waiting is False else None,
        tool=wanted.get("tool"),
        tag=None if wanted.get("tag") is None else checked_tags([wanted["tag"]])[0],
        since=_moment(wanted.get("since"), "since"),
        until=_moment(wanted.get("until"), "until"),
        title=None if title is None else f"%{title.replace('!', '!!').replace('%', '!%').replace('_', '!_')}%",
    )


def _moment(moment: datetime | None, name: str) -> int | None:
    if moment is None:
        return None
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InvalidInput(f"{name} is a datetime with its time zone, not {moment!r}")
    return unix_ms(moment)


# -- what somebody says of a thread ------------------------------------------------------------------------------------------------------


def checked_title(title: str) -> str | None:
    """A title in one line; None for an empty one.

    Raises:
        InvalidInput: It is no text, or too long.
    """
    if not isinstance(title, str) or "\0" in title or len(title) > LONGEST_TITLE:
        raise InvalidInput(f"a title is a text of at most {LONGEST_TITLE} characters")
    return _stored(" ".join(title.split())) or None


def checked_tags(tags: Iterable[str]) -> list[str]:
    """Tags without the space around them.

    Raises:
        InvalidInput: One is no text, empty, too long, or has more than one line.
    """
    if isinstance(tags, str):
        raise InvalidInput("tags are several texts, not one: pass [tag]")
    checked = [tag.strip() if isinstance(tag, str) else "" for tag in tags]
    for tag in checked:
        if not tag or len(tag) > LONGEST_TAG or "\0" in tag or len(tag.splitlines()) > 1:
            raise InvalidInput(f"a tag is a text of 1 to {LONGEST_TAG} characters in one line")
    return [_stored(tag) for tag in checked]


def checked_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as JSON gives it back.

    Raises:
        InvalidInput: JSON cannot say it, or it is too large.
    """
    if not isinstance(metadata, Mapping) or not all(isinstance(name, str) for name in metadata):
        raise InvalidInput("metadata is a dict with names as keys")
    try:
        text = json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"metadata is what JSON can say: {error}") from error
    if len(text.encode("utf-8", "replace")) > LARGEST_METADATA or "\0" in text:
        raise InvalidInput(f"metadata takes at most {LARGEST_METADATA} bytes as JSON: keep more than that elsewhere")
    checked: dict[str, Any] = json.loads(_stored(text))
    return checked


def _stored(text: str) -> str:
    """A text as a column takes it: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode()
