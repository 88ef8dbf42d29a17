"""Promises of the newest turns: they are what reading everything would give, and no others are read
for them.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
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
from langmem_ext.messages.turns import cut_turns
from langmem_ext.storage.threads import turns as turn_ops
from langmem_ext.threads.continuation.files import complete, contents_in, message_content

LONG = 400


class OwnHumanMessage(HumanMessage):
    """A message of an application's own class, whose row does not show what it is."""


def call(*ids: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": name} for name in ids])


IDS = st.sampled_from(["a", "b", "c", "d"])
USER, ASKED = (
    st.just(HumanMessage("hi")),
    st.sets(IDS, min_size=1, max_size=2).map(lambda ids: call(*sorted(ids))),
)
SPOKEN: st.SearchStrategy[Any] = st.one_of(
    USER,
    USER,
    st.just(AIMessage("yes")),
    ASKED,
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
FILES = st.lists(
    st.sampled_from([TurnFile("a.py", "one"), TurnFile("b.py", "one"), TurnFile("a.py", "two")]),
    max_size=2,
)


def with_files(said: list[Any]) -> list[BaseMessage]:
    """The messages with ids; in place of a list of files, a user's message that refers to them."""
    messages: list[BaseMessage] = []
    for number, one in enumerate(said):
        if isinstance(one, list):
            content, notes = message_content("look", one, contents_in(messages))
            one = HumanMessage(
                content, additional_kwargs={"langmem_ext": {"files": notes}} if notes else {}
            )
        messages.append(one.model_copy(update={"id": str(number)}))
    return messages


@settings(max_examples=12 * settings().max_examples)
@given(
    said=st.lists(st.one_of(SPOKEN, FILES), max_size=40),
    replaced=st.sets(st.integers(0, 39), max_size=3),
    count=st.integers(1, 8),
    page=st.integers(1, 5),
    near=st.integers(0, 3),
    own=st.booleans(),
)
def test_the_newest_turns_are_what_reading_everything_gives(
    said: list[Any],
    replaced: set[int],
    count: int,
    page: int,
    near: int,
    own: bool,
    backend: Backend,
    folder: Path,
) -> None:
    messages = with_files(said)
    if own and messages:
        messages[0] = OwnHumanMessage("mine", id="0")
    with brief_saver(backend, folder) as saver, pytest.MonkeyPatch.context() as patch:
        patch.setattr(turn_ops, "PAGE", page)
        patch.setattr(turn_ops, "NEAR", near)
        history = ThreadChatMessageHistory("t", saver)
        history.add_messages([HumanMessage("the thread is there", id="x")])
        history.clear()
        history.add_messages(messages)
        for at in sorted(replaced):  # the list is of several pieces then
            if at < len(messages):
                messages[at] = messages[at].model_copy(update={"name": "another"})
                history.add_messages([messages[at]])
        system, turns = cut_turns(messages)
        threads = Threads(saver)
        assert threads.turns("t", count) == list(turns[-count:])
        shown, left_out = turns[-count:], turns[:-count]
        expected = complete(
            [one for turn in shown for one in turn.messages],
            [one for turn in left_out for one in turn.messages],
        )
        assert threads.continue_("t").history(count) == [*system, *expected]


@pytest.fixture
def spoken(url: str) -> str:
    """A thread of many turns, each with a call of a tool."""
    with closing(MessageLog.open(url, synchronous="normal")) as log:
        messages: list[BaseMessage] = [SystemMessage("be kind")]
        for number in range(LONG):
            messages += [
                HumanMessage(f"question {number}"),
                call(f"c{number}"),
                ToolMessage("found", tool_call_id=f"c{number}"),
            ]
        messages.append(AIMessage("so it is"))
        ThreadChatMessageHistory("t", log).add_messages(messages)
    return url


def read(log: MessageLog) -> int:
    """How many messages the log has read and remembers."""
    return sum(len(cache.content) for cache in log.caches._caches.values())


@pytest.mark.parametrize(
    ("most", "do"),
    [
        (13, lambda thread: thread.history(4)),
        (
            13 + LONG,
            lambda thread: thread.turns(4),
        ),  # the number of a turn is told by the calls before it
    ],
)
def test_no_other_turn_is_read(spoken: str, most: int, do: Any) -> None:
    with closing(MessageLog.open(spoken)) as log:
        found = do(Threads(log).continue_("t"))
        assert "question 399" in repr(found)
        assert "question 395" not in repr(found)
        assert read(log) <= most + 1


def test_with_a_serializer_of_ones_own_all_is_read_and_the_same_is_found(url: str) -> None:
    with DeltaSaver.open(url, serde=JsonPlusSerializer()) as saver:
        thread = Threads(saver, max_turns=2).begin("chat")
        for number in range(4):
            thread.say(f"question {number}", files=[TurnFile("a.py", "one")])
        assert [(turn.number, turn.said) for turn in thread.turns()] == [
            (3, "question 2"),
            (4, "question 3"),
        ]
        assert "one" in thread.history()[0].text
        assert "one" not in thread.history()[1].text.partition("the same")[0].partition("File")[2]


def test_what_is_compressed_is_found(url: str) -> None:
    content = "\n".join(f"line {number}" for number in range(200))
    with DeltaSaver.open(url, compress=True) as saver:
        thread = Threads(saver, max_turns=1).begin("chat")
        kwargs = {"langmem_ext": {"note": "the same words again and again, " * 20}}
        message = thread.message("look", files=[TurnFile("a.py", content)])
        notes = {**kwargs["langmem_ext"], **message.additional_kwargs["langmem_ext"]}
        thread.add(message.model_copy(update={"additional_kwargs": {"langmem_ext": notes}}))
        thread.say("again", files=[TurnFile("b.py", content)])
        [shown] = thread.history()
        assert "line 199" in shown.text
        assert "line 199" not in Threads(saver).messages(thread.id)[1].text


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
