"""Promises of a search: who may see what, what is never in the index, what others write is found,
and what was deleted is gone.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send
from patience import PATIENCE_S
from prune_reference import assert_sound, rows
from savers import BACKENDS, Backend, Calls, Mode, open_saver
from search_reference import begin_index, has_index, spoil

from langmem_ext import (
    DeltaSaver,
    InvalidInput,
    SearchUnavailable,
    StorageError,
    ThreadChatMessageHistory,
    ThreadNotFound,
    Threads,
    copy_saver,
    examine,
)

SQLITE = [backend for backend in BACKENDS if backend.name == "file"]
KEPT = [backend for backend in BACKENDS if backend.survives_close]
"""Databases that several processes can open."""


@pytest.fixture
def url(backend: Backend, tmp_path: Path) -> str:
    return backend.new_url(tmp_path)


@pytest.fixture
def saver(url: str) -> Iterator[DeltaSaver]:
    with open_saver(url) as saver:
        yield saver


@pytest.fixture
def calls(mode: Mode) -> Calls:
    return Calls(mode)


def chat(saver: Any, thread: str, *texts: str) -> None:
    builder = StateGraph(MessagesState).add_node(
        "answer", lambda state: {"messages": [AIMessage(f"so {state['messages'][-1].text}")]}
    )
    graph = builder.add_edge(START, "answer").compile(checkpointer=saver)
    for text in texts:
        graph.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}})


def found(threads: Threads, text: str, **where: Any) -> list[tuple[str, int]]:
    return sorted((hit.thread_id, hit.number) for hit in threads.search(text, **where))


async def test_a_hit_says_where_it_stands_and_what_of_it_was_looked_for(
    saver: DeltaSaver, calls: Calls
) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    ThreadChatMessageHistory("t", saver).add_messages(
        [HumanMessage("Where is\nmy Order?", id="h"), AIMessage("It is late.", id="a")]
    )
    [hit] = await calls.call(Threads(saver), "search", "order my")
    assert (hit.thread_id, hit.title, hit.message_id, hit.number, hit.role) == (
        "t",
        "Where is my Order?",
        "h",
        0,
        "human",
    )
    assert hit.snippet == "Where is my Order?"
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["my", "Order"]
    assert before <= hit.created_at <= datetime.now(UTC)
    assert hit.rank > 0
    assert rows(saver, "SELECT role, number FROM conversation WHERE text LIKE '%Order%'") == [
        (hit.role, hit.number)
    ]


# -- what is in the index --------------------------------------------------------------------------


def joining(saver: Any) -> Any:
    """A graph of two nodes that a third waits for."""
    builder = StateGraph(MessagesState)
    for name in ("left", "right", "both"):
        builder.add_node(name, lambda state: {"messages": [AIMessage("so")]})
    return (
        builder.add_edge(START, "left")
        .add_edge(START, "right")
        .add_edge(["left", "right"], "both")
        .compile(checkpointer=saver)
    )


def sending(saver: Any) -> Any:
    """A graph whose node is sent its tasks."""
    builder = StateGraph(MessagesState).add_node(
        "answer", lambda state: {"messages": [AIMessage("so")]}
    )
    return builder.add_conditional_edges(
        START, lambda state: [Send("answer", state)] * 2, ["answer"]
    ).compile(checkpointer=saver)


@pytest.mark.parametrize("make", [joining, sending], ids=["join", "send"])
def test_a_message_that_is_put_by_hand_where_a_graph_is_done_is_found_at_once(
    saver: DeltaSaver, make: Any
) -> None:
    graph, config, threads = make(saver), {"configurable": {"thread_id": "t"}}, Threads(saver)
    threads.enable_search()
    graph.invoke({"messages": [HumanMessage("one")]}, config)
    last = max(graph.nodes, key=["__start__", "left", "right", "answer", "both"].index)
    graph.update_state(config, {"messages": [HumanMessage("word")]}, as_node=last)
    assert not graph.get_state(config).next
    assert len(threads.search("word")) == 1
    threads.rebuild_search()
    assert len(threads.search("word")) == 1
    graph.update_state(config, {"messages": [HumanMessage("secret word")]}, as_node="__start__")
    assert graph.get_state(config).next
    assert len(threads.search("word")) == 1  # a node may yet say what of it is sensitive
    threads.rebuild_search()
    assert len(threads.search("word")) == 1
    graph.invoke(None, config)
    assert len(threads.search("word")) == 2


@pytest.mark.process
@pytest.mark.parametrize("backend", KEPT, ids=lambda backend: backend.name)
def test_what_other_processes_write_is_found_whoever_made_the_index(url: str) -> None:
    writer = f"""
import sys
from langchain_core.messages import HumanMessage
from langmem_ext import ThreadChatMessageHistory, DeltaSaver
with DeltaSaver.open({url!r}) as saver:
    for number in range(120):
        said = HumanMessage(f"word number{{number}}", id=str(number))
        ThreadChatMessageHistory(f"w{{number % 7}}", saver).add_messages([said])
        print(number, flush=True)
"""
    with DeltaSaver.open(url) as saver:
        ThreadChatMessageHistory("mine", saver).add_messages([HumanMessage("word mine")])
        process = subprocess.Popen(
            [sys.executable, "-c", writer], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == "30":
                Threads(saver).enable_search()
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
        threads = Threads(saver)
        assert len(threads.search("word", limit=1000)) == 121
        assert all(len(threads.search(f'"number{number}"')) == 1 for number in range(120))
        assert_sound(saver)


def test_a_thread_of_another_saver_is_copied_into_the_index(saver: DeltaSaver) -> None:
    Threads(saver).enable_search()
    with DeltaSaver.open(":memory:") as source:
        chat(source, "t", "the moved word")
        copy_saver(source, saver)
    assert found(Threads(saver), "moved") == [("t", 0), ("t", 1)]
    saver.copy_thread("t", "c")
    assert found(Threads(saver), "moved") == [("c", 0), ("c", 1), ("t", 0), ("t", 1)]
    assert_sound(saver)


def test_sweeping_and_pruning_take_words_along(saver: DeltaSaver) -> None:
    chat(saver, "t", "first", "second")
    threads = Threads(saver, ttl=60)
    assert found(threads, "first") == [("t", 0), ("t", 1)]
    threads.sweep(now=datetime.now(UTC) + timedelta(hours=1))
    assert found(Threads(saver), "first") == []
    assert (
        rows(saver, "SELECT count(*) FROM search")
        == rows(saver, "SELECT count(*) FROM search_message")
        == [(0,)]
    )


# -- where it cannot be searched -------------------------------------------------------------------


def test_a_serializer_of_the_applications_own_hides_messages_from_search(url: str) -> None:
    with DeltaSaver.open(url, serde=JsonPlusSerializer()) as saver:
        chat(saver, "t", "word")
        for call in (
            Threads(saver).enable_search,
            Threads(saver).rebuild_search,
            lambda: Threads(saver).search("word"),
        ):
            with pytest.raises(SearchUnavailable, match="serializer"):
                call()
        Threads(saver.log).enable_search()
        chat(saver, "t", "word")
        assert Threads(saver.log).search("word") == []
        assert_sound(saver)


def test_role_time_and_limit_narrow_a_search_and_what_cannot_be_asked_makes_no_index(
    saver: DeltaSaver,
) -> None:
    threads, ago = Threads(saver), datetime.now(UTC) - timedelta(minutes=1)
    for wrong in (
        *({"text": 5}, {"limit": 0}, {"limit": True}, {"role": "robot"}),
        *({"since": datetime(2026, 1, 1)}, {"thread": ""}),
    ):
        with pytest.raises(InvalidInput):
            threads.search(**{"text": "word", **wrong})  # type: ignore[arg-type]
    assert not has_index(saver)
    history = ThreadChatMessageHistory("t", saver)
    texts = [HumanMessage("word word"), AIMessage("word"), ToolMessage("word", tool_call_id="c")]
    history.add_messages([SystemMessage("word"), *texts])
    roles: Any = ("system", "human", "ai", "tool")
    assert [found(threads, "word", role=role) for role in roles] == [[("t", n)] for n in range(4)]
    assert len(threads.search("word", limit=2)) == 2
    assert found(threads, "word", since=ago + timedelta(minutes=2)) == []
    assert len(found(threads, "word", since=ago)) == 4


COMMANDS = (
    *('" OR 1=1 --', "NEAR(a b, 3)", "words:a", "a*b^c", "\0", "\ud800"),
    *("-a +b", "'; DROP TABLE item", "“”", "a" * 9999),
)


@pytest.mark.parametrize("few", [True, False], ids=["read", "by index"])
def test_the_fuller_message_comes_first_nobody_finds_what_is_anothers_and_no_text_is_a_command(
    saver: DeltaSaver, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not few:
        monkeypatch.setattr("langmem_ext.storage.search.find.READ", 0)
    texts = [
        "the parcel and the other things that came with it",
        "parcel, the parcel",
        "the the the the parcel",
    ]
    ThreadChatMessageHistory("t", saver).add_messages(
        [HumanMessage(text, id=str(at)) for at, text in enumerate(texts)]
    )
    ThreadChatMessageHistory("other", saver).add_messages([HumanMessage("the rest", id="r")])
    threads = Threads(saver)
    hits = threads.search("the parcel", thread="t")
    assert [hit.message_id for hit in hits][0] == "1"
    assert {hit.message_id for hit in hits} == {"0", "1", "2"}
    assert [hit.rank for hit in hits] == sorted((hit.rank for hit in hits), reverse=True)
    for owner in ("u1", "u2"):
        ThreadChatMessageHistory(f"of {owner}", saver, owner=owner).add_messages(
            [HumanMessage(f"a word of {owner}")]
        )
    assert found(Threads(saver, owner="u1"), "word") == [("of u1", 0)]
    assert found(threads, "word", owner="u2") == [("of u2", 0)]
    assert len(found(threads, "word")) == 2
    with pytest.raises(ThreadNotFound):
        Threads(saver, owner="u1").search("word", thread="of u2")
    with pytest.raises(InvalidInput):
        Threads(saver, owner="u1").search("word", owner="u2")
    for text in COMMANDS:
        assert threads.search(text, owner="u1") == threads.search(text, thread="other") == [], text


@pytest.mark.parametrize("backend", KEPT, ids=lambda backend: backend.name)
def test_a_database_that_can_only_be_read_is_searched_as_far_as_it_is_indexed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langmem_ext.storage.search.catch_up.AT_ONCE", 3)
    with DeltaSaver.open(url) as saver:
        chat(saver, "t1", "word one")
        chat(saver, "t2", *["word two"] * 5)
    for_reading = f"{url}&mode=ro" if "?" in url else f"sqlite:///{url}?mode=ro"
    with (
        DeltaSaver.open(for_reading) as reading,
        pytest.raises(SearchUnavailable, match="write access"),
    ):
        Threads(reading).search("word")
    with DeltaSaver.open(url) as saver:
        begin_index(saver, 2)
    with DeltaSaver.open(for_reading) as reading, pytest.warns(UserWarning, match="is incomplete"):
        assert 2 <= len(found(Threads(reading), "word")) < 12
    with DeltaSaver.open(url) as saver:
        Threads(saver).enable_search()
    with DeltaSaver.open(for_reading) as reading, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(found(Threads(reading), "word")) == 12


# -- the index itself ------------------------------------------------------------------------------


DAMAGES = (
    "UPDATE search SET words = ' other '",
    "DELETE FROM search_message",
    "UPDATE search_message SET number = number + 1",
    "UPDATE search_message SET marked = number",
    "UPDATE thread SET indexed = NULL",
    "DROP TABLE search",
)
SQLITE_DAMAGES = (
    "DELETE FROM search WHERE rowid = (SELECT min(rowid) FROM search)",
    "INSERT INTO search (rowid, words) VALUES ((1 << 32) + 999, ' ghost ')",
    "INSERT INTO search (rowid, words) VALUES ((77 << 32) + 1, ' ghost ')",
    "DELETE FROM search_data WHERE id > 10",
)
POSTGRES_DAMAGES = (
    "DELETE FROM search WHERE number = 0",
    (
        "INSERT INTO search (thread, stored, number, words) SELECT number, 1, 999, ' ghost ' FROM"
        " thread"
    ),
    "UPDATE search SET stored = stored + 1",
    "UPDATE search SET owner = 5",
)
BY_BACKEND = {"postgres": (*DAMAGES, *POSTGRES_DAMAGES), "file": (*DAMAGES, *SQLITE_DAMAGES)}


@pytest.mark.parametrize(
    ("backend", "damage"),
    [
        pytest.param(backend, damage, id=f"{backend.name}: {damage}")
        for backend in KEPT
        for damage in BY_BACKEND[backend.name]
    ],
)
def test_the_doctor_finds_what_is_wrong_with_the_index_and_mends_it(
    saver: DeltaSaver, damage: str
) -> None:
    chat(saver, "t1", "word one", "word two")
    chat(saver, "t2", "word three")
    threads = Threads(saver)
    before = found(threads, "word")
    assert_sound(saver)
    spoil(saver, damage)
    seen = [
        finding
        for finding in examine(saver, fix="search_data" in damage).findings
        if finding.severity != "note"
    ]
    assert {finding.kind for finding in seen} == {"search"}
    assert all(finding.fixable for finding in seen)
    examine(saver, fix=True)
    assert_sound(saver)
    assert found(threads, "word") == before
    assert found(threads, "ghost") == []


@pytest.mark.parametrize("backend", SQLITE, ids=lambda backend: backend.name)
def test_a_damaged_index_says_how_it_is_mended(saver: DeltaSaver) -> None:
    chat(saver, "t", *["word"] * 3)
    threads = Threads(saver)
    threads.enable_search()
    spoil(saver, "UPDATE search_data SET block = x'00' WHERE id > 10")
    with pytest.raises(StorageError, match="search index .* doctor --fix"):
        threads.search("word")
    examine(saver, fix=True)
    assert len(threads.search("word")) == 6


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("backend", SQLITE, ids=lambda backend: backend.name)
def test_after_compact_nothing_of_a_deleted_message_stands_in_the_file(
    url: str, full: bool
) -> None:
    with DeltaSaver.open(url) as saver:
        Threads(saver).enable_search()
        for number in range(30):
            ThreadChatMessageHistory(f"t{number}", saver).add_messages(
                [HumanMessage(f"unmistakable{number} stays")]
            )
        for number in range(0, 30, 2):
            Threads(saver).rename(f"t{number}", "untitled")
            Threads(saver).delete(f"t{number}")
        saver.compact(full=full)
        data = b"".join(Path(f"{url}{end}").read_bytes() for end in ("", "-wal"))
        # FTS5 keeps a term without what it shares with the one before: the digits are what tells
        # two of these apart.
        assert all(f"unmistakable{number} ".encode() not in data for number in range(0, 30, 2))
        assert list(rows(saver, "SELECT value FROM setting WHERE name = 'search_stale'")) == []
        assert len(Threads(saver).search("unmistakable")) == 15
        assert_sound(saver)
