"""A message is taken, answered, polled for, and what the model was sent for it can be read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
from calling import Caller, another, calling
from patience import auntil
from served import greeter, notebook, speaker

from langmem_ext import DeltaSaver
from langmem_ext.server import Limits, Task, TaskState, by_token, create_app

ANN, BOB = "ann-0123456789abcdef", "bob-0123456789abcdef"


@pytest.fixture
async def caller(url: str) -> AsyncIterator[Caller]:
    async with calling(create_app(url, graph=speaker("well met"))) as caller:
        yield caller


async def send(caller: Caller, thread_id: str, content: str) -> Any:
    answer = await caller.http.post(
        f"/langmem/conversations/{thread_id}/messages", json={"content": content, "purpose": "chat"}
    )
    assert answer.status_code == 202, answer.text
    return answer.json()["message"]


async def said(caller: Caller, thread_id: str, number: int) -> list[str]:
    """What was said in a conversation, once it is so much."""
    values: Any = (await caller.sdk.threads.get(thread_id))["values"] or {}
    texts = [one["content"] for one in values.get("messages", ())]
    return texts if len(texts) >= number else []


async def test_a_message_is_answered_and_its_prompt_can_be_read(caller: Caller) -> None:
    message = await send(caller, "t1", "Hello")
    assert (message["conversation_id"], message["content"], message["purpose"]) == (
        "t1",
        "Hello",
        "chat",
    )
    answered = await caller.http.get(f"/langmem/messages/{message['id']}/response")
    assert answered.status_code == 200
    answer = answered.json()
    assert (answer["content"], answer["in_reply_to"]) == ("well met", message["id"])
    for key in (answer["id"], message["id"]):
        [step] = (await caller.http.get(f"/langmem/messages/{key}/pipeline_steps")).json()
        assert (step["node"], step["prompt"], step["reply"]) == ("say", "human: Hello", "well met")
    values: Any = (await caller.sdk.threads.get("t1"))["values"]
    assert [one["id"] for one in values["messages"]] == [message["id"], answer["id"]]


async def test_an_answer_that_is_not_there_yet_is_polled_for() -> None:
    async with calling(create_app(":memory:", graph=greeter())) as caller:
        message = await send(caller, "t1", "Hello")
        asked = (await caller.http.get(f"/langmem/messages/{message['id']}/response")).json()
        assert (asked["id"], asked["content"]) == (None, "What's your name?")
        assert (await caller.http.get("/langmem/messages/nothing/response")).status_code == 404
        assert (
            await caller.http.get("/langmem/messages/nothing/pipeline_steps")
        ).status_code == 404
    async with calling(create_app(":memory:", graph=notebook())) as caller:
        message = await send(caller, "t1", "Hello")
        failed = await caller.http.get(f"/langmem/messages/{message['id']}/response")
        assert (failed.status_code, "no channel 'messages'" in failed.text) == (409, True)

    class Elsewhere:
        """A queue whose worker is another program."""

        def __init__(self) -> None:
            self.taken: dict[str, TaskState] = {}

        async def put(self, task: Task) -> None:
            self.taken[task.id] = TaskState(task)

        async def get(self, task_id: str, owner: str | None = None) -> TaskState | None:
            return self.taken.get(task_id)

    queue = Elsewhere()
    async with calling(create_app(":memory:", graph=greeter(), queue=queue)) as caller:
        message = await send(caller, "t1", "Hello")
        assert [state.task.payload["content"] for state in queue.taken.values()] == ["Hello"]
        waiting = await caller.http.get(
            f"/langmem/messages/{message['id']}/response", params={"wait": 0}
        )
        assert (waiting.status_code, waiting.json()["status"]) == (202, "queued")


async def test_a_message_that_was_taken_is_delivered_once_though_the_server_ends(url: str) -> None:
    async with calling(create_app(url, graph=speaker("well met"))) as caller:
        message = await send(caller, "t1", "Hello")
    async with calling(create_app(url, graph=speaker("well met"))) as caller:
        answer = await caller.http.get(f"/langmem/messages/{message['id']}/response")
        assert answer.json()["content"] == "well met"
        assert await auntil(partial(said, caller, "t1", 2)) == ["Hello", "well met"]


async def test_a_message_waits_for_who_is_using_the_conversation_however_long(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langmem_ext.server.queue.EVERY", 0.01)
    tries = set[str]()
    async with DeltaSaver.from_conn_string(url) as saver:
        app = create_app(
            saver, graph=speaker("well met"), limits=Limits(rate=None), sweep_every=None
        )
        async with calling(app) as caller, saver.alease("t"), saver.alease("u"):
            sent = [(await send(caller, thread, "one"))["id"] for thread in ("t", "u")]

            async def tried() -> bool:
                for name in sent:
                    task = (await caller.http.get(f"/langmem/tasks/{name}")).json()
                    assert task["status"] != "failed", task
                    tries.add(task["updated_at"])
                return len(tries) > 24

            await auntil(tried)
            await caller.sdk.threads.delete("u")
        async with calling(app) as caller:
            assert await auntil(partial(said, caller, "t", 2)) == ["one", "well met"]
            assert await caller.sdk.threads.count() == 1


async def test_another_owners_messages_are_not_there(url: str) -> None:
    app = create_app(url, graph=speaker("well met"), access=by_token({ANN: "ann", BOB: "bob"}))
    async with (
        calling(app, headers={"X-Api-Key": ANN}) as ann,
        another(app, headers={"X-Api-Key": BOB}) as bob,
    ):
        message = await send(ann, "t1", "Hello")
        answer = (await ann.http.get(f"/langmem/messages/{message['id']}/response")).json()
        assert (
            await bob.http.get(f"/langmem/messages/{message['id']}/response")
        ).status_code == 404
        assert (
            await bob.http.get(f"/langmem/messages/{answer['id']}/pipeline_steps")
        ).status_code == 404
        assert (await bob.http.get(f"/langmem/tasks/{message['id']}")).status_code == 404
        refused = await bob.http.post(
            "/langmem/conversations/t1/messages", json={"content": "mine"}
        )
        assert refused.status_code == 404
    async with calling(create_app(":memory:")) as bare:
        assert (
            await bare.http.post("/langmem/conversations/t1/messages", json={"content": "hi"})
        ).status_code == 501
        assert await bare.sdk.threads.count() == 0
