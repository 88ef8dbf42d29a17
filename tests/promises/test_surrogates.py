"""Half of a character (a lone surrogate) is refused over HTTP before anything is stored.

In Python it is refused in metadata; whatever was stored with one otherwise can be read.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from calling import Caller, calling
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from savers import Backend, Calls, brief_saver
from small_graphs import chain, config, saying

from langmem_ext import DeltaSaver, DeltaStore, InvalidInput
from langmem_ext.server import create_app

HALF = "half \ud83d"
SAID = {"messages": [{"role": "user", "content": "hi"}]}
GRAPH = chain(saying(AIMessage("ran")))


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
    return [{name: {"a": HALF}}, {name: {HALF: 1}}, {name: {"a": [{"b": {HALF: HALF}}]}}]


RUNS: list[dict[str, Any]] = [
    *(more for name in ("metadata", "context", "input") for more in both(name)),
    {"config": {"configurable": {"tz": HALF}}},
    {"config": {"configurable": {HALF: "x"}}},
    {"config": {"tags": [HALF]}},
    {"checkpoint_id": HALF},
    *({"input": None} | more for more in [*both("command"), {"command": {"resume": HALF}}]),
]
ITEM = {"namespace": ["a"], "key": "k", "value": {}}
MEMORY = {"conversation_id": "t"}
BODIES: dict[str, list[dict[str, Any]]] = {
    **{f"POST threads/t/{how}": RUNS for how in ("runs", "runs/wait", "runs/stream")},
    "POST threads": [*both("metadata"), {"thread_id": HALF}],
    "PATCH threads/t": both("metadata"),
    "POST threads/t/state": [*both("values"), {"values": {}, "as_node": HALF}],
    "POST threads/search": [*both("metadata"), *both("values")],
    "PUT store/items": [
        *(ITEM | body for body in both("value")),
        {**ITEM, "namespace": [HALF]},
        {**ITEM, "key": HALF},
    ],
    "POST langmem/threads/t/reply": [
        {"text": HALF},
        *({"text": "hi"} | body for body in both("config")),
    ],
    "POST langmem/conversations/t/messages": [
        {"content": HALF},
        {"content": "hi", "message_id": HALF},
    ],
    "POST langmem/memories": [MEMORY | body for body in both("memory_data")],
    "POST langmem/prompts/p/versions": [{"prompt_text": HALF}],
    "POST langmem/tasks": [{"task_type": "GENERATE_MEMORY_BATCH", "payload": {"user_id": HALF}}],
}


async def everything(caller: Caller) -> Any:
    """What the server tells of all that it has."""
    http, prefix = caller.http, {"namespace_prefix": []}
    asked = [await http.get(f"/threads/t{path}") for path in ("", "/state", "/runs")]
    asked += [await http.post(f"/threads/{path}", json={}) for path in ("t/history", "search")]
    asked.append(await http.post("/store/items/search", json=prefix))
    assert {answer.status_code for answer in asked} == {200}
    return [answer.json() for answer in asked]


async def send(caller: Caller, where: str, body: bytes) -> httpx.Response:
    method, path = where.split()
    headers = {"content-type": "application/json"}
    return await caller.http.request(method, f"/{path}", content=body, headers=headers)


async def test_no_request_stores_half_of_a_character(caller: Caller) -> None:
    before = await everything(caller)
    for where, bodies in BODIES.items():
        for body in bodies:
            whole = run_of(**body) if "/runs" in where else body
            # As an escape, and as the bytes that some programs write for it.
            for text in (
                json.dumps(whole).encode(),
                json.dumps(whole, ensure_ascii=False).encode("utf-8", "surrogatepass"),
            ):
                answer = await send(caller, where, text)
                assert answer.status_code == 422, (where, body, answer.text)
                assert "half of a character" in answer.json()["detail"]
    assert await everything(caller) == before


async def test_whole_characters_are_taken_as_they_are(caller: Caller) -> None:
    words = {"👍": "한국어 \\ud83d and 👍🏽"}
    body = json.dumps(run_of(metadata=words)).encode()
    assert b"\\ud83d" in body
    assert (await send(caller, "POST threads/t/runs/wait", body)).status_code == 200
    state = await caller.sdk.threads.get_state("t")
    assert state["metadata"]["👍"] == words["👍"]  # type: ignore[index, literal-required]


async def test_metadata_with_half_of_a_character_is_refused_by_the_saver(
    backend: Backend, folder: Path, calls: Calls
) -> None:
    place = config(checkpoint_ns="")
    with brief_saver(backend, folder) as saver:
        saver.put(place, empty_checkpoint(), {"source": "input", "step": 0}, {})
        before = [saved.checkpoint["id"] for saved in saver.list(place)]
        named: list[Any] = [
            *({HALF: 1}, {"a": HALF}, {"a": {HALF: 1}}),
            *({"a": [{"b": (HALF,)}]}, {"parents": {"": HALF}}),
        ]
        for given, metadata in (
            *((place, bad) for bad in named),
            ({**place, "metadata": {"a": HALF}}, {}),
            ({**place, "metadata": {HALF: "a"}}, {}),
            (config(checkpoint_ns="", customer=HALF), {}),
        ):
            with pytest.raises(InvalidInput, match="half of a character"):
                await calls.call(saver, "put", given, empty_checkpoint(), metadata, {})
        assert [saved.checkpoint["id"] for saved in saver.list(place)] == before
        graph: Any = GRAPH.copy({"checkpointer": saver})
        with pytest.raises(InvalidInput, match="half of a character"):
            await calls.call(graph, "invoke", SAID, {**config("new"), "metadata": {HALF: 1}})
        assert list(saver.list(config("new"))) == []


async def test_what_was_stored_with_half_of_a_character_can_be_read() -> None:
    with DeltaSaver.open(":memory:") as saver:
        graph = GRAPH.copy({"checkpointer": saver})
        said = HumanMessage(HALF, additional_kwargs={"a": HALF}, id="m1")
        graph.invoke({"messages": [said]}, config())
        DeltaStore(saver).put(("users",), "k", {HALF: [HALF]})
        async with calling(create_app(saver, graph=GRAPH)) as caller:
            _, state, *_, items = await everything(caller)
            assert state["values"]["messages"][0]["content"] == "half ?"
            assert items["items"][0]["value"] == {"half ?": ["half ?"]}
