"""A character that not every database takes in a text reads back as it was given, wherever it
stands.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from savers import Backend, open_saver

from langmem_ext import InvalidInput, ThreadChatMessageHistory, Threads

ZEROS: dict[str, list[BaseMessage]] = {
    "a text": [HumanMessage("zero \0 inside", id="h")],
    "a name": [HumanMessage("hello", id="h", name="a\0b")],
    "a call's id": [
        AIMessage("", id="a", tool_calls=[{"name": "look", "args": {}, "id": "c\0d"}]),
        ToolMessage("found", id="t", tool_call_id="c\0d"),
    ],
    "an id": [HumanMessage("hello", id="h\0")],
    "a field": [AIMessage("hello", id="a", response_metadata={"k\0": "v\0"})],
}


@pytest.mark.parametrize("where", ZEROS)
def test_a_zero_character_in_a_message_reads_back(
    backend: Backend, tmp_path: Path, where: str
) -> None:
    with open_saver(backend.new_url(tmp_path), compress=backend.compress) as saver:
        ThreadChatMessageHistory("t", saver).add_messages(ZEROS[where])
        saver.log.caches.forget()
        assert ThreadChatMessageHistory("t", saver).messages == ZEROS[where]


METADATA: dict[str, Any] = {
    "source": "loop",
    "step": 1,
    "emoji": "\U0001f642",
    "flag": True,
    "n": 1,
    "none": None,
}


@pytest.mark.parametrize("name", METADATA)
def test_metadata_of_any_characters_is_found_by_each_of_its_scalars(
    backend: Backend, tmp_path: Path, name: str
) -> None:
    with open_saver(backend.new_url(tmp_path)) as saver:
        config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        saver.put(config, empty_checkpoint(), METADATA, {})
        assert len(list(saver.list(config, filter={name: METADATA[name]}))) == 1
        assert list(saver.list(config, filter={name: "another"})) == []
        assert list(saver.list(config, filter={name: "zero \0"})) == []


def configured(namespace: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": "t", "checkpoint_ns": namespace}}


def at(checkpoint_id: str) -> Any:
    return {"configurable": {**configured("")["configurable"], "checkpoint_id": checkpoint_id}}


USES: dict[str, Callable[[Any, str], object]] = {
    "put": lambda saver, bad: saver.put(configured(bad), empty_checkpoint(), {}, {}),
    "put_writes": lambda saver, bad: saver.put_writes(
        {"configurable": {**configured(bad)["configurable"], "checkpoint_id": "c"}},
        [("channel", 1)],
        "task",
    ),
    "an id": lambda saver, bad: saver.put(configured(""), empty_checkpoint() | {"id": bad}, {}, {}),
    "a parent's id": lambda saver, bad: saver.put(at(bad), empty_checkpoint(), {}, {}),
    "writes of an id": lambda saver, bad: saver.put_writes(at(bad), [("channel", 1)], "task"),
    "a task's id": lambda saver, bad: saver.put_writes(at("c"), [("channel", 1)], bad),
    "a list before an id": lambda saver, bad: list(saver.list(configured(""), before=at(bad))),
    "get by id": lambda saver, bad: saver.get_tuple(at(bad)),
    "get": lambda saver, bad: saver.get_tuple(configured(bad)),
    "list": lambda saver, bad: list(saver.list(configured(bad))),
    "a thread": lambda saver, bad: saver.get_tuple(
        {"configurable": {"thread_id": bad, "checkpoint_ns": ""}}
    ),
    "a copy": lambda saver, bad: saver.copy_thread("t", bad),
    "a run": lambda saver, bad: saver.delete_for_runs([bad]),
}


@pytest.mark.parametrize("bad", ["zero \0", "half \ud83d"], ids=ascii)
@pytest.mark.parametrize("use", USES)
def test_a_name_that_no_database_takes_is_refused_before_it_is_asked(
    backend: Backend, tmp_path: Path, use: str, bad: str
) -> None:
    with open_saver(backend.new_url(tmp_path)) as saver:
        saver.put(configured(""), empty_checkpoint(), {}, {})
        with pytest.raises(InvalidInput, match="cannot be stored"):
            USES[use](saver, bad)
        assert [found.pending_writes for found in saver.list(None)] == [[]]


def test_a_channel_with_a_zero_in_its_name_reads_back(backend: Backend, tmp_path: Path) -> None:
    name = "zero \0"
    with open_saver(backend.new_url(tmp_path)) as saver:
        values = {name: [HumanMessage("hello", id="h")], "k": {"a": 1}}
        checkpoint = empty_checkpoint() | {
            "channel_values": values,
            "channel_versions": dict.fromkeys(values, 1),
        }
        config = saver.put(configured(""), checkpoint, {"step": 1}, dict.fromkeys(values, 1))
        saver.put_writes(config, [(name, 1)], "task", name)
        saver.log.caches.forget()
        found = saver.get_tuple(configured(""))
    assert found.checkpoint["channel_values"] == values
    assert found.pending_writes == [("task", name, 1)]


def test_what_a_thread_waits_for_is_shown_without_zeros(backend: Backend, tmp_path: Path) -> None:
    with open_saver(backend.new_url(tmp_path)) as saver:
        checkpoint = empty_checkpoint() | {
            "channel_values": {"waiting_for_param": "a\0b"},
            "channel_versions": {"waiting_for_param": 1},
        }
        saver.put(
            {"configurable": {"thread_id": "t", "checkpoint_ns": ""}},
            checkpoint,
            {"step": 1},
            {"waiting_for_param": 1},
        )
        assert Threads(saver).get("t").waiting_for == "ab"
