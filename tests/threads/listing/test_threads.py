"""Promises of `Threads`: a thread is there from its first message on, what a list shows is true and
needs no message, and nobody sees what is another's.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Annotated, Any

import pytest
from asking import counted, counting
from clock import EARLY, Clock
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from langgraph.types import Command, interrupt
from prune_reference import assert_sound, rows
from savers import Backend, Calls, Mode, brief_saver
from search_reference import spoil
from typing_extensions import TypedDict

from langmem_ext import (
    DamagedRow,
    DeltaSaver,
    InvalidInput,
    InvalidThreadId,
    StorageUnavailable,
    ThreadChatMessageHistory,
    ThreadNotFound,
    Threads,
    examine,
)


@pytest.fixture
def saver(url: str) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(url, synchronous="normal") as saver:
        yield saver


@pytest.fixture
def calls(mode: Mode) -> Calls:
    return Calls(mode)


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def asking(saver: DeltaSaver) -> Any:
    """A graph that asks after each answer."""
    builder = StateGraph(MessagesState).add_node("answer", counted)
    builder.add_node("ask", lambda state: {"messages": [HumanMessage(interrupt("more?"))]})
    return builder.add_edge(START, "answer").add_edge("answer", "ask").compile(checkpointer=saver)


def say(saver: DeltaSaver, text: str, thread: str = "t", **notes: Any) -> None:
    ThreadChatMessageHistory(thread, saver).add_messages(
        [HumanMessage(text, additional_kwargs={"langmem_ext": notes} if notes else {})]
    )


def texts(saver: DeltaSaver, thread: str) -> list[Any]:
    return [message.content for message in ThreadChatMessageHistory(thread, saver).messages]


async def test_threads_close_the_database_that_they_have_opened_and_no_other(
    saver: DeltaSaver, tmp_path: Path
) -> None:
    with Threads(saver) as threads:
        assert threads.list() == []
    async with Threads(saver) as threads:
        assert await threads.alist() == []
    assert Threads(saver).list() == []
    with Threads(str(tmp_path / "b.db")) as threads:
        assert threads.list() == []
    with pytest.raises(StorageUnavailable):
        threads.list()


HIDDEN = "•••"


# -- what a row says -------------------------------------------------------------------------------


async def test_a_thread_is_there_from_its_first_message_on(saver: DeltaSaver, calls: Calls) -> None:
    threads = Threads(saver)
    assert await calls.call(threads, "list") == []
    with pytest.raises(ThreadNotFound, match="thread 't' not found"):
        await calls.call(threads, "get", "t")
    with pytest.raises(InvalidThreadId):
        await calls.call(threads, "get", "")
    said = [SystemMessage("be kind"), HumanMessage("Where is my order?")]
    counting(saver).invoke({"messages": said}, config("t"))
    [found] = await calls.call(threads, "list")
    assert found == await calls.call(threads, "get", "t")
    assert (found.id, found.title) == ("t", "Where is my order?")
    assert (found.messages, found.stored_messages) == (3, 3)
    assert (found.status, found.owner, found.waiting_for) == ("active", None, None)
    assert (found.tool, found.tags, found.metadata) == (None, (), {})
    assert found.tokens == sum(count_tokens_approximately([one]) for one in threads.messages("t"))
    assert found.created_at.tzinfo is not None
    assert found.created_at <= found.updated_at


def test_the_title_is_the_first_prompt_in_one_line_cut_between_words() -> None:
    with DeltaSaver() as saver:

        def title(content: Any, **notes: Any) -> str | None:
            kwargs = {"langmem_ext": notes} if notes else {}
            said = HumanMessage(content, additional_kwargs=kwargs)
            thread = Threads(saver).begin()
            ThreadChatMessageHistory(thread.id, saver).add_messages([said])
            return Threads(saver).get(thread.id).title

        assert title("short") == "short"
        assert title("two\n \0lines\u2028and  more") == "two lines and more"
        assert title(" \n ") is None
        assert title("word " * 40) == "word " * 19 + "word…"
        assert title("x" * 500) == "x" * 99 + "…"
        picture: Any = {"type": "image", "base64": "AAAA"}
        assert title([{"type": "text", "text": "a picture"}, picture]) == "a picture"
        pins = "my card is 4111 and my pin 99"
        hidden = title(pins, sensitive=["card"], spans=[[11, 15], [27, 29]])
        assert hidden == f"my card is {HIDDEN} and my pin {HIDDEN}"
        assert title(pins, sensitive=["card"], spans=[[11, 15], [12, 29]]) == (
            f"my card is {HIDDEN}"
        )
        for spans in (None, [], "all", [[11]], [[5, 3]], [[11, 300]], [[True, 4]]):
            assert title(pins, sensitive=["card"], spans=spans) == HIDDEN
        assert title(pins, sensitive=[]) == pins


@pytest.mark.parametrize("anew", [False, True], ids=["warm", "cold"])
def test_a_prompt_that_is_marked_late_leaves_nothing_in_the_title(url: str, anew: bool) -> None:
    def mark(state: MessagesState) -> dict[str, Any]:
        notes = {"langmem_ext": {"sensitive": ["pin"], "spans": [[10, 14]]}}
        return {
            "messages": [
                message.model_copy(update={"additional_kwargs": notes})
                for message in state["messages"][:1]
            ]
        }

    def graph(saver: DeltaSaver) -> Any:
        builder = (
            StateGraph(MessagesState)
            .add_node("answer", lambda state: {"messages": [AIMessage("fine")]})
            .add_node("mark", mark)
        )
        builder.add_edge(START, "answer").add_edge("answer", "mark")
        return builder.compile(checkpointer=saver, interrupt_before=["mark"])

    saver = DeltaSaver.open(url)
    graph(saver).invoke({"messages": [HumanMessage("my pin is 1234 ok")]}, config("t"))
    assert Threads(saver).get("t").title == "my pin is 1234 ok"
    if anew:
        saver.close()
        saver = DeltaSaver.open(url)
    graph(saver).invoke(None, config("t"))
    assert Threads(saver).get("t").title == f"my pin is {HIDDEN} ok"
    # Somebody goes back to where it was not marked yet, and on from there.
    [early] = [
        state
        for state in graph(saver).get_state_history(config("t"))
        if state.metadata["step"] == 0
    ]
    graph(saver).invoke(None, early.config)
    assert Threads(saver).get("t").title == f"my pin is {HIDDEN} ok"
    saver.close()


def test_a_title_follows_its_prompt_unless_somebody_gave_it(saver: DeltaSaver) -> None:
    history, threads = ThreadChatMessageHistory("t", saver), Threads(saver)
    history.add_messages(
        [SystemMessage("be kind"), HumanMessage("first words", id="m"), AIMessage("well")]
    )
    history.add_messages([HumanMessage("other words", id="m")])
    assert threads.get("t").title == "other words"
    threads.rename("t", "mine")
    history.add_messages([HumanMessage("last words", id="m")])
    assert threads.get("t").title == "mine"


def test_a_title_goes_with_the_prompt_that_gave_it(saver: DeltaSaver) -> None:
    graph = counting(saver)
    graph.invoke({"messages": [HumanMessage("a secret", id="m1")]}, config("t"))
    graph.invoke({"messages": [HumanMessage("a question", id="m2")]}, config("t"))
    graph.update_state(config("t"), {"messages": [RemoveMessage("m1")]})
    assert Threads(saver).get("t").title == "a secret"
    copy = Threads(saver).fork("t")
    Threads(saver).rename("t", "a name")
    for thread, title in (("t", "a name"), (copy.id, None)):
        saver.prune([thread])
        assert Threads(saver).get(thread).title == title
        graph.invoke({"messages": [HumanMessage("more")]}, config(thread))
    assert Threads(saver).get(copy.id).title == "a question"
    assert_sound(saver)


# -- finding ---------------------------------------------------------------------------------------


async def test_messages_are_read_with_the_times_at_which_they_were_stored(
    saver: DeltaSaver, calls: Calls, clock: Clock
) -> None:
    threads = Threads(saver)
    for question in ("one", "two", "three"):
        counting(saver).invoke({"messages": [HumanMessage(question)]}, config("t"))
        clock.wait(days=1, seconds=2.5)
    dated = await calls.call(threads, "dated_messages", "t")
    assert [message for message, _ in dated] == await calls.call(threads, "messages", "t")
    assert [stored for _, stored in dated] == [
        EARLY + timedelta(days=days, seconds=2.5 * days // 1) for days in (0, 0, 1, 1, 2, 2)
    ]
    assert await calls.call(threads, "dated_messages", "t", last=3) == dated[-3:]
    with pytest.raises(ThreadNotFound):
        await calls.call(threads, "dated_messages", "u")
    with pytest.raises(InvalidInput, match="last must be"):
        await calls.call(threads, "dated_messages", "t", last=0)


async def test_the_newest_is_the_first_also_within_a_minute_and_a_page_goes_on_where_the_last_ended(
    saver: DeltaSaver, calls: Calls, clock: Clock
) -> None:
    threads = Threads(saver)
    for number in range(120):
        say(saver, f"prompt {number}", f"t{number}")
        clock.wait(seconds=1)
    for number in (5, 70, 3):
        say(saver, "again", f"t{number}")
        clock.wait(seconds=1)
    order = [
        f"t{number}"
        for number in (3, 70, 5, *(n for n in range(119, -1, -1) if n not in (3, 5, 70)))
    ]
    first = await calls.call(threads, "list", limit=7)
    assert [thread.id for thread in first] == order[:7]
    after = await calls.call(threads, "list", limit=200, after=first[-1])
    assert [thread.id for thread in after] == order[7:]
    assert [thread.id for thread in await calls.collect(threads, "each")] == order
    assert await calls.call(threads, "count") == 120
    with pytest.raises(InvalidInput, match="limit"):
        await calls.call(threads, "list", limit=0)


KINDS = st.lists(
    st.tuples(
        st.sampled_from(["alice", "bob", None]),
        st.sampled_from(["chat", "debug", None]),
        st.sampled_from(["vip", "late", None]),
        st.booleans(),
        st.integers(0, 300),
    ),
    max_size=8,
)


@given(
    kinds=KINDS,
    owner=st.sampled_from(["alice", None]),
    tool=st.sampled_from(["chat", None]),
    tag=st.sampled_from(["vip", None]),
)
def test_a_filter_finds_what_a_look_at_each_thread_finds(
    kinds: Any, owner: str | None, tool: str | None, tag: str | None, backend: Backend, folder: Path
) -> None:
    with brief_saver(backend, folder) as saver, pytest.MonkeyPatch.context() as monkeypatch:
        clock, threads = Clock(monkeypatch), Threads(saver)
        for number, (whose, used, given_tag, archived, seconds) in enumerate(kinds):
            clock.now = EARLY + timedelta(seconds=seconds)
            view = saver.for_owner(whose) if whose else saver
            say(view, f"prompt {number}", f"t{number}", **({"tool": used} if used else {}))
            threads.tag(f"t{number}", *([given_tag] if given_tag else []))
            if archived:
                threads.archive(f"t{number}")
        wanted: Any = {
            name: value
            for name, value in (("owner", owner), ("tool", tool), ("tag", tag))
            if value is not None
        }
        since, until = EARLY + timedelta(seconds=60), EARLY + timedelta(seconds=200)
        for status in ("active", "archived", None):
            found = threads.list(status=status, since=since, until=until, **wanted)
            expected = [
                (seconds, number)
                for number, (whose, used, given_tag, archived, seconds) in enumerate(kinds)
                if (owner is None or whose == owner)
                and (tool is None or used == tool)
                and (tag is None or given_tag == tag)
                and (status is None or archived == (status == "archived"))
                and 60 <= seconds < 200
            ]
            assert [thread.id for thread in found] == [
                f"t{number}" for _, number in sorted(expected, reverse=True)
            ]
            assert threads.count(status=status, since=since, until=until, **wanted) == len(expected)


def test_threads_are_found_by_what_they_wait_for_and_by_their_title(saver: DeltaSaver) -> None:
    class Waiting(MessagesState):
        waiting_for_param: str | None

    graph: Any = (
        StateGraph(Waiting)
        .add_node("ask", lambda state: {"waiting_for_param": "order_id"})
        .add_edge(START, "ask")
        .compile(checkpointer=saver)
    )
    graph.invoke({"messages": [HumanMessage("Where is 100% of my order_?")]}, config("waits"))
    say(saver, "Something else", "rests")
    say(saver, "half of a pair: \ud800", "half")
    threads = Threads(saver)

    def ids(**wanted: Any) -> set[str]:
        return {thread.id for thread in threads.list(**wanted)}

    assert ids(waiting_for="order_id") == ids(waiting_for=True) == {"waits"}
    assert ids(waiting_for=False) == {"rests", "half"}
    assert ids(waiting_for="name") == set()
    assert ids(title="ORDER_?") == ids(title="100%") == {"waits"}
    assert ids(title="%s_") == set()
    assert "half" in ids(title="\ud800", limit=10**30)
    for name in ("tool", "waiting_for", "begins", "tag"):
        assert ids(**{name: "\ud800"}) == set()
    wrong: list[dict[str, Any]] = [
        *({"title": 5}, {"title": "\0"}, {"title": "x" * 1001}),
        *({"tool": ["chat"]}, {"waiting_for": 5}, {"begins": b"t"}),
        *({"tag": 5}, {"tag": "a\nb"}, {"owner": ""}, {"colour": "red"}),
        *({"status": "gone"}, {"since": datetime(2026, 1, 1)}, {"limit": 0}, {"after": "t"}),
    ]
    for arguments in wrong:
        with pytest.raises(InvalidInput):
            threads.list(**arguments)


async def test_another_owners_thread_is_not_there(saver: DeltaSaver, calls: Calls) -> None:
    say(saver.for_owner("alice"), "mine", "a")
    say(saver.for_owner("bob"), "his", "b")
    alices = Threads(saver.for_owner("alice"))
    assert [thread.id for thread in await calls.call(alices, "list")] == ["a"]
    assert await calls.call(alices, "count") == 1
    before = rows(saver, "SELECT * FROM thread WHERE id = 'b'")
    looks = (("get",), ("messages",), ("turns",), ("continue_",), ("usage",))
    changes = (
        ("rename", "x"),
        ("tag", "x"),
        ("note", {}),
        ("archive",),
        ("unarchive",),
        ("clear",),
        ("fork",),
    )
    for name, *arguments in (*looks, *changes):
        with pytest.raises(ThreadNotFound):
            await calls.call(alices, name, "b", *arguments)
    for name, arguments, options in (
        ("search", ["his"], {"thread": "b"}),
        ("export_to", [io.StringIO(), "b"], {}),
        ("fork", ["a"], {"to": "b"}),
    ):
        with pytest.raises(ThreadNotFound):
            await calls.call(alices, name, *arguments, **options)
    assert rows(saver, "SELECT * FROM thread WHERE id = 'b'") == before
    assert (await calls.call(alices, "delete", "b")).threads == 0
    with pytest.raises(InvalidInput, match="another owner"):
        await calls.call(alices, "list", owner="bob")
    with pytest.raises(InvalidInput, match="another owner"):
        Threads(saver.for_owner("alice"), owner="bob")
    everybodys = Threads(saver)
    assert {thread.id: thread.title for thread in await calls.call(everybodys, "list")} == {
        "a": "mine",
        "b": "his",
    }
    assert [thread.id for thread in await calls.call(everybodys, "list", owner="bob")] == ["b"]


# -- naming ----------------------------------------------------------------------------------------


async def test_what_somebody_says_of_a_thread_stays_and_does_not_make_it_newer(
    saver: DeltaSaver, calls: Calls, clock: Clock
) -> None:
    threads = Threads(saver)
    say(saver, "one", "t")
    clock.wait(minutes=5)
    say(saver, "two", "u")
    assert (
        await calls.call(threads, "rename", "t", "  The  broken\nlamp ")
    ).title == "The broken lamp"
    assert (await calls.call(threads, "tag", "t", "vip", " late ")).tags == ("late", "vip")
    assert (await calls.call(threads, "tag", "t", "new", remove=["late"])).tags == ("new", "vip")
    assert (await calls.call(threads, "note", "t", {"a": [1, {"b": None}], "ü": "x"})).metadata == {
        "a": [1, {"b": None}],
        "ü": "x",
    }
    assert (await calls.call(threads, "note", "t", {"a": None, "c": False})).metadata == {
        "ü": "x",
        "c": False,
    }
    assert (await calls.call(threads, "archive", "t")).status == "archived"
    assert [thread.id for thread in await calls.call(threads, "list")] == ["u"]
    assert [thread.id for thread in await calls.call(threads, "list", status=None)] == ["u", "t"]
    assert (await calls.call(threads, "unarchive", "t")).updated_at == EARLY
    say(saver, "three", "t")
    found = await calls.call(threads, "get", "t")
    assert (found.title, found.tags, found.metadata, found.messages) == (
        "The broken lamp",
        ("new", "vip"),
        {"ü": "x", "c": False},
        2,
    )
    assert (await calls.call(threads, "rename", "t", "")).title is None
    say(saver, "four", "t")
    assert (await calls.call(threads, "get", "t")).title == "one"
    assert_sound(saver)


def test_what_cannot_be_said_of_a_thread_changes_nothing(saver: DeltaSaver) -> None:
    say(saver, "one")
    before = Threads(saver).note("t", {"earlier": "x" * 20_000})
    deep = reduce(lambda inner, _: [inner], range(300), 1)
    wrong: list[tuple[str, Any]] = [
        *(("rename", one) for one in ("x" * 2000, 5, "a\0b")),
        *(("tag", one) for one in ("", "a\nb", "x" * 101, 5)),
        *(("note", {"a": one}) for one in (object(), float("nan"), "x" * 70_000, deep)),
        *(("note", one) for one in ({5: "a"}, {"in all": "x" * 50_000}, "a")),
    ]
    for name, argument in wrong:
        with pytest.raises(InvalidInput):
            getattr(Threads(saver), name)("t", argument)
        assert Threads(saver).get("t") == before, (name, argument)


def test_the_tool_of_a_thread_is_that_of_its_newest_turn_that_names_one(saver: DeltaSaver) -> None:
    say(saver, "one", tool="chat")
    assert Threads(saver).get("t").tool == "chat"
    say(saver, "two", tool="debug")
    say(saver, "three")
    assert Threads(saver).get("t").tool == "debug"
    assert Threads(saver).get("t").title == "one"


def test_a_damaged_row_keeps_no_other_from_being_listed_and_the_doctor_names_it(
    saver: DeltaSaver, durable: Backend
) -> None:
    say(saver, "one word", "good")
    threads = Threads(saver)
    threads.enable_search()
    damages = [
        *(f"updated_at = {1 << 62}", f"created_at = {-1 << 62}", f"epoch = {1 << 62}"),
        *("status = 'gone'", "metadata = '['", "next_item = -1"),
    ]
    if durable.name == "file":  # what no column of PostgreSQL takes
        damages += ["updated_at = 'never'", "tags = x'00ff'", "title = x'ff'", "tool = x'ff'"]
    for number, damage in enumerate(damages):
        bad = f"bad{number}"
        say(saver, "other words", bad)
        spoil(saver, f"UPDATE thread SET {damage} WHERE id = '{bad}'")
        assert "good" in [thread.id for thread in threads.list(status=None)]
        assert "good" in [hit.thread_id for hit in threads.search("word")]
        for look in ("get", "turns", "tag"):
            with suppress(DamagedRow):
                getattr(threads, look)(bad)
        with suppress(DamagedRow):
            list(threads.export_lines(bad))
        wrong = [finding for finding in examine(saver).findings if finding.severity != "note"]
        assert {finding.thread for finding in wrong} == {bad}, damage
        assert any(damage.split()[0] in finding.message for finding in wrong), damage
        assert threads.delete(bad).threads == 1
        assert_sound(saver)


# -- copying and deleting --------------------------------------------------------------------------


async def test_a_fork_ends_where_it_is_told_to_and_what_was_still_to_be_done_is_done_again(
    saver: DeltaSaver, calls: Calls
) -> None:
    graph, threads = asking(saver), Threads(saver)
    graph.invoke({"messages": [HumanMessage("one", id="m1")]}, config("t"))
    graph.invoke(Command(resume="two"), config("t"))
    graph.invoke({"messages": [HumanMessage("three", id="m3")]}, config("t"))
    said = ThreadChatMessageHistory("t", saver).messages
    history = list(graph.get_state_history(config("t")))
    for snapshot in history:
        copy = await calls.call(
            threads, "fork", "t", checkpoint_id=snapshot.config["configurable"]["checkpoint_id"]
        )
        state = graph.get_state(config(copy.id))
        assert state.values.get("messages", []) == snapshot.values.get("messages", [])
        assert state.next == snapshot.next
        assert copy.messages == len(snapshot.values.get("messages", []))
    asked = await calls.call(threads, "fork", "t", message_id=said[1].id)
    assert texts(saver, asked.id) == ["one", "I see 1"]
    assert graph.invoke(None, config(asked.id))["__interrupt__"][0].value == "more?"
    again = await calls.call(threads, "fork", "t", message_id="m3", to="again")
    assert again.id == "again"
    graph.invoke(None, config("again"))
    assert texts(saver, "again") == ["one", "I see 1", "two", "three", "I see 4"]
    assert texts(saver, "t") == [message.content for message in said]
    assert_sound(saver)


async def test_a_fork_that_ends_before_a_tools_turns_is_not_that_tools(
    saver: DeltaSaver, calls: Calls
) -> None:
    history, threads = ThreadChatMessageHistory("t", saver), Threads(saver)
    for number, tool in enumerate((None, "review", None, "debug")):
        notes = {"langmem_ext": {"tool": tool}} if tool is not None else {}
        history.add_messages(
            [
                HumanMessage("go on", id=f"m{number}", additional_kwargs=notes),
                AIMessage("done", id=f"a{number}"),
            ]
        )
    assert threads.get("t").tool == "debug"
    forks = [await calls.call(threads, "fork", "t", message_id=f"a{number}") for number in range(4)]
    assert [fork.tool for fork in forks] == [None, "review", "review", "debug"]
    assert threads.count(tool="debug") == 2


async def test_a_fork_that_cannot_be_made_makes_nothing(saver: DeltaSaver, calls: Calls) -> None:
    say(saver, "one")
    say(saver, "taken", "u")
    threads = Threads(saver)
    for arguments in (
        {"checkpoint_id": "nope"},
        {"message_id": "nope"},
        {"to": "u"},
        {"to": "t"},
        {"checkpoint_id": "a", "message_id": "b"},
        {"message_id": 5},
        {"checkpoint_id": b"x"},
    ):
        with pytest.raises(InvalidInput):
            await calls.call(threads, "fork", "t", **arguments)
    with pytest.raises(ThreadNotFound):
        await calls.call(threads, "fork", "nope")
    assert await calls.call(threads, "count", status=None) == 2


class DeltaState(TypedDict):
    messages: Annotated[list[Any], DeltaChannel(_messages_delta_reducer, snapshot_frequency=10)]


async def test_a_fork_at_a_message_that_only_the_graph_can_find_says_so(
    saver: DeltaSaver, calls: Calls
) -> None:
    graph: Any = (
        StateGraph(DeltaState)
        .add_node("answer", lambda state: {})
        .add_edge(START, "answer")
        .compile(checkpointer=saver)
    )
    graph.invoke({"messages": [HumanMessage("hi", id="m1")]}, config("d"))
    threads = Threads(saver)
    for message in ("m1", "nope"):
        with pytest.raises(InvalidInput, match="DeltaChannel.*fork it at a checkpoint"):
            await calls.call(threads, "fork", "d", message_id=message)
    checkpoint = graph.get_state(config("d")).config["configurable"]["checkpoint_id"]
    copy = await calls.call(threads, "fork", "d", checkpoint_id=checkpoint)
    assert [message.id for message in graph.get_state(config(copy.id)).values["messages"]] == ["m1"]


async def test_a_fork_lives_on_when_its_source_is_deleted(
    saver: DeltaSaver, calls: Calls, tmp_path: Path
) -> None:
    threads = Threads(saver)
    say(saver, "the quick brown fox")
    say(saver.for_owner("alice"), "alices own", "a")
    copy = await calls.call(threads, "fork", "a")
    assert copy.owner == "alice"
    assert (await calls.call(threads, "delete", "t", "a", "nobody")).threads == 2
    assert [thread.id for thread in await calls.call(threads, "list")] == [copy.id]
    assert texts(saver, copy.id) == ["alices own"]
    await calls.call(saver, "compact")
    assert b"quick brown" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert_sound(saver)


# -- reading ---------------------------------------------------------------------------------------


@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    removed=st.sets(st.integers(0, 20)),
    last=st.integers(1, 30),
)
def test_the_last_messages_are_the_end_of_all_of_them(
    lengths: list[int], removed: set[int], last: int, backend: Backend, folder: Path
) -> None:
    url = backend.new_url(folder)
    with DeltaSaver.open(url) as saver:
        builder = StateGraph(MessagesState).add_node("n", lambda state: {}).add_edge(START, "n")
        graph: Any = builder.compile(checkpointer=saver)
        with pytest.raises(ThreadNotFound):
            Threads(saver).messages("t")
        numbers = iter(range(100))
        for turn, length in enumerate(lengths):
            said = [HumanMessage(f"{turn}.{at}", id=f"m{next(numbers)}") for at in range(length)]
            graph.invoke({"messages": said}, config("t"))
        there = {message.id for message in graph.get_state(config("t")).values["messages"]}
        gone = [RemoveMessage(f"m{at}") for at in removed if f"m{at}" in there]
        graph.update_state(config("t"), {"messages": gone})
        messages = graph.get_state(config("t")).values["messages"]
        assert Threads(saver).messages("t") == messages
        if backend.survives_close:
            with DeltaSaver.open(url) as anew:
                assert Threads(anew).messages("t", last=last) == messages[-last:]
        for wrong in (0, -1, True, "2"):
            with pytest.raises(InvalidInput, match="last"):
                Threads(saver).messages("t", last=wrong)  # type: ignore[arg-type]


async def test_largest_threads_come_first_and_pages_lose_none(
    saver: DeltaSaver, calls: Calls
) -> None:
    def largest(by: str, **wanted: Any) -> Any:
        return calls.call(Threads(saver), "largest", by, **wanted)

    for name, count in (("a", 1), ("b", 3), ("c", 2), ("d", 3)):
        messages = [("word " * 50 if name == "a" else "word") + str(at) for at in range(count)]
        await ThreadChatMessageHistory(name, saver).aadd_messages(
            [HumanMessage(text) for text in messages]
        )
    first = await largest("stored_messages", limit=2)
    second = await largest("stored_messages", limit=2, after=first[-1])
    assert {thread.id for thread in first} == {"b", "d"}
    assert [thread.id for thread in second] == ["c", "a"]
    assert (await largest("tokens", limit=1))[0].id == "a"
    assert [thread.id for thread in await largest("tokens", begins="c")] == ["c"]
    with pytest.raises(InvalidInput):
        await largest("weight")
