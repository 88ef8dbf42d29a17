"""The data of a session as channels of its thread, and the operations on them.

Each change is one transaction on the thread's newest checkpoint, and the checkpoint that it makes
follows that one: no writer's change is lost, and a graph that was about to do something is still
about to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import EllipsisType
from typing import Any, Final

from langgraph.checkpoint.serde.types import INTERRUPT
from pydantic import JsonValue

from langmem_ext._internal.json import json_object, plain_text
from langmem_ext.checkpointer.values import MESSAGES_CHANNEL, WAITING_CHANNEL
from langmem_ext.errors import InvalidInput
from langmem_ext.log.scope import DatabaseView
from langmem_ext.messages.text import column_name
from langmem_ext.storage.operation import Operation
from langmem_ext.storage.threads import history as history_ops
from langmem_ext.storage.threads.channels import (
    ChannelsRead,
    Values,
    change_channels,
    read_channels,
)
from langmem_ext.threads.history import adding, forgetting
from langmem_ext.threads.session.message import Message
from langmem_ext.types import CONFIRMATION, PackedValue, Snapshot, ThreadKey

CHANNELS: Final[Mapping[str, str]] = {
    "messages": MESSAGES_CHANNEL,
    "params": "params",
    "waiting_for": WAITING_CHANNEL,
    "plan_execution": "plan",
    "suspended": "suspended",
    "last_intent_id": "last_intent_id",
    "last_result": "last_result",
    "summary": "summary",
}
"""The channels of a session: those of the waiting graph."""

EMPTY: Final[Mapping[str, JsonValue]] = {
    "params": {},
    "waiting_for": None,
    "plan_execution": None,
    "suspended": [],
    "last_intent_id": None,
    "last_result": None,
    "summary": None,
}
"""The values of a new session, which has no messages."""

_ASKING: Final = "ask_user"
_FIRST: Final = "classify"
"""Nodes of the waiting graph: the one that waits for an answer, and the one that every turn begins
with."""


@dataclass(frozen=True, slots=True)
class SessionChannels:
    """The channels of one session.

    Attributes:
        view: The database.
        key: The thread.
        names: Channel by what it holds (the keys of `CHANNELS`).
    """

    view: DatabaseView
    key: ThreadKey
    names: Mapping[str, str]

    # -- reading -----------------------------------------------------------------------------------

    def history(self) -> list[Message]:
        """The messages, oldest first."""
        dated = self._run(
            history_ops.read_dated_history(self.key, self.names["messages"], **self.view.tools)
        )
        loaded = self.view.load(PackedValue(messages=[packed for packed, _ in dated]), self.key.id)
        times = (datetime.fromtimestamp(seconds, UTC).isoformat() for _, seconds in dated)
        return [
            Message.from_langchain(message, stored_at=time)
            for message, time in zip(loaded, times, strict=True)
        ]

    def get(self, name: str) -> Any:
        """The value of one channel."""
        read = self._run(read_channels(self.key, [self.names[name]], **self.view.tools))
        return self._load(read.values, name)

    def waiting(self) -> str | None:
        """The parameter a thread waits for: its open question's, or the one noted."""
        channels = [self.names[name] for name in ("waiting_for", "plan_execution", "params")]
        read = self._run(read_channels(self.key, channels, pending=True, **self.view.tools))
        name = self._load(read.values, "waiting_for")
        if not isinstance(name, str):
            return None
        return name if not self._is_the_graphs(read) or self._is_asked(name, read) else None

    def expires_at(self) -> datetime | None:
        """When the question that waits expires; None if none waits, or for ever."""
        plan = self.get("plan_execution")
        end = (
            plan.get("expires_at")
            if isinstance(plan, dict) and self.waiting() is not None
            else None
        )
        try:
            moment = datetime.fromisoformat(end) if isinstance(end, str) else None
        except ValueError:
            return None
        return moment if moment is None or moment.tzinfo is not None else moment.replace(tzinfo=UTC)

    def _is_the_graphs(self, read: ChannelsRead) -> bool:
        """Whether the waiting graph has run on the thread: its first node and plan exist."""
        return _FIRST in read.seen and self.names["plan_execution"] in read.versions

    def _is_asked(self, name: str, read: ChannelsRead) -> bool:
        """Whether the waiting graph is about to ask for a parameter, or waits for it."""
        trigger = f"branch:to:{_ASKING}"
        if trigger not in read.held or read.versions.get(trigger) == read.seen.get(_ASKING, {}).get(
            trigger
        ):
            return False
        if read.written:
            return read.written == {INTERRUPT}  # with anything else, it has its answer
        # An edit has come between: the graph looks again whether it must ask.
        known = known_of(self._load(read.values, "params"))
        return isinstance(self._load(read.values, "plan_execution"), dict) and (
            name == CONFIRMATION or name not in known
        )

    def _run(self, op: Operation[Any]) -> Any:
        return self.view.log.run(op, write=False)

    def _load(self, values: Values, name: str) -> Any:
        packed = values.get(self.names[name])
        return EMPTY[name] if packed is None else self.view.load(packed, self.key.id)

    # -- changing ----------------------------------------------------------------------------------

    def append(self, message: Message) -> Operation[None]:
        """Append a message."""
        if not isinstance(message, Message):
            raise InvalidInput(
                f"a session takes a Message, not {type(message).__name__}: convert LangChain"
                " messages with Message.from_langchain"
            )
        return adding(self.view, self.key, [message.to_langchain()], self.names["messages"])

    def prune(self, max_messages: int) -> Operation[None]:
        """Keep the newest messages of the list, which must not begin with a tool's result."""
        if isinstance(max_messages, bool) or not isinstance(max_messages, int) or max_messages < 0:
            raise InvalidInput("max_messages must be a whole number of 0 or more")
        channel, edit = self.names["messages"], self.view.new_edit()
        return history_ops.narrow_history(
            self.key, channel, max_messages, self._answers_a_call, edit, **self.view.tools
        )

    def _answers_a_call(self, packed: Snapshot) -> bool:
        [message] = self.view.load(PackedValue(messages=[packed]), self.key.id)
        return bool(getattr(message, "tool_call_id", None))

    def merge(self, params: Mapping[str, JsonValue]) -> Operation[None]:
        """Add parameters; None changes nothing."""
        added = known_of(
            json_object(dict(params) if isinstance(params, Mapping) else params, "params")
        )
        return self._change("params", lambda now: {**known_of(now), **added} if added else now)

    def set_waiting(self, waiting: str | None) -> Operation[None]:
        """Set the parameter that is waited for, in the thread's row, too."""
        name = checked_name(waiting, "a parameter's name")
        return self._change("waiting_for", lambda _: name, waiting_for=self._shown(name))

    def set(self, name: str, value: JsonValue) -> Operation[None]:
        """Set the value of a channel, which must be JSON."""
        return self._change(name, lambda _: value)

    def clear(self) -> Operation[list[str]]:
        """Empty all channels that exist, and forget what they held."""

        def changed(values: Values) -> Values:
            return self._differing(
                {name: value for name, value in EMPTY.items() if self.names[name] in values}, values
            )

        channels, emptied = [self.names[name] for name in EMPTY], self.names["messages"]
        shown, edit = self._shown(None), self.view.new_edit()
        emptying = change_channels(
            self.key,
            channels,
            changed,
            edit,
            emptied=emptied,
            waiting_for=shown,
            **self.view.tools,
        )
        return forgetting(self.view, self.key, emptying)

    def _change(
        self,
        name: str,
        change: Callable[[Any], Any],
        *,
        waiting_for: str | None | EllipsisType = ...,
    ) -> Operation[None]:
        """Give a channel the value that `change` makes of the one it has."""

        def changed(values: Values) -> Values:
            return self._differing({name: change(self._load(values, name))}, values)

        edit = self.view.new_edit()
        return change_channels(
            self.key,
            [self.names[name]],
            changed,
            edit,
            waiting_for=waiting_for,
            **self.view.tools,
        )

    def _differing(self, wanted: Mapping[str, JsonValue], values: Values) -> dict[str, PackedValue]:
        """Those of the values that are not there yet, to the byte: 1 is neither True nor 1.0."""
        pack = self.view.codec.pack_value
        changed: dict[str, PackedValue] = {}
        for name, value in wanted.items():
            packed, now = pack(value), values.get(self.names[name]) or pack(EMPTY[name])
            if packed.body != now.body or now.messages:
                changed[self.names[name]] = packed
        return changed

    def _shown(self, waiting: str | None) -> str | None | EllipsisType:
        """The value of a channel for the thread's row, by any name of the session's channel."""
        return column_name(waiting) if self.names["waiting_for"] == WAITING_CHANNEL else ...


def known_of(params: object) -> dict[str, JsonValue]:
    """The parameters that have a value."""
    return (
        {name: value for name, value in params.items() if value is not None}
        if isinstance(params, dict)
        else {}
    )


def checked_name(name: object, what: str) -> str | None:
    """A name, or None.

    Raises:
        InvalidInput: It is something else.
    """
    if name is None:
        return None
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidInput(f"{what} must be a non-empty string, or None")
    return plain_text(name, what)
