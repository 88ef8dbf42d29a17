"""Promise: a message that is stored is an exact copy, as LangGraph reads it, whoever has set what
in it, and shares nothing with what it was made of.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel

from langmem_ext import DataSerializer, DeltaSaver


class Receipt(BaseModel):
    total: int
    on: date


class Colour(enum.Enum):
    RED = "red"


class Shade(enum.StrEnum):
    DARK = "dark"


class Level(enum.IntEnum):
    HIGH = 7


class Word(str):
    pass


class Shouted(HumanMessage):
    volume: int = 11


CALL: Any = {"name": "look", "args": {"x": 1, "y": [True, 1.0]}, "id": "c1", "type": "tool_call"}
BAD: Any = {"name": "bad", "args": "{", "id": "c2", "error": "cut", "type": "invalid_tool_call"}
USED: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
IMAGE: Any = {"type": "image_url", "image_url": {"url": "data:x"}}
CACHED: Any = {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}
MESSAGES: list[BaseMessage] = [
    HumanMessage("hello"),
    HumanMessage("hello", id="1", name="ann", additional_kwargs={"a": [1, {"b": None}]}),
    HumanMessage([{"type": "text", "text": "see "}, IMAGE, "tail"], id="2"),
    HumanMessage(["a", CACHED]),
    HumanMessage("zero \0 inside"),
    HumanMessage("ünïcödé 🙂 שלום"),
    HumanMessage(""),
    HumanMessage([]),
    HumanMessage("with more", surprise="yes"),
    SystemMessage("be kind"),
    AIMessage(
        "calling",
        id="run-1",
        tool_calls=[CALL],
        invalid_tool_calls=[BAD],
        usage_metadata=USED,
        response_metadata={"model": "m", "logprobs": None},
    ),
    AIMessageChunk("part", id="9", chunk_position="last"),
    ToolMessage("found", tool_call_id="c1", artifact={"rows": [1, 2]}, status="error"),
    ToolMessage("receipt", tool_call_id="c1", artifact=Receipt(total=3, on=date(2024, 1, 2))),
    ToolMessage("red", tool_call_id="c1", artifact={"colour": Colour.RED}),
    ChatMessage("aye", role="pirate"),
    Shouted("HEY", id="7", volume=3),
    *(
        HumanMessage("x", additional_kwargs={"a": {"b": value}})
        for value in (True, 1, 1.0, "", None, [], 0, False)
    ),
]


def stored(messages: Sequence[BaseMessage], path: Path, serde: Any) -> tuple[list[Any], list[Any]]:
    """The messages as the saver that has stored them gives them, and as another does."""
    place: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    checkpoint: Any = empty_checkpoint() | {
        "channel_values": {"messages": list(messages)},
        "channel_versions": {"messages": "1"},
    }
    url = str(path / f"{uuid4().hex}.db")
    with DeltaSaver.open(url, serde=serde) as saver:
        saver.put(place, checkpoint, {"step": 0}, {"messages": "1"})
        warm: Any = saver.get_tuple(place)
    with DeltaSaver.open(url, serde=serde) as saver:
        cold: Any = saver.get_tuple(place)
    warm_list, cold_list = (
        found.checkpoint["channel_values"]["messages"] for found in (warm, cold)
    )
    return warm_list, cold_list


def as_langgraph_reads(message: BaseMessage) -> Any:
    serde = JsonPlusSerializer()
    return serde.loads_typed(serde.dumps_typed(message))


def assert_same(found: BaseMessage, expected: BaseMessage) -> None:
    assert type(found) is type(expected)
    assert {name: (type(held), held) for name, held in vars(found).items()} == {
        name: (type(held), held) for name, held in vars(expected).items()
    }
    assert repr(found) == repr(expected)
    assert found.model_fields_set == expected.model_fields_set


SERIALIZERS = [DataSerializer, JsonPlusSerializer]


@pytest.mark.filterwarnings("ignore:Deserializing unregistered type")
@pytest.mark.parametrize("serde", SERIALIZERS)
def test_messages_come_back_as_langgraph_reads_them(serde: Any, tmp_path: Path) -> None:
    for found in stored(MESSAGES, tmp_path, serde()):
        for message, one in zip(MESSAGES, found, strict=True):
            assert_same(one, as_langgraph_reads(message))


def with_field(field: str, value: Any) -> BaseMessage:
    """A message with a field set in place, which nothing validates."""
    messages = {
        "role": ChatMessage("aye", role="r", id="1"),
        "tool_call_id": ToolMessage("x", tool_call_id="c", id="1"),
    }
    message = messages.get(field, AIMessage("x", id="1", name="n"))
    setattr(message, field, value)
    return message


NO_TEXTS = [
    *(5, 0, True, False, 1.5, None, b"x", [], [1], {"t": 1}),
    *(Shade.DARK, Level.HIGH, Colour.RED, Word("w"), UUID(int=5), date(2024, 1, 2)),
    *("nul \0", ""),
]


@pytest.mark.filterwarnings(
    "ignore:Pydantic serializer warnings", "ignore:Deserializing unregistered type"
)
@pytest.mark.parametrize("serde", SERIALIZERS)
@pytest.mark.parametrize("field", ["id", "name", "role", "tool_call_id", "content", "type"])
def test_whatever_was_set_in_place_of_a_text_comes_back_as_langgraph_reads_it(
    field: str, serde: Any, tmp_path: Path
) -> None:
    for value in NO_TEXTS:
        message = with_field(field, value)
        expected = as_langgraph_reads(message)
        for found in stored([message], tmp_path, serde()):
            assert_same(found[0], expected)


def test_a_change_at_any_depth_is_stored_and_a_copy_shares_nothing(tmp_path: Path) -> None:
    call: Any = {"name": "f", "args": {"deep": {"er": [1]}}, "id": "1", "type": "tool_call"}
    message = AIMessage("x", id="m", tool_calls=[call])
    with DeltaSaver.open(str(tmp_path / "memory.db")) as saver:
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}

        def read() -> AIMessage:
            found: Any = saver.get_tuple({"configurable": {"thread_id": "t"}})
            one: AIMessage = found.checkpoint["channel_values"]["messages"][0]
            return one

        for step in (1, 2):
            checkpoint: Any = empty_checkpoint() | {
                "channel_values": {"messages": [message]},
                "channel_versions": {"messages": str(step)},
            }
            config = saver.put(config, checkpoint, {"step": step}, {"messages": str(step)})
            message.tool_calls[0]["args"]["deep"]["er"].append(step + 1)
            assert read().tool_calls[0]["args"] == {"deep": {"er": list(range(1, step + 1))}}
            read().tool_calls[0]["args"]["deep"]["er"].append("mine")
            assert read().tool_calls[0]["args"] == {"deep": {"er": list(range(1, step + 1))}}
