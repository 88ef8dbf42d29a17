"""Promise: a cleared thread begins anew and keeps all that was said: no pruning collects it, and a
question that waits can be answered.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from prune_reference import rows
from savers import Backend

from graphs.support import make_graph
from langmem_ext import (
    DeltaSaver,
    InvalidInput,
    Retention,
    ThreadChatMessageHistory,
    ThreadNotFound,
    Threads,
    converse,
    examine,
)


@pytest.fixture
def saver(backend: Backend, tmp_path: Path) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(backend.new_url(tmp_path), retention=Retention(keep_last=1)) as saver:
        yield saver


def say(saver: DeltaSaver, *texts: str, thread: str = "t") -> None:
    ThreadChatMessageHistory(thread, saver).add_messages([HumanMessage(text) for text in texts])


def aside(saver: DeltaSaver, thread: str = "t") -> list[str]:
    """What a thread has in the namespace of its own where cleared messages are kept."""
    for found in saver.list({"configurable": {"thread_id": thread}}):
        if found.config["configurable"]["checkpoint_ns"]:
            return [message.text for message in found.checkpoint["channel_values"]["messages"]]
    return []


def view(saver: DeltaSaver, thread: str = "t") -> list[str]:
    return [message.text for message in Threads(saver).messages(thread)]


def stored(saver: DeltaSaver) -> list[str]:
    return [text for (text,) in rows(saver, "SELECT text FROM item ORDER BY [key]")]


def test_what_was_set_aside_is_still_found_also_in_an_index_made_anew(saver: DeltaSaver) -> None:
    say(saver, "a lamp", "a chair")
    threads = Threads(saver)
    threads.enable_search()
    threads.clear("t")
    for _ in range(2):
        assert [hit.snippet for hit in threads.search("chair")] == ["a chair"]
        saver.prune(["t"], keep_last=1)
        threads.rebuild_search()
    say(saver, "a table")
    saver.prune(["t"], keep_last=1)
    found = [hit.number for word in ("lamp", "chair", "table") for hit in threads.search(word)]
    assert found == [0, 1, 2]
    assert examine(saver).ok


def test_what_was_said_is_set_aside_and_outlives_pruning_to_one_checkpoint(
    saver: DeltaSaver,
) -> None:
    say(saver, "one", "two")
    assert Threads(saver).clear("t") == 2
    say(saver, "three")
    assert asyncio.run(Threads(saver).aclear("t")) == 1
    say(saver, "four")
    for _ in range(2):
        saver.prune(["t"], keep_last=1)
        saver.sweep()
        saver.compact()
        assert (view(saver), aside(saver), stored(saver)) == (
            ["four"],
            ["one", "two", "three"],
            ["one", "two", "three", "four"],
        )
        assert examine(saver).ok
    assert Threads(saver).get("t").messages == 1
    assert Threads(saver).get("t").title == "one"


def test_clearing_an_empty_view_changes_nothing(saver: DeltaSaver) -> None:
    say(saver, "one")
    Threads(saver).clear("t")
    before = list(saver.list(None))
    assert Threads(saver).clear("t") == 0
    assert list(saver.list(None)) == before
    with pytest.raises(ThreadNotFound):
        Threads(saver).clear("nobody")
    with pytest.raises(ThreadNotFound):
        Threads(saver, owner="alice").clear("t")


def test_a_question_that_waits_is_answered_after_clearing(saver: DeltaSaver) -> None:
    graph = make_graph(saver)
    assert converse(graph, "I want to check my order", thread_id="t").waiting_for == "order_id"
    Threads(saver).clear("t")
    assert Threads(saver).get("t").waiting_for == "order_id"
    saver.prune(["t"], keep_last=1)
    assert converse(graph, "", thread_id="t").reply == "What's your order ID?"
    assert "O-12345 is" in converse(graph, "O-12345", thread_id="t").reply
    assert "I want to check my order" in aside(saver)
    assert "I want to check my order" not in view(saver)
    assert examine(saver).ok


def test_copies_exports_and_deletion_take_it_along(saver: DeltaSaver) -> None:
    say(saver, "one", "two")
    Threads(saver).clear("t")
    say(saver, "three")
    Threads(saver).fork("t", to="copy")
    file = io.BytesIO()
    Threads(saver).export_to(file, "t")
    other = DeltaSaver.open(":memory:")
    Threads(other).import_from(io.BytesIO(file.getvalue()), keep_ids=True)
    for held, thread in ((saver, "copy"), (other, "t")):
        assert (view(held, thread), aside(held, thread)) == (["three"], ["one", "two"])
        assert examine(held).ok
    Threads(saver).delete("t", "copy")
    assert stored(saver) == []


def test_a_list_of_something_else_is_refused(saver: DeltaSaver) -> None:
    say(saver, "one")
    config = {"configurable": {"thread_id": "x", "checkpoint_ns": ""}}
    found = saver.get_tuple({"configurable": {"thread_id": "t"}})
    assert found is not None
    saver.put(
        config,
        {**found.checkpoint, "channel_values": {"messages": "text"}},
        {},
        found.checkpoint["channel_versions"],
    )  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="not a list of messages"):
        Threads(saver).clear("x")
