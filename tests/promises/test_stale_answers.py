"""Promise: an answer counts for the question that it was given to, and for no other.

Nobody answers a question that they have not seen, by whichever way they answer.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from calling import calling
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from patience import PATIENCE_S
from payments import Payments
from savers import Calls
from small_graphs import asking_for, chain, config

import langmem_ext
from langmem_ext import DeltaSaver, StaleAnswer, aconverse, converse
from langmem_ext.inspector import inspector_router
from langmem_ext.server import create_app


class SlowPayments(Payments):
    """The desk, whose refunds last until they may end."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.refunding, self.may_end = threading.Event(), threading.Event()

    def end_refund(self) -> None:
        self.refunding.set()
        assert self.may_end.wait(PATIENCE_S)


async def two_questions(desk: Payments, saver: Any, behind: str = "cancel my order O-123") -> Any:
    """A thread that shows the confirmation of a refund, and has another question behind it."""
    graph = desk.graph(saver)
    for text in (behind, "refund O-777"):
        turn = await aconverse(graph, text, thread_id="t")
    assert turn.reply.endswith("Refund O-777?")
    return graph


async def test_what_another_callers_turn_asks_is_answered_by_no_message_from_before(
    tmp_path: Path, calls: Calls
) -> None:
    """Nor by the same yes, sent twice; a message that is the same is delivered once."""
    cancel = ("cancel my order O-123", "yes", "Cancel O-123?")
    for number, (behind, text, asked, *ids) in enumerate(
        [
            (*cancel, "first", None),
            (*cancel, "m1", "m2"),
            (*cancel, "m", "m"),
            ("cancel my order", "O-999", "Which order?", "first", None),
            ("pay 50", "send a note", "Pay 50?", "first", None),
        ]
    ):
        desk = SlowPayments(tmp_path)
        async with await DeltaSaver.aopen(tmp_path / f"{number}.db") as saver:
            graph = await two_questions(desk, saver, behind)

            async def send(text: str, message_id: str | None, graph: Any = graph) -> Any:
                given: Any = {"thread_id": "t", "message_id": message_id}
                if calls.mode == "sync":
                    return await asyncio.to_thread(converse, graph, text, **given)
                return await aconverse(graph, text, **given)

            first = asyncio.create_task(
                asyncio.to_thread(converse, graph, "yes", thread_id="t", message_id=ids[0])
            )
            assert await asyncio.to_thread(desk.refunding.wait, PATIENCE_S)
            second = asyncio.create_task(send(text, ids[1]))
            await asyncio.sleep(0.3)  # it waits for the lease by now
            desk.may_end.set()
            await first
            [outcome] = await asyncio.gather(second, return_exceptions=True)
            assert isinstance(outcome, StaleAnswer) == (ids[0] != ids[1]), (outcome, behind, ids)
            assert isinstance(outcome, StaleAnswer | langmem_ext.Turn), outcome
            turn = await aconverse(graph, thread_id="t")
            assert turn.reply.endswith(asked)
            assert turn.attempt == 1
            assert desk.ran == [("refunded", "O-777")]
            said = [message.text for message in graph.get_state(config()).values["messages"]]
            assert text not in said[said.index("yes") + 1 :]


async def test_a_question_may_be_named_and_one_that_waits_no_more_is_refused(
    tmp_path: Path, calls: Calls
) -> None:
    for saver in (InMemorySaver(), DeltaSaver()):
        desk = Payments(tmp_path)
        graph = desk.graph(saver)

        async def say(*text: str, graph: Any = graph, **given: Any) -> Any:
            return await calls.call(langmem_ext, "converse", graph, *text, thread_id="t", **given)

        idle = await say("hello")
        assert idle.interrupt_id == ""
        first = await say("pay 50", interrupt_id=idle.interrupt_id)
        assert first.interrupt_id == first.interrupts[0].id
        with pytest.raises(StaleAnswer):  # it was written before any question
            await say("yes", interrupt_id=idle.interrupt_id)
        second = await say("no, 5000")
        for text, answer in ((("yes",), {}), ((), {"resume": "yes"})):
            with pytest.raises(StaleAnswer, match="no longer asked"):
                await say(*text, interrupt_id=first.interrupt_id, **answer)
        assert desk.ran == []
        assert (await say()).interrupts == second.interrupts
        for _ in range(2):  # sent again it is in vain, and not stale
            given = {"interrupt_id": second.interrupt_id, "message_id": "m"}
            done = await say("yes", **given)
            assert (done.reply, done.interrupt_id) == ("Paid 5000.", "")
        with pytest.raises(StaleAnswer):  # nothing waits: it begins no turn either
            await say("yes", interrupt_id=second.interrupt_id)
        assert desk.ran == [("paid", 5000)]


async def test_a_run_that_resumes_answers_what_waited_when_it_was_sent(tmp_path: Path) -> None:
    desk = SlowPayments(tmp_path)
    async with await DeltaSaver.aopen(tmp_path / "m.db") as saver:
        graph = desk.graph(saver)
        app = create_app(saver, graph=graph, sweep_every=None)
        async with calling(app) as caller:

            async def run(thread: str, **work: Any) -> int:
                body = {"assistant_id": "agent", **work}
                path = f"/threads/{thread}/runs/wait"
                return (await caller.http.post(path, json=body)).status_code

            async def resume(answer: Any, thread: str = "t") -> int:
                return await run(thread, command={"resume": answer})

            async def reply(text: str) -> str:
                answer = await caller.http.post("/langmem/threads/t/reply", json={"text": text})
                return str(answer.json()["interrupt_id"])

            await caller.sdk.threads.create(thread_id="t")
            first, second = await reply("pay 50"), await reply("no, 5000")
            assert await resume({first: "yes"}) == 409
            assert desk.ran == []
            for status in (200, 409):
                assert await resume({second: "yes"}) == status
                assert desk.ran == [("paid", 5000)]
            # a page that names the checkpoint it shows is no traveller in time: a second click
            assert (await aconverse(graph, "pay 7", thread_id="v")).waiting_for == "confirmation"
            at = (await graph.aget_state(config("v"))).config["configurable"]["checkpoint_id"]
            for status in (200, 409):
                assert await run("v", command={"resume": "yes"}, checkpoint_id=at) == status
                assert desk.ran == [("paid", 5000), ("paid", 7)]
            # one that waited for another run resumes no question of its
            for text in ("cancel my order O-123", "refund O-777"):
                await aconverse(graph, text, thread_id="u")
            begun = asyncio.create_task(resume("yes", "u"))
            assert await asyncio.to_thread(desk.refunding.wait, PATIENCE_S)
            yes = {"messages": [("user", "yes")]}
            waited = [*map(asyncio.create_task, (resume("yes", "u"), run("u", input=yes)))]
            await asyncio.sleep(0.3)
            desk.may_end.set()
            assert await asyncio.gather(begun, *waited) == [200, 409, 409]
    assert desk.ran == [("paid", 5000), ("paid", 7), ("refunded", "O-777")]


async def test_a_queued_message_says_yes_to_nothing_that_was_asked_since(tmp_path: Path) -> None:
    desk = Payments(tmp_path)
    async with await DeltaSaver.aopen(tmp_path / "m.db") as saver:
        app = create_app(saver, graph=desk.graph(saver), sweep_every=None)
        async with calling(app) as caller:

            async def send(text: str) -> str:
                path = "/langmem/conversations/t/messages"
                sent = (await caller.http.post(path, json={"content": text})).json()
                return f"/langmem/messages/{sent['message']['id']}/response"

            for text in ("cancel my order O-123", "yes"):
                last = await send(text)
            asked = (await caller.http.get(last)).json()
            assert (asked["waiting_for"], desk.ran) == ("confirmation", [])
            await caller.http.get(await send("yes"))
            assert desk.ran == [("cancelled", "O-123")]


async def test_a_message_may_say_what_was_asked_when_it_was_written(
    tmp_path: Path, calls: Calls
) -> None:
    desk = Payments(tmp_path)
    graph = desk.graph(InMemorySaver())

    async def say(text: str, **given: Any) -> Any:
        return await calls.call(langmem_ext, "converse", graph, text, thread_id="t", **given)

    await say("cancel my order O-123")
    asked = await say("yes", seen=[])
    assert (asked.waiting_for, desk.ran) == ("confirmation", [])
    await say("yes", seen=[asked.interrupt_id])
    assert desk.ran == [("cancelled", "O-123")]


async def test_an_answer_to_what_another_caller_has_answered_begins_no_turn() -> None:
    heard: list[str] = []
    at_work, may_end = threading.Event(), threading.Event()

    def ask(state: MessagesState) -> dict[str, Any]:
        if state["messages"][-1].text != "hello":
            return {"messages": [("ai", "A turn of its own.")]}
        heard.append(interrupt("Delete all?"))
        at_work.set()
        assert may_end.wait(PATIENCE_S)
        return {"messages": [("ai", "Done.")]}

    graph = chain(ask, saver=DeltaSaver())
    await aconverse(graph, "hello", thread_id="t")
    first = asyncio.create_task(aconverse(graph, "no", thread_id="t"))
    assert await asyncio.to_thread(at_work.wait, PATIENCE_S)
    second = asyncio.create_task(asyncio.to_thread(converse, graph, "yes", thread_id="t"))
    await asyncio.sleep(0.3)
    may_end.set()
    await first
    with pytest.raises(StaleAnswer):
        await second
    assert heard == ["no"]
    assert (await aconverse(graph, thread_id="t")).reply == "Done."


def test_the_second_of_two_questions_may_be_answered_first() -> None:
    builder = StateGraph(MessagesState)
    for name in ("tea", "cake"):
        builder.add_node(name, asking_for(name, f"{name}: {{}}")).add_edge(START, name)
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
        async with calling(app) as caller:
            client = caller.http

            async def say(text: str, **given: str) -> httpx.Response:
                return await client.post("/langmem/threads/t/reply", json={"text": text, **given})

            async def fields() -> dict[str, str]:
                page = (await client.get("/ui/thread?id=t")).text
                compose = page[page.rindex('<form class="compose"') :]
                return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', compose))

            async def answer(asked: dict[str, str]) -> httpx.Response:
                if way == "page":
                    sent = {**asked, "id": "t", "text": "yes"}
                    return await client.post("/ui/thread/reply", data=sent)
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


CHAT = """
from pathlib import Path
from payments import Payments

def graph(saver):
    return Payments(Path({folder!r})).graph(saver)
"""


@pytest.mark.process
def test_a_chat_answers_the_question_that_it_has_shown(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(CHAT.format(folder=str(tmp_path)), encoding="utf-8")
    db = str(tmp_path / "m.db")
    command = [sys.executable, "-m", "langmem_ext.cli", "chat", "--thread", "t"]
    command += ["--db", db, "--graph", f"{tmp_path / 'app.py'}:graph"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    chat = subprocess.Popen(command, text=True, env=environment, **pipes)  # type: ignore[call-overload]
    try:
        chat.stdin.write("pay 50\n")
        chat.stdin.flush()
        assert chat.stdout.readline() == "Pay 50?\n"
        with DeltaSaver.open(db) as saver:  # somebody else, in another process
            graph = Payments(tmp_path).graph(saver)
            assert converse(graph, "no, 5000", thread_id="t").reply == "Pay 5000?"
        out, said = chat.communicate("yes\n", timeout=PATIENCE_S)
    finally:
        chat.kill()
    assert out == ""
    assert "Pay 5000?" in said
    with DeltaSaver.open(db) as saver:
        state = Payments(tmp_path).graph(saver).get_state(config())
        assert [asked.value["prompt"] for asked in state.interrupts] == ["Pay 5000?"]
