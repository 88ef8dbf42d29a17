"""An agent remembers and finds facts by tools, each user's own, and no secret.

Each fact has the message that it is based on.
"""

from __future__ import annotations

from typing import Any

import pytest
from doubles import called
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.store.memory import InMemoryStore

from langmem_ext import (
    DeltaStore,
    Facts,
    FactSource,
    InvalidInput,
    mark_sensitive,
    memory_tools,
)

CONFIG = {"configurable": {"thread_id": "t1", "user_id": "ann"}}


class CallingDouble(BaseChatModel):
    """Calls a tool in each request, then answers with what that gave."""

    tool: str
    args: dict[str, Any]

    @property
    def _llm_type(self) -> str:
        return "double"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        last = messages[-1]
        call = {"name": self.tool, "args": self.args, "id": "c1"}
        answer = (
            AIMessage(last.text)
            if isinstance(last, ToolMessage)
            else AIMessage("", tool_calls=[call])
        )
        return ChatResult(generations=[ChatGeneration(message=answer)])


async def asked(
    mode: str,
    store: InMemoryStore,
    tool: str,
    args: dict[str, Any],
    *said: BaseMessage,
    owner: Any = "ann",
) -> str:
    """What a tool answers in an agent."""
    agent = create_agent(CallingDouble(tool=tool, args=args), memory_tools(store, owner=owner))
    result = await called(mode, agent, "invoke", {"messages": list(said)}, CONFIG)
    return str(result["messages"][-1].text)


async def test_an_agent_remembers_and_finds(mode: str) -> None:
    store = InMemoryStore()
    said = HumanMessage("I have moved to Oslo.", id="m1")
    answer = await asked(
        mode, store, "remember_fact", {"fact": "Lives in Oslo", "subject": "home city"}, said
    )
    assert answer == "Remembered: Lives in Oslo"
    [fact] = Facts(store, owner="ann").recall()
    assert (fact.text, fact.subject, fact.sources) == (
        "Lives in Oslo",
        "home city",
        (FactSource("t1", "m1"),),
    )
    for args in ({}, {"query": "where do they live", "limit": 100_000}, {"limit": -1}):
        answer = await asked(mode, store, "search_memory", args, HumanMessage("Where do I live?"))
        assert answer == f"- {fact.said_at.date()}: Lives in Oslo (home city)"


async def test_an_agent_of_many_users_serves_each_with_what_is_the_users_own(mode: str) -> None:
    store = InMemoryStore()

    def owner(config: Any) -> str:
        return str(config["configurable"]["user_id"])

    await asked(
        mode,
        store,
        "remember_fact",
        {"fact": "Lives in Oslo", "subject": "city"},
        HumanMessage("Oslo"),
        owner=owner,
    )
    assert len(Facts(store, owner="ann").recall()) == 1
    assert (
        await asked(mode, store, "search_memory", {}, HumanMessage("?"), owner="bob")
        == "Nothing is remembered of that."
    )


async def test_the_user_whom_a_server_has_authenticated_has_facts_of_their_own(mode: str) -> None:
    """In rows of their own, or where the store has none, under their own name."""
    fact = {"fact": "Lives in Oslo", "subject": "city"}
    model = CallingDouble(tool="remember_fact", args=fact)
    said = {"messages": [HumanMessage("Oslo")]}
    config = {"configurable": {"thread_id": "t1", "langgraph_auth_user_id": "ann"}}
    for owner in (None, "bob", lambda _: "bob"):
        with DeltaStore.open(":memory:") as store:
            agent = create_agent(model, memory_tools(store, owner=owner))
            await called(mode, agent, "invoke", said, config)
            found = Facts(store.for_owner("ann"), owner="ann" if owner is None else "bob").recall()
            assert [one.text for one in found] == ["Lives in Oslo"]
            assert Facts(store, owner="bob").recall() == Facts(store).recall() == []
        foreign = InMemoryStore()
        agent = create_agent(model, memory_tools(foreign, owner=owner))
        await called(mode, agent, "invoke", said, config)
        assert len(Facts(foreign, owner="ann").recall()) == 1
        assert Facts(foreign, owner="bob").recall() == []


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        (
            mark_sensitive(HumanMessage("My card is 4111-1111, take it."), {"card": "41111111"}),
            "The card is 4111 1111",
        ),
        (
            mark_sensitive(HumanMessage("it is Rosebud"), spans={"word": []}),
            "The secret word is rosebud",
        ),
    ],
    ids=["a value", "a whole message"],
)
async def test_what_is_hidden_is_not_remembered(mode: str, said: BaseMessage, fact: str) -> None:
    store = InMemoryStore()
    answer = await asked(mode, store, "remember_fact", {"fact": fact, "subject": "secret"}, said)
    assert "must not be remembered" in answer
    assert store.search(()) == []
    answer = await asked(
        mode, store, "remember_fact", {"fact": "Likes tea", "subject": "drink"}, said
    )
    assert answer == "Remembered: Likes tea"


async def test_what_cannot_be_remembered_is_said_to_the_model(mode: str) -> None:
    answer = await asked(
        mode, InMemoryStore(), "remember_fact", {"fact": " ", "subject": "x"}, HumanMessage("?")
    )
    assert answer == "a fact is a text of 1 to 2,000 characters"


def test_an_owner_that_is_no_name_is_refused_before_an_agent_is_built() -> None:
    with pytest.raises(InvalidInput):
        memory_tools(InMemoryStore(), owner="")
