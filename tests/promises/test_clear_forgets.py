"""A chat history's `clear()` forgets what was said, and says where it is left."""

from __future__ import annotations

import io
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.types import Command
from savers import Calls
from small_graphs import asking_for, chain, config, echo, saying

from langmem_ext import ConversationMemory, DeltaSaver, ThreadChatMessageHistory, Threads, examine

WORD = "marzipan"
"""What is said, and is nowhere else."""


def said() -> list[BaseMessage]:
    return [HumanMessage(f"I like {WORD}"), AIMessage(f"Everybody likes {WORD}.")]


def places_of(saver: DeltaSaver) -> list[str]:
    """Where a reader still finds the word."""
    threads, found = Threads(saver), []
    for form in ("jsonl", "markdown"):
        exported = io.StringIO()
        threads.export_to(exported, format=form)  # type: ignore[arg-type]
        found += ["export"] * (WORD in exported.getvalue())
    found += ["search"] * bool(threads.search(WORD))
    found += ["title"] * any(WORD in (thread.title or "") for thread in threads.list())
    found += ["checkpoint"] * any(WORD in repr(stored) for stored in saver.list(None))
    return found


async def test_nothing_of_a_cleared_history_is_left(saver: DeltaSaver, calls: Calls) -> None:
    history, echoing = ThreadChatMessageHistory("t", saver), chain(echo, saver=saver)
    history.add_messages(said())
    echoing.invoke({"messages": [HumanMessage(f"More {WORD}!")]}, config())
    ThreadChatMessageHistory("other", saver).add_messages([HumanMessage("something else")])
    assert places_of(saver) == ["export", "export", "search", "title", "checkpoint"]

    assert await calls.call(history, "clear") == []

    assert history.messages == []
    assert places_of(saver) == []
    assert saver.get_tuple(config()) is not None, "the thread goes on"
    assert Threads(saver).messages("other")
    echoing.invoke({"messages": [HumanMessage("and now?")]}, config())
    assert [message.content for message in history.messages] == ["and now?", "You said: and now?"]
    assert Threads(saver).get("t").title == "and now?"
    assert {finding.severity for finding in examine(saver.log).findings} <= {"note"}


def test_the_words_are_gone_from_the_file(tmp_path: Path) -> None:
    place = tmp_path / "memory.db"
    with DeltaSaver.open(place) as saver:
        history = ThreadChatMessageHistory("t", saver)
        history.add_messages(said())
        history.clear()
        saver.compact()
    assert all(WORD.encode() not in file.read_bytes() for file in tmp_path.iterdir())


async def test_a_copy_keeps_its_own_and_is_named(saver: DeltaSaver, calls: Calls) -> None:
    history = ThreadChatMessageHistory("t", saver)
    history.add_messages(said())
    copy = Threads(saver).fork("t", to="copy")
    Threads(saver).fork("copy", to="copy-of-copy")
    assert await calls.call(history, "clear") == ["copy", "copy-of-copy"]
    assert len(ThreadChatMessageHistory(copy.id, saver).messages) == 2
    assert await calls.call(ThreadChatMessageHistory("copy-of-copy", saver), "clear") == []
    assert await calls.call(history, "clear") == ["copy"]
    assert await calls.call(ThreadChatMessageHistory("copy", saver), "clear") == []
    assert places_of(saver) == []


def test_an_owner_is_told_of_its_own_copies_alone(saver: DeltaSaver) -> None:
    ann, bob = (ThreadChatMessageHistory(of, saver, owner=of) for of in ("ann", "bob"))
    for history in (ann, bob):
        history.add_messages(said())
    Threads(saver, owner="ann").fork("ann", to="hers")
    assert (ann.clear(), bob.clear()) == (["hers"], [])
    assert len(ThreadChatMessageHistory("hers", saver).messages) == 2


async def test_a_branch_of_the_thread_keeps_what_it_refers_to(
    saver: DeltaSaver, calls: Calls
) -> None:
    graph = chain(echo, saver=saver)
    graph.invoke({"messages": [HumanMessage(f"I like {WORD}")]}, config())
    earlier = graph.get_state(config()).config
    graph.invoke({"messages": [HumanMessage("one way")]}, config())
    branch = graph.get_state(config()).config
    graph.invoke({"messages": [HumanMessage("another way")]}, earlier)
    history = ThreadChatMessageHistory("t", saver)
    assert await calls.call(history, "clear") == ["t"]
    assert history.messages == []
    kept = [message.content for message in graph.get_state(branch).values["messages"]]
    assert kept == [f"I like {WORD}", f"You said: I like {WORD}", "one way", "You said: one way"]
    assert not Threads(saver).search("another")


async def test_a_question_that_waits_is_asked_again(saver: DeltaSaver, calls: Calls) -> None:
    graph = chain(asking_for("your name?", "Hello {}"), saver=saver)
    graph.invoke({"messages": [HumanMessage(WORD)]}, config())
    history = ThreadChatMessageHistory("t", saver)
    assert await calls.call(history, "clear") == []
    assert places_of(saver) == []
    assert graph.invoke(None, config())["__interrupt__"][0].value == "your name?"
    graph.invoke(Command(resume="Ann"), config())
    assert [message.content for message in history.messages] == ["Hello Ann"]


async def test_what_a_subgraph_saw_is_forgotten_too(saver: DeltaSaver, calls: Calls) -> None:
    inner = chain(saying(AIMessage(f"inside: {WORD}")))
    graph = chain(inner, saver=saver)
    graph.invoke({"messages": [HumanMessage(WORD)]}, config())
    assert len(list(saver.list(config()))) > 3
    assert await calls.call(ThreadChatMessageHistory("t", saver), "clear") == []
    assert places_of(saver) == []


async def test_what_was_set_aside_before_is_forgotten_too(saver: DeltaSaver, calls: Calls) -> None:
    history = ThreadChatMessageHistory("t", saver)
    history.add_messages(said())
    Threads(saver).clear("t")
    assert "checkpoint" in places_of(saver) or "search" in places_of(saver)
    assert await calls.call(history, "clear") == []
    assert places_of(saver) == []


async def test_a_session_is_cleared_as_a_history_is(saver: DeltaSaver, calls: Calls) -> None:
    session = ConversationMemory(saver).for_session("t")
    ThreadChatMessageHistory("t", saver).add_messages(said())
    session.merge({"sweet": WORD})
    Threads(saver).fork("t", to="copy")
    assert await calls.call(session, "clear") == ["copy"]
    Threads(saver).delete("copy")
    assert places_of(saver) == []


def test_a_thread_that_is_not_there_is_not_made(saver: DeltaSaver) -> None:
    assert ThreadChatMessageHistory("nobody", saver).clear() == []
    assert Threads(saver).list() == []
