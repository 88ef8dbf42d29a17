"""Promise: whatever a program sets in place of a message's text, a put takes it, and it reads back
as on the other savers.
"""

from __future__ import annotations

import enum
from datetime import date
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from prune_reference import rows
from savers import MODES, Calls, Mode

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, examine

pytestmark = pytest.mark.filterwarnings(
    "ignore:Pydantic serializer warnings"
)  # of the other savers


class Shade(enum.StrEnum):
    DARK = "dark"


PLACES = [
    ("id", 5),
    ("id", True),
    ("id", Shade.DARK),
    ("id", "nul \0"),
    ("name", 5),
    ("name", True),
    ("name", Shade.DARK),
    ("role", True),
    ("role", None),
    ("tool_call_id", 5),
    ("tool_call_id", date(2024, 1, 2)),
    ("content", b"bytes"),
    ("content", Shade.DARK),
]
CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def conversation(field: str, value: Any) -> list[BaseMessage]:
    """A message of each kind, one of them with a field set in place, and again as it was before."""
    spoiled, as_before = (
        {
            "role": ChatMessage("aye", role="r", id="1"),
            "tool_call_id": ToolMessage("x", tool_call_id="c", id="1"),
        }.get(field, AIMessage("x", id="1"))
        for _ in range(2)
    )
    setattr(spoiled, field, value)
    return [HumanMessage("hello", id="0"), spoiled, as_before, HumanMessage("bye", id="2")]


def checkpoint(number: int, messages: list[BaseMessage]) -> Any:
    values = {"messages": messages, "held": {"one": messages[1]}}
    return {
        "v": 4,
        "id": f"1f1e6000-0000-6000-8000-{number:012}",
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": values,
        "channel_versions": dict.fromkeys(values, number),
        "versions_seen": {},
        "updated_channels": None,
    }


def form(value: Any) -> Any:
    """A value with the type of everything in it."""
    if isinstance(value, BaseMessage):
        return type(value), form(vars(value)), value.model_fields_set
    if isinstance(value, dict):
        return {name: form(item) for name, item in value.items()}
    return list(map(form, value)) if isinstance(value, list | tuple) else (type(value), value)


async def read(calls: Calls, saver: Any) -> Any:
    found = await calls.call(saver, "get_tuple", CONFIG)
    return form(found.checkpoint["channel_values"]), form(
        [value for _, _, value in found.pending_writes]
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("field", "value"), PLACES, ids=repr)
async def test_what_is_no_text_is_stored_and_read_as_on_the_other_savers(
    field: str, value: Any, mode: Mode, url: str
) -> None:
    calls = Calls(mode)
    expected = []
    with (
        SqliteSaver.from_conn_string(":memory:") as sqlite,
        DeltaSaver.from_conn_string(url) as saver,
    ):
        for target, how in ((InMemorySaver(), calls), (sqlite, Calls("sync")), (saver, calls)):
            messages = conversation(field, value)
            for number in range(3):
                config = await how.call(
                    target,
                    "put",
                    CONFIG,
                    checkpoint(number, messages),
                    {},
                    {"messages": number, "held": number},
                )
                messages = [*messages, HumanMessage("more", id=f"more {number}")]
            await how.call(target, "put_writes", config, [("messages", messages[:3])], "task")
            expected.append(await read(how, target))
        assert expected[2] == expected[0] == expected[1]
        assert list(rows(saver, "SELECT count(*) FROM item")) == [
            (6,)
        ]  # once each, whatever they hold
    with DeltaSaver.from_conn_string(url) as cold:
        assert await read(calls, cold) == expected[0]
        assert not [finding for finding in examine(cold).findings if finding.severity != "note"]


def test_a_history_takes_it_too(url: str) -> None:
    with DeltaSaver(url) as saver:
        history = ThreadChatMessageHistory("t", saver)
        history.add_messages(conversation("id", 5))
        history.add_messages([HumanMessage("other", id="0")])
        assert [(message.content, message.id) for message in history.messages] == [
            ("other", "0"),
            ("x", "5"),
            ("x", "1"),
            ("bye", "2"),
        ]
