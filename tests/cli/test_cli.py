"""The command line, driven as a user drives it: as a process, in a pipe and at a terminal."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pexpect
import pytest
from commands import chat, data, run
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from patience import PATIENCE_S, content_of, until
from typer.testing import CliRunner

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, Threads, __version__
from langmem_ext.cli.app import app

COMMAND = [sys.executable, "-m", "langmem_ext.cli"]
PROMPT = "you [^ ]*›"
HIDDEN = "•••"

SLOW_GRAPH = '''
"""The order desk with a tool that waits until a file is there, and counts its calls."""

import time
from pathlib import Path

from langchain_core.tools import tool

from graphs.shop import TOOLS
from graphs.support import catalog
from langmem_ext import build_waiting_graph


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

EVIL = "word\x1b[2J\x9b31m\x7f\x07\r[/b]\u202eevil\u2066"
"""Escape sequences of seven bits and of eight, rich's markup, and what turns the reading order
around."""

OTHER_GRAPHS = f'''
"""Graphs of somebody else."""

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph

EVIL = {EVIL!r}


def answer(state):
    if state["messages"][-1].text == "fail":
        raise RuntimeError(f"no connection.\\nThe request was: card 4711 {{EVIL}}")
    return {{"messages": [AIMessage("hello")]}}


def steer(state):
    call = {{"name": EVIL, "args": {{}}, "id": "c1"}}
    found = ToolMessage(EVIL, name=EVIL, tool_call_id="c1")
    told = [AIMessage("", tool_calls=[call]), found, AIMessage(EVIL)]
    return answer(state) and {{"messages": told}}


builder = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
evil = StateGraph(MessagesState).add_node("answer", steer).add_edge(START, "answer")
compiled = builder.compile()


def make(saver):
    return builder.compile(checkpointer=saver)


def make_builder(checkpointer):
    return builder
'''


@pytest.fixture
def others(folder: Path) -> None:
    (folder / "others.py").write_text(OTHER_GRAPHS)


def chat_apart(*arguments: str, lines: list[str]) -> subprocess.CompletedProcess[str]:
    """A chat in a process of its own."""
    given = "".join(f"{line}\n" for line in lines)
    return subprocess.run(
        [*COMMAND, "chat", *arguments], input=given, capture_output=True, text=True
    )


def said_in(thread: str = "default") -> list[str]:
    with Threads("memory.db") as threads:
        return [message.text for message in threads.messages(thread) if message.type == "human"]


# -- in a pipe -------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_conversation_goes_on_in_the_next_process(place: str) -> None:
    first = chat_apart("--db", place, lines=["I want to check my order"])
    assert (first.returncode, first.stdout) == (0, "What's your order ID?\n")
    second = chat_apart("--db", place, lines=["It's O-12345", "/history"])
    assert "What's your order ID?" in second.stderr
    reply, *history = second.stdout.splitlines()
    assert reply.startswith("Order O-12345 is processing")
    assert history[:3] == [
        "you: I want to check my order",
        "agent: What's your order ID?",
        "you: It's O-12345",
    ]
    assert history[-1] == f"agent: {reply}"


def test_the_order_desk_keeps_its_shop_beside_its_conversations(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LANGMEM_EXT_SHOP_DB")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    for name in ("one.db", "two.db"):
        done = chat("--db", name, lines=["cancel order O-12345", "yes"])
        assert "Order O-12345 is cancelled." in done.stdout
    found = {path.name for path in folder.glob("*.db")}
    assert found == {"one.db", "one-shop.db", "two.db", "two-shop.db"}
    assert not (folder / "data").exists()


def test_each_message_is_answered_by_one_line() -> None:
    lines = ["I want a refund", "where is my order O-12346?", "", "//home", "/reset", "", "hello"]
    replies = chat("--thread", "t1", lines=lines).stdout.splitlines()
    assert len(replies) == len(lines)
    assert "Back to your earlier request. What's your order ID?" in replies[1]
    assert replies[2].endswith("What's your order ID?")
    assert replies[4].startswith("All right, let's start over.")
    assert replies[5] == ""
    assert said_in("t1") == [
        "I want a refund",
        "where is my order O-12346?",
        "/home",
        "/reset",
        "hello",
    ]


def test_json_says_what_waits_and_hides_what_is_sensitive(folder: Path) -> None:
    address = "4 Elm Street, Springfield"
    lines = ["change the address of O-778", "/state", address, "/state", "/history"]
    done = chat("--json", "--db", "sqlite:///other.db", lines=[*lines, "/quit", "hello"])
    asked, waiting, answered, state, *history = map(json.loads, done.stdout.splitlines())
    for shown, expected in (
        (asked, {"waiting_for": "address", "attempt": 1, "params_keys": ["order_id"]}),
        (waiting, {"waiting_for": "address", "request": "change_address"}),
        (waiting, {"params": {"order_id": "O-778"}}),
        (answered, {"reply": f"Done. Order O-778 goes to {address}."}),
        (state, {"params": {"address": HIDDEN, "order_id": "O-778"}}),
    ):
        assert shown | expected == shown
    hidden = {"role": "human", "text": f"{HIDDEN} (holds address)"}
    assert any(line | hidden == line for line in history)
    assert "Elm Street" not in json.dumps([state, history])
    assert "hello" not in done.stdout
    assert (folder / "other.db").is_file()


@pytest.mark.smoke
def test_a_killed_turn_is_finished_at_the_next_start(folder: Path, place: str) -> None:
    (folder / "slow.py").write_text(SLOW_GRAPH)
    arguments = ["--db", place, "--graph", "slow.py:make_graph"]
    nowhere: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(
        [*COMMAND, "chat", *arguments], stdin=subprocess.PIPE, text=True, **nowhere
    ) as process:
        assert process.stdin is not None
        try:
            process.stdin.write("where is my order O-12345?\n")
            process.stdin.flush()
            until(lambda: content_of(folder / "calls"), "the tool was not called")
        finally:
            process.kill()
    (folder / "gate").touch()
    again = chat_apart(*arguments, lines=["/history"])
    assert "Order O-12345 is found" in again.stderr
    assert [line for line in again.stdout.splitlines() if line.startswith("you: ")] == [
        "you: where is my order O-12345?"
    ]
    assert (folder / "calls").read_text() == "xx"


@pytest.mark.usefixtures("others")
def test_a_graph_that_fails_is_one_message_and_is_left_behind_by_the_next() -> None:
    graph = ["--graph", "others.py:builder"]
    failed = chat(*graph, lines=["fail", "more"], code=1)
    told = "the graph failed with RuntimeError: no connection. Your message is stored"
    assert (failed.stdout, told in failed.stderr) == ("", True)
    assert "card 4711" not in failed.stderr
    assert len(failed.stderr.splitlines()) == 2
    assert "the graph failed with RuntimeError" in chat(*graph, lines=["hello"]).stderr
    assert said_in() == ["fail", "hello"]


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize("name", ["compiled", "builder", "make", "make_builder"])
def test_any_kind_of_graph_talks_has_a_state_and_is_stored(name: str) -> None:
    done = chat("--graph", f"others.py:{name}", "--json", lines=["hi", "/state", "/reset"])
    reply, state = map(json.loads, done.stdout.splitlines())
    assert (reply["reply"], reply["waiting_for"], state["messages"]) == ("hello", None, 2)
    assert "nothing to reset" in done.stderr
    assert said_in() == ["hi"]


def test_an_edited_state_is_shown_as_far_as_it_makes_sense() -> None:
    chat(lines=["I want a refund"])
    with DeltaSaver.open("memory.db") as saver:
        edit = {"params": "O-1", "suspended": [7], "summary": {"text": 1}, "plan": {"id": None}}
        channels: Any = dict.fromkeys(edit, Any)
        schema = type("Edited", (MessagesState,), {"__annotations__": channels})
        graph: Any = (
            StateGraph(schema).add_node("classify", lambda state: {}).add_edge(START, "classify")
        )
        place: Any = {"configurable": {"thread_id": "default"}}
        graph.compile(checkpointer=saver).update_state(place, edit, as_node="classify")
    [state] = map(json.loads, chat("--json", lines=["/state"]).stdout.splitlines())
    shown = [state[name] for name in ("params", "suspended", "summary", "request")]
    assert shown == [{}, [], None, None]


@pytest.mark.process
def test_bytes_that_are_no_text_do_not_end_the_chat() -> None:
    done = subprocess.run(
        [*COMMAND, "chat"],
        input="change the address of O-778\nElm 4, Köln\n".encode(),
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2


# -- at a terminal ---------------------------------------------------------------------------------


@pytest.mark.process
def test_stopping_a_turn_at_the_terminal_loses_nothing(
    folder: Path, terminal: Callable[..., pexpect.spawn]
) -> None:
    (folder / "slow.py").write_text(SLOW_GRAPH)
    child = terminal("chat", "--graph", "slow.py:make_graph")
    child.expect(PROMPT)
    child.send("I want to check my order\r")
    child.expect("What's your order ID")
    child.expect(PROMPT)
    child.sendintr()
    child.expect("Ctrl-D or /quit ends the chat")
    child.expect(PROMPT)
    child.sendeof()
    child.expect(pexpect.EOF)

    child = terminal("chat", "--graph", "slow.py:make_graph")
    child.expect("agent.*What's your order ID")
    child.expect(PROMPT)
    child.send("O-12345\r")
    until(lambda: content_of(folder / "calls"), "the tool was not called")
    child.sendintr()
    child.expect("stopped: your message is stored")
    (folder / "gate").touch()
    for typed, shown in (
        ("\r", "Order O-12345 is found"),
        ("/history\r", "I want to check my order"),
        ("/state\r", "thread id"),
        ("/help\r", "/reset"),
    ):
        child.expect(PROMPT)
        child.send(typed)
        child.expect(shown)
    child.expect(PROMPT)
    child.send("/quit\r")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert said_in() == ["I want to check my order", "O-12345"]


@pytest.mark.process
def test_ctrl_c_in_a_pipe_is_exit_code_130() -> None:
    with subprocess.Popen(
        [*COMMAND, "chat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            assert "thread default" in process.stderr.readline()
            # Pressed again if nothing happens: Python drops one that meets a destructor.
            ends = time.monotonic() + PATIENCE_S
            while process.poll() is None and time.monotonic() < ends:
                process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(60)
            assert process.returncode == 130
        finally:
            process.kill()
        assert "Traceback" not in process.stderr.read()


# -- words that would steer a terminal -------------------------------------------------------------

TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
"""The bidirectional classes of the characters that turn the reading order around."""


def assert_harmless(text: str) -> None:
    assert not [char for char in text if unicodedata.category(char) == "Cc" and char not in "\n\t"]
    assert not [char for char in text if unicodedata.bidirectional(char) in TURNING]


@pytest.mark.process
@pytest.mark.usefixtures("others")
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["lines", "json"])
def test_nothing_that_was_stored_or_is_said_reaches_the_terminal_as_it_is(
    form: list[str], terminal: Callable[..., pexpect.spawn]
) -> None:
    graph = ["--graph", "others.py:evil"]
    with DeltaSaver.open("memory.db") as saver:
        threads = Threads(saver)
        ThreadChatMessageHistory(EVIL, saver).add_messages([HumanMessage(EVIL)])
        threads.tag(EVIL, EVIL.replace("\r", ""))
        threads.note(EVIL, {EVIL: EVIL})
    chat(*graph, "--resume", EVIL, lines=["hello"])
    for words in (
        ["list"],
        ["stats"],
        ["rename", "word", EVIL],
        *([name, "word"] for name in ("show", "history", "search", "fork", "archive")),
        ["export", "word", "--format", "markdown"],
        ["show", f"no {EVIL}"],
    ):
        asked = ["threads", *words, *([] if "export" in words else form)]
        done = CliRunner().invoke(app, asked)
        assert done.exit_code == ("no " in words[-1]), done.output
        assert_harmless(done.output)
    commands = ["/history", "/sessions", "/params", "/state", "/export"]
    lines = ["hello", *commands, "/search word", "fail"]
    done = CliRunner().invoke(
        app, ["chat", *graph, "--resume", EVIL, *form], input="".join(f"{one}\n" for one in lines)
    )
    assert "the graph failed" in done.output
    assert_harmless(done.output)
    if form:
        values = [json.loads(line).values() for line in done.stdout.splitlines()]
        assert any(EVIL in found for found in values), "programs are given it as it is"
    else:
        table = terminal("threads", "list", TERM="dumb").read()
        assert_harmless(table.replace("\r\n", "\n"))
        assert "[/b]" in table, "an id is no markup"


@pytest.mark.parametrize("charset", ["utf-8", "latin-1", "cp1252"])
def test_words_of_every_script_are_written_as_they_are_or_as_escapes(charset: str) -> None:
    said = "é שלום, مرحبا 👩\u200d🚀 \u200fab\u200e"
    with DeltaSaver.open("memory.db") as saver:
        ThreadChatMessageHistory("שלום", saver).add_messages([HumanMessage(said)])
    shown = said if charset == "utf-8" else r"\u05e9\u05dc\u05d5\u05dd"
    for words in (["list"], ["history", "שלום"], ["export", "שלום", "--format", "markdown"]):
        done = CliRunner(charset=charset).invoke(app, ["threads", *words])
        assert done.exit_code == 0, done.output
        assert shown in done.stdout, words
    done = CliRunner(charset=charset).invoke(app, ["threads", "history", "שלום", "--json"])
    assert json.loads(done.stdout)["text"] == said
    assert "é" in done.stdout


def test_what_was_stored_with_half_of_a_character_is_shown() -> None:
    half = "half \ud83d"
    with DeltaSaver.open("memory.db") as saver:
        graph: Any = StateGraph(MessagesState).add_node("answer", lambda state: {"messages": []})
        said = HumanMessage(half, additional_kwargs={"a": half}, id="m1")
        place: Any = {"configurable": {"thread_id": "t"}}
        graph.add_edge(START, "answer").compile(checkpointer=saver).invoke(
            {"messages": [said]}, place
        )
    for words in (["list"], ["show", "t"], ["history", "t"], ["search", "half"]):
        for form in ([], ["--json"]):
            assert "half" in run("threads", *words, *form).stdout
    for words in (
        ["doctor"],
        ["stats"],
        *(["threads", "export", "t", "-f", one] for one in ("jsonl", "markdown")),
    ):
        assert run(*words).stdout


# -- the rest --------------------------------------------------------------------------------------


def test_a_database_that_a_chat_makes_is_its_users_alone_and_one_that_is_there_stays_as_it_is(
    folder: Path,
) -> None:
    (folder / "there.db").touch(0o644)
    (folder / "there.db").chmod(0o644)
    for name, mode in (("new.db", 0o600), ("there.db", 0o644)):
        chat("--db", name, lines=["hello"])
        found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.glob(f"{name}*")}
        assert found == {name: mode, f"{name}-lock": 0o600}


@pytest.mark.process
@pytest.mark.parametrize("missing", ["typer", "rich", "prompt_toolkit"])
def test_without_the_extra_one_line_names_the_pip_command(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from langmem_ext.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "chat"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert "pip install 'langmem-ext[cli]'" in line


def test_the_version_is_said_in_three_ways() -> None:
    said = f"langmem-ext {__version__}\n"
    assert run("version").stdout == run("--version").stdout == said
    assert data("version") == [{"langmem-ext": __version__}]
