"""Values and protocols shared across layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from langmem_ext._internal import html

Snapshot: TypeAlias = bytes

CONFIRMATION: Final = "confirmation"
"""What a request waits for until it is confirmed: not a parameter of a catalog. Its answer is in
the plan."""

CHECKPOINTER: Final = "__pregel_checkpointer"
"""Where LangGraph has the checkpointer of a run, in its `configurable`."""

UNASKED: Final = "__langmem_ext_unasked__"
"""In the `configurable` of a run: nothing was asked when its input came, so it is a yes to nothing,
whatever the state says that the thread waits for."""


@dataclass(slots=True)  # not frozen: that takes several times as long to make
class PackedValue:
    """A value ready to be stored, with its messages lifted out.

    Attributes:
        messages: The exact bytes of each message in it, and of each long text of an input, in the
            order in which `body` refers to them.
        body: The rest; None for a plain list of messages.
        keyed: Whether it is a dict that may be stored in parts.
        count: Number of elements, if it is a list that may be stored in parts.
        fresh: How many of the messages were not in its place when it was packed there before.
        known: If it is a plain list, its cache, or that of the list that it was packed after
            (`storage.cache.KnownList`).
        templates: If it is a plain list, what its messages are recognised by (`log.message_cache`).
    """

    messages: Sequence[Snapshot] = ()
    body: bytes | None = None
    keyed: bool = False
    count: int | None = None
    fresh: int = field(default=0, compare=False)
    known: Any = field(default=None, compare=False, repr=False)
    templates: Any = field(default=None, compare=False, repr=False)


@dataclass(slots=True)  # as above
class PackedWrite:
    """One pending write: its position among its task's writes, its channel and its value.

    LangGraph's special writes have negative positions.
    """

    index: int
    channel: str
    value: PackedValue


@dataclass(slots=True)  # as above
class StoredWrite:
    """A pending write as it is read. Never changed."""

    task: str
    channel: str
    value: PackedValue


@dataclass(slots=True)  # as above
class StoredCheckpoint:
    """A checkpoint as it is read: plain values only, shared with nothing that changes.

    Never changed.
    """

    thread: str
    namespace: str
    id: str
    parent: str | None
    v: int
    ts: str
    versions: Mapping[str, str | int | float]
    seen: Mapping[str, Mapping[str, str | int | float]]
    updated: Sequence[str] | None
    values: Mapping[str, PackedValue]
    extra: bytes | None
    label: bytes
    step: int | None
    details: bytes | None
    writes: Sequence[StoredWrite] = ()


@dataclass(slots=True)  # as above
class ItemRow:
    """A message as its row holds it, without key, time and token count.

    Attributes:
        message_id: The message's id as text, or None.
        role: Its class's code, or None for a message kept whole in `rest`, and for a bare text.
        name, text, tool_call_id: Readable columns.
        rest: What the columns do not hold, encoded; None if there is nothing.
        tool: The tool that the message says its turn is for; it is in `rest`, too.
        bare: The message's exact bytes without its id.
        tokens: About how many tokens it costs a model; 0 for a bare text; None for the number that
            role and text imply (`stored_tokens.implied_tokens`).
    """

    message_id: str | None
    role: int | None
    name: str | None
    text: str | None
    tool_call_id: str | None
    rest: bytes | None
    tool: str | None = None
    bare: Snapshot = b""
    tokens: int | None = 0


@dataclass(frozen=True, slots=True)
class Shown:
    """What may be shown of a message.

    Attributes:
        role: `human`, `ai`, `system` or `tool`.
        text: Its text, sensitive values hidden.
        open: Whether a copy may follow that marks what is sensitive: it is a user's message without
            such a mark.
        whole: Its full text, if the message is marked as partly sensitive.
    """

    role: str
    text: str
    open: bool = False
    whole: str | None = field(default=None, repr=False)


class Codec(Protocol):
    """What storage needs to know of messages and values, which it only sees as bytes."""

    key: str
    """Rows written under one key are read under the same; it keeps the caches of two serializers
    apart."""

    def item_row(self, packed: Snapshot) -> ItemRow:
        """The row of a message."""

    def ready_row(self, packed: Snapshot) -> ItemRow:
        """The row of a message that is new, with all that it is looked for by."""

    def tokens_of(self, packed: Snapshot) -> int:
        """About how many tokens the message costs a model; 0 for a bare text."""

    def snapshot_of(self, row: ItemRow) -> Snapshot:
        """The message's exact bytes, from its row."""

    def title_of(self, packed: Snapshot) -> str | None:
        """A title from the message, if it is a user's; None for every other."""

    def shown_of(self, packed: Snapshot) -> Shown | None:
        """What may be shown of a message; None for a bare text or a role that is not shown.

        None, too, if an application's own serializer wrote it.
        """

    def texts_in(self, body: bytes) -> frozenset[int]:
        """Which of a value's messages, by position, are texts in it."""

    def empty_list(self) -> bytes:
        """How an empty list is encoded as a value."""

    def is_empty_list(self, body: bytes) -> bool:
        """Whether a value is an empty list."""

    def is_empty(self, body: bytes) -> bool:
        """Whether a value is for certain an empty list or set."""

    def text_key(self, packed: Snapshot) -> Snapshot | None:
        """The bytes that the message's text had before there was the message."""

    def id_of(self, packed: Snapshot) -> str | None:
        """The message's id."""

    def renamed(self, packed: Snapshot, message_id: str | None) -> Snapshot:
        """The same message with another id."""


class ThreadKey(NamedTuple):
    """A thread as a caller names it: its id, and the caller's owner (None for any)."""

    id: str
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class ThreadInfo:
    """The details of a thread.

    Attributes:
        id: The thread's id.
        owner: Its owner, or None.
        title: Its title: the first prompt, or one that was set.
        status: `active` or `archived`.
        created_at, updated_at: The times of its first and last write; with a time zone.
        messages: Messages of its newest checkpoint.
        stored_messages: Messages of all of its checkpoints and branches.
        tokens: Approximate tokens of these messages.
        waiting_for: The parameter that it is waiting for.
        tool: The tool of its newest turn that names one.
        tags: Its tags, sorted.
        metadata: Metadata set by `note`.
        forked_from: The thread that it was copied from.
        number: Its number in the database; distinguishes threads written at the same time.
    """

    id: str
    owner: str | None
    title: str | None
    status: str
    created_at: datetime
    updated_at: datetime
    messages: int
    stored_messages: int
    tokens: int
    waiting_for: str | None
    tool: str | None
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    forked_from: str | None
    number: int

    def _repr_html_(self) -> str:
        rows = [
            ("thread", self.id),
            ("owner", self.owner),
            ("status", self.status),
            ("waits for", self.waiting_for),
            ("messages", self.messages),
            ("tokens, about", self.tokens),
            ("tags", self.tags),
            ("last used", self.updated_at),
            ("forked from", self.forked_from),
        ]
        shown = [row for row in rows if row[1] not in (None, ())]
        return html.titled(self.title or "(untitled)", html.table(shown))


@dataclass(frozen=True, slots=True)
class ThreadStatistics:
    """Counts of threads.

    Attributes:
        threads: The number of threads.
        turns: Stored messages of users, of all branches; 0 with a custom serializer, which hides
            them.
        messages: Stored messages, of all branches.
        tokens: Approximate tokens of these messages.
        waiting: Threads that are waiting for a parameter.
        by_status: Threads by status, `active` or `archived`.
        by_tool: Threads by the tool of their newest turn that names one; None for those without.
    """

    threads: int
    turns: int
    messages: int
    tokens: int
    waiting: int
    by_status: Mapping[str, int]
    by_tool: Mapping[str | None, int]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A search result.

    Attributes:
        thread_id, title: The thread, and its title.
        message_id: The message's id, or None.
        number: Its number in its thread, as in the view `conversation`.
        role: `human`, `ai`, `system` or `tool`.
        created_at: When it was stored; with a time zone.
        snippet: A piece of its text in one line; sensitive values are hidden.
        highlights: The positions of the matches in the snippet, as `(start, end)` in characters.
        rank: The relevance, higher is better; comparable only within the same search.
    """

    thread_id: str
    title: str | None
    message_id: str | None
    number: int
    role: str
    created_at: datetime
    snippet: str
    highlights: tuple[tuple[int, int], ...]
    rank: float

    def _repr_html_(self) -> str:
        marked = html.Raw(html.highlighted(self.snippet, self.highlights))
        rows = [("thread", self.thread_id), (self.role, marked), ("stored", self.created_at)]
        return html.titled(self.title or "(untitled)", html.table(rows))


@dataclass(frozen=True, slots=True)
class ExportedThreads:
    """The result of an export.

    Attributes:
        threads, messages, checkpoints: Their numbers; for Markdown, of the messages shown.
    """

    threads: int
    messages: int
    checkpoints: int


@dataclass(frozen=True, slots=True)
class ImportedThreads:
    """The result of an import.

    Attributes:
        ids: The new id of each stored thread, by its id in the file.
        skipped: Ids of threads that existed already, and were not changed.
        messages, checkpoints: The numbers stored.
    """

    ids: Mapping[str, str]
    skipped: tuple[str, ...]
    messages: int
    checkpoints: int


@dataclass(slots=True)
class DeltaHistory:
    """What one channel contributed along the ancestors of a checkpoint."""

    writes: list[StoredWrite] = field(default_factory=list)
    seed: PackedValue | None = None


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was deleted, or with `dry_run` would be.

    Attributes:
        threads: Threads deleted with everything they held.
        checkpoints: Checkpoints deleted.
        writes: Rows of pending writes deleted: one per task and checkpoint.
        items: Messages deleted, and texts that had not become one.
        values: Value rows deleted.
        bytes: What the deleted rows took, about, with their entries in indexes but that of a
            search. The file gets smaller by `compact`.
        store_items: Items of the long-term store deleted, which had expired, or were a forgotten
            owner's; not counted in `bytes`.
    """

    threads: int = 0
    checkpoints: int = 0
    writes: int = 0
    items: int = 0
    values: int = 0
    bytes: int = 0
    store_items: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        """Both together."""
        return Pruned(
            threads=self.threads + other.threads,
            checkpoints=self.checkpoints + other.checkpoints,
            writes=self.writes + other.writes,
            items=self.items + other.items,
            values=self.values + other.values,
            bytes=self.bytes + other.bytes,
            store_items=self.store_items + other.store_items,
        )
