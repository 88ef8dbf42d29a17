"""`Threads`: the conversations of a database: list, search, name, tag, archive, fork, delete.

A thread is created by its first message, from a graph on a `DeltaSaver`, a chat history, a session,
or anything else. Its row holds what a list shows, and is written with the message that changes it,
so a list reads no message.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TypeAlias, TypeVar, Unpack
from uuid import uuid4

from langchain_core.messages import BaseMessage

from langmem_ext._internal.stepping import aeach, afinish, finish
from langmem_ext.checkpointer.delta_channels import LangGraphFacts
from langmem_ext.checkpointer.values import MESSAGES_CHANNEL
from langmem_ext.errors import InvalidInput
from langmem_ext.log.message_log import thread_key
from langmem_ext.storage.operation import Operation
from langmem_ext.storage.prune.clear import clear_view
from langmem_ext.storage.rows.clock import now_ms
from langmem_ext.storage.rows.ids import new_generation
from langmem_ext.storage.threads.copy import Copy
from langmem_ext.storage.threads.fork import fork_thread
from langmem_ext.storage.threads.history import read_conversation, read_dated_conversation
from langmem_ext.threads.export.files import Place
from langmem_ext.threads.export.reader import MAX_BYTES, MAX_LINE, Import
from langmem_ext.threads.export.writer import FORMATS, Export, Format, Selection
from langmem_ext.threads.rows import ThreadId
from langmem_ext.threads.search import SearchedThreads
from langmem_ext.threads.validation import Wanted, plan_filter
from langmem_ext.types import ExportedThreads, ImportedThreads, PackedValue, Snapshot, ThreadInfo

Messages: TypeAlias = list[BaseMessage]
Dated: TypeAlias = list[tuple[BaseMessage, datetime]]
T = TypeVar("T")


class Threads(SearchedThreads):
    """The threads of a database, or of one owner: the threads of other owners are not found.

    Args:
        log: The database: a `MessageLog`, a `DeltaSaver` (whose serializer and owner are then used
            too), a path (a `str` or a `pathlib.Path`) or a URL.
        owner: Bind to an owner.
        ttl: A thread expires this long (a `timedelta`, or seconds) after its last write; 0 or None
            for never.
        tool_ttl: The same for tool threads; 0 or None for `ttl`.
        max_turns: How many of the newest turns of a thread are shown; 0 or None for all.
        on_limit: `trim`: a thread may have more turns than are shown; its log keeps them. `error`:
            the next turn is refused.
        on_damage: What continuing a damaged thread does. `raise`: raise `DamagedRow`, which names
            the row. `skip`: warn once, and continue without its memory.
        telemetry: Sinks for the event `expired`: how many threads a sweep deleted.

    Raises:
        InvalidInput: A limit is invalid.

    Example:
        `for thread in Threads("memory.db").list(limit=10): print(thread.updated_at, thread.title)`
    """

    # -- reading -----------------------------------------------------------------------------------

    def messages(self, thread_id: ThreadId, *, last: int | None = None) -> Messages:
        """The messages of a thread as its newest checkpoint has them, oldest first; copies.

        Args:
            thread_id: The thread; an expired one can be read until it is deleted. Of a graph with
                several lists of messages, the longest is used.
            last: Read only this many of the last messages.

        Raises:
            ThreadNotFound: The thread does not exist.
            InvalidInput: Its graph keeps its messages in a `DeltaChannel`: only the graph can read
                them.
        """
        return self._load(
            thread_id, self.log.run(self._messages(thread_id, last, read_conversation), write=False)
        )

    async def amessages(self, thread_id: ThreadId, *, last: int | None = None) -> Messages:
        """Async twin of `messages`."""
        return await self.log.driver.acall(lambda: self.messages(thread_id, last=last))

    def dated_messages(self, thread_id: ThreadId, *, last: int | None = None) -> Dated:
        """`messages`, each with the time at which it was stored, to the second, in UTC."""
        dated = self.log.run(self._messages(thread_id, last, read_dated_conversation), write=False)
        times = [datetime.fromtimestamp(seconds, UTC) for _, seconds in dated]
        return [*zip(self._load(thread_id, [packed for packed, _ in dated]), times, strict=True)]

    async def adated_messages(self, thread_id: ThreadId, *, last: int | None = None) -> Dated:
        """Async twin of `dated_messages`."""
        return await self.log.driver.acall(lambda: self.dated_messages(thread_id, last=last))

    def _messages(
        self, thread_id: ThreadId, last: int | None, read: Callable[..., Operation[T]]
    ) -> Operation[T]:
        if last is not None and (isinstance(last, bool) or not isinstance(last, int) or last < 1):
            raise InvalidInput(f"last must be at least 1, not {last!r}")
        return read(self._view.key(thread_id), last, caches=self.log.caches, codec=self._codec)

    def _load(self, thread_id: ThreadId, packed: Sequence[Snapshot]) -> Messages:
        loaded: Messages = self._view.load(PackedValue(messages=packed), thread_id)
        return loaded

    # -- clearing ----------------------------------------------------------------------------------

    def clear(self, thread_id: ThreadId) -> int:
        """Start a thread's conversation over; its messages stay in the log.

        Returns how many messages were cleared.

        The context of a model is empty from now on: messages, and the running summary. A pending
        question and parameters stay. The log keeps everything, and the thread refers to the cleared
        messages, so that pruning never deletes them.

        Args:
            thread_id: The thread, with its messages in the channel `messages`.

        Raises:
            ThreadNotFound: The thread does not exist.
            InvalidInput: Its graph keeps its messages in a `DeltaChannel`: only the graph can
                change them.
        """
        return self.log.run(self._clear(thread_id), write=True)

    async def aclear(self, thread_id: ThreadId) -> int:
        """Async twin of `clear`."""
        return await self.log.arun(self._clear(thread_id), write=True)

    def _clear(self, thread_id: ThreadId) -> Operation[int]:
        view, emptied = self._view, {"summary": self._codec.pack_value(None)}
        return clear_view(
            view.key(thread_id),
            MESSAGES_CHANNEL,
            emptied,
            view.new_edit(),
            view.new_edit(),
            **view.tools,
        )

    # -- copying -----------------------------------------------------------------------------------

    def fork(
        self,
        thread_id: ThreadId,
        *,
        checkpoint_id: str | None = None,
        message_id: str | None = None,
        to: ThreadId | None = None,
    ) -> ThreadInfo:
        """Copy a thread, whole or up to a checkpoint or message; the two share nothing afterwards.

        If the copy ends before the source, its last step is still pending: a question is asked
        again, a prompt is answered again.

        Args:
            thread_id: The thread; the copy of an expired one has not expired.
            checkpoint_id: The last checkpoint of the copy.
            message_id: Instead of it, the last message of the copy. Later messages of the same step
                are in the copy, too.
            to: The id of the copy. Default: a new id.

        Raises:
            ThreadNotFound: The thread does not exist.
            InvalidInput: It has no such checkpoint or message, or the thread `to` exists already.
        """
        op, target = self._fork(thread_id, checkpoint_id, message_id, to)
        self.log.run(op, write=True)
        return self.get(target)

    async def afork(
        self,
        thread_id: ThreadId,
        *,
        checkpoint_id: str | None = None,
        message_id: str | None = None,
        to: ThreadId | None = None,
    ) -> ThreadInfo:
        """Async twin of `fork`."""
        op, target = self._fork(thread_id, checkpoint_id, message_id, to)
        await self.log.arun(op, write=True)
        return await self.aget(target)

    def _fork(
        self,
        thread_id: ThreadId,
        checkpoint_id: str | None,
        message_id: str | None,
        to: ThreadId | None,
    ) -> tuple[Operation[None], str]:
        if checkpoint_id is not None and message_id is not None:
            raise InvalidInput("pass either checkpoint_id or message_id, not both")
        for name, place in (("checkpoint_id", checkpoint_id), ("message_id", message_id)):
            if place is not None and not isinstance(place, str):
                raise InvalidInput(f"{name} must be a string, not {place!r}")
        target = str(uuid4()) if to is None else thread_key(to)
        op = fork_thread(
            self._view.key(thread_id),
            Copy(target, new_generation()),
            checkpoint=checkpoint_id,
            message=message_id,
            now=now_ms(),
            facts=LangGraphFacts(self._codec),
            caches=self.log.caches,
        )
        return op, target

    # -- exporting and importing -------------------------------------------------------------------

    def export_to(
        self,
        target: Place,
        *thread_ids: ThreadId,
        format: Format = "jsonl",
        include_sensitive: bool = False,
        **wanted: Unpack[Wanted],
    ) -> ExportedThreads:
        """Export threads as JSON lines, for `import_from`, or as Markdown for people.

        Each thread is exported in its state at one moment. A path or a URL gets the whole export,
        or keeps its content.

        Args:
            target: A path, a URL that fsspec supports (extra `fsspec`), `-` for stdout, or an open
                file; the suffix `.gz` compresses.
            thread_ids: The threads. Default: all that match `wanted`.
            format: `jsonl` or `markdown`.
            include_sensitive: Show sensitive values in Markdown. JSON lines always contain them.
            wanted: Which threads (`Wanted`), including archived ones unless a status is given.

        Raises:
            ThreadNotFound: A thread does not exist.
            InvalidInput: The target is not writable, or an argument is invalid.
            DamagedRow: A thread has a damaged row.
            MissingExtra: The target is a URL, and fsspec is not installed.
        """
        return finish(self._export(thread_ids, format, include_sensitive, wanted).steps(target))

    async def aexport_to(
        self,
        target: Place,
        *thread_ids: ThreadId,
        format: Format = "jsonl",
        include_sensitive: bool = False,
        **wanted: Unpack[Wanted],
    ) -> ExportedThreads:
        """Async twin of `export_to`."""
        return await afinish(
            self._export(thread_ids, format, include_sensitive, wanted).steps(target)
        )

    def export_lines(
        self,
        *thread_ids: ThreadId,
        format: Format = "jsonl",
        include_sensitive: bool = False,
        **wanted: Unpack[Wanted],
    ) -> Iterator[str]:
        """The lines of `export_to`, with line ends, made on demand; no lock is held in between."""
        pages = self._export(thread_ids, format, include_sensitive, wanted).pages()
        return (line for page in pages for line in page)

    async def aexport_lines(
        self,
        *thread_ids: ThreadId,
        format: Format = "jsonl",
        include_sensitive: bool = False,
        **wanted: Unpack[Wanted],
    ) -> AsyncIterator[str]:
        """Async twin of `export_lines`."""
        async with aclosing(
            aeach(self._export(thread_ids, format, include_sensitive, wanted).pages())
        ) as pages:
            async for page in pages:
                for line in page:
                    yield line

    def import_from(
        self,
        source: Place,
        *,
        keep_ids: bool = False,
        keep_owners: bool = False,
        max_bytes: int = MAX_BYTES,
        max_line: int = MAX_LINE,
    ) -> ImportedThreads:
        """Import threads from the JSON lines of `export_to`.

        The whole file is checked before anything is stored, and no class that it names is built.
        Then each thread is stored in one transaction; an interrupted import has stored whole
        threads, and can be continued with `keep_ids`.

        Args:
            source: A path, a URL that fsspec supports (extra `fsspec`), `-` for stdin, or an open
                file.
            keep_ids: Keep the ids, and skip threads that exist already. Default: new ids.
            keep_owners: Keep the owners. Default: the owner that this is bound to, or none.
            max_bytes: The maximum size of the file, decompressed.
            max_line: The maximum length of a line in bytes.

        Raises:
            MalformedExport: The file is not an export, or exceeds a limit; nothing was imported.
            ThreadNotFound: With `keep_ids`, an id belongs to another owner; nothing was imported.
            InvalidInput: The source is not readable, or an argument is invalid.
            MissingExtra: The source is a URL, and fsspec is not installed.
        """
        return finish(self._import(source, keep_ids, keep_owners, max_bytes, max_line).steps())

    async def aimport_from(
        self,
        source: Place,
        *,
        keep_ids: bool = False,
        keep_owners: bool = False,
        max_bytes: int = MAX_BYTES,
        max_line: int = MAX_LINE,
    ) -> ImportedThreads:
        """Async twin of `import_from`."""
        return await afinish(
            self._import(source, keep_ids, keep_owners, max_bytes, max_line).steps()
        )

    def _export(
        self, thread_ids: Sequence[ThreadId], form: Format, include_sensitive: bool, wanted: Wanted
    ) -> Export:
        if form not in FORMATS:
            raise InvalidInput(f"format must be one of {', '.join(FORMATS)}, not {form!r}")
        if thread_ids and wanted:
            raise InvalidInput("pass either thread ids or filters, not both")
        ids = [thread_key(thread_id) for thread_id in thread_ids]
        which = Selection(
            self.owner, ids or None, plan_filter({"status": None, **wanted}, self.owner)
        )
        return Export(self.log, which, form, self._codec, include_sensitive=include_sensitive)

    def _import(
        self, source: Place, keep_ids: bool, keep_owners: bool, max_bytes: int, max_line: int
    ) -> Import:
        if keep_owners and self.owner is not None:
            raise InvalidInput(
                "this object is bound to an owner, who owns what is imported: omit keep_owners"
            )
        for name, limit in (("max_bytes", max_bytes), ("max_line", max_line)):
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
                raise InvalidInput(f"{name} must be a number of bytes, not {limit!r}")
        return Import(
            self.log,
            self.owner,
            self._codec,
            source,
            keep_ids=keep_ids,
            keep_owners=keep_owners,
            max_bytes=max_bytes,
            max_line=max_line,
        )
