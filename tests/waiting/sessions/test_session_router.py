"""A router that uses only the sessions' API.

It receives, classifies, merges, asks, waits for days, acts and answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from savers import BACKENDS, Backend, Calls, Mode

from langmem_ext import ConversationMemory, Message, SessionHandle

PROMPTS = {"order_id": "What's your order ID?", "gift": "Is it a gift?"}
NEEDED = {"check_order": ["order_id"], "wrap_order": ["order_id", "gift"]}


@dataclass(frozen=True)
class AskUser:
    """The plan cannot go on without a parameter."""

    param: str


@dataclass(frozen=True)
class ToolCall:
    """The plan can call its tool."""

    tool: str
    args: Mapping[str, Any]


def classify(
    text: str, waiting: str | None, last_intent: str | None
) -> tuple[str | None, dict[str, Any]]:
    """The intent of a message and the parameters in it: while one is waited for, the message is
    first taken as an attempt to give it.
    """
    found: dict[str, Any] = {"order_id": match[0] if (match := re.search(r"O-\d+", text)) else None}
    if waiting == "gift" and text.lower() in ("yes", "no"):
        found["gift"] = text.lower() == "yes"
    if "check" in text:
        return "check_order", found
    return ("wrap_order" if "wrap" in text else last_intent), found


def plan(intent: str, params: Mapping[str, Any]) -> AskUser | ToolCall:
    missing = [name for name in NEEDED[intent] if name not in params]
    return (
        AskUser(missing[0])
        if missing
        else ToolCall(intent, {name: params[name] for name in NEEDED[intent]})
    )


class Router:
    """A router as a program would write one; what it keeps between two messages is in the memory
    alone.
    """

    def __init__(self, memory: ConversationMemory, mode: Mode) -> None:
        self.memory = memory
        self.calls = Calls(mode)
        self.called: list[ToolCall] = []

    async def receive(self, interaction: object, text: str) -> str:
        session, call = self.memory.for_interaction(interaction), self.calls.call
        await call(session, "prune", 10)
        await call(session, "append", Message("user", text))
        if text == "reset":
            await call(session, "clear")
            return "Let us start again."
        waiting = await call(session, "waiting")
        intent, found = classify(text, waiting, await call(session, "last_intent_id"))
        await call(session, "merge", found)
        if waiting is not None and found.get(waiting) is not None:
            await call(session, "set_waiting", None)
        await call(session, "set_last_intent_id", intent)
        reply = await self._carry_out(session, intent)
        await call(session, "append", Message("agent", reply))
        return reply

    async def _carry_out(self, session: SessionHandle, intent: str | None) -> str:
        call = self.calls.call
        if intent is None:
            return "I can check or wrap an order."
        step = plan(intent, await call(session, "params"))
        if isinstance(step, AskUser):
            await call(session, "set_waiting", step.param)
            await call(session, "set_plan_execution", {"intent_id": intent, "cursor": 0})
            return PROMPTS[step.param]
        self.called.append(step)
        result = {"order_id": step.args["order_id"], "carrier": "Swift Post", "delay": 0}
        await call(
            session, "append", Message("tool", f"{step.tool}: done", metadata={"tool": step.tool})
        )
        await call(session, "merge", {"carrier": result["carrier"]})
        await call(session, "set_last_result", result)
        await call(session, "set_plan_execution", None)
        return f"{step.args['order_id']} is with Swift Post."


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Backend:
    found: Backend = request.param
    return found


async def test_a_router_asks_waits_and_goes_on(
    backend: Backend, mode: Mode, tmp_path: Path
) -> None:
    url = backend.new_url(tmp_path)
    memory = ConversationMemory(url)
    called: list[ToolCall] = []

    async def say(
        text: str,
        interaction: object = SimpleNamespace(id="i1", context=SimpleNamespace(session_id="s1")),
    ) -> str:
        nonlocal memory
        router = Router(memory, mode)
        reply = await router.receive(interaction, text)
        called.extend(router.called)
        if backend.survives_close:  # days pass before the next message
            await Calls(mode).call(memory, "close")
            memory = ConversationMemory(url)
        return reply

    assert await say("I want to check my order") == PROMPTS["order_id"]
    session = memory.for_session("s1")
    assert (session.waiting(), session.last_intent_id()) == ("order_id", "check_order")
    assert session.plan_execution() == {"intent_id": "check_order", "cursor": 0}
    assert await say("hello?") == PROMPTS["order_id"], "asked again"
    assert await say("hello", {"id": "i9", "context": {}}) == "I can check or wrap an order.", (
        "another session knows nothing of it"
    )
    assert await say("It's O-12345") == "O-12345 is with Swift Post."
    session = memory.for_session("s1")
    assert (session.waiting(), session.plan_execution()) == (None, None)
    assert session.params() == {"order_id": "O-12345", "carrier": "Swift Post"}
    assert session.last_result() == {"order_id": "O-12345", "carrier": "Swift Post", "delay": 0}
    said = [(message.role, message.text) for message in session.history()]
    assert said[0] == ("user", "I want to check my order")
    assert said[-3:] == [
        ("user", "It's O-12345"),
        ("tool", "check_order: done"),
        ("agent", "O-12345 is with Swift Post."),
    ]

    assert await say("wrap it") == PROMPTS["gift"], "what is known is not asked for again"
    assert await say("no") == "O-12345 is with Swift Post.", "False is an answer"
    assert memory.for_session("s1").params()["gift"] is False
    assert called == [
        ToolCall("check_order", {"order_id": "O-12345"}),
        ToolCall("wrap_order", {"order_id": "O-12345", "gift": False}),
    ]

    assert len(memory.for_session("s1").history()) == 12
    assert await say("check it again") == "O-12345 is with Swift Post."
    assert len(memory.for_session("s1").history()) == 13, "ten, and what was said since"
    assert await say("reset") == "Let us start again."
    session = memory.for_session("s1")
    assert (session.history(), session.params(), session.waiting(), session.last_intent_id()) == (
        [],
        {},
        None,
        None,
    )
    assert await say("check my order") == PROMPTS["order_id"]
    await Calls(mode).call(memory, "close")
