"""Histories and sessions on the waiting graph's threads: they see what the graph sees, and what
they write leaves its question answerable.

Every step of a user's is a process of its own, and so is everything in between: what waits, waits
in the database.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import desk
import pytest
from conversation import Conversation
from langchain_core.messages import AIMessage, HumanMessage
from prune_reference import rows
from savers import Calls, Mode

from langmem_ext import (
    ConversationMemory,
    DeltaSaver,
    Message,
    ThreadChatMessageHistory,
    Turn,
    aconverse,
    converse,
    examine,
)

ORDER_ID = "What's your order ID?"
ADDRESS = "What's the new address?"

CHANNELS = {
    "params": "params",
    "waiting": "waiting_for_param",
    "plan_execution": "plan",
    "last_intent_id": "last_intent_id",
    "last_result": "last_result",
}
"""Channel of the graph by what the handle calls it."""


@asynccontextmanager
async def opened(talk: Conversation) -> AsyncIterator[tuple[DeltaSaver, Any]]:
    """A newly opened database with its graph."""
    saver = DeltaSaver.open(talk.database)
    try:
        yield saver, desk.make_graph(saver, talk.shop)
    finally:
        await saver.aclose()


async def say(mode: Mode, graph: Any, text: str) -> Turn:
    return (
        converse(graph, text, thread_id="t1")
        if mode == "sync"
        else await aconverse(graph, text, thread_id="t1")
    )


async def look(mode: Mode, saver: DeltaSaver) -> dict[str, Any]:
    session, calls = ConversationMemory(saver).for_session("t1"), Calls(mode)
    return {name: await calls.call(session, name) for name in CHANNELS}


async def assert_sees_what_the_graph_sees(mode: Mode, saver: DeltaSaver, graph: Any) -> None:
    state = graph.get_state({"configurable": {"thread_id": "t1"}})
    empty: dict[str, Any] = dict.fromkeys(CHANNELS) | {"params": {}}
    assert await look(mode, saver) == {
        name: state.values.get(channel, empty[name]) for name, channel in CHANNELS.items()
    }
    history = await Calls(mode).call(ConversationMemory(saver).for_session("t1"), "history")
    roles = {"human": "user", "ai": "agent", "tool": "tool"}
    assert [(one.id, one.text, one.role) for one in history] == [
        (m.id, m.text, roles[m.type]) for m in state.values.get("messages", [])
    ]


# -- what the graph writes, the handle reads -------------------------------------------------------


async def test_the_handle_sees_what_the_graph_sees_at_every_turn(
    talk: Conversation, mode: Mode
) -> None:
    for text in (
        "hello",
        "I want a refund",
        "O-5",
        "banana",
        "where is my order O-6?",
        "$20",
        "cancel that",
        "I want to cancel order O-7",
    ):
        async with opened(talk) as (saver, graph):
            turn = await say(mode, graph, text)
            await assert_sees_what_the_graph_sees(mode, saver, graph)
            assert (await look(mode, saver))["waiting"] == turn.waiting_for
    assert turn.waiting_for == "confirmation"
    async with opened(talk) as (saver, graph):
        await say(mode, graph, "yes")
        await assert_sees_what_the_graph_sees(mode, saver, graph)
    assert talk.shop.effects()[-1] == ("cancel_order", {"number": "O-7"})


def test_a_wait_that_the_graph_finds_void_is_none(talk: Conversation) -> None:
    talk.say("where is my order O-1?")
    with talk.graph() as graph:
        session = ConversationMemory(graph.checkpointer).for_session("t1")
        session.set_waiting("order_id")
        assert (session.waiting(), converse(graph, "", thread_id="t1").waiting_for) == (None, None)
    talk.say("I want to check my order")
    with talk.graph() as graph:
        session = ConversationMemory(graph.checkpointer).for_session("t1")
        assert session.waiting() == "order_id"
        session.set_plan_execution(None)
        assert (session.waiting(), converse(graph, "", thread_id="t1").waiting_for) == (None, None)


@pytest.mark.parametrize("call", range(1, 9))
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_in_mid_turn_the_handle_and_the_graph_agree_on_what_waits(
    talk: Conversation, call: int, when: str
) -> None:
    talk.say("I want a refund of $12 for O-1")
    talk.step("converse", text="a voucher", kill={"call": call, "when": when})
    with talk.graph() as graph:
        pending = [
            interrupt.value["param"] for interrupt in graph.get_state(talk.config).interrupts
        ]
        waiting = ConversationMemory(graph.checkpointer).for_session("t1").waiting()
        assert [waiting] == (pending or [None])


# -- what is written while a question waits --------------------------------------------------------

Write = Callable[[Calls, ThreadChatMessageHistory, Any], Awaitable[Any]]

WRITES: dict[str, Write] = {
    "history adds": lambda calls, history, _: calls.call(
        history, "add_messages", [HumanMessage("by the way"), AIMessage("yes?")]
    ),
    "history is cleared": lambda calls, history, _: calls.call(history, "clear"),
    "handle appends": lambda calls, _, session: calls.call(
        session, "append", Message("tool", "a parcel was found")
    ),
    "handle prunes": lambda calls, _, session: calls.call(session, "prune", 1),
    "handle prunes all": lambda calls, _, session: calls.call(session, "prune", 0),
    "handle merges another value": lambda calls, _, session: calls.call(
        session, "merge", {"carrier": ""}
    ),
    "handle notes a result": lambda calls, _, session: calls.call(
        session, "set_last_result", False
    ),
    "handle notes an intent": lambda calls, _, session: calls.call(
        session, "set_last_intent_id", "browse"
    ),
    "handle waits for it again": lambda calls, _, session: calls.call(
        session, "set_waiting", "order_id"
    ),
    "handle waits for nothing": lambda calls, _, session: calls.call(session, "set_waiting", None),
    "handle waits for something else": lambda calls, _, session: calls.call(
        session, "set_waiting", "amount"
    ),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("restarted", [False, True], ids=["same process", "days later"])
async def test_a_question_stays_answerable(
    name: str, restarted: bool, talk: Conversation, mode: Mode
) -> None:
    talk.say("I want to check my order")
    calls = Calls(mode)
    async with opened(talk) as (saver, graph):
        before = graph.get_state(talk.config)
        history, session = (
            ThreadChatMessageHistory("t1", saver),
            ConversationMemory(saver).for_session("t1"),
        )
        for _ in range(2):
            await WRITES[name](calls, history, session)
        after = graph.get_state(talk.config)
        assert (before.next, after.next) == (("ask_user",), ("ask_user",))
        if name not in ("handle waits for nothing", "handle waits for something else"):
            assert await calls.call(session, "waiting") == "order_id"
        assert [finding for finding in examine(saver).findings if finding.severity != "note"] == []
        if not restarted:
            assert (await say(mode, graph, "It's O-12345")).reply.endswith(
                "Order O-12345 is on its way."
            )
    if restarted:
        turn = talk.say("")
        assert (turn["waiting_for"], turn["attempt"], turn["reply"].splitlines()[-1]) == (
            "order_id",
            1,
            ORDER_ID,
        )
        assert talk.say("It's O-12345")["reply"].endswith("Order O-12345 is on its way.")
    assert talk.shop.effects() == [("check_order", {"number": "O-12345"})]


async def test_filling_in_what_is_waited_for_lets_the_request_go_on(
    talk: Conversation, mode: Mode
) -> None:
    talk.say("I want to change my delivery address")
    async with opened(talk) as (saver, graph):
        session = ConversationMemory(saver).for_session("t1")
        await Calls(mode).call(session, "merge", {"order_id": "O-3"})
        assert await Calls(mode).call(session, "waiting") is None
        turn = await say(mode, graph, "")
        assert (turn.waiting_for, turn.reply.splitlines()[-1]) == ("address", ADDRESS)
        assert await Calls(mode).call(session, "waiting") == "address"
    talk.say("12 Main Street, Springfield")
    assert talk.shop.effects() == [
        ("change_address", {"number": "O-3", "address": "12 Main Street, Springfield"})
    ]


async def test_clearing_a_session_ends_what_waited(talk: Conversation, mode: Mode) -> None:
    talk.say("I want a refund")
    talk.say("O-5")
    talk.say("I want to check my order")
    async with opened(talk) as (saver, graph):
        await Calls(mode).call(ConversationMemory(saver).for_session("t1"), "clear")
        assert await look(mode, saver) == dict.fromkeys(CHANNELS) | {"params": {}}
        assert list(rows(saver, "SELECT waiting_for FROM thread")) == [(None,)]
        assert (await say(mode, graph, "")).waiting_for is None
        assert (
            await say(mode, graph, "where is my order O-9?")
        ).reply == "Order O-9 is on its way."
    assert talk.shop.effects() == [("check_order", {"number": "O-9"})]


@pytest.mark.parametrize("call", range(1, 9))
def test_a_write_on_an_unfinished_turn_leaves_it_to_be_finished_or_asked_again(
    talk: Conversation, call: int
) -> None:
    talk.say("I want a refund of $12 for O-1")
    talk.step("converse", text="a voucher", id="m2", kill={"call": call, "when": "before"})
    with talk.graph() as graph:
        ConversationMemory(graph.checkpointer).for_session("t1").append(
            Message("tool", "a parcel was found")
        )
    turn = talk.say("a voucher", message_id="m2")
    if turn["waiting_for"]:  # the graph hears a message only while it is the last one
        assert turn["waiting_for"] == "method"
        turn = talk.say("a voucher", message_id="m3")
    assert "12 paid back by voucher for O-1" in turn["reply"]
    assert talk.shop.effects() == [("refund", {"number": "O-1", "amount": 12, "method": "voucher"})]
    assert [message.id for message in talk.state()["messages"]].count("m2") == 1


def test_a_session_goes_on_in_the_graph_and_back(talk: Conversation) -> None:
    with ConversationMemory(talk.database) as memory:
        session = memory.for_session("t1")
        session.append(Message("user", "hello", metadata={"channel": "web"}))
        session.set_waiting("order_id")
    assert talk.say("where is my order O-1?")["reply"] == "Order O-1 is on its way."
    with ConversationMemory(talk.database) as memory:
        session = memory.for_session("t1")
        assert [message.role for message in session.history()] == [
            "user",
            "user",
            "agent",
            "tool",
            "agent",
        ]
        assert session.history()[0].metadata == {"channel": "web"}
        assert (session.waiting(), session.last_intent_id(), session.params()["order_id"]) == (
            None,
            "check_order",
            "O-1",
        )
