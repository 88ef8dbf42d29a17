"""Promises of repair: any conversation becomes acceptable to providers; valid ones stay."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from damaged import damaged, sound
from hypothesis import given, settings
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from provider_rules import anthropic_problems, openai_problems

from langmem_ext import ApproximateCounter, ContextPolicy, govern

ALL = ("openai", "anthropic", "google_genai", "mistralai", "llama-cpp", "somebody", None)
"""What LangChain calls a provider; with none, the rules of OpenAI and of Anthropic hold."""

PLAIN = ContextPolicy(thoughts="never", nudge_at=0, stop_at=0)
COUNTER = ApproximateCounter()
EXAMPLES = settings(max_examples=10 * settings().max_examples)
Checker = Callable[[Sequence[BaseMessage]], list[str]]
HI = HumanMessage("hi")


def repaired(messages: Sequence[BaseMessage], provider: str | None = None) -> list[BaseMessage]:
    """What is sent of a conversation that fits."""
    done = govern(messages, budget=10**7, counter=COUNTER, policy=PLAIN, provider=provider)
    return list(done.messages)


def call(*ids: str, content: Any = "", **fields: Any) -> AIMessage:
    return AIMessage(
        content, tool_calls=[{"name": "look", "args": {}, "id": name} for name in ids], **fields
    )


def result(name: str, content: Any = "found", **fields: Any) -> ToolMessage:
    return ToolMessage(content, tool_call_id=name, **fields)


def contents(messages: Sequence[BaseMessage]) -> list[Any]:
    return [message.content for message in messages]


def kinds(messages: Sequence[BaseMessage]) -> list[str]:
    return [message.type for message in messages]


def same(sent: Sequence[BaseMessage], given: Sequence[BaseMessage]) -> bool:
    """Whether these are the very messages that were given."""
    return len(sent) == len(given) and all(a is b for a, b in zip(sent, given, strict=True))


def turn_problems(messages: Sequence[BaseMessage]) -> list[str]:
    """What a template would refuse that lets the user and the model speak in turn."""
    roles = {"AIMessageChunk": "ai", "HumanMessageChunk": "human", "ToolMessageChunk": "tool"}
    spoken = [
        roles.get(message.type, message.type)
        for message in messages
        if not isinstance(message, SystemMessage)
    ]
    known = [("human", "ai"), ("ai", "human"), ("ai", "tool"), ("tool", "tool"), ("tool", "ai")]
    return [f"{pair}" for pair in zip(spoken, spoken[1:], strict=False) if pair not in known] + [
        spoken[0]
    ] * (spoken[0] != "human")


# -- laws ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "checkers"),
    [
        (None, (openai_problems, anthropic_problems)),
        ("openai", (openai_problems,)),
        ("anthropic:claude-sonnet-4-5", (anthropic_problems,)),
        ("google_anthropic_vertex", (anthropic_problems,)),
        ("azure_openai", (openai_problems,)),
        ("mistralai", (turn_problems,)),
        ("google_genai", (turn_problems,)),
    ],
)
@EXAMPLES
@given(messages=damaged())
def test_what_is_sent_is_what_the_provider_takes(
    provider: str | None, checkers: tuple[Checker, ...], messages: list[AnyMessage]
) -> None:
    if messages:
        sent = repaired(messages, provider)
        assert [problem for checker in checkers for problem in checker(sent)] == []


@EXAMPLES
@given(messages=damaged())
def test_a_repaired_conversation_is_repaired_no_further(messages: list[AnyMessage]) -> None:
    before = copy.deepcopy(messages)
    for provider in ALL:
        once = repaired(messages, provider)
        assert same(repaired(once, provider), once)
        assert repaired(before, provider) == once
    assert messages == before


@EXAMPLES
@given(messages=sound())
def test_a_sound_conversation_stays(messages: list[AnyMessage]) -> None:
    for provider in ALL:
        if messages and messages[-1].type != "system":
            assert same(repaired(messages, provider), messages)


@EXAMPLES
@given(messages=damaged())
def test_what_follows_changes_nothing_of_what_was_sent_and_every_text_is_still_said(
    messages: list[AnyMessage],
) -> None:
    more = [HumanMessage("and?"), call("new"), result("new"), HumanMessage("so?")]
    for provider in ("openai", "anthropic", None):
        sent = repaired([*messages, more[0]], provider)
        assert repaired([*messages, *more], provider)[: len(sent)] == sent
    request = repaired(messages, "openai")
    for kind in (HumanMessage, AIMessage):
        said = "".join(message.text for message in request if isinstance(message, kind))
        place = 0
        for message in messages:
            for text in texts(message) if isinstance(message, kind) else ():
                place = said.index(text.strip(), place) + len(text.strip())


def texts(message: BaseMessage) -> list[str]:
    """The texts of a message, block by block."""
    blocks = message.content if isinstance(message.content, list) else [message.content]
    found = [block if isinstance(block, str) else block.get("text", "") for block in blocks]
    return [text for text in found if isinstance(text, str) and text.strip()]


# -- calls and results -----------------------------------------------------------------------------


def test_a_call_without_a_result_is_answered_behind_the_results_of_its_round() -> None:
    talk = [HI, call("a", "b", "c"), result("b"), HumanMessage("well?")]
    sent = repaired(talk)
    named = [getattr(message, "tool_call_id", message.type) for message in sent]
    assert named == ["human", "ai", "b", "a", "c", "human"]
    made = sent[3]
    assert isinstance(made, ToolMessage)
    assert (made.id, made.name, made.status) == ("no-result-a", "look", "error")
    assert "look" in made.text
    assert same(sent[:3], talk[:3])


def test_results_stand_behind_their_calls_once() -> None:
    talk = [HI, result("x"), call("a"), result("a", "first"), result("a", "second")]
    sent = repaired([*talk, AIMessage("so")])
    assert [message.text for message in sent] == ["hi", "", "first", "so"]
    late = [HI, call("a", "b"), result("b"), HumanMessage("hurry"), AIMessage("wait"), result("a")]
    assert repaired(late) == [late[0], late[1], late[2], late[5], late[3], late[4]]


def test_ids_become_ids_of_their_own_that_providers_take() -> None:
    block = {"type": "tool_use", "id": "call_0", "name": "look", "input": {}}
    again = call("call_0", content=[block])
    sent = repaired([HI, call("call_0"), result("call_0", "1"), again, result("call_0", "2")])
    assert sent[3].content == [block | {"id": "call_0_2"}]
    ids = [message.tool_call_id for message in sent if isinstance(message, ToolMessage)]
    assert ids == ["call_0", "call_0_2"]
    for name in ("", "functions.look:0", "x" * 41):
        sent = repaired([HI, call(name), result(name)])
        assert (openai_problems(sent), anthropic_problems(sent)) == ([], [])
        assert sent[-1].text == "found"
    signatures = "__gemini_function_call_thought_signatures__"
    signed = call("call_0", additional_kwargs={signatures: {"call_0": "c2ln"}})
    talk = [HI, call("call_0"), result("call_0"), signed, result("call_0")]
    assert repaired(talk, "google_genai")[3].additional_kwargs == {signatures: {"call_0_2": "c2ln"}}


def test_a_call_whose_arguments_cannot_be_read_is_shown_and_answered() -> None:
    unread = '{"where": "in the dr'
    bad: Any = [{"name": "look", "args": unread, "id": "a", "error": "no JSON"}]
    sent = repaired([HI, AIMessage("", invalid_tool_calls=bad), HumanMessage("well?")])
    asked = sent[1]
    assert isinstance(asked, AIMessage)
    assert [(one["name"], one["args"]) for one in asked.tool_calls] == [
        ("look", {"where": "in the dr"})
    ]
    assert asked.invalid_tool_calls == []
    assert unread in sent[2].text


def test_a_call_that_is_listed_twice_is_one() -> None:
    assert [len(getattr(one, "tool_calls", ())) for one in repaired([HI, call("a", "a")])] == [
        *(0, 1, 0)
    ]
    both: Any = [{"name": "look", "args": {"n": n}, "id": "a"} for n in (1, 2)]
    sent = repaired([HI, AIMessage("", tool_calls=both), result("a", "1"), result("a", "2")])
    assert [message.text for message in sent[2:]] == ["1", "2"]


def test_what_a_provider_asked_its_own_tools_is_answered_in_place() -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    said = {"type": "text", "text": "Found."}
    own: Any = {"response_metadata": {"model_provider": "anthropic"}}
    talk = [HI, AIMessage([search, found, said], **own), HumanMessage("more")]
    assert same(repaired(talk, "anthropic"), talk)
    for provider in ("openai", None):
        assert repaired(talk, provider)[1].content == [said]
    broken = [HI, AIMessage([said, search], **own), HumanMessage("more")]
    assert repaired(broken, "anthropic")[1].content == [said]
    paused = [HI, AIMessage([said, search], **own), AIMessage([found, said], **own)]
    assert same(repaired(paused, "anthropic"), paused)
    own = {"response_metadata": {"model_provider": "openai"}}
    asked = AIMessage([{"type": "computer_call", "call_id": "a", "action": {}}], **own)
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    shot = result("a", [image], additional_kwargs={"type": "computer_call_output"})
    talk = [HI, asked, shot, AIMessage("done")]
    assert same(repaired(talk, "openai"), talk)
    assert kinds(repaired([HI, asked, talk[3]], "openai")) == ["human", "ai"]
    block = {"type": "custom_tool_call", "call_id": "a", "name": "look", "input": "x"}
    sent = repaired([HI, call("a", content=[block], **own), HI], "openai")
    assert sent[1].content == [], "without a result it is an ordinary call"
    assert isinstance(sent[2].content, str), "whose result is no custom tool's"
    assert kinds(repaired(talk, "anthropic")) == ["human", "ai"]


def test_other_forms_are_the_messages_that_they_stand_for() -> None:
    sent = repaired([ChatMessage("hi", role="user"), ChatMessage("so", role="assistant")])
    assert kinds(sent) == ["human", "ai"]
    asked = AIMessage([{"type": "tool_use", "id": "a", "name": "look", "input": {"n": 1}}])
    answer = {"type": "tool_result", "tool_use_id": "a", "content": "found"}
    sent = repaired([HI, asked, HumanMessage([answer, {"type": "text", "text": "and now?"}])])
    assert kinds(sent) == ["human", "ai", "tool", "human"]
    assert (openai_problems(sent), anthropic_problems(sent)) == ([], [])


# -- contents --------------------------------------------------------------------------------------


def test_empty_messages_are_dropped_but_the_users_and_results_stay() -> None:
    talk = [SystemMessage(""), HI, AIMessage(""), HumanMessage(" "), AIMessage([])]
    sent = repaired([*talk, call("a", content="\n"), result("a", "")])
    assert kinds(sent) == ["human", "human", "ai", "tool"]
    assert sent[1].text.strip()
    blank = [HI, call("a", "b"), result("a", "\n"), result("b", ""), AIMessage("so")]
    assert same(repaired(blank), blank)
    assert contents(repaired([*blank[:2], result("a", [" "]), result("b", [])])[2:]) == ["", ""]
    refused = AIMessage("", additional_kwargs={"refusal": "No."})
    spoken = AIMessage("", additional_kwargs={"audio": {"id": "x", "transcript": "Yes."}})
    sent = repaired([HI, refused, HumanMessage("speak"), spoken])
    assert [message.text for message in sent] == ["hi", "No.", "speak", "Yes."]
    assert len(repaired([AIMessage("")], "openai")) == 1, "a request is never empty"


def test_a_picture_leaves_a_note_where_it_cannot_be_sent() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    talk = [HI, call("a"), result("a", [image]), AIMessage("seen")]
    note = {"type": "text", "text": "[image, image/png, 3 bytes]"}
    assert repaired(talk)[2].content == [note]
    assert same(repaired(talk, "anthropic"), talk)


def test_thoughts_of_others_and_those_that_are_not_whole_are_left_out() -> None:
    whole = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    cut, said = {"type": "thinking", "thinking": "h"}, {"type": "text", "text": "So."}
    talk = [HI, AIMessage([whole, cut, said, whole])]
    assert repaired(talk, "anthropic")[1].content == [whole, said]
    own = {"model_provider": "anthropic"}
    hidden = {"type": "redacted_thinking", "data": "x"}
    talk = [HI, AIMessage([whole, hidden, said], response_metadata=own)]
    assert same(repaired(talk, "anthropic"), talk)
    assert repaired(talk, "openai")[1].content == [whole, said]


# -- order -----------------------------------------------------------------------------------------


def test_the_user_speaks_first_and_system_messages_stand_before_all() -> None:
    talk = [AIMessage("Hello!"), HI, SystemMessage("be kind"), AIMessage("Good day. \n")]
    system, opening, *rest = repaired(talk)
    assert (system.text, opening.type) == ("be kind", "human")
    assert contents(rest) == ["Hello!", "hi", "Good day."]
    talk = [AIMessage("Hello!"), SystemMessage("be kind")]
    assert same(repaired(talk, "openai"), talk)


def test_where_roles_alternate_neighbours_become_one_message() -> None:
    there = {"type": "text", "text": "there"}
    talk: list[BaseMessage] = [HumanMessage("hi", id="1"), HumanMessage([there], id="2")]
    talk += [AIMessage("a"), call("x", content="b"), result("x")]
    sent = repaired([*talk, HumanMessage("and?")], "mistralai")
    assert kinds(sent) == ["human", "ai", "tool", "ai", "human"]
    assert sent[0].content == [{"type": "text", "text": "hi"}, there]
    assert (sent[0].id, sent[1].content) == ("1", "a\n\nb")
    assert same(repaired(talk, "anthropic"), talk)
