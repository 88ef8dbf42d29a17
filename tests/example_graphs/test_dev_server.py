"""The order desk in the agent server, as `langgraph.json` describes it, and other processes beside
it.

The server is a real `langgraph dev` in a folder of its own; the command line and a program with the
graph share its database file.
"""

from __future__ import annotations

import json
import shutil
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from agent_server import Desk
from langgraph_sdk.client import SyncLangGraphClient
from patience import PATIENCE_S, until

from langmem_ext import DeltaSaver

pytestmark = [pytest.mark.process, pytest.mark.interop]


def run(
    client: SyncLangGraphClient,
    thread: str,
    *,
    say: str | None = None,
    answer: Any = None,
    graph: str = "support",
) -> Any:
    """A run of the server on the thread, from start to rest or to a question."""
    given = (
        {"input": {"messages": [{"role": "user", "content": say}]}}
        if say
        else {"command": {"resume": answer}}
    )
    return client.runs.wait(thread, graph, **given)


def asked(client: SyncLangGraphClient, thread: str) -> list[str]:
    """The parameters that the thread waits for, as the server shows them."""
    return [
        interrupt["value"]["param"] for interrupt in client.threads.get_state(thread)["interrupts"]
    ]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_question_waits_in_the_server_and_is_answered_there(desk: Desk) -> None:
    with desk.serving() as client:
        thread = client.threads.create()["thread_id"]
        waiting = run(client, thread, say="I want to check my order")
        [question] = waiting["__interrupt__"]
        assert question["value"]["param"] == "order_id"
        assert client.threads.get(thread)["status"] == "interrupted"
        assert asked(client, thread) == ["order_id"]

        done = run(client, thread, answer="O-12345")
        assert done["messages"][-1]["content"].startswith("Order O-12345 is ")
        assert done["params"] == {"order_id": "O-12345"}
        assert client.threads.get(thread)["status"] == "idle"

        history: list[Any] = client.threads.get_history(thread, limit=50)
        counts = [len(snapshot["values"].get("messages", [])) for snapshot in history]
        assert counts == sorted(counts, reverse=True)
        assert (counts[0], counts[-1]) == (len(done["messages"]), 0)

        [waited] = [snapshot for snapshot in history if snapshot["next"] == ["ask_user"]]
        client.threads.update_state(
            thread, {}, as_node="classify", checkpoint_id=waited["checkpoint"]["checkpoint_id"]
        )
        other = run(client, thread, answer="O-777")
        assert [message["content"] for message in other["messages"][:3]] == [
            "I want to check my order",
            "What's your order ID?",
            "O-777",
        ]
        assert len(client.threads.get_history(thread, limit=50)) > len(history)

        client.threads.delete(thread)
    with DeltaSaver.open(str(desk.database)) as saver:
        assert list(saver.list({"configurable": {"thread_id": thread}})) == []


def test_one_thread_is_driven_by_the_server_and_by_other_processes_in_turn(desk: Desk) -> None:
    with desk.serving() as client:
        thread = client.threads.create()["thread_id"]
        run(client, thread, say="please cancel my order")
        assert asked(client, thread) == ["order_id"]

        confirm = desk.say_in_chat(thread, "O-12345")
        assert confirm["waiting_for"] == "confirmation"
        assert asked(client, thread) == ["confirmation"]

        done = run(client, thread, answer="yes")
        assert done["messages"][-1]["content"] == "Order O-12345 is cancelled."
        run(client, thread, say="where is my package?")

    waiting, done, asked_again = desk.say_in_program(
        thread, "", "O-12346", "change my delivery address"
    )
    assert waiting["waiting_for"] == "order_id"
    assert done["reply"].startswith("Order O-12346 is ")
    assert asked_again["waiting_for"] == "order_id"

    shutil.rmtree(
        desk.folder / ".langgraph_api"
    )  # the server's own list of threads; what they hold is in the database
    with desk.serving() as client:
        client.threads.create(thread_id=thread, if_exists="do_nothing", graph_id="support")
        assert asked(client, thread) == ["order_id"]
        messages = run(client, thread, answer="O-778")["messages"]
        said = [message["content"] for message in messages if message["type"] == "human"]
        assert said == [
            "please cancel my order",
            "O-12345",
            "yes",
            "where is my package?",
            "O-12346",
            "change my delivery address",
            "O-778",
        ]
        assert asked(client, thread) == ["address"]


def test_the_agent_asks_and_remembers_and_our_routes_show_what_the_server_does(desk: Desk) -> None:
    with desk.serving() as client:
        assert {one["graph_id"] for one in client.assistants.search()} == {"support", "agent"}
        thread = client.threads.create(graph_id="agent")["thread_id"]
        [question] = run(client, thread, say="where is my order?", graph="agent")["__interrupt__"]
        assert question["value"]["param"] == "order_id"
        [waiting] = get(desk, "/langmem/waiting")
        assert (waiting["thread_id"], waiting["waiting_for"]) == (thread, "order_id")

        run(client, thread, say="remember that I live in Oslo", graph="agent")
        [fact] = client.store.search_items(("memory", "facts"))["items"]
        assert "I live in Oslo" in json.dumps(fact["value"])
        run(client, thread, say="refund my order O-777", graph="agent")
        copy: Any = client.threads.copy(thread)
    with desk.serving() as client:
        assert asked(client, thread) == asked(client, copy["thread_id"]) == ["reason"]
        done = run(client, thread, answer="damaged", graph="agent")
        assert "refunded" in done["messages"][-1]["content"]
        assert [one["thread_id"] for one in get(desk, "/langmem/waiting")] == [copy["thread_id"]]
        context = get(desk, f"/langmem/threads/{thread}/context?budget=400")
        assert context["messages"] == len(done["messages"])
        assert get(desk, "/openapi.json")["paths"]["/langmem/waiting"]
    log = desk.log.read_text(errors="replace")
    assert "Traceback" not in log


def test_threads_that_wait_for_nobody_expire_in_the_server(desk: Desk) -> None:
    desk.said["LANGMEM_EXT_TTL_HOURS"] = str(2 / 3600)
    with desk.serving() as client:
        old, waiting, new = (client.threads.create()["thread_id"] for _ in range(3))
        run(client, old, say="can I talk to a human?")
        run(client, waiting, say="I want to check my order")
        assert texts(client, old)
        time.sleep(3)
        until(
            lambda: (
                run(client, new, say="can I talk to a human?")
                and not client.threads.get_history(old)
            ),
            "the thread has not expired",
        )
        assert asked(client, waiting) == ["order_id"]
    with DeltaSaver.open(str(desk.database)) as saver:
        assert list(saver.list({"configurable": {"thread_id": old}})) == []


def get(desk: Desk, path: str) -> Any:
    """What one of our own routes answers."""
    with urllib.request.urlopen(f"{desk.url}{path}", timeout=PATIENCE_S) as answer:
        return json.load(answer)


def texts(client: SyncLangGraphClient, thread: str) -> list[str]:
    """The messages of the thread."""
    values: Any = client.threads.get_state(thread)["values"]
    return [message["content"] for message in values["messages"]]


def say(client: SyncLangGraphClient, thread: str, text: str, **options: Any) -> Any:
    """A run of the patient graph, from start to end."""
    return client.runs.wait(
        thread, "patient", input={"messages": [{"role": "user", "content": text}]}, **options
    )


def begin_slow_run(client: SyncLangGraphClient, thread: str, text: str) -> str:
    """A run that has stored a checkpoint and works; its id."""
    started = client.runs.create(
        thread, "patient", input={"messages": [{"role": "user", "content": f"{text}, slowly"}]}
    )
    until(
        lambda: texts(client, thread)[-1:] == [f"noted: {text}, slowly"],
        "the run has stored nothing",
    )
    return started["run_id"]


def stored_runs(desk: Desk, thread: str) -> set[Any]:
    """The runs whose checkpoints the thread has."""
    with DeltaSaver.open(str(desk.database)) as saver:
        return {
            found.metadata.get("run_id")
            for found in saver.list({"configurable": {"thread_id": thread}})
        }


def test_a_run_is_rolled_back_by_the_next_one_and_by_a_cancel_and_others_go_on(desk: Desk) -> None:
    desk.add_patient_graph()
    with desk.serving() as client:
        thread = client.threads.create()["thread_id"]
        say(client, thread, "first")
        said = texts(client, thread)
        assert said == ["first", "noted: first", "done"]

        taken_back = begin_slow_run(client, thread, "second")
        say(client, thread, "third", multitask_strategy="rollback")
        said += ["third", "noted: third", "done"]
        assert texts(client, thread) == said
        assert len(stored_runs(desk, thread)) == 2
        assert taken_back not in stored_runs(desk, thread)

        before: list[Any] = client.threads.get_history(thread, limit=50)
        cancelled = begin_slow_run(client, thread, "fourth")
        assert cancelled in stored_runs(desk, thread)
        client.runs.cancel(thread, cancelled, wait=True, action="rollback")
        assert texts(client, thread) == said
        assert cancelled not in stored_runs(desk, thread)
        history: list[Any] = client.threads.get_history(thread, limit=50)
        assert [one["checkpoint"] for one in history] == [one["checkpoint"] for one in before]
        assert [one["values"] for one in history] == [one["values"] for one in before]

        say(client, thread, "fifth")
        other = client.threads.create()["thread_id"]
        say(client, other, "elsewhere")
        assert texts(client, thread) == [*said, "fifth", "noted: fifth", "done"]
        assert texts(client, other) == ["elsewhere", "noted: elsewhere", "done"]
    log = desk.log.read_text(errors="replace")
    assert "Custom checkpointer missing" not in log
    assert "Traceback" not in log


def test_a_thread_is_copied_and_deleted_and_what_is_left_survives_a_restart(desk: Desk) -> None:
    desk.add_patient_graph()
    with desk.serving() as client:
        thread = client.threads.create()["thread_id"]
        empty: Any = client.threads.copy(client.threads.create()["thread_id"])
        assert client.threads.get(empty["thread_id"])["status"] == "idle"
        run(client, thread, say="I want to check my order")
        copied: Any = client.threads.copy(thread)
        copy = copied["thread_id"]
        assert asked(client, copy) == asked(client, thread) == ["order_id"]
        counts = [len(client.threads.get_history(one, limit=50)) for one in (thread, copy)]
        assert counts[0] == counts[1] > 2
        run(client, copy, answer="O-12345")
        assert asked(client, thread) == ["order_id"]
        client.threads.delete(thread)
        assert client.threads.get_state(copy)["values"]["params"] == {"order_id": "O-12345"}  # type: ignore[call-overload]
    with DeltaSaver.open(str(desk.database)) as saver:
        metadata = [found.metadata for found in saver.list(None)]
        assert {found["thread_id"] for found in metadata} == {copy}  # type: ignore[typeddict-item]
    with desk.serving() as client:
        assert client.threads.get_state(copy)["values"]["params"] == {"order_id": "O-12345"}  # type: ignore[call-overload]
        run(client, copy, say="please cancel my order")
        assert asked(client, copy) == ["order_id"]
    log = desk.log.read_text(errors="replace")
    assert "Custom checkpointer missing" not in log
    assert "Traceback" not in log
