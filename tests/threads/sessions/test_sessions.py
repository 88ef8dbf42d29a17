"""A session's handle: what is noted is there, for every handle and process, once and exactly; what
cannot be noted changes nothing.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from forked_workers import forks
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from prune_reference import assert_sound, rows
from savers import Backend, Calls, Mode

from langmem_ext import (
    ConversationMemory,
    DeltaSaver,
    InMemoryConversationMemory,
    InvalidInput,
    InvalidThreadId,
    Message,
    MessageLog,
    SessionHandle,
    StorageUnavailable,
    ThreadChatMessageHistory,
    ThreadNotFound,
    Threads,
    examine,
)

THEN = "2026-01-31T09:30:00+00:00"
CONFIG: Any = {"configurable": {"thread_id": "s"}}
CALL = {"name": "look", "args": {}, "id": "c1", "type": "tool_call"}


@pytest.fixture
def saver(url: str) -> Any:
    with DeltaSaver.from_conn_string(url) as saver:
        yield saver


@pytest.fixture
def session(saver: DeltaSaver) -> SessionHandle:
    return ConversationMemory(saver).for_session("s")


def said(text: str, role: Any = "user", **more: Any) -> Message:
    return Message(role, text, THEN, **more)


def texts(session: SessionHandle) -> list[str]:
    return [message.text for message in session.history()]


def checkpoints(saver: DeltaSaver) -> list[Any]:
    return [tuple(found) for found in saver.list(CONFIG)]


# -- what is remembered ----------------------------------------------------------------------------


def test_what_changes_nothing_makes_no_checkpoint_and_no_session(
    session: SessionHandle, saver: DeltaSaver
) -> None:
    def idle() -> None:
        session.merge({})
        session.set_waiting(None)
        session.set_last_intent_id(None)
        session.set_last_result(None)
        session.set_plan_execution(None)
        session.prune()
        session.clear()

    idle()
    assert rows(saver, "SELECT count(*) FROM thread") == [(0,)]
    session.append(said("hi"))
    session.clear()
    before = checkpoints(saver)
    idle()
    assert checkpoints(saver) == before


def test_a_large_value_that_changes_keeps_the_rest(session: SessionHandle) -> None:
    large = {f"key {at}": "x" * 60 for at in range(30)}
    for values in (large, {"key 3": "changed"}):
        session.merge(values)
    assert session.params() == {**large, "key 3": "changed"}


def test_the_threads_row_shows_what_is_waited_for(
    session: SessionHandle, saver: DeltaSaver
) -> None:
    def shown() -> Any:
        return rows(saver, "SELECT waiting_for, head_messages FROM thread")[0]

    session.append(said("hi"))
    session.set_waiting("order_id")
    assert shown() == ("order_id", 1)
    session.append(said("well"))
    session.merge({"a": 1})
    assert shown() == ("order_id", 2)
    session.set_waiting(None)
    assert shown() == (None, 2)
    session.set_waiting("order_id")
    session.clear()
    assert shown() == (None, None)
    assert_sound(saver)


# -- messages --------------------------------------------------------------------------------------


def test_it_is_the_threads_own_history(session: SessionHandle, saver: DeltaSaver) -> None:
    history = ThreadChatMessageHistory("s", saver)
    history.add_messages(
        [HumanMessage("hi", id="1", name="ann"), AIMessage("", id="2", tool_calls=[CALL])]
    )
    session.append(said("done", "tool", metadata={"langchain": {"tool_call_id": "c1"}}))
    first, second, third = history.messages
    assert (first, second) == (
        HumanMessage("hi", id="1", name="ann"),
        AIMessage("", id="2", tool_calls=[CALL]),
    )
    assert isinstance(third, ToolMessage)
    assert (third.tool_call_id, third.text) == ("c1", "done")
    assert [(message.role, message.id) for message in session.history()] == [
        ("user", "1"),
        ("agent", "2"),
        ("tool", third.id),
    ]
    assert session.history()[1].metadata == {"langchain": {"tool_calls": [CALL]}}


def test_a_message_without_a_time_has_the_one_at_which_it_was_stored(
    session: SessionHandle, saver: DeltaSaver
) -> None:
    ThreadChatMessageHistory("s", saver).add_messages([HumanMessage("hi")])
    session.append(said("told"))
    [(stored,)] = rows(
        saver,
        "SELECT min(1000 * (thread.epoch + item.seconds)) FROM thread JOIN item ON [item of"
        " thread]",
    )
    assert [message.timestamp for message in session.history()] == [
        datetime.fromtimestamp(stored / 1000, UTC).isoformat(),
        THEN,
    ]
    assert session.history() == session.history()


def test_pruning_narrows_the_view_and_keeps_the_log(
    session: SessionHandle, saver: DeltaSaver
) -> None:
    for number in range(14):
        session.append(said(str(number)))
    session.prune()
    assert texts(session) == [str(number) for number in range(4, 14)]
    session.prune(max_messages=3)
    assert texts(session) == ["11", "12", "13"]
    earlier = [len(found.checkpoint["channel_values"]["messages"]) for found in saver.list(CONFIG)]
    assert earlier[:3] == [3, 10, 14]
    kept = [
        text
        for (text,) in rows(
            saver, "SELECT text FROM conversation WHERE thread_id = 's' ORDER BY number"
        )
    ]
    assert kept == [str(number) for number in range(14)]
    session.prune(0)
    assert texts(session) == []
    session.append(said("again"))
    assert texts(session) == ["again"]
    assert_sound(saver)


# -- sessions --------------------------------------------------------------------------------------


def test_an_interaction_names_its_session() -> None:
    named: list[tuple[Any, str]] = [
        ({"id": "i1", "context": {"session_id": "s1"}}, "s1"),
        (SimpleNamespace(id="i1", context=SimpleNamespace(session_id="s1")), "s1"),
        (SimpleNamespace(id="i1", context={"session_id": UUID(int=5)}), str(UUID(int=5))),
        ({"id": "i1", "context": SimpleNamespace(session_id=0)}, "0"),
        ({"id": "i1", "context": {}}, "i1"),
        ({"id": "i1", "context": {"session_id": None}}, "i1"),
        ({"id": "i1", "context": {"session_id": ""}}, "i1"),
        ({"id": "i1", "context": None}, "i1"),
        (SimpleNamespace(id=0), "0"),
    ]
    nameless: list[Any] = [
        *(None, {}, {"id": None}, SimpleNamespace(), {"id": "", "context": {"session_id": ""}})
    ]
    with InMemoryConversationMemory() as memory, InMemoryConversationMemory() as other:
        for interaction, session_id in named:
            handle = memory.for_interaction(interaction)
            assert handle.session_id == session_id
            assert repr(handle).startswith(f"SessionHandle({session_id!r}, ")
        for interaction in nameless:
            with pytest.raises(InvalidInput, match=r"neither context\.session_id nor id"):
                memory.for_interaction(interaction)
        for session_id in ("", None, True, 1.5, b"s"):
            with pytest.raises(InvalidThreadId):
                memory.for_session(session_id)  # type: ignore[arg-type]
        memory.for_session("a").merge({"x": 1})
        assert memory.for_session("b").params() == other.for_session("a").params() == {}


def test_a_session_of_another_owner_is_not_there(saver: DeltaSaver) -> None:
    ann, bob = (ConversationMemory(saver, owner=name).for_session("s") for name in ("ann", "bob"))
    ann.append(said("mine"))
    ann.merge({"a": 1})
    before = checkpoints(saver)
    assert (bob.history(), bob.params(), bob.waiting()) == ([], {}, None)
    for change in (
        lambda: bob.append(said("x")),
        lambda: bob.merge({"a": 2}),
        lambda: bob.set_waiting("a"),
    ):
        with pytest.raises(ThreadNotFound):
            change()
    bob.clear()
    bob.prune(0)
    assert checkpoints(saver) == before
    with pytest.raises(InvalidInput, match="bound to another owner"):
        ConversationMemory(saver.for_owner("ann"), owner="bob")
    assert ConversationMemory(saver.for_owner("ann")).for_session("s").params() == {"a": 1}


def test_channels_may_have_names_of_their_own(saver: DeltaSaver) -> None:
    memory = ConversationMemory(saver, channels={"messages": "talk", "waiting_for": "asked"})
    memory.for_session("s").append(said("hi"))
    memory.for_session("s").set_waiting("a")
    assert saver.get_tuple(CONFIG).checkpoint["channel_values"].keys() == {"talk", "asked"}  # type: ignore[union-attr]
    assert memory.for_session("s").waiting() == "a"
    assert_sound(saver)
    for channels in ({"colour": "x"}, {"messages": "params"}, {"messages": ""}):
        with pytest.raises(InvalidInput):
            ConversationMemory(saver, channels=channels)


def test_a_memory_closes_what_it_opened_and_nothing_else(url: str) -> None:
    log = MessageLog.open(url)
    with ConversationMemory(log) as memory:
        memory.for_session("s").append(said("hi"))
    assert texts(ConversationMemory(log).for_session("s")) == ["hi"]
    log.close()
    with ConversationMemory(url) as memory:
        session = memory.for_session("s")
        assert texts(session) == ["hi"]
    with pytest.raises(StorageUnavailable, match="is closed"):
        session.history()


def test_it_is_the_state_of_a_graph_with_these_channels(
    session: SessionHandle, saver: DeltaSaver
) -> None:
    class State(MessagesState):
        params: dict[str, Any]
        last_result: Any

    def answer(state: State) -> dict[str, Any]:
        return {
            "messages": [AIMessage(f"I know {state['params']}")],
            "last_result": len(state["messages"]),
        }

    graph = (
        StateGraph(State)
        .add_node("answer", answer)
        .add_edge(START, "answer")
        .compile(checkpointer=saver)
    )
    session.merge({"a": False})
    session.append(said("first"))
    graph.invoke({"messages": [HumanMessage("second")]}, CONFIG)
    assert texts(session) == ["first", "second", "I know {'a': False}"]
    assert (session.last_result(), session.params()) == (2, {"a": False})
    session.set_waiting("b")
    assert session.waiting() == "b", "no waiting graph has run here"


def test_a_parameters_name_that_no_column_takes_is_waited_for_all_the_same(
    backend: Backend, tmp_path: Path
) -> None:
    with DeltaSaver.from_conn_string(backend.new_url(tmp_path)) as saver:
        session = ConversationMemory(saver).for_session("s")
        session.append(said("hi"))
        session.set_waiting("p" * 3000)
        assert session.waiting() == "p" * 3000
        assert Threads(saver).get("s").waiting_for is None
        assert examine(saver).ok


# -- bad input -------------------------------------------------------------------------------------


async def test_what_cannot_be_noted_is_one_error_and_changes_nothing(
    backend: Backend, mode: Mode, tmp_path: Path
) -> None:
    bad: dict[str, list[Any]] = {
        "append": [HumanMessage("x"), {"role": "user", "text": "x"}, None],
        "merge": [
            *({1: "x"}, {"a": object()}, {"ok": 1, "a": {"b": [b"x"]}}, {"a": float("nan")}),
            *({"a": 1 << 70}, [("a", 1)], None),
        ],
        "set_waiting": ["", 7, "\ud800"],
        "set_last_intent_id": [0],
        "set_last_result": [{1, 2}],
        "set_plan_execution": ["plan", {"steps": [object()]}],
        "prune": [-1, True, "3"],
    }
    with DeltaSaver.from_conn_string(backend.new_url(tmp_path)) as saver:
        session = ConversationMemory(saver).for_session("s")
        for _ in range(2):
            before = checkpoints(saver)
            for name, arguments in bad.items():
                for argument in arguments:
                    with pytest.raises(InvalidInput) as caught:
                        await Calls(mode).call(session, name, argument)
                    assert str(caught.value)
                    assert checkpoints(saver) == before, (name, argument)
            session.append(said("hi"))
            session.merge({"a": 1})
        assert (session.params(), texts(session)) == ({"a": 1}, ["hi", "hi"])


async def test_handles_in_many_threads_and_tasks_lose_nothing(saver: DeltaSaver) -> None:
    memory = ConversationMemory(saver)
    writers = [f"t{number}" for number in range(6)]
    with ThreadPoolExecutor(len(writers)) as pool:
        for done in [pool.submit(write, memory.for_session("s"), writer) for writer in writers]:
            await asyncio.wrap_future(done)
    assert_all_are_there(await asyncio.to_thread(memory.for_session, "s"), writers)
    session = memory.for_session("a")

    async def work(writer: str) -> None:
        for number in range(EACH):
            await session.aappend(said(f"{writer}:{number}"))
            await session.amerge({f"{writer}:{number}": number})

    await asyncio.gather(*map(work, writers))
    assert_all_are_there(session, writers)
    assert_sound(saver)


# -- many writers ----------------------------------------------------------------------------------

EACH = 12


def write(session: SessionHandle, writer: str) -> None:
    for number in range(EACH):
        session.append(said(f"{writer}:{number}"))
        session.merge({f"{writer}:{number}": number})


def write_in_a_process(url: str, writer: str) -> None:
    with ConversationMemory(url) as memory:
        write(memory.for_session("s"), writer)


def assert_all_are_there(session: SessionHandle, writers: list[str]) -> None:
    wanted = {f"{writer}:{number}": number for writer in writers for number in range(EACH)}
    found = texts(session)
    assert (sorted(found), session.params()) == (sorted(wanted), wanted)
    for writer in writers:
        own = [text for text in found if text.startswith(f"{writer}:")]
        assert own == [f"{writer}:{number}" for number in range(EACH)], "each writer's own order"


@pytest.mark.process
def test_handles_in_many_processes_lose_nothing(saver: DeltaSaver, url: str) -> None:
    writers = [f"p{number}" for number in range(3)]
    context = forks()
    processes = [
        context.Process(target=write_in_a_process, args=(url, writer)) for writer in writers
    ]
    for process in processes:
        process.start()
    write(ConversationMemory(saver).for_session("s"), "here")
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert_all_are_there(ConversationMemory(saver).for_session("s"), [*writers, "here"])
    assert_sound(saver)
