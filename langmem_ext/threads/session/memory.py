"""`ConversationMemory`: a session's data for code that drives a conversation itself.

A session is a thread, and what its handle reads and writes are the waiting graph's own channels:
nothing is kept twice. Each write is one transaction on the thread's newest checkpoint and makes one
that follows it, so no writer's change is lost and a graph that was about to do something is still
about to.
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
from langmem_ext.log.closing import Closing
from langmem_ext.log.message_log import Database, is_address
from langmem_ext.log.scope import DatabaseView
from langmem_ext.log.shown import ReprFacts, Showing
from langmem_ext.storage.operation import Operation
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
        channels: Names of the channels of your own graph, by what they hold (the keys of
            `session.channels.CHANNELS`).

    Raises:
        InvalidInput: It is not a database, or `channels` has an unknown key, or one channel for two
            keys.
        StorageError: The database cannot be opened.
    """

    def __init__(
        self, log: Database, *, owner: str | None = None, channels: Mapping[str, str] | None = None
    ) -> None:
        self._channels = _checked_channels(channels or {})
        self._view = DatabaseView.of(log, owner)
        self._opened = is_address(log)
        self.log = self._view.log

    def _repr_facts(self) -> ReprFacts:
        return ReprFacts(self.log.driver, self._view.owner)

    @classmethod
    async def aopen(
        cls, log: Database, *, owner: str | None = None, channels: Mapping[str, str] | None = None
    ) -> Self:
        """Async twin of `ConversationMemory(log, …)`, which does not block the event loop.

        Example:
            `memory = await ConversationMemory.aopen("memory.db")`
        """
        return await asyncio.to_thread(partial(cls, log, owner=owner, channels=channels))

    def for_session(self, session_id: str | int | UUID) -> SessionHandle:
        """The handle of a session. A new session is empty, and created by its first write.

        Raises:
            InvalidThreadId: The id is empty, or neither a string, an int nor a UUID.
        """
        return SessionHandle(self._view, session_id, self._channels)

    def for_interaction(self, interaction: object) -> SessionHandle:
        """The handle of an interaction's session: its `context.session_id`, or else its `id`.

        The `id` is used if the session id is missing or empty.

        Args:
            interaction: An object with these attributes, or a mapping with these keys.

        Raises:
            InvalidInput: It has neither (`InvalidThreadId`: the id is invalid).
        """
        for session_id in (
            _part(_part(interaction, "context"), "session_id"),
            _part(interaction, "id"),
        ):
            if session_id is not None and session_id != "":
                return self.for_session(session_id)
        raise InvalidInput(
            "the interaction has neither context.session_id nor id: set one, or call for_session"
        )


class InMemoryConversationMemory(ConversationMemory):
    """Sessions in memory: a `ConversationMemory` on its own in-memory database."""

    def __init__(self) -> None:
        super().__init__(":memory:")

    @classmethod
    async def aopen(cls) -> Self:  # type: ignore[override]  # it has no choice of a database
        """Async twin of `InMemoryConversationMemory()`."""
        return await asyncio.to_thread(cls)


class SessionHandle(Showing):
    """The data of one session, without state of its own: use any number of handles for one.

    Values are returned as stored: `""`, `0` and `False` are values like any other, None means no
    value. Every method has an async twin.
    """

    def __init__(
        self, view: DatabaseView, session_id: str | int | UUID, channels: Mapping[str, str]
    ) -> None:
        self._log = view.log
        self._channels = SessionChannels(view, view.key(session_id), channels)
        self.session_id = self._channels.key.id

    def _repr_facts(self) -> ReprFacts:
        return ReprFacts(self._log.driver, thread=self._channels.key)

    # -- messages ----------------------------------------------------------------------------------

    def history(self) -> list[Message]:
        """The messages, oldest first."""
        return self._channels.history()

    async def ahistory(self) -> list[Message]:
        """Async twin of `history`."""
        return await self._log.driver.acall(self.history)

    def append(self, message: Message) -> None:
        """Append a message; it is stored when this returns.

        A message with an existing id replaces that one.

        Raises:
            InvalidInput: It is not a `Message`.
            ThreadNotFound: The session belongs to another owner.
        """
        self._log.run(self._channels.append(message), write=True)

    async def aappend(self, message: Message) -> None:
        """Async twin of `append`."""
        await self._log.arun(self._channels.append(message), write=True)

    def prune(self, max_messages: int = PRUNED_TO) -> None:
        """Keep the newest messages in the history; the log and earlier checkpoints keep the others.

        Fewer are kept if a tool result would be separated from its call.

        Raises:
            InvalidInput: `max_messages` is not a whole number, or below 0.
        """
        self._log.run(self._channels.prune(max_messages), write=True)

    async def aprune(self, max_messages: int = PRUNED_TO) -> None:
        """Async twin of `prune`."""
        await self._log.arun(self._channels.prune(max_messages), write=True)

    # -- parameters --------------------------------------------------------------------------------

    def params(self) -> dict[str, JsonValue]:
        """The known parameters."""
        return known_of(self._channels.get("params"))

    async def aparams(self) -> dict[str, JsonValue]:
        """Async twin of `params`."""
        return await self._log.driver.acall(self.params)

    def merge(self, params: Mapping[str, JsonValue]) -> None:
        """Add or replace parameters; a value of None changes nothing.

        Raises:
            InvalidInput: A name is not text, or a value is not JSON.
            ThreadNotFound: The session belongs to another owner.
        """
        self._log.run(self._channels.merge(params), write=True)

    async def amerge(self, params: Mapping[str, JsonValue]) -> None:
        """Async twin of `merge`."""
        await self._log.arun(self._channels.merge(params), write=True)

    # -- the question that waits -------------------------------------------------------------------

    def waiting(self) -> str | None:
        """The parameter that the session is waiting for, or None.

        On a thread of the waiting graph, what its question asks for, while the question is
        unanswered and its request is running.
        """
        return self._channels.waiting()

    async def awaiting(self) -> str | None:
        """Async twin of `waiting`."""
        return await self._log.driver.acall(self.waiting)

    def set_waiting(self, name: str | None) -> None:
        """Set the parameter that the session is waiting for; None if it is not waiting.

        On a thread of the waiting graph the graph decides what it asks: it ignores a name that its
        request does not need.

        Raises:
            InvalidInput: It is not a name.
            ThreadNotFound: The session belongs to another owner.
        """
        self._log.run(self._channels.set_waiting(name), write=True)

    async def aset_waiting(self, name: str | None) -> None:
        """Async twin of `set_waiting`."""
        await self._log.arun(self._channels.set_waiting(name), write=True)

    # -- the request -------------------------------------------------------------------------------

    def last_intent_id(self) -> str | None:
        """The id of the last intent."""
        intent_id = self._channels.get("last_intent_id")
        return intent_id if isinstance(intent_id, str) else None

    async def alast_intent_id(self) -> str | None:
        """Async twin of `last_intent_id`."""
        return await self._log.driver.acall(self.last_intent_id)

    def set_last_intent_id(self, intent_id: str | None) -> None:
        """Set the last intent.

        Raises:
            InvalidInput: It is not text.
            ThreadNotFound: The session belongs to another owner.
        """
        self._log.run(self._set_intent(intent_id), write=True)

    async def aset_last_intent_id(self, intent_id: str | None) -> None:
        """Async twin of `set_last_intent_id`."""
        await self._log.arun(self._set_intent(intent_id), write=True)

    def last_result(self) -> JsonValue:
        """The result of the last tool."""
        result: JsonValue = self._channels.get("last_result")
        return result

    async def alast_result(self) -> JsonValue:
        """Async twin of `last_result`."""
        return await self._log.driver.acall(self.last_result)

    def set_last_result(self, result: JsonValue) -> None:
        """Set the result of the last tool.

        Raises:
            InvalidInput: It is not JSON.
            ThreadNotFound: The session belongs to another owner.
        """
        self._log.run(self._set_result(result), write=True)

    async def aset_last_result(self, result: JsonValue) -> None:
        """Async twin of `set_last_result`."""
        await self._log.arun(self._set_result(result), write=True)

    def plan_execution(self) -> dict[str, JsonValue] | None:
        """The running request and its progress, or None.

        Those of the waiting graph are `PlanExecution`s.
        """
        plan = self._channels.get("plan_execution")
        return plan if isinstance(plan, dict) else None

    async def aplan_execution(self) -> dict[str, JsonValue] | None:
        """Async twin of `plan_execution`."""
        return await self._log.driver.acall(self.plan_execution)

    def set_plan_execution(self, plan: Mapping[str, JsonValue] | None) -> None:
        """Set the running request; None ends it, and the waiting graph asks nothing more for it.

        Raises:
            InvalidInput: It is not a JSON object.
            ThreadNotFound: The session belongs to another owner.
        """
        self._log.run(self._set_plan(plan), write=True)

    async def aset_plan_execution(self, plan: Mapping[str, JsonValue] | None) -> None:
        """Async twin of `set_plan_execution`."""
        await self._log.arun(self._set_plan(plan), write=True)

    # -- starting over -----------------------------------------------------------------------------

    def clear(self) -> list[str]:
        """Forget messages, parameters, question and request, as a history's `clear` does.

        Returns the ids of the threads that still have messages of it.
        """
        return self._log.run(self._channels.clear(), write=True)

    async def aclear(self) -> list[str]:
        """Async twin of `clear`."""
        return await self._log.arun(self._channels.clear(), write=True)

    # -- what more than one method does ------------------------------------------------------------

    def _set_intent(self, intent_id: str | None) -> Operation[None]:
        return self._channels.set("last_intent_id", checked_name(intent_id, "an intent's id"))

    def _set_result(self, result: JsonValue) -> Operation[None]:
        return self._channels.set("last_result", json_value(result, "the result"))

    def _set_plan(self, plan: Mapping[str, JsonValue] | None) -> Operation[None]:
        execution = dict(plan) if isinstance(plan, Mapping) else plan
        return self._channels.set(
            "plan_execution", None if execution is None else json_object(execution, "the plan")
        )


def _part(whole: object, name: str) -> Any:
    return whole.get(name) if isinstance(whole, Mapping) else getattr(whole, name, None)


def _checked_channels(channels: Mapping[str, str]) -> dict[str, str]:
    unknown = sorted(set(channels) - CHANNELS.keys())
    if unknown:
        raise InvalidInput(
            f"a session has no {unknown[0]!r}: name channels for {', '.join(CHANNELS)}"
        )
    names = {**CHANNELS, **channels}
    if not all(isinstance(name, str) and name for name in names.values()) or len(
        set(names.values())
    ) < len(names):
        raise InvalidInput("each value of a session needs its own channel: use different names")
    return names
