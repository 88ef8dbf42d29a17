"""Promise: a thread that was deleted stays deleted, whatever its runs still write.

Nothing is refused without a deletion: each process has a first turn in each thread, which succeeds.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from calling import calling
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from patience import PATIENCE_S
from savers import Calls, Mode

from langmem_ext import DeltaSaver, DeltaStore, ThreadChatMessageHistory, ThreadDeleted, Threads
from langmem_ext.server import by_token, create_app

SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"
OLD = "canary of a deleted conversation"
PROCESS = [sys.executable, str(Path(__file__).parents[1] / "helpers/programs/outliving.py")]

PIPES: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}


def config(thread: str = "t") -> Any:
    return {"configurable": {"thread_id": thread}}


def chain(*nodes: Any) -> StateGraph[Any]:
    named = [(f"step{number}", node) for number, node in enumerate(nodes)]
    return StateGraph(MessagesState).add_sequence(named).add_edge(START, "step0")


def say(saver: DeltaSaver, text: str, thread: str = "t") -> list[str]:
    """Have a turn; the conversation."""
    graph = chain(lambda state: {"messages": [AIMessage(f"re: {text}")]}).compile(
        checkpointer=saver
    )
    found = graph.invoke({"messages": [HumanMessage(text)]}, config(thread))
    return [message.text for message in found["messages"]]


def stored(saver: DeltaSaver) -> str:
    """All that any view shows of any thread."""
    threads = Threads(saver)
    exported = ["".join(threads.export_lines(thread.id)) for thread in threads.list()]
    return repr([list(saver.list(None)), exported, [hit.text for hit in threads.search("canary")]])


async def test_a_run_brings_nothing_back(url: str, mode: Mode) -> None:
    with DeltaSaver.open(url) as saver, DeltaSaver.open(url) as other:

        def step(state: MessagesState) -> Any:
            return {"messages": [AIMessage(OLD)]}

        def delete(state: MessagesState) -> Any:
            if len(state["messages"]) > 4:
                other.delete_thread("t")
                assert not again or say(other, "new") == ["new", "re: new"]
            return step(state)

        for durability, nested, again in product(
            ("sync", "async", "exit"), (False, True), (False, True)
        ):
            inner = chain(step, step).compile() if nested else step
            graph = chain(step, delete, step, inner, step).compile(checkpointer=saver)
            turn = Calls(mode), graph, "invoke", {"messages": [HumanMessage(OLD)]}, config()
            await turn[0].call(*turn[1:])
            with pytest.raises(ThreadDeleted, match="start a new conversation"):
                await turn[0].call(*turn[1:], durability=durability)
            case = f"durability={durability}, nested={nested}, again={again}"
            assert [one.id for one in Threads(saver).list()] == (["t"] if again else []), case
            assert OLD not in stored(saver), case
            before = ["new", "re: new"] if again else []
            assert say(saver, "next") == [*before, "next", "re: next"], case
            saver.delete_thread("t")


async def test_a_conversation_under_a_deleted_threads_id_is_new(url: str, mode: Mode) -> None:
    with DeltaSaver.open(url) as saver:
        say(saver, "old")
        say(saver, "other", "source")
        await Calls(mode).call(saver, "delete_thread", "t")
        await Calls(mode).call(saver, "copy_thread", "source", "t")
        assert say(saver, "next") == ["other", "re: other", "next", "re: next"]
        kept = ThreadChatMessageHistory("h", saver)
        kept.add_messages([HumanMessage("x")])
        await Calls(mode).call(saver, "delete_thread", "h")
        kept.add_messages([AIMessage("y")])
        assert [one.text for one in kept.messages] == ["y"]


async def test_an_answer_to_a_deleted_thread_begins_a_new_one(url: str, mode: Mode) -> None:
    """As with LangGraph's savers, the graph asks again."""
    with DeltaSaver.open(url) as saver, DeltaSaver.open(url) as other:
        for by, durability in product((saver, other), ("sync", "async", "exit")):
            graph = chain(lambda state: {"messages": [interrupt("?")]}).compile(checkpointer=by)
            graph.invoke({"messages": [HumanMessage(OLD)]}, config())
            other.delete_thread("t")
            call = graph, "invoke", Command(resume="yes"), config()
            again = await Calls(mode).call(*call, durability=durability)
            assert [one.value for one in again["__interrupt__"]] == ["?"]
            assert OLD not in stored(saver)
            assert (await Calls(mode).call(*call))["messages"][-1].text == "yes"
            other.delete_thread("t")


@pytest.mark.parametrize("way", ["the thread", "its owner"])
async def test_what_a_server_kept_of_a_thread_goes_with_it(url: str, way: str) -> None:
    """Its queue has the messages, and its records the prompts."""
    graph = chain(lambda state: {"messages": [AIMessage("noted")]}).compile()
    access = by_token({"bob-0123456789abcdef": "bob"})
    async with await DeltaSaver.aopen(url) as saver:
        app = create_app(saver, graph=graph, access=access, sweep_every=None)
        async with calling(app, headers={"authorization": "Bearer bob-0123456789abcdef"}) as bob:
            path = "/langmem/conversations/t/messages"
            sent = (await bob.http.post(path, json={"content": OLD})).json()["message"]["id"]
            answer = f"/langmem/messages/{sent}/response"
            assert (await bob.http.get(answer)).json()["content"] == "noted"
            async with DeltaStore(saver) as store:
                assert len(await store.asearch(())) > 2
                if way == "the thread":
                    assert (await bob.http.delete("/threads/t")).status_code == 204
                else:
                    await Threads(saver).aforget_owner("bob")
                left = await store.asearch((), limit=100)
                assert OLD not in repr([item.value for item in left])
            for gone in (answer, f"/langmem/messages/{sent}/pipeline_steps"):
                assert (await bob.http.get(gone)).status_code == 404
            await bob.http.post("/threads", json={"thread_id": "t"})
            for gone in (answer, f"/langmem/messages/{sent}/pipeline_steps"):
                assert (await bob.http.get(gone)).status_code == 404


@pytest.mark.process
@pytest.mark.parametrize("again", [False, True], ids=["gone", "begun again"])
@pytest.mark.timeout(7200)
def test_runs_of_another_process_bring_nothing_back(url: str, again: bool) -> None:
    """Threads are deleted at random moments of runs in another process."""
    count, seed = (2_500, uuid4().int % 2**31) if SOAK else (10, 7)
    chance, refused = random.Random(seed), 0
    with (
        DeltaSaver.open(url, synchronous="normal") as saver,
        subprocess.Popen([*PROCESS, url, str(seed), str(count)], **PIPES) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(count):
            name, case = f"t{number}", f"seed {seed}, thread {number}"
            assert process.stdout.readline() == "begun\n", case
            time.sleep(chance.random() * 0.02)
            saver.delete_thread(name)
            said = say(saver, "new", name) if again else []
            refused += process.stdout.readline().startswith("refused")
            assert [one.id for one in Threads(saver).list()] == ([name] if again else []), case
            assert ThreadChatMessageHistory(name, saver).messages == [] or again, case
            if again:
                kept = ThreadChatMessageHistory(name, saver).messages
                assert [one.text for one in kept] == said, case
            assert OLD not in stored(saver), case
            saver.delete_thread(name)
            print(file=process.stdin, flush=True)
        assert process.wait(PATIENCE_S) == 0
    assert refused > count // 10, "hardly any run was under way"


@pytest.mark.process
@pytest.mark.timeout(7200)
def test_what_a_killed_process_had_written_late_does_not_come_back(url: str) -> None:
    chance = random.Random(99)
    with DeltaSaver.open(url, synchronous="normal") as saver:
        for number in range(500 if SOAK else 3):
            with subprocess.Popen([*PROCESS, url, str(number), "1"], **PIPES) as process:
                assert process.stdout is not None
                assert process.stdout.readline() == "begun\n"
                time.sleep(chance.random() * 0.02)
                saver.delete_thread("t0")
                time.sleep(chance.random() * 0.02)
                process.kill()
            assert Threads(saver).list() == []
            assert OLD not in stored(saver)
            assert say(saver, "new", "t0") == ["new", "re: new"]
            saver.delete_thread("t0")
