"""The telemetry events of the waiting graph's nodes: of the state only names and counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer

from langmem_ext.telemetry import FIELD, Emitter, Event, MemoryFigures, is_name
from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.catalog.playbook import Playbook

OTHER = "other"
"""Stands for a name that the catalog does not declare, as an edit may bring one in: it could be
anything."""


@dataclass(frozen=True, slots=True)
class Reporter:
    """Makes events of what nodes did. Nothing is read or made where there is no sink.

    Attributes:
        playbook: The catalog and its tools: what may be named.
        emitter: Who takes the events.
    """

    playbook: Playbook
    emitter: Emitter

    def received(self, state: Mapping[str, Any], config: RunnableConfig) -> None:
        """A user's message has arrived, and is worked on from here."""
        if self.emitter:
            self._emit("received", state, {}, config)

    def decided(
        self,
        state: Mapping[str, Any],
        update: Mapping[str, Any],
        heard: bool,
        config: RunnableConfig,
    ) -> None:
        """The events of a message: its intent, its values, and the question or reply."""
        if not self.emitter:
            return
        plan, waiting = update.get("plan"), update.get("waiting_for_param")
        intent = self._intent(plan)
        if heard:
            by_model = any(
                command.get("by") == "model" for command in update.get("understood") or ()
            )
            self._emit(
                "classified",
                state,
                update,
                config,
                intent=intent,
                source="model" if by_model else "rules",
            )
        self.filled(state, update, "user", config)
        replied = any(message.type == "ai" for message in update.get("messages") or ())
        if replied and plan and waiting is not None:
            attempts = plan["attempts"].get(waiting, 0) + 1
            self._emit("asked", state, update, config, param=self._param(waiting), attempt=attempts)
        elif replied and not plan:
            self._emit("respond", state, update, config, intent=None)

    def filled(
        self, state: Mapping[str, Any], update: Mapping[str, Any], by: str, config: RunnableConfig
    ) -> None:
        """Parameters have got a value, or another one."""
        if not self.emitter:
            return
        before, after = _params(state), _params(update)
        names = self._names(
            name for name, value in after.items() if name not in before or before[name] != value
        )
        if names:
            self._emit("filled", state, update, config, params=names, by=by)

    def called(
        self,
        state: Mapping[str, Any],
        update: Mapping[str, Any],
        tool: str,
        duration_ms: int,
        config: RunnableConfig,
    ) -> None:
        """A tool has returned or failed."""
        if not self.emitter:
            return
        results = update["plan"]["results"]
        status, step = (
            results[-1]["status"],
            update["plan"]["cursor"] - (results[-1]["status"] == "ok"),
        )
        self._emit(
            "tool_called",
            state,
            update,
            config,
            tool=_safe(tool),
            status=status,
            step=step,
            duration_ms=duration_ms,
        )
        self.filled(state, update, "tool", config)

    def responded(
        self,
        state: Mapping[str, Any],
        update: Mapping[str, Any],
        intent: str,
        status: str,
        config: RunnableConfig,
    ) -> None:
        """A request was answered."""
        if self.emitter:
            self._emit("respond", state, update, config, intent=_safe(intent), status=status)

    def summarised(
        self, state: Mapping[str, Any], update: Mapping[str, Any], config: RunnableConfig
    ) -> None:
        """The running summary was carried on."""
        summary = update.get("summary")
        if not self.emitter or not summary or summary == state.get("summary"):
            return
        ids = [message.id for message in _messages(state)]
        covered = ids.index(summary["through"]) + 1 if summary["through"] in ids else 0
        self._emit("summarised", state, update, config, messages=covered)

    def _emit(
        self,
        name: str,
        state: Mapping[str, Any],
        update: Mapping[str, Any],
        config: RunnableConfig,
        **payload: Any,
    ) -> None:
        messages = _messages(state)
        known = {message.id for message in messages}
        added = sum(message.id is None or message.id not in known for message in _messages(update))
        waiting = (
            update["waiting_for_param"]
            if "waiting_for_param" in update
            else state.get("waiting_for_param")
        )
        memory = MemoryFigures(
            history_count=len(messages) + added,
            params_keys=self._names(_params(update if "params" in update else state)),
            waiting_for_param=None if waiting is None else self._param(waiting),
        )
        turn = next(
            (message.id for message in reversed(messages) if isinstance(message, HumanMessage)),
            None,
        )
        thread = config.get("configurable", {}).get("thread_id")
        self.emitter.emit(
            Event(name, payload, memory, None if thread is None else str(thread), turn)
        )

    def _names(self, names: Iterable[object]) -> tuple[str, ...]:
        return tuple(sorted({self._param(name) for name in names}))

    def _param(self, name: object) -> str:
        declared = isinstance(name, str) and (
            name == CONFIRMATION or name in self.playbook.catalog.params
        )
        return _safe(name) if declared else OTHER

    def _intent(self, plan: Any) -> str | None:
        return _safe(plan["intent_id"]) if plan else None


def _safe(name: object) -> str:
    return str(name) if is_name(name) else OTHER


def _params(state: Mapping[str, Any]) -> Mapping[str, Any]:
    params = state.get("params")
    return params if isinstance(params, dict) else {}


def _messages(state: Mapping[str, Any]) -> list[BaseMessage]:
    return [message for message in state.get("messages") or () if isinstance(message, BaseMessage)]


class StreamSink:
    """Writes events to LangGraph's custom stream, each as `{"langmem_ext": event.as_dict()}`.

    `stream_mode="custom"` shows them.

    An event outside of a graph's nodes, as a sweep's `expired`, has no stream and is passed over.
    """

    def emit(self, event: Event) -> None:
        """Write the event, if a graph runs here."""
        try:
            write = get_stream_writer()
        except RuntimeError:
            return
        write({FIELD: event.as_dict()})
