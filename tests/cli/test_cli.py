"""The command line, driven as a user drives it: as a process, in a pipe and at a terminal."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pexpect
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from patience import PATIENCE_S, content_of, until
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console
from typer.testing import CliRunner, Result

from langmem_ext import (
    DeltaSaver,
    InvalidInput,
    Settings,
    ThreadChatMessageHistory,
    Threads,
    __version__,
)
from langmem_ext.checkpointer import validation as saver_terms
from langmem_ext.cli.app import app
from langmem_ext.cli.chat.chat import talk
from langmem_ext.cli.chat.commands import COMMANDS
from langmem_ext.cli.chat.graph_choice import choose_graph
from langmem_ext.cli.chat.open_chat import OpenChat
from langmem_ext.cli.chat.terminal import Terminal
from langmem_ext.cli.commands.threads.listing import table_of
from langmem_ext.cli.control_characters import json_line, printable
from langmem_ext.messages.annotations import HIDDEN
from langmem_ext.waiting.turn import Turn

COMMAND = [sys.executable, "-m", "langmem_ext.cli"]

SLOW_GRAPH = '''
"""The order desk with a tool that waits until a file is there, and counts its calls."""

import time
import unicodedata
from pathlib import Path

from langchain_core.tools import tool

from graphs.shop import TOOLS
from graphs.support import catalog
from langmem_ext.waiting.graph.graph import build_waiting_graph


@tool
def check_order(order_id: str) -> dict:
    """Look an order up, slowly."""
    with Path("calls").open("a") as calls:
        calls.write("x")
    while not Path("gate").exists():
        time.sleep(0.02)
    return {"order_id": order_id, "status": "found", "items": "a lamp", "total": "1.00"}


def make_graph(saver):
    tools = [check_order if tool.name == "check_order" else tool for tool in TOOLS]
    return build_waiting_graph(catalog, tools).compile(checkpointer=saver)
'''

OTHER_GRAPHS = '''
"""Graphs of somebody else."""

from langgraph.graph import START, MessagesState, StateGraph


def fail(state):
    raise RuntimeError("no connection.\\nThe request was: card 4711")


def fail_at_times(state):
    return fail(state) if state["messages"][-1].text == "fail" else {"messages": ["hello"]}


builder = StateGraph(MessagesState).add_node("answer", lambda state: {"messages": ["hello"]})
builder.add_edge(START, "answer")
compiled = builder.compile()
failing = StateGraph(MessagesState).add_node("fail", fail).add_edge(START, "fail")
stuck = StateGraph(MessagesState).add_node("answer", fail_at_times).add_edge(START, "answer")


def make(saver):
    return builder.compile(checkpointer=saver)


def make_builder(checkpointer):
    return builder


def make_nothing(saver):
    return None


def make_error(saver):
    raise RuntimeError("no connection")


def make_without():
    return builder


number = 7
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, and in it the shop's database; nothing of the machine's settings leaks
    in.
    """
    monkeypatch.chdir(tmp_path)
    for name in ("LANGMEM_EXT_DB", "LANGMEM_EXT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LANGMEM_EXT_SHOP_DB", str(tmp_path / "shop.db"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def chat(*arguments: str, lines: list[str]) -> subprocess.CompletedProcess[str]:
    """A chat in a process of its own."""
    return subprocess.run(
        [*COMMAND, "chat", *arguments],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
    )


@pytest.mark.process
def test_the_order_desk_keeps_its_shop_beside_its_conversations(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LANGMEM_EXT_SHOP_DB")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    for name in ("one.db", "two.db"):
        done = chat("--db", name, lines=["cancel order O-12345", "yes"])
        assert "Order O-12345 is cancelled." in done.stdout
    assert {path.name for path in folder.glob("*.db")} == {
        "one.db",
        "one-shop.db",
        "two.db",
        "two-shop.db",
    }
    assert not (folder / "data").exists()


def chat_here(*arguments: str, lines: list[str]) -> Result:
    """A chat in this process, which has what it imports already."""
    return CliRunner().invoke(
        app, ["chat", *arguments], input="".join(f"{line}\n" for line in lines)
    )


# -- in a pipe -------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_conversation_goes_on_in_the_next_process(folder: Path, place: str) -> None:
    first = chat("--db", place, lines=["I want to check my order"])
    assert (first.returncode, first.stdout) == (0, "What's your order ID?\n")
    second = chat("--db", place, lines=["It's O-12345", "/history"])
    assert "What's your order ID?" in second.stderr
    reply, *history = second.stdout.splitlines()
    assert reply.startswith("Order O-12345 is processing")
    assert history[:3] == [
        "you: I want to check my order",
        "agent: What's your order ID?",
        "you: It's O-12345",
    ]
    assert history[-1] == f"agent: {reply}"


@pytest.mark.process
def test_a_conversation_is_stored_compressed_when_asked_and_goes_on_without_being_asked(
    folder: Path,
) -> None:
    said = (
        "I would like to know where my order is, please, because it should have been here last"
        " week. " * 3
    )
    assert chat_here("--compress", lines=[said]).stdout == "What's your order ID?\n"
    with closing(sqlite3.connect("memory.db")) as connection:
        assert connection.execute("SELECT typeof(text) FROM item ORDER BY key").fetchall()[0] == (
            "blob",
        )
    assert chat_here(lines=["It's O-12345"]).stdout.startswith("Order O-12345 is processing")
    assert f"you: {said.strip()}" in chat_here(lines=["/history"]).stdout


@pytest.mark.process
def test_each_message_is_answered_by_one_line(folder: Path) -> None:
    lines = ["I want a refund", "where is my order O-12346?", "", "//home", "/reset", "", "hello"]
    done = chat_here("--thread", "t1", lines=lines)
    replies = done.stdout.splitlines()
    assert len(replies) == len(lines)
    assert "Back to your earlier request. What's your order ID?" in replies[1]
    assert replies[2].endswith("What's your order ID?")
    assert replies[4].startswith("All right, let's start over.")
    assert replies[5] == ""
    with DeltaSaver.open("memory.db") as saver:
        messages = saver.get({"configurable": {"thread_id": "t1"}})["channel_values"]["messages"]  # type: ignore[index]  # it is there
    said = [message.text for message in messages if message.type == "human"]
    assert said == ["I want a refund", "where is my order O-12346?", "/home", "/reset", "hello"]


@pytest.mark.process
def test_json_says_what_waits_and_hides_what_is_sensitive(folder: Path) -> None:
    lines = [
        "change the address of O-778",
        "/state",
        "4 Elm Street, Springfield",
        "/state",
        "/history",
        "/quit",
        "hello",
    ]
    done = chat_here("--json", "--db", "sqlite:///other.db", lines=lines)
    asked, waiting, answered, state, *history = [
        json.loads(line) for line in done.stdout.splitlines()
    ]
    assert (asked["waiting_for"], asked["attempt"], asked["params_keys"]) == (
        "address",
        1,
        ["order_id"],
    )
    assert (waiting["waiting_for"], waiting["request"], waiting["params"]) == (
        "address",
        "change_address",
        {"order_id": "O-778"},
    )
    assert answered["reply"] == "Done. Order O-778 goes to 4 Elm Street, Springfield."
    assert state["params"] == {"address": HIDDEN, "order_id": "O-778"}
    assert ("human", f"{HIDDEN} (holds address)") in [
        (line["role"], line["text"]) for line in history
    ]
    assert "Elm Street" not in json.dumps([state, history])
    assert "hello" not in done.stdout
    assert (folder / "other.db").is_file()


@pytest.mark.smoke
def test_a_killed_turn_is_finished_at_the_next_start(folder: Path, place: str) -> None:
    (folder / "slow.py").write_text(SLOW_GRAPH)
    arguments = [*COMMAND, "chat", "--db", place, "--graph", "slow.py:make_graph"]
    with subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        try:
            process.stdin.write("where is my order O-12345?\n")
            process.stdin.flush()
            until(lambda: content_of(folder / "calls"), "the tool was not called")
        finally:
            process.kill()
    (folder / "gate").touch()
    again = chat("--db", place, "--graph", "slow.py:make_graph", lines=["/history"])
    assert "Order O-12345 is found" in again.stderr
    assert [line for line in again.stdout.splitlines() if line.startswith("you: ")] == [
        "you: where is my order O-12345?"
    ]
    assert (folder / "calls").read_text() == "xx"


@pytest.mark.process
def test_a_graph_that_fails_is_one_message_and_exit_code_1(folder: Path) -> None:
    (folder / "others.py").write_text(OTHER_GRAPHS)
    done = chat_here("--graph", "others.py:failing", lines=["hi", "more"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert (
        "the graph failed with RuntimeError: no connection. Your message is stored" in done.stderr
    )
    assert "Traceback" not in done.stderr
    assert "card 4711" not in done.output
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.process
def test_a_turn_that_cannot_be_finished_is_left_behind_by_the_next_message(folder: Path) -> None:
    (folder / "others.py").write_text(OTHER_GRAPHS)
    assert chat_here("--graph", "others.py:stuck", lines=["fail"]).exit_code == 1
    left = chat_here("--graph", "others.py:stuck", lines=["hello"])
    assert (left.exit_code, "the graph failed with RuntimeError" in left.stderr) == (0, True)
    with DeltaSaver.open("memory.db") as saver:
        said = OpenChat(
            choose_graph("others.py:stuck", None)(saver), saver, Settings()
        ).thread.messages()
    assert [message.text for message in said] == ["fail", "hello", "hello"]


@pytest.mark.process
def test_an_edited_state_is_shown_as_far_as_it_makes_sense(folder: Path) -> None:
    chat_here(lines=["I want a refund"])
    with DeltaSaver.open("memory.db") as saver:
        edit = {"params": "O-1", "suspended": [7], "summary": {"text": 1}, "plan": {"id": None}}
        choose_graph(None, None)(saver).update_state(
            {"configurable": {"thread_id": "default"}}, edit, as_node="classify"
        )
    state = json.loads(chat_here("--json", lines=["/state"]).stdout)
    assert (state["params"], state["suspended"], state["summary"], state["request"]) == (
        {},
        [],
        None,
        None,
    )


@pytest.mark.process
def test_a_graph_of_somebody_else_has_a_state_and_nothing_to_reset(folder: Path) -> None:
    (folder / "others.py").write_text(OTHER_GRAPHS)
    done = chat_here("--graph", "others.py:compiled", "--json", lines=["hi", "/state", "/reset"])
    reply, state = [json.loads(line) for line in done.stdout.splitlines()]
    assert (reply["waiting_for"], state["messages"]) == (None, 2)
    assert "nothing to reset" in done.stderr


@pytest.mark.process
def test_bytes_that_are_no_text_do_not_end_the_chat(folder: Path) -> None:
    command = [*COMMAND, "chat"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        command,
        input="change the address of O-778\nElm 4, Köln\n".encode(),
        capture_output=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2


# -- at a terminal ---------------------------------------------------------------------------------


PROMPT = "you [^ ]*›"


class Terminals:
    """Chats, each at a terminal of its own."""

    def __init__(self) -> None:
        self.open: list[pexpect.spawn] = []

    def chat(self, *arguments: str, opens_with: str = "") -> pexpect.spawn:
        """A chat up to its first prompt."""
        child = pexpect.spawn(
            COMMAND[0],
            [*COMMAND[1:], "chat", *arguments],
            # The size is said twice: variables of the surroundings would count for more than the
            # terminal's own size.
            env={
                **os.environ,
                "TERM": "xterm",
                "PROMPT_TOOLKIT_NO_CPR": "1",
                "COLUMNS": "120",
                "LINES": "40",
            },
            encoding="utf-8",
            dimensions=(40, 120),
        )
        self.open.append(child)
        child.expect(f"{opens_with}(?s:.*){PROMPT}")
        return child


@pytest.fixture
def terminals(folder: Path) -> Iterator[Terminals]:
    """Chats at terminals; none of them outlives the test."""
    terminals = Terminals()
    yield terminals
    for child in terminals.open:
        child.close(force=True)


def end(child: pexpect.spawn) -> None:
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


@pytest.mark.process
def test_stopping_a_turn_at_the_terminal_loses_nothing(folder: Path, terminals: Terminals) -> None:
    (folder / "slow.py").write_text(SLOW_GRAPH)
    child = terminals.chat("--graph", "slow.py:make_graph")
    child.send("I want to check my order\r")
    child.expect("What's your order ID")
    child.expect(PROMPT)
    child.sendeof()
    end(child)

    child = terminals.chat(
        "--graph", "slow.py:make_graph", opens_with="agent.*What's your order ID"
    )
    child.send("O-12345\r")
    until(lambda: content_of(folder / "calls"), "the tool was not called")
    child.sendintr()
    child.expect("stopped: your message is stored")
    (folder / "gate").touch()
    child.expect(PROMPT)
    child.send("\r")
    child.expect("Order O-12345 is found")
    child.expect(PROMPT)
    child.send("/history\r")
    child.expect("I want to check my order")
    child.expect(PROMPT)
    child.send("/quit\r")
    end(child)
    with DeltaSaver.open("memory.db") as saver:
        state = saver.get({"configurable": {"thread_id": "default"}})
    assert state is not None
    assert [
        message.text for message in state["channel_values"]["messages"] if message.type == "human"
    ] == [
        "I want to check my order",
        "O-12345",
    ]


@pytest.mark.process
def test_a_command_is_completed(terminals: Terminals) -> None:
    child = terminals.chat()
    child.send("/st")
    child.expect(COMMANDS["/state"])
    child.send("\t")
    child.expect("/state")
    child.send("\r")
    child.expect("thread id")
    child.expect(PROMPT)
    child.send("/help\r")
    child.expect(COMMANDS["/reset"])
    child.expect(PROMPT)
    child.sendintr()
    child.expect("Ctrl-D or /quit ends the chat")
    child.expect(PROMPT)
    child.sendeof()
    end(child)


class Interrupted:
    """A terminal at which Ctrl-C is pressed while a reply is printed."""

    interactive = True

    def __init__(self) -> None:
        self.lines = iter(["hello", "/quit"])
        self.notes: list[str] = []

    def read(self, prefill: str) -> str | None:
        return next(self.lines)

    def working(self) -> AbstractContextManager[tuple[()]]:
        return nullcontext(())

    def reply(self, turn: Turn) -> None:
        raise KeyboardInterrupt

    question = reply

    def history(self, lines: object) -> None:
        raise AssertionError

    state = history
    recall = history

    def confirm(self, question: str) -> bool:
        raise AssertionError

    def rows(self, shown: object, lines: object, data: object) -> None:
        raise AssertionError

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_ctrl_c_between_two_turns_does_not_end_the_chat(folder: Path) -> None:
    with DeltaSaver() as saver:
        screen = Interrupted()
        assert talk(OpenChat(choose_graph(None, None)(saver), saver, Settings()), screen) == 0
    assert next(screen.lines, None) is None


def test_stored_words_cannot_steer_the_terminal() -> None:
    assert printable("a\x1b[2Jb\x07\n\tc é 👩\u200d🚀") == "a�[2Jb�\n\tc é 👩\u200d🚀"
    assert (
        printable("invoice\u202efdp.exe \u2067x\u2069 \ud83d")
        == r"invoice\u202efdp.exe \u2067x\u2069 \ud83d"
    )


@pytest.mark.parametrize(
    "text", ["שלום, עולם", "مرحبا بالعالم 123", "\u200fשלום\u200e (abc)", "\u061cنص"]
)
def test_text_from_right_to_left_is_shown_as_it_is(text: str) -> None:
    assert printable(text) == text
    assert json_line([text]) == f'["{text}"]'


EVIL = "word\x1b[2J\x9b31m\x7f\x07\r[/b]\u202eevil\u2066"
"""Escape sequences of seven bits and of eight, rich's markup, and what turns the reading order
around."""

EVIL_GRAPH = f"""
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph

EVIL = {EVIL!r}


def answer(state):
    if state["messages"][-1].text == "fail":
        raise RuntimeError(EVIL)
    call = {{"name": EVIL, "args": {{}}, "id": "c1"}}
    told = [
        AIMessage("", tool_calls=[call]),
        ToolMessage(EVIL, name=EVIL, tool_call_id="c1"),
        AIMessage(EVIL),
    ]
    return {{"messages": told}}


graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
"""


@pytest.fixture
def evil(folder: Path) -> Path:
    """A thread whose id, title, tag, tool and messages would steer a terminal."""
    (folder / "evil.py").write_text(EVIL_GRAPH)
    with DeltaSaver.open("evil.db") as saver:
        graph = choose_graph("evil.py:graph", None)(saver)
        graph.invoke({"messages": [HumanMessage(EVIL)]}, {"configurable": {"thread_id": EVIL}})
        threads = Threads(saver)
        threads.tag(EVIL, EVIL.replace("\r", ""))
        threads.note(EVIL, {EVIL: EVIL})
    return folder


TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
"""The bidirectional classes of the characters that turn the reading order around."""


def assert_harmless(text: str) -> None:
    assert not [char for char in text if unicodedata.category(char) == "Cc" and char not in "\n\t"]
    assert not [char for char in text if unicodedata.bidirectional(char) in TURNING]


@pytest.mark.process
@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.usefixtures("evil")
def test_nothing_that_was_stored_or_is_said_reaches_the_terminal_as_it_is(as_json: bool) -> None:
    commands = [
        ["list"],
        ["stats"],
        ["rename", "word", EVIL],
        *([name, "word"] for name in ("show", "history", "search", "fork", "archive")),
    ]
    for words in (*commands, ["export", "word", "--format", "markdown"], ["show", f"no {EVIL}"]):
        done = CliRunner().invoke(
            app,
            [
                "threads",
                *words,
                "--db",
                "evil.db",
                *(["--json"] if as_json and "export" not in words else []),
            ],
        )
        assert done.exit_code == (0 if f"no {EVIL}" not in words else 1), done.output
        assert_harmless(done.output)
    said = [
        "hello",
        "/history",
        "/sessions",
        "/search word",
        "/params",
        "/state",
        "/export",
        "fail",
    ]
    done = chat_here(
        "--graph",
        "evil.py:graph",
        "--db",
        "evil.db",
        "--resume",
        EVIL,
        *(["--json"] if as_json else []),
        lines=said,
    )
    assert "the graph failed" in done.output
    assert_harmless(done.output)
    if as_json:
        assert EVIL in {
            value
            for line in done.stdout.splitlines()
            for value in json.loads(line).values()
            if isinstance(value, str)
        }


@pytest.mark.usefixtures("evil")
def test_a_prompt_that_cannot_be_shown_is_not_recalled() -> None:
    with (
        DeltaSaver.open("evil.db") as saver,
        create_pipe_input() as typed,
        create_app_session(input=typed, output=DummyOutput()),
    ):
        screen = Terminal({}, ["hello", EVIL, "שלום"], Threads(saver).list)
        typed.send_text("\x1b[A\x1b[A\r")
        assert screen.read("") == "hello"


@pytest.mark.parametrize("charset", ["latin-1", "cp1252"])
@pytest.mark.usefixtures("folder")
def test_what_the_output_cannot_encode_is_written_as_an_escape(charset: str) -> None:
    with DeltaSaver.open("memory.db") as saver:
        ThreadChatMessageHistory("שלום", saver).add_messages([HumanMessage("é שלום 👩")])
    for words in (
        ["list"],
        ["show", "שלום"],
        ["history", "שלום"],
        ["export", "שלום", "--format", "markdown"],
    ):
        done = CliRunner(charset=charset).invoke(app, ["threads", *words, "--db", "memory.db"])
        assert done.exit_code == 0, done.output
        assert "\\u05e9\\u05dc\\u05d5\\u05dd" in done.stdout or "export" in words
    done = CliRunner(charset=charset).invoke(
        app, ["threads", "history", "שלום", "--json", "--db", "memory.db"]
    )
    assert json.loads(done.stdout)["text"] == "é שלום 👩"
    assert "é" in done.stdout


@pytest.mark.usefixtures("folder")
def test_ids_of_halves_that_an_earlier_release_stored_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    half = "half \ud83d"
    with DeltaSaver.open("memory.db") as saver, monkeypatch.context() as patch:
        patch.setattr(saver_terms, "require_storable", lambda text, what: None)
        config: Any = {
            "configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": half}
        }
        told, called = HumanMessage(""), AIMessage("")
        told.content = told.id = called.content = (
            half  # set in place: an older pydantic lets no constructor have it
        )
        values = {"messages": [told]}
        checkpoint: Any = empty_checkpoint() | {
            "channel_values": values,
            "channel_versions": {"messages": 1},
        }
        config = saver.put(config, checkpoint, {"source": "loop", "step": 1}, {"messages": 1})
        called.tool_calls = [{"name": half, "args": {"a": half}, "id": half, "type": "tool_call"}]
        saver.put_writes(config, [("messages", [called])], half)
    for words in (
        ["doctor"],
        ["stats"],
        *(
            ["threads", *rest]
            for rest in (["list"], ["show", "t"], ["history", "t"], ["search", "half"])
        ),
    ):
        for form in ([], ["--json"]):
            done = CliRunner().invoke(app, [*words, "--db", "memory.db", *form])
            assert done.exit_code in (0, 1), done.output
            assert isinstance(done.exception, SystemExit | None), done.output
    assert r"\ud83d" in CliRunner().invoke(app, ["doctor", "memory.db"]).stdout
    for words in (["--to", "t.md"], ["--to", "t.jsonl"], ["--format", "markdown"], []):
        done = CliRunner().invoke(app, ["threads", "export", "t", "--db", "memory.db", *words])
        assert done.exit_code == 0, done.output


@pytest.mark.usefixtures("evil")
def test_a_table_for_a_person_shows_it_harmless_too() -> None:
    with DeltaSaver.open("evil.db") as saver:
        found = Threads(saver).list()
    shown = StringIO()
    Console(file=shown, width=200, force_terminal=True, color_system=None).print(
        table_of(found, datetime.now(UTC), 0)
    )
    assert_harmless(shown.getvalue())
    assert "[/b]" in shown.getvalue(), "an id is no markup"


# -- bad input -------------------------------------------------------------------------------------


def bad_file(folder: Path) -> None:
    (folder / "file").write_text("This is no database, whatever its name says.\n" * 20)


def newer_database(folder: Path) -> None:
    DeltaSaver.open("newer.db").close()
    with closing(sqlite3.connect("newer.db")) as connection, connection:
        connection.execute("INSERT INTO langmem_migration VALUES ('m999_of_tomorrow', 0)")


def theirs(folder: Path) -> None:
    with closing(sqlite3.connect("theirs.db")) as connection, connection:
        connection.execute("CREATE TABLE customer (name TEXT)")
        connection.execute("CREATE TABLE invoice (amount REAL)")


def others(folder: Path) -> None:
    (folder / "others.py").write_text(OTHER_GRAPHS)
    (folder / "broken.py").write_text("def")
    (folder / "intents.yaml").write_text("intents:\n  - id: a\n  - id: a\n")
    (folder / "mistaken.py").write_text(
        "from langmem_ext.waiting.catalog.catalog import IntentCatalog\ncatalog ="
        " IntentCatalog.from_yaml('intents.yaml')\n"
    )


@pytest.mark.process
@pytest.mark.parametrize(
    ("prepare", "arguments", "code", "message"),
    [
        (bad_file, ["--db", "file/memory.db"], 1, "cannot be opened"),
        (bad_file, ["--db", "file"], 1, "not a SQLite database"),
        (bad_file, ["--db", "nowhere/memory.db"], 1, "cannot be opened"),
        (newer_database, ["--db", "newer.db"], 1, "newer release"),
        (
            theirs,
            ["--db", "theirs.db"],
            1,
            "theirs.db is another program's database (it has the table 'customer' and others)",
        ),
        (bad_file, ["--db", ""], 2, "use a path"),
        (bad_file, ["--db", "mysql://host"], 2, "unknown kind of database"),
        (bad_file, ["--thread", ""], 2, "thread id is empty"),
        (bad_file, ["--model", "nobody:nothing"], 2, "nobody:nothing"),
        (others, ["--graph", "others"], 2, "is invalid: write"),
        (others, ["--graph", "others:nothing"], 2, "cannot be loaded"),
        (others, ["--graph", "not_there.py:graph"], 2, "not_there.py not found"),
        (others, ["--graph", "broken.py:graph"], 2, "SyntaxError"),
        (others, ["--graph", "mistaken.py:catalog"], 2, "line 3"),
        (others, ["--graph", "others.py:number"], 2, "is not a graph but int"),
        (others, ["--graph", "others.py:make_nothing"], 2, "returned NoneType, not a graph"),
        (others, ["--graph", "others.py:make_error"], 2, "RuntimeError: no connection"),
        (others, ["--graph", "others.py:make_without"], 2, "cannot be called with a checkpointer"),
        (others, ["--graph", "others.py:compiled", "--model", "openai:gpt"], 2, "takes no model"),
    ],
)
def test_bad_input_is_one_message_and_an_exit_code(
    folder: Path, prepare: Callable[[Path], None], arguments: list[str], code: int, message: str
) -> None:
    prepare(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = chat_here(*arguments, lines=["hello"])
    assert done.exit_code == code, done.output
    assert done.stdout == ""
    assert done.stderr.startswith("langmem-ext: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert {name: (folder / name).read_bytes() for name in before} == before


@pytest.mark.process
def test_a_database_that_a_chat_makes_is_its_users_alone_and_one_that_is_there_stays_as_it_is(
    folder: Path,
) -> None:
    (folder / "there.db").touch(0o644)
    (folder / "there.db").chmod(0o644)
    for name, mode in (("new.db", 0o600), ("there.db", 0o644)):
        assert chat_here("--db", name, lines=["hello"]).exit_code == 0
        found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.glob(f"{name}*")}
        assert found == {name: mode, f"{name}-lock": 0o600}


@pytest.mark.process
def test_an_unknown_option_is_exit_code_2(folder: Path) -> None:
    assert CliRunner().invoke(app, ["chat", "--bogus"]).exit_code == 2


@pytest.mark.process
@pytest.mark.parametrize("missing", ["typer", "rich", "prompt_toolkit"])
def test_without_the_extra_one_line_names_the_pip_command(folder: Path, missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from langmem_ext.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "chat"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert "pip install 'langmem-ext[cli]'" in line


# -- graphs to choose from -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["compiled", "builder", "make", "make_builder"])
def test_any_kind_of_graph_is_compiled_with_the_savers_database(folder: Path, name: str) -> None:
    others(folder)
    with DeltaSaver() as saver:
        graph = choose_graph(f"others.py:{name}", None)(saver)
        assert isinstance(graph, Pregel)
        assert graph.checkpointer is saver


def test_a_graph_of_ones_own_keeps_its_breakpoints(folder: Path) -> None:
    (folder / "stopping.py").write_text(
        f"{OTHER_GRAPHS}\nstopping = builder.compile(interrupt_before=['answer'])\n"
    )
    with DeltaSaver() as saver:
        assert choose_graph("stopping.py:stopping", None)(saver).interrupt_before_nodes == [
            "answer"
        ]


def test_a_function_that_makes_the_graph_is_given_the_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "modelled.py").write_text(
        f"{OTHER_GRAPHS}\ngiven = []\ndef make(saver, *, model):\n    given.append(model)\n   "
        " return builder\n"
    )
    with pytest.raises(InvalidInput, match="nobody:nothing"):
        choose_graph("modelled.py:make", "nobody:nothing")
    with pytest.raises(InvalidInput, match="'model'"):
        choose_graph("modelled.py:make_builder", "fake")
    assert isinstance(sys.modules["modelled"].builder, StateGraph)
    assert sys.modules["modelled"].given == []


# -- help ------------------------------------------------------------------------------------------


@pytest.mark.process
def test_help_loads_neither_langgraph_nor_what_a_terminal_needs(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *COMMAND[1:], "--help"],
        check=True,
        capture_output=True,
        text=True,
    )
    loaded = {line.rsplit("|")[-1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "typer" in loaded
    assert loaded.isdisjoint({"langgraph", "langchain_core", "pydantic", "prompt_toolkit", "rich"})


def test_the_version_is_said_in_three_ways() -> None:
    assert CliRunner().invoke(app, ["version"]).stdout == f"langmem-ext {__version__}\n"
    assert CliRunner().invoke(app, ["--version"]).stdout == f"langmem-ext {__version__}\n"
    assert json.loads(CliRunner().invoke(app, ["version", "--json"]).stdout) == {
        "langmem-ext": __version__
    }


@pytest.mark.process
def test_ctrl_c_in_a_pipe_is_exit_code_130(folder: Path) -> None:
    command = [*COMMAND, "chat"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            assert "thread default" in process.stderr.readline()
            assert interrupted(process) == 130
        finally:
            process.kill()
        assert "Traceback" not in process.stderr.read()


def interrupted(process: subprocess.Popen[str]) -> int | None:
    """The exit code after Ctrl-C, pressed again where nothing happens.

    Python drops an interrupt that meets a destructor.
    """
    ends = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < ends:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
    return process.returncode
