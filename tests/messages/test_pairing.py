"""Promise: a conversation may be cut anywhere but between a call and its result."""

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
    ToolMessageChunk,
)

from langmem_ext.messages.pairing import call_ids, latest_round, safe_boundaries


def call(*ids: str | None, content: Any = "") -> AIMessage:
    return AIMessage(content, tool_calls=[{"name": "look", "args": {}, "id": name} for name in ids])


def unreadable(name: str) -> AIMessage:
    return AIMessage(
        "", invalid_tool_calls=[{"name": "look", "args": "{", "id": name, "error": None}]
    )


def block(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "look", "input": {}}


def result(name: str) -> ToolMessage:
    return ToolMessage("found", tool_call_id=name)


IDS = st.sampled_from(["a", "b", "c", ""])
SPOKEN: st.SearchStrategy[AnyMessage] = st.one_of(
    st.just(HumanMessage("hi")),
    st.just(AIMessage("yes")),
    st.just(SystemMessage("be kind")),
    st.lists(IDS, min_size=1, max_size=3).map(lambda ids: call(*ids)),
    IDS.map(unreadable),
    st.lists(IDS, min_size=1, max_size=2).map(
        lambda ids: call(content=[{"type": "text", "text": "so"}, *map(block, ids)])
    ),
    IDS.map(result),
    IDS.map(result),
    IDS.map(lambda name: ToolMessageChunk("found", tool_call_id=name)),
)


def pairs(messages: list[AnyMessage]) -> list[tuple[int, int]]:
    """Each result and the newest call before it that has its id, the slow way."""
    found = []
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            asked = [
                before for before in range(at) if message.tool_call_id in call_ids(messages[before])
            ]
            found += [(asked[-1], at)] if asked else []
    return found


@given(st.lists(SPOKEN, max_size=20))
def test_a_cut_may_be_wherever_no_call_stands_before_it_and_its_result_after_it(
    messages: list[AnyMessage],
) -> None:
    parted = pairs(messages)
    free = [
        place
        for place in range(len(messages) + 1)
        if not any(asked < place <= answered for asked, answered in parted)
    ]
    assert safe_boundaries(messages) == free


@given(st.lists(SPOKEN, max_size=20))
def test_the_latest_round_begins_at_the_last_message_that_calls(messages: list[AnyMessage]) -> None:
    start = latest_round(messages)
    assert start == len(messages) or call_ids(messages[start])
    assert not any(call_ids(message) for message in messages[start + 1 :])


def test_parallel_calls_stay_with_all_of_their_results() -> None:
    talk = [HumanMessage("hi"), call("a", "b"), result("b"), result("a"), AIMessage("done")]
    assert safe_boundaries(talk) == [0, 1, 4, 5]
    assert latest_round(talk) == 1


def test_a_call_that_nobody_answered_holds_nothing_together() -> None:
    talk: list[BaseMessage] = [HumanMessage("hi"), call("a"), HumanMessage("well?")]
    assert safe_boundaries(talk) == [0, 1, 2, 3]
    assert latest_round(talk) == 1
    assert latest_round(talk[:1]) == 1


def test_an_id_that_is_used_again_belongs_to_its_newest_call() -> None:
    assert safe_boundaries(
        [call("0"), result("0"), HumanMessage("more"), call("0"), result("0")]
    ) == [0, 2, 3, 5]


def test_a_call_may_stand_in_the_content_alone_or_be_unreadable() -> None:
    assert call_ids(
        call("a", None, content=[block("a"), block("b"), {"type": "server_tool_use", "id": "s"}])
    ) == ["a", "", "b"]
    assert safe_boundaries([unreadable("a"), result("a")]) == [0, 2]
    assert safe_boundaries([call(content=[block("a")]), result("a")]) == [0, 2]
    assert call_ids(HumanMessage("hi")) == []


def test_no_messages_have_one_boundary() -> None:
    assert safe_boundaries([]) == [0]
    assert latest_round([]) == 0
