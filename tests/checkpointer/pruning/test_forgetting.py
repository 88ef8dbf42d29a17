"""Promises of pruning: what stays reads and runs as before, what nothing needs is gone, and a dry
run says exactly what a run does.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from prune_reference import assert_clean, assert_sound, everything, rows
from savers import Calls, Mode

from langmem_ext import (
    ConversationMemory,
    DeltaSaver,
    InvalidInput,
    Pruned,
    ThreadChatMessageHistory,
)


@pytest.fixture
def saver(url: str) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(url) as saver:
        yield saver


def config(thread: str = "t", **configurable: Any) -> Any:
    return {"configurable": {"thread_id": thread, **configurable}}


def chat(saver: Any, *, ask: bool = False) -> Any:
    def answer(state: MessagesState) -> Any:
        given = interrupt("which?") if ask and len(state["messages"]) > 2 else ""
        return {"messages": [("ai", f"answer {len(state['messages'])} {given}")]}

    return (
        StateGraph(MessagesState)
        .add_node("answer", answer)
        .add_edge(START, "answer")
        .compile(checkpointer=saver)
    )


def say(saver: Any, count: int = 3, thread: str = "t", **metadata: Any) -> None:
    for number in range(count):
        chat(saver).invoke(
            {"messages": [HumanMessage(f"question {number}")]},
            {**config(thread), "metadata": metadata},
        )


def texts(saver: Any, thread: str = "t") -> list[str]:
    return [message.text for message in chat(saver).get_state(config(thread)).values["messages"]]


def test_what_was_removed_from_the_conversation_goes_with_the_last_checkpoint_that_held_it(
    saver: DeltaSaver,
) -> None:
    say(saver)
    ConversationMemory(saver).for_session("t").prune(0)
    say(saver, 1)
    assert rows(saver, "SELECT items FROM thread") == [(8,)]
    pruned = saver.prune(["t"])
    assert pruned.items == 6
    assert pruned.bytes > 6 * len("question 0")
    assert (
        rows(saver, "SELECT items FROM thread")
        == rows(saver, "SELECT count(*) FROM item")
        == [(2,)]
    )
    assert rows(saver, "SELECT min([key] & 4294967295) FROM item") == [(6,)], (
        "a number is never given to another message"
    )
    say(saver, 1)
    assert rows(saver, "SELECT max([key] & 4294967295) FROM item") == [(9,)]
    assert_clean(saver)


@pytest.mark.parametrize("run", ["r😀", "\\u0000", "\\\\ud83d", "ü\n"])
def test_a_run_of_any_name_is_found_and_deleted(run: str, saver: DeltaSaver) -> None:
    say(saver, 1, run_id=run, user="bob", pattern="strip \\u0000 and \\ud83d from it")
    say(saver, 1, run_id="other")
    assert (
        len(list(saver.list(config(), filter={"user": "bob"})))
        == len(list(saver.list(config(), filter={"run_id": run})))
        == 3
    )
    saver.delete_for_runs([run])
    assert len(list(saver.list(config()))) == 3
    assert_sound(saver)


async def test_a_step_of_any_size_is_kept_and_found(saver: DeltaSaver, mode: Mode) -> None:
    calls, steps = Calls(mode), (2**63 - 1, -(2**63) + 1, 2**63, -(2**63), 2**64)
    for step in steps:
        await calls.call(
            saver, "put", config(checkpoint_ns=""), empty_checkpoint(), {"step": step}, {}
        )
    assert [found.metadata["step"] for found in await calls.collect(saver, "list", config())] == [
        *reversed(steps)
    ]
    for step in steps:
        assert len(await calls.collect(saver, "list", config(), filter={"step": step})) == 1
    assert await calls.collect(saver, "list", config(), filter={"step": 2**70}) == []


def test_a_channel_that_shares_its_name_with_the_awaited_parameter_may_hold_any_text(
    saver: DeltaSaver,
) -> None:
    class State(TypedDict):
        waiting_for_param: str

    long = "".join(f"{number:04x}" for number in range(5_000))
    graph = (
        StateGraph(State)
        .add_node("wait", lambda state: {})
        .add_edge(START, "wait")
        .compile(checkpointer=saver)
    )
    for text, shown in ((long, None), ("city", "city"), (long, None)):
        graph.invoke({"waiting_for_param": text}, config())
        assert graph.get_state(config()).values == {"waiting_for_param": text}
        assert rows(saver, "SELECT waiting_for FROM thread") == [(shown,)]
        assert_sound(saver)


def test_an_age_may_be_a_duration(saver: DeltaSaver) -> None:
    say(saver)
    assert saver.prune(["t"], older_than=timedelta(hours=1)) == Pruned()
    assert saver.prune(["t"], older_than=timedelta(days=10**6)) == Pruned()
    assert saver.prune(["t"], older_than=timedelta()).checkpoints == 8, "the newest stays"


def test_delete_takes_threads_with_everything_they_have_and_says_how_many(
    saver: DeltaSaver,
) -> None:
    say(saver), say(saver, thread="u"), say(saver, thread="kept")
    told = saver.prune(["t", "u", "missing"], strategy="delete", dry_run=True)
    assert saver.prune(["t", "u", "t", "missing"], strategy="delete") == told
    assert (told.threads, told.checkpoints, told.items) == (
        2,
        18,
        rows(saver, "SELECT count(*) * 2 FROM item")[0][0],
    )
    assert {place[0] for place in everything(saver)} == {"kept"}
    assert_clean(saver)


def test_pending_writes_on_their_way_before_their_checkpoint_stay(saver: DeltaSaver) -> None:
    say(saver)
    pruned = list(saver.list(config()))[-1].config
    saver.prune(["t"])
    ahead = config(checkpoint_ns="", checkpoint_id="ffffffff-ffff-6fff-bfff-ffffffffffff")
    saver.put_writes(ahead, [("messages", AIMessage("early", id="early"))], "task")
    saver.put_writes(pruned, [("messages", AIMessage("late", id="late"))], "task")
    say(saver, 1)
    saver.prune(["t"])
    assert rows(saver, "SELECT text FROM item WHERE text IN ('early', 'late')") == [("early",)]


def test_a_text_that_became_no_message_goes_and_one_that_comes_again_is_stored_again(
    saver: DeltaSaver,
) -> None:
    long = "a long text of an input that a node takes away " * 3
    builder = (
        StateGraph(MessagesState)
        .add_node("drop", lambda state: {"messages": []})
        .add_edge(START, "drop")
    )
    graph = builder.compile(checkpointer=saver)
    graph.update_state(config(), {"messages": [HumanMessage("hi", id="h")]}, as_node="drop")
    saver.put_writes(
        graph.get_state(config()).config,
        [("messages", ("user", long))],
        "00000000-0000-0000-0000-000000000001",
    )
    graph.update_state(config(), {"messages": [AIMessage("there", id="a")]}, as_node="drop")
    assert rows(saver, "SELECT count(*) FROM item WHERE role IS NULL") == [(1,)]
    saver.prune(["t"])
    assert rows(saver, "SELECT text FROM item ORDER BY text") == [("hi",), ("there",)]
    graph.invoke({"messages": [("user", long)]}, config())
    assert texts(saver) == ["hi", "there", long]
    assert_clean(saver)


def test_another_saver_that_remembers_the_thread_goes_on_with_what_is_left(
    saver: DeltaSaver, url: str
) -> None:
    say(saver)
    with DeltaSaver.open(url) as other:
        say(other, 1)
        ThreadChatMessageHistory("t", other).clear()
        say(other, 1)
        saver.prune(["t"])
        other.put_writes(
            chat(other).get_state(config()).config,
            [("messages", HumanMessage("question 1"))],
            "task",
        )
        say(other, 2)
        assert (
            texts(other)
            == texts(saver)
            == ["question 0", "answer 1 ", "question 0", "answer 3 ", "question 1", "answer 5 "]
        )
        assert_clean(other)


@pytest.mark.parametrize(
    "arguments",
    [
        {"strategy": "all"},
        {"strategy": "delete", "keep_last": 1},
        {"strategy": "delete", "older_than": timedelta(1)},
        {"keep_last": 0},
        {"keep_last": True},
        {"keep_last": 1.5},
        {"older_than": timedelta(-1)},
        {"older_than": datetime(2026, 1, 1)},
        {"older_than": 60},
    ],
    ids=str,
)
def test_an_argument_that_cannot_be_used_is_refused_and_changes_nothing(
    saver: DeltaSaver, arguments: Any
) -> None:
    say(saver)
    before = everything(saver)
    with pytest.raises(InvalidInput):
        saver.prune(["t"], **arguments)
    with pytest.raises(InvalidInput):
        saver.prune("t")
    with pytest.raises(InvalidInput):
        saver.prune(["t", ""])
    assert everything(saver) == before


def test_an_owner_prunes_its_own_threads_alone(saver: DeltaSaver) -> None:
    mine, theirs = saver.for_owner("u1"), saver.for_owner("u2")
    say(mine, 1, run_id="run-1"), say(theirs, 1, thread="u", run_id="run-1")
    assert mine.prune(["t", "u"]).checkpoints == 2
    assert len(list(theirs.list(config("u")))) == 3
    assert mine.prune(["u"], strategy="delete") == Pruned()
    mine.delete_for_runs(["run-1"])
    assert list(mine.list(None)) == []
    assert len(list(theirs.list(None))) == 3
    saver.delete_for_runs(["run-1"])
    assert list(theirs.list(None)) == []


# -- runs ------------------------------------------------------------------------------------------


def test_a_thread_that_has_lost_every_run_is_empty_and_still_its_owners(saver: DeltaSaver) -> None:
    say(saver.for_owner("u1"), 1, run_id="run-1")
    saver.delete_for_runs(["run-1"])
    assert list(saver.list(None)) == []
    assert rows(saver, "SELECT id, owner, items, tokens, head_messages FROM thread") == [
        ("t", "u1", 0, 0, None)
    ]
    assert_clean(saver)
    say(saver.for_owner("u1"), 1)
    assert texts(saver) == ["question 0", "answer 1 "]


def test_one_text_instead_of_a_list_of_runs_is_refused(saver: DeltaSaver) -> None:
    with pytest.raises(InvalidInput, match="run ids must be a list"):
        saver.delete_for_runs("run-1")
    assert saver.delete_for_runs([]) is None


# -- beside others --------------------------------------------------------------------------------


def test_pruning_many_threads_lets_other_tasks_work(saver: DeltaSaver) -> None:
    for thread in range(5):
        say(saver, 2, thread=str(thread))

    async def both() -> tuple[Pruned, int]:
        pruning = asyncio.create_task(saver.aprune([str(thread) for thread in range(5)]))
        found = 0
        while not pruning.done():
            found += (await saver.aget_tuple(config("0"))) is not None
        return await pruning, found

    pruned, found = asyncio.run(both())
    assert (pruned.checkpoints, found > 0) == (25, True)


@pytest.mark.slow
def test_pruning_compacting_and_writing_at_once_lose_nothing(url: str) -> None:
    """Two savers on one database, as two processes would be: each drives threads of its own while
    the other prunes all of them.
    """
    stop = threading.Event()
    failed: list[BaseException] = []

    def prune(saver: DeltaSaver) -> None:
        try:
            while not stop.is_set():
                saver.prune([str(number) for number in range(4)], keep_last=2)
                saver.compact()
        except BaseException as error:
            failed.append(error)

    with (
        DeltaSaver.open(url, synchronous="normal") as one,
        DeltaSaver.open(url, synchronous="normal") as two,
    ):
        pruner = threading.Thread(target=prune, args=(two,))
        pruner.start()
        try:
            with ThreadPoolExecutor(4) as pool:
                list(
                    pool.map(
                        lambda number: say((one, two)[number % 2], 12, thread=str(number)), range(4)
                    )
                )
        finally:
            stop.set()
            pruner.join()
        assert failed == []
        one.prune([str(number) for number in range(4)])
        for number in range(4):
            expected = [
                text
                for turn in range(12)
                for text in (f"question {turn}", f"answer {2 * turn + 1} ")
            ]
            assert texts(one, str(number)) == texts(two, str(number)) == expected
        assert_clean(one)
