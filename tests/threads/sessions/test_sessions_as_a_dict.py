"""Whatever is done to sessions, in any order and way, they are what plain dicts would be: the same
values, none lost, none mixed up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prune_reference import assert_sound
from samples import TEXTS, json_values
from savers import BACKENDS, SAMPLED, Backend, Calls, Mode, run_without_loop

from langmem_ext import ConversationMemory, DeltaSaver, Message, MessageLog

THEN = "2026-01-31T09:30:00+00:00"
NAMES = ("order_id", "a", "b", "", "ünïcödé", "langchain")
Session: TypeAlias = Literal["s", "t"]


@dataclass(frozen=True)
class Do:
    """One call of a session's method."""

    session: Session
    method: str
    argument: Any


@dataclass(frozen=True)
class Reopen:
    """The database is closed and opened again, where it outlives that."""


@dataclass
class Model:
    """A session as plain values."""

    history: list[Message] = field(default_factory=list)
    params: dict[str, Any] = field(default_factory=dict)
    waiting: str | None = None
    last_intent_id: str | None = None
    last_result: Any = None
    plan_execution: Any = None

    def do(self, method: str, argument: Any) -> None:
        match method:
            case "append":
                self._append(argument)
            case "merge":
                self.params |= {
                    name: value for name, value in argument.items() if value is not None
                }
            case "prune" if len(self.history) > argument:
                self.history = self.history[len(self.history) - argument :]
                while self.history and "tool_call_id" in str(self.history[0].metadata):
                    del self.history[0]
            case "clear":
                vars(self).update(vars(Model()))
            case _ if method.startswith("set_"):
                setattr(self, method.removeprefix("set_"), argument)

    def _append(self, message: Message) -> None:
        places = [
            place
            for place, known in enumerate(self.history)
            if known.id is not None and known.id == message.id
        ]
        if places:
            self.history[places[0]] = message
        else:
            self.history.append(message)


def metadata_of(role: str, own: Mapping[str, Any], answers: bool) -> dict[str, Any]:
    """Metadata of a message; a tool's may name the call that it answers."""
    foreign = (
        {"langchain": {"tool_call_id": "c1", "status": "error"}}
        if answers and role == "tool"
        else {}
    )
    return {**own, **foreign}


own_metadata = st.dictionaries(st.sampled_from(["a", "b", "channel"]), json_values, max_size=2)
messages = st.builds(
    lambda role, text, own, answers, message_id: Message(
        role, text, THEN, metadata_of(role, own, answers), message_id
    ),
    st.sampled_from(["user", "agent", "tool"]),
    st.sampled_from(TEXTS),
    own_metadata,
    st.booleans(),
    st.sampled_from([None, None, None, "1", "2"]),
)
names = st.none() | st.sampled_from(["order_id", "a", "ünïcödé"])
alike = st.sampled_from([None, None, 0, False, 0.0, "", 1, True, 1.0])
"""Few values, which meet again and again and are easily taken for each other."""
small = st.dictionaries(st.sampled_from(NAMES[:2]), alike, min_size=1, max_size=2)
objects = st.one_of(
    small, small, small, st.dictionaries(st.sampled_from(NAMES), json_values, max_size=3)
)
large = st.dictionaries(
    st.integers(0, 40).map("key {}".format), st.sampled_from(TEXTS), min_size=20, max_size=30
)
ARGUMENTS: dict[str, st.SearchStrategy[Any]] = {
    "append": messages,
    "merge": st.one_of(small, small, objects, objects, large),
    "prune": st.integers(0, 5),
    "clear": st.none(),
    "set_waiting": names,
    "set_last_intent_id": names,
    "set_last_result": st.one_of(alike, alike, alike, json_values, large),
    "set_plan_execution": st.none() | objects,
}
FREQUENT = (*ARGUMENTS, *["append"] * 6, *["merge", "set_last_result"] * 4, "set_waiting", "prune")
calls = st.sampled_from(FREQUENT).flatmap(
    lambda method: st.builds(
        Do, st.sampled_from(["s", "s", "t"]), st.just(method), ARGUMENTS[method]
    )  # type: ignore[arg-type]
)
programs = st.lists(calls | calls | calls | st.just(Reopen()), min_size=10, max_size=40)


async def assert_same(
    calls: Calls, memory: ConversationMemory, models: Mapping[str, Model]
) -> None:
    for name, model in models.items():
        session = memory.for_session(name)
        found = {
            remembered: await calls.call(session, remembered)
            for remembered in vars(model)
            if remembered != "history"
        }
        wanted = {
            remembered: value
            for remembered, value in vars(model).items()
            if remembered != "history"
        }
        assert repr(found) == repr(wanted), "with types and order"
        history = await calls.call(session, "history")
        assert history == model.history
        assert [repr(message.metadata) for message in history] == [
            repr(message.metadata) for message in model.history
        ]
        assert [one.id for one, known in zip(history, model.history, strict=True) if known.id] == [
            one.id for one in model.history if one.id
        ]


async def compare(program: list[Do | Reopen], backend: Backend, mode: Mode, folder: Path) -> None:
    calls, models, url = Calls(mode), {"s": Model(), "t": Model()}, backend.new_url(folder)
    log = MessageLog.open(url, compress=backend.compress)
    for step in program:
        memory = ConversationMemory(log)
        if isinstance(step, Do):
            arguments = [] if step.method == "clear" else [step.argument]
            await calls.call(memory.for_session(step.session), step.method, *arguments)
            models[step.session].do(step.method, step.argument)
        elif backend.survives_close:
            await calls.call(log, "close")
            log = MessageLog.open(url, compress=backend.compress)
        await assert_same(calls, ConversationMemory(log), models)
    assert_sound(DeltaSaver(log))
    await calls.call(log, "close")


@pytest.mark.parametrize("backend", [*BACKENDS, *SAMPLED], ids=lambda backend: backend.name)
def test_a_session_is_what_a_dict_would_be(backend: Backend, mode: Mode, folder: Path) -> None:
    few = settings().derandomize and backend.compress  # how a row is stored is tested elsewhere

    @settings(max_examples=1 + settings().max_examples // 2 if few else settings().max_examples)
    @given(programs)
    def carry_out(program: list[Do | Reopen]) -> None:
        work = compare(program, backend, mode, folder)
        asyncio.run(work) if mode == "async" else run_without_loop(work)

    carry_out()
