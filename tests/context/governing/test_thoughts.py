"""Promises of thoughts: old ones are removed whole, nothing else is, a current round keeps its."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from damaged import damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from provider_rules import anthropic_problems, openai_problems

from langmem_ext import ApproximateCounter, ContextPolicy, govern

EXAMPLES = settings(max_examples=10 * settings().max_examples)
THINKING: dict[str, Any] = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
SAID: dict[str, Any] = {"type": "text", "text": "So."}
CALLS = [{"name": "look", "args": {}, "id": "a", "type": "tool_call"}]
FOUND = ToolMessage("found", tool_call_id="a")
HI, MORE = HumanMessage("hi"), HumanMessage("more")
COUNTER = ApproximateCounter()
THOUGHTS = ("thinking", "redacted_thinking", "reasoning", "reasoning_content", "non_standard")


def sent(
    messages: Sequence[BaseMessage], provider: str | None = None, thoughts: Any = "turn"
) -> list[BaseMessage]:
    policy = ContextPolicy(thoughts=thoughts, nudge_at=0, stop_at=0)
    return list(
        govern(messages, budget=10**7, counter=COUNTER, policy=policy, provider=provider).messages
    )


def answer(*blocks: Any, **fields: Any) -> AIMessage:
    return AIMessage(list(blocks), **fields)


def bare(message: AIMessage, provider: str | None = None) -> BaseMessage:
    """A model's message of an earlier turn as it is sent, beside a turn that follows."""
    later = AIMessage("", tool_calls=[CALLS[0] | {"id": "z"}])
    round_ = [later, ToolMessage("found", tool_call_id="z"), AIMessage("Good.")]
    talk = [HI, message, *([FOUND] if message.tool_calls else []), MORE, *round_, MORE]
    return sent(talk, provider)[1]


# -- laws ------------------------------------------------------------------------------------------


@EXAMPLES
@given(messages=damaged(), provider=st.sampled_from(["openai", "anthropic", "google_genai", None]))
def test_nothing_but_thoughts_is_taken_and_what_was_valid_is_valid(
    messages: list[AnyMessage], provider: str | None
) -> None:
    before = copy.deepcopy(messages)
    whole, less = sent(messages, provider, "never"), sent(messages, provider)
    assert messages == before
    assert [(one.type, one.id, one.text) for one in less] == [
        (one.type, one.id, one.text) for one in whole
    ]
    for one, other in zip(less, whole, strict=True):
        if isinstance(one.content, list) and isinstance(other.content, list):
            assert len(one.content) >= len([b for b in other.content if not is_thought(b)])
    if messages and provider is None:
        assert (openai_problems(less), anthropic_problems(less)) == ([], [])
    assert sent(less, provider) == less


def is_thought(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in THOUGHTS


# -- where -----------------------------------------------------------------------------------------


def test_the_turn_and_the_latest_round_keep_their_thoughts() -> None:
    thinking = [
        answer(THINKING, {"type": "text", "text": text}, id=text)
        for text in ("one", "two", "three")
    ]
    asked = answer(THINKING, id="asked", tool_calls=CALLS)
    talk = [HI, thinking[0], HumanMessage("look"), asked, FOUND, thinking[1]]

    def with_thoughts(messages: Sequence[BaseMessage]) -> list[str | None]:
        found = sent(messages, "anthropic")
        return [
            one.id for one in found if isinstance(one.content, list) and THINKING in one.content
        ]

    assert with_thoughts(talk) == ["asked", "two"]
    assert with_thoughts([*talk, MORE]) == ["asked", "two"]
    assert with_thoughts([*talk, MORE, thinking[2]]) == ["asked", "two", "three"]
    assert with_thoughts(talk[:2]) == ["one"]
    nudge = HumanMessage("Again?", additional_kwargs={"langmem_ext": {"context": "nudge"}})
    assert with_thoughts([*talk[:3], nudge]) == []


# -- what ------------------------------------------------------------------------------------------


def test_thoughts_are_taken_whole_in_every_providers_writing() -> None:
    for thought in (
        THINKING,
        {"type": "redacted_thinking", "data": "x"},
        {"type": "reasoning", "reasoning": "hm", "extras": {"signature": "c2ln"}},
        {"type": "reasoning_content", "reasoning_content": {"text": "hm"}},
        {"type": "non_standard", "value": {"type": "redacted_thinking", "data": "x"}},
    ):
        assert bare(answer(thought, SAID, id="m"), "somebody") == answer(SAID, id="m"), thought
    own = {"langmem_ext": {"tool": "chat"}}
    beside = AIMessage("So.", additional_kwargs={"reasoning_content": "hm", **own})
    assert bare(beside, "somebody") == AIMessage("So.", additional_kwargs=own)


@pytest.mark.parametrize("message", [AIMessage("So."), answer(SAID)], ids=["text", "blocks"])
def test_a_message_that_would_not_change_is_the_same_object(message: AIMessage) -> None:
    assert bare(message) is message


def test_gemini_keeps_the_signatures_of_calls_and_no_others() -> None:
    signed = {"type": "text", "text": "So.", "extras": {"signature": "c2ln", "index": 0}}
    call = {"type": "tool_call", "id": "a", "name": "look", "args": {}}
    signed_call = call | {"extras": {"signature": "c2ln"}}
    kwargs = {"__gemini_function_call_thought_signatures__": {"a": "c2ln"}}
    message = answer(*(THINKING, signed, signed_call), additional_kwargs=kwargs, tool_calls=CALLS)
    kept = bare(message, "google_genai")
    text = {"type": "text", "text": "So.", "extras": {"index": 0}}
    assert (kept.content, kept.additional_kwargs) == ([text, signed_call], kwargs)


def test_openais_items_lose_the_ids_that_bind_them_to_a_thought() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    said = {"type": "text", "text": "So.", "id": "msg_1"}
    own: Any = {"response_metadata": {"model_provider": "openai"}}
    asked = {
        **{"type": "function_call", "id": "fc_1", "call_id": "a"},
        **{"name": "look", "arguments": "{}"},
    }
    kept = bare(answer(thought, said, asked, tool_calls=CALLS, **own), "openai")
    unbound = {key: value for key, value in asked.items() if key != "id"}
    assert kept.content == [SAID, unbound]
    search = answer(thought, {"type": "web_search_call", "id": "ws_1"}, SAID, **own)
    assert bare(search, "openai") is search, "an item that needs its thought keeps it"
