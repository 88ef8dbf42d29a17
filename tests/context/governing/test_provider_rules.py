"""The two request checkers: valid lists pass, and each rule has a list that breaks it alone."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
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
    "two system prompts": [SystemMessage("Be brief."), SystemMessage("Be kind."), ASKED],
    "a round": [ASKED, call("a"), result("a"), ANSWERED, HumanMessage("Thanks.")],
    "parallel calls, results in another order": [ASKED, call("a", "b"), result("b"), result("a")],
    "text and calls, rounds in a row": [
        ASKED,
        call("a", text="I look."),
        result("a"),
        call("b"),
        result("b"),
    ],
    "neighbours of one role": [ASKED, HumanMessage("Now."), ANSWERED, AIMessage("All of it.")],
    "an empty result": [ASKED, call("a"), result("a", "")],
    "an image": [HumanMessage([{"type": "text", "text": "this"}, IMAGE, "plain"])],
    "a thought before a call": [
        ASKED,
        AIMessage([THOUGHT], tool_calls=call("a").tool_calls),
        result("a"),
    ],
}


def test_both_take_what_is_valid() -> None:
    for name, messages in VALID.items():
        assert openai_problems(messages) == [], name
        assert anthropic_problems(messages) == [], name


REFUSED_BY_BOTH: dict[str, tuple[list[BaseMessage], str, str]] = {
    "nothing": ([], "at least one message", "at least one message"),
    "a call without result": ([ASKED, call("a")], "responding to each", "without 'tool_result'"),
    "one of two calls without result": (
        [ASKED, call("a", "b"), result("a"), ANSWERED],
        "response: b",
        "immediately after: b",
    ),
    "a result of nothing": ([ASKED, result("a")], "must be a response", "unexpected 'tool_use_id'"),
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
    "two calls of one id": (
        [ASKED, call("a", "a"), result("a")],
        "duplicate value",
        "must be unique",
    ),
    "no id": ([ASKED, call(""), result("")], "id: missing", "match pattern"),
    "no name": ([ASKED, call("a", name=""), result("a")], "function.name", "tool_use.name"),
    "an invented role": ([ChatMessage("hi", role="narrator")], "is not one of", "neither"),
    "an unknown block": ([HumanMessage([{"type": "smell"}])], "type 'smell'", "type 'smell'"),
    "no content at all": ([HumanMessage([])], "empty array", "non-empty content"),
}


def test_both_say_what_they_refuse() -> None:
    for name, (messages, openai, anthropic) in REFUSED_BY_BOTH.items():
        assert any(openai in problem for problem in openai_problems(messages)), name
        assert any(anthropic in problem for problem in anthropic_problems(messages)), name


def block(**fields: Any) -> AIMessage:
    return AIMessage([{"type": "tool_use", "id": "a", "name": "find", "input": {}, **fields}])


INVALID_CALL = {"type": "invalid_tool_call", "name": "find", "args": "{", "id": "a", "error": None}

REFUSED_BY_ONE: dict[str, tuple[list[BaseMessage], str]] = {
    "openai: the id is too long": ([ASKED, call("a" * 41), result("a" * 41)], "string too long"),
    "openai: a name with a space": ([ASKED, call("a", name="find it"), result("a")], "not match"),
    "openai: an image in a result": (
        [ASKED, call("a"), result("a", [IMAGE | {"type": "image"}])],
        "role 'tool'",
    ),
    "openai: an invalid call is sent too": (
        [ASKED, AIMessage("", invalid_tool_calls=[INVALID_CALL]), HumanMessage("?")],
        "responding",
    ),
    "anthropic: the assistant begins": ([ANSWERED, ASKED], "must use the 'user' role"),
    "anthropic: a system message in the middle": (
        [ASKED, SystemMessage("Be brief."), ANSWERED, ASKED],
        "no 'system' role",
    ),
    "anthropic: an empty text": ([HumanMessage("")], "non-empty content"),
    "anthropic: blanks": ([HumanMessage(" \n")], "non-whitespace"),
    "anthropic: an empty answer in the middle": ([ASKED, AIMessage(""), ASKED], "non-empty"),
    "anthropic: other characters": ([ASKED, call("a.1"), result("a.1")], "match pattern"),
    "anthropic: an id used by two rounds": (
        [ASKED, call("a"), result("a"), call("a"), result("a")],
        "must be unique",
    ),
    "anthropic: an input that is no object": (
        [ASKED, block(input="x"), result("a")],
        "valid dictionary",
    ),
    "anthropic: a thought without signature": (
        [ASKED, AIMessage([{"type": "thinking", "thinking": "hm"}, "yes"])],
        "signature",
    ),
    "anthropic: a thought at the end": ([ASKED, AIMessage([THOUGHT]), ASKED], "cannot be thinking"),
    "anthropic: another's reasoning": (
        [ASKED, AIMessage([{"type": "reasoning", "summary": []}, "yes"])],
        "type 'reasoning'",
    ),
}


def test_what_one_of_them_refuses() -> None:
    for name, (messages, expected) in REFUSED_BY_ONE.items():
        check = {"openai": openai_problems, "anthropic": anthropic_problems}[name.split(":")[0]]
        assert any(expected in problem for problem in check(messages)), name
