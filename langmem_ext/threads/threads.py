"""`Threads`: the conversations of a database, as people handle them: list, search, name, tag, put away, fork, delete.

A thread is made by its first message, whoever writes it: a graph on a `DeltaSaver`, a chat history, a session. Its row holds what a list
shows, and is written with the message that changes it, so no list opens a message.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TypeAlias, TypeVar, Unpack
from uuid import uuid4

from langchain_core.messages import BaseMessage

from langmem_ext.errors import InvalidInput
from langmem_ext.log import thread_key
from langmem_ext.meaning import CheckpointMeaning
from langmem_ext.packing import MESSAGES_CHANNEL
from langmem_ext.stepping import aeach, afinish, finish
from langmem_ext.storage.clear_ops import clear_view
from langmem_ext.storage.clock import now_ms
from langmem_ext.storage.copy_ops import Copy
from langmem_ext.storage.effects import Operation
from langmem_ext.storage.fork_ops import fork_thread
from langmem_ext.storage.history_ops import read_conversation, read_dated_conversation
from langmem_ext.storage.ids import new_generation
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
    """The threads of a database; those of one owner, where one is named: another owner's are not there.

    Args:
        log: The database: a `MessageLog`, a `DeltaSaver` (whose serializer and owner are then used
            too), a path (a `str` or a `pathlib.Path`) or a URL.
        owner: Bind to an owner.
        ttl: A thread that was not written for so long (a `timedelta`, or seconds) has expired; 0 or None: never.
        tool_ttl: The same for tool threads; 0 or None: as `ttl` has it.
        max_turns: How many whole turns of a thread are shown, the newest; 0 or None: all.
        on_limit: `trim`: a thread may have more turns than are shown; its log keeps them. `error`: the turn after them is refused.
        on_damage: What reading a damaged thread for its continuation does. `raise`: a `DamagedRow` that names the row. `skip`: a warning,
            once, and it goes on without memory.
        telemetry: Sinks that are told how many threads a sweep has deleted (`expired`).

    Raises:
        InvalidInput: A limit cannot be used.

    Example:
        `for thread in Threads("memory.db").list(limit=10): print(thread.updated_at, thread.title)`
    """

    # -- reading -------------------------------------------------------------------------------------------------------------------------

    def messages(self, thread_id: ThreadId, *, last: int | None = None) -> Messages:
        """The messages of a thread as its newest checkpoint has them, oldest first; copies.

        Args:
            thread_id: The thread; one that has expired can be read until it is deleted. Of a graph with several lists of messages, the
                longest is meant.
            last: Only so many of the last; no others are read.

        Raises:
            ThreadNotFound: There is no such thread.
            InvalidInput: Its graph keeps its messages in a `DeltaChannel`: only the graph can read them.
        """
        return self._load(thread_id, self.log.run(self._messages(thread_id, last, read_conversation), write=False))

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

    def _messages(self, thread_id: ThreadId, last: int | None, read: Callable[..., Operation[T]]) -> Operation[T]:
        if last is not None and (isinstance(last, bool) or not isinstance(last, int) or last < 1):
            raise InvalidInput(f"last is how many messages to read, at least 1, not {last!r}")
        return read(self._source.key(thread_id), last, indexes=self.log.indexes, codec=self._codec)

    def _load(self, thread_id: ThreadId, packed: Sequence[Snapshot]) -> Messages:
        loaded: Messages = self._source.load(PackedValue(messages=packed), thread_id)
        return loaded

    # -- clearing ------------------------------------------------------------------------------------------------------------------------

    def clear(self, thread_id: ThreadId) -> int:
        """Begin a thread's conversation anew, and keep what was said; how many messages were set aside.

        What a model is shown of it is empty from now on: messages, and the running summary. A question that waits, and parameters, stay.
        The log holds all as before, and the thread refers to what was set aside, so that pruning never collects it.

        Args:
            thread_id: The thread, with its messages in the channel `messages`.

        Raises:
            ThreadNotFound: There is no such thread.
            InvalidInput: Its graph keeps its messages in a `DeltaChannel`: only the graph can change them.
        """
        return self.log.run(self._clear(thread_id), write=True)

    async def aclear(self, thread_id: ThreadId) -> int:
        """Async twin of `clear`."""
        return await self.log.arun(self._clear(thread_id), write=True)

    def _clear(self, thread_id: ThreadId) -> Operation[int]:
        source, emptied = self._source, {"summary": self._codec.pack_value(None)}
        return clear_view(source.key(thread_id), MESSAGES_CHANNEL, emptied, source.new_edit(), source.new_edit(), **source.tools)

    # -- copying -------------------------------------------------------------------------------------------------------------------------

    def fork(
        self, thread_id: ThreadId, *, checkpoint_id: str | None = None, message_id: str | None = None, to: ThreadId | None = None
    ) -> ThreadInfo:
        """Copy a thread, whole or up to a place in it; the two share nothing afterwards.

        Where the copy ends before the source does, what its last step was about to do is still to be done: a question that waited there is
        asked again, a prompt is answered again.

        Args:
            thread_id: The thread; of one that has expired the copy lives.
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

    def _fork(
        self, thread_id: ThreadId, checkpoint_id: str | None, message_id: str | None, to: ThreadId | None
    ) -> tuple[Operation[None], str]:
        if checkpoint_id is not None and message_id is not None:
            raise InvalidInput("a fork ends at a checkpoint or at a message: name one of them")
        for name, place in (("checkpoint_id", checkpoint_id), ("message_id", message_id)):
            if place is not None and not isinstance(place, str):
                raise InvalidInput(f"{name} is a text, not {place!r}")
        target = str(uuid4()) if to is None else thread_key(to)
        op = fork_thread(
            self._source.key(thread_id),
            Copy(target, new_generation()),
            checkpoint=checkpoint_id,
            message=message_id,
            now=now_ms(),
            meaning=CheckpointMeaning(self._codec),
            indexes=self.log.indexes,
        )
        return op, target

    # -- exporting and importing -----------------------------------------------------------------------------------------------------------

    def export_to(
        self, target: Place, *thread_ids: ThreadId, format: Format = "jsonl", include_sensitive: bool = False, **wanted: Unpack[Wanted]
    ) -> ExportedThreads:
        """Write threads to a file: as JSON lines, which `import_from` brings back whole, or as Markdown for people.

        A thread is exported as it stood at one moment. A path or a URL has all of the export, or what it had before.

        Args:
            target: A path, a URL that fsspec knows (extra `fsspec`), `-` for standard output, or an open file; `.gz` at its end compresses.
            thread_ids: The threads; all that are `wanted`, if none is named.
            format: `jsonl` or `markdown`.
            include_sensitive: Show sensitive values in Markdown. JSON lines always hold all there is.
            wanted: Which (`Wanted`); archived ones too, unless a status is given.

        Raises:
            ThreadNotFound: A thread that was named is not there.
            InvalidInput: The target cannot be written, or an argument not be used.
            DamagedRow: A thread has a row that is damaged.
            MissingExtra: The target is a URL, and there is no fsspec.
        """
        return finish(self._export(thread_ids, format, include_sensitive, wanted).steps(target))

    async def aexport_to(
        self, target: Place, *thread_ids: ThreadId, format: Format = "jsonl", include_sensitive: bool = False, **wanted: Unpack[Wanted]
    ) -> ExportedThreads:
        """Async twin of `export_to`."""
        return await afinish(self._export(thread_ids, format, include_sensitive, wanted).steps(target))

    def export_lines(
        self, *thread_ids: ThreadId, format: Format = "jsonl", include_sensitive: bool = False, **wanted: Unpack[Wanted]
    ) -> Iterator[str]:
        """The lines that `export_to` writes, with their ends, as they are asked for: no lock is held in between."""
        pages = self._export(thread_ids, format, include_sensitive, wanted).pages()
        return (line for page in pages for line in page)

    async def aexport_lines(
        self, *thread_ids: ThreadId, format: Format = "jsonl", include_sensitive: bool = False, **wanted: Unpack[Wanted]
    ) -> AsyncIterator[str]:
        """Async twin of `export_lines`."""
        async with aclosing(aeach(self._export(thread_ids, format, include_sensitive, wanted).pages())) as pages:
            async for page in pages:
                for line in page:
                    yield line

    def import_from(
        self, source: Place, *, keep_ids: bool = False, keep_owners: bool = False, max_bytes: int = MAX_BYTES, max_line: int = MAX_LINE
    ) -> ImportedThreads:
        """Bring threads in that `export_to` has written as JSON lines.

        All of the file is looked at before anything is stored, and nothing is built that it names. Then each thread is stored in one
        transaction; an import that was stopped has stored whole threads, and with `keep_ids` goes on where it was.

        Args:
            source: A path, a URL that fsspec knows (extra `fsspec`), `-` for standard input, or an open file.
            keep_ids: Give threads the ids that they had, and leave those alone that are there already; else they get new ones.
            keep_owners: Give them the owners that they had; else they are the owner's whom this is bound to, or nobody's.
            max_bytes: What the file may hold, decompressed.
            max_line: Bytes that a line may have.

        Raises:
            MalformedExport: The file is no such export, or larger than is allowed; nothing was imported.
            ThreadNotFound: With `keep_ids`, one of these ids is another owner's; nothing was imported.
            InvalidInput: The source cannot be read, or an argument not be used.
            MissingExtra: The source is a URL, and there is no fsspec.
        """
        return finish(self._import(source, keep_ids, keep_owners, max_bytes, max_line).steps())

    async def aimport_from(
        self, source: Place, *, keep_ids: bool = False, keep_owners: bool = False, max_bytes: int = MAX_BYTES, max_line: int = MAX_LINE
    ) -> ImportedThreads:
        """Async twin of `import_from`."""
        return await afinish(self._import(source, keep_ids, keep_owners, max_bytes, max_line).steps())

    def _export(self, thread_ids: Sequence[ThreadId], form: Format, include_sensitive: bool, wanted: Wanted) -> Export:
        if form not in FORMATS:
            raise InvalidInput(f"an export is one of {', '.join(FORMATS)}, not {form!r}")
        if thread_ids and wanted:
            raise InvalidInput("an export is of the threads that are named, or of all that are wanted: leave one of the two out")
        ids = [thread_key(thread_id) for thread_id in thread_ids]
        which = Selection(self.owner, ids or None, plan_filter({"status": None, **wanted}, self.owner))
        return Export(self.log, which, form, self._codec, include_sensitive=include_sensitive)

    def _import(self, source: Place, keep_ids: bool, keep_owners: bool, max_bytes: int, max_line: int) -> Import:
        if keep_owners and self.owner is not None:
            raise InvalidInput("these threads are bound to an owner, who gets what is imported: leave keep_owners out")
        for name, limit in (("max_bytes", max_bytes), ("max_line", max_line)):
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
                raise InvalidInput(f"{name} is a number of bytes, not {limit!r}")
        return Import(
            self.log, self.owner, self._codec, source, keep_ids=keep_ids, keep_owners=keep_owners, max_bytes=max_bytes, max_line=max_line
        )
