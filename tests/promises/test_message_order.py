"""Messages that were accepted one after the other reach the conversation in that order, each once.

This holds over workers and processes, and after the death of one.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from calling import Caller, another, calling
from langchain_core.messages import AIMessage
from langgraph.graph import MessagesState
from langgraph.types import interrupt
from patience import auntil, until
from serving import serving
from small_graphs import chain

from langmem_ext.server import by_token, create_app

ANN, BOB = "ann-0123456789abcdef", "bob-0123456789abcdef"

PROGRAM = """
import asyncio, sys, time
from pathlib import Path
import uvicorn
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langmem_ext.server import create_app

port, database, stop = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])


async def answer(state: MessagesState):
    await asyncio.sleep(0.02)
    while stop.exists() and state["messages"][-1].text == "2":
        await asyncio.sleep(0.02)
    return {"messages": [AIMessage("ok")]}


graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer").compile()
uvicorn.run(create_app(database, graph=graph, sweep_every=None), port=port, log_level="critical")
"""


def answering(*, fail_once: bool = False) -> Any:
    """A graph that takes a moment for each message; that fails with the first one once."""
    tries: list[str] = []

    async def answer(state: MessagesState) -> dict[str, Any]:
        tries.append(state["messages"][-1].text)
        await asyncio.sleep(0.01)
        if fail_once and len(tries) == 1:
            raise RuntimeError("try again")
        return {"messages": [AIMessage("ok")]}

    return chain(answer)


async def send(caller: Caller, text: str, thread: str = "t", **more: Any) -> httpx.Response:
    body = {"content": text, **more}
    return await caller.http.post(f"/langmem/conversations/{thread}/messages", json=body)


async def heard(caller: Caller, number: int, thread: str = "t") -> list[str]:
    """What users said in the conversation, as soon as it is so much."""

    async def enough() -> list[str] | None:
        values: Any = (await caller.sdk.threads.get(thread))["values"] or {}
        said = [one["content"] for one in values.get("messages", ()) if one["type"] == "human"]
        return said if len(said) >= number else None

    return await auntil(enough) or []


async def test_messages_of_each_conversation_are_delivered_in_the_order_they_were_sent(
    url: str,
) -> None:
    async with calling(create_app(url, graph=answering(), sweep_every=None)) as caller:
        for text in "01234567":
            for thread in ("t", "a.b"):
                assert (await send(caller, text, thread)).status_code == 202
        for thread in ("t", "a.b"):
            assert await heard(caller, 8, thread) == [*"01234567"]


async def test_a_message_that_must_be_tried_again_is_not_overtaken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("langmem_ext.server.queue.EVERY", 0.05)
    async with calling(create_app(":memory:", graph=answering(fail_once=True))) as caller:
        for text in ("one", "two", "three"):
            await send(caller, text)
        assert await heard(caller, 3) == ["one", "two", "three"]


async def test_a_message_that_was_sent_before_a_question_is_heard_and_answers_nothing() -> None:
    sent = asyncio.Event()

    async def ask(state: MessagesState) -> dict[str, Any]:
        await sent.wait()
        return {"messages": [AIMessage(interrupt("?") if len(state["messages"]) == 1 else "ok")]}

    async with calling(create_app(":memory:", graph=chain(ask))) as caller:
        for text in ("one", "two", "three"):
            answer = f"/langmem/messages/{(await send(caller, text)).json()['message']['id']}"
        sent.set()
        assert (await caller.http.get(f"{answer}/response")).json()["content"] == "ok"
        assert await heard(caller, 3) == ["one", "two", "three"]


async def test_a_message_that_is_sent_twice_is_delivered_once(url: str) -> None:
    async with calling(create_app(url, graph=answering(), sweep_every=None)) as caller:
        sent = [await send(caller, "hello", message_id="m1") for _ in range(2)]
        sent += await asyncio.gather(*(send(caller, "hello", message_id="m1") for _ in range(5)))
        assert {answer.status_code for answer in sent} == {202}
        assert {answer.text for answer in sent} == {sent[0].text}
        assert sent[0].json()["message"]["id"] == "m1"
        answer = await caller.http.get("/langmem/messages/m1/response")
        assert (answer.status_code, answer.json()["in_reply_to"]) == (200, "m1")
        assert (await send(caller, "hello", message_id="m1")).text == sent[0].text
        await send(caller, "goodbye")
        assert await heard(caller, 2) == ["hello", "goodbye"]
        for other in (
            await send(caller, "another", message_id="m1"),
            await send(caller, "hello", "other", message_id="m1"),
        ):
            assert (other.status_code, "with its own" in other.text) == (409, True)


async def test_owners_choose_the_same_ids_without_seeing_each_other(url: str) -> None:
    app = create_app(url, graph=answering(), access=by_token({ANN: "ann", BOB: "bob"}))
    async with (
        calling(app, headers={"X-Api-Key": ANN}) as ann,
        another(app, headers={"X-Api-Key": BOB}) as bob,
    ):
        first = (await send(ann, "of ann", "a", message_id="m1")).json()
        assert (await bob.http.get("/langmem/messages/m1/response")).status_code == 404
        assert (await bob.http.get(f"/langmem/tasks/{first['task_id']}")).status_code == 404
        await send(bob, "of bob", "b", message_id="m1")
        for caller, thread, text in ((ann, "a", "of ann"), (bob, "b", "of bob")):
            answer = (await caller.http.get("/langmem/messages/m1/response")).json()
            assert answer["conversation_id"] == thread
            assert (await caller.http.get("/langmem/messages/m1/pipeline_steps")).is_success
            assert await heard(caller, 1, thread) == [text]


async def test_a_message_to_a_conversation_that_was_deleted_does_not_bring_it_back() -> None:
    gate = asyncio.Event()

    async def answer(state: MessagesState) -> dict[str, Any]:
        await gate.wait()
        return {"messages": [AIMessage("ok")]}

    async with calling(create_app(":memory:", graph=chain(answer))) as caller:
        await send(caller, "one")
        second = (await send(caller, "two")).json()["message"]["id"]

        assert await heard(caller, 1) == ["one"]
        await caller.sdk.threads.delete("t")
        gate.set()
        answer_to_it = await caller.http.get(f"/langmem/messages/{second}/response")
        assert answer_to_it.status_code == 404, "the message was deleted, too"
        assert await caller.sdk.threads.count() == 0


@pytest.mark.process
def test_two_processes_deliver_in_the_order_of_acceptance(url: str, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    with ExitStack() as stack:
        clients = [stack.enter_context(serving(PROGRAM, url, str(stop)))[0] for _ in range(2)]
        wanted = [str(number) for number in range(12)]
        for number, text in enumerate(wanted):
            body = {"content": text, "message_id": text}
            answer = clients[number % 2].post("/langmem/conversations/t/messages", json=body)
            assert answer.status_code == 202, answer.text
        assert texts(clients[0], len(wanted)) == wanted


@pytest.mark.process
def test_what_a_dead_process_had_begun_comes_before_what_follows(url: str, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    stop.touch()
    with serving(PROGRAM, url, str(stop)) as (client, running):
        for text in ("1", "2", "3"):
            client.post("/langmem/conversations/t/messages", json={"content": text})
        until(lambda: texts(client, 2) == ["1", "2"])
        with serving(PROGRAM, url, str(stop)) as (other, _):
            other.post("/langmem/conversations/t/messages", json={"content": "4"})
            running.kill()
            running.wait()
            stop.unlink()
            assert texts(other, 4) == ["1", "2", "3", "4"]


def texts(client: httpx.Client, number: int) -> list[str]:
    """What users said in the conversation, as soon as it is so much."""

    def found() -> list[str] | None:
        values = client.get("/threads/t").json()["values"] or {}
        spoken = [one["content"] for one in values.get("messages", ()) if one["type"] == "human"]
        return spoken if len(spoken) >= number else None

    return until(found) or []
