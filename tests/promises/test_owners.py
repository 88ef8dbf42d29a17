"""Promise: a caller who speaks for an owner finds that owner's threads and no other's; one who
speaks for nobody finds all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calling import another, calling
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from payments import Payments
from savers import Backend

from langmem_ext import DeltaSaver, InvalidInput, ThreadChatMessageHistory, ThreadNotFound
from langmem_ext.server import by_token, create_app


def config(thread: str = "t", **configurable: Any) -> Any:
    return {"configurable": {"thread_id": thread, **configurable}}


def chat(saver: DeltaSaver, *, child: bool = False) -> Any:
    inner = (
        StateGraph(MessagesState)
        .add_node("answer", lambda state: {"messages": [("ai", "yes")]})
        .add_edge(START, "answer")
    )
    if not child:
        return inner.compile(checkpointer=saver)
    return (
        StateGraph(MessagesState)
        .add_node("child", inner.compile(checkpointer=True))
        .add_edge(START, "child")
        .compile(checkpointer=saver)
    )


@pytest.fixture
def saver(backend: Backend, tmp_path: Path) -> Iterator[DeltaSaver]:
    with DeltaSaver(backend.new_url(tmp_path)) as saver:
        yield saver


def say(saver: DeltaSaver, **configurable: Any) -> None:
    chat(saver).invoke({"messages": [HumanMessage("hi")]}, config(**configurable))


def test_the_owner_is_recorded_at_the_first_put_and_keeps_others_out(saver: DeltaSaver) -> None:
    say(saver, owner="u1")
    assert saver.get_tuple(config(owner="u1")) is not None
    assert saver.get_tuple(config(owner="u2")) is None
    assert list(saver.list(config(owner="u2"))) == []
    assert (
        saver.get_delta_channel_history(config=config(owner="u2"), channels=["messages"])[
            "messages"
        ]["writes"]
        == []
    )
    with pytest.raises(ThreadNotFound):
        say(saver, owner="u2")
    assert saver.get_tuple(config()) is not None


def test_a_bound_saver_needs_no_owner_in_the_config(saver: DeltaSaver) -> None:
    mine, theirs = saver.for_owner("u1"), saver.for_owner("u2")
    say(mine)
    assert theirs.get_tuple(config()) is None
    assert list(theirs.list(None)) == []
    assert len(list(mine.list(None))) == 3
    with pytest.raises(ThreadNotFound):
        say(theirs)
    theirs.delete_thread("t")
    assert mine.get_tuple(config()) is not None
    mine.delete_thread("t")
    assert saver.get_tuple(config()) is None


def test_a_config_cannot_widen_what_a_bound_saver_may_see(saver: DeltaSaver) -> None:
    say(saver.for_owner("u1"))
    bound = saver.for_owner("u2")
    assert bound.get_tuple(config(owner="u1")) is None
    with pytest.raises(ThreadNotFound):
        say(bound, owner="u1")
    assert saver.for_owner("u1").get_tuple(config(owner="u1")) is not None


def test_a_thread_without_an_owner_is_nobodys(saver: DeltaSaver) -> None:
    say(saver)
    assert saver.for_owner("u1").get_tuple(config()) is None
    with pytest.raises(ThreadNotFound):
        say(saver.for_owner("u1"))


def test_a_bound_saver_reads_a_subgraphs_state_of_its_own_threads_only(saver: DeltaSaver) -> None:
    graph = chat(saver.for_owner("u1"), child=True)
    graph.invoke({"messages": [HumanMessage("hi")]}, config())
    assert len(graph.get_state(config(), subgraphs=True).values["messages"]) == 2
    other = chat(saver.for_owner("u2"), child=True)
    assert other.get_state(config(), subgraphs=True).values == {}


def test_a_history_is_bound_like_its_saver(saver: DeltaSaver) -> None:
    ThreadChatMessageHistory("t", saver.for_owner("u1")).add_messages([HumanMessage("mine")])
    assert ThreadChatMessageHistory("t", saver, owner="u2").messages == []
    with pytest.raises(ThreadNotFound):
        ThreadChatMessageHistory("t", saver, owner="u2").add_messages([HumanMessage("theirs")])
    assert len(ThreadChatMessageHistory("t", saver, owner="u1").messages) == 1


def test_async_calls_are_bound_alike(saver: DeltaSaver) -> None:
    async def use() -> None:
        await chat(saver.for_owner("u1")).ainvoke({"messages": [HumanMessage("hi")]}, config())
        assert await saver.for_owner("u2").aget_tuple(config()) is None
        assert [found async for found in saver.for_owner("u2").alist(None)] == []
        with pytest.raises(ThreadNotFound):
            await chat(saver.for_owner("u2")).ainvoke({"messages": [HumanMessage("hi")]}, config())

    asyncio.run(use())


@pytest.mark.parametrize("owner", ["", True])
def test_what_names_no_owner_is_refused(owner: Any, saver: DeltaSaver) -> None:
    with pytest.raises(InvalidInput, match="owner"):
        saver.for_owner(owner)


async def test_over_http_an_owner_writes_no_item_of_the_server(tmp_path: Path) -> None:
    """Else she would give it tasks in another's name, prompts of all, or the key of MCP."""
    names = {"ann-0123456789abcdef": "ann", "bob-0123456789abcdef": "bob"}
    desk, now = Payments(tmp_path), "2026-01-01T00:00:00+00:00"
    async with await DeltaSaver.aopen(tmp_path / "m.db") as saver:
        app = create_app(saver, graph=desk.graph(saver), access=by_token(names), sweep_every=None)
        ann_s, bob_s = ({"authorization": f"Bearer {token}"} for token in names)
        async with calling(app, headers=bob_s) as bob, another(app, headers=ann_s) as ann:
            say = {"text": "pay 50"}
            await bob.http.post("/threads", json={"thread_id": "bobs"})
            assert (await bob.http.post("/langmem/threads/bobs/reply", json=say)).is_success
            payload = {"conversation_id": "bobs", "message_id": "m", "content": "yes"}
            task = {
                **{"id": "t", "kind": "DELIVER_MESSAGE", "payload": payload, "owner": "bob"},
                **{"line": "bobs", "thread": None, "status": "queued", "attempts": 0},
                **{"result": None, "error": None, "created_at": now, "updated_at": now},
            }
            items = [
                (["langmem", "tasks"], "t", task),
                (["langmem", "lines", "00ff"], "0" * 20, {"task": "t"}),
                (["memory", "prompts", "fact_extraction"], "active", {"version": "x"}),
                (["memory", "threads"], "bobs", {"memory": {}}),
                (["langmem_ext", "mcp"], "key", {"key": "k" * 64}),
            ]
            for namespace, key, value in items:
                item = {"namespace": namespace, "key": key}
                answer = await ann.http.put("/store/items", json={**item, "value": value})
                assert answer.status_code == 403, namespace
                answer = await ann.http.request("DELETE", "/store/items", json=item)
                assert answer.status_code == 403, namespace
            own = {"namespace": ["notes"], "key": "k", "value": {"a": 1}}
            assert (await ann.http.put("/store/items", json=own)).status_code == 204
    assert desk.ran == []
