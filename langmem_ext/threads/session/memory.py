"""`ConversationMemory`: what a session remembers besides its messages, for code that drives a conversation itself.

A session is a thread, and what its handle reads and writes are the waiting graph's own channels: nothing is kept twice. Each write is one
transaction on the thread's newest checkpoint and makes one that follows it, so no writer's change is lost and a graph that was about to do
something is still about to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Self
from uuid import UUID

from pydantic import JsonValue

from langmem_ext._internal.json import json_object, json_value
from langmem_ext.errors import InvalidInput
from langmem_ext.log import Database, is_address
from langmem_ext.shown import Showing, Shown
from langmem_ext.source import Source
from langmem_ext.storage.effects import Operation
from langmem_ext.threads.closing import Closing
from langmem_ext.threads.session.channels import CHANNELS, SessionChannels, checked_name, known_of
from langmem_ext.threads.session.message import Message

PRUNED_TO: Final = 10
"""Messages that `prune` leaves."""


class ConversationMemory(Closing):
    """The sessions of a database.

    Args:
        log: The database: a `MessageLog`, a `DeltaSaver` (whose serializer and owner are then used
            too), a path (a `str` or a `pathlib.Path`) or a URL.
        owner: Bind the memory to an owner: another owner's sessions are not found.
        channels: Names of channels of a graph of your own, by what they hold (the keys of `session_channels.CHANNELS`).

    Raises:
        InvalidInput: It is no database, or `channels` names something that a session does not remember, or one channel for two things.
        StorageError: The database cannot be opened.
    """

    def __init__(self, log: Database, *, owner: str | None = None, channels: Mapping[str, str] | None = None) -> None:
        self._channels = _checked_channels(channels or {})
        self._source = Source.of(log, owner)
        self._opened = is_address(log)
        self.log = self._source.log

    def _shown(self) -> Shown:
        return Shown(self.log.driver, self._source.owner)

    @classmethod
    async def aopen(cls, log: Database, *, owner: str | None = None, channels: Mapping[str, str] | None = None) -> Self:
        """Async twin of `ConversationMemory(log, …)`, which does not block the event loop.

        Example:
            `memory = await ConversationMemory.aopen("memory.db")`
        """
        return await asyncio.to_thread(partial(cls, log, owner=owner, channels=channels))

    def for_session(self, session_id: str | int | UUID) -> SessionHandle:
        """The handle of a session. One that nobody knows is empty, and made at its first write.

        Raises:
            InvalidThreadId: The id is empty, or neither a string, an int nor a UUID.
        """
        return SessionHandle(self._source, session_id, self._channels)

    def for_interaction(self, interaction: object) -> SessionHandle:
        """The handle of an interaction's session: `interaction.context.session_id`, or where that is missing or empty, `interaction.id`.

        Args:
            interaction: An object with these attributes, or a mapping with these keys.

        Raises:
            InvalidInput: It has neither (`InvalidThreadId`: what it has is no id).
        """
        for found in (_part(_part(interaction, "context"), "session_id"), _part(interaction, "id")):
            if found is not None and found != "":
                return self.for_session(found)
        raise InvalidInput("the interaction has neither context.session_id nor id: give it one, or call for_session")


class InMemoryConversationMemory(ConversationMemory):
    """Sessions that last as long as this object: a `ConversationMemory` on an in-memory database of its own."""

    def __init__(self) -> None:
        super().__init__(":memory:")

    @classmethod
    async def aopen(cls) -> Self:  # type: ignore[override]  # it has no choice of a database
        """Async twin of `InMemoryConversationMemory()`."""
        return await asyncio.to_thread(cls)


class SessionHandle(Showing):
    """What one session remembers. A light object: it holds nothing, and several may be used for one session, from threads and processes.

    Values come as they were given: `""`, `0` and `False` are values like any other, None is none. Every method has an async twin.
    """

    def __init__(self, source: Source, session_id: str | int | UUID, channels: Mapping[str, str]) -> None:
        self._log = source.log
        self._channels = SessionChannels(source, source.key(session_id), channels)
        self.session_id = self._channels.key.id

    def _shown(self) -> Shown:
        return Shown(self._log.driver, thread=self._channels.key)

    # -- messages ------------------------------------------------------------------------------------------------------------------------

    def history(self) -> list[Message]:
        """The messages, oldest first."""
        return self._channels.history()

    async def ahistory(self) -> list[Message]:
        """Async twin of `history`."""
        return await self._log.driver.acall(self.history)

    def append(self, message: Message) -> None:
        """Append a message; it is stored when this returns. One with an id that the session has already takes that one's place.

        Raises:
            InvalidInput: It is no `Message`.
            ThreadNotFound: The session belongs to another owner.
        """
        self._log.run(self._channels.append(message), write=True)

    async def aappend(self, message: Message) -> None:
        """Async twin of `append`."""
        await self._log.arun(self._channels.append(message), write=True)

    def prune(self, max_messages: int = PRUNED_TO) -> None:
        """Leave the newest messages in the history; the log and the earlier checkpoints keep the others.

        Fewer stay where a tool's result would be parted from its call.

        Raises:
            InvalidInput: `max_messages` is no whole number, or below 0.
        """
        self._log.run(self._channels.prune(max_messages), write=True)

    async def aprune(self, max_messages: int = PRUNED_TO) -> None:
        """Async twin of `prune`."""
        await self._log.arun(self._channels.prune(max_messages), write=True)

    # -- parameters ----------------------------------------------------------------------------------------------------------------------

    def params(self) -> dict[str, JsonValue]:
        """The known parameters."""
        return known_of(self._channels.get("params"))

    async def aparams(self) -> dict[str, JsonValue]:
        """Async twin of `params`."""
        return await self._log.driver.acall(self.params)

    def merge(self, params: Mapping[str, JsonValue]) -> None:
        """Add parameters, and replace those that have other values; one that is None changes nothing.

        Raises:
            InvalidInput: A name is no text, or a value is no JSON.
            ThreadNotFound: The session belongs to another owner.
        """
        self._log.run(self._channels.merge(params), write=True)

    async def amerge(self, params: Mapping[str, JsonValue]) -> None:
        """Async twin of `merge`."""
        await self._log.arun(self._channels.merge(params), write=True)

    # -- the question that waits ---------------------------------------------------------------------------------------------------------

    def waiting(self) -> str | None:
        """The parameter that the session waits for; None where it waits for none.

        On a thread of the waiting graph, what its question asks for, as long as the question is unanswered and its request runs.
        """
        return self._channels.waiting()

    async def awaiting(self) -> str | None:
        """Async twin of `waiting`."""
        return await self._log.driver.acall(self.waiting)

    def set_waiting(self, name: str | None) -> None:
        """Note which parameter the session waits for; None: it waits no more.

        On a thread of the waiting graph the graph decides what it asks: a name that its request does not need, it passes over.

        Raises:
            InvalidInput: It is no name.
            ThreadNotFound: The session belongs to another owner.
        """
        self._log.run(self._channels.set_waiting(name), write=True)

    async def aset_waiting(self, name: str | None) -> None:
        """Async twin of `set_waiting`."""
        await self._log.arun(self._channels.set_waiting(name), write=True)

    # -- the request ---------------------------------------------------------------------------------------------------------------------

    def last_intent_id(self) -> str | None:
        """What the user asked for last."""
        found = self._channels.get("last_intent_id")
        return found if isinstance(found, str) else None

    async def alast_intent_id(self) -> str | None:
        """Async twin of `last_intent_id`."""
        return await self._log.driver.acall(self.last_intent_id)

    def set_last_intent_id(self, intent_id: str | None) -> None:
        """Note what the user asked for last.

        Raises:
            InvalidInput: It is no text.
            ThreadNotFound: The session belongs to another owner.
        """
        self._log.run(self._set_intent(intent_id), write=True)

    async def aset_last_intent_id(self, intent_id: str | None) -> None:
        """Async twin of `set_last_intent_id`."""
        await self._log.arun(self._set_intent(intent_id), write=True)

    def last_result(self) -> JsonValue:
        """What the last tool returned."""
        found: JsonValue = self._channels.get("last_result")
        return found

    async def alast_result(self) -> JsonValue:
        """Async twin of `last_result`."""
        return await self._log.driver.acall(self.last_result)

    def set_last_result(self, result: JsonValue) -> None:
        """Note what the last tool returned.

        Raises:
            InvalidInput: It is no JSON.
            ThreadNotFound: The session belongs to another owner.
        """
        self._log.run(self._set_result(result), write=True)

    async def aset_last_result(self, result: JsonValue) -> None:
        """Async twin of `set_last_result`."""
        await self._log.arun(self._set_result(result), write=True)

    def plan_execution(self) -> dict[str, JsonValue] | None:
        """The request that runs, and how far it has come; None where none runs. The waiting graph's are `PlanExecution`s."""
        found = self._channels.get("plan_execution")
        return found if isinstance(found, dict) else None

    async def aplan_execution(self) -> dict[str, JsonValue] | None:
        """Async twin of `plan_execution`."""
        return await self._log.driver.acall(self.plan_execution)

    def set_plan_execution(self, plan: Mapping[str, JsonValue] | None) -> None:
        """Note the request that runs; None: it has ended, and the waiting graph asks nothing more for it.

        Raises:
            InvalidInput: It is no JSON object.
            ThreadNotFound: The session belongs to another owner.
        """
        self._log.run(self._set_plan(plan), write=True)

    async def aset_plan_execution(self, plan: Mapping[str, JsonValue] | None) -> None:
        """Async twin of `set_plan_execution`."""
        await self._log.arun(self._set_plan(plan), write=True)

    # -- starting over -------------------------------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Forget all of it, messages, parameters, the question and the request; the log and the earlier checkpoints keep it."""
        self._log.run(self._channels.clear(), write=True)

    async def aclear(self) -> None:
        """Async twin of `clear`."""
        await self._log.arun(self._channels.clear(), write=True)

    # -- what more than one method does --------------------------------------------------------------------------------------------------

    def _set_intent(self, intent_id: str | None) -> Operation[None]:
        return self._channels.set("last_intent_id", checked_name(intent_id, "an intent's id"))

    def _set_result(self, result: JsonValue) -> Operation[None]:
        return self._channels.set("last_result", json_value(result, "the result"))

    def _set_plan(self, plan: Mapping[str, JsonValue] | None) -> Operation[None]:
        given = dict(plan) if isinstance(plan, Mapping) else plan
        return self._channels.set("plan_execution", None if given is None else json_object(given, "the plan"))


def _part(whole: object, name: str) -> Any:
    return whole.get(name) if isinstance(whole, Mapping) else getattr(whole, name, None)


def _checked_channels(channels: Mapping[str, str]) -> dict[str, str]:
    unknown = sorted(set(channels) - CHANNELS.keys())
    if unknown:
        raise InvalidInput(f"a session remembers no {unknown[0]!r}: name channels for {', '.join(CHANNELS)}")
    names = {**CHANNELS, **channels}
    if not all(isinstance(name, str) and name for name in names.values()) or len(set(names.values())) < len(names):
        raise InvalidInput("each thing that a session remembers has a channel of its own: name them all differently")
    return names
