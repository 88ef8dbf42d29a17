"""Who looks after conversations sees which of them wait, answers one, and sees what a model would
be sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from calling import Caller, calling
from langchain_core.messages import AIMessage, HumanMessage
from served import greeter, notebook

from graphs.support import make_graph
from langmem_ext import DeltaSaver, ThreadChatMessageHistory
from langmem_ext.server import Limits, create_app


@pytest.fixture
async def desk(url: str) -> AsyncIterator[Caller]:
    """The order desk: a waiting graph, made with the server's own saver."""
    async with calling(create_app(url, graph=make_graph)) as caller:
        yield caller


async def reply(caller: Caller, thread_id: str, text: str, **more: Any) -> Any:
    answer = await caller.http.post(
        f"/langmem/threads/{thread_id}/reply", json={"text": text, **more}
    )
    return answer.json() | {"status": answer.status_code}


async def test_a_waiting_thread_is_found_with_its_question_and_answered(desk: Caller) -> None:
    for name in ("t1", "t2"):
        await desk.sdk.threads.create(thread_id=name)
    asked = await reply(desk, "t1", "I want to check my order")
    assert asked["waiting_for"] == "order_id"
    await reply(desk, "t2", "hello")
    [found] = (await desk.http.get("/langmem/waiting")).json()
    assert (found["thread_id"], found["waiting_for"], found["title"]) == (
        "t1",
        "order_id",
        "I want to check my order",
    )
    assert found["reply"] in asked["reply"]
    answered = await reply(
        desk,
        found["thread_id"],
        "It's O-12345",
        message_id="m1",
        config={"tz": "Europe/Rome", "owner": "bob"},
    )
    assert (answered["waiting_for"], answered["params_keys"]) == (None, ["order_id"])
    assert "O-12345" in answered["reply"]
    assert (await reply(desk, "t1", "It's O-12345", message_id="m1"))["reply"] == answered["reply"]
    values = (await desk.sdk.threads.get("t1"))["values"]
    assert [message["content"] for message in values["messages"]].count("It's O-12345") == 1  # type: ignore[call-overload]
    assert (await desk.http.get("/langmem/waiting")).json() == []


async def test_interrupts_of_any_graph_wait_and_are_answered() -> None:
    async with calling(create_app(":memory:", graph=greeter())) as caller:
        await caller.sdk.runs.wait(
            "t1", "agent", input={"messages": ["hi"]}, if_not_exists="create"
        )
        [found] = (await caller.http.get("/langmem/waiting")).json()
        assert found["reply"] == "What's your name?"
        assert found["interrupts"][0]["value"] == {"question": "What's your name?"}
        assert (await reply(caller, "t1", "Ann"))["reply"] == "Hello Ann"


async def test_a_reply_that_cannot_be_delivered_is_refused() -> None:
    async with calling(
        create_app(":memory:", graph=notebook(), limits=Limits(wait=0.05))
    ) as caller:
        assert (await reply(caller, "nobody", "hi"))["status"] == 404
        run = await caller.sdk.runs.create(
            "t1", "agent", input={"notes": ["slowly"]}, if_not_exists="create"
        )
        busy = await reply(caller, "t1", "hi")
        assert (busy["status"], "another caller" in busy["detail"]) == (409, True)
        await caller.sdk.runs.cancel("t1", run["run_id"], wait=True)
        await caller.sdk.threads.create(thread_id="t2")
        assert (await reply(caller, "t2", "hi"))["status"] == 409  # it has no channel for messages
    async with calling(create_app(":memory:")) as bare:
        await bare.sdk.threads.create(thread_id="t1")
        assert (await reply(bare, "t1", "hi"))["status"] == 501


async def test_what_a_model_would_be_sent_is_shown_beside_what_is_left_out(url: str) -> None:
    async with DeltaSaver.from_conn_string(url) as saver:
        history = ThreadChatMessageHistory("t1", saver)
        for number in range(20):
            await history.aadd_messages(
                [HumanMessage(f"question {number} " + "word " * 50), AIMessage(f"answer {number}")]
            )
    async with calling(create_app(url)) as caller:
        whole = (
            await caller.http.get("/langmem/threads/t1/context", params={"budget": 100_000})
        ).json()
        assert (whole["messages"], whole["sent"]) == (40, 40)
        part = (
            await caller.http.get(
                "/langmem/threads/t1/context", params={"budget": 600, "system": "Be brief."}
            )
        ).json()
        assert part["sent"] < 40
        assert part["after"] <= part["limit"] < 600
        assert part["request"][-1]["content"] == "answer 19"
        assert any(name == "left out" for name, _ in part["rows"])
        assert (
            await caller.http.get("/langmem/threads/t1/context", params={"budget": 5})
        ).status_code == 422
        assert (
            len(await caller.sdk.threads.get_history("t1", limit=100)) == 20
        )  # nothing was changed
