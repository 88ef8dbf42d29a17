"""Promise: a snapshot is an exact copy of the message and shares nothing with it."""

from __future__ import annotations

import enum
from datetime import date
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel

from langmem_ext.log.codec import MessageCodec, codec_of
from langmem_ext.log.restore import DataSerializer, RestorePolicy
from langmem_ext.messages.snapshot import CLASSES, FIELD_CODES, FIELDS
from langmem_ext.messages.token_costs.stored_tokens import COUNTER, implied_tokens
from langmem_ext.messages.token_costs.tokens import approximate_tokens
from langmem_ext.storage.rows.message import (
    AI_CODES,
    HUMAN_CODES,
    SYSTEM_CODES,
    TOOL_CODES,
)
from langmem_ext.storage.schema.migrations import MIGRATIONS
from langmem_ext.types import PackedValue


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


MESSAGES: list[BaseMessage] = [
    HumanMessage("hello"),
    HumanMessage("hello", id="1", name="ann", additional_kwargs={"a": [1, {"b": None}]}),
    HumanMessage(
        [
            {"type": "text", "text": "see "},
            {"type": "image_url", "image_url": {"url": "data:x"}},
            "tail",
        ],
        id="2",
    ),
    HumanMessage(["a", {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}]),
    HumanMessage("zero \0 inside"),
    HumanMessage("ünïcödé 🙂 שלום"),
    HumanMessage(""),
    HumanMessage([]),
    HumanMessage("with more", surprise="yes"),
    SystemMessage("be kind"),
    AIMessage(
        "calling",
        id="run-1",
        tool_calls=[
            {"name": "look", "args": {"x": 1, "y": [True, 1.0]}, "id": "c1", "type": "tool_call"}
        ],
        invalid_tool_calls=[
            {"name": "bad", "args": "{", "id": "c2", "error": "cut", "type": "invalid_tool_call"}
        ],
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        response_metadata={"model": "m", "logprobs": None},
    ),
    AIMessageChunk("part", id="9", chunk_position="last"),
    ToolMessage("found", tool_call_id="c1", artifact={"rows": [1, 2]}, status="error"),
    ToolMessage("receipt", tool_call_id="c1", artifact=Receipt(total=3, on=date(2024, 1, 2))),
    ChatMessage("aye", role="pirate"),
    Shouted("HEY", id="7", volume=3),
]


@pytest.fixture(params=["native", "foreign"])
def codec(request: pytest.FixtureRequest) -> MessageCodec:
    return codec_of(DataSerializer() if request.param == "native" else JsonPlusSerializer())


def as_langgraph_reads(message: BaseMessage) -> Any:
    serde = JsonPlusSerializer()
    return serde.loads_typed(serde.dumps_typed(message))


@pytest.mark.parametrize(
    "message",
    MESSAGES,
    ids=lambda message: f"{type(message).__name__}-{str(message.content)[:12]!r}",
)
def test_a_message_comes_back_as_langgraph_reads_it_from_memory_and_from_its_row(
    message: BaseMessage, codec: MessageCodec
) -> None:
    packed = codec.pack_value([message])
    expected = as_langgraph_reads(message)
    [warm] = codec.load_value(packed)
    row = codec.item_row(packed.messages[0])
    again = codec.snapshot_of(row)
    [cold] = codec.load_value(PackedValue(messages=[again]))
    for found in (warm, cold):
        assert type(found) is type(expected)
        assert found == expected
        assert repr(found) == repr(expected)
        assert found.model_fields_set == expected.model_fields_set
    assert again == packed.messages[0]
    assert codec.tokens_of(packed.messages[0]) > 0


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
    5,
    0,
    True,
    False,
    1.5,
    None,
    b"x",
    [],
    [1],
    {"t": 1},
    Shade.DARK,
    Level.HIGH,
    Colour.RED,
    Word("w"),
    UUID(int=5),
    date(2024, 1, 2),
]


@pytest.mark.filterwarnings(
    "ignore:Pydantic serializer warnings", "ignore:Deserializing unregistered type"
)
@pytest.mark.parametrize("value", [*NO_TEXTS, "nul \0", "", "\ud800"], ids=repr)
@pytest.mark.parametrize("field", ["id", "name", "role", "tool_call_id", "content", "type"])
def test_whatever_was_set_in_place_of_a_text_comes_back_as_langgraph_reads_it(
    field: str, value: Any, codec: MessageCodec
) -> None:
    message = with_field(field, value)
    expected = as_langgraph_reads(message)
    packed = codec.pack_value([message])
    row = codec.item_row(packed.messages[0])
    assert {type(text) for text in (row.message_id, row.name, row.text, row.tool_call_id)} <= {
        str,
        type(None),
    }
    for read in (packed, PackedValue(messages=[codec.snapshot_of(row)])):
        [found] = codec.load_value(read)
        assert type(found) is type(expected)
        assert {name: (type(held), held) for name, held in vars(found).items()} == {
            name: (type(held), held) for name, held in vars(expected).items()
        }
        assert found.model_fields_set == expected.model_fields_set
    assert codec.tokens_of(packed.messages[0]) > 0


@pytest.mark.parametrize(
    "values", [(True, 1), (1, 1.0), (1.0, True), ("", None), ([], None), (0, False)]
)
def test_values_that_python_calls_equal_have_different_snapshots(
    values: tuple[Any, Any], codec: MessageCodec
) -> None:
    one, other = (
        codec.pack_value([HumanMessage("x", additional_kwargs={"a": {"b": value}})]).messages
        for value in values
    )
    assert one != other


def test_a_change_at_any_depth_is_seen(codec: MessageCodec) -> None:
    message = AIMessage(
        "x",
        tool_calls=[{"name": "f", "args": {"deep": {"er": [1]}}, "id": "1", "type": "tool_call"}],
    )
    before = codec.pack_value([message]).messages
    message.tool_calls[0]["args"]["deep"]["er"].append(2)
    assert codec.pack_value([message]).messages != before


def test_a_copy_shares_nothing(codec: MessageCodec) -> None:
    packed = codec.pack_value([MESSAGES[1]])
    [one], [other] = codec.load_value(packed), codec.load_value(packed)
    one.additional_kwargs["a"][1]["b"] = "changed"
    one.content = "changed"
    assert other == MESSAGES[1]
    assert codec.load_value(packed) == [MESSAGES[1]]


def test_a_plain_message_shows_its_text_in_its_row() -> None:
    codec = MessageCodec(RestorePolicy())
    row = codec.item_row(codec.pack_value([MESSAGES[2]]).messages[0])
    assert row.text == "see tail"
    assert b"see " not in (row.rest or b"")
    plain = codec.item_row(
        codec.pack_value([HumanMessage("hello", id="1", name="ann")]).messages[0]
    )
    assert (plain.text, plain.name, plain.message_id, plain.rest) == ("hello", "ann", "1", None)


def test_with_a_serializer_of_the_users_own_no_column_shows_the_text() -> None:
    codec = codec_of(JsonPlusSerializer())
    row = codec.item_row(codec.pack_value([HumanMessage("hello", id="1", name="ann")]).messages[0])
    assert (row.text, row.name, row.tool_call_id, row.role) == (None, None, None, None)


def test_a_field_keeps_its_code_whatever_release_of_langchain_is_installed() -> None:
    # The table is part of the file format: a line is added at its end or not at all.
    names = (
        "content additional_kwargs response_metadata type name id tool_calls invalid_tool_calls"
        " usage_metadata tool_call_id artifact status"
    )
    assert list(FIELD_CODES)[:12] == names.split()
    assert list(FIELD_CODES.values()) == list(range(len(FIELD_CODES)))
    assert {field for fields in FIELDS for field in fields} <= set(FIELD_CODES)


def test_what_a_policy_refuses_to_build_is_stored_all_the_same() -> None:
    strict, open_ = MessageCodec(RestorePolicy(strict=True)), MessageCodec(RestorePolicy())
    message = ToolMessage(
        "x", tool_call_id="c", artifact={"on": date(2024, 1, 2), "colour": Colour.RED}
    )
    packed = strict.pack_value([message]).messages[0]
    [cold] = open_.load_value(PackedValue(messages=[strict.snapshot_of(strict.item_row(packed))]))
    assert cold.artifact == {"on": date(2024, 1, 2), "colour": Colour.RED}


def test_a_database_names_the_counter_of_its_token_counts() -> None:
    assert f"('token_counter', '{COUNTER}')" in " ".join(
        statement for migration in MIGRATIONS for statement in migration.sqlite
    )


@given(st.sampled_from([HumanMessage, AIMessage, SystemMessage]), st.text())
def test_a_token_count_that_a_row_implies_is_that_of_a_message_of_nothing_but_text(
    cls: type[BaseMessage], text: str
) -> None:
    assert implied_tokens(CLASSES.index(cls), text) == approximate_tokens(cls(content=text))


@pytest.mark.parametrize(
    ("codes", "cls"),
    [
        (HUMAN_CODES, HumanMessage),
        (AI_CODES, AIMessage),
        (SYSTEM_CODES, SystemMessage),
        (TOOL_CODES, ToolMessage),
    ],
)
def test_the_codes_of_a_role_are_those_of_its_classes(
    codes: tuple[int, ...], cls: type[BaseMessage]
) -> None:
    assert codes == tuple(at for at, own in enumerate(CLASSES) if issubclass(own, cls))


@pytest.mark.parametrize("role", [3, 6, None, "0"])
def test_no_token_count_is_implied_of_what_is_more_than_a_text(role: object) -> None:
    assert implied_tokens(role, "text") is None
    assert implied_tokens(0, b"compressed") is None
