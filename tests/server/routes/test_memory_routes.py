"""Memories of conversations are put, written by a model, and read over HTTP, with the parameters
that they take.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from calling import Caller, another, calling
from langchain_core.messages import AIMessage, HumanMessage
from patience import auntil
from served import filling

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, Threads
from langmem_ext.server import Memory, by_token, create_app

MEMORY = {"main_topics": ["plants"], "action": ["grow seeds"], "typical_observation": "Is curious."}
ANN, ALL = "ann-0123456789abcdef", "all-0123456789abcdef"
TASKS = "/langmem/tasks"


def app_on(url: str, **more: Any) -> Any:
    return create_app(url, memory=Memory(filling(MEMORY)), **more)


@pytest.fixture
async def saver(url: str) -> AsyncIterator[DeltaSaver]:
    async with DeltaSaver.from_conn_string(url) as saver:
        yield saver


@pytest.fixture
async def caller(url: str) -> AsyncIterator[Caller]:
    async with calling(app_on(url)) as caller:
        yield caller


async def talk(saver: DeltaSaver, thread_id: str, owner: str | None = None) -> None:
    history = ThreadChatMessageHistory(
        thread_id, saver if owner is None else saver.for_owner(owner)
    )
    await history.aadd_messages(
        [
            HumanMessage("How do plants grow?", id=f"{thread_id}-1"),
            AIMessage("By light.", id=f"{thread_id}-2"),
        ]
    )


async def memory_of(caller: Caller, thread_id: str) -> Any:
    answer = await caller.http.get(f"/langmem/internal/conversations/{thread_id}/memory")
    return answer.json() if answer.status_code == 200 else answer.status_code


async def test_a_memory_is_written_at_once_or_later_and_read(
    caller: Caller, saver: DeltaSaver
) -> None:
    for thread in ("t1", "t2"):
        await talk(saver, thread)
    assert await memory_of(caller, "t1") == 404
    once = {"sync": True}
    done = await caller.http.post(f"{TASKS}/generate-memory-for-conversation/t1", params=once)
    assert (done.status_code, done.json()["result"]["written"]) == (200, 1)
    memory = await memory_of(caller, "t1")
    assert (memory["conversation_id"], memory["memory_data"]) == ("t1", MEMORY)
    assert memory["messages"] == ["t1-1", "t1-2"]

    asked = await caller.http.post(f"{TASKS}/generate-memory-for-conversation/t2")
    task = asked.json()
    assert (asked.status_code, task["status"]) == (202, "queued")
    assert task["task_type"] == "GENERATE_MEMORY_BATCH"

    async def ended() -> Any:
        state = (await caller.http.get(f"{TASKS}/{task['task_id']}")).json()
        return state if state["status"] in ("done", "failed") else None

    state = await auntil(ended)
    assert (state["status"], state["result"]["written"], state["attempts"]) == ("done", 1, 1)
    assert (await memory_of(caller, "t2"))["memory_data"] == MEMORY


async def test_a_memory_is_put_and_takes_the_place_of_the_one_before(
    caller: Caller, saver: DeltaSaver
) -> None:
    async def put(thread: str, **data: Any) -> httpx.Response:
        body = {"conversation_id": thread, "memory_data": data}
        return await caller.http.post("/langmem/memories", json=body)

    await talk(saver, "t1")
    for topics in (["a"], ["b"]):
        assert (await put("t1", **{**MEMORY, "main_topics": topics})).status_code == 200
    wrong = await put("t1", main_topics="4711")
    assert (wrong.status_code, "main_topics" in wrong.text) == (422, True)
    assert "4711" not in wrong.text
    assert (await put("nobody", **MEMORY)).status_code == 404
    assert (await memory_of(caller, "t1"))["memory_data"]["main_topics"] == ["b"]


async def test_a_users_memories_are_written_by_the_parameters_that_are_given(
    caller: Caller, saver: DeltaSaver
) -> None:
    for name in ("t1", "t2", "t3"):
        await talk(saver, name, "ann")
    await talk(saver, "other", "bob")
    await Threads(saver.for_owner("ann")).acreate("empty")
    user = f"{TASKS}/generate-memories-for-user/ann"

    async def written(path: str, **params: Any) -> Any:
        answer = await caller.http.post(path, params=params)
        assert answer.status_code == 200, answer.text
        return {name: count for name, count in answer.json()["result"].items() if count}

    assert await written(user, sync=True) == {}  # nobody has been at rest for long enough
    assert await written(f"{TASKS}/trigger-memory-generation/sync") == {}
    assert await written(user, sync=True, only_needing=False, clamp=1) == {"written": 1}
    assert await written(user, sync=True, only_needing=False, include_empty=True) == {
        "written": 3,
        "empty": 1,
    }
    memories = (await caller.http.get("/langmem/internal/users/ann/memories")).json()
    assert sorted(memory["conversation_id"] for memory in memories) == ["t1", "t2", "t3"]
    assert await written(f"{TASKS}/trigger-memory-generation", sync=True, idle=0, clamp=-1) == {
        "written": 1
    }  # bob's
    assert (await caller.http.post(user, params={"clamp": 0})).status_code == 422
    assert (
        await caller.http.post(
            TASKS, json={"task_type": "GENERATE_MEMORY_BATCH", "payload": {"user_id": "ann"}}
        )
    ).status_code == 202
    assert (await caller.http.post(TASKS, json={"task_type": "OTHER"})).status_code == 422


async def test_an_owner_sees_and_writes_its_own_memories_alone(url: str, saver: DeltaSaver) -> None:
    await talk(saver, "t1", "ann")
    await talk(saver, "t2", "bob")
    app = app_on(url, access=by_token({ANN: "ann", ALL: None}))
    async with (
        calling(app, headers={"X-Api-Key": ANN}) as ann,
        another(app, headers={"X-Api-Key": ALL}) as every,
    ):
        for caller, path in (
            (every, "generate-memories-for-user/bob"),
            (ann, "generate-memory-for-conversation/t1"),
        ):
            params = {"sync": True, "only_needing": False}
            done = await caller.http.post(f"{TASKS}/{path}", params=params)
            assert done.json()["result"]["written"] == 1
        for caller in (ann, every):  # whoever wrote it, all who may see the thread see it
            assert (await memory_of(caller, "t1"))["memory_data"] == MEMORY
        assert await memory_of(ann, "t2") == 404
        batch = {"task_type": "GENERATE_MEMORY_BATCH", "payload": {"user_id": "bob"}}
        for method, path, body in (
            ("GET", "/langmem/internal/users/bob/memories", None),
            ("POST", f"{TASKS}/generate-memories-for-user/bob", None),
            ("POST", f"{TASKS}/generate-memory-for-conversation/t2", None),
            ("GET", "/langmem/internal/conversations/t2/messages_for_brain", None),
            ("POST", TASKS, batch),
        ):
            assert (await ann.http.request(method, path, json=body)).status_code == 404, path


async def test_without_a_model_memories_are_put_and_read(url: str, saver: DeltaSaver) -> None:
    await talk(saver, "t1")
    async with calling(create_app(url)) as caller:
        task = f"{TASKS}/generate-memory-for-conversation/t1"
        refused = await caller.http.post(task, params={"sync": True})
        assert (refused.status_code, "--memory-model" in refused.text) == (501, True)
        body = {"conversation_id": "t1", "memory_data": MEMORY}
        await caller.http.post("/langmem/memories", json=body)
        assert (await memory_of(caller, "t1"))["memory_data"] == MEMORY


async def test_a_prompt_has_versions_of_which_one_is_used(url: str, saver: DeltaSaver) -> None:
    await talk(saver, "t1")
    model = filling(MEMORY)
    app = create_app(url, memory=Memory(model), access=by_token({ANN: "ann", ALL: None}))
    prompts = "/langmem/prompts/memory_generation"

    async def add(caller: Caller, text: str, query: str = "") -> httpx.Response:
        return await caller.http.post(f"{prompts}/versions{query}", json={"prompt_text": text})

    async with (
        calling(app, headers={"X-Api-Key": ALL}) as every,
        another(app, headers={"X-Api-Key": ANN}) as ann,
    ):
        assert (await every.http.get(prompts)).status_code == 404
        first = (await add(every, "Note the first.", "?set_active=true")).json()
        second = (await add(every, "Note the second.")).json()
        assert (first["is_active"], second["is_active"]) == (True, False)
        assert (await every.http.get(prompts)).json() == first
        await every.http.post(f"{prompts}/versions/{second['id']}/activate")
        versions = (await every.http.get(f"{prompts}/versions")).json()
        assert [one["is_active"] for one in versions].count(True) == 1
        await every.http.post(f"{TASKS}/generate-memory-for-conversation/t1", params={"sync": True})
        assert "Note the second." in model.asked[-1]
        assert (await every.http.post(f"{prompts}/versions/nothing/activate")).status_code == 422
        assert (await add(every, " ")).status_code == 422
        assert (await add(ann, "mine")).status_code == 403
        assert (await ann.http.get(prompts)).status_code == 403
