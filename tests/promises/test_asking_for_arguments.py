"""Promise: an agent's user is asked for arguments of any form, and the model is told the call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool, tool
from pydantic import BaseModel

from langmem_ext import AskUserMiddleware, ContextMiddleware, DeltaSaver, converse

called: list[Any] = []


class Address(BaseModel):
    """Where something is sent."""

    street: str
    city: str


@tool
def invite(attendees: list[str]) -> str:
    """Invite people."""
    called.append(attendees)
    return "Invited."


@tool
def roll(dice: list[int]) -> str:
    """Roll dice."""
    called.append(dice)
    return "Rolled."


@tool
def send(address: Address) -> str:
    """Send a parcel."""
    called.append(address.model_dump())
    return "Sent."


@tool
def cancel_order(order_id: str) -> str:
    """Cancel an order."""
    called.append(order_id)
    return "Cancelled."


class ModelDouble(GenericFakeChatModel):
    """Answers what it is given, and keeps what it was sent."""

    sent: list[list[BaseMessage]] = []

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *rest: Any, **options: Any) -> Any:
        self.sent.append(messages)
        return super()._generate(messages, *rest, **options)


def agent(tool: BaseTool, message: AIMessage, *middleware: Any) -> tuple[Any, ModelDouble]:
    called.clear()
    model = ModelDouble(messages=iter([message, AIMessage("Done.")]), sent=[])
    hooks = [AskUserMiddleware([tool]), *middleware]
    return create_agent(model, [tool], middleware=hooks, checkpointer=DeltaSaver()), model


def missing(tool: BaseTool) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": tool.name, "args": {}, "id": "c1"}])


PEOPLE, PLACE = ["Ann", "Bob"], {"street": "1 High St", "city": "Leeds"}


def answers() -> Iterator[tuple[BaseTool, dict[str, Any], Any]]:
    yield from (
        (invite, given, PEOPLE)
        for given in (
            {"text": "Ann, Bob"},
            {"text": "Ann and Bob"},
            {"text": '["Ann", "Bob"]'},
            {"resume": {"attendees": PEOPLE}},
            {"resume": {"attendees": "Ann, Bob"}},
        )
    )
    yield roll, {"text": "3, 4"}, [3, 4]
    yield from (
        (send, given, PLACE)
        for given in (
            {"text": '{"street": "1 High St", "city": "Leeds"}'},
            {"resume": PLACE},
            {"resume": {"address": PLACE}},
        )
    )


def test_lists_and_objects_are_asked_for_in_words_as_json_and_as_forms() -> None:
    for tool_, given, wanted in answers():
        graph, _ = agent(tool_, missing(tool_))
        assert len(converse(graph, "go on", thread_id="t").interrupts) == 1
        assert converse(graph, thread_id="t", **given).reply == "Done.", given
        assert called == [wanted], given


def test_what_the_tool_would_refuse_is_asked_for_again() -> None:
    for tool_, text in ((roll, "three, four"), (send, "Leeds"), (send, '{"street": "1"}')):
        graph, _ = agent(tool_, missing(tool_))
        converse(graph, "go on", thread_id="t")
        assert len(converse(graph, text, thread_id="t").interrupts) == 1, text
        assert called == []


CALL = {"name": "cancel_order", "args": {}, "id": "c1"}
COPIES = {
    "openai": {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "cancel_order",
        "arguments": "{}",
    },
    "anthropic": {
        "type": "tool_use",
        "id": "c1",
        "name": "cancel_order",
        "input": {},
        "caller": {"type": "direct"},
    },
}


def payload_of(provider: str, messages: list[BaseMessage]) -> dict[str, Any]:
    """What LangChain's integration would send."""
    from payloads import CLAUDE, RESPONSES  # noqa: PLC0415 - not needed by the others

    model = RESPONSES if provider == "openai" else CLAUDE
    return dict(model._get_request_payload(messages))


@pytest.mark.interop
@pytest.mark.parametrize("provider", COPIES)
@pytest.mark.parametrize("governed", [False, True])
def test_the_copies_of_a_call_say_what_was_called(provider: str, governed: bool) -> None:
    block = COPIES[provider]
    asked = AIMessage([block], tool_calls=[CALL], response_metadata={"model_provider": provider})
    more = [ContextMiddleware(budget=9_000)] if governed else []
    graph, model = agent(cancel_order, asked, *more)
    converse(graph, "Cancel my order", thread_id="t")
    converse(graph, "O-1", thread_id="t")
    payload = payload_of(provider, list(model.sent[-1]))
    sent = payload.get("input") or payload["messages"]
    assert called == ["O-1"]
    assert any("O-1" in str(part) and "cancel_order" in str(part) for part in sent), sent
