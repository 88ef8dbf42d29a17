"""A thread is one file for a bug report: steps, forks, writes and shapes, without its words.

The file is an export of this package's own: `langmem-ext threads import` brings it in anywhere. It
is made by copying the thread through a saver that redacts what it reads, so it can be made of every
database that the inspector opens.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, Literal, TypeAlias

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.types import Interrupt, Send

from langmem_ext.checkpointer.saver import DeltaSaver
from langmem_ext.inspector.sources.source import Source
from langmem_ext.inspector.views.masks import INPUTS, READS, Masks, as_unread, later_of
from langmem_ext.maintenance.copy import copy_saver
from langmem_ext.messages.annotations import HIDDEN
from langmem_ext.threads.threads import Threads

What: TypeAlias = Literal["words", "marked"]
"""What is redacted: every text that somebody or something said, or what is marked as sensitive
alone."""

NAMES: Final = frozenset(
    {
        "id",
        "type",
        "role",
        "name",
        "tool_call_id",
        "status",
        "thread_id",
        "checkpoint_ns",
        "checkpoint_id",
    }
)
"""Under these names stands, in a block of a message and in a tool call, what holds a thread
together, and nothing that was said."""

CALL: Final = frozenset({"name", "args", "id", "type"})
"""The fields of a tool call."""

CHANNELS: Final = ("branch:", "join:", "__pregel_tasks")
"""How LangGraph's own channels begin: they hold names of nodes."""

KEPT: Final = frozenset(
    {"waiting_for_param", "last_intent_id", "sensitive_params", "context_events"}
)
"""Channels of this package that hold no word of a conversation."""

METADATA: Final = frozenset(
    {"source", "step", "parents", "run_id", "thread_id", "checkpoint_ns", "langgraph_version"}
)
"""Metadata of LangGraph's own."""

_LETTER: Final = re.compile(r"[^\W\d_]")
_DIGIT: Final = re.compile(r"\d")


def bundle(source: Source, thread_id: str, what: What = "words") -> Iterator[str]:
    """The lines of a redacted export of a thread.

    Args:
        source: The database.
        thread_id: The thread.
        what: What is redacted.

    Raises:
        ThreadNotFound: The thread does not exist.
        LangmemExtError: The thread cannot be read.
    """
    source.thread(thread_id)
    with DeltaSaver.open(":memory:") as target:
        heads = {
            space: stored.checkpoint["channel_values"]
            for space in ("", *source.namespaces(thread_id))
            if (stored := source.checkpoint(thread_id, None, space)) is not None
        }
        copy_saver(RedactedSaver(source.saver, what, heads), target, threads=[thread_id])
        yield from Threads(target).export_lines(thread_id)


class RedactedSaver(BaseCheckpointSaver[Any]):
    """Reads what another saver holds of a thread, without what was said.

    Args:
        saver: The saver.
        what: What is redacted.
        heads: The values of the newest checkpoint of each namespace.
    """

    def __init__(
        self, saver: BaseCheckpointSaver[Any], what: What, heads: Mapping[str, Mapping[str, Any]]
    ) -> None:
        super().__init__()
        self._saver = saver
        self._what = what
        self._heads = heads

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """A checkpoint, redacted."""
        stored = self._saver.get_tuple(config)
        return None if stored is None else self._redacted(stored)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, redacted."""
        return map(
            self._redacted, self._saver.list(config, filter=filter, before=before, limit=limit)
        )

    async def alist(self, *args: Any, **kwargs: Any) -> AsyncIterator[CheckpointTuple]:
        """Checkpoints, redacted; for who copies on an event loop."""
        for stored in self.list(*args, **kwargs):
            yield stored

    def _redacted(self, stored: CheckpointTuple) -> CheckpointTuple:
        values = stored.checkpoint["channel_values"]
        namespace = stored.config["configurable"].get("checkpoint_ns", "")
        masks = _masks(stored, self._heads.get(namespace, values))
        redaction = Redaction(masks, self._what)
        checkpoint: Any = {
            **stored.checkpoint,
            "channel_values": {
                name: redaction.channel(name, value) for name, value in values.items()
            },
        }
        writes = [
            (task, name, redaction.channel(name, value))
            for task, name, value in stored.pending_writes or ()
        ]
        metadata: Any = {
            name: value if name in METADATA else redaction.value(value)
            for name, value in stored.metadata.items()
        }
        return CheckpointTuple(stored.config, checkpoint, metadata, stored.parent_config, writes)


def _masks(stored: CheckpointTuple, newest: Mapping[str, Any]) -> Masks:
    """What of a checkpoint is hidden, by its values and those of the newest one."""
    values = stored.checkpoint["channel_values"]

    def read(name: str) -> object:
        lists = [value for value in newest.values() if isinstance(value, list)]
        return next((item for items in lists for item in items if _is_called(item, name)), None)

    masks = Masks.of(newest) | Masks.of(values)
    masks = dataclasses.replace(masks, waits=masks.waits or newest.keys() <= {*INPUTS})
    later: dict[str | None, BaseMessage] = {}
    for value in values.values():
        later |= later_of(_messages_in(value)[-1:], values, read, newest)
    for _, _, value in (stored.pending_writes or ()) if masks.waits else ():
        later |= later_of(_messages_in(value), READS, read, newest)
    return dataclasses.replace(masks, later=later)


def _messages_in(value: Any) -> Sequence[BaseMessage]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, BaseMessage)]


def _is_called(item: object, name: str) -> bool:
    return isinstance(item, BaseMessage) and item.id == name


@dataclasses.dataclass(frozen=True, slots=True)
class Redaction:
    """How values are redacted.

    Attributes:
        masks: What of a state is sensitive.
        what: What is redacted.
        whole: Whether every text is hidden.
    """

    masks: Masks
    what: What
    whole: bool = False

    def channel(self, name: str, value: Any) -> Any:
        """What a channel holds, redacted; of a channel of LangGraph's own, as it is."""
        if name in KEPT or name.startswith(CHANNELS):
            return value
        hidden = dataclasses.replace(self, whole=self.masks.hides_channel(name))
        return hidden.value(value)

    def value(self, value: Any) -> Any:
        """A value of the same shape without what was said."""
        if isinstance(value, str):
            if self.what == "words":
                return blanked(value)
            return HIDDEN if self.whole else self.masks.text(value)
        if isinstance(value, BaseMessage):
            return self._message(value)
        if isinstance(value, Mapping):
            names = CALL if value.keys() == CALL else frozenset()
            return self._mapping(value, names)
        if isinstance(value, list):
            return [self.value(part) for part in value]
        if isinstance(value, tuple) and type(value) is tuple:
            return tuple(self.value(part) for part in value)
        if isinstance(value, AbstractSet):
            if self.what == "marked":
                return value
            return type(value)(self.value(part) for part in value)  # type: ignore[call-arg]
        return self._other(value)

    def _other(self, value: Any) -> Any:
        """A value that is no text, message or collection, redacted.

        One of an unknown kind is hidden whole.
        """
        if isinstance(value, Interrupt):
            return Interrupt(value=self.value(value.value), id=value.id)
        if isinstance(value, Send):
            return Send(value.node, self.value(value.arg))
        if isinstance(value, bool | type(None)):
            return value
        if isinstance(value, int | float):
            return type(value)(0) if self.what == "words" else value
        return HIDDEN

    def _key(self, key: Any) -> Any:
        """A key; names are shape, but not where a sensitive value is one."""
        return self.masks.text(key) if isinstance(key, str) else key

    def _mapping(self, value: Mapping[Any, Any], names: AbstractSet[str]) -> dict[Any, Any]:
        """A mapping, redacted; texts under the names that hold the thread together are kept."""
        return {
            self._key(key): (
                self.masks.text(part)
                if key in names and isinstance(part, str) and not self.masks.hides_name(key)
                else self._under(key, part)
            )
            for key, part in value.items()
        }

    def _under(self, key: Any, value: Any) -> Any:
        if self.masks.hides_name(key) and not isinstance(value, bool):
            return HIDDEN
        return self.value(value)

    def _content(self, content: Any) -> Any:
        """A message's content, redacted."""
        if not isinstance(content, list):
            return self.value(content)
        return [
            self._mapping(block, NAMES) if isinstance(block, Mapping) else self.value(block)
            for block in content
        ]

    def _message(self, message: BaseMessage) -> BaseMessage:
        message = as_unread(message) if self.whole else message
        text, message = self.masks.message_text(message), self.masks.shown(message)
        content: Any = text if isinstance(message.content, str) else message.content
        update: dict[str, Any] = {
            "content": self._content(content),
            "additional_kwargs": {},
            "response_metadata": {},
        }
        if calls := getattr(message, "tool_calls", None):
            update["tool_calls"] = [{**call, "args": self.value(call["args"])} for call in calls]
        if getattr(message, "artifact", None) is not None:
            update["artifact"] = None
        for name in ("usage_metadata",):
            if getattr(message, name, None) is not None:
                update[name] = getattr(message, name)
        return message.model_copy(update=update)


def blanked(text: str) -> str:
    """A text of the same length and layout without its letters and digits.

    >>> blanked("It's O-12345.")
    "xx'x x-00000."
    """
    return _DIGIT.sub("0", _LETTER.sub("x", text))


def file_name(thread_id: str) -> str:
    """What the file of a thread is called: letters, digits and dashes alone."""
    return f"thread-{re.sub(r'[^A-Za-z0-9-]+', '-', thread_id)[:60].strip('-') or 'x'}.jsonl"
