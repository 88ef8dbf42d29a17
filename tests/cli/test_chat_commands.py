"""Promise: what people do with conversations is done from within a chat, at a terminal or in a
pipe, and no question that waits is lost.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pexpect
import pytest
from langchain_core.language_models import FakeListChatModel
from patience import PATIENCE_S, until
from typer.testing import CliRunner, Result

from langmem_ext import DeltaSaver, Threads, TurnFile, examine
from langmem_ext.cli.app import app
from langmem_ext.cli.chat.commands import COMMANDS, TAKES
from langmem_ext.storage.prune.clear import ASIDE

PROGRAM = [sys.executable, "-m", "langmem_ext.cli"]
PROMPT = "you [^ ]*›"


pytestmark = pytest.mark.usefixtures("folder")


def chat(*arguments: str, lines: list[str], code: int = 0) -> Result:
    """A chat in a pipe."""
    done = CliRunner().invoke(
        app, ["chat", *arguments], input="".join(f"{line}\n" for line in lines)
    )
    assert done.exit_code == code, done.output
    return done


def messages_aside(thread: str) -> list[str]:
    with closing(DeltaSaver.open("memory.db")) as saver:
        found = saver.get_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ASIDE}})
    return (
        []
        if found is None
        else [message.text for message in found.checkpoint["channel_values"]["messages"]]
    )


def threads() -> list[str]:
    with closing(DeltaSaver.open("memory.db")) as saver:
        return [thread.id for thread in Threads(saver).each(status=None)]


def change(statement: str) -> None:
    """Change the database as no command does."""
    with closing(sqlite3.connect("memory.db")) as connection, connection:
        connection.execute(statement)


# -- which conversation ----------------------------------------------------------------------------


def test_a_chat_goes_on_with_the_latest_or_with_one_that_is_named() -> None:
    chat("--thread", "order-1", lines=["I want to check my order"])
    chat("--thread", "order-2", lines=["hello"])
    assert "thread order-2 in" in chat("--continue", lines=[]).stderr
    resumed = chat("--resume", "order-1", lines=["O-12345"])
    assert "What's your order ID?" in resumed.stderr
    assert resumed.stdout.startswith("Order O-12345 is")
    assert "thread order-1 in" in chat("-c", lines=[]).stderr
    assert "thread order-2 in" in chat("-r", "hello", lines=[]).stderr
    assert "several threads" in chat("--resume", "order", lines=[], code=2).stderr
    assert "thread 'zzz' not found" in chat("--resume", "zzz", lines=[], code=1).stderr
    assert "pass only one" in chat("--resume", "x", "--thread", "y", lines=[], code=2).stderr


def test_going_on_makes_no_database(folder: Path) -> None:
    for words in (["--continue"], ["--resume", "x"]):
        assert "memory.db not found" in chat(*words, lines=["hello"], code=1).stderr
    assert not (folder / "memory.db").exists()
    DeltaSaver.open("memory.db").close()
    assert "no conversation to continue" in chat("--continue", lines=["hello"], code=1).stderr


# -- in a pipe -------------------------------------------------------------------------------------


def test_conversations_are_listed_loaded_copied_named_and_searched() -> None:
    chat("--thread", "order-1", lines=["I want to check my order"])
    done = chat(
        "--thread",
        "t2",
        "--json",
        lines=[
            "hello there",
            "/title The lamp",
            "/sessions",
            "/load order-1",
            "/fork copy",
            "O-12345",
        ],
    )
    _, first, second, answer = [json.loads(line) for line in done.stdout.splitlines()]
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


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("/load nowhere", 1, "thread 'nowhere' not found"),
        ("/load", 2, "which conversation?"),
        ("/search", 2, "nothing to search for"),
        ("/nothing", 2, "unknown command /nothing"),
        ("/help nothing", 2, "unknown command /nothing"),
        ("/new other", 2, "thread 'other' exists already"),
        ("/forget", 2, "needs a confirmation"),
        ("/export memory.db", 2, "is a database"),
    ],
)
def test_in_a_pipe_what_is_refused_ends_the_chat_before_the_next_message_goes_astray(
    line: str, code: int, message: str
) -> None:
    chat("--thread", "other", lines=["a broken lamp"])
    done = chat(
        "--thread", "t", lines=["hello", line, "this is for another conversation"], code=code
    )
    assert message in done.stderr
    assert len(done.stdout.splitlines()) == 1
    assert "another conversation" not in chat("--thread", "t", lines=["/history"]).stdout


def test_a_new_conversation_is_begun_beside_the_others() -> None:
    chat(lines=["I want to check my order"])
    first = chat("--new", lines=["hello", "/new", "hello again", "/new lamp", "a broken lamp"])
    assert "(new); /help" in first.stderr
    assert "What's your order ID?" not in first.stderr
    found = threads()
    assert (len(found), found[0], found[-1]) == (4, "lamp", "default")
    assert [
        line
        for line in chat("-t", "lamp", lines=["/history"]).stdout.splitlines()
        if line.startswith("you: ")
    ] == ["you: a broken lamp"]
    going_on = chat(lines=[])
    assert (
        "thread default in memory.db (2 messages, just now: I want to check my order); /help"
        in going_on.stderr
    )


@pytest.mark.parametrize(
    "line", ["/export", "/save copy.md", "/title Lamps", "/title", "/fork", "/forget --yes"]
)
def test_of_a_conversation_without_a_word_there_is_nothing_to_keep(folder: Path, line: str) -> None:
    assert "no messages yet" in chat(lines=[line], code=2).stderr
    assert threads() == []
    assert not (folder / "copy.md").exists()


def test_the_owner_of_a_chat_is_named_as_with_the_other_commands() -> None:
    chat("--thread", "t", "--owner", "ann", lines=["hello"])
    assert (
        "thread 't' not found"
        in chat("--resume", "t", "--owner", "bob", lines=["hello"], code=1).stderr
    )
    chat("--thread", "t", "--owner", "bob", lines=["hello"], code=1)
    assert "an owner" in chat("--owner", "", lines=[], code=2).stderr
    with closing(DeltaSaver.open("memory.db", owner="ann")) as saver:
        assert [(thread.id, thread.messages) for thread in Threads(saver).each()] == [("t", 2)]


def test_help_says_what_a_command_takes() -> None:
    done = chat(lines=["/help", "/help load"])
    told = done.stderr.splitlines()
    assert (
        told.count(
            "langmem-ext: /load ID        continue another conversation: a prefix of its id, or"
            " words of its title"
        )
        == 2
    )
    assert set(TAKES) <= set(COMMANDS)


@pytest.mark.process
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
    assert "you: I want a refund" not in done.stdout
    assert "you: O-12345" in done.stdout
    said = messages_aside("t")
    assert (said[0], "O-12345" in said) == ("I want a refund", True)
    pruned = subprocess.run(
        [*PROGRAM, "prune", "--keep-last", "1", "--yes"], capture_output=True, text=True, check=True
    )
    assert "deleted 0 threads" in pruned.stderr
    assert messages_aside("t") == said
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
    assert messages_aside("copy") == ["lamps", "lamps: 3"]


def test_parameters_are_shown_but_for_those_that_are_sensitive() -> None:
    done = chat(
        lines=[
            "/params",
            "change the address of O-778",
            "/params",
            "4 Elm Street, Springfield",
            "/params",
        ]
    )
    assert "no parameters are known" in done.stderr
    shown = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
    assert shown == [["order_id", "O-778"], ["address", "•••"], ["order_id", "O-778"]]


def test_the_files_that_a_conversation_has_named_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with closing(DeltaSaver.open("memory.db")) as saver:
        thread = Threads(saver).begin("review")
        thread.say("look", files=[TurnFile("old.py", "one"), "notes.md"])
        thread.say("again", files=[TurnFile("new\x1b[2J.py", "two"), TurnFile("old.py", "three")])
    digests = [sha256(text).hexdigest() for text in (b"two", b"three")]
    named = ["new�[2J.py", "old.py", "notes.md"]
    lines = [
        f"{path}\t{content}"
        for path, content in zip(
            named, [*(digest[:12] for digest in digests), "no content"], strict=True
        )
    ]
    assert chat("--thread", thread.id, lines=["/files"]).stdout.splitlines() == lines
    assert "no files mentioned" in chat("--new", lines=["/files"]).stderr
    monkeypatch.setenv("LANGMEM_EXT_MAX_RECENT_FILES", "2")
    done = chat("--thread", thread.id, "--json", lines=["/files"])
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told == [
        {"path": "new\x1b[2J.py", "sha256": digests[0]},
        {"path": "old.py", "sha256": digests[1]},
    ]
    assert "1 older files are not shown (the setting max_recent_files)" in done.stderr


def test_a_conversation_is_written_to_a_file_or_shown(folder: Path) -> None:
    done = chat(
        lines=["hello", "/save", "/save kept.jsonl.gz", "/export page.md", "/export", "/shrink"]
    )
    assert "every turn is stored" in done.stderr
    assert "written to kept.jsonl.gz as JSON lines: 2 messages" in done.stderr
    assert "bytes smaller" in done.stderr
    assert (folder / "page.md").read_text(encoding="utf-8").startswith("# hello")
    assert "# hello" in done.stdout
    with closing(DeltaSaver.open(":memory:")) as saver:
        assert list(Threads(saver).import_from("kept.jsonl.gz", keep_ids=True).ids) == ["default"]
    assert examine("memory.db").ok


def state_of(thread: str) -> dict[str, Any]:
    with closing(DeltaSaver.open("memory.db")) as saver:
        found = saver.get_tuple({"configurable": {"thread_id": thread}})
    assert found is not None
    return found.checkpoint["channel_values"]


TALK = ["hello"] + ["what is the weather like, and " + "so on and so forth, " * 30] * 4


def test_all_but_the_newest_turn_is_summed_up_on_demand() -> None:
    done = chat(
        lines=[
            "/compact",
            "hello",
            "/compact",
            *TALK,
            "change the address of O-778 to 4 Elm Street",
            "yes",
            "thanks",
            "/compact",
        ]
    )
    assert done.stderr.count("nothing worth compacting yet") == 2, (
        "not of what is not there, nor of what is short"
    )
    table = dict(line.split("\t") for line in done.stdout.splitlines() if "\t" in line)
    values = state_of("default")
    assert table["messages of the conversation"] == str(len(values["messages"]))
    assert table["left out"] == f"{len(values['messages']) - 2} messages replaced by an extract"
    before, after = (int(number.replace(",", "")) for number in table["tokens"].split(" → "))
    assert after < before * 0.8
    assert values["summary"]["through"] == values["messages"][-3].id
    assert "Elm Street" not in values["summary"]["text"]
    assert "nothing worth compacting yet" in chat(lines=["/compact"]).stderr
    assert examine("memory.db").ok


def test_a_question_still_waits_when_its_conversation_was_compacted() -> None:
    done = chat("--json", lines=[*TALK, "I want to check my order", "/compact", "O-12345"])
    table, answer = [json.loads(line) for line in done.stdout.splitlines()[-2:]]
    assert (table["messages"], table["shown"], table["by"]) == (12, 2, "extract")
    assert done.stderr.count("What's your order ID?") == 1, "it is shown again"
    assert answer["reply"].startswith("Order O-12345 is")


GOVERNED_GRAPH = """
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from langmem_ext import ContextState


def make(saver, governor, model=None):
    def answer(state):
        if state["messages"][-1].text == "ask":
            return {"messages": [("ai", interrupt("what?"))]}
        return {"messages": [("ai", f"{len(state['llm_input_messages'])} " + "word " * 60)]}

    builder = StateGraph(ContextState).add_node("govern", governor).add_node("answer", answer)
    return builder.add_edge(START, "govern").add_edge("govern", "answer")
"""


class NamedModel(FakeListChatModel):
    """A double of a chat model, which says its own name, or fails."""

    def _call(self, *given: Any, **named: Any) -> str:
        if self.responses == ["fail"]:
            raise TimeoutError("no answer")
        return super()._call(*given, **named)


def test_a_governed_conversation_is_compacted_by_the_model_it_is_led_with(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "governed.py").write_text(GOVERNED_GRAPH)
    monkeypatch.setattr(
        "langchain.chat_models.init_chat_model", lambda name: NamedModel(responses=[name])
    )
    graph = ["--graph", "governed.py:make"]
    monkeypatch.setenv("LANGMEM_EXT_VERIFY_SUMMARY", "false")
    monkeypatch.setenv("LANGMEM_EXT_TOKEN_COUNTER", "approximate")
    monkeypatch.setenv("LANGMEM_EXT_SUMMARIZATION_MODEL", "fail")
    said = [f"question {number} " + "more " * 40 for number in range(6)]
    failed = chat(*graph, lines=[*said, "/compact"], code=1)
    assert "nothing was compacted: the model failed with TimeoutError" in failed.stderr
    assert "context_events" not in state_of("default")
    done = chat(
        *graph,
        "--model",
        "The user asks numbered questions; each was answered.",
        lines=["/compact", "and now?", "/compact", "ask", "/compact"],
        code=1,
    )
    shown = [line.partition("\t") for line in done.stdout.splitlines() if "\t" in line]
    assert shown[0][::2] == ("messages of the conversation", "12")
    assert any(
        name == "left out" and "replaced by a model's summary" in value for name, _, value in shown
    )
    assert int(next(line for line in done.stdout.splitlines() if "\t" not in line).split()[0]) < 12
    assert len(state_of("default")["messages"]) == 15
    assert "the turn of the thread is unfinished" in done.stderr


def test_the_order_desks_summary_is_written_by_the_model_that_the_settings_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "langchain.chat_models.init_chat_model", lambda name: NamedModel(responses=[name])
    )
    monkeypatch.setenv("LANGMEM_EXT_VERIFY_SUMMARY", "false")
    monkeypatch.setenv("LANGMEM_EXT_TOKEN_COUNTER", "approximate")
    monkeypatch.setenv("LANGMEM_EXT_SUMMARIZATION_MODEL", "The user talks about the weather.")
    chat(lines=[*TALK, *TALK])
    written = state_of("default")["summary"]
    assert "The user talks about the weather." in written["text"]
    monkeypatch.setenv("LANGMEM_EXT_SUMMARIZATION_MODEL", "fail")
    assert (
        "the model failed with TimeoutError: no answer" in chat(lines=["/compact"], code=1).stderr
    )
    assert state_of("default")["summary"] == written
    monkeypatch.setenv(
        "LANGMEM_EXT_SUMMARIZATION_MODEL", "The user talks about the weather, again and again."
    )
    assert "replaced by a model's summary" in chat(lines=["/compact"]).stdout
    assert "again and again" in state_of("default")["summary"]["text"]


AGENT = """
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel

from langmem_ext import ContextMiddleware


def make(saver):
    model = FakeListChatModel(responses=["word " * 60])
    return create_agent(model, middleware=[ContextMiddleware(budget=8_000)], checkpointer=saver)
"""


def test_an_agents_conversation_is_compacted_and_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "agent.py").write_text(AGENT)
    monkeypatch.setenv("LANGMEM_EXT_TOKEN_COUNTER", "approximate")
    done = chat(
        "--graph",
        "agent.py:make",
        "--json",
        lines=[*(f"question {number}" for number in range(8)), "/compact", "and now?"],
    )
    table, answer = [json.loads(line) for line in done.stdout.splitlines()[-2:]]
    assert (table["messages"], table["by"]) == (16, "extract")
    assert table["after"] < table["before"] / 2
    assert answer["reply"].startswith("word")
    values = state_of("default")
    assert len(values["messages"]) == 18
    assert [event["kind"] for event in values["context_events"]] == ["cut"]


def test_a_graph_without_a_context_says_what_it_lacks(folder: Path) -> None:
    (folder / "asking.py").write_text(ASKING_GRAPH)
    done = chat("--graph", "asking.py:asking", lines=["/compact"], code=1)
    assert "derive its state from ContextState" in done.stderr


def test_a_piece_of_a_title_opens_the_only_conversation_that_has_it_and_deletes_none(
    folder: Path,
) -> None:
    chat("--thread", "other", lines=["a broken lamp"])
    assert "thread other in" in chat("--resume", "broken", lines=[]).stderr
    assert "thread 'broken' not found" in chat(lines=["/forget broken --yes"], code=1).stderr
    assert (
        "type /forget a broken lamp --yes" in chat(lines=["/forget a broken lamp"], code=2).stderr
    )
    chat("--thread", "another", lines=["the broken chair"])
    assert (
        "several threads have in their titles 'broken'"
        in chat("--resume", "broken", lines=["hello"], code=2).stderr
    )
    assert sorted(threads()) == ["another", "other"]
    chat(lines=["/forget a broken lamp --yes"])
    assert threads() == ["another"]


def test_deleting_is_for_those_who_mean_it(folder: Path) -> None:
    chat("--thread", "other", lines=["a broken lamp"])
    done = chat(
        lines=[
            "a green chair",
            "/history",
            "/forget --yes",
            "/history",
            "/delete oth --yes",
            "/delete zzz --yes",
        ],
        code=1,
    )
    assert "no messages yet" in done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("you: ")] == [
        "you: a green chair"
    ]
    assert "thread 'zzz' not found" in done.stderr
    assert threads() == []
    held = b"".join(path.read_bytes() for path in folder.glob("memory.db*"))
    assert b"green chair" not in held
    assert b"broken lamp" not in held


# -- settings --------------------------------------------------------------------------------------


def test_a_conversation_has_as_many_turns_as_the_settings_allow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LANGMEM_EXT_MAX_TURNS", "1")
    chat(lines=["hello", "hello again"])
    shown = chat(lines=["/history"])
    assert "1 earlier turns are not shown" in shown.stderr
    assert [line for line in shown.stdout.splitlines() if line.startswith("you: ")] == [
        "you: hello again"
    ]
    monkeypatch.setenv("LANGMEM_EXT_ON_LIMIT", "error")
    assert "the maximum is 1" in chat(lines=["one more"], code=1).stderr
    chat(lines=["/clear", "I want to check my order", "O-12345"])


@pytest.mark.process
def test_expired_conversations_are_deleted_while_a_chat_runs_if_the_settings_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chat("--thread", "old", lines=["hello"])
    chat("--thread", "older", lines=["hello"])
    chat("--thread", "waits", lines=["I want to check my order"])
    change("UPDATE thread SET updated_at = 0")
    chat("--thread", "new", lines=["hello"])
    assert sorted(threads()) == ["new", "old", "older", "waits"]
    monkeypatch.setenv("LANGMEM_EXT_AUTO_PRUNE_DAYS", "1")
    monkeypatch.setenv("LANGMEM_EXT_SWEEP_INTERVAL_MINUTES", "0")
    assert "has expired" in chat("--resume", "old", lines=[], code=1).stderr
    assert "has expired" in chat("--thread", "new", lines=["/load older"], code=1).stderr
    chat("--thread", "new", lines=["/delete older --yes"])
    assert sorted(threads()) == ["new", "old", "waits"]
    monkeypatch.setenv("LANGMEM_EXT_SWEEP_INTERVAL_MINUTES", "15")
    child = pexpect.spawn(
        PROGRAM[0], [*PROGRAM[1:], "chat", "--thread", "new"], encoding="utf-8", timeout=PATIENCE_S
    )
    child.expect(PROMPT)
    until(lambda: "old" not in threads(), "nothing was swept")
    child.close(force=True)
    assert sorted(threads()) == ["new", "waits"]


def test_a_damaged_conversation_is_an_error_or_is_left_alone_as_the_settings_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chat("--thread", "t", lines=["hello"])
    change("UPDATE checkpoint SET body = x'00'")
    assert "damaged" in chat("--thread", "t", lines=["hello"], code=1).stderr
    monkeypatch.setenv("LANGMEM_EXT_ON_DAMAGE", "skip")
    done = chat("--thread", "t", lines=["I want to check my order"])
    assert "thread t is damaged, so a new one is started" in done.stderr
    assert done.stdout == "What's your order ID?\n"
    assert len(threads()) == 2


# -- at a terminal ---------------------------------------------------------------------------------


@pytest.fixture
def terminal() -> Iterator[pexpect.spawn]:
    """A chat at a terminal, beside an earlier conversation."""
    chat("--thread", "lamp-1", lines=["where is my lamp"])
    environment: Any = {
        **os.environ,
        "TERM": "xterm",
        "PROMPT_TOOLKIT_NO_CPR": "1",
        "COLUMNS": "120",
        "LINES": "40",
    }
    child = pexpect.spawn(
        PROGRAM[0],
        [*PROGRAM[1:], "chat"],
        env=environment,
        encoding="utf-8",
        timeout=PATIENCE_S,
        dimensions=(40, 120),
    )
    child.expect(PROMPT)
    yield child
    child.close(force=True)


@pytest.mark.process
def test_at_a_terminal_conversations_are_completed_loaded_and_deleted(
    terminal: pexpect.spawn,
) -> None:
    child = terminal
    child.send("I want to check my order\r")
    child.expect("What's your order ID")
    child.expect(PROMPT)
    child.send("/sessions\r")
    child.expect("where is my lamp")
    child.expect(PROMPT)
    child.send("/load lam")
    child.expect("lamp-1")
    child.send("\t\r")
    child.expect("thread lamp-1")
    child.expect(PROMPT)
    for answer, told in (("n", "nothing was deleted"), ("y", "deleted lamp-1")):
        child.send("/forget\r")
        child.expect(r"permanently\? \[y/N\]")
        child.send(f"{answer}\r")
        child.expect(told)
        child.expect(PROMPT)
    child.send("/load def\r")
    child.expect("What's your order ID")
    child.expect(PROMPT)
    child.send("/clear\r")
    child.expect("removed from the context")
    child.expect("What's your order ID")
    child.expect(PROMPT)
    child.send("O-12345\r")
    child.expect("Order O-12345 is")
    child.expect(PROMPT)
    child.send("/quit\r")
    child.expect(pexpect.EOF)
    assert threads() == ["default"]


@pytest.mark.process
def test_a_shell_completes_commands() -> None:
    # Asked in a shell: the program looks which one it was called from, and the tests may run
    # without any.
    shell = ["bash", "-c", '"$@"; exit $?', "bash"]
    script = subprocess.run(
        [*shell, *PROGRAM, "--show-completion"], capture_output=True, text=True, check=True
    )
    assert "_LANGMEM_EXT_COMPLETE" in script.stdout
    asked = {
        "_LANGMEM_EXT_COMPLETE": "complete_bash",
        "COMP_WORDS": "langmem-ext threads se",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        PROGRAM, env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["search"]
