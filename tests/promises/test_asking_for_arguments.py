"""Promise: an agent's user is asked for arguments of any form, and the model is told the call."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, tool
from pydantic import BaseModel
from scripted_model import ScriptedModel, scripted

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


def agent(tool: BaseTool, message: AIMessage, *middleware: Any) -> tuple[Any, ScriptedModel]:
    """An agent whose model says this, and then that it is done."""
    called.clear()
    answers = iter([message, AIMessage("Done.")])
    model = scripted(lambda _: next(answers))
    hooks = [AskUserMiddleware([tool]), *middleware]
    return create_agent(model, [tool], middleware=hooks, checkpointer=DeltaSaver()), model


def missing(tool: BaseTool) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": tool.name, "args": {}, "id": "c1"}])


PEOPLE, PLACE = ["Ann", "Bob"], {"street": "1 High St", "city": "Leeds"}


ANSWERS: list[tuple[BaseTool, dict[str, Any], Any]] = [
    (invite, {"text": "Ann, Bob"}, PEOPLE),
    (invite, {"text": "Ann and Bob"}, PEOPLE),
    (invite, {"text": '["Ann", "Bob"]'}, PEOPLE),
    (invite, {"resume": {"attendees": PEOPLE}}, PEOPLE),
    (invite, {"resume": {"attendees": "Ann, Bob"}}, PEOPLE),
    (roll, {"text": "3, 4"}, [3, 4]),
    (send, {"text": '{"street": "1 High St", "city": "Leeds"}'}, PLACE),
    (send, {"resume": PLACE}, PLACE),
    (send, {"resume": {"address": PLACE}}, PLACE),
]


def test_lists_and_objects_are_asked_for_in_words_as_json_and_as_forms() -> None:
    for tool_, given, wanted in ANSWERS:
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
COPIES: dict[str, dict[str, Any]] = {
    "openai": {
        **{"type": "function_call", "id": "fc_1", "call_id": "c1"},
        **{"name": "cancel_order", "arguments": "{}"},
    },
    "anthropic": {
        **{"type": "tool_use", "id": "c1", "name": "cancel_order"},
        **{"input": {}, "caller": {"type": "direct"}},
    },
}


@pytest.mark.interop
def test_the_copies_of_a_call_say_what_was_called() -> None:
    from payloads import CLAUDE, RESPONSES  # noqa: PLC0415 - not needed by the others

    for (provider, block), more in product(COPIES.items(), ([], [ContextMiddleware(budget=9_000)])):
        made = {"model_provider": provider}
        asked = AIMessage([block], tool_calls=[CALL], response_metadata=made)
        graph, model = agent(cancel_order, asked, *more)
        converse(graph, "Cancel my order", thread_id="t")
        converse(graph, "O-1", thread_id="t")
        sends = RESPONSES if provider == "openai" else CLAUDE
        payload = sends._get_request_payload(list(model.asked[-1]))
        sent = payload.get("input") or payload["messages"]
        assert called == ["O-1"]
        assert any("O-1" in str(part) and "cancel_order" in str(part) for part in sent), sent
