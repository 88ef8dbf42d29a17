"""Promise: whatever is said to an agent or a graph that asks, it can be answered afterwards."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import desk
import pytest
from asking import CONFIG, Asking, age, agent, asking
from commands import call
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from savers import Backend, Calls, Mode, Saver

import langmem_ext
from langmem_ext import DeltaSaver, InvalidInput, StaleAnswer, Turn, converse, examine


@pytest.fixture
def saver(backend: Backend, tmp_path: Path) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(backend.new_url(tmp_path)) as saver:
        yield saver


async def say(mode: Mode, graph: Any, text: Any, **given: Any) -> Turn:
    turn: Turn = await Calls(mode).call(
        langmem_ext, "converse", graph, text, thread_id="t", **given
    )
    return turn


def stored(saver: Saver) -> list[Any]:
    """All that is stored of the thread, as LangGraph reads it."""
    return [
        (one.config, one.checkpoint["channel_versions"], one.pending_writes)
        for one in saver.list(CONFIG)
    ]


# -- agents ---------------------------------------------------------------------------------------


async def test_an_agents_tool_call_is_decided_by_converse(saver: DeltaSaver, mode: Mode) -> None:
    graph = agent(saver)
    asked = await say(mode, graph, "pay")
    assert asked.reply.startswith("Tool execution requires approval\n\nTool: pay")
    assert 'Say approve, edit {"amount": …}, reject' in asked.reply
    before = stored(saver)
    with pytest.raises(InvalidInput, match="text, not dict"):
        await say(mode, graph, {"decisions": [{"type": "approve"}]})
    for text in (
        "perhaps",
        '{"decisions": []}',
        'edit {"amount": 1',
        '{"type": "edit", "edited_action": {"name": "steal", "args": {}}}',
    ):
        with pytest.raises(InvalidInput, match="the tool call 'pay' waits for a decision"):
            await say(mode, graph, text)
    assert stored(saver) == before
    assert (await say(mode, graph, "approve")).reply == "paid 5"
    for text, reply in (
        ('{"decisions": [{"type": "approve"}]}', "paid 5"),
        ('edit {"amount": 3}', "paid 3"),
        ("respond: it is paid already", "it is paid already"),
        ("no, too dear", "User rejected the tool call for `pay` with reason: too dear"),
    ):
        await say(mode, graph, "pay")
        assert reply in (await say(mode, graph, text)).reply
    assert examine(saver).ok


@pytest.mark.parametrize("per_call", [False, True])
async def test_several_tool_calls_are_decided_at_once_or_each(
    saver: DeltaSaver, mode: Mode, per_call: bool
) -> None:
    graph = agent(saver, "pay", "refund", **({"interrupt_mode": "per_call"} if per_call else {}))
    waiting = await say(mode, graph, "go")
    assert len(waiting.interrupts) == (2 if per_call else 1)
    with pytest.raises(InvalidInput):
        await say(mode, graph, "perhaps")
    if per_call:
        assert waiting.reply.endswith("(1 more to answer after this.)")
        left = await say(mode, graph, "yes")
        assert "Tool: refund" in left.reply
        assert left.interrupts == waiting.interrupts[1:]
    assert (await say(mode, graph, "yes")).reply == "paid 5; refunded 6"
    waiting = await say(mode, graph, "go")
    decisions = [
        {"type": "edit", "edited_action": {"name": "pay", "args": {"amount": 1}}},
        {"type": "reject", "message": "late"},
    ]
    each = (
        dict(zip((one.id for one in waiting.interrupts), decisions, strict=False))
        if per_call
        else decisions
    )
    reply = (await say(mode, graph, json.dumps(each))).reply
    assert "paid 1" in reply
    assert "with reason: late" in reply


async def test_one_tool_call_of_several_is_decided_and_the_other_waits(
    saver: DeltaSaver, mode: Mode
) -> None:
    graph = agent(saver, "pay", "refund", interrupt_mode="per_call")
    pay, refund = (await say(mode, graph, "go")).interrupts
    left = await say(mode, graph, json.dumps({pay.id: "yes"}))
    assert [one.id for one in left.interrupts] == [refund.id]
    assert (await say(mode, graph, "reject")).reply.startswith("paid 5; User rejected")


async def test_arguments_that_a_tool_does_not_take_are_refused_or_told_to_the_model(
    saver: DeltaSaver, mode: Mode
) -> None:
    graph = agent(saver, interrupt_mode="per_call")
    await say(mode, graph, "pay")
    before = stored(saver)
    with pytest.raises(InvalidInput):
        await say(mode, graph, 'edit {"amount": "much"}')
    assert stored(saver) == before
    assert (await say(mode, graph, 'edit {"amount": 4}')).reply.endswith("paid 4")


@pytest.mark.parametrize("shown_first", [False, True])
async def test_a_thread_that_an_earlier_release_got_stuck_goes_on_with_the_next_decision(
    saver: DeltaSaver, mode: Mode, shown_first: bool
) -> None:
    graph = agent(saver)
    for by_id in (False, True):
        await say(mode, graph, "pay")
        [asked] = graph.get_state(CONFIG).interrupts
        for _ in range(2):
            with pytest.raises(TypeError):
                graph.invoke(Command(resume={asked.id: "approve"} if by_id else "approve"), CONFIG)
        if shown_first:
            assert (await say(mode, graph, "")).interrupts == (asked,)
        with pytest.raises(InvalidInput, match="say approve"):
            await say(mode, graph, "perhaps")
        assert (await say(mode, graph, "yes")).reply == "paid 5"
    assert examine(saver).ok


# -- other graphs ---------------------------------------------------------------------------------


async def test_an_answer_with_which_the_graph_fails_is_taken_back(
    saver: DeltaSaver, mode: Mode
) -> None:
    graph = asking(saver, age)
    assert (await say(mode, graph, "hello")).reply == "How old are you?"
    [asked] = graph.get_state(CONFIG).interrupts
    for _ in range(2):
        with pytest.raises(ValueError, match="forty") as error:
            await say(mode, graph, "forty")
        assert any("the question waits again" in note for note in error.value.__notes__)
        assert graph.get_state(CONFIG).interrupts == (asked,)
        assert graph.get_state(CONFIG).tasks[0].error is None
    assert (await say(mode, graph, "")).reply == "How old are you?"
    await say(mode, graph, "40")
    assert graph.get_state(CONFIG).values["answer"] == 40
    assert examine(saver).ok


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_an_answer_is_taken_back_on_other_savers_and_in_subgraphs_too(kind: str) -> None:
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        saver: Saver = InMemorySaver() if kind == "memory" else SqliteSaver(connection)
        inner = asking(None, age)
        graph = (
            StateGraph(Asking)
            .add_node("inner", inner)
            .add_edge(START, "inner")
            .compile(checkpointer=saver)
        )
        for _ in range(3):
            converse(graph, "hello", thread_id="t")
            with pytest.raises(ValueError, match="forty"):
                converse(graph, "forty", thread_id="t")
            converse(graph, "40", thread_id="t")
            assert graph.get_state(CONFIG).values["answer"] == 40


def test_of_two_answers_only_the_one_that_failed_is_taken_back() -> None:
    graph = asking(
        InMemorySaver(), lambda state: {"answer": interrupt("Name?") + str(int(interrupt("Age?")))}
    )
    for text in ("hello", "Ada "):
        converse(graph, text, thread_id="t")
    with pytest.raises(ValueError, match="forty"):
        converse(graph, "forty", thread_id="t")
    assert converse(graph, "", thread_id="t").reply == "Age?"
    converse(graph, "40", thread_id="t")
    assert graph.get_state(CONFIG).values["answer"] == "Ada 40"


def test_a_node_that_fails_before_its_question_is_run_again_first() -> None:
    tries: list[int] = []

    def node(state: Asking) -> dict[str, Any]:
        tries.append(1)
        if len(tries) == 2:
            raise RuntimeError("no connection")
        return {"answer": interrupt("Name?")}

    graph = asking(InMemorySaver(), node)
    converse(graph, "hello", thread_id="t")
    with pytest.raises(RuntimeError, match="no connection"):
        graph.invoke(Command(resume={graph.get_state(CONFIG).interrupts[0].id: "Ada"}), CONFIG)
    converse(graph, "Eve", thread_id="t")
    assert graph.get_state(CONFIG).values["answer"] == "Eve"


async def test_a_question_is_not_answered_by_a_message_from_before_it(mode: Mode) -> None:
    away = [True]

    def node(state: Asking) -> dict[str, Any]:
        if away and away.pop():
            raise RuntimeError("no connection")
        return {"answer": interrupt("Delete everything?")}

    graph = asking(InMemorySaver(), node)
    with pytest.raises(RuntimeError, match="no connection"):
        await say(mode, graph, "hello")
    with pytest.raises(StaleAnswer, match="another question waits"):
        await say(mode, graph, "yes")
    assert (await say(mode, graph, "")).reply == "Delete everything?"
    await say(mode, graph, "yes")
    assert graph.get_state(CONFIG).values["answer"] == "yes"


def test_a_good_answer_whose_node_failed_is_finished_before_the_next_message() -> None:
    tries: list[int] = []

    def node(state: Asking) -> dict[str, Any]:
        name = interrupt("Name?")
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("no connection")
        return {"messages": [AIMessage(f"Hello {name}")]}

    graph = asking(InMemorySaver(), node)
    converse(graph, "hello", thread_id="t")
    with pytest.raises(RuntimeError, match="no connection"):
        graph.invoke(Command(resume="Ada"), CONFIG)
    assert converse(graph, "more", thread_id="t").reply == "Name?", (
        "the message did not begin a turn of its own"
    )
    assert [message.text for message in graph.get_state(CONFIG).values["messages"]] == [
        "hello",
        "Hello Ada",
        "more",
    ]


class Person(BaseModel):
    name: str
    age: int


@pytest.mark.parametrize("schema", [Person, Person.model_json_schema(), None])
def test_a_question_for_an_object_is_answered_with_json(schema: Any) -> None:
    value: Any = (
        "Who?" if schema else {"question": "Who?", "response_schema": Person.model_json_schema()}
    )

    def node(state: Asking) -> dict[str, Any]:
        person = interrupt(value, response_schema=schema) if schema else interrupt(value)
        return {"answer": Person.model_validate(person).age}

    saver = InMemorySaver()
    graph = asking(saver, node)
    converse(graph, "hello", thread_id="t")
    before = stored(saver)
    for text in ("Ada, 40", '{"name": "Ada"}', '{"name": "Ada", "age": "forty"}', "[]"):
        with pytest.raises(InvalidInput, match="JSON that fits"):
            converse(graph, text, thread_id="t")
    assert stored(saver) == before
    converse(graph, '{"name": "Ada", "age": 40}', thread_id="t")
    assert graph.get_state(CONFIG).values["answer"] == 40


# -- whatever is said -----------------------------------------------------------------------------

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters() | st.just("\0"), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
DECISIONS = st.fixed_dictionaries(
    {"type": st.sampled_from(["approve", "edit", "reject", "respond", "accept", ""])},
    optional={
        "message": JSON,
        "edited_action": st.fixed_dictionaries(
            {"name": st.sampled_from(["pay", "refund", "x"]), "args": JSON | st.just({"amount": 1})}
        ),
    },
)
SAID = (
    st.sampled_from(
        [
            *("approve", "no", "reject: so", "edit {}", 'edit {"amount": "x"}', "respond: so"),
            *("", "/reset", "\0", "\ud800", "cancel"),
        ]
    )
    | st.text(max_size=10)
    | (
        JSON
        | DECISIONS
        | st.lists(DECISIONS, max_size=3)
        | st.fixed_dictionaries({"decisions": st.lists(DECISIONS, max_size=3) | JSON})
    ).map(json.dumps)
)
"""What a person may type."""


# -- from the command line ------------------------------------------------------------------------

GRAPHS = f"""
import sys
sys.path.insert(0, {str(Path(desk.__file__).parent)!r})
from asking import age, agent, asking


def paying(saver):
    return agent(saver)


def aging(saver):
    return asking(saver, age)
"""


def run(folder: Path, place: str, *words: str, given: str | None = None, code: int = 0) -> Any:
    (folder / "graphs_of_others.py").write_text(GRAPHS)
    done = call(
        [*words], environment=os.environ | {"LANGMEM_EXT_DB": place}, folder=folder, given=given
    )
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    return done


def test_a_chat_in_a_pipe_decides_on_tool_calls(folder: Path, place: str) -> None:
    chat = ["chat", "--graph", "graphs_of_others.py:paying", "--thread", "t"]
    done = run(folder, place, *chat, given="pay\nno, too dear\npay\nperhaps\nyes\n", code=1)
    assert [line[:30] for line in done.stdout.splitlines()] == [
        "Tool execution requires approv",
        "User rejected the tool call fo",
        "Tool execution requires approv",
    ]
    assert "this is not an allowed one: say approve, edit" in done.stderr
    done = run(folder, place, *chat, given='{"decisions": [{"type": "approve"}]}\n')
    assert done.stdout == "paid 5\n"
    assert "Tool execution requires approval" in done.stderr, "what waits is shown again"
    run(folder, place, "doctor")


def test_a_chat_in_a_pipe_says_that_a_question_waits_again(folder: Path, place: str) -> None:
    chat = ["chat", "--graph", "graphs_of_others.py:aging", "--thread", "t"]
    done = run(folder, place, *chat, given="hello\nforty\n", code=1)
    assert (
        "ValueError: invalid literal for int() with base 10: 'forty'. The answer was undone, and"
        " the question waits again" in done.stderr
    )
    assert done.stderr.rstrip().endswith("langmem-ext: How old are you?")
    run(folder, place, *chat, given="40\n")


def test_a_stuck_conversation_is_led_back_from_the_command_line(folder: Path, place: str) -> None:
    with closing(DeltaSaver.open(place)) as saver:
        graph = agent(saver)
        graph.invoke({"messages": [("user", "pay")]}, CONFIG)
        with pytest.raises(TypeError):
            graph.invoke(Command(resume="approve"), CONFIG)
    done = run(folder, place, "threads", "rewind", "t")
    assert (done.stdout, "the answers were undone" in done.stderr) == ("t\n", True)
    assert "nothing to rewind" in run(folder, place, "threads", "rewind", "t", code=2).stderr
    assert "thread 'u' not found" in run(folder, place, "threads", "rewind", "u", code=1).stderr
    run(folder, place, "doctor")
    done = run(
        folder,
        place,
        "chat",
        "--graph",
        "graphs_of_others.py:paying",
        "--thread",
        "t",
        given="approve\n",
    )
    assert done.stdout == "paid 5\n"
    with closing(DeltaSaver.open(place)) as saver:
        assert [message.type for message in agent(saver).get_state(CONFIG).values["messages"]] == [
            "human",
            "ai",
            "tool",
            "ai",
        ]
