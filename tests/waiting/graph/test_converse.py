"""What `converse` promises its caller: delivered once, one at a time, from any state, sync and
async alike, on any graph.
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import desk
import pytest
from blockbuster import blockbuster_ctx
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from patience import PATIENCE_S
from typing_extensions import TypedDict

from langmem_ext import (
    ConversationError,
    InvalidInput,
    InvalidThreadId,
    LangmemExtError,
    ThreadBusy,
    Turn,
    aconverse,
    converse,
)
from langmem_ext.storage.driver import Leases
from langmem_ext.waiting.converse import leases_of

THREAD: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def shop(tmp_path: Path) -> desk.Shop:
    return desk.Shop(tmp_path / "shop.db")


@pytest.fixture
def app(shop: desk.Shop) -> Any:
    """The desk's graph in this process, in memory."""
    return desk.make_graph(InMemorySaver(), shop)


def messages(app: Any) -> list[AnyMessage]:
    return list(app.get_state(THREAD).values["messages"])


# -- the turn --------------------------------------------------------------------------------------


def test_a_turn_tells_what_waits(app: Any) -> None:
    turn = converse(app, "I want a refund of $12 for O-1", thread_id="t")
    assert (turn.waiting_for, turn.attempt, turn.params_keys) == (
        "method",
        1,
        ("amount", "order_id"),
    )
    assert turn.reply == "By card or voucher?"
    [waiting] = turn.interrupts
    assert waiting.value["schema"]["enum"] == ["card", "voucher"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        turn.reply = "something else"  # type: ignore[misc]


def test_a_turn_at_rest_waits_for_nothing(app: Any) -> None:
    turn = converse(app, "where is my order O-1?", thread_id="t")
    assert turn == Turn(reply="Order O-1 is on its way.", params_keys=("carrier", "order_id"))


def test_an_edit_of_what_is_waited_for_is_no_waiting_question(app: Any) -> None:
    converse(app, "where is my order O-1?", thread_id="t")
    app.update_state(THREAD, {"waiting_for_param": "order_id"}, as_node="summarize")
    assert converse(app, "", thread_id="t").waiting_for is None


def test_an_empty_message_to_a_new_thread_leaves_no_thread(app: Any) -> None:
    assert converse(app, " ", thread_id="t") == Turn(reply="")
    assert app.get_state(THREAD).values == {}


class UsageDouble(GenericFakeChatModel):
    """Stands in for a chat model in a node of a graph; says how many tokens it used."""


def test_a_turn_counts_the_tokens_of_its_models() -> None:
    used = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    model = UsageDouble(
        messages=iter(
            [AIMessage("Hello", usage_metadata=used, response_metadata={"model_name": "double"})]
        )
    )
    graph = StateGraph(Chat)
    graph.add_node("speak", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_edge(START, "speak")
    turn = converse(graph.compile(checkpointer=InMemorySaver()), "hi", thread_id="t")
    assert (turn.reply, dict(turn.usage)["double"]["total_tokens"]) == ("Hello", 10)


# -- delivered once --------------------------------------------------------------------------------


def test_a_message_id_becomes_the_messages_id(app: Any) -> None:
    converse(app, "I want to check my order", thread_id="t", message_id="m1")
    converse(app, "O-1", thread_id="t", message_id="m2")
    assert [message.id for message in messages(app) if message.type == "human"] == ["m1", "m2"]


def test_a_known_message_is_not_delivered_twice(app: Any, shop: desk.Shop) -> None:
    converse(app, "I want to check my order", thread_id="t", message_id="m1")
    first = converse(app, "O-1", thread_id="t", message_id="m2")
    before = messages(app)
    assert converse(app, "O-1", thread_id="t", message_id="m2") == first
    assert (
        converse(app, "I want to check my order", thread_id="t", message_id="m1").reply
        == first.reply
    )
    assert messages(app) == before
    assert len(shop.calls()) == 1


def test_a_raw_resume_with_a_known_id_replaces_no_message(app: Any) -> None:
    converse(app, "I want to check my order", thread_id="t", message_id="m1")
    app.invoke(Command(resume={"text": "O-1", "id": "m1"}), THREAD)
    assert messages(app)[0].text == "I want to check my order"
    assert converse(app, "O-1", thread_id="t").reply == "Order O-1 is on its way."


def test_the_same_text_twice_is_two_messages(app: Any) -> None:
    for _ in range(2):
        converse(app, "where is my order O-1?", thread_id="t")
    assert sum(message.type == "human" for message in messages(app)) == 2


def test_text_that_cannot_be_stored_is_made_storable(app: Any) -> None:
    turn = converse(app, "hello \ud800", thread_id="t")
    assert turn.reply == "Hello! What can I do for you?"
    assert messages(app)[0].text == "hello ?"


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize("thread_id", ["", None, 1.5, True, b"t", ("t",)])
def test_a_thread_id_that_names_no_thread_is_refused(app: Any, thread_id: Any) -> None:
    with pytest.raises(InvalidThreadId):
        converse(app, "hi", thread_id=thread_id)


@pytest.mark.parametrize("thread_id", ["t", 7, UUID(int=7)])
def test_a_thread_is_named_by_a_string_an_int_or_a_uuid(app: Any, thread_id: Any) -> None:
    converse(app, "hi", thread_id=thread_id)
    assert app.get_state({"configurable": {"thread_id": str(thread_id)}}).values["messages"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": None},
        {"text": 7},
        {"message_id": ""},
        {"message_id": 7},
        {"config": {"configurable": {"checkpoint_id": "1ef"}}},
        {"config": {"configurable": {"thread_id": "another"}}},
    ],
)
def test_an_argument_that_cannot_be_used_changes_nothing(
    app: Any, arguments: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        converse(app, **{"text": "hi", "thread_id": "t", **arguments})
    assert app.get_state(THREAD).values == {}


def test_a_graph_without_a_checkpointer_is_refused() -> None:
    with pytest.raises(InvalidInput, match="checkpointer"):
        converse(desk.BUILDER.compile(), "hi", thread_id="t")


def test_more_configuration_reaches_the_graph() -> None:
    graph = StateGraph(Chat)
    graph.add_node(
        "speak", lambda state, config: {"messages": [AIMessage(config["configurable"]["tenant"])]}
    )
    graph.add_edge(START, "speak")
    started = []

    class Recorder(BaseCallbackHandler):
        def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
            started.append(kwargs.get("name"))

    app = graph.compile(checkpointer=InMemorySaver())
    turn = converse(
        app,
        "hi",
        thread_id="t",
        config={"configurable": {"tenant": "acme"}, "callbacks": [Recorder()]},
    )
    assert turn.reply == "acme"
    assert "speak" in started


# -- one writer per thread -------------------------------------------------------------------------


def test_other_threads_are_not_kept_waiting(app: Any) -> None:
    with leases_of(app.checkpointer).lease("other", wait=0):
        assert converse(app, "hi", thread_id="t", wait=0).reply


def test_a_busy_thread_is_waited_for(app: Any) -> None:
    held, refused = threading.Event(), threading.Event()

    def keep() -> None:
        with leases_of(app.checkpointer).lease("t", wait=0):
            held.set()
            refused.wait(PATIENCE_S)
            time.sleep(0.1)

    keeper = threading.Thread(target=keep)
    keeper.start()
    held.wait(PATIENCE_S)
    try:
        with pytest.raises(ThreadBusy, match="'t'"):
            converse(app, "hi", thread_id="t", wait=0.01)
        refused.set()
        assert converse(app, "hi", thread_id="t", wait=PATIENCE_S).reply
    finally:
        refused.set()
        keeper.join()


async def test_a_cancelled_caller_leaves_the_thread_free(app: Any) -> None:
    async with leases_of(app.checkpointer).alease("t", wait=0):
        waiting = asyncio.create_task(aconverse(app, "hi", thread_id="t", wait=PATIENCE_S))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(ThreadBusy):
            await aconverse(app, "hi", thread_id="t", wait=0.02)
    assert (await aconverse(app, "hi", thread_id="t", wait=0)).reply


class LeasingSaver(InMemorySaver):
    """A saver with leases of its own, which keep a record."""

    def __init__(self) -> None:
        super().__init__()
        self.leases = Leases()
        self.given: list[tuple[str, float]] = []

    def lease(self, thread_id: str, *, wait: float) -> Any:
        self.given.append((thread_id, wait))
        return self.leases.lease(thread_id, wait=wait)

    def alease(self, thread_id: str, *, wait: float) -> Any:
        self.given.append((thread_id, wait))
        return self.leases.alease(thread_id, wait=wait)


async def test_a_savers_own_lease_is_used(shop: desk.Shop) -> None:
    saver = LeasingSaver()
    app = desk.make_graph(saver, shop)
    converse(app, "hi", thread_id="t", wait=3)
    await aconverse(app, "hi", thread_id=7)
    assert saver.given == [("t", 0), ("7", 0)], "it is waited for only where it is not free"


# -- sync and async alike --------------------------------------------------------------------------

TALK = [
    "I want a refund",
    "$5",
    "where is my order O-9?",
    "banana",
    "O-1",
    "cancel my order O-2",
    "no",
    "card",
    "hm",
    "where is my order O-404?",
]


def comparable(turn: Turn) -> Turn:
    return dataclasses.replace(turn, interrupts=tuple(waiting.value for waiting in turn.interrupts))


async def test_async_turns_are_the_same_as_sync_ones(tmp_path: Path) -> None:
    app = desk.make_graph(InMemorySaver(), desk.Shop(tmp_path / "shop.db"))
    for text in TALK:
        now = datetime.now()
        sync = converse(app, text, thread_id="sync", now=now)
        assert comparable(sync) == comparable(
            await aconverse(app, text, thread_id="async", now=now)
        )


async def test_async_turns_make_no_blocking_call() -> None:
    """On a graph whose tools are async themselves; a blocking call raises."""
    app = desk.async_desk().compile(checkpointer=InMemorySaver())
    with blockbuster_ctx():
        assert (await aconverse(app, "where is it?", thread_id="t")).waiting_for == "order_id"
        assert (await aconverse(app, "O-1", thread_id="t")).reply == "Order O-1 is on its way."


# -- graphs of others ------------------------------------------------------------------------------


class Chat(TypedDict):
    """The state of somebody else's graph."""

    messages: Annotated[list[AnyMessage], add_messages]


def foreign(*, asks: int = 1, **compiled: Any) -> Any:
    """Somebody else's graph: `asks` nodes that ask at once, then one that answers."""
    graph = StateGraph(Chat)

    def ask(number: int) -> Any:
        return lambda state: {
            "messages": [HumanMessage(f"{number}: {interrupt(f'Question {number}?')!r}")]
        }

    for number in range(asks):
        graph.add_node(f"ask{number}", ask(number))
        graph.add_edge(START, f"ask{number}")
        graph.add_edge(f"ask{number}", "done")
    graph.add_node("done", lambda state: {"messages": [AIMessage("Thank you")]})
    graph.add_edge("done", END)
    return graph.compile(checkpointer=InMemorySaver(), **compiled)


def test_another_graphs_question_is_answered_with_plain_text() -> None:
    app = foreign()
    first = converse(app, "hi", thread_id="t", message_id="m1")
    assert (first.reply, first.waiting_for, len(first.interrupts)) == ("Question 0?", None, 1)
    assert converse(app, "blue", thread_id="t").reply == "Thank you"
    assert [message.text for message in messages(app)] == ["hi", "0: 'blue'", "Thank you"]
    assert converse(app, "hi", thread_id="t", message_id="m1").reply == "Thank you"


async def test_another_graphs_question_is_answered_in_async_runs_too() -> None:
    app = foreign()
    await aconverse(app, "hi", thread_id="t")
    assert (await aconverse(app, "blue", thread_id="t")).reply == "Thank you"


def test_several_questions_at_once_are_answered_one_after_the_other() -> None:
    app = foreign(asks=2)
    turn = converse(app, "hi", thread_id="t")
    assert turn.reply == "Question 0?\n(1 more to answer after this.)"
    assert converse(app, "blue", thread_id="t").reply == "Question 1?"
    assert not converse(app, "green", thread_id="t").interrupts
    assert [message.text for message in messages(app)] == [
        "hi",
        "0: 'blue'",
        "1: 'green'",
        "Thank you",
    ]


@pytest.mark.parametrize(
    "breakpoints",
    [{"interrupt_before": ["done"]}, {"interrupt_after": ["ask0"]}, {"interrupt_before": "*"}],
)
def test_a_breakpoint_is_not_passed(breakpoints: dict[str, Any]) -> None:
    app = foreign(**breakpoints)
    converse(app, "hi", thread_id="t", message_id="m1")
    if not app.get_state(THREAD).interrupts:
        app.invoke(None, THREAD)
    converse(app, "blue", thread_id="t")
    assert app.get_state(THREAD).next == ("done",)
    with pytest.raises(ConversationError, match="breakpoint before 'done'"):
        converse(app, "green", thread_id="t")
    assert converse(app, "hi", thread_id="t", message_id="m1").reply == ""
    app.invoke(None, THREAD)
    assert [message.text for message in messages(app)] == ["hi", "0: 'blue'", "Thank you"]


def test_a_breakpoint_in_a_waiting_graph_is_not_passed(shop: desk.Shop) -> None:
    app = desk.BUILDER.compile(checkpointer=InMemorySaver(), interrupt_before=["call_tool"])
    desk.COUNTER.path = shop.path
    converse(app, "where is my order O-1?", thread_id="t")
    with pytest.raises(ConversationError):
        converse(app, "hurry up", thread_id="t")
    assert shop.calls() == []
    app.invoke(None, THREAD)
    assert shop.effects() == [("check_order", {"number": "O-1"})]


def stuck() -> Any:
    """Somebody else's graph that fails whenever the last message says so."""

    def answer(state: Chat) -> dict[str, Any]:
        if state["messages"][-1].text == "fail":
            raise RuntimeError("as ever")
        return {"messages": [AIMessage(f"{len(state['messages'])} seen")]}

    return (
        StateGraph(Chat)
        .add_node("answer", answer)
        .add_edge(START, "answer")
        .compile(checkpointer=InMemorySaver())
    )


async def test_a_turn_that_always_fails_stands_in_no_other_messages_way(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = stuck()
    for text, message_id in (("fail", "m1"), ("fail", "m1"), ("", None)):
        with pytest.raises(RuntimeError, match="as ever"):
            converse(app, text, thread_id="t", message_id=message_id)
    with pytest.raises(RuntimeError, match="as ever"):
        await aconverse(app, "fail", thread_id="t", message_id="m2")
    assert (await aconverse(app, "go on", thread_id="t", message_id="m3")).reply == "3 seen"
    assert converse(app, "fine", thread_id="t").reply == "5 seen"
    assert converse(app, "go on", thread_id="t", message_id="m3").reply == "5 seen", (
        "it was delivered twice"
    )
    assert [message.text for message in messages(app)] == [
        "fail",
        "fail",
        "go on",
        "3 seen",
        "fine",
        "5 seen",
    ]
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "as ever" not in caplog.text


def test_a_graph_that_takes_no_messages_is_refused() -> None:
    class Counter(TypedDict):
        count: int

    graph = StateGraph(Counter)
    graph.add_node("add", lambda state: {"count": 1})
    graph.add_edge(START, "add")
    with pytest.raises(ConversationError, match="messages"):
        converse(graph.compile(checkpointer=InMemorySaver()), "hi", thread_id="t")


def test_a_node_that_failed_runs_again_before_the_next_message() -> None:
    tries = []

    def fragile(state: Chat) -> dict[str, Any]:
        tries.append(len(state["messages"]))
        if len(tries) == 1:
            raise RuntimeError("no connection")
        return {"messages": [AIMessage("done")]}

    graph = StateGraph(Chat)
    graph.add_node("fragile", fragile)
    graph.add_edge(START, "fragile")
    app = graph.compile(checkpointer=InMemorySaver())
    with pytest.raises(RuntimeError, match="no connection"):
        converse(app, "one", thread_id="t")
    converse(app, "two", thread_id="t")
    assert [message.text for message in messages(app)] == ["one", "done", "two", "done"]


def test_every_refusal_has_one_root() -> None:
    assert issubclass(ConversationError, LangmemExtError)
    assert issubclass(InvalidThreadId, InvalidInput)
