"""Promise: nobody answers a question that they have not seen, by whichever way they answer."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from patience import PATIENCE_S
from payments import Payments
from savers import Calls, Mode

import langmem_ext
from langmem_ext import DeltaSaver, StaleAnswer, aconverse, converse
from langmem_ext.server import create_app

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class SlowPayments(Payments):
    """The desk, whose refunds last until they may end."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.refunding, self.may_end = threading.Event(), threading.Event()
        outer = self

        class Ran(list[tuple[str, object]]):
            def append(self, item: tuple[str, object]) -> None:
                super().append(item)
                if item[0] == "refunded":
                    outer.refunding.set()
                    assert outer.may_end.wait(PATIENCE_S)

        self.ran = Ran()


async def while_another_turn_runs(desk: SlowPayments, graph: Any, text: str, mode: Mode) -> Any:
    """Send a message while a refund is made, which began with a yes; what became of it."""
    first = asyncio.create_task(
        asyncio.to_thread(converse, graph, "yes", thread_id="t", message_id="first")
    )
    assert await asyncio.to_thread(desk.refunding.wait, PATIENCE_S)

    async def second() -> Any:
        if mode == "sync":
            return await asyncio.to_thread(converse, graph, text, thread_id="t")
        return await aconverse(graph, text, thread_id="t")

    sent = asyncio.create_task(second())
    await asyncio.sleep(0.3)  # it waits for the lease by now
    desk.may_end.set()
    await first
    return (await asyncio.gather(sent, return_exceptions=True))[0]


@pytest.mark.parametrize(
    ("before", "text", "asked"),
    [
        ("cancel my order O-123", "yes", "Cancel O-123?"),
        ("cancel my order", "O-999", "Which order?"),
        ("pay 50", "send a note", "Pay 50?"),
    ],
)
async def test_what_another_callers_turn_asks_is_answered_by_no_message_from_before(
    tmp_path: Path, mode: Mode, before: str, text: str, asked: str
) -> None:
    desk = SlowPayments(tmp_path)
    async with await DeltaSaver.aopen(tmp_path / "m.db") as saver:
        graph = desk.graph(saver)
        for said in (before, "refund O-777"):
            await aconverse(graph, said, thread_id="t")
        outcome = await while_another_turn_runs(desk, graph, text, mode)
        assert isinstance(outcome, StaleAnswer)
        turn = await aconverse(graph, thread_id="t")
        assert turn.reply.endswith(asked)
        assert turn.attempt == 1
        assert desk.ran == [("refunded", "O-777")]
        said = [message.text for message in graph.get_state(CONFIG).values["messages"]]
        assert text not in said[said.index("yes") + 1 :]


def test_an_answer_to_what_another_caller_has_answered_begins_no_turn() -> None:
    heard: list[str] = []
    at_work, may_end = threading.Event(), threading.Event()

    def ask(state: MessagesState) -> dict[str, Any]:
        if state["messages"][-1].text != "hello":
            return {"messages": [("ai", "A turn of its own.")]}
        heard.append(interrupt("Delete all?"))
        at_work.set()
        assert may_end.wait(PATIENCE_S)
        return {"messages": [("ai", "Done.")]}

    builder = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask")
    graph = builder.compile(checkpointer=DeltaSaver())
    converse(graph, "hello", thread_id="t")
    refused: list[Exception] = []

    def answer(text: str) -> None:
        try:
            converse(graph, text, thread_id="t")
        except StaleAnswer as error:
            refused.append(error)

    threads = [threading.Thread(target=answer, args=(text,)) for text in ("no", "yes")]
    threads[0].start()
    assert at_work.wait(PATIENCE_S)
    threads[1].start()
    threads[1].join(0.3)
    may_end.set()
    for thread in threads:
        thread.join()
    assert heard == ["no"]
    assert len(refused) == 1
    assert converse(graph, thread_id="t").reply == "Done."


async def test_who_saw_no_question_answers_none(tmp_path: Path, mode: Mode) -> None:
    calls, desk = Calls(mode), Payments(tmp_path)
    graph = desk.graph(DeltaSaver())

    async def say(text: str, **given: Any) -> Any:
        return await calls.call(langmem_ext, "converse", graph, text, thread_id="t", **given)

    asked = await say("pay 50", interrupt_id="")
    assert asked.interrupt_id == asked.interrupts[0].id
    with pytest.raises(StaleAnswer):
        await say("yes", interrupt_id="")
    assert desk.ran == []
    done = await say("yes", interrupt_id=asked.interrupt_id)
    assert (done.reply, done.interrupt_id) == ("Paid 50.", "")


async def test_a_run_of_the_sdk_resumes_only_what_waits(tmp_path: Path) -> None:
    desk = Payments(tmp_path)
    async with await DeltaSaver.aopen(tmp_path / "m.db") as saver:
        app = create_app(saver, graph=desk.graph(saver), sweep_every=None)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:

            async def post(path: str, body: dict[str, Any]) -> httpx.Response:
                return await client.post(f"/{path}", json=body, timeout=PATIENCE_S)

            async def resume(value: Any) -> httpx.Response:
                body = {"assistant_id": "agent", "command": {"resume": value}}
                return await post("threads/t/runs/wait", body)

            await post("threads", {"thread_id": "t"})
            first = (await post("langmem/threads/t/reply", {"text": "pay 50"})).json()
            second = (await post("langmem/threads/t/reply", {"text": "no, 5000"})).json()
            refused = await resume({first["interrupt_id"]: "yes"})
            assert refused.status_code == 409
            assert desk.ran == []
            assert (await resume({second["interrupt_id"]: "yes"})).status_code == 200
            assert desk.ran == [("paid", 5000)]
            assert (await resume({second["interrupt_id"]: "yes"})).status_code == 409
            assert desk.ran == [("paid", 5000)]


async def test_a_run_that_waited_for_another_resumes_no_question_of_its(tmp_path: Path) -> None:
    desk = SlowPayments(tmp_path)
    async with await DeltaSaver.aopen(tmp_path / "m.db") as saver:
        graph = desk.graph(saver)
        for text in ("cancel my order O-123", "refund O-777"):
            await aconverse(graph, text, thread_id="t")
        app = create_app(saver, graph=graph, sweep_every=None)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            body = {"assistant_id": "agent", "command": {"resume": "yes"}}

            async def resume() -> httpx.Response:
                return await client.post("/threads/t/runs/wait", json=body, timeout=PATIENCE_S)

            first = asyncio.create_task(resume())
            assert await asyncio.to_thread(desk.refunding.wait, PATIENCE_S)
            second = asyncio.create_task(resume())
            await asyncio.sleep(0.3)
            desk.may_end.set()
            assert [(await first).status_code, (await second).status_code] == [200, 409]
    assert desk.ran == [("refunded", "O-777")]


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
    helpers = str(Path(__file__).parents[1] / "helpers" / "conversations")
    environment = {**os.environ, "PYTHONPATH": f"{Path.cwd()}:{helpers}"}
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
        state = Payments(tmp_path).graph(saver).get_state(CONFIG)
        assert [asked.value["prompt"] for asked in state.interrupts] == ["Pay 5000?"]
