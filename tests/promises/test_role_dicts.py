"""Role dicts, pairs and texts in a graph's messages are messages to read, and stay as they are."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from langmem_ext import DeltaSaver, Threads, aconverse, converse, examine, stats

CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "look_up", "arguments": '{"order": "O-1"}'},
}
FORMS: list[Any] = [
    {"role": "user", "content": "Where is my order?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "shipped", "tool_call_id": "c1"},
    {"content": "It is on its way.", "role": "assistant", "note": 7},
    ("user", "Thank you " * 20),
    "And the other one?",
    {
        "role": "user",
        "content": ["A zebra", {"type": "text", "text": "."}],
    },
    AIMessage("Which one?", id="m1"),
    HumanMessage("The zebra.", id="m2"),
]


class State(TypedDict):
    messages: Annotated[list[Any], operator.add]


def graph(saver: Any, *answers: Any) -> Any:
    builder = StateGraph(State).add_node("answer", lambda _: {"messages": list(answers)})
    return builder.add_edge(START, "answer").compile(checkpointer=saver)


def config(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def test_they_are_read_as_messages_everywhere(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        threads = Threads(saver)
        threads.enable_search()
        graph(saver, *FORMS[1:]).invoke({"messages": FORMS[:1]}, config("t"))
        found = threads.get("t")
        assert (found.title, found.messages) == ("Where is my order?", len(FORMS))
        assert threads.search("shipped")
        assert threads.search("zebra")
        page = "".join(threads.export_lines("t", format="markdown"))
        assert "Call of look_up" in page
        assert "It is on its way." in page
        messages = threads.messages("t")
        assert [message.type for message in messages] == [
            *("human", "ai", "tool", "ai", "human", "human", "human", "ai", "human")
        ]
        assert isinstance(messages[1], AIMessage)
        assert isinstance(messages[2], ToolMessage)
        assert messages[1].tool_calls[0]["args"] == {"order": "O-1"}
        assert [turn.reply for turn in threads.turns("t")][:2] == ["It is on its way.", ""]
    assert examine(url).findings == ()


def test_the_graph_gets_back_what_it_put(url: str) -> None:
    read = []
    for saver in (InMemorySaver(), DeltaSaver.open(url)):
        app = graph(saver, *FORMS[3:])
        app.invoke({"messages": FORMS[:2]}, config("t"))
        app.invoke({"messages": FORMS[2:3]}, config("t"))
        read.append([state.values.get("messages") for state in app.get_state_history(config("t"))])
    assert read[0] == read[1]
    assert [*map(type, read[0][0])] == [*map(type, read[1][0])]
    assert list(read[1][0][0]) == ["role", "content"]
    with DeltaSaver.open(url) as again:
        state = graph(again).get_state(config("t"))
        assert state.values["messages"] == read[0][0]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    "answer",
    [
        {"role": "assistant", "content": "It is on its way."},
        ("assistant", "It is on its way."),
        {"role": "assistant", "content": [{"type": "text", "text": "It is on its way."}]},
    ],
)
async def test_what_the_graph_answers_is_the_reply(answer: Any, is_async: bool) -> None:
    app = graph(DeltaSaver(), answer)
    turn = (
        await aconverse(app, "Hello?", thread_id="t")
        if is_async
        else converse(app, "Hello?", thread_id="t")
    )
    assert turn.reply == "It is on its way."


def test_each_is_stored_once() -> None:
    saver = DeltaSaver()
    app = graph(saver, {"role": "assistant", "content": "It is on its way. " * 40})
    for number in range(40):
        app.invoke({"messages": [{"role": "user", "content": f"Where is {number}?"}]}, config("t"))
    assert Threads(saver).get("t").messages == 80
    assert stats(saver).messages == 41  # the answer is the same each time


def test_a_thread_of_them_is_forked_exported_and_imported(tmp_path: Path) -> None:
    saver, other = DeltaSaver(), DeltaSaver()
    app, threads = graph(saver, *FORMS[1:]), Threads(saver)
    app.invoke({"messages": FORMS[:1]}, config("t"))
    put = app.get_state(config("t")).values
    threads.fork("t", to="fork")
    assert app.get_state(config("fork")).values == put
    threads.export_to(tmp_path / "t.jsonl", "t")
    Threads(other).import_from(tmp_path / "t.jsonl", keep_ids=True)
    assert graph(other).get_state(config("t")).values == put


@given(
    st.lists(
        st.one_of(
            st.sampled_from(FORMS),
            st.integers(-9, 9),
            st.none(),
            st.text(max_size=3),
            st.dictionaries(st.sampled_from(["role", "content", "x"]), st.text(max_size=2)),
            st.lists(st.text(max_size=2), max_size=3),
        ),
        max_size=4,
    )
)
def test_whatever_a_list_holds_is_given_back(values: list[Any]) -> None:
    read = []
    for saver in (InMemorySaver(), DeltaSaver()):
        app = graph(saver)
        app.invoke({"messages": values}, config("t"))
        read.append(app.get_state(config("t")).values)
    assert read[0] == read[1]
