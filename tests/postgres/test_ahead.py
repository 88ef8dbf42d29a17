"""Promise: what is built while the server answers is never more than a guess, whoever writes meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.graph import START, MessagesState, StateGraph
from savers import empty_tables

from langmem_ext import DeltaSaver, StorageUnavailable
from langmem_ext.ahead import Ahead
from langmem_ext.template_cache import LONG

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
MANY: list[BaseMessage] = [HumanMessage(f"message {at}", id=str(at)) for at in range(2 * LONG)]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return empty_tables(tmp_path)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """The lists that were taken from what was built ahead."""
    taken: list[list[Any]] = []

    class Told(Ahead):
        def take(self, place: Any, value: Any) -> list[Any] | None:
            messages = super().take(place, value)
            if messages is not None:
                taken.append(messages)
            return messages

    monkeypatch.setattr("langmem_ext.ahead.Ahead", Told)
    return taken


def graph(saver: DeltaSaver) -> Any:
    answer = StateGraph(MessagesState).add_node("answer", lambda state: {"messages": [AIMessage(f"{len(state['messages'])}")]})
    return answer.add_edge(START, "answer").compile(checkpointer=saver)


async def read(saver: DeltaSaver) -> list[Any]:
    found = await saver.aget_tuple(CONFIG)
    assert found is not None
    messages: list[Any] = found.checkpoint["channel_values"]["messages"]
    return messages


async def test_a_long_conversation_is_built_ahead_and_each_reader_has_messages_of_its_own(url: str, built: list[list[Any]]) -> None:
    async with DeltaSaver.from_conn_string(url) as saver:
        await graph(saver).ainvoke({"messages": MANY}, CONFIG)
        assert built == []
        first, second = await asyncio.gather(read(saver), read(saver))
        assert first == second
        assert [first, second] == built
        assert not {*map(id, first)} & {*map(id, second)}
        first[0].content = "changed by whoever has read it"
        del first[1:]
        assert await read(saver) == second


async def test_what_others_write_meanwhile_is_what_is_read(url: str, built: list[list[Any]]) -> None:
    async with DeltaSaver.from_conn_string(url) as saver, DeltaSaver.from_conn_string(url) as other:
        await graph(saver).ainvoke({"messages": MANY}, CONFIG)
        changes: tuple[list[BaseMessage], ...] = (
            [HumanMessage("one more")],
            [HumanMessage("another text", id="0")],
            [RemoveMessage(id="5")],
            [RemoveMessage(id=str(at)) for at in range(100, 120)],
        )
        for change in changes:
            await graph(other).aupdate_state(CONFIG, {"messages": change}, as_node="answer")
            async with DeltaSaver.from_conn_string(url) as fresh:
                stored = await read(fresh)
            assert await read(saver) == stored
        built.clear()
        assert await read(saver) == stored
        assert built == [stored]
        await other.adelete_thread("t")
        assert await saver.aget_tuple(CONFIG) is None


async def test_a_database_that_does_not_answer_is_told_as_without_it(url: str) -> None:
    async with DeltaSaver.from_conn_string(url) as saver:
        await graph(saver).ainvoke({"messages": MANY}, CONFIG)
        await saver.log.driver.aclose()
        for _ in range(2):
            with pytest.raises(StorageUnavailable):
                await saver.aget_tuple(CONFIG)
            saver.log.templates.forget()
