"""Counting tokens: everything sent counts once; data is not text; no script is too cheap."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import tool

from langmem_ext.messages.token_costs.blocks import IMAGE, SMALL_IMAGE
from langmem_ext.messages.token_costs.scripts import tokens_in
from langmem_ext.messages.token_costs.tokens import PER_MESSAGE, ApproximateCounter, TokenCounter

COUNTER = ApproximateCounter()
DATA = "iVBORw0K" * 50_000
"""400 kB of base64."""

CALL = {
    "name": "book",
    "args": {"flight": "HAT136", "note": "window seat"},
    "id": "call_1",
    "type": "tool_call",
}


def cost(*blocks: Any) -> int:
    return COUNTER.count(HumanMessage(list(blocks))) - PER_MESSAGE


def test_a_counter_is_known_by_what_it_can() -> None:
    assert isinstance(COUNTER, TokenCounter)
    assert COUNTER.name == "approximate"


# -- a message -------------------------------------------------------------------------------------


def test_a_message_costs_its_content_and_something_by_itself() -> None:
    assert COUNTER.count(HumanMessage("")) == PER_MESSAGE
    assert COUNTER.count(SystemMessage("You book flights.")) == PER_MESSAGE + COUNTER.count_text(
        "You book flights."
    )
    blocks = HumanMessage(["You book flights.", {"type": "text", "text": "You find hotels."}])
    assert COUNTER.count(blocks) == PER_MESSAGE + COUNTER.count_text(
        "You book flights."
    ) + COUNTER.count_text("You find hotels.")


def test_the_arguments_of_tool_calls_are_counted() -> None:
    asked = AIMessage("", tool_calls=[CALL])
    function = {"name": "book", "arguments": json.dumps(CALL["args"])}
    assert COUNTER.count(asked) == PER_MESSAGE + COUNTER.count_text(
        json.dumps([{"type": "function", "id": "call_1", "function": function}])
    )
    assert COUNTER.count(asked) >= PER_MESSAGE + COUNTER.count_text(json.dumps(asked.tool_calls))
    longer = AIMessage("", tool_calls=[{**CALL, "args": {"note": "window seat " * 100}}])
    assert COUNTER.count(longer) > COUNTER.count(asked) + 150


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use", "id": "call_1", "name": "book", "input": CALL["args"]},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "book",
            "arguments": json.dumps(CALL["args"]),
        },
        CALL,
    ],
)
def test_a_tool_call_that_stands_in_the_content_too_is_counted_once(block: dict[str, Any]) -> None:
    asked = AIMessage("", tool_calls=[CALL])
    assert COUNTER.count(AIMessage([block], tool_calls=[CALL])) == COUNTER.count(asked)
    assert COUNTER.count(HumanMessage([block])) > PER_MESSAGE + 10  # where it stands nowhere else


def test_calls_that_an_integration_keeps_beside_are_counted_once() -> None:
    own = {
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "book", "arguments": json.dumps(CALL["args"])},
            }
        ]
    }
    assert COUNTER.count(AIMessage("", tool_calls=[CALL], additional_kwargs=own)) == COUNTER.count(
        AIMessage("", tool_calls=[CALL])
    )
    assert COUNTER.count(HumanMessage("", additional_kwargs=own)) > PER_MESSAGE + 10


def test_calls_that_could_not_be_read_are_counted() -> None:
    unread = [
        {
            "name": "book",
            "args": "{'flight': " + "x" * 400,
            "id": "call_1",
            "error": None,
            "type": "invalid_tool_call",
        }
    ]
    assert COUNTER.count(AIMessage("", invalid_tool_calls=unread)) > 50


def test_reasoning_beside_the_content_is_counted() -> None:
    assert (
        COUNTER.count(
            AIMessage("Yes.", additional_kwargs={"reasoning_content": "Let me see. " * 50})
        )
        > 100
    )


def test_what_no_model_is_sent_costs_nothing() -> None:
    bare = ToolMessage("booked", tool_call_id="call_1", id="m1")
    told = ToolMessage(
        "booked",
        tool_call_id="call_1",
        id="m1",
        artifact={"raw": "x" * 9_000},
        response_metadata={"model": "y" * 900},
    )
    assert COUNTER.count(told) == COUNTER.count(bare)


# -- tools -----------------------------------------------------------------------------------------


@tool
def find_flights(origin: str, destination: str) -> str:
    """Find direct flights between two airports."""
    return origin + destination


def test_tools_cost_their_schemas() -> None:
    one = COUNTER.count_tools([find_flights])
    assert one > COUNTER.count_text(
        "find_flights Find direct flights between two airports. origin destination"
    )
    assert COUNTER.count_tools([find_flights, find_flights]) == 2 * one
    assert COUNTER.count_tools([]) == 0


def test_a_providers_own_tool_is_counted_as_it_stands() -> None:
    assert (
        COUNTER.count_tools([{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}])
        > 10
    )
    assert COUNTER.count_tools([{"anything": "else"}]) > 5


# -- blocks ----------------------------------------------------------------------------------------

IMAGES = [
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}},
    {"type": "image_url", "image_url": f"data:image/png;base64,{DATA}"},
    {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
    {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
    {"type": "image", "base64": DATA, "mime_type": "image/png"},
    {"type": "image", "source_type": "base64", "data": DATA, "mime_type": "image/png"},
    {"type": "file", "base64": DATA, "mime_type": "image/png"},
    {"type": "media", "data": DATA, "mime_type": "image/png"},
    {"image": {"format": "png", "source": {"bytes": b"\x89PNG" * 1000}}},
    {
        "type": "non_standard",
        "value": {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": DATA},
        },
    },
]

RECORDINGS = [
    {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}},
    {"type": "audio", "base64": DATA, "mime_type": "audio/wav"},
    {"type": "media", "data": DATA, "mime_type": "audio/wav"},
]

DOCUMENTS = [
    {
        "type": "file",
        "file": {"file_data": f"data:application/pdf;base64,{DATA}", "filename": "a.pdf"},
    },
    {"type": "file", "base64": DATA, "mime_type": "application/pdf"},
    {"type": "input_file", "file_data": f"data:application/pdf;base64,{DATA}", "filename": "a.pdf"},
    {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": DATA},
    },
    {"document": {"format": "pdf", "name": "a", "source": {"bytes": b"%PDF" * 75_000}}},
]


@pytest.mark.parametrize("block", IMAGES)
def test_an_image_costs_what_images_cost(block: dict[str, Any]) -> None:
    assert cost(block) == IMAGE


def test_a_small_image_is_cheap() -> None:
    assert (
        cost(
            {
                "type": "image_url",
                "image_url": {"url": "https://example.com/a.png", "detail": "low"},
            }
        )
        == SMALL_IMAGE
    )


@pytest.mark.parametrize("block", RECORDINGS)
def test_a_recording_costs_its_seconds(block: dict[str, Any]) -> None:
    assert cost(block) == 32 * 10  # 300 kB of WAV last nearly ten seconds


@pytest.mark.parametrize("block", DOCUMENTS)
def test_a_document_costs_its_pages(block: dict[str, Any]) -> None:
    assert cost(block) == 2_500 * 6


@pytest.mark.parametrize(
    "kind", ["file", "input_file", "document", "audio", "video", "media", "image", "something_new"]
)
def test_data_in_base64_is_never_its_characters(kind: str) -> None:
    block = {"type": kind, "data": DATA}
    assert cost(block) <= 40_000
    assert (
        count_tokens_approximately([HumanMessage([{"type": "document", "data": DATA}])]) >= 100_000
    )  # langchain-core on the same


@pytest.mark.parametrize("kind", ["image", "audio", "video", "file", "document", "input_file"])
def test_data_that_stands_elsewhere_costs_something(kind: str) -> None:
    assert cost({"type": kind, "url": "https://example.com/a"}) >= 1_000
    assert cost({"type": kind, "file_id": "file-1"}) >= 1_000


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "…"},
        {
            "type": "output_text",
            "text": "…",
            "annotations": [{"type": "url_citation", "url": "https://example.com"}],
        },
        {"type": "refusal", "refusal": "…"},
        {"type": "thinking", "thinking": "…", "signature": DATA},
        {"type": "reasoning", "reasoning": "…", "extras": {"signature": DATA}},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "…"}]},
        {"type": "reasoning_content", "reasoning_content": {"text": "…", "signature": DATA}},
        {"type": "text-plain", "text": "…", "mime_type": "text/plain"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "…"}},
        {
            "type": "document",
            "source": {"type": "content", "content": [{"type": "text", "text": "…"}]},
        },
        {
            "type": "tool_result",
            "tool_use_id": "call_1",
            "content": [{"type": "text", "text": "…"}],
        },
        {"type": "tool_result", "tool_use_id": "call_1", "content": "…"},
        {"type": "search_result", "content": [{"type": "text", "text": "…"}]},
        {"type": "non_standard", "value": {"type": "text", "text": "…"}},
        {"text": "…"},
    ],
)
def test_words_cost_what_they_cost_whatever_block_they_stand_in(block: dict[str, Any]) -> None:
    said = "The train to Ghent leaves at nine from platform four. " * 20
    text = json.loads(json.dumps(block, ensure_ascii=False).replace("…", said))
    assert cost(text) == COUNTER.count_text(said)


def test_what_is_encrypted_costs_about_what_is_in_it() -> None:
    assert 900 <= cost({"type": "redacted_thinking", "data": "A" * 4_000}) <= 1_100
    found = {
        "type": "web_search_result",
        "title": "Trains",
        "url": "https://example.com",
        "encrypted_content": "A" * 4_000,
    }
    assert (
        1_000
        <= cost({"type": "web_search_tool_result", "tool_use_id": "s1", "content": [found]})
        <= 1_100
    )


def test_a_block_of_an_unknown_kind_costs_its_json() -> None:
    assert (
        cost(
            {
                "type": "server_tool_use",
                "id": "s1",
                "name": "web_search",
                "input": {"query": "trains " * 100},
            }
        )
        > 100
    )
    assert cost({"type": "cachePoint"}) == 0


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_whatever_stands_in_a_content_has_a_cost(value: Any) -> None:
    message = HumanMessage("")
    message.content = (
        [{"type": "text", "text": value}, value] if isinstance(value, str | dict) else value
    )
    assert COUNTER.count(message) >= PER_MESSAGE


@pytest.mark.parametrize("odd", [None, 5, [], {}, ["text"], {"text": "x"}])
@pytest.mark.parametrize(
    "kind",
    [
        "text",
        "image",
        "image_url",
        "audio",
        "file",
        "document",
        "reasoning",
        "tool_use",
        "tool_result",
        "non_standard",
    ],
)
def test_a_block_with_something_else_in_its_fields_has_a_cost(kind: str, odd: Any) -> None:
    names = (
        "text",
        "image_url",
        "source",
        "data",
        "file",
        "id",
        "call_id",
        "content",
        "value",
        "summary",
        "title",
        "detail",
        "url",
        "mime_type",
    )
    message = AIMessage([{"type": kind} | dict.fromkeys(names, odd)], tool_calls=[CALL])
    assert COUNTER.count(message) >= PER_MESSAGE
    message.content = [{"type": odd, "text": "some words"}]
    assert COUNTER.count(message) >= PER_MESSAGE


@pytest.mark.parametrize("value", [2**80, {(1, 2): 3}, float("nan"), {1, 2}, object(), b"bytes"])
def test_whatever_stands_in_a_tool_call_has_a_cost(value: Any) -> None:
    asked = AIMessage("", tool_calls=[{**CALL, "args": {"value": value}}])
    assert COUNTER.count(asked) > COUNTER.count(AIMessage(""))


# -- scripts ---------------------------------------------------------------------------------------


def test_characters_of_chinese_are_about_a_token_each() -> None:
    assert tokens_in("我想修改上周预订的机票" * 100) >= 1_000
    assert tokens_in("的" * 1_000) >= 1_000
    assert (
        count_tokens_approximately([HumanMessage("的" * 1_000)]) < 300
    )  # langchain-core on the same


@given(st.text(min_size=1))
def test_every_text_costs_something(text: str) -> None:
    assert tokens_in(text) >= 1


def test_nothing_costs_nothing() -> None:
    assert tokens_in("") == 0


def test_half_a_character_can_be_counted() -> None:
    assert tokens_in("\ud83d") >= 1


@pytest.mark.parametrize(
    "message",
    [HumanMessage("hi"), AIMessage("hi"), ToolMessage("hi", tool_call_id="c"), SystemMessage("hi")],
)
def test_a_name_costs_something(message: BaseMessage) -> None:
    assert COUNTER.count(message.model_copy(update={"name": "ann"})) > COUNTER.count(message)
