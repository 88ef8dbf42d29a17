"""Promises of thoughts: old ones are removed whole, nothing else is, a current round keeps its."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from damaged import damaged, sound
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from provider_rules import anthropic_problems, openai_problems

from langmem_ext.context.repair.provider import ANTHROPIC, BOTH, GOOGLE, OPENAI
from langmem_ext.context.repair.repair import repair
from langmem_ext.context.repair.thoughts import strippable, without_thoughts
from langmem_ext.messages.blocks import is_a
from langmem_ext.messages.pairing import call_ids, latest_round

EXAMPLES = settings(max_examples=10 * settings().max_examples)
THINKING: dict[str, Any] = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
SAID: dict[str, Any] = {"type": "text", "text": "So."}
CALLS = [{"name": "look", "args": {}, "id": "a", "type": "tool_call"}]


def answer(*blocks: Any, **fields: Any) -> AIMessage:
    return AIMessage(list(blocks), **fields)


# -- laws ------------------------------------------------------------------------------------------


@EXAMPLES
@given(messages=damaged(), rules=st.sampled_from([OPENAI, ANTHROPIC, GOOGLE, BOTH]))
def test_no_thought_is_left_and_nothing_else_is_taken(
    messages: list[AnyMessage], rules: Any
) -> None:
    before = copy.deepcopy(messages)
    for message in repair(messages, rules).messages:
        bare = without_thoughts(message, rules)
        assert without_thoughts(bare, rules) is bare
        assert (bare.text, bare.id, call_ids(bare)) == (message.text, message.id, call_ids(message))
        if isinstance(message, AIMessage) and isinstance(message.content, list):
            left = [block for block in message.content if not is_a(block, "thought")]
            assert bare.content == left
            assert (bare is message) == (left == message.content)
    assert messages == before


@EXAMPLES
@given(messages=damaged())
def test_what_was_valid_is_valid_without_thoughts(messages: list[AnyMessage]) -> None:
    sent = repair(messages, BOTH).messages
    at = strippable(sent)
    bare = [*(without_thoughts(message) for message in sent[:at]), *sent[at:]]
    assert not messages or (openai_problems(bare), anthropic_problems(bare)) == ([], [])
    assert repair(bare, BOTH).messages is bare


@EXAMPLES
@given(messages=sound())
def test_the_boundary_never_goes_back_and_leaves_the_turn_and_the_latest_round(
    messages: list[AnyMessage],
) -> None:
    places = [strippable(messages[:end]) for end in range(len(messages) + 1)]
    assert places == sorted(places)
    assert places[-1] <= latest_round(messages)
    spoken = [at for at, message in enumerate(messages) if isinstance(message, HumanMessage)]
    assert places[-1] <= (spoken[-1] if spoken else 0)


# -- where -----------------------------------------------------------------------------------------


def test_the_latest_round_keeps_its_thoughts_when_the_user_has_spoken_since() -> None:
    asked, found = AIMessage("", tool_calls=CALLS), ToolMessage("found", tool_call_id="a")
    talk: list[BaseMessage] = [
        HumanMessage("hi"),
        AIMessage("Hello."),
        HumanMessage("look"),
        asked,
        found,
        AIMessage("There."),
    ]
    assert strippable(talk) == 2
    assert strippable([*talk, HumanMessage("more")]) == 3
    assert strippable(talk[:2]) == 0
    assert strippable([*talk[:2], HumanMessage("more")]) == 2
    nudge = HumanMessage(
        "You repeat yourself.", additional_kwargs={"langmem_ext": {"context": "nudge"}}
    )
    assert strippable([*talk[:3], nudge]) == 2
    assert strippable([]) == 0
    assert strippable([AIMessage("Hello.")]) == 0


# -- what ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "thought",
    [
        THINKING,
        {"type": "redacted_thinking", "data": "x"},
        {"type": "reasoning", "reasoning": "hm", "extras": {"signature": "c2ln"}},
        {"type": "reasoning_content", "reasoning_content": {"text": "hm"}},
        {"type": "non_standard", "value": {"type": "redacted_thinking", "data": "x"}},
    ],
)
def test_thoughts_are_taken_whole_in_every_providers_writing(thought: dict[str, Any]) -> None:
    message = answer(thought, SAID, id="m", response_metadata={"model_provider": "x"})
    assert without_thoughts(message) == answer(
        SAID, id="m", response_metadata={"model_provider": "x"}
    )


def test_thoughts_beside_the_content_are_taken_and_what_else_stands_there_is_left() -> None:
    message = AIMessage(
        "So.",
        additional_kwargs={
            "reasoning_content": "hm",
            "refusal": None,
            "langmem_ext": {"tool": "chat"},
        },
    )
    assert without_thoughts(message) == AIMessage(
        "So.", additional_kwargs={"refusal": None, "langmem_ext": {"tool": "chat"}}
    )


@pytest.mark.parametrize(
    "message",
    [
        AIMessage("So."),
        answer(SAID),
        answer(THINKING),
        HumanMessage([THINKING]),
        ToolMessage([THINKING], tool_call_id="a"),
    ],
    ids=["text", "blocks", "nothing but a thought", "a user's", "a result"],
)
def test_a_message_that_would_not_change_or_say_nothing_is_the_same_object(
    message: BaseMessage,
) -> None:
    assert without_thoughts(message) is message


def test_gemini_keeps_the_signatures_of_calls_and_no_others() -> None:
    signed = {"type": "text", "text": "So.", "extras": {"signature": "c2ln", "index": 0}}
    beside = {"type": "function_call_signature", "signature": "c2ln", "index": 0}
    call = {
        "type": "tool_call",
        "id": "a",
        "name": "look",
        "args": {},
        "extras": {"signature": "c2ln"},
    }
    kwargs = {"__gemini_function_call_thought_signatures__": {"a": "c2ln"}}
    message = answer(
        THINKING,
        signed,
        call,
        beside,
        {"type": "text", "text": "", "extras": {"signature": "x"}},
        additional_kwargs=kwargs,
        tool_calls=CALLS,
    )
    kept = without_thoughts(message, GOOGLE)
    text = {"type": "text", "text": "So.", "extras": {"index": 0}}
    assert (kept.content, kept.additional_kwargs) == ([text, call, beside], kwargs)
    bare = without_thoughts(message, ANTHROPIC)
    assert (bare.content, bare.additional_kwargs) == ([text, call | {"extras": {}}], {})


def test_openais_items_lose_the_ids_that_bind_them_to_a_thought() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    said = {"type": "text", "text": "So.", "id": "msg_1"}
    asked = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "a",
        "name": "look",
        "arguments": "{}",
    }
    call = {
        "type": "tool_call",
        "id": "a",
        "name": "look",
        "args": {},
        "extras": {"item_id": "fc_1"},
    }
    own = {"model_provider": "openai"}
    bare = without_thoughts(
        answer(thought, said, asked, call, tool_calls=CALLS, response_metadata=own), OPENAI
    )
    unbound = {key: value for key, value in asked.items() if key != "id"}
    assert bare.content == [SAID, unbound, call | {"extras": {}}]
    assert without_thoughts(answer(said, asked, tool_calls=CALLS), OPENAI).content == [said, asked]


@pytest.mark.parametrize(
    "message",
    [
        answer(
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "web_search_call", "id": "ws_1"},
            SAID,
        ),
        answer(SAID, id="msg_1", additional_kwargs={"reasoning": {"id": "rs_1", "summary": []}}),
    ],
    ids=["a search of its own", "an older form"],
)
def test_openais_items_that_need_their_thought_keep_it(message: AIMessage) -> None:
    assert without_thoughts(message, OPENAI) is message
