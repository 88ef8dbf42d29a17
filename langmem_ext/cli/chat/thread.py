"""A thread as a chat sees it: what is in it, and saying the next thing without losing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.pregel import Pregel
from langgraph.types import StateSnapshot
from pydantic import JsonValue

from langmem_ext.messages.text import words_of
from langmem_ext.threads.states.held import Standing
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.converse import converse
from langmem_ext.waiting.graph.nodes import playbook_of
from langmem_ext.waiting.policy.session import read_session, read_summary, shown_params
from langmem_ext.waiting.sensitive import sensitive_names
from langmem_ext.waiting.turn import (
    Turn,
    asked_by,
    goes_on_by_a_yes,
    messages_of,
    pending_interrupts,
    reply_of,
)


class ChatThread:
    """One thread of one graph.

    Args:
        graph: A graph compiled with a checkpointer.
        thread_id: The thread.
        tz: The user's time zone; empty: this machine's.

    Attributes:
        id: The thread.
        config: What names it to the graph.
    """

    def __init__(self, graph: Pregel[Any, Any, Any, Any], thread_id: str, tz: str = "") -> None:
        self.id = thread_id
        self._tz = tz
        self._graph = graph
        self.config: RunnableConfig = {"configurable": {"thread_id": self.id}}
        self._sent: tuple[str, str] | None = None
        """Text and id of the message whose turn has not ended."""
        self._unrecorded = False
        """Whether it was an answer, and the graph does not say whether it has arrived."""
        self._shown: str | None = ""
        """The id of the question that was shown last; empty for none, None if that is not known."""

    def say(
        self,
        text: str,
        callbacks: Sequence[BaseCallbackHandler] = (),
        *,
        left: bool = False,
    ) -> Turn:
        """Deliver a message; an empty one finishes an interrupted run and shows its question.

        What an earlier run left (`left`) is shown without sensitive values: it may be another's.
        Said again unchanged after it was stopped or failed, a message keeps its id, so it is not
        delivered twice.
        """
        if self._sent is None or self._sent[0] != text:
            self._sent = (text, str(uuid4()))
        self._unrecorded = not self.waits and bool(pending_interrupts(self._state()))
        shown, self._shown = self._shown, None
        turn = converse(
            self._graph,
            text,
            thread_id=self.id,
            message_id=self._sent[1],
            interrupt_id=shown,
            config=self._config(callbacks),
        )
        self._sent, self._shown = None, turn.interrupt_id
        return replace(turn, reply=reply_of(self._state(), masked=True)) if left else turn

    def _config(self, callbacks: Sequence[BaseCallbackHandler]) -> RunnableConfig:
        config: RunnableConfig = {"callbacks": list(callbacks)}
        return {**config, "configurable": {"tz": self._tz}} if self._tz else config

    def asks_again(self) -> bool:
        """Whether the graph failed with the last answer, and the question waits again."""
        return self._unrecorded and bool(pending_interrupts(self._state()))

    def unsent(self) -> str:
        """The text of a message that was stopped before the thread recorded it; empty if none.

        Another application's graph keeps no record of answers, and the user is not asked to say
        them twice.
        """
        if self._sent is None or self._unrecorded:
            return ""
        text, message_id = self._sent
        return "" if any(message.id == message_id for message in self.messages()) else text

    def in_progress(self) -> bool:
        """Whether a question waits, or a turn was left unfinished."""
        return bool(self._state().tasks)

    def is_confirmed(self) -> bool:
        """Whether a turn stands between a yes and the tool that it is for."""
        return self.waits and goes_on_by_a_yes(self._state())

    def messages(self) -> list[BaseMessage]:
        """The thread's messages, oldest first."""
        return messages_of(self._state())

    def values(self) -> dict[str, Any]:
        """What the thread's channels hold."""
        values: dict[str, Any] = self._state().values
        return values

    def prompts(self) -> list[str]:
        """What the user said, oldest first, without what holds a sensitive value."""
        return [
            words_of(vars(message))
            for message in self.messages()
            if isinstance(message, HumanMessage) and not sensitive_names(message)
        ]

    @property
    def waits(self) -> bool:
        """Whether the graph is one that asks and remembers parameters."""
        return "waiting_for_param" in self._graph.channels

    def report(self) -> dict[str, JsonValue]:
        """What the thread remembers; of a sensitive parameter only its name."""
        snapshot = self._state()
        interrupts = pending_interrupts(snapshot)
        asked = asked_by(interrupts[0]) if interrupts else {}
        report: dict[str, JsonValue] = {
            "thread_id": self.id,
            "messages": len(messages_of(snapshot)),
            "waiting_for": asked.get("param"),
            "attempt": asked.get("attempt", 0),
            "question": asked.get("prompt"),
        }
        playbook = playbook_of(self._graph)
        return report | _session_report(snapshot.values, playbook) if playbook else report

    def _state(self) -> StateSnapshot:
        snapshot = self._graph.get_state(self.config)
        saver = self._graph.checkpointer
        if not snapshot.interrupts or not isinstance(saver, BaseCheckpointSaver):
            return snapshot
        return Standing.of(snapshot, saver.get_tuple(snapshot.config)).snapshot


def _session_report(values: dict[str, Any], playbook: Playbook) -> dict[str, JsonValue]:
    """What a waiting graph remembers, as it reads it itself.

    A state that somebody edited is shown as far as it can be read.
    """
    session, summary = read_session(values, playbook), read_summary(values)
    return {
        "request": session.plan["intent_id"] if session.plan else None,
        "suspended": [entry["plan"]["intent_id"] for entry in session.suspended],
        "last_intent_id": session.last_intent_id,
        "params": dict(sorted(shown_params(values, playbook).items())),
        "summary": summary["text"] if summary else None,
    }
