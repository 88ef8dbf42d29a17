"""A thread is given to another owner whole; the one before has nothing of it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from savers import Calls, Mode

from langmem_ext import (
    DeltaSaver,
    Facts,
    FactSource,
    InvalidInput,
    ThreadChatMessageHistory,
    ThreadNotFound,
    Threads,
    examine,
)

CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def saver(url: str) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(url) as saver:
        yield saver


@pytest.fixture
def calls(mode: Mode) -> Calls:
    return Calls(mode)


def asking(saver: DeltaSaver) -> Any:
    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"Off to {interrupt('Where to?')}")]}

    return (
        StateGraph(MessagesState)
        .add_node("ask", ask)
        .add_edge(START, "ask")
        .compile(checkpointer=saver)
    )


async def test_the_new_owner_has_all_of_it_and_the_old_one_nothing(
    saver: DeltaSaver, calls: Calls
) -> None:
    asking(saver.for_owner("ann")).invoke(
        {"messages": [HumanMessage("a long weekend in Lisbon")]}, CONFIG
    )
    ann, bob = Threads(saver, owner="ann"), Threads(saver, owner="bob")
    ann.tag("t", "travel")
    assert saver.for_owner("bob").get_tuple(CONFIG) is None

    given = await calls.call(ann, "give", "t", "bob")

    assert (given.owner, given.tags) == ("bob", ("travel",))
    assert [thread.id for thread in bob.list()] == ["t"]
    exported = io.StringIO()
    bob.export_to(exported)
    assert "Lisbon" in exported.getvalue()
    assert ann.list() == []
    assert saver.for_owner("ann").get_tuple(CONFIG) is None
    with pytest.raises(ThreadNotFound):
        ann.get("t")
    with pytest.raises(ThreadNotFound):
        ThreadChatMessageHistory("t", saver, owner="ann").add_messages([HumanMessage("mine")])
    answered = asking(saver.for_owner("bob")).invoke(Command(resume="Lisbon"), CONFIG)
    assert answered["messages"][-1].content == "Off to Lisbon"
    assert {hit.thread_id for hit in bob.search("Lisbon")} == {"t"}
    assert ann.search("Lisbon") == []
    assert {finding.severity for finding in examine(saver.log).findings} <= {"note"}


def test_another_process_that_knows_the_thread_learns_of_it(url: str) -> None:
    with DeltaSaver.open(url) as one, DeltaSaver.open(url) as other:
        mine = ThreadChatMessageHistory("t", other, owner="ann")
        mine.add_messages([HumanMessage("one")])
        Threads(one).give("t", "bob")
        with pytest.raises(ThreadNotFound):
            mine.add_messages([HumanMessage("two")])
        assert len(ThreadChatMessageHistory("t", one, owner="bob").messages) == 1


async def test_nobody_gives_what_is_not_their_own(saver: DeltaSaver, calls: Calls) -> None:
    ThreadChatMessageHistory("t", saver, owner="ann").add_messages([HumanMessage("hers")])
    with pytest.raises(ThreadNotFound):
        await calls.call(Threads(saver, owner="bob"), "give", "t", "bob")
    with pytest.raises(ThreadNotFound):
        await calls.call(Threads(saver), "give", "nothing", "bob")
    for owner in ("", None, ["bob"], "a\0b"):
        with pytest.raises(InvalidInput):
            await calls.call(Threads(saver), "give", "t", owner)
    assert Threads(saver).get("t").owner == "ann"


async def test_a_thread_of_nobody_is_given_and_giving_twice_changes_nothing(
    saver: DeltaSaver, calls: Calls
) -> None:
    ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("hello")])
    given = await calls.call(Threads(saver), "give", "t", "ann")
    assert await calls.call(Threads(saver), "give", "t", "ann") == given


def test_what_the_former_owner_remembers_of_it_alone_goes(saver: DeltaSaver) -> None:
    for thread in ("t", "another"):
        ThreadChatMessageHistory(thread, saver, owner="ann").add_messages([HumanMessage("tea")])
    facts = Facts(saver.for_owner("ann").store, owner="ann")
    facts.remember("Likes tea", sources=[FactSource("t", "m1")])
    facts.remember("Likes rain", sources=[FactSource("t", "m1"), FactSource("another", "m2")])
    facts.remember("Lives in Rome")
    Threads(saver).give("t", "bob")
    assert sorted(fact.text for fact in facts.recall()) == ["Likes rain", "Lives in Rome"]
