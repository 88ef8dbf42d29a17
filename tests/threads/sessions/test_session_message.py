"""A session's message and LangChain's convert without loss; what is no message is refused."""

from __future__ import annotations

import copy
import dataclasses
from datetime import datetime
from traceback import format_exception
from typing import Any

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
    ToolMessageChunk,
)
from samples import json_values

from langmem_ext import InvalidInput, Message

THEN = "2026-01-31T09:30:00+01:00"

CALL = {
    "name": "look",
    "args": {"at": [1, None], "deep": {"a": 0}},
    "id": "c1",
    "type": "tool_call",
}

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

USED: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}

BROKEN: Any = {"name": "l", "args": "{", "id": "c2", "error": "cut", "type": "invalid_tool_call"}

PIECE: Any = {"name": "a", "args": "{}", "id": "1", "index": 0, "type": "tool_call_chunk"}

MESSAGES: list[BaseMessage] = [
    HumanMessage("hello", id="1", name="ann"),
    HumanMessage([{"type": "text", "text": "see "}, IMAGE, {"type": "text", "text": "this"}]),
    HumanMessage([]),
    HumanMessage("nul \x00 and 🙂"),
    AIMessage("", id="3", tool_calls=[CALL], usage_metadata=USED),
    AIMessage("x", response_metadata={"model_name": "m", "logprobs": None}),
    AIMessage("x", additional_kwargs={"langmem_ext": {"sensitive": ["card"]}, "k": None}),
    AIMessage("", invalid_tool_calls=[BROKEN]),
    ToolMessage("found", tool_call_id="c1", artifact={"rows": 2}, status="error", name="look"),
    ToolMessage("without a call", tool_call_id=""),
    SystemMessage("be kind"),
    ChatMessage("x", role="narrator"),
    AIMessageChunk("x", tool_call_chunks=[PIECE]),
    ToolMessageChunk("part", tool_call_id="c1"),
]


def without_time(message: BaseMessage) -> BaseMessage:
    """The message without the time that only a session's message notes."""
    bare = message.model_copy(deep=True)
    corner = bare.additional_kwargs["langmem_ext"]
    del corner["timestamp"]
    if not corner:
        del bare.additional_kwargs["langmem_ext"]
    return bare


def test_a_message_of_langchain_comes_back_as_it_was() -> None:
    for message in MESSAGES:
        before = copy.deepcopy(message)
        own = Message.from_langchain(message, stored_at=THEN)
        back = own.to_langchain()
        assert message == before
        assert type(back) is type(message)
        assert without_time(back) == message
        again = Message.from_langchain(back)
        assert (again, again.id) == (own, own.id)
    pictured = Message.from_langchain(MESSAGES[1])
    assert pictured.to_langchain().content == MESSAGES[1].content
    assert dataclasses.replace(pictured, text="only this").to_langchain().content == "only this"
    no_json = ToolMessage("x", tool_call_id="c1", artifact=object(), status="error")
    assert Message.from_langchain(no_json).metadata == {
        "langchain": {"tool_call_id": "c1", "status": "error"}
    }


PAYS = {"name": "pay", "args": "4111-2222"}
NO_MESSAGES: list[tuple[dict[str, Any], str]] = [
    ({"role": "human"}, "role must be 'user', 'agent' or 'tool'"),
    ({"role": None}, "role must be 'user'"),
    ({"role": ["user"]}, "role must be 'user'"),
    ({"role": "4111-2222"}, "role must be 'user'"),
    ({"text": 1}, "text must be a string"),
    ({"text": "half \ud83d"}, "lone surrogate"),
    ({"timestamp": "2026-01-31T09:30:00"}, "ISO 8601 with a time zone"),
    ({"timestamp": "yesterday"}, "ISO 8601"),
    ({"timestamp": None}, "ISO 8601"),
    ({"metadata": []}, "must be a dict"),
    ({"metadata": {1: 2}}, "has the type int: use strings"),
    ({"metadata": {"a": {"b": object()}}}, r"metadata\['a'\]\['b'\] has the type object"),
    ({"metadata": {"a": float("nan")}}, "not a finite number"),
    ({"metadata": {"langchain": 1}}, "pass a dict"),
    ({"metadata": {"langchain": {"type": "ai"}}}, "does not fit the role 'user'"),
    ({"metadata": {"langchain": {"type": "remove"}}}, "does not fit the role 'user'"),
    (
        {"role": "agent", "metadata": {"langchain": {"tool_calls": "4111"}}},
        "cannot be converted to a message of type 'ai'",
    ),
    (
        {"role": "agent", "metadata": {"langchain": {"tool_calls": 3}}},
        "cannot be converted to a message of type 'ai'",
    ),
    (
        {"role": "agent", "metadata": {"langchain": {"tool_calls": [PAYS]}}},
        "cannot be converted to a message of type 'ai'",
    ),
    ({"role": "agent", "metadata": {"langchain": {"usage_metadata": "4111-2222"}}}, "converted"),
    ({"role": "tool", "metadata": {"langchain": {"status": "4111-2222"}}}, "converted"),
    ({"id": ""}, "id must be a non-empty string"),
]


def test_what_is_no_message_is_one_clear_error_that_shows_nothing_of_it() -> None:
    for fields, reason in NO_MESSAGES:
        with pytest.raises(InvalidInput, match=reason) as refused:
            Message(**{"role": "user", "text": "x", **fields})
        assert "4111" not in "".join(format_exception(refused.value)), fields


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
metadata = st.dictionaries(texts.filter(lambda name: name != "langchain"), json_values, max_size=3)


@given(st.sampled_from(["user", "agent", "tool"]), texts, metadata, st.none() | st.just("m1"))
def test_a_message_of_a_session_comes_back_as_it_was(
    role: Any, text: str, metadata: dict[str, Any], message_id: str | None
) -> None:
    message = Message(role, text, THEN, metadata, message_id)
    back = Message.from_langchain(message.to_langchain())
    assert (back, back.id) == (message, message_id)


def test_roles_are_langchains_classes() -> None:
    built = [type(Message(role, "x").to_langchain()) for role in ("user", "agent", "tool")]  # type: ignore[arg-type]
    assert built == [HumanMessage, AIMessage, ToolMessage]
    assert [
        Message.from_langchain(message).role
        for message in (SystemMessage("x"), ChatMessage("x", role="user"))
    ] == ["agent", "agent"]


def test_a_message_has_the_time_at_which_it_was_made_unless_it_is_told() -> None:
    made = datetime.fromisoformat(Message("user", "x").timestamp)
    assert made.utcoffset() is not None
    assert Message("user", "x", THEN).to_langchain().additional_kwargs == {
        "langmem_ext": {"timestamp": THEN}
    }
    assert Message.from_langchain(HumanMessage("x"), stored_at=THEN).timestamp == THEN
    damaged = HumanMessage(
        "x", additional_kwargs={"langmem_ext": {"timestamp": "noon", "metadata": {"a": object()}}}
    )
    assert Message.from_langchain(damaged, stored_at=THEN) == Message("user", "x", THEN)


def test_messages_share_nothing_with_what_they_were_made_of() -> None:
    given = {"a": [1], "langchain": {"tool_calls": [CALL]}}
    message = Message("agent", "", THEN, given)
    given["a"].append(2)  # type: ignore[attr-defined]
    message.to_langchain().tool_calls[0]["args"]["at"].append(2)  # type: ignore[attr-defined]
    assert message.metadata == {"a": [1], "langchain": {"tool_calls": [CALL]}}
    with pytest.raises(dataclasses.FrozenInstanceError):
        message.text = "y"  # type: ignore[misc]
