"""Half of a character (a lone surrogate) is refused over HTTP before anything is stored.

In Python it is refused in metadata; whatever was stored with one otherwise can be read.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from calling import Caller, calling
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, MessagesState, StateGraph
from savers import Backend, Calls, Mode, brief_saver

from langmem_ext import DeltaSaver, DeltaStore, InvalidInput
from langmem_ext.server import create_app

HALF = "half \ud83d"
SAID = {"messages": [{"role": "user", "content": "hi"}]}
GRAPH = (
    StateGraph(MessagesState)
    .add_node("answer", lambda state: {"messages": [AIMessage("ran")]})
    .add_edge(START, "answer")
    .compile()
)


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    async with calling(create_app(":memory:", graph=GRAPH)) as caller:
        await caller.sdk.threads.create(thread_id="t", metadata={"kept": "as it is 👍 한"})
        await caller.sdk.runs.wait("t", "agent", input=SAID)
        await caller.sdk.store.put_item(["users"], "k", {"a": 1})
        yield caller


def run_of(**more: Any) -> dict[str, Any]:
    return {"assistant_id": "agent", "input": SAID, **more}


def both(name: str) -> list[dict[str, Any]]:
    """An object that holds it as a value, as a name, and further in."""
    return [
        {name: {"a": HALF}},
        {name: {HALF: 1}},
        {name: {"a": [{"b": {HALF: HALF}}]}},
    ]


BODIES: list[tuple[str, str, dict[str, Any]]] = [
    *(
        ("POST", f"/threads/t/{how}", run_of(**more))
        for how in ("runs", "runs/wait", "runs/stream")
        for more in [
            *both("metadata"),
            *both("context"),
            *both("input"),
            {"config": {"configurable": {"tz": HALF}}},
            {"config": {"configurable": {HALF: "x"}}},
            {"config": {"tags": [HALF]}},
            {"checkpoint_id": HALF},
        ]
    ),
    *(
        ("POST", "/threads/t/runs", {"assistant_id": "agent", **more})
        for more in [*both("command"), {"command": {"resume": HALF}}]
    ),
    *(("POST", "/threads", body) for body in [*both("metadata"), {"thread_id": HALF}]),
    *(("PATCH", "/threads/t", body) for body in both("metadata")),
    *(("POST", "/threads/t/state", body) for body in both("values")),
    ("POST", "/threads/t/state", {"values": {}, "as_node": HALF}),
    *(("POST", "/threads/search", body) for body in [*both("metadata"), *both("values")]),
    *(("PUT", "/store/items", {"namespace": ["a"], "key": "k", **body}) for body in both("value")),
    ("PUT", "/store/items", {"namespace": [HALF], "key": "k", "value": {}}),
    ("PUT", "/store/items", {"namespace": ["a"], "key": HALF, "value": {}}),
    ("POST", "/langmem/threads/t/reply", {"text": HALF}),
    *(("POST", "/langmem/threads/t/reply", {"text": "hi", **body}) for body in both("config")),
    ("POST", "/langmem/conversations/t/messages", {"content": HALF}),
    ("POST", "/langmem/conversations/t/messages", {"content": "hi", "message_id": HALF}),
    *(
        ("POST", "/langmem/memories", {"conversation_id": "t", **body})
        for body in both("memory_data")
    ),
    ("POST", "/langmem/prompts/p/versions", {"prompt_text": HALF}),
    (
        "POST",
        "/langmem/tasks",
        {"task_type": "GENERATE_MEMORY_BATCH", "payload": {"user_id": HALF}},
    ),
]


async def everything(caller: Caller) -> Any:
    """What the server tells of all that it has."""
    asked = [
        await caller.http.get("/threads/t"),
        await caller.http.get("/threads/t/state"),
        await caller.http.get("/threads/t/runs"),
        await caller.http.post("/threads/t/history", json={}),
        await caller.http.post("/threads/search", json={}),
        await caller.http.post("/store/items/search", json={"namespace_prefix": []}),
    ]
    assert {answer.status_code for answer in asked} == {200}
    return [answer.json() for answer in asked]


async def test_no_request_stores_half_of_a_character(caller: Caller) -> None:
    before = await everything(caller)
    for method, path, body in BODIES:
        # As an escape, and as the bytes that some programs write for it.
        for text in (
            json.dumps(body).encode(),
            json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass"),
        ):
            answer = await caller.http.request(
                method, path, content=text, headers={"content-type": "application/json"}
            )
            assert answer.status_code == 422, (method, path, body, answer.text)
            assert "half of a character" in answer.json()["detail"]
    assert await everything(caller) == before


async def test_whole_characters_are_taken_as_they_are(caller: Caller) -> None:
    words = {"👍": "한국어 \\ud83d and 👍🏽"}
    body = json.dumps(run_of(metadata=words)).encode()
    assert b"\\ud83d" in body
    sent = await caller.http.post(
        "/threads/t/runs/wait", content=body, headers={"content-type": "application/json"}
    )
    assert sent.status_code == 200
    state = await caller.sdk.threads.get_state("t")
    assert state["metadata"]["👍"] == words["👍"]  # type: ignore[index, literal-required]


async def test_metadata_with_half_of_a_character_is_refused_by_the_saver(
    backend: Backend, folder: Path, mode: Mode
) -> None:
    calls = Calls(mode)
    place: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    with brief_saver(backend, folder) as saver:
        saver.put(place, empty_checkpoint(), {"source": "input", "step": 0}, {})
        before = [saved.checkpoint["id"] for saved in saver.list(place)]
        for bad in (
            {HALF: 1},
            {"a": HALF},
            {"a": {HALF: 1}},
            {"a": [{"b": (HALF,)}]},
            {"parents": {"": HALF}},
        ):
            with pytest.raises(InvalidInput, match="half of a character"):
                await calls.call(saver, "put", place, empty_checkpoint(), bad, {})
        for config in (
            {**place, "metadata": {"a": HALF}},
            {**place, "metadata": {HALF: "a"}},
            {"configurable": {**place["configurable"], "customer": HALF}},
        ):
            with pytest.raises(InvalidInput, match="half of a character"):
                await calls.call(saver, "put", config, empty_checkpoint(), {}, {})
        assert [saved.checkpoint["id"] for saved in saver.list(place)] == before
        graph: Any = GRAPH.copy({"checkpointer": saver})
        run: Any = {"configurable": {"thread_id": "new"}, "metadata": {HALF: 1}}
        with pytest.raises(InvalidInput, match="half of a character"):
            await calls.call(graph, "invoke", SAID, run)
        assert list(saver.list({"configurable": {"thread_id": "new"}})) == []


async def test_what_was_stored_with_half_of_a_character_can_be_read() -> None:
    with DeltaSaver.open(":memory:") as saver:
        graph = GRAPH.copy({"checkpointer": saver})
        said = HumanMessage(HALF, additional_kwargs={"a": HALF}, id="m1")
        graph.invoke({"messages": [said]}, {"configurable": {"thread_id": "t"}})  # type: ignore[call-overload]
        DeltaStore(saver).put(("users",), "k", {HALF: [HALF]})
        async with calling(create_app(saver, graph=GRAPH)) as caller:
            _, state, *_, items = await everything(caller)
            assert state["values"]["messages"][0]["content"] == "half ?"
            assert items["items"][0]["value"] == {"half ?": ["half ?"]}
