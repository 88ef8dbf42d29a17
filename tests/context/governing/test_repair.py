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

from langmem_ext.context.repair.blocks import EMPTY, role_of
from langmem_ext.context.repair.provider import (
    ANTHROPIC,
    BOTH,
    GOOGLE,
    LLAMA,
    MISTRAL,
    OPENAI,
    OTHER,
    ProviderRules,
    rules_for,
)
from langmem_ext.context.repair.repair import NO_RESULT, UNREAD, Repaired, repair
from langmem_ext.context.repair.role_order import OPENING, UNANSWERED
from langmem_ext.messages.annotations import is_inserted
from langmem_ext.messages.pairing import call_ids
from langmem_ext.messages.text import text_of

ALL = (OPENAI, ANTHROPIC, GOOGLE, MISTRAL, LLAMA, OTHER, BOTH)
Checker = Callable[[Sequence[BaseMessage]], list[str]]


def call(*ids: str, content: Any = "", **fields: Any) -> AIMessage:
    return AIMessage(
        content, tool_calls=[{"name": "look", "args": {}, "id": name} for name in ids], **fields
    )


def result(name: str, content: Any = "found", **fields: Any) -> ToolMessage:
    return ToolMessage(content, tool_call_id=name, **fields)


def texts(message: BaseMessage) -> list[str]:
    """The texts of a message, block by block."""
    return (
        [text_of([block]) for block in message.content]
        if isinstance(message.content, list)
        else [message.text]
    )


def turn_problems(messages: Sequence[BaseMessage]) -> list[str]:
    """What a template would refuse that lets the user and the model speak in turn."""
    spoken = [role_of(message) for message in messages if not isinstance(message, SystemMessage)]
    known = [("human", "ai"), ("ai", "human"), ("ai", "tool"), ("tool", "tool"), ("tool", "ai")]
    return [f"{pair}" for pair in zip(spoken, spoken[1:], strict=False) if pair not in known] + [
        spoken[0]
    ] * (spoken[0] != "human")


EXAMPLES = settings(max_examples=10 * settings().max_examples)


# -- laws ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "checkers"),
    [
        (BOTH, (openai_problems, anthropic_problems)),
        (OPENAI, (openai_problems,)),
        (ANTHROPIC, (anthropic_problems,)),
        (MISTRAL, (turn_problems,)),
        (GOOGLE, (turn_problems,)),
    ],
    ids=["both", "openai", "anthropic", "mistral", "google"],
)
@EXAMPLES
@given(messages=damaged())
def test_what_is_sent_is_what_the_provider_takes(
    rules: ProviderRules, checkers: tuple[Checker, ...], messages: list[AnyMessage]
) -> None:
    sent = repair(messages, rules).messages
    if messages:
        assert [problem for checker in checkers for problem in checker(sent)] == []


@EXAMPLES
@given(messages=damaged())
def test_a_repaired_conversation_is_repaired_no_further(messages: list[AnyMessage]) -> None:
    before = copy.deepcopy(messages)
    for rules in ALL:
        once = repair(messages, rules)
        again = repair(once.messages, rules)
        assert again.messages is once.messages
        assert again == Repaired(once.messages)
        assert repair(before, rules) == once
    assert messages == before


@EXAMPLES
@given(messages=sound())
def test_a_sound_conversation_is_the_same_list(messages: list[AnyMessage]) -> None:
    for rules in ALL:
        if messages and messages[-1].type != "system":
            assert repair(messages, rules) == Repaired(messages)
            assert repair(messages, rules).messages is messages


@EXAMPLES
@given(messages=damaged())
def test_what_follows_changes_nothing_of_what_was_sent(messages: list[AnyMessage]) -> None:
    more = [HumanMessage("and?"), call("new"), result("new"), HumanMessage("so?")]
    for rules in (OPENAI, ANTHROPIC, BOTH):
        sent = list(repair([*messages, more[0]], rules).messages)
        assert list(repair([*messages, *more], rules).messages)[: len(sent)] == sent


@EXAMPLES
@given(messages=damaged())
def test_every_text_of_the_user_and_the_model_is_still_said_in_its_order(
    messages: list[AnyMessage],
) -> None:
    sent = repair(messages, OPENAI).messages
    for kind in (HumanMessage, AIMessage):
        said = (text_of(message.content) for message in sent if isinstance(message, kind))
        shown, place = "".join(said), 0
        for text in (
            text
            for message in messages
            if isinstance(message, kind)
            for text in texts(message)
            if text.strip()
        ):
            place = shown.index(text.strip(), place) + len(text.strip())


@EXAMPLES
@given(messages=damaged())
def test_a_result_stands_behind_the_message_that_asked_for_it(messages: list[AnyMessage]) -> None:
    """The newest call before it with its id; any other result answers nothing."""
    named = [message.model_copy(update={"id": f"m{at}"}) for at, message in enumerate(messages)]
    newest: dict[str, str] = {}
    asked: dict[str, str] = {}
    for message in named:
        newest |= dict.fromkeys(call_ids(message), str(message.id))
        if isinstance(message, ToolMessage) and message.tool_call_id in newest:
            asked[str(message.id)] = newest[message.tool_call_id]
    asking = None
    for message in repair(named, OPENAI).messages:
        asking = message.id if isinstance(message, AIMessage) else asking
        if isinstance(message, ToolMessage) and message.id in asked:
            assert asked[message.id] == asking


# -- calls and results -----------------------------------------------------------------------------


def test_a_call_without_a_result_is_answered_behind_the_results_of_its_round() -> None:
    talk = [HumanMessage("hi"), call("a", "b", "c"), result("b"), HumanMessage("well?")]
    repaired = repair(talk)
    assert [getattr(message, "tool_call_id", message.type) for message in repaired.messages] == [
        "human",
        "ai",
        "b",
        "a",
        "c",
        "human",
    ]
    assert (repaired.added, repaired.dropped, repaired.moved, repaired.mended) == (2, 0, 0, 0)
    made = repaired.messages[3]
    assert isinstance(made, ToolMessage)
    assert (made.id, made.name, made.status) == ("no-result-a", "look", "error")
    assert made.content == NO_RESULT.format(name="look")
    assert all(old is new for old, new in zip(talk[:3], repaired.messages, strict=False))


def test_results_that_answer_nothing_and_second_results_are_dropped() -> None:
    repaired = repair(
        [
            HumanMessage("hi"),
            result("x"),
            call("a"),
            result("a", "first"),
            result("a", "second"),
            AIMessage("so"),
        ]
    )
    assert [message.text for message in repaired.messages] == ["hi", "", "first", "so"]
    assert (repaired.added, repaired.dropped, repaired.moved, repaired.mended) == (0, 2, 0, 0)


def test_a_result_that_comes_late_is_moved_behind_its_call() -> None:
    talk = [
        HumanMessage("hi"),
        call("a", "b"),
        result("b"),
        HumanMessage("hurry"),
        AIMessage("wait"),
        result("a"),
    ]
    repaired = repair(talk)
    assert list(repaired.messages) == [talk[0], talk[1], talk[2], talk[5], talk[3], talk[4]]
    assert (repaired.added, repaired.dropped, repaired.moved, repaired.mended) == (0, 0, 1, 0)


def test_ids_that_are_used_again_become_ids_of_their_own() -> None:
    block = {"type": "tool_use", "id": "call_0", "name": "look", "input": {}}
    talk = [
        HumanMessage("hi"),
        call("call_0"),
        result("call_0", "one"),
        call("call_0", content=[block]),
        result("call_0", "two"),
    ]
    sent = repair(talk).messages
    assert call_ids(sent[1]) == ["call_0"]
    assert call_ids(sent[3]) == ["call_0_2"]
    assert sent[3].content == [block | {"id": "call_0_2"}]
    assert [message.tool_call_id for message in sent if isinstance(message, ToolMessage)] == [
        "call_0",
        "call_0_2",
    ]


@pytest.mark.parametrize("name", ["", "functions.look:0", "x" * 41])
def test_ids_that_no_provider_takes_are_replaced_with_those_of_their_results(name: str) -> None:
    sent = repair([HumanMessage("hi"), call(name), result(name)]).messages
    assert (openai_problems(sent), anthropic_problems(sent)) == ([], [])
    assert sent[-1].text == "found"


def test_gemini_is_sent_its_signature_with_the_call_whose_id_has_changed() -> None:
    kwargs = {"__gemini_function_call_thought_signatures__": {"call_0": "c2ln"}}
    talk = [
        HumanMessage("hi"),
        call("call_0"),
        result("call_0"),
        call("call_0", additional_kwargs=kwargs),
        result("call_0"),
    ]
    sent = repair(talk, GOOGLE).messages
    assert sent[3].additional_kwargs == {
        "__gemini_function_call_thought_signatures__": {"call_0_2": "c2ln"}
    }


def test_a_call_whose_arguments_cannot_be_read_is_shown_and_answered() -> None:
    bad = [{"name": "look", "args": '{"where": "in the dr', "id": "a", "error": "no JSON"}]
    sent = repair(
        [HumanMessage("hi"), AIMessage("", invalid_tool_calls=bad), HumanMessage("well?")]
    ).messages
    asked = sent[1]
    assert isinstance(asked, AIMessage)
    assert asked.tool_calls == [
        {"name": "look", "args": {"where": "in the dr"}, "id": "a", "type": "tool_call"}
    ]
    assert asked.invalid_tool_calls == []
    assert sent[2].content == UNREAD.format(name="look", unread='{"where": "in the dr')


def test_a_call_that_is_listed_twice_is_one() -> None:
    sent = repair([HumanMessage("hi"), call("a", "a"), result("a")])
    assert call_ids(sent.messages[1]) == ["a"]
    assert len(sent.messages) == 3
    differ = AIMessage(
        "", tool_calls=[{"name": "look", "args": {"n": n}, "id": "a"} for n in (1, 2)]
    )
    assert [
        message.text
        for message in repair(
            [HumanMessage("hi"), differ, result("a", "1"), result("a", "2")]
        ).messages[2:]
    ] == ["1", "2"]


def test_what_a_provider_asked_its_own_tools_is_answered_in_place() -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    said = {"type": "text", "text": "Found."}
    own = {"model_provider": "anthropic"}
    talk = [
        HumanMessage("hi"),
        AIMessage([search, found, said], response_metadata=own),
        HumanMessage("more"),
    ]
    assert repair(talk, ANTHROPIC).messages is talk
    for rules in (OPENAI, BOTH):
        assert repair(talk, rules).messages[1].content == [said]
    broken = [
        HumanMessage("hi"),
        AIMessage([said, search], response_metadata=own),
        HumanMessage("more"),
    ]
    assert repair(broken, ANTHROPIC).messages[1].content == [said]
    paused = [
        HumanMessage("hi"),
        AIMessage([said, search], response_metadata=own),
        AIMessage([found, said], response_metadata=own),
    ]
    assert repair(paused, ANTHROPIC).messages is paused
    assert repair(paused[:2], ANTHROPIC).messages == paused[:2]
    both = repair(
        [HumanMessage("hi"), call("a", content=[said, search], response_metadata=own)], ANTHROPIC
    )
    assert both.messages[1].content == [said]
    assert repair(both.messages, ANTHROPIC) == Repaired(both.messages)


def test_what_was_asked_of_a_screen_keeps_its_result() -> None:
    asked = AIMessage(
        [{"type": "computer_call", "call_id": "a", "action": {}}],
        response_metadata={"model_provider": "openai"},
    )
    shot = result(
        "a",
        [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}],
        additional_kwargs={"type": "computer_call_output"},
    )
    talk = [HumanMessage("hi"), asked, shot, AIMessage("done")]
    assert repair(talk, OPENAI).messages is talk
    assert [message.type for message in repair([talk[0], asked, talk[3]], OPENAI).messages] == [
        "human",
        "ai",
    ]
    assert [message.type for message in repair(talk, ANTHROPIC).messages] == ["human", "ai"]


# -- forms -----------------------------------------------------------------------------------------


def test_a_chat_message_is_the_message_of_its_role() -> None:
    sent = repair([ChatMessage("hi", role="user"), ChatMessage("so", role="assistant")]).messages
    assert [message.type for message in sent] == ["human", "ai"]
    assert (openai_problems(sent), anthropic_problems(sent)) == ([], [])


def test_anthropics_own_blocks_become_calls_and_results() -> None:
    asked = AIMessage([{"type": "tool_use", "id": "a", "name": "look", "input": {"n": 1}}])
    answer = HumanMessage(
        [
            {"type": "tool_result", "tool_use_id": "a", "content": "found"},
            {"type": "text", "text": "and now?"},
        ]
    )
    sent = repair([HumanMessage("hi"), asked, answer]).messages
    assert [message.type for message in sent] == ["human", "ai", "tool", "human"]
    assert (openai_problems(sent), anthropic_problems(sent)) == ([], [])


# -- contents --------------------------------------------------------------------------------------


def test_empty_messages_are_dropped_but_the_users() -> None:
    repaired = repair(
        [
            SystemMessage(""),
            HumanMessage("hi"),
            AIMessage(""),
            HumanMessage(" "),
            AIMessage([]),
            call("a", content="\n"),
            result("a", ""),
        ]
    )
    assert [message.content for message in repaired.messages] == ["hi", EMPTY, "", ""]
    assert (repaired.dropped, repaired.mended) == (3, 2)


def test_what_a_tool_found_is_its_result_though_it_is_blank() -> None:
    talk = [HumanMessage("hi"), call("a", "b"), result("a", "\n"), result("b", ""), AIMessage("so")]
    assert repair(talk).messages is talk
    assert repair([*talk[:2], result("a", [" "]), result("b", [])]).messages[2:] == [
        result("a", ""),
        result("b", ""),
    ]


def test_what_nobody_said_says_so() -> None:
    made = [
        message
        for message in repair([call("a"), HumanMessage("hi")], MISTRAL).messages
        if is_inserted(vars(message))
    ]
    assert [message.content for message in made] == [
        OPENING,
        NO_RESULT.format(name="look"),
        UNANSWERED,
    ]


def test_a_refusal_and_a_spoken_answer_are_what_an_empty_answer_says() -> None:
    talk = [
        HumanMessage("hi"),
        AIMessage("", additional_kwargs={"refusal": "No."}),
        HumanMessage("speak"),
    ]
    spoken = AIMessage("", additional_kwargs={"audio": {"id": "x", "transcript": "Yes."}})
    assert [message.text for message in repair([*talk, spoken]).messages] == [
        "hi",
        "No.",
        "speak",
        "Yes.",
    ]


def test_a_picture_leaves_a_note_where_it_cannot_be_sent() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    talk = [HumanMessage("hi"), call("a"), result("a", [image]), AIMessage("seen")]
    assert repair(talk).messages[2].content == [
        {"type": "text", "text": "[image, image/png, 3 bytes]"}
    ]
    assert repair(talk, ANTHROPIC).messages is talk
    assert repair([HumanMessage([image]), AIMessage("seen")]).mended == 0


def test_thoughts_of_others_and_those_that_are_not_whole_are_left_out() -> None:
    whole = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    cut = {"type": "thinking", "thinking": "h"}
    said = {"type": "text", "text": "So."}
    talk = [HumanMessage("hi"), AIMessage([whole, cut, said, whole])]
    assert repair(talk, ANTHROPIC).messages[1].content == [whole, said]
    own = AIMessage(
        [whole, {"type": "redacted_thinking", "data": "x"}, said],
        response_metadata={"model_provider": "anthropic"},
    )
    assert repair([HumanMessage("hi"), own], ANTHROPIC).mended == 0
    assert repair([HumanMessage("hi"), own], OPENAI).messages[1].content == [whole, said]


# -- order -----------------------------------------------------------------------------------------


def test_the_user_speaks_first_and_system_messages_stand_before_all() -> None:
    repaired = repair(
        [
            AIMessage("Hello!"),
            HumanMessage("hi"),
            SystemMessage("be kind"),
            AIMessage("Good day. \n"),
        ]
    )
    assert [message.content for message in repaired.messages] == [
        "be kind",
        OPENING,
        "Hello!",
        "hi",
        "Good day.",
    ]
    assert (repaired.added, repaired.dropped, repaired.moved, repaired.mended) == (1, 0, 1, 1)
    assert repair([AIMessage("Hello!"), SystemMessage("be kind")], OPENAI).mended == 0


def test_where_roles_alternate_neighbours_become_one_message() -> None:
    talk = [
        HumanMessage("hi", id="1"),
        HumanMessage([{"type": "text", "text": "there"}], id="2"),
        AIMessage("a"),
        call("x", content="b"),
        result("x"),
    ]
    repaired = repair([*talk, HumanMessage("and?")], MISTRAL)
    assert [message.type for message in repaired.messages] == ["human", "ai", "tool", "ai", "human"]
    assert repaired.messages[0].content == [
        {"type": "text", "text": "hi"},
        {"type": "text", "text": "there"},
    ]
    assert (
        repaired.messages[0].id,
        repaired.messages[1].content,
        repaired.messages[3].content,
    ) == ("1", "a\n\nb", UNANSWERED)
    assert repair(talk, ANTHROPIC).messages is talk


def test_what_is_joined_to_a_users_message_leaves_it_the_users() -> None:
    summary = HumanMessage(
        "Before: much.", id="s", additional_kwargs={"langmem_ext": {"context": "summary"}}
    )
    for talk in ([summary, HumanMessage("hi", id="1")], [HumanMessage("hi", id="1"), summary]):
        [joined] = repair(talk, GOOGLE).messages
        assert (joined.id, is_inserted(vars(joined))) == ("1", False)


def test_nothing_stays_nothing_and_a_request_is_never_empty() -> None:
    assert repair([]).messages == []
    assert [message.content for message in repair([AIMessage("")], OPENAI).messages] == [OPENING]


# -- providers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("openai", OPENAI),
        ("azure_openai", OPENAI),
        ("anthropic:claude-sonnet-4-5", ANTHROPIC),
        ("google_anthropic_vertex", ANTHROPIC),
        ("google_genai", GOOGLE),
        ("mistralai", MISTRAL),
        ("llama-cpp", LLAMA),
        ("somebody", OTHER),
        (None, BOTH),
    ],
)
def test_rules_are_found_by_what_langchain_calls_a_provider(
    name: str | None, rules: ProviderRules
) -> None:
    assert rules_for(name) is rules
