"""Promises of pruning: what stays reads and runs as before, what nothing needs is gone, and a dry
run says exactly what a run does.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypedDict

import pytest
from asked_statements import plan_of, watch
from comparison import Names
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from langgraph.types import Command, interrupt
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


async def test_a_conversation_goes_on_after_pruning_as_if_nothing_had_happened(
    saver: DeltaSaver, mode: Mode
) -> None:
    calls = Calls(mode)
    say(saver)
    before = chat(saver).get_state(config())
    pruned = await calls.call(saver, "prune", ["t"])
    assert isinstance(pruned, Pruned)
    assert (pruned.threads, pruned.checkpoints) == (0, 8)
    after = chat(saver).get_state(config())
    assert Names(keep=True).snapshot(after) == Names(keep=True).snapshot(before)
    assert [one.parent_config for one in chat(saver).get_state_history(config())] == [
        before.parent_config
    ]
    assert_clean(saver)
    say(saver, 1)
    assert texts(saver) == [
        "question 0",
        "answer 1 ",
        "question 1",
        "answer 3 ",
        "question 2",
        "answer 5 ",
        "question 0",
        "answer 7 ",
    ]
    assert (
        ThreadChatMessageHistory("t", saver).messages
        == chat(saver).get_state(config()).values["messages"]
    )


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


def test_a_question_that_waits_is_answered_after_pruning(saver: DeltaSaver) -> None:
    graph = chat(saver, ask=True)
    for text in ("one", "two"):
        graph.invoke({"messages": [HumanMessage(text)]}, config())
    saver.prune(["t"])
    assert [one.value for one in graph.get_state(config()).interrupts] == ["which?"]
    assert graph.invoke(Command(resume="this"), config())["messages"][-1].text == "answer 3 this"


async def test_a_checkpoint_that_is_put_again_has_the_values_that_it_was_stored_with(
    saver: DeltaSaver, mode: Mode
) -> None:
    calls, memory = Calls(mode), InMemorySaver()
    began, later = empty_checkpoint(), empty_checkpoint()
    for one, files in ((began, {"a": 1}), (later, ["not told of"])):
        one["channel_values"], one["channel_versions"] = (
            {"files": files, "n": 1},
            {"files": "1", "n": "1"},
        )
    for to in (saver, memory):
        head = await calls.call(
            to, "put", config(checkpoint_ns=""), began, {"step": 0}, {"files": "1", "n": "1"}
        )
        await calls.call(to, "put", head, later, {"step": 1}, {})
    assert (await calls.call(saver, "prune", ["t"])).checkpoints == 1
    for to in (saver, memory):
        await calls.call(to, "put", head, later, {"step": 1, "again": True}, {})
    found, expected = [await calls.call(to, "get_tuple", config()) for to in (saver, memory)]
    assert (
        found.checkpoint["channel_values"]
        == expected.checkpoint["channel_values"]
        == {
            "files": {"a": 1},
            "n": 1,
        }
    )
    assert found.metadata["again"]
    assert_sound(saver)


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


def test_keep_last_and_older_than_keep_what_either_of_them_keeps(saver: DeltaSaver) -> None:
    say(saver)
    ids = [found.checkpoint["id"] for found in saver.list(config())]
    moments = [datetime.fromisoformat(found.checkpoint["ts"]) for found in saver.list(config())]
    assert saver.prune(["t"], keep_last=2, older_than=moments[5], dry_run=True).checkpoints == 3, (
        "one made exactly then stays"
    )
    assert saver.prune(["t"], older_than=timedelta(hours=1)) == Pruned()
    assert saver.prune(["t"], older_than=timedelta(days=10**6)) == Pruned()
    assert saver.prune(["t"], keep_last=7, older_than=moments[5]).checkpoints == 2
    assert [found.checkpoint["id"] for found in saver.list(config())] == ids[:7]
    assert saver.prune(["t"], older_than=datetime.now(UTC) + timedelta(days=1)).checkpoints == 6, (
        "the newest stays, however old"
    )
    assert saver.prune(["t"], older_than=timedelta()) == Pruned()
    assert [found.checkpoint["id"] for found in saver.list(config())] == ids[:1]


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


def test_subgraphs_keep_their_newest_checkpoints_and_their_memory(saver: DeltaSaver) -> None:
    inner = StateGraph(MessagesState).add_node(
        "answer", lambda state: {"messages": [("ai", f"{len(state['messages'])} heard")]}
    )
    child = inner.add_edge(START, "answer").compile(checkpointer=True)
    graph = (
        StateGraph(MessagesState)
        .add_node("child", child)
        .add_edge(START, "child")
        .compile(checkpointer=saver)
    )
    for text in ("one", "two"):
        graph.invoke({"messages": [HumanMessage(text)]}, config())
    saver.prune(["t"])
    assert {place[1] for place in everything(saver)} == {"", "child"}
    assert len(everything(saver)) == 2
    heard = graph.invoke({"messages": [HumanMessage("three")]}, config())["messages"][-1].text
    twin = (
        StateGraph(MessagesState)
        .add_node("child", child)
        .add_edge(START, "child")
        .compile(checkpointer=InMemorySaver())
    )
    for text in ("one", "two", "three"):
        expected = twin.invoke({"messages": [HumanMessage(text)]}, config())["messages"][-1].text
    assert heard == expected


class Files(TypedDict, total=False):
    files: dict[str, str]


def test_a_value_stored_as_changes_of_an_earlier_one_keeps_all_that_it_is_made_of(
    saver: DeltaSaver, url: str
) -> None:
    graph = (
        StateGraph(Files)
        .add_node("edit", lambda state: {})
        .add_edge(START, "edit")
        .compile(checkpointer=saver)
    )
    files = {f"file {number}": f"content {number} " * 50 for number in range(40)}
    for turn in range(12):
        files[f"file {turn}"] = f"edited in turn {turn} " * 10
        graph.invoke({"files": dict(files)}, config())
    rows_before = rows(saver, "SELECT count(*) FROM value")[0][0]
    pruned = saver.prune(["t"])
    assert graph.get_state(config()).values == {"files": files}
    assert 0 < pruned.values < rows_before
    assert_clean(saver)
    files["file 0"] = "edited again"
    graph.invoke({"files": dict(files)}, config())
    with DeltaSaver.open(url) as fresh:
        found = fresh.get_tuple(config())
        assert found is not None
        assert found.checkpoint["channel_values"]["files"] == files
        fresh.copy_thread("t", "copy")
        fresh.delete_thread("t")
        copied = fresh.get_tuple(config("copy"))
        assert copied is not None
        assert copied.checkpoint["channel_values"] == found.checkpoint["channel_values"]


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


async def test_a_run_that_is_taken_back_leaves_the_thread_as_it_was_before(
    saver: DeltaSaver, mode: Mode
) -> None:
    say(saver, 1, run_id="run-0"), say(saver, 1, run_id="run-1")
    before = everything(saver)
    head = rows(saver, "SELECT head_messages, waiting_for, items, tokens FROM thread")
    say(saver, 1, run_id="run-2")
    await Calls(mode).call(saver, "delete_for_runs", ["run-2", "run-3"])
    assert everything(saver) == before
    assert rows(saver, "SELECT head_messages, waiting_for, items, tokens FROM thread") == head
    assert_clean(saver)


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


def test_the_checkpoints_of_a_run_are_found_by_an_index(
    saver: DeltaSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(saver, 1)
    asked = watch(monkeypatch)
    saver.delete_for_runs(["run-1"])
    assert "word_by_run" in plan_of(saver, asked.statements[0])


def test_one_text_instead_of_a_list_of_runs_is_refused(saver: DeltaSaver) -> None:
    with pytest.raises(InvalidInput, match="run ids must be a list"):
        saver.delete_for_runs("run-1")
    assert saver.delete_for_runs([]) is None


# -- delta channels --------------------------------------------------------------------------------


def notes(state: list[str], writes: Any) -> list[str]:
    return [*state, *(item for write in writes for item in write)]


class Rebuilt(TypedDict, total=False):
    messages: Annotated[list[Any], DeltaChannel(_messages_delta_reducer, snapshot_frequency=4)]
    notes: Annotated[list[str], DeltaChannel(notes, snapshot_frequency=4)]


def rebuilding(saver: Any) -> Any:
    builder = StateGraph(Rebuilt)
    builder.add_node(
        "write",
        lambda state: {
            "messages": [AIMessage(f"a{len(state['messages'])}")],
            "notes": [f"n{len(state['messages'])}"],
        },
    )
    return builder.add_edge(START, "write").add_edge("write", END).compile(checkpointer=saver)


@pytest.mark.parametrize("turns", range(1, 10))
@pytest.mark.parametrize("last", [1, 3])
def test_state_and_history_of_what_is_kept_are_unchanged_where_channels_are_rebuilt(
    saver: DeltaSaver, turns: int, last: int
) -> None:
    graph, twin = rebuilding(saver), rebuilding(InMemorySaver())
    for number in range(turns):
        given = {"messages": [HumanMessage(f"h{number}", id=f"h{number}")]}
        (
            graph.invoke(given, config(), durability="sync"),
            twin.invoke(given, config(), durability="sync"),
        )
    before = {
        one.config["configurable"]["checkpoint_id"]: one
        for one in graph.get_state_history(config())
    }
    saver.prune(["t"], keep_last=last)
    kept = list(graph.get_state_history(config()))
    assert len(kept) < len(before) or turns < 5
    assert [one.config for one in kept[:last]] == [one.config for one in before.values()][:last]
    for one in kept:
        assert Names(keep=True).snapshot(one) == Names(keep=True).snapshot(
            before[one.config["configurable"]["checkpoint_id"]]
        )
    assert_clean(saver)
    given = {"messages": [HumanMessage("more", id="more")]}
    expected = twin.invoke(given, config(), durability="sync")
    found = graph.invoke(given, config(), durability="sync")
    assert ([one.text for one in found["messages"]], found["notes"]) == (
        [one.text for one in expected["messages"]],
        expected["notes"],
    )


def test_a_run_in_the_middle_that_later_channels_are_rebuilt_from_stays(saver: DeltaSaver) -> None:
    graph = rebuilding(saver)
    for number in range(3):
        given = {"messages": [HumanMessage(f"h{number}", id=f"h{number}")]}
        graph.invoke(
            given, {**config(), "metadata": {"run_id": f"run-{number}"}}, durability="sync"
        )
    state = graph.get_state(config()).values
    saver.delete_for_runs(["run-1"])
    assert graph.get_state(config()).values == state
    saver.delete_for_runs(["run-2"])
    assert [one.text for one in graph.get_state(config()).values["messages"]] == [
        "h0",
        "a1",
        "h1",
        "a3",
    ]


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
