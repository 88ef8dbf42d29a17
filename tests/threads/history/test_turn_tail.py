"""Promises of the newest turns: they are what reading everything would give, however
many write at once.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from savers import Backend, brief_saver

from langmem_ext import (
    DeltaSaver,
    MessageLog,
    ThreadChatMessageHistory,
    Threads,
    TurnFile,
    TurnLimitReached,
)


class OwnHumanMessage(HumanMessage):
    """A message of an application's own class, whose row does not show what it is."""


def call(*ids: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": name} for name in ids])


IDS = st.sampled_from(["a", "b", "c", "d"])
SPOKEN: st.SearchStrategy[Any] = st.one_of(
    st.just(HumanMessage("hi")),
    st.just(HumanMessage("and?")),
    st.just(AIMessage("yes")),
    st.sets(IDS, min_size=1, max_size=2).map(lambda ids: call(*sorted(ids))),
    IDS.map(lambda name: ToolMessage("found", tool_call_id=name)),
    st.sampled_from(
        [
            SystemMessage("be kind"),
            ToolMessage("summary", tool_call_id=""),
            call(""),
            ChatMessage("hm", role="critic"),
        ]
    ),
)


@settings(max_examples=12 * settings().max_examples)
@given(
    said=st.lists(SPOKEN, max_size=40),
    replaced=st.sets(st.integers(0, 39), max_size=3),
    count=st.integers(1, 8),
    own=st.booleans(),
    long=st.booleans(),
)
def test_the_newest_turns_are_the_end_of_all_turns(
    said: list[BaseMessage],
    replaced: set[int],
    count: int,
    own: bool,
    long: bool,
    backend: Backend,
    folder: Path,
) -> None:
    said = said * (8 if long else 1)  # more than are read at once
    messages = [one.model_copy(update={"id": str(number)}) for number, one in enumerate(said)]
    if own and messages:
        messages[0] = OwnHumanMessage("mine", id="0")
    with brief_saver(backend, folder) as saver:
        history = ThreadChatMessageHistory("t", saver)
        history.add_messages([HumanMessage("the thread is there", id="x")])
        history.clear()
        history.add_messages(messages)
        for at in sorted(replaced):  # the list is of several pieces then
            if at < len(messages):
                messages[at] = messages[at].model_copy(update={"name": "another"})
                history.add_messages([messages[at]])
        threads = Threads(saver)
        turns = Threads(saver, max_turns=0).turns("t")
        assert threads.turns("t", count) == list(turns[-count:])
        system = [one for one in messages if isinstance(one, SystemMessage)]
        shown = [one for turn in turns[-count:] for one in turn.messages]
        assert threads.continue_("t").history(count) == [*system, *shown]


def test_with_a_serializer_of_ones_own_and_compressed_the_same_is_found(
    durable: Backend, tmp_path: Path
) -> None:
    content = "\n".join(f"line {number}" for number in range(200))
    for options in ({"serde": JsonPlusSerializer()}, {"compress": True}):
        with DeltaSaver.open(durable.new_url(tmp_path), **options) as saver:
            thread = Threads(saver, max_turns=2).begin("chat")
            for number in range(4):
                thread.say(f"question {number}", files=[TurnFile("a.py", content)])
            turns = [(turn.number, turn.said) for turn in thread.turns()]
            assert turns == [(3, "question 2"), (4, "question 3")]
            first, second = thread.history()
            assert "line 199" in first.text
            assert "line 199" not in second.text
            assert "line 199" not in Threads(saver).messages(thread.id)[2].text


# -- in one transaction with what is stored --------------------------------------------------------


def at_once(count: int, do: Any) -> list[Any]:
    """What several threads get that do something at the same moment: its result, or its error."""
    begin = threading.Barrier(count)

    def run(number: int) -> Any:
        begin.wait()
        try:
            return do(number)
        except TurnLimitReached as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@pytest.mark.parametrize("how", ["say", "add"])
def test_however_many_speak_at_once_there_are_no_more_turns_than_there_may_be(
    url: str, how: str
) -> None:
    logs = [MessageLog.open(url, synchronous="normal") for _ in range(4)]
    first = Threads(logs[0]).begin("chat")
    first.say("first")
    tools = [
        Threads(log, max_turns=3, on_limit="error").continue_(first.id, tool=f"tool{number}")
        for number, log in enumerate(logs)
    ]

    def speak(number: int) -> None:
        for again in range(3):
            (
                tools[number].say(f"{number} {again}")
                if how == "say"
                else tools[number].add(HumanMessage(f"{number} {again}"))
            )

    found = at_once(4, speak)
    assert all(isinstance(one, TurnLimitReached) for one in found)
    assert len(Threads(logs[0], max_turns=None).turns(first.id)) == 3
    for log in logs:
        log.close()


def test_a_content_that_several_send_at_once_is_stored_once(url: str) -> None:
    logs = [MessageLog.open(url, synchronous="normal") for _ in range(4)]
    first = Threads(logs[0]).begin("chat")
    first.say("hello")
    at_once(
        4,
        lambda number: (
            Threads(logs[number])
            .continue_(first.id)
            .say("look", files=[TurnFile(f"{number}.py", "the content")])
        ),
    )
    messages = Threads(logs[0]).messages(first.id)
    assert (
        sum("the content" in message.text.replace("the same content", "") for message in messages)
        == 1
    )
    for log in logs:
        log.close()


def test_what_is_added_between_a_call_and_its_result_is_no_turn_more(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        thread = Threads(saver, max_turns=1, on_limit="error").begin("chat")
        thread.add(AIMessage("welcome"))
        thread.say("hello")
        thread.add(call("c1"), HumanMessage("hurry"), ToolMessage("found", tool_call_id="c1"))
        thread.answer("done")
        with pytest.raises(TurnLimitReached, match="has 1 turns, the maximum is 1"):
            thread.add(AIMessage("by the way"), HumanMessage("a new one"))
        assert len(thread.history()) == 6, "nothing of it is stored"
