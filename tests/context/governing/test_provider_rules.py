"""The two request checkers: valid lists pass, and each rule has a list that breaks it alone."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from provider_rules import anthropic_problems, openai_problems

ASKED = HumanMessage("Find my order.")
ANSWERED = AIMessage("Here it is.")


def call(*ids: str, text: str = "", name: str = "find", **fields: Any) -> AIMessage:
    return AIMessage(
        text,
        tool_calls=[{"name": name, "args": {"number": 7}, "id": each} for each in ids],
        **fields,
    )


def result(of: str, text: str | list[Any] = "order 7") -> ToolMessage:
    return ToolMessage(text, tool_call_id=of)


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

VALID: dict[str, list[BaseMessage]] = {
    "one message": [ASKED],
    "system prompt": [SystemMessage("Be brief."), ASKED],
    "two system prompts": [SystemMessage("Be brief."), SystemMessage("Be kind."), ASKED],
    "a round": [ASKED, call("a"), result("a"), ANSWERED, HumanMessage("Thanks.")],
    "parallel calls, results in another order": [ASKED, call("a", "b"), result("b"), result("a")],
    "text and calls": [ASKED, call("a", text="I look."), result("a")],
    "rounds in a row": [ASKED, call("a"), result("a"), call("b"), result("b")],
    "the user speaks after results": [ASKED, call("a"), result("a"), HumanMessage("And?")],
    "neighbours of one role": [ASKED, HumanMessage("Now."), ANSWERED, AIMessage("All of it.")],
    "an answer, then a call": [ASKED, ANSWERED, call("a"), result("a")],
    "an empty result": [ASKED, call("a"), result("a", "")],
    "a result of blanks": [ASKED, call("a"), result("a", "\n")],
    "an image": [HumanMessage([{"type": "text", "text": "this"}, IMAGE])],
    "text blocks": [HumanMessage(["plain", {"type": "text", "text": "block"}])],
    "a thought before a call": [
        ASKED,
        AIMessage([THOUGHT], tool_calls=call("a").tool_calls),
        result("a"),
    ],
    "a call as a block too": [
        ASKED,
        AIMessage(
            [{"type": "tool_use", "id": "a", "name": "find", "input": {}}],
            tool_calls=call("a").tool_calls,
        ),
        result("a"),
    ],
    "begun by the assistant's own words": [ASKED, AIMessage("The order is ")],
}


@pytest.mark.parametrize("messages", VALID.values(), ids=VALID)
def test_both_take_what_is_valid(messages: list[BaseMessage]) -> None:
    assert openai_problems(messages) == []
    assert anthropic_problems(messages) == []


REFUSED_BY_BOTH: dict[str, tuple[list[BaseMessage], str, str]] = {
    "nothing": ([], "at least one message", "at least one message"),
    "a call without result at the end": (
        [ASKED, call("a")],
        "responding to each",
        "without 'tool_result'",
    ),
    "a call without result in the middle": (
        [ASKED, call("a"), HumanMessage("?")],
        "responding to each",
        "without 'tool_result'",
    ),
    "one of two calls without result": (
        [ASKED, call("a", "b"), result("a"), ANSWERED],
        "response: b",
        "immediately after: b",
    ),
    "a result of nothing": ([ASKED, result("a")], "must be a response", "unexpected 'tool_use_id'"),
    "a result at the beginning": (
        [result("a"), ASKED],
        "must be a response",
        "unexpected 'tool_use_id'",
    ),
    "a result of another call": (
        [ASKED, call("a"), result("a"), result("b")],
        "not found in 'tool_calls'",
        "unexpected 'tool_use_id'",
    ),
    "a result twice": (
        [ASKED, call("a"), result("a"), result("a")],
        "duplicate value",
        "single result",
    ),
    "a result too late": (
        [ASKED, call("a"), HumanMessage("?"), result("a")],
        "responding to each",
        "must come first",
    ),
    "a result after another answer": (
        [ASKED, call("a"), ANSWERED, result("a")],
        "responding to each",
        "text follows them",
    ),
    "two calls of one id": (
        [ASKED, call("a", "a"), result("a")],
        "duplicate value",
        "must be unique",
    ),
    "no id": ([ASKED, call(""), result("")], "id: missing", "match pattern"),
    "no name": ([ASKED, call("a", name=""), result("a")], "function.name", "tool_use.name"),
    "no message": ([ASKED, RemoveMessage(id="x")], "is not one of", "neither"),
    "an invented role": ([ChatMessage("hi", role="narrator")], "is not one of", "neither"),
    "an unknown block": ([HumanMessage([{"type": "smell"}])], "type 'smell'", "type 'smell'"),
    "a text block without text": (
        [HumanMessage([{"type": "text"}])],
        "text: missing",
        "must be non-empty",
    ),
    "no content at all": ([HumanMessage([])], "empty array", "non-empty content"),
}


@pytest.mark.parametrize(
    ("messages", "openai", "anthropic"), REFUSED_BY_BOTH.values(), ids=REFUSED_BY_BOTH
)
def test_both_say_what_they_refuse(
    messages: list[BaseMessage], openai: str, anthropic: str
) -> None:
    assert any(openai in problem for problem in openai_problems(messages)), openai_problems(
        messages
    )
    assert any(anthropic in problem for problem in anthropic_problems(messages)), (
        anthropic_problems(messages)
    )


INVALID_CALL = {"type": "invalid_tool_call", "name": "find", "args": "{", "id": "a", "error": None}

REFUSED_BY_ONE: dict[str, tuple[list[BaseMessage], str]] = {
    "openai: the id is too long": ([ASKED, call("a" * 41), result("a" * 41)], "string too long"),
    "openai: a function name with a space": (
        [ASKED, call("a", name="find it"), result("a")],
        "does not match",
    ),
    "openai: an author's name with a space": (
        [HumanMessage("hi", name="Ann Lee")],
        "messages[0].name",
    ),
    "openai: too many calls": (
        [ASKED, call(*(f"c{n}" for n in range(129))), *(result(f"c{n}") for n in range(129))],
        "array too long",
    ),
    "openai: an image in a result": (
        [ASKED, call("a"), result("a", [IMAGE | {"type": "image"}])],
        "role 'tool'",
    ),
    "openai: an invalid call is sent too": (
        [ASKED, AIMessage("", invalid_tool_calls=[INVALID_CALL]), HumanMessage("?")],
        "responding",
    ),
    "openai: a result without the id of a call": (
        [ASKED, call(""), result("")],
        "tool_call_id: empty",
    ),
    "anthropic: the assistant begins": ([ANSWERED, ASKED], "must use the 'user' role"),
    "anthropic: a system message in the middle": (
        [ASKED, SystemMessage("Be brief."), ANSWERED, ASKED],
        "no 'system' role",
    ),
    "anthropic: an empty text": ([HumanMessage("")], "non-empty content"),
    "anthropic: an empty text block": (
        [HumanMessage([{"type": "text", "text": ""}])],
        "must be non-empty",
    ),
    "anthropic: blanks": ([HumanMessage(" \n")], "non-whitespace"),
    "anthropic: an empty answer in the middle": (
        [ASKED, AIMessage(""), ASKED],
        "non-empty content",
    ),
    "anthropic: an empty block in a result": (
        [ASKED, call("a"), result("a", [{"type": "text", "text": ""}])],
        "must be non-empty",
    ),
    "anthropic: an empty system prompt": (
        [SystemMessage([{"type": "text", "text": ""}]), ASKED],
        "must be non-empty",
    ),
    "anthropic: an id with other characters": (
        [ASKED, call("a.1"), result("a.1")],
        "match pattern",
    ),
    "anthropic: an id used by two rounds": (
        [ASKED, call("a"), result("a"), call("a"), result("a")],
        "must be unique",
    ),
    "anthropic: a name that is too long": (
        [ASKED, call("a", name="n" * 201), result("a")],
        "tool_use.name",
    ),
    "anthropic: only a result of an invalid call": (
        [ASKED, AIMessage("I look.", invalid_tool_calls=[INVALID_CALL]), result("a")],
        "unexpected 'tool_use_id'",
    ),
    "anthropic: an input that is no object": (
        [
            ASKED,
            AIMessage([{"type": "tool_use", "id": "a", "name": "find", "input": "x"}]),
            result("a"),
        ],
        "valid dictionary",
    ),
    "anthropic: text after a call": (
        [
            ASKED,
            AIMessage(
                [
                    {"type": "tool_use", "id": "a", "name": "find", "input": {}},
                    {"type": "text", "text": "so"},
                ]
            ),
            result("a"),
        ],
        "text follows them",
    ),
    "anthropic: a thought without signature": (
        [ASKED, AIMessage([{"type": "thinking", "thinking": "hm"}, "yes"])],
        "signature",
    ),
    "anthropic: a hidden thought without data": (
        [ASKED, AIMessage([{"type": "redacted_thinking"}, "yes"])],
        "data",
    ),
    "anthropic: a thought at the end": ([ASKED, AIMessage([THOUGHT]), ASKED], "cannot be thinking"),
    "anthropic: another's reasoning": (
        [ASKED, AIMessage([{"type": "reasoning", "summary": []}, "yes"])],
        "type 'reasoning'",
    ),
    "anthropic: sound": (
        [HumanMessage([{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}])],
        "input_audio",
    ),
}


@pytest.mark.parametrize(
    ("name", "messages", "expected"),
    [(name, *case) for name, case in REFUSED_BY_ONE.items()],
    ids=REFUSED_BY_ONE,
)
def test_what_one_of_them_refuses(name: str, messages: list[BaseMessage], expected: str) -> None:
    check = {"openai": openai_problems, "anthropic": anthropic_problems}[name.partition(":")[0]]
    assert any(expected in problem for problem in check(messages)), check(messages)


def test_more_messages_than_a_request_may_have() -> None:
    assert any("limit of 100,000" in problem for problem in anthropic_problems([ASKED] * 100_001))
