"""Words are words wherever LangChain keeps them: found, shown, in titles, replies, summaries.

Role dicts, pairs and texts in a graph's messages are messages to read, and stay as they are.
"""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState
from savers import Calls
from scripted_model import scripted
from small_graphs import chain, config, saying
from typing_extensions import TypedDict

import langmem_ext as lm

DATA = yaml.safe_load(Path(__file__).with_name("words.yaml").read_text("utf-8"))
BLOCKS: dict[str, dict[str, Any]] = DATA["blocks"]
ANSWERS = {name: AIMessage(**given) for name, given in DATA["answers"].items()}
SAID: dict[str, BaseMessage] = {
    **{name: HumanMessage([block]) for name, block in BLOCKS.items()},
    **ANSWERS,
}
*FIRST, LAST = DATA["role dicts"]
FORMS: list[Any] = [
    *FIRST,
    ("user", "Thank you " * 20),
    "And the other one?",
    LAST,
    AIMessage("Which one?", id="m1"),
    HumanMessage("The zebra.", id="m2"),
]


class State(TypedDict):
    messages: Annotated[list[Any], operator.add]


@pytest.fixture
def threads(saver: lm.DeltaSaver) -> lm.Threads:
    """Threads that can be searched."""
    threads = lm.Threads(saver)
    threads.enable_search()
    return threads


def test_they_are_found_shown_and_read_back_as_they_were(
    saver: lm.DeltaSaver, threads: lm.Threads
) -> None:
    graph = chain(saying(), saver=saver)
    for name, message in SAID.items():
        graph.invoke({"messages": [message]}, config(name))
        assert threads.search("zebra", thread=name), name
        assert "zebra" in "".join(threads.export_lines(name, format="markdown")), name
        [stored] = graph.get_state(config(name)).values["messages"]
        assert stored.content == message.content
        assert stored.additional_kwargs == message.additional_kwargs
        if isinstance(message, HumanMessage):
            assert "zebra" in (threads.get(name).title or ""), name
            assert "zebra" in threads.turns(name)[0].said, name
    assert lm.examine(saver).findings == ()


def test_words_of_different_blocks_are_different_words(
    saver: lm.DeltaSaver, threads: lm.Threads
) -> None:
    blocks = [{"type": "text", "text": "Look at this"}, BLOCKS["a document"], "and answer"]
    chain(saying(), saver=saver).invoke({"messages": [HumanMessage(blocks)]}, config())
    assert threads.search("zebra")
    assert threads.get("t").title == "Look at this zebra and answer"


# -- replies ---------------------------------------------------------------------------------------


@tool(return_direct=True)
def opening_hours() -> str:
    """When the shop is open."""
    return "Open from 9 to 5."


@tool
def look_up() -> str:
    """Look something up."""
    return "a row"


def calling(name: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": {}, "id": name}])


REPLIES: list[tuple[Any, Any]] = [
    *((MessagesState, answer) for answer in ANSWERS.values()),
    (MessagesState, AIMessage(**DATA["beside no words"])),
    (State, {"role": "assistant", "content": "zebra"}),
    (State, ("assistant", "zebra")),
    (State, {"role": "assistant", "content": [BLOCKS["text"]]}),
]


async def test_a_reply_says_what_the_user_is_to_read(calls: Calls) -> None:
    for state, answer in REPLIES:
        saver = lm.DeltaSaver()
        graph = chain(saying(answer), saver=saver, state=state)
        turn = await calls.call(lm, "converse", graph, "Hello", thread_id="t")
        assert turn.reply == "zebra", answer
        assert lm.Threads(saver).turns("t")[0].reply == "zebra", answer


def test_a_result_that_ends_the_turn_is_its_reply_and_no_other() -> None:
    saver = lm.DeltaSaver()
    for thread, reply, *answers in (
        ("t", "Open from 9 to 5.", calling("look_up"), calling("opening_hours")),
        ("u", "There.", calling("look_up"), AIMessage("There.")),
    ):
        said = iter(answers)
        model = scripted(lambda _, said=said: next(said))  # type: ignore[misc]
        agent = create_agent(model, [look_up, opening_hours], checkpointer=saver)
        assert lm.converse(agent, "When?", thread_id=thread).reply == reply
        assert [turn.reply for turn in lm.Threads(saver).turns(thread)] == [reply]


# -- summaries, and what is sensitive --------------------------------------------------------------


def test_a_summarising_model_is_told_them() -> None:
    policy = lm.ContextPolicy(strategy="summary", keep_recent_messages=0, floor=0.1, target=0.3)
    for name, said in SAID.items():
        model = scripted(lambda _: "They spoke.")
        governor = lm.ContextGovernor(
            budget=700, model=model, counter=lm.ApproximateCounter(), policy=policy
        )
        long = [HumanMessage("First."), said, *(AIMessage("words " * 200) for _ in range(4))]
        governor.govern([*long, HumanMessage("And now?")])
        told = [str(message.content) for asked in model.asked for message in asked]
        assert "zebra" in "".join(told), name


@given(st.permutations([*BLOCKS.values()]), st.integers(0, len(BLOCKS)))
def test_what_is_marked_is_hidden_among_other_blocks(
    blocks: list[dict[str, Any]], count: int
) -> None:
    pin = {"type": "text-plain", "text": "my pin is 1234"}
    message = lm.mark_sensitive(
        HumanMessage([*blocks[:count], pin, *blocks[count:]]), {"pin": "1234"}
    )
    saver = lm.DeltaSaver()
    threads = lm.Threads(saver)
    threads.enable_search()
    chain(saying(), saver=saver).invoke({"messages": [message]}, config())
    page = "".join(threads.export_lines("t", format="markdown")).partition("## ")[2]
    assert "1234" not in page + (threads.get("t").title or "")
    assert (page.count("zebra"), "my pin is •••" in page) == (len(BLOCKS), True)
    assert not threads.search("1234")


# -- role dicts, pairs and texts -------------------------------------------------------------------


def graph(saver: Any, *answers: Any) -> Any:
    return chain(saying(*answers), saver=saver, state=State)


def test_role_dicts_are_read_as_messages_everywhere(
    saver: lm.DeltaSaver, threads: lm.Threads
) -> None:
    graph(saver, *FORMS[1:]).invoke({"messages": FORMS[:1]}, config())
    found = threads.get("t")
    assert (found.title, found.messages) == ("Where is my order?", len(FORMS))
    assert threads.search("shipped")
    assert threads.search("zebra")
    page = "".join(threads.export_lines("t", format="markdown"))
    assert "Call of look_up" in page
    assert "It is on its way." in page
    messages = threads.messages("t")
    types = "human ai tool ai human human human ai human"
    assert " ".join(message.type for message in messages) == types
    assert isinstance(messages[1], AIMessage)
    assert isinstance(messages[2], ToolMessage)
    assert messages[1].tool_calls[0]["args"] == {"order": "O-1"}
    assert [turn.reply for turn in threads.turns("t")][:2] == ["It is on its way.", ""]
    assert lm.examine(saver).findings == ()


def test_the_graph_gets_back_what_it_put(url: str, saver: lm.DeltaSaver) -> None:
    read = []
    for one in (InMemorySaver(), saver):
        app = graph(one, *FORMS[3:])
        app.invoke({"messages": FORMS[:2]}, config())
        app.invoke({"messages": FORMS[2:3]}, config())
        read.append([state.values.get("messages") for state in app.get_state_history(config())])
    assert read[0] == read[1]
    assert [*map(type, read[0][0])] == [*map(type, read[1][0])]
    assert list(read[1][0][0]) == ["role", "content"]
    with lm.DeltaSaver.open(url) as again:
        state = graph(again).get_state(config())
        assert state.values["messages"] == read[0][0]


def test_each_role_dict_is_stored_once() -> None:
    saver = lm.DeltaSaver()
    app = graph(saver, {"role": "assistant", "content": "It is on its way. " * 40})
    for number in range(40):
        app.invoke({"messages": [{"role": "user", "content": f"Where is {number}?"}]}, config())
    assert lm.Threads(saver).get("t").messages == 80
    assert lm.stats(saver).messages == 41  # the answer is the same each time


def test_a_thread_of_role_dicts_is_forked_exported_and_imported(tmp_path: Path) -> None:
    saver, other = lm.DeltaSaver(), lm.DeltaSaver()
    app, threads = graph(saver, *FORMS[1:]), lm.Threads(saver)
    app.invoke({"messages": FORMS[:1]}, config())
    put = app.get_state(config()).values
    threads.fork("t", to="fork")
    assert app.get_state(config("fork")).values == put
    threads.export_to(tmp_path / "t.jsonl", "t")
    lm.Threads(other).import_from(tmp_path / "t.jsonl", keep_ids=True)
    assert graph(other).get_state(config()).values == put


ANYTHING = st.one_of(
    *(st.sampled_from(FORMS), st.integers(-9, 9), st.none(), st.text(max_size=3)),
    st.dictionaries(st.sampled_from(["role", "content", "x"]), st.text(max_size=2)),
    st.lists(st.text(max_size=2), max_size=3),
)


@given(st.lists(ANYTHING, max_size=4))
def test_whatever_a_list_holds_is_given_back(values: list[Any]) -> None:
    read = []
    for saver in (InMemorySaver(), lm.DeltaSaver()):
        app = graph(saver)
        app.invoke({"messages": values}, config())
        read.append(app.get_state(config()).values)
    assert read[0] == read[1]
