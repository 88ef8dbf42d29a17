"""Counting tokens: everything sent counts once; data is not text; no script is too cheap."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import tool

from langmem_ext import ApproximateCounter, TokenCounter

COUNTER = ApproximateCounter()
DATA = "iVBORw0K" * 50_000
"""400 kB of base64."""

PER_MESSAGE = 4

CALL: Any = {
    "name": "book",
    "args": {"flight": "HAT136", "note": "window seat"},
    "id": "call_1",
    "type": "tool_call",
}

ARGUMENTS = json.dumps(CALL["args"])


def test_a_message_costs_its_content_its_name_and_something_by_itself() -> None:
    assert isinstance(COUNTER, TokenCounter)
    assert COUNTER.name == "approximate"
    assert COUNTER.count(HumanMessage("")) == PER_MESSAGE
    first, second = "You book flights.", "You find hotels."
    one, both = COUNTER.count_text(first), sum(map(COUNTER.count_text, (first, second)))
    assert COUNTER.count(SystemMessage(first)) == PER_MESSAGE + one
    assert COUNTER.count(HumanMessage([first, {"type": "text", "text": second}])) == (
        PER_MESSAGE + both
    )
    for message in (HumanMessage("hi"), AIMessage("hi"), ToolMessage("hi", tool_call_id="c")):
        named = message.model_copy(update={"name": "ann"})
        assert COUNTER.count(named) > COUNTER.count(message)


def test_tool_calls_are_counted_once_wherever_they_stand() -> None:
    asked = AIMessage("", tool_calls=[CALL])
    function = {"name": "book", "arguments": ARGUMENTS}
    wire = [{"type": "function", "id": "call_1", "function": function}]
    assert COUNTER.count(asked) == PER_MESSAGE + COUNTER.count_text(json.dumps(wire))
    assert COUNTER.count(asked) >= PER_MESSAGE + COUNTER.count_text(json.dumps(asked.tool_calls))
    longer = AIMessage("", tool_calls=[{**CALL, "args": {"note": "window seat " * 100}}])
    assert COUNTER.count(longer) > COUNTER.count(asked) + 150
    blocks: list[Any] = [
        {"type": "tool_use", "id": "call_1", "name": "book", "input": CALL["args"]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", **function},
        CALL,
    ]
    for block in blocks:
        assert COUNTER.count(AIMessage([block], tool_calls=[CALL])) == COUNTER.count(asked)
        assert COUNTER.count(HumanMessage([block])) > PER_MESSAGE + 10, "it stands nowhere else"
    own: Any = {"tool_calls": wire}
    beside = AIMessage("", tool_calls=[CALL], additional_kwargs=own)
    assert COUNTER.count(beside) == COUNTER.count(asked)
    assert COUNTER.count(HumanMessage("", additional_kwargs=own)) > PER_MESSAGE + 10
    unread: Any = {"name": "book", "args": "{'flight': " + "x" * 400, "id": "c", "error": None}
    assert COUNTER.count(AIMessage("", invalid_tool_calls=[unread])) > 50
    odd: list[Any] = [2**80, {(1, 2): 3}, float("nan"), {1, 2}, object(), b"bytes"]
    for value in odd:
        strange = AIMessage("", tool_calls=[{**CALL, "args": {"value": value}}])
        assert COUNTER.count(strange) > PER_MESSAGE


def test_what_no_model_is_sent_costs_nothing_and_reasoning_beside_the_content_does() -> None:
    bare = ToolMessage("booked", tool_call_id="call_1", id="m1")
    told = bare.model_copy(
        update={"artifact": {"raw": "x" * 9_000}, "response_metadata": {"model": "y" * 900}}
    )
    assert COUNTER.count(told) == COUNTER.count(bare)
    reasoning = {"reasoning_content": "Let me see. " * 50}
    assert COUNTER.count(AIMessage("Yes.", additional_kwargs=reasoning)) > 100


def cost(*blocks: Any) -> int:
    return COUNTER.count(HumanMessage(list(blocks))) - PER_MESSAGE


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
    own: Any = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
    assert COUNTER.count_tools([own]) > 10
    assert COUNTER.count_tools([{"anything": "else"}]) > 5


# -- blocks ----------------------------------------------------------------------------------------

BLOCKS: dict[str, list[Any]] = {
    kind: json.loads(json.dumps(blocks).replace("DATA", DATA))
    for kind, blocks in yaml.safe_load(
        Path(__file__).with_name("blocks.yaml").read_text("utf-8")
    ).items()
}
PICTURE = {"image": {"format": "png", "source": {"bytes": b"\x89PNG" * 1000}}}
PAGES = {"document": {"format": "pdf", "name": "a", "source": {"bytes": b"%PDF" * 75_000}}}


def test_media_cost_what_they_are_and_never_their_characters() -> None:
    for block in (*BLOCKS["images"], PICTURE):
        assert cost(block) == cost(PICTURE) < 3_000, block.get("type")
    small = {"url": "https://example.com/a.png", "detail": "low"}
    assert cost({"type": "image_url", "image_url": small}) < 500
    for block in BLOCKS["recordings"]:
        assert cost(block) == 32 * 10  # 300 kB of WAV last nearly ten seconds
    for block in (*BLOCKS["documents"], PAGES):
        assert cost(block) == 2_500 * 6
    for kind in ("file", "input_file", "document", "audio", "video", "media", "image", "new"):
        assert cost({"type": kind, "data": DATA}) <= 40_000
    peer = count_tokens_approximately([HumanMessage([{"type": "document", "data": DATA}])])
    assert peer >= 100_000, "langchain-core on the same"
    for kind in ("image", "audio", "video", "file", "document", "input_file"):
        assert cost({"type": kind, "url": "https://example.com/a"}) >= 1_000
        assert cost({"type": kind, "file_id": "file-1"}) >= 1_000


def test_words_cost_what_they_cost_whatever_block_they_stand_in() -> None:
    said = "The train to Ghent leaves at nine from platform four. " * 20
    for block in BLOCKS["words"]:
        text = json.loads(json.dumps(block, ensure_ascii=False).replace("…", said))
        assert cost(text) == COUNTER.count_text(said), block


def test_what_is_encrypted_costs_about_what_is_in_it_and_the_unknown_its_json() -> None:
    assert 900 <= cost({"type": "redacted_thinking", "data": "A" * 4_000}) <= 1_100
    found = {"type": "web_search_result", "title": "Trains", "encrypted_content": "A" * 4_000}
    whole = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [found]}
    assert 1_000 <= cost(whole) <= 1_100
    query = {"query": "trains " * 100}
    assert cost({"type": "server_tool_use", "id": "s1", "name": "web", "input": query}) > 100
    assert cost({"type": "cachePoint"}) == 0


@given(st.text(min_size=1))
def test_every_text_costs_something_and_characters_of_chinese_about_a_token_each(text: str) -> None:
    assert COUNTER.count_text(text) >= 1
    assert COUNTER.count_text("\ud83d") >= 1, "half a character"
    assert COUNTER.count_text("") == 0
    assert COUNTER.count_text("我想修改上周预订的机票" * 100) >= 1_000
    assert COUNTER.count_text("的" * 1_000) >= 1_000
    peer = count_tokens_approximately([HumanMessage("的" * 1_000)])
    assert peer < 300, "langchain-core on the same"


def test_a_block_with_something_else_in_its_fields_has_a_cost() -> None:
    names = (
        *("text", "image_url", "source", "data", "file", "id", "call_id", "content", "value"),
        *("summary", "title", "detail", "url", "mime_type"),
    )
    kinds = (
        *("text", "image", "image_url", "audio", "file", "document", "reasoning", "tool_use"),
        *("tool_result", "non_standard"),
    )
    odds: list[Any] = [None, 5, [], {}, ["text"], {"text": "x"}]
    for kind, odd in product(kinds, odds):
        message = AIMessage([{"type": kind} | dict.fromkeys(names, odd)], tool_calls=[CALL])
        assert COUNTER.count(message) >= PER_MESSAGE
        message.content = [{"type": odd, "text": "some words"}]
        assert COUNTER.count(message) >= PER_MESSAGE


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
