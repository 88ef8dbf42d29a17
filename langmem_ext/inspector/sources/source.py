"""`Source`: what the inspector asks of a database, whoever has written it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from langmem_ext.errors import InvalidInput
from langmem_ext.inspector.sources.costs import MessageCost, cost_of
from langmem_ext.memory.facts.facts import Fact
from langmem_ext.memory.memories import Failure, StoredMemory
from langmem_ext.messages.manifest import LONGEST_LIST
from langmem_ext.types import SearchHit

Order: TypeAlias = Literal["used", "tokens", "size"]
ORDERS: Final[tuple[Order, ...]] = ("used", "tokens", "size")

PAGE: Final = 50
"""Threads of a page."""

Path: TypeAlias = tuple[str | int, ...]
"""The way to a part of a channel's value: keys and places; of a list of messages, a message's
id."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Which threads are asked for.

    Attributes:
        text: A part of their title, or the beginning of their id.
        waiting: The parameter that they wait for; `*`: any.
        owner, tag, tool: Only those.
        status: `active`, `archived`, or None for both.
        since: Only those that were used after this.
        order: By last use, tokens or size; the largest first.
        after: The cursor that the page before gave.
    """

    text: str = ""
    waiting: str = ""
    owner: str = ""
    tag: str = ""
    tool: str = ""
    status: str | None = "active"
    since: datetime | None = None
    order: Order = "used"
    after: str | None = None


Standing: TypeAlias = Literal["idle", "waiting", "failed", "unfinished"]
"""How a thread stands: at rest; with a question; with a failure; with nodes that are still to
run."""

OPEN: Final = ("branch:to:", "__start__", "__pregel_tasks")
"""How the channels begin by which LangGraph says that a node is still to run."""


def standing_of(held: Iterable[str], written: Container[str]) -> Standing:
    """How a thread stands, by the channels of its newest checkpoint.

    Args:
        held: Those that hold a value.
        written: Those of its pending writes.
    """
    if "__error__" in written:
        return "failed"
    if not any(channel.startswith(OPEN) for channel in held):
        return "idle"
    return "waiting" if "__interrupt__" in written else "unfinished"


@dataclass(frozen=True, slots=True)
class ListedThread:
    """A thread as a list shows it; None where the database does not say.

    Attributes:
        id, title, owner: The thread's.
        archived: Whether it was put away.
        created_at, used_at: When it was first and last written; with a time zone.
        messages: Messages of its newest checkpoint.
        tokens: About how many tokens its messages cost a model.
        size: Messages that are stored, or bytes (`Source.size_unit`).
        waiting_for: What it waits for: a parameter, or `an answer`.
        standing: How its newest run has ended.
        tool, tags, forked_from: As `ThreadInfo` has them.
    """

    id: str
    title: str | None
    owner: str | None
    archived: bool
    created_at: datetime | None
    used_at: datetime | None
    messages: int | None
    tokens: int | None
    size: int | None
    waiting_for: str | None
    standing: Standing = "idle"
    tool: str | None = None
    tags: tuple[str, ...] = ()
    forked_from: str | None = None


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """A page of threads, the next page's cursor, and the total; None if not counted."""

    threads: Sequence[ListedThread]
    following: str | None
    total: int | None


@dataclass(slots=True)  # not frozen: there are thousands
class Step:
    """A checkpoint as a step of its thread, with its parent and what made it.

    `source` is `input`, `loop`, `update` or `fork`.
    """

    id: str
    parent: str | None
    number: int | None
    source: str


@dataclass(frozen=True, slots=True)
class Write:
    """A pending write without its value: the task, its path in the graph, and the channel."""

    task: str
    path: str
    channel: str


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What a checkpoint says of its step, apart from values.

    Attributes:
        at: When it was made.
        versions: Version by channel.
        seen: Versions seen, by node and channel.
        held: The channels that have a value.
        written: What was written to it: it became the checkpoint that follows.
    """

    at: datetime | None
    versions: Mapping[str, Any]
    seen: Mapping[str, Mapping[str, Any]]
    held: tuple[str, ...]
    written: tuple[Write, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A part of a list of messages.

    Attributes:
        channel: The channel that holds the list; empty where there is none.
        first: The place of the first message.
        total: How many the list has.
        messages: They.
        times: When each was stored; None where that is not known.
    """

    channel: str = ""
    first: int = 0
    total: int = 0
    messages: Sequence[BaseMessage] = ()
    times: Sequence[datetime | None] = ()


@dataclass(frozen=True, slots=True)
class MessageList:
    """Stands for a long list of messages in a state: how many it has, and its last ones."""

    total: int
    last: Sequence[BaseMessage] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is remembered of a thread beside its checkpoints.

    Attributes:
        memory: The memory of the conversation; None where none was written.
        failure: Why the last attempt wrote none; None where it did.
        facts: What its owner said in it that lasts; those too that a later one has superseded.
    """

    memory: StoredMemory | None = None
    failure: Failure | None = None
    facts: Sequence[Fact] = ()


class Source(ABC):
    """A database that is looked into. Every method may be called from any thread, and blocks it."""

    kind: str
    """Whose database it is, for people."""
    place: str
    """Where it is, without a password."""
    writable: bool
    """Whether threads can be forked, and runs be stored."""
    searchable: bool
    """Whether the words of messages can be searched."""
    size_unit: Literal["messages", "bytes"]
    """What `ListedThread.size` counts."""

    @property
    @abstractmethod
    def saver(self) -> BaseCheckpointSaver[Any]:
        """The checkpointer that reads it."""

    @abstractmethod
    def for_owner(self, owner: str | None) -> Source:
        """The same database with the threads of one owner alone; None: as it is."""

    @abstractmethod
    def threads(self, listing: Listing) -> ThreadPage:
        """A page of threads."""

    @abstractmethod
    def thread(self, thread_id: str) -> ListedThread:
        """One thread.

        Raises:
            ThreadNotFound: There is none of this id.
        """

    @abstractmethod
    def search(self, text: str, thread_id: str | None = None) -> Sequence[SearchHit]:
        """Messages that have all words of a text, the best first."""

    @abstractmethod
    def namespaces(self, thread_id: str) -> Sequence[str]:
        """The namespaces of a thread's subgraphs."""

    @abstractmethod
    def outline(self, thread_id: str, namespace: str = "") -> Sequence[Step]:
        """Every checkpoint of a thread's namespace, the newest first."""

    @abstractmethod
    def facts(
        self, thread_id: str, ids: Sequence[str], namespace: str = ""
    ) -> Mapping[str, StepFacts]:
        """What checkpoints say of their steps; those too large to read for it are left out."""

    @abstractmethod
    def conversation(
        self, thread_id: str, checkpoint: str, first: int, limit: int, namespace: str = ""
    ) -> Conversation:
        """A part of the messages of a checkpoint; with `first` below 0, counted from the end."""

    def costs(self, thread_id: str, checkpoint: str, namespace: str = "") -> Sequence[MessageCost]:
        """What each message of a checkpoint costs."""
        whole = self.conversation(thread_id, checkpoint, 0, LONGEST_LIST, namespace)
        return [cost_of(message) for message in whole.messages]

    @abstractmethod
    def values(
        self,
        thread_id: str,
        checkpoint: str,
        namespace: str = "",
        only: Collection[str] | None = None,
    ) -> Mapping[str, Any]:
        """The values of a checkpoint's channels; a `MessageList` replaces each list of messages."""

    @abstractmethod
    def value(self, thread_id: str, checkpoint: str, channel: str, namespace: str = "") -> Any:
        """What one channel holds, whole; None where it holds nothing."""

    def part(
        self, thread_id: str, checkpoint: str, channel: str, path: Path, namespace: str = ""
    ) -> Any:
        """What stands at a place of a channel's value; None where nothing does."""
        return part_of(self.value(thread_id, checkpoint, channel, namespace), path)

    def differing(
        self, thread_id: str, checkpoint: str, other: str, channel: str, namespace: str = ""
    ) -> tuple[int, Any, Any]:
        """A channel's values in another checkpoint and in this one.

        Of lists, so many as the first number says may be left out at the beginning: they are alike.
        """
        before, after = (
            self.value(thread_id, name, channel, namespace) for name in (other, checkpoint)
        )
        return 0, before, after

    @abstractmethod
    def comparer(
        self, thread_id: str, checkpoint: str, channel: str, path: Path, namespace: str = ""
    ) -> Callable[[str], bool]:
        """A function that says whether another checkpoint has the same value at the path."""

    @abstractmethod
    def pending(
        self, thread_id: str, checkpoint: str, namespace: str = ""
    ) -> Sequence[tuple[str, str, Any]]:
        """The pending writes of a checkpoint: task, channel and value."""

    def remembered(self, thread: ListedThread) -> Remembered:
        """What is remembered of a thread: its memory, and facts that stand on its messages."""
        return Remembered()

    def checkpoint(
        self, thread_id: str, checkpoint: str | None, namespace: str = ""
    ) -> CheckpointTuple | None:
        """A checkpoint, whole, with its pending writes; the newest where no id is given."""
        return self.saver.get_tuple(config_for(thread_id, checkpoint, namespace))

    def fork(self, thread_id: str, checkpoint: str | None) -> str:
        """Copy a thread up to a checkpoint, or whole; the copy's id.

        Raises:
            InvalidInput: The database is only read.
        """
        raise InvalidInput(
            f"{self.kind} is only read here: bring its threads in with `langmem-ext"
            " import-checkpoints`, then fork"
        )

    @abstractmethod
    def close(self) -> None:
        """Close it; idempotent."""


def config_for(
    thread_id: str, checkpoint: str | None = None, namespace: str = ""
) -> RunnableConfig:
    """The config that names a checkpoint, or a thread's newest one."""
    configurable = {"thread_id": thread_id, "checkpoint_ns": namespace}
    return {"configurable": configurable | ({"checkpoint_id": checkpoint} if checkpoint else {})}


def part_of(value: Any, path: Path) -> Any:
    """What stands at a place of a value; None where nothing does."""
    for key in path:
        if isinstance(value, list | tuple):
            named = [item for item in value if isinstance(item, BaseMessage) and item.id == key]
            value = (
                named[-1]
                if named
                else (
                    value[key] if isinstance(key, int) and -len(value) <= key < len(value) else None
                )
            )
        elif isinstance(value, Mapping):
            value = value.get(key)
        else:
            value = getattr(value, str(key), None) if isinstance(value, BaseMessage) else None
    return value


def step_number(step: object) -> int | None:
    """The number of a step for people; the input that begins a thread has none (-1)."""
    return step if isinstance(step, int) and step >= 0 else None


_EPOCH: Final = datetime(1582, 10, 15, tzinfo=UTC)


def made_at(checkpoint: str) -> datetime | None:
    """When a checkpoint was made, by its id; None if that is no UUID of version 6.

    See RFC 9562, section 5.6.
    """
    try:
        number = UUID(checkpoint)
    except ValueError:
        return None
    if number.version != 6:
        return None
    ticks = number.int >> 80 << 12 | number.int >> 64 & 0xFFF
    return _EPOCH + timedelta(microseconds=ticks // 10)
