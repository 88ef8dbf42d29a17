"""The calls that user interfaces make, in their order and form, by LangGraph's own SDK.

Agent Chat UI, deep-agents-ui and Agent Inbox are pages that call a server; what each of them calls
is read in its source. Here it is called of ours: they list, show, talk, stream and answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from asking import agent
from calling import Caller, calling
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from langmem_ext.server import create_app

ORIGIN = "https://chat.example.com"


@pytest.fixture
async def ui() -> AsyncIterator[Caller]:
    """A page of another origin, which the server lets call."""
    app = create_app(":memory:", graph=agent(None, "refund"), origins=[ORIGIN])
    async with calling(app, headers={"Origin": ORIGIN}) as caller:
        yield caller


def said(content: str, name: str) -> dict[str, Any]:
    return {"messages": [{"id": name, "type": "human", "content": content}]}


async def streamed(caller: Caller, thread: str, **options: Any) -> list[Any]:
    """A run's events, as `useStream` asks for them."""
    return [part async for part in caller.sdk.runs.stream(thread, "agent", **options)]


def texts(values: Any) -> list[str]:
    return [message["content"].strip() for message in values["messages"]]


async def test_agent_chat_ui_lists_shows_talks_streams_and_answers(ui: Caller) -> None:
    assert (await ui.http.get("/info")).is_success
    assert (await ui.http.get("/ok")).json() == {"ok": True}
    assert await ui.sdk.threads.search(metadata={"graph_id": "agent"}, limit=100) == []

    # The first message makes a thread; its stream ends with the question.
    thread = (await ui.sdk.threads.create(metadata={"graph_id": "agent"}))["thread_id"]
    modes: Any = ["values", "messages-tuple", "custom"]
    options: Any = {
        "stream_mode": modes,
        "stream_subgraphs": True,
        "stream_resumable": True,
        "on_disconnect": "continue",
    }
    parts = await streamed(ui, thread, input=said("My money back, please", "m1"), **options)
    assert parts[0].event == "metadata"
    assert any(part.event.startswith("messages") for part in parts)
    [asked] = parts[-1].data["__interrupt__"]
    assert asked["value"]["action_requests"][0]["name"] == "refund"
    assert asked["value"]["review_configs"][0]["allowed_decisions"]

    # Loaded again: the list with its titles, the history with its question.
    [listed] = await ui.sdk.threads.search(metadata={"graph_id": "agent"}, limit=100)
    assert listed["values"]["messages"][0]["content"] == "My money back, please"  # type: ignore[index]
    assert listed["status"] == "interrupted"
    history = await ui.sdk.threads.get_history(thread, limit=10)
    assert history[0]["tasks"][0]["interrupts"][0]["id"] == asked["id"]

    # The answer, as its approval form sends it.
    answer: Any = {"resume": {"decisions": [{"type": "approve"}]}}
    parts = await streamed(ui, thread, input=None, command=answer, **options)
    assert texts(parts[-1].data)[-2:] == ["refunded 5", "refunded 5"], "the tool and the agent"
    assert (await ui.sdk.threads.get(thread))["status"] == "idle"

    # An edited message runs from the checkpoint before it: a branch, which asks anew.
    history = await ui.sdk.threads.get_history(thread, limit=10)
    spoken = history[-2]
    assert texts(spoken["values"]) == ["My money back, please"]
    before: Any = spoken["parent_checkpoint"]
    edited = said("My money back!", "m2")
    parts = await streamed(ui, thread, input=edited, checkpoint=before, **options)
    assert texts(parts[-1].data)[0] == "My money back!"
    assert parts[-1].data["__interrupt__"][0]["id"] != asked["id"]
    assert (await ui.sdk.threads.get(thread))["status"] == "interrupted"

    # And it can be stopped by its run.
    [run, *_] = await ui.sdk.runs.list(thread)
    await ui.sdk.runs.cancel(thread, run["run_id"])


async def test_deep_agents_ui_pages_threads_and_keeps_files(ui: Caller) -> None:
    [assistant] = await ui.sdk.assistants.search(graph_id="agent", limit=100)
    assert assistant["metadata"] == {"created_by": "system"}
    assert await ui.sdk.assistants.get(assistant["assistant_id"]) == assistant
    assert await ui.sdk.assistants.search(graph_id="other") == []
    made = [(await ui.sdk.threads.create())["thread_id"] for _ in range(3)]
    options: Any = {"stream_mode": ["values"], "config": {"recursion_limit": 100}}
    for thread in made:
        await streamed(ui, thread, input=said("hi", "m1"), **options)

    # Its list goes on where the page before ended, and may be of one status alone.
    asked: Any = {"limit": 2, "sort_by": "updated_at", "sort_order": "desc"}
    pages = [await ui.sdk.threads.search(offset=offset, **asked) for offset in (0, 2)]
    assert [thread["thread_id"] for page in pages for thread in page] == made[::-1]
    waiting = await ui.sdk.threads.search(offset=0, status="interrupted", **asked)
    assert len(waiting) == 2
    assert await ui.sdk.threads.search(offset=0, status="idle", **asked) == []

    # The decision on a tool call, and a note put into the state.
    reject: Any = {"resume": {"decisions": [{"type": "reject", "message": "too much"}]}}
    parts = await streamed(ui, made[0], command=reject, **options)
    assert "too much" in str(parts[-1].data["messages"])
    note: Any = {"messages": [{"type": "human", "content": "noted", "id": "n1"}]}
    await ui.sdk.threads.update_state(made[0], note)
    history = await ui.sdk.threads.get_history(made[0])
    assert texts(history[0]["values"])[-1] == "noted"


class Mail(TypedDict):
    sent: str


def mailer() -> Any:
    """A graph that asks as Agent Inbox wants to be asked, whether a mail may be sent."""

    def ask(state: Mail) -> dict[str, Any]:
        [answer] = interrupt(
            [
                {
                    "action_request": {"action": "send_mail", "args": {"to": "ann"}},
                    "config": {
                        "allow_ignore": True,
                        "allow_respond": True,
                        "allow_edit": True,
                        "allow_accept": True,
                    },
                    "description": "A mail to Ann",
                }
            ]
        )
        return {"sent": answer["type"]}

    return StateGraph(Mail).add_node(ask).add_edge(START, "ask").compile()


async def test_agent_inbox_shows_what_waits_answers_and_ignores() -> None:
    app = create_app(":memory:", graph=mailer(), origins=[ORIGIN])
    async with calling(app, headers={"Origin": ORIGIN}) as inbox:
        made = [(await inbox.sdk.threads.create())["thread_id"] for _ in range(3)]
        for thread in made:
            await inbox.sdk.runs.wait(thread, "agent", input={"sent": ""})

        # What waits, with its questions in the rows; then one thread and its state.
        found = await inbox.sdk.threads.search(
            offset=0, limit=10, status="interrupted", metadata={"graph_id": "agent"}
        )
        assert {thread["thread_id"] for thread in found} == {*made}
        [[asked]] = [*found[-1]["interrupts"].values()]
        assert asked["value"][0]["action_request"]["action"] == "send_mail"
        assert (await inbox.sdk.threads.get(made[0]))["status"] == "interrupted"
        state = await inbox.sdk.threads.get_state(made[0])
        assert state["tasks"][0]["interrupts"][0]["id"] == asked["id"]

        # An answer in the background, one that is streamed, and one that is none.
        accept: Any = {"resume": [{"type": "accept", "args": None}]}
        run = await inbox.sdk.runs.create(made[0], "agent", command=accept)
        await inbox.sdk.runs.join(made[0], run["run_id"])
        edit: Any = {"resume": [{"type": "edit", "args": {"action": "send_mail", "args": {}}}]}
        parts = [part async for part in inbox.sdk.runs.stream(made[1], "agent", command=edit)]
        assert parts[-1].data == {"sent": "edit"}
        await inbox.sdk.threads.update_state(made[2], None, as_node="__end__")

        for thread, sent in zip(made, ("accept", "edit", ""), strict=True):
            state = await inbox.sdk.threads.get_state(thread)
            assert (state["values"], state["next"]) == ({"sent": sent}, [])
            assert (await inbox.sdk.threads.get(thread))["status"] == "idle"
        assert await inbox.sdk.threads.search(offset=0, limit=10, status="interrupted") == []
