"""Promise: an answer counts for the question that it was given to, and for no other."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from payments import Payments

from langmem_ext import DeltaSaver, StaleAnswer, Turn, aconverse, converse
from langmem_ext.inspector import inspector_router
from langmem_ext.server import create_app


def two_questions(desk: Payments, saver: Any) -> Any:
    """A thread that shows the confirmation of a refund, and has another one behind it."""
    graph = desk.graph(saver)
    for text in ("cancel my order O-123", "refund O-777"):
        turn = converse(graph, text, thread_id="t")
    assert turn.reply.endswith("Refund O-777?")
    return graph


def ids(first: str | None, second: str | None) -> tuple[str | None, str | None]:
    return first, second


TWICE = pytest.mark.parametrize("message_ids", [ids(None, None), ids("m", "m"), ids("m1", "m2")])


@TWICE
def test_a_yes_that_was_sent_twice_confirms_what_was_seen_alone(
    tmp_path: Path, message_ids: tuple[str | None, str | None]
) -> None:
    desk = Payments(tmp_path, refunds_take=0.6)
    with DeltaSaver.open(tmp_path / "m.db") as saver:
        graph = two_questions(desk, saver)

        stale: list[StaleAnswer] = []

        def yes(delay: float, message_id: str | None) -> None:
            time.sleep(delay)
            try:
                converse(graph, "yes", thread_id="t", message_id=message_id)
            except StaleAnswer as error:
                stale.append(error)

        threads = [
            threading.Thread(target=yes, args=given)
            for given in zip((0, 0.25), message_ids, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert desk.ran == [("refunded", "O-777")]
        assert len(stale) == (message_ids != ("m", "m")), "the same message is delivered once"
        assert converse(graph, thread_id="t").reply.endswith("Cancel O-123?")


@TWICE
async def test_a_yes_that_was_sent_twice_confirms_what_was_seen_alone_async(
    tmp_path: Path, message_ids: tuple[str | None, str | None]
) -> None:
    desk = Payments(tmp_path, refunds_take=0.6)
    async with await DeltaSaver.aopen(tmp_path / "m.db") as saver:
        graph = await asyncio.to_thread(two_questions, desk, saver)

        async def yes(delay: float, message_id: str | None) -> None:
            await asyncio.sleep(delay)
            await aconverse(graph, "yes", thread_id="t", message_id=message_id)

        both = (yes(*given) for given in zip((0, 0.25), message_ids, strict=True))
        outcomes = await asyncio.gather(*both, return_exceptions=True)
        stale = [outcome for outcome in outcomes if isinstance(outcome, StaleAnswer)]
        assert len(stale) == (message_ids != ("m", "m"))
        assert desk.ran == [("refunded", "O-777")]


def changed(desk: Payments, graph: Any) -> tuple[Turn, Turn]:
    """What was asked first, and what somebody else has made of it since."""
    first = converse(graph, "pay 50", thread_id="t")
    return first, converse(graph, "no, 5000", thread_id="t")


def test_a_question_may_be_named_and_one_that_waits_no_more_is_refused(tmp_path: Path) -> None:
    for saver in (InMemorySaver(), DeltaSaver()):
        desk = Payments(tmp_path)
        graph = desk.graph(saver)
        first, second = changed(desk, graph)
        for answer in ({"text": "yes"}, {"resume": "yes"}):
            with pytest.raises(StaleAnswer, match="no longer asked"):
                converse(graph, thread_id="t", interrupt_id=first.interrupts[0].id, **answer)
        assert desk.ran == []
        assert converse(graph, thread_id="t").interrupts == second.interrupts
        converse(graph, "yes", thread_id="t", interrupt_id=second.interrupts[0].id)
        assert desk.ran == [("paid", 5000)]
        with pytest.raises(StaleAnswer):  # nothing waits: it begins no turn either
            converse(graph, "yes", thread_id="t", interrupt_id=second.interrupts[0].id)


async def test_a_named_question_that_waits_no_more_is_refused_async(tmp_path: Path) -> None:
    desk = Payments(tmp_path)
    graph = desk.graph(InMemorySaver())
    first, second = await asyncio.to_thread(changed, desk, graph)
    with pytest.raises(StaleAnswer):
        await aconverse(graph, "yes", thread_id="t", interrupt_id=first.interrupts[0].id)
    await aconverse(graph, "yes", thread_id="t", interrupt_id=second.interrupts[0].id)
    assert desk.ran == [("paid", 5000)]


def test_a_message_that_was_written_before_any_question_answers_none(tmp_path: Path) -> None:
    desk = Payments(tmp_path)
    graph = desk.graph(DeltaSaver())
    idle = converse(graph, "hello", thread_id="t")
    assert idle.interrupt_id == ""
    asked = converse(graph, "pay 50", thread_id="t", interrupt_id=idle.interrupt_id)
    with pytest.raises(StaleAnswer):
        converse(graph, "yes", thread_id="t", interrupt_id=idle.interrupt_id)
    assert desk.ran == []
    converse(graph, "yes", thread_id="t", interrupt_id=asked.interrupt_id)
    assert desk.ran == [("paid", 50)]


async def test_a_run_that_resumes_answers_what_waited_when_it_was_sent(tmp_path: Path) -> None:
    desk = Payments(tmp_path)
    async with await DeltaSaver.aopen(tmp_path / "m.db") as saver:
        graph = desk.graph(saver)
        first, second = await asyncio.to_thread(changed, desk, graph)
        transport = httpx.ASGITransport(create_app(saver, graph=graph, sweep_every=None))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:

            async def resume(answer: Any) -> int:
                body = {"assistant_id": "agent", "command": {"resume": answer}}
                return (await client.post("/threads/t/runs/wait", json=body)).status_code

            assert await resume({first.interrupt_id: "yes"}) == 409
            assert desk.ran == []
            assert await resume({second.interrupt_id: "yes"}) == 200
            assert desk.ran == [("paid", 5000)]
            assert await resume({second.interrupt_id: "yes"}) == 409
            assert desk.ran == [("paid", 5000)]


def test_a_message_that_was_delivered_is_sent_again_in_vain_not_stale(tmp_path: Path) -> None:
    desk = Payments(tmp_path)
    graph = desk.graph(DeltaSaver())
    asked = converse(graph, "pay 50", thread_id="t").interrupts[0].id
    for _ in range(2):
        turn = converse(graph, "yes", thread_id="t", message_id="m", interrupt_id=asked)
        assert turn.reply == "Paid 50."
    assert desk.ran == [("paid", 50)]


def test_the_second_of_two_questions_may_be_answered_first() -> None:
    def asks(name: str) -> Callable[[Any], dict[str, Any]]:
        return lambda _: {"messages": [("ai", f"{name}: {interrupt(name)}")]}

    builder = StateGraph(MessagesState)
    for name in ("tea", "cake"):
        builder.add_node(name, asks(name)).add_edge(START, name)
    graph = builder.compile(checkpointer=DeltaSaver())
    first = converse(graph, "hello", thread_id="t")
    cake = next(question for question in first.interrupts if question.value == "cake")
    converse(graph, "lemon", thread_id="t", interrupt_id=cake.id)
    turn = converse(graph, "green", thread_id="t")
    assert {*turn.reply.splitlines()} == {"tea: green", "cake: lemon"}


@pytest.mark.parametrize("way", ["page", "reply"])
async def test_a_page_that_shows_an_older_question_answers_no_newer_one(
    tmp_path: Path, way: str
) -> None:
    desk = Payments(tmp_path)
    async with await DeltaSaver.aopen(tmp_path / "m.db") as saver:
        graph = desk.graph(saver)
        app = create_app(saver, graph=graph, sweep_every=None)
        app.include_router(inspector_router(saver, graph=graph), prefix="/ui")
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:

            async def say(text: str, **given: str) -> httpx.Response:
                return await client.post(
                    "/langmem/threads/t/reply", json={"text": text, **given}, timeout=30
                )

            async def fields() -> dict[str, str]:
                page = (await client.get("/ui/thread?id=t")).text
                compose = page[page.rindex('<form class="compose"') :]
                return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', compose))

            async def answer(asked: dict[str, str]) -> httpx.Response:
                if way == "page":
                    sent = {**asked, "id": "t", "text": "yes"}
                    return await client.post("/ui/thread/reply", data=sent, timeout=30)
                return await say("yes", interrupt_id=asked["interrupt_id"])

            await client.post("/threads", json={"thread_id": "t"})
            shown = (await say("pay 50")).json()
            asked = await fields()
            assert asked["interrupt_id"] == shown["interrupts"][0]["id"]
            await say("no, 5000")
            refused = await answer(asked)
            assert refused.status_code == 409
            if way == "page":  # with what waits now
                assert "Your message was not sent." in refused.text
                assert "Pay 5000?" in refused.text
            else:
                assert "nothing was changed" in refused.text
            assert desk.ran == []
            assert (await answer(await fields())).status_code in (200, 303)
            assert desk.ran == [("paid", 5000)]
