"""What is done in the inspector: a question answered, a thread forked and run again, a bundle made
that can be imported.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from inspected import browsing, config, read, steps_of, token_of, travel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph

from langmem_ext import DeltaSaver, Threads, examine
from langmem_ext.inspector import inspector_router


@pytest.fixture
def saver(url: str) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(url, synchronous="normal") as saver:
        yield saver


@pytest.fixture
def graph(saver: DeltaSaver) -> Any:
    graph = travel(saver)
    graph.invoke({"messages": [HumanMessage("Where to?", id="first")]}, config("trip"))
    return graph


@pytest.fixture
def client(saver: DeltaSaver, graph: Any) -> Iterator[TestClient]:
    with browsing(saver, graph=graph) as client:
        yield client


def send(client: TestClient, action: str, thread: str = "trip", **fields: str) -> Any:
    token = token_of(client.get("/ui/thread", params={"id": thread}).text)
    return client.post(f"/ui/thread/{action}", data={"token": token, "id": thread, **fields})


def test_the_waiting_question_is_answered_there(client: TestClient, graph: Any) -> None:
    answer = send(client, "reply", text="Oslo")
    assert answer.status_code == 200
    assert "Off to Oslo" in read(answer.text)
    assert graph.get_state(config("trip")).values["city"] == "Oslo"
    again = send(client, "reply", text="And now?")
    assert "And now?" in read(again.text)
    assert "Rome or Oslo?" in read(again.text)


def test_a_question_of_the_past_is_answered_otherwise_on_a_branch(
    client: TestClient, graph: Any
) -> None:
    state = graph.get_state(config("trip"))
    asked, question = state.config["configurable"]["checkpoint_id"], state.interrupts[0].id
    send(client, "reply", text="Oslo")
    old = graph.get_state(config("trip")).config
    assert send(client, "replay", at=asked, text="Rome", interrupt_id="?").status_code == 409
    assert graph.get_state(config("trip")).config == old, "no branch is left behind"
    answer = send(client, "replay", at=asked, text="Rome", interrupt_id=question)
    assert "Off to Rome" in read(answer.text)
    assert "Oslo" not in read(answer.text).replace("Rome or Oslo?", "")
    assert "2 branches" in read(answer.text)
    assert graph.get_state(old).values["city"] == "Oslo", "the branch of before is as it was"


def test_a_step_is_run_again(client: TestClient, graph: Any) -> None:
    send(client, "reply", text="Oslo")
    steps = steps_of(client.get("/ui/thread?id=trip").text)
    answer = send(client, "replay", at=steps[-1])
    assert answer.status_code == 200
    assert graph.get_state(config("trip")).interrupts, "it asks again"
    assert len(steps_of(answer.text)) > len(steps)


def test_a_thread_is_forked_from_a_step(client: TestClient, saver: DeltaSaver, graph: Any) -> None:
    asked = graph.get_state(config("trip")).config["configurable"]["checkpoint_id"]
    send(client, "reply", text="Oslo")
    answer = send(client, "fork", at=asked)
    assert "Go on" in read(answer.text)
    [copy] = [thread for thread in Threads(saver).list() if thread.id != "trip"]
    assert copy.forked_from == "trip"
    assert "Rome or Oslo?" in read(send(client, "reply", thread=copy.id, text="").text)
    assert send(client, "reply", thread=copy.id, text="Rome").status_code == 200
    assert graph.get_state(config("trip")).values["city"] == "Oslo"
    assert graph.get_state(config(copy.id)).values["city"] == "Rome"


def test_what_fails_is_said_and_leaves_no_half(client: TestClient, saver: DeltaSaver) -> None:
    def fail(state: MessagesState) -> dict[str, Any]:
        raise ValueError("no such flight")

    failing = (
        StateGraph(MessagesState).add_node(fail).add_edge(START, "fail").compile(checkpointer=saver)
    )
    with browsing(saver, graph=failing) as other:
        refused = send(other, "reply", text="hello")
        assert refused.status_code == 500
        assert "no such flight" in read(refused.text)
        assert "Traceback" not in refused.text
    assert send(client, "fork", at="nothing").status_code in (400, 404)
    assert send(client, "replay", at="nothing").status_code >= 400


def test_without_a_graph_nothing_is_run(saver: DeltaSaver, graph: Any) -> None:
    with browsing(saver) as client:
        assert send(client, "reply", text="Oslo").status_code == 409
        assert "city" not in graph.get_state(config("trip")).values


async def test_pages_and_answers_block_no_event_loop(saver: DeltaSaver, graph: Any) -> None:
    app = FastAPI()
    app.include_router(inspector_router(saver, graph=graph))
    transport, url = httpx.ASGITransport(app=app), "http://localhost"
    async with httpx.AsyncClient(transport=transport, base_url=url, follow_redirects=True) as http:
        form = {"id": "trip", "text": "Rome"}
        form["token"] = token_of((await http.get("/thread?id=trip")).text)
        assert "Off to Rome" in read((await http.post("/thread/reply", data=form)).text)


@pytest.mark.parametrize("what", ["words", "marked"])
def test_a_bundle_can_be_imported_anywhere(client: TestClient, graph: Any, what: str) -> None:
    state = graph.get_state(config("trip"))
    asked, question = state.config["configurable"]["checkpoint_id"], state.interrupts[0].id
    send(client, "reply", text="Oslo")
    send(client, "replay", at=asked, text="Rome", interrupt_id=question)
    answer = client.get(f"/ui/thread/bundle?id=trip&what={what}")
    assert "attachment" in answer.headers["Content-Disposition"]
    assert ("Where to?" in answer.text) == (what == "marked")
    with DeltaSaver.open(":memory:") as other:
        Threads(other).import_from(io.StringIO(answer.text), keep_ids=True)
        imported, here = (
            [*compiled.get_state_history(config("trip"))] for compiled in (travel(other), graph)
        )
        assert [(one.next, one.metadata["step"], one.parent_config) for one in imported] == [
            (one.next, one.metadata["step"], one.parent_config) for one in here
        ]
        assert [len(one.values.get("messages", ())) for one in imported] == [
            len(one.values.get("messages", ())) for one in here
        ]
        assert examine(other).ok


def test_a_bundle_without_words_has_none_wherever_they_stand(saver: DeltaSaver) -> None:
    """Only a message's own fields, and those of its blocks and tool calls, are names."""
    said = {"name": "Ann Lovelace", "id": "Order Seven", "status": "gone", "type": "refund"}
    call = {"name": "order", "args": said, "id": "c1", "type": "tool_call"}
    block = {"type": "tool_use", "id": "c1", "name": "order", "input": said}

    def answer(state: Any) -> dict[str, Any]:
        messages = [
            AIMessage([{"type": "text", "text": "Yes"}, block], tool_calls=[call]),
            ToolMessage([{"type": "text", "text": "gone"}], tool_call_id="c1", artifact=said),
        ]
        return {"messages": messages, "order": said}

    class Ordering(MessagesState):
        order: dict[str, Any]

    graph = StateGraph(Ordering).add_node("answer", answer).add_edge(START, "answer")
    compiled = graph.compile(checkpointer=saver)
    asked: Any = {"messages": ["hello"], "order": {}}
    compiled.invoke(asked, {**config("t"), "metadata": {"customer": "Ann"}})
    with browsing(saver, graph=compiled) as client:
        lines = client.get("/ui/thread/bundle?id=t&what=words").text
    with DeltaSaver.open(":memory:") as other:
        Threads(other).import_from(io.StringIO(lines), keep_ids=True)
        text = lines + repr([*other.list(None)])
    assert "'tool_use'" in text
    assert "'c1'" in text
    for word in ("Ann", "Lovelace", "Order Seven", "gone", "refund", "hello", "Yes"):
        assert word not in text, word
