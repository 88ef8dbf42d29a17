"""Promises of turns: each message is in one turn or apart, in order, calls with results."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langmem_ext.messages.annotations import FileReference
from langmem_ext.messages.turns import cut_turns, first_whole_turn


def call(*ids: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": name} for name in ids])


IDS = st.sampled_from(["a", "b", "c"])
SPOKEN: st.SearchStrategy[AnyMessage] = st.one_of(
    st.just(HumanMessage("hi")),
    st.just(AIMessage("yes")),
    st.just(SystemMessage("be kind")),
    st.lists(IDS, min_size=1, max_size=3).map(lambda ids: call(*ids)),
    IDS.map(lambda name: ToolMessage("found", tool_call_id=name)),
)


def pairs(messages: list[BaseMessage]) -> list[tuple[int, int]]:
    """The position of each result, and its call's: the newest before it with its id."""
    found = []
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            calls = [
                before
                for before in range(at)
                if isinstance(one := messages[before], AIMessage)
                and message.tool_call_id in [call["id"] for call in one.tool_calls]
            ]
            found += [(calls[-1], at)] if calls else []
    return found


@given(st.lists(SPOKEN, max_size=30))
def test_every_message_is_in_one_turn_and_no_tool_pair_is_split(said: list[AnyMessage]) -> None:
    messages: list[BaseMessage] = [
        message.model_copy(update={"id": str(number)}) for number, message in enumerate(said)
    ]
    system, turns = cut_turns(messages)
    spoken = [message for message in messages if not isinstance(message, SystemMessage)]
    assert [message for turn in turns for message in turn.messages] == spoken
    assert list(system) == [message for message in messages if isinstance(message, SystemMessage)]
    assert [turn.number for turn in turns] == list(range(1, len(turns) + 1))
    turn_of = {message.id: turn.number for turn in turns for message in turn.messages}
    for asked, answered in pairs(messages):
        assert turn_of[str(asked)] == turn_of[str(answered)]
    for turn in turns[1:]:
        assert isinstance(turn.messages[0], HumanMessage)
    if not pairs(messages):
        said_by_users = sum(isinstance(message, HumanMessage) for message in messages)
        assert len(turns) == (said_by_users or bool(spoken))


def test_what_stands_before_the_first_prompt_belongs_to_the_first_turn() -> None:
    _, turns = cut_turns(
        [AIMessage("welcome"), HumanMessage("hi"), AIMessage("hello"), HumanMessage("more")]
    )
    assert [[message.content for message in turn.messages] for turn in turns] == [
        ["welcome", "hi", "hello"],
        ["more"],
    ]
    assert [(turn.said, turn.reply) for turn in turns] == [("hi", "welcome\nhello"), ("more", "")]
    _, [only] = cut_turns([AIMessage("welcome")])
    assert only.said == ""
    assert cut_turns([]) == ((), ())


def test_a_prompt_between_a_call_and_its_result_begins_no_turn() -> None:
    said = [
        HumanMessage("look"),
        call("a"),
        HumanMessage("hurry"),
        ToolMessage("found", tool_call_id="a"),
        HumanMessage("thanks"),
    ]
    _, turns = cut_turns(said)
    assert [turn.said for turn in turns] == ["look\nhurry", "thanks"]


def test_a_call_that_was_never_answered_holds_nothing_together() -> None:
    _, turns = cut_turns(
        [
            HumanMessage("look"),
            call("a"),
            HumanMessage("well?"),
            call("a"),
            ToolMessage("found", tool_call_id="a"),
        ]
    )
    assert [turn.said for turn in turns] == ["look", "well?"]


def test_a_turn_knows_its_tool_and_its_files() -> None:
    def noted(**notes: Any) -> dict[str, Any]:
        return {"langmem_ext": notes}

    files = [
        {"path": "a.py", "sha256": "00", "block": 1},
        {"path": "b.py"},
        {"path": 5},
        "c.py",
        {"path": "d.py", "sha256": "00", "block": -1},
    ]
    said = HumanMessage(["look", "File a.py"], additional_kwargs=noted(files=files))
    _, [first, second] = cut_turns(
        [said, AIMessage("yes", additional_kwargs=noted(tool="debug")), HumanMessage("and?")]
    )
    assert (first.tool, first.said) == ("debug", "look")
    assert first.files == (
        FileReference("a.py", "00"),
        FileReference("b.py"),
        FileReference("d.py"),
    )
    assert (second.tool, second.files) == (None, ())


@given(st.lists(SPOKEN, max_size=30), st.integers(0, 30))
def test_the_first_whole_turn_of_an_end_begins_where_nothing_is_parted(
    messages: list[BaseMessage], begin: int
) -> None:
    tail = messages[begin:]
    start = first_whole_turn(tail)
    assert start == len(tail) or isinstance(tail[start], HumanMessage)
    starts = [at for at, message in enumerate(tail) if isinstance(message, HumanMessage)]
    answered = {result: asked for asked, result in pairs(tail)}
    results = [at for at, message in enumerate(tail) if isinstance(message, ToolMessage)]
    whole = [
        at
        for at in starts
        if all(result < at or answered.get(result, -1) >= at for result in results)
    ]
    assert start == next(iter(whole), len(tail))
