"""Promise: what people do with conversations is done from within a chat, at a terminal or in a
pipe, and no question that waits is lost.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pexpect
import pytest
from commands import chat, run
from langchain_core.language_models import FakeListChatModel
from patience import until

from langmem_ext import DeltaSaver, Threads, TurnFile, examine

PROMPT = "you [^ ]*›"


def state_of(thread: str) -> dict[str, Any]:
    with DeltaSaver.open("memory.db") as saver:
        found = saver.get_tuple({"configurable": {"thread_id": thread}})
    assert found is not None
    return found.checkpoint["channel_values"]


def stored(thread: str) -> set[str]:
    """The texts of all messages that any checkpoint of a thread has."""
    with DeltaSaver.open("memory.db") as saver:
        return {
            message.text
            for found in saver.list({"configurable": {"thread_id": thread}})
            for message in found.checkpoint["channel_values"].get("messages", ())
        }


def threads() -> list[str]:
    with Threads("memory.db") as threads:
        return [thread.id for thread in threads.each(status=None)]


def said(text: str) -> list[str]:
    """What the user said, in a history that was printed."""
    return [line[5:] for line in text.splitlines() if line.startswith("you: ")]


def table_of(text: str) -> dict[str, str]:
    """A table in a pipe: its rows are lines with a tab."""
    return dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)


def change(statement: str) -> None:
    """Change the database as no command does."""
    with closing(sqlite3.connect("memory.db")) as connection, connection:
        connection.execute(statement)


# -- which conversation ----------------------------------------------------------------------------


def test_a_chat_goes_on_with_the_latest_or_with_one_that_is_named(folder: Path) -> None:
    for words in (["--continue"], ["--resume", "x"]):
        assert "memory.db not found" in chat(*words, lines=["hello"], code=1).stderr
    assert not (folder / "memory.db").exists()
    DeltaSaver.open("memory.db").close()
    assert "no conversation to continue" in chat("--continue", lines=["hello"], code=1).stderr
    chat("--thread", "order-1", lines=["I want to check my order"])
    chat("--thread", "order-2", lines=["a broken lamp"])
    assert "thread order-2 in" in chat("--continue", lines=[]).stderr
    resumed = chat("--resume", "order-1", lines=["O-12345"])
    assert "What's your order ID?" in resumed.stderr
    assert resumed.stdout.startswith("Order O-12345 is")
    assert "thread order-1 in" in chat("-c", lines=[]).stderr
    for title in ("a broken lamp", "broken"):
        assert "thread order-2 in" in chat("-r", title, lines=[]).stderr
    chat("--thread", "another", lines=["the broken chair"])
    for words, code, told in (
        (["--resume", "order"], 2, "several threads"),
        (["--resume", "broken"], 2, "several threads have in their titles 'broken'"),
        (["--resume", "zzz"], 1, "thread 'zzz' not found"),
        (["--resume", "x", "--thread", "y"], 2, "pass only one"),
    ):
        assert told in chat(*words, lines=["hello"], code=code).stderr


def test_a_new_conversation_is_begun_beside_the_others() -> None:
    chat(lines=["I want to check my order"])
    first = chat("--new", lines=["hello", "/new", "hello again", "/new lamp", "a broken lamp"])
    assert "(new); /help" in first.stderr
    assert "What's your order ID?" not in first.stderr
    found = threads()
    assert (len(found), found[0], found[-1]) == (4, "lamp", "default")
    assert said(chat("-t", "lamp", lines=["/history"]).stdout) == ["a broken lamp"]
    beginning = (
        "thread default in memory.db (2 messages, just now: I want to check my order); /help"
    )
    assert beginning in chat(lines=[]).stderr


def test_the_owner_of_a_chat_is_named_as_with_the_other_commands() -> None:
    chat("--thread", "t", "--owner", "ann", lines=["hello"])
    told = chat("--resume", "t", "--owner", "bob", lines=["hello"], code=1).stderr
    assert "thread 't' not found" in told
    chat("--thread", "t", "--owner", "bob", lines=["hello"], code=1)
    with Threads("memory.db", owner="ann") as hers:
        assert [(thread.id, thread.messages) for thread in hers.each()] == [("t", 2)]


# -- in a pipe -------------------------------------------------------------------------------------


def test_conversations_are_listed_loaded_copied_named_and_searched() -> None:
    chat("--thread", "order-1", lines=["I want to check my order"])
    lines = [
        "hello there",
        "/title The lamp",
        "/sessions",
        "/load order-1",
        "/fork copy",
        "O-12345",
    ]
    done = chat("--thread", "t2", "--json", lines=lines)
    _, first, second, answer = map(json.loads, done.stdout.splitlines())
    assert [(row["id"], row["title"]) for row in (first, second)] == [
        ("t2", "The lamp"),
        ("order-1", "I want to check my order"),
    ]
    assert done.stderr.count("What's your order ID?") == 2
    assert answer["reply"].startswith("Order O-12345 is")
    assert sorted(threads()) == ["copy", "order-1", "t2"]
    found = chat("--continue", lines=["/search check my order", "/sessions", "/load lamp"])
    assert "thread copy" in found.stderr
    assert "thread t2" in found.stderr
    assert {line.split("\t")[0] for line in found.stdout.splitlines()} == {"copy", "order-1", "t2"}


def test_in_a_pipe_what_is_refused_ends_the_chat_before_the_next_message_goes_astray() -> None:
    chat("--thread", "other", lines=["a broken lamp"])
    for line, code, message in (
        ("/load nowhere", 1, "thread 'nowhere' not found"),
        ("/load", 2, "which conversation?"),
        ("/search", 2, "nothing to search for"),
        ("/nothing", 2, "unknown command /nothing"),
        ("/help nothing", 2, "unknown command /nothing"),
        ("/new other", 2, "thread 'other' exists already"),
        ("/forget", 2, "needs a confirmation"),
        ("/forget a broken lamp", 2, "type /forget a broken lamp --yes"),
        ("/forget broken --yes", 1, "thread 'broken' not found"),
        ("/export memory.db", 2, "is a database"),
    ):
        done = chat("--thread", "t", lines=["hello", line, "this goes astray"], code=code)
        assert message in done.stderr, line
        assert len(done.stdout.splitlines()) == 1, line
    assert "this goes astray" not in stored("t")
    for line in ("/export", "/save copy.md", "/title Lamps", "/title", "/fork", "/forget --yes"):
        assert "no messages yet" in chat("--new", lines=[line], code=2).stderr
    assert sorted(threads()) == ["other", "t"]
    assert not Path("copy.md").exists()


def test_help_says_what_a_command_takes() -> None:
    told = chat(lines=["/help", "/help load"]).stderr.splitlines()
    line = (
        "langmem-ext: /load ID        continue another conversation: a prefix of its id, or words"
        " of its title"
    )
    assert told.count(line) == 2


def test_a_cleared_conversation_still_waits_and_keeps_what_was_said() -> None:
    lines = [
        "I want a refund",
        "/clear",
        "/history",
        "/title Mine",
        "O-12345",
        "/history",
        "/clear",
    ]
    done = chat("--thread", "t", lines=lines)
    assert "messages removed from the context" in done.stderr
    assert done.stderr.count("What's your order ID?") == 1
    assert said(done.stdout) == ["O-12345"]
    assert "deleted 0 threads" in run("prune", "--keep-last", "1", "--yes").stderr
    assert stored("t") >= {"I want a refund", "O-12345"}
    assert examine("memory.db").ok
    assert "nothing to clear" in chat("--thread", "new", lines=["/clear"]).stderr


ASKING_GRAPH = """
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt


def ask(state):
    return {"messages": [("ai", f"{state['messages'][-1].text}: {interrupt('how many?')}")]}


asking = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask")
"""


def test_the_question_of_another_graph_is_answered_before_its_conversation_is_cleared(
    folder: Path,
) -> None:
    (folder / "asking.py").write_text(ASKING_GRAPH)
    graph = ["--graph", "asking.py:asking"]
    assert "answer it first" in chat(*graph, lines=["lamps", "/clear", "3"], code=2).stderr
    done = chat(*graph, lines=["/title Lamps", "/fork copy", "3", "/history", "/clear", "/history"])
    assert "no messages since /clear" in done.stderr
    assert "agent: lamps: 3" in done.stdout
    assert done.stdout.count("agent: ") == 1
    assert stored("copy") == {"lamps", "lamps: 3"}
    done = chat(*graph, lines=["/compact"], code=1)
    assert "derive its state from ContextState" in done.stderr


def test_parameters_are_shown_but_for_those_that_are_sensitive() -> None:
    address = "4 Elm Street, Springfield"
    lines = ["/params", "change the address of O-778", "/params", address, "/params"]
    done = chat(lines=lines)
    assert "no parameters are known" in done.stderr
    shown = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
    assert shown == [["order_id", "O-778"], ["address", "•••"], ["order_id", "O-778"]]


def test_the_files_that_a_conversation_has_named_are_listed() -> None:
    with DeltaSaver.open("memory.db") as saver:
        thread = Threads(saver).begin("review")
        thread.say("look", files=[TurnFile("old.py", "one"), "notes.md"])
        thread.say("again", files=[TurnFile("new\x1b[2J.py", "two"), TurnFile("old.py", "three")])
    new, old = (sha256(text).hexdigest() for text in (b"two", b"three"))
    assert chat("--thread", thread.id, lines=["/files"]).stdout.splitlines() == [
        f"new�[2J.py\t{new[:12]}",
        f"old.py\t{old[:12]}",
        "notes.md\tno content",
    ]
    assert "no files mentioned" in chat("--new", lines=["/files"]).stderr
    most = {"LANGMEM_EXT_MAX_RECENT_FILES": "2"}
    done = chat("--thread", thread.id, "--json", lines=["/files"], **most)
    assert [*map(json.loads, done.stdout.splitlines())] == [
        {"path": "new\x1b[2J.py", "sha256": new},
        {"path": "old.py", "sha256": old},
    ]
    assert "1 older files are not shown (the setting max_recent_files)" in done.stderr


def test_a_conversation_is_written_to_a_file_or_shown(folder: Path) -> None:
    lines = ["hello", "/save", "/save kept.jsonl.gz", "/export page.md", "/export", "/shrink"]
    done = chat(lines=lines)
    assert "every turn is stored" in done.stderr
    assert "written to kept.jsonl.gz as JSON lines: 2 messages" in done.stderr
    assert "bytes smaller" in done.stderr
    assert (folder / "page.md").read_text(encoding="utf-8").startswith("# hello")
    assert "# hello" in done.stdout
    with DeltaSaver.open(":memory:") as saver:
        assert [*Threads(saver).import_from("kept.jsonl.gz", keep_ids=True).ids] == ["default"]
    assert examine("memory.db").ok


def test_deleting_is_for_those_who_mean_it(folder: Path) -> None:
    chat("--thread", "other", lines=["a broken lamp"])
    green = ["a green chair", "/history", "/forget --yes", "/history"]
    done = chat(lines=[*green, "/delete oth --yes", "/delete zzz --yes"], code=1)
    assert "no messages yet" in done.stderr
    assert said(done.stdout) == ["a green chair"]
    assert "thread 'zzz' not found" in done.stderr
    assert threads() == []
    held = b"".join(path.read_bytes() for path in folder.glob("memory.db*"))
    assert b"green chair" not in held
    assert b"broken lamp" not in held


# -- compaction ------------------------------------------------------------------------------------

TALK = ["hello"] + ["what is the weather like, and " + "so on and so forth, " * 30] * 4


def test_all_but_the_newest_turn_is_summed_up_on_demand() -> None:
    address = ["change the address of O-778 to 4 Elm Street", "yes", "thanks"]
    done = chat(lines=["/compact", "hello", "/compact", *TALK, *address, "/compact"])
    assert done.stderr.count("nothing worth compacting yet") == 2, (
        "not of what is not there, nor of what is short"
    )
    table, values = table_of(done.stdout), state_of("default")
    assert table["messages of the conversation"] == str(len(values["messages"]))
    assert table["left out"] == f"{len(values['messages']) - 2} messages replaced by an extract"
    before, after = (int(number.replace(",", "")) for number in table["tokens"].split(" → "))
    assert after < before * 0.8
    assert values["summary"]["through"] == values["messages"][-3].id
    assert "Elm Street" not in values["summary"]["text"]
    assert "nothing worth compacting yet" in chat(lines=["/compact"]).stderr
    assert examine("memory.db").ok

    done = chat("--new", "--json", lines=[*TALK, "I want to check my order", "/compact", "O-12345"])
    told, answer = map(json.loads, done.stdout.splitlines()[-2:])
    assert (told["messages"], told["shown"], told["by"]) == (12, 2, "extract")
    assert done.stderr.count("What's your order ID?") == 1, "it is shown again"
    assert answer["reply"].startswith("Order O-12345 is")


GRAPHS_WITH_A_CONTEXT = """
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from langmem_ext import ContextMiddleware, ContextState


def governed(saver, governor, model=None):
    def answer(state):
        if state["messages"][-1].text == "ask":
            return {"messages": [("ai", interrupt("what?"))]}
        return {"messages": [("ai", f"{len(state['llm_input_messages'])} " + "word " * 60)]}

    builder = StateGraph(ContextState).add_node("govern", governor).add_node("answer", answer)
    return builder.add_edge(START, "govern").add_edge("govern", "answer")


def agent(saver):
    model = FakeListChatModel(responses=["word " * 60])
    return create_agent(model, middleware=[ContextMiddleware(budget=8_000)], checkpointer=saver)
"""


class NamedModel(FakeListChatModel):
    """A double of a chat model, which says its own name, or fails."""

    def _call(self, *given: Any, **named: Any) -> str:
        if self.responses == ["fail"]:
            raise TimeoutError("no answer")
        return super()._call(*given, **named)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name of a model is one; a governor counts without a model."""
    monkeypatch.setattr(
        "langchain.chat_models.init_chat_model", lambda name: NamedModel(responses=[name])
    )
    monkeypatch.setenv("LANGMEM_EXT_VERIFY_SUMMARY", "false")
    monkeypatch.setenv("LANGMEM_EXT_TOKEN_COUNTER", "approximate")


@pytest.mark.usefixtures("models")
def test_a_governed_conversation_is_compacted_by_the_model_it_is_led_with(folder: Path) -> None:
    (folder / "app.py").write_text(GRAPHS_WITH_A_CONTEXT)
    graph = ["--graph", "app.py:governed"]
    fails = {"LANGMEM_EXT_SUMMARIZATION_MODEL": "fail"}
    asked = [f"question {number} " + "more " * 40 for number in range(6)]
    failed = chat(*graph, lines=[*asked, "/compact"], code=1, **fails)
    assert "nothing was compacted: the model failed with TimeoutError" in failed.stderr
    assert "context_events" not in state_of("default")
    model = ["--model", "The user asks numbered questions; each was answered."]
    lines = ["/compact", "and now?", "/compact", "ask", "/compact"]
    done = chat(*graph, *model, lines=lines, code=1, **fails)
    assert "messages of the conversation\t12" in done.stdout
    assert "replaced by a model's summary" in done.stdout
    answer = next(line for line in done.stdout.splitlines() if "word word" in line)
    assert int(answer.split()[0]) < 12, "as many messages were sent"
    assert len(state_of("default")["messages"]) == 15
    assert "the turn of the thread is unfinished" in done.stderr


@pytest.mark.usefixtures("models")
def test_the_order_desks_summary_is_written_by_the_model_that_the_settings_name() -> None:
    setting = "LANGMEM_EXT_SUMMARIZATION_MODEL"
    chat(lines=[*TALK, *TALK], **{setting: "The user talks about the weather."})
    written = state_of("default")["summary"]
    assert "The user talks about the weather." in written["text"]
    failed = chat(lines=["/compact"], code=1, **{setting: "fail"})
    assert "the model failed with TimeoutError: no answer" in failed.stderr
    assert state_of("default")["summary"] == written
    done = chat(
        lines=["/compact"], **{setting: "The user talks about the weather, again and again."}
    )
    assert "replaced by a model's summary" in done.stdout
    assert "again and again" in state_of("default")["summary"]["text"]


@pytest.mark.usefixtures("models")
def test_an_agents_conversation_is_compacted_and_goes_on(folder: Path) -> None:
    (folder / "app.py").write_text(GRAPHS_WITH_A_CONTEXT)
    lines = [*(f"question {number}" for number in range(8)), "/compact", "and now?"]
    done = chat("--graph", "app.py:agent", "--json", lines=lines)
    table, answer = map(json.loads, done.stdout.splitlines()[-2:])
    assert (table["messages"], table["by"]) == (16, "extract")
    assert table["after"] < table["before"] / 2
    assert answer["reply"].startswith("word")
    values = state_of("default")
    assert len(values["messages"]) == 18
    assert [event["kind"] for event in values["context_events"]] == ["cut"]


# -- settings --------------------------------------------------------------------------------------


def test_a_conversation_has_as_many_turns_as_the_settings_allow() -> None:
    most = {"LANGMEM_EXT_MAX_TURNS": "1"}
    chat(lines=["hello", "hello again"], **most)
    shown = chat(lines=["/history"], **most)
    assert "1 earlier turns are not shown" in shown.stderr
    assert said(shown.stdout) == ["hello again"]
    most["LANGMEM_EXT_ON_LIMIT"] = "error"
    assert "the maximum is 1" in chat(lines=["one more"], code=1, **most).stderr
    chat(lines=["/clear", "I want to check my order", "O-12345"], **most)


@pytest.mark.process
def test_expired_conversations_are_deleted_while_a_chat_runs_if_the_settings_say_so(
    terminal: Callable[..., pexpect.spawn],
) -> None:
    for thread in ("old", "older"):
        chat("--thread", thread, lines=["hello"])
    chat("--thread", "waits", lines=["I want to check my order"])
    change("UPDATE thread SET updated_at = 0")
    chat("--thread", "new", lines=["hello"])
    assert sorted(threads()) == ["new", "old", "older", "waits"]
    expire = {"LANGMEM_EXT_AUTO_PRUNE_DAYS": "1", "LANGMEM_EXT_SWEEP_INTERVAL_MINUTES": "0"}
    assert "has expired" in chat("--resume", "old", lines=[], code=1, **expire).stderr
    loaded = chat("--thread", "new", lines=["/load older"], code=1, **expire)
    assert "has expired" in loaded.stderr
    chat("--thread", "new", lines=["/delete older --yes"], **expire)
    assert sorted(threads()) == ["new", "old", "waits"]
    expire["LANGMEM_EXT_SWEEP_INTERVAL_MINUTES"] = "15"
    terminal("chat", "--thread", "new", **expire).expect(PROMPT)
    until(lambda: "old" not in threads(), "nothing was swept")
    assert sorted(threads()) == ["new", "waits"]


def test_a_damaged_conversation_is_an_error_or_is_left_alone_as_the_settings_say() -> None:
    chat("--thread", "t", lines=["hello"])
    change("UPDATE checkpoint SET body = x'00'")
    assert "damaged" in chat("--thread", "t", lines=["hello"], code=1).stderr
    lines, skip = ["I want to check my order"], {"LANGMEM_EXT_ON_DAMAGE": "skip"}
    done = chat("--thread", "t", lines=lines, **skip)
    assert "thread t is damaged, so a new one is started" in done.stderr
    assert done.stdout == "What's your order ID?\n"
    assert len(threads()) == 2


# -- at a terminal ---------------------------------------------------------------------------------


@pytest.mark.process
def test_at_a_terminal_conversations_are_completed_loaded_and_deleted(
    terminal: Callable[..., pexpect.spawn],
) -> None:
    chat("--thread", "lamp-1", lines=["where is my lamp"])
    child = terminal("chat")
    for typed, *shown in (
        ("I want to check my order\r", "What's your order ID"),
        ("/sessions\r", "where is my lamp"),
        ("/load lam", "lamp-1"),
        ("\t\r", "thread lamp-1"),
        ("/forget\r", r"permanently\? \[y/N\]"),
        ("n\r", "nothing was deleted"),
        ("/forget\r", r"permanently\? \[y/N\]"),
        ("y\r", "deleted lamp-1"),
        ("/load def\r", "What's your order ID"),
        ("/clear\r", "removed from the context", "What's your order ID"),
        ("O-12345\r", "Order O-12345 is"),
        ("/quit\r", pexpect.EOF),
    ):
        if typed not in ("\t\r", "n\r", "y\r"):
            child.expect(PROMPT)
        child.send(typed)
        for text in shown:
            child.expect(text)
    assert threads() == ["default"]


@pytest.mark.process
def test_what_was_typed_before_a_question_was_shown_is_no_yes_to_it(
    terminal: Callable[..., pexpect.spawn],
) -> None:
    child = terminal("chat")
    child.expect(PROMPT)
    child.send("cancel my order O-12345\ryes\r")
    child.expect("Shall I cancel")
    child.expect(PROMPT)
    child.send("/state\r")
    child.expect("waiting for.*confirmation")
    child.expect(PROMPT)
    child.send("yes\r")
    child.expect("is cancelled")


TOOL_THAT_ASKS = """
from langchain_core.tools import tool
from langgraph.types import interrupt

from graphs.shop import TOOLS
from graphs.support import catalog
from langmem_ext import build_waiting_graph


@tool
def cancel_order(order_id: str) -> str:
    'Cancel an order.'
    return f"{order_id}: {interrupt('Which reason?')}"


def make_graph(saver):
    tools = [cancel_order if tool.name == "cancel_order" else tool for tool in TOOLS]
    return build_waiting_graph(catalog, tools).compile(checkpointer=saver)
"""


@pytest.mark.process
def test_a_chat_that_is_opened_again_shows_what_a_confirmed_tool_asks(
    terminal: Callable[..., pexpect.spawn],
) -> None:
    Path("asks.py").write_text(TOOL_THAT_ASKS, "utf-8")
    chat("--graph", "asks.py:make_graph", lines=["cancel my order O-12345", "yes"])
    child = terminal("chat", "--graph", "asks.py:make_graph")
    child.expect("Which reason")
