"""What is built on LangGraph's stores runs on DeltaStore: agents, deepagents' file systems,
langmem's tools and manager.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from deepagents.backends import CompositeBackend, StateBackend, StoreBackend
from langchain.agents import create_agent
from langchain.tools import ToolRuntime, tool
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from scripted_model import ScriptedModel
from stores import empty

from langmem_ext import DeltaSaver, DeltaStore, MessageLog

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it calls what is deprecated
    import langmem

pytestmark = pytest.mark.interop


@pytest.fixture
def store(log: MessageLog) -> DeltaStore:
    log.run(empty(), write=True)
    return DeltaStore(log)


def call(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}"}])


# -- create_agent ----------------------------------------------------------------------------------


@tool
def note(text: str, runtime: ToolRuntime) -> str:
    """Keep a note."""
    assert runtime.store is not None
    runtime.store.put(("notes",), "latest", {"text": text})
    return "kept"


@tool
async def recall(runtime: ToolRuntime) -> str:
    """Give the note."""
    assert runtime.store is not None
    item = await runtime.store.aget(("notes",), "latest")
    return "nothing" if item is None else str(item.value["text"])


def keeping(messages: Sequence[BaseMessage]) -> str | AIMessage:
    if isinstance(messages[-1], ToolMessage):
        return f"done: {messages[-1].text}"
    return (
        call("recall")
        if messages[-1].text == "what was it?"
        else call("note", text=messages[-1].text)
    )


async def test_an_agent_s_tools_find_in_another_thread_what_they_kept_in_one(
    log: MessageLog, store: DeltaStore
) -> None:
    saver = DeltaSaver(log)
    agent = create_agent(
        ScriptedModel(answer=keeping), [note, recall], checkpointer=saver, store=saver.store
    )
    told = await agent.ainvoke(
        {"messages": [("user", "milk")]}, {"configurable": {"thread_id": "one"}}
    )
    assert told["messages"][-1].text == "done: kept"
    asked = await agent.ainvoke(
        {"messages": [("user", "what was it?")]}, {"configurable": {"thread_id": "two"}}
    )
    assert asked["messages"][-1].text == "done: milk"


# -- deepagents ------------------------------------------------------------------------------------


def work_in_files(backend: Any) -> list[Any]:
    """What a file system gives for what an agent does in one."""
    given: list[Any] = [
        backend.write(f"/notes/{at:03}.txt", f"line {at}\nsecond é line\n") for at in range(120)
    ]
    given.append(backend.write("/notes/000.txt", "again"))
    given.append(backend.write("/other.md", "# Title"))
    given.append(backend.read("/notes/007.txt"))
    given.append(backend.edit("/notes/007.txt", "line 7", "line seven"))
    given.append(backend.edit("/notes/007.txt", "no such", "x"))
    given.append(backend.read("/notes/007.txt"))
    given.append(backend.read("/nobody.txt"))
    given.append(backend.grep("seven", path="/"))
    given += [
        sorted_entries(backend.ls("/")),
        sorted_entries(backend.ls("/notes/")),
        sorted_entries(backend.glob("**/*.md")),
    ]
    given.append(backend.delete("/notes"))
    given.append(sorted_entries(backend.ls("/")))
    return given


def sorted_entries(result: Any) -> Any:
    entries = getattr(result, "entries", None) or getattr(result, "matches", None) or []
    return sorted(str(entry["path"]) for entry in entries)


def without_times(given: list[Any]) -> list[str]:
    return [
        (
            str(one)
            if not hasattr(one, "file_data") or one.file_data is None
            else one.file_data["content"]
        )
        for one in given
    ]


def test_a_file_system_of_deepagents_is_as_on_in_memory_store(store: DeltaStore) -> None:
    def backend(of: BaseStore) -> StoreBackend:
        return StoreBackend(store=of, namespace=lambda _: ("files", "user@example"))

    assert without_times(work_in_files(backend(store))) == without_times(
        work_in_files(backend(InMemoryStore()))
    )


def test_a_route_of_a_composite_file_system_keeps_its_files_in_the_store(store: DeltaStore) -> None:
    kept = StoreBackend(store=store, namespace=lambda _: ("kept",))
    backend = CompositeBackend(default=StateBackend(), routes={"/kept/": kept})
    assert backend.write("/kept/a.txt", "text").error is None
    found = backend.read("/kept/a.txt")
    assert found.file_data is not None
    assert found.file_data["content"] == "text"
    assert store.list_namespaces() == [("kept",)]


# -- langmem ---------------------------------------------------------------------------------------


async def test_langmem_s_tools_keep_find_change_and_delete_memories(store: DeltaStore) -> None:
    manage = langmem.create_manage_memory_tool(namespace=("memories",), store=store)
    search = langmem.create_search_memory_tool(namespace=("memories",), store=store)
    manage.invoke({"content": "likes green tea", "action": "create"})
    await manage.ainvoke({"content": "lives in Oslo", "action": "create"})
    assert "green tea" in search.invoke({"query": "tea", "limit": 1})
    first = store.search(("memories",), query="tea")[0]
    await manage.ainvoke({"content": "likes black tea", "action": "update", "id": first.key})
    assert "black tea" in await search.ainvoke({"query": "tea", "limit": 1})
    manage.invoke({"action": "delete", "id": first.key})
    assert [item.value["content"] for item in store.search(("memories",))] == ["lives in Oslo"]


async def test_langmem_s_manager_writes_what_its_model_says(store: DeltaStore) -> None:
    model = ScriptedModel(answer=lambda messages: call("Memory", content="Anna likes green tea"))
    manager = langmem.create_memory_store_manager(
        model, namespace=("memories", "anna"), store=store
    )
    await manager.ainvoke({"messages": [{"role": "user", "content": "I like green tea"}]})
    [item] = store.search(("memories", "anna"))
    assert item.value == {"kind": "Memory", "content": {"content": "Anna likes green tea"}}


def test_what_one_process_has_kept_another_finds(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with DeltaStore.open(path) as first, DeltaStore.open(path) as second:
        first.put(("a",), "k", {"x": 1})
        found = second.get(("a",), "k")
        assert found is not None
        assert found.value == {"x": 1}
