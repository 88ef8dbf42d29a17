"""Promise: a conversation may be cut anywhere but between a call and its result."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    ToolMessageChunk,
)

from langmem_ext import safe_boundaries


def call(*ids: str | None, content: Any = "") -> AIMessage:
    return AIMessage(content, tool_calls=[{"name": "look", "args": {}, "id": name} for name in ids])


def unreadable(name: str) -> AIMessage:
    bad: Any = {"name": "look", "args": "{", "id": name, "error": None}
    return AIMessage("", invalid_tool_calls=[bad])


def block(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "look", "input": {}}


def in_content(*ids: str) -> AIMessage:
    return call(content=[{"type": "text", "text": "so"}, *map(block, ids)])


def result(name: str) -> ToolMessage:
    return ToolMessage("found", tool_call_id=name)


IDS = st.sampled_from(["a", "b", "c", ""])
SPOKEN: st.SearchStrategy[AnyMessage] = st.one_of(
    st.just(HumanMessage("hi")),
    st.just(AIMessage("yes")),
    st.just(SystemMessage("be kind")),
    st.lists(IDS, min_size=1, max_size=3).map(lambda ids: call(*ids)),
    IDS.map(unreadable),
    st.lists(IDS, min_size=1, max_size=2).map(lambda ids: in_content(*ids)),
    IDS.map(result),
    IDS.map(result),
    IDS.map(lambda name: ToolMessageChunk("found", tool_call_id=name)),
)


def asks(message: AnyMessage, name: str) -> bool:
    """Whether a message calls a tool by this id, in whichever form."""
    if not isinstance(message, AIMessage):
        return False
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    blocks = message.content if isinstance(message.content, list) else []
    return name in [call["id"] for call in calls] or block(name) in blocks


@given(st.lists(SPOKEN, max_size=20))
def test_a_cut_may_be_wherever_no_call_stands_before_it_and_its_result_after_it(
    messages: list[AnyMessage],
) -> None:
    parted = []
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            asked = [old for old in range(at) if asks(messages[old], message.tool_call_id)]
            parted += [(asked[-1], at)] if asked else []
    free = [
        place
        for place in range(len(messages) + 1)
        if not any(asked < place <= answered for asked, answered in parted)
    ]
    assert safe_boundaries(messages) == free


def test_calls_stay_with_their_results() -> None:
    hi, more = HumanMessage("hi"), HumanMessage("more")
    for talk, bounds in (
        ([hi, call("a", "b"), result("b"), result("a"), AIMessage("done")], [0, 1, 4, 5]),
        ([hi, call("a"), more], [0, 1, 2, 3]),  # nobody has answered it
        ([call("0"), result("0"), more, call("0"), result("0")], [0, 2, 3, 5]),
        ([unreadable("a"), result("a")], [0, 2]),
        ([in_content("a"), result("a")], [0, 2]),
        ([], [0]),
    ):
        assert safe_boundaries(talk) == bounds
