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

from langmem_ext import (
    ConversationTurn,
    DeltaSaver,
    FileReference,
    ThreadChatMessageHistory,
    Threads,
    safe_boundaries,
)


def turns_of(*messages: BaseMessage) -> list[ConversationTurn]:
    with DeltaSaver() as saver:
        ThreadChatMessageHistory("t", saver).add_messages(messages)
        return list(Threads(saver, max_turns=0).turns("t"))


def call(*ids: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": name} for name in ids])


def found(name: str) -> ToolMessage:
    return ToolMessage("found", tool_call_id=name)


IDS = st.sampled_from(["a", "b", "c"])
SPOKEN: st.SearchStrategy[AnyMessage] = st.one_of(
    st.just(HumanMessage("hi")),
    st.just(AIMessage("yes")),
    st.just(SystemMessage("be kind")),
    st.lists(IDS, min_size=1, max_size=3).map(lambda ids: call(*ids)),
    IDS.map(found),
)


@given(st.lists(SPOKEN, min_size=1, max_size=30))
def test_every_message_is_in_one_turn_and_no_tool_pair_is_split(said: list[AnyMessage]) -> None:
    messages = [one.model_copy(update={"id": str(number)}) for number, one in enumerate(said)]
    turns = turns_of(*messages)
    spoken = [message for message in messages if not isinstance(message, SystemMessage)]
    assert [message for turn in turns for message in turn.messages] == spoken
    assert [turn.number for turn in turns] == list(range(1, len(turns) + 1))
    starts = [at for at in safe_boundaries(spoken)[1:-1] if isinstance(spoken[at], HumanMessage)]
    first = next((at for at, one in enumerate(spoken) if isinstance(one, HumanMessage)), 0)
    begun = [spoken[at].id for at in starts if at > first]
    assert [turn.messages[0].id for turn in turns[1:]] == begun


def test_a_turn_begins_where_the_user_speaks_but_between_no_call_and_its_result() -> None:
    first, second = turns_of(
        AIMessage("welcome"), HumanMessage("hi"), AIMessage("hello"), HumanMessage("more")
    )
    assert [message.content for message in first.messages] == ["welcome", "hi", "hello"]
    assert [(turn.said, turn.reply) for turn in (first, second)] == [
        ("hi", "welcome\nhello"),
        ("more", ""),
    ]
    [only] = turns_of(AIMessage("welcome"))
    assert only.said == ""
    look, hurry, thanks = (HumanMessage(text) for text in ("look", "hurry", "thanks"))
    said = [turn.said for turn in turns_of(look, call("a"), hurry, found("a"), thanks)]
    assert said == ["look\nhurry", "thanks"]
    said = [turn.said for turn in turns_of(look, call("a"), hurry, call("a"), found("a"))]
    assert said == ["look", "hurry"], "a call that was never answered holds nothing together"


def test_a_turn_knows_its_tool_and_its_files() -> None:
    def noted(**notes: Any) -> dict[str, Any]:
        return {"langmem_ext": notes}

    files = [
        *({"path": "a.py", "sha256": "00", "block": 1}, {"path": "b.py"}, {"path": 5}, "c.py"),
        {"path": "d.py", "sha256": "00", "block": -1},
    ]
    said = HumanMessage(["look", "File a.py"], additional_kwargs=noted(files=files))
    answer = AIMessage("yes", additional_kwargs=noted(tool="debug"))
    first, second = turns_of(said, answer, HumanMessage("and?"))
    assert (first.tool, first.said) == ("debug", "look")
    named = (FileReference("a.py", "00"), FileReference("b.py"), FileReference("d.py"))
    assert (first.files, second.tool, second.files) == (named, None, ())
