"""The two request checkers can fail: they take a sound list, and name what is wrong in others."""

from __future__ import annotations

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from provider_rules import anthropic_problems, openai_problems

ASKED = HumanMessage("Find my order.")
ANSWERED = AIMessage("Here it is.")


def call(*ids: str, text: str = "") -> AIMessage:
    return AIMessage(
        text, tool_calls=[{"name": "find", "args": {"number": 7}, "id": each} for each in ids]
    )


def result(of: str) -> ToolMessage:
    return ToolMessage("order 7", tool_call_id=of)


REFUSED: list[tuple[list[BaseMessage], str, str]] = [
    ([], "at least one message", "at least one message"),
    ([ASKED, call("a")], "responding to each", "without 'tool_result'"),
    ([ASKED, result("a")], "must be a response", "unexpected 'tool_use_id'"),
    ([ASKED, call("a"), result("a"), result("a")], "duplicate value", "single result"),
    ([ASKED, call("a"), HumanMessage("?"), result("a")], "responding to", "must come first"),
    ([ASKED, call("")], "id: missing", "match pattern"),
    ([HumanMessage([{"type": "smell"}])], "type 'smell'", "type 'smell'"),
]

REFUSED_BY_ANTHROPIC: list[tuple[list[BaseMessage], str]] = [
    ([ANSWERED, ASKED], "must use the 'user' role"),
    ([HumanMessage(" ")], "non-whitespace"),
    ([ASKED, AIMessage([{"type": "thinking", "thinking": "hm"}, "yes"])], "signature"),
]


def test_the_checkers_take_what_is_valid_and_say_what_is_not() -> None:
    sound = [ASKED, call("a", "b", text="I look."), result("b"), result("a"), ANSWERED, ASKED]
    assert openai_problems(sound) == anthropic_problems(sound) == []
    for messages, openai, anthropic in REFUSED:
        assert openai in "\n".join(openai_problems(messages))
        assert anthropic in "\n".join(anthropic_problems(messages))
    for messages, words in REFUSED_BY_ANTHROPIC:
        assert openai_problems(messages) == []
        assert words in "\n".join(anthropic_problems(messages))
    assert "too long" in "\n".join(openai_problems([ASKED, call("a" * 41), result("a" * 41)]))
